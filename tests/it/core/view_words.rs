//! Messages, intents, what was found, rules and numbers, as people are shown them.

use provost::api::wire;
use provost::view::{self, Block, Cell, Fact, Filter, Rows, Shown, Tone};

fn lists(shown: &Shown) -> Vec<&Rows> {
    shown.blocks.iter().filter_map(|it| if let Block::List(rows) = it { Some(rows) } else { None }).collect()
}

fn titles(shown: &Shown) -> Vec<&str> {
    lists(shown).iter().map(|it| it.title.as_str()).collect()
}

fn post(seq: u64, from: &str, to: Option<&str>, proof: Option<&str>) -> wire::Post {
    wire::Post {
        seq,
        at: "2026-07-01T10:00:00.000Z".into(),
        text: String::new(),
        message: serde_json::Value::Null,
        kind: "feedback".into(),
        from: from.into(),
        to: to.map(Into::into),
        said: format!("words of {seq}\nand <b>more</b> \u{202e}"),
        proof: proof.map(Into::into),
    }
}

#[test]
fn messages_stand_by_pair_questions_first_and_a_name_without_proof_is_a_claim() {
    let posts = vec![
        post(5, "bob", Some("ada"), Some("token")),
        post(4, "ada", Some("bob"), None),
        post(3, "eve", None, Some("own_key")),
        wire::Post { kind: "status".into(), ..post(2, "zoe", None, None) },
        post(1, "ada", Some("bob"), Some("something-new")),
    ];
    let question = wire::Question {
        seq: 9,
        agent: "eve".into(),
        text: "which one?".into(),
        at: "2026-07-01T10:00:00.000Z".into(),
    };
    let shown = view::messages(&[question], &posts, &Filter::default(), 5, false);
    assert_eq!(titles(&shown), ["Questions without an answer (1)", "ada and bob (3)", "eve to all (1)"]);
    let found = lists(&shown);
    assert_eq!(found[0].rows[0].commands[0].line, "provost answer 9 TEXT");
    let senders: Vec<(&str, Tone)> = found[1]
        .rows
        .iter()
        .map(|it| {
            if let Cell::State(word) = &it.cells[0] {
                (word.word.as_str(), word.tone)
            } else {
                panic!("{it:?}")
            }
        })
        .collect();
    let claims = ("claims to be", Tone::Waiting);
    assert_eq!(
        senders,
        [("verified by token", Tone::Good), claims, ("claims to be (something-new)", Tone::Waiting)]
    );
    let said = &found[1].rows[0].cells[5];
    assert_eq!(
        *said,
        Cell::Said { text: "words of 5\nand <b>more</b> \\u{202e}".into() },
        "all of it, and nothing hides"
    );
    // A full page goes on, a short one does not; a filter is a filter of the page.
    assert_eq!(shown.next, None);
    let full = view::messages(&[], &posts[..4], &Filter::default(), 4, true);
    assert_eq!((full.next.as_deref(), titles(&full).len()), (Some("/messages?before=2"), 2));
    let none = view::messages(&[], &posts, &Filter::parse("nothing-has-this"), 5, true);
    assert_eq!((titles(&none), lists(&none)[0].empty.says.contains("filter")), (vec!["Messages"], true));
}

