//! The log, as tests see it.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex};

/// The fields of the events about tasks that are logged on the test's thread.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<Fields>>>);

#[derive(Default)]
struct Fields(BTreeMap<&'static str, String>);

impl Log {
    /// What is logged meanwhile: each message and the names of its fields, except the task's id.
    pub(crate) async fn of(work: impl Future) -> Vec<String> {
        let log = Self::default();
        let guard = tracing::subscriber::set_default(log.clone());
        work.await;
        drop(guard);
        let said = log.0.lock().unwrap();
        let names = said.iter().map(|Fields(fields)| {
            let others = fields
                .keys()
                .filter(|name| !["message", "task_id"].contains(name));
            let others: Vec<&str> = others.copied().collect();
            format!("{} {}", fields["message"], others.join(" "))
        });
        names.collect()
    }
}

impl tracing::field::Visit for Fields {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}

impl tracing::Subscriber for Log {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.is_event() && metadata.target().starts_with("kumi_jobs")
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        if fields.0.contains_key("task_id") {
            self.0.lock().unwrap().push(fields);
        }
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}
