//! Tasks: those that wait or run first, then those that have ended.

use provost_api::wire::{Task, TaskPage, Tasks, WorkerAt};
use provost_base::limits::SIGNED_VERB_BYTES_MAX;
use provost_base::visible;

use super::block::Empty;
use super::word::rank;
use super::{Block, Cell, Delegating, Fact, Filter, Row, Rows, Shown, Tone, Word, of_task, task};

const COLUMNS: [&str; 8] = ["State", "Task", "Goal", "Worker", "Asked by", "Asked", "Duration", "Files"];

/// Shows a page of the tasks that pass a filter, at most `most` unfinished ones; with `older`, only finished ones.
pub fn tasks(found: &Tasks, filter: &Filter, most: usize, older: bool) -> Shown {
    let mut live: Vec<&Task> = found.active.iter().filter(|it| filter.takes_task(it)).collect();
    // Within a state the oldest comes first: it has waited longest.
    live.sort_by_key(|it| rank(&it.state));
    let finished: Vec<&Task> = found.finished.iter().filter(|it| filter.takes_task(it)).collect();
    let (beyond, count) = (live.len().saturating_sub(most), live.len());
    let mut blocks = Vec::new();
    if !older {
        blocks.push(Block::List(Rows {
            title: format!("Not finished ({count})"),
            columns: COLUMNS.to_vec(),
            rows: live.into_iter().take(most).map(row).collect(),
            more: beyond,
            empty: empty(filter, "No task waits or runs.", Some("provost delegate \"cargo test\"")),
        }));
    }
    blocks.push(Block::List(Rows {
        title: if older { "Finished before that".into() } else { "Finished last".into() },
        columns: COLUMNS.to_vec(),
        rows: finished.into_iter().map(row).collect(),
        more: 0,
        empty: none_finished(filter, found.unread.as_deref()),
    }));
    let mut shown = Shown::new("Tasks", blocks);
    // The filter may leave no task of this page, and the next page may have some.
    let last = found.finished.last().filter(|_| found.truncated);
    shown.next = last.map(|it| format!("/tasks?before={}", super::encoded(&it.id)));
    shown
}

/// Shows a page of tasks with the counts of all tasks; `typed` is the filter as it stands in the address.
pub fn task_page(found: &TaskPage, filter: &Filter, typed: &str, older: bool) -> Shown {
    let counts = &found.counts;
    let all = [
        ("awaiting", counts.awaiting),
        ("running", counts.running),
        ("assigned", counts.assigned),
        ("queued", counts.queued),
        ("retrying", counts.retrying),
        ("waiting", counts.waiting),
        ("completed", counts.completed),
        ("failed", counts.failed),
    ];
    let count = |(state, count): (&str, u64)| {
        Fact::new(of_task(state).word, Cell::link(&count.to_string(), format!("/tasks?q=state:{state}")))
    };
    let is_over = |it: &&Task| matches!(it.state.as_str(), "completed" | "failed" | "cancelled");
    let (ended, live): (Vec<&Task>, Vec<&Task>) = found.tasks.iter().partition(is_over);
    let mut blocks = Vec::new();
    if !older {
        blocks.push(Block::Counts { title: "How many".into(), facts: all.into_iter().map(count).collect() });
    }
    if !older || !live.is_empty() {
        blocks.push(Block::List(Rows {
            title: format!("Not finished ({})", found.live),
            columns: COLUMNS.to_vec(),
            more: if older { 0 } else { found.live.saturating_sub(live.len()) },
            rows: live.into_iter().map(row).collect(),
            empty: empty(filter, "No task waits or runs.", Some("provost delegate \"cargo test\"")),
        }));
    }
    blocks.push(Block::List(Rows {
        title: if older { "Finished before that".into() } else { "Finished last".into() },
        columns: COLUMNS.to_vec(),
        rows: ended.into_iter().map(row).collect(),
        more: 0,
        empty: match &found.next {
            Some(_) => Empty::new("Those that have finished are on a further page.", None),
            None => none_finished(filter, found.unread.as_deref()),
        },
    }));
    let mut shown = Shown::new("Tasks", blocks);
    shown.next = found.next.as_ref().map(|next| {
        let typed = if typed.is_empty() { String::new() } else { format!("&q={}", super::encoded(typed)) };
        format!("/tasks?after={}{typed}", super::encoded(next))
    });
    shown
}

/// Returns the form in which a person delegates a task to one of these workers.
pub fn delegating(workers: &[WorkerAt]) -> Block {
    Block::Delegate(Delegating {
        workers: workers.iter().map(|it| visible(&it.id)).collect(),
        // The rest of the signed bytes is short.
        goal_bytes_max: SIGNED_VERB_BYTES_MAX / 4 * 3,
    })
}

fn empty(filter: &Filter, says: &str, command: Option<&str>) -> Empty {
    match filter.is_empty() {
        true => Empty::new(says, command),
        false => Empty::new("No task of this page passes the filter.", None),
    }
}

fn none_finished(filter: &Filter, unread: Option<&str>) -> Empty {
    match unread {
        Some(why) => Empty::new(&format!("Finished tasks cannot be read now: {why}"), None),
        None => empty(filter, "No task has finished here.", None),
    }
}

fn row(it: &Task) -> Row {
    let state = match it.tainted {
        Some(true) => Word::new(format!("{}, tainted", of_task(&it.state).word), Tone::Bad),
        _ => of_task(&it.state),
    };
    Row {
        key: it.id.clone(),
        to: Some(task::path(&it.id)),
        cells: vec![
            Cell::State(state),
            Cell::code(&it.id),
            Cell::said(&it.goal),
            Cell::code(&it.worker),
            Cell::code(&it.asked_by),
            Cell::time(Some(&it.created_at)),
            took(it),
            files(it),
        ],
        commands: task::commands(it),
    }
}

/// Returns the time that its worker has worked.
fn took(it: &Task) -> Cell {
    match &it.started_at {
        Some(from) => Cell::Took { from: from.clone(), to: it.ended_at.clone() },
        None => Cell::None,
    }
}

/// Returns the number of files that its run has changed, where it is known.
fn files(it: &Task) -> Cell {
    let kept = it.changes.as_ref().map(|it| it.files as usize);
    let watched = || it.files_changed.as_ref().map(|it| it.files.len() + it.more as usize);
    kept.or_else(watched).map_or(Cell::None, |count| Cell::text(&count.to_string()))
}
