//! A connection to the server that owns one key: a standalone server, or the primary of the key's slot in a cluster.
//!
//! A queue is one slot, so it needs one server at a time. The link follows MOVED and ASK, finds the new primary after a
//! failover by asking the nodes it knows, and opens a broken connection again.

use crate::error::QueueError;
use ::redis::aio::MultiplexedConnection;
use ::redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionAddr, ConnectionInfo, ErrorKind,
    IntoConnectionInfo, Pipeline, RedisError, ServerErrorKind, Value, cmd,
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long to connect may take.
const CONNECT: Duration = Duration::from_secs(3);

/// How long a connection may take before a server that should speak TLS is asked whether it answers without.
const HANDSHAKE: Duration = Duration::from_millis(300);

/// How long a reply may take on a connection that does not block.
const RESPONSE: Duration = Duration::from_secs(10);

/// How long a call is repeated while the cluster sorts itself out, or the server is away.
const PATIENCE: Duration = Duration::from_secs(15);

/// The pause between such repetitions.
const PAUSE: Duration = Duration::from_millis(100);

/// Nodes of a cluster that are remembered.
const NODES_LIMIT: usize = 1_000;

/// A host and a port.
type Node = (String, u16);

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
    primary: Option<Node>,
    /// Other nodes of the cluster; empty for a standalone server.
    nodes: Vec<Node>,
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
        let is_plain = || super::tls::answers_in_plain(self.info.addr());
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
            Some((host, port)) => format!("{host}:{port}"),
            None => self.info.addr().to_string(),
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
        let deadline = Instant::now() + PATIENCE;
        loop {
            let error = match self.attempt(commands).await {
                Ok(values) => return Ok(values),
                Err(error) => error,
            };
            let verdict = Verdict::of(&error);
            tracing::debug!(%error, ?verdict, "a call to Redis failed");
            match &verdict {
                Verdict::Moved(host, port) => self.moved(host, *port),
                Verdict::Later | Verdict::Broken => self.disconnect(),
                Verdict::Answer => return Err(QueueError::Server(error)),
            }
            let may_repeat = match verdict {
                Verdict::Moved(..) | Verdict::Later => true,
                _ => repeat == Repeat::Yes,
            };
            if !may_repeat || Instant::now() >= deadline {
                return Err(self.unreachable(error));
            }
            if !matches!(verdict, Verdict::Moved(..)) {
                sleep(PAUSE).await;
            }
        }
    }

    async fn attempt(&self, commands: &Pipeline) -> Result<Vec<Value>, RedisError> {
        let mut connection = self.connection().await?;
        let done: Result<Vec<Value>, RedisError> = commands.query_async(&mut connection).await;
        match done.map_err(first_error) {
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::Ask) => {
                let Some((host, port)) = error.redirect_node().and_then(split_address) else {
                    return Err(error);
                };
                let mut asking = Pipeline::new();
                asking.cmd("ASKING").ignore();
                for command in commands.cmd_iter() {
                    asking.add_command(command.clone());
                }
                let mut other = self.open(&host, port).await?;
                asking.query_async(&mut other).await.map_err(first_error)
            }
            done => done,
        }
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
            let opened = match &node {
                Some((host, port)) => self.open(host, *port).await,
                None => self.open_at(self.info.clone()).await,
            };
            let connection = match opened {
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
        node: Option<Node>,
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
        let slot: u16 = cmd("CLUSTER")
            .arg("KEYSLOT")
            .arg(&*self.key)
            .query_async(&mut connection)
            .await?;
        let asked = node.unwrap_or_else(|| match self.info.addr() {
            ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
                (host.clone(), *port)
            }
            _ => (String::new(), 0),
        });
        let (owner, nodes) = read_slots(&slots, slot, &asked.0);
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
            Some((host, port)) => self.open(&host, port).await,
        }
    }

    async fn open(&self, host: &str, port: u16) -> Result<MultiplexedConnection, RedisError> {
        let addr = match self.info.addr() {
            ConnectionAddr::TcpTls {
                insecure,
                tls_params,
                ..
            } => ConnectionAddr::TcpTls {
                host: host.to_owned(),
                port,
                insecure: *insecure,
                tls_params: tls_params.clone(),
            },
            _ => ConnectionAddr::Tcp(host.to_owned(), port),
        };
        self.open_at(self.info.clone().set_addr(addr)).await
    }

    async fn open_at(&self, info: ConnectionInfo) -> Result<MultiplexedConnection, RedisError> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT))
            .set_response_timeout((!self.is_blocking).then_some(RESPONSE));
        let client = Client::open(info)?;
        client
            .get_multiplexed_async_connection_with_config(&config)
            .await
    }

    fn moved(&self, host: &str, port: u16) {
        let mut state = self.lock();
        state.connection = None;
        state.primary = Some((host.to_owned(), port));
    }

    pub(super) fn disconnect(&self) {
        self.lock().connection = None;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
    Moved(String, u16),
    /// The server cannot serve now. Nothing was done.
    Later,
    /// The connection broke. The call may have been carried out.
    Broken,
    /// The server's answer to the call.
    Answer,
}

