//! The command line, defined once: parsing, both helps and the completions of every shell come from here.

use crate::command_line::exit::EXIT_CODES;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use kumi_cluster::Authority;
use kumi_common::Name;
use kumi_node::config::{self, LogLevel, Preset};
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  kumi                            a node on 127.0.0.1:6379
  kumi up --port 7000             on another port
  kumi up --ephemeral             without keeping anything
  kumi up --redis-conf redis.conf with an existing configuration
  kumi up --set maxmemory=1gb     with one directive changed
  kumi up --bind 10.0.0.1         for other machines too; prints the line for them
  kumi up --join 10.0.0.1 --key-file kumi.key
                                  on the other machines: uses the store of the first
  kumi up --join 10.0.0.1 --config kumi.kdl
                                  and runs the programs that the file names
  kumi server --port 7000         exactly what kumi-server --port 7000 does";

/// The whole command line: without a command, the options of `up`.
#[derive(Debug, Parser)]
#[command(
    name = "kumi",
    version = kumi_store::KUMI_VERSION,
    about = "A Redis-compatible store, calls between programs, jobs and membership",
    long_about = "A Redis-compatible store (up, server), calls between programs through readable Redis keys (muf), \
                  background jobs (jobs), typed channels over QUIC (schema) and membership with failure detection \
                  (cluster), in one binary. 'kumi up' starts a node that has all of them; 'kumi up --join' adds a \
                  machine.\n\n\
                  Without a command, kumi does what 'kumi up' does: it starts a node and runs until ctrl-c.",
    after_long_help = format!("{EXAMPLES}\n\n{EXIT_CODES}\n\n'kumi server' has the exit codes of redis-server: 0 and 1."),
    args_conflicts_with_subcommands = true,
    max_term_width = 100,
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) task: Option<Task>,
    #[command(flatten)]
    pub(crate) up: UpOptions,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    /// Start a node and run until ctrl-c
    ///
    /// A node has a store, is a member of a cluster, runs the programs of its kumi.kdl, and answers HTTP requests for its
    /// health and metrics. With --join it uses the store of the others instead of one of its own.
    ///
    /// By default everything is on loopback: the store on port 6379, membership on 7400 (UDP), HTTP on 7480. If 7400 or
    /// 7480 is taken there, a free port is used, and said. The store keeps its data in an append-only file, synced every
    /// second. On other addresses the store and HTTP speak TLS, and only named users log in: 'kumi url' prints the URL.
    ///
    /// Ctrl-c, SIGTERM, 'kumi stop' and the SHUTDOWN command stop the node: workers finish their tasks, the node leaves
    /// the cluster, and the store answers what it has received. A second signal ends it at once. SIGHUP and 'kumi reload'
    /// make it read kumi.kdl and the key file again.
    #[command(after_long_help = format!("{EXAMPLES}\n\n{EXIT_CODES}"))]
    Up(UpOptions),
    #[command(flatten)]
    Operate(crate::command_line::operate::OperateTask),
    /// Run kumi-server: takes what redis-server takes
    ///
    /// Everything behind 'server' is handed over as it is: [/path/to/redis.conf] [--directive value ...] [-], and
    /// also --help and --version. Replace 'redis-server' by 'kumi server' in a script and it goes on working.
    #[command(disable_help_flag = true)]
    Server {
        /// A configuration file and directives, as redis-server takes them
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Print the URL of the store, for programs of the team
    ///
    /// The user is kumi-app, which may do everything but administer. The URL has the password: who reads it can use the
    /// store. The node is the one of this machine whose state directory has its key and addresses; --key-file and
    /// --store name another one.
    #[command(after_long_help = crate::command_line::url::EXAMPLES)]
    Url(crate::command_line::url::UrlOptions),
    /// Make the key of a cluster, or show what is derived from it
    ///
    /// docs/trust.md says what a key is good for.
    Key(crate::command_line::key::KeyOptions),
    /// Make a running node of this machine read kumi.kdl and its key file again
    ///
    /// Prints what was applied and what needs a restart. SIGHUP does the same; the log has the answer then.
    Reload(crate::command_line::reload::ReloadOptions),
    /// Check kumi.kdl, the configuration of a node, show it, or print an example
    ///
    /// docs/kumi-kdl.md describes every name of the file.
    #[command(after_long_help = crate::command_line::config::EXIT_CODES)]
    Config(crate::command_line::config::ConfigOptions),
    /// Check an append-only file: say what is wrong and where
    ///
    /// PATH is its directory, its manifest or one of its files. Nothing is changed without --fix.
    #[command(after_long_help = crate::command_line::check::EXIT_CODES)]
    CheckAof(CheckAofOptions),
    /// Check an RDB file: say what is wrong and where
    #[command(after_long_help = crate::command_line::check::EXIT_CODES)]
    CheckRdb(CheckRdbOptions),
    /// Call units, be one, and watch them: MUF from the shell
    ///
    /// Units are programs that call each other and keep values through readable keys on a Redis server. docs/muf.md is
    /// for users, docs/muf-protocol.md describes the protocol. 'kumi muf help COMMAND' says more about each command.
    #[command(after_long_help = crate::command_line::muf::EXIT_CODES)]
    Muf(crate::command_line::muf::MufOptions),
    /// Enqueue tasks, look at them, and work on them with any program
    ///
    /// docs/jobs.md describes tasks, their states and the protocol. 'kumi jobs help COMMAND' says more about each
    /// command.
    #[command(after_long_help = crate::command_line::jobs::EXIT_CODES)]
    Jobs(crate::command_line::jobs::JobsOptions),
    /// Check, format and compare schemas, and write code from them
    ///
    /// A schema describes the channels of a Unison protocol and what travels on them. docs/schema.md is a tour of the
    /// language. 'kumi schema help COMMAND' says more about each command.
    #[command(after_long_help = crate::command_line::schema::EXIT_CODES)]
    Schema(crate::command_line::schema::SchemaOptions),
    /// Run the nodes of a cluster, and query them
    ///
    /// docs/cluster.md is for users, docs/cluster-protocol.md describes how nodes decide. 'kumi cluster help COMMAND' says
    /// more about each command.
    #[command(after_long_help = format!("{}\n\n{}", crate::command_line::cluster::FIRST_STEPS, crate::command_line::cluster::EXIT_CODES))]
    Cluster(crate::command_line::cluster::ClusterOptions),
    /// Print a completion script for a shell
    ///
    /// For bash, put it where bash-completion looks:
    /// kumi completions bash > ~/.local/share/bash-completion/completions/kumi
    Completions {
        /// Which shell
        shell: Shell,
    },
}

