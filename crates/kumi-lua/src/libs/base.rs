//! The base library.

use super::args::to_integer;
use crate::base::number;
use crate::base::value::{FuncId, Str, TableId, Value};
use crate::vm::heap::Closure;
use crate::vm::host::Host;
use crate::vm::{Args, Error, Event, MAX_NATIVE_SLOTS, NativeFn, Result, SMALL, Vm};

/// How often the text of an error is copied until it is a string, at most.
const ERROR_COPIES: usize = 8;

/// What Redis's scripts have.
pub(crate) const REDIS: &[(&str, NativeFn)] = &[
    ("assert", assert),
    ("collectgarbage", collectgarbage),
    ("error", error),
    ("gcinfo", gcinfo),
    ("getmetatable", getmetatable),
    ("load", load),
    ("loadstring", loadstring),
    ("next", next),
    ("pcall", pcall),
    ("rawequal", rawequal),
    ("rawget", rawget),
    ("rawset", rawset),
    ("select", select),
    ("setmetatable", setmetatable),
    ("tonumber", tonumber),
    ("tostring", tostring),
    ("type", type_of),
    ("unpack", unpack),
    ("xpcall", xpcall),
];

/// What Lua 5.1 has besides.
pub(crate) const ALL: &[(&str, NativeFn)] = &[
    ("getfenv", getfenv),
    ("setfenv", setfenv),
    ("newproxy", newproxy),
];

pub(crate) fn open(vm: &mut Vm, extra: &[(&str, NativeFn)]) {
    let globals = vm.globals;
    vm.set_field(globals, "_G", Value::Table(globals));
    vm.register(globals, REDIS);
    if extra.len() != REDIS.len() {
        vm.register(globals, extra);
    }
    let version = vm.str(b"Lua 5.1");
    vm.set_field(globals, "_VERSION", version);
    for (name, function, iterator) in [
        ("ipairs", ipairs as NativeFn, ipairs_step as NativeFn),
        ("pairs", pairs, next),
    ] {
        let iterator = vm.native(crate::vm::Native::Builtin(iterator), Vec::new());
        let value = vm.native(crate::vm::Native::Builtin(function), vec![iterator]);
        vm.set_field(globals, name, value);
    }
}

fn assert(vm: &mut Vm, _: &mut dyn Host, args: Args) -> Result<usize> {
    if vm.check_any(args, 0)?.is_falsy() {
        let text = match vm.opt_str(args, 1)? {
            Some(s) => c_text(vm, s)?,
            None => b"assertion failed!".to_vec(),
        };
        return Err(vm.error(text));
    }
    Ok(args.count)
}

/// C formats a `%s` up to the first zero byte.
fn text_until_zero(text: &[u8]) -> &[u8] {
    text.split(|b| *b == 0).next().unwrap_or(text)
}

/// A copy of a string up to its first zero byte, with memory for an error that contains it.
pub(super) fn c_text(vm: &mut Vm, s: Str) -> Result<Vec<u8>> {
    let len = text_until_zero(vm.heap.bytes_of(s)).len();
    if len > SMALL {
        vm.spend(len / 8);
        vm.reserve_memory(len.saturating_mul(ERROR_COPIES))?;
    }
    Ok(vm.heap.bytes_of(s)[..len].to_vec())
}

/// The error for a string that is not among the values of an argument.
pub(super) fn invalid_option(vm: &mut Vm, at: usize, option: &[u8]) -> Error {
    let mut text = b"invalid option '".to_vec();
    text.extend_from_slice(option);
    text.push(b'\'');
    vm.bad_argument(at, text)
}

