//! What a node is started with: the options of `kumi up` laid over `kumi.kdl`, and the store's directives in the order
//! redis.conf, `kumi.kdl`, options.

use crate::command_line::cli::UpOptions;
use crate::command_line::exit::Failure;
use crate::command_line::state::{self, StateHome};
use crate::command_line::{config, development_tls};
use anyhow::Context;
use kumi_node::config::{
    CertificateFiles, LogLevel, MergeError, NodeConfig, StoreHere, StoreSection, StoreUrl,
};
use kumi_node::driver::{StoreError, apply_directives};
use kumi_store::Config;
use kumi_store::config::{BindAddress, ConfigError, Origin, Settings, TABLE};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The level of a store's log unless one is named: the banner replaces the first lines.
const LOG_LEVEL: &str = "warning";

/// Names the key file where no option does, as for `kumi cluster`.
const KEY_FILE_VARIABLE: &str = "KUMI_CLUSTER_KEY_FILE";

/// What a node is started with.
pub(super) struct Plan {
    /// The configuration of the node, with its state directory.
    pub(super) config: NodeConfig,
    /// All directives of its store; none for a node without one.
    pub(super) store: Option<Config>,
    /// Where it keeps what it knows about itself.
    pub(super) state: StateHome,
    /// The port of the store, if that alone names the state directory.
    pub(super) port_of_state: Option<u16>,
    /// The file that was read, if there was one, for a reload.
    pub(super) file: Option<PathBuf>,
    flags: NodeConfig,
}

impl Plan {
    /// Reads the files that the options name, or that are where files are looked for. Makes the directories of the node.
    pub(super) fn of(options: &UpOptions) -> Result<Self, Failure> {
        let (file, of_file) = match config::found(options.config.as_deref())? {
            Some((file, config)) => (Some(absolute(&file)?), config),
            None => (None, NodeConfig::default()),
        };
        let mut redis_conf = Config::new();
        if let Some(path) = &options.redis_conf {
            kumi_server::load_file(&mut redis_conf, path)?;
        }
        let elsewhere = store_elsewhere(options, &of_file);
        if let Some(elsewhere) = elsewhere {
            check_no_store_option(options, elsewhere)?;
        }
        let flags = flags(options, &redis_conf, elsewhere.is_none())?;
        let mut config = merged(of_file, flags.clone(), key_of_environment())?;
        let store = match runs_store(&mut config) {
            Some(here) => Some(directives(&here, redis_conf, &config)?),
            None => None,
        };
        if let Some(store) = &store {
            check_listens(store.settings())?;
            if config.node.bind.is_empty() {
                config.node.bind = bound_by(store)?;
            }
        }
        let (state, port_of_state) = state_home(options, &config, store.as_ref())?;
        let mut plan = Self {
            state,
            port_of_state,
            config,
            store,
            file,
            flags,
        };
        plan.config.node.state_dir = Some(plan.state.path().to_owned());
        plan.keep_data(options)?;
        Ok(plan)
    }

    /// The configuration that the file asks for now, with the same options.
    pub(super) fn read_again(&self) -> Result<NodeConfig, Failure> {
        let of_file = match &self.file {
            Some(file) => config::load(file)?,
            None => NodeConfig::default(),
        };
        let mut config = merged(of_file, self.flags.clone(), key_of_environment())?;
        runs_store(&mut config);
        // Both were completed at the start by what does not change.
        config
            .node
            .state_dir
            .clone_from(&self.config.node.state_dir);
        if config.node.bind.is_empty() {
            config.node.bind.clone_from(&self.config.node.bind);
        }
        Ok(config)
    }

    /// The directives that concern the process: the store's, or the log alone for a node without one.
    pub(super) fn process_config(&self) -> Result<Config, Failure> {
        if let Some(store) = &self.store {
            return Ok(store.clone());
        }
        let mut config = Config::new();
        let level = self.config.node.log_level.map_or(LOG_LEVEL, redis_level);
        set(&mut config, "loglevel", level.as_bytes())?;
        Ok(config)
    }

