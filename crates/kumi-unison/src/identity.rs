//! The identity of a server, and the channels that it offers.
//!
//! [`ChannelDirection`] has one meaning everywhere: which side starts messages (requests and events) on the channel.
//! Responses go the other way. It is information only: both sides of any channel may send requests.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Which side starts messages on a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub enum ChannelDirection {
    /// The server sends, the client receives.
    ServerToClient,
    /// The client sends, the server receives.
    ClientToServer,
    /// Both.
    #[default]
    Bidirectional,
}

/// Whether a channel can be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub enum ChannelStatus {
    /// It can.
    #[default]
    Available,
    /// Not now; asking again later may help.
    Busy,
    /// It is switched off. A status that is not known is taken for this one.
    #[serde(other)]
    Unavailable,
}

/// Whether a channel outlives its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Lifetime {
    /// It ends with the stream under it.
    Transient,
    /// The client opens it again after a lost connection.
    #[default]
    Persistent,
}

/// From the word that schemas and identities have for it.
impl std::str::FromStr for Lifetime {
    type Err = crate::NetworkError;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        match word {
            "transient" => Ok(Self::Transient),
            "persistent" => Ok(Self::Persistent),
            _ => Err(crate::NetworkError::Codec(format!(
                "{word:?} is no lifetime: it is `transient` or `persistent`"
            ))),
        }
    }
}

/// Whether a channel's events may be lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Delivery {
    /// In order, none lost, on a stream.
    #[default]
    Reliable,
    /// As datagrams: no order, no repetition, no requests.
    Unreliable,
}

impl std::fmt::Display for Delivery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Reliable => "reliable",
            Self::Unreliable => "unreliable",
        })
    }
}

/// Which schema a channel was generated from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SchemaId {
    /// SHA-256 of the schema in its normal form.
    pub hash: [u8; 32],
    /// The protocol's version, such as `1.2.0`.
    pub version: Cow<'static, str>,
}

impl SchemaId {
    /// The schema with this hash and version, as generated code names it.
    pub const fn new(hash: [u8; 32], version: &'static str) -> Self {
        Self {
            hash,
            version: Cow::Borrowed(version),
        }
    }

    /// The number before the version's first dot.
    pub fn major(&self) -> &str {
        self.version.split('.').next().unwrap_or_default()
    }
}

/// As it travels: the hash in hexadecimal digits.
#[derive(Serialize, Deserialize)]
struct SchemaText {
    hash: String,
    version: String,
}

impl Serialize for SchemaId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut hash = String::with_capacity(64);
        for byte in self.hash {
            for nibble in [byte >> 4, byte & 15] {
                hash.push(char::from_digit(u32::from(nibble), 16).unwrap_or('0'));
            }
        }
        SchemaText {
            hash,
            version: self.version.to_string(),
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for SchemaId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let SchemaText {
            hash: text,
            version,
        } = SchemaText::deserialize(deserializer)?;
        let digits: Option<Vec<u8>> = text
            .chars()
            .map(|c| c.to_digit(16).map(|digit| digit as u8))
            .collect();
        let mut hash = [0; 32];
        match digits {
            Some(digits) if digits.len() == 64 => {
                for (byte, pair) in hash.iter_mut().zip(digits.chunks_exact(2)) {
                    *byte = pair[0] << 4 | pair[1];
                }
            }
            _ => {
                return Err(serde::de::Error::custom(
                    "a schema hash has 64 hexadecimal digits",
                ));
            }
        }
        Ok(Self {
            hash,
            version: Cow::Owned(version),
        })
    }
}

/// What a server says of one of its channels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChannelInfo {
    /// The name to open it by.
    pub name: String,
    /// Which side starts messages.
    #[serde(default)]
    pub direction: ChannelDirection,
    /// `persistent` or `transient`.
    #[serde(default)]
    pub lifetime: Lifetime,
    /// Whether it can be opened now.
    #[serde(default)]
    pub status: ChannelStatus,
    /// `reliable` or `unreliable`.
    #[serde(default)]
    pub delivery: Delivery,
    /// The schema it was generated from; none for channels registered by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<SchemaId>,
}

/// What a server says of itself right after a connection is made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServerIdentity {
    /// The server's name.
    pub name: String,
    /// The server's version.
    pub version: String,
    /// The namespace it serves.
    pub namespace: String,
    /// The version of Unison that it implements.
    #[serde(default)]
    pub protocol_version: u8,
    /// What can be opened, sorted by name.
    #[serde(default)]
    pub channels: Vec<ChannelInfo>,
    /// Other information about the server.
    #[serde(default)]
    pub metadata: Value,
}

impl ServerIdentity {
    /// An identity without channels.
    pub fn new(name: &str, version: &str, namespace: &str) -> Self {
        Self {
            name: name.to_owned(),
            version: version.to_owned(),
            namespace: namespace.to_owned(),
            protocol_version: crate::wire::PROTOCOL_VERSION,
            channels: Vec::new(),
            metadata: Value::Null,
        }
    }

