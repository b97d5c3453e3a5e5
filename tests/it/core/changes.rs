//! The fate of a run's changes in the core: applied file by file, undone, discarded.

use provost::base::{AgentId, ApplyId, Digest, RepoPath, Scope, TaskId};
use provost::domain::command::{ApplyFiles, DiscardChanges, EndApply, EndRun, Status, TellApplied};
use provost::domain::{
    Answer, AppliedFile, ApplyFile, ChangesState, Door, Effect, EventKind, Principal, Proof, Refusal, Reply,
    Report, Taking, TaskChanges,
};
use provost_test_equipment::callers::caller;

use crate::support::script::{Script, client, host, person};

/// A task of ada's whose run has left so many files.
fn ended(s: &mut Script, files: u32) -> TaskId {
    let task = s.delegate(&client("ada"), "do", "cli");
    let effect = s.out.effects[0].0;
    let changes = (files > 0).then(|| TaskChanges { files, added: 7, removed: 2, ..TaskChanges::default() });
    let (report, status) = (Report::default(), Status::Failed);
    let end = EndRun { effect, task: task.clone(), status, report, failure: None, model_used: None, changes };
    s.say(&host(), end).unwrap();
    task
}

fn path(name: &str) -> RepoPath {
    RepoPath::parse(name).unwrap()
}

fn begin(
    s: &mut Script,
    who: &Principal,
    task: &TaskId,
    undoes: Option<ApplyId>,
) -> Result<ApplyId, Refusal> {
    let verb = ApplyFiles {
        digest: Digest::of(b"it"),
        files: vec![ApplyFile { path: path("a"), gone: false }],
        later: Vec::new(),
        diff: Box::default(),
        undoes,
        of: Some(task.clone()),
        worker: None,
    };
    match s.say(who, verb)? {
        Answer::Done(Reply::ApplyBegun(begun)) => Ok(begun.apply),
        other => panic!("{other:?}"),
    }
}

fn tell(s: &mut Script, apply: ApplyId, task: &TaskId, names: &[&str], back: bool) {
    let file = |name: &&str| AppliedFile { path: path(name), before: None, after: Some(Digest::of(b"x")) };
    let takes = Some(Taking { task: task.clone(), back });
    let verb = TellApplied {
        apply,
        by: AgentId::parse("owner").unwrap(),
        files: names.iter().map(file).collect(),
        takes,
    };
    s.say(&host(), verb).unwrap();
}

fn end(s: &mut Script, apply: ApplyId) {
    let by = AgentId::parse("owner").unwrap();
    s.say(&host(), EndApply { apply, by, applied: 1, skipped: 0, errors: 0, broken_off: false }).unwrap();
}

fn state(s: &Script, task: &TaskId) -> ChangesState {
    s.task(task).changes.as_ref().unwrap().state()
}

