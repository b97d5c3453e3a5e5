//! One name at two machines, where nothing proves that it is one agent: each does what it does to its own alone, and reads its own alone. A
//! token makes it one agent, and the name is free where its machine has gone.

use std::time::Duration;

use serde_json::{Value, json};

use super::tasks_of_hosts::{host_of, until};
use crate::support::commands::said;
use crate::support::machines::Machines;
use crate::support::own_api::own;
use crate::support::terminal::at_the_terminal;
use crate::support::waits::stays;
use crate::support::{Client, Reply, World};

fn says(world: &World, args: &[&str]) -> (i32, String) {
    let out = world.by("ada", args).env("DEVIT_NO_AUTO_START", "1").output().expect("the command runs");
    let (code, said) = said(&out);
    (code, said.to_string())
}

fn holder(world: &World, n: usize) -> Value {
    let (_, locks) = own(world, ("GET", "/locks"), &[], &Value::Null);
    let all = locks["locks"].as_array().or_else(|| locks.as_array()).cloned().unwrap_or_default();
    let found = all.iter().find(|it| it["symbol"] == format!("src/a.rs:f{n}"));
    found.map_or(Value::Null, |it| it["holder"].clone())
}

/// Has `ada` on the first machine take the first lock, and waits until the other machine knows that name as another one's.
fn begin(machines: &Machines) -> String {
    let (a, b) = (&machines.all[0], &machines.all[1]);
    assert_eq!(says(a, &["lock", "acquire", "src/a.rs:f1"]).0, 0);
    let there = format!("ada@{}", host_of(b));
    until("it is another one's there", || called(b) == there);
    there
}

