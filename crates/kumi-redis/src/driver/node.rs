//! One server (or one primary of a cluster): a connection for commands and another for pushes.
//!
//! They are separate because a subscribed connection is in the server's pubsub class, whose output buffer limit would
//! kill it for a large reply. A node counts as connected only when it sends events and is subscribed: then no
//! outcome of a command that is sent to it is missed.

use std::future::Future;
use std::time::Duration;

use redis::{ConnectionAddr, RedisConnectionInfo, RedisError, RedisResult, Value, cmd, pipe};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

use super::buffered::Line;
use super::dial::dial;
use super::events::{Events, ensure_events, set_probe};
use super::exchange::Exchange;
use super::scan::refusal;
use super::stream::{Failed, Stream};
use super::tls::Trust;
use crate::core::slots::SlotMap;
use crate::core::{Error, ServerUrl, address_at};

/// How long the events of a probe may take, and after how long a silence its key is looked at.
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);
const PROBE_NUDGE: Duration = Duration::from_millis(20);

/// How long a first connection may take before a server that should speak TLS is sent a PING without it, and how long
/// the reply to that may take.
const HANDSHAKE: Duration = Duration::from_millis(300);
const PLAIN_REPLY: Duration = Duration::from_secs(1);

/// How to reach servers. Shared by all nodes.
#[non_exhaustive]
pub struct Route {
    pub(super) url: ServerUrl,
    trust: Trust,
    /// The key that is set to find out whether events arrive, where the configuration cannot be read.
    pub probe_key: String,
    /// For CLIENT LIST.
    pub client_name: String,
    /// The same, for the name of the library.
    pub library: &'static str,
    /// How long one attempt to connect may take. 5 s by default.
    pub connect_timeout: Duration,
    /// A command without a reply for this long is lost. 5 s by default.
    pub response_timeout: Duration,
    /// A node that does not send events is connected all the same.
    pub may_poll: bool,
}

impl Route {
    /// The way to the server of a URL, and to the other nodes of its cluster. Reads the certificates that the URL names.
    pub fn new(url: ServerUrl) -> Result<Self, Error> {
        Ok(Self {
            trust: Trust::new(&url)?,
            url,
            probe_key: "kumi:probe".into(),
            client_name: "kumi".into(),
            library: "kumi-redis",
            connect_timeout: Duration::from_secs(5),
            response_timeout: Duration::from_secs(5),
            may_poll: false,
        })
    }

    /// What the channels of keyspace events begin with.
    pub(super) fn channel_prefix(&self) -> String {
        format!("__keyspace@{}__:", self.url.info.redis_settings().db())
    }

    /// The server of the URL, for messages.
    pub(super) fn server(&self) -> String {
        self.url.shown_at(None)
    }

    /// The error of a connection to `address` that failed, or that was refused something it needs.
    pub(super) fn failed(&self, address: Option<&str>, source: RedisError) -> Error {
        Error::Connect {
            address: self.url.shown_at(address),
            source: source.into(),
        }
    }

    /// Asks a node for the map of slots. `None` if it is not part of a cluster.
    pub(super) async fn slot_map(
        &self,
        commands: &mut impl Exchange,
    ) -> RedisResult<Option<SlotMap>> {
        match commands.query(cmd("CLUSTER").arg("SLOTS")).await {
            Ok(value) => Ok(Some(SlotMap::read(&value, self.url.host()))),
            Err(error)
                if error.is_io_error() || error.is_timeout() || error.is_connection_dropped() =>
            {
                Err(error)
            }
            Err(_) => Ok(None),
        }
    }

    /// An authenticated connection on the right database; `None` is the node of the URL.
    pub(super) async fn open(&self, address: Option<&str>) -> Result<Line, Error> {
        let addr = address_at(self.url.info.addr(), address);
        let settings = self.url.info.redis_settings();
        let opening = async {
            let stream = dial(&addr, &self.trust).await?;
            let mut line = Line::new(stream, self.response_timeout);
            self.greet(&mut line, settings).await?;
            Ok(line)
        };
        match timeout(self.connect_timeout, opening).await {
            Ok(line) => line.map_err(|error| match error {
                #[cfg(feature = "tls")]
                Failed::Certificate(reason) => Error::Certificate {
                    address: self.url.shown_at(address),
                    reason,
                },
                Failed::Database(error) => Error::Database {
                    address: self.url.shown_at(address),
                    database: settings.db(),
                    reason: error.detail().unwrap_or_default().to_owned(),
                },
                Failed::Other(source) => self.failed(address, source),
            }),
            Err(_) => Err(Error::ConnectTimeout {
                address: self.url.shown_at(address),
                limit: self.connect_timeout,
            }),
        }
    }

    /// As `open`, as a socket: authenticated, on the right database, with no reply outstanding. `address` is `host:port`;
    /// `None` is the node of the URL.
    pub async fn connect_socket(&self, address: Option<&str>) -> Result<Stream, Error> {
        Ok(self.open(address).await?.into_socket())
    }

