//! The real programs of agents, in the jail, against a stand-in for the services of their models. `scripts/test agents` installs
//! them and runs these tests; the other runs leave them out.

mod editors;
mod hooks;
mod one_shot;
mod questions;
mod sessions;
mod told;
mod turns;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::waits::within;
use crate::support::{Daemon, World};

/// The key, in two halves: it must not be found anywhere in a jail, and nothing here may print it.
const KEY: (&str, &str) = ("sk-test-0123456789abcdef", "-NEVER-SEEN-fedcba9876543210");

/// The tokens that each answer of the stand-in with tools claims: read, out of the cache of these, and written.
const CLAIMED: (u64, u64, u64) = (100, 7, 25);

/// How long a program may take to come as far as a test waits for.
const PATIENCE: Duration = Duration::from_secs(150);

/// A program, and what is known of it.
#[derive(Clone, Copy)]
struct Program {
    name: &'static str,
    /// The header in which its model's service expects the key.
    header: &'static str,
    /// Whether it needs the name of a model.
    model: Option<&'static str>,
}

const CLAUDE: Program = Program { name: "claude", header: "x-api-key", model: None };
/// Of a model that Codex knows it expects a program of JavaScript instead of a call.
const CODEX: Program = Program { name: "codex", header: "authorization", model: Some("a-model") };
const GEMINI: Program = Program { name: "gemini", header: "x-goog-api-key", model: None };
/// npm has it as a binary for this processor.
#[cfg(target_arch = "x86_64")]
const GOOSE: Program = Program { name: "goose", header: "authorization", model: Some("a-model") };
const QWEN: Program = Program { name: "qwen", header: "authorization", model: Some("m") };

fn key() -> String {
    format!("{}{}", KEY.0, KEY.1)
}

/// The folders with the programs and the Node that they need.
fn folders() -> Vec<PathBuf> {
    let installed = std::env::var("PROVOST_TEST_AGENTS");
    let modules =
        PathBuf::from(installed.expect("`scripts/test agents` installs the programs and says where"));
    let modules = modules.join("node_modules");
    let arch = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    // What the package of Claude Code would link to when it is installed with its script.
    let claude = modules.join(format!("@anthropic-ai/claude-code-linux-{arch}"));
    let folders = vec![modules.join(format!("node-linux-{arch}/bin")), claude, modules.join(".bin")];
    for folder in &folders {
        assert!(folder.is_dir(), "{} is not there: npm has not installed everything", folder.display());
    }
    folders
}

/// A stand-in for the services of all models.
struct Model {
    child: Child,
    port: u16,
    log: PathBuf,
}

impl Model {
    fn start(world: &World, name: &str) -> Self {
        let (script, log) = (world.path("model.py"), world.path(name));
        fs::write(&script, include_str!("model.py")).unwrap();
        let mut command = Command::new("python3");
        command.arg(&script).arg(&log).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port = line.trim().parse().expect("it prints its port");
        Self { child, port, log }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The requests so far.
    fn heard(&self) -> Vec<Value> {
        let text = fs::read_to_string(&self.log).unwrap();
        text.lines().filter_map(|it| serde_json::from_str(it).ok()).collect()
    }

    /// The results of tools that the model was told, in the last request that has some.
    fn results(&self) -> String {
        let told = |it: &Value| it["results"].as_array().is_some_and(|it| !it.is_empty());
        self.heard().iter().rfind(|it| told(it)).map(|it| it["results"].to_string()).unwrap_or_default()
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _status = self.child.wait();
    }
}

/// A repository with an agent that `provost agent add` has added, a daemon, and the stand-in for its model.
struct Set {
    world: World,
    model: Model,
    daemon: Daemon,
    program: Program,
}

impl Set {
    /// `more` are arguments of `agent add`, and `rules` stand beside the one that lets it be delegated to.
    fn up(program: Program, more: &[&str], rules: &[String]) -> Self {
        let world = World::new();
        world.rule(&format!("{}\n{}", crate::support::rules::ALLOW, rules.join("\n")));
        let model = Model::start(&world, "model.log");
        fs::write(world.repo().join("look.py"), include_str!("look.py")).unwrap();
        let named = program.model.map_or(Vec::new(), |it| vec!["--model", it]);
        let url = model.url();
        let args = ["agent", "add", program.name, "--upstream", &url, "--key-from", "MY_KEY"];
        let added = with_programs(&world, &[&args[..], &named, more].concat()).env("MY_KEY", key()).output();
        let added = added.unwrap();
        assert!(added.status.success(), "{}", said(&added));
        assert!(!said(&added).contains(&key()));
        let daemon = world.start();
        Self { world, model, daemon, program }
    }

