//! `provost adapt`, running.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use crate::support::{World, eventually};

/// A running adapter; ended when dropped.
pub(crate) struct Adapter {
    pub(crate) child: Child,
    pub(crate) file: PathBuf,
    pub(crate) said: PathBuf,
}

impl Adapter {
    /// Starts one and waits until the section is there.
    pub(crate) fn start(world: &World, host: &str, file: &str) -> Self {
        Self::start_with(world, host, file, &[], &[])
    }

    pub(crate) fn start_with(
        world: &World,
        host: &str,
        file: &str,
        more: &[&str],
        environment: &[(&str, &str)],
    ) -> Self {
        let said = world.path(&format!("adapt-{host}.log"));
        let log = fs::File::create(&said).unwrap();
        let args = [&["adapter", "run", host], more].concat();
        let mut command = world.command(&args);
        command.envs(environment.iter().copied()).stdout(Stdio::null()).stderr(log);
        let adapter = Self { child: command.spawn().unwrap(), file: world.repo().join(file), said };
        // Announced, and told so.
        adapter.waits_for(&format!("- `\"{}\"`, the program", agent_of(host)));
        adapter
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.file).unwrap_or_default()).into_owned()
    }

    pub(crate) fn waits_for(&self, what: &str) {
        self.waits(what, |text| text.contains(what));
    }

    pub(crate) fn waits(&self, what: &str, is_so: impl Fn(&str) -> bool) {
        eventually(&format!("{what}\n{}", fs::read_to_string(&self.said).unwrap_or_default()), || {
            is_so(&self.text())
        });
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(rustix::process::Pid::from_child(&self.child), signal).unwrap();
    }

    /// Ends it in order.
    pub(crate) fn stop(mut self) {
        self.signal(rustix::process::Signal::TERM);
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}: {}", fs::read_to_string(&self.said).unwrap());
    }
}

impl Drop for Adapter {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn agent_of(host: &str) -> &str {
    match host {
        "claude" => "claude-code-1",
        "cursor" => "cursor-1",
        "codex" => "codex-1",
        _ => "agent-1",
    }
}
