//! What a program that is the server leaves in its log when it crashes: a report with the version, the build, the last
//! command without its values, and addresses of the stack.
//!
//! SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT end the process. Their handler may do async-signal-safe work only, because
//! it interrupts anything, an allocation too: everything it prints was prepared when it was installed, or is read from an
//! atomic. It makes the system calls `open`, `write`, `process_vm_readv` and `raise` and nothing else, and then lets the
//! signal end the process as it would have. The stack is not unwound, which would need locks and memory: what is listed
//! are the words on it that point into the program's code, a few of which may be left over from calls that have returned.
//! `addr2line -f -e kumi-server 0x...` of the same build names the functions.
//!
//! A panic is no signal: its hook may allocate, and it adds the backtrace that the standard library makes. INFO follows in
//! the log if the panic ends the server (`server.rs`).
//!
//! A signal handler finds nothing but statics, so there is one here. An embedded server installs neither: the
//! process is not its own.
//!
//! `unsafe` is needed to install a handler, to read what the system hands it, and for system calls on raw memory. Each
//! place says why it is sound. A test sends real signals to a real server.

#![expect(unsafe_code, reason = "signal handlers have no safe form")]

use crate::base::log::Target;
use kumi_store::{KUMI_VERSION, REDIS_VERSION, RunningCommand};
use std::ffi::CString;
use std::fs;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

const SIGNALS: [libc::c_int; 5] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
    libc::SIGABRT,
];
/// Bytes of the stack that are searched for return addresses, and how many of those are listed.
const STACK_BYTES: usize = 64 * 1024;
const MAX_ADDRESSES: usize = 64;
/// Words of the stack that are read at once. The handler's own stack is small.
const WORDS: usize = 32;

/// What the handler prints, prepared in advance.
#[derive(Debug)]
struct Report {
    /// The log file; none for standard output.
    path: Option<CString>,
    /// `1234:M # `, the start of a line. The handler cannot tell the time of day.
    mark: String,
    build_id: String,
    /// Where the program's code is in memory.
    code: Vec<Range<usize>>,
    /// What is subtracted from an address to find it in the file.
    base: usize,
    running: OnceLock<RunningCommand>,
    /// `crash-log-enabled`
    enabled: AtomicBool,
    /// Set by the first thread that crashes.
    begun: AtomicBool,
}

/// The only static of the crate, for the handler.
static REPORT: OnceLock<Report> = OnceLock::new();

/// Installs the handler and the panic hook for a program that logs to `target`. `enabled`: crashes by a signal are
/// reported as well as panics (`crash-log-enabled`).
pub(crate) fn install(target: &Target, enabled: bool) {
    let path = match target {
        Target::Stdout => None,
        Target::File(path) => CString::new(path.as_os_str().as_bytes()).ok(),
    };
    let (code, base) = code_in_memory();
    let report = Report {
        path,
        mark: format!("{}:M # ", std::process::id()),
        build_id: build_id().unwrap_or_else(|| "unknown".to_owned()),
        code,
        base,
        running: OnceLock::new(),
        enabled: AtomicBool::new(enabled),
        begun: AtomicBool::new(false),
    };
    if REPORT.set(report).is_err() {
        return;
    }
    install_panic_hook();
    for signal in SIGNALS {
        install_handler(signal);
    }
}

/// Turns reports of signals on or off.
pub(crate) fn enable(enabled: bool) {
    if let Some(report) = REPORT.get() {
        report.enabled.store(enabled, Ordering::Relaxed);
    }
}

/// Has reports name the command that runs.
pub(crate) fn watch(running: RunningCommand) {
    if let Some(report) = REPORT.get() {
        // A second server of the same program is not watched.
        let _ = report.running.set(running);
    }
}

