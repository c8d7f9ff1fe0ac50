//! Regular expressions that mean the same in Rust and in TypeScript.
//!
//! Only what both have is let through: classes, groups, alternatives, anchors and repetitions. Flags, look-around,
//! back-references, named groups and POSIX classes are refused, because one of the two lacks them or reads them
//! differently; so are repetitions of nothing, of anchors and of repetitions, and `\B`, for which a character outside
//! the basic plane has an inside. `.` and `\s` mean ASCII's line feed and spaces, as in Rust; JavaScript gets that from
//! [`for_javascript`]. What remains takes time in proportion to the text in Rust; JavaScript makes no such promise.

/// Why a pattern cannot be used, or nothing.
pub(crate) fn problem(pattern: &str) -> Option<String> {
    if let Err(error) = regex_lite::Regex::new(pattern) {
        return Some(format!(
            "this is no regular expression: {}",
            error.to_string().trim()
        ));
    }
    portable(pattern).err()
}

fn portable(pattern: &str) -> Result<(), String> {
    let characters: Vec<char> = pattern.chars().collect();
    let mut at = 0;
    let mut in_class = false;
    let mut class_begins = 0;
    // Whether what was just read can be repeated.
    let mut repeatable = false;
    while at < characters.len() {
        let next = characters.get(at + 1).copied();
        let was_repeatable = std::mem::replace(&mut repeatable, true);
        match characters[at] {
            '\\' => {
                escape(&characters[at..], in_class)?;
                repeatable = next != Some('b');
                at += 1;
            }
            '[' if in_class => {
                return Err(
                    "a '[' inside a class is not read alike in every language; write \\[".into(),
                );
            }
            '[' => {
                in_class = true;
                // `[]a]` and `[^]a]` mean different things.
                let first = if next == Some('^') { at + 2 } else { at + 1 };
                class_begins = first;
                if characters.get(first) == Some(&']') {
                    return Err("a class that begins with ']' is not read alike in every language; write \\]".into());
                }
            }
            ']' if in_class => in_class = false,
            '&' | '~' | '-' if in_class && next == Some(characters[at]) => {
                return Err(format!(
                    "{0}{0} inside a class is not read alike in every language",
                    characters[at]
                ));
            }
            '-' if in_class && at > class_begins && is_class_escape(&characters, at + 1) => {
                return Err(
                    "a range in a class ends in one character; write \\- for a dash".into(),
                );
            }
            '-' if in_class
                && is_class_escape(&characters, at.wrapping_sub(2))
                && next != Some(']') =>
            {
                return Err(
                    "a range in a class begins with one character; write \\- for a dash".into(),
                );
            }
            _ if in_class => {}
            '(' if next == Some('?') && characters.get(at + 2) != Some(&':') => {
                return Err(
                    "of the groups that begin with (? only (?:...) is known in every language"
                        .into(),
                );
            }
            '(' if next == Some('?') => {
                at += 2;
                repeatable = false;
            }
            '(' | '|' | '^' | '$' => repeatable = false,
            sign @ ('*' | '+' | '?' | '{') => {
                if !was_repeatable {
                    return Err(format!(
                        "{sign:?} has nothing before it that can be repeated; write \\{sign} for the sign itself"
                    ));
                }
                if sign == '{' {
                    at = repetition(&characters, at)?;
                }
                // A question mark after it makes it match as little as possible.
                if characters.get(at + 1) == Some(&'?') {
                    at += 1;
                }
                repeatable = false;
            }
            '}' | ']' => {
                return Err(format!(
                    "a lone {0:?} is not read alike in every language; write \\{0}",
                    characters[at]
                ));
            }
            _ => {}
        }
        at += 1;
    }
    Ok(())
}

/// A backslash and what follows it.
fn escape(characters: &[char], in_class: bool) -> Result<(), String> {
    let text: String = characters.iter().take(2).collect();
    if in_class && text == "\\S" {
        return Err("\\S inside a class is not read alike in every language".into());
    }
    let known = characters.get(1).is_some_and(|&next| {
        matches!(
            next,
            'd' | 'D' | 'w' | 'W' | 's' | 'S' | 'n' | 'r' | 't' | 'f' | 'v'
        ) || "^$\\.*+?()[]{}|/".contains(next)
            || (next == 'b' && !in_class)
            || (next == '-' && in_class)
    });
    if known {
        Ok(())
    } else {
        Err(format!("{text} is not known in every language"))
    }
}

