//! What a schema says, free of how it was written: the older forms are mapped onto the newer ones, imports are merged.
//!
//! Equality looks at meaning only; where something stood in a file takes no part in it. A [`Schema`] that exists has
//! passed every check, so generators need not look again.

use kumi_kdl::{Sources, Span};
use std::collections::BTreeMap;
use std::fmt;

/// A protocol with everything it uses, read and checked.
#[derive(Clone, Debug)]
pub struct Schema {
    pub(crate) protocol: Protocol,
    pub(crate) sources: Sources,
}

impl Schema {
    /// The protocol itself.
    pub fn protocol(&self) -> &Protocol {
        &self.protocol
    }

    /// The files it was read from, the one asked for first and its imports after.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.sources.files().iter().map(|file| file.name.as_str())
    }
}

/// Schemas are the same when they say the same, wherever they were read from.
impl PartialEq for Schema {
    fn eq(&self, other: &Self) -> bool {
        self.protocol == other.protocol
    }
}

/// Where something was written. Equal to any other place, because a place is no part of what a thing is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct At(pub(crate) Span);

impl PartialEq for At {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// `protocol "name" version="1.0.0" { ... }`
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Protocol {
    /// Its name as written, such as `chat` or `room-service`.
    pub name: String,
    /// Peers with the same major version understand each other.
    pub version: Version,
    /// The namespace of the protocol, such as `example.chat`.
    pub namespace: Option<String>,
    /// For readers.
    pub description: Option<String>,
    /// Declared ones first, then those that requests and events declare in place.
    pub messages: Vec<Message>,
    /// Sets of named values.
    pub enums: Vec<Enum>,
    /// Types whose values are of one of several types.
    pub unions: Vec<Union>,
    /// Types with another name, and perhaps narrower.
    pub typedefs: Vec<Typedef>,
    /// What can be opened.
    pub channels: Vec<Channel>,
    pub(crate) at: At,
    index: Index,
}

/// Where types stand in their lists, by name. Schemas have thousands of them, and they are looked up by name.
#[derive(Clone, Debug, Default, PartialEq)]
struct Index {
    messages: BTreeMap<String, usize>,
    enums: BTreeMap<String, usize>,
    unions: BTreeMap<String, usize>,
    typedefs: BTreeMap<String, usize>,
}

impl Protocol {
    /// A protocol without anything in it.
    pub(crate) fn empty() -> Self {
        Self {
            name: String::new(),
            version: Version {
                major: 0,
                minor: 0,
                patch: 0,
            },
            namespace: None,
            description: None,
            messages: Vec::new(),
            enums: Vec::new(),
            unions: Vec::new(),
            typedefs: Vec::new(),
            channels: Vec::new(),
            at: At::default(),
            index: Index::default(),
        }
    }

    pub(crate) fn add_message(&mut self, message: Message) {
        if !message.name.is_empty() {
            let place = self.messages.len();
            self.index.messages.insert(message.name.clone(), place);
        }
        self.messages.push(message);
    }

    pub(crate) fn add_enum(&mut self, declared: Enum) {
        if !declared.name.is_empty() {
            let place = self.enums.len();
            self.index.enums.insert(declared.name.clone(), place);
        }
        self.enums.push(declared);
    }

    pub(crate) fn add_union(&mut self, union: Union) {
        if !union.name.is_empty() {
            let place = self.unions.len();
            self.index.unions.insert(union.name.clone(), place);
        }
        self.unions.push(union);
    }

    pub(crate) fn add_typedef(&mut self, typedef: Typedef) {
        if !typedef.name.is_empty() {
            let place = self.typedefs.len();
            self.index.typedefs.insert(typedef.name.clone(), place);
        }
        self.typedefs.push(typedef);
    }

    /// The message of that name.
    pub fn message(&self, name: &str) -> Option<&Message> {
        self.messages.get(*self.index.messages.get(name)?)
    }

