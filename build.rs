//! Links the programs of debug builds to fixed addresses.
//!
//! A debug build has half a million addresses in its data, and the loader would write each of them at every start: nearly half
//! of the time of a short command, in tests that start tens of thousands of programs. Release builds stay position-independent, so that the
//! kernel can place them at random.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name: &str, wanted: &str| env::var(name).is_ok_and(|it| it == wanted);
    if is("PROFILE", "debug") && is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu") {
        println!("cargo::rustc-link-arg-bins=-no-pie");
        println!("cargo::rustc-link-arg-tests=-no-pie");
    }
}
