//! Agents: the activity of each at the moment, with the evidence for it.

use std::collections::BTreeMap;

use provost_api::wire::{Agent, HeldFile, Intent, Lock, Locks, Task, Wait};

use super::block::Empty;
use super::{Block, Cell, Command, Filter, Here, Row, Rows, Shown, Tone, Word};

/// The data that the view is made of.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct AgentSources {
    /// The agents.
    pub known: Vec<Agent>,
    /// Locks, and the agents that wait for one; absent where no lock is held.
    pub locks: Option<Locks>,
    /// Claimed files.
    pub claims: Vec<HeldFile>,
    /// Intents that are in force.
    pub intents: Vec<Intent>,
    /// Waits, each with the agent and the thing that it waits for.
    pub waits: Vec<Wait>,
    /// Tasks that are not finished.
    pub live: Vec<Task>,
}

/// The evidence about one agent's activity.
#[derive(Default)]
struct Doing<'a> {
    runs: Option<&'a Task>,
    asked: Option<&'a Task>,
    waits: Option<&'a Wait>,
    queues: Option<&'a str>,
    holds: Vec<&'a Lock>,
    claims: Vec<&'a HeldFile>,
    intents: usize,
}

impl Doing<'_> {
    fn holds_nothing(&self) -> bool {
        self.holds.is_empty() && self.claims.is_empty()
    }
}

/// Shows the agents that pass a filter, at most `most`. An agent's state is derived, and its reason stands beside it.
pub fn agents(from: &AgentSources, filter: &Filter, most: usize) -> Shown {
    let doing = doing(from);
    let nothing = Doing::default();
    // By all agents that are known: the column does not come and go while a person types a filter.
    let has_hosts = from.known.iter().any(|it| it.host.is_some());
    let mut rows: Vec<(u8, Row)> = from
        .known
        .iter()
        .filter(|it| passes(it, filter))
        .map(|agent| row(agent, doing.get(agent.id.as_str()).unwrap_or(&nothing), has_hosts))
        .collect();
    rows.sort_by_key(|(rank, _)| *rank);
    let more = rows.len().saturating_sub(most);
    let rows = Rows {
        title: format!("Agents ({})", rows.len()),
        columns: columns(has_hosts),
        rows: rows.into_iter().take(most).map(|(_, row)| row).collect(),
        more,
        empty: match filter.is_empty() {
            true => Empty::new("No agent has come by.", Some("provost hook install claude")),
            false => Empty::new("No agent passes the filter.", None),
        },
    };
    Shown::new("Agents", vec![Block::List(rows)])
}

fn passes(agent: &Agent, filter: &Filter) -> bool {
    let (name, host) = (agent.name.as_deref(), agent.host.as_deref());
    filter.takes(&[&agent.id, name.unwrap_or_default(), &agent.doors.join(" "), host.unwrap_or_default()])
}

/// Returns the headings. The host stands beside the time at which the agent was seen there.
fn columns(has_hosts: bool) -> Vec<&'static str> {
    let host = has_hosts.then_some("Host");
    ["State", "Agent", "Because", "Holds", "Doors"].into_iter().chain(host).chain(["Seen"]).collect()
}

fn doing(from: &AgentSources) -> BTreeMap<&str, Doing<'_>> {
    let mut doing: BTreeMap<&str, Doing<'_>> = BTreeMap::new();
    for task in &from.live {
        match task.state.as_str() {
            "running" | "assigned" => doing.entry(&task.worker).or_default().runs = Some(task),
            _ => {
                doing.entry(&task.asked_by).or_default().asked.get_or_insert(task);
            }
        }
    }
    if let Some(locks) = &from.locks {
        for waiter in &locks.waiting {
            doing.entry(&waiter.agent).or_default().queues = Some(&waiter.symbol);
        }
        for lock in &locks.locks {
            doing.entry(&lock.holder).or_default().holds.push(lock);
        }
    }
    for wait in from.waits.iter().filter(|it| it.kind != "approval") {
        // The longest wait comes first, and says for which thing the agent stands still; an agent that has delegated a task
        // need not stand still.
        let it = doing.entry(&wait.agent).or_default();
        if it.waits.is_none_or(|had| had.kind == "task" && wait.kind != "task") {
            it.waits = Some(wait);
        }
    }
    from.claims.iter().for_each(|it| doing.entry(&it.holder).or_default().claims.push(it));
    from.intents.iter().for_each(|it| doing.entry(&it.agent).or_default().intents += 1);
    doing
}

