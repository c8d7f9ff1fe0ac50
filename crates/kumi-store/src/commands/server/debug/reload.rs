//! DEBUG RELOAD: all data through an RDB file and back. A server without files keeps the file in memory, for NOSAVE.

use crate::base::error::{CommandError, CommandResult};
use crate::commands::options::OptionReader;
use crate::commands::typed::dump::limits;
use crate::data::keyspace::Expiry;
use crate::data::rdb::{FileError, FileReader, Item, SavedKey};
use crate::engine::store::ctx::Ctx;
use kumi_resp::Args;
use std::io::Read;

pub(super) fn reload(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (mut flush, mut save, mut merge) = (true, true, false);
    let mut options = OptionReader::new(args, 2);
    while let Some(word) = options.word() {
        match &*word {
            b"merge" => (flush, merge) = (false, true),
            b"noflush" => flush = false,
            b"nosave" => save = false,
            _ => {
                return Err(CommandError::fixed(
                    "ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options.",
                ));
            }
        }
    }
    let loaded = if ctx.host.keeps_files() {
        if save {
            ctx.save().map_err(|error| {
                CommandError::new(format!("ERR the RDB file cannot be written: {error}"))
            })?;
        }
        let file = ctx.open_rdb().map_err(|error| broken(&error))?;
        read(ctx, file)?
    } else {
        if save {
            let file = ctx.serialise();
            *ctx.kept_file() = Some(file);
        }
        let file = ctx.kept_file().take().ok_or(BROKEN)?;
        let loaded = read(ctx, &file[..]);
        *ctx.kept_file() = Some(file);
        loaded?
    };
    store(ctx, loaded, flush, merge)?;
    tracing::info!("DB reloaded by DEBUG RELOAD");
    ctx.reply.ok();
    Ok(())
}

const BROKEN: CommandError =
    CommandError::fixed("ERR Error trying to load the RDB dump, check server logs.");

fn broken(error: &dyn std::fmt::Display) -> CommandError {
    tracing::error!(%error, "DEBUG RELOAD cannot load the RDB file");
    BROKEN
}

/// What a file holds.
#[derive(Debug, Default)]
struct Contents {
    keys: Vec<SavedKey>,
    libraries: Vec<Box<[u8]>>,
}

/// Reads a whole file, so that an error changes nothing.
fn read(ctx: &mut Ctx<'_>, file: impl Read) -> Result<Contents, CommandError> {
    let (limits, seed) = (limits(ctx), ctx.keys().seed());
    let verify = ctx.settings().rdbchecksum;
    let mut contents = Contents::default();
    let read = || -> Result<(), FileError> {
        let mut file = FileReader::new(file, limits, seed, verify)?;
        while let Some(item) = file.next_item()? {
            match item {
                Item::Aux(..) => {}
                Item::Library(code) => contents.libraries.push(code),
                Item::Key(saved) => contents.keys.push(saved),
            }
        }
        Ok(())
    };
    read().map_err(|error| broken(&error))?;
    let databases = ctx.databases() as u64;
    if contents.keys.iter().any(|saved| saved.head.db >= databases) {
        return Err(broken(&"the file has more databases than the server"));
    }
    Ok(contents)
}

/// Redis ends where a key is there already and is not to be overwritten; here that is an error, which changes nothing.
fn store(ctx: &mut Ctx<'_>, contents: Contents, flush: bool, merge: bool) -> CommandResult {
    if !flush && !merge {
        let mut keys = ctx.keys();
        for saved in &contents.keys {
            if keys.in_db(saved.head.db as usize).exists(&saved.key) {
                return Err(broken(
                    &"NOFLUSH: a key is there already, and MERGE was not given",
                ));
            }
        }
    }
    if flush {
        for db in 0..ctx.databases() {
            ctx.flush_database(db);
        }
        ctx.scripts().libraries = None;
        ctx.invalidate_everything();
    }
    ctx.load_libraries(&contents.libraries, merge)
        .map_err(|error| broken(&error))?;
    let mut keys = ctx.keys();
    for saved in contents.keys {
        if saved
            .head
            .deadline
            .is_some_and(|deadline| keys.is_due(deadline))
        {
            continue;
        }
        let mut keys = keys.in_db(saved.head.db as usize);
        let expiry = saved.head.deadline.map_or(Expiry::Clear, Expiry::At);
        saved.value.put(&mut keys, &saved.key, expiry);
        keys.set_access(&saved.key, saved.head.idle_s, saved.head.frequency);
    }
    Ok(())
}
