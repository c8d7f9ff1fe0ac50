//! `kumi.kdl`: what a node is, where its store is, and what its worker runs.
//!
//! Pure: a text becomes a [`NodeConfig`] or [`Diagnostics`] with all errors and their places. No file is opened and no
//! environment read. The command line's flags are a [`NodeConfig`] too, laid over the file's by [`NodeConfig::merge`].
//! [`SETTINGS`] has every name; `docs/kumi-kdl.md` is written from it.
//!
//! ```
//! use kumi_node::config::NodeConfig;
//!
//! let text = "node \"a\" { bind \"10.0.0.1\" }\nwork \"resize\" exec=\"./resize\" concurrency=4\n";
//! let config = NodeConfig::parse("kumi.kdl", text)?;
//! assert_eq!(config.work[0].concurrency, 4);
//!
//! let errors = NodeConfig::parse("kumi.kdl", "nod \"a\"").unwrap_err();
//! assert!(errors.to_string().contains("did you mean node?"));
//! # Ok::<(), kumi_node::config::Diagnostics>(())
//! ```

mod change;
mod fields;
mod read;
mod secrets;
mod settings;
#[cfg(test)]
mod tests;
mod values;
mod write;

pub use change::{Change, ChangeKind, Changes};
pub use kumi_kdl::{Diagnostic, Diagnostics, MAX_FILE_BYTES};
pub use settings::{Place, Reload, SETTINGS, Section, Setting};
pub use values::{advertised, backoff, duration, seed};

use kumi_cluster::Authority;
use kumi_common::Name;
use kumi_jobs::{Backoff, Priority, Schedule, TaskEnvelope, Timestamp};
use kumi_muf::core::Pattern;
use kumi_store::Config;
use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::time::Duration;
use write::in_url;

/// UDP port of membership.
pub const MEMBERSHIP_PORT: u16 = 7400;
/// TCP port of HTTP.
pub const HTTP_PORT: u16 = 7480;
/// Entries of one kind that a file may have; a worker has as many handlers at most.
pub const MAX_ENTRIES: usize = 256;
/// The queue of entries that name none.
const DEFAULT_QUEUE: &str = "default";
/// Directives of the store whose values are paths, relative to the file they stand in. Names of files below `dir`, such as
/// `dbfilename`, are none.
const PATH_DIRECTIVES: [&str; 12] = [
    "aclfile",
    "dir",
    "logfile",
    "pidfile",
    "tls-ca-cert-dir",
    "tls-ca-cert-file",
    "tls-cert-file",
    "tls-client-cert-file",
    "tls-client-key-file",
    "tls-dh-params-file",
    "tls-key-file",
    "unixsocket",
];
/// Parameters of a store's URL whose values are paths.
const PATH_PARAMETERS: [&str; 3] = ["cacert=", "cert=", "key="];

/// The configuration of a node. An unset value is left to the defaults, or to what is laid over it.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct NodeConfig {
    /// The node itself and its membership.
    pub node: NodeSection,
    /// The store it runs or uses.
    pub store: StoreSection,
    /// The HTTP listener.
    pub http: HttpSection,
    /// Task types that its worker runs.
    pub work: Vec<Work>,
    /// Requests that it answers.
    pub serve: Vec<Serve>,
    /// Programs that it keeps running.
    pub run: Vec<Run>,
    /// Schedules that it declares.
    pub cron: Vec<Cron>,
}

/// `node { ... }`: the node itself and its membership.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct NodeSection {
    /// Its name among the members.
    pub name: Option<Name>,
    /// Addresses that it listens on, for all it offers.
    pub bind: Vec<IpAddr>,
    /// UDP port of membership.
    pub port: Option<u16>,
    /// The host name or address by which others reach it.
    pub advertise: Option<String>,
    /// Nodes to join, each with its port.
    pub join: Vec<Authority>,
    /// The file with the cluster's key, or with two.
    pub key_file: Option<PathBuf>,
    /// The operator's own certificates, instead of what is derived from the key.
    pub certificates: Option<CertificateFiles>,
    /// The network that the timeouts of membership are for.
    pub preset: Option<Preset>,
    /// Where data, key and recorded ports are kept.
    pub state_dir: Option<PathBuf>,
    /// What is logged.
    pub log_level: Option<LogLevel>,
    /// How long running tasks may go on when the node stops.
    pub stop_within: Option<Duration>,
}

