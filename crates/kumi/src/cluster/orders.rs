//! `kumi cluster leave` and `kumi cluster quarantine`: what an operator tells a node to do.

use super::failure::Failure;
use super::members::connect;
use super::options::{LeaveOptions, QuarantineOptions};
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

pub(super) async fn quarantine(options: &QuarantineOptions) -> Result<(), Failure> {
    let authority = &options.authority;
    if Authority::new(authority).is_err() {
        return Err(Failure::usage(format!(
            "'{}' is not the name of a member: 1 to 255 visible ASCII characters",
            terminal::quoted(authority)
        )));
    }
    let client = connect(&options.ask).await?;
    let done = match options.lift {
        true => client.release(authority).await,
        false => {
            client
                .quarantine(authority, &options.reason, options.time)
                .await
        }
    };
    client.close().await;
    done?;
    let line = match options.lift {
        true => format!("{authority} may come back"),
        false => {
            let ms = u64::try_from(options.time.as_millis()).unwrap_or(u64::MAX);
            format!("{authority} is quarantined for {}", words::age(ms))
        }
    };
    Ok(terminal::say(&line)?)
}
