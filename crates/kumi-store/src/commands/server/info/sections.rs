//! The sections of INFO, each a list of fields and where their values come from.

use super::Section;
use crate::base::version::{KUMI_VERSION, REDIS_VERSION};
use crate::commands::server::memory::Overview;
use crate::engine::command::flag;
use crate::engine::host::HostFacts;
use crate::engine::pubsub::Kind;
use crate::engine::store::SnapshotPurpose;
use crate::engine::store::compaction::SHARE_PERCENT;
use crate::engine::store::report::Report;
use std::fmt::Display;
use std::io::Write;

/// The text of a reply, built section by section.
pub(super) struct Page<'a> {
    report: Report<'a>,
    facts: HostFacts,
    text: Vec<u8>,
}

impl<'a> Page<'a> {
    pub(super) fn new(report: Report<'a>, facts: HostFacts) -> Self {
        Self {
            report,
            facts,
            text: Vec::new(),
        }
    }

    pub(super) fn into_text(self) -> Vec<u8> {
        self.text
    }

    pub(super) fn add(&mut self, section: Section) {
        if !self.text.is_empty() {
            self.text.extend_from_slice(b"\r\n");
        }
        let _ = write!(self.text, "# {}\r\n", section.title());
        match section {
            Section::Server => self.server(),
            Section::Clients => self.clients(),
            Section::Memory => self.memory(),
            Section::Persistence => self.persistence(),
            Section::Stats => self.stats(),
            Section::Replication => self.replication(),
            Section::Cpu => self.cpu(),
            Section::Modules => {}
            Section::CommandStats => self.command_stats(),
            Section::ErrorStats => self.error_stats(),
            Section::LatencyStats => self.latency_stats(),
            Section::Cluster => self.field("cluster_enabled", 0),
            Section::Keyspace => self.keyspace(),
            Section::Debug => self.debug(),
        }
    }

    /// Writing to a vector cannot fail.
    fn field(&mut self, name: &str, value: impl Display) {
        let _ = write!(self.text, "{name}:{value}\r\n");
    }

    fn zeros(&mut self, names: &[&str]) {
        for name in names {
            self.field(name, 0);
        }
    }

    /// A number of bytes, and the same for people.
    fn bytes(&mut self, name: &str, bytes: usize) {
        self.field(name, bytes);
        self.field(&format!("{name}_human"), human(bytes));
    }

    fn server(&mut self) {
        let settings = self.report.config.settings();
        let (hz, run_id) = (settings.hz, self.report.telemetry.run_id.clone());
        let started = self.report.telemetry.started;
        let uptime_s = self.report.now.mono_ns.saturating_sub(started.mono_ns) / 1_000_000_000;
        let facts = std::mem::take(&mut self.facts);
        self.field("redis_version", REDIS_VERSION);
        self.field("kumi_version", KUMI_VERSION);
        self.field("redis_git_sha1", "00000000");
        self.field("redis_git_dirty", 0);
        self.field("redis_build_id", "0000000000000000");
        self.field("redis_mode", "standalone");
        self.field("os", &facts.os);
        self.field("arch_bits", usize::BITS);
        self.field("monotonic_clock", "POSIX clock_gettime");
        self.field("multiplexing_api", &facts.multiplexing);
        self.field("atomicvar_api", "c11-builtin");
        self.field("gcc_version", "0.0.0");
        self.field("process_id", facts.process_id);
        let supervised = if facts.supervised { "systemd" } else { "no" };
        self.field("process_supervised", supervised);
        self.field("run_id", run_id);
        self.field("kumi_data_id", self.report.data_id);
        self.field("tcp_port", facts.tcp_port);
        self.field("server_time_usec", self.report.now.unix_us);
        self.field("uptime_in_seconds", uptime_s);
        self.field("uptime_in_days", uptime_s / 86_400);
        self.field("hz", hz);
        self.field("configured_hz", hz);
        self.field(
            "lru_clock",
            (self.report.now.unix_us / 1_000_000) & 0xFF_FFFF,
        );
        self.field("executable", &facts.executable);
        self.field("config_file", &facts.config_file);
        self.field("io_threads_active", 0);
        for (number, listener) in facts.listeners.iter().enumerate() {
            self.field(&format!("listener{number}"), listener);
        }
        self.facts = facts;
    }

