//! One store per cluster, known by the id of its data set.
//!
//! The first store that a cluster sees is pinned: each node keeps its id in its state directory and announces it. A
//! store with another id is not used and is shown as a fault, until a person decides with `kumi store use ID`. Such a
//! decision is made on one node and reaches the others with the announcements of the members. It carries a number one
//! above the highest that its node has seen; the decision that sorts last wins, everywhere. First pins do not
//! overrule each other: nodes that pinned different stores, because two were started at once, wait for a person.

#[cfg(test)]
mod tests;
mod text;

pub use text::{PIN_FORMAT, PinTextError};

use kumi_common::NameAndLife;
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The longest id of a data set, in bytes. `store-ID.kumi` has to fit into a certificate as a host name.
pub const MAX_STORE_ID_BYTES: usize = 40;

/// The highest number of a decision. A member that announces a higher one is left out.
const MAX_COUNT: u64 = u64::MAX - 1;

/// Live stores that are looked at; further ones are left out.
pub const MAX_STORES: usize = 32;

/// The id of a data set, which backups and replicas of it keep: 1 to 40 lower-case letters and digits.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StoreId(Arc<str>);

impl StoreId {
    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for StoreId {
    type Err = InvalidStoreId;

    fn from_str(text: &str) -> Result<Self, InvalidStoreId> {
        let is_letter = |byte: u8| byte.is_ascii_digit() || byte.is_ascii_lowercase();
        let fits = (1..=MAX_STORE_ID_BYTES).contains(&text.len()) && text.bytes().all(is_letter);
        fits.then(|| Self(text.into())).ok_or(InvalidStoreId)
    }
}

impl fmt::Display for StoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for StoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A text that is no id of a data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the id of a store is 1 to 40 lower-case letters and digits")]
pub struct InvalidStoreId;

/// Which store a cluster uses, and how that was decided.
///
/// Pins of one cluster sort by [`count`](Self::count), then by who decided. A count of zero is the first pin, which nobody
/// decided.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pin {
    /// How many decisions were made before this one and by it; zero for the first store that was seen.
    pub count: u64,
    /// The node that decided or saw it first.
    pub by: NameAndLife,
    /// The store.
    pub id: StoreId,
}

/// A live store, as its node announces it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LiveStore {
    /// Its data set.
    pub id: StoreId,
    /// Its node.
    pub node: NameAndLife,
    /// Where it listens.
    pub address: String,
}

/// What is wrong with the stores of a cluster. All of it is red, and is ended by a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreFault {
    /// A store with another id than the pinned one is live. It is not used.
    Other {
        /// The id that the cluster pinned.
        pinned: StoreId,
        /// The other store.
        found: LiveStore,
    },
    /// Two primaries of one data set are live.
    TwoPrimaries {
        /// The data set.
        id: StoreId,
        /// Their nodes, sorted.
        nodes: Vec<NameAndLife>,
    },
    /// A member pinned another store when two were seen first at once.
    PinsDiffer {
        /// The pin of this node.
        ours: StoreId,
        /// The pin of the other node.
        theirs: Pin,
    },
}

/// Which store this node uses now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreChoice {
    /// None was ever seen.
    None,
    /// This one.
    Use(LiveStore),
    /// The pinned one, which is not live.
    Away(StoreId),
}

/// The pin of one node.
///
/// The order of calls: [`new`](Self::new) with what the state directory has, then any order of
/// [`handle_stores`](Self::handle_stores), [`handle_announced`](Self::handle_announced) and
/// [`use_store`](Self::use_store). When one of them returns true, the pin has changed: write [`pin`](Self::pin) to the
/// state directory and announce it.
#[derive(Clone, Debug)]
pub struct StorePin {
    me: NameAndLife,
    pin: Option<Pin>,
    stores: BTreeSet<LiveStore>,
    /// First pins of others that differ from ours.
    differing: Option<Pin>,
    in_use: Option<LiveStore>,
}

impl StorePin {
    /// The pin of the node `me`, which kept `pin`.
    #[must_use]
    pub fn new(me: NameAndLife, pin: Option<Pin>) -> Self {
        Self {
            me,
            pin,
            stores: BTreeSet::new(),
            differing: None,
            in_use: None,
        }
    }

    /// The pin to keep and to announce.
    #[must_use]
    pub fn pin(&self) -> Option<&Pin> {
        self.pin.as_ref()
    }

