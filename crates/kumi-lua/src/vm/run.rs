//! The loop that runs instructions.
//!
//! Instructions are charged where the loop goes back, calls or returns, by how far it came since. A body of more than
//! [`LONG_CODE`] instructions is run by a loop that also charges in between, because it may have no such place.
//!
//! The body of the running function is moved out of its prototype while the loop works on it; `Vm::body` finds it for
//! error messages. `pc` is saved in the frame before anything that can fail or call.

use super::arith::compute;
use super::{CALL_COST, Error, ErrorKind, Event, NO_PROTO, Result, Vm};
use crate::base::proto::{Body, CONSTANT, FIELDS_PER_FLUSH, Op};
use crate::base::value::Value;
use crate::vm::heap::{Closure, LARGE, LuaClosure};
use crate::vm::host::Host;

/// Instructions of a body that are charged only where it goes back, calls or returns.
pub(super) const LONG_CODE: usize = 1 << 14;
/// Instructions of a longer body that are charged at once.
const WINDOW: usize = 1024;

/// Why the loop ended without an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The frame it was entered with returned.
    Returned,
    /// The coroutine yields this many values from the top.
    Yielded(usize),
}

impl Vm {
    /// Runs the topmost frame to its return.
    pub(crate) fn execute(&mut self, host: &mut dyn Host) -> Result<Exit> {
        let entry = self.frames.len();
        self.execute_from(host, entry)
    }

    /// Runs until the frame number `entry` has returned.
    pub(crate) fn execute_from(&mut self, host: &mut dyn Host, entry: usize) -> Result<Exit> {
        // The loop that called this one, if any, has a body loaded; it finds it again afterwards.
        let outer = self.loaded.proto;
        let outcome = loop {
            let long = self
                .frames
                .last()
                .is_some_and(|frame| frame.is_lua() && self.is_long(frame.proto));
            let outcome = if long {
                self.run::<true>(host, entry)
            } else {
                self.run::<false>(host, entry)
            };
            match outcome {
                Ok(None) => {}
                Ok(Some(exit)) => break Ok(exit),
                Err(error) => break Err(error),
            }
        };
        let outcome = match outcome {
            Ok(exit) => Ok(exit),
            Err(error) => match *error.0 {
                ErrorKind::Yield(count) => Ok(Exit::Yielded(count)),
                _ => Err(self.finish_error(error)),
            },
        };
        self.load(outer);
        outcome
    }

    /// Moves the body of a prototype to where the loop reads it, and the one that was there back.
    #[inline]
    fn load(&mut self, proto: u32) {
        if self.loaded.proto == proto {
            return;
        }
        if self.loaded.proto != NO_PROTO {
            self.heap.protos.items[self.loaded.proto as usize].body =
                std::mem::take(&mut self.loaded.body);
        }
        if proto != NO_PROTO {
            self.loaded.body = std::mem::take(&mut self.heap.protos.items[proto as usize].body);
        }
        self.loaded.proto = proto;
    }

    /// The body of a prototype, wherever it is.
    pub(crate) fn body(&self, proto: u32) -> &Body {
        if self.loaded.proto == proto {
            &self.loaded.body
        } else {
            &self.heap.protos.items[proto as usize].body
        }
    }

    fn is_long(&self, proto: u32) -> bool {
        self.body(proto).code.len() > LONG_CODE
    }

