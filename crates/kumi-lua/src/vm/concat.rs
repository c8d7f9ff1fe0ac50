//! The `..` operator over a range of registers.

use super::{Error, Event, Result, SMALL, Vm};
use crate::base::number;
use crate::base::value::Value;
use crate::vm::host::Host;

impl Vm {
    /// Concatenates stack places `first..=last`; `base` is the frame's, for errors.
    pub(crate) fn concat(
        &mut self,
        host: &mut dyn Host,
        base: usize,
        first: usize,
        last: usize,
    ) -> Result<Value> {
        let mut last = last;
        loop {
            let right = self.stack[last];
            let left = self.stack[last - 1];
            let strings = is_text(left) && is_text(right);
            if strings {
                // Everything to the left that is text joins in one go.
                let mut from = last - 1;
                while from > first && is_text(self.stack[from - 1]) {
                    from -= 1;
                }
                let joined = self.join(host, from, last)?;
                self.stack[from] = joined;
                last = from;
            } else {
                let result = match self.binary_event(host, left, right, Event::Concat)? {
                    Some(result) => result,
                    None => {
                        let (value, place) = if is_text(left) {
                            (right, last)
                        } else {
                            (left, last - 1)
                        };
                        return Err(Error::type_error("concatenate", value)
                            .at_register((place - base) as u32));
                    }
                };
                last -= 1;
                self.stack[last] = result;
            }
            if last == first {
                return Ok(self.stack[first]);
            }
        }
    }

    fn join(&mut self, host: &mut dyn Host, from: usize, last: usize) -> Result<Value> {
        let mut text = std::mem::take(&mut self.scratch);
        text.clear();
        let mut total = 0;
        for value in &self.stack[from..=last] {
            if let Value::Str(s) = value {
                total += self.heap.bytes_of(*s).len();
            }
        }
        if total > SMALL {
            // Numbers are written in fewer bytes than these.
            self.room(host, &mut text, total + (last - from) * 32)?;
        }
        for value in &self.stack[from..=last] {
            match value {
                Value::Str(s) => text.extend_from_slice(self.heap.bytes_of(*s)),
                Value::Number(n) => number::write(&mut text, *n),
                _ => {}
            }
        }
        let joined = Value::Str(if text.len() > 1 << 12 {
            self.heap.string_from(std::mem::take(&mut text))
        } else {
            self.heap.string(&text)
        });
        self.scratch = text;
        Ok(joined)
    }
}

fn is_text(value: Value) -> bool {
    matches!(value, Value::Str(_) | Value::Number(_))
}
