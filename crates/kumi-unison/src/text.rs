//! Text that a peer wrote, made fit for a log or a terminal.

use std::fmt;

/// Characters that are shown of what a peer wrote.
const SHOWN_LIMIT: usize = 500;

/// Shows text of a peer on one line: cut after 500 characters, with control characters and other invisible ones escaped.
/// Errors of this crate show such text this way already.
///
/// ```
/// assert_eq!(kumi_unison::Shown("a\nb\u{1b}[2J").to_string(), "a\\nb\\u{1b}[2J");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a>(pub &'a str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = kumi_common::Shown {
            bytes: self.0.as_bytes(),
            limit_chars: SHOWN_LIMIT,
        };
        fmt::Display::fmt(&shown, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_peer_wrote_is_escaped_and_cut() {
        let check = |text: &str, expected: &str| assert_eq!(Shown(text).to_string(), expected);
        check("it's \"fine\", caf\u{e9}", "it's \"fine\", caf\u{e9}");
        check("a\nb\x1b[2J", "a\\nb\\u{1b}[2J");
        check("\u{202e}abc", "\\u{202e}abc");
        let long = Shown(&"x".repeat(5_000)).to_string();
        assert_eq!(long.len(), SHOWN_LIMIT + "... (5000 bytes in all)".len());
    }
}