/// Logs panics. A panic in a command is caught and replied to with an error, so the log is the only place that shows
/// where it happened.
fn install_panic_hook() {
    std::panic::set_hook(Box::new(|panic| {
        let backtrace = std::backtrace::Backtrace::force_capture();
        let thread = std::thread::current();
        let thread = thread.name().unwrap_or("unnamed").to_owned();
        let Some(report) = REPORT.get() else {
            return;
        };
        let command = match report.last_command() {
            Some((name, args)) => format!("{name} with {args} arguments"),
            None => "none".to_owned(),
        };
        let mut addresses = String::new();
        let here = std::ptr::from_ref(&addresses) as usize;
        report.stack(here, |address| {
            addresses.push_str(&format!(" {address:#x}"));
        });
        tracing::error!(
            thread,
            "kumi {KUMI_VERSION} (Redis {REDIS_VERSION}) panic: {panic}\nbuild id: {}\nlast command: {command}\nstack:{addresses}\n{backtrace}",
            report.build_id
        );
    }));
}

fn install_handler(signal: libc::c_int) {
    // SAFETY: a zeroed sigaction is a valid one. The handler has the signature that SA_SIGINFO asks for, and does
    // async-signal-safe work only. SA_ONSTACK has it run on the alternative stack that the standard library gives every
    // thread, so that a stack overflow is reported too. SA_RESETHAND has a crash inside of the handler end the process.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = handle;
        action.sa_sigaction = handler as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESETHAND;
        libc::sigemptyset(&raw mut action.sa_mask);
        libc::sigaction(signal, &raw const action, std::ptr::null_mut());
    }
}

extern "C" fn handle(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let enabled = |report: &&Report| report.enabled.load(Ordering::Relaxed);
    if let Some(report) = REPORT.get().filter(enabled) {
        if report.begun.swap(true, Ordering::Relaxed) {
            // Another thread writes its report and ends the process.
            loop {
                // SAFETY: it takes nothing and waits for a signal.
                unsafe { libc::pause() };
            }
        }
        // SAFETY: the kernel hands a handler with SA_SIGINFO a siginfo_t that is valid while it runs.
        let code = unsafe { (*info).si_code };
        report.write(signal, code, place(context));
    }
    // The default action holds again. It is taken when the handler returns: until then the signal is blocked.
    // SAFETY: it is async-signal-safe, and the number is that of a signal.
    unsafe {
        libc::raise(signal);
    }
}

