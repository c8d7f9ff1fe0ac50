//! The table: an array part and a hash part of chained nodes inside one vector.
//!
//! It keeps the layout rules of Lua 5.1, because scripts can see them: which keys move to the array part, where a
//! colliding node goes, and in which order a resize inserts the old nodes decide the order of `pairs` and what `#`
//! returns for a table with holes. String, number and boolean keys therefore come out in the order Redis gives. Keys that
//! are tables, functions, threads or userdata are hashed by their index here and by their address there.
//!
//! A colliding key whose occupant is not in its own main position takes the place, and the occupant moves to a free
//! node; otherwise the new key goes to the free node. `last_free` only moves down; when it reaches zero the table is
//! resized.

use crate::base::value::{Str, TableId, Value};

const NONE: u32 = u32::MAX;
/// The largest power of two an array part can have: 2^26 elements.
const MAX_BITS: usize = 26;

#[derive(Clone, Copy, Debug)]
struct Node {
    key: Value,
    val: Value,
    next: u32,
}

const EMPTY: Node = Node {
    key: Value::Nil,
    val: Value::Nil,
    next: NONE,
};

/// Bytes of one array element, for accounting.
pub(crate) const ARRAY_SLOT_BYTES: usize = size_of::<Value>();
/// Bytes of one hash node, for accounting.
pub(crate) const NODE_BYTES: usize = size_of::<Node>();

/// A Lua table.
#[derive(Debug, Default)]
pub(crate) struct Table {
    array: Vec<Value>,
    nodes: Vec<Node>,
    last_free: u32,
    /// The metatable, if any.
    pub(crate) meta: Option<TableId>,
    /// A bit per metamethod known to be absent from this table; cleared by every write of a new key.
    pub(crate) absent: u8,
    /// Writes by scripts raise an error.
    pub(crate) readonly: bool,
    /// Colour of the collector.
    pub(crate) mark: u8,
}

/// Where a key is stored.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Slot {
    Array(usize),
    Node(usize),
}

impl Table {
    pub(crate) fn with_sizes(array: usize, hash: usize) -> Table {
        let mut table = Table::default();
        if array > 0 || hash > 0 {
            table.resize(array, hash);
        }
        table
    }

    /// Bytes the two parts occupy.
    pub(crate) fn bytes(&self) -> usize {
        self.array.len() * ARRAY_SLOT_BYTES + self.nodes.len() * NODE_BYTES
    }

    /// Bytes that both parts get if the next new key does not fit; they are there beside the old ones for a moment.
    pub(crate) fn growth_bytes(&self) -> usize {
        if self.last_free > 0 {
            0
        } else {
            self.bytes() * 2
        }
    }

    pub(crate) fn array(&self) -> &[Value] {
        &self.array
    }

    /// Slots of both parts, which a search of all keys passes.
    pub(crate) fn slots(&self) -> usize {
        self.array.len() + self.nodes.len()
    }

    /// The pairs of the hash part whose value is not nil.
    pub(crate) fn hash_pairs(&self) -> impl Iterator<Item = (Value, Value)> {
        self.nodes
            .iter()
            .filter(|node| !node.val.is_nil())
            .map(|node| (node.key, node.val))
    }

    /// The value of a canonical string key.
    #[inline]
    pub(crate) fn get_str(&self, key: Str) -> Value {
        let mask = self.nodes.len().wrapping_sub(1);
        let mut at = key.hash as usize & mask;
        while let Some(node) = self.nodes.get(at) {
            if let Value::Str(other) = node.key
                && other.id == key.id
            {
                return node.val;
            }
            at = node.next as usize;
        }
        Value::Nil
    }

    #[inline]
    pub(crate) fn get_number(&self, key: f64) -> Value {
        let index = key as usize;
        if index as f64 == key
            && let Some(value) = self.array.get(index.wrapping_sub(1))
        {
            return *value;
        }
        self.hash_get(Value::Number(key))
    }

