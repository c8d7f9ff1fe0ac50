//! Reading the arguments of native functions, with Lua's messages for wrong ones.

use crate::base::value::{Str, TableId, Value};
use crate::vm::{Args, Result, Vm};

impl Vm {
    /// `x expected` for an argument that is missing altogether.
    pub(crate) fn check_any(&mut self, args: Args, at: usize) -> Result<Value> {
        if at >= args.count {
            return Err(self.bad_argument(at, "value expected"));
        }
        Ok(self.stack[args.base + at])
    }

    pub(crate) fn check_table(&mut self, args: Args, at: usize) -> Result<TableId> {
        match self.arg(args, at) {
            Value::Table(id) => Ok(id),
            _ => Err(self.wrong_type(args, at, "table")),
        }
    }

    pub(crate) fn check_function(&mut self, args: Args, at: usize) -> Result<Value> {
        match self.arg(args, at) {
            value @ Value::Function(_) => Ok(value),
            _ => Err(self.wrong_type(args, at, "function")),
        }
    }

    pub(crate) fn check_number(&mut self, args: Args, at: usize) -> Result<f64> {
        match self.arg(args, at) {
            Value::Number(n) => Ok(n),
            value => match self.number_of(value) {
                Some(n) => Ok(n),
                None => Err(self.wrong_type(args, at, "number")),
            },
        }
    }

    pub(crate) fn check_int(&mut self, args: Args, at: usize) -> Result<i64> {
        self.check_number(args, at).map(to_integer)
    }

    /// An integer as C's `int`.
    pub(crate) fn check_int32(&mut self, args: Args, at: usize) -> Result<i32> {
        self.check_int(args, at).map(|n| n as i32)
    }

    pub(crate) fn opt_int(&mut self, args: Args, at: usize, default: i64) -> Result<i64> {
        if self.arg(args, at).is_nil() {
            return Ok(default);
        }
        self.check_int(args, at)
    }

    /// A string argument, or a number made one; the argument in the stack becomes the string.
    pub(crate) fn check_str(&mut self, args: Args, at: usize) -> Result<Str> {
        match self.arg(args, at) {
            Value::Str(s) => Ok(s),
            value => match self.coerce_str(value) {
                Some(s) => {
                    self.stack[args.base + at] = Value::Str(s);
                    Ok(s)
                }
                None => Err(self.wrong_type(args, at, "string")),
            },
        }
    }

    pub(crate) fn opt_str(&mut self, args: Args, at: usize) -> Result<Option<Str>> {
        if self.arg(args, at).is_nil() {
            return Ok(None);
        }
        self.check_str(args, at).map(Some)
    }
}

/// A double to a 64-bit integer as the processor converts it: what does not fit becomes the smallest integer.
pub(crate) fn to_integer(n: f64) -> i64 {
    if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&n) {
        n as i64
    } else {
        i64::MIN
    }
}
