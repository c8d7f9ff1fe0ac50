//! Channels, and the older forms that became channels.
//!
//! | older form | means |
//! |---|---|
//! | `send "S"` and `recv "R"`, transient | `request "S" { returns "R" }` |
//! | `send "S"` and `recv "R"`, persistent | `event "S"` from the channel's side, `event "R"` from the other |
//! | `send "S"` alone | `event "S"` from the channel's side |
//! | `recv "R"` alone | `event "R"` from the other side |
//! | `service "X" { method "m" { request { } response { } } }` | `channel "X" from="client"` with a request per method |

use super::Reader;
use super::declaration::Types;
use crate::limits::MAX_MEMBERS;
use crate::model::{
    At, Channel, Compression, Delivery, Event, Lifetime, Message, Overflow, Protocol, Request, Side,
};
use crate::names;
use kumi_kdl::{Node, Span, Spanned};

const SIDES: &[(&str, Side)] = &[
    ("client", Side::Client),
    ("server", Side::Server),
    ("either", Side::Either),
];
const LIFETIMES: &[(&str, Lifetime)] = &[
    ("transient", Lifetime::Transient),
    ("persistent", Lifetime::Persistent),
];
const DELIVERIES: &[(&str, Delivery)] = &[
    ("reliable", Delivery::Reliable),
    ("unreliable", Delivery::Unreliable),
];
const COMPRESSIONS: &[(&str, Compression)] =
    &[("auto", Compression::Auto), ("off", Compression::Off)];
const OVERFLOWS: &[(&str, Overflow)] = &[
    ("drop-oldest", Overflow::DropOldest),
    ("wait", Overflow::Wait),
    ("close", Overflow::Close),
];

impl Reader {
    pub(super) fn channel(&mut self, node: &Node, protocol: &mut Protocol, types: &mut Types) {
        let known = [
            "from",
            "lifetime",
            "delivery",
            "compression",
            "overflow",
            "description",
        ];
        let properties = self.properties(node, &known);
        let from = self
            .choice(&properties, "from", SIDES)
            .unwrap_or(Side::Client);
        let lifetime = self.choice(&properties, "lifetime", LIFETIMES);
        let delivery = self.choice(&properties, "delivery", DELIVERIES);
        let compression = self.choice(&properties, "compression", COMPRESSIONS);
        let overflow = self.choice(&properties, "overflow", OVERFLOWS);
        let name = self.name_argument(node, "channel", "\"rooms\" from=\"client\"");
        let mut channel = Channel {
            name: String::new(),
            from,
            lifetime: lifetime.unwrap_or(Lifetime::Persistent),
            delivery: delivery.unwrap_or(Delivery::Reliable),
            compression: compression.unwrap_or(Compression::Auto),
            overflow: overflow.unwrap_or(Overflow::DropOldest),
            description: self.text(&properties, "description").map(|text| text.value),
            requests: Vec::new(),
            events: Vec::new(),
            at: At(name.as_ref().map_or(node.name.span, |name| name.span)),
        };
        let mut body = Body::default();
        for child in node.children.iter().flat_map(|children| &children.nodes) {
            match &*child.name.value {
                "request" => body.requests.push(self.request(child, protocol, types)),
                "event" => body.events.push(self.event(child, protocol, types)),
                "send" => body.sends.push(self.plain(child, protocol, types)),
                "recv" => body.receives.push(self.plain(child, protocol, types)),
                "description" => {
                    let text = self.text_node(child);
                    self.set_once(child, &mut channel.description, text);
                }
                _ => self.unknown_node(
                    child,
                    "a channel",
                    &["request", "event", "description", "send", "recv"],
                ),
            }
        }
        self.older_forms(&mut body, from, channel.lifetime);
        // Requests go one way; what is not an answer goes back, unless it says otherwise.
        let default = if body.requests.is_empty() {
            from
        } else {
            from.opposite()
        };
        channel.events = body
            .events
            .into_iter()
            .map(|(event, side)| Event {
                from: side.unwrap_or(default),
                ..event
            })
            .collect();
        channel.requests = body.requests;
        self.add_channel(name, channel, protocol);
    }

