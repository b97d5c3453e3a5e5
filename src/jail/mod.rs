//! Placeholder.
mod profile;
pub use profile::{BadRun, Fill, ParseMode, Profile};
