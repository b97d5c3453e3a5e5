//! Earlier decisions of the same rule, for the person who decides now.

use provost_api::wire::{Approval, Task};

use super::block::Empty;
use super::{Block, Cell, Row, Rows, Tone, Word, approval, of_task};

/// An earlier approval of the same rule, and its outcome.
#[derive(Clone, PartialEq, Debug)]
pub struct Earlier {
    /// The number of the approval.
    pub approval: u64,
    /// The moment at which it was asked.
    pub asked_at: String,
    /// The agent that asked.
    pub asked_by: String,
    /// Its outcome, with the proof; `None` where neither an event nor the task tells it.
    pub what: Option<String>,
    /// The agent or the person that decided, where an event names one.
    pub by: Option<String>,
    /// The task that it created.
    pub task: Option<Task>,
}

/// Derives the outcome of an approval from its task, where no event was found.
fn of_its_task(it: &Task) -> String {
    let kind = it.failure.as_ref().and_then(|it| it.as_object()?.keys().next().cloned());
    match (kind.as_deref(), it.state.as_str()) {
        (Some("approval_denied" | "policy_denied"), _) => "denied".into(),
        (Some("approval_timeout"), _) => "expired, which denies it".into(),
        (_, "awaiting") => "waits".into(),
        (_, "cancelled") => "its task was cancelled".into(),
        _ => "granted".into(),
    }
}

/// Shows earlier approvals of the same rule, newest first; for an approval about a worker, only those about that worker.
pub fn earlier(now: &Approval, found: &[Earlier]) -> Block {
    let row = |it: &Earlier| {
        let what =
            it.what.clone().or_else(|| it.task.as_ref().map(of_its_task)).unwrap_or_else(|| "unknown".into());
        let tone = match what.split(' ').next() {
            Some("granted" | "grant") => Tone::Good,
            Some("denied" | "deny" | "expired,") => Tone::Bad,
            _ => Tone::Quiet,
        };
        let reason = it.task.as_ref().and_then(super::task::failure);
        let ended = it.task.as_ref().map_or(Cell::None, |task| match reason {
            Some(why) => Cell::said(&why),
            None => Cell::State(of_task(&task.state)),
        });
        Row {
            key: it.approval.to_string(),
            to: Some(
                it.task.as_ref().map_or_else(|| approval::path(it.approval), |it| super::task::path(&it.id)),
            ),
            cells: vec![
                Cell::State(Word::new(provost_base::visible(&what), tone)),
                Cell::maybe(it.by.as_deref()),
                Cell::code(&it.asked_by),
                it.task.as_ref().map_or(Cell::None, |it| Cell::said(&it.goal)),
                ended,
                Cell::time(Some(&it.asked_at)),
            ],
            commands: Vec::new(),
        }
    };
    let of_worker = now.worker.as_ref().map(|it| format!(" and worker {}", provost_base::visible(it)));
    Block::List(Rows {
        title: format!(
            "Decided before by rule {}{}",
            provost_base::visible(&now.rule),
            of_worker.unwrap_or_default()
        ),
        columns: vec!["Decided", "By", "Asked by", "In short", "Became", "Asked"],
        rows: found.iter().map(row).collect(),
        more: 0,
        empty: Empty::new("This rule has not asked before, as far as can be searched.", None),
    })
}
