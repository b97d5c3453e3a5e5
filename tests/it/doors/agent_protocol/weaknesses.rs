//! Mistakes of the published server, one test for each that is not tried elsewhere. By their numbers in the list of
//! weaknesses, these are tried elsewhere:
//!
//! 2, state lost at a restart: `door.rs`, `a_crash_loses_nothing_that_was_answered`. 3, every interface, and
//! 4, any name and page: `loopback/admission.rs`, `loopback/peers.rs`, `loopback/browser.rs`. 5, forged
//! names: `door.rs`, `nobody_speaks_under_a_reserved_name`, and `tokens.rs`. 6, 7 and 8, digests of any file,
//! pipes that hang, aliases of paths: `files.rs`. 10, HTML in ids: `door.rs`, `pages_cannot_be_written_into`.
//! 11, stacks and halves of hand-offs: `door.rs`, `bad_input_gets_one_sentence_and_changes_nothing`. 12, a
//! watch that sees nothing and conflicts that are never found: `files.rs`, `conflicts.rs`. 13, the dead:
//! `door.rs`, `a_member_that_falls_silent_is_told_once`.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::json;

use crate::support::agent_protocol::started;
use crate::support::loopback_client::Http;
use crate::support::waits::until_some;
use crate::support::{UP, World, eventually};

/// 1: the server rewrites the whole log for each event, and the log is empty after a crash at the wrong moment.
#[test]
fn a_crash_amid_writing_loses_nothing_that_was_answered() {
    let (world, mut daemon, _) = started();
    let mut answered = BTreeSet::new();
    for round in 0..3 {
        let stop = Arc::new(AtomicBool::new(false));
        let writers: Vec<_> = (0..4)
            .map(|w| {
                let stop = Arc::clone(&stop);
                let http = Http::agent_protocol(&world);
                thread::spawn(move || {
                    let mut got = Vec::new();
                    while !stop.load(Ordering::Relaxed) {
                        let body = json!({ "agent_id": "a", "action": format!("w.{round}.{w}"), "metadata": got.len() });
                        // The end of the daemon ends the connection, too.
                        let Ok(answer) = std::panic::catch_unwind(|| http.post("/events", &body)) else { break };
                        if answer.status != 201 {
                            break;
                        }
                        got.push(answer.json()["id"].as_str().unwrap().to_owned());
                    }
                    got
                })
            })
            .collect();
        let http = Http::agent_protocol(&world);
        eventually("much to be written", || http.count() > 100 * (round + 1));
        daemon.kill();
        stop.store(true, Ordering::Relaxed);
        writers.into_iter().for_each(|it| answered.extend(it.join().unwrap()));
        daemon = world.start();
        let http = Http::agent_protocol(&world);
        let all = http.get("/events?limit=-1").json();
        let all: BTreeSet<String> =
            all.as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap().to_owned()).collect();
        assert!(
            answered.is_subset(&all),
            "{} of {} are missing",
            answered.difference(&all).count(),
            answered.len()
        );
        assert_eq!(http.count(), all.len() as u64);
    }
    assert!(answered.len() > 200);
}

