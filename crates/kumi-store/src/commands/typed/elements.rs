//! What the commands of several collections share: scanning elements, and counts of random ones.

use super::scan::Options;
use crate::base::error::{CommandError, CommandResult};
use crate::base::number::{format_u64, parse_cursor};
use crate::commands::parse::integer;
use crate::data::keyspace::{Collection, Look};
use crate::engine::store::ctx::Ctx;
use kumi_resp::{Args, encode};

/// Positions of a scan that one call visits for each element asked for, if it finds none there.
const POSITIONS_PER_ELEMENT: u64 = 10;

/// HSCAN, SSCAN and ZSCAN: `scan` visits the elements at a cursor, each with what belongs to it, and
/// returns the next cursor.
pub(super) fn scan_elements<T: Collection>(
    ctx: &mut Ctx<'_>,
    args: Args<'_>,
    scan: impl Fn(&T::View<'_>, u64, &mut dyn FnMut(&[u8], Option<&[u8]>)) -> u64,
) -> CommandResult {
    let cursor = parse_cursor(&args[2]).ok_or(CommandError::fixed("ERR invalid cursor"))?;
    let (mut keys, reply) = ctx.keys_and_reply();
    let (mut next, mut shown, mut encoded) = (0, 0, Vec::new());
    if let Some(view) = keys.view::<T>(&args[1], Look::Read)? {
        let options = Options::parse_of_elements(args.tail(3))?;
        next = cursor;
        let mut seen = 0;
        for _ in 0..options.count.saturating_mul(POSITIONS_PER_ELEMENT) {
            next = scan(&view, next, &mut |element, rest| {
                seen += 1;
                if options.pattern.matches(element) {
                    encode::bulk(&mut encoded, element);
                    shown += 1;
                    if let Some(rest) = rest {
                        encode::bulk(&mut encoded, rest);
                        shown += 1;
                    }
                }
            });
            if next == 0 || seen >= options.count {
                break;
            }
        }
    }
    reply.array(2);
    reply.bulk(&*format_u64(next));
    reply.array(shown);
    reply.encoded(&encoded);
    Ok(())
}

/// How many random elements, as HRANDFIELD, SRANDMEMBER and ZRANDMEMBER are asked for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Count {
    /// So many different ones.
    Distinct(usize),
    /// So many, each drawn from all.
    Repeated(usize),
}

/// Reads a count: negative for elements with repetition. In pairs, half of the range is allowed.
pub(super) fn parse_count(text: &[u8], in_pairs: bool) -> Result<Count, CommandError> {
    let count = integer(text)?;
    if count == i64::MIN {
        return Err(CommandError::fixed(
            "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807",
        ));
    }
    if in_pairs && count.unsigned_abs() > i64::MAX as u64 / 2 {
        return Err(CommandError::fixed("ERR value is out of range"));
    }
    let size = count.unsigned_abs() as usize;
    Ok(if count < 0 {
        Count::Repeated(size)
    } else {
        Count::Distinct(size)
    })
}