fn collectgarbage(vm: &mut Vm, _: &mut dyn Host, args: Args) -> Result<usize> {
    let option = match vm.opt_str(args, 0)? {
        Some(s) => c_text(vm, s)?,
        None => b"collect".to_vec(),
    };
    vm.opt_int(args, 1, 0)?;
    let result = match &option[..] {
        b"collect" => {
            vm.collect_all();
            Value::Number(0.0)
        }
        b"count" => Value::Number(vm.heap.bytes as f64 / 1024.0),
        b"step" => Value::Bool(vm.step_once()),
        b"stop" => {
            vm.gc.stopped = true;
            Value::Number(0.0)
        }
        b"restart" => {
            vm.gc.stopped = false;
            Value::Number(0.0)
        }
        b"setpause" | b"setstepmul" => Value::Number(200.0),
        _ => return Err(invalid_option(vm, 0, &option)),
    };
    vm.give(result)
}

fn gcinfo(vm: &mut Vm, _: &mut dyn Host, _: Args) -> Result<usize> {
    let kilobytes = (vm.heap.bytes / 1024) as f64;
    vm.give(Value::Number(kilobytes))
}

fn error(vm: &mut Vm, _: &mut dyn Host, args: Args) -> Result<usize> {
    let level = vm.opt_int(args, 1, 1)? as i32;
    let value = vm.arg(args, 0);
    let value = match value {
        Value::Str(_) | Value::Number(_) if level > 0 => {
            let mut text = vm.position_at(level as usize);
            if let Some(s) = vm.coerce_str(value) {
                let len = vm.heap.bytes_of(s).len();
                vm.spend(len / 16);
                vm.reserve_memory(len)?;
                text.extend_from_slice(vm.heap.bytes_of(s));
            }
            Value::Str(vm.heap.string_from(text))
        }
        _ => value,
    };
    Err(Error::thrown(value))
}

fn getmetatable(vm: &mut Vm, _: &mut dyn Host, args: Args) -> Result<usize> {
    let value = vm.check_any(args, 0)?;
    let Some(meta) = vm.metatable(value) else {
        return vm.give(Value::Nil);
    };
    let protected = vm.table_event(meta, Event::Metatable);
    vm.give(if protected.is_nil() {
        Value::Table(meta)
    } else {
        protected
    })
}

fn setmetatable(vm: &mut Vm, _: &mut dyn Host, args: Args) -> Result<usize> {
    let table = vm.check_table(args, 0)?;
    let meta = match vm.arg(args, 1) {
        Value::Nil if args.count > 1 => None,
        Value::Table(meta) => Some(meta),
        _ => return Err(vm.bad_argument(1, "nil or table expected")),
    };
    if vm.heap.at(table).meta.is_some() && vm.has_event(Value::Table(table), Event::Metatable) {
        return Err(vm.error("cannot change a protected metatable"));
    }
    check_writable(vm, table)?;
    vm.heap.at_mut(table).meta = meta;
    vm.heap.barrier(table);
    vm.give(Value::Table(table))
}

/// Native functions write to tables without metamethods, but not to read-only ones.
pub(crate) fn check_writable(vm: &Vm, table: TableId) -> Result<()> {
    if vm.heap.at(table).readonly {
        return Err(Error::message(crate::vm::READONLY));
    }
    Ok(())
}

fn load(vm: &mut Vm, host: &mut dyn Host, args: Args) -> Result<usize> {
    let reader = vm.check_function(args, 0)?;
    let name = match vm.opt_str(args, 1)? {
        Some(s) => {
            vm.reserve_memory(vm.heap.bytes_of(s).len())?;
            vm.heap.bytes_of(s).to_vec()
        }
        None => b"=(load)".to_vec(),
    };
    let mut source = Vec::new();
    loop {
        let at = vm.top;
        vm.push(reader);
        let outcome = vm.holding(source.capacity() + name.capacity(), |vm| {
            vm.protected_call(host, at, 1, None)
        })?;
        vm.top = at;
        let piece = match outcome {
            Ok(()) => vm.stack[at],
            Err(value) => {
                vm.push(Value::Nil);
                vm.push(value);
                return Ok(2);
            }
        };
        match vm.coerce_str(piece) {
            Some(s) => {
                let more = vm.heap.bytes_of(s).len();
                if more == 0 {
                    break;
                }
                // The piece stays in the stack while memory is collected.
                vm.push(Value::Str(s));
                match vm.room(host, &mut source, more) {
                    Err(error) if error.is_catchable() => {
                        let value = vm.error_value(error);
                        vm.push(Value::Nil);
                        vm.push(value);
                        return Ok(2);
                    }
                    room => room?,
                }
                vm.top = at;
                source.extend_from_slice(vm.heap.bytes_of(s));
            }
            None if piece.is_nil() => break,
            None => {
                let error = vm.error("reader function must return a string");
                let value = vm.error_value(error);
                vm.push(Value::Nil);
                vm.push(value);
                return Ok(2);
            }
        }
    }
    // Chunk names are C strings.
    let name = vm.heap.string(text_until_zero(&name));
    load_chunk(vm, host, &source, name)
}

