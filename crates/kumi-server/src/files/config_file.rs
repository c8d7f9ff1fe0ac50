//! The configuration file: reads it with the files it includes, and writes it for CONFIG REWRITE.

use kumi_store::Config;
use kumi_store::config::{CommandLine, Source, rewrite};
use kumi_store::glob_matches;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

/// The operator's configuration cannot be used. Nothing was started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadConfigError {
    /// The file is missing or unreadable.
    #[error("Fatal error, can't open config file '{path}'")]
    Unreadable {
        /// The path, as the operator wrote it.
        path: String,
        /// The system's error.
        source: io::Error,
    },
    /// A line is wrong; the message names the line and the reason.
    #[error(transparent)]
    Line(#[from] kumi_store::config::LoadError),
}

/// Loads the configuration a command line names: the file, then standard input, then the flags. A later value
/// replaces an earlier one.
///
/// # Errors
/// A file could not be read or a line is wrong.
pub(crate) fn load(command_line: &CommandLine) -> Result<Config, LoadConfigError> {
    let mut config = Config::new();
    if let Some(path) = &command_line.file {
        load_file(&mut config, Path::new(OsStr::from_bytes(path)))?;
    }
    if command_line.stdin {
        let mut text = Vec::new();
        let read = io::stdin().lock().read_to_end(&mut text);
        read.map_err(|source| LoadConfigError::Unreadable {
            path: "-".into(),
            source,
        })?;
        config.load_text(&text, &Source::Stdin, &mut read_include)?;
    }
    let source = Source::CommandLine;
    config.load_text(&command_line.options, &source, &mut read_include)?;
    Ok(config)
}

/// Loads a file in redis.conf syntax and the files it includes. Its values replace those already in `config`.
///
/// # Errors
/// A file could not be read or a line is wrong; lines before it stay loaded.
pub fn load_file(config: &mut Config, path: &Path) -> Result<(), LoadConfigError> {
    let name = path.display().to_string();
    let text = fs::read(path).map_err(|source| {
        let path = name.clone();
        LoadConfigError::Unreadable { path, source }
    })?;
    Ok(config.load_text(&text, &Source::File(name), &mut read_include)?)
}

/// Reads the files an `include` names. A glob may match no file; a plain name must exist.
fn read_include(pattern: &[u8]) -> Result<Vec<(String, Vec<u8>)>, String> {
    let path = Path::new(OsStr::from_bytes(pattern));
    let paths = if has_wildcard(pattern) {
        expand(path)
    } else {
        vec![path.to_owned()]
    };
    let read = paths.into_iter().map(|path| {
        let name = path.display().to_string();
        let text = fs::read(&path).map_err(|error| format!("can't open '{name}': {error}"))?;
        Ok((name, text))
    });
    read.collect()
}

fn has_wildcard(pattern: &[u8]) -> bool {
    pattern.iter().any(|byte| b"*?[".contains(byte))
}

/// The existing paths that match a path with wildcards, sorted.
fn expand(pattern: &Path) -> Vec<PathBuf> {
    let mut found = vec![PathBuf::new()];
    for component in pattern.components() {
        let part = component.as_os_str();
        let Component::Normal(_) = component else {
            found.iter_mut().for_each(|path| path.push(part));
            continue;
        };
        if !has_wildcard(part.as_bytes()) {
            found.iter_mut().for_each(|path| path.push(part));
            continue;
        }
        found = found
            .iter()
            .flat_map(|parent| children(parent, part))
            .collect();
    }
    found.retain(|path| path.exists());
    found
}

fn children(parent: &Path, pattern: &OsStr) -> Vec<PathBuf> {
    let listed = if parent.as_os_str().is_empty() {
        Path::new(".")
    } else {
        parent
    };
    let Ok(entries) = fs::read_dir(listed) else {
        return Vec::new();
    };
    let mut names: Vec<OsString> = entries
        .filter_map(|entry| Some(entry.ok()?.file_name()))
        .filter(|name| {
            // As in a shell, a hidden file matches only a pattern that starts with a dot.
            let hidden = name.as_bytes().starts_with(b".");
            let wanted = !hidden || pattern.as_bytes().starts_with(b".");
            wanted && glob_matches(pattern.as_bytes(), name.as_bytes(), false)
        })
        .collect();
    names.sort_by_key(|name| name.clone().into_vec());
    names.into_iter().map(|name| parent.join(name)).collect()
}

