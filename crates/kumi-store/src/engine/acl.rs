//! Users and what they may do.
//!
//! ```text
//! user.rs    a user: passwords, selectors, their description
//! rules.rs   the modifiers of ACL SETUSER
//! file.rs    users as lines of a file
//! check.rs   whether a user may run a request
//! log.rs     ACL LOG
//! ```
//!
//! A session holds the id of its user. Each user's permissions are kept as a bitmap over the command table, so a check
//! of a command is one bit; requests of a user without restrictions skip the check. A command with a single key, such as
//! GET, compares the first eight bytes of that key with each pattern's literal prefix, and searches no key specs.

mod check;
mod file;
mod log;
mod rules;
mod user;

pub(crate) use check::{Denied, single_key_access};
pub(crate) use file::{parse, user_line};
pub(crate) use log::{AclLog, Context, Entry, Reason};
pub(crate) use rules::merge_selectors;
pub(crate) use user::{Selector, User, hex};

use crate::base::ids::UserId;
use crate::engine::command::CommandIndex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The categories, in the order ACL CAT lists them.
pub(crate) const CATEGORIES: [&str; 21] = [
    "keyspace",
    "read",
    "write",
    "set",
    "sortedset",
    "list",
    "hash",
    "string",
    "bitmap",
    "hyperloglog",
    "geo",
    "stream",
    "pubsub",
    "admin",
    "fast",
    "slow",
    "blocking",
    "dangerous",
    "connection",
    "transaction",
    "scripting",
];

/// Why a user of this name cannot be created, changed or removed.
pub(crate) fn held_name(name: &[u8]) -> String {
    let name = name.escape_ascii();
    format!("the user '{name}' belongs to the program that runs this server")
}

/// All users.
#[derive(Debug)]
pub(crate) struct Acl {
    slots: Vec<Option<User>>,
    names: BTreeMap<Arc<[u8]>, UserId>,
    pub(crate) log: AclLog,
    /// The value of `requirepass` that the default user's password follows.
    requirepass: Option<Vec<u8>>,
}

impl Acl {
    pub(crate) fn new(index: &CommandIndex) -> Self {
        let name: Arc<[u8]> = b"default".as_slice().into();
        Self {
            slots: vec![Some(User::unrestricted(name.clone(), index))],
            names: BTreeMap::from([(name, UserId::DEFAULT)]),
            log: AclLog::default(),
            requirepass: None,
        }
    }

    pub(crate) fn find(&self, name: &[u8]) -> Option<UserId> {
        self.names.get(name).copied()
    }

    #[inline]
    pub(crate) fn get(&self, id: UserId) -> Option<&User> {
        self.slots.get(id.0 as usize)?.as_ref()
    }

    /// Users by name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &User> {
        self.names.values().filter_map(|&id| self.get(id))
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = UserId> {
        self.names.values().copied()
    }

    /// Whether a user's requests have to be checked.
    #[inline]
    pub(crate) fn is_restricted(&self, id: UserId) -> bool {
        let user = self.slots.get(id.0 as usize);
        !matches!(user, Some(Some(user)) if user.is_unrestricted())
    }

    /// Whether a connection may do everything the default user may without a password.
    pub(crate) fn default_is_open(&self) -> bool {
        let default = self.get(UserId::DEFAULT);
        default.is_some_and(|user| user.enabled && user.nopass)
    }

    /// Whether the default user is `nopass`, also if it is off: what protected mode asks, as in Redis.
    pub(crate) fn default_is_nopass(&self) -> bool {
        let default = self.get(UserId::DEFAULT);
        default.is_some_and(|user| user.nopass)
    }

    /// The user of a name and a password, if both are right and the user is enabled.
    pub(crate) fn authenticate(&self, name: &[u8], password: &[u8]) -> Option<UserId> {
        let id = self.find(name)?;
        let user = self.get(id)?;
        (user.enabled && (user.nopass || user.has_password(password))).then_some(id)
    }

    /// Puts a changed user in the place of the one of that name, or adds it.
    pub(crate) fn put(&mut self, user: User) -> UserId {
        if let Some(id) = self.find(&user.name) {
            self.slots[id.0 as usize] = Some(user);
            return id;
        }
        let free = self.slots.iter().position(Option::is_none);
        let slot = free.unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        let id = UserId(slot as u32);
        self.names.insert(user.name.clone(), id);
        self.slots[slot] = Some(user);
        id
    }

    /// Removes a user. Its sessions are the caller's to close.
    pub(crate) fn remove(&mut self, name: &[u8]) -> Option<UserId> {
        let id = self.names.remove(name)?;
        self.slots[id.0 as usize] = None;
        Some(id)
    }

    /// Whether the program around the server has installed the user of this name.
    pub(crate) fn is_hosts(&self, name: &[u8]) -> bool {
        let user = self.find(name).and_then(|id| self.get(id));
        user.is_some_and(|user| user.is_hosts)
    }

    /// Puts these users in the place of all that the program around the server has installed before; returns the ids of
    /// those that changed or were removed.
    pub(crate) fn put_host_users(&mut self, users: Vec<User>) -> Vec<UserId> {
        let wanted = |name: &[u8]| users.iter().any(|user| *user.name == *name);
        let gone: Vec<Arc<[u8]>> = self
            .iter()
            .filter(|user| user.is_hosts && !wanted(&user.name))
            .map(|user| user.name.clone())
            .collect();
        let mut changed: Vec<UserId> = gone.iter().filter_map(|name| self.remove(name)).collect();
        for user in users {
            let known = self.find(&user.name);
            let before = known.and_then(|id| self.get(id)).map(User::describe);
            if before.as_ref() != Some(&user.describe()) {
                changed.extend(known);
                self.put(user);
            }
        }
        changed
    }

    /// Puts these users in the place of all others; returns the ids of those that were there before, except the
    /// default user's. Without a default user among them, it is as at first. Users of the program around the server stay.
    pub(crate) fn replace(&mut self, users: Vec<User>, index: &CommandIndex) -> Vec<UserId> {
        let gone: Vec<Arc<[u8]>> = self
            .names
            .keys()
            .filter(|name| !users.iter().any(|user| user.name == **name) && !self.is_hosts(name))
            .cloned()
            .collect();
        let mut ids = Vec::new();
        for name in gone {
            if *name == *b"default" {
                self.put(User::unrestricted(name, index));
            } else {
                ids.extend(self.remove(&name));
            }
        }
        for user in users {
            let known = self.find(&user.name);
            ids.extend(known.filter(|&id| id != UserId::DEFAULT));
            self.put(user);
        }
        ids
    }

    /// Gives the default user the password of `requirepass`, if that has changed.
    pub(crate) fn follow_requirepass(&mut self, requirepass: Option<&[u8]>) {
        if self.requirepass.as_deref() == requirepass {
            return;
        }
        self.requirepass = requirepass.map(<[u8]>::to_vec);
        if let Some(Some(user)) = self.slots.first_mut() {
            user.reset_passwords();
            match requirepass {
                Some(password) => user.add_password(password),
                None => user.nopass = true,
            }
        }
    }
}

#[cfg(test)]
mod tests;
