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

    let tour = fs::read_to_string(root.join("docs/schema.md"))?;
    let schema = blocks::schema(&tour).ok_or("docs/schema.md begins with a schema")?;
    let file = out_dir.join("chat.kdl");
    // A file that is written again counts as changed, and the build script would run each time.
    if fs::read_to_string(&file).ok().as_ref() != Some(&schema) {
        fs::write(&file, schema)?;
    }
    let file = file.to_str().ok_or("a path in UTF-8")?;
    kumi_schema::build::Config::new().compile(file)?;
    Ok(())
}
