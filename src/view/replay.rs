//! The decisions that other rules would have made about the newest requests.

use provost_api::wire::{DecidedOtherwise, RulesReplayed};
use provost_base::visible;

use super::audit::says;
use super::block::Empty;
use super::{Block, Cell, Command, Fact, Line, Row, Rows, Shown, Tone};

/// The ready-made rules that a person can choose.
const READY_MADE: [&str; 3] = ["strict", "default", "open"];

/// Returns the form in which a person chooses other rules.
pub(super) fn form() -> Block {
    Block::Replay { ready_made: READY_MADE.to_vec(), last: provost_base::limits::REPLAY_LAST }
}

/// Shows their answers: the number of requests that they judged, and those that they would have decided otherwise.
pub fn replayed(it: &RulesReplayed) -> Shown {
    let differ = it.changed.len() as u64 + it.more;
    let tone = if differ > 0 { Tone::Waiting } else { Tone::Good };
    let text = format!(
        "{differ} of {} would have been decided otherwise, among the events {} to {}.",
        requests(it.asked),
        it.from,
        it.to
    );
    let mut blocks = vec![Block::Notice(Line { text, tone })];
    let mut left_out = |count: u64, why: &str| {
        if count > 0 {
            let text = format!("Not asked about {}: {why}.", requests(count));
            blocks.push(Block::Notice(Line { text, tone: Tone::Quiet }));
        }
    };
    left_out(it.without_arguments, "they are about tools of hosts, whose arguments are not on record");
    left_out(it.without_command, "the lines that they would have run are kept no more");
    if it.late {
        let text = "The time was over before all of them were looked at: ask about fewer.".into();
        blocks.push(Block::Notice(Line { text, tone: Tone::Waiting }));
    }
    blocks.push(Block::List(Rows {
        title: format!("Decided otherwise ({differ})"),
        columns: vec![
            "Was",
            "Would be",
            "Request",
            "Asked by",
            "Rule of then",
            "Rule that decides",
            "No.",
            "When",
        ],
        rows: it.changed.iter().map(row).collect(),
        more: usize::try_from(it.more).unwrap_or(usize::MAX),
        empty: Empty::new("These rules decide the same.", None),
    }));
    blocks.push(Block::Facts {
        title: "Rules that were asked".into(),
        facts: vec![Fact::new("digest", Cell::Code { text: it.digest.clone() })],
    });
    blocks.push(Block::Commands {
        title: "At a terminal".into(),
        commands: vec![
            Command::new("The same for a file of rules", "provost policy diff new.toml"),
            Command::new("Check the file", "provost policy check new.toml"),
        ],
    });
    Shown::new("Other rules", blocks)
}

fn requests(count: u64) -> String {
    if count == 1 { "1 request".into() } else { format!("{count} requests") }
}

fn row(it: &DecidedOtherwise) -> Row {
    let request = match &it.worker {
        Some(worker) => format!("{}: {worker}", it.action),
        None => it.action.clone(),
    };
    let reason = &it.would.reason;
    let rule = if reason.is_empty() { it.would.rule.clone() } else { format!("{}: {reason}", it.would.rule) };
    Row {
        key: it.seq.to_string(),
        to: Some(format!("/e/{}", it.seq)),
        cells: vec![
            Cell::State(says(&it.was)),
            Cell::State(says(&it.would.decision)),
            Cell::text(&visible(&request)),
            Cell::code(&it.asked_by),
            Cell::code(&it.was_rule),
            Cell::text(&rule),
            Cell::text(&it.seq.to_string()),
            Cell::time(Some(&it.at)),
        ],
        commands: Vec::new(),
    }
}
