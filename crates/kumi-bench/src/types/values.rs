//! The values that are measured: their names, their elements, and the commands that make them.

use anyhow::Result;

use crate::types::options::Family;
use crate::wire::{self, Connection};

/// Elements one command adds to a large value.
const PER_COMMAND: usize = 100;
/// The name of the one large value of a type.
pub(super) const LARGE: &str = "large";
/// The group that reads streams.
pub(super) const GROUP: &str = "group";

/// The name of a small value, 16 bytes long for indexes below a billion.
pub(super) fn key(family: Family, index: usize) -> String {
    let family = family.to_string();
    let digits = 15 - family.len();
    format!("{family}:{index:0digits$}")
}

/// The text of an element, 8 bytes long for indexes below ten million.
pub(super) fn element(index: usize) -> String {
    format!("v{index:07}")
}

/// The name of a field; `field0` and so on.
pub(super) fn field(index: usize) -> String {
    format!("field{index}")
}

/// What one collection holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) family: Family,
    pub(super) elements: usize,
    /// Sets of integers instead of texts.
    pub(super) integers: bool,
    /// The length of the last element (for hashes, of its value), where it is a long one.
    pub(super) long: Option<usize>,
}

impl Shape {
    pub(super) fn short(family: Family, elements: usize) -> Shape {
        Shape {
            family,
            elements,
            integers: false,
            long: None,
        }
    }

    /// Appends the command that makes one such collection. Streams are made entry by entry, not here.
    pub(super) fn push(self, out: &mut Vec<u8>, key: &str) {
        self.push_range(out, key, 0..self.elements);
    }

    fn push_range(self, out: &mut Vec<u8>, key: &str, range: std::ops::Range<usize>) {
        let name = match self.family {
            Family::List => "RPUSH",
            Family::Hash => "HSET",
            Family::Set => "SADD",
            Family::Zset => "ZADD",
            Family::Stream => "XADD",
        };
        let mut words = vec![name.to_owned(), key.to_owned()];
        for index in range {
            let text = match self.long {
                Some(bytes) if index + 1 == self.elements => "x".repeat(bytes),
                _ if self.integers => index.to_string(),
                _ => element(index),
            };
            match self.family {
                Family::Hash => words.push(field(index)),
                Family::Zset => words.push(index.to_string()),
                Family::List | Family::Set | Family::Stream => {}
            }
            words.push(text);
        }
        let words: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
        wire::push_command(out, &words);
    }

    /// Makes one collection of any size, some elements per command.
    pub(super) fn load_large(self, address: std::net::SocketAddr) -> Result<()> {
        let commands = self.elements.div_ceil(PER_COMMAND);
        wire::load(address, commands, |index, out| {
            let start = index * PER_COMMAND;
            let end = self.elements.min(start + PER_COMMAND);
            self.push_range(out, LARGE, start..end);
        })
    }
}

/// Appends XADD of the entry `number-1`, with two fields.
pub(super) fn push_entry(out: &mut Vec<u8>, key: &str, number: usize) {
    let id = format!("{number}-1");
    let element = element(number);
    let words = [
        "XADD",
        key,
        &id,
        "sensor",
        &element,
        "value",
        &id[..id.len() - 2],
    ];
    wire::push_command(out, &words.map(str::as_bytes));
}

/// Appends XGROUP CREATE.
pub(super) fn push_group(out: &mut Vec<u8>, key: &str) {
    wire::push_command(
        out,
        &["XGROUP", "CREATE", key, GROUP, "0"].map(str::as_bytes),
    );
}

/// Delivers every entry of a stream to one consumer, so that all of them are pending.
pub(super) fn deliver_all(address: std::net::SocketAddr, key: &str, entries: usize) -> Result<()> {
    let mut connection = Connection::open(address)?;
    let mut out = Vec::new();
    push_group(&mut out, key);
    connection.send(&out)?;
    connection.replies(1)?;
    for _ in 0..entries.div_ceil(PER_COMMAND) {
        out.clear();
        push_read(&mut out, key, &PER_COMMAND.to_string());
        connection.send(&out)?;
        connection.replies(1)?;
    }
    Ok(())
}

/// Appends XREADGROUP of new entries.
pub(super) fn push_read(out: &mut Vec<u8>, key: &str, count: &str) {
    let words = [
        "XREADGROUP",
        "GROUP",
        GROUP,
        "consumer",
        "COUNT",
        count,
        "STREAMS",
        key,
        ">",
    ];
    wire::push_command(out, &words.map(str::as_bytes));
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn names_have_sixteen_bytes_and_elements_eight() {
        for &family in Family::value_variants() {
            assert_eq!(key(family, 999_999).len(), 16, "{family}");
        }
        assert_eq!(element(4_999_999).len(), 8);
    }

    #[test]
    fn the_last_element_is_the_long_one() {
        let shape = Shape {
            long: Some(3),
            ..Shape::short(Family::Hash, 2)
        };
        let mut out = Vec::new();
        shape.push(&mut out, "h");
        let text = String::from_utf8(out).unwrap();
        assert_eq!(
            text.split("\r\n").skip(2).step_by(2).collect::<Vec<_>>(),
            ["HSET", "h", "field0", "v0000000", "field1", "xxx"]
        );
    }
}
