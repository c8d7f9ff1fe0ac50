//! One connection of a sequence to one server, and how many replies it has coming.
//!
//! RESP has no request ids, so whoever reads must know what to expect: one reply per request, except for subscribing,
//! for clients that asked for silence, and for messages in between. The session follows the server's answers to know
//! that. It judges nothing: two sessions' answers are compared elsewhere.

use std::collections::{BTreeSet, VecDeque};

use crate::command::{Arg, Context, Request};
use crate::shapes;
use crate::support::client::{Client, Silence, encode};
use crate::support::frame::{Frame, Reply};

/// How many pages a followed SCAN may take.
const SCAN_PAGES: usize = 100_000;

/// What a session saw, in order.
#[derive(Clone, Debug)]
pub(crate) enum Item {
    /// The answer to a request: one reply, or several where the command gives several.
    Answer {
        request: Request,
        replies: Vec<Reply>,
        /// For EXEC: the requests whose answers are its elements.
        queued: Vec<Request>,
    },
    /// A message of pub/sub.
    Message(Reply),
    /// A reply nobody asked for.
    Stray(Reply),
    Closed,
    /// The server owes an answer and does not give it, or gives what is no RESP.
    Broken(String),
}

/// Which requests the server answers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Voice {
    On,
    Off,
    SkipNext,
}

pub(crate) struct Session {
    client: Client,
    /// The transaction's requests so far, while there is one.
    queue: Option<Vec<Request>>,
    channels: BTreeSet<Vec<u8>>,
    patterns: BTreeSet<Vec<u8>>,
    shard_channels: BTreeSet<Vec<u8>>,
    voice: Voice,
    /// Requests sent whose answers have not been read.
    owed: VecDeque<Request>,
    closed: bool,
    fences: u64,
    /// Whether messages may have come since the last fence, even if no subscription is left.
    heard: bool,
    /// Whether invalidations of client-side caching may come at any time.
    tracking: bool,
}

