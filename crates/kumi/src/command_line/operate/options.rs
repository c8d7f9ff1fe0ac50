//! The command lines of `kumi status`, `nodes`, `drain`, `undrain`, `stop` and `store`.

use super::failure::EXIT_CODES;
use crate::command_line::terminal::Form;
use clap::{Args, Subcommand};
use kumi_node::config::duration;
use kumi_node::core::store_pin::StoreId;
use kumi_node::driver::client::MAX_GRACE;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// The port of membership, where an address names none.
const MEMBERSHIP_PORT: u16 = 7400;

#[derive(Debug, Subcommand)]
pub(crate) enum OperateTask {
    /// Show what needs attention, and what all nodes do
    ///
    /// First what needs attention, in words; then members, store, units, queues, workers, programs and schedules. All
    /// nodes are asked at once, and one that does not answer within 2 seconds is shown as such. docs/status.md describes
    /// the JSON document.
    #[command(after_long_help = format!("{STATUS_EXAMPLES}\n\n{EXIT_CODES}"))]
    Status(StatusOptions),
    /// List the nodes
    #[command(after_long_help = EXIT_CODES)]
    Nodes(NodesOptions),
    /// Make the workers of a node take no more tasks
    ///
    /// What runs is finished. The node stays a member, and its store, units and programs go on. It lasts until 'undrain'
    /// or the node's end.
    #[command(after_long_help = format!("{DRAIN_EXAMPLES}\n\n{EXIT_CODES}"))]
    Drain(MemberOptions),
    /// Make the workers of a drained node take tasks again
    #[command(after_long_help = EXIT_CODES)]
    Undrain(MemberOptions),
    /// Stop a node: its tasks are finished, it leaves and ends
    ///
    /// Without NODE the node of this machine, or the one of --at. This command returns when the node is gone.
    #[command(after_long_help = format!("{STOP_EXAMPLES}\n\n{EXIT_CODES}"))]
    Stop(StopOptions),
    /// Decide which store the cluster uses
    #[command(after_long_help = EXIT_CODES)]
    Store(StoreOptions),
}

const STATUS_EXAMPLES: &str = "\
Examples:
  kumi status
  kumi status --watch
  kumi status --at 10.0.0.1 --key-file kumi.key
  kumi status --output json | jq -r '.attention[].words'";

const DRAIN_EXAMPLES: &str = "\
Examples:
  kumi drain b
  kumi drain b --at 10.0.0.1 --operator-key-file operator.key
  kumi undrain b";

const STOP_EXAMPLES: &str = "\
Examples:
  kumi stop
  kumi stop b --grace 2m";

/// Which node is asked, and with which key.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct EntryOptions {
    /// The node of this machine to ask, by its name or its instance, where several run
    #[arg(long = "node", value_name = "NAME", conflicts_with_all = ["at", "state_dir"], hide_short_help = true)]
    pub(super) local: Option<String>,
    /// The node that runs in this state directory
    #[arg(
        long,
        value_name = "DIR",
        conflicts_with = "at",
        hide_short_help = true
    )]
    pub(super) state_dir: Option<PathBuf>,
    /// A node of another machine, by a host or host:port [default port: 7400]
    #[arg(long, value_name = "HOST[:PORT]", value_parser = address)]
    pub(super) at: Option<String>,
    /// The cluster's key file [default: that of the node of this machine]
    #[arg(long, value_name = "FILE", conflicts_with = "operator_key_file")]
    pub(super) key_file: Option<PathBuf>,
    /// A file with the operator's key instead, which is enough for all of these commands
    #[arg(long, value_name = "FILE")]
    pub(super) operator_key_file: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct StatusOptions {
    /// Show it again every second, until ctrl-c
    #[arg(short, long)]
    pub(super) watch: bool,
    #[command(flatten)]
    pub(super) show: NodesOptions,
}

#[derive(Args, Debug)]
pub(crate) struct NodesOptions {
    /// How to show it
    #[arg(long, value_name = "FORM", default_value = "text")]
    pub(super) output: Form,
    #[command(flatten)]
    pub(super) entry: EntryOptions,
}

#[derive(Args, Debug)]
pub(crate) struct MemberOptions {
    /// The node, by its name as 'kumi nodes' shows it
    #[arg(value_name = "NODE")]
    pub(super) node: String,
    #[command(flatten)]
    pub(super) entry: EntryOptions,
}

#[derive(Args, Debug)]
pub(crate) struct StopOptions {
    /// The node, by its name as 'kumi nodes' shows it [default: the one of this machine]
    #[arg(value_name = "NODE")]
    pub(super) node: Option<String>,
    /// How long running tasks may take, such as 0s, 90s or 10m
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = grace)]
    pub(super) grace: Duration,
    #[command(flatten)]
    pub(super) entry: EntryOptions,
}

