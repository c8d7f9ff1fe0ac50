//! The parser's frame: functions, blocks, variables and the checks every production uses.

use super::CompileError;
use super::func::{Block, Expr, FuncState, Kind, NO_JUMP};
use super::lex::{Keyword, Lexer, Near, Token};
use crate::base::proto::{LocalVar, Op, UpvalSource, Varargs};
use crate::base::value::Str;
use crate::vm::heap::Heap;
use crate::vm::meter::Budget;
use crate::vm::stack_address;

pub(crate) type Result<T> = std::result::Result<T, CompileError>;

/// Nested syntax levels and native calls together: LUAI_MAXCCALLS.
pub(crate) const MAX_LEVELS: u32 = 200;
const MAX_LOCALS: usize = 200;
const MAX_UPVALUES: usize = 60;

pub(crate) struct Parser<'a> {
    pub(crate) lex: Lexer<'a>,
    pub(crate) funcs: Vec<FuncState>,
    pub(crate) levels: u32,
    /// Lowest stack address the parser may reach.
    stack_floor: usize,
}

/// Compiles a chunk into the heap; the index of its main function. `levels` native calls are active already.
pub(crate) fn compile<'a>(
    heap: &'a mut Heap,
    source: &'a [u8],
    name: Str,
    levels: u32,
    stack_floor: usize,
    budget: Budget<'a>,
) -> Result<u32> {
    let mut parser = Parser {
        lex: Lexer::new(heap, source, name, budget),
        funcs: vec![FuncState::new(0)],
        levels,
        stack_floor,
    };
    parser.f().varargs = Varargs::Yes;
    parser.lex.next()?;
    parser.chunk()?;
    if !matches!(parser.lex.token, Token::End) {
        return Err(parser.expected(Token::End));
    }
    let main = parser.close_function()?;
    let proto = main.finish(name);
    Ok(parser.lex.heap.proto(proto))
}

