//! What comes into the model, and what is to be done of it.

use ratatui::crossterm::event::{KeyEvent, MouseEvent};

use super::ask::{Asked, Got};
use provost_client::daemons::Repository;

/// What comes from elsewhere.
#[derive(Clone, PartialEq, Debug)]
pub enum News {
    /// A repository has a daemon; it gets the next number.
    Found(Repository),
    /// All daemons of this moment are found.
    Searched,
    /// A daemon answers, and its events are followed from now on.
    Live {
        /// The repository's number.
        repository: usize,
        /// The address of its page, if that is open.
        page: Option<String>,
    },
    /// A daemon does not answer.
    Stale {
        /// The repository's number.
        repository: usize,
        /// Why.
        why: String,
        /// The next command.
        next: String,
    },
    /// Something has happened.
    Changed {
        /// The repository's number.
        repository: usize,
        /// The approval that was answered or has expired, who has done it, and what it was.
        answered: Option<(u64, String, String)>,
    },
    /// What was asked for.
    Got {
        /// The repository's number.
        repository: usize,
        /// What it was.
        asked: Asked,
        /// The answer, or why there is none.
        got: Result<Got, String>,
    },
    /// The end of something that changes something.
    Done {
        /// The repository's number.
        repository: usize,
        /// A sentence.
        says: String,
        /// Whether it was done.
        well: bool,
        /// The approval whose answer was refused, and whether a passkey can answer it.
        refused: Option<(u64, bool)>,
    },
    /// The page is open.
    Page {
        /// The repository's number.
        repository: usize,
        /// Its address.
        address: String,
    },
}

/// What comes in.
#[derive(Clone, PartialEq, Debug)]
pub enum Input {
    /// A key.
    Key(KeyEvent),
    /// The mouse.
    Mouse(MouseEvent),
    /// A text that was pasted.
    Paste(String),
    /// The columns and rows of the terminal.
    Size(u16, u16),
    /// The time that `Model::next_wake` has named has come.
    Tick,
    /// Something from elsewhere.
    News(News),
}

/// What is to be done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Order {
    /// Ask a daemon.
    Ask {
        /// The repository's number.
        repository: usize,
        /// What to ask.
        asked: Asked,
    },
    /// Answer an approval, as the person at this terminal.
    Answer {
        /// The repository's number.
        repository: usize,
        /// The approval.
        approval: u64,
        /// Whether it is approved.
        grant: bool,
        /// The reason or remark.
        note: Option<String>,
        /// The digest of what was shown.
        digest: String,
    },
    /// End a task.
    Cancel {
        /// The repository's number.
        repository: usize,
        /// The task.
        task: String,
    },
    /// Answer a question.
    Say {
        /// The repository's number.
        repository: usize,
        /// The question.
        question: u64,
        /// The answer.
        text: String,
    },
    /// Write the same to agents, as who approvals are answered as.
    Tell {
        /// The repository's number.
        repository: usize,
        /// The agents.
        to: Vec<String>,
        /// The text.
        text: String,
    },
    /// Open the page of a daemon.
    OpenPage {
        /// The repository's number.
        repository: usize,
    },
    /// Put a text on the clipboard of the terminal.
    Copy(String),
    /// Look for daemons, and ask those that did not answer.
    Search,
    /// End.
    Quit,
}
