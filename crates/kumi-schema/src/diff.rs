//! What changed between two versions of a schema, and whether peers of both still understand each other.
//!
//! Either peer may be the older one, so every message is thought of as written by one and read by the other, both ways
//! round. Names of messages do not travel and are not compared; what they hold is. Two rules are a
//! choice: loosening a constraint is called safe although an older reader refuses the values it adds,
//! adding a value to an enum is safe only if the enum is open, and adding a variant to a union never is.

use crate::model::{Channel, Enum, Field, Message, Protocol, Schema, Side, Union, Version};
use crate::shape::{Kind, Shape, less};
use std::collections::BTreeSet;
use std::fmt;

/// What a change does to peers that do not have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Impact {
    /// Peers of the two versions misunderstand or refuse each other.
    Breaking,
    /// They go on understanding each other.
    Safe,
}

/// One change.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Change {
    /// What it does to peers.
    pub impact: Impact,
    /// Where, such as `channel rooms, request Join, field room`.
    pub place: String,
    /// What changed, in a few words.
    pub text: String,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.impact {
            Impact::Breaking => "breaking",
            Impact::Safe => "safe",
        };
        write!(f, "{word}: {}: {}", self.place, self.text)
    }
}

/// All changes between two versions.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference {
    /// Breaking ones first, in the order of the new schema.
    pub changes: Vec<Change>,
    /// The version before.
    pub old_version: Version,
    /// The version now.
    pub new_version: Version,
}

impl Difference {
    /// Compares two schemas.
    ///
    /// ```
    /// use kumi_schema::{Difference, Schema};
    ///
    /// let old = r#"protocol "p" version="1.0.0" { channel "c" { event "E" { field "a" type="int" } } }"#;
    /// let new = old.replace("int", "string");
    /// let difference = Difference::between(
    ///     &Schema::parse("old.kdl", old).unwrap(),
    ///     &Schema::parse("new.kdl", &new).unwrap(),
    /// );
    /// assert_eq!(
    ///     difference.changes[0].to_string(),
    ///     "breaking: channel c, event E, field a: its type was int and is string"
    /// );
    /// assert!(difference.breaks_unannounced());
    /// ```
    pub fn between(old: &Schema, new: &Schema) -> Self {
        let mut comparison = Comparison {
            old: &old.protocol,
            new: &new.protocol,
            changes: Vec::new(),
            seen: BTreeSet::new(),
        };
        comparison.protocols();
        let mut changes = comparison.changes;
        changes.sort_by_key(|change| change.impact);
        Self {
            changes,
            old_version: old.protocol.version,
            new_version: new.protocol.version,
        }
    }

    /// Whether anything broke.
    pub fn is_breaking(&self) -> bool {
        self.changes
            .iter()
            .any(|change| change.impact == Impact::Breaking)
    }

    /// Whether something broke although the major version says that nothing did.
    pub fn breaks_unannounced(&self) -> bool {
        self.is_breaking() && self.new_version.major <= self.old_version.major
    }
}

struct Comparison<'s> {
    old: &'s Protocol,
    new: &'s Protocol,
    changes: Vec<Change>,
    /// Pairs of messages, enums and unions that were compared; each is reported once, where it was met first.
    seen: BTreeSet<(String, String)>,
}

impl<'s> Comparison<'s> {
    fn note(&mut self, impact: Impact, place: &str, text: impl Into<String>) {
        self.changes.push(Change {
            impact,
            place: place.to_owned(),
            text: text.into(),
        });
    }

    fn breaking(&mut self, place: &str, text: impl Into<String>) {
        self.note(Impact::Breaking, place, text);
    }

    fn safe(&mut self, place: &str, text: impl Into<String>) {
        self.note(Impact::Safe, place, text);
    }

