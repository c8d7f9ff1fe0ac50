//! Nodes as tests start them.

use std::future::Future;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::time::Duration;

use kumi_node::config::{NodeConfig, Preset, StoreHere, StoreSection};
use kumi_node::{Builder, Node};
use kumi_unison::ClusterKey;
use tokio::runtime::Runtime;

/// Far beyond what any step takes, so that a test that is stuck fails instead of hanging.
const STUCK: Duration = Duration::from_secs(90);

pub(crate) fn key(fill: u8) -> ClusterKey {
    ClusterKey::from_secret(&[fill; 32]).expect("long enough")
}

/// A port that was free a moment ago.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

/// A store that this node runs, on a port.
pub(crate) fn store_at(port: u16) -> StoreSection {
    store_with(port, &[])
}

/// The same with more directives.
pub(crate) fn store_with(port: u16, directives: &[(&str, &str)]) -> StoreSection {
    let mut here = StoreHere::default();
    let port = port.to_string();
    let always = [("port", &*port), ("appendfsync", "always")];
    for (name, value) in always.iter().chain(directives) {
        here.directives.insert((*name).into(), (*value).into());
    }
    StoreSection::Here(here)
}

/// A node on free ports of loopback, with the key of most tests and the timeouts of one machine.
pub(crate) fn builder(name: &str, directory: &Path) -> Builder {
    let mut config = NodeConfig::default();
    config.node.preset = Some(Preset::Local);
    config.node.stop_within = Some(Duration::from_secs(5));
    Node::builder()
        .config(config)
        .name(name)
        .bind([127, 0, 0, 1].into())
        .ports(0, 0)
        .key(key(7))
        .state_dir(directory.join(name))
}

/// The same for a node that joins another.
pub(crate) fn joining(name: &str, directory: &Path, seed: SocketAddr) -> Builder {
    builder(name, directory).join(&seed.to_string())
}

pub(crate) fn seed(node: &Node) -> SocketAddr {
    node.membership_address().expect("it listens")
}

/// A runtime of its own, so that all of a node can end at once, as if its process were killed.
pub(crate) fn runtime() -> Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_all();
    builder.build().expect("a runtime")
}

pub(crate) async fn start_in(runtime: &Runtime, builder: Builder) -> Node {
    let started = runtime.spawn(builder.start()).await;
    started.expect("no panic").expect("a node")
}

/// Waits until something holds.
pub(crate) async fn until(mut holds: impl FnMut() -> bool) {
    while !holds() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Waits until the status says something.
pub(crate) async fn until_status(
    node: &Node,
    mut says: impl FnMut(&kumi_node::core::status::NodeStatus) -> bool,
) {
    while !says(&node.status().await) {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

pub(crate) async fn in_time<T>(test: impl Future<Output = T>) -> T {
    let done = tokio::time::timeout(STUCK, test).await;
    done.expect("in time")
}
