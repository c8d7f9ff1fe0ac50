//! C's `printf` conversions, as far as `string.format` and number formatting need them.

use crate::base::number;

/// The flags, width and precision of a conversion.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spec {
    pub(crate) left: bool,
    pub(crate) plus: bool,
    pub(crate) space: bool,
    pub(crate) alternate: bool,
    pub(crate) zero: bool,
    pub(crate) width: usize,
    pub(crate) precision: Option<usize>,
}

impl Spec {
    fn sign(&self, negative: bool) -> &'static [u8] {
        match (negative, self.plus, self.space) {
            (true, _, _) => b"-",
            (false, true, _) => b"+",
            (false, false, true) => b" ",
            _ => b"",
        }
    }

    /// Writes sign or prefix and digits, padded to the width.
    fn pad(&self, out: &mut Vec<u8>, prefix: &[u8], digits: &[u8], zero: bool) {
        let fill = self.width.saturating_sub(prefix.len() + digits.len());
        if self.left {
            out.extend_from_slice(prefix);
            out.extend_from_slice(digits);
            out.resize(out.len() + fill, b' ');
        } else if zero {
            out.extend_from_slice(prefix);
            out.resize(out.len() + fill, b'0');
            out.extend_from_slice(digits);
        } else {
            out.resize(out.len() + fill, b' ');
            out.extend_from_slice(prefix);
            out.extend_from_slice(digits);
        }
    }

    /// `%s`
    pub(crate) fn text(&self, out: &mut Vec<u8>, text: &[u8]) {
        let shown = &text[..self.precision.unwrap_or(text.len()).min(text.len())];
        self.pad(out, b"", shown, false);
    }

    fn digits(&self, digits: String) -> Vec<u8> {
        let mut digits = digits.into_bytes();
        if self.precision == Some(0) && digits == b"0" {
            digits.clear();
        }
        let missing = self.precision.unwrap_or(1).saturating_sub(digits.len());
        [vec![b'0'; missing], digits].concat()
    }

    /// `%d`
    pub(crate) fn signed(&self, out: &mut Vec<u8>, value: i64) {
        let digits = self.digits(value.unsigned_abs().to_string());
        let zero = self.zero && self.precision.is_none();
        self.pad(out, self.sign(value < 0), &digits, zero);
    }

    /// `%u`, `%o`, `%x` and `%X`
    pub(crate) fn unsigned(&self, out: &mut Vec<u8>, value: u64, conversion: u8) {
        let zero = self.zero && self.precision.is_none();
        let (digits, prefix): (String, &[u8]) = match conversion {
            b'o' => (format!("{value:o}"), b""),
            b'x' => (format!("{value:x}"), b"0x"),
            b'X' => (format!("{value:X}"), b"0X"),
            _ => (value.to_string(), b""),
        };
        let mut digits = self.digits(digits);
        if self.alternate && conversion == b'o' && digits.first() != Some(&b'0') {
            digits.insert(0, b'0');
        }
        let prefix = if self.alternate && value != 0 {
            prefix
        } else {
            b""
        };
        self.pad(out, prefix, &digits, zero);
    }

    /// `%e`, `%f`, `%g` and their upper-case forms
    pub(crate) fn float(&self, out: &mut Vec<u8>, value: f64, conversion: u8) {
        let sign = self.sign(value.is_sign_negative());
        let magnitude = value.abs();
        let precision = self.precision.unwrap_or(6);
        let mut digits = Vec::new();
        let finite = !number::write_special(&mut digits, magnitude);
        if finite {
            match conversion.to_ascii_lowercase() {
                b'e' => {
                    let text = format!("{magnitude:.precision$e}");
                    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
                    digits.extend_from_slice(mantissa.as_bytes());
                    if self.alternate && precision == 0 {
                        digits.push(b'.');
                    }
                    number::write_exponent(&mut digits, exponent.parse().unwrap_or(0));
                }
                b'f' => {
                    digits.extend_from_slice(format!("{magnitude:.precision$}").as_bytes());
                    if self.alternate && precision == 0 {
                        digits.push(b'.');
                    }
                }
                _ => number::general(&mut digits, magnitude, precision, self.alternate),
            }
        }
        if conversion.is_ascii_uppercase() {
            digits.make_ascii_uppercase();
        }
        self.pad(out, sign, &digits, self.zero && finite);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversions_match_c() {
        let mut out = Vec::new();
        let spec = Spec {
            zero: true,
            width: 6,
            ..Spec::default()
        };
        spec.signed(&mut out, -42);
        spec.unsigned(&mut out, 255, b'x');
        Spec {
            precision: Some(2),
            ..Spec::default()
        }
        .float(&mut out, std::f64::consts::PI, b'f');
        Spec::default().float(&mut out, 1e10, b'g');
        assert_eq!(out, b"-000420000ff3.141e+10");
    }
}
