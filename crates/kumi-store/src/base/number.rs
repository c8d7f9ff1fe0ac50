//! Numbers as clients and configuration files write them.
//!
//! Integers are strict, so that a value that parses is the only way to write that number and can be stored as one.
//! Floats follow the C library's `strtod` over the whole text. Nothing here trims, guesses or rounds an integer, and
//! no locale takes part.

use std::ops::Deref;

/// An integer in its one canonical form: no plus, no leading zero, no `-0`, no space, within 64 bits.
pub(crate) fn parse_i64(text: &[u8]) -> Option<i64> {
    match text {
        [b'0'] => Some(0),
        [b'-', digits @ ..] => 0i64.checked_sub_unsigned(canonical_digits(digits)?),
        digits => i64::try_from(canonical_digits(digits)?).ok(),
    }
}

/// A SCAN cursor, which is read with `strtoul`: a sign and leading zeros are fine, a minus wraps around, nothing at
/// all is zero, and a zero byte ends the text.
pub(crate) fn parse_cursor(text: &[u8]) -> Option<u64> {
    let text = text.split(|&byte| byte == 0).next()?;
    if text.is_empty() {
        return Some(0);
    }
    let (negative, digits) = split_sign(text);
    if digits.is_empty() {
        return None;
    }
    let value = digits_u64(digits)?;
    Some(if negative {
        value.wrapping_neg()
    } else {
        value
    })
}

/// The decimal digits of an integer, on the stack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decimal {
    /// Filled from the right. Twenty bytes hold every 64-bit integer, signed or not.
    bytes: [u8; 20],
    start: usize,
}

impl Deref for Decimal {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}

/// Formats a signed integer.
pub(crate) fn format_i64(value: i64) -> Decimal {
    let mut decimal = format_u64(value.unsigned_abs());
    if value < 0 {
        decimal.start -= 1;
        decimal.bytes[decimal.start] = b'-';
    }
    decimal
}

/// Formats an unsigned integer.
pub(crate) fn format_u64(value: u64) -> Decimal {
    let mut decimal = Decimal {
        bytes: [b'0'; 20],
        start: 20,
    };
    let mut rest = value;
    while rest >= 100 {
        decimal.push_pair(rest % 100);
        rest /= 100;
    }
    decimal.push_pair(rest);
    decimal.start += usize::from(rest < 10);
    decimal
}

impl Decimal {
    /// Puts two digits in front.
    fn push_pair(&mut self, pair: u64) {
        const PAIRS: &[u8; 200] = b"0001020304050607080910111213141516171819\
            2021222324252627282930313233343536373839\
            4041424344454647484950515253545556575859\
            6061626364656667686970717273747576777879\
            8081828384858687888990919293949596979899";
        let from = pair as usize * 2;
        self.start -= 2;
        self.bytes[self.start..self.start + 2].copy_from_slice(&PAIRS[from..from + 2]);
    }
}

/// A double as C's `%.17g` writes it: 17 significant digits without zeros at the end, and an exponent where it is below
/// -4 or above 16.
pub(crate) fn format_17_digits(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        // `0`, `-0`, `inf`, `-inf`.
        return value.to_string();
    }
    // One digit, a point, 16 digits, `e` and the exponent.
    let text = format!("{:.16e}", value.abs());
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let digits = digits.replace('.', "");
    let digits = digits.trim_end_matches('0');
    let sign = if value < 0.0 { "-" } else { "" };
    let with_point = |whole: &str, fraction: &str| match fraction {
        "" => whole.to_owned(),
        fraction => format!("{whole}.{fraction}"),
    };
    match exponent {
        -4..=-1 => {
            let zeros = "0".repeat(exponent.unsigned_abs() as usize - 1);
            format!("{sign}0.{zeros}{digits}")
        }
        0..=16 => {
            let length = exponent as usize + 1;
            let padded = format!("{digits:0<length$}");
            let (whole, fraction) = padded.split_at(length);
            format!("{sign}{}", with_point(whole, fraction))
        }
        _ => {
            let (whole, fraction) = digits.split_at(1);
            let exponent_sign = if exponent < 0 { '-' } else { '+' };
            let mantissa = with_point(whole, fraction);
            format!("{sign}{mantissa}e{exponent_sign}{:02}", exponent.abs())
        }
    }
}

