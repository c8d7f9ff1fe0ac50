//! Which id a loaded data set has, and whether the id is kept beside the data.

use super::loading::Found;
use super::{EngineIo, Front, ServerError};
use crate::files::data_id;
use kumi_store::DataId;
use kumi_store::config::Settings;
use std::path::Path;

impl Front {
    /// Decides which id the data set has: the one that was loaded with it, the one that was kept beside it, or the new one.
    /// An id that the data does not carry is kept beside it, see `files/data_id.rs`. Call it when the data is loaded.
    pub(crate) fn settle_data_id(
        &mut self,
        engine: &mut EngineIo<'_>,
        found: Found,
    ) -> Result<(), ServerError> {
        if self.config.keeps_files {
            let settings = engine.store.config().settings();
            let (path, is_plain) = (data_id::path(settings), has_plain_base(settings));
            if found == Found::Data && !engine.store.has_loaded_data_id() {
                let kept = data_id::read(&path).map_err(|error| ServerError::Load {
                    path: path.clone(),
                    error: error.to_string(),
                })?;
                match kept {
                    Some(id) => engine.store.set_data_id(id),
                    None => write(&path, engine.store.data_id()),
                }
            } else if is_plain {
                write(&path, engine.store.data_id());
            } else {
                // The data has its id, or there is no data yet and the first save carries it.
                remove(&path);
            }
        }
        self.data_id = Some(engine.store.data_id());
        Ok(())
    }

    /// Keeps the id beside the data when an append-only file begins that has no place for it.
    pub(crate) fn keep_data_id(&self, settings: &Settings, changed: &[&'static str]) {
        let concerns = ["appendonly", "aof-use-rdb-preamble"];
        if self.config.keeps_files
            && has_plain_base(settings)
            && concerns.iter().any(|name| changed.contains(name))
            && let Some(id) = self.data_id
        {
            write(&data_id::path(settings), id);
        }
    }
}

/// A server whose directory cannot be written to serves all the same: it gets another id at its next start.
fn write(path: &Path, id: DataId) {
    if let Err(error) = data_id::write(path, id) {
        tracing::warn!(%error, "the id of the data set cannot be written to {}", path.display());
    }
}

fn remove(path: &Path) {
    if let Err(error) = data_id::remove(path) {
        tracing::warn!(%error, "{} cannot be removed", path.display());
    }
}

/// Whether the base of the append-only file is in the form of requests, which has no place for an id.
fn has_plain_base(settings: &Settings) -> bool {
    settings.appendonly && !settings.aof_use_rdb_preamble
}
