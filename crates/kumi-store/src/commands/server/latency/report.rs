//! The LATENCY reports for people: GRAPH and DOCTOR.

use crate::engine::latency::{EventHistory, LatencyMonitor};
use std::fmt::Write;

/// Height of a drawing in lines.
const LINES: u64 = 4;
/// The character at the top of a column, from low to high within a line.
const TOPS: [char; 3] = ['_', 'o', '#'];

/// The header and the drawing, to follow the event's name: a column per sample, and under each
/// how long ago it was.
pub(super) fn graph(history: &EventHistory, now_s: u64) -> String {
    let values = history.samples.iter().map(|&(_, ms)| ms);
    let low = values.clone().min().unwrap_or(0);
    let high = values.clone().max().unwrap_or(0);
    let mut text = format!(
        " - high {high} ms, low {low} ms (all time high {} ms)\n{}\n",
        history.max_ms,
        "-".repeat(80)
    );
    let steps_per_line = TOPS.len() as u64;
    let steps = steps_per_line * LINES;
    let heights: Vec<u64> = values
        .map(|ms| {
            let height = ((ms - low) * steps).checked_div(high - low).unwrap_or(0);
            height.min(steps - 1)
        })
        .collect();
    for line in (0..LINES).rev() {
        for &height in &heights {
            text.push(match height.checked_sub(line * steps_per_line) {
                None => ' ',
                Some(above) => TOPS.get(above as usize).copied().unwrap_or('|'),
            });
        }
        text.push('\n');
    }
    let ages: Vec<String> = history
        .samples
        .iter()
        .map(|&(unix_s, _)| age(now_s.saturating_sub(unix_s)))
        .collect();
    text.push_str(&" ".repeat(ages.len()));
    text.push('\n');
    for line in 0..ages.iter().map(String::len).max().unwrap_or(0) {
        for age in &ages {
            text.push(age.chars().nth(line).unwrap_or(' '));
        }
        text.push('\n');
    }
    text
}

fn age(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

pub(super) fn doctor(latency: &LatencyMonitor) -> String {
    if latency.threshold_ms == 0 && latency.events.is_empty() {
        return "Latency is not being monitored. CONFIG SET latency-monitor-threshold \
                <milliseconds> turns it on.\n"
            .into();
    }
    if latency.events.is_empty() {
        return format!(
            "Nothing took {} ms or longer since monitoring began.\n",
            latency.threshold_ms
        );
    }
    let mut text = String::from("These took longer than they should:\n\n");
    for (name, history) in &latency.events {
        let count = history.samples.len() as u64;
        let values = history.samples.iter().map(|&(_, ms)| ms);
        let mean = values.clone().sum::<u64>() / count.max(1);
        let deviation = values.map(|ms| ms.abs_diff(mean)).sum::<u64>() / count.max(1);
        let _ = writeln!(
            text,
            "- {name}: {count} spikes of {mean} ms on average (mean deviation {deviation} ms), \
             the longest {} ms.",
            history.max_ms
        );
    }
    text.push('\n');
    for (name, advice) in ADVICE {
        if latency.events.contains_key(name) {
            let _ = writeln!(text, "{advice}");
        }
    }
    text
}

/// What to look at, per event.
const ADVICE: [(&str, &str); 3] = [
    (
        "command",
        "SLOWLOG GET shows which commands were slow. Commands that walk many keys (KEYS, large \
         SCAN counts, FLUSHALL of huge data) are the usual reason.",
    ),
    (
        "fast-command",
        "Even commands that do little were slow: the machine is short of CPU, or the server was \
         stopped for a moment by swapping or by its host.",
    ),
    (
        "expire-cycle",
        "Many keys expired at one time. Spread their deadlines if that hurts.",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock::Now;

    fn history(samples: &[(u64, u64)]) -> EventHistory {
        EventHistory {
            samples: samples.iter().copied().collect(),
            max_ms: samples.iter().map(|&(_, ms)| ms).max().unwrap_or(0),
        }
    }

    #[test]
    fn a_graph_has_a_column_per_sample() {
        let drawn = graph(&history(&[(0, 10), (3_000, 40), (4_000, 130)]), 4_005);
        let lines: Vec<&str> = drawn.lines().collect();
        assert_eq!(lines[0], " - high 130 ms, low 10 ms (all time high 130 ms)");
        assert_eq!(
            lines[2..],
            ["  #", "  |", " _|", "_||", "   ", "115", "h6s", " m "]
        );
    }

    #[test]
    fn equal_samples_lie_on_the_ground() {
        let drawn = graph(&history(&[(0, 5), (0, 5)]), 0);
        assert!(drawn.contains("\n__\n"), "{drawn}");
    }

    #[test]
    fn the_doctor_asks_for_monitoring_first() {
        let mut latency = LatencyMonitor::default();
        assert!(doctor(&latency).contains("latency-monitor-threshold"));
        latency.threshold_ms = 5;
        assert!(doctor(&latency).contains("5 ms"));
        latency.record("expire-cycle", Now::default(), 9);
        let text = doctor(&latency);
        assert!(text.contains("expire-cycle: 1 spikes of 9 ms"), "{text}");
        assert!(text.contains("deadlines"), "{text}");
    }
}
