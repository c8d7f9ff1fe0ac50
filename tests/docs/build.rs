//! Turns each Rust block of README.md and docs/ into a documentation test, and the schema of docs/schema.md into the code
//! that its blocks use.
//!
//! A block that begins with ```` ```rust ```` becomes the body of an async `main` that may use `?`, unless it has a `main`
//! of its own. An HTML comment that begins with `<!-- rust` and ends on the line before the block is put before the body:
//! readers do not see it. The rest of the opening line (`no_run`, `should_panic`) is passed on.

use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

#[path = "src/blocks.rs"]
mod blocks;

fn main() -> Result<(), Box<dyn Error>> {
    let root = Path::new("../..");
    let out_dir = PathBuf::from(std::env::var("OUT_DIR")?);
    println!("cargo::rerun-if-changed=../../docs");
    println!("cargo::rerun-if-changed=../../README.md");
    println!("cargo::rerun-if-changed=src/blocks.rs");

    let mut tests = String::new();
    for page in blocks::pages(root)? {
        let text = fs::read_to_string(root.join(&page))?;
        for block in blocks::rust_blocks(&text) {
            let name = page.replace(['/', '.', '-'], "_").to_lowercase();
            let (test, line) = (block.as_doc_test(), block.line);
            writeln!(tests, "#[doc = {test:?}]\npub mod {name}_line_{line} {{}}")?;
        }
    }
    fs::write(out_dir.join("blocks.rs"), tests)?;

    let page = root.join("docs/schema.md");
    let tour = fs::read_to_string(&page)?;
    let schema = blocks::schema(&tour).ok_or("docs/schema.md begins with a schema")?;
    let file = out_dir.join("chat.kdl");
    fs::write(&file, schema)?;
    // `compile` has cargo watch this file. Younger than the start of this script it would count as changed, and the script
    // would run, and its crate be compiled, a second time.
    let written = fs::File::options().append(true).open(&file)?;
    written.set_modified(fs::metadata(&page)?.modified()?)?;
    let file = file.to_str().ok_or("a path in UTF-8")?;
    kumi_schema::build::Config::new().compile(file)?;
    Ok(())
}
