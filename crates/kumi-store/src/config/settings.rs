//! The values kumi acts on, typed, so that serving a request needs no lookup by name.
//!
//! Each field is written by exactly one live row of the directive table. Units are part of the name.

use super::{NotifyFlags, OutputLimits, Value};
use crate::types::hash::HashLimits;
use crate::types::list::ListLimits;
use crate::types::set::SetLimits;
use crate::types::zset::ZsetLimits;

/// A value that `Debug` does not show.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub Vec<u8>);

impl std::ops::Deref for Secret {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("...")
    }
}

/// Typed values of all live directives. Zero means "no limit" or "never" unless a field says otherwise.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Settings {
    /// Addresses to listen on; none means no TCP.
    pub bind: Vec<BindAddress>,
    /// TCP port; 0 means no TCP.
    pub port: u16,
    /// Path of the Unix socket.
    pub unixsocket: Option<Vec<u8>>,
    /// Permission bits of the Unix socket; 0 leaves them to the umask.
    pub unixsocketperm: u32,
    /// Length of the queue of connections the kernel has accepted and kumi has not.
    pub tcp_backlog: u32,
    /// Seconds between TCP keepalive probes.
    pub tcp_keepalive_s: u32,
    /// Most clients at once.
    pub maxclients: usize,
    /// Seconds after which an idle client is closed.
    pub timeout_s: u32,
    /// Refuse clients from other machines while there is no password.
    pub protected_mode: bool,
    /// Password of the default user.
    pub requirepass: Option<Secret>,
    /// How many databases SELECT reaches.
    pub databases: usize,
    /// Output buffer limits per class of client.
    pub output_limits: OutputLimits,
    /// The largest query buffer of a client, in bytes.
    pub query_buffer_limit_bytes: usize,
    /// Longest bulk string in a request.
    pub proto_max_bulk_len: usize,
    /// Longest request, all of its arguments together.
    pub max_message_size: usize,
    /// Most keys of one keyspace.
    pub max_keys: u64,
    /// Keys that are remembered for client-side caches; 0 for no limit.
    pub tracking_table_max_keys: usize,
    /// Largest value of one key.
    pub max_value_size: usize,
    /// Memory above which keys are evicted, or writes refused; 0 for no limit.
    pub maxmemory_bytes: u64,
    /// Which keys are evicted.
    pub maxmemory_policy: EvictionPolicy,
    /// Keys looked at for one that is evicted.
    pub maxmemory_samples: usize,
    /// How long a command may wait for evictions, from 0 to 100 (as long as they take).
    pub maxmemory_eviction_tenacity: u32,
    /// Memory of all clients above which the largest are closed; negative for a percentage of `maxmemory`, 0 for none.
    pub maxmemory_clients: i64,
    /// How slowly the counters of LFU grow.
    pub lfu_log_factor: u32,
    /// Minutes without an access after which a counter of LFU loses one; 0 for never.
    pub lfu_decay_minutes: u32,
    /// An evicted key is propagated as UNLINK instead of DEL.
    pub lazyfree_eviction: bool,
    /// A hash with more fields than this is a `hashtable` by encoding.
    pub hash_max_listpack_entries: usize,
    /// A hash with a longer field or value is a `hashtable` by encoding.
    pub hash_max_listpack_value_bytes: usize,
    /// A set with more integers than this is no `intset` by encoding.
    pub set_max_intset_entries: usize,
    /// A set with more members than this is no `listpack` by encoding.
    pub set_max_listpack_entries: usize,
    /// A set with a longer member is no `listpack` by encoding.
    pub set_max_listpack_value_bytes: usize,
    /// A sorted set with more members than this is a `skiplist` by encoding.
    pub zset_max_listpack_entries: usize,
    /// A sorted set with a longer member is a `skiplist` by encoding.
    pub zset_max_listpack_value_bytes: usize,
    /// Whether long strings in payloads of DUMP are compressed.
    pub rdbcompression: bool,
    /// Whether RDB files have a checksum, and whether it is verified.
    pub rdbchecksum: bool,
    /// When to save in the background; none turns it off.
    pub save_points: Vec<SavePoint>,
    /// Writes are refused after a save in the background has failed, if there are save points.
    pub stop_writes_on_save_error: bool,
    /// An RDB file is synced every few megabytes while it is written.
    pub rdb_save_incremental_fsync: bool,
    /// The most bytes that a snapshot may keep in memory for its thread; 0 for the size of the data.
    pub snapshot_max_memory: usize,
    /// Microseconds that pass before each key is saved, for tests. A negative number: one
    /// microsecond per so many keys.
    pub key_save_delay_us: i64,
    /// The same for each key that is loaded.
    pub key_load_delay_us: i64,
    /// What SIGINT does.
    pub shutdown_on_sigint: ShutdownOptions,
    /// What SIGTERM does.
    pub shutdown_on_sigterm: ShutdownOptions,
    /// Name of the RDB file in `dir`.
    pub dbfilename: Vec<u8>,
    /// Writes go to an append-only file.
    pub appendonly: bool,
    /// The name that the append-only file's names begin with.
    pub appendfilename: Vec<u8>,
    /// The directory of the append-only file, in `dir`.
    pub appenddirname: Vec<u8>,
    /// When the append-only file is synced.
    pub appendfsync: Fsync,
    /// No fsync while the append-only file is rewritten.
    pub no_appendfsync_on_rewrite: bool,
    /// The append-only file is rewritten when it has grown by this much, in percent; 0 for never.
    pub aof_rewrite_percent: u64,
    /// The append-only file is not rewritten automatically below this size, in bytes.
    pub aof_rewrite_min_bytes: u64,
    /// An append-only file with a truncated end is loaded up to there.
    pub aof_load_truncated: bool,
    /// The base of the append-only file is an RDB file.
    pub aof_use_rdb_preamble: bool,
    /// The append-only file has a line with the time before the writes of each second.
    pub aof_timestamps: bool,
    /// `crash-log-enabled`: a program that is the server reports a crash by a signal.
    pub crash_log_enabled: bool,
    /// `always-show-logo`: the name, the port and the process id at the start, in lines of their own.
    pub always_show_logo: bool,
    /// A base is synced every 4 MiB while it is written.
    pub aof_incremental_fsync: bool,
    /// Files of the append-only file that are no longer used are kept.
    pub aof_keep_history: bool,
    /// Which keyspace events go out.
    pub notify: NotifyFlags,
    /// Commands at least this slow enter the slow log; 0 logs all, negative none.
    pub slowlog_log_slower_than_us: i64,
    /// Entries the slow log keeps.
    pub slowlog_max_len: usize,
    /// Events at least this long enter the latency monitor; 0 turns it off.
    pub latency_monitor_threshold_ms: u64,
    /// Keep a latency histogram per command.
    pub latency_tracking: bool,
    /// Percentiles INFO latencystats shows.
    pub latency_percentiles: Vec<f64>,
    /// Runs of the periodic work per second, 1 to 500.
    pub hz: u32,
    /// Other clients get BUSY errors after a script or long command has run for this long. 0 means never for a script, which
    /// then cannot be killed and delays a stop of the server until its end; and at once for DEBUG BUSY.
    pub busy_reply_threshold_ms: u64,
    /// `aclfile`; none if users are not kept in a file.
    pub aclfile: Option<Vec<u8>>,
    /// `acllog-max-len`
    pub acl_log_max_len: usize,
    /// `acl-pubsub-default`: new users may use all channels.
    pub acl_pubsub_all_channels: bool,
    /// The connections that may use DEBUG.
    pub enable_debug_command: Access,
    /// The connections that may CONFIG SET a protected directive.
    pub enable_protected_configs: Access,
    /// A key that GETEX or SET removes by a past deadline is propagated as UNLINK instead of DEL.
    pub lazyfree_user_del: bool,
    /// A key that RESTORE removes by a past deadline is propagated as UNLINK instead of DEL.
    pub lazyfree_server_del: bool,
    /// An expired key is propagated as UNLINK instead of DEL.
    pub lazyfree_expire: bool,
    /// A HyperLogLog stays sparse up to this many bytes.
    pub hll_sparse_max_bytes: usize,
    /// When a list is called a quicklist, and how large its nodes are: -1 to -5 for 4 to 64 KiB, or a number of
    /// elements.
    pub list_max_listpack_size: i64,
    /// Listpack bytes of a stream's node from which on an entry begins another one; 0 for no limit.
    pub stream_node_max_bytes: usize,
    /// Entries of a stream's node from which on an entry begins another one; 0 for no limit.
    pub stream_node_max_entries: u64,
    /// Transparent huge pages are turned off for the process.
    pub disable_huge_pages: bool,
    /// Whether the server sets the score by which the system chooses a process to end when memory is short.
    pub oom_score_adj: OomScoreAdj,
    /// The scores of a server, of a replica and of a background process. There are no replicas and no such processes yet.
    pub oom_scores: [i32; 3],
    /// The log level.
    pub loglevel: LogLevel,
    /// Path of the log; none means standard output.
    pub logfile: Option<Vec<u8>>,
    /// Path of the file with the process id.
    pub pidfile: Option<Vec<u8>>,
    /// Working directory.
    pub dir: Vec<u8>,
    /// The service manager that is notified when the server is ready.
    pub supervised: Supervision,
    /// The `tls-*` directives.
    pub tls: TlsSettings,
}

