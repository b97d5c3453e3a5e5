//! Settings of the writes of hosts: the lease that a write takes for its agent, and the handling of writes while no daemon
//! runs; and the branches on which contracts bind.

use toml::de::DeValue;

use super::value::{Context, Value, quoted, words};

words! {
    /// The effect of a write that a host's hook reports.
    Auto {
        /// Other agents of the work tree cannot write the places that the writer holds; those of other work trees are told.
        Hold = "hold",
        /// Other agents are told.
        Announce = "announce",
        /// The writer gets no lease.
        Off = "off",
    }
    /// The effect of a lease of a write in other work trees than the writer's.
    AutoAcross {
        /// Their agents are told.
        Announce = "announce",
        /// Their agents cannot write the same places either.
        Hold = "hold",
    }
    /// The branches on which an accepted contract binds.
    ContractsBind {
        /// All branches.
        Everywhere = "everywhere",
        /// Only the branch on which it was offered.
        Branch = "branch",
    }
    /// The handling of a host's write while no daemon runs.
    WhenDown {
        /// The hook starts a daemon, and asks it.
        Start = "start",
        /// The write goes on.
        Pass = "pass",
        /// The write is refused.
        Block = "block",
    }
}