    fn run(&self, args: &[&str]) -> Output {
        let output = self.world.command(args).output().unwrap();
        assert!(!said(&output).contains(&key()), "the key was printed");
        output
    }

    fn json(&self, args: &[&str]) -> Value {
        let output = self.run(&[args, &["--json"]].concat());
        serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|_| panic!("{args:?}: {}\n{}", said(&output), self.world.log()))
    }

    /// Delegates, waits, and answers the task.
    fn done(&self, goal: &str) -> Value {
        self.json(&["delegate", goal, "--worker", self.program.name, "--wait"])
    }

    /// Returns the changes of a task, as a difference.
    fn changed(&self, task: &Value) -> String {
        said(&self.run(&["task", "diff", task["id"].as_str().unwrap()]))
    }

    /// The paths of the files that a task has changed.
    fn paths(&self, task: &Value) -> Vec<String> {
        let artifacts = &task["notes"].as_array().unwrap().last().unwrap()["details"]["artifacts"];
        let artifacts = artifacts.as_array().into_iter().flatten();
        artifacts.map(|it| it["path"].as_str().unwrap().to_owned()).collect()
    }

    /// Every request with a tool has brought the key to the model's service.
    fn brought_the_key(&self) {
        let heard = self.model.heard();
        let claimed: Vec<&Value> = heard.iter().filter(|it| it["claimed"] == true).collect();
        assert!(!claimed.is_empty(), "the model was never asked: {heard:?}");
        for it in claimed {
            let head = it["heads"][self.program.header].as_str().unwrap_or_default();
            assert!(head.ends_with(&key()), "another key came: {it:#}");
        }
    }

    /// No process of a task of this world is left.
    fn is_quiet(&self) -> bool {
        self.processes().is_empty()
    }

    /// The processes of tasks of this world that know which task they work at.
    fn processes(&self) -> Vec<u32> {
        let place = self.world.path("").display().to_string();
        let place = place.trim_end_matches('/');
        let all = fs::read_dir("/proc").unwrap().flatten();
        let numbers = all.filter_map(|it| it.file_name().to_str()?.parse::<u32>().ok());
        let works = |pid: &u32| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            let text = String::from_utf8_lossy(&environment).into_owned();
            text.contains("DEVIT_TASK_ID=") && text.contains(place)
        };
        numbers.filter(works).collect()
    }
}

/// Returns a value as soon as there is one. The programs take their time.
#[track_caller]
fn until_some<T>(what: &str, mut find: impl FnMut() -> Option<T>) -> T {
    let mut found = None;
    within(PATIENCE, || {
        found = find();
        found.is_some()
    });
    found.unwrap_or_else(|| panic!("{what} did not happen"))
}

#[track_caller]
fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    until_some(what, || is_so().then_some(()));
}

/// A command with the programs on its `PATH`.
fn with_programs(world: &World, args: &[&str]) -> Command {
    let mut command = world.command(args);
    let path = folders().into_iter().chain(["/usr/bin".into(), "/bin".into()]);
    command.env("PATH", std::env::join_paths(path).unwrap());
    command
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

/// The order to write a file, in brackets that the stand-in understands.
fn order(words: &str) -> String {
    format!("Do this, please: {words}")
}

/// Returns the order to run `look.py` with its arguments.
fn look() -> String {
    format!("[[run python3 look.py {} {}]]", KEY.0, KEY.1)
}

fn last<'a>(task: &'a Value, member: &str) -> &'a Value {
    &task["notes"].as_array().unwrap().last().unwrap()[member]
}

/// Returns the tokens that the stand-in has claimed for a turn, from a point on: each tool call, and the last message. Some
/// programs ask for more afterwards, such as a proposal for the next step, which is no part of the turn.
fn claimed(heard: &[Value]) -> Value {
    let calls = heard.iter().filter(|it| it["called"].is_string()).count() as u64;
    let count = calls + 1;
    let (read, cached, written) = CLAIMED;
    json!([(read - cached) * count, cached * count, written * count])
}
