//! Locks, intents and contracts from the command line, with real daemons and processes.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::commands::{said, waits_begun};
use crate::support::mcp_host::Host;
use crate::support::terminal::at_the_terminal;
use crate::support::waits::until_some;
use crate::support::{World, eventually, fresh};

const CODE: &str = "export class Session {\n  renew(a: string): string { return a }\n}\n\
                    export function login(a: string): string { return a }\n\
                    export function other(): void { login(\"x\") }\n";

fn world() -> World {
    let world = World::new();
    world.write("src/auth.ts", CODE);
    world
}

#[test]
fn a_lock_is_one_agents_and_the_other_hears_whose_until_when_and_which_grant() {
    let world = world();
    let _daemon = world.start();
    let taken = world.done("a", &["lock", "src/auth.ts:login", "--reason", "new token", "--ttl", "10m"]);
    assert_eq!(taken["lock"]["symbol"], "src/auth.ts:login");
    let (code, no) = world.ask("b", &["lock", "src/auth.ts:login"]);
    assert_eq!((code, &no["exit_code"]), (5, &json!(5)), "{no}");
    assert_eq!(no["data"]["holder"], "a");
    assert_eq!(no["data"]["fence"], taken["lock"]["fence"]);
    assert_eq!(no["data"]["until"], taken["lock"]["until"]);
    assert_eq!(no["data"]["reason"], "new token");

    // Who locks a class has what others have not got of it, and is told; so is of a name that is not there.
    world.done("b", &["lock", "src/auth.ts:Session.renew"]);
    let around = world.done("a", &["lock", "src/auth.ts:Session"]);
    assert_eq!(around["warnings"][0]["kind"], "member_locked");
    let (code, no) = world.ask("c", &["lock", "src/auth.ts:Session.other"]);
    assert_eq!((code, &no["data"]["holder"]), (5, &json!("a")), "{no}");
    let unknown = world.done("b", &["lock", "src/auth.ts:nobody"]);
    assert_eq!(unknown["warnings"][0]["kind"], "unknown_symbol");

    let (code, no) = world.ask("b", &["unlock", "src/auth.ts:login"]);
    assert_eq!((code, &no["data"]["holder"]), (4, &json!("a")));
    let (code, _) = world.ask("a", &["unlock", "src/auth.ts:login", "--fence", "999"]);
    assert_eq!(code, 4);
    world.done("a", &["unlock", "src/auth.ts:login"]);
    let (code, no) = world.ask("a", &["unlock", "src/auth.ts:login"]);
    assert_eq!(code, 1, "{no}");
    let again = world.done("b", &["lock", "src/auth.ts:login"]);
    assert!(again["lock"]["fence"].as_u64() > taken["lock"]["fence"].as_u64());

    let mine = world.done("a", &["lock", "list", "--mine"]);
    assert_eq!(mine["locks"].as_array().unwrap().len(), 1);
    assert_eq!(world.done("b", &["unlock", "--all"])["locks"], 3);
    // A person may end anybody's; an agent may not, and neither may one that has left its name out.
    assert_eq!(world.ask("b", &["unlock", "src/auth.ts:Session", "--force"]).0, 4);
    let nameless = world.command(&["unlock", "src/auth.ts:Session", "--force", "--json"]).output().unwrap();
    assert_eq!(nameless.status.code(), Some(4), "{nameless:?}");
    let forced = at_the_terminal(&world, "unlock src/auth.ts:Session --force");
    assert!(forced.status.success(), "{forced:?}");
    assert_eq!(world.locked(), [""; 0]);
}

#[test]
fn two_symbols_that_differ_in_a_hidden_character_are_told_apart_in_a_list() {
    let world = world();
    let _daemon = world.start();
    world.done("a", &["lock", "src/auth.ts:login"]);
    world.done("b", &["lock", "src/auth.ts:login\u{200b}"]);
    let list = String::from_utf8(world.command(&["lock", "list"]).output().unwrap().stdout).unwrap();
    let count = |name: &str| list.matches(name).count();
    assert_eq!((count("src/auth.ts:login "), count(r"src/auth.ts:login\u{200b} ")), (1, 1), "{list}");
}

