//! The loop: everything that is ready is read and executed, then everything that waits is written.
//!
//! ```text
//! turn: epoll_wait (until the store's next deadline)
//!       for each ready connection: one read, all complete requests of it
//!       effects
//!       for each session with output: one write
//!       what the store has to do by now (expiry, waits that end), and its output
//! ```
//!
//! A read that filled its buffer puts the connection on a list for the next turn, which then does
//! not wait: a busy client gets one buffer's worth of work per turn, as everybody else does.
//!
//! The front owns the sockets and is the store's [`Host`]; the store is handed in. That is what
//! lets a long command serve others: the running connection's input is held by the stack frame
//! that runs it, its [`Conn`] says `running`, and an inner turn leaves it alone.

use crate::clock::Clock;
use crate::conn::{Conn, Input, Received, Stream};
use crate::discard::Discarder;
use crate::listen::{Listener, Listeners};
use crate::server::ServerConfig;
use crate::shutdown::Shutdown;
use kumi_resp::Step;
use kumi_store::{Effect, Flow, InputUse, SessionKey, ShutdownRequest, Store};
use mio::event::Event;
use mio::{Events, Interest, Poll, Token, Waker};
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Events taken from the system at once. More wait for the next turn.
const EVENTS_PER_TURN: usize = 1024;

/// Workspaces kept for reuse; a second one is needed only while a long command serves others.
const KEEP_WORKSPACES: usize = 2;

/// Tokens at and above this are listeners; below, they are session slots.
const FIRST_LISTENER: usize = 1 << 40;
const WAKER: Token = Token(usize::MAX);

/// Everything outside the engine.
#[derive(Debug)]
pub(crate) struct Front {
    pub(crate) poll: Poll,
    pub(crate) clock: Clock,
    /// By session slot.
    pub(crate) conns: Vec<Option<Box<Conn>>>,
    pub(crate) listeners: Vec<Listener>,
    /// Listeners that may have more clients waiting than were accepted.
    pub(crate) unaccepted: Vec<usize>,
    /// The file CONFIG REWRITE writes to.
    pub(crate) config_file: Option<PathBuf>,
    pub(crate) rejected_connections: u64,
    pub(crate) turns: u64,
    pub(crate) busy_us: u64,
    pub(crate) shutdown: Shutdown,
    /// A client sent SHUTDOWN.
    pub(crate) shutdown_request: Option<ShutdownRequest>,
    discarder: Discarder,
    /// Empty inputs with room for a read.
    workspaces: Vec<Box<Input>>,
    events: Vec<Events>,
    /// Connections to read at the next turn without waiting for an event.
    unread: Vec<SessionKey>,
    /// Connections to write to although the store does not list them.
    unwritten: Vec<SessionKey>,
    /// Connections that close once their output is written.
    closing: Vec<SessionKey>,
    /// Effects on connections that an inner turn may not touch.
    deferred: Vec<Effect>,
    /// A long command runs and this is a turn inside of it.
    pub(crate) inner: bool,
}

impl Front {
    pub(crate) fn new(
        config: &ServerConfig,
        listeners: Listeners,
        shutdown: Shutdown,
    ) -> io::Result<Self> {
        let poll = Poll::new()?;
        shutdown.attach(Some(Waker::new(poll.registry(), WAKER)?));
        let mut front = Self {
            poll,
            clock: Clock::new(),
            conns: Vec::new(),
            listeners: Vec::new(),
            unaccepted: Vec::new(),
            config_file: config.file.clone(),
            rejected_connections: 0,
            turns: 0,
            busy_us: 0,
            shutdown,
            shutdown_request: None,
            discarder: Discarder::start()?,
            workspaces: Vec::new(),
            events: Vec::new(),
            unread: Vec::new(),
            unwritten: Vec::new(),
            closing: Vec::new(),
            deferred: Vec::new(),
            inner: false,
        };
        front.add_listeners(listeners.0)?;
        Ok(front)
    }

