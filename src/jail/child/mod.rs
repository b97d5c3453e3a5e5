//! The supervisor's side of a jail, one folder for each system, and the few functions by which a daemon protects itself.
//!
//! All direct calls to the kernel are below here; `unsafe` occurs in `linux/sys.rs` and in
//! `windows/sys/`, one call for each block.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
pub(super) use linux::{First, clear_group, host_facts, prepare_groups};
#[cfg(target_os = "linux")]
pub use linux::{become_subreaper, harden_daemon, inherited_socket, start_restricted, sweep_orphans};

#[cfg(target_os = "macos")]
mod macos;
#[cfg(target_os = "macos")]
pub(super) use macos::start;
#[cfg(not(target_os = "linux"))]
mod other;
#[cfg(not(target_os = "linux"))]
pub use other::inherited_socket;
#[cfg(windows)]
mod windows;
#[cfg(not(any(target_os = "linux", windows)))]
pub(super) use other::host_facts;
#[cfg(not(target_os = "linux"))]
pub(super) use other::prepare_groups;
#[cfg(not(any(target_os = "linux", target_os = "macos", windows)))]
pub(super) use other::start;
#[cfg(not(target_os = "linux"))]
pub use other::{become_subreaper, harden_daemon, sweep_orphans};
#[cfg(windows)]
pub use windows::make_worker_folder;
#[cfg(windows)]
pub(super) use windows::{host_facts, start};

/// The hidden command under which this executable is a supervisor.
pub(super) const ARGUMENT: &str = "__jail";

/// The argument behind [`ARGUMENT`] if the supervisor only has to try whether namespaces can be made.
pub(super) const TRY_NAMESPACES: &str = "try-namespaces";

/// The jails that a supervisor builds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Demand {
    /// Only jails with every layer.
    Whole,
    /// Also jails from which a test leaves a layer out.
    #[cfg(any(debug_assertions, feature = "layers-off"))]
    OrLess,
}

/// Becomes a supervisor if the daemon has started this process as one, and does not return then. Must be called first
/// in `main`, before any thread exists, since it forks.
pub fn main_if_asked() {
    supervise_if_asked(Demand::Whole);
}

/// Does the same for the executables of tests and the benchmark, whose supervisors also build jails that lack a
/// layer. Only programs built for debugging or with `layers-off` have this function, and `provost` does not call it.
#[cfg(any(debug_assertions, feature = "layers-off"))]
pub fn main_of_the_tests_if_asked() {
    supervise_if_asked(Demand::OrLess);
}

fn supervise_if_asked(demand: Demand) {
    let mut args = std::env::args_os().skip(1);
    if args.next().is_some_and(|first| first == ARGUMENT) {
        #[cfg(target_os = "linux")]
        linux::main(args.next().is_some_and(|second| second == TRY_NAMESPACES), demand == Demand::Whole);
        #[cfg(not(target_os = "linux"))]
        {
            let _both = demand;
            other::main();
        }
    }
}
