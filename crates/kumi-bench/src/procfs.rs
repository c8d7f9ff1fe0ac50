//! CPU time and resident memory of another process, from `/proc`.
//!
//! CPU time is the sum over the threads alive now, in nanoseconds where the kernel keeps `schedstat`, otherwise in clock
//! ticks. A thread that ended between two readings is missing from the second one: fine for servers, whose threads live
//! as long as they do, and the difference never goes below zero.

use std::fs;
use std::io;

use anyhow::{Context, Result};

/// What the threads of a process have used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CpuTime {
    /// Time on a core.
    pub(crate) busy_ns: u64,
    /// Time ready to run while something else had the core: how disturbed a measurement was.
    pub(crate) waited_ns: u64,
}

impl CpuTime {
    pub(crate) fn of(pid: u32) -> Result<CpuTime> {
        let from_threads = sum_of_threads(pid)
            .with_context(|| format!("cannot read CPU time of process {pid}"))?;
        if from_threads.busy_ns > 0 {
            return Ok(from_threads);
        }
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"))
            .with_context(|| format!("cannot read CPU time of process {pid}"))?;
        let ticks = parse_stat_ticks(&stat).context("/proc/PID/stat has an unknown shape")?;
        let tick_ns = 1_000_000_000 / rustix::param::clock_ticks_per_second();
        Ok(CpuTime {
            busy_ns: ticks * tick_ns,
            waited_ns: 0,
        })
    }

    pub(crate) fn since(self, earlier: CpuTime) -> CpuTime {
        CpuTime {
            busy_ns: self.busy_ns.saturating_sub(earlier.busy_ns),
            waited_ns: self.waited_ns.saturating_sub(earlier.waited_ns),
        }
    }
}

/// Resident memory in bytes.
///
/// `smaps_rollup` walks the page tables and is exact; the counters in `status` lag behind by some pages per core.
pub(crate) fn resident_bytes(pid: u32) -> Result<u64> {
    let sources = [("smaps_rollup", "Rss:"), ("status", "VmRSS:")];
    for (file, field) in sources {
        let text = fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
        if let Some(kib) = parse_kib(&text, field) {
            return Ok(kib * 1024);
        }
    }
    anyhow::bail!("cannot read the resident memory of process {pid}")
}

/// Memory of a process and its children in bytes, with pages that several of them share counted once (PSS).
pub(crate) fn proportional_bytes(pid: u32) -> Result<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))
        .with_context(|| format!("cannot read the memory of process {pid}"))?;
    let kib = parse_kib(&text, "Pss:").context("smaps_rollup has no Pss")?;
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let children = children.unwrap_or_default();
    let children = children
        .split_whitespace()
        .filter_map(|pid| pid.parse().ok());
    // A child may have ended since.
    let theirs: u64 = children
        .filter_map(|pid| proportional_bytes(pid).ok())
        .sum();
    Ok(kib * 1024 + theirs)
}

/// The peak of resident memory in bytes since the process started, or since [`reset_peak`].
pub(crate) fn peak_resident_bytes(pid: u32) -> Result<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status"))
        .with_context(|| format!("cannot read the memory of process {pid}"))?;
    let kib = parse_kib(&text, "VmHWM:").context("/proc/PID/status has no VmHWM")?;
    Ok(kib * 1024)
}

/// How many descriptors a process has open.
pub(crate) fn descriptors(pid: u32) -> Result<usize> {
    let open = fs::read_dir(format!("/proc/{pid}/fd"))
        .with_context(|| format!("cannot read the descriptors of process {pid}"))?;
    Ok(open.count())
}

/// Makes the peak what is resident now.
pub(crate) fn reset_peak(pid: u32) -> Result<()> {
    fs::write(format!("/proc/{pid}/clear_refs"), "5")
        .with_context(|| format!("cannot reset the memory peak of process {pid}"))
}

fn sum_of_threads(pid: u32) -> io::Result<CpuTime> {
    let mut sum = CpuTime::default();
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        // The file is missing without CONFIG_SCHED_INFO, and vanishes with its thread.
        let text = fs::read_to_string(thread?.path().join("schedstat")).unwrap_or_default();
        if let Some(time) = parse_schedstat(&text) {
            sum.busy_ns += time.busy_ns;
            sum.waited_ns += time.waited_ns;
        }
    }
    Ok(sum)
}

/// `busy-ns waited-ns timeslices`
fn parse_schedstat(text: &str) -> Option<CpuTime> {
    let mut numbers = text.split_whitespace().map(str::parse);
    let busy_ns = numbers.next()?.ok()?;
    let waited_ns = numbers.next()?.ok()?;
    Some(CpuTime { busy_ns, waited_ns })
}

/// utime + stime: the 14th and 15th field, counted behind the name, which may itself hold spaces and parentheses.
fn parse_stat_ticks(text: &str) -> Option<u64> {
    let (_, after_name) = text.rsplit_once(')')?;
    let mut fields = after_name.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

/// The number of a `Name:   1234 kB` line.
fn parse_kib(text: &str, field: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedstat_gives_busy_and_waited_time() {
        let expected = CpuTime {
            busy_ns: 434_154,
            waited_ns: 17,
        };
        assert_eq!(parse_schedstat("434154 17 1\n"), Some(expected));
        assert_eq!(parse_schedstat(""), None);
        assert_eq!(parse_schedstat("1 x 2"), None);
    }

    #[test]
    fn stat_is_read_behind_a_name_with_spaces_and_parentheses() {
        let text = "42 (a) b (c)) S 1 42 42 0 -1 4194560 100 0 0 0 250 30 0 0 20 0 4 0 100 1 1";
        assert_eq!(parse_stat_ticks(text), Some(280));
        assert_eq!(parse_stat_ticks("42 (short) S 1"), None);
    }

    #[test]
    fn memory_lines_are_found_by_their_whole_name() {
        let text = "VmPeak:\t  9 kB\nVmRSS:\t    1740 kB\n";
        assert_eq!(parse_kib(text, "VmRSS:"), Some(1740));
        assert_eq!(parse_kib(text, "Rss:"), None);
    }

    #[test]
    fn this_process_has_used_cpu_and_memory() {
        let pid = std::process::id();
        assert!(CpuTime::of(pid).unwrap().busy_ns > 0);
        assert!(resident_bytes(pid).unwrap() > 4096);
        reset_peak(pid).unwrap();
        assert!(peak_resident_bytes(pid).unwrap() > 4096);
        assert!(descriptors(pid).unwrap() >= 3);
    }

    #[test]
    fn a_process_that_does_not_exist_is_an_error() {
        assert!(CpuTime::of(u32::MAX).is_err());
        assert!(resident_bytes(u32::MAX).is_err());
        assert!(descriptors(u32::MAX).is_err());
    }
}
