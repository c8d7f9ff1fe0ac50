//! The limit of open files, and the number of clients that fit into it.

use kumi_store::Config;
use kumi_store::config::Origin;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors reserved for other uses than clients: listeners, the poll, the log, a file being rewritten.
const RESERVED: u64 = 32;

/// Raises the process's limit of open files for `clients` connections. Returns how many fit.
pub(crate) fn make_room(clients: usize) -> usize {
    let wanted = clients as u64 + RESERVED;
    let limit = getrlimit(Resource::Nofile);
    // `None` means that there is no limit.
    let current = limit.current.unwrap_or(u64::MAX);
    if current >= wanted {
        return clients;
    }
    // First with a raised hard limit, which only root may do; then within the hard limit.
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

/// Raises the limit of open files for `maxclients`, or lowers `maxclients` to what fits, as Redis does.
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