    #[inline]
    pub(crate) fn get_index(&self, index: usize) -> Value {
        match self.array.get(index.wrapping_sub(1)) {
            Some(value) => *value,
            None => self.hash_get(Value::Number(index as f64)),
        }
    }

    /// The value of a canonical key.
    #[inline]
    pub(crate) fn get(&self, key: Value) -> Value {
        match key {
            Value::Str(key) => self.get_str(key),
            Value::Number(key) => self.get_number(key),
            Value::Nil => Value::Nil,
            _ => self.hash_get(key),
        }
    }

    fn hash_get(&self, key: Value) -> Value {
        match self.find_node(key) {
            Some(at) => self.nodes[at].val,
            None => Value::Nil,
        }
    }

    fn find_node(&self, key: Value) -> Option<usize> {
        if self.nodes.is_empty() {
            return None;
        }
        let mut at = self.main_position(key);
        loop {
            let node = self.nodes.get(at)?;
            if node.key.same(key) {
                return Some(at);
            }
            at = node.next as usize;
        }
    }

    #[inline]
    fn find(&self, key: Value) -> Option<Slot> {
        if let Value::Number(number) = key {
            let index = number as usize;
            if index as f64 == number && index.wrapping_sub(1) < self.array.len() {
                return Some(Slot::Array(index - 1));
            }
        }
        self.find_node(key).map(Slot::Node)
    }

    fn main_position(&self, key: Value) -> usize {
        let mask = self.nodes.len() - 1;
        match key {
            Value::Str(key) => key.hash as usize & mask,
            Value::Number(key) => {
                if key == 0.0 {
                    return 0;
                }
                let bits = key.to_bits();
                ((bits as u32).wrapping_add((bits >> 32) as u32)) as usize % (mask | 1)
            }
            Value::Bool(key) => usize::from(key) & mask,
            Value::Nil => 0,
            Value::Table(TableId(id)) => id as usize * 5 % (mask | 1),
            Value::Function(id) => id.index() * 7 % (mask | 1),
            Value::UserData(id) => id.index() * 3 % (mask | 1),
            Value::Thread(id) => id.index() * 11 % (mask | 1),
            Value::Light(id) => id as usize % (mask | 1),
        }
    }

    /// Replaces the value of a string key that is present with a value that is not nil.
    #[inline]
    pub(crate) fn replace_str(&mut self, key: Str, val: Value) -> bool {
        let mask = self.nodes.len().wrapping_sub(1);
        let mut at = key.hash as usize & mask;
        while let Some(node) = self.nodes.get_mut(at) {
            if let Value::Str(other) = node.key
                && other.id == key.id
            {
                if node.val.is_nil() {
                    return false;
                }
                node.val = val;
                return true;
            }
            at = node.next as usize;
        }
        false
    }

    /// Replaces a value of the array part that is not nil.
    #[inline]
    pub(crate) fn replace_number(&mut self, key: f64, val: Value) -> bool {
        let index = key as usize;
        if index as f64 == key
            && let Some(old) = self.array.get_mut(index.wrapping_sub(1))
            && !old.is_nil()
        {
            *old = val;
            return true;
        }
        false
    }

    /// Sets a canonical key that is neither nil nor NaN.
    pub(crate) fn set(&mut self, key: Value, val: Value) {
        self.absent = 0;
        match self.find(key) {
            Some(Slot::Array(at)) => self.array[at] = val,
            Some(Slot::Node(at)) => {
                let node = &mut self.nodes[at];
                if node.val.is_nil() {
                    // The old key may be a collected string whose index is in use again: take the new hash.
                    node.key = key;
                }
                node.val = val;
            }
            None => self.insert(key, val),
        }
    }

    pub(crate) fn set_index(&mut self, index: usize, val: Value) {
        match self.array.get_mut(index.wrapping_sub(1)) {
            Some(old) => *old = val,
            None => self.set(Value::Number(index as f64), val),
        }
    }

