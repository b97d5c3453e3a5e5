//! Shared resources are divided by trees of processes, under any number of names, as scripts over the core.

use provost::base::limits::{
    CLAIMS_OF_ONE_MAX, CLAIMS_PER_AGENT_MAX, CONTRACTS_OF_ONE_MAX, INTENTS_OF_ONE_MAX, INTENTS_PER_AGENT_MAX,
    LOCKS_OF_ONE_MAX, LOCKS_PER_AGENT_MAX, WAITERS_OF_ONE_MAX,
};
use provost::base::{RepoPath, Ttl};
use provost::domain::command::{AcquireLock, ClaimFile, JoinCrew, ReleaseFile};
use provost::domain::{Content, Refusal, Role};
use provost_test_equipment::callers::from_tree;

use crate::support::coordinating::{acquire, held, intent, propose, release};
use crate::support::script::{Said, Script, client};

#[test]
fn one_tree_of_processes_does_not_take_all_locks_under_many_names() {
    let mut s = Script::new();
    let mut taken = 0;
    for name in 0..3 {
        let who = from_tree(client(&format!("n{name}")), 1);
        for number in 0..LOCKS_PER_AGENT_MAX {
            match s.say(&who, acquire(&format!("f{name}.ts:f{number}"))) {
                Err(Refusal::Quota { .. }) => break,
                said => drop(held(said)),
            }
            taken += 1;
        }
    }
    assert_eq!(taken, LOCKS_OF_ONE_MAX);
    held(s.say(&client("bob"), acquire("a.ts:f")));
    // What is given back is there for others of the tree.
    s.say(&from_tree(client("n0"), 1), release("f0.ts:f7")).unwrap();
    held(s.say(&from_tree(client("n2"), 1), acquire("a.ts:g")));
    let waits = AcquireLock { wait: Some(Ttl::minutes(2)), ..acquire("a.ts:f") };
    for number in 0..=WAITERS_OF_ONE_MAX {
        let said = s.say(&from_tree(client(&format!("w{number}")), 1), waits.clone());
        assert_eq!(said.is_err(), number == WAITERS_OF_ONE_MAX, "{number}: {said:?}");
    }
    s.say(&client("carol"), waits).unwrap();
}

#[test]
fn one_tree_of_processes_does_not_claim_all_files_under_many_names() {
    let mut s = Script::new();
    let joining = JoinCrew { tool: "x".into(), role: Role::Worker, capabilities: Vec::new() };
    let file = |name: &str| RepoPath::parse(name).unwrap();
    let claiming = |name: &str| ClaimFile { file: file(name), content: Content::Missing, assignment: None };
    let mut taken = 0;
    for name in 0..2 {
        let who = from_tree(client(&format!("n{name}")), 1);
        s.say(&who, joining.clone()).unwrap();
        for number in 0..CLAIMS_PER_AGENT_MAX {
            match s.say(&who, claiming(&format!("f{name}/{number}"))) {
                Err(Refusal::Quota { .. }) => break,
                said => drop(said.unwrap()),
            }
            taken += 1;
        }
    }
    assert_eq!(taken, CLAIMS_OF_ONE_MAX);
    s.say(&client("bob"), joining).unwrap();
    s.say(&client("bob"), claiming("a")).unwrap();
    // What is given back is there for others of the tree.
    let given = ReleaseFile { file: file("f0/7"), content: Content::Missing };
    s.say(&from_tree(client("n0"), 1), given).unwrap();
    s.say(&from_tree(client("n1"), 1), claiming("b")).unwrap();
    assert!(matches!(s.say(&from_tree(client("n1"), 1), claiming("c")), Err(Refusal::Quota { .. })));
}

#[test]
fn one_tree_of_processes_does_not_have_all_intents_and_contracts_under_many_names() {
    let mut s = Script::new();
    let full = |said: &Said| matches!(said, Err(Refusal::Quota { .. }));
    let mut number = 0;
    for name in ["n0", "n1"] {
        for _ in 0..INTENTS_PER_AGENT_MAX {
            let said =
                s.say(&from_tree(client(name), 1), intent(number, &[(&format!("f{number}.ts"), &[])], &[]));
            assert_eq!(full(&said), number >= INTENTS_OF_ONE_MAX as u64, "{number}: {said:?}");
            if said.is_err() {
                break;
            }
            number += 1;
        }
    }
    s.say(&client("bob"), intent(number, &[("b.ts", &[])], &[])).unwrap();
    for number in 0..=CONTRACTS_OF_ONE_MAX as u64 {
        let who = from_tree(client(if number % 2 == 0 { "n0" } else { "n1" }), 1);
        let said = s.say(&who, propose(number, &format!("c{number}.ts:f"), "f()"));
        assert_eq!(full(&said), number == CONTRACTS_OF_ONE_MAX as u64, "{number}: {said:?}");
    }
    s.say(&client("bob"), propose(1 << 20, "b.ts:f", "f()")).unwrap();
}
