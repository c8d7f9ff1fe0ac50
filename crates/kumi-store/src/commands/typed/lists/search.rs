//! LPOS.

use super::in_range;
use crate::base::error::{CommandError, CommandResult};
use crate::commands::options::OptionReader;
use crate::commands::parse::integer;
use crate::data::keyspace::Look;
use crate::engine::store::ctx::Ctx;
use crate::types::list::List;
use crate::types::packed::Elem;
use kumi_resp::Args;

/// What LPOS looks for.
struct Search {
    /// The matches before this one are passed over; from the back when negative.
    rank: i64,
    /// How many positions are answered, 0 for all; one that is not in an array when there is none.
    count: Option<usize>,
    /// How many elements are compared; 0 for all.
    max_len: usize,
}

pub(super) fn lpos(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let search = parse(args)?;
    let (mut keys, reply) = ctx.keys_and_reply();
    let Some(list) = keys.view::<List>(&args[1], Look::Read)? else {
        match search.count {
            Some(_) => reply.array(0),
            None => reply.null(),
        }
        return Ok(());
    };
    let wanted = Elem::parse(&args[2]);
    let len = list.len();
    let no_limit = |number: usize| if number == 0 { usize::MAX } else { number };
    let compared = no_limit(search.max_len);
    let skipped = usize::try_from(search.rank.unsigned_abs() - 1).unwrap_or(usize::MAX);
    let most = search.count.map_or(1, no_limit);
    let found: Vec<usize> = if search.rank > 0 {
        let elements = list.iter().enumerate().take(compared);
        let matches = elements.filter(|(_, elem)| *elem == wanted);
        matches.map(|(at, _)| at).skip(skipped).take(most).collect()
    } else {
        let elements = list.iter_back().enumerate().take(compared);
        let matches = elements.filter(|(_, elem)| *elem == wanted);
        let positions = matches.map(|(at, _)| len - 1 - at);
        positions.skip(skipped).take(most).collect()
    };
    match (search.count, found.first()) {
        (Some(_), _) => {
            reply.array(found.len());
            found.into_iter().for_each(|at| reply.count(at));
        }
        (None, Some(&at)) => reply.count(at),
        (None, None) => reply.null(),
    }
    Ok(())
}

fn parse(args: Args<'_>) -> Result<Search, CommandError> {
    let mut search = Search {
        rank: 1,
        count: None,
        max_len: 0,
    };
    let mut options = OptionReader::new(args, 3);
    while let Some(word) = options.word() {
        let value = options.value()?;
        match &*word {
            b"rank" => {
                search.rank = in_range(value, -i64::MAX, i64::MAX)?;
                if search.rank == 0 {
                    return Err(CommandError::fixed(
                        "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... \
                         or use negative to start from the end of the list",
                    ));
                }
            }
            b"count" => search.count = Some(not_negative(value, "COUNT")?),
            b"maxlen" => search.max_len = not_negative(value, "MAXLEN")?,
            _ => return Err(CommandError::SYNTAX),
        }
    }
    Ok(search)
}

fn not_negative(arg: &[u8], name: &str) -> Result<usize, CommandError> {
    // Redis answers the same for a negative number and for what is no number.
    let number = integer(arg)
        .ok()
        .and_then(|number| usize::try_from(number).ok());
    number.ok_or_else(|| CommandError::new(format!("ERR {name} can't be negative")))
}
