//! Test equipment that shares code with no test: a store in memory, a second judge of rules, callers
//! without proof, what fills a store as a long life does, and the signatures and seals of hosts.
//!
//! It is a crate of its own so that no part of it is in the product. Only the tests and the benches depend on it.
#![forbid(unsafe_code)]

pub mod callers;
pub mod full_store;
pub mod host_signature;
mod memory;
pub mod naive;
mod naive_calls;
pub mod repo_row;

pub use memory::{Kept, LogStore, Lost, MemoryControl, MemoryStore, SharedLog};
