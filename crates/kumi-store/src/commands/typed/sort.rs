//! SORT and SORT_RO: the elements of a list, set or sorted set, ordered by themselves or by what other keys hold.

use super::lists;
use super::sorted_sets::parse_weight;
use crate::base::error::{CommandError, CommandResult};
use crate::base::number::format_i64;
use crate::commands::options::OptionReader;
use crate::commands::parse::integer;
use crate::config::NotifyFlags;
use crate::data::keyspace::{Edit, Keys, Look, Missing, StringRef, Type, ValueRef};
use crate::engine::command::{Command, Group, category, flag};
use crate::engine::key_spec::{Find, KeySpec, key};
use crate::engine::store::ctx::Ctx;
use crate::types::list::{List, Side};
use crate::types::zset::Zset;
use kumi_resp::Args;
use std::cmp::Ordering;
use std::ffi::CStr;
use std::ops::Range;

const BASE: Command = Command {
    arity: -2,
    categories: category::SET | category::SORTED_SET | category::LIST | category::DANGEROUS,
    group: Group::Generic,
    complexity: "O(N+M*log(M)), N being the number of elements and M the number of those returned. Without sorting, O(N).",
    ..Command::BASE
};
const SOURCE: KeySpec = KeySpec::one(1, key::RO | key::ACCESS);
const PATTERNS: KeySpec = KeySpec::unknown(Find::Unknown, key::RO | key::ACCESS).with_notes(
    "For the optional BY/GET keyword. It is marked 'unknown' because the key names derive from the content of the key we sort",
);
const TARGET: KeySpec = KeySpec::unknown(Find::SortStore, key::OW | key::UPDATE).with_notes(
    "For the optional STORE keyword. It is marked 'unknown' because the keyword can appear anywhere in the argument array",
);

pub(in crate::commands) const COMMANDS: &[Command] = &[
    Command {
        name: "sort",
        flags: flag::WRITE | flag::DENYOOM | flag::MOVABLE_KEYS,
        keys: &[SOURCE, PATTERNS, TARGET],
        since: "1.0.0",
        summary: "Sorts the elements of a list, a set or a sorted set, and returns or stores them.",
        usage: "key [BY pattern] [LIMIT offset count] [GET pattern [GET pattern ...]] [ASC | DESC] [ALPHA] [STORE destination]",
        run: sort,
        ..BASE
    },
    Command {
        name: "sort_ro",
        flags: flag::READONLY | flag::MOVABLE_KEYS,
        keys: &[SOURCE, PATTERNS],
        since: "7.0.0",
        summary: "Sorts the elements of a list, a set or a sorted set, and returns them.",
        usage: "key [BY pattern] [LIMIT offset count] [GET pattern [GET pattern ...]] [ASC | DESC] [ALPHA]",
        run: sort_ro,
        ..BASE
    },
];

fn sort(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let reads_all = ctx.may_read_all_keys(args);
    run(ctx, args, &Options::parse(args, true, reads_all)?)
}

fn sort_ro(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let reads_all = ctx.may_read_all_keys(args);
    run(ctx, args, &Options::parse(args, false, reads_all)?)
}

struct Options<'a> {
    /// What elements are ordered by; themselves without it.
    by: Option<Pattern<'a>>,
    /// BY was given without a `*`: the elements stay in the order they have.
    unsorted: bool,
    get: Vec<Pattern<'a>>,
    offset: i64,
    /// No limit if it is negative.
    count: i64,
    descending: bool,
    alpha: bool,
    store: Option<&'a [u8]>,
}

