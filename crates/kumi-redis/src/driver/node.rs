//! One server (or one primary of a cluster): a connection for commands and another for pushes.
//!
//! They are separate because a subscribed connection is in the server's pubsub class, whose output buffer limit would
//! kill it for a large reply. A node counts as connected only when it sends events and is subscribed: then no
//! outcome of a command that is sent to it is missed.

use std::time::Duration;

use redis::{RedisConnectionInfo, RedisError, RedisResult, Value, cmd, pipe};
use tokio::time::{Instant, timeout};

use super::buffered::Line;
use super::dial::dial;
use super::events::{Events, ensure_events, set_probe};
use super::exchange::Exchange;
use super::scan::refusal;
use super::stream::Failed;
use super::tls::Trust;
use crate::core::slots::SlotMap;
use crate::core::{Error, ServerUrl, address_at};

/// How long the events of a probe may take, and after how long a silence its key is looked at.
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);
const PROBE_NUDGE: Duration = Duration::from_millis(20);

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
                Failed::Other(source) => self.failed(address, source),
            }),
            Err(_) => Err(Error::ConnectTimeout {
                address: self.url.shown_at(address),
                limit: self.connect_timeout,
            }),
        }
    }

    /// Authenticates, selects the database, and sets the connection's name in CLIENT LIST where that is allowed.
    async fn greet(&self, line: &mut Line, settings: &RedisConnectionInfo) -> RedisResult<()> {
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
            line.query::<()>(cmd("SELECT").arg(settings.db())).await?;
        }
        let mut names = pipe();
        names.cmd("CLIENT").arg("SETNAME").arg(&self.client_name);
        names
            .cmd("CLIENT")
            .arg("SETINFO")
            .arg("LIB-NAME")
            .arg(self.library);
        // A server may not know these, or forbid them; nothing depends on them.
        let names = names.get_packed_pipeline();
        line.exchange(names, 2).await.map(|_| ())
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
                server: self.url.shown_at(address),
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

/// A node that can be used.
pub(super) struct Connected {
    pub(super) commands: Line,
    pub(super) pushes: Line,
    /// It sends events.
    pub(super) told: bool,
}
