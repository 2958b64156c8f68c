//! The autotuner: what may win, on runners that misbehave and on the adapter of the machine.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use sublane::capture::capture;
use sublane::compiler::tune::{Autotune, Choice, Loaded, Measured, Runner, Tuner};
use sublane::compiler::{CompileOptions, Tuning, compile};
use sublane::device::{Device, DeviceOptions};
use sublane::graph::Graph;
use sublane::kernels_gen::Target;
use sublane::ops::attention::Attention;
use sublane::ops::conv::Conv;
use sublane::ops::prelude::*;
use sublane::ops::window::Padding;
use sublane::plan::{ExecutionPlan, SlotId};
use sublane::progress::{Cancel, Work};
use sublane::{DType, Error, ErrorKind, HostTensor, Result, Session};

const M: usize = 64;
const N: usize = 96;
const K: usize = 40;

fn product() -> Graph {
    capture(|t| t.input("a", [M, K], DType::F32)?.matmul(&t.input("b", [K, N], DType::F32)?)?.relu()).expect("captured")
}

/// How a candidate behaves.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Behaviour {
    /// Gives the product, rounded to f32, in so many microseconds.
    Right(u64),
    /// Gives one element that is off.
    OneElementOff,
    /// Gives a NaN.
    Nan,
    /// Writes nothing.
    Silent,
    /// Does not load.
    Fails(ErrorKind),
}
use Behaviour::*;

/// Computes the product on the host; candidates behave as the list says, in the order they are first loaded, and the last goes on.
struct Fake {
    behaviours: Vec<Behaviour>,
    known: RefCell<Vec<String>>,
    loads: Cell<usize>,
}

impl Fake {
    fn new(behaviours: &[Behaviour]) -> Self {
        Fake { behaviours: behaviours.to_vec(), known: RefCell::default(), loads: Cell::new(0) }
    }
}

struct FakePlan {
    behaviour: Behaviour,
    slots: RefCell<Vec<Vec<u8>>>,
}

impl Runner for Fake {
    fn load(&self, plan: &ExecutionPlan) -> Result<Box<dyn Loaded + '_>> {
        plan.verify()?;
        self.loads.set(self.loads.get() + 1);
        let (mut known, name) = (self.known.borrow_mut(), &plan.kernels[0].name);
        let at = known.iter().position(|k| k == name).unwrap_or_else(|| {
            known.push(name.clone());
            known.len() - 1
        });
        let behaviour = self.behaviours[at.min(self.behaviours.len() - 1)];
        if let Fails(kind) = behaviour {
            return Err(Error::new(kind, "does not load"));
        }
        Ok(Box::new(FakePlan { behaviour, slots: RefCell::new(vec![Vec::new(); plan.slots.len()]) }))
    }
}

impl Loaded for FakePlan {
    fn write(&self, slot: SlotId, bytes: &[u8]) -> Result<()> {
        self.slots.borrow_mut()[slot.0 as usize] = bytes.to_vec();
        Ok(())
    }

    fn run(&self, output: SlotId) -> Result<Vec<u8>> {
        let slots = self.slots.borrow();
        let [a, b] = [0, 1].map(|slot| bytemuck::pod_collect_to_vec::<u8, f32>(&slots[slot]));
        let mut out: Vec<f32> = Vec::new();
        for (i, j) in (0..M).flat_map(|i| (0..N).map(move |j| (i, j))) {
            let sum: f64 = (0..K).map(|k| f64::from(a[i * K + k]) * f64::from(b[k * N + j])).sum();
            out.push(sum.max(0.0) as f32);
        }
        match self.behaviour {
            OneElementOff => out[M * N / 2 + 1] += 0.05,
            Nan => out[7] = f32::NAN,
            Silent => return Ok(slots[output.0 as usize].clone()),
            _ => {}
        }
        Ok(bytemuck::cast_slice(&out).to_vec())
    }

    fn time(&self, _runs: usize) -> Result<Duration> {
        Ok(match self.behaviour {
            Right(us) => Duration::from_micros(us),
            _ => Duration::from_micros(1),
        })
    }
}

fn tuned(runner: &dyn Runner, autotune: Autotune, tuning: &mut Tuning) -> Result<Vec<Measured>> {
    tuned_as(runner, autotune, tuning, &Work::quiet())
}

fn tuned_as(runner: &dyn Runner, autotune: Autotune, tuning: &mut Tuning, work: &Work<'_>) -> Result<Vec<Measured>> {
    let (target, options) = (&Target::software(), &CompileOptions::default());
    Tuner { target, options, autotune, seed: 7, runner, work }.tune(&product(), tuning)
}

