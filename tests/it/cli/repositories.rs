//! `provost` anywhere: what needs its user, in all of their repositories.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{World, eventually};

/// A user with several repositories.
struct User {
    world: World,
}

/// A daemon of one of them.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl User {
    fn new() -> Self {
        Self { world: World::new() }
    }

    fn repository(&self, name: &str) -> PathBuf {
        let folder = self.world.path(name);
        fs::create_dir_all(&folder).unwrap();
        let made = Command::new("git").args(["init", "-q"]).current_dir(&folder).status().unwrap();
        assert!(made.success());
        folder
    }

    fn command(&self, at: &Path, args: &[&str]) -> Command {
        let mut command = self.world.command(args);
        command.current_dir(at);
        command
    }

    fn run(&self, at: &Path, args: &[&str]) -> Output {
        self.command(at, args).output().unwrap()
    }

    fn start(&self, at: &Path) -> Running {
        let mut command = self.command(at, &["up", "--foreground"]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let running = Running(child);
        eventually("the daemon", || self.run(at, &["-C", at.to_str().unwrap(), "status"]).status.success());
        eventually("its entry", || {
            let entries = self.entries();
            entries
                .iter()
                .any(|it| fs::read_to_string(it).is_ok_and(|it| it.contains(&format!("{}\"", at.display()))))
        });
        running
    }

    fn folder(&self) -> PathBuf {
        let state = self.world.command(&[]);
        let find =
            |name: &str| state.get_envs().find(|it| it.0 == name).and_then(|it| it.1).map(PathBuf::from);
        let states = find("XDG_STATE_HOME").unwrap_or_else(|| find("HOME").unwrap().join(".local/state"));
        states.join("provost/daemons")
    }

    fn entries(&self) -> Vec<PathBuf> {
        let all = fs::read_dir(self.folder()).into_iter().flatten().flatten().map(|it| it.path());
        all.filter(|it| it.extension().is_some_and(|it| it == "json")).collect()
    }

    /// Returns the JSON output for a program.
    fn all(&self, at: &Path) -> Value {
        let output = self.run(at, &["--json"]);
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn text(&self, at: &Path) -> String {
        let output = self.run(at, &[]);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }
}

fn row<'a>(all: &'a Value, root: &Path) -> &'a Value {
    let rows = all["repositories"].as_array().unwrap();
    rows.iter().find(|it| it["root"] == root.to_str().unwrap()).unwrap_or_else(|| panic!("{root:?} in {all}"))
}

/// A question of a host in a repository, which waits.
fn ask(user: &User, at: &Path) -> Running {
    let told = json!({
        "session_id": "5f0c9b1e-7a52-4c1d-9d0e-2b64a1f3c001", "cwd": at, "hook_event_name": "PermissionRequest",
        "permission_mode": "default", "tool_name": "Bash", "tool_input": { "command": "make" },
    });
    let file = user.world.path("told.json");
    fs::write(&file, told.to_string()).unwrap();
    let mut hook = user.command(at, &["hook", "run", "claude", "permission-request", "--wait", "9m"]);
    hook.stdin(fs::File::open(&file).unwrap()).stdout(Stdio::null()).stderr(Stdio::null());
    Running(hook.spawn().unwrap())
}

