//! A store on virtual time, for this crate's tests: clients send lines, and a test moves the clock.

pub(crate) mod json;

use crate::base::clock::Now;
use crate::base::ids::SessionKey;
use crate::base::seeds::Seeds;
use crate::commands;
use crate::config::{Config, Origin};
use crate::data::keyspace::Piece;
use crate::engine::command::CommandIndex;
use crate::engine::host::{ApplyError, Host, HostFacts, WriteKeys};
use crate::engine::output::Outputs;
use crate::engine::session::Peer;
use crate::engine::store::{
    Effect, Flow, Loaded, SnapshotEncoder, SnapshotPurpose, SnapshotSink, Store,
};
use kumi_resp::{Batch, Decoder, Limits, OwnedArgs, Step};
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// A host whose clock stands still until a test moves it.
#[derive(Debug, Default)]
pub(crate) struct LabHost {
    pub(crate) now: Now,
    /// How far the steady clock moves whenever it is read.
    pub(crate) tick_ns: u64,
    /// How far it moves during the next commands that may share a reading of it. Those behind them are timed one by one.
    pub(crate) passing_ns: VecDeque<u64>,
    pub(crate) slept: Duration,
    /// CONFIG SET of this directive fails to apply.
    pub(crate) refuses: Option<&'static str>,
    pub(crate) facts: HostFacts,
    /// Resident memory, and whether every block lies in a sparse page.
    pub(crate) resident_bytes: usize,
    pub(crate) is_sparse: bool,
    /// How often free memory was to be given back.
    pub(crate) purges: usize,
    /// What others send while a long command runs. Each time they are served, 10 ms pass.
    pub(crate) meanwhile: Vec<(SessionKey, &'static str)>,
    /// The server is asked to stop, and it cannot go on.
    pub(crate) stops: bool,
    pub(crate) failed: bool,
    /// The next call of `serve_others` panics.
    pub(crate) panics: bool,
    /// The file that SAVE wrote.
    pub(crate) saved: Option<Vec<u8>>,
    /// The file that ACL LOAD reads.
    pub(crate) acl_file: Vec<u8>,
    /// The append-only file that DEBUG LOADAOF loads.
    pub(crate) aof: Vec<u8>,
    pub(crate) disk_is_full: bool,
    /// The thread that writes snapshots does nothing.
    pub(crate) holds_snapshots: bool,
    /// What that thread has been handed.
    pub(crate) snapshot: Option<Arc<Mutex<LabWriter>>>,
}

/// What stands in for the thread that writes a snapshot.
#[derive(Debug)]
pub(crate) struct LabWriter {
    encoder: SnapshotEncoder,
    pieces: Vec<Piece>,
    file: Vec<u8>,
    keys: u64,
    ended: bool,
    done: bool,
}

impl LabWriter {
    /// Writes what was handed over.
    pub(crate) fn work(&mut self) {
        for piece in std::mem::take(&mut self.pieces) {
            self.keys += piece.keys() as u64;
            let written = self.encoder.write(&piece, &mut self.file, &mut || Ok(()));
            written.expect("memory takes everything");
        }
        if self.ended && !self.done {
            self.encoder
                .finish(&mut self.file)
                .expect("memory takes everything");
            self.done = true;
        }
    }

    /// The file, once it is complete.
    pub(crate) fn file(&self) -> Option<&[u8]> {
        self.done.then_some(&self.file)
    }
}

#[derive(Debug)]
struct LabSink(Arc<Mutex<LabWriter>>);

impl LabSink {
    fn writer(&self) -> MutexGuard<'_, LabWriter> {
        self.0.lock().expect("no test panics with it")
    }
}

impl SnapshotSink for LabSink {
    fn push(&mut self, piece: Piece) {
        self.writer().pieces.push(piece);
    }

    fn queued_bytes(&self) -> usize {
        self.writer().pieces.iter().map(Piece::heap_bytes).sum()
    }

    fn keys_written(&self) -> u64 {
        self.writer().keys
    }

    fn end(&mut self) {
        self.writer().ended = true;
    }

    fn outcome(&mut self) -> Option<io::Result<()>> {
        self.writer().done.then_some(Ok(()))
    }
}

