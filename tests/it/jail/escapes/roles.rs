//! The other roles of this executable: the supervisor of jails that lack a layer, the daemon that an intruder attacks,
//! and the intruder.

use super::{intruder, stand_in};

/// The first argument of a daemon to be attacked.
pub(super) const STAND_IN: &str = "__stand-in";

/// The first argument of an intruder.
pub(super) const INTRUDER: &str = "__intruder";

/// Comes back if this process is to run tests.
pub(super) fn become_what_is_asked() {
    #[cfg(debug_assertions)]
    provost::jail::main_of_the_tests_if_asked();
    let arguments: Vec<String> = std::env::args_os().take(3).filter_map(|it| it.into_string().ok()).collect();
    match &arguments[..] {
        [_, role, order] if role == STAND_IN => stand_in::main(order),
        [_, role, facts] if role == INTRUDER => intruder::main(facts),
        _ => {}
    }
}
