//! URLs of Redis servers: one grammar for all that connects to one.
//!
//! ```text
//! redis://[[user]:password@]host[:port][/db][?query]      rediss:// is the same with TLS
//! unix:///path[?query]
//! ```
//! The query has `cacert=FILE` (certificates to trust instead of the system's), `cert=FILE` and `key=FILE` (the certificate
//! to show, and its private key), all in PEM, and `name=NAME` (the name that the server's certificate has to be for, instead
//! of the host), all with `rediss://` only; `db=`, `user=` and `pass=` with `unix://`;
//! `protocol=`, which only jobs use; `queue=` and `replicas=`, which are for job queues and ignored by others. Any other
//! parameter is an error: misspelt, it would silently be another queue, or no certificate. `#insecure` is one too,
//! because trusting the server's own certificate as a root is as easy and is verified.
//!
//! Files are not read here: `driver/tls.rs` does that.

use std::path::PathBuf;

use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo};

use super::error::Error;

/// What a URL says of a server. Passwords and keys are not in its `Debug`.
///
/// ```
/// use kumi_redis::ServerUrl;
///
/// let url = ServerUrl::parse("redis://ann:secret@localhost/2?queue=mail")?;
/// assert_eq!(url.to_string(), "redis://localhost/2");
/// assert_eq!(url.queue(), Some("mail"));
/// assert!(ServerUrl::parse("redis://localhost/?quue=mail").is_err());
/// # Ok::<(), kumi_redis::Error>(())
/// ```
#[derive(Clone)]
pub struct ServerUrl {
    shown: String,
    pub(crate) info: ConnectionInfo,
    pub(crate) certificates: Certificates,
    queue: Option<String>,
    replicas: Option<usize>,
}

/// Certificates for a `rediss://` server.
#[derive(Clone, Default)]
pub(crate) struct Certificates {
    /// Roots to trust instead of the system's.
    pub(crate) roots: Option<Pem>,
    /// The chain to show to servers that demand one, and its private key.
    pub(crate) chain: Option<Pem>,
    pub(crate) key: Option<Pem>,
    /// The name that a server's certificate has to be for, instead of the host that was dialled.
    pub(crate) name: Option<String>,
}

/// Where a PEM is.
#[derive(Clone)]
#[cfg_attr(
    not(feature = "tls"),
    expect(dead_code, reason = "a build without TLS reads no certificates")
)]
pub(crate) enum Pem {
    File(PathBuf),
    Bytes(Vec<u8>),
}

impl ServerUrl {
    /// Reads a URL. Nothing is opened, and no file is read.
    pub fn parse(url: &str) -> Result<Self, Error> {
        Self::parse_as(url, cfg!(feature = "tls"))
    }

    fn parse_as(url: &str, has_tls: bool) -> Result<Self, Error> {
        let shown = without_password(url);
        let wrong = |reason: &str| Error::unusable(&shown, reason);
        let Some(mut url) = redis::parse_redis_url(url) else {
            return Err(wrong("it is not a URL such as redis://localhost:6379"));
        };
        if url.scheme() == "rediss" && !has_tls {
            return Err(wrong("TLS is not built in: feature `tls`"));
        }
        let is_unix = url.scheme().contains("unix");
        let mut certificates = Certificates::default();
        let (mut queue, mut replicas, mut others) = (None, None, Vec::new());
        for (name, value) in url.query_pairs() {
            let file = || Some(Pem::File(PathBuf::from(&*value)));
            match &*name {
                "queue" => queue = Some(value.into_owned()),
                "replicas" => {
                    let number = value.parse();
                    let number = number.map_err(|_| wrong("replicas= is not a number"))?;
                    replicas = Some(number);
                }
                "cacert" => certificates.roots = file(),
                "cert" => certificates.chain = file(),
                "key" => certificates.key = file(),
                "name" => certificates.name = Some(value.into_owned()),
                "protocol" => others.push((name.into_owned(), value.into_owned())),
                "db" | "user" | "pass" if is_unix => {
                    others.push((name.into_owned(), value.into_owned()));
                }
                // It may be a part of a password with an ampersand.
                _ if is_unix => {
                    return Err(wrong(
                        "a parameter is unknown (db, user, pass; queue and replicas of jobs)",
                    ));
                }
                other => {
                    return Err(wrong(&format!(
                        "'{other}' is not a parameter (cacert, cert, key, name; queue and replicas of jobs)"
                    )));
                }
            }
        }
        url.set_query(None);
        if !others.is_empty() {
            url.query_pairs_mut().extend_pairs(&others);
        }
        let info = url.into_connection_info();
        let info = info.map_err(|error| wrong(&error.to_string()))?;
        if matches!(info.addr(), ConnectionAddr::TcpTls { insecure: true, .. }) {
            return Err(wrong(
                "#insecure is not supported: trust the server's certificate with cacert=FILE",
            ));
        }
        Ok(Self {
            shown,
            info,
            certificates,
            queue,
            replicas,
        })
    }