fn resident_kib(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = text.lines().find(|it| it.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// 9: what is sent to readers that do not read is held without bounds.
#[test]
fn readers_that_do_not_read_are_cut_off_and_hold_no_memory() {
    let (_world, daemon, http) = started();
    let mut reads = http.stream("");
    let mut deaf: Vec<_> = (0..20).map(|_| http.stream("")).collect();
    let before = resident_kib(daemon.pid());
    let large = "x".repeat(200_000);
    for n in 0..100 {
        let body = json!({ "agent_id": "a", "action": "large", "metadata": { "n": n, "large": large } });
        assert_eq!(http.post("/events", &body).status, 201);
        assert_eq!(reads.event()["metadata"]["n"], n, "whoever reads misses nothing");
    }
    let grown = resident_kib(daemon.pid()).saturating_sub(before);
    assert!(grown < 64 << 10, "{grown} KiB for twenty readers of twenty megabytes");
    for stream in &mut deaf {
        let mut got = 0;
        while stream.frame().is_some() {
            got += 1;
        }
        assert!(got < 100, "{got} frames were held for it");
    }
    assert_eq!(http.get("/healthz").status, 200);
}

/// 9: agents, files, tasks and hand-offs are never forgotten.
#[test]
fn what_nobody_asks_about_any_more_gives_way() {
    let (_world, _daemon, http) = started();
    http.announce("a");
    let text = "x".repeat(60_000);
    // More than are held, by their size.
    for _ in 0..600 {
        let body = json!({ "title": "t", "assigned_by": "a", "description": text });
        let made = http.post("/tasks", &body);
        assert!(made.status == 201, "{}", made.status);
        let id = made.json()["id"].as_str().unwrap().to_owned();
        let done = json!({ "status": "done", "agent_id": "a" }).to_string();
        let head = [("Content-Type", "application/json")];
        assert_eq!(http.send(&format!("PATCH /tasks/{id}"), &head, done.as_bytes()).status, 200);
    }
    let total = http.get("/status").json()["tasks"]["total"].as_u64().unwrap();
    assert!(total < 600 && total > 100, "{total}");
}

/// 14: of two who change a task at once, the first one's change is lost.
#[test]
fn of_two_who_move_a_task_at_once_one_is_told_where_it_is() {
    let (_world, _daemon, http) = started();
    let task = http.post("/tasks", &json!({ "title": "t", "assigned_by": "a" })).json();
    let line = format!("PATCH /tasks/{}", task["id"].as_str().unwrap());
    let move_it = move |agent: String| {
        let body = json!({ "status": "in_progress", "agent_id": agent, "expected_status": "queued" });
        http.send(&line, &[("Content-Type", "application/json")], body.to_string().as_bytes())
    };
    let asking: Vec<_> = (0..8)
        .map(|n| {
            let move_it = move_it.clone();
            thread::spawn(move || move_it(format!("a{n}")))
        })
        .collect();
    let answers: Vec<_> = asking.into_iter().map(|it| it.join().unwrap()).collect();
    assert_eq!(answers.iter().filter(|it| it.status == 200).count(), 1, "{answers:?}");
    let refused = json!({ "error": "this task has moved on", "status": "in_progress" });
    let told = answers.iter().filter(|it| it.status == 409);
    assert_eq!(told.map(|it| it.json()).collect::<Vec<_>>(), vec![refused; 7]);
    let started = http.get("/events?action=task.started").json();
    assert_eq!(started.as_array().unwrap().len(), 1);
}

/// 15: an interrupt waits for each reader that has the dashboard open.
#[test]
fn an_interrupt_ends_the_daemon_while_streams_and_polls_are_open() {
    let (world, mut daemon, http) = started();
    let mut stream = http.stream("");
    http.announce("a");
    let last = stream.event()["id"].as_str().unwrap().to_owned();
    let mut waiting = http.connect();
    let line =
        format!("GET /events?since_id={last}&wait=25 HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n\r\n", http.port);
    std::io::Write::write_all(&mut waiting, line.as_bytes()).unwrap();
    let interrupted = Command::new("kill").args(["-INT", &daemon.pid().to_string()]).status().unwrap();
    assert!(interrupted.success());
    assert_eq!(stream.frame(), None);
    let mut rest = String::new();
    let _reset_or_ended = waiting.read_to_string(&mut rest);
    assert!(rest.is_empty() || rest.starts_with("HTTP/1.1 200"), "{rest}");
    assert!(daemon.ended().success());
    let _again = world.start();
    assert_eq!(Http::agent_protocol(&world).get("/agents/a").status, 200);
}

/// 16: between the check whether a port is free and its use, another process takes it.
#[test]
fn of_two_that_start_at_once_at_one_port_one_gets_it_and_the_other_says_who_has_it() {
    let port = crate::support::hub::free_port();
    let worlds = [World::new(), World::new()];
    let start = |world: &World| -> Child {
        world.configure(&format!("[agent_protocol]\nport = {port}\n[broker]\nenabled = false\n"));
        let mut command = world.command(UP);
        command.env_remove("PROVOST_AGENT_PROTOCOL_PORT");
        command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let mut both: Vec<Child> = worlds.iter().map(start).collect();
    let gave_up = || both.iter_mut().position(|it| it.try_wait().unwrap().is_some());
    let ended = until_some("the end of one of them", gave_up);
    let loser = both.remove(ended);
    let mut winner = both.pop().unwrap();
    let output = loser.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains(&format!("port {port} is taken by")), "{said}");
    let world = &worlds[1 - ended];
    eventually("the other one's door", || world.command(&["status"]).output().unwrap().status.success());
    assert_eq!(Http::agent_protocol(world).port, port);
    winner.kill().unwrap();
    winner.wait().unwrap();
}
