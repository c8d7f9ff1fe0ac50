// Generated from protocol unusual (example.unusual) by kumi-schema. Changes belong into the schema.

/// Version of the protocol. Peers whose first numbers differ refuse each other.
#[allow(dead_code, unreachable_pub)]
pub const UNUSUAL_PROTOCOL_VERSION: &str = "3.1.0";

/// Hash over the whole protocol.
#[allow(dead_code, unreachable_pub)]
pub const UNUSUAL_PROTOCOL_HASH: [u8; 32] = [
    0x34, 0x0e, 0x3b, 0xe0, 0xce, 0x9a, 0x3b, 0xf4, 0xd7, 0xb8, 0x6d, 0x16, 0xf1, 0x67,
    0xc0, 0x0a, 0x95, 0x77, 0x95, 0xe0, 0x4d, 0xa9, 0xdf, 0x94, 0x39, 0x42, 0x9b, 0xce,
    0x88, 0x58, 0x0d, 0x29,
];

/// Another name for int.
#[allow(dead_code, unreachable_pub)]
pub type CellId = i64;

/// Another name for array of Cell.
#[allow(dead_code, unreachable_pub)]
pub type Row = Vec<Cell>;

/// Another name for array of row.
#[allow(dead_code, unreachable_pub)]
pub type Grid = Vec<Row>;

/// Another name for map of grid.
#[allow(dead_code, unreachable_pub)]
pub type Cube = ::std::collections::BTreeMap<String, Grid>;

/// Another name for array of string.
#[allow(dead_code, unreachable_pub)]
pub type Tags = Vec<String>;

/// Another name for map of tags.
#[allow(dead_code, unreachable_pub)]
pub type TagsByName = ::std::collections::BTreeMap<String, Tags>;

/// Another name for array of TagsByName.
#[allow(dead_code, unreachable_pub)]
pub type Layers = Vec<TagsByName>;

/// Another name for Level.
#[allow(dead_code, unreachable_pub)]
pub type Degree = Level;

/// Another name for degree.
#[allow(dead_code, unreachable_pub)]
pub type Wanted = Degree;

/// Another name for bytes.
#[allow(dead_code, unreachable_pub)]
pub type Blob = Vec<u8>;

/// Another name for map of Blob.
#[allow(dead_code, unreachable_pub)]
pub type Blobs = ::std::collections::BTreeMap<String, Blob>;

/// Another name for timestamp.
#[allow(dead_code, unreachable_pub)]
pub type Moment = ::kumi_unison::Timestamp;

/// Another name for array of Moment.
#[allow(dead_code, unreachable_pub)]
pub type Times = Vec<Moment>;

/// Values behind the name.
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
pub enum Level {
    /// `low`
    #[serde(rename = "low")]
    Low,
    /// `mid-high`
    #[serde(rename = "mid-high")]
    MidHigh,
    /// `Self`
    #[serde(rename = "Self")]
    Self_,
    /// `Ok`
    #[serde(rename = "Ok")]
    Ok,
    /// `None`
    #[serde(rename = "None")]
    None,
}

#[allow(dead_code, unreachable_pub)]
impl Level {
    /// The values that the schema lists, in its order.
    pub const LISTED: [Self; 5] = [
        Self::Low,
        Self::MidHigh,
        Self::Self_,
        Self::Ok,
        Self::None,
    ];
    /// The value as it travels.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Low => "low",
            Self::MidHigh => "mid-high",
            Self::Self_ => "Self",
            Self::Ok => "Ok",
            Self::None => "None",
        }
    }
}

impl ::core::fmt::Display for Level {
    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// As a node.
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
pub enum Open {
    /// with
    /// two lines
    #[serde(rename = "a.b")]
    AB,
    /// `c`
    #[serde(rename = "c")]
    C,
    /// `some`
    #[serde(rename = "some")]
    Some,
    /// `err`
    #[serde(rename = "err")]
    Err,
    /// A value that the schema does not list, as it came.
    #[serde(untagged)]
    Unknown(String),
}

#[allow(dead_code, unreachable_pub)]
impl Open {
    /// The values that the schema lists, in its order.
    pub const LISTED: [Self; 4] = [Self::AB, Self::C, Self::Some, Self::Err];
    /// The value as it travels.
    pub fn as_str(&self) -> &str {
        match self {
            Self::AB => "a.b",
            Self::C => "c",
            Self::Some => "some",
            Self::Err => "err",
            Self::Unknown(value) => value,
        }
    }
}

impl ::core::fmt::Display for Open {
    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One of the values of One.
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
pub enum One {
    /// `only`
    #[serde(rename = "only")]
    Only,
}

#[allow(dead_code, unreachable_pub)]
impl One {
    /// The values that the schema lists, in its order.
    pub const LISTED: [Self; 1] = [Self::Only];
    /// The value as it travels.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Only => "only",
        }
    }
}

impl ::core::fmt::Display for One {
    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// As a node.
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
pub struct Cell {
    /// Field id.
    pub id: CellId,
    /// Field below.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[rkyv(omit_bounds)]
    pub below: Option<Grid>,
    /// Field inside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[rkyv(omit_bounds)]
    pub inside: Option<Cube>,
}

#[allow(dead_code, unreachable_pub)]
impl Cell {
    /// A message with what it has to have, and nothing else.
    pub fn new(id: CellId) -> Self {
        Self {
            id,
            below: None,
            inside: None,
        }
    }

    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(&self) -> Result<(), ::kumi_unison::ValidationError> {
        {
            let value = &self.id;
            ::kumi_unison::typed::check::at_least(value, &0)
                .map_err(|problem| problem.at("id"))?;
            ::kumi_unison::typed::check::at_most(value, &0)
                .map_err(|problem| problem.at("id"))?;
        }
        if let Some(value) = &self.below {
            for (index0, value0) in value.iter().enumerate() {
                ::kumi_unison::typed::check::min_length(value0.len(), 1)
                    .map_err(|problem| problem.at(format!("below[{}]", index0)))?;
                ::kumi_unison::typed::check::max_length(value0.len(), 2)
                    .map_err(|problem| problem.at(format!("below[{}]", index0)))?;
                for (index1, value1) in value0.iter().enumerate() {
                    value1
                        .validate()
                        .map_err(|error| {
                            error.within(format!("below[{}][{}]", index0, index1))
                        })?;
                }
            }
        }
        if let Some(value) = &self.inside {
            for (key0, value0) in value {
                for (index1, value1) in value0.iter().enumerate() {
                    ::kumi_unison::typed::check::min_length(value1.len(), 1)
                        .map_err(|problem| {
                            problem.at(format!("inside[{:?}][{}]", key0, index1))
                        })?;
                    ::kumi_unison::typed::check::max_length(value1.len(), 2)
                        .map_err(|problem| {
                            problem.at(format!("inside[{:?}][{}]", key0, index1))
                        })?;
                    for (index2, value2) in value1.iter().enumerate() {
                        value2
                            .validate()
                            .map_err(|error| {
                                error
                                    .within(
                                        format!("inside[{:?}][{}][{}]", key0, index1, index2),
                                    )
                            })?;
                    }
                }
            }
        }
        Ok(())
    }
}

impl ::kumi_unison::Message for Cell {
    const NAME: &'static str = "Cell";
    fn validate(&self) -> Result<(), ::kumi_unison::ValidationError> {
        Cell::validate(self)
    }
}

/// Message Mutual.
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
pub struct Mutual {
    /// Field other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[rkyv(omit_bounds)]
    pub other: Option<Box<Mutually>>,
    /// Field others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[rkyv(omit_bounds)]
    pub others: Option<::std::collections::BTreeMap<String, Mutually>>,
}

#[allow(dead_code, unreachable_pub)]
impl Mutual {
    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(&self) -> Result<(), ::kumi_unison::ValidationError> {
        if let Some(value) = &self.other {
            value.validate().map_err(|error| error.within("other"))?;
        }
        if let Some(value) = &self.others {
            for (key0, value0) in value {
                value0
                    .validate()
                    .map_err(|error| error.within(format!("others[{:?}]", key0)))?;
            }
        }
        Ok(())
    }
}

impl ::kumi_unison::Message for Mutual {
    const NAME: &'static str = "Mutual";
    fn validate(&self) -> Result<(), ::kumi_unison::ValidationError> {
        Mutual::validate(self)
    }
}

/// Message Mutually.
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
pub struct Mutually {
    /// Field mutual.
    #[rkyv(omit_bounds)]
    pub mutual: Mutual,
    /// Field list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[rkyv(omit_bounds)]
    pub list: Option<Vec<Mutual>>,
}

#[allow(dead_code, unreachable_pub)]
impl Mutually {
    /// A message with what it has to have, and nothing else.
    pub fn new(mutual: Mutual) -> Self {
        Self { mutual, list: None }
    }

    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(&self) -> Result<(), ::kumi_unison::ValidationError> {
        {
            let value = &self.mutual;
            value.validate().map_err(|error| error.within("mutual"))?;
        }
        if let Some(value) = &self.list {
            for (index0, value0) in value.iter().enumerate() {
                value0
                    .validate()
                    .map_err(|error| error.within(format!("list[{}]", index0)))?;
            }
        }
        Ok(())
    }
}

impl ::kumi_unison::Message for Mutually {
    const NAME: &'static str = "Mutually";
    fn validate(&self) -> Result<(), ::kumi_unison::ValidationError> {
        Mutually::validate(self)
    }
}

/// Message Initial.
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
pub struct Initial {
    /// Field empty.
    #[serde(default = "Initial::default_empty")]
    pub empty: String,
    /// Field text.
    pub text: String,
    /// Field raw.
    #[serde(default = "Initial::default_raw")]
    pub raw: String,
    /// Field zero.
    #[serde(default = "Initial::default_zero")]
    pub zero: f64,
    /// Field huge.
    #[serde(default = "Initial::default_huge")]
    pub huge: f64,
    /// Field whole.
    #[serde(default = "Initial::default_whole")]
    pub whole: f64,
    /// Field int.
    #[serde(default = "Initial::default_int")]
    pub int: i64,
    /// Field least.
    #[serde(default = "Initial::default_least")]
    pub least: i64,
    /// Field before.
    #[serde(default = "Initial::default_before")]
    pub before: ::kumi_unison::Timestamp,
    /// Field no.
    #[serde(default = "Initial::default_no")]
    pub no: bool,
    /// Field level.
    #[serde(default = "Initial::default_level")]
    pub level: Wanted,
    /// Field open.
    pub open: Open,
    /// Field one.
    #[serde(default = "Initial::default_one")]
    pub one: One,
}

#[allow(dead_code, unreachable_pub)]
impl Initial {
    fn default_empty() -> String {
        "".to_owned()
    }

    fn default_text() -> String {
        "😀 \\ \"q\" ${x} `b` {0}\r\n\t\u{2028}\0".to_owned()
    }

    fn default_raw() -> String {
        "\\d\"\\n".to_owned()
    }

    fn default_zero() -> f64 {
        -0.0
    }

    fn default_huge() -> f64 {
        1e300
    }

    fn default_whole() -> f64 {
        3.0
    }

    fn default_int() -> i64 {
        9007199254740991
    }

    fn default_least() -> i64 {
        -9007199254740991
    }

    fn default_before() -> ::kumi_unison::Timestamp {
        ::kumi_unison::Timestamp(-1)
    }

    fn default_no() -> bool {
        false
    }

    fn default_level() -> Wanted {
        Level::Self_
    }

    fn default_open() -> Open {
        Open::AB
    }

    fn default_one() -> One {
        One::Only
    }

    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(&self) -> Result<(), ::kumi_unison::ValidationError> {
        {
            let value = &self.raw;
            {
                static PATTERN: ::kumi_unison::typed::check::Pattern = ::kumi_unison::typed::check::Pattern::new(
                    "\\\\",
                );
                PATTERN.check(value).map_err(|problem| problem.at("raw"))?;
            }
        }
        {
            let value = &self.zero;
            ::kumi_unison::typed::check::finite(*value)
                .map_err(|problem| problem.at("zero"))?;
        }
        {
            let value = &self.huge;
            ::kumi_unison::typed::check::finite(*value)
                .map_err(|problem| problem.at("huge"))?;
        }
        {
            let value = &self.whole;
            ::kumi_unison::typed::check::finite(*value)
                .map_err(|problem| problem.at("whole"))?;
            ::kumi_unison::typed::check::at_least(value, &3.0)
                .map_err(|problem| problem.at("whole"))?;
            ::kumi_unison::typed::check::at_most(value, &3.0)
                .map_err(|problem| problem.at("whole"))?;
        }
        {
            let value = &self.least;
            ::kumi_unison::typed::check::at_least(value, &-9223372036854775808)
                .map_err(|problem| problem.at("least"))?;
            ::kumi_unison::typed::check::at_most(value, &9223372036854775807)
                .map_err(|problem| problem.at("least"))?;
        }
        Ok(())
    }
}

impl Default for Initial {
    fn default() -> Self {
        Self {
            empty: Self::default_empty(),
            text: Self::default_text(),
            raw: Self::default_raw(),
            zero: Self::default_zero(),
            huge: Self::default_huge(),
            whole: Self::default_whole(),
            int: Self::default_int(),
            least: Self::default_least(),
            before: Self::default_before(),
            no: Self::default_no(),
            level: Self::default_level(),
            open: Self::default_open(),
            one: Self::default_one(),
        }
    }
}

impl ::kumi_unison::Message for Initial {
    const NAME: &'static str = "Initial";
    fn validate(&self) -> Result<(), ::kumi_unison::ValidationError> {
        Initial::validate(self)
    }
}

/// Message Checked.
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
pub struct Checked {
    /// Field text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Field short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub short: Option<String>,
    /// Field whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole: Option<i64>,
    /// Field bounded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bounded: Option<i64>,
    /// Field wide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wide: Option<i64>,
    /// Field broken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken: Option<f64>,
    /// Field any_float.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub any_float: Option<f64>,
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
    /// Field exact.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "::kumi_unison::typed::base64_bytes"
    )]
    pub exact: Option<Vec<u8>>,
    /// Field blobs.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "::kumi_unison::typed::base64_bytes"
    )]
    pub blobs: Option<Blobs>,
    /// Field anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anything: Option<::kumi_unison::Json>,
    /// Field list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list: Option<Vec<::kumi_unison::Json>>,
    /// Field free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free: Option<::std::collections::BTreeMap<String, ::kumi_unison::Json>>,
    /// Field layers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layers: Option<Layers>,
    /// Field grid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grid: Option<Grid>,
    /// Field times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<Times>,
    /// Field level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<Level>,
    /// Field open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<Open>,
    /// Field levels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub levels: Option<::std::collections::BTreeMap<String, Degree>>,
    /// Field more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[rkyv(omit_bounds)]
    pub more: Option<Box<Checked>>,
    /// Field lots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[rkyv(omit_bounds)]
    pub lots: Option<::std::collections::BTreeMap<String, Checked>>,
    /// Field by_default.
    #[serde(default = "Checked::default_by_default")]
    pub by_default: i64,
    /// Field level_by_default.
    #[serde(default = "Checked::default_level_by_default")]
    pub level_by_default: Degree,
    /// Field constructor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub constructor: Option<i64>,
    /// Field toString.
    #[serde(rename = "toString", default, skip_serializing_if = "Option::is_none")]
    pub to_string: Option<String>,
    /// Field spaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spaces: Option<String>,
    /// Field letters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub letters: Option<String>,
    /// Field either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub either: Option<String>,
    /// Field face.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub face: Option<String>,
    /// Field not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not: Option<String>,
}

#[allow(dead_code, unreachable_pub)]
impl Checked {
    fn default_by_default() -> i64 {
        3
    }

