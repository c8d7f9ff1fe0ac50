//! A sorted set: members with scores, ordered by score and then by member.
//!
//! A small one is a packed block of pairs, member and score, in order; a large one is a [`Tree`].
//! The stored form follows size. The name OBJECT ENCODING shows follows Redis's limits and is kept
//! beside it. Ranges of any kind, by score, by member or by rank, are turned into ranges of ranks,
//! which can be read from either end.

use std::ops::Range;

use self::index::Hash32;
use self::leaf::Key;
use self::small::{PackedZset, ZsetView};
use self::tree::Tree;
use super::packed::elem::Text;
use super::pages::Seed;
use super::sample::{Selection, draw_distinct, is_sparse};
use super::{Members, Slices, Step, listpack_has_room, stays_packed};

mod index;
mod leaf;
mod small;
mod tree;

/// A tree with no more members than this becomes a packed block again.
const SHRINK_LEN: usize = 16;

/// `zset-max-listpack-entries` and `zset-max-listpack-value`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ZsetLimits {
    pub(crate) entries: usize,
    pub(crate) value_bytes: usize,
}

impl Default for ZsetLimits {
    fn default() -> Self {
        ZsetLimits {
            entries: 128,
            value_bytes: 64,
        }
    }
}

/// What OBJECT ENCODING shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ZsetEncoding {
    Listpack,
    Skiplist,
}

impl ZsetEncoding {
    pub(crate) fn name(self) -> &'static str {
        match self {
            ZsetEncoding::Listpack => "listpack",
            ZsetEncoding::Skiplist => "skiplist",
        }
    }
}

/// One end of a range of scores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ScoreBound {
    pub(crate) score: f64,
    pub(crate) exclusive: bool,
}

/// One end of a range of members. It means something only where all scores are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LexBound<'a> {
    /// `-`, before all members.
    Min,
    /// `+`, after all members.
    Max,
    Inclusive(&'a [u8]),
    Exclusive(&'a [u8]),
}

/// A look at a sorted set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ZsetRef<'a> {
    form: FormRef<'a>,
    encoding: ZsetEncoding,
}

