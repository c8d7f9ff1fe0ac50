//! The collector: incremental mark and sweep over the slabs of the heap.
//!
//! A cycle starts when the account of bytes has doubled since the last one. It then advances by one step for every
//! [`STEP_BYTES`] the script allocates, and a step handles about four times as many bytes. A step is at most one object
//! longer than that, so the longest pause is the marking of the largest table, or of all stacks at the atomic end of
//! marking. Steps run between instructions of the run loop only.
//!
//! The memory limit is for what is allocated: live objects, garbage that is not swept yet, free slots, and buffers that
//! natives hold. It is looked at before something large grows, and at least once for every [`CHECK_BYTES`].
//!
//! While marking, a table that is written after it was marked is marked again at the end (`Heap::barrier`); a value put
//! into an upvalue is marked at once. There are no finalizers and no weak tables: `__gc` and `__mode` have no effect.

use super::{Error, ErrorKind, Result, Vm};
use crate::base::table::Table;
use crate::base::value::{Str, TableId, ThreadId, Value};
use crate::vm::heap::{
    CHECK_BYTES, Closure, TABLE_OVERHEAD, UPVAL_OVERHEAD, Upvalue, color, func_bytes,
};
use crate::vm::host::Host;

/// Bytes a new state may hold before its first cycle.
pub(crate) const FIRST_THRESHOLD: usize = 256 * 1024;
/// Bytes allocated between two steps of a cycle.
const STEP_BYTES: usize = 32 * 1024;
/// Bytes a step marks or sweeps.
const STEP_WORK: usize = STEP_BYTES * 4;
/// What looking at one slot costs in a sweep, in bytes of work.
const SWEEP_COST: usize = 32;
/// Freed bytes after which the host is told, so that the allocator gives them back.
const TOLD_BYTES: usize = 64 << 20;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Idle,
    Mark,
    /// Sweeping the slab with this number, from `at`.
    Sweep(u8),
}

#[derive(Debug, Default)]
pub(crate) struct Collector {
    phase: Phase,
    /// The account at which the next cycle starts.
    next_cycle: usize,
    at: usize,
    /// Prototypes to be marked; they are not values.
    gray_protos: Vec<u32>,
    /// `collectgarbage("stop")`
    pub(crate) stopped: bool,
}

impl Vm {
    /// Does one step of work, and fails if the memory limit is passed.
    #[cold]
    #[inline(never)]
    pub(crate) fn collect_step(&mut self, host: &mut dyn Host) -> Result<()> {
        if self.heap.demand() > self.memory_limit() {
            self.collect_all();
            self.heap.trim();
            self.tell_of_freed(host);
            // Little room would be used up at once, and the next collection takes as long.
            let limit = self.memory_limit();
            if self.heap.demand() > limit - limit / 32 {
                self.heap.threshold = self.heap.bytes + STEP_BYTES;
                return Err(Error::from(ErrorKind::Memory));
            }
            return Ok(());
        }
        if self.gc.stopped {
            self.heap.threshold = self.heap.bytes + STEP_BYTES;
            return Ok(());
        }
        if self.gc.phase != Phase::Idle || self.heap.bytes >= self.gc.next_cycle {
            self.step(STEP_WORK);
            if self.gc.phase == Phase::Idle {
                self.plan_cycle();
            }
            self.tell_of_freed(host);
        }
        self.set_threshold();
        Ok(())
    }

    fn plan_cycle(&mut self) {
        self.gc.next_cycle = (self.heap.bytes * 2).max(FIRST_THRESHOLD);
    }

    fn set_threshold(&mut self) {
        let bytes = self.heap.bytes;
        let next = if self.gc.phase == Phase::Idle {
            self.gc.next_cycle.min(bytes + CHECK_BYTES)
        } else {
            bytes + STEP_BYTES
        };
        let most = self.memory_limit().saturating_sub(self.heap.spare_bytes());
        self.heap.threshold = next.min(most.max(bytes).saturating_add(1));
    }

    /// Has the host give freed memory back if there is much of it.
    pub(crate) fn tell_of_freed(&mut self, host: &mut dyn Host) {
        if self.heap.freed >= TOLD_BYTES {
            self.heap.freed = 0;
            host.memory_freed();
        }
    }

    /// Finishes the running cycle, if any, and does a whole one.
    pub(crate) fn collect_all(&mut self) {
        self.spend(self.heap.bytes / 64);
        while self.gc.phase != Phase::Idle {
            self.step(usize::MAX);
        }
        self.step(1);
        while self.gc.phase != Phase::Idle {
            self.step(usize::MAX);
        }
        self.plan_cycle();
        self.set_threshold();
    }

