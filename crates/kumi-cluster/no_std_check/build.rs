//! The program brings its own entry point, so the C start-up files stay out.

fn main() {
    println!("cargo::rustc-link-arg-bins=-nostartfiles");
    println!("cargo::rustc-link-arg-bins=-nostdlib");
    println!("cargo::rustc-link-arg-bins=-static");
}
