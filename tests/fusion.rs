//! What the compiler fuses, and what it says where it does not. Needs no adapter.

mod graph_common;

use graph_common::*;
use kernels_gen::formats::Format;
use kernels_gen::threefry::Key;
use kernels_gen::{AdapterClass, Target};
use sublane::DType;
use sublane::capture::{Traced, capture};
use sublane::compiler::{CompileOptions, Compiled, Mode, OptionalStage, compile};
use sublane::graph::{Graph, ReduceOp};
use sublane::ops::attention::Attention;
use sublane::ops::loss::LossReduction;
use sublane::ops::prelude::*;
use sublane::ops::resize::Interpolation;
use sublane::ops::scatter::Update;
use sublane::plan::SlotRole;
use sublane::suite::samples::{self, LlamaSizes};

fn compiled(graph: &Graph, target: &Target) -> Compiled {
    compile(graph, target, &CompileOptions::default()).expect("compiles")
}

fn eager(graph: &Graph, target: &Target) -> Compiled {
    compile(graph, target, &CompileOptions { mode: Mode::Eager, ..CompileOptions::default() }).expect("compiles")
}

/// Several results of one input.
fn of_x_all(shape: &[usize], f: fn(&Traced) -> sublane::Result<Vec<Traced>>) -> Graph {
    let named = |all: Vec<Traced>| all.into_iter().enumerate().map(|(i, y)| (format!("y{i}"), y)).collect::<Vec<_>>();
    capture(|t| f(&t.input("x", shape, DType::F32)?).map(named)).expect("records")
}

/// The graph compiled for each preset must be `count` kernels.
fn kernels(graph: &Graph, count: usize) {
    for target in Target::presets() {
        let compiled = compiled(graph, &target);
        let names: Vec<&str> = compiled.kernels().iter().map(|k| k.name.as_str()).collect();
        assert_eq!(names.len(), count, "{names:?} for target {}:\n{}", target.name, compiled.fusion());
    }
}

#[test]
fn rows_that_are_normalised_are_one_kernel() {
    for shape in [&[4, 257][..], &[4096, 1024], &[1, 8], &[2, 3, 40]] {
        kernels(&softmax(shape), 1);
        kernels(&layer_norm(shape), 1);
        kernels(&rms_norm(shape), 1);
        kernels(&of_x(shape, |x| x.log_softmax(-1)), 1);
    }
}

#[test]
fn losses_and_places_of_extremes_are_one_kernel() {
    let loss = |reduction, count| {
        let graph = capture(|t| {
            let (x, labels) = (t.input("x", [64, 257], DType::F32)?, t.input("labels", [64], DType::I32)?);
            x.cross_entropy(&labels, Some(-100), reduction)
        });
        kernels(&graph.expect("captured"), count);
    };
    loss(LossReduction::None, 1);
    loss(LossReduction::Mean, 2);
    kernels(&of_x(&[64, 257], |x| x.argmax(1, false)), 1);
    kernels(&of_x(&[4, 8, 6, 6], |x| x.interpolate(&[12, 12], Interpolation::Linear)), 1);
}

#[test]
fn scans_and_sorts_are_few_kernels() {
    // What stands around a scan is part of it.
    kernels(&of_x(&[2000, 100], |x| x.neg()?.cumsum(1)?.exp()), 1);
    // Sums of parts, their running sums, and the parts.
    kernels(&of_x(&[3, 1 << 14], |x| x.cumsum(1)), 3);
    kernels(&of_x(&[7, 64], |x| x.argsort(1, false)), 1);
    kernels(&of_x(&[7, 1024], |x| x.argsort(1, false)), 5);
}

