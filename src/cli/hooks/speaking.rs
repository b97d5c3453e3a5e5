//! Lets the daemon know the processes below which a model acts, before the model can call `provost` by a command.
//!
//! The daemon looks at the process that asks, and at those above it. A host that has only read files, and whose session began
//! while no daemon ran, has not asked it anything; a `provost approve` in a shell of that host would be a person's.

use std::time::Instant;

use super::call::Told;
use super::run::{Run, agent};
use super::waits::within;
use crate::RepoContext;

/// Says to the daemon, where one runs, that this host's session speaks. What goes wrong holds up no command: the daemon that does
/// not answer carries out no approval either.
pub(super) fn is_known(asked: &Run, told: &Told, here: &RepoContext, until: Instant) {
    let Ok(agent) = agent(asked, told, here) else { return };
    let client = here.client().speaking_as(Some(agent));
    let _known = within(here, until, async { Ok(client.who_am_i().await?) });
}
