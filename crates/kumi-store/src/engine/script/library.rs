//! Function libraries: loading, listing, finding functions, and their serialised form.
//!
//! A library's code runs once, when it is loaded, and registers functions. The state keeps them. Nothing changes if
//! loading fails. Libraries are kept by name and in that order in lists and payloads.

use super::api::{self, LOG, REGISTER_FUNCTION};
use super::bridge::give;
use super::shebang::{self, ScriptFlags, script_flag};
use super::{Garbage, new_state, run, values};
use crate::data::rdb::{Compression, DumpError, Reader, Writer};
use crate::engine::host::Host;
use kumi_lua::{Call, Error, Function, Lua, TableId, Value};
use std::collections::{BTreeMap, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How long the code of a library that a client sends may take to register its functions.
pub(crate) const LOAD_LIMIT_NS: u64 = 500_000_000;
/// The byte before a library in RDB files and FUNCTION DUMP.
const OPCODE_FUNCTION: u8 = 245;

const BAD_NAME: &str = "Library names can only contain letters, numbers, or underscores(_) and must be at least one character long";

/// A function of a library.
#[derive(Debug)]
pub(crate) struct Registered {
    pub(crate) name: Vec<u8>,
    pub(crate) description: Option<Vec<u8>>,
    pub(crate) flags: ScriptFlags,
    pub(crate) function: Function,
}

#[derive(Debug)]
pub(crate) struct Library {
    pub(crate) code: Box<[u8]>,
    pub(crate) functions: Vec<Registered>,
}

/// A library that is loaded and not taken in yet: its name, its code, its functions.
type Pending = (Vec<u8>, Box<[u8]>, Vec<Registered>);

/// What FUNCTION RESTORE does with libraries that are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    Flush,
    Append,
    Replace,
}

/// All libraries, with the state that runs their functions.
#[derive(Debug)]
pub(crate) struct Libraries {
    pub(crate) lua: Lua,
    libraries: BTreeMap<Vec<u8>, Library>,
    /// Function names in small letters: the library, and the position in it.
    functions: HashMap<Vec<u8>, (Vec<u8>, usize)>,
    code_bytes: usize,
    garbage: Garbage,
}

impl Libraries {
    pub(super) fn new() -> Self {
        let mut lua = new_state(api::FUNCTION);
        api::register_load(&mut lua);
        Self {
            lua,
            libraries: BTreeMap::new(),
            functions: HashMap::new(),
            code_bytes: 0,
            garbage: Garbage::default(),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], &Library)> {
        self.libraries
            .iter()
            .map(|(name, library)| (name.as_slice(), library))
    }

    pub(crate) fn len(&self) -> usize {
        self.libraries.len()
    }

    pub(crate) fn function_count(&self) -> usize {
        self.functions.len()
    }

    pub(crate) fn code_bytes(&self) -> usize {
        self.code_bytes
    }

    pub(super) fn collect_garbage(&mut self) {
        self.garbage.collect(&mut self.lua);
    }

    /// A function with the state that runs it; the case of its name does not matter.
    pub(crate) fn find(&mut self, name: &[u8]) -> Option<(&mut Lua, &Registered)> {
        let (library, position) = self.functions.get(name.to_ascii_lowercase().as_slice())?;
        let registered = self.libraries.get(library)?.functions.get(*position)?;
        Some((&mut self.lua, registered))
    }

    /// Loads a library; returns its name. `limit_ns` is the time that its code may take once it is compiled.
    ///
    /// # Errors
    /// The text FUNCTION LOAD answers.
    pub(crate) fn load(
        &mut self,
        code: &[u8],
        replace: bool,
        limit_ns: Option<u64>,
        host: &mut dyn LoadHost,
    ) -> Result<Vec<u8>, Vec<u8>> {
        let (name, start) = shebang::of_library(code)?;
        if !is_name(&name) {
            return Err(error(BAD_NAME));
        }
        if !replace && self.libraries.contains_key(&name) {
            return Err(quoted("Library", &name));
        }
        let functions = self.register(&code[start..], limit_ns, host)?;
        let pending = vec![(name.clone(), code.into(), functions)];
        self.adopt(pending, replace)?;
        Ok(name)
    }