fn row(agent: &Agent, doing: &Doing<'_>, has_hosts: bool) -> (u8, Row) {
    let (rank, state, because) = state(agent, doing);
    let to = doing.runs.or(doing.asked).map(|it| super::task::path(&it.id));
    let one = doing.holds.first().map(|lock| super::locks::release(&lock.symbol, Some(lock.fence)));
    let all = (!doing.holds_nothing() || doing.intents > 0).then(|| release_all(&agent.id));
    let name = provost_base::shell_word(&agent.id);
    let here = Here::verb("revoke-tokens", serde_json::json!({ "agent": agent.id }));
    let revoke = Command::new("Revoke its tokens", format!("provost token revoke --of {name}")).or_here(here);
    let message = super::messages::write("Message", &[&agent.id]);
    let doors = Cell::text(&agent.doors.join(", "));
    let host = has_hosts.then(|| agent.host.as_deref().map_or(Cell::None, Cell::code));
    let cells = [Cell::State(state), Cell::code(&agent.id), because, holds(doing), doors].into_iter();
    let row = Row {
        key: agent.id.clone(),
        to,
        cells: cells.chain(host).chain([Cell::time(agent.last_seen.as_deref())]).collect(),
        commands: one.into_iter().chain(all).chain([revoke, message]).collect(),
    };
    (rank, row)
}

/// Releases everything that an agent holds, with a reason.
pub(super) fn release_all(agent: &str) -> Command {
    let apart = if agent.starts_with('-') { "-- " } else { "" };
    let line = format!("provost agent release {apart}{}", provost_base::shell_word(agent));
    Command::new("Release all that it holds", line).or_here(Here::release_agent(agent))
}

fn holds(doing: &Doing<'_>) -> Cell {
    let first = doing.holds.first().map(|it| &it.symbol).or(doing.claims.first().map(|it| &it.file));
    let many = |count: usize, what: &str| {
        (count > 0).then(|| format!("{count} {what}{}", if count == 1 { "" } else { "s" }))
    };
    let counted = [many(doing.holds.len(), "lock"), many(doing.claims.len(), "claimed file")];
    let counted: Vec<String> = counted.into_iter().flatten().collect();
    match (first, doing.holds.len() + doing.claims.len()) {
        (Some(first), 1) => Cell::code(first),
        (Some(first), _) => Cell::text(&format!("{}, {first} and others", counted.join(", "))),
        (None, _) => Cell::None,
    }
}

/// Returns the state of an agent with its rank: agents that need a person rank first.
fn state(agent: &Agent, doing: &Doing<'_>) -> (u8, Word, Cell) {
    let waits = doing.waits.filter(|it| it.kind != "task");
    if let Some((state, because)) = waits.and_then(standing_still) {
        return (1, state, because);
    }
    if let Some(symbol) = doing.queues {
        return (1, Word::new("waits for a lock", Tone::Waiting), Cell::code(symbol));
    }
    if let Some(task) = doing.runs {
        return (2, Word::new("working", Tone::Moving), Cell::said(&task.goal));
    }
    if let Some(task) = doing.asked.filter(|it| it.state == "awaiting") {
        let approval = task.approval.map_or_else(|| "an approval".into(), |n| format!("approval {n}"));
        return (1, Word::new("waits for approval", Tone::Waiting), Cell::text(&approval));
    }
    if let Some(wait) = doing.waits.filter(|it| it.kind == "task") {
        let because = format!("task {} by {}", wait.wanted, wait.by.join(", "));
        return (3, Word::new("waits for work", Tone::Waiting), Cell::code(&because));
    }
    match (agent.alive, doing.holds_nothing()) {
        (true, _) => (
            4,
            Word::new("idle", Tone::Good),
            Cell::text("a sign of life within half a minute, or its host runs"),
        ),
        (false, false) => {
            (0, Word::new("silent", Tone::Bad), Cell::text("holds something, and gives no sign of life"))
        }
        (false, true) => {
            (5, Word::new("gone", Tone::Quiet), Cell::text("no sign of life, and holds nothing"))
        }
    }
}

/// Says for which thing an agent stands still, and behind which agent.
fn standing_still(wait: &Wait) -> Option<(Word, Cell)> {
    let behind = || match wait.by.first() {
        Some(by) => format!("{} behind {by}", wait.wanted),
        None => wait.wanted.clone(),
    };
    let (word, because) = match wait.kind.as_str() {
        "lock" | "resource" => (format!("waits for a {}", wait.kind), Cell::code(&behind())),
        "answer" => ("waits for an answer".into(), Cell::text(&format!("question {}", wait.wanted))),
        "handoff" | "contract" => (format!("waits for a {}", wait.kind), Cell::code(&behind())),
        _ => return None,
    };
    Some((Word::new(word, Tone::Waiting), because))
}
