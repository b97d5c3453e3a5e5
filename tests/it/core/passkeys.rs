//! The checks of a passkey's signature: each check with an input that fails it alone, published vectors, and noise.

use proptest::prelude::*;
use provost::base::Digest;
use provost::passkey::{
    AnswerWord, Assertion, AuthenticatorData, EnrolWord, NewCredential, Party, PublicKey, Refused,
    Registration, RevokeWord, StoredCredential, Transcript, VerbWord, Word, asserted, bytes_of, holds,
    registered, text_of,
};
use serde_json::{Value, json};

use crate::support::authenticator::{
    AT, Authenticator, BE, BS, ED, KINDS, Kind, ORIGIN, RP_ID, UP, UV, attestation, b64, bytes, int, map,
    text, unb64,
};

const CHALLENGE: [u8; 32] = [9; 32];

fn party() -> Party {
    Party { rp_id: RP_ID.into(), origins: vec![ORIGIN.into(), "http://localhost:4720".into()] }
}

fn registration(client_data: &[u8], attestation_object: &[u8]) -> Result<NewCredential, Refused> {
    registered(&party(), &CHALLENGE, &Registration { attestation_object, client_data })
}

fn enrolled(key: &Authenticator) -> NewCredential {
    let (client, object) = key.register(&CHALLENGE);
    registration(&client, &object).unwrap()
}

/// The outcome of an assertion of `key` over [`CHALLENGE`], for a credential as it was registered.
fn outcome(known: &NewCredential, key: &mut Authenticator) -> Result<u32, Refused> {
    let (client, data, signature) = key.sign(&CHALLENGE);
    let it = Assertion { authenticator_data: &data, client_data: &client, signature: &signature };
    let known =
        StoredCredential { key: &known.key, backup_eligible: known.backup_eligible, counter: known.counter };
    asserted(&party(), &CHALLENGE, &known, &it).map(|it| it.counter)
}

/// Returns the check that refuses a registration whose authenticator data are changed in this way.
fn refused_data(kind: Kind, change: impl Fn(&mut Vec<u8>)) -> Refused {
    let key = Authenticator::new(kind);
    let mut data = key.new_credential();
    change(&mut data);
    registration(&key.client_data("webauthn.create", &CHALLENGE), &attestation(&data)).unwrap_err()
}

/// Returns the check that refuses a registration with this key.
fn refused_key(cose: &[u8]) -> Refused {
    let key = Authenticator::new(Kind::Ed25519);
    let at = key.new_credential().len() - key.cose().len();
    let data = [&key.new_credential()[..at], cose].concat();
    registration(&key.client_data("webauthn.create", &CHALLENGE), &attestation(&data)).unwrap_err()
}

#[test]
fn a_key_of_each_kind_is_registered_and_signs() {
    for kind in KINDS {
        let mut key = Authenticator::new(kind);
        let known = enrolled(&key);
        assert_eq!((&known.id, known.counter, known.aaguid), (&key.id, 1, [7; 16]), "{kind:?}");
        assert_eq!(outcome(&known, &mut key), Ok(2), "{kind:?}");
        let text = serde_json::to_string(&known.key).unwrap();
        assert_eq!(serde_json::from_str::<PublicKey>(&text).unwrap(), known.key, "{text}");
    }
}

