//! Sums as a real Redis 7.0 on x86-64 gives them, and the borders of the format.

use super::*;
use proptest::prelude::*;

/// Value, increment, and what INCRBYFLOAT answers.
const SUMS: &[(&str, &str, &str)] = &[
    ("0.1", "0.2", "0.3"),
    ("10.50", "0.1", "10.6"),
    ("5.0e3", "200", "5200"),
    ("3.0", "1.1", "4.1"),
    ("0", "0", "0"),
    ("-0", "-0", "0"),
    ("-0", "0", "0"),
    ("1", "-1", "0"),
    ("-1.5", "0.5", "-1"),
    ("007", "+.5", "7.5"),
    ("5.", "0X.8", "5.5"),
    ("0x10", "0x1p-1", "16.5"),
    ("0xAp+1", "-0xa", "10"),
    ("0.30000000000000004", "0", "0.30000000000000004"),
    ("1e-17", "0", "0.00000000000000001"),
    ("5e-18", "0", "0"),
    ("4e-18", "0", "0"),
    ("1.5e-17", "0", "0.00000000000000002"),
    ("-4e-18", "0", "0"),
    ("0x1p-18", "0", "0.00000381469726562"),
    ("0x3p-18", "0", "0.00001144409179688"),
    ("0x1p-57", "0", "0.00000000000000001"),
    ("0.99999999999999999", "0", "0.99999999999999999"),
    ("0.999999999999999995", "0", "1"),
    ("0.9999999999999999999", "0", "1"),
    ("9.99999999999999999", "0", "9.99999999999999999"),
    ("-0.999999999999999999", "0", "-1"),
    ("3.14159265358979323846", "0", "3.14159265358979324"),
    (
        "2.71828182845904523536",
        "3.14159265358979323846",
        "5.85987448204883847",
    ),
    (
        "123456789.123456789",
        "987654321.987654321",
        "1111111111.11111110995989293",
    ),
    ("9007199254740993", "0", "9007199254740993"),
    ("9223372036854775807", "1", "9223372036854775808"),
    ("-9223372036854775808", "-1", "-9223372036854775809"),
    ("18446744073709551615", "0", "18446744073709551615"),
    ("18446744073709551615", "1", "18446744073709551616"),
    ("18446744073709551616", "1", "18446744073709551616"),
    ("18446744073709551617", "0", "18446744073709551616"),
    ("18446744073709551619", "0", "18446744073709551620"),
    ("18446744073709551616", "3", "18446744073709551620"),
    ("36893488147419103233", "0", "36893488147419103232"),
    ("36893488147419103234", "0", "36893488147419103232"),
    ("36893488147419103235", "0", "36893488147419103236"),
    ("36893488147419103238", "0", "36893488147419103240"),
    ("1e20", "0.1", "100000000000000000000"),
    ("1e20", "-1e20", "0"),
    ("1e22", "1", "10000000000000000000000"),
    ("1e40", "3", "9999999999999999999783686092270256259072"),
    ("-1e40", "3", "-9999999999999999999783686092270256259072"),
    ("1e18", "1e-1", "1000000000000000000.125"),
    ("1e15", "1e-5", "1000000000000000"),
    (
        "123456789012345678901234567890",
        "0",
        "123456789012345678899921813504",
    ),
    ("0.1", "1e18", "1000000000000000000.125"),
    ("9223372036854775808", "0.5", "9223372036854775808"),
    ("9223372036854775808", "0.4999", "9223372036854775808"),
    ("4611686018427387904", "0.25", "4611686018427387904"),
    ("0x1p64", "0x1p0", "18446744073709551616"),
    ("0x1p64", "0x1.8p0", "18446744073709551618"),
    ("0x1p64", "-0x1p-1", "18446744073709551616"),
    ("0x1p64", "-0x1.8p-1", "18446744073709551615"),
    ("0x1p64", "-0x1p-60", "18446744073709551616"),
    ("0x1.0000000000000002p64", "0x1p0", "18446744073709551620"),
    ("0x1.0000000000000001p0", "0", "1"),
    ("0x1.00000000000000018p0", "0", "1"),
    (
        "0x1.00000000000000010000000000000000000000000000001p0",
        "0",
        "1",
    ),
    ("1e-4940", "0", "0"),
    ("1e-4940", "1", "1"),
    ("3.6451995318824746025e-4951", "0", "0"),
    ("1.9e-4951", "1e-30", "0"),
    ("0e99999999999", "1", "1"),
    (
        "1e100",
        "1e-100",
        "9999999999999999999669353532207342619498699019828496079271391541752018669482644324418977840117055488",
    ),
    ("8388608.1", "8388608.2", "16777216.2999999999992724"),
    ("1.0000000000000000001", "-1", "0"),
    ("0.1", "-0.1", "0"),
    ("0.3", "-0.1", "0.2"),
    ("0.7", "0.1", "0.8"),
    ("1.1", "2.2", "3.3"),
    ("100", "-33.33", "66.67"),
    ("65536", "0.00001", "65536.00001000000000317"),
    ("0.0000000000000000049999999999999999999", "0", "0"),
    ("0.00000000000000000500000000000000000001", "0", "0"),
    ("12345678901234567.89", "0.11", "12345678901234568"),
    ("1e17", "0.123456789", "100000000000000000.125"),
];

