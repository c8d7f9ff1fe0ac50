//! What holds for all pages.

use crate::blocks::{pages, rust_blocks};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn all() -> BTreeMap<String, String> {
    let pages = pages(Path::new(ROOT)).expect("the repository");
    let read = |page: String| {
        let text = fs::read_to_string(Path::new(ROOT).join(&page)).expect("a page");
        (page, text)
    };
    pages.into_iter().map(read).collect()
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
    for page in ["muf", "jobs", "unison", "schema", "cluster", "embedding"] {
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

/// `[text](page.md#heading)`: the page and the heading exist.
#[test]
fn links_between_pages_lead_somewhere() {
    let pages = all();
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