    /// Whether the store's data is there again at the next start.
    pub(super) fn is_ephemeral(&self) -> bool {
        matches!(&self.config.store, StoreSection::Here(here) if here.ephemeral == Some(true))
    }

    /// Makes the directory of the data and turns the append-only file on, unless the configuration says otherwise.
    fn keep_data(&mut self, options: &UpOptions) -> Result<(), Failure> {
        let is_ephemeral = self.is_ephemeral();
        let Some(store) = &mut self.store else {
            return Ok(());
        };
        if is_ephemeral {
            set(store, "appendonly", b"no")?;
            set(store, "save", b"")?;
            return socket_within(store);
        }
        if !store.is_given("dir") {
            let directory = self.state.path().join("store");
            state::make(&directory)?;
            set(store, "dir", directory.as_os_str().as_bytes())?;
        } else if let Some(directory) = &options.dir {
            state::make(directory)?;
        }
        let directory = PathBuf::from(OsStr::from_bytes(&store.settings().dir));
        let directory = absolute(&directory)?;
        set(store, "dir", directory.as_os_str().as_bytes())?;
        for (name, value) in [("appendonly", "yes"), ("save", "")] {
            if !store.is_given(name) {
                set(store, name, value.as_bytes())?;
            }
        }
        socket_within(store)
    }
}

/// Makes the path of the Unix socket absolute: it is relative to the store's directory, which the process enters.
fn socket_within(store: &mut Config) -> Result<(), Failure> {
    let settings = store.settings();
    let Some(path) = &settings.unixsocket else {
        return Ok(());
    };
    let directory = absolute(Path::new(OsStr::from_bytes(&settings.dir)))?;
    let path = directory.join(OsStr::from_bytes(path));
    set(store, "unixsocket", path.as_os_str().as_bytes())
}

/// The options over the file. The key file of the environment counts where neither names a key or certificates.
fn merged(
    file: NodeConfig,
    flags: NodeConfig,
    of_environment: Option<PathBuf>,
) -> Result<NodeConfig, Failure> {
    let merged = NodeConfig::merge(file, flags);
    let mut merged = merged.map_err(|error: MergeError| Failure::usage(error.to_string()))?;
    let node = &mut merged.node;
    if node.key_file.is_none() && node.certificates.is_none() {
        node.key_file = of_environment.as_deref().map(absolute).transpose()?;
    }
    Ok(merged)
}

fn key_of_environment() -> Option<PathBuf> {
    let set = std::env::var_os(KEY_FILE_VARIABLE).map(PathBuf::from);
    set.filter(|path| !path.as_os_str().is_empty())
}

/// The store that the node runs, written into the configuration; none if it uses another one.
fn runs_store(config: &mut NodeConfig) -> Option<StoreHere> {
    if config.store == StoreSection::Unset && config.node.join.is_empty() {
        config.store = StoreSection::Here(StoreHere::default());
    }
    match &config.store {
        StoreSection::Here(here) => Some(here.clone()),
        _ => None,
    }
}

/// Why this node runs no store, in words; none if it runs one.
fn store_elsewhere(options: &UpOptions, file: &NodeConfig) -> Option<&'static str> {
    if options.store.is_some() {
        return Some("--store names another one");
    }
    if options.no_store {
        return Some("--no-store says that there is none");
    }
    match &file.store {
        StoreSection::Here(_) => None,
        StoreSection::Off => Some("kumi.kdl says store #false"),
        StoreSection::Outside(_) => Some("the store of kumi.kdl is another one"),
        _ if !options.join.is_empty() => Some(
            "--join uses the one of the cluster; to run a store and join others, write 'store' into kumi.kdl",
        ),
        _ if !file.node.join.is_empty() => Some(
            "join in kumi.kdl uses the one of the cluster; to run a store and join others, write 'store' there",
        ),
        _ => None,
    }
}

