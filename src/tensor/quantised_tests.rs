use super::*;
use crate::tensor::scheme::{PRESETS, ScaleRule, Scaling, largest_exponent};

const KS: [usize; 8] = [0, 1, 3, 16, 33, 64, 127, 257];

fn quantise(values: &[f32], rows: usize, k: usize, name: &str) -> Quantised {
    let scheme = Scheme::parse(name).unwrap_or_else(|e| panic!("{e}"));
    Quantised::new(values, rows, k, &scheme, &QuantiseOptions::default()).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// Sums of uniform numbers, some of them large.
fn numbers(n: usize, seed: u64) -> Vec<f32> {
    let key = Key::new(seed);
    let normal = |i: u64| (0..4).map(|j| key.uniform(4 * i + j) - 0.5).sum::<f32>();
    (0..n as u64).map(|i| if i % 29 == 7 { 6.0 * normal(i) } else { normal(i) }).collect()
}

/// Every number is the nearest of those that its group can hold.
fn nearest(x: &[f32], matrix: &Quantised) {
    let (scheme, k) = (matrix.scheme(), matrix.k());
    let Some(format) = scheme.format() else { return };
    let shape = scheme.scale_shape(matrix.rows(), k);
    let values = matrix.dequantise();
    assert_eq!(values.len(), x.len());
    for (i, (&x, &got)) in x.iter().zip(&values).enumerate() {
        let (step, zero) = match group_at(scheme, shape, i / k, i % k) {
            None => (1.0, 0),
            Some(at) => (matrix.step(at / shape[1], at % shape[1]), matrix.zero_point(at / shape[1], at % shape[1])),
        };
        let unused = |code: u32| format.is_int() && format.decode(code) < -format.max_finite();
        let off = |code: u32| (f64::from(format.decode(code) - zero as f32) * step - f64::from(x)).abs();
        let best = (0..format.num_codes()).filter(|&c| !unused(c)).map(off).filter(|d| d.is_finite()).fold(f64::INFINITY, f64::min);
        let found = (f64::from(got) - f64::from(x)).abs();
        assert!(found <= best + 1e-6 * f64::from(x.abs()) + 1e-45, "{scheme} {i}: {x:?} became {got:?}, {best:?} off is possible");
    }
}

#[test]
fn every_number_becomes_the_nearest_its_group_can_hold() {
    for name in PRESETS {
        for k in KS {
            for rows in [0, 1, 3] {
                let x = numbers(rows * k, 5);
                let matrix = quantise(&x, rows, k, name);
                let scheme = *matrix.scheme();
                assert_eq!(matrix.codes().len(), rows * scheme.words_per_row(k));
                assert_eq!(matrix.bytes(), scheme.bytes(rows, k), "{name}");
                assert!(matrix.stored_values().len() == rows * scheme.padded_k(k) && scheme.padded_k(k) >= k);
                if *name != "bf16" {
                    nearest(&x, &matrix);
                }
                // What fills a row up is 0.
                if *name != "binary-channel" {
                    let stored = matrix.stored_values();
                    let filled = stored.chunks_exact(scheme.padded_k(k).max(1)).all(|row| row[k..].iter().all(|v| *v == 0.0));
                    assert!(filled, "{name}");
                }
            }
        }
        // Tiles of several rows.
        let x = numbers(130 * 257, 6);
        if *name != "bf16" {
            nearest(&x, &quantise(&x, 130, 257, name));
        }
    }
}

#[test]
fn relative_errors_are_those_of_the_formats() {
    let x = numbers(64 * 512, 9);
    let mut wrong = Vec::new();
    let norm = |v: &[f32]| v.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>().sqrt();
    for (name, most) in [
        ("f32", 0.0),
        ("f16", 3e-4),
        ("bf16", 2e-3),
        ("mxfp8-e4m3", 0.036),
        ("mxfp8-e5m2", 0.06),
        ("mxfp6-e2m3", 0.04),
        ("mxfp6-e3m2", 0.06),
        ("mxfp4", 0.16),
        ("mxint8", 0.016),
        ("nvfp4", 0.11),
        ("fp8-tile", 0.03),
        ("fp4-tile", 0.3),
        ("int8-channel", 0.02),
        ("int8-channel-affine", 0.02),
        ("int4-group32", 0.18),
        ("int4-group32-affine", 0.12),
        ("int4-group32-f16", 0.18),
        ("nf4", 0.15),
        ("ternary-channel", 0.76),
        ("binary-channel", 0.8),
    ] {
        let back = quantise(&x, 64, 512, name).dequantise();
        let off: Vec<f32> = x.iter().zip(&back).map(|(a, b)| a - b).collect();
        let error = norm(&off) / norm(&x);
        // Neither worse nor better than the format can be.
        if error > most || error < 0.5 * most {
            wrong.push(format!("{name}: {error}, not below {most}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn scales_follow_their_rules() {
    let x = numbers(130 * 256, 3);
    let of_row = |r: usize, c: std::ops::Range<usize>| x[r * 256 + c.start..r * 256 + c.end].iter().fold(0.0f32, |a, v| a.max(v.abs()));
    let close = |a: f32, b: f64| (f64::from(a) - b).abs() <= 3e-7 * b;
    let int8 = quantise(&x, 130, 256, "int8-channel");
    assert!((0..130).all(|r| close(int8.scale(r, 0), f64::from(of_row(r, 0..256)) / 127.0)));
    let fp8 = quantise(&x, 130, 256, "fp8-tile");
    let tile = (0..128).map(|r| of_row(r, 128..256)).fold(0.0, f32::max);
    assert!(close(fp8.scale(0, 1), f64::from(tile) / 448.0));
    assert!(close(fp8.scale(1, 0), f64::from(of_row(128, 0..128).max(of_row(129, 0..128))) / 448.0));
    let nv = quantise(&x, 130, 256, "nvfp4");
    let tensor = x.iter().fold(0.0f32, |a, v| a.max(v.abs()));
    assert!(close(nv.tensor_scale(), f64::from(tensor) / 2688.0));
    for block in 0..16 {
        let wanted = of_row(7, 16 * block..16 * block + 16) / (6.0 * nv.tensor_scale());
        let stored = Format::E4M3.decode(unpack(&nv.scales()[7 * 4..8 * 4], 8, block));
        assert!((stored - wanted).abs() <= wanted / 15.9, "{stored} for {wanted}");
        assert_eq!(nv.scale(7, block), stored * nv.tensor_scale());
    }
    for (preset, format) in [
        ("mxfp8-e4m3", Format::E4M3),
        ("mxfp8-e5m2", Format::E5M2),
        ("mxfp6-e2m3", Format::E2M3),
        ("mxfp6-e3m2", Format::E3M2),
        ("mxfp4", Format::E2M1),
        ("mxint8", Format::Int8),
    ] {
        let max = f64::from(format.max_finite() * fraction(format));
        for (rule, suffix) in ScaleRule::ALL.into_iter().zip(["", "-ceil", "-even", "-roundup"]) {
            let matrix = quantise(&x, 130, 256, &format!("{preset}{suffix}"));
            let amax = f64::from(of_row(5, 64..96));
            let exponent = |v: f64| v.log2().floor();
            let wanted = match rule {
                ScaleRule::Floor => exponent(amax) - exponent(max),
                ScaleRule::Ceil => amax.log2().ceil() - exponent(max),
                ScaleRule::RoundUp => (amax / max).log2().ceil(),
                ScaleRule::Even => {
                    let digits = 2f64.powi(match format {
                        Format::E4M3 | Format::E2M3 => 3,
                        Format::Int8 => 6,
                        Format::E2M1 => 1,
                        _ => 2,
                    });
                    let power = exponent(amax).exp2();
                    exponent((amax / power * digits).round() / digits * power) - exponent(max)
                }
            };
            assert_eq!(f64::from(matrix.scale(5, 2)), wanted.exp2() * f64::from(fraction(format)), "{preset}{suffix}");
        }
    }
}

#[test]
fn scale_rules_at_the_ends() {
    let code = |rule: ScaleRule, amax: f32| rule.code(Format::E2M1, amax);
    for rule in ScaleRule::ALL {
        assert_eq!([code(rule, 0.0), code(rule, f32::NAN), code(rule, 1e-45), code(rule, 4.0)], [127, 255, 0, 127]);
        assert!(rule.code(Format::Int8, f32::MAX) <= 254 && code(rule, f32::MAX) >= 252);
    }
    // 7 rounds to 8 in one bit of mantissa, 6 is the largest number, 4.000001 is past a power of two.
    assert_eq!([code(ScaleRule::Floor, 7.0), code(ScaleRule::Even, 7.0), code(ScaleRule::Even, 6.9)], [127, 128, 127]);
    assert_eq!([code(ScaleRule::RoundUp, 6.0), code(ScaleRule::RoundUp, 6.000_001), code(ScaleRule::Ceil, 4.000_001)], [127, 128, 128]);
    assert_eq!([largest_exponent(Format::E4M3), largest_exponent(Format::E5M2), largest_exponent(Format::Int8)], [8, 15, 0]);
}

#[test]
fn zeros_subnormals_and_single_numbers() {
    for name in PRESETS {
        let zeros = quantise(&[0.0; 96], 3, 32, name);
        let largest = zeros.dequantise().iter().fold(0.0f32, |a, v| a.max(v.abs()));
        assert!(largest <= f32::MIN_POSITIVE, "{name}: {largest}");
        if zeros.scheme().scaling.is_some() && *name != "binary-channel" {
            let unit = if *name == "mxint8" { 1.0 / 64.0 } else { 1.0 };
            assert!((zeros.scale(0, 0), zeros.tensor_scale()) == (unit, 1.0), "{name}: scales of 0 are 1");
        }
        let tiny: Vec<f32> = (0..96).map(|i| f32::from_bits(i * 12_345)).collect();
        let back = quantise(&tiny, 3, 32, name).dequantise();
        assert!(back.iter().all(|v| v.abs() <= 2f32.powi(-120)), "{name}");
        for x in [1.0f32, -3.7, 1e-20, -2e20] {
            let back = quantise(&[x], 1, 1, name).dequantise()[0];
            let most = match *name {
                "f16" if x.abs() > 65_504.0 => continue,
                "f16" => 6e-8 + 5e-4 * x.abs(),
                "f32" => 0.0,
                "bf16" => 4e-3 * x.abs(),
                "mxint8" => x.abs() / 64.0,
                _ if name.starts_with("mx") => x.abs() / 3.9,
                _ => 3e-6 * x.abs(),
            };
            // With 0 beside it, the range of an affine group has the number at its end.
            assert!((back - x).abs() <= most, "{name}: {x} became {back}");
        }
    }
}

#[test]
fn blocks_far_below_the_largest_number_stay() {
    let mut x = numbers(64, 2);
    x[..16].iter_mut().for_each(|v| *v *= 2f32.powi(-20));
    x[20] = 4.0;
    let nv = quantise(&x, 1, 64, "nvfp4");
    assert_eq!(unpack(nv.scales(), 8, 0), 1, "the smallest scale, where 0 would be nearer");
    let back = nv.dequantise();
    assert!(back[..16].iter().any(|v| *v != 0.0));
    // A quarter of the step at least is under the smallest scale: half of the step is the most that is lost.
    assert!(x.iter().zip(&back).take(16).all(|(a, b)| (a - b).abs() <= 0.5 * nv.scale(0, 0)));
    nearest(&x, &nv);
}

#[test]
fn nan_and_infinities() {
    let mut x = numbers(4 * 64, 8);
    x[70] = f32::NAN;
    x[140] = f32::NEG_INFINITY;
    for name in PRESETS {
        let matrix = quantise(&x, 4, 64, name);
        let (back, oddities) = (matrix.dequantise(), matrix.oddities());
        assert_eq!((oddities.num_nan, oddities.num_infinite), (1, 1));
        let lost = back.iter().filter(|v| v.is_nan()).count();
        let keeps = matrix.scheme().format().is_none_or(|f| f.has_nan());
        if keeps {
            assert_eq!((lost, oddities.num_nan_scales), (1, 0), "{name}");
        } else {
            // The whole group, and no other.
            let group = match matrix.scheme().scaling.expect("scales").granularity {
                Granularity::Tensor | Granularity::Tile => 256,
                Granularity::Channel => 64,
                Granularity::Block(size) => size.min(64),
            };
            assert_eq!((lost, oddities.num_nan_scales), (group, 1), "{name}");
        }
        if lost == 256 {
            continue;
        }
        let infinity = back[140];
        if keeps && !name.contains("fp8") {
            assert_eq!(infinity, f32::NEG_INFINITY, "{name}");
        } else {
            let block = matrix.scheme().block().unwrap_or(64).min(64);
            let others = back[140 / block * block..][..block].iter().filter(|v| v.is_finite()).fold(0.0f32, |a, v| a.max(v.abs()));
            assert!(infinity < 0.0 && infinity.is_finite() && -infinity >= 0.9 * others || name.contains("affine"), "{name}: {infinity}");
        }
    }
    let own = quantise(&x, 4, 64, "e5m2-channel-unsaturated").dequantise();
    assert_eq!(own[140], f32::NEG_INFINITY);
}

#[test]
fn sizes_are_what_the_formats_promise() {
    let share = |name: &str| Scheme::parse(name).unwrap().bytes(4096, 4096) as f64 / (4.0 * 4096.0 * 4096.0);
    for (name, most) in [
        ("int4-group32", 0.157),
        ("int4-group32-f16", 0.141),
        ("int4-group32-affine", 0.1603),
        ("int4-group128", 0.133),
        ("mxfp4", 0.133),
        ("mxfp6-e2m3", 0.1954),
        ("mxfp8-e4m3", 0.258),
        ("nvfp4", 0.1407),
        ("nf4", 0.141),
        ("int8-channel", 0.2503),
        ("int2-group64", 0.079),
        ("ternary-channel", 0.063),
        ("binary-channel", 0.0316),
        ("bf16", 0.5),
    ] {
        assert!(share(name) <= most && share(name) > 0.98 * most, "{name}: {}", share(name));
    }
}

#[test]
fn codes_lie_where_the_module_says() {
    let x: Vec<f32> = (0..32).map(|i| i as f32 - 15.0).collect();
    let six = quantise(&x, 1, 32, "e2m3-tensor");
    for (i, &number) in x.iter().enumerate() {
        let (at, j) = (i / 16 * 3, i % 16);
        let low = six.codes()[at + j / 8] >> (4 * (j % 8)) & 15;
        let high = six.codes()[at + 2] >> (2 * j) & 3;
        let code = Format::E2M3.encode(number / six.scale(0, 0), Rounding::NearestEven, Overflow::Saturate);
        assert_eq!((low | high << 4, six.code(0, i)), (code, code));
    }
    let four = quantise(&x, 2, 16, "int4-channel");
    assert_eq!(four.codes().len(), 4);
    assert_eq!(four.codes()[0] & 15, 9, "-7 in two's complement");
    assert_eq!(four.codes()[3] >> 28, 7);
    // Three scales of 8 bits fill no word: rows of scales begin at words.
    let mx = quantise(&numbers(2 * 96, 1), 2, 96, "mxfp4");
    assert_eq!((mx.scales().len(), mx.codes().len()), (2, 24));
    let affine = quantise(&numbers(3 * 96, 1), 3, 96, "int4-group32-affine");
    assert_eq!((affine.zero_points().len(), affine.scales().len()), (3, 9));
}

#[test]
fn names_say_everything_and_come_back() {
    for name in PRESETS {
        assert_eq!(Scheme::parse(name).unwrap().to_string(), *name);
    }
    let mut num_sound = 0;
    let granularities =
        [Granularity::Tensor, Granularity::Channel, Granularity::Tile].into_iter().chain([16, 32, 64, 128].map(Granularity::Block));
    let formats = [ScaleFormat::F32, ScaleFormat::F16, ScaleFormat::E4M3].into_iter().chain(ScaleRule::ALL.map(ScaleFormat::E8M0));
    let scalings: Vec<Option<Scaling>> = granularities
        .flat_map(|granularity| formats.clone().map(move |format| (granularity, format)))
        .flat_map(|(granularity, format)| [false, true].map(|zero_point| Some(Scaling { granularity, format, zero_point })))
        .chain([None])
        .collect();
    for element in Format::ALL.map(Element::Code).into_iter().chain([Element::F32, Element::F16]) {
        for scaling in &scalings {
            let roundings =
                [SchemeRounding::Fixed(Rounding::NearestEven), SchemeRounding::Fixed(Rounding::TowardsZero), SchemeRounding::Stochastic];
            for (rounding, overflow) in roundings.into_iter().flat_map(|r| [Overflow::Saturate, Overflow::Format].map(|o| (r, o))) {
                for hadamard in [None, Some(16), Some(128)] {
                    let scheme = Scheme { element, scaling: *scaling, rounding, overflow, hadamard };
                    if scheme.check().is_ok() {
                        num_sound += 1;
                        assert_eq!(Scheme::parse(&scheme.to_string()).unwrap_or_else(|e| panic!("{e}")), scheme, "{scheme}");
                    }
                }
            }
        }
    }
    assert!(num_sound > 5000, "{num_sound}");
    assert_eq!(Scheme::parse("e4m3-tile").unwrap(), Scheme::parse("fp8-tile").unwrap());
    assert_eq!(Scheme::parse("fp8-tile").unwrap().for_activations(), Scheme::parse("fp8-group128").unwrap());
    for wrong in [
        "",
        "int5",
        "mxfp8",
        "int4-group33",
        "f32-channel",
        "int4-group32-f16-f16",
        "nf4-affine",
        "mxfp4-group64",
        "int8",
        "int4-group32-ceil",
    ] {
        match Scheme::parse(wrong) {
            // Integers may stand for themselves.
            Ok(scheme) => assert!(wrong == "int8" && scheme.scaling.is_none(), "{wrong}"),
            Err(error) => assert!(error.to_string().contains("nvfp4") || error.to_string().contains("hold together"), "{error}"),
        }
    }
}

#[test]
fn calibrations_choose_ranges() {
    let mut x = numbers(8 * 128, 4);
    x[77] = 60.0;
    let scheme = Scheme::parse("int4-channel").unwrap();
    let with = |calibration| Quantised::new(&x, 8, 128, &scheme, &QuantiseOptions { calibration, ..Default::default() }).unwrap();
    let error = |m: &Quantised| -> f64 { m.dequantise().iter().zip(&x).map(|(a, b)| f64::from(a - b).powi(2)).sum() };
    let (absmax, mse, percentile) = (with(Calibration::Absmax), with(Calibration::Mse), with(Calibration::Percentile(99.0)));
    assert!(error(&mse) < error(&absmax));
    assert!(percentile.scale(0, 0) < 0.2 * absmax.scale(0, 0));
    assert_eq!(with(Calibration::Percentile(100.0)).scales(), absmax.scales());
    for p in [-1.0, 100.5, f32::NAN] {
        let options = QuantiseOptions { calibration: Calibration::Percentile(p), ..Default::default() };
        assert!(Quantised::new(&x, 8, 128, &scheme, &options).unwrap_err().to_string().contains("0 to 100"));
    }
    for name in ["ternary-channel", "binary-channel", "int4-group32-affine", "mxfp4", "nvfp4"] {
        let scheme = Scheme::parse(name).unwrap();
        let of = |calibration| Quantised::new(&x, 8, 128, &scheme, &QuantiseOptions { calibration, ..Default::default() }).unwrap();
        assert!(error(&of(Calibration::Mse)) <= error(&of(Calibration::Absmax)), "{name}");
    }
}

#[test]
fn rounding_by_chance_is_unbiased_and_repeats() {
    let x = vec![0.3f32; 4096];
    let scheme = Scheme::parse("int8-tensor-stochastic").unwrap();
    let of = |tensor| Quantised::new(&x, 64, 64, &scheme, &QuantiseOptions { seed: 3, tensor, ..Default::default() }).unwrap();
    assert_eq!(of(1), of(1));
    // The largest number is hit exactly; a smaller one is hit in the mean.
    let mut y = x.clone();
    y[0] = 127.0;
    let matrix = Quantised::new(&y, 64, 64, &scheme, &QuantiseOptions { seed: 3, tensor: 1, ..Default::default() }).unwrap();
    let other = Quantised::new(&y, 64, 64, &scheme, &QuantiseOptions { seed: 3, tensor: 2, ..Default::default() }).unwrap();
    assert_ne!(matrix.codes(), other.codes());
    let mean = matrix.dequantise()[1..].iter().map(|v| f64::from(*v)).sum::<f64>() / 4095.0;
    assert!((mean - 0.3).abs() < 4.5 * (0.21f64 / 4095.0).sqrt(), "{mean}");
}

#[test]
fn a_transform_shares_outliers() {
    let mut x = numbers(4 * 100, 12);
    x[33] = 40.0;
    let error = |m: &Quantised| -> f64 { m.dequantise().iter().zip(&x).map(|(a, b)| f64::from(a - b).powi(2)).sum() };
    let (plain, turned) = (quantise(&x, 4, 100, "int4-channel"), quantise(&x, 4, 100, "int4-channel-hadamard64"));
    assert_eq!(turned.scheme().padded_k(100), 128);
    assert!(error(&turned) < 0.5 * error(&plain), "{} {}", error(&turned), error(&plain));
    // Products of two turned matrices are those of the matrices.
    let (a, b) = (quantise(&x, 4, 100, "f32-hadamard32"), quantise(&numbers(400, 13), 4, 100, "f32-hadamard32"));
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    assert!((dot(&a.stored_values(), &b.stored_values()) - dot(&x, &numbers(400, 13))).abs() < 1e-3);
}

#[test]
fn parts_make_the_matrix_again() {
    let x = numbers(3 * 70, 21);
    for name in PRESETS.iter().copied().chain(["int4-group16-hadamard32"]) {
        let m = quantise(&x, 3, 70, name);
        let (codes, scales, zeros) = (m.codes().to_vec(), m.scales().to_vec(), m.zero_points().to_vec());
        let again =
            Quantised::from_parts(m.scheme(), 3, 70, m.seed(), codes.clone(), scales.clone(), zeros.clone(), m.tensor_scale()).unwrap();
        assert_eq!(again, m, "{name}");
        let short = Quantised::from_parts(m.scheme(), 3, 70, 0, codes[1..].to_vec(), scales, zeros, 1.0).unwrap_err().to_string();
        assert!(short.contains("words") && short.contains(name), "{short}");
    }
    let error = Quantised::new(&x, 3, 71, &Scheme::parse("mxfp4").unwrap(), &QuantiseOptions::default()).unwrap_err();
    assert!(error.to_string().contains("213"), "{error}");
}
