//! RDB files: a header, facts about the writer, databases with their keys, a checksum.
//!
//! ```text
//! REDIS0010                      magic and version
//! FA name value                  a fact ("aux"), any number of them
//! F5 code                        a library of functions
//! F7 module data                 what a module saved beside the keys; refused
//! FE db  FB keys deadlines       a database, and how many keys follow
//! FC ms  (or FD seconds)         the deadline of the next key
//! F8 seconds  (or F9 byte)       how long the next key was idle, or how often it is used
//! type key value
//! FF checksum                    CRC-64 of all bytes before it, 0 for none; from version 5 on
//! ```
//!
//! A [`FileReader`] hands out one [`Item`] at a time, so that a server can load a large file in slices. A [`FileWriter`]
//! appends to a buffer that its owner empties.

use super::decode::module_name;
use super::read::FileInput;
use super::value::{Builder, Built, ValueLimits, write_value};
use super::{
    Compression, MAX_VERSION, RdbError, Reader, WRITTEN_VERSION, Writer, decode, kind,
    structure_name,
};
use crate::base::crc64;
use crate::data::keyspace::{StringRef, ValueRef};
use std::io::{self, Read, Write};

const MAGIC: &[u8; 5] = b"REDIS";
/// What Valkey begins a file of version 80 or later with; three digits follow.
const VALKEY_MAGIC: &[u8; 6] = b"VALKEY";
/// The first version with a checksum.
const CHECKSUM_VERSION: u16 = 5;
/// Keys of empty collections that are logged one by one.
const EMPTY_KEYS_LOGGED: u64 = 10;

mod opcode {
    pub(super) const FUNCTION: u8 = 245;
    pub(super) const FUNCTION_PRE_GA: u8 = 246;
    pub(super) const MODULE_AUX: u8 = 247;
    pub(super) const IDLE: u8 = 248;
    pub(super) const FREQUENCY: u8 = 249;
    pub(super) const AUX: u8 = 250;
    pub(super) const SIZES: u8 = 251;
    pub(super) const DEADLINE_MS: u8 = 252;
    pub(super) const DEADLINE_S: u8 = 253;
    pub(super) const DATABASE: u8 = 254;
    pub(super) const END: u8 = 255;
}

/// Why a file could not be read, and where.
#[derive(Debug, thiserror::Error)]
#[error("at byte {offset}: {reason}")]
pub(crate) struct FileError {
    pub(crate) offset: u64,
    pub(crate) reason: Reason,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Reason {
    #[error("not an RDB file: it does not begin with REDIS and four digits")]
    Magic,
    #[error("RDB version {0} is not supported; versions 1 to {MAX_VERSION} are{hint}", hint = hint(*.0))]
    Version(u16),
    #[error("key '{key}': {error}")]
    Value {
        key: String,
        /// What the value consists of, in the words of Redis's log.
        structure: &'static str,
        error: RdbError,
    },
    #[error("{0}")]
    Format(RdbError),
    #[error("RDB CRC error: the checksum is {found:#018x}, but the bytes give {expected:#018x}")]
    Checksum { found: u64, expected: u64 },
    #[error("a library of functions in the form of a release candidate of Redis 7.0")]
    OldFunctions,
    /// What a module saved beside the keys: the next save would lose it.
    #[error("The RDB file contains AUX module data I can't load: no matching module '{0}'")]
    ModuleAux(String),
}

impl FileError {
    /// Whether the content of an RDB file is damaged. A file of another format or version is not.
    pub(crate) fn is_damage(&self) -> bool {
        matches!(
            self.reason,
            Reason::Value { .. } | Reason::Format(_) | Reason::Checksum { .. }
        )
    }

    /// Writes the lines that redis-server's log has for it, in its words but for the line of its source.
    pub(crate) fn log(&self) {
        let offset = self.offset;
        let internal = |reason: String| {
            tracing::warn!("Internal error in RDB reading offset {offset} -> {reason}");
        };
        match &self.reason {
            Reason::Magic => tracing::warn!("Wrong signature trying to load DB from file"),
            Reason::Version(version) => {
                tracing::warn!("Can't handle RDB format version {version}");
            }
            Reason::Checksum { found, expected } => {
                tracing::warn!(
                    "Wrong RDB checksum expected: ({expected:x}) but got ({found:x}). Aborting now."
                );
                internal("RDB CRC error".into());
            }
            Reason::Format(RdbError::Truncated | RdbError::Io(_))
            | Reason::Value {
                error: RdbError::Truncated | RdbError::Io(_),
                ..
            } => {
                tracing::warn!("Short read or OOM loading DB. Unrecoverable error, aborting now.");
                internal("Unexpected EOF reading RDB file".into());
            }
            Reason::Value {
                error: RdbError::UnknownType(kind),
                ..
            } => internal(format!("Unknown RDB encoding type {kind}")),
            Reason::Value {
                error: RdbError::Module(_),
                ..
            } => {}
            Reason::Value { structure, .. } => {
                internal(format!("{structure} integrity check failed."));
            }
            Reason::Format(error) => internal(error.to_string()),
            Reason::OldFunctions | Reason::ModuleAux(_) => {}
        }
    }
}

/// Which server writes a version that is not supported.
fn hint(version: u16) -> &'static str {
    match version {
        12.. if version < 80 => " (Redis 7.4 and later write it)",
        80.. => " (Valkey 9 writes it)",
        _ => "",
    }
}

