//! One server (or one primary of a cluster): a connection for commands and another for pushes.
//!
//! They are separate because a subscribed connection is in the server's pubsub class, whose output buffer limit would
//! kill it for a large reply. A node counts as connected only when it tells of changes and is subscribed: whoever can
//! send it a command will hear of the outcome.

use std::time::Duration;

use futures_util::StreamExt;
use redis::aio::{MultiplexedConnection, PubSubSink, PubSubStream};
use redis::{AsyncConnectionConfig, Client, ConnectionAddr, ConnectionInfo, Value, cmd};
use tokio::time::timeout;

use crate::Error;

/// How to reach servers. Shared by all nodes of a unit.
#[derive(Debug, Clone)]
pub(super) struct Route {
    /// From the URL: address, credentials, database.
    pub(super) info: ConnectionInfo,
    pub(super) unit: String,
    pub(super) connect_timeout: Duration,
    /// A command without a reply for this long is lost.
    pub(super) response_timeout: Duration,
    /// Events may be missing; the core polls.
    pub(super) may_poll: bool,
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

    /// The same road to another node; `None` is the node of the URL.
    fn client(&self, address: Option<&str>) -> Result<Client, Error> {
        let info = match address.and_then(|address| address.rsplit_once(':')) {
            Some((host, port)) => {
                let port = port.parse().unwrap_or(6379);
                self.info
                    .clone()
                    .set_addr(beside(self.info.addr(), host, port))
            }
            None => self.info.clone(),
        };
        Client::open(info).map_err(Error::Connect)
    }

    /// A connection for commands only.
    pub(super) async fn commands(
        &self,
        address: Option<&str>,
    ) -> Result<MultiplexedConnection, Error> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.connect_timeout))
            .set_response_timeout(Some(self.response_timeout));
        let client = self.client(address)?;
        client
            .get_multiplexed_async_connection_with_config(&config)
            .await
            .map_err(Error::Connect)
    }

    /// Both connections, events switched on, patterns subscribed to.
    pub(super) async fn connect(
        &self,
        address: Option<&str>,
        patterns: &[String],
        flags: &str,
    ) -> Result<Connected, Error> {
        let mut commands = self.commands(address).await?;
        let told = match ensure_events(&mut commands, flags).await {
            true => true,
            false => self.probe(address, &mut commands).await?,
        };
        if !told && !self.may_poll {
            return Err(Error::Notifications {
                need: flags.to_owned(),
            });
        }
        let (mut sink, pushes) = self.subscriber(address).await?;
        for pattern in patterns {
            sink.psubscribe(pattern).await.map_err(Error::Connect)?;
        }
        Ok(Connected {
            commands,
            sink,
            pushes,
            told,
        })
    }

    async fn subscriber(&self, address: Option<&str>) -> Result<(PubSubSink, PubSubStream), Error> {
        let client = self.client(address)?;
        let connecting = timeout(self.connect_timeout, client.get_async_pubsub());
        let pubsub = connecting
            .await
            .map_err(|_| Error::ConnectTimeout(self.connect_timeout))?;
        Ok(pubsub.map_err(Error::Connect)?.split())
    }

    /// Whether events arrive although we may not look at the configuration: sets a key and listens for it.
    async fn probe(
        &self,
        address: Option<&str>,
        commands: &mut MultiplexedConnection,
    ) -> Result<bool, Error> {
        let (mut sink, mut pushes) = self.subscriber(address).await?;
        // The hash tag makes no difference to a single server; on a cluster each node needs a key of its own, which
        // cannot be had without knowing its slots, so a node that says MOVED is believed to be like the others.
        let key = format!("MUF/{}/KEEP/_probe", self.unit);
        sink.psubscribe(format!("{}{key}", self.channel_prefix()))
            .await
            .map_err(Error::Connect)?;
        let set = cmd("SET")
            .arg(&key)
            .arg("1")
            .arg("PX")
            .arg(1_000)
            .query_async::<Value>(commands)
            .await;
        if set
            .as_ref()
            .is_err_and(|error| error.code() == Some("MOVED"))
        {
            return Ok(true);
        }
        set.map_err(Error::Connect)?;
        Ok(timeout(Duration::from_secs(1), pushes.next())
            .await
            .is_ok_and(|push| push.is_some()))
    }
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

/// A node that can be used.
pub(super) struct Connected {
    pub(super) commands: MultiplexedConnection,
    pub(super) sink: PubSubSink,
    pub(super) pushes: PubSubStream,
    /// It tells of changes; otherwise we poll.
    pub(super) told: bool,
}

/// Adds what is missing to `notify-keyspace-events`, and keeps what is on. False if we may not.
pub(super) async fn ensure_events(commands: &mut MultiplexedConnection, need: &str) -> bool {
    const NAME: &str = "notify-keyspace-events";
    let asked: Result<Vec<String>, _> = cmd("CONFIG")
        .arg("GET")
        .arg(NAME)
        .query_async(commands)
        .await;
    let Some(present) = asked.ok().and_then(|pair| pair.into_iter().nth(1)) else {
        return false;
    };
    let missing: String = need
        .chars()
        .filter(|&flag| !is_on(&present, flag))
        .collect();
    if missing.is_empty() {
        return true;
    }
    let wanted = format!("{present}{missing}");
    cmd("CONFIG")
        .arg("SET")
        .arg(NAME)
        .arg(wanted)
        .query_async::<()>(commands)
        .await
        .is_ok()
}

/// `A` stands for all classes of events, but not for the two kinds of channels, nor for misses and new keys.
fn is_on(present: &str, flag: char) -> bool {
    present.contains(flag) || (present.contains('A') && "g$lshzxetd".contains(flag))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_classes_include_ours_but_not_the_channel() {
        assert!(is_on("AKE", '$') && is_on("AKE", 'x') && is_on("AKE", 'K'));
        assert!(!is_on("AE", 'K'));
        assert!(!is_on("Kx", '$'));
    }
}
