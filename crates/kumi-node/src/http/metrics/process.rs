//! This process as the kernel sees it, read from `/proc` where there is one.

use std::fs;

use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{Resource, getrlimit};

use super::exposition::{Exposition, Kind};

pub(super) fn write(out: &mut Exposition) {
    if let Some(facts) = fs::read_to_string("/proc/self/stat")
        .ok()
        .and_then(|text| parse(&text))
    {
        let ticks = clock_ticks_per_second() as f64;
        let help = "CPU time of the process.";
        let cpu = facts.cpu_ticks as f64 / ticks;
        out.single(Kind::Counter, "kumi_process_cpu_seconds_total", help, cpu);
        let help = "Resident memory of the process.";
        let resident = facts.resident_pages * page_size() as u64;
        out.single(Kind::Gauge, "kumi_process_resident_bytes", help, resident);
        let help = "Threads of the process.";
        out.single(Kind::Gauge, "kumi_process_threads", help, facts.threads);
        let boot = fs::read_to_string("/proc/stat")
            .ok()
            .and_then(|text| boot_seconds(&text));
        if let Some(boot) = boot {
            let help = "When the process started, in seconds since 1970.";
            let started = boot as f64 + facts.started_ticks as f64 / ticks;
            out.single(
                Kind::Gauge,
                "kumi_process_start_time_seconds",
                help,
                started,
            );
        }
    }
    if let Ok(entries) = fs::read_dir("/proc/self/fd") {
        // Reading the directory takes one itself.
        let open = entries.count().saturating_sub(1);
        let help = "Open file descriptors of the process.";
        out.single(Kind::Gauge, "kumi_process_open_fds", help, open);
    }
    if let Some(limit) = getrlimit(Resource::Nofile).current {
        let help = "Most open file descriptors of the process.";
        out.single(Kind::Gauge, "kumi_process_max_fds", help, limit);
    }
}

#[derive(Debug, PartialEq, Eq)]
struct ProcessFacts {
    cpu_ticks: u64,
    resident_pages: u64,
    threads: u64,
    started_ticks: u64,
}

/// Reads `/proc/PID/stat` (proc(5)). The second field is a name in parentheses that may hold anything.
fn parse(text: &str) -> Option<ProcessFacts> {
    let (_, rest) = text.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    // The list begins with field 3.
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    Some(ProcessFacts {
        cpu_ticks: field(14)? + field(15)?,
        threads: field(20)?,
        started_ticks: field(22)?,
        resident_pages: field(24)?,
    })
}

/// When the machine started, from `/proc/stat`.
fn boot_seconds(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("btime "))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_and_blanks_does_not_shift_the_fields() {
        let text =
            "7 (a) b (c) S 1 7 7 0 -1 4194560 500 0 0 0 30 12 0 0 20 0 5 0 4000 1000000 250 99 1";
        let expected = ProcessFacts {
            cpu_ticks: 42,
            resident_pages: 250,
            threads: 5,
            started_ticks: 4000,
        };
        assert_eq!(parse(text), Some(expected));
        assert_eq!(parse("7 (a) S 1"), None);
        assert_eq!(parse(""), None);
        assert_eq!(
            boot_seconds("cpu 1 2\nbtime 1700000000\n"),
            Some(1_700_000_000)
        );
    }
}
