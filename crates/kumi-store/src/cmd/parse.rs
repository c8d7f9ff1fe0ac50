//! Arguments as numbers, with the errors clients expect.

use crate::error::CommandError;
use crate::number;

pub(super) fn integer(arg: &[u8]) -> Result<i64, CommandError> {
    number::parse_i64(arg).ok_or(CommandError::NOT_INTEGER)
}

/// A number that must fit an `int`.
pub(super) fn int32(arg: &[u8]) -> Result<i32, CommandError> {
    i32::try_from(integer(arg)?).map_err(|_| {
        CommandError::fixed(
            "ERR value is out of range, value must between -2147483648 and 2147483647",
        )
    })
}
