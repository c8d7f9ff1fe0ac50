//! The configuration: every directive of Redis 7.2's `redis.conf`, its value, and what kumi does with it.
//!
//! This module parses and prints text. It opens no file, binds no port and does not touch the keyspace: the host reads
//! files and passes their text in, applies the effects of a change, and reverts a change that it could not apply.
//!
//! One row of [`TABLE`] defines a directive. `CONFIG GET`, `CONFIG SET`, the file, the command line and
//! `CONFIG REWRITE` all read that row, so that they cannot disagree about a name, a range or a default.
//!
//! ```text
//! file.rs      redis.conf text and command line -> lines -> Config::load
//! config.rs    Config: values, atomic set, revert, get
//! value.rs     kinds of value: parse, canonical text        special.rs  the directives with a syntax of their own
//! directives.rs  the table                                  settings.rs what live directives write, typed
//! rewrite.rs   CONFIG REWRITE                               notify.rs   notify-keyspace-events
//! words.rs     quoting
//! ```

mod directives;
mod file;
mod notify;
mod rewrite;
mod settings;
mod special;
#[cfg(test)]
mod tests;
mod value;
mod words;

use std::borrow::Cow;

pub use directives::{Directive, Mutability, Standing, TABLE};
pub use file::{
    CommandLine, INCLUDE_DEPTH_LIMIT, Line, LoadError, Loaded, ReadInclude, Source,
    parse_command_line, parse_text,
};
pub use notify::NotifyFlags;
pub use rewrite::rewrite;
pub use settings::{
    Access, BindAddress, EvictionPolicy, Fsync, LogLevel, OomScoreAdj, SavePoint, Secret, Settings,
    ShutdownOptions, Supervision, TlsAuthClients, TlsSettings,
};
pub use special::{OutputLimit, OutputLimits, ReplicaOf, Special};
pub(crate) use value::parse_memory;
pub use value::{Kind, Unit, Value};
pub(crate) use words::split as split_words;

/// The source of a change, which decides what may be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The configuration file or the command line, before the server runs: everything may be set, and an inert
    /// directive set to a value other than its default causes a warning.
    Startup,
    /// `CONFIG SET`: immutable directives are refused, protected ones depend on `enable-protected-configs`.
    Client {
        /// The connection comes over a Unix socket or a loopback address.
        local: bool,
    },
    /// The host, which stores what it found out: the absolute `dir`, or the `maxclients` that file descriptors allow.
    Host,
}

/// Why a change was rejected. Nothing was changed. The text is what a client gets after `-ERR `.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// No directive has this name: the caller's mistake.
    #[error("Unknown option or number of arguments for CONFIG SET - '{0}'")]
    Unknown(String),
    /// The directive exists, but may not be changed, or not to this value; or the host failed to apply it.
    #[error("CONFIG SET failed (possibly related to argument '{name}') - {reason}")]
    Failed {
        /// The directive, spelled as Redis prints it: as the client wrote it, or by its name in the table.
        name: String,
        /// What is wrong, without the name.
        reason: Cow<'static, str>,
    },
}

impl ConfigError {
    /// The error for a change that parsed, but that the host could not apply.
    pub fn failed(name: &str, reason: impl Into<Cow<'static, str>>) -> Self {
        ConfigError::Failed {
            name: name.to_owned(),
            reason: reason.into(),
        }
    }
}

/// What a successful [`Config::set_many`] changed, to apply it or to revert it.
#[must_use = "the host has to apply the changes, or revert them"]
#[derive(Debug, Default)]
pub struct Changes {
    /// Row of the table and the value it had before, in the order of the request. Rows whose value stayed the same
    /// are left out, except those that name files, which may have changed.
    before: Vec<(usize, Value)>,
}

impl Changes {
    /// Names of the directives whose value changed, in the order they were set.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.before.iter().map(|(row, _)| TABLE[*row].name)
    }

    /// Whether the directive of this (primary) name changed.
    pub fn contains(&self, name: &str) -> bool {
        self.names().any(|changed| changed == name)
    }

    /// Whether no value changed.
    pub fn is_empty(&self) -> bool {
        self.before.is_empty()
    }
}

/// An inert directive that was set to a value other than its default at startup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InertWarning {
    /// The directive.
    pub name: &'static str,
    /// Its value as CONFIG GET shows it, or nothing for a directive that may hold a secret.
    pub value: Option<Vec<u8>>,
    /// Why kumi does nothing with it.
    pub reason: &'static str,
}

