//! Canonical JSON and signed frames: what today's clients sign is accepted, and nothing else.

use std::fmt::Write as _;

use base64::Engine as _;
use hmac::{Hmac, KeyInit as _, Mac as _};
use proptest::prelude::*;
use provost::auth::Rejected;
use provost::auth::frame::{Form, Frame, FrameError, Outgoing};
use provost::base::json::canon_variants;
use provost::base::{Json, Secret, limits};
use serde_json::{Value, json};

const VECTORS: &str = include_str!("../vectors/devit/vectors.json");

fn vectors() -> Value {
    serde_json::from_str(VECTORS).unwrap()
}

fn secret(text: &str) -> Secret {
    Secret::new(text.as_bytes().to_vec())
}

fn field<'a>(vector: &'a Value, name: &str) -> &'a str {
    vector[name].as_str().unwrap()
}

fn mac(key: &str, body: &str) -> String {
    let mut mac = Hmac::<sha2::Sha256>::new_from_slice(key.as_bytes()).unwrap();
    mac.update(body.as_bytes());
    base64::engine::general_purpose::STANDARD.encode(mac.finalize().into_bytes())
}

/// A frame as some foreign client makes it: `signed` goes into the MAC, `sent` onto the wire.
fn foreign(signed: &str, sent: &str) -> String {
    let hmac = mac("k", &format!("NOTIFY|m1|a|b|7|n1|{signed}"));
    format!(
        r#"{{"msg_type":"NOTIFY","msg_id":"m1","from":"a","to":"b","ts":7,"nonce":"n1","hmac":"{hmac}","payload":{sent}}}"#
    )
}

fn verify(line: &str, key: &str) -> Result<(), Rejected> {
    Frame::parse(line.as_bytes()).unwrap().verify(&secret(key))
}

#[test]
fn every_signed_vector_verifies_in_both_forms() {
    let mut count = 0;
    for vector in vectors()["signed"].as_array().unwrap() {
        for (name, form) in [("wire", Form::Standard), ("wire_compact", Form::Compact)] {
            let frame = Frame::parse(field(vector, name).as_bytes()).unwrap();
            assert_eq!(frame.form, form);
            assert_eq!(frame.hmac, field(vector, "hmac"));
            assert_eq!(frame.verify(&secret(field(vector, "secret"))), Ok(()), "{}", vector["name"]);
            assert_eq!(frame.verify(&secret("another")), Err(Rejected::WrongMac));
            count += 1;
        }
    }
    assert_eq!(count, 20);
}

#[test]
fn every_line_captured_from_real_programs_verifies() {
    let vectors = vectors();
    let captured = vectors["captured"].as_array().unwrap();
    assert!(captured.len() > 5);
    for line in captured {
        assert_eq!(verify(field(line, "wire"), field(line, "secret")), Ok(()), "{line}");
    }
}

#[test]
fn we_sign_what_the_vectors_sign() {
    for vector in vectors()["signed"].as_array().unwrap() {
        let line = field(vector, "wire");
        let frame = Frame::parse(line.as_bytes()).unwrap();
        let payload = Json::parse(frame.payload).unwrap();
        let outgoing = Outgoing {
            msg_type: &frame.msg_type,
            msg_id: &frame.msg_id,
            from: &frame.from,
            to: &frame.to,
            ts: frame.ts,
            nonce: &frame.nonce,
            payload: &payload,
        };
        let key = secret(field(vector, "secret"));
        for form in [Form::Standard, Form::Compact] {
            let ours = outgoing.sign(&key, form);
            let read = Frame::parse(ours.as_bytes()).unwrap();
            assert_eq!((read.form, read.hmac.as_ref()), (form, field(vector, "hmac")));
            assert_eq!(read.payload, payload.as_str());
            assert!(!ours.contains('\n'));
        }
    }
}

#[test]
fn fields_that_could_be_split_elsewhere_are_refused_before_their_mac_is_asked() {
    for vector in vectors()["signed"].as_array().unwrap() {
        let ambiguous = field(vector, "name").starts_with("V10");
        let frame = field(vector, "wire").to_owned();
        let frame = Frame::parse(frame.as_bytes()).unwrap();
        assert_eq!(frame.check_separators().is_err(), ambiguous);
        if ambiguous {
            assert_eq!(frame.check_separators(), Err(FrameError::Separator("msg_id")));
            let compact = Frame::parse(field(vector, "wire_compact").as_bytes()).unwrap();
            assert_eq!(compact.check_separators(), Err(FrameError::Separator("i")));
        }
    }
    let nonce = r#"{"t":"A","i":"b","f":"c","o":"d","s":1,"n":"e|f","h":"","p":0}"#;
    assert_eq!(Frame::parse(nonce.as_bytes()).unwrap().check_separators(), Err(FrameError::Separator("n")));
}

