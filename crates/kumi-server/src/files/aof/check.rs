//! Checks files without a server: what is wrong, and where.

use super::files::{self, Disk};
use super::load::{self, Apply};
use super::manifest::{Manifest, Part};
use super::place::{self, Place};
use super::scan::Scanner;
use crate::base::random;
use kumi_store::config::Origin;
use kumi_store::{ApplyError, Config, Host, HostFacts, LoadError, Now, Outputs, Seeds, Store};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Databases that a checked file may have: more than the 16 of a server without a `databases` directive.
const DATABASES: usize = 16_384;

/// What a check found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Checked {
    /// Whether a server would load all of it.
    pub valid: bool,
    /// What was found, in lines for a person.
    pub lines: Vec<String>,
}

/// Checks an RDB file.
///
/// # Errors
/// It cannot be read from disk.
pub fn check_rdb(path: &Path) -> io::Result<Checked> {
    let file = File::open(path)?;
    let len = file.metadata()?.len();
    let mut scratch = Scratch::new()?;
    scratch.store.begin_loading(len, true);
    let (line, valid) = match scratch.store.load_rdb(file, |_| {}) {
        Ok(loaded) if loaded.bytes < len => {
            let rest = len - loaded.bytes;
            let line = format!(
                "{} keys, and {rest} bytes behind the end of the data at byte {}",
                loaded.keys, loaded.bytes
            );
            (line, false)
        }
        Ok(loaded) => {
            let line = format!(
                "valid: {} keys, RDB version {}, {len} bytes",
                loaded.keys, loaded.version
            );
            (line, true)
        }
        Err(error) => (format!("damaged: {error}"), false),
    };
    let lines = vec![format!("{}: {line}", path.display())];
    Ok(Checked { valid, lines })
}

/// Checks an append-only file: its directory, its manifest, or a single file of it. With `fix`, what cannot be loaded at
/// the end of the last file is cut off, and kept beside it in a file whose name ends with `.cut`.
///
/// # Errors
/// A file cannot be read from disk, the manifest is not valid, or a server uses the files.
pub fn check_aof(path: &Path, fix: bool) -> io::Result<Checked> {
    let (place, manifest) = find(path)?;
    let _lock = match fix {
        true => Some(place::lock(&place.directory)?),
        false => None,
    };
    let mut scratch = Scratch::new()?;
    let total = load::total_bytes(&place, &manifest).unwrap_or(0);
    scratch.store.begin_loading(total, true);
    let mut lines = Vec::new();
    let (cut, valid) = match load::load(&place, &manifest, &mut scratch) {
        Ok(loaded) => {
            for (part, len) in manifest.data().zip(&loaded.lengths) {
                lines.push(format!("{}: {len} bytes are valid", part.name));
            }
            let cut = loaded.cut.map(|cut| (cut.at, cut.reason));
            (cut.clone(), cut.is_none())
        }
        Err(error) => {
            let is_last = manifest
                .data()
                .last()
                .is_some_and(|part| place.path(part) == error.path);
            match error.at {
                Some(at) if is_last => (Some((at, error.reason)), false),
                _ => {
                    lines.push(error.to_string());
                    (None, false)
                }
            }
        }
    };
    let mut checked = Checked { valid, lines };
    if let (Some((at, reason)), Some(part)) = (cut, manifest.data().last()) {
        let path = place.path(part);
        let len = fs::metadata(&path)?.len();
        let name = &part.name;
        checked
            .lines
            .push(format!("{name}: at byte {at} of {len}: {reason}"));
        if fix {
            let kept = files::cut_off(&Disk, &path, at)?;
            checked.lines.push(format!(
                "{name}: the {} bytes from byte {at} on are now in {}",
                len - at,
                kept.display()
            ));
            checked.valid = true;
        } else {
            checked.lines.push(format!(
                "{name}: --fix cuts the last {} bytes off",
                len - at
            ));
        }
    }
    Ok(checked)
}

