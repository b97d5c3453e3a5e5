//! Public keys: in COSE, as authenticators write them, and as a JSON Web Key, as Provost keeps and shows them.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{
    ECDSA_P256_SHA256_ASN1, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde::{Deserialize, Serialize};

use provost_base::limits::{PASSKEY_RSA_BITS_MAX, PASSKEY_RSA_BITS_MIN, PASSKEY_RSA_EXPONENT_BYTES_MAX};

use provost_base::{Digest, Json};

use crate::Refused;
use crate::cbor::{Item, Reader};

/// A public key of one of the three kinds that are accepted, with members of the right length.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "Jwk", into = "Jwk")]
pub enum PublicKey {
    /// ECDSA on P-256 with SHA-256 (COSE -7).
    Es256 {
        /// The point's first coordinate.
        x: [u8; 32],
        /// The point's second coordinate.
        y: [u8; 32],
    },
    /// Ed25519 (COSE -8).
    Ed25519([u8; 32]),
    /// RSA with PKCS #1 1.5 and SHA-256 (COSE -257).
    Rs256 {
        /// The modulus, without zero bytes before it.
        n: Vec<u8>,
        /// The exponent, without zero bytes before it.
        e: Vec<u8>,
    },
}

/// A JSON Web Key, RFC 7517, which every library reads.
#[derive(Serialize, Deserialize)]
struct Jwk {
    kty: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    crv: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    x: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    y: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    n: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    e: Option<String>,
}

const ES256: i64 = -7;
const EDDSA: i64 = -8;
const RS256: i64 = -257;

impl PublicKey {
    /// Returns the algorithm's JOSE name.
    pub fn algorithm(&self) -> &'static str {
        match self {
            PublicKey::Es256 { .. } => "ES256",
            PublicKey::Ed25519(_) => "Ed25519",
            PublicKey::Rs256 { .. } => "RS256",
        }
    }

    /// Returns the key's fingerprint, RFC 7638: the SHA-256 of the key as a JSON Web Key, base64url.
    pub fn fingerprint(&self) -> String {
        let jwk = serde_json::to_value(self).expect("our own types always encode");
        crate::text_of(Digest::of(Json::from_value(&jwk).as_str().as_bytes()).as_bytes())
    }

    /// Reads the COSE key at the beginning of `bytes`; returns it with the remaining bytes.
    pub(crate) fn of_cose(bytes: &[u8]) -> Result<(Self, &[u8]), Refused> {
        let mut reader = Reader::new(bytes);
        let pairs = reader.map("the key")?;
        // No kind has more members than a curve's point: kty, alg, crv, x, y.
        if pairs > 5 {
            return Err(Refused::KeyMembers);
        }
        let mut members: Vec<(i64, Item<'_>)> = Vec::with_capacity(5);
        for _ in 0..pairs {
            let Item::Int(label) = reader.item("a label of the key")? else {
                return Err(Refused::CborType("a label of the key"));
            };
            if members.iter().any(|(known, _)| *known == label) {
                return Err(Refused::CborTwice);
            }
            members.push((label, reader.item("a member of the key")?));
        }
        let int = |label| match find(&members, label) {
            Some(Item::Int(n)) => Ok(n),
            _ => Err(Refused::KeyMembers),
        };
        let blob = |label| match find(&members, label) {
            Some(Item::Bytes(bytes)) => Ok(bytes),
            _ => Err(Refused::KeyMembers),
        };
        // A point has a kind, an algorithm, a curve and two coordinates; the others have one member less.
        let (kind, algorithm) = (int(1)?, int(3)?);
        let has = match (kind, algorithm) {
            (2, ES256) => 5,
            (1, EDDSA) | (3, RS256) => 4,
            _ => return Err(Refused::KeyKind),
        };
        if members.len() != has {
            return Err(Refused::KeyMembers);
        }
        let key = match kind {
            2 if int(-1)? == 1 => Self::Es256 { x: exact(blob(-2)?)?, y: exact(blob(-3)?)? },
            1 if int(-1)? == 6 => Self::Ed25519(exact(blob(-2)?)?),
            3 => Self::rsa(blob(-1)?, blob(-2)?)?,
            _ => return Err(Refused::KeyKind),
        };
        Ok((key, reader.rest()))
    }

    fn rsa(n: &[u8], e: &[u8]) -> Result<Self, Refused> {
        let leads = |it: &[u8]| it.first().is_some_and(|byte| *byte != 0);
        if !leads(n) || !leads(e) || e.len() > PASSKEY_RSA_EXPONENT_BYTES_MAX {
            return Err(Refused::KeyLength);
        }
        let bits = 8 * n.len() - n[0].leading_zeros() as usize;
        let odd = |it: &[u8]| it.last().is_some_and(|byte| byte & 1 == 1);
        let small = e == [1];
        if !(PASSKEY_RSA_BITS_MIN..=PASSKEY_RSA_BITS_MAX).contains(&bits) || !odd(n) || !odd(e) || small {
            return Err(Refused::KeySize);
        }
        Ok(Self::Rs256 { n: n.to_vec(), e: e.to_vec() })
    }

    /// Checks that the signature is this key's over the message.
    ///
    /// # Errors
    /// [`Refused::Signature`].
    pub fn verify(&self, message: &[u8], signature: &[u8]) -> Result<(), Refused> {
        let verified = match self {
            Self::Es256 { x, y } => {
                let point = [&[4][..], x, y].concat();
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, point).verify(message, signature)
            }
            Self::Ed25519(key) => UnparsedPublicKey::new(&ED25519, key).verify(message, signature),
            Self::Rs256 { n, e } => {
                RsaPublicKeyComponents { n, e }.verify(&RSA_PKCS1_2048_8192_SHA256, message, signature)
            }
        };
        verified.map_err(|_| Refused::Signature)
    }
}

