//! `kumi up`: builds the node's configuration and runs it.

use crate::command_line::banner::{self, Places};
use crate::command_line::cli::UpOptions;
use crate::command_line::development_tls;
use crate::command_line::exit::Failure;
use crate::command_line::state;
use kumi_server::{Addresses, Program};
use kumi_store::Config;
use kumi_store::config::{ConfigError, Origin, Settings};
use std::ffi::OsStr;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Directives of a node that neither the file nor an option sets. Redis listens on every address of the machine; a node
/// started without options on a laptop should not. The banner replaces the first lines of the log.
const DEFAULTS: [(&str, &str); 2] = [("bind", "127.0.0.1 -::1"), ("loglevel", "warning")];

/// Runs a node until it is asked to stop.
pub(crate) fn run(options: &UpOptions) -> Result<(), Failure> {
    let mut config = configuration(options)?;
    let settings = config.settings();
    if settings.port == 0 && settings.tls.port == 0 && settings.unixsocket.is_none() {
        return Err(Failure::usage(
            "no client could connect: give a --port or a --unixsocket",
        ));
    }
    let kept = keep_data(options, &mut config)?;
    let mut program = Program::prepare(config, options.redis_conf.as_deref())?;
    if kept.is_some() {
        program = program.with_files();
    }
    program.run(|addresses, settings| {
        if !options.quiet {
            announce(addresses, settings, kept.as_ref());
        }
    })?;
    Ok(())
}

/// Where a node keeps its data, and the id of the store there.
#[derive(Debug)]
struct Kept {
    directory: PathBuf,
    id: String,
}

/// Makes the directory of the data and turns the append-only file on, unless the configuration says otherwise. None if
/// the data is in memory only.
fn keep_data(options: &UpOptions, config: &mut Config) -> Result<Option<Kept>, Failure> {
    if options.ephemeral {
        set(config, "appendonly", b"no")?;
        set(config, "save", b"")?;
        return Ok(None);
    }
    let settings = config.settings();
    let directory = match &options.dir {
        Some(directory) => directory.clone(),
        None if config.is_given("dir") => PathBuf::from(OsStr::from_bytes(&settings.dir)),
        None => {
            let port = match settings.port {
                0 => settings.tls.port,
                port => port,
            };
            let instance = match (port, &settings.unixsocket) {
                (0, Some(path)) => format!("unix-{:016x}", kumi_store::crc64::checksum(path)),
                (port, _) => port.to_string(),
            };
            state::instance_directory(&instance, "--dir PATH or --ephemeral")?.join("store")
        }
    };
    if !config.is_given("dir") || options.dir.is_some() {
        state::make(&directory)?;
    }
    let directory = std::path::absolute(&directory).unwrap_or(directory);
    set(config, "dir", directory.as_os_str().as_bytes())?;
    for (name, value) in [("appendonly", "yes"), ("save", "")] {
        if !config.is_given(name) {
            set(config, name, value.as_bytes())?;
        }
    }
    if !directory.is_dir() {
        // The server reports it when it enters the directory.
        return Ok(Some(Kept {
            directory,
            id: String::new(),
        }));
    }
    let id = state::id(&directory)?;
    Ok(Some(Kept { directory, id }))
}

