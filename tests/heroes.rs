//! Heroes on the adapter of the machine, with plain holes, against sums in f64.

mod device_common;

use std::sync::Arc;

use device_common::*;
use kernels_gen::heroes::attention::{self, AttentionConfig, AttentionProblem};
use kernels_gen::heroes::conv::{self, ConvConfig, ConvProblem};
use kernels_gen::heroes::gemm::{self, GemmConfig, GemmProblem, Terms, VecAxis};
use kernels_gen::heroes::{Sharing, tiles};
use kernels_gen::{Binding, BindingKind, KernelSource, Target};
use sublane::device::{Device, Executor};
use sublane::plan::{ExecutionPlan, SlotRole};

/// Values in -1..1 that do not repeat in step with any size used here.
fn values(n: usize, seed: u32) -> Vec<f32> {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..n).map(|_| next()).collect()
}

/// `||out - expected|| / ||expected||`; any NaN, which is what the output held before, makes it NaN.
fn distance(out: &[f32], expected: &[f64]) -> f64 {
    assert_eq!(out.len(), expected.len());
    let square = |f: &dyn Fn(usize) -> f64| (0..out.len()).map(|i| f(i) * f(i)).sum::<f64>().sqrt();
    square(&|i| f64::from(out[i]) - expected[i]) / square(&|i| expected[i]).max(1e-30)
}

/// Runs a kernel over two inputs and one output that is poisoned with NaN.
fn run(device: &Device, source: KernelSource, workgroups: [u32; 3], x: &[f32], y: &[f32], out_elems: usize) -> Vec<f32> {
    let mut plan = ExecutionPlan::new();
    let of = |n: usize| 4 * n.max(1) as u64;
    let slots = [
        plan.slot("x", of(x.len()), SlotRole::Input),
        plan.slot("y", of(y.len()), SlotRole::Input),
        plan.slot("z", of(out_elems), SlotRole::Output),
    ];
    plan.dispatch(&Arc::new(source), &slots, &[], workgroups);
    let executor = Executor::load(device, &plan).expect("loads");
    executor.write(slots[2], bytemuck::cast_slice(&vec![f32::NAN; out_elems])).expect("writes");
    let pad = |v: &[f32]| if v.is_empty() { vec![0.0] } else { v.to_vec() };
    let (x, y) = (pad(x), pad(y));
    let inputs = [(slots[0], bytemuck::cast_slice(&x)), (slots[1], bytemuck::cast_slice(&y))];
    let out = executor.run(&inputs, &[slots[2]]).expect("runs");
    bytemuck::pod_collect_to_vec(&out[0])
}

fn bindings() -> Vec<Binding> {
    let kind = |name, kind| Binding::new(name, kind);
    vec![kind("x", BindingKind::Read), kind("y", BindingKind::Read), kind("z", BindingKind::ReadWrite)]
}

const DECLARATIONS: &str = "
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> y: array<f32>;
@group(0) @binding(2) var<storage, read_write> z: array<f32>;
fn x4(i: u32) -> vec4<f32> { return vec4<f32>(x[i], x[i + 1u], x[i + 2u], x[i + 3u]); }
fn y4(i: u32) -> vec4<f32> { return vec4<f32>(y[i], y[i + 1u], y[i + 2u], y[i + 3u]); }
";

/// A product whose operands may be stored transposed and broadcast over the batch; the epilogue doubles and adds 1.
struct Product {
    batch: u32,
    m: u32,
    n: u32,
    k: u32,
    a_transposed: bool,
    b_transposed: bool,
    b_broadcast: bool,
    scalar: bool,
}

fn product(m: u32, n: u32, k: u32) -> Product {
    Product { batch: 1, m, n, k, a_transposed: false, b_transposed: false, b_broadcast: false, scalar: false }
}

impl Product {
    fn problem(&self) -> GemmProblem {
        let pick = |axis, size: u32| if self.scalar || !size.is_multiple_of(4) { VecAxis::None } else { axis };
        GemmProblem {
            terms: Terms::F32,
            batch: self.batch,
            m: self.m,
            n: self.n,
            k: self.k,
            a_vec: if self.a_transposed { pick(VecAxis::Free, self.m) } else { pick(VecAxis::K, self.k) },
            b_vec: if self.b_transposed { pick(VecAxis::K, self.k) } else { pick(VecAxis::Free, self.n) },
            store_vec: !self.scalar && self.n.is_multiple_of(4),
            runs: self.runs(),
        }
    }

