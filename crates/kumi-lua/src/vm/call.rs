//! Calls: preparing frames, running native functions, catching errors, and upvalues of the frames that end.

use super::{
    Args, CALL_COST, Error, ErrorKind, Event, FRAME_ROOM, Frame, MAX_FRAMES, MAX_NATIVE_DEPTH,
    NO_PROTO, Native, Result, Vm, stack_address,
};
use crate::base::proto::Varargs;
use crate::base::value::{FuncId, Value};
use crate::vm::heap::{Closure, Upvalue};
use crate::vm::host::Host;
use crate::vm::host_call::Call;

/// Stack slots of one coroutine: enough for the most frames with the most registers.
const MAX_SLOTS: usize = 1 << 22;
/// Levels beyond the limit that error handlers may use.
const HANDLER_DEPTH: u32 = MAX_NATIVE_DEPTH / 8;

impl Vm {
    /// Calls the function at a stack place with the arguments up to the top. Results replace the function. Calls of
    /// metamethods and of natives come here and are charged: they may be the only ones a script makes.
    pub(crate) fn call_at(&mut self, host: &mut dyn Host, func: usize, results: i32) -> Result<()> {
        self.charge(host, CALL_COST as usize)?;
        self.depth += 1;
        if self.depth >= MAX_NATIVE_DEPTH || stack_address() < self.stack_floor {
            self.check_depth()?;
        }
        if self.precall(host, func, results)? {
            self.execute(host)?;
        }
        self.depth -= 1;
        Ok(())
    }

    #[cold]
    fn check_depth(&mut self) -> Result<()> {
        let exhausted = stack_address() < self.stack_floor;
        if self.depth == MAX_NATIVE_DEPTH || (exhausted && self.depth < MAX_NATIVE_DEPTH) {
            let error = Error::message("C stack overflow");
            return Err(self.finish_error(error));
        }
        if exhausted || self.depth >= MAX_NATIVE_DEPTH + HANDLER_DEPTH {
            return Err(Error::thrown(self.str(b"error in error handling")));
        }
        Ok(())
    }

    /// Calls a function value with arguments and returns its first result.
    pub(crate) fn call_value(
        &mut self,
        host: &mut dyn Host,
        function: Value,
        args: &[Value],
    ) -> Result<Value> {
        let saved = self.top;
        let at = self.place_call(function, args);
        self.call_at(host, at, 1)?;
        self.top = saved;
        Ok(self.stack[at])
    }

    pub(crate) fn call_discarding(
        &mut self,
        host: &mut dyn Host,
        function: Value,
        args: &[Value],
    ) -> Result<()> {
        let saved = self.top;
        let at = self.place_call(function, args);
        self.call_at(host, at, 0)?;
        self.top = saved;
        Ok(())
    }

    /// Puts a function and arguments above everything in use.
    fn place_call(&mut self, function: Value, args: &[Value]) -> usize {
        let at = match self.frames.last() {
            Some(frame) if frame.is_lua() => frame.top as usize,
            _ => self.top,
        };
        self.ensure_stack(at + args.len() + 2);
        self.stack[at] = function;
        self.stack[at + 1..at + 1 + args.len()].copy_from_slice(args);
        self.top = at + 1 + args.len();
        at
    }

    /// Begins a call: true if a Lua frame was pushed, false if a native function ran to its end.
    pub(crate) fn precall(
        &mut self,
        host: &mut dyn Host,
        func: usize,
        results: i32,
    ) -> Result<bool> {
        let id = match self.stack[func] {
            Value::Function(id) => id,
            other => self.call_event(func, other)?,
        };
        match &self.heap.funcs.items[id.index()].closure {
            Closure::Lua(lua) => {
                let proto = lua.proto;
                self.enter_lua(func, id, proto, results)?;
                Ok(true)
            }
            Closure::Native(native) => {
                let native = native.native;
                self.run_native(host, func, id, native, results)?;
                Ok(false)
            }
        }
    }

    /// Puts the `__call` metamethod before a value that is not a function.
    #[cold]
    fn call_event(&mut self, func: usize, value: Value) -> Result<FuncId> {
        let Value::Function(id) = self.event(value, Event::Call) else {
            let error = Error::type_error("call", value);
            return Err(match self.frames.last() {
                Some(frame) if frame.is_lua() && func >= frame.base as usize => {
                    error.at_register((func - frame.base as usize) as u32)
                }
                _ => error,
            });
        };
        self.ensure_stack(self.top + 2);
        self.stack.copy_within(func..self.top, func + 1);
        self.top += 1;
        self.stack[func] = Value::Function(id);
        Ok(id)
    }

