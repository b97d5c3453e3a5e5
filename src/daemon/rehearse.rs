//! What a worker would be given now, found out as a daemon would and without one: for `provost jail`.

use anyhow::{Context as _, Result, anyhow, bail};

use super::wiring;
use crate::base::RepoPath;
use crate::cli::{Rehearse, Rehearsed};
use crate::config;
use crate::domain::{Network, Tier};
use crate::effects::{self, Rehearsal};
use crate::jail::{self, Profile, Root};
use crate::vault::Vault;

/// Makes the plan that a run of this worker would have.
///
/// # Errors
/// Why there is none: for a person.
pub fn rehearse(asked: Rehearse) -> Result<Rehearsed> {
    let places = &asked.places;
    let vault = Vault::at(places.secrets());
    let (mut profile, mut network) = profile(&asked, &vault)?;
    let root_path = asked.config.workspace.sandbox_root.clone().unwrap_or_else(|| places.root.clone());
    let root = Root::open(&root_path).with_context(|| format!("workspace {}", root_path.display()))?;
    let configured = asked.config.workers.get(&asked.worker).map_or(config::Tier::Ns, |it| it.tier);
    let tier = match (asked.tier, configured) {
        (Some(jail::Tier::Ns), _) | (None, config::Tier::Ns) => Tier::Ns,
        (Some(jail::Tier::Ll), _) | (None, config::Tier::Ll) => Tier::Ll,
        (Some(jail::Tier::Job), _) | (None, config::Tier::Job) => Tier::Job,
    };
    if let Some(words) = &asked.command {
        profile.program = words.program.clone();
        // Both need a daemon and the word of a rule.
        profile.secrets.clear();
        network = Network::None;
    }
    if tier == Tier::Job && !profile.copy {
        bail!("in tier job a worker works in a copy: set `copy = true` for it");
    }
    if profile.copy {
        profile.git = jail::Git::Write;
    }
    // Nothing is copied for showing where a copy would be.
    profile.copy &= asked.command.is_some();
    let directory = asked.directory.map(|dir| inside(&root, &dir)).transpose()?;
    let rehearsal = Rehearsal {
        profile,
        grounds: wiring::grounds(places)?,
        copies: places.state.with_extension("copies"),
        vault,
        network,
        root,
        tier,
        directory,
        words: asked.command.map(|it| it.args),
        timeout: asked.timeout,
    };
    let rehearsed = effects::rehearse(rehearsal).map_err(|why| anyhow!(why))?;
    Ok(Rehearsed { plan: rehearsed.plan.clone(), held: Box::new(rehearsed) })
}

/// A worker as it is configured, and what it may reach.
fn profile(asked: &Rehearse, vault: &Vault) -> Result<(Profile, Network)> {
    let worker = &asked.worker;
    let (settings, profiles) = wiring::workers_and_settings(&asked.config, vault);
    if let Some(profile) = profiles.get(worker) {
        let network = settings.workers.get(worker).map(|it| it.network.clone());
        return Ok((Profile::clone(profile), network.unwrap_or_default()));
    }
    match settings.workers.get(worker).map(|it| &it.broken) {
        Some(Some(why)) => bail!("worker {worker} cannot be used: {why}"),
        _ => bail!("worker {worker} connects by itself: it is a process of its own, and no jail binds it"),
    }
}

fn inside(root: &Root, dir: &std::path::Path) -> Result<RepoPath> {
    let found = crate::system::real_path(dir).with_context(|| dir.display().to_string())?;
    let inside = found.strip_prefix(root.place().path());
    let inside =
        inside.map_err(|_| anyhow!("{} is not inside {}", found.display(), root.place().path().display()))?;
    let text = inside.to_str().with_context(|| format!("{}: its name is not UTF-8", found.display()))?;
    RepoPath::parse(text).map_err(|e| anyhow!("{} {e}", found.display()))
}
