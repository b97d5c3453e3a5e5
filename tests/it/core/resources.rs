//! Resources as scripts over the core: their names, what is counted, who waits for whom, and what workers need.

use std::collections::BTreeMap;

use provost::base::limits::RESOURCES_OF_ONE_MAX;
use provost::base::{AgentId, Fence, Resource, SymbolPath, TaskId, Ticket, Ttl};
use provost::domain::command::{
    AcquireLock, Apart, Leave, Locked, NeedsTaken, ReapLocks, ReleaseLock, TakeNeeds,
};
use provost::domain::{
    Answer, AwaitedNeeds, EventKind, Principal, ProcessMark, Refusal, Reply, Settings, TaskState, view::View,
};
use provost_test_equipment::callers::from_tree;

use crate::support::coordinating::{acquire, at, held, release};
use crate::support::script::{Said, Script, client, host, named, person};
use crate::support::storm::{agent, settings};

/// Settings with two of `@gpu`, and a worker `cli` that needs something.
fn with_needs(needs: &[&str]) -> Settings {
    let mut settings = settings();
    settings.counted = BTreeMap::from([("gpu".into(), 2)]);
    let worker = settings.workers.get_mut(&agent("cli")).unwrap();
    worker.needs = needs.iter().map(|it| Resource::parse(it).unwrap()).collect();
    settings
}

fn waits(name: &str) -> AcquireLock {
    AcquireLock { wait: Some(Ttl::minutes(5)), ..acquire(name) }
}

fn of_process(pid: u32, name: &str) -> AcquireLock {
    let process = Some(ProcessMark { pid, started: 1 });
    AcquireLock { process, apart: Apart::FromOtherProcesses, ..acquire(name) }
}

fn ticket(said: Said) -> Ticket {
    match said.unwrap() {
        Answer::Done(Reply::Locked(Locked::Queued { ticket, .. })) => ticket,
        other => panic!("{other:?}"),
    }
}

fn rival(said: Said) -> AgentId {
    match said {
        Err(Refusal::LockConflict(rival)) => rival.by.clone(),
        other => panic!("{other:?}"),
    }
}

fn take(s: &mut Script, task: &TaskId) -> Result<Option<String>, Refusal> {
    match s.say(&host(), TakeNeeds { task: task.clone(), lasts: Ttl::minutes(10) })? {
        Answer::Done(Reply::NeedsTaken(NeedsTaken::Held)) => Ok(None),
        Answer::Done(Reply::NeedsTaken(NeedsTaken::Waits { wanted, by })) => {
            Ok(Some(format!("{wanted} {}", by.by)))
        }
        other => panic!("{other:?}"),
    }
}

fn live(s: &Script) -> Vec<String> {
    let locks = s.core.state().locks.iter().filter(|it| !it.lapsed);
    locks.map(|it| format!("{} {}", it.shown(), it.holder)).collect()
}

#[test]
fn a_resource_has_one_spelling_and_a_file_of_its_name_is_another_thing() {
    for text in ["@db:test", "@DB:test", "@db:TEST"] {
        assert_eq!(at(text).to_string(), "@db:test", "{text}");
        assert!(at(text).is_resource());
    }
    assert_eq!(at("@port:05432"), at("@port:5432"));
    assert_eq!(at("@deploy:staging/eu").to_string(), "@deploy:staging/eu");
    assert_eq!(at("@db:базатест").to_string(), "@db:базатест");
    // Doors of protocols that have files alone read the same text as a file.
    let file = SymbolPath::parse("@db:test").unwrap();
    assert!(!file.is_resource() && file != at("@db:test"));
    assert_eq!(file.to_string(), "./@db:test");
    assert_eq!(at("./@db:test"), file);
    assert_eq!(at("@types/node.ts:Buffer").file().as_str(), "@types/node.ts");
    // Both come back from a store as what they were.
    for path in
        [file, at("@db:test"), at("@gpu"), at("@types/node.ts:f"), SymbolPath::of_units("gpu", Fence(12))]
    {
        let text = serde_json::to_string(&path).unwrap();
        assert_eq!(serde_json::from_str::<SymbolPath>(&text).unwrap(), path, "{text}");
    }
    assert_eq!(serde_json::from_str::<SymbolPath>("\"@a.ts:f\"").unwrap().file().as_str(), "@a.ts");
    let mut s = Script::new();
    held(s.say(&client("ada"), acquire("@db:test")));
    held(s.say(&client("bob"), acquire("./@db:test")));
    assert_eq!(live(&s), ["@db:test ada", "./@db:test bob"]);
}