    fn clients(&mut self) {
        let now_s = self.report.now.unix_us / 1_000_000;
        let maxclients = self.report.config.settings().maxclients;
        let input = self
            .report
            .telemetry
            .stats
            .recent_input_bytes
            .largest(now_s);
        let output = self
            .report
            .telemetry
            .stats
            .recent_output_bytes
            .largest(now_s);
        let (mut blocked, mut with_timeout) = (0, 0);
        for waiting in self
            .report
            .clients
            .sessions
            .iter()
            .filter_map(|s| s.blocked.as_ref())
        {
            blocked += 1;
            with_timeout += usize::from(waiting.until_ns.is_some());
        }
        self.field("connected_clients", self.report.clients.sessions.len());
        self.field("cluster_connections", 0);
        self.field("maxclients", maxclients);
        self.field("client_recent_max_input_buffer", input);
        self.field("client_recent_max_output_buffer", output);
        self.field("blocked_clients", blocked);
        self.field("tracking_clients", self.report.data.tracking_clients());
        self.field("clients_in_timeout_table", with_timeout);
        let (blocking, blocking_on_loss) = self.report.data.blocking_keys();
        self.field("total_blocking_keys", blocking);
        self.field("total_blocking_keys_on_nokey", blocking_on_loss);
    }

    fn memory(&mut self) {
        let memory = Overview::of(self.report, &self.facts);
        let maxmemory = self.report.config.settings().maxmemory_bytes;
        let maxmemory = usize::try_from(maxmemory).unwrap_or(usize::MAX);
        let system = usize::try_from(self.facts.system_memory_bytes).unwrap_or(usize::MAX);
        let policy = self.report.config.text("maxmemory-policy");
        let policy = String::from_utf8_lossy(&policy.unwrap_or_default()).into_owned();
        let fragmentation = format!("{:.2}", memory.fragmentation());
        self.bytes("used_memory", memory.used);
        self.bytes("used_memory_rss", memory.resident());
        self.bytes("used_memory_peak", memory.peak);
        self.field(
            "used_memory_peak_perc",
            format_args!("{:.2}%", memory.peak_percentage()),
        );
        self.field("used_memory_overhead", memory.overhead());
        self.field("used_memory_startup", memory.startup);
        self.field("used_memory_dataset", memory.dataset());
        self.field(
            "used_memory_dataset_perc",
            format_args!("{:.2}%", memory.dataset_percentage()),
        );
        self.field("allocator_allocated", memory.used);
        self.field("allocator_active", memory.allocator_resident());
        self.field("allocator_resident", memory.allocator_resident());
        self.bytes("total_system_memory", system);
        let scripts = &self.report.scripts;
        let (state, cache, cached) = (
            scripts.state_bytes(),
            scripts.cache_bytes(),
            scripts.cached(),
        );
        self.field("used_memory_lua", state);
        self.field("used_memory_vm_eval", state);
        self.field("used_memory_lua_human", human(state));
        self.field("used_memory_scripts_eval", cache);
        self.field("number_of_cached_scripts", cached);
        let (libraries, functions) = self.report.scripts.library_counts();
        let (function_state, code) = self.report.scripts.library_bytes();
        self.field("number_of_functions", functions);
        self.field("number_of_libraries", libraries);
        self.field("used_memory_vm_functions", function_state);
        self.bytes("used_memory_vm_total", state + function_state);
        self.field("used_memory_functions", code);
        self.bytes("used_memory_scripts", cache + code);
        self.bytes("maxmemory", maxmemory);
        self.field("maxmemory_policy", policy);
        self.field("allocator_frag_ratio", &fragmentation);
        self.field("allocator_frag_bytes", memory.fragmentation_bytes());
        self.field("allocator_rss_ratio", "1.00");
        self.field("allocator_rss_bytes", 0);
        self.field(
            "rss_overhead_ratio",
            format_args!("{:.2}", memory.overhead_rss_ratio()),
        );
        self.field("rss_overhead_bytes", memory.overhead_rss());
        self.field("mem_fragmentation_ratio", &fragmentation);
        self.field("mem_fragmentation_bytes", memory.fragmentation_bytes());
        self.zeros(&[
            "mem_not_counted_for_evict",
            "mem_replication_backlog",
            "mem_total_replication_buffers",
            "mem_clients_slaves",
        ]);
        self.field("mem_clients_normal", memory.clients);
        self.field("mem_cluster_links", 0);
        self.field("mem_aof_buffer", self.facts.aof.buffered_bytes);
        let allocator = self.facts.allocator.clone();
        self.field("mem_allocator", allocator);
        let compacting = self.report.compacting_ms.is_some();
        let share = if compacting { SHARE_PERCENT } else { 0 };
        self.field("active_defrag_running", share);
        self.field("lazyfree_pending_objects", self.facts.discards_pending);
        self.field(
            "lazyfreed_objects",
            self.report.telemetry.stats.lazily_freed,
        );
    }

