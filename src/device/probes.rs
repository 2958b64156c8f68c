//! Measures an adapter: FMA rate, bandwidth, cost of dispatches and submissions.

use std::sync::Arc;
use std::time::Instant;

use kernels_gen::KernelSource;
use kernels_gen::probes::{self, FmaVariant, Traffic, WORKGROUP_INVOCATIONS};
use serde::Serialize;

use crate::device::{Clock, Device, Executor};
use crate::error::{Error, Result};
use crate::plan::{ExecutionPlan, SlotRole, fold_workgroups};
use crate::progress::Work;

/// Rate of one FMA kernel.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FmaProbe {
    /// Kernel: `probe_fma_<type>_c<chains>_u<unroll>`.
    pub name: String,
    /// Billions of floating-point operations a second; a multiply-add is two.
    pub gflops: f64,
}

/// What an adapter can do, measured. Bandwidths are in 10^9 bytes a second, for buffers of 16 MiB and of 128 MiB.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Probes {
    /// The clock of the kernels; dispatches and submissions are always timed by the host.
    pub clock: Clock,
    /// Best rate of the sixteen FMA kernels.
    pub fma_gflops: f64,
    /// The kernel that reached it.
    pub fma_best: String,
    /// All sixteen.
    pub fma: Vec<FmaProbe>,
    /// Best rate of dot products of four signed bytes, in 10^9 operations a second: eight each.
    pub dot4_gops: f64,
    /// One buffer read.
    pub read_gbps: [f64; 2],
    /// One buffer written.
    pub write_gbps: [f64; 2],
    /// One buffer copied to another; both count.
    pub copy_gbps: [f64; 2],
    /// Two buffers added into a third; all three count.
    pub r2w1_gbps: [f64; 2],
    /// Microseconds one more dispatch costs in a submission.
    pub dispatch_us: f64,
    /// Microseconds from a submission of one dispatch to its end.
    pub submission_us: f64,
}

/// Sizes of the buffers that bandwidth is measured with.
pub const BANDWIDTH_BYTES: [u64; 2] = [16 << 20, 128 << 20];

/// Operations of one invocation of a kernel that measures a rate of arithmetic.
const RATE_OPS: u64 = 1 << 16;
/// Factor and summand of multiply-adds: a factor below 1 and a positive summand, so that chains neither overflow nor sink into subnormals.
const FMA_OPERANDS: [u32; 2] = [0.75f32.to_bits(), 0.5f32.to_bits()];
/// The same of dot products: a word of four bytes, and a number that keeps the bits of chains changing.
const DOT_OPERANDS: [u32; 2] = [0x0305_fd07, 0x3579_bdf1];
/// Chains of the kernels that measure dot products.
const DOT_CHAINS: [u32; 3] = [2, 4, 8];
/// Shortest time, in nanoseconds, that counts as a measurement of a rate; shorter ones get more work.
const RATE_MIN_NS: u64 = 4_000_000;
/// Runs of which the median is taken.
const RUNS: usize = 5;
/// Time, in nanoseconds, after which a probe makes no more runs than it needs.
const LONG_NS: u64 = 200_000_000;
/// Dispatches of the dispatch probe.
const DISPATCHES: usize = 512;

impl Probes {
    /// Runs all probes; a few seconds on a software adapter.
    pub fn run(device: &Device, work: &Work<'_>) -> Result<Self> {
        let variants = FmaVariant::all();
        let part = work.part("multiply-add rate", variants.len() as u64);
        let mut fma = Vec::new();
        for variant in variants {
            let kernel = Arc::new(variant.kernel());
            fma.push(FmaProbe { name: kernel.name.clone(), gflops: rate(device, variant.flops_per_iteration(), &kernel, FMA_OPERANDS)? });
            part.advance(1)?;
        }
        let mut dot4_gops = 0.0f64;
        for chains in DOT_CHAINS {
            let kernel = Arc::new(probes::packed_dot(chains));
            let rate = rate(device, probes::packed_dot_ops_per_iteration(chains), &kernel, DOT_OPERANDS)?;
            dot4_gops = dot4_gops.max(rate);
        }
        let best = fma.iter().max_by(|a, b| a.gflops.total_cmp(&b.gflops));
        let best = best.cloned().ok_or_else(|| Error::internal("no FMA probe ran"))?;
        drop(part);
        let part = work.part("bandwidth", (Traffic::ALL.len() * BANDWIDTH_BYTES.len()) as u64);
        let mut gbps = [[0.0; 2]; 4];
        for (traffic, rates) in Traffic::ALL.into_iter().zip(&mut gbps) {
            let kernel = Arc::new(probes::bandwidth(traffic, device.target().wide_loads()));
            for (bytes, rate) in BANDWIDTH_BYTES.into_iter().zip(rates) {
                *rate = bandwidth_gbps(device, traffic, &kernel, bytes)?;
                part.advance(1)?;
            }
        }
        let [read_gbps, write_gbps, copy_gbps, r2w1_gbps] = gbps;
        drop(part);
        let part = work.part("dispatch and submission", 1);
        let (dispatch_us, submission_us) = launch_costs(device)?;
        part.advance(1)?;
        Ok(Probes {
            clock: device.info().clock,
            fma_gflops: best.gflops,
            fma_best: best.name,
            fma,
            dot4_gops,
            read_gbps,
            write_gbps,
            copy_gbps,
            r2w1_gbps,
            dispatch_us,
            submission_us,
        })
    }
}

