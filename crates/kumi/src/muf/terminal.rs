//! Standard output: for people in colour, for programs as JSON lines.

use super::base64;
use super::failure::Failure;
use super::options::Form;
use rustix::event::{PollFd, PollFlags, poll};
use serde_json::{Map, Value};
use std::fmt::Display;
use std::io::{self, ErrorKind, IsTerminal, Write};

/// The colours that are used, as terminals number them.
#[derive(Clone, Copy)]
pub(super) enum Colour {
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

    pub(super) fn paint(&self, colour: Colour, text: &str) -> String {
        let code = match colour {
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

/// Ends the program when whoever reads its output has left: `| head -1` need not wait for the next line. For commands
/// that only show things, and have nothing to leave in order.
pub(super) fn end_with_reader() {
    std::thread::spawn(|| {
        let stdout = io::stdout();
        loop {
            // Nothing is asked for: what went wrong is told all the same.
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

/// Says something on standard error, for whoever started a backend. If that is a terminal that was closed, nobody
/// hears it, and the backend has its work to end all the same.
pub(super) fn note(text: impl Display) {
    let _ = writeln!(io::stderr(), "kumi: {text}");
}

/// Writes a line at once.
pub(super) fn say(line: &str) -> Result<(), Failure> {
    write(format!("{line}\n").as_bytes())
}

/// Writes bytes at once. A reader that has seen enough and left ends the program, and is no failure.
pub(super) fn write(bytes: &[u8]) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => Err(Failure::io("writing to standard output", error)),
        Ok(()) => Ok(()),
    }
}

/// Puts bytes into a JSON object: as they are if they are text, in Base64 under another name if not.
pub(super) fn put(object: &mut Map<String, Value>, name: &str, bytes: &[u8]) {
    match std::str::from_utf8(bytes) {
        Ok(text) => object.insert(name.into(), text.into()),
        Err(_) => object.insert(format!("{name}_base64"), base64::encode(bytes).into()),
    };
}

/// Bytes on one line of a terminal: nothing in them moves the cursor.
pub(super) fn quoted(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text
            .chars()
            .flat_map(|c| -> Box<dyn Iterator<Item = char>> {
                match c.is_control() {
                    true => Box::new(c.escape_default()),
                    false => Box::new(std::iter::once(c)),
                }
            })
            .collect(),
        Err(_) => bytes.escape_ascii().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_quoted_moves_the_cursor() {
        assert_eq!(quoted(b"caf\xc3\xa9 \"x\""), "café \"x\"");
        assert_eq!(quoted(b"a\nb\x1b[2J"), "a\\nb\\u{1b}[2J");
        assert_eq!(quoted(b"\xff\n"), "\\xff\\n");
    }

    #[test]
    fn bytes_that_are_no_text_are_base64() {
        let mut object = Map::new();
        put(&mut object, "payload", b"hi");
        put(&mut object, "value", b"\xff");
        assert_eq!(
            Value::from(object).to_string(),
            r#"{"payload":"hi","value_base64":"/w=="}"#
        );
    }
}
