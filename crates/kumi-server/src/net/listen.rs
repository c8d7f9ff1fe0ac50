//! The listening sockets: opened from the configuration, or passed in by the caller.
//!
//! Connections are accepted by the front, once the listeners are registered with its poll.

use kumi_store::config::{BindAddress, Settings};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// An address that cannot be listened on: another program has it, or the machine does not. The
/// listeners opened before it have been closed.
#[derive(Debug, thiserror::Error)]
#[error("Could not listen on {address}")]
pub struct ListenError {
    /// The address or path.
    pub address: String,
    /// The system's error.
    pub source: io::Error,
}

impl ListenError {
    fn new(address: impl Into<String>, source: io::Error) -> Self {
        Self {
            address: address.into(),
            source,
        }
    }
}

/// The TCP addresses of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Addresses {
    /// Of clients that speak RESP without encryption.
    pub tcp: Vec<SocketAddr>,
    /// Of clients that speak TLS.
    pub tls: Vec<SocketAddr>,
}

/// The sockets a server listens on.
///
/// ```
/// let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
/// let mut listeners = kumi_server::Listeners::none();
/// listeners.add_tcp(listener)?;
/// assert_eq!(listeners.tcp_addresses().len(), 1);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Listeners(pub(crate) Vec<Listener>);

impl Listeners {
    /// An empty set of listeners; the server needs at least one.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Opens the listeners that `port`, `tls-port`, `bind` and `unixsocket` configure.
    ///
    /// # Errors
    /// The first address that could not be opened.
    pub fn open(settings: &Settings) -> Result<Self, ListenError> {
        Self::open_by(settings, false)
    }

    /// The same; with `by_address`, the addresses of `port` speak plain text on loopback and TLS elsewhere, see
    /// [`ServerConfig::by_address`](crate::ServerConfig::by_address).
    ///
    /// # Errors
    /// The first address that could not be opened.
    pub fn open_by(settings: &Settings, by_address: bool) -> Result<Self, ListenError> {
        let mut listeners = Self(open_tcp(settings, by_address, &[])?.new);
        if let Some(path) = &settings.unixsocket {
            let path = PathBuf::from(OsStr::from_bytes(path));
            let listener = open_unix(&path, settings.unixsocketperm, backlog(settings))
                .map_err(|error| ListenError::new(path.display().to_string(), error))?;
            listeners.0.push(listener);
        }
        Ok(listeners)
    }

    /// Adds a TCP listener that the caller bound.
    ///
    /// # Errors
    /// The socket could not be made non-blocking, or has no address.
    pub fn add_tcp(&mut self, listener: std::net::TcpListener) -> io::Result<()> {
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let socket = mio::net::TcpListener::from_std(listener);
        self.0.push(Listener::Tcp {
            socket,
            address,
            access: Access::Plain,
        });
        Ok(())
    }

    /// Adds a Unix listener that the caller bound. The caller removes the socket file.
    ///
    /// # Errors
    /// The socket could not be made non-blocking, or has no address.
    pub fn add_unix(&mut self, listener: std::os::unix::net::UnixListener) -> io::Result<()> {
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let path = address.as_pathname().unwrap_or(Path::new("")).to_owned();
        let socket = mio::net::UnixListener::from_std(listener);
        self.0.push(Listener::Unix {
            socket,
            path,
            _file: None,
        });
        Ok(())
    }

    /// All TCP addresses that are bound.
    #[must_use]
    pub fn addresses(&self) -> Addresses {
        Addresses {
            tcp: self.tcp_addresses(),
            tls: self.tls_addresses(),
        }
    }

    /// The TCP addresses that are bound, with the port the system chose where it was 0.
    #[must_use]
    pub fn tcp_addresses(&self) -> Vec<SocketAddr> {
        self.0.iter().filter_map(Listener::tcp_address).collect()
    }

    /// The addresses that are bound for TLS.
    #[must_use]
    pub fn tls_addresses(&self) -> Vec<SocketAddr> {
        self.0.iter().filter_map(Listener::tls_address).collect()
    }

