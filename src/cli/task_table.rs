//! Tasks as a table for people.

use std::collections::BTreeSet;

use super::out;
use super::tasks::{exit_code, short_time};
use provost_api::wire;

/// Writes tasks as aligned rows; the goal fills the rest of the line.
pub(super) fn table<'a>(tasks: impl Iterator<Item = &'a wire::Task>) -> String {
    let tasks: Vec<&wire::Task> = tasks.collect();
    let mut rows = vec![["TASK", "STATE", "WORKER", "BY", "CREATED", "HOST", "GOAL"].map(String::from)];
    for task in &tasks {
        rows.push([
            out::one_line(&task.id, 40),
            state(task),
            out::one_line(&task.worker, 20),
            out::one_line(&task.asked_by, 20),
            short_time(&task.created_at),
            task.host.clone().unwrap_or_default(),
            String::new(),
        ]);
    }
    let hosts: BTreeSet<&str> = tasks.iter().filter_map(|it| it.host.as_deref()).collect();
    // With one host, every task is on it.
    let has_hosts = hosts.len() > 1;
    let shown = if has_hosts { 0..6 } else { 0..5 };
    let used: usize =
        shown.map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0) + 2).sum();
    for (row, task) in rows.iter_mut().skip(1).zip(tasks) {
        row[6] = out::one_line(&task.goal, out::width().saturating_sub(used).max(20));
    }
    if has_hosts {
        return out::table(&rows);
    }
    let without: Vec<_> = rows.into_iter().map(|[a, b, c, d, e, _, goal]| [a, b, c, d, e, goal]).collect();
    out::table(&without)
}

/// Returns the state of a task in words, with the things that it waits for and its changes.
pub(super) fn state(task: &wire::Task) -> String {
    let mut state = plain_state(task);
    if task.tainted == Some(true) {
        state.push_str(", tainted");
    }
    let changes = task.changes.as_ref().map(|it| format!(", {}", it.in_words()));
    state + &changes.unwrap_or_default()
}

fn plain_state(task: &wire::Task) -> String {
    if let Some(need) = task.waits_for.first() {
        return out::one_line(&format!("waits for {}", need.resource), 40);
    }
    if let Some(waits) = task.waits_in_words() {
        return out::one_line(&waits, 60);
    }
    // A worker that ends with zero and has failed has reported the failure in another way.
    match (task.state.as_str(), task.approval, exit_code(task).filter(|code| *code != 0)) {
        ("awaiting", Some(approval), _) => format!("awaiting {approval}"),
        ("failed", _, Some(code)) => format!("failed ({code})"),
        (state, ..) => out::one_line(state, 20),
    }
}