/// An option of a store that this node runs is a mistake where it runs none. `--dir` and `--ephemeral` are not: they say where
/// the node's own files are.
fn check_no_store_option(options: &UpOptions, elsewhere: &str) -> Result<(), Failure> {
    match named_store_option(options) {
        Some(option) => Err(Failure::usage(format!(
            "{option} is for a store that this node runs, and {elsewhere}"
        ))),
        None => Ok(()),
    }
}

fn named_store_option(options: &UpOptions) -> Option<&'static str> {
    let of_bind = options
        .bind
        .iter()
        .any(|bind| host_and_port(bind).1.is_some());
    let named = [
        ("--port", options.port.is_some()),
        ("the port in --bind", of_bind),
        ("--unixsocket", options.unixsocket.is_some()),
        ("--redis-conf", options.redis_conf.is_some()),
        ("--set", !options.set.is_empty()),
        ("--tls", options.tls),
    ];
    let mut named = named.into_iter().filter(|(_, is_given)| *is_given);
    named.next().map(|(option, _)| option)
}

/// What the options say, as a configuration. Relative paths are made absolute: the process enters the store's directory.
fn flags(
    options: &UpOptions,
    redis_conf: &Config,
    runs_store: bool,
) -> Result<NodeConfig, Failure> {
    let mut flags = NodeConfig::default();
    let node = &mut flags.node;
    node.name.clone_from(&options.name);
    let (hosts, port) = addresses(options)?;
    let hosts = hosts.iter().map(|host| match host.strip_prefix('-') {
        Some(host) => (host, true),
        None => (host.as_str(), false),
    });
    node.bind = bound(hosts)?;
    node.port = options.cluster_port;
    node.advertise.clone_from(&options.advertise);
    node.join.clone_from(&options.join);
    node.key_file = options.key_file.as_deref().map(absolute).transpose()?;
    if let (Some(certificate), Some(key), Some(authority)) = (
        &options.tls_cert_file,
        &options.tls_key_file,
        &options.tls_ca_file,
    ) {
        let files =
            CertificateFiles::new(absolute(certificate)?, absolute(key)?, absolute(authority)?);
        node.certificates = Some(files);
    }
    node.preset = options.preset;
    node.state_dir = options.state_dir.as_deref().map(absolute).transpose()?;
    node.log_level = options.log_level;
    node.stop_within = options.stop_within;
    flags.http.port = options.http_port;
    flags.http.on = options.no_http.then_some(false);
    flags.store = match (&options.store, options.no_store) {
        (Some(url), _) => StoreSection::Outside(StoreUrl::Plain(url.clone())),
        (None, true) => StoreSection::Off,
        (None, false) if runs_store => store_flags(options, port, redis_conf)?,
        (None, false) => StoreSection::Unset,
    };
    Ok(flags)
}

/// The directives that options give. Unset if there are none: the file decides then whether the node runs a store.
fn store_flags(
    options: &UpOptions,
    port: Option<u16>,
    redis_conf: &Config,
) -> Result<StoreSection, Failure> {
    let mut directives = Directives {
        so_far: redis_conf.clone(),
        given: BTreeMap::new(),
    };
    if let Some(port) = port {
        directives.set("port", port.to_string().as_bytes())?;
    }
    if let Some(path) = &options.unixsocket {
        directives.set("unixsocket", path.as_os_str().as_bytes())?;
    }
    if options.tls {
        set_tls(&mut directives, options)?;
    }
    for setting in &options.set {
        directives.set(&setting.name, setting.value.as_bytes())?;
    }
    if let Some(directory) = &options.dir {
        directives.set("dir", absolute(directory)?.as_os_str().as_bytes())?;
    }
    let mut here = StoreHere::default();
    here.directives = directives.given;
    here.ephemeral = options.ephemeral.then_some(true);
    let says_nothing = here == StoreHere::default() && options.redis_conf.is_none();
    match says_nothing {
        true => Ok(StoreSection::Unset),
        false => Ok(StoreSection::Here(here)),
    }
}

