//! The one test crate: every promise that Provost makes, tried through real files, sockets and processes.

mod journal;
mod store;
mod store_sqlite;
mod storm;