/// A save point: the data is saved when both have been reached since the last save.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavePoint {
    /// Seconds that passed.
    pub seconds: u64,
    /// Changes that were made.
    pub changes: u64,
}

impl SavePoint {
    pub(super) fn all(points: &[(i64, i64)]) -> Vec<Self> {
        let point = |&(seconds, changes): &(i64, i64)| Self {
            seconds: seconds.max(0).cast_unsigned(),
            changes: changes.max(0).cast_unsigned(),
        };
        points.iter().map(point).collect()
    }
}

/// How the server stops: Redis's `shutdown-on-sigterm` and the options of SHUTDOWN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShutdownOptions {
    /// Whether data is saved; none means if there are save points.
    pub save: Option<bool>,
    /// Stop without waiting for anything.
    pub now: bool,
    /// Stop even if data cannot be saved.
    pub force: bool,
}

impl ShutdownOptions {
    pub(super) fn from_value(value: &Value) -> Self {
        let Value::Flags(bits) = value else {
            return Self::default();
        };
        Self {
            save: match bits & 0b11 {
                0b01 => Some(true),
                0b10 => Some(false),
                _ => None,
            },
            now: bits & 0b100 != 0,
            force: bits & 0b1000 != 0,
        }
    }
}

/// An address of `bind`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BindAddress {
    /// Address or host name; `*` is every IPv4 and `::*` every IPv6 address.
    pub host: Vec<u8>,
    /// Written with a `-`: the address may be missing.
    pub optional: bool,
}

