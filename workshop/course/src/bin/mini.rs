//! `cargo mini COMMAND`: everything a learner runs.

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match course::mini::main(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("mini: {message}");
            ExitCode::from(2)
        }
    }
}