    /// True when the step ended a cycle.
    pub(crate) fn step_once(&mut self) -> bool {
        let phase = self.gc.phase;
        let done = self.step(STEP_WORK);
        // The beginning and the end of marking go through all stacks at once.
        let stacks = if self.gc.phase == phase {
            0
        } else {
            self.heap.bytes
        };
        self.spend((done + stacks) / 64);
        if self.gc.phase == Phase::Idle {
            self.plan_cycle();
        }
        self.set_threshold();
        self.gc.phase == Phase::Idle
    }

    /// Marks or sweeps about `work` bytes, at most to the end of the cycle; returns how many.
    fn step(&mut self, work: usize) -> usize {
        let mut total = 0_usize;
        loop {
            let done = match self.gc.phase {
                Phase::Idle => {
                    self.heap.marking = true;
                    self.heap.gray.clear();
                    self.heap.gray_again.clear();
                    self.gc.gray_protos.clear();
                    self.mark_roots();
                    self.gc.phase = Phase::Mark;
                    SWEEP_COST
                }
                Phase::Mark => match self.propagate() {
                    Some(cost) => cost,
                    None => {
                        self.finish_marking();
                        self.gc.phase = Phase::Sweep(0);
                        self.gc.at = 0;
                        SWEEP_COST
                    }
                },
                Phase::Sweep(slab) => self.sweep(slab),
            };
            total = total.saturating_add(done);
            if total >= work || self.gc.phase == Phase::Idle {
                return total;
            }
        }
    }

    fn mark_roots(&mut self) {
        self.mark(Value::Table(self.globals));
        for table in [self.other_globals, self.string_meta].into_iter().flatten() {
            self.mark(Value::Table(table));
        }
        for at in 0..self.pinned.len() {
            if let Some(value) = self.pinned[at] {
                self.mark(value);
            }
        }
        self.mark(Value::Thread(self.current));
        for at in 0..self.resumers.len() {
            self.mark(Value::Thread(self.resumers[at]));
        }
        self.mark_running();
        for at in 0..self.resumers.len() {
            self.traverse_thread(self.resumers[at]);
        }
    }

    /// Marks the stack in use, which changes without barriers.
    fn mark_running(&mut self) {
        let end = self.frames.last().map_or(0, |frame| frame.top as usize);
        let end = end.max(self.top).min(self.stack.len());
        for at in 0..end {
            self.mark(self.stack[at]);
        }
        for at in 0..self.frames.len() {
            self.mark(Value::Function(self.frames[at].closure));
        }
        for at in 0..self.open.len() {
            self.mark_upvalue(self.open[at].1);
        }
    }

    fn mark_string(&mut self, s: Str) {
        let entry = &mut self.heap.strings.items[s.index()];
        if entry.mark == self.heap.white {
            entry.mark = color::BLACK;
        }
    }

    fn mark(&mut self, value: Value) {
        let white = self.heap.white;
        let mark = match value {
            Value::Str(s) => return self.mark_string(s),
            Value::Table(id) => &mut self.heap.tables.items[id.index()].mark,
            Value::Function(id) => &mut self.heap.funcs.items[id.index()].mark,
            Value::UserData(id) => &mut self.heap.users.items[id.index()].mark,
            Value::Thread(id) => &mut self.heap.threads.items[id.index()].mark,
            _ => return,
        };
        if *mark == white {
            *mark = color::GRAY;
            self.heap.gray.push(value);
        }
    }

    fn mark_proto(&mut self, proto: u32) {
        let mark = &mut self.heap.protos.items[proto as usize].mark;
        if *mark == self.heap.white {
            *mark = color::GRAY;
            self.gc.gray_protos.push(proto);
        }
    }

    fn mark_upvalue(&mut self, upval: u32) {
        let entry = &mut self.heap.upvals.items[upval as usize];
        if entry.mark == self.heap.white {
            entry.mark = color::BLACK;
        }
        let value = match entry.value {
            Upvalue::Closed(value) => value,
            // The running stack is a root itself.
            Upvalue::Open { thread, .. } if thread == self.current => return,
            Upvalue::Open { thread, at } => {
                let stack = &self.heap.threads.items[thread.index()].stack;
                stack.get(at as usize).copied().unwrap_or_default()
            }
        };
        self.mark(value);
    }

    /// Keeps a value that was put into an upvalue during marking.
    pub(crate) fn mark_upvalue_again(&mut self, upval: u32) {
        if self.heap.marking
            && let Upvalue::Closed(value) = self.heap.upvals.items[upval as usize].value
        {
            self.mark(value);
        }
    }

