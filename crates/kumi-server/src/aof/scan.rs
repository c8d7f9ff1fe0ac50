//! Reads a file of requests: splits it into runs of whole requests, and decides what its end is worth.
//!
//! A file is read in two ways. Behind `#K:open`, requests count only when the mark of their group has come and fits: a
//! group without it was not written completely, and is cut off. Everywhere else the file was written by another server,
//! and is read as Redis reads it: request by request, with an incomplete one at the end cut off. What is cut off is the
//! end of the file only. If a later group says that the bytes in question had been synced, the file is damaged.

use super::mark::{self, Line, SyncProof};
use kumi_store::crc64;
use std::io::{self, Read};
use std::ops::Range;

/// Read at once.
const CHUNK: usize = 1024 * 1024;
/// Requests are handed out in runs, or groups, of about this size together.
const RUN_BYTES: usize = 512 * 1024;
/// The longest comment line, as in Redis.
const MAX_COMMENT: usize = 1024;
const NO_MARK: &str = "the last group has no mark at its end";
const NOT_COMPLETE: &str = "the last request is not complete";

/// Why a file cannot be read on.
#[derive(Debug)]
pub(crate) enum ScanError {
    /// The file cannot be read from disk.
    Read(io::Error),
    /// The bytes at this position are not what they should be.
    Damaged { at: u64, reason: String },
}

/// An end that is cut off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    /// The length of what is good.
    pub(crate) at: u64,
    /// How many bytes the file has behind it.
    pub(crate) lost: u64,
    pub(crate) reason: String,
}

/// Reads one file.
#[derive(Debug)]
pub(crate) struct Scanner<R> {
    reader: R,
    /// The length of the file.
    len: u64,
    buffer: Vec<u8>,
    /// The position of the buffer's first byte in the file.
    start: u64,
    /// Where the next element begins in the buffer.
    at: usize,
    /// Where the group, or the transaction that has not ended, begins in the buffer.
    group: usize,
    /// Behind `#K:open`.
    guarded: bool,
    /// The seed of the checksums, from the last `#K:open`.
    seed: u64,
    in_transaction: bool,
    /// Requests that may be executed, in the buffer.
    runs: Vec<Range<usize>>,
    /// The request or comment that ended last was a request, so that the next one continues its run.
    continues: bool,
    cut: Option<Cut>,
    ended: bool,
}

/// One thing in a file.
enum Element {
    Request {
        len: usize,
        transaction: Option<Edge>,
    },
    Comment(usize),
    /// The file has to be read on.
    More,
    /// The file ends before it does.
    Endless,
    Bad(String),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Edge {
    Begin,
    End,
}

impl<R: Read> Scanner<R> {
    /// Reads a file of `len` bytes, of which the first `skip` have been read from `reader`.
    pub(crate) fn new(reader: R, len: u64, skip: u64) -> Self {
        Self {
            reader,
            len,
            buffer: Vec::new(),
            start: skip,
            at: 0,
            group: 0,
            guarded: false,
            seed: 0,
            in_transaction: false,
            runs: Vec::new(),
            continues: false,
            cut: None,
            ended: false,
        }
    }

    /// Position in the file up to which everything has been handed out.
    pub(crate) fn position(&self) -> u64 {
        self.start + self.group as u64
    }

    /// The seed of the checksums, 0 if the file has none.
    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    /// The end that is cut off, known when [`Scanner::next_runs`] has returned nothing.
    pub(crate) fn cut(&self) -> Option<&Cut> {
        self.cut.as_ref()
    }

    /// The bytes of a run, and its position in the file.
    pub(crate) fn run(&self, run: &Range<usize>) -> (&[u8], u64) {
        (&self.buffer[run.clone()], self.start + run.start as u64)
    }

    /// Reads some groups, or some requests. Returns the runs of requests to execute, none at the end.
    pub(crate) fn next_runs(&mut self) -> Result<Option<Vec<Range<usize>>>, ScanError> {
        // What was handed out is no longer needed.
        self.buffer.drain(..self.group);
        self.start += self.group as u64;
        self.at -= self.group;
        self.group = 0;
        self.runs.clear();
        self.continues = false;
        while !self.ended {
            match self.element() {
                Element::Request { len, transaction } => {
                    if self.request(len, transaction) {
                        return Ok(Some(std::mem::take(&mut self.runs)));
                    }
                }
                Element::Comment(len) => {
                    if self.comment(len)? {
                        return Ok(Some(std::mem::take(&mut self.runs)));
                    }
                }
                Element::More => {
                    let more = self.fill().map_err(ScanError::Read)?;
                    if !more {
                        self.end()?;
                    }
                }
                Element::Endless => self.endless()?,
                Element::Bad(reason) => self.bad(reason)?,
            }
        }
        // What is before the end, or before what is cut off.
        Ok((!self.runs.is_empty()).then(|| std::mem::take(&mut self.runs)))
    }

