//! Things that need a person: approvals, questions, changes to take in, and failures.

use std::collections::BTreeMap;

use provost_api::wire::{Agent, Approval, Lock, Merge, Overlap, Question, RosterRow, Task, Waiter, WorkerAt};

use super::block::Empty;
use super::word::gravity;
use super::{
    Block, Cell, Command, Line, Row, Rows, Shown, Tone, Word, approval, of_risk, of_task, plain, set_aside,
    task,
};

/// The age up to which a failed task or a waiting agent still needs a person, in milliseconds: a day.
const RECENT_MS_MAX: i64 = 24 * 60 * 60 * 1000;

/// Most rows of finished tasks, and of silent agents: more would push things that can be acted on off the screen.
const FINISHED_SHOWN: usize = 20;

/// The data that the view is made of.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct NeedSources {
    /// Approvals that wait.
    pub approvals: Vec<Approval>,
    /// Questions of agents that are not answered yet.
    pub questions: Vec<Question>,
    /// The state of agents, in their own words and those of their hosts.
    pub roster: Vec<RosterRow>,
    /// Agents in each other's way.
    pub overlaps: Vec<Overlap>,
    /// Agents that wait for a lock.
    pub waiting: Vec<Waiter>,
    /// Finished tasks, newest first.
    pub finished: Vec<Task>,
    /// The queue of merges.
    pub merges: Vec<Merge>,
    /// Agents, to find those that hold something and give no sign of life.
    pub agents: Vec<Agent>,
    /// Locks that agents hold.
    pub locks: Vec<Lock>,
    /// Workers of the configuration.
    pub workers: Vec<WorkerAt>,
    /// Errors and ignored parts of the configuration, and reasons why the daemon is of no use.
    pub notes: Vec<String>,
    /// The moment at which the last approval was answered or expired, where it is known.
    pub last_decision: Option<String>,
}

/// Shows the things that need a person at this moment, in milliseconds since 1970.
pub fn needs(from: NeedSources, now_ms: i64) -> Shown {
    let (mut yours, others): (Vec<Approval>, Vec<Approval>) =
        from.approvals.into_iter().partition(approval::is_for_a_person);
    in_order(&mut yours);
    let count = yours.len() + from.questions.len();
    let empty =
        Empty::new("All is calm: no agent waits for your word.", Some("provost delegate \"cargo test\""))
            .with_last("Last decision", from.last_decision.as_deref());
    let mut blocks: Vec<Block> = from
        .notes
        .iter()
        .map(|note| Block::Notice(Line { text: provost_base::visible(note), tone: Tone::Waiting }))
        .collect();
    let mut rows: Vec<Row> = yours.iter().map(approval_row).collect();
    rows.extend(from.questions.iter().map(question_row));
    blocks.push(list("Waiting for your word", &["What", "Asked by", "In short", "Until"], rows, empty));
    let broken = from.workers.iter().filter_map(broken_row).collect();
    let finished = from.finished.iter();
    let failed =
        finished.clone().filter(|it| is_recent(it, now_ms) && (it.has_failed() || it.tainted == Some(true)));
    let take_in = finished.filter(|it| has_changes(it) && it.tainted != Some(true));
    let mut optional = |title: &str, columns: &[&'static str], rows: Vec<Row>| {
        if !rows.is_empty() {
            blocks.push(list(title, columns, rows, Empty::new("", None)));
        }
    };
    let roster = from.roster.iter();
    let at_prompts = roster.filter(|it| it.is_at_its_prompt() && is_of_today(&it.last_seen, now_ms));
    optional(
        "Agents that wait for their person, each at its own screen",
        &["Agent", "Seen"],
        at_prompts.map(at_prompt_row).collect(),
    );
    optional("Workers that cannot be used", &["Worker", "Why"], broken);
    let columns = ["State", "Task", "Goal", "Ended"];
    optional(
        "Failed, or left something that runs later",
        &columns,
        failed.take(FINISHED_SHOWN).map(ended_row).collect(),
    );
    optional("Changes to take in", &columns, take_in.take(FINISHED_SHOWN).map(ended_row).collect());
    optional(
        "Branches that a merge has set aside",
        &["State", "Branch", "Why", "Told", "Queued"],
        set_aside(&from.merges, now_ms).into_iter().map(super::set_aside::row).collect(),
    );
    optional(
        "Agents that hold something and give no sign of life",
        &["Agent", "Holds", "Who waits for it", "Seen"],
        silent_rows(&from.agents, &from.locks, &from.waiting),
    );
    optional(
        "Agents that wait for a lock",
        &["Agent", "Waits for", "Since"],
        from.waiting.iter().map(waiter_row).collect(),
    );
    optional(
        "Agents that change the same place",
        &["Where", "Who"],
        from.overlaps.iter().map(overlap_row).collect(),
    );
    optional(
        "Not yours to answer",
        &["What", "Asked by", "In short", "Until"],
        others.iter().map(approval_row).collect(),
    );
    Shown { needs: Some(count), ..Shown::new("Needs you", blocks) }
}

/// Sorts approvals: the soonest to expire first, then the gravest, then the oldest.
fn in_order(approvals: &mut [Approval]) {
    approvals.sort_by(|a, b| {
        let by = |it: &Approval| (it.expires_at.clone(), gravity(&it.risk), it.asked_at.clone(), it.id);
        by(a).cmp(&by(b))
    });
}

