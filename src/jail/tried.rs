//! Tries whether a worker really starts: builds a jail in a folder of its own, around a program that ends at once.
#![forbid(unsafe_code)]

use std::io;
use std::path::PathBuf;

use super::bounds::Limits;
use super::environment::Environment;
use super::launch::{ExitReason, Supervisor, launch};
use super::output::LiveOutput;
use super::plan::{Draft, ForbiddenPaths, Tier};
use super::root::{find_place, resolve_program};
use provost_base::Ttl;

/// The time limit of the trial, which is enough for a busy machine.
const WITHIN: Ttl = Ttl::seconds_clamped(20);

/// Runs a program that does nothing in a jail of this tier.
///
/// # Errors
/// The reason why no worker can start, in words.
pub(super) async fn try_tier(supervisor: &Supervisor, tier: Tier) -> Result<(), String> {
    let folder = Folder::new().map_err(|e| format!("no folder can be made for it: {e}"))?;
    let (program, before) = provost_system::shell();
    let program = resolve_program(&program).map_err(|e| e.to_string())?;
    let workspace = find_place(&folder.0).map_err(|e| e.to_string())?;
    let mut draft = Draft::new(program, Environment::new([]), workspace);
    draft.args = before.iter().map(|word| (*word).to_owned()).chain(["exit 0".into()]).collect();
    draft.tier = tier;
    draft.limits = Limits { wall: WITHIN, ..Limits::default() };
    let output = LiveOutput::new(draft.limits.output_bytes);
    let plan = draft.check(&places()).map_err(|e| e.to_string())?;
    let mut running = launch(supervisor, &plan, None, output)
        .await
        .map_err(|e| format!("{}: {}", e.step.title(), e.cause))?;
    match running.wait().await.reason {
        ExitReason::Code(0) => Ok(()),
        ExitReason::Code(code) => Err(format!("its program ended with code {code}")),
        ExitReason::Signal(signal) => Err(format!("signal {signal} ended its program")),
        ExitReason::TimedOut => Err(format!("its program did not end within {} s", WITHIN.as_seconds())),
        _ => Err("its supervisor ended it".into()),
    }
}

/// Returns the forbidden paths: a home, which need not exist for a trial.
fn places() -> ForbiddenPaths {
    let home = provost_system::HOME.iter().find_map(std::env::var_os).map(PathBuf::from);
    let home = home.filter(|it| it.is_absolute()).map(|it| provost_system::real_path(&it).unwrap_or(it));
    ForbiddenPaths { home: home.unwrap_or_else(|| "/home".into()), forbidden: Vec::new() }
}

/// A folder that is removed when this is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> io::Result<Self> {
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let name = format!("provost-trial-{:016x}", u64::from_le_bytes(random));
        let path = provost_system::real_path(&std::env::temp_dir())?.join(name);
        provost_system::make_private_folders(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _left_to_the_system = std::fs::remove_dir_all(&self.0);
    }
}
