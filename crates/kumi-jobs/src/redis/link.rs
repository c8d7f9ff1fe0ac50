//! A connection to the server that owns one key: a standalone server, or the primary of the key's slot in a cluster.
//!
//! A queue is one slot, so it needs one server at a time. The link follows MOVED and ASK, finds the new primary after a
//! failover by asking the nodes it knows, and opens a broken connection again.

use crate::error::QueueError;
use ::redis::aio::MultiplexedConnection;
use ::redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionAddr, ConnectionInfo, ErrorKind, Pipeline,
    RedisError, Value, cmd,
};
use kumi_redis::core::{Address, SlotMap, Trouble, address_at, shown_address};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, sleep, timeout};

/// How long to connect may take.
const CONNECT: Duration = Duration::from_secs(3);

/// How long a connection may take before a server that should speak TLS is asked whether it answers without.
const HANDSHAKE: Duration = Duration::from_millis(300);

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

/// See the module. Clones are links of their own to the same server.
pub(super) struct Link {
    info: ConnectionInfo,
    key: Arc<[u8]>,
    is_blocking: bool,
    state: Mutex<State>,
}

#[derive(Clone, Default)]
struct State {
    connection: Option<MultiplexedConnection>,
    /// Where the key was found last.
    primary: Option<Address>,
    /// Other nodes of the cluster; empty for a standalone server.
    nodes: Vec<Address>,
}

impl Link {
    pub(super) fn new(info: ConnectionInfo, key: &[u8]) -> Self {
        Self {
            info,
            key: key.into(),
            is_blocking: false,
            state: Mutex::default(),
        }
    }

    /// A link of its own for commands that block, which start from what this one knows.
    pub(super) fn for_blocking(&self) -> Self {
        Self {
            is_blocking: true,
            ..self.another()
        }
    }

    /// A link of its own, which starts from what this one knows.
    pub(super) fn another(&self) -> Self {
        let state = self.lock();
        Self {
            info: self.info.clone(),
            key: self.key.clone(),
            is_blocking: self.is_blocking,
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
        let is_plain = || answers_in_plain(self.info.addr());
        let no_tls = || {
            let address = self.address();
            QueueError::Config(format!(
                "the server at {address} answers without TLS: its URL begins with redis://, not rediss://"
            ))
        };
        let is_silent_and_plain = async {
            // More than once: a server that is busy replies to a PING late.
            loop {
                sleep(HANDSHAKE).await;
                if is_plain().await {
                    break;
                }
            }
        };
        let connected = tokio::select! {
            biased;
            connected = self.connection() => connected,
            () = is_silent_and_plain => return Err(no_tls()),
        };
        if let Err(error) = &connected
            && (is_definite(error) || error.is_timeout())
            && is_plain().await
        {
            return Err(no_tls());
        }
        match connected {
            Err(error) if self.lacks_database(&error) => {
                let (address, database) = (self.address(), self.info.redis_settings().db());
                Err(QueueError::Config(format!(
                    "the server at {address} has no database {database}: {}",
                    error.detail().unwrap_or_default()
                )))
            }
            Err(error) if error.kind() == ErrorKind::InvalidClientConfig => Err(
                QueueError::Config(format!("the certificates cannot be used: {error}")),
            ),
            Err(error) if is_definite(&error) && self.lock().nodes.is_empty() => {
                Err(self.unreachable(error))
            }
            // Calls repeat what passes, and report what does not.
            _ => Ok(()),
        }
    }

    /// Whether the server does not have the database that the URL names. A cluster has database 0 only.
    fn lacks_database(&self, error: &RedisError) -> bool {
        let texts = ["DB index is out of range", "not allowed in cluster mode"];
        let says = |detail: &str| texts.iter().any(|text| detail.contains(text));
        self.info.redis_settings().db() != 0 && error.detail().is_some_and(says)
    }

    pub(super) fn unreachable(&self, source: RedisError) -> QueueError {
        QueueError::Io {
            address: self.address(),
            source,
        }
    }

    /// Where the server was last found, or looked for.
    fn address(&self) -> String {
        match &self.lock().primary {
            Some(node) => node.to_string(),
            None => shown_address(self.info.addr()),
        }
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
            let error = match self.attempt(commands).await {
                Ok(values) => return Ok(values),
                Err(error) => error,
            };
            let verdict = Verdict::of(&error);
            tracing::debug!(%error, ?verdict, "a call to Redis failed");
            match &verdict {
                Verdict::Moved(node) => self.moved(node),
                Verdict::Later | Verdict::Broken => self.disconnect(),
                Verdict::Answer => return Err(QueueError::Server(error)),
            }
            let may_repeat = match verdict {
                Verdict::Moved(_) | Verdict::Later => true,
                _ => repeat == Repeat::Yes,
            };
            if !may_repeat || Instant::now() >= deadline {
                return Err(self.unreachable(error));
            }
            if !matches!(verdict, Verdict::Moved(_)) {
                sleep(PAUSE).await;
            }
        }
    }

    async fn attempt(&self, commands: &Pipeline) -> Result<Vec<Value>, RedisError> {
        let mut connection = self.connection().await?;
        let done: Result<Vec<Value>, RedisError> = commands.query_async(&mut connection).await;
        let error = match done.map_err(first_error) {
            Err(error) => error,
            done => return done,
        };
        let Some(Trouble::Ask(node)) = trouble(&error) else {
            return Err(error);
        };
        let mut asking = Pipeline::new();
        asking.cmd("ASKING").ignore();
        for command in commands.cmd_iter() {
            asking.add_command(command.clone());
        }
        let mut other = self.open(Some(&node)).await?;
        asking.query_async(&mut other).await.map_err(first_error)
    }

