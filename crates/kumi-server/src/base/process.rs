//! What the system says about the process: resident memory, CPU time. Zero or empty where it does not say it.

use std::fs;

/// CPU time of a process or of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CpuTimes {
    pub(crate) user_us: u64,
    pub(crate) system_us: u64,
}

impl CpuTimes {
    /// Reads a `stat` file of `/proc`.
    pub(crate) fn read(path: &str) -> Self {
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

/// Resident memory of the process.
pub(crate) fn rss_bytes() -> u64 {
    let text = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text
        .split_ascii_whitespace()
        .nth(1)
        .and_then(|pages| pages.parse().ok())
        .unwrap_or(0u64);
    pages * rustix::param::page_size() as u64
}

/// Memory of the machine.
pub(crate) fn system_memory_bytes() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))
        .and_then(|rest| rest.trim().strip_suffix("kB"))
        .and_then(|kib| kib.trim().parse().ok())
        .unwrap_or(0u64);
    kib * 1024
}

/// The name, release and architecture of the system.
pub(crate) fn os() -> String {
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
