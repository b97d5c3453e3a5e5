//! `provost jail`: what a worker may touch is printed as it is, and a command runs exactly so, without a daemon.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::support::{World, eventually, provost};

const WORKERS: &str = r#"
[workers.coder]
type = "cli"
binary = "/usr/bin/python3"
args = ["-c", "{goal}", "{model}"]
env = { CODER_MODE = "SECRETVALUE" }
processes = 33
copy = false
growth = "4MiB"

[workers.light]
type = "cli"
binary = "/bin/sh"
tier = "ll"

[workers.missing]
type = "cli"
binary = "no-such-program"

[workers.remote]
type = "polling"
"#;

fn world() -> World {
    let world = World::new();
    world.configure(WORKERS);
    world
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Checks the exit code; shows everything when it is another one.
#[track_caller]
fn ends(output: Output, code: i32) -> (String, String) {
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "\n--- out\n{out}\n--- err\n{err}");
    (out, err)
}

#[track_caller]
fn run(world: &World, args: &[&str], code: i32) -> (String, String) {
    ends(world.command(args).output().unwrap(), code)
}

#[track_caller]
fn tried(world: &World, script: &str, code: i32) -> String {
    run(world, &["jail", "try", "--", "sh", "-c", script], code).0
}

#[track_caller]
fn explained(world: &World, args: &[&str]) -> Value {
    let args = [&["--json", "jail", "explain"], args].concat();
    serde_json::from_str(&run(world, &args, 0).0).unwrap()
}

#[test]
fn what_a_worker_may_touch_is_told_with_what_holds_it() {
    let world = world();
    let repo = world.repo().canonicalize().unwrap();
    let coder = explained(&world, &["coder"]);
    let may = &coder["may"];
    let has = |topic: &str, what: &str| {
        let lines = may[topic].as_array().unwrap_or_else(|| panic!("no {topic}: {coder:#}"));
        assert!(lines.iter().any(|line| line.as_str().unwrap().contains(what)), "{topic}: {what}\n{coder:#}");
    };
    let sum = text(&Command::new("sha256sum").arg("/usr/bin/python3").output().unwrap().stdout);
    has("program", "/usr/bin/python3");
    has("program", sum.split(' ').next().unwrap());
    has("directory", repo.to_str().unwrap());
    has("write", repo.to_str().unwrap());
    has("protected", &format!("{}/.git", repo.display()));
    has("git", "read-only; so is every other one");
    has("write", "in the directory itself");
    has("masked", &format!("{}/.devit", repo.display()));
    has("home", "empty");
    has("environment", "CODER_MODE");
    has("network", "none");
    has("network", "a door to the daemon");
    has("tier", "ns:");
    has("limits", "33 processes and threads (kernel: RLIMIT_NPROC");
    has("limits", "4 MiB and 1000000 files more than before");
    assert!(!coder.to_string().contains("SECRETVALUE"), "names of variables, never values");
    assert_eq!(coder["host"]["runs_this_tier"], true);
    assert_eq!(coder["open"], serde_json::json!({}));
    let light = explained(&world, &["light"]);
    assert!(light["may"]["tier"][0].as_str().unwrap().starts_with("ll:"));
    assert_eq!(light["open"].as_object().unwrap().len(), 19, "{light:#}");
    assert!(explained(&world, &["coder", "--tier", "ll"])["open"]["git.hook_write"].is_string());
    let inner = world.repo().join("inner");
    std::fs::create_dir(&inner).unwrap();
    let there = explained(&world, &["shell", "--cwd", "inner"]);
    assert_eq!(there["may"]["write"][0], inner.canonicalize().unwrap().to_str().unwrap());
    assert_eq!(there["may"]["read"][0], repo.to_str().unwrap());
    let (words, _) = run(&world, &["jail", "explain"], 0);
    for line in ["program ", "write ", "protected ", "stays open ", "this host "] {
        assert!(words.lines().any(|it| it.starts_with(line)), "{line}:\n{words}");
    }
}