    /// The enum of that name.
    pub fn enumeration(&self, name: &str) -> Option<&Enum> {
        self.enums.get(*self.index.enums.get(name)?)
    }

    /// The union of that name.
    pub fn union(&self, name: &str) -> Option<&Union> {
        self.unions.get(*self.index.unions.get(name)?)
    }

    /// The typedef of that name.
    pub fn typedef(&self, name: &str) -> Option<&Typedef> {
        self.typedefs.get(*self.index.typedefs.get(name)?)
    }

    /// The channel of that name.
    pub fn channel(&self, name: &str) -> Option<&Channel> {
        self.channels.iter().find(|channel| channel.name == name)
    }

    /// The type of each field of a message and of each variant of a union, with its constraints and its places.
    pub(crate) fn members(&self) -> impl Iterator<Item = (&Type, &Constraints, &FieldPlaces)> {
        let fields = self.messages.iter().flat_map(|message| &message.fields);
        let variants = self.unions.iter().flat_map(|union| &union.variants);
        fields
            .map(|field| (&field.ty, &field.constraints, &field.at))
            .chain(variants.map(|variant| (&variant.ty, &variant.constraints, &variant.at)))
    }

    /// Follows typedefs down to what a value is made of. Every constraint on the way holds for it.
    pub(crate) fn resolve<'a>(&'a self, ty: &'a Type) -> (&'a Type, Vec<&'a Constraints>) {
        let mut ty = ty;
        let mut constraints = Vec::new();
        while let Type::Named(name) = ty
            && let Some(typedef) = self.typedef(name)
            && constraints.len() < crate::limits::MAX_TYPEDEF_DEPTH
        {
            constraints.push(&typedef.constraints);
            ty = &typedef.ty;
        }
        (ty, constraints)
    }
}

/// `major.minor.patch`. A new major version may change everything, a new minor one only adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// Peers whose majors differ refuse each other.
    pub major: u32,
    /// Grows with additions.
    pub minor: u32,
    /// Grows with corrections.
    pub patch: u32,
}

impl Version {
    /// Reads `1`, `1.2` or `1.2.3`; missing parts are 0.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('.').map(|part| {
            let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
            let plain = part == "0" || !part.starts_with('0');
            (digits && plain)
                .then(|| part.parse::<u32>().ok())
                .flatten()
        });
        let version = Self {
            major: parts.next()??,
            minor: parts.next().unwrap_or(Some(0))?,
            patch: parts.next().unwrap_or(Some(0))?,
        };
        parts.next().is_none().then_some(version)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// `message "Name" { field ... }`, or what a request, its answer or an event declares in place.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Message {
    /// Its name as written.
    pub name: String,
    /// For readers.
    pub description: Option<String>,
    /// In the order they were written, which the binary format keeps.
    pub fields: Vec<Field>,
    pub(crate) at: At,
}

/// `field "name" type="string" required=#true`
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Field {
    /// Its name as it travels.
    pub name: String,
    /// What it holds.
    pub ty: Type,
    /// Whether a message without it is refused.
    pub required: bool,
    /// What a reader sees when it was left out.
    pub default: Option<Literal>,
    /// What its value has to fulfil, besides its type's own constraints.
    pub constraints: Constraints,
    /// For readers.
    pub description: Option<String>,
    pub(crate) at: FieldPlaces,
}

impl Field {
    /// Whether there may be no value at all: it is neither required nor has a default.
    pub fn is_optional(&self) -> bool {
        !self.required && self.default.is_none()
    }
}

/// Where the parts of a field, a variant or a typedef stand.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct FieldPlaces {
    pub(crate) name: At,
    pub(crate) ty: At,
    pub(crate) item_type: At,
    pub(crate) default: At,
    pub(crate) min: At,
    pub(crate) max: At,
    pub(crate) min_length: At,
    pub(crate) max_length: At,
    pub(crate) pattern: At,
}

