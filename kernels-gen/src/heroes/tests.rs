use super::attention::{self, AttentionProblem};
use super::conv::{self, ConvProblem};
use super::gemm::{GemmConfig, GemmProblem, Terms, VecAxis, skeleton};
use super::tiles::Candidates;
use super::{Sharing, size_class, tiles};
use crate::source::{Binding, BindingKind, KernelSource};
use crate::target::Target;
use crate::validate::{check, validate};

/// Plain holes over three bindings.
const HOLES: &str = "
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> y: array<f32>;
@group(0) @binding(2) var<storage, read_write> z: array<f32>;

fn load_a1(b: u32, i: u32, k: u32) -> f32 { return x[b + i + k]; }
fn load_b1(b: u32, k: u32, j: u32) -> f32 { return y[b + k + j]; }
fn load_a(b: u32, i: u32, k: u32) -> vec4<f32> { return vec4<f32>(x[b + i + k]); }
fn load_b(b: u32, k: u32, j: u32) -> vec4<f32> { return vec4<f32>(y[b + k + j]); }
fn store1(b: u32, i: u32, j: u32, v: f32) { z[b + i + j] = v; }
fn store(b: u32, i: u32, j: u32, v: vec4<f32>) { z[b + i + j] = v.x; z[b + i + j + 1u] = v.y + v.z + v.w; }
";

/// Plain holes of a convolution over the same bindings.
const CONV_HOLES: &str = "
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> y: array<f32>;
@group(0) @binding(2) var<storage, read_write> z: array<f32>;

fn load_x1(n: u32, c: u32, y: u32, x_: u32) -> f32 { return x[n + c + y + x_]; }
fn load_x(n: u32, c: u32, y: u32, x_: u32) -> vec4<f32> { return vec4<f32>(x[n + c + y + x_]); }
fn load_w(g: u32, c: u32, tap: u32, oc: u32) -> vec4<f32> { return vec4<f32>(y[g + c + tap + oc]); }
fn store1(n: u32, oc: u32, y: u32, x_: u32, v: f32) { z[n + oc + y + x_] = v; }
fn store(n: u32, oc: u32, y: u32, x_: u32, v: vec4<f32>) { z[n + oc + y + x_] = dot(v, v); }
";

fn bindings() -> Vec<Binding> {
    let of = |name, kind| Binding::new(name, kind);
    vec![of("x", BindingKind::Read), of("y", BindingKind::Read), of("z", BindingKind::ReadWrite)]
}

fn kernel(problem: &GemmProblem, config: &GemmConfig, target: &Target) -> KernelSource {
    skeleton(problem, config, target, "gemm").expect("fits the target").into_source("gemm", HOLES, bindings(), 0, 0)
}

#[test]
fn every_table_row_is_valid_on_its_target() {
    let axes = [VecAxis::None, VecAxis::K, VecAxis::Free];
    for target in Target::presets() {
        for config in &tiles::gemm_rows(&target) {
            for (i, (m, n, k)) in [(64, 64, 64), (257, 33, 7), (1, 1, 0)].into_iter().enumerate() {
                for a_vec in axes {
                    let problem =
                        GemmProblem { terms: Terms::F32, batch: 3, m, n, k, a_vec, b_vec: axes[i], store_vec: true, runs: [false; 2] };
                    check(&kernel(&problem, config, &target), &target).expect("valid");
                }
            }
        }
        let problem = GemmProblem {
            terms: Terms::F32,
            batch: 1,
            m: 64,
            n: 64,
            k: 6,
            a_vec: VecAxis::K,
            b_vec: VecAxis::Free,
            store_vec: true,
            runs: [false; 2],
        };
        let mut seen = std::collections::HashSet::new();
        for config in tiles::gemm_rows(&target).into_iter().filter(|c| seen.insert(c.sharing)) {
            validate(&kernel(&problem, &config, &target), &target).expect("every writer takes it");
        }
    }
}

