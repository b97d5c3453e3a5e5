//! Results of a search by words in all repositories: lists under one heading become one list, newest first, whose
//! rows name their repository. A repository that has not answered is named.

use provost_api::wire::Found;
use provost_base::visible;

use super::block::Empty;
use super::repository::add;
use super::{Block, Cell, Fact, Line, RepositoryOverview, Row, Rows, Shown, Tone, search};

/// Shows the results for these words; `found` has for each repository an answer, or the reason why it gave none.
pub fn search_of_all(words: &str, all: &[RepositoryOverview], found: &[Result<Found, String>]) -> Shown {
    let mut shown = Shown::new("Search all", Vec::new());
    let (mut lists, mut more): (Vec<Rows>, Vec<Fact>) = (Vec::new(), Vec::new());
    for (known, found) in all.iter().zip(found) {
        let found = match found {
            Ok(found) => found,
            Err(why) => {
                shown.blocks.push(silent(known, all, why));
                continue;
            }
        };
        let of_one = known.lead.of(search(words, found));
        if found.next.is_some() || found.more_tasks {
            more.push(elsewhere(known, all, words));
        }
        for block in of_one.blocks {
            match block {
                Block::Notice(line) => {
                    let text = format!("{}: {}", known.label(all), line.text);
                    shown.blocks.push(Block::Notice(Line { text, ..line }));
                }
                Block::List(rows) if !rows.rows.is_empty() => add(&mut lists, rows, known, all),
                _ => {}
            }
        }
    }
    for list in &mut lists {
        list.rows.sort_by(|a, b| when(b).cmp(when(a)));
    }
    lists.sort_by_key(|it| !it.title.starts_with("Tasks"));
    if lists.is_empty() {
        let empty = Empty::new("Nothing has all of these words.", None);
        lists.push(Rows { title: "Found".into(), columns: Vec::new(), rows: Vec::new(), more: 0, empty });
    }
    shown.blocks.extend(lists.into_iter().map(Block::List));
    if !more.is_empty() {
        shown.blocks.push(Block::Facts { title: "There is more in".into(), facts: more });
    }
    shown
}

fn silent(known: &RepositoryOverview, all: &[RepositoryOverview], why: &str) -> Block {
    let (why, next) = known.state.why().unwrap_or((why, ""));
    let next = if next.is_empty() { String::new() } else { format!("; try: {}", visible(next)) };
    let text = format!("{} was not searched: {}{next}", known.label(all), visible(why));
    Block::Notice(Line { text, tone: Tone::Bad })
}

/// Returns a link to the same search in one repository.
fn elsewhere(known: &RepositoryOverview, all: &[RepositoryOverview], words: &str) -> Fact {
    let to = format!("{}/search?q={}", known.lead.base, super::encoded(words));
    Fact::new(known.label(all), Cell::link("search there", to))
}

fn when(row: &Row) -> &str {
    row.cells
        .iter()
        .find_map(|it| if let Cell::Time { at } = it { Some(at.as_str()) } else { None })
        .unwrap_or_default()
}
