//! Expressions.

use super::func::{Expr, FuncState, Kind};
use super::lex::{Keyword, Token};
use super::parser::{Parser, Result};
use crate::base::proto::{FIELDS_PER_FLUSH, Op, Varargs};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Binary {
    Arith(Op),
    Concat,
    Compare(Op, bool),
    And,
    Or,
}

const UNARY_PRIORITY: u8 = 8;

/// The operator with its left and right priorities.
fn binary(token: Token) -> Option<(Binary, u8, u8)> {
    Some(match token {
        Token::Byte(b'+') => (Binary::Arith(Op::Add), 6, 6),
        Token::Byte(b'-') => (Binary::Arith(Op::Sub), 6, 6),
        Token::Byte(b'*') => (Binary::Arith(Op::Mul), 7, 7),
        Token::Byte(b'/') => (Binary::Arith(Op::Div), 7, 7),
        Token::Byte(b'%') => (Binary::Arith(Op::Mod), 7, 7),
        Token::Byte(b'^') => (Binary::Arith(Op::Pow), 10, 9),
        Token::Concat => (Binary::Concat, 5, 4),
        Token::NotEqual => (Binary::Compare(Op::Eq, false), 3, 3),
        Token::Equal => (Binary::Compare(Op::Eq, true), 3, 3),
        Token::Byte(b'<') => (Binary::Compare(Op::Lt, true), 3, 3),
        Token::LessEqual => (Binary::Compare(Op::Le, true), 3, 3),
        Token::Byte(b'>') => (Binary::Compare(Op::Lt, false), 3, 3),
        Token::GreaterEqual => (Binary::Compare(Op::Le, false), 3, 3),
        Token::Keyword(Keyword::And) => (Binary::And, 2, 2),
        Token::Keyword(Keyword::Or) => (Binary::Or, 1, 1),
        _ => return None,
    })
}

/// A table constructor in progress.
struct Constructor {
    table: u8,
    /// The last positional element, not stored yet.
    item: Expr,
    arrays: usize,
    hashes: usize,
    pending: usize,
}

