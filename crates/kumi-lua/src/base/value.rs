//! Lua values. A value is 16 bytes and `Copy`; everything larger lives in the heap and is named by an index.
//!
//! An index is only meaningful inside the state that made it. Using it in another state reads some other object of that
//! state or panics on a bounds check; it never breaks memory safety.

/// A Lua string: an index into the string heap and, for short strings, its hash.
#[derive(Clone, Copy, Debug)]
pub struct Str {
    /// Index of the entry; [`Str::LONG`] is set for strings that are not interned when they are made.
    pub(crate) id: u32,
    /// Hash of a short string, or of a long one that is a table key; 0 for other long strings.
    pub(crate) hash: u32,
}

impl Str {
    pub(crate) const LONG: u32 = 1 << 31;

    pub(crate) fn index(self) -> usize {
        (self.id & !Str::LONG) as usize
    }

    pub(crate) fn is_long(self) -> bool {
        self.id & Str::LONG != 0
    }
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name(pub(crate) u32);

        impl $name {
            pub(crate) fn index(self) -> usize {
                self.0 as usize
            }
        }
    )*};
}

ids! {
    /// A table of one state.
    TableId,
    /// A function of one state, written in Lua or native.
    FuncId,
    /// A full userdata of one state.
    UserId,
    /// A coroutine of one state.
    ThreadId
}

/// Any Lua value.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub enum Value {
    /// `nil`
    #[default]
    Nil,
    /// `true` or `false`
    Bool(bool),
    /// A number; Lua 5.1 has doubles only.
    Number(f64),
    /// A byte string.
    Str(Str),
    /// A table.
    Table(TableId),
    /// A function.
    Function(FuncId),
    /// A full userdata, made by `newproxy`.
    UserData(UserId),
    /// A coroutine.
    Thread(ThreadId),
    /// A light userdata; number 0 is `cjson.null`.
    Light(u32),
}

impl Value {
    /// The name `type` returns.
    pub fn type_name(self) -> &'static str {
        match self {
            Value::Nil => "nil",
            Value::Bool(_) => "boolean",
            Value::Number(_) => "number",
            Value::Str(_) => "string",
            Value::Table(_) => "table",
            Value::Function(_) => "function",
            Value::UserData(_) | Value::Light(_) => "userdata",
            Value::Thread(_) => "thread",
        }
    }

    /// Whether the value is `nil`.
    pub fn is_nil(self) -> bool {
        matches!(self, Value::Nil)
    }

    /// Whether a condition takes the value as false.
    pub fn is_falsy(self) -> bool {
        matches!(self, Value::Nil | Value::Bool(false))
    }

    /// Raw equality of two values that are not both long strings.
    pub(crate) fn same(self, other: Value) -> bool {
        match (self, other) {
            (Value::Nil, Value::Nil) => true,
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::Number(a), Value::Number(b)) => a == b,
            (Value::Str(a), Value::Str(b)) => a.id == b.id,
            (Value::Table(a), Value::Table(b)) => a == b,
            (Value::Function(a), Value::Function(b)) => a == b,
            (Value::UserData(a), Value::UserData(b)) => a == b,
            (Value::Thread(a), Value::Thread(b)) => a == b,
            (Value::Light(a), Value::Light(b)) => a == b,
            _ => false,
        }
    }
}