/// PEM files of a node in a cluster with its own certificate authority.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CertificateFiles {
    /// The node's certificate chain.
    pub certificate: PathBuf,
    /// The private key of the certificate.
    pub key: PathBuf,
    /// The authorities that sign the certificates of all nodes.
    pub authority: PathBuf,
}

impl CertificateFiles {
    /// The files of a certificate chain, its private key, and the authorities.
    #[must_use]
    pub fn new(certificate: PathBuf, key: PathBuf, authority: PathBuf) -> Self {
        Self {
            certificate,
            key,
            authority,
        }
    }
}

/// Networks whose timeouts are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Preset {
    /// One site; a death is noticed within about ten seconds.
    #[default]
    Lan,
    /// Several sites, with longer round trips and more loss.
    Wan,
    /// Processes on one machine, for development.
    Local,
}

impl Preset {
    const ALL: [(&'static str, Self); 3] = [
        ("lan", Self::Lan),
        ("wan", Self::Wan),
        ("local", Self::Local),
    ];
}

/// How much is logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum LogLevel {
    /// What failed.
    Error,
    /// What needs attention.
    #[default]
    Warn,
    /// Life-cycle events.
    Info,
    /// What is done, in detail.
    Debug,
    /// Everything.
    Trace,
}

impl LogLevel {
    const ALL: [(&'static str, Self); 5] = [
        ("error", Self::Error),
        ("warn", Self::Warn),
        ("info", Self::Info),
        ("debug", Self::Debug),
        ("trace", Self::Trace),
    ];
}

/// `store ...`: the store that a node runs or uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreSection {
    /// Not said: a node that joins no other runs one.
    #[default]
    Unset,
    /// `store #false`: this node runs none, and uses the cluster's.
    Off,
    /// This node runs the cluster's store.
    Here(StoreHere),
    /// A Redis, Valkey or Redis Cluster outside of the cluster.
    Outside(StoreUrl),
}

/// A store that the node runs. Values of directives that may be secrets are not in its `Debug`.
#[derive(Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreHere {
    /// Whether nothing is kept when the node stops; everything is kept unless this is true.
    pub ephemeral: Option<bool>,
    /// Directives of redis.conf by their primary names; each was accepted by the table of kumi-store.
    pub directives: BTreeMap<String, String>,
    /// Directives whose values are secrets, each with the file that holds the value.
    pub secret_files: BTreeMap<String, PathBuf>,
}

/// Where a store outside of the cluster is. A password is not in its `Debug`.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreUrl {
    /// The URL. One from a file has no password.
    Plain(String),
    /// A file that holds the URL, which may have a password.
    File(PathBuf),
}

impl fmt::Debug for StoreHere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |(name, value): (&String, &String)| match Config::is_sensitive(name.as_bytes())
        {
            true => (name.clone(), "...".to_owned()),
            false => (name.clone(), value.clone()),
        };
        let directives: BTreeMap<String, String> = self.directives.iter().map(shown).collect();
        f.debug_struct("StoreHere")
            .field("ephemeral", &self.ephemeral)
            .field("directives", &directives)
            .field("secret_files", &self.secret_files)
            .finish()
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain(url) => write!(f, "Plain({:?})", kumi_muf::without_password(url)),
            Self::File(file) => write!(f, "File({file:?})"),
        }
    }
}

/// `http { ... }`: health, readiness and metrics.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpSection {
    /// Whether it listens.
    pub on: Option<bool>,
    /// Addresses, if they are not those of the node.
    pub bind: Vec<IpAddr>,
    /// TCP port.
    pub port: Option<u16>,
    /// Names that a `Host` header may have besides IP addresses and localhost.
    pub allow_hosts: Vec<String>,
    /// The file with the token for `/metrics` from other machines, instead of the one derived from the key.
    pub token_file: Option<PathBuf>,
}

/// `work "TYPE" ...`: a task type and the command that runs its tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Work {
    /// The task type.
    pub task_type: String,
    /// The queue; the default one if there is none.
    pub queue: Option<String>,
    /// The shell command.
    pub exec: String,
    /// Tasks at once.
    pub concurrency: usize,
    /// How long claims hold without a renewal.
    pub lease: Duration,
    /// When failed tasks are tried again, unless their producer said it.
    pub backoff: Option<Backoff>,
    /// A run that takes longer is stopped and counts as failed.
    pub time_limit: Option<Duration>,
    /// How long after SIGTERM a command is killed.
    pub kill_after: Duration,
    /// Directory and environment of the command.
    pub surroundings: Surroundings,
}