    /// An address on which clients of this machine speak plain text.
    pub(crate) fn plain_loopback(&self) -> Option<SocketAddr> {
        let places = self.0.iter().filter_map(Listener::place);
        let mut addresses = places.filter_map(|Place { address, access }| {
            let ip = match address.ip() {
                ip if !ip.is_unspecified() => ip,
                IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
            };
            let is_plain = access.transport(ip) == Transport::Plain;
            (is_plain && is_loopback(ip)).then(|| SocketAddr::new(ip, address.port()))
        });
        addresses.next()
    }

    /// Whether clients of this machine reach the server without TLS: on a loopback address, or by a Unix socket.
    #[must_use]
    pub fn has_local(&self) -> bool {
        self.plain_loopback().is_some() || self.unix_path().is_some()
    }

    /// The path of the first Unix socket.
    pub(crate) fn unix_path(&self) -> Option<&Path> {
        self.0.iter().find_map(Listener::unix_path)
    }

    /// Whether there is no listener.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// How clients of a TCP listener are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// In plain text: `port`.
    Plain,
    /// With TLS: `tls-port`.
    Tls,
    /// In plain text if they have connected to a loopback address, else with TLS and as named users only. The address is
    /// that of the server's end, which is the listener's own unless it listens on all addresses. Packets to a loopback
    /// address do not come from other machines.
    ByAddress,
}

/// How one connection is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    Plain,
    Tls,
    /// TLS with the certificate of the program around the server; the default user may not log in.
    TlsForUsers,
}

impl Access {
    /// How a connection to this address of the machine is served.
    pub(crate) fn transport(self, local: IpAddr) -> Transport {
        match self {
            Access::Plain => Transport::Plain,
            Access::Tls => Transport::Tls,
            Access::ByAddress if is_loopback(local) => Transport::Plain,
            Access::ByAddress => Transport::TlsForUsers,
        }
    }
}

fn is_loopback(ip: IpAddr) -> bool {
    ip.to_canonical().is_loopback()
}

/// One listening socket.
#[derive(Debug)]
pub(crate) enum Listener {
    Tcp {
        socket: mio::net::TcpListener,
        address: SocketAddr,
        access: Access,
    },
    Unix {
        socket: mio::net::UnixListener,
        path: PathBuf,
        /// Removes the socket file on drop. `None` if the caller bound the socket.
        _file: Option<SocketFile>,
    },
}

impl Listener {
    /// Where clients connect without TLS.
    pub(crate) fn tcp_address(&self) -> Option<SocketAddr> {
        self.place()
            .and_then(|place| (!place.is_tls()).then_some(place.address))
    }

    /// Where clients connect with TLS.
    pub(crate) fn tls_address(&self) -> Option<SocketAddr> {
        self.place()
            .and_then(|place| place.is_tls().then_some(place.address))
    }

    pub(crate) fn place(&self) -> Option<Place> {
        match self {
            Listener::Tcp {
                address, access, ..
            } => Some(Place {
                address: *address,
                access: *access,
            }),
            Listener::Unix { .. } => None,
        }
    }

    pub(crate) fn unix_path(&self) -> Option<&Path> {
        match self {
            Listener::Tcp { .. } => None,
            Listener::Unix { path, .. } => Some(path),
        }
    }
}

/// A socket file that is removed with its listener.
#[derive(Debug)]
pub(crate) struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.0) {
            tracing::debug!(path = %self.0.display(), %error, "the socket file was gone already");
        }
    }
}

/// An address that is listened on, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) address: SocketAddr,
    pub(crate) access: Access,
}

impl Place {
    /// Whether its clients speak TLS. All addresses together count as one of another machine.
    fn is_tls(self) -> bool {
        self.access.transport(self.address.ip()) != Transport::Plain
    }
}

/// The result of [`open_tcp`]: listeners that were already open, and those it opened.
#[derive(Debug, Default)]
pub(crate) struct Opened {
    pub(crate) kept: Vec<Place>,
    pub(crate) new: Vec<Listener>,
}

