//! Runs on other machines while they go on: what their workers write is read where they were asked for, and their agents hear what is said
//! to them there.

use std::process::Stdio;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use serde_json::{Value, json};

use super::daemons_of_hosts::signal;
use super::tasks_of_hosts::{ask, builder, delegate, host_of, is, machines, task, until};
use crate::support::World;
use crate::support::acp_agent;
use crate::support::commands::said;
use crate::support::forger::{own as of_host, signed};
use crate::support::machines::state_dir;
use crate::support::mcp_host::Host;
use crate::support::own_api::own;
use crate::support::postgres::name_of;
use crate::support::waits::until_some;

/// Returns the output of a task's worker from a position on, as soon as there is some, or after two seconds.
fn page(world: &World, id: &str, from: u64) -> Value {
    let (status, page) =
        own(world, ("GET", &format!("/output?id={id}&from={from}&wait_ms=2000")), &[], &Value::Null);
    assert_eq!(status, 200, "{page}");
    page
}

fn text(page: &Value) -> String {
    page["chunks"].as_array().unwrap().iter().map(|it| it["text"].as_str().unwrap()).collect()
}

#[test]
fn what_a_run_on_another_machine_writes_is_read_while_it_runs_and_once() {
    let (machines, _daemons) = machines(["", &builder(""), ""]);
    let [a, b, c] = &machines.all[..] else { panic!("three") };
    let goal = "echo first; sleep 8; echo second >&2; echo third";
    assert_eq!(delegate(a, "far", goal, &[]).0, 0);
    assert_eq!(is(a, "far", "running")["host"], host_of(b));
    let follow = ["task", "show", "far", "--wait", "--raw"];
    let follow = a.command(&follow).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let first = until_some("it is read where it was asked for", || {
        Some(page(a, "far", 0)).filter(|it| text(it) == "first\n")
    });
    assert_eq!((&first["next"], &first["done"]), (&6.into(), &false.into()), "{first}");
    // On a third machine, too.
    until("it is read there", || text(&page(c, "far", 0)) == "first\n");
    assert_eq!(task(a, "far")["state"], "running", "it was read while it ran");

    let followed = follow.wait_with_output().unwrap();
    let shown = String::from_utf8_lossy(&followed.stdout);
    assert!(followed.status.success() && shown == "first\nthird\n", "{followed:?}");
    assert!(String::from_utf8_lossy(&followed.stderr).contains("second"), "{followed:?}");
    // What the run has left has the same places.
    is(a, "far", "completed");
    let rest = page(a, "far", 6);
    assert!(text(&rest).len() == 13 && text(&rest).contains("third"), "{rest}");
    assert_eq!(rest["next"], 19, "{rest}");
    machines.check();
}

#[test]
fn what_an_earlier_attempt_here_has_left_is_not_taken_for_that_of_a_later_one_elsewhere() {
    let twice = builder("retries = 1\nretry_delay = \"21s\"");
    let (machines, _daemons) = machines([&format!("[limits]\nworkers = 1\n{twice}"), &twice]);
    let [a, b] = &machines.all[..] else { panic!("two") };
    // The attempts do the same thing, so they tell themselves apart by the time.
    let goal = format!(
        "if [ $(date +%s) -lt {} ]; then echo the first; echo first >made.txt; exit 3; fi; echo second; sleep 6",
        chrono::Utc::now().timestamp() + 20
    );
    assert_eq!(delegate(a, "twice", &goal, &[]).0, 0);
    until("its first attempt has failed", || task(a, "twice")["state"] == "retrying");
    assert_eq!(text(&page(a, "twice", 0)), "the first\n", "until the next one begins");
    assert_eq!(delegate(a, "busy", "sleep 60", &[]).0, 0);
    assert_eq!(is(a, "busy", "running")["host"], host_of(a));
    assert_eq!(is(a, "twice", "running")["host"], host_of(b));
    until("the second attempt is read", || text(&page(a, "twice", 0)) == "second\n");
    assert_eq!(task(a, "twice")["state"], "running", "it was read while it ran");
    let done = is(a, "twice", "completed");
    assert_eq!(done["attempt"], 2, "{done}");
    assert_eq!(text(&page(a, "twice", 0)), "second\n");
    // The last attempt has changed nothing.
    let shown = a.command(&["task", "diff", "twice"]).output().unwrap();
    let shown = String::from_utf8_lossy(&[shown.stdout, shown.stderr].concat()).into_owned();
    assert!(!shown.contains("+first"), "{shown}");
    assert_eq!(ask(a, &["task", "cancel", "busy"]).0, 0);
    machines.check();
}