/// The node's defaults, then the file, then the options.
fn configuration(options: &UpOptions) -> Result<Config, Failure> {
    let mut config = Config::new();
    if let Some(path) = &options.redis_conf {
        kumi_server::load_file(&mut config, path)?;
    }
    for (name, value) in DEFAULTS {
        if !config.is_given(name) {
            set(&mut config, name, value.as_bytes())?;
        }
    }
    let (hosts, port) = addresses(options)?;
    if !hosts.is_empty() {
        set(&mut config, "bind", hosts.join(" ").as_bytes())?;
    }
    if let Some(port) = port {
        set(&mut config, "port", port.to_string().as_bytes())?;
    }
    if let Some(path) = &options.unixsocket {
        set(&mut config, "unixsocket", path.as_os_str().as_bytes())?;
    }
    if options.tls {
        set_tls(&mut config, options)?;
    }
    for setting in &options.set {
        set(&mut config, &setting.name, setting.value.as_bytes())?;
    }
    Ok(config)
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

/// `IP:PORT` and `[IPv6]:PORT` in two parts; anything else is an address for the directive `bind`.
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

/// Directives for TLS on the store's port, with the node's own certificate.
fn set_tls(config: &mut Config, options: &UpOptions) -> Result<(), Failure> {
    let port = config.settings().port;
    let directory = match &options.tls_dir {
        Some(directory) => std::path::absolute(directory).map_err(Failure::other)?,
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
    let directives: [(&str, &[u8]); 6] = [
        ("port", b"0"),
        ("tls-port", port.as_bytes()),
        ("tls-cert-file", files.certificate.as_os_str().as_bytes()),
        ("tls-key-file", files.key.as_os_str().as_bytes()),
        ("tls-ca-cert-file", files.authority.as_os_str().as_bytes()),
        ("tls-auth-clients", b"no"),
    ];
    for (name, value) in directives {
        set(config, name, value)?;
    }
    Ok(())
}

fn set(config: &mut Config, name: &str, value: &[u8]) -> Result<(), Failure> {
    let pair = (name.as_bytes(), value);
    let reason = match config.set_many(&[pair], Origin::Startup) {
        Ok(_) => return Ok(()),
        Err(ConfigError::Unknown(_)) => "there is no such directive".to_owned(),
        Err(ConfigError::Failed { reason, .. }) => reason.into_owned(),
        Err(other) => other.to_string(),
    };
    Err(Failure::Setting {
        name: name.to_owned(),
        reason,
    })
}

/// Prints the banner. A node goes on if its standard output is closed.
fn announce(addresses: &Addresses, settings: &Settings, kept: Option<&Kept>) {
    let unix = settings.unixsocket.as_deref();
    let authority = settings.tls.ca_cert_file.as_deref();
    let banner = banner::text(&Places {
        tcp: &addresses.tcp,
        tls: &addresses.tls,
        authority: authority.map(|path| Path::new(OsStr::from_bytes(path))),
        unix: unix.map(|path| Path::new(OsStr::from_bytes(path))),
        kept: kept.map(|kept| banner::Kept {
            directory: &kept.directory,
            id: &kept.id,
            settings,
        }),
        password: settings.requirepass.is_some(),
    });
    if let Err(failure) = crate::command_line::print(banner.as_bytes()) {
        eprintln!("kumi: {failure}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_options_a_node_is_on_the_loopback_addresses_only() {
        let config = configuration(&UpOptions::default()).unwrap();
        assert_eq!(config.settings().port, 6379);
        assert_eq!(config.text("bind").as_deref(), Some(&b"127.0.0.1 -::1"[..]));
    }

    #[test]
    fn an_address_may_have_a_port_and_all_have_the_same() {
        let check = |bind: &[&str], port, expected: Option<(&str, u16)>| {
            let options = UpOptions {
                bind: bind.iter().map(ToString::to_string).collect(),
                port,
                ..UpOptions::default()
            };
            let found = configuration(&options).map(|config| {
                let bind = config.text("bind").unwrap_or_default();
                (String::from_utf8(bind).unwrap(), config.settings().port)
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
        check(&["*:7000"], Some(7000), Some(("*", 7000)));
        check(&["127.0.0.1:7000"], Some(7001), None);
        check(&["127.0.0.1:7000", "[::1]:7001"], None, None);
    }

    #[test]
    fn a_refused_directive_does_not_show_its_value() {
        let mut config = Config::new();
        let failure = set(&mut config, "maxmemory", b"secret").unwrap_err();
        assert!(!failure.to_string().contains("secret"), "{failure}");
    }
}
