//! From a URL to a queue: what the URL says, and what the server must be like.

use super::link::{Link, Repeat};
use super::{RedisQueue, Shared, codec, script};
use crate::core::Settings;
use crate::error::QueueError;
use ::redis::{Value, cmd};
use kumi_redis::{Route, ServerUrl};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use tokio::time::timeout;

/// The version of the format of keys, records and scripts; `FORMAT` of lib.lua and upgrade.lua. A change of the layout of
/// keys raises all three and gives upgrade.lua the steps from the format before.
pub const FORMAT: u32 = 3;

/// The set of all queue names of a server.
const QUEUES: &str = "kumi:jobs:queues";

/// How long to connect may take.
const CONNECT: Duration = Duration::from_secs(3);

/// How long to add the queue to the list of all queues may take.
const LISTED: Duration = Duration::from_secs(3);

/// The queue of a URL that names none.
const DEFAULT_QUEUE: &str = "default";

/// A queue on a Redis server or cluster, before it is connected.
#[derive(Clone)]
pub struct RedisOptions {
    url: ServerUrl,
    queue: String,
    settings: Settings,
    replicas: usize,
    clock: Option<Arc<AtomicU64>>,
}

/// Without the user and the password that may stand in the URL.
impl std::fmt::Debug for RedisOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisOptions")
            .field("url", &self.url)
            .field("queue", &self.queue)
            .field("settings", &self.settings)
            .field("replicas", &self.replicas)
            .finish_non_exhaustive()
    }
}

impl RedisOptions {
    /// Reads a URL such as `redis://localhost:6379/?queue=mail&replicas=1`. A node of a cluster is enough to find it.
    ///
    /// The grammar is that of [`ServerUrl`]: `rediss://` is TLS (feature `tls`), and the files that its query names are read
    /// here.
    ///
    /// # Errors
    /// If the URL or a file that it names cannot be used, or the queue's name is not `[A-Za-z0-9_.-]{1,64}`.
    pub fn from_url(url: &str) -> Result<Self, QueueError> {
        let url = ServerUrl::parse(url)?;
        url.check_certificates()?;
        let queue = url.queue().unwrap_or(DEFAULT_QUEUE).to_owned();
        let options = Self {
            queue: String::new(),
            settings: Settings::default(),
            replicas: url.replicas().unwrap_or(0),
            clock: None,
            url,
        };
        options.queue(&queue)
    }

