//! What `kumi up` says when it has started: what runs where, how to try it, and how other machines join.

use kumi_node::config::MEMBERSHIP_PORT;
use kumi_store::config::{Fsync, Settings};
use std::fmt::Write;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

/// A node, and the places that it can be reached at.
#[derive(Debug, Default)]
pub(crate) struct Places<'a> {
    pub(crate) node: &'a str,
    /// Its own store; none if it uses another one.
    pub(crate) store: Option<Store<'a>>,
    pub(crate) membership: Option<SocketAddr>,
    pub(crate) http: &'a [SocketAddr],
    /// What a person should know about the start.
    pub(crate) notes: &'a [String],
    /// How other machines join; none for a node that they do not reach, or that has joined itself.
    pub(crate) invitation: Option<Invitation<'a>>,
    /// Its state directory, if that is a temporary one: other commands do not find it by themselves.
    pub(crate) temporary_state: Option<&'a Path>,
}

/// What other machines need to join.
#[derive(Clone, Debug)]
pub(crate) struct Invitation<'a> {
    /// Where they reach the node, `host:port`.
    pub(crate) address: String,
    /// The file with the key, which they need a copy of.
    pub(crate) key_file: &'a Path,
}

/// The places that a store can be reached at.
#[derive(Debug, Default)]
pub(crate) struct Store<'a> {
    pub(crate) tcp: &'a [SocketAddr],
    pub(crate) unix: Option<PathBuf>,
    /// Where the data is kept; none if it is in memory only.
    pub(crate) kept: Option<Kept<'a>>,
    /// Addresses for clients that speak TLS.
    pub(crate) tls: &'a [SocketAddr],
    /// The authority they trust.
    pub(crate) authority: Option<PathBuf>,
    /// Clients have to authenticate first.
    pub(crate) password: bool,
}

/// The data of a node on disk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept<'a> {
    pub(crate) directory: &'a Path,
    /// The id of the store there.
    pub(crate) id: &'a str,
    /// The directives that say when it is written.
    pub(crate) settings: &'a Settings,
}

/// The banner's text.
pub(crate) fn text(places: &Places<'_>) -> String {
    let mut text = format!("kumi {}\n\n", kumi_store::KUMI_VERSION);
    if let Some(store) = &places.store {
        store_lines(&mut text, store);
    }
    let member = match places.membership {
        // Not as an address that clients of the store could take for theirs.
        Some(address) => format!("{}, membership {address}/udp", places.node),
        None => places.node.to_owned(),
    };
    line(&mut text, "node", &member);
    if let Some(directory) = places.temporary_state {
        let directory = directory.display();
        let words = format!("{directory} (--state-dir of kumi status, url, reload and stop)");
        line(&mut text, "state", &words);
    }
    for (index, address) in places.http.iter().enumerate() {
        let scheme = match address.ip().is_loopback() {
            true => "http",
            false => "https",
        };
        let name = if index == 0 { "http" } else { "" };
        line(&mut text, name, &format!("{scheme}://{address}"));
    }
    if let Some(client) = places.store.as_ref().and_then(redis_cli) {
        line(&mut text, "try", &format!("{client} set hello world"));
        line(&mut text, "", &format!("{client} get hello"));
    }
    if let Some(invitation) = &places.invitation {
        let usual = format!(":{MEMBERSHIP_PORT}");
        let address = &invitation.address;
        let address = address.strip_suffix(&usual).unwrap_or(address);
        let command = format!("kumi up --join {address} --key-file kumi.key");
        line(&mut text, "join", &command);
        let key = invitation.key_file.display();
        line(
            &mut text,
            "",
            &format!("on the others, with a copy of {key}"),
        );
    }
    for (index, note) in places.notes.iter().enumerate() {
        let name = if index == 0 { "note" } else { "" };
        line(&mut text, name, note);
    }
    line(&mut text, "stop", "ctrl-c");
    text
}

