//! Machines that only work: invited with a line, they carry out tasks of full hosts, and what they decide beyond that is folded by no other
//! daemon.

mod rows;

use std::sync::Arc;

use provost::base::{
    AgentId, ApprovalId, DaemonId, Digest, HostId, HostRole, Json, Scopes, SymbolPath, Ticket, Timestamp,
};
use provost::domain::command::Status;
use provost::domain::{
    Change, Counters, EventKind, Failure, Gone, HOST_DOWN, HostAbility, Lock, PasskeyChange, Proof, SeenAt,
    Task, TaskState, Token, USER_CHANGED, User, UserRole, Verdict, Waiter,
};
use serde_json::{Value, json};

use super::daemons_of_hosts::signal;
use super::tasks_of_hosts::{ask, is, task, until};
use crate::support::commands::said;
use crate::support::forger::{self, Forger, Own, own, recorded};
use crate::support::machines::{Machines, git, join_to_work, join_with, state_dir};
use crate::support::own_api;
use crate::support::rules::{ASK, allow, policy};
use crate::support::terminal::at_the_terminal;
use crate::support::waits::until_some;
use crate::support::{Daemon, UP, World};

/// Returns a command's words, and whether it has succeeded.
fn words(world: &World, args: &[&str]) -> (bool, String) {
    let out = world.command(args).env("DEVIT_NO_AUTO_START", "1").output().expect("the command runs");
    (out.status.success(), String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned())
}

fn delegate(world: &World, id: &str, goal: &str, more: &[&str]) -> (i32, Value) {
    ask(world, &[&["delegate", goal, "--worker", "shell", "--task", id], more].concat())
}

fn short(world: &World) -> String {
    own(world).host.to_string()[..8].to_owned()
}

fn rules() -> String {
    policy([allow("work", &["when.action = [\"delegate\"]"]), allow("write", &["when.action = [\"apply\"]"])])
}

/// So many full hosts and one machine that only works, with the label `bench`.
fn with_work_machine(full: usize) -> (Machines, World, Vec<Daemon>) {
    let machines = Machines::joined(full);
    machines.all.iter().for_each(|it| it.rule(&rules()));
    let works = machines.work_machine(&["--label", "bench"]);
    let mut daemons = machines.start();
    daemons.push(works.start());
    let able = "select count(*) from provost.ability";
    until("each has said what it can do", || machines.sql(able) == (full + 1).to_string());
    (machines, works, daemons)
}

