//! The shapes that are drawn: a view is a title and blocks, one below the other.

use provost_base::limits::WEB_CELL_CHARS_MAX;
use provost_base::{visible, visible_name};
use serde::Serialize;

use super::{Drawing, Word};

/// A view.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Shown {
    /// The heading: the name of the thing that the view shows.
    pub title: String,
    /// The state of the thing that the view is about; absent for lists.
    pub state: Option<Word>,
    /// The moment at which this state ends by itself.
    pub until: Option<String>,
    /// The number of things that wait for a person, where the view counts them.
    pub needs: Option<usize>,
    /// The parts of the view, in order.
    pub blocks: Vec<Block>,
    /// The path of the next page, where this one does not have all.
    pub next: Option<String>,
}

impl Shown {
    /// Makes a view of these blocks.
    pub fn new(title: impl Into<String>, blocks: Vec<Block>) -> Self {
        Self { title: title.into(), state: None, until: None, needs: None, blocks, next: None }
    }
}

/// A part of a view.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(tag = "block", rename_all = "snake_case")]
pub enum Block {
    /// A sentence that cannot be missed.
    Notice(Line),
    /// Facts that the daemon knows.
    Facts {
        /// The heading.
        title: String,
        /// In the order in which they are read.
        facts: Vec<Fact>,
    },
    /// Words of an agent or a person: marked, and never a fact.
    Words {
        /// The heading, which says whose words they are.
        title: String,
        /// The text, with hidden characters shown.
        text: String,
        /// Whether a page shows the heading alone until a person opens it, since the view already says the same above.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        folded: bool,
        /// Whether a person has written it.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        by_person: bool,
    },
    /// Numbers beside each other, each with its name.
    Counts {
        /// The heading.
        title: String,
        /// In the order in which they are read.
        facts: Vec<Fact>,
    },
    /// A list.
    List(Rows),
    /// A difference, file by file.
    Diff {
        /// The heading.
        title: String,
        /// The files.
        files: Vec<DiffFile>,
    },
    /// A drawing of the same things as a list of this view.
    Graph {
        /// The heading.
        title: String,
        /// The drawing.
        drawing: Drawing,
    },
    /// Commands to type, each with what it does.
    Commands {
        /// The heading.
        title: String,
        /// In the order of use.
        commands: Vec<Command>,
    },
    /// The changes of a task, which are read apart from the view: they are as large as the files.
    Changes {
        /// The task.
        task: String,
    },
    /// The place where a passkey answers an approval.
    Answer(Answering),
    /// The form in which a person delegates a task, signed with a passkey.
    Delegate(Delegating),
    /// The form in which a person chooses the events that are shown.
    EventFilter {
        /// All kinds of events.
        kinds: Vec<&'static str>,
    },
    /// The place where a passkey is enrolled.
    Enrol(Enrolling),
    /// The place where this browser subscribes to its push service.
    Push(Subscribing),
    /// The place where a known passkey signs for a new one of another page.
    Vouch(Box<Vouching>),
    /// The place where a check of the whole journal is started, and its findings are shown.
    JournalCheck {},
    /// The form in which other rules are asked about the requests on record.
    Replay {
        /// Names of the rules that come with the program.
        ready_made: Vec<&'static str>,
        /// The number of requests that they are asked about, where the person types no number.
        last: usize,
    },
    /// The output of a task's worker, which is read apart from the view.
    Log {
        /// The task.
        task: String,
        /// Whether more may come.
        live: bool,
    },
}

/// A sentence, and how grave it is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Line {
    /// The sentence.
    pub text: String,
    /// Its tone.
    pub tone: super::Tone,
}

/// A name and the value under it; a fact without a name belongs to the one before it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Fact {
    /// The name.
    pub name: String,
    /// The fact.
    pub value: Cell,
}

impl Fact {
    /// Returns a fact that is a text.
    pub fn text(name: impl Into<String>, text: &str) -> Self {
        Self { name: name.into(), value: Cell::whole(text) }
    }

    /// Returns a fact that is any cell.
    pub fn new(name: impl Into<String>, value: Cell) -> Self {
        Self { name: name.into(), value }
    }
}

