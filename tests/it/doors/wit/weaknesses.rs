//! Failures that were shown of wit's own daemon, tried on Provost. Each test names the failure that it is about: W1 to
//! W17 and W19 of the list that the door was built to. W6 is the threat model's, W14 and W17 are also `door.rs`'s, W12
//! `vectors.rs`'s; W18 and W20 are not behaviour.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::support::wit_client::{Wit, git, world};
use crate::support::wit_world::recorded_world;
use crate::support::wit_world::{kinds, lock, started};
use crate::support::{Daemon, eventually};

/// The memory that a process has at the moment, in KiB.
fn memory(daemon: &Daemon) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", daemon.pid())).unwrap();
    let line = status.lines().find_map(|it| it.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// A file of this many functions; each one calls the next.
fn functions(count: usize) -> String {
    let one = |it: usize| {
        format!("export function f{it}(a: string, b: number): boolean {{\n  return f{}(a, b);\n}}\n", it + 1)
    };
    (0..count).map(one).collect()
}

fn declare(who: &str, file: &str, symbols: Value) -> Value {
    json!({ "sessionId": who, "description": format!("of {who}"), "files": [file], "symbols": symbols })
}

#[test]
fn w1_memory_does_not_grow_with_the_number_of_locks() {
    let world = world();
    world.put(&world.repo().join("src/large.ts"), &functions(350));
    let (daemon, wit) = started(&world);
    let round = |from: usize| {
        for it in from..from + 400 {
            let at = format!("src/large.ts:f{}", it % 350);
            wit.ask("lock.acquire", lock(&at, "A"));
            wit.ask("lock.release", lock(&at, "A"));
        }
    };
    round(0);
    let before = memory(&daemon);
    (1..4).for_each(|it| round(it * 400));
    let after = memory(&daemon);
    assert!(after < before + before / 4, "{before} KiB after 400 locks, {after} KiB after 1,600");
}

#[test]
fn w2_a_file_that_takes_long_stalls_nobody_else() {
    let world = world();
    // As large as is read at all.
    world.put(&world.repo().join("src/slow.ts"), &functions(40_000));
    let (_daemon, wit) = started(&world);
    let (done, others) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let answer = wit.ask("lock.acquire", lock("src/slow.ts:f1", "A"));
            done.store(true, Ordering::SeqCst);
            assert!(answer["fence"].is_u64());
        });
        while !done.load(Ordering::SeqCst) {
            assert!(wit.answers());
            others.fetch_add(1, Ordering::SeqCst);
        }
    });
    assert!(others.load(Ordering::SeqCst) > 20, "{others:?} others were answered meanwhile");
}

