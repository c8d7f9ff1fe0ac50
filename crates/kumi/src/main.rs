//! The `kumi` binary. What it does is in the library's module `command_line`: a library is compiled while its dependencies
//! still are, a binary only after the last of them.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    kumi::command_line::main()
}
