//! Names for error messages: which variable, field or upvalue a register held, read from the code before the failure.

use super::{Frame, Vm};
use crate::base::proto::{Body, CONSTANT, Instr, Op, Proto};
use crate::base::value::{Str, Value};

/// A kind ("local", "global", "field", "upvalue", "method") and a name.
pub(crate) type Name = (&'static str, Vec<u8>);

impl Vm {
    /// What the value in a register of a frame was called.
    pub(crate) fn variable_name(&self, frame: &Frame, register: usize) -> Option<Name> {
        if !frame.is_lua() {
            return None;
        }
        let proto = &self.heap.protos.items[frame.proto as usize];
        let pc = (frame.pc as usize).checked_sub(1)?;
        let body = self.body(frame.proto);
        let (kind, name) = find(proto, body, register, pc)?;
        let name = match name {
            Some(name) => self.heap.bytes_of(name).to_vec(),
            None => b"?".to_vec(),
        };
        Some((kind, name))
    }

    /// How the running function at a level was called, by its caller's instruction.
    pub(crate) fn function_name(&self, level: usize) -> Option<Name> {
        let at = self.level(level)??;
        let called = &self.frames[at];
        if called.tail_calls > 0 {
            return None;
        }
        let caller = self.frames.get(at.checked_sub(1)?)?;
        if !caller.is_lua() {
            return None;
        }
        let body = self.body(caller.proto);
        let instr = body.code.get((caller.pc as usize).checked_sub(1)?)?;
        match instr.op {
            Op::Call | Op::TailCall | Op::TForLoop => self.variable_name(caller, instr.a as usize),
            _ => None,
        }
    }
}

fn find(
    proto: &Proto,
    body: &Body,
    mut register: usize,
    pc: usize,
) -> Option<(&'static str, Option<Str>)> {
    loop {
        if let Some(name) = local_name(proto, register, pc) {
            return Some(("local", Some(name)));
        }
        let instr = last_setter(body, register, pc)?;
        let constants = &body.constants;
        let constant = |operand: u32| match constants.get(operand as usize) {
            Some(Value::Str(s)) => Some(*s),
            _ => None,
        };
        let key = |operand: u32| {
            if operand & CONSTANT != 0 {
                constant(operand & !CONSTANT)
            } else {
                None
            }
        };
        return match instr.op {
            Op::GetGlobal => Some(("global", constant(instr.c))),
            Op::Move if (instr.b as usize) < instr.a as usize => {
                register = instr.b as usize;
                continue;
            }
            Op::GetTable => Some(("field", key(instr.c))),
            Op::GetUpval => {
                let name = proto.upvals.get(instr.b as usize).map(|u| u.name);
                Some(("upvalue", name))
            }
            Op::SelfCall => Some(("method", key(instr.c))),
            _ => None,
        };
    }
}

/// The variable that lives in a register at an instruction.
fn local_name(proto: &Proto, register: usize, pc: usize) -> Option<Str> {
    proto
        .locals
        .iter()
        .take_while(|local| local.start as usize <= pc)
        .filter(|local| pc < local.end as usize)
        .nth(register)
        .map(|local| local.name)
}

/// The last instruction before `end` that may have set the register, following forward jumps.
fn last_setter(body: &Body, register: usize, end: usize) -> Option<Instr> {
    let mut found = None;
    let mut pc = 0;
    while pc < end {
        let instr = *body.code.get(pc)?;
        let a = instr.a as usize;
        let sets = match instr.op {
            Op::LoadNil => a <= register && register <= instr.b as usize,
            Op::TForLoop => register >= a + 2,
            Op::Call | Op::TailCall => register >= a,
            Op::SelfCall => register == a || register == a + 1,
            Op::Move
            | Op::LoadK
            | Op::LoadBool
            | Op::GetUpval
            | Op::GetGlobal
            | Op::GetTable
            | Op::NewTable
            | Op::Add
            | Op::Sub
            | Op::Mul
            | Op::Div
            | Op::Mod
            | Op::Pow
            | Op::Unm
            | Op::Not
            | Op::Len
            | Op::Concat
            | Op::Test
            | Op::TestSet
            | Op::ForLoop
            | Op::ForPrep
            | Op::Vararg
            | Op::Closure => register == a,
            _ => false,
        };
        if sets {
            found = Some(instr);
        }
        if matches!(instr.op, Op::Jmp | Op::ForLoop | Op::ForPrep) {
            let target = pc as i64 + 1 + i64::from(instr.jump());
            if target > pc as i64 && target <= end as i64 {
                pc = target as usize;
                continue;
            }
        }
        pc += 1;
    }
    found
}
