//! A floating-point number of 64 bits of mantissa and 15 of exponent, in software.
//!
//! INCRBYFLOAT is defined by what a C `long double` does on x86: text is read with `strtold`, added in the x87's
//! extended format and written with `%.17Lf`. Rust has no such type, and a double would answer differently from the
//! sixteenth digit on, so this does the three operations the command needs, each correctly rounded to nearest even:
//! parse, add, write. It is no general number type: there is no multiplication, no comparison, no way to a double.
//!
//! Short numbers go through 128-bit integers. Long ones, or those with large exponents, go through [`Natural`], whose
//! size is bounded by [`TEXT_MAX`].

use crate::base::number::{FloatText, Format, Rounded, Significand, format_u64, shift_rounded};

/// Texts of this many bytes or more are refused. It is what the longest number in the format needs, and some.
const TEXT_MAX: usize = 5 * 1024;

const EXTENDED: Format = Format {
    precision: 64,
    min_exponent: -16445,
    max_exponent: 16320,
};

/// The largest and the smallest power of ten at which a leading digit can stand without over- or underflow.
const MAX_POWER: i64 = 4932;
const MIN_POWER: i64 = -4951;

/// How many decimals are written.
const DECIMALS: usize = 17;
const DECIMALS_SCALE: u128 = 10u128.pow(DECIMALS as u32);

/// The largest power of five in 64 bits.
const FIVE_POWER: u32 = 27;

/// The largest power of ten in 64 bits.
const TEN_POWER: usize = 19;

/// A number of the extended format. It may be infinite, and it is never NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extended {
    negative: bool,
    magnitude: Magnitude,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Magnitude {
    /// `mantissa * 2^exponent`. The top bit of the mantissa is set unless the exponent is the smallest.
    Finite {
        mantissa: u64,
        exponent: i64,
    },
    Infinite,
}

impl From<i64> for Extended {
    fn from(value: i64) -> Self {
        let significand = Significand {
            bits: u128::from(value.unsigned_abs()),
            exponent: 0,
            sticky: false,
        };
        Self::round(value < 0, &significand)
    }
}