#[test]
fn no_byte_of_a_signed_frame_can_be_changed() {
    for vector in vectors()["signed"].as_array().unwrap() {
        let key = secret(field(vector, "secret"));
        for name in ["wire", "wire_compact"] {
            let line = field(vector, name).as_bytes();
            for at in 0..line.len() {
                for flip in [0x01, 0x02, 0x10, 0x20, 0x80] {
                    let mut forged = line.to_vec();
                    forged[at] ^= flip;
                    let accepted = Frame::parse(&forged).is_ok_and(|frame| frame.verify(&key).is_ok());
                    assert!(!accepted, "{}: byte {at} ^ {flip:#x}", vector["name"]);
                }
            }
        }
    }
}

#[test]
fn a_frame_names_what_is_wrong_with_it() {
    let whole = json!({"msg_type":"POLL","msg_id":"i","from":"f","to":"o","ts":1,"nonce":"n","hmac":"h","payload":{}});
    assert!(Frame::parse(whole.to_string().as_bytes()).is_ok());
    for key in ["msg_type", "msg_id", "from", "to", "ts", "nonce", "hmac", "payload"] {
        let mut frame = whole.clone();
        frame.as_object_mut().unwrap().remove(key);
        assert_eq!(Frame::parse(frame.to_string().as_bytes()).unwrap_err(), FrameError::Missing(key));
        if key == "payload" {
            continue;
        }
        for wrong in [json!(1.5), json!(-1), json!([1]), json!({"a": 1}), json!(null), json!(true)] {
            frame[key] = wrong;
            let fault = Frame::parse(frame.to_string().as_bytes()).unwrap_err();
            assert!(matches!(fault, FrameError::WrongType { field, .. } if field == key), "{fault}");
        }
    }
    let compact = r#"{"t":"POLL","i":"i","f":"f","o":"o","s":"1","n":"n","h":"h","p":{}}"#;
    assert!(matches!(Frame::parse(compact.as_bytes()), Err(FrameError::WrongType { field: "s", .. })));
    let twice = r#"{"msg_type":"POLL","msg_type":"ACK","msg_id":"","from":"","to":"","ts":1,"nonce":"","hmac":"","payload":1}"#;
    assert_eq!(Frame::parse(twice.as_bytes()).unwrap_err(), FrameError::Twice("msg_type"));
}

