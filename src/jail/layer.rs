//! The layers of a jail by name. The tests leave some out to see the purpose of each.
//!
//! No worker ever gets such a jail. A plan that lacks a layer can be made only by programs built for
//! debugging, or with the feature `layers-off` for measuring ([`Plan::without`](super::Plan)). It is honoured
//! only by a supervisor that was started by
//! [`main_of_the_tests_if_asked`](super::main_of_the_tests_if_asked), which exists only in such programs and
//! which `provost` does not call. Every other supervisor refuses it.
#![forbid(unsafe_code)]

use serde::{Deserialize, Serialize};

/// One layer. Several of them block most attempts to escape.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Layer {
    /// The root directory made for the worker, with its mounts (`ns`).
    Root,
    /// The worker's own process ids (`ns`).
    PidNamespace,
    /// The worker's own network, which has only a loopback (`ns`).
    NetNamespace,
    /// The worker's own shared memory, semaphores and queues (`ns`).
    IpcNamespace,
    /// No user namespaces inside of the worker's own (`ns`).
    NoNestedNamespaces,
    /// The system call filter.
    Seccomp,
    /// The worker's Landlock domain. The supervisor's own, which keeps signals inside in `ll`, always stays:
    /// ending a worker's processes there relies on it.
    Landlock,
    /// No setuid program gives privileges.
    NoNewPrivileges,
    /// Every capability dropped irrevocably.
    Capabilities,
    /// The limits of resources that the plan names.
    Limits,
    /// Descriptors that the daemon left open are closed.
    Descriptors,
    /// The worker's environment has the plan's variables, and none of the daemon's.
    Environment,
    /// A session without a terminal.
    Session,
    /// A token that is restricted for writing and of low integrity (`job`).
    Token,
}
