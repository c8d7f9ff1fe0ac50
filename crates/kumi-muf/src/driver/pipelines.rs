//! Pipelines of commands: which node they are sent to, where they are redirected, and where the replies go.
//!
//! Nothing waits here. A pipeline is appended to the output of its node's connection, and the recipient
//! of its replies is appended to that connection's queue; replies arrive in order. A lost connection loses the whole queue.

use std::collections::VecDeque;

use redis::Value;
use tokio::sync::oneshot;

use super::encode::{self, Trouble, replies};
use super::engine::Engine;
use super::fleet::Up;
use super::remote::{Connection, RemoteCall};
use super::wire::{self, Malformed, Said};
use crate::core::{Command, Lost, Replies, Reply, Time, Token};
use crate::tap::TAP_GLOB;

/// How often a pipeline follows a slot that moves.
const REDIRECT_LIMIT: u8 = 3;

/// Replies, or pushes, that are taken in before what follows from them is sent. The server works on those while we take
/// in the next; larger steps would save writes, but each side would wait for the other.
const STEP_LIMIT: usize = 32;

/// The recipient of the replies of a pipeline.
pub(super) enum Recipient {
    /// The core, under its token.
    Core(Token),
    /// A handle, for a command of its own.
    Handle(oneshot::Sender<Replies>),
    /// The rest of a pipeline whose keys are on several nodes.
    Part(Box<Scatter>),
    /// A task of the engine's, which reads the values itself.
    Remote(oneshot::Sender<Vec<Value>>),
}

/// A pipeline that was sent.
pub(super) struct Waiting {
    recipient: Recipient,
    /// Kept to be sent on; those of a remote call are not known.
    commands: Vec<Command>,
    asking: bool,
    redirects: u8,
    sent: Time,
    /// How many replies it gets, and those that are here.
    count: usize,
    values: Vec<Value>,
}

impl Waiting {
    fn new(recipient: Recipient, commands: Vec<Command>, sent: Time) -> Self {
        Self {
            recipient,
            count: commands.len(),
            commands,
            asking: false,
            redirects: 0,
            sent,
            values: Vec::new(),
        }
    }

    /// The recipient that has to be informed that no replies will come. A task finds out by its closed channel.
    pub(super) fn into_lost(self) -> Option<Recipient> {
        match self.recipient {
            Recipient::Remote(_) => None,
            recipient => Some(recipient),
        }
    }
}

/// A pipeline that is run one key at a time.
pub(super) struct Scatter {
    recipient: Recipient,
    /// What is still to be run, each with the index of its command in the pipeline.
    parts: VecDeque<(usize, Command)>,
    /// The index of the command whose part was sent last.
    index: usize,
    joined: Vec<Option<Reply>>,
}

impl Up {
    /// Appends a pipeline to what goes out. Returns the recipient if the connection accepts no more.
    fn send(&mut self, waiting: Waiting) -> Option<Recipient> {
        let Some(out) = self.commands.output() else {
            return waiting.into_lost();
        };
        encode::pack(&waiting.commands, waiting.asking, out);
        self.waiting.push_back(waiting);
        None
    }

    /// Takes the pipelines whose replies are all here, as many as make a step. True if there may be more.
    fn take_replies(&mut self, answered: &mut Vec<Waiting>) -> Result<bool, Malformed> {
        let mut taken = 0;
        while taken < STEP_LIMIT {
            let Some((value, length)) = wire::reply(self.commands.unread())? else {
                return Ok(false);
            };
            self.commands.consume(length);
            let front = self.waiting.front_mut().ok_or(Malformed)?;
            front.values.push(value);
            if front.values.len() == front.count {
                answered.extend(self.waiting.pop_front());
                taken += 1;
            }
        }
        Ok(true)
    }

