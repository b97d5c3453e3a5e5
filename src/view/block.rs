//! The shapes of what is drawn: a view is a title and blocks, one below the other.

use provost_base::limits::WEB_CELL_CHARS_MAX;
use provost_base::{visible, visible_name};
use serde::Serialize;

use super::{Drawing, Word};

/// A view.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Shown {
    /// What it is, for the heading.
    pub title: String,
    /// Where the thing stands that it is about; absent for lists.
    pub state: Option<Word>,
    /// When that ends by itself.
    pub until: Option<String>,
    /// How many things wait for a person, where the view counts them.
    pub needs: Option<usize>,
    /// What is shown, in order.
    pub blocks: Vec<Block>,
    /// The path of the page that goes on where this one ends.
    pub next: Option<String>,
}

impl Shown {
    /// A view of these blocks.
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
    /// What the daemon knows.
    Facts {
        /// The heading.
        title: String,
        /// In the order in which they are read.
        facts: Vec<Fact>,
    },
    /// What an agent, or a person, has written: marked, and never a fact.
    Words {
        /// The heading, which says whose words they are.
        title: String,
        /// The text, in which nothing hides.
        text: String,
        /// Whether it is opened by its heading, where a page has room for that: what it says stands above it already.
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
    /// A drawing of what a list of the same view says.
    Graph {
        /// The heading.
        title: String,
        /// What is drawn.
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
    /// Where a passkey answers an approval.
    Answer(Answering),
    /// Where a person hands out work by signature.
    Delegate(Delegating),
    /// Where a person says which events are shown.
    EventFilter {
        /// The kinds that there are.
        kinds: Vec<&'static str>,
    },
    /// Where a passkey is enrolled.
    Enrol(Enrolling),
    /// Where the browser that shows this is told by its push service.
    Push(Subscribing),
    /// Where a known passkey signs for a new one of another page.
    Vouch(Box<Vouching>),
    /// Where the whole journal is checked, and what was found.
    JournalCheck {},
    /// Where other rules are asked about the requests that are on record.
    Replay {
        /// Names of rules that come with the program.
        ready_made: Vec<&'static str>,
        /// How many requests they are asked about, where no number is typed.
        last: usize,
    },
    /// What a task's worker writes, read apart from the view.
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

/// A name and what is known under it; one without a name goes on with the one before.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Fact {
    /// The name.
    pub name: String,
    /// The fact.
    pub value: Cell,
}

impl Fact {
    /// A fact that is a text.
    pub fn text(name: impl Into<String>, text: &str) -> Self {
        Self { name: name.into(), value: Cell::whole(text) }
    }

    /// A fact that is any cell.
    pub fn new(name: impl Into<String>, value: Cell) -> Self {
        Self { name: name.into(), value }
    }
}

/// What stands in one place.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Cell {
    /// A text that the daemon vouches for.
    Text {
        /// The text, in which nothing hides.
        text: String,
    },
    /// A text that an agent has written.
    Said {
        /// The text, in which nothing hides.
        text: String,
    },
    /// A name or a path.
    Code {
        /// The text, in which nothing hides.
        text: String,
    },
    /// A name or a path in a tree: rows with the same of what it is in stand together.
    Place {
        /// What it is in, the outermost first.
        under: Vec<String>,
        /// Its name in there, in which nothing hides.
        name: String,
        /// All of it, in which nothing hides.
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
        /// When it began, where it matters how much of its time is left.
        #[serde(skip_serializing_if = "Option::is_none")]
        from: Option<String>,
    },
    /// How long something took, or has taken until now.
    Took {
        /// When it began, in the form of RFC 3339.
        from: String,
        /// When it ended; absent while it goes on.
        to: Option<String>,
    },
    /// A text that leads to another view.
    Link {
        /// The text, in which nothing hides.
        text: String,
        /// The path of the view.
        to: String,
    },
    /// A number, and how much of the largest of its column it is.
    Share {
        /// The number.
        text: String,
        /// Its share of the largest, in thousandths.
        of_thousand: u16,
    },
    /// Nothing.
    None,
}

impl Cell {
    /// A text in one line, cut where it is long.
    pub fn text(text: &str) -> Self {
        Self::Text { text: line(text) }
    }

    /// A text of any length.
    pub fn whole(text: &str) -> Self {
        Self::Text { text: visible(text) }
    }

    /// Words of an agent in one line, cut where they are long.
    pub fn said(text: &str) -> Self {
        Self::Said { text: line(text) }
    }

    /// A name or a path.
    pub fn code(text: &str) -> Self {
        Self::Code { text: line(text) }
    }