#[derive(Args, Debug)]
pub(crate) struct StoreOptions {
    #[command(subcommand)]
    pub(super) task: StoreTask,
}

#[derive(Debug, Subcommand)]
pub(super) enum StoreTask {
    /// Make all members use the store of this id from now on
    ///
    /// A cluster uses the first store that it saw. Another one is red in 'kumi status', with its id, until this command
    /// decides or it is stopped. Nothing is copied from one store to the other.
    #[command(after_long_help = EXIT_CODES)]
    Use(UseOptions),
}

#[derive(Args, Debug)]
pub(super) struct UseOptions {
    /// The id of the store's data set, as 'kumi status' shows it
    #[arg(value_name = "ID")]
    pub(super) id: StoreId,
    /// Decide it also if no live store has the id
    #[arg(long)]
    pub(super) force: bool,
    #[command(flatten)]
    pub(super) entry: EntryOptions,
}

/// `host:port` from a host with or without a port.
fn address(text: &str) -> Result<String, &'static str> {
    let bare = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'));
    if let Ok(ip) = bare.unwrap_or(text).parse::<IpAddr>() {
        return Ok(SocketAddr::new(ip, MEMBERSHIP_PORT).to_string());
    }
    let is_name = |host: &str| {
        let odd = |c: char| c.is_whitespace() || c.is_control() || "[]/@:".contains(c);
        !host.is_empty() && !host.contains(odd)
    };
    match text.rsplit_once(':') {
        None if is_name(text) => Ok(format!("{text}:{MEMBERSHIP_PORT}")),
        Some((host, port)) => {
            let is_host = is_name(host) || text.parse::<SocketAddr>().is_ok();
            let is_port = port.parse::<u16>().is_ok_and(|port| port > 0);
            let is_address = is_host && is_port;
            is_address.then(|| text.to_owned()).ok_or(NO_ADDRESS)
        }
        None => Err(NO_ADDRESS),
    }
}

const NO_ADDRESS: &str = "expected a host or host:port, such as 10.0.0.1, a.example:7400 or [::1]";

fn grace(text: &str) -> Result<Duration, &'static str> {
    // A time of nothing is one here.
    if matches!(text, "0" | "0s" | "0ms") {
        return Ok(Duration::ZERO);
    }
    match duration(text)? {
        time if time > MAX_GRACE => Err("at most 1h"),
        time => Ok(time),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(subcommand)]
        task: OperateTask,
    }

    fn parse(line: &str) -> Result<OperateTask, clap::Error> {
        Line::try_parse_from(line.split(' ')).map(|line| line.task)
    }

    #[test]
    fn an_address_may_leave_out_the_port() {
        for (given, expected) in [
            ("10.0.0.1", "10.0.0.1:7400"),
            ("10.0.0.1:1", "10.0.0.1:1"),
            ("a.example", "a.example:7400"),
            ("a.example:7401", "a.example:7401"),
            ("::1", "[::1]:7400"),
            ("[::1]", "[::1]:7400"),
            ("[::1]:1", "[::1]:1"),
        ] {
            assert_eq!(address(given).as_deref(), Ok(expected), "{given}");
        }
        for wrong in [
            "", ":7400", "a:", "a:0", "a:70000", "a b", "http://a", "u@a:1", "[::1", "[a]:1",
        ] {
            assert_eq!(address(wrong), Err(NO_ADDRESS), "{wrong}");
        }
    }

    #[test]
    fn a_stop_has_thirty_seconds_unless_told() {
        let grace = |line: &str| match parse(line) {
            Ok(OperateTask::Stop(options)) => Some(options.grace.as_secs()),
            _ => None,
        };
        assert_eq!(grace("kumi stop"), Some(30));
        assert_eq!(grace("kumi stop b --grace 2m"), Some(120));
        assert_eq!(grace("kumi stop --grace 0s"), Some(0));
        assert_eq!(grace("kumi stop --grace 2h"), None);
        assert_eq!(grace("kumi stop --grace soon"), None);
    }

    #[test]
    fn nonsense_is_a_usage_error() {
        for line in [
            "kumi drain",
            "kumi store",
            "kumi store use",
            "kumi store use B!",
            "kumi status --at a:b",
            "kumi status --at a --node b",
            "kumi status --output xml",
            "kumi status --key-file a --operator-key-file b",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
        for line in [
            "kumi status --watch --output json --at a --key-file k",
            "kumi nodes --node a",
            "kumi undrain b",
            "kumi store use 8c3d --force",
        ] {
            assert!(parse(line).is_ok(), "{line}");
        }
    }
}
