//! Where a command's keys stand among its arguments, and what the command does with them.
//!
//! A spec has two halves, as in Redis: where to begin (a fixed position, or the argument after a
//! keyword) and how to go on from there (a range with a step, or a count that is an argument
//! itself). COMMAND, ACL rules, client tracking and the prefetch of a batch read the same specs.

use kumi_resp::Args;

/// What happens to the keys of a spec, as COMMAND INFO names it.
pub(crate) mod key {
    /// Reads the value.
    pub(crate) const RO: u16 = 1 << 0;
    /// Reads and changes the value.
    pub(crate) const RW: u16 = 1 << 1;
    /// Overwrites the value without reading it.
    pub(crate) const OW: u16 = 1 << 2;
    /// Removes the key.
    pub(crate) const RM: u16 = 1 << 3;
    /// Returns or copies data of the value.
    pub(crate) const ACCESS: u16 = 1 << 4;
    /// Changes data of the value.
    pub(crate) const UPDATE: u16 = 1 << 5;
    /// Adds data without changing what is there.
    pub(crate) const INSERT: u16 = 1 << 6;
    /// Deletes data of the value.
    pub(crate) const DELETE: u16 = 1 << 7;
    /// Not a key, but routed like one (a shard channel).
    pub(crate) const NOT_KEY: u16 = 1 << 8;
    /// The spec may miss keys of some requests.
    pub(crate) const INCOMPLETE: u16 = 1 << 9;
    /// What happens depends on the request's options.
    pub(crate) const VARIABLE_FLAGS: u16 = 1 << 10;

    /// Wire names, in the order COMMAND INFO prints them.
    const NAMES: [(u16, &str); 11] = [
        (RO, "RO"),
        (RW, "RW"),
        (OW, "OW"),
        (RM, "RM"),
        (ACCESS, "access"),
        (UPDATE, "update"),
        (INSERT, "insert"),
        (DELETE, "delete"),
        (NOT_KEY, "not_key"),
        (INCOMPLETE, "incomplete"),
        (VARIABLE_FLAGS, "variable_flags"),
    ];

    pub(crate) fn names(flags: u16) -> Vec<&'static str> {
        let set = NAMES.iter().filter(|(bit, _)| flags & bit != 0);
        set.map(|&(_, name)| name).collect()
    }
}

/// The argument from which a spec counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begin {
    /// A fixed position.
    Index(i32),
    /// The argument after `word`, which is searched from position `from`; from the end backwards
    /// when `from` is negative.
    Keyword { word: &'static str, from: i32 },
    /// No position is certain: the names of keys follow from values, or the option that names one may
    /// stand anywhere among others.
    Unknown,
}

/// The keys from the first argument of a spec on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Find {
    /// Every `step`-th argument up to `last`, which counts from the first, or from the end of the
    /// request when it is negative. With a `limit` above 1 only that part of the arguments.
    Range { last: i32, step: i32, limit: i32 },
    /// The argument `number` holds how many keys follow from `first` on, both counted from the
    /// first argument of the spec.
    KeyNumber { number: i32, first: i32, step: i32 },
    /// No key can be told from the request.
    Unknown,
    /// The key behind the last STORE of SORT, which COMMAND INFO shows as unknown.
    SortStore,
}

/// One group of keys of a command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeySpec {
    /// Bits of [`key`].
    pub(crate) flags: u16,
    pub(crate) notes: Option<&'static str>,
    pub(crate) begin: Begin,
    pub(crate) find: Find,
    /// What a request does to the keys, if its options decide it.
    pub(crate) varying: Option<fn(Args<'_>) -> u16>,
}

impl KeySpec {
    /// A single key at position `first`.
    pub(crate) const fn one(first: i32, flags: u16) -> Self {
        Self::range(first, 0, 1, flags)
    }

    /// Every `step`-th argument from the first to the last.
    pub(crate) const fn rest(step: i32, flags: u16) -> Self {
        Self::range(1, -1, step, flags)
    }

    /// Every `step`-th argument from position `first` to `last`.
    pub(crate) const fn range(first: i32, last: i32, step: i32, flags: u16) -> Self {
        Self {
            flags,
            notes: None,
            begin: Begin::Index(first),
            find: Find::Range {
                last,
                step,
                limit: 0,
            },
            varying: None,
        }
    }

    /// As many keys as the argument at position `number` says, right behind it.
    pub(crate) const fn counted(number: i32, flags: u16) -> Self {
        Self {
            flags,
            notes: None,
            begin: Begin::Index(number),
            find: Find::KeyNumber {
                number: 0,
                first: 1,
                step: 1,
            },
            varying: None,
        }
    }

