//! The node's own store: a server of kumi-server on threads of its own, with the directives of the configuration.
//!
//! Its addresses on loopback speak plain text and the others TLS, on one port. The users `kumi-node` and `kumi-app` are the
//! node's: commands do not change them, and no file has them. The server does not end with membership, but with the node.
//!
//! The cluster knows the store by the id of its data set, which the AOF and the RDB file carry. The id of data that is in
//! memory only, or that a crash took before the first save, is kept by the node: the store of a node that starts again is
//! the cluster's store, although it is empty.

use super::certificate::{CertificateError, NodeCertificate};
use super::keys::Keys;
use super::state_dir::{StateDir, StateError, StoreIdFile};
use crate::config::StoreHere;
use crate::core::place::{self, Service, TakenPort};
use crate::core::store_pin::StoreId;
use crate::trust;
use kumi_common::Chain;
use kumi_server::{
    Config, ControlError, HostUser, Server, ServerConfig, ServerError, ServerHandle, StartError,
};
use kumi_store::config::{ConfigError, Origin};
use std::ffi::OsStr;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use tokio::sync::watch;

/// The keyspace events that MUF needs: calls, expired leases, and changes of TTLs.
const EVENTS: &str = "K$xg";

/// What `A` of `notify-keyspace-events` stands for, as far as MUF needs it.
const ALL_EVENTS: &str = "$xg";

/// More than a file with one secret holds.
const SECRET_LIMIT: u64 = 64 << 10;

/// Why the store could not start. Nothing of it runs then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A directive has a value that does not fit; the configuration's fault.
    #[error("the store's {name} cannot be set")]
    Directive {
        /// The directive.
        name: String,
        /// What is wrong.
        #[source]
        source: ConfigError,
    },
    /// A file with the value of a directive cannot be read.
    #[error("the file {} with the store's {name} cannot be read", .path.display())]
    Secret {
        /// The directive.
        name: String,
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// Nodes with certificates of the operator's own have no user for a store that is not on loopback.
    #[error(
        "with certificates of your own nothing is derived from a key, so that nodes have no user to log in to a store at {address}: let the store listen on loopback only (store {{ bind \"127.0.0.1\" }}), name a store outside of the cluster (--store URL), or use a key (--key-file FILE)"
    )]
    NoUsers {
        /// The address.
        address: String,
    },
    /// The port is taken. The text says what to do.
    #[error("{0}")]
    PortTaken(String),
    /// The server cannot start.
    #[error("the store cannot start")]
    Start(#[source] StartError),
    /// It has no certificate for its addresses that are not on loopback.
    #[error("the store has no certificate")]
    Certificate(#[from] CertificateError),
    /// The server ended at its start, or refused its certificate.
    #[error("the store does not take its certificate")]
    Control(#[from] ControlError),
    /// The state directory cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// The thread that starts it failed.
    #[error("the start of the store failed: a panic, reported where it happened")]
    Panicked,
}

/// A store that runs. Dropping it stops it, and waits for that.
pub(crate) struct OwnStore {
    handle: ServerHandle,
    /// Waits for the server's end, and returns how it ended.
    end: Option<JoinHandle<Result<(), ServerError>>>,
    has_ended: watch::Receiver<bool>,
    id: StoreId,
    port: u16,
}

impl OwnStore {
    /// Starts it, and returns when clients are served: data has been loaded by then. The certificate that comes back has the
    /// store's id among its names.
    pub(crate) async fn start(
        here: &StoreHere,
        bind: &[IpAddr],
        keys: &Keys,
        state: &StateDir,
        certificate: NodeCertificate,
    ) -> Result<(Self, NodeCertificate), StoreError> {
        let mut config = server_config(here, bind, keys, state, &certificate)?;
        let port = config.config.settings().port;
        let id_file = id_file(&config, state);
        config.data_id = match &id_file {
            Some(file) => file.read()?,
            None => None,
        };
        let first = bind.first().copied();
        let start = move || -> Result<(Self, NodeCertificate), StoreError> {
            let kept = config.data_id;
            let server = Server::start(config).map_err(|error| start_error(error, first, port))?;
            let handle = server.handle().clone();
            let id = handle.data_id();
            if let Some(file) = id_file.filter(|_| kept != Some(id))
                && let Err(error) = file.write(id)
            {
                tracing::warn!(error = %Chain(&error), "the store's id is not kept; it is another store after a restart");
            }
            let id = id.to_string();
            let named = trust::StoreId::new(&id).map_err(CertificateError::from)?;
            let certificate = certificate.with_store(named)?;
            handle.replace_identity(certificate.identity())?;
            let id = id.parse().map_err(|_| StoreError::Panicked)?;
            let (end, has_ended) = wait_for_end(server)?;
            let store = Self {
                handle,
                end: Some(end),
                has_ended,
                id,
                port,
            };
            Ok((store, certificate))
        };
        let started = tokio::task::spawn_blocking(start).await;
        started.unwrap_or(Err(StoreError::Panicked))
    }

    /// The id of its data set.
    pub(crate) fn id(&self) -> &StoreId {
        &self.id
    }

    /// Its port, the same on every address.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// The way to the server.
    pub(crate) fn handle(&self) -> &ServerHandle {
        &self.handle
    }

    /// Where it listens: in plain text on loopback, and with TLS.
    pub(crate) fn addresses(&self) -> (Vec<SocketAddr>, Vec<SocketAddr>) {
        let addresses = self.handle.addresses();
        (addresses.tcp.clone(), addresses.tls.clone())
    }

    /// True when it has ended: a client sent SHUTDOWN, it failed, or it was stopped.
    pub(crate) fn has_ended(&self) -> watch::Receiver<bool> {
        self.has_ended.clone()
    }

    /// Stops it: it replies to what it has received, and saves what it has to. Returns how it ended if it had ended before.
    pub(crate) async fn stop(mut self) -> Result<(), ServerError> {
        let stopped = tokio::task::spawn_blocking(move || self.end());
        let failed = |error| Err(ServerError::Loop(std::io::Error::other(error)));
        stopped.await.unwrap_or_else(failed)
    }

    fn end(&mut self) -> Result<(), ServerError> {
        self.handle.shutdown().request();
        let panicked = |_| Err(std::io::Error::other("the server's thread panicked").into());
        let end = self.end.take();
        end.map_or(Ok(()), |end| end.join().unwrap_or_else(panicked))
    }
}

impl Drop for OwnStore {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            tracing::error!(error = %Chain(&error), "the store ended badly");
        }
    }
}

