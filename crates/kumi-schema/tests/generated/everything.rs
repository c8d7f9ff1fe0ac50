// Generated from protocol everything (example.everything) by kumi-schema. Changes belong into the schema.

/// Version of the protocol. Peers whose first numbers differ refuse each other.
#[allow(dead_code, unreachable_pub)]
pub const EVERYTHING_PROTOCOL_VERSION: &str = "1.4.2";

/// Hash over the whole protocol.
#[allow(dead_code, unreachable_pub)]
pub const EVERYTHING_PROTOCOL_HASH: [u8; 32] = [
    0xa7, 0xe8, 0x6e, 0xfd, 0x5a, 0x80, 0x1d, 0xd2, 0xf4, 0x94, 0x35, 0xcb, 0xd6, 0xd3,
    0x89, 0xf1, 0xe5, 0xa6, 0x57, 0x33, 0x8e, 0x88, 0xed, 0x98, 0x1c, 0xa2, 0xe1, 0x7b,
    0x03, 0xf1, 0xa5, 0x94,
];

/// A short name.
#[allow(dead_code, unreachable_pub)]
pub type Name = String;

/// Another name for int.
#[allow(dead_code, unreachable_pub)]
pub type Score = i64;

/// Another name for array of Score.
#[allow(dead_code, unreachable_pub)]
pub type Row = Vec<Score>;

/// Another name for Name.
#[allow(dead_code, unreachable_pub)]
pub type Handle = Name;

/// What one sees.
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
pub enum Colour {
    /// Like fire.
    #[serde(rename = "red")]
    Red,
    /// `sea-green`
    #[serde(rename = "sea-green")]
    SeaGreen,
    /// `type`
    #[serde(rename = "type")]
    Type,
}

#[allow(dead_code, unreachable_pub)]
impl Colour {
    /// The values that the schema lists, in its order.
    pub const LISTED: [Self; 3] = [Self::Red, Self::SeaGreen, Self::Type];
    /// The value as it travels.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Red => "red",
            Self::SeaGreen => "sea-green",
            Self::Type => "type",
        }
    }
}

impl ::core::fmt::Display for Colour {
    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One of the values of Mood.
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
pub enum Mood {
    /// `good`
    #[serde(rename = "good")]
    Good,
    /// `bad`
    #[serde(rename = "bad")]
    Bad,
    /// A value that the schema does not list, as it came.
    #[serde(untagged)]
    Unknown(String),
}

#[allow(dead_code, unreachable_pub)]
impl Mood {
    /// The values that the schema lists, in its order.
    pub const LISTED: [Self; 2] = [Self::Good, Self::Bad];
    /// The value as it travels.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Good => "good",
            Self::Bad => "bad",
            Self::Unknown(value) => value,
        }
    }
}

impl ::core::fmt::Display for Mood {
    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One of each.
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
pub struct Scalars {
    /// Some words.
    pub text: String,
    /// Field whole.
    pub whole: i64,
    /// Field broken.
    pub broken: f64,
    /// Field other.
    pub other: f64,
    /// Field truth.
    pub truth: bool,
    /// Field at.
    pub at: ::kumi_unison::Timestamp,
    /// Field blob.
    #[serde(with = "::kumi_unison::typed::base64_bytes")]
    pub blob: Vec<u8>,
    /// Field anything.
    pub anything: ::kumi_unison::Json,
    /// Field colour.
    pub colour: Colour,
    /// Field mood.
    pub mood: Mood,
}

#[allow(dead_code, unreachable_pub)]
impl Scalars {
    /// A message with what it has to have, and nothing else.
    #[allow(clippy::too_many_arguments)]
    pub fn new(
        text: impl Into<String>,
        whole: i64,
        broken: f64,
        other: f64,
        truth: bool,
        at: ::kumi_unison::Timestamp,
        blob: Vec<u8>,
        anything: ::kumi_unison::Json,
        colour: Colour,
        mood: Mood,
    ) -> Self {
        Self {
            text: text.into(),
            whole,
            broken,
            other,
            truth,
            at,
            blob,
            anything,
            colour,
            mood,
        }
    }

    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(
        &self,
    ) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        {
            let value = &self.whole;
            ::kumi_unison::typed::check::at_least(value, &-5)
                .map_err(|problem| problem.at("whole"))?;
            ::kumi_unison::typed::check::at_most(value, &5)
                .map_err(|problem| problem.at("whole"))?;
        }
        {
            let value = &self.broken;
            ::kumi_unison::typed::check::finite(*value)
                .map_err(|problem| problem.at("broken"))?;
            ::kumi_unison::typed::check::at_least(value, &-0.5)
                .map_err(|problem| problem.at("broken"))?;
        }
        {
            let value = &self.other;
            ::kumi_unison::typed::check::finite(*value)
                .map_err(|problem| problem.at("other"))?;
        }
        {
            let value = &self.at;
            ::kumi_unison::typed::check::at_least(value, &::kumi_unison::Timestamp(0))
                .map_err(|problem| problem.at("at"))?;
        }
        {
            let value = &self.blob;
            ::kumi_unison::typed::check::max_length(value.len(), 8)
                .map_err(|problem| problem.at("blob"))?;
        }
        Ok(())
    }
}

impl ::kumi_unison::Message for Scalars {
    const NAME: &'static str = "Scalars";
    fn validate(&self) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Scalars::validate(self)
    }
}

/// Message Optionals.
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
pub struct Optionals {
    /// Field text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<Name>,
    /// Field whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole: Option<Score>,
    /// Field truth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truth: Option<bool>,
    /// Field at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<::kumi_unison::Timestamp>,
    /// Field blob.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "::kumi_unison::typed::base64_bytes"
    )]
    pub blob: Option<Vec<u8>>,
    /// Field anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anything: Option<::kumi_unison::Json>,
    /// Field colour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub colour: Option<Colour>,
    /// Field list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list: Option<Vec<Handle>>,
    /// Field blobs.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "::kumi_unison::typed::base64_bytes"
    )]
    pub blobs: Option<Vec<Vec<u8>>>,
    /// Field sky.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "::kumi_unison::typed::base64_bytes"
    )]
    pub sky: Option<::std::collections::BTreeMap<String, Vec<u8>>>,
}

#[allow(dead_code, unreachable_pub)]
impl Optionals {
    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(
        &self,
    ) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        if let Some(value) = &self.text {
            ::kumi_unison::typed::check::min_length(value.chars().count(), 1)
                .map_err(|problem| problem.at("text"))?;
            ::kumi_unison::typed::check::max_length(value.chars().count(), 20)
                .map_err(|problem| problem.at("text"))?;
            {
                static PATTERN: ::kumi_unison::typed::check::Pattern = ::kumi_unison::typed::check::Pattern::new(
                    "^[a-z][\\w-]*$",
                );
                PATTERN.check(value).map_err(|problem| problem.at("text"))?;
            }
        }
        if let Some(value) = &self.whole {
            ::kumi_unison::typed::check::at_least(value, &0)
                .map_err(|problem| problem.at("whole"))?;
            ::kumi_unison::typed::check::at_most(value, &100)
                .map_err(|problem| problem.at("whole"))?;
        }
        if let Some(value) = &self.list {
            ::kumi_unison::typed::check::min_length(value.len(), 1)
                .map_err(|problem| problem.at("list"))?;
            for (index0, value0) in value.iter().enumerate() {
                ::kumi_unison::typed::check::min_length(value0.chars().count(), 1)
                    .map_err(|problem| problem.at(format!("list[{}]", index0)))?;
                ::kumi_unison::typed::check::max_length(value0.chars().count(), 10)
                    .map_err(|problem| problem.at(format!("list[{}]", index0)))?;
                {
                    static PATTERN: ::kumi_unison::typed::check::Pattern = ::kumi_unison::typed::check::Pattern::new(
                        "^[a-z][\\w-]*$",
                    );
                    PATTERN
                        .check(value0)
                        .map_err(|problem| problem.at(format!("list[{}]", index0)))?;
                }
            }
        }
        Ok(())
    }
}

impl ::kumi_unison::Message for Optionals {
    const NAME: &'static str = "Optionals";
    fn validate(&self) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Optionals::validate(self)
    }
}

/// Message Defaults.
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
pub struct Defaults {
    /// Field text.
    #[serde(default = "Defaults::default_text")]
    pub text: String,
    /// Field whole.
    #[serde(default = "Defaults::default_whole")]
    pub whole: i64,
    /// Field broken.
    #[serde(default = "Defaults::default_broken")]
    pub broken: f64,
    /// Field truth.
    #[serde(default = "Defaults::default_truth")]
    pub truth: bool,
    /// Field at.
    #[serde(default = "Defaults::default_at")]
    pub at: ::kumi_unison::Timestamp,
    /// Field colour.
    #[serde(default = "Defaults::default_colour")]
    pub colour: Colour,
    /// Field mood.
    #[serde(default = "Defaults::default_mood")]
    pub mood: Mood,
    /// Field note.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

#[allow(dead_code, unreachable_pub)]
impl Defaults {
    fn default_text() -> String {
        "say \"hi\"\n".to_owned()
    }

    fn default_whole() -> i64 {
        -3
    }

    fn default_broken() -> f64 {
        1.0
    }

    fn default_truth() -> bool {
        true
    }

    fn default_at() -> ::kumi_unison::Timestamp {
        ::kumi_unison::Timestamp(1000)
    }

    fn default_colour() -> Colour {
        Colour::SeaGreen
    }

    fn default_mood() -> Mood {
        Mood::Bad
    }

    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(
        &self,
    ) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        {
            let value = &self.broken;
            ::kumi_unison::typed::check::finite(*value)
                .map_err(|problem| problem.at("broken"))?;
        }
        Ok(())
    }
}

impl Default for Defaults {
    fn default() -> Self {
        Self {
            text: Self::default_text(),
            whole: Self::default_whole(),
            broken: Self::default_broken(),
            truth: Self::default_truth(),
            at: Self::default_at(),
            colour: Self::default_colour(),
            mood: Self::default_mood(),
            note: None,
        }
    }
}

impl ::kumi_unison::Message for Defaults {
    const NAME: &'static str = "Defaults";
    fn validate(&self) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Defaults::validate(self)
    }
}

/// Message Lists.
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
pub struct Lists {
    /// Field words.
    pub words: Vec<Name>,
    /// Field grid.
    pub grid: Vec<Row>,
    /// Field people.
    pub people: ::std::collections::BTreeMap<String, Optionals>,
    /// Field loose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loose: Option<Vec<::kumi_unison::Json>>,
    /// Field free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free: Option<::std::collections::BTreeMap<String, ::kumi_unison::Json>>,
    /// Field moods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moods: Option<::std::collections::BTreeMap<String, Mood>>,
}

#[allow(dead_code, unreachable_pub)]
impl Lists {
    /// A message with what it has to have, and nothing else.
    pub fn new(
        words: Vec<Name>,
        grid: Vec<Row>,
        people: ::std::collections::BTreeMap<String, Optionals>,
    ) -> Self {
        Self {
            words,
            grid,
            people,
            loose: None,
            free: None,
            moods: None,
        }
    }

    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(
        &self,
    ) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        {
            let value = &self.words;
            ::kumi_unison::typed::check::max_length(value.len(), 3)
                .map_err(|problem| problem.at("words"))?;
            for (index0, value0) in value.iter().enumerate() {
                ::kumi_unison::typed::check::min_length(value0.chars().count(), 1)
                    .map_err(|problem| problem.at(format!("words[{}]", index0)))?;
                ::kumi_unison::typed::check::max_length(value0.chars().count(), 20)
                    .map_err(|problem| problem.at(format!("words[{}]", index0)))?;
                {
                    static PATTERN: ::kumi_unison::typed::check::Pattern = ::kumi_unison::typed::check::Pattern::new(
                        "^[a-z][\\w-]*$",
                    );
                    PATTERN
                        .check(value0)
                        .map_err(|problem| problem.at(format!("words[{}]", index0)))?;
                }
            }
        }
        {
            let value = &self.grid;
            for (index0, value0) in value.iter().enumerate() {
                ::kumi_unison::typed::check::max_length(value0.len(), 4)
                    .map_err(|problem| problem.at(format!("grid[{}]", index0)))?;
                for (index1, value1) in value0.iter().enumerate() {
                    ::kumi_unison::typed::check::at_least(value1, &0)
                        .map_err(|problem| {
                            problem.at(format!("grid[{}][{}]", index0, index1))
                        })?;
                    ::kumi_unison::typed::check::at_most(value1, &100)
                        .map_err(|problem| {
                            problem.at(format!("grid[{}][{}]", index0, index1))
                        })?;
                }
            }
        }
        {
            let value = &self.people;
            ::kumi_unison::typed::check::max_length(value.len(), 2)
                .map_err(|problem| problem.at("people"))?;
            for (key0, value0) in value {
                value0
                    .validate()
                    .map_err(|error| error.within(format!("people[{:?}]", key0)))?;
            }
        }
        Ok(())
    }
}

impl ::kumi_unison::Message for Lists {
    const NAME: &'static str = "Lists";
    fn validate(&self) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Lists::validate(self)
    }
}

/// Message Odd.
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
pub struct Odd {
    /// Field type.
    pub r#type: String,
    /// Field self.
    #[serde(rename = "self", default, skip_serializing_if = "Option::is_none")]
    pub self_: Option<i64>,
    /// Field camelCase.
    #[serde(rename = "camelCase", default, skip_serializing_if = "Option::is_none")]
    pub camel_case: Option<i64>,
    /// Field with-dash.
    #[serde(rename = "with-dash", default, skip_serializing_if = "Option::is_none")]
    pub with_dash: Option<i64>,
    /// Field _2fa.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub _2fa: Option<bool>,
}

