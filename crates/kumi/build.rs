//! Leaves symbols out of the released binary: Cargo drops `strip` where a profile has an entry for the binary's package.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // PROFILE is "release" in profiles that inherit it too.
    let released = std::env::var("OUT_DIR").is_ok_and(|path| path.contains("/release/"));
    let linux = std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux");
    if released && linux {
        println!("cargo::rustc-link-arg-bins=-Wl,--strip-all");
    }
}
