use super::*;
use crate::threefry::Key;

const ROUNDINGS: [Rounding; 2] = [Rounding::NearestEven, Rounding::TowardsZero];
const OVERFLOWS: [Overflow; 2] = [Overflow::Saturate, Overflow::Format];

/// Codes that are written, with their numbers in order; of the two zeros the positive one.
fn written(format: Format) -> Vec<(f64, u32)> {
    let unused = |code: u32| match format {
        Format::Int8 => code == 0x80,
        Format::Int4 => code == 8,
        Format::Int2 | Format::Ternary => code == 2,
        _ => false,
    };
    let number = |code: u32| (f64::from(format.decode(code)), code);
    let mut all: Vec<_> = (0..format.num_codes()).filter(|&c| !unused(c)).map(number).filter(|(v, _)| v.is_finite()).collect();
    all.retain(|(v, _)| *v != 0.0 || v.is_sign_positive());
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    all
}

/// Numbers of a format, the middles between neighbours, what lies beside both, and numbers past the ends.
fn trials(format: Format) -> Vec<f32> {
    let mut all = vec![0.0, -0.0, 1e-45, -1e-45, 1e-39, 0.3, -0.7, 1e9, -1e9, 3e38, -3e38, f32::INFINITY, f32::NEG_INFINITY];
    for pair in written(format).windows(2) {
        let middle = ((pair[0].0 + pair[1].0) / 2.0) as f32;
        for x in [pair[0].0 as f32, middle, pair[1].0 as f32] {
            all.extend([x.next_down(), x, x.next_up()]);
        }
    }
    let max = format.max_finite();
    all.extend([1.01, 1.03125, 1.0625, 1.07, 1.2, 1.5, 1.9].into_iter().flat_map(|f| [max * f, -max * f]));
    all
}

/// The code of a finite number by search among all codes.
fn by_search(all: &[(f64, u32)], x: f64, rounding: Rounding) -> u32 {
    let above = all.partition_point(|(v, _)| *v <= x);
    if above == 0 {
        return all[0].1;
    }
    if above == all.len() || all[above - 1].0 == x {
        return all[above - 1].1;
    }
    let (low, high) = (all[above - 1], all[above]);
    match rounding {
        // Numbers below all of e8m0 and zeros have no code towards zero: what is there is taken.
        Rounding::TowardsZero if x > 0.0 => low.1,
        Rounding::TowardsZero => high.1,
        Rounding::NearestEven => match (x - low.0).total_cmp(&(high.0 - x)) {
            std::cmp::Ordering::Less => low.1,
            std::cmp::Ordering::Greater => high.1,
            std::cmp::Ordering::Equal if low.1 & 1 == 0 => low.1,
            std::cmp::Ordering::Equal => high.1,
        },
    }
}

#[test]
fn numbers_become_the_codes_that_a_search_finds() {
    for format in Format::ALL {
        if matches!(format, Format::E8M0 | Format::Binary) {
            continue;
        }
        let all = written(format);
        let signed_zero = matches!(format.class(), Class::Float(_));
        for x in trials(format) {
            for rounding in ROUNDINGS {
                let got = format.encode(x, rounding, Overflow::Saturate);
                let mut want = by_search(&all, f64::from(x), rounding);
                if signed_zero && want == 0 && x.is_sign_negative() {
                    want = format.num_codes() / 2;
                }
                assert_eq!(got, want, "{format} {rounding:?} of {x:?}");
            }
        }
    }
}

#[test]
fn codes_survive_being_read_and_written() {
    for format in Format::ALL {
        for code in 0..format.num_codes() {
            let value = format.decode(code);
            assert_eq!(
                format.decode(code | 0xabcd_0000 & !(format.num_codes() - 1)).to_bits(),
                value.to_bits(),
                "bits above are not looked at"
            );
            for (rounding, overflow) in ROUNDINGS.into_iter().flat_map(|r| OVERFLOWS.map(|o| (r, o))) {
                let back = format.encode(value, rounding, overflow);
                // What is only read, and codes of NaN and infinity, have others of the same meaning.
                let saturated = value.is_infinite() && overflow == Overflow::Saturate;
                if value.is_nan() {
                    assert!(format.decode(back).is_nan(), "{format} {code:#x}");
                } else if format.is_int() && value < -format.max_finite() {
                    assert_eq!(format.decode(back), -format.max_finite(), "{format} {code:#x}");
                } else if saturated {
                    assert_eq!(format.decode(back).abs(), format.max_finite());
                } else {
                    assert_eq!(back, code, "{format} {value:?}");
                }
            }
            if value.is_finite() && !(format.is_int() && value < -format.max_finite()) {
                for noise in [0, 1, 1 << 31, u32::MAX] {
                    assert_eq!(format.encode_stochastic(value, noise, Overflow::Format), code, "{format} {value:?} by chance");
                }
            }
        }
        assert_eq!(format.name().parse::<Format>().expect("a name"), format);
    }
    let error = "fp7".parse::<Format>().expect_err("no format").to_string();
    assert!(error.contains("`fp7`") && error.contains("e4m3, e5m2"), "{error}");
}

