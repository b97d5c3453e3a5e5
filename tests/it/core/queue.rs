//! The queue of work, as scripts over the core: tasks that wait for others, priorities, pools, labels, and attempts.

mod attempts;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use provost::base::Slug;
use provost::base::limits::{AFTER_MAX, TASKS_LIVE_MAX};
use provost::base::{EffectId, Json, TaskId, Timestamp, Ttl};
use provost::domain::command::{BeginRun, Delegate, EndRun, Status};
use provost::domain::{
    CallOrigin, Change, Door, Effect, EventKind, Failure, Placement, PoolSetting, Principal, Priority, Proof,
    QueueEvent, Refusal, Report, Scope, Settings, Share, State, TaskState, Turn, Turns, Verdict,
};
use provost_test_equipment::callers::caller;

use crate::support::script::{Script, client, host, last_words, named, person};
use crate::support::storm::settings;

fn after(tasks: &[&TaskId]) -> Option<Box<Placement>> {
    let after = tasks.iter().map(|it| (*it).clone()).collect();
    Placement { after, ..Placement::default() }.unless_usual()
}

/// After the first of these tasks that succeeds.
fn after_any(tasks: &[&TaskId]) -> Option<Box<Placement>> {
    let after = tasks.iter().map(|it| (*it).clone()).collect();
    Placement { after, after_any: true, ..Placement::default() }.unless_usual()
}

fn at(priority: Priority) -> Option<Box<Placement>> {
    Placement { priority, ..Placement::default() }.unless_usual()
}

/// Delegates to the worker of the configuration, after these tasks.
fn waits(s: &mut Script, who: &Principal, earlier: &[&TaskId]) -> TaskId {
    let order = Delegate { placement: after(earlier), ..s.order("do", "cli") };
    let id = order.task.clone();
    s.say(who, order).unwrap();
    id
}

fn spawned(s: &Script) -> Vec<(EffectId, TaskId)> {
    let spawn = |(id, effect): &(EffectId, Effect)| match effect {
        Effect::SpawnWorker { task } => Some((*id, task.clone())),
        _ => None,
    };
    s.out.effects.iter().filter_map(spawn).collect()
}

/// Begins the run of a task that was just handed over.
fn begin(s: &mut Script, effect: EffectId, task: &TaskId) {
    let until = s.now.after(Ttl::minutes(5));
    s.say(&host(), BeginRun { effect, task: task.clone(), until }).unwrap();
}

