//! Search over all repositories, on the page: each daemon is asked at the same time, and one that does not answer is named.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::browser::Browser;
use crate::support::hub::{Hub, free_port};
use crate::support::passkeys::{asks, rules_by};
use crate::support::{Daemon, World, eventually};

/// Two repositories of one user, and the page over both.
fn both() -> (World, World, [Daemon; 2], Hub) {
    let (one, port) = (World::new(), free_port());
    let other = one.beside();
    one.configure(&format!("[web]\nall_port = {port}\n"));
    one.rule(&rules_by("\"passkey\""));
    let daemons = [one.start(), other.start()];
    let hub = Hub::start(&one, port);
    for world in [&one, &other] {
        eventually("it is live", || hub.state(&folder(world)) == "live");
    }
    (one, other, daemons, hub)
}

fn folder(world: &World) -> String {
    world.repo().canonicalize().unwrap().display().to_string()
}

fn found(hub: &Hub, words: &str) -> Value {
    hub.json(&format!("/rows/search?q={words}"))
}

/// The texts of all rows.
fn rows(said: &Value) -> Vec<String> {
    let blocks = said["blocks"].as_array().unwrap().iter();
    blocks
        .flat_map(|it| it["rows"].as_array().cloned().unwrap_or_default())
        .map(|it| it.to_string())
        .collect()
}

#[test]
fn words_are_found_in_all_repositories_and_a_daemon_that_does_not_answer_is_named() {
    let (one, other, daemons, hub) = both();
    asks(&one, "tidy the aviary <b>here</b>");
    asks(&other, "tidy the aviary there");
    let bases = [hub.base(&one), hub.base(&other)];
    eventually("both are found", || {
        let rows = rows(&found(&hub, "aviary"));
        bases.iter().all(|base| rows.iter().any(|it| it.contains(base.as_str())))
    });
    // Newest first, over both.
    let said = found(&hub, "aviary");
    for block in said["blocks"].as_array().unwrap().iter().filter(|it| it["rows"].is_array()) {
        assert_eq!(block["columns"][1], "Repository", "{block}");
        let times: Vec<&str> =
            block["rows"].as_array().unwrap().iter().filter_map(|it| it["cells"][5]["at"].as_str()).collect();
        assert!(times.len() > 1 && times.is_sorted_by(|a, b| a >= b), "{times:?}");
    }
    for (words, says) in [
        ("", "Type words"),
        ("%22one", "quotation mark"),
        ("%00", ""),
        ("albatross", "Nothing has all of these words."),
    ] {
        let said = found(&hub, words).to_string();
        assert!(said.contains(says) && !said.contains("data-"), "{words}: {said}");
    }
    // One that stands still holds up no other.
    let stopped = Pid::from_raw(i32::try_from(daemons[1].pid()).unwrap()).unwrap();
    kill_process(stopped, Signal::STOP).unwrap();
    let begun = Instant::now();
    let said = found(&hub, "aviary");
    let took = begun.elapsed();
    kill_process(stopped, Signal::CONT).unwrap();
    assert!(took < Duration::from_secs(5), "{took:?}");
    let rows = rows(&said);
    assert!(rows.iter().any(|it| it.contains(&bases[0])), "{said}");
    assert!(!rows.iter().any(|it| it.contains(&bases[1])), "{said}");
    let notices: Vec<&Value> =
        said["blocks"].as_array().unwrap().iter().filter(|it| it["block"] == "notice").collect();
    assert_eq!(notices.len(), 1, "{said}");
    let text = notices[0]["text"].as_str().unwrap();
    assert!(text.contains("was not searched: its daemon does not answer"), "{said}");
    eventually("it answers again", || rows_of(&hub) == 2);
    // No other page reads it, and nothing of it is taken.
    let foreign = hub.door.bare("GET /rows/search?q=aviary", &[("Host", "evil.example:PORT")], b"");
    assert_ne!(foreign.status, 200, "{foreign:?}");
    let own = ("Host", "provost.localhost:PORT");
    for foreign in
        [("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Site", "same-site"), ("Origin", "http://localhost:1")]
    {
        let answer = hub.door.bare("GET /rows/search?q=aviary", &[own, foreign], b"");
        assert_ne!(answer.status, 200, "{foreign:?}: {answer:?}");
    }
    assert_eq!(hub.post("/rows/search", &json!({ "q": "aviary" })).status, 405);
}

fn rows_of(hub: &Hub) -> usize {
    let said = found(hub, "aviary");
    let tasks = said["blocks"].as_array().unwrap().iter().find(|it| it["title"] == "Tasks");
    tasks.and_then(|it| it["rows"].as_array()).map_or(0, Vec::len)
}

#[test]
fn the_field_and_the_view_lead_to_what_was_found_in_any_repository() {
    let (one, other, _daemons, hub) = both();
    asks(&one, "tidy the aviary <b>here</b>");
    asks(&other, "tidy the aviary there");
    eventually("both are found", || rows_of(&hub) == 2);
    let browser = Browser::start();
    let tab = browser.open(&format!("http://provost.localhost:{}/", hub.door.port));
    tab.until("a connection", "document.body.dataset.live === 'live'");
    tab.press("g");
    tab.press("f");
    tab.until("the view", "document.body.dataset.view === 'search' && document.querySelector('#query')");
    tab.eval("document.querySelector('#query').focus()");
    tab.write("aviary");
    tab.until(
        "both",
        "document.querySelectorAll('#blocks table')[0]?.querySelectorAll('tbody tr').length === 2",
    );
    assert!(tab.is("location.search === '?q=aviary'"));
    assert_eq!(tab.eval("document.querySelectorAll('main b').length"), json!(0), "words are text");
    assert_eq!(tab.eval("document.documentElement.scrollWidth <= innerWidth"), json!(true));
    // The field that opens anywhere finds the same.
    tab.go(&format!("http://provost.localhost:{}/", hub.door.port));
    tab.until("a connection", "document.body.dataset.live === 'live'");
    tab.click("#find");
    tab.write("aviary there");
    let base = hub.base(&other);
    let way =
        "[...document.querySelectorAll('#palette-ways li')].find((it) => it.textContent.includes('tidy'))";
    tab.until("the task of the other", way);
    tab.eval(&format!("{way}.click()"));
    tab.until("its page", &format!("location.pathname.startsWith('{base}/')"));
    assert_eq!(tab.eval("globalThis.violations"), json!([]));
}