    /// The queue of this name.
    ///
    /// # Errors
    /// If the name is not `[A-Za-z0-9_.-]{1,64}`.
    pub fn queue(mut self, name: &str) -> Result<Self, QueueError> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
        if !(1..=64).contains(&name.len()) || !name.bytes().all(plain) {
            return Err(QueueError::Config(format!(
                "'{name}' is not a queue's name ([A-Za-z0-9_.-], 1 to 64 characters)"
            )));
        }
        self.queue = name.into();
        Ok(self)
    }

    /// The names of all queues of the server, sorted; as [`queue_names`], with the options' certificates.
    ///
    /// # Errors
    /// If the server cannot be reached.
    pub async fn queue_names(&self) -> Result<Vec<String>, QueueError> {
        let link = Link::new(self.route()?, QUEUES.as_bytes());
        link.reach().await?;
        let mut members = cmd("SMEMBERS");
        members.arg(QUEUES);
        let names = codec::array(link.call(&members, Repeat::Yes).await?)?;
        let mut names: Vec<String> = names
            .into_iter()
            .map(codec::string)
            .collect::<Result<_, _>>()?;
        names.sort_unstable();
        Ok(names)
    }

    /// The limits of the queue. All programs of a queue should agree on them.
    #[must_use]
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// An enqueue returns only after so many replicas confirmed it; without, a failover may lose the last tasks.
    #[must_use]
    pub fn replicas(mut self, replicas: usize) -> Self {
        self.replicas = replicas;
        self
    }

    /// Trusts a `rediss://` server by these certificates (PEM) instead of the system's.
    #[must_use]
    pub fn root_certificates(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.url.set_roots(pem.into());
        self
    }

    /// Shows this certificate chain (PEM) and proves its possession with the private key (PEM), for a `rediss://` server
    /// that demands it.
    #[must_use]
    pub fn client_certificate(
        mut self,
        chain: impl Into<Vec<u8>>,
        key: impl Into<Vec<u8>>,
    ) -> Self {
        self.url.set_identity(chain.into(), key.into());
        self
    }

    fn route(&self) -> Result<Arc<Route>, QueueError> {
        let mut route = Route::new(self.url.clone())?;
        route.client_name = "kumi-jobs".into();
        route.library = "kumi-jobs";
        route.connect_timeout = CONNECT;
        Ok(Arc::new(route))
    }

    /// Takes the time from here instead of the server's clock, in milliseconds; for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn virtual_clock(mut self, clock: Arc<AtomicU64>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Moves the queue from an earlier format to that of this version. Answers the format that it had. Programs of the
    /// earlier version have to be stopped before; unless `force`, workers that seem to be alive are an error. A call that
    /// failed can be repeated, and goes on.
    ///
    /// # Errors
    /// As of [`connect`](Self::connect); if there is no such queue, or its format is not one that this version can move.
    pub async fn upgrade(self, force: bool) -> Result<u32, QueueError> {
        let prefix = format!("kumi:jobs:{{{}}}:", self.queue);
        let link = Link::new(self.route()?, prefix.as_bytes());
        link.reach().await?;
        let shared = Shared::new(link, prefix, self.settings, self.replicas, self.clock);
        let (mut first, mut cursor) = (None, Vec::new());
        loop {
            let args = vec![codec::text(u8::from(force)), cursor];
            let step = shared.run(&script::UPGRADE, args, Repeat::Yes).await;
            let step = step.map_err(|error| match error {
                QueueError::Server(error) if error.code() == Some("ALIVE") => {
                    let who = error.detail().unwrap_or_default();
                    QueueError::Config(format!(
                        "{who}: stop the programs of the earlier version first"
                    ))
                }
                QueueError::Server(error)
                    if error
                        .detail()
                        .is_some_and(|text| text.contains("no such queue")) =>
                {
                    QueueError::Config(format!("there is no queue '{}'", self.queue))
                }
                other => other,
            })?;
            let [from, next]: [Value; 2] = codec::array(step)?
                .try_into()
                .map_err(|_| QueueError::Protocol("an upgrade without two parts".into()))?;
            let from = u32::try_from(codec::integer(&from)?).unwrap_or(0);
            let first = *first.get_or_insert(from);
            cursor = codec::bytes(next)?.to_vec();
            if cursor.is_empty() {
                return Ok(first);
            }
        }
    }

    /// Connects.
    ///
    /// # Errors
    /// If no server listens at the address, or its certificate is not trusted (both known at once), or none answers there
    /// (known after the time that calls are repeated), if the queue has another format, or if its server would evict keys.
    pub async fn connect(self) -> Result<RedisQueue, QueueError> {
        let route = self.route()?;
        let prefix = format!("kumi:jobs:{{{}}}:", self.queue);
        let link = Link::new(route.clone(), prefix.as_bytes());
        link.reach().await?;
        check_eviction(&link).await?;
        check_version(&link, &prefix).await?;
        self.list(Link::new(route, QUEUES.as_bytes())).await;
        Ok(RedisQueue {
            shared: Arc::new(Shared::new(
                link,
                prefix,
                self.settings,
                self.replicas,
                self.clock,
            )),
        })
    }
}

impl RedisOptions {
    /// Adds the queue to the list of all queues, which is for operators. In a cluster another node may have it. If that one
    /// cannot be reached, the queue works all the same, and the next connection adds it.
    async fn list(&self, queues: Link) {
        let mut listed = cmd("SADD");
        listed.arg(QUEUES).arg(&self.queue);
        let listed = timeout(LISTED, queues.call(&listed, Repeat::Yes)).await;
        let error = match listed.map(unless_full) {
            Ok(Ok(true)) => return,
            Ok(Ok(false)) => {
                tracing::debug!(queue = %self.queue, "the server is full: not listed again");
                return;
            }
            Ok(Err(error)) => error,
            Err(_) => queues.broken(std::io::Error::from(std::io::ErrorKind::TimedOut).into()),
        };
        tracing::warn!(queue = %self.queue, error = &error as &dyn std::error::Error, "the queue is not in the list of all queues");
    }
}

