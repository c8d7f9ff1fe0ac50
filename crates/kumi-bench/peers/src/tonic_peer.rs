//! gRPC: tonic with TLS and prost, one connection, a unary echo.
//!
//! The service is what `tonic-build` would generate, written out, so that no protoc is needed.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::task::{self, Poll};

use anyhow::Result;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::uri::PathAndQuery;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::server::{NamedService, UnaryService};
use tonic::transport::{
    Certificate, Channel, ClientTlsConfig, Endpoint, Identity, Server, ServerTlsConfig,
};
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;

use crate::load::{self, Caller, Load, Outcome, ServerThread, Sides, expect_same};

/// Longer than any payload of the bench.
const MAX_BYTES: usize = 8 * 1024 * 1024;

#[derive(Clone, PartialEq, prost::Message)]
struct Echo {
    #[prost(bytes = "bytes", tag = "1")]
    payload: Bytes,
}

#[derive(Clone)]
struct EchoServer;

impl NamedService for EchoServer {
    const NAME: &'static str = "bench.Echo";
}

impl UnaryService<Echo> for EchoServer {
    type Response = Echo;
    type Future = std::future::Ready<Result<Response<Echo>, Status>>;

    fn call(&mut self, request: Request<Echo>) -> Self::Future {
        std::future::ready(Ok(Response::new(request.into_inner())))
    }
}

impl Service<http::Request<Body>> for EchoServer {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<http::Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut task::Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        Box::pin(async move {
            let mut grpc = tonic::server::Grpc::new(ProstCodec::<Echo, Echo>::default())
                .max_decoding_message_size(MAX_BYTES);
            Ok(grpc.unary(EchoServer, request).await)
        })
    }
}

async fn serve(
    ready: oneshot::Sender<(SocketAddr, String)>,
    stop: oneshot::Receiver<()>,
) -> Result<()> {
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let certificate = certified.cert.pem();
    let identity = Identity::from_pem(&certificate, certified.signing_key.serialize_pem());
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let incoming = futures_util::StreamExt::map(TcpListenerStream::new(listener), |stream| {
        let stream = stream?;
        // What tonic's own listener does.
        stream.set_nodelay(true)?;
        std::io::Result::Ok(stream)
    });
    let _ = ready.send((address, certificate));
    let server = Server::builder()
        .tls_config(ServerTlsConfig::new().identity(identity))?
        .add_service(EchoServer)
        .serve_with_incoming(incoming);
    tokio::select! {
        outcome = server => Ok(outcome?),
        _ = stop => Ok(()),
    }
}

#[derive(Clone)]
struct EchoCaller(tonic::client::Grpc<Channel>);

impl Caller for EchoCaller {
    async fn call(&mut self, payload: Bytes) -> Result<()> {
        self.0.ready().await?;
        let request = Request::new(Echo {
            payload: payload.clone(),
        });
        let path = PathAndQuery::from_static("/bench.Echo/Echo");
        let codec = ProstCodec::<Echo, Echo>::default();
        let answer = self.0.unary(request, path, codec).await?.into_inner();
        expect_same(&payload, &answer.payload)
    }
}

pub(crate) fn run(sides: &Sides, load: Load) -> Result<Outcome> {
    let (server, (address, certificate)) = ServerThread::start(sides, serve)?;
    load::runtime()?.block_on(async {
        let tls = ClientTlsConfig::new()
            .ca_certificate(Certificate::from_pem(certificate))
            .domain_name("localhost");
        let channel = Endpoint::from_shared(format!("https://{address}"))?
            .tls_config(tls)?
            .connect()
            .await?;
        let client = tonic::client::Grpc::new(channel).max_decoding_message_size(MAX_BYTES);
        let callers = vec![EchoCaller(client); load.in_flight];
        load::measure(Some(&server), callers, load).await
    })
}
