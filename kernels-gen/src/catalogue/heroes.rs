//! Samples of heroes: every row of the target's tile tables, with plain loads and a bias and ReLU as epilogue.

use crate::heroes::attention::{self, AttentionProblem};
use crate::heroes::conv::{self, ConvProblem};
use crate::heroes::gemm::{self, GemmProblem, Terms, VecAxis};
use crate::heroes::tiles;
use crate::{Binding, BindingKind, KernelSource, Result, Target};

const DECLARATIONS: &str = "\
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> w: array<f32>;
@group(0) @binding(2) var<storage, read> bias: array<f32>;
@group(0) @binding(3) var<storage, read_write> out: array<f32>;
";

fn bindings() -> Vec<Binding> {
    let mut all: Vec<Binding> = ["x", "w", "bias"].map(|name| Binding::new(name, BindingKind::Read)).into();
    all.push(Binding::new("out", BindingKind::ReadWrite));
    all
}

/// Products of sizes that fill no tile, operands read by vectors and element by element.
pub(super) fn products(target: &Target) -> Result<Vec<KernelSource>> {
    let mut all = Vec::new();
    for config in &tiles::gemm_rows(target) {
        for (m, n, k, a_vec, b_vec) in [(100, 60, 36, VecAxis::K, VecAxis::Free), (33, 17, 7, VecAxis::None, VecAxis::None)] {
            let problem = GemmProblem { terms: Terms::F32, batch: 2, m, n, k, a_vec, b_vec, store_vec: n % 4 == 0, runs: [false; 2] };
            let [x, y] = config.workgroup;
            let tile = format!("{}x{}x{}_{x}x{y}", config.tile_m, config.tile_n, config.tile_k);
            let name = format!("sample_gemm_{tile}_{}_{m}x{n}x{k}", config.sharing);
            let (a, b) = (format!("(b * {m}u + i) * {k}u + k"), format!("(b * {k}u + k) * {n}u + j"));
            let c = format!("(b * {m}u + i) * {n}u + j");
            let holes = format!(
                "{DECLARATIONS}
fn load_a1(b: u32, i: u32, k: u32) -> f32 {{ return x[{a}]; }}
fn load_b1(b: u32, k: u32, j: u32) -> f32 {{ return w[{b}]; }}
fn load_a(b: u32, i: u32, k: u32) -> vec4<f32> {{ let at = {a}; return vec4<f32>(x[at], x[at + 1u], x[at + 2u], x[at + 3u]); }}
fn load_b(b: u32, k: u32, j: u32) -> vec4<f32> {{ let at = {b}; return vec4<f32>(w[at], w[at + 1u], w[at + 2u], w[at + 3u]); }}
fn store1(b: u32, i: u32, j: u32, v: f32) {{ out[{c}] = max(v + bias[j], 0.0); }}
fn store(b: u32, i: u32, j: u32, v: vec4<f32>) {{ for (var l = 0u; l < 4u; l++) {{ store1(b, i, j + l, v[l]); }} }}
"
            );
            all.push(gemm::skeleton(&problem, config, target, &name)?.into_source(&name, &holes, bindings(), 0, 0));
        }
    }
    Ok(all)
}

