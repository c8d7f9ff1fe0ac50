//! The append-only file as the engine sees it: how far it is synced, who waits for that, whether writes are refused
//! because it cannot be written, and all data as requests for its base.

use super::{Effect, Store};
use crate::base::error::CommandError;
use crate::base::ids::SessionKey;
use crate::data::keyspace::{StringRef, ValueRef};
use crate::data::rdb::{Compression, payload};
use crate::engine::output::Outputs;
use crate::engine::session::{AofProgress, AofWait, BlockedOn};
use kumi_resp::encode;
use std::io::{self, Write};
use std::time::Duration;

/// How much is serialised before it is written.
const WRITE_BYTES: usize = 256 * 1024;

impl Store {
    /// How long to sleep before writes go to the append-only file (DEBUG AOF-FLUSH-SLEEP).
    #[must_use]
    pub fn flush_sleep(&self) -> Option<Duration> {
        self.upkeep.cron.flush_sleep
    }

    /// Whether DEBUG PAUSE-CRON has stopped what is done by the clock.
    #[must_use]
    pub fn is_cron_paused(&self) -> bool {
        self.upkeep.cron.paused
    }

    /// Position in the stream of all writes so far. Outside of a command, everything before it can be taken.
    #[must_use]
    pub fn write_offset(&self) -> u64 {
        self.keyspace.propagation.offset()
    }

    /// Whether there is an append-only file that is complete.
    #[must_use]
    pub fn has_aof(&self) -> bool {
        self.persistence.aof.on
    }

    /// Has the next write begin with a SELECT, because it goes to another file.
    pub fn begin_aof_file(&mut self) {
        self.keyspace.propagation.forget_selected();
    }

    /// Notes that the append-only file is there and synced up to a position in the stream of all writes, or that there
    /// is none. Sessions that waited for it get their replies; without a file, those that need it get an error.
    pub fn note_aof(&mut self, on: bool, synced: u64, outputs: &mut Outputs) {
        self.persistence.aof = AofProgress { on, synced };
        let waiting = &self.clients.aof_waiters;
        if waiting.is_empty() {
            return;
        }
        let over: Vec<SessionKey> = waiting
            .iter()
            .copied()
            .filter(|&key| {
                self.aof_wait(key)
                    .is_some_and(|wait| wait.is_over(self.persistence.aof) || wait.local && !on)
            })
            .collect();
        for key in over {
            if let Some(wait) = self.aof_wait(key)
                && let Some(blocked) = self.end_wait(key)
            {
                self.effect(Effect::Resume(key));
                if on || !wait.local {
                    let reply = wait.reply(self.persistence.aof);
                    self.answer_late(outputs, key, &blocked.on, &reply, false);
                } else {
                    let mut reply = Vec::new();
                    encode::error(&mut reply, CommandError::NO_AOF.as_bytes());
                    self.answer_late(outputs, key, &blocked.on, &reply, true);
                }
            }
        }
    }

    /// Whether a client waits for the append-only file to be synced.
    #[must_use]
    pub fn awaits_aof(&self) -> bool {
        !self.clients.aof_waiters.is_empty()
    }

    fn aof_wait(&self, key: SessionKey) -> Option<AofWait> {
        let session = self.clients.sessions.get(key)?;
        match &session.blocked.as_ref()?.on {
            BlockedOn::Aof(wait) => Some(*wait),
            _ => None,
        }
    }

    /// The string under a key of the first database, if it holds one.
    #[doc(hidden)]
    pub fn peek(&mut self, key: &[u8]) -> Option<Vec<u8>> {
        let mut keys = self.keyspace.keys(0, self.now.unix_ms(), false);
        match keys.look(key, crate::data::keyspace::Look::Quiet)?.value() {
            ValueRef::String(StringRef::Int(value)) => Some(value.to_string().into_bytes()),
            ValueRef::String(StringRef::Bytes { bytes, .. }) => Some(bytes.to_vec()),
            _ => None,
        }
    }

    /// Refuses writes with MISCONF and this reason, or accepts them again.
    pub fn refuse_writes(&mut self, reason: Option<&str>) {
        self.persistence.aof_error = reason.map(Box::from);
    }