    fn default_level_by_default() -> Degree {
        Level::Ok
    }

    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(&self) -> Result<(), ::kumi_unison::ValidationError> {
        if let Some(value) = &self.short {
            ::kumi_unison::typed::check::min_length(value.chars().count(), 2)
                .map_err(|problem| problem.at("short"))?;
            ::kumi_unison::typed::check::max_length(value.chars().count(), 3)
                .map_err(|problem| problem.at("short"))?;
        }
        if let Some(value) = &self.bounded {
            ::kumi_unison::typed::check::at_least(value, &-5)
                .map_err(|problem| problem.at("bounded"))?;
            ::kumi_unison::typed::check::at_most(value, &5)
                .map_err(|problem| problem.at("bounded"))?;
        }
        if let Some(value) = &self.wide {
            ::kumi_unison::typed::check::at_least(value, &-9223372036854775808)
                .map_err(|problem| problem.at("wide"))?;
            ::kumi_unison::typed::check::at_most(value, &9223372036854775807)
                .map_err(|problem| problem.at("wide"))?;
        }
        if let Some(value) = &self.broken {
            ::kumi_unison::typed::check::finite(*value)
                .map_err(|problem| problem.at("broken"))?;
            ::kumi_unison::typed::check::at_least(value, &-0.5)
                .map_err(|problem| problem.at("broken"))?;
            ::kumi_unison::typed::check::at_most(value, &1.5)
                .map_err(|problem| problem.at("broken"))?;
        }
        if let Some(value) = &self.any_float {
            ::kumi_unison::typed::check::finite(*value)
                .map_err(|problem| problem.at("any_float"))?;
        }
        if let Some(value) = &self.at {
            ::kumi_unison::typed::check::at_least(value, &::kumi_unison::Timestamp(0))
                .map_err(|problem| problem.at("at"))?;
        }
        if let Some(value) = &self.exact {
            ::kumi_unison::typed::check::min_length(value.len(), 2)
                .map_err(|problem| problem.at("exact"))?;
            ::kumi_unison::typed::check::max_length(value.len(), 4)
                .map_err(|problem| problem.at("exact"))?;
        }
        if let Some(value) = &self.blobs {
            ::kumi_unison::typed::check::max_length(value.len(), 2)
                .map_err(|problem| problem.at("blobs"))?;
            for (key0, value0) in value {
                ::kumi_unison::typed::check::min_length(value0.len(), 1)
                    .map_err(|problem| problem.at(format!("blobs[{:?}]", key0)))?;
            }
        }
        if let Some(value) = &self.layers {
            for (index0, value0) in value.iter().enumerate() {
                ::kumi_unison::typed::check::max_length(value0.len(), 2)
                    .map_err(|problem| problem.at(format!("layers[{}]", index0)))?;
            }
        }
        if let Some(value) = &self.grid {
            for (index0, value0) in value.iter().enumerate() {
                ::kumi_unison::typed::check::min_length(value0.len(), 1)
                    .map_err(|problem| problem.at(format!("grid[{}]", index0)))?;
                ::kumi_unison::typed::check::max_length(value0.len(), 2)
                    .map_err(|problem| problem.at(format!("grid[{}]", index0)))?;
                for (index1, value1) in value0.iter().enumerate() {
                    value1
                        .validate()
                        .map_err(|error| {
                            error.within(format!("grid[{}][{}]", index0, index1))
                        })?;
                }
            }
        }
        if let Some(value) = &self.times {
            for (index0, value0) in value.iter().enumerate() {
                ::kumi_unison::typed::check::at_least(
                        value0,
                        &::kumi_unison::Timestamp(-1000),
                    )
                    .map_err(|problem| problem.at(format!("times[{}]", index0)))?;
            }
        }
        if let Some(value) = &self.more {
            value.validate().map_err(|error| error.within("more"))?;
        }
        if let Some(value) = &self.lots {
            for (key0, value0) in value {
                value0
                    .validate()
                    .map_err(|error| error.within(format!("lots[{:?}]", key0)))?;
            }
        }
        if let Some(value) = &self.to_string {
            ::kumi_unison::typed::check::max_length(value.chars().count(), 2)
                .map_err(|problem| problem.at("toString"))?;
        }
        if let Some(value) = &self.spaces {
            {
                static PATTERN: ::kumi_unison::typed::check::Pattern = ::kumi_unison::typed::check::Pattern::new(
                    "^\\s\\S.\\w\\d$",
                );
                PATTERN.check(value).map_err(|problem| problem.at("spaces"))?;
            }
        }
        if let Some(value) = &self.letters {
            {
                static PATTERN: ::kumi_unison::typed::check::Pattern = ::kumi_unison::typed::check::Pattern::new(
                    "^[^a-f\\d_-]{2,3}$",
                );
                PATTERN.check(value).map_err(|problem| problem.at("letters"))?;
            }
        }
        if let Some(value) = &self.either {
            {
                static PATTERN: ::kumi_unison::typed::check::Pattern = ::kumi_unison::typed::check::Pattern::new(
                    "^(?:ab|c*?d)$|\\bx\\b",
                );
                PATTERN.check(value).map_err(|problem| problem.at("either"))?;
            }
        }
        if let Some(value) = &self.face {
            {
                static PATTERN: ::kumi_unison::typed::check::Pattern = ::kumi_unison::typed::check::Pattern::new(
                    "^[😀-😐]$",
                );
                PATTERN.check(value).map_err(|problem| problem.at("face"))?;
            }
        }
        if let Some(value) = &self.not {
            {
                static PATTERN: ::kumi_unison::typed::check::Pattern = ::kumi_unison::typed::check::Pattern::new(
                    "^[^\\W\\d]\\.\\/[\\]\\\\-]$",
                );
                PATTERN.check(value).map_err(|problem| problem.at("not"))?;
            }
        }
        Ok(())
    }
}

impl Default for Checked {
    fn default() -> Self {
        Self {
            text: None,
            short: None,
            whole: None,
            bounded: None,
            wide: None,
            broken: None,
            any_float: None,
            truth: None,
            at: None,
            blob: None,
            exact: None,
            blobs: None,
            anything: None,
            list: None,
            free: None,
            layers: None,
            grid: None,
            times: None,
            level: None,
            open: None,
            levels: None,
            more: None,
            lots: None,
            by_default: Self::default_by_default(),
            level_by_default: Self::default_level_by_default(),
            constructor: None,
            to_string: None,
            spaces: None,
            letters: None,
            either: None,
            face: None,
            not: None,
        }
    }
}

impl ::kumi_unison::Message for Checked {
    const NAME: &'static str = "Checked";
    fn validate(&self) -> Result<(), ::kumi_unison::ValidationError> {
        Checked::validate(self)
    }
}

/// Message Demanding.
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
pub struct Demanding {
    /// Field json.
    pub json: ::kumi_unison::Json,
    /// Field text.
    pub text: String,
    /// Field level.
    pub level: Level,
    /// Field cells.
    pub cells: Vec<Cell>,
}

#[allow(dead_code, unreachable_pub)]
impl Demanding {
    /// A message with what it has to have, and nothing else.
    pub fn new(
        json: ::kumi_unison::Json,
        text: impl Into<String>,
        cells: Vec<Cell>,
    ) -> Self {
        Self {
            json,
            text: text.into(),
            level: Self::default_level(),
            cells,
        }
    }

    fn default_level() -> Level {
        Level::Low
    }

    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(&self) -> Result<(), ::kumi_unison::ValidationError> {
        {
            let value = &self.cells;
            for (index0, value0) in value.iter().enumerate() {
                value0
                    .validate()
                    .map_err(|error| error.within(format!("cells[{}]", index0)))?;
            }
        }
        Ok(())
    }
}

impl ::kumi_unison::Message for Demanding {
    const NAME: &'static str = "Demanding";
    fn validate(&self) -> Result<(), ::kumi_unison::ValidationError> {
        Demanding::validate(self)
    }
}

/// Message Nothing.
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
pub struct Nothing {}
#[allow(dead_code, unreachable_pub)]
impl Nothing {
    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(&self) -> Result<(), ::kumi_unison::ValidationError> {
        Ok(())
    }
}

impl ::kumi_unison::Message for Nothing {
    const NAME: &'static str = "Nothing";
    fn validate(&self) -> Result<(), ::kumi_unison::ValidationError> {
        Nothing::validate(self)
    }
}

/// As many fields as anybody will ever want.
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
pub struct Wide {
    /// Field field_0.
    pub field_0: i64,
    /// Field field_1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_1: Option<String>,
    /// Field field_2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_2: Option<bool>,
    /// Field field_3.
    pub field_3: f64,
    /// Field field_4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_4: Option<::kumi_unison::Timestamp>,
    /// Field field_5.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "::kumi_unison::typed::base64_bytes"
    )]
    pub field_5: Option<Vec<u8>>,
    /// Field field_6.
    pub field_6: ::kumi_unison::Json,
    /// Field field_7.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_7: Option<Level>,
    /// Field field_8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_8: Option<Open>,
    /// Field field_9.
    pub field_9: Tags,
    /// Field field_10.
    #[serde(default = "Wide::default_field_10")]
    pub field_10: i64,
    /// Field field_11.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_11: Option<String>,
    /// Field field_12.
    pub field_12: bool,
    /// Field field_13.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_13: Option<f64>,
    /// Field field_14.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_14: Option<::kumi_unison::Timestamp>,
    /// Field field_15.
    #[serde(with = "::kumi_unison::typed::base64_bytes")]
    pub field_15: Vec<u8>,
    /// Field field_16.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_16: Option<::kumi_unison::Json>,
    /// Field field_17.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_17: Option<Level>,
    /// Field field_18.
    pub field_18: Open,
    /// Field field_19.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_19: Option<Tags>,
    /// Field field_20.
    #[serde(default = "Wide::default_field_20")]
    pub field_20: i64,
    /// Field field_21.
    pub field_21: String,
    /// Field field_22.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_22: Option<bool>,
    /// Field field_23.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_23: Option<f64>,
    /// Field field_24.
    pub field_24: ::kumi_unison::Timestamp,
    /// Field field_25.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "::kumi_unison::typed::base64_bytes"
    )]
    pub field_25: Option<Vec<u8>>,
    /// Field field_26.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_26: Option<::kumi_unison::Json>,
    /// Field field_27.
    pub field_27: Level,
    /// Field field_28.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_28: Option<Open>,
    /// Field field_29.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_29: Option<Tags>,
    /// Field field_30.
    pub field_30: i64,
    /// Field field_31.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_31: Option<String>,
    /// Field field_32.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_32: Option<bool>,
    /// Field field_33.
    pub field_33: f64,
    /// Field field_34.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_34: Option<::kumi_unison::Timestamp>,
    /// Field field_35.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "::kumi_unison::typed::base64_bytes"
    )]
    pub field_35: Option<Vec<u8>>,
    /// Field field_36.
    pub field_36: ::kumi_unison::Json,
    /// Field field_37.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_37: Option<Level>,
    /// Field field_38.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_38: Option<Open>,
    /// Field field_39.
    pub field_39: Tags,
    /// Field field_40.
    #[serde(default = "Wide::default_field_40")]
    pub field_40: i64,
    /// Field field_41.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_41: Option<String>,
    /// Field field_42.
    pub field_42: bool,
    /// Field field_43.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_43: Option<f64>,
    /// Field field_44.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_44: Option<::kumi_unison::Timestamp>,
    /// Field field_45.
    #[serde(with = "::kumi_unison::typed::base64_bytes")]
    pub field_45: Vec<u8>,
    /// Field field_46.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_46: Option<::kumi_unison::Json>,
    /// Field field_47.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_47: Option<Level>,
    /// Field field_48.
    pub field_48: Open,
    /// Field field_49.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_49: Option<Tags>,
    /// Field field_50.
    #[serde(default = "Wide::default_field_50")]
    pub field_50: i64,
    /// Field field_51.
    pub field_51: String,
    /// Field field_52.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_52: Option<bool>,
    /// Field field_53.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_53: Option<f64>,
    /// Field field_54.
    pub field_54: ::kumi_unison::Timestamp,
    /// Field field_55.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "::kumi_unison::typed::base64_bytes"
    )]
    pub field_55: Option<Vec<u8>>,
    /// Field field_56.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_56: Option<::kumi_unison::Json>,
    /// Field field_57.
    pub field_57: Level,
    /// Field field_58.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_58: Option<Open>,
    /// Field field_59.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_59: Option<Tags>,
    /// Field field_60.
    pub field_60: i64,
    /// Field field_61.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_61: Option<String>,
    /// Field field_62.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_62: Option<bool>,
    /// Field field_63.
    pub field_63: f64,
    /// Field field_64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_64: Option<::kumi_unison::Timestamp>,
    /// Field field_65.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "::kumi_unison::typed::base64_bytes"
    )]
    pub field_65: Option<Vec<u8>>,
    /// Field field_66.
    pub field_66: ::kumi_unison::Json,
    /// Field field_67.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_67: Option<Level>,
    /// Field field_68.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_68: Option<Open>,
    /// Field field_69.
    pub field_69: Tags,
    /// Field field_70.
    #[serde(default = "Wide::default_field_70")]
    pub field_70: i64,
    /// Field field_71.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_71: Option<String>,
    /// Field field_72.
    pub field_72: bool,
    /// Field field_73.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_73: Option<f64>,
    /// Field field_74.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_74: Option<::kumi_unison::Timestamp>,
    /// Field field_75.
    #[serde(with = "::kumi_unison::typed::base64_bytes")]
    pub field_75: Vec<u8>,
    /// Field field_76.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_76: Option<::kumi_unison::Json>,
    /// Field field_77.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_77: Option<Level>,
    /// Field field_78.
    pub field_78: Open,
    /// Field field_79.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_79: Option<Tags>,
    /// Field field_80.
    #[serde(default = "Wide::default_field_80")]
    pub field_80: i64,
    /// Field field_81.
    pub field_81: String,
    /// Field field_82.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_82: Option<bool>,
    /// Field field_83.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_83: Option<f64>,
    /// Field field_84.
    pub field_84: ::kumi_unison::Timestamp,
    /// Field field_85.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "::kumi_unison::typed::base64_bytes"
    )]
    pub field_85: Option<Vec<u8>>,
    /// Field field_86.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_86: Option<::kumi_unison::Json>,
    /// Field field_87.
    pub field_87: Level,
    /// Field field_88.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_88: Option<Open>,
    /// Field field_89.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_89: Option<Tags>,
    /// Field field_90.
    pub field_90: i64,
    /// Field field_91.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_91: Option<String>,
    /// Field field_92.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_92: Option<bool>,
    /// Field field_93.
    pub field_93: f64,
    /// Field field_94.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_94: Option<::kumi_unison::Timestamp>,
    /// Field field_95.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "::kumi_unison::typed::base64_bytes"
    )]
    pub field_95: Option<Vec<u8>>,
    /// Field field_96.
    pub field_96: ::kumi_unison::Json,
    /// Field field_97.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_97: Option<Level>,
    /// Field field_98.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_98: Option<Open>,
    /// Field field_99.
    pub field_99: Tags,
    /// Field field_100.
    #[serde(default = "Wide::default_field_100")]
    pub field_100: i64,
    /// Field field_101.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_101: Option<String>,
    /// Field field_102.
    pub field_102: bool,
    /// Field field_103.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_103: Option<f64>,
    /// Field field_104.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_104: Option<::kumi_unison::Timestamp>,
    /// Field field_105.
    #[serde(with = "::kumi_unison::typed::base64_bytes")]
    pub field_105: Vec<u8>,
    /// Field field_106.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_106: Option<::kumi_unison::Json>,
    /// Field field_107.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_107: Option<Level>,
    /// Field field_108.
    pub field_108: Open,
    /// Field field_109.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_109: Option<Tags>,
    /// Field field_110.
    #[serde(default = "Wide::default_field_110")]
    pub field_110: i64,
    /// Field field_111.
    pub field_111: String,
    /// Field field_112.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_112: Option<bool>,
    /// Field field_113.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_113: Option<f64>,
    /// Field field_114.
    pub field_114: ::kumi_unison::Timestamp,
    /// Field field_115.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "::kumi_unison::typed::base64_bytes"
    )]
    pub field_115: Option<Vec<u8>>,
    /// Field field_116.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_116: Option<::kumi_unison::Json>,
    /// Field field_117.
    pub field_117: Level,
    /// Field field_118.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_118: Option<Open>,
    /// Field field_119.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_119: Option<Tags>,
    /// Field field_120.
    pub field_120: i64,
    /// Field field_121.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_121: Option<String>,
    /// Field field_122.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_122: Option<bool>,
    /// Field field_123.
    pub field_123: f64,
    /// Field field_124.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_124: Option<::kumi_unison::Timestamp>,
    /// Field field_125.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "::kumi_unison::typed::base64_bytes"
    )]
    pub field_125: Option<Vec<u8>>,
    /// Field field_126.
    pub field_126: ::kumi_unison::Json,
    /// Field field_127.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_127: Option<Level>,
    /// Field field_128.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_128: Option<Open>,
    /// Field field_129.
    pub field_129: Tags,
    /// Field field_130.
    #[serde(default = "Wide::default_field_130")]
    pub field_130: i64,
    /// Field field_131.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_131: Option<String>,
    /// Field field_132.
    pub field_132: bool,
    /// Field field_133.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_133: Option<f64>,
    /// Field field_134.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_134: Option<::kumi_unison::Timestamp>,
    /// Field field_135.
    #[serde(with = "::kumi_unison::typed::base64_bytes")]
    pub field_135: Vec<u8>,
    /// Field field_136.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_136: Option<::kumi_unison::Json>,
    /// Field field_137.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_137: Option<Level>,
    /// Field field_138.
    pub field_138: Open,
    /// Field field_139.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_139: Option<Tags>,
    /// Field field_140.
    #[serde(default = "Wide::default_field_140")]
    pub field_140: i64,
    /// Field field_141.
    pub field_141: String,
    /// Field field_142.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_142: Option<bool>,
    /// Field field_143.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_143: Option<f64>,
    /// Field field_144.
    pub field_144: ::kumi_unison::Timestamp,
    /// Field field_145.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "::kumi_unison::typed::base64_bytes"
    )]
    pub field_145: Option<Vec<u8>>,
    /// Field field_146.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_146: Option<::kumi_unison::Json>,
    /// Field field_147.
    pub field_147: Level,
    /// Field field_148.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_148: Option<Open>,
    /// Field field_149.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_149: Option<Tags>,
    /// Field field_150.
    pub field_150: i64,
    /// Field field_151.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_151: Option<String>,
    /// Field field_152.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_152: Option<bool>,
    /// Field field_153.
    pub field_153: f64,
    /// Field field_154.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_154: Option<::kumi_unison::Timestamp>,
    /// Field field_155.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "::kumi_unison::typed::base64_bytes"
    )]
    pub field_155: Option<Vec<u8>>,
    /// Field field_156.
    pub field_156: ::kumi_unison::Json,
    /// Field field_157.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_157: Option<Level>,
    /// Field field_158.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_158: Option<Open>,
    /// Field field_159.
    pub field_159: Tags,
    /// Field field_160.
    #[serde(default = "Wide::default_field_160")]
    pub field_160: i64,
    /// Field field_161.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_161: Option<String>,
    /// Field field_162.
    pub field_162: bool,
    /// Field field_163.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_163: Option<f64>,
    /// Field field_164.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_164: Option<::kumi_unison::Timestamp>,
    /// Field field_165.
    #[serde(with = "::kumi_unison::typed::base64_bytes")]
    pub field_165: Vec<u8>,
    /// Field field_166.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_166: Option<::kumi_unison::Json>,
    /// Field field_167.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_167: Option<Level>,
    /// Field field_168.
    pub field_168: Open,
    /// Field field_169.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_169: Option<Tags>,
    /// Field field_170.
    #[serde(default = "Wide::default_field_170")]
    pub field_170: i64,
    /// Field field_171.
    pub field_171: String,
    /// Field field_172.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_172: Option<bool>,
    /// Field field_173.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_173: Option<f64>,
    /// Field field_174.
    pub field_174: ::kumi_unison::Timestamp,
    /// Field field_175.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "::kumi_unison::typed::base64_bytes"
    )]
    pub field_175: Option<Vec<u8>>,
    /// Field field_176.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_176: Option<::kumi_unison::Json>,
    /// Field field_177.
    pub field_177: Level,
    /// Field field_178.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_178: Option<Open>,
    /// Field field_179.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_179: Option<Tags>,
    /// Field field_180.
    pub field_180: i64,
    /// Field field_181.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_181: Option<String>,
    /// Field field_182.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_182: Option<bool>,
    /// Field field_183.
    pub field_183: f64,
    /// Field field_184.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_184: Option<::kumi_unison::Timestamp>,
    /// Field field_185.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "::kumi_unison::typed::base64_bytes"
    )]
    pub field_185: Option<Vec<u8>>,
    /// Field field_186.
    pub field_186: ::kumi_unison::Json,
    /// Field field_187.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_187: Option<Level>,
    /// Field field_188.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_188: Option<Open>,
    /// Field field_189.
    pub field_189: Tags,
    /// Field field_190.
    #[serde(default = "Wide::default_field_190")]
    pub field_190: i64,
    /// Field field_191.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_191: Option<String>,
    /// Field field_192.
    pub field_192: bool,
    /// Field field_193.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_193: Option<f64>,
    /// Field field_194.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_194: Option<::kumi_unison::Timestamp>,
    /// Field field_195.
    #[serde(with = "::kumi_unison::typed::base64_bytes")]
    pub field_195: Vec<u8>,
    /// Field field_196.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_196: Option<::kumi_unison::Json>,
    /// Field field_197.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_197: Option<Level>,
    /// Field field_198.
    pub field_198: Open,
    /// Field field_199.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_199: Option<Tags>,
}