    /// Keys that cannot be told from the request, or only as SORT does it.
    pub(crate) const fn unknown(find: Find, flags: u16) -> Self {
        Self {
            flags,
            notes: None,
            begin: Begin::Unknown,
            find,
            varying: None,
        }
    }

    /// The key after a keyword.
    pub(crate) const fn after(word: &'static str, from: i32, flags: u16) -> Self {
        Self {
            begin: Begin::Keyword { word, from },
            ..Self::one(1, flags)
        }
    }

    /// The same keys with a note for COMMAND INFO.
    pub(crate) const fn with_notes(self, notes: &'static str) -> Self {
        Self {
            notes: Some(notes),
            ..self
        }
    }

    /// Whether its arguments are keys of the keyspace.
    pub(crate) const fn names_keys(&self) -> bool {
        self.flags & key::NOT_KEY == 0
    }

    /// The same keys, with flags that follow from the request.
    pub(crate) const fn varying(self, flags: fn(Args<'_>) -> u16) -> Self {
        Self {
            flags: self.flags | key::VARIABLE_FLAGS,
            varying: Some(flags),
            ..self
        }
    }

    /// What a request does to the keys of the spec.
    pub(crate) fn flags_in(&self, request: Args<'_>) -> u16 {
        self.varying.map_or(self.flags, |flags| flags(request))
    }

    /// The position of the only key, if the spec names one by its index.
    #[inline]
    pub(crate) fn only_position(&self) -> Option<usize> {
        match (self.begin, self.find) {
            (Begin::Index(index), Find::Range { last: 0, .. }) => usize::try_from(index).ok(),
            _ => None,
        }
    }

    /// The positions of the keys in a request. None if the request contradicts the spec: a number
    /// of keys that is no number or larger than the request.
    pub(crate) fn positions(&self, args: Args<'_>) -> Option<impl Iterator<Item = usize>> {
        let len = i64::try_from(args.len()).unwrap_or(i64::MAX);
        let begin = match self.begin {
            Begin::Index(index) => Some(i64::from(index)),
            Begin::Keyword { word, from } => after_keyword(args, word, from),
            Begin::Unknown => match self.find {
                Find::SortStore => sort_store(args),
                _ => None,
            },
        };
        let (first, last, step) = match (begin, self.find) {
            // Without its keyword a request has no keys of this spec.
            (None, _) | (_, Find::Unknown) => (1, 0, 1),
            (Some(only), Find::SortStore) => (only, only, 1),
            (Some(first), Find::Range { last, step, limit }) => {
                let last = match (last, limit) {
                    (0.., _) => first + i64::from(last),
                    (_, ..2) => len + i64::from(last),
                    _ => first + (len - first) / i64::from(limit) + i64::from(last),
                };
                (first, last.min(len - 1), i64::from(step))
            }
            (
                Some(begin),
                Find::KeyNumber {
                    number,
                    first,
                    step,
                },
            ) => {
                let at = usize::try_from(begin + i64::from(number)).ok()?;
                let keys = crate::base::number::parse_i64(args.get(at)?)?;
                let first = begin + i64::from(first);
                let last = first.checked_add(keys.checked_sub(1)?.checked_mul(i64::from(step))?)?;
                if keys < 0 || last >= len {
                    return None;
                }
                (first, last, i64::from(step))
            }
        };
        let step = usize::try_from(step).unwrap_or(1).max(1);
        let range = (first..=last).step_by(step);
        Some(range.filter_map(|position| usize::try_from(position).ok()))
    }
}

/// The position after a keyword.
fn after_keyword(args: Args<'_>, word: &str, from: i32) -> Option<i64> {
    let is_word = |position: &usize| {
        let arg = args.get(*position);
        arg.is_some_and(|arg| arg.eq_ignore_ascii_case(word.as_bytes()))
    };
    let found = match usize::try_from(from) {
        Ok(from) => (from..args.len()).find(is_word),
        Err(_) => {
            let start = args.len().checked_sub(from.unsigned_abs() as usize)?;
            (1..=start).rev().find(is_word)
        }
    };
    i64::try_from(found? + 1).ok()
}

/// The position of the key that SORT stores its result under: the last one behind STORE counts.
fn sort_store(args: Args<'_>) -> Option<i64> {
    let (mut at, mut found) = (2, None);
    while let Some(word) = args.get(at) {
        at += match word.to_ascii_lowercase().as_slice() {
            b"limit" => 2,
            b"get" | b"by" => 1,
            b"store" if at + 1 < args.len() => {
                found = i64::try_from(at + 1).ok();
                0
            }
            _ => 0,
        };
        at += 1;
    }
    found
}

/// First key, last key and step of a command in the three-number form that clients older than key
/// specs read; zeros for none. The flag says that the numbers do not show every key.
pub(crate) fn legacy_range(specs: &[KeySpec]) -> ((i32, i32, i32), bool) {
    let range = |spec: &KeySpec| match (spec.begin, spec.find) {
        (Begin::Index(first), Find::Range { last, step, .. }) => {
            let last = if last < 0 { last } else { first + last };
            Some((first, last, step))
        }
        _ => None,
    };
    let incomplete = specs.iter().any(|spec| spec.flags & key::INCOMPLETE != 0);
    if let [only] = specs
        && let Some(range) = range(only)
    {
        return (range, incomplete);
    }
    let (mut merged, mut movable) = (None, incomplete);
    for spec in specs {
        match (range(spec), merged) {
            (Some((first, last, 1)), None) => merged = Some((first, last)),
            // A position counted from the end lies behind every other.
            (Some((first, last, 1)), Some((start, end))) if end == first - 1 => {
                merged = Some((start, last));
            }
            _ => movable = true,
        }
    }
    let (first, last) = merged.unwrap_or_default();
    ((first, last, i32::from(merged.is_some())), movable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kumi_resp::OwnedArgs;

    #[track_caller]
    fn check(spec: KeySpec, line: &str, expected: Option<&[usize]>) {
        let args = OwnedArgs::from_slices(line.split(' '));
        let positions: Option<Vec<usize>> = spec.positions(args.as_args()).map(Iterator::collect);
        assert_eq!(positions.as_deref(), expected, "{line}");
    }

    #[test]
    fn ranges_end_at_a_position_or_count_from_the_end() {
        check(KeySpec::one(1, key::RO), "GET a", Some(&[1]));
        check(KeySpec::rest(1, key::RO), "MGET a b c", Some(&[1, 2, 3]));
        check(KeySpec::rest(2, key::OW), "MSET a 1 b 2", Some(&[1, 3]));
        check(
            KeySpec::range(1, -2, 1, key::RW),
            "BLPOP a b 0",
            Some(&[1, 2]),
        );
    }

    #[test]
    fn a_limit_takes_a_part_of_the_arguments_after_a_keyword() {
        let streams = KeySpec {
            begin: Begin::Keyword {
                word: "STREAMS",
                from: 1,
            },
            find: Find::Range {
                last: -1,
                step: 1,
                limit: 2,
            },
            ..KeySpec::one(1, key::RO)
        };
        check(streams, "XREAD COUNT 2 streams a b 0 0", Some(&[4, 5]));
        check(streams, "XREAD COUNT 2", Some(&[]));
    }

    #[test]
    fn a_keyword_is_searched_backwards_from_a_negative_start() {
        let keys = KeySpec {
            begin: Begin::Keyword {
                word: "KEYS",
                from: -2,
            },
            find: Find::Range {
                last: -1,
                step: 1,
                limit: 0,
            },
            ..KeySpec::one(1, key::RW)
        };
        check(keys, "MIGRATE h 1 KEYS 0 5 KEYS a b", Some(&[7, 8]));
    }

    #[test]
    fn a_number_of_keys_must_fit_the_request() {
        let counted = KeySpec {
            find: Find::KeyNumber {
                number: 0,
                first: 1,
                step: 1,
            },
            ..KeySpec::one(1, key::RO)
        };
        check(counted, "ZUNION 2 a b WITHSCORES", Some(&[2, 3]));
        check(counted, "ZUNION 3 a b", None);
        check(counted, "ZUNION x a b", None);
        check(counted, "ZUNION -1 a b", None);
        check(counted, "ZUNION 9223372036854775807 a b", None);
        check(counted, "EVAL 0", Some(&[]));
    }

    #[test]
    fn consecutive_specs_merge_into_one_legacy_range() {
        let (source, target) = (KeySpec::one(1, key::RO), KeySpec::one(2, key::OW));
        assert_eq!(legacy_range(&[]), ((0, 0, 0), false));
        assert_eq!(legacy_range(&[source, target]), ((1, 2, 1), false));
        let sorted = KeySpec {
            begin: Begin::Keyword {
                word: "STORE",
                from: 2,
            },
            ..target
        };
        assert_eq!(legacy_range(&[source, sorted]), ((1, 1, 1), true));
        assert_eq!(legacy_range(&[sorted]), ((0, 0, 0), true));
    }
}