/// What stands next in a file.
#[derive(Debug)]
pub(crate) enum Item {
    Aux(Box<[u8]>, Box<[u8]>),
    Library(Box<[u8]>),
    Key(SavedKey),
}

/// A key with its value.
#[derive(Debug)]
pub(crate) struct SavedKey {
    pub(crate) head: KeyHead,
    pub(crate) key: Box<[u8]>,
    pub(crate) value: Built,
}

/// What stands next in a file, borrowed where it need not be built.
#[derive(Debug)]
pub(crate) enum Part<'a> {
    Item(Item),
    /// How many keys a database has, as the file says.
    Sizes {
        db: u64,
        keys: u64,
    },
    /// A key with a string.
    Text(TextKey<'a>),
}

/// A key with a string, both borrowed from the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TextKey<'a> {
    pub(crate) head: KeyHead,
    pub(crate) key: &'a [u8],
    pub(crate) value: &'a [u8],
}

/// What stands before a key.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KeyHead {
    pub(crate) db: u64,
    /// In Unix milliseconds.
    pub(crate) deadline: Option<u64>,
    pub(crate) idle_s: Option<u64>,
    /// The counter of accesses under LFU.
    pub(crate) frequency: Option<u8>,
}

/// Reads a file.
#[derive(Debug)]
pub(crate) struct FileReader<R> {
    reader: Reader<FileInput<R>>,
    /// The key that was read last.
    key: Vec<u8>,
    version: u16,
    db: u64,
    limits: ValueLimits,
    seed: (u64, u64),
    verify: bool,
    ended: bool,
    /// Keys left out because their collections have no elements.
    empty_keys: u64,
}

/// What stands next in a file: its end, something that is no key, or a key's head with its type and its offset.
enum Next {
    End,
    Part(Part<'static>),
    Key(KeyHead, u8, u64),
}

impl<R: Read> FileReader<R> {
    /// Reads the header. `verify` is `rdbchecksum`.
    pub(crate) fn new(
        source: R,
        limits: ValueLimits,
        seed: (u64, u64),
        verify: bool,
    ) -> Result<Self, FileError> {
        let mut reader = Reader::new(FileInput::new(source));
        let header = reader.array::<9>();
        let header = header.map_err(|error| at(0, Reason::Format(error)))?;
        let Some(version) = version_of(&header) else {
            return Err(at(0, Reason::Magic));
        };
        if !(1..=MAX_VERSION).contains(&version) {
            return Err(at(5, Reason::Version(version)));
        }
        Ok(Self {
            reader,
            key: Vec::new(),
            version,
            db: 0,
            limits,
            seed,
            verify,
            ended: false,
            empty_keys: 0,
        })
    }

    pub(crate) fn version(&self) -> u16 {
        self.version
    }

    /// Bytes read so far.
    pub(crate) fn offset(&self) -> u64 {
        self.reader.input().offset()
    }

    /// Keys left out so far because their collections have no elements.
    pub(crate) fn empty_keys(&self) -> u64 {
        self.empty_keys
    }

    /// The next item, none at the end of the file. After an error nothing more can be read.
    pub(crate) fn next_item(&mut self) -> Result<Option<Item>, FileError> {
        loop {
            return Ok(match self.next_part()? {
                None => None,
                Some(Part::Sizes { .. }) => continue,
                Some(Part::Item(item)) => Some(item),
                Some(Part::Text(TextKey { head, key, value })) => Some(Item::Key(SavedKey {
                    head,
                    key: key.into(),
                    value: Built::String(value.to_vec()),
                })),
            });
        }
    }

