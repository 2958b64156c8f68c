//! Kernels and twins against the definition: every valid pair of rule and code. Those on the device need an adapter.

use kernels_gen::Target;
use kernels_gen::threefry::Key;

use crate::bitset::account::{ChannelTally, Tally};
use crate::bitset::cases::{GEOMETRIES, Inputs, RULES, Spec};
use crate::bitset::encoding::Encoding;
use crate::bitset::gpu::{LayerKernels, Prepared};
use crate::bitset::host::HostLayer;
use crate::bitset::layer::Geometry;
use crate::bitset::reference::{self, Outcome};
use crate::bitset::rule::Rule;
use crate::bitset::{LayerCase, TWINS};
use crate::device::{Device, DeviceOptions, Executor, LimitsMode};
use crate::plan::host as twin_host;

/// Every valid pair with 2 to 8 bits exhaustively, then some with 12 and 16, on all shapes in turn.
fn specs() -> Vec<Spec> {
    let mut specs = Vec::new();
    let mut add = |bits: u32, encoding: Encoding, rule: Rule, geometry: Geometry| {
        let n = specs.len() as u64;
        let (with_residual, audit) = (n.is_multiple_of(3), n.is_multiple_of(2));
        specs.push(Spec { geometry, bits, encoding, rule, batch: 2 + (n % 3) as usize, with_residual, audit, key: Key::new(n) });
    };
    for bits in (2..=8).chain([12, 16]) {
        for (at, rule) in RULES.into_iter().enumerate() {
            for &encoding in rule.encodings() {
                let (few, sampled) = (bits <= 8, at + bits as usize);
                let shapes = if few { GEOMETRIES.to_vec() } else { vec![GEOMETRIES[sampled % 5], GEOMETRIES[4]] };
                for geometry in shapes.into_iter().filter(|_| rule.check(encoding, bits).is_ok()) {
                    add(bits, encoding, rule, geometry);
                }
            }
        }
    }
    specs
}

/// What the output of a case must be.
fn expected(spec: &Spec, prepared: &Prepared, outcome: &Outcome) -> (Vec<i64>, Vec<ChannelTally>, Vec<u64>) {
    let (positions, outputs) = (spec.geometry.positions(), spec.geometry.outputs);
    let results: Vec<i64> = (0..outcome.exact.len()).map(|at| outcome.result(at)).collect();
    let mut tallies = vec![ChannelTally::default(); outputs];
    for (at, &steps) in outcome.steps.iter().enumerate() {
        let value = if spec.audit { outcome.exact[at] } else { results[at] };
        tallies[at / positions % outputs].count(steps, outcome.is_stopped(at), value);
    }
    assert_eq!(prepared.all_steps(), outcome.all_steps);
    let of_group = outputs / spec.geometry.groups;
    let locks = [1, 3, 64].map(|lanes| {
        let mut sum = 0;
        for image in outcome.steps.chunks(outputs * positions) {
            for position in 0..positions {
                for group in 0..spec.geometry.groups {
                    let channels: Vec<usize> = (group * of_group..(group + 1) * of_group).collect();
                    let most = |c: &[usize]| c.iter().map(|c| u64::from(image[c * positions + position])).max().unwrap_or(0);
                    sum += channels.chunks(lanes).map(most).sum::<u64>();
                }
            }
        }
        sum
    });
    (results, tallies, locks.to_vec())
}

/// Compares the words of a case's output with the definition; returns the counts.
fn compare(spec: &Spec, case: &LayerCase, prepared: &Prepared, words: &[u32]) -> Tally {
    let Inputs { layer, thresholds, activations, residual } = spec.inputs();
    let outcome = reference::run(&layer, spec.encoding, spec.rule, thresholds.as_ref(), &activations, residual.as_deref()).expect("runs");
    let (results, tallies, locks) = expected(spec, prepared, &outcome);
    let (wide, name) = (if prepared.is_wide() { 2 } else { 1 }, &case.name);
    let value = |words: &[u32]| {
        if words.len() == 2 { (u64::from(words[0]) | u64::from(words[1]) << 32) as i64 } else { i64::from(words[0] as i32) }
    };
    let (values, rest) = words.split_at(wide * results.len());
    let measured: Vec<i64> = values.chunks(wide).map(value).collect();
    assert_eq!(measured, results, "{name}");
    let bytes =
        |part: &str| case.plan.slots.iter().filter(|slot| slot.name == part).map(|slot| slot.bytes as usize / 4).collect::<Vec<_>>();
    let (counts, mut rest) = rest.split_at(bytes("bitset.tallies")[0]);
    assert_eq!(prepared.tallies(spec.batch, counts), tallies, "{name}");
    for (size, lock) in bytes("bitset.lock_steps").into_iter().zip(locks) {
        assert_eq!(Prepared::lock_steps(&rest[..size]), lock, "{name}");
        rest = &rest[size..];
    }
    let tally = Tally::of_outcome(&layer, spec.encoding, spec.rule, &outcome);
    if spec.rule.is_exact() {
        let plain = reference::run(&layer, Encoding::Pm1, Rule::None, None, &activations, residual.as_deref()).expect("runs");
        let relu = |outcome: &Outcome| (0..outcome.exact.len()).map(|at| outcome.result(at).max(0)).collect::<Vec<_>>();
        assert_eq!(relu(&outcome), relu(&plain), "{name}: exact rules change nothing");
        assert!(tally.ops_saved() <= tally.ceiling() && tally.all.killed == 0, "{name}: {} of {}", tally.ops_saved(), tally.ceiling());
    }
    tally
}