/// The content of one place: a column of a row, or the value of a fact.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Cell {
    /// A text that the daemon vouches for.
    Text {
        /// The text, with hidden characters shown.
        text: String,
    },
    /// A text that an agent has written.
    Said {
        /// The text, with hidden characters shown.
        text: String,
    },
    /// A name or a path.
    Code {
        /// The text, with hidden characters shown.
        text: String,
    },
    /// A name or a path in a tree: rows in the same folder and file stand together.
    Place {
        /// The folders, files or symbols that contain it, the outermost first.
        under: Vec<String>,
        /// Its name in there, with hidden characters shown.
        name: String,
        /// The whole name or path, with hidden characters shown.
        text: String,
    },
    /// A state.
    State(Word),
    /// A moment, in the form of RFC 3339.
    Time {
        /// The moment.
        at: String,
    },
    /// A moment at which something ends by itself.
    Until {
        /// The moment.
        at: String,
        /// The beginning of the time, where the share that is left of it matters.
        #[serde(skip_serializing_if = "Option::is_none")]
        from: Option<String>,
    },
    /// The duration of something that has ended, or that goes on.
    Took {
        /// When it began, in the form of RFC 3339.
        from: String,
        /// When it ended; absent while it goes on.
        to: Option<String>,
    },
    /// A text that leads to another view.
    Link {
        /// The text, with hidden characters shown.
        text: String,
        /// The path of the view.
        to: String,
    },
    /// A number, and its share of the largest number in its column.
    Share {
        /// The number.
        text: String,
        /// Its share of the largest, in thousandths.
        of_thousand: u16,
    },
    /// An empty place.
    None,
}

impl Cell {
    /// Returns a text in one line, cut where it is long.
    pub fn text(text: &str) -> Self {
        Self::Text { text: line(text) }
    }

    /// Returns a text of any length.
    pub fn whole(text: &str) -> Self {
        Self::Text { text: visible(text) }
    }

    /// Returns words of an agent in one line, cut where they are long.
    pub fn said(text: &str) -> Self {
        Self::Said { text: line(text) }
    }

    /// Returns a name or a path.
    pub fn code(text: &str) -> Self {
        Self::Code { text: line(text) }
    }

    /// Returns a name inside the places `under`, the outermost first; `whole` is the name with all of them.
    pub(crate) fn place<'a>(under: impl Iterator<Item = &'a str>, name: &str, whole: &str) -> Self {
        Self::Place { under: under.map(line).collect(), name: line(name), text: line(whole) }
    }

    /// Returns a moment, if there is one.
    pub fn time(at: Option<&str>) -> Self {
        at.map_or(Self::None, |at| Self::Time { at: at.into() })
    }

    /// Returns a text that leads to the view at this path.
    pub fn link(text: &str, to: String) -> Self {
        Self::Link { text: line(text), to }
    }

    /// Returns a text, if there is one.
    pub fn maybe(text: Option<&str>) -> Self {
        text.map_or(Self::None, Self::text)
    }
}

/// Returns the first line of a text with hidden characters shown, cut at the bound of a cell.
fn line(text: &str) -> String {
    let first = text.lines().find(|it| !it.trim().is_empty()).unwrap_or_default();
    let shown = visible_name(first, WEB_CELL_CHARS_MAX);
    match text.trim_end().lines().nth(1) {
        Some(_) if !shown.ends_with('…') => format!("{shown} …"),
        _ => shown,
    }
}

/// A list.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Rows {
    /// The heading.
    pub title: String,
    /// The headings of the columns.
    pub columns: Vec<&'static str>,
    /// The rows, in order.
    pub rows: Vec<Row>,
    /// The number of rows that are left out after those.
    pub more: usize,
    /// The text in place of rows, where there are no rows.
    pub empty: Empty,
}

/// The text in place of a list that has no rows.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Empty {
    /// A sentence that says which rows are missing.
    pub says: String,
    /// A command that makes such a row.
    pub command: Option<String>,
    /// The last event of this kind, and its moment in the form of RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<(String, String)>,
}

impl Empty {
    /// Makes it with this sentence, and with the command that makes a row where a person can make one.
    pub fn new(says: &str, command: Option<&str>) -> Self {
        Self { says: says.into(), command: command.map(str::to_owned), last: None }
    }

