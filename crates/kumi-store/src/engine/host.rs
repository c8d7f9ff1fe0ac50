//! What the engine needs from the program that runs it.
//!
//! The engine opens no socket, reads no clock and touches no file. The few commands that need the
//! outside world (CONFIG SET of a port, INFO's memory figures, DEBUG SLEEP) reach it through this
//! trait; everything else that should happen outside is an [`Effect`](crate::engine::store::Effect).

use crate::base::clock::Now;
use crate::config::Config;
use crate::engine::output::Outputs;
use crate::engine::store::{SnapshotEncoder, SnapshotPurpose, SnapshotSink, Store};
use std::io;
use std::time::Duration;

/// Writes all keys to a sink, and calls the function after each of them. An error of either ends it.
pub type WriteKeys<'a> =
    dyn FnMut(&mut dyn io::Write, &mut dyn FnMut() -> io::Result<()>) -> io::Result<()> + 'a;

/// A directive the host could not put into effect; the change is rolled back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApplyError {
    /// The directive at fault.
    pub directive: String,
    /// Why, in the words CONFIG SET shows.
    pub message: String,
}

/// Facts about the process for INFO, MEMORY and friends. Zero where unknown.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct HostFacts {
    /// Resident set size in bytes.
    pub rss_bytes: u64,
    /// Resident set size when the server started, before it held any data (0 when not known).
    pub startup_rss_bytes: u64,
    /// Physical memory of the machine in bytes.
    pub system_memory_bytes: u64,
    /// CPU time of the whole process, in microseconds.
    pub cpu_system_us: u64,
    /// See `cpu_system_us`.
    pub cpu_user_us: u64,
    /// CPU time of the engine's thread.
    pub cpu_main_system_us: u64,
    /// See `cpu_main_system_us`.
    pub cpu_main_user_us: u64,
    /// Process id.
    pub process_id: u32,
    /// Path of the executable.
    pub executable: String,
    /// Path of the configuration file, empty if none.
    pub config_file: String,
    /// Operating system, release and machine.
    pub os: String,
    /// Name of the memory allocator.
    pub allocator: String,
    /// Whether a supervisor was notified that the server is ready.
    pub supervised: bool,
    /// Name of the readiness interface.
    pub multiplexing: String,
    /// Addresses listened on, as INFO's listener lines show them.
    pub listeners: Vec<String>,
    /// The TCP port really bound (0 when none).
    pub tcp_port: u16,
    /// Connections refused because `maxclients` was reached.
    pub rejected_connections: u64,
    /// The append-only file.
    pub aof: AofFacts,
    /// Values taken to be freed on another thread and not freed yet.
    pub discards_pending: u64,
}

/// What INFO shows of the append-only file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AofFacts {
    /// Writes are appended to it.
    pub enabled: bool,
    /// It is being rewritten.
    pub rewriting: bool,
    /// A rewrite begins when something else has ended.
    pub rewrite_scheduled: bool,
    /// It begins as soon as no snapshot is taken and what was written before is on disk.
    pub rewrite_begins: bool,
    /// How long the last rewrite took, in seconds.
    pub last_rewrite_s: Option<u64>,
    /// How long the running rewrite has taken, in seconds.
    pub current_rewrite_s: Option<u64>,
    /// Whether the last rewrite failed.
    pub last_rewrite_failed: bool,
    /// Rewrites that ended well.
    pub rewrites: u64,
    /// Rewrites that failed since the last one that ended well.
    pub rewrite_failures: u64,
    /// Whether the last write or fsync failed.
    pub last_write_failed: bool,
    /// Bytes of the base and all increments.
    pub current_bytes: u64,
    /// Their bytes after the last rewrite, or at startup.
    pub base_bytes: u64,
    /// Bytes that wait to be written.
    pub buffered_bytes: u64,
    /// Whether an fsync runs on its thread.
    pub fsync_running: bool,
    /// Writes that did not wait any longer for an fsync.
    pub delayed_fsyncs: u64,
}

/// How a rewrite of the append-only file began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RewriteStart {
    /// It begins at the end of this turn of the event loop.
    Started,
    /// It begins when a running save has ended.
    Scheduled,
}

/// The world outside the engine.
pub trait Host {
    /// Reads the clocks. Called once per command, so it should be cheap.
    fn now(&mut self) -> Now;

    /// Whether the system's coarse clock has moved since this was last asked: some milliseconds
    /// have passed. Called after every fast command, so it should cost next to nothing. A host
    /// without such a clock answers true, and every command is timed.
    fn ticked(&mut self) -> bool {
        true
    }

