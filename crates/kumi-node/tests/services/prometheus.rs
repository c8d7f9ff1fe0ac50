//! Prometheus's own tools read the metrics of a real store: promtool checks the text, a server scrapes it.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::pin::Pin;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use kumi_node::http::{
    HttpOptions, HttpServer, MemberFacts, NodeSnapshot, ProgramFacts, QueueFacts, Readiness,
    Source, StoreFacts, UnitFacts,
};
use kumi_node::trust::LeafNames;

use crate::store::Store;
use crate::web::{LONG, at, get, loopback, wildcard};

/// A node with a real store; the rest is made up.
struct Node(Store);

impl Source for Node {
    fn readiness(&self) -> Readiness {
        Readiness::Ready
    }

    fn snapshot(&self) -> Pin<Box<dyn Future<Output = NodeSnapshot> + Send>> {
        let mut client = self.0.connect_as(&self.0.trust.node_user());
        let info = client.ask(&["INFO", "everything"]);
        let one = |name: &str| BTreeMap::from([(name.to_owned(), 1)]);
        let snapshot = NodeSnapshot {
            name: "a".into(),
            version: "0.1.0".into(),
            roles: vec!["store".into(), "member".into()],
            attention: one("red"),
            store: Some(StoreFacts { info: Some(info) }),
            members: Some(MemberFacts {
                by_status: one("up"),
                highest_phi: Some(0.5),
                ..MemberFacts::default()
            }),
            queues: vec![QueueFacts {
                queue: "mail \"q\" \\ é".into(),
                tasks: one("queued"),
                oldest_waiting_seconds: Some(0.5),
                events: one("enqueued"),
                ..QueueFacts::default()
            }],
            units: vec![UnitFacts {
                unit: "web".into(),
                p99_seconds: Some(0.001),
                ..UnitFacts::default()
            }],
            programs: vec![ProgramFacts {
                program: "api".into(),
                ..ProgramFacts::default()
            }],
        };
        Box::pin(async { snapshot })
    }

    fn is_metrics_token(&self, presented: &[u8]) -> bool {
        self.0.trust.is_metrics_token(presented)
    }
}

/// Plain on loopback, TLS with a token elsewhere.
fn start() -> (HttpServer, Arc<Node>) {
    let store = Store::start();
    let mut client = store.connect();
    client.ask(&["SET", "a", "b", "EX", "1000"]);
    client.ask(&["GET", "none"]);
    client.ask(&["LPUSH", "a", "b"]);
    let names = LeafNames::new("a", ["127.0.0.1".to_owned()]);
    let leaf = store
        .trust
        .authority()
        .sign(&names, SystemTime::now())
        .expect("a leaf");
    let config = leaf.server_config().expect("a configuration");
    let listeners = vec![
        loopback(),
        wildcard().with_tls(Arc::new(move || config.clone())),
    ];
    let node = Arc::new(Node(store));
    let server = HttpServer::start(listeners, HttpOptions::default(), node.clone());
    (server.expect("a server"), node)
}

#[test]
fn promtool_finds_nothing_wrong_but_names_of_redis_exporter() {
    let (server, _node) = start();
    let (status, _, text) = get(at(&server, 0), "/metrics");
    assert_eq!(status, 200);
    let mut promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool is installed: ci/packages.sh");
    let mut input = promtool.stdin.take().expect("a pipe");
    input.write_all(text.as_bytes()).expect("taken");
    drop(input);
    let output = promtool.wait_with_output().expect("an end");
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    // 3: the text is right, and the style of some names is not.
    assert!(
        matches!(output.status.code(), Some(0 | 3)),
        "{said}\n{text}"
    );
    for line in said.lines() {
        assert!(line.starts_with("redis_"), "{line}");
    }
    for name in [
        "redis_up 1",
        "redis_db_keys{db=\"db0\"} 1",
        "redis_commands_total{cmd=\"set\"} 1",
        "redis_errors_total{err=\"WRONGTYPE\"} 1",
    ] {
        assert!(text.lines().any(|line| line == name), "{name}\n{text}");
    }
}

