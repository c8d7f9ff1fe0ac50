//! What the program around the server asks of it while it runs, through its handle.

use super::{EngineIo, Front};
use crate::net::conn::Stream;
use crate::net::tls::config::TlsIdentity;
use kumi_store::{HostUser, Peer};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Requests that wait at most; who sends one more waits.
const MAX_WAITING: usize = 16;

/// A request of the handle, with the place for its reply.
#[derive(Debug)]
pub(crate) enum ControlRequest {
    /// The text of INFO.
    Info(SyncSender<String>),
    /// A new client.
    Connect(UnixStream),
    /// Another certificate for the listeners that decide by the address.
    Identity(TlsIdentity, SyncSender<Result<(), String>>),
    /// The users of the program.
    Users(Vec<HostUser>, SyncSender<Result<(), String>>),
}

/// The loop's end of the way of requests.
#[derive(Debug)]
pub(crate) struct Control {
    requests: Receiver<ControlRequest>,
    /// A request that waits for the end of a long command; those behind it wait as well.
    held: Option<ControlRequest>,
}

impl Control {
    fn next(&mut self) -> Option<ControlRequest> {
        self.held.take().or_else(|| self.requests.try_recv().ok())
    }
}

/// The way of requests to the loop, and its end there.
pub(crate) fn channel() -> (SyncSender<ControlRequest>, Control) {
    let (sender, requests) = sync_channel(MAX_WAITING);
    let held = None;
    (sender, Control { requests, held })
}

impl Front {
    /// Does what the handle asks for. Called when something has woken the loop. Users do not change in the middle of a
    /// command: a script would end half done.
    pub(super) fn serve_control(&mut self, engine: &mut EngineIo<'_>) {
        let Some(mut control) = self.control.take() else {
            return;
        };
        while let Some(request) = control.next() {
            if self.inner && matches!(request, ControlRequest::Users(..)) {
                control.held = Some(request);
                break;
            }
            // The sender of a request may have stopped to wait for its reply.
            match request {
                ControlRequest::Info(reply) => {
                    let _ = reply.send(engine.store.info(self));
                }
                ControlRequest::Connect(stream) => self.connect_host(engine, stream),
                ControlRequest::Identity(identity, reply) => {
                    let settings = &engine.store.config().settings().tls;
                    let _ = reply.send(self.tls.replace_identity(identity, settings));
                }
                ControlRequest::Users(users, reply) => {
                    let _ = reply.send(engine.store.set_host_users(&users));
                }
            }
        }
        self.control = Some(control);
    }

    /// Does what the handle asked for while a long command ran. Called at the end of each turn.
    pub(super) fn serve_held_control(&mut self, engine: &mut EngineIo<'_>) {
        let control = self.control.as_ref();
        if !self.inner && control.is_some_and(|control| control.held.is_some()) {
            self.serve_control(engine);
        }
    }

    fn connect_host(&mut self, engine: &mut EngineIo<'_>, stream: UnixStream) {
        let name = "host:0".to_owned();
        let peer = Peer {
            addr: name.clone(),
            laddr: name,
            unix: true,
            ..Peer::default()
        };
        let stream = Stream::Unix(mio::net::UnixStream::from_std(stream));
        self.admit(engine, stream, None, peer);
    }
}
