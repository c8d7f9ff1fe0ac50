//! The content of requests, answers and events, and the three ways to read it.

use std::num::NonZeroUsize;

use bytes::Bytes;
use rkyv::api::high::{HighDeserializer, HighSerializer, HighValidator};
use rkyv::bytecheck::CheckBytes;
use rkyv::rancor::Error as Rancor;
use rkyv::ser::allocator::ArenaHandle;
use rkyv::util::AlignedVec;
use rkyv::validation::Validator;
use rkyv::validation::archive::ArchiveValidator;
use rkyv::validation::shared::SharedValidator;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::NetworkError;
use crate::wire::ContentType;

/// How deep typed payloads may nest. Eight megabytes of nested boxes would overflow the stack of the check.
const MAX_TYPED_DEPTH: usize = 128;

/// Bytes and how to read them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payload {
    /// How to read `bytes`.
    pub content_type: ContentType,
    /// The content.
    pub bytes: Bytes,
}

impl Payload {
    /// A value as JSON.
    ///
    /// # Errors
    /// When serde cannot write it, such as a map whose keys are not text.
    pub fn json<T: Serialize + ?Sized>(value: &T) -> Result<Self, NetworkError> {
        let bytes =
            serde_json::to_vec(value).map_err(|error| NetworkError::Codec(error.to_string()))?;
        Ok(Self {
            content_type: ContentType::Json,
            bytes: bytes.into(),
        })
    }

    /// Bytes as they are.
    pub fn bytes(bytes: impl Into<Bytes>) -> Self {
        Self {
            content_type: ContentType::Bytes,
            bytes: bytes.into(),
        }
    }

    /// A value as an rkyv archive.
    ///
    /// # Errors
    /// When rkyv cannot write it.
    pub fn typed<T: TypedPayload>(value: &T) -> Result<Self, NetworkError> {
        Ok(Self {
            content_type: ContentType::Typed,
            bytes: value.encode()?,
        })
    }

    /// The content as a JSON value.
    ///
    /// # Errors
    /// When it is not JSON.
    pub fn to_value(&self) -> Result<Value, NetworkError> {
        self.to_json()
    }

    /// The content read from JSON.
    ///
    /// # Errors
    /// When it is not JSON, or not of this type.
    pub fn to_json<T: DeserializeOwned>(&self) -> Result<T, NetworkError> {
        self.expect(ContentType::Json)?;
        serde_json::from_slice(&self.bytes).map_err(|error| NetworkError::Codec(error.to_string()))
    }

    /// The content read from an rkyv archive.
    ///
    /// # Errors
    /// When it is not typed, or not a valid archive of this type.
    pub fn to_typed<T: TypedPayload>(&self) -> Result<T, NetworkError> {
        self.expect(ContentType::Typed)?;
        T::decode(&self.bytes)
    }

    fn expect(&self, wanted: ContentType) -> Result<(), NetworkError> {
        if self.content_type == wanted {
            return Ok(());
        }
        Err(NetworkError::Codec(format!(
            "content is {:?}, not {wanted:?}",
            self.content_type
        )))
    }
}

/// Types that travel as rkyv archives: every type with rkyv's three derives.
pub trait TypedPayload: Sized {
    /// The archive of this value.
    ///
    /// # Errors
    /// When rkyv cannot write it.
    fn encode(&self) -> Result<Bytes, NetworkError>;

    /// The value of an archive, which is checked first, its depth included.
    ///
    /// # Errors
    /// When it is not a valid archive of this type.
    fn decode(bytes: &Bytes) -> Result<Self, NetworkError>;
}