/// Gathers take what stands around them; a sum by places is sorted places, their ends and the sums, with what stands around those.
#[test]
fn gathers_and_scatters_take_their_neighbours() {
    let gathered = capture(|t| {
        let (x, i) = (t.input("x", [50, 8], DType::F32)?, t.input("i", [30], DType::I32)?);
        x.mul_scalar(2.0)?.gather(&i.add_scalar(1.0)?, 0)?.tanh()
    });
    kernels(&gathered.expect("records"), 1);
    let scattered = |around: bool| {
        capture(|t| {
            let (x, i) = (t.input("x", [50, 8], DType::F32)?, t.input("i", [30, 1], DType::I32)?);
            let updates = t.input("u", [30, 8], DType::F32)?;
            let updates = if around { updates.mul_scalar(2.0)? } else { updates };
            let sum = x.scatter_nd(&i, &updates, Update::Combine(ReduceOp::Sum))?;
            if around { sum.relu() } else { Ok(sum) }
        })
        .expect("records")
    };
    for target in Target::presets() {
        let [with, without] = [true, false].map(|around| compiled(&scattered(around), &target).kernels().len());
        assert_eq!(with, without, "{}", compiled(&scattered(true), &target).fusion());
    }
}

#[test]
fn a_softmax_along_the_first_axis_is_one_kernel() {
    kernels(&of_x(&[40, 64], |x| x.softmax(0)), 1);
    kernels(&of_x(&[8, 33, 7], |x| x.softmax(1)), 1);
    kernels(&of_x(&[7, 8, 4, 3], |x| x.softmax(2)), 1);
}

#[test]
fn a_chain_of_pointwise_operations_is_one_kernel() {
    kernels(&chain(&[1 << 22]), 1);
    kernels(&chain(&[3, 5, 7]), 1);
    kernels(&of_x(&[64, 64], |x| x.gelu()?.transpose(&[1, 0])?.add(x)?.sigmoid()?.reshape(&[-1])), 1);
    kernels(&quantise(&[1000]), 1);
}

#[test]
fn broadcasting_and_views_cost_no_kernel() {
    let graph = capture(|t| {
        let (x, row) = (t.input("x", [6, 1, 8], DType::F32)?, t.input("row", [5, 8], DType::F32)?);
        let sum = x.add(&row)?;
        sum.transpose(&[2, 0, 1])?.slice(&[1, 0, 2], &[7, 6, 5])?.pad(&[0, 1, 0], &[2, 0, 1], 3.0)
    });
    kernels(&graph.expect("records"), 1);
}

#[test]
fn elementwise_results_of_one_size_are_one_kernel() {
    let two = |f: fn(&Traced, &Traced) -> sublane::Result<(Traced, Traced)>| {
        capture(|t| {
            let (x, y) = (t.input("x", [300, 70], DType::F32)?, t.input("y", [300, 70], DType::F32)?);
            f(&x, &y)
        })
        .expect("records")
    };
    // Two results of the same operands, of different shape and element type too.
    kernels(&two(|x, y| Ok((x.add(y)?, x.mul(y)?.reshape(&[21_000])?))), 1);
    kernels(&two(|x, y| Ok((x.add(y)?, x.less(y)?))), 1);
    // A result that the other one starts from.
    kernels(&two(|x, y| x.add(y).and_then(|sum| Ok((sum.clone(), sum.exp()?)))), 1);
    // Not where the other one needs it elsewhere, nor where it comes back through another kernel.
    kernels(&two(|x, y| x.add(y).and_then(|sum| Ok((sum.clone(), sum.transpose(&[1, 0])?.exp()?)))), 2);
    kernels(&two(|x, y| x.add(y).and_then(|sum| Ok((sum.clone(), sum.sub(&sum.max(&[1], true)?.max(&[0], true)?)?)))), 4);
    // Large results that share nothing are two kernels, small ones are one.
    let apart = |rows: usize| {
        capture(|t| Ok((t.input("x", [rows, 70], DType::F32)?.exp()?, t.input("y", [rows, 70], DType::F32)?.sin()?))).expect("records")
    };
    kernels(&apart(300), 2);
    kernels(&apart(3), 1);
    // What only the joined kernels read is not stored.
    let graph = two(|x, y| x.add(y).and_then(|sum| Ok((sum.exp()?, sum.sin()?))));
    kernels(&graph, 1);
    let compiled = compiled(&graph, &Target::webgpu());
    assert!(!compiled.plan().slots.iter().any(|slot| slot.role == SlotRole::Temp), "{}", compiled.fusion());
    let without = CompileOptions { without: [OptionalStage::Siblings].into(), ..CompileOptions::default() };
    assert_eq!(compile(&graph, &Target::webgpu(), &without).expect("compiles").kernels().len(), 3);
}