impl Verdict {
    fn of(error: &RedisError) -> Self {
        let later = [
            "TRYAGAIN",
            "CLUSTERDOWN",
            "LOADING",
            "MASTERDOWN",
            "READONLY",
            "BUSY",
        ];
        match error.kind() {
            ErrorKind::Server(ServerErrorKind::Moved) => {
                match error.redirect_node().and_then(split_address) {
                    Some((host, port)) => Self::Moved(host, port),
                    None => Self::Later,
                }
            }
            _ if error.code().is_some_and(|code| later.contains(&code)) => Self::Later,
            _ if error.detail().is_some_and(is_read_only_in_script) => Self::Later,
            _ if error.detail().is_some_and(is_elsewhere_in_script) => Self::Broken,
            _ if error.is_connection_refusal() => Self::Later,
            ErrorKind::Server(_) | ErrorKind::Extension => Self::Answer,
            ErrorKind::AuthenticationFailed | ErrorKind::InvalidClientConfig => Self::Answer,
            _ => Self::Broken,
        }
    }
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

fn split_address((address, _slot): (&str, u16)) -> Option<Node> {
    let (host, port) = address.rsplit_once(':')?;
    Some((host.to_owned(), port.parse().ok()?))
}

/// The owner of a slot and all nodes, from a reply to CLUSTER SLOTS.
fn read_slots(slots: &Value, slot: u16, asked_host: &str) -> (Option<Node>, Vec<Node>) {
    let Value::Array(ranges) = slots else {
        return (None, Vec::new());
    };
    let (mut owner, mut nodes) = (None, Vec::new());
    for range in ranges {
        let found = range_nodes(range, asked_host);
        if let Value::Array(parts) = range
            && let (Some(Value::Int(first)), Some(Value::Int(last))) = (parts.first(), parts.get(1))
            && (*first..=*last).contains(&i64::from(slot))
        {
            owner = found.first().cloned();
        }
        nodes.extend(found);
    }
    nodes.sort();
    nodes.dedup();
    nodes.truncate(NODES_LIMIT);
    (owner, nodes)
}

/// The nodes of one range, the primary first. An empty host means the one that was asked.
fn range_nodes(range: &Value, asked_host: &str) -> Vec<Node> {
    let Value::Array(parts) = range else {
        return Vec::new();
    };
    let node = |part: &Value| {
        let Value::Array(node) = part else {
            return None;
        };
        let host = match node.first()? {
            Value::BulkString(host) if !host.is_empty() => String::from_utf8(host.clone()).ok()?,
            _ => asked_host.to_owned(),
        };
        let Some(Value::Int(port)) = node.get(1) else {
            return None;
        };
        Some((host, u16::try_from(*port).ok()?))
    };
    parts.iter().skip(2).filter_map(node).collect()
}

/// Reads a `redis://`, `rediss://` or `unix://` URL.
pub(super) fn connection_info(url: &str) -> Result<ConnectionInfo, QueueError> {
    super::tls::check_scheme(url, cfg!(feature = "tls"))?;
    url.into_connection_info().map_err(|error| {
        let url = without_password(url);
        QueueError::Config(format!("'{url}' is not a Redis URL: {error}"))
    })
}

/// A URL for messages: without user and password, and without a query, where a Unix socket's password may be.
pub(super) fn without_password(url: &str) -> String {
    // `//` begins the address only after a scheme; in a URL without one it may stand behind the password.
    let is_scheme = |at: &usize| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+';
        url[..*at].bytes().all(plain)
    };
    let start = url.find("://").filter(is_scheme).map_or(0, |at| at + 3);
    let (scheme, rest) = url.split_at(start);
    let rest = match scheme.contains("unix") {
        true => rest,
        false => rest.rsplit_once('@').map_or(rest, |(_, host)| host),
    };
    let rest = rest.split_once('?').map_or(rest, |(path, _)| path);
    format!("{scheme}{rest}")
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
