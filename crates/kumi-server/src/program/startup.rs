//! The `kumi-server` command: parses the arguments, runs the server and returns the exit code.

use crate::files::config_file;
use crate::front::ServerError;
use crate::program::{Program, ProgramError};
use anyhow::{Result, bail};
use kumi_store::config::parse_command_line;
use kumi_store::{KUMI_VERSION, REDIS_VERSION};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::process::ExitCode;

const HELP: &str = "\
Usage: kumi-server [/path/to/redis.conf] [--directive value ...] [-]
       kumi-server -              read the configuration from standard input
       kumi-server -v, --version  print the version
       kumi-server -h, --help     print this text

Every directive of redis.conf may be given as a flag, and wins over the file:

       kumi-server --port 7777 --loglevel verbose
       kumi-server /etc/redis/redis.conf --unixsocket /run/kumi.sock
       echo 'maxmemory 128mb' | kumi-server -

Without a file, defaults hold: port 6379 on the loopback addresses. Log lines are in UTC.
";

/// Runs `kumi-server` with these arguments, without the program's name, and returns the exit code: 0
/// after an orderly stop, 1 when it could not start or failed later.
///
/// The program must use mimalloc, because INFO and `--version` name it as the allocator.
pub fn main_from_args(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<Vec<u8>> = args.into_iter().map(OsString::into_vec).collect();
    match args.first().map(Vec::as_slice) {
        Some(b"-v" | b"--version") => {
            println!("{}", version_line());
            return ExitCode::SUCCESS;
        }
        Some(b"-h" | b"--help") => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        _ => {}
    }
    match start(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            if !error.is::<Logged>() {
                eprintln!("{error:#}");
            }
            ExitCode::FAILURE
        }
    }
}

/// The line of `--version`, in redis-server's format.
fn version_line() -> String {
    format!(
        "Redis server v={REDIS_VERSION} sha=00000000:0 malloc=mimalloc bits={} build=0 kumi={KUMI_VERSION}",
        usize::BITS
    )
}

/// Errors before this point go to standard error, because there is no log yet.
fn start(args: &[Vec<u8>]) -> Result<()> {
    refuse_other_modes(args)?;
    let command_line = parse_command_line(args);
    let config = config_file::load(&command_line)?;
    let port = config.settings().port;
    let file = command_line.file.as_deref().map(OsStr::from_bytes);
    let program = Program::prepare(config, file.map(Path::new))?.with_files();
    let logs_to_file = program.logs_to_file;
    match program.run(|_, _| {}) {
        Ok(()) => Ok(()),
        Err(error) => {
            let is_port = matches!(&error, ProgramError::Listen(listen) if listen.address.ends_with(&format!(":{port}")));
            let is_damage = matches!(&error, ProgramError::Server(ServerError::Damaged { .. }));
            let error = anyhow::Error::new(error);
            tracing::error!("{error:#}");
            if is_damage {
                tracing::error!("Terminating server after rdb file reading failure.");
            }
            if is_port {
                // In Redis's words: scripts that start servers on any free port look for them.
                tracing::error!("Failed listening on port {port} (tcp), aborting.");
            }
            // With a log file, the terminal would otherwise show nothing.
            if logs_to_file {
                Err(error)
            } else {
                Err(Logged.into())
            }
        }
    }
}

/// An error that has already been reported to the user.
#[derive(Debug, thiserror::Error)]
#[error("already reported")]
struct Logged;

fn refuse_other_modes(args: &[Vec<u8>]) -> Result<()> {
    match args.first().map(Vec::as_slice) {
        Some(b"--test-memory") => {
            bail!("kumi-server does not test memory; use memtest86 or memtester for that")
        }
        Some(b"--check-system") => bail!("kumi-server has no system check"),
        _ => {}
    }
    if args.iter().any(|arg| arg == b"--sentinel") {
        bail!("kumi-server has no sentinel mode");
    }
    Ok(())
}
