//! The state a host holds: loading chunks, running functions, reading results.

use crate::base::value::{TableId, Value};
use crate::compile::CompileError as Failure;
use crate::vm::host::{Host, Limits};
use crate::vm::host_call::Function;
use crate::vm::{Error, ErrorKind, Native, Vm, stack_address};

/// One Lua state: its objects, its globals and its libraries. It can move between threads.
#[derive(Debug)]
pub struct Lua {
    pub(crate) vm: Vm,
}

/// A chunk that is not valid Lua, needs too much memory, or took so long that the host ended its compilation. The state is
/// unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompileError {
    /// Lua's message with chunk name and line.
    pub message: Vec<u8>,
}

impl std::fmt::Display for CompileError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.message))
    }
}

impl std::error::Error for CompileError {}

/// A script that ended with an error.
#[derive(Debug)]
#[non_exhaustive]
pub struct ScriptError {
    /// The error value: usually a string, or a table with `err`.
    pub value: Value,
    /// The host's reason, if its hook ended the script.
    pub interrupted: Option<String>,
    /// The chunk name, with its `@` or `=`, and the line where the error was raised.
    pub raised_at: Option<(Vec<u8>, u32)>,
}

impl Lua {
    /// A state with the whole of Lua 5.1's libraries that are safe: base, coroutine, string, table, math and bit.
    pub fn new(limits: Limits) -> Lua {
        let mut vm = Vm::new(limits);
        crate::libs::open_standard(&mut vm);
        Lua { vm }
    }

    /// A state with exactly what Redis gives its scripts, except `redis` itself. The globals are not protected yet: the
    /// host adds its own, then calls [`Lua::protect`].
    pub fn redis_unprotected(limits: Limits) -> Lua {
        let mut vm = Vm::new(limits);
        crate::libs::open_redis(&mut vm);
        Lua { vm }
    }

    /// [`Lua::redis_unprotected`] with protected globals.
    pub fn redis(limits: Limits) -> Lua {
        let mut lua = Lua::redis_unprotected(limits);
        lua.protect();
        lua
    }

    /// Makes the globals and every table they reach read-only, and lets reads of absent globals raise Redis's error.
    pub fn protect(&mut self) {
        crate::libs::protect(&mut self.vm);
    }

    /// Lets reads of absent fields of a table raise the error of absent globals.
    pub fn guard(&mut self, table: TableId) {
        crate::libs::guard(&mut self.vm, table);
    }

    /// Exchanges the globals with a second set, which is empty and not protected at first. Every function reads the set
    /// that is in place while it runs.
    pub fn swap_globals(&mut self) {
        let vm = &mut self.vm;
        let other = vm.other_globals.get_or_insert_with(|| vm.heap.table(0, 0));
        vm.heap.exchange(vm.globals, *other);
    }

    /// Compiles a chunk. The name is shown in messages: `@user_script` gives `user_script:1:`.
    pub fn load(&mut self, name: &str, source: &[u8]) -> Result<Function, CompileError> {
        self.load_for(&mut (), name, source)
    }

    /// [`Lua::load`] with a host whose [`Host::interrupt`] is called while a long chunk is compiled. An error of it ends
    /// the compilation.
    pub fn load_for(
        &mut self,
        host: &mut dyn Host,
        name: &str,
        source: &[u8],
    ) -> Result<Function, CompileError> {
        let floor = self.floor();
        let vm = &mut self.vm;
        (vm.stack_floor, vm.depth, vm.fuel) = (floor, 0, vm.limits.hook_interval);
        // Garbage that earlier scripts left is collected now if room is short.
        let reserved = vm.reserve_memory(source.len());
        let name = vm.heap.string(name.as_bytes());
        let compiled = match reserved {
            Ok(()) => vm.compile(host, source, name),
            Err(_) => Err(Failure::Memory),
        };
        match compiled {
            Ok(function) => Ok(vm.pin(Value::Function(function))),
            Err(failure) => Err(CompileError {
                message: match failure.text() {
                    Ok(text) => text,
                    Err(error) => match *error.0 {
                        ErrorKind::Interrupted(reason) => reason.into_bytes(),
                        _ => b"compilation failed".to_vec(),
                    },
                },
            }),
        }
    }

    fn floor(&self) -> usize {
        stack_address().saturating_sub(self.vm.limits.stack_bytes)
    }

    /// Keeps a function value that a script gave to the host.
    pub fn keep(&mut self, value: Value) -> Option<Function> {
        matches!(value, Value::Function(_)).then(|| self.vm.pin(value))
    }

    /// Lets the collector have a function.
    pub fn release(&mut self, function: Function) {
        if let Some(pin) = self.vm.pinned.get_mut(function.pin) {
            *pin = None;
        }
    }

    /// Runs a function. The results stay valid until the state runs or collects again.
    pub fn call(
        &mut self,
        host: &mut dyn Host,
        function: &Function,
        args: &[Value],
    ) -> Result<&[Value], ScriptError> {
        let floor = self.floor();
        let vm = &mut self.vm;
        vm.stack_floor = floor;
        vm.depth = 0;
        vm.frames.clear();
        vm.open.clear();
        vm.fuel = vm.limits.hook_interval;
        vm.stack[0] = vm
            .pinned
            .get(function.pin)
            .copied()
            .flatten()
            .unwrap_or_default();
        vm.ensure_stack(args.len() + 2);
        vm.stack[1..1 + args.len()].copy_from_slice(args);
        vm.top = 1 + args.len();
        if let Err(error) = vm.call_at(host, 0, -1) {
            return Err(self.failed(error));
        }
        if vm.stack.len() > STACK_KEPT {
            vm.shrink_stack(vm.top.max(STACK_KEPT));
        }
        Ok(&self.vm.stack[0..self.vm.top])
    }

