//! Hand-written kernels against their twins: one plan, run on a device and on the processor, compared.

use crate::bitset::{LayerCase, layer_cases};
use crate::device::{Device, Executor};
use crate::error::Result;
use crate::plan::{Command, ExecutionPlan, SlotId, SlotRole, fold_workgroups, host};
use crate::shaders::{self, twins::Twin};
use crate::stats::relative_error;
use kernels_gen::threefry::Key;
use kernels_gen::{KernelSource, Target};
use std::sync::Arc;

mod motifs;
mod trees;

/// The twins of every hand-written kernel.
pub fn twins() -> Vec<Twin> {
    [shaders::twins::TWINS, crate::motifs::TWINS, crate::bitset::TWINS].concat()
}

/// How near the device's words have to be to the twin's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Agreement {
    /// Every bit.
    Exact,
    /// As `f32`, relative in the Euclidean norm.
    Relative(f64),
}

/// A plan of hand-written kernels, with its inputs and the output that is compared.
pub struct TwinCase {
    /// Kernel, and what is special about the case.
    pub name: String,
    /// The plan.
    pub plan: ExecutionPlan,
    /// Words of its inputs.
    pub inputs: Vec<(SlotId, Vec<u32>)>,
    /// The slot that is compared.
    pub output: SlotId,
    /// How near it has to be.
    pub agreement: Agreement,
}

impl TwinCase {
    /// What the twins make of the output, in words.
    pub fn expected(&self) -> Result<Vec<u32>> {
        let mut slots = host::allocate(&self.plan);
        for (slot, words) in &self.inputs {
            slots[slot.0 as usize][..words.len()].copy_from_slice(words);
        }
        host::run(&self.plan, &mut slots, &twins())?;
        let mut words = std::mem::take(&mut slots[self.output.0 as usize]);
        words.truncate((self.plan.slots[self.output.0 as usize].bytes / 4) as usize);
        Ok(words)
    }

    /// What `device` makes of the output, in words.
    pub fn measured(&self, device: &Device) -> Result<Vec<u32>> {
        let executor = Executor::load(device, &self.plan)?;
        let inputs: Vec<(SlotId, &[u8])> = self.inputs.iter().map(|(slot, words)| (*slot, bytemuck::cast_slice(words))).collect();
        let outputs = executor.run(&inputs, &[self.output])?;
        Ok(outputs.first().map(|bytes| bytemuck::pod_collect_to_vec(bytes)).unwrap_or_default())
    }

    /// Runs the case on `device`; says where the device's output leaves the twin's, if it does.
    pub fn compare(&self, device: &Device) -> Result<Option<String>> {
        let (measured, expected) = (self.measured(device)?, self.expected()?);
        Ok(match self.agreement {
            Agreement::Exact => difference(&measured, &expected),
            Agreement::Relative(tolerance) => {
                let floats = |words: &[u32]| words.iter().map(|&w| f64::from(f32::from_bits(w))).collect::<Vec<_>>();
                let error = relative_error(&floats(&measured), &floats(&expected));
                (error > tolerance).then(|| format!("relative error {error:.2e}, at most {tolerance:.0e} is right"))
            }
        })
    }
}

fn difference(measured: &[u32], expected: &[u32]) -> Option<String> {
    if measured.len() != expected.len() {
        return Some(format!("{} words, {} are right", measured.len(), expected.len()));
    }
    let wrong = measured.iter().zip(expected).filter(|(m, e)| m != e).count();
    let at = measured.iter().zip(expected).position(|(m, e)| m != e)?;
    Some(format!("{wrong} of {} words are wrong, first word {at}: {:#010x}, {:#010x} is right", measured.len(), measured[at], expected[at]))
}

/// The cases of every hand-written kernel, for a device of that target.
pub fn cases(target: &Target, seed: u64) -> Result<Vec<TwinCase>> {
    let key = Key::new(seed);
    let carry = u64::from(u32::MAX) - 1;
    // One word more than 65,535 workgroups write, so that the dispatch folds; it stays below 128 MiB.
    let folded = 2 * 256 * 65_535 + 1;
    let shared = vec![
        threefry_fill("threefry_fill", target, "a carry of the index", key.stream(0), 4_099, carry)?,
        threefry_fill("threefry_fill", target, "past 65,535 workgroups", key.stream(1), folded, 0)?,
        threefry_fill("threefry_fill_uniform", target, "100,001 floats", key.stream(2), 100_001, 0)?,
        scale_add(target, "1 element", key.stream(3), 1)?,
        scale_add(target, "1,000,003 elements", key.stream(4), 1_000_003)?,
        gemm_reference(target, "48 x 272 x 20", key.stream(5), [48, 272, 20])?,
    ];
    let bitset = layer_cases(target, key.stream(8))?.into_iter().map(|case| {
        let LayerCase { name, plan, inputs, output } = case;
        TwinCase { name, plan, inputs, output, agreement: Agreement::Exact }
    });
    let motifs = motifs::cases(target, key.stream(6))?.into_iter().chain(trees::cases(target, key.stream(7))?);
    Ok(shared.into_iter().chain(motifs).chain(bitset).collect())
}

