//! Compiled functions: instructions, constants and what error messages need to know.
//!
//! The instruction set is that of Lua 5.1. Names in error messages ("local 'x'", "field 'y'") are found by reading the
//! instructions before the one that failed, so the code must have the shape Lua 5.1's compiler gives it.

use crate::base::value::{Str, Value};

/// Operation codes. R(x) is a register, K(x) a constant, RK(x) either: constants have [`CONSTANT`] set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// R(A) := R(B)
    Move,
    /// R(A) := K(C)
    LoadK,
    /// R(A) := B; skip the next instruction if C
    LoadBool,
    /// R(A) ... R(B) := nil
    LoadNil,
    /// R(A) := upvalue B
    GetUpval,
    /// R(A) := globals[K(C)]
    GetGlobal,
    /// R(A) := R(B)[RK(C)]
    GetTable,
    /// globals[K(C)] := R(A)
    SetGlobal,
    /// upvalue B := R(A)
    SetUpval,
    /// R(A)[RK(B)] := RK(C)
    SetTable,
    /// R(A) := {} with room for B array elements and C pairs
    NewTable,
    /// R(A+1) := R(B); R(A) := R(B)[RK(C)]
    SelfCall,
    Add,
    Sub,
    Mul,
    Div,
    Mod,
    Pow,
    /// R(A) := -R(B)
    Unm,
    /// R(A) := not R(B)
    Not,
    /// R(A) := #R(B)
    Len,
    /// R(A) := R(B) .. ... .. R(C)
    Concat,
    /// pc += C
    Jmp,
    /// skip the next instruction if (RK(B) == RK(C)) != A
    Eq,
    Lt,
    Le,
    /// skip the next instruction if R(A) is not C
    Test,
    /// if R(B) is C then R(A) := R(B) else skip the next instruction
    TestSet,
    /// R(A) ... := R(A)(R(A+1) ... ); B-1 arguments, C-1 results, 0 means up to the top
    Call,
    TailCall,
    /// return R(A) ... ; B-1 values
    Return,
    ForLoop,
    ForPrep,
    TForLoop,
    /// R(A)[50 * (C-1) + i] := R(A+i) for 1 <= i <= B
    SetList,
    /// closes upvalues from R(A)
    Close,
    /// R(A) := closure of child C
    Closure,
    /// R(A) ... := vararg; B-1 values
    Vararg,
}

/// One instruction; jumps keep a signed distance in `c`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Instr {
    pub(crate) op: Op,
    pub(crate) a: u8,
    pub(crate) b: u16,
    pub(crate) c: u32,
}

impl Instr {
    pub(crate) fn jump(self) -> i32 {
        self.c as i32
    }
}

/// The bit that makes an operand a constant.
pub(crate) const CONSTANT: u32 = 256;
/// Largest constant index that fits in an operand.
pub(crate) const MAX_OPERAND_CONSTANT: usize = 255;
/// Elements a table constructor stores at a time.
pub(crate) const FIELDS_PER_FLUSH: usize = 50;

/// Where a closure finds an upvalue when it is made.
#[derive(Clone, Debug)]
pub(crate) struct UpvalSource {
    pub(crate) name: Str,
    /// In a register of the enclosing function, or among its upvalues.
    pub(crate) in_stack: bool,
    pub(crate) at: u8,
}

#[derive(Clone, Debug)]
pub(crate) struct LocalVar {
    pub(crate) name: Str,
    pub(crate) start: u32,
    pub(crate) end: u32,
}

/// What the run loop reads for every instruction. The loop takes it out of the prototype while it runs it.
#[derive(Debug, Default)]
pub(crate) struct Body {
    pub(crate) code: Box<[Instr]>,
    pub(crate) constants: Box<[Value]>,
}

/// How a function takes extra arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Varargs {
    No,
    Yes,
    /// `...` was declared and not used: a local `arg` holds a table of them.
    Table,
    /// `...` was declared and used: the local `arg` exists and is nil.
    NilArg,
}

/// A compiled function.
#[derive(Debug)]
pub(crate) struct Proto {
    pub(crate) body: Body,
    /// The string constants again, for the collector while the body is taken out.
    pub(crate) strings: Box<[Str]>,
    pub(crate) children: Box<[u32]>,
    pub(crate) upvals: Box<[UpvalSource]>,
    pub(crate) lines: Box<[u32]>,
    pub(crate) locals: Box<[LocalVar]>,
    /// The chunk name as given to load; `@name`, `=name` or the source itself.
    pub(crate) source: Str,
    pub(crate) params: u8,
    pub(crate) varargs: Varargs,
    pub(crate) max_stack: u8,
    pub(crate) mark: u8,
}

impl Proto {
    /// Bytes for the account; the body is counted by its line table, which is as long.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Proto>()
            + self.lines.len() * (size_of::<Instr>() + 4)
            + self.strings.len() * 24
            + self.locals.len() * size_of::<LocalVar>()
            + self.upvals.len() * size_of::<UpvalSource>()
            + self.children.len() * 4
    }
}
