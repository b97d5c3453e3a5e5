//! Searches of a person on the page: events by kind, agent and time, tasks by the beginning of a name, text in a log, and an address
//! with nothing at it.

use serde_json::{Value, json};

use super::{LOOKS, OPEN, at, examine};
use crate::support::browser::Browser;
use crate::support::loopback_client::Http;
use crate::support::passkeys::get;
use crate::support::rules::ALLOW;
use crate::support::waits::until_some;
use crate::support::{Daemon, World};

fn world() -> (World, Daemon, Http) {
    let world = World::new();
    world.configure(&format!("{OPEN}[[agent]]\nid = \"coder\"\ncommand = [\"/bin/sh\"]\n"));
    world.rule(ALLOW);
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

/// The numbers and kinds of the events that a path shows, newest first.
fn events(door: Http, query: &str) -> Vec<(u64, String)> {
    let said = door.look(&format!("/rows/events?{query}")).json();
    let list =
        said["blocks"].as_array().unwrap_or_else(|| panic!("{said}")).iter().find(|it| it["block"] == "list");
    let row = |it: &Value| {
        let number = it["cells"][0]["text"].as_str().unwrap().parse().unwrap();
        (number, it["cells"][3]["text"].as_str().unwrap().to_owned())
    };
    list.unwrap()["rows"].as_array().unwrap().iter().map(row).collect()
}

#[test]
fn events_are_found_by_kind_agent_and_what_they_are_about_since_a_number_and_at_a_time() {
    let (world, _daemon, door) = world();
    for name in ["agent-a", "agent-b"] {
        let lock = ["lock", "acquire", &format!("src/{name}.py"), "--reason", "x"];
        let output = world.command(&lock).env("PROVOST_AGENT", name).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    let locks = until_some("the index", || {
        Some(events(door, "kinds=lock_acquired")).filter(|found| found.len() == 2)
    });
    assert!(locks.iter().all(|(_, kind)| kind == "lock_acquired") && locks[0].0 > locks[1].0, "{locks:?}");
    assert_eq!(events(door, "kinds=lock_acquired&agent=agent-a"), [locks[1].clone()]);
    assert_eq!(events(door, "kinds=lock_acquired,task_delegated&agent=agent-b"), [locks[0].clone()]);
    assert_eq!(events(door, "resource=src/agent-a.py&kinds=lock_acquired"), [locks[1].clone()]);
    assert_eq!(events(door, &format!("kinds=lock_acquired&after={}", locks[1].0)), [locks[0].clone()]);
    assert_eq!(events(door, &format!("kinds=lock_acquired&before={}", locks[0].0)), [locks[1].clone()]);
    assert_eq!(events(door, "agent=agent-"), [], "a part of a name is no name");
    let since = events(door, &format!("after={}", locks[1].0));
    assert!(since.iter().all(|(seq, _)| *seq > locks[1].0) && since.contains(&locks[0]), "{since:?}");
    // A time leads to the first event at it, and what came before.
    let all = get(&world, "/events?after=0&limit=500")["events"].as_array().unwrap().clone();
    let first = all.iter().find(|it| it["seq"] == locks[0].0).unwrap();
    let upto = events(door, &format!("at={}", first["at"].as_str().unwrap()));
    let same = |it: &&Value| it["at"] == first["at"];
    assert_eq!(upto[0].0, all.iter().find(same).unwrap()["seq"].as_u64().unwrap());
    assert_eq!(upto.last().unwrap().0, 1);
    assert_eq!(events(door, "at=1999-01-01T00:00:00Z").len(), 1, "the very first");
    // What is none is said.
    for query in ["kinds=nothing_of_ours", "at=yesterday", "after=x"] {
        assert_eq!(door.look(&format!("/rows/events?{query}")).status, 400, "{query}");
    }
    // The same as a file, line by line.
    let file = door.look("/rows/export?kinds=lock_acquired");
    let text = String::from_utf8(file.body.clone()).unwrap();
    let lines: Vec<Value> = text.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    let seqs: Vec<u64> = lines.iter().map(|it| it["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, [locks[1].0, locks[0].0], "oldest first");
    let whole = String::from_utf8(door.look("/rows/export").body.clone()).unwrap();
    assert!(whole.lines().count() >= all.len(), "{whole}");
}

#[test]
fn which_events_are_shown_is_chosen_on_the_page_and_stands_in_the_address() {
    let (world, _daemon, door) = world();
    let lock = ["lock", "acquire", "src/x.py", "--reason", "x"];
    let output = world.command(&lock).env("PROVOST_AGENT", "agent-a").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let browser = Browser::start();
    let tab = browser.open(&at(door, "/e"));
    tab.until("the form", "document.querySelector('#event-kinds')");
    tab.eval("document.querySelector('.event-filter').closest('details').open = true");
    let mut wrong = Vec::new();
    for (width, height, scheme) in LOOKS {
        tab.looks(width, height, scheme);
        wrong.extend(examine(&tab, "/e", (width, scheme), "event-filter"));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let set = |name: &str, value: &str| {
        tab.eval(&format!("document.querySelector('input#event-{name}').value = '{value}'"));
    };
    set("at", "yesterday");
    tab.click(".event-filter button");
    tab.shows("A time is typed as");
    set("at", "2999-01-01 00:00");
    set("kinds", "lock_acquired");
    set("agent", "agent-a");
    tab.click(".event-filter button");
    tab.until("the address", "location.search.includes('kinds=lock_acquired')");
    tab.until("one event", "document.querySelectorAll('tr[data-key]').length === 1");
    assert!(tab.is("new URLSearchParams(location.search).get('at').startsWith('29')"));
    let saved = tab.eval("fetch(document.querySelector('a[download]').href).then((it) => it.text())");
    let event: Value = serde_json::from_str(saved.as_str().unwrap().trim()).unwrap();
    assert_eq!(event["actor"], "agent-a");
    set("kinds", "nothing_of_ours");
    tab.click(".event-filter button");
    tab.shows("No event is of the kind nothing_of_ours.");
    assert_eq!(tab.eval("globalThis.violations"), json!([]));
}

#[test]
fn the_beginning_of_a_name_leads_to_its_task_and_a_wrong_address_says_so() {
    let (world, _daemon, door) = world();
    let id = done(&world, "true");
    let moved = door.look(&format!("/rows/task?id={}", &id[..8])).json();
    assert_eq!(moved["moved"], json!(format!("/t/{id}")), "{moved}");
    assert_eq!(door.look(&format!("/rows/task?id={}", &id[..3])).status, 404, "too short");
    assert_eq!(door.look("/rows/task?id=nothing-such").status, 404);
    let wrong = door.look("/rows/approval?id=xyz");
    assert!(
        wrong.status == 400 && wrong.json()["message"].as_str().unwrap().contains("no approval xyz"),
        "{wrong:?}"
    );
    let host = [("Host", "provost.localhost:PORT")];
    let window =
        [host[0], ("Sec-Fetch-Dest", "document"), ("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Site", "none")];
    let page = door.bare("GET /nosuch", &window, b"");
    let text = String::from_utf8(page.body.clone()).unwrap();
    assert!(page.status == 404 && text.contains("<h1>There is nothing at this address</h1>"), "{text}");
    assert_eq!(door.bare("GET /nosuch", &host, b"").json()["error"], "not_there", "a script gets JSON");
    let browser = Browser::start();
    let tab = browser.open(&at(door, &format!("/t/{}", &id[..8])));
    tab.until("the whole name", &format!("location.pathname === '/t/{id}'"));
    tab.shows("completed");
    tab.go(&at(door, "/a/xyz"));
    tab.shows("there is no approval xyz");
    tab.until("nothing loads", "!document.querySelector('#blocks').textContent.includes('Loading')");
    tab.go(&at(door, "/t/%ff"));
    tab.until("it says what is wrong", "!document.querySelector('#fault').hidden");
    tab.go(&at(door, "/nosuch"));
    tab.shows("There is nothing at this address");
}

#[test]
fn text_in_a_log_is_found_and_counted_and_the_log_is_saved() {
    let (world, _daemon, door) = world();
    let id = done(&world, "seq 1 400 | sed 's/^/line /; s/00$/00 heron/'; printf '<i>\\033[31mHERON</i>\\n'");
    let browser = Browser::start();
    let tab = browser.open(&at(door, &format!("/t/{id}")));
    tab.until("the log", "document.querySelectorAll('pre.log .line').length > 400");
    tab.eval("document.querySelector('p.find input').focus()");
    tab.write("heron");
    tab.press_code("Enter", 13);
    tab.shows("1 of 5 lines here; 5 in all that is kept");
    assert_eq!(tab.eval("document.querySelector('.line.found').textContent"), json!("line 100 heron\n"));
    tab.press_code("Enter", 13);
    tab.shows("2 of 5 lines here");
    assert_eq!(tab.eval("document.querySelectorAll('.line.found').length"), json!(1));
    tab.eval("document.querySelector('p.find input').value = 'no such word'");
    tab.press_code("Enter", 13);
    tab.shows("No line here has it");
    // The file that is saved has every byte of it.
    tab.eval(
        "{ const real = URL.createObjectURL; URL.createObjectURL = (blob) => { \
         blob.text().then((it) => { globalThis.saved = it; }); return real(blob); }; true }",
    );
    tab.click("button[data-does=save-log]");
    tab.until("the file", "globalThis.saved?.includes('line 400 heron')");
    assert!(tab.is("globalThis.saved.startsWith('line 1\\n') && globalThis.saved.includes('HERON')"));
    assert_eq!(tab.eval("globalThis.violations"), json!([]));
}

#[test]
fn tasks_stand_on_a_board_and_filters_are_kept_in_the_browser() {
    let (world, _daemon, door) = world();
    let good = done(&world, "true");
    let bad = done(&world, "exit 3");
    let browser = Browser::start();
    let tab = browser.open(&at(door, "/tasks"));
    tab.until("the rows", "document.querySelectorAll('tr[data-key]').length === 2");
    tab.click("button[data-does=board]");
    tab.until("the board", "document.querySelectorAll('.board .card').length === 2");
    let column = |id: &str| {
        tab.eval(&format!(
            "document.querySelector('[data-key=\"{id}\"]').closest('.column').getAttribute('aria-label')"
        ))
    };
    assert_eq!((column(&good), column(&bad)), (json!("completed"), json!("failed")));
    // Keys lead through it, and it stays so after a reload.
    tab.go(&at(door, "/tasks"));
    tab.until("the board", "document.querySelectorAll('.board .card').length === 2");
    tab.press("j");
    tab.until("a card", "document.activeElement.classList.contains('card')");
    let mut wrong = Vec::new();
    for (width, height, scheme) in LOOKS {
        tab.looks(width, height, scheme);
        tab.until("the board", "document.querySelectorAll('.board .card').length === 2");
        wrong.extend(examine(&tab, "/tasks", (width, scheme), "board"));
        let columns = tab.eval(
            "new Set([...document.querySelectorAll('.column')].map((it) => it.getBoundingClientRect().left)).size",
        );
        assert_eq!(columns == 1, width == 360, "{columns} at {width}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    tab.looks(1280, 800, "light");
    // A filter that is kept is a link, also one that looks like markup.
    for filter in ["state:failed", "<b>x</b>"] {
        tab.eval("document.querySelector('#query').focus(); document.querySelector('#query').value = ''");
        tab.write(filter);
        tab.click("button[data-does=keep-filter]");
    }
    tab.go(&at(door, "/tasks"));
    tab.until("both", "document.querySelectorAll('.kept a').length === 2");
    assert_eq!(tab.eval("document.querySelectorAll('.kept b').length"), json!(0));
    tab.click(".kept a");
    tab.until("the filter", "new URLSearchParams(location.search).get('q') === 'state:failed'");
    tab.until("one card", "document.querySelectorAll('.board .card').length === 1");
    tab.click(".kept button");
    tab.until("one left", "document.querySelectorAll('.kept a').length === 1");
    assert_eq!(tab.eval("globalThis.violations"), json!([]));
}

#[test]
fn a_phone_has_a_bar_of_views_and_colours_that_are_forced_take_nothing_away() {
    let (_world, _daemon, door) = world();
    let browser = Browser::start();
    let tab = browser.open(&at(door, "/"));
    tab.looks(360, 740, "light");
    tab.shows("All is calm");
    let shown = |selector: &str| tab.is(&format!("document.querySelector('{selector}').checkVisibility()"));
    assert!(shown("#bar") && !shown("#views"));
    assert_eq!(
        tab.eval("[...document.querySelectorAll('#bar a, #bar button')].map((it) => it.textContent.trim())"),
        json!(["Needs you", "Tasks", "Agents", "More"])
    );
    let small = "[...document.querySelectorAll('#bar a, #bar button')].filter((it) => it.getBoundingClientRect().height < 44).length";
    assert_eq!(tab.eval(small), json!(0));
    tab.click("#all-views");
    assert!(shown("#views"));
    tab.until("the focus", "document.activeElement.closest('#views') !== null");
    let wrong = examine(&tab, "/", (360, "light"), "bar");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    tab.click("#bar a[href=\"/tasks\"]");
    tab.until("the tasks", "location.pathname === '/tasks'");
    assert_eq!(tab.eval("document.querySelector('#bar [aria-current]').textContent.trim()"), json!("Tasks"));
    // 200 % of a desk's width is half of it; and the colours of the system in the place of ours.
    tab.looks(640, 400, "dark");
    for path in ["/", "/tasks", "/e", "/audit", "/waits"] {
        tab.go(&at(door, path));
        tab.until("the view", "document.querySelector('#blocks').getAttribute('aria-busy') === 'false'");
        let wide = tab.eval("document.documentElement.scrollWidth").as_u64().unwrap();
        assert!(wide <= 640, "{path}: {wide}");
    }
    tab.ask(
        "Emulation.setEmulatedMedia",
        &json!({ "features": [{ "name": "forced-colors", "value": "active" }] }),
    );
    tab.go(&at(door, "/e"));
    tab.until("the events", "document.querySelectorAll('tr[data-key]').length > 0");
    assert!(tab.is("matchMedia('(forced-colors: active)').matches"));
    // What is current, and what is a button, is to be seen without our colours.
    let border = "getComputedStyle(document.querySelector('#views [aria-current]')).borderBottomStyle";
    assert_eq!(tab.eval(border), json!("solid"));
    assert!(tab.is("[...document.querySelectorAll('main button')].every((it) => getComputedStyle(it).borderTopWidth !== '0px' || !it.checkVisibility())"));
    tab.picture("forced-colors");
}
