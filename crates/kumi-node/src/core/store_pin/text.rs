//! A pin as text: the file in the state directory, and what a member announces.
//!
//! ```text
//! file                          announcement
//!     kumi store pin 1              1 0 a~62f3f95a00000155 8c3d...
//!     count 0
//!     by a~62f3f95a00000155
//!     id 8c3d...
//!     clusters 00000000000000c1
//! ```
//! The file names the cluster, because a state directory may be used by a node of another cluster later. A cluster has two
//! ids while its key is replaced.

use super::{MAX_COUNT, Pin, StoreId};
use kumi_common::NameAndLife;
use kumi_jobs::ClusterId;

/// The version of both forms. A reader does not take a later one.
pub const PIN_FORMAT: u32 = 1;

/// The largest file that is read, in bytes.
const MAX_FILE_BYTES: usize = 4_096;

const HEADING: &str = "kumi store pin ";

/// A text that is no pin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PinTextError {
    /// A later version of kumi wrote it.
    #[error(
        "format {0} of a store pin is later than this version of kumi knows (up to {PIN_FORMAT})"
    )]
    Newer(u32),
    /// It was damaged, or is another file.
    #[error("this is no store pin: {0}")]
    Malformed(&'static str),
}

impl Pin {
    /// The file in the state directory of a node of the cluster with these ids.
    #[must_use]
    pub fn to_file(&self, clusters: &[ClusterId]) -> String {
        let Self { count, by, id } = self;
        let clusters: Vec<String> = clusters.iter().map(ToString::to_string).collect();
        let clusters = clusters.join(" ");
        format!("{HEADING}{PIN_FORMAT}\ncount {count}\nby {by}\nid {id}\nclusters {clusters}\n")
    }

    /// Reads the file in the state directory of a node of the cluster with these ids; none if the pin is of another cluster.
    ///
    /// # Errors
    /// If a later version wrote it, or it is no such file.
    pub fn from_file(text: &str, clusters: &[ClusterId]) -> Result<Option<Self>, PinTextError> {
        if text.len() > MAX_FILE_BYTES {
            return Err(PinTextError::Malformed("it is too large"));
        }
        let mut lines = text.lines();
        let heading = lines.next().and_then(|line| line.strip_prefix(HEADING));
        let heading = heading.ok_or(PinTextError::Malformed("its first line is another one"))?;
        check_format(heading)?;
        let mut field = |name: &str, missing: &'static str| {
            let line = lines.next().and_then(|line| line.strip_prefix(name));
            line.and_then(|line| line.strip_prefix(' '))
                .ok_or(PinTextError::Malformed(missing))
        };
        let count = field("count", "no count in its second line")?;
        let by = field("by", "no node in its third line")?;
        let id = field("id", "no id in its fourth line")?;
        let written = field("clusters", "no clusters in its fifth line")?;
        let written: Result<Vec<ClusterId>, _> = written.split(' ').map(str::parse).collect();
        let written = written.map_err(|_| PinTextError::Malformed("its clusters are no ids"))?;
        let pin = pin(count, by, id)?;
        let is_ours = written.iter().any(|id| clusters.contains(id));
        Ok(is_ours.then_some(pin))
    }

    /// What a member announces.
    #[must_use]
    pub fn to_announcement(&self) -> String {
        let Self { count, by, id } = self;
        format!("{PIN_FORMAT} {count} {by} {id}")
    }

    /// Reads what a member announces.
    ///
    /// # Errors
    /// If a later version wrote it, or it is no pin. The caller leaves such a member out.
    pub fn from_announcement(text: &str) -> Result<Self, PinTextError> {
        let mut words = text.splitn(4, ' ');
        let mut word = || {
            words
                .next()
                .ok_or(PinTextError::Malformed("it has too few words"))
        };
        check_format(word()?)?;
        let (count, by) = (word()?, word()?);
        pin(count, by, word()?)
    }
}

fn check_format(text: &str) -> Result<(), PinTextError> {
    match text.parse() {
        Ok(PIN_FORMAT) => Ok(()),
        Ok(newer) if newer > PIN_FORMAT => Err(PinTextError::Newer(newer)),
        _ => Err(PinTextError::Malformed("its format is no number from 1 on")),
    }
}

fn pin(count: &str, by: &str, id: &str) -> Result<Pin, PinTextError> {
    let count = count.parse::<u64>();
    if count.as_ref().is_ok_and(|count| *count > MAX_COUNT) {
        // No later decision could be numbered above it.
        return Err(PinTextError::Malformed("its count is the highest there is"));
    }
    let by = by.parse::<NameAndLife>();
    let id = id.parse::<StoreId>();
    Ok(Pin {
        count: count.map_err(|_| PinTextError::Malformed("its count is no number"))?,
        by: by.map_err(|_| PinTextError::Malformed("its node is no name~life"))?,
        id: id.map_err(|_| PinTextError::Malformed("its id is none of a store"))?,
    })
}
