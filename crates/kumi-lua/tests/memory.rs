//! The memory limit is for what is allocated: peaks are measured by an allocator that counts.

#![expect(unsafe_code, reason = "an allocator cannot be written without it")]

use kumi_lua::{Limits, Lua, ScriptError};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that are allocated, and the most there were.
struct Counting {
    now: AtomicUsize,
    peak: AtomicUsize,
}

impl Counting {
    fn add(&self, bytes: usize) {
        let now = self.now.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.peak.fetch_max(now, Ordering::Relaxed);
    }

    fn subtract(&self, bytes: usize) {
        self.now.fetch_sub(bytes, Ordering::Relaxed);
    }
}

// SAFETY: every request goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.add(layout.size());
        // SAFETY: the caller keeps the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        self.subtract(layout.size());
        // SAFETY: the caller keeps the contract.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // A block that grows is there twice until its contents are moved. One that shrinks stays in its place.
        if size > layout.size() {
            self.add(size);
            self.subtract(layout.size());
        } else {
            self.subtract(layout.size() - size);
        }
        // SAFETY: the caller keeps the contract.
        unsafe { System.realloc(block, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting {
    now: AtomicUsize::new(0),
    peak: AtomicUsize::new(0),
};

const LIMIT: usize = 32 << 20;
/// A limit that is large beside what is allocated between two looks at it.
const LARGE_LIMIT: usize = 256 << 20;
/// What may be allocated between two looks at the limit.
const SLACK: usize = 8 << 20;

/// Runs a script in a state of its own; whether it ran out of memory, and the most bytes it had.
fn peak_of(source: &str, limit: usize) -> (bool, usize) {
    let mut limits = Limits::default();
    limits.memory_bytes = limit;
    let mut lua = Lua::redis(limits);
    let script = lua
        .load("@user_script", source.as_bytes())
        .expect("it compiles");
    let before = COUNTING.now.load(Ordering::Relaxed);
    COUNTING.peak.store(before, Ordering::Relaxed);
    let short = match lua.call(&mut (), &script, &[]) {
        Ok(_) => false,
        Err(ScriptError { value, .. }) => {
            let text = lua.bytes(value).expect("an error is a text");
            assert!(
                text.ends_with(b"not enough memory"),
                "{}: {source}",
                text.escape_ascii()
            );
            true
        }
    };
    (short, COUNTING.peak.load(Ordering::Relaxed) - before)
}

/// One test, because the peak is that of the whole program.
#[test]
fn no_script_has_more_than_the_limit_and_garbage_does_not_count() {
    for source in [
        "local s = ('x'):rep(6e6) return #(s:gsub('x', ('y'):rep(20)))",
        "local s = ('x'):rep(6e6) return #(s:gsub('x', {x = 'yyyyyyyyyyyyyyyyyy'}))",
        "local n = 0 return #(('x'):rep(1e6):gsub('x', function() n = n + 1 return ('ab'):rep(50) .. n end))",
        "local t = {} for i = 1, 200 do t[i] = ('x'):rep(2^20) end return #table.concat(t)",
        "local s, t = ('x'):rep(2^20), {} for i = 1, 200 do t[i] = s end return #table.concat(t)",
        "local s = ('x'):rep(1.2e7) return #('%s%s%s%s%s%s'):format(s, s, s, s, s, s)",
        "return #('%q'):format(('\\0'):rep(1.2e7)) .. #('%q'):format(('\\0'):rep(1.6e7))",
        "local s, r = ('x'):rep(2^20), '' for i = 1, 200 do r = r .. s end",
        "local s = 'x' while true do s = s .. s end",
        "local t, s = {}, ('x'):rep(2e7) for i = 1, 10 do t[i] = s:upper() end",
        "local t = {} for i = 1, 1e9 do t[i] = i end",
        "local t = {} for i = 1, 1e9 do t[i] = {i} end",
        "local t = {} for i = 1, 1e9 do t['k' .. i] = i end",
        "local t = {} for i = 1, 1e9 do t[i] = ('%d'):format(i) end",
        "local t = {} for i = 1, 1e9 do t[i] = function() return i end end",
        "local t = {} for i = 1, 1e9 do t[i] = coroutine.wrap(function() coroutine.yield() end) t[i]() end",
        "local t = {} for i = 1, 1e9 do table.insert(t, i) end",
        "local t = {} for i = 1, 3e5 do t[i] = '0123456789' end local s = cjson.encode(t) for i = 1, 100 do t[i] = cjson.decode(s) end",
        "local t = {} for i = 1, 3e5 do t[i] = '0123456789' end local s = cmsgpack.pack(t) for i = 1, 100 do t[i] = cmsgpack.unpack(s) end",
        "local t = {} for i = 1, 1e9 do t[i] = loadstring(('local x = 1 '):rep(150)) end",
        "local f, text = loadstring('return {' .. ('1,'):rep(6e6) .. '}') error(text, 0)",
        "local f, text = loadstring(('local function f() end '):rep(6e5)) error(text, 0)",
        "local f, text = loadstring('return \"' .. ('x'):rep(2e7) .. '\"') error(text, 0)",
    ] {
        let (short, peak) = peak_of(source, LIMIT);
        assert!(short, "this fits into the limit: {source}");
        assert!(
            peak <= LIMIT + SLACK,
            "{} MB at the most: {source}",
            peak >> 20
        );
        println!("{:>4} MB {source}", peak >> 20);
    }
    for source in [
        "local t = {} for i = 1, 1e9 do t[i] = coroutine.wrap(function() coroutine.yield() end) t[i]() end",
        "local t = {} local function deep(n) if n > 0 then return 1 + deep(n - 1) end coroutine.yield() end
         for i = 1, 1e9 do t[i] = coroutine.wrap(deep) t[i](130) end",
        "local t = {} local function deep(n) if n > 0 then return 1 + deep(n - 1) end coroutine.yield() end
         for i = 1, 1e9 do t[i] = coroutine.wrap(deep) t[i](15000) end",
        "local t = {} local function many(n) local f = function() return n end if n > 0 then return many(n - 1)() + 1 end
         coroutine.yield() return f end
         for i = 1, 1e9 do t[i] = coroutine.wrap(many) t[i](70) end",
    ] {
        let (short, peak) = peak_of(source, LARGE_LIMIT);
        let percent = peak * 100 / LARGE_LIMIT;
        println!("{percent:>4} % {source}");
        assert!(short, "this fits into the limit: {source}");
        assert!(percent <= 105, "{percent} % of the limit: {source}");
    }
    for source in [
        "for i = 1, 1e5 do coroutine.wrap(function() coroutine.yield() end)() end",
        "for i = 1, 100 do local s = ('x'):rep(1e7 + i) end",
        "for i = 1, 20 do local s = ('x'):rep(1e6):gsub('x', 'yyyyyyyyyy') end",
        "for i = 1, 1e6 do local t = {i, tostring(i)} end",
        "for i = 1, 20 do loadstring(('x = 1 '):rep(1e5)) end",
    ] {
        let (short, _) = peak_of(source, LIMIT);
        assert!(!short, "{source}");
    }
}