    /// What was moved out of sparse pages, under the names that Redis has for it.
    fn compaction(&mut self) {
        let done = self.report.telemetry.stats.compaction;
        let missed = done.keys - done.keys_moved;
        self.field("active_defrag_hits", done.blocks_moved);
        self.field("active_defrag_misses", missed);
        self.field("active_defrag_key_hits", done.keys_moved);
        self.field("active_defrag_key_misses", missed);
        let current_ms = self.report.compacting_ms.unwrap_or(0);
        let ended_ms = self.report.telemetry.stats.compaction_ms;
        self.field("total_active_defrag_time", ended_ms + current_ms);
        self.field("current_active_defrag_time", current_ms);
    }

    fn persistence(&mut self) {
        let saves = self.report.saves;
        let snapshot = self.report.snapshot;
        let (peak, size, written, total) = snapshot.map_or((0, 0, 0, 0), |running| {
            let (written, total) = (running.keys_written(), running.keys);
            (running.peak_bytes, running.queued_bytes(), written, total)
        });
        let configured = self.report.config.settings().snapshot_max_memory;
        let limit = snapshot.map_or(configured, |running| running.limit_bytes(configured));
        let share = (written * 100) as f64 / total.max(1) as f64;
        let saving = snapshot.filter(|running| running.purpose == SnapshotPurpose::Save);
        let saving_s = saving.map(|running| {
            self.report
                .now
                .mono_ns
                .saturating_sub(running.started.mono_ns)
                / 1_000_000_000
        });
        let loading = self.report.loading.is_some();
        self.field("loading", u8::from(loading));
        self.field("async_loading", 0);
        self.field("current_cow_peak", peak);
        self.field("current_cow_size", size);
        self.field("current_cow_size_age", 0);
        self.field("current_cow_limit", limit);
        self.field("current_fork_perc", format!("{share:.2}"));
        self.field("current_save_keys_processed", written);
        self.field("current_save_keys_total", total);
        let changes = self.report.data.changes() - saves.changes;
        self.field("rdb_changes_since_last_save", changes);
        self.field("rdb_bgsave_in_progress", u8::from(saving_s.is_some()));
        self.field("rdb_last_save_time", saves.last_unix_s);
        let status = if saves.last_failed { "err" } else { "ok" };
        self.field("rdb_last_bgsave_status", status);
        let seconds = |seconds: Option<u64>| seconds.map_or(-1, u64::cast_signed);
        self.field("rdb_last_bgsave_time_sec", seconds(saves.last_duration_s));
        self.field("rdb_current_bgsave_time_sec", seconds(saving_s));
        self.field("rdb_saves", saves.count);
        self.field("rdb_last_cow_size", saves.last_extra_bytes);
        self.field("rdb_last_load_keys_expired", saves.loaded_expired);
        self.field("rdb_last_load_keys_loaded", saves.loaded);
        self.aof();
        self.zeros(&["module_fork_in_progress", "module_fork_last_cow_size"]);
        self.aof_sizes();
        self.loading();
    }