#[test]
fn client_data_are_compared_strictly_and_may_have_more_members() {
    let refusals = [
        (json!({ "type": "webauthn.create" }), Refused::Type),
        (json!({ "type": "payment.get" }), Refused::Type),
        (json!({ "challenge": b64(&[8; 32]) }), Refused::Challenge),
        (json!({ "challenge": b64(&CHALLENGE[..31]) }), Refused::Challenge),
        (json!({ "challenge": "*" }), Refused::Encoding("the challenge")),
        (json!({ "origin": "http://provost.localhost:4721" }), Refused::Origin),
        (json!({ "origin": "https://provost.localhost:4720" }), Refused::Origin),
        (json!({ "origin": "http://provost.localhost" }), Refused::Origin),
        (json!({ "origin": "http://provost.localhost:4720/" }), Refused::Origin),
        (json!({ "origin": "http://Provost.localhost:4720" }), Refused::Origin),
        (json!({ "crossOrigin": true }), Refused::Framed),
        (json!({ "topOrigin": "http://provost.localhost:4720" }), Refused::Framed),
        (json!({ "topOrigin": null }), Refused::Framed),
        (json!({ "crossOrigin": null }), Refused::ClientData),
        (json!({ "origin": 7 }), Refused::ClientData),
    ];
    let mut key = Authenticator::new(Kind::Es256);
    let known = enrolled(&key);
    for (members, why) in refusals {
        key.client = members.clone();
        assert_eq!(outcome(&known, &mut key), Err(why), "{members}");
    }
    key.client = json!({ "futureMember": { "deep": [1, 2] }, "origin": "http://localhost:4720" });
    assert!(outcome(&known, &mut key).is_ok());
    let (client, data, signature) = key.sign(&CHALLENGE);
    let check = |client_data: &[u8]| {
        let it = Assertion { authenticator_data: &data, client_data, signature: &signature };
        holds(RP_ID, &CHALLENGE, &known.key, &it)
    };
    assert_eq!(check(&client), Ok(()));
    assert_eq!(check(b"no JSON"), Err(Refused::ClientData));
    let list = json!(["webauthn.get", b64(&CHALLENGE), ORIGIN, false]).to_string();
    assert_eq!(check(list.as_bytes()), Err(Refused::ClientData), "an array in the order of the members");
    assert_eq!(check(format!("\n{list}").as_bytes()), Err(Refused::ClientData));
    assert_eq!(check(&vec![b' '; 9000]), Err(Refused::TooLong("the client data")));
}

#[test]
fn a_registration_is_no_assertion_and_the_other_way_round() {
    let key = Authenticator::new(Kind::Es256);
    let (client, object) = key.register(&CHALLENGE);
    let get = key.client_data("webauthn.get", &CHALLENGE);
    assert_eq!(registration(&get, &object), Err(Refused::Type));
    let known = registration(&client, &object).unwrap();
    // A signed assertion that holds a new credential.
    let data = key.new_credential();
    let signature = key.signature(&[&data[..], Digest::of(&get).as_bytes()].concat());
    let it = Assertion { authenticator_data: &data, client_data: &get, signature: &signature };
    assert_eq!(holds(RP_ID, &CHALLENGE, &known.key, &it), Err(Refused::NewCredential));
}

#[test]
fn flags_and_name_are_checked_at_both_ceremonies() {
    let wrong = [(UV, Refused::NotPresent), (UP, Refused::NotVerified), (UP | UV | BS, Refused::BackupState)];
    for (flags, why) in wrong {
        let mut key = Authenticator::new(Kind::Es256);
        let known = enrolled(&key);
        key.flags = flags;
        assert_eq!(outcome(&known, &mut key), Err(why));
        let (client, object) = key.register(&CHALLENGE);
        assert_eq!(registration(&client, &object), Err(why));
    }
    let mut key = Authenticator::new(Kind::Es256);
    let known = enrolled(&key);
    key.rp_id = "localhost".into();
    assert_eq!(outcome(&known, &mut key), Err(Refused::RpId));
    let (client, object) = key.register(&CHALLENGE);
    assert_eq!(registration(&client, &object), Err(Refused::RpId));
    // Flags that later versions define are ignored.
    key.rp_id = RP_ID.into();
    key.flags = UP | UV | 2 | 32;
    assert!(outcome(&known, &mut key).is_ok());
}