    /// Adds a channel, replacing one of the same name, and keeps the list sorted.
    pub fn add_channel(&mut self, channel: ChannelInfo) {
        match self
            .channels
            .binary_search_by(|known| known.name.cmp(&channel.name))
        {
            Ok(at) => self.channels[at] = channel,
            Err(at) => self.channels.insert(at, channel),
        }
    }

    /// The channel of this name.
    pub fn channel(&self, name: &str) -> Option<&ChannelInfo> {
        self.channels.iter().find(|channel| channel.name == name)
    }

    /// The updates that make the list of this identity that of another.
    pub fn changes_to(&self, other: &Self) -> Vec<ChannelUpdate> {
        let removed = self
            .channels
            .iter()
            .filter(|known| other.channel(&known.name).is_none())
            .map(|known| ChannelUpdate::Removed(known.name.clone()));
        let changed = other.channels.iter().filter_map(|channel| {
            let known = self.channel(&channel.name);
            let only_status = known.is_some_and(|known| {
                let status = channel.status;
                *channel
                    == ChannelInfo {
                        status,
                        ..known.clone()
                    }
            });
            match known {
                Some(known) if known == channel => None,
                Some(_) if only_status => Some(ChannelUpdate::StatusChanged {
                    name: channel.name.clone(),
                    status: channel.status,
                }),
                _ => Some(ChannelUpdate::Added(channel.clone())),
            }
        });
        removed.chain(changed).collect()
    }

    /// Brings the list up to date.
    pub fn apply(&mut self, update: &ChannelUpdate) {
        match update {
            ChannelUpdate::Added(channel) => self.add_channel(channel.clone()),
            ChannelUpdate::Removed(name) => self.channels.retain(|channel| channel.name != *name),
            ChannelUpdate::StatusChanged { name, status } => {
                if let Some(channel) = self
                    .channels
                    .iter_mut()
                    .find(|channel| channel.name == *name)
                {
                    channel.status = *status;
                }
            }
        }
    }
}

/// A change to the list of channels, sent on open connections.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "channel")]
#[non_exhaustive]
pub enum ChannelUpdate {
    /// A channel was registered, or registered anew.
    Added(ChannelInfo),
    /// The channel of this name can no longer be opened.
    Removed(String),
    /// A channel's status changed.
    StatusChanged {
        /// The channel.
        name: String,
        /// Its status now.
        status: ChannelStatus,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(name: &str) -> ChannelInfo {
        ChannelInfo {
            name: name.to_owned(),
            direction: ChannelDirection::Bidirectional,
            lifetime: Lifetime::Persistent,
            status: ChannelStatus::Available,
            delivery: Delivery::Reliable,
            schema: None,
        }
    }

    #[test]
    fn updates_travel_tagged_and_change_the_list() {
        let mut identity = ServerIdentity::new("s", "1", "default");
        let updates = [
            ChannelUpdate::Added(info("b")),
            ChannelUpdate::Added(info("a")),
            ChannelUpdate::StatusChanged {
                name: "b".into(),
                status: ChannelStatus::Busy,
            },
            ChannelUpdate::Removed("a".into()),
        ];
        for update in updates {
            let text = serde_json::to_string(&update).unwrap();
            assert!(text.starts_with(r#"{"type":"#), "{text}");
            identity.apply(&serde_json::from_str(&text).unwrap());
        }
        assert_eq!(identity.channels.len(), 1);
        assert_eq!(identity.channel("b").unwrap().status, ChannelStatus::Busy);
        assert!(identity.channel("a").is_none());
    }

    #[test]
    fn an_identity_may_say_less_and_other_things_than_are_known() {
        let text = r#"{"name":"s","version":"1","namespace":"n","later":1}"#;
        let identity: ServerIdentity = serde_json::from_str(text).unwrap();
        assert_eq!(identity.channels, []);
        let text = r#"{"name":"a","status":"Resting","later":{}}"#;
        let channel: ChannelInfo = serde_json::from_str(text).unwrap();
        let status = ChannelStatus::Unavailable;
        assert_eq!(
            channel,
            ChannelInfo {
                status,
                ..info("a")
            }
        );
    }

    #[test]
    fn a_schema_hash_travels_as_digits() {
        let schema = SchemaId::new([0xab; 32], "2.1.0");
        let text = serde_json::to_string(&schema).unwrap();
        assert!(text.contains(&"ab".repeat(32)), "{text}");
        assert_eq!(serde_json::from_str::<SchemaId>(&text).unwrap(), schema);
        assert_eq!(schema.major(), "2");
        assert!(serde_json::from_str::<SchemaId>(r#"{"hash":"ab","version":"1"}"#).is_err());
        assert!(serde_json::from_str::<SchemaId>(&text.replace("ab", "xy")).is_err());
    }
}
