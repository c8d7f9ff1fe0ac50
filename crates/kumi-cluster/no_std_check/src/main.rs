//! A program without the standard library and without libc that lets two nodes find each other.
//!
//! It has its own panic handler: were `std` linked anywhere below, there would be two, and it would not build. It exits
//! with 0 when the nodes agree. Linux on x86-64 only; the core itself is not bound to any system.

#![no_std]
#![no_main]

extern crate alloc;

use alloc::vec;
use alloc::vec::Vec;
use core::alloc::{GlobalAlloc, Layout};
use core::arch::{asm, global_asm};
use core::panic::PanicInfo;
use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;
use kumi_cluster::core::{
    Authority, GossipOutbound, LocalNode, MemberMetadata, MembershipRuntime,
    MembershipRuntimeConfig, NodeStatus, TimerInstant,
};

const HEAP_BYTES: usize = 8 << 20;

/// Hands out a fixed piece of memory from front to back and takes nothing back: enough for one short run.
struct Bump {
    used: AtomicUsize,
}

static mut HEAP: [u8; HEAP_BYTES] = [0; HEAP_BYTES];

#[global_allocator]
static ALLOCATOR: Bump = Bump {
    used: AtomicUsize::new(0),
};

// SAFETY: every piece is handed out once, aligned and inside the heap.
unsafe impl GlobalAlloc for Bump {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let heap = &raw mut HEAP as usize;
        let taken = self
            .used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
                let start = (heap + used).next_multiple_of(layout.align()) - heap;
                start
                    .checked_add(layout.size())
                    .filter(|&end| end <= HEAP_BYTES)
            });
        let Ok(used) = taken else {
            return core::ptr::null_mut();
        };
        let start = (heap + used).next_multiple_of(layout.align()) - heap;
        // SAFETY: `start` is inside the heap, as checked above.
        unsafe { (&raw mut HEAP).cast::<u8>().add(start) }
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    exit(101)
}

// The kernel enters with the stack aligned to 16 bytes; a call pushes the address that a function expects there.
global_asm!(".globl _start", "_start:", "xor ebp, ebp", "call {main}", "ud2", main = sym start);

extern "C" fn start() -> ! {
    exit(i32::from(!agree().unwrap_or(false)))
}

fn agree() -> Option<bool> {
    let now = TimerInstant::ZERO;
    let names = ["a:1", "b:1"].map(Authority::new);
    let [Ok(first), Ok(second)] = names else {
        return None;
    };
    let mut nodes = vec![node(&first, 1)?, node(&second, 2)?];
    nodes[0].start_member(&[], now).ok()?;
    nodes[1].start_member(&[first], now).ok()?;
    for step in 0..40 {
        let now = now + Duration::from_millis(step * 50);
        for from in 0..2 {
            let sent: Vec<GossipOutbound> = nodes[from].poll(now).gossip_outbound;
            for outbound in sent {
                nodes[1 - from]
                    .handle_message(&outbound.to, &outbound.bytes, now)
                    .ok()?;
            }
        }
    }
    let up = nodes
        .iter()
        .all(|node| node.status() == Some(NodeStatus::Up));
    let both = nodes.iter().all(|node| node.snapshot().members.len() == 2);
    Some(up && both && nodes[0].topology_hash() == nodes[1].topology_hash())
}

fn node(authority: &Authority, seed: u64) -> Option<MembershipRuntime> {
    let node = LocalNode {
        authority: authority.clone(),
        metadata: MemberMetadata::EMPTY,
        unix_ms: 1_700_000_000_000,
        uid: None,
    };
    MembershipRuntime::new(
        MembershipRuntimeConfig::local(),
        node,
        seed,
        TimerInstant::ZERO,
    )
    .ok()
}

fn exit(code: i32) -> ! {
    // SAFETY: the system call ends the process; nothing of ours is used after it.
    unsafe { asm!("syscall", in("rax") 231, in("rdi") code, options(noreturn, nostack)) }
}

/// What the compiler expects of every platform, and libc would bring.
mod memory {
    #[unsafe(no_mangle)]
    unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, len: usize) -> *mut u8 {
        // SAFETY: the caller's promise, byte by byte; volatile, so that it is not made into a call of itself.
        (0..len).for_each(|index| unsafe { to.add(index).write_volatile(from.add(index).read()) });
        to
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, len: usize) -> *mut u8 {
        let copy = |index: usize| {
            // SAFETY: as above; the order is the one in which nothing is overwritten before it was read.
            unsafe { to.add(index).write_volatile(from.add(index).read()) }
        };
        if (to as usize) < from as usize {
            (0..len).for_each(copy);
        } else {
            (0..len).rev().for_each(copy);
        }
        to
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn memset(to: *mut u8, value: i32, len: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        (0..len).for_each(|index| unsafe { to.add(index).write_volatile(value as u8) });
        to
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn memcmp(one: *const u8, two: *const u8, len: usize) -> i32 {
        for index in 0..len {
            // SAFETY: the caller's promise.
            let (one, two) = unsafe {
                (
                    one.add(index).read_volatile(),
                    two.add(index).read_volatile(),
                )
            };
            if one != two {
                return i32::from(one) - i32::from(two);
            }
        }
        0
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn bcmp(one: *const u8, two: *const u8, len: usize) -> i32 {
        // SAFETY: the caller's promise.
        unsafe { memcmp(one, two, len) }
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn strlen(text: *const u8) -> usize {
        let mut len = 0;
        // SAFETY: the caller's promise of an end.
        while unsafe { text.add(len).read_volatile() } != 0 {
            len += 1;
        }
        len
    }

    /// Named by tables for unwinding that are linked, but never used.
    #[unsafe(no_mangle)]
    extern "C" fn rust_eh_personality() {}

    #[unsafe(no_mangle)]
    extern "C" fn _Unwind_Resume() -> ! {
        super::exit(102)
    }
}
