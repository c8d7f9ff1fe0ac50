//! Raw copies of entries, for the thread that encodes them.
//!
//! What lies inside an entry is copied into one buffer; a boxed value is cloned beside it. So a
//! piece of small keys costs one allocation for some hundred of them, and copying a key costs what
//! copying its bytes does.
//!
//! ```text
//! per key:  1 byte   kind (2 bits), whether a deadline (bit 2) and access data (bit 3) follow
//!          [8 bytes  deadline]
//!          [4 bytes  access data]
//!           4 bytes  length of the key, and the key
//!           the value, by its kind:
//!             0   8 bytes, an integer
//!             1   4 bytes length, and a string
//!             2   1 byte type and form, 4 bytes length, and a small collection
//!             3   nothing: the next one of `values`
//! ```

use super::super::entry::Entry;
use super::super::value::{NewValue, StringRef, Type, Value, ValueRef};

/// A piece is handed over when it holds this much.
const PIECE_BYTES: usize = 64 * 1024;
/// What the last key of a piece may take without the buffer growing.
const SLACK_BYTES: usize = 8 * 1024;

const INT: u8 = 0;
const BYTES: u8 = 1;
const SMALL: u8 = 2;
const BOXED: u8 = 3;
const KIND: u8 = 3;
const DEADLINE: u8 = 4;
const ACCESS: u8 = 8;

/// Copies of some entries of one database.
#[derive(Debug, Default)]
pub struct Piece {
    /// The number of the database when the snapshot began.
    pub(crate) db: usize,
    keys: usize,
    bytes: Vec<u8>,
    values: Vec<Value>,
    /// What `values` take that the data does not share with them.
    value_bytes: usize,
}

/// A key in a piece.
#[derive(Debug)]
pub(crate) struct Copied<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) deadline: Option<u64>,
    /// The access data of the entry, if they were copied.
    pub(crate) access: Option<u32>,
    pub(crate) value: ValueRef<'a>,
}

impl Piece {
    /// Memory that the piece takes, without blocks that it shares with the data.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.bytes.capacity() + self.value_bytes
    }

    /// How many keys are in it.
    #[must_use]
    pub fn keys(&self) -> usize {
        self.keys
    }

    /// The copied keys.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Copied<'_>> {
        let mut bytes = &self.bytes[..];
        let mut values = self.values.iter();
        std::iter::from_fn(move || {
            let (&tag, rest) = bytes.split_first()?;
            bytes = rest;
            let deadline = match tag & DEADLINE {
                0 => None,
                _ => Some(u64::from_le_bytes(array(&mut bytes)?)),
            };
            let access = match tag & ACCESS {
                0 => None,
                _ => Some(u32::from_le_bytes(array(&mut bytes)?)),
            };
            let key = text(&mut bytes)?;
            let value = match tag & KIND {
                INT => ValueRef::String(StringRef::Int(i64::from_le_bytes(array(&mut bytes)?))),
                BYTES => ValueRef::String(StringRef::Bytes {
                    bytes: text(&mut bytes)?,
                    raw: false,
                    shared: None,
                }),
                SMALL => {
                    let [type_and_form] = array(&mut bytes)?;
                    let type_of = *Type::ALL.get(usize::from(type_and_form >> 4))?;
                    ValueRef::small(type_of, type_and_form & 15, text(&mut bytes)?)
                }
                _ => values.next()?.view(),
            };
            Some(Copied {
                key,
                deadline,
                access,
                value,
            })
        })
    }
}

fn array<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (array, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*array)
}

fn text<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = u32::from_le_bytes(array(bytes)?) as usize;
    let (text, rest) = bytes.split_at_checked(len)?;
    *bytes = rest;
    Some(text)
}

/// Fills pieces.
#[derive(Debug)]
pub(crate) struct PieceBuilder {
    current: Piece,
    full: Vec<Piece>,
    /// Access data are copied too.
    with_access: bool,
}

impl PieceBuilder {
    pub(crate) fn new(db: usize, with_access: bool) -> Self {
        Self {
            current: empty(db),
            full: Vec::new(),
            with_access,
        }
    }

    /// Copies an entry.
    pub(crate) fn add(&mut self, entry: &Entry) {
        let piece = &mut self.current;
        let (key, deadline) = (entry.key(), entry.deadline());
        let mut flags = if deadline.is_some() { DEADLINE } else { 0 };
        if self.with_access {
            flags |= ACCESS;
        }
        let boxed = entry.boxed();
        let value = match boxed {
            Some(value) => {
                let copy = value.clone();
                piece.value_bytes += size_of::<Value>() + copy.copy_bytes();
                piece.values.push(copy);
                None
            }
            None => Some(entry.inline_value()),
        };
        let kind = match &value {
            None | Some(NewValue::Boxed(_)) => BOXED,
            Some(NewValue::Int(_)) => INT,
            Some(NewValue::Bytes(_) | NewValue::RawBytes(_)) => BYTES,
            Some(NewValue::Small(..)) => SMALL,
        };
        let bytes = &mut piece.bytes;
        if bytes.capacity() == 0 {
            bytes.reserve(PIECE_BYTES + SLACK_BYTES);
        }
        bytes.push(kind | flags);
        if let Some(deadline) = deadline {
            bytes.extend_from_slice(&deadline.to_le_bytes());
        }
        if self.with_access {
            bytes.extend_from_slice(&entry.access_clock().to_le_bytes());
        }
        // No key and no value inside of an entry is longer than a request's longest argument.
        bytes.extend_from_slice(&(key.len() as u32).to_le_bytes());
        bytes.extend_from_slice(key);
        match value {
            None | Some(NewValue::Boxed(_)) => {}
            Some(NewValue::Int(int)) => bytes.extend_from_slice(&int.to_le_bytes()),
            Some(NewValue::Bytes(text) | NewValue::RawBytes(text)) => push_text(bytes, text),
            Some(NewValue::Small(type_of, form, text)) => {
                bytes.push((type_of as u8) << 4 | form);
                push_text(bytes, text);
            }
        }
        piece.keys += 1;
        if piece.bytes.len() + piece.value_bytes >= PIECE_BYTES {
            // A few large values do not need the room for many small ones.
            if piece.bytes.len() < piece.bytes.capacity() / 2 {
                piece.bytes.shrink_to_fit();
            }
            let next = empty(piece.db);
            self.full.push(std::mem::replace(&mut self.current, next));
        }
    }

    /// The pieces that are full.
    pub(crate) fn take_full(&mut self, pieces: &mut Vec<Piece>) {
        pieces.append(&mut self.full);
    }

    /// All pieces; nothing more is copied.
    pub(crate) fn finish(mut self, pieces: &mut Vec<Piece>) {
        pieces.append(&mut self.full);
        if self.current.keys > 0 {
            self.current.bytes.shrink_to_fit();
            pieces.push(self.current);
        }
    }
}

fn empty(db: usize) -> Piece {
    Piece {
        db,
        ..Piece::default()
    }
}

fn push_text(bytes: &mut Vec<u8>, text: &[u8]) {
    bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
    bytes.extend_from_slice(text);
}
