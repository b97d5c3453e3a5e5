//! Agents that would be in the way of a change, and callers of the symbol that would change.

use provost_api::wire::{Calls, Conflicts};
use provost_base::{shell_word, visible, visible_name};

use super::block::Empty;
use super::{Block, Cell, Command, Line, Row, Rows, Tone, Word};

/// Shows the agents in the way of a change at this place; for a symbol its callers as well, or why they are not known.
pub fn in_the_way(place: &str, found: &Conflicts, callers: Option<Result<&Calls, &String>>) -> Vec<Block> {
    let name = visible_name(place, 120);
    let rows = found.conflicts.iter().enumerate().map(|(n, it)| Row {
        key: format!("way:{n}"),
        to: None,
        cells: vec![
            Cell::State(Word::new(it.kind.replace('_', " "), Tone::Waiting)),
            it.holder.as_deref().map_or(Cell::None, Cell::code),
            Cell::said(&it.message),
            it.until.as_ref().map_or(Cell::None, |at| Cell::Until { at: at.clone(), from: None }),
        ],
        commands: it.holder.iter().map(|holder| super::messages::write("Message", &[holder])).collect(),
    });
    let mut blocks = vec![Block::List(Rows {
        title: format!("In the way of a change of {name} ({})", found.conflicts.len() + found.more),
        columns: vec!["What", "Who", "In words", "Until"],
        rows: rows.collect(),
        more: found.more,
        empty: Empty::new("No agent holds or has announced anything there.", None),
    })];
    match callers {
        Some(Ok(calls)) => blocks.extend(called(place, &name, calls)),
        Some(Err(why)) => blocks.push(no_way(why)),
        None => {}
    }
    blocks
}

/// Says why it is not known which agents would be in the way.
pub fn no_way(why: &str) -> Block {
    Block::Notice(Line { text: visible(why), tone: Tone::Quiet })
}

/// Lists the callers of a symbol, and says whether these are all.
fn called(place: &str, name: &str, calls: &Calls) -> Vec<Block> {
    let row = |it: &String| {
        let state = match calls.guessed.contains(it) {
            true => Word::new("by its name alone", Tone::Waiting),
            false => Word::new("calls it", Tone::Quiet),
        };
        Row {
            key: format!("caller:{it}"),
            to: None,
            cells: vec![Cell::State(state), Cell::code(it)],
            commands: Vec::new(),
        }
    };
    let list = Block::List(Rows {
        title: format!("What calls {name} ({})", calls.symbols.len()),
        columns: vec!["How", "Symbol"],
        rows: calls.symbols.iter().map(row).collect(),
        more: 0,
        empty: Empty::new("Nothing is known to call it.", None),
    });
    let all = Block::Commands {
        title: "At a terminal".into(),
        commands: vec![Command::new("Callers", format!("provost graph callers {}", shell_word(place)))],
    };
    let missing = (!calls.complete).then(|| {
        let why = if calls.missing.is_empty() {
            "not all files are known".into()
        } else {
            calls.missing.join("; ")
        };
        Block::Notice(Line { text: visible(&format!("Complete: no. {why}.")), tone: Tone::Waiting })
    });
    missing.into_iter().chain([list, all]).collect()
}
