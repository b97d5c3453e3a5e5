//! Settings of the writes of hosts: what a write takes for its agent, and what becomes of it without a daemon.

use toml::de::DeValue;

use super::value::{Context, Value, quoted, words};

words! {
    /// The effect of a write that a host's hook reports.
    Auto {
        /// Other agents of the work tree cannot write what the writer holds; those of other work trees are told.
        Hold = "hold",
        /// Other agents are told.
        Announce = "announce",
        /// Nothing is taken.
        Off = "off",
    }
    /// What becomes of a write of a host while no daemon runs.
    WhenDown {
        /// The hook starts a daemon, and asks it.
        Start = "start",
        /// The write goes on.
        Pass = "pass",
        /// The write is refused.
        Block = "block",
    }
}
