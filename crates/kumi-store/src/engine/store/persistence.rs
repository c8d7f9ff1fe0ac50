//! Data sets as RDB files: what is loaded at startup, and what SAVE writes.

use super::{DataIdentity, Store};
use crate::base::ids::DataId;
use crate::data::keyspace::{Keyspace, LoadBatch, LoadedKey, NewValue, SavedAccess, Value};
use crate::data::rdb::{
    Built, Compression, FileError, FileReader, FileWriter, Item, KeyFacts, KeyHead, Part, SavedKey,
    ValueLimits,
};
use crate::engine::host::Host;
use crate::engine::script::Unwatched;
use std::io::{self, Read, Write};

/// How much is serialised before it is written.
const WRITE_BYTES: usize = 256 * 1024;
/// Keys loaded between two calls of the progress callback.
const PROGRESS_KEYS: u64 = 1024;
/// No key takes fewer bytes in a file: its type, and the lengths of key and value.
const FEWEST_KEY_BYTES: usize = 3;
/// The fact with the id of the data set. Other servers pass over facts that they do not know.
const DATA_ID: &str = "kumi-data-id";
/// The longest string that lies inside of its entry.
const LONGEST_INLINE: usize = 1024;

/// Why a data set could not be loaded. What had been loaded before it is still there; do not serve
/// it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The file is not what it should be.
    #[error("{0}")]
    File(String),
    /// The file is an RDB file of a known version, and its content is damaged.
    #[error("{0}")]
    Damaged(String),
    /// Loading was ended.
    #[error("loading was ended")]
    Stopped,
    /// The file holds what this server cannot.
    #[error("at byte {offset}: {reason}")]
    Refused {
        /// How far the file was read.
        offset: u64,
        /// What is in the way.
        reason: String,
    },
}

impl From<FileError> for LoadError {
    fn from(error: FileError) -> Self {
        match error.is_damage() {
            true => Self::Damaged(error.to_string()),
            false => Self::File(error.to_string()),
        }
    }
}

/// What loading a data set gave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loaded {
    /// Keys that were stored.
    pub keys: u64,
    /// Keys whose deadline had passed, which were left out.
    pub expired: u64,
    /// Keys of collections without elements, which old servers could save by mistake. They were left out.
    pub empty: u64,
    /// Libraries of functions, for [`Store::load_libraries`].
    pub libraries: Vec<Box<[u8]>>,
    /// The version of the file.
    pub version: u16,
    /// How many bytes of the source it took. Others may follow.
    pub bytes: u64,
    /// `redis-ver` of the server that wrote it, if it says so.
    pub written_by: String,
}

impl Store {
    /// Loads a data set in the form of an RDB file, of versions 1 to 11, into the databases.
    /// `progress` is called with the bytes read so far, now and then, and for each key under `key-load-delay`.
    ///
    /// # Errors
    /// The source is damaged, of an unknown version, or holds more databases than there are.
    pub fn load_rdb(
        &mut self,
        source: impl Read,
        mut progress: impl FnMut(u64),
    ) -> Result<Loaded, LoadError> {
        self.load_rdb_while(source, |_, offset| {
            progress(offset);
            true
        })
    }