#[test]
fn names_mean_the_same_from_below_and_in_a_work_tree_and_never_lead_out() {
    let world = world();
    world.git(&["add", "-A"]);
    world.git(&["commit", "-qm", "one"]);
    let tree = world.path("tree");
    world.git(&["worktree", "add", "-q", tree.to_str().unwrap()]);
    let _daemon = world.start();
    let below = world.by("a", &["lock", "auth.ts:login"]).current_dir(world.repo().join("src")).output();
    assert_eq!(said(&below.unwrap()).1["lock"]["symbol"], "src/auth.ts:login");
    for (folder, name) in [(tree.clone(), "src/auth.ts:login"), (tree.join("src"), "./auth.ts:login")] {
        let there = world.by("b", &["lock", name]).current_dir(folder).output().unwrap();
        assert_eq!(said(&there).0, 5, "{there:?}");
    }
    // Also by a path from elsewhere, and where one work tree lies in another.
    let inner = world.repo().join("trees/inner");
    world.git(&["worktree", "add", "-q", inner.to_str().unwrap()]);
    for name in [tree.join("src/auth.ts:login"), inner.join("src/auth.ts:login")] {
        let (code, no) = world.ask("b", &["lock", name.to_str().unwrap()]);
        assert_eq!((code, &no["data"]["holder"]), (5, &json!("a")), "{no}");
    }
    assert_eq!(world.ask("b", &["lock", "trees/inner/src/auth.ts:login"]).0, 5);
    // What a work tree has differs from the main one: its own files are read.
    fs::write(tree.join("src/auth.ts"), "export function only_here(): void {}\n").unwrap();
    let there = world.by("b", &["lock", "src/auth.ts:only_here"]).current_dir(&tree).output().unwrap();
    assert_eq!(said(&there).1["warnings"], json!([]));
    for name in ["../x:y", "/etc/passwd", "src/../../x", "", ":login", "src/\u{7}x:y"] {
        let (code, no) = world.ask("a", &["lock", name]);
        assert!(matches!(code, 2 | 4) && no["error"].is_string(), "{name}: {no}");
    }
    for ttl in ["0", "-1", "8d", "x", "1.5h"] {
        let done = world.by("a", &["lock", "src/auth.ts:x", &format!("--ttl={ttl}")]).output().unwrap();
        assert_eq!(done.status.code(), Some(2), "{ttl}");
    }
}

#[test]
fn those_who_wait_get_a_lock_in_order_and_one_that_hangs_up_loses_its_place() {
    let world = world();
    let _daemon = world.start();
    world.done("a", &["lock", "src/auth.ts:login"]);
    let mut waits = Vec::new();
    for agent in ["b", "c", "d"] {
        waits.push(world.begin(agent, &["lock", "src/auth.ts:login", "--wait", "1m"]));
        eventually("the next one waits", || world.waiting().last().map(String::as_str) == Some(agent));
    }
    let [b, mut c, d] = waits.try_into().unwrap();
    c.kill().unwrap();
    c.wait().unwrap();
    eventually("a place is given up", || world.waiting() == ["b", "d"]);
    world.done("a", &["unlock", "src/auth.ts:login"]);
    let (code, first) = said(&b.wait_with_output().unwrap());
    assert_eq!((code, &first["lock"]["holder"]), (0, &json!("b")));
    world.done("b", &["unlock", "src/auth.ts:login"]);
    let (code, second) = said(&d.wait_with_output().unwrap());
    assert_eq!((code, &second["lock"]["holder"]), (0, &json!("d")));
    // A wait that is over is the conflict itself.
    let (code, no) = world.ask("e", &["lock", "src/auth.ts:login", "--wait", "50ms"]);
    assert_eq!((code, &no["data"]["holder"]), (5, &json!("d")));
}

#[test]
fn a_wait_is_had_once_and_is_no_longer_than_was_asked_for() {
    let world = world();
    let _daemon = world.start();
    world.done("a", &["lock", "src/auth.ts:login"]);
    for round in 1..=5 {
        let (code, no) = world.ask("b", &["lock", "src/auth.ts:login", "--wait", "150ms"]);
        assert_eq!((code, &no["data"]["holder"]), (5, &json!("a")));
        // Each wait that is begun is one of 150 ms more.
        assert_eq!(waits_begun(&world), round);
    }
    assert!(world.waiting().is_empty());
}

