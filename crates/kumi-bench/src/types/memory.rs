//! Resident bytes of collections.
//!
//! A fresh server for each figure: its resident memory before, the collections, its resident memory after. Growth per
//! key (or per element), everything included: tables, allocator slack, the names of the keys. Each figure is one
//! run: the same commands give the same blocks. The rows by size leave out valkey-server, which no goal is about.

use std::net::SocketAddr;

use anyhow::{Context, Result};

use crate::report::{Goal, Report, Row};
use crate::stats::Sample;
use crate::store::memory::settled_bytes;
use crate::store::servers::{Contender, Stage, VALKEY};
use crate::types::Setting;
use crate::types::options::{Family, TypesPart};
use crate::types::plan::Plan;
use crate::types::values::{self, LARGE, Shape, key};
use crate::wire;

/// The sizes at which no collection may take more than Redis's.
const SIZES: [usize; 4] = [5, 129, 513, 1000];
/// The long elements of such collections.
const LONG: [Option<usize>; 3] = [None, Some(100), Some(4096)];
/// Elements of small values.
const FIVE: usize = 5;
/// Heavier values count as if they had this weight. A server takes a few hundred KB once, whatever it stores; with few
/// values that would be a percent of the difference.
const MOST_WEIGHT: usize = 250;
/// An entry of a stream weighs as much as this many short elements, and is one command.
const ENTRY_WEIGHT: usize = 4;

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
    /// Many streams of so many entries, with a group that has read one of them or without.
    Streams {
        entries: usize,
        group: bool,
        keys: usize,
    },
}

/// Measures one part.
pub(super) fn measure(part: TypesPart, setting: &Setting<'_>, report: &mut Report) -> Result<()> {
    let plan = &setting.plan;
    let (title, figures) = match part {
        TypesPart::Small => ("Memory of small values", small(plan.keys)),
        TypesPart::Large => ("Memory of one large value", large(plan)),
        _ => ("Memory by number of elements", sizes(plan.sized_elements)),
    };
    let figures: Vec<Figure> = figures
        .into_iter()
        .filter(|figure| setting.args.wants_row(figure.family, &figure.name))
        .collect();
    let contenders: Vec<&Contender> = setting
        .contenders
        .iter()
        .filter(|contender| part != TypesPart::Sizes || contender.name() != VALKEY)
        .collect();
    let mut task = setting
        .progress
        .task("memory", figures.len() * contenders.len());
    let mut rows = Vec::new();
    for figure in figures {
        let goal = Some(Goal::RatioAtMost(figure.at_most));
        let mut row = Row::new(&figure.name, &figure.label, figure.unit).goal(goal);
        for contender in &contenders {
            task.begin(&format!("{} in {}", figure.label, contender.name()));
            let growth = growth(setting.stage, contender, figure.load)
                .with_context(|| format!("cannot measure the memory of {}", contender.name()))?;
            row.add(
                contender.name(),
                Sample::single(growth as f64 / figure.count as f64),
            );
            task.end();
        }
        rows.push(report.shown(row));
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
fn large(plan: &Plan) -> Vec<Figure> {
    let (members, entries) = (plan.members, plan.keys);
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

/// Values of several sizes, with and without a long element, by key. All values of a row together have
/// about `all_elements` short elements, or more bytes where one is long: with few keys, what a server takes
/// once would be most of the difference.
fn sizes(all_elements: usize) -> Vec<Figure> {
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
                // A long element weighs as much as some short ones.
                let weight = elements + long / 32;
                let count = keys(all_elements, weight);
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
    for entries in SIZES {
        for (group, name, label) in [(false, "plain", ""), (true, "group", " and a group")] {
            let keys = keys(all_elements, entries * ENTRY_WEIGHT);
            figures.push(Figure {
                name: format!("types.memory.stream.{entries}.{name}"),
                label: format!("stream of {entries}{label}"),
                unit: "B/key",
                family: Family::Stream,
                at_most: 1.0,
                load: Load::Streams {
                    entries,
                    group,
                    keys,
                },
                count: keys,
            });
        }
    }
    figures
}

/// How many values of a weight there are.
fn keys(all_elements: usize, weight: usize) -> usize {
    (all_elements / weight.min(MOST_WEIGHT)).max(1)
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
        Load::Streams {
            entries,
            group,
            keys,
        } => {
            wire::load(address, keys * entries, |index, out| {
                let key = key(Family::Stream, index / entries);
                values::push_entry(out, &key, index % entries + 1);
            })?;
            if group {
                wire::load(address, keys * 2, |index, out| {
                    let key = key(Family::Stream, index / 2);
                    match index % 2 {
                        0 => values::push_group(out, &key),
                        _ => values::push_read(out, &key, "1"),
                    }
                })?;
            }
            wire::check_count(address, keys)
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
        assert_eq!(names.len(), 5 + 48 + 8);
    }
}
