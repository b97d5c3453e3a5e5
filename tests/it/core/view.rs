//! The views for people, as tables: the order of rows, the words of states, and that no row can be mistaken for a fact.

use provost::api::wire;
use provost::view::{self, AgentSources, Block, Cell, Filter, NeedSources, Rows, Shown, Tone};
use serde_json::{Value, json};

fn approval(id: u64, risk: &str, by: &str, expires_at: &str) -> wire::Approval {
    let text = json!({
        "id": id, "asked_by": "orch", "door": "devit", "verb": "Delegate", "task": "t1", "worker": "shell",
        "tool": "devit_delegate",
        "rule": "test.ask", "reason": "a test", "risk": risk, "working_dir": ".", "network": "none", "goal": "words",
        "by": by, "asked_at": "2026-07-01T10:00:00.000Z", "expires_at": expires_at, "digest": "sha256:1f9ac2aa",
    });
    serde_json::from_value(text).unwrap()
}

fn task(id: &str, state: &str, more: &Value) -> wire::Task {
    let mut text = json!({
        "id": id, "goal": "a goal", "worker": "shell", "worker_kind": "cli", "asked_by": "orch", "state": state, "approval": null,
        "rule": "test.all", "working_dir": null,
        "created_at": "2026-07-01T10:00:00.000Z", "updated_at": "2026-07-01T10:00:00.000Z",
        "timeout_s": 60, "model": null, "model_used": null, "failure": null, "exit_code": null, "notes": [],
    });
    for (name, value) in more.as_object().into_iter().flatten() {
        text[name] = value.clone();
    }
    serde_json::from_value(text).unwrap()
}

fn lists(shown: &Shown) -> Vec<&Rows> {
    shown.blocks.iter().filter_map(|it| if let Block::List(rows) = it { Some(rows) } else { None }).collect()
}

fn keys(rows: &Rows) -> Vec<&str> {
    rows.rows.iter().map(|it| it.key.as_str()).collect()
}

/// A moment of that day, in milliseconds.
fn noon() -> i64 {
    chrono::DateTime::parse_from_rfc3339("2026-07-01T12:00:00Z").unwrap().timestamp_millis()
}

#[test]
fn what_expires_soonest_comes_first_then_the_gravest() {
    let from = NeedSources {
        approvals: vec![
            approval(1, "low", "human", "2026-07-01T12:30:00.000Z"),
            approval(2, "low", "human", "2026-07-01T12:10:00.000Z"),
            approval(3, "high", "human, client:a", "2026-07-01T12:30:00.000Z"),
            approval(4, "high", "client:approver", "2026-07-01T12:01:00.000Z"),
        ],
        ..NeedSources::default()
    };
    let shown = view::needs(from, noon());
    let found = lists(&shown);
    assert_eq!(keys(found[0]), ["approval:2", "approval:3", "approval:1"]);
    // One that no person may answer is not counted, and says who may.
    assert_eq!(shown.needs, Some(3));
    let others = found.iter().find(|it| it.title == "Not yours to answer").unwrap();
    assert_eq!(keys(others), ["approval:4"]);
    assert!(
        others.rows[0]
            .commands
            .iter()
            .all(|it| it.not_yours.as_deref() == Some("only client:approver may answer"))
    );
    assert!(found[0].rows.iter().flat_map(|it| &it.commands).all(|it| it.not_yours.is_none()));
}

#[test]
fn a_command_is_offered_only_where_an_answer_at_a_terminal_counts() {
    let reasons = |by: &str| {
        let shown =
            view::approval(&approval(1, "high", by, "2026-07-01T12:30:00.000Z"), Vec::new(), Vec::new());
        let commands = shown.blocks.into_iter().find_map(|it| match it {
            Block::Commands { commands, .. } => Some(commands),
            _ => None,
        });
        let reasons = commands.unwrap().into_iter().map(|it| it.not_yours.is_some());
        reasons.collect::<Vec<bool>>()
    };
    assert_eq!(reasons("human"), [false, false]);
    assert_eq!(reasons("passkey-if-enrolled"), [false, false]);
    assert_eq!(reasons("passkey"), [true, true]);
    assert_eq!(reasons("client:approver"), [true, true]);
}