    /// The queue that it names.
    pub fn queue(&self) -> Option<&str> {
        self.queue.as_deref()
    }

    /// How many replicas have to confirm an enqueue.
    pub fn replicas(&self) -> Option<usize> {
        self.replicas
    }

    /// Sets the password, and with `user` the user, instead of those in the URL.
    pub fn set_credentials(&mut self, user: Option<&str>, password: &str) {
        let mut settings = self.info.redis_settings().clone().set_password(password);
        if let Some(user) = user {
            settings = settings.set_username(user);
        }
        self.info = self.info.clone().set_redis_settings(settings);
    }

    /// Trusts a `rediss://` server by these certificates (PEM) instead of the system's.
    pub fn set_roots(&mut self, pem: Vec<u8>) {
        self.certificates.roots = Some(Pem::Bytes(pem));
    }

    /// Shows this certificate chain (PEM) to a `rediss://` server that demands one, and proves its possession with the
    /// private key (PEM).
    pub fn set_identity(&mut self, chain: Vec<u8>, key: Vec<u8>) {
        self.certificates.chain = Some(Pem::Bytes(chain));
        self.certificates.key = Some(Pem::Bytes(key));
    }

    /// The version of RESP that its query asks for; 2 unless it does.
    pub fn protocol(&self) -> redis::ProtocolVersion {
        self.info.redis_settings().protocol()
    }

    /// `host:port`, if it is not a Unix socket.
    pub fn address(&self) -> Option<super::slots::Address> {
        match self.info.addr() {
            ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
                Some(format!("{host}:{port}").into())
            }
            _ => None,
        }
    }

    /// The host, for nodes that do not know their own.
    pub fn host(&self) -> &str {
        match self.info.addr() {
            ConnectionAddr::Tcp(host, _) | ConnectionAddr::TcpTls { host, .. } => host,
            _ => "127.0.0.1",
        }
    }

    /// The address of a node, for messages; `None` is the node of the URL.
    pub(crate) fn shown_at(&self, address: Option<&str>) -> String {
        shown_address(&address_at(self.info.addr(), address))
    }
}

/// Without user and password, and without a query, where a Unix socket's password may be.
impl std::fmt::Display for ServerUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.shown)
    }
}

impl std::fmt::Debug for ServerUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ServerUrl").field(&self.shown).finish()
    }
}

