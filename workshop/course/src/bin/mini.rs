//! `cargo mini COMMAND`: everything a learner runs.

use std::process::ExitCode;

fn main() -> ExitCode {
    // A reader that has seen enough (`cargo mini diff 2 | head`) is no reason for a backtrace.
    std::panic::set_hook(Box::new(|info| {
        let text = info.payload().downcast_ref::<String>().cloned().unwrap_or_default();
        if text.contains("Broken pipe") {
            std::process::exit(0);
        }
        eprintln!("mini: {info}");
    }));
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
