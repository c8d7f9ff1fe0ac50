//! Equality and order with metamethods.

use super::{Error, Event, Result, Vm};
use crate::base::value::Value;
use crate::vm::host::Host;

impl Vm {
    #[inline]
    pub(crate) fn equal(&mut self, host: &mut dyn Host, a: Value, b: Value) -> Result<bool> {
        if self.heap.raw_equal(a, b) {
            self.charge_comparison(host, a, b)?;
            return Ok(true);
        }
        match (a, b) {
            (Value::Str(_), Value::Str(_)) => {
                self.charge_comparison(host, a, b)?;
                Ok(false)
            }
            (Value::Table(_), Value::Table(_)) | (Value::UserData(_), Value::UserData(_)) => {
                self.equal_slow(host, a, b)
            }
            _ => Ok(false),
        }
    }

    /// Charges the comparison of two long strings.
    #[inline]
    pub(crate) fn charge_comparison(
        &mut self,
        host: &mut dyn Host,
        a: Value,
        b: Value,
    ) -> Result<()> {
        if let (Value::Str(a), Value::Str(b)) = (a, b)
            && a.is_long()
            && b.is_long()
        {
            let (a, b) = (self.heap.bytes_of(a).len(), self.heap.bytes_of(b).len());
            return self.charge(host, a.min(b) / 32);
        }
        Ok(())
    }

    #[inline(never)]
    fn equal_slow(&mut self, host: &mut dyn Host, a: Value, b: Value) -> Result<bool> {
        let (Some(meta_a), Some(meta_b)) = (self.metatable(a), self.metatable(b)) else {
            return Ok(false);
        };
        let method = self.table_event(meta_a, Event::Eq);
        if method.is_nil() {
            return Ok(false);
        }
        if meta_a != meta_b {
            let other = self.table_event(meta_b, Event::Eq);
            if other.is_nil() || !self.heap.raw_equal(method, other) {
                return Ok(false);
            }
        }
        Ok(!self.call_value(host, method, &[a, b])?.is_falsy())
    }

    #[inline]
    pub(crate) fn less_than(&mut self, host: &mut dyn Host, a: Value, b: Value) -> Result<bool> {
        match (a, b) {
            (Value::Number(a), Value::Number(b)) => Ok(a < b),
            (Value::Str(x), Value::Str(y)) => {
                self.charge_comparison(host, a, b)?;
                Ok(self.heap.bytes_of(x) < self.heap.bytes_of(y))
            }
            _ => self.order_slow(host, a, b, Event::Lt),
        }
    }

    #[inline]
    pub(crate) fn less_equal(&mut self, host: &mut dyn Host, a: Value, b: Value) -> Result<bool> {
        match (a, b) {
            (Value::Number(a), Value::Number(b)) => Ok(a <= b),
            (Value::Str(x), Value::Str(y)) => {
                self.charge_comparison(host, a, b)?;
                Ok(self.heap.bytes_of(x) <= self.heap.bytes_of(y))
            }
            _ => self.order_slow(host, a, b, Event::Le),
        }
    }

    #[inline(never)]
    fn order_slow(
        &mut self,
        host: &mut dyn Host,
        a: Value,
        b: Value,
        event: Event,
    ) -> Result<bool> {
        let (name_a, name_b) = (a.type_name(), b.type_name());
        let light_and_full = matches!(
            (a, b),
            (Value::Light(_), Value::UserData(_)) | (Value::UserData(_), Value::Light(_))
        );
        if name_a == name_b && !light_and_full {
            if let Some(result) = self.order_event(host, a, b, event)? {
                return Ok(result);
            }
            if event == Event::Le
                && let Some(result) = self.order_event(host, b, a, Event::Lt)?
            {
                return Ok(!result);
            }
        }
        Err(Error::message(if name_a == name_b {
            format!("attempt to compare two {name_a} values")
        } else {
            format!("attempt to compare {name_a} with {name_b}")
        }))
    }

    fn order_event(
        &mut self,
        host: &mut dyn Host,
        a: Value,
        b: Value,
        event: Event,
    ) -> Result<Option<bool>> {
        let method = self.event(a, event);
        if method.is_nil() {
            return Ok(None);
        }
        let other = self.event(b, event);
        if !self.heap.raw_equal(method, other) {
            return Ok(None);
        }
        Ok(Some(!self.call_value(host, method, &[a, b])?.is_falsy()))
    }
}
