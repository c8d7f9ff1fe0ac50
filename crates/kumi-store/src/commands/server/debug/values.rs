//! The subcommands of DEBUG that show how a value is stored, or change how values are stored.

use crate::base::error::{CommandError, CommandResult};
use crate::commands::typed::dump::compression;
use crate::commands::typed::object::encoding_name;
use crate::config::parse_memory;
use crate::data::keyspace::{DebugSwitches, Entry, Look, ValueRef, idle_seconds};
use crate::data::rdb::{Compression, Writer, write_value};
use crate::engine::store::ctx::Ctx;
use crate::types::list::{ListEncoding, ListRef, NodeRef, lone_listpack_bytes};
use kumi_resp::Args;

pub(super) fn object(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let now_ms = ctx.now.unix_ms();
    let compression = compression(ctx);
    let compresses = ctx.config().get([b"list-compress-depth".as_slice()]);
    let compresses = compresses.iter().any(|(_, depth)| depth != b"0");
    let (keys, reply) = ctx.keys_and_reply();
    // As in Redis, a key that has expired is found as long as it is there.
    let entry = keys.look_stored(&args[2]);
    let entry = entry.ok_or(CommandError::NO_SUCH_KEY)?;
    // The address is that of the reference: the address of the value is private to the entry.
    reply.simple(&format!(
        "Value at:{entry:p} refcount:1 encoding:{} serializedlength:{} lru:{} lru_seconds_idle:{}{}",
        encoding_name(entry),
        serialized_len(entry, compression),
        entry.access_clock(),
        idle_seconds(entry, now_ms),
        nodes_of(entry, compresses),
    ));
    Ok(())
}

/// Writes the elements of a value that is a listpack by name to the log.
pub(super) fn listpack(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (mut keys, reply) = ctx.keys_and_reply();
    let entry = keys.look(&args[2], Look::Inspect);
    let entry = entry.ok_or(CommandError::NO_SUCH_KEY)?;
    if encoding_name(entry) != "listpack" {
        return Err(CommandError::fixed("ERR Not a listpack encoded object."));
    }
    tracing::info!("DEBUG LISTPACK: {:?}", entry.value());
    reply.simple("Listpack structure printed on stdout");
    Ok(())
}

/// Writes the nodes of a list that is a quicklist by name to the log.
pub(super) fn quicklist(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (mut keys, reply) = ctx.keys_and_reply();
    let entry = keys.look(&args[2], Look::Inspect);
    match entry.ok_or(CommandError::NO_SUCH_KEY)?.value() {
        ValueRef::List(list) if list.encoding() == ListEncoding::Quicklist => {
            tracing::info!("DEBUG QUICKLIST: {list:?}");
            reply.simple("Quicklist structure printed on stdout");
            Ok(())
        }
        _ => Err(CommandError::fixed("ERR Not a quicklist encoded object.")),
    }
}

pub(super) fn packed_threshold(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    /// Nodes near 4 GiB are too large for a listpack.
    const LARGEST: u64 = (1 << 32) - (1 << 20);
    let bytes = parse_memory(&args[2]).filter(|&bytes| bytes <= LARGEST);
    let bytes = bytes.ok_or(CommandError::fixed(
        "ERR argument must be a memory value bigger than 1 and smaller than 4gb",
    ))?;
    let plain_node_bytes = match bytes {
        0 => DebugSwitches::default().plain_node_bytes,
        bytes => bytes as usize,
    };
    ctx.set_debug_switches(DebugSwitches {
        plain_node_bytes,
        ..ctx.debug_switches()
    });
    ctx.reply.ok();
    Ok(())
}

pub(super) fn skip_checksum(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let on = crate::base::number::parse_i64(&args[2]).is_some_and(|on| on != 0);
    ctx.set_debug_switches(DebugSwitches {
        skip_checksum: on,
        ..ctx.debug_switches()
    });
    ctx.reply.ok();
    Ok(())
}

/// Bytes of the value in a snapshot, without its type.
fn serialized_len(entry: &Entry, compression: Compression) -> usize {
    let mut bytes = Vec::new();
    write_value(&mut Writer::new(&mut bytes, compression), entry.value());
    bytes.len() - 1
}

/// What DEBUG OBJECT tells of the nodes of a quicklist. `compresses` is what `list-compress-depth` asks for; nodes are not
/// compressed.
fn nodes_of(entry: &Entry, compresses: bool) -> String {
    let ValueRef::List(list) = entry.value() else {
        return String::new();
    };
    if list.encoding() != ListEncoding::Quicklist {
        return String::new();
    }
    let nodes = list.node_count();
    let average = list.len() as f64 / nodes.max(1) as f64;
    format!(
        " ql_nodes:{nodes} ql_avg_node:{average:.2} ql_listpack_max:{} ql_compressed:{} ql_uncompressed_size:{}",
        list.fill(),
        u8::from(compresses),
        node_bytes(list),
    )
}

fn node_bytes(list: ListRef<'_>) -> usize {
    let nodes = (0..list.node_count()).filter_map(|at| list.node(at));
    nodes
        .map(|node| match node {
            NodeRef::Packed(node) => node.listpack_bytes(),
            NodeRef::Lone(element) => lone_listpack_bytes(element),
            NodeRef::Plain(element) => element.len(),
        })
        .sum()
}
