//! Paths, policies of listeners, and the end of the server.

use std::io::{Read, Write};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use kumi_node::http::{HostNames, HttpError, HttpListener, HttpOptions, Readiness};
use kumi_node::trust::{LeafNames, StoreId, Trust};
use kumi_unison::ClusterKey;
use rustls::pki_types::ServerName;

use crate::web::{
    Facts, TOKEN, at, connect, get, get_with, loopback, parsed, raw, rest, serve, wildcard,
};

#[test]
fn each_path_is_answered() {
    let server = serve(vec![loopback()], HttpOptions::default(), &Facts::new());
    let address = at(&server, 0);
    let (status, head, body) = get(address, "/healthz");
    assert_eq!((status, &body[..]), (200, "ok\n"));
    assert!(head.contains("cache-control: no-store"), "{head}");
    let (status, head, body) = get(address, "/");
    assert_eq!(status, 200);
    assert!(
        head.contains("content-type: text/plain; charset=utf-8"),
        "{head}"
    );
    assert!(body.contains("/metrics"), "{body}");
    let (status, head, body) = get(address, "/metrics");
    assert_eq!(status, 200);
    assert!(
        head.contains("content-type: text/plain; version=0.0.4"),
        "{head}"
    );
    assert!(body.contains("\nkumi_node_ready 1\n"), "{body}");
    assert!(body.contains("\nkumi_http_connections 1\n"), "{body}");
    assert!(body.contains("\nkumi_process_resident_bytes "), "{body}");
    assert_eq!(get(address, "/other").0, 404);
    let post = "POST /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 1\r\n\r\nx";
    let (status, head, _) = parsed(&raw(address, post));
    assert_eq!(status, 405);
    assert!(head.contains("allow: get, head"), "{head}");
    let request = "HEAD /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let (status, head, body) = parsed(&raw(address, request));
    assert_eq!((status, &body[..]), (200, ""));
    assert!(head.contains("content-length: 3"), "{head}");
}

#[test]
fn readiness_names_what_is_missing() {
    let facts = Facts::new();
    let server = serve(vec![loopback(), wildcard()], HttpOptions::default(), &facts);
    for (readiness, status, word) in [
        (Readiness::Loading, 503, "loading: "),
        (Readiness::NoStore, 503, "no store: "),
        (Readiness::Leaving, 503, "leaving: "),
        (Readiness::Ready, 200, "ready: "),
    ] {
        *facts.readiness.lock().unwrap() = readiness;
        for listener in [0, 1] {
            let (found, _, body) = get(at(&server, listener), "/readyz");
            assert_eq!(found, status);
            assert!(body.starts_with(word), "{body}");
            assert_eq!(get(at(&server, listener), "/healthz").0, 200);
        }
    }
    assert_eq!(
        facts.begun.load(Ordering::SeqCst),
        0,
        "health collects nothing"
    );
}

#[test]
fn metrics_are_open_on_loopback_and_need_a_token_elsewhere() {
    let server = serve(
        vec![loopback(), wildcard()],
        HttpOptions::default(),
        &Facts::new(),
    );
    assert_eq!(get(at(&server, 0), "/metrics").0, 200);
    let (status, head, body) = get(at(&server, 1), "/metrics");
    assert_eq!(status, 401);
    assert!(head.contains("www-authenticate: bearer"), "{head}");
    assert!(!body.contains("kumi_"), "{body}");
    let with = |token: &str| {
        get_with(
            at(&server, 1),
            "/metrics",
            &format!("authorization: Bearer {token}"),
        )
    };
    assert_eq!(with(TOKEN).0, 200);
    assert_eq!(with("another").0, 401);
    assert_eq!(with("").0, 401);
}