    /// `service "X" { method "m" { request { } response { } } }`
    pub(super) fn service(&mut self, node: &Node, protocol: &mut Protocol, types: &mut Types) {
        let properties = self.properties(node, &["description"]);
        let name = self.name_argument(node, "service", "\"Rooms\"");
        let mut channel = Channel {
            name: String::new(),
            from: Side::Client,
            lifetime: Lifetime::Transient,
            delivery: Delivery::Reliable,
            compression: Compression::Auto,
            overflow: Overflow::DropOldest,
            description: self.text(&properties, "description").map(|text| text.value),
            requests: Vec::new(),
            events: Vec::new(),
            at: At(name.as_ref().map_or(node.name.span, |name| name.span)),
        };
        for child in node.children.iter().flat_map(|children| &children.nodes) {
            match &*child.name.value {
                "method" => channel.requests.push(self.method(child, protocol, types)),
                "description" => {
                    let text = self.text_node(child);
                    self.set_once(child, &mut channel.description, text);
                }
                _ => self.unknown_node(child, "a service", &["method", "description"]),
            }
        }
        self.add_channel(name, channel, protocol);
    }

    fn add_channel(
        &mut self,
        name: Option<Spanned<String>>,
        mut channel: Channel,
        protocol: &mut Protocol,
    ) {
        if protocol.channels.len() >= MAX_MEMBERS {
            return self.error(
                channel.at.0,
                format!("a protocol has at most {MAX_MEMBERS} channels"),
            );
        }
        // A channel whose name is refused stays without one: what it carries is checked all the same.
        if let Some(name) = name {
            let mut known = protocol.channels.iter();
            match known.find(|known| known.name == name.value) {
                Some(first) => {
                    let (first, help) = (first.at.0, "give one of them another name");
                    self.duplicate(name.span, "channel", &name.value, first, help);
                }
                None => channel.name = name.value,
            }
        }
        protocol.channels.push(channel);
    }

    fn request(&mut self, node: &Node, protocol: &mut Protocol, types: &mut Types) -> Request {
        let properties = self.properties(node, &["idempotent", "description"]);
        let idempotent = self.truth(&properties, "idempotent");
        let description = self.text(&properties, "description").map(|text| text.value);
        let carried = self.carried(node, description, &["returns"], protocol, types);
        let mut returns: Option<Carried> = None;
        for child in node.children.iter().flat_map(|children| &children.nodes) {
            if child.name.value != "returns" {
                continue;
            }
            let answer = self.plain(child, protocol, types);
            if returns.is_some() {
                self.error(child.name.span, "a request returns one message");
            }
            returns = returns.or(Some(answer));
        }
        Request {
            name: carried.name.clone(),
            message: carried.name,
            returns_at: At(returns.as_ref().map_or(carried.span, |answer| answer.span)),
            returns: returns.map(|answer| answer.name),
            idempotent,
            description: carried.description,
            at: At(carried.span),
        }
    }

    fn event(
        &mut self,
        node: &Node,
        protocol: &mut Protocol,
        types: &mut Types,
    ) -> (Event, Option<Side>) {
        let properties = self.properties(node, &["from", "description"]);
        let from = self.choice(&properties, "from", SIDES);
        let description = self.text(&properties, "description").map(|text| text.value);
        let carried = self.carried(node, description, &[], protocol, types);
        (carried.event(), from)
    }

    /// A message of which nothing is said but what it is for.
    fn plain(&mut self, node: &Node, protocol: &mut Protocol, types: &mut Types) -> Carried {
        let properties = self.properties(node, &["description"]);
        let description = self.text(&properties, "description").map(|text| text.value);
        self.carried(node, description, &[], protocol, types)
    }

    /// A message that is declared where it is used, or, without a block of its own, named. Its name is empty if it was
    /// refused.
    fn carried(
        &mut self,
        node: &Node,
        mut description: Option<String>,
        others: &[&str],
        protocol: &mut Protocol,
        types: &mut Types,
    ) -> Carried {
        let kind = &*node.name.value;
        let name = self.name_argument(node, kind, "\"Joined\"");
        let fields = self.fields(node, &mut description, others, &format!("'{kind}'"));
        let carried = Carried {
            name: name
                .as_ref()
                .map_or_else(String::new, |name| name.value.clone()),
            span: Self::name_place(node),
            description: description.clone(),
        };
        let declared =
            protocol.message(&carried.name).is_some() || self.unusable.contains(&carried.name);
        // `returns "Pong" { }` declares an empty message; `returns "Pong"` has to find one.
        let only_named = fields.is_empty()
            && (declared
                || (matches!(kind, "returns" | "send" | "recv") && node.children.is_none()));
        if !only_named {
            protocol.add_message(Message {
                name: self.declared_name(types, name),
                description,
                fields,
                at: At(carried.span),
            });
        }
        carried
    }

