//! LCS: the longest common subsequence of two strings, by the classic table.
//!
//! ```text
//!            b0   b1   b2         lengths[i][j] is the length of the longest common subsequence
//!       0    0    0    0          of a's first i and b's first j bytes. The walk back from the
//!   a0  0    .    .    .          corner follows the larger neighbour, and goes to the left when
//!   a1  0    .    .    .          they are equal: which of several longest answers a client gets
//!                                 depends on that, so it is fixed.
//! ```
//!
//! The table takes four bytes for each pair of positions and may not take more than `proto-max-bulk-len`.
//! When only the length is asked for, two rows would do and two rows are kept; the limit is the same, so
//! that an option does not decide whether two strings can be compared.

use crate::base::error::{CommandError, CommandResult};
use crate::base::number::format_i64;
use crate::commands::options::OptionReader;
use crate::commands::parse::integer;
use crate::data::keyspace::{Keys, StringRef};
use crate::engine::reply::Reply;
use crate::engine::store::ctx::Ctx;
use kumi_resp::Args;

#[derive(Debug, Default)]
struct Options {
    length_only: bool,
    matches: bool,
    match_lengths: bool,
    /// Shorter matches are not shown.
    shortest: usize,
}

/// A run of bytes that both strings share, positions included on both ends.
#[derive(Debug, PartialEq, Eq)]
struct Match {
    first: (usize, usize),
    second: (usize, usize),
}

pub(super) fn lcs(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let limit = ctx.settings().proto_max_bulk_len;
    let (mut keys, reply) = ctx.keys_and_reply();
    // Both keys are looked up, with what that announces, before the type of either is wrong.
    let (first, second) = (copy(&mut keys, &args[1]), copy(&mut keys, &args[2]));
    let (first, second) = (first?, second?);
    let options = Options::parse(args.tail(3))?;
    check_size(first.len(), second.len(), limit)?;
    if options.length_only {
        reply.count(common_length(&first, &second));
        return Ok(());
    }
    let table = Table::new(&first, &second)?;
    if options.matches {
        let matches = table.matches(&first, &second);
        answer_matches(reply, &matches, &options);
        reply.bulk(b"len");
        reply.count(table.length());
    } else {
        reply.bulk(table.sequence(&first, &second));
    }
    Ok(())
}

impl Options {
    fn parse(args: Args<'_>) -> Result<Self, CommandError> {
        let mut options = Self::default();
        let mut reader = OptionReader::new(args, 0);
        while let Some(word) = reader.word() {
            match &*word {
                b"idx" => options.matches = true,
                b"len" => options.length_only = true,
                b"withmatchlen" => options.match_lengths = true,
                b"minmatchlen" => {
                    let length = integer(reader.value()?)?;
                    options.shortest = usize::try_from(length).unwrap_or(0);
                }
                _ => return Err(CommandError::SYNTAX),
            }
        }
        if options.matches && options.length_only {
            return Err(CommandError::fixed(
                "ERR If you want both the length and indexes, please just use IDX.",
            ));
        }
        Ok(options)
    }
}

/// The second lookup may remove an expired key, so the first string cannot stay borrowed.
fn copy(keys: &mut Keys<'_>, key: &[u8]) -> Result<Vec<u8>, CommandError> {
    const NOT_STRINGS: CommandError =
        CommandError::fixed("ERR The specified keys must contain string values");
    Ok(match keys.read(key).map_err(|_| NOT_STRINGS)? {
        None => Vec::new(),
        Some(StringRef::Int(number)) => format_i64(number).to_vec(),
        Some(StringRef::Bytes { bytes, .. }) => bytes.to_vec(),
    })
}

fn check_size(first: usize, second: usize, limit: usize) -> CommandResult {
    let too_long = u32::MAX as usize - 1;
    if first >= too_long || second >= too_long {
        return Err(CommandError::fixed("ERR String too long for LCS"));
    }
    let bytes = (first as u128 + 1) * (second as u128 + 1) * size_of::<u32>() as u128;
    if bytes > limit as u128 {
        return Err(CommandError::fixed(
            "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len",
        ));
    }
    Ok(())
}

