//! Answers that passkeys have signed, as scripts over the core: their signatures were checked at the door.

use provost::base::{ApprovalId, Digest, Json, Ttl};
use provost::domain::command::{
    AddPasskey, AnswerApproval, NotePasskeyList, ResetPasskeys, RevokePasskey, SayWord,
};
use provost::domain::{Door, Passkey, Principal, Proof, Refusal, Scope, SignedWord, Verdict};
use provost_test_equipment::callers::caller;

use crate::support::script::{Script, approver, client, person};

#[test]
fn a_rule_for_passkeys_admits_no_other_proof() {
    for (rule, without, with) in [
        ("ask-passkey", false, false),
        ("ask-passkey-if-enrolled", true, false),
        ("ask-passkey-if-enrolled-or-boss", true, false),
    ] {
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
    let reset = ResetPasskeys { count: 1, waits: true };
    assert!(matches!(s.say(&agent, reset.clone()), Err(Refusal::PasskeyRefused { .. })));
    s.say(&person("owner"), reset).unwrap();
    s.say(&person("owner"), enrolment("k")).unwrap();
    waits_for_a_day(&mut s);
}

/// No passkey counts, and no person can replace one, until the daemon has run for a day, even if the clock was set.
fn waits_for_a_day(s: &mut Script) {
    let refused = |s: &mut Script, what: &str| {
        let (_, approval) = s.ask(&client("ada"), "ask-passkey-if-enrolled", "cli");
        assert!(s.say(&by_passkey(), signed(s, approval, "k", 1)).is_err(), "{what}");
        assert!(s.answer(&person("owner"), approval, Verdict::Granted).is_err(), "{what}");
    };
    refused(s, "at once");
    // A clock that was set, and days in which the daemon did not run.
    s.pass(Ttl::minutes(3 * 24 * 60));
    refused(s, "after a leap");
    let now = s.now;
    assert!(s.core.state().passkeys.leapt_ms(now) >= 2 * 24 * 3_600_000, "and the leap is known");
    let ran = |hours: u64| NotePasskeyList { number: None, is_unusable: false, ran_ms: hours * 3_600_000 };
    assert!(matches!(s.say(&person("owner"), ran(24)), Err(Refusal::PasskeyRefused { .. })));
    s.say(&system(), ran(23)).unwrap();
    refused(s, "an hour before");
    s.say(&system(), ran(1)).unwrap();
    let (_, approval) = s.ask(&client("ada"), "ask-passkey", "cli");
    s.say(&by_passkey(), signed(s, approval, "k", 1)).unwrap();
}

#[test]
fn to_revoke_the_last_one_without_a_signature_is_a_reset() {
    let mut s = Script::new();
    s.say(&person("owner"), enrolment("old")).unwrap();
    s.say(&person("owner"), RevokePasskey { id: "old".into(), signed: None }).unwrap();
    s.say(&person("owner"), enrolment("k")).unwrap();
    waits_for_a_day(&mut s);
    // With its own signature it is its owner's word, and waits for nothing.
    let word = signed_word("k", 2);
    s.say(&by_passkey(), RevokePasskey { id: "k".into(), signed: Some(Box::new(word)) }).unwrap();
    let (_, approval) = s.ask(&client("ada"), "ask-passkey-if-enrolled", "cli");
    s.answer(&person("owner"), approval, Verdict::Granted).unwrap();
}

#[test]
fn a_passkey_on_record_keeps_its_key_and_others_come_beside_it_by_its_signature() {
    let mut s = Script::new();
    s.say(&person("owner"), enrolment("k")).unwrap();
    let refused =
        |it: Result<_, Refusal>| assert!(matches!(it, Err(Refusal::PasskeyRefused { .. })), "{it:?}");
    let changes: [fn(&mut Passkey); 3] = [
        |it| it.key = Json::from_value(&serde_json::json!({ "kty": "OKP" })),
        |it| it.rp_id = "localhost".into(),
        |it| it.backup_eligible = true,
    ];
    for change in changes {
        let mut other = enrolment("k");
        change(&mut other.passkey);
        for who in [person("owner"), system()] {
            refused(s.say(&who, other.clone()).map(drop));
        }
        // Root's word goes before what stands here.
        other.passkey.source = "root".into();
        s.say(&system(), other.clone()).unwrap();
        assert_eq!(s.core.state().passkeys.get("k").unwrap().passkey, other.passkey);
        s.say(
            &system(),
            AddPasskey {
                passkey: Passkey { source: "root".into(), ..enrolment("k").passkey },
                ..enrolment("k")
            },
        )
        .unwrap();
    }
    for who in [person("owner"), system()] {
        refused(s.say(&who, enrolment("second")).map(drop));
        let by_unknown =
            AddPasskey { vouched: Some(Box::new(signed_word("unknown", 9))), ..enrolment("second") };
        refused(s.say(&who, by_unknown).map(drop));
    }
    s.say(
        &person("owner"),
        AddPasskey { vouched: Some(Box::new(signed_word("k", 9))), ..enrolment("second") },
    )
    .unwrap();
    // The counter of a word for another daemon is that daemon's to look at.
    let elsewhere = AddPasskey { vouched: Some(Box::new(signed_word("k", 1))), ..enrolment("third") };
    refused(s.say(&person("owner"), elsewhere.clone()).map(drop));
    s.say(&system(), elsewhere).unwrap();
}

#[test]
fn a_list_that_cannot_be_used_asks_for_no_less() {
    let mut s = Script::new();
    let stands = |is_unusable| NotePasskeyList { number: None, is_unusable, ran_ms: 0 };
    s.say(&system(), stands(true)).unwrap();
    let (_, approval) = s.ask(&client("ada"), "ask-passkey-if-enrolled", "cli");
    assert!(s.answer(&person("owner"), approval, Verdict::Granted).is_err());
    s.say(&system(), stands(false)).unwrap();
    s.answer(&person("owner"), approval, Verdict::Granted).unwrap();
}

fn system() -> Principal {
    caller("provost", Door::Internal, &[Scope::Operate, Scope::Read], Proof::Internal)
}

#[test]
fn a_signed_verb_uses_the_counter_up_and_nobody_else_says_one() {
    let mut s = Script::new();
    s.say(&person("owner"), enrolment("k")).unwrap();
    let say = |counter| SayWord {
        verb: "cancel-task".into(),
        arguments: Json::null(),
        signed: Box::new(signed_word("k", counter)),
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

fn signed(s: &Script, approval: ApprovalId, credential: &str, counter: u32) -> AnswerApproval {
    let word = signed_word(credential, counter);
    let shown = s.core.state().approvals.get(approval).map(|it| it.shown);
    AnswerApproval { approval, verdict: Verdict::Granted, note: None, shown, signed: Some(Box::new(word)) }
}

fn signed_word(credential: &str, counter: u32) -> SignedWord {
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