fn one(behaviours: &[Behaviour]) -> (Measured, Tuning) {
    let mut tuning = Tuning::default();
    let mut found = tuned(&Fake::new(behaviours), Autotune::On, &mut tuning).expect("tuned");
    assert_eq!(found.len(), 1);
    (found.remove(0), tuning)
}

#[test]
fn a_wrong_candidate_never_wins_however_fast() {
    for wrong in [OneElementOff, Nan, Silent] {
        let (found, tuning) = one(&[Right(1000), wrong, Right(990)]);
        let choice = found.choice.expect("chosen");
        assert_eq!(choice.config, found.table, "{wrong:?}");
        assert_eq!(found.skipped.len(), 1, "{wrong:?}");
        assert!(found.skipped[0].reason.contains("differ") || found.skipped[0].reason.contains("element"), "{:?}", found.skipped);
        assert_eq!(tuning.get(&found.key), Some(&choice));
    }
}

#[test]
fn a_failing_candidate_is_skipped_and_the_others_go_on() {
    for kind in [ErrorKind::OutOfMemory, ErrorKind::Shader, ErrorKind::Limit] {
        let (found, _) = one(&[Right(1000), Fails(kind), Right(800)]);
        let choice = found.choice.expect("chosen");
        assert!(choice.config != found.table && choice.table_ns == 1_000_000 && choice.ns == 800_000, "{choice:?}");
        assert_eq!(found.skipped.iter().map(|s| s.reason.as_str()).collect::<Vec<_>>(), ["does not load"]);
    }
}

#[test]
fn a_tie_keeps_the_choice_of_the_table() {
    let (found, _) = one(&[Right(1000), Right(980), Right(1000)]);
    assert_eq!(found.choice.as_ref().expect("chosen").config, found.table);
    assert!(found.candidates > 3, "{found:?}");
}

#[test]
fn a_table_choice_that_is_wrong_is_noted_and_nothing_is_chosen() {
    let (found, tuning) = one(&[OneElementOff, Right(10)]);
    assert_eq!((found.choice, tuning.len()), (None, 0));
    assert!(found.skipped[0].reason.contains("reference"), "{:?}", found.skipped);
}

#[test]
fn a_lost_device_ends_the_tuning_and_a_cancellation_does() {
    let mut tuning = Tuning::default();
    let lost = Fake::new(&[Right(1000), Fails(ErrorKind::DeviceLost)]);
    assert_eq!(tuned(&lost, Autotune::On, &mut tuning).expect_err("lost").kind(), ErrorKind::DeviceLost);
    let cancel = Cancel::new();
    cancel.cancel();
    let stopped = tuned_as(&Fake::new(&[Right(1)]), Autotune::On, &mut tuning, &Work::new(&(), cancel));
    assert_eq!(stopped.expect_err("cancelled").kind(), ErrorKind::Cancelled);
    assert!(tuning.is_empty());
}

#[test]
fn what_is_known_is_not_measured_unless_everything_is() {
    let fake = Fake::new(&[Right(1000), Right(500), Right(1000)]);
    let mut tuning = Tuning::default();
    assert!(tuned(&fake, Autotune::Off, &mut tuning).expect("nothing").is_empty() && fake.loads.get() == 0);
    let first = tuned(&fake, Autotune::On, &mut tuning).expect("tuned").remove(0);
    let loads = fake.loads.get();
    assert!(tuned(&fake, Autotune::On, &mut tuning).expect("known").is_empty());
    assert_eq!(fake.loads.get(), loads);
    let all = tuned(&fake, Autotune::Exhaustive, &mut tuning).expect("tuned").remove(0);
    assert!(all.candidates > first.candidates && fake.loads.get() > loads);
    // A choice that is no candidate any more is measured anew.
    tuning.insert(first.key.clone(), Choice { config: "of another version".into(), ns: 1, table_ns: 1 });
    assert_eq!(tuned(&fake, Autotune::On, &mut tuning).expect("tuned").len(), 1);
}