/// Directives that options give, checked one after the other as a server would read them.
struct Directives {
    so_far: Config,
    given: BTreeMap<String, String>,
}

impl Directives {
    fn set(&mut self, name: &str, value: &[u8]) -> Result<(), Failure> {
        set(&mut self.so_far, name, value)?;
        let is_named = |row: &&kumi_store::config::Directive| {
            row.names().any(|known| known.eq_ignore_ascii_case(name))
        };
        let primary = TABLE.iter().find(is_named).map_or(name, |row| row.name);
        // A directive with several parts may be given part by part.
        let whole = match self.given.contains_key(primary) {
            true => self.so_far.text(primary).unwrap_or_default(),
            false => value.to_owned(),
        };
        let whole = String::from_utf8(whole).map_err(|_| Failure::Setting {
            name: name.to_owned(),
            reason: "it is not UTF-8 text".into(),
        })?;
        self.given.insert(primary.to_owned(), whole);
        Ok(())
    }
}

/// All directives of the store: of redis.conf, then of the configuration, then what the node itself decides.
fn directives(
    here: &StoreHere,
    redis_conf: Config,
    config: &NodeConfig,
) -> Result<Config, Failure> {
    let mut store = redis_conf;
    if let Some(level) = config.node.log_level {
        set(&mut store, "loglevel", redis_level(level).as_bytes())?;
    } else if !store.is_given("loglevel") {
        set(&mut store, "loglevel", LOG_LEVEL.as_bytes())?;
    }
    apply_directives(here, &mut store).map_err(refused)?;
    let mut hosts = config.node.bind.iter().map(IpAddr::to_string);
    if let Some(first) = hosts.next() {
        let all = hosts.fold(first, |all, host| format!("{all} {host}"));
        set(&mut store, "bind", all.as_bytes())?;
    }
    Ok(store)
}

fn check_listens(settings: &Settings) -> Result<(), Failure> {
    if settings.port == 0 && settings.tls.port == 0 && settings.unixsocket.is_none() {
        return Err(Failure::usage(
            "no client could connect: give a --port or a --unixsocket",
        ));
    }
    Ok(())
}

/// Where the node keeps what it knows about itself, and the port of its store if that names the place.
fn state_home(
    options: &UpOptions,
    config: &NodeConfig,
    store: Option<&Config>,
) -> Result<(StateHome, Option<u16>), Failure> {
    let kept = |directory: &Path| Ok((StateHome::kept(absolute(directory)?), None));
    if let Some(directory) = &config.node.state_dir {
        return kept(directory);
    }
    let is_ephemeral = match &config.store {
        StoreSection::Here(here) => here.ephemeral == Some(true),
        _ => options.ephemeral,
    };
    if is_ephemeral {
        return Ok((StateHome::temporary()?, None));
    }
    let Some(store) = store else {
        if let Some(directory) = &options.dir {
            return kept(directory);
        }
        let port = config
            .node
            .port
            .unwrap_or(kumi_node::config::MEMBERSHIP_PORT);
        let instance = match &config.node.name {
            Some(name) => name.to_string(),
            None => port.to_string(),
        };
        return kept(&state::instance_directory(&instance, "--state-dir DIR")?);
    };
    let settings = store.settings();
    if store.is_given("dir") {
        return kept(Path::new(OsStr::from_bytes(&settings.dir)));
    }
    let port = match settings.port {
        0 => settings.tls.port,
        port => port,
    };
    let instance = match (port, &settings.unixsocket) {
        (0, Some(path)) => format!("unix-{:016x}", kumi_store::crc64::checksum(path)),
        (port, _) => port.to_string(),
    };
    let directory = state::instance_directory(&instance, "--dir PATH or --ephemeral")?;
    let port = Some(port).filter(|port| *port != 0);
    Ok((StateHome::kept(directory), port))
}