    /// Takes a request; returns whether there is something to hand out.
    fn request(&mut self, len: usize, transaction: Option<Edge>) -> bool {
        let end = self.at + len;
        match self.runs.last_mut() {
            Some(run) if self.continues => run.end = end,
            _ => self.runs.push(self.at..end),
        }
        self.continues = true;
        self.at = end;
        if self.guarded {
            return false;
        }
        match transaction {
            Some(Edge::Begin) => self.in_transaction = true,
            Some(Edge::End) => self.in_transaction = false,
            None => {}
        }
        if !self.in_transaction {
            self.group = end;
        }
        !self.in_transaction && self.runs[0].start + RUN_BYTES < end
    }

    /// Takes a comment; returns whether there is something to hand out.
    fn comment(&mut self, len: usize) -> Result<bool, ScanError> {
        let line = Line::parse(&self.buffer[self.at..self.at + len]);
        let (at, end) = (self.at, self.at + len);
        self.continues = false;
        if !self.guarded {
            self.at = end;
            if !self.in_transaction {
                self.group = end;
                self.open(line);
            } else if matches!(line, Line::Open(_)) {
                // A server that opens the file cuts such a transaction off.
                self.at = at;
                self.bad(
                    "a transaction that does not end, and a server that writes behind it".into(),
                )?;
            }
            return Ok(self.guarded && !self.runs.is_empty());
        }
        match line {
            Line::Group { len, crc } => {
                let group = &self.buffer[self.group..at];
                if group.len() as u64 != len || crc64::update(self.seed, group) != crc {
                    let reason = format!(
                        "the mark of a group of {len} bytes does not fit the {} bytes before it",
                        group.len()
                    );
                    self.bad(reason)?;
                    return Ok(false);
                }
                self.group = end;
            }
            Line::Open(_) | Line::Close if at == self.group => {
                self.group = end;
                self.open(line);
            }
            Line::Open(_) | Line::Close => {
                self.bad("a group has no mark at its end".into())?;
                return Ok(false);
            }
            Line::Sync(_) | Line::Comment => {}
        }
        self.at = end;
        let first = self.runs.first().map_or(end, |run| run.start);
        Ok(self.group == end && first + RUN_BYTES < end)
    }

    /// What follows this line, which is not in a group, is guarded if the line opens the file.
    fn open(&mut self, line: Line) {
        self.guarded = false;
        if let Line::Open(seed) = line {
            (self.guarded, self.seed) = (true, seed);
        }
    }

    /// The end of the file.
    fn end(&mut self) -> Result<(), ScanError> {
        self.ended = true;
        if self.guarded {
            if self.group == self.buffer.len() {
                return Ok(());
            }
            return self.bad(NO_MARK.into());
        }
        if self.group == self.buffer.len() {
            return Ok(());
        }
        let reason = if self.in_transaction && self.at == self.buffer.len() {
            "a transaction has no EXEC"
        } else {
            NOT_COMPLETE
        };
        self.cut_off(reason.into());
        Ok(())
    }

    /// The request at `at` is longer than the file. What the file has of it is not read into memory.
    fn endless(&mut self) -> Result<(), ScanError> {
        if self.guarded {
            return self.bad(NO_MARK.into());
        }
        self.ended = true;
        self.cut_off(NOT_COMPLETE.into());
        Ok(())
    }

    /// The bytes at `at` are wrong: the end of the file is cut off, or the file is damaged.
    fn bad(&mut self, reason: String) -> Result<(), ScanError> {
        let damaged = |at: u64, reason: String| Err(ScanError::Damaged { at, reason });
        if !self.guarded {
            let at = self.start + self.at as u64;
            if !self.is_lost_open()? {
                return damaged(at, reason);
            }
            self.ended = true;
            self.cut_off("what a server wrote when it opened the file is zeros".into());
            return Ok(());
        }
        let cut_at = self.start + self.group as u64;
        self.ended = true;
        if self.was_synced(cut_at)? {
            let reason = format!("{reason}, and later bytes show that these had been synced");
            return damaged(cut_at, reason);
        }
        self.cut_off(reason);
        Ok(())
    }