#[allow(dead_code, unreachable_pub)]
impl Wide {
    /// A message with what it has to have, and nothing else.
    #[allow(clippy::too_many_arguments)]
    pub fn new(
        field_0: i64,
        field_3: f64,
        field_6: ::kumi_unison::Json,
        field_9: Tags,
        field_12: bool,
        field_15: Vec<u8>,
        field_18: Open,
        field_21: impl Into<String>,
        field_24: ::kumi_unison::Timestamp,
        field_27: Level,
        field_30: i64,
        field_33: f64,
        field_36: ::kumi_unison::Json,
        field_39: Tags,
        field_42: bool,
        field_45: Vec<u8>,
        field_48: Open,
        field_51: impl Into<String>,
        field_54: ::kumi_unison::Timestamp,
        field_57: Level,
        field_60: i64,
        field_63: f64,
        field_66: ::kumi_unison::Json,
        field_69: Tags,
        field_72: bool,
        field_75: Vec<u8>,
        field_78: Open,
        field_81: impl Into<String>,
        field_84: ::kumi_unison::Timestamp,
        field_87: Level,
        field_90: i64,
        field_93: f64,
        field_96: ::kumi_unison::Json,
        field_99: Tags,
        field_102: bool,
        field_105: Vec<u8>,
        field_108: Open,
        field_111: impl Into<String>,
        field_114: ::kumi_unison::Timestamp,
        field_117: Level,
        field_120: i64,
        field_123: f64,
        field_126: ::kumi_unison::Json,
        field_129: Tags,
        field_132: bool,
        field_135: Vec<u8>,
        field_138: Open,
        field_141: impl Into<String>,
        field_144: ::kumi_unison::Timestamp,
        field_147: Level,
        field_150: i64,
        field_153: f64,
        field_156: ::kumi_unison::Json,
        field_159: Tags,
        field_162: bool,
        field_165: Vec<u8>,
        field_168: Open,
        field_171: impl Into<String>,
        field_174: ::kumi_unison::Timestamp,
        field_177: Level,
        field_180: i64,
        field_183: f64,
        field_186: ::kumi_unison::Json,
        field_189: Tags,
        field_192: bool,
        field_195: Vec<u8>,
        field_198: Open,
    ) -> Self {
        Self {
            field_0,
            field_1: None,
            field_2: None,
            field_3,
            field_4: None,
            field_5: None,
            field_6,
            field_7: None,
            field_8: None,
            field_9,
            field_10: Self::default_field_10(),
            field_11: None,
            field_12,
            field_13: None,
            field_14: None,
            field_15,
            field_16: None,
            field_17: None,
            field_18,
            field_19: None,
            field_20: Self::default_field_20(),
            field_21: field_21.into(),
            field_22: None,
            field_23: None,
            field_24,
            field_25: None,
            field_26: None,
            field_27,
            field_28: None,
            field_29: None,
            field_30,
            field_31: None,
            field_32: None,
            field_33,
            field_34: None,
            field_35: None,
            field_36,
            field_37: None,
            field_38: None,
            field_39,
            field_40: Self::default_field_40(),
            field_41: None,
            field_42,
            field_43: None,
            field_44: None,
            field_45,
            field_46: None,
            field_47: None,
            field_48,
            field_49: None,
            field_50: Self::default_field_50(),
            field_51: field_51.into(),
            field_52: None,
            field_53: None,
            field_54,
            field_55: None,
            field_56: None,
            field_57,
            field_58: None,
            field_59: None,
            field_60,
            field_61: None,
            field_62: None,
            field_63,
            field_64: None,
            field_65: None,
            field_66,
            field_67: None,
            field_68: None,
            field_69,
            field_70: Self::default_field_70(),
            field_71: None,
            field_72,
            field_73: None,
            field_74: None,
            field_75,
            field_76: None,
            field_77: None,
            field_78,
            field_79: None,
            field_80: Self::default_field_80(),
            field_81: field_81.into(),
            field_82: None,
            field_83: None,
            field_84,
            field_85: None,
            field_86: None,
            field_87,
            field_88: None,
            field_89: None,
            field_90,
            field_91: None,
            field_92: None,
            field_93,
            field_94: None,
            field_95: None,
            field_96,
            field_97: None,
            field_98: None,
            field_99,
            field_100: Self::default_field_100(),
            field_101: None,
            field_102,
            field_103: None,
            field_104: None,
            field_105,
            field_106: None,
            field_107: None,
            field_108,
            field_109: None,
            field_110: Self::default_field_110(),
            field_111: field_111.into(),
            field_112: None,
            field_113: None,
            field_114,
            field_115: None,
            field_116: None,
            field_117,
            field_118: None,
            field_119: None,
            field_120,
            field_121: None,
            field_122: None,
            field_123,
            field_124: None,
            field_125: None,
            field_126,
            field_127: None,
            field_128: None,
            field_129,
            field_130: Self::default_field_130(),
            field_131: None,
            field_132,
            field_133: None,
            field_134: None,
            field_135,
            field_136: None,
            field_137: None,
            field_138,
            field_139: None,
            field_140: Self::default_field_140(),
            field_141: field_141.into(),
            field_142: None,
            field_143: None,
            field_144,
            field_145: None,
            field_146: None,
            field_147,
            field_148: None,
            field_149: None,
            field_150,
            field_151: None,
            field_152: None,
            field_153,
            field_154: None,
            field_155: None,
            field_156,
            field_157: None,
            field_158: None,
            field_159,
            field_160: Self::default_field_160(),
            field_161: None,
            field_162,
            field_163: None,
            field_164: None,
            field_165,
            field_166: None,
            field_167: None,
            field_168,
            field_169: None,
            field_170: Self::default_field_170(),
            field_171: field_171.into(),
            field_172: None,
            field_173: None,
            field_174,
            field_175: None,
            field_176: None,
            field_177,
            field_178: None,
            field_179: None,
            field_180,
            field_181: None,
            field_182: None,
            field_183,
            field_184: None,
            field_185: None,
            field_186,
            field_187: None,
            field_188: None,
            field_189,
            field_190: Self::default_field_190(),
            field_191: None,
            field_192,
            field_193: None,
            field_194: None,
            field_195,
            field_196: None,
            field_197: None,
            field_198,
            field_199: None,
        }
    }

    fn default_field_10() -> i64 {
        10
    }

    fn default_field_20() -> i64 {
        20
    }

    fn default_field_40() -> i64 {
        40
    }

    fn default_field_50() -> i64 {
        50
    }

    fn default_field_70() -> i64 {
        70
    }

    fn default_field_80() -> i64 {
        80
    }

    fn default_field_100() -> i64 {
        100
    }

    fn default_field_110() -> i64 {
        110
    }

    fn default_field_130() -> i64 {
        130
    }

    fn default_field_140() -> i64 {
        140
    }

    fn default_field_160() -> i64 {
        160
    }

    fn default_field_170() -> i64 {
        170
    }

    fn default_field_190() -> i64 {
        190
    }

    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(&self) -> Result<(), ::kumi_unison::ValidationError> {
        {
            let value = &self.field_3;
            ::kumi_unison::typed::check::finite(*value)
                .map_err(|problem| problem.at("field_3"))?;
        }
        if let Some(value) = &self.field_13 {
            ::kumi_unison::typed::check::finite(*value)
                .map_err(|problem| problem.at("field_13"))?;
        }
        if let Some(value) = &self.field_23 {
            ::kumi_unison::typed::check::finite(*value)
                .map_err(|problem| problem.at("field_23"))?;
        }
        {
            let value = &self.field_33;
            ::kumi_unison::typed::check::finite(*value)
                .map_err(|problem| problem.at("field_33"))?;
        }
        if let Some(value) = &self.field_43 {
            ::kumi_unison::typed::check::finite(*value)
                .map_err(|problem| problem.at("field_43"))?;
        }
        if let Some(value) = &self.field_53 {
            ::kumi_unison::typed::check::finite(*value)
                .map_err(|problem| problem.at("field_53"))?;
        }
        {
            let value = &self.field_63;
            ::kumi_unison::typed::check::finite(*value)
                .map_err(|problem| problem.at("field_63"))?;
        }
        if let Some(value) = &self.field_73 {
            ::kumi_unison::typed::check::finite(*value)
                .map_err(|problem| problem.at("field_73"))?;
        }
        if let Some(value) = &self.field_83 {
            ::kumi_unison::typed::check::finite(*value)
                .map_err(|problem| problem.at("field_83"))?;
        }
        {
            let value = &self.field_93;
            ::kumi_unison::typed::check::finite(*value)
                .map_err(|problem| problem.at("field_93"))?;
        }
        if let Some(value) = &self.field_103 {
            ::kumi_unison::typed::check::finite(*value)
                .map_err(|problem| problem.at("field_103"))?;
        }
        if let Some(value) = &self.field_113 {
            ::kumi_unison::typed::check::finite(*value)
                .map_err(|problem| problem.at("field_113"))?;
        }
        {
            let value = &self.field_123;
            ::kumi_unison::typed::check::finite(*value)
                .map_err(|problem| problem.at("field_123"))?;
        }
        if let Some(value) = &self.field_133 {
            ::kumi_unison::typed::check::finite(*value)
                .map_err(|problem| problem.at("field_133"))?;
        }
        if let Some(value) = &self.field_143 {
            ::kumi_unison::typed::check::finite(*value)
                .map_err(|problem| problem.at("field_143"))?;
        }
        {
            let value = &self.field_153;
            ::kumi_unison::typed::check::finite(*value)
                .map_err(|problem| problem.at("field_153"))?;
        }
        if let Some(value) = &self.field_163 {
            ::kumi_unison::typed::check::finite(*value)
                .map_err(|problem| problem.at("field_163"))?;
        }
        if let Some(value) = &self.field_173 {
            ::kumi_unison::typed::check::finite(*value)
                .map_err(|problem| problem.at("field_173"))?;
        }
        {
            let value = &self.field_183;
            ::kumi_unison::typed::check::finite(*value)
                .map_err(|problem| problem.at("field_183"))?;
        }
        if let Some(value) = &self.field_193 {
            ::kumi_unison::typed::check::finite(*value)
                .map_err(|problem| problem.at("field_193"))?;
        }
        Ok(())
    }
}

