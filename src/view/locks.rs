//! Holdings of agents by folder and file: locks, claimed files and announced changes, and the agents that wait for them.

use std::collections::BTreeMap;

use provost_api::wire::{HeldFile, Intent, Lock, Locks, Waiter};

use super::block::Empty;
use super::{Block, Cell, Command, Filter, Here, Line, Row, Rows, Shown, Tone, Word};

/// Most places of one intent that get a row each; the view of intents has all of them.
const PLACES_MAX: usize = 8;

/// Most agents that are named in one cell.
const NAMED_MAX: usize = 5;

/// Everything that agents hold or have announced.
#[derive(Clone, Copy, Debug)]
pub struct HeldSources<'a> {
    /// Locks, and the agents that wait for one.
    pub locks: &'a Locks,
    /// Claimed files.
    pub claims: &'a [HeldFile],
    /// Intents that are in force.
    pub intents: &'a [Intent],
}

/// Shows the holdings that pass a filter, at most `most` rows of each list. `now` is in the form of RFC 3339 in UTC,
/// as the API's times are.
pub fn locks(from: HeldSources<'_>, filter: &Filter, most: usize, now: &str) -> Shown {
    let queues = Queues::of(&from.locks.waiting);
    let mut held: Vec<(TreeOrder, Row)> = Vec::new();
    let takes =
        |it: &&Lock| filter.takes(&[&it.symbol, &it.holder, it.reason.as_deref().unwrap_or_default()]);
    held.extend(from.locks.locks.iter().filter(takes).map(|it| lock_row(it, &queues, now)));
    let claims = from.claims.iter().filter(|it| filter.takes(&[&it.file, &it.holder]));
    held.extend(claims.map(|it| claim_row(it, &queues)));
    for intent in from.intents {
        let places = places(intent);
        let taken = places.iter().filter(|at| filter.takes(&[at, &intent.agent, &intent.description]));
        held.extend(taken.map(|at| intent_row(intent, at)));
    }
    held.sort_by(|a, b| (&a.0, &a.1.key).cmp(&(&b.0, &b.1.key)));
    let waiting = from.locks.waiting.iter().filter(|it| filter.takes(&[&it.symbol, &it.agent]));
    let waiting: Vec<Row> = waiting.map(waiting_row).collect();
    let empty = |says: &str, command| match filter.is_empty() {
        true => Empty::new(says, command),
        false => Empty::new("Nothing passes the filter.", None),
    };
    let columns = ["How", "On", "Holder", "Until", "Waiting", "Purpose", "Since", "Grant"];
    let acquire = empty("No agent holds anything.", Some("provost lock acquire src/auth.ts:login"));
    let held = held.into_iter().map(|(_, row)| row).collect();
    let mut blocks = vec![list("Held, by folder and file", &columns, held, most, acquire)];
    let columns = ["For", "Agent", "Since", "Until"];
    blocks.push(list("Waiting, longest first", &columns, waiting, most, empty("No agent waits.", None)));
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

/// A place in the tree: files by folder and name, and resources behind them.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct TreeOrder {
    is_resource: bool,
    folder: String,
    file: String,
    symbol: String,
}

impl TreeOrder {
    fn of(symbol: &str) -> Self {
        if symbol.starts_with('@') {
            return Self {
                is_resource: true,
                folder: "resources".into(),
                file: String::new(),
                symbol: symbol.into(),
            };
        }
        let (path, symbol) = symbol.split_once(':').unwrap_or((symbol, ""));
        let (folder, file) = path.rsplit_once('/').map_or(("", path), |(folder, file)| (folder, file));
        let folder = if folder.is_empty() { "./".into() } else { format!("{folder}/") };
        Self { is_resource: false, folder, file: file.into(), symbol: symbol.into() }
    }

    /// The cell that groups its row.
    fn cell(&self, whole: &str) -> Cell {
        let name = match self.symbol.is_empty() {
            true => "the whole file",
            false => &self.symbol,
        };
        let under = [&self.folder, &self.file].into_iter().filter(|it| !it.is_empty());
        Cell::place(under.map(String::as_str), name, whole)
    }
}

/// The agents that wait, by the symbol that they wait for.
struct Queues<'a>(BTreeMap<&'a str, Vec<&'a str>>);

impl<'a> Queues<'a> {
    fn of(waiting: &'a [Waiter]) -> Self {
        let mut queues: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for it in waiting {
            // A lock on a whole file is in the way of each symbol in it.
            for around in around(&it.symbol) {
                queues.entry(around).or_default().push(&it.agent);
            }
        }
        Self(queues)
    }

    /// Returns the agents that wait for this symbol, or for something in it, in the order of the line.
    fn at(&self, symbol: &str) -> Cell {
        let Some(agents) = self.0.get(symbol) else { return Cell::None };
        let mut named: Vec<String> = agents.iter().take(NAMED_MAX).map(|it| (*it).to_owned()).collect();
        let more = agents.len().saturating_sub(NAMED_MAX);
        named.extend((more > 0).then(|| format!("{more} more")));
        Cell::code(&named.join(", "))
    }
}

