//! The `cmsgpack` library of Redis (lua-cmsgpack 0.4.0). The decoder keeps its own stack; the encoder stops at
//! [`MAX_NESTING`] levels as the original does.

use super::args::to_integer;
use crate::base::value::{Str, TableId, Value};
use crate::vm::heap::TABLE_OVERHEAD;
use crate::vm::host::Host;
use crate::vm::{Args, Error, MAX_NATIVE_SLOTS, Result, Vm};

/// Tables nested deeper are packed as nil.
const MAX_NESTING: usize = 16;
/// The longest form of anything but a string's bytes.
const MAX_ITEM: usize = 16;

pub(crate) fn open(vm: &mut Vm) {
    let table = super::library(
        vm,
        "cmsgpack",
        &[
            ("pack", pack),
            ("unpack", unpack),
            ("unpack_limit", unpack_limit),
            ("unpack_one", unpack_one),
        ],
    );
    for (name, text) in [
        ("_NAME", "cmsgpack"),
        ("_VERSION", "lua-cmsgpack 0.4.0"),
        ("_COPYRIGHT", "Copyright (C) 2012, Salvatore Sanfilippo"),
        ("_DESCRIPTION", "MessagePack C implementation for Lua"),
    ] {
        let value = vm.str(text.as_bytes());
        vm.set_field(table, name, value);
    }
}

fn pack(vm: &mut Vm, host: &mut dyn Host, args: Args) -> Result<usize> {
    if args.count == 0 {
        return Err(bad_argument_zero(vm));
    }
    let mut out = Vec::new();
    for at in 0..args.count {
        let value = vm.arg(args, at);
        encode(vm, host, &mut out, value, 0)?;
    }
    let value = Value::Str(vm.heap.string_from(out));
    vm.give(value)
}

fn bad_argument_zero(vm: &mut Vm) -> Error {
    let name = vm.function_name(0).map_or(b"?".to_vec(), |(_, name)| name);
    let name = String::from_utf8_lossy(&name).into_owned();
    vm.error(format!(
        "bad argument #0 to '{name}' (MessagePack pack needs input.)"
    ))
}

fn is_integer(n: f64) -> bool {
    n.is_finite() && to_integer(n) as f64 == n
}

fn encode(
    vm: &mut Vm,
    host: &mut dyn Host,
    out: &mut Vec<u8>,
    value: Value,
    level: usize,
) -> Result<()> {
    let text = match value {
        Value::Str(s) => vm.heap.bytes_of(s).len(),
        _ => 0,
    };
    vm.room(host, out, text + MAX_ITEM)?;
    match value {
        Value::Str(s) => {
            let bytes = vm.heap.bytes_of(s);
            header(
                out,
                bytes.len(),
                0xa0,
                31,
                [Some(0xd9), Some(0xda), Some(0xdb)],
            );
            out.extend_from_slice(bytes);
        }
        Value::Bool(b) => out.push(if b { 0xc3 } else { 0xc2 }),
        Value::Number(n) if is_integer(n) => encode_integer(out, to_integer(n)),
        Value::Number(n) => {
            let single = n as f32;
            if f64::from(single) == n {
                out.push(0xca);
                out.extend_from_slice(&single.to_be_bytes());
            } else {
                out.push(0xcb);
                out.extend_from_slice(&n.to_be_bytes());
            }
        }
        Value::Table(table) if level < MAX_NESTING => {
            vm.charge(host, 4 + vm.heap.at(table).slots() / 8)?;
            if is_array(vm, table) {
                encode_array(vm, host, out, table, level)?;
            } else {
                encode_map(vm, host, out, table, level)?;
            }
        }
        _ => out.push(0xc0),
    }
    Ok(())
}

/// A type byte and a length in the shortest form there is.
fn header(out: &mut Vec<u8>, len: usize, fixed: u8, fixed_max: usize, forms: [Option<u8>; 3]) {
    if len <= fixed_max {
        out.push(fixed | len as u8);
    } else if let (Ok(len), Some(form)) = (u8::try_from(len), forms[0]) {
        out.extend_from_slice(&[form, len]);
    } else if let (Ok(len), Some(form)) = (u16::try_from(len), forms[1]) {
        out.push(form);
        out.extend_from_slice(&len.to_be_bytes());
    } else if let Some(form) = forms[2] {
        out.push(form);
        out.extend_from_slice(&(len as u32).to_be_bytes());
    }
}