#[test]
fn whoever_would_close_a_circle_of_waiting_is_told_it() {
    let world = world();
    let _daemon = world.start();
    world.done("a", &["lock", "src/auth.ts:login"]);
    world.done("b", &["lock", "src/auth.ts:other"]);
    let waits = world.begin("a", &["lock", "src/auth.ts:other", "--wait", "1m"]);
    eventually("a waits", || world.waiting() == ["a"]);
    let (code, no) = world.ask("b", &["lock", "src/auth.ts:login", "--wait", "1m"]);
    assert_eq!((code, &no["data"]["cycle"]), (5, &json!(["b", "a"])), "{no}");
    // Who looks later sees the wait that goes on, and the one that was refused.
    let seen = world.done("c", &["waits"]);
    let [wait] = seen["waits"].as_array().unwrap().as_slice() else { panic!("{seen}") };
    let (what, by) = (&wait["wanted"], &wait["by"]);
    assert_eq!(
        (&wait["agent"], &wait["kind"], what),
        (&json!("a"), &json!("lock"), &json!("src/auth.ts:other"))
    );
    assert_eq!((by, &wait["place"]), (&json!(["b"]), &json!(1)));
    let refused = &seen["refused"][0];
    assert_eq!((&refused["members"], &refused["wanted"]), (&json!(["b", "a"]), &json!("src/auth.ts:login")));
    let text = String::from_utf8(world.command(&["wait", "list"]).output().unwrap().stdout).unwrap();
    assert!(text.contains("src/auth.ts:other") && text.contains("b waits for a waits for b"), "{text}");
    let log = world.command(&["log"]).output().unwrap();
    assert!(String::from_utf8_lossy(&log.stdout).contains("lock_wait_refused"));
    for (args, count) in [(["--kind", "approval"], 0), (["--agent", "b"], 1), (["--agent", "zoe"], 0)] {
        let found = world.done("c", &[&["wait", "list"][..], &args].concat());
        assert_eq!(found["waits"].as_array().unwrap().len(), count, "{args:?}");
    }
    let wrong = world.command(&["wait", "list", "--kind", "bread"]).output().unwrap();
    assert_eq!(wrong.status.code(), Some(2));
    world.done("b", &["unlock", "--all"]);
    assert_eq!(said(&waits.wait_with_output().unwrap()).0, 0);
}

#[test]
fn a_lock_ends_with_its_process_and_with_no_other_of_its_number() {
    let world = world();
    let mut daemon = world.start();
    let sleeper = || Command::new("sleep").arg("1000").spawn().unwrap();
    let (mut one, mut two) = (sleeper(), sleeper());
    let lock = |name: &str, pid: u32| {
        let process = pid.to_string();
        world.done("a", &["lock", name, "--pid", &process])
    };
    assert_eq!(lock("src/auth.ts:login", one.id())["lock"]["pid"], one.id());
    lock("src/auth.ts:other", two.id());
    world.done("a", &["lock", "src/auth.ts:Session"]);
    one.kill().unwrap();
    // Not even waited for: a process that has ended has ended.
    eventually("the lock is freed", || world.locked() == ["src/auth.ts:other", "src/auth.ts:Session"]);
    one.wait().unwrap();
    // The daemon may be gone when it happens.
    daemon.kill();
    two.kill().unwrap();
    two.wait().unwrap();
    let _daemon = world.start();
    eventually("the lock is freed", || world.locked() == ["src/auth.ts:Session"]);
    let log = world.command(&["log"]).output().unwrap();
    assert!(String::from_utf8_lossy(&log.stdout).contains("its process has ended"));
    for pid in ["1", "0", "4294967295", &two.id().to_string()] {
        let (code, no) = world.ask("a", &["lock", "src/auth.ts:x", "--pid", pid]);
        assert_eq!(code, 4, "{pid}: {no}");
    }
    // The parent is the shell, which ends right after.
    let line =
        format!("{} lock src/auth.ts:login --while-parent --json; true", crate::support::provost().display());
    let like = world.command(&[]);
    let mut shell = Command::new("sh");
    shell.args(["-c", &line]).current_dir(world.repo()).env_clear();
    shell.envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let (code, taken) = said(&shell.output().unwrap());
    assert_eq!(code, 0);
    assert!(taken["lock"]["pid"].is_u64());
    eventually("the lock is freed", || world.locked() == ["src/auth.ts:Session"]);
}

