//! An authenticator in software, with the browser in front of it: registrations and assertions with keys of all three kinds.
//! It shares no code with the product; each part of what it says can be made wrong.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair,
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// The page that tests speak for.
pub(crate) const ORIGIN: &str = "http://provost.localhost:4720";
/// The name that its passkeys belong to.
pub(crate) const RP_ID: &str = "provost.localhost";

/// The kind of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Es256,
    Ed25519,
    Rs256,
}

pub(crate) const KINDS: [Kind; 3] = [Kind::Es256, Kind::Ed25519, Kind::Rs256];

enum Signer {
    Es256(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
    Rs256(RsaKeyPair),
}

/// One passkey, and what the browser in front of it says.
pub(crate) struct Authenticator {
    signer: Signer,
    pub(crate) id: Vec<u8>,
    pub(crate) rp_id: String,
    pub(crate) origin: String,
    /// Flags of an assertion: user present and verified.
    pub(crate) flags: u8,
    /// The counter that is said next.
    pub(crate) counter: u32,
    /// Members of the client data that stand in place of the usual ones.
    pub(crate) client: Value,
}

pub(crate) const UP: u8 = 1;
pub(crate) const UV: u8 = 4;
pub(crate) const BE: u8 = 8;
pub(crate) const BS: u8 = 16;
pub(crate) const AT: u8 = 64;
pub(crate) const ED: u8 = 128;

pub(crate) fn b64(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

pub(crate) fn unb64(text: &str) -> Vec<u8> {
    URL_SAFE_NO_PAD.decode(text).unwrap()
}

fn sha256(bytes: &[u8]) -> Vec<u8> {
    Sha256::digest(bytes).to_vec()
}

/// The first bytes of a value of CBOR, in its shortest form.
fn head(kind: u8, n: usize) -> Vec<u8> {
    match n {
        0..24 => vec![kind << 5 | n as u8],
        24..0x100 => vec![kind << 5 | 24, n as u8],
        _ => vec![kind << 5 | 25, (n >> 8) as u8, n as u8],
    }
}

pub(crate) fn int(n: i64) -> Vec<u8> {
    if n < 0 { head(1, (-1 - n) as usize) } else { head(0, n as usize) }
}

pub(crate) fn bytes(it: &[u8]) -> Vec<u8> {
    [head(2, it.len()), it.to_vec()].concat()
}

pub(crate) fn text(it: &str) -> Vec<u8> {
    [head(3, it.len()), it.as_bytes().to_vec()].concat()
}

pub(crate) fn map(pairs: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
    let members = pairs.iter().flat_map(|(key, value)| [key.clone(), value.clone()]);
    [head(5, pairs.len())].into_iter().chain(members).collect::<Vec<_>>().concat()
}

/// An attestation object with no statement.
pub(crate) fn attestation(data: &[u8]) -> Vec<u8> {
    map(&[(text("fmt"), text("none")), (text("attStmt"), map(&[])), (text("authData"), bytes(data))])
}

impl Authenticator {
    /// A new key whose counter counts from 1.
    pub(crate) fn new(kind: Kind) -> Self {
        let random = SystemRandom::new();
        let signer = match kind {
            Kind::Es256 => {
                let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random).unwrap();
                let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, key.as_ref(), &random);
                Signer::Es256(pair.unwrap())
            }
            Kind::Ed25519 => {
                let key = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
                Signer::Ed25519(Ed25519KeyPair::from_pkcs8(key.as_ref()).unwrap())
            }
            // RSA keys take long to make: this one is the tests' own.
            Kind::Rs256 => {
                let key = include_bytes!("../vectors/passkeys/rsa2048.pk8");
                Signer::Rs256(RsaKeyPair::from_pkcs8(key).unwrap())
            }
        };
        let mut id = vec![0; 32];
        getrandom::fill(&mut id).unwrap();
        let (rp_id, origin) = (RP_ID.to_owned(), ORIGIN.to_owned());
        Self { signer, id, rp_id, origin, flags: UP | UV, counter: 1, client: json!({}) }
    }

    /// The public key, as COSE writes it.
    pub(crate) fn cose(&self) -> Vec<u8> {
        match &self.signer {
            Signer::Es256(key) => {
                let point = key.public_key().as_ref();
                map(&[
                    (int(1), int(2)),
                    (int(3), int(-7)),
                    (int(-1), int(1)),
                    (int(-2), bytes(&point[1..33])),
                    (int(-3), bytes(&point[33..])),
                ])
            }
            Signer::Ed25519(key) => map(&[
                (int(1), int(1)),
                (int(3), int(-8)),
                (int(-1), int(6)),
                (int(-2), bytes(key.public_key().as_ref())),
            ]),
            Signer::Rs256(key) => {
                let parts = ring::rsa::PublicKeyComponents::<Vec<u8>>::from(key.public());
                map(&[
                    (int(1), int(3)),
                    (int(3), int(-257)),
                    (int(-1), bytes(&parts.n)),
                    (int(-2), bytes(&parts.e)),
                ])
            }
        }
    }

    /// The authenticator data of a registration.
    pub(crate) fn new_credential(&self) -> Vec<u8> {
        let id_len = (self.id.len() as u16).to_be_bytes();
        let data =
            [sha256(self.rp_id.as_bytes()), vec![self.flags | AT], self.counter.to_be_bytes().to_vec()];
        [data.concat(), vec![7; 16], id_len.to_vec(), self.id.clone(), self.cose()].concat()
    }

    /// The client data that a browser makes for this page.
    pub(crate) fn client_data(&self, kind: &str, challenge: &[u8]) -> Vec<u8> {
        let mut data = json!({
            "type": kind, "challenge": b64(challenge), "origin": self.origin, "crossOrigin": false,
        });
        for (name, value) in self.client.as_object().unwrap() {
            data[name] = value.clone();
        }
        data.to_string().into_bytes()
    }

    /// Client data and attestation object of a registration.
    pub(crate) fn register(&self, challenge: &[u8]) -> (Vec<u8>, Vec<u8>) {
        (self.client_data("webauthn.create", challenge), attestation(&self.new_credential()))
    }

    /// Client data, authenticator data and signature of an assertion; the counter goes on unless there is none.
    pub(crate) fn sign(&mut self, challenge: &[u8]) -> (Vec<u8>, Vec<u8>, Vec<u8>) {
        if self.counter != 0 {
            self.counter += 1;
        }
        let client = self.client_data("webauthn.get", challenge);
        let data = [sha256(self.rp_id.as_bytes()), vec![self.flags], self.counter.to_be_bytes().to_vec()];
        let data = data.concat();
        let signature = self.signature(&[data.clone(), sha256(&client)].concat());
        (client, data, signature)
    }

    pub(crate) fn signature(&self, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match &self.signer {
            Signer::Es256(key) => key.sign(&random, message).unwrap().as_ref().to_vec(),
            Signer::Ed25519(key) => key.sign(message).as_ref().to_vec(),
            Signer::Rs256(key) => {
                let mut signature = vec![0; key.public().modulus_len()];
                key.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature).unwrap();
                signature
            }
        }
    }
}
