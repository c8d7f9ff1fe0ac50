//! `kumi cluster leave`, `quarantine` and `metadata`: what an operator tells a node to do.

use super::failure::Failure;
use super::members::{self, connect};
use super::options::{LeaveOptions, MetadataOptions, MetadataTask, QuarantineOptions, authority};
use super::words;
use crate::command_line::terminal;
use kumi_cluster::Authority;
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// How long a node that agreed to leave may take before the command gives up.
const LEAVE_PATIENCE: Duration = Duration::from_secs(30);

/// How long the process of a node that has left may take to end, and how often it is looked whether it has.
const PORT_PATIENCE: Duration = Duration::from_secs(10);
const PORT_LOOK: Duration = Duration::from_millis(10);

pub(super) async fn leave(options: &LeaveOptions) -> Result<(), Failure> {
    let client = connect(&options.ask).await?;
    let node = client.members().await?.node;
    client.leave().await?;
    let gone = tokio::time::timeout(LEAVE_PATIENCE, client.gone()).await;
    client.close().await;
    if gone.is_err() {
        let text = format!("{} agreed to leave and is still there", words::shown(&node));
        return Err(Failure::Ended(text));
    }
    port_freed(&node).await;
    terminal::say(&format!("{} has left", words::shown(&node)))?;
    Ok(())
}

/// Waits until the node's port is free, if the node was on this machine: whatever follows may want to listen there.
async fn port_freed(node: &str) {
    let Ok(address) = node.parse::<SocketAddr>() else {
        return;
    };
    let until = Instant::now() + PORT_PATIENCE;
    let is_taken = |error: &std::io::Error| error.kind() == ErrorKind::AddrInUse;
    while UdpSocket::bind(address).is_err_and(|error| is_taken(&error)) && Instant::now() < until {
        tokio::time::sleep(PORT_LOOK).await;
    }
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
    let says = own.map_or_else(|| "nothing".into(), members::metadata);
    let node = words::shown(&view.node);
    Ok(terminal::say(&format!("{node} says {says}"))?)
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
    let line = match (options.lift, is_member) {
        (true, true) => format!("the quarantine of {name} is lifted; it is a member"),
        (true, false) => format!("the quarantine of {name} is lifted; it may join again"),
        (false, _) => {
            let ms = u64::try_from(options.time.as_millis()).unwrap_or(u64::MAX);
            let unknown = match is_member {
                true => "",
                false => "; no member has that name now, one that comes is kept out",
            };
            format!("{name} is quarantined for {}{unknown}", words::age(ms))
        }
    };
    Ok(terminal::say(&line)?)
}
