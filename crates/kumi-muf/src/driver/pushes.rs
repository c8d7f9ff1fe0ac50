//! Keeping nodes connected and subscribed, and following a cluster's topology.
//!
//! A node is usable only while both its connections are. When either breaks, or a ping gets no answer, the node is
//! dropped and connected anew, with a pause that grows; then the core is informed, and reads again what it may have missed.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::ask::{After, Report};
use super::engine::{Engine, Generic};
use super::fleet::{Address, Topology, Up};
use super::node::{Connected, Events, Route, ensure_events};
use super::pipelines::Waiting;
use super::remote::Remote;
use super::search::search_refused;
use crate::Connection;
use crate::core::Time;

/// First pause before a node is connected again. It doubles up to a second.
const RETRY_FIRST: Duration = Duration::from_millis(20);
const RETRY_DOUBLINGS: u32 = 6;

/// How often a node is pinged, and how long the reply may take.
const PING_EVERY: Duration = Duration::from_secs(3);
const PING_PATIENCE: Duration = Duration::from_secs(3);

impl Engine {
    /// Puts a connected node to use.
    pub(super) fn node_up(&mut self, address: &Address, connected: Connected) {
        let Some(node) = self.fleet.nodes.get_mut(address) else {
            return;
        };
        node.generation += 1;
        let generation = node.generation;
        let remote = Remote {
            address: address.clone(),
            generation,
            remote_calls: self.remote_calls.0.clone(),
            db: self.route.info.redis_settings().db(),
        };
        self.tasks.spawn(watch_over(remote.clone()));
        node.up = Some(Up {
            commands: connected.commands.into_pipe(),
            waiting: VecDeque::new(),
            pushes: connected.pushes.into_pipe(),
            confirming: VecDeque::new(),
            remote,
        });
        tracing::info!(node = %address, "subscribed");
        self.tell_connection();
        if self.fleet.all_up() || self.has_begun {
            self.stats.reconnects += u64::from(self.has_begun);
            self.has_begun = true;
            let now = self.now();
            self.core.handle_subscribed(now);
            self.taps.gap();
        }
    }

    pub(super) fn node_down(&mut self, address: &Address, generation: u64) {
        let Some(node) = self.fleet.nodes.get_mut(address) else {
            return;
        };
        if node.generation != generation {
            return;
        }
        let Some(up) = node.up.take() else { return };
        self.lose(up);
        tracing::info!(node = %address, "connection lost");
        self.tell_connection();
        if self.fleet.none_up() {
            self.core.handle_unsubscribed();
        }
        self.connect(address.clone(), 0);
        self.refresh_topology(true);
    }

    /// Tells handles whether all nodes are there, if that has changed.
    fn tell_connection(&mut self) {
        let all_up = self.fleet.all_up();
        self.connection.send_if_modified(|connection| {
            let changed = connection.is_connected() != all_up;
            if changed {
                *connection = match all_up {
                    true => Connection::Connected,
                    false => Connection::Away {
                        since: std::time::Instant::now(),
                    },
                };
            }
            changed
        });
    }

    /// Marks everything that waits for a lost connection as lost.
    fn lose(&mut self, up: Up) {
        self.lost
            .extend(up.waiting.into_iter().filter_map(Waiting::into_lost));
    }

    /// Drops nodes with an overdue reply: all replies behind it are overdue too.
    pub(super) fn drop_silent_nodes(&mut self, now: Time) {
        let patience_ms = self.route.response_timeout.as_millis() as u64;
        let silent = |up: &Up| {
            up.waits_since()
                .is_some_and(|at| now.since(at) > patience_ms)
        };
        let nodes = self.fleet.nodes.iter();
        let silent: Vec<(Address, u64)> = nodes
            .filter(|(_, node)| node.up.as_ref().is_some_and(silent))
            .map(|(address, node)| (address.clone(), node.generation))
            .collect();
        for (address, generation) in silent {
            tracing::info!(node = %address, "no reply in time");
            self.node_down(&address, generation);
        }
    }

