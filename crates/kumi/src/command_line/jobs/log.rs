//! What `kumi jobs work` writes to standard error, on a thread of its own.
//!
//! A full pipe, or ctrl-s on a terminal, stops the writer. A worker must not be stopped by that: its lease would end, and
//! other workers would run its tasks again. Texts wait in a queue instead; what finds no room is dropped, and how much
//! that was is written as soon as there is room again.

use std::collections::VecDeque;
use std::fmt::Display;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Bytes that wait to be written. A larger text waits alone.
const QUEUED_BYTES: usize = 1 << 20;

/// How long the last texts may take before the program ends without them.
const LAST_TEXTS: Duration = Duration::from_secs(1);

/// Standard error, for writers that must not wait. Each write is a text of its own.
#[derive(Clone)]
pub(super) struct Log(Arc<Shared>);

struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    texts: VecDeque<Vec<u8>>,
    /// Bytes of `texts`, and of the text that is being written.
    bytes: usize,
    /// Texts that found no room since the last one that did.
    missed: u64,
    /// No more texts come.
    closed: bool,
    /// All texts are written, and the thread has ended.
    ended: bool,
}

impl Log {
    pub(super) fn start() -> io::Result<Self> {
        Self::writing(io::stderr())
    }

    fn writing(to: impl Write + Send + 'static) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            changed: Condvar::new(),
        });
        let log = Self(shared.clone());
        let thread = std::thread::Builder::new().name("log".into());
        thread.spawn(move || shared.write_all(to))?;
        Ok(log)
    }

    /// Writes a line of the program itself.
    pub(super) fn note(&self, text: impl Display) {
        self.push(format!("kumi: {text}\n").as_bytes());
    }

    /// Writes a text, or counts it as missed.
    pub(super) fn push(&self, text: &[u8]) {
        let mut queue = self.0.lock();
        if !queue.push_missed() || !queue.push(text) {
            queue.missed += 1;
        }
        drop(queue);
        self.0.changed.notify_all();
    }

    /// Waits for what is still to be written, but not for ever.
    pub(super) fn finish(&self) {
        let mut queue = self.0.lock();
        queue.push_missed();
        queue.closed = true;
        self.0.changed.notify_all();
        let changed = &self.0.changed;
        drop(changed.wait_timeout_while(queue, LAST_TEXTS, |queue| !queue.ended));
    }
}

impl Write for Log {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.push(text);
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes all texts, until no more come.
    fn write_all(&self, mut to: impl Write) {
        let mut written = 0;
        while let Some(text) = self.next(written) {
            written = text.len();
            // A reader that is gone, or a full disk, stops no worker either.
            let _ = to.write_all(&text).and_then(|()| to.flush());
        }
    }

    /// The next text, after so many bytes of the last one were written.
    fn next(&self, written: usize) -> Option<Vec<u8>> {
        let mut queue = self.lock();
        queue.bytes -= written;
        let is_idle = |queue: &mut Queue| queue.texts.is_empty() && !queue.closed;
        let mut queue = self
            .changed
            .wait_while(queue, is_idle)
            .unwrap_or_else(PoisonError::into_inner);
        let text = queue.texts.pop_front();
        if text.is_none() {
            queue.ended = true;
            self.changed.notify_all();
        }
        text
    }
}

impl Queue {
    /// False if there is no room.
    fn push(&mut self, text: &[u8]) -> bool {
        let fits = self.bytes == 0 || self.bytes + text.len() <= QUEUED_BYTES;
        if fits {
            self.bytes += text.len();
            self.texts.push_back(text.to_vec());
        }
        fits
    }

    /// Tells how much was missed, where it is missing; false while there is no room for that either.
    fn push_missed(&mut self) -> bool {
        if self.missed == 0 {
            return true;
        }
        let text = format!("kumi: {} messages were missed\n", self.missed);
        let told = self.push(text.as_bytes());
        if told {
            self.missed = 0;
        }
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, Sender, channel};

    /// A reader that reads nothing until it may, as a terminal after ctrl-s.
    struct Slow {
        go_on: Receiver<()>,
        read: Arc<Mutex<String>>,
    }

    impl Slow {
        fn new() -> (Self, Sender<()>, Arc<Mutex<String>>) {
            let (say, go_on) = channel();
            let read = Arc::new(Mutex::new(String::new()));
            let slow = Self {
                go_on,
                read: read.clone(),
            };
            (slow, say, read)
        }
    }

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            // Disconnected means that it may read everything.
            let _ = self.go_on.recv();
            *self.read.lock().unwrap() += std::str::from_utf8(bytes).unwrap();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_that_does_not_read_stops_no_writer_and_learns_what_it_missed() {
        let (slow, go_on, read) = Slow::new();
        let mut log = Log::writing(slow).unwrap();
        let line = "x".repeat(1023) + "\n";
        let room = QUEUED_BYTES / line.len();
        // Nothing is read, and all of this returns.
        for _ in 0..3 * room {
            log.write_all(line.as_bytes()).unwrap();
        }
        assert_eq!(log.0.lock().missed, 2 * room as u64);
        drop(go_on);
        while read.lock().unwrap().len() < QUEUED_BYTES {
            std::thread::yield_now();
        }
        log.note("last");
        while !read.lock().unwrap().ends_with("last\n") {
            std::thread::yield_now();
        }
        let end = format!("kumi: {} messages were missed\nkumi: last\n", 2 * room);
        let read = read.lock().unwrap();
        assert_eq!(read.strip_prefix(&line.repeat(room)), Some(&*end));
    }

    #[test]
    fn a_text_above_the_limit_waits_alone() {
        let (slow, _go_on, _read) = Slow::new();
        let log = Log::writing(slow).unwrap();
        log.push(&vec![b'x'; QUEUED_BYTES + 1]);
        assert_eq!(log.0.lock().missed, 0);
        log.push(b"x");
        assert_eq!(log.0.lock().missed, 1);
    }

    #[test]
    fn the_end_does_not_wait_for_a_reader_that_never_reads() {
        let (slow, _go_on, read) = Slow::new();
        let log = Log::writing(slow).unwrap();
        log.push(b"unread");
        log.finish();
        assert_eq!(*read.lock().unwrap(), "");
    }

    #[test]
    fn the_thread_ends_when_all_is_written() {
        let (slow, go_on, read) = Slow::new();
        let log = Log::writing(slow).unwrap();
        log.push(b"read");
        drop(go_on);
        log.finish();
        while !log.0.lock().ended {
            std::thread::yield_now();
        }
        assert_eq!(*read.lock().unwrap(), "read");
    }
}
