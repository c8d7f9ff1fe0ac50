//! Characters, words and numbers of KDL 2.
//!
//! A cursor over the text, and the tables of the language: which characters are spaces, end a line, may stand in a
//! name, or may not stand in a file at all.

use super::Scalar;
use crate::source::{FileId, Span};

/// Where reading stands.
pub(super) struct Cursor<'t> {
    pub(super) text: &'t str,
    pub(super) at: usize,
    pub(super) file: FileId,
}

impl<'t> Cursor<'t> {
    pub(super) fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub(super) fn bump(&mut self) -> Option<char> {
        let character = self.peek()?;
        self.at += character.len_utf8();
        Some(character)
    }

    pub(super) fn starts(&self, with: &str) -> bool {
        self.rest().starts_with(with)
    }

    /// Goes past `text` if it comes next.
    pub(super) fn eat(&mut self, text: &str) -> bool {
        let found = self.starts(text);
        if found {
            self.at += text.len();
        }
        found
    }

    pub(super) fn eat_while(&mut self, wanted: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let length = rest
            .find(|character| !wanted(character))
            .unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    /// Goes past the end of a line, which is one or (CR LF) two characters.
    pub(super) fn eat_newline(&mut self) -> bool {
        if self.eat("\r\n") {
            return true;
        }
        let found = self.peek().is_some_and(is_newline);
        if found {
            self.bump();
        }
        found
    }

    /// Goes to the end of the line, and not past it.
    pub(super) fn skip_line(&mut self) -> &'t str {
        self.eat_while(|character| !is_newline(character))
    }

    /// Goes past a `/* */`, which may hold others. `None` when the file ends in it.
    pub(super) fn eat_block_comment(&mut self) -> Option<&'t str> {
        let start = self.at;
        let mut depth = 0usize;
        loop {
            if self.eat("/*") {
                depth += 1;
            } else if self.eat("*/") {
                depth -= 1;
                if depth == 0 {
                    return Some(&self.text[start..self.at]);
                }
            } else {
                self.bump()?;
            }
        }
    }

    pub(super) fn span_from(&self, start: usize) -> Span {
        Span::new(self.file, start, self.at)
    }

    pub(super) fn span_here(&self) -> Span {
        let length = self.peek().map_or(0, char::len_utf8);
        Span::new(self.file, self.at, self.at + length)
    }
}

/// A space that does not end a line.
pub(super) fn is_space(character: char) -> bool {
    matches!(
        character,
        '\t' | ' ' | '\u{a0}' | '\u{1680}' | '\u{2000}'
            ..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}'
    )
}

/// Ends a line. CR LF is one end.
pub fn is_newline(character: char) -> bool {
    matches!(
        character,
        '\n' | '\r' | '\u{85}' | '\u{b}' | '\u{c}' | '\u{2028}' | '\u{2029}'
    )
}

/// May not stand in a document, not even in a comment: control characters, and marks that turn the direction of text.
pub fn is_disallowed(character: char) -> bool {
    matches!(
        character,
        '\0'..='\u{8}' | '\u{e}'..='\u{1f}' | '\u{7f}' | '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}' | '\u{feff}'
    )
}

/// May stand in a name without quotes.
pub fn is_identifier_character(character: char) -> bool {
    !is_space(character)
        && !is_newline(character)
        && !is_disallowed(character)
        && !matches!(
            character,
            '\\' | '/' | '(' | ')' | '{' | '}' | '[' | ']' | ';' | '"' | '#' | '='
        )
}

/// What a run of characters without quotes is.
pub(super) enum Word {
    Name,
    Number(Scalar),
    /// It is neither, for this reason.
    Wrong(&'static str),
}

pub(super) fn classify(word: &str) -> Word {
    if matches!(word, "true" | "false" | "null" | "inf" | "-inf" | "nan") {
        return Word::Wrong("this word needs a '#' in front, or quotes if it is a text");
    }
    let unsigned = word.strip_prefix(['+', '-']).unwrap_or(word);
    let mut characters = unsigned.chars();
    match (characters.next(), characters.next()) {
        (Some('0'..='9'), _) => match number(word) {
            Some(scalar) => Word::Number(scalar),
            None => {
                Word::Wrong("this is not a number; a text that begins with a digit needs quotes")
            }
        },
        (Some('.'), Some('0'..='9')) => {
            Word::Wrong("a number needs a digit before its point, as in 0.5")
        }
        _ => Word::Name,
    }
}

/// Reads `[+-] digits [. digits] [e [+-] digits]`, or digits behind 0x, 0o, 0b. Underscores may stand between digits.
fn number(word: &str) -> Option<Scalar> {
    let (negative, unsigned) = match word.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, word.strip_prefix('+').unwrap_or(word)),
    };
    let radix = match unsigned.get(..2) {
        Some("0x") => 16,
        Some("0o") => 8,
        Some("0b") => 2,
        _ => return decimal(negative, unsigned),
    };
    let digits = &unsigned[2..];
    if !is_digits(digits, radix) {
        return None;
    }
    let value = i128::from_str_radix(&digits.replace('_', ""), radix).ok()?;
    Some(Scalar::Integer(if negative { -value } else { value }))
}

fn decimal(negative: bool, unsigned: &str) -> Option<Scalar> {
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let exponent_digits =
        exponent.map(|exponent| exponent.strip_prefix(['+', '-']).unwrap_or(exponent));
    let parts = [Some(whole), fraction, exponent_digits];
    if !parts.into_iter().flatten().all(|part| is_digits(part, 10)) {
        return None;
    }
    let clean = unsigned.replace('_', "");
    if fraction.is_none()
        && exponent.is_none()
        && let Ok(value) = clean.parse::<i128>()
    {
        return Some(Scalar::Integer(if negative { -value } else { value }));
    }
    let value: f64 = clean.parse().ok()?;
    Some(Scalar::Float(if negative { -value } else { value }))
}

fn is_digits(text: &str, radix: u32) -> bool {
    text.starts_with(|character: char| character.is_digit(radix))
        && text
            .chars()
            .all(|character| character == '_' || character.is_digit(radix))
}
