//! Splitting a configuration line into words, with the quoting Redis uses for inline commands and `redis.conf`.
//!
//! `kumi-resp` has the same rules for inline commands, as spans over a query buffer, and keeps them private. Lines of a
//! configuration are few and short, so this function returns owned words.

/// Splits a line, or returns `None` when a quote is left open or a closing quote is not followed by a space.
///
/// Inside `"..."` the escapes are `\n \r \t \b \a \xHH` and a backslash before any other byte, which stands for that
/// byte; inside `'...'` only `\'` is one.
pub(crate) fn split(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut words = Vec::new();
    let mut rest = line;
    loop {
        rest = rest.trim_ascii_start();
        if rest.is_empty() {
            return Some(words);
        }
        let mut word = Vec::new();
        rest = take_word(rest, &mut word)?;
        words.push(word);
    }
}

/// Reads one word off the front of `text`; a quoted part may begin in the middle of a word and ends it.
fn take_word<'t>(mut text: &'t [u8], word: &mut Vec<u8>) -> Option<&'t [u8]> {
    while let Some((&first, rest)) = text.split_first() {
        match first {
            b'"' => return ends_word(take_double_quoted(rest, word)?),
            b'\'' => return ends_word(take_single_quoted(rest, word)?),
            b' ' | b'\n' | b'\r' | b'\t' => return Some(rest),
            byte => word.push(byte),
        }
        text = rest;
    }
    Some(text)
}

/// A closing quote must be the end of its word.
fn ends_word(rest: &[u8]) -> Option<&[u8]> {
    rest.first()
        .is_none_or(u8::is_ascii_whitespace)
        .then_some(rest)
}

fn take_double_quoted<'t>(mut text: &'t [u8], word: &mut Vec<u8>) -> Option<&'t [u8]> {
    loop {
        match text {
            [b'\\', b'x', high, low, rest @ ..]
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                word.push(hex_digit(*high) << 4 | hex_digit(*low));
                text = rest;
            }
            [b'\\', escaped, rest @ ..] => {
                word.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 0x08,
                    b'a' => 0x07,
                    other => *other,
                });
                text = rest;
            }
            [b'"', rest @ ..] => return Some(rest),
            [byte, rest @ ..] => {
                word.push(*byte);
                text = rest;
            }
            [] => return None,
        }
    }
}

fn take_single_quoted<'t>(mut text: &'t [u8], word: &mut Vec<u8>) -> Option<&'t [u8]> {
    loop {
        match text {
            [b'\\', b'\'', rest @ ..] => {
                word.push(b'\'');
                text = rest;
            }
            [b'\'', rest @ ..] => return Some(rest),
            [byte, rest @ ..] => {
                word.push(*byte);
                text = rest;
            }
            [] => return None,
        }
    }
}

fn hex_digit(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        _ => digit.wrapping_sub(b'A').wrapping_add(10),
    }
}

/// Appends `word` in double quotes, such that [`split`] reads the same bytes back.
pub(super) fn quote(out: &mut Vec<u8>, word: &[u8]) {
    out.push(b'"');
    for &byte in word {
        match byte {
            b'"' | b'\\' => out.extend([b'\\', byte]),
            b'\n' => out.extend(b"\\n"),
            b'\r' => out.extend(b"\\r"),
            b'\t' => out.extend(b"\\t"),
            0x07 => out.extend(b"\\a"),
            0x08 => out.extend(b"\\b"),
            0x20..=0x7e => out.push(byte),
            other => out.extend(format!("\\x{other:02x}").into_bytes()),
        }
    }
    out.push(b'"');
}

/// `word` in double quotes.
pub(super) fn quoted(word: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(word.len() + 2);
    quote(&mut out, word);
    out
}

#[cfg(test)]
mod tests {
    use super::{quoted, split};
    use proptest::prelude::*;

    fn check(line: &str, expected: Option<&[&[u8]]>) {
        let words = split(line.as_bytes());
        let expected =
            expected.map(|words| words.iter().map(|word| word.to_vec()).collect::<Vec<_>>());
        assert_eq!(words, expected, "{line}");
    }

    #[test]
    fn words_split_at_spaces_and_tabs() {
        check("  port \t 6379 ", Some(&[b"port", b"6379"]));
        check("", Some(&[]));
    }

    #[test]
    fn quotes_hold_spaces_and_escapes() {
        check(
            r#"requirepass "a b\"\x41\n\q""#,
            Some(&[b"requirepass", b"a b\"A\nq"]),
        );
        check(
            r"requirepass 'a \'b\n'",
            Some(&[b"requirepass", b"a 'b\\n"]),
        );
        check(r#"save """#, Some(&[b"save", b""]));
        check(r#"abc"def" x"#, Some(&[b"abcdef", b"x"]));
    }

    #[test]
    fn open_or_glued_quotes_are_unbalanced() {
        check(r#"port "12"#, None);
        check("port '12", None);
        check(r#"port "1"2"#, None);
        check(r#"port "\"#, None);
    }

    proptest! {
        #[test]
        fn quoted_words_read_back_as_they_were(word in proptest::collection::vec(any::<u8>(), 0..40)) {
            prop_assert_eq!(split(&quoted(&word)), Some(vec![word]));
        }

        #[test]
        fn no_line_makes_the_splitter_panic(line in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = split(&line);
        }
    }
}