fn parse(text: &str) -> Option<Extended> {
    Extended::parse(text.as_bytes())
}

fn written(value: Extended) -> String {
    let mut out = b"before ".to_vec();
    value.write(&mut out);
    String::from_utf8(out.split_off(b"before ".len())).unwrap()
}

/// The answer of INCRBYFLOAT, nothing for an operand that is refused, `none` for a sum that is.
fn sum(left: &str, right: &str) -> Option<String> {
    let sum = parse(left)?.checked_add(parse(right)?);
    Some(sum.map_or("none".to_owned(), written))
}

#[test]
fn sums_are_those_of_a_real_server() {
    for &(left, right, expected) in SUMS {
        assert_eq!(
            sum(left, right).as_deref(),
            Some(expected),
            "{left} + {right}"
        );
        assert_eq!(
            sum(right, left).as_deref(),
            Some(expected),
            "{right} + {left}"
        );
    }
}

#[test]
fn the_largest_numbers_are_written_digit_for_digit() {
    let largest = sum("0x1.fffffffffffffffep16383", "0").unwrap();
    assert_eq!(largest.len(), 4933);
    assert!(largest.starts_with("1189731495357231765021263853030970205169"));
    assert!(largest.ends_with("8849149662444156604419552086811989770240"));
    assert_eq!(sum("1.18973149535723176502e4932", "0"), Some(largest));

    let power = sum("1e4932", "1").unwrap();
    assert!(power.starts_with("1000000000000000000006018949387963891323"));
    assert!(power.ends_with("0876379371163141086538418113791886622720"));
    assert_eq!(
        power
            .bytes()
            .map(|digit| u32::from(digit - b'0'))
            .sum::<u32>(),
        22_044
    );
    assert_eq!(sum(&"9".repeat(4932), "0"), Some(power));

    let difference = sum("1e4932", "-9.999e4931").unwrap();
    assert_eq!(difference.len(), 4929);
    assert!(difference.starts_with("1000000000000000203489238148039464141597"));
    assert!(difference.ends_with("6180131749653049506685322268628570079232"));
}

#[test]
fn a_sum_beyond_the_format_is_refused() {
    let refused = [
        ("1.18973149535723176502e4932", "1.18973149535723176502e4932"),
        ("0x1.fffffffffffffffep16383", "0x1p16319"),
        ("-0x1.fffffffffffffffep16383", "-0x1p16319"),
        ("inf", "1"),
        ("1", "-Infinity"),
        ("inf", "inf"),
        ("inf", "-inf"),
    ];
    for (left, right) in refused {
        assert_eq!(
            sum(left, right).as_deref(),
            Some("none"),
            "{left} + {right}"
        );
    }
    assert_eq!(
        sum("0x1.fffffffffffffffep16383", "0x1p16318")
            .unwrap()
            .len(),
        4933
    );
}

#[test]
fn texts_that_are_no_number_or_do_not_fit_are_refused() {
    let refused = "|.|-|e5|1e|0x|0x.|0x1p|0xp1| 1|1 |1x|--1|1_0|1L|nan|-NaN|nan(12)|nan(|infinit|1\0|1e4933|-1e4933|\
        1.18973149535723176506e4932|0x1p16384|0x1.ffffffffffffffffp16383|1.8e-4951|0x1p-16446|1e-5000|\
        1e99999999999999999999|1e-99999999999999999999";
    for text in refused.split('|') {
        assert_eq!(parse(text), None, "{}", text.escape_debug());
    }
}

