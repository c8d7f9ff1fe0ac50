//! Text that others wrote, made fit for a log or a terminal.

/// Characters that are shown of what others wrote.
const SHOWN_LIMIT: usize = 200;

/// What others wrote, on one line and not too long: nothing in it moves a cursor, and its beginning is enough to know it.
pub(crate) fn shown(bytes: &[u8]) -> String {
    // Bytes enough for all characters that are shown, so that a large payload is not decoded for its beginning.
    let beginning = &bytes[..bytes.len().min(4 * SHOWN_LIMIT + 4)];
    let text = String::from_utf8_lossy(beginning);
    let mut shown = String::new();
    for (count, letter) in text.chars().enumerate() {
        if count == SHOWN_LIMIT {
            shown.push_str(&format!("... ({} bytes in all)", bytes.len()));
            break;
        }
        match letter {
            '"' | '\'' | '\\' => shown.push(letter),
            _ => shown.extend(letter.escape_debug()),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_wrote_is_escaped_and_cut() {
        let check = |bytes: &[u8], expected: &str| assert_eq!(shown(bytes), expected);
        check(
            "it's \"fine\", caf\u{e9}".as_bytes(),
            "it's \"fine\", caf\u{e9}",
        );
        check(b"a\nb\x1b[2J", "a\\nb\\u{1b}[2J");
        check("\u{202e}abc".as_bytes(), "\\u{202e}abc");
        let long = shown("x".repeat(5_000).as_bytes());
        assert_eq!(long.len(), SHOWN_LIMIT + "... (5000 bytes in all)".len());
        assert!(shown(&[0xff; 3_000]).len() < 1_000);
    }
}
