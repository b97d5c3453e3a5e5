//! The screen in a terminal: the things that need a person and the activity of agents, live, over all repositories.
//!
//! ```text
//!   keys, sizes --\                     /--> frames, by `draw`
//!   events -------->  Model::take  ----<
//!   answers ------/                     \--> orders: ask, answer, copy, quit, carried out by `run`
//! ```
//!
//! Promises: `view` decides the content, as for the page; an answer carries the digest of the approval on the screen, and is sent
//! as `provost approve` sends it; text of agents cannot act on the terminal, and its hidden characters are shown; nothing is
//! polled: an event tells what has changed; the terminal is given back at every end. Which answers count is left to each daemon.
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
mod merged;
mod model;
mod mouse;
mod qr;
mod run;
mod screen;
mod telling;
mod terminal;
mod text;
mod theme;
mod typed;
mod typing;

use std::io;

pub use ask::{Both, Got, UiRequest};
pub use draw::draw;
pub use inputs::{Input, News, Order};
pub use model::{Model, SMALLEST, WIDE};
pub use qr::lines as qr_lines;
pub use screen::Screen;
pub use theme::Theme;

pub use provost_client::daemons::{Repository, Whose};

use provost_base::AgentId;
use provost_config::Places;

/// Returns the agent on whose behalf the person at this terminal speaks in a repository: an agent where the shell
/// belongs to one, and `None` for the person; or the reason why neither can speak.
pub type Speaker = Box<dyn Fn(&Places) -> Result<Option<AgentId>, String>>;

/// The settings of a screen.
pub struct Start {
    /// The choice of daemons that are shown.
    pub whose: Whose,
    /// The function that tells on whose behalf the screen speaks.
    pub speaker: Speaker,
    /// Whether the screen takes clicks and the wheel; a terminal's own selection of text then needs the Shift key.
    pub mouse: bool,
    /// The colours.
    pub look: Theme,
}

/// Returns the look that the environment asks for; `light` is the person's choice, if any.
pub fn look(light: Option<bool>) -> Theme {
    run::look(light)
}

/// Shows the screen until the person ends it, or a signal does.
///
/// # Errors
/// The error of the terminal.
pub fn run(start: Start) -> io::Result<()> {
    run::run(start)
}
