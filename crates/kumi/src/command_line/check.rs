//! `kumi check-aof` and `kumi check-rdb`.

use crate::command_line::cli::{CheckAofOptions, CheckRdbOptions};
use crate::command_line::exit::Failure;
use anyhow::Context;
use kumi_server::Checked;
use std::path::Path;
use std::process::ExitCode;

pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  everything can be loaded, or was made loadable by --fix
  1  something is wrong with the files, or they cannot be read
  2  a mistake in the command line";

/// Checks an append-only file.
pub(crate) fn aof(options: &CheckAofOptions) -> Result<ExitCode, Failure> {
    report(
        kumi_server::check_aof(&options.path, options.fix),
        &options.path,
    )
}

/// Checks an RDB file.
pub(crate) fn rdb(options: &CheckRdbOptions) -> Result<ExitCode, Failure> {
    report(kumi_server::check_rdb(&options.path), &options.path)
}

fn report(checked: std::io::Result<Checked>, path: &Path) -> Result<ExitCode, Failure> {
    let checked = checked
        .with_context(|| path.display().to_string())
        .map_err(Failure::other)?;
    let mut text = checked.lines.join("\n");
    text += if checked.valid {
        "\nvalid\n"
    } else {
        "\nnot valid\n"
    };
    crate::command_line::print(text.as_bytes())?;
    Ok(if checked.valid {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
