//! `kumi-server`: a drop-in for `redis-server`.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    kumi_server::main_from_args(std::env::args_os().skip(1))
}
