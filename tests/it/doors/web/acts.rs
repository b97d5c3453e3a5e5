//! A person's acts on the page in a real browser with an authenticator: each act is shown first, signed, and reported afterwards.

use serde_json::{Value, json};

use super::{LOOKS, OPEN, at, examine};
use crate::support::acting::{enrol, open, write};
use crate::support::browser::Browser;
use crate::support::loopback_client::Http;
use crate::support::own_api::own;
use crate::support::passkeys::get;
use crate::support::rules::{allow, ask, policy};
use crate::support::{Daemon, World, eventually};

/// A world whose rules let people and agents do what these tests do, with a low risk for what is asked.
fn world() -> (World, Daemon, Http) {
    let world = World::new();
    world.configure(&format!("{OPEN}[[agent]]\nid = \"coder\"\ncommand = [\"/bin/sh\"]\n"));
    world.rule(&policy([
        ask("\"passkey\"", &["when.action = [\"delegate\"]", "when.client = [\"asker\"]"]),
        allow("rest", &["when.action = [\"delegate\", \"apply\"]"]),
    ]));
    world.write("src/a.py", "def f():\n    return 1\n");
    let daemon = world.start();
    let door = Http::web(&world);
    (world, daemon, door)
}

fn done(world: &World, script: &str) -> String {
    let asked = ["delegate", "--worker", "coder", script, "--wait", "--json"];
    let done = world.command(&asked).output().unwrap();
    let task: Value = serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("{done:?}"));
    task["id"].as_str().unwrap().to_owned()
}