#[test]
fn names_of_the_hostile_are_refused_and_never_taken_for_others() {
    let long = format!("@db:{}", "x".repeat(10_000));
    let kind = format!("@{}:x", "k".repeat(10_000));
    let bad = [
        "@",
        "@:x",
        "@db:",
        "@-db:x",
        "@1:x",
        "@d b:x",
        "@db:a b",
        "@db:\u{202E}tset",
        "@db:te\u{200B}st",
        "@db:t\u{0435}st",
        "@db:te\u{0301}st",
        "@d\u{0430}tabase:x",
        "@db:x\n@db:y",
        "@db:\u{1b}[2J",
        "@db:#1",
        "@gpu#12",
        "@db:@x",
        "@db:.",
        "@db:x/",
        "@db:..",
        "@db:/etc",
        "@port:0",
        "@port:65536",
        "@port:http",
        "@port",
        "@port:-1",
        "@db:x\u{0}",
        "@db:\u{FF54}est",
        "@db\\x",
        &long,
        &kind,
    ];
    for text in bad {
        // A file is what has a slash before its colon, and nothing that a person took for a resource.
        let read = SymbolPath::parse_lockable(text);
        let is_file = read.as_ref().is_ok_and(|it| !it.is_resource() && text.contains(['/', '\\']));
        assert!(read.is_err() || is_file, "{text:?}: {read:?}");
        assert!(Resource::parse(text).is_err(), "{text:?}");
        let why = Resource::parse(text).unwrap_err().to_string();
        assert!(why.len() < 300 && !why.contains(['\u{1b}', '\u{202E}', '\n']), "{why:?}");
    }
}

#[test]
fn a_resource_is_held_waited_for_and_released_like_a_symbol_and_names_do_not_enclose_each_other() {
    let mut s = Script::new();
    let (ada, bob, eve) = (client("ada"), client("bob"), client("eve"));
    let (first, warnings) = held(s.say(&ada, acquire("@deploy:eu")));
    assert!(warnings.is_empty());
    held(s.say(&bob, acquire("@deploy:eu.west")));
    held(s.say(&bob, acquire("@deploy")));
    assert_eq!(rival(s.say(&eve, acquire("@deploy:eu"))), agent("ada"));
    let waiting = ticket(s.say(&eve, waits("@deploy:eu")));
    ticket(s.say(&bob, waits("@deploy:eu")));
    s.say(&ada, release("@deploy:eu")).unwrap();
    // First come, first served.
    assert_eq!(rival(s.say(&client("zoe"), acquire("@deploy:eu"))), agent("eve"));
    let (next, _) = held(s.say(&eve, AcquireLock { ticket: Some(waiting), ..waits("@deploy:eu") }));
    assert!(next.fence > first.fence);
    let stolen = s.say(&ada, release("@deploy:eu"));
    assert!(matches!(stolen, Err(Refusal::LockNotHeld { .. })), "{stolen:?}");
    s.say(&person("me"), ReleaseLock { force: true, ..release("@deploy:eu") }).unwrap();
    assert_eq!(live(&s), ["@deploy:eu.west bob", "@deploy bob"]);
}

#[test]
fn a_circle_through_a_symbol_and_a_resource_is_refused() {
    let mut s = Script::new();
    held(s.say(&client("ada"), acquire("a.ts:f")));
    held(s.say(&client("bob"), acquire("@db:test")));
    ticket(s.say(&client("ada"), waits("@db:test")));
    match s.say(&client("bob"), waits("a.ts:f")) {
        Err(Refusal::WouldDeadlock { circle, .. }) => assert_eq!(circle, [agent("bob"), agent("ada")]),
        other => panic!("{other:?}"),
    }
}

