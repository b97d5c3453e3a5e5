//! A browser's end of Web Push, which shares no code with the product: keys by `openssl`, RFC 5869 by hand, and the
//! record opened.

use std::fs;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use ring::aead;
use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use serde_json::Value;
use tempfile::TempDir;

/// Before a point of P-256 in the form that `openssl` reads.
const SPKI: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86,
    0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];

/// One subscription of a browser.
pub(crate) struct PushBrowser {
    dir: TempDir,
    public: Vec<u8>,
    auth: [u8; 16],
}

fn openssl(args: &[&str]) -> Vec<u8> {
    let output = Command::new("openssl").args(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// RFC 5869, for keys of up to one block.
pub(crate) fn hkdf(salt: &[u8], secret: &[u8], info: &[u8], length: usize) -> Vec<u8> {
    let mac = |key: &[u8], text: &[u8]| {
        let mut mac = Hmac::<sha2::Sha256>::new_from_slice(key).unwrap();
        mac.update(text);
        mac.finalize().into_bytes().to_vec()
    };
    let mut made = mac(&mac(salt, secret), &[info, &[1]].concat());
    made.truncate(length);
    made
}

impl PushBrowser {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let key = dir.path().join("key.pem");
        let key = key.to_str().unwrap();
        openssl(&["ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", key]);
        let public = openssl(&["ec", "-in", key, "-pubout", "-outform", "DER"]);
        let mut auth = [0; 16];
        getrandom::fill(&mut auth).unwrap();
        Self { public: public[public.len() - 65..].to_vec(), auth, dir }
    }

    pub(crate) fn p256dh(&self) -> String {
        URL_SAFE_NO_PAD.encode(&self.public)
    }

    pub(crate) fn auth(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.auth)
    }

    /// Opens a body as RFC 8188 and 8291 say: the text, without its filling.
    pub(crate) fn open(&self, body: &[u8]) -> String {
        let (salt, rest) = body.split_at(16);
        assert_eq!(rest[..5], [0, 0, 16, 0, 65], "records of 4096 bytes, and a point");
        let (theirs, sealed) = rest[5..].split_at(65);
        let peer = self.dir.path().join("peer.der");
        fs::write(&peer, [&SPKI[..], theirs].concat()).unwrap();
        let key = self.dir.path().join("key.pem");
        let files = (key.to_str().unwrap(), peer.to_str().unwrap());
        let secret =
            openssl(&["pkeyutl", "-derive", "-inkey", files.0, "-peerkey", files.1, "-peerform", "DER"]);
        let info = [b"WebPush: info\0", &self.public[..], theirs].concat();
        let ikm = hkdf(&self.auth, &secret, &info, 32);
        let key = hkdf(salt, &ikm, b"Content-Encoding: aes128gcm\0", 16);
        let nonce = hkdf(salt, &ikm, b"Content-Encoding: nonce\0", 12);
        let key = aead::LessSafeKey::new(aead::UnboundKey::new(&aead::AES_128_GCM, &key).unwrap());
        let nonce = aead::Nonce::try_assume_unique_for_key(&nonce).unwrap();
        let mut opened = sealed.to_vec();
        let opened =
            key.open_in_place(nonce, aead::Aad::empty(), &mut opened).expect("the browser can open it");
        let end = opened.iter().rposition(|it| *it != 0).unwrap();
        assert_eq!(opened[end], 2, "the last record");
        assert_eq!(opened.len() % 512, 0, "filled up");
        String::from_utf8(opened[..end].to_vec()).unwrap()
    }

    /// The same as JSON.
    pub(crate) fn reads(&self, body: &[u8]) -> Value {
        serde_json::from_str(&self.open(body)).unwrap()
    }
}

/// The claims of a header `authorization`, whose token is signed by the key beside it; and that key.
pub(crate) fn claims(authorization: &str) -> (Value, String) {
    let (token, key) = authorization.strip_prefix("vapid t=").and_then(|it| it.split_once(", k=")).unwrap();
    let (signed, signature) = token.rsplit_once('.').unwrap();
    let public = URL_SAFE_NO_PAD.decode(key).unwrap();
    let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
    UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, public)
        .verify(signed.as_bytes(), &signature)
        .expect("signed");
    let (head, claims) = signed.split_once('.').unwrap();
    let read = |it: &str| serde_json::from_slice::<Value>(&URL_SAFE_NO_PAD.decode(it).unwrap()).unwrap();
    assert_eq!((&read(head)["typ"], &read(head)["alg"]), (&"JWT".into(), &"ES256".into()));
    (read(claims), key.to_owned())
}
