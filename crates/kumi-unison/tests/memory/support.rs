//! Handlers that tests steer, and registries to put them into.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::BoxFuture;
use kumi_unison::{
    ChannelHandler, ChannelRegistry, IncomingRequest, Payload, RemoteError, Service, UnisonChannel,
};
use tokio::sync::watch;

pub(crate) async fn echo(request: IncomingRequest) -> Result<Payload, RemoteError> {
    Ok(request.into_payload())
}

pub(crate) fn registry_with(name: &str, handler: impl ChannelHandler) -> ChannelRegistry {
    let registry = ChannelRegistry::new("test", "0.1.0", "default");
    registry.register_channel(name, handler);
    registry
}

/// Waits until nothing is under way on the channel: every call ended and was answered for.
pub(crate) async fn at_rest(channel: &UnisonChannel) {
    while channel.load() != (0, 0, 0) {
        tokio::task::yield_now().await;
    }
}

/// Echoes when it is released or, unless it is stubborn, when the caller gave up.
#[derive(Clone)]
pub(crate) struct Hold {
    state: Arc<watch::Sender<State>>,
    most: Arc<AtomicUsize>,
    stubborn: bool,
}

#[derive(Default, Clone, Copy)]
struct State {
    started: usize,
    cancelled: usize,
    running: usize,
    released: bool,
}

impl Default for Hold {
    fn default() -> Self {
        Self {
            state: Arc::new(watch::Sender::default()),
            most: Arc::default(),
            stubborn: false,
        }
    }
}

impl Hold {
    pub(crate) fn stubborn() -> Self {
        Self {
            stubborn: true,
            ..Self::default()
        }
    }

    pub(crate) fn release(&self) {
        self.state.send_modify(|state| state.released = true);
    }

    pub(crate) async fn started(&self, count: usize) {
        self.state
            .subscribe()
            .wait_for(|state| state.started >= count)
            .await
            .unwrap();
    }

    pub(crate) async fn cancelled(&self, count: usize) {
        self.state
            .subscribe()
            .wait_for(|state| state.cancelled >= count)
            .await
            .unwrap();
    }

    pub(crate) fn count(&self) -> usize {
        self.state.borrow().started
    }

    pub(crate) fn most_at_once(&self) -> usize {
        self.most.load(Ordering::SeqCst)
    }
}

impl Service for Hold {
    fn call(&self, request: IncomingRequest) -> BoxFuture<'static, Result<Payload, RemoteError>> {
        let hold = self.clone();
        Box::pin(async move {
            hold.state.send_modify(|state| {
                state.started += 1;
                state.running += 1;
                hold.most.fetch_max(state.running, Ordering::SeqCst);
            });
            let mut state = hold.state.subscribe();
            let token = request.cancelled();
            let cancelled = tokio::select! {
                _ = state.wait_for(|state| state.released) => false,
                () = token.cancelled(), if !hold.stubborn => true,
            };
            hold.state.send_modify(|state| {
                state.running -= 1;
                state.cancelled += usize::from(cancelled);
            });
            Ok(request.into_payload())
        })
    }
}
