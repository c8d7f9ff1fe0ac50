//! Regular expressions that mean the same in Rust and in TypeScript.
//!
//! Only what both have is let through: classes, groups, alternatives, anchors and repetitions. Flags, look-around,
//! back-references, named groups and POSIX classes are refused, because one of the two lacks them or reads them
//! differently. What remains takes time in proportion to the text in Rust; JavaScript makes no such promise.

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
    while at < characters.len() {
        let next = characters.get(at + 1).copied();
        match characters[at] {
            '\\' => {
                let known = next.is_some_and(|next| {
                    matches!(
                        next,
                        'd' | 'D' | 'w' | 'W' | 's' | 'S' | 'n' | 'r' | 't' | 'f' | 'v'
                    ) || "^$\\.*+?()[]{}|/".contains(next)
                        || (matches!(next, 'b' | 'B') && !in_class)
                        || (next == '-' && in_class)
                });
                if !known {
                    let text: String = characters[at..].iter().take(2).collect();
                    return Err(format!("{text} is not known in every language"));
                }
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
            _ if in_class => {}
            '(' if next == Some('?') && characters.get(at + 2) != Some(&':') => {
                return Err(
                    "of the groups that begin with (? only (?:...) is known in every language"
                        .into(),
                );
            }
            '{' => at = repetition(&characters, at)?,
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
            (r"\x41", "\\x"),
            ("[[:alpha:]]", "write \\["),
            ("[]a]", "begins with ']'"),
            ("[a&&b]", "intersection"),
            ("a}", "lone '}'"),
        ] {
            let text = problem(pattern).unwrap_or_default();
            assert!(text.contains(expected), "{pattern}: {text}");
        }
    }
}
