//! A worker that cannot be confined as planned is not started at all.

use std::fs;

use provost::base::limits::STDIN_BYTES_MAX;
use provost::jail::{Network, PlanRefused, Step, probe};

use crate::support::jails::*;

/// Programs built for release have no way to make a step fail.
#[cfg(debug_assertions)]
#[tokio::test]
async fn each_step_that_fails_refuses_the_worker() {
    for tier in TIERS {
        for step in Step::all(tier) {
            let world = World::new();
            let plan = world.plan(world.sh("touch ran").tier(tier)).failing_at(*step);
            let error = launch(&supervisor(), &plan, None, LiveOutput::new(1024)).await.unwrap_err();
            assert_eq!((error.step, error.exit), (*step, Some(125)), "{tier:?}: {error}");
            assert!(!world.path("workspace/ran").exists(), "{tier:?} ran in spite of {step:?}");
            assert_eq!(fs::read_dir(world.workspace()).unwrap().count(), 0, "{step:?} left something behind");
            assert_eq!(alive(world.name()), 0);
        }
    }
}

/// The tests can leave a layer out to see what it is for; what is shipped cannot. Programs built for release can
/// not even plan it.
#[cfg(debug_assertions)]
#[tokio::test]
async fn the_ordinary_executable_builds_no_jail_that_lacks_a_layer() {
    for tier in TIERS {
        let world = World::new();
        let plan = world.plan(world.sh("touch ran").tier(tier)).without(&[provost::jail::Layer::Environment]);
        let error = launch(&supervisor(), &plan, None, LiveOutput::new(1024)).await.unwrap_err();
        assert_eq!((error.step, error.exit), (Step::Grant, Some(125)), "{tier:?}: {error}");
        assert!(error.to_string().contains("builds no jail that lacks a layer"), "{error}");
        assert!(!world.path("workspace/ran").exists(), "{tier:?}");
    }
    for source in crate::support::source::sources("src") {
        let calls = source.code.matches("main_of_the_tests_if_asked").count();
        let allowed = match source.path.as_str() {
            "src/jail/child/mod.rs" | "src/jail/mod.rs" => 1,
            _ => 0,
        };
        assert_eq!(calls, allowed, "{} uses what is for tests alone", source.path);
    }
}

#[tokio::test]
async fn the_list_of_steps_is_complete() {
    // A step that is on no list is one that the test above does not try.
    let world = World::new();
    let elsewhere = [Step::Supervisor, Step::Grant];
    for step in Step::all(Tier::Ns).iter().chain(Step::all(Tier::Ll)) {
        assert!(!elsewhere.contains(step));
    }
    assert!(Step::all(Tier::Ns).len() >= 26 && Step::all(Tier::Ll).len() >= 16, "{}", world.name());
}

#[test]
fn a_network_needs_outlets_and_tier_ns() {
    let world = World::new();
    let hosts = || Network::Hosts(vec!["example.org:443".into()]);
    let refused = |network, outlets: Vec<u16>, tier| {
        let mut draft = world.sh("true").tier(tier);
        (draft.network, draft.outlets) = (network, outlets);
        draft.check(&world.forbidden_paths()).err()
    };
    assert_eq!(refused(hosts(), vec![3128], Tier::Ns), None);
    assert_eq!(refused(Network::Ports(vec![80]), vec![80], Tier::Ns), None);
    for network in [hosts(), Network::Ports(vec![80])] {
        assert_eq!(refused(network, vec![80], Tier::Ll), Some(PlanRefused::NetworkInLl));
    }
    for (network, outlets) in [
        (Network::None, vec![80]),
        (Network::Ports(vec![]), vec![]),
        (Network::Ports(vec![80]), vec![81]),
        (Network::Ports(vec![80, 80]), vec![80, 80]),
        (hosts(), vec![]),
        (hosts(), vec![0]),
        (hosts(), (1..=65).collect()),
    ] {
        assert_eq!(refused(network.clone(), outlets, Tier::Ns), Some(PlanRefused::Outlets), "{network:?}");
    }
}

/// A request as the daemon would send it.
fn request(plan: &Plan) -> Vec<u8> {
    let request = serde_json::json!({ "plan": plan, "input": null }).to_string();
    let len = u32::try_from(request.len()).unwrap();
    [&len.to_le_bytes()[..], request.as_bytes()].concat()
}

#[tokio::test]
async fn a_jail_inside_a_jail_is_refused_and_says_why() {
    let world = World::new();
    let inner = world.plan(world.sh("touch ran"));
    for tier in TIERS {
        let draft = world.draft(provost().to_str().unwrap(), &["__jail"]).tier(tier);
        let ran = world.run_with(draft, Some(&request(&inner))).await;
        assert_eq!(ran.exit.reason, ExitReason::Code(125), "{ran:?}");
        assert!(
            ran.err.contains("user namespaces") && ran.err.contains("let policy accept tier ll"),
            "{ran:?}"
        );
        assert!(!world.path("workspace/ran").exists());
    }
}

