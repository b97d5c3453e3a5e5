//! The page among much: what is sent and drawn is bounded, however many tasks, lines of a log and lines of a difference there are.

use provost::base::limits::{TASK_PAGE_MAX, WEB_DIFF_LINES_MAX};
use serde_json::{Value, json};

use super::{LOOKS, OPEN, at, examine};
use crate::support::browser::Browser;
use crate::support::loopback_client::Http;
use crate::support::own_api::own;
use crate::support::rules::{ALLOW, ASK, allow, ask as asks_for, policy};
use crate::support::{Daemon, World};

/// A world whose agent has its changes kept, and in which anything may be delegated.
fn world() -> (World, Daemon, Http) {
    let world = World::new();
    let agent = "[limits]\ntasks_per_agent = 1000\n[[agent]]\nid = \"coder\"\ncommand = [\"/bin/sh\"]\n";
    world.configure(&format!("{OPEN}{agent}"));
    world.rule(ALLOW);
    let daemon = world.start();
    let door = Http::web(&world);
    (world, daemon, door)
}

/// Has the agent run a script to its end; the task's id.
fn done(world: &World, script: &str) -> String {
    let done =
        world.command(&["delegate", "--worker", "coder", script, "--wait", "--json"]).output().unwrap();
    let task: Value = serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("{done:?}"));
    task["id"].as_str().unwrap().to_owned()
}

/// How many rows the lists of a view have.
fn rows(view: &Value) -> usize {
    let blocks = view["blocks"].as_array().unwrap().iter();
    blocks.filter_map(|it| it["rows"].as_array()).map(Vec::len).sum()
}

#[test]
fn a_page_of_tasks_has_a_bound_and_all_pages_have_each_task_once() {
    let (world, daemon, door) = world();
    const TASKS: usize = 230;
    let client = world.client(&daemon, "orch");
    for n in 0..TASKS {
        client.delegate("absent", &format!("task number {n}"), json!({})).1.ack();
    }
    let mut seen = std::collections::BTreeSet::new();
    let mut path = "/rows/tasks".to_owned();
    loop {
        let view = Http::look(door, &path).json();
        assert!(rows(&view) <= TASK_PAGE_MAX, "{} rows", rows(&view));
        for block in view["blocks"].as_array().unwrap() {
            for row in block["rows"].as_array().into_iter().flatten() {
                assert!(seen.insert(row["key"].as_str().unwrap().to_owned()), "{row} is there twice");
            }
        }
        let Some(next) = view["next"].as_str() else { break };
        path = format!("/rows{next}");
    }
    assert_eq!(seen.len(), TASKS);
    // What needs a person has none of them, and what the daemon is asked for it does not either.
    assert_eq!(rows(&Http::look(door, "/rows/needs-you").json()), 0);
    let (status, finished) = own(&world, ("GET", "/tasks?filter=finished"), &[], &json!({}));
    assert_eq!((status, &finished["active"], &finished["finished"]), (200, &json!([]), &json!([])));
    let (status, odd) = own(&world, ("GET", "/tasks?filter=odd"), &[], &json!({}));
    assert!(status == 400 && odd["message"].as_str().unwrap().contains("finished"), "{odd}");
    let browser = Browser::start();
    let tab = browser.open(&at(door, "/tasks"));
    tab.until("rows", "document.querySelector('tr[data-key]')");
    assert_eq!(tab.eval("document.querySelectorAll('tr[data-key]').length"), json!(TASK_PAGE_MAX));
    tab.shows("Not finished (230)");
}

#[test]
fn a_log_keeps_its_end_within_bounds_with_and_without_lines() {
    let (world, daemon, door) = world();
    let browser = Browser::start();
    let client = world.client(&daemon, "orch");
    let goal = "head -c 1500000 /dev/zero | tr '\\0' x; echo; i=0; seq 1 60000; echo the-end";
    let (task, reply) = client.delegate("shell", goal, json!({}));
    reply.ack();
    let tab = browser.open(&at(door, &format!("/t/{task}")));
    tab.until("the end", "document.querySelector('pre.log')?.textContent.includes('the-end')");
    let lines = tab.eval("document.querySelectorAll('pre.log .line').length").as_u64().unwrap();
    assert!((10_000..=20_000).contains(&lines), "{lines}");
    tab.shows("lines before these are left out");
    // A line without an end is broken, and what is kept of it has a bound.
    let goal =
        "head -c 1900000 /dev/zero | tr '\\0' y; printf the-end; while [ ! -e over ]; do sleep 0.05; done";
    let (task, reply) = client.delegate("shell", goal, json!({}));
    reply.ack();
    tab.go(&at(door, &format!("/t/{task}")));
    tab.until("broken lines", "document.querySelectorAll('pre.log .line').length > 10");
    let longest =
        "Math.max(...[...document.querySelectorAll('pre.log .line')].map((it) => it.textContent.length))";
    assert!(tab.is(&format!("{longest} <= 20001")), "{}", tab.eval(longest));
    world.write("over", "");
    tab.until("the end", "document.querySelector('pre.log')?.textContent.includes('the-end')");
}

