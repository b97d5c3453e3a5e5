//! Waits of agents, each with its reason and the agents ahead: a drawing, and lists that say all of it.

use std::collections::BTreeMap;

use provost_api::wire::{MESSAGED_AT_ONCE_MAX, RefusedCircle, Wait, Waits};
use provost_base::{task_command, visible, visible_name};

use super::block::Empty;
use super::{
    Block, Cell, Command, Fact, Filter, Here, Row, Rows, Shown, Tone, Word, approval, graph, of_task, plain,
    task,
};

/// The name for a person on whom a wait depends.
const A_PERSON: &str = "a person";

/// Most agents that are named in one cell.
const NAMED_MAX: usize = 5;

/// Shows the waits that pass a filter, at most `most`.
pub fn waits(found: &Waits, filter: &Filter, most: usize) -> Shown {
    let taken: Vec<&Wait> = found.waits.iter().filter(|it| passes(it, filter)).collect();
    let mut blocks: Vec<Block> = Vec::new();
    let facts = in_short(&taken);
    if !facts.is_empty() {
        blocks.push(Block::Facts { title: "In short".into(), facts });
    }
    let edges: Vec<graph::Waits> = taken
        .iter()
        .flat_map(|it| {
            ends(it).into_iter().map(|by| (who(it), by, format!("{}: {}", word(it).word, it.wanted)))
        })
        .collect();
    if !edges.is_empty() {
        blocks.push(Block::Graph { title: "Who waits for whom".into(), drawing: graph::draw(&edges) });
    }
    let count = taken.len() + found.more;
    let rows: Vec<Row> = taken.iter().take(most).map(|it| row(it)).collect();
    blocks.push(Block::List(Rows {
        title: format!("Waiting, longest first ({count})"),
        columns: vec!["For", "Agent", "What", "Depends on", "In line", "Since", "Until"],
        more: count.saturating_sub(rows.len()),
        rows,
        empty: match filter.is_empty() {
            true => Empty::new("No agent waits.", None),
            false => Empty::new("No wait passes the filter.", None),
        },
    }));
    blocks.push(Block::List(Rows {
        title: format!("Circles that were refused in the last hour ({})", found.refused.len()),
        columns: vec!["When", "Wanted to wait for", "Circle", "Times"],
        rows: found.refused.iter().map(circle).collect(),
        more: 0,
        empty: Empty::new("No agent was refused to wait in a circle.", None),
    }));
    Shown::new("Waits", blocks)
}

fn passes(it: &Wait, filter: &Filter) -> bool {
    let by = it.by.join(" ");
    let (words, task) = (it.words.as_deref().unwrap_or_default(), it.task.as_deref().unwrap_or_default());
    filter.takes(&[&it.kind, &it.agent, &it.wanted, &by, words, task])
}

/// Names the agent that waits: runs of one worker are told apart.
fn who(it: &Wait) -> String {
    match &it.task {
        Some(task) if matches!(it.kind.as_str(), "lock" | "resource") => {
            format!("{} ({})", it.agent, visible_name(task, 8))
        }
        _ => it.agent.clone(),
    }
}

/// Returns the agents on whom a wait depends, each once: a person with several ways to answer counts once.
fn on_whom(it: &Wait) -> Vec<&str> {
    let mut on: Vec<&str> = Vec::new();
    for by in &it.by {
        let name = match it.kind == "approval" && approval::takes_a_person(by) {
            true => A_PERSON,
            false => by.as_str(),
        };
        if !on.contains(&name) {
            on.push(name);
        }
    }
    on
}

/// Returns the nodes that a wait is drawn to. Any approver ends an approval's wait, so the approvers are one node.
fn ends(it: &Wait) -> Vec<String> {
    let on = on_whom(it);
    match it.kind.as_str() {
        "approval" => vec![on.join(" or ")],
        _ => on.into_iter().map(str::to_owned).collect(),
    }
}

/// Returns the longest wait, and the agent on which most waits depend.
fn in_short(taken: &[&Wait]) -> Vec<Fact> {
    let mut facts = Vec::new();
    // An agent that has delegated a task need not stand still; the others do.
    let stands = |it: &&&Wait| it.kind != "task";
    if let Some(it) = taken.iter().find(stands).or(taken.first()) {
        let text = format!("{} waits for {} {}", who(it), word(it).word, it.wanted);
        facts.push(Fact::new("the longest", Cell::text(&text)));
        facts.push(Fact::new("since", Cell::time(Some(&it.since))));
    }
    let mut on: BTreeMap<&str, usize> = BTreeMap::new();
    for by in taken.iter().flat_map(|it| on_whom(it)) {
        *on.entry(by).or_default() += 1;
    }
    let most = on.into_iter().max_by(|a, b| a.1.cmp(&b.1).then(b.0.cmp(a.0)));
    facts.extend(most.map(|(name, count)| {
        let waits = if count == 1 { "1 wait depends".into() } else { format!("{count} waits depend") };
        Fact::new("most depends on", Cell::text(&format!("{name}: {waits} on it")))
    }));
    facts
}

