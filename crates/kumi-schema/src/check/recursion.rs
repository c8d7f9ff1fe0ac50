//! A message or a union cannot hold itself without end.
//!
//! Through an optional field, an array or a map it may: such a value ends where the field is missing or the list is
//! empty. Through a union it may if another variant ends. A circle of required fields has no smallest value, nor has a union
//! all of whose variants lead back to it.

use super::Checker;
use crate::model::{Field, Message, Protocol, Type, Union};
use std::collections::{BTreeMap, BTreeSet};

impl Checker<'_> {
    /// `types_hold`: every type that is named is declared. A message with a field of an unknown type is not known to hold
    /// nothing.
    pub(super) fn recursion(&mut self, protocol: &Protocol, types_hold: bool) {
        let mut required = edges(protocol, |field| !field.is_optional());
        let endless = endless(protocol, &required);
        let ends = |name: &str| protocol.union(name).is_some() && !endless.contains(name);
        required
            .iter_mut()
            .filter(|(name, _)| ends(name))
            .for_each(|(_, held)| held.clear());
        let circles = Circles::of(&required);
        let mut reported = BTreeSet::new();
        let messages = named(protocol).map(|message| ("message", &message.name, message.at));
        let unions = named_unions(protocol).map(|union| ("union", &union.name, union.at));
        for (kind, name, at) in messages.chain(unions) {
            // One report for a circle, whichever of its members comes first. Looking for the way around takes time,
            // so it is done for no other type.
            if !circles.holds_itself(name) || reported.contains(name) {
                continue;
            }
            let Some(circle) = circle(name, &required) else {
                continue;
            };
            if circle.iter().any(|name| reported.contains(name)) {
                continue;
            }
            reported.extend(circle.iter().cloned());
            let mut names = circle.clone();
            names.push(name.clone());
            let help = match circle.iter().any(|name| protocol.union(name).is_some()) {
                true => "a union needs a variant that does not lead back to it",
                false => "one of these fields has to be optional, or an array or a map",
            };
            self.error_help(
                at,
                format!(
                    "{kind} {name:?} always holds itself: {}",
                    names.join(" -> ")
                ),
                help,
            );
        }
        if reported.is_empty() && types_hold {
            self.empty_items(protocol);
        }
    }

    /// An array of messages that hold nothing says no more than its length, and in the binary format a few bytes could
    /// claim billions of them.
    fn empty_items(&mut self, protocol: &Protocol) {
        let nothing = holding_nothing(protocol);
        let members = protocol.members().map(|(ty, _, at)| (ty, at));
        let typedefs = protocol.typedefs.iter();
        let all = members.chain(typedefs.map(|typedef| (&typedef.ty, &typedef.at)));
        for (ty, at) in all {
            if let Type::Array(item) = ty
                && let Type::Named(name) = protocol.resolve(item).0
                && nothing.contains(&**name)
            {
                self.error_help(
                    at.item_type,
                    format!("{name:?} holds nothing, so an array of it is only a number"),
                    "make the field an int, or give the message a field",
                );
            }
        }
    }
}

/// The messages that have no fields, or only such that hold nothing either. Goes from the empty ones outwards, so that
/// each field is looked at once however often its message is held.
fn holding_nothing(protocol: &Protocol) -> BTreeSet<&str> {
    // How many fields of a message are not known to hold nothing, and which messages wait for one.
    let mut unsure: BTreeMap<&str, usize> = BTreeMap::new();
    let mut waiting: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut open: Vec<&str> = Vec::new();
    for message in named(protocol) {
        unsure.insert(&message.name, message.fields.len());
        if message.fields.is_empty() {
            open.push(&message.name);
        }
        for field in &message.fields {
            if let (Type::Named(held), false) = (protocol.resolve(&field.ty).0, field.is_optional())
            {
                waiting.entry(held).or_default().push(&message.name);
            }
        }
    }
    let mut found = BTreeSet::new();
    while let Some(name) = open.pop() {
        found.insert(name);
        for holder in waiting.remove(name).unwrap_or_default() {
            if let Some(left) = unsure.get_mut(holder) {
                *left -= 1;
                if *left == 0 {
                    open.push(holder);
                }
            }
        }
    }
    found
}