#[test]
fn what_needs_its_user_in_all_repositories_is_shown_anywhere() {
    let user = User::new();
    let (one, two) = (user.repository("one"), user.repository("it's two"));
    let nowhere = user.world.path("nowhere");
    fs::create_dir(&nowhere).unwrap();
    // Nothing yet: how to begin.
    let none = user.run(&nowhere, &[]);
    assert_eq!(none.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&none.stderr).contains("provost up"), "{none:?}");
    let (_one, _two) = (user.start(&one), user.start(&two));
    assert_eq!(user.entries().len(), 2);
    assert_eq!(user.text(&nowhere), "Nothing needs you in any of 2 repositories.\n");
    let _asks = ask(&user, &two);
    eventually("the question", || user.text(&nowhere).contains("Waiting for your word (1)"));
    for at in [&nowhere, &one, &two] {
        let text = user.text(at);
        assert!(text.contains(&format!("== it's two  {}", two.display())), "{text}");
        assert!(!text.contains("== one") && !text.contains("Nothing needs you"), "{text}");
        assert!(text.contains("claude:Bash make") && text.contains("claude-"), "{text}");
        // The next command works as it is printed.
        let run = if *at == two {
            "provost".to_owned()
        } else {
            format!("provost -C '{}'", two.display().to_string().replace('\'', r"'\''"))
        };
        assert!(text.contains(&format!("look: {run} approval list")), "{text}");
    }
    let all = user.all(&one);
    assert_eq!(all["complete"], true);
    assert_eq!(row(&all, &one)["here"], true);
    assert_eq!(row(&all, &two)["needs"]["approvals"].as_array().unwrap().len(), 1);
    // Narrowed, as every command is.
    let narrowed = user.run(&nowhere, &["-C", one.to_str().unwrap()]);
    assert_eq!(String::from_utf8_lossy(&narrowed.stdout), "Nothing needs you.\n");
    for args in [["--repo", two.to_str().unwrap(), "approvals"], ["-C", two.to_str().unwrap(), "approvals"]] {
        let listed = user.run(&nowhere, &args);
        assert!(String::from_utf8_lossy(&listed.stdout).contains("make"), "{listed:?}");
    }
    for args in [&["-C"][..], &["-C", "/nonexistent"], &["--repo=/nonexistent", "status"]] {
        let wrong = user.run(&nowhere, args);
        assert_eq!(wrong.status.code(), Some(2), "{wrong:?}");
    }
    assert!(String::from_utf8_lossy(&user.run(&one, &["--help"]).stdout).contains("-C, --repo <FOLDER>"));
}

#[test]
fn a_daemon_that_ends_takes_its_entry_away_and_of_one_that_was_killed_a_reader_does() {
    let user = User::new();
    let (one, two) = (user.repository("one"), user.repository("two"));
    let running = user.start(&one);
    let mut killed = user.start(&two);
    assert!(user.run(&one, &["down"]).status.success());
    drop(running);
    eventually("its entry is gone", || user.entries().len() == 1);
    killed.0.kill().unwrap();
    killed.0.wait().unwrap();
    let text = user.text(&one);
    assert!(
        text.contains("== two") && text.contains(&format!("try: provost -C {} up", two.display())),
        "{text}"
    );
    assert!(text.contains("== one") && text.contains("try: provost up"), "{text}");
    assert_eq!(user.entries().len(), 0, "its process is proved to have ended");
    // A number that another process has by now is no proof that it runs.
    let entry = user.folder().join("0123456789abcdef.json");
    let other = json!({ "root": one, "name": "one", "own": "/x", "pid": std::process::id(), "began": 1 });
    fs::write(&entry, other.to_string()).unwrap();
    user.text(&one);
    assert!(!entry.exists());
}

#[test]
fn a_daemon_that_does_not_answer_is_listed_as_such_and_delays_no_other() {
    let user = User::new();
    let repositories: Vec<PathBuf> = (0..4).map(|n| user.repository(&format!("r{n}"))).collect();
    let running: Vec<Running> = repositories.iter().map(|it| user.start(it)).collect();
    let stop = |signal: &str, of: &Running| {
        assert!(Command::new("kill").args([signal, &of.0.id().to_string()]).status().unwrap().success());
    };
    running[1..].iter().for_each(|it| stop("-STOP", it));
    let begun = Instant::now();
    let all = user.all(&repositories[0]);
    let took = begun.elapsed();
    running[1..].iter().for_each(|it| stop("-CONT", it));
    assert!(took < Duration::from_millis(2_900), "all three are waited for at the same time: {took:?}");
    assert_eq!(all["complete"], false);
    for it in &repositories[1..] {
        assert_eq!(row(&all, it)["state"], "slow");
        assert!(row(&all, it)["next"].as_str().unwrap().contains("status"));
    }
    assert_eq!(row(&all, &repositories[0])["state"], "answers");
}

