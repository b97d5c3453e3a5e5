//! Passkeys over several machines: enrolled at one, good at all; revoked or reset at one, good at none. What is carried out for a question is
//! carried out on a signature that its own machine has checked.

use std::sync::Arc;
use std::time::Duration;

use provost::base::{ApprovalId, Digest};
use provost::domain::{Change, EventKind, SignedWord, Task, TaskState, Verdict};
use serde_json::json;

use crate::support::authenticator::{Authenticator, Kind, ORIGIN};
use crate::support::forger::{Forger, own};
use crate::support::machines::Machines;
use crate::support::passkeys::{
    answer, asks, assertion, challenge, enrol, enrolled, get, page, rules_by, say, waits,
};
use crate::support::terminal::at_the_terminal;
use crate::support::waits::{stays, until_some, within};
use crate::support::{UP, World};

fn until(what: &str, condition: impl FnMut() -> bool) {
    assert!(within(Duration::from_secs(60), condition), "{what}: not within a minute");
}

/// Machines whose rule takes the answers of passkeys alone.
fn machines(count: usize) -> Machines {
    let machines = Machines::joined_with(count, &format!("[passkeys]\norigins = [\"{ORIGIN}\"]\n"));
    machines.all.iter().for_each(|it| it.rule(&rules_by("\"passkey\"")));
    machines
}

fn names(world: &World) -> Vec<String> {
    let listed = get(world, "/passkeys");
    let counts = |it: &&serde_json::Value| it["revoked_at"].is_null();
    let name = |it: &serde_json::Value| it["name"].as_str().unwrap().to_owned();
    listed["passkeys"].as_array().unwrap().iter().filter(counts).map(name).collect()
}

fn finished(machines: &Machines) -> String {
    machines.sql(
        "select coalesce(string_agg(status, ' ' order by finished_seq), '') from provost.task where not live",
    )
}

#[test]
fn a_passkey_of_one_machine_answers_at_another_what_was_asked_at_the_first() {
    let machines = machines(2);
    let _daemons = machines.start();
    let (a, b) = (&machines.all[0], &machines.all[1]);
    let mut key = enrolled(a, Kind::Es256);
    until("it is known there", || names(b) == ["phone"]);
    let approval = asks(a, "pwd > where.txt");
    until("it is seen there", || waits(b, approval));
    let old = key.counter;
    let (status, done) = answer(b, &mut key, approval, true);
    assert_eq!(status, 200, "{done}");
    until("the work is done where it was asked", || a.repo().join("where.txt").exists());
    assert!(!b.repo().join("where.txt").exists());
    until("it is done", || finished(&machines) == "completed");

    // The counter is one: what a copy of the key signs is refused on the other machine.
    let now = std::mem::replace(&mut key.counter, old);
    let approval = asks(b, "true");
    until("it is seen here", || waits(a, approval));
    let (status, said) = answer(a, &mut key, approval, true);
    assert!(status == 403 && said.to_string().contains("counter"), "{said}");
    key.counter = now;
    // A further one needs the signature of a known one, on each machine.
    let mut second = Authenticator::new(Kind::Ed25519);
    let (status, said) = enrol(b, &mut second, "key", None);
    assert_ne!(status, 200, "{said}");
    let (status, said) = enrol(b, &mut second, "key", Some(&mut key));
    assert_eq!(status, 200, "{said}");
    until("it is known here", || names(a) == ["phone", "key"] || names(a) == ["key", "phone"]);
    let (status, said) = answer(a, &mut second, approval, false);
    assert_eq!(status, 200, "{said}");
    machines.check();
}

