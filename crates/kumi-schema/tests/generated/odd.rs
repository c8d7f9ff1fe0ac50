// Generated from protocol odd by kumi-schema. Changes belong into the schema.

/// Version of the protocol. Peers whose first numbers differ refuse each other.
#[allow(dead_code, unreachable_pub)]
pub const ODD_PROTOCOL_VERSION: &str = "0.1.0";

/// Hash over the whole protocol.
#[allow(dead_code, unreachable_pub)]
pub const ODD_PROTOCOL_HASH: [u8; 32] = [
    0x52, 0xbb, 0x5d, 0x6d, 0xa0, 0xeb, 0xd1, 0xe6, 0xaa, 0x22, 0xd2, 0xf5, 0x0c, 0xf9,
    0xcc, 0x35, 0x7b, 0x95, 0x9a, 0x95, 0xa7, 0x73, 0x10, 0xe8, 0xb9, 0x56, 0xa5, 0xfa,
    0x69, 0xa9, 0xe7, 0xda,
];

/// Another name for string.
#[allow(dead_code, unreachable_pub)]
pub type ToString = String;

/// Another name for array of ToString.
#[allow(dead_code, unreachable_pub)]
pub type Iterator = Vec<ToString>;

/// Another name for array of Iterator.
#[allow(dead_code, unreachable_pub)]
pub type Deep = Vec<Iterator>;

/// Another name for map of Deep.
#[allow(dead_code, unreachable_pub)]
pub type Deeper = ::std::collections::BTreeMap<String, Deep>;

/// Another name for array of bytes.
#[allow(dead_code, unreachable_pub)]
pub type Blobs = Vec<Vec<u8>>;

/// Another name for Node.
#[allow(dead_code, unreachable_pub)]
pub type Next = Node;

/// Another name for array of Next.
#[allow(dead_code, unreachable_pub)]
pub type Kids = Vec<Next>;

/// Another name for Ord.
#[allow(dead_code, unreachable_pub)]
pub type Level = Ord;

/// One of the values of Ord.
///
/// A value that is not listed is refused.
#[derive(
    Clone,
    Debug,
    PartialEq,
    Copy,
    Eq,
    Hash,
    ::kumi_unison::serde::Serialize,
    ::kumi_unison::serde::Deserialize,
    ::kumi_unison::rkyv::Archive,
    ::kumi_unison::rkyv::Serialize,
    ::kumi_unison::rkyv::Deserialize
)]
#[serde(crate = "::kumi_unison::serde")]
#[rkyv(crate = ::kumi_unison::rkyv)]
#[allow(clippy::enum_variant_names)]
#[allow(dead_code, unreachable_pub)]
pub enum Ord {
    /// `send`
    #[serde(rename = "send")]
    Send,
    /// `from`
    #[serde(rename = "from")]
    From,
    /// `self`
    #[serde(rename = "self")]
    Self_,
    /// `none`
    #[serde(rename = "none")]
    None,
    /// `static`
    #[serde(rename = "static")]
    Static,
}

#[allow(dead_code, unreachable_pub)]
impl Ord {
    /// The values that the schema lists, in its order.
    pub const LISTED: [Self; 5] = [
        Self::Send,
        Self::From,
        Self::Self_,
        Self::None,
        Self::Static,
    ];
    /// The value as it travels.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Send => "send",
            Self::From => "from",
            Self::Self_ => "self",
            Self::None => "none",
            Self::Static => "static",
        }
    }
}

impl ::core::fmt::Display for Ord {
    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One of the values of Debug.
///
/// Values that are not listed are kept as `Unknown`.
#[derive(
    Clone,
    Debug,
    PartialEq,
    Eq,
    Hash,
    ::kumi_unison::serde::Serialize,
    ::kumi_unison::serde::Deserialize,
    ::kumi_unison::rkyv::Archive,
    ::kumi_unison::rkyv::Serialize,
    ::kumi_unison::rkyv::Deserialize
)]
#[serde(crate = "::kumi_unison::serde")]
#[rkyv(crate = ::kumi_unison::rkyv)]
#[allow(clippy::enum_variant_names)]
#[allow(dead_code, unreachable_pub)]
pub enum Debug {
    /// `copy`
    #[serde(rename = "copy")]
    Copy,
    /// `drop`
    #[serde(rename = "drop")]
    Drop,
    /// A value that the schema does not list, as it came.
    #[serde(untagged)]
    Unknown(String),
}

#[allow(dead_code, unreachable_pub)]
impl Debug {
    /// The values that the schema lists, in its order.
    pub const LISTED: [Self; 2] = [Self::Copy, Self::Drop];
    /// The value as it travels.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Copy => "copy",
            Self::Drop => "drop",
            Self::Unknown(value) => value,
        }
    }
}

impl ::core::fmt::Display for Debug {
    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Message Node.
#[derive(
    Clone,
    Debug,
    PartialEq,
    ::kumi_unison::serde::Serialize,
    ::kumi_unison::serde::Deserialize,
    ::kumi_unison::rkyv::Archive,
    ::kumi_unison::rkyv::Serialize,
    ::kumi_unison::rkyv::Deserialize
)]
#[serde(crate = "::kumi_unison::serde")]
#[rkyv(crate = ::kumi_unison::rkyv)]
#[rkyv(
    serialize_bounds(
        __S: ::kumi_unison::rkyv::ser::Writer+::kumi_unison::rkyv::ser::Allocator,
        __S::Error: ::kumi_unison::rkyv::rancor::Source
    )
)]
#[rkyv(deserialize_bounds(__D::Error: ::kumi_unison::rkyv::rancor::Source))]
#[rkyv(
    bytecheck(
        bounds(
            __C: ::kumi_unison::rkyv::validation::ArchiveContext,
            __C::Error: ::kumi_unison::rkyv::rancor::Source
        )
    )
)]
#[allow(dead_code, unreachable_pub)]
pub struct Node {
    /// Field next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[rkyv(omit_bounds)]
    pub next: Option<Box<Next>>,
    /// Field kids.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[rkyv(omit_bounds)]
    pub kids: Option<::std::collections::BTreeMap<String, Kids>>,
    /// Field blobs.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "::kumi_unison::typed::base64_bytes"
    )]
    pub blobs: Option<::std::collections::BTreeMap<String, Blobs>>,
    /// Field level.
    #[serde(default = "Node::default_level")]
    pub level: Level,
    /// Field levels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub levels: Option<Vec<Level>>,
}

#[allow(dead_code, unreachable_pub)]
impl Node {
    fn default_level() -> Level {
        Ord::Static
    }

    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(
        &self,
    ) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        if let Some(value) = &self.next {
            value.validate().map_err(|error| error.within("next"))?;
        }
        if let Some(value) = &self.kids {
            for (key0, value0) in value {
                ::kumi_unison::typed::check::max_length(value0.len(), 3)
                    .map_err(|problem| problem.at(format!("kids[{:?}]", key0)))?;
                for (index1, value1) in value0.iter().enumerate() {
                    value1
                        .validate()
                        .map_err(|error| {
                            error.within(format!("kids[{:?}][{}]", key0, index1))
                        })?;
                }
            }
        }
        Ok(())
    }
}

impl Default for Node {
    fn default() -> Self {
        Self {
            next: None,
            kids: None,
            blobs: None,
            level: Self::default_level(),
            levels: None,
        }
    }
}

impl ::kumi_unison::Message for Node {
    const NAME: &'static str = "Node";
    fn validate(&self) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Node::validate(self)
    }
}

/// Message From.
#[derive(
    Clone,
    Debug,
    PartialEq,
    ::kumi_unison::serde::Serialize,
    ::kumi_unison::serde::Deserialize,
    ::kumi_unison::rkyv::Archive,
    ::kumi_unison::rkyv::Serialize,
    ::kumi_unison::rkyv::Deserialize
)]
#[serde(crate = "::kumi_unison::serde")]
#[rkyv(crate = ::kumi_unison::rkyv)]
#[allow(dead_code, unreachable_pub)]
pub struct From {
    /// Field from.
    pub from: String,
}

#[allow(dead_code, unreachable_pub)]
impl From {
    /// A message with what it has to have, and nothing else.
    pub fn new(from: impl ::core::convert::Into<String>) -> Self {
        Self { from: from.into() }
    }

    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(
        &self,
    ) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Ok(())
    }
}

impl ::kumi_unison::Message for From {
    const NAME: &'static str = "From";
    fn validate(&self) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        From::validate(self)
    }
}

/// Message Into.
#[derive(
    Clone,
    Debug,
    PartialEq,
    ::kumi_unison::serde::Serialize,
    ::kumi_unison::serde::Deserialize,
    ::kumi_unison::rkyv::Archive,
    ::kumi_unison::rkyv::Serialize,
    ::kumi_unison::rkyv::Deserialize
)]
#[serde(crate = "::kumi_unison::serde")]
#[rkyv(crate = ::kumi_unison::rkyv)]
#[allow(dead_code, unreachable_pub)]
pub struct Into {
    /// Field into.
    pub into: From,
}

#[allow(dead_code, unreachable_pub)]
impl Into {
    /// A message with what it has to have, and nothing else.
    pub fn new(into: From) -> Self {
        Self { into }
    }

    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(
        &self,
    ) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        {
            let value = &self.into;
            value.validate().map_err(|error| error.within("into"))?;
        }
        Ok(())
    }
}

impl ::kumi_unison::Message for Into {
    const NAME: &'static str = "Into";
    fn validate(&self) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Into::validate(self)
    }
}

/// Message AsRef.
#[derive(
    Clone,
    Debug,
    PartialEq,
    ::kumi_unison::serde::Serialize,
    ::kumi_unison::serde::Deserialize,
    ::kumi_unison::rkyv::Archive,
    ::kumi_unison::rkyv::Serialize,
    ::kumi_unison::rkyv::Deserialize
)]
#[serde(crate = "::kumi_unison::serde")]
#[rkyv(crate = ::kumi_unison::rkyv)]
#[allow(dead_code, unreachable_pub)]
pub struct AsRef {
    /// Field as.
    pub r#as: String,
    /// Field ref.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r#ref: Option<Into>,
}

#[allow(dead_code, unreachable_pub)]
impl AsRef {
    /// A message with what it has to have, and nothing else.
    pub fn new(r#as: impl ::core::convert::Into<String>) -> Self {
        Self {
            r#as: r#as.into(),
            r#ref: None,
        }
    }

    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(
        &self,
    ) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        if let Some(value) = &self.r#ref {
            value.validate().map_err(|error| error.within("ref"))?;
        }
        Ok(())
    }
}

impl ::kumi_unison::Message for AsRef {
    const NAME: &'static str = "AsRef";
    fn validate(&self) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        AsRef::validate(self)
    }
}

/// Message Copy.
#[derive(
    Clone,
    Debug,
    PartialEq,
    Default,
    ::kumi_unison::serde::Serialize,
    ::kumi_unison::serde::Deserialize,
    ::kumi_unison::rkyv::Archive,
    ::kumi_unison::rkyv::Serialize,
    ::kumi_unison::rkyv::Deserialize
)]
#[serde(crate = "::kumi_unison::serde")]
#[rkyv(crate = ::kumi_unison::rkyv)]
#[allow(dead_code, unreachable_pub)]
pub struct Copy {
    /// Field copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy: Option<Deeper>,
    /// Field match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r#match: Option<::std::collections::BTreeMap<String, Deep>>,
}

#[allow(dead_code, unreachable_pub)]
impl Copy {
    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(
        &self,
    ) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        if let Some(value) = &self.copy {
            for (key0, value0) in value {
                for (index1, value1) in value0.iter().enumerate() {
                    for (index2, value2) in value1.iter().enumerate() {
                        {
                            static PATTERN: ::kumi_unison::typed::check::Pattern = ::kumi_unison::typed::check::Pattern::new(
                                "^\\S+.[\\w-]*\\s?$",
                            );
                            PATTERN
                                .check(value2)
                                .map_err(|problem| {
                                    problem
                                        .at(format!("copy[{:?}][{}][{}]", key0, index1, index2))
                                })?;
                        }
                    }
                }
            }
        }
        if let Some(value) = &self.r#match {
            for (key0, value0) in value {
                for (index1, value1) in value0.iter().enumerate() {
                    for (index2, value2) in value1.iter().enumerate() {
                        {
                            static PATTERN: ::kumi_unison::typed::check::Pattern = ::kumi_unison::typed::check::Pattern::new(
                                "^\\S+.[\\w-]*\\s?$",
                            );
                            PATTERN
                                .check(value2)
                                .map_err(|problem| {
                                    problem
                                        .at(format!("match[{:?}][{}][{}]", key0, index1, index2))
                                })?;
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

impl ::kumi_unison::Message for Copy {
    const NAME: &'static str = "Copy";
    fn validate(&self) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Copy::validate(self)
    }
}

/// Message Eq.
#[derive(
    Clone,
    Debug,
    PartialEq,
    ::kumi_unison::serde::Serialize,
    ::kumi_unison::serde::Deserialize,
    ::kumi_unison::rkyv::Archive,
    ::kumi_unison::rkyv::Serialize,
    ::kumi_unison::rkyv::Deserialize
)]
#[serde(crate = "::kumi_unison::serde")]
#[rkyv(crate = ::kumi_unison::rkyv)]
#[allow(dead_code, unreachable_pub)]
pub struct Eq {
    /// Field eq.
    pub eq: f64,
    /// Field loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r#loop: Option<Vec<f64>>,
}

#[allow(dead_code, unreachable_pub)]
impl Eq {
    /// A message with what it has to have, and nothing else.
    pub fn new(eq: f64) -> Self {
        Self { eq, r#loop: None }
    }

    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(
        &self,
    ) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        {
            let value = &self.eq;
            ::kumi_unison::typed::check::finite(*value)
                .map_err(|problem| problem.at("eq"))?;
        }
        if let Some(value) = &self.r#loop {
            for (index0, value0) in value.iter().enumerate() {
                ::kumi_unison::typed::check::finite(*value0)
                    .map_err(|problem| problem.at(format!("loop[{}]", index0)))?;
            }
        }
        Ok(())
    }
}

impl ::kumi_unison::Message for Eq {
    const NAME: &'static str = "Eq";
    fn validate(&self) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Eq::validate(self)
    }
}

/// Message Hash.
#[derive(
    Clone,
    Debug,
    PartialEq,
    ::kumi_unison::serde::Serialize,
    ::kumi_unison::serde::Deserialize,
    ::kumi_unison::rkyv::Archive,
    ::kumi_unison::rkyv::Serialize,
    ::kumi_unison::rkyv::Deserialize
)]
#[serde(crate = "::kumi_unison::serde")]
#[rkyv(crate = ::kumi_unison::rkyv)]
#[allow(dead_code, unreachable_pub)]
pub struct Hash {
    /// Field crate.
    #[serde(rename = "crate", default = "Hash::default_crate")]
    pub crate_: Ord,
    /// Field super.
    #[serde(rename = "super", default = "Hash::default_super")]
    pub super_: Debug,
}

#[allow(dead_code, unreachable_pub)]
impl Hash {
    fn default_crate() -> Ord {
        Ord::None
    }

    fn default_super() -> Debug {
        Debug::Drop
    }

    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(
        &self,
    ) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Ok(())
    }
}

impl Default for Hash {
    fn default() -> Self {
        Self {
            crate_: Self::default_crate(),
            super_: Self::default_super(),
        }
    }
}

impl ::kumi_unison::Message for Hash {
    const NAME: &'static str = "Hash";
    fn validate(&self) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Hash::validate(self)
    }
}

/// Message IntoIterator.
#[derive(
    Clone,
    Debug,
    PartialEq,
    ::kumi_unison::serde::Serialize,
    ::kumi_unison::serde::Deserialize,
    ::kumi_unison::rkyv::Archive,
    ::kumi_unison::rkyv::Serialize,
    ::kumi_unison::rkyv::Deserialize
)]
#[serde(crate = "::kumi_unison::serde")]
#[rkyv(crate = ::kumi_unison::rkyv)]
#[allow(dead_code, unreachable_pub)]
pub struct IntoIterator {
    /// Field value.
    pub value: String,
    /// Field path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<i64>,
}