impl Host for LabHost {
    fn now(&mut self) -> Now {
        self.now.mono_ns += self.tick_ns;
        self.now
    }

    fn ticked(&mut self) -> bool {
        let Some(passed_ns) = self.passing_ns.pop_front() else {
            return true;
        };
        self.now.mono_ns += passed_ns;
        passed_ns > 0
    }

    fn apply_config(&mut self, _: &Config, changed: &[&'static str]) -> Result<(), ApplyError> {
        match self.refuses {
            Some(name) if changed.contains(&name) => Err(ApplyError {
                directive: name.into(),
                message: "the lab refuses".into(),
            }),
            _ => Ok(()),
        }
    }

    fn rewrite_config(&mut self, _: &Config) -> Result<(), String> {
        Err("The server is running without a config file".into())
    }

    fn save_rdb(&mut self, _: &Config, write: &mut WriteKeys<'_>) -> io::Result<()> {
        if self.disk_is_full {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let mut file = Vec::new();
        write(&mut file, &mut || Ok(()))?;
        self.saved = Some(file);
        Ok(())
    }

    fn keeps_files(&self) -> bool {
        true
    }

    fn start_snapshot(
        &mut self,
        _: &Config,
        _: SnapshotPurpose,
        encoder: SnapshotEncoder,
    ) -> io::Result<Box<dyn SnapshotSink>> {
        if self.disk_is_full {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let writer = Arc::new(Mutex::new(LabWriter {
            encoder,
            pieces: Vec::new(),
            file: Vec::new(),
            keys: 0,
            ended: false,
            done: false,
        }));
        self.snapshot = Some(Arc::clone(&writer));
        Ok(Box::new(LabSink(writer)))
    }

    fn snapshot_ended(&mut self, _: SnapshotPurpose, outcome: &io::Result<()>) {
        if let (Ok(()), Some(writer)) = (outcome, self.snapshot.take()) {
            let writer = writer.lock().expect("no test panics with it");
            self.saved = writer.file().map(<[u8]>::to_vec);
        }
    }

    fn open_rdb(&mut self, _: &Config) -> io::Result<Box<dyn io::Read>> {
        let saved = self.saved.clone().ok_or(io::ErrorKind::NotFound)?;
        Ok(Box::new(io::Cursor::new(saved)))
    }

    fn reload_aof(&mut self, store: &mut Store, outputs: &mut Outputs) -> Result<(), String> {
        let aof = self.aof.clone();
        store.clear();
        store.begin_loading(1, true);
        let replayed = store.replay(&aof, outputs, self);
        store.end_loading(outputs);
        store.listen_to_writes(true);
        replayed.map_err(|error| error.to_string())
    }

    fn facts(&mut self) -> HostFacts {
        self.facts.clone()
    }

    fn purge_memory(&mut self) {
        self.purges += 1;
    }

    fn resident_bytes(&mut self) -> usize {
        self.resident_bytes
    }

    fn is_in_sparse_page(&mut self, _: *const u8) -> bool {
        self.is_sparse
    }

    fn read_file(&mut self, _: &[u8]) -> Result<Vec<u8>, String> {
        Ok(self.acl_file.clone())
    }

    fn sleep(&mut self, time: Duration) {
        self.slept += time;
        self.now.unix_us += time.as_micros() as u64;
        self.now.mono_ns += time.as_nanos() as u64;
    }

    fn serve_others(&mut self, store: &mut Store, outputs: &mut Outputs) -> bool {
        assert!(!std::mem::take(&mut self.panics), "the lab panics");
        self.now.unix_us += 10_000;
        self.now.mono_ns += 10_000_000;
        for (client, line) in std::mem::take(&mut self.meanwhile) {
            let args = OwnedArgs::from_slices(line.split_whitespace());
            let now = self.now;
            let _ = store.execute(client, args.as_args(), now, outputs, self);
        }
        !self.stops
    }

    fn has_failed(&self) -> bool {
        self.failed
    }
}

/// A store with one client to begin with.
#[derive(Debug)]
pub(crate) struct Lab {
    pub(crate) store: Store,
    pub(crate) outputs: Outputs,
    pub(crate) host: LabHost,
    pub(crate) client: SessionKey,
    pub(crate) last_flow: Flow,
}

impl Lab {
    pub(crate) fn new() -> Self {
        Self::with_seeds(Seeds::from_seed(7))
    }

    pub(crate) fn with_seeds(seeds: Seeds) -> Self {
        let now = Now {
            unix_us: 1_700_000_000_000_000,
            mono_ns: 0,
        };
        let mut store = Store::new(Config::new(), seeds, now);
        let client = store.connect(Peer::default(), now);
        Self {
            store,
            outputs: Outputs::new(),
            host: LabHost {
                now,
                ..LabHost::default()
            },
            client,
            last_flow: Flow::Done,
        }
    }

    /// Sets a directive as the configuration file would.
    #[track_caller]
    pub(crate) fn configure(&mut self, name: &str, value: &str) {
        let pair = (name.as_bytes(), value.as_bytes());
        let set = self.store.config.set_many(&[pair], Origin::Startup);
        assert!(set.is_ok(), "{set:?}");
        self.store.load_settings();
    }

    /// Lets DEBUG be used.
    pub(crate) fn allow_debug(&mut self) {
        self.configure("enable-debug-command", "yes");
    }

    pub(crate) fn connect(&mut self) -> SessionKey {
        let now = self.host.now;
        self.store.connect(Peer::default(), now)
    }

    /// Moves the clocks, then lets the store do what is due.
    pub(crate) fn advance_ms(&mut self, ms: u64) {
        self.host.now.unix_us += ms * 1000;
        self.host.now.mono_ns += ms * 1_000_000;
        self.store.poll(&mut self.outputs, &mut self.host);
        if !self.host.holds_snapshots && self.write_snapshot() {
            self.store.poll(&mut self.outputs, &mut self.host);
        }
        self.store.end_turn(&mut self.outputs);
    }

    /// Lets the thread that writes a snapshot work; says whether there is one.
    pub(crate) fn write_snapshot(&mut self) -> bool {
        let Some(writer) = &self.host.snapshot else {
            return false;
        };
        writer.lock().expect("no test panics with it").work();
        true
    }

    /// Sends words separated by blanks as the first client, `""` for an empty one; answers everything it received.
    pub(crate) fn run(&mut self, line: &str) -> String {
        self.run_as(self.client, line)
    }

    pub(crate) fn run_as(&mut self, client: SessionKey, line: &str) -> String {
        let words: Vec<&[u8]> = line
            .split_whitespace()
            .map(|word| if word == "\"\"" { b"" } else { word.as_bytes() })
            .collect();
        self.send(client, &words)
    }

    /// Sends exact arguments.
    pub(crate) fn send(&mut self, client: SessionKey, words: &[&[u8]]) -> String {
        self.execute(client, words);
        self.received(client)
    }

    /// Sends exact arguments, and answers the exact bytes that came.
    pub(crate) fn send_raw(&mut self, client: SessionKey, words: &[&[u8]]) -> Vec<u8> {
        self.execute(client, words);
        let bytes = self.outputs.to_vec(client);
        self.store.written(&mut self.outputs, client, bytes.len());
        bytes
    }

    /// Sends words whose answer stays in the client's output.
    pub(crate) fn leave_unread(&mut self, client: SessionKey, line: &str) {
        let words: Vec<&[u8]> = line.split_whitespace().map(str::as_bytes).collect();
        self.execute(client, &words);
    }

    fn execute(&mut self, client: SessionKey, words: &[&[u8]]) {
        let args = OwnedArgs::from_slices(words);
        let now = self.host.now;
        self.last_flow = self.store.execute(
            client,
            args.as_args(),
            now,
            &mut self.outputs,
            &mut self.host,
        );
        self.store.end_turn(&mut self.outputs);
    }

    /// Executes planned requests.
    pub(crate) fn execute_batch(
        &mut self,
        client: SessionKey,
        batch: &Batch,
        buffer: &[u8],
    ) -> (usize, Flow) {
        self.store
            .execute_batch(client, batch, buffer, &mut self.outputs, &mut self.host)
    }

    /// What waits for a client, taken.
    pub(crate) fn received(&mut self, client: SessionKey) -> String {
        let bytes = self.outputs.to_vec(client);
        self.store.written(&mut self.outputs, client, bytes.len());
        String::from_utf8_lossy(&bytes).into_owned()
    }

    pub(crate) fn effects(&mut self) -> Vec<Effect> {
        self.store.effects()
    }

    /// Runs lines as the first client and compares the events of each, `set key` on database 0 and
    /// `set key @1` on others.
    #[track_caller]
    pub(crate) fn check_events(&mut self, lines: &[(&str, &[&str])]) {
        self.configure("notify-keyspace-events", "EAmn");
        let listener = self.connect();
        self.run_as(listener, "PSUBSCRIBE __keyevent@*");
        for (line, expected) in lines {
            self.run(line);
            let events = events(&self.received(listener));
            assert_eq!(events, *expected, "after {line:?}");
        }
        self.store.disconnect(listener);
    }

    /// Runs lines as the first client and compares the records each leaves for a replica.
    #[track_caller]
    pub(crate) fn check_writes(&mut self, lines: &[(&str, &[&str])]) {
        self.store.listen_to_writes(true);
        for (line, expected) in lines {
            self.run(line);
            assert_eq!(self.writes(), *expected, "after {line:?}");
        }
    }

    /// Records of writes since the last call.
    pub(crate) fn writes(&mut self) -> Vec<String> {
        let mut requests = requests(&self.store.take_writes());
        requests.retain(|request| !request.starts_with("SELECT "));
        requests
    }

    /// Runs lines as the first client and compares each answer.
    #[track_caller]
    pub(crate) fn check(&mut self, lines: &[(&str, &str)]) {
        for (line, expected) in lines {
            assert_eq!(self.run(line), *expected, "after {line:?}");
        }
    }
}

/// The requests of an encoded stream, each with its words joined by spaces.
pub(crate) fn requests(bytes: &[u8]) -> Vec<String> {
    let (mut decoder, mut at, mut requests) = (Decoder::default(), 0, Vec::new());
    while at < bytes.len() {
        match decoder.decode(&bytes[at..], &Limits::default()) {
            Ok(Step::Request { args, consumed }) => {
                let words = args.iter().map(String::from_utf8_lossy);
                requests.push(words.collect::<Vec<_>>().join(" "));
                at += consumed;
            }
            other => panic!("not a request: {other:?}"),
        }
    }
    requests
}

/// Takes messages of a subscriber to `__keyevent@*` apart.
pub(crate) fn events(received: &str) -> Vec<String> {
    let lines: Vec<&str> = received.split_terminator("\r\n").collect();
    let event = |message: &[&str]| {
        let (channel, key) = (message[6], message[8]);
        let (db, name) = channel
            .strip_prefix("__keyevent@")
            .and_then(|rest| rest.split_once("__:"))
            .expect("a channel of events");
        match db {
            "0" => format!("{name} {key}"),
            _ => format!("{name} {key} @{db}"),
        }
    };
    lines.chunks(9).map(event).collect()
}

/// The index over the rows of all commands.
pub(crate) fn command_index() -> CommandIndex {
    CommandIndex::new(commands::FAMILIES)
}

/// Loads the bytes of a file; what the log would say.
pub(crate) fn load(bytes: &[u8]) -> Result<(Lab, Loaded), String> {
    let mut lab = Lab::new();
    let loaded = lab.store.load_rdb(bytes, |_| {});
    loaded
        .map(|loaded| (lab, loaded))
        .map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_set_is_read_back() {
        Lab::new().check(&[
            ("GET a", "$-1\r\n"),
            ("SET a hello", "+OK\r\n"),
            ("get a", "$5\r\nhello\r\n"),
            ("SET a 12", "+OK\r\n"),
            ("GET a", "$2\r\n12\r\n"),
            ("PING", "+PONG\r\n"),
            (
                "GET",
                "-ERR wrong number of arguments for 'get' command\r\n",
            ),
            (
                "NOPE a b",
                "-ERR unknown command 'NOPE', with args beginning with: 'a' 'b' \r\n",
            ),
        ]);
    }
}
