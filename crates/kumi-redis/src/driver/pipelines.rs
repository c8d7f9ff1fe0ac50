//! Pipelines of commands: which node they are sent to, where they are redirected, and where the replies go.
//!
//! Nothing waits here but [`Connections::wait`]. A pipeline is appended to the output of its node's connection, and the
//! recipient of its replies is appended to that connection's queue; replies arrive in order. A lost connection loses the
//! whole queue.

use std::collections::VecDeque;
use std::future::poll_fn;

use super::buffered::BufferedStream;
use super::connections::{Connections, Event, Push, Report};
use super::fleet::Up;
use super::remote::{Remote, RemoteCall, Side};
use super::waiting::{Recipient, Scatter, Waiting};
use crate::core::Trouble;
use crate::core::encode::{self, replies};
use crate::core::slots::name;
use crate::core::strings::{Command, Lost, Replies, Reply};

/// How often a pipeline follows a slot that moves.
const REDIRECT_LIMIT: u8 = 3;

impl<T> Connections<T> {
    /// Sends a pipeline to the nodes that have its keys. Its replies, or that it was lost, are an event with this tag.
    /// With `bulk` a large value goes or comes with it: it is not ordered with the others.
    pub fn send(&mut self, tag: T, commands: Vec<Command>, bulk: bool) {
        self.send_to(Recipient::Sender(tag), commands, bulk);
    }

    fn send_to(&mut self, recipient: Recipient<T>, commands: Vec<Command>, bulk: bool) {
        if !self.fleet.is_together(&commands) {
            return self.scatter(recipient, commands, bulk);
        }
        let now = self.clock.now();
        let key = commands
            .first()
            .and_then(|command| encode::keys(command).first());
        let up = key.and_then(|key| self.fleet.owner(key));
        let mut waiting = Waiting::new(recipient, commands, now);
        waiting.bulk = bulk;
        let (lost, to_open) = match up {
            Some(up) => send(up, waiting),
            None => (waiting.into_lost(), None),
        };
        self.lose(lost);
        self.open_bulk(to_open);
    }

    /// Opens a node's connection for large values.
    fn open_bulk(&mut self, remote: Option<Remote>) {
        let Some(remote) = remote else { return };
        let route = self.route.clone();
        self.tasks.spawn(async move {
            let opened = route.open(name(&remote.address)).await;
            if let Err(error) = &opened {
                let error = error.chain();
                tracing::info!(node = %remote.address, %error, "no connection for large values");
            }
            Report::Bulk {
                address: remote.address,
                generation: remote.generation,
                stream: opened.ok().map(|line| Box::new(line.into_stream())),
            }
        });
    }

    /// A node's connection for large values was opened, or not: what waits for it is sent.
    pub(super) fn bulk_opened(
        &mut self,
        address: &str,
        generation: u64,
        stream: Option<Box<BufferedStream>>,
    ) {
        let now = self.clock.now();
        let Some(up) = self.fleet.up_of(address, generation) else {
            return;
        };
        let queue = up.bulk.opened(stream.map(|stream| *stream), now);
        let lost: Vec<T> = queue.into_iter().filter_map(|it| up.send(it)).collect();
        for tag in lost {
            self.lose(Some(tag));
        }
    }

    /// Sends a task's commands to the connection that it means, if that is still there.
    pub(super) fn run_remote_call(&mut self, remote_call: RemoteCall) {
        let now = self.clock.now();
        let Some(up) = self
            .fleet
            .up_of(&remote_call.address, remote_call.generation)
        else {
            return;
        };
        let stream = match remote_call.side {
            Side::Commands => &mut up.commands.stream,
            Side::Pushes => &mut up.pushes,
        };
        let Some(out) = stream.output() else { return };
        out.extend_from_slice(&remote_call.packed);
        match remote_call.side {
            Side::Pushes => up.confirming.push_back((remote_call.reply, now)),
            Side::Commands => {
                let mut waiting =
                    Waiting::new(Recipient::Remote(remote_call.reply), Vec::new(), now);
                waiting.count = remote_call.count;
                up.commands.waiting.push_back(waiting);
            }
        }
    }

    /// Waits until something has arrived or a task of this layer has ended, and deals with the latter. True if `take_in`
    /// has to be called. Nothing is lost if the future is dropped.
    pub async fn wait(&mut self) -> bool {
        tokio::select! {
            () = poll_fn(|cx| self.fleet.poll(cx)) => return true,
            Some(report) = self.tasks.join_next(), if !self.tasks.is_empty() => {
                self.reported(report.unwrap_or(Report::Nothing));
            }
            Some(remote_call) = self.remote_calls.1.recv() => self.run_remote_call(remote_call),
        }
        false
    }

    /// Sends the remote calls that wait, so that they share a write with what was sent.
    pub fn run_remote_calls(&mut self) {
        while let Ok(remote_call) = self.remote_calls.1.try_recv() {
            self.run_remote_call(remote_call);
        }
    }

