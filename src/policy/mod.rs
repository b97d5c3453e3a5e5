//! Judgement.
#![forbid(unsafe_code)]
