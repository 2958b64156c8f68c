// C = A B in row-major f32: what a careful hand writes without a generator, the yardstick of the generated matrix products.
//
// A lane computes 16 by 16 results in registers and takes four steps of k at a time; all accesses are vectors, nothing is staged in
// workgroup memory. m and n are multiples of 16, k of 4.

struct Params {
  m: u32,
  n: u32,
  k: u32,
}

@group(0) @binding(0) var<storage, read> a: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> b: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> c: array<vec4<f32>>;
@group(0) @binding(3) var<uniform> params: Params;

// Sixteen neighbours of a row.
struct Row {
  v0: vec4<f32>,
  v1: vec4<f32>,
  v2: vec4<f32>,
  v3: vec4<f32>,
}

// Four rows of B.
struct Panel {
  k0: Row,
  k1: Row,
  k2: Row,
  k3: Row,
}

fn load_row(at: u32) -> Row {
  return Row(b[at], b[at + 1u], b[at + 2u], b[at + 3u]);
}

fn dot4(sum: vec4<f32>, x: vec4<f32>, y0: vec4<f32>, y1: vec4<f32>, y2: vec4<f32>, y3: vec4<f32>) -> vec4<f32> {
  return fma(vec4<f32>(x.w), y3, fma(vec4<f32>(x.z), y2, fma(vec4<f32>(x.y), y1, fma(vec4<f32>(x.x), y0, sum))));
}

// A row of results, four steps of k later.
fn multiply(sum: Row, x: vec4<f32>, y: Panel) -> Row {
  return Row(
    dot4(sum.v0, x, y.k0.v0, y.k1.v0, y.k2.v0, y.k3.v0),
    dot4(sum.v1, x, y.k0.v1, y.k1.v1, y.k2.v1, y.k3.v1),
    dot4(sum.v2, x, y.k0.v2, y.k1.v2, y.k2.v2, y.k3.v2),
    dot4(sum.v3, x, y.k0.v3, y.k1.v3, y.k2.v3, y.k3.v3),
  );
}

fn store_row(at: u32, row: Row) {
  c[at] = row.v0;
  c[at + 1u] = row.v1;
  c[at + 2u] = row.v2;
  c[at + 3u] = row.v3;
}

@compute @workgroup_size(16)
fn gemm_reference(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_id) lane: vec3<u32>) {
  // In vectors: columns of B and C, length of a row of A.
  let n = params.n / 4u;
  let k = params.k / 4u;
  let column = (wid.x * 16u + lane.x) * 4u;
  let row = wid.y * 16u;
  if (column >= n || row >= params.m) {
    return;
  }
  var r0 = Row();
  var r1 = Row();
  var r2 = Row();
  var r3 = Row();
  var r4 = Row();
  var r5 = Row();
  var r6 = Row();
  var r7 = Row();
  var r8 = Row();
  var r9 = Row();
  var r10 = Row();
  var r11 = Row();
  var r12 = Row();
  var r13 = Row();
  var r14 = Row();
  var r15 = Row();
  for (var i = 0u; i < k; i++) {
    let at = i * 4u * n + column;
    let y = Panel(load_row(at), load_row(at + n), load_row(at + 2u * n), load_row(at + 3u * n));
    let x = row * k + i;
    r0 = multiply(r0, a[x], y);
    r1 = multiply(r1, a[x + 1u * k], y);
    r2 = multiply(r2, a[x + 2u * k], y);
    r3 = multiply(r3, a[x + 3u * k], y);
    r4 = multiply(r4, a[x + 4u * k], y);
    r5 = multiply(r5, a[x + 5u * k], y);
    r6 = multiply(r6, a[x + 6u * k], y);
    r7 = multiply(r7, a[x + 7u * k], y);
    r8 = multiply(r8, a[x + 8u * k], y);
    r9 = multiply(r9, a[x + 9u * k], y);
    r10 = multiply(r10, a[x + 10u * k], y);
    r11 = multiply(r11, a[x + 11u * k], y);
    r12 = multiply(r12, a[x + 12u * k], y);
    r13 = multiply(r13, a[x + 13u * k], y);
    r14 = multiply(r14, a[x + 14u * k], y);
    r15 = multiply(r15, a[x + 15u * k], y);
  }
  let out = row * n + column;
  store_row(out, r0);
  store_row(out + 1u * n, r1);
  store_row(out + 2u * n, r2);
  store_row(out + 3u * n, r3);
  store_row(out + 4u * n, r4);
  store_row(out + 5u * n, r5);
  store_row(out + 6u * n, r6);
  store_row(out + 7u * n, r7);
  store_row(out + 8u * n, r8);
  store_row(out + 9u * n, r9);
  store_row(out + 10u * n, r10);
  store_row(out + 11u * n, r11);
  store_row(out + 12u * n, r12);
  store_row(out + 13u * n, r13);
  store_row(out + 14u * n, r14);
  store_row(out + 15u * n, r15);
}