fn store_lines(text: &mut String, store: &Store<'_>) {
    let tcp = store.tcp.iter().map(SocketAddr::to_string);
    let unix = store.unix.iter().map(|path| path.display().to_string());
    let tls = store.tls.iter().map(|address| format!("{address} (TLS)"));
    for (index, place) in tcp.chain(tls).chain(unix).enumerate() {
        let name = if index == 0 { "store" } else { "" };
        line(text, name, &place);
    }
    line(
        text,
        "speaks",
        &format!("Redis {} (RESP2, RESP3)", kumi_store::REDIS_VERSION),
    );
    match store.kept {
        None => line(
            text,
            "keeps",
            "everything in memory: what it holds is gone when it stops",
        ),
        Some(kept) => {
            line(text, "keeps", &kept.directory.display().to_string());
            let saving = saving(kept.settings);
            line(text, "", &format!("store {}, {saving}", kept.id));
        }
    }
}

/// When the data is written to disk. Save points matter only without an append-only file, which has every write.
fn saving(settings: &Settings) -> &'static str {
    match settings.appendfsync {
        _ if !settings.appendonly && settings.save_points.is_empty() => {
            "not saved by itself: appendonly and save are off"
        }
        _ if !settings.appendonly => "saved as snapshots: writes since the last one can be lost",
        Fsync::EverySecond => "synced to disk every second",
        Fsync::Always => "synced to disk before each reply",
        Fsync::No => "synced to disk when the operating system does so",
    }
}

fn line(text: &mut String, name: &str, value: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "  {name:<7}{value}");
}