/// The instruction and the top of the stack that a signal interrupted.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn place(context: *mut libc::c_void) -> (usize, usize) {
    // SAFETY: the third argument of a handler with SA_SIGINFO is a ucontext_t that is valid while it runs.
    let registers = unsafe { &(*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    (
        registers[libc::REG_RIP as usize] as usize,
        registers[libc::REG_RSP as usize] as usize,
    )
}

/// The instruction and the top of the stack that a signal interrupted.
#[cfg(all(target_os = "linux", target_arch = "aarch64"))]
fn place(context: *mut libc::c_void) -> (usize, usize) {
    // SAFETY: the third argument of a handler with SA_SIGINFO is a ucontext_t that is valid while it runs.
    let registers = unsafe { &(*context.cast::<libc::ucontext_t>()).uc_mcontext };
    (registers.pc as usize, registers.sp as usize)
}

/// Elsewhere the registers are not read.
#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
fn place(_context: *mut libc::c_void) -> (usize, usize) {
    (0, 0)
}

impl Report {
    fn last_command(&self) -> Option<(&str, u32)> {
        self.running.get()?.get()
    }

    /// Writes the report of a signal. Async-signal-safe.
    fn write(&self, signal: libc::c_int, code: libc::c_int, (instruction, stack): (usize, usize)) {
        let out = self.open();
        let line = |parts: &[Part<'_>]| {
            write_part(out, Part::Text(&self.mark));
            for part in parts {
                write_part(out, *part);
            }
            write_part(out, Part::Text("\n"));
        };
        line(&[Part::Text(
            "=== KUMI CRASH REPORT, include it when you report a bug ===",
        )]);
        line(&[
            Part::Text("kumi "),
            Part::Text(KUMI_VERSION),
            Part::Text(" (Redis "),
            Part::Text(REDIS_VERSION),
            Part::Text(") crashed by signal: "),
            Part::Number(signal as usize),
            Part::Text(", si_code: "),
            Part::Number(code.unsigned_abs() as usize),
        ]);
        line(&[Part::Text("build id: "), Part::Text(&self.build_id)]);
        match self.last_command() {
            Some((name, args)) => line(&[
                Part::Text("last command: "),
                Part::Text(name),
                Part::Text(" with "),
                Part::Number(args as usize),
                Part::Text(" arguments"),
            ]),
            None => line(&[Part::Text("last command: none")]),
        }
        line(&[
            Part::Text("instruction: "),
            Part::Address(instruction.wrapping_sub(self.base)),
        ]);
        self.stack(stack, |address| {
            line(&[Part::Text("stack: "), Part::Address(address)]);
        });
        line(&[Part::Text("=== END OF THE CRASH REPORT ===")]);
    }

    /// The descriptor to write to. It is not closed: the process ends.
    fn open(&self) -> libc::c_int {
        let Some(path) = &self.path else {
            return libc::STDOUT_FILENO;
        };
        let flags = libc::O_WRONLY | libc::O_APPEND | libc::O_CREAT | libc::O_CLOEXEC;
        // SAFETY: the path ends with a zero byte and stays where it is.
        let out = unsafe { libc::open(path.as_ptr(), flags, 0o644) };
        if out < 0 { libc::STDERR_FILENO } else { out }
    }

    /// Finds the words of the stack from `top` on that point into the program's code. Async-signal-safe: memory is read by
    /// a system call, which fails where there is none.
    fn stack(&self, top: usize, mut found: impl FnMut(usize)) {
        let mut words = [0_usize; WORDS];
        let mut left = MAX_ADDRESSES;
        let step = size_of_val(&words);
        for from in (top..top.saturating_add(STACK_BYTES)).step_by(step) {
            if !read_memory(from, &mut words) {
                return;
            }
            for word in words {
                if self.code.iter().any(|range| range.contains(&word)) {
                    found(word - self.base);
                    left -= 1;
                    if left == 0 {
                        return;
                    }
                }
            }
        }
    }
}

/// Copies words of this process's memory; false if they are not all there.
#[cfg(target_os = "linux")]
fn read_memory(from: usize, words: &mut [usize; WORDS]) -> bool {
    let len = size_of_val(words);
    let local = libc::iovec {
        iov_base: words.as_mut_ptr().cast(),
        iov_len: len,
    };
    let remote = libc::iovec {
        iov_base: std::ptr::without_provenance_mut(from),
        iov_len: len,
    };
    // SAFETY: the kernel writes at most `len` bytes to `words`, which has them. It checks the other address itself.
    let read = unsafe {
        libc::process_vm_readv(libc::getpid(), &raw const local, 1, &raw const remote, 1, 0)
    };
    read == len as isize
}

/// Elsewhere the stack is not read.
#[cfg(not(target_os = "linux"))]
fn read_memory(_from: usize, _words: &mut [usize; WORDS]) -> bool {
    false
}

/// A piece of a line.
#[derive(Clone, Copy)]
enum Part<'a> {
    Text(&'a str),
    /// In decimal.
    Number(usize),
    /// In hexadecimal.
    Address(usize),
}

/// Writes a piece of a line. Async-signal-safe: nothing is allocated, and nothing can be done about a failure.
fn write_part(out: libc::c_int, part: Part<'_>) {
    // Two more than the digits of the longest number.
    let mut digits = [0_u8; 22];
    let (mut number, base) = match part {
        Part::Text(text) => return write_bytes(out, text.as_bytes()),
        Part::Number(number) => (number, 10),
        Part::Address(number) => (number, 16),
    };
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b"0123456789abcdef"[number % base];
        number /= base;
        if number == 0 {
            break;
        }
    }
    if base == 16 {
        at -= 2;
        digits[at..at + 2].copy_from_slice(b"0x");
    }
    write_bytes(out, &digits[at..]);
}

fn write_bytes(out: libc::c_int, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        // SAFETY: the pointer and the length are those of a slice.
        let written = unsafe { libc::write(out, bytes.as_ptr().cast(), bytes.len()) };
        let Some(rest) = usize::try_from(written)
            .ok()
            .and_then(|count| bytes.get(count..))
        else {
            return;
        };
        bytes = rest;
    }
}