/// Loads bytes as an increment; returns the length of what is good, or none if they are damaged.
#[doc(hidden)]
#[must_use]
pub fn scan_bytes(bytes: &[u8]) -> Option<u64> {
    let mut scratch = Scratch::with(Config::new(), Seeds::from_seed(1));
    scratch.store.begin_loading(bytes.len() as u64, true);
    let mut scanner = Scanner::new(&bytes, bytes.len() as u64, 0, None).ok()?;
    while let Some(runs) = scanner.next_runs().ok()? {
        for run in &runs {
            scratch.requests(scanner.run(run).0).ok()?;
        }
    }
    let good = scanner.position();
    assert!(good <= bytes.len() as u64, "no more than there is");
    let cut = scanner.cut().map(|cut| cut.at);
    assert!(
        cut.is_none_or(|at| at == good),
        "what is cut off is the rest"
    );
    Some(good)
}

/// The files that a path stands for.
fn find(path: &Path) -> io::Result<(Place, Manifest)> {
    let place = |directory: &Path, name: &str| Place {
        files: Arc::new(Disk),
        directory: directory.to_owned(),
        name: name.to_owned(),
    };
    if path.is_dir() {
        let mut names =
            fs::read_dir(path)?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let found = names.find(|name| name.ends_with(".manifest") && !name.starts_with("temp-"));
        let name = found.ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::NotFound,
                "there is no manifest in this directory",
            )
        })?;
        return find(&path.join(name));
    }
    let name = path
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    if let Some(stem) = name.strip_suffix(".manifest") {
        let place = place(directory, stem);
        let manifest = Manifest::read(&*place.files, path)?;
        let manifest = manifest.ok_or(io::ErrorKind::NotFound)?;
        return Ok((place, manifest));
    }
    File::open(path)?;
    let mut manifest = Manifest::default();
    manifest.increments.push(Part {
        name: name.to_owned(),
        seq: 1,
    });
    Ok((place(directory, name), manifest))
}

/// A store that what is checked is loaded into.
#[derive(Debug)]
struct Scratch {
    store: Store,
    outputs: Outputs,
}

impl Scratch {
    fn new() -> io::Result<Self> {
        let mut config = Config::new();
        let databases = DATABASES.to_string();
        let pair: (&[u8], &[u8]) = (b"databases", databases.as_bytes());
        // The directive's limit is higher, so that this cannot fail.
        let _ = config.set_many(&[pair], Origin::Startup);
        Ok(Self::with(config, random::seeds()?))
    }

    fn with(config: Config, seeds: Seeds) -> Self {
        Self {
            store: Store::new(config, seeds, now()),
            outputs: Outputs::new(),
        }
    }
}

impl Apply for Scratch {
    fn requests(&mut self, bytes: &[u8]) -> Result<(), (usize, String)> {
        self.store
            .replay(bytes, &mut self.outputs, &mut NoHost)
            .map_err(|error| (error.at, error.reason))
    }

    fn rdb(&mut self, source: &mut (dyn Read + Send)) -> Result<u64, LoadError> {
        let loaded = self.store.load_rdb(source, |_| {});
        loaded.map(|loaded| loaded.bytes)
    }

    fn progress(&mut self, _: u64) -> io::Result<()> {
        Ok(())
    }
}

fn now() -> Now {
    let unix = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Now {
        unix_us: unix.as_micros() as u64,
        mono_ns: unix.as_nanos() as u64,
    }
}

/// A host without anything but a clock.
#[derive(Debug)]
pub(super) struct NoHost;

impl Host for NoHost {
    fn now(&mut self) -> Now {
        now()
    }

    fn apply_config(&mut self, _: &Config, _: &[&'static str]) -> Result<(), ApplyError> {
        Ok(())
    }

    fn rewrite_config(&mut self, _: &Config) -> Result<(), String> {
        Err("there is no configuration file".into())
    }

    fn facts(&mut self) -> HostFacts {
        HostFacts::default()
    }

    fn sleep(&mut self, _: Duration) {}

    fn serve_others(&mut self, _: &mut Store, _: &mut Outputs) -> bool {
        true
    }
}