/// The connections that may use a command: Redis's `no`, `yes` and `local`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// No connection.
    #[default]
    No,
    /// Every connection.
    Yes,
    /// Connections from this machine.
    Local,
}

impl Access {
    /// Whether a connection is allowed.
    pub fn allows(self, local: bool) -> bool {
        self == Access::Yes || (self == Access::Local && local)
    }

    pub(super) fn from_index(index: usize) -> Self {
        [Access::No, Access::Yes, Access::Local]
            .get(index)
            .copied()
            .unwrap_or_default()
    }
}

/// Which keys are evicted when memory is short: Redis's `maxmemory-policy`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum EvictionPolicy {
    /// The least recently used of the keys that expire.
    VolatileLru,
    /// The least frequently used of the keys that expire.
    VolatileLfu,
    /// Any of the keys that expire.
    VolatileRandom,
    /// The key that expires first.
    VolatileTtl,
    /// The least recently used of all keys.
    AllkeysLru,
    /// The least frequently used of all keys.
    AllkeysLfu,
    /// Any key.
    AllkeysRandom,
    /// No key: commands that use memory are refused.
    #[default]
    NoEviction,
}

impl EvictionPolicy {
    /// The names, in the order of Redis's table.
    pub(super) const NAMES: &'static [&'static str] = &[
        "volatile-lru",
        "volatile-lfu",
        "volatile-random",
        "volatile-ttl",
        "allkeys-lru",
        "allkeys-lfu",
        "allkeys-random",
        "noeviction",
    ];

    /// Whether only keys that expire are evicted.
    #[must_use]
    pub fn is_volatile(self) -> bool {
        matches!(
            self,
            Self::VolatileLru | Self::VolatileLfu | Self::VolatileRandom | Self::VolatileTtl
        )
    }

    /// Whether keys are chosen by the time or the number of their accesses.
    #[must_use]
    pub fn looks_at_accesses(self) -> bool {
        self.counts_accesses() || matches!(self, Self::VolatileLru | Self::AllkeysLru)
    }

    /// Whether keys carry a counter of accesses instead of the time of the last one.
    #[must_use]
    pub fn counts_accesses(self) -> bool {
        matches!(self, Self::VolatileLfu | Self::AllkeysLfu)
    }

    pub(super) fn from_index(index: usize) -> Self {
        let all = [
            Self::VolatileLru,
            Self::VolatileLfu,
            Self::VolatileRandom,
            Self::VolatileTtl,
            Self::AllkeysLru,
            Self::AllkeysLfu,
            Self::AllkeysRandom,
        ];
        all.get(index).copied().unwrap_or_default()
    }
}

