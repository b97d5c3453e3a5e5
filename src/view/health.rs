//! The daemon's report about itself.

use provost_api::wire::{About, DoorAt, WorkerAt};
use provost_base::{shell_word, visible};

use super::block::Empty;
use super::{Block, Cell, Command, Fact, Here, Line, Row, Rows, Shown, Tone, Word};

/// Shows the daemon's report about itself.
pub fn health(about: &About) -> Shown {
    let mut blocks: Vec<Block> = about
        .broken
        .iter()
        .chain(&about.notes)
        .chain(&about.moved)
        .map(|note| Block::Notice(Line { text: visible(note), tone: Tone::Bad }))
        .collect();
    blocks.push(Block::Facts { title: "The daemon".into(), facts: facts(about) });
    blocks.push(list(
        "Workers",
        &["State", "Worker", "Kind", "Why"],
        about.workers.iter().map(worker).collect(),
    ));
    blocks.push(list("Doors", &["Door", "Address"], about.doors.iter().map(door).collect()));
    blocks.push(Block::Commands {
        title: "At a terminal".into(),
        commands: vec![
            Command::new("Look closer", "provost doctor"),
            Command::new("Load the configuration again", "provost daemon reload"),
            Command::new("Stop", "provost down"),
        ],
    });
    let mut shown = Shown::new("Health", blocks);
    shown.state = Some(match &about.broken {
        Some(_) => Word::new("of no use at present", Tone::Bad),
        None => Word::new("at work", Tone::Good),
    });
    shown
}

fn facts(about: &About) -> Vec<Fact> {
    vec![
        Fact::text("repository", &about.root),
        Fact::text("version", &about.version),
        Fact::text("process", &about.pid.to_string()),
        Fact::new("started", Cell::time(Some(&about.started_at))),
        Fact::text("tasks not finished", &about.active.to_string()),
        Fact::text("approvals that wait", &about.approvals.to_string()),
        Fact::text("completed and cancelled", &about.completed.to_string()),
        Fact::text("failed", &about.failed.to_string()),
        Fact::text("rules", &about.policy_source),
        Fact::new("digest of the rules", Cell::Code { text: about.policy.clone() }),
        Fact::text("events in the journal", &about.journal_seq.to_string()),
        Fact::new("anchor of the journal", Cell::Code { text: about.journal_anchor.clone() }),
        Fact::text("state", &about.state_dir),
    ]
}

fn worker(it: &WorkerAt) -> Row {
    let state = match (&it.broken, &it.switched) {
        (Some(_), _) => Word::new("cannot be used", Tone::Bad),
        (None, Some(switched)) => Word::new(visible(switched), Tone::Waiting),
        (None, None) => Word::new("ready", Tone::Good),
    };
    let kind = match it.hosts.is_empty() {
        true => it.kind.clone(),
        false => format!("{}, also on host {}", it.kind, it.hosts.join(", ")),
    };
    Row {
        key: it.id.clone(),
        to: None,
        cells: vec![
            Cell::State(state),
            Cell::code(&it.id),
            Cell::text(&kind),
            Cell::maybe(it.broken.as_deref()),
        ],
        commands: vec![switch(it)],
    }
}

/// Returns the command that switches a worker: off where it takes work, on where it does not.
fn switch(it: &WorkerAt) -> Command {
    let (does, word, on) = match it.switched {
        Some(_) => ("Resume", "resume", true),
        None => ("Pause", "pause", false),
    };
    let line = format!("provost worker {word} {}", shell_word(&it.id));
    let arguments = serde_json::json!({ "worker": it.id, "on": on });
    Command::new(does, line).or_here(Here::verb("switch-worker", arguments))
}

fn door(it: &DoorAt) -> Row {
    let cells = vec![Cell::code(&it.door), Cell::code(&it.address)];
    Row { key: format!("{} {}", it.door, it.address), to: None, cells, commands: Vec::new() }
}

fn list(title: &str, columns: &[&'static str], rows: Vec<Row>) -> Block {
    let empty = Empty::new("None.", None);
    Block::List(Rows { title: title.into(), columns: columns.to_vec(), rows, more: 0, empty })
}