    /// Where vectors run along k, so do the longer reads.
    fn runs(&self) -> [bool; 2] {
        let whole = !self.scalar && self.k >= gemm::RUN;
        [whole && !self.a_transposed && self.k.is_multiple_of(4), whole && self.b_transposed && self.k.is_multiple_of(4)]
    }

    fn strides(&self) -> [[u32; 3]; 2] {
        let Product { m, n, k, .. } = *self;
        let a = if self.a_transposed { [m * k, 1, m] } else { [m * k, k, 1] };
        let batch = if self.b_broadcast { 0 } else { k * n };
        [a, if self.b_transposed { [batch, 1, k] } else { [batch, n, 1] }]
    }

    fn holes(&self) -> String {
        let [a, b] = self.strides();
        let at = |s: [u32; 3], u: &str, v: &str| format!("b * {}u + {u} * {}u + {v} * {}u", s[0], s[1], s[2]);
        let (a, b) = (at(a, "i", "k"), at(b, "k", "j"));
        let c = format!("b * {}u + i * {}u + j", self.m * self.n, self.n);
        let (m, n, k) = (self.m, self.n, self.k);
        // An index out of range, and a vector whose place is no multiple of four, return NaN, which the comparison finds.
        format!(
            "{DECLARATIONS}
fn nan() -> f32 {{ return bitcast<f32>(0x7fc00000u + (arrayLength(&x) & 1u)); }}
fn load_a1(b: u32, i: u32, k: u32) -> f32 {{ if i >= {m}u || k >= {k}u {{ return nan(); }} return x[{a}]; }}
fn load_b1(b: u32, k: u32, j: u32) -> f32 {{ if j >= {n}u || k >= {k}u {{ return nan(); }} return y[{b}]; }}
fn load_a(b: u32, i: u32, k: u32) -> vec4<f32> {{ let at = {a}; if at % 4u > 0u {{ return vec4<f32>(nan()); }} return x4(at); }}
fn load_b(b: u32, k: u32, j: u32) -> vec4<f32> {{ let at = {b}; if at % 4u > 0u {{ return vec4<f32>(nan()); }} return y4(at); }}
fn load_a_run(b: u32, i: u32, k: u32) -> array<vec4<f32>, 8> {{
    var run: array<vec4<f32>, 8>;
    for (var p = 0u; p < 8u; p++) {{ run[p] = load_a(b, i, k + 4u * p); if k % 32u > 0u || k + 32u > {k}u {{ run[p] = vec4<f32>(nan()); }} }}
    return run;
}}
fn load_b_run(b: u32, k: u32, j: u32) -> array<vec4<f32>, 8> {{
    var run: array<vec4<f32>, 8>;
    for (var p = 0u; p < 8u; p++) {{ run[p] = load_b(b, k + 4u * p, j); if k % 32u > 0u || k + 32u > {k}u {{ run[p] = vec4<f32>(nan()); }} }}
    return run;
}}
fn store1(b: u32, i: u32, j: u32, v: f32) {{ z[{c}] = 2.0 * v + 1.0; }}
fn store(b: u32, i: u32, j: u32, v: vec4<f32>) {{
    let at = {c};
    if at % 4u > 0u {{ z[at] = nan(); return; }}
    z[at] = 2.0 * v.x + 1.0; z[at + 1u] = 2.0 * v.y + 1.0; z[at + 2u] = 2.0 * v.z + 1.0; z[at + 3u] = 2.0 * v.w + 1.0;
}}
"
        )
    }