#[test]
fn a_passkey_that_can_be_backed_up_stays_one() {
    let mut key = Authenticator::new(Kind::Ed25519);
    key.flags = UP | UV | BE | BS;
    let known = enrolled(&key);
    assert!(known.backup_eligible);
    assert!(outcome(&known, &mut key).is_ok());
    key.flags = UP | UV;
    assert_eq!(outcome(&known, &mut key), Err(Refused::BackupChanged));
}

#[test]
fn a_counter_goes_up_or_stays_absent() {
    let mut key = Authenticator::new(Kind::Es256);
    key.counter = 0;
    let known = enrolled(&key);
    assert_eq!(outcome(&known, &mut key), Ok(0));
    assert_eq!(outcome(&known, &mut key), Ok(0), "a synced passkey has none");
    key.counter = 4;
    assert_eq!(outcome(&known, &mut key), Ok(5));
    let counted = NewCredential { counter: 5, ..known };
    key.counter = 4;
    assert_eq!(outcome(&counted, &mut key), Err(Refused::Counter), "the same again");
    key.counter = 0;
    assert_eq!(outcome(&counted, &mut key), Err(Refused::Counter), "none any more");
    key.counter = 2;
    assert_eq!(outcome(&counted, &mut key), Err(Refused::Counter), "back");
}

#[test]
fn no_other_key_no_other_text_and_no_other_signature_counts() {
    for kind in KINDS {
        let mut key = Authenticator::new(kind);
        let known = enrolled(&key);
        let (client, data, signature) = key.sign(&CHALLENGE);
        let check = |data: &[u8], client: &[u8], signature: &[u8]| {
            let it = Assertion { authenticator_data: data, client_data: client, signature };
            holds(RP_ID, &CHALLENGE, &known.key, &it)
        };
        assert_eq!(check(&data, &client, &signature), Ok(()));
        let mut counted = data.clone();
        counted[36] ^= 1;
        assert_eq!(
            check(&counted, &client, &signature),
            Err(Refused::Signature),
            "{kind:?}: the counter is signed"
        );
        let spaced = [&client[..], b" "].concat();
        assert_eq!(
            check(&data, &spaced, &signature),
            Err(Refused::Signature),
            "{kind:?}: each byte is signed"
        );
        for at in [0, signature.len() / 2, signature.len() - 1] {
            let mut bent = signature.clone();
            bent[at] ^= 1;
            assert_eq!(check(&data, &client, &bent), Err(Refused::Signature), "{kind:?}");
        }
        assert_eq!(check(&data, &client, &[]), Err(Refused::Signature));
        assert_eq!(check(&data, &client, &vec![1; 1025]), Err(Refused::TooLong("the signature")));
        let mut other = Authenticator::new(if kind == Kind::Es256 { Kind::Ed25519 } else { Kind::Es256 });
        other.id = key.id.clone();
        assert_eq!(
            outcome(&NewCredential { counter: 0, ..known.clone() }, &mut other),
            Err(Refused::Signature)
        );
    }
}