    /// What is shown of the append-only file whether there is one or not.
    fn aof(&mut self) {
        let aof = self.facts.aof;
        let status = |failed: bool| if failed { "err" } else { "ok" };
        let seconds =
            |time: Option<u64>| time.map_or(-1, |time| i64::try_from(time).unwrap_or(i64::MAX));
        self.field("aof_enabled", u8::from(aof.enabled));
        // Nothing but the disk is in its way: it was answered with "started".
        let begins = aof.rewrite_begins && self.report.snapshot.is_none();
        let scheduled = aof.rewrite_scheduled && !begins;
        self.field("aof_rewrite_in_progress", u8::from(aof.rewriting || begins));
        self.field("aof_rewrite_scheduled", u8::from(scheduled));
        self.field("aof_last_rewrite_time_sec", seconds(aof.last_rewrite_s));
        self.field(
            "aof_current_rewrite_time_sec",
            seconds(aof.current_rewrite_s),
        );
        self.field("aof_last_bgrewrite_status", status(aof.last_rewrite_failed));
        self.field("aof_rewrites", aof.rewrites);
        self.field("aof_rewrites_consecutive_failures", aof.rewrite_failures);
        self.field("aof_last_write_status", status(aof.last_write_failed));
        let extra_bytes = self.report.saves.rewrite_extra_bytes;
        self.field("aof_last_cow_size", extra_bytes);
    }

    /// What is shown of the append-only file while there is one.
    fn aof_sizes(&mut self) {
        let aof = self.facts.aof;
        if !aof.enabled {
            return;
        }
        self.field("aof_current_size", aof.current_bytes);
        self.field("aof_base_size", aof.base_bytes);
        self.field("aof_pending_rewrite", u8::from(aof.rewrite_scheduled));
        self.field("aof_buffer_length", aof.buffered_bytes);
        self.field("aof_pending_bio_fsync", u8::from(aof.fsync_running));
        self.field("aof_delayed_fsync", aof.delayed_fsyncs);
    }

    /// How far loading is.
    fn loading(&mut self) {
        let Some(loading) = self.report.loading else {
            return;
        };
        let (total, loaded) = (loading.total_bytes, loading.loaded_bytes);
        let (start, elapsed_s) = (
            loading.start_unix_s,
            loading.elapsed_s(self.report.now.mono_ns),
        );
        let eta_s = (loaded > 0).then(|| {
            let left = u128::from(total.saturating_sub(loaded));
            u128::from(elapsed_s) * left / u128::from(loaded)
        });
        self.field("loading_start_time", start);
        self.field("loading_total_bytes", total);
        self.field("loading_rdb_used_mem", 0);
        self.field("loading_loaded_bytes", loaded);
        let percent = loaded as f64 / total.max(1) as f64 * 100.0;
        self.field("loading_loaded_perc", format!("{percent:.2}"));
        self.field("loading_eta_seconds", eta_s.unwrap_or(1));
    }

    fn stats(&mut self) {
        let kbps = |rate: u64| format!("{:.2}", rate as f64 / 1024.0);
        let stats = &self.report.telemetry.stats;
        let (input, output) = (
            kbps(stats.input_rate.per_second()),
            kbps(stats.output_rate.per_second()),
        );
        let rejected = self.facts.rejected_connections;
        self.field("total_connections_received", stats.total_connections);
        self.field(
            "total_commands_processed",
            self.report.telemetry.stats.total_commands,
        );
        let ops = self.report.telemetry.stats.ops_rate.per_second();
        self.field("instantaneous_ops_per_sec", ops);
        self.field(
            "total_net_input_bytes",
            self.report.telemetry.stats.bytes_in,
        );
        self.field(
            "total_net_output_bytes",
            self.report.telemetry.stats.bytes_out,
        );
        self.zeros(&["total_net_repl_input_bytes", "total_net_repl_output_bytes"]);
        self.field("instantaneous_input_kbps", input);
        self.field("instantaneous_output_kbps", output);
        self.field("instantaneous_input_repl_kbps", "0.00");
        self.field("instantaneous_output_repl_kbps", "0.00");
        self.field(
            "rejected_connections",
            rejected.saturating_sub(stats.rejected_before),
        );
        self.zeros(&["sync_full", "sync_partial_ok", "sync_partial_err"]);
        self.expiry_stats();
        self.field("evicted_keys", self.report.data.stats().evicted);
        self.field(
            "evicted_clients",
            self.report.telemetry.stats.evicted_clients,
        );
        let (total_ms, current_ms) = self.report.exceeded_ms;
        self.field("total_eviction_exceeded_time", total_ms);
        self.field("current_eviction_exceeded_time", current_ms);
        self.field("keyspace_hits", self.report.data.stats().hits);
        self.field("keyspace_misses", self.report.data.stats().misses);
        let pubsub = &self.report.pubsub;
        let (channels, patterns, shard_channels) = (
            pubsub.names(Kind::Channel).count(),
            pubsub.pattern_count(),
            pubsub.names(Kind::ShardChannel).count(),
        );
        self.field("pubsub_channels", channels);
        self.field("pubsub_patterns", patterns);
        self.field("pubsubshard_channels", shard_channels);
        self.zeros(&[
            "latest_fork_usec",
            "total_forks",
            "migrate_cached_sockets",
            "slave_expires_tracked_keys",
        ]);
        self.compaction();
        let (keys, items, prefixes) = self.report.data.tracked();
        self.field("tracking_total_keys", keys);
        self.field("tracking_total_items", items);
        self.field("tracking_total_prefixes", prefixes);
        self.field("unexpected_error_replies", 0);
        self.field(
            "total_error_replies",
            self.report.telemetry.stats.total_errors,
        );
        self.field("dump_payload_sanitizations", 0);
        self.field("total_reads_processed", self.report.telemetry.stats.reads);
        self.field("total_writes_processed", self.report.telemetry.stats.writes);
        self.zeros(&[
            "io_threaded_reads_processed",
            "io_threaded_writes_processed",
        ]);
        self.front_stats();
    }

