//! Why a member is quarantined, as text that is safe to show and to log.

use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;

/// The longest text of a reason, in bytes after escaping.
pub const MAX_REASON_BYTES: usize = 128;

/// Why a member is quarantined. Text from outside is escaped and cut to a limit before it gets here.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum QuarantineReason {
    /// A quorum of monitors received nothing from that uid, and it was declared dead.
    Unreachable,
    /// An operator has quarantined the authority, for this reason.
    Operator(ReasonText),
}

impl fmt::Display for QuarantineReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable => f.write_str("unreachable"),
            Self::Operator(text) if text.as_str().is_empty() => f.write_str("by an operator"),
            Self::Operator(text) => write!(f, "by an operator ({text})"),
        }
    }
}

/// Text that is safe to show: printable ASCII, at most [`MAX_REASON_BYTES`].
///
/// ```
/// use kumi_cluster::core::ReasonText;
///
/// assert_eq!(ReasonText::escaped("disk\n\u{1b}[31m").as_str(), "disk\\n\\u{1b}[31m");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReasonText(Option<Arc<str>>);

impl ReasonText {
    /// Escapes whatever could not be shown, and cuts the rest off at a character.
    pub fn escaped(raw: &str) -> Self {
        let mut text = String::new();
        for character in raw.chars() {
            let plain = character == ' ' || character.is_ascii_graphic() && character != '\\';
            let len = if plain {
                1
            } else {
                character.escape_default().len()
            };
            if text.len() + len > MAX_REASON_BYTES {
                break;
            }
            if plain {
                text.push(character);
            } else {
                text.extend(character.escape_default());
            }
        }
        Self((!text.is_empty()).then(|| text.into()))
    }

    /// Takes text that came over the wire only if it was escaped properly.
    pub(crate) fn from_wire(text: &str) -> Option<Self> {
        let shown = text
            .bytes()
            .all(|byte| byte == b' ' || byte.is_ascii_graphic());
        if !shown || text.len() > MAX_REASON_BYTES {
            return None;
        }
        Some(Self((!text.is_empty()).then(|| text.into())))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }
}

impl fmt::Display for ReasonText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