#[test]
fn reductions_of_the_same_rows_are_one_kernel() {
    // Results one a row.
    kernels(&of_x_all(&[64, 500], |x| Ok(vec![x.sum(&[1], false)?, x.max(&[1], true)?, x.mul(x)?.sum(&[1], false)?])), 1);
    kernels(&of_x_all(&[64, 500], |x| Ok(vec![x.sum(&[0], false)?, x.mul(x)?.sum(&[0], false)?])), 1);
    // One a row and one an element: the rows' extremes and the softmax that starts from them.
    kernels(&of_x_all(&[64, 500], |x| Ok(vec![x.max(&[1], true)?, x.softmax(1)?])), 1);
    // Rows of other length, or along another axis.
    kernels(&of_x_all(&[64, 500], |x| Ok(vec![x.sum(&[1], false)?, x.sum(&[0], false)?])), 2);
}

/// A kernel with several results binds no more buffers than the target has.
#[test]
fn joined_kernels_stay_within_the_bindings() {
    let graph = capture(|t| {
        let x = t.input("x", [64], DType::F32)?;
        (0..20).map(|i| Ok((format!("y{i}"), x.mul(&t.input(format!("x{i}"), [64], DType::F32)?)?))).collect::<sublane::Result<Vec<_>>>()
    });
    let graph = graph.expect("records");
    for target in Target::presets() {
        let compiled = compiled(&graph, &target);
        let most = compiled.plan().kernels.iter().map(|k| k.bindings.len()).max().unwrap_or(0);
        assert!(most <= target.max_storage_buffers as usize && compiled.kernels().len() < 20, "{most} buffers\n{}", compiled.fusion());
    }
}

/// A step of an LSTM: the product with the state, and one kernel for the cell and the state.
#[test]
fn a_step_of_a_recurrent_layer_is_two_kernels() {
    let steps = |steps: usize| {
        let graph = sublane::suite::networks::lstm(Key::new(1), steps, 32).expect("records");
        compiled(&graph, &Target::software()).kernels().len()
    };
    assert_eq!(steps(9) - steps(5), 2 * 4);
}

/// Updates of several parameters and their moments, whose memory is given, take no further memory.
#[test]
fn joined_kernels_write_over_donated_inputs() {
    let graph = capture(|t| {
        let mut results = Vec::new();
        for i in 0..3 {
            let [p, m, g] = ["p", "m", "g"].map(|name| t.input(format!("{name}{i}"), [40, 8], DType::F32));
            let (p, m, g) = (p?, m?, g?);
            let moved = m.mul_scalar(0.9)?.add(&g)?;
            results.push((format!("new p{i}"), p.sub(&moved.mul_scalar(0.1)?)?));
            results.push((format!("new m{i}"), moved));
        }
        Ok(results)
    });
    let donate = (0..3).flat_map(|i| [format!("p{i}"), format!("m{i}")]).collect();
    let options = CompileOptions { donate, ..CompileOptions::default() };
    for target in Target::presets() {
        let compiled = compile(graph.as_ref().expect("records"), &target, &options).expect("compiles");
        let further = compiled.plan().slots.iter().filter(|slot| matches!(slot.role, SlotRole::Temp | SlotRole::Output)).count();
        assert_eq!(further, 0, "{}", compiled.fusion());
        assert!(compiled.kernels().len() <= 3, "{}", compiled.fusion());
    }
}

