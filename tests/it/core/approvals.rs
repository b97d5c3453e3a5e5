//! Questions that wait for someone's word, as scripts over the core.

use provost::base::limits::{PARKED_MAX, PARKED_OF_ONE_MAX};
use provost::base::{ApprovalId, Digest, Json, Ttl};
use provost::domain::command::{AnswerApproval, AskPermission, Status};
use provost::domain::{
    Answer, Approver, Command, Decision, EventKind, Facts, Failure, Judge, MailKind, Network, Principal,
    Refusal, Reply, TaskState, Terms, Tier, Verdict,
};
use provost_test_equipment::callers::from_tree;

use crate::support::script::{
    ByWord, DEPTH, FEW, RATED, Script, approver, client, last_words, named, person, rule,
};
use crate::support::storm::settings;

fn failed_because(s: &Script, said: Result<Answer<Reply>, Refusal>) -> String {
    match said.unwrap() {
        Answer::Done(Reply::Answered(it)) => {
            assert!(s.spawned().is_empty());
            it.failed.expect("the grant fails").into()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn granted_delegation_takes_the_same_path_as_an_allowed_one() {
    for worker in ["cli", "wes"] {
        let (mut asked, mut allowed) = (Script::new(), Script::new());
        let (task, approval) = asked.ask(&client("ada"), "ask", worker);
        assert_eq!(asked.state(&task), TaskState::Awaiting { approval });
        assert!(asked.spawned().is_empty() && asked.receive_all(&client("wes")).is_empty());
        asked.answer(&person("owner"), approval, Verdict::Granted).unwrap();
        let of_grant: Vec<_> = asked.out.effects.iter().map(|(_, it)| it.clone()).collect();
        allowed.delegate(&client("ada"), "do", worker);
        let of_allowed: Vec<_> = allowed.out.effects.iter().map(|(_, it)| it.clone()).collect();
        assert_eq!(of_grant, of_allowed);
        assert_eq!(asked.state(&task), allowed.state(&task));
        assert_eq!(asked.receive_all(&client("wes")).len(), allowed.receive_all(&client("wes")).len());
        assert_eq!(asked.task(&task).approval, Some(approval));
    }
}

#[test]
fn nobody_approves_their_own_request() {
    let mut s = Script::new();
    let (_, of_boss) = s.ask(&approver("boss"), "ask", "cli");
    assert_eq!(s.answer(&approver("boss"), of_boss, Verdict::Granted), Err(Refusal::ApprovalOwn));
    s.answer(&person("owner"), of_boss, Verdict::Granted).unwrap();
}

#[test]
fn whoever_works_for_the_asker_does_not_answer_for_them() {
    let mut s = Script::new();
    let helping = s.delegate(&client("ada"), "do", "boss");
    let (_, approval) = s.ask(&client("ada"), "ask", "cli");
    assert_eq!(s.answer(&approver("boss"), approval, Verdict::Granted), Err(Refusal::ApprovalOwn));
    s.cancel(&client("ada"), &helping).unwrap();
    s.answer(&approver("boss"), approval, Verdict::Granted).unwrap();
}

#[test]
fn a_person_answers_for_what_they_delegated_by_hand() {
    let mut s = Script::new();
    let (_, approval) = s.ask(&person("owner"), "ask-human", "cli");
    s.answer(&person("owner"), approval, Verdict::Granted).unwrap();
    assert_eq!(s.spawned().len(), 1);
}

#[test]
fn only_those_a_rule_names_answer_and_only_with_proof() {
    let mut s = Script::new();
    let (_, approval) = s.ask(&client("ada"), "ask", "cli");
    let shared = provost_test_equipment::callers::caller(
        "boss",
        provost::domain::Door::Devit,
        &[provost::domain::Scope::Approve],
        provost::domain::Proof::SharedKey,
    );
    assert!(matches!(s.answer(&client("bob"), approval, Verdict::Granted), Err(Refusal::OutOfScope { .. })));
    let not_yours = |said| matches!(said, Err(Refusal::ApprovalNotYours { .. }));
    assert!(not_yours(s.answer(&approver("bob"), approval, Verdict::Granted)));
    assert!(
        not_yours(s.answer(&shared, approval, Verdict::Granted)),
        "the secret of all is no approver's key"
    );
    let (_, of_person) = s.ask(&client("ada"), "ask-human", "cli");
    assert!(not_yours(s.answer(&approver("boss"), of_person, Verdict::Granted)));
    s.answer(&approver("boss"), approval, Verdict::Granted).unwrap();
}

#[test]
fn the_first_answer_wins() {
    for verdict in [Verdict::Granted, Verdict::Denied] {
        let mut s = Script::new();
        let (_, approval) = s.ask(&client("ada"), "ask", "cli");
        s.answer(&person("owner"), approval, verdict).unwrap();
        for who in [person("owner"), approver("boss")] {
            let said = s.answer(&who, approval, Verdict::Granted);
            assert_eq!(said, Err(Refusal::ApprovalNotFound(approval)));
        }
    }
    assert!(Script::new().answer(&person("owner"), ApprovalId(9), Verdict::Granted).is_err());
}

#[test]
fn a_denial_ends_the_task_with_the_approvers_words() {
    let mut s = Script::new();
    let (task, approval) = s.ask(&client("ada"), "ask", "cli");
    let note = Some("not on a Friday".into());
    s.say(
        &approver("boss"),
        AnswerApproval { approval, verdict: Verdict::Denied, note, shown: None, signed: None },
    )
    .unwrap();
    assert!(s.spawned().is_empty());
    let mail = s.receive_all(&client("ada"));
    assert_eq!(last_words(&mail), [(task.clone(), "failed".to_owned())]);
    let MailKind::Word { failure: Some(Failure::ApprovalDenied { approver, note, .. }), report, .. } =
        &mail[0].kind
    else {
        panic!("{mail:?}")
    };
    assert_eq!((approver, note.as_deref()), (&named("boss"), Some("not on a Friday")));
    assert!(report.summary.contains("not on a Friday"));
}

#[test]
fn an_expired_question_is_a_denial_and_its_asker_is_told() {
    let mut s = Script::new();
    let (task, approval) = s.ask(&client("ada"), "ask", "cli");
    s.pass(Ttl::minutes(4));
    assert_eq!(s.state(&task).status(), Status::Pending);
    s.now = s.now.after(Ttl::minutes(1));
    let late = s.answer(&person("owner"), approval, Verdict::Granted);
    assert_eq!(late, Err(Refusal::ApprovalNotFound(approval)), "also before anybody has looked at the clock");
    s.pass(Ttl::seconds_clamped(1));
    assert!(matches!(s.task(&task).failure, Some(Failure::ApprovalTimeout { .. })));
    assert!(s.events().iter().any(|it| matches!(it, EventKind::ApprovalExpired { .. })));
    assert_eq!(last_words(&s.receive_all(&client("ada"))), [(task, "failed".to_owned())]);
    assert!(s.receive_all(&client("boss")).is_empty(), "the question is withdrawn");
}

#[test]
fn an_answer_to_something_else_is_refused() {
    let mut s = Script::new();
    let (_, approval) = s.ask(&client("ada"), "ask", "cli");
    let shown = s.core.state().approvals.get(approval).unwrap().shown;
    let answer = |shown| AnswerApproval {
        approval,
        verdict: Verdict::Granted,
        note: None,
        shown: Some(shown),
        signed: None,
    };
    let said = s.say(&person("owner"), answer(Digest::of(b"another request")));
    assert_eq!(said, Err(Refusal::ApprovalChanged));
    s.say(&person("owner"), answer(shown)).unwrap();
}

#[test]
fn the_question_goes_to_the_approver_with_all_of_it() {
    let mut s = Script::new();
    let (task, approval) = s.ask(&client("ada"), "ask", "cli");
    let mail = s.receive(&client("boss")).unwrap();
    let MailKind::Approval { approval: asked, task: about, details, shown, .. } = &mail.kind else {
        panic!("{mail:?}")
    };
    assert_eq!((*asked, about.as_ref()), (approval, Some(&task)));
    assert_eq!(*details, s.task(&task).order.payload);
    assert_eq!(*shown, s.core.state().approvals.get(approval).unwrap().shown);
    s.ask(&client("ada"), "ask-human", "cli");
    assert!(s.receive(&client("boss")).is_none(), "a person's question is no agent's mail");
}

// Between the question and the answer.

#[test]
fn rules_made_stricter_between_ask_and_grant_refuse_the_grant() {
    let mut s = Script::new();
    let (task, approval) = s.ask(&client("ada"), "ask", "cli");
    s.core.set_judge(Box::new(ByWord { strict: true }));
    let said = s.answer(&person("owner"), approval, Verdict::Granted);
    assert_eq!(failed_because(&s, said), "not any more");
    assert!(s.events().iter().any(|it| matches!(it, EventKind::GrantFailed { .. })));
    assert!(
        matches!(&s.task(&task).failure, Some(Failure::PolicyDenied { rule: it, .. }) if *it == rule("strict"))
    );
    assert_eq!(last_words(&s.receive_all(&client("ada"))).len(), 1);
}

/// Asks a person, and allows little.
struct PeopleOnly;

impl Judge for PeopleOnly {
    fn decide(&self, _: &Principal, command: &Command, _: &Facts) -> Decision {
        let terms = Terms { timeout: Some(Ttl::minutes(1)), tier_min: Some(Tier::Ns), ..Terms::default() };
        if !matches!(command, Command::Delegate(_)) {
            return Decision::Allow { rule: rule("any"), terms };
        }
        let (wait, by) = (Ttl::minutes(1), vec![Approver::Human]);
        Decision::NeedApproval { rule: rule("people"), reason: "look".into(), terms, wait, again: 0, by }
    }

    fn version(&self) -> Digest {
        Digest::of(b"people only")
    }
}

#[test]
fn rules_that_name_other_approvers_now_refuse_the_old_ones() {
    let mut s = Script::new();
    let (_, by_agent) = s.ask(&client("ada"), "ask", "cli");
    let (task, by_person) = s.ask(&client("ada"), "ask", "cli");
    s.core.set_judge(Box::new(PeopleOnly));
    let said = s.answer(&approver("boss"), by_agent, Verdict::Granted);
    assert!(failed_because(&s, said).contains("people"));
    s.answer(&person("owner"), by_person, Verdict::Granted).unwrap();
    let terms = &s.task(&task).terms;
    assert_eq!(
        (terms.timeout, terms.tier_min),
        (Some(Ttl::minutes(1)), Some(Tier::Ns)),
        "the stricter limits"
    );
}

#[test]
fn a_worker_that_became_another_one_is_not_what_was_approved() {
    let mut s = Script::new();
    let mut changed = settings();
    changed.workers.get_mut(&named("cli")).unwrap().network = Network::Hosts(vec!["example.org:443".into()]);
    let mut broken = settings();
    broken.workers.get_mut(&named("cli")).unwrap().broken = Some("no binary".into());
    let mut gone = settings();
    gone.workers.clear();
    for (settings, why) in [(changed, "approved request"), (broken, "no binary"), (gone, "approved request")]
    {
        let (_, approval) = s.ask(&client("ada"), "ask", "cli");
        s.core.set_settings(settings);
        let said = s.answer(&person("owner"), approval, Verdict::Granted);
        assert!(failed_because(&s, said).contains(why));
        s.core.set_settings(crate::support::storm::settings());
    }
}

// Limits.

#[test]
fn asking_is_limited_like_doing() {
    let mut s = Script::new();
    for _ in 0..RATED {
        s.ask(&client("ada"), "ask-rated", "cli");
    }
    let order = s.order("ask-rated", "cli");
    assert!(matches!(s.say(&client("ada"), order), Ok(Answer::Denied(_))));
    s.ask(&client("bob"), "ask-rated", "cli");
}

#[test]
fn more_questions_than_people_can_read_are_refused() {
    let mut s = Script::new();
    for nth in 0..PARKED_MAX {
        s.ask(&approver(&format!("keyed{}", nth / PARKED_OF_ONE_MAX)), "ask", "cli");
    }
    let order = s.order("ask", "cli");
    assert!(matches!(s.say(&approver("late"), order), Err(Refusal::Busy { .. })));
}

#[test]
fn nobody_fills_the_queue_of_questions_for_others_under_however_many_names() {
    let mut s = Script::new();
    for nth in 0..PARKED_OF_ONE_MAX {
        s.ask(&one_of_many(&format!("name{nth}")), "ask", "cli");
    }
    for name in ["ada", "another"] {
        let order = s.order("ask", "cli");
        assert!(matches!(s.say(&one_of_many(name), order), Err(Refusal::Quota { .. })), "{name}");
    }
    // Another tree of processes has a share of its own.
    s.ask(&client("ada"), "ask", "cli");
    // Who has a key is asked about, and has a share of its own.
    s.ask(&approver("carol"), "ask", "cli");
}

/// One of the names of one tree of processes.
fn one_of_many(name: &str) -> Principal {
    from_tree(client(name), 1)
}

#[test]
fn limits_of_rules_are_those_of_a_tree_of_processes_under_all_its_names() {
    let mut s = Script::new();
    for nth in 0..RATED {
        s.delegate(&one_of_many(&format!("rated{nth}")), "rated", "cli");
    }
    let order = s.order("rated", "cli");
    assert!(matches!(s.say(&one_of_many("fresh"), order), Ok(Answer::Denied(_))));
    s.delegate(&client("ada"), "rated", "cli");
    for nth in 0..FEW {
        s.delegate(&one_of_many(&format!("few{nth}")), "few", "cli");
    }
    let order = s.order("few", "cli");
    assert!(matches!(s.say(&one_of_many("fresh"), order), Ok(Answer::Denied(_))));
    s.delegate(&client("ada"), "few", "cli");
}

#[test]
fn a_new_name_is_no_new_beginning_for_the_depth_of_delegations() {
    let mut s = Script::new();
    let mut asker = client("top");
    for nth in 0..=DEPTH {
        let worker = format!("w{nth}");
        let task = s.delegate(&asker, "go", &worker);
        let tree = 100 + nth;
        s.report(&from_tree(client(&worker), tree), &task, Status::InProgress).unwrap();
        // It hands on what it has, under another name.
        asker = from_tree(client(&format!("other{nth}")), tree);
    }
    let order = s.order("go", "cli");
    assert!(matches!(s.say(&asker, order), Ok(Answer::Denied(_))));
    // Who asks for what it does itself is not below itself.
    let task = s.delegate(&one_of_many("asks"), "go", "works");
    s.report(&one_of_many("works"), &task, Status::InProgress).unwrap();
    let own = s.delegate(&one_of_many("asks"), "go", "cli");
    assert_eq!(s.core.state().tasks.get(&own).unwrap().depth, 0);
}

#[test]
fn questions_about_tools_and_files_keep_no_work_waiting() {
    let mut s = Script::new();
    let ask = |nth: usize| AskPermission {
        id: format!("q{nth}").into(),
        host: "claude".into(),
        tool: "ask".into(),
        arguments: Json::null(),
        wait: Ttl::minutes(1),
        folder: None,
    };
    for nth in 0..PARKED_MAX {
        let who = client(&format!("agent{}", nth / PARKED_OF_ONE_MAX));
        assert!(matches!(s.say(&who, ask(nth)), Ok(Answer::Parked(_))), "{nth}");
    }
    assert!(matches!(s.say(&client("late"), ask(PARKED_MAX)), Err(Refusal::Busy { .. })));
    s.ask(&client("agent0"), "ask", "cli");
}

/// Asks about answers too.
struct AsksAlways;

impl Judge for AsksAlways {
    fn decide(&self, _: &Principal, _: &Command, _: &Facts) -> Decision {
        let (rule, terms, by) = (rule("always"), Terms::default(), vec![Approver::Agent(named("boss"))]);
        Decision::NeedApproval { rule, reason: "always".into(), terms, wait: Ttl::minutes(1), again: 0, by }
    }

    fn version(&self) -> Digest {
        Digest::of(b"always")
    }
}

#[test]
fn an_answer_never_waits_for_an_answer() {
    let mut s = Script::new();
    let (task, approval) = s.ask(&client("ada"), "ask", "cli");
    s.core.set_judge(Box::new(AsksAlways));
    let said = s.answer(&approver("boss"), approval, Verdict::Granted);
    assert!(matches!(said, Ok(Answer::Denied(_))), "{said:?}");
    assert_eq!(s.core.state().approvals.iter().count(), 1);
    assert_eq!(s.state(&task), TaskState::Awaiting { approval });
    s.answer(&person("owner"), approval, Verdict::Denied).unwrap();
}
