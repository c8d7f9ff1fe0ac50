//! The table library, except `sort`.

use super::base::check_writable;
use crate::base::number;
use crate::base::value::{TableId, Value};
use crate::vm::host::Host;
use crate::vm::{Args, Result, Vm};

pub(crate) fn open(vm: &mut Vm) {
    super::library(
        vm,
        "table",
        &[
            ("concat", concat),
            ("foreach", foreach),
            ("foreachi", foreachi),
            ("getn", getn),
            ("insert", insert),
            ("maxn", maxn),
            ("remove", remove),
            ("setn", setn),
            ("sort", super::sort::sort),
        ],
    );
}

fn set(vm: &mut Vm, table: TableId, index: i64, value: Value) {
    match usize::try_from(index) {
        Ok(index) => vm.heap.raw_set_index(table, index, value),
        Err(_) => vm.heap.raw_set(table, Value::Number(index as f64), value),
    }
}

fn concat(vm: &mut Vm, host: &mut dyn Host, args: Args) -> Result<usize> {
    let separator = vm.opt_str(args, 1)?;
    let table = vm.check_table(args, 0)?;
    let first = i64::from(vm.opt_int(args, 2, 1)? as i32);
    let last = if vm.arg(args, 3).is_nil() {
        vm.border(table) as i64
    } else {
        i64::from(vm.check_int32(args, 3)?)
    };
    let mut out = Vec::new();
    for index in first..=last {
        match vm.heap.at(table).get_number(index as f64) {
            Value::Str(s) => {
                vm.room(host, &mut out, vm.heap.bytes_of(s).len())?;
                out.extend_from_slice(vm.heap.bytes_of(s));
            }
            Value::Number(n) => {
                vm.room(host, &mut out, 32)?;
                number::write(&mut out, n);
            }
            other => {
                let kind = other.type_name();
                return Err(vm.error(format!(
                    "invalid value ({kind}) at index {index} in table for 'concat'"
                )));
            }
        }
        if let Some(separator) = separator
            && index < last
        {
            vm.room(host, &mut out, vm.heap.bytes_of(separator).len())?;
            out.extend_from_slice(vm.heap.bytes_of(separator));
        }
        vm.charge(host, 1)?;
    }
    let value = Value::Str(vm.heap.string_from(out));
    vm.give(value)
}

fn foreach(vm: &mut Vm, host: &mut dyn Host, args: Args) -> Result<usize> {
    let table = vm.check_table(args, 0)?;
    let function = vm.check_function(args, 1)?;
    let mut key = Value::Nil;
    loop {
        vm.spend_on_key(key);
        let next = vm.heap.canonical(key);
        let mut skipped = 0;
        let found = vm.heap.at(table).next_counted(next, &mut skipped);
        vm.spend(skipped / 8);
        let Ok(Some((found, value))) = found else {
            return Ok(0);
        };
        key = found;
        // The key is kept in the stack, where the collector finds it.
        vm.push(key);
        let result = vm.call_value(host, function, &[key, value])?;
        vm.top -= 1;
        if !result.is_nil() {
            return vm.give(result);
        }
        vm.charge(host, 1)?;
    }
}

fn foreachi(vm: &mut Vm, host: &mut dyn Host, args: Args) -> Result<usize> {
    let table = vm.check_table(args, 0)?;
    let len = vm.border(table);
    let function = vm.check_function(args, 1)?;
    for index in 1..=len {
        let value = vm.heap.at(table).get_index(index);
        let result = vm.call_value(host, function, &[Value::Number(index as f64), value])?;
        if !result.is_nil() {
            return vm.give(result);
        }
        vm.charge(host, 1)?;
    }
    Ok(0)
}

fn getn(vm: &mut Vm, _: &mut dyn Host, args: Args) -> Result<usize> {
    let table = vm.check_table(args, 0)?;
    let len = vm.border(table);
    vm.give(Value::Number(len as f64))
}

fn maxn(vm: &mut Vm, host: &mut dyn Host, args: Args) -> Result<usize> {
    let table = vm.check_table(args, 0)?;
    let t = vm.heap.at(table);
    let work = t.slots();
    let array = t.array().iter().rposition(|value| !value.is_nil());
    let mut max = array.map_or(0.0, |at| (at + 1) as f64);
    for (key, _) in t.hash_pairs() {
        if let Value::Number(n) = key
            && n > max
        {
            max = n;
        }
    }
    vm.charge(host, work / 8)?;
    vm.give(Value::Number(max))
}

fn insert(vm: &mut Vm, host: &mut dyn Host, args: Args) -> Result<usize> {
    let table = vm.check_table(args, 0)?;
    let mut end = vm.border(table) as i64 + 1;
    let (position, value) = match args.count {
        2 => (end, vm.arg(args, 1)),
        3 => {
            let position = i64::from(vm.check_int32(args, 1)?);
            end = end.max(position);
            (position, vm.arg(args, 2))
        }
        _ => return Err(vm.error("wrong number of arguments to 'insert'")),
    };
    check_writable(vm, table)?;
    vm.reserve_growth(table)?;
    let mut index = end;
    while index > position {
        let moved = vm.heap.at(table).get_number((index - 1) as f64);
        set(vm, table, index, moved);
        index -= 1;
        if index % 1024 == 0 {
            vm.charge(host, 1024)?;
            vm.reserve_memory(0)?;
        }
    }
    set(vm, table, position, value);
    Ok(0)
}

fn remove(vm: &mut Vm, host: &mut dyn Host, args: Args) -> Result<usize> {
    let table = vm.check_table(args, 0)?;
    let end = vm.border(table) as i64;
    let position = i64::from(vm.opt_int(args, 1, end)? as i32);
    if !(1..=end).contains(&position) {
        return Ok(0);
    }
    let value = vm.heap.at(table).get_number(position as f64);
    check_writable(vm, table)?;
    for index in position..end {
        let moved = vm.heap.at(table).get_number((index + 1) as f64);
        set(vm, table, index, moved);
        if index % 1024 == 0 {
            vm.charge(host, 1024)?;
        }
    }
    set(vm, table, end, Value::Nil);
    vm.give(value)
}

fn setn(vm: &mut Vm, _: &mut dyn Host, args: Args) -> Result<usize> {
    vm.check_table(args, 0)?;
    Err(vm.error("'setn' is obsolete"))
}
