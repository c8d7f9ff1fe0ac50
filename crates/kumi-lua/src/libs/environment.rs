//! Redis's environment: protected globals and its error handler.

use crate::base::value::{TableId, Value};
use crate::vm::host::Host;
use crate::vm::{Args, Native, Result, Vm};

pub(crate) fn open(vm: &mut Vm) {
    let globals = vm.globals;
    vm.register(
        globals,
        &[
            ("__redis__err__handler", error_handler),
            ("pcall", super::base::redis_pcall),
        ],
    );
}

/// Makes the globals, every table they reach and their metatables read-only.
pub(crate) fn protect(vm: &mut Vm) {
    let globals = vm.globals;
    guard(vm, globals);
    let mut pending: Vec<TableId> = vec![globals];
    pending.extend(vm.string_meta);
    while let Some(table) = pending.pop() {
        let t = vm.heap.at_mut(table);
        if t.readonly {
            continue;
        }
        t.readonly = true;
        pending.extend(t.meta);
        pending.extend(t.hash_pairs().filter_map(|(_, value)| match value {
            Value::Table(id) => Some(id),
            _ => None,
        }));
    }
}

/// Lets reads of absent fields of a table raise the error of absent globals.
pub(crate) fn guard(vm: &mut Vm, table: TableId) {
    let missing = vm.native(Native::Builtin(missing_global), Vec::new());
    let meta = vm.heap.table(0, 1);
    vm.set_field(meta, "__index", missing);
    vm.heap.at_mut(table).meta = Some(meta);
    vm.heap.barrier(table);
}

fn missing_global(vm: &mut Vm, _: &mut dyn Host, args: Args) -> Result<usize> {
    if args.count != 2 {
        return Err(vm.error("Wrong number of arguments to luaProtectedTableError"));
    }
    let key = vm.arg(args, 1);
    let Some(name) = vm.coerce_str(key) else {
        return Err(
            vm.error("Second argument to luaProtectedTableError must be a string or number")
        );
    };
    let name = super::base::c_text(vm, name)?;
    let mut text = b"Script attempted to access nonexistent global variable '".to_vec();
    text.extend_from_slice(&name);
    text.push(b'\'');
    Err(vm.error(text))
}

/// Turns any error into a table with `err`, `source` and `line`.
fn error_handler(vm: &mut Vm, _: &mut dyn Host, args: Args) -> Result<usize> {
    let value = vm.arg(args, 0);
    let table = match value {
        Value::Table(id) => id,
        _ => {
            let table = vm.heap.table(0, 3);
            let mut text = b"ERR ".to_vec();
            let shown = super::base::display(vm, value);
            if let Value::Str(s) = shown {
                text.extend_from_slice(vm.heap.bytes_of(s));
            }
            let text = vm.str(&text);
            vm.set_field(table, "err", text);
            table
        }
    };
    let raised = vm.frames.len().checked_sub(1).and_then(|end| {
        let frames = &vm.frames[..end];
        frames
            .iter()
            .rev()
            .take(2)
            .find(|frame| frame.is_lua())
            .copied()
    });
    if let Some(frame) = raised {
        let source = vm.heap.protos.items[frame.proto as usize].source;
        let line = f64::from(vm.line(&frame));
        super::base::check_writable(vm, table)?;
        vm.set_field(table, "source", Value::Str(source));
        vm.set_field(table, "line", Value::Number(line));
    }
    vm.give(Value::Table(table))
}