#[test]
fn keys_have_exactly_the_members_and_lengths_of_their_kind() {
    let (x, y) = (bytes(&[1; 32]), bytes(&[2; 32]));
    let es256 = |x: Vec<u8>, crv: i64| {
        map(&[(int(1), int(2)), (int(3), int(-7)), (int(-1), int(crv)), (int(-2), x), (int(-3), y.clone())])
    };
    assert_eq!(refused_key(&es256(bytes(&[1; 31]), 1)), Refused::KeyLength);
    assert_eq!(refused_key(&es256(bytes(&[1; 33]), 1)), Refused::KeyLength);
    assert_eq!(refused_key(&es256(x.clone(), 2)), Refused::KeyKind, "another curve");
    assert_eq!(refused_key(&es256(int(1), 1)), Refused::KeyMembers, "a number as a coordinate");
    let ed = |alg: i64, key: &[u8]| {
        map(&[(int(1), int(1)), (int(3), int(alg)), (int(-1), int(6)), (int(-2), bytes(key))])
    };
    assert_eq!(refused_key(&ed(-8, &[1; 31])), Refused::KeyLength);
    assert_eq!(refused_key(&ed(-7, &[1; 32])), Refused::KeyKind, "an algorithm of another kind");
    assert_eq!(refused_key(&ed(-35, &[1; 32])), Refused::KeyKind);
    let pair = [(int(1), int(1)), (int(3), int(-8)), (int(-1), int(6))];
    assert_eq!(refused_key(&map(&pair)), Refused::KeyMembers, "no key in it");
    let more = [&pair[..], &[(int(-2), x.clone()), (int(-70), int(0))]].concat();
    assert_eq!(refused_key(&map(&more)), Refused::KeyMembers, "one too many");
    let twice = [(int(1), int(1)), (int(1), int(2))];
    assert_eq!(refused_key(&map(&twice)), Refused::CborTwice);
    let many: Vec<_> = (0..6).map(|n| (int(n), int(0))).collect();
    assert_eq!(refused_key(&map(&many)), Refused::KeyMembers);
    assert_eq!(refused_key(&int(1)), Refused::CborType("the key"));
    assert_eq!(refused_key(&map(&[(text("kty"), int(2))])), Refused::CborType("a label of the key"));
    assert_eq!(refused_key(&map(&[(int(1), map(&[]))])), Refused::CborType("a member of the key"));
    let rsa = |n: &[u8], e: &[u8]| {
        map(&[(int(1), int(3)), (int(3), int(-257)), (int(-1), bytes(n)), (int(-2), bytes(e))])
    };
    let (mut n, e) = (vec![0xff; 256], [1, 0, 1]);
    n[0] = 0x7f;
    assert_eq!(refused_key(&rsa(&n, &e)), Refused::KeySize, "2047 bits");
    assert_eq!(refused_key(&rsa(&[0xff; 128], &e)), Refused::KeySize);
    assert_eq!(refused_key(&rsa(&[0xff; 1025], &e)), Refused::KeySize, "8200 bits");
    assert_eq!(
        refused_key(&rsa(&[&[0][..], &[0xff; 256]].concat(), &e)),
        Refused::KeyLength,
        "a zero before it"
    );
    assert_eq!(refused_key(&rsa(&[0xff; 256], &[0, 1, 0, 1])), Refused::KeyLength);
    assert_eq!(refused_key(&rsa(&[0xff; 256], &[1, 0, 0, 0, 1])), Refused::KeyLength);
    assert_eq!(refused_key(&rsa(&[0xff; 256], &[1])), Refused::KeySize, "an exponent of one");
    assert_eq!(refused_key(&rsa(&[0xff; 256], &[2])), Refused::KeySize, "an even exponent");
    assert_eq!(refused_key(&rsa(&[0xfe; 256], &e)), Refused::KeySize, "an even modulus");
    let written = json!({ "kty": "RSA", "n": b64(&[0xff; 128]), "e": "AQAB" });
    assert!(serde_json::from_value::<PublicKey>(written).is_err(), "nor in a list");
}

#[test]
fn only_canonical_cbor_is_read() {
    // The same key with a length that is written longer than it needs to be.
    let mut longer = map(&[(int(1), int(1)), (int(3), int(-8)), (int(-1), int(6))]);
    longer[0] += 1;
    longer.extend([0x21, 0x59, 0, 32]);
    longer.extend([1; 32]);
    assert_eq!(refused_key(&longer), Refused::CborForm);
    assert_eq!(refused_key(&[0xbf, 0xff]), Refused::CborForm, "an indefinite length");
    assert_eq!(refused_key(&[0xa1, 0x1c]), Refused::CborForm, "a reserved length");
    assert_eq!(refused_key(&[]), Refused::CborCut);
    assert_eq!(refused_key(&[0xa4, 0x01]), Refused::CborCut);
    assert_eq!(
        refused_key(&[0xa1, 0x01, 0x5b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]),
        Refused::CborCut
    );
}