#[allow(dead_code, unreachable_pub)]
impl Odd {
    /// A message with what it has to have, and nothing else.
    pub fn new(r#type: impl Into<String>) -> Self {
        Self {
            r#type: r#type.into(),
            self_: None,
            camel_case: None,
            with_dash: None,
            _2fa: None,
        }
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

impl ::kumi_unison::Message for Odd {
    const NAME: &'static str = "Odd";
    fn validate(&self) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Odd::validate(self)
    }
}

/// Message Tree.
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
pub struct Tree {
    /// Field label.
    pub label: String,
    /// Field left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[rkyv(omit_bounds)]
    pub left: Option<Box<Tree>>,
    /// Field children.
    #[rkyv(omit_bounds)]
    pub children: Vec<Tree>,
    /// Field named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[rkyv(omit_bounds)]
    pub named: Option<::std::collections::BTreeMap<String, Tree>>,
    /// Field leaf.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[rkyv(omit_bounds)]
    pub leaf: Option<Box<Leaf>>,
}

#[allow(dead_code, unreachable_pub)]
impl Tree {
    /// A message with what it has to have, and nothing else.
    pub fn new(label: impl Into<String>, children: Vec<Tree>) -> Self {
        Self {
            label: label.into(),
            left: None,
            children,
            named: None,
            leaf: None,
        }
    }

    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(
        &self,
    ) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        {
            let value = &self.label;
            ::kumi_unison::typed::check::max_length(value.chars().count(), 5)
                .map_err(|problem| problem.at("label"))?;
        }
        if let Some(value) = &self.left {
            value.validate().map_err(|error| error.within("left"))?;
        }
        {
            let value = &self.children;
            for (index0, value0) in value.iter().enumerate() {
                value0
                    .validate()
                    .map_err(|error| error.within(format!("children[{}]", index0)))?;
            }
        }
        if let Some(value) = &self.named {
            for (key0, value0) in value {
                value0
                    .validate()
                    .map_err(|error| error.within(format!("named[{:?}]", key0)))?;
            }
        }
        if let Some(value) = &self.leaf {
            value.validate().map_err(|error| error.within("leaf"))?;
        }
        Ok(())
    }
}

impl ::kumi_unison::Message for Tree {
    const NAME: &'static str = "Tree";
    fn validate(&self) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Tree::validate(self)
    }
}

/// Message Leaf.
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
pub struct Leaf {
    /// Field tree.
    #[rkyv(omit_bounds)]
    pub tree: Tree,
}

#[allow(dead_code, unreachable_pub)]
impl Leaf {
    /// A message with what it has to have, and nothing else.
    pub fn new(tree: Tree) -> Self {
        Self { tree }
    }

    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(
        &self,
    ) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        {
            let value = &self.tree;
            value.validate().map_err(|error| error.within("tree"))?;
        }
        Ok(())
    }
}

impl ::kumi_unison::Message for Leaf {
    const NAME: &'static str = "Leaf";
    fn validate(&self) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Leaf::validate(self)
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
    /// Field sum.
    pub sum: i64,
}

#[allow(dead_code, unreachable_pub)]
impl Result {
    /// A message with what it has to have, and nothing else.
    pub fn new(sum: i64) -> Self {
        Self { sum }
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

/// Message Many.
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
pub struct Many {
    /// Field a.
    pub a: i64,
    /// Field b.
    pub b: i64,
    /// Field c.
    pub c: i64,
    /// Field d.
    pub d: i64,
    /// Field e.
    pub e: i64,
    /// Field f.
    pub f: i64,
    /// Field g.
    pub g: i64,
    /// Field h.
    pub h: i64,
}

#[allow(dead_code, unreachable_pub)]
impl Many {
    /// A message with what it has to have, and nothing else.
    #[allow(clippy::too_many_arguments)]
    pub fn new(a: i64, b: i64, c: i64, d: i64, e: i64, f: i64, g: i64, h: i64) -> Self {
        Self { a, b, c, d, e, f, g, h }
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

impl ::kumi_unison::Message for Many {
    const NAME: &'static str = "Many";
    fn validate(&self) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Many::validate(self)
    }
}

/// Message Left.
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
pub struct Left {}
#[allow(dead_code, unreachable_pub)]
impl Left {
    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(
        &self,
    ) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Ok(())
    }
}

impl ::kumi_unison::Message for Left {
    const NAME: &'static str = "Left";
    fn validate(&self) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Left::validate(self)
    }
}

/// Gives back what it gets.
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
pub struct Echo {
    /// Field scalars.
    pub scalars: Scalars,
    /// Field lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lists: Option<Lists>,
}

#[allow(dead_code, unreachable_pub)]
impl Echo {
    /// A message with what it has to have, and nothing else.
    pub fn new(scalars: Scalars) -> Self {
        Self { scalars, lists: None }
    }

    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(
        &self,
    ) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        {
            let value = &self.scalars;
            value.validate().map_err(|error| error.within("scalars"))?;
        }
        if let Some(value) = &self.lists {
            value.validate().map_err(|error| error.within("lists"))?;
        }
        Ok(())
    }
}

impl ::kumi_unison::Message for Echo {
    const NAME: &'static str = "Echo";
    fn validate(&self) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Echo::validate(self)
    }
}

/// Message Echoed.
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
pub struct Echoed {
    /// Field scalars.
    pub scalars: Scalars,
    /// Field lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lists: Option<Lists>,
}

#[allow(dead_code, unreachable_pub)]
impl Echoed {
    /// A message with what it has to have, and nothing else.
    pub fn new(scalars: Scalars) -> Self {
        Self { scalars, lists: None }
    }

    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(
        &self,
    ) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        {
            let value = &self.scalars;
            value.validate().map_err(|error| error.within("scalars"))?;
        }
        if let Some(value) = &self.lists {
            value.validate().map_err(|error| error.within("lists"))?;
        }
        Ok(())
    }
}

impl ::kumi_unison::Message for Echoed {
    const NAME: &'static str = "Echoed";
    fn validate(&self) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Echoed::validate(self)
    }
}

/// Message Grow.
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
pub struct Grow {
    /// Field tree.
    pub tree: Tree,
}

#[allow(dead_code, unreachable_pub)]
impl Grow {
    /// A message with what it has to have, and nothing else.
    pub fn new(tree: Tree) -> Self {
        Self { tree }
    }

    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(
        &self,
    ) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        {
            let value = &self.tree;
            value.validate().map_err(|error| error.within("tree"))?;
        }
        Ok(())
    }
}

impl ::kumi_unison::Message for Grow {
    const NAME: &'static str = "Grow";
    fn validate(&self) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Grow::validate(self)
    }
}

/// Message Ping.
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
pub struct Ping {}
#[allow(dead_code, unreachable_pub)]
impl Ping {
    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(
        &self,
    ) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Ok(())
    }
}

impl ::kumi_unison::Message for Ping {
    const NAME: &'static str = "Ping";
    fn validate(&self) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Ping::validate(self)
    }
}

/// Message FromRoom.
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
pub struct FromRoom {}
#[allow(dead_code, unreachable_pub)]
impl FromRoom {
    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(
        &self,
    ) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Ok(())
    }
}

impl ::kumi_unison::Message for FromRoom {
    const NAME: &'static str = "FromRoom";
    fn validate(&self) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        FromRoom::validate(self)
    }
}

/// Message Add.
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
pub struct Add {
    /// Field terms.
    pub terms: Vec<i64>,
}

#[allow(dead_code, unreachable_pub)]
impl Add {
    /// A message with what it has to have, and nothing else.
    pub fn new(terms: Vec<i64>) -> Self {
        Self { terms }
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

impl ::kumi_unison::Message for Add {
    const NAME: &'static str = "Add";
    fn validate(&self) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Add::validate(self)
    }
}

/// Somebody said something.
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
pub struct Posted {
    /// Field by.
    pub by: Name,
    /// Field mood.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mood: Option<Mood>,
}

#[allow(dead_code, unreachable_pub)]
impl Posted {
    /// A message with what it has to have, and nothing else.
    pub fn new(by: impl Into<String>) -> Self {
        Self { by: by.into(), mood: None }
    }

    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(
        &self,
    ) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        {
            let value = &self.by;
            ::kumi_unison::typed::check::min_length(value.chars().count(), 1)
                .map_err(|problem| problem.at("by"))?;
            ::kumi_unison::typed::check::max_length(value.chars().count(), 20)
                .map_err(|problem| problem.at("by"))?;
            {
                static PATTERN: ::kumi_unison::typed::check::Pattern = ::kumi_unison::typed::check::Pattern::new(
                    "^[a-z][\\w-]*$",
                );
                PATTERN.check(value).map_err(|problem| problem.at("by"))?;
            }
        }
        Ok(())
    }
}

impl ::kumi_unison::Message for Posted {
    const NAME: &'static str = "Posted";
    fn validate(&self) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Posted::validate(self)
    }
}

/// Message Typing.
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
pub struct Typing {
    /// Field on.
    pub on: bool,
}

#[allow(dead_code, unreachable_pub)]
impl Typing {
    /// A message with what it has to have, and nothing else.
    pub fn new(on: bool) -> Self {
        Self { on }
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

impl ::kumi_unison::Message for Typing {
    const NAME: &'static str = "Typing";
    fn validate(&self) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Typing::validate(self)
    }
}

/// Message Confirm.
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
pub struct Confirm {
    /// Field question.
    pub question: String,
}

#[allow(dead_code, unreachable_pub)]
impl Confirm {
    /// A message with what it has to have, and nothing else.
    pub fn new(question: impl Into<String>) -> Self {
        Self { question: question.into() }
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

impl ::kumi_unison::Message for Confirm {
    const NAME: &'static str = "Confirm";
    fn validate(&self) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Confirm::validate(self)
    }
}

/// Message Confirmed.
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
pub struct Confirmed {
    /// Field yes.
    pub yes: bool,
}

#[allow(dead_code, unreachable_pub)]
impl Confirmed {
    /// A message with what it has to have, and nothing else.
    pub fn new(yes: bool) -> Self {
        Self { yes }
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

impl ::kumi_unison::Message for Confirmed {
    const NAME: &'static str = "Confirmed";
    fn validate(&self) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Confirmed::validate(self)
    }
}

/// Message Start.
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
pub struct Start {
    /// Field count.
    pub count: Score,
}

#[allow(dead_code, unreachable_pub)]
impl Start {
    /// A message with what it has to have, and nothing else.
    pub fn new(count: Score) -> Self {
        Self { count }
    }

    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(
        &self,
    ) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        {
            let value = &self.count;
            ::kumi_unison::typed::check::at_least(value, &0)
                .map_err(|problem| problem.at("count"))?;
            ::kumi_unison::typed::check::at_most(value, &100)
                .map_err(|problem| problem.at("count"))?;
        }
        Ok(())
    }
}

impl ::kumi_unison::Message for Start {
    const NAME: &'static str = "Start";
    fn validate(&self) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Start::validate(self)
    }
}

/// Message Swap.
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
pub struct Swap {
    /// Field odd.
    pub odd: Odd,
}

#[allow(dead_code, unreachable_pub)]
impl Swap {
    /// A message with what it has to have, and nothing else.
    pub fn new(odd: Odd) -> Self {
        Self { odd }
    }

    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(
        &self,
    ) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        {
            let value = &self.odd;
            value.validate().map_err(|error| error.within("odd"))?;
        }
        Ok(())
    }
}

impl ::kumi_unison::Message for Swap {
    const NAME: &'static str = "Swap";
    fn validate(&self) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Swap::validate(self)
    }
}

/// Message Wave.
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
pub struct Wave {}
#[allow(dead_code, unreachable_pub)]
impl Wave {
    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(
        &self,
    ) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Ok(())
    }
}

impl ::kumi_unison::Message for Wave {
    const NAME: &'static str = "Wave";
    fn validate(&self) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Wave::validate(self)
    }
}

/// Message Tick.
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
pub struct Tick {
    /// Field n.
    pub n: i64,
}

#[allow(dead_code, unreachable_pub)]
impl Tick {
    /// A message with what it has to have, and nothing else.
    pub fn new(n: i64) -> Self {
        Self { n }
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

impl ::kumi_unison::Message for Tick {
    const NAME: &'static str = "Tick";
    fn validate(&self) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Tick::validate(self)
    }
}

/// Message Chunk.
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
pub struct Chunk {
    /// Field bytes.
    #[serde(with = "::kumi_unison::typed::base64_bytes")]
    pub bytes: Vec<u8>,
}

#[allow(dead_code, unreachable_pub)]
impl Chunk {
    /// A message with what it has to have, and nothing else.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self { bytes }
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

impl ::kumi_unison::Message for Chunk {
    const NAME: &'static str = "Chunk";
    fn validate(&self) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Chunk::validate(self)
    }
}

/// Message Query.
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
pub struct Query {
    /// Field q.
    pub q: String,
}

#[allow(dead_code, unreachable_pub)]
impl Query {
    /// A message with what it has to have, and nothing else.
    pub fn new(q: impl Into<String>) -> Self {
        Self { q: q.into() }
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

impl ::kumi_unison::Message for Query {
    const NAME: &'static str = "Query";
    fn validate(&self) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Query::validate(self)
    }
}

/// Message Found.
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
pub struct Found {
    /// Field hits.
    pub hits: Vec<String>,
}

#[allow(dead_code, unreachable_pub)]
impl Found {
    /// A message with what it has to have, and nothing else.
    pub fn new(hits: Vec<String>) -> Self {
        Self { hits }
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

impl ::kumi_unison::Message for Found {
    const NAME: &'static str = "Found";
    fn validate(&self) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Found::validate(self)
    }
}

/// Message Said.
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
pub struct Said {
    /// Field text.
    pub text: String,
}

#[allow(dead_code, unreachable_pub)]
impl Said {
    /// A message with what it has to have, and nothing else.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into() }
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

impl ::kumi_unison::Message for Said {
    const NAME: &'static str = "Said";
    fn validate(&self) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Said::validate(self)
    }
}

/// Message Heard.
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
pub struct Heard {
    /// Field text.
    pub text: String,
}

#[allow(dead_code, unreachable_pub)]
impl Heard {
    /// A message with what it has to have, and nothing else.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into() }
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

impl ::kumi_unison::Message for Heard {
    const NAME: &'static str = "Heard";
    fn validate(&self) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Heard::validate(self)
    }
}

/// Message Right.
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
pub struct Right {
    /// Field n.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n: Option<i64>,
}

#[allow(dead_code, unreachable_pub)]
impl Right {
    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(
        &self,
    ) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Ok(())
    }
}

impl ::kumi_unison::Message for Right {
    const NAME: &'static str = "Right";
    fn validate(&self) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Right::validate(self)
    }
}

/// Message CreateUser.
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
pub struct CreateUser {
    /// Field name.
    pub name: Name,
}

#[allow(dead_code, unreachable_pub)]
impl CreateUser {
    /// A message with what it has to have, and nothing else.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into() }
    }

    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(
        &self,
    ) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        {
            let value = &self.name;
            ::kumi_unison::typed::check::min_length(value.chars().count(), 1)
                .map_err(|problem| problem.at("name"))?;
            ::kumi_unison::typed::check::max_length(value.chars().count(), 20)
                .map_err(|problem| problem.at("name"))?;
            {
                static PATTERN: ::kumi_unison::typed::check::Pattern = ::kumi_unison::typed::check::Pattern::new(
                    "^[a-z][\\w-]*$",
                );
                PATTERN.check(value).map_err(|problem| problem.at("name"))?;
            }
        }
        Ok(())
    }
}

