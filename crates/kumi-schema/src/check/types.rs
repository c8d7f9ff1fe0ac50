//! Names of types refer to something, and channels carry what they can.

use super::Checker;
use crate::limits::MAX_TYPEDEF_DEPTH;
use crate::model::{At, Channel, Delivery, FieldPlaces, Protocol, Type};
use kumi_kdl::did_you_mean;
use std::collections::BTreeSet;

/// Words of other languages, and what they are called here.
const OTHER_WORDS: &[(&str, &str)] = &[
    ("integer", "int"),
    ("long", "int"),
    ("i32", "int"),
    ("i64", "int"),
    ("u32", "int"),
    ("u64", "int"),
    ("double", "float"),
    ("f32", "float"),
    ("f64", "float"),
    ("decimal", "float"),
    ("str", "string"),
    ("text", "string"),
    ("uuid", "string"),
    ("boolean", "bool"),
    ("datetime", "timestamp"),
    ("date", "timestamp"),
    ("time", "timestamp"),
    ("binary", "bytes"),
    ("blob", "bytes"),
    ("buffer", "bytes"),
    ("object", "json"),
    ("any", "json"),
    ("value", "json"),
    ("list", "array"),
    ("vec", "array"),
    ("set", "array"),
    ("dict", "map"),
    ("hash", "map"),
    ("record", "map"),
];

impl Checker<'_> {
    /// Every name of a type is declared somewhere.
    pub(super) fn types(&mut self, protocol: &Protocol, broken: bool) {
        let known: BTreeSet<&str> = declared(protocol).collect();
        for typedef in &protocol.typedefs {
            self.known_type(&typedef.ty, &typedef.at, &known, broken);
        }
        for (ty, _, at) in protocol.members() {
            self.known_type(ty, at, &known, broken);
        }
        self.typedefs_end(protocol);
        for channel in &protocol.channels {
            for request in &channel.requests {
                if let Some(returns) = &request.returns {
                    self.known_message(protocol, returns, request.returns_at, broken);
                }
                self.known_message(protocol, &request.message, request.at, broken);
            }
            for event in &channel.events {
                self.known_message(protocol, &event.message, event.at, broken);
            }
        }
    }

    fn known_type(&mut self, ty: &Type, at: &FieldPlaces, known: &BTreeSet<&str>, broken: bool) {
        let (name, at) = match ty {
            Type::Named(name) => (name, at.ty),
            Type::Array(item) | Type::Map(item) => match &**item {
                Type::Named(name) => (name, at.item_type),
                _ => return,
            },
            _ => return,
        };
        // After an error in a declaration the name may well have been declared there.
        if known.contains(&**name) || self.unusable.contains(name) || name.is_empty() || broken {
            return;
        }
        self.error(at, format!("there is no type {name:?}"), |diagnostic| {
            let other = OTHER_WORDS
                .iter()
                .find(|(word, _)| name.eq_ignore_ascii_case(word))
                .map(|(_, ours)| *ours);
            let meant = other.or_else(|| {
                did_you_mean(
                    name,
                    Type::BUILT_IN.into_iter().chain(known.iter().copied()),
                )
            });
            diagnostic.help(match meant {
                Some(meant) => format!("did you mean {meant:?}?"),
                None => format!("declare it: message {name:?} {{ ... }}"),
            })
        });
    }

    fn known_message(&mut self, protocol: &Protocol, name: &str, at: At, broken: bool) {
        // One without a name was refused.
        let is_known = protocol.message(name).is_some() || name.is_empty();
        if is_known || self.unusable.contains(name) || broken {
            return;
        }
        let is_other_type = protocol.typedef(name).is_some()
            || protocol.enumeration(name).is_some()
            || protocol.union(name).is_some();
        if is_other_type {
            return self.error_help(
                at,
                format!("{name:?} is not a message"),
                "what travels on a channel is a message; give it a field of this type",
            );
        }
        self.error(at, format!("there is no message {name:?}"), |diagnostic| {
            let messages = protocol.messages.iter().map(|message| &*message.name);
            let messages = messages.filter(|name| !name.is_empty());
            diagnostic.help(match did_you_mean(name, messages) {
                Some(meant) => format!("did you mean {meant:?}?"),
                None => format!("declare it: message {name:?} {{ field ... }}"),
            })
        });
    }

    /// A typedef stands for something in the end, and not for itself.
    fn typedefs_end(&mut self, protocol: &Protocol) {
        for typedef in &protocol.typedefs {
            let mut seen = vec![&*typedef.name];
            let mut ty = &typedef.ty;
            loop {
                let name = match ty {
                    Type::Named(name) => name,
                    Type::Array(item) | Type::Map(item) => match &**item {
                        Type::Named(name) => name,
                        _ => break,
                    },
                    _ => break,
                };
                let Some(next) = protocol.typedef(name) else {
                    break;
                };
                seen.push(&next.name);
                if next.name == typedef.name {
                    let circle = seen.join(" -> ");
                    self.error_help(
                        typedef.at.name,
                        format!("typedef {:?} stands for itself: {circle}", typedef.name),
                        "use a message where a type has to hold itself",
                    );
                    break;
                }
                if seen.len() > MAX_TYPEDEF_DEPTH {
                    let message = format!("typedefs nest more than {MAX_TYPEDEF_DEPTH} deep");
                    self.error(typedef.at.name, message, |diagnostic| diagnostic);
                    break;
                }
                ty = &next.ty;
            }
        }
    }

    /// A channel carries something, and an unreliable one no requests.
    pub(super) fn channels(&mut self, protocol: &Protocol, broken: bool) {
        for channel in &protocol.channels {
            let is_named = !channel.name.is_empty();
            if channel.requests.is_empty() && channel.events.is_empty() && is_named && !broken {
                self.error_help(
                    channel.at,
                    format!("channel {:?} has no requests and no events", channel.name),
                    "add a request or an event",
                );
            }
            self.unreliable(channel);
        }
        if protocol.channels.is_empty() && !broken {
            self.error_help(
                protocol.at,
                format!("protocol {:?} has no channels", protocol.name),
                "for instance: channel \"rooms\" from=\"client\" { request \"Join\" { returns \"Joined\" { } } }",
            );
        }
    }

    fn unreliable(&mut self, channel: &Channel) {
        if channel.delivery == Delivery::Unreliable
            && let Some(request) = channel.requests.first()
        {
            self.error_help(
                request.at,
                "an unreliable channel carries events only",
                "a response could be lost; put the request on a reliable channel",
            );
        }
    }
}

fn declared(protocol: &Protocol) -> impl Iterator<Item = &str> {
    let messages = protocol.messages.iter().map(|message| &*message.name);
    let enums = protocol.enums.iter().map(|declared| &*declared.name);
    let typedefs = protocol.typedefs.iter().map(|typedef| &*typedef.name);
    let unions = protocol.unions.iter().map(|union| &*union.name);
    let all = messages.chain(enums).chain(unions).chain(typedefs);
    all.filter(|name| !name.is_empty())
}