/// Ends the process by a real access to memory that is not there (DEBUG SEGFAULT).
pub(crate) fn segfault() -> ! {
    // SAFETY: it is not. The address belongs to nobody and the process ends here, which is the purpose.
    unsafe {
        std::ptr::without_provenance_mut::<u8>(8).write_volatile(0);
    }
    std::process::abort()
}

/// Where the program's code is in memory, and where its file begins.
fn code_in_memory() -> (Vec<Range<usize>>, usize) {
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let program = std::env::current_exe().unwrap_or_default();
    let program = program.to_string_lossy();
    let mut code = Vec::new();
    let mut base = None;
    for line in maps.lines().filter(|line| line.ends_with(&*program)) {
        let mut fields = line.split_ascii_whitespace();
        let (Some(place), Some(access)) = (fields.next(), fields.next()) else {
            continue;
        };
        let mut ends = place.split('-').map(|end| usize::from_str_radix(end, 16));
        let (Some(Ok(start)), Some(Ok(end))) = (ends.next(), ends.next()) else {
            continue;
        };
        base.get_or_insert(start);
        if access.contains('x') {
            code.push(start..end);
        }
    }
    (code, base.unwrap_or(0))
}

/// The build id that the linker put into the program.
fn build_id() -> Option<String> {
    let program = fs::read(std::env::current_exe().ok()?).ok()?;
    find_build_id(&program).map(|id| id.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Finds the note `NT_GNU_BUILD_ID` in an ELF file of 64 bits, little endian.
///
/// ```text
/// file header    ... at 32: where the program headers are; at 54: their size and number
/// program header type, flags, offset, address, address, size in the file, ...
/// note           name size, description size, type, "GNU\0", the id
/// ```
fn find_build_id(file: &[u8]) -> Option<&[u8]> {
    const PT_NOTE: usize = 4;
    const NT_GNU_BUILD_ID: usize = 3;
    let number = |at: usize, len: usize| -> Option<usize> {
        let bytes = file.get(at..at.checked_add(len)?)?;
        Some(
            bytes
                .iter()
                .rev()
                .fold(0, |number, byte| number << 8 | usize::from(*byte)),
        )
    };
    if !file.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let (headers, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
    for header in (0..count).map(|index| headers.saturating_add(index * size)) {
        if number(header, 4)? != PT_NOTE {
            continue;
        }
        let (mut at, len) = (number(header + 8, 8)?, number(header + 32, 8)?);
        let end = at.saturating_add(len);
        while at.saturating_add(12) <= end {
            let (name, text, kind) = (number(at, 4)?, number(at + 4, 4)?, number(at + 8, 4)?);
            let start = at.checked_add(12)?.checked_add(name.next_multiple_of(4))?;
            let id = file.get(start..start.checked_add(text)?)?;
            if kind == NT_GNU_BUILD_ID && file.get(at + 12..at + 16)? == b"GNU\0" {
                return Some(id);
            }
            at = start.checked_add(text.next_multiple_of(4))?;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_file_that_is_read_for_a_build_id_does_harm() {
        let program = std::env::current_exe().expect("a test has a program");
        let program = fs::read(program).expect("it can be read");
        let head = &program[..4096];
        for cut in 0..head.len() {
            let _ = find_build_id(&head[..cut]);
        }
        let mut damaged = head.to_vec();
        for at in 0..512 {
            for value in [0, 1, 0x7f, 0xff] {
                let byte = std::mem::replace(&mut damaged[at], value);
                let _ = find_build_id(&damaged);
                damaged[at] = byte;
            }
        }
    }

    #[test]
    fn memory_that_is_not_there_is_not_read() {
        let mut words = [0; WORDS];
        let held = [7_usize; WORDS];
        assert!(read_memory(std::ptr::from_ref(&held) as usize, &mut words));
        assert_eq!(words, held);
        assert!(!read_memory(8, &mut words));
    }

    #[test]
    fn the_code_of_this_function_is_in_the_program() {
        let (code, base) = code_in_memory();
        let here = the_code_of_this_function_is_in_the_program as fn() as usize;
        assert!(code.iter().any(|range| range.contains(&here)));
        assert!(base > 0 && base <= here);
    }
}
