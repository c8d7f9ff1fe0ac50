//! What looks like a secret. A configuration file is read by people and kept with the source of programs, so it names files
//! that hold secrets instead. This is a guess for the usual forms, not a proof.

use std::ops::Range;

/// Words that a value behind an equals sign makes a secret.
const WORDS: [&str; 10] = [
    "password",
    "passwd",
    "passphrase",
    "pass",
    "pwd",
    "secret",
    "token",
    "api_key",
    "api-key",
    "apikey",
];

/// Words up to this length are also the ends of others.
const SHORT: usize = 4;

/// Whether a text holds a password in a URL, or `password=...`. What a shell expands, as in `--password=$DB_PASSWORD`, is
/// none.
pub(super) fn has_secret(text: &str) -> bool {
    !url_passwords(text).is_empty() || assigned(&text.to_lowercase())
}

/// Whether the value of a variable of this name is a secret. A name that ends in `_FILE` names a file.
pub(super) fn is_secret_name(name: &str) -> bool {
    let name = name.to_lowercase();
    let words = ["private_key", "access_key"].into_iter().chain(WORDS);
    words
        .filter_map(|word| name.strip_suffix(word).map(|before| (word, before)))
        .any(|(word, before)| word.len() > SHORT || before.is_empty() || before.ends_with('_'))
}

/// The bytes between `://` and the `@` of each URL that has a password.
fn url_passwords(text: &str) -> Vec<Range<usize>> {
    let (mut found_all, mut from) = (Vec::new(), 0);
    while let Some(found) = text[from..].find("://") {
        let start = from + found + 3;
        let is_redis = ["redis", "rediss"]
            .iter()
            .any(|scheme| text[..start - 3].ends_with(scheme));
        let is_end = |c: char| c.is_whitespace() || "\"'`".contains(c) || (c == '/' && !is_redis);
        let end = text[start..]
            .find(is_end)
            .map_or(text.len(), |at| start + at);
        if let Some((user, _)) = text[start..end].rsplit_once('@')
            && let Some((_, password)) = user.split_once(':')
            && !password.is_empty()
            && !password.starts_with('$')
        {
            found_all.push(start..start + user.len());
        }
        from = start;
    }
    found_all
}

/// The words that begin with `>` or `<`, as passwords of `user` do; one in quotes goes up to their end.
fn acl_passwords(text: &str) -> Vec<Range<usize>> {
    let signs = text.match_indices(['>', '<']);
    let words = signs.filter_map(|(at, _)| {
        let before = text[..at].chars().next_back();
        let quote = before.filter(|c| ['"', '\''].contains(c));
        if quote.is_none() && before.is_some_and(|c| !c.is_whitespace()) {
            return None;
        }
        let is_end = |c: char| match quote {
            Some(quote) => c == quote,
            None => c.is_whitespace() || "\"'".contains(c),
        };
        let end = text[at..].find(is_end).map_or(text.len(), |end| at + end);
        Some(at..end)
    });
    words.collect()
}

/// Whether a text in lower case gives one of the words a value: `word=value`, or `--word value`.
fn assigned(text: &str) -> bool {
    WORDS.iter().any(|word| {
        text.match_indices(word).any(|(at, _)| {
            let (before, rest) = (&text[..at], &text[at + word.len()..]);
            // `compass=north` is none.
            if word.len() <= SHORT && before.ends_with(|c: char| c.is_alphanumeric()) {
                return false;
            }
            let is_option = before
                .rsplit(char::is_whitespace)
                .next()
                .is_some_and(|option| option.starts_with("--"));
            let value = match rest.strip_prefix('=') {
                Some(value) => value,
                None if is_option && rest.starts_with(' ') => rest.trim_start(),
                None => return false,
            };
            let value = value.trim_start_matches(['"', '\'']);
            // A value that the shell puts in, a further option, or none.
            !value.is_empty() && !value.starts_with(['$', '`', '-', ' ', '&'])
        })
    })
}

