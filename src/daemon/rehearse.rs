//! Finds out what a worker would get now from a daemon, without running one: for `provost jail`.

use anyhow::{Context as _, Result, anyhow, bail};

use super::wiring;
use provost_base::RepoPath;
use provost_cli::{Rehearse, Rehearsed};
use provost_config as config;
use provost_domain::{Network, Tier};
use provost_effects::{self as effects, Left, Rehearsal};
use provost_jail::{self as jail, Copies, Profile, Root};
use provost_vault::Vault;

/// How many files that matter after a run are named one by one.
const FINDINGS_SHOWN: usize = 20;

/// Makes the plan that a run of this worker would have.
///
/// # Errors
/// The reason why no plan can be made, for a person.
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
        // Both need a daemon and a rule's permission.
        profile.secrets.clear();
        network = Network::None;
    }
    if tier == Tier::Job && profile.copies == Copies::No {
        bail!("in tier job a worker works in a copy: set `copy = true` for it");
    }
    if !matches!(profile.copies, Copies::No | Copies::WorkTree) {
        profile.git = jail::Git::Write;
    }
    // For showing a plan with a copy, nothing is copied.
    if asked.command.is_none() {
        profile.copies = Copies::No;
    }
    let directory = asked.directory.map(|dir| inside(&root, &dir)).transpose()?;
    let rehearsal = Rehearsal {
        profile,
        forbidden_paths: wiring::forbidden_paths(places)?,
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
    Ok(Rehearsed { plan: rehearsed.plan.clone(), left: Box::new(|| in_lines(&rehearsed.left())) })
}

/// Returns lines about a program's leftovers that run later, or lead out of the workspace.
fn in_lines(left: &Left) -> Vec<String> {
    let Left { report, made } = left;
    let made = made.iter().map(|made| format!("a git repository was made in the workspace: {made}"));
    let findings = report.findings.iter().take(FINDINGS_SHOWN);
    let findings =
        findings.map(|it| format!("left behind: {} {} {}", it.change.as_str(), it.kind.as_str(), it.path));
    let more = report.findings.len().saturating_sub(FINDINGS_SHOWN) + report.more as usize;
    let more = (more > 0).then(|| format!("and {more} more"));
    let unknown = report.unknown.iter().map(|why| format!("what it has left is not known: {why}"));
    made.chain(findings).chain(more).chain(unknown).collect()
}

/// Returns a worker's configured profile, and its network access.
fn profile(asked: &Rehearse, vault: &Vault) -> Result<(Profile, Network)> {
    let worker = &asked.worker;
    let (settings, profiles) = wiring::workers_and_settings(&asked.config, vault);
    if let Some(profile) = profiles.get(worker) {
        let network = settings.workers.get(worker).map(|it| it.network.clone());
        return Ok((Profile::clone(profile), network.unwrap_or_default()));
    }
    match settings.workers.get(worker).map(|it| &it.broken) {
        Some(Some(why)) => bail!("worker {worker} cannot be used: {why}"),
        _ => bail!("worker {worker} connects by itself: it is a process of its own, and no jail confines it"),
    }
}

fn inside(root: &Root, dir: &std::path::Path) -> Result<RepoPath> {
    let found = provost_system::real_path(dir).with_context(|| dir.display().to_string())?;
    let inside = found.strip_prefix(root.place().path());
    let inside =
        inside.map_err(|_| anyhow!("{} is not inside {}", found.display(), root.place().path().display()))?;
    let text = inside.to_str().with_context(|| format!("{}: its name is not UTF-8", found.display()))?;
    RepoPath::parse(text).map_err(|e| anyhow!("{} {e}", found.display()))
}