    fn check(&self, device: &Device, target: &Target, config: &GemmConfig) {
        let Product { batch, m, n, k, .. } = *self;
        let problem = self.problem();
        let x = values((batch * m * k) as usize, 7);
        let y = values((if self.b_broadcast { 1 } else { batch } * k * n) as usize, 11);
        let made = gemm::skeleton(&problem, config, target, "gemm").expect("fits the target");
        let workgroups = made.workgroups;
        let source = made.into_source("gemm", &self.holes(), bindings(), 0, 0);
        let out = run(device, source, workgroups, &x, &y, (batch * m * n) as usize);
        let [a, b] = self.strides();
        let mut expected = Vec::with_capacity(out.len());
        for at in 0..batch * m * n {
            let (batch, i, j) = (at / (m * n), at / n % m, at % n);
            let of = |v: &[f32], s: [u32; 3], p: u32, q: u32| f64::from(v[(batch * s[0] + p * s[1] + q * s[2]) as usize]);
            let sum: f64 = (0..k).map(|k| of(&x, a, i, k) * of(&y, b, k, j)).sum();
            expected.push(2.0 * sum + 1.0);
        }
        let error = distance(&out, &expected);
        let bound = 1e-6 * f64::from(k.max(1)).sqrt();
        assert!(error < bound, "{problem:?} with {config:?}: error {error:e}, allowed {bound:e}");
    }
}

#[test]
fn products_of_awkward_sizes() {
    let device = open();
    let target = device.target();
    for (m, n, k) in [(1, 1, 0), (257, 33, 0), (1, 3, 16), (16, 1, 1000), (257, 64, 127), (33, 127, 64), (3, 1000, 33), (64, 64, 257)] {
        let product = product(m, n, k);
        product.check(&device, &target, &tiles::gemm(&target, &product.problem()));
    }
}

#[test]
fn products_of_transposed_and_broadcast_operands() {
    let device = open();
    let target = device.target();
    for (a_transposed, b_transposed) in [(false, true), (true, false), (true, true)] {
        let product = Product { batch: 3, a_transposed, b_transposed, b_broadcast: a_transposed, ..product(100, 36, 52) };
        product.check(&device, &target, &tiles::gemm(&target, &product.problem()));
    }
    // The largest tile, ragged on both sides.
    let large = tiles::gemm_table(&target)[0];
    Product { a_transposed: true, ..product(100, 76, 37) }.check(&device, &target, &large);
    let product = Product { batch: 2, scalar: true, ..product(40, 40, 18) };
    product.check(&device, &target, &tiles::gemm(&target, &product.problem()));
}

#[test]
fn products_with_the_tables_of_other_adapters() {
    let device = open();
    let target = device.target();
    for table in [Target::webgpu(), Target::desktop(), Target { subgroups: false, ..Target::software() }] {
        for config in tiles::gemm_table(&table) {
            let lanes = config.workgroup[0] * config.workgroup[1];
            if (config.sharing == Sharing::Subgroup && !target.subgroups) || lanes > target.max_workgroup_invocations {
                continue;
            }
            product(70, 44, 37).check(&device, &target, config);
        }
    }
}

/// The product with operands as stored, and transposed.
fn as_stored_and_transposed(device: &Device, target: &Target, config: Option<&GemmConfig>, batch: u32, [m, n, k]: [u32; 3]) {
    for (a_transposed, b_transposed) in [(false, false), (true, true)] {
        let product = Product { batch, a_transposed, b_transposed, ..product(m, n, k) };
        let table = tiles::gemm(target, &product.problem());
        product.check(device, target, config.unwrap_or(&table));
    }
}

#[test]
fn vectors_and_few_rows_or_columns() {
    let device = open();
    let target = device.target();
    let shapes =
        [(1, 257, 1000), (1, 1000, 33), (3, 64, 127), (2, 501, 260), (8, 127, 257), (5, 33, 31), (1, 1, 65_537), (4, 16, 3), (8, 40, 4096)];
    for (few, long, k) in shapes {
        for (m, n) in [(few, long), (long, few)] {
            as_stored_and_transposed(&device, &target, None, 1, [m, n, k]);
        }
    }
    for few in [1, 2, 3, 5, 8] {
        for (i, k) in [0, 1, 3, 4, 7].into_iter().enumerate() {
            let other = [8, 1, 5, 2, 3][i];
            let product = Product { batch: 2, b_broadcast: i % 2 == 0, ..product(few, other, k) };
            product.check(&device, &target, &tiles::gemm(&target, &product.problem()));
        }
    }
}

