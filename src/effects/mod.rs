//! Hands.
#![forbid(unsafe_code)]