impl<'a> Options<'a> {
    /// Without `reads_all`, the user may not read every key, so no pattern may name keys.
    fn parse(args: Args<'a>, may_store: bool, reads_all: bool) -> Result<Self, CommandError> {
        let mut options = Options {
            by: None,
            unsorted: false,
            get: Vec::new(),
            offset: 0,
            count: -1,
            descending: false,
            alpha: false,
            store: None,
        };
        let mut reader = OptionReader::new(args, 2);
        while let Some(word) = reader.word() {
            match &*word {
                b"asc" => options.descending = false,
                b"desc" => options.descending = true,
                b"alpha" => options.alpha = true,
                b"limit" => {
                    let [offset, count] = reader.values()?;
                    options.offset = integer(offset)?;
                    options.count = integer(count)?;
                }
                b"store" if may_store => options.store = Some(reader.value()?),
                b"by" => {
                    let pattern = Pattern::parse(reader.value()?);
                    if !reads_all && matches!(pattern, Pattern::Key { .. }) {
                        return Err(CommandError::fixed(
                            "ERR BY option of SORT denied due to insufficient ACL permissions.",
                        ));
                    }
                    // Once given without a star, sorting stays off.
                    options.unsorted |= !matches!(pattern, Pattern::Key { .. });
                    options.by = Some(pattern);
                }
                b"get" => {
                    let pattern = reader.value()?;
                    if !reads_all {
                        return Err(CommandError::fixed(
                            "ERR GET option of SORT denied due to insufficient ACL permissions.",
                        ));
                    }
                    options.get.push(Pattern::parse(pattern));
                }
                _ => return Err(CommandError::SYNTAX),
            }
        }
        Ok(options)
    }

    /// Which of so many sorted elements are wanted.
    fn range(&self, len: usize) -> Range<usize> {
        let bounded = |number: i64| usize::try_from(number).unwrap_or(0).min(len);
        let start = bounded(self.offset);
        let end = match self.count {
            ..0 => len,
            count => start.saturating_add(bounded(count)).min(len),
        };
        start..end.max(start)
    }
}

/// A pattern of BY or GET.
#[derive(Clone, Copy)]
enum Pattern<'a> {
    /// `#`: the element itself.
    Element,
    /// A key's name around the element, and the field if the key holds a hash.
    Key {
        before: &'a [u8],
        behind: &'a [u8],
        field: Option<&'a [u8]>,
    },
    /// No place for the element: there is nothing to find.
    Constant,
}

impl<'a> Pattern<'a> {
    fn parse(text: &'a [u8]) -> Self {
        if text == b"#" {
            return Pattern::Element;
        }
        let Some(star) = text.iter().position(|&byte| byte == b'*') else {
            return Pattern::Constant;
        };
        let (before, rest) = (&text[..star], &text[star + 1..]);
        let arrow = rest.windows(2).position(|pair| pair == b"->");
        match arrow.filter(|&arrow| arrow + 2 < rest.len()) {
            Some(arrow) => Pattern::Key {
                before,
                behind: &rest[..arrow],
                field: Some(&rest[arrow + 2..]),
            },
            None => Pattern::Key {
                before,
                behind: rest,
                field: None,
            },
        }
    }

    /// What the pattern leads to for an element.
    fn look_up(self, keys: &mut Keys<'_>, element: &[u8]) -> Option<Vec<u8>> {
        let Pattern::Key {
            before,
            behind,
            field,
        } = self
        else {
            return matches!(self, Pattern::Element).then(|| element.to_vec());
        };
        let name = [before, element, behind].concat();
        match (keys.look(&name, Look::Read)?.value(), field) {
            (ValueRef::Hash(hash), Some(field)) => Some(hash.get(field)?.text().to_vec()),
            (ValueRef::String(StringRef::Int(number)), None) => Some(format_i64(number).to_vec()),
            (ValueRef::String(StringRef::Bytes { bytes, .. }), None) => Some(bytes.to_vec()),
            _ => None,
        }
    }
}

