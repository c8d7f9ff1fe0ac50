//! `kumi config`: checks `kumi.kdl`, shows what a node makes of it, and prints an example.

use crate::command_line::exit::Failure;
use crate::command_line::{print, state};
use anyhow::Context;
use clap::{Args, Subcommand};
use kumi_node::config::{MAX_FILE_BYTES, NodeConfig};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The table of exit codes as `--help` shows it: those of `kumi up`.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  done; for 'check', the file is sound
  1  failed otherwise
  2  a mistake in the command line
  4  the file cannot be read, or has errors";

/// The file's name where none is given.
const FILE: &str = "kumi.kdl";

/// The command.
#[derive(Debug, Args)]
pub(crate) struct ConfigOptions {
    #[command(subcommand)]
    task: ConfigTask,
}

#[derive(Debug, Subcommand)]
enum ConfigTask {
    /// Report everything that is wrong with a file, each with its line
    #[command(after_long_help = EXIT_CODES)]
    Check(FileOptions),
    /// Print a file with comments to begin with
    Example,
    /// Print the configuration that a node makes of a file, with the defaults
    ///
    /// Secrets are in files of their own, and only the names of those are printed. Relative paths are shown as the node
    /// takes them: below the directory of the file.
    #[command(after_long_help = EXIT_CODES)]
    Show(FileOptions),
}

#[derive(Args, Clone, Debug)]
struct FileOptions {
    /// The file [default: ./kumi.kdl, else $XDG_CONFIG_HOME/kumi/kumi.kdl]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

/// Does what was asked.
pub(crate) fn run(options: &ConfigOptions) -> Result<ExitCode, Failure> {
    match &options.task {
        ConfigTask::Example => print(NodeConfig::example().as_bytes())?,
        ConfigTask::Check(options) => {
            let (file, config) = found(options.file.as_deref())?.ok_or_else(|| {
                let text =
                    format!("there is no ./{FILE}: 'kumi config example > {FILE}' makes one");
                Failure::ConfigFile(anyhow::anyhow!(text))
            })?;
            print(format!("{}: sound, {}\n", file.display(), counts(&config)).as_bytes())?;
        }
        ConfigTask::Show(options) => {
            let config = found(options.file.as_deref())?
                .map_or_else(NodeConfig::default, |(_, config)| config);
            print(config.show().as_bytes())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The file that was named, or else the first one that is where files are looked for; none if there is none.
pub(super) fn found(named: Option<&Path>) -> Result<Option<(PathBuf, NodeConfig)>, Failure> {
    let file = match named {
        Some(file) => Some(file.to_owned()),
        None => {
            let places = [
                Some(PathBuf::from(FILE)),
                state::config_directory().map(|directory| directory.join(FILE)),
            ];
            places.into_iter().flatten().find(|file| file.exists())
        }
    };
    file.map(|file| load(&file).map(|config| (file, config)))
        .transpose()
}

/// Reads a file. Its relative paths become paths below its directory.
pub(super) fn load(file: &Path) -> Result<NodeConfig, Failure> {
    let text = read(file).with_context(|| format!("reading {}", file.display()));
    let text = text.map_err(Failure::ConfigFile)?;
    let parsed = NodeConfig::parse(&file.display().to_string(), &text);
    let mut config = parsed.map_err(Failure::NodeFile)?;
    let absolute = std::path::absolute(file).map_err(Failure::other)?;
    if let Some(directory) = absolute.parent() {
        config.resolve(directory);
    }
    Ok(config)
}

/// No more than a file may have and one byte, so that an endless file ends and one that is too large is seen.
fn read(file: &Path) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    File::open(file)?
        .take(MAX_FILE_BYTES as u64 + 1)
        .read_to_end(&mut bytes)?;
    String::from_utf8(bytes).map_err(|_| anyhow::anyhow!("it is not UTF-8 text"))
}

/// How many entries of each kind there are.
fn counts(config: &NodeConfig) -> String {
    let counts = [
        ("work", config.work.len()),
        ("serve", config.serve.len()),
        ("run", config.run.len()),
        ("cron", config.cron.len()),
    ];
    counts
        .map(|(name, count)| format!("{count} {name}"))
        .join(", ")
}
