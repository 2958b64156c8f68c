//! Codes of element formats: those of `float_formats.json` on the host and on the adapter, and rounding by chance on both.
//! What is ignored needs the data folder, named by `SUBLANE_DATA`.

mod device_common;

use std::path::PathBuf;

use device_common::open;
use kernels_gen::formats::{Format, Overflow, Rounding};
use kernels_gen::threefry::Key;
use serde_json::Value as Json;
use sublane::capture::{Traced, capture};
use sublane::compiler::{CompileOptions, compile};
use sublane::device::Device;
use sublane::ops::prelude::*;
use sublane::ops::random::random_key;
use sublane::{DType, HostTensor, Result, Session};

fn run(device: &Device, x: &HostTensor, f: impl FnOnce(&Traced) -> Result<Traced>) -> HostTensor {
    let graph = capture(|t| f(&t.input("x", x.shape(), x.dtype())?)).expect("records");
    let compiled = compile(&graph, &device.target(), &CompileOptions::default()).expect("compiles");
    let session = Session::load(device, &compiled).expect("loads");
    session.run(&[("x", x)]).expect("runs").into_iter().next().expect("a result").1
}

/// Bits of floats; one NaN stands for those of its sign.
fn bits(x: f32) -> u32 {
    if x.is_nan() { 0x7fc0_0000 | x.to_bits() & 0x8000_0000 } else { x.to_bits() }
}

fn words(json: &Json) -> Vec<u32> {
    json.as_array().expect("a list").iter().map(|v| v.as_u64().and_then(|v| u32::try_from(v).ok()).expect("a word")).collect()
}

#[test]
#[ignore = "needs SUBLANE_DATA"]
fn codes_are_those_of_ml_dtypes() {
    let folder = std::env::var_os("SUBLANE_DATA").expect("set SUBLANE_DATA to the absolute path of the data folder");
    let text = std::fs::read_to_string(PathBuf::from(folder).join("golden/float_formats.json")).expect("the golden file");
    let golden: Json = serde_json::from_str(&text).expect("JSON");
    let device = open();
    for (name, format) in [
        ("float4_e2m1fn", Format::E2M1),
        ("float6_e2m3fn", Format::E2M3),
        ("float6_e3m2fn", Format::E3M2),
        ("float8_e4m3fn", Format::E4M3),
        ("float8_e5m2", Format::E5M2),
        ("float8_e8m0fnu", Format::E8M0),
        ("bfloat16", Format::Bf16),
    ] {
        let entry = &golden[name];
        // Codes of bf16 are not listed: they are the upper halves of floats.
        let numbers = match &entry["decode_bits_f32"] {
            Json::Null => (0..1 << 16).map(|code| code << 16).collect(),
            list => words(list),
        };
        let codes = HostTensor::new([numbers.len()], (0..numbers.len() as u32).collect()).expect("fits");
        let read = run(&device, &codes, |x| x.decode(format));
        for (code, (&want, &got)) in (0..).zip(numbers.iter().zip(read.as_slice::<f32>().expect("f32"))) {
            let want = bits(f32::from_bits(want));
            assert_eq!(bits(format.decode(code)), want, "{name} {code:#x} on the host");
            assert!(bits(got) == want || got.is_nan() && f32::from_bits(want).is_nan(), "{name} {code:#x} is read as {got:?}");
        }

        let (inputs, wanted) = (words(&entry["encode_in_bits_f32"]), words(&entry["encode_out"]));
        let values: Vec<f32> = inputs.into_iter().map(f32::from_bits).collect();
        let x = HostTensor::new([values.len()], values.clone()).expect("fits");
        let own = run(&device, &x, |x| x.encode(format, Rounding::NearestEven, Overflow::Format));
        let saturated = run(&device, &x, |x| x.encode(format, Rounding::NearestEven, Overflow::Saturate));
        let codes = |tensor: &HostTensor| tensor.as_slice::<u32>().expect("u32").to_vec();
        let written = values.iter().zip(wanted).zip(codes(&own).into_iter().zip(codes(&saturated)));
        for ((&x, want), (own, saturated)) in written {
            let host = |overflow| format.encode(x, Rounding::NearestEven, overflow);
            assert_eq!((host(Overflow::Format), host(Overflow::Saturate)), (own, saturated), "{name} of {x:?}: host and device");
            if x.is_nan() && !format.has_nan() {
                continue;
            }
            assert_eq!(own, want, "{name} of {x:?}");
            // The two rules part where a number is rounded past the largest one, and nowhere else.
            let past = !format.decode(want).is_finite() && !x.is_nan() && (format != Format::E8M0 || x > 0.0);
            let largest = format.encode(format.max_finite().copysign(x), Rounding::NearestEven, Overflow::Format);
            assert_eq!(saturated, if past { largest } else { want }, "{name} of {x:?}, saturating");
        }
    }
}

/// A graph that draws its noise itself gives the codes that the host computes for the same key.
#[test]
fn chance_is_the_same_on_host_and_device() {
    const N: usize = 20_000;
    let device = open();
    for (stream, format) in (0..).zip(Format::ALL) {
        let numbers = Key::new(3).stream(stream);
        // Within the range of the format, a little past it, and far below.
        let scale = if matches!(format, Format::Bf16 | Format::E8M0) { 3.0 } else { format.max_finite() * 1.1 };
        let x: Vec<f32> = (0..N as u64)
            .map(|n| scale * (2.0 * numbers.uniform(2 * n) - 1.0) * [1.0, 1e-2, 1e-9][(numbers.word(2 * n + 1) % 3) as usize])
            .collect();
        let noise = Key::new(9).stream(stream);
        let words: Vec<u32> = (0..N as u64).map(|n| noise.word(n)).collect();
        let tensor = HostTensor::new([N], x.clone()).expect("fits");
        let drawn = run(&device, &tensor, |x| {
            let key = x.constant(random_key(9, stream)?)?;
            x.encode_stochastic(&key.random_words(&[N])?, format, Overflow::Saturate)
        });
        for (n, &got) in drawn.as_slice::<u32>().expect("u32").iter().enumerate() {
            assert_eq!(got, format.encode_stochastic(x[n], words[n], Overflow::Saturate), "{format} of {:?} with {:#x}", x[n], words[n]);
        }
    }
}

/// Everything between a number and what a code of it says is one kernel.
#[test]
fn quantising_and_reading_back_is_one_kernel() {
    let graph = capture(|t| {
        let x = t.input("x", [64, 64], DType::F32)?;
        x.mul_scalar(3.0)?.encode(Format::E2M1, Rounding::NearestEven, Overflow::Saturate)?.decode(Format::E2M1)?.relu()
    });
    let compiled = compile(&graph.expect("records"), &kernels_gen::Target::software(), &CompileOptions::default()).expect("compiles");
    assert_eq!(compiled.kernels().len(), 1);
}
