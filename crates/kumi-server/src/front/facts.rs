//! Figures about the process for INFO and MEMORY: resident memory, CPU time, listeners. Zero or empty
//! where the system does not provide them.

use crate::base::process::{CpuTimes, os, rss_bytes, system_memory_bytes};
use crate::front::Front;
use crate::net::listen::Listener;
use kumi_store::HostFacts;

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
        facts.startup_rss_bytes = self.process.startup_rss_bytes;
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
        facts.rejected_connections = self.acceptor.rejected;
        facts.aof = self.aof_facts();
        facts.discards_pending = self.discarder.pending();
        facts
    }

    fn tcp_port(&self) -> u16 {
        let mut listeners = self.acceptor.open();
        listeners
            .find_map(Listener::tcp_address)
            .map_or(0, |address| address.port())
    }

    /// One line for all TCP addresses and one per Unix socket, as Redis groups them.
    fn listener_lines(&self) -> Vec<String> {
        let open = || self.acceptor.open();
        let tcp: Vec<_> = open().filter_map(Listener::tcp_address).collect();
        let unix = open().filter_map(|listener| {
            let path = listener.unix_path()?;
            Some(format!("name=unix,bind={}", path.display()))
        });
        let tls: Vec<_> = open().filter_map(Listener::tls_address).collect();
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