/// The unions of which no value can end: each variant leads, through required fields, to a circle of required fields or to
/// such a union. `required` has the messages and unions that a value of each type holds, a union with all its variants.
///
/// Works from the types that end outwards, each edge once: a message ends when all that it holds end, a union when one does.
fn endless(protocol: &Protocol, required: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<String> {
    let mut waiting: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut left: BTreeMap<&str, usize> = BTreeMap::new();
    let mut open: Vec<&str> = Vec::new();
    for (name, held) in required {
        for held in held {
            waiting.entry(held).or_default().push(name);
        }
        let needed = match protocol.union(name) {
            Some(union) => {
                let mut variants = union.variants.iter();
                usize::from(variants.all(|variant| self::held(protocol, &variant.ty).is_some()))
            }
            None => held.len(),
        };
        left.insert(name, needed);
        if needed == 0 {
            open.push(name);
        }
    }
    while let Some(name) = open.pop() {
        for holder in waiting.remove(name).unwrap_or_default() {
            if let Some(needed) = left.get_mut(holder)
                && *needed > 0
            {
                *needed -= 1;
                if *needed == 0 {
                    open.push(holder);
                }
            }
        }
    }
    left.retain(|name, needed| *needed > 0 && protocol.union(name).is_some());
    left.into_keys().map(str::to_owned).collect()
}

/// Which messages and unions hold which others directly: messages through fields that `counts`, unions through any variant.
pub(crate) fn edges(
    protocol: &Protocol,
    counts: impl Fn(&Field) -> bool,
) -> BTreeMap<String, BTreeSet<String>> {
    let mut edges: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for message in named(protocol) {
        let fields = message.fields.iter().filter(|field| counts(field));
        let held = fields
            .filter_map(|field| held(protocol, &field.ty))
            .collect();
        edges.insert(message.name.clone(), held);
    }
    for union in named_unions(protocol) {
        let variants = union.variants.iter();
        let held = variants
            .filter_map(|variant| held(protocol, &variant.ty))
            .collect();
        edges.insert(union.name.clone(), held);
    }
    edges
}

/// The message or union that a value of a type is, typedefs followed.
fn held(protocol: &Protocol, ty: &Type) -> Option<String> {
    match protocol.resolve(ty).0 {
        Type::Named(name) if protocol.message(name).is_some() || protocol.union(name).is_some() => {
            Some(name.clone())
        }
        _ => None,
    }
}

/// Unions without a name were refused.
fn named_unions(protocol: &Protocol) -> impl Iterator<Item = &Union> {
    let unions = protocol.unions.iter();
    unions.filter(|union| !union.name.is_empty())
}

/// Messages without a name were refused, so that no field can hold one.
fn named(protocol: &Protocol) -> impl Iterator<Item = &Message> {
    let messages = protocol.messages.iter();
    messages.filter(|message| !message.name.is_empty())
}

/// The way from a message back to itself, if there is one. Walks with a list of its own, not with the stack.
fn circle(start: &str, edges: &BTreeMap<String, BTreeSet<String>>) -> Option<Vec<String>> {
    let mut came_from: BTreeMap<&str, &str> = BTreeMap::new();
    let mut open: Vec<&str> = vec![start];
    while let Some(name) = open.pop() {
        for next in edges.get(name).into_iter().flatten() {
            if next == start {
                let mut way = vec![name.to_owned()];
                let mut at = name;
                while at != start {
                    at = came_from.get(at).copied().unwrap_or(start);
                    way.push(at.to_owned());
                }
                way.reverse();
                return Some(way);
            }
            if !came_from.contains_key(&**next) {
                came_from.insert(next, name);
                open.push(next);
            }
        }
    }
    None
}

/// Which messages hold themselves through each other: two are in one circle if each can be met from the other, and
/// have the same number then. Every message is in one, most of them alone.
pub(crate) struct Circles<'e> {
    edges: &'e BTreeMap<String, BTreeSet<String>>,
    number: BTreeMap<&'e str, usize>,
}