#[allow(dead_code, unreachable_pub)]
impl IntoIterator {
    /// A message with what it has to have, and nothing else.
    pub fn new(value: impl ::core::convert::Into<String>) -> Self {
        Self {
            value: value.into(),
            path: None,
        }
    }

    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(
        &self,
    ) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        {
            let value = &self.value;
            ::kumi_unison::typed::check::max_length(value.chars().count(), 3)
                .map_err(|problem| problem.at("value"))?;
        }
        if let Some(value) = &self.path {
            ::kumi_unison::typed::check::at_least(value, &0)
                .map_err(|problem| problem.at("path"))?;
        }
        Ok(())
    }
}

impl ::kumi_unison::Message for IntoIterator {
    const NAME: &'static str = "IntoIterator";
    fn validate(&self) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        IntoIterator::validate(self)
    }
}

/// Message Future.
#[derive(
    Clone,
    Debug,
    PartialEq,
    Default,
    ::kumi_unison::serde::Serialize,
    ::kumi_unison::serde::Deserialize,
    ::kumi_unison::rkyv::Archive,
    ::kumi_unison::rkyv::Serialize,
    ::kumi_unison::rkyv::Deserialize
)]
#[serde(crate = "::kumi_unison::serde")]
#[rkyv(crate = ::kumi_unison::rkyv)]
#[rkyv(
    serialize_bounds(
        __S: ::kumi_unison::rkyv::ser::Writer+::kumi_unison::rkyv::ser::Allocator,
        __S::Error: ::kumi_unison::rkyv::rancor::Source
    )
)]
#[rkyv(deserialize_bounds(__D::Error: ::kumi_unison::rkyv::rancor::Source))]
#[rkyv(
    bytecheck(
        bounds(
            __C: ::kumi_unison::rkyv::validation::ArchiveContext,
            __C::Error: ::kumi_unison::rkyv::rancor::Source
        )
    )
)]
#[allow(dead_code, unreachable_pub)]
pub struct Future {
    /// Field future.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[rkyv(omit_bounds)]
    pub future: Option<Box<Future>>,
    /// Field async.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r#async: Option<Sync>,
}

#[allow(dead_code, unreachable_pub)]
impl Future {
    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(
        &self,
    ) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        if let Some(value) = &self.future {
            value.validate().map_err(|error| error.within("future"))?;
        }
        if let Some(value) = &self.r#async {
            value.validate().map_err(|error| error.within("async"))?;
        }
        Ok(())
    }
}

impl ::kumi_unison::Message for Future {
    const NAME: &'static str = "Future";
    fn validate(&self) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Future::validate(self)
    }
}

/// Message Error.
#[derive(
    Clone,
    Debug,
    PartialEq,
    ::kumi_unison::serde::Serialize,
    ::kumi_unison::serde::Deserialize,
    ::kumi_unison::rkyv::Archive,
    ::kumi_unison::rkyv::Serialize,
    ::kumi_unison::rkyv::Deserialize
)]
#[serde(crate = "::kumi_unison::serde")]
#[rkyv(crate = ::kumi_unison::rkyv)]
#[allow(dead_code, unreachable_pub)]
pub struct Error {
    /// Field message.
    pub message: String,
}

#[allow(dead_code, unreachable_pub)]
impl Error {
    /// A message with what it has to have, and nothing else.
    pub fn new(message: impl ::core::convert::Into<String>) -> Self {
        Self { message: message.into() }
    }

    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(
        &self,
    ) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Ok(())
    }
}

impl ::kumi_unison::Message for Error {
    const NAME: &'static str = "Error";
    fn validate(&self) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Error::validate(self)
    }
}

/// Message Call.
#[derive(
    Clone,
    Debug,
    PartialEq,
    Default,
    ::kumi_unison::serde::Serialize,
    ::kumi_unison::serde::Deserialize,
    ::kumi_unison::rkyv::Archive,
    ::kumi_unison::rkyv::Serialize,
    ::kumi_unison::rkyv::Deserialize
)]
#[serde(crate = "::kumi_unison::serde")]
#[rkyv(crate = ::kumi_unison::rkyv)]
#[allow(dead_code, unreachable_pub)]
pub struct Call {
    /// Field peer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<Error>,
}

#[allow(dead_code, unreachable_pub)]
impl Call {
    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(
        &self,
    ) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        if let Some(value) = &self.peer {
            value.validate().map_err(|error| error.within("peer"))?;
        }
        Ok(())
    }
}

impl ::kumi_unison::Message for Call {
    const NAME: &'static str = "Call";
    fn validate(&self) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Call::validate(self)
    }
}

/// Message Message.
#[derive(
    Clone,
    Debug,
    PartialEq,
    Default,
    ::kumi_unison::serde::Serialize,
    ::kumi_unison::serde::Deserialize,
    ::kumi_unison::rkyv::Archive,
    ::kumi_unison::rkyv::Serialize,
    ::kumi_unison::rkyv::Deserialize
)]
#[serde(crate = "::kumi_unison::serde")]
#[rkyv(crate = ::kumi_unison::rkyv)]
#[allow(dead_code, unreachable_pub)]
pub struct Message {}
#[allow(dead_code, unreachable_pub)]
impl Message {
    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(
        &self,
    ) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Ok(())
    }
}

impl ::kumi_unison::Message for Message {
    const NAME: &'static str = "Message";
    fn validate(&self) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Message::validate(self)
    }
}

/// Message Json.
#[derive(
    Clone,
    Debug,
    PartialEq,
    Default,
    ::kumi_unison::serde::Serialize,
    ::kumi_unison::serde::Deserialize,
    ::kumi_unison::rkyv::Archive,
    ::kumi_unison::rkyv::Serialize,
    ::kumi_unison::rkyv::Deserialize
)]
#[serde(crate = "::kumi_unison::serde")]
#[rkyv(crate = ::kumi_unison::rkyv)]
#[allow(dead_code, unreachable_pub)]
pub struct Json {
    /// Field json.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub json: Option<::kumi_unison::Json>,
    /// Field constructor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub constructor: Option<i64>,
    /// Field toString.
    #[serde(rename = "toString", default, skip_serializing_if = "Option::is_none")]
    pub to_string: Option<i64>,
}

#[allow(dead_code, unreachable_pub)]
impl Json {
    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(
        &self,
    ) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Ok(())
    }
}

impl ::kumi_unison::Message for Json {
    const NAME: &'static str = "Json";
    fn validate(&self) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Json::validate(self)
    }
}

/// Message Timestamp.
#[derive(
    Clone,
    Debug,
    PartialEq,
    Default,
    ::kumi_unison::serde::Serialize,
    ::kumi_unison::serde::Deserialize,
    ::kumi_unison::rkyv::Archive,
    ::kumi_unison::rkyv::Serialize,
    ::kumi_unison::rkyv::Deserialize
)]
#[serde(crate = "::kumi_unison::serde")]
#[rkyv(crate = ::kumi_unison::rkyv)]
#[allow(dead_code, unreachable_pub)]
pub struct Timestamp {
    /// Field at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<::kumi_unison::Timestamp>,
}

#[allow(dead_code, unreachable_pub)]
impl Timestamp {
    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(
        &self,
    ) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Ok(())
    }
}

impl ::kumi_unison::Message for Timestamp {
    const NAME: &'static str = "Timestamp";
    fn validate(&self) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Timestamp::validate(self)
    }
}

/// Message Record.
#[derive(
    Clone,
    Debug,
    PartialEq,
    Default,
    ::kumi_unison::serde::Serialize,
    ::kumi_unison::serde::Deserialize,
    ::kumi_unison::rkyv::Archive,
    ::kumi_unison::rkyv::Serialize,
    ::kumi_unison::rkyv::Deserialize
)]
#[serde(crate = "::kumi_unison::serde")]
#[rkyv(crate = ::kumi_unison::rkyv)]
#[allow(dead_code, unreachable_pub)]
pub struct Record {
    /// Field record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<::std::collections::BTreeMap<String, Number>>,
    /// Field Object.
    #[serde(rename = "Object", default, skip_serializing_if = "Option::is_none")]
    pub object: Option<Array>,
    /// Field json.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub json: Option<::kumi_unison::Json>,
}

#[allow(dead_code, unreachable_pub)]
impl Record {
    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(
        &self,
    ) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        if let Some(value) = &self.record {
            for (key0, value0) in value {
                value0
                    .validate()
                    .map_err(|error| error.within(format!("record[{:?}]", key0)))?;
            }
        }
        if let Some(value) = &self.object {
            value.validate().map_err(|error| error.within("Object"))?;
        }
        Ok(())
    }
}

impl ::kumi_unison::Message for Record {
    const NAME: &'static str = "Record";
    fn validate(&self) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Record::validate(self)
    }
}

/// Message Array.
#[derive(
    Clone,
    Debug,
    PartialEq,
    Default,
    ::kumi_unison::serde::Serialize,
    ::kumi_unison::serde::Deserialize,
    ::kumi_unison::rkyv::Archive,
    ::kumi_unison::rkyv::Serialize,
    ::kumi_unison::rkyv::Deserialize
)]
#[serde(crate = "::kumi_unison::serde")]
#[rkyv(crate = ::kumi_unison::rkyv)]
#[allow(dead_code, unreachable_pub)]
pub struct Array {}
#[allow(dead_code, unreachable_pub)]
impl Array {
    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(
        &self,
    ) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Ok(())
    }
}

impl ::kumi_unison::Message for Array {
    const NAME: &'static str = "Array";
    fn validate(&self) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Array::validate(self)
    }
}

/// Message Number.
#[derive(
    Clone,
    Debug,
    PartialEq,
    Default,
    ::kumi_unison::serde::Serialize,
    ::kumi_unison::serde::Deserialize,
    ::kumi_unison::rkyv::Archive,
    ::kumi_unison::rkyv::Serialize,
    ::kumi_unison::rkyv::Deserialize
)]
#[serde(crate = "::kumi_unison::serde")]
#[rkyv(crate = ::kumi_unison::rkyv)]
#[allow(dead_code, unreachable_pub)]
pub struct Number {
    /// Field Symbol.
    #[serde(
        rename = "Symbol",
        default,
        skip_serializing_if = "Option::is_none",
        with = "::kumi_unison::typed::base64_bytes"
    )]
    pub symbol: Option<Vec<u8>>,
}

#[allow(dead_code, unreachable_pub)]
impl Number {
    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(
        &self,
    ) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Ok(())
    }
}

impl ::kumi_unison::Message for Number {
    const NAME: &'static str = "Number";
    fn validate(&self) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Number::validate(self)
    }
}

/// Message RegExp.
#[derive(
    Clone,
    Debug,
    PartialEq,
    Default,
    ::kumi_unison::serde::Serialize,
    ::kumi_unison::serde::Deserialize,
    ::kumi_unison::rkyv::Archive,
    ::kumi_unison::rkyv::Serialize,
    ::kumi_unison::rkyv::Deserialize
)]
#[serde(crate = "::kumi_unison::serde")]
#[rkyv(crate = ::kumi_unison::rkyv)]
#[allow(dead_code, unreachable_pub)]
pub struct RegExp {
    /// Field field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
}

#[allow(dead_code, unreachable_pub)]
impl RegExp {
    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(
        &self,
    ) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        if let Some(value) = &self.field {
            ::kumi_unison::typed::check::min_length(value.chars().count(), 1)
                .map_err(|problem| problem.at("field"))?;
        }
        Ok(())
    }
}

impl ::kumi_unison::Message for RegExp {
    const NAME: &'static str = "RegExp";
    fn validate(&self) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        RegExp::validate(self)
    }
}

/// Message Send.
#[derive(
    Clone,
    Debug,
    PartialEq,
    ::kumi_unison::serde::Serialize,
    ::kumi_unison::serde::Deserialize,
    ::kumi_unison::rkyv::Archive,
    ::kumi_unison::rkyv::Serialize,
    ::kumi_unison::rkyv::Deserialize
)]
#[serde(crate = "::kumi_unison::serde")]
#[rkyv(crate = ::kumi_unison::rkyv)]
#[allow(dead_code, unreachable_pub)]
pub struct Send {
    /// Field to.
    pub to: String,
}

#[allow(dead_code, unreachable_pub)]
impl Send {
    /// A message with what it has to have, and nothing else.
    pub fn new(to: impl ::core::convert::Into<String>) -> Self {
        Self { to: to.into() }
    }

    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(
        &self,
    ) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Ok(())
    }
}

impl ::kumi_unison::Message for Send {
    const NAME: &'static str = "Send";
    fn validate(&self) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Send::validate(self)
    }
}

/// Message Sync.
#[derive(
    Clone,
    Debug,
    PartialEq,
    Default,
    ::kumi_unison::serde::Serialize,
    ::kumi_unison::serde::Deserialize,
    ::kumi_unison::rkyv::Archive,
    ::kumi_unison::rkyv::Serialize,
    ::kumi_unison::rkyv::Deserialize
)]
#[serde(crate = "::kumi_unison::serde")]
#[rkyv(crate = ::kumi_unison::rkyv)]
#[allow(dead_code, unreachable_pub)]
pub struct Sync {
    /// Field sync.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync: Option<bool>,
}

#[allow(dead_code, unreachable_pub)]
impl Sync {
    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(
        &self,
    ) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Ok(())
    }
}

impl ::kumi_unison::Message for Sync {
    const NAME: &'static str = "Sync";
    fn validate(&self) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Sync::validate(self)
    }
}

/// Message Clone.
#[derive(
    Clone,
    Debug,
    PartialEq,
    Default,
    ::kumi_unison::serde::Serialize,
    ::kumi_unison::serde::Deserialize,
    ::kumi_unison::rkyv::Archive,
    ::kumi_unison::rkyv::Serialize,
    ::kumi_unison::rkyv::Deserialize
)]
#[serde(crate = "::kumi_unison::serde")]
#[rkyv(crate = ::kumi_unison::rkyv)]
#[allow(dead_code, unreachable_pub)]
pub struct Clone {}
#[allow(dead_code, unreachable_pub)]
impl Clone {
    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(
        &self,
    ) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Ok(())
    }
}

impl ::kumi_unison::Message for Clone {
    const NAME: &'static str = "Clone";
    fn validate(&self) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Clone::validate(self)
    }
}

/// Message Result.
#[derive(
    Clone,
    Debug,
    PartialEq,
    ::kumi_unison::serde::Serialize,
    ::kumi_unison::serde::Deserialize,
    ::kumi_unison::rkyv::Archive,
    ::kumi_unison::rkyv::Serialize,
    ::kumi_unison::rkyv::Deserialize
)]
#[serde(crate = "::kumi_unison::serde")]
#[rkyv(crate = ::kumi_unison::rkyv)]
#[allow(dead_code, unreachable_pub)]
pub struct Result {
    /// Field ok.
    pub ok: bool,
}

#[allow(dead_code, unreachable_pub)]
impl Result {
    /// A message with what it has to have, and nothing else.
    pub fn new(ok: bool) -> Self {
        Self { ok }
    }

    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(
        &self,
    ) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Ok(())
    }
}

impl ::kumi_unison::Message for Result {
    const NAME: &'static str = "Result";
    fn validate(&self) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Result::validate(self)
    }
}

/// Message S.
#[derive(
    Clone,
    Debug,
    PartialEq,
    ::kumi_unison::serde::Serialize,
    ::kumi_unison::serde::Deserialize,
    ::kumi_unison::rkyv::Archive,
    ::kumi_unison::rkyv::Serialize,
    ::kumi_unison::rkyv::Deserialize
)]
#[serde(crate = "::kumi_unison::serde")]
#[rkyv(crate = ::kumi_unison::rkyv)]
#[allow(dead_code, unreachable_pub)]
pub struct S {
    /// Field s.
    pub s: String,
}

#[allow(dead_code, unreachable_pub)]
impl S {
    /// A message with what it has to have, and nothing else.
    pub fn new(s: impl ::core::convert::Into<String>) -> Self {
        Self { s: s.into() }
    }

    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(
        &self,
    ) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Ok(())
    }
}

impl ::kumi_unison::Message for S {
    const NAME: &'static str = "S";
    fn validate(&self) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        S::validate(self)
    }
}

