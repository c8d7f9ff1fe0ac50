//! Which cores the servers get and which the clients.
//!
//! A child inherits the mask of the thread that spawns it, so pinning a server means spawning it while this thread has
//! the server's mask: no thread of the server ever runs elsewhere. With one core, or where the system refuses, nothing
//! is pinned and the report says so.

use std::fmt;

/// The split of the cores this process may use.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cores {
    Unpinned,
    Split {
        server: Vec<usize>,
        client: Vec<usize>,
    },
}

impl Cores {
    /// Splits the cores of this process and moves the calling thread to the clients' side.
    pub(crate) fn pinned() -> Cores {
        let cores = split(&system::allowed(), system::siblings);
        match &cores {
            Cores::Split { client, .. } if system::pin(client) => cores,
            _ => Cores::Unpinned,
        }
    }

    /// Runs `spawn` so that the processes and threads it starts are on the server's core.
    pub(crate) fn on_server_side<T>(&self, spawn: impl FnOnce() -> T) -> T {
        match self {
            Cores::Unpinned => spawn(),
            Cores::Split { server, client } => {
                system::pin(server);
                let spawned = spawn();
                system::pin(client);
                spawned
            }
        }
    }
}

impl fmt::Display for Cores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cores::Unpinned => write!(f, "not pinned"),
            Cores::Split { server, client } => write!(
                f,
                "servers on {}, clients on {}",
                list(server),
                list(client)
            ),
        }
    }
}

fn list(cpus: &[usize]) -> String {
    let names: Vec<String> = cpus.iter().map(usize::to_string).collect();
    format!("cpu {}", names.join(","))
}

/// The last core for the server, because the first ones usually take the interrupts; all others for the clients, except
/// the server core's own hyperthreads, which would share its execution units.
fn split(allowed: &[usize], siblings: impl Fn(usize) -> Vec<usize>) -> Cores {
    let Some((&server, rest)) = allowed.split_last() else {
        return Cores::Unpinned;
    };
    if rest.is_empty() {
        return Cores::Unpinned;
    }
    let shared = siblings(server);
    let apart: Vec<usize> = rest
        .iter()
        .copied()
        .filter(|cpu| !shared.contains(cpu))
        .collect();
    let client = if apart.is_empty() {
        rest.to_vec()
    } else {
        apart
    };
    Cores::Split {
        server: vec![server],
        client,
    }
}

/// Parses the kernel's list form, as in `0-3,8`. What is not understood is left out.
fn parse_cpu_list(text: &str) -> Vec<usize> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.parse::<usize>(), last.parse::<usize>()) {
            cpus.extend(first..=last);
        }
    }
    cpus
}

#[cfg(target_os = "linux")]
mod system {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    pub(super) fn allowed() -> Vec<usize> {
        match sched_getaffinity(None) {
            Ok(set) => (0..CpuSet::MAX_CPU)
                .filter(|&cpu| set.is_set(cpu))
                .collect(),
            Err(_) => Vec::new(),
        }
    }

    pub(super) fn pin(cpus: &[usize]) -> bool {
        let mut set = CpuSet::new();
        for &cpu in cpus {
            set.set(cpu);
        }
        sched_setaffinity(None, &set).is_ok()
    }

    pub(super) fn siblings(cpu: usize) -> Vec<usize> {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
        std::fs::read_to_string(path)
            .map(|text| super::parse_cpu_list(&text))
            .unwrap_or_default()
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    pub(super) fn allowed() -> Vec<usize> {
        Vec::new()
    }

    pub(super) fn pin(_cpus: &[usize]) -> bool {
        false
    }

    pub(super) fn siblings(_cpu: usize) -> Vec<usize> {
        super::parse_cpu_list("")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_cores_are_one_each() {
        let expected = Cores::Split {
            server: vec![1],
            client: vec![0],
        };
        assert_eq!(split(&[0, 1], |cpu| vec![cpu]), expected);
    }

    #[test]
    fn the_servers_hyperthread_stays_empty() {
        let expected = Cores::Split {
            server: vec![3],
            client: vec![0, 2],
        };
        assert_eq!(split(&[0, 1, 2, 3], |cpu| vec![cpu, cpu - 2]), expected);
    }

    #[test]
    fn hyperthreads_of_one_core_are_better_than_nothing() {
        let expected = Cores::Split {
            server: vec![1],
            client: vec![0],
        };
        assert_eq!(split(&[0, 1], |_| vec![0, 1]), expected);
    }

    #[test]
    fn one_core_is_not_split() {
        assert_eq!(split(&[0], |cpu| vec![cpu]), Cores::Unpinned);
        assert_eq!(split(&[], |cpu| vec![cpu]), Cores::Unpinned);
    }

    #[test]
    fn cpu_lists_hold_ranges_and_single_cores() {
        let check =
            |text, expected: &[usize]| assert_eq!(parse_cpu_list(text), expected, "{text:?}");
        check("0-3,8\n", &[0, 1, 2, 3, 8]);
        check("5", &[5]);
        check("", &[]);
        check("x,2", &[2]);
    }
}
