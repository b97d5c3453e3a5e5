//! Bytes that must not be printed, copied about or left in memory.

use zeroize::Zeroizing;

/// Key material. Has no `Debug` and no `Display`, compares only through a MAC, and is wiped when dropped.
#[derive(Clone)]
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    /// Takes ownership of the bytes; the caller's copy should be gone.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// The bytes, for a MAC or for the file they are kept in.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}
