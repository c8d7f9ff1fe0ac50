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
use crate::core::store_pin::StoreId;
use crate::trust::{self, Secret, Trust};
use kumi_common::Chain;
use kumi_server::{
    Config, ControlError, HostUser, ListenError, Listeners, Server, ServerConfig, ServerError,
    ServerHandle, StartError,
};
use kumi_store::config::{ConfigError, Origin};
use std::ffi::OsStr;
use std::io::{BufRead, Write};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::watch;

/// The keyspace events that MUF needs: calls, expired leases, and changes of TTLs.
const EVENTS: &str = "K$xg";

/// What `A` of `notify-keyspace-events` stands for, as far as MUF needs it.
const ALL_EVENTS: &str = "$xg";

/// The user that sets directives. It exists for the moment of a reload.
const CONFIG_USER: &str = "kumi-config";

/// Bytes of a directory in which a socket has a name that the system takes, which is 104 or 108 bytes at most.
const MAX_SOCKET_DIRECTORY: usize = 90;

/// How long the server may take to set them.
const CONFIG_WAIT: Duration = Duration::from_secs(5);

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
    /// Another program listens there. The store's port is a promise to its clients, and is not replaced.
    #[error(
        "{} is in use, where the store should listen: a store may be running there already; stop it, or choose another port with --port PORT",
        .0.address
    )]
    AddressTaken(#[source] ListenError),
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

/// A store whose addresses are taken and that does not run yet: nothing was loaded.
pub(crate) struct OpenStore {
    config: ServerConfig,
    listeners: Listeners,
    /// A socket of the node's own, for a store that this machine reaches with TLS only.
    socket: Option<OwnSocket>,
    /// Where its id is kept, if the data does not carry it.
    id_file: Option<StoreIdFile>,
}

/// A socket in a directory that only this user may enter. Both are removed with the store, the directory if it is empty.
struct OwnSocket {
    directory: PathBuf,
    path: PathBuf,
}

impl Drop for OwnSocket {
    fn drop(&mut self) {
        // Somebody may have removed it, and the state directory is not empty.
        let _ = std::fs::remove_file(&self.path);
        let _ = std::fs::remove_dir(&self.directory);
    }
}

/// A store that runs. Dropping it stops it, and waits for that.
pub(crate) struct OwnStore {
    handle: ServerHandle,
    /// Waits for the server's end, and returns how it ended.
    end: Option<JoinHandle<Result<(), ServerError>>>,
    has_ended: watch::Receiver<bool>,
    id: StoreId,
    port: u16,
    socket: Option<OwnSocket>,
}

impl OpenStore {
    /// Takes the addresses. `given` is what the program around the node starts its server with; its directives are complete
    /// then, and those of the configuration are not applied again.
    pub(crate) fn open(
        here: &StoreHere,
        given: Option<&ServerConfig>,
        bind: &[IpAddr],
        keys: &Keys,
        state: &StateDir,
        certificate: &NodeCertificate,
    ) -> Result<Self, StoreError> {
        let mut config = server_config(here, given, bind, keys, state, certificate)?;
        let id_file = id_file(&config, state);
        config.data_id = match &id_file {
            Some(file) => file.read()?,
            None => None,
        };
        let listening = Listeners::open_by(config.config.settings(), true);
        let mut listeners = listening.map_err(|error| start_error(error.into()))?;
        if listeners.is_empty() {
            return Err(StoreError::Start(StartError::NothingToListenOn));
        }
        let mut socket = None;
        if !listeners.has_local() {
            socket = Some(own_socket(&mut listeners, state)?);
        }
        Ok(Self {
            config,
            listeners,
            socket,
            id_file,
        })
    }

    /// Starts it, and returns when clients are served: data has been loaded by then. The certificate that comes back has the
    /// store's id among its names.
    pub(crate) async fn start(
        self,
        certificate: NodeCertificate,
    ) -> Result<(OwnStore, NodeCertificate), StoreError> {
        let starting = tokio::task::spawn_blocking(move || self.start_now(certificate));
        starting.await.unwrap_or(Err(StoreError::Panicked))
    }

    fn start_now(
        self,
        certificate: NodeCertificate,
    ) -> Result<(OwnStore, NodeCertificate), StoreError> {
        let settings = self.config.config.settings();
        let port = settings.port;
        let kept = self.config.data_id;
        let server = Server::start_on(self.config, self.listeners).map_err(start_error)?;
        let handle = server.handle().clone();
        let id = handle.data_id();
        if let Some(file) = self.id_file.filter(|_| kept != Some(id))
            && let Err(error) = file.write(id)
        {
            tracing::warn!(error = %Chain(&error), "the store's id is not kept; it is another store after a restart");
        }
        let id = id.to_string();
        let named = trust::StoreId::new(&id).map_err(CertificateError::from)?;
        let certificate = certificate.with_store(named)?;
        handle.replace_identity(certificate.identity())?;
        let id = id.parse().map_err(|_| StoreError::Panicked)?;
        let (ended, has_ended) = watch::channel(false);
        let mut server = server;
        let waiting = std::thread::Builder::new().name("kumi-store-end".into());
        let end = waiting.spawn(move || {
            let end = server.wait();
            ended.send_replace(true);
            end
        });
        let end = end.map_err(|error| StoreError::Start(StartError::Thread(error)))?;
        let store = OwnStore {
            handle,
            end: Some(end),
            has_ended,
            id,
            port,
            socket: self.socket,
        };
        Ok((store, certificate))
    }
}

impl OwnStore {
    /// The id of its data set.
    pub(crate) fn id(&self) -> &StoreId {
        &self.id
    }

    /// The port that other nodes reach it by, the same on every address; 0 if they do not.
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

    /// The URL by which this machine reaches it, without a user.
    pub(crate) fn local_url(&self) -> String {
        match &self.socket {
            Some(socket) => format!("redis+unix://{}", socket.path.display()),
            None => self.handle.url().to_owned(),
        }
    }

    /// True when it has ended: a client sent SHUTDOWN, it failed, or it was stopped.
    pub(crate) fn has_ended(&self) -> watch::Receiver<bool> {
        self.has_ended.clone()
    }

    /// Stops it: it replies to what it has received, and saves what it has to. Returns how it ended if it had ended before. A
    /// store whose stop stands for a signal and that cannot save goes on, and this waits until it has ended.
    pub(crate) async fn stop(self) -> Result<(), ServerError> {
        let stopped = tokio::task::spawn_blocking(move || {
            let mut store = self;
            store.end()
        });
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

/// Sets directives of a running store, as CONFIG SET does: all or none. Waits for the server.
///
/// # Errors
/// Why the server refused them, in its words.
pub(crate) fn set_directives(
    handle: &ServerHandle,
    pairs: &[(String, String)],
    trust: Option<&Trust>,
) -> Result<(), String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| error.to_string())?;
    let password = Secret::of_bytes(&bytes);
    // The node's own users may not change directives: one that may exists for this moment.
    let rules = format!("reset on >{} +config|set", password.expose());
    let usual = trust.map_or_else(Vec::new, users);
    let mut with_one = usual.clone();
    with_one.push(HostUser::new(CONFIG_USER, rules));
    let refused = |error: ControlError| error.to_string();
    handle.set_users(with_one).map_err(refused)?;
    let set = config_set(handle, pairs, password.expose());
    handle.set_users(usual).map_err(refused)?;
    set
}

fn config_set(
    handle: &ServerHandle,
    pairs: &[(String, String)],
    password: &str,
) -> Result<(), String> {
    let failed = |error: std::io::Error| error.to_string();
    let stream = handle.connect().map_err(failed)?;
    stream.set_read_timeout(Some(CONFIG_WAIT)).map_err(failed)?;
    let mut stream = std::io::BufReader::new(stream);
    let pairs = pairs.iter().flat_map(|(name, value)| [&**name, &**value]);
    let set: Vec<&str> = ["CONFIG", "SET"].into_iter().chain(pairs).collect();
    for words in [&["AUTH", CONFIG_USER, password][..], &set[..]] {
        stream
            .get_mut()
            .write_all(&request(words))
            .map_err(failed)?;
        let mut reply = String::new();
        stream.read_line(&mut reply).map_err(failed)?;
        match reply.trim_end().strip_prefix('-') {
            Some(error) => return Err(error.to_owned()),
            None if reply.starts_with('+') => {}
            None => return Err("the store did not reply".into()),
        }
    }
    Ok(())
}

fn request(words: &[&str]) -> Vec<u8> {
    let mut request = format!("*{}\r\n", words.len());
    for word in words {
        request += &format!("${}\r\n{word}\r\n", word.len());
    }
    request.into_bytes()
}

/// Lets this node reach a store that has no listener without TLS on this machine.
fn own_socket(listeners: &mut Listeners, state: &StateDir) -> Result<OwnSocket, StoreError> {
    let mut directory = state.path().to_owned();
    if directory.as_os_str().len() > MAX_SOCKET_DIRECTORY {
        directory = std::env::temp_dir().join(format!("kumi-store-{}", std::process::id()));
    }
    let socket = OwnSocket {
        path: directory.join("store.sock"),
        directory,
    };
    let failed = |source| {
        let address = socket.path.display().to_string();
        StoreError::Start(StartError::Listen(ListenError { address, source }))
    };
    // A node that was killed has left it. No other one runs in this directory.
    let _ = std::fs::remove_file(&socket.path);
    let mut made = std::fs::DirBuilder::new();
    match made.mode(0o700).create(&socket.directory) {
        Err(error) if socket.directory != state.path() => return Err(failed(error)),
        _ => {}
    }
    let listener = UnixListener::bind(&socket.path).map_err(failed)?;
    listeners.add_unix(listener).map_err(failed)?;
    Ok(socket)
}

/// Applies the directives of the configuration, those in files of their own included.
///
/// # Errors
/// If a value does not fit, or a file cannot be read. The configuration may have been changed in part.
pub fn apply_directives(here: &StoreHere, config: &mut Config) -> Result<(), StoreError> {
    for (name, value) in &here.directives {
        set(config, name, value, Origin::Startup)?;
    }
    for (name, path) in &here.secret_files {
        let value = secret(path).map_err(|source| StoreError::Secret {
            name: name.clone(),
            path: path.clone(),
            source,
        })?;
        set(config, name, &value, Origin::Startup)?;
    }
    Ok(())
}

fn server_config(
    here: &StoreHere,
    given: Option<&ServerConfig>,
    bind: &[IpAddr],
    keys: &Keys,
    state: &StateDir,
    certificate: &NodeCertificate,
) -> Result<ServerConfig, StoreError> {
    let mut server = match given {
        Some(given) => given.clone(),
        None => {
            let mut config = Config::new();
            apply_directives(here, &mut config)?;
            ServerConfig::from(config)
        }
    };
    let config = &mut server.config;
    if !config.is_given("bind") {
        // A machine without IPv6 has no such loopback; the hyphen makes it optional.
        let is_optional = |address: &IpAddr| bind.len() > 1 && *address == Ipv6Addr::LOCALHOST;
        let hosts = bind.iter().map(|address| match is_optional(address) {
            true => format!("-{address}"),
            false => address.to_string(),
        });
        let hosts: Vec<String> = hosts.collect();
        set(config, "bind", &hosts.join(" "), Origin::Host)?;
    }
    let mut bound = config.settings().bind.iter();
    if let Some(far) = bound.find(|address| !is_near(&address.host))
        && keys.now().trust.is_none()
    {
        let address = String::from_utf8_lossy(&far.host).into_owned();
        return Err(StoreError::NoUsers { address });
    }
    let events = config.text("notify-keyspace-events").unwrap_or_default();
    let events = with_events(&String::from_utf8_lossy(&events));
    set(config, "notify-keyspace-events", &events, Origin::Host)?;
    let is_ephemeral = here.ephemeral.unwrap_or(false);
    let keeps = match is_ephemeral {
        true => [("appendonly", "no"), ("save", "")],
        false => [("appendonly", "yes"), ("save", "")],
    };
    for (name, value) in keeps {
        if is_ephemeral || !config.is_given(name) {
            set(config, name, value, Origin::Host)?;
        }
    }
    if !is_ephemeral && !config.is_given("dir") {
        let dir = state.store()?.display().to_string();
        set(config, "dir", &dir, Origin::Host)?;
    }
    server.keeps_files = !is_ephemeral;
    server.by_address = Some(certificate.identity());
    if let Some(trust) = &keys.now().trust {
        server.users = users(trust);
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

/// The users that the node needs.
pub(crate) fn users(trust: &Trust) -> Vec<HostUser> {
    let users = [trust.node_user(), trust.app_user()];
    users
        .map(|user| HostUser::new(user.name(), user.rules().join(" ")))
        .into()
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

/// The value in a file, without the end of its line.
pub(crate) fn secret(path: &Path) -> std::io::Result<String> {
    use std::io::Read;
    let mut text = String::new();
    let file = std::fs::File::open(path)?;
    file.take(SECRET_LIMIT).read_to_string(&mut text)?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

/// The flags of the configuration, and those that MUF needs.
pub(crate) fn with_events(flags: &str) -> String {
    let has =
        |flag: char| flags.contains(flag) || (flags.contains('A') && ALL_EVENTS.contains(flag));
    let missing = EVENTS.chars().filter(|flag| !has(*flag));
    flags.chars().chain(missing).collect()
}

fn start_error(error: StartError) -> StoreError {
    match error {
        StartError::Listen(error) if error.source.kind() == std::io::ErrorKind::AddrInUse => {
            StoreError::AddressTaken(error)
        }
        other => StoreError::Start(other),
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
