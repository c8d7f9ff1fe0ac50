//! What `kumi-bench types` takes on its command line.

use std::fmt;
use std::num::NonZeroUsize;

use clap::{Args, ValueEnum};

use crate::server_args::ServerArgs;

/// What `types` takes. `types/plan.rs` turns it into the numbers of a run.
#[derive(Debug, Args)]
pub(crate) struct TypesArgs {
    /// Fewer and smaller values, fewer and shorter runs: a rough picture in a few minutes
    #[arg(long)]
    pub(crate) quick: bool,

    /// Measure only these parts; several may be given, separated by commas
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PART")]
    pub(crate) only: Vec<TypesPart>,

    /// Measure only these types; several may be given, separated by commas
    #[arg(long, value_enum, value_delimiter = ',', value_name = "TYPE")]
    pub(crate) types: Vec<Family>,

    /// Measure only rows whose name contains one of these words, separated by commas
    #[arg(long, value_delimiter = ',', value_name = "WORD")]
    pub(crate) rows: Vec<String>,

    /// Interleaved runs per command, of which the median counts [default: 3]
    #[arg(long, value_name = "N")]
    pub(crate) runs: Option<NonZeroUsize>,

    /// Requests of one run at a pipeline above 1; a quarter of them at pipeline 1 [default: 200000, or 100000 with --quick]
    #[arg(long, value_name = "N")]
    pub(crate) requests: Option<NonZeroUsize>,

    /// Pipeline depths of the commands
    #[arg(long, value_delimiter = ',', default_values_t = [1, 16], value_name = "DEPTH")]
    pub(crate) pipelines: Vec<usize>,

    /// Small values of the commands and of the memory rows; also the entries of a stream
    /// [default: 1000000, or 200000 with --quick]
    #[arg(long, value_name = "N")]
    pub(crate) keys: Option<NonZeroUsize>,

    /// Elements of the large values that the commands use [default: 1000000]
    #[arg(long, value_name = "N")]
    pub(crate) elements: Option<NonZeroUsize>,

    /// Members of the one large collection of a memory row [default: 5000000, or 1000000 with --quick]
    #[arg(long, value_name = "N")]
    pub(crate) members: Option<NonZeroUsize>,

    #[command(flatten)]
    pub(crate) servers: ServerArgs,

    /// Do not pin servers and clients to different cores
    #[arg(long)]
    pub(crate) no_pin: bool,
}

impl TypesArgs {
    /// Whether a part was asked for; without `--only`, every part was.
    pub(crate) fn wants(&self, part: TypesPart) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }

    /// Whether a row of this type was asked for, by type and by name.
    pub(crate) fn wants_row(&self, family: Family, name: &str) -> bool {
        let typed = self.types.is_empty() || self.types.contains(&family);
        let named = self.rows.is_empty() || self.rows.iter().any(|word| name.contains(word));
        typed && named
    }
}

/// One independent part of the measurements of types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TypesPart {
    /// Server CPU per command, on small and on large values
    Commands,
    /// Resident bytes per small value
    Small,
    /// Resident bytes per member of one large collection
    Large,
    /// Resident bytes of values of 5 to 1,000 elements, with and without one long element
    Sizes,
}

/// A type of value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Family {
    List,
    Hash,
    Set,
    Zset,
    Stream,
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Family::List => "list",
            Family::Hash => "hash",
            Family::Set => "set",
            Family::Zset => "zset",
            Family::Stream => "stream",
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command};

    #[test]
    fn rows_of_types_are_chosen_by_type_and_by_word() {
        let words = "kumi-bench types --types hash,set --rows small,five";
        let args = match Cli::try_parse_from(words.split(' ')).unwrap().command {
            Command::Types(args) => args,
            _ => unreachable!("`types` was asked for"),
        };
        assert!(args.wants_row(Family::Hash, "types.hset.small.p16"));
        assert!(!args.wants_row(Family::Hash, "types.hset.large.p16"));
        assert!(!args.wants_row(Family::List, "types.lpush.small.p16"));
        assert!(args.wants(TypesPart::Sizes));
    }
}
