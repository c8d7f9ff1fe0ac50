//! Reading and writing fields with metamethods and read-only tables.

use super::{Error, Event, Result, Vm};
use crate::base::value::{TableId, Value};
use crate::vm::host::Host;

/// Longest chain of `__index` or `__newindex` tables.
const MAX_CHAIN: usize = 100;

/// What Redis says to a script that writes to one of its tables.
pub(crate) const READONLY: &str = "Attempt to modify a readonly table";

impl Vm {
    /// `object[key]`
    #[inline(never)]
    pub(crate) fn index(
        &mut self,
        host: &mut dyn Host,
        object: Value,
        key: Value,
    ) -> Result<Value> {
        self.charge_key(host, key)?;
        let key = self.heap.canonical(key);
        let mut current = object;
        for step in 0..MAX_CHAIN {
            let method = match current {
                Value::Table(id) => {
                    let table = self.heap.at(id);
                    let found = table.get(key);
                    if !found.is_nil() {
                        return Ok(found);
                    }
                    let Some(meta) = table.meta else {
                        return Ok(Value::Nil);
                    };
                    let method = self.table_event(meta, Event::Index);
                    if method.is_nil() {
                        return Ok(Value::Nil);
                    }
                    method
                }
                _ => {
                    let method = self.event(current, Event::Index);
                    if method.is_nil() {
                        let error = Error::type_error("index", current);
                        return Err(if step == 0 { error } else { error.nowhere() });
                    }
                    method
                }
            };
            if let Value::Function(_) = method {
                return self.call_value(host, method, &[current, key]);
            }
            current = method;
        }
        Err(Error::message("loop in gettable"))
    }

    /// `object[key] = value`
    #[inline(never)]
    pub(crate) fn set_index(
        &mut self,
        host: &mut dyn Host,
        object: Value,
        key: Value,
        value: Value,
    ) -> Result<()> {
        self.charge_key(host, key)?;
        if let Value::Table(id) = object {
            self.reserve_growth(id)?;
        }
        let key = self.heap.canonical(key);
        let mut current = object;
        for step in 0..MAX_CHAIN {
            let method = match current {
                Value::Table(id) => {
                    let table = self.heap.at(id);
                    if table.readonly {
                        return Err(Error::message(READONLY));
                    }
                    let Some(meta) = table.meta else {
                        return self.set_checked(id, key, value);
                    };
                    check_key(key)?;
                    if !table.get(key).is_nil() {
                        return self.set_checked(id, key, value);
                    }
                    let method = self.table_event(meta, Event::NewIndex);
                    if method.is_nil() {
                        return self.set_checked(id, key, value);
                    }
                    method
                }
                _ => {
                    let method = self.event(current, Event::NewIndex);
                    if method.is_nil() {
                        let error = Error::type_error("index", current);
                        return Err(if step == 0 { error } else { error.nowhere() });
                    }
                    method
                }
            };
            if let Value::Function(_) = method {
                return self.call_discarding(host, method, &[current, key, value]);
            }
            current = method;
        }
        Err(Error::message("loop in settable"))
    }

    /// A raw write that refuses nil and NaN as keys.
    pub(crate) fn set_checked(&mut self, table: TableId, key: Value, value: Value) -> Result<()> {
        check_key(key)?;
        self.heap.raw_set(table, key, value);
        Ok(())
    }
}

fn check_key(key: Value) -> Result<()> {
    match key {
        Value::Nil => Err(Error::message("table index is nil")),
        Value::Number(n) if n.is_nan() => Err(Error::message("table index is NaN")),
        _ => Ok(()),
    }
}
