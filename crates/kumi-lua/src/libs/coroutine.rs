//! The coroutine library.

use crate::base::value::{ThreadId, Value};
use crate::vm::coroutine::Status;
use crate::vm::heap::Closure;
use crate::vm::host::Host;
use crate::vm::{Args, Native, Result, Vm};

pub(crate) fn open(vm: &mut Vm) {
    super::library(
        vm,
        "coroutine",
        &[
            ("create", create),
            ("resume", resume),
            ("running", running),
            ("status", status),
            ("wrap", wrap),
            ("yield", yield_now),
        ],
    );
}

fn check_lua_function(vm: &mut Vm, args: Args) -> Result<Value> {
    if let value @ Value::Function(id) = vm.arg(args, 0)
        && matches!(vm.heap.funcs.items[id.index()].closure, Closure::Lua(_))
    {
        return Ok(value);
    }
    Err(vm.bad_argument(0, "Lua function expected"))
}

fn create(vm: &mut Vm, _: &mut dyn Host, args: Args) -> Result<usize> {
    let function = check_lua_function(vm, args)?;
    let thread = vm.new_coroutine(function);
    vm.give(Value::Thread(thread))
}

fn check_thread(vm: &mut Vm, args: Args) -> Result<ThreadId> {
    match vm.arg(args, 0) {
        Value::Thread(id) => Ok(id),
        _ => Err(vm.bad_argument(0, "coroutine expected")),
    }
}

fn resume(vm: &mut Vm, host: &mut dyn Host, args: Args) -> Result<usize> {
    let thread = check_thread(vm, args)?;
    let values = vm.stack[args.base + 1..args.base + args.count].to_vec();
    match vm.resume(host, thread, &values)? {
        Ok(values) => {
            vm.push(Value::Bool(true));
            let count = values.len();
            values.into_iter().for_each(|value| vm.push(value));
            Ok(count + 1)
        }
        Err(value) => {
            vm.push(Value::Bool(false));
            vm.push(value);
            Ok(2)
        }
    }
}

fn running(vm: &mut Vm, _: &mut dyn Host, _: Args) -> Result<usize> {
    let value = if vm.resumers.is_empty() {
        Value::Nil
    } else {
        Value::Thread(vm.current)
    };
    vm.give(value)
}

fn status(vm: &mut Vm, _: &mut dyn Host, args: Args) -> Result<usize> {
    let thread = check_thread(vm, args)?;
    let name = match vm.heap.threads.items[thread.index()].status {
        Status::Suspended => "suspended",
        Status::Running => "running",
        Status::Normal => "normal",
        Status::Dead => "dead",
    };
    vm.give_bytes(name.as_bytes())
}

fn wrap(vm: &mut Vm, _: &mut dyn Host, args: Args) -> Result<usize> {
    let function = check_lua_function(vm, args)?;
    let thread = vm.new_coroutine(function);
    let value = vm.native(Native::Builtin(wrapped), vec![Value::Thread(thread)]);
    vm.give(value)
}

fn wrapped(vm: &mut Vm, host: &mut dyn Host, args: Args) -> Result<usize> {
    let Value::Function(id) = vm.stack[args.base - 1] else {
        return Ok(0);
    };
    let Closure::Native(native) = &vm.heap.funcs.items[id.index()].closure else {
        return Ok(0);
    };
    let Some(Value::Thread(thread)) = native.upvals.first().copied() else {
        return Ok(0);
    };
    let values = vm.stack[args.base..args.base + args.count].to_vec();
    match vm.resume(host, thread, &values)? {
        Ok(values) => {
            let count = values.len();
            values.into_iter().for_each(|value| vm.push(value));
            Ok(count)
        }
        Err(value) => {
            // A message gets the position of the caller before it.
            let value = match vm.coerce_str(value) {
                Some(s) => {
                    let mut text = vm.position_at(1);
                    text.extend_from_slice(vm.heap.bytes_of(s));
                    vm.str(&text)
                }
                None => value,
            };
            Err(crate::vm::Error::thrown(value))
        }
    }
}

fn yield_now(vm: &mut Vm, _: &mut dyn Host, args: Args) -> Result<usize> {
    Err(vm.yield_values(args.count))
}
