//! Scripts: the Lua states, the cache of EVAL's scripts, and what is known of the one that runs.
//!
//! ```text
//! run.rs      one run: checks, KEYS and ARGV, the outcome
//! bridge.rs   what a script calls: redis.call and its relatives
//! watch.rs    what happens to a script or compilation that takes long
//! api.rs      the other functions of the `redis` table
//! values.rs   replies as Lua values, Lua values as replies
//! library.rs  function libraries
//! shebang.rs  the first line of a script or library
//! ```
//!
//! A state is made when the first script comes. It is taken out of the store while a script runs: the commands that are
//! served meanwhile find [`Running`] instead, from the moment the script counts as slow.

mod api;
mod bridge;
mod library;
mod run;
pub(crate) mod shebang;
mod values;
mod watch;

pub(crate) use library::{LOAD_LIMIT_NS, Libraries, Library, Policy, Registered, Unwatched};
pub(crate) use run::{Invocation, Kind, key_count, run};
pub(crate) use shebang::{ScriptFlags, script_flag};
pub(crate) use watch::Compiling;

use crate::engine::store::ctx::Ctx;
use kumi_lua::{Function, Limits, Lua};
use kumi_resp::{ArgsBuilder, OwnedArgs};
use sha1::{Digest, Sha1};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Scripts of EVAL that are kept; those of SCRIPT LOAD are not counted.
const MAX_EVAL_SCRIPTS: usize = 500;
/// Bytes of the sources of those scripts. The script that runs is kept in any case.
const MAX_EVAL_BYTES: usize = 16 << 20;
/// Memory of one state. A script that needs more gets the error `not enough memory`.
const MEMORY_BYTES: usize = 1 << 30;
/// Stack of the thread that nested calls may use: enough for the 200 that Lua allows, and half of what a thread has.
const STACK_BYTES: usize = 1 << 20;
/// Lua keeps numbers as doubles; an instruction count between two looks at the clock.
const HOOK_INTERVAL: i64 = 100_000;
/// A state that holds more than this after a script, and twice what it held after its last collection, collects its
/// garbage at once.
const COLLECT_BYTES: usize = 64 << 20;

/// A script's SHA-1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sha([u8; 20]);

impl Sha {
    pub(crate) fn of(source: &[u8]) -> Self {
        Self(Sha1::digest(source).into())
    }

    /// Reads 40 hexadecimal digits.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let text: &[u8; 40] = text.try_into().ok()?;
        let mut sha = [0; 20];
        for (byte, digits) in sha.iter_mut().zip(text.chunks_exact(2)) {
            let high = (digits[0] as char).to_digit(16)?;
            let low = (digits[1] as char).to_digit(16)?;
            *byte = (high << 4 | low) as u8;
        }
        Some(Self(sha))
    }

    pub(crate) fn hex(&self) -> [u8; 40] {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = [0; 40];
        for (pair, byte) in text.chunks_exact_mut(2).zip(self.0) {
            pair[0] = DIGITS[usize::from(byte >> 4)];
            pair[1] = DIGITS[usize::from(byte & 15)];
        }
        text
    }
}

impl std::hash::Hash for Sha {
    /// A SHA-1 is a hash already: its first bytes are enough.
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(&self.0[..8]);
    }
}

/// Takes the bytes it is given as the hash.
#[derive(Debug, Default)]
pub(crate) struct FirstBytes(u64);

impl Hasher for FirstBytes {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        let mut word = [0; 8];
        let len = bytes.len().min(8);
        word[..len].copy_from_slice(&bytes[..len]);
        self.0 = u64::from_le_bytes(word);
    }
}

/// A compiled script of the cache.
#[derive(Debug)]
pub(crate) struct Cached {
    pub(crate) function: Function,
    pub(crate) flags: ScriptFlags,
    source: Box<[u8]>,
    /// SCRIPT LOAD brought it: it stays until SCRIPT FLUSH.
    loaded: bool,
    /// The run that used it last.
    used: u64,
}

