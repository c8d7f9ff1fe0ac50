//! The virtual machine: one state with its heap, the running coroutine's stack and frames, and its limits.
//!
//! Lua functions call each other without recursion on the thread's stack. Native functions, metamethods, `pcall` and
//! `coroutine.resume` recurse, at most [`MAX_NATIVE_DEPTH`] levels and never below a lowest stack address.
//!
//! Frames are only removed by a normal return or by the code that catches an error, so that while an error travels the
//! frames show where it was raised. The collector runs between instructions only: native code may hold values in
//! variables as long as it does not call back into Lua.

pub(crate) mod arith;
mod call;
mod compare;
mod concat;
pub(crate) mod coroutine;
pub(crate) mod error;
mod gc;
pub(crate) mod heap;
pub(crate) mod host;
pub(crate) mod host_call;
mod index;
pub(crate) mod meter;
mod names;
mod run;

use crate::base::proto::Body;
use crate::base::value::{FuncId, Str, TableId, ThreadId, Value};
pub use error::Error;
pub(crate) use error::{ErrorKind, Result};
use heap::{Closure, Heap, LARGE, NativeClosure};
use host::{Host, Limits};
pub(crate) use index::READONLY;

/// Nested native calls: LUAI_MAXCCALLS.
pub(crate) const MAX_NATIVE_DEPTH: u32 = 200;
/// Frames of one coroutine. Lua 5.1 doubles its array of frames and fails when the new size passes 20000.
pub(crate) const MAX_FRAMES: usize = 16384;
/// Stack slots a native function may ask for: LUAI_MAXCSTACK.
pub(crate) const MAX_NATIVE_SLOTS: usize = 8000;
/// Registers that are always available above a frame's base.
pub(crate) const FRAME_ROOM: usize = 256;
/// Instructions a call counts for, so that recursion without loops reaches the hook.
pub(crate) const CALL_COST: i64 = 8;
pub(crate) const NO_PROTO: u32 = u32::MAX;
/// Bytes that are copied without being charged one by one.
pub(crate) const SMALL: usize = 4096;

/// A native function: arguments are in the stack, results are pushed, their number is returned.
pub(crate) type NativeFn = fn(&mut Vm, &mut dyn Host, Args) -> Result<usize>;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Native {
    Builtin(NativeFn),
    /// A function of the host, by its number.
    Host(u32),
}

/// The arguments of a native call: places in the stack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Args {
    pub(crate) base: usize,
    pub(crate) count: usize,
}

/// An active function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    /// Place of the function in the stack; results go there.
    pub(crate) func: u32,
    pub(crate) base: u32,
    /// End of the registers.
    pub(crate) top: u32,
    pub(crate) closure: FuncId,
    /// [`NO_PROTO`] for native functions.
    pub(crate) proto: u32,
    /// The next instruction.
    pub(crate) pc: u32,
    /// Results the caller wants, -1 for all.
    pub(crate) results: i32,
    /// Tail calls that replaced frames here.
    pub(crate) tail_calls: u32,
}

impl Frame {
    pub(crate) fn is_lua(&self) -> bool {
        self.proto != NO_PROTO
    }
}

macro_rules! events {
    ($($name:ident $text:literal),* $(,)?) => {
        /// Metamethods. The first eight have a bit in a table's cache of absent ones.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Event { $($name),* }

        const EVENT_NAMES: &[&str] = &[$($text),*];
    };
}

events! {
    Index "__index", NewIndex "__newindex", Eq "__eq", Len "__len", Call "__call", Lt "__lt", Le "__le",
    Concat "__concat", Add "__add", Sub "__sub", Mul "__mul", Div "__div", Mod "__mod", Pow "__pow", Unm "__unm",
    ToString "__tostring", Metatable "__metatable",
}

/// The body the run loop works on.
#[derive(Debug)]
pub(crate) struct Loaded {
    proto: u32,
    body: Body,
}

