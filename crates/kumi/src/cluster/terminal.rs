//! Standard output: for people in colour, for programs as JSON lines.

use super::failure::Failure;
use super::options::Form;
use std::fmt::Display;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::time::{SystemTime, UNIX_EPOCH};

/// The colours that are used, as terminals number them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Colour {
    Bold,
    Dim,
    Red,
    Green,
    Yellow,
    Cyan,
}

/// How things are shown, decided once.
pub(super) struct Terminal {
    pub(super) is_json: bool,
    coloured: bool,
}

impl Terminal {
    pub(super) fn new(form: Form) -> Self {
        let is_terminal = io::stdout().is_terminal();
        // https://no-color.org: set and not empty means no.
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || std::env::var_os("TERM").is_some_and(|kind| kind == "dumb");
        Self {
            is_json: match form {
                Form::Auto => !is_terminal,
                Form::Text => false,
                Form::Json => true,
            },
            coloured: is_terminal && !refused,
        }
    }

    /// Text without colours, for tests.
    #[cfg(test)]
    pub(super) fn plain() -> Self {
        Self {
            is_json: false,
            coloured: false,
        }
    }

    pub(super) fn paint(&self, colour: Colour, text: &str) -> String {
        let code = match colour {
            Colour::Bold => 1,
            Colour::Dim => 2,
            Colour::Red => 31,
            Colour::Green => 32,
            Colour::Yellow => 33,
            Colour::Cyan => 36,
        };
        match self.coloured {
            true => format!("\x1b[{code}m{text}\x1b[0m"),
            false => text.to_owned(),
        }
    }

    /// A member's status in its colour.
    pub(super) fn status(&self, status: &str, text: &str) -> String {
        let colour = match status {
            "up" => Colour::Green,
            "joining" | "leaving" => Colour::Cyan,
            "suspect" => Colour::Yellow,
            "dead" => Colour::Red,
            _ => Colour::Dim,
        };
        self.paint(colour, text)
    }
}

/// Says something on standard error. If that is closed as well, nobody hears it, and that is no reason to panic.
pub(super) fn note(text: impl Display) {
    let _ = writeln!(io::stderr(), "kumi: {text}");
}

/// Writes a line at once.
pub(super) fn say(line: &str) -> Result<(), Failure> {
    write(&format!("{line}\n"))
}

/// Writes text at once. A reader that has seen enough and left ends the command, but is no mistake of anybody.
pub(super) fn write(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(text.as_bytes());
    written.and_then(|()| stdout.flush()).map_err(unwritten)
}

/// What it means that something could not be written.
pub(super) fn unwritten(error: io::Error) -> Failure {
    match error.kind() {
        ErrorKind::BrokenPipe => Failure::NobodyReads,
        _ => Failure::io("writing to standard output", error),
    }
}

/// Text from other members on one line of a terminal: nothing in it moves the cursor.
pub(super) fn quoted(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c.is_control() {
            true => shown.extend(c.escape_default()),
            false => shown.push(c),
        }
    }
    shown
}

/// So many members, in words.
pub(super) fn members(count: usize) -> String {
    match count {
        1 => "1 member".into(),
        _ => format!("{count} members"),
    }
}

/// Milliseconds since 1970.
pub(super) fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}

/// The time of day, UTC.
pub(super) fn clock(unix_ms: u64) -> String {
    let (seconds, ms) = (unix_ms / 1_000 % 86_400, unix_ms % 1_000);
    let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
    format!("{hours:02}:{minutes:02}:{:02}.{ms:03}Z", seconds % 60)
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
        assert_eq!(clock(86_400_000 + 3_723_004), "01:02:03.004Z");
    }

    #[test]
    fn nothing_that_is_quoted_moves_the_cursor() {
        assert_eq!(quoted("café\n\x1b[2J"), "café\\n\\u{1b}[2J");
    }
}
