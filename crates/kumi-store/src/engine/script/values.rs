//! Replies as Lua values, and Lua values as replies, by Redis's rules.
//!
//! | reply | Lua | reply | Lua |
//! |---|---|---|---|
//! | bulk string | string | map | `{map={...}}` |
//! | integer | number | set | `{set={member=true}}` |
//! | status | `{ok=...}` | double | `{double=...}` |
//! | error | `{err=...}` | boolean | boolean |
//! | array | list | big number | `{big_number=...}` |
//! | null | `false`, in RESP3 `nil` | verbatim | `{verbatim_string={string=..., format=...}}` |

use crate::base::error::CommandError;
use crate::engine::reply::Reply;
use kumi_lua::{Call, Error, Lua, TableId, Value};
use kumi_resp::Protocol;

/// The field of an error table that says that the error has been counted.
pub(super) const COUNTED: &[u8] = b"ignore_error_stats_update";
/// Nested elements of a reply that are read. No command nests its reply deeper.
const MAX_READ_DEPTH: usize = 64;
/// Stack slots of Redis's Lua, which decide how deep a table may be nested in a reply.
const MAX_SLOTS: usize = 8000;
/// Bytes of an element of a list, and at most of a pair of any other table.
const ELEMENT_BYTES: usize = 16;
const PAIR_BYTES: usize = 96;
/// Bytes of the shortest value of a reply, and about those of an error that is kept.
const MIN_VALUE_BYTES: usize = 4;
const ERROR_BYTES: usize = 64;
/// Slots that a value needs, and that are in use when the outermost one is written.
const VALUE_SLOTS: usize = 4;
const FIRST_SLOT: usize = 2;

/// The Lua value of an encoded reply.
///
/// # Errors
/// It does not fit into the memory of the state.
pub(super) fn read(call: &mut Call<'_>, bytes: &[u8]) -> Result<Value, Error> {
    call.spend(bytes.len() / 16);
    Reader { bytes, at: 0 }.value(call, 0)
}

/// An error as `redis.call` raises and `redis.pcall` returns it.
pub(super) fn error_table(call: &mut Call<'_>, text: &[u8], counted: bool) -> Value {
    let table = call.table(0, 0);
    let text = call.string(text);
    call.set_field(table, b"err", text);
    if counted {
        call.set_field(table, COUNTED, Value::Bool(true));
    }
    Value::Table(table)
}

/// Reads a reply. Tables that are being filled are held, because room for their elements may need a collection.
struct Reader<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> Reader<'b> {
    fn value(&mut self, call: &mut Call<'_>, depth: usize) -> Result<Value, Error> {
        let Some((kind, line)) = self.line() else {
            return Ok(Value::Nil);
        };
        if depth > MAX_READ_DEPTH {
            return Ok(Value::Nil);
        }
        Ok(match kind {
            b'$' => match length(line) {
                Some(len) => {
                    let body = self.body(len);
                    call.reserve(body.len())?;
                    call.string(body)
                }
                None => Value::Bool(false),
            },
            b':' => Value::Number(integer(line) as f64),
            b'+' => {
                call.reserve(line.len())?;
                let text = call.string(line);
                field_table(call, b"ok", text)
            }
            b'-' => {
                call.reserve(line.len())?;
                error_table(call, line, true)
            }
            b'*' => match length(line) {
                Some(len) => self.list(call, len, depth)?,
                None => Value::Bool(false),
            },
            b'%' => self.pairs(call, length(line).unwrap_or(0), depth)?,
            b'~' => self.members(call, length(line).unwrap_or(0), depth)?,
            b'#' => Value::Bool(line == b"t"),
            b',' => {
                let number = double(line);
                field_table(call, b"double", Value::Number(number))
            }
            b'(' => {
                call.reserve(line.len())?;
                let digits = call.string(line);
                field_table(call, b"big_number", digits)
            }
            b'=' => self.verbatim(call, length(line).unwrap_or(0))?,
            b'|' => {
                for _ in 0..2 * length(line).unwrap_or(0) {
                    self.value(call, depth + 1)?;
                }
                self.value(call, depth + 1)?
            }
            _ => Value::Nil,
        })
    }

    /// The elements that room is made for at first.
    fn expected(&self, len: usize) -> usize {
        len.min(self.bytes.len())
    }

    fn list(&mut self, call: &mut Call<'_>, len: usize, depth: usize) -> Result<Value, Error> {
        let room = self.expected(len);
        call.reserve(room * ELEMENT_BYTES)?;
        let table = call.table(room, 0);
        call.hold(Value::Table(table));
        for index in 1..=len {
            let value = self.value(call, depth + 1)?;
            call.set_element(table, index, value);
        }
        call.unhold(1);
        Ok(Value::Table(table))
    }

    fn pairs(&mut self, call: &mut Call<'_>, len: usize, depth: usize) -> Result<Value, Error> {
        let room = self.expected(len);
        call.reserve(room * PAIR_BYTES)?;
        let map = call.table(0, room);
        call.hold(Value::Table(map));
        for _ in 0..len {
            let key = self.value(call, depth + 1)?;
            call.hold(key);
            let value = self.value(call, depth + 1)?;
            call.set(map, key, value);
            call.unhold(1);
        }
        call.unhold(1);
        Ok(field_table(call, b"map", Value::Table(map)))
    }

    fn members(&mut self, call: &mut Call<'_>, len: usize, depth: usize) -> Result<Value, Error> {
        let room = self.expected(len);
        call.reserve(room * PAIR_BYTES)?;
        let set = call.table(0, room);
        call.hold(Value::Table(set));
        for _ in 0..len {
            let member = self.value(call, depth + 1)?;
            call.set(set, member, Value::Bool(true));
        }
        call.unhold(1);
        Ok(field_table(call, b"set", Value::Table(set)))
    }

    fn verbatim(&mut self, call: &mut Call<'_>, len: usize) -> Result<Value, Error> {
        let body = self.body(len);
        call.reserve(body.len())?;
        let (format, text) = body.split_at(body.len().min(4));
        let table = call.table(0, 0);
        let text = call.string(text);
        call.set_field(table, b"string", text);
        let format = call.string(format.get(..3).unwrap_or_default());
        call.set_field(table, b"format", format);
        Ok(field_table(call, b"verbatim_string", Value::Table(table)))
    }

    /// The type of the next element, and the rest of its first line.
    fn line(&mut self) -> Option<(u8, &'b [u8])> {
        let rest = self.bytes.get(self.at..)?;
        let end = rest.iter().position(|&byte| byte == b'\r')?;
        self.at += end + 2;
        let (&kind, line) = rest[..end].split_first()?;
        Some((kind, line))
    }

    /// The bytes of a bulk string; its line end is skipped.
    fn body(&mut self, len: usize) -> &'b [u8] {
        let body = self.bytes.get(self.at..self.at + len).unwrap_or_default();
        self.at += len + 2;
        body
    }
}

