//! Functions compiled by `capture::compile`: what is recorded again, what is compiled anew, and what runs in between.

mod device_common;

use std::cell::{Cell, RefCell};
use std::slice::from_ref;

use device_common::open;
use sublane::capture::{CaptureOptions, CompiledFn, Context, Reason, Tensor, compile};
use sublane::compiler::{CompileOptions, Mode};
use sublane::device::DeviceTensor;
use sublane::kernels_gen::threefry::Key;
use sublane::ops::prelude::*;
use sublane::ops::random::random_key;
use sublane::{DType, Error, HostTensor, Result};

fn context() -> Context {
    Context::new(&open())
}

fn host(shape: &[usize], start: f32) -> HostTensor {
    let count: usize = shape.iter().product();
    HostTensor::new(shape, (0..count).map(|i| start + (i % 13) as f32 * 0.25).collect()).expect("a tensor")
}

fn floats(tensor: &Tensor) -> Vec<f32> {
    tensor.to_host().expect("read").as_slice::<f32>().expect("f32").to_vec()
}

fn reasons<F>(f: &CompiledFn<F>) -> Vec<Reason> {
    f.explain().compilations.iter().map(|c| c.reason).collect()
}

#[test]
fn a_function_is_compiled_once_and_fused() {
    let context = context();
    let f = compile(&context, CaptureOptions::default(), |x: &[Tensor]| x[0].add(&x[1])?.relu()?.mul_scalar(2.0));
    for start in [-2.0, 1.0, 5.0] {
        let (a, b) = (host(&[3, 5], start), host(&[5], 0.5));
        let y = f.call(&[context.tensor(&a).unwrap(), context.tensor(&b).unwrap()]).unwrap();
        let (a, b) = (a.as_slice::<f32>().unwrap(), b.as_slice::<f32>().unwrap());
        let expected: Vec<f32> = a.iter().enumerate().map(|(i, a)| (a + b[i % 5]).max(0.0) * 2.0).collect();
        assert_eq!(floats(&y[0]), expected);
    }
    let explained = f.explain();
    assert_eq!((explained.num_compiled, explained.num_runs), (1, 3));
    assert_eq!(explained.parts[0].kernels.len(), 1);
    assert_eq!(explained.parts[0].hits, 2);
}

#[test]
fn no_captured_value_is_out_of_date() {
    let context = context();
    let x = context.tensor(&host(&[4], 1.0)).unwrap();
    let scale = Cell::new(2.0f32);
    let f = compile(&context, CaptureOptions::default(), |x: &[Tensor]| x[0].mul_scalar(scale.get().into()));
    for value in [2.0, 3.0, 4.0, 2.0, -1.0] {
        scale.set(value);
        let y = f.call(from_ref(&x)).unwrap();
        let expected: Vec<f32> = floats(&x).iter().map(|v| v * value).collect();
        assert_eq!(floats(&y[0]), expected);
    }
    // The second value made it an input.
    assert_eq!(reasons(&f), [Reason::First, Reason::Scalar]);
}

#[test]
fn weights_of_the_host_and_of_the_device_are_current() {
    let context = context();
    let x = context.tensor(&host(&[2, 4], 1.0)).unwrap();
    let weights = RefCell::new(vec![host(&[4, 3], 0.5), host(&[3], 1.0)]);
    let device_weights = RefCell::new(vec![context.tensor(&host(&[3], 0.0)).unwrap()]);
    let f = compile(&context, CaptureOptions::default(), |x: &[Tensor]| {
        let w = weights.borrow();
        let y = x[0].matmul(&x[0].constant(w[0].clone())?)?.add(&x[0].constant(w[1].clone())?)?;
        y.add(&device_weights.borrow()[0])
    });
    let expected = || {
        let (w, x) = (weights.borrow(), floats(&x));
        let (a, b, c) = (w[0].as_slice::<f32>().unwrap(), w[1].as_slice::<f32>().unwrap(), floats(&device_weights.borrow()[0]));
        let row = |i: usize, j: usize| (0..4).map(|k| x[i * 4 + k] * a[k * 3 + j]).sum::<f32>() + b[j] + c[j];
        (0..6).map(|i| row(i / 3, i % 3)).collect::<Vec<f32>>()
    };
    for start in [0.5, 1.5, -2.0] {
        weights.borrow_mut()[1] = host(&[3], start);
        device_weights.borrow_mut()[0] = context.tensor(&host(&[3], start * 2.0)).unwrap();
        assert_eq!(floats(&f.call(from_ref(&x)).unwrap()[0]), expected());
    }
    assert_eq!(reasons(&f), [Reason::First, Reason::Constant], "the bias became an input, the matrix did not");
    weights.borrow_mut()[0] = host(&[4, 3], -1.0);
    assert_eq!(floats(&f.call(from_ref(&x)).unwrap()[0]), expected());
}