impl Extended {
    /// Reads a number in decimal, hexadecimal or as an infinity. Refuses what is not a number, is too long, too large
    /// for the format, or too small for it and yet not zero.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        if text.len() >= TEXT_MAX {
            return None;
        }
        match FloatText::scan(text)? {
            FloatText::Nan => None,
            FloatText::Infinity { negative } => Some(Self {
                negative,
                magnitude: Magnitude::Infinite,
            }),
            FloatText::Hexadecimal {
                negative,
                significand,
            } => Self::in_range(negative, &significand),
            FloatText::Decimal {
                negative,
                integer,
                fraction,
                exponent,
            } => Self::in_range(negative, &scale_decimal(integer, fraction, exponent)?),
        }
    }

    /// The product with a factor, rounded to the format and then up to a whole number. Numbers beyond `i128` become
    /// its ends.
    pub(crate) fn scale_up(self, factor: u32) -> i128 {
        let end = if self.negative { i128::MIN } else { i128::MAX };
        let Magnitude::Finite { mantissa, exponent } = self.magnitude else {
            return end;
        };
        let product = Significand {
            bits: u128::from(mantissa) * u128::from(factor),
            exponent,
            sticky: false,
        };
        let Magnitude::Finite { mantissa, exponent } =
            Self::round(self.negative, &product).magnitude
        else {
            return end;
        };
        let mantissa = i128::from(mantissa);
        match exponent {
            0..=62 => (mantissa << exponent) * if self.negative { -1 } else { 1 },
            63.. if mantissa != 0 => end,
            63.. => 0,
            _ => {
                // Shifting an integer rounds down.
                let shift = exponent.unsigned_abs().min(127) as u32;
                if self.negative {
                    -(mantissa >> shift)
                } else {
                    -(-mantissa >> shift)
                }
            }
        }
    }

    /// The sum, unless it is infinite or not a number.
    pub(crate) fn checked_add(self, other: Self) -> Option<Self> {
        use Magnitude::Finite;
        let (
            Finite { exponent: own, .. },
            Finite {
                exponent: others, ..
            },
        ) = (self.magnitude, other.magnitude)
        else {
            return None;
        };
        let (high, low) = if own >= others {
            (self, other)
        } else {
            (other, self)
        };
        let (
            Finite {
                mantissa: high_bits,
                exponent,
            },
            Finite {
                mantissa: low_bits,
                exponent: low_exponent,
            },
        ) = (high.magnitude, low.magnitude)
        else {
            return None;
        };
        // Both mantissas stand 62 bits up, which leaves a bit for the carry. What the lower one loses at the bottom
        // is remembered in its last bit: it is far below the bit that rounding looks at.
        let high_bits = u128::from(high_bits) << 62;
        let low_bits = shift_jammed(u128::from(low_bits) << 62, exponent - low_exponent);
        let (negative, bits) = if high.negative == low.negative {
            (high.negative, high_bits + low_bits)
        } else if high_bits > low_bits {
            (high.negative, high_bits - low_bits)
        } else {
            (low.negative && high_bits != low_bits, low_bits - high_bits)
        };
        let sum = Self::round(
            negative,
            &Significand {
                bits,
                exponent: exponent - 62,
                sticky: false,
            },
        );
        (sum.magnitude != Magnitude::Infinite).then_some(sum)
    }

    /// Appends the number in plain decimal: seventeen decimals, rounded, less the zeros at the end.
    pub(crate) fn write(self, out: &mut Vec<u8>) {
        let start = out.len();
        if self.negative {
            out.push(b'-');
        }
        match self.magnitude {
            Magnitude::Infinite => out.extend_from_slice(b"inf"),
            Magnitude::Finite { mantissa, exponent } if exponent >= 0 => {
                write_integer(mantissa, exponent, out)
            }
            Magnitude::Finite { mantissa, exponent } => write_fraction(mantissa, exponent, out),
        }
        if out[start..] == *b"-0" {
            out.remove(start);
        }
    }

    fn round(negative: bool, significand: &Significand) -> Self {
        let magnitude = match significand.round(&EXTENDED) {
            Rounded::Zero => Magnitude::Finite {
                mantissa: 0,
                exponent: EXTENDED.min_exponent,
            },
            Rounded::Finite { mantissa, exponent } => Magnitude::Finite { mantissa, exponent },
            Rounded::Overflow => Magnitude::Infinite,
        };
        Self {
            negative,
            magnitude,
        }
    }

    fn in_range(negative: bool, significand: &Significand) -> Option<Self> {
        let value = Self::round(negative, significand);
        match value.magnitude {
            Magnitude::Infinite => None,
            Magnitude::Finite { mantissa: 0, .. } if !significand.is_zero() => None,
            Magnitude::Finite { .. } => Some(value),
        }
    }
}

/// Turns decimal digits and a power of ten into binary, exactly but for the sticky bit. Nothing if the number is so
/// large or so small that no rounding brings it back.
fn scale_decimal(integer: &[u8], fraction: &[u8], exponent: i64) -> Option<Significand> {
    let mut digits: Vec<u8> = Vec::with_capacity(integer.len() + fraction.len());
    digits.extend(
        integer
            .iter()
            .chain(fraction)
            .skip_while(|&&digit| digit == b'0')
            .map(|digit| digit - b'0'),
    );
    let mut power = exponent - i64::try_from(fraction.len()).ok()?;
    while digits.last() == Some(&0) {
        digits.pop();
        power += 1;
    }
    if digits.is_empty() {
        return Some(Significand {
            bits: 0,
            exponent: 0,
            sticky: false,
        });
    }
    let leading = power + i64::try_from(digits.len()).ok()? - 1;
    if !(MIN_POWER..=MAX_POWER).contains(&leading) {
        return None;
    }
    let fives = u32::try_from(power.unsigned_abs()).ok()?;
    if digits.len() <= TEN_POWER && fives <= FIVE_POWER {
        let digits = digits
            .iter()
            .fold(0u64, |value, &digit| value * 10 + u64::from(digit));
        let scale = 5u64.pow(fives);
        return Some(if power >= 0 {
            multiply(digits, scale, power)
        } else {
            divide(digits, scale, power)
        });
    }
    let mut number = Natural::from_digits(&digits);
    if power >= 0 {
        number.multiply_power_of_five(fives);
        return Some(number.significand(power));
    }
    let mut divisor = Natural(vec![1]);
    divisor.multiply_power_of_five(fives);
    Some(number.divide(divisor, power))
}