    /// Whether a later group says that the file had been synced beyond `cut_at`, where the present group begins. The rest of
    /// the file, however long it is, is read in pieces that are not kept.
    fn was_synced(&mut self, cut_at: u64) -> Result<bool, ScanError> {
        let mut proof = SyncProof::new(cut_at, self.seed);
        let mut pieces = self.buffer[self.group..].chunks(CHUNK);
        if pieces.any(|piece| proof.feed(piece)) {
            return Ok(true);
        }
        self.read_rest(|piece| proof.feed(piece))
    }

    /// Hands what was not read yet to `stops` in pieces, until it returns true; returns whether it did.
    fn read_rest(&mut self, mut stops: impl FnMut(&[u8]) -> bool) -> Result<bool, ScanError> {
        let mut piece = Vec::new();
        loop {
            piece.clear();
            let mut reader = (&mut self.reader).take(CHUNK as u64);
            let read = reader.read_to_end(&mut piece).map_err(ScanError::Read)?;
            if read == 0 {
                return Ok(false);
            }
            if stops(&piece) {
                return Ok(true);
            }
        }
    }

    /// Whether the rest of the file is what a power failure left of a `#K:open` that was not synced: the file has its
    /// length, and zeros. Nothing was acknowledged behind it.
    fn is_lost_open(&mut self) -> Result<bool, ScanError> {
        while self.buffer.len() - self.at <= mark::OPEN_BYTES
            && self.fill().map_err(ScanError::Read)?
        {}
        let rest = &self.buffer[self.at..];
        let Some(written) = rest.iter().position(|&byte| byte == 0) else {
            return Ok(false);
        };
        let (head, lost) = rest.split_at(written);
        if !mark::is_start_of_open(head) {
            return Ok(false);
        }
        if rest.len() <= mark::OPEN_BYTES {
            return Ok(true);
        }
        let is_written = |bytes: &[u8]| bytes.iter().any(|&byte| byte != 0);
        Ok(!is_written(lost) && !self.read_rest(is_written)?)
    }

    fn cut_off(&mut self, reason: String) {
        let at = self.start + self.group as u64;
        let lost = self.len.saturating_sub(at);
        self.cut = Some(Cut { at, lost, reason });
        // Runs of the group that is cut off do not count.
        let group = self.group;
        self.runs.retain(|run| run.start < group);
        if let Some(run) = self.runs.last_mut() {
            run.end = run.end.min(group);
        }
    }

    /// Reads more of the file; false at its end.
    fn fill(&mut self) -> io::Result<bool> {
        let have = self.buffer.len();
        // As much again, so that a long request is looked at a few times only.
        let want = CHUNK.max(have);
        self.buffer.reserve(want);
        let read = (&mut self.reader)
            .take(want as u64)
            .read_to_end(&mut self.buffer)?;
        Ok(read > 0)
    }

