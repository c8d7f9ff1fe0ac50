//! Searching in strings: find, match, gmatch and gsub.

use super::string::relative;
use crate::base::value::{Str, Value};
use crate::libs::pattern::{Captured, MAX_CAPTURES, Matcher, invalid};
use crate::vm::heap::{Closure, Heap};
use crate::vm::host::Host;
use crate::vm::meter::Meter;
use crate::vm::{Args, Native, Result, Vm};

/// One match: its range and its captures.
struct Found {
    start: usize,
    end: usize,
    captures: Vec<Captured>,
}

/// The heap, and what counts the work that is done in it.
fn metered<'a>(vm: &'a mut Vm, host: &'a mut dyn Host) -> (&'a Heap, Meter<'a>) {
    let meter = Meter {
        fuel: &mut vm.fuel,
        interval: vm.limits.hook_interval,
        host,
    };
    (&vm.heap, meter)
}

/// Searches from `from`; the first match.
fn search(
    vm: &mut Vm,
    host: &mut dyn Host,
    src: Str,
    pat: Str,
    from: usize,
    anchored_only: bool,
) -> Result<Option<Found>> {
    let (heap, mut meter) = metered(vm, host);
    let source = heap.bytes_of(src);
    let pattern = heap.bytes_of(pat);
    meter.burn(pattern.len() / 64)?;
    let anchored = !anchored_only && pattern.first() == Some(&b'^');
    let skip = usize::from(anchored);
    let mut matcher = Matcher::new(source, pattern, meter);
    let mut start = from;
    while start <= source.len() {
        if let Some(end) = matcher.match_at(start, skip)? {
            let count = matcher.capture_count();
            let mut captures = Vec::with_capacity(count);
            for at in 0..count {
                captures.push(matcher.capture(at, start, end)?);
            }
            return Ok(Some(Found {
                start,
                end,
                captures,
            }));
        }
        if anchored {
            break;
        }
        start += 1;
    }
    Ok(None)
}

fn captured(vm: &mut Vm, src: Str, capture: Captured) -> Result<Value> {
    Ok(match capture {
        Captured::Unfinished => return Err(invalid("unfinished capture")),
        Captured::Position(at) => Value::Number(at as f64),
        Captured::Range(start, end) => vm.substring(src, start, end)?,
    })
}

/// Pushes the captures, or the whole match if there are none and it is wanted.
fn push_captures(vm: &mut Vm, src: Str, found: &Found, whole: bool) -> Result<usize> {
    if found.captures.is_empty() && whole {
        let value = captured(vm, src, Captured::Range(found.start, found.end))?;
        vm.push(value);
        return Ok(1);
    }
    for capture in &found.captures {
        let value = captured(vm, src, *capture)?;
        vm.push(value);
    }
    Ok(found.captures.len())
}

pub(crate) fn find(vm: &mut Vm, host: &mut dyn Host, args: Args) -> Result<usize> {
    find_or_match(vm, host, args, true)
}

pub(crate) fn match_once(vm: &mut Vm, host: &mut dyn Host, args: Args) -> Result<usize> {
    find_or_match(vm, host, args, false)
}

fn find_or_match(vm: &mut Vm, host: &mut dyn Host, args: Args, find: bool) -> Result<usize> {
    let src = vm.check_str(args, 0)?;
    let pat = vm.check_str(args, 1)?;
    let len = vm.heap.bytes_of(src).len();
    let at = vm.opt_int(args, 2, 1)?;
    let init = ((relative(at, len) - 1).max(0) as usize).min(len);
    vm.charge(host, vm.heap.bytes_of(pat).len() / 64)?;
    let plain = find && (!vm.arg(args, 3).is_falsy() || is_plain(vm.heap.bytes_of(pat)));
    if plain {
        let needle = vm.heap.bytes_of(pat).len();
        return match find_plain(vm, host, src, pat, init)? {
            Some(at) => {
                vm.push(Value::Number((init + at + 1) as f64));
                vm.push(Value::Number((init + at + needle) as f64));
                Ok(2)
            }
            None => vm.give(Value::Nil),
        };
    }
    match search(vm, host, src, pat, init, false)? {
        Some(found) if find => {
            vm.push(Value::Number((found.start + 1) as f64));
            vm.push(Value::Number(found.end as f64));
            Ok(2 + push_captures(vm, src, &found, false)?)
        }
        Some(found) => push_captures(vm, src, &found, true),
        None => vm.give(Value::Nil),
    }
}

