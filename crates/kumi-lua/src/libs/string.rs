//! The string library, except searching (`strfind.rs`) and formatting (`strformat.rs`).

use super::{strfind, strformat};
use crate::base::value::Value;
use crate::vm::heap::Closure;
use crate::vm::host::Host;
use crate::vm::{Args, MAX_NATIVE_SLOTS, Result, Vm};

pub(crate) fn open(vm: &mut Vm) {
    let table = super::library(
        vm,
        "string",
        &[
            ("byte", byte),
            ("char", char),
            ("dump", dump),
            ("find", strfind::find),
            ("format", strformat::format),
            ("gfind", strfind::gmatch),
            ("gmatch", strfind::gmatch),
            ("gsub", strfind::gsub),
            ("len", len),
            ("lower", lower),
            ("match", strfind::match_once),
            ("rep", rep),
            ("reverse", reverse),
            ("sub", sub),
            ("upper", upper),
        ],
    );
    // The old name of the same function.
    let key = vm.str(b"gmatch");
    let gmatch = vm.heap.raw_get(table, key);
    vm.set_field(table, "gfind", gmatch);
    let meta = vm.heap.table(0, 1);
    vm.set_field(meta, "__index", Value::Table(table));
    vm.string_meta = Some(meta);
}

/// A place counted from the end if negative, never below zero.
pub(crate) fn relative(at: i64, len: usize) -> i64 {
    let at = if at < 0 {
        at.saturating_add(len as i64 + 1)
    } else {
        at
    };
    at.max(0)
}

fn byte(vm: &mut Vm, _: &mut dyn Host, args: Args) -> Result<usize> {
    let s = vm.check_str(args, 0)?;
    let len = vm.heap.bytes_of(s).len();
    let at = vm.opt_int(args, 1, 1)?;
    let from = relative(at, len);
    let at = vm.opt_int(args, 2, from)?;
    let to = relative(at, len).min(len as i64);
    let from = from.max(1);
    if from > to {
        return Ok(0);
    }
    let count = (to - from + 1) as usize;
    if args.count + count > MAX_NATIVE_SLOTS {
        return Err(vm.error("stack overflow (string slice too long)"));
    }
    vm.spend(count / 4);
    vm.ensure_stack(vm.top + count + 1);
    for at in from..=to {
        let byte = vm.heap.bytes_of(s)[at as usize - 1];
        vm.push(Value::Number(f64::from(byte)));
    }
    Ok(count)
}

fn char(vm: &mut Vm, _: &mut dyn Host, args: Args) -> Result<usize> {
    let mut bytes = Vec::with_capacity(args.count);
    for at in 0..args.count {
        let code = vm.check_int32(args, at)?;
        let Ok(code) = u8::try_from(code) else {
            return Err(vm.bad_argument(at, "invalid value"));
        };
        bytes.push(code);
    }
    vm.give_bytes(&bytes)
}

/// Bytecode neither leaves nor enters a state: the result is the signature alone, which no function loads.
fn dump(vm: &mut Vm, _: &mut dyn Host, args: Args) -> Result<usize> {
    let function = vm.check_function(args, 0)?;
    match function {
        Value::Function(id)
            if matches!(vm.heap.funcs.items[id.index()].closure, Closure::Lua(_)) =>
        {
            vm.give_bytes(b"\x1bLua")
        }
        _ => Err(vm.error("unable to dump given function")),
    }
}

fn len(vm: &mut Vm, _: &mut dyn Host, args: Args) -> Result<usize> {
    let s = vm.check_str(args, 0)?;
    let len = vm.heap.bytes_of(s).len();
    vm.give(Value::Number(len as f64))
}

/// Bytes that are changed between two charges.
const CHUNK: usize = 1 << 18;

/// Changes a string piece by piece, from its end if `backward`.
fn transform(
    vm: &mut Vm,
    host: &mut dyn Host,
    args: Args,
    change: fn(&mut [u8]),
    backward: bool,
) -> Result<usize> {
    let s = vm.check_str(args, 0)?;
    let len = vm.heap.bytes_of(s).len();
    let mut bytes = Vec::new();
    vm.room(host, &mut bytes, len)?;
    for start in (0..len).step_by(CHUNK) {
        let end = len.min(start + CHUNK);
        let from = if backward {
            len - end..len - start
        } else {
            start..end
        };
        bytes.extend_from_slice(&vm.heap.bytes_of(s)[from]);
        change(&mut bytes[start..]);
        vm.charge(host, (end - start) / 16)?;
    }
    let value = Value::Str(vm.heap.string_from(bytes));
    vm.give(value)
}

fn lower(vm: &mut Vm, host: &mut dyn Host, args: Args) -> Result<usize> {
    transform(vm, host, args, <[u8]>::make_ascii_lowercase, false)
}

fn upper(vm: &mut Vm, host: &mut dyn Host, args: Args) -> Result<usize> {
    transform(vm, host, args, <[u8]>::make_ascii_uppercase, false)
}

fn reverse(vm: &mut Vm, host: &mut dyn Host, args: Args) -> Result<usize> {
    transform(vm, host, args, <[u8]>::reverse, true)
}

fn rep(vm: &mut Vm, host: &mut dyn Host, args: Args) -> Result<usize> {
    let s = vm.check_str(args, 0)?;
    let count = vm.check_int32(args, 1)?.max(0) as usize;
    let piece_len = vm.heap.bytes_of(s).len();
    let total = piece_len.saturating_mul(count);
    vm.reserve_memory(total)?;
    let mut bytes = Vec::new();
    if total > isize::MAX as usize || bytes.try_reserve_exact(total).is_err() {
        return Err(crate::vm::Error::from(crate::vm::ErrorKind::Memory));
    }
    let mut charged = 0;
    while bytes.len() < total {
        let have = bytes.len();
        if have == 0 {
            bytes.extend_from_slice(vm.heap.bytes_of(s));
        } else {
            // Copies what is there, at most a slice at a time so that the hook is called in between.
            let more = have.min(total - have).min(1 << 20) / piece_len * piece_len;
            let more = if more == 0 { piece_len } else { more };
            bytes.extend_from_within(..more);
        }
        let work = (bytes.len() - charged) / 16;
        charged = bytes.len();
        vm.charge(host, work)?;
    }
    let value = Value::Str(vm.heap.string_from(bytes));
    vm.give(value)
}

fn sub(vm: &mut Vm, _: &mut dyn Host, args: Args) -> Result<usize> {
    let s = vm.check_str(args, 0)?;
    let len = vm.heap.bytes_of(s).len();
    let at = vm.check_int(args, 1)?;
    let from = relative(at, len).max(1);
    let at = vm.opt_int(args, 2, -1)?;
    let to = relative(at, len).min(len as i64);
    if from > to {
        return vm.give_bytes(b"");
    }
    let value = vm.substring(s, from as usize - 1, to as usize)?;
    vm.give(value)
}
