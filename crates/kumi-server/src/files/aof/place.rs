//! Where an append-only file is, and the lock that keeps other servers from it.

use super::files::Files;
use super::manifest::{Manifest, Part};
use kumi_store::config::Settings;
use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How the name of a base that is not complete begins and ends; the number of a process is between.
const TEMPORARY_BASE: &str = "temp-rewriteaof-bg-";
const TEMPORARY_ENDING: &str = ".aof";

/// The directory of an append-only file, and the names in it.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) files: Arc<dyn Files>,
    /// The directory with the manifest.
    pub(crate) directory: PathBuf,
    /// `appendfilename`, which all names begin with.
    pub(crate) name: String,
}

impl Place {
    pub(crate) fn of(settings: &Settings, files: Arc<dyn Files>) -> Self {
        let dir = Path::new(OsStr::from_bytes(&settings.dir));
        Self {
            files,
            directory: dir.join(OsStr::from_bytes(&settings.appenddirname)),
            name: String::from_utf8_lossy(&settings.appendfilename).into_owned(),
        }
    }

    pub(crate) fn manifest_name(&self) -> String {
        format!("{}.manifest", self.name)
    }

    pub(crate) fn path(&self, part: &Part) -> PathBuf {
        self.directory.join(&part.name)
    }

    /// The single file of a version before Redis 7, beside the directory.
    pub(crate) fn old_file(&self) -> PathBuf {
        let parent = self.directory.parent().unwrap_or(Path::new("."));
        parent.join(&self.name)
    }

    pub(crate) fn base(&self, seq: u64, rdb: bool) -> Part {
        let ending = if rdb { "rdb" } else { "aof" };
        Part {
            name: format!("{}.{seq}.base.{ending}", self.name),
            seq,
        }
    }

    pub(crate) fn increment(&self, seq: u64) -> Part {
        Part {
            name: format!("{}.{seq}.incr.aof", self.name),
            seq,
        }
    }

    /// Reads the manifest, none if there is none.
    ///
    /// # Errors
    /// It cannot be read, its text is wrong (`InvalidData`), or it is missing beside files that it should name (`NotFound`).
    pub(crate) fn manifest(&self) -> io::Result<Option<Manifest>> {
        let path = self.directory.join(self.manifest_name());
        let named =
            |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        let manifest = Manifest::read(&*self.files, &path).map_err(named)?;
        if manifest.is_none() {
            self.check_without_manifest()?;
        }
        Ok(manifest)
    }

    /// Without a manifest there may be no bases and increments, except those of a server that was killed before it had
    /// written its first manifest: nothing was acknowledged by them.
    fn check_without_manifest(&self) -> io::Result<()> {
        let mut found = match self.files.names(&self.directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            names => names?,
        };
        found.retain(|name| self.is_part(name));
        if found.is_empty() {
            return Ok(());
        }
        let name = self.manifest_name();
        let unfinished = self.unfinished();
        let known = |found: &String| unfinished.iter().any(|part| part.name == *found);
        if found.iter().all(known) {
            return Ok(());
        }
        found.sort();
        Err(io::Error::new(
            io::ErrorKind::NotFound,
            format!(
                "the manifest {name} is missing, and there are files that it should name: {}. Restore the manifest, or move these files to another directory to start without their data",
                found.join(", ")
            ),
        ))
    }

    /// The files of a first manifest that was prepared and did not get its name.
    fn unfinished(&self) -> Vec<Part> {
        let name = self.manifest_name();
        let unfinished = Manifest::read_unfinished(&*self.files, &self.directory, &name);
        let Some(manifest) = unfinished else {
            return Vec::new();
        };
        manifest
            .history
            .iter()
            .chain(manifest.data())
            .cloned()
            .collect()
    }

    /// Removes these files: the manifest that names them is written over next.
    fn remove_unfinished(&self) -> io::Result<()> {
        let mut found = self.unfinished();
        found.retain(|part| self.files.exists(&self.path(part)));
        for part in &found {
            self.files.remove(&self.path(part))?;
        }
        match found.is_empty() {
            true => Ok(()),
            false => self.files.sync_directory(&self.directory),
        }
    }

    /// Whether this is the name of a base or of an increment.
    fn is_part(&self, name: &str) -> bool {
        let rest = name.strip_prefix(&self.name);
        let Some((seq, ending)) = rest
            .and_then(|rest| rest.strip_prefix('.'))
            .and_then(|rest| rest.split_once('.'))
        else {
            return false;
        };
        seq.parse::<u64>().is_ok() && ["base.rdb", "base.aof", "incr.aof"].contains(&ending)
    }

    /// As [`Place::manifest`]; a single file of a version before Redis 7 becomes the base.
    pub(crate) fn read(&self) -> io::Result<Option<Manifest>> {
        let manifest = self.manifest()?;
        let taken_over = Part {
            name: self.name.clone(),
            seq: 1,
        };
        let manifest = match manifest {
            None if self.files.exists(&self.old_file()) => {
                self.make_directory()?;
                let manifest = Manifest {
                    base: Some(taken_over.clone()),
                    ..Manifest::default()
                };
                self.prepare(&manifest, true)?;
                self.commit_first(&manifest)?;
                manifest
            }
            None => return Ok(None),
            Some(manifest) => manifest,
        };
        let is_old = manifest.base.as_ref() == Some(&taken_over) && manifest.increments.is_empty();
        if is_old
            && !self.files.exists(&self.path(&taken_over))
            && self.files.exists(&self.old_file())
        {
            self.files
                .rename(&self.old_file(), &self.path(&taken_over))?;
            self.files.sync_directory(&self.directory)?;
            if let Some(parent) = self.directory.parent() {
                self.files
                    .sync_directory(if parent.as_os_str().is_empty() {
                        Path::new(".")
                    } else {
                        parent
                    })?;
            }
            tracing::info!(
                "the append-only file {} is now the base in {}",
                self.name,
                self.directory.display()
            );
        }
        Ok(Some(manifest))
    }