#[test]
fn a_renewal_keeps_the_process_and_the_reason_that_it_does_not_name() {
    let world = world();
    let _daemon = world.start();
    let mut sleeper = Command::new("sleep").arg("1000").spawn().unwrap();
    let pid = sleeper.id().to_string();
    world.done("a", &["lock", "src/auth.ts:login", "--pid", &pid, "--reason", "new token"]);
    let mut host = Host::old(&world, "b");
    host.does("lock_acquire", json!({ "symbol": "src/auth.ts:other", "reason": "mine" }));
    for (agent, symbol, pid, reason) in [
        ("a", "src/auth.ts:login", sleeper.id(), "new token"),
        ("b", "src/auth.ts:other", host.pid(), "mine"),
    ] {
        let again = world.done(agent, &["lock", symbol])["lock"].clone();
        assert_eq!((&again["pid"], &again["reason"]), (&json!(pid), &json!(reason)), "{again}");
    }
    let other = world.done("a", &["lock", "src/auth.ts:login", "--reason", "newer"])["lock"].clone();
    assert_eq!((&other["pid"], &other["reason"]), (&json!(sleeper.id()), &json!("newer")), "{other}");
    sleeper.kill().unwrap();
    host.kill();
    eventually("both locks are freed", || world.locked() == [""; 0]);
    sleeper.wait().unwrap();
}

#[test]
fn intents_are_declared_collide_and_go_on() {
    let world = world();
    let _daemon = world.start();
    world.done("a", &["lock", "src/auth.ts:login"]);
    let args =
        ["intent", "declare", "rename", "--file", "src/auth.ts", "--symbol", "login", "--symbol", "other"];
    let declared = world.done("b", &args);
    let kinds: Vec<_> =
        declared["conflicts"].as_array().unwrap().iter().map(|it| it["kind"].clone()).collect();
    assert_eq!(kinds, ["symbol_locked", "callee_locked"]);
    let id = declared["intent"]["id"].as_str().unwrap().to_owned();
    let overlap = world.done("c", &["intent", "declare", "rewrite", "--file", "src/auth.ts"]);
    assert_eq!(overlap["conflicts"][0]["intent"], json!(id));
    assert_eq!(world.done("b", &["intent", "list", "--mine"]).as_array().unwrap().len(), 1);
    assert_eq!(world.done("b", &["intent", "list", "--file", "src/auth.ts"]).as_array().unwrap().len(), 2);
    let (code, no) = world.ask("c", &["intent", "update", &id, "resolved"]);
    assert_eq!((code, &no["data"]["owner"]), (4, &json!("b")));
    assert_eq!(world.done("b", &["intent", "update", &id[..8], "active"])["status"], "active");
    assert_eq!(world.done("b", &["intent", "update", &id[..8], "resolved"])["status"], "resolved");
    assert_eq!(world.ask("b", &["intent", "update", &id, "active"]).0, 4);
    assert_eq!(world.ask("b", &["intent", "update", "never", "active"]).0, 1);
    assert_eq!(world.done("b", &["intent", "list", "--status", "resolved"])[0]["id"], json!(id));
    assert_eq!(world.done("c", &["unlock", "--all", "--intents"])["intents"], 1);
}

#[test]
fn contracts_are_offered_accepted_kept_to_and_taken_back() {
    let world = world();
    let _daemon = world.start();
    let offered = world.done("a", &["contract", "propose", "src/auth.ts:login"]);
    let id = offered["id"].as_str().unwrap().to_owned();
    assert_eq!(world.ask("a", &["contract", "accept", &id]).0, 4, "nobody accepts their own");
    assert_eq!(world.done("b", &["contract", "accept", &id[..8]])["status"], "accepted");
    assert_eq!(world.ask("b", &["contract", "reject", &id]).1["data"]["status"], "accepted");
    assert_eq!(world.ask("a", &["contract", "withdraw", &id]).0, 4, "what binds is not taken back alone");
    let (code, no) = world.ask("a", &["contract", "propose", "src/auth.ts:nobody"]);
    assert_eq!(code, 4, "{no}");
    let twice = world.done("a", &["contract", "propose", "src/auth.ts:other"]);
    assert_eq!(
        world.done("a", &["contract", "withdraw", twice["id"].as_str().unwrap()])["status"],
        "withdrawn"
    );
    assert_eq!(world.done("a", &["contract", "list", "--status", "accepted"]).as_array().unwrap().len(), 1);

    assert_eq!(world.done("a", &["contract", "check", "src/auth.ts"])["compared"], 1);
    world.write("src/auth.ts", &CODE.replace("login(a: string)", "login(a: number)"));
    let (code, broken) = world.ask("a", &["contract", "check", "src/auth.ts"]);
    assert_eq!((code, &broken["violations"][0]["fault"]), (1, &json!("changed")));
    assert_eq!(broken["violations"][0]["actual"], "(a: number): string");
    fs::remove_file(world.repo().join("src/auth.ts")).unwrap();
    let (code, broken) = world.ask("a", &["contract", "check", "src/auth.ts"]);
    assert_eq!((code, &broken["violations"][0]["fault"]), (1, &json!("deleted")));
}

