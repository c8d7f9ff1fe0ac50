//! tarpc with bincode over tokio-rustls, one connection.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Result;
use bytes::Bytes;
use futures_util::StreamExt;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName};
use tarpc::server::{BaseChannel, Channel};
use tarpc::tokio_serde::formats::Bincode;
use tarpc::tokio_util::codec::LengthDelimitedCodec;
use tarpc::{client, context, serde_transport};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::load::{self, Caller, Load, Outcome, ServerThread, Sides, expect_same};

#[tarpc::service]
trait Echo {
    async fn echo(payload: Bytes) -> Bytes;
}

#[derive(Clone)]
struct EchoService;

impl Echo for EchoService {
    async fn echo(self, _: context::Context, payload: Bytes) -> Bytes {
        payload
    }
}

async fn serve(
    ready: oneshot::Sender<(SocketAddr, CertificateDer<'static>)>,
    stop: oneshot::Receiver<()>,
) -> Result<()> {
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let certificate = certified.cert.der().clone();
    let key = PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key.into())?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let _ = ready.send((listener.local_addr()?, certificate));
    let (stream, _) = listener.accept().await?;
    stream.set_nodelay(true)?;
    let stream = TlsAcceptor::from(Arc::new(config)).accept(stream).await?;
    let framed = LengthDelimitedCodec::builder().new_framed(stream);
    let channel = BaseChannel::with_defaults(serde_transport::new(framed, Bincode::default()));
    let serving = channel
        .execute(EchoService.serve())
        .for_each(|answer| async {
            tokio::spawn(answer);
        });
    tokio::select! {
        () = serving => Ok(()),
        _ = stop => Ok(()),
    }
}

#[derive(Clone)]
struct EchoCaller(EchoClient);

impl Caller for EchoCaller {
    async fn call(&mut self, payload: Bytes) -> Result<()> {
        let answer = self.0.echo(context::current(), payload.clone()).await?;
        expect_same(&payload, &answer)
    }
}

pub(crate) fn run(sides: &Sides, load: Load) -> Result<Outcome> {
    let (server, (address, certificate)) = ServerThread::start(sides, serve)?;
    load::runtime()?.block_on(async {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(certificate)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let name = ServerName::try_from("localhost")?;
        let stream = TlsConnector::from(Arc::new(config))
            .connect(name, stream)
            .await?;
        let framed = LengthDelimitedCodec::builder().new_framed(stream);
        let transport = serde_transport::new(framed, Bincode::default());
        let client = EchoClient::new(client::Config::default(), transport).spawn();
        let callers = vec![EchoCaller(client); load.in_flight];
        load::measure(Some(&server), callers, load).await
    })
}
