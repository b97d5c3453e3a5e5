"""Makes made-by-python.json: registrations and assertions by code that shares nothing with Provost's.

Needs Python's `cryptography`. The CBOR is written by hand here, in CTAP2's canonical form.
"""
import base64, hashlib, json, struct
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa

RP, ORIGIN = "provost.localhost", "http://provost.localhost:4720"


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def head(kind, n):
    for code, size in ((24, 1), (25, 2), (26, 4), (27, 8)):
        if n < 24:
            return bytes([kind << 5 | n])
        if n < 1 << 8 * size:
            return bytes([kind << 5 | code]) + n.to_bytes(size, "big")
    raise ValueError(n)


def cbor(value):
    if isinstance(value, int):
        return head(0, value) if value >= 0 else head(1, -1 - value)
    if isinstance(value, bytes):
        return head(2, len(value)) + value
    if isinstance(value, str):
        return head(3, len(value)) + value.encode()
    if isinstance(value, dict):
        return head(5, len(value)) + b"".join(cbor(k) + cbor(v) for k, v in value.items())
    raise TypeError(value)


def client_data(kind, challenge):
    return json.dumps({"type": kind, "challenge": b64(challenge), "origin": ORIGIN, "crossOrigin": False}).encode()


def keys():
    key = ec.generate_private_key(ec.SECP256R1())
    at = key.public_key().public_numbers()
    cose = {1: 2, 3: -7, -1: 1, -2: at.x.to_bytes(32, "big"), -3: at.y.to_bytes(32, "big")}
    yield "ES256", cose, lambda it, key=key: key.sign(it, ec.ECDSA(hashes.SHA256()))
    key2 = ed25519.Ed25519PrivateKey.generate()
    yield "Ed25519", {1: 1, 3: -8, -1: 6, -2: key2.public_key().public_bytes_raw()}, key2.sign
    key3 = rsa.generate_private_key(65537, 3072)
    modulus = key3.public_key().public_numbers().n.to_bytes(384, "big")
    cose = {1: 3, 3: -257, -1: modulus, -2: b"\x01\x00\x01"}
    yield "RS256", cose, lambda it: key3.sign(it, padding.PKCS1v15(), hashes.SHA256())


made = []
for name, cose, sign in keys():
    rp = hashlib.sha256(RP.encode()).digest()
    credential = hashlib.sha256(name.encode()).digest()
    challenge = hashlib.sha256(b"create " + name.encode()).digest()
    data = rp + bytes([0x45]) + struct.pack(">I", 1) + bytes(16) + struct.pack(">H", 32) + credential + cbor(cose)
    registration = {
        "challenge": b64(challenge),
        "client_data": b64(client_data("webauthn.create", challenge)),
        "attestation_object": b64(cbor({"fmt": "none", "attStmt": {}, "authData": data})),
    }
    challenge = hashlib.sha256(b"get " + name.encode()).digest()
    client, data = client_data("webauthn.get", challenge), rp + bytes([0x05]) + struct.pack(">I", 2)
    assertion = {
        "challenge": b64(challenge),
        "client_data": b64(client),
        "authenticator_data": b64(data),
        "signature": b64(sign(data + hashlib.sha256(client).digest())),
    }
    made.append({"algorithm": name, "id": b64(credential), "registration": registration, "assertion": assertion})
print(json.dumps(made, indent=1))
