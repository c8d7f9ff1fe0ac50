//! Writes as RESP requests, for the append-only file and, later, for replicas.
//!
//! Every write of the data leaves a request here that replays to the same state at any later time.
//! Commands hand in requests of that kind (`Ctx::propagate_as`: absolute expiries, the random choice
//! that was made); `Ctx::call` hands in all others as they were sent, and the keyspace the deletions
//! of expired and evicted keys. This file only encodes and frames. Requests are encoded once, into
//! one buffer, in the order of the writes; a SELECT stands before a request whose database differs
//! from the one before. Large arguments of clients are not copied: the buffer (`writes.rs`) refers
//! to them.
//!
//! A scope is one `Ctx::call`: a command, or EXEC or a script with the commands inside it. A scope
//! that leaves more than one request is framed by MULTI and EXEC, so that a reader applies it as a
//! whole. Whether it does is known only when the second request comes: MULTI is then put in front of
//! the first one, which is still in the buffer, because what belongs to an open scope is not taken,
//! but for the SELECT before it.
//! Nothing is encoded while propagation is off, or while a script has muted it.

mod writes;

use kumi_resp::{LARGE_ARG_BYTES, SharedBytes, encode};
pub use writes::Writes;

const MULTI: &[u8] = b"*1\r\n$5\r\nMULTI\r\n";
const EXEC: &[u8] = b"*1\r\n$4\r\nEXEC\r\n";

#[derive(Debug, Default)]
pub(crate) struct Propagation {
    on: bool,
    /// A script has turned propagation of its writes off.
    muted: bool,
    /// Complete scopes, then the requests of the open one.
    buffer: Writes,
    /// Large arguments of the running command; empty once an inner command has ended: then they are copied.
    large: Vec<SharedBytes>,
    /// The database a reader of `buffer` has selected; none at the start of a stream.
    selected: Option<usize>,
    /// Scopes that are open inside each other; only the outermost one frames requests.
    depth: usize,
    /// Requests of the open scope.
    requests: usize,
    /// Where the first request of the open scope begins in `buffer`, when there is one.
    open_at: usize,
    /// Bytes that were taken out of `buffer` since the store was made.
    taken: u64,
}

impl Propagation {
    /// Turns encoding on or off. Off drops what was not taken; a stream that begins anew begins with a SELECT.
    pub(crate) fn set_on(&mut self, on: bool) {
        if on && !self.on {
            self.selected = None;
        }
        self.on = on;
        if !on {
            self.taken += self.buffer.len() as u64;
            self.buffer = Writes::default();
            self.requests = 0;
        }
    }

