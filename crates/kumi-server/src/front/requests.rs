//! From a readable socket to executed requests.
//!
//! Bytes are read into a workspace that all connections share. What is left of them when the
//! complete requests have run stays with the connection: a small rest as a copy of just its size,
//! a large one (an argument that arrives in many reads) in a buffer of its own.

use crate::front::{EngineIo, Front};
use crate::net::conn::{Input, READ_BYTES, Received, Stream};
use kumi_resp::{Batch, Step};
use kumi_store::{Flow, InputUse, MAX_BATCH_REQUESTS, SessionKey};

/// Workspaces kept for reuse; a second one is needed only while a long command serves others.
const KEEP_WORKSPACES: usize = 2;

/// Buffers that requests are read and decoded into, for reuse.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    /// Empty inputs with room for a read.
    #[expect(
        clippy::vec_box,
        reason = "boxes move to connections and back; the pool only lends"
    )]
    workspaces: Vec<Box<Input>>,
    /// Lists of decoded requests; a second one is needed only while a long command serves others.
    batches: Vec<Batch>,
}

impl Buffers {
    /// The buffer for a read: the shared one, with the start of a small request copied to its
    /// front, or the connection's own if it holds the start of a large one.
    fn room_for_read(&mut self, kept: Option<Box<Input>>) -> Box<Input> {
        let Some(mut kept) = kept else {
            return self.workspaces.pop().unwrap_or_else(Input::workspace);
        };
        if kept.decoder.is_filling() {
            return kept;
        }
        if kept.is_large() {
            kept.reserve();
            return kept;
        }
        let mut workspace = self.workspaces.pop().unwrap_or_else(Input::workspace);
        workspace.bytes.extend_from_slice(&kept.bytes);
        workspace.decoder = std::mem::take(&mut kept.decoder);
        workspace.need = kept.need;
        workspace
    }

    /// Takes the shared buffer back, if it is that.
    fn put_back(&mut self, mut input: Box<Input>) {
        let is_workspace = input.bytes.capacity() == READ_BYTES;
        if is_workspace && self.workspaces.len() < KEEP_WORKSPACES {
            input.clear();
            self.workspaces.push(input);
        }
    }
}

impl Front {
    /// Reads once from a connection and executes what is complete.
    pub(crate) fn serve(&mut self, engine: &mut EngineIo<'_>, key: SessionKey) {
        if !self.may_touch(key) {
            return self.connections.list_unread(key);
        }
        let draining = self.stop.draining;
        let Some(conn) = self.connections.get(key) else {
            return;
        };
        if conn.closing || draining {
            return;
        }
        let kept = conn.input.take();
        let mut input = self.buffers.room_for_read(kept);
        let Some(conn) = self.connections.get(key) else {
            return;
        };
        if matches!(conn.stream, Stream::Tls(_)) {
            return self.serve_tls(engine, key, input);
        }
        let received = conn.receive(&mut input);
        self.take(engine, key, input, received);
    }

    /// Executes what a read gave.
    pub(crate) fn take(
        &mut self,
        engine: &mut EngineIo<'_>,
        key: SessionKey,
        mut input: Box<Input>,
        received: Received,
    ) {
        let Some(conn) = self.connections.get(key) else {
            return;
        };
        match received {
            Received::Nothing => self.keep(engine, key, input),
            Received::End => {
                // A client that has only closed its sending side still wants its replies.
                if conn.blocked || engine.outputs.pending(key) == 0 {
                    self.close(engine, key);
                } else {
                    self.connections.close_after_flush(key);
                }
            }
            Received::Bytes { count, full } => {
                if full || conn.ended {
                    self.connections.list_unread(key);
                }
                input.need = input.need.saturating_sub(count);
                engine.store.note_input(key, count, input.usage());
                self.execute(engine, key, input);
            }
        }
    }

    /// A session's wait is over: what it sent meanwhile runs.
    pub(crate) fn resume(&mut self, engine: &mut EngineIo<'_>, key: SessionKey) {
        let Some(conn) = self.connections.get(key) else {
            return;
        };
        conn.blocked = false;
        if let Some(input) = conn.input.take() {
            self.execute(engine, key, input);
        }
    }

