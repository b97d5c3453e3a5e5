//! The events that addresses elsewhere get, and whose words are in them, as scripts over the core.

use std::sync::Arc;

use provost::base::limits::{NOTICE_BODY_BYTES_MAX, NOTICE_FACT_BYTES_MAX, NOTICES_OWED_MAX};
use provost::base::{DaemonId, EffectId, Json, Ttl};
use provost::domain::command::{AskPermission, SettleEffect, Status};
use provost::domain::{
    Change, Effect, EventKind, NoticeAbout, NoticeKind, NoticeTarget, OutgoingNotice, Owed, Settings, Verdict,
};

use crate::support::script::{Script, approver, client, host, person};
use crate::support::storm::settings;

const ALL: [NoticeKind; 7] = [
    NoticeKind::Approval,
    NoticeKind::Permission,
    NoticeKind::Answered,
    NoticeKind::Failed,
    NoticeKind::Done,
    NoticeKind::Tainted,
    NoticeKind::Passkey,
];

fn target(name: &str, kinds: &[NoticeKind], words: bool) -> NoticeTarget {
    NoticeTarget { name: name.into(), kinds: kinds.to_vec(), words }
}

fn told(targets: Vec<NoticeTarget>) -> Script {
    Script::with(Settings { notices: targets, ..settings() })
}

fn notices(s: &Script) -> Vec<Arc<OutgoingNotice>> {
    let of = |(_, effect): &(EffectId, Effect)| match effect {
        Effect::SendNotice { notice } => Some(notice.clone()),
        _ => None,
    };
    s.out.effects.iter().filter_map(of).collect()
}

