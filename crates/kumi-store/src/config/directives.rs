//! The table of directives: one row each, with its name, kind, default, whether CONFIG SET may change it, and what kumi
//! does with it.
//!
//! Every directive of Redis 7.2 is here, because a `redis.conf` of Redis must load or be rejected with a reason. A row
//! is live (it writes a field of [`Settings`]), inert (stored and shown, with one warning at start if it was given a
//! value other than its default), or refused for the values that kumi cannot honour. Directives that only a file may
//! contain (`include`, `user`, `loadmodule`, `rename-command`) have no value and are in `file.rs`.
//!
//! Defaults are Redis's, except for `bind`: it is the loopback addresses, so that a server without configuration is not
//! reachable from other machines.

use super::settings::{
    Access, BindAddress, EvictionPolicy, Fsync, LogLevel, OomScoreAdj, SavePoint, Secret, Settings,
    ShutdownOptions, Supervision, TlsAuthClients,
};
use super::special::{
    Special, announced_hostname, announced_node_name, any_text, append_directory, append_file,
    database_file, title_template,
};
use super::value::{Kind, Reason, Unit, Value};

/// One directive.
#[derive(Clone, Copy, Debug)]
pub struct Directive {
    /// The name, in lower case.
    pub name: &'static str,
    /// An older name for it, which CONFIG GET lists as well.
    pub alias: Option<&'static str>,
    /// Another spelling that is accepted wherever the name is; no glob lists it.
    pub spelling: Option<&'static str>,
    /// The syntax of its value.
    pub kind: Kind,
    /// The default, in the syntax of a file.
    pub default: &'static str,
    /// Whether CONFIG SET may change it.
    pub mutability: Mutability,
    /// What kumi does with it.
    pub standing: Standing,
    /// Not listed by a glob, only when asked for by its name.
    pub hidden: bool,
    /// May hold a secret: its value stays out of the log.
    pub sensitive: bool,
    /// Names a file with further configuration: CONFIG SET reads it again although the name stays the same.
    pub names_file: bool,
    /// Checks a parsed value: rejects it, or returns the form that is stored.
    settle: fn(Value) -> Result<Value, &'static str>,
}

/// Whether CONFIG SET may change a directive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutability {
    /// Always.
    Modifiable,
    /// Only with `enable-protected-configs`.
    Protected,
    /// Never: only at startup.
    Immutable,
}

/// What kumi does with a directive.
#[derive(Clone, Copy, Debug)]
pub enum Standing {
    /// Acts on it: the function writes its field.
    Live(fn(&mut Settings, &Value)),
    /// Stores and shows it; the text is why it has no effect.
    Inert(&'static str),
    /// Rejects values that kumi cannot honour; other values have the default's meaning.
    Refused {
        /// Whether a value is rejected.
        when: fn(&Value) -> bool,
        /// The reason shown to the operator.
        why: &'static str,
    },
}

impl Directive {
    /// Name and alias: what a glob of CONFIG GET lists.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        [Some(self.name), self.alias].into_iter().flatten()
    }

    /// Every name by which the directive is found.
    pub(super) fn accepted_names(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.names().chain(self.spelling)
    }

    /// The default value.
    pub(super) fn default_value(&self) -> Value {
        let words = self.kind.split(self.default.as_bytes());
        self.parse(&words, &Value::Bool(false))
            .expect("a test reads every default of the table")
    }

    pub(super) fn parse(&self, words: &[&[u8]], current: &Value) -> Result<Value, Reason> {
        let value = self.kind.parse(words, current)?;
        Ok((self.settle)(value)?)
    }

    /// Writes the field of a live directive.
    pub(super) fn write(&self, settings: &mut Settings, value: &Value) {
        if let Live(write) = self.standing {
            write(settings, value);
        }
    }

    const fn alias(self, alias: &'static str) -> Self {
        Self {
            alias: Some(alias),
            ..self
        }
    }

    const fn spelling(self, spelling: &'static str) -> Self {
        Self {
            spelling: Some(spelling),
            ..self
        }
    }

    const fn hidden(self) -> Self {
        Self {
            hidden: true,
            ..self
        }
    }

    const fn sensitive(self) -> Self {
        Self {
            sensitive: true,
            ..self
        }
    }