#[test]
fn a_long_difference_is_closed_with_its_size_and_its_lines_are_made_when_it_is_opened() {
    let (world, _daemon, door) = world();
    let id = done(&world, "seq 1 20000 | sed 's/.*/line & of many/' > long.txt; echo short > short.txt");
    let browser = Browser::start();
    let tab = browser.open(&at(door, &format!("/t/{id}")));
    tab.until("both files", "document.querySelectorAll('details.file').length === 2");
    tab.shows("+20000 −0, 200");
    let of = |name: &str| {
        format!(
            "[...document.querySelectorAll('details.file')].find((it) => it.textContent.startsWith('{name}'))"
        )
    };
    assert!(tab.is(&format!("!{}.open && {}.open", of("long.txt"), of("short.txt"))));
    assert_eq!(tab.eval(&format!("{}.querySelectorAll('.line').length", of("long.txt"))), json!(0));
    tab.eval(&format!("{}.querySelector('summary').click()", of("long.txt")));
    let drawn = format!("{}.querySelectorAll('.line').length === {WEB_DIFF_LINES_MAX}", of("long.txt"));
    tab.until("its lines", &drawn);
    tab.shows("more lines; provost task diff shows all");
    // Closed and opened again, they are there once.
    for _ in 0..2 {
        tab.eval(&format!("{}.querySelector('summary').click()", of("long.txt")));
    }
    assert!(tab.is(&drawn));
    assert_eq!(tab.eval("globalThis.violations"), json!([]));
}

/// A file with each kind of part, words that hide, and characters of more than one unit.
const CODE: &str = "# why \u{1f431}\ndef login(name):\n    return check(name, \"a\\n\", 1)\n\n\nclass Door:\n    key = None  # \u{202e}x\n";

