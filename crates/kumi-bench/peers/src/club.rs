//! club-unison, one connection and one channel.
//!
//! Its client opens channels of JSON only, so the bytes travel as a base64 string, which is what a user with bytes to
//! send over that API would have to do.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Result;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use tokio::sync::oneshot;
use unison::network::UnisonChannel;
use unison::network::cert::CertSource;
use unison::{ProtocolClient, ProtocolServer};

use crate::load::{self, Caller, Load, Outcome, ServerThread, Sides, expect_same};

async fn serve(ready: oneshot::Sender<SocketAddr>, stop: oneshot::Receiver<()>) -> Result<()> {
    let server = ProtocolServer::with_identity("bench", "1", "bench");
    server
        .register_channel("echo", |_, stream| async move {
            let channel: UnisonChannel = UnisonChannel::new(stream);
            loop {
                let message = match channel.recv().await {
                    Ok(message) => message,
                    Err(error) if error.is_normal_close() => return Ok(()),
                    Err(error) => return Err(error),
                };
                let payload: String = serde_json::from_slice(&message.payload)?;
                channel
                    .send_response(message.id, &message.method, &payload)
                    .await?;
            }
        })
        .await;
    let handle = Arc::new(server)
        .listener("127.0.0.1:0")
        .cert(CertSource::dev_localhost())
        .spawn()
        .await?;
    let _ = ready.send(handle.local_addr());
    let _ = stop.await;
    handle.shutdown().await?;
    Ok(())
}

#[derive(Clone)]
struct EchoCaller(Arc<UnisonChannel>);

impl Caller for EchoCaller {
    async fn call(&mut self, payload: Bytes) -> Result<()> {
        let text = STANDARD.encode(&payload);
        let answer: String = self.0.request("Echo", &text).await?;
        expect_same(&payload, &STANDARD.decode(answer)?)
    }
}

pub(crate) fn run(sides: &Sides, load: Load) -> Result<Outcome> {
    let (server, address) = ServerThread::start(sides, serve)?;
    load::runtime()?.block_on(async {
        let client = ProtocolClient::insecure_localhost()?;
        client.connect(&address.to_string()).await?;
        let channel = Arc::new(client.open_channel("echo").await?);
        let callers = vec![EchoCaller(channel); load.in_flight];
        let outcome = load::measure(Some(&server), callers, load).await;
        client.disconnect().await?;
        outcome
    })
}
