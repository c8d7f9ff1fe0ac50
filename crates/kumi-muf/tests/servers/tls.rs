//! `rediss://` against a redis-server with certificates made here.

use std::net::TcpListener;
use std::process::{Child, Command};
use std::time::Duration;

use kumi_muf::{Builder, Error, Muf, ServerError};

use crate::support::{echo, end, until_ready};

/// A redis-server that speaks TLS only.
struct Server {
    child: Child,
    port: u16,
    certificate: String,
    _dir: tempfile::TempDir,
}

impl Server {
    /// `is_mutual`: clients have to show a certificate too, the same one.
    fn start(is_mutual: bool) -> (Self, rcgen::CertifiedKey<rcgen::KeyPair>) {
        Self::valid_until(4000, is_mutual)
    }

    /// Its certificate is valid from 2001 until the first day of a year.
    fn valid_until(year: i32, is_mutual: bool) -> (Self, rcgen::CertifiedKey<rcgen::KeyPair>) {
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let mut params = rcgen::CertificateParams::new(names).expect("names");
        params.not_before = rcgen::date_time_ymd(2001, 1, 1);
        params.not_after = rcgen::date_time_ymd(year, 1, 1);
        let signing_key = rcgen::KeyPair::generate().expect("a key");
        let cert = params.self_signed(&signing_key).expect("a certificate");
        let made = rcgen::CertifiedKey { cert, signing_key };
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
                .args([
                    "--port",
                    "0",
                    "--save",
                    "",
                    "--bind",
                    "127.0.0.1",
                    "127.0.0.2",
                ])
                .args(["--tls-port", &port.to_string(), "--tls-auth-clients"])
                .arg(if is_mutual { "yes" } else { "no" })
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
    let insecure = Muf::connect(&format!("{}/#insecure", server.url()), "web").await;
    assert!(matches!(
        insecure.map(|_| ()),
        Err(Error::Server(ServerError::Url { .. }))
    ));

    let localhost = format!("localhost:{}", server.port);
    // Its certificate is not among the system's roots, nor is it this one.
    let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a root");
    let unknown = "no authority that is trusted here has signed it";
    not_trusted(Muf::builder(&server.url(), "web"), &localhost, unknown).await;
    let builder = Muf::builder(&server.url(), "web").root_certificates(other.cert.pem());
    not_trusted(builder, &localhost, unknown).await;
    // A name that the certificate does not have.
    let elsewhere = format!("127.0.0.2:{}", server.port);
    let builder = Muf::builder(&format!("rediss://{elsewhere}"), "web");
    let builder = builder.root_certificates(server.certificate.clone());
    not_trusted(builder, &elsewhere, "it is not for this name").await;

    let (expired, _) = Server::valid_until(2002, false);
    let builder = Muf::builder(&expired.url(), "web");
    let builder = builder.root_certificates(expired.certificate.clone());
    let localhost = format!("localhost:{}", expired.port);
    not_trusted(builder, &localhost, "it has expired").await;
}

/// Connecting fails at once, with this reason.
async fn not_trusted(builder: Builder, expected_address: &str, expected: &str) {
    // Far beyond how long it takes, and far below giving up.
    let builder = builder.connect_timeout(Duration::from_secs(600));
    let connecting = tokio::time::timeout(Duration::from_secs(60), builder.connect());
    let outcome = connecting.await.expect("an error at once").map(|_| ());
    match outcome {
        Err(Error::Server(ServerError::Certificate { address, reason })) => {
            assert_eq!((&*address, &*reason), (expected_address, expected));
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_requires_a_certificate_is_shown_ours() {
    let (server, made) = Server::start(true);
    let builder =
        || Muf::builder(&server.url(), "web").root_certificates(server.certificate.clone());
    let without = builder().connect().await.map(|_| ());
    match without {
        // The server's own words: it wants a certificate.
        Err(Error::Server(ServerError::Connect { address, source })) => {
            assert_eq!(address, format!("localhost:{}", server.port));
            assert!(
                source.to_string().contains("CertificateRequired"),
                "{source}"
            );
        }
        other => panic!("{other:?}"),
    }
    let known = builder().client_certificate(made.cert.pem(), made.signing_key.serialize_pem());
    let web = known.connect().await.expect("a unit");
    web.keep("here", "yes").await.expect("kept");
}