#[test]
fn a_foreign_host_is_refused() {
    let options = || HttpOptions::default();
    let mut named = options();
    named.hosts = HostNames::new(["node.example"]);
    let server = serve(vec![loopback()], named, &Facts::new());
    let ask = |host: &str| {
        let request = format!("GET /metrics HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
        parsed(&raw(at(&server, 0), &request))
    };
    assert_eq!(ask("node.example:7480").0, 200);
    assert_eq!(ask("localhost").0, 200);
    let (status, _, body) = ask("attacker.example");
    assert_eq!(status, 421);
    assert!(body.contains("not one of the node's"), "{body}");
    assert!(!body.contains("kumi_"), "{body}");
    let none = raw(
        at(&server, 0),
        "GET / HTTP/1.1\r\nconnection: close\r\n\r\n",
    );
    assert_eq!(parsed(&none).0, 400);
    assert_eq!(
        parsed(&raw(at(&server, 0), "GET /healthz HTTP/1.0\r\n\r\n")).0,
        200
    );
}

fn trust() -> Trust {
    let key = ClusterKey::from_secret(&[7; 32]).expect("long enough");
    Trust::from_key(&key).expect("a trust")
}

#[test]
fn a_listener_with_tls_shows_its_newest_certificate_and_speaks_nothing_else() {
    let trust = trust();
    let config = |id: &str| {
        let names = LeafNames::new("a", ["127.0.0.1".to_owned()]);
        let names = names.with_store(StoreId::new(id).unwrap());
        let leaf = trust.authority().sign(&names, SystemTime::now()).unwrap();
        leaf.server_config().unwrap()
    };
    let shown = Arc::new(Mutex::new(config("one")));
    let source = shown.clone();
    let listener = wildcard().with_tls(Arc::new(move || source.lock().unwrap().clone()));
    let server = serve(
        vec![loopback(), listener],
        HttpOptions::default(),
        &Facts::new(),
    );
    let ask = |id: &str| {
        let client = trust
            .store_client_config(&StoreId::new(id).unwrap())
            .unwrap();
        let name = ServerName::try_from("127.0.0.1").unwrap();
        let mut client = rustls::ClientConnection::new(client, name).unwrap();
        let mut socket = connect(at(&server, 1));
        let mut stream = rustls::Stream::new(&mut client, &mut socket);
        let request = "GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n";
        stream.write_all(request.as_bytes())?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        Ok::<_, std::io::Error>(parsed(&text).0)
    };
    assert_eq!(ask("one").unwrap(), 200);
    assert!(ask("two").is_err());
    *shown.lock().unwrap() = config("two");
    assert_eq!(ask("two").unwrap(), 200);
    let plain = raw(
        at(&server, 1),
        "GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n",
    );
    assert!(!plain.contains("HTTP"), "{plain}");
    assert_eq!(get(at(&server, 0), "/healthz").0, 200);
}

#[test]
fn facts_that_do_not_come_in_time_are_an_error_and_health_goes_on() {
    let facts = Facts::new();
    let permit = facts.gate.clone().try_acquire_owned().unwrap();
    let mut options = HttpOptions::default();
    options.snapshot_wait = Duration::from_millis(100);
    let server = serve(vec![loopback()], options, &facts);
    let address = at(&server, 0);
    assert_eq!(get(address, "/metrics").0, 503);
    assert_eq!(get(address, "/healthz").0, 200);
    drop(permit);
    assert_eq!(get(address, "/metrics").0, 200);
}

#[test]
fn many_scrapes_at_once_collect_a_few_times() {
    let facts = Facts::new();
    let permit = facts.gate.clone().try_acquire_owned().unwrap();
    let mut options = HttpOptions::default();
    options.snapshot_wait = crate::web::LONG;
    let server = serve(vec![loopback()], options, &facts);
    let request = b"GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let scrapes: Vec<_> = (0..40)
        .map(|_| {
            let mut stream = connect(at(&server, 0));
            stream.write_all(request).unwrap();
            stream
        })
        .collect();
    drop(permit);
    for stream in scrapes {
        assert_eq!(parsed(&rest(stream)).0, 200);
    }
    let begun = facts.begun.load(Ordering::SeqCst);
    assert!(begun <= 20, "{begun} snapshots for 40 scrapes");
}

#[tokio::test]
async fn a_stop_sends_the_response_under_way_and_closes_the_rest() {
    let facts = Facts::new();
    let permit = facts.gate.clone().try_acquire_owned().unwrap();
    let mut options = HttpOptions::default();
    options.stop_wait = crate::web::LONG;
    options.snapshot_wait = crate::web::LONG;
    let server = serve(vec![loopback(), wildcard()], options, &facts);
    let address = at(&server, 0);
    let idle = connect(at(&server, 1));
    let mut scrape = connect(address);
    scrape
        .write_all(b"GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .unwrap();
    while facts.begun.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    let stopping = tokio::spawn(server.stop());
    let idle = tokio::task::spawn_blocking(move || rest(idle));
    assert_eq!(idle.await.unwrap(), "");
    // The listener is closed while the response waits.
    while std::net::TcpStream::connect(address).is_ok() {
        tokio::task::yield_now().await;
    }
    assert!(!stopping.is_finished());
    drop(permit);
    let response = tokio::task::spawn_blocking(move || rest(scrape))
        .await
        .unwrap();
    assert_eq!(parsed(&response).0, 200);
    stopping.await.unwrap();
}

#[tokio::test]
async fn a_stop_does_not_wait_longer_than_it_may() {
    let facts = Facts::new();
    let _permit = facts.gate.clone().try_acquire_owned().unwrap();
    let mut options = HttpOptions::default();
    options.stop_wait = Duration::from_millis(100);
    options.snapshot_wait = Duration::from_secs(3600);
    options.idle_limit = Duration::from_secs(3600);
    let server = serve(vec![loopback()], options, &facts);
    let mut scrape = connect(at(&server, 0));
    scrape
        .write_all(b"GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .unwrap();
    while facts.begun.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    tokio::time::timeout(crate::web::LONG, server.stop())
        .await
        .expect("an end");
    let response = tokio::task::spawn_blocking(move || rest(scrape))
        .await
        .unwrap();
    assert_eq!(response, "");
}

#[test]
fn a_taken_port_is_named() {
    let first = loopback();
    let Err(error) = HttpListener::bind(first.address()) else {
        panic!("a port was bound twice");
    };
    assert!(
        error.to_string().contains(&first.address().to_string()),
        "{error}"
    );
    let HttpError::Listen { source, .. } = error else {
        panic!("{error:?}");
    };
    assert_eq!(source.kind(), std::io::ErrorKind::AddrInUse);
}
