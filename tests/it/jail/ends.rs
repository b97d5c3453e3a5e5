//! The whole tree of processes ends with the worker, for any cause of its end.

use std::process::{Command, Stdio};

use provost::jail::{become_subreaper, sweep_orphans};
use rustix::process::{Pid, Signal, kill_process};

use crate::support::jails::*;
use crate::support::waits::stays;

/// A hundred processes that left the session and their parent, ignore every signal that can be ignored, and hold
/// no pipe of ours; then the worker itself, which waits.
const SWARM: &str = "
import os, signal, sys, time
for s in range(1, 32):
    try: signal.signal(s, signal.SIG_IGN)
    except (OSError, ValueError): pass
signal.signal(signal.SIGCHLD, signal.SIG_DFL)
for _ in range(100):
    if os.fork() == 0:
        os.setsid()
        if os.fork() > 0: os._exit(0)
        os.closerange(0, 3)
        os.execv('/bin/sleep', [sys.argv[1] + '/sleeper', '1000'])
    os.wait()
print('ready', flush=True)
if sys.argv[2:] == ['leave']: sys.exit(3)
time.sleep(1000)
";

fn swarm(world: &World, tier: Tier) -> Draft {
    let mut draft = world.python(SWARM).tier(tier);
    // In `ll` the kernel counts what other tests of this user have started in the meantime.
    draft.limits.processes = 5_000;
    draft
}

fn sleepers(world: &World) -> usize {
    alive(&format!("{}/sleeper", world.name()))
}

async fn all_there(world: &World, running: &Running) {
    running.output().follow(0).await;
    soon("a hundred processes", || sleepers(world) == 100);
}

#[track_caller]
fn all_gone(world: &World) {
    assert_eq!((sleepers(world), alive(world.name())), (0, 0));
}

#[tokio::test]
async fn a_time_limit_ends_a_hundred_processes_that_do_not_want_to() {
    for tier in TIERS {
        let world = World::new();
        let mut draft = swarm(&world, tier);
        draft.limits.wall = Ttl::seconds_clamped(3);
        let mut running = world.start(draft).await.unwrap();
        all_there(&world, &running).await;
        let exit = running.wait().await;
        all_gone(&world);
        assert_eq!(exit.reason, ExitReason::TimedOut, "{tier:?}");
        assert_eq!(exit.swept, if tier == Tier::Ll { 100 } else { 0 }, "{tier:?}");
    }
}

#[tokio::test]
async fn stopping_ends_them_all() {
    for tier in TIERS {
        let world = World::new();
        let mut running = world.start(swarm(&world, tier)).await.unwrap();
        all_there(&world, &running).await;
        running.stop();
        assert_eq!(running.wait().await.reason, ExitReason::Cancelled, "{tier:?}");
        all_gone(&world);
        assert_eq!(running.wait().await.reason, ExitReason::Cancelled, "asking again gets the same answer");
    }
}

/// One process in another session, and the worker: each reports a signal to end.
const TIDY: &str = "
import os, signal, sys, time
def tidy(name):
    def end(*_):
        os.write(1, (name + ' tidied up\\n').encode())
        if name == 'child': os._exit(0)
        os.wait()
        sys.exit(0)
    return end
signal.signal(signal.SIGTERM, tidy('worker'))
if os.fork() == 0:
    os.setsid()
    signal.signal(signal.SIGTERM, tidy('child'))
    os.write(1, b'ready\\n')
    while True: time.sleep(1)
while True: time.sleep(1)
";

#[tokio::test]
async fn who_is_asked_to_end_can_tidy_up() {
    for tier in TIERS {
        let world = World::new();
        let mut running = world.start(world.python(TIDY).tier(tier)).await.unwrap();
        running.output().follow(0).await;
        running.ask_to_end();
        assert_eq!(running.wait().await.reason, ExitReason::Cancelled, "{tier:?}");
        let said = running.output().text(Stream::Out);
        let mut lines: Vec<&str> = said.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["child tidied up", "ready", "worker tidied up"], "{tier:?}");
        assert_eq!(alive(world.name()), 0);
    }
}

#[tokio::test]
async fn who_does_not_listen_is_ended_all_the_same() {
    for tier in TIERS {
        let world = World::new();
        let mut running = world.start(swarm(&world, tier)).await.unwrap();
        all_there(&world, &running).await;
        running.ask_to_end();
        assert_eq!(running.wait().await.reason, ExitReason::Cancelled, "{tier:?}");
        all_gone(&world);
    }
}

#[tokio::test]
async fn dropping_the_handle_ends_them_all() {
    for tier in TIERS {
        let world = World::new();
        let running = world.start(swarm(&world, tier)).await.unwrap();
        all_there(&world, &running).await;
        drop(running);
        tokio::task::spawn_blocking(move || soon("the end of all", || alive(world.name()) == 0))
            .await
            .unwrap();
    }
}

#[test]
fn a_runtime_that_shuts_down_ends_them_all() {
    for tier in TIERS {
        let world = World::new();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let running = runtime.block_on(async {
            let running = world.start(swarm(&world, tier)).await.unwrap();
            all_there(&world, &running).await;
            running
        });
        runtime.shutdown_background();
        soon("the end of all", || alive(world.name()) == 0);
        drop(running);
    }
}

