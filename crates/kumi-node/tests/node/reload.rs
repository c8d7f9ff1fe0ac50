//! Reloads of a running node.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kumi_node::Node;
use kumi_node::config::{NodeConfig, StoreSection};
use kumi_node::driver::client::{Access, NodeClient};

use crate::common::{builder, free_port, in_time, key, seed, store_at, store_with, until};
use crate::lifecycle::send_until_closed;

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

/// A node whose key is in a file, which has the key of this number.
async fn node_with_key_file(directory: &Path, port: u16) -> (Node, PathBuf) {
    let file = directory.join("kumi.key");
    write_keys(&file, &[7]);
    let mut config = NodeConfig::default();
    config.node.key_file = Some(file.clone());
    let node = Node::builder().config(config).name("a").ports(0, 0);
    let node = node.bind([127, 0, 0, 1].into()).store(store_at(port));
    let node = node.state_dir(directory.join("a")).start().await;
    let node = node.expect("a node");
    node.ready().await;
    (node, file)
}

/// Writes a key file with the keys of these numbers, as `common::key` makes them.
fn write_keys(file: &Path, fills: &[u8]) {
    let lines = fills
        .iter()
        .map(|fill| format!("{fill:02x}").repeat(32) + "\n");
    let mut options = std::fs::OpenOptions::new();
    let options = options.write(true).create(true).truncate(true).mode(0o600);
    let mut opened = options.open(file).expect("a file");
    let text: String = lines.collect();
    opened.write_all(text.as_bytes()).expect("written");
}

/// Reads the file again, and returns what the record says of the key.
async fn reload_keys(node: &Node) -> (Vec<String>, Vec<String>) {
    let record = node.reload(&node.config().await).await;
    (record.applied, record.refused)
}

fn changed() -> (Vec<String>, Vec<String>) {
    (vec!["key file: changed".into()], Vec::new())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pin_of_the_store_follows_the_keys_while_the_node_runs() {
    in_time(async {
        let directory = tempfile::tempdir().expect("a directory");
        let port = free_port();
        let (node, file) = node_with_key_file(directory.path(), port).await;
        let pin = node.state_dir().join("store-pin");
        let clusters = || -> Vec<String> {
            let text = std::fs::read_to_string(&pin).expect("a pin");
            let line = text.lines().last().expect("a line");
            line.split(' ').skip(1).map(Into::into).collect()
        };
        let first = clusters();
        assert_eq!(first.len(), 1);
        for (keys, ids) in [(&[7, 8][..], 2), (&[8, 7], 2), (&[8], 1)] {
            let before = clusters();
            write_keys(&file, keys);
            assert_eq!(reload_keys(&node).await, changed());
            until(|| clusters() != before).await;
            assert_eq!(clusters().len(), ids, "{keys:?}");
        }
        assert_ne!(clusters(), first);
        node.shutdown().await.expect("stopped");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_that_were_not_taken_over_in_full_are_taken_again_by_the_next_reload() {
    in_time(async {
        let directory = tempfile::tempdir().expect("a directory");
        let port = free_port();
        let (node, file) = node_with_key_file(directory.path(), port).await;
        // A store that has ended takes neither a certificate nor users.
        send_until_closed(port, "SHUTDOWN NOSAVE\r\n").await;
        node.store_ended().await;
        write_keys(&file, &[7, 8]);
        for _ in 0..2 {
            let (applied, refused) = reload_keys(&node).await;
            assert_eq!(applied, [""; 0]);
            assert_eq!(refused.len(), 1, "{refused:?}");
            assert!(refused[0].starts_with("key file: "), "{refused:?}");
        }
        node.shutdown().await.expect("stopped");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_whose_key_is_removed_loses_its_connection_and_its_rights() {
    in_time(async {
        let directory = tempfile::tempdir().expect("a directory");
        let (node, file) = node_with_key_file(directory.path(), free_port()).await;
        let address = seed(&node).to_string();
        let connect = async |fill| {
            let access = Access::key(&key(fill)).expect("a key");
            NodeClient::connect(&address, &access).await
        };
        let old = connect(7).await.expect("a node");
        old.drain().await.expect("it has the operator's key");
        write_keys(&file, &[8, 7]);
        assert_eq!(reload_keys(&node).await, changed());
        // Both keys are accepted, so that nothing is closed.
        old.undrain().await.expect("it has the operator's key");
        write_keys(&file, &[8]);
        assert_eq!(reload_keys(&node).await, changed());
        // A connection that is used is not closed because it is idle.
        let closed = async {
            while old.status().await.is_ok() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let closed = tokio::time::timeout(Duration::from_secs(30), closed).await;
        closed.expect("the connection was closed");
        assert!(connect(7).await.is_err(), "the key was removed");
        let new = connect(8).await.expect("a node");
        new.drain().await.expect("it has the operator's key");
        new.close().await;
        node.shutdown().await.expect("stopped");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_is_put_back_begins_when_its_predecessor_has_ended() {
    in_time(async {
        let directory = tempfile::tempdir().expect("a directory");
        let [log, go, script] = ["log", "go", "program.sh"].map(|name| directory.path().join(name));
        let text = format!(
            "trap 'echo stopping >> {log}; until [ -e {go} ]; do sleep 0.05; done; echo end >> {log}; exit 0' TERM\n\
             echo begin >> {log}\n\
             while :; do sleep 0.05; done\n",
            log = log.display(),
            go = go.display(),
        );
        std::fs::write(&script, text).expect("written");
        let entry = format!("run \"one\" exec=\"exec sh {}\" stop-grace=\"80s\"", script.display());
        let with = NodeConfig::parse("kumi.kdl", &entry).expect("sound");
        let node = builder("a", directory.path()).store(store_at(free_port()));
        let node = node.config(with.clone()).start().await.expect("a node");
        let lines = || -> Vec<String> {
            let text = std::fs::read_to_string(&log).unwrap_or_default();
            text.lines().map(Into::into).collect()
        };
        until(|| lines() == ["begin"]).await;
        let mut to = node.config().await;
        to.run.clear();
        node.reload(&to).await;
        until(|| lines() == ["begin", "stopping"]).await;
        to.run = with.run;
        let record = node.reload(&to).await;
        assert_eq!(record.applied, ["run one: added"]);
        let early = until(|| lines().len() > 2);
        let early = tokio::time::timeout(Duration::from_secs(1), early).await;
        assert!(early.is_err(), "{:?}", lines());
        std::fs::write(&go, "").expect("written");
        until(|| lines() == ["begin", "stopping", "end", "begin"]).await;
        node.shutdown().await.expect("stopped");
    })
    .await;
}
