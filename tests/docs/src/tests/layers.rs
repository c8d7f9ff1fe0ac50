//! What may import what, as ARCHITECTURE.md says.

use super::{ROOT, metadata, read};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Where the last column of the picture of crates begins.
const IMPORTS_COLUMN: usize = 79;

/// What a crate may import of ours; none if it is all.
type Imports = Option<BTreeSet<String>>;

/// The picture of crates. A line names a crate, and has in its last column what the crate imports after an arrow.
fn picture() -> BTreeMap<String, Imports> {
    let page = read("ARCHITECTURE.md");
    let lines = page.lines().filter_map(|line| {
        let name = line.strip_prefix("    ")?.split(' ').next()?;
        let column = line.get(IMPORTS_COLUMN..)?;
        let is_ours = name == "kumi" || name.starts_with("kumi-");
        (is_ours && !name.contains('/')).then(|| (name.to_owned(), imports(column)))
    });
    lines.collect()
}

/// `a core; driver -> unison, common; on any Redis` is `kumi-unison` and `kumi-common`.
fn imports(column: &str) -> Imports {
    let Some((_, after)) = column.split_once("-> ") else {
        assert_eq!(column, "imports nothing of ours");
        return Some(BTreeSet::new());
    };
    let names = after.split(';').next().unwrap_or_default();
    if names.starts_with("all") {
        return None;
    }
    let names = names.split(", ").map(|name| format!("kumi-{name}"));
    Some(names.collect())
}

#[test]
fn crates_import_what_the_picture_says() {
    let mut picture = picture();
    let metadata = metadata(&["--no-deps"]);
    let packages = metadata["packages"].as_array().expect("a list");
    for package in packages {
        let name = package["name"].as_str().expect("a name");
        let dependencies = package["dependencies"].as_array().expect("a list");
        let ours = |dependency: &&serde_json::Value| {
            let name = dependency["name"].as_str().unwrap_or_default();
            name == "kumi" || name.starts_with("kumi-")
        };
        let names = |of_tests: bool| -> BTreeSet<String> {
            let chosen = dependencies
                .iter()
                .filter(ours)
                .filter(|dependency| (dependency["kind"] == "dev") == of_tests);
            let names = chosen.filter_map(|dependency| dependency["name"].as_str());
            names.map(str::to_owned).collect()
        };
        for of_tests in [false, true] {
            let is_imported = names(of_tests).contains("kumi-bench");
            assert!(!is_imported, "{name} imports kumi-bench");
        }
        let path = package["manifest_path"].as_str().expect("a path");
        if !path.ends_with(&format!("crates/{name}/Cargo.toml")) {
            continue;
        }
        let allowed = picture.remove(name);
        let allowed = allowed.unwrap_or_else(|| panic!("ARCHITECTURE.md: no {name}"));
        if let Some(allowed) = allowed {
            assert_eq!(names(false), allowed, "{name}");
        }
    }
    assert!(picture.is_empty(), "no such crates: {picture:?}");
}

/// `core/` knows nothing above it, and `connection/` knows no units.
#[test]
fn layers_of_muf_import_only_what_is_below() {
    check_layer("crates/kumi-muf/src/core", &["core"]);
    check_layer(
        "crates/kumi-muf/src/connection",
        &["connection", "core", "error"],
    );
}

/// The files below a folder name no other modules of their crate than these.
fn check_layer(folder: &str, allowed: &[&str]) {
    let files = files(&Path::new(ROOT).join(folder));
    assert!(files.len() > 10, "{folder}: {} files", files.len());
    for file in files {
        let text = fs::read_to_string(&file).expect("a file");
        for after in text.split("crate::").skip(1) {
            let is_end = |letter: char| !letter.is_alphanumeric() && letter != '_';
            let module = after.split(is_end).next().unwrap_or_default();
            // A list in braces has no name here, so it does not pass either.
            let is_below = allowed.contains(&module);
            assert!(is_below, "{}: crate::{module}", file.display());
        }
    }
}

/// All files in a folder and in those below it.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths
        .flat_map(|path| match path.is_dir() {
            true => files(&path),
            false => vec![path],
        })
        .collect()
}
