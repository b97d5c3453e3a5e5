//! One page over all repositories: the path and the state of each, and the things that need a person in all of them.

use provost_base::limits::WEB_CELL_CHARS_MAX;
use provost_base::{look_of, visible, visible_name};

use super::block::Empty;
use super::messages::IN_A_LOOP;
use super::{Block, Cell, Command, Line, Row, Rows, Shown, Tone, Word};

/// The path of a repository's views, and the beginning of its commands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lead {
    /// The path under which its views lie.
    pub base: String,
    /// The beginning of its commands: `provost -C FOLDER`.
    pub program: String,
}

impl Lead {
    /// Returns the same view with links and commands that lead to this repository.
    #[must_use]
    pub fn of(&self, mut shown: Shown) -> Shown {
        shown.next = shown.next.map(|it| self.path(&it));
        // A browser has one subscription for a page, and it belongs to one daemon.
        shown.blocks.retain(|it| !matches!(it, Block::Push(_)));
        shown.blocks.iter_mut().for_each(|it| self.block(it));
        shown
    }

    fn path(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    fn line(&self, line: &mut String) {
        *line = in_repository(line, &self.program);
    }

    fn command(&self, it: &mut Command) {
        self.line(&mut it.line);
        it.base = Some(self.base.clone());
    }

    fn cell(&self, it: &mut Cell) {
        if let Cell::Link { to, .. } = it {
            *to = self.path(to);
        }
    }

    fn row(&self, it: &mut Row) {
        it.to = it.to.as_deref().map(|to| self.path(to));
        it.cells.iter_mut().for_each(|it| self.cell(it));
        it.commands.iter_mut().for_each(|it| self.command(it));
    }

    fn block(&self, block: &mut Block) {
        match block {
            Block::Facts { facts, .. } | Block::Counts { facts, .. } => {
                facts.iter_mut().for_each(|it| self.cell(&mut it.value));
            }
            Block::List(rows) => {
                rows.rows.iter_mut().for_each(|it| self.row(it));
                rows.empty.command.iter_mut().for_each(|it| self.line(it));
            }
            Block::Commands { commands, .. } => commands.iter_mut().for_each(|it| self.command(it)),
            Block::Answer(it) => it.next.iter_mut().for_each(|it| self.command(it)),
            Block::Enrol(it) => self.command(&mut it.code),
            Block::Notice(_)
            | Block::Words { .. }
            | Block::Delegate(_)
            | Block::EventFilter { .. }
            | Block::JournalCheck {}
            | Block::Replay { .. }
            | Block::Push(_)
            | Block::Vouch(_)
            | Block::Diff { .. }
            | Block::Graph { .. }
            | Block::Changes { .. }
            | Block::Log { .. } => {}
        }
    }
}

/// Returns a command with the beginning that it has for a repository, also where the command stands in a loop of a shell.
pub fn in_repository(line: &str, program: &str) -> String {
    if let Some(rest) = line.strip_prefix("provost ") {
        return format!("{program} {rest}");
    }
    match line.split_once(IN_A_LOOP).filter(|_| line.starts_with("for ")) {
        Some((before, rest)) => format!("{before}; do {program} {rest}"),
        None => line.to_owned(),
    }
}

/// The state of a repository's daemon, as the page over all repositories sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum State {
    /// It was found, and has not answered yet.
    Connecting,
    /// It answers.
    Live,
    /// It answered a moment ago.
    Reconnecting,
    /// It exists and does not answer: the reason, and the next command.
    Stale(String, String),
    /// No daemon runs: the next command.
    Stopped(String),
    /// It answers, but only its own page shows it: the command that opens that page.
    Apart(String),
}

/// The reason why a page over all repositories does not show one.
pub const APART: &str = "it is read at its own page, after a passkey has signed in";

impl State {
    /// Returns one word for it.
    pub fn word(&self) -> Word {
        match self {
            Self::Connecting => Word::new("connecting", Tone::Quiet),
            Self::Live => Word::new("live", Tone::Good),
            Self::Reconnecting => Word::new("reconnecting", Tone::Waiting),
            Self::Stale(..) => Word::new("stale", Tone::Bad),
            Self::Stopped(_) => Word::new("stopped", Tone::Quiet),
            Self::Apart(_) => Word::new("its own page", Tone::Quiet),
        }
    }

    /// Says why the daemon does not answer, as the end of a sentence, with the next command; `None` where it answers or may answer soon.
    pub(super) fn why(&self) -> Option<(&str, &str)> {
        match self {
            Self::Stale(why, next) => Some((why, next)),
            Self::Stopped(next) => Some(("no daemon runs", next)),
            Self::Apart(next) => Some((APART, next)),
            Self::Connecting | Self::Live | Self::Reconnecting => None,
        }
    }
}

/// A repository, and the latest state of it that the page knows.
#[derive(Clone, PartialEq, Debug)]
pub struct RepositoryOverview {
    /// An id that tells it from the others.
    pub id: String,
    /// The name that people call it by.
    pub name: String,
    /// Its folder.
    pub root: String,
    /// The path of its views, and the beginning of its commands.
    pub lead: Lead,
    /// The state of its daemon.
    pub state: State,
    /// The moment since when the daemon has this state, as RFC 3339.
    pub since: String,
    /// The things that needed a person when the daemon last answered, and the moment of that.
    pub needs: Option<(Shown, String)>,
}

