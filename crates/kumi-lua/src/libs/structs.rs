//! The `struct` library of Redis: binary packing with sizes, alignment and byte order.

use super::args::to_integer;
use crate::base::value::Value;
use crate::vm::host::Host;
use crate::vm::{Args, MAX_NATIVE_SLOTS, Result, Vm};

/// Largest size of an integer option.
const MAX_INTEGER: i64 = 32;
const MAX_ALIGNMENT: i64 = 8;

pub(crate) fn open(vm: &mut Vm) {
    super::library(
        vm,
        "struct",
        &[("pack", pack), ("size", size), ("unpack", unpack)],
    );
}

/// A format string being read.
struct Format {
    text: Vec<u8>,
    at: usize,
    little: bool,
    align: usize,
}

impl Format {
    fn read(vm: &mut Vm, args: Args) -> Result<Format> {
        let text = vm.check_str(args, 0)?;
        vm.reserve_memory(vm.heap.bytes_of(text).len())?;
        let text = vm.heap.bytes_of(text);
        // Formats are C strings.
        let end = text.iter().position(|b| *b == 0).unwrap_or(text.len());
        Ok(Format {
            text: text[..end].to_vec(),
            at: 0,
            little: true,
            align: 1,
        })
    }

    /// The next option and its size.
    fn next(&mut self, vm: &mut Vm) -> Result<Option<(u8, usize)>> {
        let Some(&option) = self.text.get(self.at) else {
            return Ok(None);
        };
        self.at += 1;
        let size = match option {
            b'b' | b'B' | b'x' => 1,
            b'h' | b'H' => 2,
            b'f' => 4,
            b'l' | b'L' | b'T' | b'd' => 8,
            b'c' => self.number(vm, 1)?,
            b'i' | b'I' => {
                let size = self.number(vm, 4)?;
                if size > MAX_INTEGER {
                    return Err(vm.error(format!(
                        "integral size {size} is larger than limit of {MAX_INTEGER}"
                    )));
                }
                size
            }
            _ => 0,
        };
        Ok(Some((option, size as usize)))
    }

    fn number(&mut self, vm: &mut Vm, default: i64) -> Result<i64> {
        let mut number = None;
        while let Some(digit) = self.text.get(self.at).filter(|b| b.is_ascii_digit()) {
            let grown = number.unwrap_or(0) * 10 + i64::from(digit - b'0');
            if grown > i64::from(i32::MAX) {
                return Err(vm.error("integral size overflow"));
            }
            number = Some(grown);
            self.at += 1;
        }
        Ok(number.unwrap_or(default))
    }

    /// Padding before an item.
    fn padding(&self, position: usize, option: u8, size: usize) -> usize {
        if size == 0 || option == b'c' {
            return 0;
        }
        let size = size.min(self.align);
        size.wrapping_sub(position & (size - 1)) & (size - 1)
    }

    fn control(&mut self, vm: &mut Vm, option: u8) -> Result<()> {
        match option {
            b' ' => {}
            b'>' => self.little = false,
            b'<' => self.little = true,
            b'!' => {
                let align = self.number(vm, MAX_ALIGNMENT)?;
                if align <= 0 || align & (align - 1) != 0 {
                    return Err(vm.error(format!("alignment {align} is not a power of 2")));
                }
                self.align = align as usize;
            }
            _ => {
                let mut text = b"invalid format option '".to_vec();
                text.extend_from_slice(&[option, b'\'']);
                return Err(vm.bad_argument(0, text));
            }
        }
        Ok(())
    }
}

fn is_integer(option: u8) -> bool {
    matches!(
        option,
        b'b' | b'B' | b'h' | b'H' | b'l' | b'L' | b'T' | b'i' | b'I'
    )
}

fn pack(vm: &mut Vm, host: &mut dyn Host, args: Args) -> Result<usize> {
    let mut format = Format::read(vm, args)?;
    let mut out = Vec::new();
    let mut arg = 1;
    // The original keeps a nil after its arguments: the first missing one is reported as that.
    let args = Args {
        base: args.base,
        count: args.count + 1,
    };
    vm.push(Value::Nil);
    while let Some((option, mut size)) = format.next(vm)? {
        let padding = format.padding(out.len(), option, size);
        vm.charge(host, 1)?;
        vm.room(host, &mut out, padding + MAX_INTEGER as usize)?;
        out.resize(out.len() + padding, 0);
        match option {
            _ if is_integer(option) => {
                let number = vm.check_number(args, arg)?;
                arg += 1;
                put_integer(&mut out, number, size, format.little);
            }
            b'x' => out.push(0),
            b'f' => {
                let number = vm.check_number(args, arg)? as f32;
                arg += 1;
                let bytes = number.to_le_bytes();
                put(&mut out, &bytes, format.little);
            }
            b'd' => {
                let number = vm.check_number(args, arg)?;
                arg += 1;
                let bytes = number.to_le_bytes();
                put(&mut out, &bytes, format.little);
            }
            b'c' | b's' => {
                let s = vm.check_str(args, arg)?;
                arg += 1;
                let len = vm.heap.bytes_of(s).len();
                if size == 0 {
                    size = len;
                }
                if len < size {
                    return Err(vm.bad_argument(arg, "string too short"));
                }
                vm.room(host, &mut out, size + 1)?;
                out.extend_from_slice(&vm.heap.bytes_of(s)[..size]);
                if option == b's' {
                    out.push(0);
                }
            }
            _ => format.control(vm, option)?,
        }
    }
    let value = Value::Str(vm.heap.string_from(out));
    vm.give(value)
}

