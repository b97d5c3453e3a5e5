//! Commands of the product, given in an agent's name.

use std::fs;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

use crate::support::World;

/// A command's exit code, and what it said as JSON, wherever it said it.
pub(crate) fn said(output: &Output) -> (i32, Value) {
    let text = if output.stdout.is_empty() { &output.stderr } else { &output.stdout };
    let value = serde_json::from_slice(text).unwrap_or(Value::Null);
    assert!(!value.is_null(), "{output:?}");
    (output.status.code().unwrap(), value)
}

impl World {
    /// A command for programs, by an agent.
    pub(crate) fn by(&self, agent: &str, args: &[&str]) -> Command {
        let mut command = self.command(args);
        command.arg("--json").env("PROVOST_AGENT", agent);
        command
    }

    pub(crate) fn ask(&self, agent: &str, args: &[&str]) -> (i32, Value) {
        said(&self.by(agent, args).output().unwrap())
    }

    /// The same for what has to succeed.
    pub(crate) fn done(&self, agent: &str, args: &[&str]) -> Value {
        let (code, value) = self.ask(agent, args);
        assert_eq!(code, 0, "{args:?}: {value}");
        value
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.repo().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn locked(&self) -> Vec<String> {
        let locks = self.done("anyone", &["lock", "list"])["locks"].clone();
        locks.as_array().unwrap().iter().map(|it| it["symbol"].as_str().unwrap().to_owned()).collect()
    }

    pub(crate) fn waiting(&self) -> Vec<String> {
        let waiting = self.done("anyone", &["lock", "list"])["waiting"].clone();
        waiting.as_array().unwrap().iter().map(|it| it["agent"].as_str().unwrap().to_owned()).collect()
    }

    /// A command that is not waited for.
    pub(crate) fn begin(&self, agent: &str, args: &[&str]) -> Child {
        self.by(agent, args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }
}

/// Returns how often an agent has begun to wait for a lock, by the journal.
pub(crate) fn waits_begun(world: &World) -> usize {
    let log = world.command(&["--json", "log", "--limit", "1000"]).output().unwrap();
    let log = String::from_utf8(log.stdout).unwrap();
    assert!(log.contains("lock_acquired"), "{log}");
    log.lines().filter(|line| line.contains("\"lock_awaited\"")).count()
}
