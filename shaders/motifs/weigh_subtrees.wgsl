// Numbers of subtrees of one placed edge of a tree, for each edge that it may be: the product over its children of the sums of their
// windows. The windows are kept for the draw.
#import wide

struct Params {
  // Entries of a list, or edges.
  count: u32,
  // Place in `graph` of the first entry; NONE: of the edges themselves, that is of centres, loops among them.
  entries: u32,
  num_children: u32,
  // Place in `bounds` of the largest key within delta after each key; the smallest before it is at 0.
  last: u32,
  // The most iterations of a search in a list; it bounds the loop, see the table of kernels.
  max_search: u32,
  // Of each child: place in `graph` of the lists it is drawn from, vertex by vertex; of its windows in `windows`; what is added to the place
  // of an entry in `graph` for that of its sum in `sums`; bits: whether it touches the destination of its parent, whether it comes after
  // it, whether it has children.
  children: array<vec4<u32>, 6>,
}

// (source, destination) of each edge; the lists of the vertices: (edge, vertex at its other end); (first entry, end) of each list.
@group(0) @binding(0) var<storage, read> graph: array<vec2<u32>>;
@group(0) @binding(1) var<storage, read> bounds: array<u32>;
// Key of each edge (STRICT); otherwise it is the edge's index.
@group(0) @binding(2) var<storage, read> keys: array<u32>;
// Prefix sums of the numbers of subtrees of the children.
@group(0) @binding(3) var<storage, read> sums: array<vec2<u32>>;
// (first entry in `graph`, length) of each child's window around each edge.
@group(0) @binding(4) var<storage, read_write> windows: array<vec2<u32>>;
// The numbers of subtrees.
@group(0) @binding(5) var<storage, read_write> weights: array<vec2<u32>>;
// Becomes 1: word 0 where a number passes 2^64 - 1, word 1 where one of a centre reaches 2^30.
@group(0) @binding(6) var<storage, read_write> flags: array<atomic<u32>>;
@group(0) @binding(7) var<uniform> params: Params;

const NONE = 0xffffffffu;

fn key_of(edge: u32) -> u32 {
#ifdef STRICT
  return keys[edge];
#else
  return edge;
#endif
}

// The first entry from `begin` on, before `end`, whose key is at least `key`; `end` if there is none.
fn lower_bound(begin: u32, end: u32, key: u32) -> u32 {
  var low = begin;
  var high = end;
  while (low < high) {
    let middle = low + (high - low) / 2u;
    if (key_of(graph[middle].x) < key) {
      low = middle + 1u;
    } else {
      high = middle;
    }
  }
  return low;
}

@compute @workgroup_size(64)
fn weigh_subtrees(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let item = (wid.x + wid.y * grid.x) * 64u + local;
  if (item >= params.count) {
    return;
  }
  let is_centre = params.entries == NONE;
  var edge = item;
  if (!is_centre) {
    edge = graph[params.entries + item].x;
  }
  let ends = graph[edge];
  if (ends.x == ends.y) {
    // No match holds a loop as its centre; lists have none.
    weights[item] = vec2<u32>(0u, 0u);
    return;
  }
  let key = key_of(edge);
  let first = bounds[key];
  let last = bounds[params.last + key];
  var product = vec2<u32>(1u, 0u);
  var passed = false;
  for (var n = 0u; n < params.num_children; n += 1u) {
    let child = params.children[n];
    let is_after = (child.w & 2u) != 0u;
    let list = graph[child.x + select(ends.x, ends.y, (child.w & 1u) != 0u)];
    let start = lower_bound(list.x, list.y, select(first, key + 1u, is_after));
    let length = lower_bound(start, list.y, select(key, last + 1u, is_after)) - start;
    windows[child.y + edge] = vec2<u32>(start, length);
    var subtrees = vec2<u32>(length, 0u);
    if ((child.w & 4u) != 0u) {
      subtrees = wide_sub(sums[start + length + child.z], sums[start + child.z]);
    }
    let whole = wide_product(product, subtrees);
    product = whole.low;
    passed = passed || any(whole.high != vec2<u32>(0u, 0u));
  }
  weights[item] = product;
  if (passed) {
    atomicOr(&flags[0], 1u);
  }
  if (is_centre && (product.x >= 0x40000000u || product.y > 0u)) {
    atomicOr(&flags[1], 1u);
  }
}