fn put(out: &mut Vec<u8>, bytes: &[u8], little: bool) {
    if little {
        out.extend_from_slice(bytes);
    } else {
        out.extend(bytes.iter().rev());
    }
}

fn put_integer(out: &mut Vec<u8>, number: f64, size: usize, little: bool) {
    let value = if number < 0.0 {
        to_integer(number) as u64
    } else if number >= 9_223_372_036_854_775_808.0 {
        (to_integer(number - 9_223_372_036_854_775_808.0) as u64) ^ (1 << 63)
    } else {
        to_integer(number) as u64
    };
    // Bytes past the eighth are zero.
    let mut bytes = value.to_le_bytes().to_vec();
    bytes.resize(size, 0);
    put(out, &bytes, little);
}

fn unpack(vm: &mut Vm, host: &mut dyn Host, args: Args) -> Result<usize> {
    let mut format = Format::read(vm, args)?;
    let data = vm.check_str(args, 1)?;
    let len = vm.heap.bytes_of(data).len();
    let start = vm.opt_int(args, 2, 1)?;
    if start == 0 {
        return Err(vm.bad_argument(2, "offset must be 1 or greater"));
    }
    // A negative place is beyond any data.
    let mut position = start.wrapping_sub(1) as usize;
    let first = vm.top;
    while let Some((option, mut size)) = format.next(vm)? {
        position = position.saturating_add(format.padding(position, option, size));
        check_room(vm, position, size, len)?;
        if vm.top - args.base + 2 > MAX_NATIVE_SLOTS {
            return Err(vm.error("stack overflow (too many results)"));
        }
        vm.charge(host, 1)?;
        match option {
            _ if is_integer(option) => {
                let bytes = &vm.heap.bytes_of(data)[position..position + size];
                let number = get_integer(bytes, format.little, option.is_ascii_lowercase());
                vm.push(Value::Number(number));
            }
            b'x' => {}
            b'f' => {
                let bits = get_bits(
                    &vm.heap.bytes_of(data)[position..position + 4],
                    format.little,
                );
                vm.push(Value::Number(f64::from(f32::from_bits(bits as u32))));
            }
            b'd' => {
                let bits = get_bits(
                    &vm.heap.bytes_of(data)[position..position + 8],
                    format.little,
                );
                vm.push(Value::Number(f64::from_bits(bits)));
            }
            b'c' => {
                if size == 0 {
                    size = previous_size(vm, first)?;
                    check_room(vm, position, size, len)?;
                }
                let value = vm.substring(data, position, position + size)?;
                vm.push(value);
            }
            b's' => {
                let rest = &vm.heap.bytes_of(data)[position..];
                let Some(end) = rest.iter().position(|b| *b == 0) else {
                    return Err(vm.error("unfinished string in data"));
                };
                let value = vm.substring(data, position, position + end)?;
                vm.push(value);
                size = end + 1;
            }
            _ => format.control(vm, option)?,
        }
        position = position.wrapping_add(size);
    }
    vm.push(Value::Number(position.wrapping_add(1) as i64 as f64));
    Ok(vm.top - first)
}

fn check_room(vm: &mut Vm, position: usize, size: usize, len: usize) -> Result<()> {
    if size > len || position > len - size {
        return Err(vm.bad_argument(1, "data string too short"));
    }
    Ok(())
}

/// Takes the last result away: it is the size of a `c0`.
fn previous_size(vm: &mut Vm, first: usize) -> Result<usize> {
    let last = if vm.top > first {
        vm.stack[vm.top - 1]
    } else {
        Value::Nil
    };
    let Some(number) = vm.number_of(last) else {
        return Err(vm.error("format 'c0' needs a previous size"));
    };
    vm.top -= 1;
    // What does not fit is larger than any data.
    Ok(usize::try_from(to_integer(number)).unwrap_or(usize::MAX))
}

fn get_bits(bytes: &[u8], little: bool) -> u64 {
    let join = |n: u64, byte: &u8| n << 8 | u64::from(*byte);
    if little {
        bytes.iter().rev().fold(0, join)
    } else {
        bytes.iter().fold(0, join)
    }
}

fn get_integer(bytes: &[u8], little: bool, signed: bool) -> f64 {
    let value = get_bits(bytes, little);
    if !signed {
        return value as f64;
    }
    // The shift counts modulo 64, as the processor does it for sizes the original does not handle.
    let mask = u64::MAX.wrapping_shl((bytes.len() as u32 * 8).wrapping_sub(1));
    let value = if value & mask != 0 {
        value | mask
    } else {
        value
    };
    value as i64 as f64
}

fn size(vm: &mut Vm, host: &mut dyn Host, args: Args) -> Result<usize> {
    let mut format = Format::read(vm, args)?;
    let mut position = 0usize;
    while let Some((option, size)) = format.next(vm)? {
        vm.charge(host, 1)?;
        position += format.padding(position, option, size);
        if option == b's' {
            return Err(vm.bad_argument(0, "option 's' has no fixed size"));
        }
        if option == b'c' && size == 0 {
            return Err(vm.bad_argument(0, "option 'c0' has no fixed size"));
        }
        if !option.is_ascii_alphanumeric() {
            format.control(vm, option)?;
        }
        position += size;
    }
    vm.give(Value::Number(position as f64))
}
