//! Arithmetic on values that are not both numbers, and conversions between strings and numbers.

use super::{Error, Event, Result, Vm};
use crate::base::number;
use crate::base::proto::Op;
use crate::base::value::Value;
use crate::vm::host::Host;

/// The remainder with the sign of the divisor.
#[inline]
pub(crate) fn modulo(a: f64, b: f64) -> f64 {
    a - floor(a / b) * b
}

/// The same as `f64::floor`, which is a function call on processors without SSE 4.1.
#[inline]
fn floor(x: f64) -> f64 {
    if x == 0.0 || x.is_nan() || x.abs() >= 4_503_599_627_370_496.0 {
        // Zeros keep their sign; what is this large has no fraction.
        return x;
    }
    let whole = x as i64 as f64;
    let floored = if whole > x { whole - 1.0 } else { whole };
    if floored == 0.0 {
        0f64.copysign(x)
    } else {
        floored
    }
}

pub(crate) fn power(a: f64, b: f64) -> f64 {
    a.powf(b)
}

#[inline]
pub(crate) fn compute(op: Op, a: f64, b: f64) -> f64 {
    match op {
        Op::Add => a + b,
        Op::Sub => a - b,
        Op::Mul => a * b,
        Op::Div => a / b,
        Op::Mod => modulo(a, b),
        Op::Pow => power(a, b),
        _ => -a,
    }
}

impl Vm {
    /// A number, or a string that reads as one.
    pub(crate) fn number_of(&mut self, value: Value) -> Option<f64> {
        match value {
            Value::Number(n) => Some(n),
            Value::Str(s) => {
                self.spend_on_key(value);
                number::parse(self.heap.bytes_of(s))
            }
            _ => None,
        }
    }

    /// A string, or a number as one.
    pub(crate) fn coerce_str(&mut self, value: Value) -> Option<crate::base::value::Str> {
        match value {
            Value::Str(s) => Some(s),
            Value::Number(n) => {
                let mut text = std::mem::take(&mut self.scratch);
                text.clear();
                number::write(&mut text, n);
                let s = self.heap.string(&text);
                self.scratch = text;
                Some(s)
            }
            _ => None,
        }
    }

    /// Arithmetic with conversions and metamethods; `operands` are the places for an error.
    #[cold]
    #[inline(never)]
    pub(crate) fn arith_slow(
        &mut self,
        host: &mut dyn Host,
        op: Op,
        (a, b): (Value, Value),
        operands: (u32, u32),
    ) -> Result<Value> {
        // Pays for what the instruction before this one has spent on long strings.
        self.charge(host, 0)?;
        if let (Some(x), Some(y)) = (self.number_of(a), self.number_of(b)) {
            return Ok(Value::Number(compute(op, x, y)));
        }
        let event = match op {
            Op::Add => Event::Add,
            Op::Sub => Event::Sub,
            Op::Mul => Event::Mul,
            Op::Div => Event::Div,
            Op::Mod => Event::Mod,
            Op::Pow => Event::Pow,
            _ => Event::Unm,
        };
        if let Some(result) = self.binary_event(host, a, b, event)? {
            return Ok(result);
        }
        let (value, operand) = if self.number_of(a).is_none() {
            (a, operands.0)
        } else {
            (b, operands.1)
        };
        Err(Error::type_error("perform arithmetic on", value).at_register(operand))
    }

    /// Calls the metamethod of the first operand, or else of the second.
    pub(crate) fn binary_event(
        &mut self,
        host: &mut dyn Host,
        a: Value,
        b: Value,
        event: Event,
    ) -> Result<Option<Value>> {
        let mut method = self.event(a, event);
        if method.is_nil() {
            method = self.event(b, event);
        }
        if method.is_nil() {
            return Ok(None);
        }
        self.call_value(host, method, &[a, b]).map(Some)
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn len_slow(&mut self, host: &mut dyn Host, value: Value) -> Result<Value> {
        match self.binary_event(host, value, Value::Nil, Event::Len)? {
            Some(result) => Ok(result),
            None => Err(Error::type_error("get length of", value)),
        }
    }
}
