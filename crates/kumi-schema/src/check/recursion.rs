//! A message cannot hold itself without end.
//!
//! Through an optional field, an array or a map it may: such a value ends where the field is missing or the list is
//! empty. A circle of required fields has no smallest value.

use super::Checker;
use crate::model::{Field, Protocol, Type};
use std::collections::{BTreeMap, BTreeSet};

impl Checker<'_> {
    pub(super) fn recursion(&mut self, protocol: &Protocol) {
        let required = edges(protocol, |field| !field.is_optional());
        let mut reported = BTreeSet::new();
        for message in &protocol.messages {
            let Some(circle) = circle(&message.name, &required) else {
                continue;
            };
            // One report for a circle, whichever of its members comes first.
            if circle.iter().any(|name| reported.contains(name)) {
                continue;
            }
            reported.extend(circle.iter().cloned());
            let mut names = circle.clone();
            names.push(message.name.clone());
            self.error_help(
                message.at,
                format!(
                    "message {:?} always holds itself: {}",
                    message.name,
                    names.join(" -> ")
                ),
                "one of these fields has to be optional, or an array or a map",
            );
        }
        if reported.is_empty() {
            self.empty_items(protocol);
        }
    }

    /// An array of messages that hold nothing says no more than its length, and in the binary format a few bytes could
    /// claim billions of them.
    fn empty_items(&mut self, protocol: &Protocol) {
        let fields = protocol.messages.iter().flat_map(|message| &message.fields);
        let fields = fields.map(|field| (&field.ty, &field.at));
        let typedefs = protocol.typedefs.iter();
        let all = fields.chain(typedefs.map(|typedef| (&typedef.ty, &typedef.at)));
        for (ty, at) in all {
            if let Type::Array(item) = ty
                && let Type::Named(name) = protocol.resolve(item).0
                && holds_nothing(protocol, name)
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

/// Whether a message has no fields, or only such that hold nothing either. Ends, because required fields form no circle.
fn holds_nothing(protocol: &Protocol, name: &str) -> bool {
    protocol.message(name).is_some_and(|message| {
        message.fields.iter().all(|field| {
            !field.is_optional()
                && matches!(protocol.resolve(&field.ty).0, Type::Named(held) if holds_nothing(protocol, held))
        })
    })
}

/// Which messages hold which others directly, through fields that `counts`.
pub(crate) fn edges(
    protocol: &Protocol,
    counts: impl Fn(&Field) -> bool,
) -> BTreeMap<String, BTreeSet<String>> {
    let messages: BTreeSet<&str> = protocol
        .messages
        .iter()
        .map(|message| &*message.name)
        .collect();
    let mut edges: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for message in &protocol.messages {
        let held = message
            .fields
            .iter()
            .filter(|field| counts(field))
            .filter_map(|field| match protocol.resolve(&field.ty).0 {
                Type::Named(name) if messages.contains(&**name) => Some(name.clone()),
                _ => None,
            });
        edges.insert(message.name.clone(), held.collect());
    }
    edges
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

/// Whether one message can be met from another, or is it.
pub(crate) fn reaches(start: &str, goal: &str, edges: &BTreeMap<String, BTreeSet<String>>) -> bool {
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let mut open: Vec<&str> = vec![start];
    while let Some(name) = open.pop() {
        if name == goal {
            return true;
        }
        for next in edges.get(name).into_iter().flatten() {
            if seen.insert(next) {
                open.push(next);
            }
        }
    }
    false
}