/// What an element is ordered by.
enum Weight {
    Number(f64),
    Text(Vec<u8>),
    /// Nothing was found under the name that BY gives.
    Missing,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, options: &Options<'_>) -> CommandResult {
    let limits = lists::limits(ctx);
    // What is stored, or what a script goes on with, has to be the same wherever the command is applied.
    let promised = options.store.is_some() || ctx.in_script;
    let mut keys = ctx.keys();
    let (elements, range) = sorted(&mut keys, &args[1], options, promised)?;
    let wanted = &elements[range];
    let per_element = options.get.len().max(1);
    let found = wanted.iter().flat_map(|element| {
        let whole = options.get.is_empty().then_some(Pattern::Element);
        let patterns = whole.into_iter().chain(options.get.iter().copied());
        patterns.map(move |pattern| (pattern, element))
    });
    let Some(target) = options.store else {
        let (mut keys, reply) = ctx.keys_and_reply();
        reply.array(wanted.len() * per_element);
        for (pattern, element) in found {
            match pattern {
                Pattern::Element => reply.bulk(element),
                pattern => match pattern.look_up(&mut keys, element) {
                    Some(value) => reply.bulk(value),
                    None => reply.null(),
                },
            }
        }
        return Ok(());
    };
    let mut list = List::new();
    for (pattern, element) in found {
        let value = pattern.look_up(&mut keys, element).unwrap_or_default();
        list.prepare(1, value.len(), limits);
        list.push(Side::Back, &value, limits);
    }
    let stored = list.len();
    if stored > 0 {
        list.settle(false, limits);
        keys.put_collection(target, list)?;
        keys.notify(NotifyFlags::LIST, "sortstore", target);
        ctx.dirty(stored);
    } else if keys.remove(target) {
        keys.notify(NotifyFlags::GENERIC, "del", target);
        ctx.dirty(1);
    }
    ctx.reply.count(stored);
    Ok(())
}

/// The elements of a key in the wanted order, and which of them are wanted. If an order is promised, a set that is not to
/// be sorted is sorted by its members.
fn sorted(
    keys: &mut Keys<'_>,
    key: &[u8],
    options: &Options<'_>,
    promised: bool,
) -> Result<(Vec<Vec<u8>>, Range<usize>), CommandError> {
    let Some(kind) = keys.look(key, Look::Read).map(|entry| entry.type_of()) else {
        return Ok((Vec::new(), 0..0));
    };
    let forced = options.unsorted && kind == Type::Set && promised;
    let unsorted = options.unsorted && !forced;
    if kind == Type::SortedSet {
        // Redis converts the set, and OBJECT ENCODING shows it.
        keys.edit(key, Missing::Skip, |zset: &mut Zset| {
            Ok(match zset.become_skiplist() {
                true => Edit::Unwatched(()),
                false => Edit::Unchanged(()),
            })
        })?;
    }
    let Some(entry) = keys.look(key, Look::Quiet) else {
        return Ok((Vec::new(), 0..0));
    };
    let elements: Vec<Vec<u8>> = match entry.value() {
        ValueRef::List(list) if unsorted => {
            let range = options.range(list.len());
            let count = range.len();
            let texts: Vec<Vec<u8>> = if options.descending {
                let back = list.iter_back().skip(range.start).take(count);
                back.map(|element| element.text().to_vec()).collect()
            } else {
                let front = list.iter_from(range.start).take(count);
                front.map(|element| element.text().to_vec()).collect()
            };
            return Ok((texts, 0..count));
        }
        ValueRef::SortedSet(zset) if unsorted => {
            let (len, range) = (zset.len(), options.range(zset.len()));
            let count = range.len();
            let texts: Vec<Vec<u8>> = if options.descending {
                let ranks = len - range.end..len - range.start;
                let back = zset.range_back(ranks);
                back.map(|(member, _)| member.to_vec()).collect()
            } else {
                let front = zset.range(range);
                front.map(|(member, _)| member.to_vec()).collect()
            };
            return Ok((texts, 0..count));
        }
        ValueRef::List(list) => list.iter().map(|element| element.text().to_vec()).collect(),
        ValueRef::Set(set) => set.iter().map(|member| member.text().to_vec()).collect(),
        ValueRef::SortedSet(zset) => zset.iter().map(|(member, _)| member.to_vec()).collect(),
        _ => return Err(CommandError::WRONG_TYPE),
    };
    let range = options.range(elements.len());
    if unsorted {
        return Ok((elements, range));
    }
    let (alpha, by) = if forced {
        (true, None)
    } else {
        (options.alpha, options.by)
    };
    let weighed = weigh(keys, elements, alpha, by)?;
    let ties = match (alpha, by) {
        (true, Some(_)) => Ties::Keep,
        (true, None) if options.store.is_none() => Ties::ByText(until_nul),
        _ => Ties::ByText(whole),
    };
    let text: Compared = match options.store {
        None => until_nul,
        Some(_) => whole,
    };
    Ok((order(weighed, text, ties, options.descending), range))
}

