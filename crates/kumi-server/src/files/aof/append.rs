//! Appends groups of writes to an increment, each with its mark, in one call of the system.

use super::files::{AofFile, Files};
use super::mark;
use kumi_store::Writes;
use kumi_store::config::Fsync;
use std::io::{self, IoSlice};
use std::iter;
use std::path::Path;
use std::sync::Arc;

/// The increment that is written to.
#[derive(Debug)]
pub(crate) struct Appender {
    file: Arc<dyn AofFile>,
    /// The length of the file.
    position: u64,
    /// The position that the last `#K:sync` line named.
    noted: u64,
    /// The end of the last group with requests.
    requests_end: u64,
    /// The seed of the checksums.
    seed: u64,
    /// When the file is synced, and what the last `#K:fsync` line says of it.
    fsync: Fsync,
    noted_fsync: Option<Fsync>,
    /// The second that the last `#TS` line named.
    stamped_s: u64,
    /// The file holds nothing but the line that opens it and the group behind that line.
    fresh: bool,
    /// The boot of the machine, if it is known.
    boot: Option<u128>,
    head: Vec<u8>,
    mark: Vec<u8>,
}

impl Appender {
    /// Begins a file, see [`Appender::open`].
    pub(crate) fn create(files: &dyn Files, path: &Path, fsync: Fsync) -> io::Result<Self> {
        Self::open(files, path, 0, 0, fsync)
    }

    /// Continues a file of this length, or begins one, and marks that a server begins to write. `seed` is that of the
    /// file, 0 for none. Everything is synced when this returns.
    pub(crate) fn open(
        files: &dyn Files,
        path: &Path,
        len: u64,
        seed: u64,
        fsync: Fsync,
    ) -> io::Result<Self> {
        let file = if len == 0 {
            files.create(path)?
        } else {
            files.open(path)?
        };
        if len > 0 {
            // What other programs have written, or cutting the file, must not be less durable than what follows.
            file.sync()?;
        }
        let seed = if seed == 0 { mark::new_seed()? } else { seed };
        let mut appender = Self {
            file,
            position: len,
            noted: 0,
            requests_end: 0,
            seed,
            fsync,
            noted_fsync: None,
            stamped_s: 0,
            fresh: false,
            boot: files.boot(),
            head: Vec::new(),
            mark: Vec::new(),
        };
        appender.write_open(None)?;
        if len > 0 {
            // A power failure must not leave the group behind it without this line: it would be a hole.
            appender.file.sync()?;
        }
        appender.write_first_group(len)?;
        appender.fresh = len == 0;
        appender.file.sync()?;
        Ok(appender)
    }

    /// Has a file without any request begin with the time, as Redis has it: it is the first line, before the one that opens
    /// the file. Everything is synced when this returns.
    ///
    /// # Errors
    /// The file may hold nothing. The next group then begins with what opens it.
    pub(crate) fn stamp(&mut self, unix_s: u64) -> io::Result<()> {
        if !self.fresh || self.stamped_s != 0 {
            return Ok(());
        }
        self.file.truncate(0)?;
        self.position = 0;
        self.noted = 0;
        self.noted_fsync = None;
        self.write_open(Some(unix_s))?;
        self.write_first_group(0)?;
        self.file.sync()
    }

    /// Appends the line that opens the file, behind the time if that is given.
    fn write_open(&mut self, unix_s: Option<u64>) -> io::Result<()> {
        let mut lines = Vec::new();
        if let Some(unix_s) = unix_s {
            mark::time_line(&mut lines, unix_s);
        }
        mark::open_line(&mut lines, self.seed);
        if let Err(error) = self.file.append(&mut [IoSlice::new(&lines)]) {
            let _ = self.file.truncate(self.position);
            return Err(error);
        }
        self.position += lines.len() as u64;
        self.stamped_s = unix_s.unwrap_or(self.stamped_s);
        Ok(())
    }

    /// Appends the group behind the line that opens the file. It proves to a reader that everything before it was synced,
    /// and says in which boot the file is written.
    fn write_first_group(&mut self, synced: u64) -> io::Result<()> {
        self.begin_head(synced);
        if let Some(boot) = self.boot {
            mark::boot_line(&mut self.head, boot);
        }
        self.append_head(&Writes::default(), synced, None)
    }

