//! The views that people see: pure functions from rows of Provost's own API to blocks to draw.
//!
//! Promises: the order of rows, the words and tones of states, and the command that carries an action out are decided here and
//! nowhere else, so that a page, a terminal and a list say the same. Text of agents has its hidden characters shown (`base::visible`)
//! and is never a fact. No function reads a clock; the time is an argument. Asking for the rows, and drawing, is left to the callers.
#![forbid(unsafe_code)]

mod agents;
mod applies;
mod approval;
mod audit;
mod block;
mod both;
mod checked;
mod cost;
mod diff;
mod earlier;
mod edit;
mod events;
mod filter;
mod graph;
mod health;
mod intents;
mod languages;
mod locks;
mod marks;
mod messages;
mod needs;
mod numbers;
mod passkeys;
mod plain;
mod push;
mod replay;
mod repository;
mod request;
mod search;
mod search_all;
mod set_aside;
mod states;
mod task;
mod tasks;
mod touches;
mod waits;
mod way;
mod web_sessions;
mod word;
mod would;

pub use agents::{AgentSources, agents};
pub use applies::applies;
pub use approval::{ASKED, answering, approval, gone, no_terminal, signed, takes_a_person};
pub use audit::{audit, request};
pub use block::{
    Answering, Block, Cell, Command, Delegating, DiffFile, DiffLine, Empty, Enrolling, Fact, Here, Line,
    LineMarks, Row, Rows, Shown, Signer, Subscribing, Vouching,
};
pub use both::both_changes;
pub use checked::journal_checked;
pub use cost::costs;
pub use diff::files as diff_files;
pub use earlier::{Earlier, earlier};
pub use events::{event, events, moment};
pub use filter::Filter;
pub use graph::{Drawing, Edge, Placed, draw};
pub use health::health;
pub use intents::intents;
pub use languages::{LanguageRow, Languages, languages};
pub use locks::{HeldSources, locks};
pub use marks::{Piece, TokenKind, mark, marks, pieces};
pub use messages::{messages, to_all};
pub use needs::{NeedSources, needs};
pub use numbers::{numbers, numbers_in_words};
pub use passkeys::passkeys;
pub use plain::{asked, is_repeated_by_its_asker};
pub use push::browsers;
pub use replay::replayed;
pub use repository::{APART, Lead, RepositoryOverview, State, in_repository, needs_of_all, repositories};
pub use request::{difference, facts, words};
pub use search::{no_search, search};
pub use search_all::search_of_all;
pub use set_aside::set_aside;
pub use states::{has_states, states};
pub use task::{changes, failure, task};
pub use tasks::{delegating, task_page, tasks};
pub use touches::touches;
pub use waits::waits;
pub use way::{in_the_way, no_way};
pub use web_sessions::web_sessions;
pub use word::{Tone, Word, of_risk, of_task};
pub use would::would_write;

pub use provost_base::percent_encoded as encoded;