fn loadstring(vm: &mut Vm, host: &mut dyn Host, args: Args) -> Result<usize> {
    let source = vm.check_str(args, 0)?;
    let name = match vm.opt_str(args, 1)? {
        Some(name) => name,
        None => source,
    };
    let bytes = vm.heap.bytes_of(source);
    let name_bytes = vm.heap.bytes_of(name);
    vm.reserve_memory(bytes.len().saturating_add(name_bytes.len()))?;
    // Chunk names are C strings.
    let name_bytes = vm.heap.bytes_of(name);
    let end = text_until_zero(name_bytes).len();
    let name = if end == name_bytes.len() {
        name
    } else {
        let name_bytes = name_bytes[..end].to_vec();
        vm.heap.string_from(name_bytes)
    };
    let source = vm.heap.bytes_of(source).to_vec();
    load_chunk(vm, host, &source, name)
}

/// Compiles a chunk whose name nothing else may keep: no collection may run before it is compiled.
fn load_chunk(vm: &mut Vm, host: &mut dyn Host, source: &[u8], name: Str) -> Result<usize> {
    let compiled = vm.compile(host, source, name);
    match compiled {
        Ok(function) => vm.give(Value::Function(function)),
        Err(error) => {
            let text = error.text()?;
            vm.push(Value::Nil);
            let text = vm.str(&text);
            vm.push(text);
            Ok(2)
        }
    }
}

pub(crate) fn next(vm: &mut Vm, _: &mut dyn Host, args: Args) -> Result<usize> {
    let table = vm.check_table(args, 0)?;
    let key = vm.arg(args, 1);
    vm.spend_on_key(key);
    let key = vm.heap.canonical(key);
    let mut skipped = 0;
    let next = vm.heap.at(table).next_counted(key, &mut skipped);
    vm.spend(skipped / 8);
    match next {
        Ok(Some((key, value))) => {
            vm.push(key);
            vm.push(value);
            Ok(2)
        }
        Ok(None) => vm.give(Value::Nil),
        Err(()) => Err(Error::message("invalid key to 'next'")),
    }
}

fn upvalue(vm: &Vm, args: Args) -> Value {
    match vm.stack[args.base - 1] {
        Value::Function(id) => match &vm.heap.funcs.items[id.index()].closure {
            Closure::Native(native) => native.upvals.first().copied().unwrap_or_default(),
            Closure::Lua(_) => Value::Nil,
        },
        _ => Value::Nil,
    }
}

fn pairs(vm: &mut Vm, _: &mut dyn Host, args: Args) -> Result<usize> {
    let table = vm.check_table(args, 0)?;
    let iterator = upvalue(vm, args);
    vm.push(iterator);
    vm.push(Value::Table(table));
    vm.push(Value::Nil);
    Ok(3)
}

fn ipairs(vm: &mut Vm, _: &mut dyn Host, args: Args) -> Result<usize> {
    let table = vm.check_table(args, 0)?;
    let iterator = upvalue(vm, args);
    vm.push(iterator);
    vm.push(Value::Table(table));
    vm.push(Value::Number(0.0));
    Ok(3)
}