    #[inline]
    pub(crate) fn enter_lua(
        &mut self,
        func: usize,
        id: FuncId,
        proto_id: u32,
        results: i32,
    ) -> Result<()> {
        if self.frames.len() >= MAX_FRAMES {
            return Err(Error::message("stack overflow"));
        }
        let proto = &self.heap.protos.items[proto_id as usize];
        let params = proto.params as usize;
        let max_stack = proto.max_stack as usize;
        let varargs = proto.varargs;
        if self.stack.len() < self.top + FRAME_ROOM * 2 + params {
            self.grow_stack(self.top + FRAME_ROOM * 2 + params)?;
        }
        let base = if varargs == Varargs::No {
            // Surplus arguments are covered by registers.
            self.top = self.top.min(func + 1 + params);
            func + 1
        } else {
            self.adjust_varargs(func, params, varargs)
        };
        let top = base + max_stack;
        if self.top < top {
            self.stack[self.top..top].fill(Value::Nil);
        }
        self.frames.push(Frame {
            func: func as u32,
            base: base as u32,
            top: top as u32,
            closure: id,
            proto: proto_id,
            pc: 0,
            results,
            tail_calls: 0,
        });
        Ok(())
    }

    #[cold]
    fn grow_stack(&mut self, len: usize) -> Result<()> {
        if len > MAX_SLOTS {
            return Err(Error::message("stack overflow"));
        }
        // The old slots are there until they are copied.
        let grown = len.max(self.stack.len() * 2);
        self.reserve_memory(grown * size_of::<Value>())?;
        self.ensure_stack(len);
        Ok(())
    }

    /// Copies the named parameters above the arguments, which stay below for `...`.
    fn adjust_varargs(&mut self, func: usize, params: usize, varargs: Varargs) -> usize {
        let first = func + 1;
        let given = self.top - first;
        while self.top < first + params {
            self.stack[self.top] = Value::Nil;
            self.top += 1;
        }
        let arg = match varargs {
            Varargs::Table => self.arg_table(first + params, given.saturating_sub(params)),
            _ => Value::Nil,
        };
        let base = self.top;
        for at in 0..params {
            self.stack[base + at] = std::mem::take(&mut self.stack[first + at]);
        }
        self.top = base + params;
        if matches!(varargs, Varargs::Table | Varargs::NilArg) {
            self.stack[self.top] = arg;
            self.top += 1;
        }
        base
    }

    fn arg_table(&mut self, from: usize, count: usize) -> Value {
        let table = self.heap.table(count, 1);
        for at in 0..count {
            let value = self.stack[from + at];
            self.heap.raw_set_index(table, at + 1, value);
        }
        self.set_field(table, "n", Value::Number(count as f64));
        Value::Table(table)
    }

    #[inline]
    pub(crate) fn run_native(
        &mut self,
        host: &mut dyn Host,
        func: usize,
        id: FuncId,
        native: Native,
        results: i32,
    ) -> Result<()> {
        if self.frames.len() >= MAX_FRAMES {
            return Err(Error::message("stack overflow"));
        }
        self.ensure_stack(self.top + 24);
        self.frames.push(Frame {
            func: func as u32,
            base: func as u32 + 1,
            top: self.top as u32,
            closure: id,
            proto: NO_PROTO,
            pc: 0,
            results,
            tail_calls: 0,
        });
        let args = Args {
            base: func + 1,
            count: self.top - func - 1,
        };
        let outcome = match native {
            Native::Builtin(function) => function(self, host, args),
            Native::Host(number) => {
                let mut call = Call::new(self, args);
                host.call(number, &mut call).map(|()| call.results())
            }
        };
        match outcome {
            Ok(count) => {
                self.frames.pop();
                self.move_results(func, self.top - count, count, results);
                Ok(())
            }
            Err(error) => Err(self.native_failed(error)),
        }
    }

    #[cold]
    fn native_failed(&mut self, error: Error) -> Error {
        if matches!(*error.0, ErrorKind::Yield(_)) {
            self.frames.pop();
            return error;
        }
        self.finish_error(error)
    }

    /// Moves `count` results to where the caller wants `wanted` of them (-1: all).
    #[inline]
    pub(crate) fn move_results(&mut self, to: usize, from: usize, count: usize, wanted: i32) {
        if wanted == 1 {
            self.stack[to] = if count == 0 {
                Value::Nil
            } else {
                self.stack[from]
            };
            self.top = to + 1;
            return;
        }
        if wanted < 0 {
            self.stack.copy_within(from..from + count, to);
            self.top = to + count;
            return;
        }
        let wanted = wanted as usize;
        let moved = count.min(wanted);
        self.stack.copy_within(from..from + moved, to);
        self.stack[to + moved..to + wanted].fill(Value::Nil);
        self.top = to + wanted;
    }