fn encode_integer(out: &mut Vec<u8>, n: i64) {
    match n {
        0..=0x7f => out.push(n as u8),
        0x80..=0xff => out.extend_from_slice(&[0xcc, n as u8]),
        0x100..=0xffff => {
            out.push(0xcd);
            out.extend_from_slice(&(n as u16).to_be_bytes());
        }
        0x1_0000..=0xffff_ffff => {
            out.push(0xce);
            out.extend_from_slice(&(n as u32).to_be_bytes());
        }
        0x1_0000_0000.. => {
            out.push(0xcf);
            out.extend_from_slice(&n.to_be_bytes());
        }
        -32..=-1 => out.push(n as u8),
        -128..=-33 => out.extend_from_slice(&[0xd0, n as u8]),
        -32768..=-129 => {
            out.push(0xd1);
            out.extend_from_slice(&(n as i16).to_be_bytes());
        }
        -2_147_483_648..=-32769 => {
            out.push(0xd2);
            out.extend_from_slice(&(n as i32).to_be_bytes());
        }
        _ => {
            out.push(0xd3);
            out.extend_from_slice(&n.to_be_bytes());
        }
    }
}

/// All keys are the integers from one to their number.
fn is_array(vm: &Vm, table: TableId) -> bool {
    let t = vm.heap.at(table);
    let (mut count, mut max) = (0i64, 0i64);
    for (at, value) in t.array().iter().enumerate() {
        if !value.is_nil() {
            count += 1;
            max = at as i64 + 1;
        }
    }
    for (key, _) in t.hash_pairs() {
        match key {
            Value::Number(n) if is_integer(n) && n > 0.0 => {
                count += 1;
                max = max.max(to_integer(n));
            }
            _ => return false,
        }
    }
    count == max
}

fn encode_array(
    vm: &mut Vm,
    host: &mut dyn Host,
    out: &mut Vec<u8>,
    table: TableId,
    level: usize,
) -> Result<()> {
    let len = vm.border(table);
    header(out, len, 0x90, 15, [None, Some(0xdc), Some(0xdd)]);
    for index in 1..=len {
        let value = vm.index(host, Value::Table(table), Value::Number(index as f64))?;
        // In the stack the collector finds what a metamethod made.
        vm.push(value);
        encode(vm, host, out, value, level + 1)?;
        vm.top -= 1;
        vm.charge(host, 1)?;
    }
    Ok(())
}

fn encode_map(
    vm: &mut Vm,
    host: &mut dyn Host,
    out: &mut Vec<u8>,
    table: TableId,
    level: usize,
) -> Result<()> {
    let t = vm.heap.at(table);
    let array = t.array().iter().filter(|value| !value.is_nil()).count();
    let len = array + t.hash_pairs().count();
    header(out, len, 0x80, 15, [None, Some(0xde), Some(0xdf)]);
    let mut key = Value::Nil;
    while let Ok(Some((next, value))) = vm.heap.at(table).next(key) {
        key = next;
        encode(vm, host, out, key, level + 1)?;
        encode(vm, host, out, value, level + 1)?;
        vm.charge(host, 1)?;
    }
    Ok(())
}

fn unpack(vm: &mut Vm, host: &mut dyn Host, args: Args) -> Result<usize> {
    unpack_full(vm, host, args, 0, 0)
}

fn unpack_one(vm: &mut Vm, host: &mut dyn Host, args: Args) -> Result<usize> {
    let offset = vm.opt_int(args, 1, 0)?;
    unpack_full(vm, host, args, 1, offset)
}

fn unpack_limit(vm: &mut Vm, host: &mut dyn Host, args: Args) -> Result<usize> {
    let limit = vm.check_int(args, 1)?;
    let offset = vm.opt_int(args, 2, 0)?;
    unpack_full(vm, host, args, limit, offset)
}

