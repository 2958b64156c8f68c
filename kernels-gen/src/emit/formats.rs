//! The functions of [`crate::formats`] in WGSL.
//!
//! Codes are decoded wherever weights are read, so that is cheap: shifts and one conversion of small integers, which is exact everywhere.
//! Encoders are branch-free: all lanes of a vector take the same path.

use crate::formats::{Class, Float, Format, NF4, Overflow, Rounding, nf4_fixed, nf4_thresholds};

/// Name of the function that reads codes.
pub fn decode_name(format: Format, width: u8) -> String {
    format!("decode_{format}_{width}")
}

/// Name of the function that writes codes; by chance where no rounding is given.
pub fn encode_name(format: Format, rounding: Option<Rounding>, overflow: Overflow, width: u8) -> String {
    format!("encode_{format}_{}_{}_{width}", rounding.map_or("chance", Rounding::name), overflow.name())
}

/// `decode_...(code: $U) -> $F`; the types are holes of the template. Bits above a code are not looked at.
pub fn decode(format: Format, width: u8) -> String {
    let body = match format.class() {
        Class::Float(float) => decode_float(format, float),
        Class::Signed { bits, .. } => {
            let gap = 32 - bits;
            format!("return $F(bitcast<$I>(code << $U({gap}u)) >> $U({gap}u));")
        }
        Class::Unsigned { max } => format!("return $F(code & $U({max}u));"),
        Class::E8M0 => "let size = code & $U(255u);
    return bitcast<$F>(select(max(size << $U(23u), $U(0x400000u)), $U(0x7fc00000u), size == $U(255u)));"
            .to_string(),
        Class::Binary => "return bitcast<$F>($U(0xbf800000u) ^ (code << $U(31u)));".to_string(),
        Class::Nf4 => {
            let values = NF4.map(|v| format!("$U({:#010x}u)", v.to_bits()));
            format!("return bitcast<$F>({});", select_tree(&values, "code"))
        }
    };
    format!("fn {}(code: $U) -> $F {{\n    {body}\n}}\n", decode_name(format, width))
}

fn decode_float(format: Format, float: Float) -> String {
    let Float { man, bias, sign, past, nan, .. } = float;
    if format == Format::Bf16 {
        return "return bitcast<$F>(code << $U(16u));".to_string();
    }
    let size_mask = (1u32 << sign) - 1;
    let sign_text = format!("((code & $U({}u)) << $U({}u))", 1u32 << sign, 31 - sign);
    if format == Format::E2M1 {
        // Twice the value, four bits each.
        return format!(
            "let twice = ($U(0xc8643210u) >> ((code & $U({size_mask}u)) << $U(2u))) & $U(15u);
    return bitcast<$F>(bitcast<$U>($F(twice) * 0.5) | {sign_text});"
        );
    }
    let normal = format!("(size << $U({}u)) + $U({:#x}u)", 23 - man, (127 - bias) << 23);
    let step = f32::from_bits((128 - bias - man) << 23);
    let small = format!("bitcast<$U>($F(size) * {step:?})");
    let mut text = format!("let size = code & $U({size_mask}u);\n    ");
    text.push_str(&format!("let number = select({normal}, {small}, size < $U({}u));\n    ", 1u32 << man));
    let number = match (nan, past == nan) {
        (0, _) => "number".to_string(),
        (_, true) => format!("select(number, $U(0x7fc00000u), size == $U({past}u))"),
        // Infinity, and NaN above it.
        (_, false) => format!("select(number, $U(0x7f800000u) | (min(size - $U({past}u), $U(1u)) << $U(22u)), size >= $U({past}u))"),
    };
    text.push_str(&format!("return bitcast<$F>({number} | {sign_text});"));
    text
}

/// The value among `values`, a power of two of them, whose number has the bits of `number`: nested selects, the last bit innermost.
fn select_tree(values: &[String], number: &str) -> String {
    let mut level = values.to_vec();
    let mut bit = 1u32;
    while level.len() > 1 {
        let test = format!("(({number} & $U({bit}u)) != $U(0u))");
        level = level.chunks(2).map(|pair| format!("select({}, {}, {test})", pair[0], pair[1])).collect();
        bit <<= 1;
    }
    level.concat()
}