/// Rows of the tables of all kinds of adapters that this one can run, each once.
fn rows_of_all_tables(target: &Target, which: impl Fn(&GemmConfig) -> bool) -> Vec<GemmConfig> {
    let mut rows: Vec<GemmConfig> = Vec::new();
    for table in [Target::webgpu(), Target { subgroups: false, ..Target::software() }, Target::software()] {
        let all = |size: u32| tiles::gemm_candidates(&table, &product(size, size, 512).problem(), tiles::Candidates::All);
        for config in [tiles::gemm_rows(&table), all(8), all(512)].concat() {
            let lanes = config.workgroup[0] * config.workgroup[1];
            if which(&config) && lanes <= target.max_workgroup_invocations && !rows.contains(&config) {
                rows.push(config);
            }
        }
    }
    rows
}

#[test]
fn split_tiles_of_all_tables_on_shapes_they_are_not_for() {
    let device = open();
    let target = device.target();
    let rows = rows_of_all_tables(&target, |c| c.sharing == Sharing::Split);
    assert!(rows.len() > 20);
    for (i, config) in rows.iter().enumerate() {
        // Steps of k that are no multiple of the lanes, nor of a vector.
        let (m, n) = if i % 2 == 0 { (3, 40) } else { (40, 3) };
        let transposed = i % 4 < 2;
        let product = Product { a_transposed: transposed, b_transposed: transposed, ..product(m, n, 131) };
        product.check(&device, &target, config);
        Product { batch: 2, m: n, n: m, k: 1028, a_transposed: !transposed, b_transposed: !transposed, ..product }
            .check(&device, &target, config);
    }
    Product { batch: 3, b_broadcast: true, ..product(11, 50, 0) }.check(&device, &target, &rows[0]);
    Product { batch: 3, scalar: true, ..product(20, 20, 77) }.check(&device, &target, &rows[1]);
}

#[test]
fn batches_of_tiny_products() {
    let device = open();
    let target = device.target();
    for (m, n, k) in [(8, 8, 8), (4, 4, 16), (1, 16, 5), (3, 2, 7), (16, 16, 0), (16, 5, 1), (2, 1, 300)] {
        as_stored_and_transposed(&device, &target, None, 300, [m, n, k]);
    }
    for config in rows_of_all_tables(&target, |c| c.sharing == Sharing::Own) {
        as_stored_and_transposed(&device, &target, Some(&config), 5, [9, 14, 13]);
        Product { batch: 67, scalar: true, b_broadcast: true, ..product(12, 4, 4) }.check(&device, &target, &config);
    }
}

#[test]
fn products_through_workgroup_memory() {
    let device = open();
    let target = device.target();
    let rows = rows_of_all_tables(&target, |c| c.sharing == Sharing::Workgroup);
    assert!(rows.len() > 3);
    // Of one small block many shapes, of each block some.
    let small = rows.iter().min_by_key(|c| c.tile_m * c.tile_n * c.workgroup[0]).expect("some");
    for (m, n, k) in [(1, 1, 0), (1, 33, 64), (33, 1, 127), (64, 64, 64), (64, 127, 257), (127, 64, 1), (257, 33, 33), (36, 100, 66)] {
        as_stored_and_transposed(&device, &target, Some(small), 1, [m, n, k]);
    }
    for config in &rows {
        Product { batch: 2, b_transposed: true, ..product(127, 257, 64) }.check(&device, &target, config);
        Product { batch: 2, a_transposed: true, b_broadcast: true, ..product(132, 68, 37) }.check(&device, &target, config);
        Product { scalar: true, ..product(70, 131, 29) }.check(&device, &target, config);
    }
}

/// A convolution over NCHW with weights in the layout of the hole; the epilogue doubles and adds 1.
struct Convolution {
    batch: u32,
    groups: u32,
    channels: [u32; 2],
    input: [u32; 2],
    kernel: [u32; 2],
    stride: [u32; 2],
    dilation: [u32; 2],
    pads: [u32; 4],
}

fn convolution(channels: [u32; 2], input: [u32; 2], kernel: [u32; 2]) -> Convolution {
    let pads = [kernel[0] / 2, kernel[1] / 2, kernel[0] / 2, kernel[1] / 2];
    Convolution { batch: 1, groups: 1, channels, input, kernel, stride: [1, 1], dilation: [1, 1], pads }
}