/// Message Drop.
#[derive(
    Clone,
    Debug,
    PartialEq,
    Default,
    ::kumi_unison::serde::Serialize,
    ::kumi_unison::serde::Deserialize,
    ::kumi_unison::rkyv::Archive,
    ::kumi_unison::rkyv::Serialize,
    ::kumi_unison::rkyv::Deserialize
)]
#[serde(crate = "::kumi_unison::serde")]
#[rkyv(crate = ::kumi_unison::rkyv)]
#[allow(dead_code, unreachable_pub)]
pub struct Drop {}
#[allow(dead_code, unreachable_pub)]
impl Drop {
    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(
        &self,
    ) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Ok(())
    }
}

impl ::kumi_unison::Message for Drop {
    const NAME: &'static str = "Drop";
    fn validate(&self) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Drop::validate(self)
    }
}

/// Message Await.
#[derive(
    Clone,
    Debug,
    PartialEq,
    Default,
    ::kumi_unison::serde::Serialize,
    ::kumi_unison::serde::Deserialize,
    ::kumi_unison::rkyv::Archive,
    ::kumi_unison::rkyv::Serialize,
    ::kumi_unison::rkyv::Deserialize
)]
#[serde(crate = "::kumi_unison::serde")]
#[rkyv(crate = ::kumi_unison::rkyv)]
#[allow(dead_code, unreachable_pub)]
pub struct Await {}
#[allow(dead_code, unreachable_pub)]
impl Await {
    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(
        &self,
    ) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Ok(())
    }
}

impl ::kumi_unison::Message for Await {
    const NAME: &'static str = "Await";
    fn validate(&self) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Await::validate(self)
    }
}

/// Message Close.
#[derive(
    Clone,
    Debug,
    PartialEq,
    Default,
    ::kumi_unison::serde::Serialize,
    ::kumi_unison::serde::Deserialize,
    ::kumi_unison::rkyv::Archive,
    ::kumi_unison::rkyv::Serialize,
    ::kumi_unison::rkyv::Deserialize
)]
#[serde(crate = "::kumi_unison::serde")]
#[rkyv(crate = ::kumi_unison::rkyv)]
#[allow(dead_code, unreachable_pub)]
pub struct Close {}
#[allow(dead_code, unreachable_pub)]
impl Close {
    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(
        &self,
    ) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Ok(())
    }
}

impl ::kumi_unison::Message for Close {
    const NAME: &'static str = "Close";
    fn validate(&self) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Close::validate(self)
    }
}

/// Message Constructor.
#[derive(
    Clone,
    Debug,
    PartialEq,
    Default,
    ::kumi_unison::serde::Serialize,
    ::kumi_unison::serde::Deserialize,
    ::kumi_unison::rkyv::Archive,
    ::kumi_unison::rkyv::Serialize,
    ::kumi_unison::rkyv::Deserialize
)]
#[serde(crate = "::kumi_unison::serde")]
#[rkyv(crate = ::kumi_unison::rkyv)]
#[allow(dead_code, unreachable_pub)]
pub struct Constructor {}
#[allow(dead_code, unreachable_pub)]
impl Constructor {
    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(
        &self,
    ) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Ok(())
    }
}

impl ::kumi_unison::Message for Constructor {
    const NAME: &'static str = "Constructor";
    fn validate(&self) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Constructor::validate(self)
    }
}

/// Message Yield.
#[derive(
    Clone,
    Debug,
    PartialEq,
    Default,
    ::kumi_unison::serde::Serialize,
    ::kumi_unison::serde::Deserialize,
    ::kumi_unison::rkyv::Archive,
    ::kumi_unison::rkyv::Serialize,
    ::kumi_unison::rkyv::Deserialize
)]
#[serde(crate = "::kumi_unison::serde")]
#[rkyv(crate = ::kumi_unison::rkyv)]
#[allow(dead_code, unreachable_pub)]
pub struct Yield {
    /// Field yield.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r#yield: Option<i64>,
}

#[allow(dead_code, unreachable_pub)]
impl Yield {
    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(
        &self,
    ) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Ok(())
    }
}

impl ::kumi_unison::Message for Yield {
    const NAME: &'static str = "Yield";
    fn validate(&self) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Yield::validate(self)
    }
}

/// Message Fn.
#[derive(
    Clone,
    Debug,
    PartialEq,
    Default,
    ::kumi_unison::serde::Serialize,
    ::kumi_unison::serde::Deserialize,
    ::kumi_unison::rkyv::Archive,
    ::kumi_unison::rkyv::Serialize,
    ::kumi_unison::rkyv::Deserialize
)]
#[serde(crate = "::kumi_unison::serde")]
#[rkyv(crate = ::kumi_unison::rkyv)]
#[allow(dead_code, unreachable_pub)]
pub struct Fn {
    /// Field fn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r#fn: Option<IntoIterator>,
}

#[allow(dead_code, unreachable_pub)]
impl Fn {
    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(
        &self,
    ) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        if let Some(value) = &self.r#fn {
            value.validate().map_err(|error| error.within("fn"))?;
        }
        Ok(())
    }
}

impl ::kumi_unison::Message for Fn {
    const NAME: &'static str = "Fn";
    fn validate(&self) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Fn::validate(self)
    }
}

/// Message Arc.
#[derive(
    Clone,
    Debug,
    PartialEq,
    Default,
    ::kumi_unison::serde::Serialize,
    ::kumi_unison::serde::Deserialize,
    ::kumi_unison::rkyv::Archive,
    ::kumi_unison::rkyv::Serialize,
    ::kumi_unison::rkyv::Deserialize
)]
#[serde(crate = "::kumi_unison::serde")]
#[rkyv(crate = ::kumi_unison::rkyv)]
#[allow(dead_code, unreachable_pub)]
pub struct Arc {
    /// Field arc.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arc: Option<Copy>,
}

#[allow(dead_code, unreachable_pub)]
impl Arc {
    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(
        &self,
    ) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        if let Some(value) = &self.arc {
            value.validate().map_err(|error| error.within("arc"))?;
        }
        Ok(())
    }
}

impl ::kumi_unison::Message for Arc {
    const NAME: &'static str = "Arc";
    fn validate(&self) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Arc::validate(self)
    }
}

/// Message Try.
#[derive(
    Clone,
    Debug,
    PartialEq,
    Default,
    ::kumi_unison::serde::Serialize,
    ::kumi_unison::serde::Deserialize,
    ::kumi_unison::rkyv::Archive,
    ::kumi_unison::rkyv::Serialize,
    ::kumi_unison::rkyv::Deserialize
)]
#[serde(crate = "::kumi_unison::serde")]
#[rkyv(crate = ::kumi_unison::rkyv)]
#[allow(dead_code, unreachable_pub)]
pub struct Try {}
#[allow(dead_code, unreachable_pub)]
impl Try {
    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(
        &self,
    ) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Ok(())
    }
}

impl ::kumi_unison::Message for Try {
    const NAME: &'static str = "Try";
    fn validate(&self) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Try::validate(self)
    }
}

/// Message Static.
#[derive(
    Clone,
    Debug,
    PartialEq,
    ::kumi_unison::serde::Serialize,
    ::kumi_unison::serde::Deserialize,
    ::kumi_unison::rkyv::Archive,
    ::kumi_unison::rkyv::Serialize,
    ::kumi_unison::rkyv::Deserialize
)]
#[serde(crate = "::kumi_unison::serde")]
#[rkyv(crate = ::kumi_unison::rkyv)]
#[allow(dead_code, unreachable_pub)]
pub struct Static {
    /// Field self.
    #[serde(rename = "self")]
    pub self_: String,
}

#[allow(dead_code, unreachable_pub)]
impl Static {
    /// A message with what it has to have, and nothing else.
    pub fn new(self_: impl ::core::convert::Into<String>) -> Self {
        Self { self_: self_.into() }
    }

    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(
        &self,
    ) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Ok(())
    }
}

impl ::kumi_unison::Message for Static {
    const NAME: &'static str = "Static";
    fn validate(&self) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Static::validate(self)
    }
}

/// Hash over channel `delete`. Peers with the same hash may use the binary format.
#[allow(dead_code, unreachable_pub)]
pub const DELETE_CHANNEL_HASH: [u8; 32] = [
    0xed, 0xfe, 0xf4, 0x2e, 0xe7, 0x69, 0xc6, 0x4d, 0x90, 0x15, 0xff, 0xed, 0x84, 0xd9,
    0x4c, 0x03, 0x74, 0x34, 0x09, 0x88, 0x56, 0x51, 0xd8, 0x74, 0x82, 0xa3, 0x68, 0xe6,
    0x6f, 0x07, 0x2e, 0x16,
];

/// What channel `delete` is, for a server that offers it.
#[allow(dead_code, unreachable_pub)]
pub fn delete_spec() -> ::kumi_unison::ChannelSpec {
    ::kumi_unison::ChannelSpec::new("delete")
        .direction(::kumi_unison::ChannelDirection::Bidirectional)
        .lifetime(::kumi_unison::Lifetime::Persistent)
        .delivery(::kumi_unison::Delivery::Reliable)
        .event_policy(::kumi_unison::EventPolicy::DropOldest)
        .schema(::kumi_unison::SchemaId::new(DELETE_CHANNEL_HASH, ODD_PROTOCOL_VERSION))
}

/// With what a client opens channel `delete`.
#[allow(dead_code, unreachable_pub)]
pub fn delete_options() -> ::kumi_unison::ChannelOptions {
    ::kumi_unison::ChannelOptions::new()
        .direction(::kumi_unison::ChannelDirection::Bidirectional)
        .lifetime(::kumi_unison::Lifetime::Persistent)
        .delivery(::kumi_unison::Delivery::Reliable)
        .event_policy(::kumi_unison::EventPolicy::DropOldest)
        .schema(::kumi_unison::SchemaId::new(DELETE_CHANNEL_HASH, ODD_PROTOCOL_VERSION))
}

/// The client's side of channel `delete`.
///
/// Clones are the same channel.
#[derive(Clone, Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct DeleteClient {
    channel: ::kumi_unison::TypedChannel,
}

#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
impl DeleteClient {
    /// A handle on an open channel, which speaks JSON.
    pub fn from_channel(channel: ::kumi_unison::UnisonChannel) -> Self {
        Self {
            channel: ::kumi_unison::TypedChannel::new(channel),
        }
    }

    /// The same channel in the binary format, which takes no detour over JSON.
    ///
    /// Both sides need the same schema hash; otherwise what is sent is refused.
    #[must_use]
    pub fn with_binary(mut self) -> Self {
        self.channel = self.channel.binary();
        self
    }

    /// The same channel, with other options for its calls, such as a deadline.
    #[must_use]
    pub fn with_options(mut self, options: ::kumi_unison::CallOptions) -> Self {
        self.channel = self.channel.options(options);
        self
    }

    /// The channel beneath.
    pub fn raw_channel(&self) -> &::kumi_unison::UnisonChannel {
        self.channel.channel()
    }

    /// Asks `Send`.
    pub async fn send(
        &self,
        request: &Send,
    ) -> ::core::result::Result<Sync, ::kumi_unison::NetworkError> {
        self.channel.call("Send", request, false).await
    }

    /// Asks `Clone`.
    pub async fn clone(
        &self,
        request: &Clone,
    ) -> ::core::result::Result<Result, ::kumi_unison::NetworkError> {
        self.channel.call("Clone", request, false).await
    }

    /// Sends `S`.
    ///
    /// What happens when the other side does not keep up is the channel's policy.
    pub async fn send_s(
        &self,
        event: &S,
    ) -> ::core::result::Result<(), ::kumi_unison::NetworkError> {
        self.channel.emit("S", event).await
    }

    /// Sends `Drop`.
    ///
    /// What happens when the other side does not keep up is the channel's policy.
    pub async fn send_drop(
        &self,
        event: &Drop,
    ) -> ::core::result::Result<(), ::kumi_unison::NetworkError> {
        self.channel.emit("Drop", event).await
    }

    /// Every `S`, from now on.
    ///
    /// While the stream lives, these events come to it and to nobody else. Events of other names wait for somebody to take them; `event_streams` takes all of them at once.
    pub fn s_events(&self) -> ::kumi_unison::EventStream<S> {
        self.channel.events("S")
    }

    /// Every `Drop`, from now on.
    ///
    /// While the stream lives, these events come to it and to nobody else. Events of other names wait for somebody to take them; `event_streams` takes all of them at once.
    pub fn drop_events(&self) -> ::kumi_unison::EventStream<Drop> {
        self.channel.events("Drop")
    }

    /// A stream for every event of the channel.
    ///
    /// Whatever has no stream, because it is unknown or its stream was dropped, is thrown away on arrival.
    pub fn event_streams(&self) -> DeleteEventStreams {
        let streams = DeleteEventStreams {
            s: self.s_events(),
            drop: self.drop_events(),
        };
        self.raw_channel().discard_events();
        streams
    }

    /// Answers the server's requests, from now on and as long as the channel lives.
    pub fn serve_requests<__S: DeleteClientService>(&self, implementation: __S) {
        let implementation = ::std::sync::Arc::new(implementation);
        self.raw_channel()
            .set_service(move |request: ::kumi_unison::IncomingRequest| {
                let implementation = ::std::sync::Arc::clone(&implementation);
                async move {
                    match request.method() {
                        "Send" => {
                            ::kumi_unison::typed::answer(
                                    request,
                                    |call, message| DeleteClientService::send(
                                        &*implementation,
                                        call,
                                        message,
                                    ),
                                )
                                .await
                        }
                        "Clone" => {
                            ::kumi_unison::typed::answer(
                                    request,
                                    |call, message| DeleteClientService::clone(
                                        &*implementation,
                                        call,
                                        message,
                                    ),
                                )
                                .await
                        }
                        other => Err(::kumi_unison::RemoteError::method_not_found(other)),
                    }
                }
            });
    }
}

impl ::core::convert::From<::kumi_unison::UnisonChannel> for DeleteClient {
    fn from(channel: ::kumi_unison::UnisonChannel) -> Self {
        Self::from_channel(channel)
    }
}

/// The server's side of channel `delete`: one client that has it open.
///
/// Clones are the same channel.
#[derive(Clone, Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct DeletePeer {
    channel: ::kumi_unison::TypedChannel,
}

#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
impl DeletePeer {
    /// A handle on an open channel, which speaks JSON.
    pub fn from_channel(channel: ::kumi_unison::UnisonChannel) -> Self {
        Self {
            channel: ::kumi_unison::TypedChannel::new(channel),
        }
    }

    /// The same channel in the binary format, which takes no detour over JSON.
    ///
    /// Both sides need the same schema hash; otherwise what is sent is refused.
    #[must_use]
    pub fn with_binary(mut self) -> Self {
        self.channel = self.channel.binary();
        self
    }

    /// The same channel, with other options for its calls, such as a deadline.
    #[must_use]
    pub fn with_options(mut self, options: ::kumi_unison::CallOptions) -> Self {
        self.channel = self.channel.options(options);
        self
    }

    /// The channel beneath.
    pub fn raw_channel(&self) -> &::kumi_unison::UnisonChannel {
        self.channel.channel()
    }

    /// Asks `Send`.
    pub async fn send(
        &self,
        request: &Send,
    ) -> ::core::result::Result<Sync, ::kumi_unison::NetworkError> {
        self.channel.call("Send", request, false).await
    }

    /// Asks `Clone`.
    pub async fn clone(
        &self,
        request: &Clone,
    ) -> ::core::result::Result<Result, ::kumi_unison::NetworkError> {
        self.channel.call("Clone", request, false).await
    }

    /// Sends `S`.
    ///
    /// What happens when the other side does not keep up is the channel's policy.
    pub async fn send_s(
        &self,
        event: &S,
    ) -> ::core::result::Result<(), ::kumi_unison::NetworkError> {
        self.channel.emit("S", event).await
    }

    /// Sends `Drop`.
    ///
    /// What happens when the other side does not keep up is the channel's policy.
    pub async fn send_drop(
        &self,
        event: &Drop,
    ) -> ::core::result::Result<(), ::kumi_unison::NetworkError> {
        self.channel.emit("Drop", event).await
    }
}

impl ::core::convert::From<::kumi_unison::UnisonChannel> for DeletePeer {
    fn from(channel: ::kumi_unison::UnisonChannel) -> Self {
        Self::from_channel(channel)
    }
}

/// A stream for every event that the server sends on channel `delete`.
#[derive(Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct DeleteEventStreams {
    /// Every `S`.
    pub s: ::kumi_unison::EventStream<S>,
    /// Every `Drop`.
    pub drop: ::kumi_unison::EventStream<Drop>,
}

