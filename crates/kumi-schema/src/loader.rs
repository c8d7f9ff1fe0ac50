//! Where schema files come from.
//!
//! A [`Loader`] turns names into text, so that an editor can hand in what is on its screen and a test what it made up.
//! Loaders bound what they read; whether imports form a circle is the reader's concern.

use crate::limits::MAX_FILE_BYTES;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Component, Path, PathBuf};

/// Why a file could not be had. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct LoadError {
    reason: String,
}

impl LoadError {
    /// A reason as a person reads it, such as `no such file`.
    pub fn new(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
        }
    }
}

/// Gives texts for names.
pub trait Loader {
    /// The text of a file. Texts above [`MAX_FILE_BYTES`] are refused by the caller, so it need not return them whole.
    fn load(&self, name: &str) -> Result<String, LoadError>;

    /// The name under which `import` in the file `from` is loaded: a path relative to that file, unless a loader
    /// knows better.
    fn resolve(&self, from: &str, import: &str) -> Result<String, LoadError> {
        let relative = Path::new(import);
        if relative.is_absolute() || import.contains('\\') {
            return Err(LoadError::new(
                "imports are relative paths with '/', such as \"common.kdl\"",
            ));
        }
        let folder = Path::new(from).parent().unwrap_or(Path::new(""));
        Ok(normal(&folder.join(relative)))
    }

    /// Names of files that lie beside one, as far as the loader knows and without their folder. Asked when a file is
    /// missing, to suggest another.
    fn beside(&self, name: &str) -> Vec<String> {
        let _ = name;
        Vec::new()
    }
}

/// Takes out `.` and, where something stands before it, `..`, so that one file has one name.
pub(crate) fn normal(path: &Path) -> String {
    let mut out = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir
                if matches!(out.components().next_back(), Some(Component::Normal(_))) =>
            {
                out.pop();
            }
            other => out.push(other),
        }
    }
    out.to_string_lossy().into_owned()
}

/// How many entries of a folder are looked at for a suggestion.
const MAX_LISTED: usize = 4096;

/// Reads files of the file system; names are paths.
#[derive(Clone, Copy, Debug, Default)]
pub struct FileLoader;

impl Loader for FileLoader {
    fn load(&self, name: &str) -> Result<String, LoadError> {
        let failed = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::NotFound => LoadError::new("there is no such file"),
            _ => LoadError::new(error.to_string()),
        };
        let file = std::fs::File::open(name).map_err(failed)?;
        let mut bytes = Vec::new();
        // One byte more than allowed is enough to see that it is too large.
        file.take(MAX_FILE_BYTES as u64 + 1)
            .read_to_end(&mut bytes)
            .map_err(failed)?;
        if bytes.len() > MAX_FILE_BYTES {
            return Err(too_large());
        }
        String::from_utf8(bytes).map_err(|_| LoadError::new("it is not UTF-8 text"))
    }

    fn beside(&self, name: &str) -> Vec<String> {
        let folder = match Path::new(name).parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let Ok(entries) = std::fs::read_dir(folder) else {
            return Vec::new();
        };
        let mut names: Vec<String> = entries
            .take(MAX_LISTED)
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|name| name.ends_with(".kdl"))
            .collect();
        // The order of a folder is not defined, and an error should read the same twice.
        names.sort();
        names
    }
}

pub(crate) fn too_large() -> LoadError {
    LoadError::new(format!("it is larger than {} KiB", MAX_FILE_BYTES / 1024))
}

/// Gives texts it was handed before, by name.
#[derive(Clone, Debug, Default)]
pub struct MemoryLoader {
    files: BTreeMap<String, String>,
}

impl MemoryLoader {
    /// A loader that knows no file yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file, or replaces it.
    pub fn with(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.files.insert(name.into(), text.into());
        self
    }
}

impl Loader for MemoryLoader {
    fn load(&self, name: &str) -> Result<String, LoadError> {
        let text = self.files.get(name).cloned();
        text.ok_or_else(|| LoadError::new("there is no such file"))
    }

    fn beside(&self, name: &str) -> Vec<String> {
        let folder = Path::new(name).parent();
        let others = self.files.keys().map(Path::new);
        others
            .filter(|other| other.parent() == folder)
            .filter_map(|other| Some(other.file_name()?.to_str()?.to_owned()))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_are_found_beside_the_file_that_names_them() {
        let check = |from: &str, import: &str, expected: &str| {
            assert_eq!(MemoryLoader::new().resolve(from, import).unwrap(), expected);
        };
        check("chat.kdl", "common.kdl", "common.kdl");
        check("a/chat.kdl", "./common.kdl", "a/common.kdl");
        check("a/b/chat.kdl", "../c/../common.kdl", "a/common.kdl");
        check("chat.kdl", "../common.kdl", "../common.kdl");
        check("/abs/chat.kdl", "x/y.kdl", "/abs/x/y.kdl");
        assert!(MemoryLoader::new().resolve("a", "/etc/passwd").is_err());
    }

    #[test]
    fn an_endless_file_is_refused() {
        let error = FileLoader.load("/dev/zero").unwrap_err();
        assert_eq!(error.to_string(), "it is larger than 1024 KiB");
        let error = FileLoader.load("/no/such/file").unwrap_err();
        assert_eq!(error.to_string(), "there is no such file");
    }
}