#[test]
fn a_work_machine_joins_with_a_line_and_what_it_has_changed_is_applied_where_it_was_asked_for() {
    let machines = Machines::joined(1);
    let a = &machines.all[0];
    a.rule(&rules());
    let (works, other) = (machines.bare(), machines.bare());
    let (line, code) = machines.invite(&[]);

    // What does not fit changes nothing.
    let refused = [
        (&*machines.database.url, &*code, "it is the address of a database"),
        (&line[..line.len() - 3], &*code, "changed on the way"),
        ("provost-host:e30", &*code, "no file that"),
        (&*line, "00000-00000-00000-00000-00000", "the code does not open"),
        (&*line, "", "the code does not open"),
    ];
    for (line, code, why) in refused {
        let (ended, text) = join_to_work(&works, line, code, &[]);
        assert!(ended != 0 && text.contains(why), "{why}: {text}");
    }
    assert!(!works.config_dir().join("provost.toml").exists() && !works.home().join(".local/state").exists());
    let (ended, text) = join_to_work(&works, &line, &code, &["--label", "bench"]);
    assert!(ended == 0 && text.contains("next: provost up"), "{text}");
    let (ended, text) = join_to_work(&works, &line, &code, &[]);
    assert!(ended != 0 && text.contains("may be yours"), "{text}");

    let mut daemons = [a.start(), works.start()];
    until("both have said what they can do", || machines.sql("select count(*) from provost.ability") == "2");
    // It lets one machine in.
    let (ended, text) = join_to_work(&other, &line, &code, &[]);
    assert!(ended != 0 && text.contains("has let in as many machines as it may (1)"), "{text}");
    assert!(!other.config_dir().join("provost.toml").exists());
    // Its clone stays, and the next try uses it.
    let (next, code) = machines.invite(&[]);
    let (ended, text) = join_to_work(&other, &next, &code, &["--label", "a b"]);
    assert!(ended != 0 && text.contains("is no label"), "{text}");
    let (ended, text) = join_to_work(&other, &next, &code, &[]);
    assert!(ended == 0 && text.contains("next: "), "{text}");

    let listed = said(&a.command(&["host", "list", "--json"]).output().unwrap()).1;
    let role = |world: &World| {
        let id = own(world).host.to_string();
        let rows = listed["hosts"].as_array().unwrap();
        rows.iter().find(|it| it["host"] == *id).unwrap()["role"].as_str().unwrap().to_owned()
    };
    assert_eq!((role(a), role(&works)), ("full".into(), "worker".into()));
    let (_, about) = said(&works.command(&["status", "--json"]).output().unwrap());
    let doors: Vec<&str> =
        about["doors"].as_array().unwrap().iter().map(|it| it["door"].as_str().unwrap()).collect();
    assert!(
        !about["doors"].to_string().contains("127.0.0.1"),
        "{doors:?}: a door is open that no one needs there"
    );
    assert!(about["notes"].to_string().contains("only works"), "{about}");

    let goal = "echo more >>src/a.rs; echo new >made.txt; echo it is done";
    let (code, text) = delegate(a, "far", goal, &["--on", "bench"]);
    assert_eq!(code, 0, "{text}");
    let done = is(a, "far", "completed");
    assert!(done["host"] == short(&works) && done.to_string().contains("it is done"), "{done}");
    let (code, text) = ask(a, &["apply", "far"]);
    assert_eq!(code, 0, "{text}");
    assert_eq!(std::fs::read_to_string(a.repo().join("made.txt")).unwrap(), "new\n");
    assert!(!works.repo().join("made.txt").exists());

    // Taken away, it takes part no more.
    let (code, text) = ask(a, &["host", "remove", &short(&works), "--yes"]);
    assert_eq!(code, 0, "{text}");
    assert!(!daemons[1].ended().success());
    let (up, text) = words(&works, UP);
    assert!(!up && text.contains("was removed"), "{text}");
    machines.check();
}

#[test]
fn a_clone_is_made_from_where_the_invitation_says() {
    let machines = Machines::joined(1);
    let a = &machines.all[0];
    let world = World::new();
    let from = a.repo().display().to_string();
    let (line, code) = machines.invite(&["--clone", &from]);
    let typed = |folder: &str, more: &[&str]| {
        let mut command = world.command(&[&["worker", "join", &line], more].concat());
        command.current_dir(world.path(folder));
        crate::support::machines::typing(command, &code)
    };
    std::fs::create_dir(world.path("empty")).unwrap();
    // A clone of another repository is none of this one.
    let (ended, text) = typed("repo", &[]);
    assert!(ended != 0 && text.contains("is no clone of"), "{text}");
    assert!(!world.config_dir().join("provost.toml").exists());
    let (ended, text) = typed("empty", &[]);
    assert!(ended == 0 && text.contains("next: cd ") && text.contains("provost up"), "{text}");
    assert!(world.path("empty/shop/src/a.rs").exists());
    let address = |url: &str| {
        let clone = format!("--clone={url}");
        let out = a.command(&["host", "invite", "--role", "worker", &clone]).output().unwrap();
        (out.status.success(), String::from_utf8_lossy(&out.stderr).into_owned())
    };
    for (url, why) in [
        ("https://ann:secret@git.example/shop.git", "with a password"),
        ("ext::sh -c true", "as `git clone` takes it"),
        ("--upload-pack=true", "as `git clone` takes it"),
    ] {
        let (done, text) = address(url);
        assert!(!done && text.contains(why), "{url}: {text}");
    }
}