/// What the `tls-*` directives say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TlsSettings {
    /// Port for clients that speak TLS; 0 for none.
    pub port: u16,
    /// Path of the server's certificate, and of those between it and its authority.
    pub cert_file: Option<Vec<u8>>,
    /// Path of the private key.
    pub key_file: Option<Vec<u8>>,
    /// Path of the authorities of clients' certificates.
    pub ca_cert_file: Option<Vec<u8>>,
    /// Directory with authorities of clients' certificates.
    pub ca_cert_dir: Option<Vec<u8>>,
    /// Whether clients have to show a certificate.
    pub auth_clients: TlsAuthClients,
    /// The versions that are spoken, in OpenSSL's names; none for all.
    pub protocols: Option<Vec<u8>>,
    /// The cipher suites of TLS 1.3, in OpenSSL's names; none for all.
    pub ciphersuites: Option<Vec<u8>>,
    /// The server's order of cipher suites counts.
    pub prefer_server_ciphers: bool,
    /// Sessions can be resumed.
    pub session_caching: bool,
    /// Sessions that are kept for that; 0 for no limit.
    pub session_cache_size: usize,
}

/// Whether clients have to show a certificate: Redis's `tls-auth-clients`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TlsAuthClients {
    /// They are not asked for one.
    No,
    /// They have to.
    #[default]
    Yes,
    /// They may, and then it has to be valid.
    Optional,
}

impl TlsAuthClients {
    pub(super) fn from_index(index: usize) -> Self {
        [Self::No, Self::Yes, Self::Optional]
            .get(index)
            .copied()
            .unwrap_or_default()
    }
}

/// When the append-only file is synced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fsync {
    /// Once a second, on a thread of its own.
    #[default]
    EverySecond,
    /// Before the replies of the writes are sent.
    Always,
    /// When the system does so.
    No,
}

impl Fsync {
    pub(super) fn from_index(index: usize) -> Self {
        [Self::EverySecond, Self::Always, Self::No]
            .get(index)
            .copied()
            .unwrap_or_default()
    }
}

/// The service manager of the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Supervision {
    /// Upstart.
    Upstart,
    /// systemd, with a service of `Type=notify`.
    Systemd,
    /// The one that is found in the environment.
    Auto,
    /// None.
    #[default]
    No,
}

impl Supervision {
    pub(super) fn from_index(index: usize) -> Self {
        [Self::Upstart, Self::Systemd, Self::Auto, Self::No]
            .get(index)
            .copied()
            .unwrap_or_default()
    }
}

/// `oom-score-adj`: how the scores of `oom-score-adj-values` are meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OomScoreAdj {
    /// The score of the process stays as it was at the start.
    #[default]
    No,
    /// The scores are added to that.
    Relative,
    /// The scores are set as they are.
    Absolute,
}

impl OomScoreAdj {
    /// `yes` and `relative` are the same.
    pub(super) fn from_index(index: usize) -> Self {
        [Self::No, Self::Relative, Self::Relative, Self::Absolute]
            .get(index)
            .copied()
            .unwrap_or_default()
    }
}

/// Log levels, from most to least lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Everything.
    Debug,
    /// Details that are rarely useful.
    Verbose,
    /// Life-cycle events; the default.
    #[default]
    Notice,
    /// Warnings and errors only.
    Warning,
    /// No lines.
    Nothing,
}

impl LogLevel {
    pub(super) fn from_index(index: usize) -> Self {
        use LogLevel::{Debug, Nothing, Notice, Verbose, Warning};
        [Debug, Verbose, Notice, Warning, Nothing]
            .get(index)
            .copied()
            .unwrap_or_default()
    }
}

impl BindAddress {
    pub(super) fn all(words: &[Vec<u8>]) -> Vec<Self> {
        let words = words.iter().filter(|word| !word.is_empty());
        words
            .map(|word| match word.strip_prefix(b"-") {
                Some(host) => Self {
                    host: host.to_vec(),
                    optional: true,
                },
                None => Self {
                    host: word.clone(),
                    optional: false,
                },
            })
            .collect()
    }
}

