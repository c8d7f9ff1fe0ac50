//! One server (or one primary of a cluster): a connection for commands and another for pushes.
//!
//! They are separate because a subscribed connection is in the server's pubsub class, whose output buffer limit would
//! kill it for a large reply. A node counts as connected only when it sends events and is subscribed: then no
//! outcome of a command that is sent to it is missed.

use std::time::Duration;

use redis::aio::ConnectionLike;
use redis::{
    ConnectionAddr, ConnectionInfo, RedisConnectionInfo, RedisError, RedisResult, Value, cmd, pipe,
};
use tokio::time::{Instant, timeout};

use super::dial::dial;
use super::events::{Events, ensure_events, set_probe};
use super::pipe::Line;
use super::scan::refusal;
use super::stream::Failed;
use super::tls::Trust;
use crate::error::Error;

/// How long the events of a probe may take, and after how long a silence its key is looked at.
const PROBE_PATIENCE: Duration = Duration::from_secs(1);
const PROBE_NUDGE: Duration = Duration::from_millis(20);

/// How to reach servers. Shared by all nodes.
pub(crate) struct Route {
    /// From the URL: address, credentials, database.
    pub(crate) info: ConnectionInfo,
    pub(crate) trust: Trust,
    /// The key that is set to find out whether events arrive, where the configuration cannot be read.
    pub(crate) probe_key: String,
    /// For CLIENT LIST.
    pub(crate) client_name: String,
    pub(crate) connect_timeout: Duration,
    /// A command without a reply for this long is lost.
    pub(crate) response_timeout: Duration,
    /// A node that does not send events is connected all the same.
    pub(crate) may_poll: bool,
}

impl Route {
    /// What the channels of keyspace events begin with.
    pub(super) fn channel_prefix(&self) -> String {
        format!("__keyspace@{}__:", self.info.redis_settings().db())
    }

    /// The host of the URL, for nodes that do not know their own.
    pub(super) fn host(&self) -> String {
        match self.info.addr() {
            ConnectionAddr::Tcp(host, _) | ConnectionAddr::TcpTls { host, .. } => host.clone(),
            _ => "127.0.0.1".to_owned(),
        }
    }

    /// Where a node is; `None` is the node of the URL.
    fn addr(&self, address: Option<&str>) -> ConnectionAddr {
        match address.and_then(|address| address.rsplit_once(':')) {
            Some((host, port)) => beside(self.info.addr(), host, port.parse().unwrap_or(6379)),
            None => self.info.addr().clone(),
        }
    }

    /// The server of the URL, for messages.
    pub(super) fn server(&self) -> String {
        shown_address(self.info.addr())
    }

    /// The error of a connection to `address` that failed, or that was refused something it needs.
    pub(super) fn failed(&self, address: Option<&str>, source: RedisError) -> Error {
        Error::Connect {
            address: shown_address(&self.addr(address)),
            source: source.into(),
        }
    }

    /// An authenticated connection on the right database; `None` is the node of the URL.
    pub(super) async fn open(&self, address: Option<&str>) -> Result<Line, Error> {
        let addr = self.addr(address);
        let settings = self.info.redis_settings();
        let opening = async {
            let stream = dial(&addr, &self.trust).await?;
            let mut line = Line::new(stream, self.response_timeout, settings.db());
            greet(&mut line, settings, &self.client_name).await?;
            Ok(line)
        };
        match timeout(self.connect_timeout, opening).await {
            Ok(line) => line.map_err(|error| match error {
                #[cfg(feature = "tls")]
                Failed::Certificate(reason) => Error::Certificate {
                    address: shown_address(&addr),
                    reason,
                },
                Failed::Other(source) => self.failed(address, source),
            }),
            Err(_) => Err(Error::ConnectTimeout {
                address: shown_address(&addr),
                limit: self.connect_timeout,
            }),
        }
    }

    /// Both connections, events switched on, patterns subscribed to.
    pub(super) async fn connect(
        &self,
        address: Option<&str>,
        patterns: &[String],
        flags: &str,
    ) -> Result<Connected, Error> {
        let mut commands = self.open(address).await?;
        let told = match ensure_events(&mut commands, flags).await {
            Events::On | Events::Mended => true,
            Events::Unknown => self.probe(address, &mut commands, flags).await?,
        };
        if !told && !self.may_poll {
            return Err(Error::Notifications {
                server: shown_address(&self.addr(address)),
                need: flags.to_owned(),
            });
        }
        let mut pushes = self.open(address).await?;
        self.subscribe(address, &mut pushes, patterns).await?;
        Ok(Connected {
            commands,
            pushes,
            told,
        })
    }