    /// Looks at what begins at `at`.
    fn element(&self) -> Element {
        let bytes = &self.buffer[self.at..];
        match bytes.first() {
            None => Element::More,
            Some(b'#') => match bytes
                .iter()
                .take(MAX_COMMENT)
                .position(|&byte| byte == b'\n')
            {
                Some(end) => Element::Comment(end + 1),
                None if bytes.len() >= MAX_COMMENT => {
                    Element::Bad("a comment line is too long".into())
                }
                None => Element::More,
            },
            Some(b'*') => request(bytes, self.len.saturating_sub(self.start + self.at as u64)),
            Some(&byte) => Element::Bad(format!(
                "a request begins with '*', here is '{}'",
                byte.escape_ascii()
            )),
        }
    }
}

/// Looks at a request. `left` is how many bytes the file has from here on.
fn request(bytes: &[u8], left: u64) -> Element {
    let (count, mut at) = match number(bytes, b'*') {
        Number::Is(count, len) if count > 0 => (count, len),
        Number::More => return Element::More,
        _ => return Element::Bad("the number of arguments is malformed".into()),
    };
    let mut transaction = None;
    for index in 0..count {
        let (len, header) = match number(&bytes[at..], b'$') {
            Number::Is(len, header) => (len, header),
            Number::More => return Element::More,
            Number::Bad => return Element::Bad("the length of an argument is malformed".into()),
        };
        let start = at + header;
        let Some(end) = usize::try_from(len)
            .ok()
            .and_then(|len| start.checked_add(len))
        else {
            return Element::Bad("the length of an argument is malformed".into());
        };
        if end as u64 >= left {
            return Element::Endless;
        }
        match bytes.get(end..end + 2) {
            None => return Element::More,
            Some(b"\r\n") => {}
            Some(_) => return Element::Bad("an argument is not as long as it says".into()),
        }
        if count == 1 && index == 0 {
            let word = &bytes[start..end];
            if word.eq_ignore_ascii_case(b"MULTI") {
                transaction = Some(Edge::Begin);
            } else if word.eq_ignore_ascii_case(b"EXEC") {
                transaction = Some(Edge::End);
            }
        }
        at = end + 2;
    }
    Element::Request {
        len: at,
        transaction,
    }
}

enum Number {
    /// The number, and the length of its line.
    Is(u64, usize),
    More,
    Bad,
}

/// Reads `<sign><digits>\r\n`.
fn number(bytes: &[u8], sign: u8) -> Number {
    const DIGITS: usize = 18;
    match bytes.first() {
        None => return Number::More,
        Some(&byte) if byte != sign => return Number::Bad,
        Some(_) => {}
    }
    let mut value = 0;
    for (index, &byte) in bytes.iter().enumerate().skip(1) {
        match byte {
            b'0'..=b'9' if index <= DIGITS => value = value * 10 + u64::from(byte - b'0'),
            b'\r' if index > 1 => {
                return match bytes.get(index + 1) {
                    None => Number::More,
                    Some(b'\n') => Number::Is(value, index + 2),
                    Some(_) => Number::Bad,
                };
            }
            _ => return Number::Bad,
        }
    }
    Number::More
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aof::append::testing::{group, request as encode};

    /// The requests that a file holds, and where it is cut off; or where it is damaged.
    fn scan(bytes: &[u8]) -> Result<(Vec<String>, Option<u64>), u64> {
        let mut scanner = Scanner::new(bytes, bytes.len() as u64, 0);
        let mut requests = Vec::new();
        loop {
            match scanner.next_runs() {
                Ok(Some(runs)) => {
                    for run in &runs {
                        let (bytes, _) = scanner.run(run);
                        requests.push(String::from_utf8_lossy(bytes).replace("\r\n", " "));
                    }
                }
                Ok(None) => return Ok((requests, scanner.cut().map(|cut| cut.at))),
                Err(ScanError::Damaged { at, .. }) => return Err(at),
                Err(ScanError::Read(error)) => panic!("{error}"),
            }
        }
    }

    fn text(line: &str) -> String {
        String::from_utf8(encode(line))
            .unwrap()
            .replace("\r\n", " ")
    }

    #[test]
    fn another_servers_file_is_read_as_redis_reads_it() {
        let mut file = [encode("SET a 1"), b"#TS:12\r\n".to_vec(), encode("DEL a")].concat();
        let good = file.len() as u64;
        let both = vec![text("SET a 1"), text("DEL a")];
        assert_eq!(scan(&file), Ok((both.clone(), None)));
        file.extend_from_slice(b"*2\r\n$3\r\nDEL\r\n$1");
        assert_eq!(scan(&file), Ok((both.clone(), Some(good))));
        file.truncate(usize::try_from(good).unwrap());
        file.extend_from_slice(b"*1\r\n$900\r\nabc");
        assert_eq!(scan(&file), Ok((both.clone(), Some(good))));
        file.truncate(usize::try_from(good).unwrap());
        file.extend_from_slice(b"#K:op");
        assert_eq!(scan(&file), Ok((both, Some(good))));
        file.truncate(usize::try_from(good).unwrap());
        for rest in [
            "SET a 1\r\n",
            "SET\0\0\0",
            "*x\r\n",
            "*1\r\n$4\r\nPINGPONG\r\n",
            "*0\r\n",
            "*-1\r\n",
        ] {
            let damaged = [&file, rest.as_bytes()].concat();
            assert_eq!(scan(&damaged), Err(good), "{rest:?}");
        }
    }

    #[test]
    fn an_open_that_was_not_synced_is_cut_off() {
        let mut closed = mark::OPEN.to_vec();
        closed.extend_from_slice(&group(0, &["SET a 1"]));
        closed.extend_from_slice(mark::CLOSE);
        let mut opened = Vec::new();
        mark::open_line(&mut opened, 7);
        for file in [encode("SET a 1"), closed] {
            let good = file.len() as u64;
            let expected = Ok((vec![text("SET a 1")], Some(good)));
            for written in 0..opened.len() {
                for zeros in [1, 100, 5000] {
                    let torn = [&file[..], &opened[..written], &vec![0; zeros]].concat();
                    assert_eq!(scan(&torn), expected, "{written} and {zeros} zeros");
                }
            }
            let later = [&file[..], &[0; 20], b":24:0123456789abcdef\r\n"].concat();
            assert_eq!(scan(&later), expected);
            // Zeros with requests behind them are damage.
            let rest = encode(&format!("SET b {}", "x".repeat(200)));
            let damaged = [&file[..], &[0; 20], &rest].concat();
            assert_eq!(scan(&damaged), Err(good));
        }
    }

    #[test]
    fn a_value_cannot_pose_as_a_group() {
        let mut file = Vec::new();
        mark::open_line(&mut file, 0x1234);
        let good = file.len() as u64;
        // A client cannot know the seed.
        let value = [mark::OPEN.to_vec(), group(good + 1, &["SET b 1"])].concat();
        let mut body = b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n".to_vec();
        kumi_resp::encode::bulk(&mut body, &value);
        let mut head = Vec::new();
        mark::sync_line(&mut head, good + 1);
        let mut end = Vec::new();
        mark::end_group(&mut end, 0x1234, [&head, &body]);
        let whole = [&file[..], &head, &body, &end].concat();
        assert_eq!(scan(&whole).map(|(_, cut)| cut), Ok(None));
        for len in file.len() + 1..whole.len() {
            assert_eq!(scan(&whole[..len]), Ok((Vec::new(), Some(good))), "{len}");
        }
        // A group of the file itself, behind the damage, is the proof that it is damage.
        let mut damaged = whole.clone();
        damaged[file.len() + 1] ^= 1;
        assert_eq!(scan(&damaged), Ok((Vec::new(), Some(good))));
        damaged.extend_from_slice(&whole[file.len()..]);
        assert_eq!(scan(&damaged), Err(good));
    }

    #[test]
    fn half_a_transaction_is_cut_off() {
        let head = encode("SET a 1");
        let rest = [encode("MULTI"), encode("SET b 1")].concat();
        let file = [&head[..], &rest].concat();
        let good = head.len() as u64;
        assert_eq!(scan(&file), Ok((vec![text("SET a 1")], Some(good))));
        let torn = &file[..file.len() - 2];
        assert_eq!(scan(torn), Ok((vec![text("SET a 1")], Some(good))));
        let whole = [&file[..], &encode("EXEC")].concat();
        assert_eq!(scan(&whole).map(|(_, cut)| cut), Ok(None));
    }

    #[test]
    fn behind_an_open_only_whole_groups_count() {
        let mut file = mark::OPEN.to_vec();
        file.extend_from_slice(&group(0, &["SET a 1", "SET b 1"]));
        let both = text("SET a 1") + &text("SET b 1");
        let good = file.len();
        assert_eq!(scan(&file), Ok((vec![both.clone()], None)));
        let next = group(0, &["SET c 1"]);
        for len in 1..next.len() {
            let torn = [&file[..], &next[..len]].concat();
            assert_eq!(
                scan(&torn),
                Ok((vec![both.clone()], Some(good as u64))),
                "{len}"
            );
            let mut zeros = torn.clone();
            zeros.resize(good + next.len() + 100, 0);
            assert_eq!(
                scan(&zeros),
                Ok((vec![both.clone()], Some(good as u64))),
                "{len} and zeros"
            );
        }
        let mut flipped = [&file[..], &next].concat();
        flipped[good + 18] ^= 1;
        assert_eq!(scan(&flipped), Ok((vec![both.clone()], Some(good as u64))));
        // The same damage with a later group that was not synced yet is still the end of the file ...
        flipped.extend_from_slice(&group(0, &["SET d 1"]));
        assert_eq!(scan(&flipped), Ok((vec![both], Some(good as u64))));
        // ... and with one that says that it had been synced, it is not.
        flipped.extend_from_slice(&group(good as u64 + 1, &["SET e 1"]));
        assert_eq!(scan(&flipped), Err(good as u64));
    }

    #[test]
    fn many_groups_are_handed_out_together() {
        let mut file = mark::OPEN.to_vec();
        let groups = 3 * RUN_BYTES / group(0, &["SET a 1"]).len();
        for _ in 0..groups {
            file.extend_from_slice(&group(0, &["SET a 1"]));
        }
        let good = file.len() as u64;
        file.extend_from_slice(b"*3\r\n$3\r\nSET");
        let mut scanner = Scanner::new(&file[..], file.len() as u64, 0);
        let (mut times, mut runs) = (0, 0);
        while let Some(more) = scanner.next_runs().unwrap() {
            times += 1;
            runs += more.len();
            for run in &more {
                assert_eq!(scanner.run(run).0, encode("SET a 1"));
            }
        }
        assert_eq!(runs, groups);
        assert!(times <= 4, "{groups} groups in {times} times");
        assert_eq!(scanner.cut().map(|cut| cut.at), Some(good));
    }

    #[test]
    fn an_end_of_any_length_is_cut_off() {
        /// What a crash left of a group of several GiB; more of it than the tests can read is not there.
        const LEN: u64 = 5 << 30;
        let mut file = mark::OPEN.to_vec();
        file.extend_from_slice(&group(0, &["SET a 1"]));
        let good = file.len() as u64;
        let torn = [
            "*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$4000000000\r\nxxxx",
            "*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$9000000000\r\nxxxx",
            "\0\0\0\0",
        ];
        for torn in torn {
            let bytes = [&file[..], torn.as_bytes()].concat();
            let mut scanner = Scanner::new(&bytes[..], LEN, 0);
            while scanner.next_runs().expect("it is not damaged").is_some() {}
            let cut = scanner.cut().map(|cut| cut.at);
            assert_eq!((cut, scanner.position()), (Some(good), good), "{torn:?}");
            // The same without a server that guards the file.
            let plain = [&encode("SET a 1")[..], torn.as_bytes()].concat();
            let mut scanner = Scanner::new(&plain[..], LEN, 0);
            while scanner.next_runs().expect("it is not damaged").is_some() {}
            let good = encode("SET a 1").len() as u64;
            assert_eq!(scanner.cut().map(|cut| cut.at), Some(good), "{torn:?}");
        }
    }

    #[test]
    fn damage_is_found_from_far_behind_it() {
        let mut file = mark::OPEN.to_vec();
        let good = file.len() as u64;
        file.extend_from_slice(&group(0, &["SET a 1"]));
        file[mark::OPEN.len() + 1] ^= 1;
        // A group that is longer than what is read at once says that the damaged one had been synced.
        let long = encode(&format!("SET b {}", "x".repeat(3 * CHUNK)));
        let behind = crate::aof::append::testing::group_of(good + 1, &long);
        assert_eq!(scan(&file), Ok((Vec::new(), Some(good))));
        assert_eq!(scan(&[&file[..], &behind].concat()), Err(good));
        file.resize(file.len() + 2 * CHUNK, 0);
        assert_eq!(scan(&file), Ok((Vec::new(), Some(good))));
        assert_eq!(scan(&[&file[..], &behind].concat()), Err(good));
    }

    #[test]
    fn what_follows_a_close_was_written_by_another_server() {
        let mut file = mark::OPEN.to_vec();
        file.extend_from_slice(&group(0, &["SET a 1"]));
        file.extend_from_slice(mark::CLOSE);
        file.extend_from_slice(&encode("SET b 1"));
        let good = file.len() as u64;
        let expected = vec![text("SET a 1"), text("SET b 1")];
        assert_eq!(scan(&file), Ok((expected.clone(), None)));
        file.extend_from_slice(mark::OPEN);
        let opened = file.len() as u64;
        assert_eq!(scan(&file), Ok((expected.clone(), None)));
        file.extend_from_slice(&encode("SET c 1"));
        assert_eq!(scan(&file), Ok((expected, Some(opened))));
        assert_ne!(good, opened);
    }

    #[test]
    fn requests_longer_than_a_chunk_are_read() {
        let long = encode(&format!("SET a {}", "x".repeat(3 * CHUNK)));
        let mut file = mark::OPEN.to_vec();
        file.extend_from_slice(&crate::aof::append::testing::group_of(0, &long));
        file.extend_from_slice(mark::CLOSE);
        file.extend_from_slice(&long);
        let (requests, cut) = scan(&file).unwrap();
        assert_eq!((requests.len(), cut), (2, None));
        assert_eq!(requests[1].len(), long.len() - 7);
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(proptest::sample::select(
            b"*$#K:open\r\n0123456789SETMULTIEXEC\0".to_vec()), 0..300), guarded: bool) {
            let mut file = if guarded { mark::OPEN.to_vec() } else { Vec::new() };
            file.extend_from_slice(&bytes);
            let _ = scan(&file);
        }
    }
}