/// `encode_...(x: $F) -> $U`, with `noise: $U` behind it where no rounding is given.
pub fn encode(format: Format, rounding: Option<Rounding>, overflow: Overflow, width: u8) -> String {
    let body = match format.class() {
        Class::Float(float) => encode_float(format, float, rounding, overflow),
        Class::Signed { bits, max } => format!(
            "{}
    let size = select(min(rounded, $U({max}u)), $U(0u), magnitude > $U(0x7f800000u));
    return select(size, ($U(0u) - size) & $U({}u), bits > $U(0x7fffffffu));",
            whole(rounding),
            (1u32 << bits) - 1
        ),
        Class::Unsigned { max } => format!(
            "{}
    return select(min(rounded, $U({max}u)), $U(0u), bits > $U(0x7f800000u));",
            whole(rounding)
        ),
        Class::E8M0 => {
            let code = match rounding {
                Some(Rounding::TowardsZero) => "(bits >> $U(23u))",
                Some(Rounding::NearestEven) => "select((bits + $U(0x400000u)) >> $U(23u), $U(0u), bits == $U(0x400000u))",
                None => {
                    "((bits >> $U(23u)) + select($U(0u), $U(1u), noise < select(bits << $U(9u), (max(bits, $U(0x400000u)) - $U(0x400000u)) << $U(10u), bits < $U(0x800000u))))"
                }
            };
            let limit = if overflow == Overflow::Saturate { 254 } else { 255 };
            format!(
                "let bits = bitcast<$U>(x);
    let code = {code};
    return select(min(code, $U({limit}u)), $U(255u), bits - $U(1u) >= $U(0x7f800000u));"
            )
        }
        Class::Binary => match rounding {
            Some(_) => "let bits = bitcast<$U>(x);
    return select($U(1u), $U(0u), (bits > $U(0x80000000u)) & (bits <= $U(0xff800000u)));"
                .to_string(),
            None => format!(
                "{FIXED}
    return select($U(0u), $U(1u), (noise >> $U(1u) < bitcast<$U>(fixed + $I(1073741824i))) | (magnitude > $U(0x7f800000u)));"
            ),
        },
        Class::Nf4 => encode_nf4(rounding),
    };
    let noise = if rounding.is_none() { ", noise: $U" } else { "" };
    format!("fn {}(x: $F{noise}) -> $U {{\n    {body}\n}}\n", encode_name(format, rounding, overflow, width))
}

/// `rounded`: `whole` without its last `shift` bits.
fn round(rounding: Option<Rounding>) -> &'static str {
    match rounding {
        // All bits below the last that stays, and that one, are half of it or more where the sum carries.
        Some(Rounding::NearestEven) => {
            "let shift = min(gap, $U(25u));
    let rounded = (whole + (($U(1u) << (shift - $U(1u))) - $U(1u)) + ((whole >> shift) & $U(1u))) >> shift;"
        }
        Some(Rounding::TowardsZero) => "let rounded = whole >> min(gap, $U(31u));",
        // The dropped part in units of 2^-32.
        None => {
            "let shift = min(gap, $U(56u));
    let part = select(whole << ($U(32u) - min(shift, $U(32u))), whole >> (max(shift, $U(32u)) - $U(32u)), shift > $U(32u));
    let rounded = (whole >> min(shift, $U(31u))) + select($U(0u), $U(1u), noise < part);"
        }
    }
}

/// `bits`, `magnitude` and, where it is no NaN, `rounded`: the magnitude as a whole number, which is only known to be large past 2^14.
fn whole(rounding: Option<Rounding>) -> String {
    format!(
        "let bits = bitcast<$U>(x);
    let magnitude = bits & $U(0x7fffffffu);
    let whole = (bits & $U(0x7fffffu)) | $U(0x800000u);
    let gap = $U(150u) - min(magnitude >> $U(23u), $U(141u));
    {}",
        round(rounding)
    )
}

