//! The command line of `kumi cluster`.

use super::failure::{EXIT_CODES, Failure};
use super::words;
use crate::command_line::terminal::Form;
use clap::{Args, Subcommand, ValueEnum};
use kumi_cluster::{Authority, MAX_QUARANTINE, NodeName};
use kumi_node::config::duration;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// Where a node listens, and where one is looked for, unless an option names another address.
pub(super) const DEFAULT_NODE: &str = "127.0.0.1:7400";
const DEFAULT_PORT: u16 = 7400;

/// The longest role, key or value; all of them and the name together have 512.
const MAX_WORD_BYTES: usize = 255;
const TOO_LONG: &str = "has more than 255 bytes";

/// The command.
#[derive(Debug, Args)]
pub(crate) struct ClusterOptions {
    #[command(subcommand)]
    pub(super) task: ClusterTask,
}

#[derive(Debug, Subcommand)]
pub(super) enum ClusterTask {
    /// Run a node until ctrl-c, then leave the cluster
    ///
    /// The node joins the first of its seeds that answers; without seeds it is the first of a new cluster. It prints what
    /// happens: on a terminal as lines for people, otherwise as JSON lines like those of 'watch', and beside them
    /// "started" (the first), "waiting" (a seed does not let it in, and why), "reloaded" and "reload_failed". Ctrl-c,
    /// SIGTERM and SIGHUP (unless it is ignored, as with nohup) make it leave, so that the others know at once; a second
    /// one stops it on the spot. SIGUSR1 makes it read its key file or certificates again: new connections use them, open
    /// ones stay.
    #[command(after_long_help = format!("{UP_EXAMPLES}\n\n{EXIT_CODES}"))]
    Up(UpOptions),
    /// List the members as a node sees them
    ///
    /// NAME is the member's name and its life, as owners of jobs are written; a member of an earlier version has none.
    /// PHI is how suspicious the member's silence is to the node that was asked, and SEEN how long ago that node heard
    /// from it; a node watches only some of the others, so both may be missing. INC is the member's incarnation: it is
    /// increased each time the member refutes a suspicion.
    #[command(after_long_help = format!("{MEMBERS_EXAMPLES}\n\n{EXIT_CODES}"))]
    Members(MembersOptions),
    /// Show what happens in the cluster, as a node sees it
    ///
    /// On a terminal, lines for people; otherwise JSON lines with a "kind": view (once, everything that is true at the
    /// beginning), topology, status, metadata, quarantined, released, self_downed, conflict, peer_refused, name_taken,
    /// topology_apply_failed, missed. A node accepts at most 32 watchers.
    #[command(after_long_help = format!("{WATCH_EXAMPLES}\n\n{EXIT_CODES}"))]
    Watch(WatchOptions),
    /// Make a node leave the cluster and end
    ///
    /// The node that is asked tells the others that it goes, waits for its grace, and ends with exit code 0. This
    /// command returns when it is gone. A port that is still in use 10 seconds later is mentioned, and no failure: the
    /// node may have been started again.
    #[command(after_long_help = format!("{LEAVE_EXAMPLES}\n\n{EXIT_CODES}"))]
    Leave(LeaveOptions),
    /// Keep a member out for a while, or let it in again
    ///
    /// The member is put down at once, and no life of it is let in until the time is over or the quarantine is lifted.
    /// Every node learns of it.
    #[command(after_long_help = format!("{QUARANTINE_EXAMPLES}\n\n{EXIT_CODES}"))]
    Quarantine(QuarantineOptions),
    /// Change what a running node says about itself
    ///
    /// What is given here replaces all roles and all keys that the node has; what is not given is gone. The others see
    /// it within moments.
    #[command(after_long_help = format!("{METADATA_EXAMPLES}\n\n{EXIT_CODES}"))]
    Metadata(MetadataTask),
    /// Make a key file for a cluster
    ///
    /// 32 random bytes as hexadecimal digits, readable by its owner alone (mode 600). Every node and operator needs a
    /// copy. A process with the key can join the cluster and give operator commands. An existing file is never
    /// overwritten.
    #[command(after_long_help = format!("{KEYGEN_EXAMPLES}\n\n{EXIT_CODES}"))]
    Keygen(KeygenOptions),
}

/// The shortest way to see a cluster.
pub(crate) const FIRST_STEPS: &str = "\
Examples, each 'up' in a terminal of its own:
  kumi cluster keygen cluster.key
  kumi cluster up --key-file cluster.key
  kumi cluster up --key-file cluster.key --bind 127.0.0.1:7401 --seed 127.0.0.1:7400
  kumi cluster members --key-file cluster.key";

