//! What a jail adds to the start of a program, and what each of its layers adds to that.

use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

use anyhow::{Result, ensure};
use provost::jail::{
    Draft, Environment, ExitReason, ForbiddenPaths, Layer, LiveOutput, Plan, Supervisor, Tier, find_place,
    launch, resolve_program,
};

use crate::table::{Rounds, Table, Unit};
use crate::world::{World, provost};

const ROUNDS: usize = 200;

/// One way to start `/bin/true`.
struct Way {
    name: String,
    jail: Option<(Tier, Option<Layer>)>,
    supervisor: Supervisor,
    times: Rounds,
}

pub(crate) fn measure(table: &mut Table) -> Result<()> {
    let world = World::new()?;
    provost::jail::become_subreaper()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut ways = ways(&world)?;
    for round in 0..=ROUNDS {
        for way in &mut ways {
            let begun = Instant::now();
            match way.jail {
                None => runtime.block_on(run_plain())?,
                Some((tier, without)) => {
                    let plan = plan(&world, tier, without)?;
                    runtime.block_on(run_jailed(&way.supervisor, &plan))?;
                }
            }
            if round > 0 {
                way.times.push(begun.elapsed().as_secs_f64() * 1_000.0);
            }
        }
    }
    let plain = ways[0].times.clone();
    table.ratios(ROUNDS)?;
    for way in &ways[1..] {
        table.ratio(&way.name, Unit::Milliseconds, &way.times, &plain)?;
    }
    Ok(())
}

/// The plain child first; then each tier whole, and each without one of its layers.
fn ways(world: &World) -> Result<Vec<Way>> {
    let way = |name: &str, jail, supervisor: Supervisor| Way {
        name: name.to_owned(),
        jail,
        // As a daemon's.
        supervisor: supervisor.keeping_spares_in(world.path("spares")),
        times: Rounds::default(),
    };
    let mut ways = vec![way("a plain child", None, Supervisor::at(provost()))];
    for (word, tier) in [("ll", Tier::Ll), ("ns", Tier::Ns)] {
        let name = format!("`/bin/true` in tier `{word}`, to a plain child");
        ways.push(way(&name, Some((tier, None)), Supervisor::at(provost())));
        if CAN_LEAVE_OUT {
            // A larger executable takes longer to become a supervisor: this row is what the next ones are less than.
            let ourselves = Supervisor::at(std::env::current_exe()?);
            ways.push(way(&format!("… `{word}` by the benchmark itself"), Some((tier, None)), ourselves));
        }
        for layer in layers(tier) {
            let ourselves = Supervisor::at(std::env::current_exe()?);
            ways.push(way(&format!("… `{word}` without {layer:?}"), Some((tier, Some(*layer))), ourselves));
        }
    }
    Ok(ways)
}

/// What each tier consists of; nothing in a build that cannot leave layers out.
fn layers(tier: Tier) -> &'static [Layer] {
    use Layer::*;
    const BOTH: [Layer; 8] =
        [Seccomp, Landlock, NoNewPrivileges, Capabilities, Limits, Descriptors, Environment, Session];
    const NS: [Layer; 12] = [
        Root,
        PidNamespace,
        NetNamespace,
        IpcNamespace,
        Seccomp,
        Landlock,
        NoNewPrivileges,
        Capabilities,
        Limits,
        Descriptors,
        Environment,
        Session,
    ];
    match tier {
        _ if !CAN_LEAVE_OUT => &[],
        // For Windows.
        Tier::Job => &[],
        Tier::Ll => &BOTH,
        Tier::Ns => &NS,
    }
}

const CAN_LEAVE_OUT: bool = cfg!(any(debug_assertions, feature = "layers-off"));

fn plan(world: &World, tier: Tier, without: Option<Layer>) -> Result<Plan> {
    let program = resolve_program(Path::new("/bin/true"))?;
    let mut draft =
        Draft::new(program, Environment::new([]), find_place(&world.path("repo").canonicalize()?)?);
    draft.tier = tier;
    let plan = draft.check(&ForbiddenPaths { home: world.path("home"), forbidden: Vec::new() })?;
    #[cfg(any(debug_assertions, feature = "layers-off"))]
    let plan = plan.without(without.as_slice());
    ensure!(CAN_LEAVE_OUT || without.is_none(), "this build leaves no layer out");
    Ok(plan)
}

/// Start to end with output captured.
async fn run_plain() -> Result<()> {
    let done = tokio::process::Command::new("/bin/true").stdin(Stdio::null()).output().await?;
    ensure!(done.status.success(), "true is false here");
    Ok(())
}

async fn run_jailed(supervisor: &Supervisor, plan: &Plan) -> Result<()> {
    let output = LiveOutput::new(plan.limits().output_bytes);
    let mut running = launch(supervisor, plan, None, output).await?;
    let exit = running.wait().await;
    ensure!(exit.reason == ExitReason::Code(0), "the jailed worker ended with {exit:?}");
    Ok(())
}
