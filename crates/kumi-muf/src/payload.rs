//! Payloads: bytes, text or JSON, as the caller says. Nothing is added to them: what is sent is what REQ holds.

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Error;

/// Something that can be sent.
pub trait IntoPayload {
    /// The bytes that will stand in the key.
    fn into_payload(self) -> Result<Bytes, Error>;
}

/// Sends and answers a value as JSON.
///
/// ```
/// use kumi_muf::{IntoPayload, Json};
///
/// assert_eq!(Json([1, 2]).into_payload()?, "[1,2]");
/// # Ok::<(), kumi_muf::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Json<T>(pub T);

impl<T: Serialize> IntoPayload for Json<T> {
    fn into_payload(self) -> Result<Bytes, Error> {
        serde_json::to_vec(&self.0)
            .map(Bytes::from)
            .map_err(Error::Encode)
    }
}

macro_rules! bytes_are_payload {
    ($($kind:ty),*) => {$(
        impl IntoPayload for $kind {
            fn into_payload(self) -> Result<Bytes, Error> {
                Ok(Bytes::from(self))
            }
        }
    )*};
}

bytes_are_payload!(Bytes, Vec<u8>, String, &'static str, &'static [u8]);

impl IntoPayload for () {
    fn into_payload(self) -> Result<Bytes, Error> {
        Ok(Bytes::new())
    }
}

impl<const N: usize> IntoPayload for &'static [u8; N] {
    fn into_payload(self) -> Result<Bytes, Error> {
        Ok(Bytes::from_static(self))
    }
}

/// Bytes that came back, to be read as the caller wants them.
///
/// ```
/// let answer = kumi_muf::Answer::from(bytes::Bytes::from("[1,2]"));
/// assert_eq!(answer.text()?, "[1,2]");
/// assert_eq!(answer.json::<Vec<u8>>()?, [1, 2]);
/// # Ok::<(), kumi_muf::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer(Bytes);

impl Answer {
    /// As it is.
    pub fn bytes(&self) -> &Bytes {
        &self.0
    }

    /// As it is, without a copy.
    pub fn into_bytes(self) -> Bytes {
        self.0
    }

    /// As UTF-8 text.
    pub fn text(&self) -> Result<&str, Error> {
        std::str::from_utf8(&self.0).map_err(|_| self.is_not("UTF-8 text"))
    }

    /// As JSON.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_slice(&self.0).map_err(|_| self.is_not("the JSON that was asked for"))
    }

    fn is_not(&self, wanted: &'static str) -> Error {
        Error::Decode {
            wanted,
            payload: self.0.clone(),
        }
    }
}

impl From<Bytes> for Answer {
    fn from(bytes: Bytes) -> Self {
        Self(bytes)
    }
}