#[test]
fn bf16_is_what_half_says() {
    let key = Key::new(4);
    for n in 0..200_000 {
        let x = f32::from_bits(key.word(n));
        let want = half::bf16::from_f32(x);
        let code = Format::Bf16.encode(x, Rounding::NearestEven, Overflow::Format);
        assert!(code == u32::from(want.to_bits()) || want.is_nan() && code & 0x7fff == 0x7fc0, "{x:?}");
        let back = Format::Bf16.decode(code);
        assert!(back.to_bits() == want.to_f32().to_bits() || back.is_nan() && want.is_nan(), "{x:?}");
    }
}

#[test]
fn numbers_past_the_largest() {
    let code = |format: Format, x: f32, rounding, overflow| format.encode(x, rounding, overflow);
    use Overflow::{Format as Own, Saturate};
    use Rounding::{NearestEven as Near, TowardsZero as Zero};
    let inf = f32::INFINITY;
    for (format, x, rounding, overflow, want) in [
        (Format::E4M3, 464.0, Near, Own, 0x7e),
        (Format::E4M3, 464.000_03, Near, Own, 0x7f),
        (Format::E4M3, -1e9, Near, Own, 0xff),
        (Format::E4M3, 1e9, Near, Saturate, 0x7e),
        (Format::E4M3, 1e9, Zero, Own, 0x7e),
        (Format::E4M3, inf, Zero, Own, 0x7f),
        (Format::E4M3, -inf, Near, Saturate, 0xfe),
        (Format::E5M2, 61_440.0, Near, Own, 0x7c),
        (Format::E5M2, 61_439.996, Near, Own, 0x7b),
        (Format::E5M2, 61_440.0, Near, Saturate, 0x7b),
        (Format::E5M2, 61_440.0, Zero, Own, 0x7b),
        (Format::E5M2, -inf, Zero, Own, 0xfc),
        (Format::E5M2, inf, Zero, Saturate, 0x7b),
        (Format::E2M1, inf, Near, Own, 7),
        (Format::E2M3, -100.0, Near, Own, 0x3f),
        (Format::E3M2, 100.0, Zero, Own, 0x1f),
        (Format::Bf16, f32::MAX, Near, Own, 0x7f80),
        (Format::Bf16, f32::MAX, Near, Saturate, 0x7f7f),
        (Format::Bf16, f32::MAX, Zero, Own, 0x7f7f),
        (Format::Bf16, -inf, Zero, Own, 0xff80),
        (Format::E8M0, 2.6e38, Near, Own, 255),
        (Format::E8M0, 2.6e38, Near, Saturate, 254),
        (Format::E8M0, inf, Zero, Own, 255),
        (Format::E8M0, inf, Zero, Saturate, 254),
        (Format::Int8, -inf, Near, Own, 0x81),
        (Format::Int4, 7.5, Near, Own, 7),
        (Format::Int2, -1.6, Near, Own, 3),
        (Format::Uint4, -3.0, Near, Own, 0),
        (Format::Uint8, inf, Near, Own, 255),
        (Format::Nf4, -9.0, Near, Own, 0),
        (Format::Nf4, inf, Near, Own, 15),
    ] {
        assert_eq!(code(format, x, rounding, overflow), want, "{format} {x:?} {rounding:?} {overflow:?}");
    }
}

#[test]
fn nan_and_signs() {
    for (format, want) in [
        (Format::Bf16, 0x7fc0),
        (Format::E4M3, 0x7f),
        (Format::E5M2, 0x7e),
        (Format::E2M3, 0),
        (Format::E3M2, 0),
        (Format::E2M1, 0),
        (Format::E8M0, 255),
        (Format::Int8, 0),
        (Format::Uint4, 0),
        (Format::Ternary, 0),
        (Format::Binary, 1),
        (Format::Nf4, 7),
    ] {
        for (rounding, overflow) in ROUNDINGS.into_iter().flat_map(|r| OVERFLOWS.map(|o| (r, o))) {
            assert_eq!(format.encode(f32::NAN, rounding, overflow), want, "{format}");
            assert_eq!(format.encode_stochastic(f32::NAN, 5, overflow), want, "{format}");
        }
        assert_eq!(format.has_nan(), matches!(format, Format::Bf16 | Format::E4M3 | Format::E5M2 | Format::E8M0));
    }
    let near = |format: Format, x: f32| format.encode(x, Rounding::NearestEven, Overflow::Saturate);
    assert_eq!(near(Format::E5M2, -f32::NAN), 0xfe);
    assert_eq!([near(Format::E2M1, -0.0), near(Format::E4M3, -1e-30), near(Format::Int4, -0.0)], [8, 0x80, 0]);
    assert_eq!([near(Format::Binary, -0.0), near(Format::Binary, 1e-40), near(Format::Binary, -1e-40)], [1, 1, 0]);
    assert_eq!(Format::Ternary.decode(3), -1.0);
}