fn list(title: &str, columns: &[&'static str], rows: Vec<Row>, empty: Empty) -> Block {
    Block::List(Rows { title: title.into(), columns: columns.to_vec(), rows, more: 0, empty })
}

fn approval_row(it: &Approval) -> Row {
    let what = of_risk(&it.risk);
    let what = Word { word: format!("approval {}: {}, {}", it.id, plain::asked(it), what.word), ..what };
    // The asker's own words, if it has given any. The approval's own page has the whole request.
    let short = it.goal.as_deref().map_or_else(|| Cell::text(&it.reason), Cell::said);
    Row {
        key: format!("approval:{}", it.id),
        to: Some(approval::path(it.id)),
        cells: vec![
            Cell::State(what),
            Cell::code(&it.asked_by),
            short,
            Cell::Until { at: it.expires_at.clone(), from: Some(it.asked_at.clone()) },
        ],
        commands: approval::commands_of_a_row(it),
    }
}

fn question_row(it: &Question) -> Row {
    Row {
        key: format!("question:{}", it.seq),
        to: None,
        cells: vec![
            Cell::State(Word::new(format!("question {}", it.seq), Tone::Waiting)),
            Cell::code(&it.agent),
            Cell::said(&it.text),
            Cell::None,
        ],
        commands: vec![super::messages::answer(it.seq)],
    }
}

fn at_prompt_row(it: &RosterRow) -> Row {
    Row {
        key: format!("prompt:{}", it.agent),
        to: None,
        cells: vec![Cell::code(&it.agent), Cell::time(Some(&it.last_seen))],
        commands: vec![super::messages::write("Message", &[&it.agent])],
    }
}

fn broken_row(it: &WorkerAt) -> Option<Row> {
    let why = it.broken.as_deref()?;
    Some(Row {
        key: format!("worker:{}", it.id),
        to: None,
        cells: vec![Cell::code(&it.id), Cell::text(why)],
        commands: vec![Command::new("Look", "provost doctor")],
    })
}

fn is_recent(it: &Task, now_ms: i64) -> bool {
    is_of_today(&it.updated_at, now_ms)
}

pub(super) fn is_of_today(at: &str, now_ms: i64) -> bool {
    // A time that cannot be read does not hide a thing that needs a person.
    chrono::DateTime::parse_from_rfc3339(at)
        .map_or(true, |at| at.timestamp_millis() >= now_ms.saturating_sub(RECENT_MS_MAX))
}

fn has_changes(it: &Task) -> bool {
    it.changes.as_ref().is_some_and(|it| it.wait())
}

fn ended_row(it: &Task) -> Row {
    let state = match (it.tainted, &it.changes) {
        (Some(true), _) => Word::new(format!("{}, tainted", of_task(&it.state).word), Tone::Bad),
        (_, Some(changes)) if it.state != "failed" && has_changes(it) => {
            Word::new(changes.in_words(), Tone::Waiting)
        }
        _ => of_task(&it.state),
    };
    Row {
        key: format!("task:{}", it.id),
        to: Some(task::path(&it.id)),
        cells: vec![
            Cell::State(state),
            Cell::code(&it.id),
            Cell::said(&it.goal),
            Cell::time(Some(&it.updated_at)),
        ],
        commands: task::commands(it),
    }
}

fn waiter_row(it: &Waiter) -> Row {
    Row {
        key: format!("wait:{}:{}", it.agent, it.symbol),
        to: None,
        cells: vec![Cell::code(&it.agent), Cell::code(&it.symbol), Cell::time(Some(&it.since))],
        commands: vec![super::waits::end(it.ticket), super::messages::write("Message", &[&it.agent])],
    }
}

/// Returns the rows of silent agents with the locks that they hold; agents that block others come first.
fn silent_rows(agents: &[Agent], locks: &[Lock], waiting: &[Waiter]) -> Vec<Row> {
    let mut held: BTreeMap<&str, Vec<&Lock>> = BTreeMap::new();
    locks.iter().for_each(|it| held.entry(&it.holder).or_default().push(it));
    let row = |agent: &Agent| {
        let held = held.get(agent.id.as_str())?;
        let first = held.first()?;
        let blocked = |it: &&Waiter| held.iter().any(|lock| is_around(&lock.symbol, &it.symbol));
        let waits: Vec<&str> = waiting.iter().filter(blocked).map(|it| it.agent.as_str()).collect();
        let holds = match held.len() {
            1 => Cell::code(&first.symbol),
            n => Cell::text(&format!("{n} locks, {} and others", first.symbol)),
        };
        let row = Row {
            key: format!("silent:{}", agent.id),
            to: None,
            cells: vec![
                Cell::code(&agent.id),
                holds,
                if waits.is_empty() { Cell::None } else { Cell::code(&waits.join(", ")) },
                Cell::time(agent.last_seen.as_deref()),
            ],
            commands: vec![
                super::agents::release_all(&agent.id),
                super::messages::write("Message", &[&agent.id]),
            ],
        };
        Some((waits.is_empty(), row))
    };
    let mut rows: Vec<(bool, Row)> = agents.iter().filter(|it| !it.alive).filter_map(row).collect();
    rows.sort_by_key(|(is_alone, _)| *is_alone);
    rows.into_iter().map(|(_, row)| row).take(FINISHED_SHOWN).collect()
}

/// Checks whether two symbols are the same, or one contains the other.
fn is_around(one: &str, other: &str) -> bool {
    let is_in = |inner: &str, outer: &str| {
        inner.strip_prefix(outer).is_some_and(|it| it.is_empty() || it.starts_with([':', '.']))
    };
    is_in(one, other) || is_in(other, one)
}

fn overlap_row(it: &Overlap) -> Row {
    Row {
        key: format!("overlap:{}:{}", it.file, it.agents.join(":")),
        to: None,
        cells: vec![Cell::code(&it.file), Cell::code(&it.agents.join(" and "))],
        commands: vec![super::messages::write("Message both", &[&it.agents[0], &it.agents[1]])],
    }
}
