//! The types of a schema that Rust has no plain type for.

use crate::validation::{Checked, Valid};
use rkyv::rancor::{Fallible, Source};
use rkyv::ser::Writer;
use rkyv::string::{ArchivedString, StringResolver};
use rkyv::{Archive, Deserialize, Place, Serialize, SerializeUnsized};
use serde_json::Value;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A point in time: milliseconds since 1970-01-01 UTC, which is also what travels.
///
/// ```
/// use kumi_unison::Timestamp;
/// use std::time::{Duration, UNIX_EPOCH};
///
/// let second = Timestamp::from(UNIX_EPOCH + Duration::from_secs(1));
/// assert_eq!(second, Timestamp(1_000));
/// assert_eq!(second.to_system_time(), Some(UNIX_EPOCH + Duration::from_secs(1)));
/// ```
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    serde::Serialize,
    serde::Deserialize,
    Archive,
    Serialize,
    Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Now, by the system's clock.
    pub fn now() -> Self {
        SystemTime::now().into()
    }

    /// The same point in time, or nothing if the system's clock cannot express it.
    pub fn to_system_time(self) -> Option<SystemTime> {
        let distance = Duration::from_millis(self.0.unsigned_abs());
        if self.0 < 0 {
            UNIX_EPOCH.checked_sub(distance)
        } else {
            UNIX_EPOCH.checked_add(distance)
        }
    }
}

/// Rounds down to the millisecond; what 64 bits cannot hold becomes the nearest that they can.
impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        let millis = |duration: Duration| i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        Self(match time.duration_since(UNIX_EPOCH) {
            Ok(after) => millis(after),
            Err(before) => -millis(
                before
                    .duration()
                    .saturating_add(Duration::from_nanos(999_999)),
            ),
        })
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms", self.0)
    }
}

/// Any JSON value. In the binary format it is its text.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Json(pub Value);

impl From<Value> for Json {
    fn from(value: Value) -> Self {
        Self(value)
    }
}

impl Deref for Json {
    type Target = Value;
    fn deref(&self) -> &Value {
        &self.0
    }
}

impl DerefMut for Json {
    fn deref_mut(&mut self) -> &mut Value {
        &mut self.0
    }
}

impl Valid for Timestamp {
    fn valid(&self) -> Checked {
        Ok(())
    }
}

impl Valid for Json {
    fn valid(&self) -> Checked {
        Ok(())
    }
}

impl Archive for Json {
    type Archived = ArchivedString;
    type Resolver = StringResolver;

    fn resolve(&self, resolver: StringResolver, out: Place<ArchivedString>) {
        // The same text as in `serialize`: a value prints the same each time.
        ArchivedString::resolve_from_str(&self.0.to_string(), resolver, out);
    }
}

impl<S: Fallible + Writer + ?Sized> Serialize<S> for Json
where
    S::Error: Source,
    str: SerializeUnsized<S>,
{
    fn serialize(&self, serializer: &mut S) -> Result<StringResolver, S::Error> {
        ArchivedString::serialize_from_str(&self.0.to_string(), serializer)
    }
}

impl<D: Fallible + ?Sized> Deserialize<Json, D> for ArchivedString
where
    D::Error: Source,
{
    fn deserialize(&self, _: &mut D) -> Result<Json, D::Error> {
        serde_json::from_str(self.as_str())
            .map(Json)
            .map_err(D::Error::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::Payload;
    use serde_json::json;

    #[test]
    fn times_before_1970_round_down() {
        let early = UNIX_EPOCH - Duration::from_micros(1_500);
        assert_eq!(Timestamp::from(early), Timestamp(-2));
        assert_eq!(
            Timestamp(-2).to_system_time(),
            Some(UNIX_EPOCH - Duration::from_millis(2))
        );
        let _ = Timestamp(i64::MIN).to_system_time();
    }

    #[test]
    fn json_survives_both_formats() {
        for value in [
            json!(null),
            json!("x"),
            json!({ "a": [1, 2.5, { "b": "a longer text than fits inline" }] }),
        ] {
            let json = Json(value.clone());
            assert_eq!(Payload::json(&json).unwrap().to_value().unwrap(), value);
            let typed = Payload::typed(&vec![json.clone(), json]).unwrap();
            assert_eq!(
                typed.to_typed::<Vec<Json>>().unwrap(),
                [Json(value.clone()), Json(value)]
            );
        }
    }

    #[test]
    fn text_that_is_no_json_is_refused() {
        let typed = Payload::typed(&"{ nonsense, but an archived text".to_owned()).unwrap();
        assert!(typed.to_typed::<Json>().is_err());
    }
}