#[test]
fn of_a_counted_kind_no_more_are_held_than_there_are_and_impossible_numbers_are_refused() {
    let mut s = Script::with(with_needs(&[]));
    let (ada, bob, eve) = (client("ada"), client("bob"), client("eve"));
    for name in ["@gpu:0", "@gpu:3", "@gpu:4294967296", "@gpu:99999999999999999999", "@gpu:big"] {
        match s.say(&ada, acquire(name)) {
            Err(refusal @ Refusal::NotSoMany { of: 2, .. }) => {
                assert!(refusal.to_string().starts_with("there are 2 of @gpu"), "{refusal}");
            }
            other => panic!("{name}: {other:?}"),
        }
    }
    held(s.say(&ada, acquire("@gpu")));
    held(s.say(&bob, acquire("@gpu:1")));
    assert_eq!(rival(s.say(&eve, acquire("@gpu"))), agent("ada"));
    let two = ticket(s.say(&eve, waits("@gpu:2")));
    s.say(&ada, release("@gpu")).unwrap();
    // One is free, and who waits for two from before is not passed by.
    assert_eq!(rival(s.say(&client("zoe"), acquire("@gpu"))), agent("eve"));
    assert_eq!(ticket(s.say(&eve, AcquireLock { ticket: Some(two), ..waits("@gpu:2") })), two);
    s.say(&bob, release("@gpu:1")).unwrap();
    held(s.say(&eve, AcquireLock { ticket: Some(two), ..waits("@gpu:2") }));
    assert_eq!(live(&s), ["@gpu:2 eve"]);
    // Less of it is always to be had, and the rest is free.
    held(s.say(&eve, acquire("@gpu")));
    held(s.say(&bob, acquire("@gpu")));
    assert_eq!(rival(s.say(&eve, acquire("@gpu:2"))), agent("bob"));
    // Of what is not counted, a number is a name.
    held(s.say(&ada, acquire("@slot:2")));
    held(s.say(&bob, acquire("@slot:1")));
}

#[test]
fn waiting_for_one_of_several_is_no_circle_as_long_as_one_of_them_may_be_given_back() {
    let mut s = Script::with(with_needs(&[]));
    let (ada, bob, eve) = (client("ada"), client("bob"), client("eve"));
    held(s.say(&ada, acquire("@gpu")));
    held(s.say(&bob, acquire("@gpu")));
    held(s.say(&eve, acquire("@db:x")));
    ticket(s.say(&ada, waits("@db:x")));
    // Ada waits for eve, but bob may give a unit back.
    let one = ticket(s.say(&eve, waits("@gpu")));
    s.say(&eve, provost::domain::command::LeaveQueue { ticket: one }).unwrap();
    // Both are needed: that of ada never comes.
    let said = s.say(&eve, waits("@gpu:2"));
    assert!(matches!(said, Err(Refusal::WouldDeadlock { .. })), "{said:?}");
    // Once bob waits for eve, too, one is not to be had either.
    ticket(s.say(&bob, waits("@db:x")));
    let said = s.say(&eve, waits("@gpu"));
    assert!(matches!(said, Err(Refusal::WouldDeadlock { .. })), "{said:?}");
    // Two that have one each, and both want two.
    let mut s = Script::with(with_needs(&[]));
    held(s.say(&ada, acquire("@gpu")));
    held(s.say(&bob, acquire("@gpu")));
    ticket(s.say(&ada, waits("@gpu:2")));
    let said = s.say(&bob, waits("@gpu:2"));
    assert!(matches!(said, Err(Refusal::WouldDeadlock { .. })), "{said:?}");
}

