//! Messages to browsers: sealed and signed as the RFCs say, to valid keys; and the rules about which browsers get them,
//! as scripts over the core.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use provost::base::limits::{PUSH_SNOOZE_S, PUSH_SUBSCRIPTIONS_MAX, PUSH_TEXT_BYTES_MAX};
use provost::base::{Destination, EffectId, Timestamp};
use provost::domain::command::{AddPush, RemovePush, SnoozePush};
use provost::domain::{
    Change, Door, Effect, NoticeAbout, NoticeKind, OutgoingNotice, Principal, Proof, PushSubscription,
    Refusal, Scope, Verdict, push_address,
};
use provost::effects::{Agreed, PushSending, Recipient, ServerKey, seal, seal_with};
use provost_test_equipment::callers::caller;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};

use crate::support::push_browser::{PushBrowser, claims};
use crate::support::script::{Script, approver, client, host, person};

fn bytes(text: &str) -> Vec<u8> {
    URL_SAFE_NO_PAD.decode(text).unwrap()
}

/// RFC 8291, section 5 and appendix A.
const THEIRS: &str =
    "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4";
const OURS: &str = "BP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A8";
const AUTH: &str = "BTBZMqHH6r4Tts7J_aSIgg";
const SALT: &str = "DGv6ra1nlYgDCS1FRnbzlw";
const SECRET: &str = "kyrL1jIIOHEzg3sM2ZWRHDRB62YACZhhSlknJ672kSs";
const SEALED: &str = "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8w\
                      EqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN";

#[test]
fn the_published_message_is_sealed_to_the_published_bytes() {
    let to = Recipient::read(THEIRS, AUTH).unwrap();
    let agreed = Agreed { secret: bytes(SECRET), ours: bytes(OURS), salt: bytes(SALT).try_into().unwrap() };
    let sealed = seal_with(&to, &agreed, b"When I grow up, I want to be a watermelon", 1).unwrap();
    assert_eq!(URL_SAFE_NO_PAD.encode(sealed), SEALED);
}

#[test]
fn what_is_sealed_is_opened_by_other_code_and_its_length_tells_nothing() {
    let browser = PushBrowser::new();
    let to = Recipient::read(&browser.p256dh(), &browser.auth()).unwrap();
    let mut bodies = Vec::new();
    for text in ["", "{}", &"x".repeat(511)] {
        let body = seal(&to, text.as_bytes()).unwrap();
        assert_eq!((browser.open(&body), body.len()), (text.to_owned(), 86 + 512 + 16));
        bodies.push(body);
    }
    assert_ne!(bodies[0][..16], bodies[1][..16], "another salt");
    assert_ne!(bodies[0][21..86], bodies[1][21..86], "another key");
    let longest = "y".repeat(PUSH_TEXT_BYTES_MAX);
    let body = seal(&to, longest.as_bytes()).unwrap();
    assert!(body.len() <= 4096 && browser.open(&body) == longest, "{}", body.len());
    assert!(seal(&to, format!("{longest}y").as_bytes()).is_err());
}

#[test]
fn keys_of_a_wrong_length_and_points_off_the_curve_are_refused() {
    let point = bytes(THEIRS);
    let with = |at: usize, byte: u8| {
        let mut changed = point.clone();
        changed[at] = byte;
        URL_SAFE_NO_PAD.encode(changed)
    };
    let compressed = URL_SAFE_NO_PAD.encode([&[2], &point[1..33]].concat());
    let zeros = URL_SAFE_NO_PAD.encode([&[4][..], &[0; 64]].concat());
    let ones = URL_SAFE_NO_PAD.encode([&[4][..], &[255; 64]].concat());
    let short = URL_SAFE_NO_PAD.encode(&point[..64]);
    let long = URL_SAFE_NO_PAD.encode([&point[..], &[0]].concat());
    let padded = format!("{THEIRS}=");
    let plain = base64::prelude::BASE64_STANDARD.encode(&point);
    let off = [with(64, 0), with(10, 7), with(0, 0), with(0, 3), with(0, 6), zeros, ones];
    for wrong in
        off.iter().chain([&compressed, &short, &long, &padded, &plain, &String::new(), &"%".repeat(87)])
    {
        assert!(Recipient::read(wrong, AUTH).is_err(), "{wrong}");
    }
    for wrong in ["", "AA", "BTBZMqHH6r4Tts7J_aSIggAA", "BTBZMqHH6r4Tts7J_aSIgg==", "BTBZMqHH6r4Tts7J/aSIgg"]
    {
        let why = Recipient::read(THEIRS, wrong).err().unwrap();
        assert!(why.contains("auth"), "{wrong}: {why}");
    }
    assert!(Recipient::read(THEIRS, AUTH).is_ok());
}

