//! Bytes in JSON: base64 with padding, as RFC 4648 has it. Used by fields as `#[serde(with = "...")]`.
//!
//! It also looks into options, arrays and maps of bytes. What is not base64 in its one canonical form is refused.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;

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
    STANDARD.encode(bytes)
}

/// Padding has to be there, and bits that stand for no byte have to be zero: each text has one form.
fn decode(text: &[u8]) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok()
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
