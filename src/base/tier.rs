//! The kinds of a worker's confinement, for rules, the configuration and the jail alike.

use serde::{Deserialize, Serialize};

/// The kind of a worker's confinement by the kernel. Ordered: later is stronger. Policy names the weakest one that it accepts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// A job object and a token that can write only in the worker's own folders; reading and the network
    /// stay open. For Windows.
    Job,
    /// Landlock, system call filter, limits; for machines without unprivileged user namespaces. Files stay visible by name.
    Ll,
    /// Namespaces and a root directory of its own, in addition to all of `Ll`.
    Ns,
}

impl Tier {
    /// Returns the word in rules and in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Tier::Job => "job",
            Tier::Ll => "ll",
            Tier::Ns => "ns",
        }
    }
}