    /// Waits for a first connection, whatever `connecting` does besides. A server without TLS where the URL says TLS is
    /// mostly silent; it is recognised by its reply to a PING.
    pub async fn unless_plain<T>(
        &self,
        connecting: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let is_plain = || answers_in_plain(self.url.info.addr());
        let is_silent_and_plain = async {
            // More than once: a server that is busy replies to a PING late.
            loop {
                sleep(HANDSHAKE).await;
                if is_plain().await {
                    break;
                }
            }
        };
        let without_tls = || Error::WithoutTls {
            address: self.server(),
        };
        let connected = tokio::select! {
            biased;
            connected = connecting => connected,
            () = is_silent_and_plain => return Err(without_tls()),
        };
        match connected {
            Err(error) => {
                let may_be_plain =
                    error.is_definite() || matches!(error, Error::ConnectTimeout { .. });
                match may_be_plain && is_plain().await {
                    true => Err(without_tls()),
                    false => Err(error),
                }
            }
            connected => connected,
        }
    }

    /// The address of a node as errors show it; `None` is the node of the URL.
    pub fn shown_address(&self, address: Option<&str>) -> String {
        self.url.shown_at(address)
    }

    /// The URL.
    pub fn url(&self) -> &ServerUrl {
        &self.url
    }

    /// Authenticates, selects the database, and sets the connection's name in CLIENT LIST where that is allowed.
    async fn greet(&self, line: &mut Line, settings: &RedisConnectionInfo) -> Result<(), Failed> {
        if let Some(password) = settings.password() {
            let mut auth = cmd("AUTH");
            if let Some(user) = settings.username() {
                auth.arg(user);
            }
            let answer = line.query::<()>(auth.arg(password)).await;
            // Before version 6 there were no users; a URL may name one all the same.
            let too_old = |error: &RedisError| {
                settings.username().is_some()
                    && error.to_string().contains("wrong number of arguments")
            };
            match answer {
                Err(error) if too_old(&error) => {
                    line.query::<()>(cmd("AUTH").arg(password)).await?;
                }
                answer => answer?,
            }
        }
        if settings.db() != 0 {
            let selected = line.query::<()>(cmd("SELECT").arg(settings.db())).await;
            selected.map_err(|error| match lacks_database(&error) {
                true => Failed::Database(error),
                false => Failed::Other(error),
            })?;
        }
        let mut names = pipe();
        names.cmd("CLIENT").arg("SETNAME").arg(&self.client_name);
        names
            .cmd("CLIENT")
            .arg("SETINFO")
            .arg("LIB-NAME")
            .arg(self.library);
        // A server may not know these, or forbid them; nothing depends on them. One that wants credentials says so here.
        let names = names.get_packed_pipeline();
        for reply in line.exchange(names, 2).await? {
            if let Err(error) = reply.extract_error()
                && error.code() == Some("NOAUTH")
            {
                return Err(error.into());
            }
        }
        Ok(())
    }

    /// Both connections, events switched on, patterns subscribed to.
    pub(super) async fn connect(
        &self,
        address: Option<&str>,
        patterns: &[String],
        flags: &str,
    ) -> Result<Connected, Error> {
        let mut commands = self.open(address).await?;
        let sends_events = match ensure_events(&mut commands, flags).await {
            Events::On | Events::Mended => true,
            Events::Unknown => self.probe(address, &mut commands, flags).await?,
        };
        if !sends_events && !self.may_poll {
            return Err(Error::Notifications {
                server: self.url.shown_at(address),
                need: flags.to_owned(),
            });
        }
        let mut pushes = self.open(address).await?;
        self.subscribe(address, &mut pushes, patterns).await?;
        Ok(Connected {
            commands,
            pushes,
            sends_events,
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
                    server: self.url.shown_at(address),
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
        commands: &mut impl Exchange,
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
        let until = Instant::now() + PROBE_TIMEOUT;
        while !missing.is_empty() && Instant::now() < until {
            match timeout(PROBE_NUDGE, pushes.push()).await {
                Ok(Ok(event)) => missing.retain(|wanted| event != wanted.as_bytes()),
                Ok(Err(error)) => return Err(failed(error)),
                // Reading an expired key makes the server expire it and send the event.
                Err(_) => {
                    let _ = commands.query::<Value>(cmd("EXISTS").arg(&key)).await;
                }
            }
        }
        Ok(missing.is_empty())
    }
}

/// Whether a server that should speak TLS replies to a PING without it.
///
/// A server without TLS takes the first message of a handshake for the beginning of a command. It replies with an error
/// or, mostly, is silent until the handshake's time is over. A server with TLS replies to the PING with an alert, or not
/// at all.
async fn answers_in_plain(address: &ConnectionAddr) -> bool {
    let ConnectionAddr::TcpTls { host, port, .. } = address else {
        return false;
    };
    let first_byte = async {
        let mut stream = TcpStream::connect((host.as_str(), *port)).await?;
        stream.write_all(b"PING\r\n").await?;
        stream.read_u8().await
    };
    // PONG, or an error such as NOAUTH.
    let reply = timeout(PLAIN_REPLY, first_byte).await;
    matches!(reply, Ok(Ok(b'+' | b'-')))
}

/// Whether this is the reply of a server that does not have the database. A cluster has database 0 only.
fn lacks_database(error: &RedisError) -> bool {
    let texts = ["DB index is out of range", "not allowed in cluster mode"];
    let says = |detail: &str| texts.iter().any(|text| detail.contains(text));
    error.detail().is_some_and(says)
}

/// A node that can be used.
pub(super) struct Connected {
    pub(super) commands: Line,
    pub(super) pushes: Line,
    /// It sends events.
    pub(super) sends_events: bool,
}