    fn protocols(&mut self) {
        let (old, new) = (self.old, self.new);
        if old.name != new.name {
            let text = format!("its name was {:?} and is {:?}", old.name, new.name);
            self.breaking("protocol", text);
        }
        if old.namespace != new.namespace {
            self.safe("protocol", "its namespace changed");
        }
        if old.version.major != new.version.major {
            let text = format!(
                "the major version was {} and is {}",
                old.version.major, new.version.major
            );
            self.breaking("protocol", text);
        }
        for channel in &new.channels {
            let place = format!("channel {}", channel.name);
            match old.channel(&channel.name) {
                Some(before) => self.channels(before, channel, &place),
                None => self.safe(&place, "it is new"),
            }
        }
        for channel in &old.channels {
            if new.channel(&channel.name).is_none() {
                self.breaking(&format!("channel {}", channel.name), "it is gone");
            }
        }
    }

    fn channels(&mut self, old: &'s Channel, new: &'s Channel, place: &str) {
        if old.from != new.from && !(old.requests.is_empty() || new.requests.is_empty()) {
            let text = format!(
                "requests came from {} and come from {}",
                side(old.from),
                side(new.from)
            );
            self.breaking(place, text);
        }
        if old.delivery != new.delivery {
            let text = format!(
                "its delivery was {} and is {}",
                old.delivery.as_str(),
                new.delivery.as_str()
            );
            self.breaking(place, text);
        }
        if old.lifetime != new.lifetime {
            let text = format!(
                "its lifetime was {} and is {}",
                old.lifetime.as_str(),
                new.lifetime.as_str()
            );
            self.safe(place, text);
        }
        if old.compression != new.compression {
            let text = format!(
                "its compression was {} and is {}",
                old.compression.as_str(),
                new.compression.as_str()
            );
            self.safe(place, text);
        }
        if old.overflow != new.overflow {
            let text = format!(
                "its overflow was {} and is {}",
                old.overflow.as_str(),
                new.overflow.as_str()
            );
            self.safe(place, text);
        }
        self.requests(old, new, place);
        self.events(old, new, place);
    }

    fn requests(&mut self, old: &'s Channel, new: &'s Channel, place: &str) {
        for request in &new.requests {
            let place = format!("{place}, request {}", request.name);
            let Some(before) = old.requests.iter().find(|known| known.name == request.name) else {
                self.safe(&place, "it is new; servers need it first");
                continue;
            };
            match (before.idempotent, request.idempotent) {
                (true, false) => {
                    self.breaking(
                        &place,
                        "it is no longer idempotent, and older clients may repeat it",
                    );
                }
                (false, true) => self.safe(&place, "it is idempotent now"),
                _ => {}
            }
            self.messages(&before.message, &request.message, &place);
            match (&before.returns, &request.returns) {
                (Some(old), Some(new)) => self.messages(old, new, &format!("{place}, answer")),
                (None, Some(_)) => self.breaking(
                    &place,
                    "it has an answer now, which older servers do not give",
                ),
                (Some(_), None) => self.breaking(&place, "its answer is gone"),
                (None, None) => {}
            }
        }
        for request in &old.requests {
            if !new.requests.iter().any(|known| known.name == request.name) {
                self.breaking(&format!("{place}, request {}", request.name), "it is gone");
            }
        }
    }

    fn events(&mut self, old: &'s Channel, new: &'s Channel, place: &str) {
        for event in &new.events {
            let place = format!("{place}, event {}", event.name);
            let Some(before) = old.events.iter().find(|known| known.name == event.name) else {
                self.safe(&place, "it is new; older peers ignore it");
                continue;
            };
            if before.from != event.from {
                let text = format!(
                    "it came from {} and comes from {}",
                    side(before.from),
                    side(event.from)
                );
                self.breaking(&place, text);
            }
            self.messages(&before.message, &event.message, &place);
        }
        for event in &old.events {
            if !new.events.iter().any(|known| known.name == event.name) {
                self.breaking(&format!("{place}, event {}", event.name), "it is gone");
            }
        }
    }

