//! The facts beside an approval or a task, as tables: failures in words, earlier decisions, costs, and paths that look like others.

use provost::api::wire;
use provost::view::{self, Block, Cell, Earlier, Rows, Tone};
use serde_json::{Value, json};

fn task(failure: &Value) -> wire::Task {
    let text = json!({
        "id": "t1", "goal": "a goal", "worker": "shell", "worker_kind": "cli", "asked_by": "orch", "state": "failed",
        "approval": null, "rule": "test.all", "working_dir": null, "created_at": "2026-07-01T10:00:00.000Z",
        "updated_at": "2026-07-01T10:00:00.000Z", "timeout_s": 60, "model": null, "model_used": null, "failure": failure,
        "exit_code": null, "notes": [],
    });
    serde_json::from_value(text).unwrap()
}

/// The sentence that says why a task has failed.
fn why(failure: &Value) -> String {
    let shown = view::task(&task(failure));
    let notice = shown.blocks.iter().find_map(|it| match it {
        Block::Notice(line) if line.tone == Tone::Bad => Some(line.text.clone()),
        _ => None,
    });
    notice.unwrap_or_default()
}

#[test]
fn a_failure_is_told_in_a_sentence_and_hides_nothing() {
    let cases = [
        (
            json!({ "policy_denied": { "rule": "r.a", "reason": "not today.", "tool": "t" } }),
            "Rule r.a has denied it: not today.",
        ),
        (json!({ "policy_denied": { "rule": "r.a", "reason": "", "tool": "t" } }), "Rule r.a has denied it."),
        (
            json!({ "approval_denied": { "approval": 7, "approver": "user:ann", "note": "look at ../x", "tool": "t" } }),
            "user:ann has denied approval 7: look at ../x.",
        ),
        (
            json!({ "approval_denied": { "approval": 7, "approver": "a", "note": null, "tool": "t" } }),
            "a has denied approval 7.",
        ),
        (
            json!({ "approval_timeout": { "approval": 7, "tool": "t" } }),
            "Approval 7 was not answered in time, which denies it.",
        ),
        (json!({ "sandbox": { "why": "it is a link" } }), "The directory cannot be worked in: it is a link."),
        (
            json!({ "lease_timeout": { "timeout_s": 30, "worker": "w" } }),
            "Worker w gave no sign of life for 30 s.",
        ),
        (
            json!({ "worker_away": { "kept_s": 600, "worker": "w" } }),
            "Worker w did not come for it within 600 s.",
        ),
        (json!({ "run_timeout": { "timeout_s": 60 } }), "It ran longer than the 60 s that it had."),
        (
            json!("lost"),
            "Its run was lost: the daemon ended, or was cut off from its database, so that its end is not known.",
        ),
        (
            json!({ "jail_refused": { "why": "no namespaces" } }),
            "The jail could not be set up: no namespaces.",
        ),
        (json!({ "worker_failed": { "why": "exit code 3" } }), "The worker ended badly: exit code 3."),
        (
            json!({ "worker_failed": { "why": "\u{1b}[2J\u{202e}x" } }),
            "The worker ended badly: \\u{1b}[2J\\u{202e}x.",
        ),
        (json!({ "of_later": { "wait_s": 3, "at": "dawn" } }), "It failed: of later, at dawn, wait s 3."),
        (json!("of_later"), "It failed: of later."),
        (json!({}), ""),
        (Value::Null, ""),
    ];
    for (failure, said) in cases {
        assert_eq!(why(&failure), said, "{failure}");
    }
}