#[tokio::test]
async fn what_a_worker_leaves_behind_ends_with_it() {
    for tier in TIERS {
        let world = World::new();
        let mut draft = swarm(&world, tier);
        draft.args.push("leave".into());
        let exit = world.run(draft).await.exit;
        all_gone(&world);
        assert_eq!(exit.reason, ExitReason::Code(3), "{tier:?}");
    }
}

/// Each generation lives for the time of one fork. Bounded, so that a failing test does not haunt the machine.
const CHASE: &str = "
import os, sys, time
if os.fork() == 0:
    os.closerange(0, 3)
    for _ in range(20_000):
        if os.fork() > 0: os._exit(0)
        os.setsid()
        with open('heartbeat', 'a') as f: f.write('x')
print('ready', flush=True)
time.sleep(1000)
";

async fn chase(world: &World, tier: Tier) -> Running {
    let mut draft = world.python(CHASE).tier(tier);
    // Enough that the chase does not end by itself, for want of processes.
    draft.limits.processes = 20_000;
    let running = world.start(draft).await.unwrap();
    running.output().follow(0).await;
    soon("a hundred generations", || beats(world) > 100);
    running
}

fn beats(world: &World) -> u64 {
    fs::metadata(world.path("workspace/heartbeat")).map_or(0, |meta| meta.len())
}

/// One that is between two names cannot be seen, but it would go on beating.
fn nothing_beats(world: &World) {
    all_gone(world);
    let before = beats(world);
    stays("the last beat", Duration::from_millis(200), || beats(world) == before);
}

#[tokio::test]
async fn a_process_that_forks_faster_than_one_can_look_ends_too() {
    for tier in TIERS {
        let world = World::new();
        let mut running = chase(&world, tier).await;
        running.stop();
        running.wait().await;
        nothing_beats(&world);
    }
}

#[tokio::test]
async fn it_ends_as_well_when_the_supervisor_was_killed() {
    become_subreaper().unwrap();
    for tier in TIERS {
        let world = World::new();
        let mut running = chase(&world, tier).await;
        let supervisor = Pid::from_raw(running.supervisor().try_into().unwrap()).unwrap();
        kill_process(supervisor, Signal::KILL).unwrap();
        running.wait().await;
        nothing_beats(&world);
    }
}

/// The child's part of the next test: a daemon that will not live to see the end.
async fn run_until_killed(path: std::ffi::OsString) {
    let tier = if std::env::var_os("PROVOST_TEST_LL").is_some() { Tier::Ll } else { Tier::Ns };
    let world = World::at(path.into());
    let mut running = world.start(swarm(&world, tier)).await.unwrap();
    running.wait().await;
}

#[tokio::test]
async fn killing_the_daemon_ends_them_all() {
    if let Some(path) = std::env::var_os("PROVOST_TEST_WORLD") {
        return run_until_killed(path).await;
    }
    for tier in TIERS {
        let world = World::new();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "jail::ends::killing_the_daemon_ends_them_all"]);
        command.env("PROVOST_TEST_WORLD", &world.path).stdout(Stdio::null());
        if tier == Tier::Ll {
            command.env("PROVOST_TEST_LL", "1");
        }
        let mut daemon = command.spawn().unwrap();
        soon("a hundred processes", || sleepers(&world) == 100);
        daemon.kill().unwrap();
        daemon.wait().unwrap();
        let took = soon("the end of all", || alive(world.name()) == 0);
        assert!(took < Duration::from_secs(5), "{tier:?}: {took:?}");
    }
}

#[tokio::test]
async fn killing_the_supervisor_ends_them_all() {
    become_subreaper().unwrap();
    for tier in TIERS {
        let world = World::new();
        let mut running = world.start(swarm(&world, tier)).await.unwrap();
        all_there(&world, &running).await;
        let supervisor = Pid::from_raw(running.supervisor().try_into().unwrap()).unwrap();
        kill_process(supervisor, Signal::KILL).unwrap();
        assert_eq!(running.wait().await.reason, ExitReason::SupervisorLost, "{tier:?}");
        all_gone(&world);
    }
    assert_eq!(sweep_orphans(), 0, "nothing was left to sweep");
}

#[tokio::test]
async fn the_private_folder_of_a_lost_supervisor_is_removed() {
    become_subreaper().unwrap();
    let world = World::new();
    let script = "echo $TMPDIR; exec sleep 1000";
    let mut running = world.start(world.sh(script).tier(Tier::Ll)).await.unwrap();
    running.output().follow(0).await;
    let folder = PathBuf::from(running.output().text(Stream::Out).trim());
    assert!(folder.is_dir());
    let supervisor = Pid::from_raw(running.supervisor().try_into().unwrap()).unwrap();
    kill_process(supervisor, Signal::KILL).unwrap();
    running.wait().await;
    assert!(!folder.exists());
}

#[tokio::test]
async fn the_worker_cannot_end_its_supervisor_or_its_daemon() {
    let world = World::new();
    for tier in TIERS {
        let ran = world.run(
            world
                .python("import os\ntry: os.kill(os.getppid(), 9)\nexcept OSError: pass\nprint('on')")
                .tier(tier),
        );
        ran.await.says("on");
        let us = std::process::id();
        let everyone = format!(
            "import os\nfor p in (-1, {us}):\n try: os.kill(p, 10)\n except OSError: pass\nprint('on')"
        );
        let mut draft = world.python(&everyone).tier(tier);
        draft.args.clear();
        draft
            .args
            .extend(["-c".into(), format!("import signal; signal.signal(10, signal.SIG_IGN)\n{everyone}")]);
        world.run(draft).await.says("on");
    }
}