impl<T> TypedPayload for T
where
    T: rkyv::Archive + for<'a> rkyv::Serialize<HighSerializer<AlignedVec, ArenaHandle<'a>, Rancor>>,
    T::Archived: rkyv::Portable
        + for<'a> CheckBytes<HighValidator<'a, Rancor>>
        + rkyv::Deserialize<T, HighDeserializer<Rancor>>,
{
    fn encode(&self) -> Result<Bytes, NetworkError> {
        let archive = rkyv::to_bytes::<Rancor>(self)
            .map_err(|error| NetworkError::Codec(error.to_string()))?;
        Ok(Bytes::from_owner(archive))
    }

    fn decode(bytes: &Bytes) -> Result<Self, NetworkError> {
        let aligned;
        let archive: &[u8] = if bytes.as_ptr().align_offset(16) == 0 {
            bytes
        } else {
            let mut copy = AlignedVec::<16>::with_capacity(bytes.len());
            copy.extend_from_slice(bytes);
            aligned = copy;
            &aligned
        };
        let depth = NonZeroUsize::new(MAX_TYPED_DEPTH);
        let mut validator = Validator::new(
            ArchiveValidator::with_max_depth(archive, depth),
            SharedValidator::new(),
        );
        // rkyv's text has addresses of this process, which stay here.
        let invalid = |error: Rancor| {
            tracing::debug!(%error, "a typed payload is not valid");
            NetworkError::Codec("the typed payload is not a valid archive of its type".to_owned())
        };
        let archived =
            rkyv::api::access_with_context::<T::Archived, _, Rancor>(archive, &mut validator)
                .map_err(invalid)?;
        rkyv::deserialize::<T, Rancor>(archived).map_err(invalid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_the_same_after_a_trip_through_json() {
        let mut random = fastrand::Rng::with_seed(23);
        for _ in 0..2_000 {
            let float = random.f64() * 3.0 - 1.5;
            assert_eq!(
                Payload::json(&float).unwrap().to_json::<f64>().unwrap(),
                float
            );
        }
    }

    #[test]
    fn what_is_said_of_a_bad_archive_tells_no_addresses() {
        for len in 0..64 {
            let payload = Payload {
                content_type: ContentType::Typed,
                bytes: vec![1; len].into(),
            };
            let error = payload.to_typed::<Node>().unwrap_err().to_string();
            assert!(!error.contains("0x"), "{error}");
        }
    }

    #[derive(Debug, PartialEq, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
    #[rkyv(serialize_bounds(
        __S: rkyv::ser::Writer + rkyv::ser::Allocator,
        __S::Error: rkyv::rancor::Source,
    ))]
    #[rkyv(deserialize_bounds(__D::Error: rkyv::rancor::Source))]
    #[rkyv(bytecheck(bounds(
        __C: rkyv::validation::ArchiveContext,
        __C::Error: rkyv::rancor::Source,
    )))]
    struct Node {
        name: String,
        #[rkyv(omit_bounds)]
        next: Option<Box<Node>>,
    }

    fn chain(depth: usize) -> Node {
        let mut node = Node {
            name: "end".into(),
            next: None,
        };
        for _ in 1..depth {
            node = Node {
                name: "a name that is not inline".into(),
                next: Some(Box::new(node)),
            };
        }
        node
    }

    #[test]
    fn typed_values_survive_any_alignment() {
        let payload = Payload::typed(&chain(3)).unwrap();
        assert_eq!(payload.to_typed::<Node>().unwrap(), chain(3));
        for skip in 1..16 {
            let mut shifted = vec![0; skip];
            shifted.extend_from_slice(&payload.bytes);
            let bytes = Bytes::from(shifted).slice(skip..);
            let payload = Payload {
                content_type: ContentType::Typed,
                bytes,
            };
            assert_eq!(payload.to_typed::<Node>().unwrap(), chain(3));
        }
    }

    #[test]
    fn nesting_beyond_the_limit_is_an_error_and_no_overflow() {
        let payload = Payload::typed(&chain(4 * MAX_TYPED_DEPTH)).unwrap();
        assert!(matches!(
            payload.to_typed::<Node>(),
            Err(NetworkError::Codec(_))
        ));
    }

    #[test]
    fn content_of_another_kind_is_not_guessed_at() {
        let json = Payload::json(&[1, 2]).unwrap();
        assert_eq!(json.to_json::<Vec<u8>>().unwrap(), [1, 2]);
        assert!(json.to_typed::<String>().is_err());
        assert!(Payload::bytes(&b"[1]"[..]).to_value().is_err());
        let garbage = Payload {
            content_type: ContentType::Typed,
            bytes: Bytes::from_static(&[0xbf; 40]),
        };
        assert!(garbage.to_typed::<String>().is_err());
    }
}