    /// As [`FileReader::next_item`], without a copy of strings. Collections without elements, which old versions of Redis
    /// could save by mistake, are left out, as Redis does.
    pub(crate) fn next_part(&mut self) -> Result<Option<Part<'_>>, FileError> {
        let (head, start) = loop {
            let (mut head, kind, start) = match self.next_key_or_item()? {
                Next::End => return Ok(None),
                Next::Part(part) => return Ok(Some(part)),
                Next::Key(head, kind, start) => (head, kind, start),
            };
            head.db = self.db;
            let format = |error| at(start, Reason::Format(error));
            self.reader.string_into(&mut self.key).map_err(format)?;
            if kind == kind::STRING {
                break (head, start);
            }
            let mut builder = Builder::new(kind, self.limits, self.seed);
            match decode(kind, &mut self.reader, &mut builder) {
                Ok(()) => {
                    return Ok(Some(Part::Item(Item::Key(SavedKey {
                        head,
                        key: self.key.as_slice().into(),
                        value: builder.finish(),
                    }))));
                }
                Err(RdbError::Empty) => self.note_empty(),
                Err(error) => return Err(at_key(start, &self.key, kind, error)),
            }
        };
        let key = &self.key;
        let value = self.reader.string();
        let value = value.map_err(|error| at_key(start, key, kind::STRING, error))?;
        Ok(Some(Part::Text(TextKey { head, key, value })))
    }

    /// Reads what stands before a key, and its type; or something that is no key.
    #[inline]
    fn next_key_or_item(&mut self) -> Result<Next, FileError> {
        let mut head = KeyHead::default();
        loop {
            if self.ended {
                return Ok(Next::End);
            }
            let start = self.offset();
            let format = |error| at(start, Reason::Format(error));
            let reader = &mut self.reader;
            match reader.byte().map_err(format)? {
                opcode::AUX => {
                    let name = reader.string().map_err(format)?.into();
                    let value = reader.string().map_err(format)?.into();
                    return Ok(Next::Part(Part::Item(Item::Aux(name, value))));
                }
                opcode::FUNCTION => {
                    let code = reader.string().map_err(format)?.into();
                    return Ok(Next::Part(Part::Item(Item::Library(code))));
                }
                opcode::FUNCTION_PRE_GA => return Err(at(start, Reason::OldFunctions)),
                opcode::MODULE_AUX => {
                    let name = module_name(reader.length().map_err(format)?);
                    return Err(at(start, Reason::ModuleAux(name)));
                }
                opcode::DATABASE => self.db = reader.length().map_err(format)?,
                opcode::SIZES => {
                    let keys = reader.length().map_err(format)?;
                    // How many of them have a deadline.
                    reader.length().map_err(format)?;
                    return Ok(Next::Part(Part::Sizes { db: self.db, keys }));
                }
                opcode::DEADLINE_MS => {
                    let ms = i64::from_le_bytes(reader.array().map_err(format)?);
                    head.deadline = Some(u64::try_from(ms).unwrap_or(0));
                }
                opcode::DEADLINE_S => {
                    let seconds = i32::from_le_bytes(reader.array().map_err(format)?);
                    head.deadline = Some(u64::try_from(seconds).unwrap_or(0) * 1000);
                }
                opcode::IDLE => head.idle_s = Some(reader.length().map_err(format)?),
                opcode::FREQUENCY => head.frequency = Some(reader.byte().map_err(format)?),
                opcode::END => {
                    self.ended = true;
                    self.check_end()?;
                }
                kind => return Ok(Next::Key(head, kind, start)),
            }
        }
    }

    fn note_empty(&mut self) {
        self.empty_keys += 1;
        if self.empty_keys <= EMPTY_KEYS_LOGGED {
            let key = self.key.escape_ascii();
            tracing::info!("rdbLoadObject skipping empty key: {key}");
        }
    }

    fn check_end(&mut self) -> Result<(), FileError> {
        if self.version < CHECKSUM_VERSION {
            return Ok(());
        }
        let (offset, expected) = (self.offset(), self.reader.input().checksum());
        let found = self.reader.array().map(u64::from_le_bytes);
        let found = found.map_err(|error| at(offset, Reason::Format(error)))?;
        if self.verify && found != 0 && found != expected {
            return Err(at(offset, Reason::Checksum { found, expected }));
        }
        Ok(())
    }
}

fn at(offset: u64, reason: Reason) -> FileError {
    FileError { offset, reason }
}

fn at_key(offset: u64, key: &[u8], kind: u8, error: RdbError) -> FileError {
    let key = key.escape_ascii().to_string();
    let structure = structure_name(kind);
    at(
        offset,
        Reason::Value {
            key,
            structure,
            error,
        },
    )
}

