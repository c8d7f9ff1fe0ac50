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

/// The files below a folder name no other modules of their crate than these. With `super::` they stay in the folder.
fn check_layer(folder: &str, allowed: &[&str]) {
    let root = Path::new(ROOT).join(folder);
    let files = files(&root);
    assert!(files.len() > 10, "{folder}: {} files", files.len());
    for file in files {
        let text = fs::read_to_string(&file).expect("a file");
        let path = file.strip_prefix(&root).expect("a file of the folder");
        let above = line_above(&text, depth(path));
        assert_eq!(above, None, "{}", file.display());
        for after in text.split("crate::").skip(1) {
            let is_end = |letter: char| !letter.is_alphanumeric() && letter != '_';
            let module = after.split(is_end).next().unwrap_or_default();
            // A list in braces has no name here, so it does not pass either.
            let is_below = allowed.contains(&module);
            assert!(is_below, "{}: crate::{module}", file.display());
        }
    }
}

/// How many modules above that of a file are the folder's or below it. The path is that from the folder.
fn depth(path: &Path) -> usize {
    let is_folder = path.ends_with("mod.rs");
    path.components().count() - usize::from(is_folder)
}

/// The first line with a chain of `super::` that leads further up than `depth` modules above the file's. It knows modules
/// within a file by their indentation, which rustfmt makes.
fn line_above(text: &str, depth: usize) -> Option<&str> {
    let mut modules = Vec::new();
    text.lines().find(|line| {
        let code = line.trim_start();
        let indent = line.len() - code.len();
        let is_module = code.starts_with("mod ") || code.contains(" mod ");
        if is_module && code.ends_with('{') && !code.starts_with("//") {
            modules.push(indent);
        } else if code == "}" && modules.last() == Some(&indent) {
            modules.pop();
        }
        let limit = depth + modules.len();
        line.contains(&"super::".repeat(limit + 1))
    })
}

#[test]
fn a_chain_of_supers_that_leaves_the_folder_is_found() {
    let check = |path: &str, text: &str, expected: Option<&str>| {
        let above = line_above(text, depth(Path::new(path)));
        assert_eq!(above.map(str::trim), expected, "{path}: {text}");
    };
    let (one, two) = ("use super::a;", "use super::super::a;");
    check("mod.rs", one, Some(one));
    check("key.rs", one, None);
    check("key.rs", two, Some(two));
    check("watch/mod.rs", one, None);
    check("watch/mod.rs", two, Some(two));
    check("watch/tests.rs", two, None);
    let within = "mod tests {\n    use super::super::a;\n}\n";
    check("mod.rs", within, Some(two));
    check("key.rs", within, None);
    let after = format!("{within}{two}\n");
    check("key.rs", &after, Some(two));
}

/// All files in a folder and in those below it.
pub(super) fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths
        .flat_map(|path| match path.is_dir() {
            true => files(&path),
            false => vec![path],
        })
        .collect()
}