    const fn names_file(self) -> Self {
        Self {
            names_file: true,
            ..self
        }
    }

    const fn settled(self, settle: fn(Value) -> Result<Value, &'static str>) -> Self {
        Self { settle, ..self }
    }
}

const fn row(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    mutability: Mutability,
    standing: Standing,
) -> Directive {
    Directive {
        name,
        alias: None,
        spelling: None,
        kind,
        default,
        mutability,
        standing,
        hidden: false,
        sensitive: false,
        names_file: false,
        settle: as_it_is,
    }
}

fn as_it_is(value: Value) -> Result<Value, &'static str> {
    Ok(value)
}

const fn int(min: i128, max: i128) -> Kind {
    Kind::Integer {
        min,
        max,
        unit: Unit::Plain,
    }
}

const fn memory(min: i128, max: i128) -> Kind {
    Kind::Integer {
        min,
        max,
        unit: Unit::Memory,
    }
}

const I32_MIN: i128 = i32::MIN as i128;
const I32: i128 = i32::MAX as i128;
const U32: i128 = u32::MAX as i128;
const I64: i128 = i64::MAX as i128;
const U64: i128 = u64::MAX as i128;
const PORT: i128 = 65535;
const MIB: i128 = 1 << 20;

const BOOL: Kind = Kind::Bool;
const TEXT: Kind = Kind::Text(any_text);
const NO_YES_LOCAL: Kind = Kind::Choice(&["no", "yes", "local"]);
const SHUTDOWN: Kind = Kind::Flags(&["default", "save", "nosave", "now", "force"]);

const SET: Mutability = Mutability::Modifiable;
const GUARDED: Mutability = Mutability::Protected;
const FIXED: Mutability = Mutability::Immutable;

use Standing::{Inert, Live, Refused};

const APPEND_ONLY: &str = "no process is started for it";
const CLUSTER: &str = "kumi-server is no node of a Redis Cluster";
const DEFRAG: &str =
    "keys move out of sparse memory by themselves, when an eighth and 8 MiB are wasted";
const LAZYFREE: &str = "large values and flushed databases are always freed on another thread";
const PROCESS: &str = "kumi-server leaves its own process as the system made it";
const REPLICATION: &str = "kumi-server has no replicas and follows no master yet";
const SNAPSHOTS: &str = "clients are served at other intervals while a file is loaded";
const SYSLOG: &str = "the log goes to logfile or standard output, never to syslog";
const TESTING: &str = "it only serves Redis's own tests";

const ENCRYPTED_KEY: &str =
    "kumi reads no encrypted key files: decrypt the key with 'openssl pkey' and protect the file";