fn ipairs_step(vm: &mut Vm, _: &mut dyn Host, args: Args) -> Result<usize> {
    let index = vm.check_int32(args, 1)?.wrapping_add(1);
    let table = vm.check_table(args, 0)?;
    let value = vm.heap.at(table).get_number(f64::from(index));
    if value.is_nil() {
        return Ok(0);
    }
    vm.push(Value::Number(f64::from(index)));
    vm.push(value);
    Ok(2)
}

fn pcall(vm: &mut Vm, host: &mut dyn Host, args: Args) -> Result<usize> {
    vm.check_any(args, 0)?;
    let func = args.base;
    match vm.protected_call(host, func, -1, None)? {
        Ok(()) => {
            // Results follow the place of the function; `true` goes before them.
            let count = vm.top - func;
            vm.ensure_stack(vm.top + 2);
            vm.stack.copy_within(func..vm.top, func + 1);
            vm.stack[func] = Value::Bool(true);
            vm.top = func + 1 + count;
            Ok(count + 1)
        }
        Err(value) => {
            vm.top = func;
            vm.push(Value::Bool(false));
            vm.push(value);
            Ok(2)
        }
    }
}

/// Redis's own `pcall`: an error that is a table with `err` is returned as that text. Without a text in `err`, what is
/// there follows the table.
pub(crate) fn redis_pcall(vm: &mut Vm, host: &mut dyn Host, args: Args) -> Result<usize> {
    if args.count == 0 {
        // The original calls its own place holder.
        vm.push(Value::Bool(false));
        return vm
            .give_bytes(b"attempt to call a boolean value")
            .map(|count| count + 1);
    }
    let count = pcall(vm, host, args)?;
    let first = vm.top - count;
    let (Value::Bool(false), table @ Value::Table(_)) = (vm.stack[first], vm.stack[first + 1])
    else {
        return Ok(count);
    };
    let key = vm.str(b"err");
    let err = vm.index(host, table, key)?;
    if matches!(err, Value::Str(_) | Value::Number(_)) {
        vm.stack[first + 1] = err;
        return Ok(count);
    }
    vm.push(err);
    Ok(count + 1)
}

fn xpcall(vm: &mut Vm, host: &mut dyn Host, args: Args) -> Result<usize> {
    if args.count < 2 {
        return Err(vm.bad_argument(1, "value expected"));
    }
    let function = vm.arg(args, 0);
    let handler = vm.arg(args, 1);
    vm.stack[args.base] = handler;
    vm.stack[args.base + 1] = function;
    vm.top = args.base + 2;
    match vm.protected_call(host, args.base + 1, -1, Some(handler))? {
        Ok(()) => {
            let count = vm.top - args.base - 1;
            vm.stack[args.base] = Value::Bool(true);
            Ok(count + 1)
        }
        Err(value) => {
            vm.top = args.base;
            vm.push(Value::Bool(false));
            vm.push(value);
            Ok(2)
        }
    }
}

fn rawequal(vm: &mut Vm, host: &mut dyn Host, args: Args) -> Result<usize> {
    let a = vm.check_any(args, 0)?;
    let b = vm.check_any(args, 1)?;
    vm.charge_comparison(host, a, b)?;
    let equal = vm.heap.raw_equal(a, b);
    vm.give(Value::Bool(equal))
}

fn rawget(vm: &mut Vm, _: &mut dyn Host, args: Args) -> Result<usize> {
    let table = vm.check_table(args, 0)?;
    let key = vm.check_any(args, 1)?;
    vm.spend_on_key(key);
    let value = vm.heap.raw_get(table, key);
    vm.give(value)
}

fn rawset(vm: &mut Vm, _: &mut dyn Host, args: Args) -> Result<usize> {
    let table = vm.check_table(args, 0)?;
    let key = vm.check_any(args, 1)?;
    let value = vm.check_any(args, 2)?;
    check_writable(vm, table)?;
    vm.spend_on_key(key);
    vm.set_checked(table, key, value)?;
    vm.give(Value::Table(table))
}

