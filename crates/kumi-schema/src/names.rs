//! Names: which are allowed, and what becomes of them in Rust and TypeScript.
//!
//! A name travels exactly as it was written. Only the code that is generated changes its case, so two names that
//! differ on the wire may meet in code; the checks refuse that.

use crate::limits::MAX_NAME_BYTES;

/// Words of Rust that a raw identifier makes usable.
const RUST_KEYWORDS: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "do", "dyn",
    "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let",
    "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return",
    "static", "struct", "trait", "true", "try", "type", "typeof", "unsafe", "unsized", "use",
    "virtual", "where", "while", "yield",
];

/// Words of Rust that nothing makes usable as a name.
const RUST_FORBIDDEN: &[&str] = &["self", "super", "crate", "_"];

/// Types that generated code relies on. A message of that name would take their place.
const RESERVED_TYPES: &[&str] = &[
    "AsyncIterableIterator",
    "Box",
    "Default",
    "Err",
    "IteratorResult",
    "None",
    "Ok",
    "Option",
    "Promise",
    "Self",
    "Some",
    "String",
    "Vec",
];

/// What a person has to know about a name that cannot be used, or nothing.
pub(crate) fn problem(name: &str) -> Option<String> {
    if name.is_empty() {
        return Some("a name cannot be empty".into());
    }
    if name.len() > MAX_NAME_BYTES {
        return Some(format!("a name has at most {MAX_NAME_BYTES} bytes"));
    }
    if !name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') {
        return Some("a name begins with a letter from a to z, small or capital".into());
    }
    let allowed =
        |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-' | '.');
    if let Some(character) = name.chars().find(|&character| !allowed(character)) {
        return Some(format!(
            "a name consists of the letters a to z, digits, '_', '-' and '.', so {character:?} cannot be part of it"
        ));
    }
    if !name.contains(|character: char| character.is_ascii_alphabetic()) {
        return Some("a name has a letter in it".into());
    }
    if name.starts_with("__") {
        return Some("names that begin with '__' belong to the transport".into());
    }
    None
}

/// Why a type cannot have this name, or nothing.
pub(crate) fn type_problem(name: &str) -> Option<String> {
    let pascal = pascal_case(name);
    RESERVED_TYPES
        .contains(&&*pascal)
        .then(|| format!("the name {pascal:?} is taken by generated code"))
}

/// The parts of a name: between `_`, `-` and `.`, and where small letters give way to capitals.
fn words(name: &str) -> Vec<String> {
    let characters: Vec<char> = name.chars().collect();
    let mut words = Vec::new();
    let mut word = String::new();
    for (index, &character) in characters.iter().enumerate() {
        if matches!(character, '_' | '-' | '.') {
            words.push(std::mem::take(&mut word));
            continue;
        }
        let before = index.checked_sub(1).map(|before| characters[before]);
        let after = characters.get(index + 1);
        let begins = character.is_ascii_uppercase()
            && (before
                .is_some_and(|before| before.is_ascii_lowercase() || before.is_ascii_digit())
                || (before.is_some_and(|before| before.is_ascii_uppercase())
                    && after.is_some_and(|after| after.is_ascii_lowercase())));
        if begins {
            words.push(std::mem::take(&mut word));
        }
        word.push(character.to_ascii_lowercase());
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

/// `RoomName`
pub(crate) fn pascal_case(name: &str) -> String {
    words(name).iter().map(|word| capital(word)).collect()
}

/// `room_name`
pub(crate) fn snake_case(name: &str) -> String {
    words(name).join("_")
}

/// `ROOM_NAME`
pub(crate) fn shouting_case(name: &str) -> String {
    snake_case(name).to_ascii_uppercase()
}

/// `roomName`
pub(crate) fn camel_case(name: &str) -> String {
    let words = words(name);
    let rest = words.iter().skip(1).map(|word| capital(word));
    words.iter().take(1).cloned().chain(rest).collect()
}

fn capital(word: &str) -> String {
    let mut characters = word.chars();
    let first = characters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(characters).collect()
}

/// A name for a field, a function or a module of Rust.
pub(crate) fn rust_identifier(name: &str) -> String {
    let snake = snake_case(name);
    if RUST_FORBIDDEN.contains(&&*snake) {
        format!("{snake}_")
    } else if RUST_KEYWORDS.contains(&&*snake) {
        format!("r#{snake}")
    } else if snake.starts_with(|first: char| first.is_ascii_digit()) {
        format!("_{snake}")
    } else {
        snake
    }
}

/// A name for a type or a variant of Rust, or a type of TypeScript.
pub(crate) fn type_identifier(name: &str) -> String {
    let pascal = pascal_case(name);
    if pascal == "Self" {
        "Self_".into()
    } else if pascal.starts_with(|first: char| first.is_ascii_digit()) {
        format!("_{pascal}")
    } else {
        pascal
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_change_their_case() {
        let check = |name: &str, pascal: &str, snake: &str, camel: &str| {
            assert_eq!(
                (&*pascal_case(name), &*snake_case(name), &*camel_case(name)),
                (pascal, snake, camel)
            );
        };
        check("chat", "Chat", "chat", "chat");
        check("room-service", "RoomService", "room_service", "roomService");
        check("RoomName", "RoomName", "room_name", "roomName");
        check("createUser", "CreateUser", "create_user", "createUser");
        check(
            "HTTPServer2Go",
            "HttpServer2Go",
            "http_server2_go",
            "httpServer2Go",
        );
        check("user_id", "UserId", "user_id", "userId");
        check("a.b_c-d", "ABCD", "a_b_c_d", "aBCD");
        check("_private", "Private", "private", "private");
    }

    #[test]
    fn words_of_the_languages_become_usable() {
        assert_eq!(rust_identifier("type"), "r#type");
        assert_eq!(rust_identifier("self"), "self_");
        assert_eq!(rust_identifier("Match"), "r#match");
        assert_eq!(rust_identifier("_2fa"), "_2fa");
        assert_eq!(type_identifier("self"), "Self_");
        assert_eq!(type_identifier("_2fa"), "_2fa");
    }

    #[test]
    fn unusable_names_say_why() {
        let check = |name: &str, expected: &str| {
            let text = problem(name).unwrap_or_default();
            assert!(text.contains(expected), "{name}: {text}");
        };
        check("", "empty");
        check("1st", "begins with a letter");
        check("a b", "' '");
        check("naïve", "'ï'");
        check("__channel", "transport");
        check("_", "letter in it");
        check(&"x".repeat(129), "128 bytes");
        assert_eq!(problem("room-service.v1_x"), None);
        assert!(type_problem("option").is_some() && type_problem("Options").is_none());
    }
}