#[test]
fn a_passkey_that_is_revoked_at_one_machine_is_good_at_none_from_then_on() {
    let machines = machines(2);
    let _daemons = machines.start();
    let (a, b) = (&machines.all[0], &machines.all[1]);
    let mut first = enrolled(a, Kind::Es256);
    let mut second = Authenticator::new(Kind::Es256);
    assert_eq!(enrol(a, &mut second, "key", Some(&mut first)).0, 200);
    let approval = asks(a, "true");
    until("both are known there", || names(b).len() == 2 && waits(b, approval));
    // Signed before, handed in at once after: each turn at the store begins with what the other has done.
    let asked = challenge(b, &json!({ "approval": approval, "grant": true }));
    let signed = assertion(&mut second, &asked);
    let revoked = at_the_terminal(a, "passkey revoke key");
    assert!(revoked.status.success(), "{revoked:?}");
    let (status, said) = page(b, "/signed-word", &json!({ "nonce": asked["nonce"], "assertion": signed }));
    assert!(status == 403 || status == 410, "{status}: {said}");
    assert!(waits(b, approval));
    let (status, said) = answer(b, &mut first, approval, false);
    assert_eq!(status, 200, "{said}");

    // All are given up at one machine, and none counts at the other.
    let approval = asks(b, "true");
    let reset = at_the_terminal(a, "passkey reset --yes");
    let text = String::from_utf8_lossy(&reset.stdout).into_owned();
    until("none counts there", || !get(b, "/passkeys")["waits_until"].is_null());
    assert!(names(b).is_empty(), "{text}");
    let asked = challenge(b, &json!({ "approval": approval, "grant": true }));
    let (status, said) = say(b, &mut first, &asked);
    assert_eq!(status, 403, "{said}");
    // Nor does a new one, for a day, on any host.
    let mut third = Authenticator::new(Kind::Es256);
    let (status, said) = enrol(b, &mut third, "new", None);
    assert!(status == 200 || status == 403, "{said}");
    let (status, said) = answer(b, &mut third, approval, true);
    assert_ne!(status, 200, "{said}");
    machines.check();
}

#[test]
fn an_answer_that_no_passkey_has_signed_is_carried_out_by_no_other_machine() {
    let machines = machines(2);
    let mut daemons = machines.start();
    let (a, b) = (&machines.all[0], &machines.all[1]);
    let _key = enrolled(a, Kind::Es256);
    let approval = asks(a, "touch done.txt");
    until("it is seen there", || waits(b, approval));
    daemons[1].kill();
    until("it is buried", || machines.sql("select count(*) from provost.host where state = 'down'") == "1");
    let (of_b, forger) = (own(b), Forger::with_key_of(&machines, b));
    let body = machines.sql("select body from provost.task where live");
    let task: Task = serde_json::from_str(&body).unwrap();
    let TaskState::Awaiting { .. } = task.state else { panic!("{body}") };
    let began = task.updated_at;
    let queued = Task { state: TaskState::Queued { until: began }, ..task };
    let answered = |proof: &str, signed: Option<Box<SignedWord>>| EventKind::ApprovalAnswered {
        approval: ApprovalId(approval),
        verdict: Verdict::Granted,
        proof: proof.into(),
        signed,
    };
    let text = machines.sql("select body::json->'kind'->'passkey_added'->'passkey'->>'id' from provost.event where kind = 'passkey_added'");
    let word = SignedWord {
        credential: text.as_str().into(),
        transcript: "[]".into(),
        digest: Digest::of(b""),
        authenticator_data: "AAAA".into(),
        client_data: "AAAA".into(),
        signature: "AAAA".into(),
        counter: 9,
    };
    let attacks = [
        ("cannot be answered by the proof", vec![answered("weak-human", None)]),
        ("has no signature", vec![answered("passkey", None)]),
        ("transcript", vec![answered("passkey", Some(Box::new(word)))]),
        ("continues although its approval has no answer", vec![crate::support::forger::recorded()]),
    ];
    for (why, events) in attacks {
        let changes =
            vec![Change::PutTask(Arc::new(queued.clone())), Change::DropApproval(ApprovalId(approval))];
        // Its own signature is good: it says so as itself.
        let before =
            forger.write(of_b.host, events, changes, |text| Some(of_b.pair.sign(text).as_ref().to_vec()));
        let n = before.n + 1;
        let line = until_some("it is refused", || {
            a.log().lines().find(|it| it.contains(&format!("broken at entry {n}"))).map(str::to_owned)
        });
        assert!(line.contains(why) && line.contains(&of_b.host.to_string()[..8]), "{why}: {line}");
        stays("nothing is done", Duration::from_secs(1), || !a.repo().join("done.txt").exists());
        // Nor after a restart: the rows are the others' to write, and this machine remembers.
        daemons[0].kill();
        let out = a.command(UP).output().unwrap();
        let text = String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned();
        assert!(!out.status.success() && text.contains(&format!("broken at entry {n}")), "{text}");
        forger.take_out(&before);
        crate::support::forger::forget(a);
        daemons[0] = a.start();
    }
    assert!(waits(a, approval) && !a.repo().join("done.txt").exists());
}