/// The state of EVAL with its cache.
#[derive(Debug)]
pub(crate) struct Evaluator {
    pub(crate) lua: Lua,
    cache: HashMap<Sha, Cached, BuildHasherDefault<FirstBytes>>,
    eval_scripts: usize,
    /// Bytes of the sources of EVAL's scripts, and of all.
    eval_bytes: usize,
    source_bytes: usize,
    runs: u64,
    garbage: Garbage,
}

/// When a state collects its garbage after a script.
#[derive(Debug, Default)]
struct Garbage {
    /// Bytes that the state held after its last collection.
    live_bytes: usize,
}

impl Garbage {
    fn collect(&mut self, lua: &mut Lua) {
        if lua.memory_bytes() > COLLECT_BYTES.max(self.live_bytes * 2) {
            lua.collect();
            self.live_bytes = lua.memory_bytes();
        }
    }
}

impl Evaluator {
    fn new() -> Self {
        Self {
            lua: new_state(api::EVAL),
            cache: HashMap::default(),
            eval_scripts: 0,
            eval_bytes: 0,
            source_bytes: 0,
            runs: 0,
            garbage: Garbage::default(),
        }
    }

    /// A script with the state that runs it.
    pub(crate) fn find(&mut self, sha: &Sha) -> Option<(&mut Lua, &Cached)> {
        self.runs += 1;
        let cached = self.cache.get_mut(sha)?;
        cached.used = self.runs;
        Some((&mut self.lua, cached))
    }

    pub(crate) fn contains(&self, sha: &Sha) -> bool {
        self.cache.contains_key(sha)
    }

    /// Compiles a script into the cache, unless it is there. `host` is asked now and then meanwhile.
    ///
    /// # Errors
    /// The text EVAL and SCRIPT LOAD answer.
    pub(crate) fn load(
        &mut self,
        sha: Sha,
        source: &[u8],
        keep: bool,
        host: &mut dyn kumi_lua::Host,
    ) -> Result<(), Vec<u8>> {
        if let Some(cached) = self.cache.get_mut(&sha) {
            if keep && !cached.loaded {
                cached.loaded = true;
                self.eval_scripts -= 1;
                self.eval_bytes -= cached.source.len();
            }
            return Ok(());
        }
        let (flags, start) = shebang::of_script(source)?;
        let function = self
            .lua
            .load_for(host, "@user_script", &source[start..])
            .map_err(|error| {
                let text = b"ERR Error compiling script (new function): ".to_vec();
                [text, error.message].concat()
            })?;
        if !keep {
            self.eval_scripts += 1;
            self.eval_bytes += source.len();
            while self.eval_scripts > MAX_EVAL_SCRIPTS || self.eval_bytes > MAX_EVAL_BYTES {
                if !self.evict() {
                    break;
                }
            }
        }
        self.source_bytes += source.len();
        self.cache.insert(
            sha,
            Cached {
                function,
                flags,
                source: source.into(),
                loaded: keep,
                used: self.runs,
            },
        );
        Ok(())
    }

    /// Compiles all scripts again in a new state: a panic may have left the old one in any condition.
    fn rebuild(&mut self) {
        let mut fresh = Self::new();
        let mut scripts: Vec<_> = self.cache.drain().collect();
        scripts.sort_unstable_by_key(|(_, cached)| cached.used);
        for (sha, cached) in scripts {
            fresh.runs = cached.used;
            let compiles = || {
                fresh
                    .load(sha, &cached.source, cached.loaded, &mut ())
                    .is_ok()
            };
            if !catch_unwind(AssertUnwindSafe(compiles)).unwrap_or(false) {
                tracing::error!(sha = %sha.hex().escape_ascii(), "a script is lost");
            }
        }
        fresh.runs = self.runs;
        *self = fresh;
    }

    /// Removes the EVAL script that was not used for the longest time; false if there is none.
    fn evict(&mut self) -> bool {
        let scripts = self.cache.iter().filter(|(_, cached)| !cached.loaded);
        let oldest = scripts.min_by_key(|(_, cached)| cached.used);
        if let Some(sha) = oldest.map(|(sha, _)| *sha)
            && let Some(cached) = self.cache.remove(&sha)
        {
            self.lua.release(cached.function);
            self.source_bytes -= cached.source.len();
            self.eval_bytes -= cached.source.len();
            self.eval_scripts -= 1;
            return true;
        }
        false
    }
}