#[test]
fn each_branch_is_compiled_once() {
    let context = context();
    let x = context.tensor(&host(&[4], 1.0)).unwrap();
    let negative = Cell::new(false);
    let f = compile(&context, CaptureOptions::default(), |x: &[Tensor]| {
        let y = x[0].exp()?;
        if negative.get() { y.neg()?.add_scalar(1.0) } else { y.sqrt() }
    });
    let sign = |on: bool| {
        negative.set(on);
        floats(&f.call(from_ref(&x)).unwrap()[0])[0]
    };
    for _ in 0..3 {
        assert!((sign(true) - (1.0 - 1f32.exp())).abs() < 1e-5);
        assert!((sign(false) - 0.5f32.exp()).abs() < 1e-5);
    }
    let explained = f.explain();
    assert_eq!(reasons(&f), [Reason::First, Reason::Path]);
    assert!(explained.compilations[1].difference.contains("Sqrt was Neg"), "{explained}");
}

#[test]
fn a_host_read_breaks_the_graph_and_goes_on() {
    let context = context();
    let f = compile(&context, CaptureOptions::default(), |x: &[Tensor]| {
        let y = x[0].add_scalar(1.0)?;
        let kept = x[0].mul_scalar(10.0)?;
        let total = y.sum(&[0], false)?.item()?;
        if total > 0.0 { y.add(&kept)?.mul_scalar(2.0) } else { y.sub(&kept) }
    });
    let line = line!() - 3;
    for start in [1.0f32, -20.0, 2.0, -30.0] {
        let x = host(&[4], start);
        let y = f.call(&[context.tensor(&x).unwrap()]).unwrap();
        let of = |v: &f32| if start > 0.0 { (v + 1.0 + v * 10.0) * 2.0 } else { v + 1.0 - v * 10.0 };
        let expected: Vec<f32> = x.as_slice::<f32>().unwrap().iter().map(of).collect();
        assert_eq!(floats(&y[0]), expected);
    }
    let explained = f.explain();
    assert_eq!(explained.num_compiled, 3, "{explained}");
    assert_eq!(explained.breaks.len(), 1);
    let b = &explained.breaks[0];
    assert_eq!((b.reason, b.line, b.times), ("item", line, 4));
    assert!(b.file.ends_with("compile_fn.rs"));
}

#[test]
fn fullgraph_names_the_line_of_a_break() {
    let context = context();
    let options = CaptureOptions { fullgraph: true, ..CaptureOptions::default() };
    let f = compile(&context, options, |x: &[Tensor]| {
        let total = x[0].sum(&[0], false)?.item()?;
        x[0].mul_scalar(total)
    });
    let line = line!() - 3;
    let error = f.call(&[context.tensor(&host(&[4], 1.0)).unwrap()]).unwrap_err().to_string();
    assert!(error.contains(&format!("compile_fn.rs:{line}:")) && error.contains("fullgraph"), "{error}");
    // What an argument holds can be read: nothing recorded has to run.
    let options = CaptureOptions { fullgraph: true, ..CaptureOptions::default() };
    let g = compile(&context, options, |x: &[Tensor]| x[0].mul_scalar(x[1].item()?));
    let y = g.call(&[context.tensor(&host(&[1], 3.0)).unwrap(), context.tensor(&host(&[1], 2.0)).unwrap()]).unwrap();
    assert_eq!(floats(&y[0]), [6.0]);
}

