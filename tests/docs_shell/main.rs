//! The shell blocks of README.md and docs/, run as a reader would paste them.
//!
//! `page.rs` says how a page marks its blocks; `KUMI_DOCS_PAGE=docs/muf.md` runs one page.

mod page;
mod shell;

use page::{Block, Kind};
use shell::Shell;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Pages that run at the same time.
const THREADS: usize = 2;

#[test]
fn shell_blocks_of_the_documentation_do_what_the_pages_show() {
    let only = std::env::var("KUMI_DOCS_PAGE").ok();
    let mut stories = Vec::new();
    let mut faults = Vec::new();
    for page in pages() {
        let text = fs::read_to_string(Path::new(ROOT).join(&page)).expect("a page");
        match page::shell_blocks(&text) {
            Ok(blocks) => stories.push((page, blocks)),
            Err(error) => faults.push(format!("{page}, {error}")),
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    stories.retain(|(page, blocks)| {
        only.as_ref().is_none_or(|only| only == page)
            && blocks
                .iter()
                .any(|block| matches!(block.kind, Kind::Foreground | Kind::Background))
    });
    assert!(!stories.is_empty(), "no page has a shell block that runs");

    let (next, faults) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some((page, blocks)) = stories.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(fault) = tell(blocks) {
                        faults
                            .lock()
                            .expect("no thread panics here")
                            .push(format!("{page}, {fault}"));
                    }
                }
            });
        }
    });
    let faults = faults.into_inner().expect("no thread panicked");
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}

/// Runs the blocks of a page in one shell, up to the first that does not do what the page says.
fn tell(blocks: &[Block]) -> Result<(), String> {
    let home = tempfile::tempdir().expect("a temporary directory");
    let kumi = Path::new(env!("CARGO_BIN_EXE_kumi"));
    let programs = home.path().join("bin");
    make_redis_cli(&programs);
    let programs = [
        programs.as_path(),
        kumi.parent().expect("a file in a directory"),
    ];
    let mut shell = Shell::start(home.path(), &programs, Path::new(ROOT));
    for block in blocks {
        let ran = match &block.kind {
            Kind::NotRun(_) => continue,
            Kind::File(name) => {
                shell.write(name, &block.code);
                continue;
            }
            Kind::Foreground | Kind::Hidden => {
                let mut ran = shell.run(&block.code);
                if let Some(expected) = &block.expected {
                    ran.succeeded &= page::matches(expected, &ran.printed);
                }
                ran
            }
            Kind::Background => {
                let expected = block.expected.as_deref().unwrap_or_default();
                shell.start_block(&block.code, |printed| page::begins(expected, printed))
            }
        };
        if !ran.succeeded {
            let expected = block.expected.as_deref().unwrap_or("anything, and succeed");
            return Err(format!(
                "line {}:\n{}-- should print --\n{expected}-- printed --\n{}",
                block.line, block.code, ran.printed
            ));
        }
    }
    Ok(())
}

/// A redis-cli that prints to a pipe what it prints to a terminal.
fn make_redis_cli(directory: &Path) {
    fs::create_dir(directory).expect("a temporary directory");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let real = std::env::split_paths(&path)
        .map(|directory| directory.join("redis-cli"))
        .find(|file| file.exists());
    let real = real.expect("redis-cli, of redis-tools, is installed");
    let program = directory.join("redis-cli");
    fs::write(
        &program,
        format!("#!/bin/sh\nexec {} --no-raw \"$@\"\n", real.display()),
    )
    .expect("a temporary file");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("our own file");
}

/// README.md and the pages below docs/, as paths from the root.
fn pages() -> Vec<String> {
    let mut pages = vec!["README.md".to_owned()];
    let mut directories = vec![PathBuf::from("docs")];
    while let Some(directory) = directories.pop() {
        for entry in
            fs::read_dir(Path::new(ROOT).join(&directory)).expect("a directory of the repository")
        {
            let entry = entry.expect("an entry");
            let path = directory.join(entry.file_name());
            if entry.file_type().expect("its type").is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path.to_str().expect("a path in UTF-8").to_owned());
            }
        }
    }
    pages.sort();
    pages
}
