//! The loop: everything that is ready is read and executed, then everything that waits is written.
//!
//! ```text
//! turn: epoll_wait (until the store's next deadline)
//!       for each ready connection: one read, all complete requests of it     requests.rs
//!       effects, broadcasts of client-side caching
//!       for each session with output: one write                              output.rs
//!       what the store has to do by now (expiry, waits that end), and its output
//! ```
//!
//! A read that filled its buffer puts the connection on a list for the next turn, which then does
//! not wait: a busy client gets one buffer's worth of work per turn, as everybody else does.
//!
//! The front owns the sockets and is the store's [`Host`](kumi_store::Host); the store and the
//! output buffers are handed in, so that both can be lent to a command with the front as its host. That is what lets a long command serve others: the running connection's input is held by
//! the stack frame that runs it, its [`Conn`] says `running`, and an inner turn leaves it alone.
//! An inner turn does not touch blocked connections either, for the running command may be one
//! that waited for a pause to end, and it does not expire keys under the command's feet.

mod accept;
mod aof;
mod config;
mod connections;
pub(crate) mod control;
mod data_id;
mod facts;
mod host;
mod loading;
mod output;
mod requests;
mod stop;
mod tls;

pub use config::{ServerConfig, ServerError};
pub(crate) use control::ControlRequest;
pub(crate) use loading::Found;

use crate::base::clock::Clock;
use crate::base::discard::Discarder;
use crate::base::oom_score::OomScore;
use crate::base::process::rss_bytes;
use crate::base::shutdown::Shutdown;
use crate::net::listen::Listeners;
use accept::Acceptor;
use aof::AofState;
use connections::Connections;
use control::Control;
use kumi_store::{DataId, Effect, Outputs, SessionKey, Store, TurnTimes};
use mio::event::Event;
use mio::{Events, Poll, Token, Waker};
use requests::Buffers;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;
use stop::Stop;
use tls::TlsAccess;

/// Events taken from the system at once. More wait for the next turn.
const EVENTS_PER_TURN: usize = 1024;

/// The longest wait while the discard thread works: it waits for collections in turn.
const DISCARD_WAIT: Duration = Duration::from_millis(1);

/// Tokens at and above this are listeners; below, they are session slots.
const FIRST_LISTENER: usize = 1 << 40;
const WAKER: Token = Token(usize::MAX);

/// The engine, and the output buffers that are lent to it.
#[derive(Debug)]
pub(crate) struct EngineIo<'a> {
    pub(crate) store: &'a mut Store,
    pub(crate) outputs: &'a mut Outputs,
}

/// Everything outside the engine.
#[derive(Debug)]
pub(crate) struct Front {
    pub(crate) config: ServerConfig,
    pub(crate) clock: Clock,
    /// The times of the turn that runs.
    pub(crate) times: TurnTimes,
    poller: Poller,
    pub(crate) acceptor: Acceptor,
    pub(crate) connections: Connections,
    buffers: Buffers,
    pub(crate) tls: TlsAccess,
    pub(crate) aof: AofState,
    /// `rdb-key-save-delay`, for the thread that writes a snapshot.
    key_save_delay_us: Arc<AtomicI64>,
    pub(crate) stop: Stop,
    pub(crate) discarder: Discarder,
    pub(crate) process: Process,
    /// What the program around the server asks for.
    pub(crate) control: Option<Control>,
    /// The id of the data set, known when that is loaded.
    data_id: Option<DataId>,
    /// A long command runs and this is a turn inside of it.
    inner: bool,
}

/// What the system reports of sockets.
#[derive(Debug)]
struct Poller {
    poll: Poll,
    /// Wakes the loop from other threads.
    waker: Arc<Waker>,
    events: Events,
    /// Events that are still to be handled. They are here and not on the stack, so that an inner
    /// turn goes on where the outer one was when its command began to take long.
    ready: VecDeque<Ready>,
}

impl Poller {
    fn new() -> io::Result<Self> {
        let poll = Poll::new()?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
        Ok(Self {
            poll,
            waker,
            events: Events::with_capacity(EVENTS_PER_TURN),
            ready: VecDeque::new(),
        })
    }

