//! `string.format`.

use super::args::to_integer;
use crate::base::printf::Spec;
use crate::base::value::Str;
use crate::vm::host::Host;
use crate::vm::{Args, Result, Vm};

/// The longest text of a conversion that is neither `%s` nor `%q`: a double in full with the most digits after it.
const MAX_ITEM: usize = 512;
/// Bytes that are quoted between two charges.
const CHUNK: usize = 1 << 14;

pub(crate) fn format(vm: &mut Vm, host: &mut dyn Host, args: Args) -> Result<usize> {
    let template = vm.check_str(args, 0)?;
    vm.reserve_memory(vm.heap.bytes_of(template).len())?;
    let template = vm.heap.bytes_of(template).to_vec();
    vm.holding(template.len(), |vm| fill(vm, host, args, &template))
}

fn fill(vm: &mut Vm, host: &mut dyn Host, args: Args, template: &[u8]) -> Result<usize> {
    let mut out = Vec::new();
    let mut next = 0;
    let mut at = 0;
    while at < template.len() {
        let rest = &template[at..];
        let plain = rest.iter().position(|b| *b == b'%').unwrap_or(rest.len());
        if plain > 0 {
            vm.room(host, &mut out, plain)?;
            out.extend_from_slice(&rest[..plain]);
            at += plain;
            continue;
        }
        at += 1;
        vm.charge(host, 1)?;
        vm.room(host, &mut out, MAX_ITEM)?;
        if template.get(at) == Some(&b'%') {
            out.push(b'%');
            at += 1;
            continue;
        }
        next += 1;
        if next >= args.count {
            return Err(vm.bad_argument(next, "no value"));
        }
        let spec = read_spec(vm, template, &mut at)?;
        let conversion = template.get(at).copied().unwrap_or(0);
        at += 1;
        convert(vm, host, args, next, (spec, conversion), &mut out)?;
    }
    let value = crate::base::value::Value::Str(vm.heap.string_from(out));
    vm.give(value)
}

fn read_spec(vm: &mut Vm, template: &[u8], at: &mut usize) -> Result<Spec> {
    let mut spec = Spec::default();
    let start = *at;
    while let Some(flag @ (b'-' | b'+' | b' ' | b'#' | b'0')) = template.get(*at) {
        match flag {
            b'-' => spec.left = true,
            b'+' => spec.plus = true,
            b' ' => spec.space = true,
            b'#' => spec.alternate = true,
            _ => spec.zero = true,
        }
        *at += 1;
    }
    if *at - start >= 6 {
        return Err(vm.error("invalid format (repeated flags)"));
    }
    spec.width = two_digits(template, at).unwrap_or(0);
    if template.get(*at) == Some(&b'.') {
        *at += 1;
        spec.precision = Some(two_digits(template, at).unwrap_or(0));
    }
    if template.get(*at).is_some_and(u8::is_ascii_digit) {
        return Err(vm.error("invalid format (width or precision too long)"));
    }
    Ok(spec)
}

fn two_digits(template: &[u8], at: &mut usize) -> Option<usize> {
    let mut number = None;
    for _ in 0..2 {
        let Some(digit) = template.get(*at).filter(|b| b.is_ascii_digit()) else {
            break;
        };
        number = Some(number.unwrap_or(0) * 10 + (digit - b'0') as usize);
        *at += 1;
    }
    number
}

fn convert(
    vm: &mut Vm,
    host: &mut dyn Host,
    args: Args,
    next: usize,
    (spec, conversion): (Spec, u8),
    out: &mut Vec<u8>,
) -> Result<()> {
    match conversion {
        b'c' => {
            // C's conversion to an int: what does not fit becomes the smallest one.
            let number = to_integer(vm.check_number(args, next)?);
            let code = i32::try_from(number).unwrap_or(i32::MIN) as u8;
            // C formats it like a string and Lua takes what stands before the first zero byte.
            let spec = Spec {
                precision: None,
                ..spec
            };
            let from = out.len();
            spec.text(out, &[code]);
            if let Some(zero) = out[from..].iter().position(|b| *b == 0) {
                out.truncate(from + zero);
            }
        }
        b'd' | b'i' => spec.signed(out, to_integer(vm.check_number(args, next)?)),
        b'o' | b'u' | b'x' | b'X' => {
            let number = vm.check_number(args, next)?;
            spec.unsigned(out, to_unsigned(number), conversion);
        }
        b'e' | b'E' | b'f' | b'g' | b'G' => {
            spec.float(out, vm.check_number(args, next)?, conversion)
        }
        b'q' => {
            let s = vm.check_str(args, next)?;
            quote(vm, host, s, out)?;
        }
        b's' => {
            let s = vm.check_str(args, next)?;
            vm.room(host, out, vm.heap.bytes_of(s).len() + MAX_ITEM)?;
            let text = vm.heap.bytes_of(s);
            if spec.precision.is_none() && text.len() >= 100 {
                out.extend_from_slice(text);
            } else {
                // C's formatting stops at a zero byte.
                let text = text.split(|b| *b == 0).next().unwrap_or(text);
                spec.text(out, text);
            }
        }
        _ => {
            let mut text = b"invalid option '%".to_vec();
            if conversion != 0 {
                text.push(conversion);
            }
            text.extend_from_slice(b"' to 'format'");
            return Err(vm.error(text));
        }
    }
    Ok(())
}

/// A double to an unsigned integer as compilers for x86-64 convert it.
fn to_unsigned(number: f64) -> u64 {
    if number >= 9_223_372_036_854_775_808.0 {
        (to_integer(number - 9_223_372_036_854_775_808.0) as u64) ^ (1 << 63)
    } else {
        to_integer(number) as u64
    }
}

fn quote(vm: &mut Vm, host: &mut dyn Host, s: Str, out: &mut Vec<u8>) -> Result<()> {
    out.push(b'"');
    let len = vm.heap.bytes_of(s).len();
    for start in (0..len).step_by(CHUNK) {
        let end = len.min(start + CHUNK);
        vm.room(host, out, (end - start) * 4 + 1)?;
        for &byte in &vm.heap.bytes_of(s)[start..end] {
            match byte {
                b'"' | b'\\' | b'\n' => out.extend_from_slice(&[b'\\', byte]),
                b'\r' => out.extend_from_slice(b"\\r"),
                0 => out.extend_from_slice(b"\\000"),
                _ => out.push(byte),
            }
        }
    }
    out.push(b'"');
    Ok(())
}
