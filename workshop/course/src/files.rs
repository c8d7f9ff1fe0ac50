//! Where things are, and the files of a stage: the solution rendered, and the template around it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::generate::{Stage, render, typed_lines};

/// The `workshop` folder: the one this tool was built in.
pub fn workshop() -> PathBuf {
    let course = Path::new(env!("CARGO_MANIFEST_DIR"));
    course.parent().unwrap_or(course).to_path_buf()
}

/// The learner's folder: `mini` beside this crate, or what `MINI_DIR` names.
pub fn learner() -> PathBuf {
    match std::env::var_os("MINI_DIR") {
        Some(folder) => PathBuf::from(folder),
        None => workshop().join("mini"),
    }
}

/// A file of a stage, by its path below the learner's folder.
pub type File = (String, String);

/// Every file of a stage.
pub fn all(stage: Stage) -> Result<Vec<File>, String> {
    let mut files = sources(stage)?;
    for name in TEMPLATE {
        let text = read(&workshop().join("course/template").join(name))?;
        files.push((name.to_string(), text));
    }
    Ok(files)
}

const TEMPLATE: [&str; 5] = ["Cargo.toml", "Cargo.lock", ".cargo/config.toml", "mini", "rustfmt.toml"];

/// The files below `src` and `tests`.
pub fn sources(stage: Stage) -> Result<Vec<File>, String> {
    let mut files = Vec::new();
    for (path, text) in annotated()? {
        let name = path.rsplit('/').next().unwrap_or(&path);
        files.push((path.clone(), render(name, &text, stage)?));
    }
    Ok(files)
}

/// How many lines a learner types in a step.
pub fn lines_of_step(step: u8, short: bool) -> Result<usize, String> {
    annotated()?.iter().map(|(_, text)| typed_lines(text, step, short)).sum()
}

/// The solution's sources as they are, with their markers.
pub fn annotated() -> Result<Vec<File>, String> {
    let solution = workshop().join("solution");
    let mut files = Vec::new();
    for folder in ["src", "tests"] {
        for entry in entries(&solution.join(folder))? {
            if entry.extension().is_some_and(|extension| extension == "rs") {
                let name = entry.file_name().unwrap_or_default().to_string_lossy();
                files.push((format!("{folder}/{name}"), read(&entry)?));
            }
        }
    }
    Ok(files)
}

/// The paths in a folder, sorted.
pub fn entries(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let listing = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut paths: Vec<PathBuf> = listing.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}

/// Reads a text file; the error names it.
pub fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Writes files below a folder. A file that has the text already is left as it is, so that nothing is built again.
pub fn write(folder: &Path, files: &[File]) -> Result<(), String> {
    for (name, text) in files {
        let path = folder.join(name);
        if fs::read_to_string(&path).is_ok_and(|old| old == *text) {
            continue;
        }
        let failed = |error| format!("{}: {error}", path.display());
        fs::create_dir_all(path.parent().unwrap_or(folder)).map_err(failed)?;
        fs::write(&path, text).map_err(failed)?;
        if name == "mini" {
            make_executable(&path).map_err(failed)?;
        }
    }
    Ok(())
}

#[cfg(unix)]
fn make_executable(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
}

#[cfg(not(unix))]
fn make_executable(_: &Path) -> std::io::Result<()> {
    Ok(())
}
