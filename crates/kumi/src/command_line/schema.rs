//! `kumi schema`: checks, formats, compares and describes schemas, and writes code from them.
//!
//! What a schema means is the business of `kumi-schema`. Here files are read and written, and outcomes become exit
//! codes. A file is written only when its content changes, so that build tools see no change where there is none.

mod failure;
mod options;

pub(crate) use failure::EXIT_CODES;
use failure::Failure;
use kumi_schema::{
    Difference, RustError, RustOptions, Schema, TYPESCRIPT_RUNTIME, TYPESCRIPT_RUNTIME_FILE,
};
pub(crate) use options::SchemaOptions;
use options::{GenOptions, Language, SchemaTask};
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Does what was asked, and tells how it went as an exit code.
pub(crate) fn run(options: SchemaOptions) -> ExitCode {
    let done = match options.task {
        SchemaTask::Check { files, quiet } => check(&files, quiet),
        SchemaTask::Gen(options) => generate(&options),
        SchemaTask::Fmt { files, check } => format(&files, check),
        SchemaTask::Diff { old, new, strict } => diff(&old, &new, strict),
        SchemaTask::Doc { file, out } => doc(&file, out.as_deref()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if let Some(text) = failure.text() {
                // Standard error may be closed; there is nowhere else to report to.
                let _ = writeln!(io::stderr(), "{text}");
            }
            failure.exit_code()
        }
    }
}

fn check(files: &[PathBuf], quiet: bool) -> Result<(), Failure> {
    let mut failed = None;
    for file in files {
        match load(file) {
            Ok(schema) if !quiet => {
                let protocol = schema.protocol();
                let hash = schema.protocol_hash().to_string();
                say(&format!(
                    "{}: protocol {} {}, {}, hash {}\n",
                    file.display(),
                    protocol.name,
                    protocol.version,
                    counted(protocol.channels.len(), "channel"),
                    &hash[..16],
                ))?;
            }
            Ok(_) => {}
            // Every file is looked at; the caller reports the last failure.
            Err(failure) => {
                if let Some(Failure::Schema(_) | Failure::Other(_)) = &failed
                    && let Some(text) = failed.as_ref().and_then(Failure::text)
                {
                    let _ = writeln!(io::stderr(), "{text}\n");
                }
                failed = Some(failure);
            }
        }
    }
    failed.map_or(Ok(()), Err)
}

fn generate(options: &GenOptions) -> Result<(), Failure> {
    let schema = load(&options.file)?;
    let (text, extension) = match options.lang {
        Language::Rust => {
            let rust = RustOptions::new().runtime(&options.runtime);
            let text = schema.to_rust(&rust).map_err(|error| match error {
                RustError::Runtime(_) => Failure::Usage(error.to_string()),
                // Ours, not the caller's.
                other => Failure::Other(other.into()),
            })?;
            (text, "rs")
        }
        Language::Typescript => (schema.to_typescript(), "ts"),
    };
    let Some(out) = &options.out else {
        return say(&text);
    };
    let names_folder = out.as_os_str().as_encoded_bytes().ends_with(b"/");
    if names_folder && !options.check {
        fs::create_dir_all(out).map_err(|error| Failure::io("making", out, error))?;
    }
    let out = if names_folder || out.is_dir() {
        // Only the last ending goes: `chat.v1.kdl` and `chat.v2.kdl` are two.
        let mut name = options.file.file_stem().unwrap_or_default().to_owned();
        name.push(".");
        name.push(extension);
        out.join(name)
    } else {
        out.clone()
    };
    let mut files = vec![(out, text)];
    if let Language::Typescript = options.lang {
        // What generated modules import stands beside them.
        let runtime = files[0].0.with_file_name(TYPESCRIPT_RUNTIME_FILE);
        if runtime == files[0].0 {
            let text =
                format!("{TYPESCRIPT_RUNTIME_FILE} is the module that generated modules import");
            return Err(Failure::Usage(text));
        }
        files.push((runtime, TYPESCRIPT_RUNTIME.into()));
    }
    for (path, text) in &files {
        if !options.check {
            write(path, text)?;
            continue;
        }
        let current = fs::read_to_string(path).unwrap_or_default();
        let is_same = match options.lang {
            // A formatter may have been over it.
            Language::Rust => kumi_schema::is_same_rust(&current, text),
            Language::Typescript => current == *text,
        };
        if !is_same {
            let _ = writeln!(
                io::stderr(),
                "kumi: {} is not what {} gives",
                path.display(),
                options.file.display()
            );
            return Err(Failure::WouldChange);
        }
    }
    Ok(())
}