#[test]
fn entries_that_no_daemon_has_written_lead_nowhere() {
    let user = User::new();
    let (one, other) = (user.repository("one"), user.repository("other"));
    let _one = user.start(&one);
    let real = user.entries().remove(0);
    let text = fs::read_to_string(&real).unwrap();
    let entry: Value = serde_json::from_str(&text).unwrap();
    let folder = user.folder();
    // What listens there would hear from us.
    let listener = std::os::unix::net::UnixListener::bind(user.world.path("planted.sock")).unwrap();
    listener.set_nonblocking(true).unwrap();
    let planted = user.world.path("planted.sock");
    let mut elsewhere = entry.clone();
    elsewhere["own"] = planted.to_str().unwrap().into();
    let mut another = elsewhere.clone();
    another["root"] = other.to_str().unwrap().into();
    fs::write(folder.join("aaaaaaaaaaaaaaaa.json"), elsewhere.to_string()).unwrap();
    fs::write(folder.join("bbbbbbbbbbbbbbbb.json"), another.to_string()).unwrap();
    fs::write(folder.join("cccccccccccccccc.json"), "no entry").unwrap();
    fs::write(folder.join("dddddddddddddddd.json"), "x".repeat(20_000)).unwrap();
    fs::write(folder.join("ffffffffffffffff.json"), text.replace(one.to_str().unwrap(), "relative")).unwrap();
    symlink(&real, folder.join("eeeeeeeeeeeeeeee.json")).unwrap();
    fs::create_dir(folder.join("1111111111111111.json")).unwrap();
    assert!(Command::new("mkfifo").arg(folder.join("2222222222222222.json")).status().unwrap().success());
    let all = user.all(&one);
    assert_eq!(all["complete"], false);
    let unfit = all["repositories"].as_array().unwrap().iter().filter(|it| it["state"] == "unfit").count();
    assert_eq!(unfit, 8, "{all}");
    assert_eq!(row(&all, &one)["state"], "answers");
    let shown = user.text(&one);
    assert!(!shown.contains("Nothing needs you") && shown.contains("not believed"), "{shown}");
    // The entry's own name fits, and its address does not.
    fs::write(&real, elsewhere.to_string()).unwrap();
    assert_eq!(row(&user.all(&one), &real)["state"], "unfit");
    assert!(listener.accept().is_err(), "something was said to an address that an entry has named");
    assert!(real.exists(), "what is not proved dead stays");
    // A folder that others may write to, or that is a link, counts for nothing.
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o770)).unwrap();
    let open = user.run(&one, &[]);
    assert_eq!(open.status.code(), Some(1), "{open:?}");
    assert!(String::from_utf8_lossy(&open.stderr).contains("daemons"), "{open:?}");
    let aside = user.world.path("aside");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
    fs::rename(&folder, &aside).unwrap();
    symlink(&aside, &folder).unwrap();
    assert_eq!(user.run(&one, &[]).status.code(), Some(1));
}

#[test]
fn a_thousand_entries_and_names_that_move_cursors_are_borne() {
    let user = User::new();
    let one = user.repository("one");
    let _one = user.start(&one);
    let nowhere = user.repository("x\u{1b}[2J\u{202e}y");
    for n in 0..1_000 {
        let entry =
            json!({ "root": nowhere, "name": "\u{1b}[31mred\n== one", "own": "/x", "pid": 1, "began": null });
        fs::write(user.folder().join(format!("{n:016x}.json")), entry.to_string()).unwrap();
    }
    let begun = Instant::now();
    let text = user.text(&one);
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    assert!(text.contains("745 more daemons were not asked"), "{}", &text[text.len().saturating_sub(300)..]);
    assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}'), "{text}");
    assert_eq!(user.all(&one)["more"], 745);
}