    /// Loads all libraries again in a new state: a panic may have left the old one in any condition.
    pub(super) fn rebuild(&mut self, host: &mut dyn Host) {
        let mut fresh = Self::new();
        for (name, library) in &self.libraries {
            let mut host = Unwatched(&mut *host);
            let loads = || fresh.load(&library.code, false, None, &mut host).is_ok();
            if !catch_unwind(AssertUnwindSafe(loads)).unwrap_or(false) {
                tracing::error!(library = %name.escape_ascii(), "a library is lost");
            }
        }
        *self = fresh;
    }

    /// Removes a library; false if there is none of that name.
    pub(crate) fn delete(&mut self, name: &[u8]) -> bool {
        let Some(library) = self.libraries.remove(name) else {
            return false;
        };
        self.code_bytes -= library.code.len();
        for registered in library.functions {
            self.functions.remove(&registered.name.to_ascii_lowercase());
            self.lua.release(registered.function);
        }
        true
    }

    /// The libraries as FUNCTION DUMP answers them, without the footer.
    pub(crate) fn dump(&self, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out, Compression::Lzf);
        for library in self.libraries.values() {
            writer.byte(OPCODE_FUNCTION);
            writer.string(&library.code);
        }
    }

    /// Loads the libraries of a payload; all of them or none. `limit_ns` is for the code of each.
    ///
    /// # Errors
    /// The text FUNCTION RESTORE answers.
    pub(crate) fn restore(
        &mut self,
        payload: &[u8],
        replace: bool,
        limit_ns: Option<u64>,
        host: &mut dyn LoadHost,
    ) -> Result<(), Vec<u8>> {
        let mut pending: Vec<Pending> = Vec::new();
        let loaded = codes(payload).and_then(|codes| {
            for code in codes {
                let (name, start) = shebang::of_library(&code)?;
                if !is_name(&name) {
                    return Err(error(BAD_NAME));
                }
                if pending.iter().any(|(other, ..)| *other == name) {
                    return Err(quoted("Library", &name));
                }
                let functions = self.register(&code[start..], limit_ns, host)?;
                pending.push((name, code.into(), functions));
            }
            Ok(())
        });
        match loaded {
            Ok(()) => self.adopt(pending, replace),
            Err(text) => {
                for (.., functions) in pending {
                    self.release(functions);
                }
                Err(text)
            }
        }
    }

    /// Takes loaded libraries in, unless names collide.
    fn adopt(&mut self, pending: Vec<Pending>, replace: bool) -> Result<(), Vec<u8>> {
        if let Err(text) = self.check_collisions(&pending, replace) {
            for (.., functions) in pending {
                self.release(functions);
            }
            return Err(text);
        }
        for (name, code, functions) in pending {
            self.delete(&name);
            for (position, registered) in functions.iter().enumerate() {
                let key = registered.name.to_ascii_lowercase();
                self.functions.insert(key, (name.clone(), position));
            }
            self.code_bytes += code.len();
            self.libraries.insert(name, Library { code, functions });
        }
        Ok(())
    }

    fn check_collisions(&self, pending: &[Pending], replace: bool) -> Result<(), Vec<u8>> {
        let mut new = HashMap::new();
        for (name, _, functions) in pending {
            if !replace && self.libraries.contains_key(name) {
                return Err(exists("Library", name));
            }
            for registered in functions {
                let key = registered.name.to_ascii_lowercase();
                let of_other = self
                    .functions
                    .get(&key)
                    .is_some_and(|(library, _)| !pending.iter().any(|(name, ..)| name == library));
                if of_other || new.insert(key, ()).is_some() {
                    return Err(exists("Function", &registered.name));
                }
            }
        }
        Ok(())
    }

    /// Runs a library's code; returns what it registered.
    fn register(
        &mut self,
        code: &[u8],
        limit_ns: Option<u64>,
        host: &mut dyn LoadHost,
    ) -> Result<Vec<Registered>, Vec<u8>> {
        let chunk = self.lua.load_for(&mut *host, "@user_function", code);
        let chunk = chunk.map_err(|failure| {
            let text = b"ERR Error compiling function: ".to_vec();
            [text, failure.message].concat()
        })?;
        let end_ns = limit_ns.map(|limit_ns| host.mono_ns().saturating_add(limit_ns));
        let mut loader = Loader {
            registered: Vec::new(),
            host,
            end_ns,
        };
        self.lua.swap_globals();
        let outcome = self.lua.call(&mut loader, &chunk, &[]).map(|_| ());
        self.lua.swap_globals();
        let functions = loader.registered;
        self.lua.release(chunk);
        let text = match outcome {
            Ok(()) if functions.is_empty() => b"ERR No functions registered".to_vec(),
            Ok(()) => return Ok(functions),
            Err(failure) => {
                let (text, _) = run::error_text(&mut self.lua, failure.value);
                [b"ERR Error registering functions: ".to_vec(), text].concat()
            }
        };
        self.release(functions);
        Err(text)
    }

    fn release(&mut self, functions: Vec<Registered>) {
        for registered in functions {
            self.lua.release(registered.function);
        }
    }
}

