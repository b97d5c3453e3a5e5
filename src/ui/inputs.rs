//! The inputs of the model, and the orders that follow from them.

use ratatui::crossterm::event::{KeyEvent, MouseEvent};

use super::ask::{Got, UiRequest};
use provost_client::daemons::Repository;

/// News from daemons, and from the search for them.
#[derive(Clone, PartialEq, Debug)]
pub enum News {
    /// A repository has a daemon; it gets the next number.
    Found(Repository),
    /// All daemons that run at the moment have been found.
    Searched,
    /// A daemon answers, and the screen follows its events from now on.
    Live {
        /// The repository's number.
        repository: usize,
        /// The address of its page, if the page is open.
        page: Option<String>,
    },
    /// A daemon does not answer.
    Stale {
        /// The repository's number.
        repository: usize,
        /// The reason.
        why: String,
        /// The next command.
        next: String,
    },
    /// An event was committed.
    Changed {
        /// The repository's number.
        repository: usize,
        /// The approval that the event ended, who ended it, and the outcome in words.
        answered: Option<(u64, String, String)>,
    },
    /// The answer to a request.
    Got {
        /// The repository's number.
        repository: usize,
        /// The request.
        asked: UiRequest,
        /// The answer, or the reason why none came.
        got: Result<Got, String>,
    },
    /// The end of an order that changes something.
    Done {
        /// The repository's number.
        repository: usize,
        /// The result as a sentence.
        says: String,
        /// Whether it succeeded.
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

/// An input.
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
    /// The moment that `Model::next_wake` has named.
    Tick,
    /// News from daemons.
    News(News),
}

/// An order, which the model leaves to `run`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Order {
    /// Ask a daemon.
    Ask {
        /// The repository's number.
        repository: usize,
        /// The request.
        asked: UiRequest,
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
        /// The digest of the approval as it was shown.
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
    /// Write the same text to agents, on behalf of the one who answers approvals here.
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
    /// Look for daemons, and ask those again that did not answer.
    Search,
    /// End the screen.
    Quit,
}
