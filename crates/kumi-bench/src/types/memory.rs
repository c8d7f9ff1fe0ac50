//! Resident bytes of collections.
//!
//! A fresh server for each figure: its resident memory before, the collections, its resident memory after. Growth per
//! key (or per element), everything included: tables, allocator slack, the names of the keys.

use std::net::SocketAddr;

use anyhow::{Context, Result};

use crate::args::{Family, TypesArgs, TypesPart};
use crate::progress::Progress;
use crate::report::{Goal, Report, Row};
use crate::store::memory::settled_bytes;
use crate::store::servers::{Contender, Stage};
use crate::types::sample;
use crate::types::values::{self, LARGE, Shape, key};
use crate::wire;

/// The sizes at which no collection may take more than Redis's.
const SIZES: [usize; 4] = [5, 129, 513, 1000];
/// The long elements of such collections.
const LONG: [Option<usize>; 3] = [None, Some(100), Some(4096)];
/// Elements of small values.
const FIVE: usize = 5;

/// One figure.
struct Figure {
    name: String,
    label: String,
    unit: &'static str,
    family: Family,
    /// As a multiple of Redis's.
    at_most: f64,
    load: Load,
    /// What the growth is divided by.
    count: usize,
}

/// What is loaded.
#[derive(Clone, Copy, Debug)]
enum Load {
    /// Many collections of one shape.
    Many(Shape, usize),
    /// One collection.
    One(Shape),
    /// A stream of so many entries, all of them pending or none.
    Stream { entries: usize, pending: bool },
}

/// Measures one part.
pub(super) fn measure(
    part: TypesPart,
    stage: &Stage,
    args: &TypesArgs,
    contenders: &[Contender],
    progress: &Progress,
    report: &mut Report,
) -> Result<()> {
    let (title, figures) = match part {
        TypesPart::Small => ("Memory of small values", small(args.keys.get())),
        TypesPart::Large => ("Memory of one large value", large(args)),
        _ => ("Memory by number of elements", sizes(args.keys.get())),
    };
    let figures: Vec<Figure> = figures
        .into_iter()
        .filter(|figure| args.wants_row(figure.family, &figure.name))
        .collect();
    let runs = args.runs.get().min(3);
    let mut task = progress.task("memory", figures.len() * contenders.len() * runs);
    let mut rows = Vec::new();
    for figure in figures {
        let goal = Some(Goal::RatioAtMost(figure.at_most));
        let mut row = Row::new(&figure.name, &figure.label, figure.unit).goal(goal);
        for contender in contenders {
            let mut bytes = Vec::new();
            for _ in 0..runs {
                task.begin(&format!("{} in {}", figure.label, contender.name()));
                let growth = growth(stage, contender, figure.load).with_context(|| {
                    format!("cannot measure the memory of {}", contender.name())
                })?;
                bytes.push(growth as f64 / figure.count as f64);
                task.end();
            }
            row.add(contender.name(), sample(bytes)?);
        }
        rows.push(row);
    }
    if !rows.is_empty() {
        report.section(format!("{title}: growth of resident memory"), rows);
    }
    Ok(())
}

/// Many small values, by key.
fn small(keys: usize) -> Vec<Figure> {
    let shape = |family| Shape::short(family, FIVE);
    let integers = Shape {
        integers: true,
        ..shape(Family::Set)
    };
    let long = Shape {
        long: Some(100),
        ..shape(Family::Hash)
    };
    let rows = [
        ("hash", "hash of five fields", 0.70, shape(Family::Hash)),
        ("list", "list of five values", 0.45, shape(Family::List)),
        ("set", "set of five integers", 0.60, integers),
        ("zset", "sorted set of five", 0.70, shape(Family::Zset)),
        ("hash_long", "hash with one of 100 bytes", 0.50, long),
    ];
    let figure = |(name, label, at_most, shape): (&str, &str, f64, Shape)| Figure {
        name: format!("types.memory.five.{name}"),
        label: label.to_owned(),
        unit: "B/key",
        family: shape.family,
        at_most,
        load: Load::Many(shape, keys),
        count: keys,
    };
    rows.into_iter().map(figure).collect()
}

/// One large value, by element.
fn large(args: &TypesArgs) -> Vec<Figure> {
    let members = args.members.get();
    let entries = args.keys.get();
    let one = |family| Load::One(Shape::short(family, members));
    let stream = |pending| Load::Stream { entries, pending };
    let rows = [
        ("hash", Family::Hash, 0.65, members, one(Family::Hash)),
        ("set", Family::Set, 0.75, members, one(Family::Set)),
        ("zset", Family::Zset, 0.65, members, one(Family::Zset)),
        ("stream", Family::Stream, 1.0, entries, stream(false)),
        ("pending", Family::Stream, 1.0, entries, stream(true)),
    ];
    let figure = |(name, family, at_most, count, load): (&str, Family, f64, usize, Load)| Figure {
        name: format!("types.memory.large.{name}"),
        label: format!("{name} of {count} elements"),
        unit: "B/element",
        family,
        at_most,
        load,
        count,
    };
    rows.into_iter().map(figure).collect()
}

/// Values of several sizes, with and without a long element, by key. There are as many elements in all as in the small
/// values.
fn sizes(keys: usize) -> Vec<Figure> {
    let mut figures = Vec::new();
    for family in [Family::List, Family::Hash, Family::Set, Family::Zset] {
        for elements in SIZES {
            for long in LONG {
                let shape = Shape {
                    long,
                    ..Shape::short(family, elements)
                };
                let long = long.map_or(0, |bytes| bytes);
                let label = match long {
                    0 => format!("{family} of {elements}"),
                    _ => format!("{family} of {elements}, one of {long} bytes"),
                };
                // A long element weighs as much as many short ones.
                let weight = elements + long / 8;
                let count = (keys * FIVE / weight).max(1);
                figures.push(Figure {
                    name: format!("types.memory.{family}.{elements}.long{long}"),
                    label,
                    unit: "B/key",
                    family,
                    at_most: 1.0,
                    load: Load::Many(shape, count),
                    count,
                });
            }
        }
    }
    figures
}

/// How much the resident memory of a fresh server grows.
fn growth(stage: &Stage, contender: &Contender, load: Load) -> Result<u64> {
    let server = contender.start(stage, &[])?;
    let before = settled_bytes(&server)?;
    fill(server.address(), load)?;
    let after = settled_bytes(&server)?;
    Ok(after.saturating_sub(before))
}

fn fill(address: SocketAddr, load: Load) -> Result<()> {
    match load {
        Load::Many(shape, keys) => {
            wire::load(address, keys, |index, out| {
                shape.push(out, &key(shape.family, index));
            })?;
            wire::check_count(address, keys)
        }
        Load::One(shape) => {
            shape.load_large(address)?;
            wire::check_count(address, 1)
        }
        Load::Stream { entries, pending } => {
            wire::load(address, entries, |index, out| {
                values::push_entry(out, LARGE, index + 1);
            })?;
            if pending {
                values::deliver_all(address, LARGE, entries)?;
            }
            wire::check_count(address, 1)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_of_figures_are_unique() {
        let figures = small(10).into_iter().chain(sizes(10));
        let names: Vec<String> = figures.map(|figure| figure.name).collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
        assert_eq!(names.len(), 5 + 48);
    }
}