    /// The same, with the moment of the last such event where one has happened.
    #[must_use]
    pub(crate) fn with_last(self, what: &str, at: Option<&str>) -> Self {
        Self { last: at.map(|at| (what.to_owned(), at.to_owned())), ..self }
    }
}

/// A row.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Row {
    /// A name that tells the row from the others, and stays when the row changes.
    pub key: String,
    /// The path of the view about it.
    pub to: Option<String>,
    /// A cell for each column.
    pub cells: Vec<Cell>,
    /// The commands about it, for a terminal.
    pub commands: Vec<Command>,
}

/// A command to type.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Command {
    /// The action of the command, in a word or two.
    pub does: String,
    /// The command.
    pub line: String,
    /// The reason why the reader cannot use it; `None` where the reader can.
    pub not_yours: Option<String>,
    /// The action of a page that does the same, signed with a passkey.
    pub here: Option<Here>,
    /// The path under which the repository of the command lies, on a page over all repositories.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
}

/// An action that a passkey signs, where a page can ask for it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Here {
    /// The answer to an approval; the page shows the whole approval first.
    Answer {
        /// The number of the approval.
        approval: u64,
    },
    /// The revocation of a passkey.
    Revoke {
        /// The credential's id.
        passkey: String,
        /// Its name, with hidden characters shown.
        name: String,
        /// The id of the daemon that the signature is valid for.
        daemon: String,
        /// The passkeys that may sign.
        signers: Vec<Signer>,
    },
    /// An apply or an undo: the page shows first which files it would write, and the signature covers them.
    Write {
        /// `apply-task` or `undo`.
        verb: &'static str,
        /// The body of the request, without what the person has seen, which the page adds.
        arguments: serde_json::Value,
    },
    /// A verb of the own API.
    Verb {
        /// The path of the own API, without the leading slash.
        verb: &'static str,
        /// The body of the request.
        arguments: serde_json::Value,
        /// Whether the person gives a reason, as `reason` among the arguments.
        asks_reason: bool,
        /// Whether the person writes a text, as `text` among the arguments.
        asks_text: bool,
    },
}

impl Here {
    /// A verb with its arguments.
    pub fn verb(verb: &'static str, arguments: serde_json::Value) -> Self {
        Self::Verb { verb, arguments, asks_reason: false, asks_text: false }
    }

    /// A verb that is signed with a reason.
    fn with_reason(verb: &'static str, arguments: serde_json::Value) -> Self {
        Self::Verb { verb, arguments, asks_reason: true, asks_text: false }
    }

    /// Releases a lock of another agent, with a reason; where the fence is known, of this grant alone.
    pub fn release(symbol: &str, fence: Option<u64>) -> Self {
        let mut arguments = serde_json::json!({ "symbol": symbol, "force": true });
        if let Some(fence) = fence {
            arguments["fence"] = fence.into();
        }
        Self::with_reason("unlock", arguments)
    }

    /// Releases a file that another agent has claimed, with a reason.
    pub fn release_claim(file: &str, fence: u64) -> Self {
        Self::with_reason("release-claim", serde_json::json!({ "path": file, "force": true, "fence": fence }))
    }

    /// Ends another agent's intent, with a reason.
    pub fn end_intent(id: &str) -> Self {
        let arguments = serde_json::json!({ "id": id, "to": "abandoned", "force": true });
        Self::with_reason("update-intent", arguments)
    }

    /// Releases everything that an agent holds, with a reason.
    pub fn release_agent(agent: &str) -> Self {
        Self::with_reason("release-agent", serde_json::json!({ "agent": agent }))
    }

    /// Ends the wait of an agent, with a reason.
    pub fn end_wait(ticket: u64) -> Self {
        Self::with_reason("end-wait", serde_json::json!({ "ticket": ticket }))
    }

    /// Writes a message to these agents.
    pub fn message(to: &[&str]) -> Self {
        let arguments = serde_json::json!({ "to": to });
        Self::Verb { verb: "message-agents", arguments, asks_reason: false, asks_text: true }
    }

    /// Answers a question.
    pub fn answer(question: u64) -> Self {
        let arguments = serde_json::json!({ "question": question });
        Self::Verb { verb: "answer-question", arguments, asks_reason: false, asks_text: true }
    }

    /// Says a text to the agent of a task.
    pub fn say(task: &str) -> Self {
        let arguments = serde_json::json!({ "task": task });
        Self::Verb { verb: "say-to-task", arguments, asks_reason: false, asks_text: true }
    }
}