impl Convolution {
    fn problem(&self) -> ConvProblem {
        let size = |i: usize| {
            let window = self.dilation[i] * (self.kernel[i] - 1) + 1;
            (self.input[i] + self.pads[i] + self.pads[i + 2] - window) / self.stride[i] + 1
        };
        ConvProblem {
            batch: self.batch,
            groups: self.groups,
            in_channels: self.channels[0],
            out_channels: self.channels[1],
            input: self.input,
            output: [size(0), size(1)],
            kernel: self.kernel,
            stride: self.stride,
            dilation: self.dilation,
            pad: [self.pads[0], self.pads[1]],
            x_vec: self.input[1].is_multiple_of(4),
            store_vec: size(1).is_multiple_of(4),
        }
    }

    fn holes(p: &ConvProblem) -> String {
        let ([height, width], [out_height, out_width]) = (p.input, p.output);
        let (ic, oc) = (p.groups * p.in_channels, p.groups * p.out_channels);
        let (taps, padded) = (p.kernel[0] * p.kernel[1], p.out_channels.next_multiple_of(4));
        let input = format!("((n * {ic}u + c) * {height}u + iy) * {width}u + ix");
        let output = format!("((n * {oc}u + k) * {out_height}u + oy) * {out_width}u + ox");
        let inside = format!("c < {ic}u && iy < {height}u && ix < {width}u && n < {}u", p.batch);
        format!(
            "{DECLARATIONS}
fn nan() -> f32 {{ return bitcast<f32>(0x7fc00000u + (arrayLength(&x) & 1u)); }}
fn load_x1(n: u32, c: u32, iy: u32, ix: u32) -> f32 {{ if !({inside}) {{ return nan(); }} return x[{input}]; }}
fn load_x(n: u32, c: u32, iy: u32, ix: u32) -> vec4<f32> {{ if !({inside}) {{ return vec4<f32>(nan()); }} return x4({input}); }}
fn load_w(g: u32, c: u32, tap: u32, oc: u32) -> vec4<f32> {{
    if g >= {}u || c >= {}u || tap >= {taps}u || oc >= {padded}u {{ return vec4<f32>(nan()); }}
    return y4(((g * {}u + c) * {taps}u + tap) * {padded}u + oc);
}}
fn store1(n: u32, k: u32, oy: u32, ox: u32, v: f32) {{ z[{output}] = 2.0 * v + 1.0; }}
fn store(n: u32, k: u32, oy: u32, ox: u32, v: vec4<f32>) {{
    let at = {output};
    z[at] = 2.0 * v.x + 1.0; z[at + 1u] = 2.0 * v.y + 1.0; z[at + 2u] = 2.0 * v.z + 1.0; z[at + 3u] = 2.0 * v.w + 1.0;
}}
",
            p.groups, p.in_channels, p.in_channels
        )
    }

    fn check(&self, device: &Device, config: Option<&ConvConfig>) {
        let target = device.target();
        let p = self.problem();
        let config = config.copied().unwrap_or_else(|| tiles::conv(&target, &p));
        let [height, width] = p.input.map(|d| d as usize);
        let [out_height, out_width] = p.output.map(|d| d as usize);
        let (ic, oc) = (p.in_channels as usize, p.out_channels as usize);
        let (groups, batch, taps) = (p.groups as usize, p.batch as usize, (p.kernel[0] * p.kernel[1]) as usize);
        let padded = oc.next_multiple_of(4);
        let x = values(batch * groups * ic * height * width, 3);
        let y = values(groups * ic * taps * padded, 5);
        let made = conv::skeleton(&p, &config, &target, "conv").expect("fits the target");
        let workgroups = made.workgroups;
        let source = made.into_source("conv", &Self::holes(&p), bindings(), 0, 0);
        let out = run(device, source, workgroups, &x, &y, batch * groups * oc * out_height * out_width);
        let mut expected = Vec::with_capacity(out.len());
        for at in 0..out.len() {
            let (ox, oy) = (at % out_width, at / out_width % out_height);
            let (k, n) = (at / (out_width * out_height) % (groups * oc), at / (out_width * out_height * groups * oc));
            let mut sum = 0.0f64;
            for (c, tap) in (0..ic).flat_map(|c| (0..taps).map(move |tap| (c, tap))) {
                let (ky, kx) = (tap / p.kernel[1] as usize, tap % p.kernel[1] as usize);
                let place =
                    |o: usize, k: usize, i: usize| (o * p.stride[i] as usize + k * p.dilation[i] as usize).checked_sub(p.pad[i] as usize);
                let (Some(iy), Some(ix)) = (place(oy, ky, 0), place(ox, kx, 1)) else { continue };
                if iy < height && ix < width {
                    let group = k / oc;
                    let pixel = x[((n * groups * ic + group * ic + c) * height + iy) * width + ix];
                    sum += f64::from(pixel) * f64::from(y[((group * ic + c) * taps + tap) * padded + k % oc]);
                }
            }
            expected.push(2.0 * sum + 1.0);
        }
        let error = distance(&out, &expected);
        let bound = 1e-6 * ((ic * taps) as f64).sqrt();
        assert!(error < bound, "{p:?} with {config:?}: error {error:e}, allowed {bound:e}");
    }
}

