//! The files of passkeys, for the command that changes root's file, and for advice.

pub use provost_auth::passkeys::{PASSKEYS_FILE, any_listed, install};