    fn insert(&mut self, key: Value, val: Value) {
        if self.nodes.is_empty() {
            return self.grow(key, val);
        }
        let main = self.main_position(key);
        let mut place = main;
        if !self.nodes[main].val.is_nil() {
            let Some(free) = self.free_node() else {
                return self.grow(key, val);
            };
            let other = self.main_position(self.nodes[main].key);
            if other == main {
                self.nodes[free].next = self.nodes[main].next;
                self.nodes[main].next = free as u32;
                place = free;
            } else {
                let mut before = other;
                while self.nodes[before].next as usize != main {
                    before = self.nodes[before].next as usize;
                }
                self.nodes[before].next = free as u32;
                self.nodes[free] = self.nodes[main];
                self.nodes[main] = EMPTY;
            }
        }
        let node = &mut self.nodes[place];
        node.key = key;
        node.val = val;
    }

    fn free_node(&mut self) -> Option<usize> {
        while self.last_free > 0 {
            self.last_free -= 1;
            if self.nodes[self.last_free as usize].key.is_nil() {
                return Some(self.last_free as usize);
            }
        }
        None
    }

    /// Chooses new sizes for all present keys and `key`, then inserts it.
    fn grow(&mut self, key: Value, val: Value) {
        let mut counts = [0usize; MAX_BITS + 1];
        let mut in_array = self.count_array(&mut counts);
        let mut total = in_array;
        for (key, _) in self.hash_pairs() {
            in_array += count_key(key, &mut counts);
            total += 1;
        }
        in_array += count_key(key, &mut counts);
        total += 1;
        let (array, used) = array_size(&counts, in_array);
        self.resize(array, total - used);
        self.set(key, val);
    }

    fn count_array(&self, counts: &mut [usize; MAX_BITS + 1]) -> usize {
        let mut total = 0;
        for (at, value) in self.array.iter().enumerate() {
            if !value.is_nil() {
                counts[ceil_log2(at + 1)] += 1;
                total += 1;
            }
        }
        total
    }

    /// Gives the parts new sizes; what no longer fits in the array part moves to the hash part.
    pub(crate) fn resize(&mut self, array: usize, hash: usize) {
        let moved = if array < self.array.len() {
            self.array.split_off(array)
        } else {
            self.array.reserve_exact(array - self.array.len());
            self.array.resize(array, Value::Nil);
            Vec::new()
        };
        let size = if hash == 0 { 0 } else { 1 << ceil_log2(hash) };
        let old = std::mem::replace(&mut self.nodes, vec![EMPTY; size]);
        self.last_free = size as u32;
        for (at, value) in moved.into_iter().enumerate() {
            if !value.is_nil() {
                self.set_index(array + at + 1, value);
            }
        }
        self.array.shrink_to_fit();
        for node in old.iter().rev() {
            if !node.val.is_nil() {
                self.set(node.key, node.val);
            }
        }
    }

    /// Makes the array part at least this long and keeps the size of the hash part.
    pub(crate) fn grow_array(&mut self, len: usize) {
        if len > self.array.len() {
            let hash = self.nodes.len();
            self.resize(len, hash);
        }
    }

    /// A border, found as Lua 5.1 finds it, and how many elements were looked at one by one.
    pub(crate) fn border(&self) -> (usize, usize) {
        let len = self.array.len();
        if len > 0 && self.array[len - 1].is_nil() {
            let (mut low, mut high) = (0, len);
            while high - low > 1 {
                let middle = (low + high) / 2;
                if self.array[middle - 1].is_nil() {
                    high = middle;
                } else {
                    low = middle;
                }
            }
            return (low, 0);
        }
        if self.nodes.is_empty() {
            return (len, 0);
        }
        self.hash_border(len)
    }

    fn hash_border(&self, from: usize) -> (usize, usize) {
        let mut low = from;
        let mut high = from + 1;
        while !self.get_index(high).is_nil() {
            low = high;
            high *= 2;
            if high > i32::MAX as usize {
                let mut at = 1;
                while !self.get_index(at).is_nil() {
                    at += 1;
                }
                return (at - 1, at);
            }
        }
        while high - low > 1 {
            let middle = (low + high) / 2;
            if self.get_index(middle).is_nil() {
                high = middle;
            } else {
                low = middle;
            }
        }
        (low, 0)
    }

