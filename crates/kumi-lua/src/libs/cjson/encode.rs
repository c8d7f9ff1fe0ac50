//! `cjson.encode`.

use super::{NULL_FOR_INVALID, Setting, setting};
use crate::base::number;
use crate::base::value::{Str, TableId, Value};
use crate::vm::host::Host;
use crate::vm::{Args, Error, Result, Vm};

/// Bytes of a string that are escaped between two charges.
const CHUNK: usize = 1 << 14;
/// The longest form of anything but a string, with what stands around it.
const MAX_ITEM: usize = 64;

struct Options {
    sparse_convert: bool,
    sparse_ratio: i64,
    sparse_safe: i64,
    max_depth: i32,
    invalid_numbers: i32,
    precision: usize,
}

/// A table whose elements are being written.
enum Open {
    Array {
        table: TableId,
        next: usize,
        len: usize,
    },
    Object {
        table: TableId,
        key: Value,
        first: bool,
    },
}

pub(super) fn encode(vm: &mut Vm, host: &mut dyn Host, args: Args) -> Result<usize> {
    if args.count != 1 {
        return Err(vm.bad_argument(0, "expected 1 argument"));
    }
    let options = Options {
        sparse_convert: setting(vm, args, Setting::SparseConvert) != 0,
        sparse_ratio: i64::from(setting(vm, args, Setting::SparseRatio)),
        sparse_safe: i64::from(setting(vm, args, Setting::SparseSafe)),
        max_depth: setting(vm, args, Setting::EncodeMaxDepth),
        invalid_numbers: setting(vm, args, Setting::EncodeInvalidNumbers),
        precision: setting(vm, args, Setting::NumberPrecision) as usize,
    };
    let mut out = Vec::new();
    let mut open = Vec::new();
    let value = vm.arg(args, 0);
    append(vm, host, &options, &mut out, &mut open, value)?;
    while let Some(top) = open.last_mut() {
        match step(vm, host, &options, &mut out, top)? {
            Some(value) => append(vm, host, &options, &mut out, &mut open, value)?,
            None => {
                open.pop();
            }
        }
        vm.charge(host, 2)?;
    }
    let value = Value::Str(vm.heap.string_from(out));
    vm.give(value)
}

/// Writes what goes before the next element and returns that element, or closes the table.
fn step(
    vm: &mut Vm,
    host: &mut dyn Host,
    options: &Options,
    out: &mut Vec<u8>,
    top: &mut Open,
) -> Result<Option<Value>> {
    vm.room(host, out, MAX_ITEM)?;
    match top {
        Open::Array { table, next, len } => {
            if next > len {
                out.push(b']');
                return Ok(None);
            }
            if *next > 1 {
                out.push(b',');
            }
            let value = vm.heap.at(*table).get_index(*next);
            *next += 1;
            Ok(Some(value))
        }
        Open::Object { table, key, first } => {
            let Ok(Some((next, value))) = vm.heap.at(*table).next(*key) else {
                out.push(b'}');
                return Ok(None);
            };
            if !*first {
                out.push(b',');
            }
            *first = false;
            *key = next;
            match next {
                Value::Number(n) => {
                    out.push(b'"');
                    append_number(vm, options, out, n)?;
                    out.extend_from_slice(b"\":");
                }
                Value::Str(s) => {
                    append_string(vm, host, out, s)?;
                    out.push(b':');
                }
                other => {
                    return Err(refuse(vm, other, "table key must be a number or string"));
                }
            }
            Ok(Some(value))
        }
    }
}

fn append(
    vm: &mut Vm,
    host: &mut dyn Host,
    options: &Options,
    out: &mut Vec<u8>,
    open: &mut Vec<Open>,
    value: Value,
) -> Result<()> {
    vm.room(host, out, MAX_ITEM)?;
    match value {
        Value::Str(s) => append_string(vm, host, out, s)?,
        Value::Number(n) => append_number(vm, options, out, n)?,
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Nil | Value::Light(0) => out.extend_from_slice(b"null"),
        Value::Table(table) => {
            let depth = open.len() + 1;
            if depth as i64 > i64::from(options.max_depth) {
                return Err(vm.error(format!("Cannot serialise, excessive nesting ({depth})")));
            }
            vm.reserve_memory(depth * size_of::<Open>())?;
            vm.charge(host, vm.heap.at(table).slots() / 8)?;
            match array_length(vm, options, table)? {
                Some(len) if len > 0 => {
                    out.push(b'[');
                    open.push(Open::Array {
                        table,
                        next: 1,
                        len,
                    });
                }
                _ => {
                    out.push(b'{');
                    open.push(Open::Object {
                        table,
                        key: Value::Nil,
                        first: true,
                    });
                }
            }
        }
        other => return Err(refuse(vm, other, "type not supported")),
    }
    Ok(())
}

fn refuse(vm: &mut Vm, value: Value, reason: &str) -> Error {
    let kind = value.type_name();
    vm.error(format!("Cannot serialise {kind}: {reason}"))
}

/// The largest index if all keys are positive integers, `None` for an object.
fn array_length(vm: &mut Vm, options: &Options, table: TableId) -> Result<Option<usize>> {
    let t = vm.heap.at(table);
    let (mut max, mut items) = (0f64, 0i64);
    for (at, value) in t.array().iter().enumerate() {
        if !value.is_nil() {
            max = (at + 1) as f64;
            items += 1;
        }
    }
    for (key, _) in t.hash_pairs() {
        match key {
            Value::Number(n) if n >= 1.0 && n.floor() == n => {
                max = max.max(n);
                items += 1;
            }
            _ => return Ok(None),
        }
    }
    // The largest index is a C int in the original.
    let max = super::to_integer(max) as i32;
    if options.sparse_ratio > 0
        && i64::from(max) > items * options.sparse_ratio
        && i64::from(max) > options.sparse_safe
    {
        if !options.sparse_convert {
            return Err(refuse(vm, Value::Table(table), "excessively sparse array"));
        }
        return Ok(None);
    }
    Ok(Some(max.max(0) as usize))
}

fn append_number(vm: &mut Vm, options: &Options, out: &mut Vec<u8>, n: f64) -> Result<()> {
    if !n.is_finite() {
        match options.invalid_numbers {
            0 => return Err(refuse(vm, Value::Number(n), "must not be NaN or Inf")),
            NULL_FOR_INVALID => {
                out.extend_from_slice(b"null");
                return Ok(());
            }
            _ => {}
        }
    }
    if options.precision == 14 {
        number::write(out, n);
    } else {
        number::general(out, n, options.precision, false);
    }
    Ok(())
}

fn append_string(vm: &mut Vm, host: &mut dyn Host, out: &mut Vec<u8>, s: Str) -> Result<()> {
    out.push(b'"');
    let len = vm.heap.bytes_of(s).len();
    for start in (0..len).step_by(CHUNK) {
        let end = len.min(start + CHUNK);
        vm.room(host, out, (end - start) * 6 + 2)?;
        escape(out, &vm.heap.bytes_of(s)[start..end]);
    }
    out.push(b'"');
    Ok(())
}

fn escape(out: &mut Vec<u8>, bytes: &[u8]) {
    for &byte in bytes {
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'/' => out.extend_from_slice(b"\\/"),
            8 => out.extend_from_slice(b"\\b"),
            9 => out.extend_from_slice(b"\\t"),
            10 => out.extend_from_slice(b"\\n"),
            12 => out.extend_from_slice(b"\\f"),
            13 => out.extend_from_slice(b"\\r"),
            0..=31 | 127 => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => out.push(byte),
        }
    }
}