/// Gives each element its weight.
fn weigh(
    keys: &mut Keys<'_>,
    elements: Vec<Vec<u8>>,
    alpha: bool,
    by: Option<Pattern<'_>>,
) -> Result<Vec<(Weight, Vec<u8>)>, CommandError> {
    let mut failed = false;
    let mut weighed = Vec::with_capacity(elements.len());
    for element in elements {
        let weight = match by {
            None if alpha => Weight::Missing,
            None => Weight::Number(number(&element, &mut failed)),
            Some(by) => match by.look_up(keys, &element) {
                Some(text) if alpha => Weight::Text(text),
                Some(text) => Weight::Number(number(&text, &mut failed)),
                None if alpha => Weight::Missing,
                None => Weight::Number(0.0),
            },
        };
        weighed.push((weight, element));
    }
    if failed {
        return Err(CommandError::fixed(
            "ERR One or more scores can't be converted into double",
        ));
    }
    Ok(weighed)
}

fn number(text: &[u8], failed: &mut bool) -> f64 {
    parse_weight(text).unwrap_or_else(|| {
        *failed = true;
        0.0
    })
}

/// The part of a text that is compared.
type Compared = fn(&[u8]) -> &[u8];

/// How elements of one weight are ordered.
#[derive(Clone, Copy)]
enum Ties {
    /// As they come: the weights are texts of other keys.
    Keep,
    ByText(Compared),
}

fn whole(text: &[u8]) -> &[u8] {
    text
}

/// What `strcoll` compares: without STORE, ALPHA ignores what stands behind a zero byte.
fn until_nul(text: &[u8]) -> &[u8] {
    CStr::from_bytes_until_nul(text).map_or(text, CStr::to_bytes)
}

/// Sorts; `text` is the part of a weight that is compared.
fn order(
    weighed: Vec<(Weight, Vec<u8>)>,
    text: Compared,
    ties: Ties,
    descending: bool,
) -> Vec<Vec<u8>> {
    // Each text is cut once, not at each comparison.
    let mut weighed: Vec<(Weight, Vec<u8>, usize)> = weighed
        .into_iter()
        .map(|(mut weight, element)| {
            if let Weight::Text(weight) = &mut weight {
                weight.truncate(text(weight).len());
            }
            let compared = match ties {
                Ties::Keep => 0,
                Ties::ByText(part) => part(&element).len(),
            };
            (weight, element, compared)
        })
        .collect();
    weighed.sort_by(|(one, element, len), (other, other_element, other_len)| {
        let by_weight = match (one, other) {
            (Weight::Number(one), Weight::Number(other)) => (one + 0.0).total_cmp(&(other + 0.0)),
            (Weight::Text(one), Weight::Text(other)) => one.cmp(other),
            (Weight::Missing, Weight::Text(_)) => Ordering::Less,
            (Weight::Text(_), Weight::Missing) => Ordering::Greater,
            _ => Ordering::Equal,
        };
        let ordering = by_weight.then_with(|| match ties {
            Ties::Keep => Ordering::Equal,
            Ties::ByText(_) => element[..*len].cmp(&other_element[..*other_len]),
        });
        if descending {
            ordering.reverse()
        } else {
            ordering
        }
    });
    weighed.into_iter().map(|(_, element, _)| element).collect()
}

#[cfg(test)]
mod tests;
