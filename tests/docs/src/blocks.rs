//! Finds the Rust blocks of a Markdown page.

use std::fs;
use std::io;
use std::path::Path;

/// A Rust block, with what is put before it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// The line of the page on which it begins, from 1.
    pub(crate) line: usize,
    /// What follows `rust` on the opening line: `,no_run` or nothing.
    attributes: String,
    hidden: String,
    code: String,
}

impl Block {
    /// The documentation of an item whose test is this block.
    pub(crate) fn as_doc_test(&self) -> String {
        let Self {
            attributes,
            hidden,
            code,
            ..
        } = self;
        let body = match code.contains("fn main()") {
            true => format!("{hidden}{code}"),
            false => format!(
                "#[tokio::main]\nasync fn main() -> Result<(), Box<dyn std::error::Error>> {{\n\
                 {hidden}{code}\n#[allow(unreachable_code)]\nOk(())\n}}\n"
            ),
        };
        format!("```rust{attributes}\n{body}```\n")
    }
}

/// README.md and all pages below docs/, as paths from the root.
pub(crate) fn pages(root: &Path) -> io::Result<Vec<String>> {
    let mut pages = vec!["README.md".to_owned()];
    let mut directories = vec!["docs".to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(root.join(&directory))? {
            let entry = entry?;
            let path = format!("{directory}/{}", entry.file_name().to_string_lossy());
            match entry.file_type()?.is_dir() {
                true => directories.push(path),
                false if path.ends_with(".md") => pages.push(path),
                false => {}
            }
        }
    }
    pages.sort();
    Ok(pages)
}

/// All blocks that begin with ```` ```rust ````, with the comments before them.
pub(crate) fn rust_blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut hidden = String::new();
    let mut lines = page.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        if line == "<!-- rust" {
            hidden = until(&mut lines, "-->");
        } else if let Some(attributes) = line.strip_prefix("```rust") {
            blocks.push(Block {
                line: index + 1,
                attributes: attributes.to_owned(),
                hidden: std::mem::take(&mut hidden),
                code: until(&mut lines, "```"),
            });
        } else if line.starts_with("```") {
            until(&mut lines, "```");
        } else {
            hidden.clear();
        }
    }
    blocks
}

/// The lines up to one that is `end`, which is taken too.
fn until<'a>(lines: &mut impl Iterator<Item = (usize, &'a str)>, end: &str) -> String {
    let taken = lines.take_while(|(_, line)| *line != end);
    taken.flat_map(|(_, line)| [line, "\n"]).collect()
}

/// The schema at the beginning of the tour.
pub(crate) fn schema(tour: &str) -> Option<String> {
    let (_, rest) = tour.split_once("```kdl file=chat.kdl\n")?;
    let (schema, _) = rest.split_once("```")?;
    Some(schema.to_owned())
}
