//! Reloads of a running node.

use std::io::{Read, Write};
use std::net::TcpStream;

use kumi_node::config::{NodeConfig, StoreSection};

use crate::common::{builder, free_port, in_time, store_with};

/// The value of a directive of the store on this port.
async fn directive(port: u16, name: &str) -> String {
    let request = format!("CONFIG GET {name}\r\nQUIT\r\n");
    let asking = tokio::task::spawn_blocking(move || {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
        stream.write_all(request.as_bytes()).expect("sent");
        let mut reply = String::new();
        stream.read_to_string(&mut reply).expect("a reply");
        // An array of a name and a value, and each text follows its length.
        reply.lines().nth(4).expect("a value").to_owned()
    });
    asking.await.expect("a reply")
}

/// Changes a directive of the store that a configuration has.
fn set(config: &mut NodeConfig, name: &str, value: Option<&str>) {
    let StoreSection::Here(here) = &mut config.store else {
        panic!("the node runs no store");
    };
    match value {
        Some(value) => here.directives.insert(name.into(), value.into()),
        None => here.directives.remove(name),
    };
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directive_that_is_removed_stays_as_it_is_until_a_restart() {
    in_time(async {
        let directory = tempfile::tempdir().expect("a directory");
        let port = free_port();
        let store = store_with(port, &[("appendonly", "yes"), ("maxmemory", "1gb")]);
        let node = builder("a", directory.path()).store(store).start().await;
        let node = node.expect("a node");
        node.ready().await;
        let mut to = node.config().await;
        set(&mut to, "appendonly", None);
        set(&mut to, "maxmemory", Some("2gb"));
        let record = node.reload(&to).await;
        assert_eq!(record.restart, ["store appendonly: removed"]);
        assert_eq!(record.applied, ["store maxmemory: changed"]);
        assert_eq!(record.refused, [""; 0]);
        assert_eq!(directive(port, "appendonly").await, "yes");
        assert_eq!(directive(port, "maxmemory").await, "2147483648");
        node.shutdown().await.expect("stopped");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reload_keeps_the_events_that_messaging_needs() {
    in_time(async {
        let directory = tempfile::tempdir().expect("a directory");
        let port = free_port();
        let node = builder("a", directory.path()).store(store_with(port, &[]));
        let node = node.start().await.expect("a node");
        node.ready().await;
        let mut to = node.config().await;
        for (flags, has) in [("El", "ElK$xg"), ("", "K$xg")] {
            set(&mut to, "notify-keyspace-events", Some(flags));
            let record = node.reload(&to).await;
            assert_eq!(record.applied.len(), 1, "{record}");
            let events = directive(port, "notify-keyspace-events").await;
            let sorted = |flags: &str| {
                let mut flags: Vec<char> = flags.chars().collect();
                flags.sort_unstable();
                flags
            };
            assert_eq!(sorted(&events), sorted(has), "{flags}");
        }
        node.shutdown().await.expect("stopped");
    })
    .await;
}