/// What a server does on channel `delete`.
///
/// One value serves all clients; methods run at the same time.
#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
pub trait DeleteService: ::core::marker::Send + ::core::marker::Sync + 'static {
    /// Answers `Send`.
    fn send(
        &self,
        call: ::kumi_unison::Call<DeletePeer>,
        request: Send,
    ) -> impl ::core::future::Future<
        Output = ::core::result::Result<Sync, ::kumi_unison::RemoteError>,
    > + ::core::marker::Send;
    /// Answers `Clone`.
    fn clone(
        &self,
        call: ::kumi_unison::Call<DeletePeer>,
        request: Clone,
    ) -> impl ::core::future::Future<
        Output = ::core::result::Result<Result, ::kumi_unison::RemoteError>,
    > + ::core::marker::Send;
    /// A client sent `S`.
    ///
    /// Events of one client are handled one after the other. Unless implemented, they are ignored.
    fn s(
        &self,
        peer: &DeletePeer,
        event: S,
    ) -> impl ::core::future::Future<Output = ()> + ::core::marker::Send {
        let _ = (peer, event);
        async {}
    }

    /// A client sent `Drop`.
    ///
    /// Events of one client are handled one after the other. Unless implemented, they are ignored.
    fn drop(
        &self,
        peer: &DeletePeer,
        event: Drop,
    ) -> impl ::core::future::Future<Output = ()> + ::core::marker::Send {
        let _ = (peer, event);
        async {}
    }

    /// A client has opened the channel.
    ///
    /// Runs beside everything else, and is dropped when the channel ends; a loop that sends events may live here.
    fn channel_opened(
        &self,
        peer: DeletePeer,
    ) -> impl ::core::future::Future<Output = ()> + ::core::marker::Send {
        let _ = peer;
        async {}
    }

    /// The channel of a client has ended.
    fn channel_closed(
        &self,
        peer: &DeletePeer,
    ) -> impl ::core::future::Future<Output = ()> + ::core::marker::Send {
        let _ = peer;
        async {}
    }
}

/// Offers channel `delete` at a server, answered by an implementation.
#[allow(dead_code, unreachable_pub)]
pub fn register_delete<__S: DeleteService>(
    server: &impl ::core::convert::AsRef<::kumi_unison::ChannelRegistry>,
    implementation: __S,
) {
    register_delete_with(server, delete_spec(), implementation);
}

/// As `register_delete`, with more than the schema says, such as what happens to events of a slow client.
#[allow(dead_code, unreachable_pub)]
pub fn register_delete_with<__S: DeleteService>(
    server: &impl ::core::convert::AsRef<::kumi_unison::ChannelRegistry>,
    spec: ::kumi_unison::ChannelSpec,
    implementation: __S,
) {
    let implementation = ::std::sync::Arc::new(implementation);
    server
        .as_ref()
        .register_channel_with(
            spec,
            move |
                _: ::std::sync::Arc<::kumi_unison::ConnectionContext>,
                channel: ::kumi_unison::UnisonChannel|
            serve_delete(::std::sync::Arc::clone(&implementation), channel),
        );
}

#[allow(dead_code, unreachable_pub)]
async fn serve_delete<__S: DeleteService>(
    implementation: ::std::sync::Arc<__S>,
    channel: ::kumi_unison::UnisonChannel,
) -> ::core::result::Result<(), ::kumi_unison::NetworkError> {
    let peer = DeletePeer::from_channel(channel.clone());
    let answering = ::std::sync::Arc::clone(&implementation);
    channel
        .set_service(move |request: ::kumi_unison::IncomingRequest| {
            let implementation = ::std::sync::Arc::clone(&answering);
            async move {
                match request.method() {
                    "Send" => {
                        ::kumi_unison::typed::answer(
                                request,
                                |call, message| DeleteService::send(
                                    &*implementation,
                                    call,
                                    message,
                                ),
                            )
                            .await
                    }
                    "Clone" => {
                        ::kumi_unison::typed::answer(
                                request,
                                |call, message| DeleteService::clone(
                                    &*implementation,
                                    call,
                                    message,
                                ),
                            )
                            .await
                    }
                    other => Err(::kumi_unison::RemoteError::method_not_found(other)),
                }
            }
        });
    let events = async {
        while let Some(message) = ::kumi_unison::typed::next_event(&channel).await? {
            if let Some(event) = ::kumi_unison::typed::event_named::<S>(&message, "S") {
                DeleteService::s(&*implementation, &peer, event).await;
            } else if let Some(event) = ::kumi_unison::typed::event_named::<
                Drop,
            >(&message, "Drop") {
                DeleteService::drop(&*implementation, &peer, event).await;
            }
        }
        Ok(())
    };
    let beside = async {
        if !channel.is_own_stream() {
            implementation.channel_opened(::core::clone::Clone::clone(&peer)).await;
        }
    };
    let outcome = ::kumi_unison::typed::run_beside(events, beside).await;
    if !channel.is_own_stream() {
        implementation.channel_closed(&peer).await;
    }
    outcome
}

/// What a client answers on channel `delete`.
#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
pub trait DeleteClientService: ::core::marker::Send + ::core::marker::Sync + 'static {
    /// Answers `Send`.
    fn send(
        &self,
        call: ::kumi_unison::Call<DeleteClient>,
        request: Send,
    ) -> impl ::core::future::Future<
        Output = ::core::result::Result<Sync, ::kumi_unison::RemoteError>,
    > + ::core::marker::Send;
    /// Answers `Clone`.
    fn clone(
        &self,
        call: ::kumi_unison::Call<DeleteClient>,
        request: Clone,
    ) -> impl ::core::future::Future<
        Output = ::core::result::Result<Result, ::kumi_unison::RemoteError>,
    > + ::core::marker::Send;
}

/// Hash over channel `new`. Peers with the same hash may use the binary format.
#[allow(dead_code, unreachable_pub)]
pub const NEW_CHANNEL_HASH: [u8; 32] = [
    0xbd, 0x90, 0xb5, 0xb1, 0xed, 0x79, 0x97, 0x0a, 0xca, 0x80, 0x78, 0x14, 0xde, 0xf0,
    0xa1, 0xb3, 0x13, 0x83, 0xc9, 0x5f, 0x47, 0x1f, 0x23, 0xbf, 0xef, 0xb7, 0x53, 0x21,
    0x55, 0x23, 0xd2, 0x36,
];

/// What channel `new` is, for a server that offers it.
#[allow(dead_code, unreachable_pub)]
pub fn new_spec() -> ::kumi_unison::ChannelSpec {
    ::kumi_unison::ChannelSpec::new("new")
        .direction(::kumi_unison::ChannelDirection::ClientToServer)
        .lifetime(::kumi_unison::Lifetime::Persistent)
        .delivery(::kumi_unison::Delivery::Reliable)
        .event_policy(::kumi_unison::EventPolicy::DropOldest)
        .schema(::kumi_unison::SchemaId::new(NEW_CHANNEL_HASH, ODD_PROTOCOL_VERSION))
}

/// With what a client opens channel `new`.
#[allow(dead_code, unreachable_pub)]
pub fn new_options() -> ::kumi_unison::ChannelOptions {
    ::kumi_unison::ChannelOptions::new()
        .direction(::kumi_unison::ChannelDirection::ClientToServer)
        .lifetime(::kumi_unison::Lifetime::Persistent)
        .delivery(::kumi_unison::Delivery::Reliable)
        .event_policy(::kumi_unison::EventPolicy::DropOldest)
        .schema(::kumi_unison::SchemaId::new(NEW_CHANNEL_HASH, ODD_PROTOCOL_VERSION))
}

/// The client's side of channel `new`.
///
/// Clones are the same channel.
#[derive(Clone, Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct NewClient {
    channel: ::kumi_unison::TypedChannel,
}

#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
impl NewClient {
    /// A handle on an open channel, which speaks JSON.
    pub fn from_channel(channel: ::kumi_unison::UnisonChannel) -> Self {
        Self {
            channel: ::kumi_unison::TypedChannel::new(channel),
        }
    }

    /// The same channel in the binary format, which takes no detour over JSON.
    ///
    /// Both sides need the same schema hash; otherwise what is sent is refused.
    #[must_use]
    pub fn with_binary(mut self) -> Self {
        self.channel = self.channel.binary();
        self
    }

    /// The same channel, with other options for its calls, such as a deadline.
    #[must_use]
    pub fn with_options(mut self, options: ::kumi_unison::CallOptions) -> Self {
        self.channel = self.channel.options(options);
        self
    }

    /// The channel beneath.
    pub fn raw_channel(&self) -> &::kumi_unison::UnisonChannel {
        self.channel.channel()
    }

    /// Asks `Await`.
    pub async fn r#await(
        &self,
        request: &Await,
    ) -> ::core::result::Result<Error, ::kumi_unison::NetworkError> {
        self.channel.call("Await", request, false).await
    }

    /// Asks `Close`.
    pub async fn close(
        &self,
        request: &Close,
    ) -> ::core::result::Result<Hash, ::kumi_unison::NetworkError> {
        self.channel.call("Close", request, false).await
    }

    /// Asks `Constructor`.
    pub async fn constructor(
        &self,
        request: &Constructor,
    ) -> ::core::result::Result<Eq, ::kumi_unison::NetworkError> {
        self.channel.call("Constructor", request, false).await
    }

    /// Every `Yield`, from now on.
    ///
    /// While the stream lives, these events come to it and to nobody else. Events of other names wait for somebody to take them; `event_streams` takes all of them at once.
    pub fn yield_events(&self) -> ::kumi_unison::EventStream<Yield> {
        self.channel.events("Yield")
    }

    /// A stream for every event of the channel.
    ///
    /// Whatever has no stream, because it is unknown or its stream was dropped, is thrown away on arrival.
    pub fn event_streams(&self) -> NewEventStreams {
        let streams = NewEventStreams {
            r#yield: self.yield_events(),
        };
        self.raw_channel().discard_events();
        streams
    }
}

impl ::core::convert::From<::kumi_unison::UnisonChannel> for NewClient {
    fn from(channel: ::kumi_unison::UnisonChannel) -> Self {
        Self::from_channel(channel)
    }
}

/// The server's side of channel `new`: one client that has it open.
///
/// Clones are the same channel.
#[derive(Clone, Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct NewPeer {
    channel: ::kumi_unison::TypedChannel,
}

#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
impl NewPeer {
    /// A handle on an open channel, which speaks JSON.
    pub fn from_channel(channel: ::kumi_unison::UnisonChannel) -> Self {
        Self {
            channel: ::kumi_unison::TypedChannel::new(channel),
        }
    }

    /// The same channel in the binary format, which takes no detour over JSON.
    ///
    /// Both sides need the same schema hash; otherwise what is sent is refused.
    #[must_use]
    pub fn with_binary(mut self) -> Self {
        self.channel = self.channel.binary();
        self
    }

    /// The same channel, with other options for its calls, such as a deadline.
    #[must_use]
    pub fn with_options(mut self, options: ::kumi_unison::CallOptions) -> Self {
        self.channel = self.channel.options(options);
        self
    }

    /// The channel beneath.
    pub fn raw_channel(&self) -> &::kumi_unison::UnisonChannel {
        self.channel.channel()
    }

    /// Sends `Yield`.
    ///
    /// What happens when the other side does not keep up is the channel's policy.
    pub async fn send_yield(
        &self,
        event: &Yield,
    ) -> ::core::result::Result<(), ::kumi_unison::NetworkError> {
        self.channel.emit("Yield", event).await
    }
}

impl ::core::convert::From<::kumi_unison::UnisonChannel> for NewPeer {
    fn from(channel: ::kumi_unison::UnisonChannel) -> Self {
        Self::from_channel(channel)
    }
}

/// A stream for every event that the server sends on channel `new`.
#[derive(Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct NewEventStreams {
    /// Every `Yield`.
    pub r#yield: ::kumi_unison::EventStream<Yield>,
}

/// What a server does on channel `new`.
///
/// One value serves all clients; methods run at the same time.
#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
pub trait NewService: ::core::marker::Send + ::core::marker::Sync + 'static {
    /// Answers `Await`.
    fn r#await(
        &self,
        call: ::kumi_unison::Call<NewPeer>,
        request: Await,
    ) -> impl ::core::future::Future<
        Output = ::core::result::Result<Error, ::kumi_unison::RemoteError>,
    > + ::core::marker::Send;
    /// Answers `Close`.
    fn close(
        &self,
        call: ::kumi_unison::Call<NewPeer>,
        request: Close,
    ) -> impl ::core::future::Future<
        Output = ::core::result::Result<Hash, ::kumi_unison::RemoteError>,
    > + ::core::marker::Send;
    /// Answers `Constructor`.
    fn constructor(
        &self,
        call: ::kumi_unison::Call<NewPeer>,
        request: Constructor,
    ) -> impl ::core::future::Future<
        Output = ::core::result::Result<Eq, ::kumi_unison::RemoteError>,
    > + ::core::marker::Send;
    /// A client has opened the channel.
    ///
    /// Runs beside everything else, and is dropped when the channel ends; a loop that sends events may live here.
    fn channel_opened(
        &self,
        peer: NewPeer,
    ) -> impl ::core::future::Future<Output = ()> + ::core::marker::Send {
        let _ = peer;
        async {}
    }

    /// The channel of a client has ended.
    fn channel_closed(
        &self,
        peer: &NewPeer,
    ) -> impl ::core::future::Future<Output = ()> + ::core::marker::Send {
        let _ = peer;
        async {}
    }
}

/// Offers channel `new` at a server, answered by an implementation.
#[allow(dead_code, unreachable_pub)]
pub fn register_new<__S: NewService>(
    server: &impl ::core::convert::AsRef<::kumi_unison::ChannelRegistry>,
    implementation: __S,
) {
    register_new_with(server, new_spec(), implementation);
}

/// As `register_new`, with more than the schema says, such as what happens to events of a slow client.
#[allow(dead_code, unreachable_pub)]
pub fn register_new_with<__S: NewService>(
    server: &impl ::core::convert::AsRef<::kumi_unison::ChannelRegistry>,
    spec: ::kumi_unison::ChannelSpec,
    implementation: __S,
) {
    let implementation = ::std::sync::Arc::new(implementation);
    server
        .as_ref()
        .register_channel_with(
            spec,
            move |
                _: ::std::sync::Arc<::kumi_unison::ConnectionContext>,
                channel: ::kumi_unison::UnisonChannel|
            serve_new(::std::sync::Arc::clone(&implementation), channel),
        );
}

#[allow(dead_code, unreachable_pub)]
async fn serve_new<__S: NewService>(
    implementation: ::std::sync::Arc<__S>,
    channel: ::kumi_unison::UnisonChannel,
) -> ::core::result::Result<(), ::kumi_unison::NetworkError> {
    let peer = NewPeer::from_channel(channel.clone());
    let answering = ::std::sync::Arc::clone(&implementation);
    channel
        .set_service(move |request: ::kumi_unison::IncomingRequest| {
            let implementation = ::std::sync::Arc::clone(&answering);
            async move {
                match request.method() {
                    "Await" => {
                        ::kumi_unison::typed::answer(
                                request,
                                |call, message| NewService::r#await(
                                    &*implementation,
                                    call,
                                    message,
                                ),
                            )
                            .await
                    }
                    "Close" => {
                        ::kumi_unison::typed::answer(
                                request,
                                |call, message| NewService::close(
                                    &*implementation,
                                    call,
                                    message,
                                ),
                            )
                            .await
                    }
                    "Constructor" => {
                        ::kumi_unison::typed::answer(
                                request,
                                |call, message| NewService::constructor(
                                    &*implementation,
                                    call,
                                    message,
                                ),
                            )
                            .await
                    }
                    other => Err(::kumi_unison::RemoteError::method_not_found(other)),
                }
            }
        });
    let events = async {
        while ::kumi_unison::typed::next_event(&channel).await?.is_some() {}
        Ok(())
    };
    let beside = async {
        if !channel.is_own_stream() {
            implementation.channel_opened(peer.clone()).await;
        }
    };
    let outcome = ::kumi_unison::typed::run_beside(events, beside).await;
    if !channel.is_own_stream() {
        implementation.channel_closed(&peer).await;
    }
    outcome
}

