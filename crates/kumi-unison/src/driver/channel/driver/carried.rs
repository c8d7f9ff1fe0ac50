//! What carries a channel: a stream of a connection, beside it streams for one call each, and datagrams.
//!
//! A persistent channel gets another carrier after a loss. Stream ids are unique on one connection only, so a reference to
//! a stream holds its connection too.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use bytes::Bytes;

use super::super::UnisonChannel;
use super::super::options::{Carrier, ChannelOptions};
use super::super::transport::DatagramLink;
use super::ChannelDriver;
use crate::core::{Phase, event_message};
use crate::driver::channel::context::{ChannelHandle, ConnectionContext, MAX_DATAGRAM_PAYLOAD};
use crate::error::NetworkError;
use crate::identity::Delivery;
use crate::payload::Payload;
use crate::wire::{ContentType, Output, ProtocolMessage, encode_short};

/// How long a channel may take to detect the loss of its connection, after a call on a stream of its own was lost.
const LOSS_NOTICED: Duration = Duration::from_secs(1);

/// The longest payload of an event in a datagram, with room for what its archive adds.
const MAX_DATAGRAM_EVENT: usize = MAX_DATAGRAM_PAYLOAD - 4 * 1024;

impl ChannelDriver {
    /// Registers the channel at the connection that carries it from now on.
    pub(in crate::driver::channel) fn join(self: &Arc<Self>, context: &Arc<ConnectionContext>) {
        let weak = Arc::downgrade(self);
        let handle = ChannelHandle {
            channel_name: self.lock().name().to_owned(),
            stream_id: self.stream_id(),
            direction: self.options.direction,
        };
        self.list_in(context, handle);
        if matches!(self.lock().phase(), Phase::Ended { .. }) {
            // It ended before it was in the list.
            self.unlist();
        }
        let carrier = Carrier {
            context: Arc::clone(context),
            stream_id: self.stream_id(),
        };
        let mut current = self.carrier.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *current, carrier);
        drop(current);
        before
            .context
            .forget_stream(before.stream_id, Arc::as_ptr(self));
        if self.is_unreliable() {
            context.route_datagrams(self.stream_id(), weak);
        }
        self.state.notify_waiters();
    }

    /// Lists the channel in this connection, and in no other.
    pub(super) fn list_in(
        self: &Arc<Self>,
        context: &Arc<ConnectionContext>,
        handle: ChannelHandle,
    ) {
        self.unlist();
        let key = context.register_channel(handle, Arc::downgrade(self));
        let mut listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        *listed = Some((Arc::clone(context), key));
    }

    /// Takes the channel from the list of its connection.
    pub(super) fn unlist(&self) {
        let listed = self.listed.lock();
        let listed = listed.unwrap_or_else(PoisonError::into_inner).take();
        if let Some((context, key)) = listed {
            context.remove_channel(key);
        }
    }

    /// What carries the channel now.
    pub(in crate::driver::channel) fn carrier(&self) -> Carrier {
        self.carrier
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// After a call on a stream of its own was lost: whether the channel got another carrier. It did not if it ended, or
    /// if it was only the call's stream that broke.
    pub(in crate::driver::channel) async fn next_carrier(&self, before: &Carrier) -> bool {
        let noticed = self.wait_state(|phase| {
            let is_open = matches!(phase, Phase::Open | Phase::Opening { .. });
            let stands = is_open && self.carrier().is(before);
            (!stands).then_some(())
        });
        if tokio::time::timeout(LOSS_NOTICED, noticed).await.is_err() {
            return false;
        }
        self.wait_state(|phase| match phase {
            Phase::Ended { .. } => Some(false),
            _ if self.carrier().is(before) => None,
            _ => Some(true),
        })
        .await
    }

    /// Responds to the one call of this stream with the service of the channel that it belongs to. The stream ends with that
    /// channel.
    pub(crate) async fn serve_part(self: &Arc<Self>, channel: UnisonChannel) {
        let Some(whole) = &self.whole else { return };
        let served = whole.wait_state(|phase| match phase {
            Phase::Ended { .. } => Some(()),
            _ => whole.has_service().then_some(()),
        });
        served.await;
        // Each such stream has room for one response; the connection's limit holds for all together.
        self.context.answers().ease().await;
        self.step(|core, effects| core.set_has_service(effects));
        tokio::select! {
            _ = channel.closed() => {}
            error = whole.ended() => self.end(error, true),
        }
    }

    pub(crate) fn is_named(&self, name: &str) -> bool {
        self.lock().name() == name
    }

    /// What a stream for one call of this channel is set to.
    pub(crate) fn options_for_part(&self) -> ChannelOptions {
        ChannelOptions {
            service: None,
            ..self.options.clone()
        }
    }

    fn has_service(&self) -> bool {
        let service = self.service.lock();
        service.unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Resolves when the channel has ended, with the reason.
    pub(in crate::driver::channel) async fn ended(&self) -> NetworkError {
        self.wait_state(|phase| match phase {
            Phase::Ended { error, .. } => Some(error.clone()),
            _ => None,
        })
        .await
    }

    /// Whether events are sent as datagrams.
    pub(in crate::driver::channel) fn is_unreliable(&self) -> bool {
        self.options.delivery == Delivery::Unreliable
    }

    pub(in crate::driver::channel) fn attach_datagrams(
        self: &Arc<Self>,
        link: Option<Arc<dyn DatagramLink>>,
    ) {
        *self
            .datagrams
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = link;
        let Carrier { context, stream_id } = self.carrier();
        context.route_datagrams(stream_id, Arc::downgrade(self));
    }

    /// Sends an event as a datagram. Without a connection it is dropped.
    pub(super) fn send_datagram(
        &self,
        method: &str,
        payload: &Payload,
    ) -> Result<(), NetworkError> {
        if let Phase::Ended { error, .. } = self.lock().phase() {
            return Err(error.clone());
        }
        let link = self
            .datagrams
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let Some(link) = link else { return Ok(()) };
        if payload.content_type == ContentType::Typed && self.lock().typed_allowed() == Some(false)
        {
            return Err(NetworkError::TypedRefused);
        }
        if payload.bytes.len() > MAX_DATAGRAM_EVENT {
            return Err(NetworkError::FrameTooLarge {
                len: payload.bytes.len(),
                max: MAX_DATAGRAM_EVENT,
            });
        }
        match link.send(self.datagram(method, payload)?) {
            // The channel learns of the loss by its stream.
            Err(NetworkError::ConnectionLost { .. }) => Ok(()),
            Ok(()) => {
                self.context.metrics().events_sent.increment();
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Encodes an event for a datagram: in the short form, or as a packet if it may be compressed.
    fn datagram(&self, method: &str, payload: &Payload) -> Result<Bytes, NetworkError> {
        let message = event_message(method, payload);
        let (stream_id, content_type) = (self.stream_id(), payload.content_type);
        if !message.is_long()
            && let Some(short) = encode_short(stream_id, method, content_type, &payload.bytes)
        {
            return Ok(short);
        }
        let mut output = Output::new(stream_id);
        output.push(&message, 0, &self.codec)?;
        Ok(output.take_packet())
    }

    pub(crate) fn receive_datagram(&self, event: ProtocolMessage) {
        self.step_here(|core, effects| core.handle_datagram(event, effects));
    }
}