/// A thread that returns how the server ended, and a flag that is set before that.
type ServerEnd = (JoinHandle<Result<(), ServerError>>, watch::Receiver<bool>);

/// Waits for the end of a server on a thread of its own: a client may stop it, and it may fail, at any time.
fn wait_for_end(mut server: Server) -> Result<ServerEnd, StoreError> {
    let (ended, has_ended) = watch::channel(false);
    let thread = std::thread::Builder::new().name("kumi-store-end".into());
    let waiting = thread.spawn(move || {
        let end = server.wait();
        ended.send_replace(true);
        end
    });
    let end = waiting.map_err(|error| StoreError::Start(StartError::Thread(error)))?;
    Ok((end, has_ended))
}

fn server_config(
    here: &StoreHere,
    bind: &[IpAddr],
    keys: &Keys,
    state: &StateDir,
    certificate: &NodeCertificate,
) -> Result<ServerConfig, StoreError> {
    let mut config = Config::new();
    let secrets = here.secret_files.iter().map(|(name, path)| {
        let value = secret(path).map_err(|source| StoreError::Secret {
            name: name.clone(),
            path: path.clone(),
            source,
        })?;
        Ok((name.clone(), value))
    });
    let secrets: Vec<(String, String)> = secrets.collect::<Result<_, StoreError>>()?;
    for (name, value) in here
        .directives
        .iter()
        .chain(secrets.iter().map(|(a, b)| (a, b)))
    {
        set(&mut config, name, value, Origin::Startup)?;
    }
    if !config.is_given("bind") {
        // A machine without IPv6 has no such loopback; the hyphen makes it optional.
        let is_optional = |address: &IpAddr| bind.len() > 1 && *address == Ipv6Addr::LOCALHOST;
        let hosts = bind.iter().map(|address| match is_optional(address) {
            true => format!("-{address}"),
            false => address.to_string(),
        });
        let hosts: Vec<String> = hosts.collect();
        set(&mut config, "bind", &hosts.join(" "), Origin::Host)?;
    }
    let mut bound = config.settings().bind.iter();
    if let Some(far) = bound.find(|address| !is_near(&address.host))
        && keys.trust.is_none()
    {
        let address = String::from_utf8_lossy(&far.host).into_owned();
        return Err(StoreError::NoUsers { address });
    }
    let events = here.directives.get("notify-keyspace-events");
    let events = with_events(events.map_or("", String::as_str));
    set(&mut config, "notify-keyspace-events", &events, Origin::Host)?;
    let is_ephemeral = here.ephemeral.unwrap_or(false);
    let keeps = match is_ephemeral {
        true => [("appendonly", "no"), ("save", "")],
        false => [("appendonly", "yes"), ("save", "")],
    };
    for (name, value) in keeps {
        if is_ephemeral || !config.is_given(name) {
            set(&mut config, name, value, Origin::Host)?;
        }
    }
    if !is_ephemeral && !config.is_given("dir") {
        let dir = state.store()?.display().to_string();
        set(&mut config, "dir", &dir, Origin::Host)?;
    }
    let mut server = ServerConfig::from(config);
    server.keeps_files = !is_ephemeral;
    server.by_address = Some(certificate.identity());
    if let Some(trust) = &keys.trust {
        let users = [trust.node_user(), trust.app_user()];
        server.users = users
            .map(|user| HostUser::new(user.name(), user.rules().join(" ")))
            .into();
    }
    Ok(server)
}

