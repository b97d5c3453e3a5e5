//! A person's acts on the page over all repositories: each act in a real browser with an authenticator, in the repository that it is
//! about and in no other.

use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::support::acting::{enrol, open, write};
use crate::support::browser::{Browser, Tab};
use crate::support::hub::{Hub, free_port};
use crate::support::own_api::own;
use crate::support::passkeys::get;
use crate::support::rules::{allow, policy};
use crate::support::waits::until_some;
use crate::support::{Daemon, World, eventually};

/// Two repositories of one user whose own pages are shut, and the page over both.
struct Both {
    one: World,
    other: World,
    _daemons: [Daemon; 2],
    hub: Hub,
}

fn both() -> Both {
    let (one, port) = (World::new(), free_port());
    let other = one.beside();
    one.configure(&format!("[web]\nall_port = {port}\n[[agent]]\nid = \"coder\"\ncommand = [\"/bin/sh\"]\n"));
    one.rule(&policy([allow("rest", &["when.action = [\"delegate\", \"apply\"]"])]));
    for world in [&one, &other] {
        world.write("src/a.py", "def f():\n    return 1\n");
    }
    let daemons = [one.start(), other.start()];
    let hub = Hub::start(&one, port);
    for world in [&one, &other] {
        let root = world.repo().canonicalize().unwrap().display().to_string();
        eventually("it is live", || hub.state(&root) == "live");
    }
    Both { one, other, _daemons: daemons, hub }
}

fn at(hub: &Hub, path: &str) -> String {
    format!("http://provost.localhost:{}{path}", hub.door.port)
}

fn asks_a_question(world: &World, agent: &str) {
    let question = json!({ "kind": "question", "text": format!("tabs or spaces, {agent}?") });
    let (status, said) = own(world, ("POST", "/send-message"), &[("x-provost-agent", agent)], &question);
    assert_eq!(status, 200, "{said}");
}

fn done(world: &World, script: &str) -> String {
    let asked = ["delegate", "--worker", "coder", script, "--wait", "--json"];
    let done = world.command(&asked).output().unwrap();
    let task: Value = serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("{done:?}"));
    task["id"].as_str().unwrap().to_owned()
}

/// A command of an agent that waits; ended when dropped.
struct Waiting(Child);

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn is_clean(tab: &Tab<'_>, hub: &Hub, browser: &Browser) {
    assert_eq!(tab.eval("globalThis.violations"), json!([]));
    let own = at(hub, "/");
    let asked = browser.requested();
    assert!(asked.iter().all(|it| it.starts_with(&own) || it == "about:blank"), "{asked:?}");
}