/// Whether a write was made. False if the server is full, where only an enqueue may fail.
pub(super) fn unless_full<T>(written: Result<T, QueueError>) -> Result<bool, QueueError> {
    match written {
        Ok(_) => Ok(true),
        Err(QueueError::Server(error)) if error.code() == Some("OOM") => Ok(false),
        Err(error) => Err(error),
    }
}

async fn check_version(link: &Link, prefix: &str) -> Result<(), QueueError> {
    let key = format!("{prefix}version");
    let mut get = cmd("GET");
    get.arg(&key);
    let mut stored = link.call(&get, Repeat::Yes).await?;
    if stored == Value::Nil {
        let mut set = cmd("SET");
        set.arg(&key).arg(FORMAT).arg("NX");
        // A queue that is new on a full server has no tasks. The next script that finds memory writes the version.
        if !unless_full(link.call(&set, Repeat::Yes).await)? {
            return Ok(());
        }
        stored = link.call(&get, Repeat::Yes).await?;
    }
    let queue = codec::string(stored)?;
    match queue == FORMAT.to_string() {
        true => Ok(()),
        false => Err(QueueError::Format {
            queue,
            ours: FORMAT,
        }),
    }
}

/// What a script says about a queue of another format.
pub(super) fn format_error(error: QueueError) -> QueueError {
    match error {
        QueueError::Server(error) if error.code() == Some("FORMAT") => {
            let detail = error.detail().unwrap_or_default();
            QueueError::Format {
                queue: detail.split(' ').next().unwrap_or_default().to_owned(),
                ours: FORMAT,
            }
        }
        other => other,
    }
}

/// A server that evicts keys loses tasks. `volatile-*` policies evict only keys that expire, of which a queue has none
/// that matter. The server is the one of the queue: what other nodes of a cluster do concerns other queues.
async fn check_eviction(link: &Link) -> Result<(), QueueError> {
    // The first call waits for a server that is loading its data.
    link.call(&cmd("PING"), Repeat::Yes).await?;
    let mut values = Vec::new();
    for name in ["maxmemory-policy", "maxmemory"] {
        let mut get = cmd("CONFIG");
        get.arg("GET").arg(name);
        let value = match link.call(&get, Repeat::Yes).await {
            Err(error @ QueueError::Io(_)) => return Err(error),
            value => value.ok().and_then(|value| codec::pairs(value).ok()),
        };
        let value = value.and_then(|pairs| pairs.into_iter().next());
        values.push(value.and_then(|(_, value)| codec::string(value).ok()));
    }
    match (values[0].as_deref(), values[1].as_deref()) {
        (Some(policy), Some(memory)) if policy.starts_with("allkeys-") && memory != "0" => {
            return Err(QueueError::Config(format!(
                "the server evicts any key when it is full (maxmemory-policy {policy}); a queue needs noeviction"
            )));
        }
        (Some(policy), _) if policy.starts_with("allkeys-") => {
            tracing::warn!(policy, "the server would evict tasks once maxmemory is set");
        }
        (Some(_), _) => {}
        (None, _) => tracing::warn!("the server does not tell its maxmemory-policy"),
    }
    Ok(())
}

/// The names of all queues of a server, sorted.
///
/// # Errors
/// If the server cannot be reached.
pub async fn queue_names(url: &str) -> Result<Vec<String>, QueueError> {
    RedisOptions::from_url(url)?.queue_names().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_name_a_queue() {
        let read = |url: &str| RedisOptions::from_url(url).map(|it| (it.queue, it.replicas));
        let expected = ("mail".to_owned(), 1);
        assert_eq!(
            read("redis://h:1/2?queue=mail&replicas=1").unwrap(),
            expected
        );
        assert_eq!(read("redis://h:1").unwrap().0, "default");
        for bad in [
            "h:6379",
            "redis://h/?queue=a%20b",
            "redis://h/?quue=mail",
            "rediss://h/?cacert=/no/such/file",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn no_secret_is_shown() {
        let url = "redis://ann:sesame@h:1/2?queue=mail";
        let shown = format!("{:?}", RedisOptions::from_url(url).unwrap());
        assert!(
            shown.contains("redis://h:1/2") && !shown.contains("sesame"),
            "{shown}"
        );
    }
}
