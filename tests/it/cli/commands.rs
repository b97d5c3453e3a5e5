//! The command line, tried as people use it. This file has what needs no daemon; every command is listed here.

mod first_steps;
mod running;
mod said;

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::support::provost;

const DONE: i32 = 0;
const FAILED: i32 = 1;
const USAGE: i32 = 2;
const NOT_RUNNING: i32 = 3;
const REFUSED: i32 = 4;

/// Every command, with enough to ask for its help.
const COMMANDS: [&str; 182] = [
    "acp",
    "worktree",
    "worktree list",
    "worktree remove",
    "daemon",
    "daemon start",
    "daemon stop",
    "daemon status",
    "daemon metrics",
    "daemon env",
    "daemon reload",
    "config",
    "config init",
    "config allow",
    "journal",
    "journal search",
    "journal verify",
    "journal head",
    "journal export",
    "journal show",
    "store",
    "store backup",
    "store restore",
    "store migrate",
    "host",
    "host export-key",
    "host invite",
    "host join",
    "host list",
    "host remove",
    "host drain",
    "host upgrade",
    "user",
    "user add",
    "user list",
    "user role",
    "user remove",
    "store move",
    "store accept-loss",
    "task",
    "task delegate",
    "task list",
    "task cancel",
    "task report",
    "task diff",
    "task apply",
    "task discard",
    "task show",
    "cost",
    "cost show",
    "approval",
    "approval list",
    "approval approve",
    "approval deny",
    "apply",
    "apply list",
    "apply undo",
    "screenshot",
    "screenshot take",
    "worker",
    "worker join",
    "worker report",
    "worker task",
    "worker resume",
    "worker pause",
    "web",
    "web open",
    "notify",
    "notify list",
    "notify test",
    "push",
    "push list",
    "push test",
    "push remove",
    "merge",
    "merge branches",
    "merge queue",
    "merge queue add",
    "merge queue list",
    "merge queue remove",
    "merge queue run",
    "passkey",
    "passkey add",
    "passkey list",
    "passkey revoke",
    "passkey reset",
    "passkey install",
    "workflow",
    "workflow list",
    "workflow show",
    "agent",
    "agent list",
    "agent add",
    "agent release",
    "agent remove",
    "agent try",
    "lock",
    "lock acquire",
    "lock release",
    "lock list",
    "wait",
    "wait list",
    "wait end",
    "intent",
    "intent declare",
    "intent conflicts",
    "intent list",
    "intent update",
    "contract",
    "contract propose",
    "contract accept",
    "contract reject",
    "contract withdraw",
    "contract list",
    "contract check",
    "claim",
    "claim list",
    "claim release",
    "claim acquire",
    "file",
    "file check",
    "timeline",
    "timeline watch",
    "graph",
    "graph callers",
    "graph callees",
    "graph status",
    "graph languages",
    "crew",
    "crew appoint",
    "agent-protocol",
    "agent-protocol import",
    "broker",
    "broker publish",
    "broker inbox",
    "broker status",
    "broker log",
    "broker purge",
    "broker skill",
    "broker boot-block",
    "question",
    "question answer",
    "mcp",
    "mcp serve",
    "hook",
    "hook wait",
    "hook install",
    "hook remove",
    "hook status",
    "hook run",
    "git",
    "git install",
    "git uninstall",
    "git status",
    "adapter",
    "adapter run",
    "policy",
    "policy check",
    "policy test",
    "policy explain",
    "policy diff",
    "jail",
    "jail explain",
    "jail try",
    "key",
    "key add",
    "key list",
    "key rotate",
    "key revoke",
    "token",
    "token mint",
    "token list",
    "token revoke",
    "secret",
    "secret add",
    "secret list",
    "secret remove",
    "doctor",
    "ui",
    "completions",
    "man",
    "",
];

/// A rule that has a person look at everything.
const ASK: &str = r#"
version = 1
default = "deny"
[[rule]]
id = "ask"
decision = "approve"
reason = "a person looks first"
when.action = ["delegate"]
approve.by = ["human"]
"#;

/// A person's machine: a home, a place for sockets, and a repository to stand in.
struct Desk {
    folder: tempfile::TempDir,
}

