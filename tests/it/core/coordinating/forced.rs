//! Taking from agents, as scripts: a person takes everything or one thing from an agent, and no agent takes anything from another one.

use provost::base::{Fence, IntentId};
use provost::domain::command::{
    AcquireLock, ClaimFile, EndIntent, FreeClaim, JoinCrew, LeaveQueue, Locked, ReleaseAgent,
};
use provost::domain::{
    Answer, Content, CrewRefusal, Door, Hold, IntentStatus, Principal, Proof, Refusal, Reply, Role, Scope,
};
use provost_test_equipment::callers::caller;

use crate::support::coordinating::{acquire, at, intent, path};
use crate::support::script::{Script, client, person};
use crate::support::storm::agent;

/// A process of this user that has left its name out: it may be a model's.
fn nameless() -> Principal {
    use Scope::{Coordinate, Delegate, Join, Operate, Read};
    caller("user:ann", Door::Own, &[Join, Coordinate, Delegate, Read, Operate], Proof::PeerUid)
}

fn id(text: &str) -> IntentId {
    IntentId::parse(text).unwrap()
}

/// Two agents, each with a lock, a claimed file and an intent; the second waits for the first one's lock. Its place in the line.
fn busy(s: &mut Script) -> provost::base::Ticket {
    for (n, name) in [(1, "ada"), (2, "bob")] {
        let file = format!("{name}.ts");
        s.say(&client(name), acquire(&format!("{file}:f"))).unwrap();
        s.say(&client(name), JoinCrew { tool: "x".into(), role: Role::Worker, capabilities: Vec::new() })
            .unwrap();
        let claim = ClaimFile { file: path(&file), content: Content::Missing, assignment: None };
        s.say(&client(name), claim).unwrap();
        s.say(&client(name), intent(n, &[(&file, &[])], &[])).unwrap();
    }
    let wait = AcquireLock { wait: Some(provost::base::Ttl::seconds_clamped(60)), ..acquire("ada.ts:f") };
    match s.say(&client("bob"), wait).unwrap() {
        Answer::Done(Reply::Locked(Locked::Queued { ticket, .. })) => ticket,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_person_takes_all_of_one_agents_and_nothing_of_anothers() {
    let mut s = Script::new();
    busy(&mut s);
    let all = |name: &str| ReleaseAgent { agent: agent(name), contents: Default::default() };
    for who in [client("bob"), client("ada"), nameless()] {
        let refused = s.say(&who, all("ada"));
        assert_eq!(refused, Err(Refusal::OutOfScope { needs: Scope::Operate }), "{who}");
    }
    let said = s.say(&person("user:ann"), all("bob")).unwrap();
    let Answer::Done(Reply::AgentReleased(it)) = said else { panic!("{said:?}") };
    assert_eq!((it.locks, it.waits, it.claims, it.intents), (1, 1, 1, 1));
    let state = s.core.state();
    assert!(state.locks.get(&at("ada.ts:f")).is_some() && state.locks.get(&at("bob.ts:f")).is_none());
    assert_eq!(state.locks.waiters().count(), 0);
    assert_eq!(state.intents.get(&id("i-2")).unwrap().status, IntentStatus::Abandoned);
    assert_eq!(state.intents.get(&id("i-1")).unwrap().status, IntentStatus::Declared);
    assert_eq!(state.claims.get(&path("bob.ts")).unwrap().held, Hold::Free);
    assert_ne!(state.claims.get(&path("ada.ts")).unwrap().held, Hold::Free);
    let said = s.say(&person("user:ann"), all("unknown-agent")).unwrap();
    let Answer::Done(Reply::AgentReleased(it)) = said else { panic!("{said:?}") };
    assert_eq!((it.locks, it.waits, it.claims, it.intents), (0, 0, 0, 0));
}

#[test]
fn one_claim_is_freed_as_the_grant_that_was_shown_and_an_intent_ends_once() {
    let mut s = Script::new();
    busy(&mut s);
    let fence = s.core.state().claims.get(&path("ada.ts")).unwrap().fence;
    let free = |fence: Option<Fence>| FreeClaim { file: path("ada.ts"), content: Content::Missing, fence };
    let end = EndIntent { id: id("i-1") };
    let scope = Err(Refusal::OutOfScope { needs: Scope::Operate });
    for who in [client("bob"), client("ada"), nameless()] {
        assert_eq!(s.say(&who, free(None)), scope, "{who}");
        assert_eq!(s.say(&who, end.clone()), scope, "{who}");
    }
    let ann = person("user:ann");
    let other = s.say(&ann, free(Some(Fence(fence.0 + 1))));
    assert_eq!(other, Err(CrewRefusal::FileClaimed { by: agent("ada") }.into()));
    let freed = |said: Result<Answer<Reply>, Refusal>| match said.unwrap() {
        Answer::Done(Reply::ClaimFreed(it)) => it.released,
        other => panic!("{other:?}"),
    };
    assert!(freed(s.say(&ann, free(Some(fence)))));
    assert!(!freed(s.say(&ann, free(None))), "it is free");
    s.say(&ann, end.clone()).unwrap();
    let again = s.say(&ann, end);
    let over = Refusal::IntentCannot { from: IntentStatus::Abandoned, to: IntentStatus::Abandoned };
    assert_eq!(again, Err(over));
    assert_eq!(s.say(&ann, EndIntent { id: id("i-9") }), Err(Refusal::IntentNotFound));
}

#[test]
fn a_place_in_a_queue_is_its_agents_and_a_persons_and_no_other_ones() {
    let mut s = Script::new();
    let ticket = busy(&mut s);
    for who in [client("ada"), client("eve"), nameless()] {
        s.say(&who, LeaveQueue { ticket }).unwrap();
        assert_eq!(s.core.state().locks.waiters().count(), 1, "{who}");
    }
    s.say(&person("user:ann"), LeaveQueue { ticket }).unwrap();
    assert_eq!(s.core.state().locks.waiters().count(), 0);
}