#[test]
fn much_that_a_run_on_another_machine_writes_comes_in_order_and_whole() {
    let (machines, _daemons) = machines(["", &builder("")]);
    let a = &machines.all[0];
    assert_eq!(delegate(a, "much", "seq 1 30000; sleep 12; echo end", &[]).0, 0);
    is(a, "much", "running");
    let (mut read, mut from, mut live) = (String::new(), 0, 0);
    loop {
        let page = page(a, "much", from);
        read.push_str(&text(&page));
        from = page["next"].as_u64().unwrap();
        if task(a, "much")["state"] == "running" {
            live = read.len();
        }
        if page["done"] == true {
            break;
        }
    }
    let all: String = (1..=30_000).map(|n| format!("{n}\n")).collect();
    assert!(live > 100_000, "{live} bytes came while it ran");
    assert_eq!(read, all + "end\n");
    machines.check();
}

#[test]
fn a_machine_that_does_not_say_what_its_run_writes_is_named_and_its_output_comes_later() {
    let (machines, daemons) = machines(["", &builder("")]);
    let (a, b) = (&machines.all[0], &machines.all[1]);
    assert_eq!(delegate(a, "still", "echo first; sleep 25; echo last", &[]).0, 0);
    is(a, "still", "running");
    until("it is read", || text(&page(a, "still", 0)) == "first\n");
    signal(&daemons[1], "-STOP");
    let since = Instant::now();
    let note = until_some("it is said that nothing is heard", || {
        page(a, "still", 6)["note"].as_str().map(str::to_owned)
    });
    signal(&daemons[1], "-CONT");
    assert!(since.elapsed() < Duration::from_secs(13), "after {:?}", since.elapsed());
    assert!(note.contains(&host_of(b)) && note.contains("its output comes when it ends"), "{note}");
    until("the rest comes", || text(&page(a, "still", 6)) == "last\n");
    is(a, "still", "completed");
    machines.check();
}

#[test]
fn agents_read_what_a_run_on_another_machine_writes_and_say_something_to_it() {
    let (machines, daemons) = machines(["", ""]);
    let (a, b) = (&machines.all[0], &machines.all[1]);
    drop(daemons);
    machines.configure_with(b, &acp_agent::entry(b, "coder", "", "copy = \"kept\""));
    let _daemons = machines.start();
    until("each has said what it can do", || machines.sql("select count(*) from provost.ability") == "2");
    let (code, told) =
        ask(a, &["delegate", "say first\nuntil-cancel", "--worker", "coder", "--task", "talk"]);
    assert_eq!(code, 0, "{told}");
    until("its session has begun", || task(a, "talk")["session"].is_object());
    assert_eq!(task(a, "talk")["host"], host_of(b));
    let mut host = Host::old(a, "ada");
    until("its host reads it", || {
        let page = host.does("task_output", json!({ "task_id": "talk", "max_wait_s": 2 }));
        page.to_string().contains("first")
    });
    let out = a.by("ada", &["say", "talk", "--now", "say second"]).output().unwrap();
    let (code, told) = said(&out);
    assert!(code == 0 && told["number"] == 1, "{told}");
    let done = is(a, "talk", "completed");
    assert_eq!(done["said"][0]["state"], "delivered", "{done}");
    assert!(done.to_string().contains("second"), "{done}");
    machines.check();
}

#[test]
fn what_no_host_has_signed_is_heard_by_none_and_nothing_is_said_without_a_reader() {
    let (machines, _daemons) = machines(["", &builder(""), ""]);
    let [a, b, c] = &machines.all[..] else { panic!("three") };
    assert_eq!(delegate(a, "quiet", "echo secret words; sleep 30", &[]).0, 0);
    is(a, "quiet", "running");
    let (of_a, of_b) = (of_host(a).host, of_host(b).host);
    let question = json!({ "output_of": "quiet", "attempt": 1, "from": 0, "number": "7" }).to_string();
    let secret = std::fs::read(state_dir(a).join("journal.key")).unwrap();
    let word = |key: &[u8], from: &str, to: &str, signer: &World| {
        let parts = ["provost-host-word-v1", from, to, &question].map(str::as_bytes);
        let signature = STANDARD_NO_PAD.encode(signed(signer, key, &parts));
        format!("{from} {signature} {}", STANDARD_NO_PAD.encode(&question))
    };
    // Both are at the server at once: who listens in their place hears what they would.
    let heard = |word: &str| {
        let listen = format!("listen \"provost_1_{of_a}\"");
        let say = format!("select pg_notify('provost_1_{of_b}', '{word}')");
        let said = machines
            .server
            .session(&name_of(&machines.database), &[&listen, &say, "select pg_sleep(2)", "select 1"]);
        said.matches("Asynchronous notification").count()
    };
    let (from, to) = (of_a.to_string(), of_b.to_string());
    assert_eq!(heard("nonsense"), 0);
    assert_eq!(heard(&word(b"another key", &from, &to, a)), 0);
    assert_eq!(heard(&word(&secret, &from, &from, a)), 0, "it is sealed for another host");
    assert_eq!(heard(&word(&secret, &from, &to, c)), 0, "the host that it names has not signed it");
    assert_eq!(heard(&word(&secret, &from, &to, a)), 1, "a host of the repository is answered");
    assert_eq!(ask(a, &["task", "cancel", "quiet"]).0, 0);
    machines.check();
}
