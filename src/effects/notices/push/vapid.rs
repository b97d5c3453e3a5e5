//! The sender's identity: the daemon's key for push services, and the token that it signs for each of them. RFC 8292.
//!
//! The key is a secret of the vault, one for all repositories of the user. Browsers subscribe with it, and their push
//! services take messages of no other key: with a new key, all browsers have to subscribe again.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::json;

use provost_base::limits::PUSH_TOKEN_S;
use provost_base::{Secret, Timestamp};
use provost_vault::{Delivery, Vault, VaultError};

/// The name of the key among the secrets.
const NAME: &str = "push-key";

/// The key of this user's daemons.
pub struct ServerKey(EcdsaKeyPair);

impl ServerKey {
    /// Returns the key of the vault. Blocks.
    ///
    /// # Errors
    /// The vault has no key, or an invalid one; in words.
    pub fn of(vault: &Vault) -> Result<Self, String> {
        let found = vault.get(NAME).map_err(|why| why.to_string())?;
        let no_key = || {
            format!(
                "the secret `{NAME}` is not the key that the daemon has made; remove it, and subscribe each browser \
                 again: provost secret remove {NAME}"
            )
        };
        if found.delivery != Delivery::Daemon {
            return Err(no_key());
        }
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(found.value.expose()).map(Secret::new);
        let bytes = bytes.map_err(|_| no_key())?;
        Self::from_pkcs8(bytes.expose()).map_err(|_| no_key())
    }

    /// Returns the key of the vault, and makes one if there is none. Blocks.
    ///
    /// # Errors
    /// As for [`ServerKey::of`], and if the vault cannot store a key.
    pub fn made_in(vault: &Vault) -> Result<Self, String> {
        match vault.get(NAME) {
            Err(VaultError::Unknown(_)) => {}
            _ => return Self::of(vault),
        }
        let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
        let made = made.map_err(|_| "the system has no randomness to give".to_owned())?;
        let text = Secret::new(BASE64_URL_SAFE_NO_PAD.encode(made.as_ref()).into_bytes());
        match vault.add(NAME, Delivery::Daemon, &text) {
            // The daemon of another repository was first: its key is the user's key.
            Ok(()) | Err(VaultError::Exists(_)) => Self::of(vault),
            Err(why) => Err(format!("the key for push services cannot be kept: {why}")),
        }
    }

    /// Reads a key.
    ///
    /// # Errors
    /// The bytes are no key of P-256.
    pub fn from_pkcs8(bytes: &[u8]) -> Result<Self, String> {
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, bytes, &SystemRandom::new());
        pair.map(Self).map_err(|err| err.to_string())
    }

    /// Returns the public key in base64url, with which browsers subscribe.
    pub fn public(&self) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(self.0.public_key())
    }

    /// Returns the value of the header `authorization` for the push service at this origin.
    ///
    /// # Errors
    /// Signing has failed.
    pub fn authorization(&self, origin: &str, subject: &str, now: Timestamp) -> Result<String, String> {
        let head = json!({ "typ": "JWT", "alg": "ES256" });
        let claims = json!({ "aud": origin, "exp": now.seconds() + PUSH_TOKEN_S, "sub": subject });
        let part = |it: &serde_json::Value| BASE64_URL_SAFE_NO_PAD.encode(it.to_string());
        let signed = format!("{}.{}", part(&head), part(&claims));
        let signature = self.0.sign(&SystemRandom::new(), signed.as_bytes());
        let signature = signature.map_err(|_| "the key for push services cannot sign".to_owned())?;
        let signature = BASE64_URL_SAFE_NO_PAD.encode(signature);
        Ok(format!("vapid t={signed}.{signature}, k={}", self.public()))
    }
}
