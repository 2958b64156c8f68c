//! Options that every command takes.

use clap::{ArgAction, Args, ValueEnum};

/// Options that every command takes.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// Adapter to use: its number in `sublane devices` or a part of its name [default: SUBLANE_ADAPTER, or the best]
    #[arg(long, global = true, value_name = "NAME|INDEX")]
    pub adapter: Option<String>,
    /// Limits and features to use: what the adapter has, or WebGPU's defaults [default: native]
    #[arg(long, global = true, value_enum)]
    limits: Option<Limits>,
    /// Whether the tiles of matrix products and convolutions are measured
    #[arg(long, global = true, value_enum, default_value_t = Autotune::Off)]
    pub autotune: Autotune,
    /// Most device memory to use, such as 512M or 2G (powers of 1024)
    #[arg(long, global = true, value_name = "SIZE", value_parser = size_bytes, allow_negative_numbers = true)]
    pub memory_limit: Option<u64>,
    /// Seed of everything random
    #[arg(long, global = true, value_name = "N", default_value_t = 0, value_parser = seed, allow_negative_numbers = true)]
    pub seed: u64,
    /// Print one JSON object instead of text
    #[arg(long, global = true)]
    pub json: bool,
    /// Say more on standard error; twice for yet more
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub verbose: u8,
    /// Say only errors on standard error
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
}

/// Values of `--limits`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Limits {
    /// What the adapter has
    Native,
    /// WebGPU's default limits and no optional feature
    Webgpu,
}

impl Limits {
    /// Name on the command line and in reports.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Limits::Native => "native",
            Limits::Webgpu => "webgpu",
        }
    }
}

/// Values of `--autotune`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Autotune {
    /// Choices measured before are used, nothing is measured
    Off,
    /// What was not measured before is
    On,
    /// Everything is measured anew, all candidates, whatever it takes
    Exhaustive,
}

impl Autotune {
    /// The tuner's name of it.
    pub(super) const fn mode(self) -> sublane::compiler::tune::Autotune {
        use sublane::compiler::tune::Autotune as Mode;
        match self {
            Autotune::Off => Mode::Off,
            Autotune::On => Mode::On,
            Autotune::Exhaustive => Mode::Exhaustive,
        }
    }
}

impl Options {
    /// Limits and features to use.
    pub(super) fn limits(&self) -> Limits {
        self.limits.unwrap_or(Limits::Native)
    }

    /// Says which options change nothing because `what` uses no adapter.
    pub(super) fn without_adapter(&self, what: &str) {
        let given = [
            ("--adapter", self.adapter.is_some()),
            ("--limits", self.limits.is_some()),
            ("--autotune", self.autotune != Autotune::Off),
            ("--memory-limit", self.memory_limit.is_some()),
        ];
        let given: Vec<&str> = given.into_iter().filter_map(|(name, given)| given.then_some(name)).collect();
        if !given.is_empty() {
            log::warn!("`{what}` uses no adapter: {} has no effect here", given.join(", "));
        }
    }

    /// Starts the log on standard error; `RUST_LOG` overrides `-v` and `-q`.
    pub(super) fn start_logging(&self) {
        let level = match (self.quiet, self.verbose) {
            (true, _) => "error",
            (_, 0) => "warn,wgpu_core=error,wgpu_hal=error,naga=error",
            (_, 1) => "warn,sublane=info",
            _ => "warn,sublane=debug",
        };
        env_logger::Builder::from_env(env_logger::Env::default().default_filter_or(level)).init();
    }
}

fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "give a whole number from 0 to 2^64 - 1".into())
}

/// Bytes of a size such as `4096`, `512M` or `1.5GiB`.
fn size_bytes(text: &str) -> Result<u64, String> {
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let shift = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return Err(format!("`{unit}` is no unit; use K, M, G or T")),
    };
    let number: f64 = number.trim().parse().map_err(|_| "give a number and a unit, such as 512M".to_string())?;
    let bytes = number * (1u64 << shift) as f64;
    if (1.0..=9.0e18).contains(&bytes) { Ok(bytes as u64) } else { Err("give a size between one byte and 8388608T".into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_powers_of_1024() {
        assert_eq!(size_bytes("4096"), Ok(4096));
        assert_eq!(size_bytes("512M"), Ok(512 << 20));
        assert_eq!(size_bytes("1.5 GiB"), Ok(3 << 29));
        for wrong in ["", "M", "-1", "0", "nan", "inf", "1X", "1e30"] {
            assert!(size_bytes(wrong).is_err(), "{wrong}");
        }
    }
}