    /// As [`Store::load_rdb`]; `progress` may use the store between two keys, and false from it ends loading.
    ///
    /// # Errors
    /// As [`Store::load_rdb`], or `progress` ended it.
    pub fn load_rdb_while(
        &mut self,
        source: impl Read,
        mut progress: impl FnMut(&mut Self, u64) -> bool,
    ) -> Result<Loaded, LoadError> {
        let settings = self.config.settings();
        let limits = ValueLimits::of(settings, self.keyspace.debugging.switches.plain_node_bytes);
        // A delay of each key is the callback's to wait for.
        let progress_keys = if settings.key_load_delay_us == 0 {
            PROGRESS_KEYS
        } else {
            1
        };
        let (verify, seed) = (settings.rdbchecksum, self.keyspace.keys(0, 0, false).seed());
        let file = FileReader::new(source, limits, seed, verify);
        let mut file = file.inspect_err(FileError::log)?;
        let mut loaded = Loaded {
            version: file.version(),
            ..Loaded::default()
        };
        // The increments behind the base of an AOF may still refer to them.
        let keep_expired = self
            .persistence
            .loading
            .as_ref()
            .is_some_and(|loading| loading.aof);
        let now_ms = self.now.unix_ms();
        let expired = |head: KeyHead| !keep_expired && head.deadline.is_some_and(|at| at <= now_ms);
        let most_keys = self.persistence.loading.as_ref().map_or(0, |loading| {
            usize::try_from(loading.total_bytes).unwrap_or(usize::MAX) / FEWEST_KEY_BYTES
        });
        let mut batch = LoadBatch::default();
        while let Some(part) = file.next_part().inspect_err(FileError::log)? {
            let added = match part {
                Part::Item(Item::Aux(name, value)) => {
                    if *name == *b"redis-ver" {
                        loaded.written_by = String::from_utf8_lossy(&value).into_owned();
                    }
                    if *name == *DATA_ID.as_bytes()
                        && let Some(id) = DataId::parse(&value)
                    {
                        self.persistence.identity = DataIdentity {
                            id,
                            is_loaded: true,
                        };
                    }
                    if let Some(line) = fact_line(&name, &value, now_ms / 1000) {
                        tracing::info!("{line}");
                    }
                    continue;
                }
                Part::Item(Item::Library(code)) => {
                    loaded.libraries.push(code);
                    continue;
                }
                Part::Sizes { db, keys } => {
                    let keys = usize::try_from(keys).unwrap_or(usize::MAX).min(most_keys);
                    if let Ok(db) = database(&self.keyspace, db) {
                        self.keyspace.reserve(db, keys);
                    }
                    continue;
                }
                Part::Text(text) if expired(text.head) => {
                    loaded.expired += 1;
                    continue;
                }
                Part::Item(Item::Key(saved)) if expired(saved.head) => {
                    loaded.expired += 1;
                    continue;
                }
                Part::Text(text) => key_of(&self.keyspace, text.head, text.key).and_then(|key| {
                    let value = string(text.value);
                    self.keyspace.load(&mut batch, key, value, now_ms)
                }),
                Part::Item(Item::Key(saved)) => put(&mut self.keyspace, &mut batch, saved, now_ms),
            };
            let refused = |reason: String| LoadError::Refused {
                offset: file.offset(),
                reason,
            };
            added.map_err(refused)?;
            loaded.keys += 1;
            if loaded.keys.is_multiple_of(progress_keys) {
                self.keyspace.finish_load(&mut batch).map_err(refused)?;
                if !progress(self, file.offset()) {
                    return Err(LoadError::Stopped);
                }
            }
        }
        let finished = self.keyspace.finish_load(&mut batch);
        finished.map_err(|reason| LoadError::Refused {
            offset: file.offset(),
            reason,
        })?;
        self.persistence.saves.changes = self.keyspace.dirty;
        (
            self.persistence.saves.loaded,
            self.persistence.saves.loaded_expired,
        ) = (loaded.keys, loaded.expired);
        (loaded.bytes, loaded.empty) = (file.offset(), file.empty_keys());
        let empty = match loaded.empty {
            0 => String::new(),
            empty => format!(", empty keys skipped: {empty}"),
        };
        tracing::info!(
            "Done loading RDB, keys loaded: {}, keys expired: {}{empty}.",
            loaded.keys,
            loaded.expired
        );
        Ok(loaded)
    }

    /// The id of the data set: the one that was loaded with the data, or a new one.
    #[must_use]
    pub fn data_id(&self) -> DataId {
        self.persistence.identity.id
    }

    /// Whether the data that was loaded had its id with it.
    #[must_use]
    pub fn has_loaded_data_id(&self) -> bool {
        self.persistence.identity.is_loaded
    }

    /// Gives the data set the id that a host kept for it elsewhere than in the data. Call it before clients are served.
    pub fn set_data_id(&mut self, id: DataId) {
        self.persistence.identity.id = id;
    }

    /// Loads the libraries of functions that a file holds. Those that are there are replaced if `replace`
    /// says so.
    ///
    /// # Errors
    /// The code of one does not run, or it is there already; the ones before it are loaded.
    pub fn load_libraries(
        &mut self,
        codes: &[Box<[u8]>],
        replace: bool,
        host: &mut dyn Host,
    ) -> Result<(), LoadError> {
        if codes.is_empty() {
            return Ok(());
        }
        let mut libraries = self.scripts.take_or_make_libraries();
        let failed = codes.iter().find_map(|code| {
            let text = libraries
                .load(code, replace, None, &mut Unwatched(&mut *host))
                .err()?;
            let text = text.escape_ascii();
            let name = library_name(code);
            Some(LoadError::File(format!("library '{name}': {text}")))
        });
        self.scripts.put_libraries(libraries);
        failed.map_or(Ok(()), Err)
    }

