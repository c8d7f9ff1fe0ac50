//! Bytes in JSON: base64 with padding, as RFC 4648 has it. Used by fields as `#[serde(with = "...")]`.
//!
//! It also looks into options, arrays and maps of bytes. What is not base64 in its one canonical form is refused.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Bytes, and what is made of bytes.
pub trait Base64: Sized {
    /// The same with texts for bytes.
    type Text: Serialize + for<'de> Deserialize<'de>;

    /// Bytes to text.
    fn to_text(&self) -> Self::Text;

    /// Text to bytes; nothing when it is not base64.
    fn from_text(text: Self::Text) -> Option<Self>;
}

/// Writes texts for bytes.
///
/// # Errors
/// What the serializer says.
pub fn serialize<T: Base64, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    value.to_text().serialize(serializer)
}

/// Reads texts as bytes.
///
/// # Errors
/// When a text is not base64.
pub fn deserialize<'de, T: Base64, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    T::from_text(T::Text::deserialize(deserializer)?)
        .ok_or_else(|| D::Error::custom("bytes are written as base64"))
}

impl Base64 for Vec<u8> {
    type Text = String;

    fn to_text(&self) -> String {
        encode(self)
    }

    fn from_text(text: String) -> Option<Self> {
        decode(text.as_bytes())
    }
}

impl<T: Base64> Base64 for Option<T> {
    type Text = Option<T::Text>;

    fn to_text(&self) -> Self::Text {
        self.as_ref().map(Base64::to_text)
    }

    fn from_text(text: Self::Text) -> Option<Self> {
        match text {
            Some(text) => T::from_text(text).map(Some),
            None => Some(None),
        }
    }
}

impl<T: Base64> Base64 for Vec<T> {
    type Text = Vec<T::Text>;

    fn to_text(&self) -> Self::Text {
        self.iter().map(Base64::to_text).collect()
    }

    fn from_text(text: Self::Text) -> Option<Self> {
        text.into_iter().map(T::from_text).collect()
    }
}

impl<T: Base64> Base64 for BTreeMap<String, T> {
    type Text = BTreeMap<String, T::Text>;

    fn to_text(&self) -> Self::Text {
        self.iter()
            .map(|(key, value)| (key.clone(), value.to_text()))
            .collect()
    }

    fn from_text(text: Self::Text) -> Option<Self> {
        text.into_iter()
            .map(|(key, value)| Some((key, T::from_text(value)?)))
            .collect()
    }
}

fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let group = chunk
            .iter()
            .fold(0u32, |group, &byte| group << 8 | u32::from(byte))
            << (8 * (3 - chunk.len()));
        for place in 0..4 {
            if place > chunk.len() {
                text.push('=');
            } else {
                let index = group >> (18 - 6 * place) & 63;
                text.push(char::from(ALPHABET[index as usize]));
            }
        }
    }
    text
}

fn decode(text: &[u8]) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let padding = text
        .iter()
        .rev()
        .take(2)
        .take_while(|&&byte| byte == b'=')
        .count();
    let digits = &text[..text.len() - padding];
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for chunk in digits.chunks(4) {
        let mut group = 0u32;
        for &byte in chunk {
            group = group << 6 | digit(byte)?;
        }
        let missing = 4 - chunk.len();
        group <<= 6 * missing;
        let [_, all @ ..] = group.to_be_bytes();
        let kept = 3 - missing;
        // Bits that stand for no byte are zero in the canonical form.
        if all[kept..].iter().any(|&byte| byte != 0) {
            return None;
        }
        bytes.extend_from_slice(&all[..kept]);
    }
    Some(bytes)
}

fn digit(byte: u8) -> Option<u32> {
    Some(u32::from(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn texts_are_those_of_the_standard() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
        ] {
            assert_eq!(encode(bytes.as_bytes()), text);
            assert_eq!(decode(text.as_bytes()).as_deref(), Some(bytes.as_bytes()));
        }
        for text in [
            "Z", "Zg", "Zg=", "Zh==", "Zm9=", "====", "Z===", "Zg==Zg==", "Zm9v\n", "Zm_v",
        ] {
            assert_eq!(decode(text.as_bytes()), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn bytes_come_back(bytes: Vec<u8>) {
            prop_assert_eq!(decode(encode(&bytes).as_bytes()), Some(bytes));
        }
    }
}
