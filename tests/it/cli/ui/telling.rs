//! Words for agents, both changes of a meeting, a check of the journal and other rules: keys in, orders out, without a terminal.

use provost::api::wire;
use provost::ui::{Both, Got, News, Order, Screen, UiRequest};
use provost::view::{self, AgentSources, Block, Filter, Shown};
use serde_json::json;

use super::Desk;

fn agents(names: &[&str]) -> Vec<wire::Agent> {
    let agent = |name: &&str| {
        json!({
            "id": name, "version": null, "caps": [], "alive": true, "last_seen": null, "registered_at": null, "mail": 0, "asked": 0,
        })
    };
    names.iter().map(|it| serde_json::from_value(agent(it)).unwrap()).collect()
}

/// The list of messages, with where all of these agents are written to.
fn messages(names: &[&str]) -> Shown {
    let mut shown = view::messages(&[], &[], &Filter::default(), 200, false);
    shown.blocks.extend(view::to_all(&agents(names)));
    shown
}

fn told(orders: Vec<Order>) -> Vec<Order> {
    orders.into_iter().filter(|it| matches!(it, Order::Tell { .. })).collect()
}

#[test]
fn a_message_to_all_names_all_and_is_sent_once_it_has_a_text() {
    let mut desk = Desk::new((120, 40), &["shop"]);
    // The list of messages says who there is: from elsewhere the key leads to it.
    desk.keys("M");
    assert!(desk.shows("once it is here, press M"), "{:?}", desk.drawn());
    desk.keys("M");
    assert!(desk.shows("not even two agents"), "{:?}", desk.drawn());
    desk.list(0, Screen::Messages, "", messages(&["feat-a", "feat-b", "feat-c", "feat-\u{202e}d"]));
    desk.keys("M");
    assert!(desk.shows("to feat-a, feat-b, feat-c and 1 more:"), "{:?}", desk.drawn());
    desk.keys(" \n");
    assert!(desk.shows("write what they are to read"));
    desk.ordered();
    desk.keys("stop, all of you\n");
    let to = ["feat-a", "feat-b", "feat-c", "feat-\u{202e}d"].map(str::to_owned).to_vec();
    let text = "stop, all of you".to_owned();
    assert_eq!(told(desk.ordered()), [Order::Tell { repository: 0, to, text }]);
    // It is sent once, and what is left is sent to no one.
    desk.keys("\n");
    assert!(told(desk.ordered()).is_empty());
    desk.keys("Mnot this\u{1b}");
    assert!(desk.shows("left as it is"));
    assert!(told(desk.ordered()).is_empty());
}

