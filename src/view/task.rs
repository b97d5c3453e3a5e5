//! One task: its state, its limits, its worker's output, and its changes.

use provost_api::wire::{Previewed, ScanReport, Task, Used};
use provost_base::{task_command, visible};
use serde_json::Value;

use super::block::Empty;
use super::word::is_a_person;
use super::{
    Block, Cell, Command, DiffFile, Fact, Here, Line, Row, Rows, Shown, Tone, Word, diff_files, of_task,
};

/// The path of the view about a task.
pub(crate) fn path(id: &str) -> String {
    format!("/t/{}", super::encoded(id))
}

fn is_over(state: &str) -> bool {
    matches!(state, "completed" | "failed" | "cancelled")
}

/// Returns the commands about a task, for a terminal.
pub(crate) fn commands(it: &Task) -> Vec<Command> {
    let command =
        |does: &str, words: &str, flags: &str| Command::new(does, task_command(words, &it.id, flags));
    if !is_over(&it.state) {
        let answer = it.approval.map(|n| Command::new("Approve", format!("provost approve {n}")));
        let here = Here::verb("cancel-task", serde_json::json!({ "task": it.id }));
        let cancel = command("Cancel", "task cancel", "").or_here(here);
        let follow = [command("Follow", "task show", "--wait"), cancel];
        let hears = it.session.as_ref().is_some_and(|it| !it.closed);
        let say = hears.then(|| command("Say", "say", "\"…\"").or_here(Here::say(&it.id)));
        return answer.into_iter().chain(say).chain(follow).collect();
    }
    let changes = it.changes.as_ref().filter(|it| it.wait());
    let of = || serde_json::json!({ "task": it.id });
    match changes {
        Some(_) => vec![
            command("Show changes", "task diff", ""),
            command("Take in", "apply", "").or_here(Here::Write { verb: "apply-task", arguments: of() }),
            command("Discard", "discard", "").or_here(Here::verb("discard-task", of())),
        ],
        None => vec![command("Show", "task show", "")],
    }
}

/// Shows a whole task.
pub fn task(it: &Task) -> Shown {
    let state = of_task(&it.state);
    let mut blocks: Vec<Block> = Vec::new();
    blocks.extend(it.handoff.as_ref().filter(|_| it.tainted == Some(true)).map(|_| {
        let text = "This run has left something that runs later. Look at it before you take anything in.";
        Block::Notice(Line { text: text.into(), tone: Tone::Bad })
    }));
    blocks.extend(failure(it).map(|text| Block::Notice(Line { text, tone: Tone::Bad })));
    blocks.push(Block::Words {
        title: "The task, in the asker's words".into(),
        text: visible(&it.goal),
        folded: false,
        by_person: is_a_person(&it.asked_by),
    });
    blocks.push(Block::Facts { title: "What the daemon knows".into(), facts: facts(it) });
    blocks.push(Block::Commands { title: "At a terminal".into(), commands: commands(it) });
    blocks.extend(it.handoff.as_ref().map(left));
    let changes = it.changes.as_ref().filter(|it| it.are_there());
    blocks.extend(changes.map(|_| Block::Changes { task: it.id.clone() }));
    blocks.push(Block::Log { task: it.id.clone(), live: !is_over(&it.state) });
    blocks.extend((!it.said.is_empty()).then(|| said(it)));
    blocks.push(timeline(it));
    let mut shown = Shown::new(format!("Task {}", visible(&it.id)), blocks);
    shown.state = Some(match it.tainted {
        Some(true) => Word::new(format!("{}, tainted", state.word), Tone::Bad),
        _ => state,
    });
    shown
}