/// Opens every address of `bind` on `port` and `tls-port` that is not `open` yet; none for a port that is 0. `by_address`
/// says that `port` is [`Access::ByAddress`].
pub(crate) fn open_tcp(
    settings: &Settings,
    by_address: bool,
    open: &[Place],
) -> Result<Opened, ListenError> {
    let mut opened = Opened::default();
    let access = match by_address {
        true => Access::ByAddress,
        false => Access::Plain,
    };
    for (port, access) in [(settings.port, access), (settings.tls.port, Access::Tls)] {
        if port != 0 {
            open_port(settings, port, access, open, &mut opened)?;
        }
    }
    Ok(opened)
}

fn open_port(
    settings: &Settings,
    port: u16,
    access: Access,
    open: &[Place],
    opened: &mut Opened,
) -> Result<(), ListenError> {
    let before = opened.kept.len() + opened.new.len();
    for bind in &settings.bind {
        let host = String::from_utf8_lossy(&bind.host).into_owned();
        let name = format!("{host}:{port}");
        let result = resolve(&bind.host, port).and_then(|address| {
            let place = Place { address, access };
            if open.contains(&place) {
                opened.kept.push(place);
            } else {
                opened.new.push(open_address(place, backlog(settings))?);
            }
            Ok(())
        });
        match result {
            Ok(()) => {}
            Err(error) if is_passed_over(bind, &error) => {
                tracing::info!(address = name, %error, "passing over an address");
            }
            Err(error) => return Err(ListenError::new(name, error)),
        }
    }
    if opened.kept.len() + opened.new.len() == before && !settings.bind.is_empty() {
        let name = format!("any bind address, port {port}");
        let error = io::Error::from(io::ErrorKind::AddrNotAvailable);
        return Err(ListenError::new(name, error));
    }
    Ok(())
}

pub(crate) fn backlog(settings: &Settings) -> i32 {
    i32::try_from(settings.tcp_backlog).unwrap_or(i32::MAX)
}

/// Whether an address may be skipped: it is marked optional and the machine does not have it, or the machine has no
/// IPv6.
fn is_passed_over(bind: &BindAddress, error: &io::Error) -> bool {
    use rustix::io::Errno;
    let Some(errno) = Errno::from_io_error(error) else {
        return false;
    };
    let unsupported = [
        Errno::NOPROTOOPT,
        Errno::PROTONOSUPPORT,
        Errno::SOCKTNOSUPPORT,
        Errno::PFNOSUPPORT,
        Errno::AFNOSUPPORT,
    ];
    unsupported.contains(&errno) || bind.optional && errno == Errno::ADDRNOTAVAIL
}

fn resolve(host: &[u8], port: u16) -> io::Result<SocketAddr> {
    let ip: IpAddr = match host {
        b"*" => Ipv4Addr::UNSPECIFIED.into(),
        b"::*" => Ipv6Addr::UNSPECIFIED.into(),
        host => {
            let host = std::str::from_utf8(host)
                .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "not a host name"))?;
            return (host, port)
                .to_socket_addrs()?
                .next()
                .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the name has no address"));
        }
    };
    Ok(SocketAddr::new(ip, port))
}

pub(crate) fn open_address(place: Place, backlog: i32) -> io::Result<Listener> {
    let Place { address, access } = place;
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(backlog)?;
    let listener = std::net::TcpListener::from(socket);
    let address = listener.local_addr()?;
    Ok(Listener::Tcp {
        socket: mio::net::TcpListener::from_std(listener),
        address,
        access,
    })
}

/// A socket file left by an earlier run is replaced, any other file is not.
fn open_unix(path: &Path, permissions: u32, backlog: i32) -> io::Result<Listener> {
    if fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket()) {
        fs::remove_file(path)?;
    }
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    socket.bind(&SockAddr::unix(path)?)?;
    // Absolute, because the working directory may have changed when the file is removed.
    let file = SocketFile(std::path::absolute(path)?);
    if permissions != 0 {
        fs::set_permissions(path, fs::Permissions::from_mode(permissions))?;
    }
    socket.listen(backlog)?;
    Ok(Listener::Unix {
        socket: mio::net::UnixListener::from_std(socket.into()),
        path: path.to_owned(),
        _file: Some(file),
    })
}