#[test]
fn convolutions_of_many_kinds() {
    let device = open();
    convolution([3, 16], [32, 32], [3, 3]).check(&device, None);
    Convolution { batch: 3, stride: [2, 2], ..convolution([16, 32], [9, 11], [3, 3]) }.check(&device, None);
    Convolution { pads: [0, 1, 2, 0], stride: [1, 2], ..convolution([5, 7], [10, 13], [3, 2]) }.check(&device, None);
    Convolution { dilation: [2, 3], groups: 2, ..convolution([4, 6], [17, 18], [3, 3]) }.check(&device, None);
    Convolution { groups: 19, ..convolution([1, 1], [12, 12], [3, 3]) }.check(&device, None);
    convolution([2, 5], [15, 16], [7, 5]).check(&device, None);
    convolution([3, 4], [1, 100], [1, 31]).check(&device, None);
    Convolution { stride: [2, 2], pads: [0; 4], ..convolution([6, 9], [15, 15], [1, 1]) }.check(&device, None);
    Convolution { pads: [3, 0, 3, 0], ..convolution([2, 3], [4, 8], [1, 1]) }.check(&device, None);
}

#[test]
fn pointwise_convolutions_of_104_to_208_channels() {
    let device = open();
    for (ic, oc) in [(104, 208), (208, 104), (131, 105)] {
        convolution([ic, oc], [8, 8], [1, 1]).check(&device, None);
    }
}

#[test]
fn convolutions_with_the_tables_of_other_adapters() {
    let device = open();
    let target = device.target();
    for table in [Target::webgpu(), Target { subgroups: false, ..Target::software() }] {
        for config in tiles::conv_table(&table).iter().filter(|c| c.lanes <= target.max_workgroup_invocations) {
            Convolution { batch: 2, ..convolution([3, 10], [9, 10], [3, 3]) }.check(&device, Some(config));
        }
    }
}

/// Attention over operands that lie one after another in the first input (queries) and the second (keys, then values); the epilogue
/// doubles.
#[derive(Clone)]
struct Attended {
    rows: u32,
    keys: u32,
    width: u32,
    values: u32,
    causal: bool,
    scalar: bool,
}

impl Attended {
    const BATCH: u32 = 2;

    fn problem(&self) -> AttentionProblem {
        let vec = |n: u32| !self.scalar && n.is_multiple_of(4);
        AttentionProblem {
            batch: Self::BATCH,
            rows: self.rows,
            keys: self.keys,
            width: self.width,
            value_width: self.values,
            causal: self.causal,
            q_vec: vec(self.width),
            k_vec: if vec(self.width) { VecAxis::K } else { VecAxis::None },
            v_vec: vec(self.values),
            score_vec: !self.scalar,
            store_vec: vec(self.values),
        }
    }