#[test]
fn several_commands_of_one_agent_take_turns_and_each_gives_back_its_own() {
    let mut s = Script::with(with_needs(&[]));
    let ada = client("ada");
    let (first, _) = held(s.say(&ada, of_process(7, "@db:test")));
    assert_eq!(rival(s.say(&ada, of_process(8, "@db:test"))), agent("ada"));
    let waiting =
        ticket(s.say(&ada, AcquireLock { wait: Some(Ttl::minutes(1)), ..of_process(8, "@db:test") }));
    let (renewed, _) = held(s.say(&ada, of_process(7, "@db:test")));
    assert_eq!(renewed.fence, first.fence, "a renewal is not in its own waiter's way");
    let fence = Some(first.fence);
    s.say(&ada, ReleaseLock { fence, ..release("@db:test") }).unwrap();
    let again = AcquireLock { ticket: Some(waiting), ..of_process(8, "@db:test") };
    let (second, _) = held(s.say(&ada, again));
    // The first one's late release frees nothing of the second's.
    let late = s.say(&ada, ReleaseLock { fence, ..release("@db:test") });
    assert!(matches!(late, Err(Refusal::LockNotHeld { .. })), "{late:?}");
    let ended = ReapLocks { locks: vec![(second.at.clone(), second.fence)], why: "gone".into() };
    s.say(&host(), ended).unwrap();
    // Of a counted kind each has its own, to the last one.
    let (one, _) = held(s.say(&ada, of_process(7, "@gpu")));
    held(s.say(&ada, of_process(8, "@gpu")));
    assert_eq!(rival(s.say(&ada, of_process(9, "@gpu"))), agent("ada"));
    s.say(&ada, ReleaseLock { fence: Some(one.fence), ..release("@gpu") }).unwrap();
    held(s.say(&ada, of_process(9, "@gpu")));
    // What has to be new renews nothing.
    held(s.say(&ada, acquire("@port:3000")));
    let fresh = AcquireLock { apart: Apart::FromAll, ..acquire("@port:3000") };
    assert_eq!(rival(s.say(&ada, fresh)), agent("ada"));
}

#[test]
fn one_tree_of_processes_does_not_take_all_ports_under_many_names() {
    let mut s = Script::new();
    let mut taken = 0;
    for port in 3_000..3_600 {
        let who = from_tree(client(&format!("n{}", port % 7)), 1);
        match s.say(&who, acquire(&format!("@port:{port}"))) {
            Err(Refusal::Quota { .. }) => break,
            said => drop(held(said)),
        }
        taken += 1;
    }
    assert_eq!(taken, RESOURCES_OF_ONE_MAX);
    held(s.say(&from_tree(client("n1"), 1), acquire("a.ts:f")));
    held(s.say(&from_tree(client("bob"), 2), acquire("@port:3599")));
}

#[test]
fn a_lease_on_a_resource_ends_with_its_time_and_a_wait_with_its_own() {
    let mut s = Script::with(with_needs(&[]));
    let (ada, bob) = (client("ada"), client("bob"));
    held(s.say(&ada, AcquireLock { ttl: Ttl::minutes(5), ..acquire("@db:x") }));
    held(s.say(&ada, AcquireLock { ttl: Ttl::minutes(5), ..acquire("@gpu:2") }));
    let wait = AcquireLock { wait: Some(Ttl::minutes(1)), ..acquire("@gpu") };
    let one = ticket(s.say(&bob, wait.clone()));
    s.pass(Ttl::minutes(1));
    assert_eq!(rival(s.say(&bob, AcquireLock { ticket: Some(one), ..wait })), agent("ada"));
    s.pass(Ttl::minutes(5));
    assert_eq!(live(&s), [""; 0]);
    held(s.say(&bob, acquire("@gpu:2")));
    held(s.say(&bob, acquire("@db:x")));
}