/// Says in a sentence why it failed. For a reason that this version does not know, the sentence repeats the daemon's words.
pub fn failure(it: &Task) -> Option<String> {
    let failure = it.failure.as_ref()?;
    let (kind, about) = match failure {
        Value::String(kind) => (kind.as_str(), &Value::Null),
        Value::Object(members) => members.iter().next().map(|(kind, about)| (kind.as_str(), about))?,
        _ => ("", failure),
    };
    // Some reasons end with a full stop.
    let text =
        |name: &str| about.get(name)?.as_str().map(|it| it.trim_end_matches('.')).filter(|it| !it.is_empty());
    let number =
        |name: &str| about.get(name).and_then(Value::as_u64).map(|it| it.to_string()).unwrap_or_default();
    let named = |name: &str| text(name).unwrap_or("unknown");
    let because = |name: &str| text(name).map(|it| format!(": {it}")).unwrap_or_default();
    let said = match kind {
        "policy_denied" => format!("Rule {} has denied it{}.", named("rule"), because("reason")),
        "approval_denied" => {
            format!("{} has denied approval {}{}.", named("approver"), number("approval"), because("note"))
        }
        "approval_timeout" => {
            format!("Approval {} was not answered in time, which denies it.", number("approval"))
        }
        "sandbox" => format!("The directory cannot be worked in{}.", because("why")),
        "lease_timeout" => {
            format!("Worker {} gave no sign of life for {} s.", named("worker"), number("timeout_s"))
        }
        "worker_away" => {
            format!("Worker {} did not come for it within {} s.", named("worker"), number("kept_s"))
        }
        "run_timeout" => format!("It ran longer than the {} s that it had.", number("timeout_s")),
        "lost" => "Its run was lost: the daemon ended, or was cut off from its database, so that its end is not known.".into(),
        "jail_refused" => format!("The jail could not be set up{}.", because("why")),
        "not_begun" | "no_host" => format!("It did not begin{}.", because("why")),
        "worker_failed" => format!("The worker ended badly{}.", because("why")),
        // A kind that only a later version knows.
        kind => format!("It failed: {}.", in_its_own_words(kind, about)),
    };
    Some(visible(&said))
}

/// Writes names and values one after the other.
fn in_its_own_words(kind: &str, about: &Value) -> String {
    let value = |it: &Value| it.as_str().map_or_else(|| it.to_string(), str::to_owned);
    let members = about.as_object().into_iter().flatten();
    let members = members.map(|(name, it)| format!("{} {}", name.replace('_', " "), value(it)));
    let words: Vec<String> =
        Some(kind.replace('_', " ")).filter(|it| !it.is_empty()).into_iter().chain(members).collect();
    words.join(", ")
}

fn facts(it: &Task) -> Vec<Fact> {
    let some = |name: &str, text: Option<&str>| text.map(|text| Fact::text(name, text));
    let mut facts = vec![
        Fact::new("state", Cell::State(of_task(&it.state))),
        Fact::new("worker", Cell::code(&it.worker)),
        Fact::new("asked by", Cell::code(&it.asked_by)),
        Fact::text("rule", &it.rule),
    ];
    facts.extend(
        it.approval
            .map(|n| Fact::new("waits for", Cell::link(&format!("approval {n}"), super::approval::path(n)))),
    );
    facts.extend(it.waits_for.iter().map(|need| {
        let holder = need.holder.as_ref().map(|it| format!(", held by {it}")).unwrap_or_default();
        Fact::text("waits for", &format!("{}{holder}", need.resource))
    }));
    let waits = it.waits_for_tasks.iter();
    facts.extend(
        waits.map(|id| Fact::new("waits for", Cell::link(&format!("task {}", visible(id)), path(id)))),
    );
    facts.extend(it.place.map(|place| Fact::text("place in line", &place.to_string())));
    facts.extend(it.attempt.map(|number| Fact::text("attempt", &number.to_string())));
    facts.extend(it.again_at.as_deref().map(|at| Fact::new("begins again", Cell::time(Some(at)))));
    facts.extend(some("priority", it.priority.as_deref()));
    facts.extend(some("pool", it.pool.as_deref()));
    facts.extend(some("on a host with", it.on.as_deref()));
    facts.extend(some("host", it.host.as_deref()));
    facts.extend(it.left_by.iter().map(|it| Fact::text("not taken by", it)));
    facts.extend(some("directory", it.working_dir.as_deref()));
    facts.push(Fact::new("accepted", Cell::time(Some(&it.created_at))));
    facts.push(Fact::new("changed", Cell::time(Some(&it.updated_at))));
    facts.push(Fact::text("may run", &format!("{} s", it.timeout_s)));
    // The code is -1 where the end of a run is not known.
    let code = it.exit_code.filter(|code| *code != -1);
    facts.extend(code.map(|code| Fact::text("exit code", &code.to_string())));
    facts.extend(some("model", it.model_used.as_deref().or(it.model.as_deref())));
    facts.extend(it.usage.as_ref().and_then(Used::in_words).map(|used| Fact::text("used", &used)));
    facts.extend(it.counted.as_ref().map(|it| Fact::text("counted", &it.in_words())));
    let differs = it.counted.as_ref().zip(it.usage.as_ref()).and_then(|(it, used)| it.difference(used));
    facts.extend(differs.map(|differs| Fact::text("differs", &differs)));
    facts.extend(it.changes.as_ref().map(|it| Fact::text("changes", &it.in_words())));
    facts.extend((!it.beside.is_empty()).then(|| Fact::text("ran beside", &it.beside.join(", "))));
    facts
}

