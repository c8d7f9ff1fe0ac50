//! Inline requests: one line of words, as typed into a telnet client.
//!
//! Words are separated by blanks. `"..."` understands `\n \r \t \b \a`, `\xHH` and takes any
//! other escaped byte as itself; `'...'` understands only `\'`. A quote may open in the middle of
//! a word, but the byte after its end must be a blank or the end of the line.
//!
//! Redis looks for the end of the line with `strchr`, so a line with a NUL byte never ends: bytes that are
//! no requests are answered with an error once there are too many. It is the same here.

use crate::ProtocolError;
use crate::args::Span;

/// The buffer that the spans of a split line refer to.
pub(crate) enum Words {
    /// Into the buffer that holds the line: no word had a quote.
    InPlace,
    /// Into the scratch buffer that holds the words with their quotes resolved.
    InScratch,
}

/// Splits the line at `buf[start..end]` (without its line end) and appends a span per word.
pub(crate) fn split(
    buf: &[u8],
    start: usize,
    end: usize,
    spans: &mut Vec<Span>,
    scratch: &mut Vec<u8>,
) -> Result<Words, ProtocolError> {
    let line = &buf[start..end];
    if memchr::memchr2(b'"', b'\'', line).is_none() {
        split_plain(line, start, spans);
        return Ok(Words::InPlace);
    }
    scratch.clear();
    let mut rest = skip_blanks(line);
    while !rest.is_empty() {
        let word_start = scratch.len();
        rest = unquote_word(rest, scratch)?;
        spans.push(Span {
            start: word_start,
            end: scratch.len(),
        });
        rest = skip_blanks(rest);
    }
    Ok(Words::InScratch)
}

fn split_plain(line: &[u8], offset: usize, spans: &mut Vec<Span>) {
    let mut rest = skip_blanks(line);
    while !rest.is_empty() {
        let word_len = rest
            .iter()
            .position(|&byte| ends_word(byte))
            .unwrap_or(rest.len());
        let start = offset + line.len() - rest.len();
        spans.push(Span {
            start,
            end: start + word_len,
        });
        rest = skip_blanks(&rest[word_len..]);
    }
}

/// Appends the word at the start of `rest` to `scratch` and returns the bytes after it.
fn unquote_word<'a>(mut rest: &'a [u8], scratch: &mut Vec<u8>) -> Result<&'a [u8], ProtocolError> {
    loop {
        match rest {
            [b'"', quoted @ ..] => return unquote_double(quoted, scratch),
            [b'\'', quoted @ ..] => return unquote_single(quoted, scratch),
            [byte, after @ ..] if !ends_word(*byte) => {
                scratch.push(*byte);
                rest = after;
            }
            _ => return Ok(rest),
        }
    }
}

fn unquote_double<'a>(
    mut rest: &'a [u8],
    scratch: &mut Vec<u8>,
) -> Result<&'a [u8], ProtocolError> {
    loop {
        let (byte, after) = match rest {
            [b'"', after @ ..] => return after_quote(after),
            [b'\\', b'x', high, low, after @ ..]
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                (hex(*high) << 4 | hex(*low), after)
            }
            [b'\\', escaped, after @ ..] => (unescape(*escaped), after),
            [byte, after @ ..] => (*byte, after),
            [] => return Err(ProtocolError::UnbalancedQuotes),
        };
        scratch.push(byte);
        rest = after;
    }
}

fn unquote_single<'a>(
    mut rest: &'a [u8],
    scratch: &mut Vec<u8>,
) -> Result<&'a [u8], ProtocolError> {
    loop {
        let (byte, after) = match rest {
            [b'\'', after @ ..] => return after_quote(after),
            [b'\\', b'\'', after @ ..] => (b'\'', after),
            [byte, after @ ..] => (*byte, after),
            [] => return Err(ProtocolError::UnbalancedQuotes),
        };
        scratch.push(byte);
        rest = after;
    }
}

fn after_quote(rest: &[u8]) -> Result<&[u8], ProtocolError> {
    match rest.first() {
        Some(&byte) if !is_blank(byte) => Err(ProtocolError::UnbalancedQuotes),
        _ => Ok(rest),
    }
}

fn unescape(byte: u8) -> u8 {
    match byte {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 0x08,
        b'a' => 0x07,
        other => other,
    }
}

/// The value of a byte that is known to be a hexadecimal digit.
fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        _ => digit - b'A' + 10,
    }
}

fn skip_blanks(line: &[u8]) -> &[u8] {
    let blanks = line.iter().take_while(|&&byte| is_blank(byte)).count();
    &line[blanks..]
}

/// Whether a byte may separate words. As in Redis, vertical tab and form feed are skipped between words but do not
/// end a word.
fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | 0x0b | 0x0c)
}

fn ends_word(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}
