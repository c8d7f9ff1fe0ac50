//! Emitting instructions: jumps and their lists, registers, constants, and moving expressions to where they are needed.
//!
//! Jumps to a place that is not known yet form a list: each holds the distance to the one before it. A test that keeps
//! its value (`TestSet`) becomes a plain `Test` when no one needs the value.

use super::CompileError;
use super::func::{ConstantKey, Expr, FuncState, Kind, NO_JUMP};
use super::lex::Near;
use super::parser::Parser;
use crate::base::proto::{CONSTANT, FIELDS_PER_FLUSH, Instr, MAX_OPERAND_CONSTANT, Op};
use crate::base::value::{Str, Value};

type Result<T> = std::result::Result<T, CompileError>;

/// Registers one function may use.
const MAX_STACK: usize = 250;
const MAX_CONSTANTS: usize = (1 << 18) - 1;
const MAX_JUMP: i32 = (1 << 17) - 1;
/// "No register": the test's value goes nowhere.
const NO_REG: u8 = 255;
/// Instructions of a function from which on its growth is looked at.
const CHECKED_CODE: usize = 1 << 14;
/// Jumps of a list that are passed between two charges.
const JUMPS_CHARGED: usize = 1 << 14;

impl Parser<'_> {
    pub(crate) fn f(&mut self) -> &mut FuncState {
        self.funcs.last_mut().expect("a function is being compiled")
    }

    pub(crate) fn emit(&mut self, op: Op, a: u8, b: u32, c: u32) -> Result<usize> {
        let line = self.lex.last_line;
        self.discharge_pending()?;
        let f = self.f();
        if f.code.len() == f.code.capacity() && f.code.len() >= CHECKED_CODE {
            self.grow_code()?;
        }
        let f = self.f();
        f.code.push(Instr {
            op,
            a,
            b: b as u16,
            c,
        });
        f.lines.push(line);
        Ok(f.code.len() - 1)
    }

    /// Looks at the memory limit before a long function grows further.
    #[cold]
    fn grow_code(&mut self) -> Result<()> {
        self.lex.held = self.funcs.iter().map(FuncState::bytes).sum();
        // The old instructions are there until the new room for twice as many is filled.
        let slots = self.f().code.capacity();
        let growth = slots * 2 * (size_of::<Instr>() + size_of::<u32>());
        self.lex.check_memory(self.lex.held + growth)
    }

    fn discharge_pending(&mut self) -> Result<()> {
        let pc = self.f().pc();
        let list = std::mem::replace(&mut self.f().pending_jumps, NO_JUMP);
        self.patch_list_to(list, pc, NO_REG, pc)
    }

    /// Gives the last instruction another line.
    pub(crate) fn fix_line(&mut self, line: u32) {
        if let Some(last) = self.f().lines.last_mut() {
            *last = line;
        }
    }

    pub(crate) fn emit_nil(&mut self, from: usize, count: usize) -> Result<()> {
        let f = self.f();
        if f.pc() > f.last_target {
            if f.code.is_empty() {
                if from >= f.active.len() {
                    return Ok(());
                }
            } else if let Some(last) = f.code.last_mut()
                && last.op == Op::LoadNil
            {
                let (first, end) = (last.a as usize, last.b as usize);
                if first <= from && from <= end + 1 {
                    last.b = last.b.max((from + count - 1) as u16);
                    return Ok(());
                }
            }
        }
        self.emit(Op::LoadNil, from as u8, (from + count - 1) as u32, 0)?;
        Ok(())
    }

    pub(crate) fn emit_jump(&mut self) -> Result<i32> {
        let pending = std::mem::replace(&mut self.f().pending_jumps, NO_JUMP);
        let mut jump = self.emit(Op::Jmp, 0, 0, NO_JUMP as u32)? as i32;
        self.join(&mut jump, pending)?;
        Ok(jump)
    }

    fn conditional_jump(&mut self, op: Op, a: u8, b: u32, c: u32) -> Result<i32> {
        self.emit(op, a, b, c)?;
        self.emit_jump()
    }

    pub(crate) fn emit_return(&mut self, first: usize, count: i32) -> Result<()> {
        self.emit(Op::Return, first as u8, (count + 1) as u32, 0)?;
        Ok(())
    }

    fn fix_jump(&mut self, at: i32, target: i32) -> Result<()> {
        let distance = target - (at + 1);
        if distance.abs() > MAX_JUMP {
            return Err(self.lex.syntax_error("control structure too long"));
        }
        self.f().code[at as usize].c = distance as u32;
        Ok(())
    }

    /// Marks the next instruction as a jump's target.
    pub(crate) fn label(&mut self) -> i32 {
        let f = self.f();
        f.last_target = f.pc();
        f.last_target
    }

    fn jump_target(&mut self, at: i32) -> i32 {
        match self.f().code[at as usize].jump() {
            NO_JUMP => NO_JUMP,
            distance => at + 1 + distance,
        }
    }

    /// The instruction that decides whether a jump is taken.
    fn control(&mut self, at: i32) -> &mut Instr {
        let code = &mut self.f().code;
        let at = at as usize;
        let tests = at >= 1
            && matches!(
                code[at - 1].op,
                Op::Eq | Op::Lt | Op::Le | Op::Test | Op::TestSet | Op::TForLoop
            );
        &mut code[if tests { at - 1 } else { at }]
    }

    fn needs_value(&mut self, mut list: i32) -> bool {
        while list != NO_JUMP {
            if self.control(list).op != Op::TestSet {
                return true;
            }
            list = self.jump_target(list);
        }
        false
    }

    fn patch_test(&mut self, at: i32, reg: u8) -> bool {
        let control = self.control(at);
        if control.op != Op::TestSet {
            return false;
        }
        if reg != NO_REG && u16::from(reg) != control.b {
            control.a = reg;
        } else {
            control.op = Op::Test;
            control.a = control.b as u8;
            control.b = 0;
        }
        true
    }

    fn remove_values(&mut self, mut list: i32) {
        while list != NO_JUMP {
            self.patch_test(list, NO_REG);
            list = self.jump_target(list);
        }
    }

    fn patch_list_to(
        &mut self,
        mut list: i32,
        with_value: i32,
        reg: u8,
        without: i32,
    ) -> Result<()> {
        while list != NO_JUMP {
            let next = self.jump_target(list);
            let target = if self.patch_test(list, reg) {
                with_value
            } else {
                without
            };
            self.fix_jump(list, target)?;
            list = next;
        }
        Ok(())
    }

    pub(crate) fn patch_list(&mut self, list: i32, target: i32) -> Result<()> {
        if target == self.f().pc() {
            self.patch_to_here(list)
        } else {
            self.patch_list_to(list, target, NO_REG, target)
        }
    }

    pub(crate) fn patch_to_here(&mut self, list: i32) -> Result<()> {
        self.label();
        let mut pending = self.f().pending_jumps;
        self.join(&mut pending, list)?;
        self.f().pending_jumps = pending;
        Ok(())
    }

    /// Appends list `second` to list `first`.
    pub(crate) fn join(&mut self, first: &mut i32, second: i32) -> Result<()> {
        if second == NO_JUMP {
            return Ok(());
        }
        if *first == NO_JUMP {
            *first = second;
            return Ok(());
        }
        let mut list = *first;
        let mut steps = 0;
        loop {
            let next = self.jump_target(list);
            steps += 1;
            if steps == JUMPS_CHARGED {
                self.lex.charge(steps)?;
                steps = 0;
            }
            if next == NO_JUMP {
                self.lex.charge(steps)?;
                return self.fix_jump(list, second);
            }
            list = next;
        }
    }

    pub(crate) fn check_stack(&mut self, count: usize) -> Result<()> {
        let needed = self.f().free_reg + count;
        if needed > self.f().max_stack {
            if needed >= MAX_STACK {
                return Err(self.lex.syntax_error("function or expression too complex"));
            }
            self.f().max_stack = needed;
        }
        Ok(())
    }

    pub(crate) fn reserve(&mut self, count: usize) -> Result<()> {
        self.check_stack(count)?;
        self.f().free_reg += count;
        Ok(())
    }

    fn free_operand(&mut self, operand: u32) {
        let f = self.f();
        if operand & CONSTANT == 0 && operand as usize >= f.active.len() {
            f.free_reg -= 1;
        }
    }

    fn free_expr(&mut self, e: &Expr) {
        if let Kind::Register(reg) = e.kind {
            self.free_operand(u32::from(reg));
        }
    }

    fn constant(&mut self, key: ConstantKey, value: Value) -> Result<usize> {
        let f = self.f();
        let next = f.constants.len();
        let at = *f.constant_index.entry(key).or_insert(next);
        if at == next {
            if next > MAX_CONSTANTS {
                return Err(self.lex.error("constant table overflow", Near::Nothing));
            }
            self.f().constants.push(value);
        }
        Ok(at)
    }

    pub(crate) fn string_constant(&mut self, s: Str) -> Result<usize> {
        let value = self.lex.heap.canonical(Value::Str(s));
        match value {
            Value::Str(s) => self.constant(ConstantKey::Str(s.id), value),
            _ => Ok(0),
        }
    }

    fn number_constant(&mut self, n: f64) -> Result<usize> {
        // 0 and -0 share a constant, as they do in Lua 5.1.
        let bits = if n == 0.0 { 0 } else { n.to_bits() };
        self.constant(ConstantKey::Number(bits), Value::Number(n))
    }

    fn literal_constant(&mut self, kind: Kind) -> Result<Option<usize>> {
        Ok(Some(match kind {
            Kind::Nil => self.constant(ConstantKey::Nil, Value::Nil)?,
            Kind::True => self.constant(ConstantKey::Bool(true), Value::Bool(true))?,
            Kind::False => self.constant(ConstantKey::Bool(false), Value::Bool(false))?,
            Kind::Number(n) => self.number_constant(n)?,
            _ => return Ok(None),
        }))
    }

    /// Fixes the number of values a call or `...` gives; -1 means all.
    pub(crate) fn set_returns(&mut self, e: &Expr, count: i32) -> Result<()> {
        match e.kind {
            Kind::Call(at) => self.f().code[at].c = (count + 1) as u32,
            Kind::Vararg(at) => {
                let f = self.f();
                f.code[at].b = (count + 1) as u16;
                f.code[at].a = f.free_reg as u8;
                self.reserve(1)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn set_one_return(&mut self, e: &mut Expr) {
        match e.kind {
            Kind::Call(at) => e.kind = Kind::Register(self.f().code[at].a),
            Kind::Vararg(at) => {
                self.f().code[at].b = 2;
                e.kind = Kind::Relocatable(at);
            }
            _ => {}
        }
    }

    pub(crate) fn discharge(&mut self, e: &mut Expr) -> Result<()> {
        match e.kind {
            Kind::Local(reg) => e.kind = Kind::Register(reg),
            Kind::Upvalue(at) => {
                e.kind = Kind::Relocatable(self.emit(Op::GetUpval, 0, u32::from(at), 0)?);
            }
            Kind::Global(name) => {
                e.kind = Kind::Relocatable(self.emit(Op::GetGlobal, 0, 0, name as u32)?);
            }
            Kind::Indexed(table, key) => {
                self.free_operand(key);
                self.free_operand(u32::from(table));
                let at = self.emit(Op::GetTable, 0, u32::from(table), key)?;
                e.kind = Kind::Relocatable(at);
            }
            Kind::Call(_) | Kind::Vararg(_) => self.set_one_return(e),
            _ => {}
        }
        Ok(())
    }

    fn discharge_to(&mut self, e: &mut Expr, reg: u8) -> Result<()> {
        self.discharge(e)?;
        match e.kind {
            Kind::Nil => self.emit_nil(reg as usize, 1)?,
            Kind::True | Kind::False => {
                let truth = matches!(e.kind, Kind::True);
                self.emit(Op::LoadBool, reg, u32::from(truth), 0)?;
            }
            Kind::Constant(at) => {
                self.emit(Op::LoadK, reg, 0, at as u32)?;
            }
            Kind::Number(n) => {
                let at = self.number_constant(n)?;
                self.emit(Op::LoadK, reg, 0, at as u32)?;
            }
            Kind::Relocatable(at) => self.f().code[at].a = reg,
            Kind::Register(from) => {
                if from != reg {
                    self.emit(Op::Move, reg, u32::from(from), 0)?;
                }
            }
            _ => return Ok(()),
        }
        e.kind = Kind::Register(reg);
        Ok(())
    }

    fn discharge_anywhere(&mut self, e: &mut Expr) -> Result<()> {
        if !matches!(e.kind, Kind::Register(_)) {
            self.reserve(1)?;
            let reg = (self.f().free_reg - 1) as u8;
            self.discharge_to(e, reg)?;
        }
        Ok(())
    }

    /// Puts the value in a register, the values of its jumps included.
    fn load_into(&mut self, e: &mut Expr, reg: u8) -> Result<()> {
        self.discharge_to(e, reg)?;
        if let Kind::Jump(at) = e.kind {
            let mut list = e.on_true;
            self.join(&mut list, at)?;
            e.on_true = list;
        }
        if e.has_jumps() {
            let (mut load_false, mut load_true) = (NO_JUMP, NO_JUMP);
            if self.needs_value(e.on_true) || self.needs_value(e.on_false) {
                let over = if matches!(e.kind, Kind::Jump(_)) {
                    NO_JUMP
                } else {
                    self.emit_jump()?
                };
                self.label();
                load_false = self.emit(Op::LoadBool, reg, 0, 1)? as i32;
                self.label();
                load_true = self.emit(Op::LoadBool, reg, 1, 0)? as i32;
                self.patch_to_here(over)?;
            }
            let end = self.label();
            self.patch_list_to(e.on_false, end, reg, load_false)?;
            self.patch_list_to(e.on_true, end, reg, load_true)?;
        }
        *e = Expr::new(Kind::Register(reg));
        Ok(())
    }

    pub(crate) fn load_next(&mut self, e: &mut Expr) -> Result<()> {
        self.discharge(e)?;
        self.free_expr(e);
        self.reserve(1)?;
        let reg = (self.f().free_reg - 1) as u8;
        self.load_into(e, reg)
    }

    pub(crate) fn load_any(&mut self, e: &mut Expr) -> Result<u8> {
        self.discharge(e)?;
        if let Kind::Register(reg) = e.kind {
            if !e.has_jumps() {
                return Ok(reg);
            }
            if reg as usize >= self.f().active.len() {
                self.load_into(e, reg)?;
                return Ok(reg);
            }
        }
        self.load_next(e)?;
        match e.kind {
            Kind::Register(reg) => Ok(reg),
            _ => Ok(0),
        }
    }

    fn settle(&mut self, e: &mut Expr) -> Result<()> {
        if e.has_jumps() {
            self.load_any(e).map(drop)
        } else {
            self.discharge(e)
        }
    }

    /// Makes the expression an operand: a constant if it fits, else a register.
    pub(crate) fn operand(&mut self, e: &mut Expr) -> Result<u32> {
        self.settle(e)?;
        match e.kind {
            Kind::Nil | Kind::True | Kind::False | Kind::Number(_)
                if self.f().constants.len() <= MAX_OPERAND_CONSTANT =>
            {
                if let Some(at) = self.literal_constant(e.kind)? {
                    e.kind = Kind::Constant(at);
                    return Ok(at as u32 | CONSTANT);
                }
            }
            Kind::Constant(at) if at <= MAX_OPERAND_CONSTANT => return Ok(at as u32 | CONSTANT),
            _ => {}
        }
        self.load_any(e).map(u32::from)
    }

    pub(crate) fn store(&mut self, variable: &Expr, e: &mut Expr) -> Result<()> {
        match variable.kind {
            Kind::Local(reg) => {
                self.free_expr(e);
                return self.load_into(e, reg);
            }
            Kind::Upvalue(at) => {
                let reg = self.load_any(e)?;
                self.emit(Op::SetUpval, reg, u32::from(at), 0)?;
            }
            Kind::Global(name) => {
                let reg = self.load_any(e)?;
                self.emit(Op::SetGlobal, reg, 0, name as u32)?;
            }
            Kind::Indexed(table, key) => {
                let value = self.operand(e)?;
                self.emit(Op::SetTable, table, key, value)?;
            }
            _ => {}
        }
        self.free_expr(e);
        Ok(())
    }

    pub(crate) fn method(&mut self, e: &mut Expr, key: &mut Expr) -> Result<()> {
        let object = self.load_any(e)?;
        self.free_expr(e);
        let func = self.f().free_reg as u8;
        self.reserve(2)?;
        let key_operand = self.operand(key)?;
        self.emit(Op::SelfCall, func, u32::from(object), key_operand)?;
        self.free_expr(key);
        e.kind = Kind::Register(func);
        Ok(())
    }

    fn invert(&mut self, jump: i32) {
        let control = self.control(jump);
        control.a = u8::from(control.a == 0);
    }

    fn jump_on(&mut self, e: &mut Expr, condition: bool) -> Result<i32> {
        if let Kind::Relocatable(at) = e.kind
            && self.f().code[at].op == Op::Not
        {
            let operand = self.f().code[at].b as u8;
            let f = self.f();
            f.code.pop();
            f.lines.pop();
            return self.conditional_jump(Op::Test, operand, 0, u32::from(!condition));
        }
        self.discharge_anywhere(e)?;
        self.free_expr(e);
        let Kind::Register(reg) = e.kind else {
            return Ok(NO_JUMP);
        };
        self.conditional_jump(Op::TestSet, NO_REG, u32::from(reg), u32::from(condition))
    }

    pub(crate) fn go_if_true(&mut self, e: &mut Expr) -> Result<()> {
        self.discharge(e)?;
        let jump = match e.kind {
            Kind::Constant(_) | Kind::Number(_) | Kind::True => NO_JUMP,
            Kind::Jump(at) => {
                self.invert(at);
                at
            }
            _ => self.jump_on(e, false)?,
        };
        let mut list = e.on_false;
        self.join(&mut list, jump)?;
        e.on_false = list;
        self.patch_to_here(e.on_true)?;
        e.on_true = NO_JUMP;
        Ok(())
    }

    pub(crate) fn go_if_false(&mut self, e: &mut Expr) -> Result<()> {
        self.discharge(e)?;
        let jump = match e.kind {
            Kind::Nil | Kind::False => NO_JUMP,
            Kind::Jump(at) => at,
            _ => self.jump_on(e, true)?,
        };
        let mut list = e.on_true;
        self.join(&mut list, jump)?;
        e.on_true = list;
        self.patch_to_here(e.on_false)?;
        e.on_false = NO_JUMP;
        Ok(())
    }

    pub(crate) fn negate(&mut self, e: &mut Expr) -> Result<()> {
        self.discharge(e)?;
        match e.kind {
            Kind::Nil | Kind::False => e.kind = Kind::True,
            Kind::Constant(_) | Kind::Number(_) | Kind::True => e.kind = Kind::False,
            Kind::Jump(at) => self.invert(at),
            Kind::Relocatable(_) | Kind::Register(_) => {
                self.discharge_anywhere(e)?;
                self.free_expr(e);
                if let Kind::Register(reg) = e.kind {
                    e.kind = Kind::Relocatable(self.emit(Op::Not, 0, u32::from(reg), 0)?);
                }
            }
            _ => {}
        }
        std::mem::swap(&mut e.on_true, &mut e.on_false);
        self.remove_values(e.on_false);
        self.remove_values(e.on_true);
        Ok(())
    }

    pub(crate) fn index(&mut self, table: &mut Expr, key: &mut Expr) -> Result<()> {
        let operand = self.operand(key)?;
        if let Kind::Register(reg) = table.kind {
            table.kind = Kind::Indexed(reg, operand);
        }
        Ok(())
    }

    pub(crate) fn arithmetic(&mut self, op: Op, left: &mut Expr, right: &mut Expr) -> Result<()> {
        if let Some(folded) = fold(op, left, right) {
            left.kind = Kind::Number(folded);
            return Ok(());
        }
        let second = if matches!(op, Op::Unm | Op::Len) {
            0
        } else {
            self.operand(right)?
        };
        let first = self.operand(left)?;
        if first > second {
            self.free_expr(left);
            self.free_expr(right);
        } else {
            self.free_expr(right);
            self.free_expr(left);
        }
        left.kind = Kind::Relocatable(self.emit(op, 0, first, second)?);
        Ok(())
    }

    pub(crate) fn comparison(
        &mut self,
        op: Op,
        condition: bool,
        left: &mut Expr,
        right: &mut Expr,
    ) -> Result<()> {
        let mut first = self.operand(left)?;
        let mut second = self.operand(right)?;
        self.free_expr(right);
        self.free_expr(left);
        let mut condition = condition;
        if !condition && op != Op::Eq {
            std::mem::swap(&mut first, &mut second);
            condition = true;
        }
        left.kind = Kind::Jump(self.conditional_jump(op, u8::from(condition), first, second)?);
        Ok(())
    }

    /// The right operand of `..`: a chain becomes one instruction.
    pub(crate) fn concatenation(&mut self, left: &mut Expr, right: &mut Expr) -> Result<()> {
        self.settle(right)?;
        if let (Kind::Relocatable(at), Kind::Register(reg)) = (right.kind, left.kind)
            && self.f().code[at].op == Op::Concat
        {
            self.free_expr(left);
            self.f().code[at].b = u16::from(reg);
            left.kind = Kind::Relocatable(at);
            return Ok(());
        }
        self.load_next(right)?;
        self.arithmetic(Op::Concat, left, right)
    }

    /// Stores the elements collected by a table constructor.
    pub(crate) fn flush_list(&mut self, base: u8, stored: usize, count: i32) -> Result<()> {
        let batch = (stored - 1) / FIELDS_PER_FLUSH + 1;
        let count = if count < 0 { 0 } else { count as u32 };
        self.emit(Op::SetList, base, count, batch as u32)?;
        self.f().free_reg = base as usize + 1;
        Ok(())
    }
}

fn fold(op: Op, left: &Expr, right: &Expr) -> Option<f64> {
    let (Kind::Number(a), Kind::Number(b)) = (left.kind, right.kind) else {
        return None;
    };
    if !left.is_numeral() || !right.is_numeral() {
        return None;
    }
    let folded = match op {
        Op::Add => a + b,
        Op::Sub => a - b,
        Op::Mul => a * b,
        Op::Div if b != 0.0 => a / b,
        Op::Mod if b != 0.0 => crate::vm::arith::modulo(a, b),
        Op::Pow => crate::vm::arith::power(a, b),
        Op::Unm => -a,
        _ => return None,
    };
    (!folded.is_nan()).then_some(folded)
}
