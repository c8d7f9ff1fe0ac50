//! A thread that prints what happens, so that nothing else waits for the reader.
//!
//! A full pipe, or ctrl-s on a terminal, stops the writer. A node must not be stopped by that: its heartbeats would
//! end, and the others would give it up. Lines wait in a queue instead; what finds no room is dropped, and how much
//! that was is printed as soon as there is room again.

use super::events;
use super::failure::Failure;
use crate::command_line::terminal::Terminal;
use kumi_cluster::AdminEvent;
use serde::Serialize;
use std::cell::Cell;
use std::io::{self, ErrorKind, Write};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, channel, sync_channel};
use std::time::Duration;

/// Lines that wait to be printed.
const QUEUED_LINES: usize = 1024;

/// How long the last lines may take before the program ends without them.
const LAST_LINES: Duration = Duration::from_secs(1);

pub(super) struct Printer<'a> {
    terminal: &'a Terminal,
    lines: SyncSender<String>,
    /// Lines that found no room since the last one that did.
    missed: Cell<u64>,
    /// Disconnected when the thread has ended.
    ended: Receiver<()>,
}

impl<'a> Printer<'a> {
    /// Prints to standard output. What is to happen once a line could not be written, happens on the printing thread. A
    /// reader that is gone does not come back, and nothing is printed any more; a full disk may have room for the next
    /// line.
    pub(super) fn start(
        terminal: &'a Terminal,
        gone: impl FnOnce(io::Error) + Send + 'static,
    ) -> Result<Self, Failure> {
        Self::writing(terminal, io::stdout(), gone)
    }

    fn writing(
        terminal: &'a Terminal,
        mut to: impl Write + Send + 'static,
        gone: impl FnOnce(io::Error) + Send + 'static,
    ) -> Result<Self, Failure> {
        let (lines, waiting) = sync_channel::<String>(QUEUED_LINES);
        let (alive, ended) = channel();
        let printing = move || {
            let _alive = alive;
            let mut gone = Some(gone);
            for line in waiting {
                let written = to.write_all(line.as_bytes()).and_then(|()| to.flush());
                let Err(error) = written else {
                    continue;
                };
                let is_final = error.kind() == ErrorKind::BrokenPipe;
                if let Some(gone) = gone.take() {
                    gone(error);
                }
                if is_final {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("printer".into());
        let started = thread.spawn(printing);
        started.map_err(|error| Failure::io("starting", error))?;
        Ok(Self {
            terminal,
            lines,
            missed: Cell::new(0),
            ended,
        })
    }

    /// Prints an event, as a line for people or as JSON.
    pub(super) fn show(&self, event: &AdminEvent) -> Result<(), Failure> {
        self.say(events::line(event, self.terminal)?);
        Ok(())
    }

    /// Prints anything as a JSON line, with the time.
    pub(super) fn show_json(&self, value: &impl Serialize) -> Result<(), Failure> {
        self.say(events::json_line(value)?);
        Ok(())
    }

    /// Prints a line, or counts it as missed.
    pub(super) fn say(&self, line: String) {
        if !self.say_missed() || !self.queue(line) {
            self.missed.set(self.missed.get() + 1);
        }
    }

    /// Waits for what is still to be printed, but not for ever.
    pub(super) fn finish(self) {
        self.say_missed();
        drop(self.lines);
        let _ = self.ended.recv_timeout(LAST_LINES);
    }

    /// Tells how much was missed, where it is missing; false while there is no room for that either.
    fn say_missed(&self) -> bool {
        let events = self.missed.get();
        if events == 0 {
            return true;
        }
        let told = events::line(&AdminEvent::Missed { events }, self.terminal);
        let told = told.is_ok_and(|line| self.queue(line));
        if told {
            self.missed.set(0);
        }
        told
    }

    fn queue(&self, line: String) -> bool {
        let queued = self.lines.try_send(line + "\n");
        // Without a printer nothing is counted as missed.
        !matches!(queued, Err(TrySendError::Full(_)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::Sender;
    use std::sync::{Arc, Mutex};

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
    fn who_does_not_read_stops_nobody_and_learns_what_it_missed() {
        let terminal = Terminal::plain();
        let (slow, go_on, read) = Slow::new();
        let printer = Printer::writing(&terminal, slow, |_| panic!("it can be written to"));
        let printer = printer.unwrap();
        // Nothing is read, and all of this returns.
        for number in 0..3 * QUEUED_LINES {
            printer.say(number.to_string());
        }
        assert!(printer.missed.get() > 0);
        drop(go_on);
        while read.lock().unwrap().lines().count() < QUEUED_LINES {
            std::thread::yield_now();
        }
        printer.say("last".into());
        printer.finish();
        let read = read.lock().unwrap();
        assert!(read.starts_with("0\n1\n") && read.ends_with("last\n"));
        // The thread took one line out of the queue at some time, so the gap may be told in two pieces.
        let (mut shown, mut missed) = (0, 0);
        for line in read.lines().filter(|line| *line != "last") {
            match line.strip_suffix(" events were missed") {
                Some(told) => {
                    let count = told.rsplit(' ').next().unwrap();
                    missed += count.parse::<usize>().unwrap();
                }
                None => shown += 1,
            }
        }
        assert!(shown >= QUEUED_LINES, "{shown}");
        assert_eq!(shown + missed, 3 * QUEUED_LINES);
    }

    #[test]
    fn the_end_does_not_wait_for_a_reader_that_never_reads() {
        let terminal = Terminal::plain();
        let (slow, _go_on, read) = Slow::new();
        let printer = Printer::writing(&terminal, slow, |_| panic!("it can be written to"));
        let printer = printer.unwrap();
        printer.say("unread".into());
        printer.finish();
        assert_eq!(*read.lock().unwrap(), "");
    }

    /// A disk that has no room for the first line.
    struct Full(Arc<Mutex<String>>, bool);

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if std::mem::take(&mut self.1) {
                return Err(ErrorKind::StorageFull.into());
            }
            *self.0.lock().unwrap() += std::str::from_utf8(bytes).unwrap();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_disk_that_was_full_gets_the_next_line() {
        let terminal = Terminal::plain();
        let written = Arc::new(Mutex::new(String::new()));
        let (report, reported) = channel();
        let printer = Printer::writing(&terminal, Full(written.clone(), true), move |error| {
            report.send(error.kind()).unwrap();
        });
        let printer = printer.unwrap();
        printer.say("lost".into());
        printer.say("kept".into());
        printer.finish();
        assert_eq!(reported.recv(), Ok(ErrorKind::StorageFull));
        assert_eq!(*written.lock().unwrap(), "kept\n");
    }

    #[test]
    fn a_reader_that_is_gone_is_reported_once_and_lines_are_dropped() {
        let terminal = Terminal::plain();
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let (report, reported) = channel();
        let printer = Printer::writing(&terminal, writer, move |error| {
            report.send(error.kind()).unwrap();
        });
        let printer = printer.unwrap();
        printer.say("unheard".into());
        assert_eq!(reported.recv(), Ok(ErrorKind::BrokenPipe));
        assert!(printer.ended.recv().is_err(), "the thread ends");
        for _ in 0..3 * QUEUED_LINES {
            printer.say("unheard".into());
        }
        assert_eq!(printer.missed.get(), 0);
        assert!(reported.recv().is_err(), "only once");
        printer.finish();
    }
}
