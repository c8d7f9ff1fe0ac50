//! Doubles as text, laid out as Redis 7.2 lays them out.
//!
//! ```text
//! inf -inf nan 0 -0        the special ones, always in this spelling
//! 3  -42  1000000          whole numbers without a point, while an i64 holds them with room
//! 0.1  1.5  0.000001       the fewest digits that read back as the same number
//! 1e+20  1.5e-9            an exponent once plain digits would be mostly zeros
//! ```
//!
//! Redis up to 7.0 wrote 17 significant digits instead (`0.10000000000000001`).

use std::fmt::Write;

use crate::number::{self, MAX_DIGITS};

/// No double needs more digits to be distinguished from its neighbours.
const MAX_SIGNIFICANT: usize = 17;

/// A sign, 17 digits, a point and `e-308` make 24; `0.` and leading zeros stay below that.
const MAX_TEXT: usize = 32;

/// Whole numbers up to half of `i64::MAX`, which is rounded to 2^62 here, are written as integers.
const WHOLE_LIMIT: f64 = (i64::MAX / 2) as f64;

/// The text of one double, on the stack.
pub(super) struct Text {
    buf: [u8; MAX_TEXT],
    len: usize,
}

impl Text {
    pub(super) fn new(value: f64) -> Self {
        let mut text = Self {
            buf: [0; MAX_TEXT],
            len: 0,
        };
        if value.is_nan() {
            text.append(b"nan");
        } else if value.is_infinite() {
            text.append(if value > 0.0 { b"inf" } else { b"-inf" });
        } else if value == 0.0 {
            text.append(if value.is_sign_negative() {
                b"-0"
            } else {
                b"0"
            });
        } else if value.abs() <= WHOLE_LIMIT && value.fract() == 0.0 {
            text.whole(value as i64);
        } else {
            text.shortest(value);
        }
        text
    }

    /// The text without the special case of whole numbers.
    pub(super) fn shortest_of(value: f64) -> Self {
        if value == 0.0 || !value.is_finite() {
            return Self::new(value);
        }
        let mut text = Self {
            buf: [0; MAX_TEXT],
            len: 0,
        };
        text.shortest(value);
        text
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.buf[..self.len]
    }

    fn whole(&mut self, value: i64) {
        let mut buf = [0; MAX_DIGITS];
        let end = number::write_at(&mut buf, 0, value);
        self.append(&buf[..end]);
    }

    fn shortest(&mut self, value: f64) {
        let mut digits = Digits::default();
        // The standard library finds the digits; only their layout is ours. It cannot fail: the
        // sink takes everything.
        let _ = write!(digits, "{:e}", value.abs());
        if value < 0.0 {
            self.append(b"-");
        }
        // The value is the digits, read as one integer, times ten to the `scale`.
        let count = digits.len as i32;
        let scale = digits.exponent() - (count - 1);
        let magnitude = digits.exponent();
        if scale >= 0 && magnitude.abs() < count + 7 {
            self.append(digits.as_bytes());
            self.zeros(scale);
        } else if scale < 0 && (scale > -7 || magnitude.abs() < 4) {
            self.with_point(digits.as_bytes(), count + scale);
        } else {
            self.with_point(digits.as_bytes(), 1);
            self.append(if magnitude < 0 { b"e-" } else { b"e+" });
            self.whole(i64::from(magnitude.abs()));
        }
    }

    /// Digits with a point before the one at `point`, which may lie left of them all.
    fn with_point(&mut self, digits: &[u8], point: i32) {
        match usize::try_from(point) {
            Ok(point @ 1..) => {
                let (whole, fraction) = digits.split_at(point.min(digits.len()));
                self.append(whole);
                if !fraction.is_empty() {
                    self.append(b".");
                    self.append(fraction);
                }
            }
            _ => {
                self.append(b"0.");
                self.zeros(-point);
                self.append(digits);
            }
        }
    }

    fn zeros(&mut self, count: i32) {
        for _ in 0..count {
            self.append(b"0");
        }
    }

    fn append(&mut self, bytes: &[u8]) {
        let end = self.len + bytes.len();
        self.buf[self.len..end].copy_from_slice(bytes);
        self.len = end;
    }
}

/// Takes what `{:e}` writes, such as `1.25e-7`, apart.
#[derive(Default)]
struct Digits {
    digits: [u8; MAX_SIGNIFICANT],
    len: usize,
    in_exponent: bool,
    exponent: i32,
    negative: bool,
}

impl Digits {
    fn as_bytes(&self) -> &[u8] {
        &self.digits[..self.len]
    }

    /// The power of ten of the first digit.
    fn exponent(&self) -> i32 {
        if self.negative {
            -self.exponent
        } else {
            self.exponent
        }
    }
}

impl Write for Digits {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        for byte in text.bytes() {
            match byte {
                b'e' => self.in_exponent = true,
                b'-' => self.negative = true,
                b'0'..=b'9' if self.in_exponent => {
                    self.exponent = self.exponent * 10 + i32::from(byte - b'0');
                }
                b'0'..=b'9' => {
                    *self.digits.get_mut(self.len).ok_or(std::fmt::Error)? = byte;
                    self.len += 1;
                }
                _ => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(value: f64, expected: &str) {
        let text = Text::new(value);
        assert_eq!(text.as_bytes(), expected.as_bytes(), "{value:e}");
    }

    #[test]
    fn special_values_have_one_spelling() {
        check(f64::INFINITY, "inf");
        check(f64::NEG_INFINITY, "-inf");
        check(f64::NAN, "nan");
        check(-f64::NAN, "nan");
        check(0.0, "0");
        check(-0.0, "-0");
    }

    #[test]
    fn whole_numbers_have_no_point() {
        check(3.0, "3");
        check(-42.0, "-42");
        check(1e15, "1000000000000000");
        check(4e18, "4000000000000000000");
        check(9_007_199_254_740_993.0, "9007199254740992");
        check(5e18, "5e+18");
        check(-1e19, "-1e+19");
        check(12_345_678_901_234_567_890.0, "12345678901234567000");
    }

    #[test]
    fn fractions_have_the_fewest_digits() {
        check(0.1, "0.1");
        check(-0.1, "-0.1");
        check(1.5, "1.5");
        check(0.1 + 0.2, "0.30000000000000004");
        check(123_456.789, "123456.789");
        check(1.0 / 3.0, "0.3333333333333333");
        check(0.000_001, "0.000001");
        check(0.001_234_567_891_234, "0.001234567891234");
        check(1234.5, "1234.5");
    }

    #[test]
    fn far_from_one_an_exponent_is_used() {
        check(1e-7, "1e-7");
        check(1.25e-9, "1.25e-9");
        check(-1.5e300, "-1.5e+300");
        check(f64::MAX, "1.7976931348623157e+308");
        check(f64::MIN, "-1.7976931348623157e+308");
        check(f64::MIN_POSITIVE, "2.2250738585072014e-308");
        check(5e-324, "5e-324");
        check(-1.234_567_890_123_456_8e-300, "-1.2345678901234568e-300");
    }
}
