//! Branches that a merge has set aside.

use provost_api::wire::Merge;
use provost_base::{shell_word, visible, visible_name};

use super::needs::is_of_today;
use super::{Cell, Command, Row, Tone, Word};

/// Returns the entries that were set aside within a day, and whose branches are in no newer entry of the queue;
/// `now_ms` is in milliseconds since 1970.
pub fn set_aside(entries: &[Merge], now_ms: i64) -> Vec<&Merge> {
    let is_newest = |it: &Merge| {
        !entries
            .iter()
            .any(|other| other.number > it.number && other.branch == it.branch && other.into == it.into)
    };
    let is_meant = |it: &&Merge| it.state == "set_aside" && is_of_today(&it.at, now_ms) && is_newest(it);
    entries.iter().filter(is_meant).collect()
}

/// Returns the row of one entry, with the command that merges it again.
pub(super) fn row(it: &Merge) -> Row {
    let cause = it
        .what
        .as_deref()
        .map_or_else(|| "set aside".into(), |it| format!("set aside: {}", visible_name(it, 40)));
    let into = match it.into.as_str() {
        "" => String::new(),
        into => format!(" --into {}", shell_word(into)),
    };
    let branch = shell_word(&it.branch);
    let mut commands = vec![
        Command::new("Look", format!("provost merge {branch}{into} --preview")),
        Command::new("Merge it again", format!("provost merge {branch}{into}")),
        Command::new("See the queue", "provost merge queue list"),
    ];
    commands.extend(it.told.iter().map(|agent| super::messages::write("Message", &[agent])));
    Row {
        key: format!("aside:{}", it.number),
        to: None,
        cells: vec![
            Cell::State(Word::new(cause, Tone::Bad)),
            Cell::code(&visible(&it.branch)),
            it.why.as_deref().map_or(Cell::None, Cell::said),
            it.told.as_deref().map_or(Cell::None, Cell::code),
            Cell::time(Some(&it.at)),
        ],
        commands,
    }
}
