//! How a unit connects: times, limits, credentials, what to do without events.

use std::time::Duration;

use redis::{ConnectionInfo, IntoConnectionInfo};

use crate::connection::{Certificates, Trust};
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
#[derive(Clone)]
#[must_use = "a builder does nothing until `connect`"]
pub struct Builder {
    url: String,
    unit: String,
    credentials: Option<(Option<String>, String)>,
    certificates: Certificates,
    settings: Settings,
    connect_timeout: Duration,
    response_timeout: Duration,
    poll: Option<Duration>,
    discovery: bool,
    version: String,
    heartbeat: Duration,
}

impl std::fmt::Debug for Builder {
    /// Without passwords: those given apart, and the one that may stand in the URL.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder")
            .field("url", &without_password(&self.url))
            .field("unit", &self.unit)
            .field("credentials", &self.credentials.as_ref().map(|_| "..."))
            .field("certificates", &self.certificates)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

/// A URL as it may be shown: without user and password, and without a query, where a Unix socket's password may be.
pub fn without_password(url: &str) -> String {
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

impl Builder {
    pub(crate) fn new(url: &str, unit: &str) -> Self {
        Self {
            url: url.to_owned(),
            unit: unit.to_owned(),
            credentials: None,
            certificates: Certificates::default(),
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
    pub fn credentials(mut self, user: &str, password: &str) -> Self {
        self.credentials = Some((Some(user.to_owned()), password.to_owned()));
        self
    }

    /// The password of the default user, instead of what is in the URL.
    pub fn password(mut self, password: &str) -> Self {
        self.credentials = Some((None, password.to_owned()));
        self
    }

    /// Certificates (PEM) to trust a `rediss://` server by, instead of the system's.
    #[cfg(feature = "tls")]
    pub fn root_certificates(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.certificates.roots = Some(pem.into());
        self
    }

    /// Our own certificate and its key (PEM), for a `rediss://` server that requires a client certificate.
    #[cfg(feature = "tls")]
    pub fn client_certificate(
        mut self,
        chain_pem: impl Into<Vec<u8>>,
        key_pem: impl Into<Vec<u8>>,
    ) -> Self {
        self.certificates.identity = Some((chain_pem.into(), key_pem.into()));
        self
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
        let info = self.connection_info()?;
        let trust = Trust::new(info.addr(), &self.certificates);
        let trust = trust.map_err(|source| self.unusable(source))?;
        let discovery = self.discovery.then(|| Info::of(&unit, &self.version));
        let plan = Plan {
            info,
            trust,
            unit: unit.clone(),
            settings: self.settings,
            connect_timeout: self.connect_timeout,
            response_timeout: self.response_timeout,
            poll: self.poll,
            discovery,
            heartbeat: self.heartbeat,
        };
        let (wires, settings) = driver::start(plan).await?;
        Ok(Muf::new(unit, wires, settings))
    }

    fn unusable(&self, source: redis::RedisError) -> Error {
        Error::Url {
            url: without_password(&self.url),
            source: source.into(),
        }
    }

    fn connection_info(&self) -> Result<ConnectionInfo, Error> {
        let info = self
            .url
            .as_str()
            .into_connection_info()
            .map_err(|source| self.unusable(source))?;
        let Some((user, password)) = &self.credentials else {
            return Ok(info);
        };
        let mut redis = info.redis_settings().clone().set_password(password);
        if let Some(user) = user {
            redis = redis.set_username(user);
        }
        Ok(info.set_redis_settings(redis))
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