fn multiply(digits: u64, scale: u64, exponent: i64) -> Significand {
    Significand {
        bits: u128::from(digits) * u128::from(scale),
        exponent,
        sticky: false,
    }
}

/// Divides two 64-bit numbers to 95 bits or more. The dividend is not zero.
fn divide(digits: u64, scale: u64, exponent: i64) -> Significand {
    let (up, down) = (digits.leading_zeros(), scale.leading_zeros());
    let divisor = u128::from(scale << down);
    let dividend = u128::from(digits << up) << 64;
    let (quotient, remainder) = (dividend / divisor, dividend % divisor);
    let rest = remainder << 32;
    Significand {
        bits: (quotient << 32) | (rest / divisor),
        exponent: exponent + i64::from(down) - i64::from(up) - 96,
        sticky: rest % divisor != 0,
    }
}

/// Shifts right, and sets the lowest bit if a bit that was shifted out was set.
fn shift_jammed(bits: u128, shift: i64) -> u128 {
    if shift >= 128 {
        return u128::from(bits != 0);
    }
    let kept = bits >> shift;
    kept | u128::from(kept << shift != bits)
}

/// Writes `mantissa * 2^exponent` for an exponent of zero or more.
fn write_integer(mantissa: u64, exponent: i64, out: &mut Vec<u8>) {
    let mut number = Natural(vec![mantissa]);
    number.shift_left(exponent.unsigned_abs() as usize);
    let mut groups = Vec::new();
    while !number.is_zero() {
        groups.push(number.divide_small(10u64.pow(TEN_POWER as u32)));
    }
    out.extend_from_slice(&format_u64(groups.pop().unwrap_or(0)));
    for group in groups.into_iter().rev() {
        write_padded(group, TEN_POWER, out);
    }
}

/// Writes `mantissa * 2^exponent` for an exponent below zero.
fn write_fraction(mantissa: u64, exponent: i64, out: &mut Vec<u8>) {
    let point = exponent.unsigned_abs();
    let integer = if point < 64 { mantissa >> point } else { 0 };
    let fraction = if point < 64 {
        mantissa - (integer << point)
    } else {
        mantissa
    };
    // Less than 2^64 times less than 2^57: all the decimals fit, however small the number is.
    let decimals = shift_rounded(u128::from(fraction) * DECIMALS_SCALE, -exponent, false);
    let carry = decimals == DECIMALS_SCALE;
    out.extend_from_slice(&format_u64(integer + u64::from(carry)));
    if decimals == 0 || carry {
        return;
    }
    out.push(b'.');
    write_padded(u64::try_from(decimals).unwrap_or(0), DECIMALS, out);
    while out.last() == Some(&b'0') {
        out.pop();
    }
}

/// Writes digits with zeros in front up to a width.
fn write_padded(value: u64, width: usize, out: &mut Vec<u8>) {
    let digits = format_u64(value);
    out.resize(out.len() + width.saturating_sub(digits.len()), b'0');
    out.extend_from_slice(&digits);
}

/// A natural number of any size, in limbs from the lowest up. The highest limb is not zero, except while dividing.
#[derive(Clone, Debug)]
struct Natural(Vec<u64>);

impl Natural {
    fn from_digits(digits: &[u8]) -> Self {
        let mut number = Self(Vec::with_capacity(digits.len() / TEN_POWER + 1));
        for group in digits.chunks(TEN_POWER) {
            let value = group
                .iter()
                .fold(0u64, |value, &digit| value * 10 + u64::from(digit));
            number.multiply_add(10u64.pow(group.len() as u32), value);
        }
        number
    }

