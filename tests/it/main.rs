//! The one test crate: every promise that Provost makes, tried through real files, sockets and processes.

mod policy;
mod policy_files;
mod policy_random;
