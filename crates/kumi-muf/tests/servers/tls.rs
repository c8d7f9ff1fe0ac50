//! `rediss://` against a redis-server with certificates made here.

use std::net::TcpListener;
use std::process::{Child, Command};

use kumi_muf::{Error, Muf};

use crate::support::{echo, end, until_ready};

/// A redis-server that speaks TLS only.
struct Server {
    child: Child,
    port: u16,
    certificate: String,
    _dir: tempfile::TempDir,
}

impl Server {
    /// `asks` it for certificates of clients too, which have to be the same one.
    fn start(asks: bool) -> (Self, rcgen::CertifiedKey<rcgen::KeyPair>) {
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let made = rcgen::generate_simple_self_signed(names).expect("a certificate");
        let dir = tempfile::tempdir().expect("a directory");
        let file = |name: &str, pem: &str| {
            let path = dir.path().join(name);
            std::fs::write(&path, pem).expect("a file");
            path
        };
        let certificate = file("cert.pem", &made.cert.pem());
        let key = file("key.pem", &made.signing_key.serialize_pem());
        let free = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = free.local_addr().expect("an address").port();
        drop(free);
        let child = until_ready(
            Command::new("redis-server")
                .args(["--port", "0", "--save", "", "--bind", "127.0.0.1"])
                .args(["--tls-port", &port.to_string(), "--tls-auth-clients"])
                .arg(if asks { "yes" } else { "no" })
                .arg("--tls-cert-file")
                .arg(&certificate)
                .arg("--tls-key-file")
                .arg(key)
                .arg("--tls-ca-cert-file")
                .arg(&certificate)
                .current_dir(dir.path()),
        );
        let server = Self {
            child,
            port,
            certificate: made.cert.pem(),
            _dir: dir,
        };
        (server, made)
    }

    fn url(&self) -> String {
        format!("rediss://localhost:{}", self.port)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn units_call_each_other_over_tls() {
    let (server, _) = Server::start(false);
    let unit = async |name: &str| {
        let builder = Muf::builder(&server.url(), name);
        let builder = builder.root_certificates(server.certificate.clone());
        builder.connect().await.expect("a unit")
    };
    let backend = unit("back").await;
    backend.serve("a.b", echo).await.expect("a service");
    let web = unit("web").await;
    // Longer than a TLS record, so that it comes in pieces.
    let long = "x".repeat(100_000);
    let answer = web.request("a.b", long.clone()).await.expect("an answer");
    assert_eq!(answer.text().expect("text"), long);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_that_is_not_trusted_ends_the_connection() {
    let (server, _) = Server::start(false);
    // Its certificate is not among the system's roots.
    let untrusted = Muf::connect(&server.url(), "web").await.map(|_| ());
    assert!(
        matches!(untrusted, Err(Error::Connect { .. })),
        "{untrusted:?}"
    );
    let insecure = Muf::connect(&format!("{}/#insecure", server.url()), "web").await;
    assert!(matches!(insecure.map(|_| ()), Err(Error::Url { .. })));
    // A name that the certificate does not have.
    let url = format!("rediss://127.0.0.2:{}", server.port);
    let builder = Muf::builder(&url, "web").root_certificates(server.certificate.clone());
    assert!(builder.connect().await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_asks_is_shown_our_certificate() {
    let (server, made) = Server::start(true);
    let builder =
        || Muf::builder(&server.url(), "web").root_certificates(server.certificate.clone());
    let without = builder().connect().await.map(|_| ());
    assert!(matches!(without, Err(Error::Connect { .. })), "{without:?}");
    let known = builder().client_certificate(made.cert.pem(), made.signing_key.serialize_pem());
    let web = known.connect().await.expect("a unit");
    web.keep("here", "yes").await.expect("kept");
}
