//! Which kept values a watcher sees, as it writes it and as a server globs it.

use crate::core::glob::Glob;
use crate::core::name::{NameError, is_reserved_keep};

/// Which kept values: `unit/name`, both with `*` and `?` as wildcards.
///
/// ```
/// use kumi_muf::core::KeepPattern;
///
/// let pattern: KeepPattern = "sensor-*/temperature".parse()?;
/// assert!(pattern.matches("sensor-3", "temperature"));
/// assert!(!pattern.matches("sensor-3", "_info"));
/// # Ok::<(), kumi_muf::core::NameError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeepPattern {
    unit: Glob,
    id: Glob,
    /// The protocol's own values are meant.
    reserved: bool,
}

impl KeepPattern {
    /// What all units say of themselves.
    pub(crate) fn of_infos() -> Self {
        Self {
            unit: Glob::any(),
            id: Glob::literal("_info"),
            reserved: true,
        }
    }

    /// Whether the protocol's own values are meant.
    pub(crate) fn is_reserved(&self) -> bool {
        self.reserved
    }

    /// Whether a value is shown.
    pub fn matches(&self, unit: &str, id: &str) -> bool {
        self.unit.matches(unit) && self.id.matches(id) && is_reserved_keep(id) == self.reserved
    }

    /// The glob for the server, over keys.
    pub fn key_glob(&self) -> String {
        format!("MUF/{}/KEEP/{}", self.unit, self.id)
    }
}

impl std::str::FromStr for KeepPattern {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let wrong = || NameError::NotWatchPattern(text.to_owned());
        let (unit, id) = text.split_once('/').ok_or_else(wrong)?;
        Ok(Self {
            unit: Glob::new(unit).ok_or_else(wrong)?,
            id: Glob::new(id).ok_or_else(wrong)?,
            reserved: false,
        })
    }
}
