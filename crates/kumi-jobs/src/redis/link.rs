//! A connection to the server that owns one key: a standalone server, or the primary of the key's slot in a cluster.
//!
//! A queue is one slot, so it needs one server at a time. The link follows MOVED and ASK, finds the new primary after a
//! failover by asking the nodes it knows, and opens a broken connection again.

use crate::error::QueueError;
use ::redis::aio::MultiplexedConnection;
use ::redis::{
    AsyncConnectionConfig, Cmd, ErrorKind, Pipeline, RedisConnectionInfo, RedisError, Value, cmd,
};
use kumi_redis::core::{Address, SlotMap, Trouble};
use kumi_redis::{Error, Route};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep};

/// How long a reply may take on a connection that does not block.
const RESPONSE: Duration = Duration::from_secs(10);

/// How long a call is repeated while the cluster sorts itself out, or the server is away.
const REPEAT_TIMEOUT: Duration = Duration::from_secs(15);

/// The pause between such repetitions.
const PAUSE: Duration = Duration::from_millis(100);

/// Nodes of a cluster that are remembered.
const NODES_LIMIT: usize = 1_000;

/// Whether a call whose reply was lost is sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repeat {
    Yes,
    No,
}

/// See the module.
pub(super) struct Link {
    route: Arc<Route>,
    key: Arc<[u8]>,
    /// How long a reply may take; none if commands block.
    response: Option<Duration>,
    state: Mutex<State>,
}

#[derive(Clone, Default)]
struct State {
    connection: Option<Connection>,
    /// Where the key was found last.
    primary: Option<Address>,
    /// Other nodes of the cluster; empty for a standalone server.
    nodes: Vec<Address>,
}

/// A connection; its socket closes with the last clone, whatever it waits for. Each call holds a clone until it is over.
#[derive(Clone)]
struct Connection {
    multiplexed: MultiplexedConnection,
    task: Arc<Task>,
}

impl Connection {
    fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.task, &other.task)
    }
}

/// The task that moves the bytes of a connection.
struct Task(AbortHandle);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Why an attempt failed.
#[derive(Debug)]
enum Failed {
    /// There is no connection. Nothing was sent.
    Connect(Error),
    /// A reply, or that there is none.
    Call(RedisError),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::Connect(error)
    }
}

impl Link {
    pub(super) fn new(route: Arc<Route>, key: &[u8]) -> Self {
        Self {
            route,
            key: key.into(),
            response: Some(RESPONSE),
            state: Mutex::default(),
        }
    }

    /// A link of its own for commands that block, which start from what this one knows.
    pub(super) fn for_blocking(&self) -> Self {
        Self {
            response: None,
            ..self.another()
        }
    }

    /// A link of its own, which starts from what this one knows.
    pub(super) fn another(&self) -> Self {
        let state = self.lock();
        Self {
            route: self.route.clone(),
            key: self.key.clone(),
            response: self.response,
            state: Mutex::new(State {
                connection: None,
                primary: state.primary.clone(),
                nodes: state.nodes.clone(),
            }),
        }
    }

    /// Connects for the first time. A name that is not found, an address where nothing listens, a certificate that is not
    /// trusted, a server without TLS where the URL says TLS, a database that the server does not have and a connection that
    /// the server closes are errors at once, because the URL is more likely wrong than the server about to start. Once a
    /// node of a cluster has replied the URL is right, and another node may be failing over.
    pub(super) async fn reach(&self) -> Result<(), QueueError> {
        match self.route.unless_plain(self.connection()).await {
            Err(error) if error.is_definite() && self.lock().nodes.is_empty() => Err(error.into()),
            // Calls repeat what passes, and report what does not.
            _ => Ok(()),
        }
    }

    /// The error of a call whose connection broke, or that got no reply in time.
    pub(super) fn broken(&self, source: RedisError) -> QueueError {
        let (address, source) = (self.address(), source.into());
        Error::Broken { address, source }.into()
    }

    /// Where the server was last found, or looked for.
    fn address(&self) -> String {
        let primary = self.lock().primary.clone();
        self.route.shown_address(primary.as_deref())
    }

    /// Sends a command and follows redirections.
    pub(super) async fn call(&self, command: &Cmd, repeat: Repeat) -> Result<Value, QueueError> {
        let mut pipeline = Pipeline::new();
        pipeline.add_command(command.clone());
        let mut values = self.pipeline(&pipeline, repeat).await?;
        Ok(values.pop().unwrap_or(Value::Nil))
    }

