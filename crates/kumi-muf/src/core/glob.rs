//! Globs over one name: `*` is any run of characters, `?` is one. Nothing else is special, so a glob that is taken
//! here means the same to a server.

use std::fmt;

use super::name::check_name;

/// A name with wildcards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Glob(String);

impl Glob {
    /// Takes `text` if it is a name once its wildcards are put aside.
    pub(crate) fn new(text: &str) -> Option<Self> {
        let rest = text.replace(['*', '?'], "x");
        check_name(&rest).is_ok().then(|| Self(text.to_owned()))
    }

    /// Any name.
    pub(crate) fn any() -> Self {
        Self("*".to_owned())
    }

    /// One name of the protocol's own.
    pub(crate) fn literal(name: &'static str) -> Self {
        Self(name.to_owned())
    }

    /// Whether all of `name` matches. Backtracks to the last star only, so it is quadratic at worst.
    pub(crate) fn matches(&self, name: &str) -> bool {
        let glob: Vec<char> = self.0.chars().collect();
        let name: Vec<char> = name.chars().collect();
        let (mut g, mut n) = (0, 0);
        let mut star = None;
        while n < name.len() {
            match glob.get(g) {
                Some('*') => {
                    star = Some((g, n));
                    g += 1;
                }
                Some(&c) if c == '?' || c == name[n] => {
                    g += 1;
                    n += 1;
                }
                _ => {
                    let Some((star_at, from)) = star else {
                        return false;
                    };
                    star = Some((star_at, from + 1));
                    (g, n) = (star_at + 1, from + 1);
                }
            }
        }
        glob[g..].iter().all(|&c| c == '*')
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_question_marks_match() {
        let check = |glob: &str, name: &str, expected: bool| {
            assert_eq!(
                Glob::new(glob).expect("a glob").matches(name),
                expected,
                "{glob} {name}"
            );
        };
        check("*", "", true);
        check("*", "abc", true);
        check("a*c", "abbc", true);
        check("a*c", "abcd", false);
        check("*b*b*", "abab", true);
        check("a?c", "aéc", true);
        check("a?c", "ac", false);
        check("abc", "abc", true);
        check("*bc", "abcbc", true);
    }

    #[test]
    fn what_a_server_would_read_otherwise_is_refused() {
        for wrong in ["", "[a]", "a/b", "a\\b", "a b"] {
            assert_eq!(Glob::new(wrong), None, "{wrong}");
        }
    }
}