#[test]
fn the_guard_tells_free_from_held_from_not_known() {
    let world = world();
    let mut daemon = world.start();
    world.done("a", &["lock", "src/auth.ts:login", "--reason", "mine"]);
    assert_eq!(world.done("a", &["guard", "src/auth.ts"])["free"], true);
    let (code, held) = world.ask("b", &["guard", "README.md", "src/auth.ts"]);
    assert_eq!((code, &held["free"]), (5, &json!(false)));
    let lock = &held["blocked"][0]["lock"];
    assert_eq!((&lock["holder"], &lock["reason"]), (&json!("a"), &json!("mine")));
    assert!(lock["fence"].is_u64() && lock["until"].is_string());
    let with = |text: &str| {
        let mut guard = world.by("b", &["guard", "src/auth.ts", "--stdin-content"]);
        let mut guard =
            guard.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        guard.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        said(&guard.wait_with_output().unwrap())
    };
    assert_eq!(with(&CODE.replace("other()", "another()")).0, 0);
    let (code, held) =
        with(&CODE.replace("return a }\nexport function other", "return \"\" }\nexport function other"));
    assert_eq!((code, &held["blocked"][0]["touched"]), (5, &json!(true)));
    assert_eq!(world.ask("b", &["guard", "../x"]).0, 2);
    // One that hangs is no yes, and not waited for for long.
    world.configure("[git]\ndeadline = \"1s\"\n");
    let pid = rustix::process::Pid::from_child(&daemon.child);
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    let (code, no) = world.ask("b", &["guard", "src/auth.ts"]);
    rustix::process::kill_process(pid, rustix::process::Signal::CONT).unwrap();
    assert_eq!(code, 6, "{no}");
    daemon.kill();
    let (code, no) = world.ask("b", &["guard", "src/auth.ts"]);
    assert_eq!((code, &no["exit_code"]), (6, &json!(6)), "{no}");
}