    /// Sends commands on one connection and follows redirections. The first error is the answer.
    pub(super) async fn pipeline(
        &self,
        commands: &Pipeline,
        repeat: Repeat,
    ) -> Result<Vec<Value>, QueueError> {
        let deadline = Instant::now() + REPEAT_TIMEOUT;
        loop {
            let (used, failed) = match self.connection().await {
                Err(error) => (None, Failed::Connect(error)),
                Ok(connection) => match self.attempt(&connection, commands).await {
                    Ok(values) => return Ok(values),
                    Err(failed) => (Some(connection), failed),
                },
            };
            let verdict = Verdict::of_attempt(&failed);
            tracing::debug!(error = ?failed, ?verdict, "a call to Redis failed");
            match &verdict {
                Verdict::Moved(node) => self.leave(used, Some(node)),
                Verdict::Later | Verdict::Broken => self.leave(used, None),
                Verdict::Answer => return Err(self.error(failed, &verdict)),
            }
            let may_repeat = match verdict {
                Verdict::Moved(_) | Verdict::Later => true,
                _ => repeat == Repeat::Yes,
            };
            if !may_repeat || Instant::now() >= deadline {
                return Err(self.error(failed, &verdict));
            }
            if !matches!(verdict, Verdict::Moved(_)) {
                sleep(PAUSE).await;
            }
        }
    }

    /// The error of an attempt after which the call is given up.
    fn error(&self, failed: Failed, verdict: &Verdict) -> QueueError {
        let address = self.address();
        match (failed, verdict) {
            (Failed::Connect(error), _) => error.into(),
            (Failed::Call(error), Verdict::Answer) => QueueError::Server(error),
            (Failed::Call(error), Verdict::Broken) => self.broken(error),
            (Failed::Call(error), Verdict::Later | Verdict::Moved(_)) => {
                let source = error.into();
                Error::Unavailable { address, source }.into()
            }
        }
    }

    async fn attempt(
        &self,
        connection: &Connection,
        commands: &Pipeline,
    ) -> Result<Vec<Value>, Failed> {
        let mut multiplexed = connection.multiplexed.clone();
        let done: Result<Vec<Value>, RedisError> = commands.query_async(&mut multiplexed).await;
        let error = match done.map_err(first_error) {
            Err(error) => error,
            Ok(values) => return Ok(values),
        };
        let Some(Trouble::Ask(node)) = trouble(&error) else {
            return Err(Failed::Call(error));
        };
        let mut asking = Pipeline::new();
        asking.cmd("ASKING").ignore();
        for command in commands.cmd_iter() {
            asking.add_command(command.clone());
        }
        let other = self.open(Some(&node)).await?;
        let done = asking.query_async(&mut other.multiplexed.clone()).await;
        done.map_err(|error| Failed::Call(first_error(error)))
    }

    /// The connection that calls share. Of calls that connect at the same time, the first to succeed provides it.
    async fn connection(&self) -> Result<Connection, Error> {
        if let Some(connection) = &self.lock().connection {
            return Ok(connection.clone());
        }
        let connection = self.connect().await?;
        let mut state = self.lock();
        Ok(state.connection.get_or_insert(connection).clone())
    }

    /// Connects to the key's server: the one last known, or whatever a reachable node names.
    async fn connect(&self) -> Result<Connection, Error> {
        let State { primary, nodes, .. } = self.lock().clone();
        let known = primary.into_iter().chain(nodes);
        for node in known {
            let found = match self.open(Some(&node)).await {
                Ok(connection) => self.locate(connection, Some(node)).await,
                Err(error) => Err(error),
            };
            if found.is_ok() {
                return found;
            }
        }
        let connection = self.open(None).await?;
        self.locate(connection, None).await
    }

    /// Asks a node who owns the key, and connects there.
    async fn locate(
        &self,
        connection: Connection,
        node: Option<Address>,
    ) -> Result<Connection, Error> {
        let slots: Result<Value, RedisError> = cmd("CLUSTER")
            .arg("SLOTS")
            .query_async(&mut connection.multiplexed.clone())
            .await;
        let slots = match slots {
            Ok(slots) => slots,
            // Not a cluster, or a server that hides the command.
            Err(error) if !error.is_io_error() => return Ok(connection),
            Err(error) => return Err(self.cannot_connect(node.as_deref(), error)),
        };
        let url = self.route.url();
        let asked = node.or_else(|| url.address());
        let asked = asked.unwrap_or_else(|| Address::from(":0"));
        let host = asked.rsplit_once(':').map_or("", |(host, _)| host);
        let map = SlotMap::read(&slots, host);
        let owner = map.owner(&self.key).cloned();
        let mut nodes = [map.primaries, map.replicas].concat();
        nodes.sort_unstable();
        nodes.dedup();
        nodes.truncate(NODES_LIMIT);
        {
            let mut state = self.lock();
            state.nodes = nodes;
            state.primary.clone_from(&owner);
        }
        match owner {
            None => {
                let kind = ErrorKind::ClusterConnectionNotFound;
                let error = RedisError::from((kind, "no node owns the queue's slot"));
                Err(self.cannot_connect(Some(&asked), error))
            }
            Some(owner) if owner == asked => Ok(connection),
            Some(owner) => self.open(Some(&owner)).await,
        }
    }

