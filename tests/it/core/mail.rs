//! Queues of messages, as scripts over the core.

use provost::base::limits::{MAIL_BYTES_MAX, MAIL_MAX, MAIL_TOTAL_BYTES_MAX};
use provost::base::{Json, MailSeq, Ttl};
use provost::domain::command::{SettleMail, Status};
use provost::domain::{EventKind, MailKind, Refusal, Verdict};

use crate::support::script::{Script, client, last_words, named, person, report, works};

fn dropped(s: &Script) -> u32 {
    let count = |kind: &EventKind| match kind {
        EventKind::MailDropped { count, .. } => Some(*count),
        _ => None,
    };
    s.events().into_iter().filter_map(count).sum()
}

#[test]
fn messages_come_in_order_and_one_at_a_time() {
    let mut s = Script::new();
    let tasks: Vec<_> = (0..5).map(|_| s.delegate(&client("ada"), "do", "wes")).collect();
    assert_eq!(works(&s.receive_all(&client("wes"))), tasks);
}

#[test]
fn a_message_that_did_not_arrive_comes_again_before_later_ones() {
    let mut s = Script::new();
    let wes = client("wes");
    for _ in 0..2 {
        s.delegate(&client("ada"), "do", "wes");
    }
    let (first, second) = (s.collect(&wes).unwrap(), s.collect(&wes).unwrap());
    assert!(first.seq < second.seq && s.collect(&wes).is_none(), "nobody gets what somebody carries");
    s.say(&wes, SettleMail { seq: first.seq, delivered: false }).unwrap();
    assert_eq!(s.collect(&wes).unwrap().seq, first.seq);
}

#[test]
fn nobody_settles_what_is_not_theirs_or_not_there() {
    let mut s = Script::new();
    s.delegate(&client("ada"), "do", "wes");
    let mail = s.collect(&client("wes")).unwrap();
    for (who, seq) in [("ada", mail.seq), ("wes", MailSeq(99))] {
        let said = s.say(&client(who), SettleMail { seq, delivered: true });
        assert_eq!(said, Err(Refusal::MailNotFound));
    }
    s.say(&client("wes"), SettleMail { seq: mail.seq, delivered: true }).unwrap();
    let again = s.say(&client("wes"), SettleMail { seq: mail.seq, delivered: true });
    assert_eq!(again, Err(Refusal::MailNotFound));
}

#[test]
fn a_message_withdrawn_on_its_way_is_settled_by_nobody() {
    let mut s = Script::new();
    let wes = client("wes");
    let task = s.delegate(&client("ada"), "do", "wes");
    let mail = s.collect(&wes).unwrap();
    s.report(&wes, &task, Status::InProgress).unwrap();
    for delivered in [false, true] {
        assert_eq!(s.say(&wes, SettleMail { seq: mail.seq, delivered }), Err(Refusal::MailNotFound));
    }
    assert!(s.collect(&wes).is_none());
}

#[test]
fn a_full_queue_gives_up_its_oldest_news_and_says_so() {
    let mut s = Script::new();
    let (ada, wes) = (client("ada"), client("wes"));
    let task = s.delegate(&ada, "do", "wes");
    for _ in 0..MAIL_MAX {
        s.report(&wes, &task, Status::InProgress).unwrap();
        assert_eq!(dropped(&s), 0);
    }
    let oldest = s.core.state().mail.iter().find(|it| it.to == named("ada")).unwrap().seq;
    s.report(&wes, &task, Status::InProgress).unwrap();
    assert_eq!(dropped(&s), 1);
    assert_eq!(s.core.state().mail.waiting(&named("ada")), MAIL_MAX);
    assert!(s.receive(&ada).unwrap().seq > oldest);
}

#[test]
fn invented_names_do_not_fill_the_memory() {
    let mut s = Script::new();
    // One text, shared by all messages of the test, counts for each of them.
    let large = Json::parse(&format!("\"{}\"", "x".repeat(1 << 20))).unwrap();
    let mut refused = None;
    for n in 0..400 {
        let mut order = s.order("do", &format!("worker:{n}"));
        order.payload = large.clone();
        if let Err(refusal) = s.say(&client(&format!("client:{n}")), order) {
            refused = Some((n, refusal));
            break;
        }
    }
    let (n, refusal) = refused.expect("there is an end to it");
    assert!(
        (MAIL_TOTAL_BYTES_MAX >> 20) - 1 <= n && matches!(refusal, Refusal::Busy { .. }),
        "{n}: {refusal}"
    );
    s.receive_all(&client("worker:0"));
    s.receive_all(&client("worker:1"));
    s.delegate(&client("ada"), "do", "wes");
}

#[test]
fn a_full_queue_gives_up_news_before_work_and_never_what_is_on_its_way() {
    let mut s = Script::new();
    let (ada, wes) = (client("ada"), client("wes"));
    let work = s.delegate(&wes, "do", "ada");
    let task = s.delegate(&ada, "do", "wes");
    s.report(&wes, &task, Status::InProgress).unwrap();
    let carried = s.collect(&ada).unwrap();
    assert_eq!(works(std::slice::from_ref(&carried)), [work]);
    let kept = s.delegate(&wes, "do", "ada");
    for _ in 0..MAIL_MAX + 50 {
        s.report(&wes, &task, Status::InProgress).unwrap();
    }
    s.say(&ada, SettleMail { seq: carried.seq, delivered: true }).unwrap();
    let left = s.receive_all(&ada);
    assert_eq!(works(&left), [kept]);
    assert_eq!(left.len(), MAIL_MAX - 1);
}

