//! Statements.

use super::func::{Expr, Kind, NO_JUMP};
use super::lex::{Keyword, Token};
use super::parser::{MAX_LEVELS, Parser, Result};
use crate::base::proto::Op;

impl Parser<'_> {
    pub(crate) fn chunk(&mut self) -> Result<()> {
        self.enter()?;
        let mut last = false;
        while !last && !self.block_ends() {
            last = self.statement()?;
            self.accept(b';')?;
            let f = self.f();
            f.free_reg = f.active.len();
        }
        self.leave();
        Ok(())
    }

    fn block_ends(&self) -> bool {
        matches!(
            self.lex.token,
            Token::End
                | Token::Keyword(Keyword::Else | Keyword::Elseif | Keyword::End | Keyword::Until)
        )
    }

    fn block(&mut self) -> Result<()> {
        self.open_block(false);
        self.chunk()?;
        self.close_block()
    }

    /// True for a statement that must be the last of its block.
    fn statement(&mut self) -> Result<bool> {
        let line = self.lex.line;
        let Token::Keyword(keyword) = self.lex.token else {
            self.expr_statement()?;
            return Ok(false);
        };
        match keyword {
            Keyword::If => self.if_statement(line)?,
            Keyword::While => self.while_statement(line)?,
            Keyword::Do => {
                self.lex.next()?;
                self.block()?;
                self.expect_end(Keyword::Do, line)?;
            }
            Keyword::For => self.for_statement(line)?,
            Keyword::Repeat => self.repeat_statement(line)?,
            Keyword::Function => self.function_statement(line)?,
            Keyword::Local => {
                self.lex.next()?;
                if self.accept_keyword(Keyword::Function)? {
                    self.local_function()?;
                } else {
                    self.local_statement()?;
                }
            }
            Keyword::Return => {
                self.return_statement()?;
                return Ok(true);
            }
            Keyword::Break => {
                self.lex.next()?;
                self.break_statement()?;
                return Ok(true);
            }
            _ => self.expr_statement()?,
        }
        Ok(false)
    }

    fn expect_end(&mut self, open: Keyword, line: u32) -> Result<()> {
        self.expect_match(Token::Keyword(Keyword::End), Token::Keyword(open), line)
    }

    fn condition(&mut self) -> Result<i32> {
        let mut e = self.expr()?;
        if matches!(e.kind, Kind::Nil) {
            e.kind = Kind::False;
        }
        self.go_if_true(&mut e)?;
        Ok(e.on_false)
    }

    fn if_statement(&mut self, line: u32) -> Result<()> {
        let mut escapes = NO_JUMP;
        let mut otherwise = self.then_block()?;
        loop {
            match self.lex.token {
                Token::Keyword(Keyword::Elseif) => {
                    let jump = self.emit_jump()?;
                    self.join(&mut escapes, jump)?;
                    self.patch_to_here(otherwise)?;
                    otherwise = self.then_block()?;
                }
                Token::Keyword(Keyword::Else) => {
                    let jump = self.emit_jump()?;
                    self.join(&mut escapes, jump)?;
                    self.patch_to_here(otherwise)?;
                    self.lex.next()?;
                    self.block()?;
                    break;
                }
                _ => {
                    self.join(&mut escapes, otherwise)?;
                    break;
                }
            }
        }
        self.patch_to_here(escapes)?;
        self.expect_end(Keyword::If, line)
    }

    fn then_block(&mut self) -> Result<i32> {
        self.lex.next()?;
        let otherwise = self.condition()?;
        self.expect_keyword(Keyword::Then)?;
        self.block()?;
        Ok(otherwise)
    }

    fn while_statement(&mut self, line: u32) -> Result<()> {
        self.lex.next()?;
        let start = self.label();
        let exit = self.condition()?;
        self.open_block(true);
        self.expect_keyword(Keyword::Do)?;
        self.block()?;
        let back = self.emit_jump()?;
        self.patch_list(back, start)?;
        self.expect_end(Keyword::While, line)?;
        self.close_block()?;
        self.patch_to_here(exit)
    }

    fn repeat_statement(&mut self, line: u32) -> Result<()> {
        let start = self.label();
        self.open_block(true);
        self.open_block(false);
        self.lex.next()?;
        self.chunk()?;
        self.expect_match(
            Token::Keyword(Keyword::Until),
            Token::Keyword(Keyword::Repeat),
            line,
        )?;
        let exit = self.condition()?;
        let captured = self.f().blocks.last().is_some_and(|block| block.captured);
        if captured {
            self.break_statement()?;
            self.patch_to_here(exit)?;
            self.close_block()?;
            let back = self.emit_jump()?;
            self.patch_list(back, start)?;
        } else {
            self.close_block()?;
            self.patch_list(exit, start)?;
        }
        self.close_block()
    }

    fn break_statement(&mut self) -> Result<()> {
        let f = self.f();
        let Some(at) = f.blocks.iter().rposition(|block| block.is_loop) else {
            return Err(self.lex.syntax_error("no loop to break"));
        };
        let captured = f.blocks[at + 1..].iter().any(|block| block.captured);
        let active = f.blocks[at].active;
        if captured {
            self.emit(Op::Close, active as u8, 0, 0)?;
        }
        let jump = self.emit_jump()?;
        let mut list = self.f().blocks[at].breaks;
        self.join(&mut list, jump)?;
        self.f().blocks[at].breaks = list;
        Ok(())
    }

    fn for_statement(&mut self, line: u32) -> Result<()> {
        self.open_block(true);
        self.lex.next()?;
        let name = self.name()?;
        match self.lex.token {
            Token::Byte(b'=') => self.numeric_for(name, line)?,
            Token::Byte(b',') | Token::Keyword(Keyword::In) => self.generic_for(name, line)?,
            _ => return Err(self.lex.syntax_error("'=' or 'in' expected")),
        }
        self.expect_end(Keyword::For, line)?;
        self.close_block()
    }

    fn numeric_for(&mut self, name: crate::base::value::Str, line: u32) -> Result<()> {
        let base = self.f().free_reg;
        for hidden in [&b"(for index)"[..], b"(for limit)", b"(for step)"] {
            self.declare_literal(hidden)?;
        }
        self.declare(name)?;
        self.expect(b'=')?;
        self.expr_to_next_register()?;
        self.expect(b',')?;
        self.expr_to_next_register()?;
        if self.accept(b',')? {
            self.expr_to_next_register()?;
        } else {
            let mut one = Expr::new(Kind::Number(1.0));
            self.load_next(&mut one)?;
        }
        self.for_body(base, line, 1, true)
    }

    fn expr_to_next_register(&mut self) -> Result<()> {
        let mut e = self.expr()?;
        self.load_next(&mut e)
    }

    fn generic_for(&mut self, first: crate::base::value::Str, _line: u32) -> Result<()> {
        let base = self.f().free_reg;
        for hidden in [&b"(for generator)"[..], b"(for state)", b"(for control)"] {
            self.declare_literal(hidden)?;
        }
        self.declare(first)?;
        let mut names = 1;
        while self.accept(b',')? {
            let name = self.name()?;
            self.declare(name)?;
            names += 1;
        }
        self.expect_keyword(Keyword::In)?;
        let line = self.lex.line;
        let (mut last, count) = self.expr_list()?;
        self.adjust(3, count, &mut last)?;
        self.check_stack(3)?;
        self.for_body(base, line, names, false)
    }

    fn for_body(&mut self, base: usize, line: u32, names: usize, numeric: bool) -> Result<()> {
        self.activate(3);
        self.expect_keyword(Keyword::Do)?;
        let prepare = if numeric {
            self.emit(Op::ForPrep, base as u8, 0, NO_JUMP as u32)? as i32
        } else {
            self.emit_jump()?
        };
        self.open_block(false);
        self.activate(names);
        self.reserve(names)?;
        self.chunk()?;
        self.close_block()?;
        self.patch_to_here(prepare)?;
        let end = if numeric {
            self.emit(Op::ForLoop, base as u8, 0, NO_JUMP as u32)? as i32
        } else {
            self.emit(Op::TForLoop, base as u8, 0, names as u32)? as i32
        };
        self.fix_line(line);
        let back = if numeric { end } else { self.emit_jump()? };
        self.patch_list(back, prepare + 1)
    }

    fn function_statement(&mut self, line: u32) -> Result<()> {
        self.lex.next()?;
        let name = self.name()?;
        let mut target = self.variable(name)?;
        let mut method = false;
        while self.lex.token.is(b'.') {
            self.field(&mut target)?;
        }
        if self.lex.token.is(b':') {
            method = true;
            self.field(&mut target)?;
        }
        let mut body = self.function_body(method, line)?;
        self.store(&target, &mut body)?;
        self.fix_line(line);
        Ok(())
    }

    fn local_function(&mut self) -> Result<()> {
        let name = self.name()?;
        self.declare(name)?;
        let variable = Expr::new(Kind::Local(self.f().free_reg as u8));
        self.reserve(1)?;
        self.activate(1);
        let line = self.lex.line;
        let mut body = self.function_body(false, line)?;
        self.store(&variable, &mut body)?;
        let f = self.f();
        let pc = f.pc() as u32;
        if let Some(&at) = f.active.last() {
            f.locals[at].start = pc;
        }
        Ok(())
    }

    fn local_statement(&mut self) -> Result<()> {
        let mut names = 0;
        loop {
            let name = self.name()?;
            self.declare(name)?;
            names += 1;
            if !self.accept(b',')? {
                break;
            }
        }
        let (mut last, count) = if self.accept(b'=')? {
            self.expr_list()?
        } else {
            (Expr::new(Kind::Void), 0)
        };
        self.adjust(names, count, &mut last)?;
        self.activate(names);
        Ok(())
    }

    /// Makes `count` expressions, of which `last` is still open, into `wanted` values.
    fn adjust(&mut self, wanted: usize, count: usize, last: &mut Expr) -> Result<()> {
        let extra = wanted as i32 - count as i32;
        if last.is_multiple() {
            let results = (extra + 1).max(0);
            self.set_returns(last, results)?;
            if results > 1 {
                self.reserve(results as usize - 1)?;
            }
            return Ok(());
        }
        if !matches!(last.kind, Kind::Void) {
            self.load_next(last)?;
        }
        if extra > 0 {
            let from = self.f().free_reg;
            self.reserve(extra as usize)?;
            self.emit_nil(from, extra as usize)?;
        }
        Ok(())
    }

    fn return_statement(&mut self) -> Result<()> {
        self.lex.next()?;
        if self.block_ends() || self.lex.token.is(b';') {
            return self.emit_return(0, 0);
        }
        let (mut last, count) = self.expr_list()?;
        if last.is_multiple() {
            self.set_returns(&last, -1)?;
            if let Kind::Call(at) = last.kind
                && count == 1
            {
                self.f().code[at].op = Op::TailCall;
            }
            let first = self.f().active.len();
            return self.emit_return(first, -1);
        }
        if count == 1 {
            let reg = self.load_any(&mut last)?;
            return self.emit_return(reg as usize, 1);
        }
        self.load_next(&mut last)?;
        let first = self.f().active.len();
        self.emit_return(first, count as i32)
    }

    fn expr_statement(&mut self) -> Result<()> {
        let first = self.primary_expr()?;
        if let Kind::Call(at) = first.kind {
            self.f().code[at].c = 1;
            return Ok(());
        }
        self.assignment(first)
    }

    fn assignment(&mut self, first: Expr) -> Result<()> {
        let mut targets = vec![first];
        loop {
            if !matches!(
                targets.last().map(|target| target.kind),
                Some(Kind::Local(_) | Kind::Upvalue(_) | Kind::Global(_) | Kind::Indexed(..))
            ) {
                return Err(self.lex.syntax_error("syntax error"));
            }
            if !self.accept(b',')? {
                break;
            }
            let target = self.primary_expr()?;
            if let Kind::Local(reg) = target.kind {
                self.avoid_conflict(&mut targets, reg)?;
            }
            let limit = MAX_LEVELS.saturating_sub(self.levels) as usize;
            self.check_limit(targets.len(), limit, "variables in assignment")?;
            targets.push(target);
        }
        self.expect(b'=')?;
        let (mut last, count) = self.expr_list()?;
        if count == targets.len() {
            let target = targets.pop().expect("an assignment has a target");
            if last.is_multiple() {
                self.discharge(&mut last)?;
            }
            self.store(&target, &mut last)?;
        } else {
            self.adjust(targets.len(), count, &mut last)?;
            if count > targets.len() {
                let surplus = count - targets.len();
                self.f().free_reg -= surplus;
            }
        }
        while let Some(target) = targets.pop() {
            let mut value = Expr::new(Kind::Register((self.f().free_reg - 1) as u8));
            self.store(&target, &mut value)?;
        }
        Ok(())
    }

    /// A local assigned in the same statement that indexes it is copied first.
    fn avoid_conflict(&mut self, targets: &mut [Expr], reg: u8) -> Result<()> {
        let copy = self.f().free_reg as u8;
        let mut conflict = false;
        for target in targets {
            if let Kind::Indexed(table, key) = &mut target.kind {
                if *table == reg {
                    conflict = true;
                    *table = copy;
                }
                if *key == u32::from(reg) {
                    conflict = true;
                    *key = u32::from(copy);
                }
            }
        }
        if conflict {
            self.emit(Op::Move, copy, u32::from(reg), 0)?;
            self.reserve(1)?;
        }
        Ok(())
    }
}