    /// Where the event loop spends its time.
    fn debug(&mut self) {
        let turns = self.report.telemetry.stats.turns;
        self.field("eventloop_duration_aof_sum", turns.total.aof_ns / 1000);
        self.field("eventloop_duration_cron_sum", turns.total.cron_ns / 1000);
        self.field("eventloop_duration_max", turns.longest_ns / 1000);
        self.field("eventloop_cmd_per_cycle_max", turns.most_commands);
    }

    fn expiry_stats(&mut self) {
        let (overdue, with_deadline) = self.report.data.overdue(self.report.now.unix_ms());
        let stale = if with_deadline == 0 {
            0.0
        } else {
            overdue as f64 * 100.0 / with_deadline as f64
        };
        let stats = self.report.data.stats();
        self.field("expired_keys", stats.expired);
        self.field("expired_stale_perc", format_args!("{stale:.2}"));
        self.field("expired_time_cap_reached_count", stats.expiry_slices_cut);
        self.field(
            "expire_cycle_cpu_milliseconds",
            self.report.telemetry.stats.active_expiry_us / 1000,
        );
    }

    /// What the event loop and its limits did.
    fn front_stats(&mut self) {
        let stats = &self.report.telemetry.stats;
        let (cycles, busy_us) = (stats.turns.count, stats.turns.total.busy_ns / 1000);
        let cycle_rate = stats.cycle_rate.per_second();
        let cycle_us = stats.busy_rate.per_second().checked_div(cycle_rate);
        // EXEC's own time is that of the commands it ran, which are counted already.
        let commands = self.report.index.iter().zip(&stats.commands);
        let command_us: u64 = commands
            .filter(|((_, indexed), _)| !indexed.row.has(flag::RUNS_QUEUED))
            .map(|(_, command)| command.usec())
            .sum();
        let denied = stats.denied;
        self.field(
            "client_query_buffer_limit_disconnections",
            self.report.telemetry.stats.query_limit_disconnections,
        );
        self.field(
            "client_output_buffer_limit_disconnections",
            self.report.telemetry.stats.output_limit_disconnections,
        );
        self.zeros(&["reply_buffer_shrinks", "reply_buffer_expands"]);
        self.field("eventloop_cycles", cycles);
        self.field("eventloop_duration_sum", busy_us);
        self.field("eventloop_duration_cmd_sum", command_us);
        self.field("instantaneous_eventloop_cycles_per_sec", cycle_rate);
        self.field(
            "instantaneous_eventloop_duration_usec",
            cycle_us.unwrap_or(0),
        );
        let [commands, keys, channels, passwords] = denied;
        self.field("acl_access_denied_auth", passwords);
        self.field("acl_access_denied_cmd", commands);
        self.field("acl_access_denied_key", keys);
        self.field("acl_access_denied_channel", channels);
    }