#[test]
fn nothing_that_waits_is_said_and_old_failures_are_not() {
    let old = json!({ "updated_at": "2026-06-29T10:00:00.000Z" });
    let odd = json!({ "updated_at": "yesterday" });
    let kept = json!({ "changes": { "state": "kept", "files": 2, "next": ["provost apply t4"] } });
    let from = NeedSources {
        finished: vec![
            task("t1", "failed", &json!({})),
            task("t2", "failed", &old),
            task("t3", "failed", &odd),
            task("t4", "completed", &kept),
            task("t5", "completed", &json!({ "tainted": true })),
            task("t6", "completed", &json!({})),
            task("t7", "failed", &json!({ "failure": { "approval_denied": { "approval": 1 } } })),
        ],
        ..NeedSources::default()
    };
    let shown = view::needs(from, noon());
    let found = lists(&shown);
    assert_eq!((shown.needs, found[0].rows.len()), (Some(0), 0));
    assert!(found[0].empty.says.contains("calm") && found[0].empty.command.is_some());
    let of = |title: &str| {
        found.iter().find(|it| it.title.starts_with(title)).map(|it| keys(it)).unwrap_or_default()
    };
    assert_eq!(of("Failed"), ["task:t1", "task:t3", "task:t5"]);
    assert_eq!(of("Changes"), ["task:t4"]);
    assert_eq!(of("Workers"), [""; 0], "a list of nothing is left out");
}

#[test]
fn an_agent_at_its_prompt_is_shown_for_a_day() {
    let row = |agent: &str, phase: Option<&str>, seen: &str| wire::RosterRow {
        agent: agent.into(),
        status: "waiting".into(),
        phase: phase.map(Into::into),
        cli: "claude".into(),
        last_seen: seen.into(),
    };
    let at_prompt = Some("stuck-on-prompt");
    let roster = vec![
        row("a", at_prompt, "2026-07-01T11:00:00.000Z"),
        row("b", at_prompt, "2026-06-29T11:00:00.000Z"),
        row("c", Some("testing"), "2026-07-01T11:00:00.000Z"),
    ];
    let shown = view::needs(NeedSources { roster, ..NeedSources::default() }, noon());
    let found = lists(&shown);
    let waiting = found.iter().find(|it| it.title.starts_with("Agents that wait for their person")).unwrap();
    assert_eq!(keys(waiting), ["prompt:a"]);
}

#[test]
fn tasks_stand_by_what_they_need_and_pass_a_filter_word_by_word() {
    let active = vec![
        task("q", "queued", &json!({})),
        task("r", "running", &json!({ "worker": "claude" })),
        task("w", "awaiting", &json!({ "goal": "Release it" })),
        task("r2", "running", &json!({})),
    ];
    let found = wire::Tasks {
        active,
        finished: vec![task("f", "failed", &json!({}))],
        truncated: true,
        unread: None,
        completed: 0,
        failed: 1,
    };
    let shown = |filter: &str, most| view::tasks(&found, &Filter::parse(filter), most, false);
    let all = shown("", 100);
    assert_eq!(keys(lists(&all)[0]), ["w", "r", "r2", "q"]);
    assert_eq!(all.next.as_deref(), Some("/tasks?before=f"));
    assert_eq!((keys(lists(&shown("", 2))[0]), lists(&shown("", 2))[0].more), (vec!["w", "r"], 2));
    for (filter, live, ended) in [
        ("state:running", &["r", "r2"][..], &[][..]),
        ("worker:claude", &["r"], &[]),
        ("by:orch state:failed", &[], &["f"]),
        ("release", &["w"], &[]),
        ("RELEASE it", &["w"], &[]),
        ("nothing", &[], &[]),
        ("other:field", &[], &[]),
    ] {
        let shown = shown(filter, 100);
        assert_eq!(
            (keys(lists(&shown)[0]), keys(lists(&shown)[1])),
            (live.to_vec(), ended.to_vec()),
            "{filter}"
        );
    }
}

