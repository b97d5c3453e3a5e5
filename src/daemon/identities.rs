//! Opens the data by which doors recognise callers: keys, names, and frames that were seen before.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::{Prepared, Start, now, wiring};
use provost_auth::names::{Names, OfHosts};
use provost_auth::replay::ReplayGuard;
use provost_base::limits::NONCES_MAX;
use provost_base::{AgentId, Digest};
use provost_config::Config;
use provost_engine::Engine;
use provost_protocols::devit::Devit;
use provost_service::Provost;

/// How long a start that closely follows the last one waits for the next second, in seconds.
const CLOSED_SECONDS_MAX: u64 = 1;

/// Returns the registry of names and their owners. It remembers across starts which processes have spoken as an agent.
pub(super) fn names(
    start: &Start,
    prepared: &Prepared,
    config: &Config,
    engine: &Engine,
) -> Result<Arc<Names>> {
    let keys = Arc::new(wiring::open_keys(start, config)?);
    let (known, good) = (engine.clone(), engine.clone());
    let holders = Box::new(move |agent: &AgentId, proof| known.is_taken(agent, proof));
    let tokens = Box::new(move |token: &Digest| good.is_good_for(token));
    let spoken = start.places.state.join("speakers");
    let names = Names::new(keys, prepared.user.clone(), (holders, tokens, engine.token_changes().clone()));
    let (called, elsewhere) = (engine.clone(), engine.clone());
    let names = names.over_hosts(OfHosts {
        called_here: Box::new(move |agent| called.host_names().called_here(agent)),
        is_elsewhere: Box::new(move |agent| elsewhere.host_names().is_elsewhere(agent)),
    });
    Ok(Arc::new(names.remembering(&spoken).with_context(|| spoken.display().to_string())?))
}

/// Makes the DevIt door. It remembers across starts the accepted frames that are dated ahead.
pub(super) fn devit_door(
    start: &Start,
    prepared: &Prepared,
    config: &Config,
    (provost, names): (&Provost, &Arc<Names>),
) -> Result<Devit> {
    let ahead = start.places.state.join("frames-ahead");
    let guard = ReplayGuard::new(now(), config.devit.window.as_seconds(), NONCES_MAX);
    let guard = guard.remembering(&ahead).with_context(|| ahead.display().to_string())?;
    let closed_for = guard.begins_at().saturating_sub(now().seconds());
    if closed_for > CLOSED_SECONDS_MAX {
        tracing::warn!(
            seconds = closed_for,
            "the clock shows an earlier time than when frames were believed last, so DevIt's frames are refused until \
             it has passed that; where that time was wrong, stop the daemon and remove {}",
            ahead.display()
        );
    } else if closed_for > 0 {
        // A frame that was accepted in this very second would be accepted once more.
        std::thread::sleep(Duration::from_millis(1_000 - now().0.rem_euclid(1_000).unsigned_abs()));
    }
    let options = wiring::devit_options(start, prepared, config);
    Ok(Devit::new(provost.clone(), names.clone(), guard, options, now))
}
