//! Which parts of the node have panicked. The rest of the node goes on without such a part, so a person has to be told.

use std::future::Future;
use tokio::sync::watch;

/// The parts that have panicked, by name, in the order of their ends. Clones are the same list, which has each name once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Failures(watch::Sender<Vec<String>>);

impl Failures {
    /// Runs a part. If it panics, its name is noted; an end without a panic is none, and neither is a task that is aborted.
    pub(crate) fn watch<W>(&self, part: &str, work: W) -> impl Future<Output = ()> + Send + use<W>
    where
        W: Future<Output = ()> + Send,
    {
        let ending = Ending {
            part: part.to_owned(),
            failures: self.clone(),
        };
        async move {
            let _ending = ending;
            work.await;
        }
    }

    /// The names so far.
    pub(crate) fn parts(&self) -> Vec<String> {
        self.0.borrow().clone()
    }

    /// Waits for the first part that panics. Dropping the future changes nothing.
    pub(crate) async fn first(&self) -> String {
        let mut parts = self.0.subscribe();
        let first = match parts.wait_for(|parts| !parts.is_empty()).await {
            Ok(parts) => parts.first().cloned(),
            Err(_) => None,
        };
        match first {
            Some(part) => part,
            // The sender lives as long as this, so that this is not reached.
            None => std::future::pending().await,
        }
    }
}

/// Notes a part that ends by a panic.
struct Ending {
    part: String,
    failures: Failures,
}

impl Drop for Ending {
    fn drop(&mut self) {
        if std::thread::panicking() {
            tracing::error!(part = self.part, "a part of the node panicked");
            let part = std::mem::take(&mut self.part);
            self.failures.0.send_if_modified(|parts| {
                let is_new = !parts.contains(&part);
                if is_new {
                    parts.push(part);
                }
                is_new
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::task::JoinSet;
    use tokio::time::timeout;

    #[tokio::test]
    async fn only_a_part_that_panics_is_a_failure() {
        let failures = Failures::default();
        let mut tasks = JoinSet::new();
        tasks.spawn(failures.watch("one that ends", async {}));
        assert!(tasks.join_next().await.expect("a task").is_ok());
        tasks.spawn(failures.watch("one that is aborted", std::future::pending()));
        tasks.shutdown().await;
        assert_eq!(failures.parts(), [""; 0]);

        tasks.spawn(failures.watch("the probe", async {
            tokio::task::yield_now().await;
            panic!("as it should");
        }));
        let first = timeout(Duration::from_secs(60), failures.first()).await;
        assert_eq!(first.expect("noted"), "the probe");
        assert_eq!(failures.parts(), ["the probe"]);
    }
}