    /// `method "m" { request { field ... } response { field ... } }`
    fn method(&mut self, node: &Node, protocol: &mut Protocol, types: &mut Types) -> Request {
        let properties = self.properties(node, &["idempotent", "description"]);
        let mut description = self.text(&properties, "description").map(|text| text.value);
        let idempotent = self.truth(&properties, "idempotent");
        let name = self.name_argument(node, "method", "\"join\"");
        let span = Self::name_place(node);
        // Of a name that was refused, nothing is made.
        let type_name = |suffix: &str| match &name {
            Some(name) => names::pascal_case(&name.value) + suffix,
            None => String::new(),
        };
        let mut takes: Option<Carried> = None;
        let mut gives: Option<Carried> = None;
        for child in node.children.iter().flat_map(|children| &children.nodes) {
            let (place, suffix) = match &*child.name.value {
                "request" => (&mut takes, ""),
                "response" | "returns" => (&mut gives, "Response"),
                "description" => {
                    let text = self.text_node(child);
                    self.set_once(child, &mut description, text);
                    continue;
                }
                _ => {
                    self.unknown_node(child, "a method", &["request", "response", "description"]);
                    continue;
                }
            };
            if place.is_some() {
                self.error(
                    child.name.span,
                    format!("'{}' is given twice", child.name.value),
                );
            }
            *place = Some(match child.arguments.is_empty() {
                false => self.plain(child, protocol, types),
                true => self.unnamed(child, type_name(suffix), span, protocol, types),
            });
        }
        let takes = match takes {
            Some(takes) => takes,
            None => self.declared(type_name(""), span, None, Vec::new(), protocol, types),
        };
        Request {
            message: takes.name,
            returns_at: At(gives.as_ref().map_or(span, |answer| answer.span)),
            returns: gives.map(|answer| answer.name),
            idempotent,
            description,
            at: At(span),
            name: name.map(|name| name.value).unwrap_or_default(),
        }
    }

    /// The `request` or `response` of a method, whose name follows from the method's.
    fn unnamed(
        &mut self,
        node: &Node,
        type_name: String,
        span: Span,
        protocol: &mut Protocol,
        types: &mut Types,
    ) -> Carried {
        let properties = self.properties(node, &["description"]);
        let mut description = self.text(&properties, "description").map(|text| text.value);
        let fields = self.fields(
            node,
            &mut description,
            &[],
            &format!("'{}'", node.name.value),
        );
        self.declared(type_name, span, description, fields, protocol, types)
    }

    fn declared(
        &mut self,
        name: String,
        span: Span,
        description: Option<String>,
        fields: Vec<crate::model::Field>,
        protocol: &mut Protocol,
        types: &mut Types,
    ) -> Carried {
        let usable = Some(Spanned::new(name.clone(), span)).filter(|_| !name.is_empty());
        protocol.add_message(Message {
            name: self.declared_name(types, usable),
            description: description.clone(),
            fields,
            at: At(span),
        });
        Carried {
            name,
            span,
            description,
        }
    }

    /// Turns `send` and `recv` into requests and events.
    fn older_forms(&mut self, body: &mut Body, from: Side, lifetime: Lifetime) {
        let sends = std::mem::take(&mut body.sends);
        let receives = std::mem::take(&mut body.receives);
        if lifetime == Lifetime::Transient && !sends.is_empty() && !receives.is_empty() {
            if let Some(extra) = sends.get(1).or(receives.get(1)) {
                let help = "write each pair as: request \"Ask\" { returns \"Answer\" }";
                self.error_help(
                    extra.span,
                    "it is not clear which 'recv' answers which 'send'",
                    help,
                );
            }
            let answer = receives.into_iter().next();
            if let Some(ask) = sends.into_iter().next() {
                body.requests.push(Request {
                    name: ask.name.clone(),
                    message: ask.name,
                    returns_at: At(answer.as_ref().map_or(ask.span, |answer| answer.span)),
                    returns: answer.map(|answer| answer.name),
                    idempotent: false,
                    description: ask.description,
                    at: At(ask.span),
                });
            }
            return;
        }
        body.events
            .extend(sends.into_iter().map(|sent| (sent.event(), Some(from))));
        let back = receives
            .into_iter()
            .map(|received| (received.event(), Some(from.opposite())));
        body.events.extend(back);
    }
}

/// What stands in a channel, before it is known which way its events go.
#[derive(Default)]
struct Body {
    requests: Vec<Request>,
    events: Vec<(Event, Option<Side>)>,
    sends: Vec<Carried>,
    receives: Vec<Carried>,
}

/// The name of a message where it is used.
struct Carried {
    name: String,
    span: Span,
    description: Option<String>,
}

impl Carried {
    /// An event that carries it; who sends it is filled in later.
    fn event(self) -> Event {
        Event {
            name: self.name.clone(),
            message: self.name,
            from: Side::Either,
            description: self.description,
            at: At(self.span),
        }
    }
}