fn word(it: &Wait) -> Word {
    match it.kind.as_str() {
        "task" => Word::new("task", it.state.as_deref().map_or(Tone::Waiting, |it| of_task(it).tone)),
        "approval" | "answer" => Word::new(it.kind.clone(), Tone::Waiting),
        other => Word::new(visible(other), Tone::Quiet),
    }
}

fn row(it: &Wait) -> Row {
    let number = it.wanted.parse::<u64>().ok();
    let to = match (it.kind.as_str(), &it.task, number) {
        ("approval", _, Some(id)) => Some(approval::path(id)),
        (_, Some(task), _) => Some(task::path(task)),
        _ => None,
    };
    let named = |by: &str| if it.kind == "approval" { plain::approver(by).to_owned() } else { by.to_owned() };
    let mut by: Vec<String> = it.by.iter().take(NAMED_MAX).map(|it| named(it)).collect();
    let more = it.by.len().saturating_sub(NAMED_MAX);
    by.extend((more > 0).then(|| format!("{more} more")));
    let what = match &it.words {
        Some(words) => Cell::Said { text: format!("{}: {}", visible_name(&it.wanted, 80), said(words)) },
        None => Cell::code(&it.wanted),
    };
    let mut state = word(it);
    if let Some(of) = &it.state {
        state.word = format!("task, {}", of_task(of).word);
    }
    Row {
        key: format!("{}:{}:{}:{}", it.kind, it.agent, it.wanted, it.task.as_deref().unwrap_or_default()),
        to,
        cells: vec![
            Cell::State(state),
            Cell::code(&it.agent),
            what,
            Cell::code(&by.join(", ")),
            it.place.map_or(Cell::None, |it| Cell::text(&it.to_string())),
            Cell::time(Some(&it.since)),
            it.until.as_ref().map_or(Cell::None, |at| Cell::Until { at: at.clone(), from: None }),
        ],
        commands: commands(it),
    }
}

fn said(words: &str) -> String {
    match Cell::said(words) {
        Cell::Said { text } => text,
        _ => String::new(),
    }
}

/// Returns the commands that end the wait, for a terminal.
fn commands(it: &Wait) -> Vec<Command> {
    let cancels = |command: Command| match &it.task {
        Some(task) => command.or_here(Here::verb("cancel-task", serde_json::json!({ "task": task }))),
        None => command,
    };
    let task = |does: &str, words: &str, flags: &str| {
        it.task.iter().map(|task| Command::new(does, task_command(words, task, flags))).collect::<Vec<_>>()
    };
    match it.kind.as_str() {
        "lock" | "resource" => {
            let both: Vec<&str> = std::iter::once(it.agent.as_str()).chain(held_by(it)).collect();
            let says = if both.len() > 1 { "Message both" } else { "Message" };
            let mut all = vec![super::locks::release(&it.wanted, None)];
            all.extend(it.ticket.map(end));
            all.extend(task("Cancel the waiting task", "task cancel", "").into_iter().map(cancels));
            all.push(super::messages::write(says, &both));
            all
        }
        "approval" => approval::commands_for(&it.wanted, &it.by.join(", ")),
        "answer" => it.wanted.parse().ok().map(super::messages::answer).into_iter().collect(),
        "task" => {
            let mut all = task("Follow", "task show", "--wait");
            all.extend(task("Cancel", "task cancel", "").into_iter().map(cancels));
            all
        }
        _ => vec![super::messages::write("Message", &[&it.agent])],
    }
}

/// Returns the holders of the awaited thing, without the waiting agent.
fn held_by(it: &Wait) -> impl Iterator<Item = &str> {
    it.by.iter().map(String::as_str).filter(|by| *by != it.agent).take(NAMED_MAX)
}

/// Returns the command that ends an agent's wait.
pub(crate) fn end(ticket: u64) -> Command {
    Command::new("End the wait", format!("provost wait end {ticket}")).or_here(Here::end_wait(ticket))
}

fn circle(it: &RefusedCircle) -> Row {
    let first = it.members.first().into_iter();
    let names: Vec<&str> = it.members.iter().chain(first).map(String::as_str).collect();
    let mut all: Vec<&str> = it.members.iter().map(String::as_str).collect();
    all.sort_unstable();
    all.dedup();
    all.truncate(MESSAGED_AT_ONCE_MAX);
    Row {
        key: format!("{} {} {}", it.at, it.wanted, it.members.join(" ")),
        to: None,
        cells: vec![
            Cell::time(Some(&it.at)),
            Cell::code(&it.wanted),
            Cell::code(&names.join(" waits for ")),
            Cell::text(&it.times.to_string()),
        ],
        commands: vec![super::messages::write("Message all", &all)],
    }
}
