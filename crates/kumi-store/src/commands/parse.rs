//! Arguments as numbers, with the errors clients expect.

use crate::base::clock::Now;
use crate::base::error::CommandError;
use crate::base::extended::Extended;
use crate::base::number;

pub(super) fn integer(arg: &[u8]) -> Result<i64, CommandError> {
    number::parse_i64(arg).ok_or(CommandError::NOT_INTEGER)
}

/// A number that must fit an `int`.
pub(super) fn int32(arg: &[u8]) -> Result<i32, CommandError> {
    i32::try_from(integer(arg)?).map_err(|_| {
        CommandError::fixed(
            "ERR value is out of range, value must between -2147483648 and 2147483647",
        )
    })
}

/// The time a blocking command waits at most: seconds with decimals, as milliseconds. 0 is no limit.
pub(super) fn timeout_ms(arg: &[u8], now: Now) -> Result<u64, CommandError> {
    let seconds = Extended::parse(arg).ok_or(CommandError::fixed(
        "ERR timeout is not a float or out of range",
    ))?;
    let ms = seconds.scale_up(1000);
    if ms < 0 {
        return Err(CommandError::fixed("ERR timeout is negative"));
    }
    // Redis adds the time of day in a signed number.
    let latest = i128::from(i64::MAX) - i128::from(now.unix_ms());
    u64::try_from(ms)
        .ok()
        .filter(|_| ms <= latest)
        .ok_or(CommandError::fixed("ERR timeout is out of range"))
}

/// The time in milliseconds that XREAD waits at most. 0 is no limit.
pub(super) fn block_ms(arg: &[u8], now: Now) -> Result<u64, CommandError> {
    let ms = number::parse_i64(arg).ok_or(CommandError::fixed(
        "ERR timeout is not an integer or out of range",
    ))?;
    let ms = u64::try_from(ms).map_err(|_| CommandError::fixed("ERR timeout is negative"))?;
    // Redis adds the time of day in a signed number.
    if ms > i64::MAX as u64 - now.unix_ms() {
        return Err(CommandError::fixed("ERR timeout is out of range"));
    }
    Ok(ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_are_seconds_rounded_up_to_milliseconds() {
        let now = Now {
            unix_us: 1_700_000_000_000_000,
            mono_ns: 0,
        };
        let check = |text: &str, expected: Result<u64, &str>| {
            let found = timeout_ms(text.as_bytes(), now);
            let found =
                found.map_err(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
            assert_eq!(found, expected.map_err(str::to_owned), "{text}");
        };
        for (text, ms) in [
            ("0", 0),
            ("-0", 0),
            ("1", 1000),
            ("0.1", 100),
            ("0.001", 1),
            ("0.0001", 1),
            ("1e-400", 1),
            ("12.3456", 12_346),
            ("1e3", 1_000_000),
            ("0x10", 16_000),
            // Redis rounds up before it asks whether the number is negative.
            ("-0.0001", 0),
            ("-0.001", 0),
        ] {
            check(text, Ok(ms));
        }
        for text in ["", "x", "1 ", " 1", "nan", "1e9999"] {
            check(text, Err("ERR timeout is not a float or out of range"));
        }
        for text in ["-1", "-0.002", "-1e30", "-inf"] {
            check(text, Err("ERR timeout is negative"));
        }
        for text in [
            "inf",
            "1e16",
            "9223372036854775.807",
            "9223372036854775",
            "1e4000",
        ] {
            check(text, Err("ERR timeout is out of range"));
        }
    }
}