#[test]
fn each_failure_of_the_core_has_a_sentence_of_its_own() {
    use provost::base::{AgentId, ApprovalId, RuleId};
    use provost::domain::Failure;
    let (rule, agent) = (RuleId::parse("r.a").unwrap(), || AgentId::parse("w").unwrap());
    let all = [
        Failure::PolicyDenied { rule, reason: "x".into(), tool: "t".into() },
        Failure::ApprovalDenied { approval: ApprovalId(1), approver: agent(), note: None, tool: "t".into() },
        Failure::ApprovalTimeout { approval: ApprovalId(1), tool: "t".into() },
        Failure::Sandbox { why: "x".into() },
        Failure::LeaseTimeout { timeout_s: 1, worker: agent() },
        Failure::WorkerAway { kept_s: 1, worker: agent() },
        Failure::RunTimeout { timeout_s: 1 },
        Failure::Lost,
        Failure::JailRefused { why: "x".into() },
        Failure::NotBegun { task: provost::base::TaskId::parse("t").unwrap(), why: "x".into() },
        Failure::WorkerFailed { why: "x".into() },
    ];
    for failure in all {
        let said = why(&serde_json::to_value(&failure).unwrap());
        assert!(
            said.ends_with('.') && !said.starts_with("It failed") && !said.contains("unknown"),
            "{failure:?}: {said}"
        );
        assert!(!said.contains(['{', '}', '"', '_']), "{failure:?}: {said}");
    }
}

fn rows(block: &Block) -> &Rows {
    let Block::List(rows) = block else { panic!("{block:?}") };
    rows
}

fn text(cell: &Cell) -> String {
    match cell {
        Cell::Text { text } | Cell::Said { text } | Cell::Code { text } | Cell::Share { text, .. } => {
            text.clone()
        }
        Cell::State(word) => word.word.clone(),
        _ => String::new(),
    }
}

#[test]
fn costs_have_a_bar_by_the_largest_and_unknown_is_not_zero() {
    let row = |key: &str, usd: Option<f64>, tokens: Option<u64>| wire::CostRow {
        key: key.into(),
        worker: None,
        runs: 2,
        used: wire::Used { cost_usd: usd, tokens_output: tokens, ..wire::Used::default() },
        counted: None,
    };
    let sums = |by: &str, found: Vec<wire::CostRow>| wire::Costs {
        by: by.into(),
        rows: found,
        total: row("", None, None),
        truncated: false,
        budgets: Vec::new(),
    };
    let agents = sums(
        "agent",
        vec![
            row("ada", Some(4.0), Some(100)),
            row("eve", Some(1.0), None),
            row("bob", None, Some(u64::MAX)),
            row("odd", Some(f64::NAN), Some(0)),
        ],
    );
    let days = sums("day", (0..40).map(|n| row(&format!("2026-07-{n:02}"), Some(1.0), None)).collect());
    let shown = view::costs(&agents, &days);
    let (by_agent, by_day) = (rows(&shown[0]), rows(&shown[1]));
    let share = |row: usize, column: usize| match &by_agent.rows[row].cells[column] {
        Cell::Share { of_thousand, .. } => Some(*of_thousand),
        _ => None,
    };
    assert_eq!([share(0, 1), share(1, 1), share(2, 1), share(3, 1)], [Some(1_000), Some(250), None, None]);
    assert_eq!([share(0, 2), share(1, 2), share(2, 2), share(3, 2)], [Some(0), None, Some(1_000), Some(0)]);
    assert_eq!(text(&by_agent.rows[0].cells[1]), "4.00 USD");
    assert_eq!(
        (text(&by_agent.rows[2].cells[1]).as_str(), text(&by_agent.rows[1].cells[2]).as_str()),
        ("unknown", "unknown")
    );
    assert_eq!((by_day.rows.len(), by_day.more), (14, 26), "a bounded table says how many are left out");
}

