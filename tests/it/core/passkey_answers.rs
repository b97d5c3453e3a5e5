//! Answers that passkeys have signed, as scripts over the core: their signatures were checked at the door.

use provost::base::{ApprovalId, Digest, Json, Ttl};
use provost::domain::command::{AddPasskey, AnswerApproval, ResetPasskeys, RevokePasskey, SayWord};
use provost::domain::{Door, Passkey, Principal, Proof, Refusal, Scope, SignedWord, Verdict};
use provost_test_equipment::callers::caller;

use crate::support::script::{Script, approver, client, person};

#[test]
fn a_rule_for_passkeys_admits_no_other_proof() {
    for (rule, without, with) in [("ask-passkey", false, false), ("ask-passkey-if-enrolled", true, false)] {
        let mut s = Script::new();
        let ask = |s: &mut Script| s.ask(&client("ada"), rule, "cli").1;
        let others =
            [person("owner"), caller("owner", Door::Own, &[Scope::Approve, Scope::Read], Proof::Desktop)];
        for who in &others {
            let approval = ask(&mut s);
            assert_eq!(s.answer(who, approval, Verdict::Granted).is_ok(), without, "{rule} by {who:?}");
        }
        s.say(&person("owner"), enrolment("k")).unwrap();
        for who in others.iter().chain([&approver("boss")]) {
            let approval = ask(&mut s);
            assert_eq!(s.answer(who, approval, Verdict::Granted).is_ok(), with, "{rule} by {who:?}");
        }
        let approval = ask(&mut s);
        s.say(&by_passkey(), signed(&s, approval, "k", 1)).unwrap();
    }
}

#[test]
fn a_passkeys_answer_has_its_signature_and_no_other_answer_has_one() {
    let mut s = Script::new();
    s.say(&person("owner"), enrolment("k")).unwrap();
    let (_, approval) = s.ask(&client("ada"), "ask", "cli");
    let refused =
        |it: Result<_, Refusal>| assert!(matches!(it, Err(Refusal::PasskeyRefused { .. })), "{it:?}");
    refused(s.say(&by_passkey(), AnswerApproval { signed: None, ..signed(&s, approval, "k", 1) }).map(drop));
    refused(s.say(&person("owner"), signed(&s, approval, "k", 1)).map(drop));
    refused(s.say(&by_passkey(), signed(&s, approval, "unknown", 1)).map(drop));
    let blind = AnswerApproval { shown: None, ..signed(&s, approval, "k", 1) };
    assert_eq!(s.say(&by_passkey(), blind).map(drop), Err(Refusal::ApprovalChanged));
    s.say(&by_passkey(), signed(&s, approval, "k", 5)).unwrap();
    let (_, approval) = s.ask(&client("ada"), "ask", "cli");
    refused(s.say(&by_passkey(), signed(&s, approval, "k", 5)).map(drop));
    s.say(&person("owner"), RevokePasskey { id: "k".into(), signed: None }).unwrap();
    refused(s.say(&by_passkey(), signed(&s, approval, "k", 6)).map(drop));
    refused(s.say(&person("owner"), enrolment("k")).map(drop));
}

#[test]
fn agents_change_no_passkeys_and_a_reset_lasts_a_day() {
    let mut s = Script::new();
    let agent = caller("ada", Door::Own, &[Scope::Operate, Scope::Read], Proof::PeerUid);
    assert!(matches!(s.say(&agent, enrolment("k")), Err(Refusal::PasskeyRefused { .. })));
    let reset = ResetPasskeys { count: 1, wait: Ttl::minutes(24 * 60) };
    assert!(matches!(s.say(&agent, reset.clone()), Err(Refusal::PasskeyRefused { .. })));
    s.say(&person("owner"), reset).unwrap();
    s.say(&person("owner"), enrolment("k")).unwrap();
    let (_, approval) = s.ask(&client("ada"), "ask-passkey-if-enrolled", "cli");
    assert!(s.say(&by_passkey(), signed(&s, approval, "k", 1)).is_err());
    assert!(
        s.answer(&person("owner"), approval, Verdict::Granted).is_err(),
        "nor is a person enough meanwhile"
    );
    s.pass(Ttl::minutes(24 * 60));
    let (_, approval) = s.ask(&client("ada"), "ask-passkey", "cli");
    s.say(&by_passkey(), signed(&s, approval, "k", 1)).unwrap();
}

#[test]
fn a_signed_verb_uses_the_counter_up_and_nobody_else_says_one() {
    let mut s = Script::new();
    s.say(&person("owner"), enrolment("k")).unwrap();
    let say = |counter| SayWord {
        verb: "cancel-task".into(),
        arguments: Json::null(),
        signed: Box::new(word("k", counter)),
    };
    let refused =
        |it: Result<_, Refusal>| assert!(matches!(it, Err(Refusal::PasskeyRefused { .. })), "{it:?}");
    refused(s.say(&person("owner"), say(1)).map(drop));
    s.say(&by_passkey(), say(3)).unwrap();
    refused(s.say(&by_passkey(), say(3)).map(drop));
    // The same counter answers nothing any more.
    let (_, approval) = s.ask(&client("ada"), "ask", "cli");
    refused(s.say(&by_passkey(), signed(&s, approval, "k", 3)).map(drop));
    s.say(&person("owner"), RevokePasskey { id: "k".into(), signed: None }).unwrap();
    refused(s.say(&by_passkey(), say(9)).map(drop));
}

fn by_passkey() -> Principal {
    caller("owner", Door::Own, &[Scope::Read, Scope::Operate, Scope::Approve], Proof::Passkey)
}

fn enrolment(id: &str) -> AddPasskey {
    let passkey = Passkey {
        id: id.into(),
        name: id.into(),
        rp_id: "provost.localhost".into(),
        key: Json::null(),
        backup_eligible: false,
        aaguid: "00".into(),
        source: "code".into(),
    };
    AddPasskey { passkey, counter: 0, vouched: None }
}

fn word(credential: &str, counter: u32) -> SignedWord {
    SignedWord {
        credential: credential.into(),
        transcript: "[]".into(),
        digest: Digest::of(b"[]"),
        authenticator_data: "".into(),
        client_data: "".into(),
        signature: "".into(),
        counter,
    }
}

fn signed(s: &Script, approval: ApprovalId, credential: &str, counter: u32) -> AnswerApproval {
    let word = word(credential, counter);
    let shown = s.core.state().approvals.get(approval).map(|it| it.shown);
    AnswerApproval { approval, verdict: Verdict::Granted, note: None, shown, signed: Some(Box::new(word)) }
}
