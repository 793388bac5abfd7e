//! Links the program at a fixed address where that is the loader's business alone (glibc on Linux).
//!
//! A position-independent executable of this size has the dynamic loader write some hundred thousand addresses at every
//! start: 13 MiB of private memory and half of the time to the first answer.

#![allow(
    clippy::disallowed_methods,
    reason = "cargo tells a build script about the target by its environment"
)]

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let target = |key: &str| std::env::var(key).unwrap_or_default();
    if target("CARGO_CFG_TARGET_OS") == "linux" && target("CARGO_CFG_TARGET_ENV") == "gnu" {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}
