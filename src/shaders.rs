//! The table of hand-written shaders, and the twins of those in `shaders/shared`.
//!
//! A shader is a file `shaders/<system>/<stem>.wgsl`; stems are unique. A kernel's file has an entry point of its own name; a
//! library has none and is `#import`ed. A permutation defines flags that the file tests, and is a kernel of its own whose name ends
//! with them: `threefry_fill` with `UNIFORM` is `threefry_fill_uniform`.

use crate::error::{Error, Result};
use kernels_gen::{Binding, BindingKind, Formula, KernelSource, Target, WgslFeatures, compose, validate};

pub mod twins;

/// A hand-written kernel, in all its permutations.
pub struct Shader {
    /// File stem.
    pub stem: &'static str,
    /// Text of the file, before it is composed.
    pub text: &'static str,
    /// Flags of each permutation; the empty list is the kernel that is named like the file.
    pub permutations: &'static [&'static [&'static str]],
    /// Bindings, the parameter block last.
    pub bindings: &'static [(&'static str, BindingKind)],
    /// 32-bit words of the parameter block.
    pub num_params: usize,
    /// Invocations of a workgroup, `overrides` applied.
    pub workgroup_size: [u32; 3],
    /// Values of the `override` declarations.
    pub overrides: &'static [(&'static str, f64)],
    /// Bytes of workgroup memory, `overrides` applied.
    pub workgroup_bytes: u32,
    /// Optional features of WGSL the text uses.
    pub features: WgslFeatures,
    /// What one dispatch costs.
    pub cost: fn() -> Cost,
}

/// Cost of one dispatch, from the words of its parameter block.
pub struct Cost {
    /// Floating-point operations.
    pub flops: Formula,
    /// Bytes read and written, each buffer counted once.
    pub bytes: Formula,
    /// The most loop iterations one invocation runs, counted as [`KernelSource::max_iterations`] says.
    pub max_iterations: Formula,
}

/// What the text of a shader contains that loads 64-bit numbers where the target says that pays; `INT64` is then defined.
const WIDE_LOADS: &str = "#import pairs";

const PLAIN: WgslFeatures = WgslFeatures { f16: false, subgroups: false, int64: false };

macro_rules! text {
    ($path:literal) => {
        include_str!(concat!("../shaders/", $path, ".wgsl"))
    };
}

/// Units are centres or rows; what is drawn below 2^32, not at all or below 2^64; keys are indices or not.
const DRAWS: &[&[&str]] = &[
    &[],
    &["STRICT"],
    &["ENUMERATE"],
    &["ENUMERATE", "STRICT"],
    &["WIDE"],
    &["WIDE", "STRICT"],
    &["ROWS"],
    &["ROWS", "STRICT"],
    &["ROWS", "ENUMERATE"],
    &["ROWS", "ENUMERATE", "STRICT"],
    &["ROWS", "WIDE"],
    &["ROWS", "WIDE", "STRICT"],
];

/// The same of trees, some of which have children that do not touch the centre.
const TREES: &[&[&str]] = &[
    &[],
    &["STRICT"],
    &["ENUMERATE"],
    &["ENUMERATE", "STRICT"],
    &["WIDE"],
    &["WIDE", "STRICT"],
    &["DEEP"],
    &["DEEP", "STRICT"],
    &["DEEP", "ENUMERATE"],
    &["DEEP", "ENUMERATE", "STRICT"],
    &["DEEP", "WIDE"],
    &["DEEP", "WIDE", "STRICT"],
];

/// Files without an entry point, as (stem, text).
pub const LIBRARIES: &[(&str, &str)] = &[
    ("threefry", text!("shared/threefry")),
    ("draw", text!("motifs/draw")),
    ("embed", text!("motifs/embed")),
    ("pairs", text!("motifs/pairs")),
    ("strata", text!("motifs/strata")),
    ("tally", text!("motifs/tally")),
    ("wide", text!("motifs/wide")),
];

