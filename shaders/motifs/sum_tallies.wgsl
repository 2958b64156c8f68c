// Adds up what the invocations of `count_chains` have counted, and clears it for the next sum. One workgroup for each replicate.
#import tally
#import wide

struct Params {
  num_lanes: u32,
  // Neighbouring invocations that worked for one replicate.
  team: u32,
  // Which total the first workgroup sets.
  total: u32,
}

@group(0) @binding(0) var<storage, read_write> state: array<u32>;
// Ten words a total: sum (2), squares (4), valid (2), nonzero (2).
@group(0) @binding(1) var<storage, read_write> totals: array<u32>;
@group(0) @binding(2) var<uniform> params: Params;

const GROUP = 256u;

var<workgroup> tallies: array<Tally, GROUP>;

@compute @workgroup_size(256)
fn sum_tallies(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  var tally = Tally();
  for (var lane = wid.x * params.team + local; lane < (wid.x + 1u) * params.team; lane += GROUP) {
    var words: array<u32, 10>;
    for (var w = 0u; w < 10u; w += 1u) {
      words[w] = state[w * params.num_lanes + lane];
      state[w * params.num_lanes + lane] = 0u;
    }
    tally = tally_add(tally, tally_of(words));
  }
  tallies[local] = tally;
  workgroupBarrier();
  for (var half = GROUP / 2u; half > 0u; half /= 2u) {
    if (local < half) {
      tallies[local] = tally_add(tallies[local], tallies[local + half]);
    }
    workgroupBarrier();
  }
  if (local == 0u) {
    var words = tally_words(tallies[0]);
    for (var w = 0u; w < 10u; w += 1u) {
      totals[(params.total + wid.x) * 10u + w] = words[w];
    }
  }
}
