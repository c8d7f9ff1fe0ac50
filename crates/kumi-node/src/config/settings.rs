//! Every name of `kumi.kdl`, once: the reader takes the known names from here, a reload what it may apply, and
//! `docs/kumi-kdl.md` its tables.

use std::fmt;

/// The nodes at the top of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Section {
    /// The node itself and its membership.
    Node,
    /// The store.
    Store,
    /// The HTTP listener.
    Http,
    /// A task type that the worker runs.
    Work,
    /// Requests that are answered.
    Serve,
    /// A program that is kept running.
    Run,
    /// A schedule.
    Cron,
}

impl Section {
    /// All of them, in the order in which a file is written.
    pub const ALL: [Self; 7] = [
        Self::Node,
        Self::Store,
        Self::Http,
        Self::Work,
        Self::Serve,
        Self::Run,
        Self::Cron,
    ];

    /// The name of the node in a file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::Store => "store",
            Self::Http => "http",
            Self::Work => "work",
            Self::Serve => "serve",
            Self::Run => "run",
            Self::Cron => "cron",
        }
    }

    /// The names of one kind that may stand in this section.
    pub(super) fn names(self, place: Place) -> Vec<&'static str> {
        let here = |setting: &&Setting| setting.section == self && setting.place == place;
        SETTINGS
            .iter()
            .filter(here)
            .map(|setting| setting.name)
            .collect()
    }
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How a setting is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// A value behind the section's name.
    Argument,
    /// `name=value` behind the section's name.
    Property,
    /// A node in the section's block.
    Child,
}

/// Whether a reload applies a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reload {
    /// While the node runs.
    Live,
    /// At the next start.
    Restart,
}

/// One name of `kumi.kdl`.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Setting {
    /// Where it stands.
    pub section: Section,
    /// How it is written.
    pub place: Place,
    /// Its name; of an argument, what it is called in this table.
    pub name: &'static str,
    /// What its value is.
    pub value: &'static str,
    /// What holds where it is not written.
    pub default: &'static str,
    /// Whether a reload applies a change of it.
    pub reload: Reload,
    /// What it is for.
    pub about: &'static str,
}

impl Setting {
    /// The row of the reference.
    #[must_use]
    pub fn row(&self) -> String {
        let name = match self.place {
            Place::Argument => format!("*{}*", self.name),
            Place::Property => format!("`{}=`", self.name),
            Place::Child => format!("`{}`", self.name),
        };
        let reload = match self.reload {
            Reload::Live => "yes",
            Reload::Restart => "no",
        };
        let (value, default, about) = (self.value, self.default, self.about);
        format!("| {name} | {value} | {default} | {reload} | {about} |")
    }
}

const fn setting(
    section: Section,
    place: Place,
    name: &'static str,
    (value, default): (&'static str, &'static str),
    reload: Reload,
    about: &'static str,
) -> Setting {
    Setting {
        section,
        place,
        name,
        value,
        default,
        reload,
        about,
    }
}