    /// Removes bases that a server had not finished when it was killed, and an increment without a base. The directory must be locked.
    pub(crate) fn remove_stale(&self) {
        let Ok(files) = fs::read_dir(&self.directory) else {
            return;
        };
        for file in files.flatten() {
            let name = file.file_name();
            let stale = name.to_str().is_some_and(|name| {
                name.starts_with(TEMPORARY_BASE) && name.ends_with(TEMPORARY_ENDING)
                    || name == self.temporary_increment_name()
            });
            if stale && fs::remove_file(file.path()).is_ok() {
                tracing::info!("removed the stale file {}", file.path().display());
            }
        }
    }

    /// The name of a base while it is written.
    pub(crate) fn temporary_base(&self) -> PathBuf {
        let pid = std::process::id();
        let name = format!("{TEMPORARY_BASE}{pid}{TEMPORARY_ENDING}");
        self.directory.join(name)
    }

    /// The name of an increment whose base is not complete, as in Redis.
    pub(crate) fn temporary_increment(&self) -> PathBuf {
        self.directory.join(self.temporary_increment_name())
    }

    fn temporary_increment_name(&self) -> String {
        format!("temp-{}.incr", self.name)
    }

    /// Checks that files can be made in the directory.
    pub(crate) fn probe(&self) -> io::Result<()> {
        let path = self.temporary_base();
        self.files.create(&path)?;
        self.files.remove(&path)
    }

    /// Replaces the manifest.
    pub(crate) fn write(&self, manifest: &Manifest) -> io::Result<()> {
        self.prepare(manifest, false)?;
        self.commit()
    }

    /// Writes the next manifest under a temporary name. `first` says that there is none before it; then the temporary
    /// name is on disk when this returns.
    pub(crate) fn prepare(&self, manifest: &Manifest, first: bool) -> io::Result<()> {
        if first {
            self.remove_unfinished()?;
        }
        let name = self.manifest_name();
        manifest.prepare(&*self.files, &self.directory, &name, first)?;
        if first {
            self.files.sync_directory(&self.directory)?;
        }
        Ok(())
    }

    /// Gives a first manifest its name. The note that it is the first one is of use only before that, so that it is written
    /// once more without the note.
    pub(crate) fn commit_first(&self, manifest: &Manifest) -> io::Result<()> {
        self.commit()?;
        if let Err(error) = self.write(manifest) {
            // Both name the same files.
            tracing::warn!("the manifest cannot be written again: {error}");
        }
        Ok(())
    }

    /// Gives the prepared manifest its name, see [`Manifest::commit`].
    pub(crate) fn commit(&self) -> io::Result<()> {
        Manifest::commit(&*self.files, &self.directory, &self.manifest_name())
    }

    /// Gives the prepared manifest its name, which is on disk only when the directory has been synced.
    ///
    /// # Errors
    /// The manifest is the old one.
    pub(crate) fn name_manifest(&self) -> io::Result<()> {
        Manifest::name(&*self.files, &self.directory, &self.manifest_name())
    }

    /// Removes files that are no longer used, and their lines in the manifest. A file that stays is tried again at the
    /// next time.
    pub(super) fn remove_history(&self, manifest: &mut Manifest) {
        if manifest.history.is_empty() {
            return;
        }
        let mut shorter = manifest.clone();
        shorter.history.retain(|part| {
            tracing::info!("Removing the history file {} in the background", part.name);
            match self.files.remove(&self.path(part)) {
                Ok(()) => false,
                Err(error) if error.kind() == io::ErrorKind::NotFound => false,
                Err(error) => {
                    tracing::warn!("{} cannot be removed: {error}", part.name);
                    true
                }
            }
        });
        if shorter.history.len() == manifest.history.len() {
            return;
        }
        match self.write(&shorter) {
            Ok(()) => *manifest = shorter,
            Err(error) => tracing::warn!("the manifest cannot be written: {error}"),
        }
    }

    /// Makes the directory if there is none; its name is on disk when this returns.
    pub(crate) fn make_directory(&self) -> io::Result<()> {
        if self.files.exists(&self.directory) {
            return Ok(());
        }
        self.files.make_directory(&self.directory)?;
        match self.directory.parent() {
            Some(parent) if parent.as_os_str().is_empty() => {
                self.files.sync_directory(Path::new("."))
            }
            Some(parent) => self.files.sync_directory(parent),
            None => Ok(()),
        }
    }
}

/// Locks a directory against other servers, as long as the result lives.
pub(crate) fn lock(directory: &Path) -> io::Result<File> {
    let file = File::open(directory)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(io::Error::new(
            io::ErrorKind::WouldBlock,
            "another server uses this append-only file",
        )),
        Err(TryLockError::Error(error)) => Err(error),
    }
}