/// Returns a symbol and everything that contains it.
fn around(symbol: &str) -> impl Iterator<Item = &str> {
    let ends = symbol.match_indices([':', '.']).map(|(at, _)| at).filter(|at| *at > 0);
    ends.chain([symbol.len()]).map(|end| &symbol[..end])
}

fn lock_row(it: &Lock, queues: &Queues<'_>, now: &str) -> (TreeOrder, Row) {
    let state = match it.until.as_str() <= now {
        true => Word::new("lock, lapsed", Tone::Bad),
        false => Word::new("lock", Tone::Moving),
    };
    let place = TreeOrder::of(&it.symbol);
    let row = Row {
        key: it.symbol.clone(),
        to: it.task.as_deref().map(super::task::path),
        cells: vec![
            Cell::State(state),
            place.cell(&it.symbol),
            Cell::code(&it.holder),
            Cell::Until { at: it.until.clone(), from: None },
            queues.at(&it.symbol),
            it.reason.as_deref().map_or(Cell::None, Cell::said),
            Cell::time(Some(&it.since)),
            Cell::text(&it.fence.to_string()),
        ],
        commands: vec![release(&it.symbol, Some(it.fence)), super::messages::write("Message", &[&it.holder])],
    };
    (place, row)
}

fn claim_row(it: &HeldFile, queues: &Queues<'_>) -> (TreeOrder, Row) {
    let word = match it.how.as_str() {
        "conflicted" => Word::new("claim, conflicted", Tone::Bad),
        "locked" => Word::new("claim, locked by the lead", Tone::Waiting),
        _ => Word::new("claim", Tone::Moving),
    };
    let message = super::messages::write("Message", &[&it.holder]);
    let place = TreeOrder::of(&it.file);
    let row = Row {
        key: format!("claim:{}", it.file),
        to: it.task.as_deref().map(super::task::path),
        cells: vec![
            Cell::State(word),
            place.cell(&it.file),
            Cell::code(&it.holder),
            Cell::None,
            queues.at(&it.file),
            Cell::None,
            Cell::time(it.since.as_deref()),
            Cell::text(&it.fence.to_string()),
        ],
        commands: release_claim(it).into_iter().chain([message]).collect(),
    };
    (place, row)
}

/// Returns the places of an intent: its symbols where they name their file, else its files.
fn places(it: &Intent) -> Vec<String> {
    let whole = it.symbols.iter().filter(|it| it.contains(':')).cloned();
    let mut places: Vec<String> = whole.collect();
    if let ([file], true) = (&it.files[..], places.is_empty()) {
        places.extend(it.symbols.iter().map(|symbol| format!("{}:{symbol}", file.path)));
    }
    if places.is_empty() {
        places.extend(it.files.iter().map(|it| it.path.clone()));
    }
    places.truncate(PLACES_MAX);
    places
}

fn intent_row(it: &Intent, at: &str) -> (TreeOrder, Row) {
    let place = TreeOrder::of(at);
    let row = Row {
        key: format!("intent:{}:{at}", it.id),
        to: Some("/intents".into()),
        cells: vec![
            Cell::State(Word::new("intent", Tone::Quiet)),
            place.cell(at),
            Cell::code(&it.agent),
            Cell::Until { at: it.expires_at.clone(), from: None },
            Cell::None,
            Cell::said(&it.description),
            Cell::time(Some(&it.declared_at)),
            Cell::None,
        ],
        commands: super::intents::commands(it),
    };
    (place, row)
}

fn waiting_row(it: &Waiter) -> Row {
    Row {
        key: format!("{}:{}", it.agent, it.symbol),
        to: it.task.as_deref().map(super::task::path),
        cells: vec![
            Cell::code(&it.symbol),
            Cell::code(&it.agent),
            Cell::time(Some(&it.since)),
            Cell::Until { at: it.until.clone(), from: None },
        ],
        commands: vec![super::waits::end(it.ticket), super::messages::write("Message", &[&it.agent])],
    }
}

/// Returns the command that releases a file of another agent. A file in conflict has none: it waits for the decision about
/// whose change counts.
fn release_claim(it: &HeldFile) -> Option<Command> {
    let word = provost_base::shell_word(&it.file);
    let line = match it.file.starts_with('-') {
        true => format!("provost claim release --force -- {word}"),
        false => format!("provost claim release {word} --force"),
    };
    let here = Here::release_claim(&it.file, it.fence);
    (it.how != "conflicted").then(|| Command::new("Release by force", line).or_here(here))
}

/// Returns the command that releases another agent's lock. A symbol that begins with a dash stands behind `--`, so that it is no option.
pub(super) fn release(symbol: &str, fence: Option<u64>) -> Command {
    let word = provost_base::shell_word(symbol);
    let line = match symbol.starts_with('-') {
        true => format!("provost unlock --force -- {word}"),
        false => format!("provost unlock {word} --force"),
    };
    Command::new("Release by force", line).or_here(Here::release(symbol, fence))
}
