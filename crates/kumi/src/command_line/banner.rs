//! What `kumi up` says when it has started: what runs where, and how to try it.

use kumi_store::config::{Fsync, Settings};
use std::fmt::Write;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

/// The places a node can be reached at.
#[derive(Debug, Default)]
pub(crate) struct Places<'a> {
    pub(crate) tcp: &'a [SocketAddr],
    pub(crate) unix: Option<&'a Path>,
    /// Where the data is kept; none if it is in memory only.
    pub(crate) kept: Option<Kept<'a>>,
    /// Addresses for clients that speak TLS.
    pub(crate) tls: &'a [SocketAddr],
    /// The authority they trust.
    pub(crate) authority: Option<&'a Path>,
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
    let tcp = places.tcp.iter().map(SocketAddr::to_string);
    let unix = places.unix.iter().map(|path| path.display().to_string());
    let tls = places.tls.iter().map(|address| format!("{address} (TLS)"));
    for (index, place) in tcp.chain(tls).chain(unix).enumerate() {
        let name = if index == 0 { "store" } else { "" };
        line(&mut text, name, &place);
    }
    line(
        &mut text,
        "speaks",
        &format!("Redis {} (RESP2, RESP3)", kumi_store::REDIS_VERSION),
    );
    match places.kept {
        None => line(
            &mut text,
            "keeps",
            "everything in memory: what it holds is gone when it stops",
        ),
        Some(kept) => {
            line(&mut text, "keeps", &kept.directory.display().to_string());
            let saving = saving(kept.settings);
            line(&mut text, "", &format!("store {}, {saving}", kept.id));
        }
    }
    let client = redis_cli(places);
    line(&mut text, "try", &format!("{client} set hello world"));
    line(&mut text, "", &format!("{client} get hello"));
    line(&mut text, "stop", "ctrl-c");
    text
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

/// A command to paste that reaches the node from this machine.
fn redis_cli(places: &Places<'_>) -> String {
    let mut command = String::from("redis-cli");
    let address = places.tcp.first().or(places.tls.first());
    match (address, places.unix) {
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
    if places.tcp.is_empty() && !places.tls.is_empty() {
        command += " --tls";
        if let Some(path) = places.authority {
            command += &format!(" --cacert {}", path.display());
        }
    }
    if places.password {
        command += " --askpass";
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;
    use kumi_store::Config;
    use kumi_store::config::Origin;

    #[track_caller]
    fn check(tcp: &[&str], unix: Option<&str>, password: bool, expected: &str) {
        let tcp: Vec<SocketAddr> = tcp.iter().map(|text| text.parse().unwrap()).collect();
        let places = Places {
            tcp: &tcp,
            unix: unix.map(Path::new),
            kept: None,
            tls: &[],
            authority: None,
            password,
        };
        let text = text(&places);
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
        text(&Places {
            kept: Some(Kept {
                directory: Path::new("/var/kumi"),
                id: "0123456789abcdef",
                settings: config.settings(),
            }),
            ..Places::default()
        })
    }

    #[test]
    fn a_client_of_a_node_with_tls_trusts_its_authority() {
        let tls = ["127.0.0.1:6379".parse().unwrap()];
        let text = text(&Places {
            tls: &tls,
            authority: Some(Path::new("/state/ca.pem")),
            ..Places::default()
        });
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