#[test]
fn each_state_has_a_word_and_a_tone() {
    for (state, word, tone) in [
        ("awaiting", "waits for approval", Tone::Waiting),
        ("queued", "queued", Tone::Waiting),
        ("assigned", "assigned", Tone::Moving),
        ("running", "running", Tone::Moving),
        ("completed", "completed", Tone::Good),
        ("failed", "failed", Tone::Bad),
        ("cancelled", "cancelled", Tone::Quiet),
        ("of a later version", "of a later version", Tone::Quiet),
    ] {
        let shown = view::of_task(state);
        assert_eq!((shown.word.as_str(), shown.tone), (word, tone));
    }
}

#[test]
fn words_of_agents_are_marked_and_nothing_hides_in_them() {
    let hostile = "\u{1b}[2J\u{202e}reversed\nsecond line";
    let found = wire::Tasks {
        active: vec![task("t", "running", &json!({ "goal": hostile }))],
        finished: Vec::new(),
        truncated: false,
        unread: None,
        completed: 0,
        failed: 0,
    };
    let shown = view::tasks(&found, &Filter::default(), 10, false);
    let said = Cell::Said { text: "\\u{1b}[2J\\u{202e}reversed …".into() };
    assert_eq!(lists(&shown)[0].rows[0].cells[2], said);
    let whole = view::task(&found.active[0]);
    let words = whole
        .blocks
        .iter()
        .find_map(|it| if let Block::Words { text, .. } = it { Some(text.as_str()) } else { None });
    assert_eq!(words, Some("\\u{1b}[2J\\u{202e}reversed\nsecond line"));
}

#[test]
fn an_approval_shows_facts_first_and_words_last() {
    let facts = vec![
        ("risk", "low".into()),
        ("task", "t/1".into()),
        ("until", String::new()),
        ("digest", "sha256:aa".into()),
    ];
    let words = vec![
        ("in the agent's own words, unchecked:", "do it".into()),
        ("the difference that it makes:", "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n".into()),
        ("and the rest of its request:", "{}".into()),
    ];
    let shown = view::approval(&approval(7, "low", "client:a", "2026-07-01T12:30:00.000Z"), facts, words);
    let order: Vec<&str> = shown
        .blocks
        .iter()
        .map(|it| match it {
            Block::Notice(_) => "notice",
            Block::Facts { .. } => "facts",
            Block::Commands { .. } => "commands",
            Block::Words { .. } => "words",
            Block::Diff { .. } => "diff",
            _ => "other",
        })
        .collect();
    assert_eq!(order, ["notice", "facts", "commands", "words", "diff", "words"]);
    // What an apply says for machines stands below its difference, and is folded; other words never are.
    let folded: Vec<bool> = shown
        .blocks
        .iter()
        .filter_map(|it| if let Block::Words { folded, .. } = it { Some(*folded) } else { None })
        .collect();
    assert_eq!(folded, [false, true]);
    let Block::Facts { facts, .. } = &shown.blocks[1] else { panic!("{shown:?}") };
    assert_eq!(facts[1].value, Cell::Link { text: "t/1".into(), to: "/t/t%2F1".into() });
    // One that has gone says what became of it.
    let said = [("2026-07-01T12:00:00Z".into(), "user:ann".into(), "granted (proof: weak-human)".into())];
    let Block::Notice(line) = &view::gone(7, &said).blocks[0] else { panic!() };
    assert!(line.text.contains("granted") && line.text.contains("user:ann"), "{line:?}");
    let Block::Notice(line) = &view::gone(7, &[]).blocks[0] else { panic!() };
    assert!(line.text.contains("never was"), "{line:?}");
}