/// The addresses of `--bind` without their ports, and the one port of all of them and of `--port`.
fn addresses(options: &UpOptions) -> Result<(Vec<String>, Option<u16>), Failure> {
    let mut port = options.port;
    let mut hosts = Vec::new();
    for address in &options.bind {
        let (host, other) = host_and_port(address);
        hosts.push(host);
        match (port, other) {
            (Some(port), Some(other)) if port != other => {
                return Err(Failure::usage(format!(
                    "the store has one port, and both {port} and {other} are given: use one --port, or start two nodes"
                )));
            }
            _ => port = port.or(other),
        }
    }
    Ok((hosts, port))
}

/// `IP:PORT` and `[IPv6]:PORT` in two parts; anything else is an address alone.
fn host_and_port(address: &str) -> (String, Option<u16>) {
    if let Ok(socket) = address.parse::<SocketAddr>() {
        return (socket.ip().to_string(), Some(socket.port()));
    }
    let port = address
        .strip_prefix("*:")
        .and_then(|port| port.parse().ok());
    match port {
        Some(port) => ("*".into(), Some(port)),
        None => (address.to_owned(), None),
    }
}

/// The addresses of `bind`, each with whether it is optional, for all services of the node. One that is optional and that this
/// machine does not have is left out, unless no other is left: the start fails by its name then.
fn bound<'a>(hosts: impl Iterator<Item = (&'a str, bool)>) -> Result<Vec<IpAddr>, Failure> {
    let hosts = hosts.map(|(host, is_optional)| Ok((address(host)?, is_optional)));
    let hosts = hosts.collect::<Result<Vec<_>, Failure>>()?;
    let is_used = |(address, is_optional): &&(IpAddr, bool)| !is_optional || is_here(*address);
    let mut used: Vec<_> = hosts.iter().filter(is_used).collect();
    if used.is_empty() {
        used.extend(&hosts);
    }
    Ok(used.into_iter().map(|(address, _)| *address).collect())
}

/// An address as `bind` writes it: `*` and `::*` are all addresses.
fn address(host: &str) -> Result<IpAddr, Failure> {
    match host {
        "*" => Ok(Ipv4Addr::UNSPECIFIED.into()),
        "::*" => Ok(Ipv6Addr::UNSPECIFIED.into()),
        _ => host.parse().map_err(|_| {
            Failure::usage(format!(
                "{host:?} is no address to listen on: write an IP address of this machine, such as 10.0.0.1 or ::1"
            ))
        }),
    }
}

/// Whether this machine has an address.
fn is_here(address: IpAddr) -> bool {
    UdpSocket::bind((address, 0)).is_ok()
}

/// The addresses of the directive `bind`, for the other services of the node.
fn bound_by(store: &Config) -> Result<Vec<IpAddr>, Failure> {
    if !store.is_given("bind") {
        return Ok(Vec::new());
    }
    let mut hosts = Vec::new();
    for BindAddress { host, optional, .. } in &store.settings().bind {
        hosts.push((String::from_utf8_lossy(host), *optional));
    }
    bound(hosts.iter().map(|(host, optional)| (&**host, *optional)))
}

/// Directives for TLS on the store's port, with the node's own certificate.
fn set_tls(directives: &mut Directives, options: &UpOptions) -> Result<(), Failure> {
    let port = directives.so_far.settings().port;
    let directory = match &options.tls_dir {
        Some(directory) => absolute(directory)?,
        None => state::instance_directory(&port.to_string(), "--tls-dir DIR")?.join("tls"),
    };
    let mut names = ["localhost", "127.0.0.1", "::1"]
        .map(str::to_owned)
        .to_vec();
    let bound = options.bind.iter().map(|address| host_and_port(address).0);
    names.extend(bound.filter(|name| !name.starts_with(['-', '*', ':'])));
    names.sort();
    names.dedup();
    let files = development_tls::files(&directory, &names)?;
    let port = port.to_string();
    let all: [(&str, &[u8]); 6] = [
        ("port", b"0"),
        ("tls-port", port.as_bytes()),
        ("tls-cert-file", files.certificate.as_os_str().as_bytes()),
        ("tls-key-file", files.key.as_os_str().as_bytes()),
        ("tls-ca-cert-file", files.authority.as_os_str().as_bytes()),
        ("tls-auth-clients", b"no"),
    ];
    for (name, value) in all {
        directives.set(name, value)?;
    }
    Ok(())
}

