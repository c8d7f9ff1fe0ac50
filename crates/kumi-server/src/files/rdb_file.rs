//! The RDB file: where it is, how SAVE and snapshots write it. The front loads it.
//!
//! A file is written under a temporary name, synced, renamed, and its directory synced: at every moment the old file or the
//! new one is complete under its name.

use crate::base::random;
use crate::base::shutdown::Shutdown;
use crate::files::snapshot::{KeyDelay, Plan};
use kumi_store::WriteKeys;
use kumi_store::config::Settings;
use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64};

fn directory(settings: &Settings) -> &Path {
    Path::new(OsStr::from_bytes(&settings.dir))
}

/// Where the file is.
pub(crate) fn path(settings: &Settings) -> PathBuf {
    directory(settings).join(OsStr::from_bytes(&settings.dbfilename))
}

/// Locks the directory as long as the result lives, and warns if another server has done so: both would save to the
/// same file. Redis allows that, so it is no error.
pub(crate) fn mark_directory(settings: &Settings) -> Option<File> {
    let directory = File::open(directory(settings)).ok()?;
    match directory.try_lock() {
        Ok(()) => Some(directory),
        Err(TryLockError::WouldBlock) => {
            tracing::warn!(
                "another server keeps its RDB file in this directory; with the same dbfilename ({}) each overwrites the other's",
                settings.dbfilename.escape_ascii()
            );
            None
        }
        // Not every file system has locks.
        Err(TryLockError::Error(_)) => None,
    }
}

/// Opens the file to read it again.
pub(crate) fn open(settings: &Settings) -> io::Result<File> {
    File::open(path(settings))
}

/// Writes the data set, with nothing else done meanwhile. A signal that ends the process at once removes the unfinished
/// file.
pub(crate) fn save(
    settings: &Settings,
    shutdown: &Shutdown,
    write: &mut WriteKeys<'_>,
) -> io::Result<()> {
    let (temporary, mut file) = shutdown.create_unfinished(|| create_temporary(settings))?;
    let mut delay = KeyDelay::fixed(settings.key_save_delay_us);
    // Nothing cancels it.
    let mut each_key = || delay.wait(|| false);
    let written = write(&mut file, &mut each_key).and_then(|()| {
        file.sync_all()?;
        put_in_place(&temporary, &path(settings))
    });
    shutdown.finish_file();
    if written.is_err() {
        // It may not exist; the error that matters is the first one.
        let _ = fs::remove_file(&temporary);
    } else {
        tracing::info!("DB saved on disk");
    }
    written
}

/// How a snapshot becomes the RDB file. `key_delay_us` may change while it is written.
pub(crate) fn plan(settings: &Settings, key_delay_us: Arc<AtomicI64>) -> Plan {
    let path = path(settings);
    Plan {
        temporary: temporary(settings),
        incremental_fsync: settings.rdb_save_incremental_fsync,
        key_delay_us,
        may_commit: Arc::new(AtomicBool::new(true)),
        commit: Box::new({
            let path = path.clone();
            move |temporary| fs::rename(temporary, path)
        }),
        afterwards: Box::new(move || {
            sync_directory_of(&path)?;
            tracing::info!("DB saved on disk");
            Ok(())
        }),
    }
}

/// Gives a synced file its name, for good.
pub(crate) fn put_in_place(temporary: &Path, path: &Path) -> io::Result<()> {
    fs::rename(temporary, path)?;
    sync_directory_of(path)
}

/// Waits until the names in a file's directory are on disk.
fn sync_directory_of(path: &Path) -> io::Result<()> {
    let directory = path.parent().filter(|path| !path.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
}

/// Creates the file of a save that nothing else is done beside, under the name that Redis gives it, `temp-<pid>.rdb`. A server
/// in another container that shares the directory may have that name already.
fn create_temporary(settings: &Settings) -> io::Result<(PathBuf, File)> {
    let usual = directory(settings).join(format!("temp-{}.rdb", std::process::id()));
    match File::create_new(&usual) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let other = temporary(settings);
            File::create(&other).map(|file| (other, file))
        }
        created => created.map(|file| (usual, file)),
    }
}

/// A name that no other file of this or another server has: `temp-<pid>-<number>.rdb`. The number is random, because servers
/// in containers may share a directory and have the same process id.
fn temporary(settings: &Settings) -> PathBuf {
    // A system that has started always has randomness; the process id tells servers apart without it.
    let (pid, number) = (std::process::id(), random::number().unwrap_or_default());
    directory(settings).join(format!("temp-{pid}-{number}.rdb"))
}

/// Removes temporary files of servers that have ended without a chance to do so. `alone` says that no other server uses the
/// directory: only then a file with the id of this process is of an earlier life in a container, and not of a server in
/// another one.
pub(crate) fn remove_stale(settings: &Settings, alone: bool) {
    let Ok(files) = fs::read_dir(directory(settings)) else {
        return;
    };
    for file in files.flatten() {
        let name = file.file_name();
        if name.to_str().is_some_and(|name| is_stale(name, alone))
            && fs::remove_file(file.path()).is_ok()
        {
            tracing::info!("removed the stale file {}", file.path().display());
        }
    }
}

/// Whether this is the name of a temporary file whose server has ended. At startup this process has written none.
fn is_stale(name: &str, alone: bool) -> bool {
    let stem = name
        .strip_prefix("temp-")
        .and_then(|rest| rest.strip_suffix(".rdb"));
    let Some(stem) = stem else {
        return false;
    };
    let (pid, number) = stem.split_once('-').unwrap_or((stem, "0"));
    let (Ok(pid), Ok(_)) = (pid.parse::<i32>(), number.parse::<u64>()) else {
        return false;
    };
    let ours = u32::try_from(pid) == Ok(std::process::id());
    let alive = rustix::process::Pid::from_raw(pid)
        .is_some_and(|pid| rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH));
    if ours { alone } else { !alive }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_temporary_files_of_servers_that_ended_are_stale() {
        let own = std::process::id();
        let ours = format!("temp-{own}-7.rdb");
        assert!(is_stale(&ours, true), "an earlier life in this container");
        assert!(!is_stale(&ours, false), "a server in another container");
        for alone in [true, false] {
            assert!(is_stale("temp-2147483646.rdb", alone));
            assert!(is_stale("temp-2147483646-3.rdb", alone));
        }
        for name in [
            "dump.rdb",
            "temp-1-0.rdb",
            "temp-.rdb",
            "temp-x-1.rdb",
            "temp-5.aof",
        ] {
            assert!(!is_stale(name, true), "{name}");
        }
    }
}