    /// A name in these, the outermost first; `whole` is all of it.
    pub(crate) fn place<'a>(under: impl Iterator<Item = &'a str>, name: &str, whole: &str) -> Self {
        Self::Place { under: under.map(line).collect(), name: line(name), text: line(whole) }
    }

    /// A moment, if there is one.
    pub fn time(at: Option<&str>) -> Self {
        at.map_or(Self::None, |at| Self::Time { at: at.into() })
    }

    /// A text that leads to the view at this path.
    pub fn link(text: &str, to: String) -> Self {
        Self::Link { text: line(text), to }
    }

    /// A text, if there is one.
    pub fn maybe(text: Option<&str>) -> Self {
        text.map_or(Self::None, Self::text)
    }
}

/// The first line of a text, in which nothing hides.
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
    /// Rows beyond those.
    pub more: usize,
    /// What would be here.
    pub empty: Empty,
}

/// What is said where there are no rows.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Empty {
    /// What would be here, as a sentence.
    pub says: String,
    /// The command that makes one.
    pub command: Option<String>,
    /// What happened last of what would be here, and when, in the form of RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<(String, String)>,
}

impl Empty {
    /// With the command that makes one, if a person makes them.
    pub fn new(says: &str, command: Option<&str>) -> Self {
        Self { says: says.into(), command: command.map(str::to_owned), last: None }
    }

    /// The same, with the moment at which something happened last, if it has.
    #[must_use]
    pub(crate) fn with_last(self, what: &str, at: Option<&str>) -> Self {
        Self { last: at.map(|at| (what.to_owned(), at.to_owned())), ..self }
    }
}

/// A row.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Row {
    /// Tells it from the others, also when it has changed.
    pub key: String,
    /// The path of the view about it.
    pub to: Option<String>,
    /// A cell for each column.
    pub cells: Vec<Cell>,
    /// What can be done about it, at a terminal.
    pub commands: Vec<Command>,
}

/// A command to type.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Command {
    /// What it does, in a word or two.
    pub does: String,
    /// The command.
    pub line: String,
    /// Why it is of no use to the one who looks, where it is not.
    pub not_yours: Option<String>,
    /// What does the same where passkeys sign.
    pub here: Option<Here>,
    /// The path below which its repository is, on a page over all repositories.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
}

/// What a passkey signs, where a page can ask for it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Here {
    /// The answer to an approval, which is shown whole first.
    Answer {
        /// The number of the approval.
        approval: u64,
    },
    /// The revocation of a passkey.
    Revoke {
        /// The credential's id.
        passkey: String,
        /// Its name, in which nothing hides.
        name: String,
        /// The id of the daemon, which signatures are for.
        daemon: String,
        /// The passkeys that may sign.
        signers: Vec<Signer>,
    },
    /// An apply or an undo: what it would write is shown first, and signed for.
    Write {
        /// `apply-task` or `undo`.
        verb: &'static str,
        /// The body for it, but for what was seen.
        arguments: serde_json::Value,
    },
    /// A verb of the own API.
    Verb {
        /// The path of the own API, without the stroke.
        verb: &'static str,
        /// The body for it.
        arguments: serde_json::Value,
        /// Whether the person says why, as `reason` among the arguments.
        asks_reason: bool,
        /// Whether the person writes words, as `text` among the arguments.
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

    /// The release of a lock of another agent, with a reason; of this grant, where it is known.
    pub fn release(symbol: &str, fence: Option<u64>) -> Self {
        let mut arguments = serde_json::json!({ "symbol": symbol, "force": true });
        if let Some(fence) = fence {
            arguments["fence"] = fence.into();
        }
        Self::with_reason("unlock", arguments)
    }

    /// The release of a file that another agent has claimed, with a reason.
    pub fn release_claim(file: &str, fence: u64) -> Self {
        Self::with_reason("release-claim", serde_json::json!({ "path": file, "force": true, "fence": fence }))
    }

    /// The end of another agent's intent, with a reason.
    pub fn end_intent(id: &str) -> Self {
        let arguments = serde_json::json!({ "id": id, "to": "abandoned", "force": true });
        Self::with_reason("update-intent", arguments)
    }

    /// Takes from an agent all that it holds, with a reason.
    pub fn release_agent(agent: &str) -> Self {
        Self::with_reason("release-agent", serde_json::json!({ "agent": agent }))
    }

    /// Has an agent wait no longer, with a reason.
    pub fn end_wait(ticket: u64) -> Self {
        Self::with_reason("end-wait", serde_json::json!({ "ticket": ticket }))
    }

    /// A message to these agents.
    pub fn message(to: &[&str]) -> Self {
        let arguments = serde_json::json!({ "to": to });
        Self::Verb { verb: "message-agents", arguments, asks_reason: false, asks_text: true }
    }

    /// The answer to a question.
    pub fn answer(question: u64) -> Self {
        let arguments = serde_json::json!({ "question": question });
        Self::Verb { verb: "answer-question", arguments, asks_reason: false, asks_text: true }
    }

    /// Words for the agent of a task.
    pub fn say(task: &str) -> Self {
        let arguments = serde_json::json!({ "task": task });
        Self::Verb { verb: "say-to-task", arguments, asks_reason: false, asks_text: true }
    }
}

