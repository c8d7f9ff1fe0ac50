//! The command line of `kumi schema`.

use super::failure::EXIT_CODES;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

/// The command.
#[derive(Debug, Args)]
pub(crate) struct SchemaOptions {
    #[command(subcommand)]
    pub(super) task: SchemaTask,
}

#[derive(Debug, Subcommand)]
pub(super) enum SchemaTask {
    /// Say what is wrong with schemas
    ///
    /// All errors are reported in one go, each with its line and a suggestion. Sound schemas are named with their
    /// version and hash.
    #[command(after_long_help = EXIT_CODES)]
    Check {
        /// Schema files; what they import is read too
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// Say nothing about sound schemas
        #[arg(short, long)]
        quiet: bool,
    },
    /// Write Rust or TypeScript from a schema
    ///
    /// Rust code names the runtime's crate only, and is meant for 'include!' or a file of its own. A TypeScript module
    /// imports one other, kumi-unison.ts, which --out writes beside it.
    #[command(after_long_help = format!("{GEN_EXAMPLES}\n\n{EXIT_CODES}"))]
    Gen(GenOptions),
    /// Write schemas the one canonical way
    ///
    /// Comments stay. A file named '-' is standard input, and the result goes to standard output.
    #[command(after_long_help = EXIT_CODES)]
    Fmt {
        /// Schema files, rewritten where they are; or '-'
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// Change nothing, name the files that would change, and fail if there is one
        #[arg(long)]
        check: bool,
    },
    /// Compare two versions of a schema
    ///
    /// Lists breaking and safe changes. Fails when something breaks although the major version stayed the same.
    #[command(after_long_help = format!("{DIFF_EXAMPLES}\n\n{EXIT_CODES}"))]
    Diff {
        /// The schema as it was
        old: PathBuf,
        /// The schema as it is
        new: PathBuf,
        /// Fail on breaking changes even under a new major version
        #[arg(long)]
        strict: bool,
    },
    /// Write a page that describes a schema, in Markdown
    #[command(after_long_help = EXIT_CODES)]
    Doc {
        /// The schema
        file: PathBuf,
        /// Where to write it [default: standard output]
        #[arg(short, long, value_name = "PATH")]
        out: Option<PathBuf>,
    },
}

#[derive(Debug, Args)]
pub(super) struct GenOptions {
    /// The schema
    pub(super) file: PathBuf,
    /// Which language
    #[arg(short, long, value_enum)]
    pub(super) lang: Language,
    /// Where to write it: a file, or a folder; one that ends with / is made if it is missing [default: standard output]
    #[arg(short, long, value_name = "PATH")]
    pub(super) out: Option<PathBuf>,
    /// The path of the runtime's crate in Rust code
    #[arg(long, value_name = "PATH", default_value = "::kumi_unison")]
    pub(super) runtime: String,
    /// Change nothing, and fail if the file at --out holds other code; how Rust code is formatted does not count
    #[arg(long, requires = "out")]
    pub(super) check: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Language {
    Rust,
    #[value(alias = "ts")]
    Typescript,
}

const GEN_EXAMPLES: &str = "\
Examples:
  kumi schema gen chat.kdl --lang rust --out src/chat.rs
  kumi schema gen chat.kdl --lang typescript --out web/src/
  kumi schema gen chat.kdl --lang rust --out src/chat.rs --check";

const DIFF_EXAMPLES: &str = "\
Examples:
  git show main:chat.kdl > /tmp/old.kdl && kumi schema diff /tmp/old.kdl chat.kdl";