    /// Runs bodies that are long, or those that are not; `None` when it is the turn of the other kind.
    fn run<const LONG: bool>(&mut self, host: &mut dyn Host, entry: usize) -> Result<Option<Exit>> {
        'frame: loop {
            let frame = *self
                .frames
                .last()
                .expect("the loop runs while there is a frame");
            self.load(frame.proto);
            if (self.loaded.body.code.len() > LONG_CODE) != LONG {
                return Ok(None);
            }
            let base = frame.base as usize;
            let mut pc = frame.pc as usize;
            // Instructions before this one are charged.
            let mut paid = pc;

            macro_rules! save {
                () => {
                    if let Some(frame) = self.frames.last_mut() {
                        frame.pc = pc as u32;
                    }
                };
            }
            macro_rules! reg {
                ($at:expr) => {
                    self.stack[base + $at as usize]
                };
            }
            macro_rules! rk {
                ($operand:expr) => {{
                    let operand = $operand as u32;
                    if operand & CONSTANT != 0 {
                        self.loaded.body.constants[(operand & !CONSTANT) as usize]
                    } else {
                        reg!(operand)
                    }
                }};
            }
            macro_rules! arith {
                ($i:expr, $op:expr) => {{
                    let (x, y) = (rk!($i.b), rk!($i.c));
                    let result = if let (Value::Number(x), Value::Number(y)) = (x, y) {
                        Value::Number(compute($op, x, y))
                    } else {
                        save!();
                        self.arith_slow(host, $op, (x, y), ($i.b as u32, $i.c))?
                    };
                    reg!($i.a) = result;
                }};
            }
            macro_rules! burn {
                ($cost:expr) => {
                    self.fuel -= $cost as i64;
                    if self.fuel < 0 {
                        save!();
                        self.call_hook(host)?;
                    }
                };
            }
            macro_rules! jump {
                ($i:expr) => {{
                    let distance = $i.jump();
                    let from = pc;
                    pc = (pc as i64 + i64::from(distance)) as usize;
                    if distance < 0 {
                        let passed = from - paid;
                        paid = pc;
                        burn!(passed);
                    }
                }};
            }
            macro_rules! condition {
                ($holds:expr) => {
                    if $holds {
                        let next = self.loaded.body.code[pc];
                        pc += 1;
                        jump!(next);
                    } else {
                        pc += 1;
                    }
                };
            }
            macro_rules! collect {
                () => {
                    if self.heap.bytes >= self.heap.threshold {
                        save!();
                        self.collect_step(host)?;
                    }
                };
            }

            loop {
                if LONG && pc - paid >= WINDOW {
                    paid = pc;
                    burn!(WINDOW);
                }
                let i = self.loaded.body.code[pc];
                pc += 1;
                match i.op {
                    Op::Move => reg!(i.a) = reg!(i.b),
                    Op::LoadK => reg!(i.a) = self.loaded.body.constants[i.c as usize],
                    Op::LoadBool => {
                        reg!(i.a) = Value::Bool(i.b != 0);
                        if i.c != 0 {
                            pc += 1;
                        }
                    }
                    Op::LoadNil => {
                        self.stack[base + i.a as usize..=base + i.b as usize].fill(Value::Nil);
                    }
                    Op::GetUpval => {
                        let upval = self.upvalue_of(frame.closure, i.b as usize);
                        reg!(i.a) = self.upvalue(upval);
                    }
                    Op::GetGlobal => {
                        let key = self.loaded.body.constants[i.c as usize];
                        let env = self.heap.funcs.items[frame.closure.index()].env;
                        let found = self.heap.at(env).get(key);
                        reg!(i.a) = if found.is_nil() {
                            save!();
                            self.index(host, Value::Table(env), key)?
                        } else {
                            found
                        };
                    }
                    Op::GetTable => {
                        let object = reg!(i.b);
                        let key = rk!(i.c);
                        let found = match (object, key) {
                            (Value::Table(id), Value::Str(s)) if !s.is_long() => {
                                self.heap.at(id).get_str(s)
                            }
                            (Value::Table(id), Value::Number(n)) => self.heap.at(id).get_number(n),
                            _ => Value::Nil,
                        };
                        reg!(i.a) = if found.is_nil() {
                            save!();
                            self.index(host, object, key)
                                .map_err(|error| error.at_register(u32::from(i.b)))?
                        } else {
                            found
                        };
                    }
                    Op::SetGlobal => {
                        let key = self.loaded.body.constants[i.c as usize];
                        let env = self.heap.funcs.items[frame.closure.index()].env;
                        let value = reg!(i.a);
                        save!();
                        self.set_index(host, Value::Table(env), key, value)?;
                        collect!();
                    }
                    Op::SetUpval => {
                        let upval = self.upvalue_of(frame.closure, i.b as usize);
                        let value = reg!(i.a);
                        self.set_upvalue(upval, value);
                    }
                    Op::SetTable => {
                        let object = reg!(i.a);
                        let (key, value) = (rk!(i.b), rk!(i.c));
                        if !self.set_fast(object, key, value) {
                            save!();
                            self.set_index(host, object, key, value)
                                .map_err(|error| error.at_register(u32::from(i.a)))?;
                            collect!();
                        }
                    }
                    Op::NewTable => {
                        let table = self.heap.table(i.b as usize, i.c as usize);
                        reg!(i.a) = Value::Table(table);
                        collect!();
                    }
                    Op::SelfCall => {
                        let object = reg!(i.b);
                        let key = rk!(i.c);
                        reg!(i.a + 1) = object;
                        let found = match (object, key) {
                            (Value::Table(id), Value::Str(s)) if !s.is_long() => {
                                self.heap.at(id).get_str(s)
                            }
                            _ => Value::Nil,
                        };
                        reg!(i.a) = if found.is_nil() {
                            save!();
                            self.index(host, object, key)
                                .map_err(|error| error.at_register(u32::from(i.b)))?
                        } else {
                            found
                        };
                    }
                    Op::Add => arith!(i, Op::Add),
                    Op::Sub => arith!(i, Op::Sub),
                    Op::Mul => arith!(i, Op::Mul),
                    Op::Div => arith!(i, Op::Div),
                    Op::Mod => arith!(i, Op::Mod),
                    Op::Pow => arith!(i, Op::Pow),
                    Op::Unm => {
                        let value = reg!(i.b);
                        reg!(i.a) = if let Value::Number(n) = value {
                            Value::Number(-n)
                        } else {
                            save!();
                            let operand = u32::from(i.b);
                            self.arith_slow(host, Op::Unm, (value, value), (operand, operand))?
                        };
                    }
                    Op::Not => reg!(i.a) = Value::Bool(reg!(i.b).is_falsy()),
                    Op::Len => {
                        reg!(i.a) = match reg!(i.b) {
                            Value::Table(id) => Value::Number(self.border(id) as f64),
                            Value::Str(s) => Value::Number(self.heap.bytes_of(s).len() as f64),
                            other => {
                                save!();
                                self.len_slow(host, other)
                                    .map_err(|error| error.at_register(u32::from(i.b)))?
                            }
                        };
                        burn!(0);
                    }
                    Op::Concat => {
                        save!();
                        let result =
                            self.concat(host, base, base + i.b as usize, base + i.c as usize)?;
                        reg!(i.a) = result;
                        collect!();
                    }
                    Op::Jmp => jump!(i),
                    Op::Eq => {
                        let (x, y) = (rk!(i.b), rk!(i.c));
                        save!();
                        let equal = self.equal(host, x, y)?;
                        condition!(equal == (i.a != 0));
                    }
                    Op::Lt => {
                        let (x, y) = (rk!(i.b), rk!(i.c));
                        let less = if let (Value::Number(x), Value::Number(y)) = (x, y) {
                            x < y
                        } else {
                            save!();
                            self.less_than(host, x, y)?
                        };
                        condition!(less == (i.a != 0));
                    }
                    Op::Le => {
                        let (x, y) = (rk!(i.b), rk!(i.c));
                        let less = if let (Value::Number(x), Value::Number(y)) = (x, y) {
                            x <= y
                        } else {
                            save!();
                            self.less_equal(host, x, y)?
                        };
                        condition!(less == (i.a != 0));
                    }
                    Op::Test => {
                        let truth = !reg!(i.a).is_falsy();
                        condition!(truth == (i.c != 0));
                    }
                    Op::TestSet => {
                        let value = reg!(i.b);
                        let keeps = value.is_falsy() != (i.c != 0);
                        if keeps {
                            reg!(i.a) = value;
                        }
                        condition!(keeps);
                    }
                    Op::Call => {
                        let func = base + i.a as usize;
                        if i.b != 0 {
                            self.top = func + i.b as usize;
                        }
                        let results = i.c as i32 - 1;
                        burn!(CALL_COST as usize + (pc - paid));
                        paid = pc;
                        save!();
                        if let Value::Function(id) = self.stack[func]
                            && let Closure::Lua(lua) = &self.heap.funcs.items[id.index()].closure
                        {
                            let proto = lua.proto;
                            self.enter_lua(func, id, proto, results)?;
                            continue 'frame;
                        }
                        if self.precall(host, func, results)? {
                            continue 'frame;
                        }
                        collect!();
                    }
                    Op::TailCall => {
                        let func = base + i.a as usize;
                        if i.b != 0 {
                            self.top = func + i.b as usize;
                        }
                        burn!(CALL_COST as usize + (pc - paid));
                        paid = pc;
                        save!();
                        if self.precall(host, func, -1)? {
                            self.replace_frame();
                            continue 'frame;
                        }
                        collect!();
                    }
                    Op::Return => {
                        let from = base + i.a as usize;
                        let count = if i.b != 0 {
                            i.b as usize - 1
                        } else {
                            self.top - from
                        };
                        burn!(pc - paid + count / 16);
                        if !self.open.is_empty() {
                            self.close_upvalues(base);
                        }
                        self.frames.pop();
                        self.move_results(frame.func as usize, from, count, frame.results);
                        if self.frames.len() < entry {
                            return Ok(Some(Exit::Returned));
                        }
                        continue 'frame;
                    }
                    Op::ForLoop => {
                        if let (Value::Number(step), Value::Number(index), Value::Number(limit)) =
                            (reg!(i.a + 2), reg!(i.a), reg!(i.a + 1))
                        {
                            let index = index + step;
                            if if step > 0.0 {
                                index <= limit
                            } else {
                                limit <= index
                            } {
                                reg!(i.a) = Value::Number(index);
                                reg!(i.a + 3) = Value::Number(index);
                                jump!(i);
                            }
                        }
                    }
                    Op::ForPrep => {
                        save!();
                        self.prepare_for(host, base + i.a as usize)?;
                        pc = (pc as i64 + i64::from(i.jump())) as usize;
                    }
                    Op::TForLoop => {
                        let at = base + i.a as usize;
                        self.stack.copy_within(at..at + 3, at + 3);
                        self.top = at + 6;
                        save!();
                        self.call_at(host, at + 3, i.c as i32)?;
                        if reg!(i.a + 3).is_nil() {
                            pc += 1;
                        } else {
                            reg!(i.a + 2) = reg!(i.a + 3);
                            let next = self.loaded.body.code[pc];
                            pc += 1;
                            jump!(next);
                        }
                        collect!();
                    }
                    Op::SetList => {
                        let at = base + i.a as usize;
                        let count = if i.b != 0 {
                            i.b as usize
                        } else {
                            self.top - at - 1
                        };
                        save!();
                        self.set_list(at, count, (i.c as usize - 1) * FIELDS_PER_FLUSH)?;
                        collect!();
                    }
                    Op::Close => self.close_upvalues(base + i.a as usize),
                    Op::Closure => {
                        let child =
                            self.heap.protos.items[frame.proto as usize].children[i.c as usize];
                        reg!(i.a) = self.new_closure(frame.closure, base, child);
                        collect!();
                    }
                    Op::Vararg => {
                        let first = frame.func as usize + 1;
                        let params = self.heap.protos.items[frame.proto as usize].params as usize;
                        let given = (base - first).saturating_sub(params);
                        burn!(given / 4);
                        self.copy_varargs(
                            base + i.a as usize,
                            first + params,
                            given,
                            i.b as i32 - 1,
                        );
                    }
                }
            }
        }
    }

    #[inline]
    fn upvalue_of(&self, function: crate::base::value::FuncId, at: usize) -> u32 {
        match &self.heap.funcs.items[function.index()].closure {
            Closure::Lua(lua) => lua.upvals[at],
            Closure::Native(_) => 0,
        }
    }

    /// Replaces a value that is there, or appends to a plain table; false if the slow path must do it.
    #[inline]
    fn set_fast(&mut self, object: Value, key: Value, value: Value) -> bool {
        let Value::Table(id) = object else {
            return false;
        };
        let table = self.heap.at_mut(id);
        if table.readonly {
            return false;
        }
        let done = match key {
            Value::Str(s) if !s.is_long() => table.replace_str(s, value),
            Value::Number(n) => table.replace_number(n, value),
            _ => false,
        };
        if done {
            self.heap.barrier(id);
        }
        done
    }

    /// Turns a frame that was just pushed into the continuation of the one below it.
    fn replace_frame(&mut self) {
        let Some(called) = self.frames.pop() else {
            return;
        };
        let Some(caller) = self.frames.last().copied() else {
            return;
        };
        if !self.open.is_empty() {
            self.close_upvalues(caller.base as usize);
        }
        let end = called.top as usize;
        self.stack
            .copy_within(called.func as usize..end, caller.func as usize);
        let shift = called.func - caller.func;
        if let Some(frame) = self.frames.last_mut() {
            *frame = super::Frame {
                func: caller.func,
                base: called.base - shift,
                top: called.top - shift,
                results: caller.results,
                tail_calls: caller.tail_calls.saturating_add(1),
                ..called
            };
        }
    }

    #[inline(never)]
    fn prepare_for(&mut self, host: &mut dyn Host, at: usize) -> Result<()> {
        let mut numbers = [0.0; 3];
        for (place, what) in ["initial value", "limit", "step"].iter().enumerate() {
            let Some(number) = self.number_of(self.stack[at + place]) else {
                return Err(Error::message(format!("'for' {what} must be a number")));
            };
            numbers[place] = number;
        }
        self.stack[at] = Value::Number(numbers[0] - numbers[2]);
        self.stack[at + 1] = Value::Number(numbers[1]);
        self.stack[at + 2] = Value::Number(numbers[2]);
        // Long strings were read as numbers.
        self.charge(host, 0)
    }

    #[inline(never)]
    fn set_list(&mut self, at: usize, count: usize, stored: usize) -> Result<()> {
        let Value::Table(table) = self.stack[at] else {
            return Ok(());
        };
        let last = stored + count;
        if last > self.heap.at(table).array().len() {
            if last > LARGE / size_of::<Value>() {
                self.reserve_memory(last * size_of::<Value>())?;
            }
            let t = self.heap.at_mut(table);
            let before = t.bytes();
            t.grow_array(last);
            let after = t.bytes();
            self.heap.bytes = self.heap.bytes + after - before;
        }
        // From the last to the first, as Lua 5.1 stores them.
        for offset in (1..=count).rev() {
            let value = self.stack[at + offset];
            self.heap.raw_set_index(table, stored + offset, value);
        }
        Ok(())
    }

    #[inline(never)]
    fn new_closure(
        &mut self,
        parent: crate::base::value::FuncId,
        base: usize,
        child: u32,
    ) -> Value {
        let count = self.heap.protos.items[child as usize].upvals.len();
        let mut upvals = Vec::with_capacity(count);
        for at in 0..count {
            let source = &self.heap.protos.items[child as usize].upvals[at];
            let place = source.at;
            let upval = if source.in_stack {
                self.capture((base + place as usize) as u32)
            } else {
                self.upvalue_of(parent, place as usize)
            };
            upvals.push(upval);
        }
        let env = self.heap.funcs.items[parent.index()].env;
        let closure = Closure::Lua(LuaClosure {
            proto: child,
            upvals: upvals.into(),
        });
        Value::Function(self.heap.function(closure, env))
    }

    #[inline(never)]
    fn copy_varargs(&mut self, to: usize, from: usize, given: usize, wanted: i32) {
        let wanted = if wanted < 0 {
            self.ensure_stack(to + given + super::FRAME_ROOM);
            self.top = to + given;
            given
        } else {
            wanted as usize
        };
        let copied = given.min(wanted);
        self.stack.copy_within(from..from + copied, to);
        self.stack[to + copied..to + wanted].fill(Value::Nil);
    }

    /// Whether a table has a metamethod of its own.
    pub(crate) fn has_event(&mut self, value: Value, event: Event) -> bool {
        !self.event(value, event).is_nil()
    }
}
