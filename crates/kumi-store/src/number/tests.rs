//! Numbers at the edges of what is accepted, most of them tried on a real server.

use super::*;
use proptest::prelude::*;

#[test]
fn integers_have_one_way_to_be_written() {
    let accepted: [(&str, i64); 8] = [
        ("0", 0),
        ("7", 7),
        ("-1", -1),
        ("1000000000000000000", 1_000_000_000_000_000_000),
        ("9223372036854775807", i64::MAX),
        ("-9223372036854775807", -i64::MAX),
        ("-9223372036854775808", i64::MIN),
        ("-10", -10),
    ];
    for (text, value) in accepted {
        assert_eq!(parse_i64(text.as_bytes()), Some(value), "{text}");
    }
    let refused = "|-|+1|-0|00|01|-01| 1|1 |1.0|1e3|0x1|--1|a|1a|9223372036854775808|-9223372036854775809|\
        18446744073709551616|99999999999999999999|111111111111111111111";
    for text in refused.split('|') {
        assert_eq!(parse_i64(text.as_bytes()), None, "{text}");
    }
    assert_eq!(parse_i64(b"1\0"), None);
}

#[test]
fn unsigned_integers_have_one_way_to_be_written() {
    assert_eq!(parse_u64(b"0"), Some(0));
    assert_eq!(parse_u64(b"18446744073709551615"), Some(u64::MAX));
    for text in ["", "-1", "+1", "01", "18446744073709551616", "1 "] {
        assert_eq!(parse_u64(text.as_bytes()), None, "{text}");
    }
}

#[test]
fn cursors_are_read_leniently() {
    let accepted: [(&[u8], u64); 9] = [
        (b"", 0),
        (b"0", 0),
        (b"007", 7),
        (b"+5", 5),
        (b"-1", u64::MAX),
        (b"-0", 0),
        (b"18446744073709551615", u64::MAX),
        (b"5\0rest", 5),
        (b"\0", 0),
    ];
    for (text, value) in accepted {
        assert_eq!(parse_cursor(text), Some(value), "{}", text.escape_ascii());
    }
    for text in [
        "-",
        "+",
        " 1",
        "1 ",
        "a",
        "--1",
        "18446744073709551616",
        "0x1",
    ] {
        assert_eq!(parse_cursor(text.as_bytes()), None, "{text}");
    }
}

#[test]
fn memory_units_are_decimal_without_a_b_and_binary_with_one() {
    let accepted = [
        ("0", 0),
        ("7b", 7),
        ("5k", 5_000),
        ("5KB", 5 << 10),
        ("3m", 3_000_000),
        ("100mb", 100 << 20),
        ("2G", 2_000_000_000),
        ("1gb", 1 << 30),
        ("007Kb", 7 << 10),
        ("18446744073709551615", u64::MAX),
        ("", 0),
        ("mb", 0),
    ];
    for (text, value) in accepted {
        assert_eq!(parse_memory(text.as_bytes()), Some(value), "{text}");
    }
    for text in [
        "-1",
        "+1",
        "1tb",
        "1 mb",
        "1.5gb",
        "1%",
        "1bb",
        " 1",
        "18446744073709551616",
        "17179869184gb",
    ] {
        assert_eq!(parse_memory(text.as_bytes()), None, "{text}");
    }
}

#[test]
fn integers_format_as_the_standard_library_does() {
    for value in [
        0,
        1,
        9,
        10,
        99,
        100,
        101,
        999,
        1000,
        -1,
        -10,
        -100,
        12_345,
        i64::MAX,
        i64::MIN,
    ] {
        assert_eq!(*format_i64(value), *value.to_string().as_bytes());
    }
    assert_eq!(*format_u64(u64::MAX), *u64::MAX.to_string().as_bytes());
}

