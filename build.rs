//! Links the program at a fixed address where that is the loader's business alone (glibc on Linux).
//!
//! A position-independent executable of this size has the dynamic loader write some hundred
//! thousand addresses at every start: 13 MiB of private memory and half of the time to the first
//! answer. Distributions that ask for one set `ACK_MEMORY_PIE=1` when they build.

#![allow(
    clippy::disallowed_methods,
    reason = "cargo tells a build script about the target by its environment"
)]

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=ACK_MEMORY_PIE");
    let variable = |key: &str| std::env::var(key).unwrap_or_default();
    let loaded_by_glibc =
        variable("CARGO_CFG_TARGET_OS") == "linux" && variable("CARGO_CFG_TARGET_ENV") == "gnu";
    if loaded_by_glibc && variable("ACK_MEMORY_PIE") != "1" {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}
