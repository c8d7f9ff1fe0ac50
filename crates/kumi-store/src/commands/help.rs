//! The HELP subcommands: a line per subcommand, made from the table's own rows.

use crate::base::error::{CommandError, CommandResult};
use crate::engine::store::ctx::Ctx;
use kumi_resp::Args;

/// The HELP subcommand of the container command in the request.
pub(super) fn from_rows(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let Some(container) = ctx.index().find(&args[0]) else {
        return Err(CommandError::SYNTAX);
    };
    let index = ctx.index();
    let name = index.get(container).row.name.to_ascii_uppercase();
    let mut lines = vec![format!(
        "{name} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"
    )];
    for &id in &index.get(container).subcommands {
        let row = index.get(id).row;
        let head = format!("{} {}", row.name.to_ascii_uppercase(), row.usage);
        lines.push(head.trim_end().to_owned());
        lines.push(format!("    {}", row.summary));
    }
    ctx.reply.array(lines.len());
    for line in &lines {
        ctx.reply.simple(line);
    }
    Ok(())
}

/// The error for a subcommand that takes fewer arguments than its row allows.
pub(super) fn wrong_subcommand_arity(args: Args<'_>) -> CommandError {
    let mut text = b"ERR unknown subcommand or wrong number of arguments for '".to_vec();
    text.extend_from_slice(&args[1]);
    text.extend_from_slice(b"'. Try ");
    text.extend_from_slice(&args[0].to_ascii_uppercase());
    text.extend_from_slice(b" HELP.");
    CommandError::new(text)
}
