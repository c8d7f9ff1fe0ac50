//! The function being compiled: its instructions, registers, blocks, variables and constants.

use crate::base::proto::{Body, Instr, LocalVar, Proto, UpvalSource, Varargs};
use crate::base::value::{Str, Value};
use std::collections::HashMap;

/// The end of a list of jumps.
pub(crate) const NO_JUMP: i32 = -1;

/// What an expression is so far.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Void,
    Nil,
    True,
    False,
    Constant(usize),
    Number(f64),
    Local(u8),
    Upvalue(u8),
    Global(usize),
    /// Table register and key operand.
    Indexed(u8, u32),
    /// A comparison; its jump's position.
    Jump(i32),
    /// An instruction whose target register is still open.
    Relocatable(usize),
    /// In a register.
    Register(u8),
    Call(usize),
    Vararg(usize),
}

/// An expression with the jumps that leave it when it is true or false.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expr {
    pub(crate) kind: Kind,
    pub(crate) on_true: i32,
    pub(crate) on_false: i32,
}

impl Expr {
    pub(crate) fn new(kind: Kind) -> Expr {
        Expr {
            kind,
            on_true: NO_JUMP,
            on_false: NO_JUMP,
        }
    }

    pub(crate) fn has_jumps(&self) -> bool {
        self.on_true != self.on_false
    }

    pub(crate) fn is_numeral(&self) -> bool {
        matches!(self.kind, Kind::Number(_)) && self.on_true == NO_JUMP && self.on_false == NO_JUMP
    }

    pub(crate) fn is_multiple(&self) -> bool {
        matches!(self.kind, Kind::Call(_) | Kind::Vararg(_))
    }
}

/// A block of statements.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) breaks: i32,
    /// Active variables outside the block.
    pub(crate) active: usize,
    /// A variable of the block is an upvalue of some closure.
    pub(crate) captured: bool,
    pub(crate) is_loop: bool,
}

#[derive(PartialEq, Eq, Hash)]
pub(crate) enum ConstantKey {
    Nil,
    Bool(bool),
    Number(u64),
    Str(u32),
}

pub(crate) struct FuncState {
    pub(crate) code: Vec<Instr>,
    pub(crate) lines: Vec<u32>,
    pub(crate) constants: Vec<Value>,
    pub(crate) constant_index: HashMap<ConstantKey, usize>,
    pub(crate) children: Vec<u32>,
    pub(crate) upvals: Vec<UpvalSource>,
    pub(crate) locals: Vec<LocalVar>,
    /// Active variables, by register: an index into `locals`.
    pub(crate) active: Vec<usize>,
    /// Variables declared and not yet active.
    pub(crate) pending: Vec<usize>,
    pub(crate) free_reg: usize,
    /// The last place a jump may lead to; instructions before it must not be merged with later ones.
    pub(crate) last_target: i32,
    /// Jumps to the next instruction.
    pub(crate) pending_jumps: i32,
    pub(crate) blocks: Vec<Block>,
    pub(crate) params: u8,
    pub(crate) varargs: Varargs,
    pub(crate) max_stack: usize,
    pub(crate) line_defined: u32,
}

impl FuncState {
    pub(crate) fn new(line_defined: u32) -> FuncState {
        FuncState {
            code: Vec::new(),
            lines: Vec::new(),
            constants: Vec::new(),
            constant_index: HashMap::new(),
            children: Vec::new(),
            upvals: Vec::new(),
            locals: Vec::new(),
            active: Vec::new(),
            pending: Vec::new(),
            free_reg: 0,
            last_target: -1,
            pending_jumps: NO_JUMP,
            blocks: Vec::new(),
            params: 0,
            varargs: Varargs::No,
            max_stack: 2,
            line_defined,
        }
    }

    /// Bytes that the function holds while it is compiled.
    pub(crate) fn bytes(&self) -> usize {
        self.code.capacity() * size_of::<Instr>()
            + self.lines.capacity() * size_of::<u32>()
            + self.constants.capacity() * size_of::<Value>()
            + self.constant_index.capacity() * size_of::<(ConstantKey, usize)>()
            + self.children.capacity() * size_of::<u32>()
            + self.locals.capacity() * size_of::<LocalVar>()
    }

    pub(crate) fn pc(&self) -> i32 {
        self.code.len() as i32
    }

    /// The register of an active variable, the innermost first.
    pub(crate) fn find_local(&self, name: Str) -> Option<u8> {
        self.active
            .iter()
            .rposition(|&at| self.locals[at].name.id == name.id)
            .map(|reg| reg as u8)
    }

    /// Notes that the block of a register's variable must close its upvalues.
    pub(crate) fn mark_captured(&mut self, reg: u8) {
        let block = self
            .blocks
            .iter_mut()
            .rev()
            .find(|block| block.active <= reg as usize);
        if let Some(block) = block {
            block.captured = true;
        }
    }

    pub(crate) fn finish(self, source: Str) -> Proto {
        let strings = self
            .constants
            .iter()
            .filter_map(|value| match value {
                Value::Str(s) => Some(*s),
                _ => None,
            })
            .collect();
        Proto {
            body: Body {
                code: self.code.into(),
                constants: self.constants.into(),
            },
            strings,
            children: self.children.into(),
            upvals: self.upvals.into(),
            lines: self.lines.into(),
            locals: self.locals.into(),
            source,
            params: self.params,
            varargs: self.varargs,
            max_stack: self.max_stack as u8,
            mark: 0,
        }
    }
}