/// Whether a host of `bind` is on loopback.
fn is_near(host: &[u8]) -> bool {
    let host = std::str::from_utf8(host).unwrap_or_default();
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Where the node keeps the id of a store without an AOF: beside the data, so that a directory without it is another store,
/// or in the state directory if nothing is saved.
fn id_file(config: &ServerConfig, state: &StateDir) -> Option<StoreIdFile> {
    let settings = config.config.settings();
    match (settings.appendonly, config.keeps_files) {
        (true, _) => None,
        (false, true) => {
            let dir = Path::new(OsStr::from_bytes(&settings.dir));
            Some(StoreIdFile::in_directory(dir))
        }
        (false, false) => Some(StoreIdFile::in_directory(state.path())),
    }
}

fn set(config: &mut Config, name: &str, value: &str, origin: Origin) -> Result<(), StoreError> {
    let pair: (&[u8], &[u8]) = (name.as_bytes(), value.as_bytes());
    match config.set_many(&[pair], origin) {
        Ok(_) => Ok(()),
        Err(source) => Err(StoreError::Directive {
            name: name.to_owned(),
            source,
        }),
    }
}

fn secret(path: &Path) -> std::io::Result<String> {
    use std::io::Read;
    let mut text = String::new();
    let file = std::fs::File::open(path)?;
    file.take(SECRET_LIMIT).read_to_string(&mut text)?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

/// The flags of the configuration, and those that MUF needs.
fn with_events(flags: &str) -> String {
    let has =
        |flag: char| flags.contains(flag) || (flags.contains('A') && ALL_EVENTS.contains(flag));
    let missing = EVENTS.chars().filter(|flag| !has(*flag));
    flags.chars().chain(missing).collect()
}

fn start_error(error: StartError, bind: Option<IpAddr>, port: u16) -> StoreError {
    let is_taken = matches!(&error, StartError::Listen(listen)
        if listen.source.kind() == std::io::ErrorKind::AddrInUse);
    let bind = bind.unwrap_or(place::LOOPBACK);
    match place::taken_port(Service::Store, bind, port, true) {
        TakenPort::Refuse(words) if is_taken => StoreError::PortTaken(words),
        _ => StoreError::Start(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_events_of_messaging_are_added_to_those_of_the_configuration() {
        for (given, expected) in [
            ("", "K$xg"),
            ("Ex", "ExK$g"),
            ("KEA", "KEA"),
            ("AE", "AEK"),
            ("gxK$", "gxK$"),
        ] {
            assert_eq!(with_events(given), expected, "{given}");
        }
    }
}
