//! Lengths of time as they stand on a command line.

use std::time::Duration;

/// Reads `2s`, `500ms`, `15m`, `24h`; a bare number is seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, &'static str> {
    const WRONG: &str = "expected a time such as 500ms, 2s, 15m or 24h";
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit_ms = match &text[digits.len()..] {
        "ms" => 1,
        "s" | "" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(WRONG),
    };
    let number: u64 = digits.parse().map_err(|_| WRONG)?;
    match number.checked_mul(unit_ms) {
        Some(0) => Err("has to be longer than nothing"),
        Some(ms) => Ok(Duration::from_millis(ms)),
        None => Err(WRONG),
    }
}
