//! The symbols that an apply touches, and the agents that hold them.

use provost_api::wire::Touch;

use super::block::Empty;
use super::{Block, Cell, Row, Rows, Tone, Word};

/// Lists the symbols that an apply touches; those that others hold come first. `None` where it touches none.
pub fn touches(found: &[Touch]) -> Option<Block> {
    let mut found: Vec<&Touch> = found.iter().collect();
    found.sort_by_key(|it| it.holder.is_none());
    let row = |(n, it): (usize, &&Touch)| Row {
        key: format!("{n} {}", it.at),
        to: None,
        cells: vec![
            Cell::code(&it.at),
            match (&it.holder, it.how.as_deref()) {
                (Some(_), Some("intent")) => {
                    Cell::State(Word::new("is to be changed by another", Tone::Waiting))
                }
                (Some(_), how) => {
                    Cell::State(Word::new(format!("has a {}", how.unwrap_or("hold")), Tone::Bad))
                }
                (None, _) => Cell::State(Word::new("free", Tone::Quiet)),
            },
            it.holder.as_deref().map_or(Cell::None, Cell::code),
            it.doing.as_deref().map_or(Cell::None, Cell::said),
        ],
        commands: Vec::new(),
    };
    let rows: Vec<Row> = found.iter().enumerate().map(row).collect();
    (!rows.is_empty()).then(|| {
        Block::List(Rows {
            title: "What it touches".into(),
            columns: vec!["Symbol or file", "State", "Who", "Their words"],
            rows,
            more: 0,
            empty: Empty::new("Nothing.", None),
        })
    })
}
