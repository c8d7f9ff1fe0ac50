//! How many clients the process has file descriptors for.

use kumi_store::Config;
use kumi_store::config::Origin;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors that are not clients: listeners, the poll, the log, a file being rewritten.
const RESERVED: u64 = 32;

/// Raises the process's limit so that `clients` fit. Answers how many do.
pub(crate) fn make_room(clients: usize) -> usize {
    let wanted = clients as u64 + RESERVED;
    let limit = getrlimit(Resource::Nofile);
    // No limit is shown as none.
    let current = limit.current.unwrap_or(u64::MAX);
    if current >= wanted {
        return clients;
    }
    // First what is wanted, hard limit and all (only root may raise that), then what is allowed.
    let hard = limit.maximum.unwrap_or(u64::MAX);
    let attempts = [(wanted, hard.max(wanted)), (hard.min(wanted), hard)];
    for (current, maximum) in attempts {
        let raised = Rlimit {
            current: Some(current),
            maximum: (maximum != u64::MAX).then_some(maximum),
        };
        if setrlimit(Resource::Nofile, raised).is_ok() {
            break;
        }
    }
    let current = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let fit = current.saturating_sub(RESERVED).max(1);
    clients.min(usize::try_from(fit).unwrap_or(usize::MAX))
}

/// Makes room for `maxclients`, or lowers it to what fits, as Redis does.
pub(crate) fn fit_maxclients(config: &mut Config) {
    let wanted = config.settings().maxclients;
    let fit = make_room(wanted);
    if fit == wanted {
        return;
    }
    tracing::warn!(
        "You requested maxclients of {wanted}, which takes more file descriptors than the system \
         gives this process. maxclients is {fit} now; raise 'ulimit -n' if you need more."
    );
    let text = fit.to_string();
    let pair: (&[u8], &[u8]) = (b"maxclients", text.as_bytes());
    match config.set_many(&[pair], Origin::Host) {
        Ok(_changes) => {}
        Err(error) => tracing::error!(%error, "maxclients could not be lowered"),
    }
}
