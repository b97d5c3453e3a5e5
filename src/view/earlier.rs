//! What was decided before by the same rule, for the one who is to decide now.

use provost_api::wire::{Approval, Task};

use super::block::Empty;
use super::{Block, Cell, Row, Rows, Tone, Word, approval, of_task};

/// An earlier question of the same rule, and what became of it.
#[derive(Clone, PartialEq, Debug)]
pub struct Earlier {
    /// The number of the approval.
    pub approval: u64,
    /// When it was asked.
    pub asked_at: String,
    /// The agent that has asked.
    pub asked_by: String,
    /// What became of it, with its proof; `None` where neither an event nor its task says it.
    pub what: Option<String>,
    /// The agent or the person that has decided, where an event says it.
    pub by: Option<String>,
    /// The task that it made.
    pub task: Option<Task>,
}

/// What its task says of an approval, where no event was found.
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

/// Earlier questions of the rule that asks, newest first; of one about a worker, those about the same worker.
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