    fn holes(&self) -> String {
        let Attended { rows, keys, width, values, .. } = self;
        let first_value = Self::BATCH * keys * width;
        let (q, k) = (format!("(b * {rows}u + i) * {width}u + k"), format!("(b * {keys}u + j) * {width}u + k"));
        let (v, z) = (format!("{first_value}u + (b * {keys}u + j) * {values}u + c"), format!("(b * {rows}u + i) * {values}u + c"));
        format!(
            "{DECLARATIONS}
fn load_q1(b: u32, i: u32, k: u32) -> f32 {{ return x[{q}]; }}
fn load_q(b: u32, i: u32, k: u32) -> vec4<f32> {{ return x4({q}); }}
fn load_k1(b: u32, j: u32, k: u32) -> f32 {{ return y[{k}]; }}
fn load_k(b: u32, j: u32, k: u32) -> vec4<f32> {{ return y4({k}); }}
fn load_v1(b: u32, j: u32, c: u32) -> f32 {{ return y[{v}]; }}
fn load_v(b: u32, j: u32, c: u32) -> vec4<f32> {{ return y4({v}); }}
fn score1(b: u32, i: u32, j: u32, value: f32) -> f32 {{ return 3.0 * value; }}
fn score(b: u32, i: u32, j: u32, value: vec4<f32>) -> vec4<f32> {{ return 3.0 * value; }}
fn store1(b: u32, i: u32, c: u32, value: f32) {{ z[{z}] = 2.0 * value; }}
fn store(b: u32, i: u32, c: u32, value: vec4<f32>) {{
    let at = {z};
    z[at] = 2.0 * value.x; z[at + 1u] = 2.0 * value.y; z[at + 2u] = 2.0 * value.z; z[at + 3u] = 2.0 * value.w;
}}
"
        )
    }

    fn check(&self, device: &Device, config: Option<&AttentionConfig>) {
        let target = device.target();
        let p = self.problem();
        let config = config.copied().unwrap_or_else(|| tiles::attention(&target, &p));
        let [b, l, s, e, f] = [Self::BATCH, self.rows, self.keys, self.width, self.values].map(|n| n as usize);
        let (x, y) = (values(b * l * e, 3), values(b * s * (e + f), 5));
        let made = attention::skeleton(&p, &config, &target, "attention").expect("fits the target");
        let workgroups = made.workgroups;
        let source = made.into_source("attention", &self.holes(), bindings(), 0, 0);
        let out = run(device, source, workgroups, &x, &y, b * l * f);
        let mut expected = Vec::with_capacity(out.len());
        for row in 0..b * l {
            let (matrix, i) = (row / l, row % l);
            let seen = if self.causal { s.min(i + 1) } else { s };
            let product = |j: usize| (0..e).map(|k| f64::from(x[row * e + k]) * f64::from(y[(matrix * s + j) * e + k])).sum::<f64>();
            let weights: Vec<f64> = (0..seen).map(|j| (3.0 * product(j)).exp()).collect();
            let total: f64 = weights.iter().sum();
            let value = |j: usize, c: usize| f64::from(y[b * s * e + (matrix * s + j) * f + c]);
            let mean = |c| weights.iter().enumerate().map(|(j, w)| w * value(j, c)).sum::<f64>() / total;
            expected.extend((0..f).map(|c| if seen == 0 { 0.0 } else { 2.0 * mean(c) }));
        }
        let error = distance(&out, &expected);
        assert!(error < 1e-5, "{p:?} with {config:?}: error {error:e}");
    }
}

#[test]
fn attention_of_many_shapes() {
    let device = open();
    let attended = |rows, keys, width, values| Attended { rows, keys, width, values, causal: false, scalar: false };
    for shape in [attended(1, 1, 1, 1), attended(70, 200, 64, 64), attended(3, 65, 20, 36), attended(17, 31, 7, 5), attended(5, 0, 4, 4)] {
        shape.check(&device, None);
        Attended { causal: true, ..shape }.check(&device, None);
    }
    attended(9, 40, 16, 250).check(&device, None);
    Attended { scalar: true, ..attended(20, 100, 32, 32) }.check(&device, None);
}

#[test]
fn attention_with_every_table_of_tiles() {
    let device = open();
    let target = device.target();
    for table in [Target::webgpu(), target.clone()] {
        for config in tiles::attention_table(&table) {
            let shape = Attended { rows: 37, keys: 90, width: 24, values: 40, causal: true, scalar: false };
            shape.check(&device, Some(config));
            Attended { causal: false, ..shape }.check(&device, Some(config));
        }
    }
}
