//! The real program in a real terminal, over real daemons: keys in, what tmux shows out.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::loopback_client::Http;
use crate::support::passkeys::{asks, world_by};
use crate::support::repositories::{committed, well};
use crate::support::rules::ASK;
use crate::support::terminal::at_the_terminal;
use crate::support::waits::{stays, within};
use crate::support::{Daemon, World, eventually, provost};

/// A terminal in which the program runs, with a server of tmux of its own.
pub(super) struct Terminal {
    socket: PathBuf,
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ended = self.tmux(&["kill-server"]).output();
    }
}

impl Terminal {
    /// Types a command at a terminal of this size, in a folder; what ends the command is said behind it.
    fn open(world: &World, at: &Path, line: &str, size: (u16, u16)) -> Self {
        Self::with(world, at, line, size, &[])
    }

    /// The same, with more in the environment.
    fn with(world: &World, at: &Path, line: &str, size: (u16, u16), more: &[(&str, &str)]) -> Self {
        static OPENED: AtomicU32 = AtomicU32::new(0);
        let socket = world.path(&format!("tmux-{}", OPENED.fetch_add(1, Ordering::Relaxed)));
        let terminal = Self { socket };
        let line = format!(
            "{} {line}; printf 'ended with %s\\n' $?; stty -a | grep -o '.echo '; cat",
            provost().display()
        );
        let (columns, rows) = (size.0.to_string(), size.1.to_string());
        let mut begin = terminal.tmux(&["-f", "/dev/null", "new-session", "-d", "-x", &columns, "-y", &rows]);
        // A session of its own: what runs below a process that has spoken as an agent is no person.
        let mut other = Command::new("setsid");
        other.arg("--fork").arg("--wait").arg(begin.get_program()).args(begin.get_args()).arg(line);
        begin = other;
        begin.current_dir(at).env_clear();
        for (name, value) in world.command(&[]).get_envs() {
            begin.env(name, value.unwrap());
        }
        begin.env("LANG", "C.UTF-8").env("TERM", "xterm-256color").envs(more.iter().copied());
        let output = begin.stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        terminal
    }

    pub(super) fn of(world: &World, line: &str) -> Self {
        Self::open(world, &world.repo(), line, (100, 30))
    }

    fn tmux(&self, args: &[&str]) -> Command {
        let mut tmux = Command::new("tmux");
        tmux.arg("-u").arg("-S").arg(&self.socket).args(args);
        tmux
    }

    pub(super) fn keys(&self, keys: &[&str]) {
        let output = self.tmux(&["send-keys", "-t", "0"]).args(keys).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }

    /// Types a text as it is.
    pub(super) fn types(&self, text: &str) {
        self.keys(&["-l", text]);
    }

