//! Warnings that the library logs on a test's own thread.

use std::fmt::{Debug, Write};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Level, Metadata, Subscriber};

/// Collects warnings until it is dropped. The test's runtime has to be on the test's thread, as `#[tokio::test]` has it.
pub(crate) struct Log {
    warnings: UnboundedReceiver<String>,
    _guard: DefaultGuard,
}

impl Log {
    pub(crate) fn capture() -> Log {
        let (sender, warnings) = unbounded_channel();
        let guard = tracing::subscriber::set_default(Collector(sender));
        Log {
            warnings,
            _guard: guard,
        }
    }

    /// The next warning: its message and its fields.
    pub(crate) async fn warning(&mut self) -> String {
        let warning = self.warnings.recv().await;
        warning.expect("the collector lives as long as the guard")
    }
}

struct Collector(UnboundedSender<String>);

impl Subscriber for Collector {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = Text(String::new());
        event.record(&mut text);
        // The test may have seen enough.
        let _ = self.0.send(text.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = write!(self.0, "{}={value:?} ", field.name());
    }
}