/// Hash over channel `opened`. Peers with the same hash may use the binary format.
#[allow(dead_code, unreachable_pub)]
pub const OPENED_CHANNEL_HASH: [u8; 32] = [
    0xef, 0xf0, 0xbb, 0x6e, 0x4f, 0x7a, 0x1b, 0x99, 0x72, 0x68, 0x3a, 0x8d, 0x9e, 0xfa,
    0x5a, 0xa7, 0x76, 0xfe, 0x47, 0x94, 0xb0, 0x08, 0xb8, 0x32, 0xcb, 0x7d, 0x56, 0x73,
    0x84, 0x26, 0x92, 0x64,
];

/// What channel `opened` is, for a server that offers it.
#[allow(dead_code, unreachable_pub)]
pub fn opened_spec() -> ::kumi_unison::ChannelSpec {
    ::kumi_unison::ChannelSpec::new("opened")
        .direction(::kumi_unison::ChannelDirection::ServerToClient)
        .lifetime(::kumi_unison::Lifetime::Persistent)
        .delivery(::kumi_unison::Delivery::Reliable)
        .event_policy(::kumi_unison::EventPolicy::DropOldest)
        .schema(::kumi_unison::SchemaId::new(OPENED_CHANNEL_HASH, ODD_PROTOCOL_VERSION))
}

/// With what a client opens channel `opened`.
#[allow(dead_code, unreachable_pub)]
pub fn opened_options() -> ::kumi_unison::ChannelOptions {
    ::kumi_unison::ChannelOptions::new()
        .direction(::kumi_unison::ChannelDirection::ServerToClient)
        .lifetime(::kumi_unison::Lifetime::Persistent)
        .delivery(::kumi_unison::Delivery::Reliable)
        .event_policy(::kumi_unison::EventPolicy::DropOldest)
        .schema(::kumi_unison::SchemaId::new(OPENED_CHANNEL_HASH, ODD_PROTOCOL_VERSION))
}

/// The client's side of channel `opened`.
///
/// Clones are the same channel.
#[derive(Clone, Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct OpenedClient {
    channel: ::kumi_unison::TypedChannel,
}

#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
impl OpenedClient {
    /// A handle on an open channel, which speaks JSON.
    pub fn from_channel(channel: ::kumi_unison::UnisonChannel) -> Self {
        Self {
            channel: ::kumi_unison::TypedChannel::new(channel),
        }
    }

    /// The same channel in the binary format, which takes no detour over JSON.
    ///
    /// Both sides need the same schema hash; otherwise what is sent is refused.
    #[must_use]
    pub fn with_binary(mut self) -> Self {
        self.channel = self.channel.binary();
        self
    }

    /// The same channel, with other options for its calls, such as a deadline.
    #[must_use]
    pub fn with_options(mut self, options: ::kumi_unison::CallOptions) -> Self {
        self.channel = self.channel.options(options);
        self
    }

    /// The channel beneath.
    pub fn raw_channel(&self) -> &::kumi_unison::UnisonChannel {
        self.channel.channel()
    }

    /// Every `Fn`, from now on.
    ///
    /// While the stream lives, these events come to it and to nobody else. Events of other names wait for somebody to take them; `event_streams` takes all of them at once.
    pub fn fn_events(&self) -> ::kumi_unison::EventStream<Fn> {
        self.channel.events("Fn")
    }

    /// A stream for every event of the channel.
    ///
    /// Whatever has no stream, because it is unknown or its stream was dropped, is thrown away on arrival.
    pub fn event_streams(&self) -> OpenedEventStreams {
        let streams = OpenedEventStreams {
            r#fn: self.fn_events(),
        };
        self.raw_channel().discard_events();
        streams
    }
}

impl ::core::convert::From<::kumi_unison::UnisonChannel> for OpenedClient {
    fn from(channel: ::kumi_unison::UnisonChannel) -> Self {
        Self::from_channel(channel)
    }
}

/// The server's side of channel `opened`: one client that has it open.
///
/// Clones are the same channel.
#[derive(Clone, Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct OpenedPeer {
    channel: ::kumi_unison::TypedChannel,
}

#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
impl OpenedPeer {
    /// A handle on an open channel, which speaks JSON.
    pub fn from_channel(channel: ::kumi_unison::UnisonChannel) -> Self {
        Self {
            channel: ::kumi_unison::TypedChannel::new(channel),
        }
    }

    /// The same channel in the binary format, which takes no detour over JSON.
    ///
    /// Both sides need the same schema hash; otherwise what is sent is refused.
    #[must_use]
    pub fn with_binary(mut self) -> Self {
        self.channel = self.channel.binary();
        self
    }

    /// The same channel, with other options for its calls, such as a deadline.
    #[must_use]
    pub fn with_options(mut self, options: ::kumi_unison::CallOptions) -> Self {
        self.channel = self.channel.options(options);
        self
    }

    /// The channel beneath.
    pub fn raw_channel(&self) -> &::kumi_unison::UnisonChannel {
        self.channel.channel()
    }

    /// Sends `Fn`.
    ///
    /// What happens when the other side does not keep up is the channel's policy.
    pub async fn send_fn(
        &self,
        event: &Fn,
    ) -> ::core::result::Result<(), ::kumi_unison::NetworkError> {
        self.channel.emit("Fn", event).await
    }
}

impl ::core::convert::From<::kumi_unison::UnisonChannel> for OpenedPeer {
    fn from(channel: ::kumi_unison::UnisonChannel) -> Self {
        Self::from_channel(channel)
    }
}

/// A stream for every event that the server sends on channel `opened`.
#[derive(Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct OpenedEventStreams {
    /// Every `Fn`.
    pub r#fn: ::kumi_unison::EventStream<Fn>,
}

/// What a server does on channel `opened`.
///
/// One value serves all clients; methods run at the same time.
#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
pub trait OpenedService: ::core::marker::Send + ::core::marker::Sync + 'static {
    /// A client has opened the channel.
    ///
    /// Runs beside everything else, and is dropped when the channel ends; a loop that sends events may live here.
    fn channel_opened(
        &self,
        peer: OpenedPeer,
    ) -> impl ::core::future::Future<Output = ()> + ::core::marker::Send {
        let _ = peer;
        async {}
    }

    /// The channel of a client has ended.
    fn channel_closed(
        &self,
        peer: &OpenedPeer,
    ) -> impl ::core::future::Future<Output = ()> + ::core::marker::Send {
        let _ = peer;
        async {}
    }
}

/// Offers channel `opened` at a server, answered by an implementation.
#[allow(dead_code, unreachable_pub)]
pub fn register_opened<__S: OpenedService>(
    server: &impl ::core::convert::AsRef<::kumi_unison::ChannelRegistry>,
    implementation: __S,
) {
    register_opened_with(server, opened_spec(), implementation);
}

/// As `register_opened`, with more than the schema says, such as what happens to events of a slow client.
#[allow(dead_code, unreachable_pub)]
pub fn register_opened_with<__S: OpenedService>(
    server: &impl ::core::convert::AsRef<::kumi_unison::ChannelRegistry>,
    spec: ::kumi_unison::ChannelSpec,
    implementation: __S,
) {
    let implementation = ::std::sync::Arc::new(implementation);
    server
        .as_ref()
        .register_channel_with(
            spec,
            move |
                _: ::std::sync::Arc<::kumi_unison::ConnectionContext>,
                channel: ::kumi_unison::UnisonChannel|
            serve_opened(::std::sync::Arc::clone(&implementation), channel),
        );
}

#[allow(dead_code, unreachable_pub)]
async fn serve_opened<__S: OpenedService>(
    implementation: ::std::sync::Arc<__S>,
    channel: ::kumi_unison::UnisonChannel,
) -> ::core::result::Result<(), ::kumi_unison::NetworkError> {
    let peer = OpenedPeer::from_channel(channel.clone());
    let events = async {
        while ::kumi_unison::typed::next_event(&channel).await?.is_some() {}
        Ok(())
    };
    let beside = async {
        if !channel.is_own_stream() {
            implementation.channel_opened(peer.clone()).await;
        }
    };
    let outcome = ::kumi_unison::typed::run_beside(events, beside).await;
    if !channel.is_own_stream() {
        implementation.channel_closed(&peer).await;
    }
    outcome
}

/// Hash over channel `error`. Peers with the same hash may use the binary format.
#[allow(dead_code, unreachable_pub)]
pub const ERROR_CHANNEL_HASH: [u8; 32] = [
    0xb2, 0xc6, 0x1a, 0x27, 0x82, 0x16, 0xf0, 0x06, 0xbb, 0x5a, 0x22, 0x05, 0x0e, 0xa1,
    0x68, 0xe7, 0x47, 0x7e, 0x23, 0xe7, 0x03, 0x38, 0x46, 0x5d, 0xd2, 0x8c, 0x30, 0xee,
    0x3e, 0x83, 0x50, 0xa2,
];

/// What channel `error` is, for a server that offers it.
#[allow(dead_code, unreachable_pub)]
pub fn error_spec() -> ::kumi_unison::ChannelSpec {
    ::kumi_unison::ChannelSpec::new("error")
        .direction(::kumi_unison::ChannelDirection::ClientToServer)
        .lifetime(::kumi_unison::Lifetime::Persistent)
        .delivery(::kumi_unison::Delivery::Reliable)
        .event_policy(::kumi_unison::EventPolicy::DropOldest)
        .schema(::kumi_unison::SchemaId::new(ERROR_CHANNEL_HASH, ODD_PROTOCOL_VERSION))
}

/// With what a client opens channel `error`.
#[allow(dead_code, unreachable_pub)]
pub fn error_options() -> ::kumi_unison::ChannelOptions {
    ::kumi_unison::ChannelOptions::new()
        .direction(::kumi_unison::ChannelDirection::ClientToServer)
        .lifetime(::kumi_unison::Lifetime::Persistent)
        .delivery(::kumi_unison::Delivery::Reliable)
        .event_policy(::kumi_unison::EventPolicy::DropOldest)
        .schema(::kumi_unison::SchemaId::new(ERROR_CHANNEL_HASH, ODD_PROTOCOL_VERSION))
}

/// The client's side of channel `error`.
///
/// Clones are the same channel.
#[derive(Clone, Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct ErrorClient {
    channel: ::kumi_unison::TypedChannel,
}

#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
impl ErrorClient {
    /// A handle on an open channel, which speaks JSON.
    pub fn from_channel(channel: ::kumi_unison::UnisonChannel) -> Self {
        Self {
            channel: ::kumi_unison::TypedChannel::new(channel),
        }
    }

    /// The same channel in the binary format, which takes no detour over JSON.
    ///
    /// Both sides need the same schema hash; otherwise what is sent is refused.
    #[must_use]
    pub fn with_binary(mut self) -> Self {
        self.channel = self.channel.binary();
        self
    }

    /// The same channel, with other options for its calls, such as a deadline.
    #[must_use]
    pub fn with_options(mut self, options: ::kumi_unison::CallOptions) -> Self {
        self.channel = self.channel.options(options);
        self
    }

    /// The channel beneath.
    pub fn raw_channel(&self) -> &::kumi_unison::UnisonChannel {
        self.channel.channel()
    }

    /// Sends `Arc`.
    ///
    /// What happens when the other side does not keep up is the channel's policy.
    pub async fn send_arc(
        &self,
        event: &Arc,
    ) -> ::core::result::Result<(), ::kumi_unison::NetworkError> {
        self.channel.emit("Arc", event).await
    }
}

impl ::core::convert::From<::kumi_unison::UnisonChannel> for ErrorClient {
    fn from(channel: ::kumi_unison::UnisonChannel) -> Self {
        Self::from_channel(channel)
    }
}

/// The server's side of channel `error`: one client that has it open.
///
/// Clones are the same channel.
#[derive(Clone, Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct ErrorPeer {
    channel: ::kumi_unison::TypedChannel,
}

#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
impl ErrorPeer {
    /// A handle on an open channel, which speaks JSON.
    pub fn from_channel(channel: ::kumi_unison::UnisonChannel) -> Self {
        Self {
            channel: ::kumi_unison::TypedChannel::new(channel),
        }
    }

    /// The same channel in the binary format, which takes no detour over JSON.
    ///
    /// Both sides need the same schema hash; otherwise what is sent is refused.
    #[must_use]
    pub fn with_binary(mut self) -> Self {
        self.channel = self.channel.binary();
        self
    }

    /// The same channel, with other options for its calls, such as a deadline.
    #[must_use]
    pub fn with_options(mut self, options: ::kumi_unison::CallOptions) -> Self {
        self.channel = self.channel.options(options);
        self
    }

    /// The channel beneath.
    pub fn raw_channel(&self) -> &::kumi_unison::UnisonChannel {
        self.channel.channel()
    }
}

impl ::core::convert::From<::kumi_unison::UnisonChannel> for ErrorPeer {
    fn from(channel: ::kumi_unison::UnisonChannel) -> Self {
        Self::from_channel(channel)
    }
}

/// What a server does on channel `error`.
///
/// One value serves all clients; methods run at the same time.
#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
pub trait ErrorService: ::core::marker::Send + ::core::marker::Sync + 'static {
    /// A client sent `Arc`.
    ///
    /// Events of one client are handled one after the other. Unless implemented, they are ignored.
    fn arc(
        &self,
        peer: &ErrorPeer,
        event: Arc,
    ) -> impl ::core::future::Future<Output = ()> + ::core::marker::Send {
        let _ = (peer, event);
        async {}
    }

    /// A client has opened the channel.
    ///
    /// Runs beside everything else, and is dropped when the channel ends; a loop that sends events may live here.
    fn channel_opened(
        &self,
        peer: ErrorPeer,
    ) -> impl ::core::future::Future<Output = ()> + ::core::marker::Send {
        let _ = peer;
        async {}
    }

    /// The channel of a client has ended.
    fn channel_closed(
        &self,
        peer: &ErrorPeer,
    ) -> impl ::core::future::Future<Output = ()> + ::core::marker::Send {
        let _ = peer;
        async {}
    }
}

/// Offers channel `error` at a server, answered by an implementation.
#[allow(dead_code, unreachable_pub)]
pub fn register_error<__S: ErrorService>(
    server: &impl ::core::convert::AsRef<::kumi_unison::ChannelRegistry>,
    implementation: __S,
) {
    register_error_with(server, error_spec(), implementation);
}

/// As `register_error`, with more than the schema says, such as what happens to events of a slow client.
#[allow(dead_code, unreachable_pub)]
pub fn register_error_with<__S: ErrorService>(
    server: &impl ::core::convert::AsRef<::kumi_unison::ChannelRegistry>,
    spec: ::kumi_unison::ChannelSpec,
    implementation: __S,
) {
    let implementation = ::std::sync::Arc::new(implementation);
    server
        .as_ref()
        .register_channel_with(
            spec,
            move |
                _: ::std::sync::Arc<::kumi_unison::ConnectionContext>,
                channel: ::kumi_unison::UnisonChannel|
            serve_error(::std::sync::Arc::clone(&implementation), channel),
        );
}

#[allow(dead_code, unreachable_pub)]
async fn serve_error<__S: ErrorService>(
    implementation: ::std::sync::Arc<__S>,
    channel: ::kumi_unison::UnisonChannel,
) -> ::core::result::Result<(), ::kumi_unison::NetworkError> {
    let peer = ErrorPeer::from_channel(channel.clone());
    let events = async {
        while let Some(message) = ::kumi_unison::typed::next_event(&channel).await? {
            if let Some(event) = ::kumi_unison::typed::event_named::<
                Arc,
            >(&message, "Arc") {
                ErrorService::arc(&*implementation, &peer, event).await;
            }
        }
        Ok(())
    };
    let beside = async {
        if !channel.is_own_stream() {
            implementation.channel_opened(peer.clone()).await;
        }
    };
    let outcome = ::kumi_unison::typed::run_beside(events, beside).await;
    if !channel.is_own_stream() {
        implementation.channel_closed(&peer).await;
    }
    outcome
}

/// Hash over channel `import`. Peers with the same hash may use the binary format.
#[allow(dead_code, unreachable_pub)]
pub const IMPORT_CHANNEL_HASH: [u8; 32] = [
    0xc2, 0x54, 0x7a, 0x08, 0x07, 0x99, 0x74, 0x0d, 0x2b, 0x55, 0x41, 0xd4, 0x54, 0x86,
    0xef, 0xd7, 0x05, 0xe5, 0xc2, 0xbd, 0x89, 0xb8, 0x14, 0xfa, 0x0f, 0xb8, 0x6a, 0xc9,
    0xe4, 0x63, 0x0c, 0xf6,
];

