//! Writes as RESP requests, for an append-only file and for replicas.
//!
//! Every write of the data leaves a request here that replays to the same state at any later time:
//! relative expiries are absolute, an expired key is a deletion, a random choice is the choice that
//! was made. Requests are encoded once, into one buffer, in the order of the writes; a SELECT
//! stands before a request whose database differs from the one before.
//!
//! What belongs together is a scope: a command, a transaction, a script. A scope that leaves more
//! than one request is framed by MULTI and EXEC, so that a reader applies it as a whole. Whether it
//! does is known only when the second request comes: MULTI is then put in front of the first one,
//! which is still in the buffer, because what belongs to an open scope is not taken.
//! Nothing is encoded while propagation is off.

use kumi_resp::encode;

const MULTI: &[u8] = b"*1\r\n$5\r\nMULTI\r\n";
const EXEC: &[u8] = b"*1\r\n$4\r\nEXEC\r\n";

#[derive(Debug, Default)]
pub(crate) struct Propagation {
    on: bool,
    /// A script has turned propagation of its writes off.
    muted: bool,
    /// Complete scopes, then the requests of the open one.
    buffer: Vec<u8>,
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
    /// Turns encoding on or off. A stream that begins anew begins with a SELECT.
    pub(crate) fn listen(&mut self, on: bool) {
        if on && !self.on {
            self.selected = None;
        }
        self.on = on;
        if !on {
            self.taken += self.buffer.len() as u64;
            self.buffer = Vec::new();
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

    /// Closes the innermost scope.
    #[inline]
    pub(crate) fn end(&mut self) {
        debug_assert!(self.depth > 0, "a scope ends once");
        self.depth = self.depth.saturating_sub(1);
        if self.depth == 0 && self.requests > 0 {
            if self.requests > 1 {
                // In whichever database the last request was: EXEC itself needs none.
                self.buffer.extend_from_slice(EXEC);
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
                2 => {
                    let multi = MULTI.iter().copied();
                    self.buffer.splice(self.open_at..self.open_at, multi);
                }
                _ => {}
            }
        }
        self.select(db);
        encode_request(&mut self.buffer, args.into_iter());
    }

    /// Everything since the last call, to be written to a log or sent to replicas before the
    /// replies of the same writes are. What belongs to an open scope stays.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        let mut taken = Vec::new();
        self.swap(&mut taken);
        taken
    }

    /// As [`Propagation::take`], into `empty`, whose memory is used from now on.
    pub(crate) fn swap(&mut self, empty: &mut Vec<u8>) -> u64 {
        debug_assert!(empty.is_empty(), "what it holds would be propagated");
        std::mem::swap(&mut self.buffer, empty);
        if self.requests > 0 {
            self.buffer.extend_from_slice(&empty[self.open_at..]);
            empty.truncate(self.open_at);
            self.open_at = 0;
        }
        self.taken += empty.len() as u64;
        self.taken
    }

    fn select(&mut self, db: usize) {
        if self.selected != Some(db) {
            self.selected = Some(db);
            let number = db.to_string();
            encode_request(
                &mut self.buffer,
                [b"SELECT".as_slice(), number.as_bytes()].into_iter(),
            );
        }
    }
}

fn encode_request<'a>(out: &mut Vec<u8>, args: impl Iterator<Item = &'a [u8]> + Clone) {
    encode::array(out, args.clone().count());
    for arg in args {
        encode::bulk(out, arg);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests of a buffer, one a line.
    fn requests(bytes: &[u8]) -> Vec<String> {
        crate::testing::requests(bytes)
    }

    fn on() -> Propagation {
        let mut propagation = Propagation::default();
        propagation.listen(true);
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
    fn nothing_is_kept_while_it_is_off() {
        let mut propagation = Propagation::default();
        propagation.push(0, words("SET a 1"));
        assert!(propagation.take().is_empty());
        propagation.listen(true);
        propagation.push(0, words("SET a 1"));
        propagation.listen(false);
        assert!(propagation.take().is_empty());
    }
}