/// The most iterations of `embed` in `embed.wgsl`: 60 steps with a search of 32 each.
const EMBED_ITERATIONS: u64 = 60 * (33 + 1) + 1;

/// Every hand-written kernel.
pub const SHADERS: &[Shader] = &[
    Shader {
        stem: "gemm_reference",
        text: text!("shared/gemm_reference"),
        permutations: &[&[]],
        bindings: &[("a", BindingKind::Read), ("b", BindingKind::Read), ("c", BindingKind::ReadWrite), ("params", BindingKind::Params)],
        num_params: 3,
        workgroup_size: [16, 1, 1],
        overrides: &[],
        workgroup_bytes: 0,
        features: PLAIN,
        cost: || {
            let [m, n, k] = [0, 1, 2].map(Formula::Param);
            Cost {
                flops: Formula::Const(2) * m.clone() * n.clone() * k.clone(),
                bytes: Formula::Const(4) * (m.clone() * k.clone() + k.clone() * n.clone() + m * n),
                max_iterations: Formula::DivCeil(Box::new(k), Box::new(Formula::Const(4))) + Formula::Const(1),
            }
        },
    },
    Shader {
        stem: "scale_add",
        text: text!("shared/scale_add"),
        permutations: &[&[]],
        bindings: &[("x", BindingKind::Read), ("y", BindingKind::ReadWrite), ("params", BindingKind::Params)],
        num_params: 2,
        workgroup_size: [256, 1, 1],
        overrides: &[],
        workgroup_bytes: 0,
        features: PLAIN,
        cost: || Cost {
            flops: Formula::Const(2) * Formula::Param(0),
            bytes: Formula::Const(12) * Formula::Param(0),
            max_iterations: Formula::Const(0),
        },
    },
    Shader {
        stem: "threefry_fill",
        text: text!("shared/threefry_fill"),
        permutations: &[&[], &["UNIFORM"]],
        bindings: &[("out", BindingKind::ReadWrite), ("params", BindingKind::Params)],
        num_params: 5,
        workgroup_size: [256, 1, 1],
        overrides: &[],
        workgroup_bytes: 0,
        features: PLAIN,
        cost: || Cost { flops: Formula::Const(0), bytes: Formula::Const(4) * Formula::Param(0), max_iterations: Formula::Const(0) },
    },
    Shader {
        stem: "compact_rows",
        text: text!("motifs/compact_rows"),
        permutations: &[&[]],
        bindings: &[("rows", BindingKind::Read), ("units", BindingKind::ReadWrite), ("params", BindingKind::Params)],
        num_params: 3,
        workgroup_size: [256, 1, 1],
        overrides: &[],
        workgroup_bytes: 0,
        features: PLAIN,
        cost: || Cost { flops: Formula::Const(0), bytes: Formula::Const(48) * Formula::Param(0), max_iterations: Formula::Const(6) },
    },
    Shader {
        stem: "compact_side",
        text: text!("motifs/compact_side"),
        permutations: &[&[]],
        bindings: &[
            ("side", BindingKind::Read),
            ("kept", BindingKind::Read),
            ("compacted", BindingKind::ReadWrite),
            ("params", BindingKind::Params),
        ],
        num_params: 3,
        workgroup_size: [256, 1, 1],
        overrides: &[],
        workgroup_bytes: 0,
        features: PLAIN,
        cost: || Cost {
            flops: Formula::Const(0),
            bytes: Formula::Const(24) * Formula::Param(0) + Formula::Const(8) * Formula::Param(2),
            max_iterations: Formula::Const(0),
        },
    },
    Shader {
        stem: "count_chains",
        text: text!("motifs/count_chains"),
        permutations: &[&[], &["EIGHT"], &["LONG"]],
        bindings: &[
            ("drawn", BindingKind::Read),
            ("found", BindingKind::Read),
            ("pairs", BindingKind::Read),
            ("state", BindingKind::ReadWrite),
            ("unfinished", BindingKind::ReadWrite),
            ("params", BindingKind::Params),
        ],
        num_params: 10,
        workgroup_size: [64, 1, 1],
        overrides: &[],
        workgroup_bytes: 0,
        features: PLAIN,
        cost: || Cost {
            flops: Formula::Const(0),
            bytes: Formula::Const(12) * Formula::Param(0) * Formula::Param(1),
            max_iterations: Formula::Param(7) + Formula::Param(0) + Formula::Const(1024),
        },
    },
    Shader {
        stem: "draw_paths",
        text: text!("motifs/draw_paths"),
        permutations: DRAWS,
        bindings: &[
            ("units", BindingKind::Read),
            ("edges", BindingKind::Read),
            ("side1", BindingKind::Read),
            ("side2", BindingKind::Read),
            ("bounds", BindingKind::Read),
            ("keys", BindingKind::Read),
            ("drawn", BindingKind::ReadWrite),
            ("params", BindingKind::Params),
        ],
        num_params: 40,
        workgroup_size: [64, 1, 1],
        overrides: &[],
        workgroup_bytes: 8,
        features: PLAIN,
        cost: || Cost {
            flops: Formula::Const(0),
            bytes: Formula::Const(12) * Formula::Param(4),
            max_iterations: Formula::Const(150) * Formula::Param(1) + Formula::Const(220),
        },
    },
    Shader {
        stem: "draw_trees",
        text: text!("motifs/draw_trees"),
        permutations: TREES,
        bindings: &[
            ("units", BindingKind::Read),
            ("graph", BindingKind::Read),
            ("windows", BindingKind::Read),
            ("sums", BindingKind::Read),
            ("bounds", BindingKind::Read),
            ("keys", BindingKind::Read),
            ("drawn", BindingKind::ReadWrite),
            ("params", BindingKind::Params),
        ],
        num_params: 52,
        workgroup_size: [64, 1, 1],
        overrides: &[],
        workgroup_bytes: 8,
        features: PLAIN,
        // For each draw: the unit, the draw and what is written; for each placed edge its window, a division and a search.
        cost: || Cost {
            flops: Formula::Const(0),
            bytes: Formula::Const(4) * Formula::Param(15) * Formula::Param(4),
            max_iterations: Formula::Param(1) * (Formula::Const(150) + Formula::Param(15) * (Formula::Param(23) + Formula::Const(12)))
                + Formula::Const(220),
        },
    },
    Shader {
        stem: "look_up_lists",
        text: text!("motifs/look_up_lists"),
        permutations: &[&[], &["STRICT"]],
        bindings: &[
            ("drawn", BindingKind::Read),
            ("pairs", BindingKind::Read),
            ("of_edge", BindingKind::Read),
            ("edges", BindingKind::Read),
            ("bounds", BindingKind::Read),
            ("keys", BindingKind::Read),
            ("found", BindingKind::ReadWrite),
            ("params", BindingKind::Params),
        ],
        num_params: 48,
        workgroup_size: [64, 1, 1],
        overrides: &[],
        workgroup_bytes: 0,
        features: PLAIN,
        cost: || Cost {
            flops: Formula::Const(0),
            bytes: Formula::Const(12) * Formula::Param(0) * Formula::Param(1),
            max_iterations: (Formula::Const(3) * Formula::Param(13) + Formula::Const(12)) * Formula::Param(1) * Formula::Param(4)
                + Formula::Param(0)
                + Formula::Const(40),
        },
    },
    Shader {
        stem: "mark_sides",
        text: text!("motifs/mark_sides"),
        permutations: &[&[], &["STRICT"]],
        bindings: &[
            ("side", BindingKind::Read),
            ("of_edge", BindingKind::Read),
            ("bounds", BindingKind::Read),
            ("pairs", BindingKind::Read),
            ("marked", BindingKind::ReadWrite),
            ("params", BindingKind::Params),
        ],
        num_params: 24,
        workgroup_size: [64, 1, 1],
        overrides: &[],
        workgroup_bytes: 0,
        features: PLAIN,
        cost: || Cost {
            flops: Formula::Const(0),
            bytes: Formula::Const(24) * Formula::Param(16) + Formula::Const(8) * Formula::Param(18),
            max_iterations: Formula::Const(EMBED_ITERATIONS),
        },
    },
    Shader {
        stem: "most_paths",
        text: text!("motifs/most_paths"),
        permutations: &[&[]],
        bindings: &[("units", BindingKind::Read), ("result", BindingKind::ReadWrite), ("params", BindingKind::Params)],
        num_params: 2,
        workgroup_size: [64, 1, 1],
        overrides: &[],
        workgroup_bytes: 0,
        features: PLAIN,
        cost: || Cost { flops: Formula::Const(0), bytes: Formula::Const(8) * Formula::Param(0), max_iterations: Formula::Const(65) },
    },
    Shader {
        stem: "number_centres",
        text: text!("motifs/number_centres"),
        permutations: &[&[], &["STRICT"]],
        bindings: &[
            ("edges", BindingKind::Read),
            ("of_edge", BindingKind::Read),
            ("bounds", BindingKind::Read),
            ("pairs", BindingKind::Read),
            ("side1", BindingKind::Read),
            ("side2", BindingKind::Read),
            ("units", BindingKind::ReadWrite),
            ("params", BindingKind::Params),
        ],
        num_params: 28,
        workgroup_size: [64, 1, 1],
        overrides: &[],
        workgroup_bytes: 0,
        features: PLAIN,
        cost: || Cost {
            flops: Formula::Const(0),
            bytes: Formula::Const(56) * Formula::Param(16),
            max_iterations: Formula::Const(EMBED_ITERATIONS + 8 * 33),
        },
    },
    Shader {
        stem: "scan_apply",
        text: text!("motifs/scan_apply"),
        permutations: &[&[]],
        bindings: &[
            ("data", BindingKind::ReadWrite),
            ("before", BindingKind::Read),
            ("flags", BindingKind::ReadWrite),
            ("params", BindingKind::Params),
        ],
        num_params: 4,
        workgroup_size: [256, 1, 1],
        overrides: &[],
        workgroup_bytes: 0,
        features: PLAIN,
        cost: || Cost { flops: Formula::Const(0), bytes: Formula::Const(16) * Formula::Param(0), max_iterations: Formula::Const(17) },
    },
    Shader {
        stem: "scan_sums",
        text: text!("motifs/scan_sums"),
        permutations: &[&[]],
        bindings: &[("data", BindingKind::Read), ("sums", BindingKind::ReadWrite), ("params", BindingKind::Params)],
        num_params: 3,
        workgroup_size: [256, 1, 1],
        overrides: &[],
        workgroup_bytes: 0,
        features: PLAIN,
        cost: || Cost { flops: Formula::Const(0), bytes: Formula::Const(8) * Formula::Param(0), max_iterations: Formula::Const(17) },
    },
    Shader {
        stem: "shift_units",
        text: text!("motifs/shift_units"),
        permutations: &[&[]],
        bindings: &[("units", BindingKind::ReadWrite), ("params", BindingKind::Params)],
        num_params: 3,
        workgroup_size: [256, 1, 1],
        overrides: &[],
        workgroup_bytes: 0,
        features: PLAIN,
        cost: || Cost { flops: Formula::Const(0), bytes: Formula::Const(16) * Formula::Param(0), max_iterations: Formula::Const(0) },
    },
    Shader {
        stem: "sum_tallies",
        text: text!("motifs/sum_tallies"),
        permutations: &[&[]],
        bindings: &[("state", BindingKind::ReadWrite), ("totals", BindingKind::ReadWrite), ("params", BindingKind::Params)],
        num_params: 3,
        workgroup_size: [256, 1, 1],
        overrides: &[],
        workgroup_bytes: 10240,
        features: PLAIN,
        cost: || Cost {
            flops: Formula::Const(0),
            bytes: Formula::Const(80) * Formula::Param(0),
            max_iterations: Formula::Const(16) * Formula::DivCeil(Box::new(Formula::Param(0)), Box::new(Formula::Const(256)))
                + Formula::Const(64),
        },
    },
    Shader {
        stem: "weigh_rows",
        text: text!("motifs/weigh_rows"),
        permutations: &[&[], &["STRICT"]],
        bindings: &[
            ("centres", BindingKind::Read),
            ("of_edge", BindingKind::Read),
            ("bounds", BindingKind::Read),
            ("pairs", BindingKind::Read),
            ("row_side", BindingKind::Read),
            ("other_side", BindingKind::Read),
            ("rows", BindingKind::ReadWrite),
            ("params", BindingKind::Params),
        ],
        num_params: 31,
        workgroup_size: [64, 1, 1],
        overrides: &[],
        workgroup_bytes: 0,
        features: PLAIN,
        cost: || Cost {
            flops: Formula::Const(0),
            bytes: Formula::Const(64) * Formula::Param(18),
            max_iterations: Formula::Const(EMBED_ITERATIONS + 5 * 33),
        },
    },
    Shader {
        stem: "weigh_subtrees",
        text: text!("motifs/weigh_subtrees"),
        permutations: &[&[], &["STRICT"]],
        bindings: &[
            ("graph", BindingKind::Read),
            ("bounds", BindingKind::Read),
            ("keys", BindingKind::Read),
            ("sums", BindingKind::Read),
            ("windows", BindingKind::ReadWrite),
            ("weights", BindingKind::ReadWrite),
            ("flags", BindingKind::ReadWrite),
            ("params", BindingKind::Params),
        ],
        num_params: 32,
        workgroup_size: [64, 1, 1],
        overrides: &[],
        workgroup_bytes: 0,
        features: PLAIN,
        cost: || Cost {
            flops: Formula::Const(0),
            bytes: Formula::Const(8) * Formula::Param(0) * (Formula::Const(2) + Formula::Param(2)),
            max_iterations: Formula::Param(2) * (Formula::Const(2) * Formula::Param(4) + Formula::Const(1)) + Formula::Const(1),
        },
    },
    Shader {
        stem: "wide_check",
        text: text!("motifs/wide_check"),
        permutations: &[&[]],
        bindings: &[("pairs", BindingKind::Read), ("out", BindingKind::ReadWrite), ("params", BindingKind::Params)],
        num_params: 3,
        workgroup_size: [64, 1, 1],
        overrides: &[],
        workgroup_bytes: 0,
        features: PLAIN,
        // Two divisions and a draw.
        cost: || Cost {
            flops: Formula::Const(0),
            bytes: Formula::Const(112) * Formula::Param(0),
            max_iterations: Formula::Const(2 * (8 + 1) + 64 + 1),
        },
    },
    Shader {
        stem: "bit_planes",
        text: text!("bitset/bit_planes"),
        permutations: &[&[], &["WIDE"]],
        bindings: &[
            ("columns", BindingKind::Read),
            ("weights", BindingKind::Read),
            ("tables", BindingKind::Read),
            ("limits", BindingKind::Read),
            ("residual", BindingKind::Read),
            ("results", BindingKind::ReadWrite),
            ("steps", BindingKind::ReadWrite),
            ("params", BindingKind::Params),
        ],
        num_params: 12,
        workgroup_size: [64, 1, 1],
        overrides: &[],
        workgroup_bytes: 0,
        features: PLAIN,
        cost: || {
            let [columns, count, taps, passes] = [2, 3, 7, 8].map(Formula::Param);
            let parts = |n: u64| Formula::DivCeil(Box::new(taps.clone()), Box::new(Formula::Const(n)));
            Cost {
                flops: Formula::Const(0),
                bytes: Formula::Const(8) * columns * taps.clone() + Formula::Const(160) * count,
                // Fours of taps, their words, the chunks between two moves, and 64-bit products of 16 sums; sums before and after.
                max_iterations: passes * (parts(4) + Formula::Const(3) * parts(32) + Formula::Const(18) * parts(256) + Formula::Const(260))
                    + Formula::Const(96),
            }
        },
    },
    Shader {
        stem: "lock_steps",
        text: text!("bitset/lock_steps"),
        permutations: &[&[]],
        bindings: &[("steps", BindingKind::Read), ("sums", BindingKind::ReadWrite), ("params", BindingKind::Params)],
        num_params: 9,
        workgroup_size: [64, 1, 1],
        overrides: &[],
        workgroup_bytes: 0,
        features: PLAIN,
        cost: || {
            let [columns, share, fours, lanes, count] = [1, 2, 5, 6, 8].map(Formula::Param);
            Cost {
                flops: Formula::Const(0),
                bytes: Formula::Const(32) * columns * fours + Formula::Const(4) * count,
                max_iterations: Formula::Const(2) * share * (lanes + Formula::Const(2)) + Formula::Const(1),
            }
        },
    },
    Shader {
        stem: "tally_steps",
        text: text!("bitset/tally_steps"),
        permutations: &[&[], &["WIDE"]],
        bindings: &[
            ("steps", BindingKind::Read),
            ("results", BindingKind::ReadWrite),
            ("tallies", BindingKind::ReadWrite),
            ("params", BindingKind::Params),
        ],
        num_params: 9,
        workgroup_size: [64, 1, 1],
        overrides: &[],
        workgroup_bytes: 0,
        features: PLAIN,
        cost: || {
            let [windows, share, shares, outputs] = [0, 3, 4, 5].map(Formula::Param);
            Cost {
                flops: Formula::Const(0),
                bytes: Formula::Const(9) * windows * outputs.clone() + Formula::Const(32) * shares * outputs,
                max_iterations: Formula::Const(8) * share + Formula::Const(1),
            }
        },
    },
    Shader {
        stem: "window_columns",
        text: text!("bitset/window_columns"),
        permutations: &[&[]],
        bindings: &[("activations", BindingKind::Read), ("columns", BindingKind::ReadWrite), ("params", BindingKind::Params)],
        num_params: 17,
        workgroup_size: [64, 1, 1],
        overrides: &[],
        workgroup_bytes: 0,
        features: PLAIN,
        // Four words, four windows of each.
        cost: || Cost {
            flops: Formula::Const(0),
            bytes: Formula::Const(32) * Formula::Param(2),
            max_iterations: Formula::Const(4 * 7 + 1),
        },
    },
    Shader {
        stem: "window_limits",
        text: text!("bitset/window_limits"),
        permutations: &[&[], &["WIDE"]],
        bindings: &[
            ("columns", BindingKind::Read),
            ("rows", BindingKind::Read),
            ("limits", BindingKind::ReadWrite),
            ("params", BindingKind::Params),
        ],
        num_params: 7,
        workgroup_size: [64, 1, 1],
        overrides: &[],
        workgroup_bytes: 0,
        features: PLAIN,
        cost: || {
            let [taps, count, rows] = [0, 2, 3].map(Formula::Param);
            Cost {
                flops: Formula::Const(0),
                bytes: Formula::Const(16) * count.clone() * taps.clone() + Formula::Const(32) * count * rows.clone(),
                // A root has 28 rounds, and a row is eight windows.
                max_iterations: taps + rows * Formula::Const(8 * 30 + 4) + Formula::Const(2),
            }
        },
    },
];

