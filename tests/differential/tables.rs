//! The rules for the three big tables a server tells about itself: INFO, CONFIG GET and COMMAND.
//!
//! Every name of the reference must be there, and every value that is not a measurement or the machine's must be the
//! same; what the server may have besides, and what it may lack, is listed in [`crate::known_differences`].

use std::collections::{BTreeMap, BTreeSet};

use crate::command::Request;
use crate::grammar::has_command;
use crate::known_differences as known;
use crate::support::frame::Frame;

fn one<'a>(
    reference: &[&'a Frame],
    tested: &[&'a Frame],
) -> Result<(&'a Frame, &'a Frame), String> {
    match (reference, tested) {
        ([reference], [tested])
            if std::mem::discriminant(*reference) == std::mem::discriminant(*tested) =>
        {
            Ok((reference, tested))
        }
        _ => Err("not the same type".into()),
    }
}

/// The fields of each section.
type Sections = BTreeMap<String, BTreeMap<String, String>>;

fn sections(frame: &Frame) -> Result<Sections, String> {
    let text = String::from_utf8_lossy(frame.text().ok_or("not a text")?).into_owned();
    let mut sections = Sections::new();
    let mut current = String::new();
    for line in text.split("\r\n") {
        if let Some(name) = line.strip_prefix("# ") {
            current = name.to_string();
            sections.entry(current.clone()).or_default();
        } else if let Some((name, value)) = line.split_once(':') {
            let section = sections
                .get_mut(&current)
                .ok_or("a field before the first section")?;
            section.insert(name.to_string(), value.to_string());
        } else if !line.is_empty() {
            return Err(format!("{line:?} is neither section nor field"));
        }
    }
    Ok(sections)
}

/// INFO: sections and fields.
pub(crate) fn info(_: &Request, reference: &[&Frame], tested: &[&Frame]) -> Result<(), String> {
    let (expected, found) = one(reference, tested)?;
    let (expected, found) = (sections(expected)?, sections(found)?);
    for (section, fields) in &expected {
        let Some(found) = found.get(section) else {
            return Err(format!("section {section} is missing"));
        };
        match section.as_str() {
            "Keyspace" => keyspace(fields, found)?,
            "Commandstats" | "Latencystats" => measured_commands(fields, found)?,
            "Errorstats" => {
                if fields.keys().ne(found.keys()) {
                    return Err(format!(
                        "errors {:?} against {:?}",
                        fields.keys(),
                        found.keys()
                    ));
                }
            }
            _ => {
                let missing: Vec<&String> = fields
                    .keys()
                    .filter(|field| {
                        !found.contains_key(*field)
                            && !known::ABSENT_INFO_FIELDS.contains(&field.as_str())
                    })
                    .collect();
                if !missing.is_empty() {
                    return Err(format!("section {section} lacks {missing:?}"));
                }
            }
        }
    }
    let more: Vec<&String> = found
        .keys()
        .filter(|section| {
            !expected.contains_key(*section)
                && !known::MORE_INFO_SECTIONS.contains(&section.as_str())
        })
        .collect();
    if more.is_empty() {
        Ok(())
    } else {
        Err(format!("sections {more:?} are not Redis's"))
    }
}

/// Databases with as many keys and deadlines each.
fn keyspace(
    expected: &BTreeMap<String, String>,
    found: &BTreeMap<String, String>,
) -> Result<(), String> {
    let counts = |databases: &BTreeMap<String, String>| -> Vec<(String, String)> {
        databases
            .iter()
            .map(|(name, value)| {
                let shown: Vec<&str> = value
                    .split(',')
                    .filter(|part| !part.starts_with("avg_ttl="))
                    .collect();
                (name.clone(), shown.join(","))
            })
            .collect()
    };
    if counts(expected) == counts(found) {
        Ok(())
    } else {
        Err(format!(
            "{:?} against {:?}",
            counts(expected),
            counts(found)
        ))
    }
}

fn measured_commands(
    expected: &BTreeMap<String, String>,
    found: &BTreeMap<String, String>,
) -> Result<(), String> {
    let shape = |value: &str| -> Vec<String> {
        value
            .split(',')
            .map(|part| part.split('=').next().unwrap_or_default().to_string())
            .collect()
    };
    for (name, value) in expected {
        let command = name
            .split_once('_')
            .map_or("", |(_, rest)| rest.rsplit("usec_").next().unwrap_or(rest));
        if !has_command(command) {
            continue;
        }
        match found.get(name) {
            None => return Err(format!("{name} is missing")),
            Some(other) if shape(value) != shape(other) => {
                return Err(format!(
                    "{name} has {:?} against {:?}",
                    shape(value),
                    shape(other)
                ));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// CONFIG GET: names and values, in any order.
pub(crate) fn config(_: &Request, reference: &[&Frame], tested: &[&Frame]) -> Result<(), String> {
    let (expected, found) = one(reference, tested)?;
    let read = |frame: &Frame| -> Option<BTreeMap<String, String>> {
        frame
            .pairs()?
            .iter()
            .map(|(name, value)| {
                let text =
                    |frame: &Frame| Some(String::from_utf8_lossy(frame.text()?).into_owned());
                Some((text(name)?, text(value)?))
            })
            .collect()
    };
    let (Some(expected), Some(found)) = (read(expected), read(found)) else {
        return Err("not both names and values".into());
    };
    let mut wrong = Vec::new();
    for (name, value) in &expected {
        match found.get(name) {
            None if !known::ABSENT_DIRECTIVES.contains(&name.as_str()) => {
                wrong.push(format!("{name} is missing"))
            }
            Some(other)
                if value != other
                    && !known::MACHINE_DIRECTIVES.contains(&name.as_str())
                    && !known::CHANGED_DIRECTIVES.iter().any(|(changed, was, is)| {
                        changed == name && was == value && is == other
                    }) =>
            {
                wrong.push(format!("{name} is {other:?} instead of {value:?}"));
            }
            _ => {}
        }
    }
    for name in found.keys() {
        if !expected.contains_key(name) && !known::NEW_DIRECTIVES.contains(&name.as_str()) {
            wrong.push(format!("{name} is not Redis's"));
        }
    }
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(wrong.join("; "))
    }
}

/// COMMAND without a subcommand: the rows of all commands both have.
pub(crate) fn command_rows(
    _: &Request,
    reference: &[&Frame],
    tested: &[&Frame],
) -> Result<(), String> {
    let (expected, found) = one(reference, tested)?;
    let by_name = |frame: &Frame| -> Option<BTreeMap<String, Frame>> {
        frame
            .items()?
            .iter()
            .map(|row| Some((row_name(row)?, row.clone())))
            .collect()
    };
    let (Some(expected), Some(found)) = (by_name(expected), by_name(found)) else {
        return Err("not both rows".into());
    };
    let mut wrong = Vec::new();
    for (name, row) in &expected {
        match found.get(name) {
            Some(other) => wrong.extend(row_differences(row, other)),
            None if has_command(name) => wrong.push(format!("{name} is missing")),
            None => {}
        }
    }
    for name in found.keys() {
        if !expected.contains_key(name) && !known::NEW_COMMANDS.contains(&name.as_str()) {
            wrong.push(format!("{name} is not Redis's"));
        }
    }
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(wrong.join("\n      "))
    }
}

/// COMMAND INFO: the rows asked for, in that order.
pub(crate) fn command_info(
    _: &Request,
    reference: &[&Frame],
    tested: &[&Frame],
) -> Result<(), String> {
    let (expected, found) = one(reference, tested)?;
    let (Some(expected), Some(found)) = (expected.items(), found.items()) else {
        return Err("not both rows".into());
    };
    if expected.len() != found.len() {
        return Err("not as many rows".into());
    }
    let wrong: Vec<String> = expected
        .iter()
        .zip(found)
        .flat_map(|(row, other)| row_differences(row, other))
        .collect();
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(wrong.join("\n      "))
    }
}

fn row_name(row: &Frame) -> Option<String> {
    Some(String::from_utf8_lossy(row.items()?.first()?.text()?).into_owned())
}

const COLUMNS: &[&str] = &[
    "name",
    "arity",
    "flags",
    "first key",
    "last key",
    "step",
    "categories",
    "tips",
    "key specifications",
    "subcommands",
];

/// What differs between two rows of COMMAND, column by column.
fn row_differences(reference: &Frame, tested: &Frame) -> Vec<String> {
    if reference == tested || (reference.is_null() && tested.is_null()) {
        return Vec::new();
    }
    let (Some(expected), Some(found), Some(name)) =
        (reference.items(), tested.items(), row_name(reference))
    else {
        return vec![format!("{reference:?} against {tested:?}")];
    };
    let mut wrong = Vec::new();
    if expected.len() != found.len() {
        wrong.push(format!(
            "{name} has {} columns instead of {}",
            found.len(),
            expected.len()
        ));
    }
    for (index, (expected, found)) in expected.iter().zip(found).enumerate() {
        let column = COLUMNS.get(index).copied().unwrap_or("further");
        let same = match column {
            "flags" | "categories" | "tips" => texts(expected) == texts(found),
            "key specifications" => without_notes(expected) == without_notes(found),
            "subcommands" => {
                wrong.extend(subcommand_differences(&name, expected, found));
                true
            }
            _ => expected == found,
        };
        if !same
            && !known::CHANGED_COLUMNS.contains(&(name.as_str(), column, brief(found).as_str()))
        {
            wrong.push(format!(
                "{name}, {column}: {} instead of {}",
                brief(found),
                brief(expected)
            ));
        }
    }
    wrong
}

fn subcommand_differences(container: &str, reference: &Frame, tested: &Frame) -> Vec<String> {
    let by_name = |frame: &Frame| -> BTreeMap<String, Frame> {
        frame
            .items()
            .unwrap_or_default()
            .iter()
            .filter_map(|row| Some((row_name(row)?, row.clone())))
            .collect()
    };
    let (expected, found) = (by_name(reference), by_name(tested));
    let mut wrong = Vec::new();
    for (name, row) in &expected {
        match found.get(name) {
            Some(other) => wrong.extend(row_differences(row, other)),
            None if has_command(name) => wrong.push(format!("{container} lacks {name}")),
            None => {}
        }
    }
    for name in found.keys() {
        if !expected.contains_key(name) && !known::NEW_COMMANDS.contains(&name.as_str()) {
            wrong.push(format!("{name} is not Redis's"));
        }
    }
    wrong
}

/// Key specifications without their notes, which are in each server's own words.
fn without_notes(frame: &Frame) -> Vec<Vec<(Frame, Frame)>> {
    frame
        .items()
        .unwrap_or_default()
        .iter()
        .map(|specification| {
            let pairs = specification.pairs().unwrap_or_default();
            let kept = pairs
                .into_iter()
                .filter(|(name, _)| name.text() != Some(b"notes"));
            kept.map(|(name, value)| (name.clone(), value.clone()))
                .collect()
        })
        .collect()
}

fn texts(frame: &Frame) -> BTreeSet<Vec<u8>> {
    frame
        .items()
        .unwrap_or_default()
        .iter()
        .filter_map(|item| Some(item.text()?.to_vec()))
        .collect()
}

/// A frame short enough to read.
fn brief(frame: &Frame) -> String {
    match frame {
        Frame::Integer(number) => number.to_string(),
        Frame::Array(items) | Frame::Set(items) => {
            format!(
                "[{}]",
                items.iter().map(brief).collect::<Vec<_>>().join(" ")
            )
        }
        Frame::Map(pairs) => {
            let pairs: Vec<String> = pairs
                .iter()
                .map(|(name, value)| format!("{}={}", brief(name), brief(value)))
                .collect();
            format!("{{{}}}", pairs.join(" "))
        }
        other => other.text().map_or_else(
            || format!("{other:?}"),
            |text| text.escape_ascii().to_string(),
        ),
    }
}
