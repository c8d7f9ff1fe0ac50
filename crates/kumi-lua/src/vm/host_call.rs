//! What a host function sees of the script that called it.

use crate::base::number;
use crate::base::value::{TableId, Value};
use crate::vm::{Args, Error, Vm};

/// A call from a script to a host function: its arguments, and a place for its results.
#[derive(Debug)]
pub struct Call<'a> {
    vm: &'a mut Vm,
    args: Args,
    first_result: usize,
}

impl<'a> Call<'a> {
    pub(crate) fn new(vm: &'a mut Vm, args: Args) -> Call<'a> {
        let first_result = vm.top;
        Call {
            vm,
            args,
            first_result,
        }
    }

    pub(crate) fn results(&self) -> usize {
        self.vm.top - self.first_result
    }

    /// The number of arguments.
    pub fn len(&self) -> usize {
        self.args.count
    }

    /// Whether there are no arguments.
    pub fn is_empty(&self) -> bool {
        self.args.count == 0
    }

    /// An argument, counted from zero; nil past the last.
    pub fn arg(&self, at: usize) -> Value {
        self.vm.arg(self.args, at)
    }

    /// The bytes of an argument that is a string.
    pub fn arg_bytes(&self, at: usize) -> Option<&[u8]> {
        self.bytes(self.arg(at))
    }

    /// The bytes of a string value.
    pub fn bytes(&self, value: Value) -> Option<&[u8]> {
        match value {
            Value::Str(s) => Some(self.vm.heap.bytes_of(s)),
            _ => None,
        }
    }

    /// Appends a result.
    pub fn push(&mut self, value: Value) {
        self.vm.push(value);
    }

    /// Appends a string result.
    pub fn push_bytes(&mut self, bytes: &[u8]) {
        let value = self.vm.str(bytes);
        self.vm.push(value);
    }

    /// Makes a string value.
    pub fn string(&mut self, bytes: &[u8]) -> Value {
        self.vm.str(bytes)
    }

    /// Makes a table with room for `array` elements and `pairs` other keys.
    pub fn table(&mut self, array: usize, pairs: usize) -> TableId {
        self.vm.heap.table(array, pairs)
    }

    /// Fails with `not enough memory` if this many more bytes pass the limit, also after a full collection. Values the
    /// host goes on to use must be arguments, results, held or reachable from those.
    pub fn reserve(&mut self, bytes: usize) -> Result<(), Error> {
        self.vm.reserve_memory(bytes)
    }

    /// Works while a buffer of the host, of this many bytes, counts as memory of the state.
    pub fn holding<T>(
        &mut self,
        bytes: usize,
        work: impl FnOnce(&mut Call<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let (args, first_result) = (self.args, self.first_result);
        self.vm.holding(bytes, |vm| {
            let mut call = Call {
                vm,
                args,
                first_result,
            };
            work(&mut call)
        })
    }

    /// Charges work of the host, in instructions, so that [`Host::interrupt`](crate::Host::interrupt) is called in time.
    pub fn spend(&mut self, work: usize) {
        self.vm.spend(work);
    }

    /// Keeps a value from being collected until [`Call::unhold`]. No result may be pushed in between.
    pub fn hold(&mut self, value: Value) {
        self.vm.push(value);
    }

    /// Lets go of the last `count` values that are held.
    pub fn unhold(&mut self, count: usize) {
        self.vm.top = self.vm.top.saturating_sub(count).max(self.first_result);
    }

    /// Reads a field of a table without metamethods.
    pub fn field(&mut self, table: TableId, name: &[u8]) -> Value {
        let key = self.vm.str(name);
        self.vm.heap.raw_get(table, key)
    }

    /// Reads an element of a table without metamethods.
    pub fn element(&self, table: TableId, index: usize) -> Value {
        self.vm.heap.at(table).get_index(index)
    }

    /// Sets a field of a table.
    pub fn set_field(&mut self, table: TableId, name: &[u8], value: Value) {
        let key = self.vm.str(name);
        self.vm.heap.raw_set(table, key, value);
    }

    /// Sets an element of a table, counted from one.
    pub fn set_element(&mut self, table: TableId, index: usize, value: Value) {
        self.vm.heap.raw_set_index(table, index, value);
    }

    /// Sets any key of a table; nil and NaN are no keys and are left out.
    pub fn set(&mut self, table: TableId, key: Value, value: Value) {
        if !key.is_nil() && !matches!(key, Value::Number(number) if number.is_nan()) {
            self.vm.heap.raw_set(table, key, value);
        }
    }

    /// The pair after a key in the order of `next`; `None` after the last or for an unknown key. Nil starts.
    pub fn next(&mut self, table: TableId, key: Value) -> Option<(Value, Value)> {
        let key = self.vm.heap.canonical(key);
        self.vm.heap.at(table).next(key).ok().flatten()
    }

    /// Keeps a function value beyond the call, until [`Lua::release`](crate::Lua::release).
    pub fn keep(&mut self, value: Value) -> Option<Function> {
        matches!(value, Value::Function(_)).then(|| self.vm.pin(value))
    }

    /// Appends the text `tostring` gives a number.
    pub fn write_number(out: &mut Vec<u8>, number: f64) {
        number::write(out, number);
    }

    /// An error with the position of the calling script before its text.
    pub fn error(&mut self, text: &str) -> Error {
        self.vm.error(text)
    }

    /// An error that is any value, such as a table with `err`.
    pub fn raise(&mut self, value: Value) -> Error {
        Error::thrown(value)
    }

    /// The chunk name and line of the script that called, if Lua code did.
    pub fn caller(&self) -> Option<(Vec<u8>, u32)> {
        self.vm.raised_at()
    }
}

/// A function the host keeps. It stays until [`Lua::release`](crate::Lua::release) or the end of the state.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Function {
    pub(crate) pin: usize,
}

impl Vm {
    /// Keeps a value for the host.
    pub(crate) fn pin(&mut self, value: Value) -> Function {
        let pin = match self.pinned.iter().position(Option::is_none) {
            Some(pin) if self.pinned.len() > 64 || pin < 8 => pin,
            _ => {
                self.pinned.push(None);
                self.pinned.len() - 1
            }
        };
        self.pinned[pin] = Some(value);
        Function { pin }
    }
}