/// The output and the exit code of a command.
struct Said {
    code: Option<i32>,
    out: String,
    err: String,
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self { code: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) }
    }
}

impl Said {
    /// Checks the exit code; shows everything when it is another one.
    #[track_caller]
    fn ends(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "\n--- out\n{}\n--- err\n{}", self.out, self.err);
        self
    }

    #[track_caller]
    fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|e| panic!("{e}\n{}\n{}", self.out, self.err))
    }
}

impl Desk {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["home", "run", "repo", "repo/inner"] {
            fs::create_dir(folder.path().join(name)).unwrap();
            fs::set_permissions(folder.path().join(name), fs::Permissions::from_mode(0o700)).unwrap();
        }
        let desk = Self { folder };
        let git = desk.plain("git").args(["init", "--quiet", "."]).status().unwrap();
        assert!(git.success());
        desk
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    fn config(&self, name: &str) -> PathBuf {
        self.path("home/.config/provost").join(name)
    }

    /// Makes a command in the repository; of this process's environment it has only the path and the terminal's name.
    fn plain(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.path("home")).env("XDG_RUNTIME_DIR", self.path("run")).env("USER", "ada");
        let ports = ["AGENT_PROTOCOL", "BROKER", "A6S", "MCP"];
        command.envs(ports.map(|door| (format!("PROVOST_{door}_PORT"), "0")));
        command.current_dir(self.path("repo")).stdin(Stdio::null());
        command
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.plain(provost());
        command.args(args);
        command
    }

    fn run(&self, args: &[&str]) -> Said {
        self.command(args).output().unwrap().into()
    }

    /// The same, typed at a terminal: `script` makes one. What is said on it comes as one text.
    fn type_in(&self, line: &str) -> Said {
        let line = format!("{} {line}", provost().display());
        let mut script = self.plain("script");
        crate::support::apart(script.args(["-qec", &line, "/dev/null"])).into()
    }

    /// The user's rules, which no one else could have written.
    fn policy(&self, text: &str) {
        fs::create_dir_all(self.config("")).unwrap();
        fs::write(self.config("policy.toml"), text).unwrap();
        fs::set_permissions(self.config("policy.toml"), fs::Permissions::from_mode(0o600)).unwrap();
    }
}

/// No daemon outlives its test.
impl Drop for Desk {
    fn drop(&mut self) {
        let _ended = self.command(&["down"]).output();
    }
}

#[test]
fn every_command_shows_an_example_in_its_help() {
    let desk = Desk::new();
    for command in COMMANDS {
        let mut args: Vec<&str> = command.split_whitespace().collect();
        args.push("--help");
        let said = desk.run(&args).ends(DONE);
        assert!(said.out.contains("Example"), "{command}:\n{}", said.out);
        assert!(said.out.contains("provost"), "{command}:\n{}", said.out);
    }
}

#[test]
fn no_command_is_missing_from_the_list_that_is_tried_for_help() {
    let desk = Desk::new();
    let help = desk.run(&["--help"]).out;
    // Nouns stand in groups, above the options; their verbs are indented further.
    let groups = help.split_once("\n\nOptions:").unwrap().0.lines();
    let names = groups.filter_map(|line| line.strip_prefix("  ").filter(|rest| !rest.starts_with(' ')));
    let names: Vec<&str> = names.filter_map(|line| line.split(' ').next()).collect();
    assert!(names.len() > 20, "{help}");
    for name in names {
        assert!(COMMANDS.contains(&name), "{name}");
    }
}

#[test]
fn the_hidden_commands_stay_hidden() {
    let desk = Desk::new();
    let all = desk.run(&["--help"]).out + &desk.run(&["up", "--help"]).out + &desk.run(&["man"]).out;
    assert!(!all.contains("__jail") && !all.contains("ready-on-stdout"), "{all}");
}

#[test]
fn without_a_daemon_commands_say_how_to_start_one() {
    let desk = Desk::new();
    let answers = [
        "",
        "status",
        "task list",
        "approval list",
        "agent list",
        "cost",
        "down",
        "daemon reload",
        "log --follow",
        "task cancel x",
        "deny 1 --reason no",
    ];
    for line in answers {
        let args: Vec<&str> = line.split_whitespace().collect();
        let said = desk.run(&args).ends(NOT_RUNNING);
        assert!(said.err.contains("error: no daemon runs"), "{line}: {}", said.err);
        assert!(said.err.contains("try: provost up"), "{line}: {}", said.err);
        assert_eq!(said.out, "");
    }
}

