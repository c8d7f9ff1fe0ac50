//! Numbers as text: what `tonumber` and the lexer accept, and the `%.14g` form of `tostring`.

/// Reads a whole string as Lua 5.1 does through C's `strtod`: spaces around it, a sign, decimal, hexadecimal with
/// fraction and exponent, `inf` and `nan`.
pub(crate) fn parse(bytes: &[u8]) -> Option<f64> {
    // C reads up to the first zero byte.
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    let bytes = &bytes[..end];
    let (value, used) = prefix(bytes)?;
    if bytes[used..].iter().all(|&b| is_space(b)) {
        Some(value)
    } else {
        None
    }
}

pub(crate) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | 9..=13)
}

/// Reads the longest number at the start, and how many bytes it took: `strtod`.
pub(crate) fn prefix(bytes: &[u8]) -> Option<(f64, usize)> {
    let mut at = bytes.iter().take_while(|&&b| is_space(b)).count();
    let negative = bytes.get(at) == Some(&b'-');
    if matches!(bytes.get(at), Some(b'-' | b'+')) {
        at += 1;
    }
    let rest = &bytes[at..];
    let (value, used) = if starts_with_ignoring_case(rest, b"0x") {
        match hexadecimal(&rest[2..]) {
            Some((value, used)) => (value, used + 2),
            None => (0.0, 1),
        }
    } else if starts_with_ignoring_case(rest, b"infinity") {
        (f64::INFINITY, 8)
    } else if starts_with_ignoring_case(rest, b"inf") {
        (f64::INFINITY, 3)
    } else if starts_with_ignoring_case(rest, b"nan") {
        (f64::NAN, 3 + nan_suffix(&rest[3..]))
    } else {
        decimal(rest)?
    };
    Some((if negative { -value } else { value }, at + used))
}

/// The length of the `(chars)` C allows after `nan`.
fn nan_suffix(rest: &[u8]) -> usize {
    if rest.first() != Some(&b'(') {
        return 0;
    }
    let inside = rest[1..]
        .iter()
        .take_while(|b| b.is_ascii_alphanumeric() || **b == b'_')
        .count();
    if rest.get(1 + inside) == Some(&b')') {
        inside + 2
    } else {
        0
    }
}