fn end(s: &mut Script, effect: EffectId, task: &TaskId, code: i64) {
    let metadata = Some(Json::parse(&format!(r#"{{"exit_code":{code}}}"#)).unwrap());
    let report = Report { summary: format!("code {code}").into(), metadata, ..Report::default() };
    let failure = (code != 0).then(|| Failure::WorkerFailed { why: format!("exit code {code}").into() });
    ended(s, effect, task, failure, report);
}

fn ended(s: &mut Script, effect: EffectId, task: &TaskId, failure: Option<Failure>, report: Report) {
    let status = if failure.is_some() { Status::Failed } else { Status::Completed };
    let (task, changes, model_used) = (task.clone(), None, None);
    s.say(&host(), EndRun { effect, task, status, report, failure, model_used, changes }).unwrap();
}

fn why(s: &Script, task: &TaskId) -> String {
    s.task(task).notes.last().unwrap().report.summary.to_string()
}

fn refusal(s: &mut Script, who: &Principal, placement: Option<Box<Placement>>) -> String {
    let order = Delegate { placement, ..s.order("do", "cli") };
    match s.say(who, order) {
        Err(Refusal::NotPlaced { why }) => why.into(),
        other => panic!("{other:?}"),
    }
}

// Tasks that wait for others.

#[test]
fn a_task_begins_when_all_that_it_waits_for_have_succeeded() {
    let mut s = Script::new();
    let ada = client("ada");
    let (one, two) = (s.delegate(&ada, "do", "bob"), s.delegate(&ada, "do", "bob"));
    let last = waits(&mut s, &ada, &[&one, &two]);
    assert!(spawned(&s).is_empty(), "it has begun before its time");
    assert_eq!(s.state(&last), TaskState::Waiting);
    let bob = client("bob");
    s.report(&bob, &one, Status::Completed).unwrap();
    assert!(spawned(&s).is_empty() && s.state(&last) == TaskState::Waiting, "one of both is not enough");
    assert_eq!(s.task(&last).waits, std::slice::from_ref(&two));
    s.report(&bob, &two, Status::Completed).unwrap();
    assert_eq!(spawned(&s).into_iter().map(|it| it.1).collect::<Vec<_>>(), std::slice::from_ref(&last));
    assert!(s.state(&last).is_queued());
    let released = EventKind::Queue(QueueEvent::TaskReleased { task: last, after: two });
    assert!(s.events().contains(&&released), "{:?}", s.events());
}

#[test]
fn a_task_whose_predecessor_does_not_succeed_ends_with_a_reason_that_names_it() {
    for how in ["failed", "cancelled", "lost"] {
        let mut s = Script::new();
        let ada = client("ada");
        let one = s.delegate(&ada, "do", "cli");
        let (effect, _) = spawned(&s).remove(0);
        let next = waits(&mut s, &ada, &[&one]);
        let after_that = waits(&mut s, &ada, &[&next]);
        match how {
            "failed" => {
                begin(&mut s, effect, &one);
                end(&mut s, effect, &one, 3);
            }
            "cancelled" => drop(s.cancel(&ada, &one).unwrap()),
            _ => {
                begin(&mut s, effect, &one);
                ended(&mut s, effect, &one, Some(Failure::Lost), Report::default());
            }
        }
        assert_eq!(s.state(&next).status(), Status::Failed, "{how}");
        assert!(why(&s, &next).contains(one.as_str()) && why(&s, &next).contains(how), "{}", why(&s, &next));
        assert!(matches!(&s.task(&next).failure, Some(Failure::NotBegun { task, .. }) if *task == one));
        assert!(
            matches!(&s.task(&after_that).failure, Some(Failure::NotBegun { task, .. }) if *task == next)
        );
        assert!(s.core.state().tasks.is_empty(), "{how}: something goes on");
        assert!(spawned(&s).is_empty(), "{how}: something began");
        let mail = last_words(&s.receive_all(&ada));
        assert!(mail.iter().any(|(task, said)| *task == after_that && said == "failed"), "{mail:?}");
    }
}

#[test]
fn what_a_task_cannot_wait_for_is_refused_with_a_sentence() {
    let mut s = Script::new();
    let ada = client("ada");
    let order = s.order("do", "cli");
    let own = order.task.clone();
    let said = s.say(&ada, Delegate { placement: after(&[&own]), ..order });
    assert!(matches!(said, Err(Refusal::NotPlaced { why }) if why.contains("circle")));
    let unknown = TaskId::parse("nowhere").unwrap();
    assert!(refusal(&mut s, &ada, after(&[&unknown])).contains("no task nowhere"));
    let over = s.delegate(&ada, "do", "cli");
    s.cancel(&ada, &over).unwrap();
    assert!(refusal(&mut s, &ada, after(&[&over])).contains("was cancelled"));
    let many: Vec<TaskId> = (0..=AFTER_MAX).map(|_| s.delegate(&ada, "do", "bob")).collect();
    assert!(refusal(&mut s, &ada, after(&many.iter().collect::<Vec<_>>())).contains("at the most"));
}

#[test]
fn a_task_that_has_succeeded_already_is_waited_for_no_more() {
    let mut s = Script::new();
    let (ada, bob) = (client("ada"), client("bob"));
    let one = s.delegate(&ada, "do", "bob");
    s.report(&bob, &one, Status::Completed).unwrap();
    let next = waits(&mut s, &ada, &[&one]);
    assert!(s.state(&next).is_queued() && spawned(&s).len() == 1);
}

#[test]
fn what_a_worker_delegates_never_waits_for_the_workers_own_task() {
    let mut s = Script::new();
    let (ada, bob) = (client("ada"), client("bob"));
    let above = s.delegate(&ada, "do", "bob");
    s.receive_all(&bob);
    assert!(refusal(&mut s, &bob, after(&[&above])).contains("circle"));
    // Nor by way of a third task.
    let between = waits(&mut s, &ada, &[&above]);
    assert!(refusal(&mut s, &bob, after(&[&between])).contains("circle"));
    let beside = s.delegate(&ada, "do", "eve");
    waits(&mut s, &bob, &[&beside]);
}

#[test]
fn an_agent_in_a_jail_does_not_learn_of_the_tasks_of_others() {
    let mut s = Script::new();
    let one = s.delegate(&client("ada"), "do", "bob");
    let jailed = caller("cli", Door::Worker, &[Scope::Delegate], Proof::Jailed);
    let unknown = TaskId::parse("nowhere").unwrap();
    let [seen, unseen] =
        [&one, &unknown].map(|it| refusal(&mut s, &jailed, after(&[it])).replace(it.as_str(), "T"));
    assert_eq!(seen, unseen);
}

#[test]
fn a_waiting_task_can_be_cancelled_and_stops_nothing() {
    let mut s = Script::new();
    let ada = client("ada");
    let one = s.delegate(&ada, "do", "bob");
    let next = waits(&mut s, &ada, &[&one]);
    s.cancel(&ada, &next).unwrap();
    assert!(s.out.effects.is_empty(), "there is no run to stop");
    assert_eq!(s.state(&next).status(), Status::Cancelled);
    s.report(&client("bob"), &one, Status::Completed).unwrap();
    assert!(spawned(&s).is_empty());
}

#[test]
fn a_task_that_waits_for_approval_too_begins_when_it_has_both() {
    let mut s = Script::new();
    let (ada, bob) = (client("ada"), client("bob"));
    let ask = |s: &mut Script, earlier: &TaskId| {
        let order = Delegate { placement: after(&[earlier]), ..s.order("ask-human", "cli") };
        let id = order.task.clone();
        let Ok(provost::domain::Answer::Parked(approval)) = s.say(&ada, order) else { panic!("not parked") };
        (id, approval)
    };
    let one = s.delegate(&ada, "do", "bob");
    let (granted_first, approval) = ask(&mut s, &one);
    s.answer(&person("owner"), approval, Verdict::Granted).unwrap();
    assert_eq!(s.state(&granted_first), TaskState::Waiting);
    let (granted_last, approval) = ask(&mut s, &one);
    s.report(&bob, &one, Status::Completed).unwrap();
    assert!(s.state(&granted_first).is_queued());
    assert!(matches!(s.state(&granted_last), TaskState::Awaiting { .. }));
    s.answer(&person("owner"), approval, Verdict::Granted).unwrap();
    assert!(s.state(&granted_last).is_queued());
    // And a question about what can never begin is asked no longer.
    let two = s.delegate(&ada, "do", "bob");
    let (never, _) = ask(&mut s, &two);
    s.cancel(&ada, &two).unwrap();
    assert_eq!(s.state(&never).status(), Status::Failed);
    assert!(s.core.state().approvals.iter().next().is_none());
}

#[test]
fn questions_that_expire_together_are_settled_once_each() {
    let mut s = Script::new();
    let ada = client("ada");
    let ask = |s: &mut Script, placement| {
        let order = Delegate { placement, ..s.order("ask-human", "cli") };
        let id = order.task.clone();
        s.say(&ada, order).unwrap();
        id
    };
    let one = ask(&mut s, None);
    let two = ask(&mut s, after(&[&one]));
    s.pass(Ttl::minutes(24 * 60));
    let count = |is_meant: &dyn Fn(&Change) -> bool| s.out.changes.iter().filter(|it| is_meant(it)).count();
    assert_eq!(count(&|it| matches!(it, Change::DropApproval(_))), 2);
    for task in [one, two] {
        let ends = count(&|it| matches!(it, Change::FinishTask(it) if *it.id() == task));
        assert_eq!(ends, 1, "{task}");
    }
}

#[test]
fn waiting_survives_a_start_and_memory_is_what_was_stored() {
    let mut s = Script::new();
    let (ada, bob) = (client("ada"), client("bob"));
    let one = s.delegate(&ada, "do", "bob");
    let mut stored = s.out.changes.clone();
    let next = waits(&mut s, &ada, &[&one]);
    stored.extend(s.out.changes.clone());
    let mut read = State::new(s.core.state().settings.clone());
    stored.iter().filter(|it| it.is_stored()).for_each(|it| read.apply(it));
    assert_eq!(read.tasks, s.core.state().tasks);
    s.restart_after(Ttl::minutes(30), &stored);
    s.register(&bob);
    s.report(&bob, &one, Status::Completed).unwrap();
    assert!(s.state(&next).is_queued());
    // The end and what follows from it are one commit.
    let finishes = s.out.changes.iter().any(|it| matches!(it, Change::FinishTask(task) if *task.id() == one));
    assert!(finishes && spawned(&s).len() == 1);
}

/// How long each of many tasks in a row may take to end with the first, in a build without optimisation beside other tests. It takes
/// an eighth of a millisecond; 3 ms when an end looked at all messages that wait.
const ENDS_WITHIN: Duration = Duration::from_millis(2);

#[test]
fn ten_thousand_tasks_in_a_row_end_with_the_first() {
    let mut settings = settings();
    settings.tasks_per_agent = 10_000;
    let mut s = Script::with(settings);
    let ada = client("ada");
    let first = s.delegate(&ada, "do", "bob");
    let mut last = first.clone();
    let begun = Instant::now();
    while s.core.state().tasks.len() < TASKS_LIVE_MAX {
        last = waits(&mut s, &ada, &[&last]);
    }
    eprintln!("{TASKS_LIVE_MAX} tasks in a row were delegated in {:?}", begun.elapsed());
    let begun = Instant::now();
    s.cancel(&ada, &first).unwrap();
    let took = begun.elapsed();
    eprintln!("they ended with the first in {took:?}");
    assert!(s.core.state().tasks.is_empty(), "{} are left", s.core.state().tasks.len());
    assert!(matches!(&s.task(&last).failure, Some(Failure::NotBegun { .. })));
    assert!(took < ENDS_WITHIN * u32::try_from(TASKS_LIVE_MAX).unwrap(), "{took:?}");
}

// Priorities.

#[test]
fn only_the_operator_and_agents_that_are_named_give_a_high_priority() {
    let mut named_too = settings();
    named_too.high_priority.insert(named("ada"));
    let mut s = Script::with(named_too);
    let high = at(Priority::High);
    // A name without proof is any process's.
    assert!(refusal(&mut s, &client("ada"), high.clone()).contains("high priority"));
    let proven = caller("ada", Door::Own, &[Scope::Delegate], Proof::Token);
    let other = caller("bob", Door::Own, &[Scope::Delegate], Proof::Token);
    assert!(refusal(&mut s, &other, high.clone()).contains("high priority"));
    // A model that has left its name out: the user's process, below an agent as far as that is known.
    let nameless = caller("user", Door::Own, &[Scope::Delegate, Scope::Operate], Proof::PeerUid);
    assert!(refusal(&mut s, &nameless, high.clone()).contains("high priority"));
    // A script of the user's in whose session no agent has spoken.
    let rights = &[Scope::Delegate, Scope::Operate];
    let script = caller("user", Door::Own, rights, Proof::PeerUid).coming_from(Some(CallOrigin::untold()));
    for who in [proven, script, person("owner")] {
        let order = Delegate { placement: high.clone(), ..s.order("do", "cli") };
        s.say(&who, order).unwrap();
    }
    for priority in [Priority::Low, Priority::Normal] {
        let order = Delegate { placement: at(priority), ..s.order("do", "cli") };
        s.say(&client("bob"), order).unwrap();
    }
}

#[test]
fn a_request_that_asks_for_nothing_special_is_the_one_that_it_has_always_been() {
    let mut s = Script::new();
    let order = s.order("do", "cli");
    assert_eq!(at(Priority::Normal), None);
    assert!(!serde_json::to_string(&order).unwrap().contains("placement"));
    assert_ne!(order.digest(), Delegate { placement: at(Priority::Low), ..order.clone() }.digest());
}

fn turn(asker: &str, number: u32, priority: Priority) -> Turn {
    Turn {
        task: TaskId::parse(&format!("{asker}-{number}")).unwrap(),
        priority,
        asker: Share::Name(Slug::parse(asker).unwrap()),
        since: Timestamp(i64::from(number)),
        worker: (named("cli"), None),
        pool: None,
    }
}

/// The tasks in the order in which one place is given to them.
fn order_of(turns: &mut Turns, names: &mut std::collections::BTreeMap<u64, String>) -> Vec<String> {
    let mut order = Vec::new();
    while let Some(number) = turns.take_next() {
        order.push(names.remove(&number).unwrap());
        turns.leave(number);
    }
    order
}

#[test]
fn the_order_is_priority_then_askers_in_turn_then_age() {
    let mut turns = Turns::new(1);
    let mut names = std::collections::BTreeMap::new();
    let mut join = |turns: &mut Turns, it: Turn| {
        let name = it.task.to_string();
        names.insert(turns.join(it), name);
    };
    for number in 1..=4 {
        join(&mut turns, turn("ada", number, Priority::Normal));
    }
    join(&mut turns, turn("bob", 5, Priority::Normal));
    join(&mut turns, turn("bob", 6, Priority::Normal));
    join(&mut turns, turn("eve", 7, Priority::Low));
    join(&mut turns, turn("ada", 8, Priority::High));
    let order = order_of(&mut turns, &mut names);
    assert_eq!(order, ["ada-8", "bob-5", "ada-1", "bob-6", "ada-2", "ada-3", "ada-4", "eve-7"]);
}

#[test]
fn an_agent_with_five_hundred_waiting_tasks_starves_no_other_one() {
    let mut turns = Turns::new(1);
    for number in 0..500 {
        turns.join(turn("ada", number, Priority::Normal));
    }
    // The other one has one task at a time, and comes again as soon as that has ended: each has every second turn.
    let mut others = turns.join(turn("bob", 600, Priority::Normal));
    let mut got = [0, 0];
    for _ in 0..200 {
        let number = turns.take_next().unwrap();
        turns.leave(number);
        if number == others {
            got[1] += 1;
            others = turns.join(turn("bob", 600, Priority::Normal));
        } else {
            got[0] += 1;
        }
    }
    assert_eq!(got, [100, 100]);
}

#[test]
fn a_full_worker_or_pool_keeps_no_other_task_from_a_free_place() {
    let mut turns = Turns::new(3);
    let of = |number, worker: &str, pool: Option<&str>| Turn {
        worker: (named(worker), Some(1)),
        pool: pool.map(|it| (it.into(), 1)),
        ..turn("ada", number, Priority::Normal)
    };
    let one = turns.join(of(1, "slow", Some("p")));
    let two = turns.join(of(2, "slow", Some("p")));
    let three = turns.join(of(3, "other", Some("p")));
    let four = turns.join(of(4, "free", None));
    assert_eq!((turns.take_next(), turns.take_next(), turns.take_next()), (Some(one), Some(four), None));
    turns.leave(one);
    assert_eq!((turns.take_next(), turns.take_next()), (Some(two), None));
    turns.leave(two);
    assert_eq!(turns.take_next(), Some(three));
    assert_eq!(turns.waiting(), 0);
}

// Pools and labels.

fn with_pool(concurrent: u32, waiting: u32) -> Settings {
    let mut settings = settings();
    let setting = settings.workers.get(&named("cli")).cloned().unwrap();
    settings.workers.insert(named("cli-2"), setting);
    let workers = BTreeSet::from([named("cli"), named("cli-2")]);
    settings.pools.insert("build".into(), PoolSetting { workers, concurrent, waiting });
    settings
}

#[test]
fn no_more_tasks_of_a_pool_run_at_once_than_it_says() {
    let mut s = Script::with(with_pool(1, 10));
    let ada = client("ada");
    let one = s.delegate(&ada, "do", "cli");
    let (first, _) = spawned(&s).remove(0);
    let two = s.delegate(&ada, "do", "cli-2");
    let (second, _) = spawned(&s).remove(0);
    begin(&mut s, first, &one);
    let until = s.now.after(Ttl::minutes(5));
    let said = s.say(&host(), BeginRun { effect: second, task: two.clone(), until });
    assert!(matches!(said, Err(Refusal::NotPlaced { why }) if why.contains("pool build")));
    end(&mut s, first, &one, 0);
    begin(&mut s, second, &two);
}

#[test]
fn a_pool_refuses_what_is_more_than_may_wait() {
    let mut s = Script::with(with_pool(1, 2));
    for worker in ["cli", "cli-2"] {
        s.delegate(&client("ada"), "do", worker);
    }
    let order = s.order("do", "cli");
    let said = s.say(&client("bob"), order);
    assert!(matches!(&said, Err(Refusal::Quota { .. })), "{said:?}");
}

#[test]
fn a_pool_that_is_asked_for_has_to_have_the_worker() {
    let mut s = Script::with(with_pool(1, 10));
    let of = |pool: &str| Placement { pool: Some(pool.into()), ..Placement::default() }.unless_usual();
    assert!(refusal(&mut s, &client("ada"), of("none")).contains("no pool none"));
    let order = Delegate { placement: of("build"), ..s.order("do", "cli") };
    s.say(&client("ada"), order).unwrap();
    let order = Delegate { placement: of("build"), ..s.order("do", "polls") };
    assert!(matches!(s.say(&client("ada"), order), Err(Refusal::NotPlaced { .. })));
}

#[test]
fn a_label_that_no_host_has_is_refused() {
    let mut labelled = settings();
    labelled.labels.insert("linux".into());
    let mut s = Script::with(labelled);
    let on = |label: &str| Placement { on: Some(label.into()), ..Placement::default() }.unless_usual();
    let said = refusal(&mut s, &client("ada"), on("gpu"));
    assert!(said.contains("no host has the label gpu") && said.contains("linux"), "{said}");
    let order = Delegate { placement: on("linux"), ..s.order("do", "cli") };
    s.say(&client("ada"), order).unwrap();
}

#[test]
fn after_any_the_first_success_is_enough_and_only_the_last_failure_ends_it() {
    let mut s = Script::with(settings());
    let delegate = |s: &mut Script, placement| {
        let order = Delegate { placement, ..s.order("do", "cli") };
        let id = order.task.clone();
        s.say(&client("ada"), order).unwrap();
        id
    };
    let mut begun = Vec::new();
    for _ in 0..4 {
        delegate(&mut s, None);
        begun.extend(spawned(&s).last().cloned());
    }
    let firsts: Vec<TaskId> = begun.iter().map(|(_, task)| task.clone()).collect();
    let one_of = delegate(&mut s, after_any(&[&firsts[0], &firsts[1]]));
    let none_of = delegate(&mut s, after_any(&[&firsts[0], &firsts[2]]));
    for ((effect, task), code) in begun.iter().zip([1, 0, 1, 0]) {
        begin(&mut s, *effect, task);
        let state = |s: &Script, id: &TaskId| s.core.state().tasks.get(id).map(|it| it.state);
        let before = state(&s, &none_of);
        end(&mut s, *effect, task, code);
        match task {
            it if *it == firsts[0] => {
                assert_eq!(state(&s, &one_of), Some(TaskState::Waiting), "another one may succeed");
                assert_eq!(state(&s, &none_of), before);
            }
            it if *it == firsts[1] => assert!(state(&s, &one_of).unwrap().is_queued()),
            it if *it == firsts[2] => {
                assert_eq!(state(&s, &none_of), None, "it has ended with the last of them")
            }
            _ => {}
        }
    }
    // Of one that has succeeded already nothing is waited for.
    let late = delegate(&mut s, after_any(&[&firsts[3], &one_of]));
    assert!(s.core.state().tasks.get(&late).unwrap().state.is_queued());
}