#[test]
fn a_queue_is_bounded_in_bytes_too() {
    let mut s = Script::new();
    let (ada, wes) = (client("ada"), client("wes"));
    let task = s.delegate(&ada, "do", "wes");
    let large = Json::parse(&format!("\"{}\"", "x".repeat(1 << 20))).unwrap();
    for _ in 0..20 {
        let mut verb = report(&task, Status::InProgress);
        verb.report.details = Some(large.clone());
        s.say(&wes, verb).unwrap();
    }
    assert!(s.receive_all(&ada).len() <= MAIL_BYTES_MAX >> 20);
}

#[test]
fn many_deadlines_at_once_do_not_overfill_a_queue() {
    let mut s = Script::new();
    let (ada, wes) = (client("ada"), client("wes"));
    let task = s.delegate(&ada, "do", "wes");
    let asked: Vec<_> = (0..50).map(|_| s.ask(&ada, "ask", "cli").0).collect();
    for _ in 0..MAIL_MAX - 10 {
        s.report(&wes, &task, Status::InProgress).unwrap();
    }
    s.pass(Ttl::minutes(5));
    assert_eq!(dropped(&s), 40, "as many as there was no room for");
    assert_eq!(s.core.state().mail.waiting(&named("ada")), MAIL_MAX);
    let words = last_words(&s.receive_all(&ada));
    assert_eq!(words.len(), asked.len(), "every end is told");
}

#[test]
fn a_last_word_supersedes_unread_progress_and_nothing_else() {
    let mut s = Script::new();
    let (ada, wes) = (client("ada"), client("wes"));
    let (one, other) = (s.delegate(&ada, "do", "wes"), s.delegate(&ada, "do", "wes"));
    for task in [&one, &other, &one] {
        s.report(&wes, task, Status::InProgress).unwrap();
    }
    s.report(&wes, &one, Status::Completed).unwrap();
    assert_eq!(dropped(&s), 2);
    let left = s.receive_all(&ada);
    let tasks: Vec<_> = left.iter().filter_map(|it| it.kind.task().cloned()).collect();
    assert_eq!(tasks, [other, one.clone()]);
    assert_eq!(last_words(&left), [(one, "completed".to_owned())]);
}

#[test]
fn room_made_by_a_last_word_is_used() {
    let mut s = Script::new();
    let (ada, wes) = (client("ada"), client("wes"));
    let (one, other) = (s.delegate(&ada, "do", "wes"), s.delegate(&ada, "do", "wes"));
    s.report(&wes, &other, Status::InProgress).unwrap();
    for _ in 1..MAIL_MAX {
        s.report(&wes, &one, Status::InProgress).unwrap();
    }
    s.report(&wes, &one, Status::Completed).unwrap();
    assert_eq!(s.receive_all(&ada).len(), 2, "the other task's news is not given up for nothing");
}

#[test]
fn mail_that_nobody_collects_is_given_up_and_that_is_announced() {
    let mut s = Script::new();
    let (ada, wes) = (client("ada"), client("wes"));
    let task = s.delegate(&ada, "do", "wes");
    s.report(&wes, &task, Status::Completed).unwrap();
    s.pass(Ttl::minutes(24 * 60 - 1));
    assert_eq!(s.core.state().mail.waiting(&named("ada")), 1);
    s.pass(Ttl::minutes(2));
    assert_eq!((dropped(&s), s.core.state().mail.waiting(&named("ada"))), (1, 0));
}

#[test]
fn an_answered_question_is_withdrawn() {
    let mut s = Script::new();
    let (_, approval) = s.ask(&client("ada"), "ask", "cli");
    let asked = s.collect(&client("boss")).unwrap();
    s.say(&client("boss"), SettleMail { seq: asked.seq, delivered: false }).unwrap();
    s.answer(&person("owner"), approval, Verdict::Denied).unwrap();
    assert!(s.collect(&client("boss")).is_none());
}

#[test]
fn recurring_pid_loses_old_mail_and_its_asker_hears_of_the_work() {
    let mut s = Script::new();
    let (ada, eve) = (client("ada"), client("eve:17"));
    s.register(&eve);
    let lost = s.delegate(&ada, "do", "eve:17");
    s.pass(Ttl::minutes(10));
    let fresh = s.delegate(&ada, "do", "eve:17");
    s.register(&eve);
    assert_eq!(dropped(&s), 1);
    assert_eq!(works(&s.receive_all(&eve)), [fresh]);
    assert_eq!(last_words(&s.receive_all(&ada)), [(lost, "failed".to_owned())]);
}

#[test]
fn a_name_without_a_pid_or_one_that_was_never_silent_keeps_its_mail() {
    for (name, silent) in [("wes", true), ("wes:", true), ("wes:x7", true), ("wes:17", false)] {
        let mut s = Script::new();
        let wes = client(name);
        s.register(&wes);
        s.delegate(&client("ada"), "do", name);
        for _ in 0..40 {
            s.pass(Ttl::seconds_clamped(20));
            if !silent {
                let mail = s.collect(&wes).unwrap();
                s.say(&wes, SettleMail { seq: mail.seq, delivered: false }).unwrap();
            }
        }
        s.register(&wes);
        let kind = |mail: &provost::domain::Mail| matches!(mail.kind, MailKind::Work { .. });
        assert!(s.collect(&wes).is_some_and(|mail| kind(&mail)), "{name}");
    }
}
