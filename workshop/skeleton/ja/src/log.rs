//! 実装済み。標準エラー出力へのログ（INFO、WARNING、ERROR）です。

use std::panic;

/// 通常動作。
pub fn info(text: &str) {
    eprintln!("INFO {text}");
}

/// 非致命的エラー。
pub fn warning(text: &str) {
    eprintln!("WARNING {text}");
}

/// 致命的エラー、または予期しないエラー。
pub fn error(text: &str) {
    eprintln!("ERROR {text}");
}

/// これ以降、パニック（`todo!` を含む）はログの 1 行になります。
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
