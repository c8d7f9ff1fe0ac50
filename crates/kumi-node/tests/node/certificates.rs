//! Nodes with certificates of an operator who has an authority of their own.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use kumi_common::Name;
use kumi_node::config::NodeConfig;
use kumi_node::driver::channel::{self, Drain, Operate};

use crate::common::{builder, free_port, in_time, joining, seed, store_at};

/// An authority, with its files in a directory.
struct Authority {
    directory: PathBuf,
    issuer: rcgen::Issuer<'static, rcgen::KeyPair>,
}

impl Authority {
    fn new(directory: &Path) -> Self {
        let key = rcgen::KeyPair::generate().expect("randomness");
        let mut params = rcgen::CertificateParams::new(Vec::<String>::new()).expect("no names");
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let authority = params.self_signed(&key).expect("a certificate");
        std::fs::write(directory.join("ca.pem"), authority.pem()).expect("written");
        Self {
            directory: directory.to_owned(),
            issuer: rcgen::Issuer::new(params, key),
        }
    }

    /// What a node on loopback with a certificate for these URIs is configured with.
    fn node(&self, name: &str, uris: &[&str]) -> NodeConfig {
        let key = rcgen::KeyPair::generate().expect("randomness");
        let names = vec!["127.0.0.1".to_owned()];
        let mut params = rcgen::CertificateParams::new(names).expect("a name");
        for uri in uris {
            let uri = rcgen::SanType::URI((*uri).try_into().expect("ASCII"));
            params.subject_alt_names.push(uri);
        }
        let signed = params.signed_by(&key, &self.issuer).expect("a certificate");
        let [chain, private] = ["cert", "key"].map(|kind| {
            let file = format!("{name}-{kind}.pem");
            self.directory.join(file)
        });
        std::fs::write(&chain, signed.pem()).expect("written");
        std::fs::write(&private, key.serialize_pem()).expect("written");
        let only_own = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(&private, only_own).expect("changed");
        let authority = self.directory.join("ca.pem");
        let text = format!(
            "node {{\n    tls-cert-file {chain:?}\n    tls-key-file {private:?}\n    tls-ca-file {authority:?}\n}}"
        );
        NodeConfig::parse("kumi.kdl", &text).expect("a configuration")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_no_node_could_log_in_to_is_refused_at_the_start() {
    in_time(async {
        let directory = tempfile::tempdir().expect("a directory");
        let authority = Authority::new(directory.path());
        let config = authority.node("a", &["kumi://127.0.0.1"]);
        let mut far = config.clone();
        far.node.advertise = Some("a.example".into());
        far.http.on = Some(false);
        let store = store_at(free_port());
        let far = builder("a", directory.path()).config(far).store(store);
        let error = far.bind([0, 0, 0, 0].into()).start().await;
        let error = error.err().expect("refused").to_string();
        assert!(error.contains("no user to log in"), "{error}");
        assert!(error.contains("--store URL"), "{error}");
        // On loopback it needs none.
        let store = store_at(free_port());
        let near = builder("a", directory.path()).config(config).store(store);
        let near = near.start().await.expect("a node");
        near.ready().await;
        near.shutdown().await.expect("stopped");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_role_in_a_certificate_is_the_operators() {
    in_time(async {
        let directory = tempfile::tempdir().expect("a directory");
        let authority = Authority::new(directory.path());
        let config = authority.node("a", &["kumi://127.0.0.1"]);
        let store = store_at(free_port());
        let a = builder("a", directory.path()).config(config).store(store);
        let a = a.start().await.expect("a node");
        a.ready().await;
        for (name, role) in [("b", None), ("c", Some("kumi-role:operator"))] {
            let uris: Vec<&str> = std::iter::once("kumi://127.0.0.1").chain(role).collect();
            let config = authority.node(name, &uris);
            let node = joining(name, directory.path(), seed(&a)).config(config);
            let node = node.start().await.expect("a node");
            node.ready().await;
            let of_a = Name::new("a").expect("a name");
            let connection = node.cluster().connect(&of_a).await.expect("a connection");
            let client = channel::open(&connection).await.expect("a channel");
            let drained = client.drain(&Drain::default()).await;
            assert_eq!(drained.is_ok(), role.is_some(), "{name}: {drained:?}");
            let shown = client.operate(&Operate::new("x")).await;
            let refused = shown.expect_err("there is no key").to_string();
            assert!(refused.contains("kumi-role:operator"), "{refused}");
            connection.close().await;
            node.shutdown().await.expect("stopped");
        }
        a.shutdown().await.expect("stopped");
    })
    .await;
}