/// A passkey that may sign.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Signer {
    /// Its name for people, with hidden characters shown.
    pub name: String,
    /// The host of the pages that it signs for.
    pub rp_id: String,
    /// An open page of that host, as scheme, host and port.
    pub page: Option<String>,
}

/// The place where a passkey answers an approval.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Answering {
    /// The number of the approval.
    pub approval: u64,
    /// The reason why an answer on this page would not count; `None` where it would count.
    pub why_not: Option<String>,
    /// The command that removes this reason.
    pub next: Option<Command>,
    /// The id of the daemon that the signature is valid for.
    pub daemon: String,
    /// The passkeys that may sign.
    pub signers: Vec<Signer>,
    /// Longest note, in bytes.
    pub note_bytes_max: usize,
}

/// The form in which a person delegates a task, signed with a passkey.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Delegating {
    /// The workers that may do it, with hidden characters shown.
    pub workers: Vec<String>,
    /// Longest goal, in bytes.
    pub goal_bytes_max: usize,
}

/// The place where a passkey is enrolled.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Enrolling {
    /// The reason why no passkey can be enrolled now; `None` where one can.
    pub why_not: Option<String>,
    /// The command that prints the code.
    pub code: Command,
    /// Whether a known passkey has to sign for the new one.
    pub vouch: bool,
    /// The id of the daemon that the signature is valid for.
    pub daemon: String,
    /// The passkeys that may sign for it.
    pub signers: Vec<Signer>,
    /// Longest name, in bytes.
    pub name_bytes_max: usize,
}

/// The place where a browser subscribes to its push service.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Subscribing {
    /// The reason why no browser can subscribe now; `None` where one can.
    pub why_not: Option<String>,
    /// The id of the daemon that the signature is valid for.
    pub daemon: String,
    /// The passkeys that may sign for it.
    pub signers: Vec<Signer>,
    /// The browsers that have subscribed already: id and name. The id is the beginning of the SHA-256 of the browser's address.
    pub told: Vec<(String, String)>,
}

/// The place where a known passkey signs for a new one of another page.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Vouching {
    /// The new passkey as the daemon received it: the page computes from it the bytes that are signed.
    pub waiting: provost_api::wire::WaitingPasskey,
    /// The name of the new passkey, with hidden characters shown.
    pub name: String,
    /// The host of the new passkey's pages.
    pub host: String,
    /// The id of the daemon that the signature is valid for.
    pub daemon: String,
    /// The passkeys that may sign for it.
    pub signers: Vec<Signer>,
}

impl Command {
    /// Makes a command that anyone at a terminal may type.
    pub fn new(does: &str, line: impl Into<String>) -> Self {
        Self { does: does.into(), line: line.into(), not_yours: None, here: None, base: None }
    }

    /// The same command, with an action for pages where a passkey may sign.
    #[must_use]
    pub fn or_here(self, here: Here) -> Self {
        Self { here: Some(here), ..self }
    }
}

/// A file of a difference.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct DiffFile {
    /// Its path, with hidden characters shown.
    pub path: String,
    /// The number of added lines.
    pub added: usize,
    /// The number of removed lines.
    pub removed: usize,
    /// The lines of the difference that are shown.
    pub lines: Vec<DiffLine>,
    /// The number of lines that are left out after those.
    pub more: usize,
    /// The marks in its lines. They are sent beside the bytes that a passkey signs, and contain no text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<LineMarks>,
}

/// The marks in one line of a difference; positions are counted as browsers do, in units of UTF-16.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LineMarks(
    /// The index of the line among those of its file.
    pub u32,
    /// Colours, three numbers each: beginning, length, and number of the colour.
    pub Vec<u32>,
    /// The part that differs from the line that this one replaces or is replaced by: its beginning and its end.
    pub Option<(u32, u32)>,
);

/// A line of a difference.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct DiffLine {
    /// `add`, `remove`, `same`, `hunk` or `head`.
    pub is: &'static str,
    /// The line without its sign, with hidden characters shown.
    pub text: String,
    /// Its number in the old file.
    pub before: Option<u64>,
    /// Its number in the new file.
    pub after: Option<u64>,
}