    /// Hands pushes to `tell`, as pattern, channel and payload, as many as make a step. Everything else is a
    /// reply, in order. True if there may be more.
    fn take_pushes(
        &mut self,
        mut tell: impl FnMut(&[u8], &[u8], &[u8]),
    ) -> Result<bool, Malformed> {
        for _ in 0..STEP_LIMIT {
            let Some((said, length)) = wire::said(self.pushes.unread())? else {
                return Ok(false);
            };
            match said {
                Said::Message {
                    pattern,
                    channel,
                    payload,
                } => tell(pattern, channel, payload),
                Said::Reply(value) => {
                    let (reply, _) = self.confirming.pop_front().ok_or(Malformed)?;
                    let _ = reply.send(vec![value]);
                }
            }
            self.pushes.consume(length);
        }
        Ok(true)
    }

    /// When the oldest command without a reply was sent.
    pub(super) fn waits_since(&self) -> Option<Time> {
        let commands = self.waiting.front().map(|waiting| waiting.sent);
        let pushes = self.confirming.front().map(|(_, sent)| *sent);
        [commands, pushes].into_iter().flatten().min()
    }
}

impl Engine {
    /// Sends a pipeline to the node that has its keys.
    pub(super) fn send_pipeline(&mut self, recipient: Recipient, commands: Vec<Command>) {
        if !self.fleet.is_together(&commands) {
            return self.scatter(recipient, commands);
        }
        let now = self.now();
        let key = commands
            .first()
            .and_then(|command| encode::keys(command).first());
        let up = key.and_then(|key| self.fleet.owner(key));
        let waiting = Waiting::new(recipient, commands, now);
        self.lost.extend(match up {
            Some(up) => up.send(waiting),
            None => waiting.into_lost(),
        });
    }

    /// Sends a task's commands to the connection that it means, if that is still there.
    pub(super) fn run_remote_call(&mut self, remote_call: RemoteCall) {
        let now = self.now();
        let Some(up) = self
            .fleet
            .up_of(&remote_call.address, remote_call.generation)
        else {
            return;
        };
        let pipe = match remote_call.connection {
            Connection::Commands => &mut up.commands,
            Connection::Pushes => &mut up.pushes,
        };
        let Some(out) = pipe.output() else { return };
        out.extend_from_slice(&remote_call.packed);
        match remote_call.connection {
            Connection::Pushes => up.confirming.push_back((remote_call.reply, now)),
            Connection::Commands => {
                let mut waiting =
                    Waiting::new(Recipient::Remote(remote_call.reply), Vec::new(), now);
                waiting.count = remote_call.count;
                up.waiting.push_back(waiting);
            }
        }
    }

    /// Takes in a step of what has arrived: replies first, then pushes.
    pub(super) fn take_in(&mut self) {
        let now = self.now();
        let mut answered = std::mem::take(&mut self.answered);
        let mut broken = Vec::new();
        let mut last_tap_left = false;
        self.has_more = false;
        for (address, node) in &mut self.fleet.nodes {
            let Some(up) = &mut node.up else { continue };
            let (core, taps) = (&mut self.core, &mut self.taps);
            let replies = up.take_replies(&mut answered);
            let pushes = up.take_pushes(|pattern, channel, payload| {
                let channel = std::str::from_utf8(channel).unwrap_or_default();
                let key = channel.split_once("__:").map_or("", |(_, key)| key);
                let Ok(event) = std::str::from_utf8(payload) else {
                    return;
                };
                // A push for the subscribers is one too many for the core, which has patterns of its own.
                match taps.are_used() && is_for_taps(pattern) {
                    true => last_tap_left |= taps.show(key, event),
                    false => core.handle_push(key, event, now),
                }
            });
            let ended = up.commands.has_ended() || up.pushes.has_ended();
            match (replies, pushes) {
                (Ok(false), Ok(false)) if !ended => {}
                (Ok(more_replies), Ok(more_pushes)) if more_replies || more_pushes => {
                    self.has_more = true;
                }
                _ => broken.push((address.clone(), node.generation)),
            }
        }
        for waiting in answered.drain(..) {
            self.answered(waiting);
        }
        self.answered = answered;
        if last_tap_left {
            self.unsubscribe(TAP_GLOB);
        }
        for (address, generation) in broken {
            self.node_down(&address, generation);
        }
    }