impl ::kumi_unison::Message for Wide {
    const NAME: &'static str = "Wide";
    fn validate(&self) -> Result<(), ::kumi_unison::ValidationError> {
        Wide::validate(self)
    }
}

/// Asks.
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
pub struct GetSomeThing {
    /// Field cells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cells: Option<Grid>,
}

#[allow(dead_code, unreachable_pub)]
impl GetSomeThing {
    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(&self) -> Result<(), ::kumi_unison::ValidationError> {
        if let Some(value) = &self.cells {
            for (index0, value0) in value.iter().enumerate() {
                ::kumi_unison::typed::check::min_length(value0.len(), 1)
                    .map_err(|problem| problem.at(format!("cells[{}]", index0)))?;
                ::kumi_unison::typed::check::max_length(value0.len(), 2)
                    .map_err(|problem| problem.at(format!("cells[{}]", index0)))?;
                for (index1, value1) in value0.iter().enumerate() {
                    value1
                        .validate()
                        .map_err(|error| {
                            error.within(format!("cells[{}][{}]", index0, index1))
                        })?;
                }
            }
        }
        Ok(())
    }
}

impl ::kumi_unison::Message for GetSomeThing {
    const NAME: &'static str = "get.some-Thing";
    fn validate(&self) -> Result<(), ::kumi_unison::ValidationError> {
        GetSomeThing::validate(self)
    }
}

/// Answers.
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
pub struct GotIt {
    /// Field cube.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cube: Option<Cube>,
    /// Field initial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial: Option<Initial>,
}

#[allow(dead_code, unreachable_pub)]
impl GotIt {
    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(&self) -> Result<(), ::kumi_unison::ValidationError> {
        if let Some(value) = &self.cube {
            for (key0, value0) in value {
                for (index1, value1) in value0.iter().enumerate() {
                    ::kumi_unison::typed::check::min_length(value1.len(), 1)
                        .map_err(|problem| {
                            problem.at(format!("cube[{:?}][{}]", key0, index1))
                        })?;
                    ::kumi_unison::typed::check::max_length(value1.len(), 2)
                        .map_err(|problem| {
                            problem.at(format!("cube[{:?}][{}]", key0, index1))
                        })?;
                    for (index2, value2) in value1.iter().enumerate() {
                        value2
                            .validate()
                            .map_err(|error| {
                                error
                                    .within(format!("cube[{:?}][{}][{}]", key0, index1, index2))
                            })?;
                    }
                }
            }
        }
        if let Some(value) = &self.initial {
            value.validate().map_err(|error| error.within("initial"))?;
        }
        Ok(())
    }
}

impl ::kumi_unison::Message for GotIt {
    const NAME: &'static str = "got_it";
    fn validate(&self) -> Result<(), ::kumi_unison::ValidationError> {
        GotIt::validate(self)
    }
}

/// Message int.
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
pub struct Int {
    /// Field n.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n: Option<i64>,
}

#[allow(dead_code, unreachable_pub)]
impl Int {
    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(&self) -> Result<(), ::kumi_unison::ValidationError> {
        Ok(())
    }
}

impl ::kumi_unison::Message for Int {
    const NAME: &'static str = "int";
    fn validate(&self) -> Result<(), ::kumi_unison::ValidationError> {
        Int::validate(self)
    }
}

/// Message map.
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
pub struct Map {}
#[allow(dead_code, unreachable_pub)]
impl Map {
    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(&self) -> Result<(), ::kumi_unison::ValidationError> {
        Ok(())
    }
}

impl ::kumi_unison::Message for Map {
    const NAME: &'static str = "map";
    fn validate(&self) -> Result<(), ::kumi_unison::ValidationError> {
        Map::validate(self)
    }
}

/// Message Alpha.
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
pub struct Alpha {
    /// Field a.
    pub a: i64,
}

#[allow(dead_code, unreachable_pub)]
impl Alpha {
    /// A message with what it has to have, and nothing else.
    pub fn new(a: i64) -> Self {
        Self { a }
    }

    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(&self) -> Result<(), ::kumi_unison::ValidationError> {
        Ok(())
    }
}

impl ::kumi_unison::Message for Alpha {
    const NAME: &'static str = "Alpha";
    fn validate(&self) -> Result<(), ::kumi_unison::ValidationError> {
        Alpha::validate(self)
    }
}

/// Message Beta.
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
pub struct Beta {}
#[allow(dead_code, unreachable_pub)]
impl Beta {
    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(&self) -> Result<(), ::kumi_unison::ValidationError> {
        Ok(())
    }
}

impl ::kumi_unison::Message for Beta {
    const NAME: &'static str = "Beta";
    fn validate(&self) -> Result<(), ::kumi_unison::ValidationError> {
        Beta::validate(self)
    }
}

/// Message Gamma.
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
pub struct Gamma {}
#[allow(dead_code, unreachable_pub)]
impl Gamma {
    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(&self) -> Result<(), ::kumi_unison::ValidationError> {
        Ok(())
    }
}

impl ::kumi_unison::Message for Gamma {
    const NAME: &'static str = "Gamma";
    fn validate(&self) -> Result<(), ::kumi_unison::ValidationError> {
        Gamma::validate(self)
    }
}

/// Message Delta.
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
pub struct Delta {}
#[allow(dead_code, unreachable_pub)]
impl Delta {
    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(&self) -> Result<(), ::kumi_unison::ValidationError> {
        Ok(())
    }
}

impl ::kumi_unison::Message for Delta {
    const NAME: &'static str = "Delta";
    fn validate(&self) -> Result<(), ::kumi_unison::ValidationError> {
        Delta::validate(self)
    }
}

/// Message Ask.
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
pub struct Ask {}
#[allow(dead_code, unreachable_pub)]
impl Ask {
    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(&self) -> Result<(), ::kumi_unison::ValidationError> {
        Ok(())
    }
}

impl ::kumi_unison::Message for Ask {
    const NAME: &'static str = "Ask";
    fn validate(&self) -> Result<(), ::kumi_unison::ValidationError> {
        Ask::validate(self)
    }
}

/// Message NothingAtAll.
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
pub struct NothingAtAll {}
#[allow(dead_code, unreachable_pub)]
impl NothingAtAll {
    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(&self) -> Result<(), ::kumi_unison::ValidationError> {
        Ok(())
    }
}

impl ::kumi_unison::Message for NothingAtAll {
    const NAME: &'static str = "NothingAtAll";
    fn validate(&self) -> Result<(), ::kumi_unison::ValidationError> {
        NothingAtAll::validate(self)
    }
}

/// Message Placed.
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
pub struct Placed {
    /// Field x.
    #[serde(default = "Placed::default_x")]
    pub x: Level,
}

#[allow(dead_code, unreachable_pub)]
impl Placed {
    fn default_x() -> Level {
        Level::None
    }

    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(&self) -> Result<(), ::kumi_unison::ValidationError> {
        Ok(())
    }
}

impl Default for Placed {
    fn default() -> Self {
        Self { x: Self::default_x() }
    }
}

impl ::kumi_unison::Message for Placed {
    const NAME: &'static str = "Placed";
    fn validate(&self) -> Result<(), ::kumi_unison::ValidationError> {
        Placed::validate(self)
    }
}

/// Message InPlaceResponse.
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
pub struct InPlaceResponse {
    /// Field y.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub y: Option<Vec<Open>>,
}

#[allow(dead_code, unreachable_pub)]
impl InPlaceResponse {
    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(&self) -> Result<(), ::kumi_unison::ValidationError> {
        Ok(())
    }
}

impl ::kumi_unison::Message for InPlaceResponse {
    const NAME: &'static str = "InPlaceResponse";
    fn validate(&self) -> Result<(), ::kumi_unison::ValidationError> {
        InPlaceResponse::validate(self)
    }
}

/// Hash over channel `a.b-c`. Peers with the same hash may use the binary format.
#[allow(dead_code, unreachable_pub)]
pub const A_B_C_CHANNEL_HASH: [u8; 32] = [
    0x8f, 0x8d, 0xe7, 0xaa, 0x52, 0x5a, 0x27, 0x2a, 0xf3, 0x85, 0xd0, 0x8c, 0x7d, 0x4d,
    0x49, 0x44, 0x7d, 0x5d, 0x2c, 0x8d, 0xcd, 0x85, 0xfa, 0xa0, 0xaf, 0x58, 0xcf, 0xe4,
    0xa5, 0xed, 0xda, 0xc4,
];

/// What channel `a.b-c` is, for a server that offers it.
#[allow(dead_code, unreachable_pub)]
pub fn a_b_c_spec() -> ::kumi_unison::ChannelSpec {
    ::kumi_unison::ChannelSpec::new("a.b-c")
        .direction(::kumi_unison::ChannelDirection::ClientToServer)
        .lifetime(::kumi_unison::Lifetime::Persistent)
        .delivery(::kumi_unison::Delivery::Reliable)
        .event_policy(::kumi_unison::EventPolicy::DropOldest)
        .schema(
            ::kumi_unison::SchemaId::new(A_B_C_CHANNEL_HASH, UNUSUAL_PROTOCOL_VERSION),
        )
}

/// With what a client opens channel `a.b-c`.
#[allow(dead_code, unreachable_pub)]
pub fn a_b_c_options() -> ::kumi_unison::ChannelOptions {
    ::kumi_unison::ChannelOptions::new()
        .direction(::kumi_unison::ChannelDirection::ClientToServer)
        .lifetime(::kumi_unison::Lifetime::Persistent)
        .delivery(::kumi_unison::Delivery::Reliable)
        .event_policy(::kumi_unison::EventPolicy::DropOldest)
        .schema(
            ::kumi_unison::SchemaId::new(A_B_C_CHANNEL_HASH, UNUSUAL_PROTOCOL_VERSION),
        )
}

/// The client's side of channel `a.b-c`.
///
/// As a node.
///
/// Clones are the same channel.
#[derive(Clone, Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct ABCClient {
    channel: ::kumi_unison::TypedChannel,
}

#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
impl ABCClient {
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

    /// Asks.
    ///
    /// Idempotent: it is sent again when the connection breaks before its answer came.
    pub async fn get_some_thing(
        &self,
        request: &GetSomeThing,
    ) -> Result<GotIt, ::kumi_unison::NetworkError> {
        self.channel.call("get.some-Thing", request, true).await
    }

    /// Asks `Wide`.
    pub async fn wide(
        &self,
        request: &Wide,
    ) -> Result<Wide, ::kumi_unison::NetworkError> {
        self.channel.call("Wide", request, false).await
    }

    /// Asks `Nothing`.
    pub async fn nothing(
        &self,
        request: &Nothing,
    ) -> Result<Nothing, ::kumi_unison::NetworkError> {
        self.channel.call("Nothing", request, false).await
    }

    /// Asks `Checked`.
    pub async fn checked(
        &self,
        request: &Checked,
    ) -> Result<Checked, ::kumi_unison::NetworkError> {
        self.channel.call("Checked", request, false).await
    }

    /// Asks `Mutual`.
    pub async fn mutual(
        &self,
        request: &Mutual,
    ) -> Result<(), ::kumi_unison::NetworkError> {
        self.channel.call("Mutual", request, false).await
    }

    /// Sends `Mutually`.
    ///
    /// What happens when the other side does not keep up is the channel's policy.
    pub async fn send_mutually(
        &self,
        event: &Mutually,
    ) -> Result<(), ::kumi_unison::NetworkError> {
        self.channel.emit("Mutually", event).await
    }

    /// Sends `Demanding`.
    ///
    /// What happens when the other side does not keep up is the channel's policy.
    pub async fn send_demanding(
        &self,
        event: &Demanding,
    ) -> Result<(), ::kumi_unison::NetworkError> {
        self.channel.emit("Demanding", event).await
    }

    /// Every `Mutually`, from now on.
    ///
    /// While the stream lives, these events come to it and to nobody else. Events of other names wait for somebody to take them; `event_streams` takes all of them at once.
    pub fn mutually_events(&self) -> ::kumi_unison::EventStream<Mutually> {
        self.channel.events("Mutually")
    }

    /// Every `Demanding`, from now on.
    ///
    /// While the stream lives, these events come to it and to nobody else. Events of other names wait for somebody to take them; `event_streams` takes all of them at once.
    pub fn demanding_events(&self) -> ::kumi_unison::EventStream<Demanding> {
        self.channel.events("Demanding")
    }

    /// Every `Initial`, from now on.
    ///
    /// While the stream lives, these events come to it and to nobody else. Events of other names wait for somebody to take them; `event_streams` takes all of them at once.
    pub fn initial_events(&self) -> ::kumi_unison::EventStream<Initial> {
        self.channel.events("Initial")
    }

    /// A stream for every event of the channel.
    ///
    /// Whatever has no stream, because it is unknown or its stream was dropped, is thrown away on arrival.
    pub fn event_streams(&self) -> ABCEventStreams {
        let streams = ABCEventStreams {
            mutually: self.mutually_events(),
            demanding: self.demanding_events(),
            initial: self.initial_events(),
        };
        self.raw_channel().discard_events();
        streams
    }
}

impl From<::kumi_unison::UnisonChannel> for ABCClient {
    fn from(channel: ::kumi_unison::UnisonChannel) -> Self {
        Self::from_channel(channel)
    }
}

/// The server's side of channel `a.b-c`: one client that has it open.
///
/// As a node.
///
/// Clones are the same channel.
#[derive(Clone, Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct ABCPeer {
    channel: ::kumi_unison::TypedChannel,
}

#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
impl ABCPeer {
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

    /// Sends `Mutually`.
    ///
    /// What happens when the other side does not keep up is the channel's policy.
    pub async fn send_mutually(
        &self,
        event: &Mutually,
    ) -> Result<(), ::kumi_unison::NetworkError> {
        self.channel.emit("Mutually", event).await
    }

    /// Sends `Demanding`.
    ///
    /// What happens when the other side does not keep up is the channel's policy.
    pub async fn send_demanding(
        &self,
        event: &Demanding,
    ) -> Result<(), ::kumi_unison::NetworkError> {
        self.channel.emit("Demanding", event).await
    }

    /// Sends `Initial`.
    ///
    /// What happens when the other side does not keep up is the channel's policy.
    pub async fn send_initial(
        &self,
        event: &Initial,
    ) -> Result<(), ::kumi_unison::NetworkError> {
        self.channel.emit("Initial", event).await
    }
}

impl From<::kumi_unison::UnisonChannel> for ABCPeer {
    fn from(channel: ::kumi_unison::UnisonChannel) -> Self {
        Self::from_channel(channel)
    }
}

/// A stream for every event that the server sends on channel `a.b-c`.
#[derive(Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct ABCEventStreams {
    /// Every `Mutually`.
    pub mutually: ::kumi_unison::EventStream<Mutually>,
    /// Every `Demanding`.
    pub demanding: ::kumi_unison::EventStream<Demanding>,
    /// Every `Initial`.
    pub initial: ::kumi_unison::EventStream<Initial>,
}