fn field_table(call: &mut Call<'_>, name: &[u8], value: Value) -> Value {
    let table = call.table(0, 0);
    call.set_field(table, name, value);
    Value::Table(table)
}

fn integer(line: &[u8]) -> i64 {
    crate::base::number::parse_i64(line).unwrap_or(0)
}

/// A length; none for -1, a null.
fn length(line: &[u8]) -> Option<usize> {
    usize::try_from(integer(line)).ok()
}

fn double(line: &[u8]) -> f64 {
    let text = std::str::from_utf8(line).unwrap_or_default();
    text.parse().unwrap_or(f64::NAN)
}

/// Redis handles the texts of errors and statuses as C strings: they end at the first NUL.
pub(super) fn c_text(text: &[u8]) -> &[u8] {
    let end = text.iter().position(|&byte| byte == 0);
    &text[..end.unwrap_or(text.len())]
}

/// The text `tostring` gives a value that is no table.
pub(super) fn text(lua: &Lua, value: Value) -> Vec<u8> {
    match value {
        Value::Str(_) => lua.bytes(value).unwrap_or_default().to_vec(),
        Value::Number(number) => {
            let mut text = Vec::new();
            Call::write_number(&mut text, number);
            text
        }
        Value::Bool(flag) => flag.to_string().into_bytes(),
        other => other.type_name().as_bytes().to_vec(),
    }
}

/// A table whose elements are being written.
enum Walk {
    List {
        table: TableId,
        next: usize,
        len: usize,
    },
    Pairs {
        table: TableId,
        key: Value,
        value: Option<Value>,
    },
    Members {
        table: TableId,
        key: Value,
    },
}

/// The errors in a reply.
#[derive(Debug, Default)]
pub(super) struct Errors {
    /// Those that have not been counted.
    pub(super) new: Vec<Vec<u8>>,
    /// How many have been counted when a command of the script failed.
    pub(super) counted: u64,
}

/// Writes a value as a reply. `protocol` is the one the script has chosen for itself. Returns the errors among the
/// elements.
///
/// # Errors
/// The reply needs more memory than the state may use. A table that is in itself twice has no end.
pub(super) fn write(
    reply: &mut Reply<'_>,
    lua: &mut Lua,
    value: Value,
    protocol: Protocol,
) -> Result<Errors, CommandError> {
    let mut errors = Errors::default();
    let (limit, mut bytes, mut mark) = (lua.limits().memory_bytes, 0_usize, reply.len());
    let mut open: Vec<(Walk, usize)> = Vec::new();
    let mut next = Some((value, FIRST_SLOT));
    loop {
        if let Some((value, slot)) = next {
            let kept = errors.new.len();
            if let Some(walk) = write_one(reply, lua, value, protocol, slot, &mut errors) {
                open.push((walk, slot));
            }
            // The length does not grow where the client wants no reply.
            let len = reply.len();
            bytes += len.saturating_sub(mark).max(MIN_VALUE_BYTES);
            bytes += (errors.new.len() - kept) * ERROR_BYTES;
            mark = len;
            if bytes > limit {
                return Err(CommandError::fixed(
                    "ERR the reply of the script is too large",
                ));
            }
        } else if open.pop().is_none() {
            return Ok(errors);
        }
        let Some((walk, slot)) = open.last_mut() else {
            return Ok(errors);
        };
        next = walk.advance(lua, *slot);
    }
}