    /// Writes all data as an RDB file of version 10.
    ///
    /// # Errors
    /// The sink does not take it.
    pub fn save_rdb(&self, sink: &mut dyn Write) -> io::Result<()> {
        save(self, sink, &mut || Ok(()))
    }
}

/// What the log says of a fact about the writer of a file, in Redis's words.
fn fact_line(name: &[u8], value: &[u8], now_s: u64) -> Option<String> {
    let number = || std::str::from_utf8(value).ok()?.parse::<u64>().ok();
    Some(match name {
        b"redis-ver" => format!("Loading RDB produced by version {}", value.escape_ascii()),
        b"ctime" => format!("RDB age {} seconds", now_s.saturating_sub(number()?)),
        b"used-mem" => {
            let megabytes = number()? as f64 / (1024.0 * 1024.0);
            format!("RDB memory usage when created {megabytes:.2} Mb")
        }
        b"aof-base" if value == b"1" => "RDB is base AOF".to_owned(),
        _ => return None,
    })
}

/// The name in the first line of a library's code: `#!lua name=mylib`.
fn library_name(code: &[u8]) -> String {
    let line = code.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let mut words = line.split(|&byte| byte == b' ');
    let name = words.find_map(|word| word.strip_prefix(b"name="));
    name.unwrap_or(b"?").escape_ascii().to_string()
}

/// The number of a database, if there is one with it.
fn database(keyspace: &Keyspace, number: u64) -> Result<usize, String> {
    let db = usize::try_from(number).ok();
    db.filter(|&db| db < keyspace.databases()).ok_or_else(|| {
        format!(
            "the file has a database {number}, and there are {} (directive 'databases')",
            keyspace.databases()
        )
    })
}

fn key_of<'a>(keyspace: &Keyspace, head: KeyHead, key: &'a [u8]) -> Result<LoadedKey<'a>, String> {
    Ok(LoadedKey {
        db: database(keyspace, head.db)?,
        key,
        deadline: head.deadline,
        idle_s: head.idle_s,
        frequency: head.frequency,
    })
}

/// A string as SET would store it. A long one can be shared with a snapshot.
fn string(bytes: &[u8]) -> NewValue<'_> {
    if bytes.len() <= LONGEST_INLINE {
        return NewValue::parse(bytes);
    }
    NewValue::Boxed(Value::of_bytes(bytes.to_vec()))
}

fn put(
    keyspace: &mut Keyspace,
    batch: &mut LoadBatch,
    saved: SavedKey,
    now_ms: u64,
) -> Result<(), String> {
    let key = key_of(keyspace, saved.head, &saved.key)?;
    match saved.value {
        Built::Nothing => Ok(()),
        Built::String(value) => keyspace.load(batch, key, string(&value), now_ms),
        Built::List(list) => keyspace.load_collection(batch, key, list, now_ms),
        Built::Set(set) => keyspace.load_collection(batch, key, set, now_ms),
        Built::SortedSet(zset) => keyspace.load_collection(batch, key, zset, now_ms),
        Built::Hash(hash) => keyspace.load_collection(batch, key, hash, now_ms),
        Built::Stream(stream) => keyspace.load_collection(batch, key, stream, now_ms),
    }
}

/// Begins a file: facts about the writer, and the libraries of functions. `base` says that the file is the base of an
/// append-only file.
pub(super) fn header(store: &Store, base: bool) -> FileWriter {
    let settings = store.config.settings();
    let mut writer = FileWriter::new(Compression::of(settings), settings.rdbchecksum);
    let unix_s = store.now.unix_us / 1_000_000;
    let used_bytes = store.keyspace.memory_bytes();
    writer.aux("redis-ver", crate::base::version::REDIS_VERSION.as_bytes());
    writer.aux("redis-bits", b"64");
    writer.aux("ctime", unix_s.to_string().as_bytes());
    writer.aux("used-mem", used_bytes.to_string().as_bytes());
    writer.aux("aof-base", if base { b"1" } else { b"0" });
    let data_id = store.data_id().to_string();
    writer.aux(DATA_ID, data_id.as_bytes());
    for code in store.scripts.library_codes() {
        writer.library(code);
    }
    writer
}