    /// Takes over which stores are live, all of them. The first one that is ever seen is pinned; of several at once, the
    /// one with the lowest id. Of several lives of one node only the latest has a store: the others have ended, and are still
    /// to be given up by the members.
    pub fn handle_stores(&mut self, stores: impl IntoIterator<Item = LiveStore>) -> bool {
        let stores: BTreeSet<LiveStore> = stores.into_iter().take(MAX_STORES).collect();
        let is_latest = |store: &&LiveStore| {
            let of_node = |other: &&LiveStore| other.node.name() == store.node.name();
            let lives = stores.iter().filter(of_node);
            lives.map(|other| other.node.life()).max() == Some(store.node.life())
        };
        self.stores = stores.iter().filter(is_latest).cloned().collect();
        let first = self.stores.first().map(|store| store.id.clone());
        let is_new = self.pin.is_none() && first.is_some();
        if let (None, Some(id)) = (&self.pin, first) {
            let by = self.me.clone();
            self.pin = Some(Pin { count: 0, by, id });
        }
        self.choose();
        is_new
    }

    /// Takes over the pin that a member announces, if it is later than ours.
    pub fn handle_announced(&mut self, announced: &Pin) -> bool {
        let changed = match &self.pin {
            None => true,
            // First pins do not overrule each other.
            Some(pin) if announced.count == 0 => {
                if pin.count == 0 && pin.id != announced.id {
                    self.differing = Some(announced.clone());
                }
                false
            }
            Some(pin) => announced > pin,
        };
        if changed {
            self.set(announced.clone());
        }
        changed
    }

    /// A person's decision, made on this node. It changes nothing if this store is pinned and no other pin is known.
    pub fn use_store(&mut self, id: StoreId) -> bool {
        let is_settled = self.differing.is_none();
        if is_settled && self.pin.as_ref().is_some_and(|pin| pin.id == id) {
            return false;
        }
        let count = self.pin.as_ref().map_or(0, |pin| pin.count);
        self.set(Pin {
            count: count.saturating_add(1).min(MAX_COUNT),
            by: self.me.clone(),
            id,
        });
        true
    }

    /// The store to use.
    #[must_use]
    pub fn choice(&self) -> StoreChoice {
        match (&self.in_use, &self.pin) {
            (Some(store), _) => StoreChoice::Use(store.clone()),
            (None, Some(pin)) => StoreChoice::Away(pin.id.clone()),
            (None, None) => StoreChoice::None,
        }
    }

    /// What is wrong, in a stable order.
    #[must_use]
    pub fn faults(&self) -> Vec<StoreFault> {
        let mut faults = Vec::new();
        let Some(pin) = &self.pin else {
            return faults;
        };
        let ids: BTreeSet<&StoreId> = self.stores.iter().map(|store| &store.id).collect();
        for id in ids {
            let nodes: Vec<NameAndLife> = self.live(id).map(|store| store.node.clone()).collect();
            if nodes.len() > 1 {
                let id = id.clone();
                faults.push(StoreFault::TwoPrimaries { id, nodes });
            }
        }
        let others = self.stores.iter().filter(|store| store.id != pin.id);
        faults.extend(others.map(|found| StoreFault::Other {
            pinned: pin.id.clone(),
            found: found.clone(),
        }));
        faults.extend(self.differing.iter().map(|theirs| StoreFault::PinsDiffer {
            ours: pin.id.clone(),
            theirs: theirs.clone(),
        }));
        faults
    }

    fn set(&mut self, pin: Pin) {
        self.differing = None;
        self.pin = Some(pin);
        self.choose();
    }

    /// Of two live primaries the one that was in use stays in use; a node that used neither uses none.
    fn choose(&mut self) {
        let Some(pin) = &self.pin else {
            return;
        };
        let live: Vec<LiveStore> = self.live(&pin.id).cloned().collect();
        let is_in_use = |store: &&LiveStore| {
            let in_use = self.in_use.as_ref();
            in_use.is_some_and(|in_use| in_use.node == store.node)
        };
        self.in_use = match &*live {
            [only] => Some(only.clone()),
            several => several.iter().find(is_in_use).cloned(),
        };
    }

    fn live<'a>(&'a self, id: &'a StoreId) -> impl Iterator<Item = &'a LiveStore> {
        self.stores.iter().filter(move |store| store.id == *id)
    }
}
