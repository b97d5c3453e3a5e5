//! Session tokens of DevIt's document dialect: proof that outlives the frame that brought the secret.
//!
//! DevIt, 1.16: `authenticate` answers with a token that later requests carry. A token is 256 random bits, bound to
//! the ident, the uid and the key that it was given for. The daemon keeps only its digest. A look-up compares
//! digests of what the peer sent, so its time reveals nothing about the token.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Rejected;
use provost_base::{AgentId, Digest, Secret, Timestamp, Ttl};

/// The tokens that are valid now. They do not survive a restart.
pub struct Tokens {
    capacity: usize,
    issued: Mutex<HashMap<Digest, Issued>>,
}

struct Issued {
    ident: AgentId,
    uid: u32,
    key: Digest,
    expires: Timestamp,
}

impl Tokens {
    /// Holds at most `capacity` tokens; a further one replaces the token that would expire first.
    pub fn new(capacity: usize) -> Self {
        Self { capacity: capacity.max(1), issued: Mutex::default() }
    }

    /// Issues a token to an ident that has proved itself with a key of this digest: 64 hexadecimal digits.
    ///
    /// # Errors
    /// If the system has no randomness to give.
    pub fn issue(
        &self,
        ident: AgentId,
        uid: u32,
        key: Digest,
        now: Timestamp,
        ttl: Ttl,
    ) -> Result<Secret, getrandom::Error> {
        let token = super::random_hex()?;
        let mut issued = self.issued();
        if issued.len() >= self.capacity {
            issued.retain(|_, token| token.expires > now);
        }
        if issued.len() >= self.capacity {
            let first = issued.iter().min_by_key(|(_, token)| token.expires).map(|(digest, _)| *digest);
            first.and_then(|digest| issued.remove(&digest));
        }
        issued.insert(Digest::of(token.expose()), Issued { ident, uid, key, expires: now.after(ttl) });
        Ok(token)
    }

    /// Returns the agent of a token, and the digest of the key that the agent got it with. The token is worth what
    /// that key is worth now, which the caller checks.
    ///
    /// # Errors
    /// [`Rejected::BadToken`] if it is not known, has expired, or was given to another user.
    pub fn check(&self, token: &str, uid: u32, now: Timestamp) -> Result<(AgentId, Digest), Rejected> {
        match self.issued().get(&Digest::of(token.as_bytes())) {
            Some(issued) if issued.uid == uid && now < issued.expires => {
                Ok((issued.ident.clone(), issued.key))
            }
            _ => Err(Rejected::BadToken),
        }
    }

    fn issued(&self) -> MutexGuard<'_, HashMap<Digest, Issued>> {
        // The map is whole between any two of its operations, so a panic elsewhere has not harmed it.
        self.issued.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