#[test]
fn the_token_for_a_push_service_is_signed_as_the_published_one_is() {
    // RFC 8292, section 2.4, in the order of its header.
    let published = "vapid t=eyJ0eXAiOiJKV1QiLCJhbGciOiJFUzI1NiJ9.eyJhdWQiOiJodHRwczovL3B1c2guZXhhbXBsZS5uZXQiLCJleHAiOj\
                     E0NTM1MjM3NjgsInN1YiI6Im1haWx0bzpwdXNoQGV4YW1wbGUuY29tIn0.i3CYb7t4xfxCDquptFOepC9GAu_HLGkMlMuCGSK2rpi\
                     UfnK9ojFwDXb1JrErtmysazNjjvW2L9OkSSHzvoD1oA, k=BA1Hxzyi1RUM1b5wjxsn7nGxAszw2u61m164i3MrAIxHF6YK5h4SDYi\
                     c-dRuU_RCPCfA5aq9ojSwk5Y2EmClBPs";
    assert_eq!(claims(published).0["aud"], "https://push.example.net");
    let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new()).unwrap();
    let key = ServerKey::from_pkcs8(made.as_ref()).unwrap();
    let now = Timestamp(1_700_000_000_000);
    let header = key.authorization("https://push.example", "mailto:me@example.org", now).unwrap();
    let (said, public) = claims(&header);
    assert_eq!(
        (&said["aud"], &said["sub"]),
        (&"https://push.example".into(), &"mailto:me@example.org".into())
    );
    let left = said["exp"].as_u64().unwrap() - now.seconds();
    assert!(left > 3_600 && left < 24 * 60 * 60, "{left}");
    assert_eq!((public.clone(), bytes(&public).len()), (key.public(), 65));
    assert!(ServerKey::from_pkcs8(b"no key").is_err());
}

#[test]
fn nothing_but_a_push_service_of_the_list_is_an_address() {
    let added = Destination::parse("hooks.example:8443=127.0.0.1").unwrap();
    let sending = PushSending { hosts: vec![added], ..PushSending::default() };
    let wrong = [
        "",
        "push",
        "http://fcm.googleapis.com/fcm/send/x",
        "http://127.0.0.1:8443/x",
        "https://127.0.0.1:8443/x",
        "https://[::1]:8443/x",
        "https://10.0.0.1/x",
        "https://169.254.169.254/latest/meta-data",
        "https://2130706433/x",
        "https://0x7f.1/x",
        "https://localhost/x",
        "https://hooks.example/x",
        "https://hooks.example:8444/x",
        "http://hooks.example:8443/x",
        "https://evil.example/x",
        "https://fcm.googleapis.com:8443/x",
        "https://fcm.googleapis.com.evil.example/x",
        "https://evilfcm.googleapis.com/x",
        "https://a.fcm.googleapis.com/x",
        "https://push.apple.com/x",
        "https://evilpush.apple.com/x",
        "https://web.push.apple.com.evil.example/x",
        "https://fcm.googleapis.com@evil.example/x",
        "https://evil.example#fcm.googleapis.com/x",
        "https://evil.example/?fcm.googleapis.com/x",
        "https://fcm.googleapis.com./x",
        "https://.push.apple.com/x",
        "https://fcm.googleapis.com/x\r\nHost: evil.example",
        "file:///etc/passwd",
        "HTTPS://fcm.googleapis.com/x",
        " https://fcm.googleapis.com/x",
    ];
    for endpoint in wrong {
        assert!(sending.check(endpoint).is_err(), "{endpoint}");
    }
    assert!(sending.check(&format!("https://fcm.googleapis.com/{}", "x".repeat(3_000))).is_err());
    for endpoint in [
        "https://fcm.googleapis.com/fcm/send/x:y-z_",
        "https://FCM.googleapis.com/fcm/send/x",
        "https://updates.push.services.mozilla.com/wpush/v2/x",
        "https://web.push.apple.com/QGx",
        "https://wns2-par02p.notify.windows.com/w/?token=x%2f",
        "https://hooks.example:8443/x",
    ] {
        assert_eq!(sending.check(endpoint), Ok(()), "{endpoint}");
    }
}

fn by_passkey() -> Principal {
    caller("user:owner", Door::Own, &[Scope::Operate, Scope::Read], Proof::Passkey)
}

fn browser(id: &str) -> AddPush {
    let subscription = PushSubscription {
        id: id.into(),
        name: format!("phone {id}").into(),
        endpoint: "https://push.example/secret".into(),
        p256dh: THEIRS.into(),
        auth: AUTH.into(),
        origin: "http://provost.localhost:4720".into(),
        server_key: OURS.into(),
        added_at: Timestamp::default(),
    };
    AddPush { subscription }
}

fn notices(s: &Script) -> Vec<Arc<OutgoingNotice>> {
    let of = |(_, effect): &(EffectId, Effect)| match effect {
        Effect::SendNotice { notice } => Some(notice.clone()),
        _ => None,
    };
    s.out.effects.iter().filter_map(of).collect()
}

