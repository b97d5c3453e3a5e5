//! Codex' screen has a background process do the work, which stays for a while when the screen has gone: what was written is free
//! as soon as the screen is.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{command_of, world};
use crate::support::host_hooks::recorded;
use crate::support::waits::stays;
use crate::support::{World, eventually};

/// A shell by the name of Codex. What it is started with are its arguments, the first of them a script in the folder.
struct Codex(PathBuf);

/// Ended when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _status = self.0.wait();
    }
}

impl Codex {
    fn of(world: &World) -> Self {
        let program = world.path("codex");
        fs::copy("/bin/bash", &program).unwrap();
        fs::write(world.repo().join("screen"), "echo $$ > \"$1\"\nread -r _\n").unwrap();
        fs::write(world.repo().join("app-server"), "while read -r line; do (eval \"$line\"); echo; done\n")
            .unwrap();
        Self(program)
    }

    /// A screen at a terminal of its own, and its process.
    fn screen(&self, world: &World, name: &str) -> (Running, u32) {
        let file = world.path(name);
        let line = format!("{} screen {}", self.0.display(), file.display());
        let mut script = Command::new("script");
        script.args(["-qec", &line, "/dev/null"]).current_dir(world.repo());
        script.env_remove("CODEX_HOME").env("HOME", world.home());
        script.stdin(Stdio::piped()).stdout(Stdio::null());
        let script = Running(script.spawn().unwrap());
        let number = || fs::read_to_string(&file).unwrap_or_default().trim().parse().ok();
        eventually("the screen", || number().is_some());
        (script, number().unwrap())
    }

    /// The process in the background: it calls the hooks of its orders.
    fn server(&self, world: &World) -> Running {
        let like = world.command(&[]);
        let mut server = Command::new("setsid");
        server.arg(&self.0).args(["app-server", "--listen", "unix://"]).current_dir(world.repo()).env_clear();
        server.envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))));
        Running(server.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap())
    }
}

impl Running {
    /// Has the process in the background write.
    fn writes(&mut self, world: &World, told: &Value) {
        use std::io::Write as _;
        let file = world.path(&format!("told-{}.json", told["session_id"].as_str().unwrap()));
        fs::write(&file, told.to_string()).unwrap();
        let line = format!("{} < '{}'\n", command_of(world, "codex", "PreToolUse"), file.display());
        self.0.stdin.as_mut().unwrap().write_all(line.as_bytes()).unwrap();
    }
}

/// Longer than what the system's times of processes and files are exact to.
fn a_moment() {
    stays("the time passes", Duration::from_millis(60), || true);
}

/// A session of a screen, as Codex keeps it open: by a file that is made when the session begins, two seconds after its screen.
fn opened(world: &World, session: &str) -> Value {
    let folder = world.home().join(".codex/thread-writer-locks");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(".coordination.lock"), "").unwrap();
    a_moment();
    fs::write(folder.join(format!("{session}.lock")), "").unwrap();
    a_moment();
    let mut told = recorded(world, "codex/apply_patch_beside");
    told["session_id"] = json!(session);
    told
}

/// Has a session write a file that no other session writes.
fn in_a_file(mut told: Value, file: &str) -> Value {
    let text = format!("*** Begin Patch\n*** Add File: {file}\n+x\n*** End Patch");
    told["tool_input"]["command"] = json!(text);
    told
}

/// The processes of the locks.
fn processes(world: &World) -> Vec<u32> {
    let locks = world.done("x", &["lock", "list"])["locks"].clone();
    locks.as_array().unwrap().iter().map(|it| it["pid"].as_u64().unwrap().try_into().unwrap()).collect()
}

#[test]
fn what_codex_wrote_is_free_as_soon_as_its_screen_has_gone() {
    let world = world("codex");
    world.configure("");
    let _daemon = world.start();
    let codex = Codex::of(&world);
    let (screen, number) = codex.screen(&world, "one");
    let mut server = codex.server(&world);
    server.writes(&world, &recorded(&world, "codex/apply_patch_beside"));
    eventually("the lease", || processes(&world) == [number]);
    drop(screen);
    eventually("its end", || processes(&world).is_empty());
    assert!(server.0.try_wait().unwrap().is_none(), "the process in the background lives on");
}

#[test]
fn of_several_screens_none_is_taken_for_the_one_that_writes() {
    let world = world("codex");
    world.configure("");
    let _daemon = world.start();
    let codex = Codex::of(&world);
    let ((one, _), (two, _)) = (codex.screen(&world, "one"), codex.screen(&world, "two"));
    let mut server = codex.server(&world);
    server.writes(&world, &recorded(&world, "codex/apply_patch_beside"));
    let number = server.0.id();
    eventually("the lease", || processes(&world) == [number]);
    drop(one);
    drop(two);
    assert_eq!(processes(&world), [number], "whose it was is not known");
    drop(server);
    eventually("its end", || processes(&world).is_empty());
}

const ONE: &str = "019dba93-8214-7d50-a089-00000000000a";
const TWO: &str = "019dba93-8214-7d50-a089-00000000000b";

/// The file of each lease, and its process.
fn leases(world: &World) -> Vec<(String, u32)> {
    let locks = world.done("x", &["lock", "list"])["locks"].clone();
    let row = |it: &Value| {
        let (symbol, pid) = (it["symbol"].as_str().unwrap(), it["pid"].as_u64().unwrap());
        (symbol.trim_end_matches(':').to_owned(), u32::try_from(pid).unwrap())
    };
    let mut all: Vec<(String, u32)> = locks.as_array().unwrap().iter().map(row).collect();
    all.sort();
    all
}

#[test]
fn of_two_screens_in_one_folder_each_gives_back_its_own_when_it_goes() {
    let world = world("codex");
    world.configure("");
    let _daemon = world.start();
    let codex = Codex::of(&world);
    let (first, one) = codex.screen(&world, "one");
    let of_first = in_a_file(opened(&world, ONE), "first.md");
    let (second, two) = codex.screen(&world, "two");
    let of_second = in_a_file(opened(&world, TWO), "second.md");
    let mut server = codex.server(&world);
    server.writes(&world, &of_second);
    server.writes(&world, &of_first);
    let both = [("first.md".to_owned(), one), ("second.md".to_owned(), two)];
    eventually("both", || leases(&world) == both);
    let began = Instant::now();
    drop(second);
    eventually("the second one's", || leases(&world) == both[..1]);
    eprintln!("free after {:?}", began.elapsed());
    drop(first);
    eventually("the first one's", || leases(&world).is_empty());
    assert!(server.0.try_wait().unwrap().is_none(), "the process in the background lives on");
}

#[test]
fn of_two_screens_that_are_started_at_once_none_is_taken_for_the_one_that_writes() {
    let world = world("codex");
    world.configure("");
    let _daemon = world.start();
    let codex = Codex::of(&world);
    let ((_one, _), (_two, _)) = (codex.screen(&world, "one"), codex.screen(&world, "two"));
    let (of_first, of_second) = (opened(&world, ONE), opened(&world, TWO));
    let mut server = codex.server(&world);
    let number = server.0.id();
    server.writes(&world, &in_a_file(of_first, "first.md"));
    server.writes(&world, &in_a_file(of_second, "second.md"));
    let both = [("first.md".to_owned(), number), ("second.md".to_owned(), number)];
    eventually("both", || leases(&world) == both);
}
