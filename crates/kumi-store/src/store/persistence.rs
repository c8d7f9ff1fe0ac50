//! Data sets as RDB files: what is loaded at startup, and what SAVE writes.

use super::Store;
use crate::cmd::dump;
use crate::error::CommandError;
use crate::host::Host;
use crate::keyspace::{Expiry, Keyspace};
use crate::rdb::{FileError, FileReader, FileWriter, Item, KeyFacts, SavedKey};
use std::io::{self, Read, Write};

/// How much is serialised before it is written.
const WRITE_BYTES: usize = 256 * 1024;
/// Keys loaded between two calls of the progress callback.
const PROGRESS_KEYS: u64 = 1024;

/// Why a data set could not be loaded. What had been loaded before it is still there; do not serve
/// it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The file is not what it should be.
    #[error("{0}")]
    File(String),
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
        Self::File(error.to_string())
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
        let limits = dump::limits_of(settings, self.keyspace.debug.plain_node_bytes);
        // A delay of each key is the callback's to wait for.
        let progress_keys = if settings.key_load_delay_us == 0 {
            PROGRESS_KEYS
        } else {
            1
        };
        let (verify, seed) = (settings.rdbchecksum, self.keyspace.keys(0, 0, false).seed());
        let mut file = FileReader::new(source, limits, seed, verify)?;
        let mut loaded = Loaded {
            version: file.version(),
            ..Loaded::default()
        };
        // The increments behind the base of a log may still refer to them.
        let keep_expired = self.loading.as_ref().is_some_and(|loading| loading.log);
        let now_ms = self.now.unix_ms();
        while let Some(item) = file.next_item()? {
            match item {
                Item::Aux(name, value) if *name == *b"redis-ver" => {
                    loaded.written_by = String::from_utf8_lossy(&value).into_owned();
                }
                Item::Aux(..) => {}
                Item::Library(code) => loaded.libraries.push(code),
                Item::Key(saved)
                    if !keep_expired && saved.deadline.is_some_and(|at| at <= now_ms) =>
                {
                    loaded.expired += 1;
                }
                Item::Key(saved) => {
                    let refused = |reason: String| LoadError::Refused {
                        offset: file.offset(),
                        reason,
                    };
                    put(&mut self.keyspace, saved, now_ms).map_err(refused)?;
                    loaded.keys += 1;
                    if loaded.keys.is_multiple_of(progress_keys) && !progress(self, file.offset()) {
                        return Err(LoadError::Stopped);
                    }
                }
            }
        }
        self.saves.changes = self.keyspace.dirty;
        (self.saves.loaded, self.saves.loaded_expired) = (loaded.keys, loaded.expired);
        loaded.bytes = file.offset();
        Ok(loaded)
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
            let text = libraries.load(code, replace, host).err()?;
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
        save(self, sink)
    }
}

/// The name in the first line of a library's code: `#!lua name=mylib`.
fn library_name(code: &[u8]) -> String {
    let line = code.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let mut words = line.split(|&byte| byte == b' ');
    let name = words.find_map(|word| word.strip_prefix(b"name="));
    name.unwrap_or(b"?").escape_ascii().to_string()
}

fn put(keyspace: &mut Keyspace, saved: SavedKey, now_ms: u64) -> Result<(), String> {
    let db = usize::try_from(saved.db).ok();
    let Some(db) = db.filter(|&db| db < keyspace.databases()) else {
        return Err(format!(
            "the file has a database {}, and there are {} (directive 'databases')",
            saved.db,
            keyspace.databases()
        ));
    };
    let name = saved.key.escape_ascii();
    let mut keys = keyspace.keys(db, now_ms, false);
    if keys.exists(&saved.key) {
        return Err(format!("key '{name}' occurs twice in database {db}"));
    }
    let expiry = saved.deadline.map_or(Expiry::Clear, Expiry::At);
    let stored = dump::put(&mut keys, &saved.key, saved.value, expiry);
    stored.map_err(|error: CommandError| {
        format!(
            "key '{name}': {}",
            String::from_utf8_lossy(error.as_bytes())
        )
    })?;
    keys.set_access(&saved.key, saved.idle_s, saved.frequency);
    Ok(())
}

/// Begins a file: facts about the writer, and the libraries of functions. `base` says that the file is the base of an
/// append-only file.
pub(super) fn header(store: &Store, base: bool) -> FileWriter {
    let settings = store.config.settings();
    let mut writer = FileWriter::new(dump::compression_of(settings), settings.rdbchecksum);
    let unix_s = store.now.unix_us / 1_000_000;
    let used_bytes = store.keyspace.memory_bytes();
    writer.aux("redis-ver", crate::REDIS_VERSION.as_bytes());
    writer.aux("redis-bits", b"64");
    writer.aux("ctime", unix_s.to_string().as_bytes());
    writer.aux("used-mem", used_bytes.to_string().as_bytes());
    writer.aux("aof-base", if base { b"1" } else { b"0" });
    for code in store.scripts.library_codes() {
        writer.library(code);
    }
    writer
}

/// Writes all databases.
pub(super) fn save(store: &Store, sink: &mut dyn Write) -> io::Result<()> {
    let keyspace = &store.keyspace;
    let mut writer = header(store, false);
    for db in 0..keyspace.databases() {
        let (entries, keys, deadlines) = keyspace.entries(db);
        if keys == 0 {
            continue;
        }
        writer.database(db as u64, keys as u64, deadlines as u64);
        for entry in entries {
            let facts = KeyFacts {
                deadline: entry.deadline(),
                ..KeyFacts::default()
            };
            writer.key(entry.key(), facts, entry.value());
            if writer.pending() >= WRITE_BYTES {
                sink.write_all(&writer.take())?;
            }
        }
    }
    writer.finish();
    sink.write_all(&writer.take())
}