/// A floating-point text taken apart, before a precision is chosen for it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FloatText<'a> {
    Nan,
    Infinity {
        negative: bool,
    },
    /// The digits before and after the point, at least one in all, and the power of ten.
    Decimal {
        negative: bool,
        integer: &'a [u8],
        fraction: &'a [u8],
        exponent: i64,
    },
    Hexadecimal {
        negative: bool,
        significand: Significand,
    },
}

/// Exponents beyond this are all the same: no format comes near, and sums with the length of a text cannot overflow.
const EXPONENT_LIMIT: i64 = 1 << 40;

impl<'a> FloatText<'a> {
    /// Reads what `strtod` would read, provided that it would read all of the text and that no space leads.
    pub(crate) fn scan(text: &'a [u8]) -> Option<Self> {
        let (negative, magnitude) = split_sign(text);
        match magnitude {
            [b'0', b'x' | b'X', rest @ ..] => Self::scan_hexadecimal(negative, rest),
            [b'0'..=b'9' | b'.', ..] => Self::scan_decimal(negative, magnitude),
            _ if magnitude.eq_ignore_ascii_case(b"inf")
                || magnitude.eq_ignore_ascii_case(b"infinity") =>
            {
                Some(Self::Infinity { negative })
            }
            [b'n' | b'N', b'a' | b'A', b'n' | b'N', tag @ ..] => {
                is_nan_tag(tag).then_some(Self::Nan)
            }
            _ => None,
        }
    }

    fn scan_decimal(negative: bool, text: &'a [u8]) -> Option<Self> {
        let (integer, fraction, rest) = split_digits(text, u8::is_ascii_digit)?;
        let exponent = scan_exponent(rest, b'e')?;
        Some(Self::Decimal {
            negative,
            integer,
            fraction,
            exponent,
        })
    }

    fn scan_hexadecimal(negative: bool, text: &'a [u8]) -> Option<Self> {
        let (integer, fraction, rest) = split_digits(text, u8::is_ascii_hexdigit)?;
        let exponent = scan_exponent(rest, b'p')?;
        let mut significand = Significand {
            bits: 0,
            exponent,
            sticky: false,
        };
        for &digit in integer {
            significand.push_hexadecimal(digit);
        }
        for &digit in fraction {
            significand.push_hexadecimal(digit);
            significand.exponent -= 4;
        }
        Some(Self::Hexadecimal {
            negative,
            significand,
        })
    }
}

/// A binary number of up to 128 bits, and whether it is a little more than that.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Significand {
    pub(crate) bits: u128,
    /// The power of two that the lowest bit stands for.
    pub(crate) exponent: i64,
    /// Something below the lowest bit is not zero. Then `bits` has to have more bits than any format keeps.
    pub(crate) sticky: bool,
}

/// A binary floating-point format.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Format {
    /// The number of bits in a mantissa.
    pub(crate) precision: u32,
    /// The power of two of the lowest bit of the smallest number.
    pub(crate) min_exponent: i64,
    /// The power of two of the lowest bit of the largest number.
    pub(crate) max_exponent: i64,
}

/// What is left of a number in a format.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rounded {
    Zero,
    /// `mantissa * 2^exponent`. The mantissa has all the bits of the format unless the exponent is the smallest.
    Finite {
        mantissa: u64,
        exponent: i64,
    },
    Overflow,
}

impl Significand {
    pub(crate) fn is_zero(&self) -> bool {
        self.bits == 0 && !self.sticky
    }