impl std::fmt::Display for InertWarning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.value {
            Some(value) => write!(
                f,
                "'{} {}' has no effect: {}",
                self.name,
                String::from_utf8_lossy(value),
                self.reason
            ),
            None => write!(f, "'{}' has no effect: {}", self.name, self.reason),
        }
    }
}

/// All directives and their current values.
///
/// ```
/// use kumi_store::config::{Config, Origin};
///
/// let mut config = Config::new();
/// let changes = config.set_many(&[(b"maxmemory", b"1gb")], Origin::Client { local: true })?;
/// assert_eq!(config.settings().maxmemory_bytes, 1 << 30);
/// config.revert(changes);
/// assert_eq!(config.settings().maxmemory_bytes, 0);
/// # Ok::<(), kumi_store::config::ConfigError>(())
/// ```
#[derive(Clone)]
pub struct Config {
    /// One value per row of the table.
    values: Vec<Value>,
    /// Whether the row was named by the file or on the command line.
    given: Vec<bool>,
    /// The typed values of live rows; updated with `values` at every change.
    settings: Settings,
    /// The `user` lines, each without that word.
    users: Vec<Vec<u8>>,
    /// Directives that have their defaults and no line are rewritten too.
    rewrites_all: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self::new()
    }
}

/// The directives that were given, without the values of those that may hold a secret and without the users.
impl std::fmt::Debug for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_map();
        for (row, given) in TABLE.iter().zip(&self.given) {
            if !given {
                continue;
            }
            match self.text(row.name) {
                Some(value) if !row.sensitive => {
                    shown.entry(&row.name, &String::from_utf8_lossy(&value))
                }
                _ => shown.entry(&row.name, &"..."),
            };
        }
        shown.finish()
    }
}

impl Config {
    /// The `user` lines, each without that word.
    pub fn users(&self) -> &[Vec<u8>] {
        &self.users
    }

    /// Whether CONFIG REWRITE writes directives that have their defaults and no line too.
    pub(crate) fn set_rewrites_all(&mut self, all: bool) {
        self.rewrites_all = all;
    }

    /// Replaces the `user` lines that CONFIG REWRITE writes.
    pub(crate) fn set_users(&mut self, lines: Vec<Vec<u8>>) {
        self.users = lines;
    }

    /// Every directive at its default.
    pub fn new() -> Self {
        let values: Vec<Value> = TABLE.iter().map(Directive::default_value).collect();
        let mut settings = Settings::blank();
        for (directive, value) in TABLE.iter().zip(&values) {
            directive.write(&mut settings, value);
        }
        Self {
            given: vec![false; values.len()],
            values,
            settings,
            users: Vec::new(),
            rewrites_all: false,
        }
    }

    /// The values kumi acts on, typed.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The canonical text of one directive, by name or alias.
    pub fn text(&self, name: &str) -> Option<Vec<u8>> {
        let (row, _) = find(name.as_bytes())?;
        Some(TABLE[row].kind.text(&self.values[row]))
    }

    /// Whether the file or the command line named this directive.
    pub fn is_given(&self, name: &str) -> bool {
        find(name.as_bytes()).is_some_and(|(row, _)| self.given[row])
    }

    /// Whether the value of this directive, by name or alias, has to stay out of logs, MONITOR and SLOWLOG.
    pub fn is_sensitive(name: &[u8]) -> bool {
        find(name).is_some_and(|(row, _)| TABLE[row].sensitive)
    }

