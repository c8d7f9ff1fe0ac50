//! What a node has before it joins: its place, its keys, its HTTP server, and its store. A fault in any of them ends the start
//! before another node has heard of this one. HTTP is served before the store reads its data, which may take long.

use super::builder::Builder;
use super::error::NodeError;
use super::listen;
use crate::config::{NodeConfig, StoreSection, StoreUrl};
use crate::core::place::{self, Place, Service};
use crate::core::store_pin::StoreId;
use crate::driver::certificate::NodeCertificate;
use crate::driver::keys::Keys;
use crate::driver::membership;
use crate::driver::state_dir::{StateDir, StateLock};
use crate::driver::status::NodeSource;
use crate::driver::store::{OpenStore, OwnStore};
use crate::driver::tasks::Failures;
use crate::http::{HostNames, HttpServer};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use tokio_util::sync::CancellationToken;

/// What a node has before it joins.
pub(super) struct Ground {
    /// With the defaults.
    pub(super) config: NodeConfig,
    /// The port of membership, if one was named: only the usual one is replaced when it is taken.
    pub(super) membership_port: Option<u16>,
    pub(super) place: Place,
    pub(super) state: StateDir,
    pub(super) keys: Keys,
    pub(super) certificate: NodeCertificate,
    pub(super) store: Option<OwnStore>,
    /// The URL of a store outside of the cluster.
    pub(super) outside: Option<String>,
    /// What HTTP shows. It has no facts yet.
    pub(super) source: Arc<NodeSource>,
    /// The names that HTTP answers to.
    pub(super) hosts: HostNames,
    /// None without HTTP.
    pub(super) http: Option<HttpServer>,
    pub(super) notes: Vec<String>,
    pub(super) failures: Failures,
    /// Cancelled when the wait to be let in is over.
    pub(super) begin: CancellationToken,
    /// The last to be dropped: the store is in the directory.
    pub(super) lock: StateLock,
}

impl Ground {
    pub(super) async fn prepare(builder: &Builder) -> Result<Self, NodeError> {
        let config = builder.config.clone().with_defaults();
        let place = membership::choose_place(&config).await?;
        let mut notes = place.notes.clone();
        let state = state_dir(&config)?;
        let lock = state.lock()?;
        let token = config.http.token_file.as_deref().map(read).transpose()?;
        let outside = outside(&config)?;
        let keys = Keys::read(&config, builder.key.as_ref(), &state)?;
        let bound = membership::bound(&config, &place);
        let names = hosts(&config, &bound, &place);
        let certificate = NodeCertificate::new(&keys, place.name.as_str(), names)?;
        // All addresses are taken before data is loaded.
        let opened = match &config.store {
            StoreSection::Here(here) => {
                let given = builder.server.as_ref();
                let opening = OpenStore::open(here, given, &bound, &keys, &state, &certificate);
                Some(opening?)
            }
            _ => None,
        };
        let listeners = match config.http.on {
            Some(false) => None,
            _ => {
                let addresses = match config.http.bind.is_empty() {
                    true => &bound,
                    false => &config.http.bind,
                };
                // The defaults would say that the usual port was named.
                let port = builder.config.http.port;
                Some(listen::bind(addresses, port, &certificate, &mut notes)?)
            }
        };
        let source = Arc::new(NodeSource {
            name: place.name.to_string(),
            has_store: matches!(config.store, StoreSection::Here(_)),
            keys: keys.clone(),
            token: token.map(Into::into),
            runtime: tokio::runtime::Handle::current(),
            collector: OnceLock::new(),
        });
        let options = listen::options(&config, &place);
        let hosts = options.hosts.clone();
        let serve = |listeners| HttpServer::start(listeners, options, source.clone());
        let http = listeners.map(serve).transpose()?;
        let (store, certificate) = match opened {
            Some(opened) => {
                let (store, certificate) = opened.start(certificate).await?;
                (Some(store), certificate)
            }
            None => (None, certificate),
        };
        Ok(Self {
            membership_port: builder.config.node.port,
            config,
            place,
            state,
            keys,
            certificate,
            store,
            outside,
            source,
            hosts,
            http,
            notes,
            failures: Failures::default(),
            begin: CancellationToken::new(),
            lock,
        })
    }