#[test]
fn authenticator_data_end_where_their_flags_say() {
    assert_eq!(refused_data(Kind::Es256, |it| it.truncate(36)), Refused::DataLength);
    assert_eq!(refused_data(Kind::Es256, |it| it.truncate(54)), Refused::DataLength);
    assert_eq!(refused_data(Kind::Es256, |it| it.truncate(60)), Refused::DataLength);
    assert_eq!(refused_data(Kind::Es256, |it| it.push(0)), Refused::DataLength);
    assert_eq!(refused_data(Kind::Es256, |it| it[32] |= ED), Refused::CborCut);
    assert_eq!(
        refused_data(Kind::Es256, |it| {
            it[32] |= ED;
            it.push(0x01)
        }),
        Refused::CborType("extensions")
    );
    assert_eq!(
        refused_data(Kind::Es256, |it| {
            it[32] &= !AT;
            it.truncate(37)
        }),
        Refused::NoCredential
    );
    assert_eq!(refused_data(Kind::Es256, |it| it[54] = 0), Refused::CredentialId);
    assert_eq!(refused_data(Kind::Es256, |it| it[53] = 4), Refused::CredentialId);
    assert_eq!(
        refused_data(Kind::Es256, |it| it.resize(9000, 0)),
        Refused::TooLong("the authenticator data")
    );
    // Extensions are passed over, whatever is in them.
    let key = Authenticator::new(Kind::Rs256);
    let mut data = key.new_credential();
    data[32] |= ED;
    data.extend(map(&[(text("credProtect"), int(2)), (text("x"), map(&[(int(1), bytes(&[1]))]))]));
    let client = key.client_data("webauthn.create", &CHALLENGE);
    assert!(registration(&client, &attestation(&data)).is_ok());
    let mut long = Authenticator::new(Kind::Es256);
    long.id = vec![3; 1023];
    assert_eq!(enrolled(&long).id.len(), 1023);
}

#[test]
fn an_attestation_object_has_its_three_members_and_its_statement_is_passed_over() {
    let key = Authenticator::new(Kind::Es256);
    let (client, data) = (key.client_data("webauthn.create", &CHALLENGE), key.new_credential());
    let with = |pairs: &[(Vec<u8>, Vec<u8>)]| registration(&client, &map(pairs));
    let (format, statement) = ((text("fmt"), text("none")), (text("attStmt"), map(&[])));
    let data = (text("authData"), bytes(&data));
    let packed = (text("attStmt"), map(&[(text("sig"), bytes(&[1; 70])), (text("alg"), int(-7))]));
    assert!(with(&[(text("fmt"), text("packed")), packed, data.clone()]).is_ok());
    assert_eq!(with(&[format.clone(), statement.clone()]), Err(Refused::Attestation));
    assert_eq!(with(&[format.clone(), data.clone(), data.clone()]), Err(Refused::Attestation));
    assert_eq!(with(&[format.clone(), (text("more"), int(1)), data.clone()]), Err(Refused::Attestation));
    let behind = [map(&[format, statement, data]), vec![0]].concat();
    assert_eq!(registration(&client, &behind), Err(Refused::Attestation));
    assert_eq!(registration(&client, b"\x01"), Err(Refused::CborType("the attestation object")));
}

