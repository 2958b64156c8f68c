//! Where the time of a run goes, by kernel.

use crate::compiler::{Compiled, KernelInfo};
use crate::device::Profile;
use crate::plan::Command;

/// All launches of one kernel in a run.
#[derive(Debug, Clone, PartialEq)]
pub struct KernelTime {
    /// Name of the kernel; `copy` and `clear` for those commands.
    pub name: String,
    /// Launches.
    pub calls: usize,
    /// Time of all of them, in milliseconds.
    pub ms: f64,
    /// Part of the time of all kernels.
    pub share: f64,
    /// Operations of the user's program that it takes part in.
    pub origins: Vec<String>,
}

/// A profile summed by kernel, the longest first.
pub fn kernel_times(compiled: &Compiled, profile: &Profile) -> Vec<KernelTime> {
    let mut launches = compiled.kernels().iter();
    // What each command is: kernels are listed in the order of the dispatches.
    let infos: Vec<(&str, Option<&KernelInfo>)> = compiled
        .plan()
        .commands
        .iter()
        .map(|command| match command {
            Command::Dispatch { .. } => {
                let info = launches.next();
                (info.map_or("kernel", |k| k.name.as_str()), info)
            }
            Command::Copy { .. } => ("copy", None),
            Command::Clear { .. } => ("clear", None),
        })
        .collect();
    let total: u64 = profile.commands.iter().map(|c| c.ns).sum();
    let mut times: Vec<KernelTime> = Vec::new();
    for time in &profile.commands {
        let Some(&(name, info)) = infos.get(time.command) else { continue };
        let at = times.iter().position(|t| t.name == name).unwrap_or_else(|| {
            times.push(KernelTime { name: name.into(), calls: 0, ms: 0.0, share: 0.0, origins: Vec::new() });
            times.len() - 1
        });
        let entry = &mut times[at];
        entry.calls += 1;
        entry.ms += time.ns as f64 / 1e6;
        entry.share += time.ns as f64 / total.max(1) as f64;
        for origin in info.iter().flat_map(|k| &k.origins) {
            if !entry.origins.contains(origin) {
                entry.origins.push(origin.clone());
            }
        }
    }
    times.sort_by(|a, b| b.ms.total_cmp(&a.ms));
    times
}