/// Without special characters; only the bytes before a zero count, as Lua 5.1 looks with `strpbrk`.
fn is_plain(pattern: &[u8]) -> bool {
    !pattern
        .iter()
        .take_while(|b| **b != 0)
        .any(|b| b"^$*+?.([%-".contains(b))
}

/// The first place of a string in another, counted from `init`.
fn find_plain(
    vm: &mut Vm,
    host: &mut dyn Host,
    src: Str,
    pat: Str,
    init: usize,
) -> Result<Option<usize>> {
    let (heap, mut meter) = metered(vm, host);
    let (haystack, needle) = (&heap.bytes_of(src)[init..], heap.bytes_of(pat));
    let Some((&first, rest)) = needle.split_first() else {
        return Ok(Some(0));
    };
    meter.burn(haystack.len() / 16)?;
    let mut from = 0;
    while let Some(at) = haystack[from..].iter().position(|b| *b == first) {
        let start = from + at;
        if haystack[start + 1..].starts_with(rest) {
            return Ok(Some(start));
        }
        from = start + 1;
        meter.burn(1 + rest.len() / 64)?;
    }
    Ok(None)
}

pub(crate) fn gmatch(vm: &mut Vm, _: &mut dyn Host, args: Args) -> Result<usize> {
    let src = vm.check_str(args, 0)?;
    let pat = vm.check_str(args, 1)?;
    let upvals = vec![Value::Str(src), Value::Str(pat), Value::Number(0.0)];
    let value = vm.native(Native::Builtin(gmatch_step), upvals);
    vm.give(value)
}

fn gmatch_step(vm: &mut Vm, host: &mut dyn Host, args: Args) -> Result<usize> {
    let Value::Function(id) = vm.stack[args.base - 1] else {
        return Ok(0);
    };
    let Closure::Native(native) = &vm.heap.funcs.items[id.index()].closure else {
        return Ok(0);
    };
    let [Value::Str(src), Value::Str(pat), Value::Number(from)] = native.upvals[..] else {
        return Ok(0);
    };
    let Some(found) = search(vm, host, src, pat, from as usize, true)? else {
        return Ok(0);
    };
    // An empty match moves on by one.
    let next = found.end + usize::from(found.end == found.start);
    if let Closure::Native(native) = &mut vm.heap.funcs.items[id.index()].closure {
        native.upvals[2] = Value::Number(next as f64);
    }
    push_captures(vm, src, &found, true)
}

pub(crate) fn gsub(vm: &mut Vm, host: &mut dyn Host, args: Args) -> Result<usize> {
    let src = vm.check_str(args, 0)?;
    let pat = vm.check_str(args, 1)?;
    let replacement = vm.arg(args, 2);
    let len = vm.heap.bytes_of(src).len();
    let default = len as i64 + 1;
    let limit = if vm.arg(args, 3).is_nil() {
        default
    } else {
        i64::from(vm.check_int32(args, 3)?)
    };
    let replacement = match replacement {
        Value::Number(_) => Value::Str(vm.check_str(args, 2)?),
        Value::Str(_) | Value::Table(_) | Value::Function(_) => replacement,
        _ => return Err(vm.bad_argument(2, "string/function/table expected")),
    };
    let anchored = vm.heap.bytes_of(pat).first() == Some(&b'^');
    let mut out = Vec::new();
    let mut at = 0;
    let mut count = 0;
    while count < limit {
        let found = match_here(vm, host, src, pat, at, anchored)?;
        let mut end = None;
        if let Some(found) = &found {
            count += 1;
            append_replacement(vm, host, &mut out, src, found, replacement)?;
            end = Some(found.end);
        }
        match end {
            Some(end) if end > at => at = end,
            _ if at < len => {
                vm.room(host, &mut out, 1)?;
                out.push(vm.heap.bytes_of(src)[at]);
                at += 1;
            }
            _ => break,
        }
        if anchored {
            break;
        }
    }
    let at = at.min(len);
    vm.room(host, &mut out, len - at)?;
    out.extend_from_slice(&vm.heap.bytes_of(src)[at..]);
    let value = Value::Str(vm.heap.string_from(out));
    vm.push(value);
    vm.push(Value::Number(count as f64));
    Ok(2)
}

