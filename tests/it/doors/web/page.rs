//! The page in a real browser: live, stale and live again, keys, hostile words, narrow and dark, and nothing from elsewhere.

use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::{LOOKS, OPEN, ask, at, examine, open_world};
use crate::support::browser::{Browser, Tab};
use crate::support::loopback_client::Http;
use crate::support::own_api::own;
use crate::support::rules::{ASK, allow};
use crate::support::terminal::at_the_terminal;
use crate::support::{Daemon, World, eventually};

/// That nothing was stopped by the policy of content, and nothing asked of another host.
#[track_caller]
fn is_clean(browser: &Browser, tabs: &[&Tab<'_>], door: Http) {
    for tab in tabs {
        assert_eq!(tab.eval("globalThis.violations"), json!([]));
        assert_eq!(tab.eval("document.cookie"), json!(""));
    }
    let ours = at(door, "/");
    let foreign: Vec<String> =
        browser.requested().into_iter().filter(|it| !it.starts_with(&ours) && it != "about:blank").collect();
    assert_eq!(foreign, [""; 0]);
}

#[test]
fn what_is_asked_appears_by_itself_and_leaves_with_its_end() {
    let (world, daemon, door) = open_world();
    let browser = Browser::start();
    let tab = browser.open(&at(door, "/"));
    tab.shows("All is calm");
    tab.shows("live");
    let (task, reply) = world.client(&daemon, "orch").delegate("shell", "make the release", json!({}));
    let asked = Instant::now();
    reply.ack();
    tab.shows("approval 1");
    eprintln!("an approval was on the page after {} ms", asked.elapsed().as_millis());
    tab.shows("make the release");
    tab.until("the title", "document.title.startsWith('(1) ')");
    assert!(!tab.text().contains("All is calm"));
    tab.picture("needs-you");
    // Its own page, by the link of the row.
    tab.eval("document.querySelector('tr[data-key] a').click()");
    tab.shows("What the daemon knows");
    let text = tab.text();
    for there in [
        "provost approve 1",
        "provost deny 1",
        "orch",
        "test.ask",
        "Answer with a passkey",
        "No passkey is enrolled",
        "An agent has written this",
    ] {
        assert!(text.contains(there), "{there}: {text}");
    }
    // Facts come first, then the words of agents, and the answer last.
    let order = |it: &str| text.find(it).unwrap();
    assert!(
        order("What the daemon knows") < order("An agent has written")
            && order("An agent has written") < order("Answer with a passkey")
    );
    let buttons = tab.eval(
        "[...document.querySelectorAll('main button')].filter((it) => it.checkVisibility()).map((it) => it.textContent)",
    );
    assert!(buttons.as_array().unwrap().iter().all(|it| it == "Copy"), "no button could answer: {buttons}");
    // One that is answered says by whom and how, while it is looked at.
    ask(&world, &daemon, "another one");
    let other = browser.open(&at(door, "/a/2"));
    other.shows("What the daemon knows");
    let person = at_the_terminal(&world, "approve 2");
    assert!(person.status.success(), "{person:?}");
    other.shows("It does not wait any more: granted (proof: weak-human), by user:");
    // One whose task was ended says that.
    let done = world.command(&["task", "cancel", &task]).output().unwrap();
    assert!(done.status.success(), "{done:?}");
    // A tab that is behind another one asks when it is looked at.
    tab.ask("Page.bringToFront", &json!({}));
    tab.shows("its asker has taken the request back");
    tab.go(&at(door, "/"));
    tab.shows("All is calm");
    tab.until("the title", "!document.title.startsWith('(')");
    is_clean(&browser, &[&tab], door);
}

#[test]
fn words_of_an_agent_are_text_however_long_and_hostile() {
    let (world, daemon, door) = open_world();
    let hostile = "</pre><script>globalThis.hacked = 1</script><img src=x onerror=\"globalThis.hacked = 2\"><b>bold</b> \
                   \u{1b}[2J\u{1b}]8;;http://evil.example\u{7}link\u{1b}]8;;\u{7} \u{202e}desrever \u{200b}&lt;i&gt; ";
    let goal = format!("first line {hostile}\n{}", hostile.repeat(200_000 / hostile.len()));
    let goal: String = goal.chars().take(190_000).collect();
    ask(&world, &daemon, &goal);
    let browser = Browser::start();
    let tab = browser.open(&at(door, "/"));
    tab.shows("approval 1");
    let tabs = [browser.open(&at(door, "/a/1")), browser.open(&at(door, "/tasks"))];
    tabs[0].shows("In the agent's own words");
    tabs[1].shows("waits for approval");
    for tab in tabs.iter().chain([&tab]) {
        tab.shows("<script>globalThis.hacked = 1</script>");
        assert_eq!(tab.eval("typeof globalThis.hacked"), json!("undefined"));
        let made = tab.eval(
            "document.querySelectorAll('main script, main img, main b, main i, main iframe, main a[href^=http]').length",
        );
        assert_eq!(made, json!(0));
        let raw = tab.eval("/[\\u001b\\u0007\\u202e\\u200b]/.test(document.body.textContent)");
        assert_eq!(raw, json!(false), "what hides is made visible");
        assert!(tab.text().contains("\\u{202e}") && tab.text().contains("\\u{1b}"));
    }
    let length = tabs[0].eval("document.querySelector('pre.words').textContent.length").as_u64().unwrap();
    assert!(length >= 190_000, "all of it is there: {length}");
    tabs[0].looks(360, 740, "light");
    assert!(tabs[0].is("document.documentElement.scrollWidth <= 360"));
    is_clean(&browser, &[&tab, &tabs[0], &tabs[1]], door);
}

/// A world whose page has a port that it keeps over starts.
fn steady_world() -> (World, Daemon, Http) {
    let port = crate::support::hub::free_port();
    let world = World::new();
    world.configure(&format!("[web]\nenabled = true\nport = {port}\n"));
    world.rule(ASK);
    let daemon = world.start();
    (world, daemon, Http { port })
}

#[test]
fn a_page_is_stale_while_the_daemon_is_gone_and_live_when_it_is_back() {
    let (world, mut daemon, door) = steady_world();
    ask(&world, &daemon, "before the stop");
    let browser = Browser::start();
    let tab = browser.open(&at(door, "/"));
    tab.shows("before the stop");
    tab.until("live", "document.body.dataset.live === 'live'");
    for killed in [false, true] {
        match killed {
            true => daemon.kill(),
            false => daemon.stop(),
        }
        tab.until("stale", "document.body.dataset.live === 'stale'");
        tab.shows("stale since");
        // What was shown stays, and no command is to be taken from it.
        assert!(tab.text().contains("before the stop"), "{}", tab.text());
        assert!(tab.is("[...document.querySelectorAll('button[data-action]')].every((it) => it.disabled)"));
        tab.picture("stale");
        daemon = world.start();
        tab.until("live again", "document.body.dataset.live === 'live'");
        tab.until(
            "actions again",
            "[...document.querySelectorAll('button[data-action]')].every((it) => !it.disabled)",
        );
        let word = if killed { "after the kill" } else { "after the stop" };
        ask(&world, &daemon, word);
        tab.shows(word);
        assert!(tab.text().contains("before the stop"));
    }
    assert_eq!(tab.eval("globalThis.violations"), json!([]));
}

#[test]
fn a_page_is_stale_while_the_daemon_hangs_and_live_when_it_goes_on() {
    let (world, daemon, door) = steady_world();
    ask(&world, &daemon, "before it hangs");
    let browser = Browser::start();
    let tab = browser.open(&at(door, "/"));
    tab.shows("before it hangs");
    tab.until("live", "document.body.dataset.live === 'live'");
    let process = Pid::from_raw(daemon.pid().cast_signed()).unwrap();
    kill_process(process, Signal::STOP).unwrap();
    tab.until("stale", "document.body.dataset.live === 'stale'");
    assert!(tab.is("[...document.querySelectorAll('button[data-action]')].every((it) => it.disabled)"));
    kill_process(process, Signal::CONT).unwrap();
    tab.until("live again", "document.body.dataset.live === 'live'");
    ask(&world, &daemon, "after it went on");
    tab.shows("after it went on");
    // A daemon that has nothing to tell is heard all the same: it beats.
    let quiet = "new Promise((done) => setTimeout(() => done(document.body.dataset.live), 4000))";
    assert_eq!(tab.eval(quiet), json!("live"));
}

#[test]
fn seven_tabs_read_one_stream_and_all_are_live() {
    let (world, daemon, door) = open_world();
    let browser = Browser::start();
    let paths = ["/", "/tasks", "/agents", "/locks", "/e", "/", "/tasks"];
    let tabs: Vec<Tab<'_>> = paths.iter().map(|path| browser.open(&at(door, path))).collect();
    for tab in &tabs {
        tab.until("live", "document.body.dataset.live === 'live'");
    }
    ask(&world, &daemon, "for all seven");
    for at in [0, 1, 5, 6] {
        // A tab that is behind others asks when it is looked at.
        tabs[at].ask("Page.bringToFront", &json!({}));
        tabs[at].shows("for all seven");
    }
    let streams = browser.requested().iter().filter(|it| it.contains("/event-stream")).count();
    assert_eq!(streams, 1, "tabs with a stream of their own");
    // The one that reads it goes; another goes on.
    tabs[0].ask("Page.bringToFront", &json!({}));
    tabs[0].go("about:blank");
    tabs[5].ask("Page.bringToFront", &json!({}));
    ask(&world, &daemon, "after the first has gone");
    tabs[5].shows("after the first has gone");
    tabs[5].until("live", "document.body.dataset.live === 'live'");
}

#[test]
fn new_rows_wait_while_somebody_is_at_the_list_and_keys_reach_everything() {
    let (world, daemon, door) = open_world();
    ask(&world, &daemon, "the first");
    ask(&world, &daemon, "the second");
    let browser = Browser::start();
    let tab = browser.open(&at(door, "/"));
    tab.shows("the second");
    tab.press("j");
    tab.until("a row has the focus", "document.activeElement.dataset.key === 'approval:1'");
    ask(&world, &daemon, "the third");
    tab.shows("1 new, press n");
    assert!(!tab.text().contains("the third"), "it would have moved what is read");
    assert!(tab.is("document.activeElement.dataset.key === 'approval:1'"));
    tab.press("n");
    tab.shows("the third");
    assert!(tab.is("document.activeElement.dataset.key === 'approval:1'"), "the focus stays");
    tab.press("j");
    tab.press("k");
    tab.press("j");
    tab.until("the second row", "document.activeElement.dataset.key === 'approval:2'");
    tab.press(".");
    tab.until("its commands", "document.activeElement.tagName === 'SUMMARY'");
    assert!(tab.text().contains("provost approve 2"));
    tab.press("Escape");
    tab.until("closed", "document.activeElement.dataset.key === 'approval:2'");
    tab.press("?");
    tab.until("the keys", "document.querySelector('#keys').open");
    tab.press("Escape");
    tab.eval("document.querySelector('#keys').close()");
    tab.press("o");
    tab.shows("Approval 2");
    for (key, title) in [
        ("t", "Tasks"),
        ("a", "Agents"),
        ("l", "Locks"),
        ("w", "Waits"),
        ("i", "Intents"),
        ("m", "Messages"),
        ("s", "Search"),
        ("u", "Audit"),
        ("e", "Events"),
        ("h", "Health"),
        ("p", "Passkeys"),
        ("n", "Needs you"),
    ] {
        tab.press("g");
        tab.press(key);
        tab.until(title, &format!("document.querySelector('h1').textContent === '{title}'"));
        tab.until("its rows", "document.querySelector('#blocks').getAttribute('aria-busy') === 'false'");
    }
    tab.press("g");
    tab.press("t");
    // The view before has rows as well.
    tab.until("tasks", "location.pathname === '/tasks' && document.querySelector('tr[data-key]')");
    tab.press("/");
    tab.until("the filter", "document.activeElement.id === 'query'");
    tab.ask("Input.insertText", &json!({ "text": "second" }));
    tab.until("one row", "document.querySelectorAll('tr[data-key]').length === 1");
    assert!(tab.is("location.search === '?q=second'"), "the address is the view");
    is_clean(&browser, &[&tab], door);
}

#[test]
fn one_field_leads_to_each_view_and_to_what_was_said() {
    let (world, daemon, door) = open_world();
    let hostile = "paint the shed <img src=x onerror=\"globalThis.hacked = 1\"> \u{202e}green";
    ask(&world, &daemon, hostile);
    let browser = Browser::start();
    let tab = browser.open(&at(door, "/"));
    tab.shows("paint the shed");
    let is_open = "document.querySelector('#palette').open && document.activeElement.id === 'palette-field'";
    tab.press("/");
    tab.until("the field", is_open);
    tab.ask("Input.insertText", &json!({ "text": "wai" }));
    tab.until("a view", "document.querySelector('#palette-ways li')?.textContent.includes('Waits')");
    tab.press("Enter");
    tab.until("the view", "location.pathname === '/waits'");
    tab.until("its rows", "document.querySelector('.graph svg polyline.edge')");
    assert_eq!(tab.eval("document.querySelectorAll('main [style]').length"), json!(0));
    tab.eval(
        "document.dispatchEvent(new KeyboardEvent('keydown', { key: 'k', ctrlKey: true, bubbles: true }))",
    );
    tab.until("the field by its key", is_open);
    tab.ask("Input.insertText", &json!({ "text": "shed gree" }));
    let way = "[...document.querySelectorAll('#palette-ways li')].find((it) => it.textContent.includes('paint the shed'))";
    tab.until("the task", &format!("{way} !== undefined"));
    tab.picture("palette");
    assert_eq!(tab.eval("document.querySelectorAll('#palette img').length"), json!(0));
    tab.eval(&format!("{way}.click()"));
    tab.until("its page", "location.pathname.startsWith('/t/')");
    // The whole search is a view, whose address is the search; one that is none says why.
    tab.go(&at(door, "/search"));
    tab.until("live", "document.body.dataset.live === 'live'");
    tab.press("/");
    tab.ask("Input.insertText", &json!({ "text": "\"shed" }));
    tab.shows("a quotation mark is not closed");
    tab.ask("Input.insertText", &json!({ "text": "\"" }));
    tab.until("the task", "document.querySelector('tr[data-key^=\"task:\"]')");
    assert!(tab.is("location.search === '?q=%22shed%22'"));
    assert_eq!(tab.eval("typeof globalThis.hacked"), json!("undefined"));
    is_clean(&browser, &[&tab], door);
}

#[test]
fn a_log_is_followed_to_its_end_and_its_colours_are_no_markup() {
    let world = World::new();
    world.configure(&format!("[policy]\nfile = \"builtin:open\"\n{OPEN}"));
    let daemon = world.start();
    let door = Http::web(&world);
    let goal = "printf '\\033[31mred\\033[0m <b>plain</b>\\n'; i=0; while [ $i -lt 300 ]; do echo line-$i; i=$((i+1)); done; \
                while [ ! -e over ]; do sleep 0.05; done; echo the-last-line";
    let (task, reply) = world.client(&daemon, "orch").delegate("shell", goal, json!({}));
    reply.ack();
    let browser = Browser::start();
    let tab = browser.open(&at(door, &format!("/t/{task}")));
    tab.shows("running");
    tab.until("the log", "document.querySelector('pre.log')?.textContent.includes('line-299')");
    assert_eq!(tab.eval("document.querySelector('pre.log .c1').textContent"), json!("red"));
    assert_eq!(tab.eval("document.querySelectorAll('pre.log b').length"), json!(0));
    let is_at_end =
        "(it => it.scrollHeight - it.scrollTop - it.clientHeight < 8)(document.querySelector('pre.log'))";
    assert!(tab.is(is_at_end), "it follows the end");
    // Who has scrolled up stays there, and is told.
    tab.eval("document.querySelector('pre.log').scrollTop = 0");
    tab.until("no follow", "document.querySelector('pre.log').scrollTop === 0");
    std::fs::write(world.repo().join("over"), "").unwrap();
    tab.until("the last line", "document.querySelector('pre.log').textContent.includes('the-last-line')");
    tab.until("told", "!document.querySelector('button.more').hidden");
    assert!(!tab.is(is_at_end));
    tab.shows("completed");
    tab.picture("task");
    is_clean(&browser, &[&tab], door);
}

/// A world with something in every view.
fn full_world() -> (World, Daemon, Http) {
    let (world, daemon, door) = open_world();
    world.put(&world.repo().join("src/auth.py"), "def login():\n    return 1\n");
    for goal in
        ["make the release\nwith all that belongs to it", "look at <b>markup</b> and \u{202e}direction"]
    {
        ask(&world, &daemon, goal);
    }
    let lock =
        world.command(&["lock", "acquire", "src/auth.py:login", "--reason", "a new form"]).output().unwrap();
    assert!(lock.status.success(), "{lock:?}");
    let wait = ["lock", "src/auth.py:login", "--wait", "10m", "--as", "ada"];
    let mut waits = world.command(&wait);
    // It ends with the daemon.
    std::thread::spawn(move || waits.output());
    let intent =
        ["intent", "declare", "a new form", "--file", "src/auth.py", "--symbol", "login", "--as", "eve"];
    let question = r#"{"type":"agent.question","agent_id":"ada","payload":{"question":"which login?"}}"#;
    let answer = r#"{"type":"agent.feedback","agent_id":"ada","payload":{"from":"eve","errors":["mine & yours: 1 < 2"]}}"#;
    let says = |message: &'static str| ["broker", "publish", message];
    for args in [&intent[..], &says(question), &says(answer)] {
        let done = world.command(args).output().unwrap();
        assert!(done.status.success(), "{args:?}: {done:?}");
    }
    eventually("ada waits", || Http::look(door, "/rows/waits").json().to_string().contains("\"ada\""));
    (world, daemon, door)
}

#[test]
fn every_view_is_whole_narrow_and_wide_dark_and_light_and_accessible() {
    let (world, daemon, door) = full_world();
    let (task, reply) = world.client(&daemon, "orch").delegate("shell", "a task of its own", json!({}));
    reply.ack();
    let browser = Browser::start();
    let tab = browser.open(&at(door, "/"));
    let one = format!("/t/{task}");
    let views = [
        "/",
        "/a/1",
        "/a/99",
        "/tasks",
        "/tasks?q=nothing-has-this",
        &one,
        "/agents",
        "/locks",
        "/waits",
        "/intents",
        "/messages",
        "/search",
        "/search?q=login",
        "/audit",
        "/audit?q=worker:shell",
        "/e",
        "/health",
        "/passkeys",
    ];
    let mut wrong = Vec::new();
    for path in views {
        for (width, height, scheme) in LOOKS {
            tab.looks(width, height, scheme);
            tab.go(&at(door, path));
            tab.until("its rows", "document.querySelector('#blocks')?.getAttribute('aria-busy') === 'false'");
            tab.until("live", "document.body.dataset.live === 'live'");
            let name = path.trim_matches('/').split('?').next().unwrap().replace('/', "-");
            let name = match name.as_str() {
                "" => "needs",
                it if path.contains('?') => &format!("{it}-none"),
                it if path == one => &it[..1],
                it => it,
            };
            wrong.extend(examine(&tab, path, (width, scheme), name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    is_clean(&browser, &[], door);
}

#[test]
fn a_link_with_another_digest_says_so_and_a_view_that_fails_says_why() {
    let (world, daemon, door) = open_world();
    ask(&world, &daemon, "make the release");
    let browser = Browser::start();
    let tab = browser.open(&at(door, "/a/1?d=000000"));
    tab.shows("The link was made for another request");
    let digest = tab.eval(
        "[...document.querySelectorAll('dt')].find((it) => it.textContent === 'digest').nextElementSibling.textContent",
    );
    let digest = digest.as_str().unwrap();
    let begin = digest.rsplit_once(':').map_or(digest, |it| it.1).get(..6).unwrap();
    tab.go(&at(door, &format!("/a/1?d={begin}")));
    tab.shows("What the daemon knows");
    assert!(!tab.text().contains("another request"));
    tab.go(&at(door, "/t/there-is-none"));
    tab.until("the fault", "!document.querySelector('#fault').hidden");
    assert!(tab.is("document.querySelector('#fault').textContent.length > 20"));
    // No agent takes the name as which the page reads, and shuts the page out by that or hides among what it leaves away.
    let token = allow("token", &["when.action = [\"token\"]"]);
    world.rule(&format!("{ASK}{token}"));
    assert!(world.command(&["daemon", "reload"]).output().unwrap().status.success());
    for name in ["web-page", "Web-Page", "dashboard"] {
        let minted = world.command(&["token", "mint", name]).output().unwrap();
        let text = String::from_utf8_lossy(&minted.stderr).into_owned();
        assert!(!minted.status.success() && text.contains("never has a token"), "{name}: {text}");
        let (status, refused) = own(
            &world,
            ("POST", "/delegate"),
            &[("x-provost-agent", name)],
            &json!({ "goal": "x", "worker": "shell" }),
        );
        assert_eq!(status, 403, "{name}: {refused}");
    }
    tab.go(&at(door, "/"));
    tab.shows("make the release");
}

/// Nearly as many approvals as one agent may have waiting at once.
const CROWD: usize = 60;

#[test]
fn a_crowd_of_approvals_is_drawn_at_once_and_a_new_one_is_seen_among_them() {
    let (world, daemon, door) = open_world();
    for n in 0..CROWD {
        ask(&world, &daemon, &format!("crowd number {n}"));
    }
    let browser = Browser::start();
    let tab = browser.open(&at(door, "/"));
    tab.until("all rows", &format!("document.querySelectorAll('tr[data-key]').length === {CROWD}"));
    tab.until("the title", &format!("document.title.startsWith('({CROWD}) ')"));
    let drawn = tab.eval(
        "(async () => { const said = await (await fetch('/rows/needs-you')).json(); \
         const asked = performance.getEntriesByType('resource').map((it) => it.name); \
         const { Blocks } = await import(asked.find((it) => it.includes('/blocks-'))); \
         const root = document.createElement('div'); document.body.append(root); const from = performance.now(); \
         new Blocks(root).draw(said.blocks); root.getBoundingClientRect(); \
         const took = performance.now() - from; root.remove(); return took; })()",
    );
    eprintln!("{CROWD} approvals were drawn in {drawn} ms");
    // It should take a tenth of a second on free cores; other tests run beside this one.
    assert!(drawn.as_f64().unwrap() < 900.0, "{drawn}");
    ask(&world, &daemon, "the one among many");
    tab.shows("the one among many");
}