#[test]
fn the_specifications_own_vectors_are_read_and_verified() {
    let hex = |it: &Value| -> Vec<u8> {
        let text = it.as_str().unwrap();
        (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
    };
    let vectors: Vec<Value> = serde_json::from_str(include_str!("../vectors/passkeys/w3c.json")).unwrap();
    let party = Party { rp_id: "example.org".into(), origins: vec!["https://example.org".into()] };
    let mut kinds = Vec::new();
    for vector in &vectors {
        let (made, used) = (&vector["registration"], &vector["authentication"]);
        // Its objects have user verification here and there; what is left of the check is everything else.
        let data = match made["authenticatorData"].as_str() {
            Some(_) => hex(&made["authenticatorData"]),
            None => {
                let (object, client) = (hex(&made["attestationObject"]), hex(&made["clientDataJSON"]));
                let challenge = hex(&made["challenge"]).try_into().unwrap();
                let it = Registration { attestation_object: &object, client_data: &client };
                assert_eq!(
                    registered(&party, &challenge, &it),
                    Err(Refused::NotVerified),
                    "{}",
                    vector["name"]
                );
                let at = object.windows(8).position(|it| it == b"authData").unwrap();
                object[at + 10..].to_vec()
            }
        };
        let credential = AuthenticatorData::read(&data).unwrap().attested.unwrap();
        if let Some(id) = made["id"].as_str() {
            assert_eq!(hex(&json!(id)), credential.id);
            assert_eq!(hex(&made["aaguid"]), credential.aaguid);
        }
        let (client, data) = (hex(&used["clientDataJSON"]), hex(&used["authenticatorData"]));
        let (signature, message) =
            (hex(&used["signature"]), [&data[..], Digest::of(&client).as_bytes()].concat());
        assert_eq!(credential.key.verify(&message, &signature), Ok(()), "{}", vector["name"]);
        let it = Assertion { authenticator_data: &data, client_data: &client, signature: &signature };
        let challenge = hex(&used["challenge"]).try_into().unwrap();
        assert_eq!(holds("example.org", &challenge, &credential.key, &it), Err(Refused::NotVerified));
        assert_eq!(holds("example.org", &[0; 32], &credential.key, &it), Err(Refused::Challenge));
        kinds.push(credential.key.algorithm());
    }
    assert_eq!(kinds, ["ES256", "RS256", "Ed25519"]);
}

#[test]
fn what_another_program_has_made_is_accepted() {
    let made: Vec<Value> =
        serde_json::from_str(include_str!("../vectors/passkeys/made-by-python.json")).unwrap();
    assert_eq!(made.len(), 3);
    for vector in made {
        let of = |part: &str, member: &str| unb64(vector[part][member].as_str().unwrap());
        let (object, client) = (of("registration", "attestation_object"), of("registration", "client_data"));
        let challenge = of("registration", "challenge").try_into().unwrap();
        let it = Registration { attestation_object: &object, client_data: &client };
        let known = registered(&party(), &challenge, &it).unwrap();
        assert_eq!(
            (b64(&known.id), known.key.algorithm()),
            (text_at(&vector["id"]), vector["algorithm"].as_str().unwrap())
        );
        let (data, client) = (of("assertion", "authenticator_data"), of("assertion", "client_data"));
        let signature = of("assertion", "signature");
        let it = Assertion { authenticator_data: &data, client_data: &client, signature: &signature };
        let before = StoredCredential { key: &known.key, backup_eligible: false, counter: known.counter };
        let challenge = of("assertion", "challenge").try_into().unwrap();
        assert_eq!(asserted(&party(), &challenge, &before, &it).map(|it| it.counter), Ok(2));
    }
}

fn text_at(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

fn answer() -> AnswerWord {
    AnswerWord {
        approval: 7,
        shown: Digest::of(b"shown"),
        view: Digest::of(b"view"),
        expires: "2026-11-26T12:00:00.000Z".into(),
        grant: true,
        note: "ok \u{202e} \"quoted\"".into(),
        scope: "once".into(),
    }
}

#[test]
fn a_transcript_is_canonical_json_that_says_what_is_signed() {
    let word = AnswerWord { note: "fine".into(), ..answer() };
    let transcript = Transcript::new("00ff", [1; 32], Word::Answer(word.clone()));
    let expected = format!(
        r#"["provost-word-v1","00ff","{}",{{"approval":7,"expires":"2026-11-26T12:00:00.000Z","grant":true,"note":"fine","scope":"once","shown":"{}","view":"{}"}}]"#,
        b64(&[1; 32]),
        word.shown,
        word.view,
    );
    assert_eq!(transcript.as_str(), expected);
    assert_eq!(transcript.digest(), Digest::of(expected.as_bytes()));
    let words = [
        Word::Answer(answer()),
        Word::Enrol(EnrolWord { enrol: Digest::of(b"key") }),
        Word::Revoke(RevokeWord { revoke: "abc".into() }),
        Word::Verb(VerbWord { verb: "Stop".into(), arguments: Digest::of(b"{}") }),
    ];
    for word in words {
        let transcript = Transcript::new("00ff", [2; 32], word);
        assert_eq!(Transcript::read(transcript.as_str()).unwrap(), transcript);
    }
    let text = transcript.as_str();
    for wrong in [
        text.replace("v1", "v2"),
        text.replace(":7", ": 7"),
        text.replace(r#""grant":true"#, r#""grant":true,"grant":false"#),
        text.replace(r#""scope":"once","#, ""),
        text.replace(r#""scope""#, r#""more":1,"scope""#),
        "[]".into(),
    ] {
        assert_eq!(Transcript::read(&wrong), Err(Refused::Transcript), "{wrong}");
    }
}

#[test]
fn each_member_of_a_word_changes_the_challenge() {
    let of = |word: AnswerWord| Transcript::new("d", [1; 32], Word::Answer(word)).digest();
    let changed = [
        of(answer()),
        of(AnswerWord { approval: 8, ..answer() }),
        of(AnswerWord { shown: Digest::of(b"other"), ..answer() }),
        of(AnswerWord { view: Digest::of(b"other"), ..answer() }),
        of(AnswerWord { expires: String::new(), ..answer() }),
        of(AnswerWord { grant: false, ..answer() }),
        of(AnswerWord { note: String::new(), ..answer() }),
        of(AnswerWord { scope: "always".into(), ..answer() }),
        Transcript::new("e", [1; 32], Word::Answer(answer())).digest(),
        Transcript::new("d", [2; 32], Word::Answer(answer())).digest(),
    ];
    let different: std::collections::BTreeSet<_> = changed.iter().collect();
    assert_eq!(different.len(), changed.len());
}

#[test]
fn base64_with_padding_or_other_letters_is_refused() {
    assert_eq!(bytes_of("AQ==", "it"), Err(Refused::Encoding("it")));
    assert_eq!(bytes_of("a+b/", "it"), Err(Refused::Encoding("it")));
    assert_eq!(bytes_of(&text_of(b"\xff\xfe"), "it").unwrap(), b"\xff\xfe");
}

proptest! {
    /// Noise, and noise behind a valid beginning, has an outcome.
    #[test]
    fn noise_never_panics(noise in proptest::collection::vec(any::<u8>(), 0..600), cut in 0usize..200) {
        let key = Authenticator::new(Kind::Ed25519);
        let whole = attestation(&key.new_credential());
        let begun = [&whole[..cut.min(whole.len())], &noise].concat();
        let client = key.client_data("webauthn.create", &CHALLENGE);
        for object in [&noise, &begun] {
            let _outcome = registration(&client, object);
            let _outcome = AuthenticatorData::read(object);
        }
        let data = [&key.new_credential()[..55 + 32], &noise].concat();
        let _outcome = AuthenticatorData::read(&data);
        let mut extended = key.new_credential();
        extended[32] |= ED;
        extended.extend(&noise);
        let _outcome = AuthenticatorData::read(&extended);
        prop_assert!(registration(&noise, &whole).is_err());
    }

    /// Deep nesting and huge counts cost neither stack nor memory.
    #[test]
    fn nesting_costs_nothing(first in any::<u8>(), depth in 1usize..7000) {
        let key = Authenticator::new(Kind::Ed25519);
        let mut data = key.new_credential();
        data[32] |= ED;
        data.extend([0xa1, 0x01]);
        data.extend(vec![first; depth]);
        let _outcome = AuthenticatorData::read(&data);
    }
}