    /// Connects a node, after a pause if it was tried before.
    pub(super) fn connect(&mut self, address: Address, failures: u32) {
        let (route, flags, version) = (self.route.clone(), self.flags, self.version);
        let patterns = self.channels();
        self.tasks.spawn(async move {
            if failures > 0 {
                sleep(RETRY_FIRST * 2u32.pow(failures.min(RETRY_DOUBLINGS))).await;
            }
            let result = route.connect(name(&address), &patterns, flags).await;
            match result {
                Ok(connected) => Report::Connected {
                    address,
                    version,
                    result: Ok(Box::new(connected)),
                    failures,
                },
                Err(error) => Report::Connected {
                    address,
                    version,
                    result: Err(error),
                    failures: failures + 1,
                },
            }
        });
    }

    /// One of our tasks has something to say.
    pub(super) fn reported(&mut self, report: Report) {
        match report {
            Report::Connected {
                address,
                result: Err(error),
                failures,
                ..
            } => {
                tracing::debug!(node = %address, %error, "cannot connect");
                if self.fleet.nodes.contains_key(&address) {
                    self.connect(address, failures);
                    self.refresh_topology(true);
                }
            }
            Report::Connected {
                address,
                version,
                result: Ok(connected),
                ..
            } if version == self.version => {
                self.node_up(&address, *connected);
            }
            Report::Connected {
                address,
                result: Ok(mut connected),
                failures,
                ..
            } => {
                // There are more patterns now than when it began.
                let (patterns, version, flags) = (self.channels(), self.version, self.flags);
                let route = self.route.clone();
                self.tasks.spawn(async move {
                    ensure_events(&mut connected.commands, flags).await;
                    for pattern in patterns {
                        if let Err(error) = connected.pushes.psubscribe(&pattern).await {
                            let node = Some(&*address).filter(|address| !address.is_empty());
                            let result = Err(route.failed(node, error));
                            return Report::Connected {
                                address,
                                version,
                                result,
                                failures: failures + 1,
                            };
                        }
                    }
                    Report::Connected {
                        address,
                        version,
                        result: Ok(connected),
                        failures,
                    }
                });
            }
            Report::Silent {
                address,
                generation,
            } => self.node_down(&address, generation),
            Report::Topology(topology) => {
                self.refreshing = false;
                let Some(topology) = topology else { return };
                let (missing, dropped) = self.fleet.adopt(topology);
                for up in dropped.into_iter().filter_map(|node| node.up) {
                    self.lose(up);
                }
                for address in missing {
                    self.connect(address, 0);
                }
                self.tell_connection();
            }
            Report::Subscribed {
                after,
                refused: Some(text),
                ..
            } => self.refused(after, text),
            Report::Subscribed { after, told, .. } => match after {
                After::Directory => self.directory_subscribed(None),
                After::Serve(ask) => self.serve(ask),
                After::Watch(watch, reply) => self.watch_subscribed(watch, told, reply),
                After::Tap(reply) => {
                    let _ = reply.send(());
                }
                After::Nothing => {}
            },
            Report::Rechecked { mended, told } => self.rechecked(mended, told),
            Report::Nothing => {}
        }
    }

    /// Subscribes all nodes to more patterns over keys, then does what they were for. A node that fails here is
    /// dropped by its watch, and subscribed to everything when it comes back.
    pub(super) fn subscribe(&mut self, globs: Vec<String>, after: After) {
        let prefix = self.route.channel_prefix();
        let news: Vec<String> = globs
            .into_iter()
            .filter(|glob| self.patterns.insert(glob.clone()))
            .collect();
        if !news.is_empty() {
            self.version += 1;
        }
        let (mut remotes, flags) = (self.fleet.remotes(), self.flags);
        let route = self.route.clone();
        // What else is needed was proved when the node was connected.
        let unproven = matches!(after, After::Watch(..)) && self.generic == Generic::Unproven;
        let searches = matches!(after, After::Watch(..) | After::Serve(_) | After::Directory);
        self.tasks.spawn(async move {
            let (mut told, mut refused) = (true, None);
            for remote in &mut remotes {
                if searches {
                    refused = refused.or(search_refused(remote).await);
                }
                let events = ensure_events(remote, flags).await;
                if unproven && events == Events::Unknown {
                    told &= still_told(&route, remote, flags).await;
                }
                for glob in &news {
                    let _ = remote.psubscribe(&format!("{prefix}{glob}")).await;
                }
            }
            Report::Subscribed {
                after,
                told,
                refused,
            }
        });
    }

