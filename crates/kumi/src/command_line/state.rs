//! Where `kumi up` keeps its data and finds its configuration, and the id of what is kept there.

use crate::command_line::exit::Failure;
use anyhow::Context;
use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The file with the id, beside the data.
const ID_FILE: &str = "store-id";
/// Bytes of an id, shown as twice as many hexadecimal digits.
const ID_BYTES: usize = 8;

/// The directory of an instance: `$XDG_STATE_HOME/kumi/<instance>`, with `~/.local/state` if the variable is not set, as the
/// XDG Base Directory Specification says. `otherwise` names options that do without it.
pub(crate) fn instance_directory(instance: &str, otherwise: &str) -> Result<PathBuf, Failure> {
    let state = base_directory("XDG_STATE_HOME", ".local/state").ok_or_else(|| {
        Failure::usage(format!(
            "there is no place for the node's files: set HOME or XDG_STATE_HOME, or give {otherwise}"
        ))
    })?;
    Ok(state.join("kumi").join(instance))
}

/// The directory of the user's configuration: `$XDG_CONFIG_HOME/kumi`, or `~/.config/kumi`.
pub(crate) fn config_directory() -> Option<PathBuf> {
    Some(base_directory("XDG_CONFIG_HOME", ".config")?.join("kumi"))
}

/// The directory that a variable names, or else one below the user's own; none without HOME.
fn base_directory(variable: &str, below_home: &str) -> Option<PathBuf> {
    // A relative path in the variable is to be ignored, says the specification.
    let absolute = |name: &str| {
        let path = std::env::var_os(name).map(PathBuf::from);
        path.filter(|path| path.is_absolute())
    };
    absolute(variable).or_else(|| Some(absolute("HOME")?.join(below_home)))
}

/// Makes the directory, for this user alone, if it does not exist.
pub(crate) fn make(directory: &Path) -> Result<(), Failure> {
    let made = DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory);
    made.with_context(|| format!("the directory {} cannot be made", directory.display()))
        .map_err(Failure::other)
}

/// The id of the store in a directory; a new one if it has none.
pub(crate) fn id(directory: &Path) -> Result<String, Failure> {
    read_or_make_id(directory)
        .with_context(|| format!("the id of the store in {}", directory.display()))
        .map_err(Failure::other)
}

fn read_or_make_id(directory: &Path) -> io::Result<String> {
    let path = directory.join(ID_FILE);
    match fs::read_to_string(&path) {
        Ok(text) => {
            let id = text.trim_ascii();
            let is_id = id.len() == 2 * ID_BYTES && id.bytes().all(|byte| byte.is_ascii_hexdigit());
            if is_id {
                return Ok(id.to_owned());
            }
            let reason = format!("{} does not hold an id", path.display());
            Err(io::Error::new(ErrorKind::InvalidData, reason))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let mut bytes = [0; ID_BYTES];
            File::open("/dev/urandom")?.read_exact(&mut bytes)?;
            let id: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            let temporary = directory.join(format!("temp-{}-{ID_FILE}", std::process::id()));
            let mut file = File::create(&temporary)?;
            file.write_all(format!("{id}\n").as_bytes())?;
            file.sync_all()?;
            fs::rename(&temporary, &path)?;
            Ok(id)
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_made_once_and_kept() {
        let directory = tempfile::tempdir().unwrap();
        let store = directory.path().join("a/b/store");
        make(&store).unwrap();
        let first = id(&store).unwrap();
        assert_eq!(first.len(), 16);
        assert_eq!(id(&store).unwrap(), first);
        fs::write(store.join(ID_FILE), "nonsense").unwrap();
        assert!(id(&store).is_err());
    }
}