#[test]
fn a_work_machine_refuses_what_it_may_not_decide() {
    let (machines, works, _daemons) = with_work_machine(1);
    let a = &machines.all[0];
    a.rule(ASK);
    works.rule(&rules());
    assert!(at_the_terminal(a, "daemon reload").status.success());
    assert!(at_the_terminal(&works, "daemon reload").status.success());
    assert_eq!(delegate(a, "asked", "true", &[]).0, 0);
    let number = until_some("it is seen there", || {
        let listed = said(&works.command(&["approval", "list", "--json"]).output().unwrap()).1;
        let rows = listed.as_array().cloned().or_else(|| listed["approvals"].as_array().cloned())?;
        rows.first().map(|it| it["id"].to_string().trim_matches('"').to_owned())
    });
    let host = &own(a).host.to_string()[..8];
    let typed = [
        (format!("approve {number}"), "it answers approval"),
        (format!("user add {host} --name eve --role viewer"), "it changes users"),
        ("token mint eve".to_owned(), "it changes tokens"),
        ("delegate true".to_owned(), "it asks for task"),
        ("worker pause shell".to_owned(), "it switches worker"),
        ("task cancel asked".to_owned(), "only works for others"),
    ];
    for (line, why) in typed {
        let out = at_the_terminal(&works, &line);
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        assert!(!out.status.success() && text.contains("only works for others"), "{line}: {text}");
        assert!(text.replace("\r\n", " ").contains(why), "{line}: {text}");
    }
    let file = works.path("more.key").display().to_string();
    for args in [&["host", "invite", "--role", "worker"][..], &["host", "export-key", &file]] {
        let (done, text) = words(&works, args);
        assert!(!done && text.contains("lets no machine in"), "{text}");
    }
    // What agents there coordinate is work.
    assert_eq!(ask(&works, &["lock", "acquire", "src/a.rs:f1"]).0, 0);
    until("it is seen", || ask(a, &["lock", "list"]).1.to_string().contains("src/a.rs:f1"));
    assert_eq!(ask(&works, &["lock", "release", "src/a.rs:f1"]).0, 0);
    assert_eq!(task(a, "asked")["state"], "awaiting");
    machines.check();
}

#[test]
fn what_follows_from_its_work_goes_on_and_a_lost_one_is_told() {
    let (machines, works, mut daemons) = with_work_machine(1);
    let a = &machines.all[0];
    let on = ["--on", "bench"];
    // What has waited for its task begins, here and there, or never.
    assert_eq!(delegate(a, "first", "sleep 2", &on).0, 0);
    assert_eq!(delegate(a, "then-here", "true", &["--after", "first"]).0, 0);
    assert_eq!(delegate(a, "then-there", "true", &["--after", "first", "--on", "bench"]).0, 0);
    assert_eq!(is(a, "first", "completed")["host"], short(&works));
    assert_eq!(is(a, "then-here", "completed")["host"], short(a));
    assert_eq!(is(a, "then-there", "completed")["host"], short(&works));
    assert_eq!(delegate(a, "fails", "exit 3", &on).0, 0);
    assert_eq!(delegate(a, "never", "true", &["--after", "fails"]).0, 0);
    is(a, "fails", "failed");
    is(a, "never", "failed");
    // Cancelled from its asker's host.
    assert_eq!(delegate(a, "long", "sleep 303.5", &[&on[..], &["--timeout", "10m"]].concat()).0, 0);
    is(a, "long", "running");
    assert_eq!(ask(a, &["task", "cancel", "long"]).0, 0);
    is(a, "long", "cancelled");
    // A machine that lacks the commit leaves the task, and says so at last.
    a.write("src/b.rs", "pub fn b() {}\n");
    git(a, &["add", "."]);
    git(a, &["commit", "-q", "-m", "second"]);
    assert_eq!(delegate(a, "lacking", "true", &on).0, 0);
    assert!(
        is(a, "lacking", "failed")["failure"]["no_host"]["why"]
            .to_string()
            .contains("has not got the commit")
    );
    git(&works, &["fetch", "-q", &a.repo().display().to_string(), "HEAD"]);
    assert_eq!(delegate(a, "lost", "sleep 304.5", &on).0, 0);
    is(a, "lost", "running");
    daemons[1].kill();
    is(a, "lost", "failed");
    daemons[1] = works.start();
    assert_eq!(delegate(a, "again", "true", &on).0, 0);
    assert_eq!(is(a, "again", "completed")["host"], short(&works));
    assert!(!a.log().contains("broken at entry") && !works.log().contains("broken at entry"));
    machines.check();
}