/// What channel `import` is, for a server that offers it.
#[allow(dead_code, unreachable_pub)]
pub fn import_spec() -> ::kumi_unison::ChannelSpec {
    ::kumi_unison::ChannelSpec::new("import")
        .direction(::kumi_unison::ChannelDirection::ServerToClient)
        .lifetime(::kumi_unison::Lifetime::Transient)
        .delivery(::kumi_unison::Delivery::Reliable)
        .schema(::kumi_unison::SchemaId::new(IMPORT_CHANNEL_HASH, ODD_PROTOCOL_VERSION))
}

/// With what a client opens channel `import`.
#[allow(dead_code, unreachable_pub)]
pub fn import_options() -> ::kumi_unison::ChannelOptions {
    ::kumi_unison::ChannelOptions::new()
        .direction(::kumi_unison::ChannelDirection::ServerToClient)
        .lifetime(::kumi_unison::Lifetime::Transient)
        .delivery(::kumi_unison::Delivery::Reliable)
        .schema(::kumi_unison::SchemaId::new(IMPORT_CHANNEL_HASH, ODD_PROTOCOL_VERSION))
}

/// The client's side of channel `import`.
///
/// Clones are the same channel.
#[derive(Clone, Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct ImportClient {
    channel: ::kumi_unison::TypedChannel,
}

#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
impl ImportClient {
    /// A handle on an open channel, which speaks JSON.
    pub fn from_channel(channel: ::kumi_unison::UnisonChannel) -> Self {
        Self {
            channel: ::kumi_unison::TypedChannel::new(channel),
        }
    }

    /// The same channel in the binary format, which takes no detour over JSON.
    ///
    /// Both sides need the same schema hash; otherwise what is sent is refused.
    #[must_use]
    pub fn with_binary(mut self) -> Self {
        self.channel = self.channel.binary();
        self
    }

    /// The same channel, with other options for its calls, such as a deadline.
    #[must_use]
    pub fn with_options(mut self, options: ::kumi_unison::CallOptions) -> Self {
        self.channel = self.channel.options(options);
        self
    }

    /// The channel beneath.
    pub fn raw_channel(&self) -> &::kumi_unison::UnisonChannel {
        self.channel.channel()
    }

    /// Answers the server's requests, from now on and as long as the channel lives.
    pub fn serve_requests<__S: ImportClientService>(&self, implementation: __S) {
        let implementation = ::std::sync::Arc::new(implementation);
        self.raw_channel()
            .set_service(move |request: ::kumi_unison::IncomingRequest| {
                let implementation = ::std::sync::Arc::clone(&implementation);
                async move {
                    match request.method() {
                        "Try" => {
                            ::kumi_unison::typed::answer(
                                    request,
                                    |call, message| ImportClientService::r#try(
                                        &*implementation,
                                        call,
                                        message,
                                    ),
                                )
                                .await
                        }
                        other => Err(::kumi_unison::RemoteError::method_not_found(other)),
                    }
                }
            });
    }
}

impl ::core::convert::From<::kumi_unison::UnisonChannel> for ImportClient {
    fn from(channel: ::kumi_unison::UnisonChannel) -> Self {
        Self::from_channel(channel)
    }
}

/// The server's side of channel `import`: one client that has it open.
///
/// Clones are the same channel.
#[derive(Clone, Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct ImportPeer {
    channel: ::kumi_unison::TypedChannel,
}

#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
impl ImportPeer {
    /// A handle on an open channel, which speaks JSON.
    pub fn from_channel(channel: ::kumi_unison::UnisonChannel) -> Self {
        Self {
            channel: ::kumi_unison::TypedChannel::new(channel),
        }
    }

    /// The same channel in the binary format, which takes no detour over JSON.
    ///
    /// Both sides need the same schema hash; otherwise what is sent is refused.
    #[must_use]
    pub fn with_binary(mut self) -> Self {
        self.channel = self.channel.binary();
        self
    }

    /// The same channel, with other options for its calls, such as a deadline.
    #[must_use]
    pub fn with_options(mut self, options: ::kumi_unison::CallOptions) -> Self {
        self.channel = self.channel.options(options);
        self
    }

    /// The channel beneath.
    pub fn raw_channel(&self) -> &::kumi_unison::UnisonChannel {
        self.channel.channel()
    }

    /// Asks `Try`.
    pub async fn r#try(
        &self,
        request: &Try,
    ) -> ::core::result::Result<Into, ::kumi_unison::NetworkError> {
        self.channel.call("Try", request, false).await
    }
}

impl ::core::convert::From<::kumi_unison::UnisonChannel> for ImportPeer {
    fn from(channel: ::kumi_unison::UnisonChannel) -> Self {
        Self::from_channel(channel)
    }
}

/// What a server does on channel `import`.
///
/// One value serves all clients; methods run at the same time.
#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
pub trait ImportService: ::core::marker::Send + ::core::marker::Sync + 'static {
    /// A client has opened the channel.
    ///
    /// Runs beside everything else, and is dropped when the channel ends; a loop that sends events may live here.
    fn channel_opened(
        &self,
        peer: ImportPeer,
    ) -> impl ::core::future::Future<Output = ()> + ::core::marker::Send {
        let _ = peer;
        async {}
    }

    /// The channel of a client has ended.
    fn channel_closed(
        &self,
        peer: &ImportPeer,
    ) -> impl ::core::future::Future<Output = ()> + ::core::marker::Send {
        let _ = peer;
        async {}
    }
}

/// Offers channel `import` at a server, answered by an implementation.
#[allow(dead_code, unreachable_pub)]
pub fn register_import<__S: ImportService>(
    server: &impl ::core::convert::AsRef<::kumi_unison::ChannelRegistry>,
    implementation: __S,
) {
    register_import_with(server, import_spec(), implementation);
}

/// As `register_import`, with more than the schema says, such as what happens to events of a slow client.
#[allow(dead_code, unreachable_pub)]
pub fn register_import_with<__S: ImportService>(
    server: &impl ::core::convert::AsRef<::kumi_unison::ChannelRegistry>,
    spec: ::kumi_unison::ChannelSpec,
    implementation: __S,
) {
    let implementation = ::std::sync::Arc::new(implementation);
    server
        .as_ref()
        .register_channel_with(
            spec,
            move |
                _: ::std::sync::Arc<::kumi_unison::ConnectionContext>,
                channel: ::kumi_unison::UnisonChannel|
            serve_import(::std::sync::Arc::clone(&implementation), channel),
        );
}

#[allow(dead_code, unreachable_pub)]
async fn serve_import<__S: ImportService>(
    implementation: ::std::sync::Arc<__S>,
    channel: ::kumi_unison::UnisonChannel,
) -> ::core::result::Result<(), ::kumi_unison::NetworkError> {
    let peer = ImportPeer::from_channel(channel.clone());
    let events = async {
        while ::kumi_unison::typed::next_event(&channel).await?.is_some() {}
        Ok(())
    };
    let beside = async {
        if !channel.is_own_stream() {
            implementation.channel_opened(peer.clone()).await;
        }
    };
    let outcome = ::kumi_unison::typed::run_beside(events, beside).await;
    if !channel.is_own_stream() {
        implementation.channel_closed(&peer).await;
    }
    outcome
}

/// What a client answers on channel `import`.
#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
pub trait ImportClientService: ::core::marker::Send + ::core::marker::Sync + 'static {
    /// Answers `Try`.
    fn r#try(
        &self,
        call: ::kumi_unison::Call<ImportClient>,
        request: Try,
    ) -> impl ::core::future::Future<
        Output = ::core::result::Result<Into, ::kumi_unison::RemoteError>,
    > + ::core::marker::Send;
}

/// Hash over channel `static`. Peers with the same hash may use the binary format.
#[allow(dead_code, unreachable_pub)]
pub const STATIC_CHANNEL_HASH: [u8; 32] = [
    0x1a, 0xed, 0x40, 0xb7, 0x07, 0xb8, 0x5e, 0x37, 0x2e, 0x2a, 0x4a, 0x99, 0x83, 0xf9,
    0x58, 0xdc, 0xea, 0x13, 0x54, 0xed, 0xef, 0xec, 0x39, 0xfb, 0x00, 0x2b, 0x96, 0x51,
    0xde, 0x08, 0x0f, 0xb7,
];

/// What channel `static` is, for a server that offers it.
#[allow(dead_code, unreachable_pub)]
pub fn static_spec() -> ::kumi_unison::ChannelSpec {
    ::kumi_unison::ChannelSpec::new("static")
        .direction(::kumi_unison::ChannelDirection::ClientToServer)
        .lifetime(::kumi_unison::Lifetime::Persistent)
        .delivery(::kumi_unison::Delivery::Unreliable)
        .event_policy(::kumi_unison::EventPolicy::DropOldest)
        .schema(::kumi_unison::SchemaId::new(STATIC_CHANNEL_HASH, ODD_PROTOCOL_VERSION))
}

/// With what a client opens channel `static`.
#[allow(dead_code, unreachable_pub)]
pub fn static_options() -> ::kumi_unison::ChannelOptions {
    ::kumi_unison::ChannelOptions::new()
        .direction(::kumi_unison::ChannelDirection::ClientToServer)
        .lifetime(::kumi_unison::Lifetime::Persistent)
        .delivery(::kumi_unison::Delivery::Unreliable)
        .event_policy(::kumi_unison::EventPolicy::DropOldest)
        .schema(::kumi_unison::SchemaId::new(STATIC_CHANNEL_HASH, ODD_PROTOCOL_VERSION))
}

/// The client's side of channel `static`.
///
/// Clones are the same channel.
#[derive(Clone, Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct StaticClient {
    channel: ::kumi_unison::TypedChannel,
}

#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
impl StaticClient {
    /// A handle on an open channel, which speaks JSON.
    pub fn from_channel(channel: ::kumi_unison::UnisonChannel) -> Self {
        Self {
            channel: ::kumi_unison::TypedChannel::new(channel),
        }
    }

    /// The same channel in the binary format, which takes no detour over JSON.
    ///
    /// Both sides need the same schema hash; otherwise what is sent is refused.
    #[must_use]
    pub fn with_binary(mut self) -> Self {
        self.channel = self.channel.binary();
        self
    }

    /// The same channel, with other options for its calls, such as a deadline.
    #[must_use]
    pub fn with_options(mut self, options: ::kumi_unison::CallOptions) -> Self {
        self.channel = self.channel.options(options);
        self
    }

    /// The channel beneath.
    pub fn raw_channel(&self) -> &::kumi_unison::UnisonChannel {
        self.channel.channel()
    }

    /// Sends `Static`.
    ///
    /// What happens when the other side does not keep up is the channel's policy.
    pub async fn send_static(
        &self,
        event: &Static,
    ) -> ::core::result::Result<(), ::kumi_unison::NetworkError> {
        self.channel.emit("Static", event).await
    }
}

impl ::core::convert::From<::kumi_unison::UnisonChannel> for StaticClient {
    fn from(channel: ::kumi_unison::UnisonChannel) -> Self {
        Self::from_channel(channel)
    }
}

/// The server's side of channel `static`: one client that has it open.
///
/// Clones are the same channel.
#[derive(Clone, Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct StaticPeer {
    channel: ::kumi_unison::TypedChannel,
}

#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
impl StaticPeer {
    /// A handle on an open channel, which speaks JSON.
    pub fn from_channel(channel: ::kumi_unison::UnisonChannel) -> Self {
        Self {
            channel: ::kumi_unison::TypedChannel::new(channel),
        }
    }

    /// The same channel in the binary format, which takes no detour over JSON.
    ///
    /// Both sides need the same schema hash; otherwise what is sent is refused.
    #[must_use]
    pub fn with_binary(mut self) -> Self {
        self.channel = self.channel.binary();
        self
    }

    /// The same channel, with other options for its calls, such as a deadline.
    #[must_use]
    pub fn with_options(mut self, options: ::kumi_unison::CallOptions) -> Self {
        self.channel = self.channel.options(options);
        self
    }

    /// The channel beneath.
    pub fn raw_channel(&self) -> &::kumi_unison::UnisonChannel {
        self.channel.channel()
    }
}

impl ::core::convert::From<::kumi_unison::UnisonChannel> for StaticPeer {
    fn from(channel: ::kumi_unison::UnisonChannel) -> Self {
        Self::from_channel(channel)
    }
}

/// What a server does on channel `static`.
///
/// One value serves all clients; methods run at the same time.
#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
pub trait StaticService: ::core::marker::Send + ::core::marker::Sync + 'static {
    /// A client sent `Static`.
    ///
    /// Events of one client are handled one after the other. Unless implemented, they are ignored.
    fn r#static(
        &self,
        peer: &StaticPeer,
        event: Static,
    ) -> impl ::core::future::Future<Output = ()> + ::core::marker::Send {
        let _ = (peer, event);
        async {}
    }

    /// A client has opened the channel.
    ///
    /// Runs beside everything else, and is dropped when the channel ends; a loop that sends events may live here.
    fn channel_opened(
        &self,
        peer: StaticPeer,
    ) -> impl ::core::future::Future<Output = ()> + ::core::marker::Send {
        let _ = peer;
        async {}
    }

    /// The channel of a client has ended.
    fn channel_closed(
        &self,
        peer: &StaticPeer,
    ) -> impl ::core::future::Future<Output = ()> + ::core::marker::Send {
        let _ = peer;
        async {}
    }
}

/// Offers channel `static` at a server, answered by an implementation.
#[allow(dead_code, unreachable_pub)]
pub fn register_static<__S: StaticService>(
    server: &impl ::core::convert::AsRef<::kumi_unison::ChannelRegistry>,
    implementation: __S,
) {
    register_static_with(server, static_spec(), implementation);
}

/// As `register_static`, with more than the schema says, such as what happens to events of a slow client.
#[allow(dead_code, unreachable_pub)]
pub fn register_static_with<__S: StaticService>(
    server: &impl ::core::convert::AsRef<::kumi_unison::ChannelRegistry>,
    spec: ::kumi_unison::ChannelSpec,
    implementation: __S,
) {
    let implementation = ::std::sync::Arc::new(implementation);
    server
        .as_ref()
        .register_channel_with(
            spec,
            move |
                _: ::std::sync::Arc<::kumi_unison::ConnectionContext>,
                channel: ::kumi_unison::UnisonChannel|
            serve_static(::std::sync::Arc::clone(&implementation), channel),
        );
}

#[allow(dead_code, unreachable_pub)]
async fn serve_static<__S: StaticService>(
    implementation: ::std::sync::Arc<__S>,
    channel: ::kumi_unison::UnisonChannel,
) -> ::core::result::Result<(), ::kumi_unison::NetworkError> {
    let peer = StaticPeer::from_channel(channel.clone());
    let events = async {
        while let Some(message) = ::kumi_unison::typed::next_event(&channel).await? {
            if let Some(event) = ::kumi_unison::typed::event_named::<
                Static,
            >(&message, "Static") {
                StaticService::r#static(&*implementation, &peer, event).await;
            }
        }
        Ok(())
    };
    let beside = async {
        if !channel.is_own_stream() {
            implementation.channel_opened(peer.clone()).await;
        }
    };
    let outcome = ::kumi_unison::typed::run_beside(events, beside).await;
    if !channel.is_own_stream() {
        implementation.channel_closed(&peer).await;
    }
    outcome
}

/// Hash over channel `channel0`. Peers with the same hash may use the binary format.
#[allow(dead_code, unreachable_pub)]
pub const CHANNEL0_CHANNEL_HASH: [u8; 32] = [
    0xe2, 0x7e, 0x6e, 0xb2, 0x80, 0xd3, 0x7d, 0x32, 0x1d, 0x4b, 0xc9, 0x22, 0xc5, 0x51,
    0xb9, 0x0e, 0xa0, 0xde, 0xef, 0xff, 0x07, 0xa0, 0x8c, 0x07, 0x74, 0x4d, 0x28, 0x7e,
    0xf4, 0xc7, 0x25, 0xc8,
];

