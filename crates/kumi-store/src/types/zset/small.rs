//! A small sorted set: a packed block of pairs, member and score, in order.
//!
//! A score without a fraction is an integer of the block, any other one the eight bytes of the
//! number, low byte first. Only this process makes such bytes: payloads and files hold scores as text.

use std::ops::Range;

use super::super::packed::elem::Text;
use super::super::packed::{Elem, Packed, PackedView, Pos};
use super::ZsetEncoding;
use super::leaf::Key;

/// Integers up to here are scores without a rounding error.
const EXACT: f64 = (1_i64 << 53) as f64;

/// A look at a small sorted set.
#[derive(Clone, Copy, Debug)]
pub(super) struct ZsetView<'a>(PackedView<'a>);

/// A member that was found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) rank: usize,
    pub(super) score: f64,
    pos: Pos,
}

impl<'a> ZsetView<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        ZsetView(PackedView::new(bytes))
    }

    pub(super) fn bytes(self) -> &'a [u8] {
        self.0.bytes()
    }

    #[inline]
    pub(super) fn len(self) -> usize {
        self.0.len() / 2
    }

    pub(super) fn find(self, member: &[u8]) -> Option<Found> {
        let pos = self.0.find(Elem::parse(member), self.0.start(), 2)?;
        let mut elems = self.0.iter();
        let mut rank = 0;
        while elems.pos() < pos {
            elems.next();
            elems.next();
            rank += 1;
        }
        let score = read_score(self.0.at(self.0.next(pos)?)?);
        Some(Found { rank, score, pos })
    }

    pub(super) fn iter_from(self, rank: usize) -> impl Iterator<Item = (Text<'a>, f64)> {
        let start = self.0.seek(rank.saturating_mul(2));
        let mut elems = self.0.iter_from(start.unwrap_or(self.0.end()));
        std::iter::from_fn(move || Some((elems.next()?.text(), read_score(elems.next()?))))
    }

    /// The pairs before a rank, the nearest first. The block can only be read forwards, so the
    /// positions are gathered first.
    pub(super) fn iter_back(self, rank: usize) -> impl Iterator<Item = (Text<'a>, f64)> {
        let mut elems = self.0.iter();
        let mut starts = Vec::with_capacity(rank.min(self.len()));
        for _ in 0..rank.min(self.len()) {
            starts.push(elems.pos());
            elems.next();
            elems.next();
        }
        starts.into_iter().rev().filter_map(move |pos| {
            let mut elems = self.0.iter_from(pos);
            Some((elems.next()?.text(), read_score(elems.next()?)))
        })
    }

    pub(super) fn count_before(self, mut before: impl FnMut(Key<'_>) -> bool) -> usize {
        let pairs = self.iter_from(0);
        pairs
            .take_while(|(member, score)| {
                before(Key {
                    score: *score,
                    member,
                })
            })
            .count()
    }
}

/// A small sorted set.
#[derive(Clone, Debug)]
pub(super) struct PackedZset(Packed);

impl PackedZset {
    pub(super) fn from_bytes(bytes: Vec<u8>) -> Self {
        PackedZset(Packed::from_bytes(bytes))
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0.into_bytes()
    }

    #[inline]
    pub(super) fn view(&self) -> ZsetView<'_> {
        ZsetView(self.0.view())
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.0.heap_bytes()
    }

    /// Adds a member that is not in the set, in its place.
    pub(super) fn insert(&mut self, member: &[u8], score: f64, named: ZsetEncoding) {
        let key = Key { score, member };
        let view = self.0.view();
        let mut elems = view.iter();
        let mut pos = elems.pos();
        while let Some(other) = elems.next()
            && let Some(other_score) = elems.next().map(read_score)
        {
            let other = Key {
                score: other_score,
                member: &other.text(),
            };
            if other.order(key).is_gt() {
                break;
            }
            pos = elems.pos();
        }
        self.put(pos, member, score, named);
    }

    /// Adds a member behind all others.
    pub(super) fn push_back(&mut self, member: &[u8], score: f64, named: ZsetEncoding) {
        self.put(self.0.view().end(), member, score, named);
    }

    /// Gives a member that was just found another score, and moves it to its new place.
    pub(super) fn rescore(&mut self, found: Found, member: &[u8], score: f64, named: ZsetEncoding) {
        self.remove(found);
        self.insert(member, score, named);
    }

    pub(super) fn remove(&mut self, found: Found) {
        self.0.remove_many(found.pos, 2);
    }

    pub(super) fn remove_ranks(&mut self, ranks: Range<usize>) {
        if let Some(pos) = self.0.view().seek(ranks.start.saturating_mul(2)) {
            self.0.remove_many(pos, ranks.len().saturating_mul(2));
        }
    }

    fn put(&mut self, pos: Pos, member: &[u8], score: f64, named: ZsetEncoding) {
        // Behind first, so that the position holds for the member.
        self.0.insert(pos, write_score(score, named, &mut [0; 8]));
        self.0.insert(pos, Elem::parse(member));
    }
}

/// The element for a score. In a Redis listpack, the negative zero is the integer 0.
fn write_score(score: f64, named: ZsetEncoding, bytes: &mut [u8; 8]) -> Elem<'_> {
    let negative_zero = score == 0.0 && score.is_sign_negative();
    if score.abs() <= EXACT
        && score.fract() == 0.0
        && (!negative_zero || named == ZsetEncoding::Listpack)
    {
        return Elem::Int(score as i64);
    }
    *bytes = score.to_le_bytes();
    Elem::Bytes(bytes)
}

#[inline]
fn read_score(elem: Elem<'_>) -> f64 {
    match elem {
        Elem::Int(int) => int as f64,
        Elem::Bytes(bytes) => bytes
            .first_chunk()
            .map_or(0.0, |&bytes| f64::from_le_bytes(bytes)),
    }
}
