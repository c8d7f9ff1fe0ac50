//! What a node has before it joins: its place, its keys, its store, and the listeners of HTTP. A fault in any of them ends the
//! start before another node has heard of this one.

use super::builder::Builder;
use super::error::NodeError;
use super::listen;
use crate::config::{NodeConfig, StoreSection};
use crate::core::place::{self, Place, Service};
use crate::driver::certificate::NodeCertificate;
use crate::driver::keys::Keys;
use crate::driver::membership;
use crate::driver::state_dir::StateDir;
use crate::driver::store::OwnStore;
use crate::http::HttpListener;
use std::net::{IpAddr, SocketAddr};

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
    /// None without HTTP.
    pub(super) listeners: Option<Vec<HttpListener>>,
    pub(super) notes: Vec<String>,
}

impl Ground {
    pub(super) async fn prepare(builder: &Builder) -> Result<Self, NodeError> {
        let config = builder.config.clone().with_defaults();
        let place = membership::choose_place(&config).await?;
        let mut notes = place.notes.clone();
        let state = state_dir(&config)?;
        let keys = Keys::read(&config, builder.key.as_ref(), &state)?;
        let bound = membership::bound(&config, &place);
        let certificate = NodeCertificate::new(&keys, place.name.as_str(), hosts(&bound, &place))?;
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
        let (store, certificate) = match &config.store {
            StoreSection::Here(here) => {
                let starting = OwnStore::start(here, &bound, &keys, &state, certificate);
                let (store, certificate) = starting.await?;
                (Some(store), certificate)
            }
            _ => (None, certificate),
        };
        Ok(Self {
            membership_port: builder.config.node.port,
            config,
            place,
            state,
            keys,
            certificate,
            store,
            listeners,
            notes,
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
            ("http", self.listeners.is_some()),
        ];
        let has = all.into_iter().filter(|(_, has)| *has);
        has.map(|(role, _)| role).collect()
    }

    /// Where HTTP listens.
    pub(super) fn http_addresses(&self) -> Vec<SocketAddr> {
        let listeners = self.listeners.iter().flatten();
        listeners.map(HttpListener::address).collect()
    }

    /// Where this node reaches its own store: in plain text on loopback if the store listens there.
    pub(super) fn own_store(&self) -> Option<String> {
        let store = self.store.as_ref()?;
        let (plain, tls) = store.addresses();
        let all = || plain.iter().chain(&tls);
        let is_near = |address: &&SocketAddr| address.ip().is_loopback();
        let address = match all().find(is_near).or(all().next()) {
            Some(address) if !address.ip().is_unspecified() => *address,
            // A wildcard takes connections to loopback too.
            _ => SocketAddr::new(place::LOOPBACK, store.port()),
        };
        Some(address.to_string())
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

/// The names and addresses by which others reach the node, for its certificate.
fn hosts(bound: &[IpAddr], place: &Place) -> Vec<String> {
    let bound = bound.iter().filter(|address| !address.is_unspecified());
    let bound = bound.map(IpAddr::to_string);
    let mut hosts: Vec<String> = bound.chain(place.advertise.clone()).collect();
    hosts.sort();
    hosts.dedup();
    hosts
}
