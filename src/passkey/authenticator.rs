//! Reads an authenticator's data: flags, counter, and at a registration the new credential.

use provost_base::limits::{AUTHENTICATOR_DATA_BYTES_MAX, CREDENTIAL_ID_BYTES_MAX};

use crate::cbor::Reader;
use crate::{PublicKey, Refused};

/// Authenticator data, WebAuthn 6.1. Unknown flags are ignored, as the specification demands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AuthenticatorData {
    /// SHA-256 of the name that the credential is for.
    pub rp_id_hash: [u8; 32],
    /// Whether the user was present.
    pub present: bool,
    /// Whether the authenticator has verified its user.
    pub verified: bool,
    /// Whether the credential can be backed up.
    pub backup_eligible: bool,
    /// Whether the credential is backed up.
    pub backed_up: bool,
    /// The signature counter; 0 if the authenticator has none.
    pub counter: u32,
    /// The new credential, at a registration.
    pub attested: Option<Attested>,
}

/// A new credential.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Attested {
    /// The model of the authenticator, by its own claim; nothing proves it.
    pub aaguid: [u8; 16],
    /// The credential's id.
    pub id: Vec<u8>,
    /// The credential's public key.
    pub key: PublicKey,
}

const PRESENT: u8 = 1;
const VERIFIED: u8 = 1 << 2;
const BACKUP_ELIGIBLE: u8 = 1 << 3;
const BACKED_UP: u8 = 1 << 4;
const ATTESTED: u8 = 1 << 6;
const EXTENSIONS: u8 = 1 << 7;

impl AuthenticatorData {
    /// Reads authenticator data to their end.
    ///
    /// # Errors
    /// [`Refused`] if they are too long or too short, or hold a credential that is not accepted.
    pub fn read(bytes: &[u8]) -> Result<Self, Refused> {
        if bytes.len() > AUTHENTICATOR_DATA_BYTES_MAX {
            return Err(Refused::TooLong("the authenticator data"));
        }
        let (hash, rest) = bytes.split_first_chunk::<32>().ok_or(Refused::DataLength)?;
        let ([flags], rest) = rest.split_first_chunk::<1>().ok_or(Refused::DataLength)?;
        let (counter, mut rest) = rest.split_first_chunk::<4>().ok_or(Refused::DataLength)?;
        let is = |flag| flags & flag != 0;
        let mut attested = None;
        if is(ATTESTED) {
            let (credential, behind) = Attested::read(rest)?;
            (attested, rest) = (Some(credential), behind);
        }
        if is(EXTENSIONS) {
            // Nothing rests on extensions, but they must be one map.
            let mut reader = Reader::new(rest);
            Reader::new(rest).map("extensions")?;
            reader.skip()?;
            rest = reader.rest();
        }
        if !rest.is_empty() {
            return Err(Refused::DataLength);
        }
        Ok(Self {
            rp_id_hash: *hash,
            present: is(PRESENT),
            verified: is(VERIFIED),
            backup_eligible: is(BACKUP_ELIGIBLE),
            backed_up: is(BACKED_UP),
            counter: u32::from_be_bytes(*counter),
            attested,
        })
    }
}

impl Attested {
    fn read(bytes: &[u8]) -> Result<(Self, &[u8]), Refused> {
        let (aaguid, rest) = bytes.split_first_chunk::<16>().ok_or(Refused::DataLength)?;
        let (len, rest) = rest.split_first_chunk::<2>().ok_or(Refused::DataLength)?;
        let len = usize::from(u16::from_be_bytes(*len));
        if len == 0 || len > CREDENTIAL_ID_BYTES_MAX {
            return Err(Refused::CredentialId);
        }
        let (id, rest) = rest.split_at_checked(len).ok_or(Refused::DataLength)?;
        let (key, rest) = PublicKey::of_cose(rest)?;
        Ok((Self { aaguid: *aaguid, id: id.to_vec(), key }, rest))
    }
}

/// Returns the authenticator data in an attestation object. Its statement is skipped in every format: Provost asks
/// browsers for none, and no check uses one.
pub(crate) fn of_attestation(object: &[u8]) -> Result<&[u8], Refused> {
    let mut reader = Reader::new(object);
    if reader.map("the attestation object")? != 3 {
        return Err(Refused::Attestation);
    }
    let (mut format, mut statement, mut data) = (false, false, None);
    for _ in 0..3 {
        match reader.text("a name of the attestation object")? {
            "fmt" if !format => {
                reader.text("fmt")?;
                format = true;
            }
            "attStmt" if !statement => {
                let mut at = reader;
                at.map("attStmt")?;
                reader.skip()?;
                statement = true;
            }
            "authData" if data.is_none() => data = Some(reader.bytes("authData")?),
            _ => return Err(Refused::Attestation),
        }
    }
    if !reader.rest().is_empty() {
        return Err(Refused::Attestation);
    }
    data.ok_or(Refused::Attestation)
}
