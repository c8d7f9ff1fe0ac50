//! How a channel is opened: what the first message says, what the acknowledgement says, and whether two schemas fit.

use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::{Core, Effects, Phase, methods};
use crate::error::{NetworkError, RemoteError};
use crate::identity::{Delivery, SchemaId};
use crate::payload::Payload;
use crate::wire::{MessageType, Outgoing, PacketFlags, PacketType, ProtocolMessage};

/// How many events, and how many bytes of them, may be on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Window {
    /// Events.
    pub events: u32,
    /// Bytes of their payloads.
    pub bytes: u32,
}

impl Default for Window {
    fn default() -> Self {
        Self {
            events: 256,
            bytes: 1024 * 1024,
        }
    }
}

/// The first message's content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Opening {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) schema: Option<SchemaId>,
    /// The opener's window for events.
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) window: Window,
    /// How much of the window is taken up by events of an earlier stream.
    #[serde(default = "nothing", skip_serializing_if = "is_nothing")]
    pub(crate) held: Window,
    /// Requests the opener runs at a time.
    #[serde(default = "initial")]
    pub(crate) in_flight: u32,
    /// Whether the opener takes the channel's events to be datagrams. One that says nothing is taken to agree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) delivery: Option<Delivery>,
    /// This stream is for one call of the channel that was opened on the stream of this number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) part_of: Option<u64>,
}

/// What an opening without content means.
impl Default for Opening {
    fn default() -> Self {
        Self {
            schema: None,
            window: Window::default(),
            held: nothing(),
            in_flight: initial(),
            delivery: None,
            part_of: None,
        }
    }
}

/// The acknowledgement's content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Ack {
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) window: Window,
    #[serde(default = "initial")]
    pub(crate) in_flight: u32,
    /// Whether typed binary may be sent on this channel.
    #[serde(default)]
    pub(crate) typed: bool,
}

fn nothing() -> Window {
    Window {
        events: 0,
        bytes: 0,
    }
}

/// An explicit `null` means the default, as a missing field does.
fn or_default<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Window, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

fn is_nothing(window: &Window) -> bool {
    *window == nothing()
}

fn initial() -> u32 {
    super::INITIAL_IN_FLIGHT
}

/// How two sides' schemas fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SchemaFit {
    /// The same, or neither side has one: every format works.
    Same,
    /// Not the same, but of one major version, or only one side has one: JSON and bytes work.
    Compatible,
    /// Of different major versions, whatever their hashes.
    Different,
}

pub(crate) fn fit(ours: Option<&SchemaId>, theirs: Option<&SchemaId>) -> SchemaFit {
    match (ours, theirs) {
        (None, None) => SchemaFit::Same,
        // With another major version the same messages mean something else.
        (Some(ours), Some(theirs)) if ours.major() != theirs.major() => SchemaFit::Different,
        (Some(ours), Some(theirs)) if ours.hash == theirs.hash => SchemaFit::Same,
        _ => SchemaFit::Compatible,
    }
}

impl Core {
    /// Queues the opening and waits for the acknowledgement.
    pub(super) fn open(
        &mut self,
        now: Instant,
        id: u64,
        resuming: bool,
    ) -> Result<(), NetworkError> {
        let delivery = if self.settings.unreliable {
            Delivery::Unreliable
        } else {
            Delivery::Reliable
        };
        let opening = Opening {
            schema: self.settings.schema.clone(),
            window: self.settings.window,
            held: self.inbox.begin_stream(),
            in_flight: self.settings.max_in_flight,
            // A part goes by what its channel was opened with.
            delivery: self.settings.part_of.is_none().then_some(delivery),
            part_of: self.settings.part_of,
        };
        let payload = Payload::json(&opening)?;
        let method = format!("{}{}", methods::CHANNEL, self.name);
        let message = Outgoing {
            packet_type: PacketType::Handshake,
            flags: PacketFlags::NONE,
            msg_type: MessageType::Request,
            content_type: payload.content_type,
            id,
            method: &method,
            payload: &payload.bytes,
            metadata: None,
        };
        self.outbox.push(now, &message)?;
        let until = super::after(now, self.settings.open_timeout);
        self.phase = Phase::Opening {
            id,
            until,
            resuming,
        };
        self.note_deadline(until);
        Ok(())
    }

    /// Takes what the opener grants, and queues the acknowledgement.
    pub(super) fn acknowledge(
        &mut self,
        now: Instant,
        opening: &Opening,
        opening_id: u64,
    ) -> Result<(), NetworkError> {
        let schema_fit = fit(self.settings.schema.as_ref(), opening.schema.as_ref());
        self.typed_allowed = Some(schema_fit == SchemaFit::Same);
        self.calls.set_max_in_flight(opening.in_flight);
        self.credits.grant(now, opening.window, opening.held);
        self.inbox.begin_stream();
        let ack = Ack {
            window: self.settings.window,
            in_flight: self.settings.max_in_flight,
            typed: schema_fit == SchemaFit::Same,
        };
        let payload = Payload::json(&ack)?;
        let message = Outgoing {
            packet_type: PacketType::Handshake,
            flags: PacketFlags::IS_ACK,
            msg_type: MessageType::Response,
            content_type: payload.content_type,
            id: opening_id,
            method: "",
            payload: &payload.bytes,
            metadata: None,
        };
        self.outbox.push(now, &message)
    }

    pub(super) fn handle_acknowledgement(
        &mut self,
        now: Instant,
        message: ProtocolMessage,
        effects: &mut Effects,
    ) -> Result<(), NetworkError> {
        let Phase::Opening { id, resuming, .. } = self.phase else {
            return Err(NetworkError::Violation(
                "an acknowledgement that was not expected".to_owned(),
            ));
        };
        if message.id != id {
            return Err(NetworkError::Violation(
                "an acknowledgement of something else".to_owned(),
            ));
        }
        let refused = message.msg_type == MessageType::Error;
        let payload = super::payload_of(message);
        if refused {
            let remote: RemoteError = payload.to_json()?;
            match NetworkError::from_runtime(remote) {
                // These errors are temporary, and the channel was accepted before.
                NetworkError::Busy
                | NetworkError::Unavailable { .. }
                | NetworkError::Draining { .. }
                    if resuming =>
                {
                    self.lose(effects);
                }
                error => self.end(error, false, effects),
            }
            return Ok(());
        }
        let ack: Ack = payload.to_json()?;
        self.typed_allowed = Some(ack.typed);
        self.calls.set_max_in_flight(ack.in_flight.max(1));
        self.credits.grant(now, ack.window, nothing());
        self.phase = Phase::Open;
        effects.state = true;
        effects.slots = true;
        effects.credits = true;
        if resuming {
            effects.counts.resumed += 1;
            self.inbox.resumed(&mut effects.wakers);
        }
        self.send_backlog(now, effects);
        // What was taken while the opening was under way was not owed to the peer until now.
        self.wake_for_credit(effects);
        Ok(())
    }
}
