//! The libraries.

pub(crate) mod args;
mod base;
pub(crate) mod bit;
pub(crate) mod cjson;
mod cmsgpack;
mod coroutine;
mod environment;
pub(crate) mod math;
mod pattern;
mod sort;
mod strfind;
mod strformat;
mod string;
mod structs;
mod table;

use crate::base::value::{TableId, Value};
use crate::vm::{NativeFn, Vm};

pub(crate) use environment::{guard, protect};

/// The safe libraries of Lua 5.1.
pub(crate) fn open_standard(vm: &mut Vm) {
    base::open(vm, base::ALL);
    open_shared(vm);
}

/// The libraries of Redis's scripts.
pub(crate) fn open_redis(vm: &mut Vm) {
    base::open(vm, base::REDIS);
    open_shared(vm);
    environment::open(vm);
}

fn open_shared(vm: &mut Vm) {
    coroutine::open(vm);
    string::open(vm);
    table::open(vm);
    math::open(vm);
    cjson::open(vm);
    structs::open(vm);
    cmsgpack::open(vm);
    bit::open(vm);
}

/// Makes a global table of functions.
pub(crate) fn library(vm: &mut Vm, name: &str, functions: &[(&str, NativeFn)]) -> TableId {
    let table = vm.heap.table(0, functions.len());
    vm.register(table, functions);
    let globals = vm.globals;
    vm.set_field(globals, name, Value::Table(table));
    table
}
