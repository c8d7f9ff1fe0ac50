//! Errors of handlers with a code: a code, a message and optional details, as JSON in ERR.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An error with a code. A handler returns it; a caller gets it back from [`crate::Error::fault`].
///
/// ERR holds it as JSON, `{"code":"not_found","message":"no such picture"}`, with `details` if there are some.
///
/// ```
/// use kumi_muf::{Error, Fault};
///
/// let fault = Fault::new("not_found", "no such picture");
/// let error = Error::Remote(fault.to_string().into());
/// assert_eq!(error.fault().expect("a fault").code, "not_found");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Fault {
    /// What callers decide by. It is theirs and the backend's to agree on.
    pub code: String,
    /// What people read.
    #[serde(default)]
    pub message: String,
    /// Anything else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
}

impl Fault {
    /// A code and a message.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            message: message.into(),
            details: None,
        }
    }

    /// With anything else that callers should know.
    pub fn with_details(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }

    /// Reads what ERR holds; none if it is not a fault.
    pub fn read(payload: &[u8]) -> Option<Self> {
        serde_json::from_slice(payload).ok()
    }
}

/// The JSON that ERR holds, so that a handler's `Err(fault)` needs nothing else.
impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| std::fmt::Error)?)
    }
}

impl std::error::Error for Fault {}
