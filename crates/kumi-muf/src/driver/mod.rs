//! The driver: what the core wants, done with tokio and the `redis` crate.
//!
//! `engine.rs` is the one task that owns the core and its sockets; `asks.rs` serves the handles, `pipelines.rs` sends
//! commands and takes in what comes, `upkeep.rs` does what is done by the clock, `pushes.rs` keeps nodes connected and
//! subscribed, `search.rs` scans, `directory.rs` knows which units run, `taps.rs` serves taps. Below that, `fleet.rs` knows which node has which
//! slot, `node.rs` makes connections, `remote.rs` lends them to tasks, `pipe.rs` moves bytes over a `stream.rs`,
//! `wire.rs` reads replies with `kumi-resp`, `encode.rs` packs commands. URLs, upkeep commands and values are the `redis` crate's; its
//! connections are not used, because each has tasks and queues of its own between the engine and the socket. Protocol decisions
//! are not made here.

mod ask;
mod asks;
mod directory;
mod encode;
mod engine;
mod fleet;
mod node;
mod pipe;
mod pipelines;
mod pushes;
mod remote;
mod search;
mod stream;
mod taps;
mod tls;
mod upkeep;
mod wire;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};

pub use ask::Stats;
pub(crate) use ask::{Ask, CallAsk, GatherAsk, ServeAsk, Ticket, WatchAsk, Withdrawal};
use engine::{Engine, Start, new_instance};
use fleet::Topology;
use node::Route;
pub(crate) use tls::{Certificates, Trust};

use crate::core::{Settings, UnitName};
use crate::discovery::Info;
use crate::{Connection, Error};

/// Asks that wait for the engine. Later ones wait for room.
const ASK_LIMIT: usize = 1_024;

/// Events every unit needs: channels per key, strings, expiry.
const FLAGS: &str = "K$x";

/// Events that watches over kept values need besides: deletions and changes of a TTL are generic ones.
const WATCH_FLAGS: &str = "K$xg";

/// What a builder collected.
pub(crate) struct Plan {
    pub(crate) info: redis::ConnectionInfo,
    pub(crate) trust: Trust,
    pub(crate) unit: UnitName,
    pub(crate) settings: Settings,
    pub(crate) connect_timeout: Duration,
    pub(crate) response_timeout: Duration,
    pub(crate) poll: Option<Duration>,
    pub(crate) discovery: Option<Info>,
    pub(crate) heartbeat: Duration,
}

/// The two ways to an engine.
#[derive(Clone)]
pub(crate) struct Wires {
    pub(crate) asks: mpsc::Sender<Ask>,
    pub(crate) back: mpsc::UnboundedSender<Withdrawal>,
    pub(crate) connection: watch::Receiver<Connection>,
}

/// Connects to all nodes, and starts the engine once all of them are subscribed to.
pub(crate) async fn start(plan: Plan) -> Result<(Wires, Settings), Error> {
    let Plan {
        info,
        trust,
        unit,
        mut settings,
        connect_timeout,
        response_timeout,
        poll,
        discovery,
        heartbeat,
    } = plan;
    let may_poll = poll.is_some();
    let name = unit.as_str().to_owned();
    let instance = new_instance();
    let route = Arc::new(Route {
        trust,
        info,
        client_name: format!("{name}~{instance}"),
        unit: name,
        connect_timeout,
        response_timeout,
        may_poll,
    });
    let mut first = route.open(None).await?;
    let topology = Topology::ask(&mut first, &route.host())
        .await
        .map_err(|source| route.failed(None, source))?;
    settings.cluster = topology.is_some();
    let topology = topology.unwrap_or_else(Topology::single);

    // RES and ERR in one pattern: the three letters of each, in order.
    let patterns: BTreeSet<String> = [format!("MUF/{unit}/[RE][ER][SR]/*")].into();
    let prefix = route.channel_prefix();
    let channels: Vec<String> = patterns
        .iter()
        .map(|glob| format!("{prefix}{glob}"))
        .collect();
    let mut connected = Vec::new();
    for address in &topology.primaries {
        let node = Some(&**address).filter(|address| !address.is_empty());
        connected.push((
            address.clone(),
            route.connect(node, &channels, FLAGS).await?,
        ));
    }
    if connected.iter().any(|(_, node)| !node.told) {
        settings.poll_ms = poll.map(|poll| poll.as_millis().max(1) as u64);
        tracing::info!("the server sends no keyspace events; polling");
    }

    let start = Start {
        unit,
        instance,
        settings: settings.clone(),
        route,
        patterns,
        flags: FLAGS,
        poll,
        polls: settings.poll_ms.is_some(),
        info: discovery,
        heartbeat,
    };
    let (connection, seen) = watch::channel(Connection::Connected);
    let mut engine = Engine::new(start, connection);
    let _ = engine.fleet.adopt(topology);
    for (address, node) in connected {
        engine.node_up(&address, node);
    }
    let (asks, asked) = mpsc::channel(ASK_LIMIT);
    let (back, withdrawn) = mpsc::unbounded_channel();
    tokio::spawn(engine.run(asked, withdrawn));
    let wires = Wires {
        asks,
        back,
        connection: seen,
    };
    Ok((wires, settings))
}
