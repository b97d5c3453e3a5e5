//! Leftovers of a worker: they hide no edit from the report, and keep no later worker out without a sentence that says
//! where they lie and how to repair that.

use std::process::Command;

use crate::support::World;
use crate::support::repositories::{OPEN, THIN};
use crate::support::repositories::{committed, ended, findings, in_copies, well, write};

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
    world.configure(&in_copies());
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

#[test]
fn no_name_that_a_worker_chooses_keeps_later_ones_out() {
    let world = World::new();
    let repo = committed(&world);
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let goal = r#"python3 - <<'END'
import os, socket
def folder(name):
    os.makedirs(name, exist_ok=True)
    return name + b'/' if isinstance(name, bytes) else name + '/'
for name in (b'a\nb', b'c\x1b[2Jd', b'e:f', b'g.', b'h ', b'\xff\xfe', b'-rf', b'i\\j', b'k\tl', b'x' * 255, '\u202em'.encode(), b'$(n)', b'..o'):
    at = folder(name)
    for setting in (b'.vscode/tasks.json', b'.mcp.json', b'AGENTS.md', b'.husky/pre-commit'):
        os.makedirs(os.path.dirname(at + setting), exist_ok=True)
        open(at + setting, 'w').write('{"command": "./x:y", "args": ["a\\nb", "src/../e:f/AGENTS.md"], "folderOpen": 1}')
    os.symlink(b'../a\nb/AGENTS.md', at + b'.cursorrules')
    os.symlink(b'x:y', at + b'.windsurfrules')
    os.mkfifo(at + b'pipe')
    os.chdir(at)
    socket.socket(socket.AF_UNIX).bind('s')
    os.chdir('..')
os.symlink('.vimrc', 'src/.vimrc')
for number in range(700):
    os.makedirs(f'many/{number}/.vscode')
END"#;
    let result = ended(&client, "shell", goal);
    assert_eq!(result["status"], "completed", "{result}");
    assert!(!findings(&result).is_empty(), "{result}");
    for worker in ["shell", "shell"] {
        let result = ended(&client, worker, "touch ran");
        assert_eq!(result["status"], "completed", "{result}");
    }
    assert!(repo.join("ran").exists());
}

/// Takes a lease on a file, if it can, and tells how that went.
const LEASE: &str = "import fcntl, os, time
f = os.open('src/a.rs', os.O_RDWR)
try:
    fcntl.fcntl(f, 1024, fcntl.F_WRLCK)
    print('leased')
except OSError as e: print(e.strerror)
open('up', 'w')
while not os.path.exists('go'): time.sleep(0.01)
";

#[test]
fn no_worker_keeps_others_waiting_by_a_lease_on_a_file() {
    let world = World::new();
    world.configure("[workers.thrown]\ntype = \"cli\"\nbinary = \"/bin/sh\"\nargs = [\"-c\", \"{goal}\"]\nparse_mode = \"text\"\ncopy = true\n");
    let repo = committed(&world);
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let (task, reply) =
        client.delegate("shell", &format!("exec python3 -c \"{LEASE}\""), serde_json::json!({}));
    reply.ack();
    crate::support::eventually("the worker", || repo.join("up").exists());
    let other = world.client(&daemon, "orch:b");
    let result = ended(&other, "thrown", "cat src/a.rs");
    let began = std::time::Instant::now();
    std::fs::read(repo.join("src/a.rs")).unwrap();
    let waited = began.elapsed();
    write(repo.join("go"), "");
    let leased = client.result_of(&task);
    assert_eq!(result["status"], "completed", "{result} {leased}");
    assert!(waited < std::time::Duration::from_secs(5), "{waited:?} {leased}");
}

