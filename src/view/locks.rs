//! Locks, claims and those who wait for them.

use provost_api::wire::{HeldFile, Locks};

use super::block::Empty;
use super::{Block, Cell, Command, Filter, Here, Line, Row, Rows, Shown, Tone, Word};

/// What is held and passes a filter, `most` of each kind at the most. `now` is in the form of RFC 3339 in UTC, as the
/// API's times are.
pub fn locks(found: &Locks, claims: &[HeldFile], filter: &Filter, most: usize, now: &str) -> Shown {
    let held: Vec<Row> = found
        .locks
        .iter()
        .filter(|it| filter.takes(&[&it.symbol, &it.holder, it.reason.as_deref().unwrap_or_default()]))
        .map(|it| {
            let state = match it.until.as_str() <= now {
                true => Word::new("lapsed", Tone::Bad),
                false => Word::new("held", Tone::Moving),
            };
            Row {
                key: it.symbol.clone(),
                to: it.task.as_deref().map(super::task::path),
                cells: vec![
                    Cell::State(state),
                    Cell::code(&it.symbol),
                    Cell::code(&it.holder),
                    it.reason.as_deref().map_or(Cell::None, Cell::said),
                    Cell::text(&it.fence.to_string()),
                    Cell::Until { at: it.until.clone() },
                ],
                commands: vec![
                    release(&it.symbol, Some(it.fence)),
                    super::messages::write("Message", &[&it.holder]),
                ],
            }
        })
        .collect();
    let waiting = found.waiting.iter().filter(|it| filter.takes(&[&it.symbol, &it.agent])).map(|it| Row {
        key: format!("{}:{}", it.agent, it.symbol),
        to: it.task.as_deref().map(super::task::path),
        cells: vec![
            Cell::code(&it.symbol),
            Cell::code(&it.agent),
            Cell::time(Some(&it.since)),
            Cell::Until { at: it.until.clone() },
        ],
        commands: vec![super::waits::end(it.ticket), super::messages::write("Message", &[&it.agent])],
    });
    let claimed = claims.iter().filter(|it| filter.takes(&[&it.file, &it.holder])).map(claim_row);
    let (waiting, claimed): (Vec<Row>, Vec<Row>) = (waiting.collect(), claimed.collect());
    let empty = |says: &str, command| match filter.is_empty() {
        true => Empty::new(says, command),
        false => Empty::new("Nothing passes the filter.", None),
    };
    let columns = ["State", "On", "Holder", "Purpose", "Grant", "Until"];
    let acquire = empty("No lock is held.", Some("provost lock acquire src/auth.ts:login"));
    let mut blocks = vec![list("Locks", &columns, held, most, acquire)];
    let columns = ["For", "Agent", "Since", "Until"];
    blocks.push(list("Waiting, longest first", &columns, waiting, most, empty("No agent waits.", None)));
    let claim = empty("No file is claimed.", Some("provost claim acquire src/auth.ts"));
    blocks.push(list("Claimed files", &["State", "File", "Holder", "Since"], claimed, most, claim));
    if filter.is_empty() {
        let text = "Type way: and a file or FILE:SYMBOL into the filter to see who would be in the way of a change there, and who calls it.";
        blocks.push(Block::Notice(Line { text: text.into(), tone: Tone::Quiet }));
    }
    Shown::new("Locks", blocks)
}

fn list(title: &str, columns: &[&'static str], mut rows: Vec<Row>, most: usize, empty: Empty) -> Block {
    let (title, more) = (format!("{title} ({})", rows.len()), rows.len().saturating_sub(most));
    rows.truncate(most);
    Block::List(Rows { title, columns: columns.to_vec(), rows, more, empty })
}

fn claim_row(it: &HeldFile) -> Row {
    let tone = if it.how == "conflicted" { Tone::Bad } else { Tone::Moving };
    let message = super::messages::write("Message", &[&it.holder]);
    Row {
        key: it.file.clone(),
        to: it.task.as_deref().map(super::task::path),
        cells: vec![
            Cell::State(Word::new(it.how.clone(), tone)),
            Cell::code(&it.file),
            Cell::code(&it.holder),
            Cell::time(it.since.as_deref()),
        ],
        commands: release_claim(it).into_iter().chain([message]).collect(),
    }
}

/// Frees a file that another agent has. One in conflict waits for the decision about whose change counts.
fn release_claim(it: &HeldFile) -> Option<Command> {
    let word = provost_base::shell_word(&it.file);
    let line = match it.file.starts_with('-') {
        true => format!("provost claim release --force -- {word}"),
        false => format!("provost claim release {word} --force"),
    };
    let here = Here::release_claim(&it.file, it.fence);
    (it.how != "conflicted").then(|| Command::new("Release by force", line).or_here(here))
}

/// The command that releases another agent's lock. A symbol that begins with a dash is no option behind two of them.
pub(super) fn release(symbol: &str, fence: Option<u64>) -> Command {
    let word = provost_base::shell_word(symbol);
    let line = match symbol.starts_with('-') {
        true => format!("provost unlock --force -- {word}"),
        false => format!("provost unlock {word} --force"),
    };
    Command::new("Release by force", line).or_here(Here::release(symbol, fence))
}
