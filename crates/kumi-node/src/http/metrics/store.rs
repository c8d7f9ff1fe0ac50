//! The reply of INFO under the names that redis_exporter gives its fields, so that dashboards and alerts made for it work.
//!
//! A field that INFO does not have is left out. Values are written as INFO has them, but for statuses (1 for `ok`) and
//! units.

use std::collections::BTreeMap;

use super::exposition::{Exposition, Kind, SERIES_LIMIT};

/// A field of INFO: its name there, the metric's name after `redis_`, and what it is.
type Row = (&'static str, &'static str, &'static str);

const GAUGES: &[Row] = &[
    (
        "uptime_in_seconds",
        "uptime_in_seconds",
        "Seconds since the store started.",
    ),
    (
        "connected_clients",
        "connected_clients",
        "Open connections of clients.",
    ),
    (
        "blocked_clients",
        "blocked_clients",
        "Clients that wait in a blocking command.",
    ),
    (
        "tracking_clients",
        "tracking_clients",
        "Clients with CLIENT TRACKING.",
    ),
    (
        "maxclients",
        "config_maxclients",
        "Most connections of clients.",
    ),
    (
        "used_memory",
        "memory_used_bytes",
        "Memory of the data and of connections.",
    ),
    (
        "used_memory_rss",
        "memory_used_rss_bytes",
        "Resident memory of the process.",
    ),
    (
        "used_memory_peak",
        "memory_used_peak_bytes",
        "The highest used memory so far.",
    ),
    (
        "used_memory_overhead",
        "memory_used_overhead_bytes",
        "Used memory that is not data.",
    ),
    (
        "used_memory_startup",
        "memory_used_startup_bytes",
        "Used memory at the start.",
    ),
    (
        "used_memory_dataset",
        "memory_used_dataset_bytes",
        "Used memory that is data.",
    ),
    (
        "used_memory_lua",
        "memory_used_lua_bytes",
        "Memory of the Lua engine.",
    ),
    (
        "used_memory_scripts",
        "memory_used_scripts_bytes",
        "Memory of cached scripts.",
    ),
    (
        "maxmemory",
        "memory_max_bytes",
        "The limit of used memory; 0 is none.",
    ),
    (
        "maxmemory",
        "config_maxmemory",
        "The limit of used memory; 0 is none.",
    ),
    (
        "total_system_memory",
        "total_system_memory_bytes",
        "Memory of the machine.",
    ),
    (
        "allocator_allocated",
        "allocator_allocated_bytes",
        "Bytes that the allocator gave out.",
    ),
    (
        "allocator_active",
        "allocator_active_bytes",
        "Bytes in pages that the allocator uses.",
    ),
    (
        "allocator_resident",
        "allocator_resident_bytes",
        "Resident bytes of the allocator.",
    ),
    (
        "mem_fragmentation_ratio",
        "mem_fragmentation_ratio",
        "Resident memory divided by used memory.",
    ),
    (
        "mem_fragmentation_bytes",
        "mem_fragmentation_bytes",
        "Resident memory less used memory.",
    ),
    (
        "mem_clients_normal",
        "mem_clients_normal",
        "Bytes of the buffers of clients.",
    ),
    (
        "mem_not_counted_for_evict",
        "mem_not_counted_for_eviction_bytes",
        "Memory that eviction does not count.",
    ),
    (
        "lazyfree_pending_objects",
        "lazyfree_pending_objects",
        "Objects that wait to be freed.",
    ),
    ("loading", "loading_dump_file", "1 while data is loaded."),
    (
        "rdb_changes_since_last_save",
        "rdb_changes_since_last_save",
        "Changes since the last RDB file.",
    ),
    (
        "rdb_bgsave_in_progress",
        "rdb_bgsave_in_progress",
        "1 while an RDB file is written.",
    ),
    (
        "rdb_last_save_time",
        "rdb_last_save_timestamp_seconds",
        "When the last RDB file was written.",
    ),
    (
        "rdb_last_bgsave_status",
        "rdb_last_bgsave_status",
        "1 if the last RDB file was written without an error.",
    ),
    (
        "rdb_last_bgsave_time_sec",
        "rdb_last_bgsave_duration_sec",
        "How long the last RDB file took.",
    ),
    (
        "rdb_current_bgsave_time_sec",
        "rdb_current_bgsave_duration_sec",
        "For how long an RDB file is being written.",
    ),
    (
        "rdb_last_cow_size",
        "rdb_last_cow_size_bytes",
        "Memory that was copied while the last RDB file was written.",
    ),
    (
        "aof_enabled",
        "aof_enabled",
        "1 if the append-only file is on.",
    ),
    (
        "aof_rewrite_in_progress",
        "aof_rewrite_in_progress",
        "1 while the AOF is rewritten.",
    ),
    (
        "aof_rewrite_scheduled",
        "aof_rewrite_scheduled",
        "1 if the AOF will be rewritten.",
    ),
    (
        "aof_last_rewrite_time_sec",
        "aof_last_rewrite_duration_sec",
        "How long the last rewrite of the AOF took.",
    ),
    (
        "aof_current_rewrite_time_sec",
        "aof_current_rewrite_duration_sec",
        "For how long the AOF is being rewritten.",
    ),
    (
        "aof_last_cow_size",
        "aof_last_cow_size_bytes",
        "Memory that was copied during the last rewrite of the AOF.",
    ),
    (
        "aof_current_size",
        "aof_current_size_bytes",
        "Size of the AOF.",
    ),
    (
        "aof_base_size",
        "aof_base_size_bytes",
        "Size of the AOF after its last rewrite.",
    ),
    (
        "aof_buffer_length",
        "aof_buffer_length",
        "Bytes that wait to be written to the AOF.",
    ),
    (
        "aof_pending_bio_fsync",
        "aof_pending_bio_fsync",
        "Syncs of the AOF that wait.",
    ),
    (
        "aof_delayed_fsync",
        "aof_delayed_fsync",
        "Syncs of the AOF that were delayed.",
    ),
    (
        "aof_last_bgrewrite_status",
        "aof_last_bgrewrite_status",
        "1 if the last rewrite of the AOF had no error.",
    ),
    (
        "aof_last_write_status",
        "aof_last_write_status",
        "1 if the last write to the AOF had no error.",
    ),
    (
        "pubsub_channels",
        "pubsub_channels",
        "Channels with subscribers.",
    ),
    (
        "pubsub_patterns",
        "pubsub_patterns",
        "Patterns with subscribers.",
    ),
    (
        "latest_fork_usec",
        "latest_fork_usec",
        "Microseconds of the last fork.",
    ),
    (
        "connected_slaves",
        "connected_slaves",
        "Connected replicas.",
    ),
    (
        "master_repl_offset",
        "master_repl_offset",
        "Bytes of the stream of changes so far.",
    ),
    (
        "second_repl_offset",
        "second_repl_offset",
        "Up to here the former stream is served; -1 for none.",
    ),
    (
        "repl_backlog_active",
        "repl_backlog_is_active",
        "1 if there is a backlog for replicas.",
    ),
    (
        "repl_backlog_size",
        "replication_backlog_bytes",
        "Size of the backlog for replicas.",
    ),
    (
        "repl_backlog_first_byte_offset",
        "repl_backlog_first_byte_offset",
        "Where the backlog begins.",
    ),
    (
        "repl_backlog_histlen",
        "repl_backlog_history_bytes",
        "Bytes in the backlog.",
    ),
];

const COUNTERS: &[Row] = &[
    (
        "total_connections_received",
        "connections_received_total",
        "Connections that were accepted.",
    ),
    (
        "total_commands_processed",
        "commands_processed_total",
        "Commands that were executed.",
    ),
    (
        "rejected_connections",
        "rejected_connections_total",
        "Connections beyond the limit of clients.",
    ),
    (
        "total_net_input_bytes",
        "net_input_bytes_total",
        "Bytes read from clients.",
    ),
    (
        "total_net_output_bytes",
        "net_output_bytes_total",
        "Bytes written to clients.",
    ),
    ("expired_keys", "expired_keys_total", "Keys that expired."),
    (
        "evicted_keys",
        "evicted_keys_total",
        "Keys that were evicted for memory.",
    ),
    (
        "keyspace_hits",
        "keyspace_hits_total",
        "Lookups that found their key.",
    ),
    (
        "keyspace_misses",
        "keyspace_misses_total",
        "Lookups that did not find their key.",
    ),
    (
        "total_error_replies",
        "error_replies_total",
        "Replies that were errors.",
    ),
    (
        "acl_access_denied_auth",
        "acl_access_denied_auth_total",
        "Logins that were denied.",
    ),
    (
        "acl_access_denied_cmd",
        "acl_access_denied_cmd_total",
        "Commands that were denied.",
    ),
    (
        "acl_access_denied_key",
        "acl_access_denied_key_total",
        "Keys that were denied.",
    ),
    (
        "acl_access_denied_channel",
        "acl_access_denied_channel_total",
        "Channels that were denied.",
    ),
    (
        "used_cpu_sys",
        "cpu_sys_seconds_total",
        "CPU time of the process in the kernel.",
    ),
    (
        "used_cpu_user",
        "cpu_user_seconds_total",
        "CPU time of the process.",
    ),
    (
        "used_cpu_sys_children",
        "cpu_sys_children_seconds_total",
        "CPU time of child processes in the kernel.",
    ),
    (
        "used_cpu_user_children",
        "cpu_user_children_seconds_total",
        "CPU time of child processes.",
    ),
];

/// Fields of INFO that are labels of `redis_instance_info`, where redis_exporter has the same names.
const INSTANCE_LABELS: &[&str] = &[
    "role",
    "redis_version",
    "redis_build_id",
    "redis_mode",
    "os",
    "maxmemory_policy",
    "tcp_port",
    "run_id",
    "process_id",
    "master_replid",
];

/// Parts of a line of the section Commandstats, with the metric of each.
const COMMANDS: &[Row] = &[
    ("calls", "commands_total", "Calls of a command."),
    (
        "usec",
        "commands_duration_seconds_total",
        "Time spent in a command.",
    ),
    (
        "rejected_calls",
        "commands_rejected_calls_total",
        "Calls that were rejected before they ran.",
    ),
    (
        "failed_calls",
        "commands_failed_calls_total",
        "Calls that ran and failed.",
    ),
];

/// Parts of a line of the section Keyspace, with the metric of each.
const DATABASES: &[Row] = &[
    ("keys", "db_keys", "Keys of a database."),
    (
        "expires",
        "db_keys_expiring",
        "Keys of a database that expire.",
    ),
    (
        "avg_ttl",
        "db_avg_ttl_seconds",
        "Average time until the expiring keys of a database expire.",
    ),
];

/// Writes what INFO says; `redis_up` 0 alone if the store did not answer.
pub(super) fn write(out: &mut Exposition, info: Option<&str>) {
    let up = u8::from(info.is_some());
    out.single(Kind::Gauge, "redis_up", "1 if the store answered.", up);
    let Some(info) = info else {
        return;
    };
    let fields = Fields::parse(info);
    for (kind, rows) in [(Kind::Gauge, GAUGES), (Kind::Counter, COUNTERS)] {
        for (field, name, help) in rows {
            if let Some(value) = fields.values.get(field).and_then(|value| number(value)) {
                out.single(kind, &format!("redis_{name}"), help, value);
            }
        }
    }
    let labels: Vec<(&str, &str)> = INSTANCE_LABELS
        .iter()
        .map(|label| {
            (
                *label,
                fields.values.get(label).copied().unwrap_or_default(),
            )
        })
        .collect();
    let help = "What the store is; the value is 1.";
    out.family(Kind::Gauge, "redis_instance_info", help, [(&labels[..], 1)]);
    parts(out, Kind::Counter, COMMANDS, "cmd", &fields.commands);
    parts(out, Kind::Gauge, DATABASES, "db", &fields.databases);
    let name = "redis_errors_total";
    let errors = fields.errors.iter().filter_map(|(error, parts)| {
        let count = number(part(parts, "count")?)?;
        Some(([("err", *error)], count))
    });
    let errors: Vec<_> = errors.collect();
    let series = errors.iter().map(|(labels, count)| (&labels[..], count));
    out.family(
        Kind::Counter,
        name,
        "Error replies by the error's first word.",
        series,
    );
    write_latencies(out, &fields);
}

/// One family for each part of lines such as `cmdstat_get:calls=1,usec=10`.
fn parts(
    out: &mut Exposition,
    kind: Kind,
    rows: &[Row],
    label: &str,
    lines: &BTreeMap<&str, &str>,
) {
    for (field, name, help) in rows {
        let series = lines.iter().filter_map(|(key, parts)| {
            let value = number(part(parts, field)?)?;
            let value = match *field {
                "usec" => value / 1e6,
                "avg_ttl" => value / 1e3,
                _ => value,
            };
            Some(([(label, *key)], value))
        });
        let series: Vec<_> = series.collect();
        let series = series.iter().map(|(labels, value)| (&labels[..], value));
        out.family(kind, &format!("redis_{name}"), help, series);
    }
}

/// A summary of each command's latencies, in microseconds as the name says.
fn write_latencies(out: &mut Exposition, fields: &Fields<'_>) {
    const NAME: &str = "redis_latency_percentiles_usec";
    let mut written = 0;
    for (command, percentiles) in &fields.latencies {
        let statistics = fields.commands.get(command).copied().unwrap_or_default();
        let [Some(calls), Some(usec)] =
            ["calls", "usec"].map(|field| part(statistics, field).and_then(number))
        else {
            continue;
        };
        let quantiles: Vec<(String, f64)> = percentiles.split(',').filter_map(quantile).collect();
        // A command is shown as a whole, with its sum and its count, or not at all.
        let ranks = quantiles.len().max(1);
        if written + ranks > SERIES_LIMIT {
            out.leave_out(quantiles.len() + 2);
            continue;
        }
        if written == 0 {
            out.head(
                Kind::Summary,
                NAME,
                "Latencies of a command in microseconds.",
            );
        }
        written += ranks;
        for (quantile, value) in &quantiles {
            out.series(NAME, &[("cmd", *command), ("quantile", quantile)], value);
        }
        out.series(&format!("{NAME}_sum"), &[("cmd", *command)], usec);
        out.series(&format!("{NAME}_count"), &[("cmd", *command)], calls);
    }
}

/// `p99.9=4.015` as the label of a quantile and its value.
fn quantile(percentile: &str) -> Option<(String, f64)> {
    let (rank, value) = percentile.split_once('=')?;
    let rank = rank.strip_prefix('p').and_then(number)?;
    // 99.9 divided by 100 is 0.9990000000000001; four decimals are what INFO can say.
    let quantile = format!("{:.4}", rank / 100.0);
    let quantile = quantile.trim_end_matches('0').trim_end_matches('.');
    Some((quantile.to_owned(), number(value)?))
}

/// The lines of INFO, sorted by what they are about.
#[derive(Default)]
struct Fields<'a> {
    values: BTreeMap<&'a str, &'a str>,
    commands: BTreeMap<&'a str, &'a str>,
    databases: BTreeMap<&'a str, &'a str>,
    errors: BTreeMap<&'a str, &'a str>,
    latencies: BTreeMap<&'a str, &'a str>,
}

