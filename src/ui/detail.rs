//! The detail: one whole approval, task, or row whose columns did not suffice; and its lines at a width.

use std::collections::BTreeMap;

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::Theme;
use super::ask::Both;
use super::code::drawn;
use super::text::{clock, cut, one_line, padded, shown, time_left, took, width, wrapped};
use super::theme::sign;
use provost_view::{Block, Cell, Command, DiffFile, Fact, LineMarks, Rows, Shown, Tone};

/// Most lines of a log that are kept; earlier ones are left out, and the detail says so.
pub(crate) const LOG_LINES_MAX: usize = 5_000;

/// The greatest width of the column of facts' names.
const NAMES_MAX: usize = 22;

/// The subject of a detail.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum About {
    Approval(u64),
    Task(String),
    Event(u64),
    /// The changes that two agents have made in a file.
    Both(Both),
    /// A check of the whole journal.
    Check,
    /// The decisions that ready-made rules would have made.
    Replay(String),
    /// A row without a view of its own.
    Row,
}

/// A part of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    Facts,
    Log,
    Changes,
    Timeline,
}

impl Part {
    pub(crate) const ALL: [Self; 4] = [Self::Facts, Self::Log, Self::Changes, Self::Timeline];

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Facts => "Facts",
            Self::Log => "Log",
            Self::Changes => "Changes",
            Self::Timeline => "Timeline",
        }
    }
}

/// Whether a person at this terminal may answer an approval.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Answerable {
    /// The person may answer here.
    Here,
    /// Only a passkey may answer, on the page.
    Passkey,
    /// Only others may answer, or it does not wait any more.
    No,
}

/// The output of a worker.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Log {
    pub lines: Vec<String>,
    /// The number of lines that were left out.
    pub lost: usize,
    pub next: u64,
    pub done: bool,
    pub error: Option<String>,
    pub read: bool,
}

impl Log {
    /// Adds text, which may begin within a line.
    pub(crate) fn add(&mut self, text: &str) {
        let mut pieces = text.split('\n');
        if let (Some(first), Some(last)) = (pieces.next(), self.lines.last_mut()) {
            last.push_str(first);
        } else {
            self.lines.push(text.split('\n').next().unwrap_or_default().to_owned());
        }
        self.lines.extend(pieces.map(str::to_owned));
        let over = self.lines.len().saturating_sub(LOG_LINES_MAX);
        self.lines.drain(..over);
        self.lost += over;
    }
}

/// An open detail.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Detail {
    pub repository: usize,
    pub about: About,
    pub shown: Option<Shown>,
    pub error: Option<String>,
    pub part: Part,
    pub changes: Option<Result<Block, String>>,
    pub log: Log,
    pub follows: bool,
    /// The digest that an answer carries, where the approval waits.
    pub digest: Option<String>,
    pub answerable: Answerable,
    /// Whether its rule takes a passkey.
    pub takes_passkey: bool,
    /// The beginning of commands for this repository.
    pub program: String,
    pub scroll: usize,
    /// The lines that are drawn, made for one width.
    pub lines: Vec<Line<'static>>,
    /// A number that rises with each change of the content.
    version: u64,
    /// The state that the lines were made for.
    made_for: Option<MadeFor>,
    /// Long blocks without countdowns, which need not be made again each second: the number of the block, the columns, and its lines.
    long: Vec<(usize, usize, Vec<Line<'static>>)>,
}

/// Everything that the lines depend on. The second counts only where a countdown is visible.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct MadeFor {
    version: u64,
    columns: usize,
    look: Theme,
    part: Part,
    second: Option<i64>,
}

impl Detail {
    pub(crate) fn new(repository: usize, about: About, program: String) -> Self {
        Self {
            repository,
            about,
            shown: None,
            error: None,
            part: Part::Facts,
            changes: None,
            log: Log::default(),
            follows: true,
            digest: None,
            answerable: Answerable::No,
            takes_passkey: false,
            program,
            scroll: 0,
            lines: Vec::new(),
            version: 0,
            made_for: None,
            long: Vec::new(),
        }
    }

    /// Has the lines made again, since the content has changed.
    pub(crate) fn changed(&mut self) {
        self.version += 1;
        self.long.clear();
    }

