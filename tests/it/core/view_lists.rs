//! Lists: what agents hold as a tree, how long tasks took, the hosts of agents, the text where nothing waits, and both sides of a meeting.

use provost::api::wire;
use provost::view::{self, Block, Cell, Filter, Here, NeedSources, Rows, Shown, Tone};
use serde_json::{Value, json};

fn lists(shown: &Shown) -> Vec<&Rows> {
    shown.blocks.iter().filter_map(|it| if let Block::List(rows) = it { Some(rows) } else { None }).collect()
}

const SINCE: &str = "2026-07-01T10:00:00.000Z";
const UNTIL: &str = "2026-07-01T11:00:00.000Z";

fn lock(symbol: &str, holder: &str, until: &str) -> Value {
    json!({
        "symbol": symbol, "asked": symbol, "holder": holder, "name": null, "fence": 7, "since": SINCE, "until": until,
        "reason": null, "pid": null, "task": null,
    })
}

fn waiter(symbol: &str, agent: &str) -> Value {
    json!({ "symbol": symbol, "agent": agent, "since": SINCE, "until": UNTIL })
}

/// Returns a row's place in words: the path to it, its name, and its state.
fn place(rows: &Rows, n: usize) -> (String, String, String) {
    let row = &rows.rows[n];
    let Cell::State(word) = &row.cells[0] else { panic!("{row:?}") };
    let Cell::Place { under, name, .. } = &row.cells[1] else { panic!("{row:?}") };
    (under.join(" "), name.clone(), word.word.clone())
}

#[test]
fn what_is_held_stands_by_folder_and_file_with_who_waits_for_it() {
    let locks: wire::Locks = serde_json::from_value(json!({
        "locks": [
            lock("src/b.py", "bob", UNTIL), lock("@db:test", "eve", UNTIL), lock("top.py:main", "ada", "2026-07-01T10:10:00.000Z"),
            lock("src/a.py:Session.renew", "ada", UNTIL),
        ],
        "waiting": [waiter("src/b.py:login", "one"), waiter("src/b.py", "two"), waiter("src/a.py:Session", "three")],
    }))
    .unwrap();
    let claims: Vec<wire::HeldFile> = serde_json::from_value(json!([
        { "file": "src/a.py", "how": "conflicted", "holder": "zoe", "since": SINCE, "fence": 1, "task": null },
    ]))
    .unwrap();
    let intent = |symbols: &[&str], files: &[&str]| -> wire::Intent {
        let files: Vec<Value> = files.iter().map(|it| json!({ "path": it, "spans": [] })).collect();
        serde_json::from_value(json!({
            "id": "int-1", "agent": "ida", "name": null, "description": "a \u{202e}new form", "files": files, "symbols": symbols,
            "status": "declared", "declared_at": SINCE, "updated_at": SINCE, "expires_at": UNTIL,
        }))
        .unwrap()
    };
    let intents = [intent(&["login"], &["src/b.py"])];
    let from = view::HeldSources { locks: &locks, claims: &claims, intents: &intents };
    let shown = |typed: &str| view::locks(from, &Filter::parse(typed), 100, "2026-07-01T10:30:00.000Z");
    let all = shown("");
    let held = lists(&all)[0];
    assert_eq!(held.title, "Held, by folder and file (6)");
    let places: Vec<_> = (0..held.rows.len()).map(|n| place(held, n)).collect();
    let of = |under: &str, name: &str, how: &str| (under.to_owned(), name.to_owned(), how.to_owned());
    assert_eq!(
        places,
        [
            of("./ top.py", "main", "lock, lapsed"),
            of("src/ a.py", "the whole file", "claim, conflicted"),
            of("src/ a.py", "Session.renew", "lock"),
            of("src/ b.py", "the whole file", "lock"),
            of("src/ b.py", "login", "intent"),
            of("resources", "@db:test", "lock"),
        ]
    );
    let waits: Vec<&Cell> = held.rows.iter().map(|it| &it.cells[4]).collect();
    assert_eq!(*waits[3], Cell::code("one, two"), "who waits for the file or for something in it, in line");
    assert_eq!(*waits[2], Cell::None, "one that waits for more than this is told by the list below");
    // What is in conflict is not released here, and an intent leads to its view.
    assert!(held.rows[1].commands.iter().all(|it| it.does == "Message"), "{:?}", held.rows[1].commands);
    assert_eq!(held.rows[4].to.as_deref(), Some("/intents"));
    assert_eq!(held.rows[4].cells[5], Cell::said("a \u{202e}new form"));
    for (typed, count) in [("src/a.py", 2), ("ida", 1), ("form", 1), ("db:test", 1), ("nothing-has-this", 0)]
    {
        let found = shown(typed);
        assert_eq!(lists(&found)[0].rows.len(), count, "{typed}");
    }
    let cut = view::locks(from, &Filter::default(), 2, SINCE);
    assert_eq!((lists(&cut)[0].rows.len(), lists(&cut)[0].more), (2, 4));
    // Who was invited learns no path.
    let invited = serde_json::to_string(&view::states("locks", all.clone())).unwrap();
    assert!(invited.contains("bob") && !invited.contains("b.py") && !invited.contains("form"), "{invited}");
}

