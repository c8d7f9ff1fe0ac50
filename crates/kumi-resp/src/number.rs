//! Decimal numbers on the wire: strict reading, and writing without `format!`'s machinery.

/// Reads a length or integer the way Redis does: an optional `-`, then digits without a leading
/// zero, and nothing else around them. `None` when it is anything else or does not fit.
pub(crate) fn parse(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'0'] => return Some(0),
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if !matches!(digits.first(), Some(b'1'..=b'9')) {
        return None;
    }
    // Counting down instead of up keeps `i64::MIN` in range.
    let mut value = 0_i64;
    for &digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        value = value
            .checked_mul(10)?
            .checked_sub(i64::from(digit - b'0'))?;
    }
    if negative {
        Some(value)
    } else {
        value.checked_neg()
    }
}

/// The two digits of every number below 100, so that a division yields two at a time.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut n = 0;
    while n < 100 {
        pairs[n] = [b'0' + (n / 10) as u8, b'0' + (n % 10) as u8];
        n += 1;
    }
    pairs
};

/// The longest `i64` is `i64::MIN` with its sign.
pub(crate) const MAX_DIGITS: usize = 20;

/// Writes `value` at `buf[start..]` and gives back where it ends. `buf` must have [`MAX_DIGITS`]
/// bytes from `start` on.
#[inline]
pub(crate) fn write_at(buf: &mut [u8], mut start: usize, value: i64) -> usize {
    if value < 0 {
        buf[start] = b'-';
        start += 1;
    }
    let mut rest = value.unsigned_abs();
    let end = start + rest.checked_ilog10().map_or(1, |log| log as usize + 1);
    let mut pos = end;
    while rest >= 100 {
        pos -= 2;
        buf[pos..pos + 2].copy_from_slice(&PAIRS[(rest % 100) as usize]);
        rest /= 100;
    }
    if rest >= 10 {
        buf[start..start + 2].copy_from_slice(&PAIRS[rest as usize]);
    } else {
        buf[start] = b'0' + rest as u8;
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_strictly() {
        let check = |text: &str, expected: Option<i64>| {
            assert_eq!(parse(text.as_bytes()), expected, "{text:?}");
        };
        check("0", Some(0));
        check("7", Some(7));
        check("-7", Some(-7));
        check("1048576", Some(1_048_576));
        check("9223372036854775807", Some(i64::MAX));
        check("-9223372036854775808", Some(i64::MIN));
        check("9223372036854775808", None);
        check("-9223372036854775809", None);
        check("99999999999999999999", None);
        for text in [
            "", "-", "-0", "00", "01", "-01", "+1", " 1", "1 ", "1x", "x", "--1",
        ] {
            check(text, None);
        }
    }

    #[test]
    fn numbers_are_written_as_std_does() {
        let mut values = vec![0, i64::MIN, i64::MAX];
        let mut power = 1_i64;
        while let Some(next) = power.checked_mul(10) {
            values.extend([power - 1, power, power + 1, -power, 1 - power]);
            power = next;
        }
        for value in values {
            let mut buf = [0; MAX_DIGITS];
            let end = write_at(&mut buf, 0, value);
            assert_eq!(&buf[..end], value.to_string().as_bytes());
        }
    }
}