    fn replication(&mut self) {
        let history = self.report.telemetry.replication_id.clone();
        let backlog = self.report.config.text("repl-backlog-size");
        let backlog = String::from_utf8_lossy(&backlog.unwrap_or_default()).into_owned();
        self.field("role", "master");
        self.field("connected_slaves", 0);
        self.field("master_failover_state", "no-failover");
        self.field("master_replid", history);
        self.field("master_replid2", "0".repeat(40));
        self.field("master_repl_offset", 0);
        self.field("second_repl_offset", -1);
        self.field("repl_backlog_active", 0);
        self.field("repl_backlog_size", backlog);
        self.zeros(&["repl_backlog_first_byte_offset", "repl_backlog_histlen"]);
    }

    fn cpu(&mut self) {
        let facts = &self.facts;
        let times = [
            ("used_cpu_sys", facts.cpu_system_us),
            ("used_cpu_user", facts.cpu_user_us),
            ("used_cpu_sys_children", 0),
            ("used_cpu_user_children", 0),
            ("used_cpu_sys_main_thread", facts.cpu_main_system_us),
            ("used_cpu_user_main_thread", facts.cpu_main_user_us),
        ];
        for (name, us) in times {
            self.field(
                name,
                format_args!("{}.{:06}", us / 1_000_000, us % 1_000_000),
            );
        }
    }

    fn command_stats(&mut self) {
        let commands = self
            .report
            .index
            .iter()
            .zip(&self.report.telemetry.stats.commands);
        for ((_, indexed), stats) in commands {
            if stats.calls + stats.rejected + stats.failed == 0 {
                continue;
            }
            let mean = if stats.calls == 0 {
                0.0
            } else {
                stats.usec() as f64 / stats.calls as f64
            };
            let _ = write!(
                self.text,
                "cmdstat_{}:calls={},usec={},usec_per_call={mean:.2},rejected_calls={},failed_calls={}\r\n",
                indexed.full_name,
                stats.calls,
                stats.usec(),
                stats.rejected,
                stats.failed
            );
        }
    }

    fn error_stats(&mut self) {
        for (code, count) in &self.report.telemetry.stats.errors {
            self.text.extend_from_slice(b"errorstat_");
            // A code is part of an error's text, which may hold anything: it must not end the line.
            self.text.extend(code.iter().map(|byte| match byte {
                b'!'..=b'9' | b';'..=b'~' => *byte,
                _ => b'_',
            }));
            let _ = write!(self.text, ":count={count}\r\n");
        }
    }

    fn latency_stats(&mut self) {
        let percentiles = &self.report.config.settings().latency_percentiles;
        let commands = self
            .report
            .index
            .iter()
            .zip(&self.report.telemetry.stats.commands);
        for ((_, indexed), stats) in commands {
            if stats.histogram.total() == 0 {
                continue;
            }
            let shown: Vec<String> = percentiles
                .iter()
                .map(|&percentile| {
                    let name = format!("{percentile:.6}");
                    let name = name.trim_end_matches('0').trim_end_matches('.');
                    let us = stats.histogram.at_percentile(percentile) as f64 / 1000.0;
                    format!("p{name}={us:.3}")
                })
                .collect();
            let _ = write!(
                self.text,
                "latency_percentiles_usec_{}:{}\r\n",
                indexed.full_name,
                shown.join(",")
            );
        }
    }

    fn keyspace(&mut self) {
        for db in 0..self.report.data.databases() {
            let summary = self.report.data.summary(db, self.report.now.unix_ms());
            if summary.keys > 0 {
                let _ = write!(
                    self.text,
                    "db{db}:keys={},expires={},avg_ttl={}\r\n",
                    summary.keys, summary.with_deadline, summary.average_ttl_ms
                );
            }
        }
    }
}

/// Bytes as people read them.
fn human(bytes: usize) -> String {
    const UNITS: [&str; 5] = ["K", "M", "G", "T", "P"];
    if bytes < 1024 {
        return format!("{bytes}B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.2}{}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::human;

    #[test]
    fn bytes_are_shown_in_the_largest_unit_below_them() {
        assert_eq!(human(0), "0B");
        assert_eq!(human(1023), "1023B");
        assert_eq!(human(1024), "1.00K");
        assert_eq!(human(916_544), "895.06K");
        assert_eq!(human(25_275_125_760), "23.54G");
        assert_eq!(human(usize::MAX), "16384.00P");
    }
}