#[test]
fn colours_and_changed_words_leave_the_text_as_it_is() {
    let (world, _daemon, door) = world();
    world.write("src/auth.py", CODE);
    let id = done(
        &world,
        "sed -i 's/check(name, /check(name, other, /; s/class Door/class Gate/' src/auth.py; printf '<b>x</b>\\n' > x.py; \
         printf 'plain\\n' > plain.txt",
    );
    let said = Http::look(door, &format!("/rows/changes?id={id}")).json();
    let files = said["blocks"][0]["files"].as_array().unwrap().clone();
    let of = |name: &str| {
        files.iter().find(|it| it["path"] == name).unwrap_or_else(|| panic!("{name}: {files:?}"))
    };
    assert!(of("plain.txt").get("marks").is_none(), "{}", of("plain.txt"));
    // Places alone: no text stands among the marks.
    assert!(!of("src/auth.py")["marks"].to_string().contains('"'), "{}", of("src/auth.py")["marks"]);
    let browser = Browser::start();
    let tab = browser.open(&at(door, &format!("/t/{id}")));
    tab.until("the differences", "document.querySelectorAll('pre.diff .line').length > 8");
    let drawn = tab.eval(
        "[...document.querySelectorAll('details.file')].map((it) => [it.querySelector('code').textContent, \
         [...it.querySelectorAll('.line')].map((line) => line.textContent)])",
    );
    for file in drawn.as_array().unwrap() {
        let lines = of(file[0].as_str().unwrap())["lines"].as_array().unwrap().iter().map(|it| {
            let sign = match it["is"].as_str().unwrap() {
                "add" => "+",
                "remove" => "-",
                "same" => " ",
                _ => "",
            };
            json!(format!("{sign}{}\n", it["text"].as_str().unwrap()))
        });
        assert_eq!(file[1], Value::Array(lines.collect()));
    }
    let texts = |selector: &str| {
        tab.eval(&format!("[...document.querySelectorAll('{selector}')].map((it) => it.textContent)"))
    };
    assert_eq!(texts(".add .changed"), json!(["other, ", "Gate"]));
    assert_eq!(texts(".remove .changed"), json!(["Door"]));
    assert!(texts(".t5").as_array().unwrap().contains(&json!("check")), "{}", texts(".t5"));
    assert!(texts(".t0").to_string().contains("\u{1f431}"), "{}", texts(".t0"));
    let read = tab.eval("document.querySelector('main').textContent");
    assert!(read.as_str().unwrap().contains("\\u{202e}x"), "what hides is made visible");
    assert_eq!(tab.eval("document.querySelectorAll('main b').length"), json!(0));
    let high =
        tab.eval("document.querySelector('pre.diff').getBoundingClientRect().height").as_f64().unwrap();
    assert!(high < 600.0, "a short difference takes no more place than its lines: {high}");
    let mut wrong = Vec::new();
    for (width, height, scheme) in LOOKS {
        tab.looks(width, height, scheme);
        wrong.extend(examine(&tab, "changes", (width, scheme), "changes"));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_the_same_rule_has_asked_before_stands_beside_an_approval() {
    let world = World::new();
    world.configure(OPEN);
    world.rule(ASK);
    let daemon = world.start();
    let door = Http::web(&world);
    let client = world.client(&daemon, "orch");
    for goal in ["make the first", "make the second", "make the third"] {
        client.delegate("shell", goal, json!({})).1.ack();
    }
    let denied = crate::support::terminal::at_the_terminal(&world, "deny 1 --reason not-today");
    assert!(denied.status.success(), "{denied:?}");
    let browser = Browser::start();
    let tab = browser.open(&at(door, "/a/3"));
    tab.shows("Decided before by rule test.ask and worker shell");
    tab.shows("denied (proof: weak-human)");
    let text = tab.text();
    assert!(text.contains("make the first") && text.contains("not-today"), "{text}");
    // The one that waits is not among them, and the second one waits as well.
    let keys = tab.eval("[...document.querySelectorAll('tr[data-key]')].map((it) => it.dataset.key)");
    assert_eq!(keys, json!(["2", "1"]), "{text}");
    // What stands beside is not signed.
    let (_, seen) = own(&world, ("GET", "/approval?id=3"), &[], &json!({}));
    assert!(!seen["view"].as_str().unwrap().contains("Decided before"), "{seen}");
}

#[test]
fn what_an_apply_touches_and_who_holds_it_stands_beside_its_approval() {
    let world = World::new();
    world.configure(&format!("{OPEN}[[agent]]\nid = \"coder\"\ncommand = [\"/bin/sh\"]\n"));
    let delegate = allow("delegate", &["when.action = [\"delegate\"]"]);
    world.rule(&policy([delegate, asks_for("\"human\"", &["when.action = [\"apply\"]"])]));
    let code =
        "def login():\n    return 1\n\n\ndef logout():\n    return 2\n\n\ndef other():\n    return 3\n";
    world.write("src/auth.py", code);
    world.write("plain.txt", "old\n");
    let _daemon = world.start();
    let door = Http::web(&world);
    let id = done(
        &world,
        "sed -i 's/return 1/return 10/; s/return 2/return 20/' src/auth.py; echo new > plain.txt",
    );
    let (status, asked) =
        own(&world, ("POST", "/apply-task"), &[("x-provost-agent", "orch")], &json!({ "task": id }));
    assert_eq!((status, &asked["state"]), (200, &json!("awaiting")), "{asked}");
    // It was free when it was asked.
    let lock = ["lock", "acquire", "src/auth.py:login", "--reason", "a new form", "--as", "ada"];
    let done = world.command(&lock).output().unwrap();
    assert!(done.status.success(), "{done:?}");
    let number = asked["approval"].as_u64().unwrap();
    let (_, seen) = own(&world, ("GET", &format!("/approval?id={number}")), &[], &json!({}));
    let touches = seen["touches"].as_array().unwrap();
    let at = |place: &str| {
        touches.iter().find(|it| it["at"] == place).unwrap_or_else(|| panic!("{place}: {seen}"))
    };
    let held = json!({ "at": "src/auth.py:login", "holder": "ada", "how": "lock", "doing": "a new form" });
    assert_eq!(*at("src/auth.py:login"), held);
    assert_eq!(*at("src/auth.py:logout"), json!({ "at": "src/auth.py:logout" }));
    assert_eq!(*at("plain.txt"), json!({ "at": "plain.txt" }));
    assert_eq!(touches.len(), 3, "{seen}");
    let browser = Browser::start();
    let tab = browser.open(&at_page(door, number));
    tab.shows("What it touches");
    let first = tab.eval("document.querySelector('tr[data-key]').textContent");
    assert!(first.as_str().unwrap().contains("has a lock"), "what others hold comes first: {first}");
    // The difference of the approval is coloured as well, by places beside the signed text.
    tab.until("colours", "document.querySelector('pre.diff .t3')?.textContent === 'def'");
    assert!(!seen["view"].as_str().unwrap().contains("marks"), "{seen}");
    // Another version of the file: the symbols cannot be told, and the file is named.
    world.write("src/auth.py", "x = 1\n");
    let (_, seen) = own(&world, ("GET", &format!("/approval?id={number}")), &[], &json!({}));
    let file = seen["touches"]
        .as_array()
        .unwrap()
        .iter()
        .any(|it| it["at"] == "src/auth.py" && it["holder"] == "ada");
    assert!(file, "{seen}");
}

fn at_page(door: Http, approval: u64) -> String {
    at(door, &format!("/a/{approval}"))
}
