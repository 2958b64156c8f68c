//! Cases of the kernels in `shaders/motifs`.

use super::{Agreement, TwinCase, grid};
use crate::error::Result;
use crate::motifs::gpu::{NumberingCase, ScanKernels, Values, numbering_cases};
use crate::plan::{Command, ExecutionPlan, SlotRole};
use crate::shaders;
use kernels_gen::Target;
use kernels_gen::threefry::Key;
use std::sync::Arc;

mod rounds;

pub(super) fn cases(target: &Target, key: Key) -> Result<Vec<TwinCase>> {
    let mut cases = vec![wide_check(target, key.stream(0), 4_000)?];
    let of = |count, stride, offset, bits| Prefix { count, stride, offset, bits };
    for (stream, prefix) in
        (1..).zip([of(0, 1, 0, 40), of(1, 3, 1, 40), of(15, 1, 0, 40), of(16, 3, 2, 40), of(17, 1, 0, 40), of(257, 1, 3, 40)])
    {
        cases.push(scan("", target, key.stream(stream), prefix)?);
    }
    cases.push(scan("", target, key.stream(10), of(100_003, 3, 5, 40))?);
    // Their sum passes 2^64 once, near the end; within one chunk.
    cases.push(scan(", past 2^64", target, key.stream(11), of(1_200, 1, 0, 55))?);
    cases.push(scan(", past 2^64", target, key.stream(13), of(12, 2, 0, 64))?);
    let narrow = Target { max_workgroups_per_dim: 8, ..target.clone() };
    cases.push(scan(", in folded dispatches", &narrow, key.stream(12), of(100_003, 1, 0, 40))?);
    let numbering = |NumberingCase { name, plan, inputs, output }| TwinCase { name, plan, inputs, output, agreement: Agreement::Exact };
    cases.extend(numbering_cases(target, key.stream(14))?.into_iter().map(numbering));
    cases.extend(rounds::cases(target, key.stream(15))?);
    Ok(cases)
}

/// The words of 64-bit numbers.
fn words(numbers: impl IntoIterator<Item = u64>) -> Vec<u32> {
    numbers.into_iter().flat_map(|n| [n as u32, (n >> 32) as u32]).collect()
}

/// Random number `n` of at most `bits` bits.
fn number(key: Key, n: u64, bits: u32) -> u64 {
    let [low, high] = key.block(n);
    (u64::from(low) | u64::from(high) << 32) >> (64 - bits)
}

/// 64-bit arithmetic and draws on all pairs of numbers at the edges and on `count` random pairs of all lengths.
fn wide_check(target: &Target, key: Key, count: u64) -> Result<TwinCase> {
    let kernel = Arc::new(shaders::kernel("wide_check", target)?);
    let near = |power: u32| [(1u64 << power) - 1, 1 << power, (1 << power) + 1];
    let mut edges: Vec<u64> = [0, 2, 10, u64::MAX - 1, u64::MAX].to_vec();
    edges.extend([1, 16, 24, 31, 32, 33, 48, 63].into_iter().flat_map(near));
    let mut pairs: Vec<u64> = edges.iter().flat_map(|&a| edges.iter().flat_map(move |&b| [a, b])).collect();
    for n in 0..count {
        let [a_bits, b_bits] = key.stream(0).block(n).map(|word| 1 + word % 64);
        pairs.extend([number(key.stream(1), n, a_bits), number(key.stream(2), n, b_bits)]);
        // Quotients at an edge: a product, and one less.
        let [a, b] = [number(key.stream(3), n, 1 + a_bits / 2), number(key.stream(4), n, 1 + b_bits / 2).max(1)];
        pairs.extend([a.wrapping_mul(b).wrapping_sub(n % 2), b]);
    }
    let count = pairs.len() as u64 / 2;
    let mut plan = ExecutionPlan::new();
    let input = plan.slot("pairs", 16 * count, SlotRole::Input);
    let output = plan.slot("out", 96 * count, SlotRole::Output);
    let [low, high] = key.stream(5).words();
    plan.dispatch(&kernel, &[input, output], &[count as u32, low, high], grid(&kernel, target, count)?);
    let name = format!("wide_check, {count} pairs");
    Ok(TwinCase { name, plan, inputs: vec![(input, words(pairs))], output, agreement: Agreement::Exact })
}

/// A prefix sum to try.
struct Prefix {
    count: u32,
    stride: u32,
    offset: u32,
    /// Values are below 2^bits.
    bits: u32,
}

/// A prefix sum; what lies between the values, and the flags, are compared too.
fn scan(what: &str, target: &Target, key: Key, prefix: Prefix) -> Result<TwinCase> {
    let Prefix { count, stride, offset, bits } = prefix;
    let room = u64::from(offset + (count + 1) * stride);
    let mut plan = ExecutionPlan::new();
    let input = plan.slot("values", 8 * room, SlotRole::Input);
    let output = plan.slot("out", 8 * room + 8, SlotRole::Output);
    let flags = plan.slot("flags", 8, SlotRole::Temp);
    plan.commands.push(Command::Copy { from: input, from_offset: 0, to: output, to_offset: 0, bytes: 8 * room });
    plan.commands.push(Command::Clear { slot: flags });
    ScanKernels::new(target)?.record(&mut plan, Values { slot: output, offset, stride, count }, (flags, 1))?;
    plan.commands.push(Command::Copy { from: flags, from_offset: 0, to: output, to_offset: 8 * room, bytes: 8 });
    let inputs = vec![(input, words((0..room).map(|n| number(key, n, bits))))];
    let name = format!("scan_sums and scan_apply, {count} values, stride {stride}{what}");
    Ok(TwinCase { name, plan, inputs, output, agreement: Agreement::Exact })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cases_reach_what_they_are_for() {
        let cases = cases(&Target::webgpu(), Key::new(1)).expect("cases");
        let flag = |case: &TwinCase| case.expected().expect("runs").last().copied();
        for case in cases.iter().filter(|case| case.name.starts_with("scan")) {
            assert_eq!(flag(case), Some(u32::from(case.name.ends_with("past 2^64"))), "{}", case.name);
        }
        let folded = cases.iter().find(|case| case.name.ends_with("folded dispatches")).expect("in the list");
        assert!(folded.plan.commands.iter().any(|c| matches!(c, Command::Dispatch { workgroups: [_, y, _], .. } if *y > 1)));
    }
}