/// What channel `channel0` is, for a server that offers it.
#[allow(dead_code, unreachable_pub)]
pub fn channel0_spec() -> ::kumi_unison::ChannelSpec {
    ::kumi_unison::ChannelSpec::new("channel0")
        .direction(::kumi_unison::ChannelDirection::ClientToServer)
        .lifetime(::kumi_unison::Lifetime::Persistent)
        .delivery(::kumi_unison::Delivery::Reliable)
        .event_policy(::kumi_unison::EventPolicy::DropOldest)
        .schema(
            ::kumi_unison::SchemaId::new(CHANNEL0_CHANNEL_HASH, ODD_PROTOCOL_VERSION),
        )
}

/// With what a client opens channel `channel0`.
#[allow(dead_code, unreachable_pub)]
pub fn channel0_options() -> ::kumi_unison::ChannelOptions {
    ::kumi_unison::ChannelOptions::new()
        .direction(::kumi_unison::ChannelDirection::ClientToServer)
        .lifetime(::kumi_unison::Lifetime::Persistent)
        .delivery(::kumi_unison::Delivery::Reliable)
        .event_policy(::kumi_unison::EventPolicy::DropOldest)
        .schema(
            ::kumi_unison::SchemaId::new(CHANNEL0_CHANNEL_HASH, ODD_PROTOCOL_VERSION),
        )
}

/// The client's side of channel `channel0`.
///
/// Clones are the same channel.
#[derive(Clone, Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct Channel0Client {
    channel: ::kumi_unison::TypedChannel,
}

#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
impl Channel0Client {
    /// A handle on an open channel, which speaks JSON.
    pub fn from_channel(channel: ::kumi_unison::UnisonChannel) -> Self {
        Self {
            channel: ::kumi_unison::TypedChannel::new(channel),
        }
    }

    /// The same channel in the binary format, which takes no detour over JSON.
    ///
    /// Both sides need the same schema hash; otherwise what is sent is refused.
    #[must_use]
    pub fn with_binary(mut self) -> Self {
        self.channel = self.channel.binary();
        self
    }

    /// The same channel, with other options for its calls, such as a deadline.
    #[must_use]
    pub fn with_options(mut self, options: ::kumi_unison::CallOptions) -> Self {
        self.channel = self.channel.options(options);
        self
    }

    /// The channel beneath.
    pub fn raw_channel(&self) -> &::kumi_unison::UnisonChannel {
        self.channel.channel()
    }

    /// Sends `AsRef`.
    ///
    /// What happens when the other side does not keep up is the channel's policy.
    pub async fn send_as_ref(
        &self,
        event: &AsRef,
    ) -> ::core::result::Result<(), ::kumi_unison::NetworkError> {
        self.channel.emit("AsRef", event).await
    }

    /// Every `Json`, from now on.
    ///
    /// While the stream lives, these events come to it and to nobody else. Events of other names wait for somebody to take them; `event_streams` takes all of them at once.
    pub fn json_events(&self) -> ::kumi_unison::EventStream<Json> {
        self.channel.events("Json")
    }

    /// A stream for every event of the channel.
    ///
    /// Whatever has no stream, because it is unknown or its stream was dropped, is thrown away on arrival.
    pub fn event_streams(&self) -> Channel0EventStreams {
        let streams = Channel0EventStreams {
            json: self.json_events(),
        };
        self.raw_channel().discard_events();
        streams
    }
}

impl ::core::convert::From<::kumi_unison::UnisonChannel> for Channel0Client {
    fn from(channel: ::kumi_unison::UnisonChannel) -> Self {
        Self::from_channel(channel)
    }
}

/// The server's side of channel `channel0`: one client that has it open.
///
/// Clones are the same channel.
#[derive(Clone, Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct Channel0Peer {
    channel: ::kumi_unison::TypedChannel,
}

#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
impl Channel0Peer {
    /// A handle on an open channel, which speaks JSON.
    pub fn from_channel(channel: ::kumi_unison::UnisonChannel) -> Self {
        Self {
            channel: ::kumi_unison::TypedChannel::new(channel),
        }
    }

    /// The same channel in the binary format, which takes no detour over JSON.
    ///
    /// Both sides need the same schema hash; otherwise what is sent is refused.
    #[must_use]
    pub fn with_binary(mut self) -> Self {
        self.channel = self.channel.binary();
        self
    }

    /// The same channel, with other options for its calls, such as a deadline.
    #[must_use]
    pub fn with_options(mut self, options: ::kumi_unison::CallOptions) -> Self {
        self.channel = self.channel.options(options);
        self
    }

    /// The channel beneath.
    pub fn raw_channel(&self) -> &::kumi_unison::UnisonChannel {
        self.channel.channel()
    }

    /// Sends `Json`.
    ///
    /// What happens when the other side does not keep up is the channel's policy.
    pub async fn send_json(
        &self,
        event: &Json,
    ) -> ::core::result::Result<(), ::kumi_unison::NetworkError> {
        self.channel.emit("Json", event).await
    }
}

impl ::core::convert::From<::kumi_unison::UnisonChannel> for Channel0Peer {
    fn from(channel: ::kumi_unison::UnisonChannel) -> Self {
        Self::from_channel(channel)
    }
}

/// A stream for every event that the server sends on channel `channel0`.
#[derive(Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct Channel0EventStreams {
    /// Every `Json`.
    pub json: ::kumi_unison::EventStream<Json>,
}

/// What a server does on channel `channel0`.
///
/// One value serves all clients; methods run at the same time.
#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
pub trait Channel0Service: ::core::marker::Send + ::core::marker::Sync + 'static {
    /// A client sent `AsRef`.
    ///
    /// Events of one client are handled one after the other. Unless implemented, they are ignored.
    fn as_ref(
        &self,
        peer: &Channel0Peer,
        event: AsRef,
    ) -> impl ::core::future::Future<Output = ()> + ::core::marker::Send {
        let _ = (peer, event);
        async {}
    }

    /// A client has opened the channel.
    ///
    /// Runs beside everything else, and is dropped when the channel ends; a loop that sends events may live here.
    fn channel_opened(
        &self,
        peer: Channel0Peer,
    ) -> impl ::core::future::Future<Output = ()> + ::core::marker::Send {
        let _ = peer;
        async {}
    }

    /// The channel of a client has ended.
    fn channel_closed(
        &self,
        peer: &Channel0Peer,
    ) -> impl ::core::future::Future<Output = ()> + ::core::marker::Send {
        let _ = peer;
        async {}
    }
}

/// Offers channel `channel0` at a server, answered by an implementation.
#[allow(dead_code, unreachable_pub)]
pub fn register_channel0<__S: Channel0Service>(
    server: &impl ::core::convert::AsRef<::kumi_unison::ChannelRegistry>,
    implementation: __S,
) {
    register_channel0_with(server, channel0_spec(), implementation);
}

/// As `register_channel0`, with more than the schema says, such as what happens to events of a slow client.
#[allow(dead_code, unreachable_pub)]
pub fn register_channel0_with<__S: Channel0Service>(
    server: &impl ::core::convert::AsRef<::kumi_unison::ChannelRegistry>,
    spec: ::kumi_unison::ChannelSpec,
    implementation: __S,
) {
    let implementation = ::std::sync::Arc::new(implementation);
    server
        .as_ref()
        .register_channel_with(
            spec,
            move |
                _: ::std::sync::Arc<::kumi_unison::ConnectionContext>,
                channel: ::kumi_unison::UnisonChannel|
            serve_channel0(::std::sync::Arc::clone(&implementation), channel),
        );
}

#[allow(dead_code, unreachable_pub)]
async fn serve_channel0<__S: Channel0Service>(
    implementation: ::std::sync::Arc<__S>,
    channel: ::kumi_unison::UnisonChannel,
) -> ::core::result::Result<(), ::kumi_unison::NetworkError> {
    let peer = Channel0Peer::from_channel(channel.clone());
    let events = async {
        while let Some(message) = ::kumi_unison::typed::next_event(&channel).await? {
            if let Some(event) = ::kumi_unison::typed::event_named::<
                AsRef,
            >(&message, "AsRef") {
                Channel0Service::as_ref(&*implementation, &peer, event).await;
            }
        }
        Ok(())
    };
    let beside = async {
        if !channel.is_own_stream() {
            implementation.channel_opened(peer.clone()).await;
        }
    };
    let outcome = ::kumi_unison::typed::run_beside(events, beside).await;
    if !channel.is_own_stream() {
        implementation.channel_closed(&peer).await;
    }
    outcome
}

/// Hash over channel `odd`. Peers with the same hash may use the binary format.
#[allow(dead_code, unreachable_pub)]
pub const ODD_CHANNEL_HASH: [u8; 32] = [
    0x2a, 0x1d, 0xc6, 0x06, 0xf2, 0xe3, 0x99, 0x1c, 0x24, 0x0a, 0x29, 0xf5, 0x17, 0x64,
    0xd6, 0xbd, 0x10, 0x01, 0x35, 0x2e, 0x1e, 0x0f, 0xc1, 0x11, 0x64, 0x0b, 0x16, 0x2b,
    0x04, 0x20, 0x39, 0xfb,
];

/// What channel `odd` is, for a server that offers it.
#[allow(dead_code, unreachable_pub)]
pub fn odd_spec() -> ::kumi_unison::ChannelSpec {
    ::kumi_unison::ChannelSpec::new("odd")
        .direction(::kumi_unison::ChannelDirection::ClientToServer)
        .lifetime(::kumi_unison::Lifetime::Persistent)
        .delivery(::kumi_unison::Delivery::Reliable)
        .event_policy(::kumi_unison::EventPolicy::DropOldest)
        .schema(::kumi_unison::SchemaId::new(ODD_CHANNEL_HASH, ODD_PROTOCOL_VERSION))
}

/// With what a client opens channel `odd`.
#[allow(dead_code, unreachable_pub)]
pub fn odd_options() -> ::kumi_unison::ChannelOptions {
    ::kumi_unison::ChannelOptions::new()
        .direction(::kumi_unison::ChannelDirection::ClientToServer)
        .lifetime(::kumi_unison::Lifetime::Persistent)
        .delivery(::kumi_unison::Delivery::Reliable)
        .event_policy(::kumi_unison::EventPolicy::DropOldest)
        .schema(::kumi_unison::SchemaId::new(ODD_CHANNEL_HASH, ODD_PROTOCOL_VERSION))
}

/// The client's side of channel `odd`.
///
/// Clones are the same channel.
#[derive(Clone, Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct OddClient {
    channel: ::kumi_unison::TypedChannel,
}

#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
impl OddClient {
    /// A handle on an open channel, which speaks JSON.
    pub fn from_channel(channel: ::kumi_unison::UnisonChannel) -> Self {
        Self {
            channel: ::kumi_unison::TypedChannel::new(channel),
        }
    }

    /// The same channel in the binary format, which takes no detour over JSON.
    ///
    /// Both sides need the same schema hash; otherwise what is sent is refused.
    #[must_use]
    pub fn with_binary(mut self) -> Self {
        self.channel = self.channel.binary();
        self
    }

    /// The same channel, with other options for its calls, such as a deadline.
    #[must_use]
    pub fn with_options(mut self, options: ::kumi_unison::CallOptions) -> Self {
        self.channel = self.channel.options(options);
        self
    }

    /// The channel beneath.
    pub fn raw_channel(&self) -> &::kumi_unison::UnisonChannel {
        self.channel.channel()
    }

    /// Sends `Call`.
    ///
    /// What happens when the other side does not keep up is the channel's policy.
    pub async fn send_call(
        &self,
        event: &Call,
    ) -> ::core::result::Result<(), ::kumi_unison::NetworkError> {
        self.channel.emit("Call", event).await
    }

    /// Sends `Timestamp`.
    ///
    /// What happens when the other side does not keep up is the channel's policy.
    pub async fn send_timestamp(
        &self,
        event: &Timestamp,
    ) -> ::core::result::Result<(), ::kumi_unison::NetworkError> {
        self.channel.emit("Timestamp", event).await
    }

    /// Sends `RegExp`.
    ///
    /// What happens when the other side does not keep up is the channel's policy.
    pub async fn send_reg_exp(
        &self,
        event: &RegExp,
    ) -> ::core::result::Result<(), ::kumi_unison::NetworkError> {
        self.channel.emit("RegExp", event).await
    }

    /// Sends `Future`.
    ///
    /// What happens when the other side does not keep up is the channel's policy.
    pub async fn send_future(
        &self,
        event: &Future,
    ) -> ::core::result::Result<(), ::kumi_unison::NetworkError> {
        self.channel.emit("Future", event).await
    }

    /// Sends `Message`.
    ///
    /// What happens when the other side does not keep up is the channel's policy.
    pub async fn send_message(
        &self,
        event: &Message,
    ) -> ::core::result::Result<(), ::kumi_unison::NetworkError> {
        self.channel.emit("Message", event).await
    }
}

impl ::core::convert::From<::kumi_unison::UnisonChannel> for OddClient {
    fn from(channel: ::kumi_unison::UnisonChannel) -> Self {
        Self::from_channel(channel)
    }
}

/// The server's side of channel `odd`: one client that has it open.
///
/// Clones are the same channel.
#[derive(Clone, Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct OddPeer {
    channel: ::kumi_unison::TypedChannel,
}

#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
impl OddPeer {
    /// A handle on an open channel, which speaks JSON.
    pub fn from_channel(channel: ::kumi_unison::UnisonChannel) -> Self {
        Self {
            channel: ::kumi_unison::TypedChannel::new(channel),
        }
    }

    /// The same channel in the binary format, which takes no detour over JSON.
    ///
    /// Both sides need the same schema hash; otherwise what is sent is refused.
    #[must_use]
    pub fn with_binary(mut self) -> Self {
        self.channel = self.channel.binary();
        self
    }

    /// The same channel, with other options for its calls, such as a deadline.
    #[must_use]
    pub fn with_options(mut self, options: ::kumi_unison::CallOptions) -> Self {
        self.channel = self.channel.options(options);
        self
    }

    /// The channel beneath.
    pub fn raw_channel(&self) -> &::kumi_unison::UnisonChannel {
        self.channel.channel()
    }
}

impl ::core::convert::From<::kumi_unison::UnisonChannel> for OddPeer {
    fn from(channel: ::kumi_unison::UnisonChannel) -> Self {
        Self::from_channel(channel)
    }
}

/// What a server does on channel `odd`.
///
/// One value serves all clients; methods run at the same time.
#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
pub trait OddService: ::core::marker::Send + ::core::marker::Sync + 'static {
    /// A client sent `Call`.
    ///
    /// Events of one client are handled one after the other. Unless implemented, they are ignored.
    fn call(
        &self,
        peer: &OddPeer,
        event: Call,
    ) -> impl ::core::future::Future<Output = ()> + ::core::marker::Send {
        let _ = (peer, event);
        async {}
    }

    /// A client sent `Timestamp`.
    ///
    /// Events of one client are handled one after the other. Unless implemented, they are ignored.
    fn timestamp(
        &self,
        peer: &OddPeer,
        event: Timestamp,
    ) -> impl ::core::future::Future<Output = ()> + ::core::marker::Send {
        let _ = (peer, event);
        async {}
    }

    /// A client sent `RegExp`.
    ///
    /// Events of one client are handled one after the other. Unless implemented, they are ignored.
    fn reg_exp(
        &self,
        peer: &OddPeer,
        event: RegExp,
    ) -> impl ::core::future::Future<Output = ()> + ::core::marker::Send {
        let _ = (peer, event);
        async {}
    }

    /// A client sent `Future`.
    ///
    /// Events of one client are handled one after the other. Unless implemented, they are ignored.
    fn future(
        &self,
        peer: &OddPeer,
        event: Future,
    ) -> impl ::core::future::Future<Output = ()> + ::core::marker::Send {
        let _ = (peer, event);
        async {}
    }

    /// A client sent `Message`.
    ///
    /// Events of one client are handled one after the other. Unless implemented, they are ignored.
    fn message(
        &self,
        peer: &OddPeer,
        event: Message,
    ) -> impl ::core::future::Future<Output = ()> + ::core::marker::Send {
        let _ = (peer, event);
        async {}
    }

    /// A client has opened the channel.
    ///
    /// Runs beside everything else, and is dropped when the channel ends; a loop that sends events may live here.
    fn channel_opened(
        &self,
        peer: OddPeer,
    ) -> impl ::core::future::Future<Output = ()> + ::core::marker::Send {
        let _ = peer;
        async {}
    }

    /// The channel of a client has ended.
    fn channel_closed(
        &self,
        peer: &OddPeer,
    ) -> impl ::core::future::Future<Output = ()> + ::core::marker::Send {
        let _ = peer;
        async {}
    }
}

