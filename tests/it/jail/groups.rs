//! Control groups of workers, for real where a group is delegated to the user who runs the tests (`scripts/test` does
//! so when root starts it on a host where it can), and what is said where none is.
//!
//! Walls need controllers, which the second version of control groups does not have on every host; the files
//! that make walls are looked at in a folder that stands for a group, into which no process can be born.

use provost::jail::{Groups, probe};
use rustix::process::{Pid, Signal, kill_process};

use crate::support::jails::*;

/// The group of this process, if it is one in which others can be made.
fn delegated() -> Option<Groups> {
    supervisor().with_control_groups().groups().cloned()
}

#[tokio::test]
async fn a_worker_has_a_group_of_its_own_or_the_host_is_said_to_have_none() {
    let note =
        probe(&supervisor()).await.findings.into_iter().find(|it| it.name == "control groups").unwrap();
    let Some(groups) = delegated() else {
        assert!(!note.works && note.note.contains("watched once a second"), "{note:?}");
        assert!(note.note.contains("Delegate=yes"), "what to do: {note:?}");
        return;
    };
    assert!(note.works == groups.memory || !note.works, "{note:?}");
    for tier in TIERS {
        let world = World::new();
        let script = "setsid sleep 1000 & echo up; exec sleep 1000";
        let plan = world.plan(world.sh(script).tier(tier));
        let in_groups = supervisor().in_groups(groups.clone());
        let mut running = launch(&in_groups, &plan, None, LiveOutput::new(1024)).await.unwrap();
        running.output().follow(0).await;
        assert!(running.layers().iter().any(|layer| layer.starts_with("control group")), "{tier:?}");
        let group = groups.base.join(format!("job-{}", running.supervisor()));
        let members = fs::read_to_string(group.join("cgroup.procs")).unwrap();
        let expected = if tier == Tier::Ns { 3 } else { 2 };
        assert_eq!(members.lines().count(), expected, "{tier:?}: {members}");
        if tier == Tier::Ll {
            // What a killed supervisor leaves is ended with its group.
            let supervisor = Pid::from_raw(running.supervisor().try_into().unwrap()).unwrap();
            kill_process(supervisor, Signal::KILL).unwrap();
            assert_eq!(running.wait().await.reason, ExitReason::SupervisorLost);
        } else {
            running.stop();
            assert_eq!(running.wait().await.reason, ExitReason::Cancelled);
        }
        assert!(!group.exists(), "{tier:?}");
        for member in members.lines() {
            soon("its end", || !Path::new(&format!("/proc/{member}")).exists());
        }
    }
}

#[tokio::test]
async fn a_group_that_was_promised_and_cannot_be_made_refuses_the_worker() {
    for tier in TIERS {
        let world = World::new();
        let groups = Groups { base: world.path("nowhere"), memory: true, processes: true };
        let plan = world.plan(world.sh("touch ran").tier(tier));
        let supervisor = supervisor().in_groups(groups);
        let error = launch(&supervisor, &plan, None, LiveOutput::new(1024)).await.unwrap_err();
        assert_eq!(error.exit, Some(125), "{error}");
        assert!(!world.path("workspace/ran").exists());
    }
}

#[tokio::test]
async fn the_walls_of_a_group_are_the_limits_of_its_worker() {
    for tier in TIERS {
        let world = World::new();
        let base = world.path("looks-like-a-group");
        fs::create_dir(&base).unwrap();
        let groups = Groups { base: base.clone(), memory: true, processes: true };
        let mut draft = world.sh("touch ran").tier(tier);
        draft.limits.resident_bytes = 300 << 20;
        draft.limits.processes = 17;
        let plan = world.plan(draft);
        let supervisor = supervisor().in_groups(groups);
        // No process can be born into an ordinary folder, so that nothing runs.
        let error = launch(&supervisor, &plan, None, LiveOutput::new(1024)).await.unwrap_err();
        assert_eq!(error.exit, Some(125), "{error}");
        assert!(!world.path("workspace/ran").exists());
        let job = fs::read_dir(&base).unwrap().next().unwrap().unwrap().path();
        assert!(job.file_name().unwrap().to_str().unwrap().starts_with("job-"));
        let said = |file: &str| fs::read_to_string(job.join(file)).unwrap();
        assert_eq!(said("memory.max"), (300 << 20).to_string());
        assert_eq!(said("memory.oom.group"), "1");
        // The first process of the namespaces is one of them.
        assert_eq!(said("pids.max"), if tier == Tier::Ns { "18" } else { "17" });
    }
}