/// One Lua state.
#[derive(Debug)]
pub(crate) struct Vm {
    pub(crate) heap: Heap,
    /// Stack of the running coroutine.
    pub(crate) stack: Vec<Value>,
    /// End of the arguments or of open results.
    pub(crate) top: usize,
    pub(crate) frames: Vec<Frame>,
    /// Open upvalues by stack place, ascending.
    pub(crate) open: Vec<(u32, u32)>,
    loaded: Loaded,
    pub(crate) current: ThreadId,
    /// Coroutines that wait for the one they resumed, the main one first.
    pub(crate) resumers: Vec<ThreadId>,
    pub(crate) globals: TableId,
    /// The set that [`crate::Lua::swap_globals`] puts into `globals`.
    pub(crate) other_globals: Option<TableId>,
    pub(crate) string_meta: Option<TableId>,
    pub(crate) event_names: Vec<Str>,
    /// Values the host keeps; `None` is free.
    pub(crate) pinned: Vec<Option<Value>>,
    pub(crate) depth: u32,
    /// Native depth at which the running coroutine may yield.
    pub(crate) yield_depth: u32,
    /// Lowest stack address calls may reach.
    pub(crate) stack_floor: usize,
    pub(crate) limits: Limits,
    /// Instructions left until the host's hook is called.
    pub(crate) fuel: i64,
    pub(crate) random: crate::base::random::Random,
    pub(crate) gc: gc::Collector,
    /// A buffer natives build strings in.
    pub(crate) scratch: Vec<u8>,
    /// Bytes of buffers that natives keep while they call functions.
    held: usize,
}

impl Vm {
    pub(crate) fn new(limits: Limits) -> Vm {
        let mut heap = Heap::new();
        let globals = heap.table(0, 0);
        let event_names: Vec<Str> = EVENT_NAMES
            .iter()
            .map(|name| heap.string(name.as_bytes()))
            .collect();
        for name in &event_names {
            heap.strings.items[name.index()].mark = heap::color::FIXED;
        }
        let main = heap.thread(coroutine::Coroutine::main());
        let fuel = limits.hook_interval;
        let mut vm = Vm {
            heap,
            stack: vec![Value::Nil; FRAME_ROOM * 2],
            top: 0,
            frames: Vec::with_capacity(16),
            open: Vec::new(),
            loaded: Loaded {
                proto: NO_PROTO,
                body: Body::default(),
            },
            current: main,
            resumers: Vec::new(),
            globals,
            other_globals: None,
            string_meta: None,
            event_names,
            pinned: Vec::new(),
            depth: 0,
            yield_depth: u32::MAX,
            stack_floor: 0,
            limits,
            fuel,
            random: crate::base::random::Random::new(),
            gc: gc::Collector::default(),
            scratch: Vec::new(),
            held: 0,
        };
        vm.heap.threshold = gc::FIRST_THRESHOLD;
        vm
    }

    pub(crate) fn str(&mut self, bytes: &[u8]) -> Value {
        Value::Str(self.heap.string(bytes))
    }

    pub(crate) fn native(&mut self, native: Native, upvals: Vec<Value>) -> Value {
        let closure = Closure::Native(NativeClosure { native, upvals });
        Value::Function(self.heap.function(closure, self.globals))
    }

    /// Sets a field of a table, by name.
    pub(crate) fn set_field(&mut self, table: TableId, name: &str, value: Value) {
        let key = self.str(name.as_bytes());
        self.heap.raw_set(table, key, value);
    }

    /// Sets fields of a table to native functions.
    pub(crate) fn register(&mut self, table: TableId, functions: &[(&str, NativeFn)]) {
        for (name, function) in functions {
            let value = self.native(Native::Builtin(*function), Vec::new());
            self.set_field(table, name, value);
        }
    }

    pub(crate) fn arg(&self, args: Args, at: usize) -> Value {
        if at < args.count {
            self.stack[args.base + at]
        } else {
            Value::Nil
        }
    }

