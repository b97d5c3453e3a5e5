//! The terminal UI: what needs a person and what agents do, live, in one screen over all repositories.
//!
//! ```text
//!   keys, sizes --\                     /--> frames, by `draw`
//!   events -------->  Model::take  ----<
//!   answers ------/                     \--> orders: ask, answer, copy, quit, carried out by `run`
//! ```
//!
//! Promises: what is shown is decided in `view`, as for the page; an answer carries the digest of what is on the screen, and goes
//! the way of `provost approve`; text of agents acts on no terminal and hides nothing; nothing is asked again and again: an event
//! says what has changed; the terminal is given back at every end. Leaves to each daemon who may answer what.
#![forbid(unsafe_code)]

mod ask;
mod body;
mod code;
mod detail;
mod draw;
mod hints;
mod inputs;
mod keys;
mod live;
mod loads;
mod look;
mod merged;
mod model;
mod mouse;
mod qr;
mod run;
mod screen;
mod telling;
mod terminal;
mod text;
mod typed;
mod typing;

use std::io;

pub use ask::{Asked, Both, Got};
pub use draw::draw;
pub use inputs::{Input, News, Order};
pub use look::Look;
pub use model::{Model, SMALLEST, WIDE};
pub use qr::lines as qr_lines;
pub use screen::Screen;

pub use provost_client::daemons::{Repository, Whose};

use provost_base::AgentId;
use provost_config::Places;

/// As whom the person at this terminal speaks in a repository: an agent where its shell is an agent's, and otherwise themselves; or
/// why nothing can be said.
pub type Speaker = Box<dyn Fn(&Places) -> Result<Option<AgentId>, String>>;

/// What a screen begins with.
pub struct Start {
    /// Whose daemons are shown.
    pub whose: Whose,
    /// As whom it speaks.
    pub speaker: Speaker,
    /// Whether clicks and the wheel are heard; a terminal's own selection of text then needs the Shift key.
    pub mouse: bool,
    /// How it looks.
    pub look: Look,
}

/// The look that the environment asks for; `light` is what was typed.
pub fn look(light: Option<bool>) -> Look {
    run::look(light)
}

/// Shows the screen until the person ends it, or a signal does.
///
/// # Errors
/// What the terminal says.
pub fn run(start: Start) -> io::Result<()> {
    run::run(start)
}