    /// Registers listeners with the poll.
    pub(crate) fn add_listeners(&mut self, listeners: Vec<Listener>) -> io::Result<()> {
        for mut listener in listeners {
            let token = Token(FIRST_LISTENER + self.listeners.len());
            let registry = self.poll.registry();
            match &mut listener {
                Listener::Tcp { socket, .. } => {
                    registry.register(socket, token, Interest::READABLE)?
                }
                Listener::Unix { socket, .. } => {
                    registry.register(socket, token, Interest::READABLE)?
                }
            }
            self.listeners.push(listener);
        }
        Ok(())
    }

    /// Whether the next turn has something to do without waiting for an event.
    fn has_work(&self, store: &Store) -> bool {
        !self.unread.is_empty()
            || !self.unaccepted.is_empty()
            || !self.unwritten.is_empty()
            || !self.deferred.is_empty()
            || store.has_effects()
    }

    /// How long the next turn may wait.
    pub(crate) fn patience(&mut self, store: &Store) -> Duration {
        if self.has_work(store) {
            return Duration::ZERO;
        }
        let now_us = self.clock.read().unix_us;
        let deadline_us = store.next_deadline().saturating_mul(1000);
        Duration::from_micros(deadline_us.saturating_sub(now_us))
    }

    /// Waits at most `patience`, then does everything that is ready.
    pub(crate) fn turn(&mut self, store: &mut Store, patience: Duration) -> io::Result<()> {
        let mut events = self
            .events
            .pop()
            .unwrap_or_else(|| Events::with_capacity(EVENTS_PER_TURN));
        match self.poll.poll(&mut events, Some(patience)) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        let start_ns = self.clock.rebase().mono_ns;
        let unread = std::mem::take(&mut self.unread);
        let unaccepted = std::mem::take(&mut self.unaccepted);
        for event in &events {
            self.handle(store, event);
        }
        events.clear();
        self.events.push(events);
        for key in unread {
            if let Some(conn) = self.conn(key) {
                conn.listed = false;
                self.serve(store, key);
            }
        }
        for index in unaccepted {
            self.accept(store, index);
        }
        self.carry_out(store);
        self.flush(store);
        if self.clock.read().unix_ms() >= store.next_deadline() {
            store.poll(self);
            self.carry_out(store);
            self.flush(store);
        }
        self.close_flushed(store);
        self.turns += 1;
        self.busy_us += (self.clock.last().mono_ns - start_ns) / 1000;
        Ok(())
    }

    fn handle(&mut self, store: &mut Store, event: &Event) {
        let token = event.token();
        if token == WAKER {
            return;
        }
        if token.0 >= FIRST_LISTENER {
            return self.accept(store, token.0 - FIRST_LISTENER);
        }
        let Some(conn) = self.conns.get_mut(token.0).and_then(Option::as_mut) else {
            return;
        };
        let key = conn.key;
        if event.is_writable() && conn.write_blocked {
            conn.write_blocked = false;
            self.unwritten.push(key);
        }
        let gone = event.is_error() || event.is_write_closed();
        if conn.closing {
            if gone && !conn.running {
                self.close(store, key);
            }
            return;
        }
        if event.is_readable() || event.is_read_closed() || gone {
            self.serve(store, key);
            // The end of the stream may wait behind the bytes that were just read, and the system
            // does not announce it twice.
            if event.is_read_closed() || gone {
                self.list_unread(key);
            }
        }
    }

    /// The connection of a session, if it is still there.
    pub(crate) fn conn(&mut self, key: SessionKey) -> Option<&mut Conn> {
        self.conns
            .get_mut(key.slot as usize)?
            .as_deref_mut()
            .filter(|conn| conn.key == key)
    }

    fn list_unread(&mut self, key: SessionKey) {
        if let Some(conn) = self.conn(key)
            && !conn.listed
        {
            conn.listed = true;
            self.unread.push(key);
        }
    }

