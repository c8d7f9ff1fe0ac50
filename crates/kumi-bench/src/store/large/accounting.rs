//! How far `used_memory` is from what the process holds, by the size of values.

use anyhow::{Context, Result};

use crate::report::{Goal, Row};
use crate::store::large::{MB, Setting, Subject};
use crate::store::memory::settled_bytes;
use crate::store::servers::{Contender, Server};
use crate::wire::{self, Connection};

const VALUE_BYTES: [usize; 4] = [16, 100, 520, 4_000];
/// Bytes of values that are loaded for each size: enough for a server's fixed costs not to matter.
const LOAD_BYTES: usize = 400 * MB;
const KEYS_LIMIT: usize = 1_000_000;

/// Growth of `used_memory` beside growth of resident memory.
pub(super) const USED_MEMORY: Subject = Subject {
    name: "used_memory",
    rows: || {
        let rows = VALUE_BYTES.into_iter().flat_map(|bytes| {
            let row = |name: &str, label: &str, unit| {
                let name = format!("store.large.used_memory.v{bytes}.{name}");
                Row::new(name, format!("{bytes}-byte values: {label}"), unit)
            };
            [
                row("used", "used_memory", "B/key"),
                row("resident", "resident memory", "B/key"),
                row("error", "difference", "%").goal(Some(Goal::AtMost(5.0))),
            ]
        });
        rows.collect()
    },
    measure: |setting, contender| {
        let mut values = Vec::new();
        for bytes in VALUE_BYTES {
            values.extend(growth(setting, contender, bytes)?);
        }
        Ok(values)
    },
};

/// Per key: growth of `used_memory`, of resident memory, and their difference in percent of the latter.
fn growth(setting: &Setting<'_>, contender: &Contender, bytes: usize) -> Result<[f64; 3]> {
    let keys = setting.size((LOAD_BYTES / bytes).min(KEYS_LIMIT));
    let server = contender.start(setting.stage, &[])?;
    let resident_before = settled_bytes(&server)?;
    let used_before = info_number(&server, "used_memory")?;
    let value = vec![b'v'; bytes];
    wire::load(server.address(), keys, |index, out| {
        let key = format!("key:{index:012}");
        wire::push_command(out, &[b"SET", key.as_bytes(), &value]);
    })?;
    wire::check_count(server.address(), keys)?;
    let resident = settled_bytes(&server)?.saturating_sub(resident_before) as f64 / keys as f64;
    let used = (info_number(&server, "used_memory")? - used_before) / keys as f64;
    Ok([used, resident, (used / resident - 1.0).abs() * 100.0])
}

/// A number of INFO by its name.
pub(super) fn info_number(server: &Server, name: &str) -> Result<f64> {
    let mut connection = Connection::open(server.address())?;
    let mut request = Vec::new();
    wire::push_command(&mut request, &[b"INFO", b"everything"]);
    // PING's reply marks the end.
    wire::push_command(&mut request, &[b"PING"]);
    connection.send(&request)?;
    let mut number = None;
    loop {
        let line = connection.reply()?;
        if line == b"+PONG" {
            return number.with_context(|| format!("INFO has no {name}"));
        }
        let line = String::from_utf8_lossy(&line);
        if let Some(value) = line
            .strip_prefix(name)
            .and_then(|rest| rest.strip_prefix(':'))
        {
            number = value.parse().ok();
        }
    }
}