/// A script that has run longer than `busy-reply-threshold`.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) kind: Kind,
    /// The function's name, or the script's SHA-1 in hexadecimal.
    pub(crate) name: Vec<u8>,
    /// The request that runs it.
    pub(crate) command: OwnedArgs,
    pub(crate) started_ns: u64,
    /// It has called a command that writes.
    pub(crate) wrote: bool,
    /// SCRIPT KILL or FUNCTION KILL came.
    pub(crate) killed: bool,
    /// SHUTDOWN NOSAVE came.
    pub(crate) abandoned: bool,
}

impl Running {
    /// What other clients are answered meanwhile.
    pub(crate) fn busy_text(&self) -> &'static str {
        match self.kind {
            Kind::Eval => BUSY_SCRIPT,
            Kind::Function => BUSY_FUNCTION,
        }
    }
}

pub(crate) const BUSY_SCRIPT: &str =
    "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.";
pub(crate) const BUSY_FUNCTION: &str =
    "BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE.";

/// Counts and bytes of a state that is taken out of the store.
#[derive(Clone, Copy, Debug, Default)]
struct Taken {
    /// Cached scripts, or libraries.
    entries: usize,
    functions: usize,
    state_bytes: usize,
    /// Of the cache, or of the libraries' codes.
    cache_bytes: usize,
}

/// Everything the store keeps for scripts.
#[derive(Debug, Default)]
pub(crate) struct Scripts {
    /// Absent before the first script and while one runs.
    evaluator: Option<Box<Evaluator>>,
    /// Absent without libraries and while a function runs.
    pub(crate) libraries: Option<Box<Libraries>>,
    /// What INFO and FUNCTION STATS show of the two while they are absent; zeros at other times.
    taken_evaluator: Taken,
    taken_libraries: Taken,
    pub(crate) running: Option<Running>,
    /// DEBUG SET-DISABLE-DENY-SCRIPTS: commands that are not for scripts may be called.
    pub(crate) deny_disabled: bool,
    /// The arguments of redis.call, used again and again.
    pub(crate) args: ArgsBuilder,
}

impl Scripts {
    /// The state of EVAL. A caller that takes it puts it back.
    fn take_evaluator(&mut self) -> Box<Evaluator> {
        self.taken_evaluator = self.evaluator_size();
        self.evaluator
            .take()
            .unwrap_or_else(|| Box::new(Evaluator::new()))
    }

    fn put_evaluator(&mut self, mut evaluator: Box<Evaluator>) {
        let Evaluator { lua, garbage, .. } = &mut *evaluator;
        garbage.collect(lua);
        self.evaluator = Some(evaluator);
        self.taken_evaluator = Taken::default();
    }

    /// The libraries, if there are any. A caller that takes them puts them back.
    pub(crate) fn take_libraries(&mut self) -> Option<Box<Libraries>> {
        self.taken_libraries = self.libraries_size();
        self.libraries.take()
    }

    pub(crate) fn take_or_make_libraries(&mut self) -> Box<Libraries> {
        self.take_libraries().unwrap_or_else(Self::new_libraries)
    }

    pub(crate) fn new_libraries() -> Box<Libraries> {
        Box::new(Libraries::new())
    }

    pub(crate) fn put_libraries(&mut self, mut libraries: Box<Libraries>) {
        libraries.collect_garbage();
        self.libraries = Some(libraries);
        self.taken_libraries = Taken::default();
    }

    fn evaluator_size(&self) -> Taken {
        self.evaluator.as_ref().map_or(self.taken_evaluator, |it| {
            let slots = it.cache.capacity() * size_of::<(Sha, Cached)>();
            Taken {
                entries: it.cache.len(),
                functions: 0,
                state_bytes: it.lua.memory_bytes(),
                cache_bytes: it.source_bytes + slots,
            }
        })
    }

    fn libraries_size(&self) -> Taken {
        self.libraries
            .as_ref()
            .map_or(self.taken_libraries, |it| Taken {
                entries: it.len(),
                functions: it.function_count(),
                state_bytes: it.lua.memory_bytes(),
                cache_bytes: it.code_bytes(),
            })
    }