impl Session {
    /// With `tracking`, some client of the sequence uses client-side caching.
    pub(crate) fn new(client: Client, tracking: bool) -> Session {
        Session {
            client,
            queue: None,
            channels: BTreeSet::new(),
            patterns: BTreeSet::new(),
            shard_channels: BTreeSet::new(),
            voice: Voice::On,
            owed: VecDeque::new(),
            closed: false,
            fences: 0,
            heard: false,
            tracking,
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Whether messages may come without a request.
    pub(crate) fn hears_messages(&self) -> bool {
        // One whose answer is due later may be waiting, and answers nothing meanwhile.
        !self.closed
            && self.voice == Voice::On
            && self.owed.is_empty()
            && (self.heard
                || self.tracking
                || !(self.channels.is_empty()
                    && self.patterns.is_empty()
                    && self.shard_channels.is_empty()))
    }

    pub(crate) fn messages_inside_replies(&self) -> usize {
        self.client.messages_inside_replies
    }

    /// Sends bytes that hold these requests.
    pub(crate) fn send(&mut self, pieces: &[&[u8]], requests: &[Request]) {
        for piece in pieces {
            // A connection that is closed shows when its answers are read.
            if self.client.send(piece).is_err() {
                break;
            }
        }
        self.owed.extend(requests.iter().cloned());
    }

    /// Reads all answers owed.
    pub(crate) fn collect(&mut self, context: &Context) -> Vec<Item> {
        let mut items = Vec::new();
        while let Some(request) = self.owed.pop_front() {
            if self.closed {
                break;
            }
            if self.is_answered(&request) {
                self.answer(request, context, &mut items);
            }
        }
        self.owed.clear();
        items
    }

    /// Reads until the server closes the connection.
    pub(crate) fn collect_to_end(&mut self) -> Vec<Item> {
        let mut items = Vec::new();
        while !self.closed {
            if let Some(reply) = self.next(&mut items) {
                items.push(Item::Stray(reply));
            }
        }
        items
    }

    /// Reads every message the server has written so far.
    ///
    /// The proof that no more are under way is a request of the session's own, answered behind them: PING, or inside a
    /// transaction a nested MULTI, which is refused without a trace.
    pub(crate) fn fence(&mut self) -> Vec<Item> {
        let mut items = Vec::new();
        self.fences += 1;
        self.heard = false;
        let token = format!("fence-{}", self.fences);
        let sent = if self.queue.is_some() {
            self.client.send(&encode(&["MULTI"]))
        } else {
            self.client.send(&encode(&["PING", &token]))
        };
        if sent.is_err() {
            // Whatever was written before the close can still be read.
            return self.collect_to_end();
        }
        loop {
            let Some(reply) = self.next(&mut items) else {
                return items;
            };
            let is_fence = match &reply.frame {
                Frame::Bulk(text) => text == token.as_bytes(),
                Frame::Array(parts) => parts.last().and_then(Frame::text) == Some(token.as_bytes()),
                Frame::Error(text) => [
                    b"ERR MULTI calls can not be nested".as_slice(),
                    b"NOAUTH",
                    b"OOM",
                ]
                .iter()
                .any(|refusal| text.starts_with(refusal)),
                _ => false,
            };
            if is_fence {
                return items;
            }
            items.push(Item::Stray(reply));
        }
    }

    /// Ends the session: whatever it is in, RESET takes it out, and everything before its answer is shown.
    pub(crate) fn finish(&mut self) -> Vec<Item> {
        let mut items = Vec::new();
        if self.closed {
            return items;
        }
        if self.client.send(&encode(&["RESET"])).is_err() {
            return self.collect_to_end();
        }
        while let Some(reply) = self.next(&mut items) {
            if reply.frame == Frame::Simple(b"RESET".to_vec()) {
                return items;
            }
            items.push(Item::Stray(reply));
        }
        items
    }

    /// The next reply that is no message; messages go to `items`, and so does the end.
    fn next(&mut self, items: &mut Vec<Item>) -> Option<Reply> {
        loop {
            match self.client.reply() {
                Ok(reply) if reply.frame.is_message() => items.push(Item::Message(reply)),
                Ok(reply) => return Some(reply),
                Err(silence) => {
                    self.closed = true;
                    items.push(match silence {
                        Silence::Closed => Item::Closed,
                        Silence::TimedOut => Item::Broken("no answer".into()),
                        Silence::Malformed(reason) => Item::Broken(reason),
                    });
                    return None;
                }
            }
        }
    }

    /// Waits for what comes next, a message as a rule.
    pub(crate) fn next_message(&mut self, items: &mut Vec<Item>) {
        items.push(match self.client.reply() {
            Ok(reply) if reply.frame.is_message() => Item::Message(reply),
            Ok(reply) => Item::Stray(reply),
            Err(silence) => {
                self.closed = true;
                Item::Broken(format!("{silence:?} while a message was due"))
            }
        });
    }

    /// Whether the server answers this request at all.
    fn is_answered(&mut self, request: &Request) -> bool {
        let speaks_of_replies = self.queue.is_none()
            && request.args.len() == 3
            && request.word(0) == "client"
            && request.word(1) == "reply";
        match (self.voice, request.word(2).as_str()) {
            (_, "on") if speaks_of_replies => self.voice = Voice::On,
            (_, "off") if speaks_of_replies => self.voice = Voice::Off,
            (Voice::On, "skip") if speaks_of_replies => {
                self.voice = Voice::SkipNext;
                return false;
            }
            (Voice::SkipNext, _) => {
                self.voice = Voice::On;
                return false;
            }
            _ => {}
        }
        self.voice == Voice::On
    }

    fn answer(&mut self, request: Request, context: &Context, items: &mut Vec<Item>) {
        let Some(first) = self.next(items) else {
            return;
        };
        let expected = self.replies_to(&request, &first.frame);
        let mut replies = vec![first];
        while replies.len() < expected {
            match self.next(items) {
                Some(reply) => replies.push(reply),
                None => break,
            }
        }
        // Whatever EXEC answers, a refusal of its arguments included, there is no transaction after it.
        let is_exec = request.word(0) == "exec";
        let queued = if is_exec {
            self.queue.take().unwrap_or_default()
        } else {
            Vec::new()
        };
        match replies[0].frame.items() {
            Some(elements) if is_exec && elements.len() == queued.len() => {
                let elements = elements.to_vec();
                for (request, element) in queued.iter().zip(&elements) {
                    self.learn(request, element);
                }
            }
            _ => {
                for reply in &replies {
                    self.learn(&request, &reply.frame);
                }
            }
        }
        if self.queue.is_none() && !self.closed {
            self.follow_scan(&request, context, &mut replies, items);
        }
        let quits = request.word(0) == "quit" && replies[0].frame == Frame::Simple(b"OK".to_vec());
        items.push(Item::Answer {
            request,
            replies,
            queued,
        });
        if quits {
            items.extend(self.collect_to_end());
        }
    }

    /// How many replies belong to a request, judging by the first.
    fn replies_to(&self, request: &Request, first: &Frame) -> usize {
        if first.confirmation().is_some() {
            let named = request.args.len() - 1;
            let held = match request.word(0).as_str() {
                "unsubscribe" => self.channels.len(),
                "punsubscribe" => self.patterns.len(),
                "sunsubscribe" => self.shard_channels.len(),
                _ => 0,
            };
            return if named > 0 { named } else { held.max(1) };
        }
        // Redis counts a subscribing command inside EXEC as one element, whatever it writes.
        match (&self.queue, first) {
            (Some(queue), Frame::Array(_)) if request.word(0) == "exec" => {
                1 + queue
                    .iter()
                    .filter(|request| request.word(0).ends_with("subscribe"))
                    .map(|request| request.args.len().saturating_sub(2))
                    .sum::<usize>()
            }
            _ => 1,
        }
    }

    /// Keeps the session's picture of itself in step with an answer.
    fn learn(&mut self, request: &Request, frame: &Frame) {
        if let Some((kind, Some(channel))) = frame.confirmation() {
            self.heard = true;
            let set = match kind.first() {
                Some(b'p') => &mut self.patterns,
                Some(b's') if kind.starts_with(b"ss") || kind.starts_with(b"sun") => {
                    &mut self.shard_channels
                }
                _ => &mut self.channels,
            };
            if kind.ends_with(b"unsubscribe") {
                set.remove(channel);
            } else {
                set.insert(channel.to_vec());
            }
            return;
        }
        let Frame::Simple(text) = frame else { return };
        match (request.word(0).as_str(), text.as_slice()) {
            (_, b"QUEUED") => {
                if let Some(queue) = &mut self.queue {
                    queue.push(request.clone());
                }
            }
            ("multi", b"OK") => self.queue = Some(Vec::new()),
            ("discard", b"OK") => self.queue = None,
            ("reset", b"RESET") => {
                self.queue = None;
                self.channels.clear();
                self.patterns.clear();
                self.shard_channels.clear();
                self.voice = Voice::On;
            }
            _ => {}
        }
    }

    /// Follows a SCAN that stands alone to its end, so that whole iterations can be compared.
    fn follow_scan(
        &mut self,
        request: &Request,
        context: &Context,
        replies: &mut Vec<Reply>,
        items: &mut Vec<Item>,
    ) {
        let Some(position) = shapes::cursor_position(request) else {
            return;
        };
        if request.word(position) != "0" || !self.owed.is_empty() {
            return;
        }
        let mut args = request.args.clone();
        for _ in 0..SCAN_PAGES {
            let cursor = match replies.last().map(|reply| &reply.frame) {
                Some(Frame::Array(parts)) => {
                    parts.first().and_then(Frame::text).map(<[u8]>::to_vec)
                }
                _ => None,
            };
            match cursor {
                Some(cursor) if cursor != b"0" => args[position] = Arg::Bytes(cursor),
                _ => return,
            }
            let page = Request { args: args.clone() };
            if self.client.send(&page.encode(context)).is_err() {
                return;
            }
            match self.next(items) {
                Some(reply) => replies.push(reply),
                None => return,
            }
        }
    }
}
