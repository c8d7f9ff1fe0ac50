//! Code from `build.rs`, in three lines.
//!
//! ```no_run
//! fn main() -> Result<(), kumi_schema::build::BuildError> {
//!     kumi_schema::build::Config::new().compile("schema/chat.kdl")
//! }
//! ```
//!
//! and in the crate:
//!
//! ```text
//! pub mod chat {
//!     include!(concat!(env!("OUT_DIR"), "/chat.rs"));
//! }
//! ```
//!
//! Cargo runs it again when the schema or one of its imports changes. A schema with errors fails the build with all of
//! them.

use crate::loader::FileLoader;
use crate::model::Schema;
use crate::rust::{RustError, RustOptions};
use kumi_kdl::Diagnostics;
use std::ffi::OsString;
use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Why a build fails. No file was written.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The schema's author has something to mend.
    #[error("the schema has errors\n\n{0}")]
    Schema(Diagnostics),
    /// The build script asks for something that cannot be.
    #[error(transparent)]
    Rust(#[from] RustError),
    /// `OUT_DIR` is not set, so this is no build script, and no folder was named.
    #[error("OUT_DIR is not set; outside of a build script name a folder with out_dir()")]
    NoOutDir,
    /// The system did not let us write.
    #[error("{path} cannot be written")]
    Write {
        /// The file.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
}

/// Cargo shows what `main` returns with `Debug`, and a person is to read it.
impl fmt::Debug for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")?;
        match self {
            Self::Write { source, .. } => write!(f, ": {source}"),
            _ => Ok(()),
        }
    }
}

/// What a build script asks for.
#[derive(Clone, Debug, Default)]
pub struct Config {
    rust: RustOptions,
    out_dir: Option<PathBuf>,
}

impl Config {
    /// Code for `::kumi_unison` into `OUT_DIR`.
    pub fn new() -> Self {
        Self::default()
    }

    /// The path under which the code finds the runtime's crate.
    pub fn runtime(mut self, path: impl Into<String>) -> Self {
        self.rust = self.rust.runtime(path);
        self
    }

    /// Another folder than `OUT_DIR`.
    pub fn out_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.out_dir = Some(folder.into());
        self
    }

    /// Writes `<name>.rs` for the schema `<name>.kdl`, and tells cargo which files it depends on.
    pub fn compile(&self, schema: impl AsRef<Path>) -> Result<(), BuildError> {
        let path = schema.as_ref();
        // Said first, so that a schema that cannot be read is looked at again when it changes.
        say_dependency(&path.to_string_lossy());
        let schema =
            Schema::load_with(&FileLoader, &path.to_string_lossy()).map_err(BuildError::Schema)?;
        schema.files().skip(1).for_each(say_dependency);
        let text = schema.to_rust(&self.rust)?;
        let folder = self
            .out_dir
            .clone()
            .or_else(|| std::env::var_os("OUT_DIR").map(PathBuf::from))
            .ok_or(BuildError::NoOutDir)?;
        // Only the last ending goes: `chat.v1.kdl` and `chat.v2.kdl` are two.
        let mut name = path
            .file_stem()
            .map_or_else(|| OsString::from("schema"), OsString::from);
        name.push(".rs");
        let out = folder.join(name);
        let unchanged = std::fs::read(&out).is_ok_and(|current| current == text.as_bytes());
        if unchanged {
            return Ok(());
        }
        std::fs::write(&out, text).map_err(|source| BuildError::Write {
            path: out.display().to_string(),
            source,
        })
    }
}

/// A line for cargo. Where there is no reader, that is no failure.
fn say_dependency(file: &str) {
    let _ = writeln!(std::io::stdout(), "cargo:rerun-if-changed={file}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_becomes_a_file_of_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let schema = folder.path().join("chat.kdl");
        std::fs::write(
            &schema,
            "protocol \"p\" version=\"1.0.0\" { channel \"c\" { event \"E\" } }",
        )
        .unwrap();
        let config = Config::new().out_dir(folder.path()).runtime("crate::rt");
        config.compile(&schema).unwrap();
        let text = std::fs::read_to_string(folder.path().join("chat.rs")).unwrap();
        assert!(text.contains("pub struct PChannels") && text.contains("use crate::rt as unison;"));
    }

    #[test]
    fn two_versions_of_a_schema_become_two_files() {
        let folder = tempfile::tempdir().unwrap();
        let config = Config::new().out_dir(folder.path());
        for name in ["chat.v1.kdl", "chat.v2.kdl"] {
            let schema = folder.path().join(name);
            let text = "protocol \"p\" version=\"1.0.0\" { channel \"c\" { event \"E\" } }";
            std::fs::write(&schema, text).unwrap();
            config.compile(&schema).unwrap();
        }
        assert!(folder.path().join("chat.v1.rs").exists());
        assert!(folder.path().join("chat.v2.rs").exists());
    }

    #[test]
    fn errors_are_shown_as_a_person_reads_them() {
        let folder = tempfile::tempdir().unwrap();
        let schema = folder.path().join("chat.kdl");
        std::fs::write(&schema, "protocol \"p\"").unwrap();
        let error = Config::new()
            .out_dir(folder.path())
            .compile(&schema)
            .unwrap_err();
        let shown = format!("{error:?}");
        assert!(
            shown.contains("error: the protocol has no version\n"),
            "{shown}"
        );
        std::fs::write(
            &schema,
            "protocol \"p\" version=\"1.0.0\" { channel \"c\" { event \"E\" } }",
        )
        .unwrap();
        let error = Config::new()
            .out_dir("/no/such/folder")
            .compile(&schema)
            .unwrap_err();
        assert!(format!("{error:?}").starts_with("/no/such/folder/chat.rs cannot be written: "));
        let error = Config::new()
            .runtime("a b")
            .out_dir(folder.path())
            .compile(&schema)
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "\"a b\" is not the path of a crate or module"
        );
    }
}
