use super::gemm::{GemmConfig, GemmProblem, VecAxis, skeleton};
use super::{Sharing, tiles};
use crate::source::{Binding, BindingKind, KernelSource};
use crate::target::Target;
use crate::validate::{check, validate};

/// Plain holes over three bindings.
pub(super) const HOLES: &str = "
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

fn kernel(problem: &GemmProblem, config: &GemmConfig, target: &Target) -> KernelSource {
    let bindings =
        vec![Binding::new("x", BindingKind::Read), Binding::new("y", BindingKind::Read), Binding::new("z", BindingKind::ReadWrite)];
    skeleton(problem, config, target, "gemm").expect("fits the target").into_source("gemm", HOLES, bindings, 0, 0)
}

#[test]
fn every_table_row_is_valid_on_its_target() {
    let axes = [VecAxis::None, VecAxis::K, VecAxis::Free];
    for target in Target::presets() {
        for config in tiles::gemm_table(&target) {
            for (i, (m, n, k)) in [(64, 64, 64), (257, 33, 7), (1, 1, 0)].into_iter().enumerate() {
                for a_vec in axes {
                    let problem = GemmProblem { batch: 3, m, n, k, a_vec, b_vec: axes[i], store_vec: true };
                    check(&kernel(&problem, config, &target), &target).expect("valid");
                }
            }
        }
        let problem = GemmProblem { batch: 1, m: 64, n: 64, k: 6, a_vec: VecAxis::K, b_vec: VecAxis::Free, store_vec: true };
        validate(&kernel(&problem, &tiles::gemm_table(&target)[0], &target), &target).expect("every writer takes it");
    }
}

#[test]
fn text_is_a_function_of_its_arguments() {
    let target = Target::software();
    let problem = GemmProblem { batch: 1, m: 16, n: 16, k: 16, a_vec: VecAxis::K, b_vec: VecAxis::Free, store_vec: true };
    let config = tiles::gemm(&target, &problem);
    assert_eq!(kernel(&problem, &config, &target), kernel(&problem, &config, &target));
}

#[test]
fn impossible_requests_are_errors() {
    let software = Target::software();
    let problem = GemmProblem { batch: 1, m: 8, n: 8, k: 8, a_vec: VecAxis::None, b_vec: VecAxis::None, store_vec: false };
    let good = tiles::gemm(&software, &problem);
    let refused = |p: &GemmProblem, c: GemmConfig, t: &Target| skeleton(p, &c, t, "gemm").expect_err("refused").to_string();
    assert!(refused(&problem, GemmConfig { tile_n: 3, ..good }, &software).contains("multiples of 4"));
    assert!(refused(&problem, good, &Target::webgpu()).contains("subgroup operations"));
    let wide = GemmConfig { workgroup: [512, 1], sharing: Sharing::Lane, ..good };
    assert!(refused(&problem, wide, &Target::webgpu()).contains("512 invocations"));
    assert!(refused(&GemmProblem { k: u32::MAX, ..problem.clone() }, good, &software).contains("split k"));
    let many = GemmProblem { batch: u32::MAX, m: 1000, n: 1000, ..problem };
    assert!(refused(&many, good, &software).contains("workgroups"));
}

#[test]
fn a_long_k_is_unrolled_below_the_loop_bound() {
    let target = Target::software();
    let problem = GemmProblem { batch: 1, m: 1, n: 1, k: 1_000_003, a_vec: VecAxis::None, b_vec: VecAxis::None, store_vec: false };
    let made = skeleton(&problem, &tiles::gemm(&target, &problem), &target, "gemm").expect("unrolled");
    assert!(made.max_iterations <= 65_535, "{}", made.max_iterations);
}
