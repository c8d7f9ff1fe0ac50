//! Bytes that need not be text, as JSON and on a line for people.

use crate::command_line::terminal;
use base64::prelude::{BASE64_STANDARD, Engine};
use serde_json::{Map, Value};

/// Puts bytes into a JSON object: as they are if they are text, in Base64 under another name if not.
pub(super) fn put(object: &mut Map<String, Value>, name: &str, bytes: &[u8]) {
    match std::str::from_utf8(bytes) {
        Ok(text) => object.insert(name.into(), text.into()),
        Err(_) => object.insert(
            format!("{name}_base64"),
            BASE64_STANDARD.encode(bytes).into(),
        ),
    };
}

/// Bytes on one line of a terminal: nothing in them moves the cursor.
pub(super) fn quoted(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => terminal::quoted(text),
        Err(_) => bytes.escape_ascii().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_quoted_moves_the_cursor() {
        assert_eq!(quoted(b"caf\xc3\xa9 \"x\""), "café \"x\"");
        assert_eq!(quoted(b"a\nb\x1b[2J"), "a\\nb\\u{1b}[2J");
        assert_eq!(quoted(b"\xff\n"), "\\xff\\n");
    }

    #[test]
    fn bytes_that_are_no_text_are_base64() {
        let mut object = Map::new();
        put(&mut object, "payload", b"hi");
        put(&mut object, "value", b"\xff");
        assert_eq!(
            Value::from(object).to_string(),
            r#"{"payload":"hi","value_base64":"/w=="}"#
        );
    }
}
