//! Placeholder of engine.