#[test]
fn a_compilation_takes_what_was_chosen_and_says_so() {
    let target = Target::software();
    let mut tuning = Tuning::default();
    tuned(&Fake::new(&[Right(1000), Right(500), Right(1000)]), Autotune::On, &mut tuning).expect("tuned");
    let plain = compile(&product(), &target, &CompileOptions::default()).expect("compiles");
    let options = CompileOptions { tuning: tuning.clone(), keep_stages: true, ..CompileOptions::default() };
    let compiled = compile(&product(), &target, &options).expect("compiles");
    let [before, after] = [&plain, &compiled].map(|c| c.kernels()[0].choice.clone().expect("a hero"));
    assert!(!before.tuned && after.tuned && before.config != after.config && before.key == after.key);
    assert_eq!(after.config, tuning.get(&after.key).expect("known").config);
    assert_ne!(plain.plan().kernels, compiled.plan().kernels);
    let loops = compiled.stages().iter().find(|s| s.name == "lower").and_then(|s| s.text.clone()).expect("kept");
    assert!(loops.contains(&format!("chosen by measurement: {}", after.config)), "{loops}");
    // A choice that is no candidate leaves the table's.
    tuning.insert(after.key, Choice { config: "nonsense".into(), ns: 1, table_ns: 1 });
    let options = CompileOptions { tuning, ..CompileOptions::default() };
    assert_eq!(compile(&product(), &target, &options).expect("compiles").kernels()[0].choice, Some(before));
}

#[test]
fn attention_is_tuned_on_the_adapter() {
    let device = Device::open(&DeviceOptions::from_env()).expect("a device");
    let graph = capture(|t| {
        let (q, k) = (t.input("q", [2, 20, 16], DType::F32)?, t.input("k", [2, 33, 16], DType::F32)?);
        let mask = t.input("mask", [20, 33], DType::F32)?;
        q.attention(&k, &k, Some(&mask), Attention { scale: None, causal: true })
    })
    .expect("captured");
    let (target, work, options) = (&device.target(), &Work::quiet(), CompileOptions::default());
    let mut tuning = Tuning::default();
    let tuner = Tuner { target, options: &options, autotune: Autotune::On, seed: 3, runner: &device, work };
    let found = tuner.tune(&graph, &mut tuning).expect("tuned");
    let [measured] = &found[..] else { panic!("one attention: {found:?}") };
    assert!(measured.choice.is_some(), "{measured:?}");
    assert!(measured.skipped.iter().all(|s| s.reason.contains("limit of time")), "{measured:?}");
}

#[test]
fn heroes_are_tuned_with_all_that_is_fused_with_them_on_the_adapter() {
    let device = Device::open(&DeviceOptions::from_env()).expect("a device");
    let graph = capture(|t| {
        let weights = HostTensor::new([5, 3, 3, 3], (0..135).map(|i| (i as f32 * 0.37).sin()).collect::<Vec<f32>>())?;
        let x = t.input("x", [2, 3, 13, 20], DType::F32)?;
        let scale = t.input("scale", [20, 33], DType::F32)?;
        let spec = Conv { padding: Padding::symmetric(&[1, 1]), ..Conv::new(2) };
        let image = x.conv(&t.constant(weights)?, None, spec)?;
        let rows = image.relu()?.reshape(&[130, 20])?;
        rows.matmul(&scale.transpose(&[1, 0])?.transpose(&[1, 0])?)?.abs()?.sqrt()
    })
    .expect("captured");
    let mut tuning = Tuning::default();
    let options = CompileOptions::default();
    let (target, work) = (&device.target(), &Work::quiet());
    let tuner = Tuner { target, options: &options, autotune: Autotune::On, seed: 3, runner: &device, work };
    let found = tuner.tune(&graph, &mut tuning).expect("tuned");
    assert_eq!(found.len(), 2);
    for measured in &found {
        assert!(measured.choice.is_some(), "{measured:?}");
        // Nothing fails; on a busy machine time may end before the candidates do.
        assert!(measured.skipped.iter().all(|s| s.reason.contains("limit of time")), "{measured:?}");
    }
    let tuned = compile(&graph, &device.target(), &CompileOptions { tuning, ..options.clone() }).expect("compiles");
    assert_eq!(tuned.kernels().iter().filter(|k| k.choice.as_ref().is_some_and(|c| c.tuned)).count(), 2);
    let x = HostTensor::new([2, 3, 13, 20], (0..1560).map(|i| (i as f32 * 0.11).cos()).collect::<Vec<f32>>()).expect("x");
    let scale = HostTensor::new([20, 33], (0..660).map(|i| (i as f32 * 0.23).cos()).collect::<Vec<f32>>()).expect("scale");
    let run = |compiled| {
        let session = Session::load(&device, compiled).expect("loads");
        session.run(&[("x", &x), ("scale", &scale)]).expect("runs").single().expect("one").to_f64()
    };
    let plain = compile(&graph, &device.target(), &options).expect("compiles");
    assert!(sublane::stats::relative_error(&run(&tuned), &run(&plain)) < 1e-5);
}