#[test]
fn a_pipe_in_place_of_what_the_daemon_reads_keeps_it_from_nothing() {
    let world = World::new();
    world.configure(&format!("{OPEN}{THIN}[limits]\nworkers = 4\n"));
    let repo = committed(&world);
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    for place in [".git/HEAD", ".git/index", ".git/config", ".git/info/exclude", ".git/hooks/pre-commit"] {
        let kept = std::fs::read(repo.join(place)).ok();
        ended(&client, "thin", &format!("rm -f {place}; mkfifo {place}"));
        let began = std::time::Instant::now();
        // Refused or not, it is answered, and so is the next one.
        ended(&client, "shell", "true");
        // It may say that this is no repository any more.
        world.command(&["status"]).output().unwrap();
        assert!(began.elapsed() < std::time::Duration::from_secs(25), "{place}: {:?}", began.elapsed());
        let _ = std::fs::remove_file(repo.join(place));
        if let Some(kept) = kept {
            std::fs::write(repo.join(place), kept).unwrap();
        }
    }
    // All of it, under the name that everybody looks for first.
    ended(&client, "thin", "mv .git g; mkfifo .git; true");
    let began = std::time::Instant::now();
    ended(&client, "shell", "true");
    assert!(began.elapsed() < std::time::Duration::from_secs(25), "{:?}", began.elapsed());
    daemon.stop();
}

/// Settings that a worker makes name so much that to find all of it would take the daemon's memory, or its time.
#[test]
fn no_settings_that_a_worker_makes_cost_the_daemon_more_than_some_seconds() {
    let many = "'run:|' * 4096 + '\\n' + '  x y z\\n' * 20000";
    let doubled = "'{\"command\": \"A=xxxxxxxx; ' + 'A=$A$A; ' * 40 + ' ./$A\"}'";
    let folders = "'\\n'.join('run: ' + ' '.join(f'd{n} e{n}' for n in range(800)) for _ in range(20))";
    let choices = "'run: x' + '{a,b}' * 60000 + '\\n'";
    let braces = "'run: x ' + '{' * 400000 + '\\n'";
    let loops = "'run: for a in ' + 'x ' * 60 + '; do ' + 'y $a; ' * 5000 + 'done\\n'";
    let all = [
        ("many", many),
        ("doubled", doubled),
        ("folders", folders),
        ("choices", choices),
        ("braces", braces),
        ("loops", loops),
    ];
    for (name, text) in all {
        let world = World::new();
        let repo = committed(&world);
        let daemon = world.start();
        let client = world.client(&daemon, "orch:a");
        let goal = format!(
            "python3 - <<'END'\nimport os\nos.mkdir('sub')\nfor n in range(800): os.mkdir(f'd{{n}}')\n\
             open('sub/.mcp.json', 'w').write({text})\nEND"
        );
        let result = ended(&client, "shell", &goal);
        assert_eq!(result["status"], "completed", "{name}: {result}");
        let began = std::time::Instant::now();
        let result = ended(&client, "shell", "touch ran");
        assert!(began.elapsed() < std::time::Duration::from_secs(20), "{name}: {:?}", began.elapsed());
        if result["status"] != "completed" {
            let said = result["artifacts"]["summary"].as_str().unwrap_or_default();
            assert!(said.contains("sub/.mcp.json"), "{name}: {result}");
            typed(&world, &command_in(said, "rm "));
            assert_eq!(ended(&client, "shell", "touch ran")["status"], "completed", "{name}");
        }
        assert!(repo.join("ran").exists(), "{name}");
        daemon.stop();
    }
}

#[test]
fn a_tree_that_is_deeper_than_any_is_looked_at_no_deeper_than_it_is_copied() {
    let world = World::new();
    world.configure("[workers.thrown]\ntype = \"cli\"\nbinary = \"/bin/sh\"\nargs = [\"-c\", \"{goal}\"]\nparse_mode = \"text\"\ncopy = true\n");
    committed(&world);
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let goal = "for n in 1 2 3 4 5 6; do truncate -s 900M $n.bin; done; python3 -c \"import os
for n in range(1800): os.mkdir('a'); os.chdir('a')\"";
    ended(&client, "shell", goal);
    for _ in 0..2 {
        let result = ended(&client, "thrown", "true");
        let said = result["artifacts"]["summary"].as_str().unwrap_or_default();
        assert_ne!(result["status"], "completed", "{result}");
        assert!(!said.is_empty(), "{result}");
    }
    world.command(&["status"]).output().unwrap();
}
