//! Texts of KDL 2: quoted, over several lines, and raw.
//!
//! Each function is called in front of the opening quote and leaves the cursor behind the closing one, or behind the
//! part that is wrong, so that reading can go on.

use super::lexer::{Cursor, is_newline, is_space};
use crate::source::Span;

/// What is wrong with a text, and where.
pub(super) struct Wrong {
    pub(super) span: Span,
    pub(super) message: &'static str,
    pub(super) help: Option<&'static str>,
}

fn wrong(span: Span, message: &'static str, help: &'static str) -> Wrong {
    Wrong {
        span,
        message,
        help: Some(help),
    }
}

/// `"..."` or `"""` over several lines.
pub(super) fn quoted(cursor: &mut Cursor<'_>) -> Result<String, Wrong> {
    let start = cursor.at;
    if cursor.eat("\"\"\"") {
        return quoted_lines(cursor, start);
    }
    cursor.bump();
    let mut value = String::new();
    loop {
        let at = cursor.at;
        match cursor.peek() {
            Some('"') => {
                cursor.bump();
                return Ok(value);
            }
            Some('\\') => match escape(cursor)? {
                Escape::Character(character) => value.push(character),
                Escape::Whitespace => {}
            },
            Some(character) if !is_newline(character) => {
                value.push(character);
                cursor.bump();
            }
            _ => {
                return Err(wrong(
                    Span::new(cursor.file, start, at),
                    "this text has no closing quote",
                    "end it with '\"'; a text of several lines begins and ends with '\"\"\"'",
                ));
            }
        }
    }
}

enum Escape {
    Character(char),
    /// A backslash that swallows the spaces and line ends behind it.
    Whitespace,
}

fn escape(cursor: &mut Cursor<'_>) -> Result<Escape, Wrong> {
    let start = cursor.at;
    cursor.bump();
    let Some(character) = cursor.peek() else {
        return Err(Wrong {
            span: cursor.span_from(start),
            message: "this text has no closing quote",
            help: None,
        });
    };
    if is_space(character) || is_newline(character) {
        cursor.eat_while(|character| is_space(character) || is_newline(character));
        return Ok(Escape::Whitespace);
    }
    cursor.bump();
    let meant = match character {
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        '\\' => '\\',
        '"' => '"',
        'b' => '\u{8}',
        'f' => '\u{c}',
        's' => ' ',
        'u' => return unicode(cursor, start),
        _ => {
            return Err(wrong(
                cursor.span_from(start),
                "there is no such escape",
                "known are \\n \\r \\t \\\\ \\\" \\b \\f \\s and \\u{...}; a raw text, #\"...\"#, has none",
            ));
        }
    };
    Ok(Escape::Character(meant))
}

/// `\u{` one to six hexadecimal digits `}`
fn unicode(cursor: &mut Cursor<'_>, start: usize) -> Result<Escape, Wrong> {
    if cursor.eat("{") {
        let digits = cursor.eat_while(|character| character.is_ascii_hexdigit());
        let closed = cursor.eat("}");
        let value = u32::from_str_radix(digits, 16).ok();
        if closed
            && digits.len() <= 6
            && let Some(character) = value.and_then(char::from_u32)
        {
            return Ok(Escape::Character(character));
        }
    }
    Err(wrong(
        cursor.span_from(start),
        "this is no character",
        "write its number in hexadecimal, as in \\u{1F600}",
    ))
}

/// Behind the opening `"""`.
fn quoted_lines(cursor: &mut Cursor<'_>, start: usize) -> Result<String, Wrong> {
    if !cursor.eat_newline() {
        return Err(needs_line_end(cursor, start));
    }
    let content_start = cursor.at;
    while !cursor.starts("\"\"\"") {
        if cursor.peek() == Some('\\') {
            cursor.bump();
        }
        if cursor.bump().is_none() {
            return Err(unclosed_lines(cursor, start));
        }
    }
    let content = &cursor.text[content_start..cursor.at];
    cursor.eat("\"\"\"");
    let dedented = dedent(&without_whitespace_escapes(content))
        .map_err(|message| wrong(cursor.span_from(start), message, DEDENT_HELP))?;
    let mut inner = Cursor {
        text: &dedented,
        at: 0,
        file: cursor.file,
    };
    let mut value = String::new();
    while let Some(character) = inner.peek() {
        if character != '\\' {
            value.push(character);
            inner.bump();
            continue;
        }
        match escape(&mut inner) {
            Ok(Escape::Character(character)) => value.push(character),
            Ok(Escape::Whitespace) => {}
            Err(problem) => {
                return Err(Wrong {
                    span: cursor.span_from(start),
                    ..problem
                });
            }
        }
    }
    Ok(value)
}