fn starts_with_ignoring_case(bytes: &[u8], prefix: &[u8]) -> bool {
    bytes
        .get(..prefix.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

fn decimal(bytes: &[u8]) -> Option<(f64, usize)> {
    let whole = digits(bytes, 0);
    let mut end = whole;
    let mut count = whole;
    if bytes.get(end) == Some(&b'.') {
        let fraction = digits(bytes, end + 1);
        count += fraction;
        if count > 0 {
            end += 1 + fraction;
        }
    }
    if count == 0 {
        return None;
    }
    if let Some(exponent) = exponent(bytes, end, b'e') {
        end = exponent;
    }
    let text = std::str::from_utf8(&bytes[..end]).ok()?;
    text.parse().ok().map(|value| (value, end))
}

fn digits(bytes: &[u8], from: usize) -> usize {
    bytes.get(from..).map_or(0, |rest| {
        rest.iter().take_while(|b| b.is_ascii_digit()).count()
    })
}

/// The end of an exponent that begins at `at`, if there is a whole one.
fn exponent(bytes: &[u8], at: usize, letter: u8) -> Option<usize> {
    if bytes.get(at)?.to_ascii_lowercase() != letter {
        return None;
    }
    let mut from = at + 1;
    if matches!(bytes.get(from), Some(b'+' | b'-')) {
        from += 1;
    }
    let count = digits(bytes, from);
    (count > 0).then_some(from + count)
}

fn hexadecimal(bytes: &[u8]) -> Option<(f64, usize)> {
    let (mut mantissa, mut scale, mut at, mut any) = (0u128, 0i32, 0, false);
    let (mut point, mut sticky) = (false, false);
    loop {
        match bytes.get(at) {
            Some(b'.') if !point => point = true,
            Some(b) if b.is_ascii_hexdigit() => {
                any = true;
                let digit = (*b as char).to_digit(16).unwrap_or(0);
                if mantissa >> 120 == 0 {
                    mantissa = mantissa << 4 | u128::from(digit);
                    scale -= if point { 4 } else { 0 };
                } else {
                    sticky |= digit != 0;
                    scale = scale.saturating_add(if point { 0 } else { 4 });
                }
            }
            _ => break,
        }
        at += 1;
    }
    if !any {
        return None;
    }
    if let Some(end) = exponent(bytes, at, b'p') {
        let text = std::str::from_utf8(&bytes[at + 1..end]).ok()?;
        let text = text.strip_prefix('+').unwrap_or(text);
        let power: i64 = text.parse().unwrap_or(if text.starts_with('-') {
            -100_000
        } else {
            100_000
        });
        scale = scale.saturating_add(power.clamp(-100_000, 100_000) as i32);
        at = end;
    }
    mantissa |= u128::from(sticky);
    Some((scale_by_two(mantissa as f64, scale), at))
}

/// `value * 2^power` without an intermediate overflow.
pub(crate) fn scale_by_two(mut value: f64, mut power: i32) -> f64 {
    while power > 1000 && value.is_finite() && value != 0.0 {
        value *= 2f64.powi(1000);
        power -= 1000;
    }
    while power < -1000 && value != 0.0 {
        // One rounding at most: the steps before the last stay exact while the value is normal.
        let step = (-power).min(1000);
        if value.abs() < 1e-200 {
            return value
                * 2f64.powi(power.max(-1074) / 2)
                * 2f64.powi(power.max(-1074) - power.max(-1074) / 2);
        }
        value *= 2f64.powi(-step);
        power += step;
    }
    if !(-1000..=1000).contains(&power) {
        return value;
    }
    let half = power / 2;
    value * 2f64.powi(half) * 2f64.powi(power - half)
}

/// Appends `%.14g`.
pub(crate) fn write(out: &mut Vec<u8>, value: f64) {
    if value.abs() < 1e14 && value.fract() == 0.0 && !(value == 0.0 && value.is_sign_negative()) {
        return write_integer(out, value as i64);
    }
    general(out, value, 14, false);
}

/// Appends a decimal integer.
pub(crate) fn write_integer(out: &mut Vec<u8>, value: i64) {
    let mut buffer = [0u8; 20];
    let mut at = buffer.len();
    let mut rest = value.unsigned_abs();
    loop {
        at -= 1;
        buffer[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(&buffer[at..]);
}

/// Appends `inf`, `nan` and their negatives; false for finite numbers.
pub(crate) fn write_special(out: &mut Vec<u8>, value: f64) -> bool {
    if value.is_finite() {
        return false;
    }
    if value.is_sign_negative() {
        out.push(b'-');
    }
    out.extend_from_slice(if value.is_nan() { b"nan" } else { b"inf" });
    true
}

/// Appends `%.{precision}g`, with trailing zeros if `alternate` (the `#` flag).
pub(crate) fn general(out: &mut Vec<u8>, value: f64, precision: usize, alternate: bool) {
    if write_special(out, value) {
        return;
    }
    let precision = precision.max(1);
    let text = format!("{value:.*e}", precision - 1);
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if exponent < -4 || exponent >= precision as i32 {
        let mantissa = if alternate {
            with_point(mantissa)
        } else {
            trim(mantissa).to_owned()
        };
        out.extend_from_slice(mantissa.as_bytes());
        write_exponent(out, exponent);
    } else {
        let text = format!(
            "{value:.*}",
            (precision as i32 - 1 - exponent).max(0) as usize
        );
        let text = if alternate {
            with_point(&text)
        } else {
            trim(&text).to_owned()
        };
        out.extend_from_slice(text.as_bytes());
    }
}

/// C writes at least two digits of an exponent.
pub(crate) fn write_exponent(out: &mut Vec<u8>, exponent: i32) {
    let sign = if exponent < 0 { '-' } else { '+' };
    out.extend_from_slice(format!("e{sign}{:02}", exponent.abs()).as_bytes());
}

fn with_point(text: &str) -> String {
    if text.contains('.') {
        text.to_owned()
    } else {
        format!("{text}.")
    }
}

fn trim(text: &str) -> &str {
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(value: f64, expected: &str) {
        let mut out = Vec::new();
        write(&mut out, value);
        assert_eq!(String::from_utf8_lossy(&out), expected);
    }

    #[test]
    fn numbers_print_as_percent_14g() {
        check(0.1, "0.1");
        check(1e14, "1e+14");
        check(99999999999999.0, "99999999999999");
        check(123456789012345.0, "1.2345678901234e+14");
        check(-0.0, "-0");
        check(1e100, "1e+100");
        check(1e-5, "1e-05");
        check(0.0001, "0.0001");
        check(std::f64::consts::PI, "3.1415926535898");
        check(f64::INFINITY, "inf");
        check(f64::NEG_INFINITY, "-inf");
    }

    #[test]
    fn strings_become_numbers_as_strtod_reads_them() {
        for (text, expected) in [
            ("10", Some(10.0)),
            ("  0x10  ", Some(16.0)),
            ("0x1p4", Some(16.0)),
            ("0x.8", Some(0.5)),
            ("1e2", Some(100.0)),
            (".5", Some(0.5)),
            ("5.", Some(5.0)),
            ("1e", None),
            ("0x", None),
            ("", None),
            (".", None),
            ("1 2", None),
            ("-inf", Some(f64::NEG_INFINITY)),
            ("+1", Some(1.0)),
            ("- 1", None),
        ] {
            assert_eq!(parse(text.as_bytes()), expected, "{text:?}");
        }
    }
}