    /// Writes all data as requests: the base of an append-only file without `aof-use-rdb-preamble`. Strings are SET
    /// requests, everything else is restored from its serialisation.
    ///
    /// # Errors
    /// The sink does not take it.
    pub fn save_requests(&self, sink: &mut dyn Write) -> io::Result<()> {
        let mut requests = Requests::of(self);
        for db in 0..self.keyspace.databases() {
            let (entries, keys, _) = self.keyspace.entries(db);
            if keys == 0 {
                continue;
            }
            requests.select(db as u64);
            for entry in entries {
                requests.key(entry.key(), entry.deadline(), entry.value());
                if requests.pending() >= WRITE_BYTES {
                    requests.flush(sink)?;
                }
            }
        }
        requests.flush(sink)
    }
}

/// Encodes data as requests that make it.
#[derive(Debug)]
pub(super) struct Requests {
    out: Vec<u8>,
    compression: Compression,
}

impl Requests {
    /// The beginning: the time if files have times, and the libraries of functions.
    pub(super) fn of(store: &Store) -> Self {
        let settings = store.config.settings();
        let mut out = Vec::new();
        if settings.aof_timestamps {
            let unix_s = store.now.unix_us / 1_000_000;
            out.extend_from_slice(format!("#TS:{unix_s}\r\n").as_bytes());
        }
        for code in store.scripts.library_codes() {
            request(&mut out, &[b"FUNCTION", b"LOAD", code]);
        }
        Self {
            out,
            compression: Compression::of(settings),
        }
    }

    pub(super) fn select(&mut self, db: u64) {
        request(&mut self.out, &[b"SELECT", db.to_string().as_bytes()]);
    }

    pub(super) fn key(&mut self, key: &[u8], deadline: Option<u64>, value: ValueRef<'_>) {
        let deadline = deadline.map(|deadline| deadline.to_string());
        let deadline = deadline.as_deref().map(str::as_bytes);
        let out = &mut self.out;
        let ValueRef::String(text) = value else {
            let payload = payload(value, self.compression);
            let at = deadline.unwrap_or(b"0");
            return request(out, &[b"RESTORE", key, at, &payload, b"ABSTTL"]);
        };
        let number;
        let text: &[u8] = match text {
            StringRef::Int(value) => {
                number = value.to_string();
                number.as_bytes()
            }
            StringRef::Bytes { bytes, .. } => bytes,
        };
        match deadline {
            None => request(out, &[b"SET", key, text]),
            Some(deadline) => request(out, &[b"SET", key, text, b"PXAT", deadline]),
        }
    }

    /// Bytes that have not been written.
    pub(super) fn pending(&self) -> usize {
        self.out.len()
    }

    /// Writes what is pending.
    ///
    /// # Errors
    /// The sink does not take it.
    pub(super) fn flush(&mut self, sink: &mut dyn Write) -> io::Result<()> {
        sink.write_all(&self.out)?;
        self.out.clear();
        Ok(())
    }
}

fn request(out: &mut Vec<u8>, words: &[&[u8]]) {
    encode::array(out, words.len());
    for word in words {
        encode::bulk(out, word);
    }
}

#[cfg(test)]
mod tests {
    use crate::engine::store::Flow;
    use crate::testing::Lab;

    #[test]
    fn waitaof_waits_until_the_sessions_writes_are_synced() {
        let mut lab = Lab::new();
        lab.check(&[(
            "WAITAOF 1 0 0",
            "-ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.\r\n",
        )]);
        lab.configure("appendonly", "yes");
        lab.store.listen_to_writes(true);
        lab.store.note_aof(true, 0, &mut lab.outputs);
        lab.check(&[
            ("WAITAOF 1 0 0", "*2\r\n:1\r\n:0\r\n"),
            ("WAITAOF 0 0 0", "*2\r\n:1\r\n:0\r\n"),
            (
                "WAITAOF 2 0 0",
                "-ERR value is out of range, value must between 0 and 1\r\n",
            ),
            (
                "WAITAOF 0 -1 0",
                "-ERR value is out of range, must be positive\r\n",
            ),
            (
                "WAITAOF 0 x 0",
                "-ERR value is out of range, must be positive\r\n",
            ),
            ("WAITAOF 1 0 -1", "-ERR timeout is negative\r\n"),
            ("SET a 1", "+OK\r\n"),
            ("MULTI", "+OK\r\n"),
            ("WAITAOF 1 0 0", "+QUEUED\r\n"),
            ("EXEC", "*1\r\n*2\r\n:0\r\n:0\r\n"),
            ("WAITAOF 1 0 100", ""),
        ]);
        assert_eq!(lab.last_flow, Flow::Blocked);
        let client = lab.client;
        lab.store.note_aof(true, 5, &mut lab.outputs);
        assert_eq!(lab.received(client), "");
        let all = lab.store.write_offset();
        lab.store.note_aof(true, all, &mut lab.outputs);
        assert_eq!(lab.received(client), "*2\r\n:1\r\n:0\r\n");
        lab.run("SET a 2");
        assert_eq!(lab.run("WAITAOF 1 0 100"), "");
        lab.advance_ms(100);
        assert_eq!(lab.received(client), "*2\r\n:0\r\n:0\r\n");
        assert_eq!(lab.run("WAITAOF 0 1 100"), "");
        let all = lab.store.write_offset();
        lab.store.note_aof(true, all, &mut lab.outputs);
        lab.advance_ms(100);
        assert_eq!(lab.received(client), "*2\r\n:1\r\n:0\r\n");
    }

