//! Odd readers and odd input at the page: two that answer at once, clocks that differ, names that look alike.

use std::sync::Barrier;

use serde_json::json;

use super::{ask, at, open_world};
use crate::support::browser::Browser;
use crate::support::loopback_client::Http;
use crate::support::own_api::own;
use crate::support::passkeys::answered;
use crate::support::terminal::at_the_terminal;

#[test]
fn of_two_people_who_answer_at_once_one_counts_and_the_other_is_told() {
    let (world, daemon, door) = open_world();
    for round in 1..=4_u64 {
        ask(&world, &daemon, &format!("round {round}"));
        let both = Barrier::new(2);
        let (yes, no) = std::thread::scope(|scope| {
            let say = |line: String| {
                let (both, world) = (&both, &world);
                scope.spawn(move || {
                    both.wait();
                    at_the_terminal(world, &line)
                })
            };
            let (yes, no) = (say(format!("approve {round}")), say(format!("deny {round} --reason no")));
            (yes.join().unwrap(), no.join().unwrap())
        });
        assert_ne!(yes.status.success(), no.status.success(), "one of them counts: {yes:?} {no:?}");
        let verdict = if yes.status.success() { "granted" } else { "denied" };
        assert_eq!(answered(&world, round)["kind"]["approval_answered"]["verdict"], verdict);
        let late = if yes.status.success() { no } else { yes };
        let said = String::from_utf8_lossy(&[late.stdout, late.stderr].concat()).into_owned();
        assert!(
            said.contains("no approval") || said.contains("does not wait") || said.contains("answered"),
            "{said}"
        );
        // The page says which of them it was.
        let view = Http::look(door, &format!("/rows/approval?id={round}")).json().to_string();
        assert!(
            view.contains(&format!("It does not wait any more: {verdict} (proof: weak-human)")),
            "{view}"
        );
    }
}

#[test]
fn a_clock_that_differs_is_said_and_times_go_by_the_daemons() {
    let (world, daemon, door) = open_world();
    ask(&world, &daemon, "look at the clock");
    let browser = Browser::start();
    for (hours, wanted) in [(2, -7_200), (-30, 108_000)] {
        let tab = browser.open("about:blank");
        tab.before(&format!("{{ const real = Date.now; Date.now = () => real() + {hours} * 3600000; }}"));
        tab.go(&at(door, "/"));
        tab.shows("look at the clock");
        tab.shows("clock differs from this one by");
        let said = tab.text();
        let by = said.split("differs from this one by ").nth(1).unwrap().split(' ').next().unwrap();
        let by: i64 = by.parse().unwrap();
        assert!((by - wanted).abs() < 60, "{by} is not about {wanted}");
        // It is neither over nor hours away.
        let left = tab.eval("document.querySelector('time[data-until]').textContent");
        let left = left.as_str().unwrap();
        assert!(left.ends_with("min left") || left.ends_with("s left"), "{left}");
    }
}

#[test]
fn names_that_look_like_others_are_refused_and_those_in_texts_are_shown_as_they_are() {
    let (world, daemon, door) = open_world();
    // A Cyrillic letter in the place of a Latin one, a mark that changes a letter, a name that turns around.
    for name in ["\u{43e}rch", "orc\u{300}h", "o\u{202e}rch", "orch\u{200b}", "\u{ff4f}rch"] {
        let (status, refused) = own(
            &world,
            ("POST", "/delegate"),
            &[("x-provost-agent", name)],
            &json!({ "goal": "x", "worker": "shell" }),
        );
        assert!((400..404).contains(&status), "{name:?}: {status} {refused}");
    }
    // In a text they are the asker's own words, marked as such.
    ask(&world, &daemon, "from \u{43e}rch, as you know");
    let view = Http::look(door, "/rows/needs-you").json();
    let cells = view["blocks"][0]["rows"][0]["cells"].clone();
    assert_eq!(
        (&cells[1], &cells[2]["is"]),
        (&json!({ "is": "code", "text": "orch" }), &json!("said")),
        "{cells}"
    );
    assert_eq!(view["blocks"][0]["rows"].as_array().unwrap().len(), 1, "nothing else came through");
}
