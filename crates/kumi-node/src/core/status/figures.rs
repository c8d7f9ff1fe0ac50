//! Figures for people: counts, sizes and times in at most four digits, with decimal units.

/// A count: `999`, `1.2 k`, `34 k`, `5.6 M`.
pub(in crate::core) fn count(value: u64) -> String {
    scaled(value as f64, &["", " k", " M", " G", " T", " P", " E"])
}

/// A size: `999 B`, `1.2 kB`, `34 MB`.
pub(in crate::core) fn bytes(value: u64) -> String {
    scaled(
        value as f64,
        &[" B", " kB", " MB", " GB", " TB", " PB", " EB"],
    )
}

/// A rate in a second, with one digit after the point below ten.
pub(in crate::core) fn rate(value: f64) -> String {
    match value.is_finite() && value > 0.0 {
        true if value < 0.05 => "<0.1".into(),
        true if value < 9.95 => format!("{value:.1}"),
        true => scaled(value, &["", " k", " M", " G", " T", " P", " E"]),
        false => "0".into(),
    }
}

/// A share, in percent: `97.5%`.
pub(in crate::core) fn percent(share: f64) -> String {
    let percent = (share * 100.0).clamp(0.0, 100.0);
    format!("{percent:.1}%")
}

/// A time: `0.4 ms`, `12 ms`, `2 s`, `2 m 10 s`, `3 h 4 m`, `5 d 6 h`.
pub(in crate::core) fn age(ms: u64) -> String {
    let seconds = ms / 1_000;
    let two = |large: u64, unit: &str, small: u64, small_unit: &str| match small {
        0 => format!("{large} {unit}"),
        _ => format!("{large} {unit} {small} {small_unit}"),
    };
    match seconds {
        0 if ms > 0 => format!("{ms} ms"),
        0..60 => format!("{seconds} s"),
        60..3_600 => two(seconds / 60, "m", seconds % 60, "s"),
        3_600..86_400 => two(seconds / 3_600, "h", seconds % 3_600 / 60, "m"),
        _ => two(seconds / 86_400, "d", seconds % 86_400 / 3_600, "h"),
    }
}

/// A latency in milliseconds: `0.42 ms`, `3.1 ms`, `120 ms`, `2.5 s`.
pub(in crate::core) fn latency(ms: f64) -> String {
    match ms {
        _ if !ms.is_finite() || ms < 0.0 => "-".into(),
        ms if ms < 0.995 => format!("{ms:.2} ms"),
        ms if ms < 9.95 => format!("{ms:.1} ms"),
        ms if ms < 999.5 => format!("{ms:.0} ms"),
        ms => format!("{:.1} s", ms / 1_000.0),
    }
}

/// "1 task" or "3 tasks".
pub(in crate::core) fn plural(number: u64, one: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        _ => format!("{number} {one}s"),
    }
}

fn scaled(value: f64, units: &[&str]) -> String {
    let (mut value, mut unit) = (value, 0);
    while value >= 999.5 && unit + 1 < units.len() {
        value /= 1_000.0;
        unit += 1;
    }
    let digits = usize::from(unit > 0 && value < 9.95);
    format!("{value:.digits$}{}", units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_few_digits_and_decimal_units() {
        let counts = [
            0,
            999,
            1_000,
            1_240,
            9_949,
            9_950,
            34_400,
            999_499,
            999_500,
            u64::MAX,
        ];
        let expected = [
            "0", "999", "1.0 k", "1.2 k", "9.9 k", "10 k", "34 k", "999 k", "1.0 M", "18 E",
        ];
        assert_eq!(counts.map(count), expected);
        let sizes = [0, 512, 1_000, 1_500_000, 34_000_000_000];
        assert_eq!(
            sizes.map(bytes),
            ["0 B", "512 B", "1.0 kB", "1.5 MB", "34 GB"]
        );
        let rates = [
            0.0,
            0.01,
            0.1,
            1.25,
            9.94,
            9.96,
            999.0,
            1_240.0,
            f64::NAN,
            -1.0,
        ];
        let expected = [
            "0", "<0.1", "0.1", "1.2", "9.9", "10", "999", "1.2 k", "0", "0",
        ];
        assert_eq!(rates.map(rate), expected);
        assert_eq!(
            [0.975, 1.0, 0.0, 2.0].map(percent),
            ["97.5%", "100.0%", "0.0%", "100.0%"]
        );
    }

    #[test]
    fn times_have_at_most_two_units() {
        let ages = [
            0,
            40,
            2_999,
            60_000,
            130_000,
            3_600_000,
            11_040_000,
            453_600_000,
            u64::MAX,
        ];
        let expected = [
            "0 s",
            "40 ms",
            "2 s",
            "1 m",
            "2 m 10 s",
            "1 h",
            "3 h 4 m",
            "5 d 6 h",
            "213503982334 d 14 h",
        ];
        assert_eq!(ages.map(age), expected);
        let latencies = [0.0, 0.421, 3.12, 120.4, 2_500.0, f64::NAN];
        assert_eq!(
            latencies.map(latency),
            ["0.00 ms", "0.42 ms", "3.1 ms", "120 ms", "2.5 s", "-"]
        );
        assert_eq!(
            [0, 1, 2].map(|n| plural(n, "task")),
            ["0 tasks", "1 task", "2 tasks"]
        );
    }
}