impl RepositoryOverview {
    /// Returns its name, or its folder where another repository's name looks the same.
    pub(super) fn label(&self, all: &[Self]) -> String {
        let look = look_of(&visible(&self.name));
        let is_alone = all.iter().filter(|it| look_of(&visible(&it.name)) == look).count() == 1;
        visible_name(if is_alone { &self.name } else { &self.root }, WEB_CELL_CHARS_MAX)
    }

    fn link(&self, all: &[Self]) -> Cell {
        Cell::link(&self.label(all), format!("{}/", self.lead.base))
    }
}

/// Shows all repositories; those that need a person come first.
pub fn repositories(all: &[RepositoryOverview]) -> Shown {
    let mut rows: Vec<(usize, Row)> = all.iter().map(|it| (count(it), row(it, all))).collect();
    rows.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    let columns = vec!["State", "Repository", "Needs you", "Folder", "Since"];
    let empty = Empty::new("No daemon of yours runs.", Some("provost up"));
    let rows = rows.into_iter().map(|it| it.1).collect();
    let list = Rows { title: "Repositories".into(), columns, rows, more: 0, empty };
    Shown { needs: Some(all.iter().map(count).sum()), ..Shown::new("Repositories", vec![Block::List(list)]) }
}

fn count(it: &RepositoryOverview) -> usize {
    it.needs.as_ref().and_then(|(shown, _)| shown.needs).unwrap_or(0)
}

fn row(it: &RepositoryOverview, all: &[RepositoryOverview]) -> Row {
    let needs = match (&it.state, &it.needs) {
        (State::Live, Some(_)) => Cell::text(&count(it).to_string()),
        _ => Cell::None,
    };
    let look = it.state.why().map(|(_, next)| Command::new("Look", next));
    Row {
        key: it.id.clone(),
        to: Some(format!("{}/", it.lead.base)),
        cells: vec![
            Cell::State(it.state.word()),
            Cell::text(&it.label(all)),
            needs,
            Cell::code(&it.root),
            Cell::time(Some(&it.since)),
        ],
        commands: look.into_iter().collect(),
    }
}

/// The heading of the list that is ordered by the end of its rows over all repositories.
const BY_THE_END: &str = "Waiting for your word";

/// Shows the things that need a person in all repositories: lists under one heading become one list, whose rows name
/// their repository. The last known rows of a daemon that does not answer stay, without actions.
pub fn needs_of_all(all: &[RepositoryOverview]) -> Shown {
    let mut shown = Shown::new("Needs you", Vec::new());
    shown.needs = Some(all.iter().map(count).sum());
    let mut lists: Vec<Rows> = Vec::new();
    for known in all {
        shown.blocks.extend(notice(known, all));
        let Some((needs, _)) = &known.needs else { continue };
        let is_live = known.state == State::Live;
        for block in known.lead.of(needs.clone()).blocks {
            match block {
                Block::Notice(line) if is_live => {
                    let text = format!("{}: {}", known.label(all), line.text);
                    shown.blocks.push(Block::Notice(Line { text, ..line }));
                }
                Block::List(rows) => add(&mut lists, rows, known, all),
                _ => {}
            }
        }
    }
    lists.sort_by_key(|it| it.title != BY_THE_END);
    for list in lists.iter_mut().filter(|it| it.title == BY_THE_END) {
        list.rows.sort_by(|a, b| ends(a).cmp(&ends(b)));
    }
    if all.is_empty() {
        let empty = Empty::new("No daemon of yours runs.", Some("provost up"));
        lists.push(Rows { title: BY_THE_END.into(), columns: Vec::new(), rows: Vec::new(), more: 0, empty });
    }
    shown.blocks.extend(lists.into_iter().map(Block::List));
    shown
}

/// Returns the moment at which a row ends by itself; rows that do not end sort last.
fn ends(row: &Row) -> (bool, &str) {
    let end = row.cells.iter().find_map(|it| match it {
        Cell::Until { at, .. } => Some(at.as_str()),
        _ => None,
    });
    (end.is_none(), end.unwrap_or_default())
}

fn notice(known: &RepositoryOverview, all: &[RepositoryOverview]) -> Option<Block> {
    let (why, next) = known.state.why()?;
    let kept = match &known.needs {
        Some((_, at)) => format!("; what is shown of it is of {at}"),
        None => String::new(),
    };
    let text = format!("{}: {}{kept}; try: {}", known.label(all), visible(why), visible(next));
    let tone =
        if matches!(known.state, State::Stopped(_) | State::Apart(_)) { Tone::Quiet } else { Tone::Bad };
    Some(Block::Notice(Line { text, tone }))
}

/// Adds rows of a repository to the list under the same heading.
pub(super) fn add(
    lists: &mut Vec<Rows>,
    mut rows: Rows,
    known: &RepositoryOverview,
    all: &[RepositoryOverview],
) {
    for row in &mut rows.rows {
        row.key = format!("{}:{}", known.id, row.key);
        row.cells.insert(1.min(row.cells.len()), known.link(all));
        if known.state != State::Live {
            row.commands.iter_mut().for_each(|it| it.here = None);
        }
    }
    match lists.iter_mut().find(|it| it.title == rows.title) {
        Some(list) => {
            list.rows.append(&mut rows.rows);
            list.more += rows.more;
            // The newest event over all repositories; all daemons write moments in one form.
            let newest = [list.empty.last.take(), rows.empty.last].into_iter().flatten();
            list.empty.last = newest.max_by(|a, b| a.1.cmp(&b.1));
        }
        None => {
            rows.columns.insert(1.min(rows.columns.len()), "Repository");
            lists.push(rows);
        }
    }
}