/// Writes all databases, and calls `each_key` after each key.
pub(super) fn save(
    store: &Store,
    sink: &mut dyn Write,
    each_key: &mut dyn FnMut() -> io::Result<()>,
) -> io::Result<()> {
    let keyspace = &store.keyspace;
    let mut writer = header(store, false);
    let access = SavedAccess::of(store.config.settings(), store.now.unix_ms());
    for db in 0..keyspace.databases() {
        let (entries, keys, deadlines) = keyspace.entries(db);
        if keys == 0 {
            continue;
        }
        writer.database(db as u64, keys as u64, deadlines as u64);
        for entry in entries {
            let (idle_s, frequency) = access.facts(entry.access_clock());
            let facts = KeyFacts {
                deadline: entry.deadline(),
                idle_s,
                frequency,
            };
            writer.key(entry.key(), facts, entry.value());
            if writer.pending() >= WRITE_BYTES {
                writer.flush(sink)?;
            }
            each_key()?;
        }
    }
    writer.finish();
    writer.flush(sink)
}

#[cfg(test)]
mod tests {
    use super::fact_line;
    use crate::base::seeds::Seeds;
    use crate::testing::Lab;

    fn saved(lab: &Lab) -> Vec<u8> {
        let mut file = Vec::new();
        lab.store.save_rdb(&mut file).expect("memory takes it");
        file
    }

    fn load(lab: &mut Lab, file: &[u8]) {
        lab.store.load_rdb(file, |_| {}).expect("a whole file");
    }

    #[test]
    fn the_id_of_a_data_set_goes_with_it() {
        let mut first = Lab::with_seeds(Seeds::from_seed(1));
        let mut second = Lab::with_seeds(Seeds::from_seed(2));
        let id = first.store.data_id();
        assert_ne!(id, second.store.data_id());
        first.run("SET a 1");
        load(&mut second, &saved(&first));
        assert!(second.store.has_loaded_data_id() && !first.store.has_loaded_data_id());
        assert_eq!(second.store.data_id(), id);
        let line = format!("\r\nkumi_data_id:{id}\r\n");
        assert!(second.run("INFO server").contains(&line));
        second.allow_debug();
        second.run("FLUSHALL");
        second.run("DEBUG RELOAD");
        assert_eq!(second.store.data_id(), id);
        let mut third = Lab::with_seeds(Seeds::from_seed(3));
        load(&mut third, &saved(&second));
        assert_eq!(third.store.data_id(), id);
    }

    #[test]
    fn a_data_set_without_an_id_gets_a_new_one() {
        let mut lab = Lab::with_seeds(Seeds::from_seed(1));
        let id = lab.store.data_id();
        // As redis-server writes it, and one whose id is none.
        for name in [b"kumi-data-ix", b"kumi-data-id"] {
            let mut file = saved(&lab);
            let mut places = file.windows(12);
            let at = places.position(|part| part == b"kumi-data-id");
            let at = at.expect("it is there");
            file[at..at + 12].copy_from_slice(name);
            // Behind the name stand the length of the value and the value.
            file[at + 13] = b'x';
            // A checksum of zeros is none.
            let end = file.len();
            file[end - 8..].fill(0);
            let mut other = Lab::with_seeds(Seeds::from_seed(2));
            let own = other.store.data_id();
            load(&mut other, &file);
            assert!(!other.store.has_loaded_data_id());
            assert_eq!(other.store.data_id(), own);
            // The host may have kept it.
            other.store.set_data_id(id);
            load(&mut lab, &saved(&other));
            assert_eq!(lab.store.data_id(), id);
        }
    }

    #[track_caller]
    fn check(name: &str, value: &str, expected: Option<&str>) {
        let line = fact_line(name.as_bytes(), value.as_bytes(), 1000);
        assert_eq!(line.as_deref(), expected);
    }

    #[test]
    fn facts_about_the_writer_are_logged_in_the_words_of_redis() {
        check(
            "redis-ver",
            "7.2.4",
            Some("Loading RDB produced by version 7.2.4"),
        );
        check(
            "redis-ver",
            "7\n1",
            Some("Loading RDB produced by version 7\\n1"),
        );
        check("ctime", "990", Some("RDB age 10 seconds"));
        check("ctime", "1010", Some("RDB age 0 seconds"));
        check("ctime", "-1", None);
        check(
            "used-mem",
            "1572864",
            Some("RDB memory usage when created 1.50 Mb"),
        );
        check("used-mem", "", None);
        check("aof-base", "1", Some("RDB is base AOF"));
        check("aof-base", "0", None);
        check("redis-bits", "64", None);
    }
}