    /// Executes the complete requests of `input` and keeps the rest with the connection.
    fn execute(&mut self, engine: &mut EngineIo<'_>, key: SessionKey, mut input: Box<Input>) {
        let Some(conn) = self.connections.get(key) else {
            return;
        };
        let mut at = 0;
        if !conn.blocked && !conn.closing {
            conn.running = true;
            let flow;
            (at, flow) = self.run_requests(engine, key, &mut input);
            if let Some(conn) = self.connections.get(key) {
                conn.running = false;
                conn.blocked = flow == Flow::Blocked;
            }
            if flow == Flow::Close {
                at = input.bytes.len();
                self.connections.close_after_flush(key);
            }
        }
        input.bytes.drain(..at);
        input.decoder.settle(&mut input.bytes);
        let left = input.usage().used;
        self.keep(engine, key, input);
        if left > engine.store.config().settings().query_buffer_limit_bytes {
            engine.store.note_query_limit(key);
            engine.store.note_leaving(key, "query buffer limit");
            self.close(engine, key);
        }
    }

    /// Executes requests until the input ends, the session waits or the connection is to close.
    /// Returns how many bytes they took.
    fn run_requests(
        &mut self,
        engine: &mut EngineIo<'_>,
        key: SessionKey,
        input: &mut Input,
    ) -> (usize, Flow) {
        let mut at = 0;
        input.need = 0;
        while at < input.bytes.len() {
            if input.decoder.is_between_requests() {
                let flow;
                (at, flow) = self.run_batch(engine, key, &input.bytes, at);
                if flow != Flow::Done {
                    return (at, flow);
                }
                if at == input.bytes.len() {
                    break;
                }
            }
            let limits = engine.store.limits(key);
            let max_message = engine.store.config().settings().max_message_bytes();
            // Large arguments that came with earlier reads are no longer in the buffer.
            let large = input.decoder.large_bytes();
            match input.decoder.decode(&input.bytes[at..], &limits) {
                Ok(Step::Request { args, consumed }) if large + consumed <= max_message => {
                    at += consumed;
                    let now = self.clock.last();
                    let outputs = &mut *engine.outputs;
                    let flow = engine.store.execute(key, args, now, outputs, self);
                    if input.decoder.has_large() {
                        self.discarder.discard_bytes(input.decoder.take_large());
                    }
                    if flow != Flow::Done {
                        return (at, flow);
                    }
                }
                Ok(Step::Incomplete { consumed, need })
                    if large + input.bytes.len() - at - consumed + need <= max_message =>
                {
                    input.need = need;
                    return (at + consumed, Flow::Done);
                }
                Ok(_) => {
                    let reason = "Protocol error: larger than max-message-size";
                    engine.store.refuse_input(engine.outputs, key, reason);
                    return (at, Flow::Close);
                }
                Err(error) => {
                    engine.store.protocol_error(engine.outputs, key, &error);
                    return (at, Flow::Close);
                }
            }
        }
        input.need = 1;
        (at, Flow::Done)
    }

    /// Executes the plain requests from position `at` of the input on, in runs that are decoded
    /// before their first request is executed. Returns the position of the first byte that is left.
    fn run_batch(
        &mut self,
        engine: &mut EngineIo<'_>,
        key: SessionKey,
        bytes: &[u8],
        mut at: usize,
    ) -> (usize, Flow) {
        let mut batch = self.buffers.batches.pop().unwrap_or_default();
        let mut flow = Flow::Done;
        while flow == Flow::Done {
            let limits = engine.store.limits(key);
            let max_message = engine.store.config().settings().max_message_bytes();
            batch.clear();
            let mut start = at;
            while batch.len() < MAX_BATCH_REQUESTS
                && let Some(end) = batch.decode(bytes, start, &limits, max_message)
            {
                start = end;
                let args = batch.args(bytes, batch.len() - 1);
                if !engine.store.plan(key, args) {
                    break;
                }
            }
            if batch.is_empty() {
                break;
            }
            let executed;
            (executed, flow) = engine
                .store
                .execute_batch(key, &batch, bytes, engine.outputs, self);
            at = batch.end(executed - 1);
        }
        self.buffers.batches.push(batch);
        (at, flow)
    }

    /// Puts away what was read: what is left of it stays with the connection.
    pub(crate) fn keep(
        &mut self,
        engine: &mut EngineIo<'_>,
        key: SessionKey,
        mut input: Box<Input>,
    ) {
        let left = input.bytes.len();
        let mut rest = None;
        if left > READ_BYTES / 2 {
            rest = Some(input);
        } else {
            if left > 0 {
                rest = Some(Box::new(Input {
                    decoder: std::mem::take(&mut input.decoder),
                    bytes: input.bytes.to_vec(),
                    need: input.need,
                }));
            }
            self.buffers.put_back(input);
        }
        let held = rest
            .as_ref()
            .map_or_else(InputUse::default, |rest| rest.usage());
        engine.store.note_leftover(key, held);
        if let Some(conn) = self.connections.get(key) {
            conn.input = rest;
        }
    }
}