impl<'e> Circles<'e> {
    /// Tarjan's way, in one walk over all edges, with a list of its own in place of the stack.
    pub(crate) fn of(edges: &'e BTreeMap<String, BTreeSet<String>>) -> Self {
        let mut walk = Walk::default();
        for start in edges.keys() {
            walk.from(start, edges);
        }
        Self {
            edges,
            number: walk.number,
        }
    }

    /// Whether a message that one holds leads back to it.
    pub(crate) fn leads_back(&self, holder: &str, held: &str) -> bool {
        let number = self.number.get(held);
        number.is_some() && number == self.number.get(holder)
    }

    /// Whether a message holds itself, directly or through others.
    pub(crate) fn holds_itself(&self, name: &str) -> bool {
        let held = self.edges.get(name);
        held.into_iter()
            .flatten()
            .any(|held| self.leads_back(name, held))
    }
}

/// Where a walk over all messages stands.
#[derive(Default)]
struct Walk<'e> {
    /// When a message was met first, and the earliest one that can be met again from it.
    met: BTreeMap<&'e str, (usize, usize)>,
    /// Messages whose circle is not known yet.
    undecided: Vec<&'e str>,
    number: BTreeMap<&'e str, usize>,
}

impl<'e> Walk<'e> {
    fn from(&mut self, start: &'e str, edges: &'e BTreeMap<String, BTreeSet<String>>) {
        if self.met.contains_key(start) {
            return;
        }
        let held = |name: &str| edges.get(name).into_iter().flatten();
        let mut way = vec![(start, held(start))];
        self.meet(start);
        while let Some((name, rest)) = way.last_mut() {
            let name = *name;
            match rest.next() {
                Some(next) if !self.met.contains_key(&**next) => {
                    self.meet(next);
                    way.push((next, held(next)));
                }
                Some(next) => {
                    // One whose circle is known lies behind us and leads nowhere new.
                    if !self.number.contains_key(&**next) {
                        let (first, _) = self.met[&**next];
                        self.lower(name, first);
                    }
                }
                None => {
                    way.pop();
                    self.leave(name);
                    if let Some((before, _)) = way.last() {
                        let (_, earliest) = self.met[name];
                        self.lower(before, earliest);
                    }
                }
            }
        }
    }

    fn meet(&mut self, name: &'e str) {
        let first = self.met.len();
        self.met.insert(name, (first, first));
        self.undecided.push(name);
    }

    fn lower(&mut self, name: &str, earliest: usize) {
        if let Some((_, known)) = self.met.get_mut(name) {
            *known = earliest.min(*known);
        }
    }

    /// All that was met since the first of a circle and is still undecided belongs to it.
    fn leave(&mut self, name: &'e str) {
        let (first, earliest) = self.met[name];
        if first != earliest {
            return;
        }
        while let Some(member) = self.undecided.pop() {
            self.number.insert(member, first);
            if member == name {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn circles_are_those_that_a_search_finds() {
        // Graphs of four messages, one of each thirteen, which leaves out no shape of circle.
        for bits in (0u32..1 << 16).step_by(13) {
            let name = |index: u32| char::from(b'a' + index as u8).to_string();
            let edges: BTreeMap<String, BTreeSet<String>> = (0..4)
                .map(|from| {
                    let held = (0..4).filter(|to| bits >> (from * 4 + to) & 1 == 1);
                    (name(from), held.map(name).collect())
                })
                .collect();
            let circles = Circles::of(&edges);
            for message in edges.keys() {
                let found = circle(message, &edges).is_some();
                assert_eq!(circles.holds_itself(message), found, "{edges:?}");
                for held in &edges[message] {
                    let back = held == message || reaches(held, message, &edges);
                    assert_eq!(circles.leads_back(message, held), back, "{edges:?}");
                }
            }
        }
    }

    fn reaches(start: &str, goal: &str, edges: &BTreeMap<String, BTreeSet<String>>) -> bool {
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        let mut open: Vec<&str> = vec![start];
        while let Some(name) = open.pop() {
            let held = edges.get(name).into_iter().flatten();
            open.extend(held.map(|next| &**next).filter(|next| seen.insert(next)));
        }
        seen.contains(goal)
    }
}