#[test]
fn a_command_line_that_makes_no_sense_is_a_matter_of_usage() {
    let desk = Desk::new();
    for line in [
        "frobnicate",
        "task show",
        "deny 1",
        "delegate x --timeout never",
        "delegate x --raw",
        "approve seven",
    ] {
        let args: Vec<&str> = line.split_whitespace().collect();
        let said = desk.run(&args).ends(USAGE);
        assert!(said.err.contains("error:"), "{line}: {}", said.err);
        assert!(said.err.contains("--help"), "{line}: {}", said.err);
    }
    let said = desk.run(&["task", "report", "t", "--status", "completed", "--details", "{"]).ends(USAGE);
    assert!(said.err.contains("is not JSON") && said.err.contains("try:"), "{}", said.err);
}

#[test]
fn no_daemon_is_started_where_the_environment_or_the_caller_forbids_it() {
    let desk = Desk::new();
    let said = desk.run(&["delegate", "true", "--no-start"]).ends(NOT_RUNNING);
    assert!(said.err.contains("--no-start") && said.err.contains("provost up"), "{}", said.err);
    for name in ["CI", "DEVIT_NO_AUTO_START"] {
        let said: Said = desk.command(&["delegate", "true"]).env(name, "1").output().unwrap().into();
        assert!(said.ends(NOT_RUNNING).err.contains("CI is set"), "{name}");
    }
    assert!(!desk.path("run/provost").exists());
}

#[test]
fn completions_and_the_manual_come_from_the_same_definition() {
    let desk = Desk::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let said = desk.run(&["completions", shell]).ends(DONE);
        assert!(said.out.contains("delegate") && said.out.contains("no-start"), "{shell}");
    }
    let page = desk.run(&["man"]).ends(DONE).out;
    for word in [".TH provost", "PROVOST KEY ROTATE", "\\-\\-overlap", "PROVOST TASK DELEGATE", "Exit codes"]
    {
        assert!(page.contains(word), "{word}\n{page}");
    }
}