impl ::kumi_unison::Message for CreateUser {
    const NAME: &'static str = "CreateUser";
    fn validate(&self) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        CreateUser::validate(self)
    }
}

/// Message CreateUserResponse.
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
pub struct CreateUserResponse {
    /// Field id.
    pub id: i64,
}

#[allow(dead_code, unreachable_pub)]
impl CreateUserResponse {
    /// A message with what it has to have, and nothing else.
    pub fn new(id: i64) -> Self {
        Self { id }
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

impl ::kumi_unison::Message for CreateUserResponse {
    const NAME: &'static str = "CreateUserResponse";
    fn validate(&self) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        CreateUserResponse::validate(self)
    }
}

/// Message CountResponse.
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
pub struct CountResponse {
    /// Field users.
    pub users: i64,
}

#[allow(dead_code, unreachable_pub)]
impl CountResponse {
    /// A message with what it has to have, and nothing else.
    pub fn new(users: i64) -> Self {
        Self { users }
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

impl ::kumi_unison::Message for CountResponse {
    const NAME: &'static str = "CountResponse";
    fn validate(&self) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        CountResponse::validate(self)
    }
}

/// Message Count.
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
pub struct Count {}
#[allow(dead_code, unreachable_pub)]
impl Count {
    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(
        &self,
    ) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Ok(())
    }
}

impl ::kumi_unison::Message for Count {
    const NAME: &'static str = "Count";
    fn validate(&self) -> ::core::result::Result<(), ::kumi_unison::ValidationError> {
        Count::validate(self)
    }
}

/// Hash over channel `main`. Peers with the same hash may use the binary format.
#[allow(dead_code, unreachable_pub)]
pub const MAIN_CHANNEL_HASH: [u8; 32] = [
    0x6b, 0xe1, 0x37, 0xe4, 0x51, 0x6b, 0x9b, 0x53, 0x3a, 0x3b, 0xae, 0xaf, 0x6b, 0x1b,
    0x64, 0x97, 0x23, 0x88, 0x0b, 0x00, 0xa3, 0xce, 0x73, 0x32, 0x4b, 0xee, 0x25, 0x1c,
    0x01, 0x17, 0x84, 0xec,
];

/// What channel `main` is, for a server that offers it.
#[allow(dead_code, unreachable_pub)]
pub fn main_spec() -> ::kumi_unison::ChannelSpec {
    ::kumi_unison::ChannelSpec::new("main")
        .direction(::kumi_unison::ChannelDirection::ClientToServer)
        .lifetime(::kumi_unison::Lifetime::Persistent)
        .delivery(::kumi_unison::Delivery::Reliable)
        .event_policy(::kumi_unison::EventPolicy::DropOldest)
        .schema(
            ::kumi_unison::SchemaId::new(MAIN_CHANNEL_HASH, EVERYTHING_PROTOCOL_VERSION),
        )
}

/// With what a client opens channel `main`.
#[allow(dead_code, unreachable_pub)]
pub fn main_options() -> ::kumi_unison::ChannelOptions {
    ::kumi_unison::ChannelOptions::new()
        .direction(::kumi_unison::ChannelDirection::ClientToServer)
        .lifetime(::kumi_unison::Lifetime::Persistent)
        .delivery(::kumi_unison::Delivery::Reliable)
        .event_policy(::kumi_unison::EventPolicy::DropOldest)
        .schema(
            ::kumi_unison::SchemaId::new(MAIN_CHANNEL_HASH, EVERYTHING_PROTOCOL_VERSION),
        )
}

/// The client's side of channel `main`.
///
/// Requests one way, events the other.
///
/// Clones are the same channel.
#[derive(Clone, Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct MainClient {
    channel: ::kumi_unison::TypedChannel,
}

#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
impl MainClient {
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

    /// Gives back what it gets.
    ///
    /// Idempotent: it is sent again when the connection breaks before its answer came.
    pub async fn echo(
        &self,
        request: &Echo,
    ) -> ::core::result::Result<Echoed, ::kumi_unison::NetworkError> {
        self.channel.call("Echo", request, true).await
    }

    /// Asks `Grow`.
    pub async fn grow(
        &self,
        request: &Grow,
    ) -> ::core::result::Result<Tree, ::kumi_unison::NetworkError> {
        self.channel.call("Grow", request, false).await
    }

    /// Asks `Ping`.
    pub async fn ping(
        &self,
        request: &Ping,
    ) -> ::core::result::Result<(), ::kumi_unison::NetworkError> {
        self.channel.call("Ping", request, false).await
    }

    /// Asks `FromRoom`.
    pub async fn from_room(
        &self,
        request: &FromRoom,
    ) -> ::core::result::Result<Defaults, ::kumi_unison::NetworkError> {
        self.channel.call("FromRoom", request, false).await
    }

    /// Asks `Add`.
    pub async fn add(
        &self,
        request: &Add,
    ) -> ::core::result::Result<Result, ::kumi_unison::NetworkError> {
        self.channel.call("Add", request, false).await
    }

    /// Sends `Typing`.
    ///
    /// What happens when the other side does not keep up is the channel's policy.
    pub async fn send_typing(
        &self,
        event: &Typing,
    ) -> ::core::result::Result<(), ::kumi_unison::NetworkError> {
        self.channel.emit("Typing", event).await
    }

    /// Somebody said something.
    ///
    /// While the stream lives, these events come to it and to nobody else. Events of other names wait for somebody to take them; `event_streams` takes all of them at once.
    pub fn posted_events(&self) -> ::kumi_unison::EventStream<Posted> {
        self.channel.events("Posted")
    }

    /// Every `Optionals`, from now on.
    ///
    /// While the stream lives, these events come to it and to nobody else. Events of other names wait for somebody to take them; `event_streams` takes all of them at once.
    pub fn optionals_events(&self) -> ::kumi_unison::EventStream<Optionals> {
        self.channel.events("Optionals")
    }

    /// A stream for every event of the channel.
    ///
    /// Whatever has no stream, because it is unknown or its stream was dropped, is thrown away on arrival.
    pub fn event_streams(&self) -> MainEventStreams {
        let streams = MainEventStreams {
            posted: self.posted_events(),
            optionals: self.optionals_events(),
        };
        self.raw_channel().discard_events();
        streams
    }
}

impl From<::kumi_unison::UnisonChannel> for MainClient {
    fn from(channel: ::kumi_unison::UnisonChannel) -> Self {
        Self::from_channel(channel)
    }
}

/// The server's side of channel `main`: one client that has it open.
///
/// Requests one way, events the other.
///
/// Clones are the same channel.
#[derive(Clone, Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct MainPeer {
    channel: ::kumi_unison::TypedChannel,
}

#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
impl MainPeer {
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

    /// Somebody said something.
    ///
    /// What happens when the other side does not keep up is the channel's policy.
    pub async fn send_posted(
        &self,
        event: &Posted,
    ) -> ::core::result::Result<(), ::kumi_unison::NetworkError> {
        self.channel.emit("Posted", event).await
    }

    /// Sends `Optionals`.
    ///
    /// What happens when the other side does not keep up is the channel's policy.
    pub async fn send_optionals(
        &self,
        event: &Optionals,
    ) -> ::core::result::Result<(), ::kumi_unison::NetworkError> {
        self.channel.emit("Optionals", event).await
    }
}

impl From<::kumi_unison::UnisonChannel> for MainPeer {
    fn from(channel: ::kumi_unison::UnisonChannel) -> Self {
        Self::from_channel(channel)
    }
}

/// A stream for every event that the server sends on channel `main`.
#[derive(Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct MainEventStreams {
    /// Somebody said something.
    pub posted: ::kumi_unison::EventStream<Posted>,
    /// Every `Optionals`.
    pub optionals: ::kumi_unison::EventStream<Optionals>,
}

/// What a server does on channel `main`.
///
/// Requests one way, events the other.
///
/// One value serves all clients; methods run at the same time.
#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
pub trait MainService: Send + Sync + 'static {
    /// Gives back what it gets.
    ///
    /// Idempotent: it may come twice, and has to mean the same as once.
    fn echo(
        &self,
        call: ::kumi_unison::Call<MainPeer>,
        request: Echo,
    ) -> impl ::core::future::Future<
        Output = ::core::result::Result<Echoed, ::kumi_unison::RemoteError>,
    > + Send;
    /// Answers `Grow`.
    fn grow(
        &self,
        call: ::kumi_unison::Call<MainPeer>,
        request: Grow,
    ) -> impl ::core::future::Future<
        Output = ::core::result::Result<Tree, ::kumi_unison::RemoteError>,
    > + Send;
    /// Answers `Ping`.
    fn ping(
        &self,
        call: ::kumi_unison::Call<MainPeer>,
        request: Ping,
    ) -> impl ::core::future::Future<
        Output = ::core::result::Result<(), ::kumi_unison::RemoteError>,
    > + Send;
    /// Answers `FromRoom`.
    fn from_room(
        &self,
        call: ::kumi_unison::Call<MainPeer>,
        request: FromRoom,
    ) -> impl ::core::future::Future<
        Output = ::core::result::Result<Defaults, ::kumi_unison::RemoteError>,
    > + Send;
    /// Answers `Add`.
    fn add(
        &self,
        call: ::kumi_unison::Call<MainPeer>,
        request: Add,
    ) -> impl ::core::future::Future<
        Output = ::core::result::Result<Result, ::kumi_unison::RemoteError>,
    > + Send;
    /// A client sent `Typing`.
    ///
    /// Events of one client are handled one after the other. Unless implemented, they are ignored.
    fn typing(
        &self,
        peer: &MainPeer,
        event: Typing,
    ) -> impl ::core::future::Future<Output = ()> + Send {
        let _ = (peer, event);
        async {}
    }

    /// A client has opened the channel.
    ///
    /// Runs beside everything else, and is dropped when the channel ends; a loop that sends events may live here.
    fn channel_opened(
        &self,
        peer: MainPeer,
    ) -> impl ::core::future::Future<Output = ()> + Send {
        let _ = peer;
        async {}
    }

    /// The channel of a client has ended.
    fn channel_closed(
        &self,
        peer: &MainPeer,
    ) -> impl ::core::future::Future<Output = ()> + Send {
        let _ = peer;
        async {}
    }
}

/// Offers channel `main` at a server, answered by an implementation.
#[allow(dead_code, unreachable_pub)]
pub fn register_main<S: MainService>(
    server: &impl AsRef<::kumi_unison::ChannelRegistry>,
    implementation: S,
) {
    register_main_with(server, main_spec(), implementation);
}

/// As `register_main`, with more than the schema says, such as what happens to events of a slow client.
#[allow(dead_code, unreachable_pub)]
pub fn register_main_with<S: MainService>(
    server: &impl AsRef<::kumi_unison::ChannelRegistry>,
    spec: ::kumi_unison::ChannelSpec,
    implementation: S,
) {
    let implementation = ::std::sync::Arc::new(implementation);
    server
        .as_ref()
        .register_channel_with(
            spec,
            move |
                _: ::std::sync::Arc<::kumi_unison::ConnectionContext>,
                channel: ::kumi_unison::UnisonChannel|
            serve_main(::std::sync::Arc::clone(&implementation), channel),
        );
}