#[test]
fn questions_messages_and_waits_are_of_the_repository_that_their_row_is_of() {
    let Both { one, other, hub, .. } = &both();
    let browser = Browser::start();
    let tab = browser.open(&at(hub, "/"));
    let there = hub.base(other);
    let _authenticator = enrol(one, &tab, &at(hub, &format!("{}/passkeys", hub.base(one))));
    asks_a_question(one, "feat-one");
    asks_a_question(other, "feat-two");
    // Both have number 1: the answer goes to the one whose row it is in, on the list over all.
    tab.go(&at(hub, "/"));
    tab.shows("tabs or spaces, feat-two?");
    tab.shows("tabs or spaces, feat-one?");
    let row =
        "[...document.querySelectorAll('tr[data-key]')].find((it) => it.textContent.includes('feat-two?'))";
    tab.eval(&format!("{row}.querySelector('details').open = true"));
    tab.eval(&format!("{row}.querySelector('textarea').focus()"));
    tab.write("spaces");
    tab.eval(&format!("{row}.querySelector('button[data-does=answer-question]').click()"));
    tab.shows("feat-two has the answer.");
    assert_eq!(get(other, "/questions"), json!([]));
    assert_eq!(get(one, "/questions").as_array().unwrap().len(), 1);
    // A message, on the view of one.
    tab.go(&at(hub, &format!("{there}/agents")));
    open(&tab, "message-agents");
    write(&tab, "message-agents", "go on");
    tab.click("button[data-does=message-agents]");
    tab.shows("Sent to ");
    assert!(get(other, "/posts?limit=50").to_string().contains("go on"));
    assert!(!get(one, "/posts?limit=50").to_string().contains("go on"));
    // A wait.
    let lock = |world: &World, agent: &str, more: &[&str]| {
        let mut command = world.command(&["lock", "acquire", "@thing:one"]);
        command.args(more).env("PROVOST_AGENT", agent).stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    assert!(lock(other, "feat-x", &[]).status().unwrap().success());
    let mut waiting = Waiting(lock(other, "feat-y", &["--wait", "5m"]).spawn().unwrap());
    until_some("the one that waits", || get(other, "/locks")["waiting"][0]["ticket"].as_u64());
    tab.go(&at(hub, &format!("{there}/waits")));
    open(&tab, "end-wait");
    write(&tab, "end-wait", "it takes too long");
    tab.click("button[data-does=end-wait]");
    tab.shows("feat-y waits no longer for @thing:one.");
    let ended = until_some("the end of the one that waits", || waiting.0.try_wait().unwrap());
    assert_eq!(ended.code(), Some(5));
    // All that another one holds.
    tab.go(&at(hub, &format!("{there}/agents")));
    open(&tab, "release-agent");
    write(&tab, "release-agent", "it has gone");
    tab.click("button[data-does=release-agent]");
    tab.shows("Taken from feat-x: 1 lock.");
    is_clean(&tab, hub, &browser);
}

#[test]
fn work_is_handed_out_taken_in_undone_and_discarded_in_one_repository_of_several() {
    let Both { one, other, hub, .. } = &both();
    let there = hub.base(other);
    let read = |world: &World| std::fs::read_to_string(world.repo().join("src/a.py")).unwrap();
    let browser = Browser::start();
    let tab = browser.open(&at(hub, "/"));
    let _authenticator = enrol(other, &tab, &at(hub, &format!("{there}/passkeys")));
    tab.go(&at(hub, &format!("{there}/tasks")));
    tab.until("the form", "document.querySelector('.delegate details')");
    tab.eval("document.querySelector('.delegate details').open = true");
    tab.eval("document.querySelector('#worker').value = 'coder'; document.querySelector('#goal').focus()");
    tab.write("sed -i 's/return 1/return 2/' src/a.py");
    tab.click("button[data-does=ask-rules]");
    tab.shows("Rule test.rest allows it");
    tab.click("button[data-does=delegate]");
    let link = format!("document.querySelector('.delegate a[href^=\"{there}/t/\"]')");
    tab.until("the way to it", &link);
    tab.eval(&format!("{link}.click()"));
    tab.shows("completed");
    assert!(get(one, "/tasks")["finished"].as_array().unwrap().is_empty());
    // It is taken in where the list over all shows it.
    tab.go(&at(hub, "/"));
    open(&tab, "show-apply-task");
    tab.click("button[data-does=show-apply-task]");
    tab.until("the difference", "document.querySelector('.here pre.diff .add')");
    tab.click("button[data-does=apply-task]");
    tab.shows("Written: 1 file; this was apply");
    assert!(read(other).contains("return 2") && read(one).contains("return 1"));
    tab.go(&at(hub, &format!("{there}/audit")));
    open(&tab, "show-undo");
    tab.click("button[data-does=show-undo]");
    tab.until("what comes back", "document.querySelector('.here pre.diff .remove')");
    tab.click("button[data-does=undo]");
    tab.shows("Written: 1 file; this was apply 2.");
    assert!(read(other).contains("return 1"), "{}", read(other));
    let task = done(other, "echo y > y.py");
    tab.go(&at(hub, &format!("{there}/t/{task}")));
    open(&tab, "discard-task");
    tab.click("button[data-does=discard-task]");
    tab.shows("The changes in 1 file are discarded.");
    // Several tasks, by one signature.
    let begin = |goal: &str| {
        let output = other.command(&["delegate", "--worker", "coder", goal, "--json"]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    begin("sleep 600");
    begin("sleep 601");
    tab.go(&at(hub, &format!("{there}/tasks")));
    tab.until("both", "document.querySelectorAll('input[data-does=choose]').length === 2");
    tab.eval("document.querySelectorAll('input[data-does=choose]').forEach((it) => it.click())");
    tab.shows("2 tasks are chosen");
    write(&tab, "cancel-tasks", "enough");
    tab.click("button[data-does=cancel-tasks]");
    tab.shows("2 tasks are cancelled.");
    is_clean(&tab, hub, &browser);
}
