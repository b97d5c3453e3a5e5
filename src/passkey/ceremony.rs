//! The two ceremonies: a registration, WebAuthn 7.1, and an assertion, 7.2.

use provost_base::Digest;
use provost_base::limits::PASSKEY_SIGNATURE_BYTES_MAX;

use crate::authenticator::{AuthenticatorData, of_attestation};
use crate::client_data::{self, Ceremony};
use crate::{PublicKey, Refused};

/// The relying party: a name, and the pages that may ask for its passkeys.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Party {
    /// The name that credentials belong to: a domain, without a port.
    pub rp_id: String,
    /// The pages, as scheme, host and port.
    pub origins: Vec<String>,
}

/// The browser's answer to `navigator.credentials.create()`.
#[derive(Clone, Copy, Debug)]
pub struct Registration<'a> {
    /// `response.attestationObject`.
    pub attestation_object: &'a [u8],
    /// `response.clientDataJSON`.
    pub client_data: &'a [u8],
}

/// The browser's answer to `navigator.credentials.get()`.
#[derive(Clone, Copy, Debug)]
pub struct Assertion<'a> {
    /// `response.authenticatorData`.
    pub authenticator_data: &'a [u8],
    /// `response.clientDataJSON`.
    pub client_data: &'a [u8],
    /// `response.signature`.
    pub signature: &'a [u8],
}

/// A credential from a registration whose every check has passed. It counts once it has signed, since nothing of a
/// registration is signed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewCredential {
    /// The credential's id.
    pub id: Vec<u8>,
    /// The credential's public key.
    pub key: PublicKey,
    /// The credential's counter at the registration.
    pub counter: u32,
    /// Whether it can be backed up: synced by its manager.
    pub backup_eligible: bool,
    /// The model of the authenticator, by its own claim.
    pub aaguid: [u8; 16],
}

/// The stored facts about a credential that signs.
#[derive(Clone, Copy, Debug)]
pub struct StoredCredential<'a> {
    /// The credential's public key.
    pub key: &'a PublicKey,
    /// Whether it could be backed up at its registration.
    pub backup_eligible: bool,
    /// The credential's counter at its last use.
    pub counter: u32,
}

/// The proof that a known credential has signed and every check has passed. Only [`asserted`] makes one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Asserted {
    /// The credential's new counter.
    pub counter: u32,
    /// Whether the credential is backed up.
    pub backed_up: bool,
}

/// Checks a registration against the challenge that was made for it.
///
/// # Errors
/// The check that has failed.
pub fn registered(
    party: &Party,
    challenge: &[u8; 32],
    it: &Registration<'_>,
) -> Result<NewCredential, Refused> {
    client_data::check(it.client_data, Ceremony::Create, challenge, Some(&party.origins))?;
    let data = AuthenticatorData::read(of_attestation(it.attestation_object)?)?;
    check_flags(&data, &party.rp_id)?;
    let credential = data.attested.ok_or(Refused::NoCredential)?;
    Ok(NewCredential {
        id: credential.id,
        key: credential.key,
        counter: data.counter,
        backup_eligible: data.backup_eligible,
        aaguid: credential.aaguid,
    })
}

/// Checks that an assertion is the known credential's signature over the challenge.
///
/// # Errors
/// The check that has failed.
pub fn asserted(
    party: &Party,
    challenge: &[u8; 32],
    known: &StoredCredential<'_>,
    it: &Assertion<'_>,
) -> Result<Asserted, Refused> {
    let data = signed(&party.rp_id, Some(&party.origins), challenge, known.key, it)?;
    if data.backup_eligible != known.backup_eligible {
        return Err(Refused::BackupChanged);
    }
    // Synced passkeys have no counter: 0 stays 0.
    if (data.counter != 0 || known.counter != 0) && data.counter <= known.counter {
        return Err(Refused::Counter);
    }
    Ok(Asserted { counter: data.counter, backed_up: data.backed_up })
}

/// Checks an earlier assertion again: that it is the signature of `key` over the challenge, with all checks that do not need
/// the state of that time. The origin was compared then; this compares the name that the credential is for.
///
/// # Errors
/// The check that has failed.
pub fn holds(rp_id: &str, challenge: &[u8; 32], key: &PublicKey, it: &Assertion<'_>) -> Result<(), Refused> {
    signed(rp_id, None, challenge, key, it).map(drop)
}

fn signed(
    rp_id: &str,
    origins: Option<&[String]>,
    challenge: &[u8; 32],
    key: &PublicKey,
    it: &Assertion<'_>,
) -> Result<AuthenticatorData, Refused> {
    client_data::check(it.client_data, Ceremony::Get, challenge, origins)?;
    let data = AuthenticatorData::read(it.authenticator_data)?;
    check_flags(&data, rp_id)?;
    if data.attested.is_some() {
        return Err(Refused::NewCredential);
    }
    if it.signature.len() > PASSKEY_SIGNATURE_BYTES_MAX {
        return Err(Refused::TooLong("the signature"));
    }
    let message = [it.authenticator_data, Digest::of(it.client_data).as_bytes()].concat();
    key.verify(&message, it.signature)?;
    Ok(data)
}

fn check_flags(data: &AuthenticatorData, rp_id: &str) -> Result<(), Refused> {
    if data.rp_id_hash != *Digest::of(rp_id.as_bytes()).as_bytes() {
        return Err(Refused::RpId);
    }
    if !data.present {
        return Err(Refused::NotPresent);
    }
    if !data.verified {
        return Err(Refused::NotVerified);
    }
    if data.backed_up && !data.backup_eligible {
        return Err(Refused::BackupState);
    }
    Ok(())
}