// One line per row keeps this a table; the formatter would use six lines per row.
/// All directives that have a value, grouped by what they are about.
#[rustfmt::skip]
pub const TABLE: &[Directive] = &[
    // Listeners.
    row("bind", Kind::Special(Special::Bind), "127.0.0.1 -::1", SET, Live(|s, v| if let Value::Addresses(words) = v { s.bind = BindAddress::all(words) })),
    row("port", int(0, PORT), "6379", SET, Live(|s, v| s.port = v.number())),
    row("unixsocket", TEXT, "", FIXED, Live(|s, v| s.unixsocket = v.optional_bytes())),
    row("unixsocketperm", Kind::Integer { min: 0, max: 0o777, unit: Unit::Octal }, "0", FIXED, Live(|s, v| s.unixsocketperm = v.number())),
    row("tcp-backlog", int(0, I32), "511", FIXED, Live(|s, v| s.tcp_backlog = v.number())),
    row("tcp-keepalive", int(0, I32), "300", SET, Live(|s, v| s.tcp_keepalive_s = v.number())),
    row("timeout", int(0, I32), "0", SET, Live(|s, v| s.timeout_s = v.number())),
    row("maxclients", int(1, U32), "10000", SET, Live(|s, v| s.maxclients = v.number())),
    row("protected-mode", BOOL, "yes", SET, Live(|s, v| s.protected_mode = v.is_yes())),
    row("requirepass", TEXT, "", SET, Live(|s, v| s.requirepass = v.optional_bytes().map(Secret))).sensitive(),
    row("socket-mark-id", int(0, U32), "0", FIXED, Inert("sockets are not marked")),
    row("bind-source-addr", TEXT, "", SET, Inert(REPLICATION)),

    // Limits of clients.
    row("client-output-buffer-limit", Kind::Special(Special::OutputLimits), "normal 0 0 0 replica 256mb 64mb 60 pubsub 32mb 8mb 60", SET, Live(|s, v| if let Value::OutputLimits(limits) = v { s.output_limits = *limits })),
    row("client-query-buffer-limit", memory(MIB, I64), "1gb", SET, Live(|s, v| s.query_buffer_limit_bytes = v.number())),
    row("proto-max-bulk-len", memory(MIB, I64), "512mb", SET, Live(|s, v| s.proto_max_bulk_len = v.number())),
    row("max-message-size", memory(0, I64), "0", SET, Live(|s, v| s.max_message_size = v.number())).settled(room_for_a_request),
    row("max-keys", int(0, I64), "0", SET, Live(|s, v| s.max_keys = v.number())),
    row("max-value-size", memory(0, I64), "0", SET, Live(|s, v| s.max_value_size = v.number())),
    row("maxmemory-clients", Kind::Integer { min: -100, max: I64, unit: Unit::PercentOrMemory }, "0", SET, Live(|s, v| s.maxmemory_clients = v.number())),
    row("tracking-table-max-keys", int(0, I64), "1000000", SET, Live(|s, v| s.tracking_table_max_keys = v.number())),

    // The keyspace.
    row("databases", int(1, I32), "16", FIXED, Live(|s, v| s.databases = v.number())),
    row("maxmemory", memory(0, U64), "0", SET, Live(|s, v| s.maxmemory_bytes = v.number())),
    row("maxmemory-policy", Kind::Choice(EvictionPolicy::NAMES), "noeviction", SET, Live(|s, v| s.maxmemory_policy = EvictionPolicy::from_index(v.index()))),
    row("maxmemory-samples", int(1, 64), "5", SET, Live(|s, v| s.maxmemory_samples = v.number())),
    row("maxmemory-eviction-tenacity", int(0, 100), "10", SET, Live(|s, v| s.maxmemory_eviction_tenacity = v.number())),
    row("lfu-log-factor", int(0, I32), "10", SET, Live(|s, v| s.lfu_log_factor = v.number())),
    row("lfu-decay-time", int(0, I32), "1", SET, Live(|s, v| s.lfu_decay_minutes = v.number())),
    row("lazyfree-lazy-eviction", BOOL, "no", SET, Live(|s, v| s.lazyfree_eviction = v.is_yes())),
    row("lazyfree-lazy-expire", BOOL, "no", SET, Live(|s, v| s.lazyfree_expire = v.is_yes())),
    row("lazyfree-lazy-server-del", BOOL, "no", SET, Live(|s, v| s.lazyfree_server_del = v.is_yes())),
    row("lazyfree-lazy-user-del", BOOL, "no", SET, Live(|s, v| s.lazyfree_user_del = v.is_yes())),
    row("lazyfree-lazy-user-flush", BOOL, "no", SET, Inert(LAZYFREE)),
    row("notify-keyspace-events", Kind::Special(Special::Notify), "", SET, Live(|s, v| if let Value::Notify(flags) = v { s.notify = *flags })),
    row("active-expire-effort", int(1, 10), "1", SET, Inert("keys leave by a deadline index, whose effort follows from the deadlines")),
    row("activerehashing", BOOL, "yes", SET, Inert("the keyspace grows a segment at a time and never rehashes")),

    // Encodings of values.
    row("hash-max-listpack-entries", int(0, I64), "512", SET, Live(|s, v| s.hash_max_listpack_entries = v.number())).alias("hash-max-ziplist-entries"),
    row("hash-max-listpack-value", memory(0, I64), "64", SET, Live(|s, v| s.hash_max_listpack_value_bytes = v.number())).alias("hash-max-ziplist-value"),
    row("list-max-listpack-size", int(I32_MIN, I32), "-2", SET, Live(|s, v| s.list_max_listpack_size = v.number())).alias("list-max-ziplist-size"),
    row("list-compress-depth", int(0, I32), "0", SET, Inert("blocks of lists are not compressed")),
    row("set-max-intset-entries", int(0, I64), "512", SET, Live(|s, v| s.set_max_intset_entries = v.number())),
    row("set-max-listpack-entries", int(0, I64), "128", SET, Live(|s, v| s.set_max_listpack_entries = v.number())),
    row("set-max-listpack-value", int(0, I64), "64", SET, Live(|s, v| s.set_max_listpack_value_bytes = v.number())),
    row("zset-max-listpack-entries", int(0, I64), "128", SET, Live(|s, v| s.zset_max_listpack_entries = v.number())).alias("zset-max-ziplist-entries"),
    row("zset-max-listpack-value", memory(0, I64), "64", SET, Live(|s, v| s.zset_max_listpack_value_bytes = v.number())).alias("zset-max-ziplist-value"),
    row("stream-node-max-bytes", memory(0, I64), "4096", SET, Live(|s, v| s.stream_node_max_bytes = v.number())),
    row("stream-node-max-entries", int(0, I64), "100", SET, Live(|s, v| s.stream_node_max_entries = v.number())),
    row("hll-sparse-max-bytes", memory(0, I64), "3000", SET, Live(|s, v| s.hll_sparse_max_bytes = v.number())),
    row("sanitize-dump-payload", Kind::Choice(&["no", "yes", "clients"]), "no", SET, Inert("every payload and file is checked in full")),
    row("locale-collate", TEXT, "", SET, Inert("SORT with ALPHA compares bytes")),

    // Observability.
    row("slowlog-log-slower-than", int(-1, I64), "10000", SET, Live(|s, v| s.slowlog_log_slower_than_us = v.number())),
    row("slowlog-max-len", int(0, I64), "128", SET, Live(|s, v| s.slowlog_max_len = v.number())),
    row("latency-monitor-threshold", int(0, I64), "0", SET, Live(|s, v| s.latency_monitor_threshold_ms = v.number())),
    row("latency-tracking", BOOL, "yes", SET, Live(|s, v| s.latency_tracking = v.is_yes())),
    row("latency-tracking-info-percentiles", Kind::Special(Special::Percentiles), "50 99 99.9", SET, Live(|s, v| if let Value::Percentiles(percentiles) = v { s.latency_percentiles.clone_from(percentiles) })),
    row("loglevel", Kind::Choice(&["debug", "verbose", "notice", "warning", "nothing"]), "notice", SET, Live(|s, v| s.loglevel = LogLevel::from_index(v.index()))),
    row("logfile", TEXT, "", FIXED, Live(|s, v| s.logfile = v.optional_bytes())),
    row("syslog-enabled", BOOL, "no", FIXED, Inert(SYSLOG)),
    row("syslog-ident", TEXT, "redis", FIXED, Inert(SYSLOG)),
    row("syslog-facility", Kind::Choice(&["user", "local0", "local1", "local2", "local3", "local4", "local5", "local6", "local7"]), "local0", FIXED, Inert(SYSLOG)),
    row("crash-log-enabled", BOOL, "yes", SET, Live(|s, v| s.crash_log_enabled = v.is_yes())),
    row("crash-memcheck-enabled", BOOL, "yes", SET, Inert("memory is not tested after a crash")),
    row("watchdog-period", int(0, I32), "0", SET, Inert("there is no watchdog")).hidden(),

    // Running.
    row("hz", int(0, I32), "10", SET, Live(|s, v| s.hz = v.number())).settled(|v| Ok(Value::Integer(i128::from(v.number::<u32>().clamp(1, 500))))),
    row("dynamic-hz", BOOL, "yes", SET, Inert("periodic work is small and does not grow with the clients")),
    row("busy-reply-threshold", int(0, I64), "5000", SET, Live(|s, v| s.busy_reply_threshold_ms = v.number())).alias("lua-time-limit"),
    row("enable-debug-command", NO_YES_LOCAL, "no", FIXED, Live(|s, v| s.enable_debug_command = Access::from_index(v.index()))),
    row("enable-protected-configs", NO_YES_LOCAL, "no", FIXED, Live(|s, v| s.enable_protected_configs = Access::from_index(v.index()))),
    row("enable-module-command", NO_YES_LOCAL, "no", FIXED, Inert("there are no modules")),
    row("dir", TEXT, ".", GUARDED, Live(|s, v| s.dir = v.bytes().to_vec())),
    row("pidfile", TEXT, "", FIXED, Live(|s, v| s.pidfile = v.optional_bytes())),
    row("daemonize", BOOL, "no", FIXED, Inert("kumi-server stays in the foreground; let a supervisor or the shell put it into the background")),
    row("supervised", Kind::Choice(&["upstart", "systemd", "auto", "no"]), "no", FIXED, Live(|s, v| s.supervised = Supervision::from_index(v.index()))),
    row("always-show-logo", BOOL, "no", FIXED, Live(|s, v| s.always_show_logo = v.is_yes())),
    row("set-proc-title", BOOL, "yes", FIXED, Inert(PROCESS)),
    row("proc-title-template", Kind::Text(title_template), "{title} {listen-addr} {server-mode}", SET, Inert(PROCESS)),
    row("io-threads", int(1, 128), "1", FIXED, Inert("one thread owns the keyspace and its connections")),
    row("io-threads-do-reads", BOOL, "no", FIXED, Inert("one thread owns the keyspace and its connections")),
    row("server_cpulist", TEXT, "", FIXED, Inert(PROCESS)).spelling("server-cpulist"),
    row("bio_cpulist", TEXT, "", FIXED, Inert(PROCESS)).spelling("bio-cpulist"),
    row("aof_rewrite_cpulist", TEXT, "", FIXED, Inert(APPEND_ONLY)).spelling("aof-rewrite-cpulist"),
    row("bgsave_cpulist", TEXT, "", FIXED, Inert(PROCESS)).spelling("bgsave-cpulist"),
    row("oom-score-adj", Kind::Choice(&["no", "yes", "relative", "absolute"]), "no", SET, Live(|s, v| s.oom_score_adj = OomScoreAdj::from_index(v.index()))).settled(|v| Ok(if v.index() == 2 { Value::Choice(1) } else { v })),
    row("oom-score-adj-values", Kind::Special(Special::OomScores), "0 200 800", SET, Live(|s, v| if let Value::OomScores(scores) = v { s.oom_scores = *scores })),
    row("disable-thp", BOOL, "yes", FIXED, Live(|s, v| s.disable_huge_pages = v.is_yes())),
    row("ignore-warnings", TEXT, "", SET, Inert("none of the warnings it names exist")),
    row("shutdown-timeout", int(0, I32), "10", SET, Inert("a shutdown waits for no replicas")),
    row("shutdown-on-sigint", SHUTDOWN, "default", SET, Live(|s, v| s.shutdown_on_sigint = ShutdownOptions::from_value(v))).settled(save_or_nosave),
    row("shutdown-on-sigterm", SHUTDOWN, "default", SET, Live(|s, v| s.shutdown_on_sigterm = ShutdownOptions::from_value(v))).settled(save_or_nosave),
    row("use-exit-on-panic", BOOL, "no", SET, Inert(TESTING)).hidden(),
    row("jemalloc-bg-thread", BOOL, "yes", SET, Inert("the allocator is not jemalloc")),
    row("activedefrag", BOOL, "no", SET, Inert(DEFRAG)),
    row("active-defrag-cycle-min", int(1, 99), "1", SET, Inert(DEFRAG)),
    row("active-defrag-cycle-max", int(1, 99), "25", SET, Inert(DEFRAG)),
    row("active-defrag-threshold-lower", int(0, 1000), "10", SET, Inert(DEFRAG)),
    row("active-defrag-threshold-upper", int(0, 1000), "100", SET, Inert(DEFRAG)),
    row("active-defrag-ignore-bytes", memory(1, I64), "100mb", SET, Inert(DEFRAG)),
    row("active-defrag-max-scan-fields", int(1, I64), "1000", SET, Inert(DEFRAG)),

    // Users.
    row("aclfile", TEXT, "", FIXED, Live(|s, v| s.aclfile = v.optional_bytes())),
    row("acllog-max-len", int(0, I64), "128", SET, Live(|s, v| s.acl_log_max_len = v.number())),
    row("acl-pubsub-default", Kind::Choice(&["allchannels", "resetchannels"]), "resetchannels", SET, Live(|s, v| s.acl_pubsub_all_channels = v.index() == 0)),

    // Snapshots.
    row("save", Kind::Special(Special::Save), "3600 1 300 100 60 10000", SET, Live(|s, v| if let Value::SavePoints(points) = v { s.save_points = SavePoint::all(points) })),
    row("dbfilename", Kind::Text(database_file), "dump.rdb", GUARDED, Live(|s, v| s.dbfilename = v.bytes().to_vec())),
    row("stop-writes-on-bgsave-error", BOOL, "yes", SET, Live(|s, v| s.stop_writes_on_save_error = v.is_yes())),
    row("rdbcompression", BOOL, "yes", SET, Live(|s, v| s.rdbcompression = v.is_yes())),
    row("rdbchecksum", BOOL, "yes", FIXED, Live(|s, v| s.rdbchecksum = v.is_yes())),
    row("rdb-save-incremental-fsync", BOOL, "yes", SET, Live(|s, v| s.rdb_save_incremental_fsync = v.is_yes())),
    row("rdb-del-sync-files", BOOL, "no", SET, Inert(REPLICATION)),
    row("snapshot-max-memory", memory(0, I64), "0", SET, Live(|s, v| s.snapshot_max_memory = v.number())),
    row("rdb-key-save-delay", int(I32_MIN, I32), "0", SET, Live(|s, v| s.key_save_delay_us = v.number())).hidden(),
    row("key-load-delay", int(I32_MIN, I32), "0", SET, Live(|s, v| s.key_load_delay_us = v.number())).hidden(),
    row("loading-process-events-interval-bytes", int(1024, I32), "2097152", SET, Inert(SNAPSHOTS)).hidden(),

    // The append-only file.
    row("appendonly", BOOL, "no", SET, Live(|s, v| s.appendonly = v.is_yes())),
    row("appendfilename", Kind::Text(append_file), "appendonly.aof", FIXED, Live(|s, v| s.appendfilename = v.bytes().to_vec())),
    row("appenddirname", Kind::Text(append_directory), "appendonlydir", FIXED, Live(|s, v| s.appenddirname = v.bytes().to_vec())),
    row("appendfsync", Kind::Choice(&["everysec", "always", "no"]), "everysec", SET, Live(|s, v| s.appendfsync = Fsync::from_index(v.index()))),
    row("no-appendfsync-on-rewrite", BOOL, "no", SET, Live(|s, v| s.no_appendfsync_on_rewrite = v.is_yes())),
    row("auto-aof-rewrite-percentage", int(0, I32), "100", SET, Live(|s, v| s.aof_rewrite_percent = v.number())),
    row("auto-aof-rewrite-min-size", memory(0, I64), "64mb", SET, Live(|s, v| s.aof_rewrite_min_bytes = v.number())),
    row("aof-load-truncated", BOOL, "yes", SET, Live(|s, v| s.aof_load_truncated = v.is_yes())),
    row("aof-use-rdb-preamble", BOOL, "yes", SET, Live(|s, v| s.aof_use_rdb_preamble = v.is_yes())),
    row("aof-timestamp-enabled", BOOL, "no", SET, Live(|s, v| s.aof_timestamps = v.is_yes())),
    row("aof-rewrite-incremental-fsync", BOOL, "yes", SET, Live(|s, v| s.aof_incremental_fsync = v.is_yes())),
    row("aof-disable-auto-gc", BOOL, "no", SET, Live(|s, v| s.aof_keep_history = v.is_yes())),

    // Replication.
    row("replicaof", Kind::Special(Special::ReplicaOf), "no one", FIXED, Refused {
        when: |v| *v != Value::ReplicaOf(None),
        why: "kumi cannot follow another server yet: it would serve an empty keyspace as if it were a copy",
    }).alias("slaveof"),
    row("masterauth", TEXT, "", SET, Inert(REPLICATION)).sensitive(),
    row("masteruser", TEXT, "", SET, Inert(REPLICATION)).sensitive(),
    row("min-replicas-to-write", int(0, I32), "0", SET, Refused {
        when: |v| *v != Value::Integer(0),
        why: "kumi has no replicas yet: writes would be acknowledged without the copies this asks for",
    }).alias("min-slaves-to-write"),
    row("min-replicas-max-lag", int(0, I32), "10", SET, Inert(REPLICATION)).alias("min-slaves-max-lag"),
    row("replica-serve-stale-data", BOOL, "yes", SET, Inert(REPLICATION)).alias("slave-serve-stale-data"),
    row("replica-read-only", BOOL, "yes", SET, Inert(REPLICATION)).alias("slave-read-only"),
    row("replica-priority", int(0, I32), "100", SET, Inert(REPLICATION)).alias("slave-priority"),
    row("replica-announced", BOOL, "yes", SET, Inert(REPLICATION)),
    row("replica-announce-ip", TEXT, "", SET, Inert(REPLICATION)).alias("slave-announce-ip"),
    row("replica-announce-port", int(0, PORT), "0", SET, Inert(REPLICATION)).alias("slave-announce-port"),
    row("replica-lazy-flush", BOOL, "no", SET, Inert(REPLICATION)).alias("slave-lazy-flush"),
    row("replica-ignore-maxmemory", BOOL, "yes", SET, Inert(REPLICATION)).alias("slave-ignore-maxmemory"),
    row("replica-ignore-disk-write-errors", BOOL, "no", SET, Inert(REPLICATION)),
    row("propagation-error-behavior", Kind::Choice(&["ignore", "panic", "panic-on-replicas"]), "ignore", SET, Inert(REPLICATION)),
    row("repl-backlog-size", memory(1, I64), "1mb", SET, Inert(REPLICATION)),
    row("repl-backlog-ttl", int(0, I64), "3600", SET, Inert(REPLICATION)),
    row("repl-disable-tcp-nodelay", BOOL, "no", SET, Inert(REPLICATION)),
    row("repl-diskless-load", Kind::Choice(&["disabled", "on-empty-db", "swapdb"]), "disabled", SET, Inert(REPLICATION)),
    row("repl-diskless-sync", BOOL, "yes", SET, Inert(REPLICATION)),
    row("repl-diskless-sync-delay", int(0, I32), "5", SET, Inert(REPLICATION)),
    row("repl-diskless-sync-max-replicas", int(0, I32), "0", SET, Inert(REPLICATION)),
    row("repl-ping-replica-period", int(1, I32), "10", SET, Inert(REPLICATION)).alias("repl-ping-slave-period"),
    row("repl-timeout", int(1, I32), "60", SET, Inert(REPLICATION)),

    // Cluster.
    row("cluster-enabled", BOOL, "no", FIXED, Refused {
        when: Value::is_yes,
        why: "kumi-server cannot be a node of a Redis Cluster yet: clients would look for slots that no server has",
    }),
    row("cluster-config-file", TEXT, "nodes.conf", FIXED, Inert(CLUSTER)),
    row("cluster-port", int(0, PORT), "0", FIXED, Inert(CLUSTER)),
    row("cluster-node-timeout", int(0, I64), "15000", SET, Inert(CLUSTER)),
    row("cluster-ping-interval", int(0, I64), "1000", SET, Inert(TESTING)).hidden(),
    row("cluster-migration-barrier", int(0, I32), "1", SET, Inert(CLUSTER)),
    row("cluster-allow-replica-migration", BOOL, "yes", SET, Inert(CLUSTER)),
    row("cluster-allow-reads-when-down", BOOL, "no", SET, Inert(CLUSTER)),
    row("cluster-allow-pubsubshard-when-down", BOOL, "yes", SET, Inert(CLUSTER)),
    row("cluster-require-full-coverage", BOOL, "yes", SET, Inert(CLUSTER)),
    row("cluster-replica-validity-factor", int(0, I32), "10", SET, Inert(CLUSTER)).alias("cluster-slave-validity-factor"),
    row("cluster-replica-no-failover", BOOL, "no", SET, Inert(CLUSTER)).alias("cluster-slave-no-failover"),
    row("cluster-link-sendbuf-limit", memory(0, U64), "0", SET, Inert(CLUSTER)),
    row("cluster-announce-ip", TEXT, "", SET, Inert(CLUSTER)),
    row("cluster-announce-hostname", Kind::Text(announced_hostname), "", SET, Inert(CLUSTER)),
    row("cluster-announce-human-nodename", Kind::Text(announced_node_name), "", SET, Inert(CLUSTER)),
    row("cluster-announce-port", int(0, PORT), "0", SET, Inert(CLUSTER)),
    row("cluster-announce-bus-port", int(0, PORT), "0", SET, Inert(CLUSTER)),
    row("cluster-announce-tls-port", int(0, PORT), "0", SET, Inert(CLUSTER)),
    row("cluster-preferred-endpoint-type", Kind::Choice(&["ip", "hostname", "unknown-endpoint"]), "ip", SET, Inert(CLUSTER)),

    // TLS.
    row("tls-port", int(0, PORT), "0", SET, Live(|s, v| s.tls.port = v.number())),
    row("tls-cert-file", TEXT, "", SET, Live(|s, v| s.tls.cert_file = v.optional_bytes())).names_file(),
    row("tls-key-file", TEXT, "", SET, Live(|s, v| s.tls.key_file = v.optional_bytes())).names_file(),
    row("tls-key-file-pass", TEXT, "", SET, Refused { when: is_given, why: ENCRYPTED_KEY }).sensitive(),
    row("tls-client-cert-file", TEXT, "", SET, Inert(REPLICATION)),
    row("tls-client-key-file", TEXT, "", SET, Inert(REPLICATION)),
    row("tls-client-key-file-pass", TEXT, "", SET, Refused { when: is_given, why: ENCRYPTED_KEY }).sensitive(),
    row("tls-dh-params-file", TEXT, "", SET, Inert("keys are exchanged over elliptic curves, which need no parameters")),
    row("tls-ca-cert-file", TEXT, "", SET, Live(|s, v| s.tls.ca_cert_file = v.optional_bytes())).names_file(),
    row("tls-ca-cert-dir", TEXT, "", SET, Live(|s, v| s.tls.ca_cert_dir = v.optional_bytes())).names_file(),
    row("tls-auth-clients", Kind::Choice(&["no", "yes", "optional"]), "yes", SET, Live(|s, v| s.tls.auth_clients = TlsAuthClients::from_index(v.index()))),
    row("tls-replication", BOOL, "no", SET, Inert(REPLICATION)),
    row("tls-cluster", BOOL, "no", SET, Inert(CLUSTER)),
    row("tls-protocols", TEXT, "", SET, Live(|s, v| s.tls.protocols = v.optional_bytes())),
    row("tls-ciphers", TEXT, "", SET, Refused {
        when: is_given,
        why: "kumi speaks TLS with rustls, which reads no cipher lists of OpenSSL: all its suites are safe. For TLS 1.3, tls-ciphersuites chooses among them",
    }),
    row("tls-ciphersuites", TEXT, "", SET, Live(|s, v| s.tls.ciphersuites = v.optional_bytes())),
    row("tls-prefer-server-ciphers", BOOL, "no", SET, Live(|s, v| s.tls.prefer_server_ciphers = v.is_yes())),
    row("tls-session-caching", BOOL, "yes", SET, Live(|s, v| s.tls.session_caching = v.is_yes())),
    row("tls-session-cache-size", int(0, I32), "20480", SET, Live(|s, v| s.tls.session_cache_size = v.number())),
    row("tls-session-cache-timeout", int(0, I32), "300", SET, Inert("a session that can be resumed is forgotten when others need its place")),
];

/// A limit below the size of any request could not be raised again by CONFIG SET.
fn room_for_a_request(value: Value) -> Result<Value, &'static str> {
    const SHORTEST: u64 = 512;
    match value.number::<u64>() {
        1..SHORTEST => Err("argument must be 0 (no limit) or at least 512 bytes"),
        _ => Ok(value),
    }
}

/// `save` and `nosave` exclude each other.
fn save_or_nosave(value: Value) -> Result<Value, &'static str> {
    match value {
        Value::Flags(bits) if bits & 0b11 == 0b11 => {
            Err("shutdown options SAVE and NOSAVE can't be used simultaneously")
        }
        value => Ok(value),
    }
}

fn is_given(value: &Value) -> bool {
    !value.bytes().is_empty()
}