    /// The reply of `CONFIG GET`: names and canonical values, in the table's order, each name once.
    ///
    /// A pattern without glob characters is a name: it finds hidden directives too, and is echoed as it was written.
    pub fn get<'p>(
        &self,
        patterns: impl IntoIterator<Item = &'p [u8]>,
    ) -> Vec<(Cow<'p, [u8]>, Vec<u8>)> {
        let mut found: Vec<(Cow<'p, [u8]>, Vec<u8>)> = Vec::new();
        for pattern in patterns {
            if !pattern.iter().any(|byte| b"[*?".contains(byte)) {
                if let Some((row, _)) = find(pattern)
                    && !found
                        .iter()
                        .any(|(name, _)| name.eq_ignore_ascii_case(pattern))
                {
                    found.push((
                        Cow::Borrowed(pattern),
                        TABLE[row].kind.text(&self.values[row]),
                    ));
                }
                continue;
            }
            for (directive, value) in TABLE
                .iter()
                .zip(&self.values)
                .filter(|(directive, _)| !directive.hidden)
            {
                for name in directive.names() {
                    if crate::base::glob::matches(pattern, name.as_bytes(), true)
                        && !found
                            .iter()
                            .any(|(seen, _)| seen.eq_ignore_ascii_case(name.as_bytes()))
                    {
                        found.push((Cow::Borrowed(name.as_bytes()), directive.kind.text(value)));
                    }
                }
            }
        }
        found
    }

    /// Sets all of the pairs or none of them.
    ///
    /// As in Redis, all names are checked before any value, so the first unknown name is the error that is reported.
    pub fn set_many(
        &mut self,
        pairs: &[(&[u8], &[u8])],
        origin: Origin,
    ) -> Result<Changes, ConfigError> {
        let mut rows: Vec<(usize, &'static str)> = Vec::with_capacity(pairs.len());
        for (name, _) in pairs {
            let shown = || String::from_utf8_lossy(name).into_owned();
            let (row, found) = find(name).ok_or_else(|| ConfigError::Unknown(shown()))?;
            let refused = |reason: &'static str| ConfigError::Failed {
                name: shown(),
                reason: reason.into(),
            };
            if let Origin::Client { local } = origin {
                match TABLE[row].mutability {
                    Mutability::Modifiable => {}
                    Mutability::Immutable => return Err(refused("can't set immutable config")),
                    Mutability::Protected
                        if self.settings.enable_protected_configs.allows(local) => {}
                    Mutability::Protected => return Err(refused("can't set protected config")),
                }
            }
            if rows.contains(&(row, found)) {
                return Err(refused("duplicate parameter"));
            }
            rows.push((row, found));
        }
        let mut changes = Changes::default();
        for (&(row, name), (_, text)) in rows.iter().zip(pairs) {
            let words = TABLE[row].kind.split(text);
            if let Err(reason) = self.assign(row, &words, &mut changes) {
                self.revert(changes);
                return Err(ConfigError::Failed {
                    name: name.to_owned(),
                    reason,
                });
            }
        }
        if origin == Origin::Startup {
            rows.iter().for_each(|&(row, _)| self.given[row] = true);
        }
        Ok(changes)
    }

    /// Reverts what a `set_many` changed, for a host that could not apply it.
    pub fn revert(&mut self, changes: Changes) {
        // In reverse order, because a name and its alias may both have been set in one request.
        for (row, value) in changes.before.into_iter().rev() {
            TABLE[row].write(&mut self.settings, &value);
            self.values[row] = value;
        }
    }

    /// Inert directives that were set to a value other than their default at startup, in the table's order.
    pub fn warnings(&self) -> impl Iterator<Item = InertWarning> + '_ {
        TABLE.iter().enumerate().filter_map(|(row, directive)| {
            let Standing::Inert(reason) = directive.standing else {
                return None;
            };
            if !self.given[row] || self.values[row] == directive.default_value() {
                return None;
            }
            let value = (!directive.sensitive).then(|| directive.kind.text(&self.values[row]));
            Some(InertWarning {
                name: directive.name,
                value,
                reason,
            })
        })
    }

    /// Parses the words, checks them against the row's standing, and stores the value.
    fn assign(
        &mut self,
        row: usize,
        words: &[&[u8]],
        changes: &mut Changes,
    ) -> Result<(), Cow<'static, str>> {
        let directive = &TABLE[row];
        let value = directive.parse(words, &self.values[row])?;
        if let Standing::Refused { when, why } = directive.standing
            && when(&value)
        {
            return Err(why.into());
        }
        if value != self.values[row] || directive.names_file {
            directive.write(&mut self.settings, &value);
            let before = std::mem::replace(&mut self.values[row], value);
            changes.before.push((row, before));
        }
        Ok(())
    }
}

/// The row of a name, alias or other spelling, in any case, and the name as the table has it.
fn find(name: &[u8]) -> Option<(usize, &'static str)> {
    TABLE.iter().enumerate().find_map(|(row, directive)| {
        let found = directive
            .accepted_names()
            .find(|known| known.as_bytes().eq_ignore_ascii_case(name))?;
        Some((row, found))
    })
}