#[test]
fn a_worker_that_cannot_be_shown_is_an_error_that_says_why() {
    let world = world();
    for (worker, why) in [
        ("codr", "did you mean coder?"),
        ("xyzzy", "the configuration has coder, light, missing, remote, shell"),
        ("missing", "there is no executable 'no-such-program'"),
        ("remote", "no jail confines it"),
    ] {
        let (_, err) = run(&world, &["jail", "explain", worker], 1);
        assert!(err.contains(why) && err.contains("try:"), "{worker}: {err}");
        let (_, err) = run(&world, &["jail", "try", "--worker", worker, "--", "true"], 125);
        assert!(err.contains(why), "{worker}: {err}");
    }
    let (_, err) = run(&world, &["jail", "explain", "--cwd", "/etc"], 1);
    assert!(err.contains("is not inside"), "{err}");
    run(&world, &["jail", "try"], 2);
    run(&world, &["jail", "try", "--tier", "none", "--", "true"], 2);
}

#[test]
fn a_command_is_tried_in_the_jail_of_a_worker() {
    let world = world();
    std::fs::write(world.home().join("secret"), "TOPSECRET").unwrap();
    let home = world.home().canonicalize().unwrap();
    for tier in ["ns", "ll"] {
        let shell = |script: &str, code| {
            run(&world, &["jail", "try", "--tier", tier, "--", "sh", "-c", script], code)
        };
        assert_eq!(shell("echo out; echo err >&2; exit 7", 7), ("out\n".into(), "err\n".into()));
        let (out, _) = shell(&format!("cat {}/secret; echo $? > made", home.display()), 0);
        assert!(!out.contains("TOPSECRET"), "{out}");
        assert_eq!(std::fs::read_to_string(world.repo().join("made")).unwrap(), "1\n");
        shell("kill -11 $$", 139);
    }
    tried(&world, "echo x > .git/hooks/pre-commit", 2);
    assert_eq!(
        tried(
            &world,
            "python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", 9))' 2>/dev/null; echo $?",
            0
        ),
        "1\n"
    );
    run(&world, &["jail", "try", "--", "no-such-command"], 127);
    // What the workspace brings can be started too, since the shell starts it.
    std::fs::write(world.repo().join("script"), "#!/bin/sh\necho \"$@\"\n").unwrap();
    run(&world, &["jail", "try", "--", "./script"], 126);
    std::fs::set_permissions(
        world.repo().join("script"),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    assert_eq!(run(&world, &["jail", "try", "--", "./script", "{goal}", "a b"], 0).0, "{goal} a b\n");
    // A worker's own jail: its variables, its limits.
    let variable = run(&world, &["jail", "try", "--worker", "coder", "--", "printenv", "CODER_MODE"], 0).0;
    assert_eq!(variable, "SECRETVALUE\n");
    assert!(!world.path("run/provost").exists(), "no daemon was started for it");
}

#[test]
fn limits_and_time_end_a_trial_and_are_named() {
    let world = world();
    let hog = "head -c 9000000 /dev/urandom > big; sleep 60";
    let (_, err) = run(&world, &["jail", "try", "--worker", "coder", "--", "sh", "-c", hog], 137);
    assert!(err.contains("its directories grew by more than 4 MiB"), "{err}");
    let (_, err) = run(&world, &["jail", "try", "--timeout", "1s", "--", "sleep", "60"], 124);
    assert!(err.contains("after 1 s"), "{err}");
}