#[test]
fn in_place_updates_are_seen_where_they_should_be() {
    let context = context();
    let state = context.tensor(&host(&[4], 0.0)).unwrap();
    let captured = state.clone();
    let f = compile(&context, CaptureOptions::default(), move |x: &[Tensor]| {
        let before = captured.mul_scalar(1.0)?;
        captured.add_(&x[0])?;
        x[0].add_(&x[0])?;
        let alias = x[0].clone();
        alias.add_scalar(1.0)?;
        alias.add_(&captured)?;
        Ok([before, x[0].clone()])
    });
    let mut expected_state = floats(&state);
    for start in [1.0, 2.0, 3.0] {
        let x = context.tensor(&host(&[4], start)).unwrap();
        let old = floats(&x);
        let y = f.call(from_ref(&x)).unwrap();
        assert_eq!(floats(&y[0]), expected_state);
        expected_state.iter_mut().zip(&old).for_each(|(s, x)| *s += x);
        let expected: Vec<f32> = old.iter().zip(&expected_state).map(|(x, s)| 2.0 * x + s).collect();
        assert_eq!(floats(&y[1]), expected);
        assert_eq!(floats(&x), expected, "the caller's tensor");
        assert_eq!(floats(&state), expected_state);
    }
    assert_eq!(f.explain().num_compiled, 1, "{}", f.explain());
}

#[test]
fn slices_are_assigned_and_arguments_may_be_one_tensor() {
    let context = context();
    let x = context.tensor(&host(&[3, 4], 0.0)).unwrap();
    let f = compile(&context, CaptureOptions::default(), |x: &[Tensor]| {
        x[0].slice_assign_(&[1, 1], &x[1].slice(&[0, 0], &[2, 2])?)?;
        x[1].fill_(7.0)
    });
    let other = context.tensor(&host(&[3, 4], 50.0)).unwrap();
    let (before, source) = (floats(&x), floats(&other));
    f.call(&[x.clone(), other.clone()]).unwrap();
    let mut expected = before;
    for (r, c) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        expected[(r + 1) * 4 + c + 1] = source[r * 4 + c];
    }
    assert_eq!(floats(&x), expected);
    assert_eq!(floats(&other), [7.0; 12]);
    // One tensor as both arguments: the last write counts, and it is another trace.
    f.call(&[x.clone(), x.clone()]).unwrap();
    assert_eq!(floats(&x), [7.0; 12]);
    let error = x.slice_assign_(&[2, 0], &other).unwrap_err().to_string();
    assert!(error.contains("must lie inside"), "{error}");
    let error = x.add_(&context.tensor(&host(&[2, 3, 4], 0.0)).unwrap()).unwrap_err().to_string();
    assert!(error.contains("keeps the tensor's type"), "{error}");
}

#[test]
fn a_donated_input_gives_its_memory_to_a_result() {
    let context = context();
    let f = compile(&context, CaptureOptions::default(), |x: &[Tensor]| x[0].mul_scalar(3.0)?.add(&x[1]));
    let other = context.tensor(&host(&[64], 1.0)).unwrap();
    let on_device = DeviceTensor::upload(context.device(), &host(&[64], 2.0)).unwrap();
    let buffer = std::sync::Arc::as_ptr(on_device.buffer());
    let x = context.device_tensor(on_device).unwrap();
    let expected: Vec<f32> = floats(&x).iter().zip(floats(&other)).map(|(x, o)| x * 3.0 + o).collect();
    let y = f.call(&[x.donate().unwrap(), other.clone()]).unwrap();
    assert!(std::ptr::eq(buffer, std::sync::Arc::as_ptr(y[0].to_device().unwrap().buffer())), "the result lies where the input lay");
    assert_eq!(floats(&y[0]), expected);
    let error = x.exp().unwrap_err().to_string();
    assert!(error.contains("was donated at") && error.contains("compile_fn.rs"), "{error}");
    assert!(x.add(&other).unwrap_err().to_string().contains("was donated at"));
    assert!(f.call(&[x.clone(), other.clone()]).unwrap_err().to_string().contains("was donated at"));
    // The handle that was given to the call is used up too.
    let x = context.tensor(&host(&[64], 2.0)).unwrap();
    let given = x.donate().unwrap();
    f.call(&[given.clone(), other.clone()]).unwrap();
    assert!(given.to_host().unwrap_err().to_string().contains("was donated at"));
    // Donation is part of the trace: without it the input stays.
    let x = context.tensor(&host(&[64], 2.0)).unwrap();
    let y = f.call(&[x.clone(), other.clone()]).unwrap();
    assert_eq!((floats(&y[0]), floats(&x)[0]), (expected, 2.0));
    assert_eq!(reasons(&f), [Reason::First, Reason::Donation]);
}

