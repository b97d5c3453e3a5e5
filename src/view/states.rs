//! What is left of a view for a reader who was invited: states, names of agents and workers, and times.
//!
//! Everything that is shown is listed here. A view, a list, a column or a kind of cell that is not is left out: what agents have
//! written, paths, symbols, commands, differences and logs. What tells rows from each other is made new, since it may have a path in it.

use super::block::Empty;
use super::{Block, Cell, Row, Rows, Shown, Word};

/// A list of a view, by the beginning of its heading, and the columns that are left of it.
type Left = (&'static str, &'static [&'static str]);

/// What is left of each view.
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

/// The facts of numbers alone that are left, by view and heading.
const NUMBERS: &[(&str, &str)] = &[("tasks", "How many")];

/// Whether anything is left of the view of this name.
pub fn has_states(name: &str) -> bool {
    STATES.iter().any(|(view, _)| *view == name)
}

/// The view of this name for a reader who was invited.
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

/// A cell without words of agents, and without what leads elsewhere. Behind the colon of a state stands which tool is asked for, and a
/// tool is called as its maker likes.
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
