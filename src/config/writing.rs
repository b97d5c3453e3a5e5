//! Settings of the writes of hosts: what a write takes for its agent, and what becomes of it without a daemon; and where contracts bind.

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
    /// The effect of a lease of a write in other work trees than the writer's.
    AutoAcross {
        /// Their agents are told.
        Announce = "announce",
        /// Their agents cannot write it either.
        Hold = "hold",
    }
    /// Where an accepted contract binds.
    ContractsBind {
        /// On all branches.
        Everywhere = "everywhere",
        /// On the branch on which it was offered.
        Branch = "branch",
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