    /// Begins the next request with a SELECT, because it goes to another file.
    pub(crate) fn forget_selected(&mut self) {
        self.selected = None;
    }

    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.on
    }

    /// Position in the stream of all writes so far, the open scope included.
    #[inline]
    pub(crate) fn offset(&self) -> u64 {
        self.taken + self.buffer.len() as u64
    }

    /// Leaves requests out, or no longer does: `redis.set_repl`.
    pub(crate) fn mute(&mut self, muted: bool) {
        self.muted = muted;
    }

    /// Drops the requests of the open scope and encodes nothing more: the server stops in the middle of that scope.
    pub(crate) fn abandon(&mut self) {
        if self.requests > 0 {
            self.buffer.truncate(self.open_at);
            self.requests = 0;
        }
        self.on = false;
    }

    /// Opens a scope. Every call is followed by one of `end`.
    #[inline]
    pub(crate) fn begin(&mut self) {
        self.depth += 1;
    }

    /// Takes the large arguments of the command whose scope was opened last. Its requests refer to them instead of
    /// copying them.
    #[inline]
    pub(crate) fn share(&mut self, large: &[SharedBytes]) {
        if self.on && !large.is_empty() {
            self.large = large.to_vec();
        }
    }

    /// Closes the innermost scope.
    #[inline]
    pub(crate) fn end(&mut self) {
        debug_assert!(self.depth > 0, "a scope ends once");
        self.large.clear();
        self.depth = self.depth.saturating_sub(1);
        if self.depth == 0 && self.requests > 0 {
            if self.requests > 1 {
                // In whichever database the last request was: EXEC itself needs none.
                self.buffer.push(EXEC);
            }
            self.requests = 0;
        }
    }

    /// Adds a request. Outside of any scope it stands alone.
    pub(crate) fn push<'a>(
        &mut self,
        db: usize,
        args: impl IntoIterator<Item = &'a [u8], IntoIter: Clone>,
    ) {
        if !self.on || self.muted {
            return;
        }
        if self.depth > 0 {
            self.requests += 1;
            match self.requests {
                1 => {
                    self.select(db);
                    self.open_at = self.buffer.len();
                }
                2 => self.buffer.insert(self.open_at, MULTI),
                _ => {}
            }
        }
        self.select(db);
        self.encode(args.into_iter());
    }

    /// As [`Propagation::swap`], in one piece.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        let mut taken = Writes::default();
        self.swap(&mut taken);
        taken.into_vec()
    }

    /// Everything since the last call, to be written to an AOF or sent to replicas before the
    /// replies of the same writes are. What belongs to an open scope stays. It goes into `empty`,
    /// whose memory is used from now on. Returns the position in the stream behind it.
    pub(crate) fn swap(&mut self, empty: &mut Writes) -> u64 {
        debug_assert!(empty.is_empty(), "what it holds would be propagated");
        std::mem::swap(&mut self.buffer, empty);
        if self.requests > 0 {
            empty.split_into(self.open_at, &mut self.buffer);
            self.open_at = 0;
        }
        self.taken += empty.len() as u64;
        self.taken
    }

    fn select(&mut self, db: usize) {
        if self.selected != Some(db) {
            self.selected = Some(db);
            let number = db.to_string();
            self.encode([b"SELECT".as_slice(), number.as_bytes()].into_iter());
        }
    }

    fn encode<'a>(&mut self, args: impl Iterator<Item = &'a [u8]> + Clone) {
        encode::array(self.buffer.tail(), args.clone().count());
        for arg in args {
            if arg.len() < LARGE_ARG_BYTES {
                encode::bulk(self.buffer.tail(), arg);
            } else {
                self.encode_large(arg);
            }
        }
    }

    /// Refers to the argument if it is one of the command's; otherwise copies it, once and to its exact size.
    #[cold]
    fn encode_large(&mut self, arg: &[u8]) {
        let shared = self
            .large
            .iter()
            .find(|bytes| std::ptr::eq::<[u8]>(&***bytes, arg));
        let bytes = match shared {
            Some(bytes) => bytes.clone(),
            None => SharedBytes::new(arg.to_vec()),
        };
        encode::bulk_header(self.buffer.tail(), arg.len());
        self.buffer.push_shared(bytes);
        self.buffer.push(b"\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Lab;
    use kumi_resp::{Decoder, Limits, OwnedArgs, Step};

    /// Requests of a buffer, one a line.
    fn requests(bytes: &[u8]) -> Vec<String> {
        crate::testing::requests(bytes)
    }

    fn on() -> Propagation {
        let mut propagation = Propagation::default();
        propagation.set_on(true);
        propagation
    }

    fn words(line: &str) -> Vec<&[u8]> {
        line.split(' ').map(str::as_bytes).collect()
    }

    #[test]
    fn a_scope_of_one_request_has_no_frame() {
        let mut propagation = on();
        propagation.begin();
        propagation.push(0, words("SET a 1"));
        assert_eq!(requests(&propagation.take()), ["SELECT 0"], "it is open");
        propagation.end();
        assert_eq!(requests(&propagation.take()), ["SET a 1"]);
    }

    #[test]
    fn a_scope_of_several_requests_is_a_transaction() {
        let mut propagation = on();
        propagation.begin();
        propagation.begin();
        propagation.push(1, words("DEL a"));
        propagation.end();
        propagation.push(2, words("SET b 1"));
        propagation.end();
        propagation.push(1, words("DEL c"));
        let expected = [
            "SELECT 1", "MULTI", "DEL a", "SELECT 2", "SET b 1", "EXEC", "SELECT 1", "DEL c",
        ];
        assert_eq!(requests(&propagation.take()), expected);
    }

    #[test]
    fn complete_scopes_are_taken_while_another_one_is_open() {
        let mut propagation = on();
        propagation.push(0, words("SET a 1"));
        propagation.begin();
        propagation.push(0, words("SET b 1"));
        assert_eq!(requests(&propagation.take()), ["SELECT 0", "SET a 1"]);
        propagation.push(1, words("SET c 1"));
        assert!(propagation.take().is_empty());
        propagation.end();
        let expected = ["MULTI", "SET b 1", "SELECT 1", "SET c 1", "EXEC"];
        let offset = propagation.offset();
        let rest = propagation.take();
        assert_eq!(requests(&rest), expected);
        assert_eq!(propagation.offset(), offset, "taking moves nothing");
    }

    #[test]
    fn a_large_first_request_is_not_moved_when_a_second_one_comes() {
        let value = SharedBytes::new(vec![b'v'; 100_000]);
        let mut propagation = on();
        propagation.push(0, words("SET a 1"));
        propagation.begin();
        propagation.share(std::slice::from_ref(&value));
        let blocks = |writes: &Writes| -> Vec<*const u8> {
            let large = writes.parts().filter(|part| part.len() == value.len());
            large.map(<[u8]>::as_ptr).collect()
        };
        // The same bytes, but not the client's argument.
        let copied = value.to_vec();
        propagation.push(0, [b"SET".as_slice(), b"copied", &copied]);
        let first = blocks(&propagation.buffer);
        propagation.push(0, [b"SET".as_slice(), b"shared", &value]);
        let both = blocks(&propagation.buffer);
        assert_eq!(both, [first[0], value.as_ptr()]);
        let mut taken = Writes::default();
        propagation.swap(&mut taken);
        assert_eq!(requests(&taken.into_vec()), ["SELECT 0", "SET a 1"]);
        propagation.push(0, words("SET b 1"));
        propagation.end();
        let mut taken = Writes::default();
        let position = propagation.swap(&mut taken);
        assert_eq!(position, propagation.offset());
        assert_eq!(blocks(&taken), both, "neither copied nor moved");
        assert_eq!(value.owners(), 2, "the command has ended");
        let text = String::from_utf8_lossy(&value).into_owned();
        let expected = [
            "MULTI".to_owned(),
            format!("SET copied {text}"),
            format!("SET shared {text}"),
            "SET b 1".to_owned(),
            "EXEC".to_owned(),
        ];
        assert!(requests(&taken.into_vec()) == expected);
    }

    #[test]
    fn requests_of_an_abandoned_scope_are_dropped() {
        let value = SharedBytes::new(vec![b'v'; 100_000]);
        let mut propagation = on();
        propagation.push(0, words("SET a 1"));
        propagation.begin();
        propagation.share(std::slice::from_ref(&value));
        propagation.push(0, [b"SET".as_slice(), b"b", &value]);
        propagation.push(0, words("SET c 1"));
        propagation.abandon();
        propagation.end();
        assert!(value.is_unique());
        assert_eq!(requests(&propagation.take()), ["SELECT 0", "SET a 1"]);
    }

    /// Decodes a request, as a server does: large arguments have buffers of their own.
    fn decoded(words: &[&[u8]]) -> OwnedArgs {
        let mut bytes = Vec::new();
        encode::array(&mut bytes, words.len());
        for word in words {
            encode::bulk(&mut bytes, word);
        }
        match Decoder::new().decode(&bytes, &Limits::default()) {
            Ok(Step::Request { args, .. }) => args.to_owned(),
            other => panic!("not a request: {other:?}"),
        }
    }

    #[test]
    fn a_large_argument_is_shared_with_the_data() {
        let value = vec![b'v'; 100_000];
        let commands: [&[&[u8]]; 6] = [
            &[b"SET", b"a", &value],
            &[b"SET", b"a", &value, b"GET"],
            &[b"SET", b"a", &value, b"EX", b"100"],
            &[b"SETEX", b"a", b"100", &value],
            &[b"MSET", b"x", b"1", b"a", &value],
            &[b"APPEND", b"new", &value],
        ];
        for words in commands {
            let mut lab = Lab::new();
            lab.store.listen_to_writes(true);
            let args = decoded(words);
            let large = args.as_args().large();
            assert_eq!(large.len(), 1);
            let now = lab.host.now;
            let (client, args) = (lab.client, args.as_args());
            let (outputs, host) = (&mut lab.outputs, &mut lab.host);
            let _ = lab.store.execute(client, args, now, outputs, host);
            let mut writes = Writes::default();
            lab.store.swap_writes(&mut writes);
            let is_shared = |part: &[u8]| std::ptr::eq::<[u8]>(part, &*large[0]);
            assert!(writes.parts().any(is_shared), "{:?}", words[0]);
            let owners = large[0].owners();
            drop(writes);
            assert_eq!(large[0].owners(), owners - 1, "{:?}", words[0]);
        }
    }

    #[test]
    fn the_commands_of_a_transaction_share_their_arguments() {
        let value = vec![b'v'; 100_000];
        let mut lab = Lab::new();
        lab.store.listen_to_writes(true);
        let set = decoded(&[b"SET", b"a", &value]);
        lab.run("MULTI");
        let now = lab.host.now;
        let (outputs, host) = (&mut lab.outputs, &mut lab.host);
        let _ = lab
            .store
            .execute(lab.client, set.as_args(), now, outputs, host);
        lab.run("SET b 1");
        lab.run("EXEC");
        let mut writes = Writes::default();
        lab.store.swap_writes(&mut writes);
        let large = set.as_args().large();
        let is_shared = |part: &[u8]| std::ptr::eq::<[u8]>(part, &*large[0]);
        assert!(writes.parts().any(is_shared));
        let names: Vec<String> = requests(&writes.into_vec())
            .iter()
            .map(|line| line.chars().take(7).collect())
            .collect();
        assert_eq!(names, ["SELECT ", "MULTI", "SET a v", "SET b 1", "EXEC"]);
    }

    #[test]
    fn nothing_is_kept_while_it_is_off() {
        let mut propagation = Propagation::default();
        propagation.push(0, words("SET a 1"));
        assert!(propagation.take().is_empty());
        propagation.set_on(true);
        propagation.push(0, words("SET a 1"));
        propagation.set_on(false);
        assert!(propagation.take().is_empty());
    }
}