/// Every metric that the usual dashboard and alerts for redis_exporter ask for, where the store has such a thing.
#[test]
fn metrics_of_dashboards_and_alerts_are_there() {
    let (server, _node) = start();
    let text = get(at(&server, 0), "/metrics").2;
    for name in [
        "redis_up",
        "redis_uptime_in_seconds",
        "redis_connected_clients",
        "redis_blocked_clients",
        "redis_config_maxclients",
        "redis_memory_used_bytes",
        "redis_memory_used_rss_bytes",
        "redis_memory_max_bytes",
        "redis_total_system_memory_bytes",
        "redis_mem_fragmentation_ratio",
        "redis_commands_processed_total",
        "redis_commands_total",
        "redis_commands_duration_seconds_total",
        "redis_connections_received_total",
        "redis_rejected_connections_total",
        "redis_keyspace_hits_total",
        "redis_keyspace_misses_total",
        "redis_expired_keys_total",
        "redis_evicted_keys_total",
        "redis_net_input_bytes_total",
        "redis_net_output_bytes_total",
        "redis_db_keys",
        "redis_db_keys_expiring",
        "redis_instance_info",
        "redis_connected_slaves",
        "redis_rdb_last_save_timestamp_seconds",
        "redis_rdb_last_bgsave_status",
        "redis_aof_last_write_status",
        "redis_aof_enabled",
        "redis_loading_dump_file",
        "redis_cpu_user_seconds_total",
    ] {
        let has = |line: &str| {
            let rest = line.strip_prefix(name);
            rest.is_some_and(|rest| rest.starts_with([' ', '{']))
        };
        assert!(text.lines().any(has), "{name}\n{text}");
    }
}

struct Prometheus {
    child: Child,
    port: u16,
    directory: tempfile::TempDir,
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Prometheus {
    fn start(server: &HttpServer, node: &Node) -> Prometheus {
        let directory = tempfile::tempdir().expect("a directory");
        let path = |name: &str| directory.path().join(name);
        fs::write(path("ca.pem"), node.0.trust.authorities_pem()).expect("written");
        fs::write(path("token"), node.0.trust.metrics_token().expose()).expect("written");
        let config = format!(
            "global: {{scrape_interval: 1s, scrape_timeout: 1s}}\n\
             scrape_configs:\n\
             - job_name: open\n  static_configs: [{{targets: ['{open}']}}]\n\
             - job_name: tls\n  scheme: https\n  authorization: {{credentials_file: token}}\n  \
             tls_config: {{ca_file: ca.pem}}\n  static_configs: [{{targets: ['{tls}']}}]\n\
             - job_name: no_token\n  scheme: https\n  \
             tls_config: {{ca_file: ca.pem}}\n  static_configs: [{{targets: ['{tls}']}}]\n",
            open = at(server, 0),
            tls = at(server, 1),
        );
        fs::write(path("prometheus.yml"), config).expect("written");
        // Prometheus takes no port 0. Another process may take the port in between; the port is free again after that.
        let port = TcpListener::bind(("127.0.0.1", 0))
            .expect("a port")
            .local_addr()
            .expect("an address")
            .port();
        let log = fs::File::create(path("log")).expect("a file");
        let child = Command::new("prometheus")
            .arg(format!(
                "--config.file={}",
                path("prometheus.yml").display()
            ))
            .arg(format!("--storage.tsdb.path={}", path("data").display()))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .stdout(log.try_clone().expect("a file"))
            .stderr(log)
            .spawn()
            .expect("prometheus is installed: ci/packages.sh");
        Prometheus {
            child,
            port,
            directory,
        }
    }

    /// The values of a query by the label `job`, or none if Prometheus does not answer yet.
    fn query(&self, query: &str) -> BTreeMap<String, String> {
        let path = format!("/api/v1/query?query={query}");
        let address = ([127, 0, 0, 1], self.port).into();
        if std::net::TcpStream::connect::<std::net::SocketAddr>(address).is_err() {
            return BTreeMap::new();
        }
        let (_, _, body) = get(address, &path);
        let start = body.find('{').unwrap_or(body.len());
        let end = body.rfind('}').map_or(start, |end| end + 1);
        let value: serde_json::Value = serde_json::from_str(&body[start..end]).unwrap_or_default();
        let found = value["data"]["result"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let pair = |series: &serde_json::Value| {
            let job = series["metric"]["job"].as_str()?.to_owned();
            Some((job, series["value"][1].as_str()?.to_owned()))
        };
        found.iter().filter_map(pair).collect()
    }
}

#[test]
fn prometheus_scrapes_the_node_in_the_open_and_by_tls_with_a_token() {
    let (server, node) = start();
    let prometheus = Prometheus::start(&server, &node);
    let wanted = |value: &str, jobs: &[&str]| -> BTreeMap<String, String> {
        jobs.iter()
            .map(|job| ((*job).to_owned(), value.to_owned()))
            .collect()
    };
    let mut up = wanted("1", &["open", "tls"]);
    up.insert("no_token".into(), "0".into());
    let checks = [
        ("up", up),
        ("redis_up", wanted("1", &["open", "tls"])),
        ("redis_db_keys", wanted("1", &["open", "tls"])),
        ("kumi_cluster_members", wanted("1", &["open", "tls"])),
        ("kumi_jobs_tasks", wanted("1", &["open", "tls"])),
    ];
    let began = Instant::now();
    for (query, expected) in checks {
        loop {
            let found = prometheus.query(query);
            if found == expected {
                break;
            }
            let log =
                || fs::read_to_string(prometheus.directory.path().join("log")).unwrap_or_default();
            assert!(began.elapsed() < LONG, "{query}: {found:?}\n{}", log());
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}
