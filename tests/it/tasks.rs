//! Placeholder of tasks.
