//! Given. Log lines on standard error: INFO, WARNING and ERROR.

use std::panic;

/// Normal operation.
pub fn info(text: &str) {
    eprintln!("INFO {text}");
}

/// An error that does not stop the server.
pub fn warning(text: &str) {
    eprintln!("WARNING {text}");
}

/// A fatal or unexpected error.
pub fn error(text: &str) {
    eprintln!("ERROR {text}");
}

/// From now on a panic (also one from `todo!`) is one line of the log.
pub fn use_for_panics() {
    panic::set_hook(Box::new(|info| {
        let text = match (info.payload().downcast_ref::<&str>(), info.payload().downcast_ref::<String>()) {
            (Some(text), _) => text,
            (_, Some(text)) => text.as_str(),
            _ => "panic",
        };
        let place = info.location().map(|place| format!(" ({}:{})", place.file(), place.line()));
        error(&format!("{text}{}", place.unwrap_or_default()));
    }));
}
