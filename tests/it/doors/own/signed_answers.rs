//! A passkey's signature answers an approval: exactly that one, once, and as it was shown.

use std::process::Command;

use provost::base::{ApprovalId, Digest, Timestamp};
use provost::domain::command::AnswerApproval;
use provost::domain::{Call, Core, Door, Facts, Outbox, Proof, Scope, SignedWord, Verdict};
use provost::passkey::{AnswerWord, Transcript, Word};
use provost::store::{Options, Retention, open};
use provost_test_equipment::callers::caller;
use serde_json::{Value, json};

use crate::support::authenticator::{Authenticator, BE, KINDS, Kind, ORIGIN, UP, UV, b64, unb64};
use crate::support::own_api::own;
use crate::support::passkeys::{
    answer, answered, asks, assertion, challenge, enrolled, get, page, say, waits, world_by,
};
use crate::support::rules::ASK;
use crate::support::script::ByWord;
use crate::support::storm::settings;
use crate::support::terminal::at_the_terminal;
use crate::support::{World, eventually, now_s};

const ONLY: &str = "\"passkey\"";

fn task_state(world: &World, answer: &Value) -> String {
    get(world, &format!("/task?id={}", answer["task"].as_str().unwrap()))["state"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn a_signed_yes_runs_the_work_and_a_signed_no_ends_it() {
    let (world, daemon) = world_by(ONLY);
    let mut key = enrolled(&world, Kind::Es256);
    let approval = asks(&world, "true");
    let (status, done) = answer(&world, &mut key, approval, true);
    assert_eq!((status, &done["approval"]), (200, &json!(approval)), "{done}");
    eventually("the work is done", || task_state(&world, &done) == "completed");
    let event = answered(&world, approval);
    let text = event.to_string();
    assert!(text.contains("\"proof\":\"passkey\"") && text.contains(&b64(&key.id)), "{text}");
    let approval = asks(&world, "false");
    let asked = json!({ "approval": approval, "grant": false, "note": "not on a Friday" });
    let (status, done) = say(&world, &mut key, &challenge(&world, &asked));
    assert_eq!(status, 200, "{done}");
    eventually("the work is refused", || task_state(&world, &done) == "failed");
    assert!(!waits(&world, approval));
    daemon.stop();
}

#[test]
fn keys_of_all_kinds_answer() {
    for kind in KINDS {
        let (world, daemon) = world_by(ONLY);
        let mut key = enrolled(&world, kind);
        let approval = asks(&world, "true");
        let (status, done) = answer(&world, &mut key, approval, true);
        assert_eq!(status, 200, "{kind:?}: {done}");
        daemon.stop();
    }
}

#[test]
fn nothing_but_a_passkey_answers_where_the_rule_says_so() {
    let (world, daemon) = world_by(ONLY);
    let mut key = enrolled(&world, Kind::Ed25519);
    let approval = asks(&world, "true");
    let at_terminal = at_the_terminal(&world, &format!("approve {approval}"));
    let text = String::from_utf8_lossy(&at_terminal.stdout).into_owned();
    assert!(text.contains("does not let this caller answer"), "{text}");
    let (_, parked) = world.client(&daemon, "client:coder").delegate("shell", "true", json!({}));
    let parked = parked.ack()["approval_id"].as_str().unwrap().to_owned();
    let decision = json!({ "status": "granted" });
    let with_key = world.approver(&daemon).say_to("APPROVAL_DECISION", &parked, "orchestrator", decision);
    let text = with_key.message().to_string();
    assert!(text.contains("does not let this caller answer"), "{text}");
    let host =
        json!({ "approval": approval, "grant": true, "digest": get(&world, "/approvals")[0]["digest"] });
    let (status, refused) = own(&world, ("POST", "/host-answer"), &[("x-provost-agent", "asker")], &host);
    assert_eq!((status, &refused["error"]), (403, &json!("approval_not_yours")), "{refused}");
    let plain = json!({ "approval": approval, "grant": true });
    let (status, refused) = own(&world, ("POST", "/answer-approval"), &[], &plain);
    assert_eq!(status, 403, "{refused}");
    assert!(waits(&world, approval));
    // An agent may carry what a person has signed.
    let asked = challenge(&world, &json!({ "approval": approval, "grant": true }));
    let body = json!({ "nonce": asked["nonce"], "assertion": assertion(&mut key, &asked) });
    let (status, done) = own(&world, ("POST", "/signed-word"), &[("x-provost-agent", "asker")], &body);
    assert_eq!(status, 200, "{done}");
    daemon.stop();
}

#[test]
fn a_passkey_is_a_person_where_a_rule_wants_one() {
    let world = World::new();
    world.configure(&format!("[passkeys]\norigins = [\"{ORIGIN}\"]\n"));
    world.rule(ASK);
    let daemon = world.start();
    let mut key = enrolled(&world, Kind::Es256);
    let approval = asks(&world, "true");
    let (status, done) = answer(&world, &mut key, approval, true);
    assert_eq!(status, 200, "{done}");
    daemon.stop();
}

#[test]
fn a_signature_counts_once_whether_it_was_good_or_bad() {
    let (world, daemon) = world_by(ONLY);
    let mut key = enrolled(&world, Kind::Es256);
    let (first, second) = (asks(&world, "true"), asks(&world, "true # once more"));
    let asked = challenge(&world, &json!({ "approval": first, "grant": true }));
    let body = json!({ "nonce": asked["nonce"], "assertion": assertion(&mut key, &asked) });
    assert_eq!(page(&world, "/signed-word", &body).0, 200);
    let (status, again) = page(&world, "/signed-word", &body);
    assert_eq!((status, &again["error"]), (410, &json!("challenge_gone")), "{again}");
    // A bad one uses the challenge up, too.
    let asked = challenge(&world, &json!({ "approval": second, "grant": true }));
    let good = assertion(&mut key, &asked);
    let mut bad = good.clone();
    bad["signature"] = json!(b64(&[1; 70]));
    let (status, refused) =
        page(&world, "/signed-word", &json!({ "nonce": asked["nonce"], "assertion": bad }));
    assert_eq!((status, &refused["error"]), (403, &json!("passkey_refused")), "{refused}");
    let (status, _) = page(&world, "/signed-word", &json!({ "nonce": asked["nonce"], "assertion": good }));
    assert_eq!(status, 410);
    assert!(waits(&world, second));
    daemon.stop();
}

#[test]
fn a_signature_is_for_one_verdict_one_approval_and_one_note() {
    let (world, daemon) = world_by(ONLY);
    let mut key = enrolled(&world, Kind::Es256);
    let (first, second) = (asks(&world, "true"), asks(&world, "true # other"));
    let said = json!({ "approval": first, "grant": false, "note": "no" });
    for other in [
        json!({ "approval": first, "grant": true, "note": "no" }),
        json!({ "approval": second, "grant": false, "note": "no" }),
        json!({ "approval": first, "grant": false, "note": "yes" }),
        json!({ "approval": first, "grant": false }),
        said.clone(),
    ] {
        // What was signed is one challenge, and the nonce of another one is handed in with it.
        let (signed, wanted) = (challenge(&world, &said), challenge(&world, &other));
        let body = json!({ "nonce": wanted["nonce"], "assertion": assertion(&mut key, &signed) });
        let (status, refused) = page(&world, "/signed-word", &body);
        assert_eq!(status, 403, "{other}: {refused}");
        assert!(refused["message"].as_str().unwrap().contains("challenge is another one"), "{refused}");
    }
    assert!(waits(&world, first) && waits(&world, second));
    daemon.stop();
}

#[test]
fn a_page_makes_the_signed_text_of_what_it_shows() {
    let (world, daemon) = world_by(ONLY);
    let mut key = enrolled(&world, Kind::Es256);
    let hostile = "true # \u{1b}[2J \u{202e} </pre><script>alert(1)</script>";
    let approval = asks(&world, hostile);
    let shown = get(&world, &format!("/approval?id={approval}"));
    let view = shown["view"].as_str().unwrap();
    assert_eq!(shown["view_digest"], Digest::of(view.as_bytes()).to_string());
    // It is what a page draws, in which nothing hides.
    let fields: Value = serde_json::from_str(view).unwrap();
    assert_eq!(fields["blocks"][1]["text"], provost::base::visible(hostile));
    let facts = fields["blocks"][0]["facts"].as_array().unwrap();
    let digest = facts.iter().find(|it| it["name"] == "digest").unwrap();
    assert_eq!(digest["value"]["text"], shown["shown"]);
    let asked = challenge(
        &world,
        &json!({ "approval": approval, "grant": true, "note": "ok", "view": shown["view_digest"] }),
    );
    let transcript = json!(["provost-word-v1", get(&world, "/passkeys")["daemon"], asked["nonce"], {
        "approval": approval, "expires": fields["until"], "grant": true, "note": "ok", "scope": "once",
        "shown": shown["shown"], "view": shown["view_digest"],
    }]);
    // serde_json's maps are sorted here, as the canonical text is.
    assert_eq!(asked["transcript"], transcript.to_string());
    assert_eq!(
        unb64(asked["challenge"].as_str().unwrap()),
        Digest::of(transcript.to_string().as_bytes()).as_bytes()
    );
    let other =
        json!({ "approval": approval, "grant": true, "view": Digest::of(b"something else").to_string() });
    let (status, refused) = page(&world, "/word-challenge", &other);
    assert_eq!((status, &refused["error"]), (409, &json!("approval_changed")), "{refused}");
    assert_eq!(say(&world, &mut key, &asked).0, 200);
    daemon.stop();
}

#[test]
fn wrong_pages_touches_without_verification_copies_and_strange_keys_are_refused() {
    let (world, daemon) = world_by(ONLY);
    let mut key = enrolled(&world, Kind::Es256);
    let approval = asks(&world, "true");
    let refused = |key: &mut Authenticator, why: &str| {
        let (status, refused) = answer(&world, key, approval, true);
        assert_eq!((status, &refused["error"]), (403, &json!("passkey_refused")), "{why}: {refused}");
        assert!(refused["message"].as_str().unwrap().contains(why), "{why}: {refused}");
    };
    key.origin = "http://provost.localhost:8080".into();
    refused(&mut key, "origin");
    key.origin = "http://provost.localhost:4720".into();
    key.flags = UP;
    refused(&mut key, "has not verified its user");
    key.flags = UP | UV | BE;
    refused(&mut key, "backed up has changed");
    key.flags = UP | UV;
    let before = key.counter;
    key.counter = 0;
    refused(&mut key, "counter went back");
    key.counter = before;
    let mut made = Authenticator::new(Kind::Es256);
    refused(&mut made, "not in the list");
    made.id = key.id.clone();
    made.counter = key.counter;
    refused(&mut made, "signature");
    assert!(waits(&world, approval));
    let journal = get(&world, "/events?after=0&limit=1000").to_string();
    assert!(journal.contains("passkey.counter"), "the copy is on record");
    assert_eq!(answer(&world, &mut key, approval, true).0, 200);
    daemon.stop();
}

#[test]
fn a_revoked_passkey_signs_nothing_and_its_challenges_end() {
    let (world, daemon) = world_by(ONLY);
    let mut key = enrolled(&world, Kind::Es256);
    let approval = asks(&world, "true");
    let open = challenge(&world, &json!({ "approval": approval, "grant": true }));
    let revoked = at_the_terminal(&world, "passkey revoke phone --yes");
    assert!(String::from_utf8_lossy(&revoked.stdout).contains("counts no more"), "{revoked:?}");
    assert_eq!(say(&world, &mut key, &open).0, 410);
    let (status, refused) = answer(&world, &mut key, approval, true);
    assert_eq!(status, 403, "{refused}");
    assert!(waits(&world, approval));
    // Not even where the old list is put back.
    daemon.stop();
}

#[test]
fn a_restart_ends_challenges_and_keeps_passkeys_and_counters() {
    let (world, daemon) = world_by(ONLY);
    let mut key = enrolled(&world, Kind::Es256);
    let (approval, second) = (asks(&world, "true"), asks(&world, "true # 2"));
    assert_eq!(answer(&world, &mut key, second, true).0, 200);
    let open = challenge(&world, &json!({ "approval": approval, "grant": true }));
    daemon.stop();
    let daemon = world.start();
    let (status, gone) = say(&world, &mut key, &open);
    assert_eq!((status, &gone["error"]), (410, &json!("challenge_gone")), "{gone}");
    let used = key.counter;
    key.counter = 1;
    assert_eq!(answer(&world, &mut key, approval, true).0, 403, "the counter is kept");
    key.counter = used;
    assert_eq!(answer(&world, &mut key, approval, true).0, 200);
    daemon.stop();
}

#[test]
fn an_acknowledged_answer_survives_a_kill_with_its_signature() {
    let (world, mut daemon) = world_by(ONLY);
    let mut key = enrolled(&world, Kind::Es256);
    let approval = asks(&world, "sleep 60");
    let (status, _) = answer(&world, &mut key, approval, true);
    assert_eq!(status, 200);
    daemon.kill();
    let daemon = world.start();
    assert!(!waits(&world, approval));
    assert!(answered(&world, approval).to_string().contains(&b64(&key.id)));
    daemon.stop();
    let verified = world.command(&["journal", "verify", "--json"]).output().unwrap();
    let verified: Value = serde_json::from_slice(&verified.stdout).unwrap();
    assert_eq!((&verified["ok"], &verified["signed"]["checked"]), (&json!(true), &json!(1)), "{verified}");
}

#[test]
fn a_stranger_checks_each_signature_with_other_code() {
    let (world, daemon) = world_by(ONLY);
    let mut keys: Vec<Authenticator> = Vec::new();
    for (kind, name) in KINDS.into_iter().zip(["a", "b", "c"]) {
        let mut key = Authenticator::new(kind);
        let (status, said) = crate::support::passkeys::enrol(&world, &mut key, name, keys.last_mut());
        assert_eq!(status, 200, "{said}");
        let approval = asks(&world, &format!("true # {name}"));
        assert_eq!(answer(&world, &mut key, approval, true).0, 200);
        keys.push(key);
    }
    let exported = world.command(&["journal", "export"]).output().unwrap().stdout;
    let exported = String::from_utf8(exported).unwrap();
    let file = world.path("journal.jsonl");
    let script = crate::support::source::project_root().join("scripts/verify-signed-answers");
    let check = |journal: &str| {
        std::fs::write(&file, journal).unwrap();
        Command::new("python3").arg(&script).arg(&file).output().unwrap()
    };
    let fine = check(&exported);
    let said = String::from_utf8_lossy(&fine.stdout).into_owned();
    assert!(
        fine.status.success() && said.contains("3 signatures of answers hold, 0 of other verbs, and 2 for"),
        "{fine:?}"
    );
    assert!(
        said.contains("passkey b: ") && said.contains("vouched for by a") && said.contains("no anchor"),
        "{said}"
    );
    let last: Value = serde_json::from_str(exported.lines().last().unwrap()).unwrap();
    let head = format!("provost-anchor:1:{}:{}", last["seq"], last["mac"].as_str().unwrap());
    let anchored =
        |anchor: &str| Command::new("python3").arg(&script).arg(&file).arg(anchor).output().unwrap();
    let _written = check(&exported);
    let found = anchored(&head);
    assert!(found.status.success(), "{found:?}");
    assert!(!anchored(&head.replace(':', ":1")).status.success());
    // An answer that was taken out leaves a gap, also where the end is anchored.
    let without: Vec<&str> =
        exported.lines().filter(|it| !it.contains("\"kind\":\"approval_answered\"")).collect();
    assert!(without.len() < exported.lines().count());
    let _written = check(&without.join("\n"));
    let found = anchored(&head);
    assert_eq!(found.status.code(), Some(1), "{found:?}");
    assert!(String::from_utf8_lossy(&found.stderr).contains("are missing"), "{found:?}");
    let _written = check(&exported);
    // The same journal with another verdict, another number, and a signature of another key, each with digests that fit. Assertions
    // that Python leaves out on request are no checks.
    let hashed = |text: &str| {
        let mut event: Value = serde_json::from_str(text).unwrap();
        let from = text.find("\"body\":").unwrap() + 7;
        let to = text.rfind(",\"hash\"").unwrap();
        event["hash"] = json!(Digest::of(&text.as_bytes()[from..to]).to_string());
        format!("{}{}", &text[..to], format_args!(",\"hash\":{},\"mac\":{}}}", event["hash"], event["mac"]))
    };
    for (from, to) in [
        ("\"verdict\":\"granted\"", "\"verdict\":\"denied\""),
        ("\\\"grant\\\":true", "\\\"grant\\\":false"),
        ("\"signature\":\"M", "\"signature\":\"N"),
        ("\"kind\":\"approval_asked\"", "\"kind\":\"approval_hidden\""),
        ("\"source\":\"vouched\"},\"vouched\":", "\"source\":\"vouched\"},\"other\":"),
    ] {
        let changed: Vec<String> = exported
            .replacen(from, to, 1)
            .lines()
            .map(|it| if it.contains("\"body\":null") { it.to_owned() } else { hashed(it) })
            .collect();
        let changed = changed.join("\n");
        assert!(exported.contains(from), "{from}");
        for optimised in ["", "1"] {
            std::fs::write(&file, &changed).unwrap();
            let mut found = Command::new("python3");
            let found = found.env("PYTHONOPTIMIZE", optimised).arg(&script).arg(&file).output().unwrap();
            assert_eq!(found.status.code(), Some(1), "{from}: {found:?}");
        }
    }
    // What was pruned is skipped and counted.
    let pruned = exported.lines().map(|line| {
        let from = line.find("\"body\":").unwrap() + 7;
        let to = line.rfind(",\"hash\"").unwrap();
        let is_key = line.contains("\"kind\":\"passkey_added\"");
        if is_key { format!("{}null{}", &line[..from], &line[to..]) } else { line.to_owned() }
    });
    let found = check(&pruned.collect::<Vec<_>>().join("\n"));
    assert_eq!(found.status.code(), Some(3), "{found:?}");
    assert!(String::from_utf8_lossy(&found.stdout).contains("3 signatures cannot be checked"), "{found:?}");
    daemon.stop();
}

#[test]
fn challenges_and_signatures_of_one_process_are_bounded() {
    let (world, daemon) = world_by(ONLY);
    let mut key = enrolled(&world, Kind::Es256);
    let approval = asks(&world, "true");
    let mut last = (0, Value::Null);
    for _ in 0..40 {
        last = page(&world, "/word-challenge", &json!({ "approval": approval, "grant": true }));
    }
    assert_eq!((last.0, &last.1["error"]), (429, &json!("too_often")), "{}", last.1);
    for _ in 0..12 {
        last = page(
            &world,
            "/signed-word",
            &json!({ "nonce": "AA", "assertion": assertion(&mut key, &json!({ "challenge": "AA" })) }),
        );
    }
    assert_eq!((last.0, &last.1["error"]), (429, &json!("too_often")), "{}", last.1);
    daemon.stop();
}

#[test]
fn bad_requests_are_told_what_is_wrong_and_change_nothing() {
    let (world, daemon) = world_by(ONLY);
    let approval = asks(&world, "true");
    let long = "x".repeat(3_000);
    for (body, status) in [
        (json!({}), 400),
        (json!({ "approval": approval }), 400),
        (json!({ "approval": approval, "grant": true, "revoke": "x" }), 400),
        (json!({ "revoke": "unknown" }), 400),
        (json!({ "approval": 999, "grant": true }), 404),
        (json!({ "approval": approval, "grant": true, "note": long }), 413),
        (json!({ "approval": approval, "grant": true, "view": "no digest" }), 409),
    ] {
        let (found, answer) = page(&world, "/word-challenge", &body);
        assert_eq!(found, status, "{body}: {answer}");
        assert!(answer["message"].as_str().is_some_and(|it| !it.is_empty()), "{answer}");
    }
    let asked = challenge(&world, &json!({ "approval": approval, "grant": true }));
    for member in ["client_data", "authenticator_data", "signature"] {
        let mut key = Authenticator::new(Kind::Es256);
        let mut bad = assertion(&mut key, &asked);
        bad[member] = json!("not base64!");
        let (status, answer) =
            page(&world, "/signed-word", &json!({ "nonce": asked["nonce"], "assertion": bad }));
        assert!(status == 400 || status == 410, "{member}: {answer}");
    }
    assert!(waits(&world, approval));
    daemon.stop();
}

/// A process can write this answer if it has the store and the journal's key, and not the passkey.
#[test]
fn an_answer_that_somebody_has_written_into_the_store_is_found() {
    let (world, daemon) = world_by(ONLY);
    let mut key = enrolled(&world, Kind::Es256);
    let first = asks(&world, "true");
    assert_eq!(answer(&world, &mut key, first, true).0, 200);
    let approval = asks(&world, "true # 2");
    let shown = get(&world, "/approvals")[0].clone();
    let id = get(&world, "/passkeys")["daemon"].as_str().unwrap().to_owned();
    daemon.stop();
    let verify = || world.command(&["journal", "verify"]).output().unwrap();
    let fine = verify();
    assert!(
        String::from_utf8_lossy(&fine.stdout).contains("1 signatures of passkeys checked again"),
        "{fine:?}"
    );

    let digest = Digest::try_from(shown["digest"].as_str().unwrap().to_owned()).unwrap();
    let word = AnswerWord {
        approval,
        shown: digest,
        view: Digest::of(b"whatever"),
        expires: shown["expires_at"].as_str().unwrap().to_owned(),
        grant: false,
        note: String::new(),
        scope: "once".into(),
    };
    let transcript = Transcript::new(&id, [5; 32], Word::Answer(word));
    let mut made = Authenticator::new(Kind::Es256);
    made.counter = key.counter;
    let (client, data, signature) = made.sign(transcript.digest().as_bytes());
    let signed = SignedWord {
        credential: b64(&key.id).into(),
        transcript: transcript.as_str().into(),
        digest: transcript.digest(),
        authenticator_data: b64(&data).into(),
        client_data: b64(&client).into(),
        signature: b64(&signature).into(),
        counter: made.counter,
    };
    let mut store = open(&world.state_dir(), Options::default()).unwrap();
    let state = store.load(settings()).unwrap().state;
    let mut core = Core::new(state, Box::new(ByWord { strict: false }));
    let who = caller("owner", Door::Own, &[Scope::Read, Scope::Approve, Scope::Operate], Proof::Passkey);
    let verb = AnswerApproval {
        approval: ApprovalId(approval),
        verdict: Verdict::Denied,
        note: None,
        shown: Some(digest),
        signed: Some(Box::new(signed)),
    };
    let now = Timestamp(i64::try_from(now_s()).unwrap() * 1_000);
    let call = Call { now, wall: now, who: &who, facts: Facts::default(), past: None, earlier: Vec::new() };
    let mut out = Outbox::default();
    core.apply(call, verb.into(), &mut out).unwrap();
    store.commit(&out).unwrap();
    store.close().unwrap();
    drop(store);
    let found = verify();
    let text = String::from_utf8_lossy(&found.stderr).into_owned();
    assert!(!found.status.success() && text.contains("the signature is not the passkey's"), "{found:?}");
}

#[test]
fn the_keys_of_passkeys_outlive_pruning() {
    let (world, daemon) = world_by(ONLY);
    let mut key = enrolled(&world, Kind::Es256);
    let approval = asks(&world, "true");
    assert_eq!(answer(&world, &mut key, approval, true).0, 200);
    let seq = answered(&world, approval)["seq"].as_u64().unwrap();
    daemon.stop();
    let mut store = open(&world.state_dir(), Options::default()).unwrap();
    let _state = store.load(settings()).unwrap();
    let later = Timestamp(i64::try_from(now_s() + 1_000).unwrap() * 1_000);
    let second = std::time::Duration::from_secs(1);
    let keep = Retention { tasks: second, tasks_most: u32::MAX, events: second };
    store.prune(later, &keep, u32::try_from(seq - 1).unwrap()).unwrap();
    store.close().unwrap();
    drop(store);
    let verify = || {
        let it = world.command(&["journal", "verify"]).output().unwrap();
        (it.status.code(), String::from_utf8_lossy(&[it.stdout, it.stderr].concat()).into_owned())
    };
    let (code, said) = verify();
    assert!(code == Some(0) && said.contains("1 signatures of passkeys checked again"), "{said}");
    // No version prunes it, so another program has.
    let db = rusqlite::Connection::open(world.state_dir().join("provost.db")).unwrap();
    assert_eq!(db.execute("UPDATE event SET body = NULL WHERE kind = 'passkey_added'", []).unwrap(), 1);
    drop(db);
    let (code, said) = verify();
    assert!(code != Some(0) && said.contains("the body was taken away"), "{said}");
}
