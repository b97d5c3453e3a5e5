//! The part of a view that an invited reader may see: states, names of agents and workers, and times.
//!
//! This module lists everything that is shown, and leaves out every other view, list, column and kind of cell: words of agents,
//! paths, symbols, commands, differences and logs. The rows get new keys, since the old ones may have a path in them.

use super::block::Empty;
use super::{Block, Cell, Row, Rows, Shown, Word};

/// A list of a view, by the beginning of its heading, and its columns that are shown.
type Left = (&'static str, &'static [&'static str]);

/// The lists of each view that are shown.
const STATES: &[(&str, &[Left])] = &[
    (
        "needs-you",
        &[
            ("Waiting for your word", &["What", "Asked by", "Until"]),
            ("Workers that cannot be used", &["Worker"]),
            ("Failed, or left something that runs later", &["State", "Task", "Ended"]),
            ("Changes to take in", &["State", "Task", "Ended"]),
            ("Agents that wait for a lock", &["Agent", "Since"]),
            ("Not yours to answer", &["What", "Asked by", "Until"]),
        ],
    ),
    (
        "tasks",
        &[
            ("Not finished", &["State", "Task", "Worker", "Asked by", "Asked", "Duration"]),
            ("Finished", &["State", "Task", "Worker", "Asked by", "Asked", "Duration"]),
        ],
    ),
    ("agents", &[("Agents", &["State", "Agent", "Doors", "Seen"])]),
    (
        "locks",
        &[
            ("Held", &["How", "Holder", "Until", "Since"]),
            ("Waiting, longest first", &["Agent", "Since", "Until"]),
        ],
    ),
];

/// The blocks of facts that are shown since they have only numbers, by view and heading.
const NUMBERS: &[(&str, &str)] = &[("tasks", "How many")];

/// Checks whether any part of the view of this name is shown.
pub fn has_states(name: &str) -> bool {
    STATES.iter().any(|(view, _)| *view == name)
}

/// Returns the part of a view that an invited reader may see.
pub fn states(name: &str, shown: Shown) -> Shown {
    let lists = STATES.iter().find(|(view, _)| *view == name).map_or(&[][..], |(_, lists)| lists);
    let block = |block: Block| match block {
        Block::List(rows) => {
            let (_, columns) = lists.iter().find(|(title, _)| rows.title.starts_with(title))?;
            Some(Block::List(list(rows, columns)))
        }
        Block::Counts { title, facts } if NUMBERS.contains(&(name, title.as_str())) => {
            let facts = facts.into_iter().map(|mut it| {
                it.value = plain(it.value);
                it
            });
            Some(Block::Counts { title, facts: facts.collect() })
        }
        _ => None,
    };
    let blocks = shown.blocks.into_iter().filter_map(block).collect();
    Shown { title: shown.title, state: None, until: None, needs: shown.needs, blocks, next: shown.next }
}

fn list(rows: Rows, left: &[&str]) -> Rows {
    let at: Vec<usize> =
        rows.columns.iter().enumerate().filter(|(_, it)| left.contains(it)).map(|(at, _)| at).collect();
    let row = |(n, row): (usize, Row)| Row {
        key: n.to_string(),
        to: None,
        cells: at.iter().map(|at| row.cells.get(*at).cloned().map_or(Cell::None, plain)).collect(),
        commands: Vec::new(),
    };
    Rows {
        title: rows.title,
        columns: at.iter().filter_map(|at| rows.columns.get(*at).copied()).collect(),
        rows: rows.rows.into_iter().enumerate().map(row).collect(),
        more: rows.more,
        empty: Empty::new(&rows.empty.says, None),
    }
}

/// Returns a cell without words of agents and without links. The text after the colon of a state is cut, since it
/// names a tool, and a tool's maker chooses that name freely.
fn plain(cell: Cell) -> Cell {
    match cell {
        Cell::State(Word { word, tone }) => {
            let short = word.split_once(':').map_or(word.as_str(), |(before, _)| before);
            Cell::State(Word::new(short, tone))
        }
        Cell::Link { text, .. } | Cell::Text { text } | Cell::Code { text } => Cell::Text { text },
        Cell::Time { .. } | Cell::Until { .. } | Cell::Took { .. } => cell,
        Cell::Said { .. } | Cell::Place { .. } | Cell::Share { .. } | Cell::None => Cell::None,
    }
}
