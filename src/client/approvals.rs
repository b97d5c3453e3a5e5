//! What a person has to know of a request before they answer it: as the page, a terminal and a host's dialog show it.

pub use provost_view::{facts, words};