#[tokio::test]
async fn a_workspace_that_was_swapped_is_refused() {
    for tier in TIERS {
        let world = World::new();
        let draft = world.sh("touch ran").tier(tier);
        fs::rename(world.workspace(), world.path("old")).unwrap();
        fs::create_dir(world.workspace()).unwrap();
        let error = world.start(draft.clone()).await.unwrap_err();
        assert!(error.to_string().contains("is not the one that the task was accepted for"), "{error}");
        fs::remove_dir(world.workspace()).unwrap();
        std::os::unix::fs::symlink(world.path("outside"), world.workspace()).unwrap();
        let error = world.start(draft.clone()).await.unwrap_err();
        assert!(
            [Step::Sources, Step::WorkingDirectory, Step::Placeholders, Step::Watch].contains(&error.step),
            "{error}"
        );
        fs::remove_file(world.workspace()).unwrap();
        world.start(draft).await.unwrap_err();
        for folder in ["outside", "old"] {
            assert!(!world.path(folder).join("ran").exists());
        }
    }
}

#[tokio::test]
async fn each_writable_directory_is_recognised_for_itself() {
    for tier in TIERS {
        let world = World::new();
        fs::create_dir(world.path("second")).unwrap();
        let mut draft = world.sh("touch ran $W/second/ran").tier(tier);
        draft.writable.push(find_place(&world.path("second")).unwrap());
        world.run(draft.clone()).await.says("");
        fs::remove_file(world.path("workspace/ran")).unwrap();
        fs::rename(world.path("second"), world.path("old")).unwrap();
        fs::create_dir(world.path("second")).unwrap();
        let error = world.start(draft).await.unwrap_err();
        assert!(error.to_string().contains("is not the one that the task was accepted for"), "{error}");
        assert!(!world.path("second/ran").exists() && !world.path("workspace/ran").exists());
    }
}

#[tokio::test]
async fn a_working_directory_that_was_swapped_for_another_is_refused() {
    for tier in TIERS {
        let world = World::new();
        fs::create_dir(world.path("workspace/d")).unwrap();
        let mut draft = world.sh("touch ran").tier(tier);
        draft.cwd = find_place(&world.path("workspace/d")).unwrap();
        fs::rename(world.path("workspace/d"), world.path("workspace/old")).unwrap();
        fs::create_dir(world.path("workspace/d")).unwrap();
        let error = world.start(draft).await.unwrap_err();
        assert_eq!((error.step, error.exit), (Step::WorkingDirectory, Some(125)), "{error}");
        assert!(!world.path("workspace/d/ran").exists());
    }
}

#[tokio::test]
async fn a_program_that_changed_since_it_was_accepted_is_refused() {
    for tier in TIERS {
        let world = World::new();
        let path = world.path("outside/worker");
        let write = |text: &str| {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        };
        write("#!/bin/sh\necho one\n");
        let draft = world.draft(path.to_str().unwrap(), &[]).tier(tier);
        let program = draft.program.clone();
        assert!(program.is_current());
        write("#!/bin/sh\necho two\n");
        assert!(!program.is_current());
        let error = world.start(draft).await.unwrap_err();
        assert_eq!(error.step, Step::Program, "{error}");
        assert!(error.to_string().contains("has changed"), "{error}");
    }
}

#[tokio::test]
async fn a_program_that_the_kernel_cannot_execute_is_an_error_of_the_setup() {
    let world = World::new();
    let path = world.path("outside/worker");
    fs::write(&path, "#!/no/such/interpreter\n").unwrap();
    fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    for tier in TIERS {
        let error = world.start(world.draft(path.to_str().unwrap(), &[]).tier(tier)).await.unwrap_err();
        assert_eq!(error.step, Step::Execute, "{error}");
    }
}

#[tokio::test]
async fn an_executable_that_is_no_supervisor_is_noticed() {
    let world = World::new();
    for other in ["/bin/true", "/bin/false", "/no/such/file"] {
        let plan = world.plan(world.sh("touch ran"));
        let error = launch(&Supervisor::at(other), &plan, None, LiveOutput::new(1024)).await.unwrap_err();
        assert_eq!(error.step, Step::Supervisor, "{other}: {error}");
    }
}

#[tokio::test]
async fn more_input_than_the_bound_is_refused() {
    let world = World::new();
    let error =
        world.start_with(world.sh("touch ran"), Some(&vec![b'x'; STDIN_BYTES_MAX + 1])).await.unwrap_err();
    assert_eq!(error.step, Step::Input);
}

#[tokio::test]
async fn the_host_is_described_with_what_to_do() {
    let world = World::new();
    let host = probe(&supervisor()).await;
    assert_eq!(host.tiers, [Tier::Ns, Tier::Ll], "{} {host:?}", world.name());
    for finding in &host.findings {
        assert!(finding.note.len() > 5, "{finding:?}");
    }
    for tier in ["ns", "ll"] {
        let name = format!("a jail of tier {tier}");
        assert!(host.findings.iter().any(|it| it.works && it.name == name), "{tier}: {host:?}");
    }
    let broken = probe(&Supervisor::at("/bin/false")).await;
    let namespaces = broken.findings.iter().find(|finding| finding.name == "user namespaces").unwrap();
    assert!(!namespaces.works && namespaces.note.contains("let policy accept tier ll"), "{namespaces:?}");
    // What has all its parts and starts nothing is no tier.
    assert_eq!(broken.tiers, []);
    let tried = broken.findings.iter().find(|finding| finding.name == "a jail of tier ll").unwrap();
    assert!(!tried.works && tried.note.contains("no worker starts in it"), "{tried:?}");
}