fn find<'a>(members: &[(i64, Item<'a>)], label: i64) -> Option<Item<'a>> {
    members.iter().find(|(known, _)| *known == label).map(|(_, item)| *item)
}

fn exact(bytes: &[u8]) -> Result<[u8; 32], Refused> {
    bytes.try_into().map_err(|_| Refused::KeyLength)
}

impl From<PublicKey> for Jwk {
    fn from(key: PublicKey) -> Self {
        let text = |bytes: &[u8]| Some(URL_SAFE_NO_PAD.encode(bytes));
        let empty = |kty: &str| Jwk { kty: kty.into(), crv: None, x: None, y: None, n: None, e: None };
        match key {
            PublicKey::Es256 { x, y } => {
                Jwk { crv: Some("P-256".into()), x: text(&x), y: text(&y), ..empty("EC") }
            }
            PublicKey::Ed25519(x) => Jwk { crv: Some("Ed25519".into()), x: text(&x), ..empty("OKP") },
            PublicKey::Rs256 { n, e } => Jwk { n: text(&n), e: text(&e), ..empty("RSA") },
        }
    }
}

impl TryFrom<Jwk> for PublicKey {
    type Error = Refused;

    fn try_from(jwk: Jwk) -> Result<Self, Refused> {
        let bytes = |text: &Option<String>| {
            let text = text.as_deref().ok_or(Refused::KeyMembers)?;
            URL_SAFE_NO_PAD.decode(text).map_err(|_| Refused::Encoding("a member of the key"))
        };
        match (jwk.kty.as_str(), jwk.crv.as_deref()) {
            ("EC", Some("P-256")) => {
                Ok(Self::Es256 { x: exact(&bytes(&jwk.x)?)?, y: exact(&bytes(&jwk.y)?)? })
            }
            ("OKP", Some("Ed25519")) => Ok(Self::Ed25519(exact(&bytes(&jwk.x)?)?)),
            ("RSA", None) => Self::rsa(&bytes(&jwk.n)?, &bytes(&jwk.e)?),
            _ => Err(Refused::KeyKind),
        }
    }
}