/// Replaces the configuration file atomically: a reader sees either the old text or the new.
pub(crate) fn write_back(path: &Path, config: &Config) -> io::Result<()> {
    // The target of a symbolic link is replaced, not the link.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    // A device or a pipe must not be replaced by a regular file.
    if fs::metadata(&path).is_ok_and(|found| !found.is_file()) {
        return Err(io::Error::other("it is not a regular file"));
    }
    let old = match fs::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    replace_file(&path, &rewrite(&old, config))
}

/// Replaces a file atomically; a new one is for its owner alone. The file and its name are on disk when this returns.
pub(crate) fn replace_file(path: &Path, text: &[u8]) -> io::Result<()> {
    replace_and_sync(path, text, |directory| {
        fs::File::open(directory)?.sync_all()
    })
}

fn replace_and_sync(
    path: &Path,
    text: &[u8],
    sync_directory: impl FnOnce(&Path) -> io::Result<()>,
) -> io::Result<()> {
    let parent = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let mut file = tempfile::Builder::new()
        .prefix(".kumi-config-")
        .tempfile_in(parent)?;
    file.write_all(text)?;
    if let Ok(old) = fs::metadata(path) {
        file.as_file().set_permissions(old.permissions())?;
    }
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    sync_directory(parent)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(pattern: &Path) -> Vec<String> {
        let found = read_include(pattern.as_os_str().as_bytes()).expect("globs may match nothing");
        found
            .iter()
            .map(|(_, text)| String::from_utf8_lossy(text).into_owned())
            .collect()
    }

    #[test]
    fn only_a_regular_file_is_written_over() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let config = Config::new();
        let error = write_back(dir.path(), &config).expect_err("a directory");
        assert!(error.to_string().contains("not a regular file"), "{error}");
        let path = dir.path().join("new.conf");
        write_back(&path, &config).expect("a file that was not there");
        assert!(path.is_file());
        let socket = dir.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).expect("a socket");
        assert!(write_back(&socket, &config).is_err());
        assert!(!socket.is_file(), "it is still a socket");
    }

    #[test]
    fn the_name_of_a_file_is_synced_after_it_is_replaced() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("kumi.conf");
        let replaced = replace_and_sync(&path, b"port 1\n", |directory| {
            assert_eq!(directory, dir.path());
            assert_eq!(fs::read(&path).expect("it has its name"), b"port 1\n");
            Err(io::ErrorKind::StorageFull.into())
        });
        assert_eq!(
            replaced.map_err(|error| error.kind()),
            Err(io::ErrorKind::StorageFull)
        );
        replace_file(&path, b"port 2\n").expect("a directory that can be synced");
        assert_eq!(fs::read(&path).expect("it has its name"), b"port 2\n");
    }

    #[test]
    fn an_include_with_wildcards_reads_what_matches_in_order() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        for name in ["b.conf", "a.conf", ".hidden.conf", "c.txt"] {
            fs::write(dir.path().join(name), name).expect("a small file");
        }
        fs::create_dir(dir.path().join("sub")).expect("a directory");
        fs::write(dir.path().join("sub/d.conf"), "d.conf").expect("a small file");
        assert_eq!(names(&dir.path().join("*.conf")), ["a.conf", "b.conf"]);
        assert_eq!(names(&dir.path().join("s*b/?.conf")), ["d.conf"]);
        assert!(names(&dir.path().join("none*")).is_empty());
        let missing = dir.path().join("missing.conf");
        let error = read_include(missing.as_os_str().as_bytes()).expect_err("it is not there");
        assert!(error.contains("missing.conf"), "{error}");
    }

    #[test]
    fn a_rewrite_keeps_permissions_and_follows_a_link() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let dir = tempfile::tempdir().expect("a temporary directory");
        let real = dir.path().join("real.conf");
        let link = dir.path().join("link.conf");
        fs::write(&real, "# mine\nport 7000\n").expect("a small file");
        fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).expect("my own file");
        symlink(&real, &link).expect("a link");
        write_back(&link, &Config::new()).expect("a writable directory");
        let text = fs::read_to_string(&real).expect("still there");
        assert!(text.starts_with("# mine\n"), "{text}");
        assert!(!text.contains("7000"), "{text}");
        let mode = fs::metadata(&real)
            .expect("still there")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o640);
        assert!(fs::symlink_metadata(&link).is_ok_and(|file| file.is_symlink()));
        assert_eq!(fs::read_dir(dir.path()).map(Iterator::count).ok(), Some(2));
    }
}
