//! `table.sort`: the quicksort of Lua 5.1, step by step, because an inconsistent order function and equal elements make
//! its steps visible. It recurses into the smaller half only, so its depth is the logarithm of the length.

use super::base::check_writable;
use crate::base::value::{TableId, Value};
use crate::vm::host::Host;
use crate::vm::{Args, Result, Vm};

struct Sorter<'a> {
    vm: &'a mut Vm,
    host: &'a mut dyn Host,
    table: TableId,
    order: Option<Value>,
}

pub(crate) fn sort(vm: &mut Vm, host: &mut dyn Host, args: Args) -> Result<usize> {
    let table = vm.check_table(args, 0)?;
    let len = vm.border(table) as i64;
    let order = if vm.arg(args, 1).is_nil() {
        None
    } else {
        Some(vm.check_function(args, 1)?)
    };
    let mut sorter = Sorter {
        vm,
        host,
        table,
        order,
    };
    sorter.sort(1, len)?;
    Ok(0)
}

impl Sorter<'_> {
    fn get(&self, at: i64) -> Value {
        self.vm.heap.at(self.table).get_number(at as f64)
    }

    fn set(&mut self, at: i64, value: Value) -> Result<()> {
        check_writable(self.vm, self.table)?;
        match usize::try_from(at) {
            Ok(at) => self.vm.heap.raw_set_index(self.table, at, value),
            Err(_) => self
                .vm
                .heap
                .raw_set(self.table, Value::Number(at as f64), value),
        }
        Ok(())
    }

    fn swap(&mut self, a: i64, b: i64) -> Result<()> {
        let (x, y) = (self.get(a), self.get(b));
        self.set(a, y)?;
        self.set(b, x)
    }

    fn less(&mut self, a: Value, b: Value) -> Result<bool> {
        self.vm.charge(self.host, 4)?;
        match self.order {
            Some(order) => Ok(!self.vm.call_value(self.host, order, &[a, b])?.is_falsy()),
            None => self.vm.less_than(self.host, a, b),
        }
    }

    fn sort(&mut self, mut low: i64, mut high: i64) -> Result<()> {
        while low < high {
            if self.less(self.get(high), self.get(low))? {
                self.swap(low, high)?;
            }
            if high - low == 1 {
                break;
            }
            let middle = (low + high) / 2;
            if self.less(self.get(middle), self.get(low))? {
                self.swap(middle, low)?;
            } else if self.less(self.get(high), self.get(middle))? {
                self.swap(middle, high)?;
            }
            if high - low == 2 {
                break;
            }
            let split = self.partition(low, high, middle)?;
            let (from, to);
            if split - low < high - split {
                (from, to) = (low, split - 1);
                low = split + 1;
            } else {
                (from, to) = (split + 1, high);
                high = split - 1;
            }
            self.sort(from, to)?;
        }
        Ok(())
    }

    /// Moves what is less than the middle element below it, the rest above; where it ends up.
    fn partition(&mut self, low: i64, high: i64, middle: i64) -> Result<i64> {
        let pivot = self.get(middle);
        // In the stack the collector finds it even if the order function removes it from the table.
        self.vm.push(pivot);
        self.swap(middle, high - 1)?;
        let (mut up, mut down) = (low, high - 1);
        loop {
            up += 1;
            while self.less(self.get(up), pivot)? {
                if up > high {
                    return Err(self.vm.error("invalid order function for sorting"));
                }
                up += 1;
            }
            down -= 1;
            while self.less(pivot, self.get(down))? {
                if down < low {
                    return Err(self.vm.error("invalid order function for sorting"));
                }
                down -= 1;
            }
            if down < up {
                break;
            }
            self.swap(up, down)?;
        }
        self.swap(high - 1, up)?;
        self.vm.top -= 1;
        Ok(up)
    }
}