#[test]
fn memory_that_is_shared_is_not_overwritten() {
    let context = context();
    let twice = compile(&context, CaptureOptions::default(), |x: &[Tensor]| {
        let y = x[0].exp()?;
        Ok((y.clone(), x[0].exp()?))
    });
    let double = compile(&context, CaptureOptions::default(), |x: &[Tensor]| x[0].add_scalar(1.0));
    let y = twice.call(&[context.tensor(&host(&[8], 0.0)).unwrap()]).unwrap();
    let before = floats(&y[1]);
    double.call(&[y[0].donate().unwrap()]).unwrap();
    assert_eq!(floats(&y[1]), before);
}

#[test]
fn a_donated_argument_that_is_handed_through_is_a_plain_result() {
    let context = context();
    let f = compile(&context, CaptureOptions::default(), |x: &[Tensor]| Ok((x[0].clone(), x[0].add_scalar(1.0)?)));
    let x = context.tensor(&host(&[8], 2.0)).unwrap();
    let before = floats(&x);
    let y = f.call(&[x.donate().unwrap()]).unwrap();
    f.call(from_ref(&y[0])).unwrap();
    assert_eq!(floats(&y[0]), before);
}

#[test]
fn results_feed_the_next_call_without_leaving_the_device() {
    let context = context();
    let f = compile(&context, CaptureOptions::default(), |x: &[Tensor]| x[0].mul_scalar(0.5)?.add_scalar(1.0));
    let mut x = context.tensor(&host(&[32], 4.0)).unwrap();
    let mut expected = floats(&x);
    for _ in 0..20 {
        x = f.call(&[x]).unwrap().remove(0);
        expected.iter_mut().for_each(|v| *v = *v * 0.5 + 1.0);
    }
    assert_eq!(floats(&x), expected);
    assert_eq!(f.explain().num_compiled, 1);
}

#[test]
fn past_the_limit_of_recompilations_new_paths_run_eagerly() {
    let context = context();
    let depth = Cell::new(0);
    let options = CaptureOptions { max_recompiles: 2, ..CaptureOptions::default() };
    let f = compile(&context, options, |x: &[Tensor]| (0..depth.get()).try_fold(x[0].neg()?, |y, _| y.abs()?.add(&x[0])));
    let x = context.tensor(&host(&[4], 1.0)).unwrap();
    for n in [0, 1, 2, 3, 4, 1, 4] {
        depth.set(n);
        let y = f.call(from_ref(&x)).unwrap();
        let expected: Vec<f32> = floats(&x).iter().map(|v| (0..n).fold(-v, |y, _| y.abs() + v)).collect();
        assert_eq!(floats(&y[0]), expected);
    }
    let explained = f.explain();
    assert_eq!(explained.num_compiled, 3);
    assert!(explained.fallen_back.as_deref().is_some_and(|why| why.contains("recompiled 2 times")), "{explained}");
}

#[test]
fn tensors_outside_are_eager_and_run_when_they_are_read() {
    let context = context();
    let x = context.tensor(&host(&[4], 1.0)).unwrap();
    let y = x.add_scalar(1.0).unwrap().exp().unwrap().sum(&[0], false).unwrap();
    let expected: f64 = floats(&x).iter().map(|v| f64::from(v + 1.0).exp()).sum();
    assert!((y.item().unwrap() - expected).abs() < 1e-4 * expected);
    // The same function compiled eagerly has a kernel for each operation.
    let chain = |x: &[Tensor]| x[0].add_scalar(1.0)?.exp()?.neg();
    let compiled = |mode| {
        let compile_options = CompileOptions { mode, ..CompileOptions::default() };
        let f = compile(&context, CaptureOptions { compile: compile_options, ..CaptureOptions::default() }, chain);
        f.call(from_ref(&x)).unwrap();
        f.explain().parts[0].kernels.len()
    };
    assert_eq!((compiled(Mode::Compiled), compiled(Mode::Eager)), (1, 3));
}

#[test]
fn compiled_functions_nest() {
    let context = context();
    let inner = compile(&context, CaptureOptions::default(), |x: &[Tensor]| x[0].exp());
    let outer = compile(&context, CaptureOptions { fullgraph: true, ..CaptureOptions::default() }, |x: &[Tensor]| {
        inner.call(&[x[0].add_scalar(1.0)?])?[0].neg()
    });
    let y = outer.call(&[context.tensor(&host(&[4], 0.0)).unwrap()]).unwrap();
    assert!((floats(&y[0])[0] + 1f32.exp()).abs() < 1e-5);
    assert_eq!((outer.explain().parts[0].kernels.len(), inner.explain().num_compiled), (1, 0));
}