// One line per row keeps this a table.
/// All names but those of Redis's directives, which are in kumi-store's table.
#[rustfmt::skip]
pub const SETTINGS: &[Setting] = {
use Place::{Argument, Child, Property};
use Reload::{Live, Restart};
use Section::{Cron, Http, Node, Run, Serve, Store, Work};
&[
    setting(Node, Argument, "name", ("a name", "the host's name"), Restart, "what the others call this node: up to 63 of `a-z`, `0-9`, `.` and `-`"),
    setting(Node, Child, "bind", ("IP addresses", "`127.0.0.1` and `::1`; with `join`, the address that routes to it"), Restart, "where membership, store and HTTP listen"),
    setting(Node, Child, "port", ("1 to 65535", "7400"), Restart, "UDP port of membership"),
    setting(Node, Child, "advertise", ("a host", "the bound address"), Restart, "the name or address by which others reach this node, if it is not one it is bound to"),
    setting(Node, Child, "join", ("hosts with or without a port", "none"), Restart, "nodes to join; any one that answers is enough"),
    setting(Node, Child, "key-file", ("a path", "`KUMI_CLUSTER_KEY_FILE`, else `cluster.key` in the state directory"), Restart, "the cluster's key; a file may hold two keys"),
    setting(Node, Child, "tls-cert-file", ("a path", "none"), Restart, "own certificates instead of a key: this node's chain"),
    setting(Node, Child, "tls-key-file", ("a path", "none"), Restart, "its private key"),
    setting(Node, Child, "tls-ca-file", ("a path", "none"), Restart, "the authorities that sign the certificates of all nodes"),
    setting(Node, Child, "preset", ("`lan`, `wan` or `local`", "`lan`"), Restart, "the network that the timeouts of membership are for"),
    setting(Node, Child, "state-dir", ("a path", "`$XDG_STATE_HOME/kumi/INSTANCE`"), Restart, "where data, key and recorded ports are kept"),
    setting(Node, Child, "log-level", ("`error`, `warn`, `info`, `debug` or `trace`", "`warn`"), Live, "what is logged, besides what programs write"),
    setting(Node, Child, "stop-within", ("a time", "`30s`"), Live, "how long running tasks may go on when the node stops"),
    setting(Store, Argument, "URL", ("a [URL](url.md) without a password, or `#false`", "none"), Restart, "a Redis outside of the cluster; `#false`: this node runs no store"),
    setting(Store, Property, "url-file", ("a path", "none"), Restart, "a file that holds the URL, which may have a password"),
    setting(Store, Property, "ephemeral", ("`#true` or `#false`", "`#false`"), Restart, "keep nothing when the node stops"),
    setting(Http, Argument, "on", ("`#true` or `#false`", "`#true`"), Restart, "whether there is an HTTP listener"),
    setting(Http, Child, "bind", ("IP addresses", "those of the node"), Restart, "where it listens"),
    setting(Http, Child, "port", ("1 to 65535", "7480"), Restart, "its TCP port"),
    setting(Http, Child, "allow-host", ("names of hosts", "none"), Live, "what a `Host` header may say besides IP addresses and `localhost`"),
    setting(Http, Child, "token-file", ("a path", "derived from the key"), Restart, "the token for `/metrics` from other machines"),
    setting(Work, Argument, "type", ("a task type", "required"), Live, "the tasks that are run"),
    setting(Work, Property, "exec", ("a shell command", "required"), Live, "runs one task: payload in, result out"),
    setting(Work, Property, "queue", ("a name", "`default`"), Live, "the queue"),
    setting(Work, Property, "concurrency", ("1 to 10000", "1"), Live, "tasks at once"),
    setting(Work, Property, "lease", ("a time of at least 2s", "`15s`"), Live, "how long claims hold without a renewal"),
    setting(Work, Property, "backoff", ("`5s`, `1s..10m` or `1s..10m*4`", "`4s..1h*4`"), Live, "when failed tasks are tried again, unless their producer said it"),
    setting(Work, Property, "time-limit", ("a time", "none"), Live, "a run that takes longer is stopped and counts as failed"),
    setting(Work, Property, "kill-after", ("a time", "`5s`"), Live, "how long after SIGTERM a command is killed"),
    setting(Work, Property, "dir", ("a path", "the directory of the file"), Live, "the working directory"),
    setting(Work, Property, "env-file", ("a path", "none"), Live, "a file with lines `NAME=VALUE`, for secrets"),
    setting(Work, Child, "env", ("`NAME=\"value\"` properties", "none"), Live, "further variables of the environment"),
    setting(Serve, Argument, "pattern", ("`service.method`, `service.*` or `*`", "required"), Live, "the requests that are answered"),
    setting(Serve, Property, "exec", ("a shell command", "this or `pipe`"), Live, "answers one request"),
    setting(Serve, Property, "pipe", ("a shell command", "this or `exec`"), Live, "answers all requests, line by line"),
    setting(Serve, Property, "unit", ("a name", "the node's"), Live, "the name of the backend"),
    setting(Serve, Property, "concurrency", ("1 to 10000", "16"), Live, "requests at once"),
    setting(Serve, Property, "handler-timeout", ("a time", "`5m`"), Live, "how long a request may be worked on before it is answered as an error"),
    setting(Serve, Property, "dir", ("a path", "the directory of the file"), Live, "the working directory"),
    setting(Serve, Property, "env-file", ("a path", "none"), Live, "a file with lines `NAME=VALUE`, for secrets"),
    setting(Serve, Child, "env", ("`NAME=\"value\"` properties", "none"), Live, "further variables of the environment"),
    setting(Run, Argument, "name", ("a name", "required"), Live, "names the program in the log and in status"),
    setting(Run, Property, "exec", ("a shell command", "required"), Live, "the program; it gets `KUMI_NODE` and `KUMI_URL`"),
    setting(Run, Property, "restart", ("`always` or `on-failure`", "`always`"), Live, "whether it is started again if it ends with exit code 0"),
    setting(Run, Property, "stop-grace", ("a time", "`10s`"), Live, "how long after SIGTERM it is killed"),
    setting(Run, Property, "dir", ("a path", "the directory of the file"), Live, "the working directory"),
    setting(Run, Property, "env-file", ("a path", "none"), Live, "a file with lines `NAME=VALUE`, for secrets"),
    setting(Run, Child, "env", ("`NAME=\"value\"` properties", "none"), Live, "further variables of the environment"),
    setting(Cron, Argument, "name", ("a text", "required"), Live, "names the schedule"),
    setting(Cron, Argument, "expression", ("five fields", "required"), Live, "minute, hour, day of month, month, day of week"),
    setting(Cron, Property, "zone", ("a time zone", "`UTC`"), Live, "the zone of the expression, such as `Asia/Tokyo`"),
    setting(Cron, Property, "type", ("a task type", "the schedule's name"), Live, "the type of its tasks"),
    setting(Cron, Property, "payload", ("JSON as text", "`null`"), Live, "their payload"),
    setting(Cron, Property, "queue", ("a name", "`default`"), Live, "the queue"),
    setting(Cron, Property, "priority", ("`high`, `normal`, `low` or `bulk`", "`normal`"), Live, "their priority"),
    setting(Cron, Property, "max-attempts", ("1 to 10000", "5"), Live, "their attempts, the first included"),
]
};