#[test]
fn whoever_watches_hears_of_locks_intents_and_contracts_as_they_come() {
    let world = world();
    let _daemon = world.start();
    world.done("a", &["lock", "src/auth.ts:login"]);
    let mut watch = world.by("b", &["watch"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let mut next = || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap();
    let first = next();
    assert_eq!(first["state"]["locks"][0]["holder"], "a");
    world.done("a", &["unlock", "src/auth.ts:login"]);
    // Something else happens in between, which is none of its business.
    let task = fresh("task");
    world.command(&["delegate", "true", "--task", &task, "--wait"]).output().unwrap();
    world.done("c", &["intent", "declare", "x", "--file", "src/auth.ts"]);
    let offered = world.done("a", &["contract", "propose", "src/auth.ts:login"]);
    world.done("b", &["contract", "accept", offered["id"].as_str().unwrap()]);
    for kind in ["lock_freed", "intent_declared", "contract_proposed", "contract_moved"] {
        let event = next();
        assert!(event["kind"][kind].is_object(), "{kind}: {event}");
        assert!(event["seq"].as_u64() > first["seq"].as_u64());
    }
    watch.kill().unwrap();
    watch.wait().unwrap();
}

#[test]
fn who_speaks_is_said_by_a_flag_else_by_the_environment_else_it_is_the_user() {
    let world = world();
    let _daemon = world.start();
    let holder = |more: &[(&str, &str)], args: &[&str]| {
        let mut command = world.command(args);
        command.arg("--json").envs(more.iter().copied());
        said(&command.output().unwrap()).1["lock"]["holder"].clone()
    };
    let args = |symbol: &'static str| ["lock", symbol];
    assert_eq!(holder(&[], &args("x.ts:a")), "user:tester");
    let all = [("CLAUDE_SESSION_ID", "c"), ("WIT_SESSION", "w"), ("PROVOST_AGENT", "p")];
    assert_eq!(holder(&all[..1], &args("x.ts:b")), "c");
    assert_eq!(holder(&all[..2], &args("x.ts:c")), "w");
    assert_eq!(holder(&all, &args("x.ts:d")), "p");
    assert_eq!(holder(&all, &["lock", "x.ts:e", "--as", "f"]), "f");
    let (code, no) = world.ask("client:approver", &["lock", "x.ts:f"]);
    assert_eq!(code, 4, "{no}");
    let (code, no) = world.ask("bad\u{7}name", &["lock", "x.ts:f"]);
    assert_eq!(code, 2, "{no}");
}

#[test]
fn the_example_hook_of_an_agent_lets_it_write_or_says_whose_it_is() {
    let world = world();
    let mut daemon = world.start();
    world.done("a", &["lock", "src/auth.ts:login", "--reason", "mine"]);
    let script = crate::support::source::project_root().join("docs/examples/guard_before_write.py");
    let program = crate::support::provost();
    let path = format!("{}:/usr/bin:/bin", program.parent().unwrap().display());
    let like = world.command(&[]);
    let ask = |strict: bool, request: Value| {
        let mut hook = Command::new("python3");
        hook.arg(&script).args(strict.then_some("--strict")).current_dir(world.repo()).env_clear();
        hook.envs(like.get_envs().filter_map(|(name, value)| Some((name, value?)))).env("PATH", &path);
        let mut hook =
            hook.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        hook.stdin.take().unwrap().write_all(request.to_string().as_bytes()).unwrap();
        let done = hook.wait_with_output().unwrap();
        (done.status.code().unwrap(), String::from_utf8_lossy(&done.stderr).into_owned())
    };
    let file = world.repo().join("src/auth.ts");
    let write = |agent: &str, content: Option<&str>| json!({ "session_id": agent, "tool_input": { "file_path": file, "content": content } });
    assert_eq!(ask(false, write("a", None)).0, 0);
    let (code, why) = ask(false, write("b", None));
    assert!(code == 2 && why.contains("src/auth.ts:login is locked by a until"), "{code} {why}");
    assert_eq!(ask(false, write("b", Some(&CODE.replace("other()", "another()")))).0, 0);
    assert_eq!(ask(false, write("b", Some(""))).0, 2);
    assert_eq!(ask(true, json!({ "session_id": "b", "tool_input": { "command": "ls" } })).0, 0);
    daemon.kill();
    assert_eq!(ask(false, write("b", None)).0, 0);
    assert_eq!(ask(true, write("b", None)).0, 2);
}

#[test]
fn a_call_that_is_a_guess_is_not_told_as_certain() {
    let world = World::new();
    world.write("src/session.py", "class Session:\n    def renew(self):\n        pass\n");
    let calls = "from session import Session\n\n\ndef perhaps(x):\n    x.renew()\n\n\ndef surely():\n    s = Session()\n    s.renew()\n";
    world.write("src/calls.py", calls);
    let _daemon = world.start();
    let renew = "src/session.py:Session.renew";
    until_some("the calls are read", || {
        let callers = world.ask("ada", &["graph", "callers", renew]).1.to_string();
        (callers.contains("perhaps") && callers.contains("surely")).then_some(())
    });
    for (caller, verb, guessed) in [("perhaps", "may call", true), ("surely", "calls", false)] {
        let caller = format!("src/calls.py:{caller}");
        world.done("ada", &["lock", &caller]);
        let granted = world.done("bob", &["lock", renew]);
        let warning = &granted["warnings"][0];
        let says = format!("{caller}, which {verb} {renew}, is locked by ada");
        assert!(warning["message"].as_str().is_some_and(|it| it.contains(&says)), "{granted}");
        assert_eq!(warning["guessed"], guessed, "{granted}");
        let told = world.done(
            "bob",
            &["intent", "declare", "renew it", "--file", "src/session.py", "--symbol", "Session.renew"],
        );
        assert!(told.to_string().contains(&says), "{told}");
        world.done("bob", &["unlock", renew]);
        world.done("ada", &["unlock", &caller]);
    }
}