    /// Keeps what a coroutine that ran during marking has in its stack.
    pub(crate) fn mark_thread_again(&mut self, thread: ThreadId) {
        if self.heap.marking {
            self.traverse_thread(thread);
        }
    }

    /// Keeps a value that was put into an object without a barrier of its own.
    pub(crate) fn mark_again(&mut self, value: Value) {
        if self.heap.marking {
            self.mark(value);
        }
    }

    /// Marks the contents of one object; its size, or nothing if no object is left.
    fn propagate(&mut self) -> Option<usize> {
        if let Some(proto) = self.gc.gray_protos.pop() {
            return Some(self.traverse_proto(proto));
        }
        match self.heap.gray.pop()? {
            Value::Table(id) => Some(self.traverse_table(id)),
            Value::Function(id) => Some(self.traverse_function(id.index())),
            Value::UserData(id) => {
                let user = &mut self.heap.users.items[id.index()];
                user.mark = color::BLACK;
                if let Some(meta) = user.meta {
                    self.mark(Value::Table(meta));
                }
                Some(SWEEP_COST)
            }
            Value::Thread(id) => Some(self.traverse_thread(id)),
            _ => Some(1),
        }
    }

    fn traverse_table(&mut self, id: TableId) -> usize {
        // The table is taken out, so that its contents can be read while others are marked. What stays in its place
        // is black, so that a reference to itself is not marked again.
        let mut table = std::mem::take(self.heap.at_mut(id));
        self.heap.at_mut(id).mark = color::BLACK;
        table.mark = color::BLACK;
        if let Some(meta) = table.meta {
            self.mark(Value::Table(meta));
        }
        for value in table.array() {
            self.mark(*value);
        }
        for (key, value) in table.hash_pairs() {
            self.mark(key);
            self.mark(value);
        }
        let cost = TABLE_OVERHEAD + table.bytes();
        *self.heap.at_mut(id) = table;
        cost
    }

    fn traverse_function(&mut self, at: usize) -> usize {
        self.heap.funcs.items[at].mark = color::BLACK;
        let env = self.heap.funcs.items[at].env;
        self.mark(Value::Table(env));
        let (proto, count) = match &self.heap.funcs.items[at].closure {
            Closure::Lua(lua) => (Some(lua.proto), lua.upvals.len()),
            Closure::Native(native) => (None, native.upvals.len()),
        };
        if let Some(proto) = proto {
            self.mark_proto(proto);
        }
        for upval in 0..count {
            match &self.heap.funcs.items[at].closure {
                Closure::Lua(lua) => {
                    let upval = lua.upvals[upval];
                    self.mark_upvalue(upval);
                }
                Closure::Native(native) => {
                    let value = native.upvals[upval];
                    self.mark(value);
                }
            }
        }
        TABLE_OVERHEAD + count * 16
    }

    fn traverse_proto(&mut self, at: u32) -> usize {
        let proto = &mut self.heap.protos.items[at as usize];
        proto.mark = color::BLACK;
        let strings = std::mem::take(&mut proto.strings);
        let children = std::mem::take(&mut proto.children);
        let locals: Vec<Str> = proto.locals.iter().map(|local| local.name).collect();
        let upvals: Vec<Str> = proto.upvals.iter().map(|upval| upval.name).collect();
        let source = proto.source;
        let cost = strings.len() * 16 + locals.len() * 16 + size_of::<crate::base::proto::Proto>();
        self.mark_string(source);
        for s in strings.iter().chain(&locals).chain(&upvals) {
            self.mark_string(*s);
        }
        for child in &children {
            self.mark_proto(*child);
        }
        let proto = &mut self.heap.protos.items[at as usize];
        proto.strings = strings;
        proto.children = children;
        cost
    }

    fn traverse_thread(&mut self, id: ThreadId) -> usize {
        let thread = &mut self.heap.threads.items[id.index()];
        if thread.mark != color::FIXED {
            thread.mark = color::BLACK;
        }
        let end = thread.frames.last().map_or(0, |frame| frame.top as usize);
        let end = end.max(thread.top).min(thread.stack.len());
        let cost = thread.bytes();
        for at in 0..end {
            let value = self.heap.threads.items[id.index()].stack[at];
            self.mark(value);
        }
        for at in 0..self.heap.threads.items[id.index()].frames.len() {
            let closure = self.heap.threads.items[id.index()].frames[at].closure;
            self.mark(Value::Function(closure));
        }
        for at in 0..self.heap.threads.items[id.index()].open.len() {
            let upval = self.heap.threads.items[id.index()].open[at].1;
            self.mark_upvalue(upval);
        }
        cost
    }