const UP_EXAMPLES: &str = "\
Examples:
  kumi cluster keygen cluster.key
  kumi cluster up --key-file cluster.key --bind 10.0.0.1:7400
  kumi cluster up --key-file cluster.key --bind 10.0.0.2:7400 --seed 10.0.0.1:7400 --name worker-2
  kumi cluster up --key-file cluster.key --bind 0.0.0.0:7400 --advertise node3.example:7400 \\
      --seed seeds.example:7400";

const MEMBERS_EXAMPLES: &str = "\
Examples:
  kumi cluster members --key-file cluster.key
  kumi cluster members --key-file cluster.key --node 10.0.0.1:7400 --all
  kumi cluster members --key-file cluster.key --output json | jq -r .hash";

const WATCH_EXAMPLES: &str = "\
Examples:
  kumi cluster watch --key-file cluster.key
  kumi cluster watch --key-file cluster.key --output json | jq 'select(.kind == \"status\")'";

const LEAVE_EXAMPLES: &str = "\
Examples:
  kumi cluster leave --key-file cluster.key --node 10.0.0.2:7400";

const METADATA_EXAMPLES: &str = "\
Examples:
  kumi cluster metadata --role web --meta http=10.0.0.2:80 --node 10.0.0.2:7400
  kumi cluster metadata --node 10.0.0.2:7400    # removes all roles and keys";

const KEYGEN_EXAMPLES: &str = "\
Examples:
  kumi cluster keygen cluster.key
  export KUMI_CLUSTER_KEY_FILE=$PWD/cluster.key";

const QUARANTINE_EXAMPLES: &str = "\
Examples:
  kumi cluster quarantine 10.0.0.2:7400 --reason 'disk fails' --for 10m
  kumi cluster quarantine 10.0.0.2:7400 --lift";

/// What proves that one belongs to the cluster.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct TrustOptions {
    /// The cluster's key file, as 'kumi cluster keygen' makes it [default: KUMI_CLUSTER_KEY_FILE]
    #[arg(long, value_name = "FILE", conflicts_with_all = ["tls_cert", "tls_key", "tls_ca"])]
    pub(super) key_file: Option<PathBuf>,
    /// Mutual TLS instead of a key: this side's certificate chain, PEM
    #[arg(long, value_name = "FILE", requires_all = ["tls_key", "tls_ca"])]
    pub(super) tls_cert: Option<PathBuf>,
    /// The certificate's private key, PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(super) tls_key: Option<PathBuf>,
    /// The authorities that sign the certificates of all nodes, PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(super) tls_ca: Option<PathBuf>,
}

/// Which node to ask.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct AskOptions {
    /// The node to ask, host:port [default: KUMI_CLUSTER_NODE, else 127.0.0.1:7400]
    #[arg(long, value_name = "ADDR")]
    pub(super) node: Option<String>,
    #[command(flatten)]
    pub(super) trust: TrustOptions,
}

#[derive(Args, Debug)]
pub(super) struct UpOptions {
    /// The node's name: up to 63 of a-z, 0-9, '.' and '-' [default: its address, such as 10.0.0.1-7400]
    #[arg(long, value_name = "NAME", value_parser = NodeName::new)]
    pub(super) name: Option<NodeName>,
    /// Where to listen (UDP), an IP address with or without a port (7400); port 0 picks a free one
    #[arg(short, long, value_name = "IP[:PORT]", default_value = DEFAULT_NODE, value_parser = bind_address)]
    pub(super) bind: SocketAddr,
    /// Where others reach this node, host:port, if that is not where it listens
    #[arg(long, value_name = "ADDR")]
    pub(super) advertise: Option<String>,
    /// A node to join, host:port; may be given several times, and names are resolved anew each time
    #[arg(short, long, value_name = "ADDR", value_delimiter = ',')]
    pub(super) seed: Vec<String>,
    /// The cluster's name; nodes of other clusters are refused
    #[arg(long, value_name = "NAME", default_value = "kumi")]
    pub(super) cluster: String,
    #[command(flatten)]
    pub(super) metadata: MetadataOptions,
    /// The network that the timeouts are for
    #[arg(long, value_name = "NET", default_value = "lan")]
    pub(super) preset: Preset,
    /// About how many nodes there will be
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) nodes: u32,
    /// Watch the cluster without being a member
    #[arg(long, requires = "seed")]
    pub(super) observer: bool,
    /// How to show what happens
    #[arg(long, value_name = "FORM", default_value = "auto")]
    pub(super) output: Form,
    #[command(flatten)]
    pub(super) trust: TrustOptions,
}

/// What a node says about itself.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct MetadataOptions {
    /// What this node is for; may be given several times
    #[arg(long, value_name = "ROLE", value_parser = word)]
    pub(super) role: Vec<String>,
    /// What else the others shall know, a service's address for instance; may be given several times
    #[arg(short, long, value_name = "KEY=VALUE", value_parser = pair)]
    pub(super) meta: Vec<(String, String)>,
}