    fn text(&self) -> String {
        let output = self.tmux(&["capture-pane", "-p", "-t", "0"]).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    #[track_caller]
    pub(super) fn shows(&self, text: &str) {
        let found = within(Duration::from_secs(20), || self.text().contains(text));
        assert!(found, "{text:?} is not shown:\n{}", self.text());
    }

    #[track_caller]
    pub(super) fn shows_no_more(&self, text: &str) {
        let gone = within(Duration::from_secs(20), || !self.text().contains(text));
        assert!(gone, "{text:?} is still shown:\n{}", self.text());
    }

    /// The process of the program.
    fn process(&self) -> u32 {
        let find = || {
            let pane = self.tmux(&["display-message", "-p", "-t", "0", "#{pane_pid}"]).output().ok()?;
            let pane = String::from_utf8_lossy(&pane.stdout).trim().to_owned();
            let below = Command::new("pgrep").args(["-P", &pane, "provost"]).output().ok()?;
            String::from_utf8_lossy(&below.stdout).trim().parse().ok()
        };
        crate::support::waits::until_some("the program", find)
    }
}

/// A daemon by whose rule a person looks at what agents delegate.
fn asking() -> (World, Daemon) {
    let world = World::new();
    world.rule(ASK);
    let daemon = world.start();
    (world, daemon)
}

fn ask(world: &World, daemon: &Daemon, goal: &str) -> String {
    let (task, reply) = world.client(daemon, "orch").delegate("shell", goal, json!({}));
    reply.ack();
    task
}

fn journal(world: &World) -> String {
    let output = world.command(&["journal", "show", "--json"]).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn what_is_asked_appears_by_itself_and_is_approved_by_the_person_at_the_terminal() {
    let (world, daemon) = asking();
    let terminal = Terminal::of(&world, "ui");
    terminal.shows("All is calm");
    terminal.shows("live");
    let task = ask(&world, &daemon, "echo made the release");
    let begun = Instant::now();
    terminal.shows("approval 1");
    eprintln!("an approval was on the screen after {} ms", begun.elapsed().as_millis());
    terminal.shows("Needs you (1)");
    terminal.keys(&["a"]);
    terminal.shows("approve 1");
    terminal.shows("What the daemon knows");
    terminal.shows("An agent has written this");
    terminal.keys(&["y"]);
    terminal.shows("approval 1 approved");
    terminal.shows("granted (proof: weak-human)");
    let done = world.client(&daemon, "orch").result_of(&task);
    assert!(done.to_string().contains("made the release"), "{done}");
    assert!(journal(&world).contains("weak-human"));
    // The task with its log, its timeline, and back.
    terminal.keys(&["2"]);
    terminal.shows("Finished last");
    terminal.shows("completed");
    terminal.keys(&["Enter"]);
    terminal.shows("Facts");
    terminal.keys(&["l"]);
    terminal.shows("its worker has ended");
    // One by one: both at once would be Alt-q.
    terminal.keys(&["Escape"]);
    terminal.shows_no_more("Timeline");
    terminal.keys(&["q"]);
    terminal.shows("ended with 0");
    // The terminal echoes again, and the screen of before is there.
    terminal.shows(" echo");
}

#[test]
fn a_denial_gets_its_reason_to_the_asker() {
    let (world, daemon) = asking();
    let task = ask(&world, &daemon, "rm everything");
    let terminal = Terminal::of(&world, "ui --no-mouse");
    terminal.shows("approval 1");
    terminal.keys(&["d"]);
    terminal.shows("deny 1, because:");
    terminal.shows("What the daemon knows");
    terminal.types("not on a Friday, ünd nöt so");
    terminal.keys(&["Enter"]);
    terminal.shows("approval 1 denied");
    let done = world.client(&daemon, "orch").result_of(&task);
    assert!(done.to_string().contains("not on a Friday, ünd nöt so"), "{done}");
}

#[test]
fn one_that_is_answered_elsewhere_leaves_with_a_line_that_says_so() {
    let (world, daemon) = asking();
    ask(&world, &daemon, "make the release");
    let terminal = Terminal::of(&world, "ui");
    terminal.shows("approval 1");
    let person = crate::support::terminal::at_the_terminal(&world, "deny 1 --reason no");
    assert!(person.status.success(), "{person:?}");
    terminal.shows("approval 1: denied (proof: weak-human), by user:");
    terminal.shows("All is calm");
}

#[test]
fn a_filter_a_command_and_another_size() {
    let (world, daemon) = asking();
    for goal in ["red one", "green one"] {
        ask(&world, &daemon, goal);
    }
    let terminal = Terminal::of(&world, "ui");
    terminal.shows("approval 2");
    terminal.types("/green");
    terminal.shows_no_more("red one");
    terminal.shows("green one");
    terminal.keys(&["Enter", "Escape"]);
    terminal.shows("red one");
    for (columns, rows, says) in
        [("50", "10", "A larger terminal, please"), ("80", "24", "green one"), ("140", "50", "green one")]
    {
        let resized =
            terminal.tmux(&["resize-window", "-t", "0", "-x", columns, "-y", rows]).output().unwrap();
        assert!(resized.status.success(), "{resized:?}");
        terminal.shows(says);
    }
    terminal.types(":ev");
    terminal.keys(&["Tab", "Enter"]);
    terminal.shows("approval_asked");
    for (key, says) in [
        ("3", "Agent"),
        ("4", "No agent holds anything"),
        ("5", "Waiting, longest first (2)"),
        ("7", "No agent waits for an answer"),
        ("?", "Keys here"),
    ] {
        terminal.keys(&[key]);
        terminal.shows(says);
    }
}

#[test]
fn a_daemon_that_is_killed_is_stale_and_live_again_when_it_is_back() {
    let (world, mut daemon) = asking();
    ask(&world, &daemon, "make the release");
    let terminal = Terminal::of(&world, "ui");
    terminal.shows("approval 1");
    daemon.kill();
    terminal.shows("stale since");
    terminal.shows("try: provost up");
    // What was shown stays, and is answered by none.
    terminal.shows("make the release");
    terminal.keys(&["a"]);
    terminal.shows("nothing was sent");
    let daemon = world.start();
    terminal.shows("live again");
    terminal.shows_no_more("stale since");
    ask(&world, &daemon, "another one");
    terminal.shows("Needs you (2)");
    terminal.shows("another one");
    terminal.keys(&["a"]);
    // Before the whole request is read, a yes is none.
    terminal.shows("approve 1, ");
    terminal.shows("An agent has written this");
    terminal.shows("The answer cannot be taken back");
    terminal.keys(&["y"]);
    terminal.shows("approval 1 approved");
}

#[test]
fn words_of_an_agent_act_on_no_terminal_however_long() {
    let (world, daemon) = asking();
    let words = "\u{1b}[2J\u{1b}[31mred\u{1b}]0;title\u{7}\u{202e}desrever\u{200b} 漢字 ";
    ask(&world, &daemon, &format!("first {words}\n{}", words.repeat(200_000 / words.len())));
    let terminal = Terminal::of(&world, "ui");
    terminal.shows("first \\u{1b}[2J");
    terminal.keys(&["Enter"]);
    terminal.shows("What the daemon knows");
    let begun = Instant::now();
    terminal.keys(&["End"]);
    terminal.shows("lines above");
    eprintln!("the end of 200 kB was shown after {} ms", begun.elapsed().as_millis());
    let text = terminal.text();
    assert!(text.contains("\\u{202e}desrever") || text.contains("desrever"), "{text}");
    assert!(!text.contains('\u{202e}') && !text.contains('\u{200b}'), "{text}");
    let title = terminal.tmux(&["display-message", "-p", "-t", "0", "#{pane_title}"]).output().unwrap();
    assert!(!String::from_utf8_lossy(&title.stdout).contains("title"), "{title:?}");
    // The tabs are where they were.
    assert!(text.lines().next().is_some_and(|it| it.contains("1 Needs you (1)")), "{text}");
}

#[test]
fn several_repositories_are_one_screen_and_a_daemon_that_begins_appears_by_itself() {
    let (world, daemon) = asking();
    ask(&world, &daemon, "make the release");
    let terminal = Terminal::of(&world, "ui");
    terminal.shows("approval 1");
    let other = world.path("other");
    std::fs::create_dir_all(&other).unwrap();
    let made = Command::new("git").args(["init", "-q"]).current_dir(&other).status().unwrap();
    assert!(made.success());
    let mut command = world.command(&["up", "--foreground"]);
    command.current_dir(&other).stdout(Stdio::null()).stderr(Stdio::null());
    let mut second = command.spawn().unwrap();
    terminal.shows("2 repositories  live");
    terminal.shows("Repository");
    let _ended = second.kill().and_then(|()| second.wait().map(drop));
    terminal.shows("other stale since");
    // Narrowed to one, the other is not shown.
    drop(terminal);
    let narrowed = Terminal::open(&world, &other, &format!("-C {} ui", world.repo().display()), (100, 30));
    narrowed.shows("approval 1");
    let shows_one = || !narrowed.text().contains("other stale");
    stays("one repository", Duration::from_millis(500), shows_one);
}

#[test]
fn a_signal_gives_the_terminal_back() {
    let (world, _daemon) = asking();
    for signal in ["-TERM", "-HUP", "-INT"] {
        let terminal = Terminal::of(&world, "ui");
        terminal.shows("All is calm");
        let process = terminal.process().to_string();
        let sent = Command::new("kill").args([signal, &process]).status().unwrap();
        assert!(sent.success());
        terminal.shows("ended with 0");
        terminal.shows(" echo");
        terminal.shows_no_more("All is calm");
    }
}

#[test]
fn a_rule_that_wants_a_passkey_is_not_answered_here_and_its_address_is_shown() {
    let (world, _daemon) = world_by("\"passkey\"");
    assert_eq!(asks(&world, "make the release"), 1);
    let terminal = Terminal::open(&world, &world.repo(), "ui", (100, 40));
    terminal.shows("approval 1");
    terminal.keys(&["a"]);
    terminal.shows("signed with a passkey");
    terminal.shows("provost web");
    terminal.keys(&["o"]);
    terminal.shows("/a/1");
    terminal.shows("of this machine alone");
    terminal.shows("Waiting for the answer");
    terminal.keys(&["Escape"]);
    terminal.shows_no_more("Waiting for the answer");
}

#[test]
fn in_a_shell_of_an_agents_the_agent_answers() {
    let (world, daemon) = asking();
    ask(&world, &daemon, "make the release");
    // An agent is not whom the rule lets answer; a name that is none lets none answer.
    let too_long = "a".repeat(2_000);
    for (name, says) in [("orch", "approval 1"), (&*too_long, "names no usable agent")] {
        let line = format!("-C {} ui", world.repo().display());
        let terminal = Terminal::with(&world, &world.repo(), &line, (100, 30), &[("PROVOST_AGENT", name)]);
        terminal.shows("approval 1");
        terminal.keys(&["a"]);
        terminal.shows("The answer cannot be taken back");
        terminal.keys(&["y"]);
        terminal.shows(says);
        stays("the approval", Duration::from_millis(500), || {
            let waiting = world.command(&["approval", "list", "--json"]).output().unwrap();
            String::from_utf8_lossy(&waiting.stdout).contains("make the release")
        });
        assert!(!terminal.text().contains("approved"), "{}", terminal.text());
    }
}

#[test]
fn without_a_terminal_or_with_json_it_says_what_to_use_instead() {
    let (world, _daemon) = asking();
    for (args, says) in
        [(&["ui"][..], "`provost ui` needs a terminal"), (&["ui", "--json"], "provost --json")]
    {
        let output = world.command(args).stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(says), "{said}");
    }
}

#[test]
fn a_screen_without_anything_to_count_down_rests() {
    let (world, _daemon) = asking();
    let terminal = Terminal::of(&world, "ui");
    terminal.shows("All is calm");
    let process = terminal.process();
    let ticks = || {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    };
    eventually("a rest", || {
        let before = ticks();
        crate::support::another_second();
        ticks() == before
    });
}

#[test]
fn a_branch_that_a_merge_has_set_aside_and_the_whole_of_an_event_stand_on_the_screen_and_the_page() {
    let world = World::new();
    world.configure("[web]\nenabled = true\n");
    world.rule(ASK);
    let repo = committed(&world);
    let now = well(&repo, &["rev-parse", "--abbrev-ref", "HEAD"]).trim().to_owned();
    for (name, value) in [("user.name", "Pat"), ("user.email", "pat@example.invalid")] {
        well(&repo, &["config", name, value]);
    }
    well(&repo, &["checkout", "-qb", "feat/a"]);
    world.write("src/a.rs", "fn b() {}\n");
    well(&repo, &["commit", "-qam", "two"]);
    well(&repo, &["checkout", "-q", &now]);
    world.write("src/a.rs", "fn c() {}\n");
    well(&repo, &["commit", "-qam", "three"]);
    let _daemon = world.start();
    let terminal = Terminal::of(&world, "ui");
    terminal.shows("All is calm");
    let merged = at_the_terminal(&world, "merge feat/a");
    assert_eq!(merged.status.code(), Some(7), "{merged:?}");
    terminal.keys(&["R"]);
    terminal.shows("Branches that a merge has set aside");
    terminal.shows("set aside: text");
    terminal.shows("feat/a");
    // The page has the same, with the same commands.
    let rows = Http::web(&world).look("/rows/needs-you").json().to_string();
    assert!(rows.contains("set aside: text") && rows.contains("provost merge feat/a --into "), "{rows}");
    terminal.keys(&["6"]);
    terminal.shows("Newest first");
    terminal.keys(&["Enter"]);
    terminal.shows("As JSON");
    terminal.shows("\"merge_moved\": {");
}