#[test]
fn doubles_are_read_as_the_c_library_reads_them() {
    let accepted = [
        ("3", 3.0),
        ("+3.25", 3.25),
        ("-.5", -0.5),
        ("5.", 5.0),
        ("1e3", 1e3),
        ("1E+3", 1e3),
        ("007", 7.0),
        ("inf", f64::INFINITY),
        ("+Infinity", f64::INFINITY),
        ("-INF", f64::NEG_INFINITY),
        ("0e99999999999999999999", 0.0),
        ("1.7976931348623158e308", f64::MAX),
        ("2.4703282292062328e-324", f64::from_bits(1)),
        ("0x10", 16.0),
        ("-0X.8p1", -1.0),
        ("0x1.8p+1", 3.0),
        ("0xA.", 10.0),
        ("0x0p99999999", 0.0),
        ("0x1p-1074", f64::from_bits(1)),
        ("0x1.1p-1075", f64::from_bits(1)),
        ("0x1.fffffffffffff7fffp1023", f64::MAX),
        // Ties go to the even mantissa, and the smallest excess breaks them.
        ("0x1.00000000000008p0", 1.0),
        (
            "0x1.000000000000080000000000000000000000000000000000000000000000001p0",
            1.0 + f64::EPSILON,
        ),
        ("0x1.00000000000018p0", 1.0 + 2.0 * f64::EPSILON),
    ];
    for (text, value) in accepted {
        assert_eq!(
            parse_f64(text.as_bytes()).map(f64::to_bits),
            Some(value.to_bits()),
            "{text}"
        );
    }
    assert_eq!(
        parse_f64(b"-0").map(f64::to_bits),
        Some((-0.0f64).to_bits())
    );
}

#[test]
fn what_is_no_double_is_refused() {
    let refused = "|.|-|+|e5|1e|1e+|0x|0x.|0x1p|0xp1|0x1p+|1 | 1|\t1|--1|+-1|1_0|1d5|1f|nan|NaN|-nan|nan(1)|nan(|infinit|\
        in|1e400|-1e400|1e-400|2.4703282292062327e-324|1.7976931348623159e308|0x1p1024|0x1.fffffffffffff8p1023|0x1p-1075|\
        1e99999999999999999999|1e-99999999999999999999|1.2.3|0x1.2.3|1\0";
    for text in refused.split('|') {
        assert_eq!(parse_f64(text.as_bytes()), None, "{}", text.escape_debug());
    }
}

proptest! {
    #[test]
    fn every_integer_survives_formatting_and_parsing(value: i64, shift in 0..64u32) {
        let value = value >> shift;
        prop_assert_eq!(format_i64(value).to_vec(), value.to_string().into_bytes());
        prop_assert_eq!(parse_i64(&format_i64(value)), Some(value));
    }

    #[test]
    fn every_unsigned_integer_survives_formatting_and_parsing(value: u64, shift in 0..64u32) {
        let value = value >> shift;
        prop_assert_eq!(format_u64(value).to_vec(), value.to_string().into_bytes());
        prop_assert_eq!(parse_u64(&format_u64(value)), Some(value));
    }

    #[test]
    fn a_canonical_text_is_what_parses_and_formats_back(text in "[-+]?0{0,2}[0-9]{0,20}") {
        let canonical = text.parse::<i64>().ok().filter(|value| value.to_string() == text);
        prop_assert_eq!(parse_i64(text.as_bytes()), canonical);
    }

    #[test]
    fn every_finite_double_survives_decimal_and_hexadecimal(bits: u64) {
        let value = f64::from_bits(bits);
        prop_assume!(value.is_finite());
        prop_assert_eq!(parse_f64(format!("{value:e}").as_bytes()).map(f64::to_bits), Some(bits));
        let (sign, exponent, fraction) = (bits >> 63, (bits >> 52) & 0x7ff, bits & ((1 << 52) - 1));
        let (lead, power) = if exponent == 0 { (0, -1022) } else { (1, exponent as i64 - 1023) };
        let text = format!("{}0x{lead}.{fraction:013x}p{power}", if sign == 1 { "-" } else { "" });
        prop_assert_eq!(parse_f64(text.as_bytes()).map(f64::to_bits), Some(bits));
    }

    #[test]
    fn no_text_makes_a_parser_panic(text in prop::collection::vec(any::<u8>(), 0..40), seed in "[-+0-9a-fxXpPeE.]{0,30}") {
        for text in [text.as_slice(), seed.as_bytes()] {
            parse_i64(text);
            parse_u64(text);
            parse_cursor(text);
            parse_memory(text);
            parse_f64(text);
        }
    }
}