impl Walk {
    /// The next value to write, and the slots in use when it is.
    fn advance(&mut self, lua: &mut Lua, slot: usize) -> Option<(Value, usize)> {
        match self {
            Self::List { table, next, len } => {
                *next += 1;
                (*next <= *len).then(|| (lua.element(*table, *next), slot + 1))
            }
            Self::Pairs { table, key, value } => {
                if let Some(value) = value.take() {
                    return Some((value, slot + 3));
                }
                let (found, of) = lua.next(*table, *key)?;
                (*key, *value) = (found, Some(of));
                Some((found, slot + 4))
            }
            Self::Members { table, key } => {
                let (found, _) = lua.next(*table, *key)?;
                *key = found;
                Some((found, slot + 4))
            }
        }
    }
}

/// Writes a value, or the header of a table whose elements are to follow.
fn write_one(
    reply: &mut Reply<'_>,
    lua: &mut Lua,
    value: Value,
    protocol: Protocol,
    slot: usize,
    errors: &mut Errors,
) -> Option<Walk> {
    if slot + VALUE_SLOTS > MAX_SLOTS {
        const TOO_DEEP: &[u8] = b"ERR reached lua stack limit";
        reply.error(TOO_DEEP);
        errors.new.push(TOO_DEEP.to_vec());
        return None;
    }
    match value {
        Value::Str(_) => reply.bulk(lua.bytes(value).unwrap_or_default()),
        Value::Bool(flag) if protocol == Protocol::Resp3 => reply.boolean(flag),
        Value::Bool(true) => reply.integer(1),
        Value::Number(number) => reply.integer(to_integer(number)),
        Value::Table(table) => return write_table(reply, lua, table, errors),
        _ => reply.null(),
    }
    None
}

/// C's conversion of a double on the machines Redis runs on: what does not fit is the least integer.
fn to_integer(number: f64) -> i64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if (-LIMIT..LIMIT).contains(&number) {
        number as i64
    } else {
        i64::MIN
    }
}

fn write_table(
    reply: &mut Reply<'_>,
    lua: &mut Lua,
    table: TableId,
    errors: &mut Errors,
) -> Option<Walk> {
    if lua.has_fields(table)
        && let Some(walk) = write_tagged(reply, lua, table, errors)
    {
        return walk;
    }
    let elements = (1..).take_while(|&index| !lua.element(table, index).is_nil());
    let len = elements.count();
    reply.array(len);
    Some(Walk::List {
        table,
        next: 0,
        len,
    })
}

/// Writes a table that stands for another type. None if it is a list.
fn write_tagged(
    reply: &mut Reply<'_>,
    lua: &mut Lua,
    table: TableId,
    errors: &mut Errors,
) -> Option<Option<Walk>> {
    let (error, counted) = (lua.field(table, b"err"), lua.field(table, COUNTED));
    if let Some(text) = lua.bytes(error) {
        let text = c_text(text);
        reply.error(text);
        if matches!(counted, Value::Bool(true)) {
            errors.counted += 1;
        } else {
            errors.new.push(text.to_vec());
        }
        return Some(None);
    }
    let status = lua.field(table, b"ok");
    if let Some(text) = lua.bytes(status) {
        reply.simple_bytes(c_text(text));
        return Some(None);
    }
    if let Value::Number(number) = lua.field(table, b"double") {
        reply.double(number);
        return Some(None);
    }
    if let Value::Table(map) = lua.field(table, b"map") {
        reply.map(count(lua, map));
        return Some(Some(Walk::Pairs {
            table: map,
            key: Value::Nil,
            value: None,
        }));
    }
    if let Value::Table(set) = lua.field(table, b"set") {
        reply.set(count(lua, set));
        return Some(Some(Walk::Members {
            table: set,
            key: Value::Nil,
        }));
    }
    let digits = lua.field(table, b"big_number");
    if let Some(digits) = lua.bytes(digits) {
        reply.big_number(digits);
        return Some(None);
    }
    if let Value::Table(parts) = lua.field(table, b"verbatim_string") {
        let (format, text) = (lua.field(parts, b"format"), lua.field(parts, b"string"));
        if let (Some(format), Some(text)) = (lua.bytes(format), lua.bytes(text)) {
            let byte = |at| format.get(at).copied().unwrap_or(b' ');
            reply.verbatim(&[byte(0), byte(1), byte(2)], text);
            return Some(None);
        }
    }
    None
}

/// The pairs of a table.
fn count(lua: &mut Lua, table: TableId) -> usize {
    let (mut key, mut count) = (Value::Nil, 0);
    while let Some((found, _)) = lua.next(table, key) {
        key = found;
        count += 1;
    }
    count
}
