//! What a server is started with, and why it ends.

use crate::base::log::LogControl;
use crate::net::tls::config::TlsIdentity;
use kumi_store::{Config, DataId, HostUser};
use std::io;
use std::path::PathBuf;

/// What a server is started with.
///
/// ```
/// let config = kumi_store::Config::new();
/// let config = kumi_server::ServerConfig::from(config);
/// assert_eq!(config.config.settings().port, 6379);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerConfig {
    /// Every directive.
    pub config: Config,
    /// The file the directives came from, which CONFIG REWRITE writes to.
    pub file: Option<PathBuf>,
    /// Makes CONFIG SET loglevel act.
    pub log: Option<LogControl>,
    /// What INFO calls the memory allocator, which is the program's choice and not the library's.
    pub allocator: String,
    /// Whether a supervisor was notified that the server is ready, as INFO shows.
    pub supervised: bool,
    /// Whether the process is the server's and ends with it: nothing has to be freed, and CONFIG SET dir changes the
    /// working directory.
    pub ends_process: bool,
    /// Whether data is loaded from files at startup and kept in them: the RDB file, the append-only file.
    pub keeps_files: bool,
    /// The id of the data set, unless the data that is loaded brings its own; none draws a new one. It is for a program that
    /// counts a data set that was never saved as the one of the server's run before.
    pub data_id: Option<DataId>,
    /// Users that the program needs. Their names begin with `kumi-`; commands do not change them, and no file has them.
    pub users: Vec<HostUser>,
    /// With a certificate here, each address of `bind` is served by what it is: a loopback address speaks plain text, every
    /// other one TLS with this certificate, both on `port`. With TLS only named users log in: the default user may not, and
    /// protected mode does not apply. If all addresses are listened on, each connection goes by the address that it was
    /// made to.
    pub by_address: Option<TlsIdentity>,
}

impl From<Config> for ServerConfig {
    fn from(config: Config) -> Self {
        Self {
            config,
            file: None,
            log: None,
            allocator: "libc".into(),
            supervised: false,
            ends_process: false,
            keeps_files: false,
            data_id: None,
            users: Vec::new(),
            by_address: None,
        }
    }
}

impl Default for ServerConfig {
    fn default() -> Self {
        Config::new().into()
    }
}

/// Why a server could not start or go on. The data it held is gone.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The system refused something the loop cannot do without.
    #[error("the event loop failed")]
    Loop(#[from] io::Error),
    /// The data set on disk could not be read. Serving without it would put it at risk.
    #[error("Fatal error loading the DB: the data in {path} cannot be loaded: {error}")]
    Load {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, and where.
        error: String,
    },
    /// The content of the RDB file is damaged. The file is as it was.
    #[error("Fatal error loading the DB: the data in {path} cannot be loaded: {error}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, and where.
        error: String,
    },
    /// The append-only file cannot be written, and `appendfsync always` asks for it before each reply. The replies to
    /// writes that are not in the file were not sent.
    #[error("the append-only file cannot be written")]
    Aof(#[source] io::Error),
    /// The server was stopped through its handle, and the RDB file could not be written. The one before is as it was.
    #[error("the data could not be saved")]
    Save(#[source] io::Error),
    /// The users of the configuration or of its ACL file are not valid. Nothing was served.
    #[error("{reason}")]
    Users {
        /// Which line is wrong, and why, in the words of Redis.
        reason: String,
    },
    /// A `tls-*` directive or a file that one names cannot be used. Nothing was served.
    #[error("Failed to configure TLS: {reason}")]
    Tls {
        /// The directive, and what is wrong with it.
        reason: String,
    },
    /// A defect in the engine: it panicked in the middle of a change, so that its data cannot be
    /// trusted any more. The log has the panic with its backtrace.
    #[error("the engine panicked in the middle of a change; its data cannot be trusted")]
    Engine,
}
