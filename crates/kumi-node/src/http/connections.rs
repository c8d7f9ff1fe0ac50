//! One connection: a handshake where the listener has TLS, then requests until an end.
//!
//! A connection ends when its client does not finish a request's headers in time, when its last request was too long ago
//! (idle, or a client that does not read its response), and when the server stops.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::metrics;
use super::places::Activity;
use super::routes::{self, Answer, Asked, Refusal, Route};
use super::shared::{Listening, Shared};
use super::snapshot::Readiness;

/// Most bytes of a request's line and headers. hyper's buffer is no smaller than 8 KiB.
const HEADER_LIMIT_BYTES: usize = 16 * 1024;
/// Most headers of a request.
const HEADER_LIMIT: usize = 64;

/// Serves one connection to its end.
pub(super) async fn serve(
    stream: TcpStream,
    listening: Arc<Listening>,
    shared: Arc<Shared>,
    activity: Arc<Activity>,
) {
    let Some(tls) = &listening.tls else {
        return serve_requests(stream, &listening, &shared, &activity).await;
    };
    let acceptor = TlsAcceptor::from(tls());
    let shaking = timeout(shared.options.header_wait, acceptor.accept(stream));
    tokio::select! {
        // A handshake that fails is the client's affair.
        shaken = shaking => if let Ok(Ok(stream)) = shaken {
            serve_requests(stream, &listening, &shared, &activity).await;
        },
        () = shared.stopping.cancelled() => {}
    }
}

async fn serve_requests(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    listening: &Listening,
    shared: &Shared,
    activity: &Activity,
) {
    let service = service_fn(|request: Request<Incoming>| {
        let busy = activity.begin();
        shared.counters.requests.add();
        let admitted = admit(&request, listening, shared);
        async move {
            let _busy = busy;
            let answer = match admitted {
                Ok(route) => show(route, shared).await,
                Err(refusal) => refusal.answer(),
            };
            Ok::<Response<Full<Bytes>>, Infallible>(answer)
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(shared.options.header_wait)
        .max_header_size(HEADER_LIMIT_BYTES)
        .max_headers(HEADER_LIMIT)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    let idle_limit = shared.options.idle_limit;
    let mut stopping: Option<&CancellationToken> = Some(&shared.stopping);
    loop {
        let ends = activity.last() + idle_limit;
        tokio::select! {
            _ = connection.as_mut() => return,
            () = sleep_until(ends) => if activity.last() + idle_limit <= Instant::now() {
                return;
            },
            () = cancelled(stopping) => {
                // The response under way is still sent.
                connection.as_mut().graceful_shutdown();
                stopping = None;
            }
        }
    }
}

async fn cancelled(token: Option<&CancellationToken>) {
    match token {
        Some(token) => token.cancelled().await,
        None => std::future::pending().await,
    }
}

/// The route of a request, or why it is refused.
fn admit(
    request: &Request<Incoming>,
    listening: &Listening,
    shared: &Shared,
) -> Result<Route, Refusal> {
    let asked = Asked {
        method: request.method(),
        uri: request.uri(),
        version: request.version(),
        headers: request.headers(),
    };
    let is_token = |token: &[u8]| shared.source.is_metrics_token(token);
    routes::admit(
        &asked,
        &shared.options.hosts,
        listening.is_loopback,
        is_token,
    )
}

async fn show(route: Route, shared: &Shared) -> Answer {
    match route {
        Route::Index => routes::index(),
        Route::Health => routes::plain(StatusCode::OK, "ok\n"),
        Route::Readiness => readiness(shared.source.readiness()),
        Route::Metrics => match shared.scrape().await {
            Some(text) => routes::metrics(text),
            None => routes::plain(
                StatusCode::SERVICE_UNAVAILABLE,
                "the node did not give its metrics in time\n",
            ),
        },
    }
}

fn readiness(readiness: Readiness) -> Answer {
    let (word, sentence) = readiness.words();
    let status = match readiness {
        Readiness::Ready => StatusCode::OK,
        _ => StatusCode::SERVICE_UNAVAILABLE,
    };
    routes::plain(status, format!("{word}: {sentence}\n"))
}

/// Metrics no older than this are shown again, so that many clients cost the store no more than a few.
const FRESH: Duration = Duration::from_millis(200);

impl Shared {
    /// The metrics; none if they could not be had in time. One request collects, those that wait meanwhile get the same.
    async fn scrape(&self) -> Option<Bytes> {
        let asked = Instant::now();
        let collecting = async {
            let mut last = self.last_scrape.0.lock().await;
            if let Some((began, text)) = &*last
                && *began + FRESH >= asked
            {
                return text.clone();
            }
            let began = Instant::now();
            let snapshot = self.source.snapshot().await;
            let text = metrics::text(
                &snapshot,
                self.source.readiness(),
                &self.counters.snapshot(),
            );
            let text = Bytes::from(text);
            *last = Some((began, text.clone()));
            text
        };
        timeout(self.options.snapshot_wait, collecting).await.ok()
    }
}