    async fn connection(&self) -> Result<MultiplexedConnection, RedisError> {
        if let Some(connection) = &self.lock().connection {
            return Ok(connection.clone());
        }
        let connection = self.connect().await?;
        self.lock().connection = Some(connection.clone());
        Ok(connection)
    }

    /// Connects to the key's server: the one last known, or whatever a reachable node names.
    async fn connect(&self) -> Result<MultiplexedConnection, RedisError> {
        let State { primary, nodes, .. } = self.lock().clone();
        let mut failed = None;
        let known = primary.into_iter().chain(nodes);
        let candidates = known.map(Some).chain(std::iter::once(None));
        for node in candidates {
            let connection = match self.open(node.as_deref()).await {
                Ok(connection) => connection,
                Err(error) => {
                    failed = Some(error);
                    continue;
                }
            };
            match self.locate(connection, node).await {
                Ok(connection) => return Ok(connection),
                Err(error) => failed = Some(error),
            }
        }
        Err(failed.unwrap_or_else(|| (ErrorKind::Io, "no node to connect to").into()))
    }

    /// Asks a node who owns the key, and connects there.
    async fn locate(
        &self,
        mut connection: MultiplexedConnection,
        node: Option<Address>,
    ) -> Result<MultiplexedConnection, RedisError> {
        let slots: Result<Value, RedisError> = cmd("CLUSTER")
            .arg("SLOTS")
            .query_async(&mut connection)
            .await;
        let slots = match slots {
            Ok(slots) => slots,
            // Not a cluster, or a server that hides the command.
            Err(error) if !error.is_io_error() => return Ok(connection),
            Err(error) => return Err(error),
        };
        let asked = node.unwrap_or_else(|| match self.info.addr() {
            ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
                format!("{host}:{port}").into()
            }
            _ => Address::from(":0"),
        });
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
            None => Err((
                ErrorKind::ClusterConnectionNotFound,
                "no node owns the queue's slot",
            )
                .into()),
            Some(owner) if owner == asked => Ok(connection),
            Some(owner) => self.open(Some(&owner)).await,
        }
    }

    /// Connects to a node; `None` is that of the URL.
    async fn open(&self, node: Option<&str>) -> Result<MultiplexedConnection, RedisError> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT))
            .set_response_timeout((!self.is_blocking).then_some(RESPONSE));
        let address = address_at(self.info.addr(), node);
        let client = Client::open(self.info.clone().set_addr(address))?;
        client
            .get_multiplexed_async_connection_with_config(&config)
            .await
    }

    fn moved(&self, node: &Address) {
        let mut state = self.lock();
        state.connection = None;
        state.primary = Some(node.clone());
    }

    pub(super) fn disconnect(&self) {
        self.lock().connection = None;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a server that should speak TLS replies to a PING without it.
///
/// A server without TLS takes the first message of a handshake for the beginning of a command. It replies with an error
/// or, mostly, is silent until the handshake's time is over. A server with TLS replies to the PING with an alert, or not
/// at all.
async fn answers_in_plain(address: &ConnectionAddr) -> bool {
    /// How long a reply to the PING may take.
    const REPLY: Duration = Duration::from_secs(1);

    let ConnectionAddr::TcpTls { host, port, .. } = address else {
        return false;
    };
    let first_byte = async {
        let mut stream = tokio::net::TcpStream::connect((host.as_str(), *port)).await?;
        stream.write_all(b"PING\r\n").await?;
        stream.read_u8().await
    };
    // PONG, or an error such as NOAUTH.
    let reply = timeout(REPLY, first_byte).await;
    matches!(reply, Ok(Ok(b'+' | b'-')))
}

/// Whether a first connection failed for a reason that time does not cure. A timeout may be a server that is busy; what
/// a server replies is judged by the calls.
fn is_definite(error: &RedisError) -> bool {
    match error.kind() {
        ErrorKind::Io => !error.is_timeout(),
        ErrorKind::Parse | ErrorKind::Client => true,
        _ => false,
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
mod tests {
    use super::*;

    fn verdict(reply: &[u8]) -> Verdict {
        let value = ::redis::parse_redis_value(reply).expect("a reply");
        let error = value.extract_error().expect_err("an error");
        Verdict::of(&error)
    }

    /// Redis 6.2 wraps what a command in a script answers; 7.0 passes it on.
    #[test]
    fn errors_inside_a_script_are_told_apart() {
        let wrapped = |text: &str| {
            let place =
                "ERR Error running script (call to f_0a1b): @user_script:9: @user_script: 9:";
            verdict(format!("-{place} {text}\r\n").as_bytes())
        };
        let read_only = "-READONLY You can't write against a read only replica.";
        assert!(matches!(wrapped(read_only), Verdict::Later));
        let read_only = verdict(b"-READONLY You can't write against a read only replica. script: 0a1b, on @user_script:9.\r\n");
        assert!(matches!(read_only, Verdict::Later));
        let elsewhere = "Script attempted to access a non local key in a cluster node";
        assert!(matches!(wrapped(elsewhere), Verdict::Broken));
        let plain = format!("-ERR {elsewhere} script: 0a1b, on @user_script:9.\r\n");
        assert!(matches!(verdict(plain.as_bytes()), Verdict::Broken));
        let other = "-WRONGTYPE Operation against a key holding the wrong kind of value";
        assert!(matches!(wrapped(other), Verdict::Answer));
        let full = "-OOM command not allowed when used memory > 'maxmemory'.";
        assert!(matches!(wrapped(full), Verdict::Answer));
    }
}
