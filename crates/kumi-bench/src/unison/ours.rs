//! Unison, over QUIC on one channel, over QUIC with a stream for each call, and in memory.

use std::net::SocketAddr;

use anyhow::{Context, Result};
use bytes::Bytes;
use kumi_unison::{
    CallOptions, ChannelRegistry, ChannelSource, ClientTls, Fingerprint, IncomingRequest,
    MemoryClient, Payload, ProtocolClient, ProtocolServer, RemoteError, ServerTls, ServiceHandler,
    UnisonChannel,
};
use tokio::sync::oneshot;

use super::load::{Caller, ServerThread, Sides, expect_same};

const CHANNEL: &str = "bench";
const METHOD: &str = "Echo";

/// How a server is reached.
pub(super) struct Reach {
    address: SocketAddr,
    fingerprint: Fingerprint,
}

fn register(registry: &ChannelRegistry) {
    let echo = |request: IncomingRequest| async move {
        Ok::<Payload, RemoteError>(request.into_payload())
    };
    registry.register_channel(CHANNEL, ServiceHandler::new(echo));
}

/// Starts a server over QUIC.
pub(super) fn start(sides: &Sides) -> Result<(ServerThread, Reach)> {
    ServerThread::start(sides, serve)
}

async fn serve(ready: oneshot::Sender<Reach>, stop: oneshot::Receiver<()>) -> Result<()> {
    let server = ProtocolServer::new("bench", "1.0.0", "bench");
    register(server.registry());
    let tls = ServerTls::development(&["localhost"])?;
    let handle = server.listen(SocketAddr::from(([127, 0, 0, 1], 0)), &tls)?;
    let _ = ready.send(Reach {
        address: handle.local_addr(),
        fingerprint: tls.fingerprint(),
    });
    let _ = stop.await;
    Ok(())
}

/// A connection with its one channel. The connection ends with its client, so one of the two is kept.
pub(super) struct Client {
    channel: UnisonChannel,
    _quic: Option<ProtocolClient>,
    _memory: Option<MemoryClient>,
}

impl Client {
    pub(super) async fn connect(reach: &Reach) -> Result<Client> {
        let tls = ClientTls::pinned([reach.fingerprint])?;
        let client = ProtocolClient::connect(&reach.address.to_string(), tls).await?;
        Ok(Client {
            channel: client.open_channel(CHANNEL).await?,
            _quic: Some(client),
            _memory: None,
        })
    }

    /// Both sides on this thread.
    pub(super) async fn in_memory() -> Result<Client> {
        let registry = ChannelRegistry::new("bench", "1.0.0", "bench");
        register(&registry);
        let client = MemoryClient::connect(&registry);
        let channel = client
            .open_channel(CHANNEL, Default::default())
            .await
            .context("cannot open a channel in memory")?;
        Ok(Client {
            channel,
            _quic: None,
            _memory: Some(client),
        })
    }

    pub(super) fn caller(&self, own_stream: bool) -> ChannelCaller {
        ChannelCaller {
            channel: self.channel.clone(),
            own_stream,
        }
    }
}

/// Calls on the channel, or on a stream for each.
#[derive(Clone)]
pub(super) struct ChannelCaller {
    channel: UnisonChannel,
    own_stream: bool,
}

impl Caller for ChannelCaller {
    async fn call(&mut self, payload: Bytes) -> Result<()> {
        let options = CallOptions::new().own_stream(self.own_stream);
        let request = Payload::bytes(payload.clone());
        let answer = self.channel.call(METHOD, request, options).await?;
        expect_same(&payload, &answer.bytes)
    }
}