fn discard(s: &mut Script, who: &Principal, task: &TaskId, files: u32) -> Result<(u32, bool), Refusal> {
    match s.say(who, DiscardChanges { task: task.clone(), files })? {
        Answer::Done(Reply::ChangesDiscarded(it)) => Ok((it.files, it.already)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn files_are_taken_in_one_by_one_and_an_undo_takes_them_out_again() {
    let (mut s, owner) = (Script::new(), person("owner"));
    let task = ended(&mut s, 2);
    assert_eq!(state(&s, &task), ChangesState::Kept);
    let first = begin(&mut s, &owner, &task, None).unwrap();
    tell(&mut s, first, &task, &["a"], false);
    // Told twice, as after a crash.
    tell(&mut s, first, &task, &["a"], false);
    end(&mut s, first);
    assert_eq!(state(&s, &task), ChangesState::PartlyTaken);
    let second = begin(&mut s, &owner, &task, None).unwrap();
    tell(&mut s, second, &task, &["b"], false);
    end(&mut s, second);
    assert_eq!(state(&s, &task), ChangesState::Taken);
    let undo = begin(&mut s, &owner, &task, Some(first)).unwrap();
    tell(&mut s, undo, &task, &["a"], true);
    end(&mut s, undo);
    assert_eq!(state(&s, &task), ChangesState::PartlyTaken);
}

#[test]
fn what_is_being_written_is_not_discarded_and_what_is_discarded_is_not_written() {
    let (mut s, owner) = (Script::new(), person("owner"));
    let task = ended(&mut s, 2);
    let apply = begin(&mut s, &owner, &task, None).unwrap();
    assert_eq!(discard(&mut s, &owner, &task, 2), Err(Refusal::ChangesInUse { apply }));
    // A daemon that has died in between owes it still.
    let owed: Vec<_> = s.out.effects.clone();
    assert!(owed.is_empty(), "a refusal owes nothing");
    tell(&mut s, apply, &task, &["a"], false);
    end(&mut s, apply);
    assert_eq!(discard(&mut s, &owner, &task, 2), Ok((2, false)));
    assert!(matches!(&s.out.effects[..], [(_, Effect::DropChanges { task: it })] if *it == task));
    assert!(s.events().iter().any(|it| matches!(it, EventKind::ChangesDiscarded { files: 2, .. })));
    assert_eq!(state(&s, &task), ChangesState::Discarded);
    assert_eq!(discard(&mut s, &owner, &task, 0), Ok((2, true)), "once more is the same as once");
    assert!(s.out.effects.is_empty() && s.events().is_empty());
    assert_eq!(begin(&mut s, &owner, &task, None), Err(Refusal::ChangesGone));
    // What was there before can come back nevertheless.
    begin(&mut s, &owner, &task, Some(apply)).unwrap();
}

#[test]
fn only_its_asker_or_a_person_discards_what_a_task_has_changed() {
    let mut s = Script::new();
    let task = ended(&mut s, 1);
    let refused = discard(&mut s, &client("bob"), &task, 1);
    assert!(matches!(refused, Err(Refusal::TaskNotYours { .. })), "{refused:?}");
    // A model that has left its name out speaks as the user: where it calls from is not known, or is an agent's.
    let nameless = caller("owner", Door::Own, &[Scope::Delegate, Scope::Operate], Proof::PeerUid);
    assert_eq!(discard(&mut s, &nameless, &task, 1), Err(Refusal::OutOfScope { needs: Scope::Operate }));
    assert_eq!(state(&s, &task), ChangesState::Kept);
    assert_eq!(discard(&mut s, &client("ada"), &task, 1), Ok((1, false)));
}

#[test]
fn a_task_without_changes_and_one_that_goes_on_have_nothing_to_be_discarded() {
    let mut s = Script::new();
    let task = ended(&mut s, 0);
    assert_eq!(discard(&mut s, &client("ada"), &task, 0), Err(Refusal::NoChanges));
    // An earlier version has kept files, and not said so.
    assert_eq!(discard(&mut s, &client("ada"), &task, 3), Ok((3, false)));
    let running = s.delegate(&client("ada"), "do", "cli");
    let refused = discard(&mut s, &client("ada"), &running, 0);
    assert!(matches!(refused, Err(Refusal::TaskCannot { .. })), "{refused:?}");
    let unknown = TaskId::parse("nowhere").unwrap();
    assert_eq!(discard(&mut s, &client("ada"), &unknown, 0), Err(Refusal::TaskNotFound));
}

#[test]
fn a_rule_that_asks_has_its_yes_in_a_token_that_only_a_person_gives_away() {
    use provost::domain::command::MintToken;
    let mut s = Script::new();
    let mint = |s: &mut Script, who: &Principal, name: &str| {
        let verb = MintToken {
            digest: Digest::of(name.as_bytes()),
            agent: AgentId::parse(name).unwrap(),
            scopes: provost::domain::Scopes::of(&[Scope::Apply]),
            ttl: provost::base::Ttl::minutes(5),
        };
        s.say(who, verb)
    };
    mint(&mut s, &person("owner"), "editor").unwrap();
    let operator = caller("owner", Door::Own, &[Scope::Join, Scope::Operate], Proof::PeerUid);
    let own = caller("editor2", Door::Own, &[Scope::Join], Proof::PeerUid);
    let bearer = caller("editor2", Door::Own, &[Scope::Join, Scope::Apply], Proof::Token);
    for (who, name) in [(&operator, "other"), (&own, "editor2"), (&bearer, "editor2")] {
        assert_eq!(mint(&mut s, who, name), Err(Refusal::OutOfScope { needs: Scope::Apply }), "{name}");
    }
}
