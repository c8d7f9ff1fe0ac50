//! Words for what a cluster has: statuses in their colours, counts, and times in fitting units.

use crate::terminal::{Colour, Terminal};

/// A member's status in its colour.
pub(super) fn status(terminal: &Terminal, status: &str, text: &str) -> String {
    let colour = match status {
        "up" => Colour::Green,
        "joining" | "leaving" => Colour::Cyan,
        "suspect" => Colour::Yellow,
        "dead" => Colour::Red,
        _ => Colour::Dim,
    };
    terminal.paint(colour, text)
}

/// So many members, in words.
pub(super) fn members(count: usize) -> String {
    match count {
        1 => "1 member".into(),
        _ => format!("{count} members"),
    }
}

/// A length of time, in the largest unit that says enough.
pub(super) fn age(ms: u64) -> String {
    match ms {
        0..10_000 => format!("{}.{}s", ms / 1_000, ms % 1_000 / 100),
        10_000..120_000 => format!("{}s", ms / 1_000),
        120_000..7_200_000 => format!("{}m", ms / 60_000),
        _ => format!("{}h", ms / 3_600_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_in_fitting_units() {
        let ages = [0, 450, 9_999, 10_000, 119_999, 120_000, 7_200_000].map(age);
        assert_eq!(ages, ["0.0s", "0.4s", "9.9s", "10s", "119s", "2m", "2h"]);
    }
}