/// What a server does on channel `a.b-c`.
///
/// As a node.
///
/// One value serves all clients; methods run at the same time.
#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
pub trait ABCService: Send + Sync + 'static {
    /// Asks.
    ///
    /// Idempotent: it may come twice, and has to mean the same as once.
    fn get_some_thing(
        &self,
        call: ::kumi_unison::Call<ABCPeer>,
        request: GetSomeThing,
    ) -> impl ::core::future::Future<
        Output = Result<GotIt, ::kumi_unison::RemoteError>,
    > + Send;
    /// Answers `Wide`.
    fn wide(
        &self,
        call: ::kumi_unison::Call<ABCPeer>,
        request: Wide,
    ) -> impl ::core::future::Future<
        Output = Result<Wide, ::kumi_unison::RemoteError>,
    > + Send;
    /// Answers `Nothing`.
    fn nothing(
        &self,
        call: ::kumi_unison::Call<ABCPeer>,
        request: Nothing,
    ) -> impl ::core::future::Future<
        Output = Result<Nothing, ::kumi_unison::RemoteError>,
    > + Send;
    /// Answers `Checked`.
    fn checked(
        &self,
        call: ::kumi_unison::Call<ABCPeer>,
        request: Checked,
    ) -> impl ::core::future::Future<
        Output = Result<Checked, ::kumi_unison::RemoteError>,
    > + Send;
    /// Answers `Mutual`.
    fn mutual(
        &self,
        call: ::kumi_unison::Call<ABCPeer>,
        request: Mutual,
    ) -> impl ::core::future::Future<
        Output = Result<(), ::kumi_unison::RemoteError>,
    > + Send;
    /// A client sent `Mutually`.
    ///
    /// Events of one client are handled one after the other. Unless implemented, they are ignored.
    fn mutually(
        &self,
        peer: &ABCPeer,
        event: Mutually,
    ) -> impl ::core::future::Future<Output = ()> + Send {
        let _ = (peer, event);
        async {}
    }

    /// A client sent `Demanding`.
    ///
    /// Events of one client are handled one after the other. Unless implemented, they are ignored.
    fn demanding(
        &self,
        peer: &ABCPeer,
        event: Demanding,
    ) -> impl ::core::future::Future<Output = ()> + Send {
        let _ = (peer, event);
        async {}
    }

    /// A client has opened the channel.
    ///
    /// Runs beside everything else, and is dropped when the channel ends; a loop that sends events may live here.
    fn channel_opened(
        &self,
        peer: ABCPeer,
    ) -> impl ::core::future::Future<Output = ()> + Send {
        let _ = peer;
        async {}
    }

    /// The channel of a client has ended.
    fn channel_closed(
        &self,
        peer: &ABCPeer,
    ) -> impl ::core::future::Future<Output = ()> + Send {
        let _ = peer;
        async {}
    }
}

/// Offers channel `a.b-c` at a server, answered by an implementation.
#[allow(dead_code, unreachable_pub)]
pub fn register_a_b_c<S: ABCService>(
    server: &impl AsRef<::kumi_unison::ChannelRegistry>,
    implementation: S,
) {
    register_a_b_c_with(server, a_b_c_spec(), implementation);
}

/// As `register_a_b_c`, with more than the schema says, such as what happens to events of a slow client.
#[allow(dead_code, unreachable_pub)]
pub fn register_a_b_c_with<S: ABCService>(
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
            serve_a_b_c(::std::sync::Arc::clone(&implementation), channel),
        );
}

#[allow(dead_code, unreachable_pub)]
async fn serve_a_b_c<S: ABCService>(
    implementation: ::std::sync::Arc<S>,
    channel: ::kumi_unison::UnisonChannel,
) -> Result<(), ::kumi_unison::NetworkError> {
    let peer = ABCPeer::from_channel(channel.clone());
    let answering = ::std::sync::Arc::clone(&implementation);
    channel
        .set_service(move |request: ::kumi_unison::IncomingRequest| {
            let implementation = ::std::sync::Arc::clone(&answering);
            async move {
                match request.method() {
                    "get.some-Thing" => {
                        ::kumi_unison::typed::answer(
                                request,
                                |call, message| ABCService::get_some_thing(
                                    &*implementation,
                                    call,
                                    message,
                                ),
                            )
                            .await
                    }
                    "Wide" => {
                        ::kumi_unison::typed::answer(
                                request,
                                |call, message| ABCService::wide(
                                    &*implementation,
                                    call,
                                    message,
                                ),
                            )
                            .await
                    }
                    "Nothing" => {
                        ::kumi_unison::typed::answer(
                                request,
                                |call, message| ABCService::nothing(
                                    &*implementation,
                                    call,
                                    message,
                                ),
                            )
                            .await
                    }
                    "Checked" => {
                        ::kumi_unison::typed::answer(
                                request,
                                |call, message| ABCService::checked(
                                    &*implementation,
                                    call,
                                    message,
                                ),
                            )
                            .await
                    }
                    "Mutual" => {
                        ::kumi_unison::typed::answer(
                                request,
                                |call, message| ABCService::mutual(
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
                Mutually,
            >(&message, "Mutually") {
                ABCService::mutually(&*implementation, &peer, event).await;
            } else if let Some(event) = ::kumi_unison::typed::event_named::<
                Demanding,
            >(&message, "Demanding") {
                ABCService::demanding(&*implementation, &peer, event).await;
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

/// Hash over channel `quiet`. Peers with the same hash may use the binary format.
#[allow(dead_code, unreachable_pub)]
pub const QUIET_CHANNEL_HASH: [u8; 32] = [
    0x05, 0x3f, 0x3c, 0xd7, 0xc6, 0xdb, 0x64, 0x27, 0xe8, 0xc0, 0x50, 0x95, 0x33, 0xe0,
    0x61, 0xe6, 0xed, 0x41, 0xb5, 0x75, 0x8b, 0xe7, 0x2a, 0xe7, 0xcf, 0x51, 0x66, 0x77,
    0x65, 0x74, 0xba, 0xc0,
];

/// What channel `quiet` is, for a server that offers it.
#[allow(dead_code, unreachable_pub)]
pub fn quiet_spec() -> ::kumi_unison::ChannelSpec {
    ::kumi_unison::ChannelSpec::new("quiet")
        .direction(::kumi_unison::ChannelDirection::ServerToClient)
        .lifetime(::kumi_unison::Lifetime::Transient)
        .delivery(::kumi_unison::Delivery::Reliable)
        .event_policy(::kumi_unison::EventPolicy::DropOldest)
        .schema(
            ::kumi_unison::SchemaId::new(QUIET_CHANNEL_HASH, UNUSUAL_PROTOCOL_VERSION),
        )
}

/// With what a client opens channel `quiet`.
#[allow(dead_code, unreachable_pub)]
pub fn quiet_options() -> ::kumi_unison::ChannelOptions {
    ::kumi_unison::ChannelOptions::new()
        .direction(::kumi_unison::ChannelDirection::ServerToClient)
        .lifetime(::kumi_unison::Lifetime::Transient)
        .delivery(::kumi_unison::Delivery::Reliable)
        .event_policy(::kumi_unison::EventPolicy::DropOldest)
        .schema(
            ::kumi_unison::SchemaId::new(QUIET_CHANNEL_HASH, UNUSUAL_PROTOCOL_VERSION),
        )
}

/// The client's side of channel `quiet`.
///
/// Clones are the same channel.
#[derive(Clone, Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct QuietClient {
    channel: ::kumi_unison::TypedChannel,
}

#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
impl QuietClient {
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

    /// Every `Nothing`, from now on.
    ///
    /// While the stream lives, these events come to it and to nobody else. Events of other names wait for somebody to take them; `event_streams` takes all of them at once.
    pub fn nothing_events(&self) -> ::kumi_unison::EventStream<Nothing> {
        self.channel.events("Nothing")
    }

    /// A stream for every event of the channel.
    ///
    /// Whatever has no stream, because it is unknown or its stream was dropped, is thrown away on arrival.
    pub fn event_streams(&self) -> QuietEventStreams {
        let streams = QuietEventStreams {
            nothing: self.nothing_events(),
        };
        self.raw_channel().discard_events();
        streams
    }
}

impl From<::kumi_unison::UnisonChannel> for QuietClient {
    fn from(channel: ::kumi_unison::UnisonChannel) -> Self {
        Self::from_channel(channel)
    }
}

/// The server's side of channel `quiet`: one client that has it open.
///
/// Clones are the same channel.
#[derive(Clone, Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct QuietPeer {
    channel: ::kumi_unison::TypedChannel,
}

#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
impl QuietPeer {
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

    /// Sends `Nothing`.
    ///
    /// What happens when the other side does not keep up is the channel's policy.
    pub async fn send_nothing(
        &self,
        event: &Nothing,
    ) -> Result<(), ::kumi_unison::NetworkError> {
        self.channel.emit("Nothing", event).await
    }
}

impl From<::kumi_unison::UnisonChannel> for QuietPeer {
    fn from(channel: ::kumi_unison::UnisonChannel) -> Self {
        Self::from_channel(channel)
    }
}

/// A stream for every event that the server sends on channel `quiet`.
#[derive(Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct QuietEventStreams {
    /// Every `Nothing`.
    pub nothing: ::kumi_unison::EventStream<Nothing>,
}

/// What a server does on channel `quiet`.
///
/// One value serves all clients; methods run at the same time.
#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
pub trait QuietService: Send + Sync + 'static {
    /// A client has opened the channel.
    ///
    /// Runs beside everything else, and is dropped when the channel ends; a loop that sends events may live here.
    fn channel_opened(
        &self,
        peer: QuietPeer,
    ) -> impl ::core::future::Future<Output = ()> + Send {
        let _ = peer;
        async {}
    }

    /// The channel of a client has ended.
    fn channel_closed(
        &self,
        peer: &QuietPeer,
    ) -> impl ::core::future::Future<Output = ()> + Send {
        let _ = peer;
        async {}
    }
}

/// Offers channel `quiet` at a server, answered by an implementation.
#[allow(dead_code, unreachable_pub)]
pub fn register_quiet<S: QuietService>(
    server: &impl AsRef<::kumi_unison::ChannelRegistry>,
    implementation: S,
) {
    register_quiet_with(server, quiet_spec(), implementation);
}

/// As `register_quiet`, with more than the schema says, such as what happens to events of a slow client.
#[allow(dead_code, unreachable_pub)]
pub fn register_quiet_with<S: QuietService>(
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
            serve_quiet(::std::sync::Arc::clone(&implementation), channel),
        );
}

#[allow(dead_code, unreachable_pub)]
async fn serve_quiet<S: QuietService>(
    implementation: ::std::sync::Arc<S>,
    channel: ::kumi_unison::UnisonChannel,
) -> Result<(), ::kumi_unison::NetworkError> {
    let peer = QuietPeer::from_channel(channel.clone());
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

/// Hash over channel `loud`. Peers with the same hash may use the binary format.
#[allow(dead_code, unreachable_pub)]
pub const LOUD_CHANNEL_HASH: [u8; 32] = [
    0x3b, 0x85, 0x67, 0x8d, 0xd7, 0xa5, 0x9b, 0x09, 0xe4, 0xac, 0x44, 0x92, 0x76, 0x53,
    0xd0, 0xce, 0x49, 0x0c, 0xb4, 0x29, 0xd1, 0x9b, 0xa8, 0xd5, 0xe5, 0x9a, 0x6e, 0x46,
    0xf0, 0x3e, 0xd7, 0x4c,
];

/// What channel `loud` is, for a server that offers it.
#[allow(dead_code, unreachable_pub)]
pub fn loud_spec() -> ::kumi_unison::ChannelSpec {
    ::kumi_unison::ChannelSpec::new("loud")
        .direction(::kumi_unison::ChannelDirection::Bidirectional)
        .lifetime(::kumi_unison::Lifetime::Persistent)
        .delivery(::kumi_unison::Delivery::Unreliable)
        .event_policy(::kumi_unison::EventPolicy::DropOldest)
        .schema(
            ::kumi_unison::SchemaId::new(LOUD_CHANNEL_HASH, UNUSUAL_PROTOCOL_VERSION),
        )
}

/// With what a client opens channel `loud`.
#[allow(dead_code, unreachable_pub)]
pub fn loud_options() -> ::kumi_unison::ChannelOptions {
    ::kumi_unison::ChannelOptions::new()
        .direction(::kumi_unison::ChannelDirection::Bidirectional)
        .lifetime(::kumi_unison::Lifetime::Persistent)
        .delivery(::kumi_unison::Delivery::Unreliable)
        .event_policy(::kumi_unison::EventPolicy::DropOldest)
        .schema(
            ::kumi_unison::SchemaId::new(LOUD_CHANNEL_HASH, UNUSUAL_PROTOCOL_VERSION),
        )
}

/// The client's side of channel `loud`.
///
/// Clones are the same channel.
#[derive(Clone, Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct LoudClient {
    channel: ::kumi_unison::TypedChannel,
}

#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
impl LoudClient {
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

    /// Sends `int`.
    ///
    /// What happens when the other side does not keep up is the channel's policy.
    pub async fn send_int(
        &self,
        event: &Int,
    ) -> Result<(), ::kumi_unison::NetworkError> {
        self.channel.emit("int", event).await
    }

    /// Sends `map`.
    ///
    /// What happens when the other side does not keep up is the channel's policy.
    pub async fn send_map(
        &self,
        event: &Map,
    ) -> Result<(), ::kumi_unison::NetworkError> {
        self.channel.emit("map", event).await
    }

    /// Every `int`, from now on.
    ///
    /// While the stream lives, these events come to it and to nobody else. Events of other names wait for somebody to take them; `event_streams` takes all of them at once.
    pub fn int_events(&self) -> ::kumi_unison::EventStream<Int> {
        self.channel.events("int")
    }

    /// Every `map`, from now on.
    ///
    /// While the stream lives, these events come to it and to nobody else. Events of other names wait for somebody to take them; `event_streams` takes all of them at once.
    pub fn map_events(&self) -> ::kumi_unison::EventStream<Map> {
        self.channel.events("map")
    }

    /// A stream for every event of the channel.
    ///
    /// Whatever has no stream, because it is unknown or its stream was dropped, is thrown away on arrival.
    pub fn event_streams(&self) -> LoudEventStreams {
        let streams = LoudEventStreams {
            int: self.int_events(),
            map: self.map_events(),
        };
        self.raw_channel().discard_events();
        streams
    }
}

impl From<::kumi_unison::UnisonChannel> for LoudClient {
    fn from(channel: ::kumi_unison::UnisonChannel) -> Self {
        Self::from_channel(channel)
    }
}

/// The server's side of channel `loud`: one client that has it open.
///
/// Clones are the same channel.
#[derive(Clone, Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct LoudPeer {
    channel: ::kumi_unison::TypedChannel,
}

#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
impl LoudPeer {
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

    /// Sends `int`.
    ///
    /// What happens when the other side does not keep up is the channel's policy.
    pub async fn send_int(
        &self,
        event: &Int,
    ) -> Result<(), ::kumi_unison::NetworkError> {
        self.channel.emit("int", event).await
    }

    /// Sends `map`.
    ///
    /// What happens when the other side does not keep up is the channel's policy.
    pub async fn send_map(
        &self,
        event: &Map,
    ) -> Result<(), ::kumi_unison::NetworkError> {
        self.channel.emit("map", event).await
    }
}

impl From<::kumi_unison::UnisonChannel> for LoudPeer {
    fn from(channel: ::kumi_unison::UnisonChannel) -> Self {
        Self::from_channel(channel)
    }
}

/// A stream for every event that the server sends on channel `loud`.
#[derive(Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct LoudEventStreams {
    /// Every `int`.
    pub int: ::kumi_unison::EventStream<Int>,
    /// Every `map`.
    pub map: ::kumi_unison::EventStream<Map>,
}

/// What a server does on channel `loud`.
///
/// One value serves all clients; methods run at the same time.
#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
pub trait LoudService: Send + Sync + 'static {
    /// A client sent `int`.
    ///
    /// Events of one client are handled one after the other. Unless implemented, they are ignored.
    fn int(
        &self,
        peer: &LoudPeer,
        event: Int,
    ) -> impl ::core::future::Future<Output = ()> + Send {
        let _ = (peer, event);
        async {}
    }

    /// A client sent `map`.
    ///
    /// Events of one client are handled one after the other. Unless implemented, they are ignored.
    fn map(
        &self,
        peer: &LoudPeer,
        event: Map,
    ) -> impl ::core::future::Future<Output = ()> + Send {
        let _ = (peer, event);
        async {}
    }

    /// A client has opened the channel.
    ///
    /// Runs beside everything else, and is dropped when the channel ends; a loop that sends events may live here.
    fn channel_opened(
        &self,
        peer: LoudPeer,
    ) -> impl ::core::future::Future<Output = ()> + Send {
        let _ = peer;
        async {}
    }

    /// The channel of a client has ended.
    fn channel_closed(
        &self,
        peer: &LoudPeer,
    ) -> impl ::core::future::Future<Output = ()> + Send {
        let _ = peer;
        async {}
    }
}

/// Offers channel `loud` at a server, answered by an implementation.
#[allow(dead_code, unreachable_pub)]
pub fn register_loud<S: LoudService>(
    server: &impl AsRef<::kumi_unison::ChannelRegistry>,
    implementation: S,
) {
    register_loud_with(server, loud_spec(), implementation);
}

/// As `register_loud`, with more than the schema says, such as what happens to events of a slow client.
#[allow(dead_code, unreachable_pub)]
pub fn register_loud_with<S: LoudService>(
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
            serve_loud(::std::sync::Arc::clone(&implementation), channel),
        );
}