#[test]
fn an_answer_that_came_while_the_asked_machine_was_down_is_checked_before_its_work_begins() {
    let machines = machines(2);
    let mut daemons = machines.start();
    let (a, b) = (&machines.all[0], &machines.all[1]);
    let mut key = enrolled(a, Kind::Es256);
    until("it is known there", || names(b) == ["phone"]);

    // One that its passkey has signed is carried out when the machine is back.
    let approval = asks(a, "touch good.txt");
    until("it is seen there", || waits(b, approval));
    daemons.remove(0).stop();
    let (status, said) = answer(b, &mut key, approval, true);
    assert_eq!(status, 200, "{said}");
    daemons.insert(0, a.start());
    until("the work is done where it was asked", || a.repo().join("good.txt").exists());
    until("it is done", || finished(&machines) == "completed");

    // The other machine has turned: it says so without a signature, and writes the rows of an answer.
    let approval = asks(a, "touch bad.txt");
    until("it is seen there", || waits(b, approval));
    daemons.remove(1).stop();
    daemons.remove(0).stop();
    let (of_a, of_b, forger) = (own(a), own(b), Forger::with_key_of(&machines, b));
    let body = machines.sql("select body from provost.task where live");
    let task: Task = serde_json::from_str(&body).unwrap();
    let id = task.id().clone();
    let queued = Task { state: TaskState::Queued { until: task.updated_at }, ..task.clone() };
    let parked = machines.sql(&format!("select body from provost.approval where id = {approval}"));
    let quoted = |text: &str| text.replace('\'', "''");
    let to = |body: &str| format!("update provost.task set body = '{}' where live;", quoted(body));
    let effect = format!("{{\"spawn_worker\":{{\"task\":\"{id}\"}}}}");
    let granted = format!(
        "{} delete from provost.approval where id = {approval};
         insert into provost.effect (repo, id, body, started, host, inc)
             select id, 999, '{effect}', false, '{}', 1 from provost.repo;",
        to(&serde_json::to_string(&queued).unwrap()),
        of_a.host
    );
    let back = format!(
        "{} insert into provost.approval (repo, id, body) select id, {approval}, '{}' from provost.repo;
         delete from provost.effect where id = 999;",
        to(&body),
        quoted(&parked)
    );
    let answered = |proof: &str| EventKind::ApprovalAnswered {
        approval: ApprovalId(approval),
        verdict: Verdict::Granted,
        proof: proof.into(),
        signed: None,
    };
    for (why, event) in [
        ("cannot be answered by the proof `weak-human`", answered("weak-human")),
        ("has no signature", answered("passkey")),
        ("would begin here although its approval has no answer", crate::support::forger::recorded()),
    ] {
        let changes = vec![Change::DropApproval(ApprovalId(approval))];
        let before = forger
            .write(of_b.host, vec![event], changes, |text| Some(of_b.pair.sign(text).as_ref().to_vec()));
        machines.sql(&granted);
        for _ in 0..2 {
            let out = a.command(UP).output().unwrap();
            let text = String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned();
            let is_refused = text.contains("broken at entry") && text.contains(why);
            assert!(!out.status.success() && is_refused, "{why}: {text}");
        }
        assert!(!a.repo().join("bad.txt").exists());
        forger.take_out(&before);
        machines.sql(&back);
        crate::support::forger::forget(a);
    }
    // A login without any key adds the answer at a number that no event has.
    let mut body: serde_json::Value = serde_json::from_str(
        &machines
            .sql("select body from provost.event where kind = 'approval_asked' order by seq desc limit 1"),
    )
    .unwrap();
    body["kind"] = serde_json::to_value(answered("passkey")).unwrap();
    body["host"] = of_b.host.to_string().into();
    let body = quoted(&body.to_string());
    machines.sql(&format!(
        "insert into provost.event (repo, seq, at, kind, actor, body, hash, mac)
         select id, 0, 0, 'approval_answered', 'x', '{body}', sha256('{body}'::text::bytea), event_mac from provost.repo; {granted}"
    ));
    let out = a.command(UP).output().unwrap();
    let text = String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned();
    assert!(!out.status.success() && text.contains("the row 0 of the table `provost.event`"), "{text}");
    assert!(!a.repo().join("bad.txt").exists());
    machines.sql(&format!("delete from provost.event where seq = 0; {back}"));

    let _daemons = machines.start();
    assert!(waits(a, approval) && !a.repo().join("bad.txt").exists());
    let (status, said) = answer(b, &mut key, approval, true);
    assert_eq!(status, 200, "{said}");
    until("the work is done where it was asked", || a.repo().join("bad.txt").exists());
    machines.check();
}
