//! Figures about the process for INFO and MEMORY: resident memory, CPU time, listeners. Zero or empty
//! where the system does not provide them.

use crate::front::Front;
use crate::listen::Listener;
use kumi_store::HostFacts;
use std::fs;

impl Front {
    pub(crate) fn gather_facts(&self) -> HostFacts {
        let process = CpuTimes::read("/proc/self/stat");
        let thread = CpuTimes::read("/proc/thread-self/stat");
        let path = |path: Option<&std::path::Path>| {
            path.map_or_else(String::new, |path| path.display().to_string())
        };
        let executable = std::env::current_exe().ok();
        let mut facts = HostFacts::default();
        facts.rss_bytes = rss_bytes();
        facts.startup_rss_bytes = self.startup_rss_bytes;
        facts.system_memory_bytes = system_memory_bytes();
        facts.cpu_user_us = process.user_us;
        facts.cpu_system_us = process.system_us;
        facts.cpu_main_user_us = thread.user_us;
        facts.cpu_main_system_us = thread.system_us;
        facts.process_id = std::process::id();
        facts.executable = path(executable.as_deref());
        facts.config_file = path(self.config.file.as_deref());
        facts.os = os();
        facts.allocator = self.config.allocator.clone();
        facts.supervised = self.config.supervised;
        facts.multiplexing = if cfg!(target_os = "linux") {
            "epoll".into()
        } else {
            "kqueue".into()
        };
        facts.listeners = self.listener_lines();
        facts.tcp_port = self.tcp_port();
        facts.rejected_connections = self.rejected_connections;
        facts.log = self.log_facts();
        facts.discards_pending = self.discarder.pending();
        facts
    }

    fn tcp_port(&self) -> u16 {
        let mut listeners = self.listeners.iter().flatten();
        listeners
            .find_map(Listener::tcp_address)
            .map_or(0, |address| address.port())
    }

    /// One line for all TCP addresses and one per Unix socket, as Redis groups them.
    fn listener_lines(&self) -> Vec<String> {
        let tcp: Vec<_> = self
            .listeners
            .iter()
            .flatten()
            .filter_map(Listener::tcp_address)
            .collect();
        let unix = self.listeners.iter().flatten().filter_map(|listener| {
            let path = listener.unix_path()?;
            Some(format!("name=unix,bind={}", path.display()))
        });
        let tls = self.listeners.iter().flatten();
        let tls: Vec<_> = tls.filter_map(Listener::tls_address).collect();
        let mut lines = Vec::new();
        for (name, addresses) in [("tcp", tcp), ("tls", tls)] {
            if let Some(first) = addresses.first() {
                let binds = addresses.iter().map(|at| format!("bind={},", at.ip()));
                let binds: String = binds.collect();
                lines.push(format!("name={name},{binds}port={}", first.port()));
            }
        }
        lines.extend(unix);
        lines
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct CpuTimes {
    user_us: u64,
    system_us: u64,
}

impl CpuTimes {
    fn read(path: &str) -> Self {
        let text = fs::read_to_string(path).unwrap_or_default();
        Self::parse(&text, rustix::param::clock_ticks_per_second()).unwrap_or_default()
    }

    /// The name in parentheses may itself contain blanks and parentheses, so fields are counted from
    /// its end. User and system ticks are the 12th and 13th field after it.
    fn parse(text: &str, ticks_per_second: u64) -> Option<Self> {
        let (_, fields) = text.rsplit_once(')')?;
        let mut fields = fields.split_ascii_whitespace().skip(11);
        let mut microseconds = || {
            let ticks: u64 = fields.next()?.parse().ok()?;
            Some(ticks * 1_000_000 / ticks_per_second.max(1))
        };
        Some(Self {
            user_us: microseconds()?,
            system_us: microseconds()?,
        })
    }
}

pub(crate) fn rss_bytes() -> u64 {
    let text = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text
        .split_ascii_whitespace()
        .nth(1)
        .and_then(|pages| pages.parse().ok())
        .unwrap_or(0u64);
    pages * rustix::param::page_size() as u64
}

fn system_memory_bytes() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))
        .and_then(|rest| rest.trim().strip_suffix("kB"))
        .and_then(|kib| kib.trim().parse().ok())
        .unwrap_or(0u64);
    kib * 1024
}

fn os() -> String {
    let name = rustix::system::uname();
    let parts = [name.sysname(), name.release(), name.machine()];
    parts.map(|part| part.to_string_lossy()).join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_times_are_found_behind_a_name_with_blanks_and_parentheses() {
        let text = "42 (a (b) c) S 1 2 3 4 5 6 7 8 9 10 123 45 0 0";
        let times = CpuTimes {
            user_us: 1_230_000,
            system_us: 450_000,
        };
        assert_eq!(CpuTimes::parse(text, 100), Some(times));
        assert_eq!(CpuTimes::parse("", 100), None);
        assert_eq!(CpuTimes::parse("42 (a) S 1", 100), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_has_memory_and_a_system() {
        assert!(rss_bytes() > 0);
        assert!(system_memory_bytes() > rss_bytes());
        assert!(os().starts_with("Linux "));
    }
}
