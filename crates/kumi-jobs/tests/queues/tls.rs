//! `rediss://` on servers with certificates made here.

use crate::servers::{Kind, Server, free_ports, on_both_servers};
use crate::work::{Effects, Step, worker};
use kumi_common::Chain;
use kumi_jobs::{Jobs, QueueError, RedisOptions, queue_names};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A server with a port for TLS, whose own certificate is the only one to trust.
struct Secured {
    server: Server,
    port: u16,
    /// The certificate as a file and as text, and its key.
    file: PathBuf,
    pem: String,
    key: PathBuf,
    _dir: tempfile::TempDir,
}

impl Secured {
    /// With `is_mutual`, clients have to show the same certificate.
    fn start(kind: Kind, is_mutual: bool) -> Self {
        let names = vec!["localhost".to_owned()];
        let made = rcgen::generate_simple_self_signed(names).expect("a certificate");
        let dir = tempfile::tempdir().expect("a directory");
        let write = |name: &str, pem: &str| {
            let path = dir.path().join(name);
            std::fs::write(&path, pem).expect("a file");
            path
        };
        let file = write("cert.pem", &made.cert.pem());
        let key = write("key.pem", &made.signing_key.serialize_pem());
        let port = free_ports(1)[0];
        let (port_text, cert_text, key_text) = (
            port.to_string(),
            file.display().to_string(),
            key.display().to_string(),
        );
        let server = Server::with_args(
            kind,
            &[
                "--tls-port",
                &port_text,
                "--tls-cert-file",
                &cert_text,
                "--tls-key-file",
                &key_text,
                "--tls-ca-cert-file",
                &cert_text,
                "--tls-auth-clients",
                if is_mutual { "yes" } else { "no" },
            ],
        );
        Self {
            server,
            port,
            file,
            pem: made.cert.pem(),
            key,
            _dir: dir,
        }
    }

    fn url(&self, query: &str) -> String {
        format!("rediss://localhost:{}/?queue=secured{query}", self.port)
    }

    fn cacert(&self) -> String {
        self.url(&format!("&cacert={}", self.file.display()))
    }
}

/// The error of a URL, and how long it took.
async fn refused(url: &str) -> (QueueError, Duration) {
    let start = Instant::now();
    match Jobs::connect(url).await {
        Ok(_) => panic!("{url} connected"),
        Err(error) => (error, start.elapsed()),
    }
}

async fn tasks_run_over_tls(kind: Kind) {
    let secured = Secured::start(kind, false);
    let jobs = Jobs::connect(&secured.cacert()).await.expect("a queue");
    let effects = Effects::default();
    let sum = async {
        // Longer than a TLS record, so that a payload comes in pieces.
        let text = "x".repeat(100_000);
        let large = jobs.queue().enqueue(vec![kumi_jobs::NewTask::new(
            kumi_jobs::TaskEnvelope::json("other", serde_json::to_vec(&text).expect("JSON")),
        )]);
        let id = large.await.expect("enqueued")[0].id();
        let record = jobs.get_status(id).await.expect("a reply");
        assert_eq!(record.expect("a task").envelope.payload.len(), 100_002);
        let mut sum = 0;
        for number in 0..20 {
            // Each waits for the one before, so the worker waits on its blocking connection in between.
            let handle = jobs
                .enqueue(Step { number, key: None })
                .await
                .expect("enqueued");
            sum += handle.result().await.expect("a result");
        }
        assert_eq!(sum, 190);
    };
    worker(&jobs, &effects)
        .run_until(sum)
        .await
        .expect("a worker");
    // The same data, seen through the other port.
    let plain = format!("redis://127.0.0.1:{}/", secured.server.port);
    assert_eq!(queue_names(&plain).await.expect("names"), ["secured"]);
    assert_eq!(
        queue_names(&secured.cacert()).await.expect("names"),
        ["secured"]
    );
}

async fn a_certificate_that_is_not_trusted_is_an_error_at_once(kind: Kind) {
    let secured = Secured::start(kind, false);
    let unknown = secured.url("");
    let elsewhere = secured.cacert().replace("localhost", "127.0.0.1");
    for (url, expected) in [
        (unknown, "no authority that is trusted here has signed it"),
        (elsewhere, "it is not for this name"),
    ] {
        let (error, took) = refused(&url).await;
        assert!(matches!(error, QueueError::Io(_)), "{error:?}");
        let text = Chain(&error).to_string();
        assert!(text.contains(expected), "{text}");
        assert!(took < Duration::from_secs(10), "{took:?}");
    }
}

async fn a_url_that_leads_to_no_redis_is_an_error_at_once(kind: Kind) {
    let secured = Secured::start(kind, false);
    let without_tls = format!("redis://localhost:{}/", secured.port);
    for url in [
        &without_tls,
        "redis://host.invalid/",
        "rediss://host.invalid/",
    ] {
        let (error, took) = refused(url).await;
        assert!(matches!(error, QueueError::Io(_)), "{error:?}");
        assert!(took < Duration::from_secs(10), "{url}: {took:?}");
    }
}

