//! Results of a search by words: tasks, messages and events, each with a link to it.

use provost_api::wire::{Found, Hit};

use super::block::Empty;
use super::{Block, Cell, Line, Row, Rows, Shown, Tone, Word, encoded, of_task, task};

/// Shows the results for these words.
pub fn search(words: &str, found: &Found) -> Shown {
    let mut blocks = Vec::new();
    if found.not_yet > 0 {
        let text = format!(
            "The last {} events of the journal cannot be searched yet: the index is made in the background.",
            found.not_yet
        );
        blocks.push(Block::Notice(Line { text, tone: Tone::Waiting }));
    }
    let of = |kind: &str| -> Vec<Row> { found.hits.iter().filter(|it| it.kind == kind).map(row).collect() };
    let (tasks, mut rest) = (of("task"), of("message"));
    rest.extend(of("event"));
    // Messages and events stand together, newest first, so that a page is a span of the journal.
    rest.sort_by_key(|it| std::cmp::Reverse(it.key.rsplit(':').next().and_then(|it| it.parse::<u64>().ok())));
    let empty = || Empty::new("Nothing has all of these words.", None);
    if !tasks.is_empty() || rest.is_empty() {
        blocks.push(Block::List(Rows {
            title: if found.more_tasks { "Tasks, the newest of many".into() } else { "Tasks".into() },
            columns: vec!["State", "Task", "Asked by", "Found", "Changed"],
            rows: tasks,
            more: 0,
            empty: empty(),
        }));
    }
    blocks.push(Block::List(Rows {
        title: "Messages and events".into(),
        columns: vec!["What", "No.", "Who", "Found", "When"],
        rows: rest,
        more: 0,
        empty: empty(),
    }));
    let mut shown = Shown::new("Search", blocks);
    shown.next = found.next.map(|it| format!("/search?q={}&before={it}", encoded(words)));
    shown
}

/// Says why a text cannot be searched for yet.
pub fn no_search(why: &str) -> Shown {
    let text = provost_base::visible(why);
    let mut shown = Shown::new("Search", vec![Block::Notice(Line { text, tone: Tone::Quiet })]);
    shown.blocks.push(Block::Notice(Line {
        text: "All words have to be there. \"Words in quotation marks\" stand together, and log* is the beginning of a word."
            .into(),
        tone: Tone::Quiet,
    }));
    shown
}

fn row(it: &Hit) -> Row {
    let is_task = it.kind == "task";
    let to = match (it.kind.as_str(), &it.task, it.message, it.seq) {
        ("task", Some(task), ..) => Some(task::path(task)),
        ("message", _, Some(n), _) => Some(super::messages::path(n)),
        (_, _, _, Some(seq)) => Some(format!("/e?before={}", seq.saturating_add(1))),
        _ => None,
    };
    let number = it.message.or(it.seq).map(|it| it.to_string()).unwrap_or_default();
    let (state, name) = match is_task {
        true => (of_task(&it.what), Cell::code(it.task.as_deref().unwrap_or_default())),
        false => (Word::new(provost_base::visible(&it.what), Tone::Quiet), Cell::text(&number)),
    };
    let place = it.seq.map_or_else(|| it.task.clone().unwrap_or_default(), |it| it.to_string());
    Row {
        key: format!("{}:{place}", it.kind),
        to,
        cells: vec![
            Cell::State(state),
            name,
            Cell::code(&it.actor),
            Cell::said(&it.excerpt),
            Cell::time(Some(&it.at)),
        ],
        commands: Vec::new(),
    }
}