    /// Waits for events until `timeout` has passed at most, and lists them as ready.
    fn wait(&mut self, timeout: Duration) -> io::Result<()> {
        match self.poll.poll(&mut self.events, Some(timeout)) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        self.ready.extend(self.events.iter().map(Ready::from));
        self.events.clear();
        Ok(())
    }
}

/// The process that the server runs in.
#[derive(Debug)]
pub(crate) struct Process {
    /// Resident memory before any client was served.
    startup_rss_bytes: u64,
    /// The score by which the system chooses a process to end.
    pub(crate) oom_score: OomScore,
}

/// An event, copied out of the system's list.
#[derive(Clone, Copy, Debug)]
struct Ready {
    token: Token,
    readable: bool,
    writable: bool,
    /// The peer sends no more.
    ended: bool,
    /// Neither direction works any more.
    broken: bool,
}

impl From<&Event> for Ready {
    fn from(event: &Event) -> Self {
        Self {
            token: event.token(),
            readable: event.is_readable(),
            writable: event.is_writable(),
            ended: event.is_read_closed(),
            broken: event.is_error() || event.is_write_closed(),
        }
    }
}

impl Front {
    pub(crate) fn new(
        config: ServerConfig,
        listeners: Listeners,
        shutdown: Shutdown,
    ) -> io::Result<Self> {
        let poller = Poller::new()?;
        shutdown.attach(Some(poller.waker.clone()));
        let mut acceptor = Acceptor::default();
        for listener in listeners.0 {
            acceptor.add(poller.poll.registry(), listener)?;
        }
        Ok(Self {
            config,
            clock: Clock::new(),
            times: TurnTimes::default(),
            poller,
            acceptor,
            connections: Connections::default(),
            buffers: Buffers::default(),
            tls: TlsAccess::default(),
            aof: AofState::default(),
            key_save_delay_us: Arc::default(),
            stop: Stop::new(shutdown),
            discarder: Discarder::start()?,
            process: Process {
                startup_rss_bytes: rss_bytes(),
                oom_score: OomScore::default(),
            },
            control: None,
            data_id: None,
            inner: false,
        })
    }

    /// Whether the next turn has something to do without waiting for an event.
    fn has_work(&self, engine: &EngineIo<'_>) -> bool {
        self.connections.have_work()
            || !self.acceptor.unaccepted.is_empty()
            || engine.store.has_effects()
    }

    /// How long the next turn may wait for events.
    pub(crate) fn longest_wait(&self, engine: &EngineIo<'_>) -> Duration {
        if self.has_work(engine) {
            return Duration::ZERO;
        }
        let deadline_us = engine.store.next_deadline().saturating_mul(1000);
        let wait = Duration::from_micros(deadline_us.saturating_sub(self.clock.last().unix_us));
        if self.discarder.pending() > 0 {
            wait.min(DISCARD_WAIT)
        } else {
            wait
        }
    }

    /// Waits for events until `timeout` has passed at most, then does everything that is ready.
    pub(crate) fn turn(&mut self, engine: &mut EngineIo<'_>, timeout: Duration) -> io::Result<()> {
        self.poller.wait(timeout)?;
        let start_ns = self.clock.rebase().mono_ns;
        // What these lists get during the turn is for the next one.
        let (unread, unaccepted) = (
            self.connections.unread.len(),
            std::mem::take(&mut self.acceptor.unaccepted),
        );
        while let Some(ready) = self.poller.ready.pop_front() {
            self.handle(engine, ready);
        }
        for _ in 0..unread {
            let Some(key) = self.connections.unread.pop_front() else {
                break;
            };
            if let Some(conn) = self.connections.get(key) {
                conn.listed = false;
                self.serve(engine, key);
            }
        }
        self.finish_turn(engine, unaccepted);
        if !self.inner {
            let mut times = std::mem::take(&mut self.times);
            times.busy_ns = self.clock.last().mono_ns - start_ns;
            engine.store.note_turn(times);
        }
        Ok(())
    }