#[test]
fn what_the_daemon_has_written_is_the_daemons() {
    let posts =
        [post(2, "supervisor", Some("ada"), Some("internal")), post(1, "supervisor", Some("ada"), None)];
    let shown = view::messages(&[], &posts, &Filter::default(), 5, false);
    let word = |n: usize| match &lists(&shown)[1].rows[n].cells[0] {
        Cell::State(word) => word.word.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!([word(0), word(1)], ["the daemon", "claims to be"]);
}

#[test]
fn who_is_in_the_way_of_whom_is_shown_once_the_gravest_first() {
    let side = |agent: &str, kind: &str, symbols: &[&str]| wire::MeetingSide {
        agent: agent.into(),
        kind: kind.into(),
        asked: format!("words of {agent}"),
        symbols: symbols.iter().map(|it| (*it).into()).collect(),
        ..wire::MeetingSide::default()
    };
    let met = vec![
        wire::Meeting {
            file: "src/b.py".into(),
            severity: "symbol".into(),
            sides: vec![side("bob", "intent", &["h"]), side("eve", "lock", &["h"])],
        },
        wire::Meeting {
            file: "src/a.py".into(),
            severity: "file".into(),
            sides: vec![side("ada", "claim", &[]), side("bob", "intent", &["f"])],
        },
    ];
    let pair =
        |file: &str, a: &str, b: &str| wire::Overlap { file: file.into(), agents: [a.into(), b.into()] };
    let overlaps = [pair("src/a.py", "ada", "bob"), pair("src/c.py", "ada", "zoe")];
    let shown = view::intents(&met, &overlaps, &[], &[], &Filter::default(), 10);
    let rows = &lists(&shown)[0].rows;
    let states: Vec<String> = rows.iter().map(|it| serde_json::to_string(&it.cells[0]).unwrap()).collect();
    assert_eq!(rows.len(), 3, "a pair that is told with both words is not told again");
    assert!(
        states[0].contains("same symbol")
            && states[1].contains("same file")
            && states[2].contains("same file")
    );
    assert_eq!(rows[1].cells[3], Cell::Said { text: "claim: words of ada".into() });
    assert_eq!(rows[1].cells[5], Cell::Said { text: "intent (f): words of bob".into() });
    let only = view::intents(&met, &overlaps, &[], &[], &Filter::parse("zoe"), 10);
    assert_eq!(lists(&only)[0].rows.len(), 1);
    let calm = view::intents(&[], &[], &[], &[], &Filter::default(), 10);
    assert!(lists(&calm).iter().all(|it| it.rows.is_empty() && !it.empty.says.is_empty()));
}

#[test]
fn what_is_found_leads_to_the_very_task_message_or_event() {
    let hit = |kind: &str, seq: Option<u64>, message: Option<u64>, task: Option<&str>| wire::Hit {
        kind: kind.into(),
        seq,
        message,
        task: task.map(Into::into),
        at: "2026-07-01T10:00:00.000Z".into(),
        what: "queued".into(),
        actor: "ada".into(),
        excerpt: "…<b>found</b>…".into(),
    };
    let found = wire::Found {
        hits: vec![
            hit("task", None, None, Some("t 1")),
            hit("message", Some(7), Some(3), None),
            hit("event", Some(9), None, Some("t2")),
        ],
        more_tasks: true,
        next: Some(7),
        not_yet: 12,
    };
    let shown = view::search("a \"b c\" d*", &found);
    assert_eq!(titles(&shown), ["Tasks, the newest of many", "Messages and events"]);
    let to: Vec<&str> =
        lists(&shown).iter().flat_map(|it| &it.rows).filter_map(|it| it.to.as_deref()).collect();
    assert_eq!(to, ["/t/t%201", "/e?before=10", "/messages?before=4"]);
    assert_eq!(shown.next.as_deref(), Some("/search?q=a%20%22b%20c%22%20d%2A&before=7"));
    assert!(matches!(&shown.blocks[0], Block::Notice(line) if line.text.contains("The last 12 events")));
    let none = view::search("x", &wire::Found::default());
    assert!(lists(&none).iter().all(|it| it.empty.says.contains("Nothing has all")));
    let why = view::no_search("\u{1b}[2Jno");
    assert!(!serde_json::to_string(&why).unwrap().contains("\\u001b[2J"), "{why:?}");
}

#[test]
fn a_request_is_typed_by_names_and_what_is_none_is_told() {
    let asked = view::request("worker:shell dir:src action:permission command:\"git status -s\"").unwrap();
    assert_eq!((asked.worker.as_deref(), asked.dir.as_deref()), (Some("shell"), Some("src")));
    assert_eq!(asked.command.as_deref(), Some("git status -s"));
    assert_eq!(view::request("  ").unwrap(), wire::RulesQuery::default());
    for (typed, says) in [
        ("shell", "has no name"),
        ("bread:1", "a request has no 'bread'"),
        ("dir:src", "names its worker"),
        ("worker:\"shell", "not closed"),
    ] {
        let why = view::request(typed).unwrap_err();
        assert!(why.contains(says), "{typed}: {why}");
    }
}

#[test]
fn rules_say_whether_they_match_and_what_is_not_known_is_never_zero() {
    let rule = |id: &str, decision: &str, matched, unmet: Option<&str>| wire::RuleTold {
        id: id.into(),
        decision: decision.into(),
        file: "policy.toml".into(),
        line: 3,
        matched,
        unmet: unmet.map(Into::into),
        ..wire::RuleTold::default()
    };
    let rules = wire::Rules {
        digest: "sha256:1f".into(),
        sources: vec!["policy.toml".into()],
        rules: vec![
            rule("a", "deny", Some(false), Some("when.worker wants x, found y")),
            rule("b", "allow", Some(true), None),
        ],
        outcome: Some(wire::RuleOutcome {
            decision: "allow".into(),
            rule: "b".into(),
            ..wire::RuleOutcome::default()
        }),
    };
    let shown = view::audit(&wire::About::default(), &rules, &[], Some("odd <b>"));
    let text = serde_json::to_string(&shown).unwrap();
    for there in
        ["odd <b>", "the rules say", "when.worker wants x, found y", "matches", "policy.toml:3", "sha256:1f"]
    {
        assert!(text.contains(there), "{there}: {text}");
    }
    let facts = |health: &wire::Health| -> Vec<Fact> {
        let facts = view::numbers(health).into_iter().find_map(|it| match it {
            Block::Facts { facts, .. } => Some(facts),
            _ => None,
        });
        facts.unwrap()
    };
    let value = |facts: &[Fact], name: &str| {
        let fact = facts.iter().find(|it| it.name == name).unwrap_or_else(|| panic!("{name}"));
        serde_json::to_value(&fact.value).unwrap()["text"].as_str().unwrap().to_owned()
    };
    let unknown = facts(&wire::Health::default());
    for name in
        ["writes", "waits for locks", "store", "free on its disk", "used in 24 hours, as agents report it"]
    {
        assert!(value(&unknown, name).starts_with("unknown"), "{name}: {}", value(&unknown, name));
    }
    let known = facts(&wire::Health {
        commits: Some(wire::Spread { count: 7, p50_us: 250, p99_us: 12_500 }),
        store_bytes: Some(5 << 20),
        used_today: Some(
            serde_json::from_value(serde_json::json!({ "key": "", "worker": null, "runs": 1, "used": {} }))
                .unwrap(),
        ),
        ..wire::Health::default()
    });
    assert_eq!(value(&known, "writes"), "half within 250 µs, 99 of 100 within 12.5 ms (7 since the start)");
    assert_eq!(value(&known, "store"), "5.0 MiB");
    assert!(
        value(&known, "used in 24 hours, as agents report it")
            .starts_with("cost unknown; tokens read unknown")
    );
}

#[test]
fn a_page_of_tasks_has_the_counts_of_all_and_goes_on_with_its_filter() {
    let found = wire::TaskPage {
        live: 2_000,
        next: Some("live:3:17:t 1".into()),
        counts: wire::TaskCounts { running: 3, failed: 1, ..wire::TaskCounts::default() },
        ..wire::TaskPage::default()
    };
    let shown = view::task_page(&found, &Filter::parse("state:queued x"), "state:queued x", false);
    assert_eq!(titles(&shown), ["Not finished (2000)", "Finished last"]);
    assert_eq!(shown.next.as_deref(), Some("/tasks?after=live%3A3%3A17%3At%201&q=state%3Aqueued%20x"));
    let Block::Counts { facts, .. } = &shown.blocks[0] else { panic!("{shown:?}") };
    let running = facts.iter().find(|it| it.name == "running").unwrap();
    assert_eq!(running.value, Cell::Link { text: "3".into(), to: "/tasks?q=state:running".into() });
    let query = |typed: &str| Filter::parse(typed).task_query();
    let asked = query("state:run worker:Shell by:ann Release it");
    assert_eq!((asked.state.as_deref(), asked.worker.as_deref()), (Some("running"), Some("shell")));
    assert_eq!((asked.by.as_deref(), asked.text.as_deref()), (Some("ann"), Some("release it")));
    assert_eq!(query("state:bread").state.as_deref(), Some("bread"), "which is none of any task");
}
