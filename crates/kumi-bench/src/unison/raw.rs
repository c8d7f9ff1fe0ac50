//! quinn without anything on it: what QUIC itself costs.
//!
//! Its endpoints are tuned exactly as Unison's are, so that what remains is the cost of the protocol above.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{
    ClientConfig, Connection, Endpoint, RecvStream, SendStream, ServerConfig, TransportConfig,
};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::load::{Caller, ServerThread, Sides, expect_same};

/// The largest message any contestant is given.
pub(super) const MAX_BYTES: usize = 4 * 1024 * 1024;
/// Streams, window and timeouts, as Unison's client and server have them.
const MAX_STREAMS: u32 = 1024;
const BUFFERED_BYTES: usize = 32 * 1024 * 1024;
const IDLE: Duration = Duration::from_secs(30);

/// How a raw server answers.
#[derive(Clone, Copy, Debug)]
pub(super) enum Style {
    /// Messages of this size, one after the other on each stream.
    PingPong(usize),
    /// One message per stream.
    StreamPerRequest,
    /// Small messages of this size on streams that stay open, marked by a first byte of 0; one large message on a
    /// stream that begins with a 1.
    Mixed(usize),
}

/// How a raw server is reached.
pub(super) struct Reach {
    address: SocketAddr,
    certificate: CertificateDer<'static>,
}

/// Starts a raw server.
pub(super) fn start(sides: &Sides, style: Style) -> Result<(ServerThread, Reach)> {
    ServerThread::start(sides, move |ready, stop| serve(style, ready, stop))
}

fn transport() -> Arc<TransportConfig> {
    Arc::new(kumi_unison::driver::transport_config(
        MAX_STREAMS,
        BUFFERED_BYTES,
        IDLE,
        None,
    ))
}

async fn serve(
    style: Style,
    ready: oneshot::Sender<Reach>,
    stop: oneshot::Receiver<()>,
) -> Result<()> {
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let certificate = certified.cert.der().clone();
    let key = PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key.into())?;
    tls.alpn_protocols = vec![b"raw".to_vec()];
    let mut config = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls)?));
    config.transport_config(transport());
    let socket = kumi_unison::driver::bind_socket(SocketAddr::from(([127, 0, 0, 1], 0)))?;
    let endpoint = Endpoint::new(
        kumi_unison::driver::endpoint_config(),
        Some(config),
        socket,
        Arc::new(quinn::TokioRuntime),
    )?;
    let reach = Reach {
        address: endpoint.local_addr()?,
        certificate,
    };
    let _ = ready.send(reach);
    let connection = endpoint
        .accept()
        .await
        .context("the endpoint was closed")?
        .await?;
    tokio::select! {
        _ = stop => Ok(()),
        outcome = answer(connection, style) => outcome,
    }
}

/// Answers until the connection ends. A task per stream, as any server of many clients has it.
async fn answer(connection: Connection, style: Style) -> Result<()> {
    let mut streams = JoinSet::new();
    loop {
        tokio::select! {
            accepted = connection.accept_bi() => match accepted {
                Ok((send, receive)) => {
                    streams.spawn(answer_stream(send, receive, style));
                }
                Err(_) => return Ok(()),
            },
            // A stream that ends with the connection is no failure of its own; others are seen by the caller.
            Some(_) = streams.join_next() => {}
        }
    }
}

async fn answer_stream(send: SendStream, mut receive: RecvStream, style: Style) -> Result<()> {
    match style {
        Style::PingPong(size) => ping_pong(send, receive, size).await,
        Style::StreamPerRequest => answer_one(send, receive).await,
        Style::Mixed(size) => {
            let mut mark = [0];
            receive.read_exact(&mut mark).await?;
            match mark {
                [0] => ping_pong(send, receive, size).await,
                _ => answer_one(send, receive).await,
            }
        }
    }
}

async fn ping_pong(mut send: SendStream, mut receive: RecvStream, size: usize) -> Result<()> {
    loop {
        let mut chunks = read_message(&mut receive, size).await?;
        send.write_all_chunks(&mut chunks).await?;
    }
}

async fn answer_one(mut send: SendStream, mut receive: RecvStream) -> Result<()> {
    let message = receive.read_to_end(MAX_BYTES).await?;
    send.write_chunk(message.into()).await?;
    send.finish()?;
    Ok(())
}

/// Exactly this many bytes, in the chunks they came in.
async fn read_message(receive: &mut RecvStream, size: usize) -> Result<Vec<Bytes>> {
    let (mut chunks, mut missing) = (Vec::new(), size);
    while missing > 0 {
        match receive.read_chunk(missing, true).await? {
            Some(chunk) => {
                missing -= chunk.bytes.len();
                chunks.push(chunk.bytes);
            }
            None => bail!("a stream ended within a message"),
        }
    }
    Ok(chunks)
}

/// A connection to a raw server, and the endpoint that keeps it alive.
pub(super) struct Client {
    connection: Connection,
    _endpoint: Endpoint,
}

impl Client {
    pub(super) async fn connect(reach: &Reach) -> Result<Client> {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(reach.certificate.clone())?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_root_certificates(roots)
            .with_no_client_auth();
        tls.alpn_protocols = vec![b"raw".to_vec()];
        let mut config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
        config.transport_config(transport());
        let socket = kumi_unison::driver::bind_socket(SocketAddr::from(([0, 0, 0, 0], 0)))?;
        let endpoint = Endpoint::new(
            kumi_unison::driver::endpoint_config(),
            None,
            socket,
            Arc::new(quinn::TokioRuntime),
        )?;
        let connection = endpoint
            .connect_with(config, reach.address, "localhost")?
            .await?;
        Ok(Client {
            connection,
            _endpoint: endpoint,
        })
    }

    /// A caller on a stream of its own that stays open; `mark` is its first byte, if any.
    pub(super) async fn open_stream(&self, mark: Option<u8>) -> Result<OpenStream> {
        let (mut send, receive) = self.connection.open_bi().await?;
        if let Some(mark) = mark {
            send.write_all(&[mark]).await?;
        }
        Ok(OpenStream { send, receive })
    }

    /// A caller that opens a stream for each call; `mark` is the first byte of each, if any.
    pub(super) fn stream_per_request(&self, mark: Option<u8>) -> StreamPerRequest {
        StreamPerRequest {
            connection: self.connection.clone(),
            mark: mark.map(|mark| Bytes::copy_from_slice(&[mark])),
        }
    }
}

/// Calls one after the other on one stream.
pub(super) struct OpenStream {
    send: SendStream,
    receive: RecvStream,
}

impl Caller for OpenStream {
    async fn call(&mut self, payload: Bytes) -> Result<()> {
        self.send.write_chunk(payload.clone()).await?;
        let mut rest: &[u8] = &payload;
        for chunk in read_message(&mut self.receive, payload.len()).await? {
            let (expected, later) = rest.split_at(chunk.len());
            expect_same(expected, &chunk)?;
            rest = later;
        }
        Ok(())
    }
}

/// Opens a stream for each call.
#[derive(Clone)]
pub(super) struct StreamPerRequest {
    connection: Connection,
    mark: Option<Bytes>,
}

impl Caller for StreamPerRequest {
    async fn call(&mut self, payload: Bytes) -> Result<()> {
        let (mut send, mut receive) = self.connection.open_bi().await?;
        if let Some(mark) = &self.mark {
            send.write_chunk(mark.clone()).await?;
        }
        send.write_chunk(payload.clone()).await?;
        send.finish()?;
        expect_same(&payload, &receive.read_to_end(MAX_BYTES).await?)
    }
}