/// A line of a file as an error may show it: with an asterisk for each character that may belong to a secret. It has as many
/// characters as before, so that a caret under it stays in its place.
pub(super) fn masked(line: &str) -> String {
    let lower = line.to_ascii_lowercase();
    let words = WORDS
        .into_iter()
        .chain(["requirepass", "masterauth", "user", "_key"]);
    let mut hidden = [url_passwords(line), acl_passwords(line)].concat();
    for word in words {
        for (at, _) in lower.match_indices(word) {
            let end = at + word.len();
            let rest = &lower[end..];
            let names_file = ["-file", "_file"]
                .iter()
                .any(|ending| rest.starts_with(ending));
            let continues = rest.starts_with(|c: char| c.is_ascii_alphanumeric());
            if !names_file && !continues {
                hidden.push(end..line.len());
            }
        }
    }
    let shown = line.char_indices().map(|(at, c)| {
        let is_hidden = hidden.iter().any(|range| range.contains(&at));
        match is_hidden && !c.is_whitespace() && !"=\"{};".contains(c) {
            true => '*',
            false => c,
        }
    });
    shown.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_of_urls_and_assignments_are_secrets() {
        for secret in [
            "redis://:sesame@host",
            "redis://ann:sesame@host/2",
            "redis://ann:a/b@host",
            "./api --db postgres://ann:sesame@host/db",
            "unix:///run/redis.sock?pass=sesame",
            "PASSWORD=sesame ./api",
            "./api --db-password=sesame",
            "./api --password sesame",
            "./api --api-key='sesame'",
            "curl https://host/?token=sesame",
        ] {
            assert!(has_secret(secret), "{secret}");
        }
        for plain in [
            "redis://host:6379/2",
            "redis://ann@host",
            "http://host:80/a@b",
            "./api --password=$DB_PASSWORD",
            "./api --password=\"$(cat key)\"",
            "./api --password-file=key",
            "./api --password --verbose",
            "./pass --token",
            "redis://:$PASSWORD@host",
            "compass=north",
            "",
        ] {
            assert!(!has_secret(plain), "{plain}");
        }
    }

    #[test]
    fn names_of_variables_tell_secrets() {
        for secret in [
            "DB_PASSWORD",
            "API_KEY",
            "AWS_SECRET",
            "GITHUB_TOKEN",
            "DB_PASS",
        ] {
            assert!(is_secret_name(secret), "{secret}");
        }
        for plain in [
            "PORT",
            "DB_PASSWORD_FILE",
            "TOKENS_PER_SECOND",
            "COMPASS",
            "KEY",
        ] {
            assert!(!is_secret_name(plain), "{plain}");
        }
    }

    #[test]
    fn a_masked_line_has_its_length_and_no_secret() {
        for line in [
            "store \"redis://ann:sesame@höst\" x=1",
            "    requirepass \"sesame\"; port 1",
            "run \"ä\" exec=\"./api --password sesame\"",
            "env API_KEY=\"sesame\"",
            "    user \"ann\" \"on\" \">sesame\" \"~*\" \"+@all\"",
            "    user ann #sesame",
            "    users \"ann\" \">open sesame\" \"on\"",
            "    acl ann >sesame <sesame on",
            "run \"a\" exec=\"./a redis://ann:sesame@h redis://bob:sesame@h http://b:sesame@h/x\"",
        ] {
            let masked = masked(line);
            assert!(!masked.contains("sesame"), "{masked}");
            assert_eq!(masked.chars().count(), line.chars().count(), "{masked}");
        }
        for line in [
            "node \"a\" { key-file \"x\" }",
            "http { token-file \"t\" }",
            "compassion \"x\"",
            "run \"a\" exec=\"./a redis://h:1 b->c\"",
        ] {
            assert_eq!(masked(line), line);
        }
    }
}
