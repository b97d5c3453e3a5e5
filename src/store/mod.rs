//! Where state rests.
#![forbid(unsafe_code)]