/// They go before the lines are looked at; the other escapes after.
fn without_whitespace_escapes(content: &str) -> String {
    let mut out = String::with_capacity(content.len());
    let mut rest = content.chars().peekable();
    while let Some(character) = rest.next() {
        if character != '\\' {
            out.push(character);
            continue;
        }
        let blank = |character: &char| is_space(*character) || is_newline(*character);
        if rest.peek().is_some_and(blank) {
            while rest.next_if(blank).is_some() {}
        } else {
            out.push('\\');
            out.extend(rest.next());
        }
    }
    out
}

/// `#"..."#` with any number of `#`, also over several lines.
pub(super) fn raw(cursor: &mut Cursor<'_>) -> Result<String, Wrong> {
    let start = cursor.at;
    let hashes = cursor.eat_while(|character| character == '#').len();
    let lines = cursor.eat("\"\"\"");
    if !lines {
        cursor.bump();
    } else if !cursor.eat_newline() {
        return Err(needs_line_end(cursor, start));
    }
    let closing = format!(
        "{}{}",
        if lines { "\"\"\"" } else { "\"" },
        "#".repeat(hashes)
    );
    let content_start = cursor.at;
    // A text of one line is looked for no further than its line, so that many unclosed ones stay cheap.
    while !cursor.starts(&closing) {
        let ended = match cursor.peek() {
            None => true,
            Some(character) => !lines && is_newline(character),
        };
        if ended && lines {
            return Err(unclosed_lines(cursor, start));
        }
        if ended {
            return Err(wrong(
                cursor.span_from(start),
                "this text has no closing quote",
                "a raw text ends with a quote and as many '#' as it began with, on the same line",
            ));
        }
        cursor.bump();
    }
    let content = &cursor.text[content_start..cursor.at];
    cursor.eat(&closing);
    if !lines {
        return Ok(content.to_owned());
    }
    dedent(content).map_err(|message| wrong(cursor.span_from(start), message, DEDENT_HELP))
}

const DEDENT_HELP: &str =
    "the spaces before the closing '\"\"\"' are taken from the start of every line";

/// Takes the indentation of the last line, which holds nothing else, from all the others.
fn dedent(content: &str) -> Result<String, &'static str> {
    let normal = content.replace("\r\n", "\n");
    let mut lines: Vec<&str> = normal.split(is_newline).collect();
    let indent = lines.pop().unwrap_or_default();
    if !indent.chars().all(is_space) {
        return Err("the closing '\"\"\"' has to stand on a line of its own");
    }
    let mut out = Vec::with_capacity(lines.len());
    for line in lines {
        if line.chars().all(is_space) {
            out.push("");
        } else {
            let rest = line.strip_prefix(indent);
            out.push(rest.ok_or("a line of this text is indented less than its closing '\"\"\"'")?);
        }
    }
    Ok(out.join("\n"))
}

fn needs_line_end(cursor: &mut Cursor<'_>, start: usize) -> Wrong {
    let span = cursor.span_from(start);
    cursor.skip_line();
    wrong(
        span,
        "a text of several lines begins on the line below its '\"\"\"'",
        "end the line here, or use a single quote for a text of one line",
    )
}

fn unclosed_lines(cursor: &Cursor<'_>, start: usize) -> Wrong {
    wrong(
        Span::new(cursor.file, start, start + 3),
        "this text of several lines is never closed",
        "end it with '\"\"\"' on a line of its own",
    )
}
