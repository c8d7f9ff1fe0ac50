//! The driver: one task per unit that runs the core over connections. Protocol decisions are not made here.
//!
//! The connections are `kumi-redis`'s, which knows servers and clusters, but no units. From the top: `run.rs` is the task;
//! `handles.rs`, `outputs.rs`, `reports.rs` and `upkeep.rs` are what it does; `state.rs` is its state, of which `calls.rs`,
//! `services.rs`, `watches.rs`, `taps.rs`, `directory.rs`, `notifications.rs` and `schedule.rs` are parts. `messages.rs` has
//! the messages between all of them.

mod calls;
mod directory;
mod handles;
mod messages;
mod notifications;
mod outputs;
mod reports;
mod run;
mod schedule;
mod services;
mod state;
mod taps;
mod upkeep;
mod watches;

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kumi_common::Life;
use kumi_redis::{Connection, Connections, Route};
use tokio::sync::{mpsc, watch};

pub use messages::Stats;
pub(crate) use messages::{
    Message, StartCall, StartGather, StartService, StartWatch, Ticket, Withdrawal,
};
use notifications::FLAGS;
use state::{Driver, Start};

use crate::core::{Settings, UnitName};
use crate::discovery::Info;
use crate::error::Error;

/// Messages of handles that wait for the driver. Later ones wait for room.
const MESSAGE_LIMIT: usize = 1_024;

/// What a builder collected.
pub(crate) struct Plan {
    pub(crate) route: Route,
    pub(crate) unit: UnitName,
    pub(crate) settings: Settings,
    pub(crate) poll: Option<Duration>,
    pub(crate) discovery: Option<Info>,
    pub(crate) heartbeat: Duration,
}

/// The two ways to a driver.
#[derive(Clone)]
pub(crate) struct Wires {
    pub(crate) messages: mpsc::Sender<Message>,
    pub(crate) back: mpsc::UnboundedSender<Withdrawal>,
    pub(crate) connection: watch::Receiver<Connection>,
    /// The server of the URL, for errors.
    pub(crate) server: Arc<str>,
}

/// Connects to all nodes, and starts the driver once all of them are subscribed to.
pub(crate) async fn start(plan: Plan) -> Result<(Wires, Settings), Error> {
    let Plan {
        mut route,
        unit,
        mut settings,
        poll,
        ..
    } = plan;
    let instance = life()?.to_string();
    route.client_name = format!("{unit}~{instance}");
    route.library = "kumi-muf";
    route.probe_key = format!("MUF/{unit}/KEEP/_probe");
    route.may_poll = poll.is_some();
    let response_timeout = route.response_timeout;
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
    let driver = Driver::new(Start {
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
    let (messages, received) = mpsc::channel(MESSAGE_LIMIT);
    let (back, withdrawn) = mpsc::unbounded_channel();
    tokio::spawn(driver.run(received, withdrawn));
    let wires = Wires {
        messages,
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
