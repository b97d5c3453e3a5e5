//! What a worker leaves hides no edit from the report, and keeps no later worker out without a sentence that says where it lies
//! and how it is put right.

use std::process::Command;

use crate::handoff::{OPEN, THIN};
use crate::repositories::{committed, ended, findings, well, write};
use crate::support::World;

/// The command that a refusal names.
fn command_in(said: &str, begins: &str) -> String {
    said.split('`').find(|it| it.starts_with(begins)).unwrap_or_else(|| panic!("{begins}: {said}")).to_owned()
}

fn typed(world: &World, command: &str) {
    let done = Command::new("sh").args(["-c", command]).current_dir(world.home()).output().unwrap();
    assert!(done.status.success(), "{command}: {done:?}");
}

#[test]
fn no_setting_or_bit_of_gits_hides_an_edit_from_the_report() {
    let world = World::new();
    let repo = committed(&world);
    for name in ["Makefile", "build.rs", "AGENTS.md", "package.json"] {
        write(repo.join(name), "one\n");
    }
    well(&repo, &["add", "."]);
    well(&repo, &["commit", "-qm", "two"]);
    for (key, value) in [
        ("core.checkStat", "minimal"),
        ("core.trustctime", "false"),
        ("core.untrackedCache", "true"),
        ("core.ignoreStat", "true"),
        ("core.preloadIndex", "true"),
    ] {
        well(&repo, &["config", key, value]);
    }
    well(&repo, &["status"]);
    well(&repo, &["update-index", "--assume-unchanged", "Makefile"]);
    well(&repo, &["update-index", "--skip-worktree", "build.rs"]);
    well(&repo, &["update-index", "--untracked-cache"]);
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let goal = "for f in Makefile build.rs AGENTS.md package.json; do touch -r $f /tmp/t; echo two > n; touch -r /tmp/t n; \
                cat n > $f; touch -r /tmp/t $f; done; rm n";
    let found = findings(&ended(&client, "shell", goal));
    for expected in [
        "changed build Makefile",
        "changed build build.rs",
        "changed instructions AGENTS.md",
        "changed build package.json",
    ] {
        assert!(found.iter().any(|it| it == expected), "{expected}: {found:?}");
    }
}

#[test]
fn an_index_or_configuration_that_a_worker_has_spoilt_is_named_with_the_command_that_puts_it_right() {
    let world = World::new();
    world.configure(&format!("{OPEN}{THIN}"));
    let repo = committed(&world);
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let result = ended(&client, "thin", "echo 'DIRC and no more' > .git/index");
    assert!(findings(&result).iter().any(|it| it.contains("git .git/index")), "{result}");
    let said = ended(&client, "shell", "touch ran")["artifacts"]["summary"].to_string();
    assert!(said.contains(".git/index ") || said.contains(".git/index,"), "{said}");
    typed(&world, &command_in(&said, "mv "));
    let result = ended(&client, "shell", "touch ran; git status --short");
    assert_eq!(result["status"], "completed", "{result}");
    assert!(!result.to_string().contains(" D "), "{result}");
    ended(&client, "thin", "echo '[core' >> .git/config");
    let said = ended(&client, "shell", "touch ran")["artifacts"]["summary"].to_string();
    assert!(said.contains(".git/config"), "{said}");
    assert!(command_in(&said, "git config").contains("--list"), "{said}");
    drop(repo);
}

#[test]
fn files_that_are_too_large_for_a_copy_are_named_with_the_command_that_puts_it_right() {
    let world = World::new();
    let entry = |name: &str, copy: &str| {
        format!(
            "[workers.{name}]\ntype = \"cli\"\nbinary = \"/bin/sh\"\nargs = [\"-c\", \"{{goal}}\"]\nparse_mode = \"text\"\ncopy = {copy}\n"
        )
    };
    world.configure(&[entry("kept", "\"kept\""), entry("thrown", "true")].concat());
    let repo = committed(&world);
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let result = ended(
        &client,
        "shell",
        "mkdir -p src/deep; for n in 1 2 3 4 5 6; do truncate -s 900M src/deep/$n.bin; done",
    );
    assert_eq!(result["status"], "completed", "{result}");
    for worker in ["kept", "thrown"] {
        let said =
            ended(&client, worker, "true")["artifacts"]["summary"].as_str().unwrap_or_default().to_owned();
        assert!(said.contains("src/deep/1.bin"), "{worker}: {said}");
    }
    let mut commands = 0;
    loop {
        let result = ended(&client, "thrown", "true");
        if result["status"] == "completed" {
            break;
        }
        commands += 1;
        assert!(commands < 4, "{result}");
        typed(&world, &command_in(result["artifacts"]["summary"].as_str().unwrap(), "rm "));
    }
    assert!(repo.join("src/a.rs").exists());
    assert_eq!(ended(&client, "kept", "true")["status"], "completed");
}