    #[cold]
    fn failed(&mut self, error: Error) -> ScriptError {
        let vm = &mut self.vm;
        let error = vm.finish_error(error);
        let raised_at = vm.raised_at();
        let interrupted = match &*error.0 {
            ErrorKind::Interrupted(reason) => Some(reason.clone()),
            _ => None,
        };
        let value = vm.error_value(error);
        vm.close_upvalues(0);
        vm.frames.clear();
        vm.depth = 0;
        vm.top = 0;
        vm.stack[0] = value;
        vm.top = 1;
        vm.shrink_stack(STACK_KEPT);
        ScriptError {
            value,
            interrupted,
            raised_at,
        }
    }

    /// The bytes of a string value.
    pub fn bytes(&self, value: Value) -> Option<&[u8]> {
        match value {
            Value::Str(s) => Some(self.vm.heap.bytes_of(s)),
            _ => None,
        }
    }

    /// Makes a string value.
    pub fn string(&mut self, bytes: &[u8]) -> Value {
        self.vm.str(bytes)
    }

    /// Makes a table.
    pub fn table(&mut self, array: usize, pairs: usize) -> TableId {
        self.vm.heap.table(array, pairs)
    }

    /// The globals.
    pub fn globals(&self) -> TableId {
        self.vm.globals
    }

    /// Reads a field of a table without metamethods.
    pub fn field(&mut self, table: TableId, name: &[u8]) -> Value {
        let key = self.vm.str(name);
        self.vm.heap.raw_get(table, key)
    }

    /// Whether a table may have keys besides those of its array part.
    pub fn has_fields(&self, table: TableId) -> bool {
        self.vm.heap.at(table).hash_pairs().next().is_some()
    }

    /// Reads an element of a table, counted from one, without metamethods.
    pub fn element(&self, table: TableId, index: usize) -> Value {
        self.vm.heap.at(table).get_index(index)
    }

    /// Sets a field of a table, read-only or not.
    pub fn set_field(&mut self, table: TableId, name: &[u8], value: Value) {
        let key = self.vm.str(name);
        self.vm.heap.raw_set(table, key, value);
    }

    /// Sets an element of a table, counted from one.
    pub fn set_element(&mut self, table: TableId, index: usize, value: Value) {
        self.vm.heap.raw_set_index(table, index, value);
    }

    /// The pair after a key in the order of `next`; `None` after the last or for an unknown key. Nil starts.
    pub fn next(&mut self, table: TableId, key: Value) -> Option<(Value, Value)> {
        let key = self.vm.heap.canonical(key);
        self.vm.heap.at(table).next(key).ok().flatten()
    }

    /// A value that calls the host function with this number.
    pub fn host_function(&mut self, number: u32) -> Value {
        self.vm.native(Native::Host(number), Vec::new())
    }

    /// Puts `math.random` back to the sequence every script of Redis starts with.
    pub fn reset_random(&mut self) {
        self.vm.random = crate::base::random::Random::new();
    }

    /// Bytes of all objects, and of the room for more that is allocated.
    pub fn memory_bytes(&self) -> usize {
        self.vm.heap.total()
    }

    /// Collects all garbage at once and gives its memory back. Values the host holds must be pinned or reachable from
    /// globals.
    pub fn collect(&mut self) {
        self.vm.top = 0;
        self.vm.stack.fill(Value::Nil);
        self.vm.collect_all();
        self.vm.heap.trim();
    }

    /// The limits.
    pub fn limits(&self) -> &Limits {
        &self.vm.limits
    }

    /// Changes the limits.
    pub fn set_limits(&mut self, limits: Limits) {
        self.vm.limits = limits;
        self.vm.heap.threshold = self
            .vm
            .heap
            .threshold
            .min(self.vm.limits.memory_bytes.saturating_add(1));
    }
}

/// Stack slots a state keeps between runs.
const STACK_KEPT: usize = 4096;

impl Vm {
    fn shrink_stack(&mut self, slots: usize) {
        if self.stack.len() > slots {
            let bytes = (self.stack.len() - slots) * size_of::<Value>();
            self.heap.bytes = self.heap.bytes.saturating_sub(bytes);
            let running = &mut self.heap.threads.items[self.current.index()];
            running.accounted = running.accounted.saturating_sub(bytes);
            self.stack.truncate(slots);
            self.stack.shrink_to_fit();
        }
    }

    /// Chunk name and line of the innermost function, or of its caller if it is native.
    pub(crate) fn raised_at(&self) -> Option<(Vec<u8>, u32)> {
        let frame = self
            .frames
            .iter()
            .rev()
            .take(2)
            .find(|frame| frame.is_lua())?;
        let source = self.heap.protos.items[frame.proto as usize].source;
        Some((self.heap.bytes_of(source).to_vec(), self.line(frame)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vm::SMALL;

    #[test]
    fn a_long_string_without_an_end_leaves_no_buffer() {
        let mut lua = Lua::redis(Limits::default());
        let source = b"return pcall(cjson.decode, '\"' .. ('x'):rep(1000000))";
        let script = lua.load("@user_script", source).unwrap();
        assert!(lua.call(&mut (), &script, &[]).is_ok());
        assert!(lua.vm.scratch.capacity() <= SMALL);
    }
}