/// What a field holds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Type {
    /// Unicode text.
    String,
    /// 64 bits with sign.
    Int,
    /// 64 bits floating point; `number` is another word for it.
    Float,
    /// True or false.
    Bool,
    /// Milliseconds since 1970-01-01 UTC.
    Timestamp,
    /// Bytes; in JSON as base64.
    Bytes,
    /// Any JSON value.
    Json,
    /// Several values of one type.
    Array(Box<Type>),
    /// Values of one type by text keys.
    Map(Box<Type>),
    /// A message, an enum, a union or a typedef.
    Named(String),
}

impl Type {
    /// The words of the grammar for types that need no declaration.
    pub(crate) const BUILT_IN: [&'static str; 10] = [
        "string",
        "int",
        "float",
        "number",
        "bool",
        "timestamp",
        "bytes",
        "json",
        "array",
        "map",
    ];
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::String => f.write_str("string"),
            Self::Int => f.write_str("int"),
            Self::Float => f.write_str("float"),
            Self::Bool => f.write_str("bool"),
            Self::Timestamp => f.write_str("timestamp"),
            Self::Bytes => f.write_str("bytes"),
            Self::Json => f.write_str("json"),
            Self::Array(item) => write!(f, "array of {item}"),
            Self::Map(item) => write!(f, "map of {item}"),
            Self::Named(name) => f.write_str(name),
        }
    }
}

/// A value in a schema: a default, or a bound.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Literal {
    /// Text, or the name of an enum's value.
    String(String),
    /// A whole number.
    Int(i64),
    /// A number; never infinite and never NaN.
    Float(f64),
    /// True or false.
    Bool(bool),
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::String(text) => write!(f, "{text:?}"),
            Self::Int(number) => number.fmt(f),
            Self::Float(number) => write!(f, "{number:?}"),
            Self::Bool(truth) => truth.fmt(f),
        }
    }
}

/// What a value has to fulfil. Bounds are inclusive.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Constraints {
    /// The smallest number.
    pub min: Option<Literal>,
    /// The largest number.
    pub max: Option<Literal>,
    /// The fewest characters of a text, bytes, or items of an array or map.
    pub min_length: Option<u64>,
    /// The most characters, bytes or items.
    pub max_length: Option<u64>,
    /// A regular expression that has to match somewhere in the text.
    pub pattern: Option<String>,
}

impl Constraints {
    /// Whether everything fulfils it.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// `enum "Name" { value "a"; value "b" }`
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Enum {
    /// Its name as written.
    pub name: String,
    /// For readers.
    pub description: Option<String>,
    /// In the order they were written, which the binary format keeps.
    pub values: Vec<EnumValue>,
    /// Whether values that are not listed are kept instead of refused, so that the list can grow.
    pub open: bool,
    pub(crate) at: At,
}

/// One value of an enum.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct EnumValue {
    /// As it travels.
    pub name: String,
    /// For readers.
    pub description: Option<String>,
    pub(crate) at: At,
}

/// `union "Name" { variant "a" type="A"; variant "b" type="B" }`
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Union {
    /// Its name as written.
    pub name: String,
    /// For readers.
    pub description: Option<String>,
    /// At least one. In the order they were written, which the binary format keeps.
    pub variants: Vec<Variant>,
    pub(crate) at: At,
}

/// One variant of a union.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Variant {
    /// Its name as it travels.
    pub name: String,
    /// What it holds.
    pub ty: Type,
    /// What its value has to fulfil, besides its type's own constraints.
    pub constraints: Constraints,
    /// For readers.
    pub description: Option<String>,
    pub(crate) at: FieldPlaces,
}

/// `typedef "Name" type="string" max_length=64`
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Typedef {
    /// Its name as written.
    pub name: String,
    /// What it stands for.
    pub ty: Type,
    /// What its values have to fulfil.
    pub constraints: Constraints,
    /// For readers.
    pub description: Option<String>,
    pub(crate) at: FieldPlaces,
}

