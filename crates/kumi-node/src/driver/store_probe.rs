//! Asks the store of the present route, once a second, whether it replies and what its clock shows.

use super::route::StoreRoute;
use super::store_client::StoreClient;
use super::store_link::{Choice, Reach, unix_ms};
use kumi_common::{Chain, doubled};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

/// How often the store is asked whether it replies, and how long it may take.
const PROBE_EVERY: Duration = Duration::from_secs(1);
const PROBE_TIMEOUT: Duration = Duration::from_secs(3);

/// The pause after the first attempt to connect that failed; it doubles up to the second.
const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_MOST: Duration = Duration::from_secs(2);

/// Says more about a store that does not reply.
pub(super) type Hint = fn(&StoreRoute) -> Option<String>;

/// Asks the store of the present route again and again.
pub(super) async fn probe(
    mut choice: watch::Receiver<Choice>,
    reach: watch::Sender<Reach>,
    hint: Option<Hint>,
) {
    loop {
        let route = choice.borrow_and_update().route.clone();
        let prober = Prober {
            route: route.clone(),
            reach: &reach,
            hint,
        };
        let is_other = |choice: &Choice| choice.route != route;
        // What `wait_for` returns must not be held while something else is waited for.
        let ended = async { choice.wait_for(is_other).await.is_err() };
        let has_ended = tokio::select! {
            () = prober.run() => false,
            has_ended = ended => has_ended,
        };
        if has_ended {
            return std::future::pending().await;
        }
    }
}

struct Prober<'a> {
    route: Option<Arc<StoreRoute>>,
    reach: &'a watch::Sender<Reach>,
    hint: Option<Hint>,
}

impl Prober<'_> {
    async fn run(self) {
        let Some(route) = self.route.clone() else {
            self.tell(false, Err("no store is known".into()));
            return std::future::pending().await;
        };
        self.begin();
        let mut failures = 0;
        loop {
            match StoreClient::connect(&route.url).await {
                Ok(client) => {
                    let error = self.ask_on(client).await;
                    let is_loading = error.starts_with("LOADING");
                    failures = 0;
                    self.tell(is_loading, Err(error));
                }
                Err(error) => {
                    let mut reason = Chain(&error).to_string();
                    if let Some(more) = self.hint.and_then(|hint| hint(&route)) {
                        reason = format!("{more} ({reason})");
                    }
                    self.tell(false, Err(reason));
                }
            }
            sleep(doubled(RETRY_FIRST, RETRY_MOST, failures)).await;
            failures = failures.saturating_add(1);
        }
    }

    /// Asks on one connection until a question fails, and says why it did.
    async fn ask_on(&self, mut client: StoreClient) -> String {
        loop {
            let before = unix_ms();
            match timeout(PROBE_TIMEOUT, client.call(&["TIME"])).await {
                Ok(Ok(time)) => {
                    let ahead = store_ms(&time).map(|store| {
                        // The store read its clock between the question and the reply.
                        let middle = before.midpoint(unix_ms());
                        middle as i64 - store as i64
                    });
                    self.tell(false, Ok(ahead));
                }
                Ok(Err(error)) => return error.to_string(),
                Err(_) => return "it does not reply".into(),
            }
            sleep(PROBE_EVERY).await;
        }
    }

    /// Another route is not up before it has replied.
    fn begin(&self) {
        self.reach.send_if_modified(|reach| {
            let is_other = reach.route != self.route;
            if is_other {
                *reach = Reach {
                    route: self.route.clone(),
                    since_unix_ms: unix_ms(),
                    ..Reach::default()
                };
            }
            is_other
        });
    }

    fn tell(&self, is_loading: bool, replied: Result<Option<i64>, String>) {
        let (is_up, ahead, reason) = match replied {
            Ok(ahead) => (true, ahead, None),
            Err(reason) => (false, None, Some(reason)),
        };
        self.reach.send_if_modified(|reach| {
            let is_same = reach.route == self.route && reach.is_up == is_up;
            let is_told = is_same && reach.is_loading == is_loading;
            if !is_told {
                log(self.route.as_deref(), is_up, reason.as_deref());
            }
            *reach = Reach {
                route: self.route.clone(),
                is_up,
                is_loading,
                since_unix_ms: if is_same {
                    reach.since_unix_ms
                } else {
                    unix_ms()
                },
                reason,
                clock_ahead_ms: ahead,
            };
            !is_told
        });
    }
}

fn log(route: Option<&StoreRoute>, is_up: bool, reason: Option<&str>) {
    let Some(route) = route else {
        return;
    };
    match is_up {
        true => tracing::info!(store = route.address, "the store replies"),
        false => tracing::warn!(
            store = route.address,
            reason,
            "the store is away; workers wait"
        ),
    }
}

/// The reply of TIME in milliseconds.
fn store_ms(time: &[String]) -> Option<u64> {
    let [seconds, micros] = time else {
        return None;
    };
    let seconds: u64 = seconds.parse().ok()?;
    let micros: u64 = micros.parse().ok()?;
    seconds.checked_mul(1_000)?.checked_add(micros / 1_000)
}
