//! The content of a request that a person has to know before answering it, as the page, a terminal and a host's dialog show it.

pub use provost_view::{facts, words};