/// A passkey that may sign.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Signer {
    /// Its name for people, in which nothing hides.
    pub name: String,
    /// The host of the pages that it signs for.
    pub rp_id: String,
    /// A page of that host that is open, as scheme, host and port.
    pub page: Option<String>,
}

/// Where a passkey answers an approval.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Answering {
    /// The number of the approval.
    pub approval: u64,
    /// Why no answer of this page would count, where none would.
    pub why_not: Option<String>,
    /// What to do about that.
    pub next: Option<Command>,
    /// The id of the daemon, which signatures are for.
    pub daemon: String,
    /// The passkeys that may sign.
    pub signers: Vec<Signer>,
    /// Longest note, in bytes.
    pub note_bytes_max: usize,
}

/// Where a person hands out work by signature.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Delegating {
    /// The workers that may do it, in which nothing hides.
    pub workers: Vec<String>,
    /// Longest goal, in bytes.
    pub goal_bytes_max: usize,
}

/// Where a passkey is enrolled.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Enrolling {
    /// Why none can be enrolled now, where none can.
    pub why_not: Option<String>,
    /// The command that prints the code.
    pub code: Command,
    /// Whether a known passkey has to sign for the new one.
    pub vouch: bool,
    /// The id of the daemon, which signatures are for.
    pub daemon: String,
    /// The passkeys that may sign for it.
    pub signers: Vec<Signer>,
    /// Longest name, in bytes.
    pub name_bytes_max: usize,
}

/// Where a browser is subscribed to its push service.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Subscribing {
    /// Why none can be subscribed now, where none can.
    pub why_not: Option<String>,
    /// The id of the daemon, which signatures are for.
    pub daemon: String,
    /// The passkeys that may sign for it.
    pub signers: Vec<Signer>,
    /// The browsers that are told already: id and name. The id is the beginning of its address's SHA-256.
    pub told: Vec<(String, String)>,
}

/// Where a known passkey signs for a new one of another page.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Vouching {
    /// The new one, as it came: the page computes what is signed of it.
    pub waiting: provost_api::wire::WaitingPasskey,
    /// The name of the new one, in which nothing hides.
    pub name: String,
    /// The host of its pages.
    pub host: String,
    /// The id of the daemon, which signatures are for.
    pub daemon: String,
    /// The passkeys that may sign for it.
    pub signers: Vec<Signer>,
}

impl Command {
    /// A command that anyone at a terminal may type.
    pub fn new(does: &str, line: impl Into<String>) -> Self {
        Self { does: does.into(), line: line.into(), not_yours: None, here: None, base: None }
    }

    /// The same, where a passkey may sign for it as well.
    #[must_use]
    pub fn or_here(self, here: Here) -> Self {
        Self { here: Some(here), ..self }
    }
}

/// A file of a difference.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct DiffFile {
    /// Its path, in which nothing hides.
    pub path: String,
    /// Lines that come.
    pub added: usize,
    /// Lines that go.
    pub removed: usize,
    /// The lines of the difference that are shown.
    pub lines: Vec<DiffLine>,
    /// Lines beyond those.
    pub more: usize,
    /// What is marked in its lines. It is told beside what a passkey signs, and has no text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<LineMarks>,
}

/// What is marked in a line of a difference, by places in its text that are counted as browsers do, in units of UTF-16.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LineMarks(
    /// The place of the line among those of its file.
    pub u32,
    /// Colours: where each begins, its length, and its number.
    pub Vec<u32>,
    /// What is different from the line in whose place it stands: where it begins and ends.
    pub Option<(u32, u32)>,
);

/// A line of a difference.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct DiffLine {
    /// `add`, `remove`, `same`, `hunk` or `head`.
    pub is: &'static str,
    /// The line, in which nothing hides, without the sign before it.
    pub text: String,
    /// Its number in the file as it was.
    pub before: Option<u64>,
    /// Its number in the file as it would be.
    pub after: Option<u64>,
}