    #[test]
    fn waitaof_does_not_wait_for_an_aof_that_has_ended() {
        let mut lab = Lab::new();
        lab.configure("appendonly", "yes");
        lab.store.listen_to_writes(true);
        lab.store.note_aof(true, 0, &mut lab.outputs);
        let client = lab.client;
        lab.check(&[("SET a 1", "+OK\r\n"), ("WAITAOF 1 0 0", "")]);
        lab.store.note_aof(false, 0, &mut lab.outputs);
        assert_eq!(
            lab.received(client),
            "-ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.\r\n"
        );
        // Replicas are waited for all the same.
        lab.check(&[("WAITAOF 0 1 100", "")]);
        lab.store.note_aof(false, 0, &mut lab.outputs);
        assert_eq!(lab.received(client), "");
        lab.advance_ms(100);
        assert_eq!(lab.received(client), "*2\r\n:0\r\n:0\r\n");
    }

    #[test]
    fn waitaof_waits_for_the_first_base() {
        let mut lab = Lab::new();
        lab.configure("appendonly", "yes");
        let client = lab.client;
        lab.check(&[("WAITAOF 0 0 0", "*2\r\n:0\r\n:0\r\n")]);
        lab.check(&[("WAITAOF 1 0 100", "")]);
        lab.advance_ms(100);
        assert_eq!(lab.received(client), "*2\r\n:0\r\n:0\r\n");
        lab.check(&[("WAITAOF 1 0 0", "")]);
        assert_eq!(lab.last_flow, Flow::Blocked);
        let all = lab.store.write_offset();
        lab.store.note_aof(true, all, &mut lab.outputs);
        assert_eq!(lab.received(client), "*2\r\n:1\r\n:0\r\n");
    }

    #[test]
    fn writes_are_refused_and_reads_go_on() {
        let mut lab = Lab::new();
        lab.run("SET a 1");
        lab.store.refuse_writes(Some("No space left on device"));
        let misconf = "-MISCONF Errors writing to the AOF file: No space left on device\r\n";
        lab.check(&[
            ("SET a 2", misconf),
            ("GET a", "$1\r\n1\r\n"),
            ("PING", misconf),
        ]);
        let script = lab.run("EVAL return(redis.call('set','a','2')) 0");
        assert!(script.starts_with("-MISCONF Errors writing"), "{script}");
        lab.store.refuse_writes(None);
        lab.check(&[("SET a 2", "+OK\r\n")]);
    }

    #[test]
    fn requests_of_all_data_restore_it() {
        let mut lab = Lab::new();
        for line in [
            "SET s text",
            "SET n 17 PX 50000",
            "RPUSH l a b c",
            "HSET h f v",
            "SADD set 1 2 x",
            "ZADD z 1.5 m",
            "XADD x 1-1 f v",
            "PEXPIREAT z 1700000060000",
            "SELECT 3",
            "SET other 1",
            "SELECT 0",
        ] {
            lab.run(line);
        }
        let mut base = Vec::new();
        lab.store.save_requests(&mut base).unwrap();
        let mut other = Lab::new();
        other.store.begin_loading(1, true);
        other
            .store
            .replay(&base, &mut other.outputs, &mut other.host)
            .unwrap();
        assert_eq!(other.store.end_loading(&mut other.outputs), 0);
        lab.run("CONFIG SET enable-debug-command yes");
        for line in [
            "DBSIZE",
            "GET s",
            "PTTL n",
            "PTTL z",
            "LRANGE l 0 -1",
            "XRANGE x - +",
        ] {
            assert_eq!(other.run(line), lab.run(line), "{line}");
        }
    }
}