#[test]
fn a_reduction_takes_what_stands_before_and_after_it() {
    kernels(&of_x(&[300, 40], |x| x.mul(x)?.sum(&[1], false)?.add_scalar(1.0)?.sqrt()), 1);
    kernels(&of_x(&[300, 40], |x| x.exp()?.max(&[0], true)), 1);
    // Two reductions of the same rows.
    kernels(&of_x(&[300, 40], |x| x.max(&[1], false)?.sub(&x.min(&[1], false)?)), 1);
}

#[test]
fn a_product_takes_bias_activation_and_residual() {
    kernels(&linear_relu(64, 32, 48), 1);
    let graph = capture(|t| {
        let (x, w, r) = (t.input("x", [20, 30], DType::F32)?, t.input("w", [30, 40], DType::F32)?, t.input("r", [20, 40], DType::F32)?);
        x.matmul(&w)?.add(&r)?.gelu()
    });
    kernels(&graph.expect("records"), 1);
    // A transposed operand is read where it lies.
    kernels(&of_x(&[24, 36], |x| x.matmul(&x.transpose(&[1, 0])?)), 1);
}

#[test]
fn a_convolution_takes_normalisation_activation_and_residual() {
    kernels(&conv_norm_relu(2, 3, 16, 8), 1);
    kernels(&residual_block(8, 16), 2);
    // Padding written by hand is the convolution's own.
    kernels(
        &of_x(&[1, 4, 9, 9], |x| {
            x.pad(&[0, 0, 1, 1], &[0, 0, 1, 1], 0.0)?.conv(&x.constant(weights(&[4, 4, 3, 3], 1))?, None, sublane::ops::conv::Conv::new(2))
        }),
        1,
    );
}

#[test]
fn attention_is_one_kernel_eager_or_compiled() {
    let masked = |dtype: DType, mask: &'static [usize]| {
        let graph = capture(|t| {
            let (q, k) = (t.input("q", [2, 6, 20, 16], DType::F32)?, t.input("k", [2, 2, 24, 16], DType::F32)?);
            q.attention(&k, &k, Some(&t.input("mask", mask, dtype)?), Attention { scale: Some(0.3), causal: true })
        });
        graph.expect("records")
    };
    for graph in [attention(2, 16, 8), attention(9, 512, 64), masked(DType::Bool, &[20, 24]), masked(DType::F32, &[2, 1, 1, 24])] {
        kernels(&graph, 1);
        for target in Target::presets() {
            assert_eq!(eager(&graph, &target).kernels().len(), 1, "{graph}");
        }
    }
    // Heads taken apart and put together again are loads and, in the next kernel, loads too.
    kernels(
        &of_x(&[2, 20, 48], |x| {
            let heads = x.reshape(&[2, 20, 3, 16])?.transpose(&[0, 2, 1, 3])?;
            let mixed = heads.attention(&heads, &heads, None, Attention { scale: None, causal: true })?;
            mixed.transpose(&[0, 2, 1, 3])?.reshape(&[2, 20, 48])?.matmul(&x.constant(weights(&[48, 48], 1))?)
        }),
        2,
    );
}

#[test]
fn products_of_one_operand_with_constants_are_one_kernel() {
    let heads = |x: &sublane::capture::Traced, seed: u64, width: usize| {
        x.matmul(&x.constant(weights(&[24, width], seed))?)?.reshape(&[10, -1, 8])?.transpose(&[1, 0, 2])
    };
    let graph = of_x(&[10, 24], |x| {
        let (q, k, v) = (heads(x, 1, 32)?, heads(x, 2, 16)?, heads(x, 3, 16)?);
        q.attention(&k, &v, None, Attention { scale: None, causal: true })
    });
    kernels(&graph, 2);
    assert_eq!(eager(&graph, &Target::webgpu()).kernels().len(), 4);
    // A product whose kernel ends with what follows it stays by itself.
    let gated = |x: &sublane::capture::Traced| x.matmul(&x.constant(weights(&[24, 32], 1))?)?.sigmoid();
    kernels(&of_x(&[10, 24], |x| gated(x)?.mul(&x.matmul(&x.constant(weights(&[24, 32], 2))?)?)), 2);
}

