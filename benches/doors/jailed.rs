//! What a jail adds to the start of a program.

use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

use anyhow::{Result, ensure};
use provost::jail::{
    Draft, Environment, ExitReason, Grounds, LiveOutput, Supervisor, Tier, find_place, launch,
    resolve_program,
};

use crate::table::{Rounds, Table, Unit};
use crate::world::{World, provost};

const ROUNDS: usize = 40;

pub(crate) fn measure(table: &mut Table) -> Result<()> {
    let world = World::new()?;
    provost::jail::become_subreaper()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let (mut plain, mut ns, mut ll) = (Rounds::default(), Rounds::default(), Rounds::default());
    for round in 0..=ROUNDS {
        let times = (
            runtime.block_on(run_plain())?,
            runtime.block_on(run_jailed(&world, Tier::Ll))?,
            runtime.block_on(run_jailed(&world, Tier::Ns))?,
        );
        if round > 0 {
            plain.push(times.0);
            ll.push(times.1);
            ns.push(times.2);
        }
    }
    table.ratios(ROUNDS)?;
    table.ratio("`/bin/true` in tier `ll`, to a plain child", Unit::Milliseconds, &ll, &plain)?;
    table.ratio("`/bin/true` in tier `ns`, to a plain child", Unit::Milliseconds, &ns, &plain)
}

/// Start to end with output captured, in milliseconds.
async fn run_plain() -> Result<f64> {
    let begun = Instant::now();
    let done = tokio::process::Command::new("/bin/true").stdin(Stdio::null()).output().await?;
    ensure!(done.status.success(), "true is false here");
    Ok(begun.elapsed().as_secs_f64() * 1_000.0)
}

async fn run_jailed(world: &World, tier: Tier) -> Result<f64> {
    let begun = Instant::now();
    let program = resolve_program(Path::new("/bin/true"))?;
    let mut draft =
        Draft::new(program, Environment::new([]), find_place(&world.path("repo").canonicalize()?)?);
    draft.tier = tier;
    let plan = draft.check(&Grounds { home: world.path("home"), forbidden: Vec::new() })?;
    let output = LiveOutput::new(plan.limits().output_bytes);
    let mut running = launch(&Supervisor::at(provost()), &plan, None, output).await?;
    let exit = running.wait().await;
    ensure!(exit.reason == ExitReason::Code(0), "the jailed worker ended with {exit:?}");
    Ok(begun.elapsed().as_secs_f64() * 1_000.0)
}