#[test]
fn a_function_may_fail_and_be_called_again() {
    let context = context();
    let fail = Cell::new(true);
    let leaked: RefCell<Option<Tensor>> = RefCell::new(None);
    let f = compile(&context, CaptureOptions::default(), |x: &[Tensor]| {
        let y = x[0].exp()?;
        *leaked.borrow_mut() = Some(y.clone());
        if fail.get() { Err(Error::invalid("on purpose")) } else { y.neg() }
    });
    let x = context.tensor(&host(&[4], 0.0)).unwrap();
    assert!(f.call(from_ref(&x)).unwrap_err().to_string().contains("on purpose"));
    // What leaked is still computed when it is read, and can be used on.
    let kept = leaked.borrow().clone().unwrap();
    assert_eq!(floats(&kept)[0], 1.0);
    assert_eq!(floats(&kept.add(&x).unwrap())[0], 1.0);
    fail.set(false);
    assert_eq!(floats(&f.call(from_ref(&x)).unwrap()[0])[0], -1.0);
    let mixed = f.call(&[context.tensor(&HostTensor::zeros(DType::I32, [4]).unwrap()).unwrap()]);
    assert!(mixed.unwrap_err().to_string().contains("Exp(i32[4])"));
}

#[test]
fn several_threads_call_one_function() {
    let context = context();
    let f = compile(&context, CaptureOptions::default(), |x: &[Tensor]| x[0].mul_scalar(2.0)?.add(&x[1]));
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (f, context) = (&f, &context);
            scope.spawn(move || {
                for round in 0..10 {
                    let (a, b) = (host(&[100], thread as f32), host(&[100], round as f32));
                    let y = f.call(&[context.tensor(&a).unwrap(), context.tensor(&b).unwrap()]).unwrap();
                    let expected: Vec<f32> =
                        a.as_slice::<f32>().unwrap().iter().zip(b.as_slice::<f32>().unwrap()).map(|(a, b)| a * 2.0 + b).collect();
                    assert_eq!(floats(&y[0]), expected);
                }
            });
        }
    });
}

#[test]
fn random_numbers_come_from_the_key_that_is_given() -> Result<()> {
    let context = context();
    let f = compile(&context, CaptureOptions::default(), |key: &[Tensor]| {
        Ok((key[0].random_uniform(&[5, 3])?, key[0].random_stream(9)?.random_normal(&[4])?))
    });
    let mut seen = Vec::new();
    for (seed, stream) in [(1, 0), (1, 1), (2, 0), (1, 0)] {
        let drawn = f.call(&[context.tensor(&random_key(seed, stream)?)?])?;
        let key = Key::new(seed).stream(stream);
        assert_eq!(floats(&drawn[0]), (0..15).map(|n| key.uniform(n)).collect::<Vec<f32>>());
        assert!(floats(&drawn[1]).iter().all(|x| x.abs() < 6.0));
        seen.push(floats(&drawn[1]));
    }
    assert_eq!(seen[0], seen[3]);
    assert_ne!(seen[0], seen[1]);
    assert_eq!(f.explain().num_compiled, 1, "a key is data");
    // A key that the function makes of a Rust value becomes an input with its second value.
    let seed = Cell::new(0);
    let x = context.tensor(&host(&[4], 0.0))?;
    let g = compile(&context, CaptureOptions::default(), |x: &[Tensor]| {
        x[0].constant(random_key(seed.get(), 0)?)?.random_uniform(&[4])?.add(&x[0])
    });
    for s in 0..4 {
        seed.set(s);
        let expected: Vec<f32> = floats(&x).iter().zip(0..).map(|(x, n)| x + Key::new(s).stream(0).uniform(n)).collect();
        assert_eq!(floats(&g.call(from_ref(&x))?[0]), expected);
    }
    assert_eq!(reasons(&g), [Reason::First, Reason::Constant]);
    Ok(())
}