/// The codes of the libraries in a FUNCTION DUMP payload.
fn codes(payload: &[u8]) -> Result<Vec<Vec<u8>>, Vec<u8>> {
    let (first, rest) = match crate::data::rdb::open(payload, false) {
        Ok(body) => body,
        Err(DumpError::Format) => return Ok(Vec::new()),
        Err(failure) => return Err(failure.to_string().into_bytes()),
    };
    let (mut opcode, mut rest, mut codes) = (first, rest, Vec::new());
    loop {
        if opcode != OPCODE_FUNCTION {
            return Err(error("given type is not a function"));
        }
        let mut reader = Reader::new(rest);
        let mut code = Vec::new();
        reader
            .string_into(&mut code)
            .map_err(|_| error("failed loading the given functions payload"))?;
        codes.push(code);
        let Some((&next, behind)) = reader.into_input().split_first() else {
            return Ok(codes);
        };
        (opcode, rest) = (next, behind);
    }
}

fn is_name(name: &[u8]) -> bool {
    !name.is_empty()
        && name
            .iter()
            .all(|&byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn error(text: &str) -> Vec<u8> {
    format!("ERR {text}").into_bytes()
}

fn exists(what: &str, name: &[u8]) -> Vec<u8> {
    [format!("ERR {what} ").as_bytes(), name, b" already exists"].concat()
}

fn quoted(what: &str, name: &[u8]) -> Vec<u8> {
    [
        format!("ERR {what} '").as_bytes(),
        name,
        b"' already exists",
    ]
    .concat()
}

/// What libraries are loaded with: it is asked now and then while they are compiled, and knows the time.
pub(crate) trait LoadHost: kumi_lua::Host {
    /// The steady clock.
    fn mono_ns(&mut self) -> u64;
}

/// Loads the libraries of a file: nothing interrupts it.
pub(crate) struct Unwatched<'h>(pub(crate) &'h mut dyn Host);

impl kumi_lua::Host for Unwatched<'_> {
    fn call(&mut self, _function: u32, call: &mut Call<'_>) -> Result<(), Error> {
        Err(call.error("no such host function"))
    }
}

impl LoadHost for Unwatched<'_> {
    fn mono_ns(&mut self) -> u64 {
        self.0.now().mono_ns
    }
}

/// What a library's code can call while it is loaded.
struct Loader<'h> {
    registered: Vec<Registered>,
    host: &'h mut dyn LoadHost,
    end_ns: Option<u64>,
}

