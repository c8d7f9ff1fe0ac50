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
mod facts;
mod host;
mod loading;
mod output;
mod requests;
mod tls;

pub use config::{ServerConfig, ServerError};

use crate::base::clock::Clock;
use crate::base::discard::Discarder;
use crate::base::oom_score::OomScore;
use crate::base::process::rss_bytes;
use crate::base::shutdown::Shutdown;
use crate::net::conn::{Conn, Input, Stream};
use crate::net::listen::{Listener, Listeners};
use crate::net::tls::failures::Failures;
use aof::AofState;
use kumi_resp::Batch;
use kumi_store::config::ShutdownOptions;
use kumi_store::{Effect, Outputs, SessionKey, ShutdownRequest, Store, TurnTimes};
use mio::event::Event;
use mio::{Events, Interest, Poll, Token, Waker};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

/// Events taken from the system at once. More wait for the next turn.
const EVENTS_PER_TURN: usize = 1024;

/// The longest wait while the discard thread works: it waits for collections in turn.
const DISCARD_PATIENCE: Duration = Duration::from_millis(1);

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
    pub(crate) poll: Poll,
    pub(crate) clock: Clock,
    /// By session slot.
    pub(crate) conns: Vec<Option<Box<Conn>>>,
    /// A listener keeps its place as long as it is open: its token is derived from the place.
    pub(crate) listeners: Vec<Option<Listener>>,
    /// Listeners that may have more clients waiting than were accepted.
    pub(crate) unaccepted: Vec<usize>,
    /// Listeners to try again at this reading of the steady clock: the system had no more
    /// descriptors.
    pub(crate) starved: Vec<(u64, usize)>,
    pub(crate) config: ServerConfig,
    pub(crate) rejected_connections: u64,
    /// Resident memory before any client was served.
    pub(crate) startup_rss_bytes: u64,
    /// The times of the turn that runs.
    pub(crate) times: TurnTimes,
    /// Wakes the loop from other threads.
    pub(crate) waker: Arc<Waker>,
    pub(crate) aof: AofState,
    /// `rdb-key-save-delay`, for the thread that writes a snapshot.
    pub(crate) key_save_delay_us: Arc<AtomicI64>,
    /// The score by which the system chooses a process to end.
    pub(crate) oom_score: OomScore,
    pub(crate) shutdown: Shutdown,
    /// A client sent SHUTDOWN.
    pub(crate) shutdown_request: Option<ShutdownRequest>,
    /// Why the data could not be saved at a stop through the handle.
    pub(crate) unsaved: Option<io::Error>,
    /// The server stops: nothing more is read, what waits is still written.
    pub(crate) draining: bool,
    pub(crate) discarder: Discarder,
    /// The allocator does not collect before this reading of the steady clock.
    next_collection_ns: u64,
    /// Empty inputs with room for a read.
    #[expect(
        clippy::vec_box,
        reason = "boxes move to connections and back; the pool only lends"
    )]
    pub(crate) workspaces: Vec<Box<Input>>,
    /// Lists of decoded requests for reuse; a second one is needed only while a long command
    /// serves others.
    pub(crate) batches: Vec<Batch>,
    events: Events,
    /// Events that are still to be handled. They are here and not on the stack, so that an inner
    /// turn goes on where the outer one was when its command began to take long.
    ready: VecDeque<Ready>,
    /// Connections to read at the next turn without waiting for an event.
    pub(crate) unread: VecDeque<SessionKey>,
    /// Connections to write to although the store does not list them.
    pub(crate) unwritten: Vec<SessionKey>,
    /// Connections that close once their output is written.
    pub(crate) closing: Vec<SessionKey>,
    /// Effects on connections that an inner turn may not touch.
    deferred: Vec<Effect>,
    /// A long command runs and this is a turn inside of it.
    pub(crate) inner: bool,
    /// What new connections with TLS are served with; none if there is no `tls-port`.
    pub(crate) tls: Option<Arc<rustls::ServerConfig>>,
    /// When handshakes have to be over, by the steady clock, in the order they began.
    pub(crate) handshakes: VecDeque<(u64, SessionKey)>,
    pub(crate) tls_failures: Failures,
    /// The buffer that ciphertext is read into.
    pub(crate) ciphertext: Vec<u8>,
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
        let poll = Poll::new()?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
        shutdown.attach(Some(waker.clone()));
        let mut front = Self {
            poll,
            clock: Clock::new(),
            conns: Vec::new(),
            listeners: Vec::new(),
            unaccepted: Vec::new(),
            starved: Vec::new(),
            config,
            rejected_connections: 0,
            startup_rss_bytes: rss_bytes(),
            times: TurnTimes::default(),
            waker,
            aof: AofState::default(),
            key_save_delay_us: Arc::default(),
            oom_score: OomScore::default(),
            shutdown,
            shutdown_request: None,
            unsaved: None,
            draining: false,
            discarder: Discarder::start()?,
            next_collection_ns: 0,
            workspaces: Vec::new(),
            batches: Vec::new(),
            events: Events::with_capacity(EVENTS_PER_TURN),
            ready: VecDeque::new(),
            unread: VecDeque::new(),
            unwritten: Vec::new(),
            closing: Vec::new(),
            deferred: Vec::new(),
            inner: false,
            tls: None,
            handshakes: VecDeque::new(),
            tls_failures: Failures::default(),
            ciphertext: Vec::new(),
        };
        for listener in listeners.0 {
            front.add_listener(listener)?;
        }
        Ok(front)
    }

    /// Registers a listener with the poll.
    pub(crate) fn add_listener(&mut self, mut listener: Listener) -> io::Result<()> {
        let free = self.listeners.iter().position(Option::is_none);
        let index = free.unwrap_or(self.listeners.len());
        let token = Token(FIRST_LISTENER + index);
        let registry = self.poll.registry();
        match &mut listener {
            Listener::Tcp { socket, .. } => registry.register(socket, token, Interest::READABLE)?,
            Listener::Unix { socket, .. } => {
                registry.register(socket, token, Interest::READABLE)?
            }
        }
        if index == self.listeners.len() {
            self.listeners.push(None);
        }
        self.listeners[index] = Some(listener);
        Ok(())
    }

    /// Whether the server was asked to stop.
    pub(crate) fn is_stopping(&self) -> bool {
        self.shutdown_request.is_some() || self.shutdown.is_requested() || self.aof.fatal.is_some()
    }

    /// Whether a stop by a signal waits: the periodic work, which does it in Redis, is paused.
    pub(crate) fn postpones_stop(&self, engine: &EngineIo<'_>) -> bool {
        let by_signal = self.shutdown_request.is_none() && self.shutdown.signal().is_some();
        by_signal && self.aof.fatal.is_none() && engine.store.is_cron_paused()
    }

    /// Whether a stop through the handle waits for the first base of the append-only file.
    pub(crate) fn waits_for_first_base(&self) -> bool {
        let by_handle = self.shutdown_request.is_none() && self.shutdown.signal().is_none();
        by_handle && self.aof.fatal.is_none() && self.first_base_is_missing()
    }

    /// Saves what a stop by signal or through the handle has to save. False if that failed: the server goes on, unless it
    /// is the handle's owner who waits for its end.
    pub(crate) fn prepare_stop(&mut self, engine: &mut EngineIo<'_>) -> bool {
        tracing::info!("User requested shutdown...");
        let settings = engine.store.config().settings();
        let options = match self.shutdown.signal() {
            Some(SIGTERM) => settings.shutdown_on_sigterm,
            Some(SIGINT) => settings.shutdown_on_sigint,
            _ => ShutdownOptions::default(),
        };
        let saved = engine.store.save_at_end(options.save, options.force, self);
        let saved = match saved {
            Err(error) if self.shutdown.signal().is_none() => {
                self.unsaved = Some(error);
                false
            }
            Err(_) if !options.force => {
                tracing::warn!(
                    "Errors trying to shut down the server. Check the logs for more information."
                );
                self.shutdown.withdraw();
                return false;
            }
            saved => saved.unwrap_or(false),
        };
        let mut request = ShutdownRequest::default();
        request.now = options.now;
        request.force = options.force;
        request.saved = saved;
        self.shutdown_request = Some(request);
        true
    }

    /// Whether the next turn has something to do without waiting for an event.
    fn has_work(&self, engine: &EngineIo<'_>) -> bool {
        !self.unread.is_empty()
            || !self.unaccepted.is_empty()
            || !self.unwritten.is_empty()
            || !self.deferred.is_empty()
            || engine.store.has_effects()
    }

    /// How long the next turn may wait.
    pub(crate) fn patience(&self, engine: &EngineIo<'_>) -> Duration {
        if self.has_work(engine) {
            return Duration::ZERO;
        }
        let deadline_us = engine.store.next_deadline().saturating_mul(1000);
        let patience = Duration::from_micros(deadline_us.saturating_sub(self.clock.last().unix_us));
        if self.discarder.pending() > 0 {
            patience.min(DISCARD_PATIENCE)
        } else {
            patience
        }
    }

    /// Waits at most `patience`, then does everything that is ready.
    pub(crate) fn turn(&mut self, engine: &mut EngineIo<'_>, patience: Duration) -> io::Result<()> {
        match self.poll.poll(&mut self.events, Some(patience)) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        let start_ns = self.clock.rebase().mono_ns;
        self.ready.extend(self.events.iter().map(Ready::from));
        self.events.clear();
        // What these lists get during the turn is for the next one.
        let (unread, unaccepted) = (self.unread.len(), std::mem::take(&mut self.unaccepted));
        while let Some(ready) = self.ready.pop_front() {
            self.handle(engine, ready);
        }
        for _ in 0..unread {
            let Some(key) = self.unread.pop_front() else {
                break;
            };
            if let Some(conn) = self.conn(key) {
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
        if !self.starved.is_empty() {
            self.accept_starved();
        }
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
        if !self.handshakes.is_empty() {
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
        self.collect_freed();
    }

    /// Has the allocator take what the discard thread freed, for half of the time at most: a
    /// flushed database of three million keys is back with the system after about two seconds.
    fn collect_freed(&mut self) {
        if self.inner || !self.discarder.wants_collection() {
            return;
        }
        let start_ns = self.clock.last().mono_ns;
        if start_ns >= self.next_collection_ns {
            self.discarder.collect();
            let end_ns = self.clock.read().mono_ns;
            self.next_collection_ns = end_ns + (end_ns - start_ns);
        }
    }

    fn handle(&mut self, engine: &mut EngineIo<'_>, ready: Ready) {
        let token = ready.token;
        if token == WAKER {
            return;
        }
        if token.0 >= FIRST_LISTENER {
            return self.accept(engine, token.0 - FIRST_LISTENER);
        }
        let Some(conn) = self.conns.get_mut(token.0).and_then(Option::as_mut) else {
            return;
        };
        let key = conn.key;
        if ready.writable && conn.write_blocked {
            conn.write_blocked = false;
            self.unwritten.push(key);
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

    /// The connection of a session, if it is still there.
    pub(crate) fn conn(&mut self, key: SessionKey) -> Option<&mut Conn> {
        self.conns
            .get_mut(key.slot as usize)?
            .as_deref_mut()
            .filter(|conn| conn.key == key)
    }

    /// Has a connection read at the next turn, event or not.
    pub(crate) fn list_unread(&mut self, key: SessionKey) {
        if let Some(conn) = self.conn(key)
            && !conn.listed
        {
            conn.listed = true;
            self.unread.push_back(key);
        }
    }

    /// Does what the store asks for. Resumed sessions may ask for more, hence the loop.
    fn carry_out(&mut self, engine: &mut EngineIo<'_>) {
        if !self.inner && !self.deferred.is_empty() {
            for effect in std::mem::take(&mut self.deferred) {
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
            Effect::Resume(_) => self.deferred.push(effect),
            Effect::Close(key) => self.close(engine, key),
            Effect::CloseAfterFlush(key) => self.close_after_flush(key),
            Effect::Discard(garbage) => self.discarder.discard(garbage),
            Effect::Shutdown(request) => self.shutdown_request = Some(request),
            effect => tracing::error!(?effect, "the front does not know this effect"),
        }
    }

    /// Whether nothing further up the stack depends on the connection.
    pub(crate) fn may_touch(&mut self, key: SessionKey) -> bool {
        let inner = self.inner;
        self.conn(key)
            .is_none_or(|conn| !(conn.running || inner && conn.blocked))
    }

    /// Ends a connection and its session. Closing the socket takes it out of the poll.
    pub(crate) fn close(&mut self, engine: &mut EngineIo<'_>, key: SessionKey) {
        if !self.may_touch(key) {
            self.deferred.push(Effect::Close(key));
            return;
        }
        if self.conn(key).is_some() {
            self.conns[key.slot as usize] = None;
            engine.store.disconnect(key);
            engine.outputs.remove(key);
        }
    }

    /// Takes a new connection in.
    pub(crate) fn add_conn(&mut self, key: SessionKey, mut stream: Stream) -> io::Result<()> {
        let slot = key.slot as usize;
        stream.register(self.poll.registry(), Token(slot), Interest::READABLE)?;
        if self.conns.len() <= slot {
            self.conns.resize_with(slot + 1, || None);
        }
        self.conns[slot] = Some(Box::new(Conn::new(stream, key)));
        Ok(())
    }
}
