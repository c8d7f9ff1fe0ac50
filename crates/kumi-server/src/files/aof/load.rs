//! Loads an append-only file: the base, then the increments in their order.

use super::manifest::{Manifest, Part};
use super::place::Place;
use super::scan::{Cut, ScanError, Scanner};
use super::window::Source;
use kumi_store::LoadError;
use std::io::{self, Cursor, Read};
use std::ops::Range;
use std::path::PathBuf;

/// Why an append-only file cannot be loaded.
#[derive(Debug, thiserror::Error)]
#[error("{}{}: {reason}", path.display(), at.map(|at| format!(" at byte {at}")).unwrap_or_default())]
pub(crate) struct AofError {
    pub(crate) path: PathBuf,
    /// Where in the file, if it is a place in it.
    pub(crate) at: Option<u64>,
    /// The file is an RDB file of a known version, and its content is damaged.
    pub(crate) is_damaged_rdb: bool,
    pub(crate) reason: String,
}

/// What is done with what a file holds.
pub(crate) trait Apply {
    /// Executes whole requests; an error has its place among the bytes.
    fn requests(&mut self, bytes: &[u8]) -> Result<(), (usize, String)>;
    /// Loads an RDB file; returns how many bytes of the source it took.
    fn rdb(&mut self, source: &mut (dyn Read + Send)) -> Result<u64, LoadError>;
    /// So many bytes of all files are loaded. An error ends loading.
    fn progress(&mut self, bytes: u64) -> io::Result<()>;
}

/// What loading found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct LoadedAof {
    /// The lengths of the files with data, in their order, as far as they are good.
    pub(crate) lengths: Vec<u64>,
    /// The end of the last file that is cut off.
    pub(crate) cut: Option<Cut>,
    /// The seed of the last file's checksums, 0 if it has none.
    pub(crate) seed: u64,
}

/// The length of all files together.
pub(crate) fn total_bytes(place: &Place, manifest: &Manifest) -> Result<u64, AofError> {
    let lengths = manifest.data().map(|part| {
        let (_, len) = place
            .files
            .read(&place.path(part))
            .map_err(|error| unread(place, part, &error))?;
        Ok(len)
    });
    lengths.sum()
}

fn unread(place: &Place, part: &Part, error: &io::Error) -> AofError {
    AofError {
        path: place.path(part),
        at: None,
        is_damaged_rdb: false,
        reason: format!("the manifest names this file, and it cannot be read: {error}"),
    }
}

/// Loads all files. Nothing on disk is changed.
pub(crate) fn load(
    place: &Place,
    manifest: &Manifest,
    apply: &mut dyn Apply,
) -> Result<LoadedAof, AofError> {
    let mut loaded = LoadedAof::default();
    let parts: Vec<&Part> = manifest.data().collect();
    let mut before = 0;
    for (index, part) in parts.iter().enumerate() {
        let path = place.path(part);
        let failed = |at, reason| AofError {
            path: path.clone(),
            at,
            is_damaged_rdb: false,
            reason,
        };
        let (len, cut, seed) =
            load_file(place, part, before, apply).map_err(|error| match error {
                FileError::Read(error) => unread(place, part, &error),
                FileError::At(at, reason) => failed(Some(at), reason),
                FileError::Rdb(error) => AofError {
                    is_damaged_rdb: matches!(error, LoadError::Damaged(_)),
                    ..failed(None, error.to_string())
                },
            })?;
        if let Some(cut) = cut {
            // The files behind it may be empty: they were made when the last one was still written to.
            if index + 1 < parts.len() {
                let reason = format!("{}, and this is not the last file", cut.reason);
                return Err(failed(Some(cut.at), reason));
            }
            loaded.cut = Some(cut);
        }
        loaded.lengths.push(len);
        loaded.seed = seed;
        before += len;
    }
    Ok(loaded)
}

/// One of the files.
struct PartFile<'a> {
    place: &'a Place,
    part: &'a Part,
}

impl Source for PartFile<'_> {
    fn open(&self, at: u64) -> io::Result<Box<dyn Read + Send + '_>> {
        let path = self.place.path(self.part);
        self.place.files.read_from(&path, at)
    }
}

enum FileError {
    Read(io::Error),
    At(u64, String),
    /// The error names its place.
    Rdb(LoadError),
}

/// Loads one file; returns the length of what is good, what is cut off, and the seed of its checksums.
fn load_file(
    place: &Place,
    part: &Part,
    before: u64,
    apply: &mut dyn Apply,
) -> Result<(u64, Option<Cut>, u64), FileError> {
    let (mut reader, len) = place
        .files
        .read(&place.path(part))
        .map_err(FileError::Read)?;
    let mut magic = Vec::new();
    reader
        .by_ref()
        .take(6)
        .read_to_end(&mut magic)
        .map_err(FileError::Read)?;
    // Valkey's are refused by the reader, with their version.
    let is_rdb = magic.starts_with(b"REDIS") || magic == b"VALKEY";
    let mut skip = 0;
    if is_rdb {
        let mut reader = Cursor::new(magic).chain(reader);
        skip = apply.rdb(&mut reader).map_err(FileError::Rdb)?;
        apply.progress(before + skip).map_err(FileError::Read)?;
        if skip == len {
            return Ok((len, None, 0));
        }
        // Requests follow.
    } else if part.name.ends_with(".base.rdb") {
        return Err(FileError::At(0, "not an RDB file".into()));
    }
    let file = PartFile { place, part };
    let boot = place.files.boot();
    let mut scanner = Scanner::new(&file, len, skip, boot).map_err(FileError::Read)?;
    let mut joined = Vec::new();
    loop {
        let runs = scanner.next_runs().map_err(|error| match error {
            ScanError::Read(error) => FileError::Read(error),
            ScanError::Damaged { at, reason } => {
                let reason = format!("Bad file format reading the append only file: {reason}");
                FileError::At(at, reason)
            }
        })?;
        let Some(runs) = runs else {
            break;
        };
        // The marks of groups are left out, so that the requests of many groups are planned together.
        let requests = match &runs[..] {
            [run] => scanner.run(run).0,
            _ => {
                joined.clear();
                for run in &runs {
                    joined.extend_from_slice(scanner.run(run).0);
                }
                &joined
            }
        };
        apply.requests(requests).map_err(|(at, reason)| {
            let at = position(&scanner, &runs, at);
            FileError::At(at, reason)
        })?;
        apply
            .progress(before + scanner.position())
            .map_err(FileError::Read)?;
    }
    let cut = scanner.cut().cloned();
    Ok((scanner.position(), cut, scanner.seed()))
}

/// The position in the file of a byte of some runs, counted without what is between them.
fn position(scanner: &Scanner<'_>, runs: &[Range<usize>], mut at: usize) -> u64 {
    for run in runs {
        if at < run.len() {
            return scanner.run(run).1 + at as u64;
        }
        at -= run.len();
    }
    scanner.position()
}