#[test]
fn a_lease_on_git_s_index_that_ends_with_no_process_is_short() {
    let mut s = Script::new();
    let ada = client("ada");
    let week = |name: &str| AcquireLock { ttl: Ttl::minutes(7 * 24 * 60), ..acquire(name) };
    let most = s.now.after(Ttl::minutes(10));
    for name in ["@git:index", "@git:index:tree-1a2b3c4d"] {
        let (lock, _) = held(s.say(&ada, week(name)));
        assert!(lock.expires_at <= most.after(Ttl::seconds_clamped(1)), "{name}: {}", lock.expires_at);
        let (lock, _) = held(s.say(&ada, AcquireLock { keeps_longer: true, ..week(name) }));
        assert!(lock.expires_at <= most.after(Ttl::seconds_clamped(1)), "{name}: {}", lock.expires_at);
    }
    // With a process it lasts as long as was asked for, and so does everything else.
    for order in
        [AcquireLock { process: of_process(7, "@db:x").process, ..week("@git:index") }, week("@db:x")]
    {
        let (lock, _) = held(s.say(&ada, order));
        assert!(lock.expires_at > most.after(Ttl::minutes(60)), "{}", lock.expires_at);
    }
    // Once its process is another session's matter, its time is short, too.
    let in_session = AcquireLock { in_session: true, keeps_longer: true, ..week("@git:index") };
    let (lock, _) = held(s.say(&ada, in_session));
    assert!(lock.expires_at <= most.after(Ttl::seconds_clamped(1)), "{}", lock.expires_at);
}

#[test]
fn two_needs_of_one_counted_kind_are_one_and_wait_no_longer_than_their_worker_does() {
    let mut settings = with_needs(&["@gpu", "@gpu:1"]);
    settings.workers.get_mut(&agent("cli")).unwrap().needs_wait = Ttl::minutes(2);
    let mut s = Script::with(settings);
    let bob = client("bob");
    held(s.say(&bob, acquire("@gpu")));
    let task = s.delegate(&client("ada"), "do it", "cli");
    assert!(take(&mut s, &task).unwrap().is_some());
    let until: Vec<_> = s.core.state().locks.waiters().map(|it| (it.since, it.until)).collect();
    assert!(until.iter().all(|(since, until)| *until == since.after(Ttl::minutes(2))), "{until:?}");
    s.say(&bob, Leave { intents: false, process: None }).unwrap();
    assert_eq!(take(&mut s, &task).unwrap(), None, "no place of its own is in its way");
    assert_eq!(live(&s), ["@gpu:2 cli"]);
    let mut s = Script::with(with_needs(&["@gpu", "@gpu:2"]));
    let order = s.order("do it", "cli");
    let said = s.say(&client("ada"), order);
    assert!(matches!(said, Err(Refusal::NotSoMany { of: 2, .. })), "{said:?}");
}

fn worker(task: &TaskId) -> Principal {
    provost::auth::role::worker(named("cli"), task)
}

#[test]
fn a_task_waits_for_all_that_its_worker_needs_and_holds_nothing_meanwhile() {
    let mut s = Script::with(with_needs(&["@db:test", "@gpu:2"]));
    let (ada, bob) = (client("ada"), client("bob"));
    held(s.say(&bob, acquire("@gpu")));
    let task = s.delegate(&ada, "do it", "cli");
    assert_eq!(take(&mut s, &task).unwrap().as_deref(), Some("@gpu:2 bob"));
    assert_eq!(live(&s), ["@gpu:1 bob"].map(|it| it.replace(":1", "")));
    let awaited = AwaitedNeeds.look(s.now, s.core.state());
    assert_eq!(
        (awaited.len(), &*awaited[0].resource, awaited[0].by.clone()),
        (1, "@gpu:2", Some(agent("bob")))
    );
    // Meanwhile others may have what it does not wait for; then it waits for that, too.
    held(s.say(&bob, acquire("@db:test")));
    take(&mut s, &task).unwrap();
    assert_eq!(AwaitedNeeds.look(s.now, s.core.state()).len(), 2);
    s.say(&bob, Leave { intents: false, process: None }).unwrap();
    assert_eq!(take(&mut s, &task).unwrap(), None);
    assert_eq!(live(&s), ["@db:test cli", "@gpu:2 cli"]);
    assert!(AwaitedNeeds.look(s.now, s.core.state()).is_empty());
    // A second one of the same worker waits for the first one's end, and goes on with it.
    let second = s.delegate(&bob, "do it", "cli");
    assert_eq!(take(&mut s, &second).unwrap().as_deref(), Some("@db:test cli"));
    s.cancel(&ada, &task).unwrap();
    assert_eq!(take(&mut s, &second).unwrap(), None);
    s.cancel(&bob, &second).unwrap();
    assert_eq!(live(&s), [""; 0]);
    assert!(matches!(take(&mut s, &second), Err(Refusal::TaskFinished)));
}

