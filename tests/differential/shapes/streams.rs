//! What XPENDING and XINFO tell depends on when entries were delivered and consumers seen.

use super::one;
use crate::command::Request;
use crate::support::frame::Frame;

/// How far two servers may be apart, in milliseconds.
const TOLERANCE: u64 = 5000;

/// Ids and owners are equal, and the times of idleness are near each other.
pub(super) fn pending(_: &Request, reference: &[&Frame], tested: &[&Frame]) -> Result<(), String> {
    let (expected, found) = one(reference, tested)?;
    same_but_times(expected, found, &|path| path.len() == 2 && path[1] == 2)
}

/// 7.2 tells also for how long a consumer has got nothing.
pub(super) fn consumers(
    _: &Request,
    reference: &[&Frame],
    tested: &[&Frame],
) -> Result<(), String> {
    let (expected, found) = one(reference, tested)?;
    let (Some(expected), Some(found)) = (expected.items(), found.items()) else {
        return Err("not both a list".into());
    };
    if expected.len() != found.len() {
        return Err("not as many consumers".into());
    }
    for (expected, found) in expected.iter().zip(found) {
        consumer(expected, found, "inactive", &["idle"])?;
    }
    Ok(())
}

/// 7.2 tells also when a consumer got something last.
pub(super) fn full(_: &Request, reference: &[&Frame], tested: &[&Frame]) -> Result<(), String> {
    let (expected, found) = one(reference, tested)?;
    let (expected, found) = (map(expected)?, map(found)?);
    if expected.len() != found.len() {
        return Err("not as many fields".into());
    }
    for ((name, expected), (found_name, found)) in expected.iter().zip(&found) {
        if name != found_name {
            return Err("not the same fields".into());
        }
        match (expected.items(), found.items()) {
            (Some(expected), Some(found)) if name == b"groups" => {
                if expected.len() != found.len() {
                    return Err("not as many groups".into());
                }
                for (expected, found) in expected.iter().zip(found) {
                    group(expected, found)?;
                }
            }
            _ if expected == found => {}
            _ => return Err(format!("{} differs", name.escape_ascii())),
        }
    }
    Ok(())
}

fn group(expected: &Frame, found: &Frame) -> Result<(), String> {
    let (expected, found) = (map(expected)?, map(found)?);
    if expected.len() != found.len() {
        return Err("not as many fields of a group".into());
    }
    for ((name, expected), (found_name, found)) in expected.iter().zip(&found) {
        if name != found_name {
            return Err("not the same fields of a group".into());
        }
        match &**name {
            b"consumers" => {
                let (Some(expected), Some(found)) = (expected.items(), found.items()) else {
                    return Err("not both consumers".into());
                };
                if expected.len() != found.len() {
                    return Err("not as many consumers".into());
                }
                for (expected, found) in expected.iter().zip(found) {
                    consumer(expected, found, "active-time", &["seen-time"])?;
                }
            }
            b"pending" => same_but_times(expected, found, &|path| path.len() == 2 && path[1] == 2)?,
            _ if expected == found => {}
            _ => return Err(format!("{} of a group differs", name.escape_ascii())),
        }
    }
    Ok(())
}

fn consumer(expected: &Frame, found: &Frame, new: &str, times: &[&str]) -> Result<(), String> {
    let (expected, mut found) = (map(expected)?, map(found)?);
    if expected.iter().any(|(name, _)| *name == new.as_bytes()) {
        return Err(format!("the reference is 7.0, and has {new}"));
    }
    let before = found.len();
    found.retain(|(name, value)| *name != new.as_bytes() || !matches!(value, Frame::Integer(-1..)));
    if found.len() + 1 != before || expected.len() != found.len() {
        return Err("not the fields of a consumer".into());
    }
    for ((name, expected), (found_name, found)) in expected.iter().zip(&found) {
        let is_time = times.iter().any(|time| *name == time.as_bytes());
        let same = match &**name {
            b"pending" => {
                same_but_times(expected, found, &|path| path.len() == 2 && path[1] == 1).is_ok()
            }
            _ => expected == found || is_time && is_near(expected, found),
        };
        if name != found_name || !same {
            return Err(format!("{} of a consumer differs", name.escape_ascii()));
        }
    }
    Ok(())
}

fn map(frame: &Frame) -> Result<Vec<(&[u8], &Frame)>, String> {
    let pairs = frame.pairs().ok_or("not a map")?;
    pairs
        .into_iter()
        .map(|(name, value)| Ok((name.text().ok_or("not a name")?, value)))
        .collect()
}

fn is_near(expected: &Frame, found: &Frame) -> bool {
    matches!((expected, found), (Frame::Integer(expected), Frame::Integer(found))
        if expected.abs_diff(*found) <= TOLERANCE)
}

/// Compares nested arrays; numbers at the places that `is_time` names by their path may be apart.
fn same_but_times(
    expected: &Frame,
    found: &Frame,
    is_time: &dyn Fn(&[usize]) -> bool,
) -> Result<(), String> {
    fn walk(
        expected: &Frame,
        found: &Frame,
        is_time: &dyn Fn(&[usize]) -> bool,
        path: &mut Vec<usize>,
    ) -> bool {
        if let (Some(expected), Some(found)) = (expected.items(), found.items()) {
            return expected.len() == found.len()
                && expected
                    .iter()
                    .zip(found)
                    .enumerate()
                    .all(|(index, (expected, found))| {
                        path.push(index);
                        let same = walk(expected, found, is_time, path);
                        path.pop();
                        same
                    });
        }
        expected == found || is_time(path) && is_near(expected, found)
    }
    match walk(expected, found, is_time, &mut Vec::new()) {
        true => Ok(()),
        false => Err("more differs than times".into()),
    }
}