impl Parser<'_> {
    pub(crate) fn enter(&mut self) -> Result<()> {
        self.levels += 1;
        if self.levels > MAX_LEVELS {
            return Err(self
                .lex
                .error("chunk has too many syntax levels", Near::Nothing));
        }
        if stack_address() < self.stack_floor {
            return Err(CompileError::StackExhausted);
        }
        Ok(())
    }

    pub(crate) fn leave(&mut self) {
        self.levels -= 1;
    }

    pub(crate) fn expected(&self, token: Token) -> CompileError {
        let kind = String::from_utf8_lossy(&token.kind()).into_owned();
        self.lex.syntax_error(&format!("'{kind}' expected"))
    }

    pub(crate) fn accept(&mut self, byte: u8) -> Result<bool> {
        let found = self.lex.token.is(byte);
        if found {
            self.lex.next()?;
        }
        Ok(found)
    }

    pub(crate) fn accept_keyword(&mut self, keyword: Keyword) -> Result<bool> {
        let found = self.lex.token.is_keyword(keyword);
        if found {
            self.lex.next()?;
        }
        Ok(found)
    }

    pub(crate) fn expect(&mut self, byte: u8) -> Result<()> {
        if self.accept(byte)? {
            Ok(())
        } else {
            Err(self.expected(Token::Byte(byte)))
        }
    }

    pub(crate) fn expect_keyword(&mut self, keyword: Keyword) -> Result<()> {
        if self.accept_keyword(keyword)? {
            Ok(())
        } else {
            Err(self.expected(Token::Keyword(keyword)))
        }
    }

    /// Expects the token that closes what `open` began at `line`.
    pub(crate) fn expect_match(&mut self, close: Token, open: Token, line: u32) -> Result<()> {
        let found = match close {
            Token::Byte(b) => self.lex.token.is(b),
            Token::Keyword(k) => self.lex.token.is_keyword(k),
            _ => false,
        };
        if found {
            return self.lex.next();
        }
        if line == self.lex.line {
            return Err(self.expected(close));
        }
        let close = String::from_utf8_lossy(&close.kind()).into_owned();
        let open = String::from_utf8_lossy(&open.kind()).into_owned();
        Err(self.lex.syntax_error(&format!(
            "'{close}' expected (to close '{open}' at line {line})"
        )))
    }

    pub(crate) fn name(&mut self) -> Result<Str> {
        let Token::Name(name) = self.lex.token else {
            return Err(self.lex.syntax_error("'<name>' expected"));
        };
        self.lex.next()?;
        Ok(name)
    }

    pub(crate) fn string_expr(&mut self, s: Str) -> Result<Expr> {
        let at = self.string_constant(s)?;
        Ok(Expr::new(Kind::Constant(at)))
    }

    fn limit_error(&mut self, limit: usize, what: &str) -> CompileError {
        let line = self.f().line_defined;
        let message = if line == 0 {
            format!("main function has more than {limit} {what}")
        } else {
            format!("function at line {line} has more than {limit} {what}")
        };
        self.lex.error(&message, Near::Nothing)
    }

    pub(crate) fn check_limit(&mut self, count: usize, limit: usize, what: &str) -> Result<()> {
        if count > limit {
            return Err(self.limit_error(limit, what));
        }
        Ok(())
    }

    /// Declares a variable that becomes active later.
    pub(crate) fn declare(&mut self, name: Str) -> Result<()> {
        let f = self.f();
        let count = f.active.len() + f.pending.len() + 1;
        self.check_limit(count, MAX_LOCALS, "local variables")?;
        let f = self.f();
        f.locals.push(LocalVar {
            name,
            start: 0,
            end: 0,
        });
        f.pending.push(f.locals.len() - 1);
        Ok(())
    }

    pub(crate) fn declare_literal(&mut self, name: &[u8]) -> Result<()> {
        let name = self.lex.heap.string(name);
        self.declare(name)
    }

    /// Makes the first `count` declared variables active.
    pub(crate) fn activate(&mut self, count: usize) {
        let f = self.f();
        let pc = f.pc() as u32;
        let activated: Vec<usize> = f.pending.drain(..count).collect();
        for at in activated {
            f.locals[at].start = pc;
            f.active.push(at);
        }
    }

    pub(crate) fn deactivate(&mut self, down_to: usize) {
        let f = self.f();
        let pc = f.pc() as u32;
        while f.active.len() > down_to {
            if let Some(at) = f.active.pop() {
                f.locals[at].end = pc;
            }
        }
    }

    pub(crate) fn open_block(&mut self, is_loop: bool) {
        let f = self.f();
        let active = f.active.len();
        f.blocks.push(Block {
            breaks: NO_JUMP,
            active,
            captured: false,
            is_loop,
        });
    }

    pub(crate) fn close_block(&mut self) -> Result<()> {
        let block = self
            .f()
            .blocks
            .pop()
            .expect("blocks are opened and closed in pairs");
        self.deactivate(block.active);
        if block.captured {
            self.emit(Op::Close, block.active as u8, 0, 0)?;
        }
        let f = self.f();
        f.free_reg = f.active.len();
        self.patch_to_here(block.breaks)
    }

    /// Ends the innermost function.
    pub(crate) fn close_function(&mut self) -> Result<FuncState> {
        self.deactivate(0);
        self.emit_return(0, 0)?;
        Ok(self.funcs.pop().expect("a function is being compiled"))
    }

    /// Finds what a name means: a local, an upvalue or a global.
    pub(crate) fn variable(&mut self, name: Str) -> Result<Expr> {
        let current = self.funcs.len() - 1;
        let found = (0..=current)
            .rev()
            .find_map(|level| self.lookup(level, name).map(|place| (level, place)));
        if current > 0 {
            let passed = found.map_or(0, |(level, _)| level);
            let searched = self.funcs[passed..].iter().map(|f| f.active.len());
            let work = searched.sum::<usize>() / 2;
            self.lex.charge(work)?;
        }
        let Some((level, (mut in_stack, mut at))) = found else {
            let constant = self.string_constant(name)?;
            return Ok(Expr::new(Kind::Global(constant)));
        };
        if level == current {
            return Ok(Expr::new(if in_stack {
                Kind::Local(at)
            } else {
                Kind::Upvalue(at)
            }));
        }
        if in_stack {
            self.funcs[level].mark_captured(at);
        }
        for inner in level + 1..=current {
            at = self.add_upvalue(inner, name, in_stack, at)?;
            in_stack = false;
        }
        Ok(Expr::new(Kind::Upvalue(at)))
    }

    fn lookup(&self, level: usize, name: Str) -> Option<(bool, u8)> {
        self.funcs[level].find_local(name).map(|reg| (true, reg))
    }

    fn add_upvalue(&mut self, level: usize, name: Str, in_stack: bool, at: u8) -> Result<u8> {
        let upvals = &mut self.funcs[level].upvals;
        if let Some(found) = upvals
            .iter()
            .position(|u| u.in_stack == in_stack && u.at == at)
        {
            return Ok(found as u8);
        }
        upvals.push(UpvalSource { name, in_stack, at });
        let count = upvals.len();
        if count > MAX_UPVALUES {
            let line = self.funcs[level].line_defined;
            let message = if line == 0 {
                format!("main function has more than {MAX_UPVALUES} upvalues")
            } else {
                format!("function at line {line} has more than {MAX_UPVALUES} upvalues")
            };
            return Err(self.lex.error(&message, Near::Nothing));
        }
        Ok((count - 1) as u8)
    }
}
