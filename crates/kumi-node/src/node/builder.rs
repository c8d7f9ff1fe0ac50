//! What a node is started with.

use crate::config::{NodeConfig, StoreSection};
use crate::driver::programs::{Launcher, Output};
use crate::driver::serve::{self, Handler};
use crate::driver::work::{self, AddHandler};
use kumi_cluster::Authority;
use kumi_common::{Name, Shown};
use kumi_jobs::{Context, Task, TaskError};
use kumi_muf::{IntoAnswer, Request};
use kumi_server::{PROGRAM_OUTPUT, ServerConfig};
use kumi_unison::ClusterKey;
use std::future::Future;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

/// Characters of a program's line that are logged.
const MAX_LINE_CHARS: usize = 8_192;

/// Collects what a node is started with. What is not said has the defaults of `kumi up`.
#[must_use = "a builder does nothing until `start`"]
pub struct Builder {
    pub(super) config: NodeConfig,
    pub(super) key: Option<ClusterKey>,
    pub(super) server: Option<ServerConfig>,
    pub(super) launcher: Launcher,
    pub(super) output: Arc<dyn Output>,
    pub(super) handlers: Vec<AddHandler>,
    pub(super) serves: Vec<(String, Handler)>,
    pub(super) reloads_on_hangup: bool,
    /// The first thing that cannot be used; `start` reports it.
    pub(super) problem: Option<String>,
}

impl Builder {
    pub(super) fn new() -> Self {
        Self {
            config: NodeConfig::default(),
            key: None,
            server: None,
            launcher: Launcher::plain(),
            output: Arc::new(Logged),
            handlers: Vec::new(),
            serves: Vec::new(),
            reloads_on_hangup: false,
            problem: None,
        }
    }

    /// Lays a configuration over what was said so far, as flags are laid over a file.
    pub fn config(mut self, config: NodeConfig) -> Self {
        match NodeConfig::merge(self.config.clone(), config) {
            Ok(merged) => self.config = merged,
            Err(error) => self.refuse(error.to_string()),
        }
        self
    }

    /// The node's name among the members. Default: the machine's.
    pub fn name(mut self, name: &str) -> Self {
        match Name::new(name) {
            Ok(name) => self.config.node.name = Some(name),
            Err(_) => self.refuse(format!(
                "{name:?} is not the name of a node: 1 to 63 lower-case letters, digits, dots and hyphens"
            )),
        }
        self
    }

    /// An address that the node listens on, besides those that were said. Default: loopback, or the address that routes to
    /// the first node to join.
    pub fn bind(mut self, address: IpAddr) -> Self {
        self.config.node.bind.push(address);
        self
    }

    /// The ports of membership and HTTP; 0 takes a free one. Ports that are named are not replaced when they are taken.
    pub fn ports(mut self, membership: u16, http: u16) -> Self {
        self.config.node.port = Some(membership);
        self.config.http.port = Some(http);
        self
    }

    /// Its store: one that it runs, the cluster's, or one outside of the cluster. Default: a node that joins no other runs
    /// one.
    pub fn store(mut self, store: StoreSection) -> Self {
        self.config.store = store;
        self
    }

    /// A node to join, as `host:port`, besides those that were said.
    pub fn join(mut self, seed: &str) -> Self {
        match Authority::new(seed) {
            Ok(seed) => self.config.node.join.push(seed),
            Err(error) => self.refuse(format!("{seed:?} cannot be joined: {error}")),
        }
        self
    }

    /// The cluster's key, instead of a key file.
    pub fn key(mut self, key: ClusterKey) -> Self {
        self.key = Some(key);
        self
    }

    /// What the store is started with, if the node runs one: for a program whose configuration has more than directives, such
    /// as a file that CONFIG REWRITE writes. The directives of [`config`](Self::config) are not applied to it
    /// ([`apply_directives`](crate::driver::apply_directives) does that); users, certificate and, unless they are given,
    /// addresses, directory and persistence are the node's.
    pub fn server(mut self, server: ServerConfig) -> Self {
        self.server = Some(server);
        self
    }

    /// Where data, key and recorded ports are kept. Default: `$XDG_STATE_HOME/kumi/<instance>`.
    pub fn state_dir(mut self, path: impl AsRef<Path>) -> Self {
        self.config.node.state_dir = Some(path.as_ref().to_owned());
        self
    }

    /// Whether the program around the node calls [`reload`](crate::Node::reload) on SIGHUP, which `kumi reload` then sends, and
    /// writes what came of it with [`StateDir::write_reload`](crate::driver::state_dir::StateDir::write_reload). Default: not.
    pub fn reloads_on_hangup(mut self, reloads: bool) -> Self {
        self.reloads_on_hangup = reloads;
        self
    }

    /// Serves requests under the node's name: `service.method`, `service.*`, or `*`.
    pub fn serve<F, Work>(mut self, pattern: &str, handler: F) -> Self
    where
        F: Fn(Request) -> Work + Send + Sync + 'static,
        Work: Future<Output: IntoAnswer> + Send + 'static,
    {
        let handler = serve::handler(handler);
        self.serves.push((pattern.to_owned(), handler));
        self
    }

    /// Runs tasks of the default queue.
    pub fn handle<T, F, Fut>(mut self, run: F) -> Self
    where
        T: Task,
        F: Fn(T, Context<()>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T::Output, TaskError>> + Send + 'static,
    {
        self.handlers.push(work::handler(run));
        self
    }

    /// Starts programs of the configuration. Default: [`Launcher::plain`].
    pub fn launcher(mut self, launcher: Launcher) -> Self {
        self.launcher = launcher;
        self
    }

    /// Where the text of programs goes. Default: the log.
    pub fn output(mut self, output: Arc<dyn Output>) -> Self {
        self.output = output;
        self
    }

    fn refuse(&mut self, problem: String) {
        self.problem.get_or_insert(problem);
    }
}

/// What programs write goes to the log, line by line.
struct Logged;

impl Output for Logged {
    fn text(&self, program: &str, text: &[u8]) {
        let text = text.strip_suffix(b"\n").unwrap_or(text);
        for line in text.split(|byte| *byte == b'\n') {
            tracing::info!(target: PROGRAM_OUTPUT, "{program}: {}", shown(line));
        }
    }

    fn note(&self, program: &str, line: &str) {
        tracing::info!(target: PROGRAM_OUTPUT, "{program}: {}", shown(line.as_bytes()));
    }
}

fn shown(bytes: &[u8]) -> Shown<'_> {
    Shown {
        bytes,
        limit_chars: MAX_LINE_CHARS,
    }
}