/// Something that a machine which has turned puts into the log.
struct Attack {
    why: &'static str,
    events: Vec<EventKind>,
    changes: Vec<Change>,
}

fn attack(why: &'static str, events: Vec<EventKind>, changes: Vec<Change>) -> Attack {
    Attack { why, events, changes }
}

/// The lock of an agent at a full host, as the database has it.
fn lock_at_a(machines: &Machines) -> Lock {
    let body = machines.sql("select body from provost.symbol_lock where id like '%f9%'");
    serde_json::from_str(&body).unwrap_or_else(|err| panic!("{err}: {body}"))
}

/// A task as the database has it.
fn stored(machines: &Machines, id: &str) -> Task {
    let body = machines.sql(&format!("select body from provost.task where id = '{id}'"));
    serde_json::from_str(&body).unwrap_or_else(|err| panic!("{err}: {body}"))
}

fn completed(task: &Task) -> Task {
    let state = TaskState::Finished { status: Status::Completed, at: task.updated_at };
    Task { state, ..task.clone() }
}

fn finished(task: &Task) -> EventKind {
    let (task, status) = (task.id().clone(), Status::Completed);
    EventKind::TaskFinished { task, status, failure: None, report: Digest::of(b""), usage: None }
}

fn answered(approval: u64) -> EventKind {
    let (approval, verdict) = (ApprovalId(approval), Verdict::Granted);
    EventKind::ApprovalAnswered { approval, verdict, proof: "weak-human".into(), signed: None }
}

fn minted() -> Change {
    let agent: AgentId = AgentId::parse("eve").unwrap();
    Change::PutToken(Arc::new(Token {
        digest: Digest::of(b"token"),
        agent: agent.clone(),
        scopes: Scopes::of(&[provost::domain::Scope::Operate]),
        expires_at: Timestamp(i64::MAX / 2),
        minted_at: Timestamp(1),
        minted_by: agent,
        proof: Proof::Terminal,
        share: None,
    }))
}

fn able(daemon: DaemonId, role: HostRole) -> Change {
    let (labels, workers, pools) = Default::default();
    Change::PutAbility(Arc::new(HostAbility {
        daemon,
        labels,
        workers,
        pools,
        places: 0,
        drains: true,
        role,
    }))
}

fn says(what: &str, subject: &str) -> EventKind {
    let details = Json::parse("{}").unwrap();
    EventKind::Recorded { what: what.into(), subject: subject.into(), details }
}

