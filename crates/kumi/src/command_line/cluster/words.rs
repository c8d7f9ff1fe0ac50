//! Words for what a cluster has: statuses in their colours, counts, and times in fitting units.

use crate::command_line::terminal::{Colour, Terminal};
use kumi_unison::Shown;

/// Text from a node, escaped and cut, so that nothing in it moves the cursor or fills the terminal.
pub(super) fn shown(text: &str) -> String {
    Shown(text).to_string()
}

/// A node by its address and, where it has a name, by its name and life.
pub(super) fn node(authority: &str, name_and_life: Option<&str>) -> String {
    match name_and_life {
        Some(name) => format!("{} {}", shown(authority), shown(name)),
        None => shown(authority),
    }
}

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
    fn text_of_a_node_does_not_move_the_cursor_and_is_cut() {
        assert_eq!(shown("a\n\x1b[2J\u{202e}b"), "a\\n\\u{1b}[2J\\u{202e}b");
        assert!(shown(&"x".repeat(1_000_000)).len() < 1_000);
    }

    #[test]
    fn times_are_told_in_fitting_units() {
        let ages = [0, 450, 9_999, 10_000, 119_999, 120_000, 7_200_000].map(age);
        assert_eq!(ages, ["0.0s", "0.4s", "9.9s", "10s", "119s", "2m", "2h"]);
    }
}
