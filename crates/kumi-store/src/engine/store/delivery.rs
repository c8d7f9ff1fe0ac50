//! Bytes that reach sessions other than the one that runs: published messages, MONITOR's feed.

use crate::base::ids::SessionKey;
use crate::config::NotifyFlags;
use crate::data::keyspace::Notice;
use crate::engine::output::Outputs;
use crate::engine::pubsub::Kind;
use crate::engine::session::ReplyMode;
use crate::engine::store::Store;
use crate::engine::store::tracking::Actor;
use kumi_resp::{Args, Protocol, SharedBytes, encode};

/// What is published.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Message<'a> {
    Bytes(&'a [u8]),
    /// A long argument, which all subscribers' output refers to.
    Shared(&'a SharedBytes),
}

impl Store {
    /// Publishes the keyspace events of the last command, and sends the invalidations it calls for.
    pub(super) fn deliver_events(&mut self, outputs: &mut Outputs, actor: Option<Actor>) {
        let flags = self.keyspace.notices.flags;
        for notice in self.keyspace.take_notices() {
            let event = match notice {
                Notice::Event(event) => event,
                Notice::Invalidated(invalidated) => {
                    self.deliver_invalidation(outputs, &invalidated, actor);
                    continue;
                }
            };
            if flags.contains(NotifyFlags::KEYSPACE) {
                let channel =
                    [format!("__keyspace@{}__:", event.db).as_bytes(), &event.key].concat();
                self.publish(
                    outputs,
                    Kind::Channel,
                    &channel,
                    Message::Bytes(event.name.as_bytes()),
                );
            }
            if flags.contains(NotifyFlags::KEYEVENT) {
                let channel = format!("__keyevent@{}__:{}", event.db, event.name);
                self.publish(
                    outputs,
                    Kind::Channel,
                    channel.as_bytes(),
                    Message::Bytes(&event.key),
                );
            }
        }
    }

    /// Publishes to a channel's subscribers and to matching patterns; returns how many got it.
    pub(crate) fn publish(
        &mut self,
        outputs: &mut Outputs,
        kind: Kind,
        channel: &[u8],
        message: Message<'_>,
    ) -> usize {
        let mut receivers = 0;
        let word: &[u8] = if kind == Kind::ShardChannel {
            b"smessage"
        } else {
            b"message"
        };
        let subscribers = self.pubsub.subscribers(kind, channel).to_vec();
        receivers += self.push_to(outputs, &subscribers, &[word, channel], message);
        if kind == Kind::Channel {
            let matching: Vec<(Vec<u8>, Vec<SessionKey>)> = self
                .pubsub
                .matching(channel)
                .map(|(pattern, sessions)| (pattern.to_vec(), sessions.to_vec()))
                .collect();
            for (pattern, sessions) in matching {
                let parts: [&[u8]; 3] = [b"pmessage", &pattern, channel];
                receivers += self.push_to(outputs, &sessions, &parts, message);
            }
        }
        receivers
    }

    /// Appends one push message to several sessions. It is encoded once per protocol; a long
    /// message is not copied for each of them.
    fn push_to(
        &mut self,
        outputs: &mut Outputs,
        sessions: &[SessionKey],
        parts: &[&[u8]],
        message: Message<'_>,
    ) -> usize {
        let mut encoded: [Option<Vec<u8>>; 2] = [None, None];
        for &key in sessions {
            let Some(session) = self.clients.sessions.get(key) else {
                continue;
            };
            let protocol = session.protocol;
            let bytes = &mut encoded[usize::from(protocol == Protocol::Resp3)];
            let bytes = bytes.get_or_insert_with(|| encode_push(protocol, parts, message));
            outputs.push(key, bytes);
            if let Message::Shared(shared) = message {
                outputs.push_shared(key, shared);
                outputs.push(key, b"\r\n");
            }
            self.list_output(outputs, key);
        }
        sessions.len()
    }

    /// Ends all subscriptions of a session, without telling it.
    pub(crate) fn unsubscribe_everything(&mut self, key: SessionKey) {
        let Some(session) = self.clients.sessions.get_mut(key) else {
            return;
        };
        let subscriptions = std::mem::take(&mut session.subscriptions);
        let kinds = [
            (Kind::Channel, subscriptions.channels),
            (Kind::Pattern, subscriptions.patterns),
            (Kind::ShardChannel, subscriptions.shard_channels),
        ];
        for (kind, names) in kinds {
            for name in names {
                session.uncount_name(&name);
                self.pubsub.remove(kind, &name, key);
            }
        }
        self.note_listeners();
    }

    /// Tells the keyspace whether notifications have any listener: without one none is made.
    pub(crate) fn note_listeners(&mut self) {
        self.keyspace.notices.has_listeners = self.pubsub.has_event_subscribers();
    }

    /// Shows a command that ran to every MONITOR client; without a source a script called it.
    pub(crate) fn feed_monitors(
        &mut self,
        outputs: &mut Outputs,
        source: Option<SessionKey>,
        db: usize,
        args: Args<'_>,
    ) {
        let origin = match source.map(|source| self.clients.sessions.get(source)) {
            None => "lua".into(),
            Some(Some(session)) if session.identity.peer.unix => {
                format!(
                    "unix:{}",
                    session.identity.peer.laddr.trim_end_matches(":0")
                )
            }
            Some(Some(session)) => session.identity.peer.addr.clone(),
            Some(None) => "?".into(),
        };
        let (seconds, micros) = (self.now.unix_us / 1_000_000, self.now.unix_us % 1_000_000);
        let mut line = format!("+{seconds}.{micros:06} [{db} {origin}]").into_bytes();
        for arg in args.iter() {
            line.push(b' ');
            quote(&mut line, arg);
        }
        line.extend_from_slice(b"\r\n");
        for key in self.clients.monitors.clone() {
            if let Some(session) = self.clients.sessions.get(key)
                && session.modes.reply_mode != ReplyMode::Off
            {
                outputs.push(key, &line);
                self.list_output(outputs, key);
            }
        }
    }
}

/// A push message, up to the bytes of a long last part.
fn encode_push(protocol: Protocol, parts: &[&[u8]], message: Message<'_>) -> Vec<u8> {
    let bytes: usize = parts.iter().map(|part| part.len() + 32).sum();
    let mut push = Vec::with_capacity(bytes);
    encode::push(&mut push, protocol, parts.len() + 1);
    for part in parts {
        encode::bulk(&mut push, part);
    }
    match message {
        Message::Bytes(bytes) => encode::bulk(&mut push, bytes),
        Message::Shared(bytes) => encode::bulk_header(&mut push, bytes.len()),
    }
    push
}

/// Quotes bytes the way Redis prints them: escapes in double quotes.
pub(crate) fn quote(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'"');
    for &byte in bytes {
        match byte {
            b'\\' | b'"' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x07 => out.extend_from_slice(b"\\a"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x20..=0x7e => out.push(byte),
            _ => out.extend_from_slice(format!("\\x{byte:02x}").as_bytes()),
        }
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::NotifyFlags;
    use crate::testing::Lab;

    #[test]
    fn an_event_is_made_only_for_a_listener() {
        let mut lab = Lab::new();
        lab.configure("notify-keyspace-events", "KEA");
        let put = |lab: &mut Lab| {
            let mut keys = lab.store.keyspace.keys(0, 0, true);
            keys.notify(NotifyFlags::STRING, "set", b"a");
            lab.store.keyspace.take_notices().len()
        };
        assert_eq!(put(&mut lab), 0);
        let (listener, other) = (lab.connect(), lab.connect());
        let subscriptions = [
            ("SUBSCRIBE", "c", 0),
            ("SUBSCRIBE", "__keyevent@0__:set", 1),
            ("SUBSCRIBE", "__keyspace@0__:a", 1),
            ("SSUBSCRIBE", "__keyevent@0__:set", 0),
            ("PSUBSCRIBE", "c*", 0),
            ("PSUBSCRIBE", "__kit*", 0),
            ("PSUBSCRIBE", "*", 1),
            ("PSUBSCRIBE", "?_key*", 1),
            ("PSUBSCRIBE", "_[_]key*", 1),
            ("PSUBSCRIBE", "\\__key*", 1),
            ("PSUBSCRIBE", "__k*", 1),
            ("PSUBSCRIBE", "__keyevent@*", 1),
        ];
        for (command, name, events) in subscriptions {
            let undo = command.replacen("SUB", "UNSUB", 1);
            for client in [listener, other] {
                lab.run_as(client, &format!("{command} {name}"));
                assert_eq!(put(&mut lab), events, "{command} {name}");
            }
            lab.run_as(listener, &format!("{undo} {name}"));
            assert_eq!(put(&mut lab), events, "{command} {name} of another client");
            lab.run_as(other, &format!("{undo} {name}"));
            assert_eq!(put(&mut lab), 0, "{undo} {name}");
        }
        lab.run_as(listener, "PSUBSCRIBE *");
        assert_eq!(put(&mut lab), 1);
        lab.store.disconnect(listener);
        assert_eq!(put(&mut lab), 0);
    }

    #[test]
    fn a_long_message_is_held_once_for_all_its_subscribers() {
        let mut lab = Lab::new();
        let listeners = [lab.connect(), lab.connect(), lab.connect()];
        for listener in listeners {
            lab.run_as(listener, "SUBSCRIBE c");
        }
        lab.run_as(listeners[2], "PSUBSCRIBE c*");
        let message = SharedBytes::new(vec![b'm'; 100_000]);
        let before = lab.outputs.heap_bytes();
        let (outputs, message) = (&mut lab.outputs, Message::Shared(&message));
        let receivers = lab.store.publish(outputs, Kind::Channel, b"c", message);
        assert_eq!(receivers, 4);
        assert!(lab.outputs.heap_bytes() - before < 60_000);
        let push = "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$100000\r\n";
        for listener in listeners {
            let received = lab.received(listener);
            assert!(received.starts_with(push), "{}", &received[..60]);
            assert!(received.ends_with("mm\r\n"));
        }
    }

    #[test]
    fn quoting_escapes_what_a_terminal_would_not_show() {
        let mut out = Vec::new();
        quote(&mut out, b"a\"\\\n\x00\xff");
        assert_eq!(out, br#""a\"\\\n\x00\xff""#);
    }
}