    pub(crate) fn is_task(&self) -> bool {
        matches!(self.about, About::Task(_))
    }

    /// Checks whether a countdown is visible in it.
    pub(crate) fn counts_down(&self) -> bool {
        self.shown.as_ref().is_some_and(|it| it.until.is_some())
    }

    /// Returns the title above it.
    pub(crate) fn title(&self) -> String {
        match (&self.shown, &self.about) {
            (Some(shown), _) => one_line(&shown.title),
            (None, About::Approval(id)) => format!("Approval {id}"),
            (None, About::Task(id)) => format!("Task {}", one_line(id)),
            (None, About::Event(seq)) => format!("Event {seq}"),
            (None, About::Both(it)) => format!("Both changes of {}", one_line(&it.file)),
            (None, About::Check) => "Check of the journal".into(),
            (None, About::Replay(rules)) => format!("Rules {}", one_line(rules)),
            (None, About::Row) => String::new(),
        }
    }

    /// Returns the commands about it.
    pub(crate) fn commands(&self) -> Vec<Command> {
        let blocks = self.shown.iter().flat_map(|it| &it.blocks);
        let found = blocks.filter_map(|block| match block {
            Block::Commands { commands, .. } => Some(commands.clone()),
            _ => None,
        });
        found.flatten().collect()
    }

    /// Makes its lines for a width, unless they are up to date.
    pub(crate) fn lay_out(&mut self, columns: usize, look: Theme, now_ms: i64) {
        let second = self.counts_down().then(|| now_ms.div_euclid(1000));
        let made_for = MadeFor { version: self.version, columns, look, part: self.part, second };
        if self.made_for == Some(made_for) {
            return;
        }
        if self.made_for.is_some_and(|it| it.look != look) {
            self.long.clear();
        }
        let long = std::mem::take(&mut self.long);
        let mut out = Lines { out: Vec::new(), columns, look, now_ms, program: self.program.clone(), long };
        match self.part {
            Part::Facts => self.facts(&mut out),
            Part::Log => self.log_lines(&mut out),
            Part::Changes => match &self.changes {
                None => out.quiet("Reading the changes …"),
                Some(Err(why)) => out.paragraph(why, look.tone(Tone::Bad)),
                Some(Ok(block)) => out.block(block),
            },
            Part::Timeline => self.shown.iter().flat_map(|it| &it.blocks).for_each(|block| {
                if let Block::List(rows) = block
                    && rows.title == "Timeline"
                {
                    out.list(rows);
                }
            }),
        }
        (self.lines, self.long, self.made_for) = (out.out, out.long, Some(made_for));
    }

    fn facts(&self, out: &mut Lines) {
        if let Some(error) = &self.error {
            out.paragraph(error, out.look.tone(Tone::Bad));
        }
        let Some(shown) = &self.shown else {
            if self.error.is_none() {
                out.quiet("Asking …");
            }
            return;
        };
        if let Some(state) = &shown.state {
            let left = shown.until.as_ref().map(|at| format!(", {}", time_left(at, out.now_ms)));
            let text = format!("{} {}{}", sign(state.tone), one_line(&state.word), left.unwrap_or_default());
            out.line(text, out.look.tone(state.tone));
            out.blank();
        }
        let is_approval = matches!(self.about, About::Approval(_));
        for (n, block) in shown.blocks.iter().enumerate() {
            match block {
                Block::Words { .. } | Block::Diff { .. } => out.long_block(n, block),
                // Keys answer it here; that block is for the page.
                Block::Commands { .. } if is_approval => self.how_to_answer(out),
                Block::Changes { .. } | Block::Log { .. } => {}
                Block::List(rows) if self.is_task() && rows.title == "Timeline" => {}
                block => out.block(block),
            }
        }
    }

    fn how_to_answer(&self, out: &mut Lines) {
        let text = match self.answerable {
            Answerable::Here => "Press a to approve, or d to deny with a reason.",
            Answerable::Passkey => {
                "Only an answer that is signed with a passkey counts: press a for the address."
            }
            Answerable::No => "It is not yours to answer.",
        };
        out.paragraph(text, out.look.heading());
        out.blank();
    }

