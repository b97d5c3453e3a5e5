//! Proof. The only maker of a `Principal`.
#![deny(unsafe_code)]

#[doc(hidden)]
pub mod testing;