/// `serve "PATTERN" ...`: requests and the program that answers them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Serve {
    /// Which requests.
    pub pattern: Pattern,
    /// The program.
    pub command: ServeCommand,
    /// The name of the unit; the node's if there is none.
    pub unit: Option<String>,
    /// Requests at once.
    pub concurrency: usize,
    /// How long a request may be worked on before it is answered as an error.
    pub handler_timeout: Duration,
    /// Directory and environment of the program.
    pub surroundings: Surroundings,
}

/// How a program answers requests.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServeCommand {
    /// A shell command per request.
    Exec(String),
    /// One shell command that answers all requests, line by line.
    Pipe(String),
}

/// `run "NAME" ...`: a program that is kept running.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Run {
    /// Names it in the log and in status.
    pub name: Name,
    /// The shell command.
    pub exec: String,
    /// How long after SIGTERM it is killed.
    pub stop_grace: Duration,
    /// When it is started again.
    pub restart: Restart,
    /// Directory and environment of the program.
    pub surroundings: Surroundings,
}

/// When a program that ended is started again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Restart {
    /// However it ended.
    #[default]
    Always,
    /// Not if it ended with exit code 0.
    OnFailure,
}

impl Restart {
    const ALL: [(&'static str, Self); 2] =
        [("always", Self::Always), ("on-failure", Self::OnFailure)];
}

/// Directory and environment of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Surroundings {
    /// The working directory.
    pub dir: Option<PathBuf>,
    /// Variables besides those of the node.
    pub env: BTreeMap<String, String>,
    /// A file with lines `NAME=VALUE`, for secrets.
    pub env_file: Option<PathBuf>,
}

/// `cron "NAME" "EXPRESSION" ...`: a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cron {
    /// Names the schedule within its queue.
    pub name: String,
    /// Minute, hour, day of month, month, day of week.
    pub expression: String,
    /// The time zone of the expression.
    pub zone: String,
    /// The type of its tasks.
    pub task_type: String,
    /// Their payload, as JSON text.
    pub payload: String,
    /// The queue; the default one if there is none.
    pub queue: Option<String>,
    /// Their priority.
    pub priority: Priority,
    /// Their attempts, the first included.
    pub max_attempts: u32,
}

impl NodeConfig {
    /// Reads the text of a file; `name` is the file's name in errors.
    ///
    /// # Errors
    /// All that is wrong with the text. Lines that seem to hold a secret are masked.
    pub fn parse(name: &str, text: &str) -> Result<Self, Diagnostics> {
        read::parse(name, text)
    }

    /// The configuration of a file with that of the command line laid over it: what `flags` says replaces what `file`
    /// says. Directives are replaced one by one, lists as a whole, and entries of programs by their names.
    ///
    /// # Errors
    /// If the flags set something of a store that this node runs, and the file says that it runs none.
    pub fn merge(file: Self, flags: Self) -> Result<Self, MergeError> {
        Ok(Self {
            node: file.node.overlaid(flags.node),
            store: file.store.overlaid(flags.store)?,
            http: file.http.overlaid(flags.http),
            work: replaced(file.work, flags.work, Work::key),
            serve: replaced(file.serve, flags.serve, |serve| serve.pattern.to_string()),
            run: replaced(file.run, flags.run, |run| run.name.to_string()),
            cron: replaced(file.cron, flags.cron, Cron::key),
        })
    }