#[test]
fn output_comes_through_whole_and_a_closed_pipe_ends_the_command() {
    let world = world();
    let flood = "import os, sys\nfor i in range(300): sys.stdout.buffer.write(bytes([i % 256]) * 20_000)\n\
                 sys.stdout.flush(); sys.stderr.write('e' * 500_000)";
    let output = world.command(&["jail", "try", "--", "python3", "-c", flood]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let expected: Vec<u8> = (0..300_u32).flat_map(|i| vec![(i % 256) as u8; 20_000]).collect();
    assert!(output.stdout == expected, "{} bytes of {}", output.stdout.len(), expected.len());
    assert_eq!(output.stderr.len(), 500_000);
    let mut yes = world.command(&["jail", "try", "--", "yes", "again and again"]);
    let mut yes = yes.stdout(Stdio::piped()).spawn().unwrap();
    let mut some = [0; 100];
    yes.stdout.take().unwrap().read_exact(&mut some).unwrap();
    assert_eq!(yes.wait().unwrap().code(), Some(141));
}

#[test]
fn what_is_given_to_a_trial_is_read_by_its_command_until_it_ends() {
    let world = world();
    for tier in ["ns", "ll"] {
        let mut cat = world.command(&["jail", "try", "--tier", tier, "--", "sh", "-c", "cat; echo end"]);
        let mut cat = cat.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (mut to, mut from) =
            (cat.stdin.take().unwrap(), BufReader::new(cat.stdout.take().unwrap()).lines());
        for line in ["first", "second"] {
            // Each is answered before the next one is given.
            writeln!(to, "{line}").unwrap();
            assert_eq!(from.next().unwrap().unwrap(), line, "{tier}");
        }
        drop(to);
        assert_eq!(from.next().unwrap().unwrap(), "end");
        assert_eq!(cat.wait().unwrap().code(), Some(0));
    }
}

#[test]
fn what_a_trial_says_does_nothing_to_a_terminal() {
    let world = world();
    let line = format!("{} jail try -- printf '\\033]0;title\\007plain\\302\\251'", provost().display());
    let mut at_terminal = Command::new("script");
    at_terminal.args(["-qec", &line, "/dev/null"]).current_dir(world.repo()).env_clear().stdin(Stdio::null());
    for (name, value) in world.command(&[]).get_envs() {
        at_terminal.env(name, value.unwrap_or_default());
    }
    let (shown, _) = ends(at_terminal.output().unwrap(), 0);
    assert_eq!(shown.trim_end(), "plain©", "{shown:?}");
    let raw = tried(&world, "printf '\\033[1mbold'", 0);
    assert_eq!(raw, "\u{1b}[1mbold", "a program reads it as it is");
}

#[test]
fn ctrl_c_ends_a_trial_with_all_that_it_started() {
    let world = world();
    for tier in ["ns", "ll"] {
        let script = "setsid sleep 1234 & echo up; sleep 1234";
        let mut trial = world.command(&["jail", "try", "--tier", tier, "--", "sh", "-c", script]);
        let mut trial = trial.stdout(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(trial.stdout.take().unwrap()).lines();
        assert_eq!(said.next().unwrap().unwrap(), "up");
        kill_process(Pid::from_raw(trial.id().try_into().unwrap()).unwrap(), Signal::INT).unwrap();
        assert_eq!(trial.wait().unwrap().code(), Some(130), "{tier}");
        assert!(said.next().is_none());
        let workspace = world.repo().canonicalize().unwrap();
        eventually("nobody is left in the workspace", || {
            let entries = std::fs::read_dir("/proc").unwrap().flatten();
            let here = entries
                .filter(|it| std::fs::read_link(it.path().join("cwd")).is_ok_and(|cwd| cwd == workspace));
            here.count() == 0
        });
    }
}

/// As in a container whose engine covers a part of `/proc`: namespaces can be made, and a jail cannot.
const COVERED: &str =
    "mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys && exec \"$0\" \"$@\"";

#[test]
fn doctor_says_of_no_tier_that_workers_run_in_it_whose_jail_cannot_be_built() {
    let world = world();
    let args = ["--json", "doctor"];
    let like = world.command(&args);
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-current-user", "--keep-caps", "--mount", "sh", "-c", COVERED]);
    command.arg(like.get_program()).args(args).current_dir(world.repo()).env_clear();
    command.envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = command.output().unwrap();
    let said: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    let says = |what: &str| {
        let all = said["findings"].as_array().unwrap().iter();
        let its: Vec<&str> =
            all.filter(|it| it["what"] == what).filter_map(|it| it["says"].as_str()).collect();
        its.join(" ")
    };
    assert_eq!(says("user namespaces"), "an ordinary user can make them", "{said:#}");
    assert!(says("a jail of tier ns").contains("no worker starts in it"), "{said:#}");
    assert_eq!(says("confinement"), "workers can run in tier ll", "{said:#}");
    // Elsewhere both are tried, and work; nothing of it is left.
    let temporary = world.path("temporary");
    std::fs::create_dir(&temporary).unwrap();
    let output = world.command(&args).env("TMPDIR", &temporary).output().unwrap();
    let (said, _) = ends(output, 0);
    assert!(said.contains("workers can run in tier ns and ll"), "{said}");
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0);
}