/// A command to paste that reaches the store from this machine; none if redis-cli alone does not: on addresses that are not
/// on loopback only named users log in, and `kumi url` has the password.
fn redis_cli(store: &Store<'_>) -> Option<String> {
    let mut command = String::from("redis-cli");
    let address = store.tcp.first().or(store.tls.first());
    let is_tls = store.tcp.is_empty() && !store.tls.is_empty();
    let has_no_authority = is_tls && store.authority.is_none();
    match (address, &store.unix) {
        (Some(_), Some(path)) if has_no_authority => {
            command += &format!(" -s {}", path.display());
            return Some(command);
        }
        // Connections to loopback are in plain text.
        (Some(address), None) if has_no_authority && address.ip().is_unspecified() => {
            command += &format!(" -p {}", address.port());
            return Some(command);
        }
        (Some(_), None) if has_no_authority => return None,
        (Some(address), _) => {
            let host = match address.ip() {
                IpAddr::V4(ip) if ip.is_unspecified() || ip.is_loopback() => None,
                IpAddr::V6(ip) if ip.is_unspecified() => Some("::1".to_owned()),
                ip => Some(ip.to_string()),
            };
            if let Some(host) = host {
                command += &format!(" -h {host}");
            }
            command += &format!(" -p {}", address.port());
        }
        (None, Some(path)) => command += &format!(" -s {}", path.display()),
        (None, None) => {}
    }
    if is_tls {
        command += " --tls";
        if let Some(path) = &store.authority {
            command += &format!(" --cacert {}", path.display());
        }
    }
    if store.password {
        command += " --askpass";
    }
    Some(command)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kumi_store::Config;
    use kumi_store::config::Origin;

    #[track_caller]
    fn check(tcp: &[&str], unix: Option<&str>, password: bool, expected: &str) {
        let tcp: Vec<SocketAddr> = tcp.iter().map(|text| text.parse().unwrap()).collect();
        let store = Store {
            tcp: &tcp,
            unix: unix.map(PathBuf::from),
            password,
            ..Store::default()
        };
        let text = text(&of_store(store));
        assert!(
            text.contains(expected),
            "no {expected:?} in the banner:\n{text}"
        );
    }

    #[test]
    fn the_client_line_reaches_the_node_from_this_machine() {
        let line =
            "  try    redis-cli -p 6379 set hello world\n         redis-cli -p 6379 get hello\n";
        check(&["127.0.0.1:6379"], None, false, line);
        check(&["0.0.0.0:7000"], None, false, "redis-cli -p 7000 set");
        check(&["[::]:7000"], None, false, "redis-cli -h ::1 -p 7000 set");
        check(
            &["192.0.2.7:7000"],
            None,
            false,
            "redis-cli -h 192.0.2.7 -p 7000 set",
        );
        check(
            &[],
            Some("/tmp/k.sock"),
            false,
            "redis-cli -s /tmp/k.sock set",
        );
        check(&["127.0.0.1:1"], None, true, "redis-cli -p 1 --askpass set");
    }

    #[test]
    fn the_place_of_the_data_is_shown() {
        check(
            &["127.0.0.1:6379"],
            None,
            false,
            "  keeps  everything in memory",
        );
        let text = kept(&[("appendonly", "yes")]);
        let expected =
            "  keeps  /var/kumi\n         store 0123456789abcdef, synced to disk every second\n";
        assert!(text.contains(expected), "{text}");
    }

    #[test]
    fn the_banner_says_when_the_data_is_written() {
        let check = |directives: &[(&str, &str)], expected: &str| {
            let text = kept(directives);
            let expected = format!("store 0123456789abcdef, {expected}\n");
            assert!(text.contains(&expected), "{directives:?}:\n{text}");
        };
        let always = [("appendonly", "yes"), ("appendfsync", "always")];
        check(&always, "synced to disk before each reply");
        let never = [("appendonly", "yes"), ("appendfsync", "no")];
        check(&never, "synced to disk when the operating system does so");
        let both = [("appendonly", "yes"), ("save", "60 1")];
        check(&both, "synced to disk every second");
        let snapshots = [("appendonly", "no"), ("save", "60 1")];
        check(
            &snapshots,
            "saved as snapshots: writes since the last one can be lost",
        );
        let nothing = [
            ("appendonly", "no"),
            ("appendfsync", "always"),
            ("save", ""),
        ];
        check(&nothing, "not saved by itself: appendonly and save are off");
    }

    /// The banner of a node that keeps its data, with these directives.
    fn kept(directives: &[(&str, &str)]) -> String {
        let mut config = Config::new();
        for (name, value) in directives {
            let pair = (name.as_bytes(), value.as_bytes());
            let _changes = config.set_many(&[pair], Origin::Startup).unwrap();
        }
        text(&of_store(Store {
            kept: Some(Kept {
                directory: Path::new("/var/kumi"),
                id: "0123456789abcdef",
                settings: config.settings(),
            }),
            ..Store::default()
        }))
    }

    fn of_store(store: Store<'_>) -> Places<'_> {
        Places {
            node: "a",
            store: Some(store),
            ..Places::default()
        }
    }

    #[test]
    fn other_machines_are_told_how_to_join_a_node_that_they_reach() {
        let mut places = Places {
            node: "a",
            membership: Some("10.0.0.1:7400".parse().unwrap()),
            ..Places::default()
        };
        assert!(!text(&places).contains("--join"));
        assert!(text(&places).contains("  node   a, membership 10.0.0.1:7400/udp\n"));
        places.invitation = Some(Invitation {
            address: "10.0.0.1:7400".into(),
            key_file: Path::new("/state/cluster.key"),
        });
        let expected = "  join   kumi up --join 10.0.0.1 --key-file kumi.key\n         on the others, with a copy of /state/cluster.key\n";
        assert!(text(&places).contains(expected), "{}", text(&places));
        if let Some(invitation) = &mut places.invitation {
            invitation.address = "a.example:7401".into();
        }
        assert!(text(&places).contains("--join a.example:7401 "));
    }

    #[test]
    fn a_temporary_state_directory_is_named_for_other_commands() {
        let mut places = Places {
            node: "a",
            ..Places::default()
        };
        assert!(!text(&places).contains("--state-dir"));
        places.temporary_state = Some(Path::new("/run/user/1/kumi-7-0"));
        let expected = "  node   a\n  state  /run/user/1/kumi-7-0 (--state-dir of kumi status, ";
        assert!(text(&places).contains(expected), "{}", text(&places));
    }

    #[test]
    fn a_client_of_a_node_with_tls_trusts_its_authority() {
        let tls = ["127.0.0.1:6379".parse().unwrap()];
        let text = text(&of_store(Store {
            tls: &tls,
            authority: Some("/state/ca.pem".into()),
            ..Store::default()
        }));
        assert!(text.contains("  store  127.0.0.1:6379 (TLS)\n"), "{text}");
        let client = "redis-cli -p 6379 --tls --cacert /state/ca.pem set hello world";
        assert!(text.contains(client), "{text}");
    }

    #[test]
    fn every_place_has_its_line() {
        check(
            &["127.0.0.1:6379", "[::1]:6379"],
            Some("/tmp/k.sock"),
            false,
            "  store  127.0.0.1:6379\n         [::1]:6379\n         /tmp/k.sock\n",
        );
    }
}
