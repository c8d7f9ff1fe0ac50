//! Writes as RESP requests, for an append-only file and for replicas.
//!
//! Every write of the data leaves a request here that replays to the same state at any later time:
//! relative expiries are absolute, an expired key is a deletion, a random choice is the choice that
//! was made. Requests are encoded once, into one buffer, in the order of the writes; a SELECT
//! stands before a request whose database differs from the one before.
//!
//! What belongs together is a scope: a command, a transaction, a script. A scope that leaves more
//! than one request is framed by MULTI and EXEC, so that a reader applies it as a whole. Whether it
//! does is known only when the second request comes, so the first one waits in `first` until then.
//! Nothing is encoded while propagation is off.

use kumi_resp::encode;

const MULTI: &[u8] = b"*1\r\n$5\r\nMULTI\r\n";
const EXEC: &[u8] = b"*1\r\n$4\r\nEXEC\r\n";

#[derive(Debug, Default)]
pub(crate) struct Propagation {
    on: bool,
    /// A script has turned propagation of its writes off.
    muted: bool,
    /// Complete scopes, and the open one from its second request on.
    buffer: Vec<u8>,
    /// The database a reader of `buffer` has selected; none at the start of a stream.
    selected: Option<usize>,
    /// Scopes that are open inside each other; only the outermost one frames requests.
    depth: usize,
    /// Requests of the open scope.
    requests: usize,
    /// The first request of the open scope, encoded, and its database.
    first: Vec<u8>,
    first_db: usize,
}

impl Propagation {
    /// Turns encoding on or off. A stream that begins anew begins with a SELECT.
    pub(crate) fn listen(&mut self, on: bool) {
        if on && !self.on {
            self.selected = None;
        }
        self.on = on;
        if !on {
            self.buffer = Vec::new();
            self.first = Vec::new();
            self.requests = 0;
        }
    }

    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.on
    }

    /// Leaves requests out, or no longer does: `redis.set_repl`.
    pub(crate) fn mute(&mut self, muted: bool) {
        self.muted = muted;
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
            self.close_scope();
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
        let args = args.into_iter();
        if self.depth == 0 {
            self.select(db);
            return encode_request(&mut self.buffer, args);
        }
        self.requests += 1;
        match self.requests {
            1 => {
                self.first_db = db;
                return encode_request(&mut self.first, args);
            }
            2 => {
                self.select(self.first_db);
                self.buffer.extend_from_slice(MULTI);
                self.buffer.append(&mut self.first);
            }
            _ => {}
        }
        self.select(db);
        encode_request(&mut self.buffer, args);
    }

    /// Everything since the last call, to be written to a log or sent to replicas before the
    /// replies of the same writes are. Empty while a scope is open.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        if self.depth > 0 {
            return Vec::new();
        }
        std::mem::take(&mut self.buffer)
    }

    fn close_scope(&mut self) {
        if self.requests == 1 {
            self.select(self.first_db);
            self.buffer.append(&mut self.first);
        } else {
            // In whichever database the last request was: EXEC itself needs none.
            self.buffer.extend_from_slice(EXEC);
        }
        self.requests = 0;
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
        assert!(propagation.take().is_empty(), "the scope is open");
        propagation.end();
        assert_eq!(requests(&propagation.take()), ["SELECT 0", "SET a 1"]);
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