    /// The codes of all libraries.
    pub(crate) fn library_codes(&self) -> impl Iterator<Item = &[u8]> {
        let libraries = self.libraries.iter().flat_map(|libraries| libraries.iter());
        libraries.map(|(_, library)| &*library.code)
    }

    /// How many libraries and functions there are.
    pub(crate) fn library_counts(&self) -> (usize, usize) {
        let size = self.libraries_size();
        (size.entries, size.functions)
    }

    /// Bytes of the functions' state, and of the libraries' codes.
    pub(crate) fn library_bytes(&self) -> (usize, usize) {
        let size = self.libraries_size();
        (size.state_bytes, size.cache_bytes)
    }

    pub(crate) fn contains(&self, sha: &Sha) -> bool {
        let evaluator = self.evaluator.as_ref();
        evaluator.is_some_and(|evaluator| evaluator.contains(sha))
    }

    /// The flags that a script's first line declares. `text` is its source, or with `by_sha` its SHA-1. None for a
    /// script that declares nothing, is not in the cache, or has a first line that EVAL refuses.
    pub(crate) fn declared_flags(&self, by_sha: bool, text: &[u8]) -> Option<ScriptFlags> {
        let flags = if by_sha {
            let evaluator = self.evaluator.as_ref()?;
            evaluator.cache.get(&Sha::parse(text)?)?.flags
        } else {
            shebang::of_script(text).ok()?.0
        };
        (flags & script_flag::UNDECLARED == 0).then_some(flags)
    }

    /// The flags of a function; none if there is no function of this name.
    pub(crate) fn function_flags(&mut self, name: &[u8]) -> Option<ScriptFlags> {
        let (_, registered) = self.libraries.as_mut()?.find(name)?;
        Some(registered.flags)
    }

    /// Forgets all scripts of EVAL and SCRIPT LOAD, and their state.
    pub(crate) fn flush(&mut self) {
        self.evaluator = None;
    }

    /// Scripts in the cache.
    pub(crate) fn cached(&self) -> usize {
        self.evaluator_size().entries
    }

    /// Bytes of EVAL's state.
    pub(crate) fn state_bytes(&self) -> usize {
        self.evaluator_size().state_bytes
    }

    /// Bytes of the cached scripts' sources and of the cache.
    pub(crate) fn cache_bytes(&self) -> usize {
        self.evaluator_size().cache_bytes
    }
}

/// Works with the state of EVAL. After a panic, which goes on, its scripts are still there.
pub(crate) fn with_evaluator<T>(
    ctx: &mut Ctx<'_>,
    work: impl FnOnce(&mut Ctx<'_>, &mut Evaluator) -> T,
) -> T {
    let mut evaluator = ctx.scripts().take_evaluator();
    let outcome = catch_unwind(AssertUnwindSafe(|| work(ctx, &mut evaluator)));
    if outcome.is_err() {
        evaluator.rebuild();
    }
    ctx.scripts().put_evaluator(evaluator);
    outcome.unwrap_or_else(|panic| resume_unwind(panic))
}

/// Works with libraries that were taken from the store, and puts them back. After a panic, which goes on, they are as
/// they were before.
pub(crate) fn with_libraries<T>(
    ctx: &mut Ctx<'_>,
    mut libraries: Box<Libraries>,
    work: impl FnOnce(&mut Ctx<'_>, &mut Libraries) -> T,
) -> T {
    let outcome = catch_unwind(AssertUnwindSafe(|| work(ctx, &mut libraries)));
    if outcome.is_err() {
        libraries.rebuild(ctx.host);
    }
    ctx.scripts().put_libraries(libraries);
    outcome.unwrap_or_else(|panic| resume_unwind(panic))
}

/// A state with Redis's libraries and a `redis` table of these functions, protected.
fn new_state(functions: &[api::Named]) -> Lua {
    let mut limits = Limits::default();
    limits.memory_bytes = MEMORY_BYTES;
    limits.hook_interval = HOOK_INTERVAL;
    limits.stack_bytes = STACK_BYTES;
    let mut lua = Lua::redis_unprotected(limits);
    api::register(&mut lua, functions);
    lua.protect();
    lua
}

#[cfg(test)]
mod tests;