impl kumi_lua::Host for Loader<'_> {
    fn call(&mut self, function: u32, call: &mut Call<'_>) -> Result<(), Error> {
        match function {
            REGISTER_FUNCTION => match self.register(call) {
                Ok(()) => Ok(()),
                Err(text) => {
                    let value = values::error_table(call, &error(text), false);
                    give(call, value, true)
                }
            },
            LOG => api::log(call),
            _ => Err(call.error("no such host function")),
        }
    }

    fn interrupt(&mut self) -> Result<(), String> {
        let Some(end_ns) = self.end_ns else {
            return Ok(());
        };
        if self.host.mono_ns() < end_ns {
            return Ok(());
        }
        Err("FUNCTION LOAD timeout".to_owned())
    }
}

/// The arguments of `redis.register_function`.
#[derive(Default)]
struct Registration {
    name: Option<Vec<u8>>,
    description: Option<Vec<u8>>,
    flags: ScriptFlags,
    callback: Option<Value>,
}

impl Loader<'_> {
    fn register(&mut self, call: &mut Call<'_>) -> Result<(), &'static str> {
        let registration = match (call.len(), call.arg(0)) {
            (1, Value::Table(table)) => named(call, table)?,
            (1, _) => {
                return Err(
                    "calling redis.register_function with a single argument is only applicable to Lua table (representing named arguments).",
                );
            }
            (2, name) => Registration {
                name: Some(
                    api::text_of(call, name)
                        .ok_or("first argument to redis.register_function must be a string")?,
                ),
                callback: Some(call.arg(1)).filter(|value| matches!(value, Value::Function(_))),
                ..Registration::default()
            },
            _ => return Err("wrong number of arguments to redis.register_function"),
        };
        let name = registration
            .name
            .ok_or("redis.register_function must get a function name argument")?;
        let callback = registration.callback.ok_or(match call.len() {
            1 => "redis.register_function must get a callback argument",
            _ => "second argument to redis.register_function must be a function",
        })?;
        if !is_name(&name) {
            return Err(BAD_NAME);
        }
        let known = |other: &Registered| other.name.eq_ignore_ascii_case(&name);
        if self.registered.iter().any(known) {
            return Err("Function already exists in the library");
        }
        let function = call
            .keep(callback)
            .ok_or("callback argument given to redis.register_function must be a function")?;
        self.registered.push(Registered {
            name,
            description: registration.description,
            flags: registration.flags,
            function,
        });
        Ok(())
    }
}

/// The form with one table of named arguments.
fn named(call: &mut Call<'_>, table: TableId) -> Result<Registration, &'static str> {
    let mut registration = Registration::default();
    let mut key = Value::Nil;
    while let Some((name, value)) = call.next(table, key) {
        key = name;
        let name = api::text_of(call, name)
            .ok_or("named argument key given to redis.register_function is not a string")?;
        match &name[..] {
            b"function_name" => {
                registration.name = Some(api::text_of(call, value).ok_or(
                    "function_name argument given to redis.register_function must be a string",
                )?);
            }
            b"description" => {
                registration.description = Some(api::text_of(call, value).ok_or(
                    "description argument given to redis.register_function must be a string",
                )?);
            }
            b"callback" => {
                if !matches!(value, Value::Function(_)) {
                    return Err(
                        "callback argument given to redis.register_function must be a function",
                    );
                }
                registration.callback = Some(value);
            }
            b"flags" => {
                let Value::Table(flags) = value else {
                    return Err(
                        "flags argument to redis.register_function must be a table representing function flags",
                    );
                };
                registration.flags = flags_of(call, flags)?;
            }
            _ => return Err("unknown argument given to redis.register_function"),
        }
    }
    Ok(registration)
}

fn flags_of(call: &Call<'_>, table: TableId) -> Result<ScriptFlags, &'static str> {
    let mut flags = 0;
    for index in 1.. {
        let value = call.element(table, index);
        if value.is_nil() {
            break;
        }
        let name = call.bytes(value);
        flags |= name
            .and_then(script_flag::named)
            .ok_or("unknown flag given")?;
    }
    Ok(flags)
}