#[test]
fn the_explanation_is_text_and_json() -> Result<()> {
    let context = context();
    let f = compile(&context, CaptureOptions::default(), |x: &[Tensor]| x[0].matmul(&x[1])?.relu());
    f.call(&[context.tensor(&host(&[8, 4], 0.0))?, context.tensor(&host(&[4, 4], 0.0))?])?;
    let explained = f.explain();
    let text = explained.to_string();
    assert!(text.contains("part 0") && text.contains("FLOPs") && text.contains("in0: f32[8, 4]"), "{text}");
    let json: serde_json::Value = serde_json::from_str(&explained.to_json()?).expect("JSON");
    assert_eq!(json["parts"][0]["kernels"][0]["flops"], explained.parts[0].kernels[0].flops);
    assert_eq!(json["compilations"][0]["reason"], "first");
    assert_eq!(explained.parts[0].kernels[0].ms, None);
    let timed = f.explain_timed()?;
    assert!(timed.parts[0].kernels.iter().all(|kernel| kernel.ms.is_some_and(|ms| ms > 0.0)), "{timed}");
    assert!(timed.to_string().contains(" ms, "), "{timed}");
    Ok(())
}

/// Found by a reviewer: each of the two was taken to be alone on its memory.
#[test]
fn an_argument_that_is_handed_through_twice_is_not_overwritten() -> Result<()> {
    let context = context();
    let twice = compile(&context, CaptureOptions::default(), |x: &[Tensor]| Ok((x[0].clone(), x[0].clone())));
    let times = compile(&context, CaptureOptions::default(), |x: &[Tensor]| x[0].mul_scalar(5.0));
    let x = host(&[64], 1.0);
    let results = twice.call(&[context.tensor(&x)?.donate()?])?;
    times.call(&[results[0].donate()?])?;
    assert_eq!(results[1].to_host()?, x);
    Ok(())
}

#[test]
fn memory_that_the_caller_has_a_handle_of_is_not_overwritten() -> Result<()> {
    let context = context();
    let times = compile(&context, CaptureOptions::default(), |x: &[Tensor]| x[0].mul_scalar(5.0));
    let x = host(&[64], 1.0);
    let shared = DeviceTensor::upload(context.device(), &x)?;
    let (a, b) = (context.device_tensor(shared.clone())?, context.device_tensor(shared.clone())?);
    times.call(&[a.donate()?])?;
    assert_eq!((b.to_host()?, shared.read()?), (x.clone(), x.clone()));
    let both = compile(&context, CaptureOptions::default(), |x: &[Tensor]| x[0].add(&x[1]));
    let (a, b) = (context.device_tensor(shared.clone())?, context.device_tensor(shared.clone())?);
    assert_eq!(
        floats(&both.call(&[a.donate()?, b])?[0]),
        floats(&times.call(&[context.tensor(&host(&[64], 1.0))?])?[0]).iter().map(|v| v / 2.5).collect::<Vec<_>>()
    );
    // A handle taken afterwards.
    let c = context.tensor(&x)?;
    let seen = c.to_device()?;
    times.call(&[c.donate()?])?;
    assert_eq!(seen.read()?, x);
    Ok(())
}

#[test]
fn a_refused_break_leaves_captured_tensors_usable() -> Result<()> {
    let context = context();
    let w = context.tensor(&host(&[4], 0.0))?;
    let before = floats(&w);
    let options = CaptureOptions { fullgraph: true, ..CaptureOptions::default() };
    let f = compile(&context, options, |x: &[Tensor]| {
        w.add_(&x[0])?;
        x[0].sum(&[0], false)?.item()?;
        Ok(x[0].clone())
    });
    let ones = context.tensor(&HostTensor::new([4], vec![1.0f32; 4])?)?;
    assert!(f.call(&[ones]).expect_err("a break").to_string().contains("fullgraph"));
    let after: Vec<f32> = before.iter().map(|v| v + 1.0).collect();
    assert_eq!(floats(&w), after);
    assert_eq!(floats(&w.add_scalar(1.0)?), after.iter().map(|v| v + 1.0).collect::<Vec<_>>());
    Ok(())
}

#[test]
fn attributes_that_change_count_as_recompilations() -> Result<()> {
    let context = context();
    let options = CaptureOptions { max_recompiles: 3, ..CaptureOptions::default() };
    let start = std::cell::Cell::new(0usize);
    let f = compile(&context, options, |x: &[Tensor]| x[0].slice(&[start.get()], &[start.get() + 4])?.add_scalar(1.0));
    let x = context.tensor(&host(&[64], 0.0))?;
    let all = floats(&x);
    for i in 0..8 {
        start.set(i);
        let expected: Vec<f32> = all[i..i + 4].iter().map(|v| v + 1.0).collect();
        assert_eq!(floats(&f.call(std::slice::from_ref(&x))?[0]), expected);
    }
    assert!(f.explain().fallen_back.is_some() && reasons(&f).contains(&Reason::Attribute), "{}", f.explain());
    Ok(())
}