fn encode_float(format: Format, float: Float, rounding: Option<Rounding>, overflow: Overflow) -> String {
    let Float { man, sign, max, past, nan, .. } = float;
    let mut text = "let bits = bitcast<$U>(x);
    let magnitude = bits & $U(0x7fffffffu);
    "
    .to_string();
    if format == Format::Bf16 {
        text.push_str(match rounding {
            Some(Rounding::NearestEven) => "let code = (magnitude + $U(0x7fffu) + ((magnitude >> $U(16u)) & $U(1u))) >> $U(16u);",
            Some(Rounding::TowardsZero) => "let code = magnitude >> $U(16u);",
            None => "let code = (magnitude >> $U(16u)) + select($U(0u), $U(1u), noise < (magnitude << $U(16u)));",
        });
    } else {
        let from = float.normal_from();
        text.push_str(&format!(
            "let exponent = magnitude >> $U(23u);
    let whole = (bits & $U(0x7fffffu)) | $U(0x800000u);
    let gap = $U({}u) - min(exponent, $U({from}u));
    {}
    let code = ((max(exponent, $U({from}u)) - $U({from}u)) << $U({man}u)) + rounded;",
            23 - man + from,
            round(rounding)
        ));
    }
    let limited = match (overflow, rounding) {
        (Overflow::Saturate, _) => format!("min(code, $U({max}u))"),
        (Overflow::Format, Some(Rounding::TowardsZero)) if past != max => {
            format!("select(min(code, $U({max}u)), $U({past}u), magnitude == $U(0x7f800000u))")
        }
        (Overflow::Format, _) => format!("min(code, $U({past}u))"),
    };
    let signed = format!("(bits >> $U(31u)) << $U({sign}u)");
    text.push_str("\n    ");
    text.push_str(&match nan {
        0 => format!("return select({limited} | ({signed}), $U(0u), magnitude > $U(0x7f800000u));"),
        nan => format!("return select({limited}, $U({nan}u), magnitude > $U(0x7f800000u)) | ({signed});"),
    });
    text
}

/// `magnitude`, and `fixed`: the number in units of 2^-30, between -1 and 1.
const FIXED: &str = "let bits = bitcast<$U>(x);
    let magnitude = bits & $U(0x7fffffffu);
    let exponent = magnitude >> $U(23u);
    let inside = (((bits & $U(0x7fffffu)) | $U(0x800000u)) << $U(6u)) >> min($U(126u) - min(exponent, $U(126u)), $U(31u));
    let size = bitcast<$I>(select(inside, $U(0x40000000u), exponent >= $U(127u)));
    let fixed = select(size, -size, bits > $U(0x7fffffffu));";

fn encode_nf4(rounding: Option<Rounding>) -> String {
    // Four comparisons find the number of thresholds that are not above; each one chooses the next threshold.
    let search = |key: &str, thresholds: &[i32; 15]| {
        let [t0, t1, t2, t3, t4, t5, t6, t7, t8, t9, t10, t11, t12, t13, t14] = thresholds.map(|t| format!("$I({t}i)"));
        format!(
            "let above_8 = {key} >= {t7};
    let above_4 = {key} >= select({t3}, {t11}, above_8);
    let above_2 = {key} >= select(select({t1}, {t5}, above_4), select({t9}, {t13}, above_4), above_8);
    let low = select(select({t0}, {t2}, above_2), select({t4}, {t6}, above_2), above_4);
    let high = select(select({t8}, {t10}, above_2), select({t12}, {t14}, above_2), above_4);
    let above_1 = {key} >= select(low, high, above_8);
    let zero = $U(0u);
    let found = select(zero, $U(8u), above_8) | select(zero, $U(4u), above_4) | select(zero, $U(2u), above_2) | select(zero, $U(1u), above_1);"
        )
    };
    match rounding {
        Some(rounding) => format!(
            "let bits = bitcast<$I>(x);
    let key = bits ^ ((bits >> $U(31u)) & $I(0x7fffffffi));
    {}
    return select(found, $U(7u), (bits & $I(0x7fffffffi)) > $I(0x7f800000i));",
            search("key", &nf4_thresholds(rounding))
        ),
        None => {
            let values = nf4_fixed();
            // The last value is nobody's lower neighbour.
            let thresholds: [i32; 15] = std::array::from_fn(|i| if i == 14 { i32::MAX } else { values[i + 1] });
            let texts = |values: &[i32]| values.iter().map(|v| format!("$I({v}i)")).collect::<Vec<_>>();
            let gaps: Vec<i32> = (0..16).map(|i| values[(i + 1).min(15)] - values[i]).collect();
            format!(
                "{FIXED}
    {}
    let below = {};
    let gap = bitcast<$U>({});
    let low_product = (noise & $U(0xffffu)) * (gap & $U(0xffffu));
    let middle = (noise >> $U(16u)) * (gap & $U(0xffffu)) + (low_product >> $U(16u));
    let rest = (noise & $U(0xffffu)) * (gap >> $U(16u)) + (middle & $U(0xffffu));
    let product = (noise >> $U(16u)) * (gap >> $U(16u)) + (middle >> $U(16u)) + (rest >> $U(16u));
    let up = select($U(0u), $U(1u), product < bitcast<$U>(fixed - below));
    return select(found + up, $U(7u), magnitude > $U(0x7f800000u));",
                search("fixed", &thresholds),
                select_tree(&texts(&values), "found"),
                select_tree(&texts(&gaps), "found"),
            )
        }
    }
}