#[test]
fn candidates_are_valid_have_names_of_their_own_and_begin_with_the_choice_of_the_table() {
    let unique = |names: &[String]| names.iter().collect::<std::collections::HashSet<_>>().len() == names.len();
    for target in Target::presets() {
        for (m, n, k) in [(257, 333, 6), (1, 5, 0), (1024, 256, 1024)] {
            let problem = GemmProblem {
                terms: Terms::F32,
                batch: 1,
                m,
                n,
                k,
                a_vec: VecAxis::K,
                b_vec: VecAxis::Free,
                store_vec: true,
                runs: [false; 2],
            };
            let [likely, all] = [Candidates::Likely, Candidates::All].map(|which| tiles::gemm_candidates(&target, &problem, which));
            assert!(likely[0] == tiles::gemm(&target, &problem) && likely.iter().all(|c| all.contains(c)), "{likely:?}");
            assert!(unique(&all.iter().map(ToString::to_string).collect::<Vec<_>>()), "{all:?}");
            // Drivers compile the largest for seconds: they are for products that take as long.
            assert_eq!(likely[1..].iter().any(|c| c.tile_m * c.tile_n > 256), target.name == "software" && k == 1024);
            for config in all.iter().filter(|c| c.tile_m * c.tile_n <= 256) {
                check(&kernel(&problem, config, &target), &target).expect("valid");
            }
        }
        let problem = convolution([3, 3], [2, 2]);
        let [likely, all] = [Candidates::Likely, Candidates::All].map(|which| tiles::conv_candidates(&target, &problem, which));
        assert!(likely[0] == tiles::conv(&target, &problem) && likely.iter().all(|c| all.contains(c)), "{likely:?}");
        assert!(unique(&all.iter().map(ToString::to_string).collect::<Vec<_>>()), "{all:?}");
        for config in all.iter().filter(|c| c.tile_y * c.tile_oc * c.tile_c <= 32) {
            let made = conv::skeleton(&problem, config, &target, "conv").expect("fits the target");
            check(&made.into_source("conv", CONV_HOLES, bindings(), 0, 0), &target).expect("valid");
        }
    }
}

#[test]
fn sizes_of_a_class_are_close_and_divide_alike() {
    assert_eq!([1, 4, 16, 17, 1000, 1001, 1024, 1025].map(size_class), ["1", "4", "16", "18/1", "1024/8", "1024/1", "1024/64", "1152/1"]);
    assert_eq!(size_class(u32::MAX), "4294967296/1");
    for size in 17..5000u32 {
        let class = size_class(size);
        let (largest, _) = class.split_once('/').expect("two parts");
        let largest: u32 = largest.parse().expect("a number");
        assert!(largest >= size && u64::from(largest) * 7 <= u64::from(size) * 8 + 7, "{size}: {class}");
    }
}

#[test]
fn large_tiles_are_for_large_products() {
    let target = Target::software();
    let of = |m, n, k| {
        tiles::gemm(
            &target,
            &GemmProblem {
                terms: Terms::F32,
                batch: 1,
                m,
                n,
                k,
                a_vec: VecAxis::K,
                b_vec: VecAxis::Free,
                store_vec: true,
                runs: [false; 2],
            },
        )
    };
    assert_eq!([of(1024, 1024, 1024).tile_m, of(320, 1024, 1024).tile_m, of(128, 128, 128).tile_m, of(9, 9, 64).tile_m], [64, 64, 32, 8]);
    assert_eq!(of(2048, 2048, 2048).tile_m, 96);
}

#[test]
fn each_class_of_shapes_has_its_way_of_sharing() {
    let of = |target: &Target, batch, m, n, k| {
        let problem =
            GemmProblem { terms: Terms::F32, batch, m, n, k, a_vec: VecAxis::K, b_vec: VecAxis::Free, store_vec: true, runs: [false; 2] };
        tiles::gemm(target, &problem)
    };
    for target in Target::presets() {
        for (m, n) in [(1, 4096), (4096, 1), (8, 1000), (300, 3), (1, 1)] {
            let config = of(&target, 1, m, n, 4096);
            assert!(config.sharing == Sharing::Split && config.tile_m < 2 * m.min(n), "{m}x{n} on {}: {config}", target.name);
        }
        for (m, n) in [(4, 4), (8, 16), (16, 3), (1, 5), (8, 1)] {
            let config = of(&target, 5000, m, n, 8);
            assert!(config.sharing == Sharing::Own, "{m}x{n} on {}: {config}", target.name);
        }
    }
    // Many products of one result: lanes along k, not along columns that are not there.
    assert_eq!(of(&Target::software(), 40, 1, 1, 4096).workgroup, [1, 8]);
    for gpu in [Target::webgpu(), Target::desktop()] {
        let [large, medium, short_k] = [[2048, 2048, 512], [512, 512, 512], [2048, 2048, 8]].map(|[m, n, k]| of(&gpu, 1, m, n, k));
        assert_eq!([large.sharing, medium.sharing, short_k.sharing], [Sharing::Workgroup, Sharing::Workgroup, Sharing::Lane]);
        assert!(large.tile_m > medium.tile_m, "{large}, {medium}");
    }
}

