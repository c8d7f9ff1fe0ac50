//! What holds for all pages.

use crate::blocks::{pages, rust_blocks};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Pages besides README.md and docs/ whose links are checked.
const MORE_PAGES: [&str; 9] = [
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "examples/chat/README.md",
    "examples/node/README.md",
    "README.ja.md",
    "SECURITY.md",
    "packaging/README.md",
    "workshop/README.md",
];

fn all() -> BTreeMap<String, String> {
    let pages = pages(Path::new(ROOT)).expect("the repository");
    let with_text = |page: String| {
        let text = read(&page);
        (page, text)
    };
    pages.into_iter().map(with_text).collect()
}

/// A file of the repository.
fn read(path: &str) -> String {
    fs::read_to_string(Path::new(ROOT).join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn blocks_are_found_with_what_is_hidden_before_them() {
    let page = "text\n\n<!-- rust\nlet a = 1;\n-->\n```rust,no_run\nassert!(a > 0);\n```\n\n```text\n```\n```rust\nfn main() {}\n```\n";
    let blocks = rust_blocks(page);
    assert_eq!(blocks.len(), 2);
    assert_eq!(blocks[0].line, 6);
    let test = blocks[0].as_doc_test();
    assert!(test.starts_with("```rust,no_run\n#[tokio::main]"), "{test}");
    assert!(test.contains("let a = 1;\nassert!(a > 0);\n"), "{test}");
    assert_eq!(blocks[1].as_doc_test(), "```rust\nfn main() {}\n```\n");
}

#[test]
fn pages_for_programmers_have_rust_blocks() {
    let pages = all();
    for page in [
        "muf",
        "jobs",
        "unison",
        "schema",
        "cluster",
        "embedding",
        "node",
    ] {
        let text = &pages[&format!("docs/{page}.md")];
        assert!(!rust_blocks(text).is_empty(), "docs/{page}.md");
    }
}

/// Only fenced blocks are compiled.
#[test]
fn no_rust_is_indented_instead_of_fenced() {
    let beginnings = [
        "let ",
        "use ",
        "impl ",
        "async fn ",
        "pub fn ",
        "#[derive",
        "fn ",
    ];
    for (page, text) in all() {
        let mut fenced = false;
        for (index, line) in text.lines().enumerate() {
            fenced ^= line.starts_with("```");
            let code = line.strip_prefix("    ").filter(|_| !fenced);
            let is_rust = code.is_some_and(|code| {
                beginnings
                    .iter()
                    .any(|beginning| code.starts_with(beginning))
            });
            assert!(!is_rust, "{page}:{}: {line}", index + 1);
        }
    }
}

/// Why the line does not open a block that is found, and compiled if it is Rust.
fn fault_of_fence(line: &str) -> Option<&'static str> {
    let info = line.trim_start().strip_prefix("```");
    let Some(info) = info.filter(|_| !line.starts_with(char::is_whitespace)) else {
        return Some("a block begins with ``` at the beginning of the line");
    };
    let word = info.split([',', ' ']).next().unwrap_or_default();
    let is_rust = ["rust", "rs"].contains(&&*word.to_lowercase());
    match is_rust && !["rust", "rust,no_run", "rust,should_panic"].contains(&info) {
        true => Some("a Rust block is ```rust, ```rust,no_run or ```rust,should_panic"),
        false => None,
    }
}

#[test]
fn every_block_is_found_and_every_rust_block_compiled() {
    for line in ["```rust", "```rust,no_run", "```", "```toml", "```text"] {
        assert_eq!(fault_of_fence(line), None, "{line}");
    }
    for line in [
        "```rust,ignore",
        "```rust ignore",
        "```Rust",
        "```rs",
        "  ```rust",
        "~~~rust",
    ] {
        assert!(fault_of_fence(line).is_some(), "{line}");
    }
    for (page, text) in all() {
        let mut lines = text.lines().enumerate();
        while let Some((index, line)) = lines.next() {
            if ["```", "~~~"]
                .iter()
                .any(|fence| line.trim_start().starts_with(fence))
            {
                assert_eq!(fault_of_fence(line), None, "{page}:{}: {line}", index + 1);
                let end = lines.find(|(_, line)| *line == "```");
                assert!(end.is_some(), "{page}:{}: the block has no end", index + 1);
            }
        }
    }
}

/// The lines of all fenced blocks, with the lines that open them.
fn fenced_lines(text: &str) -> Vec<&str> {
    let mut fenced = false;
    let mut lines = Vec::new();
    for line in text.lines() {
        let is_fence = line.starts_with("```");
        fenced ^= is_fence;
        if fenced || is_fence {
            lines.push(line);
        }
    }
    lines
}

#[test]
fn the_japanese_readme_has_the_commands_of_the_english_one() {
    let (english, japanese) = (read("README.md"), read("README.ja.md"));
    assert!(!fenced_lines(&english).is_empty());
    assert_eq!(fenced_lines(&english), fenced_lines(&japanese));
    let headings = |text: &str| text.lines().filter(|line| line.starts_with("## ")).count();
    assert_eq!(headings(&english), headings(&japanese));
}

#[test]
fn the_readme_is_at_most_90_lines() {
    for page in ["README.md", "README.ja.md"] {
        assert!(read(page).lines().count() <= 90, "{page}");
    }
}

/// `[text](page.md#heading)`: the page and the heading exist.
#[test]
fn links_between_pages_lead_somewhere() {
    let mut pages = all();
    pages.extend(MORE_PAGES.map(|page| (page.to_owned(), read(page))));
    for (page, text) in &pages {
        for link in text.split("](").skip(1) {
            let link = link.split(')').next().unwrap_or_default();
            if link.contains("://") {
                continue;
            }
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let directory = Path::new(page).parent().expect("a page is in a directory");
            let target = match file {
                "" => Path::new(ROOT).join(page),
                file => Path::new(ROOT).join(directory).join(file),
            };
            assert!(target.exists(), "{page}: {link}");
            if !heading.is_empty() {
                let text = fs::read_to_string(&target).expect("a page");
                let found = text.lines().any(|line| slug(line) == heading);
                assert!(found, "{page}: {link}");
            }
        }
    }
}

/// The anchor of a heading, as most renderers make it.
fn slug(line: &str) -> String {
    let heading = line.trim_start_matches('#').trim().to_lowercase();
    let kept = heading
        .chars()
        .filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
    kept.map(|letter| if letter == ' ' { '-' } else { letter })
        .collect()
}

/// The names after the colons of `missing_packages` in ci/packages.sh, and the one that it looks for in another way.
#[test]
fn contributors_are_told_which_packages_the_tests_install() {
    let script = read("ci/packages.sh");
    let (_, pairs) = script.split_once("for pair in ").expect("the pairs");
    let (pairs, _) = pairs.split_once("; do").expect("their end");
    let packages = pairs
        .split_whitespace()
        .filter_map(|pair| pair.split_once(':'));
    let mut packages: Vec<&str> = packages.map(|(_, package)| package).collect();
    assert!(packages.len() >= 8, "{packages:?}");
    packages.push("python3-venv");
    let told = read("CONTRIBUTING.md");
    let words: Vec<&str> = told.split([' ', '\n', ',', '(', ')']).collect();
    for package in packages {
        assert!(words.contains(&package), "CONTRIBUTING.md: no {package}");
    }
}

/// Cargo does not build a package whose `rust-version` is later than the compiler: the version that we name would be
/// refused.
#[test]
fn no_dependency_needs_a_later_rust_than_the_workspace() {
    let metadata = metadata(&["--filter-platform", "x86_64-unknown-linux-gnu"]);
    let packages = metadata["packages"].as_array().expect("a list");
    let ours = packages.iter().find(|package| package["name"] == "kumi");
    let ours = version(&ours.expect("the binary")["rust_version"]).expect("a version");
    let is_later = |package: &&Value| version(&package["rust_version"]) > Some(ours);
    let later = packages.iter().filter(is_later);
    let later: Vec<String> = later
        .map(|package| {
            format!(
                "{} {}: {}",
                package["name"], package["version"], package["rust_version"]
            )
        })
        .collect();
    assert!(later.is_empty(), "later than {ours:?}: {later:?}");
    let named = format!("Rust {}.{} or later", ours.0, ours.1);
    assert!(read("README.md").contains(&named), "README.md: no {named}");
}

/// What cargo knows of the workspace.
fn metadata(arguments: &[&str]) -> Value {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--locked", "--format-version", "1"])
        .args(arguments)
        .current_dir(ROOT)
        .output()
        .expect("cargo runs the tests");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// The first two numbers of a version.
fn version(text: &Value) -> Option<(u32, u32)> {
    let mut numbers = text.as_str()?.split('.').map(str::parse::<u32>);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}