#[test]
fn what_the_proxy_has_counted_stands_beside_what_agents_report() {
    let counted = |more: Value| {
        let mut text = json!({
            "calls": 3, "tokens_input": 100, "tokens_output": 20, "tokens_reasoning": 5, "tokens_cache_read": 0,
            "tokens_cache_write": 0, "models": ["a-model"],
        });
        text.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        Some(serde_json::from_value(text).unwrap())
    };
    let row = |key: &str, tokens: Option<u64>, counted: Option<wire::Counted>| wire::CostRow {
        key: key.into(),
        worker: None,
        runs: 1,
        used: wire::Used { tokens_input: tokens, ..wire::Used::default() },
        counted,
    };
    let found = vec![
        row("ada", None, counted(json!({ "cost_usd": 1.5 }))),
        row("bob", None, counted(json!({ "unpriced": ["a-model"] }))),
        row("eve", Some(7), counted(json!({ "cost_usd": 2.0 }))),
        row("odd", None, None),
    ];
    let sums = |rows: Vec<wire::CostRow>| wire::Costs {
        by: "agent".into(),
        rows,
        total: row("", None, None),
        truncated: false,
        budgets: Vec::new(),
    };
    let shown = view::costs(&sums(found), &sums(Vec::new()));
    let list = rows(&shown[0]);
    assert_eq!(list.columns.last(), Some(&"Counted by the proxy"));
    let column: Vec<String> = list.rows.iter().map(|it| text(it.cells.last().unwrap())).collect();
    assert_eq!(column[0], "120 tokens in 3 calls, 1.50 USD");
    assert_eq!(column[1], "120 tokens in 3 calls, not all with a price");
    assert!(column[2].starts_with("120 tokens in 3 calls, ") && column[2].contains("; "), "{}", column[2]);
    assert_eq!(column[3], "nothing");
}

#[test]
fn earlier_decisions_say_who_what_and_why() {
    let now: wire::Approval = serde_json::from_value(json!({
        "id": 9, "asked_by": "orch", "door": "devit", "verb": "Delegate", "task": "t9", "worker": "shell", "tool": "devit_delegate",
        "rule": "test.ask", "reason": "a test", "risk": "low", "working_dir": ".", "network": "none", "goal": "words",
        "by": "human", "asked_at": "2026-07-01T10:00:00.000Z", "expires_at": "2026-07-01T11:00:00.000Z", "digest": "sha256:1f",
    }))
    .unwrap();
    let one = |approval, what: Option<&str>, by: Option<&str>, task: Option<wire::Task>| Earlier {
        approval,
        asked_at: "2026-07-01T09:00:00.000Z".into(),
        asked_by: "orch".into(),
        what: what.map(Into::into),
        by: by.map(Into::into),
        task,
    };
    let denied = task(
        &json!({ "approval_denied": { "approval": 2, "approver": "user:ann", "note": "no", "tool": "t" } }),
    );
    let late = task(&json!({ "approval_timeout": { "approval": 3, "tool": "t" } }));
    let found = [
        one(1, Some("granted (proof: passkey, phone)"), Some("user:ann"), None),
        one(2, None, None, Some(denied)),
        one(3, None, None, Some(late)),
        one(4, None, None, None),
    ];
    let block = view::earlier(&now, &found);
    let rows = rows(&block);
    assert_eq!(rows.title, "Decided before by rule test.ask and worker shell");
    let column = |n: usize| rows.rows.iter().map(|it| text(&it.cells[n])).collect::<Vec<_>>();
    assert_eq!(
        column(0),
        ["granted (proof: passkey, phone)", "denied", "expired, which denies it", "unknown"]
    );
    assert_eq!(column(1), ["user:ann", "", "", ""]);
    assert_eq!(column(4)[1], "user:ann has denied approval 2: no.");
    let tones: Vec<Tone> = rows
        .rows
        .iter()
        .map(|it| if let Cell::State(word) = &it.cells[0] { word.tone } else { Tone::Moving })
        .collect();
    assert_eq!(tones, [Tone::Good, Tone::Bad, Tone::Bad, Tone::Quiet]);
}

#[test]
fn a_path_that_looks_like_another_says_so() {
    let path = |name: &str| {
        let text = format!("--- a/src/{name}\n+++ b/src/{name}\n@@ -1 +1 @@\n-a\n+b\n");
        view::diff_files(&text)[0].path.clone()
    };
    assert_eq!(path("pay.py"), "src/pay.py");
    assert_eq!(path("zählung.py"), "src/zählung.py");
    assert_eq!(path("p\u{430}y.py"), "src/p\u{430}y.py (its U+0430 looks like 'a')");
    assert_eq!(path("a\u{202e}b.py"), "src/a\\u{202e}b.py");
}
