//! How often the page asks: at once where nothing happened lately, at a steady pace in a flood, and once for what comes together.

use serde_json::json;

use super::{ask, at, open_world};
use crate::support::browser::Browser;

/// How often the rows of the view were asked for since the document was there.
const ASKED: &str =
    "performance.getEntriesByType('resource').filter((it) => it.name.includes('/rows/needs-you')).length";

#[test]
fn a_flood_of_changes_is_asked_for_at_a_steady_pace_and_its_end_is_shown() {
    let (world, daemon, door) = open_world();
    let browser = Browser::start();
    let tab = browser.open(&at(door, "/"));
    tab.shows("All is calm");
    // Five hundred changes in two seconds.
    let asked = tab.eval(&format!(
        "(async () => {{ const before = {ASKED}; for (let n = 0; n < 500; n += 1) {{ \
         document.dispatchEvent(new Event('provost-again')); await new Promise((done) => setTimeout(done, 4)); }} \
         return [{ASKED} - before, performance.now()]; }})()"
    ));
    let asked = asked[0].as_u64().unwrap();
    // Four at once and ten in a second, for as long as it took; other tests run beside this one.
    assert!((4..=80).contains(&asked), "{asked}");
    for n in 0..20 {
        ask(&world, &daemon, &format!("flood number {n}"));
    }
    tab.shows("flood number 19");
    tab.until("all of them", "document.querySelectorAll('tr[data-key]').length === 20");
    assert_eq!(tab.eval("globalThis.violations"), json!([]));
}

#[test]
fn the_pace_has_some_at_once_and_then_one_after_the_other() {
    let (_world, _daemon, door) = open_world();
    let browser = Browser::start();
    let tab = browser.open(&at(door, "/"));
    tab.shows("All is calm");
    let said = tab.eval(
        "(async () => { const asked = performance.getEntriesByType('resource').map((it) => it.name); \
         const { Pace } = await import(asked.find((it) => it.includes('/pace-'))); const pace = new Pace(); \
         let now = 1e6; let taken = 0; const first = pace.wait(now); \
         for (; now < 1e6 + 10000; now += 1) if (pace.wait(now) === 0) { pace.take(now); taken += 1; } \
         for (let n = 0; n < 5; n += 1) pace.take(now); \
         const after = pace.wait(now); const back = pace.wait(now - 5000); const long = pace.wait(now + 1e9); \
         return [first, taken >= 103 && taken <= 105, after > 0 && after <= 100, back > 0 && back <= 100, long]; })()",
    );
    // A clock that was set back neither stops it nor sets it free.
    assert_eq!(said, json!([0, true, true, true, 0]));
}

#[test]
fn what_comes_in_one_commit_is_asked_for_once() {
    let (world, daemon, door) = open_world();
    let browser = Browser::start();
    let tab = browser.open(&at(door, "/"));
    tab.shows("All is calm");
    tab.until("a connection", "document.body.dataset.live === 'live'");
    // What the beginning has asked for is there.
    crate::support::waits::stays("the count", std::time::Duration::from_millis(300), || true);
    let before = tab.eval(ASKED).as_u64().unwrap();
    ask(&world, &daemon, "the only one");
    tab.shows("the only one");
    crate::support::waits::stays("the count", std::time::Duration::from_millis(300), || {
        tab.eval(ASKED).as_u64().unwrap() <= before + 1
    });
}
