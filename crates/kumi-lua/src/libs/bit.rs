//! Bit operations on 32-bit integers, as Lua BitOp defines them.

use crate::base::value::Value;
use crate::vm::host::Host;
use crate::vm::{Args, NativeFn, Result, Vm};

const FUNCTIONS: &[(&str, NativeFn)] = &[
    ("arshift", |vm, _, args| {
        shift(vm, args, |x, n| ((x as i32) >> n) as u32)
    }),
    ("band", |vm, _, args| fold(vm, args, |x, y| x & y)),
    ("bnot", |vm, _, args| single(vm, args, |x| !x)),
    ("bor", |vm, _, args| fold(vm, args, |x, y| x | y)),
    ("bswap", |vm, _, args| single(vm, args, u32::swap_bytes)),
    ("bxor", |vm, _, args| fold(vm, args, |x, y| x ^ y)),
    ("lshift", |vm, _, args| shift(vm, args, |x, n| x << n)),
    ("rol", |vm, _, args| shift(vm, args, u32::rotate_left)),
    ("ror", |vm, _, args| shift(vm, args, u32::rotate_right)),
    ("rshift", |vm, _, args| shift(vm, args, |x, n| x >> n)),
    ("tobit", |vm, _, args| single(vm, args, |x| x)),
    ("tohex", tohex),
];

pub(crate) fn open(vm: &mut Vm) {
    super::library(vm, "bit", FUNCTIONS);
}

/// The low 32 bits of a number rounded to an integer: adding 2^52 + 2^51 moves them to the end of the mantissa.
fn bits(vm: &mut Vm, args: Args, at: usize) -> Result<u32> {
    let number = vm.check_number(args, at)?;
    Ok((number + 6_755_399_441_055_744.0).to_bits() as u32)
}

fn give(vm: &mut Vm, bits: u32) -> Result<usize> {
    vm.give(Value::Number(f64::from(bits as i32)))
}

fn single(vm: &mut Vm, args: Args, function: fn(u32) -> u32) -> Result<usize> {
    let x = bits(vm, args, 0)?;
    give(vm, function(x))
}

fn fold(vm: &mut Vm, args: Args, function: fn(u32, u32) -> u32) -> Result<usize> {
    let mut result = bits(vm, args, 0)?;
    for at in (1..args.count).rev() {
        result = function(result, bits(vm, args, at)?);
    }
    give(vm, result)
}

fn shift(vm: &mut Vm, args: Args, function: fn(u32, u32) -> u32) -> Result<usize> {
    let x = bits(vm, args, 0)?;
    let n = bits(vm, args, 1)? & 31;
    give(vm, function(x, n))
}

fn tohex(vm: &mut Vm, _: &mut dyn Host, args: Args) -> Result<usize> {
    let x = bits(vm, args, 0)?;
    let digits = if args.count > 1 {
        bits(vm, args, 1)? as i32
    } else {
        8
    };
    let text = format!("{x:08x}");
    let count = digits.unsigned_abs().min(8) as usize;
    let text = &text[8 - count..];
    if digits < 0 {
        vm.give_bytes(text.to_ascii_uppercase().as_bytes())
    } else {
        vm.give_bytes(text.as_bytes())
    }
}
