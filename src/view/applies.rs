//! Applies, which have written into the user's files, and the commands that undo them.

use provost_api::wire::Apply;
use provost_base::visible_name;

use super::block::Empty;
use super::{Block, Cell, Command, Here, Row, Rows, Tone, Word};

/// Most files that are named in one cell.
const NAMED_MAX: usize = 4;

/// Shows applies, newest first, at most `most`.
pub fn applies(found: &[&Apply], most: usize) -> Block {
    Block::List(Rows {
        title: format!("Written into your files ({})", found.len()),
        columns: vec!["State", "Apply", "For", "Files", "When"],
        rows: found.iter().take(most).map(|it| row(it)).collect(),
        more: found.len().saturating_sub(most),
        empty: Empty::new("No apply has been made.", None),
    })
}

fn row(it: &Apply) -> Row {
    let state = match (it.undone_by, it.state.as_str()) {
        (Some(by), _) => Word::new(format!("undone by apply {by}"), Tone::Quiet),
        (None, "done") if it.errors > 0 => {
            Word::new(format!("done, {} not written", it.errors), Tone::Waiting)
        }
        (None, "done") => Word::new("done", Tone::Good),
        (None, "under way") => Word::new("under way", Tone::Moving),
        (None, other) => Word::new(visible_name(other, 40), Tone::Bad),
    };
    let number = match it.undoes {
        Some(undoes) => format!("{}, undoes {undoes}", it.apply),
        None => it.apply.to_string(),
    };
    let named = it.files.iter().take(NAMED_MAX).map(|file| format!("{} {}", file.how, file.path));
    let more = it.files.len().saturating_sub(NAMED_MAX);
    let files: Vec<String> = named.chain((more > 0).then(|| format!("{more} more"))).collect();
    Row {
        key: format!("apply:{}", it.apply),
        to: it.task.as_deref().map(super::task::path),
        cells: vec![
            Cell::State(state),
            Cell::text(&number),
            Cell::code(&it.by),
            Cell::code(&files.join(", ")),
            Cell::time(Some(&it.at)),
        ],
        commands: if it.undone_by.is_none() && it.state != "under way" { undo(it.apply) } else { Vec::new() },
    }
}

fn undo(apply: u64) -> Vec<Command> {
    let here = |force: bool| Here::Write {
        verb: "undo",
        arguments: serde_json::json!({ "apply": apply, "force": force }),
    };
    vec![
        Command::new("Undo", format!("provost undo {apply}")).or_here(here(false)),
        Command::new("Undo, also what has changed since", format!("provost undo {apply} --force"))
            .or_here(here(true)),
    ]
}