/// Convolutions of one and of nine taps, with stride and groups.
pub(super) fn convolutions(target: &Target) -> Result<Vec<KernelSource>> {
    let mut all = Vec::new();
    for config in tiles::conv_table(target) {
        for (side, stride) in [(1, 1), (3, 1), (3, 2)] {
            let output = [14u32.div_ceil(stride), 12u32.div_ceil(stride)];
            let problem = ConvProblem {
                batch: 2,
                groups: 2,
                in_channels: 5,
                out_channels: 18,
                input: [14, 12],
                output,
                kernel: [side, side],
                stride: [stride, stride],
                dilation: [1, 1],
                pad: [side / 2, side / 2],
                x_vec: true,
                store_vec: output[1] % 4 == 0,
            };
            let tile = format!("{}x{}x{}_{}", config.tile_y, config.tile_oc, config.tile_c, config.lanes);
            let name = format!("sample_conv_{tile}_{}_{side}x{side}_stride{stride}", config.sharing);
            let taps = side * side;
            let [height, width] = output;
            let holes = format!(
                "{DECLARATIONS}
fn load_x1(n: u32, c: u32, y: u32, x_: u32) -> f32 {{ return x[((n * 10u + c) * 14u + y) * 12u + x_]; }}
fn load_x(n: u32, c: u32, y: u32, x_: u32) -> vec4<f32> {{
    let at = ((n * 10u + c) * 14u + y) * 12u + x_;
    return vec4<f32>(x[at], x[at + 1u], x[at + 2u], x[at + 3u]);
}}
fn load_w(g: u32, c: u32, tap: u32, oc: u32) -> vec4<f32> {{
    let at = ((g * 5u + c) * {taps}u + tap) * 20u + oc;
    return vec4<f32>(w[at], w[at + 1u], w[at + 2u], w[at + 3u]);
}}
fn store1(n: u32, oc: u32, y: u32, x_: u32, v: f32) {{
    out[((n * 36u + oc) * {height}u + y) * {width}u + x_] = max(v + bias[oc], 0.0);
}}
fn store(n: u32, oc: u32, y: u32, x_: u32, v: vec4<f32>) {{ for (var l = 0u; l < 4u; l++) {{ store1(n, oc, y, x_ + l, v[l]); }} }}
"
            );
            all.push(conv::skeleton(&problem, config, target, &name)?.into_source(&name, &holes, bindings(), 0, 0));
        }
    }
    Ok(all)
}

/// Attention over itself, causal and not, of sizes that fill no tile, read by vectors and element by element.
pub(super) fn attentions(target: &Target) -> Result<Vec<KernelSource>> {
    let mut all = Vec::new();
    for config in tiles::attention_table(target) {
        for (tokens, width, vec, causal) in [(100, 64, true, true), (37, 15, false, false)] {
            let problem = AttentionProblem {
                batch: 3,
                rows: tokens,
                keys: tokens,
                width,
                value_width: width,
                causal,
                q_vec: vec,
                k_vec: if vec { VecAxis::K } else { VecAxis::None },
                v_vec: vec,
                score_vec: true,
                store_vec: vec,
            };
            let tile = format!("{}x{}x{}", config.tile_rows, config.key_vecs, config.teams);
            let name = format!("sample_attention_{tile}_{}_{tokens}x{width}", config.sharing);
            let scale = 1.0 / f64::from(width).sqrt();
            let at = |row: &str, column: &str| format!("(b * {tokens}u + {row}) * {width}u + {column}");
            let loads: String = [("q", "x", "i", "k"), ("k", "x", "j", "k"), ("v", "w", "j", "c")]
                .map(|(hole, buffer, row, column)| {
                    let at = at(row, column);
                    format!(
                        "fn load_{hole}1(b: u32, {row}: u32, {column}: u32) -> f32 {{ return {buffer}[{at}]; }}
fn load_{hole}(b: u32, {row}: u32, {column}: u32) -> vec4<f32> {{
    let at = {at};
    return vec4<f32>({buffer}[at], {buffer}[at + 1u], {buffer}[at + 2u], {buffer}[at + 3u]);
}}
"
                    )
                })
                .concat();
            let holes = format!(
                "{DECLARATIONS}{loads}
fn score1(b: u32, i: u32, j: u32, value: f32) -> f32 {{ return {scale:?} * value; }}
fn score(b: u32, i: u32, j: u32, value: vec4<f32>) -> vec4<f32> {{ return {scale:?} * value; }}
fn store1(b: u32, i: u32, c: u32, value: f32) {{ out[{}] = value + bias[c]; }}
fn store(b: u32, i: u32, c: u32, value: vec4<f32>) {{ for (var l = 0u; l < 4u; l++) {{ store1(b, i, c + l, value[l]); }} }}
",
                at("i", "c")
            );
            all.push(attention::skeleton(&problem, config, target, &name)?.into_source(&name, &holes, bindings(), 0, 0));
        }
    }
    Ok(all)
}