fn outcome(notice: &OutgoingNotice) -> Option<&str> {
    match &notice.about {
        NoticeAbout::Approval(facts) => facts.outcome.as_deref(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_address_is_told_what_it_wants_and_words_of_agents_only_where_it_says_so() {
    let mut s = told(vec![
        target("facts", &[NoticeKind::Approval], false),
        target("full", &[NoticeKind::Approval], true),
        target("ends", &[NoticeKind::Failed], true),
    ]);
    s.ask(&client("ada"), "ask a secret of mine", "cli");
    let told = notices(&s);
    let to: Vec<&str> = told.iter().map(|it| &*it.to).collect();
    assert_eq!(to, ["facts", "full"]);
    let text = |notice: &OutgoingNotice| serde_json::to_string(notice).unwrap();
    assert!(!text(&told[0]).contains("secret of mine") && text(&told[1]).contains("secret of mine"));
    assert_eq!(s.core.state().outgoing.len(), 2);
    let no_one = Script::new();
    assert!(no_one.core.state().outgoing.is_empty());
}

#[test]
fn every_end_of_a_question_is_told_once_with_what_became_of_it() {
    let kinds = [NoticeKind::Approval, NoticeKind::Answered];
    type End<'a> = &'a dyn Fn(&mut Script, &provost::base::TaskId, provost::base::ApprovalId);
    let ends: [(&str, End<'_>); 4] = [
        ("granted", &|s, _, id| drop(s.answer(&approver("boss"), id, Verdict::Granted).unwrap())),
        ("denied", &|s, _, id| drop(s.answer(&person("owner"), id, Verdict::Denied).unwrap())),
        ("expired", &|s, _, _| s.pass(Ttl::minutes(6))),
        ("withdrawn", &|s, task, _| drop(s.cancel(&client("ada"), task).unwrap())),
    ];
    for (expected, end) in ends {
        let mut s = told(vec![target("all", &kinds, false)]);
        let (task, approval) = s.ask(&client("ada"), "ask", "cli");
        assert_eq!(notices(&s).len(), 1);
        end(&mut s, &task, approval);
        let told = notices(&s);
        let [notice] = &told[..] else { panic!("{expected}: {told:?}") };
        assert_eq!((notice.kind, outcome(notice)), (NoticeKind::Answered, Some(expected)));
    }
}

#[test]
fn a_question_that_is_asked_again_is_told_again_and_has_not_ended() {
    let mut s = told(vec![target("all", &[NoticeKind::Approval, NoticeKind::Answered], false)]);
    s.ask(&client("ada"), "ask-again", "cli");
    let first = notices(&s).remove(0);
    s.pass(Ttl::minutes(5));
    let told = notices(&s);
    let [again] = &told[..] else { panic!("{told:?}") };
    assert_eq!((again.kind, outcome(again)), (NoticeKind::Approval, None));
    let (NoticeAbout::Approval(first), NoticeAbout::Approval(again)) = (&first.about, &again.about) else {
        panic!("{again:?}")
    };
    assert_eq!((first.asked_again, again.asked_again, again.asks_left), (0, 1, 1));
    assert_eq!(first.shown, again.shown, "the link leads to the same question");
}

#[test]
fn questions_about_tools_of_hosts_are_told_to_who_asks_for_them_alone() {
    let ask = || AskPermission {
        id: "q1".into(),
        host: "claude".into(),
        tool: "ask".into(),
        arguments: Json::parse(r#"{"command":"rm -rf /"}"#).unwrap(),
        wait: Ttl::minutes(1),
        folder: None,
    };
    let mut s = told(vec![
        target("questions", &[NoticeKind::Approval, NoticeKind::Answered], true),
        target("tools", &[NoticeKind::Permission], true),
    ]);
    s.say(&client("ada"), ask()).unwrap();
    let told = notices(&s);
    let [notice] = &told[..] else { panic!("{told:?}") };
    assert_eq!((&*notice.to, notice.kind), ("tools", NoticeKind::Permission));
    assert!(notice.words[0].text.contains("rm -rf"));
    s.pass(Ttl::minutes(2));
    assert!(notices(&s).is_empty(), "who was not asked does not hear of the end");
}

#[test]
fn ends_of_tasks_are_told_but_no_denial_is_a_failure() {
    let mut s = told(vec![target("all", &[NoticeKind::Failed, NoticeKind::Done], true)]);
    let wes = client("wes");
    s.register(&wes);
    for (status, kind) in [(Status::Completed, NoticeKind::Done), (Status::Failed, NoticeKind::Failed)] {
        let task = s.delegate(&client("ada"), "do it", "wes");
        s.receive(&wes).unwrap();
        s.report(&wes, &task, status).unwrap();
        let told = notices(&s);
        let [notice] = &told[..] else { panic!("{told:?}") };
        assert_eq!(notice.kind, kind);
        let NoticeAbout::Task(facts) = &notice.about else { panic!("{notice:?}") };
        assert_eq!((facts.task.clone(), facts.worker.as_str(), facts.asker.as_str()), (task, "wes", "ada"));
        let words: Vec<&str> = notice.words.iter().map(|it| &*it.what).collect();
        assert_eq!(words, ["goal", "report"]);
    }
    s.delegate(&client("ada"), "never", "wes");
    assert!(notices(&s).is_empty());
    let task = s.delegate(&client("ada"), "do it", "wes");
    s.cancel(&client("ada"), &task).unwrap();
    assert!(notices(&s).is_empty());
}

#[test]
fn what_is_owed_is_bounded_and_questions_outlast_the_rest() {
    let mut s = told(vec![target("dead", &ALL, false), target("well", &[NoticeKind::Approval], false)]);
    let wes = client("wes");
    s.register(&wes);
    let (_, approval) = s.ask(&client("ada"), "ask", "cli");
    let question = s.out.effects[0].0;
    let mut given_up = 0;
    for _ in 0..NOTICES_OWED_MAX + 5 {
        let task = s.delegate(&client("ada"), "do it", "wes");
        s.receive(&wes).unwrap();
        s.report(&wes, &task, Status::Completed).unwrap();
        given_up += s
            .events()
            .iter()
            .filter(|it| matches!(it, EventKind::Recorded { what, subject, .. } if &**what == "notice.given_up" && &**subject == "dead"))
            .count();
    }
    let owed: Vec<_> =
        s.core.state().outgoing.by_address().map(|(to, count, _)| (to.to_owned(), count)).collect();
    assert_eq!(owed, [("dead".to_owned(), NOTICES_OWED_MAX), ("well".to_owned(), 1)]);
    assert_eq!(given_up, 6);
    assert!(s.core.state().outgoing.get(question).is_some(), "approval {approval} is still to be told");
}

#[test]
fn what_is_owed_is_taken_up_after_a_start_until_it_is_settled() {
    let mut s = told(vec![target("all", &[NoticeKind::Approval], false)]);
    s.ask(&client("ada"), "ask", "cli");
    let (id, effect) = s.out.effects[0].clone();
    let Effect::SendNotice { notice } = &effect else { panic!("{effect:?}") };
    let stored = serde_json::to_string(&effect).unwrap();
    let again: Effect = serde_json::from_str(&stored).unwrap();
    assert_eq!(again, effect);
    let change = Owed { id, effect: again, started: false, by: DaemonId::default() }.in_memory().unwrap();
    assert_eq!(change, Change::OweNotice(id, notice.clone()));
    s.say(&host(), SettleEffect { effect: id }).unwrap();
    assert!(s.core.state().outgoing.is_empty());
    assert!(s.out.changes.contains(&Change::DropEffect(id)));
}

#[test]
fn hostile_words_are_bounded_and_nothing_in_them_hides() {
    let mut s = told(vec![target("all", &ALL, true)]);
    let hostile =
        format!("ask \u{1b}]8;;http://evil\u{7}\u{202e}gpj.exe\u{200b}{}", "\u{1b}\"\\".repeat(70_000));
    s.ask(&client("ada"), &hostile, "cli");
    let notice = notices(&s).remove(0);
    let text = serde_json::to_string(&notice).unwrap();
    assert!(text.len() < NOTICE_BODY_BYTES_MAX, "{}", text.len());
    let goal = &notice.words[0].text;
    assert!(goal.starts_with("ask \\u{1b}]8;;http://evil\\u{7}\\u{202e}gpj.exe\\u{200b}"), "{goal}");
    assert!(!goal.chars().any(char::is_control));
    let NoticeAbout::Approval(facts) = &notice.about else { panic!("{notice:?}") };
    assert!(facts.tool.len() <= NOTICE_FACT_BYTES_MAX);
}
