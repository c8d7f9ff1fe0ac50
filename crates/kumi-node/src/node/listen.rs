//! The listeners of the node's HTTP server.

use super::error::NodeError;
use crate::config::{HTTP_PORT, NodeConfig};
use crate::core::place::{self, Place, Service, TakenPort};
use crate::driver::certificate::NodeCertificate;
use crate::http::{HostNames, HttpError, HttpListener, HttpOptions};
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};

/// How often a free port is chosen anew, because one of its addresses is taken.
const PORT_ATTEMPTS: usize = 5;

/// Binds all addresses, for plain text on loopback and for TLS elsewhere. `port` is the one that was named, if one was: only
/// the usual port is replaced when it is taken. What a person should be told is added to `notes`.
pub(super) fn bind(
    addresses: &[IpAddr],
    port: Option<u16>,
    certificate: &NodeCertificate,
    notes: &mut Vec<String>,
) -> Result<Vec<HttpListener>, NodeError> {
    let wanted = port.unwrap_or(HTTP_PORT);
    let mut used = wanted;
    for _ in 0..PORT_ATTEMPTS {
        match bind_all(addresses, used) {
            Ok(listeners) => {
                let first = listeners.first().map(|first| first.address().port());
                let chosen = first.unwrap_or(used);
                if wanted != 0 && chosen != wanted {
                    notes.push(place::replaced_port(Service::Http, wanted, chosen));
                }
                let listeners = listeners.into_iter().map(|listener| {
                    match listener.address().ip().is_loopback() {
                        true => listener,
                        false => listener.with_tls(certificate.http()),
                    }
                });
                return Ok(listeners.collect());
            }
            Err(HttpError::Listen { address, source }) if source.kind() == ErrorKind::AddrInUse => {
                let is_named = port.is_some_and(|port| port != 0);
                match place::taken_port(Service::Http, address.ip(), used, is_named) {
                    TakenPort::AnyFree => used = 0,
                    TakenPort::Refuse(words) => return Err(NodeError::HttpPortTaken(words)),
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
    let words = "no port is free on all addresses of this node: name one with --http-port PORT";
    Err(NodeError::HttpPortTaken(words.into()))
}

/// Binds one port on all addresses; 0 takes a free one of the first. An IPv6 loopback that the machine does not have is left
/// out, unless it is the only address.
fn bind_all(addresses: &[IpAddr], port: u16) -> Result<Vec<HttpListener>, HttpError> {
    let mut listeners: Vec<HttpListener> = Vec::new();
    for address in addresses {
        let port = match listeners.first() {
            Some(first) => first.address().port(),
            None => port,
        };
        match HttpListener::bind(SocketAddr::new(*address, port)) {
            Ok(listener) => listeners.push(listener),
            Err(HttpError::Listen { source, .. })
                if source.kind() == ErrorKind::AddrNotAvailable
                    && address.is_ipv6()
                    && address.is_loopback()
                    && addresses.len() > 1 => {}
            Err(error) => return Err(error),
        }
    }
    Ok(listeners)
}

/// The names that HTTP answers to.
pub(super) fn options(config: &NodeConfig, place: &Place) -> HttpOptions {
    let names = config.http.allow_hosts.iter().map(String::as_str);
    let names = names.chain(place.advertise.as_deref());
    HttpOptions {
        hosts: HostNames::new(names),
        ..HttpOptions::default()
    }
}