#[test]
fn unknown_keys_are_ignored_whatever_they_hold() {
    let line = format!(r#"{{"t":5,"s":{{"x":[]}},"extra":[1e999,"x"],{}"#, &foreign("{}", "{}")[1..]);
    let frame = Frame::parse(line.as_bytes()).unwrap();
    assert_eq!(frame.form, Form::Standard);
    assert_eq!(frame.verify(&secret("k")), Ok(()));
}

#[test]
fn a_line_in_both_forms_is_compact() {
    let line = format!(
        r#"{{"t":"A","i":"b","f":"c","o":"d","s":1,"n":"e","h":"f","p":0,{}"#,
        &foreign("{}", "{}")[1..]
    );
    assert_eq!(Frame::parse(line.as_bytes()).unwrap().form, Form::Compact);
}

#[test]
fn hostile_lines_are_faults_and_quote_nothing() {
    let deep = format!("{}{}", "[".repeat(400_000), "]".repeat(400_000));
    let deep_extra = format!(r#"{{"x":{deep}}}"#);
    let lines: &[&[u8]] = &[
        b"",
        b"{",
        b"null",
        b"[]",
        b"\"hunter2\"",
        b"{\"msg_type\":\"hunter2",
        b"{}{}",
        b"{} hunter2",
        b"\xff\xfe",
        b"{\"msg_type\":\"\xff\"}",
        b"{\"msg_type\":\"\\ud800\"}",
        b"{\"ts\":1e999}",
        b"{\"hunter2\"}",
        deep.as_bytes(),
        deep_extra.as_bytes(),
        b"{\"msg_type\":\"a\nb\"}",
    ];
    for line in lines {
        let fault = Frame::parse(line).unwrap_err();
        assert!(!fault.to_string().contains("hunter2"), "{fault}");
    }
    // Deep nesting gets as far as a payload goes; there it stops.
    let deep = foreign(&deep, &deep);
    let frame = Frame::parse(deep.as_bytes()).unwrap();
    assert_eq!(frame.verify(&secret("k")), Ok(()));
    assert_eq!(frame.verify(&secret("wrong")), Err(Rejected::WrongMac));
    assert!(Json::parse(frame.payload).is_err());
}

#[test]
fn a_mac_that_is_not_one_is_refused_like_a_wrong_one() {
    for hmac in ["", "====", "AAAA", "not base64!", &"A".repeat(44), &format!("{}=", "B".repeat(43))] {
        let line = format!(r#"{{"t":"A","i":"b","f":"c","o":"d","s":1,"n":"e","h":"{hmac}","p":0}}"#);
        let rejected = verify(&line, "k").unwrap_err();
        assert_eq!(rejected.to_string(), Rejected::WrongMac.to_string());
    }
    assert_eq!(Frame::parse(foreign("1", "1").as_bytes()).unwrap().verify_any(&[]), Err(Rejected::NoKey));
}

#[test]
fn during_a_rotation_either_key_is_good() {
    let line = foreign("{}", "{}");
    let frame = Frame::parse(line.as_bytes()).unwrap();
    assert_eq!(frame.verify_any(&[secret("old"), secret("k")]), Ok(()));
    assert_eq!(frame.verify_any(&[secret("old"), secret("older")]), Err(Rejected::WrongMac));
}

#[test]
fn senders_may_sign_sorted_and_send_as_they_like() {
    for (signed, sent) in [
        (r#"{"a":1,"b":[1,2]}"#, "{ \"b\" : [1, 2],\t\"a\": 1 }"),
        (r#"{"a":"é/\u001f"}"#, r#"{"a":"\u00e9\/\u001F"}"#),
        (r#"{"a":2}"#, r#"{"a":1,"a":2}"#),
        // Python prints floats in its own way, and spells them on the wire as it signed them.
        (r#"{"x":1e-05,"y":1e+16}"#, r#"{"y": 1e+16, "x": 1e-05}"#),
        // An exact signer that re-reads what it sends.
        (r#"{"x":432.95284981322555}"#, r#"{ "x": 432.95284981322555 }"#),
        // serde_json, inexact: what it printed after reading.
        (r#"{"x":432.9528498132255}"#, r#"{ "x": 432.95284981322555 }"#),
    ] {
        assert_eq!(verify(&foreign(signed, sent), "k"), Ok(()), "{signed}");
        assert_eq!(verify(&foreign(sent, sent), "k"), Ok(()), "{sent}");
    }
    assert!(verify(&foreign(r#"{"a":1}"#, r#"{"a":2}"#), "k").is_err());
    assert!(verify(&foreign(r#"{"a":1}"#, r#"{"a":1.0}"#), "k").is_err());
}

#[test]
fn text_is_canonical_after_parsing() {
    for (given, canonical) in [
        (" null ", "null"),
        ("[ ]", "[]"),
        ("{ }", "{}"),
        (r#"{"b":1,"a":2}"#, r#"{"a":2,"b":1}"#),
        (r#"{"b":1,"a":2,"b":3}"#, r#"{"a":2,"b":3}"#),
        (r#"{"a":{"d":[{"f":1,"e":2}],"c":3}}"#, r#"{"a":{"c":3,"d":[{"e":2,"f":1}]}}"#),
        // By the bytes of the key, not of its escaped spelling: U+0001 < `"` < `Z` < `\` < `é` < an astral
        // letter.
        (
            r#"{"😀":1,"é":2,"\\":3,"Z":4,"\"":5,"\u0001":6}"#,
            r#"{"\u0001":6,"\"":5,"Z":4,"\\":3,"é":2,"😀":1}"#,
        ),
        (r#"{"\ufb01":1,"\ud83d\ude00":2}"#, "{\"\u{fb01}\":1,\"\u{1f600}\":2}"),
        (r#""\/\b\f\n\r\t\u0000\u001F\u007f""#, "\"/\\b\\f\\n\\r\\t\\u0000\\u001f\u{7f}\""),
        ("-0", "-0.0"),
        ("1.0", "1.0"),
        ("1e3", "1000.0"),
        ("1E16", "1e+16"),
        // Exactly between two candidates of the same length: the even one.
        ("1658206780088562.25", "1658206780088562.2"),
        ("-233115890514796.125", "-233115890514796.12"),
        ("1e-7", "1e-7"),
        ("0.00001", "0.00001"),
        ("18446744073709551615", "18446744073709551615"),
        ("18446744073709551616", "1.8446744073709552e+19"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("-9223372036854775809", "-9.223372036854776e+18"),
        ("1e-400", "0.0"),
        ("0e99999999999", "0.0"),
        ("-1e-99999999999", "-0.0"),
    ] {
        assert_eq!(Json::parse(given).unwrap().as_str(), canonical);
        assert_eq!(Json::parse(canonical).unwrap().as_str(), canonical);
    }
}

#[test]
fn what_is_not_json_is_refused() {
    let deep = |n| format!("{}{}", "[".repeat(n), "]".repeat(n));
    assert!(Json::parse(&deep(limits::JSON_DEPTH_MAX)).is_ok());
    let too_deep = deep(limits::JSON_DEPTH_MAX + 1);
    let very_deep = deep(500_000);
    for text in [
        "",
        " ",
        "nul",
        "nullx",
        "True",
        "01",
        "-",
        "+1",
        "1.",
        ".5",
        "1e",
        "1e+",
        "0x1",
        "NaN",
        "Infinity",
        "--1",
        "[1,]",
        "[,1]",
        "[1 2]",
        "[",
        "]",
        "{",
        "}",
        r#"{"a"}"#,
        r#"{"a":}"#,
        r#"{"a":1,}"#,
        "{a:1}",
        r#"{1:1}"#,
        r#"{"a":1"b":2}"#,
        "1 2",
        "{}{}",
        "\"",
        r#""\"#,
        r#""\x""#,
        r#""\u12""#,
        r#""\u12é""#,
        r#""\u+123""#,
        r#""\ud800""#,
        r#""\ud800x""#,
        r#""\ud800\n""#,
        r#""\ud800\u0041""#,
        r#""\udc00""#,
        r#""\ud83d\ud83d""#,
        "\"\n\"",
        "\"\u{1f}\"",
        "\u{feff}1",
        "1\u{a0}",
        "\u{b}1",
        "/**/1",
        "'a'",
        "1e400",
        "-1e400",
        "1e99999999999",
        r#""\é""#,
        &too_deep,
        &very_deep,
    ] {
        assert!(Json::parse(text).is_err(), "{text:.60}");
    }
}

#[test]
fn values_of_our_own_may_wrap_what_was_as_deep_as_allowed() {
    let deep = format!("{}{}", "[".repeat(limits::JSON_DEPTH_MAX), "]".repeat(limits::JSON_DEPTH_MAX));
    let wrapped = Json::from_value(&json!({"answer": [Json::parse(&deep).unwrap().value()]}));
    let stored = serde_json::to_string(&wrapped).unwrap();
    assert_eq!(serde_json::from_str::<Json>(&stored).unwrap(), wrapped);
    assert!(stored.contains(&deep));
    for number in [f64::MAX, f64::MIN, f64::MIN_POSITIVE, 5e-324, 0.1, -0.0] {
        let json = Json::from_value(&json!([number]));
        assert_eq!(Json::from_value(&json.value()), json);
    }
}

/// Reads and prints a text as a client does whose `serde_json` has default features.
fn printed_again(text: &str) -> String {
    serde_json::from_str::<Value>(text).unwrap().to_string()
}

fn any_f64() -> impl Strategy<Value = f64> {
    let finite = |bits| Some(f64::from_bits(bits)).filter(|number| number.is_finite());
    prop_oneof![
        any::<u64>().prop_filter_map("finite", finite),
        any::<f64>().prop_filter("finite", |number| number.is_finite()),
        (0.0..1000.0f64),
        (any::<i64>(), 0..4u32).prop_map(|(n, shift)| n as f64 / f64::from(1 << shift)),
        (-1074..=1023i32).prop_map(|n| 2f64.powi(n)),
    ]
}

fn any_number_text() -> impl Strategy<Value = String> {
    prop_oneof![
        any_f64().prop_map(|number| format!("{number:e}")),
        any_f64().prop_map(|number| format!("{number:?}")),
        "-?(0|[1-9][0-9]{0,40})(\\.[0-9]{1,40})?([eE][-+]?[0-9]{1,3})?",
        "-?(0|[1-9][0-9]{15,21})(\\.[0-9]{1,6})?",
        Just("18446744073709551610.5e3".to_owned()),
    ]
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any_f64().prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::hash_map(any::<String>(), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// The value with blanks, members in a random-looking order, escapes where none are needed, and duplicates.
fn scrambled(value: &Value, out: &mut String) {
    match value {
        Value::String(text) => {
            out.push('"');
            for unit in text.encode_utf16() {
                write!(out, "\\u{unit:04X}").unwrap();
            }
            out.push('"');
        }
        Value::Array(list) => {
            out.push_str("[ ");
            for (i, item) in list.iter().enumerate() {
                out.push_str(if i > 0 { " ,\n" } else { "" });
                scrambled(item, out);
            }
            out.push_str("\t]");
        }
        Value::Object(map) => {
            out.push('{');
            for (key, item) in map.iter().rev().map(|(key, _)| (key, &Value::Null)).chain(map.iter().rev()) {
                out.push_str(if out.ends_with('{') { "\r" } else { ", " });
                scrambled(&Value::from(key.as_str()), out);
                out.push_str(" : ");
                scrambled(item, out);
            }
            out.push('}');
        }
        other => write!(out, "{other}").unwrap(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1000) })]

    #[test]
    fn what_we_sign_todays_clients_print_unchanged(value in any_json()) {
        let json = Json::from_value(&value);
        prop_assert_eq!(printed_again(json.as_str()), json.as_str());
        prop_assert_eq!(&Json::from_value(&json.value()), &json);
    }

    #[test]
    fn canonical_text_does_not_depend_on_the_spelling(value in any_json()) {
        let mut text = String::new();
        scrambled(&value, &mut text);
        let json = Json::parse(&text).unwrap();
        prop_assert_eq!(&json, &Json::from_value(&value));
        prop_assert_eq!(&Json::parse(json.as_str()).unwrap(), &json);
        let stored = serde_json::to_string(&json).unwrap();
        prop_assert_eq!(&stored, json.as_str());
        prop_assert_eq!(&serde_json::from_str::<Json>(&stored).unwrap(), &json);
    }

    #[test]
    fn a_number_has_the_readings_of_exact_and_of_serde_json_senders(text in any_number_text()) {
        let Ok(variants) = canon_variants(&text) else {
            return Ok(());
        };
        let variants: Vec<String> = variants.collect();
        match serde_json::from_str::<Value>(&text) {
            Ok(value) => prop_assert!(variants.contains(&value.to_string()), "{text}: {variants:?}, not {value}"),
            Err(_) => prop_assert!(Json::parse(&text).is_err()),
        }
        if text.contains(['.', 'e', 'E']) && text.parse::<f64>().unwrap().is_finite() {
            let exact = serde_json::to_string(&text.parse::<f64>().unwrap()).unwrap();
            prop_assert!(variants.contains(&exact), "{text}: {variants:?}, not {exact}");
        }
    }

    #[test]
    fn floats_print_as_serde_json_prints_them(number in any_f64()) {
        let printed = serde_json::to_string(&number).unwrap();
        let variants: Vec<String> = canon_variants(&format!("{number:.400e}")).unwrap().collect();
        prop_assert_eq!(&variants[1], &printed);
    }

    #[test]
    fn our_parser_agrees_with_serde_json(text in "[\\[\\]{}:,\"0-9eE.+ntfalsrue \\\\\u{e9}-]{0,12}") {
        prop_assert_eq!(Json::parse(&text).is_ok(), serde_json::from_str::<Value>(&text).is_ok(), "{}", text);
    }

    #[test]
    fn payloads_of_exact_and_inexact_signers_verify(value in any_json()) {
        let native = value.to_string();
        prop_assert_eq!(verify(&foreign(&native, &native), "k"), Ok(()));
        // A daemon in between that reads and prints before it signs.
        let relayed = printed_again(&native);
        let spaced = serde_json::to_string_pretty(&value).unwrap().replace('\n', " ");
        prop_assert_eq!(verify(&foreign(&relayed, &spaced), "k"), Ok(()));
        prop_assert_eq!(verify(&foreign(&native, &spaced), "k"), Ok(()));
    }
}

#[test]
fn a_number_that_swaps_places_with_its_neighbour_settles_beside_them() {
    for text in ["1.9554506735140268e-212", "-1.955450673514027e-212"] {
        let json = Json::parse(text).unwrap();
        assert_eq!(printed_again(json.as_str()), json.as_str());
        let (given, settled): (f64, f64) = (text.parse().unwrap(), json.as_str().parse().unwrap());
        assert!((settled / given - 1.0).abs() < 1e-14);
    }
}