/// All of it, against a machine at which one task runs, one waits for approval, one for that one, and one for a host.
fn attacks(machines: &Machines, of_a: HostId, of_w: HostId) -> Vec<Attack> {
    let counters = machines.sql("select counters from provost.repo");
    let counters: Counters = serde_json::from_str(&counters).unwrap();
    let approval: u64 = machines.sql("select min(id) from provost.approval").parse().unwrap();
    let (lock, ada) = (lock_at_a(machines), AgentId::parse("ada").unwrap());
    let [runs, waits, asked, open] = ["runs", "waits", "asked", "open"].map(|id| stored(machines, id));
    let host_a = DaemonId { host: of_a, incarnation: 2 };
    let host_w = DaemonId { host: of_w, incarnation: 1 };
    let admin = User { host: of_w, name: "eve".into(), role: UserRole::Admin };
    let no_host = Some(Failure::NoHost { why: "none is left".into() });
    let other_goal = provost::domain::Delegate { goal: "touch done.txt".into(), ..open.order.clone() };
    let taken = |task: &Task| Task { daemon: host_w, ..task.clone() };
    let put = |task: Task| vec![Change::PutTask(Arc::new(task))];
    let ends = |task: Task| vec![Change::FinishTask(Arc::new(task))];
    vec![
        // It is lost when its machine begins again, so it comes first.
        attack("ends task runs", vec![finished(&runs)], ends(completed(&runs))),
        attack(
            "answers approval",
            vec![answered(approval)],
            vec![Change::DropApproval(ApprovalId(approval))],
        ),
        attack("settles approval", vec![recorded()], vec![Change::DropApproval(ApprovalId(approval))]),
        attack("changes tokens", vec![recorded()], vec![minted()]),
        attack("changes users", vec![recorded()], vec![Change::PutUser(Arc::new(admin))]),
        attack("changes users", vec![says(USER_CHANGED, &of_w.to_string())], Vec::new()),
        attack("changes passkeys", vec![recorded()], vec![Change::Passkey(PasskeyChange::Drop("it".into()))]),
        attack("has gone", vec![recorded()], vec![Change::HostDown(host_a, Gone::Removed)]),
        attack("speaks of the host", vec![says(HOST_DOWN, &host_a.to_string())], Vec::new()),
        attack("what another host can do", vec![recorded()], vec![able(host_a, HostRole::Worker)]),
        attack("says that it is a full host", vec![recorded()], vec![able(host_w, HostRole::Full)]),
        attack("ends task waits", vec![finished(&waits)], ends(completed(&waits))),
        attack("speaks of task waits", vec![finished(&waits)], Vec::new()),
        attack("changes task waits", vec![recorded()], put(taken(&waits))),
        attack("ends task asked", vec![finished(&asked)], ends(completed(&asked))),
        attack("changes task asked", vec![recorded()], put(taken(&asked))),
        attack("ends task open", vec![finished(&open)], ends(completed(&open))),
        attack("ends task open", vec![finished(&open)], ends(Task { failure: no_host, ..completed(&open) })),
        attack(
            "another one than was asked for",
            vec![recorded()],
            put(Task { order: other_goal, ..taken(&open) }),
        ),
        attack("asks for task mine", vec![recorded()], {
            let order = provost::domain::Delegate {
                task: provost::base::TaskId::parse("mine").unwrap(),
                ..open.order.clone()
            };
            put(Task { order, ..open.clone() })
        }),
        attack(
            "numbers do not go on",
            vec![recorded()],
            vec![Change::Count(Counters { approval: ApprovalId(0), ..counters })],
        ),
        attack(
            "switches worker",
            vec![recorded()],
            vec![Change::Switch(AgentId::parse("shell").unwrap(), None)],
        ),
        attack("frees the lock on", vec![recorded()], vec![Change::DropLock(lock.at.clone())]),
        attack(
            "frees the lock on",
            vec![recorded()],
            vec![Change::PutLock(Arc::new(Lock { daemon: host_w, ..lock.clone() }))],
        ),
        attack("for another host", vec![recorded()], vec![Change::PutLock(Arc::new(lock.clone()))]),
        // The other lock would still be in force, and in no list.
        attack("has the place of another lock", vec![recorded()], {
            let at = SymbolPath::parse("src/a.rs:f21").unwrap();
            vec![Change::PutLock(Arc::new(Lock { at, daemon: host_w, ..lock }))]
        }),
        attack(
            "is elsewhere",
            vec![recorded()],
            vec![Change::At(ada.clone(), Some(SeenAt { daemon: host_a, at: Timestamp(1) }))],
        ),
        attack("is elsewhere", vec![recorded()], vec![Change::At(ada.clone(), None)]),
        attack("forgets ada", vec![recorded()], vec![Change::DropAgent(ada)]),
    ]
}