#[test]
fn a_person_writes_answers_and_hands_out_work_on_the_page() {
    let (world, _daemon, door) = world();
    let browser = Browser::start();
    let tab = browser.open(&at(door, "/"));
    let _authenticator = enrol(&world, &tab, &at(door, "/passkeys"));
    let question = json!({ "kind": "question", "text": "<script>alert(1)</script> or not?" });
    let (status, _) = own(&world, ("POST", "/send-message"), &[("x-provost-agent", "feat-q")], &question);
    assert_eq!(status, 200);
    // The question is answered where it needs its person.
    tab.go(&at(door, "/"));
    open(&tab, "answer-question");
    tab.click("button[data-does=answer-question]");
    tab.shows("Write the answer.");
    write(&tab, "answer-question", "not <b>that</b>");
    tab.click("button[data-does=answer-question]");
    tab.shows("feat-q has the answer.");
    eventually("the question is answered", || get(&world, "/questions") == json!([]));
    // A reply to a message, which is half written when others change, and comes out whole.
    tab.go(&at(door, "/messages"));
    open(&tab, "message-agents");
    write(&tab, "message-agents", "half ");
    let note = json!({ "kind": "message", "to": "feat-z", "text": "meanwhile" });
    let (status, _) = own(&world, ("POST", "/send-message"), &[("x-provost-agent", "feat-y")], &note);
    assert_eq!(status, 200);
    tab.shows("meanwhile");
    let written = "[...document.querySelectorAll('textarea')].find((it) => it.value.startsWith('half '))";
    tab.until("what is half written", &format!("{written}?.checkVisibility()"));
    tab.eval(&format!("{written}.focus()"));
    tab.write("and whole");
    tab.eval(&format!("{written}.closest('.here').querySelector('button').click()"));
    tab.shows("Sent to feat-q.");
    let said = get(&world, "/posts?limit=50").to_string();
    assert!(said.contains("half ") && said.contains("and whole"), "{said}");
    // Work: the rules are asked first, and a change of what is asked takes the button away.
    tab.go(&at(door, "/tasks"));
    tab.until("the form", "document.querySelector('.delegate details')");
    tab.eval("document.querySelector('.delegate details').open = true");
    tab.click("button[data-does=ask-rules]");
    tab.shows("Write what is to be done.");
    tab.eval("document.querySelector('#worker').value = 'coder'; document.querySelector('#goal').focus()");
    tab.write("echo <i>done</i>");
    assert!(
        !tab.is("document.querySelector('button[data-does=delegate]')"),
        "not before the rules are shown"
    );
    tab.click("button[data-does=ask-rules]");
    tab.shows("Rule test.rest allows it");
    let mut wrong = Vec::new();
    for (width, height, scheme) in LOOKS {
        tab.looks(width, height, scheme);
        wrong.extend(examine(&tab, "/tasks", (width, scheme), "delegate"));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    tab.looks(1280, 800, "light");
    tab.eval("document.querySelector('#goal').focus()");
    tab.write("!");
    tab.until("no button", "!document.querySelector('button[data-does=delegate]')");
    tab.click("button[data-does=ask-rules]");
    tab.until("the button", "document.querySelector('button[data-does=delegate]')");
    tab.click("button[data-does=delegate]");
    tab.until("the way to it", "document.querySelector('.delegate a[href^=\"/t/\"]')");
    tab.click(".delegate a[href^=\"/t/\"]");
    tab.shows("A person has written this");
    assert_eq!(tab.eval("document.querySelectorAll('main i').length"), json!(0));
    assert_eq!(tab.eval("globalThis.violations"), json!([]));
    let verified = world.command(&["journal", "verify"]).output().unwrap();
    assert!(verified.status.success(), "{verified:?}");
}

#[test]
fn changes_are_written_and_brought_back_after_they_are_shown() {
    let (world, _daemon, door) = world();
    let task = done(&world, "sed -i 's/return 1/return \"<b>2<\\/b>\"/' src/a.py");
    let read = || std::fs::read_to_string(world.repo().join("src/a.py")).unwrap();
    let browser = Browser::start();
    let tab = browser.open(&at(door, "/"));
    let _authenticator = enrol(&world, &tab, &at(door, "/passkeys"));
    tab.go(&at(door, &format!("/t/{task}")));
    open(&tab, "show-apply-task");
    assert!(!tab.is("document.querySelector('button[data-does=apply-task]')"), "not before it is shown");
    tab.click("button[data-does=show-apply-task]");
    tab.until("the difference", "document.querySelector('.here pre.diff .add')");
    // Another agent takes the file after it was shown: what was shown would not be written any more.
    let lock = |does: &str| {
        let output = world.command(&["lock", does, "src/a.py"]).env("PROVOST_AGENT", "agent-a").output();
        assert!(output.as_ref().unwrap().status.success(), "{output:?}");
    };
    lock("acquire");
    tab.click("button[data-does=apply-task]");
    tab.shows("is not what was shown");
    assert!(read().contains("return 1"));
    open(&tab, "show-apply-task");
    tab.click("button[data-does=show-apply-task]");
    tab.shows("Not written: src/a.py: claimed by agent-a");
    lock("release");
    open(&tab, "show-apply-task");
    tab.click("button[data-does=show-apply-task]");
    tab.until("the difference", "document.querySelector('.here pre.diff .add')");
    let mut wrong = Vec::new();
    for (width, height, scheme) in LOOKS {
        tab.looks(width, height, scheme);
        wrong.extend(examine(&tab, "/t", (width, scheme), "would-write"));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    tab.looks(1280, 800, "light");
    tab.click("button[data-does=apply-task]");
    tab.shows("Written: 1 file; this was apply");
    assert!(read().contains("<b>2</b>"), "{}", read());
    tab.shows("Written into your files (1)");
    open(&tab, "show-undo");
    tab.click("button[data-does=show-undo]");
    tab.until("what comes back", "document.querySelector('.here pre.diff .remove')");
    tab.click("button[data-does=undo]");
    tab.shows("Written: 1 file; this was apply 2.");
    assert!(read().contains("return 1"), "{}", read());
    tab.go(&at(door, &format!("/t/{task}")));
    tab.shows("undone by apply 2");
    assert_eq!(tab.eval("document.querySelectorAll('main b').length"), json!(0));
    assert_eq!(tab.eval("globalThis.violations"), json!([]));
}

#[test]
fn a_row_is_put_off_in_this_browser_alone_and_comes_back() {
    let (world, _daemon, door) = world();
    let question = json!({ "kind": "question", "text": "tabs or spaces?" });
    let (status, _) = own(&world, ("POST", "/send-message"), &[("x-provost-agent", "feat-q")], &question);
    assert_eq!(status, 200);
    let browser = Browser::start();
    let tab = browser.open(&at(door, "/"));
    tab.shows("tabs or spaces?");
    tab.press("j");
    tab.press("s");
    tab.shows("1 put off in this browser.");
    assert!(!tab.text().contains("tabs or spaces?"), "{}", tab.text());
    assert!(tab.is("document.title.startsWith('(1)')"), "it is counted all the same");
    tab.go(&at(door, "/"));
    tab.shows("1 put off in this browser.");
    // Nothing was told to the daemon.
    assert_eq!(get(&world, "/questions").as_array().unwrap().len(), 1);
    tab.click("button[data-does=bring-back]");
    tab.shows("tabs or spaces?");
    // Its time is over: as if an hour had passed.
    tab.press("j");
    tab.press("s");
    tab.shows("1 put off in this browser.");
    tab.eval(
        "localStorage.setItem('provost-put-off', JSON.stringify(Object.fromEntries(\
         Object.keys(JSON.parse(localStorage.getItem('provost-put-off'))).map((it) => [it, Date.now() - 1]))))",
    );
    tab.go(&at(door, "/"));
    tab.shows("tabs or spaces?");
}