    /// Checks that all nodes still send the events that are needed, and sets their flags if not. Where we poll, there is nothing to
    /// rely on.
    pub(super) fn recheck(&mut self) {
        if self.rechecking || self.settings.poll_ms.is_some() || !self.fleet.all_up() {
            return;
        }
        self.rechecking = true;
        let (mut remotes, flags) = (self.fleet.remotes(), self.flags);
        let route = self.route.clone();
        self.tasks.spawn(async move {
            let (mut mended, mut told) = (false, true);
            for remote in &mut remotes {
                match ensure_events(remote, flags).await {
                    Events::On => {}
                    Events::Mended => mended = true,
                    Events::Unknown => told &= still_told(&route, remote, flags).await,
                }
            }
            Report::Rechecked { mended, told }
        });
    }

    pub(super) fn unsubscribe(&mut self, glob: &str) {
        self.patterns.remove(glob);
        let channel = format!("{}{glob}", self.route.channel_prefix());
        let remotes = self.fleet.remotes();
        self.tasks.spawn(async move {
            for remote in remotes {
                let _ = remote.punsubscribe(&channel).await;
            }
            Report::Nothing
        });
    }

    /// Subscribes to the answers of all services: other backends answer too.
    pub(super) fn watch_answers(&mut self) {
        let globs = self.services.values().map(|served| served.answer_glob());
        let globs = globs.collect();
        self.subscribe(globs, After::Nothing);
    }

    /// Patterns as channels of keyspace events.
    fn channels(&self) -> Vec<String> {
        let prefix = self.route.channel_prefix();
        self.patterns
            .iter()
            .map(|glob| format!("{prefix}{glob}"))
            .collect()
    }

    /// Reads the cluster's map of slots: at once when something is wrong, else now and then.
    pub(super) fn refresh_topology(&mut self, wrong: bool) {
        let due = wrong || !self.fleet.all_up() || self.rng.u8(..) < 26;
        if !self.fleet.is_cluster() || self.refreshing || !due {
            return;
        }
        self.refreshing = true;
        let (route, known) = (self.route.clone(), self.fleet.remotes());
        let addresses: Vec<Address> = self.fleet.nodes.keys().cloned().collect();
        self.tasks.spawn(async move {
            if wrong {
                sleep(Duration::from_millis(50)).await;
            }
            let asking = async {
                if let Some(mut remote) = known.into_iter().next()
                    && let Ok(Some(topology)) = Topology::ask(&mut remote, &route.host()).await
                {
                    return Some(topology);
                }
                for address in addresses.iter().map(Some).chain([None]) {
                    let Ok(mut line) = route.open(address.and_then(name)).await else {
                        continue;
                    };
                    if let Ok(Some(topology)) = Topology::ask(&mut line, &route.host()).await {
                        return Some(topology);
                    }
                }
                None
            };
            let topology = asking
                .await
                .filter(|topology| !topology.primaries.is_empty());
            Report::Topology(topology)
        });
    }
}

/// Whether a connected node sends events, where its flags cannot be read. A node that does not reply is about to be
/// connected anew, and proved then.
async fn still_told(route: &Route, remote: &mut Remote, flags: &str) -> bool {
    let address = remote.address.clone();
    route
        .probe(name(&address), remote, flags)
        .await
        .unwrap_or(true)
}

/// The single server of the URL has no name.
fn name(address: &Address) -> Option<&str> {
    Some(&**address).filter(|address| !address.is_empty())
}

/// Pings both connections of a node until one does not answer.
async fn watch_over(mut remote: Remote) -> Report {
    loop {
        sleep(PING_EVERY).await;
        if !matches!(timeout(PING_PATIENCE, remote.ping()).await, Ok(Ok(()))) {
            return Report::Silent {
                address: remote.address,
                generation: remote.generation,
            };
        }
    }
}
