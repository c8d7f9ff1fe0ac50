//! The file with the id of a data set that does not carry it itself.
//!
//! kumi writes the id into RDB files and into the bases of append-only files that are in that form. A data set that another
//! server wrote has none until it is saved, and a base of plain requests has no place for one. As long as that is so, the
//! id is in the file `kumi-data-id` beside the data:
//!
//! ```text
//! 1 0123456789abcdef0123456789abcdef\n      the version of the file, and the id
//! ```

use crate::files::config_file::replace_file;
use kumi_store::DataId;
use kumi_store::config::Settings;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const NAME: &str = "kumi-data-id";
const VERSION: &str = "1";

/// Where the file is.
pub(crate) fn path(settings: &Settings) -> PathBuf {
    Path::new(OsStr::from_bytes(&settings.dir)).join(NAME)
}

/// Reads the file, if there is one.
///
/// # Errors
/// It cannot be read, or is not what this version writes.
pub(crate) fn read(path: &Path) -> io::Result<Option<DataId>> {
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let wrong = |reason: String| io::Error::new(io::ErrorKind::InvalidData, reason);
    let text = text.trim_ascii_end();
    let Some(at) = text.iter().position(|&byte| byte == b' ') else {
        return Err(wrong("it is not the file of a data set's id".into()));
    };
    let (version, id) = (&text[..at], &text[at + 1..]);
    if version != VERSION.as_bytes() {
        let version = version.escape_ascii();
        return Err(wrong(format!(
            "it has version {version}, and this server knows version {VERSION}"
        )));
    }
    let id = DataId::parse(id).ok_or_else(|| wrong("the id is not 32 digits".into()))?;
    Ok(Some(id))
}

/// Writes the file; it is on disk when this returns.
pub(crate) fn write(path: &Path, id: DataId) -> io::Result<()> {
    replace_file(path, format!("{VERSION} {id}\n").as_bytes())
}

/// Removes the file, if there is one.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_read_as_it_is_written_and_a_later_version_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(NAME);
        assert_eq!(read(&path).unwrap(), None);
        let id = DataId::parse(b"0123456789abcdef0123456789abcdef").unwrap();
        write(&path, id).unwrap();
        assert_eq!(read(&path).unwrap(), Some(id));
        for (text, reason) in [
            ("2 0123456789abcdef0123456789abcdef\n", "version 2"),
            ("1 0123\n", "32 digits"),
            ("", "not the file"),
        ] {
            fs::write(&path, text).unwrap();
            let error = read(&path).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
        remove(&path).unwrap();
        remove(&path).unwrap();
        assert_eq!(read(&path).unwrap(), None);
    }
}