#[test]
fn a_difference_is_read_by_its_hunks_so_that_no_line_passes_for_a_file() {
    let text = "diff --git a/src/a.rs b/src/a.rs\nindex 1..2 100644\n--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1,3 +1,3 @@\n \
                same\n--- a/fake\n+++ b/fake\n last\n\
                diff --git a/new b/new\nnew file mode 100644\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+\u{1b}[31mred\n";
    let files = view::diff_files(text);
    let paths: Vec<&str> = files.iter().map(|it| it.path.as_str()).collect();
    assert_eq!(paths, ["src/a.rs", "new"]);
    assert_eq!((files[0].added, files[0].removed, files[1].added), (1, 1, 1));
    let shown: Vec<(&str, &str, Option<u64>, Option<u64>)> =
        files[0].lines.iter().skip(5).map(|it| (it.is, it.text.as_str(), it.before, it.after)).collect();
    assert_eq!(
        shown,
        [
            ("same", "same", Some(1), Some(1)),
            ("remove", "-- a/fake", Some(2), None),
            ("add", "++ b/fake", None, Some(2)),
            ("same", "last", Some(3), Some(3)),
        ]
    );
    assert_eq!(files[1].lines.last().unwrap().text, "\\u{1b}[31mred");
    // Without a line `diff --git`, as other tools write it.
    let plain = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-c\n+d\n";
    let paths: Vec<String> = view::diff_files(plain).into_iter().map(|it| it.path).collect();
    assert_eq!(paths, ["x", "y"]);
    assert!(view::diff_files("").is_empty());
}

#[test]
fn the_pieces_of_a_line_are_its_text_with_what_is_marked_in_it() {
    let marks = view::LineMarks(0, vec![0, 3, 3, 4, 2, 1, 8, 1, 2], Some((4, 6)));
    // A sign beyond the basic plane has two units.
    let text = "let \u{1f431} = 1;";
    let pieces = view::pieces(text, Some(&marks));
    let shown: Vec<(&str, Option<view::TokenKind>, bool)> =
        pieces.iter().map(|it| (it.text, it.kind, it.is_changed)).collect();
    assert_eq!(
        shown,
        [
            ("let", Some(view::TokenKind::Word), false),
            (" ", None, false),
            ("\u{1f431}", Some(view::TokenKind::Text), true),
            (" =", None, false),
            (" ", Some(view::TokenKind::Number), false),
            ("1;", None, false),
        ]
    );
    // Marks that make no sense lose nothing and repeat nothing.
    for colours in [vec![5, u32::MAX, 9], vec![3, 1, 0, 1, 1, 0], vec![1, 2], vec![u32::MAX, u32::MAX, 0]] {
        let odd = view::LineMarks(0, colours, Some((7, 2)));
        let text_of: String = view::pieces(text, Some(&odd)).iter().map(|it| it.text).collect();
        assert_eq!(text_of, text);
    }
    assert_eq!(view::pieces(text, None).len(), 1);
    assert!(view::pieces("", Some(&marks)).is_empty());
}

#[test]
fn events_are_newest_first_and_lead_to_what_they_are_about() {
    let event = |seq: u64, kind: &Value| json!({ "seq": seq, "at": "2026-07-01T10:00:00Z", "actor": "orch", "kind": kind });
    let found = [
        event(4, &json!({ "task_started": { "task": "a b" } })),
        event(5, &json!("agent_revived")),
        event(6, &json!({ "approval_expired": { "approval": 3 } })),
    ];
    let shown = view::events(&found, &Filter::default());
    assert_eq!(keys(lists(&shown)[0]), ["6", "5", "4"]);
    let to: Vec<Option<&str>> = lists(&shown)[0].rows.iter().map(|it| it.to.as_deref()).collect();
    assert_eq!(to, [Some("/e/6"), Some("/e/5"), Some("/e/4")]);
    let about: Vec<&Cell> = lists(&shown)[0].rows.iter().map(|it| &it.cells[5]).collect();
    let link = |text: &str, to: &str| Cell::Link { text: text.into(), to: to.into() };
    assert_eq!(about, [&link("approval 3", "/a/3"), &Cell::None, &link("task a b", "/t/a%20b")]);
    let one = view::event(&found[0]);
    assert_eq!((one.title.as_str(), one.next.as_deref()), ("Event 4", Some("/e/3")));
    let whole = one.blocks.iter().find_map(|it| match it {
        Block::Words { text, .. } => Some(text.as_str()),
        _ => None,
    });
    assert_eq!(serde_json::from_str::<Value>(whole.unwrap()).unwrap(), found[0]);
    assert_eq!(shown.next.as_deref(), Some("/e?before=4"));
    assert_eq!(keys(lists(&view::events(&found, &Filter::parse("revived")))[0]), ["5"]);
    assert_eq!(
        view::events(&[event(1, &json!("agent_revived"))], &Filter::default()).next,
        None,
        "the journal begins there"
    );
}