impl Settings {
    /// Initial values; the table's defaults replace all of them.
    pub(super) fn blank() -> Self {
        Self {
            bind: Vec::new(),
            port: 0,
            unixsocket: None,
            unixsocketperm: 0,
            tcp_backlog: 0,
            tcp_keepalive_s: 0,
            maxclients: 0,
            timeout_s: 0,
            protected_mode: false,
            requirepass: None,
            databases: 0,
            output_limits: OutputLimits::default(),
            query_buffer_limit_bytes: 0,
            proto_max_bulk_len: 0,
            max_message_size: 0,
            max_keys: 0,
            tracking_table_max_keys: 0,
            max_value_size: 0,
            hash_max_listpack_entries: 512,
            hash_max_listpack_value_bytes: 64,
            set_max_intset_entries: 512,
            set_max_listpack_entries: 128,
            set_max_listpack_value_bytes: 64,
            zset_max_listpack_entries: 128,
            zset_max_listpack_value_bytes: 64,
            rdbcompression: true,
            rdbchecksum: true,
            save_points: Vec::new(),
            stop_writes_on_save_error: true,
            rdb_save_incremental_fsync: true,
            snapshot_max_memory: 0,
            key_save_delay_us: 0,
            key_load_delay_us: 0,
            shutdown_on_sigint: ShutdownOptions::default(),
            shutdown_on_sigterm: ShutdownOptions::default(),
            dbfilename: b"dump.rdb".to_vec(),
            maxmemory_bytes: 0,
            maxmemory_policy: EvictionPolicy::NoEviction,
            maxmemory_samples: 5,
            maxmemory_eviction_tenacity: 10,
            maxmemory_clients: 0,
            lfu_log_factor: 10,
            lfu_decay_minutes: 1,
            lazyfree_eviction: false,
            appendonly: false,
            appendfilename: Vec::new(),
            appenddirname: Vec::new(),
            appendfsync: Fsync::EverySecond,
            no_appendfsync_on_rewrite: false,
            aof_rewrite_percent: 0,
            aof_rewrite_min_bytes: 0,
            aof_load_truncated: true,
            aof_use_rdb_preamble: true,
            aof_timestamps: false,
            crash_log_enabled: true,
            always_show_logo: false,
            aof_incremental_fsync: true,
            aof_keep_history: false,
            notify: NotifyFlags::NONE,
            slowlog_log_slower_than_us: 0,
            slowlog_max_len: 0,
            latency_monitor_threshold_ms: 0,
            latency_tracking: false,
            latency_percentiles: Vec::new(),
            hz: 0,
            busy_reply_threshold_ms: 0,
            aclfile: None,
            acl_log_max_len: 0,
            acl_pubsub_all_channels: false,
            enable_debug_command: Access::No,
            enable_protected_configs: Access::No,
            lazyfree_user_del: false,
            lazyfree_server_del: false,
            lazyfree_expire: false,
            hll_sparse_max_bytes: 0,
            list_max_listpack_size: 0,
            stream_node_max_bytes: 0,
            stream_node_max_entries: 0,
            disable_huge_pages: true,
            oom_score_adj: OomScoreAdj::No,
            oom_scores: [0; 3],
            loglevel: LogLevel::Notice,
            supervised: Supervision::No,
            logfile: None,
            pidfile: None,
            dir: Vec::new(),
            tls: TlsSettings::default(),
        }
    }
    /// The most bytes of one request: `max-message-size`, where 0 is no limit.
    #[must_use]
    pub fn max_message_bytes(&self) -> usize {
        match self.max_message_size {
            0 => usize::MAX,
            bytes => bytes,
        }
    }

    /// The limits that decide about the form of a list. An element from `plain_bytes` on is a node of its own.
    pub(crate) fn list_limits(&self, plain_bytes: usize) -> ListLimits {
        ListLimits {
            fill: i32::try_from(self.list_max_listpack_size).unwrap_or(i32::MAX),
            plain_bytes,
        }
    }

    pub(crate) fn set_limits(&self) -> SetLimits {
        SetLimits {
            intset_entries: self.set_max_intset_entries,
            listpack_entries: self.set_max_listpack_entries,
            listpack_value_bytes: self.set_max_listpack_value_bytes,
        }
    }

    pub(crate) fn zset_limits(&self) -> ZsetLimits {
        ZsetLimits {
            entries: self.zset_max_listpack_entries,
            value_bytes: self.zset_max_listpack_value_bytes,
        }
    }

    pub(crate) fn hash_limits(&self) -> HashLimits {
        HashLimits {
            entries: self.hash_max_listpack_entries,
            value_bytes: self.hash_max_listpack_value_bytes,
        }
    }
}