fn format(files: &[PathBuf], check: bool) -> Result<(), Failure> {
    let mut would_change = false;
    for file in files {
        let from_stdin = file.as_os_str() == "-";
        let text = if from_stdin { stdin()? } else { read(file)? };
        let name = if from_stdin {
            "standard input".into()
        } else {
            file.display().to_string()
        };
        let formatted = kumi_schema::format(&name, &text).map_err(Failure::Schema)?;
        if check {
            if formatted != text {
                would_change = true;
                say(&format!("{name}\n"))?;
            }
        } else if from_stdin {
            say(&formatted)?;
        } else {
            write(file, &formatted)?;
        }
    }
    if would_change {
        Err(Failure::WouldChange)
    } else {
        Ok(())
    }
}

fn diff(old: &Path, new: &Path, strict: bool) -> Result<(), Failure> {
    let difference = Difference::between(&load(old)?, &load(new)?);
    for change in &difference.changes {
        say(&format!("{change}\n"))?;
    }
    let breaking = difference
        .changes
        .iter()
        .filter(|change| change.impact == kumi_schema::Impact::Breaking)
        .count();
    let versions = if difference.old_version == difference.new_version {
        format!("both {}", difference.old_version)
    } else {
        format!("{} -> {}", difference.old_version, difference.new_version)
    };
    let safe = difference.changes.len() - breaking;
    say(&format!("{breaking} breaking, {safe} safe ({versions})\n"))?;
    if difference.breaks_unannounced() || (strict && difference.is_breaking()) {
        return Err(Failure::Breaks);
    }
    Ok(())
}

fn doc(file: &Path, out: Option<&Path>) -> Result<(), Failure> {
    let page = load(file)?.to_markdown();
    match out {
        Some(out) => write(out, &page),
        None => say(&page),
    }
}

/// Reads a schema. A file that is missing, too large or no text is the caller's mistake and not the schema's.
fn load(file: &Path) -> Result<Schema, Failure> {
    read(file)?;
    Schema::load(file).map_err(Failure::Schema)
}

fn read(file: &Path) -> Result<String, Failure> {
    let failed = |error| Failure::io("reading", file, error);
    bounded(fs::File::open(file).map_err(failed)?).map_err(failed)
}

/// No more than a schema may have, so that an endless file ends.
fn bounded(from: impl Read) -> io::Result<String> {
    const LIMIT: usize = kumi_schema::limits::MAX_FILE_BYTES;
    let mut bytes = Vec::new();
    // One byte more is enough to see that it is too large.
    from.take(LIMIT as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > LIMIT {
        let text = format!("it is larger than {} KiB", LIMIT / 1024);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    String::from_utf8(bytes)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8 text"))
}

fn stdin() -> Result<String, Failure> {
    bounded(io::stdin()).map_err(|error| Failure::io("reading", Path::new("standard input"), error))
}

/// Writes a file through another beside it, so that a reader never sees half of one.
fn write(path: &Path, text: &str) -> Result<(), Failure> {
    if fs::read(path).is_ok_and(|current| current == text.as_bytes()) {
        return Ok(());
    }
    let failed = |error| Failure::io("writing", path, error);
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let beside = path.with_file_name(name);
    let written = fs::write(&beside, text).and_then(|()| {
        if let Ok(metadata) = fs::metadata(path) {
            fs::set_permissions(&beside, metadata.permissions())?;
        }
        fs::rename(&beside, path)
    });
    written.map_err(|error| {
        let _ = fs::remove_file(&beside);
        failed(error)
    })
}

/// Writes to standard output. A reader that has seen enough and left is no failure.
fn say(text: &str) -> Result<(), Failure> {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::io(
            "writing to",
            Path::new("standard output"),
            error,
        )),
        _ => Ok(()),
    }
}

fn counted(count: usize, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}
