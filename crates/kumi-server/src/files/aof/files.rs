//! The file operations that the append-only file needs, behind a trait: the tests replace the disk by one that keeps
//! only what was synced.

use std::fmt::Debug;
use std::fs::{self, File};
use std::io::{self, IoSlice, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// A file that is written at its end. Several threads may use it: one writes, another one syncs.
pub(crate) trait AofFile: Debug + Send + Sync {
    /// Appends all bytes of the slices. After an error any part of them may have been appended.
    fn append(&self, slices: &mut [IoSlice<'_>]) -> io::Result<()>;
    /// Waits until what was appended is on disk.
    fn sync(&self) -> io::Result<()>;
    /// Cuts the file at this length.
    fn truncate(&self, len: u64) -> io::Result<()>;
}

/// A file system.
pub(crate) trait Files: Debug + Send + Sync {
    /// Opens a file for appending; makes it if it does not exist.
    fn open(&self, path: &Path) -> io::Result<Arc<dyn AofFile>>;
    /// Makes an empty file, in place of one that exists.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn AofFile>>;
    /// Opens a file for reading, and says how long it is.
    fn read(&self, path: &Path) -> io::Result<(Box<dyn Read + Send>, u64)>;
    /// Opens a file for reading from a position on.
    fn read_from(&self, path: &Path, at: u64) -> io::Result<Box<dyn Read + Send>>;
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    fn remove(&self, path: &Path) -> io::Result<()>;
    fn exists(&self, path: &Path) -> bool;
    /// The names in a directory, without those that are not UTF-8.
    fn names(&self, directory: &Path) -> io::Result<Vec<String>>;
    /// Makes a directory if it does not exist.
    fn make_directory(&self, path: &Path) -> io::Result<()>;
    /// Waits until the names in a directory are on disk.
    fn sync_directory(&self, path: &Path) -> io::Result<()>;
    /// The present boot of the system, if it is known: as long as it is the same, all that was written is there.
    fn boot(&self) -> Option<u128>;
}

/// The real file system.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Disk;

#[derive(Debug)]
struct DiskFile(File);

impl AofFile for DiskFile {
    fn append(&self, mut slices: &mut [IoSlice<'_>]) -> io::Result<()> {
        // Without an empty slice at the front, a write of 0 bytes is an error of the system.
        IoSlice::advance_slices(&mut slices, 0);
        while !slices.is_empty() {
            match (&self.0).write_vectored(slices) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => IoSlice::advance_slices(&mut slices, count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }
}

impl Files for Disk {
    fn open(&self, path: &Path) -> io::Result<Arc<dyn AofFile>> {
        let file = File::options().append(true).create(true).open(path)?;
        Ok(Arc::new(DiskFile(file)))
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn AofFile>> {
        // Not truncated by `open`: a file for appending may not be.
        let file = File::options().append(true).create(true).open(path)?;
        file.set_len(0)?;
        Ok(Arc::new(DiskFile(file)))
    }

    fn read(&self, path: &Path) -> io::Result<(Box<dyn Read + Send>, u64)> {
        let file = File::open(path)?;
        let len = file.metadata()?.len();
        Ok((Box::new(file), len))
    }

    fn read_from(&self, path: &Path, at: u64) -> io::Result<Box<dyn Read + Send>> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(at))?;
        Ok(Box::new(file))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn exists(&self, path: &Path) -> bool {
        path.exists()
    }

    fn names(&self, directory: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(directory)? {
            names.extend(entry?.file_name().into_string());
        }
        Ok(names)
    }

    fn make_directory(&self, path: &Path) -> io::Result<()> {
        match fs::create_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
            made => made,
        }
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }

    fn boot(&self) -> Option<u128> {
        // Linux has it. Elsewhere a power failure is assumed.
        let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        u128::from_str_radix(&text.trim_ascii().replace('-', ""), 16).ok()
    }
}

/// Cuts a file off at a position, and keeps what is cut off in a file beside it, whose name ends with `.cut`. Everything is on
/// disk when this returns the other file's name.
///
/// # Errors
/// The file is not cut off if the rest could not be kept.
pub(crate) fn cut_off(files: &dyn Files, path: &Path, at: u64) -> io::Result<PathBuf> {
    let time = SystemTime::now().duration_since(UNIX_EPOCH);
    let seconds = time.map_or(0, |time| time.as_secs());
    let named = |ending: String| {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        PathBuf::from(name)
    };
    let mut kept = named(format!(".{seconds}.cut"));
    let mut number = 1;
    while files.exists(&kept) {
        number += 1;
        kept = named(format!(".{seconds}-{number}.cut"));
    }
    let mut copy = Sink::new(files.create(&kept)?, None);
    io::copy(&mut files.read_from(path, at)?, &mut copy)?;
    copy.finish()?;
    let directory = path.parent().filter(|path| !path.as_os_str().is_empty());
    files.sync_directory(directory.unwrap_or(Path::new(".")))?;
    let file = files.open(path)?;
    file.truncate(at)?;
    file.sync()?;
    Ok(kept)
}

/// Appends through a buffer, and syncs now and then, so that the last sync has little to do.
#[derive(Debug)]
pub(crate) struct Sink {
    file: Arc<dyn AofFile>,
    buffer: Vec<u8>,
    /// Sync after this many bytes; none for only at the end.
    sync_every: Option<u64>,
    unsynced: u64,
    written: u64,
}

impl Sink {
    const BUFFER_BYTES: usize = 256 * 1024;

    pub(crate) fn new(file: Arc<dyn AofFile>, sync_every: Option<u64>) -> Self {
        Self {
            file,
            buffer: Vec::new(),
            sync_every,
            unsynced: 0,
            written: 0,
        }
    }

    /// Writes and syncs everything; returns the file's length.
    pub(crate) fn finish(mut self) -> io::Result<u64> {
        self.flush()?;
        self.file.sync()?;
        Ok(self.written)
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.append(&mut [IoSlice::new(bytes)])?;
        self.written += bytes.len() as u64;
        self.unsynced += bytes.len() as u64;
        if self.sync_every.is_some_and(|every| self.unsynced >= every) {
            self.unsynced = 0;
            self.file.sync()?;
        }
        Ok(())
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.buffer.len() + bytes.len() > Self::BUFFER_BYTES {
            self.flush()?;
        }
        if bytes.len() >= Self::BUFFER_BYTES {
            self.append(bytes)?;
        } else {
            self.buffer.extend_from_slice(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.buffer.is_empty() {
            let buffer = std::mem::take(&mut self.buffer);
            self.append(&buffer)?;
            self.buffer = buffer;
            self.buffer.clear();
        }
        Ok(())
    }
}