#[test]
fn a_repository_that_was_removed_and_work_trees_of_one_repository() {
    let user = User::new();
    let (one, gone) = (user.repository("one"), user.repository("gone"));
    let _one = user.start(&one);
    let commit = ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "x"];
    assert!(Command::new("git").args(commit).current_dir(&one).status().unwrap().success());
    let tree = user.world.path("tree");
    let add = ["worktree", "add", "-q", tree.to_str().unwrap()];
    assert!(Command::new("git").args(add).current_dir(&one).status().unwrap().success());
    // One daemon serves both.
    let second = user.command(&tree, &["up", "--foreground"]).output().unwrap();
    assert_eq!(user.entries().len(), 1, "{second:?}");
    assert_eq!(row(&user.all(&tree), &one)["here"], true);
    let mut killed = user.start(&gone);
    killed.0.kill().unwrap();
    killed.0.wait().unwrap();
    fs::remove_dir_all(&gone).unwrap();
    let text = user.text(&one);
    assert!(text.contains("the repository is not there any more") && !text.contains("gone up"), "{text}");
    assert_eq!(user.entries().len(), 1);
}

#[test]
fn a_worker_plants_no_entry() {
    let world = World::new();
    world.rule(crate::support::rules::ALLOW);
    let daemon = world.start();
    let user = User { world };
    eventually("its entry", || user.entries().len() == 1);
    let client = user.world.client(&daemon, "orch:a");
    let folder = user.folder();
    let goal = format!("mkdir -p {0}; echo x > {0}/aaaaaaaaaaaaaaaa.json; ls {0}; true", folder.display());
    let (task, reply) = client.delegate("shell", &goal, json!({}));
    reply.ack();
    client.result_of(&task);
    assert_eq!(user.entries().len(), 1, "{:?}", user.entries());
}

#[test]
fn a_search_over_all_repositories_names_those_that_do_not_answer() {
    use rustix::process::{Pid, Signal, kill_process};

    let user = User::new();
    let (one, two) = (user.repository("one"), user.repository("it's two"));
    let nowhere = user.world.path("nowhere");
    fs::create_dir(&nowhere).unwrap();
    let search = |at: &Path, args: &[&str]| user.run(at, &[&["search", "--all"], args].concat());
    let none = search(&nowhere, &["aviary"]);
    assert!(String::from_utf8_lossy(&none.stderr).contains("no daemon of yours runs"), "{none:?}");
    let (_one, second) = (user.start(&one), user.start(&two));
    for at in [&one, &two] {
        let told = user.run(at, &["delegate", "echo tidy the aviary"]);
        assert!(told.status.success() || told.status.code().is_some(), "{told:?}");
    }
    let found = |at: &Path| -> Value {
        let output = user.run(at, &["search", "--all", "aviary", "--json"]);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
    };
    let hits = |all: &Value, root: &Path| row(all, root)["found"]["hits"].as_array().map_or(0, Vec::len);
    eventually("both are found", || {
        let all = found(&nowhere);
        hits(&all, &one) > 0 && hits(&all, &two) > 0
    });
    assert_eq!(found(&one)["complete"], true);
    let text = String::from_utf8(search(&nowhere, &["aviary"]).stdout).unwrap();
    for root in [&one, &two] {
        assert!(text.contains(&format!("  {}\n", root.display())), "{text}");
    }
    // The command that shows a task works as it is printed.
    let shows = format!("provost -C '{}' task show", two.display().to_string().replace('\'', r"'\''"));
    assert!(text.contains(&shows), "{text}");
    // No words, words that are none, and a page of one repository.
    for args in [&[][..], &["\"one"], &["x", "--before", "7"]] {
        let wrong = search(&one, args);
        assert!(!wrong.status.success(), "{wrong:?}");
    }
    let stands = Pid::from_raw(i32::try_from(second.0.id()).unwrap()).unwrap();
    kill_process(stands, Signal::STOP).unwrap();
    let begun = Instant::now();
    let (output, all) = (search(&nowhere, &["aviary"]), found(&nowhere));
    let took = begun.elapsed();
    kill_process(stands, Signal::CONT).unwrap();
    assert!(took < Duration::from_secs(8), "{took:?}");
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("not searched: it's two") && said.contains("try: provost"), "{said}");
    assert!(hits(&all, &one) > 0 && all["complete"] == false, "{all}");
    assert!(row(&all, &two)["found"].is_null() && row(&all, &two)["state"] == "slow", "{all}");
}