/// The name of a level in redis.conf.
pub(super) fn redis_level(level: LogLevel) -> &'static str {
    match level {
        LogLevel::Trace => "debug",
        LogLevel::Debug => "verbose",
        LogLevel::Info => "notice",
        _ => "warning",
    }
}

fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path)
        .with_context(|| format!("the path {}", path.display()))
        .map_err(Failure::other)
}

fn refused(error: StoreError) -> Failure {
    match error {
        StoreError::Directive { name, source } => Failure::Setting {
            reason: reason(source),
            name,
        },
        other => Failure::ConfigFile(other.into()),
    }
}

fn set(config: &mut Config, name: &str, value: &[u8]) -> Result<(), Failure> {
    let pair = (name.as_bytes(), value);
    let set = config.set_many(&[pair], Origin::Startup);
    set.map(drop).map_err(|error| Failure::Setting {
        name: name.to_owned(),
        reason: reason(error),
    })
}

/// Why a directive was refused, without its value, which may be a password.
fn reason(error: ConfigError) -> String {
    match error {
        ConfigError::Unknown(_) => "there is no such directive".to_owned(),
        ConfigError::Failed { reason, .. } => reason.into_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(options: &UpOptions) -> Result<(NodeConfig, Config), Failure> {
        let flags = flags(options, &Config::new(), true)?;
        let mut config = merged(NodeConfig::default(), flags, None)?;
        let here = runs_store(&mut config).unwrap_or_default();
        let store = directives(&here, Config::new(), &config)?;
        Ok((config, store))
    }

    #[test]
    fn an_address_may_have_a_port_and_all_have_the_same() {
        let check = |bind: &[&str], port, expected: Option<(&str, u16)>| {
            let options = UpOptions {
                bind: bind.iter().map(ToString::to_string).collect(),
                port,
                ..UpOptions::default()
            };
            let found = planned(&options).map(|(_, store)| {
                let bind = store.text("bind").unwrap_or_default();
                (String::from_utf8(bind).unwrap(), store.settings().port)
            });
            let expected = expected.map(|(bind, port)| (bind.to_owned(), port));
            assert_eq!(found.ok(), expected, "{bind:?} {port:?}");
        };
        check(&["127.0.0.1"], None, Some(("127.0.0.1", 6379)));
        check(&["127.0.0.1:7000"], None, Some(("127.0.0.1", 7000)));
        check(
            &["[::1]:7000", "127.0.0.1"],
            None,
            Some(("::1 127.0.0.1", 7000)),
        );
        check(&["::1"], Some(7000), Some(("::1", 7000)));
        check(&["*:7000"], Some(7000), Some(("0.0.0.0", 7000)));
        check(&["127.0.0.1:7000"], Some(7001), None);
        check(&["127.0.0.1:7000", "[::1]:7001"], None, None);
        check(&["here"], None, None);
    }

    #[test]
    fn an_optional_address_that_is_not_here_is_left_out() {
        let check = |hosts: &[(&str, bool)], expected: &[&str]| {
            let found = bound(hosts.iter().copied()).unwrap();
            let found: Vec<String> = found.iter().map(ToString::to_string).collect();
            assert_eq!(found, expected, "{hosts:?}");
        };
        // An address that is kept for documents: no machine has it.
        check(&[("127.0.0.1", true), ("192.0.2.1", true)], &["127.0.0.1"]);
        check(&[("*", false), ("192.0.2.1", true)], &["0.0.0.0"]);
        check(
            &[("*", false), ("192.0.2.1", false)],
            &["0.0.0.0", "192.0.2.1"],
        );
        check(&[("192.0.2.1", true)], &["192.0.2.1"]);
        let mut store = Config::new();
        set(&mut store, "bind", b"127.0.0.1 -192.0.2.1").unwrap();
        assert_eq!(bound_by(&store).unwrap(), [Ipv4Addr::LOCALHOST]);
        let options = UpOptions {
            bind: vec!["127.0.0.1".into(), "-192.0.2.1".into()],
            ..UpOptions::default()
        };
        let (config, _) = planned(&options).unwrap();
        assert_eq!(config.node.bind, [Ipv4Addr::LOCALHOST]);
    }

    #[test]
    fn a_node_that_joins_runs_no_store_and_says_so_of_options_for_one() {
        let seeds = || vec![kumi_node::config::seed("10.0.0.1").unwrap()];
        let mut joining = NodeConfig::default();
        joining.node.join = seeds();
        let by_option = (seeds(), NodeConfig::default(), "--join");
        let by_file = (Vec::new(), joining, "join in kumi.kdl");
        for (join, file, word) in [by_option, by_file] {
            let mut options = UpOptions {
                join,
                ephemeral: true,
                ..UpOptions::default()
            };
            let elsewhere = store_elsewhere(&options, &file).unwrap();
            check_no_store_option(&options, elsewhere).unwrap();
            let flags = flags(&options, &Config::new(), false).unwrap();
            let mut config = merged(file.clone(), flags, None).unwrap();
            assert_eq!(runs_store(&mut config), None);
            let (state, _) = state_home(&options, &config, None).unwrap();
            assert!(state.is_temporary());
            (options.ephemeral, options.dir) = (false, Some("/var/kumi".into()));
            check_no_store_option(&options, elsewhere).unwrap();
            let (state, port) = state_home(&options, &config, None).unwrap();
            assert_eq!((state.path(), port), (Path::new("/var/kumi"), None));
            options.port = Some(7000);
            let failure = check_no_store_option(&options, elsewhere).unwrap_err();
            let text = failure.to_string();
            assert!(text.contains("--port") && text.contains(word), "{text}");
            let mut both = file;
            both.store = StoreSection::Here(StoreHere::default());
            assert_eq!(store_elsewhere(&options, &both), None);
        }
    }

    #[test]
    fn the_key_of_the_environment_counts_where_nothing_else_names_one() {
        let of_environment = || Some(PathBuf::from("/env.key"));
        let key = |file: NodeConfig, flags: NodeConfig| {
            let node = merged(file, flags, of_environment()).unwrap().node;
            node.key_file
        };
        let none = NodeConfig::default;
        let mut named = none();
        named.node.key_file = Some("/named.key".into());
        assert_eq!(key(none(), none()), of_environment());
        assert_eq!(key(named.clone(), none()), named.node.key_file);
        assert_eq!(key(none(), named.clone()), named.node.key_file);
        let mut own = none();
        let [certificate, own_key, authority] = ["/c", "/k", "/a"].map(PathBuf::from);
        let files = CertificateFiles::new(certificate, own_key, authority);
        own.node.certificates = Some(files);
        assert_eq!(key(own.clone(), none()), None);
        assert_eq!(key(none(), own), None);
    }

    #[test]
    fn a_directive_that_is_given_in_parts_has_all_of_them() {
        let parts = ["normal 1 0 0", "pubsub 2 0 0"];
        let set = parts.map(|value| crate::command_line::cli::Setting {
            name: "client-output-buffer-limit".into(),
            value: value.into(),
        });
        let options = UpOptions {
            set: set.to_vec(),
            ..UpOptions::default()
        };
        let (_, store) = planned(&options).unwrap();
        let text = store.text("client-output-buffer-limit").unwrap_or_default();
        let text = String::from_utf8(text).unwrap();
        assert!(
            text.contains("normal 1 ") && text.contains("pubsub 2 "),
            "{text}"
        );
    }

    #[test]
    fn a_refused_directive_does_not_show_its_value() {
        let mut config = Config::new();
        let failure = set(&mut config, "maxmemory", b"secret").unwrap_err();
        assert!(!failure.to_string().contains("secret"), "{failure}");
    }
}
