//! The mail that a lock's holder gets about the agents that wait: one message for each grant, which pushes out no other
//! mail.

use provost::base::Ttl;
use provost::domain::command::{AcquireLock, LeaveQueue, Locked, Status};
use provost::domain::{Answer, MailKind, Reply};

use crate::support::coordinating::{acquire, release};
use crate::support::script::{Script, client, last_words, named};

/// Waits for a lock and gives up, under another name each time.
fn crowd(s: &mut Script, symbol: &str, many: usize) {
    for number in 0..many {
        let who = client(&format!("crowd-{number}"));
        let wait = AcquireLock { wait: Some(Ttl::minutes(1)), ..acquire(symbol) };
        match s.say(&who, wait).unwrap() {
            Answer::Done(Reply::Locked(Locked::Queued { ticket, .. })) => {
                s.say(&who, LeaveQueue { ticket }).unwrap();
            }
            other => panic!("{other:?}"),
        }
    }
}

/// Returns the agents that wait, as the mail of the holder names them.
fn wanted(s: &Script, holder: &str) -> Vec<String> {
    let mail = s.core.state().mail.iter().filter(|it| it.to == named(holder));
    let waits = mail.filter_map(|it| match &it.kind {
        MailKind::Wanted { agent, .. } => Some(agent.to_string()),
        _ => None,
    });
    waits.collect()
}

#[test]
fn a_thousand_names_that_wait_for_a_lock_push_no_result_out_of_its_holders_mail() {
    let mut s = Script::new();
    let (ada, worker) = (client("ada"), client("worker"));
    s.register(&worker);
    let task = s.delegate(&ada, "go", "worker");
    s.receive_all(&worker);
    s.report(&worker, &task, Status::Completed).unwrap();
    s.say(&ada, acquire("a.ts:f")).unwrap();
    crowd(&mut s, "a.ts:f", 1_100);
    assert_eq!(wanted(&s, "ada"), ["crowd-1099"], "one word for the grant, with the newest who waits");
    let mail = s.receive_all(&ada);
    assert_eq!(last_words(&mail).len(), 1, "the result is there: {mail:?}");
}

#[test]
fn the_word_that_an_agent_waits_ends_with_the_grant_that_it_is_about() {
    let mut s = Script::new();
    let ada = client("ada");
    for _ in 0..5 {
        s.say(&ada, acquire("a.ts:f")).unwrap();
        crowd(&mut s, "a.ts:f", 2);
        assert_eq!(wanted(&s, "ada"), ["crowd-1"]);
        s.say(&ada, release("a.ts:f")).unwrap();
        assert_eq!(wanted(&s, "ada"), [""; 0], "nobody can give back what is free");
    }
    s.say(&ada, acquire("a.ts:f")).unwrap();
    crowd(&mut s, "a.ts:f", 2);
    s.pass(Ttl::minutes(31));
    assert_eq!(wanted(&s, "ada"), [""; 0], "nor what has lapsed");
}

#[test]
fn a_full_queue_gives_up_nothing_for_the_word_that_an_agent_waits() {
    let mut s = Script::new();
    let (ada, worker) = (client("ada"), client("worker"));
    s.register(&worker);
    for _ in 0..provost::base::limits::MAIL_MAX {
        let task = s.delegate(&ada, "go", "worker");
        s.receive_all(&worker);
        s.report(&worker, &task, Status::Completed).unwrap();
    }
    s.say(&ada, acquire("a.ts:f")).unwrap();
    let before = s.core.state().mail.waiting(&named("ada"));
    crowd(&mut s, "a.ts:f", 3);
    assert_eq!((wanted(&s, "ada").len(), s.core.state().mail.waiting(&named("ada"))), (0, before));
}