fn task(more: &Value) -> wire::Task {
    let mut text = json!({
        "id": "t", "goal": "a goal", "worker": "shell", "worker_kind": "cli", "asked_by": "orch", "state": "running", "approval": null,
        "rule": "test.all", "working_dir": null, "created_at": SINCE, "updated_at": SINCE, "timeout_s": 60, "model": null,
        "model_used": null, "failure": null, "exit_code": null, "notes": [],
    });
    for (name, value) in more.as_object().into_iter().flatten() {
        text[name] = value.clone();
    }
    serde_json::from_value(text).unwrap()
}

#[test]
fn a_task_has_its_age_its_duration_and_how_many_files_it_has_changed() {
    let row = |more: Value| {
        let found = wire::TaskPage { tasks: vec![task(&more)], ..wire::TaskPage::default() };
        let shown = view::task_page(&found, &Filter::default(), "", false);
        let rows = lists(&shown).into_iter().find(|it| !it.rows.is_empty()).unwrap().clone();
        assert_eq!(rows.columns[5..], ["Asked", "Duration", "Files"]);
        let cells = &rows.rows[0].cells;
        [cells[5].clone(), cells[6].clone(), cells[7].clone()]
    };
    let age = Cell::time(Some(SINCE));
    assert_eq!(row(json!({ "state": "queued" })), [age.clone(), Cell::None, Cell::None]);
    let goes_on = Cell::Took { from: SINCE.into(), to: None };
    assert_eq!(row(json!({ "started_at": SINCE })), [age.clone(), goes_on, Cell::None]);
    let over = json!({
        "state": "completed", "started_at": SINCE, "ended_at": UNTIL,
        "changes": { "state": "kept", "files": 3, "next": [] },
    });
    let took = Cell::Took { from: SINCE.into(), to: Some(UNTIL.into()) };
    assert_eq!(row(over), [age, took, Cell::text("3")]);
}

#[test]
fn an_agent_has_its_host_where_the_repository_has_several() {
    let agent = |id: &str, host: Option<&str>| -> wire::Agent {
        serde_json::from_value(json!({
            "id": id, "version": null, "caps": [], "alive": true, "last_seen": SINCE, "registered_at": null, "host": host,
            "mail": 0, "asked": 0,
        }))
        .unwrap()
    };
    let shown = |known: &[wire::Agent], typed: &str| {
        let from = view::AgentSources { known: known.to_vec(), ..view::AgentSources::default() };
        view::agents(&from, &Filter::parse(typed), 100)
    };
    let one = shown(&[agent("ada", None), agent("bob", None)], "");
    assert_eq!(lists(&one)[0].columns, ["State", "Agent", "Because", "Holds", "Doors", "Seen"]);
    assert!(lists(&one)[0].rows.iter().all(|it| it.cells.len() == 6));

    let several = [agent("ada", Some("7f3a21c9")), agent("bob", Some("0b44de10")), agent("eve", None)];
    let all = shown(&several, "");
    let list = lists(&all)[0];
    assert_eq!(list.columns, ["State", "Agent", "Because", "Holds", "Doors", "Host", "Seen"]);
    let of_row = |row: &view::Row| (row.key.clone(), row.cells[5].clone(), row.cells[6].clone());
    let seen = || Cell::time(Some(SINCE));
    assert_eq!(
        list.rows.iter().map(of_row).collect::<Vec<_>>(),
        [
            ("ada".into(), Cell::code("7f3a21c9"), seen()),
            ("bob".into(), Cell::code("0b44de10"), seen()),
            ("eve".into(), Cell::None, seen()),
        ]
    );
    // A filter finds the agents of a host, and leaves the columns as they are.
    for (typed, key) in [("0B44", "bob"), ("eve", "eve")] {
        let found = shown(&several, typed);
        let list = lists(&found)[0];
        assert_eq!((list.columns.len(), list.rows.len(), list.rows[0].key.as_str()), (7, 1, key), "{typed}");
    }
    // Who was invited learns no host.
    let invited = serde_json::to_string(&view::states("agents", all)).unwrap();
    assert!(
        invited.contains("ada") && !invited.contains("7f3a21c9") && !invited.contains("Host"),
        "{invited}"
    );
}