    /// Takes relative paths as paths below the directory of the file they stand in, which is also where its programs run.
    pub fn resolve(&mut self, directory: &Path) {
        let node = &mut self.node;
        let mut paths = vec![
            &mut node.key_file,
            &mut node.state_dir,
            &mut self.http.token_file,
        ];
        let programs = self.work.iter_mut().map(|work| &mut work.surroundings);
        let programs = programs.chain(self.serve.iter_mut().map(|serve| &mut serve.surroundings));
        for program in programs.chain(self.run.iter_mut().map(|run| &mut run.surroundings)) {
            program.dir.get_or_insert_default();
            paths.extend([&mut program.dir, &mut program.env_file]);
        }
        let mut paths: Vec<&mut PathBuf> = paths.into_iter().flatten().collect();
        if let Some(files) = &mut node.certificates {
            paths.extend([&mut files.certificate, &mut files.key, &mut files.authority]);
        }
        match &mut self.store {
            StoreSection::Here(here) => {
                paths.extend(here.secret_files.values_mut());
                for name in PATH_DIRECTIVES {
                    if let Some(value) = here.directives.get_mut(name) {
                        resolve_directive(value, directory);
                    }
                }
            }
            StoreSection::Outside(StoreUrl::File(file)) => paths.push(file),
            StoreSection::Outside(StoreUrl::Plain(url)) => *url = resolved_url(url, directory),
            StoreSection::Unset | StoreSection::Off => {}
        }
        for path in paths {
            // `join` alone would leave a slash behind the directory.
            *path = match path.as_os_str().is_empty() {
                true => directory.to_owned(),
                false => directory.join(&path),
            };
        }
    }

    /// The configuration with the defaults that do not depend on the machine.
    #[must_use]
    pub fn with_defaults(mut self) -> Self {
        let loopback: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
        let node = &mut self.node;
        if node.bind.is_empty() && node.join.is_empty() {
            node.bind.extend(loopback);
        }
        node.port.get_or_insert(MEMBERSHIP_PORT);
        node.preset.get_or_insert_default();
        node.log_level.get_or_insert_default();
        node.stop_within.get_or_insert(values::STOP_WITHIN);
        self.http.on.get_or_insert(true);
        self.http.port.get_or_insert(HTTP_PORT);
        if self.store == StoreSection::Unset {
            self.store = match self.node.join.is_empty() {
                true => StoreSection::Here(StoreHere::default()),
                false => StoreSection::Off,
            };
        }
        if let StoreSection::Here(here) = &mut self.store {
            // Not writing it is the default already.
            here.ephemeral = here.ephemeral.filter(|ephemeral| *ephemeral);
        }
        self
    }

    /// The configuration as a file, defaults included. Secrets that came from flags are left out.
    #[must_use]
    pub fn show(&self) -> String {
        write::file(&self.clone().with_defaults())
    }

    /// What differs between this configuration and the one that is to replace it, and what of it can be applied while the
    /// node runs.
    #[must_use]
    pub fn changes(&self, to: &Self) -> Changes {
        change::between(self, to)
    }

    /// A file that explains itself: every kind of entry, most of it in comments.
    #[must_use]
    pub fn example() -> &'static str {
        include_str!("config/example.kdl")
    }
}

impl NodeSection {
    fn overlaid(self, flags: Self) -> Self {
        // A key and own certificates exclude each other.
        let (key_file, certificates) = match (flags.key_file, flags.certificates) {
            (None, None) => (self.key_file, self.certificates),
            of_flags => of_flags,
        };
        Self {
            name: flags.name.or(self.name),
            bind: given(flags.bind, self.bind),
            port: flags.port.or(self.port),
            advertise: flags.advertise.or(self.advertise),
            join: given(flags.join, self.join),
            key_file,
            certificates,
            preset: flags.preset.or(self.preset),
            state_dir: flags.state_dir.or(self.state_dir),
            log_level: flags.log_level.or(self.log_level),
            stop_within: flags.stop_within.or(self.stop_within),
        }
    }
}

/// Flags that contradict the file they are laid over. The operator's to mend: nothing was started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{what} is for a store that this node runs, and the file says {store}: take the flag away, or the store out of the file"
)]
pub struct MergeError {
    /// The directive or setting that a flag gave.
    what: String,
    /// What the file says about the store, without a password.
    store: String,
}

impl StoreHere {
    /// The name of something that is set here, if anything is.
    fn first_set(&self) -> Option<&str> {
        let ephemeral = self.ephemeral.map(|_| "ephemeral");
        let directives = self.directives.keys().chain(self.secret_files.keys());
        ephemeral.or_else(|| directives.map(String::as_str).next())
    }
}

