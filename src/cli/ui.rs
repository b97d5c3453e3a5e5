//! `provost ui`: the screen in a terminal, with the things that need the user and the activity of agents, live.

use std::io::{self, IsTerminal as _};

use clap::{Args, ValueEnum};

use super::cli_error::{DONE, USAGE};
use super::identity::IdentityArgs;
use super::{CliError, RepoContext, overview};
use provost_base::AgentId;
use provost_client::Age;
use provost_config::Places;
use provost_config::env::Environment;
use provost_ui as ui;

/// `provost ui`.
#[derive(Args, Debug)]
pub(super) struct Ui {
    /// Leave the mouse to the terminal, so that it selects text
    #[arg(long)]
    no_mouse: bool,
    /// Colours for this ground of the terminal; by default as COLORFGBG says, else dark; NO_COLOR takes all colours away
    #[arg(long, value_enum)]
    ground: Option<Ground>,
}

/// The background of a terminal.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Ground {
    /// Light text on a dark ground
    Dark,
    /// Dark text on a light ground
    Light,
}

/// Shows the screen; with `narrowed`, only for the repository around the command.
pub(super) fn ui(asked: &Ui, narrowed: bool, json: bool) -> Result<u8, CliError> {
    if json {
        return Err(CliError::of("`provost ui` draws for people, and has no JSON")
            .because("programs read the same from the commands")
            .next("provost --json")
            .with_code(USAGE));
    }
    let missing = [(io::stdin().is_terminal(), "input"), (io::stdout().is_terminal(), "output")];
    if let Some((_, which)) = missing.iter().find(|it| !it.0) {
        return Err(CliError::of("`provost ui` needs a terminal")
            .because(format!("standard {which} is not a terminal"))
            .next("provost, which prints what needs you once")
            .with_code(USAGE));
    }
    let environment = Environment::current();
    let narrowed = narrowed || environment.root.is_some();
    let here = match RepoContext::find(false) {
        Ok(here) if narrowed || overview::is_known(&here) => Some(here.places),
        Ok(_) => None,
        Err(err) if narrowed => return Err(err),
        Err(_) => None,
    };
    let speaker = {
        let environment = environment.clone();
        Box::new(move |places: &Places| speaker(places, &environment))
    };
    ui::run(ui::Start {
        whose: ui::Whose { environment, here, narrowed },
        speaker,
        mouse: !asked.no_mouse,
        look: ui::look(asked.ground.map(|it| it == Ground::Light)),
    })
    .map_err(|err| CliError::of("the terminal cannot be drawn upon").because(err).next("provost"))?;
    Ok(DONE)
}

/// Returns the agent on whose behalf the screen speaks in this repository: in an agent's shell, that agent.
fn speaker(places: &Places, environment: &Environment) -> Result<Option<AgentId>, String> {
    let here = RepoContext {
        cwd: places.root.clone(),
        environment: environment.clone(),
        places: places.clone(),
        json: false,
        inside: None,
        age: Age::default(),
    };
    // A name that cannot be used does not tell whose it is, so no agent speaks.
    IdentityArgs::named(&here, None)
        .map_err(|_| "the environment names no usable agent, so nothing was sent; see PROVOST_AGENT".into())
}