/// 10^9 operations a second of a kernel that does nothing but arithmetic.
fn rate(device: &Device, ops_per_iteration: u64, kernel: &Arc<KernelSource>, [factor, summand]: [u32; 2]) -> Result<f64> {
    let bound = device.info().limits.max_loop_iterations.unwrap_or(u64::MAX);
    let iterations = (RATE_OPS / ops_per_iteration).min(bound.saturating_sub(1)) as u32;
    let mut workgroups: u32 = 64;
    loop {
        let mut plan = ExecutionPlan::new();
        let sink = plan.slot("sink", 16, SlotRole::Output);
        let params = [iterations, workgroups, factor, summand];
        plan.dispatch(kernel, &[sink], &params, [workgroups, 1, 1]);
        let executor = Executor::load(device, &plan)?;
        executor.profile(&[])?;
        let ns = time_ns(&executor)?;
        let most = device.info().limits.max_workgroups_per_dim;
        if ns < RATE_MIN_NS && workgroups < most {
            let factor = (RATE_MIN_NS / ns.max(1) + 1).clamp(2, 64) as u32;
            workgroups = workgroups.saturating_mul(factor).min(most);
            continue;
        }
        return Ok(kernel.flops.eval(&params) as f64 / median_ns(&executor)?.max(1) as f64);
    }
}

fn bandwidth_gbps(device: &Device, traffic: Traffic, kernel: &Arc<KernelSource>, bytes: u64) -> Result<f64> {
    let mut plan = ExecutionPlan::new();
    let slots: Vec<_> = (0..traffic.num_buffers())
        .map(|i| {
            let sink = traffic == Traffic::Read && i == 1;
            plan.slot(format!("buffer {i}"), if sink { 16 } else { bytes }, SlotRole::State)
        })
        .collect();
    let vecs = u32::try_from(bytes / 16).map_err(|_| Error::internal("a bandwidth probe past 32 bits"))?;
    let groups = u64::from(vecs).div_ceil(u64::from(WORKGROUP_INVOCATIONS * traffic.vecs_per_invocation()));
    let workgroups = fold_workgroups(groups, device.info().limits.max_workgroups_per_dim)?;
    plan.dispatch(kernel, &slots, &[vecs], workgroups);
    let executor = Executor::load(device, &plan)?;
    // The driver compiles the kernel and touches the memory in a run that does not count.
    executor.profile(&[])?;
    Ok(kernel.bytes.eval(&[vecs]) as f64 / median_ns(&executor)?.max(1) as f64)
}

/// Time of the kernels of a plan.
fn time_ns(executor: &Executor) -> Result<u64> {
    Ok(executor.profile(&[])?.commands.iter().map(|c| c.ns).sum())
}

/// Median of [`time_ns`] over [`RUNS`], or over the fewest that have a median where those take long.
fn median_ns(executor: &Executor) -> Result<u64> {
    let mut times = Vec::with_capacity(RUNS);
    while times.len() < RUNS && (times.len() < 3 || times.iter().sum::<u64>() < LONG_NS) {
        times.push(time_ns(executor)?);
    }
    Ok(median(times))
}

fn median(mut times: Vec<u64>) -> u64 {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or(0)
}

/// Microseconds of one more dispatch, and of a submission of one.
fn launch_costs(device: &Device) -> Result<(f64, f64)> {
    let kernel = Arc::new(probes::tiny());
    let time = |dispatches: usize| -> Result<f64> {
        let mut plan = ExecutionPlan::new();
        let count = plan.slot("count", 16, SlotRole::State);
        for _ in 0..dispatches {
            plan.dispatch(&kernel, &[count], &[], [1, 1, 1]);
        }
        let executor = Executor::load(device, &plan)?;
        let mut times = Vec::new();
        for _ in 0..=2 * RUNS {
            let start = Instant::now();
            executor.enqueue(&[])?;
            device.wait_idle()?;
            times.push(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX));
        }
        times.remove(0);
        Ok(median(times) as f64 / 1e3)
    };
    let (one, many) = (time(1)?, time(DISPATCHES)?);
    let dispatch_us = ((many - one) / (DISPATCHES - 1) as f64).max(0.0);
    Ok((dispatch_us, one))
}
