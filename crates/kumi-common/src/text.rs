//! Text for a log or a terminal: what others wrote, and errors with their causes.

use alloc::string::String;
use core::error::Error;
use core::fmt::{self, Write};

/// Shows what others wrote on one line: control characters and other invisible ones are escaped, so that nothing in it
/// moves a cursor, and a long text is cut and followed by its size.
///
/// ```
/// use kumi_common::Shown;
///
/// let shown = |bytes: &[u8]| Shown { bytes, limit_chars: 8 }.to_string();
/// assert_eq!(shown(b"a\nb\x1b[2J"), "a\\nb\\u{1b}[2J");
/// assert_eq!(shown(b"a long text"), "a long t... (11 bytes in all)");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a> {
    /// The text. What is not UTF-8 in it is shown as U+FFFD.
    pub bytes: &'a [u8],
    /// Characters that are shown, counted before they are escaped.
    pub limit_chars: usize,
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Bytes enough for all characters that are shown and one more, so that a large payload is not decoded for its
        // beginning.
        let enough = self.limit_chars.saturating_add(1).saturating_mul(4);
        let beginning = self.bytes.get(..enough).unwrap_or(self.bytes);
        for (count, letter) in String::from_utf8_lossy(beginning).chars().enumerate() {
            if count == self.limit_chars {
                return write!(f, "... ({} bytes in all)", self.bytes.len());
            }
            match letter {
                '"' | '\'' | '\\' => f.write_char(letter)?,
                _ => write!(f, "{}", letter.escape_debug())?,
            }
        }
        Ok(())
    }
}

/// Shows an error and what is behind it on one line.
///
/// ```
/// use kumi_common::Chain;
/// use std::io;
///
/// let error = io::Error::other("the disk is full");
/// assert_eq!(Chain(&error).to_string(), "the disk is full");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Chain<'a>(pub &'a dyn Error);

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        for cause in causes(self.0) {
            write!(f, ": {cause}")?;
        }
        Ok(())
    }
}

/// What is behind an error, the nearest first, without the error itself.
///
/// ```
/// let error = "x".parse::<u8>().unwrap_err();
/// assert_eq!(kumi_common::causes(&error).count(), 0);
/// ```
pub fn causes(error: &dyn Error) -> impl Iterator<Item = &(dyn Error + 'static)> {
    core::iter::successors(error.source(), |&cause| cause.source())
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::boxed::Box;
    use alloc::format;
    use alloc::string::ToString;
    use alloc::vec::Vec;

    #[derive(Debug)]
    struct Failed(&'static str, Option<Box<Failed>>);

    impl fmt::Display for Failed {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Failed {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            let Failed(_, cause) = self;
            cause
                .as_deref()
                .map(|cause| cause as &(dyn Error + 'static))
        }
    }

    #[test]
    fn a_chain_shows_the_causes() {
        let error = Failed("no file", None);
        assert_eq!(Chain(&error).to_string(), "no file");
        let error = Failed("no rules", Some(Box::new(error)));
        let error = Failed("cannot start", Some(Box::new(error)));
        assert_eq!(Chain(&error).to_string(), "cannot start: no rules: no file");
        let causes: Vec<String> = causes(&error).map(ToString::to_string).collect();
        assert_eq!(causes, ["no rules", "no file"]);
    }

    #[test]
    fn what_others_wrote_is_escaped_and_cut() {
        let shown = |bytes: &[u8]| {
            let limit_chars = 200;
            Shown { bytes, limit_chars }.to_string()
        };
        let check = |text: &str, expected: &str| assert_eq!(shown(text.as_bytes()), expected);
        check("it's \"fine\", caf\u{e9}", "it's \"fine\", caf\u{e9}");
        check("a\nb\x1b[2J", "a\\nb\\u{1b}[2J");
        check("\u{202e}abc", "\\u{202e}abc");
        check("", "");
        let long = "x".repeat(200);
        check(&long, &long);
        check(
            &"x".repeat(5_000),
            &format!("{long}... (5000 bytes in all)"),
        );
        assert!(shown(&[0xff; 3_000]).len() < 1_000);
    }

    #[test]
    fn characters_of_four_bytes_are_shown_up_to_the_limit() {
        for (before, letters) in [(0, 3), (0, 4), (1, 4), (2, 9), (3, 9)] {
            let text = "a".repeat(before) + &"\u{1f600}".repeat(letters);
            let kept: String = text.chars().take(4).collect();
            let expected = match before + letters > 4 {
                true => format!("{kept}... ({} bytes in all)", text.len()),
                false => kept,
            };
            let shown = Shown {
                bytes: text.as_bytes(),
                limit_chars: 4,
            };
            assert_eq!(shown.to_string(), expected);
        }
        let nothing = Shown {
            bytes: b"abc",
            limit_chars: 0,
        };
        assert_eq!(nothing.to_string(), "... (3 bytes in all)");
    }
}
