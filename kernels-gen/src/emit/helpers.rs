//! WGSL functions for what the language leaves open: NaN, infinities, conversions, and functions it lacks.

use std::collections::BTreeSet;

use crate::emit::formats;
use crate::formats::{Format, Overflow, Rounding};

/// A helper function; the number is the width of its operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Helper {
    /// NaN and infinity from their bits.
    NonFinite,
    /// A test of the bits: drivers fold `x != x`.
    IsNan(u8),
    /// Maximum and minimum that keep NaN.
    NanMaxMin(u8),
    /// Truncating, saturating conversion; NaN gives 0.
    FloatToInt(u8),
    /// Truncating, saturating conversion; NaN gives 0.
    FloatToUint(u8),
    /// Hyperbolic tangent that does not overflow.
    Tanh(u8),
    /// Error function.
    Erf(u8),
    /// Power as C's `pow`.
    Pow(u8),
    /// Remainder with the sign of the dividend.
    Rem(u8),
    /// Four floats out of two 64-bit words.
    Unpack,
    /// The value of an f16 code: exact.
    HalfValue(u8),
    /// The f16 code of a float.
    HalfCode(u8),
    /// The f16 value nearest to a float.
    HalfRound(u8),
    /// The values of codes: exact.
    Decode(Format, u8),
    /// The codes of floats.
    Encode(Format, Rounding, Overflow, u8),
    /// The codes of floats, rounded by the words of noise beside them.
    EncodeStochastic(Format, Overflow, u8),
}

/// Text of the helpers, in an order in which each one stands before its users.
pub fn text(helpers: &BTreeSet<Helper>) -> String {
    helpers.iter().map(|h| one(*h)).collect()
}

fn one(helper: Helper) -> String {
    let fill = |template: &str, w: u8| {
        let ty = |scalar: &str| if w == 1 { scalar.to_string() } else { format!("vec{w}<{scalar}>") };
        template
            .replace("$W", &w.to_string())
            .replace("$F", &ty("f32"))
            .replace("$I", &ty("i32"))
            .replace("$U", &ty("u32"))
            .replace("$B", &ty("bool"))
    };
    match helper {
        Helper::Unpack => "fn unpack_4(v: vec2<u64>) -> vec4<f32> {
    return vec4<f32>(bitcast<f32>(u32(v.x)), bitcast<f32>(u32(v.x >> 32u)), bitcast<f32>(u32(v.y)), bitcast<f32>(u32(v.y >> 32u)));
}
"
        .to_string(),
        // Bits alone, and the conversion of small integers, which is exact everywhere: no driver rounds or flushes anything here.
        Helper::HalfValue(w) => fill(
            "fn half_value_$W(code: $U) -> $F {
    let size = code & $U(0x7fffu);
    let normal = (size << $U(13u)) + select($U(0x38000000u), $U(0x70000000u), size >= $U(0x7c00u));
    let small = select($U(0u), bitcast<$U>($F(size)) - $U(0x0c000000u), size > $U(0u));
    return bitcast<$F>(select(normal, small, size < $U(0x400u)) | ((code & $U(0x8000u)) << $U(16u)));
}
",
            w,
        ),
        // To nearest, ties to even: all bits below the last that stays, and that one, are half of it or more where the sum carries.
        Helper::HalfCode(w) => fill(
            "fn half_code_$W(x: $F) -> $U {
    let bits = bitcast<$U>(x);
    let size = bits & $U(0x7fffffffu);
    let normal = min((size + $U(0xc8000fffu) + ((size >> $U(13u)) & $U(1u))) >> $U(13u), $U(0x7c00u));
    let shift = min($U(126u) - min(size >> $U(23u), $U(112u)), $U(25u));
    let whole = (size & $U(0x7fffffu)) | $U(0x800000u);
    let small = (whole + (($U(1u) << (shift - $U(1u))) - $U(1u)) + ((whole >> shift) & $U(1u))) >> shift;
    let number = select(normal, small, size < $U(0x38800000u));
    let nan = $U(0x7e00u) | ((size >> $U(13u)) & $U(0x3ffu));
    return select(number, nan, size > $U(0x7f800000u)) | ((bits >> $U(16u)) & $U(0x8000u));
}
",
            w,
        ),
        Helper::HalfRound(w) => fill("fn half_round_$W(x: $F) -> $F { return half_value_$W(half_code_$W(x)); }\n", w),
        // Through a private variable: constant expressions may not give them.
        Helper::NonFinite => "var<private> non_finite_bits: u32 = 0x7f800000u;
