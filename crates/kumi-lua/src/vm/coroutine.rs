//! Coroutines: a stack and frames of their own, swapped with the machine's while they run.

use super::run::Exit;
use super::{Error, ErrorKind, FRAME_ROOM, Frame, Result, Vm};
use crate::base::value::{ThreadId, Value};
use crate::vm::heap::{block_bytes, color};
use crate::vm::host::Host;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// Created or yielded.
    Suspended,
    Running,
    /// It resumed another coroutine.
    Normal,
    Dead,
}

/// A coroutine that is not running, or the shell of the one that is.
#[derive(Debug)]
pub(crate) struct Coroutine {
    pub(crate) stack: Vec<Value>,
    pub(crate) top: usize,
    pub(crate) frames: Vec<Frame>,
    pub(crate) open: Vec<(u32, u32)>,
    pub(crate) status: Status,
    pub(crate) mark: u8,
    /// Bytes that the heap accounts for it.
    pub(crate) accounted: usize,
}

impl Coroutine {
    pub(crate) fn main() -> Coroutine {
        Coroutine {
            stack: Vec::new(),
            top: 0,
            frames: Vec::new(),
            open: Vec::new(),
            status: Status::Running,
            mark: color::FIXED,
            accounted: 0,
        }
    }

    /// Bytes that it takes, with the blocks of its stack and frames.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Coroutine>()
            + block_bytes(self.stack.capacity() * size_of::<Value>())
            + block_bytes(self.frames.capacity() * size_of::<Frame>())
            + block_bytes(self.open.capacity() * size_of::<(u32, u32)>())
    }
}

impl Vm {
    /// Makes a coroutine that will call a Lua function.
    pub(crate) fn new_coroutine(&mut self, function: Value) -> ThreadId {
        let mut stack = vec![Value::Nil; 16];
        stack[0] = function;
        self.heap.thread(Coroutine {
            stack,
            top: 1,
            frames: Vec::new(),
            open: Vec::new(),
            status: Status::Suspended,
            mark: 0,
            accounted: 0,
        })
    }

    /// Puts the machine's stack and frames back into the coroutine that they belong to, and accounts for them. Those of the
    /// one that runs are not in the account as they grow, except for its stack.
    fn park(&mut self, thread: ThreadId) {
        self.swap_with(thread);
        let coroutine = &mut self.heap.threads.items[thread.index()];
        let bytes = coroutine.bytes();
        let before = std::mem::replace(&mut coroutine.accounted, bytes);
        self.heap.bytes = self.heap.bytes.saturating_sub(before) + bytes;
    }

    fn swap_with(&mut self, thread: ThreadId) {
        let other = &mut self.heap.threads.items[thread.index()];
        std::mem::swap(&mut self.stack, &mut other.stack);
        std::mem::swap(&mut self.top, &mut other.top);
        std::mem::swap(&mut self.frames, &mut other.frames);
        std::mem::swap(&mut self.open, &mut other.open);
    }

    /// Resumes a coroutine with arguments. Its yielded or returned values, or `Err(value)` of an error in it.
    pub(crate) fn resume(
        &mut self,
        host: &mut dyn Host,
        thread: ThreadId,
        args: &[Value],
    ) -> Result<std::result::Result<Vec<Value>, Value>> {
        match self.heap.threads.items[thread.index()].status {
            Status::Suspended => {}
            Status::Dead => return Ok(Err(self.str(b"cannot resume dead coroutine"))),
            Status::Running | Status::Normal => {
                return Ok(Err(self.str(b"cannot resume non-suspended coroutine")));
            }
        }
        if self.depth >= super::MAX_NATIVE_DEPTH || super::stack_address() < self.stack_floor {
            return Ok(Err(self.str(b"C stack overflow")));
        }
        let resumer = self.current;
        let (depth, yield_depth) = (self.depth, self.yield_depth);
        self.heap.threads.items[resumer.index()].status = Status::Normal;
        // The resumer's state is kept in its own slot, so that the collector and upvalues find it there.
        self.park(resumer);
        self.swap_with(thread);
        self.resumers.push(resumer);
        self.current = thread;
        self.heap.threads.items[thread.index()].status = Status::Running;
        self.depth += 1;
        self.yield_depth = self.depth;

        let outcome = self.run_coroutine(host, args);

        let result = match outcome {
            Ok(Exit::Yielded(count)) => {
                let values = self.stack[self.top - count..self.top].to_vec();
                self.top -= count;
                Ok(Ok((values, Status::Suspended)))
            }
            Ok(Exit::Returned) => {
                let values = self.stack[0..self.top].to_vec();
                Ok(Ok((values, Status::Dead)))
            }
            Err(error) if error.is_catchable() => {
                let error = self.finish_error(error);
                self.spend_on_failed();
                Ok(Err(self.error_value(error)))
            }
            Err(error) => Err(error),
        };
        let status = match &result {
            Ok(Ok((_, status))) => *status,
            _ => Status::Dead,
        };
        if status == Status::Dead {
            self.close_upvalues(0);
            self.frames.clear();
        }
        self.park(thread);
        self.resumers.pop();
        self.current = resumer;
        self.swap_with(resumer);
        self.depth = depth;
        self.yield_depth = yield_depth;
        self.heap.threads.items[thread.index()].status = status;
        self.heap.threads.items[resumer.index()].status = Status::Running;
        self.mark_thread_again(thread);
        Ok(match result? {
            Ok((values, _)) => Ok(values),
            Err(value) => Err(value),
        })
    }

    fn run_coroutine(&mut self, host: &mut dyn Host, args: &[Value]) -> Result<Exit> {
        if self.frames.is_empty() {
            self.ensure_stack(args.len() + FRAME_ROOM);
            self.stack[1..1 + args.len()].copy_from_slice(args);
            self.top = 1 + args.len();
            if self.precall(host, 0, -1)? {
                return self.execute_from(host, 1);
            }
            return Ok(Exit::Returned);
        }
        // The yield was a call of the topmost frame: its results are the arguments.
        let frame = *self
            .frames
            .last()
            .expect("a coroutine that yielded has a frame");
        let call = self.body(frame.proto).code[frame.pc as usize - 1];
        let func = frame.base as usize + call.a as usize;
        let wanted = if call.op == crate::base::proto::Op::TailCall {
            -1
        } else {
            call.c as i32 - 1
        };
        self.ensure_stack(func + args.len() + FRAME_ROOM);
        let from = frame.top.max(func as u32) as usize + 1;
        self.ensure_stack(from + args.len() + FRAME_ROOM);
        self.stack[from..from + args.len()].copy_from_slice(args);
        self.move_results(func, from, args.len(), wanted);
        self.execute_from(host, 1)
    }

    /// The error that makes the run loop give up control, if the coroutine may yield here.
    pub(crate) fn yield_values(&mut self, count: usize) -> Error {
        if self.depth != self.yield_depth {
            return Error::message("attempt to yield across metamethod/C-call boundary");
        }
        Error::from(ErrorKind::Yield(count))
    }
}