#[allow(dead_code, unreachable_pub)]
async fn serve_main<S: MainService>(
    implementation: ::std::sync::Arc<S>,
    channel: ::kumi_unison::UnisonChannel,
) -> ::core::result::Result<(), ::kumi_unison::NetworkError> {
    let peer = MainPeer::from_channel(channel.clone());
    let answering = ::std::sync::Arc::clone(&implementation);
    channel
        .set_service(move |request: ::kumi_unison::IncomingRequest| {
            let implementation = ::std::sync::Arc::clone(&answering);
            async move {
                match request.method() {
                    "Echo" => {
                        ::kumi_unison::typed::answer(
                                request,
                                |call, message| MainService::echo(
                                    &*implementation,
                                    call,
                                    message,
                                ),
                            )
                            .await
                    }
                    "Grow" => {
                        ::kumi_unison::typed::answer(
                                request,
                                |call, message| MainService::grow(
                                    &*implementation,
                                    call,
                                    message,
                                ),
                            )
                            .await
                    }
                    "Ping" => {
                        ::kumi_unison::typed::answer(
                                request,
                                |call, message| MainService::ping(
                                    &*implementation,
                                    call,
                                    message,
                                ),
                            )
                            .await
                    }
                    "FromRoom" => {
                        ::kumi_unison::typed::answer(
                                request,
                                |call, message| MainService::from_room(
                                    &*implementation,
                                    call,
                                    message,
                                ),
                            )
                            .await
                    }
                    "Add" => {
                        ::kumi_unison::typed::answer(
                                request,
                                |call, message| MainService::add(
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
            if let Some(event) = ::kumi_unison::typed::event_named::<
                Typing,
            >(&message, "Typing") {
                MainService::typing(&*implementation, &peer, event).await;
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

/// Hash over channel `callbacks`. Peers with the same hash may use the binary format.
#[allow(dead_code, unreachable_pub)]
pub const CALLBACKS_CHANNEL_HASH: [u8; 32] = [
    0x4c, 0xfb, 0x43, 0x78, 0xf7, 0x0f, 0x92, 0x88, 0x8a, 0xa4, 0x8f, 0x1d, 0x3a, 0xbb,
    0x17, 0x89, 0xba, 0x3d, 0xff, 0x21, 0xd1, 0x69, 0x1f, 0x30, 0xd3, 0x1f, 0x46, 0x1d,
    0xb2, 0x62, 0x4a, 0x19,
];

/// What channel `callbacks` is, for a server that offers it.
#[allow(dead_code, unreachable_pub)]
pub fn callbacks_spec() -> ::kumi_unison::ChannelSpec {
    ::kumi_unison::ChannelSpec::new("callbacks")
        .direction(::kumi_unison::ChannelDirection::ServerToClient)
        .lifetime(::kumi_unison::Lifetime::Persistent)
        .delivery(::kumi_unison::Delivery::Reliable)
        .event_policy(::kumi_unison::EventPolicy::DropOldest)
        .schema(
            ::kumi_unison::SchemaId::new(
                CALLBACKS_CHANNEL_HASH,
                EVERYTHING_PROTOCOL_VERSION,
            ),
        )
}

/// With what a client opens channel `callbacks`.
#[allow(dead_code, unreachable_pub)]
pub fn callbacks_options() -> ::kumi_unison::ChannelOptions {
    ::kumi_unison::ChannelOptions::new()
        .direction(::kumi_unison::ChannelDirection::ServerToClient)
        .lifetime(::kumi_unison::Lifetime::Persistent)
        .delivery(::kumi_unison::Delivery::Reliable)
        .event_policy(::kumi_unison::EventPolicy::DropOldest)
        .schema(
            ::kumi_unison::SchemaId::new(
                CALLBACKS_CHANNEL_HASH,
                EVERYTHING_PROTOCOL_VERSION,
            ),
        )
}

/// The client's side of channel `callbacks`.
///
/// Clones are the same channel.
#[derive(Clone, Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct CallbacksClient {
    channel: ::kumi_unison::TypedChannel,
}

#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
impl CallbacksClient {
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

    /// Sends `Start`.
    ///
    /// What happens when the other side does not keep up is the channel's policy.
    pub async fn send_start(
        &self,
        event: &Start,
    ) -> ::core::result::Result<(), ::kumi_unison::NetworkError> {
        self.channel.emit("Start", event).await
    }

    /// Answers the server's requests, from now on and as long as the channel lives.
    pub fn serve_requests<S: CallbacksClientService>(&self, implementation: S) {
        let implementation = ::std::sync::Arc::new(implementation);
        self.raw_channel()
            .set_service(move |request: ::kumi_unison::IncomingRequest| {
                let implementation = ::std::sync::Arc::clone(&implementation);
                async move {
                    match request.method() {
                        "Confirm" => {
                            ::kumi_unison::typed::answer(
                                    request,
                                    |call, message| CallbacksClientService::confirm(
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

impl From<::kumi_unison::UnisonChannel> for CallbacksClient {
    fn from(channel: ::kumi_unison::UnisonChannel) -> Self {
        Self::from_channel(channel)
    }
}

/// The server's side of channel `callbacks`: one client that has it open.
///
/// Clones are the same channel.
#[derive(Clone, Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct CallbacksPeer {
    channel: ::kumi_unison::TypedChannel,
}

#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
impl CallbacksPeer {
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

    /// Asks `Confirm`.
    pub async fn confirm(
        &self,
        request: &Confirm,
    ) -> ::core::result::Result<Confirmed, ::kumi_unison::NetworkError> {
        self.channel.call("Confirm", request, false).await
    }
}

impl From<::kumi_unison::UnisonChannel> for CallbacksPeer {
    fn from(channel: ::kumi_unison::UnisonChannel) -> Self {
        Self::from_channel(channel)
    }
}

/// What a server does on channel `callbacks`.
///
/// One value serves all clients; methods run at the same time.
#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
pub trait CallbacksService: Send + Sync + 'static {
    /// A client sent `Start`.
    ///
    /// Events of one client are handled one after the other. Unless implemented, they are ignored.
    fn start(
        &self,
        peer: &CallbacksPeer,
        event: Start,
    ) -> impl ::core::future::Future<Output = ()> + Send {
        let _ = (peer, event);
        async {}
    }

    /// A client has opened the channel.
    ///
    /// Runs beside everything else, and is dropped when the channel ends; a loop that sends events may live here.
    fn channel_opened(
        &self,
        peer: CallbacksPeer,
    ) -> impl ::core::future::Future<Output = ()> + Send {
        let _ = peer;
        async {}
    }

    /// The channel of a client has ended.
    fn channel_closed(
        &self,
        peer: &CallbacksPeer,
    ) -> impl ::core::future::Future<Output = ()> + Send {
        let _ = peer;
        async {}
    }
}

/// Offers channel `callbacks` at a server, answered by an implementation.
#[allow(dead_code, unreachable_pub)]
pub fn register_callbacks<S: CallbacksService>(
    server: &impl AsRef<::kumi_unison::ChannelRegistry>,
    implementation: S,
) {
    register_callbacks_with(server, callbacks_spec(), implementation);
}

/// As `register_callbacks`, with more than the schema says, such as what happens to events of a slow client.
#[allow(dead_code, unreachable_pub)]
pub fn register_callbacks_with<S: CallbacksService>(
    server: &impl AsRef<::kumi_unison::ChannelRegistry>,
    spec: ::kumi_unison::ChannelSpec,
    implementation: S,
) {
    let implementation = ::std::sync::Arc::new(implementation);
    server
        .as_ref()
        .register_channel_with(
            spec,
            move |
                _: ::std::sync::Arc<::kumi_unison::ConnectionContext>,
                channel: ::kumi_unison::UnisonChannel|
            serve_callbacks(::std::sync::Arc::clone(&implementation), channel),
        );
}

#[allow(dead_code, unreachable_pub)]
async fn serve_callbacks<S: CallbacksService>(
    implementation: ::std::sync::Arc<S>,
    channel: ::kumi_unison::UnisonChannel,
) -> ::core::result::Result<(), ::kumi_unison::NetworkError> {
    let peer = CallbacksPeer::from_channel(channel.clone());
    let events = async {
        while let Some(message) = ::kumi_unison::typed::next_event(&channel).await? {
            if let Some(event) = ::kumi_unison::typed::event_named::<
                Start,
            >(&message, "Start") {
                CallbacksService::start(&*implementation, &peer, event).await;
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

/// What a client answers on channel `callbacks`.
#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
pub trait CallbacksClientService: Send + Sync + 'static {
    /// Answers `Confirm`.
    fn confirm(
        &self,
        call: ::kumi_unison::Call<CallbacksClient>,
        request: Confirm,
    ) -> impl ::core::future::Future<
        Output = ::core::result::Result<Confirmed, ::kumi_unison::RemoteError>,
    > + Send;
}

/// Hash over channel `peers`. Peers with the same hash may use the binary format.
#[allow(dead_code, unreachable_pub)]
pub const PEERS_CHANNEL_HASH: [u8; 32] = [
    0x4f, 0x0a, 0xba, 0xc1, 0xf8, 0xd4, 0xdd, 0xb5, 0xf6, 0xa8, 0x78, 0xa1, 0xf5, 0xa2,
    0xf8, 0xbd, 0x8a, 0x8b, 0x7e, 0xc5, 0x64, 0xa4, 0x07, 0xbe, 0x78, 0x91, 0x7f, 0xe0,
    0x72, 0x65, 0x5a, 0x56,
];

/// What channel `peers` is, for a server that offers it.
#[allow(dead_code, unreachable_pub)]
pub fn peers_spec() -> ::kumi_unison::ChannelSpec {
    ::kumi_unison::ChannelSpec::new("peers")
        .direction(::kumi_unison::ChannelDirection::Bidirectional)
        .lifetime(::kumi_unison::Lifetime::Transient)
        .delivery(::kumi_unison::Delivery::Reliable)
        .event_policy(::kumi_unison::EventPolicy::DropOldest)
        .schema(
            ::kumi_unison::SchemaId::new(PEERS_CHANNEL_HASH, EVERYTHING_PROTOCOL_VERSION),
        )
}

/// With what a client opens channel `peers`.
#[allow(dead_code, unreachable_pub)]
pub fn peers_options() -> ::kumi_unison::ChannelOptions {
    ::kumi_unison::ChannelOptions::new()
        .direction(::kumi_unison::ChannelDirection::Bidirectional)
        .lifetime(::kumi_unison::Lifetime::Transient)
        .delivery(::kumi_unison::Delivery::Reliable)
        .event_policy(::kumi_unison::EventPolicy::DropOldest)
        .schema(
            ::kumi_unison::SchemaId::new(PEERS_CHANNEL_HASH, EVERYTHING_PROTOCOL_VERSION),
        )
}

/// The client's side of channel `peers`.
///
/// Clones are the same channel.
#[derive(Clone, Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct PeersClient {
    channel: ::kumi_unison::TypedChannel,
}

#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
impl PeersClient {
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

    /// Asks `Swap`.
    pub async fn swap(
        &self,
        request: &Swap,
    ) -> ::core::result::Result<Many, ::kumi_unison::NetworkError> {
        self.channel.call("Swap", request, false).await
    }

    /// Sends `Wave`.
    ///
    /// What happens when the other side does not keep up is the channel's policy.
    pub async fn send_wave(
        &self,
        event: &Wave,
    ) -> ::core::result::Result<(), ::kumi_unison::NetworkError> {
        self.channel.emit("Wave", event).await
    }

    /// Every `Wave`, from now on.
    ///
    /// While the stream lives, these events come to it and to nobody else. Events of other names wait for somebody to take them; `event_streams` takes all of them at once.
    pub fn wave_events(&self) -> ::kumi_unison::EventStream<Wave> {
        self.channel.events("Wave")
    }

    /// A stream for every event of the channel.
    ///
    /// Whatever has no stream, because it is unknown or its stream was dropped, is thrown away on arrival.
    pub fn event_streams(&self) -> PeersEventStreams {
        let streams = PeersEventStreams {
            wave: self.wave_events(),
        };
        self.raw_channel().discard_events();
        streams
    }

    /// Answers the server's requests, from now on and as long as the channel lives.
    pub fn serve_requests<S: PeersClientService>(&self, implementation: S) {
        let implementation = ::std::sync::Arc::new(implementation);
        self.raw_channel()
            .set_service(move |request: ::kumi_unison::IncomingRequest| {
                let implementation = ::std::sync::Arc::clone(&implementation);
                async move {
                    match request.method() {
                        "Swap" => {
                            ::kumi_unison::typed::answer(
                                    request,
                                    |call, message| PeersClientService::swap(
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

impl From<::kumi_unison::UnisonChannel> for PeersClient {
    fn from(channel: ::kumi_unison::UnisonChannel) -> Self {
        Self::from_channel(channel)
    }
}

/// The server's side of channel `peers`: one client that has it open.
///
/// Clones are the same channel.
#[derive(Clone, Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct PeersPeer {
    channel: ::kumi_unison::TypedChannel,
}

#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
impl PeersPeer {
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

    /// Asks `Swap`.
    pub async fn swap(
        &self,
        request: &Swap,
    ) -> ::core::result::Result<Many, ::kumi_unison::NetworkError> {
        self.channel.call("Swap", request, false).await
    }

    /// Sends `Wave`.
    ///
    /// What happens when the other side does not keep up is the channel's policy.
    pub async fn send_wave(
        &self,
        event: &Wave,
    ) -> ::core::result::Result<(), ::kumi_unison::NetworkError> {
        self.channel.emit("Wave", event).await
    }
}

impl From<::kumi_unison::UnisonChannel> for PeersPeer {
    fn from(channel: ::kumi_unison::UnisonChannel) -> Self {
        Self::from_channel(channel)
    }
}

/// A stream for every event that the server sends on channel `peers`.
#[derive(Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct PeersEventStreams {
    /// Every `Wave`.
    pub wave: ::kumi_unison::EventStream<Wave>,
}

/// What a server does on channel `peers`.
///
/// One value serves all clients; methods run at the same time.
#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
pub trait PeersService: Send + Sync + 'static {
    /// Answers `Swap`.
    fn swap(
        &self,
        call: ::kumi_unison::Call<PeersPeer>,
        request: Swap,
    ) -> impl ::core::future::Future<
        Output = ::core::result::Result<Many, ::kumi_unison::RemoteError>,
    > + Send;
    /// A client sent `Wave`.
    ///
    /// Events of one client are handled one after the other. Unless implemented, they are ignored.
    fn wave(
        &self,
        peer: &PeersPeer,
        event: Wave,
    ) -> impl ::core::future::Future<Output = ()> + Send {
        let _ = (peer, event);
        async {}
    }

    /// A client has opened the channel.
    ///
    /// Runs beside everything else, and is dropped when the channel ends; a loop that sends events may live here.
    fn channel_opened(
        &self,
        peer: PeersPeer,
    ) -> impl ::core::future::Future<Output = ()> + Send {
        let _ = peer;
        async {}
    }

    /// The channel of a client has ended.
    fn channel_closed(
        &self,
        peer: &PeersPeer,
    ) -> impl ::core::future::Future<Output = ()> + Send {
        let _ = peer;
        async {}
    }
}

/// Offers channel `peers` at a server, answered by an implementation.
#[allow(dead_code, unreachable_pub)]
pub fn register_peers<S: PeersService>(
    server: &impl AsRef<::kumi_unison::ChannelRegistry>,
    implementation: S,
) {
    register_peers_with(server, peers_spec(), implementation);
}

/// As `register_peers`, with more than the schema says, such as what happens to events of a slow client.
#[allow(dead_code, unreachable_pub)]
pub fn register_peers_with<S: PeersService>(
    server: &impl AsRef<::kumi_unison::ChannelRegistry>,
    spec: ::kumi_unison::ChannelSpec,
    implementation: S,
) {
    let implementation = ::std::sync::Arc::new(implementation);
    server
        .as_ref()
        .register_channel_with(
            spec,
            move |
                _: ::std::sync::Arc<::kumi_unison::ConnectionContext>,
                channel: ::kumi_unison::UnisonChannel|
            serve_peers(::std::sync::Arc::clone(&implementation), channel),
        );
}

#[allow(dead_code, unreachable_pub)]
async fn serve_peers<S: PeersService>(
    implementation: ::std::sync::Arc<S>,
    channel: ::kumi_unison::UnisonChannel,
) -> ::core::result::Result<(), ::kumi_unison::NetworkError> {
    let peer = PeersPeer::from_channel(channel.clone());
    let answering = ::std::sync::Arc::clone(&implementation);
    channel
        .set_service(move |request: ::kumi_unison::IncomingRequest| {
            let implementation = ::std::sync::Arc::clone(&answering);
            async move {
                match request.method() {
                    "Swap" => {
                        ::kumi_unison::typed::answer(
                                request,
                                |call, message| PeersService::swap(
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
            if let Some(event) = ::kumi_unison::typed::event_named::<
                Wave,
            >(&message, "Wave") {
                PeersService::wave(&*implementation, &peer, event).await;
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

/// What a client answers on channel `peers`.
#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
pub trait PeersClientService: Send + Sync + 'static {
    /// Answers `Swap`.
    fn swap(
        &self,
        call: ::kumi_unison::Call<PeersClient>,
        request: Swap,
    ) -> impl ::core::future::Future<
        Output = ::core::result::Result<Many, ::kumi_unison::RemoteError>,
    > + Send;
}

/// Hash over channel `ticks`. Peers with the same hash may use the binary format.
#[allow(dead_code, unreachable_pub)]
pub const TICKS_CHANNEL_HASH: [u8; 32] = [
    0xc3, 0x24, 0xd3, 0x26, 0x4d, 0x91, 0x8c, 0xf7, 0x3e, 0x16, 0x42, 0x8f, 0xb3, 0x10,
    0x93, 0x63, 0xfb, 0xb6, 0x99, 0xbf, 0xb4, 0xad, 0x2a, 0x09, 0xcf, 0xb8, 0x3c, 0xdb,
    0xdc, 0x60, 0xd1, 0x37,
];

/// What channel `ticks` is, for a server that offers it.
#[allow(dead_code, unreachable_pub)]
pub fn ticks_spec() -> ::kumi_unison::ChannelSpec {
    ::kumi_unison::ChannelSpec::new("ticks")
        .direction(::kumi_unison::ChannelDirection::ServerToClient)
        .lifetime(::kumi_unison::Lifetime::Persistent)
        .delivery(::kumi_unison::Delivery::Unreliable)
        .event_policy(::kumi_unison::EventPolicy::DropOldest)
        .schema(
            ::kumi_unison::SchemaId::new(TICKS_CHANNEL_HASH, EVERYTHING_PROTOCOL_VERSION),
        )
}

/// With what a client opens channel `ticks`.
#[allow(dead_code, unreachable_pub)]
pub fn ticks_options() -> ::kumi_unison::ChannelOptions {
    ::kumi_unison::ChannelOptions::new()
        .direction(::kumi_unison::ChannelDirection::ServerToClient)
        .lifetime(::kumi_unison::Lifetime::Persistent)
        .delivery(::kumi_unison::Delivery::Unreliable)
        .event_policy(::kumi_unison::EventPolicy::DropOldest)
        .schema(
            ::kumi_unison::SchemaId::new(TICKS_CHANNEL_HASH, EVERYTHING_PROTOCOL_VERSION),
        )
}

/// The client's side of channel `ticks`.
///
/// Clones are the same channel.
#[derive(Clone, Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct TicksClient {
    channel: ::kumi_unison::TypedChannel,
}

#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
impl TicksClient {
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

    /// Every `Tick`, from now on.
    ///
    /// While the stream lives, these events come to it and to nobody else. Events of other names wait for somebody to take them; `event_streams` takes all of them at once.
    pub fn tick_events(&self) -> ::kumi_unison::EventStream<Tick> {
        self.channel.events("Tick")
    }

    /// A stream for every event of the channel.
    ///
    /// Whatever has no stream, because it is unknown or its stream was dropped, is thrown away on arrival.
    pub fn event_streams(&self) -> TicksEventStreams {
        let streams = TicksEventStreams {
            tick: self.tick_events(),
        };
        self.raw_channel().discard_events();
        streams
    }
}

impl From<::kumi_unison::UnisonChannel> for TicksClient {
    fn from(channel: ::kumi_unison::UnisonChannel) -> Self {
        Self::from_channel(channel)
    }
}

/// The server's side of channel `ticks`: one client that has it open.
///
/// Clones are the same channel.
#[derive(Clone, Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct TicksPeer {
    channel: ::kumi_unison::TypedChannel,
}

#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
impl TicksPeer {
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

    /// Sends `Tick`.
    ///
    /// What happens when the other side does not keep up is the channel's policy.
    pub async fn send_tick(
        &self,
        event: &Tick,
    ) -> ::core::result::Result<(), ::kumi_unison::NetworkError> {
        self.channel.emit("Tick", event).await
    }
}

impl From<::kumi_unison::UnisonChannel> for TicksPeer {
    fn from(channel: ::kumi_unison::UnisonChannel) -> Self {
        Self::from_channel(channel)
    }
}

/// A stream for every event that the server sends on channel `ticks`.
#[derive(Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct TicksEventStreams {
    /// Every `Tick`.
    pub tick: ::kumi_unison::EventStream<Tick>,
}

/// What a server does on channel `ticks`.
///
/// One value serves all clients; methods run at the same time.
#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
pub trait TicksService: Send + Sync + 'static {
    /// A client has opened the channel.
    ///
    /// Runs beside everything else, and is dropped when the channel ends; a loop that sends events may live here.
    fn channel_opened(
        &self,
        peer: TicksPeer,
    ) -> impl ::core::future::Future<Output = ()> + Send {
        let _ = peer;
        async {}
    }

    /// The channel of a client has ended.
    fn channel_closed(
        &self,
        peer: &TicksPeer,
    ) -> impl ::core::future::Future<Output = ()> + Send {
        let _ = peer;
        async {}
    }
}

/// Offers channel `ticks` at a server, answered by an implementation.
#[allow(dead_code, unreachable_pub)]
pub fn register_ticks<S: TicksService>(
    server: &impl AsRef<::kumi_unison::ChannelRegistry>,
    implementation: S,
) {
    register_ticks_with(server, ticks_spec(), implementation);
}

/// As `register_ticks`, with more than the schema says, such as what happens to events of a slow client.
#[allow(dead_code, unreachable_pub)]
pub fn register_ticks_with<S: TicksService>(
    server: &impl AsRef<::kumi_unison::ChannelRegistry>,
    spec: ::kumi_unison::ChannelSpec,
    implementation: S,
) {
    let implementation = ::std::sync::Arc::new(implementation);
    server
        .as_ref()
        .register_channel_with(
            spec,
            move |
                _: ::std::sync::Arc<::kumi_unison::ConnectionContext>,
                channel: ::kumi_unison::UnisonChannel|
            serve_ticks(::std::sync::Arc::clone(&implementation), channel),
        );
}

#[allow(dead_code, unreachable_pub)]
async fn serve_ticks<S: TicksService>(
    implementation: ::std::sync::Arc<S>,
    channel: ::kumi_unison::UnisonChannel,
) -> ::core::result::Result<(), ::kumi_unison::NetworkError> {
    let peer = TicksPeer::from_channel(channel.clone());
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

/// Hash over channel `upload`. Peers with the same hash may use the binary format.
#[allow(dead_code, unreachable_pub)]
pub const UPLOAD_CHANNEL_HASH: [u8; 32] = [
    0x84, 0xa3, 0x28, 0x81, 0x8b, 0x5f, 0x3a, 0x47, 0x11, 0xa7, 0x8c, 0x7d, 0x61, 0x24,
    0xa2, 0x38, 0x23, 0x97, 0x43, 0x5c, 0x4a, 0x37, 0xe9, 0xa8, 0x68, 0xef, 0x16, 0xc7,
    0x23, 0xf3, 0xa1, 0x0c,
];

/// What channel `upload` is, for a server that offers it.
#[allow(dead_code, unreachable_pub)]
pub fn upload_spec() -> ::kumi_unison::ChannelSpec {
    ::kumi_unison::ChannelSpec::new("upload")
        .direction(::kumi_unison::ChannelDirection::ClientToServer)
        .lifetime(::kumi_unison::Lifetime::Persistent)
        .delivery(::kumi_unison::Delivery::Reliable)
        .event_policy(::kumi_unison::EventPolicy::DropOldest)
        .schema(
            ::kumi_unison::SchemaId::new(
                UPLOAD_CHANNEL_HASH,
                EVERYTHING_PROTOCOL_VERSION,
            ),
        )
}

/// With what a client opens channel `upload`.
#[allow(dead_code, unreachable_pub)]
pub fn upload_options() -> ::kumi_unison::ChannelOptions {
    ::kumi_unison::ChannelOptions::new()
        .direction(::kumi_unison::ChannelDirection::ClientToServer)
        .lifetime(::kumi_unison::Lifetime::Persistent)
        .delivery(::kumi_unison::Delivery::Reliable)
        .event_policy(::kumi_unison::EventPolicy::DropOldest)
        .schema(
            ::kumi_unison::SchemaId::new(
                UPLOAD_CHANNEL_HASH,
                EVERYTHING_PROTOCOL_VERSION,
            ),
        )
}

/// The client's side of channel `upload`.
///
/// Clones are the same channel.
#[derive(Clone, Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct UploadClient {
    channel: ::kumi_unison::TypedChannel,
}

#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
impl UploadClient {
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

    /// Sends `Chunk`.
    ///
    /// What happens when the other side does not keep up is the channel's policy.
    pub async fn send_chunk(
        &self,
        event: &Chunk,
    ) -> ::core::result::Result<(), ::kumi_unison::NetworkError> {
        self.channel.emit("Chunk", event).await
    }
}

impl From<::kumi_unison::UnisonChannel> for UploadClient {
    fn from(channel: ::kumi_unison::UnisonChannel) -> Self {
        Self::from_channel(channel)
    }
}

/// The server's side of channel `upload`: one client that has it open.
///
/// Clones are the same channel.
#[derive(Clone, Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct UploadPeer {
    channel: ::kumi_unison::TypedChannel,
}

#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
impl UploadPeer {
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

impl From<::kumi_unison::UnisonChannel> for UploadPeer {
    fn from(channel: ::kumi_unison::UnisonChannel) -> Self {
        Self::from_channel(channel)
    }
}

/// What a server does on channel `upload`.
///
/// One value serves all clients; methods run at the same time.
#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
pub trait UploadService: Send + Sync + 'static {
    /// A client sent `Chunk`.
    ///
    /// Events of one client are handled one after the other. Unless implemented, they are ignored.
    fn chunk(
        &self,
        peer: &UploadPeer,
        event: Chunk,
    ) -> impl ::core::future::Future<Output = ()> + Send {
        let _ = (peer, event);
        async {}
    }

    /// A client has opened the channel.
    ///
    /// Runs beside everything else, and is dropped when the channel ends; a loop that sends events may live here.
    fn channel_opened(
        &self,
        peer: UploadPeer,
    ) -> impl ::core::future::Future<Output = ()> + Send {
        let _ = peer;
        async {}
    }

    /// The channel of a client has ended.
    fn channel_closed(
        &self,
        peer: &UploadPeer,
    ) -> impl ::core::future::Future<Output = ()> + Send {
        let _ = peer;
        async {}
    }
}

/// Offers channel `upload` at a server, answered by an implementation.
#[allow(dead_code, unreachable_pub)]
pub fn register_upload<S: UploadService>(
    server: &impl AsRef<::kumi_unison::ChannelRegistry>,
    implementation: S,
) {
    register_upload_with(server, upload_spec(), implementation);
}

/// As `register_upload`, with more than the schema says, such as what happens to events of a slow client.
#[allow(dead_code, unreachable_pub)]
pub fn register_upload_with<S: UploadService>(
    server: &impl AsRef<::kumi_unison::ChannelRegistry>,
    spec: ::kumi_unison::ChannelSpec,
    implementation: S,
) {
    let implementation = ::std::sync::Arc::new(implementation);
    server
        .as_ref()
        .register_channel_with(
            spec,
            move |
                _: ::std::sync::Arc<::kumi_unison::ConnectionContext>,
                channel: ::kumi_unison::UnisonChannel|
            serve_upload(::std::sync::Arc::clone(&implementation), channel),
        );
}

#[allow(dead_code, unreachable_pub)]
async fn serve_upload<S: UploadService>(
    implementation: ::std::sync::Arc<S>,
    channel: ::kumi_unison::UnisonChannel,
) -> ::core::result::Result<(), ::kumi_unison::NetworkError> {
    let peer = UploadPeer::from_channel(channel.clone());
    let events = async {
        while let Some(message) = ::kumi_unison::typed::next_event(&channel).await? {
            if let Some(event) = ::kumi_unison::typed::event_named::<
                Chunk,
            >(&message, "Chunk") {
                UploadService::chunk(&*implementation, &peer, event).await;
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

/// Hash over channel `old-query`. Peers with the same hash may use the binary format.
#[allow(dead_code, unreachable_pub)]
pub const OLD_QUERY_CHANNEL_HASH: [u8; 32] = [
    0x1b, 0x77, 0xa6, 0x34, 0x60, 0x8d, 0x75, 0x8a, 0x4a, 0xfd, 0xef, 0xd2, 0x1c, 0xf7,
    0x17, 0xe8, 0xe6, 0xd7, 0x61, 0x12, 0xa7, 0x3e, 0xa2, 0xe7, 0x47, 0x6c, 0x42, 0x7a,
    0xb3, 0x9d, 0x3c, 0xbd,
];

/// What channel `old-query` is, for a server that offers it.
#[allow(dead_code, unreachable_pub)]
pub fn old_query_spec() -> ::kumi_unison::ChannelSpec {
    ::kumi_unison::ChannelSpec::new("old-query")
        .direction(::kumi_unison::ChannelDirection::ClientToServer)
        .lifetime(::kumi_unison::Lifetime::Transient)
        .delivery(::kumi_unison::Delivery::Reliable)
        .schema(
            ::kumi_unison::SchemaId::new(
                OLD_QUERY_CHANNEL_HASH,
                EVERYTHING_PROTOCOL_VERSION,
            ),
        )
}

/// With what a client opens channel `old-query`.
#[allow(dead_code, unreachable_pub)]
pub fn old_query_options() -> ::kumi_unison::ChannelOptions {
    ::kumi_unison::ChannelOptions::new()
        .direction(::kumi_unison::ChannelDirection::ClientToServer)
        .lifetime(::kumi_unison::Lifetime::Transient)
        .delivery(::kumi_unison::Delivery::Reliable)
        .schema(
            ::kumi_unison::SchemaId::new(
                OLD_QUERY_CHANNEL_HASH,
                EVERYTHING_PROTOCOL_VERSION,
            ),
        )
}

/// The client's side of channel `old-query`.
///
/// Clones are the same channel.
#[derive(Clone, Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct OldQueryClient {
    channel: ::kumi_unison::TypedChannel,
}

#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
impl OldQueryClient {
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

    /// Asks `Query`.
    pub async fn query(
        &self,
        request: &Query,
    ) -> ::core::result::Result<Found, ::kumi_unison::NetworkError> {
        self.channel.call("Query", request, false).await
    }
}

impl From<::kumi_unison::UnisonChannel> for OldQueryClient {
    fn from(channel: ::kumi_unison::UnisonChannel) -> Self {
        Self::from_channel(channel)
    }
}

/// The server's side of channel `old-query`: one client that has it open.
///
/// Clones are the same channel.
#[derive(Clone, Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct OldQueryPeer {
    channel: ::kumi_unison::TypedChannel,
}

#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
impl OldQueryPeer {
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

impl From<::kumi_unison::UnisonChannel> for OldQueryPeer {
    fn from(channel: ::kumi_unison::UnisonChannel) -> Self {
        Self::from_channel(channel)
    }
}

/// What a server does on channel `old-query`.
///
/// One value serves all clients; methods run at the same time.
#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
pub trait OldQueryService: Send + Sync + 'static {
    /// Answers `Query`.
    fn query(
        &self,
        call: ::kumi_unison::Call<OldQueryPeer>,
        request: Query,
    ) -> impl ::core::future::Future<
        Output = ::core::result::Result<Found, ::kumi_unison::RemoteError>,
    > + Send;
    /// A client has opened the channel.
    ///
    /// Runs beside everything else, and is dropped when the channel ends; a loop that sends events may live here.
    fn channel_opened(
        &self,
        peer: OldQueryPeer,
    ) -> impl ::core::future::Future<Output = ()> + Send {
        let _ = peer;
        async {}
    }

    /// The channel of a client has ended.
    fn channel_closed(
        &self,
        peer: &OldQueryPeer,
    ) -> impl ::core::future::Future<Output = ()> + Send {
        let _ = peer;
        async {}
    }
}

/// Offers channel `old-query` at a server, answered by an implementation.
#[allow(dead_code, unreachable_pub)]
pub fn register_old_query<S: OldQueryService>(
    server: &impl AsRef<::kumi_unison::ChannelRegistry>,
    implementation: S,
) {
    register_old_query_with(server, old_query_spec(), implementation);
}

/// As `register_old_query`, with more than the schema says, such as what happens to events of a slow client.
#[allow(dead_code, unreachable_pub)]
pub fn register_old_query_with<S: OldQueryService>(
    server: &impl AsRef<::kumi_unison::ChannelRegistry>,
    spec: ::kumi_unison::ChannelSpec,
    implementation: S,
) {
    let implementation = ::std::sync::Arc::new(implementation);
    server
        .as_ref()
        .register_channel_with(
            spec,
            move |
                _: ::std::sync::Arc<::kumi_unison::ConnectionContext>,
                channel: ::kumi_unison::UnisonChannel|
            serve_old_query(::std::sync::Arc::clone(&implementation), channel),
        );
}

#[allow(dead_code, unreachable_pub)]
async fn serve_old_query<S: OldQueryService>(
    implementation: ::std::sync::Arc<S>,
    channel: ::kumi_unison::UnisonChannel,
) -> ::core::result::Result<(), ::kumi_unison::NetworkError> {
    let peer = OldQueryPeer::from_channel(channel.clone());
    let answering = ::std::sync::Arc::clone(&implementation);
    channel
        .set_service(move |request: ::kumi_unison::IncomingRequest| {
            let implementation = ::std::sync::Arc::clone(&answering);
            async move {
                match request.method() {
                    "Query" => {
                        ::kumi_unison::typed::answer(
                                request,
                                |call, message| OldQueryService::query(
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

/// Hash over channel `old-talk`. Peers with the same hash may use the binary format.
#[allow(dead_code, unreachable_pub)]
pub const OLD_TALK_CHANNEL_HASH: [u8; 32] = [
    0x58, 0x5c, 0xd8, 0x56, 0x42, 0xba, 0xd5, 0xbc, 0x9e, 0xbe, 0xe8, 0xfb, 0x27, 0x10,
    0x34, 0x38, 0x3b, 0x9f, 0x63, 0xec, 0x5b, 0xb6, 0x6c, 0x7f, 0xc1, 0x48, 0x05, 0x16,
    0x54, 0x8c, 0x4f, 0xa7,
];

/// What channel `old-talk` is, for a server that offers it.
#[allow(dead_code, unreachable_pub)]
pub fn old_talk_spec() -> ::kumi_unison::ChannelSpec {
    ::kumi_unison::ChannelSpec::new("old-talk")
        .direction(::kumi_unison::ChannelDirection::ClientToServer)
        .lifetime(::kumi_unison::Lifetime::Persistent)
        .delivery(::kumi_unison::Delivery::Reliable)
        .event_policy(::kumi_unison::EventPolicy::DropOldest)
        .schema(
            ::kumi_unison::SchemaId::new(
                OLD_TALK_CHANNEL_HASH,
                EVERYTHING_PROTOCOL_VERSION,
            ),
        )
}

/// With what a client opens channel `old-talk`.
#[allow(dead_code, unreachable_pub)]
pub fn old_talk_options() -> ::kumi_unison::ChannelOptions {
    ::kumi_unison::ChannelOptions::new()
        .direction(::kumi_unison::ChannelDirection::ClientToServer)
        .lifetime(::kumi_unison::Lifetime::Persistent)
        .delivery(::kumi_unison::Delivery::Reliable)
        .event_policy(::kumi_unison::EventPolicy::DropOldest)
        .schema(
            ::kumi_unison::SchemaId::new(
                OLD_TALK_CHANNEL_HASH,
                EVERYTHING_PROTOCOL_VERSION,
            ),
        )
}

/// The client's side of channel `old-talk`.
///
/// Clones are the same channel.
#[derive(Clone, Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct OldTalkClient {
    channel: ::kumi_unison::TypedChannel,
}

#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
impl OldTalkClient {
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

    /// Sends `Said`.
    ///
    /// What happens when the other side does not keep up is the channel's policy.
    pub async fn send_said(
        &self,
        event: &Said,
    ) -> ::core::result::Result<(), ::kumi_unison::NetworkError> {
        self.channel.emit("Said", event).await
    }

    /// Every `Heard`, from now on.
    ///
    /// While the stream lives, these events come to it and to nobody else. Events of other names wait for somebody to take them; `event_streams` takes all of them at once.
    pub fn heard_events(&self) -> ::kumi_unison::EventStream<Heard> {
        self.channel.events("Heard")
    }

    /// A stream for every event of the channel.
    ///
    /// Whatever has no stream, because it is unknown or its stream was dropped, is thrown away on arrival.
    pub fn event_streams(&self) -> OldTalkEventStreams {
        let streams = OldTalkEventStreams {
            heard: self.heard_events(),
        };
        self.raw_channel().discard_events();
        streams
    }
}

impl From<::kumi_unison::UnisonChannel> for OldTalkClient {
    fn from(channel: ::kumi_unison::UnisonChannel) -> Self {
        Self::from_channel(channel)
    }
}

/// The server's side of channel `old-talk`: one client that has it open.
///
/// Clones are the same channel.
#[derive(Clone, Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct OldTalkPeer {
    channel: ::kumi_unison::TypedChannel,
}

#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
impl OldTalkPeer {
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

    /// Sends `Heard`.
    ///
    /// What happens when the other side does not keep up is the channel's policy.
    pub async fn send_heard(
        &self,
        event: &Heard,
    ) -> ::core::result::Result<(), ::kumi_unison::NetworkError> {
        self.channel.emit("Heard", event).await
    }
}

impl From<::kumi_unison::UnisonChannel> for OldTalkPeer {
    fn from(channel: ::kumi_unison::UnisonChannel) -> Self {
        Self::from_channel(channel)
    }
}

/// A stream for every event that the server sends on channel `old-talk`.
#[derive(Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct OldTalkEventStreams {
    /// Every `Heard`.
    pub heard: ::kumi_unison::EventStream<Heard>,
}

/// What a server does on channel `old-talk`.
///
/// One value serves all clients; methods run at the same time.
#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
pub trait OldTalkService: Send + Sync + 'static {
    /// A client sent `Said`.
    ///
    /// Events of one client are handled one after the other. Unless implemented, they are ignored.
    fn said(
        &self,
        peer: &OldTalkPeer,
        event: Said,
    ) -> impl ::core::future::Future<Output = ()> + Send {
        let _ = (peer, event);
        async {}
    }

    /// A client has opened the channel.
    ///
    /// Runs beside everything else, and is dropped when the channel ends; a loop that sends events may live here.
    fn channel_opened(
        &self,
        peer: OldTalkPeer,
    ) -> impl ::core::future::Future<Output = ()> + Send {
        let _ = peer;
        async {}
    }

    /// The channel of a client has ended.
    fn channel_closed(
        &self,
        peer: &OldTalkPeer,
    ) -> impl ::core::future::Future<Output = ()> + Send {
        let _ = peer;
        async {}
    }
}

/// Offers channel `old-talk` at a server, answered by an implementation.
#[allow(dead_code, unreachable_pub)]
pub fn register_old_talk<S: OldTalkService>(
    server: &impl AsRef<::kumi_unison::ChannelRegistry>,
    implementation: S,
) {
    register_old_talk_with(server, old_talk_spec(), implementation);
}

/// As `register_old_talk`, with more than the schema says, such as what happens to events of a slow client.
#[allow(dead_code, unreachable_pub)]
pub fn register_old_talk_with<S: OldTalkService>(
    server: &impl AsRef<::kumi_unison::ChannelRegistry>,
    spec: ::kumi_unison::ChannelSpec,
    implementation: S,
) {
    let implementation = ::std::sync::Arc::new(implementation);
    server
        .as_ref()
        .register_channel_with(
            spec,
            move |
                _: ::std::sync::Arc<::kumi_unison::ConnectionContext>,
                channel: ::kumi_unison::UnisonChannel|
            serve_old_talk(::std::sync::Arc::clone(&implementation), channel),
        );
}

#[allow(dead_code, unreachable_pub)]
async fn serve_old_talk<S: OldTalkService>(
    implementation: ::std::sync::Arc<S>,
    channel: ::kumi_unison::UnisonChannel,
) -> ::core::result::Result<(), ::kumi_unison::NetworkError> {
    let peer = OldTalkPeer::from_channel(channel.clone());
    let events = async {
        while let Some(message) = ::kumi_unison::typed::next_event(&channel).await? {
            if let Some(event) = ::kumi_unison::typed::event_named::<
                Said,
            >(&message, "Said") {
                OldTalkService::said(&*implementation, &peer, event).await;
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

/// Hash over channel `old-both`. Peers with the same hash may use the binary format.
#[allow(dead_code, unreachable_pub)]
pub const OLD_BOTH_CHANNEL_HASH: [u8; 32] = [
    0xf1, 0x45, 0x54, 0x38, 0xda, 0x24, 0x21, 0x08, 0xb0, 0xfb, 0x3a, 0x26, 0xec, 0xd3,
    0x7b, 0xf2, 0xbc, 0x81, 0x02, 0xe2, 0xa4, 0xb5, 0x7d, 0xe2, 0x64, 0xa9, 0x4f, 0x73,
    0x2d, 0x1b, 0x8a, 0x3b,
];

/// What channel `old-both` is, for a server that offers it.
#[allow(dead_code, unreachable_pub)]
pub fn old_both_spec() -> ::kumi_unison::ChannelSpec {
    ::kumi_unison::ChannelSpec::new("old-both")
        .direction(::kumi_unison::ChannelDirection::Bidirectional)
        .lifetime(::kumi_unison::Lifetime::Persistent)
        .delivery(::kumi_unison::Delivery::Reliable)
        .event_policy(::kumi_unison::EventPolicy::DropOldest)
        .schema(
            ::kumi_unison::SchemaId::new(
                OLD_BOTH_CHANNEL_HASH,
                EVERYTHING_PROTOCOL_VERSION,
            ),
        )
}

/// With what a client opens channel `old-both`.
#[allow(dead_code, unreachable_pub)]
pub fn old_both_options() -> ::kumi_unison::ChannelOptions {
    ::kumi_unison::ChannelOptions::new()
        .direction(::kumi_unison::ChannelDirection::Bidirectional)
        .lifetime(::kumi_unison::Lifetime::Persistent)
        .delivery(::kumi_unison::Delivery::Reliable)
        .event_policy(::kumi_unison::EventPolicy::DropOldest)
        .schema(
            ::kumi_unison::SchemaId::new(
                OLD_BOTH_CHANNEL_HASH,
                EVERYTHING_PROTOCOL_VERSION,
            ),
        )
}

/// The client's side of channel `old-both`.
///
/// Clones are the same channel.
#[derive(Clone, Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct OldBothClient {
    channel: ::kumi_unison::TypedChannel,
}

#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
impl OldBothClient {
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

    /// Sends `Left`.
    ///
    /// What happens when the other side does not keep up is the channel's policy.
    pub async fn send_left(
        &self,
        event: &Left,
    ) -> ::core::result::Result<(), ::kumi_unison::NetworkError> {
        self.channel.emit("Left", event).await
    }

    /// Sends `Right`.
    ///
    /// What happens when the other side does not keep up is the channel's policy.
    pub async fn send_right(
        &self,
        event: &Right,
    ) -> ::core::result::Result<(), ::kumi_unison::NetworkError> {
        self.channel.emit("Right", event).await
    }

    /// Every `Left`, from now on.
    ///
    /// While the stream lives, these events come to it and to nobody else. Events of other names wait for somebody to take them; `event_streams` takes all of them at once.
    pub fn left_events(&self) -> ::kumi_unison::EventStream<Left> {
        self.channel.events("Left")
    }

    /// Every `Right`, from now on.
    ///
    /// While the stream lives, these events come to it and to nobody else. Events of other names wait for somebody to take them; `event_streams` takes all of them at once.
    pub fn right_events(&self) -> ::kumi_unison::EventStream<Right> {
        self.channel.events("Right")
    }

    /// A stream for every event of the channel.
    ///
    /// Whatever has no stream, because it is unknown or its stream was dropped, is thrown away on arrival.
    pub fn event_streams(&self) -> OldBothEventStreams {
        let streams = OldBothEventStreams {
            left: self.left_events(),
            right: self.right_events(),
        };
        self.raw_channel().discard_events();
        streams
    }
}

impl From<::kumi_unison::UnisonChannel> for OldBothClient {
    fn from(channel: ::kumi_unison::UnisonChannel) -> Self {
        Self::from_channel(channel)
    }
}

/// The server's side of channel `old-both`: one client that has it open.
///
/// Clones are the same channel.
#[derive(Clone, Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct OldBothPeer {
    channel: ::kumi_unison::TypedChannel,
}

#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
impl OldBothPeer {
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

    /// Sends `Left`.
    ///
    /// What happens when the other side does not keep up is the channel's policy.
    pub async fn send_left(
        &self,
        event: &Left,
    ) -> ::core::result::Result<(), ::kumi_unison::NetworkError> {
        self.channel.emit("Left", event).await
    }

    /// Sends `Right`.
    ///
    /// What happens when the other side does not keep up is the channel's policy.
    pub async fn send_right(
        &self,
        event: &Right,
    ) -> ::core::result::Result<(), ::kumi_unison::NetworkError> {
        self.channel.emit("Right", event).await
    }
}

impl From<::kumi_unison::UnisonChannel> for OldBothPeer {
    fn from(channel: ::kumi_unison::UnisonChannel) -> Self {
        Self::from_channel(channel)
    }
}

/// A stream for every event that the server sends on channel `old-both`.
#[derive(Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct OldBothEventStreams {
    /// Every `Left`.
    pub left: ::kumi_unison::EventStream<Left>,
    /// Every `Right`.
    pub right: ::kumi_unison::EventStream<Right>,
}

/// What a server does on channel `old-both`.
///
/// One value serves all clients; methods run at the same time.
#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
pub trait OldBothService: Send + Sync + 'static {
    /// A client sent `Left`.
    ///
    /// Events of one client are handled one after the other. Unless implemented, they are ignored.
    fn left(
        &self,
        peer: &OldBothPeer,
        event: Left,
    ) -> impl ::core::future::Future<Output = ()> + Send {
        let _ = (peer, event);
        async {}
    }

    /// A client sent `Right`.
    ///
    /// Events of one client are handled one after the other. Unless implemented, they are ignored.
    fn right(
        &self,
        peer: &OldBothPeer,
        event: Right,
    ) -> impl ::core::future::Future<Output = ()> + Send {
        let _ = (peer, event);
        async {}
    }

    /// A client has opened the channel.
    ///
    /// Runs beside everything else, and is dropped when the channel ends; a loop that sends events may live here.
    fn channel_opened(
        &self,
        peer: OldBothPeer,
    ) -> impl ::core::future::Future<Output = ()> + Send {
        let _ = peer;
        async {}
    }

    /// The channel of a client has ended.
    fn channel_closed(
        &self,
        peer: &OldBothPeer,
    ) -> impl ::core::future::Future<Output = ()> + Send {
        let _ = peer;
        async {}
    }
}

/// Offers channel `old-both` at a server, answered by an implementation.
#[allow(dead_code, unreachable_pub)]
pub fn register_old_both<S: OldBothService>(
    server: &impl AsRef<::kumi_unison::ChannelRegistry>,
    implementation: S,
) {
    register_old_both_with(server, old_both_spec(), implementation);
}

/// As `register_old_both`, with more than the schema says, such as what happens to events of a slow client.
#[allow(dead_code, unreachable_pub)]
pub fn register_old_both_with<S: OldBothService>(
    server: &impl AsRef<::kumi_unison::ChannelRegistry>,
    spec: ::kumi_unison::ChannelSpec,
    implementation: S,
) {
    let implementation = ::std::sync::Arc::new(implementation);
    server
        .as_ref()
        .register_channel_with(
            spec,
            move |
                _: ::std::sync::Arc<::kumi_unison::ConnectionContext>,
                channel: ::kumi_unison::UnisonChannel|
            serve_old_both(::std::sync::Arc::clone(&implementation), channel),
        );
}

#[allow(dead_code, unreachable_pub)]
async fn serve_old_both<S: OldBothService>(
    implementation: ::std::sync::Arc<S>,
    channel: ::kumi_unison::UnisonChannel,
) -> ::core::result::Result<(), ::kumi_unison::NetworkError> {
    let peer = OldBothPeer::from_channel(channel.clone());
    let events = async {
        while let Some(message) = ::kumi_unison::typed::next_event(&channel).await? {
            if let Some(event) = ::kumi_unison::typed::event_named::<
                Left,
            >(&message, "Left") {
                OldBothService::left(&*implementation, &peer, event).await;
            } else if let Some(event) = ::kumi_unison::typed::event_named::<
                Right,
            >(&message, "Right") {
                OldBothService::right(&*implementation, &peer, event).await;
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

/// Hash over channel `UserService`. Peers with the same hash may use the binary format.
#[allow(dead_code, unreachable_pub)]
pub const USER_SERVICE_CHANNEL_HASH: [u8; 32] = [
    0x47, 0xd1, 0x83, 0xe3, 0x90, 0xb7, 0x2c, 0x2c, 0xc9, 0x31, 0x9f, 0xd7, 0xe7, 0x00,
    0x01, 0x5a, 0x07, 0x82, 0xae, 0x0c, 0x2e, 0x7e, 0xb5, 0xb4, 0x1c, 0x87, 0x57, 0xf5,
    0xe0, 0xf2, 0x51, 0x6e,
];

/// What channel `UserService` is, for a server that offers it.
#[allow(dead_code, unreachable_pub)]
pub fn user_service_spec() -> ::kumi_unison::ChannelSpec {
    ::kumi_unison::ChannelSpec::new("UserService")
        .direction(::kumi_unison::ChannelDirection::ClientToServer)
        .lifetime(::kumi_unison::Lifetime::Transient)
        .delivery(::kumi_unison::Delivery::Reliable)
        .schema(
            ::kumi_unison::SchemaId::new(
                USER_SERVICE_CHANNEL_HASH,
                EVERYTHING_PROTOCOL_VERSION,
            ),
        )
}

/// With what a client opens channel `UserService`.
#[allow(dead_code, unreachable_pub)]
pub fn user_service_options() -> ::kumi_unison::ChannelOptions {
    ::kumi_unison::ChannelOptions::new()
        .direction(::kumi_unison::ChannelDirection::ClientToServer)
        .lifetime(::kumi_unison::Lifetime::Transient)
        .delivery(::kumi_unison::Delivery::Reliable)
        .schema(
            ::kumi_unison::SchemaId::new(
                USER_SERVICE_CHANNEL_HASH,
                EVERYTHING_PROTOCOL_VERSION,
            ),
        )
}

/// The client's side of channel `UserService`.
///
/// Clones are the same channel.
#[derive(Clone, Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct UserServiceClient {
    channel: ::kumi_unison::TypedChannel,
}

#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
impl UserServiceClient {
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

    /// Asks `createUser`.
    pub async fn create_user(
        &self,
        request: &CreateUser,
    ) -> ::core::result::Result<CreateUserResponse, ::kumi_unison::NetworkError> {
        self.channel.call("createUser", request, false).await
    }

    /// Asks `count`.
    ///
    /// Idempotent: it is sent again when the connection breaks before its answer came.
    pub async fn count(
        &self,
        request: &Count,
    ) -> ::core::result::Result<CountResponse, ::kumi_unison::NetworkError> {
        self.channel.call("count", request, true).await
    }
}

impl From<::kumi_unison::UnisonChannel> for UserServiceClient {
    fn from(channel: ::kumi_unison::UnisonChannel) -> Self {
        Self::from_channel(channel)
    }
}

/// The server's side of channel `UserService`: one client that has it open.
///
/// Clones are the same channel.
#[derive(Clone, Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct UserServicePeer {
    channel: ::kumi_unison::TypedChannel,
}

#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
impl UserServicePeer {
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

impl From<::kumi_unison::UnisonChannel> for UserServicePeer {
    fn from(channel: ::kumi_unison::UnisonChannel) -> Self {
        Self::from_channel(channel)
    }
}

/// What a server does on channel `UserService`.
///
/// One value serves all clients; methods run at the same time.
#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
pub trait UserServiceService: Send + Sync + 'static {
    /// Answers `createUser`.
    fn create_user(
        &self,
        call: ::kumi_unison::Call<UserServicePeer>,
        request: CreateUser,
    ) -> impl ::core::future::Future<
        Output = ::core::result::Result<CreateUserResponse, ::kumi_unison::RemoteError>,
    > + Send;
    /// Answers `count`.
    ///
    /// Idempotent: it may come twice, and has to mean the same as once.
    fn count(
        &self,
        call: ::kumi_unison::Call<UserServicePeer>,
        request: Count,
    ) -> impl ::core::future::Future<
        Output = ::core::result::Result<CountResponse, ::kumi_unison::RemoteError>,
    > + Send;
    /// A client has opened the channel.
    ///
    /// Runs beside everything else, and is dropped when the channel ends; a loop that sends events may live here.
    fn channel_opened(
        &self,
        peer: UserServicePeer,
    ) -> impl ::core::future::Future<Output = ()> + Send {
        let _ = peer;
        async {}
    }

    /// The channel of a client has ended.
    fn channel_closed(
        &self,
        peer: &UserServicePeer,
    ) -> impl ::core::future::Future<Output = ()> + Send {
        let _ = peer;
        async {}
    }
}

/// Offers channel `UserService` at a server, answered by an implementation.
#[allow(dead_code, unreachable_pub)]
pub fn register_user_service<S: UserServiceService>(
    server: &impl AsRef<::kumi_unison::ChannelRegistry>,
    implementation: S,
) {
    register_user_service_with(server, user_service_spec(), implementation);
}

/// As `register_user_service`, with more than the schema says, such as what happens to events of a slow client.
#[allow(dead_code, unreachable_pub)]
pub fn register_user_service_with<S: UserServiceService>(
    server: &impl AsRef<::kumi_unison::ChannelRegistry>,
    spec: ::kumi_unison::ChannelSpec,
    implementation: S,
) {
    let implementation = ::std::sync::Arc::new(implementation);
    server
        .as_ref()
        .register_channel_with(
            spec,
            move |
                _: ::std::sync::Arc<::kumi_unison::ConnectionContext>,
                channel: ::kumi_unison::UnisonChannel|
            serve_user_service(::std::sync::Arc::clone(&implementation), channel),
        );
}

#[allow(dead_code, unreachable_pub)]
async fn serve_user_service<S: UserServiceService>(
    implementation: ::std::sync::Arc<S>,
    channel: ::kumi_unison::UnisonChannel,
) -> ::core::result::Result<(), ::kumi_unison::NetworkError> {
    let peer = UserServicePeer::from_channel(channel.clone());
    let answering = ::std::sync::Arc::clone(&implementation);
    channel
        .set_service(move |request: ::kumi_unison::IncomingRequest| {
            let implementation = ::std::sync::Arc::clone(&answering);
            async move {
                match request.method() {
                    "createUser" => {
                        ::kumi_unison::typed::answer(
                                request,
                                |call, message| UserServiceService::create_user(
                                    &*implementation,
                                    call,
                                    message,
                                ),
                            )
                            .await
                    }
                    "count" => {
                        ::kumi_unison::typed::answer(
                                request,
                                |call, message| UserServiceService::count(
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

/// Any request of channel `main`.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, clippy::enum_variant_names)]
#[allow(dead_code, unreachable_pub)]
pub enum MainRequest {
    /// `Echo`
    Echo(Echo),
    /// `Grow`
    Grow(Grow),
    /// `Ping`
    Ping(Ping),
    /// `FromRoom`
    FromRoom(FromRoom),
    /// `Add`
    Add(Add),
}

impl From<Echo> for MainRequest {
    fn from(message: Echo) -> Self {
        Self::Echo(message)
    }
}

impl From<Grow> for MainRequest {
    fn from(message: Grow) -> Self {
        Self::Grow(message)
    }
}

impl From<Ping> for MainRequest {
    fn from(message: Ping) -> Self {
        Self::Ping(message)
    }
}

impl From<FromRoom> for MainRequest {
    fn from(message: FromRoom) -> Self {
        Self::FromRoom(message)
    }
}

impl From<Add> for MainRequest {
    fn from(message: Add) -> Self {
        Self::Add(message)
    }
}

/// The answer to any request of channel `main`, by the request's name.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, clippy::enum_variant_names)]
#[allow(dead_code, unreachable_pub)]
pub enum MainResponse {
    /// `Echo`
    Echo(Echoed),
    /// `Grow`
    Grow(Tree),
    /// `Ping`
    Ping,
    /// `FromRoom`
    FromRoom(Defaults),
    /// `Add`
    Add(Result),
}

impl From<Echoed> for MainResponse {
    fn from(message: Echoed) -> Self {
        Self::Echo(message)
    }
}

impl From<Tree> for MainResponse {
    fn from(message: Tree) -> Self {
        Self::Grow(message)
    }
}

impl From<Defaults> for MainResponse {
    fn from(message: Defaults) -> Self {
        Self::FromRoom(message)
    }
}

impl From<Result> for MainResponse {
    fn from(message: Result) -> Self {
        Self::Add(message)
    }
}

/// Any event that the server sends on channel `main`.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, clippy::enum_variant_names)]
#[allow(dead_code, unreachable_pub)]
pub enum MainServerEvent {
    /// `Posted`
    Posted(Posted),
    /// `Optionals`
    Optionals(Optionals),
}

impl From<Posted> for MainServerEvent {
    fn from(message: Posted) -> Self {
        Self::Posted(message)
    }
}

impl From<Optionals> for MainServerEvent {
    fn from(message: Optionals) -> Self {
        Self::Optionals(message)
    }
}

/// Any event that the client sends on channel `old-both`.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, clippy::enum_variant_names)]
#[allow(dead_code, unreachable_pub)]
pub enum OldBothClientEvent {
    /// `Left`
    Left(Left),
    /// `Right`
    Right(Right),
}

impl From<Left> for OldBothClientEvent {
    fn from(message: Left) -> Self {
        Self::Left(message)
    }
}

impl From<Right> for OldBothClientEvent {
    fn from(message: Right) -> Self {
        Self::Right(message)
    }
}

/// Any event that the server sends on channel `old-both`.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, clippy::enum_variant_names)]
#[allow(dead_code, unreachable_pub)]
pub enum OldBothServerEvent {
    /// `Left`
    Left(Left),
    /// `Right`
    Right(Right),
}

impl From<Left> for OldBothServerEvent {
    fn from(message: Left) -> Self {
        Self::Left(message)
    }
}

impl From<Right> for OldBothServerEvent {
    fn from(message: Right) -> Self {
        Self::Right(message)
    }
}

/// Any request of channel `UserService`.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, clippy::enum_variant_names)]
#[allow(dead_code, unreachable_pub)]
pub enum UserServiceRequest {
    /// `CreateUser`
    CreateUser(CreateUser),
    /// `Count`
    Count(Count),
}

impl From<CreateUser> for UserServiceRequest {
    fn from(message: CreateUser) -> Self {
        Self::CreateUser(message)
    }
}

impl From<Count> for UserServiceRequest {
    fn from(message: Count) -> Self {
        Self::Count(message)
    }
}

/// The answer to any request of channel `UserService`, by the request's name.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, clippy::enum_variant_names)]
#[allow(dead_code, unreachable_pub)]
pub enum UserServiceResponse {
    /// `CreateUser`
    CreateUser(CreateUserResponse),
    /// `Count`
    Count(CountResponse),
}

impl From<CreateUserResponse> for UserServiceResponse {
    fn from(message: CreateUserResponse) -> Self {
        Self::CreateUser(message)
    }
}

impl From<CountResponse> for UserServiceResponse {
    fn from(message: CountResponse) -> Self {
        Self::Count(message)
    }
}

/// Every channel of protocol `everything` inside one process, as its client holds them.
///
/// All there is,
/// in one place \[and \<odd\> marks\].
#[derive(Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct EverythingConnection {
    /// Channel `main`.
    ///
    /// Requests one way, events the other.
    pub main: ::kumi_unison::ServiceChannel<
        ::kumi_unison::RequestChannel<MainRequest, MainResponse>,
        ::kumi_unison::BidirectionalChannel<Typing, MainServerEvent>,
    >,
    /// Channel `callbacks`.
    pub callbacks: ::kumi_unison::ServiceChannel<
        ::kumi_unison::RespondChannel<Confirm, Confirmed>,
        ::kumi_unison::SendChannel<Start>,
    >,
    /// Channel `peers`.
    pub peers: ::kumi_unison::ServiceChannel<
        ::kumi_unison::PeerChannel<Swap, Many>,
        ::kumi_unison::BidirectionalChannel<Wave, Wave>,
    >,
    /// Channel `ticks`.
    pub ticks: ::kumi_unison::ReceiveChannel<Tick>,
    /// Channel `upload`.
    pub upload: ::kumi_unison::SendChannel<Chunk>,
    /// Channel `old-query`.
    pub old_query: ::kumi_unison::RequestChannel<Query, Found>,
    /// Channel `old-talk`.
    pub old_talk: ::kumi_unison::BidirectionalChannel<Said, Heard>,
    /// Channel `old-both`.
    pub old_both: ::kumi_unison::BidirectionalChannel<
        OldBothClientEvent,
        OldBothServerEvent,
    >,
    /// Channel `UserService`.
    pub user_service: ::kumi_unison::RequestChannel<
        UserServiceRequest,
        UserServiceResponse,
    >,
}

/// Every channel of protocol `everything` inside one process, as its server holds them.
///
/// All there is,
/// in one place \[and \<odd\> marks\].
#[derive(Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct EverythingServerConnection {
    /// Channel `main`.
    ///
    /// Requests one way, events the other.
    pub main: ::kumi_unison::ServiceChannel<
        ::kumi_unison::RespondChannel<MainRequest, MainResponse>,
        ::kumi_unison::BidirectionalChannel<MainServerEvent, Typing>,
    >,
    /// Channel `callbacks`.
    pub callbacks: ::kumi_unison::ServiceChannel<
        ::kumi_unison::RequestChannel<Confirm, Confirmed>,
        ::kumi_unison::ReceiveChannel<Start>,
    >,
    /// Channel `peers`.
    pub peers: ::kumi_unison::ServiceChannel<
        ::kumi_unison::PeerChannel<Swap, Many>,
        ::kumi_unison::BidirectionalChannel<Wave, Wave>,
    >,
    /// Channel `ticks`.
    pub ticks: ::kumi_unison::SendChannel<Tick>,
    /// Channel `upload`.
    pub upload: ::kumi_unison::ReceiveChannel<Chunk>,
    /// Channel `old-query`.
    pub old_query: ::kumi_unison::RespondChannel<Query, Found>,
    /// Channel `old-talk`.
    pub old_talk: ::kumi_unison::BidirectionalChannel<Heard, Said>,
    /// Channel `old-both`.
    pub old_both: ::kumi_unison::BidirectionalChannel<
        OldBothServerEvent,
        OldBothClientEvent,
    >,
    /// Channel `UserService`.
    pub user_service: ::kumi_unison::RespondChannel<
        UserServiceRequest,
        UserServiceResponse,
    >,
}

#[allow(dead_code, unreachable_pub)]
impl EverythingConnection {
    /// Both ends of a connection. Each channel holds up to `capacity` messages each way; a full one makes its sender wait.
    pub fn pair(capacity: usize) -> (Self, EverythingServerConnection) {
        let (requests, answers) = <::kumi_unison::RequestChannel<
            MainRequest,
            MainResponse,
        >>::pair(capacity);
        let (near, far) = <::kumi_unison::BidirectionalChannel<
            Typing,
            MainServerEvent,
        >>::pair(capacity);
        let main_client = ::kumi_unison::ServiceChannel {
            requests,
            events: near,
        };
        let main_server = ::kumi_unison::ServiceChannel {
            requests: answers,
            events: far,
        };
        let (requests, answers) = <::kumi_unison::RespondChannel<
            Confirm,
            Confirmed,
        >>::pair(capacity);
        let (near, far) = <::kumi_unison::SendChannel<Start>>::pair(capacity);
        let callbacks_client = ::kumi_unison::ServiceChannel {
            requests,
            events: near,
        };
        let callbacks_server = ::kumi_unison::ServiceChannel {
            requests: answers,
            events: far,
        };
        let (requests, answers) = <::kumi_unison::PeerChannel<
            Swap,
            Many,
        >>::pair(capacity);
        let (near, far) = <::kumi_unison::BidirectionalChannel<
            Wave,
            Wave,
        >>::pair(capacity);
        let peers_client = ::kumi_unison::ServiceChannel {
            requests,
            events: near,
        };
        let peers_server = ::kumi_unison::ServiceChannel {
            requests: answers,
            events: far,
        };
        let (ticks_client, ticks_server) = <::kumi_unison::ReceiveChannel<
            Tick,
        >>::pair(capacity);
        let (upload_client, upload_server) = <::kumi_unison::SendChannel<
            Chunk,
        >>::pair(capacity);
        let (old_query_client, old_query_server) = <::kumi_unison::RequestChannel<
            Query,
            Found,
        >>::pair(capacity);
        let (old_talk_client, old_talk_server) = <::kumi_unison::BidirectionalChannel<
            Said,
            Heard,
        >>::pair(capacity);
        let (old_both_client, old_both_server) = <::kumi_unison::BidirectionalChannel<
            OldBothClientEvent,
            OldBothServerEvent,
        >>::pair(capacity);
        let (user_service_client, user_service_server) = <::kumi_unison::RequestChannel<
            UserServiceRequest,
            UserServiceResponse,
        >>::pair(capacity);
        (
            Self {
                main: main_client,
                callbacks: callbacks_client,
                peers: peers_client,
                ticks: ticks_client,
                upload: upload_client,
                old_query: old_query_client,
                old_talk: old_talk_client,
                old_both: old_both_client,
                user_service: user_service_client,
            },
            EverythingServerConnection {
                main: main_server,
                callbacks: callbacks_server,
                peers: peers_server,
                ticks: ticks_server,
                upload: upload_server,
                old_query: old_query_server,
                old_talk: old_talk_server,
                old_both: old_both_server,
                user_service: user_service_server,
            },
        )
    }
}

/// Every channel of protocol `everything`, open on a connection.
///
/// All there is,
/// in one place \[and \<odd\> marks\].
///
/// A field is the channel itself, a method of the same name its typed handle.
#[derive(Clone, Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct EverythingQuicConnection {
    /// Channel `main`.
    pub main: ::kumi_unison::UnisonChannel,
    /// Channel `callbacks`.
    pub callbacks: ::kumi_unison::UnisonChannel,
    /// Channel `peers`.
    pub peers: ::kumi_unison::UnisonChannel,
    /// Channel `ticks`.
    pub ticks: ::kumi_unison::UnisonChannel,
    /// Channel `upload`.
    pub upload: ::kumi_unison::UnisonChannel,
    /// Channel `old-query`.
    pub old_query: ::kumi_unison::UnisonChannel,
    /// Channel `old-talk`.
    pub old_talk: ::kumi_unison::UnisonChannel,
    /// Channel `old-both`.
    pub old_both: ::kumi_unison::UnisonChannel,
    /// Channel `UserService`.
    pub user_service: ::kumi_unison::UnisonChannel,
}

#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
impl EverythingQuicConnection {
    /// Requests one way, events the other.
    pub fn main(&self) -> MainClient {
        MainClient::from_channel(self.main.clone())
    }

    /// Channel `callbacks`, typed.
    pub fn callbacks(&self) -> CallbacksClient {
        CallbacksClient::from_channel(self.callbacks.clone())
    }

    /// Channel `peers`, typed.
    pub fn peers(&self) -> PeersClient {
        PeersClient::from_channel(self.peers.clone())
    }

    /// Channel `ticks`, typed.
    pub fn ticks(&self) -> TicksClient {
        TicksClient::from_channel(self.ticks.clone())
    }

    /// Channel `upload`, typed.
    pub fn upload(&self) -> UploadClient {
        UploadClient::from_channel(self.upload.clone())
    }

    /// Channel `old-query`, typed.
    pub fn old_query(&self) -> OldQueryClient {
        OldQueryClient::from_channel(self.old_query.clone())
    }

    /// Channel `old-talk`, typed.
    pub fn old_talk(&self) -> OldTalkClient {
        OldTalkClient::from_channel(self.old_talk.clone())
    }

    /// Channel `old-both`, typed.
    pub fn old_both(&self) -> OldBothClient {
        OldBothClient::from_channel(self.old_both.clone())
    }

    /// Channel `UserService`, typed.
    pub fn user_service(&self) -> UserServiceClient {
        UserServiceClient::from_channel(self.user_service.clone())
    }
}

/// Opens every channel of protocol `everything`.
#[allow(dead_code, unreachable_pub)]
pub trait EverythingConnectionBuilder {
    /// Opens every channel at once, in one round trip, and waits until the server has agreed to each.
    ///
    /// Fails, with none left open, when one of them is refused.
    fn build<C: ::kumi_unison::ChannelSource + ?Sized>(
        client: &C,
    ) -> impl ::core::future::Future<
        Output = ::core::result::Result<
            EverythingQuicConnection,
            ::kumi_unison::NetworkError,
        >,
    > + Send;
}

impl EverythingConnectionBuilder for EverythingQuicConnection {
    async fn build<C: ::kumi_unison::ChannelSource + ?Sized>(
        client: &C,
    ) -> ::core::result::Result<Self, ::kumi_unison::NetworkError> {
        let [main, callbacks, peers, ticks, upload, old_query, old_talk, old_both,
        user_service] = ::kumi_unison::open_channels(
                client,
                [
                    ("main", main_options()),
                    ("callbacks", callbacks_options()),
                    ("peers", peers_options()),
                    ("ticks", ticks_options()),
                    ("upload", upload_options()),
                    ("old-query", old_query_options()),
                    ("old-talk", old_talk_options()),
                    ("old-both", old_both_options()),
                    ("UserService", user_service_options()),
                ],
            )
            .await?;
        Ok(Self {
            main,
            callbacks,
            peers,
            ticks,
            upload,
            old_query,
            old_talk,
            old_both,
            user_service,
        })
    }
}