#[test]
fn powers_of_two() {
    let near = |x: f32| Format::E8M0.encode(x, Rounding::NearestEven, Overflow::Format);
    let zero = |x: f32| Format::E8M0.encode(x, Rounding::TowardsZero, Overflow::Format);
    assert_eq!([near(1.0), near(1.499_999_9), near(1.5), near(3.0)], [127, 127, 128, 129]);
    assert_eq!([zero(1.0), zero(1.999), zero(2f32.powi(-127)), zero(1e-45)], [127, 127, 0, 0]);
    assert_eq!([near(0.0), near(-0.0), near(-1.0), near(f32::NEG_INFINITY), zero(-1e-45)], [255; 5]);
    assert_eq!([near(2f32.powi(-127)), near(1e-45), near(2f32.powi(-126))], [0, 0, 1]);
    assert_eq!(Format::E8M0.decode(0), 2f32.powi(-127));
    assert!(Format::E8M0.decode(255).is_nan());
}

/// The mean of a million draws is the number, within 4.5 standard errors; by no more than the bound where one of two codes is all there is.
#[test]
fn rounding_by_chance_is_unbiased() {
    const DRAWS: u64 = 1_000_000;
    for (n, format) in Format::ALL.into_iter().enumerate() {
        let key = Key::new(17).stream(n as u64);
        let all = written(format);
        let (low, high) = match format {
            Format::Bf16 => (-1e-3, 2e-3),
            Format::E8M0 => (1.0, 64.0),
            _ => (all[0].0, all[all.len() - 1].0),
        };
        let (mut error, mut variance) = (0.0, 0.0);
        for draw in 0..DRAWS {
            // Two words an element: one for the number, one for the rounding.
            let [number, noise] = key.block(draw);
            let x = (low + (high - low) * f64::from(number) / 4_294_967_296.0) as f32;
            let value = f64::from(format.decode(format.encode_stochastic(x, noise, Overflow::Saturate)));
            let above = all.partition_point(|(v, _)| *v <= f64::from(x)).min(all.len() - 1).max(1);
            let (below, above) = (all[above - 1].0, all[above].0);
            assert!(value == below || value == above, "{format}: {x:?} became {value}");
            error += value - f64::from(x);
            variance += (f64::from(x) - below) * (above - f64::from(x));
        }
        let z = error / variance.sqrt();
        assert!(z.abs() < 4.5, "{format}: {z} standard errors");
    }
}

#[test]
fn chances_are_shares_of_two_to_the_32() {
    let up = |x: f32, noise: u32| Format::E4M3.encode_stochastic(x, noise, Overflow::Saturate);
    // A quarter of the smallest number, and what is dropped 40 bits down.
    let quarter = 2f32.powi(-11);
    assert_eq!([up(quarter, (1 << 30) - 1), up(quarter, 1 << 30)], [1, 0]);
    let tiny = 2f32.powi(-39);
    assert_eq!([up(tiny, 3), up(tiny, 4), up(-tiny, 3)], [1, 0, 0x81]);
    assert_eq!([up(2f32.powi(-42), 0), up(2f32.powi(-41), 0), up(2f32.powi(-41), 1)], [0, 1, 0]);
    assert_eq!([up(f32::from_bits(1), 0), up(0.0, 0)], [0, 0]);
    let int = |x: f32, noise: u32| Format::Int8.encode_stochastic(x, noise, Overflow::Saturate);
    assert_eq!([int(2.25, (1 << 30) - 1), int(2.25, 1 << 30), int(-2.25, 0), int(127.5, 0)], [3, 2, 0xfd, 127]);
}

/// Kernels that hold every function, for every preset.
#[test]
fn every_function_is_valid_wgsl() {
    use crate::emit::{Finish, Helper, finish, helpers};
    use crate::source::{Binding, BindingKind};
    let mut all = Vec::new();
    for format in Format::ALL {
        for width in [1, 4] {
            all.push(Helper::Decode(format, width));
            for overflow in OVERFLOWS {
                all.extend(ROUNDINGS.map(|r| Helper::Encode(format, r, overflow, width)));
                all.push(Helper::EncodeStochastic(format, overflow, width));
            }
        }
    }
    let functions = helpers::text(&all.into_iter().collect());
    let text = format!(
        "@group(0) @binding(0) var<storage, read_write> out: array<f32>;\n{functions}\
         @compute @workgroup_size(64)\nfn ENTRY(@builtin(local_invocation_index) lid: u32) {{ out[lid] = decode_e2m1_1(lid); }}\n"
    );
    let source = finish(Finish {
        label: "formats",
        origins: &[],
        text,
        bindings: vec![Binding::new("out", BindingKind::ReadWrite)],
        workgroup_size: [64, 1, 1],
        workgroup_bytes: 0,
        features: Default::default(),
        flops: 0,
        bytes: 0,
        max_iterations: 0,
    });
    for target in [crate::Target::webgpu(), crate::Target::software(), crate::Target::desktop()] {
        crate::validate::validate(&source, &target).unwrap_or_else(|e| panic!("{e}"));
    }
}