fn f32_inf() -> f32 { return bitcast<f32>(non_finite_bits); }
fn f32_nan() -> f32 { return bitcast<f32>(non_finite_bits | 0x400000u); }
"
        .to_string(),
        Helper::IsNan(w) => fill(
            // Signed: without its sign bit the number is positive, and more processors compare signed vectors than unsigned ones.
            "fn is_nan_$W(x: $F) -> $B { return (bitcast<$I>(x) & $I(0x7fffffffi)) > $I(0x7f800000i); }
",
            w,
        ),
        Helper::NanMaxMin(w) => fill(
            "fn nan_max_$W(a: $F, b: $F) -> $F { return select(select(max(a, b), b, is_nan_$W(b)), a, is_nan_$W(a)); }
fn nan_min_$W(a: $F, b: $F) -> $F { return select(select(min(a, b), b, is_nan_$W(b)), a, is_nan_$W(a)); }
",
            w,
        ),
        Helper::FloatToInt(w) => fill(
            "fn f32_to_i32_$W(x: $F) -> $I {
    let inside = $I(clamp(x, $F(-2147483648.0), $F(2147483520.0)));
    let high = select(inside, $I(2147483647), x >= $F(2147483648.0));
    return select(high, $I(0), is_nan_$W(x));
}
",
            w,
        ),
        Helper::FloatToUint(w) => fill(
            "fn f32_to_u32_$W(x: $F) -> $U {
    let inside = $U(clamp(x, $F(0.0), $F(4294967040.0)));
    let high = select(inside, $U(4294967295u), x >= $F(4294967296.0));
    return select(high, $U(0u), is_nan_$W(x));
}
",
            w,
        ),
        // Near 0 the quotient of exponentials cancels: there an odd polynomial (coefficients of Cephes' tanhf).
        Helper::Tanh(w) => fill(
            "fn tanh_$W(x: $F) -> $F {
    let z = x * x;
    let p = ((((z * -5.70498872745e-3 + 2.06390887954e-2) * z - 5.37397155531e-2) * z + 1.33314422036e-1) * z - 3.33332819422e-1) * z * x + x;
    let e = exp(abs(x) * -2.0);
    let q = (1.0 - e) / (1.0 + e);
    let r = select(select(q, -q, x < $F(0.0)), p, abs(x) < $F(0.625));
    return select(r, x, is_nan_$W(x));
}
",
            w,
        ),
        // Two minimax polynomials, below and above 0.9277; the error stays within a few units in the last place.
        Helper::Erf(w) => fill(
            "fn erf_$W(x: $F) -> $F {
    let t = abs(x);
    let s = x * x;
    var p = fma($F(-1.72853470e-5), t, $F(3.83197126e-4));
    p = fma(p, s, fma($F(-3.88396438e-3), t, $F(2.42546219e-2)));
    p = fma(p, t, $F(-1.06777877e-1));
    p = fma(p, t, $F(-6.34846687e-1));
    p = fma(p, t, $F(-1.28717512e-1));
    p = 1.0 - exp(fma(p, t, -t));
    // Past 4 the result is 1 in this precision; the polynomial is not meant for it.
    p = select(p, $F(1.0), t > $F(4.0));
    p = select(p, -p, x < $F(0.0));
    var q = fma($F(-5.96761703e-4), s, $F(4.99119423e-3));
    q = fma(q, s, $F(-2.67681349e-2));
    q = fma(q, s, $F(1.12819925e-1));
    q = fma(q, s, $F(-3.76125336e-1));
    q = fma(q, s, $F(1.28379166e-1));
    q = fma(q, x, x);
    let r = select(q, p, t > $F(0.927734375));
    return select(r, x, is_nan_$W(x));
}
",
            w,
        ),
        Helper::Pow(w) => fill(
            "fn pow_$W(x: $F, y: $F) -> $F {
    let zero = $F(0.0);
    let whole = floor(y) == y;
    let odd = whole & (abs(y) < $F(16777216.0)) & ((y - 2.0 * floor(y * 0.5)) == $F(1.0));
    let size = pow(abs(x), y);
    var r = select(size, -size, (x < zero) & odd);
    r = select(r, $F(f32_nan()), (x < zero) & !whole & (abs(x) <= $F(3.4028234e38)));
    r = select(r, select($F(f32_inf()), zero, y > zero), x == zero);
    r = select(r, x, is_nan_$W(x));
    r = select(r, y, is_nan_$W(y));
    return select(r, $F(1.0), ((y == zero) & !is_nan_$W(y)) | ((x == $F(1.0)) & !is_nan_$W(x)));
}
",
            w,
        ),
        Helper::Decode(format, w) => fill(&formats::decode(format, w), w),
        Helper::Encode(format, rounding, overflow, w) => fill(&formats::encode(format, Some(rounding), overflow, w), w),
        Helper::EncodeStochastic(format, overflow, w) => fill(&formats::encode(format, None, overflow, w), w),
        Helper::Rem(w) => fill(
            "fn rem_$W(a: $F, b: $F) -> $F { return a - b * trunc(a / b); }
",
            w,
        ),
    }
}