/// Networks whose timeouts are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Preset {
    /// One site; death is noticed within about ten seconds
    Lan,
    /// Several sites, with longer round trips and more loss
    Wan,
    /// A few processes on one machine, for development: quick to notice
    Local,
}

#[derive(Args, Debug)]
pub(super) struct MembersOptions {
    /// How to show it; JSON has the driver's counters too
    #[arg(long, value_name = "FORM", default_value = "auto")]
    pub(super) output: Form,
    /// Show removed members too: they left, or died a while ago
    #[arg(short, long)]
    pub(super) all: bool,
    #[command(flatten)]
    pub(super) ask: AskOptions,
}

#[derive(Args, Debug)]
pub(super) struct WatchOptions {
    /// How to show it
    #[arg(long, value_name = "FORM", default_value = "auto")]
    pub(super) output: Form,
    #[command(flatten)]
    pub(super) ask: AskOptions,
}

#[derive(Args, Debug)]
pub(super) struct LeaveOptions {
    #[command(flatten)]
    pub(super) ask: AskOptions,
}

#[derive(Args, Debug)]
pub(super) struct QuarantineOptions {
    /// The member to keep out, as 'members' shows it
    pub(super) authority: String,
    /// Why; shown to every operator
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(super) reason: String,
    /// How long, such as 90s, 10m or 24h
    #[arg(long = "for", value_name = "TIME", default_value = "10m", value_parser = quarantine_time)]
    pub(super) time: Duration,
    /// Let it in again
    #[arg(long, conflicts_with_all = ["reason", "time"])]
    pub(super) lift: bool,
    #[command(flatten)]
    pub(super) ask: AskOptions,
}

#[derive(Args, Debug)]
pub(super) struct MetadataTask {
    #[command(flatten)]
    pub(super) metadata: MetadataOptions,
    #[command(flatten)]
    pub(super) ask: AskOptions,
}

#[derive(Args, Debug)]
pub(super) struct KeygenOptions {
    /// The file to make
    pub(super) file: PathBuf,
}

/// An address that others can dial: a host and a port.
pub(super) fn authority(text: &str) -> Result<Authority, Failure> {
    let parts = text.rsplit_once(':');
    let port = parts.map(|(_, port)| port.parse::<u16>());
    // Where an IPv6 address without brackets ends is not known; with them, std knows what it may hold.
    let is_name = |host: &str| !host.is_empty() && !host.contains([':', '[', ']', '/', '@']);
    let has_host = parts.is_some_and(|(host, _)| is_name(host))
        || (text.starts_with('[') && text.parse::<SocketAddr>().is_ok());
    match (Authority::new(text), port) {
        (Ok(authority), Some(Ok(1..))) if has_host => Ok(authority),
        _ => Err(Failure::usage(format!(
            "'{}' is not host:port",
            words::shown(text)
        ))),
    }
}

/// Where to listen. Only a machine's own addresses can be listened on, so names are not looked up.
fn bind_address(text: &str) -> Result<SocketAddr, &'static str> {
    let alone = |_| {
        text.parse()
            .map(|ip: IpAddr| SocketAddr::new(ip, DEFAULT_PORT))
    };
    text.parse().or_else(alone).map_err(|_| {
        "expected an IP address with or without a port, such as 10.0.0.1 or [::1]:7400; names are for --advertise"
    })
}

/// A role or a key, which stands between spaces when it is shown.
fn word(text: &str) -> Result<String, &'static str> {
    let is_apart = |c: char| c.is_whitespace() || c.is_control();
    match text {
        "" => Err("has to have a character at least"),
        _ if text.contains(is_apart) => Err("must not hold spaces or control characters"),
        _ if text.len() > MAX_WORD_BYTES => Err(TOO_LONG),
        _ => Ok(text.into()),
    }
}

fn pair(text: &str) -> Result<(String, String), &'static str> {
    match text.split_once('=') {
        Some((_, value)) if value.contains(char::is_control) => {
            Err("must not hold control characters")
        }
        Some((_, value)) if value.len() > MAX_WORD_BYTES => Err(TOO_LONG),
        Some((key, value)) if !key.is_empty() => Ok((word(key)?, value.into())),
        _ => Err("expected KEY=VALUE, for instance http=10.0.0.1:80"),
    }
}

