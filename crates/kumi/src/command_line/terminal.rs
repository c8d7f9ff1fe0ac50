//! Standard output and standard error: for people in colour, for programs as lines.
//!
//! The commands decide what is shown; this file writes it, and makes sure that no text of others moves
//! the cursor.

use clap::ValueEnum;
use rustix::event::{PollFd, PollFlags, poll};
use std::fmt::Display;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::time::{SystemTime, UNIX_EPOCH};

/// The form of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// Text on a terminal, JSON otherwise
    Auto,
    /// For people
    Text,
    /// One JSON object a line
    Json,
}

/// The colours that are used, as terminals number them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colour {
    Bold,
    Dim,
    Red,
    Green,
    Yellow,
    Cyan,
}

/// How things are shown, decided once.
pub(crate) struct Terminal {
    pub(crate) is_json: bool,
    coloured: bool,
}

impl Terminal {
    pub(crate) fn new(form: Form) -> Self {
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
    pub(crate) fn plain() -> Self {
        Self {
            is_json: false,
            coloured: false,
        }
    }

    /// Text in colours, for tests.
    #[cfg(test)]
    pub(crate) fn coloured() -> Self {
        Self {
            is_json: false,
            coloured: true,
        }
    }

    pub(crate) fn paint(&self, colour: Colour, text: &str) -> String {
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
}

/// Standard output cannot be written, although it has a reader.
#[derive(Debug)]
pub(crate) struct Unwritten(io::Error);

impl From<Unwritten> for anyhow::Error {
    fn from(Unwritten(error): Unwritten) -> Self {
        anyhow::Error::new(error).context("writing to standard output")
    }
}

/// Writes a line at once.
pub(crate) fn say(line: &str) -> Result<(), Unwritten> {
    write(format!("{line}\n").as_bytes())
}

/// Writes bytes at once. A reader that has seen enough and left ends the program, and is no failure. For commands that
/// have nothing to leave in order.
pub(crate) fn write(bytes: &[u8]) -> Result<(), Unwritten> {
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(bytes).and_then(|()| stdout.flush());
    written.map_err(unwritten)
}

/// What it means that something could not be written. Does not return if that is no failure.
pub(crate) fn unwritten(error: io::Error) -> Unwritten {
    match error.kind() {
        ErrorKind::BrokenPipe => std::process::exit(0),
        _ => Unwritten(error),
    }
}

/// Ends the program when the reader of its output has left: `| head -1` need not wait for the next line. For commands
/// that only show things, and have nothing to leave in order.
pub(crate) fn end_with_reader() {
    std::thread::spawn(|| {
        let stdout = io::stdout();
        loop {
            // No event is requested: errors are reported all the same.
            let mut watched = [PollFd::new(&stdout, PollFlags::empty())];
            let polled = poll(&mut watched, None);
            let left = PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL;
            match polled {
                Ok(_) if watched[0].revents().intersects(left) => std::process::exit(0),
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                // Then the next line finds out.
                Err(_) => return,
            }
        }
    });
}

/// The columns and rows of the terminal that standard output is; none if it is no terminal.
pub(crate) fn size() -> Option<(usize, usize)> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    let (columns, rows) = (usize::from(size.ws_col), usize::from(size.ws_row));
    (columns > 0 && rows > 0).then_some((columns, rows))
}

/// Writes a note to standard error. If that is a terminal that was closed, the note is lost,
/// and there is work to end all the same.
pub(crate) fn note(text: impl Display) {
    let _ = writeln!(io::stderr(), "kumi: {text}");
}

/// The whole of a text from elsewhere, on one line of a terminal: nothing in it moves the cursor or changes the direction
/// of what follows. For payloads; names and errors are [`shown`].
pub(crate) fn quoted(text: &str) -> String {
    // `escape_debug` escapes these too, which are harmless: the last one is the space of Japanese text.
    const KEPT: [char; 4] = ['"', '\'', '\\', '\u{3000}'];
    let mut quoted = String::with_capacity(text.len());
    for part in text.split_inclusive(KEPT) {
        let plain = part.trim_end_matches(KEPT);
        quoted.extend(plain.escape_debug());
        quoted.push_str(&part[plain.len()..]);
    }
    quoted
}

/// A name or an error from elsewhere: as [`quoted`], and cut if it would fill the terminal.
pub(crate) fn shown(text: &str) -> String {
    kumi_unison::Shown(text).to_string()
}

/// Milliseconds since 1970.
pub(crate) fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}

/// The time of day, UTC.
pub(crate) fn clock(unix_ms: u64) -> String {
    let (seconds, ms) = (unix_ms / 1_000 % 86_400, unix_ms % 1_000);
    let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
    format!("{hours:02}:{minutes:02}:{:02}.{ms:03}Z", seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_quoted_moves_the_cursor() {
        assert_eq!(quoted("café \"x\"\n\x1b[2J"), "café \"x\"\\n\\u{1b}[2J");
        for harmless in ["組\u{3000}'\\n'", "\"\"", "か\u{3099}", ""] {
            assert_eq!(quoted(harmless), harmless);
        }
        // Line breaks, the cursor of 8-bit terminals, directions, and what takes no room.
        for c in [
            '\u{85}', '\u{9b}', '\u{200b}', '\u{2028}', '\u{202e}', '\u{2066}', '\u{feff}',
        ] {
            let expected = format!("a{}b", c.escape_unicode());
            assert_eq!(quoted(&format!("a{c}b")), expected);
            assert_eq!(shown(&format!("a{c}b")), expected);
        }
    }

    #[test]
    fn payloads_are_quoted_whole_and_names_are_cut() {
        let long = "x".repeat(100_000);
        assert_eq!(quoted(&long), long);
        assert!(shown(&long).len() < 1_000);
    }

    #[test]
    fn the_time_of_day_has_milliseconds() {
        assert_eq!(clock(86_400_000 + 3_723_004), "01:02:03.004Z");
    }
}