/// Whether a class such as `\d` stands at a place. `\\d` is a backslash and a letter.
fn is_class_escape(characters: &[char], at: usize) -> bool {
    let is_class =
        |character: Option<&char>| character.is_some_and(|character| "dDwWsS".contains(*character));
    let before = characters[..at.min(characters.len())].iter().rev();
    let backslashes = before.take_while(|&&character| character == '\\').count();
    characters.get(at) == Some(&'\\') && backslashes % 2 == 0 && is_class(characters.get(at + 1))
}

/// The same pattern as JavaScript has to read it: there `.` leaves out more line ends, and `\s` knows more spaces.
pub(crate) fn for_javascript(pattern: &str) -> String {
    const SPACES: &str = "\\t\\n\\v\\f\\r ";
    let mut out = String::with_capacity(pattern.len());
    let mut characters = pattern.chars();
    let mut in_class = false;
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some('s') if in_class => out.push_str(SPACES),
                Some('s') => out.push_str(&format!("[{SPACES}]")),
                Some('S') => out.push_str(&format!("[^{SPACES}]")),
                next => {
                    out.push('\\');
                    out.extend(next);
                }
            },
            '.' if !in_class => out.push_str("[^\\n]"),
            other => {
                match other {
                    '[' => in_class = true,
                    ']' => in_class = false,
                    _ => {}
                }
                out.push(other);
            }
        }
    }
    out
}

/// From the brace of `{n}`, `{n,}` or `{n,m}` to its end.
fn repetition(characters: &[char], start: usize) -> Result<usize, String> {
    let length = characters[start..]
        .iter()
        .position(|&character| character == '}');
    if let Some(length) = length {
        let inner: String = characters[start + 1..start + length].iter().collect();
        let digits =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let sound = match inner.split_once(',') {
            Some((least, most)) => digits(least) && (most.is_empty() || digits(most)),
            None => digits(&inner),
        };
        if sound {
            return Ok(start + length);
        }
    }
    Err("a '{' that is no repetition is not read alike in every language; write \\{".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_both_languages_know_is_let_through() {
        for pattern in [
            "^[a-z][a-z0-9_-]{0,63}$",
            r"^\d+(\.\d{2,})?$",
            "a|b",
            r"[\[\]\-]",
            "(?:ab)+?",
            r"\$\{x\}",
            r"^\/\w+\b",
            "",
            "名前",
            "[^x]",
            r"[\w.-]+@[\w-]",
            r"a{2}?b*?(c|d)+",
            r"[\d-]",
            r"(?:a)?\\*",
        ] {
            assert_eq!(problem(pattern), None, "{pattern}");
        }
    }

    #[test]
    fn what_one_of_them_lacks_is_refused() {
        for (pattern, expected) in [
            ("(", "no regular expression"),
            ("(?i)a", "(?:...)"),
            ("(?P<n>a)", "(?:...)"),
            (r"\z", "\\z"),
            (r"a\Bc", "\\B is not known"),
            (r"\x41", "\\x"),
            ("[[:alpha:]]", "write \\["),
            ("[]a]", "begins with ']'"),
            ("[a&&b]", "intersection"),
            ("a}", "lone '}'"),
            ("a**", "'*' has nothing before it"),
            ("a{2}{3}", "'{' has nothing before it"),
            ("^*", "'*' has nothing before it"),
            (r"\b+", "'+' has nothing before it"),
            ("a+??", "'?' has nothing before it"),
            (r"[\S]", "\\S inside"),
            (r"[a\d-z]", "range"),
        ] {
            let text = problem(pattern).unwrap_or_default();
            assert!(text.contains(expected), "{pattern}: {text}");
        }
    }

    #[test]
    fn javascript_is_told_what_rust_means() {
        assert_eq!(
            for_javascript(r"^.\.[.\s]\S\s$"),
            r"^[^\n]\.[.\t\n\v\f\r ][^\t\n\v\f\r ][\t\n\v\f\r ]$"
        );
        assert_eq!(for_javascript(r"[\].]\\."), r"[\].]\\[^\n]");
    }
}