    /// Compares two messages and what they hold. Recursive only as deep as messages nest in each other for the first
    /// time, and each pair is visited once; the work is kept in a list, so the stack does not grow.
    fn messages(&mut self, old: &str, new: &str, place: &str) {
        let mut open = vec![(old.to_owned(), new.to_owned(), place.to_owned())];
        while let Some((old_name, new_name, place)) = open.pop() {
            if !self.seen.insert((old_name.clone(), new_name.clone())) {
                continue;
            }
            let (old, new) = (self.old, self.new);
            if old_name != new_name {
                let text = format!(
                    "what it holds was called {old_name} and is called {new_name}; the binary format is off between \
                     the two versions"
                );
                self.safe(&place, text);
            }
            if let (Some(before), Some(after)) = (old.message(&old_name), new.message(&new_name)) {
                self.fields(before, after, &place, &mut open);
            } else if let (Some(before), Some(after)) =
                (old.enumeration(&old_name), new.enumeration(&new_name))
            {
                self.enums(before, after, &place);
            } else if let (Some(before), Some(after)) = (old.union(&old_name), new.union(&new_name))
            {
                self.unions(before, after, &place, &mut open);
            }
        }
    }

    fn fields(
        &mut self,
        old: &Message,
        new: &Message,
        place: &str,
        open: &mut Vec<(String, String, String)>,
    ) {
        for field in &new.fields {
            let place = format!("{place}, field {}", field.name);
            match old.fields.iter().find(|known| known.name == field.name) {
                Some(before) => self.field(before, field, &place, open),
                None if field.required => self.breaking(&place, "it is new and required"),
                None => self.safe(&place, "it is new"),
            }
        }
        for field in &old.fields {
            if new.fields.iter().any(|known| known.name == field.name) {
                continue;
            }
            let place = format!("{place}, field {}", field.name);
            if field.required {
                self.breaking(&place, "it is gone, and older peers require it");
            } else {
                self.safe(&place, "it is gone");
            }
        }
        let common = |message: &Message, other: &Message| -> Vec<String> {
            let shared = |field: &&Field| other.fields.iter().any(|known| known.name == field.name);
            message
                .fields
                .iter()
                .filter(shared)
                .map(|field| field.name.clone())
                .collect()
        };
        if common(old, new) != common(new, old) {
            self.safe(
                place,
                "its fields have another order; the binary format is off between the two versions",
            );
        }
    }

    fn field(
        &mut self,
        old: &Field,
        new: &Field,
        place: &str,
        open: &mut Vec<(String, String, String)>,
    ) {
        match (old.required, new.required) {
            (false, true) => self.breaking(place, "it is required now"),
            (true, false) => {
                self.breaking(place, "it may be missing now, and older peers require it")
            }
            _ => {}
        }
        match (&old.default, &new.default) {
            (Some(before), Some(after)) if before != after => {
                let text = format!("a missing one meant {before} and means {after}");
                self.breaking(place, text);
            }
            (None, Some(default)) => self.safe(place, format!("its default is {default} now")),
            (Some(_), None) => self.safe(place, "its default is gone"),
            _ => {}
        }
        let before = Shape::of(self.old, &old.ty, &old.constraints);
        let after = Shape::of(self.new, &new.ty, &new.constraints);
        self.shapes(&before, &after, place, open);
    }