/// Later wins: the node's defaults, then redis.conf, then kumi.kdl, then these options.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct UpOptions {
    /// Port of the store; 0 for none [default: 6379]
    #[arg(short, long, value_name = "N")]
    pub(crate) port: Option<u16>,
    /// Address to listen on, IP or IP:PORT; may be repeated [default: 127.0.0.1 and ::1]
    ///
    /// The whole node listens there: store, membership and HTTP. A port given here is the same as --port: all addresses
    /// have one. '*' is every IPv4 address of the machine. Loopback addresses speak plain text, others TLS. With --join,
    /// the default is the address that routes to the other node.
    #[arg(
        short,
        long,
        value_name = "ADDR",
        value_delimiter = ',',
        hide_short_help = true
    )]
    pub(crate) bind: Vec<String>,
    /// A node to join, HOST or HOST:PORT (7400); may be repeated. Its cluster's store is used
    #[arg(short, long, value_name = "HOST", value_delimiter = ',', value_parser = seed)]
    pub(crate) join: Vec<Authority>,
    /// The file with the cluster's key [default: kumi.kdl's, KUMI_CLUSTER_KEY_FILE, else cluster.key in the state directory]
    ///
    /// A node that joins nobody makes a key at its first start. The others need a copy of the file. It may hold two keys
    /// while one replaces the other: the first is used, both are accepted.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) key_file: Option<PathBuf>,
    /// The configuration of the node [default: ./kumi.kdl, else $XDG_CONFIG_HOME/kumi/kumi.kdl]
    ///
    /// Options of the command line win over the file. docs/kumi-kdl.md describes it; 'kumi config check' checks it.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The node's name among the members [default: the machine's name]
    #[arg(short, long, value_name = "NAME", value_parser = node_name, hide_short_help = true)]
    pub(crate) name: Option<Name>,
    /// The host name or address by which other machines reach this node [default: the bound address]
    #[arg(long, value_name = "HOST", value_parser = config::advertised, hide_short_help = true)]
    pub(crate) advertise: Option<String>,
    /// Use a Redis, Valkey or Redis Cluster outside of the cluster, instead of a store of this node
    #[arg(
        long,
        value_name = "URL",
        conflicts_with = "no_store",
        hide_short_help = true
    )]
    pub(crate) store: Option<String>,
    /// Run no store: use the one of the cluster
    #[arg(long, hide_short_help = true)]
    pub(crate) no_store: bool,
    /// UDP port of membership; 0 for any free one [default: 7400]
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub(crate) cluster_port: Option<u16>,
    /// Port of HTTP: health, readiness and metrics; 0 for any free one [default: 7480]
    #[arg(
        long,
        value_name = "N",
        conflicts_with = "no_http",
        hide_short_help = true
    )]
    pub(crate) http_port: Option<u16>,
    /// Answer no HTTP requests
    #[arg(long, hide_short_help = true)]
    pub(crate) no_http: bool,
    /// The network that the timeouts of membership are for: lan, wan or local [default: lan]
    #[arg(long, value_name = "NET", value_parser = preset(), hide_short_help = true)]
    pub(crate) preset: Option<Preset>,
    /// Where key, recorded ports and, without --dir, the data are kept [default: $XDG_STATE_HOME/kumi/INSTANCE]
    ///
    /// INSTANCE is the port of the store; of a node without a store, its name, or the port of membership. With --dir it
    /// is that directory, with --ephemeral a temporary one.
    #[arg(long, value_name = "DIR", hide_short_help = true)]
    pub(crate) state_dir: Option<PathBuf>,
    /// What is logged: error, warn, info, debug or trace [default: warn]
    #[arg(long, value_name = "LEVEL", value_parser = log_level(), hide_short_help = true)]
    pub(crate) log_level: Option<LogLevel>,
    /// How long running tasks may go on when the node stops, such as 30s or 5m [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = config::duration, hide_short_help = true)]
    pub(crate) stop_within: Option<Duration>,
    /// Own certificates instead of a key: this node's chain, PEM
    #[arg(long, value_name = "FILE", requires_all = ["tls_key_file", "tls_ca_file"], conflicts_with = "key_file", hide_short_help = true)]
    pub(crate) tls_cert_file: Option<PathBuf>,
    /// The private key of that certificate, PEM
    #[arg(
        long,
        value_name = "FILE",
        requires = "tls_cert_file",
        hide_short_help = true
    )]
    pub(crate) tls_key_file: Option<PathBuf>,
    /// The authorities that sign the certificates of all nodes, PEM
    #[arg(
        long,
        value_name = "FILE",
        requires = "tls_cert_file",
        hide_short_help = true
    )]
    pub(crate) tls_ca_file: Option<PathBuf>,
    /// Listen on a Unix socket too
    #[arg(long, value_name = "PATH", hide_short_help = true)]
    pub(crate) unixsocket: Option<PathBuf>,
    /// A configuration file in redis.conf syntax
    #[arg(long, value_name = "FILE")]
    pub(crate) redis_conf: Option<PathBuf>,
    /// Set a directive of redis.conf; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = directive, hide_short_help = true)]
    pub(crate) set: Vec<Setting>,
    /// Keep the data in this directory [default: in $XDG_STATE_HOME/kumi]
    ///
    /// The default is $XDG_STATE_HOME/kumi/PORT/store; without the variable, ~/.local/state takes its place. What else the
    /// node keeps, its key above all, is in this directory too, unless --state-dir names another one. A node without a store
    /// keeps only that there.
    #[arg(short, long, value_name = "PATH")]
    pub(crate) dir: Option<PathBuf>,
    /// Keep everything in memory: the data is gone when the node stops
    #[arg(short, long, conflicts_with = "dir")]
    pub(crate) ephemeral: bool,
    /// Use TLS on the port, with a certificate of this node's own that is made at the first start
    ///
    /// Clients trust it by the file ca.pem in the node's directory for TLS; the banner names it. For development: in
    /// production, set tls-port, tls-cert-file and tls-key-file to a certificate of your authority.
    #[arg(long, hide_short_help = true)]
    pub(crate) tls: bool,
    /// Directory for the certificate of --tls [default: $XDG_STATE_HOME/kumi/PORT/tls]
    #[arg(long, value_name = "DIR", requires = "tls", hide_short_help = true)]
    pub(crate) tls_dir: Option<PathBuf>,
    /// Start without the banner
    #[arg(short, long, hide_short_help = true)]
    pub(crate) quiet: bool,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct CheckAofOptions {
    /// The directory, the manifest or a file
    #[arg(value_name = "PATH")]
    pub(crate) path: PathBuf,
    /// Cut off what cannot be loaded at the end of the last file; it is kept in a file beside it
    #[arg(long)]
    pub(crate) fix: bool,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct CheckRdbOptions {
    /// The file
    #[arg(value_name = "PATH")]
    pub(crate) path: PathBuf,
}

/// A directive and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(crate) name: String,
    pub(crate) value: String,
}