    /// Reads once from a connection and executes what is complete.
    fn serve(&mut self, store: &mut Store, key: SessionKey) {
        let inner = self.inner;
        let Some(conn) = self.conn(key) else {
            return;
        };
        if conn.closing {
            return;
        }
        if conn.running || inner && conn.blocked {
            return self.list_unread(key);
        }
        let kept = conn.input.take();
        let mut input = self.room_for_read(kept);
        let Some(conn) = self.conn(key) else {
            return;
        };
        match conn.receive(&mut input) {
            Received::Nothing => self.keep(key, input, 0),
            Received::End => {
                if conn.blocked || store.output(key).is_empty() {
                    self.close(store, key);
                } else {
                    self.close_after_flush(key);
                }
            }
            Received::Bytes { count, full } => {
                if full {
                    self.list_unread(key);
                }
                let (used, free) = (input.bytes.len(), input.free());
                store.note_input(key, count, InputUse { used, free });
                self.execute(store, key, input);
            }
        }
    }

    /// The buffer for a read: the shared one, with the start of a small request copied to its
    /// front, or the connection's own if it holds the start of a large one.
    fn room_for_read(&mut self, kept: Option<Box<Input>>) -> Box<Input> {
        if let Some(mut input) = kept {
            if input.is_large() {
                input.reserve();
                return input;
            }
            let mut workspace = self.workspaces.pop().unwrap_or_else(Input::workspace);
            workspace.bytes.extend_from_slice(&input.bytes);
            workspace.decoder = std::mem::take(&mut input.decoder);
            return workspace;
        }
        self.workspaces.pop().unwrap_or_else(Input::workspace)
    }

    /// Executes the complete requests of `input` and keeps the rest with the connection.
    fn execute(&mut self, store: &mut Store, key: SessionKey, mut input: Box<Input>) {
        let Some(conn) = self.conn(key) else {
            return;
        };
        if conn.blocked || conn.closing {
            return self.keep(key, input, 0);
        }
        conn.running = true;
        let (at, flow) = self.run_requests(store, key, &mut input);
        if let Some(conn) = self.conn(key) {
            conn.running = false;
            conn.blocked = flow == Flow::Blocked;
        }
        if flow == Flow::Close {
            self.close_after_flush(key);
            let len = input.bytes.len();
            return self.keep(key, input, len);
        }
        let left = input.bytes.len() - at;
        let limit = store.config().settings().query_buffer_limit_bytes;
        self.keep(key, input, at);
        if left > limit {
            tracing::warn!(
                left,
                limit,
                "closing a client that reached the query buffer limit"
            );
            self.close(store, key);
        }
    }

    /// Executes requests until the input ends, the session waits or the connection is to close.
    /// Answers how many bytes they took.
    fn run_requests(
        &mut self,
        store: &mut Store,
        key: SessionKey,
        input: &mut Input,
    ) -> (usize, Flow) {
        let mut at = 0;
        while at < input.bytes.len() {
            let limits = store.limits(key);
            match input.decoder.decode(&input.bytes[at..], &limits) {
                Ok(Step::Request { args, consumed }) => {
                    at += consumed;
                    let now = self.clock.last();
                    match store.execute(key, args, now, self) {
                        Flow::Done => {}
                        flow => return (at, flow),
                    }
                }
                Ok(Step::Incomplete { consumed, need }) => {
                    input.need = need;
                    return (at + consumed, Flow::Done);
                }
                Err(error) => {
                    store.protocol_error(key, &error);
                    return (at, Flow::Close);
                }
            }
        }
        input.need = 1;
        (at, Flow::Done)
    }

    /// Puts away what was read: the bytes from `at` on stay with the connection.
    fn keep(&mut self, key: SessionKey, mut input: Box<Input>, at: usize) {
        let left = input.bytes.len() - at;
        let is_workspace = input.bytes.capacity() == crate::conn::READ_BYTES;
        if left > 0
            && let Some(conn) = self.conn(key)
        {
            if !is_workspace || left > crate::conn::READ_BYTES / 2 {
                input.bytes.drain(..at);
                conn.input = Some(input);
                return;
            }
            conn.input = Some(Box::new(Input {
                decoder: std::mem::take(&mut input.decoder),
                bytes: input.bytes[at..].to_vec(),
                need: input.need,
            }));
        }
        if is_workspace && self.workspaces.len() < KEEP_WORKSPACES {
            input.bytes.clear();
            input.decoder.reset();
            self.workspaces.push(input);
        }
    }