#[test]
fn only_a_passkey_has_a_browser_told_and_a_person_ends_it() {
    let mut s = Script::new();
    let agent = caller("ada", Door::Own, &[Scope::Operate, Scope::Read], Proof::PeerUid);
    for who in [&person("owner"), &agent, &approver("boss"), &host()] {
        assert!(s.say(who, browser("a")).is_err(), "{who:?}");
    }
    s.say(&by_passkey(), browser("a")).unwrap();
    let remove = || RemovePush { id: "a".into(), why: "no more".into() };
    assert!(matches!(s.say(&agent, remove()), Err(Refusal::PasskeyRefused { .. })));
    s.say(&person("owner"), remove()).unwrap();
    assert!(s.core.state().push.is_empty());
    assert!(s.say(&person("owner"), remove()).is_err(), "there is none");
}

#[test]
fn so_many_browsers_are_told_and_one_that_comes_again_takes_its_own_place() {
    let mut s = Script::new();
    for n in 0..PUSH_SUBSCRIPTIONS_MAX {
        s.say(&by_passkey(), browser(&n.to_string())).unwrap();
    }
    let one_more = s.say(&by_passkey(), browser("more")).map(drop);
    assert!(matches!(one_more, Err(Refusal::Quota { .. })), "{one_more:?}");
    let mut again = browser("3");
    again.subscription.name = "desk".into();
    s.say(&by_passkey(), again).unwrap();
    assert_eq!(s.core.state().push.iter().count(), PUSH_SUBSCRIPTIONS_MAX);
    assert_eq!(&*s.core.state().push.get("3").unwrap().name, "desk");
    assert!(!format!("{:?}", s.core.state().push).contains("secret"), "an address is a browser's secret");
}

#[test]
fn a_browser_is_told_of_a_question_and_of_its_end_and_others_of_a_new_browser() {
    let mut s = Script::new();
    s.say(&by_passkey(), browser("a")).unwrap();
    assert!(notices(&s).is_empty(), "a browser is not told of itself");
    let (_, approval) = s.ask(&client("ada"), "ask a secret of mine", "cli");
    let mut told = notices(&s);
    s.answer(&person("owner"), approval, Verdict::Granted).unwrap();
    told.extend(notices(&s));
    let kinds: Vec<NoticeKind> = told.iter().map(|it| it.kind).collect();
    assert_eq!(kinds, [NoticeKind::Approval, NoticeKind::Answered]);
    assert!(told.iter().all(|it| it.to == push_address("a") && it.words.is_empty()), "facts alone");
    s.say(&by_passkey(), browser("b")).unwrap();
    let newest = notices(&s).pop().unwrap();
    assert_eq!(newest.to, push_address("a"));
    assert!(
        matches!(&newest.about, NoticeAbout::Passkey { what, .. } if &**what == "browser_added"),
        "{newest:?}"
    );
}

#[test]
fn what_a_browser_is_owed_goes_with_it() {
    let mut s = Script::new();
    s.say(&by_passkey(), browser("a")).unwrap();
    s.say(&by_passkey(), browser("b")).unwrap();
    s.ask(&client("ada"), "ask", "cli");
    let before = s.core.state().outgoing.len();
    s.say(&person("owner"), RemovePush { id: "a".into(), why: "no more".into() }).unwrap();
    let owed: Vec<(String, usize)> =
        s.core.state().outgoing.by_address().map(|(to, count, _)| (to.to_owned(), count)).collect();
    // The question, and that the other one gets no more notices.
    assert_eq!(owed, [("push:b".to_owned(), 2)], "{before}");
    assert!(s.out.changes.iter().any(|it| matches!(it, Change::DropEffect(_))));
}

#[test]
fn a_question_that_was_put_off_is_told_once_more_if_it_still_waits_and_answers_nothing() {
    let mut s = Script::new();
    s.say(&by_passkey(), browser("a")).unwrap();
    let (_, approval) = s.ask(&client("ada"), "ask", "cli");
    let later = |id: &str| SnoozePush { id: id.into(), approval };
    let agent = caller("ada", Door::Own, &[Scope::Operate, Scope::Read], Proof::PeerUid);
    assert!(s.say(&agent, later("a")).is_err() && s.say(&host(), later("b")).is_err());
    s.say(&host(), later("a")).unwrap();
    let told = notices(&s);
    let wait = told[0].not_before.unwrap().since_ms(s.now) / 1_000;
    assert_eq!((told.len(), told[0].kind, wait), (1, NoticeKind::Approval, PUSH_SNOOZE_S));
    s.say(&host(), later("a")).unwrap();
    assert!(notices(&s).is_empty(), "once at a time");
    assert!(s.core.state().approvals.get(approval).is_some());
    s.answer(&person("owner"), approval, Verdict::Denied).unwrap();
    assert_eq!(s.say(&host(), later("a")).map(drop), Err(Refusal::ApprovalNotFound(approval)));
}