    /// Subscribes to patterns over channels. The error of one that the server does not permit names it.
    pub(super) async fn subscribe(
        &self,
        address: Option<&str>,
        pushes: &mut Line,
        patterns: &[String],
    ) -> Result<(), Error> {
        for pattern in patterns {
            let Err(source) = pushes.psubscribe(pattern).await else {
                continue;
            };
            return Err(match refusal(&source) {
                Some(reason) => Error::Refused {
                    server: shown_address(&self.addr(address)),
                    reason: format!("{reason} (PSUBSCRIBE {pattern})"),
                },
                None => self.failed(address, source),
            });
        }
        Ok(())
    }

    /// Whether the events of all `flags` arrive although we may not look at the configuration: sets a key, changes its
    /// TTL, lets it expire, and listens for each.
    pub(super) async fn probe(
        &self,
        address: Option<&str>,
        commands: &mut (impl ConnectionLike + Send),
        flags: &str,
    ) -> Result<bool, Error> {
        let mut pushes = self.open(address).await?;
        let probe = &self.probe_key;
        let channel = format!("{}{probe}*", self.channel_prefix());
        let failed = |source| self.failed(address, source);
        pushes.psubscribe(&channel).await.map_err(failed)?;
        let Some(key) = set_probe(commands, probe).await.map_err(failed)? else {
            return Ok(true);
        };
        let classes = [('$', "set"), ('g', "expire"), ('x', "expired")];
        let mut missing: Vec<&str> = classes
            .into_iter()
            .filter(|(flag, _)| flags.contains(*flag))
            .map(|(_, event)| event)
            .collect();
        let until = Instant::now() + PROBE_PATIENCE;
        while !missing.is_empty() && Instant::now() < until {
            match timeout(PROBE_NUDGE, pushes.push()).await {
                Ok(Ok(event)) => missing.retain(|wanted| event != wanted.as_bytes()),
                Ok(Err(error)) => return Err(failed(error)),
                // Reading an expired key makes the server expire it and send the event.
                Err(_) => {
                    let _ = cmd("EXISTS").arg(&key).query_async::<Value>(commands).await;
                }
            }
        }
        Ok(missing.is_empty())
    }
}

/// Authenticates, selects the database, and sets the connection's name in CLIENT LIST where that is allowed.
async fn greet(line: &mut Line, settings: &RedisConnectionInfo, name: &str) -> RedisResult<()> {
    if let Some(password) = settings.password() {
        let mut auth = cmd("AUTH");
        if let Some(user) = settings.username() {
            auth.arg(user);
        }
        let answer = auth.arg(password).query_async::<()>(line).await;
        // Before version 6 there were no users; a URL may name one all the same.
        let too_old = |error: &RedisError| {
            settings.username().is_some() && error.to_string().contains("wrong number of arguments")
        };
        match answer {
            Err(error) if too_old(&error) => {
                cmd("AUTH").arg(password).query_async::<()>(line).await?;
            }
            answer => answer?,
        }
    }
    if settings.db() != 0 {
        let mut select = cmd("SELECT");
        select.arg(settings.db()).query_async::<()>(line).await?;
    }
    let mut names = pipe();
    names.cmd("CLIENT").arg("SETNAME").arg(name);
    names
        .cmd("CLIENT")
        .arg("SETINFO")
        .arg("LIB-NAME")
        .arg("kumi-muf");
    // A server may not know these, or forbid them; nothing depends on them.
    line.req_packed_commands(&names, 0, 2).await.map(|_| ())
}

/// An address like that of the URL (TLS or not), elsewhere.
fn beside(addr: &ConnectionAddr, host: &str, port: u16) -> ConnectionAddr {
    match addr {
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
    }
}

/// An address for messages: `host:port`, or a path.
fn shown_address(addr: &ConnectionAddr) -> String {
    match addr {
        ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
            match host.contains(':') {
                true => format!("[{host}]:{port}"),
                false => format!("{host}:{port}"),
            }
        }
        ConnectionAddr::Unix(path) => path.display().to_string(),
        other => other.to_string(),
    }
}

/// A node that can be used.
pub(super) struct Connected {
    pub(super) commands: Line,
    pub(super) pushes: Line,
    /// It sends events.
    pub(super) told: bool,
}
