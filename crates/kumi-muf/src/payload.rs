//! Payloads: bytes, text or JSON. Nothing is added to them: REQ holds exactly these bytes.

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Error;

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

bytes_are_payload!(Bytes, Vec<u8>, String);

/// A borrowed payload is copied.
impl IntoPayload for &str {
    fn into_payload(self) -> Result<Bytes, Error> {
        Ok(Bytes::copy_from_slice(self.as_bytes()))
    }
}

/// A borrowed payload is copied.
impl IntoPayload for &[u8] {
    fn into_payload(self) -> Result<Bytes, Error> {
        Ok(Bytes::copy_from_slice(self))
    }
}

impl IntoPayload for &String {
    fn into_payload(self) -> Result<Bytes, Error> {
        self.as_str().into_payload()
    }
}

impl IntoPayload for &Vec<u8> {
    fn into_payload(self) -> Result<Bytes, Error> {
        self.as_slice().into_payload()
    }
}

impl IntoPayload for &Bytes {
    fn into_payload(self) -> Result<Bytes, Error> {
        Ok(self.clone())
    }
}

impl IntoPayload for Answer {
    fn into_payload(self) -> Result<Bytes, Error> {
        Ok(self.0)
    }
}

impl IntoPayload for () {
    fn into_payload(self) -> Result<Bytes, Error> {
        Ok(Bytes::new())
    }
}

impl<const N: usize> IntoPayload for &[u8; N] {
    fn into_payload(self) -> Result<Bytes, Error> {
        self.as_slice().into_payload()
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
        as_text("answer", &self.0)
    }

    /// As JSON.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        as_json("answer", &self.0)
    }
}

/// `payload`, which is a `what`, as text.
pub(crate) fn as_text<'a>(what: &'static str, payload: &'a Bytes) -> Result<&'a str, Error> {
    std::str::from_utf8(payload).map_err(|error| Error::Decode {
        what,
        wanted: "UTF-8 text",
        reason: error.to_string(),
        payload: payload.clone(),
    })
}

/// `payload`, which is a `what`, as JSON.
pub(crate) fn as_json<T: DeserializeOwned>(
    what: &'static str,
    payload: &Bytes,
) -> Result<T, Error> {
    serde_json::from_slice(payload).map_err(|error| Error::Decode {
        what,
        wanted: "the JSON that was expected",
        reason: error.to_string(),
        payload: payload.clone(),
    })
}

impl From<Bytes> for Answer {
    fn from(bytes: Bytes) -> Self {
        Self(bytes)
    }
}