impl Parser<'_> {
    pub(crate) fn expr(&mut self) -> Result<Expr> {
        self.sub_expr(0)
    }

    /// Reads operators that bind tighter than `limit`.
    fn sub_expr(&mut self, limit: u8) -> Result<Expr> {
        self.enter()?;
        let mut left = match self.lex.token {
            Token::Keyword(Keyword::Not) | Token::Byte(b'-' | b'#') => self.unary()?,
            _ => self.simple_expr()?,
        };
        while let Some((op, left_priority, right_priority)) = binary(self.lex.token) {
            if left_priority <= limit {
                break;
            }
            self.lex.next()?;
            self.infix(op, &mut left)?;
            let mut right = self.sub_expr(right_priority)?;
            self.postfix(op, &mut left, &mut right)?;
        }
        self.leave();
        Ok(left)
    }

    fn unary(&mut self) -> Result<Expr> {
        let operator = self.lex.token;
        self.lex.next()?;
        let mut e = self.sub_expr(UNARY_PRIORITY)?;
        let mut zero = Expr::new(Kind::Number(0.0));
        match operator {
            Token::Byte(b'-') => {
                if !e.is_numeral() {
                    self.load_any(&mut e)?;
                }
                self.arithmetic(Op::Unm, &mut e, &mut zero)?;
            }
            Token::Byte(_) => {
                self.load_any(&mut e)?;
                self.arithmetic(Op::Len, &mut e, &mut zero)?;
            }
            _ => self.negate(&mut e)?,
        }
        Ok(e)
    }

    fn infix(&mut self, op: Binary, left: &mut Expr) -> Result<()> {
        match op {
            Binary::And => self.go_if_true(left),
            Binary::Or => self.go_if_false(left),
            Binary::Concat => self.load_next(left),
            Binary::Arith(_) if left.is_numeral() => Ok(()),
            _ => self.operand(left).map(drop),
        }
    }

    fn postfix(&mut self, op: Binary, left: &mut Expr, right: &mut Expr) -> Result<()> {
        match op {
            Binary::And => {
                self.discharge(right)?;
                let mut list = right.on_false;
                self.join(&mut list, left.on_false)?;
                right.on_false = list;
                *left = *right;
                Ok(())
            }
            Binary::Or => {
                self.discharge(right)?;
                let mut list = right.on_true;
                self.join(&mut list, left.on_true)?;
                right.on_true = list;
                *left = *right;
                Ok(())
            }
            Binary::Concat => self.concatenation(left, right),
            Binary::Arith(op) => self.arithmetic(op, left, right),
            Binary::Compare(op, condition) => self.comparison(op, condition, left, right),
        }
    }

    fn simple_expr(&mut self) -> Result<Expr> {
        let e = match self.lex.token {
            Token::Number(n) => Expr::new(Kind::Number(n)),
            Token::Text(s) => self.string_expr(s)?,
            Token::Keyword(Keyword::Nil) => Expr::new(Kind::Nil),
            Token::Keyword(Keyword::True) => Expr::new(Kind::True),
            Token::Keyword(Keyword::False) => Expr::new(Kind::False),
            Token::Dots => {
                if self.f().varargs == Varargs::No {
                    return Err(self
                        .lex
                        .syntax_error("cannot use '...' outside a vararg function"));
                }
                if self.f().varargs == Varargs::Table {
                    self.f().varargs = Varargs::NilArg;
                }
                Expr::new(Kind::Vararg(self.emit(Op::Vararg, 0, 1, 0)?))
            }
            Token::Byte(b'{') => return self.constructor(),
            Token::Keyword(Keyword::Function) => {
                self.lex.next()?;
                let line = self.lex.line;
                return self.function_body(false, line);
            }
            _ => return self.primary_expr(),
        };
        self.lex.next()?;
        Ok(e)
    }

    fn prefix_expr(&mut self) -> Result<Expr> {
        match self.lex.token {
            Token::Byte(b'(') => {
                let line = self.lex.line;
                self.lex.next()?;
                let mut e = self.expr()?;
                self.expect_match(Token::Byte(b')'), Token::Byte(b'('), line)?;
                self.discharge(&mut e)?;
                Ok(e)
            }
            Token::Name(_) => {
                let name = self.name()?;
                self.variable(name)
            }
            _ => Err(self.lex.syntax_error("unexpected symbol")),
        }
    }

    pub(crate) fn primary_expr(&mut self) -> Result<Expr> {
        let mut e = self.prefix_expr()?;
        loop {
            match self.lex.token {
                Token::Byte(b'.') => self.field(&mut e)?,
                Token::Byte(b'[') => {
                    self.load_any(&mut e)?;
                    let mut key = self.bracket_key()?;
                    self.index(&mut e, &mut key)?;
                }
                Token::Byte(b':') => {
                    self.lex.next()?;
                    let name = self.name()?;
                    let mut key = self.string_expr(name)?;
                    self.method(&mut e, &mut key)?;
                    self.call_args(&mut e)?;
                }
                Token::Byte(b'(' | b'{') | Token::Text(_) => {
                    self.load_next(&mut e)?;
                    self.call_args(&mut e)?;
                }
                _ => return Ok(e),
            }
        }
    }

    pub(crate) fn field(&mut self, e: &mut Expr) -> Result<()> {
        self.load_any(e)?;
        self.lex.next()?;
        let name = self.name()?;
        let mut key = self.string_expr(name)?;
        self.index(e, &mut key)
    }

    fn bracket_key(&mut self) -> Result<Expr> {
        self.lex.next()?;
        let mut e = self.expr()?;
        if e.has_jumps() {
            self.load_any(&mut e)?;
        } else {
            self.discharge(&mut e)?;
        }
        self.expect(b']')?;
        Ok(e)
    }

    fn call_args(&mut self, e: &mut Expr) -> Result<()> {
        let line = self.lex.line;
        let mut args = Expr::new(Kind::Void);
        match self.lex.token {
            Token::Byte(b'(') => {
                if line != self.lex.last_line {
                    return Err(self
                        .lex
                        .syntax_error("ambiguous syntax (function call x new statement)"));
                }
                self.lex.next()?;
                if !self.lex.token.is(b')') {
                    args = self.expr_list()?.0;
                    self.set_returns(&args, -1)?;
                }
                self.expect_match(Token::Byte(b')'), Token::Byte(b'('), line)?;
            }
            Token::Byte(b'{') => args = self.constructor()?,
            Token::Text(s) => {
                args = self.string_expr(s)?;
                self.lex.next()?;
            }
            _ => return Err(self.lex.syntax_error("function arguments expected")),
        }
        let Kind::Register(base) = e.kind else {
            return Ok(());
        };
        let count = if args.is_multiple() {
            0
        } else {
            if !matches!(args.kind, Kind::Void) {
                self.load_next(&mut args)?;
            }
            self.f().free_reg - base as usize
        };
        let at = self.emit(Op::Call, base, count as u32, 2)?;
        *e = Expr::new(Kind::Call(at));
        self.fix_line(line);
        // The call takes function and arguments away and leaves one value.
        self.f().free_reg = base as usize + 1;
        Ok(())
    }

    /// The last expression of a list, and how many there are; the others are in registers.
    pub(crate) fn expr_list(&mut self) -> Result<(Expr, usize)> {
        let mut count = 1;
        let mut e = self.expr()?;
        while self.accept(b',')? {
            self.load_next(&mut e)?;
            e = self.expr()?;
            count += 1;
        }
        Ok((e, count))
    }

    pub(crate) fn function_body(&mut self, method: bool, line: u32) -> Result<Expr> {
        self.funcs.push(FuncState::new(line));
        self.expect(b'(')?;
        if method {
            self.declare_literal(b"self")?;
            self.activate(1);
        }
        self.parameters()?;
        self.expect(b')')?;
        self.chunk()?;
        self.expect_match(
            Token::Keyword(Keyword::End),
            Token::Keyword(Keyword::Function),
            line,
        )?;
        let source = self.lex.source;
        let proto = self.close_function()?.finish(source);
        let child = self.lex.heap.proto(proto);
        let f = self.f();
        f.children.push(child);
        let index = f.children.len() - 1;
        Ok(Expr::new(Kind::Relocatable(self.emit(
            Op::Closure,
            0,
            0,
            index as u32,
        )?)))
    }

    fn parameters(&mut self) -> Result<()> {
        let mut count = 0;
        if !self.lex.token.is(b')') {
            loop {
                match self.lex.token {
                    Token::Name(name) => {
                        self.lex.next()?;
                        self.declare(name)?;
                        count += 1;
                    }
                    Token::Dots => {
                        self.lex.next()?;
                        self.declare_literal(b"arg")?;
                        count += 1;
                        self.f().varargs = Varargs::Table;
                    }
                    _ => return Err(self.lex.syntax_error("<name> or '...' expected")),
                }
                if self.f().varargs != Varargs::No || !self.accept(b',')? {
                    break;
                }
            }
        }
        self.activate(count);
        let f = self.f();
        f.params = (f.active.len() - usize::from(f.varargs != Varargs::No)) as u8;
        let active = f.active.len();
        self.reserve(active)
    }

    fn constructor(&mut self) -> Result<Expr> {
        let line = self.lex.line;
        let at = self.emit(Op::NewTable, 0, 0, 0)?;
        let mut table = Expr::new(Kind::Relocatable(at));
        self.load_next(&mut table)?;
        let mut constructor = Constructor {
            table: (self.f().free_reg - 1) as u8,
            item: Expr::new(Kind::Void),
            arrays: 0,
            hashes: 0,
            pending: 0,
        };
        self.expect(b'{')?;
        while !self.lex.token.is(b'}') {
            self.close_item(&mut constructor)?;
            match self.lex.token {
                Token::Name(_) => {
                    if self.look_ahead_is_assignment()? {
                        self.record(&mut constructor)?;
                    } else {
                        self.item(&mut constructor)?;
                    }
                }
                Token::Byte(b'[') => self.record(&mut constructor)?,
                _ => self.item(&mut constructor)?,
            }
            if !self.accept(b',')? && !self.accept(b';')? {
                break;
            }
        }
        self.expect_match(Token::Byte(b'}'), Token::Byte(b'{'), line)?;
        self.last_item(&mut constructor)?;
        let instr = &mut self.f().code[at];
        instr.b = float_byte(constructor.arrays) as u16;
        instr.c = float_byte(constructor.hashes) as u32;
        Ok(table)
    }

    fn look_ahead_is_assignment(&mut self) -> Result<bool> {
        Ok(self.lex.look_ahead()?.is(b'='))
    }

    fn record(&mut self, constructor: &mut Constructor) -> Result<()> {
        let reg = self.f().free_reg;
        let mut key = match self.lex.token {
            Token::Name(name) => {
                self.lex.next()?;
                self.string_expr(name)?
            }
            _ => self.bracket_key()?,
        };
        constructor.hashes += 1;
        self.expect(b'=')?;
        let key = self.operand(&mut key)?;
        let mut value = self.expr()?;
        let value = self.operand(&mut value)?;
        self.emit(Op::SetTable, constructor.table, key, value)?;
        self.f().free_reg = reg;
        Ok(())
    }

    fn item(&mut self, constructor: &mut Constructor) -> Result<()> {
        constructor.item = self.expr()?;
        constructor.arrays += 1;
        constructor.pending += 1;
        Ok(())
    }

    fn close_item(&mut self, constructor: &mut Constructor) -> Result<()> {
        if matches!(constructor.item.kind, Kind::Void) {
            return Ok(());
        }
        self.load_next(&mut constructor.item)?;
        constructor.item = Expr::new(Kind::Void);
        if constructor.pending == FIELDS_PER_FLUSH {
            let count = constructor.pending as i32;
            self.flush_list(constructor.table, constructor.arrays, count)?;
            constructor.pending = 0;
        }
        Ok(())
    }

    fn last_item(&mut self, constructor: &mut Constructor) -> Result<()> {
        if constructor.pending == 0 {
            return Ok(());
        }
        if constructor.item.is_multiple() {
            self.set_returns(&constructor.item, -1)?;
            self.flush_list(constructor.table, constructor.arrays, -1)?;
            constructor.arrays -= 1;
            return Ok(());
        }
        if !matches!(constructor.item.kind, Kind::Void) {
            self.load_next(&mut constructor.item)?;
        }
        let count = constructor.pending as i32;
        self.flush_list(constructor.table, constructor.arrays, count)
    }
}

/// Lua 5.1 keeps size hints as a floating byte, which rounds up; the rounded size decides the order of `pairs`.
fn float_byte(size: usize) -> usize {
    let mut exponent = 0;
    let mut mantissa = size;
    while mantissa >= 16 {
        mantissa = (mantissa + 1) >> 1;
        exponent += 1;
    }
    (mantissa << exponent).min(u16::MAX as usize)
}
