//! Nodes and operators that show certificates of one authority instead of a key.

use super::nodes::{Cluster, Plan, turn};
use rustix::process::Signal;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Output;
use tempfile::TempDir;

/// For a node on loopback, with any port.
const NODE: &[&str] = &["kumi://127.0.0.1"];
const OPERATOR: &[&str] = &["kumi-role:operator"];

/// A certificate, its key and the authority that signed it, as files.
const PARTS: [&str; 3] = ["cert", "key", "ca"];

/// An authority of the test's own, and what it has signed.
struct Certificates {
    directory: TempDir,
    authority: String,
    issuer: rcgen::Issuer<'static, rcgen::KeyPair>,
}

impl Certificates {
    fn new() -> Self {
        let key = rcgen::KeyPair::generate().expect("randomness");
        let mut params = rcgen::CertificateParams::new(Vec::<String>::new()).expect("no names");
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let authority = params.self_signed(&key).expect("a certificate");
        Self {
            directory: tempfile::tempdir().expect("a temporary directory"),
            authority: authority.pem(),
            issuer: rcgen::Issuer::new(params, key),
        }
    }

    fn file(&self, name: &str, part: &str) -> PathBuf {
        self.directory.path().join(format!("{name}.{part}.pem"))
    }

    /// Signs a certificate for 127.0.0.1 with these URIs, and answers the options that show it.
    fn options(&self, name: &str, uris: &[&str]) -> Vec<String> {
        let key = rcgen::KeyPair::generate().expect("randomness");
        let hosts = vec!["127.0.0.1".to_owned()];
        let mut params = rcgen::CertificateParams::new(hosts).expect("an address");
        for uri in uris {
            let uri = rcgen::SanType::URI((*uri).try_into().expect("ASCII"));
            params.subject_alt_names.push(uri);
        }
        let signed = params.signed_by(&key, &self.issuer).expect("a certificate");
        let texts = [signed.pem(), key.serialize_pem(), self.authority.clone()];
        let mut options = Vec::new();
        for (part, text) in PARTS.into_iter().zip(texts) {
            let path = self.file(name, part);
            std::fs::write(&path, text).expect("it is our directory");
            let private = Permissions::from_mode(0o600);
            std::fs::set_permissions(&path, private).expect("it is ours");
            options.push(format!("--tls-{part}"));
            options.push(path.to_str().expect("text").to_owned());
        }
        options
    }
}

fn node(options: Vec<String>, seeds: &[String]) -> Plan {
    Plan {
        tls: options,
        ..Plan::loopback(seeds)
    }
}

/// Runs `kumi cluster` with these words and options to its end.
fn run(cluster: &Cluster, words: &[&str], options: &[String]) -> Output {
    let options = options.iter().map(String::as_str);
    let words: Vec<&str> = words.iter().copied().chain(options).collect();
    cluster.keys.run(&words)
}

#[track_caller]
fn printed(cluster: &Cluster, words: &[&str], options: &[String]) -> String {
    let output = run(cluster, words, options);
    assert!(output.status.success(), "{words:?}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

#[track_caller]
fn fails(output: &Output, code: i32, text: &str) {
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{error}");
    assert!(error.contains(text), "no {text:?} in {error:?}");
    assert_eq!(output.stdout, b"");
}

#[test]
fn nodes_with_certificates_are_a_cluster_and_only_operators_give_orders() {
    let _turn = turn();
    let ours = Certificates::new();
    let mut cluster = Cluster::new();
    let member = ours.options("first", NODE);
    cluster.add(node(member.clone(), &[]));
    let first = cluster.nodes[0].authority.clone();
    let seeds = [first.clone()];
    cluster.add(node(ours.options("second", NODE), &seeds));
    cluster.agree(&[0, 1]);
    let second = cluster.nodes[1].authority.clone();

    let operator = ours.options("operator", OPERATOR);
    let members = ["members", "--output", "text", "--node", &first];
    let table = printed(&cluster, &members, &operator);
    assert!(table.contains("2 members of kumi"), "{table}");
    // A certificate of a node is not one of an operator, and a key is no certificate.
    let leave = ["leave", "--node", &second];
    let quarantine = ["quarantine", &second, "--node", &first];
    for order in [&members[..], &leave, &quarantine] {
        let refused = run(&cluster, order, &member);
        fails(&refused, 5, "role of an operator");
    }
    fails(&cluster.keys.run(&members), 7, "cannot reach a node at");
    let theirs = Certificates::new();
    let outsider = theirs.options("outsider", OPERATOR);
    let refused = run(&cluster, &members, &outsider);
    fails(&refused, 7, "cannot reach a node at");
    let table = printed(&cluster, &members, &operator);
    let up = table.lines().filter(|line| line.contains(" up ")).count();
    assert_eq!(up, 2, "{table}");

    let said = printed(&cluster, &leave, &operator);
    assert_eq!(said, format!("{second} has left\n"));
    assert_eq!(cluster.nodes[1].ended(), Some(0));
    cluster.agree(&[0]);
}

#[test]
fn a_node_reads_its_certificates_again_at_a_signal() {
    let _turn = turn();
    let (old, new) = (Certificates::new(), Certificates::new());
    let mut cluster = Cluster::new();
    cluster.add(node(old.options("node", NODE), &[]));
    let authority = cluster.nodes[0].authority.clone();
    let members = ["members", "--node", &authority];
    let former = old.options("operator", OPERATOR);
    let operator = new.options("operator", OPERATOR);
    printed(&cluster, &members, &former);
    fails(&run(&cluster, &members, &operator), 7, "cannot reach");

    // Files that do not fit change nothing.
    std::fs::write(old.file("node", "cert"), "no certificate\n").expect("it is ours");
    cluster.nodes[0].signal(Signal::USR1);
    cluster.until("the file is refused", |views| {
        views[0].told("reload_failed").is_some()
    });
    printed(&cluster, &members, &former);

    new.options("node", NODE);
    for part in PARTS {
        let copied = std::fs::copy(new.file("node", part), old.file("node", part));
        copied.expect("both are ours");
    }
    cluster.nodes[0].signal(Signal::USR1);
    cluster.until("the new certificates are in use", |views| {
        views[0].told("reloaded").is_some()
    });
    printed(&cluster, &members, &operator);
    fails(&run(&cluster, &members, &former), 7, "cannot reach");
    cluster.nodes[0].signal(Signal::TERM);
    assert_eq!(cluster.nodes[0].ended(), Some(0));
}
