//! A small set of integers: sorted, each in as many bytes as the widest needs.
//!
//! ```text
//!  1 byte width (2, 4 or 8), then the integers, low byte first, ascending
//! ```
//!
//! No bytes at all are an empty set. Membership is a binary search.

/// A look at a set of integers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IntView<'a>(&'a [u8]);

impl<'a> IntView<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        IntView(bytes)
    }

    #[inline]
    fn width(self) -> usize {
        self.0.first().map_or(2, |&width| usize::from(width))
    }

    #[inline]
    fn values(self) -> &'a [u8] {
        self.0.get(1..).unwrap_or_default()
    }

    #[inline]
    pub(crate) fn len(self) -> usize {
        self.values().len() / self.width().max(1)
    }

    /// The integer with this index, in ascending order.
    #[inline]
    pub(crate) fn get(self, index: usize) -> Option<i64> {
        let width = self.width();
        let bytes = self
            .values()
            .get(index.checked_mul(width)?..)?
            .get(..width)?;
        Some(match *bytes {
            [a, b] => i64::from(i16::from_le_bytes([a, b])),
            [a, b, c, d] => i64::from(i32::from_le_bytes([a, b, c, d])),
            [a, b, c, d, e, f, g, h] => i64::from_le_bytes([a, b, c, d, e, f, g, h]),
            _ => return None,
        })
    }

    /// The index of an integer, or the one it would have.
    #[inline]
    pub(crate) fn search(self, number: i64) -> Result<usize, usize> {
        let (mut from, mut to) = (0, self.len());
        while from < to {
            let middle = from.midpoint(to);
            match self.get(middle) {
                Some(value) if value == number => return Ok(middle),
                Some(value) if value < number => from = middle + 1,
                _ => to = middle,
            }
        }
        Err(from)
    }

    /// All integers, ascending.
    pub(crate) fn iter(self) -> impl Iterator<Item = i64> + use<'a> {
        (0..self.len()).map_while(move |index| self.get(index))
    }
}

/// A set of integers.
#[derive(Clone, Debug, Default)]
pub(crate) struct IntSet {
    bytes: Vec<u8>,
}

impl IntSet {
    pub(crate) fn from_bytes(bytes: Vec<u8>) -> Self {
        IntSet { bytes }
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    #[inline]
    pub(crate) fn view(&self) -> IntView<'_> {
        IntView(&self.bytes)
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.bytes.capacity().next_multiple_of(16)
    }

    /// Adds an integer and says whether it is new.
    pub(crate) fn insert(&mut self, number: i64) -> bool {
        let needed = width_of(number);
        if self.bytes.is_empty() || needed > self.view().width() {
            self.widen(needed);
        }
        let Err(index) = self.view().search(number) else {
            return false;
        };
        let width = self.view().width();
        let (at, end) = (1 + index * width, self.bytes.len());
        self.grow(width);
        self.bytes.resize(end + width, 0);
        self.bytes.copy_within(at..end, at + width);
        self.bytes[at..at + width].copy_from_slice(&number.to_le_bytes()[..width]);
        true
    }

    /// Removes an integer and says whether it was there. The width stays.
    pub(crate) fn remove(&mut self, number: i64) -> bool {
        let Ok(index) = self.view().search(number) else {
            return false;
        };
        let width = self.view().width();
        self.bytes.drain(1 + index * width..1 + (index + 1) * width);
        true
    }

    fn widen(&mut self, width: usize) {
        let numbers: Vec<i64> = self.view().iter().collect();
        self.bytes.clear();
        self.grow(1 + (numbers.len() + 1) * width);
        self.bytes.push(width as u8);
        for number in numbers {
            self.bytes.extend_from_slice(&number.to_le_bytes()[..width]);
        }
    }

    fn grow(&mut self, more: usize) {
        let needed = self.bytes.len() + more;
        if needed > self.bytes.capacity() {
            let wanted = (needed + needed / 8).next_multiple_of(16);
            self.bytes.reserve_exact(wanted - self.bytes.len());
        }
    }
}

fn width_of(number: i64) -> usize {
    if i16::try_from(number).is_ok() {
        2
    } else if i32::try_from(number).is_ok() {
        4
    } else {
        8
    }
}