    fn shapes(
        &mut self,
        old: &Shape,
        new: &Shape,
        place: &str,
        open: &mut Vec<(String, String, String)>,
    ) {
        match (&old.kind, &new.kind) {
            (Kind::Array(before), Kind::Array(after)) | (Kind::Map(before), Kind::Map(after)) => {
                self.shapes(before, after, &format!("{place}, items"), open);
            }
            (Kind::Message(before), Kind::Message(after))
            | (Kind::Enum(before), Kind::Enum(after))
            | (Kind::Union(before), Kind::Union(after)) => {
                open.push((before.clone(), after.clone(), place.to_owned()));
            }
            (before, after) if std::mem::discriminant(before) != std::mem::discriminant(after) => {
                return self.breaking(place, format!("its type was {before} and is {after}"));
            }
            _ => {}
        }
        let tighter = |old: &Option<_>, new: &Option<_>, by: fn(&_, &_) -> bool| match (old, new) {
            (None, Some(_)) => Some(true),
            (Some(_), None) => Some(false),
            (Some(before), Some(after)) if by(before, after) => Some(true),
            (Some(before), Some(after)) if by(after, before) => Some(false),
            _ => None,
        };
        let longer =
            |old: Option<u64>, new: Option<u64>, by: fn(&u64, &u64) -> bool| match (old, new) {
                (None, Some(_)) => Some(true),
                (Some(_), None) => Some(false),
                (Some(before), Some(after)) if by(&before, &after) => Some(true),
                (Some(before), Some(after)) if by(&after, &before) => Some(false),
                _ => None,
            };
        let bounds = [
            ("min", tighter(&old.min, &new.min, less)),
            (
                "max",
                tighter(&old.max, &new.max, |before, after| less(after, before)),
            ),
            (
                "min_length",
                longer(old.min_length, new.min_length, |before, after| {
                    before < after
                }),
            ),
            (
                "max_length",
                longer(old.max_length, new.max_length, |before, after| {
                    after < before
                }),
            ),
        ];
        for (name, change) in bounds {
            match change {
                Some(true) => self.breaking(place, format!("its {name} is narrower")),
                Some(false) => self.safe(
                    place,
                    format!("its {name} is wider; older readers refuse the new values"),
                ),
                None => {}
            }
        }
        if old.patterns != new.patterns {
            if new
                .patterns
                .iter()
                .all(|pattern| old.patterns.contains(pattern))
            {
                self.safe(
                    place,
                    "its pattern is gone; older readers refuse the new values",
                );
            } else {
                self.breaking(place, "its pattern changed");
            }
        }
    }

    /// A union is closed: a peer refuses a variant that its schema does not have.
    fn unions(
        &mut self,
        old: &Union,
        new: &Union,
        place: &str,
        open: &mut Vec<(String, String, String)>,
    ) {
        let place = format!("{place}, union {}", new.name);
        for variant in &new.variants {
            let known = old.variants.iter().find(|known| known.name == variant.name);
            let Some(known) = known else {
                let text = format!(
                    "variant {:?} is new, and older peers refuse it",
                    variant.name
                );
                self.breaking(&place, text);
                continue;
            };
            let before = Shape::of(self.old, &known.ty, &known.constraints);
            let after = Shape::of(self.new, &variant.ty, &variant.constraints);
            let place = format!("{place}, variant {}", variant.name);
            self.shapes(&before, &after, &place, open);
        }
        for variant in &old.variants {
            if !new.variants.iter().any(|known| known.name == variant.name) {
                self.breaking(&place, format!("variant {:?} is gone", variant.name));
            }
        }
        let common = |one: &Union, other: &Union| -> Vec<String> {
            let names = one.variants.iter().map(|variant| variant.name.clone());
            let shared = |name: &String| other.variants.iter().any(|known| known.name == *name);
            names.filter(shared).collect()
        };
        if common(old, new) != common(new, old) {
            self.safe(
                &place,
                "its variants have another order; the binary format is off between the two versions",
            );
        }
    }

    fn enums(&mut self, old: &Enum, new: &Enum, place: &str) {
        let place = format!("{place}, enum {}", new.name);
        match (old.open, new.open) {
            (true, false) => self.breaking(&place, "it is closed now"),
            (false, true) => self.safe(&place, "it is open now"),
            _ => {}
        }
        for value in &new.values {
            if old.values.iter().any(|known| known.name == value.name) {
                continue;
            }
            if old.open {
                self.safe(&place, format!("value {:?} is new", value.name));
            } else {
                let text = format!("value {:?} is new, and older peers refuse it", value.name);
                self.breaking(&place, text);
            }
        }
        for value in &old.values {
            if !new.values.iter().any(|known| known.name == value.name) {
                self.breaking(&place, format!("value {:?} is gone", value.name));
            }
        }
        let common = |one: &Enum, other: &Enum| -> Vec<String> {
            let names = one.values.iter().map(|value| value.name.clone());
            let shared = |name: &String| other.values.iter().any(|value| value.name == *name);
            names.filter(shared).collect()
        };
        if common(old, new) != common(new, old) {
            self.safe(
                &place,
                "its values have another order; the binary format is off between the two versions",
            );
        }
    }
}

fn side(side: Side) -> &'static str {
    match side {
        Side::Client => "the client",
        Side::Server => "the server",
        Side::Either => "either side",
    }
}

#[cfg(test)]
mod tests;