impl Shader {
    /// Name of the permutation that defines `flags`: entry point, label and key in reports.
    pub fn name(&self, flags: &[&str]) -> String {
        flags.iter().fold(self.stem.to_string(), |name, flag| format!("{name}_{}", flag.to_lowercase()))
    }

    /// Whether `target` has the optional features the text uses.
    pub fn runs_on(&self, target: &Target) -> bool {
        let WgslFeatures { f16, subgroups, int64 } = self.features;
        (target.f16 || !f16) && (target.subgroups || !subgroups) && (target.int64 || !int64)
    }

    /// The kernel of the permutation that defines `flags`, composed and checked for `target`.
    pub fn source(&self, flags: &[&str], target: &Target) -> Result<KernelSource> {
        let files: Vec<(&str, &str)> = LIBRARIES.iter().copied().chain([(self.stem, self.text)]).collect();
        let wide = target.wide_loads() && self.text.contains(WIDE_LOADS);
        let set: Vec<&str> = flags.iter().copied().chain(wide.then_some("INT64")).collect();
        let composed = compose::compose(self.stem, &files, &set)?;
        let name = self.name(flags);
        let cost = (self.cost)();
        let source = KernelSource {
            wgsl: composed.wgsl.replace(&format!("fn {}(", self.stem), &format!("fn {name}(")),
            bindings: self.bindings.iter().map(|&(name, kind)| Binding::new(name, kind)).collect(),
            num_params: self.num_params,
            workgroup_size: self.workgroup_size,
            overrides: self.overrides.iter().map(|&(name, value)| (name.to_string(), value.to_bits())).collect(),
            workgroup_bytes: self.workgroup_bytes,
            features: WgslFeatures { int64: self.features.int64 || wide, ..self.features },
            flops: cost.flops,
            bytes: cost.bytes,
            max_iterations: cost.max_iterations,
            name,
        };
        validate::check(&source, target).map_err(|e| composed.locate(e))?;
        Ok(source)
    }
}

