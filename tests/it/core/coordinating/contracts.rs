//! Contracts by script: two agents agree, and a contract follows its symbol.

use std::sync::Arc;

use provost::domain::command::{AnswerContract, FollowContracts, WithdrawContract};
use provost::domain::{Contract, ContractStatus, Refusal};

use crate::support::coordinating::{contract_id, path, propose};
use crate::support::script::{Script, client, host, person};

fn in_force(s: &Script, file: &str) -> Vec<Arc<Contract>> {
    s.core.state().contracts.in_force_on(&path(file)).cloned().collect()
}

fn status(s: &Script, number: u64) -> ContractStatus {
    s.core.state().contracts.get(&contract_id(number)).unwrap().status
}

#[test]
fn a_contract_takes_two_and_binds_both() {
    let mut s = Script::new();
    let (ada, bob) = (client("ada"), client("bob"));
    let answer = |number, accept| AnswerContract { id: contract_id(number), accept };
    s.say(&ada, propose(1, "a.ts:f", "(a)")).unwrap();
    assert!(in_force(&s, "a.ts").is_empty(), "an offer binds nobody");
    assert!(matches!(s.say(&ada, answer(1, true)), Err(Refusal::ContractOwn)));
    assert!(matches!(s.say(&ada, answer(1, false)), Err(Refusal::ContractOwn)));
    assert!(matches!(s.say(&bob, answer(9, true)), Err(Refusal::ContractNotFound)));
    s.say(&bob, answer(1, true)).unwrap();
    assert_eq!(in_force(&s, "a.ts").len(), 1);
    for who in [&ada, &bob] {
        let settled = s.say(who, answer(1, false));
        assert!(matches!(settled, Err(Refusal::ContractSettled { status: ContractStatus::Accepted })));
        let alone = s.say(who, WithdrawContract { id: contract_id(1) });
        assert!(alone.is_err(), "neither takes it back alone: {alone:?}");
    }
    s.say(&bob, propose(2, "a.ts:f", "(a, b)")).unwrap();
    assert_eq!(status(&s, 1), ContractStatus::Accepted, "an offer replaces nothing");
    s.say(&ada, answer(2, true)).unwrap();
    assert_eq!((status(&s, 1), in_force(&s, "a.ts").len()), (ContractStatus::Superseded, 1));
    s.say(&person("owner"), WithdrawContract { id: contract_id(2) }).unwrap();
    assert!(in_force(&s, "a.ts").is_empty());
    s.say(&ada, propose(3, "a.ts:f", "()")).unwrap();
    assert!(matches!(
        s.say(&bob, WithdrawContract { id: contract_id(3) }),
        Err(Refusal::ContractNotYours { .. })
    ));
    s.say(&ada, WithdrawContract { id: contract_id(3) }).unwrap();
    s.say(&ada, propose(4, "a.ts:f", "()")).unwrap();
    s.say(&bob, answer(4, false)).unwrap();
    assert_eq!((status(&s, 3), status(&s, 4)), (ContractStatus::Withdrawn, ContractStatus::Rejected));
}

#[test]
fn a_contract_follows_its_symbol_to_another_file_and_stays_in_force_in_the_first() {
    let mut s = Script::new();
    let (ada, bob) = (client("ada"), client("bob"));
    s.say(&ada, propose(1, "a.ts:f", "(a)")).unwrap();
    let follow = FollowContracts { moves: vec![(contract_id(1), path("b.ts"))] };
    s.say(&host(), follow.clone()).unwrap();
    assert!(in_force(&s, "b.ts").is_empty(), "what is not in force does not move");
    s.say(&bob, AnswerContract { id: contract_id(1), accept: true }).unwrap();
    s.say(&host(), follow.clone()).unwrap();
    s.say(&host(), follow).unwrap();
    assert_eq!((in_force(&s, "a.ts").len(), in_force(&s, "b.ts").len()), (1, 1));
    assert_eq!(in_force(&s, "b.ts")[0].also, [path("b.ts")]);
}