#[test]
fn a_silent_agent_that_holds_something_comes_first() {
    let agent = |id: &str, alive: bool| -> wire::Agent {
        let text = json!({
            "id": id, "version": null, "caps": [], "alive": alive, "last_seen": null, "registered_at": null, "mail": 0, "asked": 0,
        });
        serde_json::from_value(text).unwrap()
    };
    let lock = json!({
        "symbol": "src/a.py:f", "asked": "src/a.py:f", "holder": "silent", "name": null, "fence": 1,
        "since": "2026-07-01T10:00:00Z", "until": "2026-07-01T10:30:00Z", "reason": null, "pid": null, "task": null,
    });
    let (since, until) = ("2026-07-01T10:00:00Z", "2026-07-01T10:30:00Z");
    let waiter = json!({ "symbol": "src/a.py:f", "agent": "waits", "since": since, "until": until });
    let locks: wire::Locks = serde_json::from_value(json!({ "locks": [lock], "waiting": [waiter] })).unwrap();
    let known = [
        agent("gone", false),
        agent("there", true),
        agent("shell", true),
        agent("waits", true),
        agent("silent", false),
    ];
    let live = [task("t", "running", &json!({}))];
    let wait = |kind: &str, agent: &str, wanted: &str| wire::Wait {
        kind: kind.into(),
        agent: agent.into(),
        wanted: wanted.into(),
        by: vec!["silent".into()],
        ..wire::Wait::default()
    };
    let waits =
        vec![wait("task", "asks", "t-9"), wait("answer", "asks", "5"), wait("lock", "waits", "src/a.py:f")];
    let mut known = known.to_vec();
    known.push(agent("asks", true));
    let from = AgentSources {
        known,
        locks: Some(locks.clone()),
        live: live.to_vec(),
        waits,
        ..AgentSources::default()
    };
    let shown = view::agents(&from, &Filter::default(), 100);
    let rows = lists(&shown)[0];
    assert_eq!(keys(rows), ["silent", "waits", "asks", "shell", "there", "gone"]);
    let says = |n: usize| {
        let text = |it: &Cell| match it {
            Cell::State(word) => word.word.clone(),
            Cell::Code { text } | Cell::Text { text } => text.clone(),
            _ => String::new(),
        };
        (text(&rows.rows[n].cells[0]), text(&rows.rows[n].cells[2]))
    };
    assert_eq!(says(1), ("waits for a lock".into(), "src/a.py:f behind silent".into()));
    assert_eq!(says(2), ("waits for an answer".into(), "question 5".into()));
    assert_eq!(says(4).0, "idle");
    assert_eq!(rows.rows[0].commands[0].line, "provost unlock src/a.py:f --force");
    // A lock whose time is over has lapsed; the other view says so, too.
    let held = view::HeldSources { locks: &locks, claims: &[], intents: &[] };
    let lapsed = view::locks(held, &Filter::default(), 100, "2026-07-01T10:30:00Z");
    let Cell::State(word) = &lists(&lapsed)[0].rows[0].cells[0] else { panic!() };
    assert_eq!((word.word.as_str(), word.tone), ("lock, lapsed", Tone::Bad));
}