/// Lists the files that a run has left and that run later.
fn left(report: &ScanReport) -> Block {
    let row = |(n, it): (usize, &provost_api::wire::Finding)| Row {
        key: n.to_string(),
        to: None,
        cells: vec![
            Cell::State(Word::new(it.kind.clone(), Tone::Bad)),
            Cell::code(&it.path),
            Cell::text(&it.change),
        ],
        commands: Vec::new(),
    };
    Block::List(Rows {
        title: "Left behind, and runs later".into(),
        columns: vec!["Kind", "File", "Change"],
        rows: report.findings.iter().enumerate().map(row).collect(),
        more: report.more as usize,
        empty: Empty::new(report.unknown.as_deref().unwrap_or("Nothing."), None),
    })
}

/// Lists the words that were said to the task's agent.
fn said(it: &Task) -> Block {
    let row = |it: &provost_api::wire::Saying| Row {
        key: it.number.to_string(),
        to: None,
        cells: vec![
            Cell::time(Some(&it.at)),
            Cell::code(&it.by),
            Cell::text(&it.state.replace('_', " ")),
            Cell::Said { text: visible(&it.text) },
        ],
        commands: Vec::new(),
    };
    Block::List(Rows {
        title: "Said to its agent".into(),
        columns: vec!["When", "By", "State", "Words"],
        rows: it.said.iter().map(row).collect(),
        more: 0,
        empty: Empty::new("Nothing was said to it.", None),
    })
}

fn timeline(it: &Task) -> Block {
    let row = |(n, note): (usize, &provost_api::wire::Note)| Row {
        key: n.to_string(),
        to: None,
        cells: vec![
            Cell::time(Some(&note.at)),
            Cell::code(&note.from),
            Cell::code(&note.status),
            Cell::Said { text: visible(&note.summary) },
        ],
        commands: Vec::new(),
    };
    Block::List(Rows {
        title: "Timeline".into(),
        columns: vec!["When", "From", "State", "Said"],
        rows: it.notes.iter().enumerate().map(row).collect(),
        more: 0,
        empty: Empty::new("Nothing was reported yet.", None),
    })
}

/// Shows the changes of a task as the difference that an apply of them would make.
pub fn changes(found: &[Previewed]) -> Block {
    let file = |it: &Previewed| {
        let read = it.diff.as_deref().map(diff_files).unwrap_or_default();
        let lines = read.into_iter().next();
        DiffFile {
            path: format!(
                "{}{}{}",
                visible(&it.path),
                if it.runs_later { " (runs later)" } else { "" },
                why(it)
            ),
            added: usize::try_from(it.added).unwrap_or(usize::MAX),
            removed: usize::try_from(it.removed).unwrap_or(usize::MAX),
            more: lines.as_ref().map_or(0, |it| it.more),
            lines: lines.map(|it| it.lines).unwrap_or_default(),
            marks: Vec::new(),
        }
    };
    Block::Diff { title: "Changes".into(), files: found.iter().map(file).collect() }
}

fn why(it: &Previewed) -> String {
    it.reason.as_ref().map(|why| format!(": {}", visible(why))).unwrap_or_default()
}
