//! The math library.

use crate::base::value::Value;
use crate::vm::host::Host;
use crate::vm::{Args, NativeFn, Result, Vm};

const FUNCTIONS: &[(&str, NativeFn)] = &[
    ("abs", |vm, _, args| unary(vm, args, f64::abs)),
    ("acos", |vm, _, args| unary(vm, args, f64::acos)),
    ("asin", |vm, _, args| unary(vm, args, f64::asin)),
    ("atan", |vm, _, args| unary(vm, args, f64::atan)),
    ("atan2", |vm, _, args| binary(vm, args, f64::atan2)),
    ("ceil", |vm, _, args| unary(vm, args, f64::ceil)),
    ("cos", |vm, _, args| unary(vm, args, f64::cos)),
    ("cosh", |vm, _, args| unary(vm, args, f64::cosh)),
    ("deg", |vm, _, args| {
        unary(vm, args, |x| x / RADIANS_PER_DEGREE)
    }),
    ("exp", |vm, _, args| unary(vm, args, f64::exp)),
    ("floor", |vm, _, args| unary(vm, args, f64::floor)),
    ("fmod", |vm, _, args| binary(vm, args, |x, y| x % y)),
    ("frexp", frexp),
    ("ldexp", ldexp),
    ("log", |vm, _, args| unary(vm, args, f64::ln)),
    ("log10", |vm, _, args| unary(vm, args, f64::log10)),
    ("max", |vm, _, args| extreme(vm, args, |x, best| x > best)),
    ("min", |vm, _, args| extreme(vm, args, |x, best| x < best)),
    ("mod", |vm, _, args| binary(vm, args, |x, y| x % y)),
    ("modf", modf),
    ("pow", |vm, _, args| binary(vm, args, f64::powf)),
    ("rad", |vm, _, args| {
        unary(vm, args, |x| x * RADIANS_PER_DEGREE)
    }),
    ("random", random),
    ("randomseed", randomseed),
    ("sin", |vm, _, args| unary(vm, args, f64::sin)),
    ("sinh", |vm, _, args| unary(vm, args, f64::sinh)),
    ("sqrt", |vm, _, args| unary(vm, args, f64::sqrt)),
    ("tan", |vm, _, args| unary(vm, args, f64::tan)),
    ("tanh", |vm, _, args| unary(vm, args, f64::tanh)),
];

const RADIANS_PER_DEGREE: f64 = std::f64::consts::PI / 180.0;

pub(crate) fn open(vm: &mut Vm) {
    let table = super::library(vm, "math", FUNCTIONS);
    vm.set_field(table, "pi", Value::Number(std::f64::consts::PI));
    vm.set_field(table, "huge", Value::Number(f64::INFINITY));
}

fn unary(vm: &mut Vm, args: Args, function: fn(f64) -> f64) -> Result<usize> {
    let x = vm.check_number(args, 0)?;
    vm.give(Value::Number(function(x)))
}

fn binary(vm: &mut Vm, args: Args, function: fn(f64, f64) -> f64) -> Result<usize> {
    // Compilers for x86-64 evaluate the original's arguments from the last to the first.
    let y = vm.check_number(args, 1)?;
    let x = vm.check_number(args, 0)?;
    vm.give(Value::Number(function(x, y)))
}

fn extreme(vm: &mut Vm, args: Args, better: fn(f64, f64) -> bool) -> Result<usize> {
    let mut best = vm.check_number(args, 0)?;
    for at in 1..args.count {
        let x = vm.check_number(args, at)?;
        if better(x, best) {
            best = x;
        }
    }
    vm.give(Value::Number(best))
}

fn frexp(vm: &mut Vm, _: &mut dyn Host, args: Args) -> Result<usize> {
    let x = vm.check_number(args, 0)?;
    let (mantissa, exponent) = if x == 0.0 || !x.is_finite() {
        (x, 0)
    } else {
        // A subnormal is made normal first.
        let (scaled, shift) = if x.abs() < f64::MIN_POSITIVE {
            (x * 2f64.powi(54), 54)
        } else {
            (x, 0)
        };
        let bits = scaled.to_bits();
        let exponent = ((bits >> 52) & 0x7FF) as i32 - 1022 - shift;
        let mantissa = f64::from_bits(bits & !(0x7FF << 52) | 1022 << 52);
        (mantissa, exponent)
    };
    vm.push(Value::Number(mantissa));
    vm.push(Value::Number(f64::from(exponent)));
    Ok(2)
}

fn ldexp(vm: &mut Vm, _: &mut dyn Host, args: Args) -> Result<usize> {
    let power = vm.check_int32(args, 1)?;
    let x = vm.check_number(args, 0)?;
    let result = crate::base::number::scale_by_two(x, power.clamp(-5000, 5000));
    vm.give(Value::Number(result))
}

fn modf(vm: &mut Vm, _: &mut dyn Host, args: Args) -> Result<usize> {
    let x = vm.check_number(args, 0)?;
    let (whole, fraction) = if x.is_infinite() {
        (x, 0f64.copysign(x))
    } else {
        (x.trunc(), (x - x.trunc()).copysign(x))
    };
    vm.push(Value::Number(whole));
    vm.push(Value::Number(fraction));
    Ok(2)
}

fn random(vm: &mut Vm, _: &mut dyn Host, args: Args) -> Result<usize> {
    let fraction = vm.random.fraction();
    let result = match args.count {
        0 => fraction,
        1 => {
            let high = vm.check_int32(args, 0)?;
            if high < 1 {
                return Err(vm.bad_argument(0, "interval is empty"));
            }
            (fraction * f64::from(high)).floor() + 1.0
        }
        2 => {
            let low = vm.check_int32(args, 0)?;
            let high = vm.check_int32(args, 1)?;
            if low > high {
                return Err(vm.bad_argument(1, "interval is empty"));
            }
            // The width is a C int.
            let width = high.wrapping_sub(low).wrapping_add(1);
            (fraction * f64::from(width)).floor() + f64::from(low)
        }
        _ => return Err(vm.error("wrong number of arguments")),
    };
    vm.give(Value::Number(result))
}

fn randomseed(vm: &mut Vm, _: &mut dyn Host, args: Args) -> Result<usize> {
    let seed = vm.check_int32(args, 0)?;
    vm.random.seed(seed);
    Ok(0)
}