#[test]
fn the_smallest_numbers_are_kept_apart_from_zero() {
    let smallest = parse("0x1p-16445").unwrap();
    assert_eq!(
        smallest.magnitude,
        Magnitude::Finite {
            mantissa: 1,
            exponent: -16445
        }
    );
    for text in [
        "3.6451995318824746025e-4951",
        "1.9e-4951",
        "0x1.0000000001p-16446",
        "5.4e-4951",
    ] {
        assert_eq!(parse(text), Some(smallest), "{text}");
    }
    assert_eq!(
        smallest.checked_add(parse("-0x1p-16445").unwrap()),
        parse("0")
    );
    // The largest number with a short mantissa and the smallest number stand side by side.
    let border = parse("0x1p-16382").unwrap();
    assert_eq!(
        border.magnitude,
        Magnitude::Finite {
            mantissa: 1 << 63,
            exponent: -16445
        }
    );
    assert_eq!(parse("3.3621031431120935063e-4932"), Some(border));
    let below = border.checked_add(parse("-0x1p-16445").unwrap());
    assert_eq!(
        below.map(|below| below.magnitude),
        Some(Magnitude::Finite {
            mantissa: (1 << 63) - 1,
            exponent: -16445
        })
    );
}

#[test]
fn a_text_may_be_as_long_as_the_format_needs_and_no_longer() {
    let third = |digits: usize| sum(&format!("0.{}", "3".repeat(digits)), "0");
    assert_eq!(third(5117).as_deref(), Some("0.33333333333333333"));
    assert_eq!(third(5118), None);
    assert_eq!(
        sum(&format!("{}5", "0".repeat(5118)), "0").as_deref(),
        Some("5")
    );
    assert_eq!(
        sum(&format!("1{}e-4000", "0".repeat(4000)), "0").as_deref(),
        Some("1")
    );
    assert_eq!(
        sum(&format!("0.{}1e4001", "0".repeat(4000)), "0").as_deref(),
        Some("1")
    );
}

#[test]
fn long_digits_decide_ties() {
    // 2^64 + 1 lies in the middle of two numbers, and a digit far behind the point tips it over.
    let zeros = "0".repeat(3000);
    assert_eq!(
        sum(&format!("18446744073709551617.{zeros}"), "0").as_deref(),
        Some("18446744073709551616")
    );
    assert_eq!(
        sum(&format!("18446744073709551617.{zeros}1"), "0").as_deref(),
        Some("18446744073709551618")
    );
    assert_eq!(
        sum(&format!("18446744073709551616.{}", "9".repeat(3000)), "0").as_deref(),
        Some("18446744073709551616")
    );
}

proptest! {
    #[test]
    fn every_integer_of_64_bits_is_exact(left: i64, right: i64) {
        prop_assert_eq!(written(Extended::from(left)), left.to_string());
        prop_assert_eq!(parse(&left.to_string()), Some(Extended::from(left)));
        let exact = i128::from(left) + i128::from(right);
        if exact.unsigned_abs() < 1 << 64 {
            let sum = Extended::from(left).checked_add(Extended::from(right));
            prop_assert_eq!(sum.map(written), Some(exact.to_string()));
        }
    }

    #[test]
    fn short_and_long_ways_of_reading_agree(digits in 1..u64::MAX, power in -27..=27i64) {
        // Zeros behind the point make the text too long for the short way without changing its value.
        let short = parse(&format!("{digits}e{power}"));
        let long = parse(&format!("{digits}.{}1e{power}", "0".repeat(60)));
        let plain = parse(&format!("{digits}{}e{}", "0".repeat(30), power - 30));
        prop_assert!(short.is_some());
        prop_assert_eq!(short, plain);
        let (short, long) = (short.unwrap(), long.unwrap());
        // A hair more than a tie rounds up, so the two may differ by the last bit and no more.
        if short != long {
            let (Magnitude::Finite { mantissa: low, exponent: low_exponent }, Magnitude::Finite { mantissa: high, exponent: high_exponent }) =
                (short.magnitude, long.magnitude) else { panic!("finite numbers") };
            prop_assert!((low_exponent == high_exponent && low + 1 == high) || low_exponent + 1 == high_exponent);
        }
    }

    #[test]
    fn what_is_written_reads_back_the_same_when_it_is_an_integer(mantissa: u64, exponent in 0..16_320i64, negative: bool) {
        let value = Extended { negative, magnitude: Magnitude::Finite { mantissa: mantissa | (1 << 63), exponent } };
        let text = written(value);
        if text.len() < TEXT_MAX {
            prop_assert_eq!(parse(&text), Some(value));
        }
    }

    #[test]
    fn no_text_makes_it_panic(text in prop::collection::vec(any::<u8>(), 0..30), seed in "[-+]?(0x)?[0-9a-f]{0,40}[.]?[0-9a-f]{0,40}([ep][-+]?[0-9]{1,5})?") {
        for value in [Extended::parse(&text), parse(&seed)].into_iter().flatten() {
            written(value);
            value.checked_add(value).map(written);
        }
    }
}
