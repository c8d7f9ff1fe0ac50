//! `kumi cluster leave`, `quarantine` and `metadata`: what an operator tells a node to do.

use super::failure::Failure;
use super::members::{self, connect};
use super::options::{LeaveOptions, MetadataOptions, MetadataTask, QuarantineOptions, authority};
use super::words;
use crate::terminal;
use kumi_cluster::Authority;
use std::time::Duration;

/// How long a node that agreed to leave may take before nobody waits for it any more.
const LEAVE_PATIENCE: Duration = Duration::from_secs(30);

pub(super) async fn leave(options: &LeaveOptions) -> Result<(), Failure> {
    let client = connect(&options.ask).await?;
    let node = client.members().await?.node;
    client.leave().await?;
    let gone = tokio::time::timeout(LEAVE_PATIENCE, client.gone()).await;
    client.close().await;
    if gone.is_err() {
        let text = format!(
            "{} agreed to leave and is still there",
            terminal::quoted(&node)
        );
        return Err(Failure::Ended(text));
    }
    terminal::say(&format!("{} has left", terminal::quoted(&node)))?;
    Ok(())
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
    let node = terminal::quoted(&view.node);
    Ok(terminal::say(&format!("{node} says {says}"))?)
}

pub(super) async fn quarantine(options: &QuarantineOptions) -> Result<(), Failure> {
    let name = &options.authority;
    let is_name = match options.lift {
        // Whatever somebody managed to order can be lifted.
        true => Authority::new(name).is_ok(),
        false => authority(name).is_ok(),
    };
    if !is_name {
        return Err(Failure::usage(format!(
            "'{}' is not the name of a member, host:port as 'kumi cluster members' shows it",
            terminal::quoted(name)
        )));
    }
    let client = connect(&options.ask).await?;
    let done = match options.lift {
        true => client.release(name).await,
        false => client.quarantine(name, &options.reason, options.time).await,
    };
    client.close().await;
    done?;
    let line = match options.lift {
        true => format!("{name} may come back"),
        false => {
            let ms = u64::try_from(options.time.as_millis()).unwrap_or(u64::MAX);
            format!("{name} is quarantined for {}", words::age(ms))
        }
    };
    Ok(terminal::say(&line)?)
}