#[test]
fn more_agents_than_one_signature_is_for_are_all_written_to() {
    let names: Vec<String> = (0..150).map(|n| format!("feat-{n:03}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut desk = Desk::new((120, 40), &["shop"]);
    desk.keys("7");
    desk.list(0, Screen::Messages, "", messages(&names));
    desk.keys("Mgo on\n");
    let orders = told(desk.ordered());
    let [Order::Tell { to, .. }] = &orders[..] else { panic!("{orders:?}") };
    assert_eq!(to, &names);
}

#[test]
fn one_agent_is_written_to_from_its_row_and_both_from_their_meeting() {
    let mut desk = Desk::new((120, 40), &["shop", "site"]);
    desk.keys("3");
    let from = AgentSources { known: agents(&["feat-a"]), ..AgentSources::default() };
    desk.list(1, Screen::Agents, "", view::agents(&from, &Filter::default(), 100));
    desk.ordered();
    desk.keys("mlook at the tests\n");
    let one = Order::Tell { repository: 1, to: vec!["feat-a".into()], text: "look at the tests".into() };
    assert_eq!(told(desk.ordered()), [one]);
    // Both of a meeting, from its row and from where their changes are open.
    desk.keys("8");
    desk.list(0, Screen::Intents, "", meeting());
    desk.keys("mafter you\n");
    let both = |text: &str| Order::Tell {
        repository: 0,
        to: vec!["feat-a".into(), "feat-b".into()],
        text: text.into(),
    };
    assert_eq!(told(desk.ordered()), [both("after you")]);
    desk.keys("\n");
    let open = Both { file: "src/a b.py".into(), one: "feat-a".into(), other: "feat-b".into() };
    assert_eq!(desk.ordered(), [Order::Ask { repository: 0, asked: UiRequest::Both(open.clone()) }]);
    let side = |agent: &str| wire::ChangedSide {
        agent: agent.into(),
        branch: Some(agent.into()),
        diff: Some(format!(
            "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+of {agent} \u{202e}\n"
        )),
        added: 1,
        removed: 1,
        why_not: None,
    };
    let shown = view::both_changes(&open.file, &[side("feat-a"), side("feat-b")]);
    desk.news(News::Got {
        repository: 0,
        asked: UiRequest::Both(open),
        got: Ok(Got::Shown(Box::new(shown))),
    });
    let drawn = desk.drawn();
    let at = |text: &str| {
        drawn.iter().position(|it| it.contains(text)).unwrap_or_else(|| panic!("{text}: {drawn:?}"))
    };
    assert!(at("feat-a, on branch feat-a") < at("of feat-a"));
    assert!(
        at("of feat-a") < at("feat-b, on branch feat-b") && at("feat-b, on branch feat-b") < at("of feat-b")
    );
    assert!(!drawn.concat().contains('\u{202e}'));
    desk.keys("mboth, please\n");
    assert_eq!(told(desk.ordered()), [both("both, please")]);
    // It is asked for once: events do not ask git again and again.
    desk.now_ms += 10_000;
    desk.news(News::Changed { repository: 0, answered: None });
    assert!(!desk.ordered().iter().any(|it| matches!(it, Order::Ask { asked: UiRequest::Both(_), .. })));
}

/// Two agents that have announced a change of one file.
fn meeting() -> Shown {
    let side = |agent: &str| wire::MeetingSide {
        agent: agent.into(),
        kind: "intent".into(),
        asked: "a new form".into(),
        since: "2026-07-01T11:00:00.000Z".into(),
        ..wire::MeetingSide::default()
    };
    let met = wire::Meeting {
        file: "src/a b.py".into(),
        severity: "file".into(),
        sides: vec![side("feat-a"), side("feat-b")],
    };
    view::intents(&[met], &[], &[], &[], &Filter::default(), 100)
}

#[test]
fn the_journal_is_checked_for_as_long_as_that_is_looked_at() {
    let mut desk = Desk::new((120, 40), &["shop"]);
    desk.keys("V");
    let ask = |check| Order::Ask { repository: 0, asked: UiRequest::Check(check) };
    assert_eq!(desk.ordered(), [ask(None)]);
    let told = |check: Option<u64>, checked, found| {
        let told = wire::JournalCheck { check: 4, checked, last: 900, found };
        News::Got { repository: 0, asked: UiRequest::Check(check), got: Ok(Got::Checked(Box::new(told))) }
    };
    desk.news(told(None, 300, None));
    assert!(desk.shows("Checked 300 of 900 events"), "{:?}", desk.drawn());
    assert_eq!(desk.ordered(), [ask(Some(4))]);
    let found = wire::JournalFound {
        ok: true,
        says: "Nothing is wrong in 900 events.".into(),
        events: 900,
        anchor: Some("provost-anchor:1:900:abc".into()),
        at: "2026-07-01T12:00:00.000Z".into(),
        ..wire::JournalFound::default()
    };
    desk.news(told(Some(4), 900, Some(found)));
    assert!(desk.shows("Nothing is wrong in 900 events.") && desk.shows("provost-anchor:1:900:abc"));
    assert!(desk.ordered().is_empty());
    // An event begins no other one; who leaves asks no more.
    desk.now_ms += 10_000;
    desk.news(News::Changed { repository: 0, answered: None });
    desk.keys("\u{1b}");
    desk.news(told(Some(4), 300, None));
    let asked = desk.ordered();
    assert!(!asked.iter().any(|it| matches!(it, Order::Ask { asked: UiRequest::Check(_), .. })), "{asked:?}");
    // What goes wrong is said.
    desk.keys(":check\n");
    let got = Err("the daemon did not answer in time".into());
    desk.news(News::Got { repository: 0, asked: UiRequest::Check(None), got });
    assert!(desk.shows("did not answer in time"));
}

#[test]
fn ready_made_rules_are_asked_by_their_name() {
    let mut desk = Desk::new((120, 40), &["shop"]);
    desk.keys(":replay\n");
    assert!(desk.shows("name ready-made rules"));
    desk.ordered();
    desk.keys(":replay strict\n");
    assert_eq!(desk.ordered(), [Order::Ask { repository: 0, asked: UiRequest::Replay("strict".into()) }]);
    let otherwise = wire::DecidedOtherwise {
        seq: 12,
        at: "2026-07-01T11:00:00.000Z".into(),
        action: "delegate".into(),
        asked_by: "orch".into(),
        worker: Some("shell".into()),
        was: "allow".into(),
        was_rule: "test.all".into(),
        would: wire::RuleOutcome { decision: "deny".into(), rule: "no-rule".into(), ..Default::default() },
        ..Default::default()
    };
    let told = wire::RulesReplayed {
        asked: 9,
        from: 1,
        to: 40,
        without_arguments: 2,
        late: true,
        changed: vec![otherwise],
        more: 3,
        ..Default::default()
    };
    let shown = view::replayed(&told);
    let Block::List(rows) = shown.blocks.iter().find(|it| matches!(it, Block::List(_))).unwrap() else {
        panic!()
    };
    assert_eq!((&*rows.title, rows.more), ("Decided otherwise (4)", 3));
    let got = Ok(Got::Shown(Box::new(shown)));
    desk.news(News::Got { repository: 0, asked: UiRequest::Replay("strict".into()), got });
    for text in [
        "4 of 9 requests would have been decided otherwise",
        "Not asked about 2 requests",
        "The time was over",
    ] {
        assert!(desk.shows(text), "{text}: {:?}", desk.drawn());
    }
}