    /// Appends a result.
    pub(crate) fn push(&mut self, value: Value) {
        if self.top >= self.stack.len() {
            self.ensure_stack(self.top + 1);
        }
        self.stack[self.top] = value;
        self.top += 1;
    }

    /// Returns one value from a native.
    pub(crate) fn give(&mut self, value: Value) -> Result<usize> {
        self.push(value);
        Ok(1)
    }

    pub(crate) fn give_bytes(&mut self, bytes: &[u8]) -> Result<usize> {
        let value = self.str(bytes);
        self.give(value)
    }

    /// Makes the stack at least this long.
    pub(crate) fn ensure_stack(&mut self, len: usize) {
        if self.stack.len() < len {
            let grown = len.max(self.stack.len() * 2);
            let bytes = (grown - self.stack.len()) * size_of::<Value>();
            self.heap.bytes += bytes;
            self.heap.threads.items[self.current.index()].accounted += bytes;
            self.stack.resize(grown, Value::Nil);
        }
    }

    /// The most bytes the heap may have.
    #[inline]
    pub(crate) fn memory_limit(&self) -> usize {
        self.limits.memory_bytes.saturating_sub(self.held)
    }

    /// Makes a call while a buffer of the caller, outside the heap, counts as memory.
    pub(crate) fn holding<T>(
        &mut self,
        bytes: usize,
        call: impl FnOnce(&mut Vm) -> Result<T>,
    ) -> Result<T> {
        let held = self.held;
        self.held = held.saturating_add(bytes);
        let most = self.memory_limit().saturating_add(1);
        self.heap.threshold = self.heap.threshold.min(most);
        let outcome = call(self);
        self.held = held;
        outcome
    }

    /// Fails if `extra` more bytes would pass the memory limit, also after a full collection. Values that the caller
    /// goes on to use must be in the stack or reachable.
    #[inline]
    pub(crate) fn reserve_memory(&mut self, extra: usize) -> Result<()> {
        if self.heap.demand().saturating_add(extra) > self.memory_limit() {
            return self.collect_for(extra);
        }
        Ok(())
    }

    /// [`Vm::reserve_memory`] for the growth of a table that is about to get a new key.
    #[inline]
    pub(crate) fn reserve_growth(&mut self, table: TableId) -> Result<()> {
        let growth = self.heap.at(table).growth_bytes();
        if growth < LARGE {
            return Ok(());
        }
        self.reserve_memory(growth)
    }

    #[cold]
    fn collect_for(&mut self, extra: usize) -> Result<()> {
        if extra <= self.memory_limit() {
            self.collect_all();
            self.heap.trim();
            if self.heap.demand().saturating_add(extra) <= self.memory_limit() {
                return Ok(());
            }
        }
        Err(Error::from(ErrorKind::Memory))
    }

    /// Makes room for `more` bytes in a buffer outside the heap, within the memory limit, and charges the work of
    /// filling it. As [`Vm::reserve_memory`] it may collect.
    #[inline]
    pub(crate) fn room(
        &mut self,
        host: &mut dyn Host,
        out: &mut Vec<u8>,
        more: usize,
    ) -> Result<()> {
        if more <= SMALL && out.capacity() - out.len() >= more {
            return Ok(());
        }
        self.make_room(host, out, more)
    }

    #[cold]
    fn make_room(&mut self, host: &mut dyn Host, out: &mut Vec<u8>, more: usize) -> Result<()> {
        self.charge(host, more / 16)?;
        if out.capacity() - out.len() >= more {
            return Ok(());
        }
        self.charge(host, out.len() / 16)?;
        let needed = out.len().saturating_add(more);
        let mut size = needed.max(out.capacity().saturating_mul(2)).max(64);
        // The old buffer is there until the new one is filled.
        let old = out.capacity();
        if self.heap.demand().saturating_add(size).saturating_add(old) > self.memory_limit() {
            // An eighth more than is needed, so that the buffer is not copied for every few bytes.
            size = needed.saturating_add(needed / 8).max(64);
            self.reserve_memory(size.saturating_add(old))?;
            self.tell_of_freed(host);
        }
        out.try_reserve_exact(size - out.len())
            .map_err(|_| Error::from(ErrorKind::Memory))
    }