/// The name by which a machine's daemon calls an agent that says `ada`.
fn called(world: &World) -> String {
    let (_, me) = own(world, ("GET", "/who-am-i"), &[("x-provost-agent", "ada")], &Value::Null);
    me["agent"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn no_name_at_another_machine_takes_an_agents_own_name_away() {
    let machines = Machines::joined(2);
    let _daemons = machines.start();
    let (a, b) = (&machines.all[0], &machines.all[1]);
    assert_eq!(says(a, &["lock", "acquire", "src/a.rs:f1"]).0, 0);
    // Both share an inbox with the name that the first machine would make of `ada`.
    for (n, name) in [format!("ada-{}", host_of(a)), format!("Ada.{}", host_of(a))].iter().enumerate() {
        let take = b.by(name, &["lock", "acquire", &format!("src/a.rs:f{}", n + 2)]).output().unwrap();
        let (code, told) = said(&take);
        assert_eq!(code, 0, "{told}");
        until("the first machine sees it", || !holder(a, n + 2).is_null());
        assert_eq!(holder(a, n + 2), format!("{name}@{}", host_of(b)));
    }
    // A process of the first machine that says the longer name takes nothing from it either.
    let longer = format!("ada@{}", host_of(a));
    let take = a.by(&longer, &["lock", "acquire", "src/a.rs:f4"]).output().unwrap();
    assert_eq!(said(&take).0, 0, "{take:?}");
    assert_eq!(called(a), "ada");
    let (code, text) = says(a, &["lock", "release", "src/a.rs:f1"]);
    assert_eq!(code, 0, "{text}");
    assert!(holder(a, 1).is_null());
}

#[test]
fn one_name_at_two_machines_is_two_agents_until_a_token_proves_it() {
    let machines = Machines::joined(2);
    let daemons = machines.start();
    let (a, b) = (&machines.all[0], &machines.all[1]);
    assert_eq!(called(b), "ada", "no other agent has the name");
    let there = begin(&machines);
    assert_eq!(called(a), "ada");
    let (code, task) = says(a, &["delegate", "wait", "--worker", "robot", "--task", "first"]);
    assert_eq!(code, 0, "{task}");

    // It frees no lock of the other one and cancels no task.
    let (code, text) = says(b, &["lock", "release", "src/a.rs:f1"]);
    assert!(code != 0 || holder(a, 1) == "ada", "{text}");
    assert_eq!(holder(a, 1), "ada");
    assert_ne!(says(b, &["lock", "acquire", "src/a.rs:f1"]).0, 0);
    let (code, text) = says(b, &["task", "cancel", "first"]);
    assert!(code != 0 && text.contains("ada"), "{text}");
    assert_eq!(says(b, &["lock", "acquire", "src/a.rs:f2"]).0, 0);
    until("what is shown says the host", || holder(a, 2) == there.as_str());
    assert_ne!(says(a, &["lock", "release", "src/a.rs:f2"]).0, 0);
    assert_eq!(holder(a, 2), there.as_str());
    // Nor by the longer name of the other machine.
    let body = json!({ "symbol": "src/a.rs:f2" });
    let (status, answer) = own(a, ("POST", "/unlock"), &[("x-provost-agent", &there)], &body);
    assert!(status == 403 && answer.to_string().contains("another host"), "{status}: {answer}");
    assert_eq!(holder(a, 2), there.as_str());

    // It stays so while the first one says nothing, and on each machine the own one goes on.
    stays("two agents", Duration::from_secs(2), || {
        says(b, &["lock", "acquire", "src/a.rs:f2"]).0 == 0
            && says(a, &["lock", "acquire", "src/a.rs:f1"]).0 == 0
    });
    // A worker that both configurations name is that worker on both.
    a.client(&daemons[0], "robot").say("REGISTER", json!({})).ack();
    b.client(&daemons[1], "robot").poll_until(|it| it.to_string().contains("first"));

    // A token makes the name good on both.
    let made = at_the_terminal(a, "token mint ada");
    let text = String::from_utf8_lossy(&made.stdout).into_owned();
    let token =
        text.split_whitespace().find(|it| it.starts_with("pvst_")).unwrap_or_else(|| panic!("{text}"));
    let bearer = format!("Bearer {token}");
    let proved = [("x-provost-agent", "ada"), ("authorization", bearer.as_str())];
    until("it is known there", || {
        let (status, _) = own(b, ("POST", "/unlock"), &proved, &json!({ "symbol": "src/a.rs:f1" }));
        status == 200
    });
    until("it is free", || holder(a, 1).is_null());
    machines.check();
}

/// The texts that an agent `ada` finds in its inbox at a machine.
fn inbox(world: &World) -> String {
    own(world, ("POST", "/read-inbox"), &[("x-provost-agent", "ada")], &json!({})).1.to_string()
}

fn result(of: &Client, robot: &Client, task: &str) {
    let (id, reply) = of.delegate("robot", task, json!({}));
    reply.ack();
    robot.poll_until(|it| it.to_string().contains(&id));
    let done = json!({ "task_id": id, "status": "completed", "summary": format!("{task} is done") });
    robot.say("NOTIFY", done).ack();
}

#[test]
fn two_agents_of_one_name_read_their_own_mail_alone() {
    let machines = Machines::joined(2);
    let daemons = machines.start();
    let (a, b) = (&machines.all[0], &machines.all[1]);
    let there = begin(&machines);

    // What other agents write, to the one and to the other.
    for (to, text) in [("ada", "for the first"), (there.as_str(), "for the second")] {
        let body = json!({ "kind": "message", "to": to, "text": text });
        let (status, sent) = own(a, ("POST", "/send-message"), &[("x-provost-agent", "bob")], &body);
        assert_eq!(status, 200, "{sent}");
    }
    until("the second one has its own", || inbox(b).contains("for the second"));
    until("the first one has its own", || inbox(a).contains("for the first"));
    assert!(!inbox(a).contains("for the second"), "{}", inbox(a));
    assert!(!inbox(b).contains("for the first"), "{}", inbox(b));
    let path = "/posts?inbox=ada&since=0";
    let (status, answer) = own(b, ("GET", path), &[("x-provost-agent", "ada")], &Value::Null);
    assert!(status == 403 && answer.to_string().contains("another host"), "{status}: {answer}");
    let (status, answer) = own(a, ("GET", path), &[("x-provost-agent", "ada")], &Value::Null);
    assert!(status == 200 && answer.to_string().contains("for the first"), "{status}: {answer}");

    // What the daemon writes of their tasks, at the door at which mail is taken out.
    let (first, second) = (a.client(&daemons[0], "ada"), b.client(&daemons[1], "ada"));
    let robot = a.client(&daemons[0], "robot");
    result(&first, &robot, "work one");
    result(&second, &robot, "work two");
    let until_empty = |client: &Client, wanted: &str| {
        let mut texts = String::new();
        until("its outcome", || {
            if let Reply::Message(it) = client.poll() {
                texts.push_str(&it.to_string());
            }
            texts.contains(wanted)
        });
        stays("nothing else", Duration::from_secs(2), || {
            if let Reply::Message(it) = client.poll() {
                texts.push_str(&it.to_string());
            }
            true
        });
        texts
    };
    let texts = until_empty(&second, "work two is done");
    assert!(!texts.contains("work one"), "{texts}");
    let texts = until_empty(&first, "work one is done");
    assert!(!texts.contains("work two"), "{texts}");

    // The name of the other machine's agent is refused in words at each door, and with its code for names.
    let as_first = Client { ident: format!("ada@{}", host_of(a)), ..second };
    let refused = as_first.poll().message();
    assert_eq!(refused["payload"]["code"], "E_FORBIDDEN", "{refused}");
    assert!(refused.to_string().contains("another host"), "{refused}");
    machines.check();
}

#[test]
fn a_name_is_free_where_its_machine_is_dead_or_was_removed() {
    let machines = Machines::joined(3);
    let mut daemons = machines.start();
    let (a, b, c) = (&machines.all[0], &machines.all[1], &machines.all[2]);
    let there = begin(&machines);
    assert_ne!(says(b, &["lock", "release", "src/a.rs:f1"]).0, 0);

    // The machine dies, and its agent comes back through another one.
    daemons[0].kill();
    until("it is buried", || machines.sql("select count(*) from provost.host where state = 'down'") == "1");
    until("the name is free", || called(b) == "ada");
    until("its lock is its own", || says(b, &["lock", "release", "src/a.rs:f1"]).0 == 0);
    assert_eq!(says(b, &["lock", "acquire", "src/a.rs:f3"]).0, 0);
    assert_eq!(holder(b, 3), "ada");
    until("a third machine knows it", || called(c) == format!("ada@{}", host_of(c)));

    // The machine comes back, and its agent is the other one by now.
    let _again = a.start();
    until("it has another name", || called(a) == format!("ada@{}", host_of(a)));
    assert_ne!(says(a, &["lock", "release", "src/a.rs:f3"]).0, 0);

    // A machine that was removed leaves its names, too.
    let (code, text) = says(c, &["host", "remove", &host_of(b), "--yes"]);
    assert_eq!(code, 0, "{text}");
    until("the name is free again", || called(c) == "ada");
    assert_eq!(says(c, &["lock", "release", "src/a.rs:f3"]).0, 0);
    assert_ne!(there, called(c));
    daemons.remove(0);
    machines.check();
}

#[test]
fn an_agent_that_leaves_with_its_daemon_leaves_its_name() {
    let machines = Machines::joined(2);
    let mut daemons = machines.start();
    let b = &machines.all[1];
    begin(&machines);
    daemons.remove(0).stop();
    until("the name is free", || called(b) == "ada");
    assert_eq!(says(b, &["lock", "release", "src/a.rs:f1"]).0, 0);
    let again = machines.all[0].start();
    drop(again);
    machines.check();
}
