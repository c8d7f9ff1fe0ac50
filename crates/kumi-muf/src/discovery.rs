//! Discovery: each unit describes itself at `KEEP/_info`, which expires three heartbeats after a crash.

use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::core::UnitName;

/// A unit's description of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Info {
    /// Its name.
    #[serde(default)]
    pub unit: String,
    /// The patterns it serves.
    #[serde(default)]
    pub services: Vec<String>,
    /// What it calls its version.
    #[serde(default)]
    pub version: String,
    /// When it connected, in seconds since 1970.
    #[serde(default)]
    pub since: u64,
    /// Which process of that name this is, as it stands in its claims.
    #[serde(default)]
    pub instance: String,
    /// How long the entry lives after each refresh, in milliseconds: three heartbeats. 0 if the unit does not state it.
    #[serde(default)]
    pub ttl_ms: u64,
}

impl Info {
    pub(crate) fn of(unit: &UnitName, version: &str) -> Self {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_secs());
        Self {
            unit: unit.as_str().to_owned(),
            services: Vec::new(),
            version: version.to_owned(),
            since,
            instance: String::new(),
            ttl_ms: 0,
        }
    }

    pub(crate) fn to_json(&self) -> Bytes {
        serde_json::to_vec(self).unwrap_or_default().into()
    }

    /// Reads what a unit wrote. The name comes from the key, whatever the value says.
    pub(crate) fn read(unit: &str, value: &[u8]) -> Option<Self> {
        let mut info: Self = serde_json::from_slice(value).ok()?;
        info.unit = unit.to_owned();
        Some(info)
    }
}