    /// Takes in a step of what has arrived: replies become events, and pushes are handed to `handle`.
    pub fn take_in(&mut self, mut handle: impl FnMut(Push<'_>)) {
        let mut answered = std::mem::take(&mut self.answered);
        let (mut broken, mut lost) = (Vec::new(), VecDeque::new());
        let now = self.clock.now();
        self.has_more = false;
        for (address, node) in &mut self.fleet.nodes {
            let Some(up) = &mut node.up else { continue };
            let replies = up.commands.take_replies(now, &mut answered);
            match up.bulk.take_replies(now, &mut answered) {
                Ok(has_more) => self.has_more |= has_more,
                // The next large value opens another.
                Err(_) => lost.extend(up.bulk.close()),
            }
            let pushes = up.take_pushes(now, |pattern, channel, payload| {
                let prefix = channel.windows(3).position(|it| it == b"__:");
                let key = prefix.map_or(&[][..], |at| &channel[at + 3..]);
                if let Ok(event) = std::str::from_utf8(payload) {
                    handle(Push {
                        pattern,
                        key,
                        event,
                    });
                }
            });
            let ended = up.commands.stream.has_ended() || up.pushes.has_ended();
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
        for waiting in lost {
            self.lose(waiting.into_lost());
        }
        for (address, generation) in broken {
            self.node_down(&address, generation);
        }
    }

    fn answered(&mut self, mut waiting: Waiting<T>) {
        let values = std::mem::take(&mut waiting.values);
        if let Recipient::Remote(reply) = waiting.recipient {
            let _ = reply.send(values);
            return;
        }
        let (address, asking) = match replies(values, waiting.asking) {
            Ok(replies) => return self.deliver(waiting.recipient, Ok(replies)),
            Err(Trouble::Later) => return self.deliver(waiting.recipient, Err(Lost)),
            Err(Trouble::Moved(address)) => (address, false),
            Err(Trouble::Ask(address)) => (address, true),
        };
        let is_given_up = waiting.redirects >= REDIRECT_LIMIT;
        if is_given_up || !asking {
            self.refresh_slots(true);
        }
        if is_given_up {
            tracing::debug!(%address, "gave up following a slot");
            return self.deliver(waiting.recipient, Err(Lost));
        }
        waiting.asking = asking;
        waiting.count = waiting.commands.len() * (1 + usize::from(asking));
        waiting.redirects += 1;
        waiting.sent = self.clock.now();
        self.redirect(waiting, &address);
    }

    fn redirect(&mut self, waiting: Waiting<T>, to: &str) {
        let (lost, to_open) = match self.fleet.at(to) {
            Some(up) => send(up, waiting),
            None => (waiting.into_lost(), None),
        };
        self.lose(lost);
        self.open_bulk(to_open);
    }

    fn deliver(&mut self, recipient: Recipient<T>, replies: Replies) {
        match recipient {
            Recipient::Sender(tag) => self.events.push_back(Event::Replied(tag, replies)),
            Recipient::Part(scatter) => self.gather_part(*scatter, replies),
            // It gets values, not replies, and finds out by its closed channel that there are none.
            Recipient::Remote(_) => {}
        }
    }

    /// The keys are spread over a cluster: each is read by a command of its own, in order.
    fn scatter(&mut self, recipient: Recipient<T>, commands: Vec<Command>, bulk: bool) {
        let count = commands.len();
        let parts = commands
            .into_iter()
            .enumerate()
            .flat_map(|(index, command)| {
                encode::single(command)
                    .into_iter()
                    .map(move |part| (index, part))
            })
            .collect();
        self.next_part(Scatter {
            recipient,
            parts,
            index: 0,
            bulk,
            joined: vec![None; count],
        });
    }

    fn next_part(&mut self, mut scatter: Scatter<T>) {
        match scatter.parts.pop_front() {
            Some((index, part)) => {
                scatter.index = index;
                let bulk = scatter.bulk;
                self.send_to(Recipient::Part(Box::new(scatter)), vec![part], bulk);
            }
            None => {
                let replies: Option<Vec<Reply>> = scatter.joined.into_iter().collect();
                self.deliver(scatter.recipient, replies.ok_or(Lost));
            }
        }
    }

    /// Joins the reply of a part with those before it.
    fn gather_part(&mut self, mut scatter: Scatter<T>, replies: Replies) {
        let Some(reply) = replies.ok().and_then(|mut replies| replies.pop()) else {
            return self.deliver(scatter.recipient, Err(Lost));
        };
        let joined = &mut scatter.joined[scatter.index];
        *joined = Some(match (joined.take(), reply) {
            (Some(Reply::Number(sum)), Reply::Number(more)) => {
                Reply::Number(sum.saturating_add(more))
            }
            (_, reply) => reply,
        });
        self.next_part(scatter);
    }
}

/// Sends a pipeline to a node: the tag of its replies if it was lost, and the node if its connection for large values has to
/// be opened.
fn send<T>(up: &mut Up<T>, waiting: Waiting<T>) -> (Option<T>, Option<Remote>) {
    let lost = up.send(waiting);
    let to_open = up.bulk.is_to_be_opened().then(|| up.remote.clone());
    (lost, to_open)
}
