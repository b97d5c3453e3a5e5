//! The queue of merges as scripts: who may change it, how far entries go, and how many are remembered.

use provost::base::limits::{MERGE_BRANCHES_MAX, MERGES_OVER_MAX};
use provost::base::{Fence, Timestamp};
use provost::domain::command::{MergeAsked, MoveMerge, QueueMerges, RemoveMerges, RunMerges};
use provost::domain::{Answer, Effect, EventKind, MergePasses, MergeState, Principal, Refusal, Reply};

use crate::support::script::{Script, client, host, person};

fn order(branches: &[&str]) -> QueueMerges {
    let one = |it: &&str| MergeAsked { branch: (*it).into(), commit: "c0ffee".into(), summary: "".into() };
    QueueMerges {
        branches: branches.iter().map(one).collect(),
        into: "main".into(),
        passes: MergePasses::default(),
    }
}

fn queued(s: &mut Script, who: &Principal, branches: &[&str]) -> Vec<Fence> {
    match s.say(who, order(branches)).unwrap() {
        Answer::Done(Reply::MergesQueued(it)) => it.entries.iter().map(|it| it.number).collect(),
        other => panic!("{other:?}"),
    }
}

fn moved(s: &mut Script, number: Fence, to: MergeState) -> Result<(), Refusal> {
    s.say(&host(), MoveMerge { number, to }).map(drop)
}

fn working() -> MergeState {
    MergeState::Working { step: "x".into() }
}

fn aside(told: Option<&str>) -> MergeState {
    let told = told.map(|it| provost::base::AgentId::parse(it).unwrap());
    MergeState::SetAside { cause: "text".into(), why: "it conflicts".into(), told, at: Timestamp(1) }
}

#[test]
fn an_entry_goes_along_the_arrows_and_no_other_way() {
    let mut s = Script::new();
    let number = queued(&mut s, &person("owner"), &["one"])[0];
    let moving = || MergeState::Moving { from: "a".into(), to: "b".into(), trees: Vec::new() };
    assert!(moved(&mut s, number, moving()).is_err() && moved(&mut s, number, aside(None)).is_err());
    moved(&mut s, number, working()).unwrap();
    moved(&mut s, number, moving()).unwrap();
    moved(&mut s, number, working()).unwrap();
    moved(&mut s, number, aside(Some("coder"))).unwrap();
    let told = s.events().iter().filter(|it| matches!(it, EventKind::Published { .. })).count();
    assert_eq!(told, 1, "the owner is told with the commit that sets it aside");
    for to in [working(), moving(), MergeState::Waiting] {
        assert!(moved(&mut s, number, to).is_err());
    }
    // A repeat after a crash is no second message, and one that was removed has nothing to be said of.
    moved(&mut s, number, aside(Some("coder"))).unwrap();
    assert!(!s.events().iter().any(|it| matches!(it, EventKind::Published { .. })));
    moved(&mut s, Fence(99), working()).unwrap();
}

#[test]
fn only_the_user_has_the_queue_run_and_only_what_waits_is_run() {
    let mut s = Script::new();
    let numbers = queued(&mut s, &person("owner"), &["one", "two"]);
    assert!(matches!(s.say(&client("coder"), RunMerges { only: vec![] }), Err(Refusal::OutOfScope { .. })));
    s.say(&person("owner"), RunMerges { only: vec![numbers[1]] }).unwrap();
    assert!(
        matches!(&s.out.effects[..], [(_, Effect::RunMerges { numbers: it, .. })] if *it == [numbers[1]])
    );
    moved(&mut s, numbers[0], working()).unwrap();
    assert!(matches!(
        s.say(&person("owner"), RunMerges { only: vec![numbers[0]] }),
        Err(Refusal::MergeCannot { .. })
    ));
    // What is being merged is neither removed nor put there once more.
    let remove = RemoveMerges { numbers: vec![numbers[0]] };
    assert!(matches!(s.say(&person("owner"), remove), Err(Refusal::MergeCannot { .. })));
    assert!(matches!(s.say(&person("owner"), order(&["one"])), Err(Refusal::MergeCannot { .. })));
    // Nor what a run has taken up: what it merges is what was asked for.
    assert!(matches!(s.say(&person("owner"), order(&["two"])), Err(Refusal::MergeCannot { .. })));
    s.say(&person("owner"), RemoveMerges { numbers: vec![numbers[1]] }).unwrap();
    let again = queued(&mut s, &person("owner"), &["two"])[0];
    assert!(again > numbers[1] && s.core.state().merges.get(numbers[1]).is_none());
    s.say(&person("owner"), RunMerges { only: vec![] }).unwrap();
    assert!(matches!(&s.out.effects[..], [(_, Effect::RunMerges { numbers: it, .. })] if *it == [again]));
}

#[test]
fn the_queue_has_a_bound_and_forgets_what_was_over_long_ago() {
    let mut s = Script::new();
    let many: Vec<String> = (0..=MERGE_BRANCHES_MAX).map(|n| format!("b{n}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert!(matches!(s.say(&person("owner"), order(&many)), Err(Refusal::TooLong { .. })));
    for n in 0..MERGES_OVER_MAX + 20 {
        let number = queued(&mut s, &person("owner"), &[&format!("b{n}")])[0];
        moved(&mut s, number, working()).unwrap();
        moved(&mut s, number, aside(None)).unwrap();
    }
    assert_eq!(s.core.state().merges.iter().count(), MERGES_OVER_MAX);
    for part in 0..5 {
        let names: Vec<String> = (0..MERGE_BRANCHES_MAX).map(|n| format!("w{part}-{n}")).collect();
        queued(&mut s, &person("owner"), &names.iter().map(String::as_str).collect::<Vec<_>>());
    }
    assert!(matches!(s.say(&person("owner"), order(&["more"])), Err(Refusal::Quota { .. })));
}

#[test]
fn nobody_but_the_user_changes_what_another_has_put_there() {
    let mut s = Script::new();
    let passes = MergePasses { held: true, ..MergePasses::default() };
    s.say(&person("owner"), QueueMerges { passes, ..order(&["one"]) }).unwrap();
    let entry = |s: &Script| s.core.state().merges.iter().next().unwrap().clone();
    let before = entry(&s);
    assert_eq!(
        queued(&mut s, &client("coder"), &["one"]),
        [before.number],
        "the same request finds it there"
    );
    let mut other = order(&["one"]);
    other.branches[0].commit = "decade".into();
    assert!(matches!(s.say(&client("coder"), other.clone()), Err(Refusal::MergeCannot { .. })));
    assert_eq!(entry(&s), before);
    assert_eq!(s.core.state().merges.iter().count(), 1);
    s.say(&person("owner"), other).unwrap();
    assert_eq!((&*entry(&s).commit, entry(&s).passes), ("decade", MergePasses::default()));
}

#[test]
fn what_passes_is_the_users_to_say() {
    let mut s = Script::new();
    let passes = MergePasses { held: true, ..MergePasses::default() };
    let bold = QueueMerges { passes, ..order(&["one"]) };
    assert!(matches!(s.say(&client("coder"), bold.clone()), Err(Refusal::OutOfScope { .. })));
    s.say(&person("owner"), bold).unwrap();
}
