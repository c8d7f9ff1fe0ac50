//! How the bytes of an entry are divided: its first word, and what follows from it.
//!
//! Arithmetic only. Nothing here reads or writes an entry, and the module above trusts every offset
//! it gets from here.

use std::alloc::Layout;

use super::super::value::{NewValue, Type, Value};
use super::{INLINE_MAX, SMALL_MAX};

/// The longest key kept inside its entry: what the header's 15 bits can say.
pub(super) const INLINE_KEY_MAX: usize = (1 << KEY_LEN_BITS) - 1;
const KEY_LEN_BITS: u32 = 15;

/// Entries are asked for in steps of one word, which no allocator's granularity is finer than: a
/// value whose length changes within the step is replaced in place.
pub(super) const STEP: usize = 8;

pub(super) const HEADER: usize = 8;
pub(super) const WORD: usize = 8;
pub(super) const BIG_KEY_SIZE: usize = 16;

pub(super) const KIND_INLINE: u8 = 0;
pub(super) const KIND_INT: u8 = 1;
pub(super) const KIND_BOXED: u8 = 2;
pub(super) const KIND: u8 = 0b11;
pub(super) const RAW: u8 = 0b100;
/// Its value is the deadline's size, so that the key's offset is a sum without a branch.
pub(super) const DEADLINE: u8 = WORD as u8;
pub(super) const BIG_KEY: u8 = 0b1_0000;
/// The three bits of the value's [`Type`].
pub(super) const TYPE: u8 = 0b1110_0000;
const TYPE_SHIFT: u32 = TYPE.trailing_zeros();

/// The lower 13 of the header's last 16 bits are the length of an inline value, the upper three the
/// form of a small collection.
const LEN_BITS: u32 = 13;
const LEN: u16 = (1 << LEN_BITS) - 1;
const FORM_SHIFT: u32 = LEN_BITS;
const FORMS: u8 = 1 << (16 - LEN_BITS);
const _: () = assert!(INLINE_MAX <= SMALL_MAX && SMALL_MAX <= LEN as usize);
/// The mark that a running snapshot sets, see `Entry::set_copied`. It stands behind the key's length.
const COPIED: u64 = 1 << (32 + KEY_LEN_BITS);

/// The first word of an entry.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub(super) struct Header(u64);

impl Header {
    pub(super) fn new(flags: u8, clock: u32, key_len: u16, value_len: u16) -> Self {
        let clock = u64::from(clock & 0xff_ffff);
        Header(
            u64::from(flags) | clock << 8 | u64::from(key_len) << 32 | u64::from(value_len) << 48,
        )
    }

    pub(super) fn flags(self) -> u8 {
        self.0 as u8
    }

    pub(super) fn clock(self) -> u32 {
        (self.0 >> 8) as u32 & 0xff_ffff
    }

    pub(super) fn has(self, flag: u8) -> bool {
        self.flags() & flag != 0
    }

    pub(super) fn kind(self) -> u8 {
        self.flags() & KIND
    }

    pub(super) fn key_offset(self) -> usize {
        HEADER + usize::from(self.flags() & DEADLINE)
    }

    pub(super) fn inline_key_len(self) -> usize {
        (self.0 >> 32) as usize & INLINE_KEY_MAX
    }

    pub(super) fn inline_value_len(self) -> usize {
        usize::from((self.0 >> 48) as u16 & LEN)
    }

    /// How the bytes of a small collection are to be read.
    pub(super) fn form(self) -> u8 {
        ((self.0 >> 48) as u16 >> FORM_SHIFT) as u8
    }

    pub(super) fn type_of(self) -> Type {
        Type::ALL[usize::from((self.flags() & TYPE) >> TYPE_SHIFT).min(Type::ALL.len() - 1)]
    }

    pub(super) fn value_offset(self) -> usize {
        let key = if self.has(BIG_KEY) {
            BIG_KEY_SIZE
        } else {
            self.inline_key_len()
        };
        self.key_offset() + key
    }

    /// The bytes that carry something; the allocation is rounded up from here.
    pub(super) fn size(self) -> usize {
        let value = if self.kind() == KIND_INLINE {
            self.inline_value_len()
        } else {
            WORD
        };
        self.value_offset() + value
    }

    pub(super) fn layout(self) -> Layout {
        let size = self.size().next_multiple_of(STEP);
        Layout::from_size_align(size, STEP)
            .expect("an entry is at most 32 KiB of key and 8 KiB of value")
    }

    pub(super) fn with_flags(self, flags: u8) -> Self {
        Header(self.0 & !0xff | u64::from(flags))
    }

    pub(super) fn is_copied(self) -> bool {
        self.0 & COPIED != 0
    }

    pub(super) fn with_copied(self, copied: bool) -> Self {
        Header(self.0 & !COPIED | if copied { COPIED } else { 0 })
    }

    pub(super) fn with_clock(self, clock: u32) -> Self {
        let clock = u64::from(clock & 0xff_ffff);
        Header(self.0 & !(0xff_ffff << 8) | clock << 8)
    }

    /// The header of the same entry with another value.
    pub(super) fn with_value(self, value: &Tail<'_>) -> Self {
        let flags = self.flags() & !(KIND | RAW | TYPE) | value.flags();
        Header::new(
            flags,
            self.clock(),
            self.inline_key_len() as u16,
            value.len_and_form(),
        )
        .with_copied(self.is_copied())
    }
}

/// A new value in the form it takes inside an entry.
pub(super) enum Tail<'a> {
    Inline {
        bytes: &'a [u8],
        raw: bool,
    },
    Small {
        bytes: &'a [u8],
        form: u8,
        type_of: Type,
    },
    Int(i64),
    Boxed(Box<Value>),
}

impl<'a> Tail<'a> {
    pub(super) fn new(value: NewValue<'a>) -> Self {
        let (bytes, raw) = match value {
            NewValue::Int(number) => return Tail::Int(number),
            NewValue::Boxed(value) => return Tail::Boxed(Box::new(value)),
            NewValue::Small(type_of, form, bytes) => {
                // The header has so many bits for them, and what reads the entry trusts the header.
                assert!(
                    bytes.len() <= SMALL_MAX && form < FORMS,
                    "a small collection fits its entry"
                );
                return Tail::Small {
                    bytes,
                    form,
                    type_of,
                };
            }
            NewValue::Bytes(bytes) => (bytes, false),
            NewValue::RawBytes(bytes) => (bytes, true),
        };
        if bytes.len() > INLINE_MAX {
            return Tail::Boxed(Box::new(Value::Bytes(bytes.to_vec())));
        }
        Tail::Inline { bytes, raw }
    }

    pub(super) fn flags(&self) -> u8 {
        match self {
            Tail::Inline { raw: false, .. } => KIND_INLINE,
            Tail::Inline { raw: true, .. } => KIND_INLINE | RAW,
            Tail::Small { type_of, .. } => KIND_INLINE | (*type_of as u8) << TYPE_SHIFT,
            Tail::Int(_) => KIND_INT,
            Tail::Boxed(value) => KIND_BOXED | (value.type_of() as u8) << TYPE_SHIFT,
        }
    }

    /// The header's last 16 bits.
    pub(super) fn len_and_form(&self) -> u16 {
        match self {
            Tail::Inline { bytes, .. } => bytes.len() as u16,
            Tail::Small { bytes, form, .. } => bytes.len() as u16 | u16::from(*form) << FORM_SHIFT,
            Tail::Int(_) | Tail::Boxed(_) => 0,
        }
    }
}