fn select(vm: &mut Vm, _: &mut dyn Host, args: Args) -> Result<usize> {
    if let Value::Str(s) = vm.arg(args, 0)
        && vm.heap.bytes_of(s).first() == Some(&b'#')
    {
        return vm.give(Value::Number((args.count - 1) as f64));
    }
    let count = args.count as i64;
    let mut at = i64::from(vm.check_int32(args, 0)?);
    if at < 0 {
        at += count;
    } else if at > count {
        at = count;
    }
    if at < 1 {
        return Err(vm.bad_argument(0, "index out of range"));
    }
    Ok((count - at) as usize)
}

fn tonumber(vm: &mut Vm, _: &mut dyn Host, args: Args) -> Result<usize> {
    let base = vm.opt_int(args, 1, 10)? as i32;
    if base == 10 {
        let value = vm.check_any(args, 0)?;
        let number = vm.number_of(value);
        return vm.give(number.map_or(Value::Nil, Value::Number));
    }
    let text = vm.check_str(args, 0)?;
    if !(2..=36).contains(&base) {
        return Err(vm.bad_argument(1, "base out of range"));
    }
    vm.spend_on_key(Value::Str(text));
    let number = parse_base(vm.heap.bytes_of(text), base as u32);
    vm.give(number.map_or(Value::Nil, Value::Number))
}

/// C's `strtoul` with spaces allowed after it.
fn parse_base(text: &[u8], base: u32) -> Option<f64> {
    let text = text_until_zero(text);
    let start = text.iter().take_while(|b| number::is_space(**b)).count();
    let mut rest = &text[start..];
    let negative = rest.first() == Some(&b'-');
    if matches!(rest.first(), Some(b'-' | b'+')) {
        rest = &rest[1..];
    }
    if base == 16
        && rest.len() > 2
        && rest[0] == b'0'
        && matches!(rest[1], b'x' | b'X')
        && rest[2].is_ascii_hexdigit()
    {
        rest = &rest[2..];
    }
    let digits = rest
        .iter()
        .map_while(|b| (*b as char).to_digit(36).filter(|d| *d < base));
    let count = digits.clone().count();
    if count == 0 || !rest[count..].iter().all(|b| number::is_space(*b)) {
        return None;
    }
    let mut value = Some(0u64);
    for digit in digits {
        value = value.and_then(|v| {
            v.checked_mul(u64::from(base))?
                .checked_add(u64::from(digit))
        });
    }
    Some(match value {
        Some(value) if negative => value.wrapping_neg() as f64,
        Some(value) => value as f64,
        None => u64::MAX as f64,
    })
}

fn tostring(vm: &mut Vm, host: &mut dyn Host, args: Args) -> Result<usize> {
    let value = vm.check_any(args, 0)?;
    if vm.metatable(value).is_some() {
        let method = vm.event(value, Event::ToString);
        if !method.is_nil() {
            let result = vm.call_value(host, method, &[value])?;
            return vm.give(result);
        }
    }
    let text = display(vm, value);
    vm.give(text)
}

/// What `tostring` gives a value without `__tostring`.
pub(crate) fn display(vm: &mut Vm, value: Value) -> Value {
    let (kind, address) = match value {
        Value::Nil => return vm.str(b"nil"),
        Value::Bool(true) => return vm.str(b"true"),
        Value::Bool(false) => return vm.str(b"false"),
        Value::Number(_) | Value::Str(_) => {
            return match vm.coerce_str(value) {
                Some(s) => Value::Str(s),
                None => Value::Nil,
            };
        }
        Value::Light(0) => return vm.str(b"userdata: (nil)"),
        Value::Table(id) => ("table", 0x5500_0000_0000 + u64::from(id.0) * 64),
        Value::Function(id) => ("function", 0x5600_0000_0000 + u64::from(id.0) * 32),
        Value::UserData(id) => ("userdata", 0x5700_0000_0000 + u64::from(id.0) * 32),
        Value::Thread(id) => ("thread", 0x5800_0000_0000 + u64::from(id.0) * 128),
        Value::Light(id) => ("userdata", u64::from(id)),
    };
    vm.str(format!("{kind}: {address:#x}").as_bytes())
}