    fn cannot_connect(&self, node: Option<&str>, source: RedisError) -> Error {
        Error::Connect {
            address: self.route.shown_address(node),
            source: source.into(),
        }
    }

    /// Connects to a node; `None` is that of the URL.
    async fn open(&self, node: Option<&str>) -> Result<Connection, Error> {
        let socket = self.route.connect_socket(node).await?;
        // The socket is authenticated, and on its database.
        let settings = RedisConnectionInfo::default()
            .set_protocol(self.route.url().protocol())
            .set_skip_set_lib_name();
        let config = AsyncConnectionConfig::new().set_response_timeout(self.response);
        let opened = MultiplexedConnection::new_with_config(&settings, socket, config).await;
        let (multiplexed, task) = opened.map_err(|error| self.cannot_connect(node, error))?;
        let task = Arc::new(Task(tokio::spawn(task).abort_handle()));
        Ok(Connection { multiplexed, task })
    }

    /// Later calls do not use the connection of a call that failed; those in flight on it go on. Nothing changes if another
    /// call has replaced that connection.
    fn leave(&self, used: Option<Connection>, moved_to: Option<&Address>) {
        let mut state = self.lock();
        if let Some(stored) = &state.connection
            && !used.is_some_and(|used| used.is(stored))
        {
            return;
        }
        state.connection = None;
        if let Some(node) = moved_to {
            state.primary = Some(node.clone());
        }
    }

    /// The next call opens another connection.
    pub(super) fn disconnect(&self) {
        self.lock().connection = None;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The error of the first command that failed. A pipeline's own error hides codes and redirections.
fn first_error(error: RedisError) -> RedisError {
    let errors = error.clone().into_server_errors();
    match errors.as_deref().and_then(|errors| errors.first()) {
        Some((_, first)) => first.clone().into(),
        None => error,
    }
}

/// What to do about an error.
#[derive(Debug)]
enum Verdict {
    /// Another node owns the key. Nothing was done.
    Moved(Address),
    /// The server cannot serve now. Nothing was done.
    Later,
    /// The connection broke. The call may have been carried out.
    Broken,
    /// The server's answer to the call.
    Answer,
}

impl Verdict {
    fn of_attempt(failed: &Failed) -> Self {
        match failed {
            Failed::Call(error) => Self::of(error),
            Failed::Connect(Error::Connect { source, .. }) => Self::of(source),
            Failed::Connect(_) => Self::Broken,
        }
    }

    fn of(error: &RedisError) -> Self {
        match (trouble(error), error.kind()) {
            (Some(Trouble::Moved(node)), _) if node.contains(':') => Self::Moved(node),
            (Some(Trouble::Moved(_) | Trouble::Later), _) => Self::Later,
            _ if error.detail().is_some_and(is_read_only_in_script) => Self::Later,
            _ if error.detail().is_some_and(is_elsewhere_in_script) => Self::Broken,
            _ if error.is_connection_refusal() => Self::Later,
            (_, ErrorKind::Server(_) | ErrorKind::Extension) => Self::Answer,
            (_, ErrorKind::AuthenticationFailed | ErrorKind::InvalidClientConfig) => Self::Answer,
            _ => Self::Broken,
        }
    }
}

/// What an error says of the key's place, or of the server's state, if it does.
fn trouble(error: &RedisError) -> Option<Trouble> {
    Trouble::of(error.code()?, error.detail().unwrap_or_default())
}

/// Whether this is the text of a script's write on a replica. Before Redis 7.0 the code of such an error is ERR, and the
/// text begins with the place in the script. It is the script's first write that fails.
fn is_read_only_in_script(text: &str) -> bool {
    text.starts_with("Error running script") && text.contains("-READONLY ")
}

/// Whether this is the text of a script whose keys move to another node. What it did before stays done.
fn is_elsewhere_in_script(text: &str) -> bool {
    text.contains("attempted to access a non local key")
}

#[cfg(test)]
mod tests;
