//! The driver: one task per unit that runs the core over connections. Protocol decisions are not made here.
//!
//! This is the upper of two layers: `connection/` below it knows servers and clusters, but no units. From the top: `run.rs` is
//! the task; `asks.rs`, `outputs.rs`, `reports.rs` and `upkeep.rs` are what it does; `engine.rs` is its state, of which
//! `calls.rs`, `services.rs`, `watches.rs`, `taps.rs`, `directory.rs`, `notifications.rs` and `schedule.rs` are parts. `ask.rs`
//! has the messages between all of them.

mod ask;
mod asks;
mod calls;
mod directory;
mod engine;
mod notifications;
mod outputs;
mod reports;
mod run;
mod schedule;
mod services;
mod taps;
mod upkeep;
mod watches;

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kumi_common::Life;
use tokio::sync::{mpsc, watch};

pub use ask::Stats;
pub(crate) use ask::{Ask, CallAsk, GatherAsk, ServeAsk, Ticket, WatchAsk, Withdrawal};
use engine::{Engine, Start};
use notifications::FLAGS;

use crate::connection::{Connection, Connections, Route, Trust};
use crate::core::{Settings, UnitName};
use crate::discovery::Info;
use crate::error::Error;

/// Asks that wait for the engine. Later ones wait for room.
const ASK_LIMIT: usize = 1_024;

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
    /// The server of the URL, for errors.
    pub(crate) server: Arc<str>,
}

/// Connects to all nodes, and starts the engine once all of them are subscribed to.
pub(crate) async fn start(plan: Plan) -> Result<(Wires, Settings), Error> {
    let Plan {
        unit,
        mut settings,
        response_timeout,
        poll,
        ..
    } = plan;
    let instance = life()?.to_string();
    let route = Route {
        trust: plan.trust,
        info: plan.info,
        client_name: format!("{unit}~{instance}"),
        probe_key: format!("MUF/{unit}/KEEP/_probe"),
        connect_timeout: plan.connect_timeout,
        response_timeout,
        may_poll: poll.is_some(),
    };
    // RES and ERR in one pattern: the three letters of each, in order.
    let patterns = [format!("MUF/{unit}/[RE][ER][SR]/*")].into();
    let (connections, sends_events) = Connections::open(route, patterns, FLAGS).await?;
    settings.cluster = connections.is_cluster();
    if !sends_events {
        settings.poll_ms = poll.map(|poll| poll.as_millis().max(1) as u64);
        tracing::info!("the server sends no keyspace events; polling");
    }
    let (connection, server) = (connections.state(), connections.server());
    let seed = random()?;
    let engine = Engine::new(Start {
        unit,
        instance,
        settings: settings.clone(),
        connections,
        response_timeout,
        poll,
        info: plan.discovery,
        heartbeat: plan.heartbeat,
        seed,
    });
    let (asks, asked) = mpsc::channel(ASK_LIMIT);
    let (back, withdrawn) = mpsc::unbounded_channel();
    tokio::spawn(engine.run(asked, withdrawn));
    let wires = Wires {
        asks,
        back,
        connection,
        server,
    };
    Ok((wires, settings))
}

/// The life of a unit that starts now, which is its instance.
fn life() -> Result<Life, Error> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let unix_ms = since.map_or(0, |since| since.as_millis() as u64);
    Ok(Life::new(unix_ms, random()?))
}

fn random() -> Result<u64, Error> {
    getrandom::u64().map_err(|error| Error::Random(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_is_of_the_form_of_a_node_s_life() {
        let (node, instance) = (Life::new(1_700_000_000_000, 0), life().unwrap());
        assert!(node < instance, "{instance}");
        assert_ne!(life().unwrap(), instance);
    }
}