#[test]
fn a_block_of_a_llama_is_at_most_twelve_kernels() {
    for tokens in [1, 128] {
        let graph = samples::llama_block(Key::new(1), LlamaSizes::SMOLLM2_135M, tokens).expect("records");
        for target in Target::presets() {
            let compiled = compiled(&graph, &target);
            // Two normalisations; queries, keys and values in one; two rotations; attention; projection, gate, up and down.
            assert!(compiled.kernels().len() <= 10, "{} kernels for {}: {}", compiled.kernels().len(), target.name, compiled.fusion());
            assert!(eager(&graph, &target).kernels().len() > 12);
        }
    }
}

#[test]
fn attention_that_no_kernel_holds_is_three() {
    kernels(&attention(1, 8, 400), 3);
}

#[test]
fn a_folded_normalisation_leaves_no_multiplication() {
    let compiled = compiled(&conv_norm_relu(1, 4, 8, 8), &Target::software());
    let members = &compiled.groups()[0].members;
    assert!(members.iter().all(|m| !m.ends_with(":Mul") && !m.ends_with(":Sqrt") && !m.ends_with(":Div")), "{members:?}");
}

#[test]
fn long_reductions_are_cut_in_two() {
    kernels(&of_x(&[1 << 22], |x| x.sum(&[0], false)), 2);
    kernels(&of_x(&[3, 1 << 20], |x| x.exp()?.max(&[1], true)), 2);
    kernels(&of_x(&[3, 1000], |x| x.sum(&[1], false)), 1);
}

#[test]
fn eager_mode_is_one_kernel_an_operation() {
    for target in Target::presets() {
        for (graph, count) in [
            (chain(&[1000]), 6),
            (softmax(&[10, 20]), 1),
            (layer_norm(&[10, 20]), 1),
            (linear_relu(8, 12, 16), 3),
            (of_x(&[6, 8], |x| x.exp()?.transpose(&[1, 0])?.log()), 2),
        ] {
            let compiled = eager(&graph, &target);
            assert_eq!(compiled.kernels().len(), count, "for target {}:\n{graph}\n{}", target.name, compiled.fusion());
        }
    }
}

/// Every stored value that is no result and has users of its own must have been refused, with a reason.
#[test]
fn every_fusion_that_is_not_made_has_its_reason() {
    let shared = of_x(&[128, 64], |x| {
        let e = x.exp()?;
        e.sum(&[1], true)?.add(&e.sum(&[0], true)?)
    });
    let two_products = of_x(&[32, 32], |x| x.matmul(x)?.matmul(x));
    let reduced_product = of_x(&[32, 32], |x| x.matmul(x)?.sum(&[1], false));
    let many = capture(|t| {
        let mut sum = t.input("x0", [100], DType::F32)?;
        for i in 1..12 {
            sum = sum.add(&t.input(format!("x{i}"), [100], DType::F32)?)?;
        }
        Ok(sum)
    });
    let many = many.expect("records");
    for graph in [&shared, &two_products, &reduced_product, &many, &residual_block(8, 8), &attention(2, 16, 8)] {
        for target in Target::presets() {
            for compiled in [compiled(graph, &target), eager(graph, &target)] {
                let outputs = compiled.outputs().len();
                let stored = compiled.groups().len();
                assert_eq!(compiled.refusals().len(), stored - outputs, "{}", compiled.fusion());
                for refusal in compiled.refusals() {
                    assert!(refusal.reason.len() > 10, "{refusal:?}");
                    assert!(compiled.groups().iter().any(|g| refusal.node.starts_with(&format!("{}:", g.root))), "{refusal:?}");
                }
            }
        }
    }
    let reasons = |graph: &Graph, part: &str| {
        let target = Target::webgpu();
        let compiled = compiled(graph, &target);
        assert!(compiled.refusals().iter().any(|r| r.reason.contains(part)), "no refusal says `{part}`:\n{}", compiled.fusion());
    };
    reasons(&two_products, "one matrix product");
    reasons(&reduced_product, "needs the whole result");
    reasons(&many, "buffers, the target has 7");
}