/// `count` words of `key`, from block `first` on.
pub fn threefry_fill(kernel: &str, target: &Target, what: &str, key: Key, count: u32, first: u64) -> Result<TwinCase> {
    let kernel = Arc::new(shaders::kernel(kernel, target)?);
    let mut plan = ExecutionPlan::new();
    let out = plan.slot("out", 4 * u64::from(count), SlotRole::Output);
    let [low, high] = key.words();
    let params = [count, low, high, first as u32, (first >> 32) as u32];
    plan.dispatch(&kernel, &[out], &params, grid(&kernel, target, u64::from(count).div_ceil(2))?);
    Ok(TwinCase { name: format!("{}, {what}", kernel.name), plan, inputs: Vec::new(), output: out, agreement: Agreement::Exact })
}

/// `y = scale * x + y` on `count` random elements of each.
pub fn scale_add(target: &Target, what: &str, key: Key, count: u32) -> Result<TwinCase> {
    let kernel = Arc::new(shaders::kernel("scale_add", target)?);
    let mut plan = ExecutionPlan::new();
    let bytes = 4 * u64::from(count);
    let x = plan.slot("x", bytes, SlotRole::Input);
    let y = plan.slot("y", bytes, SlotRole::Input);
    let out = plan.slot("out", bytes, SlotRole::Output);
    plan.commands.push(Command::Copy { from: y, from_offset: 0, to: out, to_offset: 0, bytes });
    plan.dispatch(&kernel, &[x, out], &[count, 2.5f32.to_bits()], grid(&kernel, target, u64::from(count))?);
    let random = |stream: Key| (0..u64::from(count)).map(|n| stream.uniform(n).to_bits()).collect::<Vec<u32>>();
    let inputs = vec![(x, random(key.stream(0))), (y, random(key.stream(1)))];
    // A driver may fuse the product and the sum, which rounds once instead of twice.
    Ok(TwinCase { name: format!("scale_add, {what}"), plan, inputs, output: out, agreement: Agreement::Relative(1e-6) })
}

/// The product of two random matrices; m and n are multiples of 16, k of 4.
pub fn gemm_reference(target: &Target, what: &str, key: Key, [m, n, k]: [u32; 3]) -> Result<TwinCase> {
    let kernel = Arc::new(shaders::kernel("gemm_reference", target)?);
    let mut plan = ExecutionPlan::new();
    let elems = |rows: u32, columns: u32| u64::from(rows) * u64::from(columns);
    let a = plan.slot("a", 4 * elems(m, k), SlotRole::Input);
    let b = plan.slot("b", 4 * elems(k, n), SlotRole::Input);
    let c = plan.slot("c", 4 * elems(m, n), SlotRole::Output);
    plan.dispatch(&kernel, &[a, b, c], &[m, n, k], [n.div_ceil(256), m.div_ceil(16), 1]);
    let random = |stream: Key, count: u64| (0..count).map(|n| stream.uniform(n).to_bits()).collect::<Vec<u32>>();
    let inputs = vec![(a, random(key.stream(0), elems(m, k))), (b, random(key.stream(1), elems(k, n)))];
    Ok(TwinCase { name: format!("gemm_reference, {what}"), plan, inputs, output: c, agreement: Agreement::Relative(1e-6) })
}

/// Workgroups that give each of `invocations` one.
fn grid(kernel: &KernelSource, target: &Target, invocations: u64) -> Result<[u32; 3]> {
    let per_group: u64 = kernel.workgroup_size.iter().map(|&n| u64::from(n)).product();
    fold_workgroups(invocations.div_ceil(per_group), target.max_workgroups_per_dim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_has_a_case_that_its_twin_runs() {
        let cases = cases(&Target::webgpu(), 1).expect("cases");
        for (shader, flags) in shaders::kernels() {
            let name = shader.name(flags);
            assert!(cases.iter().any(|c| c.plan.kernels.iter().any(|k| k.name == name)), "`{name}` has no case");
        }
        let small = cases.iter().find(|c| c.name.contains("1 element")).expect("in the list");
        let (x, y) = (f32::from_bits(small.inputs[0].1[0]), f32::from_bits(small.inputs[1].1[0]));
        assert_eq!(small.expected().expect("runs"), [(2.5 * x + y).to_bits()]);
    }

    #[test]
    fn a_difference_says_how_many_and_where() {
        assert_eq!(difference(&[1, 2], &[1, 2]), None);
        assert_eq!(difference(&[1], &[1, 2]).as_deref(), Some("1 words, 2 are right"));
        let found = difference(&[1, 5, 6], &[1, 2, 3]).expect("differs");
        assert_eq!(found, "2 of 3 words are wrong, first word 1: 0x00000005, 0x00000002 is right");
    }
}