    /// The atomic end of marking.
    fn finish_marking(&mut self) {
        self.mark_roots();
        while self.propagate().is_some() {}
        while let Some(table) = self.heap.gray_again.pop() {
            self.traverse_table(table);
            while self.propagate().is_some() {}
        }
        self.heap.marking = false;
        self.heap.white ^= 1;
    }

    /// Sweeps a part of one slab; the work done.
    fn sweep(&mut self, slab: u8) -> usize {
        const BATCH: usize = 128;
        let dead = self.heap.white ^ 1;
        let from = self.gc.at;
        let len = match slab {
            0 => self.heap.strings.items.len(),
            1 => self.heap.tables.items.len(),
            2 => self.heap.funcs.items.len(),
            3 => self.heap.upvals.items.len(),
            4 => self.heap.protos.items.len(),
            5 => self.heap.users.items.len(),
            _ => self.heap.threads.items.len(),
        };
        let to = len.min(from + BATCH);
        for at in from..to {
            self.sweep_slot(slab, at, dead);
        }
        self.gc.at = to;
        if to == len {
            self.gc.at = 0;
            self.gc.phase = if slab == 6 {
                Phase::Idle
            } else {
                Phase::Sweep(slab + 1)
            };
        }
        (to - from + 1) * SWEEP_COST
    }

    fn sweep_slot(&mut self, slab: u8, at: usize, dead: u8) {
        let heap = &mut self.heap;
        let mark = match slab {
            0 => &mut heap.strings.items[at].mark,
            1 => &mut heap.tables.items[at].mark,
            2 => &mut heap.funcs.items[at].mark,
            3 => &mut heap.upvals.items[at].mark,
            4 => &mut heap.protos.items[at].mark,
            5 => &mut heap.users.items[at].mark,
            _ => &mut heap.threads.items[at].mark,
        };
        match *mark {
            color::FIXED | color::FREE => {}
            m if m == dead => {
                *mark = color::FREE;
                self.free(slab, at);
            }
            _ => *mark = heap.white,
        }
    }

    fn free(&mut self, slab: u8, at: usize) {
        let heap = &mut self.heap;
        let index = at as u32;
        match slab {
            0 => heap.free_string(index),
            1 => {
                let parts = heap.tables.items[at].bytes();
                heap.bytes -= TABLE_OVERHEAD + parts;
                heap.freed += parts;
                let table = &mut heap.tables.items[at];
                *table = Table::default();
                table.mark = color::FREE;
                heap.tables.free.push(index);
            }
            2 => {
                heap.bytes -= func_bytes(&heap.funcs.items[at].closure);
                match &mut heap.funcs.items[at].closure {
                    Closure::Lua(lua) => lua.upvals = Box::default(),
                    Closure::Native(native) => native.upvals = Vec::new(),
                }
                heap.funcs.free.push(index);
            }
            3 => {
                heap.bytes -= UPVAL_OVERHEAD;
                heap.upvals.items[at].value = Upvalue::Closed(Value::Nil);
                heap.upvals.free.push(index);
            }
            4 => {
                let proto = &mut heap.protos.items[at];
                heap.bytes -= proto.bytes();
                proto.body = crate::base::proto::Body::default();
                proto.strings = Box::default();
                proto.children = Box::default();
                proto.upvals = Box::default();
                proto.lines = Box::default();
                proto.locals = Box::default();
                heap.protos.free.push(index);
            }
            5 => {
                heap.bytes -= size_of::<crate::vm::heap::UserData>();
                heap.users.items[at].meta = None;
                heap.users.free.push(index);
            }
            _ => {
                let thread = &mut heap.threads.items[at];
                heap.bytes = heap.bytes.saturating_sub(thread.accounted);
                thread.accounted = 0;
                // Closures that outlive the coroutine keep its variables.
                for (place, upval) in std::mem::take(&mut thread.open) {
                    let entry = &mut heap.upvals.items[upval as usize];
                    if matches!(entry.value, Upvalue::Open { thread, at } if thread.0 == index && at == place)
                    {
                        entry.value = Upvalue::Closed(thread.stack[place as usize]);
                    }
                }
                thread.stack = Vec::new();
                thread.frames = Vec::new();
                heap.threads.free.push(index);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vm::host::Limits;

    /// A small heap is marked and swept in one step. The next cycle must not begin with the next allocation.
    #[test]
    fn a_cycle_that_ends_in_one_step_leaves_room_until_the_next() {
        let mut vm = Vm::new(Limits::default());
        for _ in 0..3 {
            vm.collect_step(&mut ()).expect("there is no limit");
        }
        assert_eq!(vm.gc.phase, Phase::Idle);
        assert!(vm.heap.threshold >= FIRST_THRESHOLD);
    }
}