#[allow(dead_code, unreachable_pub)]
async fn serve_loud<S: LoudService>(
    implementation: ::std::sync::Arc<S>,
    channel: ::kumi_unison::UnisonChannel,
) -> Result<(), ::kumi_unison::NetworkError> {
    let peer = LoudPeer::from_channel(channel.clone());
    let events = async {
        while let Some(message) = ::kumi_unison::typed::next_event(&channel).await? {
            if let Some(event) = ::kumi_unison::typed::event_named::<
                Int,
            >(&message, "int") {
                LoudService::int(&*implementation, &peer, event).await;
            } else if let Some(event) = ::kumi_unison::typed::event_named::<
                Map,
            >(&message, "map") {
                LoudService::map(&*implementation, &peer, event).await;
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

/// Hash over channel `mixed`. Peers with the same hash may use the binary format.
#[allow(dead_code, unreachable_pub)]
pub const MIXED_CHANNEL_HASH: [u8; 32] = [
    0x78, 0x4e, 0xa8, 0xcd, 0xe3, 0x90, 0xb0, 0xae, 0x90, 0x9d, 0x1b, 0xa6, 0xd4, 0xcc,
    0xc2, 0x6a, 0xc3, 0x94, 0x6a, 0x11, 0x78, 0x3f, 0xd8, 0x6e, 0x72, 0xab, 0x25, 0xe7,
    0xeb, 0xd7, 0x09, 0xf6,
];

/// What channel `mixed` is, for a server that offers it.
#[allow(dead_code, unreachable_pub)]
pub fn mixed_spec() -> ::kumi_unison::ChannelSpec {
    ::kumi_unison::ChannelSpec::new("mixed")
        .direction(::kumi_unison::ChannelDirection::ServerToClient)
        .lifetime(::kumi_unison::Lifetime::Persistent)
        .delivery(::kumi_unison::Delivery::Reliable)
        .event_policy(::kumi_unison::EventPolicy::DropOldest)
        .schema(
            ::kumi_unison::SchemaId::new(MIXED_CHANNEL_HASH, UNUSUAL_PROTOCOL_VERSION),
        )
}

/// With what a client opens channel `mixed`.
#[allow(dead_code, unreachable_pub)]
pub fn mixed_options() -> ::kumi_unison::ChannelOptions {
    ::kumi_unison::ChannelOptions::new()
        .direction(::kumi_unison::ChannelDirection::ServerToClient)
        .lifetime(::kumi_unison::Lifetime::Persistent)
        .delivery(::kumi_unison::Delivery::Reliable)
        .event_policy(::kumi_unison::EventPolicy::DropOldest)
        .schema(
            ::kumi_unison::SchemaId::new(MIXED_CHANNEL_HASH, UNUSUAL_PROTOCOL_VERSION),
        )
}

/// The client's side of channel `mixed`.
///
/// Clones are the same channel.
#[derive(Clone, Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct MixedClient {
    channel: ::kumi_unison::TypedChannel,
}

#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
impl MixedClient {
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

    /// Sends `Delta`.
    ///
    /// What happens when the other side does not keep up is the channel's policy.
    pub async fn send_delta(
        &self,
        event: &Delta,
    ) -> Result<(), ::kumi_unison::NetworkError> {
        self.channel.emit("Delta", event).await
    }

    /// Sends `Gamma`.
    ///
    /// What happens when the other side does not keep up is the channel's policy.
    pub async fn send_gamma(
        &self,
        event: &Gamma,
    ) -> Result<(), ::kumi_unison::NetworkError> {
        self.channel.emit("Gamma", event).await
    }

    /// Every `Delta`, from now on.
    ///
    /// While the stream lives, these events come to it and to nobody else. Events of other names wait for somebody to take them; `event_streams` takes all of them at once.
    pub fn delta_events(&self) -> ::kumi_unison::EventStream<Delta> {
        self.channel.events("Delta")
    }

    /// Every `Alpha`, from now on.
    ///
    /// While the stream lives, these events come to it and to nobody else. Events of other names wait for somebody to take them; `event_streams` takes all of them at once.
    pub fn alpha_events(&self) -> ::kumi_unison::EventStream<Alpha> {
        self.channel.events("Alpha")
    }

    /// Every `Beta`, from now on.
    ///
    /// While the stream lives, these events come to it and to nobody else. Events of other names wait for somebody to take them; `event_streams` takes all of them at once.
    pub fn beta_events(&self) -> ::kumi_unison::EventStream<Beta> {
        self.channel.events("Beta")
    }

    /// A stream for every event of the channel.
    ///
    /// Whatever has no stream, because it is unknown or its stream was dropped, is thrown away on arrival.
    pub fn event_streams(&self) -> MixedEventStreams {
        let streams = MixedEventStreams {
            delta: self.delta_events(),
            alpha: self.alpha_events(),
            beta: self.beta_events(),
        };
        self.raw_channel().discard_events();
        streams
    }

    /// Answers the server's requests, from now on and as long as the channel lives.
    pub fn serve_requests<S: MixedClientService>(&self, implementation: S) {
        let implementation = ::std::sync::Arc::new(implementation);
        self.raw_channel()
            .set_service(move |request: ::kumi_unison::IncomingRequest| {
                let implementation = ::std::sync::Arc::clone(&implementation);
                async move {
                    match request.method() {
                        "Ask" => {
                            ::kumi_unison::typed::answer(
                                    request,
                                    |call, message| MixedClientService::ask(
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

impl From<::kumi_unison::UnisonChannel> for MixedClient {
    fn from(channel: ::kumi_unison::UnisonChannel) -> Self {
        Self::from_channel(channel)
    }
}

/// The server's side of channel `mixed`: one client that has it open.
///
/// Clones are the same channel.
#[derive(Clone, Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct MixedPeer {
    channel: ::kumi_unison::TypedChannel,
}

#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
impl MixedPeer {
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

    /// Asks `Ask`.
    pub async fn ask(
        &self,
        request: &Ask,
    ) -> Result<Alpha, ::kumi_unison::NetworkError> {
        self.channel.call("Ask", request, false).await
    }

    /// Sends `Delta`.
    ///
    /// What happens when the other side does not keep up is the channel's policy.
    pub async fn send_delta(
        &self,
        event: &Delta,
    ) -> Result<(), ::kumi_unison::NetworkError> {
        self.channel.emit("Delta", event).await
    }

    /// Sends `Alpha`.
    ///
    /// What happens when the other side does not keep up is the channel's policy.
    pub async fn send_alpha(
        &self,
        event: &Alpha,
    ) -> Result<(), ::kumi_unison::NetworkError> {
        self.channel.emit("Alpha", event).await
    }

    /// Sends `Beta`.
    ///
    /// What happens when the other side does not keep up is the channel's policy.
    pub async fn send_beta(
        &self,
        event: &Beta,
    ) -> Result<(), ::kumi_unison::NetworkError> {
        self.channel.emit("Beta", event).await
    }
}

impl From<::kumi_unison::UnisonChannel> for MixedPeer {
    fn from(channel: ::kumi_unison::UnisonChannel) -> Self {
        Self::from_channel(channel)
    }
}

/// A stream for every event that the server sends on channel `mixed`.
#[derive(Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct MixedEventStreams {
    /// Every `Delta`.
    pub delta: ::kumi_unison::EventStream<Delta>,
    /// Every `Alpha`.
    pub alpha: ::kumi_unison::EventStream<Alpha>,
    /// Every `Beta`.
    pub beta: ::kumi_unison::EventStream<Beta>,
}

/// What a server does on channel `mixed`.
///
/// One value serves all clients; methods run at the same time.
#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
pub trait MixedService: Send + Sync + 'static {
    /// A client sent `Delta`.
    ///
    /// Events of one client are handled one after the other. Unless implemented, they are ignored.
    fn delta(
        &self,
        peer: &MixedPeer,
        event: Delta,
    ) -> impl ::core::future::Future<Output = ()> + Send {
        let _ = (peer, event);
        async {}
    }

    /// A client sent `Gamma`.
    ///
    /// Events of one client are handled one after the other. Unless implemented, they are ignored.
    fn gamma(
        &self,
        peer: &MixedPeer,
        event: Gamma,
    ) -> impl ::core::future::Future<Output = ()> + Send {
        let _ = (peer, event);
        async {}
    }

    /// A client has opened the channel.
    ///
    /// Runs beside everything else, and is dropped when the channel ends; a loop that sends events may live here.
    fn channel_opened(
        &self,
        peer: MixedPeer,
    ) -> impl ::core::future::Future<Output = ()> + Send {
        let _ = peer;
        async {}
    }

    /// The channel of a client has ended.
    fn channel_closed(
        &self,
        peer: &MixedPeer,
    ) -> impl ::core::future::Future<Output = ()> + Send {
        let _ = peer;
        async {}
    }
}

/// Offers channel `mixed` at a server, answered by an implementation.
#[allow(dead_code, unreachable_pub)]
pub fn register_mixed<S: MixedService>(
    server: &impl AsRef<::kumi_unison::ChannelRegistry>,
    implementation: S,
) {
    register_mixed_with(server, mixed_spec(), implementation);
}

/// As `register_mixed`, with more than the schema says, such as what happens to events of a slow client.
#[allow(dead_code, unreachable_pub)]
pub fn register_mixed_with<S: MixedService>(
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
            serve_mixed(::std::sync::Arc::clone(&implementation), channel),
        );
}

#[allow(dead_code, unreachable_pub)]
async fn serve_mixed<S: MixedService>(
    implementation: ::std::sync::Arc<S>,
    channel: ::kumi_unison::UnisonChannel,
) -> Result<(), ::kumi_unison::NetworkError> {
    let peer = MixedPeer::from_channel(channel.clone());
    let events = async {
        while let Some(message) = ::kumi_unison::typed::next_event(&channel).await? {
            if let Some(event) = ::kumi_unison::typed::event_named::<
                Delta,
            >(&message, "Delta") {
                MixedService::delta(&*implementation, &peer, event).await;
            } else if let Some(event) = ::kumi_unison::typed::event_named::<
                Gamma,
            >(&message, "Gamma") {
                MixedService::gamma(&*implementation, &peer, event).await;
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

/// What a client answers on channel `mixed`.
#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
pub trait MixedClientService: Send + Sync + 'static {
    /// Answers `Ask`.
    fn ask(
        &self,
        call: ::kumi_unison::Call<MixedClient>,
        request: Ask,
    ) -> impl ::core::future::Future<
        Output = Result<Alpha, ::kumi_unison::RemoteError>,
    > + Send;
}

/// Hash over channel `one_way`. Peers with the same hash may use the binary format.
#[allow(dead_code, unreachable_pub)]
pub const ONE_WAY_CHANNEL_HASH: [u8; 32] = [
    0x66, 0xcb, 0xbc, 0x30, 0xd5, 0x79, 0x68, 0xac, 0xac, 0x7d, 0x4c, 0xb0, 0x1f, 0x5c,
    0x9a, 0xdd, 0x25, 0x9b, 0x05, 0x6e, 0x4e, 0x30, 0x1b, 0x92, 0xe3, 0xd9, 0x66, 0x47,
    0x85, 0xc2, 0x3e, 0x87,
];

/// What channel `one_way` is, for a server that offers it.
#[allow(dead_code, unreachable_pub)]
pub fn one_way_spec() -> ::kumi_unison::ChannelSpec {
    ::kumi_unison::ChannelSpec::new("one_way")
        .direction(::kumi_unison::ChannelDirection::Bidirectional)
        .lifetime(::kumi_unison::Lifetime::Persistent)
        .delivery(::kumi_unison::Delivery::Reliable)
        .event_policy(::kumi_unison::EventPolicy::DropOldest)
        .schema(
            ::kumi_unison::SchemaId::new(ONE_WAY_CHANNEL_HASH, UNUSUAL_PROTOCOL_VERSION),
        )
}

/// With what a client opens channel `one_way`.
#[allow(dead_code, unreachable_pub)]
pub fn one_way_options() -> ::kumi_unison::ChannelOptions {
    ::kumi_unison::ChannelOptions::new()
        .direction(::kumi_unison::ChannelDirection::Bidirectional)
        .lifetime(::kumi_unison::Lifetime::Persistent)
        .delivery(::kumi_unison::Delivery::Reliable)
        .event_policy(::kumi_unison::EventPolicy::DropOldest)
        .schema(
            ::kumi_unison::SchemaId::new(ONE_WAY_CHANNEL_HASH, UNUSUAL_PROTOCOL_VERSION),
        )
}

/// The client's side of channel `one_way`.
///
/// Clones are the same channel.
#[derive(Clone, Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct OneWayClient {
    channel: ::kumi_unison::TypedChannel,
}

#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
impl OneWayClient {
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

    /// Sends `Alpha`.
    ///
    /// What happens when the other side does not keep up is the channel's policy.
    pub async fn send_alpha(
        &self,
        event: &Alpha,
    ) -> Result<(), ::kumi_unison::NetworkError> {
        self.channel.emit("Alpha", event).await
    }

    /// Every `Alpha`, from now on.
    ///
    /// While the stream lives, these events come to it and to nobody else. Events of other names wait for somebody to take them; `event_streams` takes all of them at once.
    pub fn alpha_events(&self) -> ::kumi_unison::EventStream<Alpha> {
        self.channel.events("Alpha")
    }

    /// A stream for every event of the channel.
    ///
    /// Whatever has no stream, because it is unknown or its stream was dropped, is thrown away on arrival.
    pub fn event_streams(&self) -> OneWayEventStreams {
        let streams = OneWayEventStreams {
            alpha: self.alpha_events(),
        };
        self.raw_channel().discard_events();
        streams
    }
}

impl From<::kumi_unison::UnisonChannel> for OneWayClient {
    fn from(channel: ::kumi_unison::UnisonChannel) -> Self {
        Self::from_channel(channel)
    }
}

/// The server's side of channel `one_way`: one client that has it open.
///
/// Clones are the same channel.
#[derive(Clone, Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct OneWayPeer {
    channel: ::kumi_unison::TypedChannel,
}

#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
impl OneWayPeer {
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

    /// Sends `Alpha`.
    ///
    /// What happens when the other side does not keep up is the channel's policy.
    pub async fn send_alpha(
        &self,
        event: &Alpha,
    ) -> Result<(), ::kumi_unison::NetworkError> {
        self.channel.emit("Alpha", event).await
    }
}

impl From<::kumi_unison::UnisonChannel> for OneWayPeer {
    fn from(channel: ::kumi_unison::UnisonChannel) -> Self {
        Self::from_channel(channel)
    }
}

/// A stream for every event that the server sends on channel `one_way`.
#[derive(Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct OneWayEventStreams {
    /// Every `Alpha`.
    pub alpha: ::kumi_unison::EventStream<Alpha>,
}

/// What a server does on channel `one_way`.
///
/// One value serves all clients; methods run at the same time.
#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
pub trait OneWayService: Send + Sync + 'static {
    /// A client sent `Alpha`.
    ///
    /// Events of one client are handled one after the other. Unless implemented, they are ignored.
    fn alpha(
        &self,
        peer: &OneWayPeer,
        event: Alpha,
    ) -> impl ::core::future::Future<Output = ()> + Send {
        let _ = (peer, event);
        async {}
    }

    /// A client has opened the channel.
    ///
    /// Runs beside everything else, and is dropped when the channel ends; a loop that sends events may live here.
    fn channel_opened(
        &self,
        peer: OneWayPeer,
    ) -> impl ::core::future::Future<Output = ()> + Send {
        let _ = peer;
        async {}
    }

    /// The channel of a client has ended.
    fn channel_closed(
        &self,
        peer: &OneWayPeer,
    ) -> impl ::core::future::Future<Output = ()> + Send {
        let _ = peer;
        async {}
    }
}

/// Offers channel `one_way` at a server, answered by an implementation.
#[allow(dead_code, unreachable_pub)]
pub fn register_one_way<S: OneWayService>(
    server: &impl AsRef<::kumi_unison::ChannelRegistry>,
    implementation: S,
) {
    register_one_way_with(server, one_way_spec(), implementation);
}

/// As `register_one_way`, with more than the schema says, such as what happens to events of a slow client.
#[allow(dead_code, unreachable_pub)]
pub fn register_one_way_with<S: OneWayService>(
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
            serve_one_way(::std::sync::Arc::clone(&implementation), channel),
        );
}

#[allow(dead_code, unreachable_pub)]
async fn serve_one_way<S: OneWayService>(
    implementation: ::std::sync::Arc<S>,
    channel: ::kumi_unison::UnisonChannel,
) -> Result<(), ::kumi_unison::NetworkError> {
    let peer = OneWayPeer::from_channel(channel.clone());
    let events = async {
        while let Some(message) = ::kumi_unison::typed::next_event(&channel).await? {
            if let Some(event) = ::kumi_unison::typed::event_named::<
                Alpha,
            >(&message, "Alpha") {
                OneWayService::alpha(&*implementation, &peer, event).await;
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

/// Hash over channel `pair`. Peers with the same hash may use the binary format.
#[allow(dead_code, unreachable_pub)]
pub const PAIR_CHANNEL_HASH: [u8; 32] = [
    0x3d, 0x0a, 0x8a, 0x61, 0x92, 0x34, 0xb3, 0x85, 0x1a, 0x08, 0x52, 0x35, 0x16, 0xc8,
    0x13, 0x52, 0xaf, 0x50, 0xe8, 0x4a, 0xf9, 0x6d, 0x8d, 0xa9, 0x18, 0xb5, 0x3b, 0x63,
    0xdd, 0xe8, 0xb2, 0x51,
];

/// What channel `pair` is, for a server that offers it.
#[allow(dead_code, unreachable_pub)]
pub fn pair_spec() -> ::kumi_unison::ChannelSpec {
    ::kumi_unison::ChannelSpec::new("pair")
        .direction(::kumi_unison::ChannelDirection::ServerToClient)
        .lifetime(::kumi_unison::Lifetime::Transient)
        .delivery(::kumi_unison::Delivery::Reliable)
        .schema(
            ::kumi_unison::SchemaId::new(PAIR_CHANNEL_HASH, UNUSUAL_PROTOCOL_VERSION),
        )
}

/// With what a client opens channel `pair`.
#[allow(dead_code, unreachable_pub)]
pub fn pair_options() -> ::kumi_unison::ChannelOptions {
    ::kumi_unison::ChannelOptions::new()
        .direction(::kumi_unison::ChannelDirection::ServerToClient)
        .lifetime(::kumi_unison::Lifetime::Transient)
        .delivery(::kumi_unison::Delivery::Reliable)
        .schema(
            ::kumi_unison::SchemaId::new(PAIR_CHANNEL_HASH, UNUSUAL_PROTOCOL_VERSION),
        )
}

/// The client's side of channel `pair`.
///
/// Clones are the same channel.
#[derive(Clone, Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct PairClient {
    channel: ::kumi_unison::TypedChannel,
}

#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
impl PairClient {
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
    pub fn serve_requests<S: PairClientService>(&self, implementation: S) {
        let implementation = ::std::sync::Arc::new(implementation);
        self.raw_channel()
            .set_service(move |request: ::kumi_unison::IncomingRequest| {
                let implementation = ::std::sync::Arc::clone(&implementation);
                async move {
                    match request.method() {
                        "Beta" => {
                            ::kumi_unison::typed::answer(
                                    request,
                                    |call, message| PairClientService::beta(
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

impl From<::kumi_unison::UnisonChannel> for PairClient {
    fn from(channel: ::kumi_unison::UnisonChannel) -> Self {
        Self::from_channel(channel)
    }
}

/// The server's side of channel `pair`: one client that has it open.
///
/// Clones are the same channel.
#[derive(Clone, Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct PairPeer {
    channel: ::kumi_unison::TypedChannel,
}

#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
impl PairPeer {
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

    /// Asks `Beta`.
    pub async fn beta(
        &self,
        request: &Beta,
    ) -> Result<Gamma, ::kumi_unison::NetworkError> {
        self.channel.call("Beta", request, false).await
    }
}

impl From<::kumi_unison::UnisonChannel> for PairPeer {
    fn from(channel: ::kumi_unison::UnisonChannel) -> Self {
        Self::from_channel(channel)
    }
}

/// What a server does on channel `pair`.
///
/// One value serves all clients; methods run at the same time.
#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
pub trait PairService: Send + Sync + 'static {
    /// A client has opened the channel.
    ///
    /// Runs beside everything else, and is dropped when the channel ends; a loop that sends events may live here.
    fn channel_opened(
        &self,
        peer: PairPeer,
    ) -> impl ::core::future::Future<Output = ()> + Send {
        let _ = peer;
        async {}
    }

    /// The channel of a client has ended.
    fn channel_closed(
        &self,
        peer: &PairPeer,
    ) -> impl ::core::future::Future<Output = ()> + Send {
        let _ = peer;
        async {}
    }
}

/// Offers channel `pair` at a server, answered by an implementation.
#[allow(dead_code, unreachable_pub)]
pub fn register_pair<S: PairService>(
    server: &impl AsRef<::kumi_unison::ChannelRegistry>,
    implementation: S,
) {
    register_pair_with(server, pair_spec(), implementation);
}

/// As `register_pair`, with more than the schema says, such as what happens to events of a slow client.
#[allow(dead_code, unreachable_pub)]
pub fn register_pair_with<S: PairService>(
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
            serve_pair(::std::sync::Arc::clone(&implementation), channel),
        );
}

#[allow(dead_code, unreachable_pub)]
async fn serve_pair<S: PairService>(
    implementation: ::std::sync::Arc<S>,
    channel: ::kumi_unison::UnisonChannel,
) -> Result<(), ::kumi_unison::NetworkError> {
    let peer = PairPeer::from_channel(channel.clone());
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

/// What a client answers on channel `pair`.
#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
pub trait PairClientService: Send + Sync + 'static {
    /// Answers `Beta`.
    fn beta(
        &self,
        call: ::kumi_unison::Call<PairClient>,
        request: Beta,
    ) -> impl ::core::future::Future<
        Output = Result<Gamma, ::kumi_unison::RemoteError>,
    > + Send;
}

/// Hash over channel `Old.Service`. Peers with the same hash may use the binary format.
#[allow(dead_code, unreachable_pub)]
pub const OLD_SERVICE_CHANNEL_HASH: [u8; 32] = [
    0x15, 0x9f, 0xbd, 0x1e, 0x66, 0xcf, 0xda, 0x1b, 0x73, 0x96, 0xf9, 0x3c, 0xe6, 0x83,
    0x7a, 0x9d, 0x7e, 0x9a, 0x07, 0x3e, 0x03, 0xc5, 0x25, 0x4f, 0x57, 0x3d, 0x58, 0xae,
    0x0d, 0x52, 0x45, 0x77,
];

/// What channel `Old.Service` is, for a server that offers it.
#[allow(dead_code, unreachable_pub)]
pub fn old_service_spec() -> ::kumi_unison::ChannelSpec {
    ::kumi_unison::ChannelSpec::new("Old.Service")
        .direction(::kumi_unison::ChannelDirection::ClientToServer)
        .lifetime(::kumi_unison::Lifetime::Transient)
        .delivery(::kumi_unison::Delivery::Reliable)
        .schema(
            ::kumi_unison::SchemaId::new(
                OLD_SERVICE_CHANNEL_HASH,
                UNUSUAL_PROTOCOL_VERSION,
            ),
        )
}

/// With what a client opens channel `Old.Service`.
#[allow(dead_code, unreachable_pub)]
pub fn old_service_options() -> ::kumi_unison::ChannelOptions {
    ::kumi_unison::ChannelOptions::new()
        .direction(::kumi_unison::ChannelDirection::ClientToServer)
        .lifetime(::kumi_unison::Lifetime::Transient)
        .delivery(::kumi_unison::Delivery::Reliable)
        .schema(
            ::kumi_unison::SchemaId::new(
                OLD_SERVICE_CHANNEL_HASH,
                UNUSUAL_PROTOCOL_VERSION,
            ),
        )
}

/// The client's side of channel `Old.Service`.
///
/// As a property.
///
/// Clones are the same channel.
#[derive(Clone, Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct OldServiceClient {
    channel: ::kumi_unison::TypedChannel,
}

#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
impl OldServiceClient {
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

    /// Named messages.
    pub async fn do_it(
        &self,
        request: &Alpha,
    ) -> Result<Beta, ::kumi_unison::NetworkError> {
        self.channel.call("do-it", request, false).await
    }

    /// Takes and gives nothing.
    pub async fn nothing_at_all(
        &self,
        request: &NothingAtAll,
    ) -> Result<(), ::kumi_unison::NetworkError> {
        self.channel.call("nothing_at_all", request, false).await
    }

    /// Asks `inPlace`.
    ///
    /// Idempotent: it is sent again when the connection breaks before its answer came.
    pub async fn in_place(
        &self,
        request: &Placed,
    ) -> Result<InPlaceResponse, ::kumi_unison::NetworkError> {
        self.channel.call("inPlace", request, true).await
    }
}

impl From<::kumi_unison::UnisonChannel> for OldServiceClient {
    fn from(channel: ::kumi_unison::UnisonChannel) -> Self {
        Self::from_channel(channel)
    }
}

/// The server's side of channel `Old.Service`: one client that has it open.
///
/// As a property.
///
/// Clones are the same channel.
#[derive(Clone, Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct OldServicePeer {
    channel: ::kumi_unison::TypedChannel,
}

#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
impl OldServicePeer {
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

impl From<::kumi_unison::UnisonChannel> for OldServicePeer {
    fn from(channel: ::kumi_unison::UnisonChannel) -> Self {
        Self::from_channel(channel)
    }
}

/// What a server does on channel `Old.Service`.
///
/// As a property.
///
/// One value serves all clients; methods run at the same time.
#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
pub trait OldServiceService: Send + Sync + 'static {
    /// Named messages.
    fn do_it(
        &self,
        call: ::kumi_unison::Call<OldServicePeer>,
        request: Alpha,
    ) -> impl ::core::future::Future<
        Output = Result<Beta, ::kumi_unison::RemoteError>,
    > + Send;
    /// Takes and gives nothing.
    fn nothing_at_all(
        &self,
        call: ::kumi_unison::Call<OldServicePeer>,
        request: NothingAtAll,
    ) -> impl ::core::future::Future<
        Output = Result<(), ::kumi_unison::RemoteError>,
    > + Send;
    /// Answers `inPlace`.
    ///
    /// Idempotent: it may come twice, and has to mean the same as once.
    fn in_place(
        &self,
        call: ::kumi_unison::Call<OldServicePeer>,
        request: Placed,
    ) -> impl ::core::future::Future<
        Output = Result<InPlaceResponse, ::kumi_unison::RemoteError>,
    > + Send;
    /// A client has opened the channel.
    ///
    /// Runs beside everything else, and is dropped when the channel ends; a loop that sends events may live here.
    fn channel_opened(
        &self,
        peer: OldServicePeer,
    ) -> impl ::core::future::Future<Output = ()> + Send {
        let _ = peer;
        async {}
    }

    /// The channel of a client has ended.
    fn channel_closed(
        &self,
        peer: &OldServicePeer,
    ) -> impl ::core::future::Future<Output = ()> + Send {
        let _ = peer;
        async {}
    }
}

/// Offers channel `Old.Service` at a server, answered by an implementation.
#[allow(dead_code, unreachable_pub)]
pub fn register_old_service<S: OldServiceService>(
    server: &impl AsRef<::kumi_unison::ChannelRegistry>,
    implementation: S,
) {
    register_old_service_with(server, old_service_spec(), implementation);
}

/// As `register_old_service`, with more than the schema says, such as what happens to events of a slow client.
#[allow(dead_code, unreachable_pub)]
pub fn register_old_service_with<S: OldServiceService>(
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
            serve_old_service(::std::sync::Arc::clone(&implementation), channel),
        );
}

#[allow(dead_code, unreachable_pub)]
async fn serve_old_service<S: OldServiceService>(
    implementation: ::std::sync::Arc<S>,
    channel: ::kumi_unison::UnisonChannel,
) -> Result<(), ::kumi_unison::NetworkError> {
    let peer = OldServicePeer::from_channel(channel.clone());
    let answering = ::std::sync::Arc::clone(&implementation);
    channel
        .set_service(move |request: ::kumi_unison::IncomingRequest| {
            let implementation = ::std::sync::Arc::clone(&answering);
            async move {
                match request.method() {
                    "do-it" => {
                        ::kumi_unison::typed::answer(
                                request,
                                |call, message| OldServiceService::do_it(
                                    &*implementation,
                                    call,
                                    message,
                                ),
                            )
                            .await
                    }
                    "nothing_at_all" => {
                        ::kumi_unison::typed::answer(
                                request,
                                |call, message| OldServiceService::nothing_at_all(
                                    &*implementation,
                                    call,
                                    message,
                                ),
                            )
                            .await
                    }
                    "inPlace" => {
                        ::kumi_unison::typed::answer(
                                request,
                                |call, message| OldServiceService::in_place(
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

/// Any request of channel `a.b-c`.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, clippy::enum_variant_names)]
#[allow(dead_code, unreachable_pub)]
pub enum ABCRequest {
    /// `GetSomeThing`
    GetSomeThing(GetSomeThing),
    /// `Wide`
    Wide(Wide),
    /// `Nothing`
    Nothing(Nothing),
    /// `Checked`
    Checked(Checked),
    /// `Mutual`
    Mutual(Mutual),
}

impl From<GetSomeThing> for ABCRequest {
    fn from(message: GetSomeThing) -> Self {
        Self::GetSomeThing(message)
    }
}

impl From<Wide> for ABCRequest {
    fn from(message: Wide) -> Self {
        Self::Wide(message)
    }
}

impl From<Nothing> for ABCRequest {
    fn from(message: Nothing) -> Self {
        Self::Nothing(message)
    }
}

impl From<Checked> for ABCRequest {
    fn from(message: Checked) -> Self {
        Self::Checked(message)
    }
}

impl From<Mutual> for ABCRequest {
    fn from(message: Mutual) -> Self {
        Self::Mutual(message)
    }
}

/// The answer to any request of channel `a.b-c`, by the request's name.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, clippy::enum_variant_names)]
#[allow(dead_code, unreachable_pub)]
pub enum ABCResponse {
    /// `GetSomeThing`
    GetSomeThing(GotIt),
    /// `Wide`
    Wide(Wide),
    /// `Nothing`
    Nothing(Nothing),
    /// `Checked`
    Checked(Checked),
    /// `Mutual`
    Mutual,
}

impl From<GotIt> for ABCResponse {
    fn from(message: GotIt) -> Self {
        Self::GetSomeThing(message)
    }
}

impl From<Wide> for ABCResponse {
    fn from(message: Wide) -> Self {
        Self::Wide(message)
    }
}

impl From<Nothing> for ABCResponse {
    fn from(message: Nothing) -> Self {
        Self::Nothing(message)
    }
}

impl From<Checked> for ABCResponse {
    fn from(message: Checked) -> Self {
        Self::Checked(message)
    }
}

/// Any event that the client sends on channel `a.b-c`.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, clippy::enum_variant_names)]
#[allow(dead_code, unreachable_pub)]
pub enum ABCClientEvent {
    /// `Mutually`
    Mutually(Mutually),
    /// `Demanding`
    Demanding(Demanding),
}

impl From<Mutually> for ABCClientEvent {
    fn from(message: Mutually) -> Self {
        Self::Mutually(message)
    }
}

impl From<Demanding> for ABCClientEvent {
    fn from(message: Demanding) -> Self {
        Self::Demanding(message)
    }
}

/// Any event that the server sends on channel `a.b-c`.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, clippy::enum_variant_names)]
#[allow(dead_code, unreachable_pub)]
pub enum ABCServerEvent {
    /// `Mutually`
    Mutually(Mutually),
    /// `Demanding`
    Demanding(Demanding),
    /// `Initial`
    Initial(Initial),
}

impl From<Mutually> for ABCServerEvent {
    fn from(message: Mutually) -> Self {
        Self::Mutually(message)
    }
}

impl From<Demanding> for ABCServerEvent {
    fn from(message: Demanding) -> Self {
        Self::Demanding(message)
    }
}

impl From<Initial> for ABCServerEvent {
    fn from(message: Initial) -> Self {
        Self::Initial(message)
    }
}

/// Any event that the client sends on channel `loud`.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, clippy::enum_variant_names)]
#[allow(dead_code, unreachable_pub)]
pub enum LoudClientEvent {
    /// `Int`
    Int(Int),
    /// `Map`
    Map(Map),
}

impl From<Int> for LoudClientEvent {
    fn from(message: Int) -> Self {
        Self::Int(message)
    }
}

impl From<Map> for LoudClientEvent {
    fn from(message: Map) -> Self {
        Self::Map(message)
    }
}

/// Any event that the server sends on channel `loud`.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, clippy::enum_variant_names)]
#[allow(dead_code, unreachable_pub)]
pub enum LoudServerEvent {
    /// `Int`
    Int(Int),
    /// `Map`
    Map(Map),
}

impl From<Int> for LoudServerEvent {
    fn from(message: Int) -> Self {
        Self::Int(message)
    }
}

impl From<Map> for LoudServerEvent {
    fn from(message: Map) -> Self {
        Self::Map(message)
    }
}

/// Any event that the client sends on channel `mixed`.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, clippy::enum_variant_names)]
#[allow(dead_code, unreachable_pub)]
pub enum MixedClientEvent {
    /// `Delta`
    Delta(Delta),
    /// `Gamma`
    Gamma(Gamma),
}

impl From<Delta> for MixedClientEvent {
    fn from(message: Delta) -> Self {
        Self::Delta(message)
    }
}

impl From<Gamma> for MixedClientEvent {
    fn from(message: Gamma) -> Self {
        Self::Gamma(message)
    }
}

/// Any event that the server sends on channel `mixed`.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, clippy::enum_variant_names)]
#[allow(dead_code, unreachable_pub)]
pub enum MixedServerEvent {
    /// `Delta`
    Delta(Delta),
    /// `Alpha`
    Alpha(Alpha),
    /// `Beta`
    Beta(Beta),
}

impl From<Delta> for MixedServerEvent {
    fn from(message: Delta) -> Self {
        Self::Delta(message)
    }
}

impl From<Alpha> for MixedServerEvent {
    fn from(message: Alpha) -> Self {
        Self::Alpha(message)
    }
}

impl From<Beta> for MixedServerEvent {
    fn from(message: Beta) -> Self {
        Self::Beta(message)
    }
}

/// Any request of channel `Old.Service`.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, clippy::enum_variant_names)]
#[allow(dead_code, unreachable_pub)]
pub enum OldServiceRequest {
    /// `DoIt`
    DoIt(Alpha),
    /// `NothingAtAll`
    NothingAtAll(NothingAtAll),
    /// `InPlace`
    InPlace(Placed),
}

impl From<Alpha> for OldServiceRequest {
    fn from(message: Alpha) -> Self {
        Self::DoIt(message)
    }
}

impl From<NothingAtAll> for OldServiceRequest {
    fn from(message: NothingAtAll) -> Self {
        Self::NothingAtAll(message)
    }
}

impl From<Placed> for OldServiceRequest {
    fn from(message: Placed) -> Self {
        Self::InPlace(message)
    }
}

/// The answer to any request of channel `Old.Service`, by the request's name.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, clippy::enum_variant_names)]
#[allow(dead_code, unreachable_pub)]
pub enum OldServiceResponse {
    /// `DoIt`
    DoIt(Beta),
    /// `NothingAtAll`
    NothingAtAll,
    /// `InPlace`
    InPlace(InPlaceResponse),
}

impl From<Beta> for OldServiceResponse {
    fn from(message: Beta) -> Self {
        Self::DoIt(message)
    }
}

impl From<InPlaceResponse> for OldServiceResponse {
    fn from(message: InPlaceResponse) -> Self {
        Self::InPlace(message)
    }
}

/// Every channel of protocol `unusual` inside one process, as its client holds them.
///
/// Given as a property.
#[derive(Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct UnusualConnection {
    /// Channel `a.b-c`.
    ///
    /// As a node.
    pub a_b_c: ::kumi_unison::ServiceChannel<
        ::kumi_unison::RequestChannel<ABCRequest, ABCResponse>,
        ::kumi_unison::BidirectionalChannel<ABCClientEvent, ABCServerEvent>,
    >,
    /// Channel `quiet`.
    pub quiet: ::kumi_unison::ReceiveChannel<Nothing>,
    /// Channel `loud`.
    pub loud: ::kumi_unison::BidirectionalChannel<LoudClientEvent, LoudServerEvent>,
    /// Channel `mixed`.
    pub mixed: ::kumi_unison::ServiceChannel<
        ::kumi_unison::RespondChannel<Ask, Alpha>,
        ::kumi_unison::BidirectionalChannel<MixedClientEvent, MixedServerEvent>,
    >,
    /// Channel `one_way`.
    pub one_way: ::kumi_unison::BidirectionalChannel<Alpha, Alpha>,
    /// Channel `pair`.
    pub pair: ::kumi_unison::RespondChannel<Beta, Gamma>,
    /// Channel `Old.Service`.
    ///
    /// As a property.
    pub old_service: ::kumi_unison::RequestChannel<
        OldServiceRequest,
        OldServiceResponse,
    >,
}

/// Every channel of protocol `unusual` inside one process, as its server holds them.
///
/// Given as a property.
#[derive(Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct UnusualServerConnection {
    /// Channel `a.b-c`.
    ///
    /// As a node.
    pub a_b_c: ::kumi_unison::ServiceChannel<
        ::kumi_unison::RespondChannel<ABCRequest, ABCResponse>,
        ::kumi_unison::BidirectionalChannel<ABCServerEvent, ABCClientEvent>,
    >,
    /// Channel `quiet`.
    pub quiet: ::kumi_unison::SendChannel<Nothing>,
    /// Channel `loud`.
    pub loud: ::kumi_unison::BidirectionalChannel<LoudServerEvent, LoudClientEvent>,
    /// Channel `mixed`.
    pub mixed: ::kumi_unison::ServiceChannel<
        ::kumi_unison::RequestChannel<Ask, Alpha>,
        ::kumi_unison::BidirectionalChannel<MixedServerEvent, MixedClientEvent>,
    >,
    /// Channel `one_way`.
    pub one_way: ::kumi_unison::BidirectionalChannel<Alpha, Alpha>,
    /// Channel `pair`.
    pub pair: ::kumi_unison::RequestChannel<Beta, Gamma>,
    /// Channel `Old.Service`.
    ///
    /// As a property.
    pub old_service: ::kumi_unison::RespondChannel<
        OldServiceRequest,
        OldServiceResponse,
    >,
}

#[allow(dead_code, unreachable_pub)]
impl UnusualConnection {
    /// Both ends of a connection. Each channel holds up to `capacity` messages each way; a full one makes its sender wait.
    pub fn pair(capacity: usize) -> (Self, UnusualServerConnection) {
        let (requests, answers) = <::kumi_unison::RequestChannel<
            ABCRequest,
            ABCResponse,
        >>::pair(capacity);
        let (near, far) = <::kumi_unison::BidirectionalChannel<
            ABCClientEvent,
            ABCServerEvent,
        >>::pair(capacity);
        let a_b_c_client = ::kumi_unison::ServiceChannel {
            requests,
            events: near,
        };
        let a_b_c_server = ::kumi_unison::ServiceChannel {
            requests: answers,
            events: far,
        };
        let (quiet_client, quiet_server) = <::kumi_unison::ReceiveChannel<
            Nothing,
        >>::pair(capacity);
        let (loud_client, loud_server) = <::kumi_unison::BidirectionalChannel<
            LoudClientEvent,
            LoudServerEvent,
        >>::pair(capacity);
        let (requests, answers) = <::kumi_unison::RespondChannel<
            Ask,
            Alpha,
        >>::pair(capacity);
        let (near, far) = <::kumi_unison::BidirectionalChannel<
            MixedClientEvent,
            MixedServerEvent,
        >>::pair(capacity);
        let mixed_client = ::kumi_unison::ServiceChannel {
            requests,
            events: near,
        };
        let mixed_server = ::kumi_unison::ServiceChannel {
            requests: answers,
            events: far,
        };
        let (one_way_client, one_way_server) = <::kumi_unison::BidirectionalChannel<
            Alpha,
            Alpha,
        >>::pair(capacity);
        let (pair_client, pair_server) = <::kumi_unison::RespondChannel<
            Beta,
            Gamma,
        >>::pair(capacity);
        let (old_service_client, old_service_server) = <::kumi_unison::RequestChannel<
            OldServiceRequest,
            OldServiceResponse,
        >>::pair(capacity);
        (
            Self {
                a_b_c: a_b_c_client,
                quiet: quiet_client,
                loud: loud_client,
                mixed: mixed_client,
                one_way: one_way_client,
                pair: pair_client,
                old_service: old_service_client,
            },
            UnusualServerConnection {
                a_b_c: a_b_c_server,
                quiet: quiet_server,
                loud: loud_server,
                mixed: mixed_server,
                one_way: one_way_server,
                pair: pair_server,
                old_service: old_service_server,
            },
        )
    }
}

/// Every channel of protocol `unusual`, open on a connection.
///
/// Given as a property.
///
/// A field is the channel itself, a method of the same name its typed handle.
#[derive(Clone, Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct UnusualQuicConnection {
    /// Channel `a.b-c`.
    pub a_b_c: ::kumi_unison::UnisonChannel,
    /// Channel `quiet`.
    pub quiet: ::kumi_unison::UnisonChannel,
    /// Channel `loud`.
    pub loud: ::kumi_unison::UnisonChannel,
    /// Channel `mixed`.
    pub mixed: ::kumi_unison::UnisonChannel,
    /// Channel `one_way`.
    pub one_way: ::kumi_unison::UnisonChannel,
    /// Channel `pair`.
    pub pair: ::kumi_unison::UnisonChannel,
    /// Channel `Old.Service`.
    pub old_service: ::kumi_unison::UnisonChannel,
}

#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
impl UnusualQuicConnection {
    /// As a node.
    pub fn a_b_c(&self) -> ABCClient {
        ABCClient::from_channel(self.a_b_c.clone())
    }

    /// Channel `quiet`, typed.
    pub fn quiet(&self) -> QuietClient {
        QuietClient::from_channel(self.quiet.clone())
    }

    /// Channel `loud`, typed.
    pub fn loud(&self) -> LoudClient {
        LoudClient::from_channel(self.loud.clone())
    }

    /// Channel `mixed`, typed.
    pub fn mixed(&self) -> MixedClient {
        MixedClient::from_channel(self.mixed.clone())
    }

    /// Channel `one_way`, typed.
    pub fn one_way(&self) -> OneWayClient {
        OneWayClient::from_channel(self.one_way.clone())
    }

    /// Channel `pair`, typed.
    pub fn pair(&self) -> PairClient {
        PairClient::from_channel(self.pair.clone())
    }

    /// As a property.
    pub fn old_service(&self) -> OldServiceClient {
        OldServiceClient::from_channel(self.old_service.clone())
    }
}

/// Opens every channel of protocol `unusual`.
#[allow(dead_code, unreachable_pub)]
pub trait UnusualConnectionBuilder {
    /// Opens every channel at once, in one round trip, and waits until the server has agreed to each.
    ///
    /// Fails, with none left open, when one of them is refused.
    fn build<C: ::kumi_unison::ChannelSource + ?Sized>(
        client: &C,
    ) -> impl ::core::future::Future<
        Output = Result<UnusualQuicConnection, ::kumi_unison::NetworkError>,
    > + Send;
}

impl UnusualConnectionBuilder for UnusualQuicConnection {
    async fn build<C: ::kumi_unison::ChannelSource + ?Sized>(
        client: &C,
    ) -> Result<Self, ::kumi_unison::NetworkError> {
        let [a_b_c, quiet, loud, mixed, one_way, pair, old_service] = ::kumi_unison::open_channels(
                client,
                [
                    ("a.b-c", a_b_c_options()),
                    ("quiet", quiet_options()),
                    ("loud", loud_options()),
                    ("mixed", mixed_options()),
                    ("one_way", one_way_options()),
                    ("pair", pair_options()),
                    ("Old.Service", old_service_options()),
                ],
            )
            .await?;
        Ok(Self {
            a_b_c,
            quiet,
            loud,
            mixed,
            one_way,
            pair,
            old_service,
        })
    }
}