    /// Does what the store asks for. Resumed sessions may ask for more, hence the loop.
    fn carry_out(&mut self, store: &mut Store) {
        if !self.inner {
            for effect in std::mem::take(&mut self.deferred) {
                self.carry_out_one(store, effect);
            }
        }
        while store.has_effects() {
            for effect in store.effects() {
                self.carry_out_one(store, effect);
            }
        }
    }

    fn carry_out_one(&mut self, store: &mut Store, effect: Effect) {
        match effect {
            Effect::Discard(garbage) => return self.discarder.discard(garbage),
            Effect::Shutdown(request) => {
                self.shutdown_request = Some(request);
                return;
            }
            _ => {}
        }
        let (Effect::Resume(key) | Effect::Close(key) | Effect::CloseAfterFlush(key)) = effect
        else {
            return;
        };
        let inner = self.inner;
        let Some(conn) = self.conn(key) else {
            return;
        };
        if conn.running || inner && conn.blocked {
            self.deferred.push(effect);
            return;
        }
        match effect {
            Effect::Resume(_) => {
                conn.blocked = false;
                let input = conn.input.take();
                if let Some(input) = input {
                    self.execute(store, key, input);
                }
            }
            Effect::Close(_) => self.close(store, key),
            _ => self.close_after_flush(key),
        }
    }

    /// One write for every session with output.
    fn flush(&mut self, store: &mut Store) {
        let list = store.sessions_with_output();
        for &key in &list {
            self.write(store, key);
        }
        store.recycle_output_list(list);
        if !self.unwritten.is_empty() {
            for key in std::mem::take(&mut self.unwritten) {
                self.write(store, key);
            }
        }
    }

    fn write(&mut self, store: &mut Store, key: SessionKey) {
        let Some(conn) = self
            .conns
            .get_mut(key.slot as usize)
            .and_then(Option::as_deref_mut)
            .filter(|conn| conn.key == key)
        else {
            return;
        };
        if conn.write_blocked {
            return;
        }
        if conn.running {
            self.unwritten.push(key);
            return;
        }
        let output = store.output(key);
        if output.is_empty() {
            return;
        }
        let len = output.len();
        let count = loop {
            match conn.stream.write(output) {
                Ok(count) => break count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break 0,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    tracing::debug!(%error, "writing to a client failed");
                    return self.close(store, key);
                }
            }
        };
        if count < len {
            conn.write_blocked = true;
            // Only now: a Unix socket would announce room after every reply that the peer reads.
            let interest = Interest::READABLE | Interest::WRITABLE;
            let token = Token(key.slot as usize);
            let armed = conn
                .stream
                .reregister(self.poll.registry(), token, interest);
            if let Err(error) = armed {
                tracing::warn!(%error, "a client's socket cannot be watched");
                return self.close(store, key);
            }
        }
        store.written(key, count);
    }

    fn close_after_flush(&mut self, key: SessionKey) {
        if let Some(conn) = self.conn(key)
            && !conn.closing
        {
            conn.closing = true;
            self.closing.push(key);
        }
    }

    /// Closes the connections whose last bytes are written.
    fn close_flushed(&mut self, store: &mut Store) {
        if self.closing.is_empty() {
            return;
        }
        for key in std::mem::take(&mut self.closing) {
            let Some(conn) = self.conn(key) else {
                continue;
            };
            if conn.running || !store.output(key).is_empty() {
                self.closing.push(key);
                continue;
            }
            conn.stream.drain();
            self.close(store, key);
        }
    }

    /// Ends a connection and its session. Closing the socket takes it out of the poll.
    pub(crate) fn close(&mut self, store: &mut Store, key: SessionKey) {
        let inner = self.inner;
        let Some(conn) = self.conn(key) else {
            return;
        };
        if conn.running || inner && conn.blocked {
            self.deferred.push(Effect::Close(key));
            return;
        }
        self.conns[key.slot as usize] = None;
        store.disconnect(key);
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
