//! `kumi up`: builds the node's configuration, runs the node, and turns signals into its end.
//!
//! ```text
//! up/plan.rs      options, kumi.kdl and redis.conf -> what the node is started with
//! up/reload.rs    SIGHUP: what of kumi.kdl and of the key file can change while the node runs
//! up/signals.rs   the signals that a node hears
//! ```

mod plan;
mod reload;
mod signals;

use crate::command_line::banner::{self, Invitation, Places};
use crate::command_line::cli::UpOptions;
use crate::command_line::exit::{Failure, chain};
use crate::command_line::{process, terminal};
use kumi_node::driver::state_dir::StateError;
use kumi_node::{Builder, Node, NodeError};
use kumi_server::{LogControl, Presence, Program};
use plan::Plan;
use signals::{Heard, Signals};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::signal::unix::SignalKind;

/// How long threads that still work may take when the node has ended.
const LAST_THREADS: Duration = Duration::from_secs(1);

/// Runs a node until it is asked to stop.
pub(crate) fn run(options: &UpOptions) -> Result<(), Failure> {
    let plan = Plan::of(options)?;
    let program = Program::prepare(plan.process_config()?, options.redis_conf.as_deref())?;
    let log = program.log();
    let mut builder = Node::builder().config(plan.config.clone());
    let mut presence = None;
    if plan.store.is_some() {
        let (server, shown) = program.into_server();
        builder = builder.server(server);
        presence = Some(shown);
    }
    if plan.file.is_some() {
        let launcher = process::launcher().map_err(Failure::other)?;
        builder = builder.launcher(launcher);
    }
    let runtime = runtime()?;
    let up = Up {
        plan,
        presence,
        log,
        is_quiet: options.quiet,
    };
    let ended = runtime.block_on(up.run(builder));
    runtime.shutdown_timeout(LAST_THREADS);
    ended
}

fn runtime() -> Result<Runtime, Failure> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.thread_name("kumi-node").enable_all().build();
    runtime.map_err(Failure::other)
}

/// A node in its process.
struct Up {
    plan: Plan,
    /// What the process shows of its store; none for a node without one.
    presence: Option<Presence>,
    log: Option<LogControl>,
    is_quiet: bool,
}

impl Up {
    async fn run(mut self, builder: Builder) -> Result<(), Failure> {
        let mut signals = Signals::listen().map_err(Failure::other)?;
        let builder = builder.reloads_on_hangup(signals.has_hangup());
        let node = tokio::select! {
            started = builder.start() => started.map_err(|error| self.not_started(error))?,
            () = signals.stop() => return Ok(()),
        };
        if let Some(presence) = &mut self.presence {
            presence.listening();
        }
        if !self.is_quiet {
            self.announce(&node);
        }
        if let Some(presence) = &self.presence {
            presence.ready();
        }
        let grace = self.until_stop(&node, &mut signals).await;
        if let Some(presence) = &self.presence {
            presence.stopping();
        }
        let store = node.store().map(|store| store.shutdown());
        let stopping = async {
            match grace {
                Some(grace) => node.shutdown_within(grace).await,
                None => node.shutdown().await,
            }
        };
        tokio::select! {
            stopped = stopping => match stopped {
                // The others notice it.
                Err(NodeError::Leave(error)) => {
                    terminal::note(chain(&NodeError::Leave(error)));
                    Ok(())
                }
                stopped => Ok(stopped?),
            },
            () = signals.stop() => {
                tracing::warn!("You insist... exiting now.");
                if let Some(store) = store {
                    store.remove_unfinished_file();
                }
                self.plan.state.remove();
                std::process::exit(1);
            }
        }
    }

    /// A directory that is named by the store's port and in use is a port in use.
    fn not_started(&self, error: NodeError) -> Failure {
        match (self.plan.port_of_state, error) {
            (Some(port), NodeError::State(StateError::InUse { node, .. })) => {
                let other = port.checked_add(1).unwrap_or(6380);
                Failure::PortTaken(format!(
                    "{node} is running with its store on port {port}; choose another port: kumi up --port {other}"
                ))
            }
            (_, error) => error.into(),
        }
    }

    /// Waits for what ends the node. Returns how long its tasks may go on, if the operator said it.
    async fn until_stop(&self, node: &Node, signals: &mut Signals) -> Option<Duration> {
        loop {
            tokio::select! {
                heard = signals.next() => match heard {
                    Heard::Stop(signal) => {
                        let name = match signal == SignalKind::interrupt() {
                            true => "SIGINT",
                            false => "SIGTERM",
                        };
                        tracing::warn!("Received {name} scheduling shutdown...");
                        if let Some(store) = node.store() {
                            let stop = store.shutdown();
                            stop.stand_for_signal(signal.as_raw_value());
                        }
                        return None;
                    }
                    Heard::Reload => self.reload(node).await,
                },
                grace = node.stop_requested() => return Some(grace),
                () = node.store_ended() => return None,
                // The stop says which: the service manager starts the node again.
                _ = node.part_failed() => return None,
            }
        }
    }

    /// Prints the banner. A node goes on if its standard output is closed.
    fn announce(&self, node: &Node) {
        let id;
        let state = node.state_dir().join("cluster.key");
        let key_file = self.plan.config.node.key_file.as_deref();
        let invitation = node.advertised().map(|address| Invitation {
            address,
            key_file: key_file.unwrap_or(&state),
        });
        let is_first = self.plan.config.node.join.is_empty();
        let has_key = self.plan.config.node.certificates.is_none();
        let mut places = Places {
            node: node.name().name(),
            membership: node.membership_address(),
            http: node.http_addresses(),
            notes: node.notes(),
            invitation: invitation.filter(|_| is_first && has_key),
            temporary_state: self.plan.state.is_temporary().then(|| node.state_dir()),
            ..Places::default()
        };
        if let (Some(store), Some(handle)) = (&self.plan.store, node.store()) {
            let settings = store.settings();
            let path = |bytes: Option<&[u8]>| bytes.map(|bytes| OsStr::from_bytes(bytes).into());
            id = handle.data_id().to_string();
            let addresses = handle.addresses();
            let directory = Path::new(OsStr::from_bytes(&settings.dir));
            places.store = Some(banner::Store {
                tcp: &addresses.tcp,
                tls: &addresses.tls,
                authority: path(settings.tls.ca_cert_file.as_deref()),
                unix: path(settings.unixsocket.as_deref()),
                kept: (!self.plan.is_ephemeral()).then_some(banner::Kept {
                    directory,
                    id: &id,
                    settings,
                }),
                password: settings.requirepass.is_some(),
            });
        }
        let banner = banner::text(&places);
        if let Err(failure) = crate::command_line::print(banner.as_bytes()) {
            eprintln!("kumi: {failure}");
        }
    }
}