#[test]
fn no_kernel_binds_more_buffers_than_the_target_has() {
    let graph = capture(|t| {
        let mut values = Vec::new();
        for i in 0..20 {
            values.push(t.input(format!("x{i}"), [8, 3], DType::F32)?);
        }
        let mut sum = values[0].clone();
        for x in &values[1..] {
            sum = sum.add(x)?;
        }
        let parts: Vec<_> = values.iter().collect();
        Ok((sum, sublane::capture::Traced::concat(&parts, 1)?))
    });
    let graph = graph.expect("records");
    for limit in [4, 7, 16] {
        let target = Target { max_storage_buffers: limit, ..Target::webgpu() };
        for compiled in [compiled(&graph, &target), eager(&graph, &target)] {
            for kernel in &compiled.plan().kernels {
                assert!(kernel.num_storage() <= limit as usize, "`{}` binds {} buffers", kernel.name, kernel.num_storage());
            }
        }
    }
}

#[test]
fn kernels_differ_by_adapter_class_where_that_pays() {
    let graph = linear_relu(256, 256, 256);
    let name = |target: Target| compiled(&graph, &target).kernels()[0].name.clone();
    let class = |class| Target { class, ..Target::webgpu() };
    assert_ne!(name(class(AdapterClass::Software)), name(class(AdapterClass::Discrete)));
}

/// What is after the product joins the kernel that adds up the parts.
#[test]
fn a_product_of_few_results_and_a_long_k_is_two_kernels() {
    let product = |m, k, n| of_x(&[m, k], |x| x.linear(&x.constant(weights(&[k, n], 3))?, &x.constant(weights(&[n], 4))?)?.relu());
    for target in Target::presets() {
        let count = |graph: &Graph| compiled(graph, &target).kernels().len();
        assert_eq!(count(&product(4, 1 << 18, 4)), 2, "{}", target.name);
        assert_eq!([count(&product(512, 1024, 512)), count(&product(4, 256, 4))], [1, 1], "{}", target.name);
    }
}

/// Codes of a few bits and their scales are read as they lie in memory, however often the product needs them, and shared weights too.
#[test]
fn packed_weights_are_part_of_the_product_that_reads_them() {
    let (n, k, group) = (96usize, 256usize, 32usize);
    for (m, format) in [(1, Format::Int4), (2, Format::E2M1), (200, Format::Int8), (1000, Format::E3M2)] {
        let words = sublane::ops::packing::num_words(format.bits(), k);
        let weights = |t: &sublane::capture::Tracer| -> sublane::Result<Traced> {
            let codes = t.input("w", [n, words], DType::U32)?.unpack(format.bits(), k)?.decode(format)?;
            let scales = t.input("s", [n, k / group], DType::F32)?.reshape(&[n as isize, -1, 1])?;
            codes.reshape(&[n as isize, -1, group as isize])?.mul(&scales)?.reshape(&[n as isize, k as isize])?.transpose(&[1, 0])
        };
        let one = capture(|t| t.input("x", [m, k], DType::F32)?.matmul(&weights(t)?)?.relu()).expect("records");
        let two = capture(|t| {
            let weights = weights(t)?;
            t.input("x", [m, k], DType::F32)?.matmul(&weights)?.add(&t.input("y", [m, k], DType::F32)?.exp()?.matmul(&weights)?)
        });
        for target in Target::presets() {
            let compiled = compiled(&one, &target);
            assert_eq!(compiled.kernels().len(), 1, "{format}, {m} rows, target {}:\n{}", target.name, compiled.fusion());
            assert_eq!(compiled.kernels()[0].bytes, 4 * (m * k + n * words + n * k / group + m * n) as u64, "{}", compiled.fusion());
        }
        let two = compiled(two.as_ref().expect("records"), &Target::desktop());
        assert!(two.plan().total_bytes() < 4 * (3 * m * (k + n) + n * words + n * k / group + 4096) as u64, "{}", two.fusion());
    }
}