fn unpack_full(
    vm: &mut Vm,
    host: &mut dyn Host,
    args: Args,
    limit: i64,
    offset: i64,
) -> Result<usize> {
    let text = vm.check_str(args, 0)?;
    let len = vm.heap.bytes_of(text).len();
    // Both are C ints in the original.
    let (limit, offset) = (limit as i32, offset as i32);
    if offset < 0 || limit < 0 {
        return Err(vm.error(format!(
            "Invalid request to unpack with offset of {offset} and limit of {len}."
        )));
    }
    if offset as usize > len {
        return Err(vm.error(format!(
            "Start offset {offset} greater than input length {len}."
        )));
    }
    let all = limit == 0 && offset == 0;
    let limit = if all { i32::MAX } else { limit };
    let mut input = Input {
        text,
        at: offset as usize,
        slots: 1,
    };
    let place = vm.top;
    if !all {
        vm.push(Value::Nil);
    }
    let mut count = 0;
    while input.at < len && count < limit {
        input.slots += 1;
        let value = input.value(vm, host)?;
        vm.push(value);
        count += 1;
    }
    if all {
        return Ok(count as usize);
    }
    let next = if input.at == len {
        -1.0
    } else {
        input.at as f64
    };
    vm.stack[place] = Value::Number(next);
    Ok(count as usize + 1)
}

/// A table being filled.
enum Open {
    Array {
        table: TableId,
        next: usize,
        left: usize,
    },
    Map {
        table: TableId,
        key: Option<Value>,
        left: usize,
    },
}

/// A value, or a table with this many elements or pairs to come.
enum Item {
    Value(Value),
    /// A string of this many bytes, which are there.
    Text(usize),
    Array(usize),
    Map(usize),
}

struct Input {
    text: Str,
    at: usize,
    /// Stack slots the original would use; it fails when they pass a limit.
    slots: usize,
}

