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
fn doubles_have_17_digits_as_in_c() {
    let cases: [(f64, &str); 24] = [
        (0.0, "0"),
        (-0.0, "-0"),
        (f64::INFINITY, "inf"),
        (f64::NEG_INFINITY, "-inf"),
        (1.0, "1"),
        (-10.0, "-10"),
        (1.5, "1.5"),
        (0.1, "0.10000000000000001"),
        (-0.3, "-0.29999999999999999"),
        (3.3, "3.2999999999999998"),
        (0.0001, "0.0001"),
        (0.00012, "0.00012"),
        (0.00001, "1.0000000000000001e-05"),
        (0.000_762_939_453_125, "0.000762939453125"),
        (1e16, "10000000000000000"),
        (1e17, "1e+17"),
        (123_456_789.125, "123456789.125"),
        (9_007_199_254_740_992.0, "9007199254740992"),
        (1_152_921_504_606_846_976.0, "1.152921504606847e+18"),
        // Half way between two texts of 17 digits: the even one.
        (2f64.powi(-25), "2.9802322387695312e-08"),
        (1e100, "1e+100"),
        (f64::MAX, "1.7976931348623157e+308"),
        (f64::MIN_POSITIVE, "2.2250738585072014e-308"),
        (1e-322, "9.8813129168249309e-323"),
    ];
    for (value, text) in cases {
        assert_eq!(format_17_digits(value), text);
    }
}

proptest! {
    #[test]
    fn a_double_of_17_digits_reads_back_as_it_was(bits: u64) {
        let value = f64::from_bits(bits);
        prop_assume!(!value.is_nan());
        let read: f64 = format_17_digits(value).parse().expect("a number");
        prop_assert_eq!(read.to_bits(), value.to_bits());
    }

    #[test]
    fn every_integer_survives_formatting_and_parsing(value: i64, shift in 0..64u32) {
        let value = value >> shift;
        prop_assert_eq!(format_i64(value).to_vec(), value.to_string().into_bytes());
        prop_assert_eq!(parse_i64(&format_i64(value)), Some(value));
    }

    #[test]
    fn a_canonical_text_is_what_parses_and_formats_back(text in "[-+]?0{0,2}[0-9]{0,20}") {
        let canonical = text.parse::<i64>().ok().filter(|value| value.to_string() == text);
        prop_assert_eq!(parse_i64(text.as_bytes()), canonical);
    }

    #[test]
    fn no_text_makes_a_parser_panic(text in prop::collection::vec(any::<u8>(), 0..40), seed in "[-+0-9a-fxXpPeE.]{0,30}") {
        for text in [text.as_slice(), seed.as_bytes()] {
            parse_i64(text);
            parse_cursor(text);
        }
    }
}