    fn finish_turn(&mut self, engine: &mut EngineIo<'_>, unaccepted: Vec<usize>) {
        for index in unaccepted {
            self.accept(engine, index);
        }
        self.acceptor.retry_starved(self.clock.last().mono_ns);
        self.serve_held_control(engine);
        self.carry_out(engine);
        if !self.inner {
            engine.store.end_turn(engine.outputs);
        }
        self.flush(engine);
        if !self.inner && self.clock.last().unix_ms() >= engine.store.next_deadline() {
            let start_ns = self.clock.read().mono_ns;
            engine.store.poll(engine.outputs, self);
            self.carry_out(engine);
            self.times.cron_ns += self.clock.read().mono_ns - start_ns;
            engine.store.end_turn(engine.outputs);
            self.flush(engine);
        }
        if !self.tls.handshakes.is_empty() {
            self.end_handshakes(engine);
        }
        self.close_flushed(engine);
        if !self.inner && !engine.store.is_loading() {
            self.maintain_aof(engine);
        }
        let now = self.clock.last();
        engine
            .store
            .note_garbage(self.discarder.garbage_bytes(), now);
        if !self.inner {
            self.discarder.collect_freed(&mut self.clock);
        }
    }

    fn handle(&mut self, engine: &mut EngineIo<'_>, ready: Ready) {
        let token = ready.token;
        if token == WAKER {
            return self.serve_control(engine);
        }
        if token.0 >= FIRST_LISTENER {
            return self.accept(engine, token.0 - FIRST_LISTENER);
        }
        let Some(conn) = self
            .connections
            .slots
            .get_mut(token.0)
            .and_then(Option::as_mut)
        else {
            return;
        };
        let key = conn.key;
        if ready.writable && conn.write_blocked {
            conn.write_blocked = false;
            self.connections.unwritten.push(key);
        }
        if conn.closing {
            if ready.broken {
                self.close(engine, key);
            }
            return;
        }
        conn.ended |= ready.ended || ready.broken;
        if ready.readable || conn.ended {
            conn.stream.note_readable();
            self.serve(engine, key);
        }
    }

    /// Does what the store asks for. Resumed sessions may ask for more, hence the loop.
    fn carry_out(&mut self, engine: &mut EngineIo<'_>) {
        if !self.inner && !self.connections.deferred.is_empty() {
            for effect in std::mem::take(&mut self.connections.deferred) {
                self.carry_out_one(engine, effect);
            }
        }
        while engine.store.has_effects() {
            for effect in engine.store.effects() {
                self.carry_out_one(engine, effect);
            }
        }
    }

    fn carry_out_one(&mut self, engine: &mut EngineIo<'_>, effect: Effect) {
        match effect {
            Effect::Resume(key) if self.may_touch(key) => self.resume(engine, key),
            Effect::Resume(_) => self.connections.deferred.push(effect),
            Effect::Close(key) => self.close(engine, key),
            Effect::CloseAfterFlush(key) => self.connections.close_after_flush(key),
            Effect::Discard(garbage) => self.discarder.discard(garbage),
            Effect::Shutdown(request) => self.stop.request = Some(request),
            effect => tracing::error!(?effect, "the front does not know this effect"),
        }
    }

    /// Whether nothing further up the stack depends on the connection.
    pub(crate) fn may_touch(&mut self, key: SessionKey) -> bool {
        let inner = self.inner;
        self.connections
            .get(key)
            .is_none_or(|conn| !(conn.running || inner && conn.blocked))
    }

    /// Ends a connection and its session. Closing the socket takes it out of the poll.
    pub(crate) fn close(&mut self, engine: &mut EngineIo<'_>, key: SessionKey) {
        if !self.may_touch(key) {
            self.connections.deferred.push(Effect::Close(key));
            return;
        }
        if self.connections.get(key).is_some() {
            self.connections.slots[key.slot as usize] = None;
            engine.store.disconnect(key);
            engine.outputs.remove(key);
        }
    }
}
