//! The screens, and the keys of each: one table, from which keys, the help and the line at the bottom are made.

/// A screen: one list over all repositories.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Screen {
    /// Things that need a person.
    Needs,
    /// Tasks.
    Tasks,
    /// Agents.
    Agents,
    /// Locks and claimed files.
    Locks,
    /// Waits of agents.
    Waits,
    /// Events of the journals.
    Events,
    /// Messages between agents.
    Messages,
    /// Announced changes of agents, and places where two of them are in each other's way.
    Intents,
}

impl Screen {
    /// All screens, in the order of their numbers.
    pub const ALL: [Self; 8] = [
        Self::Needs,
        Self::Tasks,
        Self::Agents,
        Self::Locks,
        Self::Waits,
        Self::Events,
        Self::Messages,
        Self::Intents,
    ];

    /// Returns its name for people.
    pub fn title(self) -> &'static str {
        match self {
            Self::Needs => "Needs you",
            Self::Tasks => "Tasks",
            Self::Agents => "Agents",
            Self::Locks => "Locks",
            Self::Waits => "Waits",
            Self::Events => "Events",
            Self::Messages => "Messages",
            Self::Intents => "Intents",
        }
    }

    /// Returns its word as a command, and the letter after `g`.
    pub(crate) fn word(self) -> (&'static str, char) {
        match self {
            Self::Needs => ("needs", 'n'),
            Self::Tasks => ("tasks", 't'),
            Self::Agents => ("agents", 'a'),
            Self::Locks => ("locks", 'l'),
            Self::Waits => ("waits", 'w'),
            Self::Events => ("events", 'e'),
            Self::Messages => ("messages", 'm'),
            Self::Intents => ("intents", 'i'),
        }
    }
}

/// The place where a key has a meaning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Where {
    /// Everywhere.
    Anywhere,
    /// A list.
    List,
    /// A detail.
    Detail,
    /// A place where an approval is chosen or open.
    Approval,
    /// A place where a question is chosen.
    Question,
    /// A place where agents can be written to.
    Agents,
    /// A place where a task is chosen or open.
    Task,
    /// The detail of a task.
    TaskDetail,
}

/// A row of the help.
pub(crate) struct KeyRow {
    /// The keys, as they are written for people.
    pub keys: &'static str,
    /// Their action.
    pub does: &'static str,
    /// The place where they have it.
    pub at: Where,
}

const fn key(keys: &'static str, does: &'static str, at: Where) -> KeyRow {
    KeyRow { keys, does, at }
}

/// Every key.
pub(crate) const KEYS: &[KeyRow] = &[
    key("a", "approve; asks once more, with everything in sight", Where::Approval),
    key("d", "deny, with the reason that the asker gets", Where::Approval),
    key("r", "answer the question", Where::Question),
    key("m", "write to the agent, or to both", Where::Agents),
    key("M", "write to all agents that give a sign of life", Where::Anywhere),
    key("x", "end the task; asks once more", Where::Task),
    key("l", "what its worker writes", Where::TaskDetail),
    key("c", "what it has changed", Where::TaskDetail),
    key("t", "its timeline", Where::TaskDetail),
    key("i", "what is known of it", Where::TaskDetail),
    key("F", "follow the log, or stop following", Where::TaskDetail),
    key("j k, arrows", "down, up", Where::Anywhere),
    key("PgDn PgUp, Ctrl-D Ctrl-U", "a page down, a page up", Where::Anywhere),
    key("Home End, G", "to the beginning, to the end", Where::Anywhere),
    key("Enter, o", "open", Where::List),
    key("Esc, q", "back", Where::Detail),
    key("1 to 8", "go to a screen", Where::Anywhere),
    key("g, then n t a l w e m i", "go to a screen by its letter", Where::Anywhere),
    key("Tab", "the next screen, or the next part of a task", Where::Anywhere),
    key("/", "filter; with state: worker: by: before a value among tasks", Where::List),
    key(".", "commands about the row, to copy", Where::Anywhere),
    key("y", "copy the first command about the row", Where::Anywhere),
    key(":", "type a command; Tab completes it", Where::Anywhere),
    key("V", "check the whole journal", Where::Anywhere),
    key("R", "ask for everything again", Where::Anywhere),
    key("?", "these keys; typing filters them", Where::Anywhere),
    key("q, Ctrl-C", "quit", Where::Anywhere),
];

/// The commands behind `:`, with their arguments and their actions.
pub(crate) const COMMANDS: &[(&str, &str, &str)] = &[
    ("needs", "", "what needs you"),
    ("tasks", "", "tasks"),
    ("agents", "", "agents"),
    ("locks", "", "locks and claimed files"),
    ("waits", "", "who waits for what"),
    ("events", "", "the newest events"),
    ("messages", "", "the newest messages between agents"),
    ("intents", "", "what agents announce, and where two of them meet"),
    ("check", "", "check the whole journal"),
    ("replay", "RULES", "what ready-made rules would have decided: strict, default or open"),
    ("tell", "", "write to all agents that give a sign of life"),
    ("approve", "NUMBER", "approve; asks once more"),
    ("deny", "NUMBER", "deny, with a reason"),
    ("approval", "NUMBER", "open an approval"),
    ("task", "ID", "open a task"),
    ("filter", "WORDS", "filter the list; without words, no more"),
    ("copy", "", "copy the first command about the row"),
    ("dark", "", "colours for a dark ground"),
    ("light", "", "colours for a light ground"),
    ("refresh", "", "ask for everything again"),
    ("help", "", "the keys"),
    ("quit", "", "end"),
];