#[test]
fn init_makes_what_is_missing_and_replaces_nothing() {
    let desk = Desk::new();
    let said = desk.run(&["config", "init", "--policy", "strict"]).ends(DONE);
    assert!(said.out.contains("provost up"), "{}", said.out);
    for name in ["provost.toml", "policy.toml", "keys/shared.secret"] {
        let mode = fs::metadata(desk.config(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    fs::write(desk.config("provost.toml"), "# mine\n").unwrap();
    let said = desk.run(&["config", "init", "--policy", "open"]).ends(REFUSED);
    assert!(said.err.contains("is there already") && said.err.contains("try:"), "{}", said.err);
    desk.run(&["config", "init"]).ends(DONE);
    assert_eq!(fs::read_to_string(desk.config("provost.toml")).unwrap(), "# mine\n");
    desk.run(&["policy", "check"]).ends(DONE);
}

#[test]
fn a_key_is_shown_once_and_listed_without_its_secret() {
    let desk = Desk::new();
    let added = desk.run(&["key", "add", "worker:gpu", "--role", "worker"]).ends(DONE);
    let first = added.out.trim();
    assert_eq!(first.len(), 64, "the secret alone is on standard output: {}", added.out);
    let rotated = desk.run(&["key", "rotate", "worker:gpu", "--overlap", "10m"]).ends(DONE);
    assert_ne!(rotated.out.trim(), first);

    let list = desk.run(&["key", "list", "--json"]).ends(DONE);
    assert!(!list.out.contains(first) && !list.out.contains(rotated.out.trim()));
    let info = &list.json()[0];
    assert_eq!((info["ident"].as_str(), info["role"].as_str()), (Some("worker:gpu"), Some("worker")));
    assert_eq!(info["keys"].as_array().map(Vec::len), Some(2));
    assert!(info["keys"][0]["expires"].is_null());
    for at in [&info["keys"][0]["created"], &info["keys"][1]["expires"]] {
        assert!(at.as_str().is_some_and(|it| it.ends_with('Z')), "{info}");
    }

    let said = desk.run(&["key", "add", "worker:gpu"]).ends(REFUSED);
    assert!(said.err.contains("has a key already") && said.err.contains("try:"), "{}", said.err);
    desk.run(&["key", "revoke", "worker:gpu"]).ends(DONE);
    assert!(desk.run(&["key", "list"]).ends(DONE).out.contains("revoked"));
    desk.run(&["key", "rotate", "worker:gpu"]).ends(REFUSED);
}

#[test]
fn the_environment_for_clients_can_be_read_by_a_shell() {
    let desk = Desk::new();
    let text = desk.run(&["env"]).ends(DONE).out;
    let script = format!("{text}\necho $DEVIT_SOCK; echo ${{#DEVIT_SECRET}}");
    let said: Said = desk.plain("sh").args(["-c", &script]).output().unwrap().into();
    let (socket, length) = said.out.trim().split_once('\n').unwrap();
    assert!(
        socket.starts_with(desk.path("run").to_str().unwrap()) && socket.ends_with("devit.sock"),
        "{socket}"
    );
    assert_eq!(length, "64");
    let json = desk.run(&["env", "--json"]).ends(DONE).json();
    assert_eq!(json["DEVIT_SOCK"], json["DEVIT_DAEMON_SOCKET"]);
}

#[test]
fn doctor_finds_what_is_broken_and_says_what_to_do() {
    let desk = Desk::new();
    let health = |said: &Said, what: &str| {
        let findings = said.json()["findings"].as_array().cloned().unwrap_or_default();
        findings
            .iter()
            .find(|it| it["what"] == what)
            .map(|it| it["health"].as_str().unwrap_or_default().to_owned())
    };
    let before = desk.run(&["doctor", "--json"]);
    assert_eq!(health(&before, "settings").as_deref(), Some("fine"));
    assert!(!desk.path("home/.config/provost").exists(), "doctor makes nothing");

    desk.run(&["config", "init", "--policy", "default"]).ends(DONE);
    assert_eq!(health(&desk.run(&["doctor", "--json"]), "policy").as_deref(), Some("fine"));
    fs::set_permissions(desk.config("keys/shared.secret"), fs::Permissions::from_mode(0o644)).unwrap();
    fs::write(desk.config("policy.toml"), "[[rule]]\nid = 1\n").unwrap();
    let said = desk.run(&["doctor", "--json"]).ends(FAILED);
    assert_eq!(health(&said, "keys").as_deref(), Some("broken"));
    assert_eq!(health(&said, "policy").as_deref(), Some("broken"));
    assert!(said.out.contains("chmod"), "{}", said.out);

    let said: Said = desk.command(&["doctor"]).env("DEVIT_SECRET", "change-me").output().unwrap().into();
    assert!(said.ends(FAILED).out.contains("DEVIT_SECRET"));
}

#[test]
fn a_configuration_that_cannot_be_used_is_named_with_its_line() {
    let desk = Desk::new();
    desk.run(&["config", "init"]).ends(DONE);
    fs::write(desk.config("provost.toml"), "[workspace]\n\nsandbox_rot = \"x\"\n").unwrap();
    let said = desk.run(&["policy", "explain"]).ends(FAILED);
    assert!(said.err.contains("provost.toml:3") && said.err.contains("sandbox_root"), "{}", said.err);
    assert!(said.err.contains("try:"), "{}", said.err);
}

#[test]
fn a_file_of_the_repository_is_shown_before_it_is_allowed() {
    let desk = Desk::new();
    fs::write(desk.path("repo/devit.core.toml"), "[workspace]\n# \u{1b}[2Jhidden\n").unwrap();
    assert!(desk.run(&["config", "allow"]).ends(DONE).out.contains("not allowed yet"));
    let said = desk.run(&["config", "allow", "devit.core.toml"]).ends(REFUSED);
    assert!(said.out.contains("| [workspace]") && !said.out.contains('\u{1b}'), "{}", said.out);
    assert!(said.err.contains("--yes"), "{}", said.err);
    desk.run(&["config", "allow", "devit.core.toml", "--yes"]).ends(DONE);
    assert!(desk.run(&["config", "allow"]).ends(DONE).out.contains("  allowed"));
    fs::write(desk.path("repo/devit.core.toml"), "[workspace]\n").unwrap();
    assert!(desk.run(&["config", "allow"]).ends(REFUSED).out.contains("CHANGED"));
    desk.run(&["config", "allow", "devit.core.toml", "--forget"]).ends(DONE);
    assert!(desk.run(&["config", "allow"]).ends(DONE).out.contains("not allowed yet"));
    desk.run(&["config", "allow", "../home/x"]).ends(FAILED);
}

#[test]
fn rules_can_be_looked_over_tried_and_compared() {
    let desk = Desk::new();
    let file = |name: &str, text: &str| {
        fs::write(desk.path(name), text).unwrap();
        desk.path(name).to_str().unwrap().to_owned()
    };
    let (ask, wrong) = (file("ask.toml", ASK), file("wrong.toml", "[[rule]]\nid = \"x\"\n"));
    desk.run(&["policy", "check"]).ends(DONE);
    desk.run(&["policy", "check", &ask]).ends(DONE);
    let said = desk.run(&["policy", "check", &ask, &wrong]).ends(FAILED);
    assert!(said.out.contains("wrong.toml:"), "{}", said.out);

    let said = desk.run(&["policy", "explain", "--policy", &ask]).ends(DONE);
    assert!(said.out.starts_with("approve by ask: a person looks first"), "{}", said.out);
    let said = desk.run(&["policy", "explain", "--json"]).ends(DONE).json();
    assert_eq!(said["outcome"]["decision"], "allow");
    let said = desk.run(&["policy", "explain", "--worker", "nobody"]).ends(FAILED);
    assert!(said.err.contains("shell"), "the workers there are: {}", said.err);
    desk.run(&["policy", "explain", "--proof", "magic"]).ends(USAGE);

    let cases = file("cases.toml", "[[case]]\nname = \"plain\"\nworker = \"shell\"\nexpect = \"allow\"\n");
    desk.run(&["policy", "test", &cases]).ends(DONE);
    let said = desk.run(&["policy", "test", &cases, "--policy", &ask]).ends(FAILED);
    assert!(said.out.contains("plain: expected allow, found approve by ask"), "{}", said.out);
    let said = desk.run(&["policy", "diff", &ask, "--cases", &cases]).ends(DONE);
    assert!(said.out.contains("1 of 1 requests"), "{}", said.out);
    let said = desk.run(&["policy", "diff", &ask, "--from", &ask, "--cases", &cases]).ends(DONE);
    assert!(said.out.contains("0 of 1 requests"), "{}", said.out);
    desk.run(&["policy", "diff", &ask]).ends(FAILED);
}

#[test]
fn a_journal_that_is_not_there_is_said_to_be_missing() {
    let desk = Desk::new();
    for line in ["journal verify", "journal head", "journal export", "log"] {
        let args: Vec<&str> = line.split_whitespace().collect();
        let said = desk.run(&args).ends(FAILED);
        assert!(
            said.err.contains("no journal yet") && said.err.contains("provost up"),
            "{line}: {}",
            said.err
        );
    }
}

#[test]
fn secrets_that_everyone_knows_do_not_start_a_daemon() {
    let desk = Desk::new();
    for secret in ["", "change-me", "change-me-in-production"] {
        let said = desk.run(&["--socket", "d.sock", "--secret", secret]).ends(REFUSED);
        assert!(said.err.contains("secret") && said.err.contains("try:"), "{}", said.err);
        let said: Said =
            desk.command(&["--socket=d.sock"]).env("DEVIT_SECRET", secret).output().unwrap().into();
        said.ends(REFUSED);
    }
    assert!(!desk.path("repo/d.sock").exists());
    let devitd = desk.path("devitd");
    std::os::unix::fs::symlink(provost(), &devitd).unwrap();
    let said: Said = desk.plain(&devitd).arg("-V").output().unwrap().into();
    assert_eq!(said.ends(DONE).out, "devitd 0.1.0\n");
}