#[test]
fn where_nothing_waits_the_last_decision_is_told_and_a_hub_tells_the_newest() {
    let calm = |at: Option<&str>| {
        view::needs(NeedSources { last_decision: at.map(Into::into), ..NeedSources::default() }, 0)
    };
    let last = |shown: &Shown| lists(shown)[0].empty.last.clone();
    assert_eq!(last(&calm(None)), None);
    assert_eq!(last(&calm(Some(SINCE))), Some(("Last decision".into(), SINCE.into())));
    let known = |id: &str, at| view::RepositoryOverview {
        id: id.into(),
        name: id.into(),
        root: format!("/{id}"),
        lead: view::Lead { base: format!("/r/{id}"), program: "provost".into() },
        state: view::State::Live,
        since: SINCE.into(),
        needs: Some((calm(at), SINCE.into())),
    };
    let all = view::needs_of_all(&[known("a", Some(SINCE)), known("b", Some(UNTIL)), known("c", None)]);
    assert_eq!(last(&all).map(|it| it.1).as_deref(), Some(UNTIL));
}

#[test]
fn a_message_to_all_names_each_and_one_signature_has_a_bound() {
    let agent = |id: &str, alive: bool| -> wire::Agent {
        serde_json::from_value(json!({
            "id": id, "version": null, "caps": [], "alive": alive, "last_seen": null, "registered_at": null, "mail": 0, "asked": 0,
        }))
        .unwrap()
    };
    let to = |agents: &[wire::Agent]| -> Vec<(String, Vec<String>)> {
        let Some(Block::Commands { commands, .. }) = view::to_all(agents) else { return Vec::new() };
        let of = |it: &view::Command| match &it.here {
            Some(Here::Verb { verb: "message-agents", arguments, asks_text: true, .. }) => {
                (it.does.clone(), serde_json::from_value(arguments["to"].clone()).unwrap())
            }
            other => panic!("{other:?}"),
        };
        commands.iter().map(of).collect()
    };
    assert_eq!(to(&[agent("ada", true), agent("gone", false)]), []);
    let some = [agent("zoe", true), agent("ada", true), agent("user:ann", true), agent("gone", false)];
    assert_eq!(to(&some), [("Message all 2".to_owned(), vec!["ada".to_owned(), "zoe".to_owned()])]);
    // At a terminal a loop does the same, in the repository that is meant.
    let Some(block) = view::to_all(&[agent("a b", true), agent("say\"it", true)]) else { panic!() };
    let lead = view::Lead { base: "/r/1f".into(), program: "provost -C /shop".into() };
    let led = lead.of(Shown::new("Messages", vec![block]));
    let Block::Commands { commands, .. } = &led.blocks[0] else { panic!("{led:?}") };
    let line = &commands[0].line;
    assert!(
        line.starts_with("for agent in 'a b' 'say\\\"it'; do provost -C /shop broker publish '{"),
        "{line}"
    );
    let many: Vec<wire::Agent> = (0..70).map(|n| agent(&format!("agent-{n:02}"), true)).collect();
    let parts = to(&many);
    assert_eq!((parts.len(), parts[0].1.len(), parts[1].1.len()), (2, wire::MESSAGED_AT_ONCE_MAX, 6));
    assert_eq!(parts[1].0, "Message agents 65 to 70 of 70");
}

#[test]
fn both_sides_of_a_meeting_are_shown_and_a_side_that_is_not_known_says_why() {
    let pair = wire::Overlap { file: "src/a b.py".into(), agents: ["ada".into(), "b/ob".into()] };
    let shown = view::intents(&[], &[pair], &[], &[], &Filter::default(), 10);
    let to = lists(&shown)[0].rows[0].to.clone();
    assert_eq!(to.as_deref(), Some("/both?file=src%2Fa%20b.py&one=ada&other=b%2Fob"));
    let diff = "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1,1 +1,1 @@\n-x = 1\n+x = \u{202e}2\n";
    let sides = [
        wire::ChangedSide {
            agent: "ada".into(),
            branch: Some("feat/a".into()),
            diff: Some(diff.into()),
            added: 1,
            removed: 1,
            why_not: None,
        },
        wire::ChangedSide {
            agent: "bob".into(),
            why_not: Some("the daemon knows no separate work tree of it".into()),
            ..wire::ChangedSide::default()
        },
    ];
    let both = view::both_changes("a.py", &sides);
    let Block::Diff { title, files } = &both.blocks[0] else { panic!("{both:?}") };
    assert_eq!((title.as_str(), files.len(), files[0].added), ("ada, on branch feat/a", 1, 1));
    assert!(files[0].lines.iter().any(|it| it.text == "x = \\u{202e}2"), "nothing hides: {files:?}");
    let Block::Notice(line) = &both.blocks[1] else { panic!("{both:?}") };
    assert!(line.text.contains("bob") && line.tone == Tone::Quiet, "{line:?}");
}