    /// Rounds to the nearest number of a format, and to the even one of two.
    pub(crate) fn round(&self, format: &Format) -> Rounded {
        let Self {
            bits,
            exponent,
            sticky,
        } = *self;
        let length = i64::from(u128::BITS - bits.leading_zeros());
        let excess = length - i64::from(format.precision);
        // Positive: this many low bits go. Negative: the number moves up by as many.
        let shift = excess.max(format.min_exponent - exponent);
        let (mut mantissa, mut exponent) = (shift_rounded(bits, shift, sticky), exponent + shift);
        if mantissa >> format.precision != 0 {
            mantissa >>= 1;
            exponent += 1;
        }
        match u64::try_from(mantissa) {
            Ok(0) => Rounded::Zero,
            Ok(mantissa) if exponent <= format.max_exponent => {
                Rounded::Finite { mantissa, exponent }
            }
            _ => Rounded::Overflow,
        }
    }

    fn push_hexadecimal(&mut self, digit: u8) {
        let value = char::from(digit).to_digit(16).unwrap_or(0);
        if self.bits >> (u128::BITS - 4) == 0 {
            self.bits = (self.bits << 4) | u128::from(value);
        } else {
            self.sticky |= value != 0;
            self.exponent += 4;
        }
    }
}

/// Shifts right, rounding half to even, or left when the shift is negative.
pub(crate) fn shift_rounded(bits: u128, shift: i64, sticky: bool) -> u128 {
    if shift <= 0 {
        return bits << shift.unsigned_abs().min(127);
    }
    if shift > 128 {
        return 0;
    }
    let kept = if shift == 128 { 0 } else { bits >> shift };
    let half = 1u128 << (shift - 1);
    let rest = bits & (half | (half - 1));
    let up = rest > half || (rest == half && (sticky || kept & 1 == 1));
    kept + u128::from(up)
}

fn split_sign(text: &[u8]) -> (bool, &[u8]) {
    match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    }
}

/// The value of digits that do not begin with a zero.
fn canonical_digits(digits: &[u8]) -> Option<u64> {
    match digits {
        [b'1'..=b'9', ..] => digits_u64(digits),
        _ => None,
    }
}

fn digits_u64(digits: &[u8]) -> Option<u64> {
    // Nineteen digits fit whatever they are, so the usual number needs no check for overflow.
    let (safe, rest) = digits.split_at(digits.len().min(19));
    let mut value: u64 = 0;
    for digit in safe {
        value = value * 10 + digit_value(digit)?;
    }
    for digit in rest {
        value = value.checked_mul(10)?.checked_add(digit_value(digit)?)?;
    }
    Some(value)
}

fn digit_value(digit: &u8) -> Option<u64> {
    digit.is_ascii_digit().then(|| u64::from(digit - b'0'))
}

/// Splits a text into the digits before a point, those after it, and the rest. There has to be a digit.
fn split_digits(text: &[u8], is_digit: fn(&u8) -> bool) -> Option<(&[u8], &[u8], &[u8])> {
    let split = |text: &'_ [u8]| text.iter().take_while(|byte| is_digit(byte)).count();
    let (integer, rest) = text.split_at(split(text));
    let (fraction, rest) = match rest {
        [b'.', rest @ ..] => rest.split_at(split(rest)),
        _ => (&[][..], rest),
    };
    (!integer.is_empty() || !fraction.is_empty()).then_some((integer, fraction, rest))
}

/// Reads the exponent that a text ends with, zero if it ends before.
fn scan_exponent(text: &[u8], marker: u8) -> Option<i64> {
    let (&first, rest) = match text.split_first() {
        None => return Some(0),
        Some(split) => split,
    };
    let (negative, digits) = split_sign(rest);
    if first.to_ascii_lowercase() != marker || digits.is_empty() {
        return None;
    }
    let mut value: i64 = 0;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        value = (value * 10 + i64::from(digit - b'0')).min(EXPONENT_LIMIT);
    }
    Some(if negative { -value } else { value })
}

/// What may follow `nan`: nothing, or letters, digits and underscores in parentheses.
fn is_nan_tag(tag: &[u8]) -> bool {
    match tag {
        [] => true,
        [b'(', inner @ .., b')'] => inner
            .iter()
            .all(|&byte| byte.is_ascii_alphanumeric() || byte == b'_'),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