async fn a_server_without_tls_is_an_error_at_once(kind: Kind) {
    let open = Server::start(kind);
    let guarded = Server::with_args(kind, &["--requirepass", "sesame"]);
    for server in [open, guarded] {
        let url = format!("rediss://localhost:{}/", server.port);
        let (error, took) = refused(&url).await;
        assert!(matches!(error, QueueError::Config(_)), "{error:?}");
        let text = Chain(&error).to_string();
        assert!(text.contains("answers without TLS"), "{text}");
        assert!(took < Duration::from_secs(10), "{took:?}");
    }
}

async fn a_database_that_the_server_lacks_is_an_error_at_once(kind: Kind) {
    let server = Server::start(kind);
    let url = format!("redis://localhost:{}/99?queue=q", server.port);
    let (error, took) = refused(&url).await;
    assert!(matches!(error, QueueError::Config(_)), "{error:?}");
    let text = Chain(&error).to_string();
    assert!(text.contains("has no database 99"), "{text}");
    assert!(took < Duration::from_secs(10), "{took:?}");
    let url = format!("redis://localhost:{}/7?queue=q", server.port);
    Jobs::connect(&url).await.expect("a queue");
    assert_eq!(queue_names(&url).await.expect("names"), ["q"]);
    let first = url.replace("/7", "/0");
    assert!(queue_names(&first).await.expect("names").is_empty());
}

/// Both connect through the same layer: what is wrong reads the same, whatever it is.
async fn a_server_that_cannot_be_connected_to_reads_as_in_muf(kind: Kind) {
    let secured = Secured::start(kind, false);
    let guarded = Server::with_args(kind, &["--requirepass", "sesame"]);
    let closed = free_ports(1)[0];
    let urls = [
        (format!("redis://127.0.0.1:{closed}"), "cannot connect to"),
        (format!("redis://127.0.0.1:{}", guarded.port), "NOAUTH"),
        (
            format!("redis://:no@127.0.0.1:{}", guarded.port),
            "WRONGPASS",
        ),
        (
            "redis://host.invalid".to_owned(),
            "cannot connect to host.invalid:6379",
        ),
        (secured.url(""), "is not trusted"),
        (
            format!("rediss://127.0.0.1:{}", guarded.port),
            "answers without TLS",
        ),
        (
            format!("redis://:sesame@127.0.0.1:{}/99", guarded.port),
            "has no database 99",
        ),
    ];
    for (url, expected) in urls {
        let (error, _) = refused(&url).await;
        let unit = kumi_muf::Muf::connect(&url, "web").await.map(|_| ());
        let of_unit = unit.expect_err("no unit");
        let text = Chain(&error).to_string();
        assert_eq!(text, Chain(&of_unit).to_string(), "{url}");
        assert!(text.contains(expected), "{text}");
        let is_of_credentials = ["NOAUTH", "WRONGPASS"].contains(&expected);
        assert_eq!(error.is_unauthorized(), is_of_credentials, "{error:?}");
    }
}

async fn a_client_shows_its_certificate(kind: Kind) {
    let secured = Secured::start(kind, true);
    let (error, _) = refused(&secured.cacert()).await;
    assert!(matches!(error, QueueError::Io(_)), "{error:?}");
    let key = std::fs::read(&secured.key).expect("a key");
    let options = RedisOptions::from_url(&secured.url("")).expect("a URL");
    let options = options
        .root_certificates(secured.pem.clone())
        .client_certificate(secured.pem.clone(), key);
    assert!(!format!("{options:?}").contains("PRIVATE"), "{options:?}");
    let queue = options.connect().await.expect("a queue");
    let jobs = Jobs::with_queue(Arc::new(queue));
    jobs.enqueue(Step {
        number: 1,
        key: None,
    })
    .await
    .expect("enqueued");
    let files = format!(
        "&cert={}&key={}",
        secured.file.display(),
        secured.key.display()
    );
    let again = Jobs::connect(&(secured.cacert() + &files))
        .await
        .expect("a queue");
    let counts = again.counts_by_state().await.expect("counts");
    assert_eq!(counts.of(kumi_jobs::TaskState::Queued), 1);
}

on_both_servers!(
    tasks_run_over_tls,
    a_certificate_that_is_not_trusted_is_an_error_at_once,
    a_url_that_leads_to_no_redis_is_an_error_at_once,
    a_server_without_tls_is_an_error_at_once,
    a_database_that_the_server_lacks_is_an_error_at_once,
    a_server_that_cannot_be_connected_to_reads_as_in_muf,
    a_client_shows_its_certificate,
);
