//! What INFO and MEMORY are made of: every part of the engine, to read, and of the data its figures alone.

use super::ctx::Ctx;
use super::loading::Loading;
use super::saves::Saves;
use super::{Clients, Snapshot, Store, Telemetry};
use crate::base::clock::Now;
use crate::base::ids::DataId;
use crate::config::Config;
use crate::data::keyspace::Figures;
use crate::engine::command::CommandIndex;
use crate::engine::pubsub::Pubsub;
use crate::engine::script::Scripts;

/// The parts of the engine at one moment, to read.
#[derive(Clone, Copy)]
pub(crate) struct Report<'a> {
    /// When it is made.
    pub(crate) now: Now,
    pub(crate) config: &'a Config,
    pub(crate) index: &'a CommandIndex,
    pub(crate) clients: &'a Clients,
    pub(crate) pubsub: &'a Pubsub,
    pub(crate) scripts: &'a Scripts,
    pub(crate) telemetry: &'a Telemetry,
    pub(crate) data: Figures<'a>,
    pub(crate) saves: Saves,
    /// The id of the data set.
    pub(crate) data_id: DataId,
    /// The snapshot that is being taken.
    pub(crate) snapshot: Option<&'a Snapshot>,
    /// The data set that is being loaded.
    pub(crate) loading: Option<&'a Loading>,
    /// Bytes in use, as `used_memory` shows them.
    pub(crate) used_bytes: usize,
    /// Of them, bytes of sessions and their buffers.
    pub(crate) client_bytes: usize,
    /// For how long entries have been moved out of sparse pages; none if they are not.
    pub(crate) compacting_ms: Option<u64>,
    /// For how long `maxmemory` was exceeded, in all and now.
    pub(crate) exceeded_ms: (u64, u64),
}

impl Store {
    pub(crate) fn report(&self, now: Now) -> Report<'_> {
        Report {
            now,
            config: &self.config,
            index: &self.index,
            clients: &self.clients,
            pubsub: &self.pubsub,
            scripts: &self.scripts,
            telemetry: &self.telemetry,
            data: self.keyspace.figures(),
            saves: self.persistence.saves,
            data_id: self.data_id(),
            snapshot: self.persistence.snapshot.as_ref(),
            loading: self.persistence.loading.as_deref(),
            used_bytes: self.used_memory(),
            client_bytes: self.client_bytes(),
            compacting_ms: self.compacting_ms(),
            exceeded_ms: self.eviction_exceeded_ms(),
        }
    }
}

impl Ctx<'_> {
    /// The parts of the engine, to read. Output buffers are counted and the peak of memory is up to date.
    pub(crate) fn report(&mut self) -> Report<'_> {
        let outputs = self.reply.outputs();
        outputs.count_shared();
        self.store.note_output(outputs);
        self.store.note_peak_memory();
        self.store.report(self.now)
    }
}