impl<'a> Fields<'a> {
    fn parse(info: &'a str) -> Fields<'a> {
        let mut fields = Fields::default();
        for line in info.lines() {
            let Some((key, value)) = line.split_once(':') else {
                continue;
            };
            let is_database = |key: &str| {
                let digits = key.strip_prefix("db").unwrap_or_default();
                !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
            };
            let (map, key) = if let Some(command) = key.strip_prefix("cmdstat_") {
                (&mut fields.commands, command)
            } else if let Some(error) = key.strip_prefix("errorstat_") {
                (&mut fields.errors, error)
            } else if let Some(command) = key.strip_prefix("latency_percentiles_usec_") {
                (&mut fields.latencies, command)
            } else if is_database(key) {
                (&mut fields.databases, key)
            } else {
                (&mut fields.values, key)
            };
            map.insert(key, value.trim_end());
        }
        fields
    }
}

/// The value of `name` in `a=1,name=2`.
fn part<'a>(parts: &'a str, name: &str) -> Option<&'a str> {
    let mut pairs = parts.split(',').filter_map(|pair| pair.split_once('='));
    pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
}

/// A finite number, or a status as one.
fn number(value: &str) -> Option<f64> {
    match value {
        "ok" => Some(1.0),
        "err" | "fail" => Some(0.0),
        _ => value.parse().ok().filter(|number: &f64| number.is_finite()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(info: Option<&str>) -> String {
        let mut out = Exposition::default();
        write(&mut out, info);
        out.into_text()
    }

    fn series(info: &str) -> Vec<String> {
        let text = text(Some(info));
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines.map(str::to_owned).collect()
    }

    #[test]
    fn a_store_that_does_not_answer_is_down() {
        let down = "# HELP redis_up 1 if the store answered.\n# TYPE redis_up gauge\nredis_up 0\n";
        assert_eq!(text(None), down);
    }

    #[test]
    fn fields_have_the_names_of_redis_exporter() {
        let info = "# Server\r\nredis_version:7.2.5\r\nuptime_in_seconds:12\r\nos:Linux \"x\"\r\n\
            # Memory\r\nused_memory:4096\r\nmaxmemory:0\r\n\
            # Persistence\r\nrdb_last_bgsave_status:err\r\naof_last_write_status:ok\r\n\
            # Stats\r\ntotal_commands_processed:18446744073\r\n\
            # CPU\r\nused_cpu_sys:0.020000\r\n\
            # Keyspace\r\ndb0:keys=3,expires=1,avg_ttl=1500\r\ndb12:keys=1,expires=0,avg_ttl=0\r\n";
        let expected = [
            "redis_up 1",
            "redis_uptime_in_seconds 12",
            "redis_memory_used_bytes 4096",
            "redis_memory_max_bytes 0",
            "redis_config_maxmemory 0",
            "redis_rdb_last_bgsave_status 0",
            "redis_aof_last_write_status 1",
            "redis_commands_processed_total 18446744073",
            "redis_cpu_sys_seconds_total 0.02",
            "redis_instance_info{role=\"\",redis_version=\"7.2.5\",redis_build_id=\"\",redis_mode=\"\",\
             os=\"Linux \\\"x\\\"\",maxmemory_policy=\"\",tcp_port=\"\",run_id=\"\",process_id=\"\",master_replid=\"\"} 1",
            "redis_db_keys{db=\"db0\"} 3",
            "redis_db_keys{db=\"db12\"} 1",
            "redis_db_keys_expiring{db=\"db0\"} 1",
            "redis_db_keys_expiring{db=\"db12\"} 0",
            "redis_db_avg_ttl_seconds{db=\"db0\"} 1.5",
            "redis_db_avg_ttl_seconds{db=\"db12\"} 0",
        ];
        assert_eq!(series(info), expected);
    }

    #[test]
    fn commands_are_counted_timed_and_ranked() {
        let info = "cmdstat_set:calls=2,usec=3000000,usec_per_call=1.5,rejected_calls=1,failed_calls=0\n\
            cmdstat_client|list:calls=1,usec=10,usec_per_call=10.00\n\
            errorstat_WRONGTYPE:count=4\n\
            latency_percentiles_usec_set:p50=0.001,p99=1.003,p99.9=4.015\n\
            latency_percentiles_usec_gone:p50=1\n";
        let expected = [
            "redis_commands_total{cmd=\"client|list\"} 1",
            "redis_commands_total{cmd=\"set\"} 2",
            "redis_commands_duration_seconds_total{cmd=\"client|list\"} 0.00001",
            "redis_commands_duration_seconds_total{cmd=\"set\"} 3",
            "redis_commands_rejected_calls_total{cmd=\"set\"} 1",
            "redis_commands_failed_calls_total{cmd=\"set\"} 0",
            "redis_errors_total{err=\"WRONGTYPE\"} 4",
            "redis_latency_percentiles_usec{cmd=\"set\",quantile=\"0.5\"} 0.001",
            "redis_latency_percentiles_usec{cmd=\"set\",quantile=\"0.99\"} 1.003",
            "redis_latency_percentiles_usec{cmd=\"set\",quantile=\"0.999\"} 4.015",
            "redis_latency_percentiles_usec_sum{cmd=\"set\"} 3000000",
            "redis_latency_percentiles_usec_count{cmd=\"set\"} 2",
        ];
        assert_eq!(series(info)[2..], expected);
    }

    #[test]
    fn latencies_beyond_the_limit_are_left_out_and_counted() {
        let commands = 0..2 * SERIES_LIMIT;
        let info = commands.map(|n| {
            format!(
                "cmdstat_c{n:04}:calls=1,usec=1\nlatency_percentiles_usec_c{n:04}:p50=1,p99=2\n"
            )
        });
        let info = info.collect::<String>();
        let mut out = Exposition::default();
        write(&mut out, Some(&info));
        out.write_left_out();
        let text = out.into_text();
        let count = |start: &str| text.lines().filter(|line| line.starts_with(start)).count();
        let name = "redis_latency_percentiles_usec";
        assert_eq!(count(&format!("{name}{{")), SERIES_LIMIT);
        assert_eq!(count(&format!("{name}_sum{{")), SERIES_LIMIT / 2);
        assert_eq!(count(&format!("{name}_count{{")), SERIES_LIMIT / 2);
        // Four series of each of these commands, and two families with one of each command.
        let left_out = 4 * (2 * SERIES_LIMIT - SERIES_LIMIT / 2) + 2 * SERIES_LIMIT;
        assert_eq!(count(&format!("kumi_http_series_left_out {left_out}")), 1);
    }

    #[test]
    fn what_is_no_number_is_left_out() {
        for wrong in [
            "used_memory:",
            "used_memory:NaN",
            "used_memory:inf",
            "used_memory:1e999",
            "used_memory:4K",
            "used_memory",
            ":5",
            "cmdstat_:",
            "cmdstat_get:calls",
            "cmdstat_get:calls=x",
            "db0:",
            "dbx:keys=1",
            "errorstat_X:count=",
            "latency_percentiles_usec_get:=",
            "\0:\0",
        ] {
            assert_eq!(series(wrong).len(), 2, "{wrong:?}: {:?}", series(wrong));
        }
    }
}