    fn answered(&mut self, waiting: Waiting) {
        let Waiting {
            recipient,
            commands,
            asking,
            redirects,
            values,
            ..
        } = waiting;
        if let Recipient::Remote(reply) = recipient {
            let _ = reply.send(values);
            return;
        }
        match replies(values, asking) {
            Ok(replies) => self.deliver(recipient, Ok(replies)),
            Err(Trouble::Lost) => self.deliver(recipient, Err(Lost)),
            Err(Trouble::Moved(address) | Trouble::Ask(address)) if redirects >= REDIRECT_LIMIT => {
                tracing::debug!(%address, "gave up following a slot");
                self.refresh_topology(true);
                self.deliver(recipient, Err(Lost));
            }
            Err(Trouble::Moved(address)) => {
                self.refresh_topology(true);
                self.redirect(recipient, commands, &address, false, redirects);
            }
            Err(Trouble::Ask(address)) => {
                self.redirect(recipient, commands, &address, true, redirects);
            }
        }
    }

    fn redirect(
        &mut self,
        recipient: Recipient,
        commands: Vec<Command>,
        to: &str,
        asking: bool,
        redirects: u8,
    ) {
        let mut waiting = Waiting::new(recipient, commands, self.now());
        waiting.asking = asking;
        waiting.count *= 1 + usize::from(asking);
        waiting.redirects = redirects + 1;
        self.lost.extend(match self.fleet.at(to) {
            Some(up) => up.send(waiting),
            None => waiting.into_lost(),
        });
    }

    /// Gives the replies to their recipient.
    pub(super) fn deliver(&mut self, recipient: Recipient, replies: Replies) {
        match recipient {
            Recipient::Core(token) => {
                let now = self.now();
                self.core.handle_reply(token, replies, now);
            }
            Recipient::Handle(reply) => {
                let _ = reply.send(replies);
            }
            Recipient::Part(scatter) => self.gather_part(*scatter, replies),
            // It gets values, not replies, and knows what it means that there are none.
            Recipient::Remote(_) => {}
        }
    }

    /// The keys of a bare ID are spread over a cluster: each is read by a command of its own, in order.
    fn scatter(&mut self, recipient: Recipient, commands: Vec<Command>) {
        let count = commands.len();
        let parts = commands
            .into_iter()
            .enumerate()
            .flat_map(|(index, command)| single(command).into_iter().map(move |part| (index, part)))
            .collect();
        self.next_part(Scatter {
            recipient,
            parts,
            index: 0,
            joined: vec![None; count],
        });
    }

    fn next_part(&mut self, mut scatter: Scatter) {
        match scatter.parts.pop_front() {
            Some((index, part)) => {
                scatter.index = index;
                self.send_pipeline(Recipient::Part(Box::new(scatter)), vec![part]);
            }
            None => {
                let replies: Option<Vec<Reply>> = scatter.joined.into_iter().collect();
                self.deliver(scatter.recipient, replies.ok_or(Lost));
            }
        }
    }

    /// Joins the reply of a part with those before it.
    fn gather_part(&mut self, mut scatter: Scatter, replies: Replies) {
        let Some(reply) = replies.ok().and_then(|mut replies| replies.pop()) else {
            return self.deliver(scatter.recipient, Err(Lost));
        };
        let joined = &mut scatter.joined[scatter.index];
        *joined = Some(match (joined.take(), reply) {
            (Some(Reply::Number(sum)), Reply::Number(more)) => Reply::Number(sum + more),
            (_, reply) => reply,
        });
        self.next_part(scatter);
    }
}

/// Whether the pattern that brought a push is the subscribers'.
fn is_for_taps(pattern: &[u8]) -> bool {
    let prefix = pattern.strip_suffix(TAP_GLOB.as_bytes());
    prefix.is_some_and(|prefix| prefix.ends_with(b"__:"))
}

/// A command over several keys as commands over one each.
fn single(command: Command) -> Vec<Command> {
    match command {
        // Their sum is what the server would have said to all of them.
        Command::Present(keys) => keys
            .into_iter()
            .enumerate()
            .map(|(index, key)| Command::Exists(vec![key; 1 << index]))
            .collect(),
        Command::Exists(keys) => keys
            .into_iter()
            .map(|key| Command::Exists(vec![key]))
            .collect(),
        other => vec![other],
    }
}
