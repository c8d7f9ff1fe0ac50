//! Asks the store of the present route, once a second, whether it replies and what its clock shows.
//!
//! A store of the cluster also has to have the data set that its node announces. With TLS its certificate says so; in plain
//! text, and with certificates of the operator's own, each connection asks INFO for it.
//!
//! A store outside may be a Redis Cluster, whose clients go on without the node that the URL names. So the probe remembers the
//! other primaries, and asks one of them if that node cannot be reached.

use super::route::StoreRoute;
use super::store_client::StoreClient;
use super::store_link::{Choice, Reach, unix_ms};
use crate::core::store_pin::StoreId;
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

/// Primaries of a Redis Cluster that are remembered.
const MAX_PRIMARIES: usize = 8;

/// Asks the store of the present route again and again.
pub(super) async fn probe(mut choice: watch::Receiver<Choice>, reach: watch::Sender<Reach>) {
    loop {
        let route = choice.borrow_and_update().route.clone();
        let prober = Prober {
            route: route.clone(),
            reach: &reach,
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
}

impl Prober<'_> {
    async fn run(self) {
        let Some(route) = self.route.clone() else {
            self.tell(false, Err("no store is known".into()));
            return std::future::pending().await;
        };
        self.begin();
        if let Some(problem) = &route.problem {
            self.tell(false, Err(problem.clone()));
            return std::future::pending().await;
        }
        let mut failures = 0;
        let mut primaries = Vec::new();
        loop {
            match connect(&route.url, &primaries).await {
                Ok(mut client) => {
                    if let Some(known) = primaries_of(&route, &mut client).await {
                        primaries = known;
                    }
                    let checked = self.check(&mut client).await;
                    let error = match checked {
                        Ok(()) => {
                            failures = 0;
                            self.ask_on(client).await
                        }
                        Err(error) => error,
                    };
                    let is_loading = error.starts_with("LOADING");
                    self.tell(is_loading, Err(error));
                }
                Err(error) => self.tell(false, Err(Chain(&error).to_string())),
            }
            sleep(doubled(RETRY_FIRST, RETRY_MOST, failures)).await;
            failures = failures.saturating_add(1);
        }
    }

    /// Whether the store has the data set of the route, if that is one of the cluster.
    async fn check(&self, client: &mut StoreClient) -> Result<(), String> {
        let route = self.route.as_deref();
        let Some(id) = route.and_then(|route| route.id.as_ref()) else {
            return Ok(());
        };
        match timeout(PROBE_TIMEOUT, client.call(&["INFO"])).await {
            Ok(Ok(info)) => has_data_set(&info.concat(), id),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("it does not reply".into()),
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

/// Connects to the node of the URL, or to another one that is known.
async fn connect(url: &str, primaries: &[String]) -> Result<StoreClient, kumi_redis::Error> {
    let error = match StoreClient::connect(url).await {
        Ok(client) => return Ok(client),
        Err(error) => error,
    };
    for primary in primaries {
        if let Ok(client) = StoreClient::connect_to(url, Some(primary)).await {
            return Ok(client);
        }
    }
    Err(error)
}

/// The primaries of a Redis Cluster outside; none if the store is not one, or may not be asked.
async fn primaries_of(route: &StoreRoute, client: &mut StoreClient) -> Option<Vec<String>> {
    if route.id.is_some() {
        return None;
    }
    let nodes = timeout(PROBE_TIMEOUT, client.call(&["CLUSTER", "NODES"])).await;
    Some(primaries(&nodes.ok()?.ok()?.concat()))
}

/// `host:port` of the primaries that are up, by the reply of CLUSTER NODES.
fn primaries(nodes: &str) -> Vec<String> {
    let addresses = nodes.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        let (address, flags) = (words.next()?, words.next()?);
        let (address, _) = address.split_once('@')?;
        let (host, _) = address.rsplit_once(':')?;
        let has = |flag: &str| flags.split(',').any(|one| one == flag);
        let is_up = has("master") && !has("fail") && !has("noaddr") && !has("handshake");
        (is_up && !host.is_empty()).then(|| address.to_owned())
    });
    addresses.take(MAX_PRIMARIES).collect()
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

/// Whether the text of INFO is of a store that has loaded this data set.
fn has_data_set(info: &str, id: &StoreId) -> Result<(), String> {
    let field = |name: &str| {
        let mut lines = info.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
    };
    // The id of data that is being loaded is known at its end.
    if field("loading") == Some("1") {
        return Err("LOADING the store loads its data".into());
    }
    match field("kumi_data_id") {
        Some(found) if found == id.as_str() => Ok(()),
        Some(found) => Err(format!(
            "the data set there is {found}, and not {id}: another store listens at its address"
        )),
        None => Err("the server there is not a store of kumi".into()),
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

#[cfg(test)]
mod tests {
    use super::*;
    use kumi_server::Embedded;
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
    use tokio::net::TcpListener;
    use tokio::task::JoinSet;

    /// Far beyond what any step takes.
    const STUCK: Duration = Duration::from_secs(60);

    fn route(server: &Embedded, id: &str) -> StoreRoute {
        StoreRoute {
            id: Some(id.parse().expect("an id")),
            ..StoreRoute::outside(server.url())
        }
    }

    /// What the probe first says about a route.
    async fn reached(route: StoreRoute) -> Reach {
        let choice = watch::Sender::new(Choice {
            route: Some(Arc::new(route)),
            ..Choice::default()
        });
        let (sender, reach) = watch::channel(Reach::default());
        let mut tasks = JoinSet::new();
        tasks.spawn(probe(choice.subscribe(), sender));
        let told = async {
            loop {
                // Another reason of a store that was away before is no change.
                let now = reach.borrow().clone();
                if now.is_up || now.reason.is_some() {
                    return now;
                }
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(STUCK, told).await.expect("in time")
    }

    #[tokio::test]
    async fn a_store_with_another_data_set_is_not_up() {
        let server = kumi_server::embedded().expect("a server");
        let id = server.handle().data_id().to_string();
        let reach = reached(route(&server, &id)).await;
        assert!(reach.is_up, "{reach:?}");
        let other = reached(route(&server, "other")).await;
        assert!(!other.is_up, "{other:?}");
        let reason = other.reason.expect("a reason");
        assert!(
            reason.contains(&id) && reason.contains("not other"),
            "{reason}"
        );
        // A store outside of the cluster has the data that it has.
        let outside = reached(StoreRoute::outside(server.url())).await;
        assert!(outside.is_up, "{outside:?}");
    }

    #[tokio::test]
    async fn an_address_that_must_not_be_used_is_not_asked() {
        let server = kumi_server::embedded().expect("a server");
        let id = server.handle().data_id().to_string();
        let hidden = StoreRoute {
            problem: Some("it is on loopback".into()),
            ..route(&server, &id)
        };
        let reach = reached(hidden).await;
        assert!(!reach.is_up);
        assert_eq!(reach.reason.as_deref(), Some("it is on loopback"));
    }

    /// A node of a Redis Cluster, as far as the probe needs it.
    async fn serve(listener: TcpListener, nodes: String) {
        let mut connections = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            let nodes = nodes.clone();
            connections.spawn(async move {
                let mut lines = BufReader::new(stream);
                let mut line = String::new();
                // Every command has its name in its third line, after the count and the length.
                let (mut words, mut at) = (0, 0);
                while lines.read_line(&mut line).await.is_ok_and(|read| read > 0) {
                    match line.trim_end().strip_prefix('*') {
                        Some(count) => (words, at) = (count.parse().expect("a count"), 0),
                        None => at += 1,
                    }
                    let name = line.trim_end().to_owned();
                    line.clear();
                    if at != 2 {
                        continue;
                    }
                    for _ in 0..2 * (words - 1) {
                        lines.read_line(&mut line).await.expect("a word");
                        line.clear();
                    }
                    let reply = match &*name {
                        "TIME" => "*2\r\n$1\r\n1\r\n$1\r\n0\r\n".to_owned(),
                        "CLUSTER" => format!("${}\r\n{nodes}\r\n", nodes.len()),
                        _ => "+OK\r\n".to_owned(),
                    };
                    let written = lines.get_mut().write_all(reply.as_bytes()).await;
                    written.expect("written");
                }
            });
        }
    }

    #[tokio::test]
    async fn a_cluster_outside_is_up_without_the_node_of_the_url() {
        let listen = async || TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let (first, second) = (listen().await, listen().await);
        let [named, other] = [&first, &second].map(|node| node.local_addr().expect("bound"));
        let nodes = format!(
            "a {named}@1 myself,master - 0 0 1 connected 0-9\nb {other}@1 master - 0 0 2 connected 10-16383\n"
        );
        let mut tasks = JoinSet::new();
        let first = tasks.spawn(serve(first, nodes.clone()));
        tasks.spawn(serve(second, nodes));
        let choice = watch::Sender::new(Choice {
            route: Some(Arc::new(StoreRoute::outside(&format!("redis://{named}")))),
            ..Choice::default()
        });
        let (sender, mut reach) = watch::channel(Reach::default());
        tasks.spawn(probe(choice.subscribe(), sender));
        let mut becomes = async |is_up: bool| {
            let told = reach.wait_for(|reach| reach.is_up == is_up);
            timeout(STUCK, told)
                .await
                .expect("in time")
                .expect("it probes");
        };
        becomes(true).await;
        first.abort();
        becomes(false).await;
        becomes(true).await;
    }

    #[test]
    fn primaries_are_those_that_are_up() {
        let nodes = "\
            a 10.0.0.1:6379@16379 myself,master - 0 0 1 connected 0-5460\n\
            b 10.0.0.2:6379@16379,b.example master - 0 0 2 connected 5461-10922\n\
            c 10.0.0.3:6379@16379 slave a 0 0 1 connected\n\
            d 10.0.0.4:6379@16379 master,fail - 0 0 3 disconnected\n\
            e :0@0 master,noaddr - 0 0 3 disconnected\n\
            f ::1:7000@17000 master - 0 0 4 connected 10923-16383\n\
            nonsense\n";
        let expected = ["10.0.0.1:6379", "10.0.0.2:6379", "::1:7000"];
        assert_eq!(primaries(nodes), expected);
    }

    #[test]
    fn a_store_that_loads_is_told_from_another_one() {
        let id: StoreId = "aa".parse().expect("an id");
        let says = |info: &str| has_data_set(info, &id);
        assert_eq!(says("# Server\r\nkumi_data_id:aa\r\nloading:0\r\n"), Ok(()));
        let loading = says("kumi_data_id:bb\r\nloading:1\r\n").expect_err("it loads");
        assert!(loading.starts_with("LOADING"), "{loading}");
        let redis = says("redis_version:7.4.0\r\nloading:0\r\n").expect_err("no kumi");
        assert!(redis.contains("not a store of kumi"), "{redis}");
    }
}