#[test]
fn twins_are_the_definition_for_all_pairs() {
    let kernels = LayerKernels::new(&Target::webgpu()).expect("valid");
    let (mut saved, mut killed, mut wide) = (std::collections::BTreeMap::new(), 0, 0);
    for spec in specs() {
        let (case, prepared) = spec.case(&kernels).expect("fits");
        let mut slots = twin_host::allocate(&case.plan);
        for (slot, words) in &case.inputs {
            slots[slot.0 as usize][..words.len()].copy_from_slice(words);
        }
        twin_host::run(&case.plan, &mut slots, TWINS).expect("runs");
        let tally = compare(&spec, &case, &prepared, &slots[case.output.0 as usize]);
        *saved.entry(spec.rule.name()).or_insert(0) += tally.all.stopped;
        killed += tally.all.killed;
        wide += usize::from(prepared.is_wide());
    }
    assert!(saved.iter().all(|(rule, &stopped)| (*rule == "none") == (stopped == 0)), "{saved:?}");
    assert!(killed > 0 && wide > 10, "{killed} outputs are killed, {wide} layers have 64-bit sums");
}

#[test]
fn the_processor_is_the_definition_for_all_pairs() {
    for spec in specs() {
        let Inputs { layer, thresholds, activations, residual } = spec.inputs();
        let (thresholds, residual) = (thresholds.as_ref(), residual.as_deref());
        let outcome = reference::run(&layer, spec.encoding, spec.rule, thresholds, &activations, residual).expect("runs");
        let prepared = Prepared::new(&layer, spec.encoding, spec.rule, thresholds, spec.with_residual).expect("valid");
        let host = HostLayer::new(&layer, spec.encoding, spec.rule, thresholds, spec.with_residual).expect("valid");
        let found = host.run(&activations, residual, spec.audit, &[1, 3, 64]).expect("runs");
        let (results, tallies, locks) = expected(&spec, &prepared, &outcome);
        let words: Vec<i32> = match host.is_wide() {
            true => results.iter().flat_map(|&value| [value as i32, (value >> 32) as i32]).collect(),
            false => results.iter().map(|&value| value as i32).collect(),
        };
        let name = format!("{} {} bits, {} {}", layer.geometry.outputs, spec.bits, spec.encoding, spec.rule);
        assert_eq!(found.results, words, "{name}");
        assert_eq!((found.channels, found.locks), (tallies, locks), "{name}");
    }
}

fn on_device(limits: LimitsMode) {
    let device = Device::open(&DeviceOptions { limits, ..DeviceOptions::from_env() }).expect("these tests need an adapter");
    let kernels = LayerKernels::new(&device.target()).expect("valid");
    for spec in specs() {
        let (case, prepared) = spec.case(&kernels).expect("fits");
        let executor = Executor::load(&device, &case.plan).expect("loads");
        let inputs: Vec<_> = case.inputs.iter().map(|(slot, words)| (*slot, bytemuck::cast_slice(words))).collect();
        let bytes = executor.run(&inputs, &[case.output]).expect("runs");
        compare(&spec, &case, &prepared, bytemuck::cast_slice(&bytes[0]));
    }
}

#[test]
fn kernels_are_the_definition_for_all_pairs() {
    on_device(LimitsMode::Native);
}

#[test]
fn kernels_are_the_definition_at_the_limits_of_webgpu() {
    on_device(LimitsMode::Webgpu);
}

#[test]
fn batches_that_do_not_fit_are_refused_with_the_largest_that_does() {
    let spec = |batch| Spec {
        geometry: GEOMETRIES[0],
        bits: 8,
        encoding: Encoding::Pm1,
        rule: Rule::R0,
        batch,
        with_residual: false,
        audit: false,
        key: Key::new(1),
    };
    let kernels = LayerKernels::new(&Target { max_binding_bytes: 40_000, ..Target::webgpu() }).expect("valid");
    let error = spec(60).case(&kernels).expect_err("refused");
    assert_eq!(error.kind(), crate::ErrorKind::Limit);
    let most: usize =
        error.to_string().split("at most ").nth(1).and_then(|s| s.split(' ').next()).and_then(|s| s.parse().ok()).expect("named");
    spec(most).case(&kernels).expect("fits");
    assert!(spec(0).case(&kernels).expect_err("refused").to_string().contains("at least 1 image"));
    // A batch of one, and of a thousand.
    let roomy = LayerKernels::new(&Target::webgpu()).expect("valid");
    for batch in [1, 1_000] {
        let spec = spec(batch);
        let (case, prepared) = spec.case(&roomy).expect("fits");
        let mut slots = twin_host::allocate(&case.plan);
        for (slot, words) in &case.inputs {
            slots[slot.0 as usize][..words.len()].copy_from_slice(words);
        }
        twin_host::run(&case.plan, &mut slots, TWINS).expect("runs");
        compare(&spec, &case, &prepared, &slots[case.output.0 as usize]);
    }
}
