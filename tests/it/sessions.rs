//! Placeholder of sessions.