    /// The pair after `key`; `None` inside at the end, `Err` if the key is not in the table.
    pub(crate) fn next(&self, key: Value) -> Result<Option<(Value, Value)>, ()> {
        self.next_counted(key, &mut 0)
    }

    /// As [`Table::next`]; adds the empty slots before the pair to `skipped`.
    pub(crate) fn next_counted(
        &self,
        key: Value,
        skipped: &mut usize,
    ) -> Result<Option<(Value, Value)>, ()> {
        let start = match key {
            Value::Nil => 0,
            _ => match self.find(key).ok_or(())? {
                Slot::Array(at) => at + 1,
                Slot::Node(at) => self.array.len() + at + 1,
            },
        };
        if let Some(rest) = self.array.get(start..) {
            for (at, value) in rest.iter().enumerate() {
                if !value.is_nil() {
                    *skipped += at;
                    return Ok(Some((Value::Number((start + at + 1) as f64), *value)));
                }
            }
            *skipped += rest.len();
        }
        let from = start.saturating_sub(self.array.len());
        let nodes = self.nodes.get(from..).unwrap_or(&[]);
        for (at, node) in nodes.iter().enumerate() {
            if !node.val.is_nil() {
                *skipped += at;
                return Ok(Some((node.key, node.val)));
            }
        }
        *skipped += nodes.len();
        Ok(None)
    }
}

fn ceil_log2(n: usize) -> usize {
    (usize::BITS - (n - 1).leading_zeros()) as usize
}

fn count_key(key: Value, counts: &mut [usize; MAX_BITS + 1]) -> usize {
    if let Value::Number(number) = key {
        let index = number as usize;
        if index as f64 == number && index > 0 && index <= 1 << MAX_BITS {
            counts[ceil_log2(index)] += 1;
            return 1;
        }
    }
    0
}

/// The largest size of which more than half the slots would be in use, and how many would be.
fn array_size(counts: &[usize; MAX_BITS + 1], candidates: usize) -> (usize, usize) {
    let (mut size, mut used, mut sum) = (0, 0, 0);
    let mut power = 1;
    for count in counts {
        if power / 2 >= candidates {
            break;
        }
        sum += count;
        if *count > 0 && sum > power / 2 {
            size = power;
            used = sum;
        }
        if sum == candidates {
            break;
        }
        power *= 2;
    }
    (size, used)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(n: usize) -> Value {
        Value::Number(n as f64)
    }

    #[test]
    fn appended_integers_live_in_the_array_part() {
        let mut table = Table::default();
        for n in 1..=1000 {
            table.set(number(n), number(n));
        }
        assert_eq!(table.border(), (1000, 0));
        assert_eq!(table.array().len(), 1024);
        assert!((1..=1000).all(|n| table.get_index(n).same(number(n))));
    }

    #[test]
    fn next_visits_every_key_once() {
        let mut table = Table::default();
        for n in 0..500 {
            table.set(Value::Number(n as f64 * 1.5 - 100.0), number(n + 1));
        }
        let mut key = Value::Nil;
        let mut seen = 0;
        while let Ok(Some((next, _))) = table.next(key) {
            key = next;
            seen += 1;
        }
        assert_eq!(seen, 500);
        assert!(table.next(Value::Bool(true)).is_err());
    }

    #[test]
    fn a_removed_key_is_absent_and_can_return() {
        let mut table = Table::default();
        table.set(Value::Bool(true), number(1));
        table.set(Value::Bool(true), Value::Nil);
        assert!(table.get(Value::Bool(true)).is_nil());
        assert_eq!(table.hash_pairs().count(), 0);
        table.set(Value::Bool(true), number(2));
        assert!(table.get(Value::Bool(true)).same(number(2)));
    }
}