#[test]
fn what_a_task_waits_for_ends_with_it_and_who_comes_behind_it_moves_up() {
    let mut s = Script::with(with_needs(&["@db:test"]));
    held(s.say(&client("bob"), acquire("@db:test")));
    let task = s.delegate(&client("ada"), "do it", "cli");
    take(&mut s, &task).unwrap();
    let behind = ticket(s.say(&client("eve"), waits("@db:test")));
    s.say(&client("bob"), release("@db:test")).unwrap();
    let again = AcquireLock { ticket: Some(behind), ..waits("@db:test") };
    assert_eq!(ticket(s.say(&client("eve"), again.clone())), behind, "the task is before it");
    s.cancel(&client("ada"), &task).unwrap();
    let ended = s
        .events()
        .iter()
        .any(|it| matches!(it, EventKind::LockWaitEnded { symbol, .. } if *symbol == at("@db:test")));
    assert!(ended);
    held(s.say(&client("eve"), again));
}

#[test]
fn who_has_what_a_worker_needs_is_told_so_before_it_waits_for_itself() {
    let mut s = Script::with(with_needs(&["@db:test", "@gpu"]));
    let ada = client("ada");
    held(s.say(&ada, acquire("@db:test")));
    let order = s.order("do it", "cli");
    match s.say(&ada, order.clone()) {
        Err(refusal @ Refusal::NeedsYours { .. }) => {
            assert!(refusal.to_string().contains("release it first"), "{refusal}");
        }
        other => panic!("{other:?}"),
    }
    s.say(&ada, release("@db:test")).unwrap();
    // One of two is left for the worker.
    held(s.say(&ada, acquire("@gpu")));
    let task = order.task.clone();
    s.say(&ada, order).unwrap();
    assert_eq!(take(&mut s, &task).unwrap(), None);
}

#[test]
fn a_run_gives_back_and_renews_nothing_that_another_run_of_its_worker_has() {
    let mut s = Script::with(with_needs(&["@db:test"]));
    let first = s.delegate(&client("ada"), "do it", "cli");
    let second = s.delegate(&client("ada"), "do it", "cli");
    assert_eq!(take(&mut s, &first).unwrap(), None);
    let other = worker(&second);
    assert_eq!(rival(s.say(&other, acquire("@db:test"))), agent("cli"));
    let freed = s.say(&other, release("@db:test"));
    assert!(matches!(freed, Err(Refusal::LockNotHeld { .. })), "{freed:?}");
    s.say(&other, Leave { intents: false, process: None }).unwrap();
    assert_eq!(live(&s), ["@db:test cli"]);
    // Neither does an agent of the worker's name.
    assert_eq!(rival(s.say(&client("cli"), acquire("@db:test"))), agent("cli"));
    s.say(&worker(&first), release("@db:test")).unwrap();
    assert_eq!(live(&s), [""; 0]);
}

#[test]
fn a_worker_that_needs_more_than_there_is_takes_nothing_on() {
    let mut s = Script::with(with_needs(&["@gpu:3"]));
    let order = s.order("do it", "cli");
    let said = s.say(&client("ada"), order);
    assert!(matches!(said, Err(Refusal::NotSoMany { of: 2, .. })), "{said:?}");
}

#[test]
fn what_a_run_needs_is_freed_with_a_task_that_is_lost_over_a_restart() {
    let mut s = Script::with(with_needs(&["@db:test"]));
    let task = s.delegate(&client("ada"), "do it", "cli");
    assert_eq!(take(&mut s, &task).unwrap(), None);
    assert!(matches!(s.state(&task), TaskState::Queued { .. }));
    // The same task takes it up again, and no other one.
    assert_eq!(take(&mut s, &task).unwrap(), None);
    s.cancel(&client("ada"), &task).unwrap();
    held(s.say(&client("bob"), acquire("@db:test")));
}
