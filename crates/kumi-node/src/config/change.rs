//! What differs between two configurations, and what of it a running node can take over.

use super::NodeConfig;
use super::settings::{Reload, SETTINGS, Section};
use super::write::{Entry, entries};
use kumi_store::config::{Mutability, TABLE};
use std::collections::BTreeMap;
use std::fmt;

/// Directives that CONFIG SET may change and a node may not: others know the port by it.
const FIXED_DIRECTIVES: [&str; 2] = ["port", "tls-port"];

/// The differences between two configurations: in each list what is removed first, then what is changed, then what is
/// added, so that an entry is gone before the one that takes its place is there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Changes {
    /// What can be applied while the node runs.
    pub live: Vec<Change>,
    /// What needs a restart.
    pub restart: Vec<Change>,
}

impl Changes {
    /// Whether nothing differs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.live.is_empty() && self.restart.is_empty()
    }
}

/// One difference. Values are not in it: they may be secrets, and are in the two configurations.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Change {
    /// The section.
    pub section: Section,
    /// The setting or directive within it; of work, serve, run and cron, which entry.
    pub name: String,
    /// What happened to it.
    pub kind: ChangeKind,
}

/// What happened to a value or an entry, in the order in which changes are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ChangeKind {
    /// It is gone.
    Removed,
    /// It is another one.
    Changed,
    /// It is new.
    Added,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            ChangeKind::Added => "added",
            ChangeKind::Removed => "removed",
            ChangeKind::Changed => "changed",
        };
        write!(f, "{} {}: {kind}", self.section, self.name)
    }
}

/// Compares the configurations with their defaults, so that writing a default down is no change.
pub(super) fn between(from: &NodeConfig, to: &NodeConfig) -> Changes {
    let by_key = |config: &NodeConfig| -> BTreeMap<(Section, String), String> {
        let entries = entries(&config.clone().with_defaults());
        let keyed = |entry: Entry| ((entry.section, entry.key), entry.text);
        entries.into_iter().map(keyed).collect()
    };
    let (from, mut to) = (by_key(from), by_key(to));
    let mut all = Vec::new();
    for (key, text) in from {
        match to.remove(&key) {
            None => all.push((key, ChangeKind::Removed)),
            Some(other) if other != text => all.push((key, ChangeKind::Changed)),
            Some(_) => {}
        }
    }
    all.extend(to.into_keys().map(|key| (key, ChangeKind::Added)));
    all.sort_by(|(a, kind_a), (b, kind_b)| (kind_a, a).cmp(&(kind_b, b)));
    let is_other_store = all
        .iter()
        .any(|((section, name), _)| *section == Section::Store && name == "URL");
    let mut changes = Changes::default();
    for ((section, name), kind) in all {
        let reload = match reload(section, &name) {
            // A directive belongs to the store that is not there yet, or no more.
            _ if section == Section::Store && is_other_store => Reload::Restart,
            // What holds without it may be in redis.conf, or be the node's choice: a start finds it out.
            _ if section == Section::Store && kind == ChangeKind::Removed => Reload::Restart,
            reload => reload,
        };
        let list = match reload {
            Reload::Live => &mut changes.live,
            Reload::Restart => &mut changes.restart,
        };
        list.push(Change {
            section,
            name,
            kind,
        });
    }
    changes
}

fn reload(section: Section, name: &str) -> Reload {
    let of_section = || SETTINGS.iter().filter(|setting| setting.section == section);
    match section {
        Section::Node | Section::Store | Section::Http => {
            let found = of_section().find(|setting| setting.name == name);
            found.map_or_else(|| directive_reload(name), |setting| setting.reload)
        }
        // An entry is stopped and started as a whole.
        _ => match of_section().all(|setting| setting.reload == Reload::Live) {
            true => Reload::Live,
            false => Reload::Restart,
        },
    }
}

fn directive_reload(name: &str) -> Reload {
    let row = TABLE.iter().find(|row| row.name == name);
    match row.map(|row| row.mutability) {
        Some(Mutability::Modifiable) if !FIXED_DIRECTIVES.contains(&name) => Reload::Live,
        _ => Reload::Restart,
    }
}
