//! Bytes that must not be printed, copied or left in memory.

use std::sync::{Arc, OnceLock};

use hmac::{Hmac, KeyInit as _};
use sha2::Sha256;
use zeroize::Zeroizing;

/// Key material. It has no `Debug` and no `Display`, is compared only through a MAC, and is wiped when the last
/// holder drops it. Clones share the bytes.
#[derive(Clone)]
pub struct Secret(Arc<Keyed>);

struct Keyed {
    bytes: Zeroizing<Vec<u8>>,
    /// The key's share of a MAC, computed once: it is half the work for a short message.
    mac: OnceLock<Hmac<Sha256>>,
}

impl Secret {
    /// Takes ownership of the bytes; the caller's copy should be gone.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(Arc::new(Keyed { bytes: Zeroizing::new(bytes), mac: OnceLock::new() }))
    }

    /// Returns the bytes, for the file that keeps them.
    pub fn expose(&self) -> &[u8] {
        &self.0.bytes
    }

    /// Returns a MAC under this key that has taken in no data yet.
    pub fn mac(&self) -> Hmac<Sha256> {
        let keyed = || Hmac::new_from_slice(&self.0.bytes).expect("HMAC takes keys of any length");
        self.0.mac.get_or_init(keyed).clone()
    }
}