    /// Whether the file is to say that it is synced up to a position: it has requests before it that no line covers.
    pub(crate) fn lacks_note(&self, synced: u64) -> bool {
        self.noted < self.requests_end && self.requests_end <= synced
    }

    /// What follows is synced so.
    pub(crate) fn set_fsync(&mut self, fsync: Fsync) {
        self.fsync = fsync;
    }

    /// The file, for the thread that syncs it.
    pub(crate) fn file(&self) -> &Arc<dyn AofFile> {
        &self.file
    }

    /// The length of the file.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// Appends a group. `synced` is the position up to which the file is synced, `unix_s` the time to write before it.
    ///
    /// # Errors
    /// A part of the group may be in the file, without its mark.
    pub(crate) fn append(
        &mut self,
        body: &Writes,
        synced: u64,
        unix_s: Option<u64>,
    ) -> io::Result<()> {
        if self.position == 0 {
            self.write_open(None)?;
            self.write_first_group(0)?;
        }
        self.begin_head(synced);
        if self.head.is_empty() && body.is_empty() {
            return Ok(());
        }
        self.fresh = false;
        self.append_head(body, synced, unix_s)
    }

    /// Begins the lines before the requests of a group.
    fn begin_head(&mut self, synced: u64) {
        self.head.clear();
        if synced > self.noted {
            mark::sync_line(&mut self.head, synced);
        }
    }

    /// Appends a group whose head has begun.
    fn append_head(&mut self, body: &Writes, synced: u64, unix_s: Option<u64>) -> io::Result<()> {
        if self.noted_fsync != Some(self.fsync) {
            mark::fsync_line(&mut self.head, self.fsync);
        }
        if let Some(unix_s) = unix_s.filter(|&unix_s| unix_s > self.stamped_s) {
            mark::time_line(&mut self.head, unix_s);
            self.stamped_s = unix_s;
        }
        self.mark.clear();
        let pieces = || iter::once(self.head.as_slice()).chain(body.parts());
        mark::end_pieces(&mut self.mark, self.seed, pieces());
        let all = pieces().chain(iter::once(self.mark.as_slice()));
        let mut slices: Vec<IoSlice<'_>> = all.map(IoSlice::new).collect();
        let appended = self.file.append(&mut slices);
        if let Err(error) = appended {
            // A reader cuts it off as well; this only keeps the file tidy for redis-server.
            let _ = self.file.truncate(self.position);
            return Err(error);
        }
        self.noted = self.noted.max(synced);
        self.noted_fsync = Some(self.fsync);
        self.position += (self.head.len() + body.len() + self.mark.len()) as u64;
        if !body.is_empty() {
            self.requests_end = self.position;
        }
        Ok(())
    }

    /// Syncs the file, marks that the server ends, and syncs again.
    pub(crate) fn close(&mut self) -> io::Result<()> {
        self.file.sync()?;
        self.append(&Writes::default(), self.position, None)?;
        self.end()
    }

