//! Samples of everything this crate generates: what `kernels list` shows and what the tests put through every backend's writer.

mod fused;
mod heroes;

use crate::{KernelSource, Result, Target, probes};

/// A family of generated kernels: its name and the samples it has for a target.
pub type Family = (&'static str, fn(&Target) -> Result<Vec<KernelSource>>);

/// Every family. What generates kernels adds its line here.
pub const FAMILIES: &[Family] = &[
    ("probe", |_| Ok(probes::all())),
    ("pointwise", fused::pointwise),
    ("reduction", fused::reductions),
    ("matrix product", heroes::products),
    ("convolution", heroes::convolutions),
    ("attention", heroes::attentions),
];

/// All samples for `target`, as (family, kernel).
pub fn kernels(target: &Target) -> Result<Vec<(&'static str, KernelSource)>> {
    let mut all = Vec::new();
    for (family, samples) in FAMILIES {
        all.extend(samples(target)?.into_iter().map(|kernel| (*family, kernel)));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validate;
    use std::collections::BTreeSet;

    #[test]
    fn every_sample_passes_every_writer_under_a_name_of_its_own() {
        for target in Target::presets() {
            let mut names = BTreeSet::new();
            for (family, kernel) in kernels(&target).expect("generated") {
                validate::validate(&kernel, &target).unwrap_or_else(|e| panic!("{family}: {e}"));
                assert!(names.insert(kernel.name.clone()), "two kernels are named `{}`", kernel.name);
            }
        }
    }

    #[test]
    fn samples_read_64_bits_at_once_where_that_pays() {
        let target = Target { int64: true, ..Target::software() };
        let all = kernels(&target).expect("generated");
        for (family, kernel) in &all {
            validate::validate(kernel, &target).unwrap_or_else(|e| panic!("{family}: {e}"));
        }
        for wanted in ["pointwise", "reduction"] {
            assert!(all.iter().any(|(family, kernel)| *family == wanted && kernel.features.int64), "no {wanted} reads 64 bits");
        }
    }

    #[test]
    fn generation_is_a_function_of_its_arguments() {
        for target in Target::presets() {
            assert_eq!(kernels(&target).expect("generated"), kernels(&target).expect("generated"));
        }
    }
}