#[derive(Clone, Copy, Debug)]
enum FormRef<'a> {
    Packed(ZsetView<'a>),
    Tree(&'a Tree),
}

impl<'a> ZsetRef<'a> {
    /// Looks at a small sorted set that is kept elsewhere as [`Zset::small`] gave it out.
    pub(crate) fn from_small(encoding: ZsetEncoding, bytes: &'a [u8]) -> Self {
        ZsetRef {
            form: FormRef::Packed(ZsetView::new(bytes)),
            encoding,
        }
    }

    pub(crate) fn encoding(self) -> ZsetEncoding {
        self.encoding
    }

    #[inline]
    pub(crate) fn len(self) -> usize {
        match self.form {
            FormRef::Packed(view) => view.len(),
            FormRef::Tree(tree) => tree.len(),
        }
    }

    pub(crate) fn is_empty(self) -> bool {
        self.len() == 0
    }

    pub(crate) fn score(self, member: &[u8]) -> Option<f64> {
        match self.form {
            FormRef::Packed(view) => view.find(member).map(|found| found.score),
            FormRef::Tree(tree) => tree.find(member).map(|place| tree.score(place)),
        }
    }

    /// How many members come before this one, and its score.
    pub(crate) fn rank(self, member: &[u8]) -> Option<(usize, f64)> {
        match self.form {
            FormRef::Packed(view) => view.find(member).map(|found| (found.rank, found.score)),
            FormRef::Tree(tree) => {
                let place = tree.find(member)?;
                Some((tree.rank(place), tree.score(place)))
            }
        }
    }

    /// The ranks of the members with a score in a range.
    pub(crate) fn score_range(self, min: ScoreBound, max: ScoreBound) -> Range<usize> {
        let start = self.count_before(|key| match min.exclusive {
            true => key.score <= min.score,
            false => key.score < min.score,
        });
        let end = self.count_before(|key| match max.exclusive {
            true => key.score < max.score,
            false => key.score <= max.score,
        });
        start..end.max(start)
    }

    /// The ranks of the members in a range, which means something only if all scores are equal.
    pub(crate) fn lex_range(self, min: LexBound<'_>, max: LexBound<'_>) -> Range<usize> {
        let start = self.count_before(|key| match min {
            LexBound::Min => false,
            LexBound::Max => true,
            LexBound::Inclusive(member) => key.member < member,
            LexBound::Exclusive(member) => key.member <= member,
        });
        let end = self.count_before(|key| match max {
            LexBound::Min => false,
            LexBound::Max => true,
            LexBound::Inclusive(member) => key.member <= member,
            LexBound::Exclusive(member) => key.member < member,
        });
        start..end.max(start)
    }

    /// The members of a range of ranks with their scores, in order.
    pub(crate) fn range(self, ranks: Range<usize>) -> impl Iterator<Item = (Text<'a>, f64)> {
        let (packed, tree) = match self.form {
            FormRef::Packed(view) => (Some(view.iter_from(ranks.start)), None),
            FormRef::Tree(tree) => (None, Some(tree.iter_from(ranks.start))),
        };
        let tree = tree.into_iter().flatten().map(text_and_score);
        let all = packed.into_iter().flatten().chain(tree);
        all.take(ranks.len())
    }

    /// The members of a range of ranks with their scores, the last one first.
    pub(crate) fn range_back(self, ranks: Range<usize>) -> impl Iterator<Item = (Text<'a>, f64)> {
        let end = ranks.end.min(self.len());
        let len = end.saturating_sub(ranks.start);
        let (packed, tree) = match self.form {
            FormRef::Packed(view) => (Some(view.iter_back(end)), None),
            FormRef::Tree(tree) => (None, Some(tree.iter_back(end))),
        };
        let tree = tree.into_iter().flatten().map(text_and_score);
        packed.into_iter().flatten().chain(tree).take(len)
    }

    /// All members with their scores, in order.
    pub(crate) fn iter(self) -> impl Iterator<Item = (Text<'a>, f64)> {
        self.range(0..usize::MAX)
    }

    /// Visits the members at one position of a scan and returns the next cursor, 0 after the last.
    /// A member that is present from the first call to the last is visited at least once, even if
    /// its score changes. A packed sorted set is visited in one call.
    pub(crate) fn scan(self, cursor: u64, visit: &mut dyn FnMut(&[u8], f64)) -> u64 {
        match self.form {
            FormRef::Packed(view) => {
                view.iter_from(0)
                    .for_each(|(member, score)| visit(&member, score));
                0
            }
            FormRef::Tree(tree) => tree.scan(cursor, &mut |key| visit(key.member, key.score)),
        }
    }

    /// Any member, each with the same probability.
    pub(crate) fn random(self, rng: &mut fastrand::Rng) -> Option<(Text<'a>, f64)> {
        let rank = (!self.is_empty()).then(|| rng.usize(..self.len()))?;
        self.range(rank..rank + 1).next()
    }

    /// Visits `count` different members, or all if there are fewer; every choice has the same
    /// probability.
    pub(crate) fn sample(
        self,
        count: usize,
        rng: &mut fastrand::Rng,
        visit: &mut dyn FnMut(Text<'a>, f64),
    ) {
        let len = self.len();
        if is_sparse(len, count) {
            return draw_distinct(count, |seen| {
                let rank = rng.usize(..len);
                if seen.insert(rank)
                    && let Some((member, score)) = self.range(rank..rank + 1).next()
                {
                    visit(member, score);
                }
            });
        }
        let mut selection = Selection::new(len, count);
        for (member, score) in self.iter() {
            if selection.takes(rng) {
                visit(member, score);
            }
        }
    }

    fn count_before(self, before: impl FnMut(Key<'_>) -> bool) -> usize {
        match self.form {
            FormRef::Packed(view) => view.count_before(before),
            FormRef::Tree(tree) => tree.count_before(before),
        }
    }
}

fn text_and_score(key: Key<'_>) -> (Text<'_>, f64) {
    (Text::Bytes(key.member), key.score)
}

/// What [`Zset::update`] did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Updated {
    /// The member was not there and was not to be added, or was to keep its score.
    Nothing,
    /// The member is new, with this score.
    Added(f64),
    /// The member was there; its old and its new score, which may be the same.
    Scored { old: f64, new: f64 },
}

/// A sorted set.
#[derive(Clone, Debug)]
pub(crate) struct Zset {
    form: Form,
    encoding: ZsetEncoding,
}

#[derive(Clone, Debug)]
enum Form {
    Packed(PackedZset),
    Tree(Box<Tree>),
}

impl Zset {
    pub(crate) fn new() -> Self {
        Zset::from_small(ZsetEncoding::Listpack, Vec::new())
    }

    /// An empty sorted set with an encoding that a command has chosen.
    pub(crate) fn with_encoding(encoding: ZsetEncoding) -> Self {
        Zset::from_small(encoding, Vec::new())
    }

    /// Takes over a small sorted set that was kept elsewhere, as [`Zset::small`] gave it out.
    pub(crate) fn from_small(encoding: ZsetEncoding, bytes: Vec<u8>) -> Self {
        Zset {
            form: Form::Packed(PackedZset::from_bytes(bytes)),
            encoding,
        }
    }

    /// The bytes of a small sorted set, which together with the encoding are the whole of it.
    pub(crate) fn small(&self) -> Option<(ZsetEncoding, &[u8])> {
        match &self.form {
            Form::Packed(block) => Some((self.encoding, block.view().bytes())),
            Form::Tree(_) => None,
        }
    }

    /// The buffer of a small sorted set, to be used again.
    pub(crate) fn into_buffer(self) -> Option<Vec<u8>> {
        match self.form {
            Form::Packed(block) => Some(block.into_bytes()),
            Form::Tree(_) => None,
        }
    }

    #[inline]
    pub(crate) fn view(&self) -> ZsetRef<'_> {
        let form = match &self.form {
            Form::Packed(block) => FormRef::Packed(block.view()),
            Form::Tree(tree) => FormRef::Tree(tree),
        };
        ZsetRef {
            form,
            encoding: self.encoding,
        }
    }

    /// What the sorted set takes from the heap, besides its own size.
    pub(crate) fn heap_bytes(&self) -> usize {
        match &self.form {
            Form::Packed(block) => block.heap_bytes(),
            Form::Tree(tree) => tree.heap_bytes(),
        }
    }

    /// Lets the encoding follow how many members a command is going to add, and the first one's
    /// length if the set is new.
    pub(crate) fn prepare(&mut self, size_hint: usize, first_len: usize, limits: ZsetLimits) {
        if size_hint > limits.entries || first_len > limits.value_bytes {
            self.encoding = ZsetEncoding::Skiplist;
        }
    }

    /// Gives a set that a command has just computed the encoding Redis ends up with for it.
    pub(crate) fn settle(&mut self, longest_member: usize, limits: ZsetLimits) {
        if self.view().len() > limits.entries
            || longest_member > limits.value_bytes
            || !listpack_has_room(self.stored_bytes(), 0)
        {
            self.encoding = ZsetEncoding::Skiplist;
        } else if self.encoding == ZsetEncoding::Skiplist {
            self.encoding = ZsetEncoding::Listpack;
            if stays_packed(self.view().len(), self.heap_bytes(), true) {
                self.pack();
            }
        }
    }

    /// Gives the set the encoding `skiplist`, as SORT does to a set it reads. Says whether it had another.
    pub(crate) fn become_skiplist(&mut self) -> bool {
        let other = self.encoding != ZsetEncoding::Skiplist;
        self.encoding = ZsetEncoding::Skiplist;
        other
    }

    /// Sets a member's score to what `decide` makes of the old one, if there is one. A decision for
    /// no score changes nothing. Scores must not be NaN.
    pub(crate) fn update(
        &mut self,
        member: &[u8],
        limits: ZsetLimits,
        seed: Seed,
        decide: impl FnOnce(Option<f64>) -> Option<f64>,
    ) -> Updated {
        match &mut self.form {
            Form::Tree(tree) => {
                let found = tree.find(member);
                let old = found.map(|place| tree.score(place));
                match (found, old, decide(old)) {
                    (_, _, None) => Updated::Nothing,
                    (Some(place), Some(old), Some(new)) => {
                        if new != old {
                            tree.set_score(place, new);
                        }
                        Updated::Scored { old, new }
                    }
                    (_, _, Some(new)) => {
                        tree.insert(member, new);
                        self.name_for(member.len(), limits);
                        Updated::Added(new)
                    }
                }
            }
            Form::Packed(block) => {
                let found = block.view().find(member);
                let old = found.map(|found| found.score);
                let Some(new) = decide(old) else {
                    return Updated::Nothing;
                };
                if let Some(found) = found {
                    if new != found.score {
                        let named = self.encoding;
                        block.rescore(found, member, new, named);
                    }
                    let old = found.score;
                    return Updated::Scored { old, new };
                }
                self.add_packed(member, new, limits, seed);
                Updated::Added(new)
            }
        }
    }

    /// Adds a member or changes its score.
    pub(crate) fn insert(&mut self, member: &[u8], score: f64, limits: ZsetLimits, seed: Seed) {
        self.update(member, limits, seed, |_| Some(score));
    }

    /// Removes a member and returns its score.
    pub(crate) fn remove(&mut self, member: &[u8]) -> Option<f64> {
        match &mut self.form {
            Form::Packed(block) => {
                let found = block.view().find(member)?;
                block.remove(found);
                Some(found.score)
            }
            Form::Tree(tree) => {
                let place = tree.find(member)?;
                let score = tree.score(place);
                tree.remove(place);
                self.shrink();
                Some(score)
            }
        }
    }

    /// Removes the members of a range of ranks, after showing each to `visit`.
    pub(crate) fn remove_ranks(&mut self, ranks: Range<usize>, visit: &mut dyn FnMut(&[u8], f64)) {
        match &mut self.form {
            Form::Packed(block) => {
                let removed = block.view().iter_from(ranks.start).take(ranks.len());
                removed.for_each(|(member, score)| visit(&member, score));
                block.remove_ranks(ranks);
            }
            Form::Tree(tree) => {
                tree.remove_ranks(ranks, &mut |key| visit(key.member, key.score));
                self.shrink();
            }
        }
    }

    /// Redis's encoding after a new member of this length is in.
    fn name_for(&mut self, member_len: usize, limits: ZsetLimits) {
        if self.encoding == ZsetEncoding::Listpack
            && (self.view().len() > limits.entries
                || member_len > limits.value_bytes
                || !listpack_has_room(self.stored_bytes(), 0))
        {
            self.encoding = ZsetEncoding::Skiplist;
        }
    }

    /// The bytes of the packed block, or what the members and scores of the tree take.
    fn stored_bytes(&self) -> usize {
        match &self.form {
            Form::Packed(block) => block.view().bytes().len(),
            Form::Tree(tree) => tree.leaf_bytes(),
        }
    }

    fn add_packed(&mut self, member: &[u8], score: f64, limits: ZsetLimits, seed: Seed) {
        let Form::Packed(block) = &mut self.form else {
            return;
        };
        let (len, bytes) = (block.view().len() + 1, block.view().bytes().len());
        if len > limits.entries
            || member.len() > limits.value_bytes
            || !listpack_has_room(bytes, member.len())
        {
            self.encoding = ZsetEncoding::Skiplist;
        }
        let listpack = self.encoding == ZsetEncoding::Listpack;
        if stays_packed(len, bytes + member.len(), listpack) {
            return block.insert(member, score, self.encoding);
        }
        let mut tree = Tree::new(seed);
        for (member, score) in block.view().iter_from(0) {
            tree.insert(&member, score);
        }
        tree.insert(member, score);
        self.form = Form::Tree(Box::new(tree));
    }

    /// Makes a tree with few members a packed block unless they are long.
    fn shrink(&mut self) {
        if let Form::Tree(tree) = &self.form
            && tree.len() <= SHRINK_LEN
            && tree.leaf_bytes() <= super::SHRINK_BYTES
        {
            self.pack();
        }
    }

    /// Makes it a packed block, with scores as the name wants them.
    fn pack(&mut self) {
        let mut block = PackedZset::from_bytes(Vec::new());
        for (member, score) in self.view().iter() {
            block.push_back(&member, score, self.encoding);
        }
        self.form = Form::Packed(block);
    }
}

impl Members for Zset {
    fn hash(&self, member: &[u8]) -> Option<u64> {
        match &self.form {
            Form::Packed(_) => None,
            Form::Tree(tree) => Some(tree.hash(member).into()),
        }
    }

    fn steps(&self) -> usize {
        Step::ALL.len()
    }

    fn lines(&self, hash: u64, step: Step, load: &mut dyn FnMut(*const u8)) {
        if let Form::Tree(tree) = &self.form {
            tree.lines(hash as Hash32, step, load);
        }
    }
}

impl Slices for Zset {
    fn pieces(&self) -> usize {
        match &self.form {
            Form::Packed(_) => 1,
            Form::Tree(tree) => tree.pieces(),
        }
    }

    fn drop_piece(&mut self) -> bool {
        match &mut self.form {
            Form::Packed(_) => false,
            Form::Tree(tree) => tree.drop_piece(),
        }
    }
}

const _: () = super::assert_send::<Zset>();

#[cfg(test)]
mod tests;
