//! `kumi cluster leave`, `quarantine` and `metadata`: what an operator tells a node to do.

use super::failure::Failure;
use super::members::{self, connect};
use super::options::{LeaveOptions, MetadataOptions, MetadataTask, QuarantineOptions, authority};
use super::words;
use crate::command_line::terminal;
use kumi_cluster::Authority;
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

/// How long a node that agreed to leave may take before the command gives up.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(30);

/// How long the process of a node that has left may take to end, and how often it is looked whether it has.
const PORT_TIMEOUT: Duration = Duration::from_secs(10);
const PORT_LOOK: Duration = Duration::from_millis(10);

pub(super) async fn leave(options: &LeaveOptions) -> Result<(), Failure> {
    let client = connect(&options.ask).await?;
    let node = client.members().await?.node;
    client.leave().await?;
    let gone = tokio::time::timeout(LEAVE_TIMEOUT, client.gone()).await;
    client.close().await;
    if gone.is_err() {
        let text = format!("{} agreed to leave and is still there", words::shown(&node));
        return Err(Failure::Ended(text));
    }
    let is_free = port_freed(&node, PORT_TIMEOUT).await;
    Ok(terminal::say(&left(&node, is_free))?)
}

/// What became of a node that agreed to leave. It has left the cluster in both cases.
fn left(node: &str, is_port_free: bool) -> String {
    let port = match is_port_free {
        true => "",
        false => "; its port is still in use, by its process or by another one",
    };
    format!("{} has left{port}", words::shown(node))
}

/// Waits until the node's port is free on all addresses of the node that are of this machine: the next command may want
/// to listen there. Says whether it became free.
async fn port_freed(node: &str, timeout: Duration) -> bool {
    let freed = async {
        let Ok(addresses) = tokio::net::lookup_host(node).await else {
            return;
        };
        for address in addresses {
            while is_taken(address) {
                tokio::time::sleep(PORT_LOOK).await;
            }
        }
    };
    tokio::time::timeout(timeout, freed).await.is_ok()
}

/// Whether a socket of this machine has that address. Addresses of other machines cannot be bound, for another reason.
fn is_taken(address: SocketAddr) -> bool {
    UdpSocket::bind(address).is_err_and(|error| error.kind() == ErrorKind::AddrInUse)
}

pub(super) async fn metadata(options: &MetadataTask) -> Result<(), Failure> {
    let MetadataOptions { role, meta } = &options.metadata;
    let client = connect(&options.ask).await?;
    let done = client.set_metadata(role, meta).await;
    let view = match done {
        Ok(()) => client.members().await,
        Err(error) => Err(error),
    };
    client.close().await;
    let view = view?;
    let own = view.members.iter().find(|member| member.is_self);
    let metadata = own.map_or_else(|| "none".into(), members::metadata);
    let node = words::shown(&view.node);
    Ok(terminal::say(&format!("metadata of {node}: {metadata}"))?)
}

pub(super) async fn quarantine(options: &QuarantineOptions) -> Result<(), Failure> {
    let name = &options.authority;
    let is_name = match options.lift {
        // Every order that a node took can be lifted.
        true => Authority::new(name).is_ok(),
        false => authority(name).is_ok(),
    };
    if !is_name {
        return Err(Failure::usage(format!(
            "'{}' is not the name of a member, host:port as 'kumi cluster members' shows it",
            words::shown(name)
        )));
    }
    let client = connect(&options.ask).await?;
    let before = client.members().await;
    let done = match options.lift {
        true => client.release(name).await,
        false => client.quarantine(name, &options.reason, options.time).await,
    };
    let view = match options.lift && done.is_ok() {
        true => client.members().await,
        false => before,
    };
    client.close().await;
    done?;
    let mut members = view?.members.into_iter();
    let is_member = members.any(|member| member.authority == *name && member.is_active());
    let line = match options.lift {
        true => lifted(name, is_member),
        false => quarantined(name, is_member, options.time),
    };
    Ok(terminal::say(&line)?)
}

fn lifted(name: &str, is_member: bool) -> String {
    let state = match is_member {
        true => "it is a member",
        false => "it may join again",
    };
    format!("the quarantine of {name} is lifted; {state}")
}

fn quarantined(name: &str, is_member: bool, time: Duration) -> String {
    let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let unknown = match is_member {
        true => "",
        false => "; no member has that name now, one that comes is kept out",
    };
    format!("{name} is quarantined for {}{unknown}", words::age(ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_reported_with_what_the_node_is_now() {
        let lifted_while = |is_member| lifted("a:1", is_member);
        assert_eq!(
            lifted_while(true),
            "the quarantine of a:1 is lifted; it is a member"
        );
        assert_eq!(
            lifted_while(false),
            "the quarantine of a:1 is lifted; it may join again"
        );
        let quarantined_while = |is_member| quarantined("a:1", is_member, Duration::from_secs(300));
        assert_eq!(quarantined_while(true), "a:1 is quarantined for 5m");
        assert_eq!(
            quarantined_while(false),
            "a:1 is quarantined for 5m; no member has that name now, one that comes is kept out"
        );
    }

    #[tokio::test]
    async fn the_port_of_a_node_that_advertises_a_name_is_waited_for() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let node = format!("localhost:{}", address.port());
        let freed = port_freed(&node, PORT_TIMEOUT);
        tokio::pin!(freed);
        let early = tokio::time::timeout(PORT_LOOK * 20, &mut freed).await;
        assert!(early.is_err(), "the port is taken");
        drop(socket);
        assert!(freed.await);
        assert!(!is_taken(address));
    }

    #[tokio::test]
    async fn a_port_that_stays_in_use_is_reported() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let node = socket.local_addr().unwrap().to_string();
        let is_free = port_freed(&node, PORT_LOOK * 5).await;
        assert!(!is_free);
        let expected =
            format!("{node} has left; its port is still in use, by its process or by another one");
        assert_eq!(left(&node, is_free), expected);
        assert_eq!(left(&node, true), format!("{node} has left"));
    }

    #[tokio::test]
    async fn an_address_of_another_machine_is_not_waited_for() {
        assert!(port_freed("no address", PORT_TIMEOUT).await);
        // Reserved for documentation: no machine has it.
        assert!(port_freed("192.0.2.1:1", PORT_TIMEOUT).await);
    }
}