    /// A part of a string. As [`Vm::reserve_memory`] it may collect.
    pub(crate) fn substring(&mut self, s: Str, start: usize, end: usize) -> Result<Value> {
        let len = end - start;
        if len <= SMALL {
            let mut text = std::mem::take(&mut self.scratch);
            text.clear();
            text.extend_from_slice(&self.heap.bytes_of(s)[start..end]);
            let value = self.str(&text);
            self.scratch = text;
            return Ok(value);
        }
        if len == self.heap.bytes_of(s).len() {
            return Ok(Value::Str(s));
        }
        self.spend(len / 16);
        self.reserve_memory(len)?;
        let bytes = self.heap.bytes_of(s)[start..end].to_vec();
        Ok(Value::Str(self.heap.string_from(bytes)))
    }

    /// Charges work where the host's hook cannot be called; the next instruction that burns fuel calls it. Only for
    /// natives and slow paths that end with [`Vm::charge`]: many instructions in a row burn none.
    #[inline]
    pub(crate) fn spend(&mut self, work: usize) {
        self.fuel = self.fuel.saturating_sub(work as i64);
    }

    /// The length of a table without metamethods. Elements that are looked at one by one are charged.
    pub(crate) fn border(&mut self, table: TableId) -> usize {
        let (border, steps) = self.heap.at(table).border();
        self.spend(steps);
        border
    }

    /// Charges the hashing of a long string that is used as a key.
    #[inline]
    pub(crate) fn spend_on_key(&mut self, key: Value) {
        if let Value::Str(s) = key
            && s.is_long()
        {
            self.spend(self.heap.bytes_of(s).len() / 8);
        }
    }

    /// [`Vm::spend_on_key`] for an instruction.
    #[inline]
    pub(crate) fn charge_key(&mut self, host: &mut dyn Host, key: Value) -> Result<()> {
        if let Value::Str(s) = key
            && s.is_long()
        {
            self.spend_on_key(key);
            return self.charge(host, 0);
        }
        Ok(())
    }

    /// Charges work done outside the run loop, so that the host's hook is called in time.
    #[inline]
    pub(crate) fn charge(&mut self, host: &mut dyn Host, work: usize) -> Result<()> {
        self.spend(work);
        if self.fuel < 0 {
            return self.call_hook(host);
        }
        Ok(())
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn call_hook(&mut self, host: &mut dyn Host) -> Result<()> {
        self.fuel = self.limits.hook_interval;
        host.interrupt()
            .map_err(|reason| Error::from(ErrorKind::Interrupted(reason)))
    }

    /// The metamethod of a table, using its cache of absent ones.
    #[inline]
    pub(crate) fn table_event(&mut self, meta: TableId, event: Event) -> Value {
        let bit = 1u8.checked_shl(event as u32).unwrap_or(0);
        let table = self.heap.at(meta);
        if table.absent & bit != 0 {
            return Value::Nil;
        }
        let found = table.get_str(self.event_names[event as usize]);
        if found.is_nil() {
            self.heap.at_mut(meta).absent |= bit;
        }
        found
    }

    pub(crate) fn metatable(&self, value: Value) -> Option<TableId> {
        match value {
            Value::Table(id) => self.heap.at(id).meta,
            Value::UserData(id) => self.heap.users.items[id.index()].meta,
            Value::Str(_) => self.string_meta,
            _ => None,
        }
    }

    /// The metamethod of any value.
    pub(crate) fn event(&mut self, value: Value, event: Event) -> Value {
        match self.metatable(value) {
            Some(meta) => self.table_event(meta, event),
            None => Value::Nil,
        }
    }
}

/// The address of the top of the thread's stack, roughly.
#[inline(never)]
pub(crate) fn stack_address() -> usize {
    let here = 0u8;
    std::ptr::from_ref(&here) as usize
}