    fn log_lines(&self, out: &mut Lines) {
        if self.log.lost > 0 {
            out.quiet(&format!("{} lines before these are left out.", self.log.lost));
        }
        if let Some(error) = &self.log.error {
            out.paragraph(error, out.look.tone(Tone::Bad));
        }
        for line in &self.log.lines {
            for piece in wrapped(line, out.columns) {
                out.line(piece, Style::new());
            }
        }
        let end = match (self.log.read, self.log.done, self.log.lines.is_empty()) {
            (false, ..) => "Reading …",
            (true, true, true) => "Nothing was written, or it is kept no more.",
            (true, true, false) => "-- its worker has ended --",
            (true, false, _) => "-- more may come --",
        };
        if self.log.error.is_none() {
            out.quiet(end);
        }
    }
}

/// Lines under construction.
struct Lines {
    out: Vec<Line<'static>>,
    columns: usize,
    look: Theme,
    now_ms: i64,
    program: String,
    long: Vec<(usize, usize, Vec<Line<'static>>)>,
}

impl Lines {
    /// Adds a long block without a countdown: its lines are made once for a width.
    fn long_block(&mut self, number: usize, block: &Block) {
        let is_it = |it: &&(usize, usize, Vec<Line<'static>>)| (it.0, it.1) == (number, self.columns);
        if let Some((_, _, lines)) = self.long.iter().find(is_it) {
            self.out.extend(lines.iter().cloned());
            return;
        }
        let from = self.out.len();
        self.block(block);
        self.long.retain(|it| it.0 != number);
        self.long.push((number, self.columns, self.out[from..].to_vec()));
    }

    fn line(&mut self, text: impl Into<String>, style: Style) {
        self.out.push(Line::styled(text.into(), style));
    }

    fn blank(&mut self) {
        self.out.push(Line::default());
    }

    fn quiet(&mut self, text: &str) {
        self.paragraph(text, self.look.quiet());
    }

    fn paragraph(&mut self, text: &str, style: Style) {
        for piece in wrapped(&shown(text), self.columns) {
            self.line(piece, style);
        }
    }

    fn block(&mut self, block: &Block) {
        match block {
            Block::Notice(line) => {
                self.paragraph(&format!("{} {}", sign(line.tone), line.text), self.look.tone(line.tone));
            }
            Block::Facts { title, facts } => {
                self.line(one_line(title), self.look.heading());
                self.facts(facts);
            }
            Block::Counts { title, facts } => {
                self.line(one_line(title), self.look.heading());
                let count = |it: &Fact| {
                    format!("{} {}", cell(&it.value, self.look, self.now_ms).0, one_line(&it.name))
                };
                let all: Vec<String> = facts.iter().map(count).collect();
                self.paragraph(&format!("  {}", all.join("  ")), Style::new());
            }
            Block::Words { title, text, by_person, .. } => {
                self.line(one_line(title), self.look.heading());
                self.words(text, *by_person);
            }
            Block::List(rows) => self.list(rows),
            Block::Diff { title, files } => {
                self.line(one_line(title), self.look.heading());
                if files.is_empty() {
                    self.quiet("Nothing.");
                }
                files.iter().for_each(|it| self.file(it));
            }
            Block::Commands { title, commands } => {
                self.line(one_line(title), self.look.heading());
                commands.iter().for_each(|it| self.command(it));
            }
            // A browser signs, and the screen answers by its keys; the list beside a drawing has the same content.
            Block::Answer(_)
            | Block::Enrol(_)
            | Block::Delegate(_)
            | Block::EventFilter { .. }
            | Block::JournalCheck {}
            | Block::Replay { .. }
            | Block::Push(_)
            | Block::Vouch(_)
            | Block::Graph { .. }
            | Block::Changes { .. }
            | Block::Log { .. } => return,
        }
        self.blank();
    }

    fn facts(&mut self, facts: &[Fact]) {
        let names = facts.iter().map(|it| width(&it.name)).max().unwrap_or(0).min(NAMES_MAX);
        for fact in facts {
            let (text, style) = cell(&fact.value, self.look, self.now_ms);
            let rest = self.columns.saturating_sub(names + 4).max(10);
            for (n, piece) in wrapped(&text, rest).into_iter().enumerate() {
                let name = if n == 0 { one_line(&fact.name) } else { String::new() };
                let name = Span::styled(format!("  {}  ", padded(&name, names)), self.look.quiet());
                self.out.push(Line::from(vec![name, Span::styled(piece, style)]));
            }
        }
    }

    /// Adds an agent's words behind a bar, which no text can draw at the edge.
    fn words(&mut self, text: &str, by_person: bool) {
        let whose = if by_person { "A person has written this:" } else { "An agent has written this:" };
        self.line(whose, self.look.quiet());
        for piece in wrapped(&shown(text), self.columns.saturating_sub(2)) {
            let bar = Span::styled("│ ", self.look.tone(Tone::Waiting));
            self.out.push(Line::from(vec![bar, Span::raw(piece)]));
        }
    }

    fn list(&mut self, rows: &Rows) {
        self.line(one_line(&rows.title), self.look.heading());
        if rows.rows.is_empty() {
            self.quiet(&rows.empty.says);
        }
        for row in &rows.rows {
            let Some((last, first)) = row.cells.split_last() else { continue };
            let mut spans = vec![Span::raw("  ")];
            for it in first {
                let (text, style) = cell(it, self.look, self.now_ms);
                spans.extend([Span::styled(cut(&text, 40), style), Span::raw("  ")]);
            }
            self.out.push(Line::from(spans));
            let (text, style) = cell(last, self.look, self.now_ms);
            for piece in wrapped(&text, self.columns.saturating_sub(6)) {
                self.out.push(Line::from(vec![Span::raw("      "), Span::styled(piece, style)]));
            }
        }
        if rows.more > 0 {
            self.quiet(&format!("{} more", rows.more));
        }
    }

    fn file(&mut self, file: &DiffFile) {
        let head = format!("{}  +{} -{}", one_line(&file.path), file.added, file.removed);
        self.line(head, self.look.heading());
        let marks: BTreeMap<usize, &LineMarks> =
            file.marks.iter().filter_map(|it| Some((usize::try_from(it.0).ok()?, it))).collect();
        for (at, it) in file.lines.iter().enumerate() {
            let number = it.after.or(it.before).map(|it| it.to_string()).unwrap_or_default();
            let rest = self.columns.saturating_sub(8).max(10);
            let pieces = drawn(it, marks.get(&at).copied(), self.look, rest);
            for (n, piece) in pieces.into_iter().enumerate() {
                let number = if n == 0 { &*number } else { "" };
                let number = Span::styled(format!("{number:>6}  "), self.look.quiet());
                self.out.push(Line::from_iter(std::iter::once(number).chain(piece)));
            }
        }
        if file.more > 0 {
            self.quiet(&format!("{} more lines", file.more));
        }
    }

    fn command(&mut self, it: &Command) {
        let line = for_repository(&it.line, &self.program);
        self.line(format!("  {}: {}", one_line(&it.does), one_line(&line)), Style::new());
        if let Some(why) = &it.not_yours {
            self.quiet(&format!("    {why}"));
        }
    }
}

/// Returns a command for a repository that may be another one than that around the terminal.
pub(crate) fn for_repository(line: &str, program: &str) -> String {
    provost_view::in_repository(line, program)
}

/// Returns the text of a cell and its style; line ends stay.
pub(crate) fn cell(it: &Cell, look: Theme, now_ms: i64) -> (String, Style) {
    match it {
        Cell::Text { text } | Cell::Code { text } | Cell::Place { text, .. } => (shown(text), Style::new()),
        Cell::Said { text } => (shown(text), look.said()),
        Cell::State(word) => (format!("{} {}", sign(word.tone), one_line(&word.word)), look.tone(word.tone)),
        Cell::Time { at } => (clock(at, now_ms), Style::new()),
        Cell::Until { at, .. } => {
            let soon = super::text::seconds_until(at, now_ms).is_some_and(|it| it < 60);
            (time_left(at, now_ms), if soon { look.tone(Tone::Bad) } else { Style::new() })
        }
        Cell::Took { from, to } => (took(from, to.as_deref(), now_ms), Style::new()),
        Cell::Link { text, .. } => (shown(text), look.link()),
        Cell::Share { text, .. } => (shown(text), Style::new()),
        Cell::None => (String::new(), Style::new()),
    }
}
