//! The `cjson` library of Redis (lua-cjson 2.1.0): its functions and its configuration.
//!
//! Each module table made by `cjson.new` has a configuration of its own, kept in a table that only its functions hold.
//! Encoder and decoder keep their own stacks, so nesting costs no stack of the thread.

mod decode;
mod encode;

use super::args::to_integer;
use super::base::{c_text, invalid_option};
use crate::base::value::{TableId, Value};
use crate::vm::heap::Closure;
use crate::vm::host::Host;
use crate::vm::{Args, Native, NativeFn, Result, Vm};

/// A setting: its place in the configuration table.
#[derive(Clone, Copy, Debug)]
#[repr(usize)]
enum Setting {
    SparseConvert = 1,
    SparseRatio,
    SparseSafe,
    EncodeMaxDepth,
    DecodeMaxDepth,
    EncodeInvalidNumbers,
    DecodeInvalidNumbers,
    KeepBuffer,
    NumberPrecision,
}

/// In the order of [`Setting`].
const DEFAULTS: [i32; 9] = [0, 2, 10, 1000, 1000, 0, 1, 1, 14];

/// `encode_invalid_numbers` writes `null` for them.
const NULL_FOR_INVALID: i32 = 2;

const FUNCTIONS: &[(&str, NativeFn)] = &[
    ("decode", decode::decode),
    ("decode_invalid_numbers", |vm, _, args| {
        check_count(vm, args, 1)?;
        enum_option(vm, args, 0, Setting::DecodeInvalidNumbers, &["off", "on"])
    }),
    ("decode_max_depth", |vm, _, args| {
        check_count(vm, args, 1)?;
        integer_option(vm, args, 0, Setting::DecodeMaxDepth, (1, i32::MAX))
    }),
    ("encode", encode::encode),
    ("encode_invalid_numbers", |vm, _, args| {
        check_count(vm, args, 1)?;
        enum_option(
            vm,
            args,
            0,
            Setting::EncodeInvalidNumbers,
            &["off", "on", "null"],
        )
    }),
    ("encode_keep_buffer", |vm, _, args| {
        check_count(vm, args, 1)?;
        enum_option(vm, args, 0, Setting::KeepBuffer, &["off", "on"])
    }),
    ("encode_max_depth", |vm, _, args| {
        check_count(vm, args, 1)?;
        integer_option(vm, args, 0, Setting::EncodeMaxDepth, (1, i32::MAX))
    }),
    ("encode_number_precision", |vm, _, args| {
        check_count(vm, args, 1)?;
        integer_option(vm, args, 0, Setting::NumberPrecision, (1, 14))
    }),
    ("encode_sparse_array", encode_sparse_array),
    ("new", new),
];

pub(crate) fn open(vm: &mut Vm) {
    let table = module(vm);
    let globals = vm.globals;
    vm.set_field(globals, "cjson", Value::Table(table));
}

/// A module table with a configuration of its own.
fn module(vm: &mut Vm) -> TableId {
    let config = vm.heap.table(DEFAULTS.len(), 0);
    for (at, default) in DEFAULTS.iter().enumerate() {
        vm.heap
            .raw_set_index(config, at + 1, Value::Number(f64::from(*default)));
    }
    let table = vm.heap.table(0, 0);
    for (name, function) in FUNCTIONS {
        let value = vm.native(Native::Builtin(*function), vec![Value::Table(config)]);
        vm.set_field(table, name, value);
    }
    vm.set_field(table, "null", Value::Light(0));
    for (name, text) in [("_NAME", "cjson"), ("_VERSION", "2.1.0")] {
        let value = vm.str(text.as_bytes());
        vm.set_field(table, name, value);
    }
    table
}

fn new(vm: &mut Vm, _: &mut dyn Host, _: Args) -> Result<usize> {
    let table = module(vm);
    vm.give(Value::Table(table))
}

/// The configuration of the function that is running.
fn config(vm: &Vm, args: Args) -> Option<TableId> {
    let Value::Function(id) = vm.stack[args.base - 1] else {
        return None;
    };
    match &vm.heap.funcs.items[id.index()].closure {
        Closure::Native(native) => match native.upvals.first() {
            Some(Value::Table(config)) => Some(*config),
            _ => None,
        },
        Closure::Lua(_) => None,
    }
}

fn setting(vm: &Vm, args: Args, setting: Setting) -> i32 {
    let found = config(vm, args).map(|config| vm.heap.at(config).get_index(setting as usize));
    match found {
        Some(Value::Number(n)) => n as i32,
        _ => DEFAULTS[setting as usize - 1],
    }
}

fn change(vm: &mut Vm, args: Args, setting: Setting, value: i32) {
    if let Some(config) = config(vm, args) {
        vm.heap
            .raw_set_index(config, setting as usize, Value::Number(f64::from(value)));
    }
}

fn check_count(vm: &mut Vm, args: Args, most: usize) -> Result<()> {
    if args.count > most {
        return Err(vm.bad_argument(most, "found too many arguments"));
    }
    Ok(())
}

fn integer_option(
    vm: &mut Vm,
    args: Args,
    at: usize,
    which: Setting,
    (low, high): (i32, i32),
) -> Result<usize> {
    if !vm.arg(args, at).is_nil() {
        let value = to_integer(vm.check_number(args, at)?) as i32;
        if !(low..=high).contains(&value) {
            return Err(vm.bad_argument(0, format!("expected integer between {low} and {high}")));
        }
        change(vm, args, which, value);
    }
    let value = setting(vm, args, which);
    vm.give(Value::Number(f64::from(value)))
}

fn enum_option(
    vm: &mut Vm,
    args: Args,
    at: usize,
    which: Setting,
    options: &[&str],
) -> Result<usize> {
    match vm.arg(args, at) {
        Value::Nil => {}
        Value::Bool(on) => change(vm, args, which, i32::from(on)),
        _ => {
            let name = vm.check_str(args, at)?;
            let name = c_text(vm, name)?;
            let Some(value) = options.iter().position(|option| option.as_bytes() == name) else {
                return Err(invalid_option(vm, at, &name));
            };
            change(vm, args, which, value as i32);
        }
    }
    match setting(vm, args, which) {
        value @ (0 | 1) => vm.give(Value::Bool(value == 1)),
        value => {
            let name = options.get(value as usize).copied().unwrap_or_default();
            vm.give_bytes(name.as_bytes())
        }
    }
}

fn encode_sparse_array(vm: &mut Vm, _: &mut dyn Host, args: Args) -> Result<usize> {
    check_count(vm, args, 3)?;
    enum_option(vm, args, 0, Setting::SparseConvert, &["off", "on"])?;
    integer_option(vm, args, 1, Setting::SparseRatio, (0, i32::MAX))?;
    integer_option(vm, args, 2, Setting::SparseSafe, (0, i32::MAX))?;
    Ok(3)
}