/// How long a member is kept out; there is a limit.
fn quarantine_time(text: &str) -> Result<Duration, &'static str> {
    match duration(text)? {
        time if time > MAX_QUARANTINE => Err("at most 8760h, which is a year"),
        time => Ok(time),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        options: ClusterOptions,
    }

    fn parse(line: &str) -> Result<ClusterTask, clap::Error> {
        Line::try_parse_from(line.split(' ')).map(|line| line.options.task)
    }

    #[test]
    fn the_first_steps_name_the_key_for_each_terminal() {
        let lines = FIRST_STEPS.lines();
        let lines: Vec<&str> = lines
            .filter_map(|line| line.strip_prefix("  kumi "))
            .collect();
        assert_eq!(lines.len(), 4);
        for line in lines {
            let trust = match parse(line) {
                Ok(ClusterTask::Up(options)) => options.trust,
                Ok(ClusterTask::Members(options)) => options.ask.trust,
                Ok(ClusterTask::Keygen(_)) => continue,
                other => panic!("{line}: {other:?}"),
            };
            assert!(trust.key_file.is_some(), "{line}");
        }
    }

    #[test]
    fn seeds_and_metadata_may_be_given_several_times() {
        let line = "cluster up --seed a:1,b:2 -s c:3 -m http=x=y --role web --preset wan";
        let Ok(ClusterTask::Up(options)) = parse(line) else {
            panic!("{line}");
        };
        assert_eq!(options.seed, ["a:1", "b:2", "c:3"]);
        let meta = &options.metadata.meta;
        assert_eq!(*meta, [("http".to_owned(), "x=y".to_owned())]);
        assert_eq!(options.bind.to_string(), DEFAULT_NODE);
        assert_eq!(options.preset, Preset::Wan);
    }

    #[test]
    fn a_node_may_be_given_a_name() {
        let name = |line: &str| match parse(line) {
            Ok(ClusterTask::Up(options)) => Ok(options.name),
            Ok(other) => panic!("{other:?}"),
            Err(error) => Err(error.to_string()),
        };
        assert_eq!(name("cluster up"), Ok(None));
        let given = name("cluster up --name web-1").map(|name| name.map(|name| name.to_string()));
        assert_eq!(given, Ok(Some("web-1".into())));
        let refused = name("cluster up --name Web_1").expect_err("not a name");
        assert!(refused.contains("'Web_1'"), "{refused}");
        assert!(
            refused.contains("a name is 1 to 63 lower-case letters"),
            "{refused}"
        );
    }

    #[test]
    fn an_address_to_listen_on_may_leave_out_the_port() {
        for (given, expected) in [
            ("10.0.0.1", "10.0.0.1:7400"),
            ("10.0.0.1:1", "10.0.0.1:1"),
            ("::1", "[::1]:7400"),
            ("[::1]:1", "[::1]:1"),
        ] {
            let Ok(ClusterTask::Up(options)) = parse(&format!("cluster up --bind {given}")) else {
                panic!("{given}");
            };
            assert_eq!(options.bind.to_string(), expected);
        }
    }

    #[test]
    fn nodes_are_hosts_with_ports() {
        for right in ["10.0.0.1:7400", "seeds.example:1", "[::1]:65535"] {
            assert!(authority(right).is_ok(), "{right}");
        }
        for wrong in [
            "",
            "10.0.0.1",
            "a:0",
            "a:70000",
            "a b:1",
            "a:",
            ":7400",
            "::1:7400",
            "[::1:7400",
            "[::1]",
            "[a]:1",
            "http://a:1",
            "user@a:1",
        ] {
            assert!(authority(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_quarantine_lasts_ten_minutes_unless_told() {
        let time = |line: &str| match parse(line) {
            Ok(ClusterTask::Quarantine(options)) => Some(options.time),
            _ => None,
        };
        let seconds = |line| time(line).map(|time| time.as_secs());
        assert_eq!(seconds("cluster quarantine a:1"), Some(600));
        assert_eq!(seconds("cluster quarantine a:1 --for 90s"), Some(90));
        assert_eq!(seconds("cluster quarantine a:1 --for 0s"), None);
        assert_eq!(seconds("cluster quarantine a:1 --for soon"), None);
        let year = MAX_QUARANTINE.as_secs();
        assert_eq!(seconds("cluster quarantine a:1 --for 8760h"), Some(year));
        assert_eq!(seconds("cluster quarantine a:1 --for 8761h"), None);
    }

    #[test]
    fn nonsense_is_a_usage_error() {
        for line in [
            "cluster",
            "cluster up --bind nowhere",
            "cluster up --bind localhost:7400",
            "cluster up --nodes 0",
            "cluster up --observer",
            "cluster up --role=",
            "cluster up --role=a\tb",
            "cluster metadata --meta a\tb=c",
            "cluster metadata --meta a=b\x1b[2J",
            "cluster up --meta =x",
            "cluster up --preset moon",
            "cluster quarantine",
            "cluster quarantine a:1 --lift --reason x",
            "cluster members --tls-cert x",
            "cluster members --key-file k --tls-cert x --tls-key y --tls-ca z",
            "cluster keygen",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
