//! What several crates of kumi need and no published crate offers.
//!
//! A leaf without dependencies: it opens nothing, reads no clock and draws no random numbers, and needs an allocator but
//! no standard library. What belongs to one crate alone, limits and constants included, stays in that crate.
//!
//! ```
//! use kumi_common::{Chain, Shown};
//!
//! let error = "x".parse::<u8>().unwrap_err();
//! assert_eq!(Chain(&error).to_string(), "invalid digit found in string");
//! assert_eq!(Shown { bytes: b"a\nb", limit_chars: 80 }.to_string(), "a\\nb");
//! ```
#![forbid(unsafe_code)]
#![no_std]

extern crate alloc;

mod backoff;
mod life;
mod name;
mod text;

pub use backoff::doubled;
pub use life::{InvalidLife, Life};
pub use name::{InvalidName, InvalidNameAndLife, MAX_NAME_BYTES, Name, NameAndLife};
pub use text::{Chain, Shown, causes};