#[test]
fn w3_however_many_start_at_once_one_daemon_is_left() {
    let world = world();
    let ups: Vec<_> = (0..4)
        .map(|_| world.command(&["up"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
        .collect();
    for mut up in ups {
        up.wait().unwrap();
    }
    let wit = Wit::of(&world);
    assert!(wit.answers());
    let status = world.command(&["status", "--json"]).output().unwrap();
    let status: Value = serde_json::from_slice(&status.stdout).unwrap();
    let number = fs::read_to_string(world.repo().join(".wit/daemon.pid")).unwrap();
    assert_eq!(status["pid"].to_string(), number);
    // One more goes without taking anything along.
    assert!(world.command(&["up"]).output().unwrap().status.success());
    assert!(wit.answers());
    assert!(world.command(&["down"]).output().unwrap().status.success());
    assert!(!wit.socket.exists());
}

#[test]
fn w4_of_many_who_ask_at_once_one_gets_the_lock() {
    const CROWD: usize = 8;
    let world = world();
    let (_daemon, wit) = started(&world);
    for round in 0..25 {
        let (at, line) = (format!("src/a.ts:s{round}"), Barrier::new(CROWD));
        let winners = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for who in 0..CROWD {
                let (wit, at, line, winners) = (&wit, &at, &line, &winners);
                scope.spawn(move || {
                    line.wait();
                    let answer = wit.call("lock.acquire", Some(&lock(at, &format!("agent-{who}"))));
                    if answer.get("result").is_some() {
                        winners.fetch_add(1, Ordering::SeqCst);
                    } else {
                        assert_eq!(answer["error"]["message"], "LOCK_CONFLICT");
                    }
                });
            }
        });
        assert_eq!(winners.into_inner(), 1, "round {round}");
    }
}

#[test]
fn w5_nothing_outside_of_the_repository_is_read_and_nothing_is_waited_for() {
    let world = world();
    let (repo, outside) = (world.repo(), world.path("secret.ts"));
    fs::write(&outside, "export function secret(key: string): void {}\n").unwrap();
    fs::create_dir_all(repo.join("src/folder.ts")).unwrap();
    symlink(&outside, repo.join("src/link.ts")).unwrap();
    symlink(outside.parent().unwrap(), repo.join("src/up")).unwrap();
    symlink("loop.ts", repo.join("src/loop.ts")).unwrap();
    symlink("/dev/zero", repo.join("src/zero.ts")).unwrap();
    assert!(Command::new("mkfifo").arg(repo.join("src/pipe.py")).status().unwrap().success());
    fs::File::create(repo.join("src/huge.ts")).unwrap().set_len(100 << 20).unwrap();
    fs::write(repo.join("src/deep.ts"), "export const x = ".to_owned() + &"[".repeat(100_000)).unwrap();
    fs::write(repo.join("src/bytes.ts"), b"export function f(a: \"\xff\xfe\"): void {}\n").unwrap();
    let (_daemon, wit) = started(&world);
    for (at, read) in [
        ("src/link.ts:secret", false),
        ("src/up/secret.ts:secret", false),
        ("src/loop.ts:x", false),
        ("src/zero.ts:x", false),
        ("src/folder.ts:x", false),
        ("src/pipe.py:x", false),
        ("src/huge.ts:x", false),
        ("src/deep.ts:nothing", false),
        ("src/bytes.ts:f", true),
    ] {
        // A lock is given, since wit's clients lock what is not there yet; nothing of the file is in the answer.
        let locked = wit.ask("lock.acquire", lock(at, "A"));
        assert!(!locked.to_string().contains("key: string"), "{locked}");
        let proposed = wit.call("contract.propose", Some(&lock(at, "A")));
        assert_eq!(proposed.get("result").is_some(), read, "{at}: {proposed}");
        if !read {
            assert_eq!(proposed["error"]["message"], "SYMBOL_NOT_FOUND", "{at}");
            assert!(proposed["error"]["data"]["message"].as_str().is_some_and(|it| !it.is_empty()));
        }
        let intent =
            wit.ask("intent.declare", declare("B", at.split(':').next().unwrap(), json!(["secret", "x"])));
        assert!(intent["intentId"].is_string());
        wit.ask("lock.release", lock(at, "A"));
    }
    let pipe = wit.ask("lock.acquire", lock("src/pipe.py:x", "A"));
    assert!(kinds(&pipe["warnings"]).contains(&"UNREAD_FILE"), "{pipe}");
}

#[test]
fn w7_what_is_refused_was_not_done_and_what_was_done_is_answered() {
    let world = world();
    // Far more calls than wit's daemon could write down.
    let calls: String = (0..30_000).map(|it| format!("  g{it}(f{});\n", it % 7)).collect();
    world.put(&world.repo().join("src/edges.ts"), &format!("export function f(): void {{\n{calls}}}\n"));
    let (_daemon, wit) = started(&world);
    let granted = wit.call("lock.acquire", Some(&lock("src/edges.ts:f", "A")));
    assert!(granted["result"]["fence"].is_u64(), "{granted}");
    assert_eq!(wit.ask("lock.query", json!({})).as_array().unwrap().len(), 1);
    let wrong = json!({ "symbolPath": "src/edges.ts:g", "sessionId": "A", "ttlMs": -1 });
    assert_eq!(wit.token("lock.acquire", wrong), "INVALID_REQUEST");
    assert_eq!(wit.ask("lock.query", json!({})).as_array().unwrap().len(), 1);
}

#[test]
fn w8_one_broken_contract_among_many_files_is_found_in_every_language() {
    let world = world();
    for it in 0..60 {
        world.put(&world.repo().join(format!("src/m{it}.ts")), &functions(20));
        world
            .put(&world.repo().join(format!("src/n{it}.jsx")), "export function f0(a, b) { return <a/>; }\n");
    }
    let (_daemon, wit) = started(&world);
    let files: Vec<String> =
        (0..60).flat_map(|it| [format!("src/m{it}.ts"), format!("src/n{it}.jsx")]).collect();
    for file in &files {
        let offered = wit.ask("contract.propose", lock(&format!("{file}:f0"), "A"));
        wit.ask(
            "contract.respond",
            json!({ "contractId": offered["contractId"], "sessionId": "B", "accept": true }),
        );
    }
    let staged = |broken: &str| -> Value {
        let one = |file: &String| {
            let content = fs::read_to_string(world.repo().join(file)).unwrap();
            let content = if file == broken { content.replacen("(a", "(z", 1) } else { content };
            json!({ "path": file, "content": content })
        };
        json!({ "files": files.iter().map(one).collect::<Vec<_>>() })
    };
    let clean = wit.ask("check-contracts", staged("none"));
    assert_eq!((&clean["violations"], &clean["compared"]), (&json!([]), &json!(120)));
    for broken in ["src/m59.ts", "src/n0.jsx"] {
        let found = wit.ask("check-contracts", staged(broken))["violations"].clone();
        assert_eq!(found.as_array().unwrap().len(), 1, "{found}");
        assert_eq!(found[0]["symbolPath"], format!("{broken}:f0"));
    }
}

#[test]
fn w9_symbols_after_the_first_element_of_jsx_are_there() {
    let world = recorded_world();
    let (_daemon, wit) = started(&world);
    for at in [
        "widget.tsx:Panel.render",
        "widget.tsx:App",
        "widget.tsx:afterJsx",
        "legacy.jsx:Plain",
        "legacy.jsx:helper",
    ] {
        wit.ask("contract.propose", lock(&format!("src/{at}"), "A"));
    }
}

#[test]
fn w10_calls_in_callbacks_have_a_caller_before_anybody_has_locked_anything_there() {
    let world = world();
    let text = "export function all(xs: string[]): void { xs.forEach((x) => one(x)); }\n\
        export function one(x: string): void {}\n";
    world.put(&world.repo().join("src/a.ts"), text);
    let (_daemon, wit) = started(&world);
    wit.ask("lock.acquire", lock("src/a.ts:one", "A"));
    let report = wit.ask("intent.declare", declare("B", "src/a.ts", json!(["all"])));
    let items = &report["conflicts"]["items"];
    assert_eq!(kinds(items), ["DEP_CHAIN"], "{report}");
    assert_eq!(
        (&items[0]["intentSymbol"], &items[0]["lockedCallee"]),
        (&json!("src/a.ts:all"), &json!("src/a.ts:one"))
    );
}

#[test]
fn w11_a_class_and_its_method_know_of_each_other_and_a_misspelt_name_is_told() {
    let world = recorded_world();
    let (_daemon, wit) = started(&world);
    wit.ask("lock.acquire", lock("src/tricky.ts:Second", "A"));
    assert_eq!(wit.token("lock.acquire", lock("src/tricky.ts:Second.run", "B")), "LOCK_CONFLICT");
    let misspelt = wit.ask("lock.acquire", lock("src/tricky.ts:Secnod", "B"));
    assert!(kinds(&misspelt["warnings"]).contains(&"UNKNOWN_SYMBOL"), "{misspelt}");
    let nowhere = wit.ask("lock.acquire", lock("src/trikcy.ts:Second", "B"));
    assert!(kinds(&nowhere["warnings"]).contains(&"NO_FILE"), "{nowhere}");
    let several = wit.refused("contract.propose", lock("src/tricky.ts:run", "A"));
    assert_eq!(several["data"]["candidates"], json!(["Base.run", "Second.run"]), "{several}");
}

#[test]
fn w12_every_spelling_of_a_file_is_that_file() {
    let world = world();
    world.put(&world.repo().join("src/a.ts"), &functions(3));
    symlink("src", world.repo().join("alias")).unwrap();
    let (_daemon, wit) = started(&world);
    wit.ask("lock.acquire", lock("src/a.ts:f0", "A"));
    for other in [
        "./src/a.ts:f0",
        "src//a.ts:f0",
        "x/../src/a.ts:f0",
        "src\\a.ts:f0",
        "alias/a.ts:f0",
        "src/./a.ts:f0",
    ] {
        assert_eq!(wit.token("lock.acquire", lock(other, "B")), "LOCK_CONFLICT", "{other}");
    }
    assert_eq!(
        wit.ask("lock.acquire", lock("alias/a.ts:f1", "B"))["symbolPath"],
        "alias/a.ts:f1",
        "as it was asked"
    );
}

#[test]
fn w13_work_trees_are_one_repository() {
    let world = world();
    git(&world.repo(), &["commit", "--quiet", "--allow-empty", "-m", "first"]);
    let other = world.path("other");
    git(&world.repo(), &["worktree", "add", "--quiet", other.to_str().unwrap()]);
    let (_daemon, wit) = started(&world);
    let there = Wit::in_tree(&other);
    eventually("an answer", || there.answers());
    wit.ask("lock.acquire", lock("src/a.ts:f", "A"));
    assert_eq!(there.refused("lock.acquire", lock("src/a.ts:f", "B"))["data"]["heldBy"], "A");
    let number = |top: &std::path::Path| fs::read_to_string(top.join(".wit/daemon.pid")).unwrap();
    assert_eq!(number(&world.repo()), number(&other));
}

#[test]
fn w14_what_was_granted_is_there_after_a_crash_and_so_is_the_door() {
    let world = world();
    let (mut daemon, wit) = started(&world);
    let fence = wit.ask("lock.acquire", lock("src/a.ts:f", "A"))["fence"].as_u64().unwrap();
    wit.ask("intent.declare", declare("A", "src/a.ts", json!([])));
    daemon.kill();
    let _daemon = world.start();
    eventually("an answer", || wit.answers());
    assert_eq!(wit.ask("lock.query", json!({}))[0]["fence"], fence);
    assert_eq!(wit.ask("intent.query", json!({}))[0]["sessionId"], "A");
    assert!(wit.ask("lock.acquire", lock("src/a.ts:g", "A"))["fence"].as_u64().unwrap() > fence);
}

#[test]
fn w15_what_is_settled_is_in_nobodys_way_and_not_kept_for_ever() {
    let world = world();
    let (_daemon, wit) = started(&world);
    for _ in 0..1_050 {
        let id = wit.ask("intent.declare", declare("A", "src/a.ts", json!([])))["intentId"].clone();
        wit.ask("intent.update", json!({ "intentId": id, "sessionId": "A", "status": "resolved" }));
    }
    let settled = wit.ask("intent.query", json!({ "status": "resolved" }));
    assert_eq!(settled.as_array().unwrap().len(), 1_000);
    let report = wit.ask("intent.declare", declare("B", "src/a.ts", json!([])));
    assert_eq!(report["conflicts"], json!({ "hasConflicts": false, "items": [] }));
}

#[test]
fn w16_ranges_are_bytes_of_each_file_as_it_is_now() {
    let world = recorded_world();
    let (_daemon, wit) = started(&world);
    wit.ask("intent.declare", declare("A", "src/tricky.ts", json!(["afterUnicode"])));
    let row = || wit.ask("intent.query", json!({ "sessionId": "A" }))[0].clone();
    let text = fs::read(world.repo().join("src/tricky.ts")).unwrap();
    let at = |text: &[u8]| {
        let wanted = b"function afterUnicode";
        text.windows(wanted.len()).position(|it| it == wanted).unwrap()
    };
    assert_eq!(row()["startByte"], at(&text));
    let moved = [b"// one line more\n".as_slice(), &text].concat();
    fs::write(world.repo().join("src/tricky.ts"), &moved).unwrap();
    eventually("the new place", || row()["startByte"] == at(&moved));

    let two = json!({ "sessionId": "B", "description": "d", "files": ["src/my_file.ts", "src/bom.ts"], "symbols": ["under", "crlf"] });
    wit.ask("intent.declare", two);
    let ranges = wit.ask("intent.query", json!({ "sessionId": "B" }))[0]["ranges"].clone();
    let files: Vec<_> = ranges.as_array().unwrap().iter().map(|it| it["file"].clone()).collect();
    assert_eq!(files, ["src/my_file.ts", "src/bom.ts"], "{ranges}");
}

#[test]
fn w17_and_w19_a_conflict_says_whose_it_is_and_one_can_wait_for_its_end() {
    let world = world();
    let (_daemon, wit) = started(&world);
    wit.ask("lock.acquire", lock("src/a.ts:f", "A"));
    let waits = wit.clone();
    let wait = json!({ "symbolPath": "src/a.ts:f", "sessionId": "B", "waitMs": 30_000 });
    let asked = std::thread::spawn(move || waits.ask("lock.acquire", wait));
    eventually("one who waits", || {
        let data = wit.refused("lock.acquire", lock("src/a.ts:f", "C"))["data"].clone();
        data["heldBy"] == "A" && data["waiting"] == 1
    });
    wit.ask("lock.release", lock("src/a.ts:f", "A"));
    assert_eq!(asked.join().unwrap()["sessionId"], "B");
}
