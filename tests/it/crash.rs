//! Placeholder of crash.
