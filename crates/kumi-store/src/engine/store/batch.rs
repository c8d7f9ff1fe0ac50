//! Runs of requests: what one read of a pipelining client brought, planned together and then
//! executed one after the other.
//!
//! ```text
//! front:  decode a request -> Store::plan       finds the row, hashes the keys
//!         ... as long as there are whole requests
//! front:  Store::execute_batch                  prefetches buckets, entries, streams and members, then executes in order
//! ```
//!
//! The plan holds hints only: hashes, and the row a name stands for. Everything that a command can
//! change for the ones behind it (database, protocol, reply mode, MULTI, closing, blocking) is read
//! again for each command. A command that changes how the bytes behind it are decoded ends the run.

use crate::base::ids::CommandId;
use crate::base::ids::SessionKey;
use crate::engine::command::{Command, CommandIndex, Group, flag};
use crate::engine::host::Host;
use crate::engine::output::Outputs;
use crate::engine::session::{PackedName, Resolved};
use crate::engine::store::{Flow, Store};
use kumi_resp::{Args, Batch};

/// Keys of one run that are hashed ahead. Later ones are hashed when their command runs.
const MAX_HINTS: usize = 256;

/// The most requests of a run: their keys' cache lines have to stay in the cache until they are
/// used.
pub const MAX_BATCH_REQUESTS: usize = 64;

/// In a run of fewer requests, loading members ahead costs more than it saves.
const LEAST_MEMBERS: usize = 4;

/// What is known of a request before it runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Planned {
    /// None if the request names no command, or not with this number of arguments.
    id: Option<CommandId>,
    /// The place of its first key among the hints.
    first_hint: usize,
}

impl Store {
    /// Prepares the next request of a run. Returns whether the request behind it may be decoded
    /// now; if not, execute the run first.
    pub fn plan(&mut self, key: SessionKey, args: Args<'_>) -> bool {
        let first_hint = self.keyspace.work.hints.len();
        let Some(session) = self.clients.sessions.get_mut(key) else {
            // CLIENT KILL ended it, and its socket is not closed yet. The run has its place for
            // the request all the same; executing it closes the connection.
            let id = None;
            self.run.plan.push(Planned { id, first_hint });
            return false;
        };
        let id = resolve(&self.index, &mut session.activity.last_planned, args);
        self.run.plan.push(Planned { id, first_hint });
        let Some(id) = id else {
            return true;
        };
        let found = self.index.get(id);
        let row = found.row;
        let db = session.db;
        self.run.has_streams |= row.group == Group::Stream;
        self.run.has_members |= names_a_member(row);
        // The usual case by itself: the first argument is the key, and the only one.
        if found.single_key.is_some() {
            if let Some(name) = args.get(1)
                && first_hint < MAX_HINTS
            {
                self.keyspace.hash_ahead(db, name);
            }
            return !row.has(flag::CHANGES_INPUT);
        }
        for spec in row.keys {
            let room = MAX_HINTS.saturating_sub(self.keyspace.work.hints.len());
            let positions = spec.positions(args).into_iter().flatten();
            for position in positions.take(room) {
                if let Some(name) = args.get(position) {
                    self.keyspace.hash_ahead(db, name);
                }
            }
        }
        !row.has(flag::CHANGES_INPUT)
    }

    /// Executes the planned requests in order, up to the first that blocks or closes its session.
    /// Returns how many were executed, and how the last one left the session.
    pub fn execute_batch(
        &mut self,
        key: SessionKey,
        batch: &Batch,
        buffer: &[u8],
        outputs: &mut Outputs,
        host: &mut dyn Host,
    ) -> (usize, Flow) {
        // Taken, because a long command may let the front run other batches meanwhile.
        let plan = std::mem::take(&mut self.run.plan);
        debug_assert_eq!(plan.len(), batch.len(), "every request was planned");
        if let Some(session) = self.clients.sessions.get(key) {
            self.keyspace.prefetch_entries(session.db);
            if std::mem::take(&mut self.run.has_streams) {
                self.keyspace.prefetch_streams(session.db);
            }
            if std::mem::take(&mut self.run.has_members) && plan.len() >= LEAST_MEMBERS {
                let members = plan.iter().enumerate().filter_map(|(index, planned)| {
                    let row = self.index.get(planned.id?).row;
                    let args = batch.args(buffer, index);
                    Some((planned.first_hint, member_of(row, args)?))
                });
                self.keyspace.prefetch_members(session.db, members);
            }
        }
        self.now = host.now();
        let outer = std::mem::replace(&mut self.run.in_batch, true);
        let (mut executed, mut flow) = (0, Flow::Done);
        for (index, planned) in plan.iter().enumerate().take(batch.len()) {
            self.keyspace.work.hints.seek(planned.first_hint);
            let args = batch.args(buffer, index);
            executed += 1;
            flow = self.execute_as(key, planned.id, args, outputs, host);
            if flow != Flow::Done {
                break;
            }
        }
        self.end_measuring(host);
        self.run.in_batch = outer;
        self.keyspace.work.hints.clear();
        if self.run.plan.is_empty() {
            self.run.plan = plan;
            self.run.plan.clear();
        }
        (executed, flow)
    }
}

/// Whether a command may look up one member of a hash, a set or a sorted set. Some of the fast ones have a number or a
/// key where others have a member; then what is loaded is not used.
fn names_a_member(row: &Command) -> bool {
    let group = matches!(row.group, Group::Hash | Group::Set | Group::SortedSet);
    group && row.has(flag::FAST)
}

/// The member that a request names first, or, of a sorted set, last: its score comes before it.
fn member_of<'a>(row: &Command, args: Args<'a>) -> Option<&'a [u8]> {
    match row.group {
        _ if !names_a_member(row) || args.len() < 3 => None,
        Group::SortedSet => args.get(args.len() - 1),
        _ => args.get(2),
    }
}

impl Store {
    /// Reads the clock for the commands that left it to a later one.
    pub(super) fn end_measuring(&mut self, host: &mut dyn Host) {
        if self.telemetry.has_unmeasured() {
            let before_ns = self.now.mono_ns;
            self.now = host.now();
            let elapsed_ns = self.now.mono_ns.saturating_sub(before_ns);
            self.telemetry.share_out_all(elapsed_ns);
        }
    }

    /// Whether a command may leave the reading of the clock to a later one of its run.
    #[inline]
    pub(super) fn shares_reading(&self, flags: u32, in_script: bool) -> bool {
        (self.run.in_batch || in_script)
            && self.telemetry.shares_reading(flags)
            && self.clients.monitors.is_empty()
    }
}

/// The row of a request if the request may run. A pipeline repeats itself, so the name is compared with `last` first.
#[inline]
fn resolve(index: &CommandIndex, last: &mut Option<Resolved>, args: Args<'_>) -> Option<CommandId> {
    let name = PackedName::new(args.get(0)?);
    if let (Some(name), Some(last)) = (name, *last)
        && name == last.name
        && index.get(last.id).row.accepts(args.len())
    {
        return Some(last.id);
    }
    resolve_anew(index, name, last, args)
}

#[inline(never)]
fn resolve_anew(
    index: &CommandIndex,
    name: Option<PackedName>,
    last: &mut Option<Resolved>,
    args: Args<'_>,
) -> Option<CommandId> {
    let id = index.resolve(args).ok()?;
    let found = index.get(id);
    // The row of a container depends on the next word.
    if let Some(name) = name
        && found.parent.is_none()
        && found.subcommands.is_empty()
    {
        *last = Some(Resolved { name, id });
    }
    Some(id)
}

#[cfg(test)]
mod tests;
