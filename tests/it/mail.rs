//! Placeholder of mail.