    /// Puts changed directives into effect. On an error nothing may have changed.
    ///
    /// # Errors
    /// Names the directive that could not be applied.
    fn apply_config(&mut self, config: &Config, changed: &[&'static str])
    -> Result<(), ApplyError>;

    /// The absolute path of a directory that a client names, or the name as it is if there is no such directory.
    fn absolute(&mut self, directory: &[u8]) -> Vec<u8> {
        directory.to_vec()
    }

    /// Writes the configuration back to the file it came from (CONFIG REWRITE).
    ///
    /// # Errors
    /// The text CONFIG REWRITE answers.
    fn rewrite_config(&mut self, config: &Config) -> Result<(), String>;

    /// Writes the RDB file that the configuration names (SAVE): `write` gets a new file, which takes
    /// the place of the old one only when it is complete and on disk, and what it calls after each key.
    ///
    /// # Errors
    /// The old file is as it was. A host without files refuses.
    fn save_rdb(&mut self, _config: &Config, _write: &mut WriteKeys<'_>) -> io::Result<()> {
        let reason = "this server keeps its data in memory only";
        Err(io::Error::new(io::ErrorKind::Unsupported, reason))
    }

    /// Whether data is kept in files. Without them, save points do nothing.
    fn keeps_files(&self) -> bool {
        false
    }

    /// Starts the thread that writes a snapshot, and opens what it writes to.
    ///
    /// # Errors
    /// It cannot be opened. A host without files refuses.
    fn start_snapshot(
        &mut self,
        _config: &Config,
        _purpose: SnapshotPurpose,
        _encoder: SnapshotEncoder,
    ) -> io::Result<Box<dyn SnapshotSink>> {
        let reason = "this server keeps its data in memory only";
        Err(io::Error::new(io::ErrorKind::Unsupported, reason))
    }

    /// A snapshot has ended, and its thread with it.
    fn snapshot_ended(&mut self, _purpose: SnapshotPurpose, _outcome: &io::Result<()>) {}

    /// Opens the RDB file that the configuration names, to read it again (DEBUG RELOAD).
    ///
    /// # Errors
    /// It cannot be opened.
    fn open_rdb(&mut self, _config: &Config) -> io::Result<Box<dyn io::Read>> {
        Err(io::ErrorKind::NotFound.into())
    }

    /// Has the append-only file rewritten (BGREWRITEAOF).
    ///
    /// # Errors
    /// Why not, in words for the client.
    fn rewrite_aof(&mut self, _config: &Config) -> Result<RewriteStart, String> {
        Err("this server keeps its data in memory only".to_owned())
    }

    /// Whether the first base of the append-only file is being written: until it is complete, no file has the data.
    fn writes_first_base(&self) -> bool {
        false
    }

    /// Whether a rewrite of the append-only file has been announced, and its snapshot is yet to begin.
    fn begins_rewrite(&self) -> bool {
        false
    }

    /// Takes back a stop that a signal has asked for (SHUTDOWN ABORT). False if there is none.
    fn abort_shutdown(&mut self) -> bool {
        false
    }

    /// Replaces all data by what the append-only file holds (DEBUG LOADAOF).
    ///
    /// # Errors
    /// Why not, in words for the log.
    fn reload_aof(&mut self, _store: &mut Store, _outputs: &mut Outputs) -> Result<(), String> {
        Err("there is no append-only file".to_owned())
    }

    /// Facts about the process.
    fn facts(&mut self) -> HostFacts;

    /// Has the allocator give free memory back to the system (MEMORY PURGE).
    fn purge_memory(&mut self) {}

    /// Resident memory of the process beyond what it took before it held any data; 0 where it is unknown, or where
    /// [`Host::is_in_sparse_page`] knows nothing of the heap.
    fn resident_bytes(&mut self) -> usize {
        0
    }

    /// Whether a block of the heap, allocated by the engine's thread, lies in a page that is mostly free. The engine
    /// moves what it keeps there, so that the page can be given back.
    fn is_in_sparse_page(&mut self, _block: *const u8) -> bool {
        false
    }

    /// Reads a whole file (ACL LOAD).
    ///
    /// # Errors
    /// Why it cannot be read, in words for the client.
    fn read_file(&mut self, _path: &[u8]) -> Result<Vec<u8>, String> {
        Err("there are no files here".to_owned())
    }

    /// Replaces a file as a whole (ACL SAVE).
    ///
    /// # Errors
    /// Why it cannot be written, in words for the client.
    fn write_file(&mut self, _path: &[u8], _text: &[u8]) -> Result<(), String> {
        Err("there are no files here".to_owned())
    }

    /// Fills a buffer with bytes that cannot be guessed (ACL GENPASS). False if the host has none.
    fn fill_random(&mut self, _bytes: &mut [u8]) -> bool {
        false
    }

    /// Ends the process by an access to memory that is not there (DEBUG SEGFAULT). Returns if the process is not the
    /// server's own.
    fn crash(&mut self) {}

    /// Stops the engine's thread (DEBUG SLEEP).
    fn sleep(&mut self, time: Duration);

    /// Lets other sessions be answered while a long command runs; they get BUSY. Returns false
    /// when the server is asked to stop, so that the command can end early.
    ///
    /// The engine hands itself over here, and in [`Host::reload_aof`], because there is one thread: the sockets are the
    /// host's, the sessions and their output are the engine's, and nobody else could execute what a socket brings while
    /// a command is running. The host may call what it calls between two commands: `execute`, `connect`,
    /// `disconnect`, `written` and the like. The engine has noted that it is busy, so that commands which could touch
    /// the running one's data are refused.
    fn serve_others(&mut self, store: &mut Store, outputs: &mut Outputs) -> bool;

    /// Whether the server cannot go on, so that a command that is asked to stop ends even if it has written.
    fn has_failed(&self) -> bool {
        false
    }
}