/// The version in a header, if it is one.
fn version_of(header: &[u8; 9]) -> Option<u16> {
    let digits: &[u8] = match header.strip_prefix(VALKEY_MAGIC) {
        Some(digits) => digits,
        None => header.strip_prefix(MAGIC)?,
    };
    let digits = digits.iter().all(u8::is_ascii_digit).then_some(digits)?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// What a writer says of a key besides its value.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KeyFacts {
    pub(crate) deadline: Option<u64>,
    pub(crate) idle_s: Option<u64>,
    pub(crate) frequency: Option<u8>,
}

/// Writes a file, piece by piece.
#[derive(Debug)]
pub(crate) struct FileWriter {
    out: Vec<u8>,
    scratch: Vec<u8>,
    checksum: u64,
    /// Bytes of `out` that are in the checksum already.
    counted: usize,
    compression: Compression,
    /// `rdbchecksum`.
    with_checksum: bool,
}

impl FileWriter {
    /// Writes the header.
    pub(crate) fn new(compression: Compression, with_checksum: bool) -> Self {
        let mut writer = Self {
            out: Vec::new(),
            scratch: Vec::new(),
            checksum: 0,
            counted: 0,
            compression,
            with_checksum,
        };
        writer.out.extend_from_slice(MAGIC);
        let version = format!("{WRITTEN_VERSION:04}");
        writer.out.extend_from_slice(version.as_bytes());
        writer
    }

    fn writer(&mut self) -> Writer<'_> {
        Writer::new(&mut self.out, self.compression)
    }

    pub(crate) fn aux(&mut self, name: &str, value: &[u8]) {
        let mut writer = self.writer();
        writer.byte(opcode::AUX);
        writer.string(name.as_bytes());
        writer.string(value);
    }

    /// A library of functions.
    pub(crate) fn library(&mut self, code: &[u8]) {
        let mut writer = self.writer();
        writer.byte(opcode::FUNCTION);
        writer.string(code);
    }

    /// Goes on with a database that was begun before.
    pub(crate) fn select(&mut self, db: u64) {
        let mut writer = self.writer();
        writer.byte(opcode::DATABASE);
        writer.length(db);
    }

    /// Begins a database.
    pub(crate) fn database(&mut self, db: u64, keys: u64, with_deadline: u64) {
        let mut writer = self.writer();
        writer.byte(opcode::DATABASE);
        writer.length(db);
        writer.byte(opcode::SIZES);
        writer.length(keys);
        writer.length(with_deadline);
    }

    pub(crate) fn key(&mut self, key: &[u8], facts: KeyFacts, value: ValueRef<'_>) {
        if let Some(deadline) = facts.deadline {
            self.out.push(opcode::DEADLINE_MS);
            self.out.extend_from_slice(&deadline.to_le_bytes());
        }
        let mut writer = Writer::new(&mut self.out, self.compression);
        if let Some(idle_s) = facts.idle_s {
            writer.byte(opcode::IDLE);
            writer.length(idle_s);
        }
        if let Some(frequency) = facts.frequency {
            writer.byte(opcode::FREQUENCY);
            writer.byte(frequency);
        }
        if let ValueRef::String(string) = value {
            writer.byte(kind::STRING);
            writer.string(key);
            return match string {
                StringRef::Int(number) => writer.integer_string(number),
                StringRef::Bytes { bytes, .. } => writer.string(bytes),
            };
        }
        // A value is written with its type in front, and the key stands between the two.
        self.scratch.clear();
        write_value(&mut Writer::new(&mut self.scratch, self.compression), value);
        let (kind, value) = self.scratch.split_at(1);
        self.out.extend_from_slice(kind);
        Writer::new(&mut self.out, self.compression).string(key);
        self.out.extend_from_slice(value);
    }

    /// Writes the end of the file.
    pub(crate) fn finish(&mut self) {
        self.out.push(opcode::END);
        self.count();
        let checksum = if self.with_checksum { self.checksum } else { 0 };
        self.out.extend_from_slice(&checksum.to_le_bytes());
        self.counted = self.out.len();
    }

    /// Bytes that wait to be taken.
    pub(crate) fn pending(&self) -> usize {
        self.out.len()
    }

    /// Hands out what was written since the last call.
    pub(crate) fn flush(&mut self, sink: &mut dyn Write) -> io::Result<()> {
        self.count();
        self.counted = 0;
        let written = sink.write_all(&self.out);
        self.out.clear();
        written
    }

    fn count(&mut self) {
        if self.with_checksum {
            self.checksum = crc64::update(self.checksum, &self.out[self.counted..]);
        }
        self.counted = self.out.len();
    }
}
