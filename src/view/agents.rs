//! Agents: what each does at the moment, with the evidence for it.

use std::collections::BTreeMap;

use provost_api::wire::{Agent, Lock, Locks, Task};

use super::block::Empty;
use super::{Block, Cell, Command, Filter, Here, Row, Rows, Shown, Tone, Word};

/// What is known of what an agent does.
#[derive(Default)]
struct Doing<'a> {
    runs: Option<&'a Task>,
    asked: Option<&'a Task>,
    waits: Option<&'a str>,
    holds: Vec<&'a Lock>,
}

/// The agents that pass a filter, `most` at the most. An agent's state is derived, and its reason stands beside it.
pub fn agents(known: &[Agent], locks: &Locks, live: &[Task], filter: &Filter, most: usize) -> Shown {
    let mut doing: BTreeMap<&str, Doing<'_>> = BTreeMap::new();
    for task in live {
        match task.state.as_str() {
            "running" | "assigned" => doing.entry(&task.worker).or_default().runs = Some(task),
            _ => {
                doing.entry(&task.asked_by).or_default().asked.get_or_insert(task);
            }
        }
    }
    for waiter in &locks.waiting {
        doing.entry(&waiter.agent).or_default().waits = Some(&waiter.symbol);
    }
    for lock in &locks.locks {
        doing.entry(&lock.holder).or_default().holds.push(lock);
    }
    let nothing = Doing::default();
    let mut rows: Vec<(u8, Row)> = known
        .iter()
        .filter(|it| filter.takes(&[&it.id, it.name.as_deref().unwrap_or_default(), &it.doors.join(" ")]))
        .map(|agent| row(agent, doing.get(agent.id.as_str()).unwrap_or(&nothing)))
        .collect();
    rows.sort_by_key(|(rank, _)| *rank);
    let more = rows.len().saturating_sub(most);
    let rows = Rows {
        title: format!("Agents ({})", rows.len()),
        columns: vec!["State", "Agent", "Because", "Holds", "Doors", "Seen"],
        rows: rows.into_iter().take(most).map(|(_, row)| row).collect(),
        more,
        empty: match filter.is_empty() {
            true => Empty::new("No agent has come by.", Some("provost hook install claude")),
            false => Empty::new("No agent passes the filter.", None),
        },
    };
    Shown::new("Agents", vec![Block::List(rows)])
}

fn row(agent: &Agent, doing: &Doing<'_>) -> (u8, Row) {
    let (rank, state, because) = state(agent, doing);
    let holds = match doing.holds.len() {
        0 => Cell::None,
        1 => Cell::code(&doing.holds[0].symbol),
        n => Cell::text(&format!("{n} locks, {} and others", doing.holds[0].symbol)),
    };
    let to = doing.runs.or(doing.asked).map(|it| super::task::path(&it.id));
    let release = doing.holds.first().map(|lock| super::locks::release(&lock.symbol));
    let name = provost_base::shell_word(&agent.id);
    let here = Here::verb("revoke-tokens", serde_json::json!({ "agent": agent.id }));
    let revoke = Command::new("Revoke its tokens", format!("provost token revoke --of {name}")).or_here(here);
    let row = Row {
        key: agent.id.clone(),
        to,
        cells: vec![
            Cell::State(state),
            Cell::code(&agent.id),
            because,
            holds,
            Cell::text(&agent.doors.join(", ")),
            Cell::time(agent.last_seen.as_deref()),
        ],
        commands: release
            .into_iter()
            .chain([revoke, super::messages::write("Message", &[&agent.id])])
            .collect(),
    };
    (rank, row)
}

/// The state of an agent: what needs someone first.
fn state(agent: &Agent, doing: &Doing<'_>) -> (u8, Word, Cell) {
    if let Some(symbol) = doing.waits {
        return (1, Word::new("waits for a lock", Tone::Waiting), Cell::code(symbol));
    }
    if let Some(task) = doing.runs {
        return (2, Word::new("working", Tone::Moving), Cell::said(&task.goal));
    }
    if let Some(task) = doing.asked.filter(|it| it.state == "awaiting") {
        let approval = task.approval.map_or_else(|| "an approval".into(), |n| format!("approval {n}"));
        return (1, Word::new("waits for approval", Tone::Waiting), Cell::text(&approval));
    }
    match (agent.alive, doing.holds.is_empty()) {
        (true, _) => (
            3,
            Word::new("there", Tone::Good),
            Cell::text("a sign of life within half a minute, or its host runs"),
        ),
        (false, false) => {
            (0, Word::new("silent", Tone::Bad), Cell::text("holds locks, and gives no sign of life"))
        }
        (false, true) => {
            (4, Word::new("gone", Tone::Quiet), Cell::text("no sign of life, and holds nothing"))
        }
    }
}