/// Every permutation of every kernel, as (shader, flags).
pub fn kernels() -> impl Iterator<Item = (&'static Shader, &'static [&'static str])> {
    SHADERS.iter().flat_map(|shader| shader.permutations.iter().map(move |&flags| (shader, flags)))
}

/// The hand-written kernel of that name, composed and checked for `target`.
pub fn kernel(name: &str, target: &Target) -> Result<KernelSource> {
    let Some((shader, flags)) = kernels().find(|(shader, flags)| shader.name(flags) == name) else {
        let names: Vec<String> = kernels().map(|(shader, flags)| shader.name(flags)).collect();
        return Err(Error::invalid(format!("there is no hand-written kernel `{name}`; there are {}", names.join(", "))));
    };
    shader.source(flags, target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_passes_every_writer_of_every_preset() {
        for target in Target::presets() {
            for (shader, flags) in kernels() {
                let source = shader.source(flags, &target);
                assert_eq!(source.is_ok(), shader.runs_on(&target), "{}", shader.name(flags));
                if let Ok(source) = source {
                    validate::validate(&source, &target).expect("every backend takes it");
                }
            }
        }
    }

    #[test]
    fn a_fault_names_the_file_and_line_it_stands_in() {
        let whole = SHADERS.iter().find(|s| s.stem == "threefry_fill").expect("in the table");
        let broken = Shader { text: "#import threefry\nfn threefry_fill() {}\nfn broken( {", ..*whole };
        let error = broken.source(&[], &Target::webgpu()).expect_err("no WGSL");
        assert_eq!(error.kind(), crate::ErrorKind::Shader);
        assert!(error.to_string().contains("threefry_fill.wgsl:3:12"), "{error}");
    }

    #[test]
    fn an_unknown_kernel_is_answered_with_the_known_ones() {
        let error = kernel("threefry", &Target::webgpu()).expect_err("a library is no kernel");
        assert!(error.to_string().contains("scale_add, threefry_fill, threefry_fill_uniform"), "{error}");
    }
}