/// Matches at one place only.
fn match_here(
    vm: &mut Vm,
    host: &mut dyn Host,
    src: Str,
    pat: Str,
    at: usize,
    anchored: bool,
) -> Result<Option<Found>> {
    let (heap, mut meter) = metered(vm, host);
    // The matcher charges nothing for an empty pattern.
    meter.burn(1 + heap.bytes_of(pat).len() / 64)?;
    let mut matcher = Matcher::new(heap.bytes_of(src), heap.bytes_of(pat), meter);
    let Some(end) = matcher.match_at(at, usize::from(anchored))? else {
        return Ok(None);
    };
    let count = matcher.capture_count().min(MAX_CAPTURES);
    let mut captures = Vec::with_capacity(count);
    for number in 0..count {
        captures.push(matcher.capture(number, at, end)?);
    }
    Ok(Some(Found {
        start: at,
        end,
        captures,
    }))
}

fn append_replacement(
    vm: &mut Vm,
    host: &mut dyn Host,
    out: &mut Vec<u8>,
    src: Str,
    found: &Found,
    replacement: Value,
) -> Result<()> {
    let whole = Captured::Range(found.start, found.end);
    let first = found.captures.first().copied().unwrap_or(whole);
    let value = match replacement {
        Value::Str(template) => return append_template(vm, host, out, src, found, template),
        Value::Table(_) => {
            let key = captured(vm, src, first)?;
            vm.holding(out.capacity(), |vm| vm.index(host, replacement, key))?
        }
        _ => {
            let from = vm.top;
            push_captures(vm, src, found, true)?;
            let args = vm.stack[from..vm.top].to_vec();
            let value = vm.holding(out.capacity(), |vm| vm.call_value(host, replacement, &args))?;
            vm.top = from;
            value
        }
    };
    match value {
        value if value.is_falsy() => {
            vm.room(host, out, found.end - found.start)?;
            out.extend_from_slice(&vm.heap.bytes_of(src)[found.start..found.end]);
        }
        Value::Str(s) => {
            // The value stays in the stack while memory is collected.
            vm.push(value);
            vm.room(host, out, vm.heap.bytes_of(s).len())?;
            vm.top -= 1;
            out.extend_from_slice(vm.heap.bytes_of(s));
        }
        Value::Number(n) => {
            vm.room(host, out, 32)?;
            crate::base::number::write(out, n);
        }
        _ => {
            let kind = value.type_name();
            return Err(vm.error(format!("invalid replacement value (a {kind})")));
        }
    }
    Ok(())
}

fn append_template(
    vm: &mut Vm,
    host: &mut dyn Host,
    out: &mut Vec<u8>,
    src: Str,
    found: &Found,
    template: Str,
) -> Result<()> {
    let mut at = 0;
    loop {
        let rest = &vm.heap.bytes_of(template)[at..];
        if rest.is_empty() {
            return Ok(());
        }
        let plain = rest.iter().position(|b| *b == b'%').unwrap_or(rest.len());
        if plain > 0 {
            vm.room(host, out, plain)?;
            out.extend_from_slice(&vm.heap.bytes_of(template)[at..at + plain]);
            at += plain;
            continue;
        }
        // After a final `%` C reads the zero byte that ends the string.
        let escaped = rest.get(1).copied().unwrap_or(0);
        at = (at + 2).min(at + rest.len());
        vm.charge(host, 1)?;
        vm.room(host, out, 32)?;
        let capture = match escaped {
            b'0' => Captured::Range(found.start, found.end),
            b'1'..=b'9' => {
                let number = (escaped - b'1') as usize;
                match found.captures.get(number) {
                    Some(capture) => *capture,
                    None if number == 0 => Captured::Range(found.start, found.end),
                    None => return Err(vm.error("invalid capture index")),
                }
            }
            _ => {
                out.push(escaped);
                continue;
            }
        };
        match capture {
            Captured::Range(start, end) => {
                vm.room(host, out, end - start)?;
                out.extend_from_slice(&vm.heap.bytes_of(src)[start..end]);
            }
            Captured::Position(at) => crate::base::number::write(out, at as f64),
            Captured::Unfinished => return Err(invalid("unfinished capture")),
        }
    }
}
