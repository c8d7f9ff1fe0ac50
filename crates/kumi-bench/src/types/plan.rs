//! The numbers of one run of `types`: what the command line asked for, and the defaults of the rest.

use std::num::NonZeroUsize;

use crate::types::options::TypesArgs;

/// Every number the measurements of types use.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// Interleaved runs per command.
    pub(super) runs: usize,
    /// Requests of one run at a pipeline above 1.
    pub(super) requests: usize,
    pub(super) pipelines: Vec<usize>,
    /// Small values of the commands and of the memory rows; also the entries of a stream.
    pub(super) keys: usize,
    /// Elements of the large values that the commands use.
    pub(super) elements: usize,
    /// Members of the one large collection of a memory row.
    pub(super) members: usize,
    /// Short elements of all values together in a row of `sizes`.
    pub(super) sized_elements: usize,
}

impl Plan {
    pub(super) fn of(args: &TypesArgs) -> Plan {
        let either = |given: Option<NonZeroUsize>, full: usize, quick: usize| match given {
            Some(given) => given.get(),
            None if args.quick => quick,
            None => full,
        };
        Plan {
            runs: either(args.runs, 3, 3),
            requests: either(args.requests, 200_000, 100_000),
            pipelines: args.pipelines.clone(),
            keys: either(args.keys, 1_000_000, 200_000),
            elements: either(args.elements, 1_000_000, 1_000_000),
            members: either(args.members, 5_000_000, 1_000_000),
            sized_elements: either(args.keys.map(fivefold), 5_000_000, 1_000_000),
        }
    }

    /// Requests of one run at a pipeline.
    pub(super) fn requests_at(&self, pipeline: usize) -> usize {
        match pipeline {
            1 => self.requests.div_ceil(4),
            _ => self.requests,
        }
    }
}

fn fivefold(keys: NonZeroUsize) -> NonZeroUsize {
    keys.saturating_mul(NonZeroUsize::MIN.saturating_add(4))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command};

    fn plan(line: &str) -> Plan {
        let words = ["kumi-bench", "types"].into_iter();
        let words = words.chain(line.split_whitespace());
        match Cli::try_parse_from(words).unwrap().command {
            Command::Types(args) => Plan::of(&args),
            _ => unreachable!("`types` was asked for"),
        }
    }

    #[test]
    fn a_number_on_the_command_line_counts_more_than_quick() {
        assert_eq!(plan("").keys, 1_000_000);
        assert_eq!(plan("--quick").keys, 200_000);
        assert_eq!(plan("--quick --keys 10").keys, 10);
        assert_eq!(plan("--keys 10").sized_elements, 50);
        assert_eq!(plan("--requests 100").requests_at(1), 25);
    }
}