/// Offers channel `odd` at a server, answered by an implementation.
#[allow(dead_code, unreachable_pub)]
pub fn register_odd<__S: OddService>(
    server: &impl ::core::convert::AsRef<::kumi_unison::ChannelRegistry>,
    implementation: __S,
) {
    register_odd_with(server, odd_spec(), implementation);
}

/// As `register_odd`, with more than the schema says, such as what happens to events of a slow client.
#[allow(dead_code, unreachable_pub)]
pub fn register_odd_with<__S: OddService>(
    server: &impl ::core::convert::AsRef<::kumi_unison::ChannelRegistry>,
    spec: ::kumi_unison::ChannelSpec,
    implementation: __S,
) {
    let implementation = ::std::sync::Arc::new(implementation);
    server
        .as_ref()
        .register_channel_with(
            spec,
            move |
                _: ::std::sync::Arc<::kumi_unison::ConnectionContext>,
                channel: ::kumi_unison::UnisonChannel|
            serve_odd(::std::sync::Arc::clone(&implementation), channel),
        );
}

#[allow(dead_code, unreachable_pub)]
async fn serve_odd<__S: OddService>(
    implementation: ::std::sync::Arc<__S>,
    channel: ::kumi_unison::UnisonChannel,
) -> ::core::result::Result<(), ::kumi_unison::NetworkError> {
    let peer = OddPeer::from_channel(channel.clone());
    let events = async {
        while let Some(message) = ::kumi_unison::typed::next_event(&channel).await? {
            if let Some(event) = ::kumi_unison::typed::event_named::<
                Call,
            >(&message, "Call") {
                OddService::call(&*implementation, &peer, event).await;
            } else if let Some(event) = ::kumi_unison::typed::event_named::<
                Timestamp,
            >(&message, "Timestamp") {
                OddService::timestamp(&*implementation, &peer, event).await;
            } else if let Some(event) = ::kumi_unison::typed::event_named::<
                RegExp,
            >(&message, "RegExp") {
                OddService::reg_exp(&*implementation, &peer, event).await;
            } else if let Some(event) = ::kumi_unison::typed::event_named::<
                Future,
            >(&message, "Future") {
                OddService::future(&*implementation, &peer, event).await;
            } else if let Some(event) = ::kumi_unison::typed::event_named::<
                Message,
            >(&message, "Message") {
                OddService::message(&*implementation, &peer, event).await;
            }
        }
        Ok(())
    };
    let beside = async {
        if !channel.is_own_stream() {
            implementation.channel_opened(peer.clone()).await;
        }
    };
    let outcome = ::kumi_unison::typed::run_beside(events, beside).await;
    if !channel.is_own_stream() {
        implementation.channel_closed(&peer).await;
    }
    outcome
}

/// Any request of channel `delete`.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, clippy::enum_variant_names)]
#[allow(dead_code, unreachable_pub)]
pub enum DeleteRequest {
    /// `Send`
    Send(Send),
    /// `Clone`
    Clone(Clone),
}

impl ::core::convert::From<Send> for DeleteRequest {
    fn from(message: Send) -> Self {
        Self::Send(message)
    }
}

impl ::core::convert::From<Clone> for DeleteRequest {
    fn from(message: Clone) -> Self {
        Self::Clone(message)
    }
}

/// The answer to any request of channel `delete`, by the request's name.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, clippy::enum_variant_names)]
#[allow(dead_code, unreachable_pub)]
pub enum DeleteResponse {
    /// `Send`
    Send(Sync),
    /// `Clone`
    Clone(Result),
}

impl ::core::convert::From<Sync> for DeleteResponse {
    fn from(message: Sync) -> Self {
        Self::Send(message)
    }
}

impl ::core::convert::From<Result> for DeleteResponse {
    fn from(message: Result) -> Self {
        Self::Clone(message)
    }
}

/// Any event that the client sends on channel `delete`.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, clippy::enum_variant_names)]
#[allow(dead_code, unreachable_pub)]
pub enum DeleteClientEvent {
    /// `S`
    S(S),
    /// `Drop`
    Drop(Drop),
}

impl ::core::convert::From<S> for DeleteClientEvent {
    fn from(message: S) -> Self {
        Self::S(message)
    }
}

impl ::core::convert::From<Drop> for DeleteClientEvent {
    fn from(message: Drop) -> Self {
        Self::Drop(message)
    }
}

/// Any event that the server sends on channel `delete`.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, clippy::enum_variant_names)]
#[allow(dead_code, unreachable_pub)]
pub enum DeleteServerEvent {
    /// `S`
    S(S),
    /// `Drop`
    Drop(Drop),
}

impl ::core::convert::From<S> for DeleteServerEvent {
    fn from(message: S) -> Self {
        Self::S(message)
    }
}

impl ::core::convert::From<Drop> for DeleteServerEvent {
    fn from(message: Drop) -> Self {
        Self::Drop(message)
    }
}

/// Any request of channel `new`.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, clippy::enum_variant_names)]
#[allow(dead_code, unreachable_pub)]
pub enum NewRequest {
    /// `Await`
    Await(Await),
    /// `Close`
    Close(Close),
    /// `Constructor`
    Constructor(Constructor),
}

impl ::core::convert::From<Await> for NewRequest {
    fn from(message: Await) -> Self {
        Self::Await(message)
    }
}

impl ::core::convert::From<Close> for NewRequest {
    fn from(message: Close) -> Self {
        Self::Close(message)
    }
}

impl ::core::convert::From<Constructor> for NewRequest {
    fn from(message: Constructor) -> Self {
        Self::Constructor(message)
    }
}

/// The answer to any request of channel `new`, by the request's name.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, clippy::enum_variant_names)]
#[allow(dead_code, unreachable_pub)]
pub enum NewResponse {
    /// `Await`
    Await(Error),
    /// `Close`
    Close(Hash),
    /// `Constructor`
    Constructor(Eq),
}

impl ::core::convert::From<Error> for NewResponse {
    fn from(message: Error) -> Self {
        Self::Await(message)
    }
}

impl ::core::convert::From<Hash> for NewResponse {
    fn from(message: Hash) -> Self {
        Self::Close(message)
    }
}

impl ::core::convert::From<Eq> for NewResponse {
    fn from(message: Eq) -> Self {
        Self::Constructor(message)
    }
}

/// Any event that the client sends on channel `odd`.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, clippy::enum_variant_names)]
#[allow(dead_code, unreachable_pub)]
pub enum OddClientEvent {
    /// `Call`
    Call(Call),
    /// `Timestamp`
    Timestamp(Timestamp),
    /// `RegExp`
    RegExp(RegExp),
    /// `Future`
    Future(Future),
    /// `Message`
    Message(Message),
}

impl ::core::convert::From<Call> for OddClientEvent {
    fn from(message: Call) -> Self {
        Self::Call(message)
    }
}

impl ::core::convert::From<Timestamp> for OddClientEvent {
    fn from(message: Timestamp) -> Self {
        Self::Timestamp(message)
    }
}

impl ::core::convert::From<RegExp> for OddClientEvent {
    fn from(message: RegExp) -> Self {
        Self::RegExp(message)
    }
}

impl ::core::convert::From<Future> for OddClientEvent {
    fn from(message: Future) -> Self {
        Self::Future(message)
    }
}

impl ::core::convert::From<Message> for OddClientEvent {
    fn from(message: Message) -> Self {
        Self::Message(message)
    }
}

/// Every channel of protocol `odd` inside one process, as its client holds them.
///
/// Three backticks
/// \`\`\`
/// let this = is no code();
/// \`\`\`
/// and a   carriage return.
#[derive(Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct OddConnection {
    /// Channel `delete`.
    pub delete: ::kumi_unison::ServiceChannel<
        ::kumi_unison::PeerChannel<DeleteRequest, DeleteResponse>,
        ::kumi_unison::BidirectionalChannel<DeleteClientEvent, DeleteServerEvent>,
    >,
    /// Channel `new`.
    pub new: ::kumi_unison::ServiceChannel<
        ::kumi_unison::RequestChannel<NewRequest, NewResponse>,
        ::kumi_unison::ReceiveChannel<Yield>,
    >,
    /// Channel `opened`.
    pub opened: ::kumi_unison::ReceiveChannel<Fn>,
    /// Channel `error`.
    pub error: ::kumi_unison::SendChannel<Arc>,
    /// Channel `import`.
    pub import: ::kumi_unison::RespondChannel<Try, Into>,
    /// Channel `static`.
    pub r#static: ::kumi_unison::SendChannel<Static>,
    /// Channel `channel0`.
    pub channel0: ::kumi_unison::BidirectionalChannel<AsRef, Json>,
    /// Channel `odd`.
    pub odd: ::kumi_unison::SendChannel<OddClientEvent>,
}

/// Every channel of protocol `odd` inside one process, as its server holds them.
///
/// Three backticks
/// \`\`\`
/// let this = is no code();
/// \`\`\`
/// and a   carriage return.
#[derive(Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct OddServerConnection {
    /// Channel `delete`.
    pub delete: ::kumi_unison::ServiceChannel<
        ::kumi_unison::PeerChannel<DeleteRequest, DeleteResponse>,
        ::kumi_unison::BidirectionalChannel<DeleteServerEvent, DeleteClientEvent>,
    >,
    /// Channel `new`.
    pub new: ::kumi_unison::ServiceChannel<
        ::kumi_unison::RespondChannel<NewRequest, NewResponse>,
        ::kumi_unison::SendChannel<Yield>,
    >,
    /// Channel `opened`.
    pub opened: ::kumi_unison::SendChannel<Fn>,
    /// Channel `error`.
    pub error: ::kumi_unison::ReceiveChannel<Arc>,
    /// Channel `import`.
    pub import: ::kumi_unison::RequestChannel<Try, Into>,
    /// Channel `static`.
    pub r#static: ::kumi_unison::ReceiveChannel<Static>,
    /// Channel `channel0`.
    pub channel0: ::kumi_unison::BidirectionalChannel<Json, AsRef>,
    /// Channel `odd`.
    pub odd: ::kumi_unison::ReceiveChannel<OddClientEvent>,
}

#[allow(dead_code, unreachable_pub)]
impl OddConnection {
    /// Both ends of a connection. Each channel holds up to `capacity` messages each way; a full one makes its sender wait.
    pub fn pair(capacity: usize) -> (Self, OddServerConnection) {
        let (requests, answers) = <::kumi_unison::PeerChannel<
            DeleteRequest,
            DeleteResponse,
        >>::pair(capacity);
        let (near, far) = <::kumi_unison::BidirectionalChannel<
            DeleteClientEvent,
            DeleteServerEvent,
        >>::pair(capacity);
        let delete_client = ::kumi_unison::ServiceChannel {
            requests,
            events: near,
        };
        let delete_server = ::kumi_unison::ServiceChannel {
            requests: answers,
            events: far,
        };
        let (requests, answers) = <::kumi_unison::RequestChannel<
            NewRequest,
            NewResponse,
        >>::pair(capacity);
        let (near, far) = <::kumi_unison::ReceiveChannel<Yield>>::pair(capacity);
        let new_client = ::kumi_unison::ServiceChannel {
            requests,
            events: near,
        };
        let new_server = ::kumi_unison::ServiceChannel {
            requests: answers,
            events: far,
        };
        let (opened_client, opened_server) = <::kumi_unison::ReceiveChannel<
            Fn,
        >>::pair(capacity);
        let (error_client, error_server) = <::kumi_unison::SendChannel<
            Arc,
        >>::pair(capacity);
        let (import_client, import_server) = <::kumi_unison::RespondChannel<
            Try,
            Into,
        >>::pair(capacity);
        let (static_client, static_server) = <::kumi_unison::SendChannel<
            Static,
        >>::pair(capacity);
        let (channel0_client, channel0_server) = <::kumi_unison::BidirectionalChannel<
            AsRef,
            Json,
        >>::pair(capacity);
        let (odd_client, odd_server) = <::kumi_unison::SendChannel<
            OddClientEvent,
        >>::pair(capacity);
        (
            Self {
                delete: delete_client,
                new: new_client,
                opened: opened_client,
                error: error_client,
                import: import_client,
                r#static: static_client,
                channel0: channel0_client,
                odd: odd_client,
            },
            OddServerConnection {
                delete: delete_server,
                new: new_server,
                opened: opened_server,
                error: error_server,
                import: import_server,
                r#static: static_server,
                channel0: channel0_server,
                odd: odd_server,
            },
        )
    }
}

/// Every channel of protocol `odd`, open on a connection.
///
/// Three backticks
/// \`\`\`
/// let this = is no code();
/// \`\`\`
/// and a   carriage return.
///
/// A field is the channel itself, a method of the same name its typed handle.
#[derive(Clone, Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct OddQuicConnection {
    /// Channel `delete`.
    pub delete: ::kumi_unison::UnisonChannel,
    /// Channel `new`.
    pub new: ::kumi_unison::UnisonChannel,
    /// Channel `opened`.
    pub opened: ::kumi_unison::UnisonChannel,
    /// Channel `error`.
    pub error: ::kumi_unison::UnisonChannel,
    /// Channel `import`.
    pub import: ::kumi_unison::UnisonChannel,
    /// Channel `static`.
    pub r#static: ::kumi_unison::UnisonChannel,
    /// Channel `channel0`.
    pub channel0: ::kumi_unison::UnisonChannel,
    /// Channel `odd`.
    pub odd: ::kumi_unison::UnisonChannel,
}

#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
impl OddQuicConnection {
    /// Channel `delete`, typed.
    pub fn delete(&self) -> DeleteClient {
        DeleteClient::from_channel(self.delete.clone())
    }

    /// Channel `new`, typed.
    pub fn new(&self) -> NewClient {
        NewClient::from_channel(self.new.clone())
    }

    /// Channel `opened`, typed.
    pub fn opened(&self) -> OpenedClient {
        OpenedClient::from_channel(self.opened.clone())
    }

    /// Channel `error`, typed.
    pub fn error(&self) -> ErrorClient {
        ErrorClient::from_channel(self.error.clone())
    }

    /// Channel `import`, typed.
    pub fn import(&self) -> ImportClient {
        ImportClient::from_channel(self.import.clone())
    }

    /// Channel `static`, typed.
    pub fn r#static(&self) -> StaticClient {
        StaticClient::from_channel(self.r#static.clone())
    }

    /// Channel `channel0`, typed.
    pub fn channel0(&self) -> Channel0Client {
        Channel0Client::from_channel(self.channel0.clone())
    }

    /// Channel `odd`, typed.
    pub fn odd(&self) -> OddClient {
        OddClient::from_channel(self.odd.clone())
    }
}

/// Opens every channel of protocol `odd`.
#[allow(dead_code, unreachable_pub)]
pub trait OddConnectionBuilder {
    /// Opens every channel at once, in one round trip, and waits until the server has agreed to each.
    ///
    /// Fails, with none left open, when one of them is refused.
    fn build<C: ::kumi_unison::ChannelSource + ?Sized>(
        client: &C,
    ) -> impl ::core::future::Future<
        Output = ::core::result::Result<OddQuicConnection, ::kumi_unison::NetworkError>,
    > + ::core::marker::Send;
}

impl OddConnectionBuilder for OddQuicConnection {
    async fn build<C: ::kumi_unison::ChannelSource + ?Sized>(
        client: &C,
    ) -> ::core::result::Result<Self, ::kumi_unison::NetworkError> {
        let [delete, new, opened, error, import, r#static, channel0, odd] = ::kumi_unison::open_channels(
                client,
                [
                    ("delete", delete_options()),
                    ("new", new_options()),
                    ("opened", opened_options()),
                    ("error", error_options()),
                    ("import", import_options()),
                    ("static", static_options()),
                    ("channel0", channel0_options()),
                    ("odd", odd_options()),
                ],
            )
            .await?;
        Ok(Self {
            delete,
            new,
            opened,
            error,
            import,
            r#static,
            channel0,
            odd,
        })
    }
}
