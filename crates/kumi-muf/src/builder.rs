//! How a unit connects: times, limits, credentials, what to do without events.

use std::time::Duration;

use kumi_redis::{Error as ServerError, Route, ServerUrl};

use crate::core::{Settings, UnitName};
use crate::discovery::Info;
use crate::driver::{self, Plan};
use crate::{Error, Muf};

/// Collects what [`Muf::connect`] leaves at its default.
///
/// ```no_run
/// # async fn example() -> Result<(), kumi_muf::Error> {
/// use std::time::Duration;
/// use kumi_muf::Muf;
///
/// let muf = Muf::builder("redis://127.0.0.1:6379/2", "web")
///     .req_ttl(Duration::from_secs(5))
///     .timeout(Duration::from_secs(10))
///     .credentials("web", "secret")
///     .payload_limit(64 * 1024)
///     .connect()
///     .await?;
/// assert_eq!(muf.unit(), "web");
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until `connect`"]
pub struct Builder {
    /// The URL with what was given apart from it; its `Debug` shows no secret.
    url: Result<ServerUrl, ServerError>,
    unit: String,
    settings: Settings,
    connect_timeout: Duration,
    response_timeout: Duration,
    poll: Option<Duration>,
    discovery: bool,
    version: String,
    heartbeat: Duration,
}

impl Builder {
    pub(crate) fn new(url: &str, unit: &str) -> Self {
        Self {
            url: ServerUrl::parse(url),
            unit: unit.to_owned(),
            settings: Settings::default(),
            connect_timeout: Duration::from_secs(5),
            response_timeout: Duration::from_secs(5),
            poll: None,
            discovery: true,
            version: String::new(),
            heartbeat: Duration::from_secs(5),
        }
    }

    /// TTL of a request that no backend has claimed. 10 s by default.
    pub fn req_ttl(mut self, ttl: Duration) -> Self {
        self.settings.req_ttl_ms = millis(ttl);
        self
    }

    /// TTL of an answer. 30 s by default.
    pub fn answer_ttl(mut self, ttl: Duration) -> Self {
        self.settings.answer_ttl_ms = millis(ttl);
        self
    }

    /// TTL of a kept value; `None` is for ever. A day by default.
    pub fn keep_ttl(mut self, ttl: Option<Duration>) -> Self {
        self.settings.keep_ttl_ms = ttl.map(millis);
        self
    }

    /// How long a call waits for its answer. 30 s by default.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.settings.timeout_ms = millis(timeout);
        self
    }

    /// Largest payload, of requests, answers and kept values. 1 MiB by default.
    pub fn payload_limit(mut self, limit_bytes: usize) -> Self {
        self.settings.payload_limit_bytes = limit_bytes;
        self
    }

    /// User and password, instead of those in the URL.
    pub fn credentials(self, user: &str, password: &str) -> Self {
        self.with_url(|url| url.set_credentials(Some(user), password))
    }

    /// The password of the default user, instead of what is in the URL.
    pub fn password(self, password: &str) -> Self {
        self.with_url(|url| url.set_credentials(None, password))
    }

    /// Certificates (PEM) to trust a `rediss://` server by, instead of the system's.
    #[cfg(feature = "tls")]
    pub fn root_certificates(self, pem: impl Into<Vec<u8>>) -> Self {
        self.with_url(|url| url.set_roots(pem.into()))
    }

    /// Our own certificate and its key (PEM), for a `rediss://` server that requires a client certificate.
    #[cfg(feature = "tls")]
    pub fn client_certificate(
        self,
        chain_pem: impl Into<Vec<u8>>,
        key_pem: impl Into<Vec<u8>>,
    ) -> Self {
        self.with_url(|url| url.set_identity(chain_pem.into(), key_pem.into()))
    }

    /// How long one attempt to connect may take. 5 s by default.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// How long a command may go without a reply before it counts as lost. 5 s by default.
    pub fn response_timeout(mut self, timeout: Duration) -> Self {
        self.response_timeout = timeout;
        self
    }

    /// Polls this often where the server sends no keyspace events and CONFIG is not allowed, instead of failing.
    pub fn poll_every(mut self, period: Duration) -> Self {
        self.poll = Some(period);
        self
    }

    /// Whether this unit describes itself at `KEEP/_info` and `KEEP/_stats`. On by default.
    pub fn discovery(mut self, on: bool) -> Self {
        self.discovery = on;
        self
    }

    /// The version that discovery shows.
    pub fn version(mut self, version: &str) -> Self {
        self.version = version.to_owned();
        self
    }

    /// How often this unit refreshes its entry in the list of units, which expires after three times that. 5 s by default.
    pub fn heartbeat(mut self, period: Duration) -> Self {
        self.heartbeat = period.max(Duration::from_millis(10));
        self
    }

    /// Write and read tracing side keys (`KEEP/<ID>.meta`). Off by default: values stay headerless, commands stay few.
    pub fn tracing(mut self, on: bool) -> Self {
        self.settings.tracing = on;
        self
    }

    /// Connects and subscribes. When this returns, the unit can call and be called.
    ///
    /// Dropping the future closes what was opened.
    pub async fn connect(self) -> Result<Muf, Error> {
        let unit = UnitName::new(&self.unit)?;
        let mut route = Route::new(self.url?)?;
        route.connect_timeout = self.connect_timeout;
        route.response_timeout = self.response_timeout;
        let discovery = self.discovery.then(|| Info::of(&unit, &self.version));
        let plan = Plan {
            route,
            unit: unit.clone(),
            settings: self.settings,
            poll: self.poll,
            discovery,
            heartbeat: self.heartbeat,
        };
        let (wires, settings) = driver::start(plan).await?;
        Ok(Muf::new(unit, wires, settings))
    }

    fn with_url(mut self, set: impl FnOnce(&mut ServerUrl)) -> Self {
        if let Ok(url) = &mut self.url {
            set(url);
        }
        self
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis())
        .unwrap_or(u64::MAX)
        .max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_shown_of_a_builder_is_secret() {
        for url in [
            "redis://user:sesame@host:6379/2",
            "rediss://:sesame@host",
            "unix:///run/redis.sock?db=1&pass=sesame",
            "redis://user:p@sesame@host",
            "unix:///run/redis.sock?pass=p@sesame",
        ] {
            let builder = Builder::new(url, "web")
                .credentials("user", "sesame")
                .password("sesame");
            let shown = format!("{builder:?}");
            assert!(!shown.contains("sesame"), "{shown}");
            assert!(shown.contains("host") || shown.contains("/run/redis.sock"));
        }
    }
}
