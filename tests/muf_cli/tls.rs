//! `kumi muf` on a server that speaks TLS only.

use crate::support::Server;

#[test]
fn calls_travel_over_tls() {
    let (server, tls) = Server::redis_with_tls();
    let words = |more: &[&'static str]| [more, &[]].concat();
    let secured = [
        "--url",
        &tls.url,
        "--cacert",
        &tls.certificate,
        "--cert",
        &tls.certificate,
        "--key",
        &tls.key,
    ];
    let serve = words(&["text.*", "--exec", "tr a-z A-Z"]);
    let _backend = server.serve(&[&serve[..], &secured].concat());
    let call = words(&["call", "web", "text.upper", "hello"]);
    assert_eq!(server.printed(&[&call[..], &secured].concat()), "HELLO");
}

#[test]
fn a_certificate_that_is_not_trusted_is_named_as_the_cause() {
    let (server, tls) = Server::redis_with_tls();
    let call = ["call", "web", "a.b", "--url", &tls.url];
    server.fails(&call, 7, "certificate");
    server.fails(&call, 7, "--cacert");
    let elsewhere = tls.url.replace("localhost", "127.0.0.2");
    let call = ["units", "--url", &elsewhere, "--cacert", &tls.certificate];
    server.fails(&call, 7, "certificate");
    let call = ["units", "--url", &tls.url, "--cacert", "/no/such/file"];
    server.fails(&call, 2, "/no/such/file");
    let call = ["units", "--url", &tls.url, "--cacert", &tls.key];
    server.fails(&call, 2, "certificate");
    let call = ["units", "--url", &tls.url, "--cert", &tls.certificate];
    server.fails(&call, 2, "--key");
}