    /// A part that begins when the wait to be let in is over.
    pub(super) fn later<W>(&self, part: &str, work: W) -> impl Future<Output = ()> + Send + use<W>
    where
        W: Future<Output = ()> + Send,
    {
        let begin = self.begin.clone();
        self.failures.watch(part, async move {
            begin.cancelled().await;
            work.await;
        })
    }

    /// What the node does besides being a member.
    pub(super) fn roles(&self, builder: &Builder) -> Vec<&'static str> {
        let config = &self.config;
        let works = !config.work.is_empty()
            || !config.serve.is_empty()
            || !config.run.is_empty()
            || !builder.handlers.is_empty()
            || !builder.serves.is_empty();
        let all = [
            ("store", self.store.is_some()),
            ("worker", works),
            ("http", self.http.is_some()),
        ];
        let has = all.into_iter().filter(|(_, has)| *has);
        has.map(|(role, _)| role).collect()
    }

    /// Where HTTP listens.
    pub(super) fn http_addresses(&self) -> &[SocketAddr] {
        self.http.as_ref().map_or(&[], HttpServer::addresses)
    }

    /// Where other nodes reach the store of this one. One that they do not reach is announced on loopback, which says so.
    pub(super) fn announced_store(&self) -> Option<(StoreId, String)> {
        let store = self.store.as_ref()?;
        let address = match store.port() {
            0 => SocketAddr::new(place::LOOPBACK, 0).to_string(),
            port => membership::advertised(&self.place, port),
        };
        Some((store.id().clone(), address))
    }
}

fn state_dir(config: &NodeConfig) -> Result<StateDir, NodeError> {
    if let Some(path) = &config.node.state_dir {
        return Ok(StateDir::at(path)?);
    }
    let port = match &config.store {
        StoreSection::Here(here) => {
            let port = here.directives.get("port");
            let port = port.and_then(|port| port.parse().ok());
            Some(port.unwrap_or(Service::Store.default_port()))
        }
        _ => None,
    };
    let instance = place::instance(port, config.node.name.as_ref());
    Ok(StateDir::of_instance(&instance)?)
}

fn outside(config: &NodeConfig) -> Result<Option<String>, NodeError> {
    match &config.store {
        StoreSection::Outside(StoreUrl::Plain(url)) => Ok(Some(url.clone())),
        StoreSection::Outside(StoreUrl::File(path)) => Ok(Some(read(path)?)),
        _ => Ok(None),
    }
}

/// The text of a small file, without the end of its line.
fn read(path: &Path) -> Result<String, NodeError> {
    let text = std::fs::read_to_string(path).map_err(|source| NodeError::File {
        path: path.to_owned(),
        source,
    })?;
    Ok(text.trim_end().to_owned())
}

/// The names and addresses by which others reach the node, for its certificate.
fn hosts(config: &NodeConfig, bound: &[IpAddr], place: &Place) -> Vec<String> {
    let bound = bound.iter().chain(&config.http.bind);
    let bound = bound.filter(|address| !address.is_unspecified());
    let bound = bound.map(IpAddr::to_string);
    let mut hosts: Vec<String> = bound.chain(place.advertise.clone()).collect();
    hosts.sort();
    hosts.dedup();
    hosts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::place::Wish;

    #[test]
    fn the_certificate_is_for_every_bound_address_and_the_advertised_name() {
        let ip = |text: &str| text.parse().expect("an address");
        let mut config = NodeConfig::default();
        config.http.bind = vec![ip("10.0.0.8"), ip("127.0.0.1")];
        let wish = Wish {
            advertise: Some("a.example".into()),
            ..Wish::default()
        };
        let place = Place::choose(&wish).expect("a place");
        let bound = ["127.0.0.1", "0.0.0.0", "10.0.0.7"].map(ip);
        let named = ["10.0.0.7", "10.0.0.8", "127.0.0.1", "a.example"];
        assert_eq!(hosts(&config, &bound, &place), named);
    }
}