    fn is_zero(&self) -> bool {
        self.0.is_empty()
    }

    fn bit_length(&self) -> usize {
        self.0
            .last()
            .map_or(0, |top| self.0.len() * 64 - top.leading_zeros() as usize)
    }

    fn multiply_add(&mut self, factor: u64, summand: u64) {
        let mut carry = summand;
        for limb in &mut self.0 {
            let product = u128::from(*limb) * u128::from(factor) + u128::from(carry);
            *limb = product as u64;
            carry = (product >> 64) as u64;
        }
        if carry != 0 {
            self.0.push(carry);
        }
    }

    fn multiply_power_of_five(&mut self, power: u32) {
        for _ in 0..power / FIVE_POWER {
            self.multiply_add(5u64.pow(FIVE_POWER), 0);
        }
        self.multiply_add(5u64.pow(power % FIVE_POWER), 0);
    }

    fn shift_left(&mut self, shift: usize) {
        let (limbs, bits) = (shift / 64, shift % 64);
        if bits != 0 {
            self.multiply_add(1 << bits, 0);
        }
        if !self.is_zero() {
            self.0.splice(0..0, std::iter::repeat_n(0, limbs));
        }
    }

    /// Divides in place and gives the remainder.
    fn divide_small(&mut self, divisor: u64) -> u64 {
        let divisor = u128::from(divisor);
        let mut remainder: u128 = 0;
        for limb in self.0.iter_mut().rev() {
            let dividend = (remainder << 64) | u128::from(*limb);
            let quotient = dividend / divisor;
            *limb = quotient as u64;
            remainder = dividend - quotient * divisor;
        }
        self.trim();
        remainder as u64
    }

    /// The top 128 bits of the number times `2^exponent`.
    fn significand(&self, exponent: i64) -> Significand {
        let dropped = self.bit_length().saturating_sub(128);
        let (limbs, bits) = (dropped / 64, dropped % 64);
        let limb = |index: usize| u128::from(self.0.get(limbs + index).copied().unwrap_or(0));
        let low = limb(0) | (limb(1) << 64);
        let high = if bits == 0 {
            0
        } else {
            limb(2) << (128 - bits)
        };
        let lost =
            self.0.iter().take(limbs).any(|&limb| limb != 0) || low.trailing_zeros() < bits as u32;
        Significand {
            bits: (low >> bits) | high,
            exponent: exponent + dropped as i64,
            sticky: lost,
        }
    }

    /// Divides to 67 bits, one at a time: only the number of limbs grows with the operands, and quotients are short.
    fn divide(mut self, mut divisor: Self, exponent: i64) -> Significand {
        const QUOTIENT_BITS: i64 = 67;
        let (own, others) = (self.bit_length(), divisor.bit_length());
        self.shift_left(others.saturating_sub(own));
        divisor.shift_left(own.saturating_sub(others));
        let mut quotient: u128 = 0;
        for _ in 0..QUOTIENT_BITS {
            quotient <<= 1;
            if self.subtract_if_not_less(&divisor) {
                quotient |= 1;
            }
            self.multiply_add(2, 0);
        }
        Significand {
            bits: quotient,
            exponent: exponent + own as i64 - others as i64 - (QUOTIENT_BITS - 1),
            sticky: !self.is_zero(),
        }
    }

    fn subtract_if_not_less(&mut self, other: &Self) -> bool {
        let less = self
            .0
            .len()
            .cmp(&other.0.len())
            .then_with(|| self.0.iter().rev().cmp(other.0.iter().rev()))
            .is_lt();
        if less {
            return false;
        }
        let mut borrow = false;
        for (index, limb) in self.0.iter_mut().enumerate() {
            let (less, first) = limb.overflowing_sub(other.0.get(index).copied().unwrap_or(0));
            let (less, second) = less.overflowing_sub(u64::from(borrow));
            *limb = less;
            borrow = first || second;
        }
        self.trim();
        true
    }

    fn trim(&mut self) {
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
    }
}

#[cfg(test)]
mod tests;