/// The side that sends something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Side {
    /// The side that connected.
    Client,
    /// The side that accepted the connection.
    Server,
    /// Both.
    Either,
}

impl Side {
    /// The word of the grammar.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
            Self::Either => "either",
        }
    }

    /// The side that receives what this one sends.
    pub fn opposite(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
            Self::Either => Self::Either,
        }
    }

    /// Whether the client sends it.
    pub fn is_client(self) -> bool {
        matches!(self, Self::Client | Self::Either)
    }

    /// Whether the server sends it.
    pub fn is_server(self) -> bool {
        matches!(self, Self::Server | Self::Either)
    }
}

/// How long a channel is meant to live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Lifetime {
    /// For a few exchanges; gone with its connection.
    Transient,
    /// As long as it is used; opened again after a reconnect.
    Persistent,
}

impl Lifetime {
    /// The word of the grammar.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Transient => "transient",
            Self::Persistent => "persistent",
        }
    }
}

/// Whether messages may get lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Delivery {
    /// Each arrives, in order.
    Reliable,
    /// Each is one datagram, and may get lost or overtake another. Carries events only.
    Unreliable,
}

impl Delivery {
    /// The word of the grammar.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Reliable => "reliable",
            Self::Unreliable => "unreliable",
        }
    }
}

/// Whether long messages are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Compression {
    /// Long messages are, if that makes them shorter.
    Auto,
    /// Never: lengths say nothing of what a message contains.
    Off,
}

impl Compression {
    /// The word of the grammar.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Off => "off",
        }
    }
}

/// What happens to events that the peer does not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Overflow {
    /// The oldest are dropped.
    DropOldest,
    /// The sender waits, and closes the channel after a while.
    Wait,
    /// The channel is closed.
    Close,
}

impl Overflow {
    /// The word of the grammar.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::DropOldest => "drop-oldest",
            Self::Wait => "wait",
            Self::Close => "close",
        }
    }
}

/// `channel "name" from="client" { request ...; event ... }`
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Channel {
    /// Its name as it travels.
    pub name: String,
    /// The side that sends its requests; on a channel without requests, the side that sends its events.
    pub from: Side,
    /// How long it is meant to live.
    pub lifetime: Lifetime,
    /// Whether messages may get lost.
    pub delivery: Delivery,
    /// Whether long messages are compressed. Peers need not agree.
    pub compression: Compression,
    /// What happens to events that the peer does not read. Peers need not agree.
    pub overflow: Overflow,
    /// For readers.
    pub description: Option<String>,
    /// What is answered.
    pub requests: Vec<Request>,
    /// What is not.
    pub events: Vec<Event>,
    pub(crate) at: At,
}

impl Channel {
    /// The events that one side sends.
    pub fn events_from(&self, side: Side) -> impl Iterator<Item = &Event> {
        self.events.iter().filter(move |event| match side {
            Side::Client => event.from.is_client(),
            Side::Server => event.from.is_server(),
            Side::Either => true,
        })
    }
}

/// `request "Name" idempotent=#true { field ...; returns "Answer" { ... } }`
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Request {
    /// The method's name as it travels.
    pub name: String,
    /// The message that asks.
    pub message: String,
    /// The message that answers; none when the answer is empty.
    pub returns: Option<String>,
    /// Whether it may be sent again when it is not known whether it was executed.
    pub idempotent: bool,
    /// For readers.
    pub description: Option<String>,
    pub(crate) at: At,
    pub(crate) returns_at: At,
}

/// `event "Name" { field ... }`
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Event {
    /// Its name as it travels.
    pub name: String,
    /// The message it carries.
    pub message: String,
    /// The side that sends it.
    pub from: Side,
    /// For readers.
    pub description: Option<String>,
    pub(crate) at: At,
}