fn node_name(text: &str) -> Result<Name, String> {
    Name::new(text).map_err(|error| error.to_string())
}

fn seed(text: &str) -> Result<Authority, &'static str> {
    config::seed(text)
}

fn preset() -> impl TypedValueParser<Value = Preset> {
    PossibleValuesParser::new(["lan", "wan", "local"]).map(|text| match &*text {
        "wan" => Preset::Wan,
        "local" => Preset::Local,
        _ => Preset::Lan,
    })
}

fn log_level() -> impl TypedValueParser<Value = LogLevel> {
    PossibleValuesParser::new(["error", "warn", "info", "debug", "trace"]).map(
        |text| match &*text {
            "error" => LogLevel::Error,
            "info" => LogLevel::Info,
            "debug" => LogLevel::Debug,
            "trace" => LogLevel::Trace,
            _ => LogLevel::Warn,
        },
    )
}

fn directive(text: &str) -> Result<Setting, &'static str> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok(Setting {
            name: name.into(),
            value: value.into(),
        }),
        _ => Err("expected NAME=VALUE, for instance maxmemory=1gb"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn parse(line: &str) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(line.split(' '))
    }

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn options_of_up_work_with_and_without_the_word() {
        for line in [
            "kumi -p 7000 -b ::1,127.0.0.1",
            "kumi up --port 7000 --bind ::1 -b 127.0.0.1",
        ] {
            let cli = parse(line).unwrap();
            let options = match cli.task {
                Some(Task::Up(options)) => options,
                None => cli.up,
                other => panic!("{line} became {other:?}"),
            };
            assert_eq!(options.port, Some(7000), "{line}");
            assert_eq!(options.bind, ["::1", "127.0.0.1"], "{line}");
        }
    }

    #[test]
    fn a_node_to_join_and_its_place_are_checked_where_they_are_written() {
        let cli = parse("kumi up --join 10.0.0.1 -j b.example:7401 --name b --preset wan").unwrap();
        let Some(Task::Up(options)) = cli.task else {
            panic!("not up");
        };
        let joins: Vec<&str> = options.join.iter().map(Authority::as_str).collect();
        assert_eq!(joins, ["10.0.0.1:7400", "b.example:7401"]);
        assert_eq!(options.preset, Some(Preset::Wan));
        for wrong in [
            "kumi up --join a:b",
            "kumi up --name B",
            "kumi up --advertise 127.0.0.1",
            "kumi up --advertise 0.0.0.0",
            "kumi up --preset moon",
            "kumi up --tls-cert-file a.pem",
            "kumi up --stop-within soon",
            "kumi up --store redis://h --no-store",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_setting_may_hold_an_equals_sign_and_blanks() {
        let cli = Cli::try_parse_from(["kumi", "--set", "requirepass=a=b", "--set", "save=900 1"]);
        let set = cli.unwrap().up.set;
        assert_eq!((&*set[0].name, &*set[0].value), ("requirepass", "a=b"));
        assert_eq!((&*set[1].name, &*set[1].value), ("save", "900 1"));
    }

    /// A paragraph of the help is one line, which the terminal's width wraps. Lines that stand for themselves are
    /// indented, or follow a line that ends with a colon.
    fn is_wrapped_by_hand(text: &str) -> bool {
        let lines: Vec<&str> = text.lines().collect();
        let continues = |line: &str| line.starts_with(|c: char| !c.is_whitespace());
        lines
            .windows(2)
            .any(|pair| continues(pair[0]) && continues(pair[1]) && !pair[0].ends_with(':'))
    }

    #[test]
    fn help_is_not_wrapped_twice() {
        assert!(is_wrapped_by_hand("A short\nparagraph."));
        assert!(is_wrapped_by_hand("List:\n  a\n\nOne two\n(three)."));
        assert!(!is_wrapped_by_hand("One.\n\nList:\n  a  x\n  b  y\nTwo."));
        let root = Cli::command();
        let mut commands = vec![&root];
        let mut count = 0;
        while let Some(command) = commands.pop() {
            commands.extend(command.get_subcommands());
            let of_command = [
                command.get_about(),
                command.get_long_about(),
                command.get_before_help(),
                command.get_before_long_help(),
                command.get_after_help(),
                command.get_after_long_help(),
            ];
            let of_arguments = command
                .get_arguments()
                .flat_map(|argument| [argument.get_help(), argument.get_long_help()]);
            for text in of_command.into_iter().chain(of_arguments).flatten() {
                let text = text.to_string();
                assert!(!is_wrapped_by_hand(&text), "{}: {text}", command.get_name());
                count += 1;
            }
        }
        assert!(count > 100, "{count} texts");
    }

    #[test]
    fn earlier_names_of_options_are_taken_and_not_shown() {
        for line in [
            "kumi muf call web a.b --all --quiet 200ms",
            "kumi muf call web a.b --all --idle 200ms",
            "kumi jobs -q mail counts",
            "kumi jobs counts --queue mail",
        ] {
            parse(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        }
        for (line, gone) in [
            ("kumi muf call --help", "--quiet"),
            ("kumi jobs --help", " -q"),
        ] {
            let help = parse(line).unwrap_err().to_string();
            assert!(!help.contains(gone), "{gone} in {help}");
        }
    }

    #[test]
    fn the_help_names_every_part() {
        for line in ["kumi -h", "kumi --help"] {
            let help = parse(line).unwrap_err().to_string();
            let about = help.split("\n\n").next().unwrap_or_default();
            for part in ["store", "calls", "jobs", "membership"] {
                assert!(about.contains(part), "{line}: no {part} in {about}");
            }
        }
    }

    #[test]
    fn nonsense_is_a_usage_error() {
        for line in [
            "kumi down",
            "kumi --port x",
            "kumi --set maxmemory",
            "kumi -p 70000",
            "kumi completions",
        ] {
            assert_eq!(parse(line).unwrap_err().exit_code(), 2, "{line}");
        }
    }
}