#[test]
fn text_is_a_function_of_its_arguments() {
    let target = Target::software();
    let problem = GemmProblem {
        terms: Terms::F32,
        batch: 1,
        m: 16,
        n: 16,
        k: 16,
        a_vec: VecAxis::K,
        b_vec: VecAxis::Free,
        store_vec: true,
        runs: [false; 2],
    };
    let config = tiles::gemm(&target, &problem);
    assert_eq!(kernel(&problem, &config, &target), kernel(&problem, &config, &target));
}

#[test]
fn impossible_requests_are_errors() {
    let software = Target::software();
    let problem = GemmProblem {
        terms: Terms::F32,
        batch: 1,
        m: 32,
        n: 32,
        k: 8,
        a_vec: VecAxis::None,
        b_vec: VecAxis::None,
        store_vec: false,
        runs: [false; 2],
    };
    let good = tiles::gemm(&software, &problem);
    let refused = |p: &GemmProblem, c: GemmConfig, t: &Target| skeleton(p, &c, t, "gemm").expect_err("refused").to_string();
    assert!(refused(&problem, GemmConfig { tile_n: 3, ..good }, &software).contains("multiples of 4"));
    assert!(refused(&problem, good, &Target::webgpu()).contains("subgroup operations"));
    let wide = GemmConfig { workgroup: [512, 1], sharing: Sharing::Lane, ..good };
    assert!(refused(&problem, wide, &Target::webgpu()).contains("512 invocations"));
    assert!(refused(&GemmProblem { k: u32::MAX, ..problem.clone() }, good, &software).contains("split k"));
    let many = GemmProblem { terms: Terms::F32, batch: u32::MAX, m: 1000, n: 1000, ..problem };
    assert!(refused(&many, good, &software).contains("workgroups"));
}

#[test]
fn a_long_k_is_unrolled_below_the_loop_bound() {
    let target = Target::software();
    let problem = GemmProblem {
        terms: Terms::F32,
        batch: 1,
        m: 1,
        n: 1,
        k: 1_000_003,
        a_vec: VecAxis::None,
        b_vec: VecAxis::None,
        store_vec: false,
        runs: [false; 2],
    };
    let made = skeleton(&problem, &tiles::gemm(&target, &problem), &target, "gemm").expect("unrolled");
    assert!(made.max_iterations <= 65_535, "{}", made.max_iterations);
}

fn convolution(kernel: [u32; 2], stride: [u32; 2]) -> ConvProblem {
    ConvProblem {
        batch: 2,
        groups: 3,
        in_channels: 5,
        out_channels: 18,
        input: [13, 20],
        output: [13u32.div_ceil(stride[0]), 20u32.div_ceil(stride[1])],
        kernel,
        stride,
        dilation: [1, 1],
        pad: [kernel[0] / 2, kernel[1] / 2],
        x_vec: true,
        store_vec: true,
    }
}

#[test]
fn every_convolution_is_valid_on_its_target() {
    for target in Target::presets() {
        for config in tiles::conv_table(&target) {
            for (kernel, stride) in [([1, 1], [1, 1]), ([3, 3], [2, 2]), ([7, 5], [1, 1]), ([1, 31], [1, 1])] {
                let problem = convolution(kernel, stride);
                let made = conv::skeleton(&problem, config, &target, "conv").expect("fits the target");
                check(&made.into_source("conv", CONV_HOLES, bindings(), 0, 0), &target).expect("valid");
            }
        }
        let problem = convolution([3, 3], [1, 1]);
        let made = conv::skeleton(&problem, &tiles::conv(&target, &problem), &target, "conv").expect("fits the target");
        validate(&made.into_source("conv", CONV_HOLES, bindings(), 0, 0), &target).expect("every writer takes it");
    }
}

