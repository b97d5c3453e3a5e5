//! Own.
pub mod wire;