impl Input {
    fn take<'a>(&mut self, vm: &'a Vm, count: usize) -> Option<&'a [u8]> {
        let bytes = vm.heap.bytes_of(self.text).get(self.at..)?.get(..count)?;
        self.at += count;
        Some(bytes)
    }

    fn number(&mut self, vm: &Vm, count: usize) -> Option<u64> {
        let bytes = self.take(vm, count)?;
        Some(bytes.iter().fold(0, |n, byte| n << 8 | u64::from(*byte)))
    }

    fn value(&mut self, vm: &mut Vm, host: &mut dyn Host) -> Result<Value> {
        let mut open: Vec<Open> = Vec::new();
        loop {
            vm.charge(host, 2)?;
            self.check_slots(
                vm,
                "too many return values at once; use unpack_one or unpack_limit instead.",
            )?;
            let mut value = match self.item(vm)? {
                Item::Value(value) => value,
                Item::Text(len) => {
                    let start = self.at;
                    self.at += len;
                    vm.substring(self.text, start, start + len)?
                }
                Item::Array(left) => {
                    self.slots += 2;
                    self.check_slots(vm, "in function mp_decode_to_lua_array")?;
                    vm.reserve_memory(TABLE_OVERHEAD)?;
                    let table = vm.heap.table(0, 0);
                    if left > 0 {
                        // Where the collector finds the table and its key.
                        vm.push(Value::Table(table));
                        vm.push(Value::Nil);
                        open.push(Open::Array {
                            table,
                            next: 1,
                            left,
                        });
                        continue;
                    }
                    self.slots -= 2;
                    Value::Table(table)
                }
                Item::Map(left) => {
                    self.slots += 1;
                    self.check_slots(vm, "in function mp_decode_to_lua_hash")?;
                    vm.reserve_memory(TABLE_OVERHEAD)?;
                    let table = vm.heap.table(0, 0);
                    if left > 0 {
                        vm.push(Value::Table(table));
                        vm.push(Value::Nil);
                        open.push(Open::Map {
                            table,
                            key: None,
                            left,
                        });
                        continue;
                    }
                    self.slots -= 1;
                    Value::Table(table)
                }
            };
            // Stores the value; tables that are complete become values themselves.
            loop {
                let (complete, slots) = match open.last_mut() {
                    None => return Ok(value),
                    Some(Open::Array { table, next, left }) => {
                        vm.heap.raw_set_index(*table, *next, value);
                        if *next % 64 == 0 {
                            vm.reserve_memory(0)?;
                        }
                        vm.reserve_growth(*table)?;
                        *next += 1;
                        *left -= 1;
                        ((*left == 0).then_some(*table), 2)
                    }
                    Some(Open::Map { table, key, left }) => match key.take() {
                        None => {
                            *key = Some(value);
                            let place = vm.top - 1;
                            vm.stack[place] = value;
                            self.slots += 1;
                            (None, 0)
                        }
                        Some(key) => {
                            vm.set_checked(*table, key, value)?;
                            if *left % 64 == 0 {
                                vm.reserve_memory(0)?;
                            }
                            vm.reserve_growth(*table)?;
                            self.slots -= 1;
                            *left -= 1;
                            ((*left == 0).then_some(*table), 1)
                        }
                    },
                };
                match complete {
                    Some(table) => {
                        open.pop();
                        vm.top -= 2;
                        self.slots -= slots;
                        value = Value::Table(table);
                    }
                    None => break,
                }
            }
        }
    }

    fn check_slots(&self, vm: &mut Vm, text: &str) -> Result<()> {
        if self.slots > MAX_NATIVE_SLOTS {
            return Err(vm.error(format!("stack overflow ({text})")));
        }
        Ok(())
    }

    fn item(&mut self, vm: &mut Vm) -> Result<Item> {
        match self.try_item(vm) {
            Some(Some(item)) => Ok(item),
            Some(None) => Err(vm.error("Bad data format in input.")),
            None => Err(vm.error("Missing bytes in input.")),
        }
    }

    /// `None` if bytes are missing, `Some(None)` for a byte that begins nothing.
    fn try_item(&mut self, vm: &mut Vm) -> Option<Option<Item>> {
        let first = self.number(vm, 1)? as u8;
        let number = |n: f64| Some(Some(Item::Value(Value::Number(n))));
        let text = match first {
            0x00..=0x7f => return number(f64::from(first)),
            0xe0..=0xff => return number(f64::from(first as i8)),
            0xcc => return number(self.number(vm, 1)? as f64),
            0xcd => return number(self.number(vm, 2)? as f64),
            0xce => return number(self.number(vm, 4)? as f64),
            // The original reads it as a signed integer.
            0xcf => return number(self.number(vm, 8)? as i64 as f64),
            0xd0 => return number(f64::from(self.number(vm, 1)? as i8)),
            0xd1 => return number(f64::from(self.number(vm, 2)? as i16)),
            0xd2 => return number(f64::from(self.number(vm, 4)? as i32)),
            0xd3 => return number(self.number(vm, 8)? as i64 as f64),
            0xca => return number(f64::from(f32::from_bits(self.number(vm, 4)? as u32))),
            0xcb => return number(f64::from_bits(self.number(vm, 8)?)),
            0xc0 => return Some(Some(Item::Value(Value::Nil))),
            0xc2 => return Some(Some(Item::Value(Value::Bool(false)))),
            0xc3 => return Some(Some(Item::Value(Value::Bool(true)))),
            0x90..=0x9f => return Some(Some(Item::Array(first as usize & 15))),
            0xdc => return Some(Some(Item::Array(self.number(vm, 2)? as usize))),
            0xdd => return Some(Some(Item::Array(self.number(vm, 4)? as usize))),
            0x80..=0x8f => return Some(Some(Item::Map(first as usize & 15))),
            0xde => return Some(Some(Item::Map(self.number(vm, 2)? as usize))),
            0xdf => return Some(Some(Item::Map(self.number(vm, 4)? as usize))),
            0xa0..=0xbf => first as usize & 31,
            0xd9 => self.number(vm, 1)? as usize,
            0xda => self.number(vm, 2)? as usize,
            0xdb => self.number(vm, 4)? as usize,
            _ => return Some(None),
        };
        vm.heap.bytes_of(self.text).get(self.at..)?.get(..text)?;
        Some(Some(Item::Text(text)))
    }
}