#[test]
fn impossible_convolutions_are_errors() {
    let target = Target::software();
    let problem = convolution([3, 3], [1, 1]);
    let config = tiles::conv(&target, &problem);
    let refused = |p: &ConvProblem, c| conv::skeleton(p, &c, &target, "conv").expect_err("refused").to_string();
    assert!(refused(&ConvProblem { stride: [0, 1], ..problem.clone() }, config).contains("positive"));
    assert!(refused(&problem, conv::ConvConfig { tile_oc: 6, ..config }).contains("multiple of 4"));
    let long = ConvProblem { kernel: [300, 300], in_channels: 4, ..problem };
    assert!(refused(&long, config).contains("split the input channels"));
}

/// Plain holes of an attention over three bindings.
const ATTENTION_HOLES: &str = "
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> y: array<f32>;
@group(0) @binding(2) var<storage, read_write> z: array<f32>;

fn load_q1(b: u32, i: u32, k: u32) -> f32 { return x[b + i + k]; }
fn load_q(b: u32, i: u32, k: u32) -> vec4<f32> { return vec4<f32>(x[b + i + k]); }
fn load_k1(b: u32, j: u32, k: u32) -> f32 { return y[b + j + k]; }
fn load_k(b: u32, j: u32, k: u32) -> vec4<f32> { return vec4<f32>(y[b + j + k]); }
fn load_v1(b: u32, j: u32, c: u32) -> f32 { return y[b + j + c]; }
fn load_v(b: u32, j: u32, c: u32) -> vec4<f32> { return vec4<f32>(y[b + j + c]); }
fn score1(b: u32, i: u32, j: u32, value: f32) -> f32 { return value * 0.5; }
fn score(b: u32, i: u32, j: u32, value: vec4<f32>) -> vec4<f32> { return value * 0.5; }
fn store1(b: u32, i: u32, c: u32, value: f32) { z[b + i + c] = value; }
fn store(b: u32, i: u32, c: u32, value: vec4<f32>) { z[b + i + c] = value.x + value.y + value.z + value.w; }
";

#[test]
fn attention_is_valid_with_every_table_row() {
    for target in Target::presets() {
        for config in tiles::attention_table(&target) {
            for (rows, keys, width, vec) in [(64, 64, 64, true), (5, 7, 9, false), (1, 3, 2, true), (33, 0, 128, true), (20, 40, 30, true)]
            {
                for k_vec in [VecAxis::None, VecAxis::K, VecAxis::Free] {
                    let problem = AttentionProblem {
                        batch: 3,
                        rows,
                        keys,
                        width,
                        value_width: width,
                        causal: rows == 64 || rows == 5,
                        q_vec: vec,
                        k_vec,
                        v_vec: vec,
                        score_vec: vec,
                        store_vec: vec,
                    };
                    let made = attention::skeleton(&problem, config, &target, "attention").expect("fits the target");
                    check(&made.into_source("attention", ATTENTION_HOLES, bindings(), 0, 0), &target).expect("valid");
                }
            }
        }
    }
}

#[test]
fn attention_that_loops_too_long_or_is_too_wide_is_refused() {
    let problem = |keys, value_width| AttentionProblem {
        batch: 1,
        rows: 64,
        keys,
        width: 64,
        value_width,
        causal: false,
        q_vec: true,
        k_vec: VecAxis::K,
        v_vec: true,
        score_vec: true,
        store_vec: true,
    };
    let target = Target::webgpu();
    let made = |keys, value_width| {
        let problem = problem(keys, value_width);
        attention::skeleton(&problem, &tiles::attention(&target, &problem), &target, "attention")
    };
    assert!(made(4096, 128).is_ok());
    for (keys, value_width, part) in [(1 << 24, 64, "loop iterations"), (64, 300, "width 300")] {
        let message = made(keys, value_width).expect_err("refused").to_string();
        assert!(message.contains(part), "{message}");
    }
}
