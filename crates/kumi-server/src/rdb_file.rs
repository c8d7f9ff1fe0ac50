//! The RDB file: loaded at startup, written by SAVE.
//!
//! A file is written under a temporary name, synced, renamed, and its directory synced: at every moment the old file or the
//! new one is complete under its name.

use crate::server::ServerError;
use kumi_store::Store;
use kumi_store::config::Settings;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How often loading says in the log how far it is.
const PROGRESS: Duration = Duration::from_secs(2);

fn directory(settings: &Settings) -> &Path {
    Path::new(OsStr::from_bytes(&settings.dir))
}

fn path(settings: &Settings) -> PathBuf {
    directory(settings).join(OsStr::from_bytes(&settings.dbfilename))
}

/// Loads the data set, if there is one.
pub(crate) fn load(store: &mut Store) -> Result<(), ServerError> {
    let path = path(store.config().settings());
    let failed = |error: String| ServerError::Load {
        path: path.clone(),
        error,
    };
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error.to_string())),
    };
    let total = file.metadata().map_or(0, |facts| facts.len()).max(1);
    let (start, mut told) = (Instant::now(), Instant::now());
    let loaded = store.load_rdb(file, |offset| {
        if told.elapsed() >= PROGRESS {
            told = Instant::now();
            tracing::info!("loading {}: {}%", path.display(), offset * 100 / total);
        }
    });
    let loaded = loaded.map_err(|error| failed(error.to_string()))?;
    if !loaded.libraries.is_empty() {
        tracing::warn!(
            "functions in files are not supported yet; libraries left out: {}",
            loaded.libraries.join(", ")
        );
    }
    tracing::info!(
        "DB loaded from disk: {:.3} seconds; {} keys from {} (RDB version {}, written by {}), {} expired",
        start.elapsed().as_secs_f64(),
        loaded.keys,
        path.display(),
        loaded.version,
        if loaded.written_by.is_empty() {
            "an unknown server"
        } else {
            &loaded.written_by
        },
        loaded.expired,
    );
    Ok(())
}

/// Writes the data set.
pub(crate) fn save(
    settings: &Settings,
    write: &mut dyn FnMut(&mut dyn io::Write) -> io::Result<()>,
) -> io::Result<()> {
    let (directory, path) = (directory(settings), path(settings));
    let temporary = directory.join(format!("temp-{}.rdb", std::process::id()));
    let written = File::create(&temporary).and_then(|mut file| {
        write(&mut file)?;
        file.sync_all()?;
        fs::rename(&temporary, &path)?;
        File::open(directory)?.sync_all()
    });
    if written.is_err() {
        // It may not exist; the error that matters is the first one.
        let _ = fs::remove_file(&temporary);
    } else {
        tracing::info!("DB saved on disk");
    }
    written
}