impl StoreSection {
    fn overlaid(self, flags: Self) -> Result<Self, MergeError> {
        let elsewhere = match &self {
            Self::Off => Some("store #false".to_owned()),
            Self::Outside(StoreUrl::Plain(url)) => {
                Some(format!("store {:?}", kumi_muf::without_password(url)))
            }
            Self::Outside(StoreUrl::File(file)) => Some(format!("store url-file={file:?}")),
            Self::Unset | Self::Here(_) => None,
        };
        if let (Some(store), Self::Here(here)) = (elsewhere, &flags)
            && let Some(what) = here.first_set()
        {
            let what = what.to_owned();
            return Err(MergeError { what, store });
        }
        Ok(match (self, flags) {
            (file, Self::Unset) => file,
            (Self::Here(file), Self::Here(flags)) => {
                let mut here = file;
                here.ephemeral = flags.ephemeral.or(here.ephemeral);
                for name in flags.directives.keys() {
                    here.secret_files.remove(name);
                }
                for name in flags.secret_files.keys() {
                    here.directives.remove(name);
                }
                here.directives.extend(flags.directives);
                here.secret_files.extend(flags.secret_files);
                Self::Here(here)
            }
            (_, flags) => flags,
        })
    }
}

impl HttpSection {
    fn overlaid(self, flags: Self) -> Self {
        Self {
            on: flags.on.or(self.on),
            bind: given(flags.bind, self.bind),
            port: flags.port.or(self.port),
            allow_hosts: given(flags.allow_hosts, self.allow_hosts),
            token_file: flags.token_file.or(self.token_file),
        }
    }
}

impl Work {
    /// What tells it from other entries: the type, with the queue if it is not the default one.
    fn key(&self) -> String {
        with_queue(&self.task_type, self.queue.as_deref())
    }
}

impl Cron {
    /// The schedule as a queue stores it.
    #[must_use]
    pub fn schedule(&self) -> Schedule {
        Schedule {
            name: self.name.clone(),
            expression: self.expression.clone(),
            zone: self.zone.clone(),
            envelope: TaskEnvelope::json(&*self.task_type, self.payload.clone()),
            max_attempts: self.max_attempts,
            priority: self.priority,
            last_slot: Timestamp::default(),
        }
    }

    /// What tells it from other entries: the name, with the queue if it is not the default one.
    fn key(&self) -> String {
        with_queue(&self.name, self.queue.as_deref())
    }
}

fn with_queue(name: &str, queue: Option<&str>) -> String {
    match other_queue(queue) {
        Some(queue) => format!("{name} queue={queue}"),
        None => name.to_owned(),
    }
}

/// The name of a queue, unless it is the one that is meant without a name.
fn other_queue(queue: Option<&str>) -> Option<&str> {
    queue.filter(|queue| *queue != DEFAULT_QUEUE)
}

/// The value of a directive as a path below a directory. An empty one means that there is no such file.
fn resolve_directive(value: &mut String, directory: &Path) {
    if !value.is_empty()
        && let Some(path) = directory.join(&*value).to_str()
    {
        *value = path.to_owned();
    }
}

/// A URL whose parameters that name files have paths below a directory.
fn resolved_url(url: &str, directory: &Path) -> String {
    let Some((address, query)) = url.split_once('?') else {
        return url.to_owned();
    };
    let resolved = query.split('&').map(|parameter| {
        let named = PATH_PARAMETERS
            .iter()
            .find_map(|name| Some((name, parameter.strip_prefix(name)?)));
        match named {
            Some((name, path)) if !path.is_empty() && !is_absolute_in_url(path) => {
                format!("{name}{}/{path}", in_url(directory))
            }
            _ => parameter.to_owned(),
        }
    });
    format!("{address}?{}", resolved.collect::<Vec<_>>().join("&"))
}

/// Whether a path begins with a slash, which a URL may write in two ways.
fn is_absolute_in_url(path: &str) -> bool {
    let start = path.get(..3).unwrap_or_default();
    path.starts_with('/') || start.eq_ignore_ascii_case("%2f")
}

/// The first list unless it is empty.
fn given<T>(first: Vec<T>, second: Vec<T>) -> Vec<T> {
    match first.is_empty() {
        true => second,
        false => first,
    }
}

/// The old entries without those that have a new one of the same key, and the new ones.
fn replaced<T>(old: Vec<T>, new: Vec<T>, key: impl Fn(&T) -> String) -> Vec<T> {
    let keys: Vec<String> = new.iter().map(&key).collect();
    let kept = old.into_iter().filter(|entry| !keys.contains(&key(entry)));
    kept.chain(new).collect()
}