fn answer_matches(reply: &mut Reply, matches: &[Match], options: &Options) {
    let shown = matches
        .iter()
        .filter(|found| found.len() >= options.shortest);
    reply.map(2);
    reply.bulk(b"matches");
    reply.array(shown.clone().count());
    for found in shown {
        reply.array(2 + usize::from(options.match_lengths));
        for (start, end) in [found.first, found.second] {
            reply.array(2);
            reply.count(start);
            reply.count(end);
        }
        if options.match_lengths {
            reply.count(found.len());
        }
    }
}

impl Match {
    fn len(&self) -> usize {
        self.first.1 - self.first.0 + 1
    }
}

/// Fills the row after `above`.
fn next_row(byte: u8, second: &[u8], above: &[u32], row: &mut [u32]) {
    let mut left = 0;
    for (column, &other) in second.iter().enumerate() {
        left = if byte == other {
            above[column] + 1
        } else {
            left.max(above[column + 1])
        };
        row[column + 1] = left;
    }
}

fn common_length(first: &[u8], second: &[u8]) -> usize {
    let mut above = vec![0; second.len() + 1];
    let mut row = above.clone();
    for &byte in first {
        next_row(byte, second, &above, &mut row);
        std::mem::swap(&mut above, &mut row);
    }
    above.last().map_or(0, |&length| length as usize)
}

struct Table {
    lengths: Vec<u32>,
    /// Columns of a row.
    width: usize,
}

impl Table {
    fn new(first: &[u8], second: &[u8]) -> Result<Self, CommandError> {
        let width = second.len() + 1;
        let cells = (first.len() + 1) * width;
        let mut lengths = Vec::new();
        lengths.try_reserve_exact(cells).map_err(|_| {
            CommandError::fixed(
                "ERR Insufficient memory, failed allocating transient memory for LCS",
            )
        })?;
        lengths.resize(cells, 0);
        for (row, &byte) in first.iter().enumerate() {
            let (above, below) = lengths.split_at_mut((row + 1) * width);
            next_row(byte, second, &above[row * width..], &mut below[..width]);
        }
        Ok(Self { lengths, width })
    }

    fn length(&self) -> usize {
        self.lengths.last().map_or(0, |&length| length as usize)
    }

    /// Walks back from the corner and shows the positions of every byte in common, the last first.
    fn walk(&self, first: &[u8], second: &[u8], mut visit: impl FnMut(usize, usize)) {
        let (mut row, mut column) = (first.len(), second.len());
        while row > 0 && column > 0 {
            if first[row - 1] == second[column - 1] {
                row -= 1;
                column -= 1;
                visit(row, column);
            } else if self.at(row - 1, column) > self.at(row, column - 1) {
                row -= 1;
            } else {
                column -= 1;
            }
        }
    }

    fn at(&self, row: usize, column: usize) -> u32 {
        self.lengths[row * self.width + column]
    }

    fn sequence(&self, first: &[u8], second: &[u8]) -> Vec<u8> {
        let mut sequence = Vec::with_capacity(self.length());
        self.walk(first, second, |row, _| sequence.push(first[row]));
        sequence.reverse();
        sequence
    }

    /// The runs of common bytes, the last one first.
    fn matches(&self, first: &[u8], second: &[u8]) -> Vec<Match> {
        let mut matches: Vec<Match> = Vec::new();
        self.walk(first, second, |row, column| match matches.last_mut() {
            Some(run) if (run.first.0, run.second.0) == (row + 1, column + 1) => {
                run.first.0 = row;
                run.second.0 = column;
            }
            _ => matches.push(Match {
                first: (row, row),
                second: (column, column),
            }),
        });
        matches
    }
}