impl Certificates {
    pub(crate) fn is_empty(&self) -> bool {
        self.roots.is_none() && self.chain.is_none() && self.key.is_none() && self.name.is_none()
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
    let without_query = |rest| str::split_once(rest, '?').map_or(rest, |(path, _)| path);
    // The query of a Unix socket may have an at sign, and so may its path; elsewhere a password may have a question mark.
    let rest = match scheme.contains("unix") {
        true => without_query(rest),
        false => rest,
    };
    let rest = match scheme.contains("unix") && rest.starts_with('/') {
        true => rest,
        false => rest.rsplit_once('@').map_or(rest, |(_, host)| host),
    };
    let rest = without_query(rest);
    format!("{scheme}{rest}")
}

/// The address of the node `host:port`, with or without TLS as that of the URL; `None` is the node of the URL.
pub(crate) fn address_at(url: &ConnectionAddr, node: Option<&str>) -> ConnectionAddr {
    let Some((host, port)) = node.and_then(|node| node.rsplit_once(':')) else {
        return url.clone();
    };
    let (host, port) = (host.to_owned(), port.parse().unwrap_or(6379));
    match url {
        ConnectionAddr::TcpTls {
            insecure,
            tls_params,
            ..
        } => ConnectionAddr::TcpTls {
            host,
            port,
            insecure: *insecure,
            tls_params: tls_params.clone(),
        },
        _ => ConnectionAddr::Tcp(host, port),
    }
}

/// An address for messages: `host:port`, or a path.
fn shown_address(address: &ConnectionAddr) -> String {
    match address {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_secret_is_shown() {
        for url in [
            "redis://ann:sesame@h:1/2?queue=mail",
            "redis://ann:p@sesame@h",
            "rediss://:sesame@h",
            "http://ann:sesame@h",
            "redis://ann:sesame@h/x",
            "ann:sesame@h",
            "ann:sesame@h//x",
            "unix:///s?pass=sesame",
            "unix:///s?db=1&pass=x@sesame",
            "unix:///s?pass=a&sesame",
            "unix://ann:sesame@h/s",
        ] {
            let shown = match ServerUrl::parse(url) {
                Ok(url) => format!("{url} {url:?}"),
                Err(error) => format!("{error} {error:?}"),
            };
            assert!(!shown.contains("sesame"), "{shown}");
            assert!(shown.contains("h") || shown.contains("/s"), "{shown}");
            assert!(!shown.contains("the URL //"), "{shown}");
        }
    }

    #[test]
    fn urls_say_where_a_server_is_and_what_is_wanted_there() {
        let check = |text: &str, address: &str, db: i64, queue: Option<&str>| {
            let url = ServerUrl::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(url.shown_at(None), address, "{text}");
            assert_eq!(url.info.redis_settings().db(), db, "{text}");
            assert_eq!(url.queue(), queue, "{text}");
        };
        check("redis://h", "h:6379", 0, None);
        check(
            "redis://h:1/2?queue=mail&replicas=1",
            "h:1",
            2,
            Some("mail"),
        );
        check("redis://[::1]:1/?protocol=resp3", "[::1]:1", 0, None);
        check("rediss://h:1/?cacert=/a&cert=/b&key=/c", "h:1", 0, None);
        check("unix:///run/s?db=3&pass=p&queue=q", "/run/s", 3, Some("q"));
    }

    #[test]
    fn what_is_no_url_of_a_server_is_said() {
        let check = |text: &str, expected: &str| {
            let error = ServerUrl::parse(text).expect_err(text).to_string();
            assert!(error.contains(expected), "{text}: {error}");
        };
        for text in ["", "nonsense", "h:6379", "http://h"] {
            check(text, "not a URL such as redis://");
        }
        check("redis://", "cannot be used");
        check("redis://h/x", "redis://h/x cannot be used");
        check("redis://h/?quue=mail", "'quue' is not a parameter");
        check("redis://h/?db=2", "'db' is not a parameter");
        check("redis://h/?replicas=x", "replicas= is not a number");
        check("rediss://h/#insecure", "cacert=FILE");
    }

    #[test]
    fn a_build_without_tls_names_the_feature() {
        assert!(ServerUrl::parse_as("redis://h", false).is_ok());
        assert!(ServerUrl::parse_as("rediss://h", true).is_ok());
        let error = ServerUrl::parse_as("rediss://h", false).expect_err("TLS");
        assert!(error.to_string().contains("feature `tls`"), "{error}");
    }

    #[test]
    fn nodes_of_a_cluster_are_reached_like_the_one_of_the_url() {
        let at = |url: &str, node| ServerUrl::parse(url).expect("a URL").shown_at(node);
        assert_eq!(at("redis://h:1", Some("n:2")), "n:2");
        assert_eq!(at("rediss://h:1", Some("::1:2")), "[::1]:2");
        let url = ServerUrl::parse("rediss://h:1").expect("a URL");
        let address = address_at(url.info.addr(), Some("n:2"));
        assert!(matches!(address, ConnectionAddr::TcpTls { .. }));
    }
}