    /// Calls like [`Vm::call_at`] and catches errors; `Ok(Err(value))` is a caught one.
    pub(crate) fn protected_call(
        &mut self,
        host: &mut dyn Host,
        func: usize,
        results: i32,
        handler: Option<Value>,
    ) -> Result<std::result::Result<(), Value>> {
        let (depth, frames) = (self.depth, self.frames.len());
        let Err(error) = self.call_at(host, func, results) else {
            return Ok(Ok(()));
        };
        if !error.is_catchable() {
            return Err(error);
        }
        let error = self.finish_error(error);
        self.spend_on_failed();
        let mut value = self.error_value(error);
        if let Some(handler) = handler {
            value = self.call_handler(host, handler, value)?;
        }
        self.close_upvalues(func);
        self.frames.truncate(frames);
        self.depth = depth;
        Ok(Err(value))
    }

    /// Charges what the function that failed has run since it was last charged, at most.
    pub(crate) fn spend_on_failed(&mut self) {
        if let Some(frame) = self.frames.last()
            && frame.is_lua()
        {
            self.spend((frame.pc as usize).min(super::run::LONG_CODE));
        }
    }

    /// Runs the handler of `xpcall` while the failed frames are still there.
    fn call_handler(&mut self, host: &mut dyn Host, handler: Value, value: Value) -> Result<Value> {
        if let Some(frame) = self.frames.last()
            && !frame.is_lua()
        {
            self.top = self.top.max(frame.top as usize);
        }
        let mut room = 0;
        if self.frames.len() >= MAX_FRAMES {
            // Room for the handler, as Lua 5.1 leaves for errors of overflow.
            room = self.frames.len() - MAX_FRAMES + 16;
            let keep = self.frames.len() - room;
            self.frames.truncate(keep);
        }
        let _ = room;
        let Value::Function(_) = handler else {
            return Ok(self.str(b"error in error handling"));
        };
        match self.call_value(host, handler, &[value]) {
            Ok(result) => Ok(result),
            Err(error) if error.is_catchable() => Ok(self.str(b"error in error handling")),
            Err(error) => Err(error),
        }
    }

    /// The value a caught error has in Lua.
    pub(crate) fn error_value(&mut self, error: Error) -> Value {
        match *error.0 {
            ErrorKind::Thrown(value) => value,
            ErrorKind::Memory => self.str(b"not enough memory"),
            ErrorKind::Message(text)
            | ErrorKind::PatternError(text)
            | ErrorKind::Interrupted(text) => self.str(text.as_bytes()),
            ErrorKind::Type { .. } | ErrorKind::Yield(_) => Value::Nil,
        }
    }

    /// The upvalue for a stack place of the running coroutine.
    pub(crate) fn capture(&mut self, place: u32) -> u32 {
        match self.open.binary_search_by_key(&place, |(at, _)| *at) {
            Ok(found) => self.open[found].1,
            Err(at) => {
                let upval = self.heap.upvalue(Upvalue::Open {
                    thread: self.current,
                    at: place,
                });
                self.open.insert(at, (place, upval));
                upval
            }
        }
    }

    /// Detaches upvalues from stack places at and above `from`.
    #[inline]
    pub(crate) fn close_upvalues(&mut self, from: usize) {
        while let Some(&(place, upval)) = self.open.last()
            && place as usize >= from
        {
            self.open.pop();
            let value = self.stack[place as usize];
            self.heap.upvals.items[upval as usize].value = Upvalue::Closed(value);
            self.mark_upvalue_again(upval);
        }
    }

    pub(crate) fn upvalue(&self, upval: u32) -> Value {
        match self.heap.upvals.items[upval as usize].value {
            Upvalue::Closed(value) => value,
            Upvalue::Open { thread, at } if thread == self.current => self.stack[at as usize],
            Upvalue::Open { thread, at } => {
                self.heap.threads.items[thread.index()].stack[at as usize]
            }
        }
    }

    pub(crate) fn set_upvalue(&mut self, upval: u32, value: Value) {
        match &mut self.heap.upvals.items[upval as usize].value {
            Upvalue::Closed(old) => {
                *old = value;
                self.mark_upvalue_again(upval);
            }
            Upvalue::Open { thread, at } if *thread == self.current => {
                self.stack[*at as usize] = value;
            }
            Upvalue::Open { thread, at } => {
                let (thread, at) = (*thread, *at);
                self.heap.threads.items[thread.index()].stack[at as usize] = value;
                self.mark_again(value);
            }
        }
    }
}