    /// Marks that the server ends, and syncs the file.
    pub(crate) fn end(&mut self) -> io::Result<()> {
        self.file.append(&mut [IoSlice::new(mark::CLOSE)])?;
        self.position += mark::CLOSE.len() as u64;
        self.file.sync()
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use super::mark;

    /// A line of words as a request.
    pub(crate) fn request(line: &str) -> Vec<u8> {
        let words: Vec<&str> = line.split(' ').collect();
        let mut bytes = Vec::new();
        kumi_resp::encode::array(&mut bytes, words.len());
        for word in words {
            kumi_resp::encode::bulk(&mut bytes, word.as_bytes());
        }
        bytes
    }

    /// A group of requests, with a line that the file is synced up to `synced` unless that is 0.
    pub(crate) fn group(synced: u64, lines: &[&str]) -> Vec<u8> {
        let body: Vec<u8> = lines.iter().flat_map(|line| request(line)).collect();
        group_of(synced, &body)
    }

    pub(crate) fn group_of(synced: u64, body: &[u8]) -> Vec<u8> {
        let mut head = Vec::new();
        if synced > 0 {
            mark::sync_line(&mut head, synced);
        }
        let mut end = Vec::new();
        mark::end_group(&mut end, 0, [&head, body]);
        [&head[..], body, &end].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::aof::files::Disk;
    use crate::files::aof::scan_bytes;
    use kumi_resp::SharedBytes;
    use std::fs;
    use std::sync::Mutex;

    /// SET requests whose values are referred to.
    fn writes(values: &[SharedBytes]) -> Writes {
        let mut writes = Writes::default();
        for value in values {
            let len = value.len();
            writes.push(format!("*3\r\n$3\r\nSET\r\n$1\r\na\r\n${len}\r\n").as_bytes());
            writes.push_shared(value.clone());
            writes.push(b"\r\n");
        }
        writes
    }

    #[test]
    fn the_mark_of_a_group_covers_all_its_parts() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("increment");
        let mut appender = Appender::create(&Disk, &path, Fsync::EverySecond).unwrap();
        let long = SharedBytes::new(vec![b'v'; 100_000]);
        appender.append(&writes(&[long]), 0, Some(5)).unwrap();
        let middle = appender.position();
        // More parts than the system takes at once.
        let many = vec![SharedBytes::new(b"short".to_vec()); 2000];
        appender.append(&writes(&many), middle, None).unwrap();
        let end = appender.position();
        let file = fs::read(&path).unwrap();
        assert_eq!(file.len() as u64, end);
        assert_eq!(scan_bytes(&file), Some(end));
        // A byte of the long value, and one of a short one.
        let short = file.windows(5).rposition(|bytes| bytes == b"short");
        for at in [50_000, short.unwrap()] {
            let mut damaged = file.clone();
            damaged[at] ^= 1;
            assert_ne!(scan_bytes(&damaged), Some(end), "{at}");
        }
    }

    #[test]
    fn a_file_without_groups_can_be_made_to_begin_with_the_time() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("increment");
        let mut appender = Appender::create(&Disk, &path, Fsync::EverySecond).unwrap();
        appender.stamp(5).unwrap();
        appender.stamp(6).unwrap();
        let short = SharedBytes::new(b"short".to_vec());
        appender
            .append(&writes(&[short]), appender.position(), Some(5))
            .unwrap();
        // Not any more: there is a group.
        appender.stamp(7).unwrap();
        let file = fs::read(&path).unwrap();
        assert!(file.starts_with(b"#TS:5\r\n#K:open:"));
        let stamps = file.windows(4).filter(|bytes| bytes == b"#TS:").count();
        assert_eq!(stamps, 1);
        assert_eq!(scan_bytes(&file), Some(appender.position()));
    }

    /// A file on a disk that has room for so many bytes.
    #[derive(Debug)]
    struct SmallFile {
        bytes: Mutex<Vec<u8>>,
        room: usize,
    }

    impl AofFile for SmallFile {
        fn append(&self, slices: &mut [IoSlice<'_>]) -> io::Result<()> {
            let mut bytes = self.bytes.lock().unwrap();
            for slice in slices.iter() {
                let count = slice.len().min(self.room - bytes.len());
                bytes.extend_from_slice(&slice[..count]);
                if count < slice.len() {
                    return Err(io::ErrorKind::StorageFull.into());
                }
            }
            Ok(())
        }

        fn sync(&self) -> io::Result<()> {
            Ok(())
        }

        fn truncate(&self, len: u64) -> io::Result<()> {
            self.bytes.lock().unwrap().truncate(len as usize);
            Ok(())
        }
    }

    #[test]
    fn a_write_that_ends_inside_of_a_shared_value_is_cut_off() {
        let mut line = Vec::new();
        mark::open_line(&mut line, 7);
        let position = line.len() as u64;
        let file = Arc::new(SmallFile {
            bytes: Mutex::new(line),
            room: 150_000,
        });
        let mut appender = Appender {
            file: file.clone(),
            position,
            noted: 0,
            requests_end: 0,
            seed: 7,
            fsync: Fsync::EverySecond,
            noted_fsync: None,
            stamped_s: 0,
            fresh: false,
            boot: None,
            head: Vec::new(),
            mark: Vec::new(),
        };
        let long = SharedBytes::new(vec![b'v'; 100_000]);
        let group = writes(std::slice::from_ref(&long));
        appender.append(&group, 0, None).unwrap();
        let good = appender.position();
        let error = appender.append(&group, 0, None).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!(appender.position(), good);
        assert_eq!(file.bytes.lock().unwrap().len() as u64, good);
        let short = SharedBytes::new(b"short".to_vec());
        appender.append(&writes(&[short]), 0, None).unwrap();
        let bytes = file.bytes.lock().unwrap();
        assert_eq!(bytes.len() as u64, appender.position());
        assert_eq!(scan_bytes(&bytes), Some(appender.position()));
    }
}