/// The daemon of `a` refuses the entry and says why; then the entry is taken out again.
fn is_refused(a: &World, daemon: &mut Daemon, (of_w, forger): (&Own, &Forger<'_>), attack: Attack) {
    let Attack { why, events, changes } = attack;
    let before =
        forger.write(of_w.host, events, changes, |text| Some(of_w.pair.sign(text).as_ref().to_vec()));
    let n = before.n + 1;
    let line = until_some(why, || {
        a.log().lines().find(|it| it.contains(&format!("broken at entry {n}"))).map(str::to_owned)
    });
    assert!(line.contains("joined to work alone") && line.contains(why), "{why}: {line}");
    assert!(line.contains(&of_w.host.to_string()[..8]), "{line}");
    assert!(!a.repo().join("done.txt").exists());
    daemon.kill();
    forger.take_out(&before);
    forger::forget(a);
    *daemon = a.start();
}

#[test]
fn what_is_hidden_behind_more_entries_than_a_turn_reads_is_judged_all_the_same() {
    let (machines, works, mut daemons) = with_work_machine(1);
    let a = &machines.all[0];
    daemons.pop().expect("the work machine's").kill();
    until("it is buried", || machines.sql("select count(*) from provost.host where state = 'down'") == "1");
    let (of_w, forger) = (own(&works), Forger::with_key_of(&machines, &works));
    for unseals in [false, true] {
        signal(&daemons[0], "-STOP");
        let before = forger.write_many(&of_w, 2_100, vec![minted()]);
        if unseals {
            machines.sql("update provost.repo set n = 0, seal = sha256('x')");
        }
        signal(&daemons[0], "-CONT");
        let broken = format!("broken at entry {}", before.n + 2_101);
        let line = until_some("it is refused", || {
            a.log().lines().find(|it| it.contains(&broken)).map(str::to_owned)
        });
        assert!(line.contains("joined to work alone") && line.contains("changes tokens"), "{line}");
        daemons[0].kill();
        forger.take_out(&before);
        forger::forget(a);
        daemons[0] = a.start();
    }
}

#[test]
fn what_a_work_machine_that_has_turned_decides_is_folded_by_no_other_one() {
    let (machines, works, mut daemons) = with_work_machine(2);
    let (a, b) = (&machines.all[0], &machines.all[1]);
    let now_by = |rules: &str| {
        a.rule(rules);
        assert!(at_the_terminal(a, "daemon reload").status.success());
    };
    assert_eq!(delegate(a, "runs", "sleep 305.5", &["--timeout", "10m"]).0, 0);
    is(a, "runs", "running");
    now_by(ASK);
    assert_eq!(delegate(a, "asked", "touch done.txt", &[]).0, 0);
    now_by(&rules());
    assert_eq!(delegate(a, "waits", "true", &["--after", "asked"]).0, 0);
    assert_eq!(stored(&machines, "waits").daemon.host, own(a).host);
    assert_eq!(delegate(a, "open", "true", &["--on", "none", "--wait-for-host"]).0, 0);
    assert_eq!(ask(a, &["lock", "acquire", "src/a.rs:f9"]).0, 0);
    daemons[2].kill();
    until("it is buried", || machines.sql("select count(*) from provost.host where state = 'down'") == "1");
    daemons.remove(1).stop();
    let (of_w, forger) = (own(&works), Forger::with_key_of(&machines, &works));
    for attack in attacks(&machines, own(a).host, of_w.host) {
        is_refused(a, &mut daemons[0], (&of_w, &forger), attack);
    }
    // A wait ends with its daemon, so each of these begins only now.
    let begin = || {
        let waits = a.begin("bob", &["lock", "acquire", "src/a.rs:f9", "--wait", "10m"]);
        let body = "select body from provost.waiter order by id desc limit 1";
        let waiter: Waiter = until_some("it waits", || serde_json::from_str(&machines.sql(body)).ok());
        (waits, waiter)
    };
    let (waits, waiter) = begin();
    let Ticket(ticket) = waiter.ticket;
    let ends = attack("wait no longer", vec![recorded()], vec![Change::DropWaiter(Ticket(ticket))]);
    is_refused(a, &mut daemons[0], (&of_w, &forger), ends);
    drop(waits);
    let (waits, waiter) = begin();
    let mine = Waiter { daemon: DaemonId { host: of_w.host, incarnation: 1 }, ..waiter };
    let takes = attack("wait no longer", vec![recorded()], vec![Change::PutWaiter(Arc::new(mine))]);
    is_refused(a, &mut daemons[0], (&of_w, &forger), takes);
    drop(waits);
    // A daemon that did not run then finds it at its start, and who verifies finds it without one.
    daemons[0].kill();
    let before = forger
        .write(of_w.host, vec![answered(1)], Vec::new(), |text| Some(of_w.pair.sign(text).as_ref().to_vec()));
    for (world, args) in [(a, UP), (b, &["journal", "verify"][..])] {
        let (done, text) = words(world, args);
        assert!(!done && text.contains("only works"), "{args:?}: {text}");
    }
    forger.take_out(&before);
    daemons[0] = a.start();
    assert_eq!(task(a, "asked")["state"], "awaiting");
    // What is work is folded still.
    let before = forger
        .write(of_w.host, vec![recorded()], Vec::new(), |text| Some(of_w.pair.sign(text).as_ref().to_vec()));
    until("it is folded", || ask(a, &["lock", "acquire", "src/a.rs:f1"]).0 == 0);
    assert!(!a.log().contains(&format!("broken at entry {}", before.n + 1)), "{}", a.log());
}

#[test]
fn a_work_machine_frees_no_lock_that_was_taken_at_another_host() {
    let (machines, works, _daemons) = with_work_machine(1);
    let a = &machines.all[0];
    let made = at_the_terminal(a, "token mint ada");
    let text = String::from_utf8_lossy(&made.stdout).into_owned();
    let token =
        text.split_whitespace().find(|it| it.starts_with("pvst_")).unwrap_or_else(|| panic!("{text}"));
    let bearer = format!("Bearer {token}");
    let proved = [("x-provost-agent", "ada"), ("authorization", bearer.as_str())];
    let lock = |world: &World, path: &str, n: usize| {
        let body = json!({ "symbol": format!("src/a.rs:f{n}") });
        own_api::own(world, ("POST", path), &proved, &body)
    };
    assert_eq!(lock(a, "/lock", 1).0, 200);
    until("the token is known there", || lock(&works, "/lock", 2).0 == 200);
    let (status, answer) = lock(&works, "/unlock", 1);
    assert!(status == 403 && answer.to_string().contains("only works for others"), "{status}: {answer}");
    let held = |n: usize| {
        let (status, locks) = own_api::own(a, ("GET", "/locks"), &proved, &Value::Null);
        assert_eq!(status, 200, "{locks}");
        locks.to_string().contains(&format!("src/a.rs:f{n}"))
    };
    until("it is held still", || held(1));
    // Its own one goes, there and at a full host.
    assert_eq!(lock(&works, "/unlock", 2).0, 200);
    assert_eq!(lock(&works, "/lock", 3).0, 200);
    until("it is free", || !held(2) && held(3));
    assert_eq!(lock(a, "/unlock", 3).0, 200);
    assert_eq!(lock(a, "/unlock", 1).0, 200);
    machines.check();
}

#[test]
fn a_work_machine_lets_no_machine_in() {
    let (machines, works, mut daemons) = with_work_machine(1);
    let a = &machines.all[0];
    daemons[1].kill();
    // It forgets what it is, and invites as a full host does.
    let hosts = state_dir(&works).join("hosts.json");
    let known = std::fs::read_to_string(&hosts).unwrap();
    assert!(known.contains("\"role\":\"worker\""), "{known}");
    std::fs::write(&hosts, known.replace(",\"role\":\"worker\"", "")).unwrap();
    let file = works.path("more.key").display().to_string();
    let exported = works.command(&["host", "export-key", &file, "--json"]).output().unwrap();
    let code = said(&exported).1["code"].as_str().unwrap().to_owned();
    let new = machines.one_more();
    let (ended, text) = join_with(&new, &file, &code);
    assert!(ended != 0 && text.contains("that has invited only works"), "{text}");
    // Nor is it more itself by that.
    daemons[1] = works.start();
    let (code, said) = delegate(&works, "mine", "true", &[]);
    assert!(code != 0 && said.to_string().contains("only works for others"), "{said}");
    assert_eq!(ask(a, &["lock", "acquire", "src/a.rs:f2"]).0, 0);
    machines.check();
}