fn type_of(vm: &mut Vm, _: &mut dyn Host, args: Args) -> Result<usize> {
    let name = vm.check_any(args, 0)?.type_name();
    vm.give_bytes(name.as_bytes())
}

fn unpack(vm: &mut Vm, _: &mut dyn Host, args: Args) -> Result<usize> {
    let table = vm.check_table(args, 0)?;
    let first = i64::from(vm.opt_int(args, 1, 1)? as i32);
    let last = if vm.arg(args, 2).is_nil() {
        vm.border(table) as i64
    } else {
        i64::from(vm.check_int32(args, 2)?)
    };
    if first > last {
        return Ok(0);
    }
    let count = last - first + 1;
    if count > i64::from(i32::MAX) || args.count + count as usize > MAX_NATIVE_SLOTS {
        return Err(vm.error("too many results to unpack"));
    }
    vm.spend(count as usize / 4);
    vm.ensure_stack(vm.top + count as usize + 1);
    for index in first..=last {
        let value = vm.heap.at(table).get_number(index as f64);
        vm.push(value);
    }
    Ok(count as usize)
}

/// The function an argument of `getfenv` and `setfenv` means; `None` is the running coroutine itself.
fn function_at(vm: &mut Vm, args: Args, optional: bool) -> Result<Option<FuncId>> {
    if let Value::Function(id) = vm.arg(args, 0) {
        return Ok(Some(id));
    }
    let level = if optional {
        vm.opt_int(args, 0, 1)?
    } else {
        vm.check_int(args, 0)?
    };
    let level = level as i32;
    if level < 0 {
        return Err(vm.bad_argument(0, "level must be non-negative"));
    }
    if level == 0 {
        return Ok(None);
    }
    match vm.level(level as usize) {
        Some(Some(at)) => Ok(Some(vm.frames[at].closure)),
        Some(None) => Err(vm.error(format!(
            "no function environment for tail call at level {level}"
        ))),
        None => Err(vm.bad_argument(0, "invalid level")),
    }
}

fn getfenv(vm: &mut Vm, _: &mut dyn Host, args: Args) -> Result<usize> {
    let env = match function_at(vm, args, true)? {
        Some(id) => vm.heap.funcs.items[id.index()].env,
        None => vm.globals,
    };
    vm.give(Value::Table(env))
}

fn setfenv(vm: &mut Vm, _: &mut dyn Host, args: Args) -> Result<usize> {
    let env = vm.check_table(args, 1)?;
    let level_zero = matches!(vm.arg(args, 0), Value::Number(n) if to_integer(n) == 0);
    let Some(id) = function_at(vm, args, false)? else {
        if level_zero {
            vm.globals = env;
        }
        return Ok(0);
    };
    if matches!(vm.heap.funcs.items[id.index()].closure, Closure::Native(_)) {
        return Err(vm.error("'setfenv' cannot change environment of given object"));
    }
    vm.heap.funcs.items[id.index()].env = env;
    vm.mark_again(Value::Table(env));
    vm.give(Value::Function(id))
}

fn newproxy(vm: &mut Vm, _: &mut dyn Host, args: Args) -> Result<usize> {
    let meta = match vm.arg(args, 0) {
        Value::Nil | Value::Bool(false) => None,
        Value::Bool(true) => Some(vm.heap.table(0, 0)),
        value @ Value::UserData(_) if vm.metatable(value).is_some() => vm.metatable(value),
        _ => return Err(vm.bad_argument(0, "boolean or proxy expected")),
    };
    let user = vm.heap.user(meta);
    vm.give(Value::UserData(user))
}
