//! Processes: what one takes, and tests that start themselves again as another process.

use std::process::{Command, Stdio};
use std::time::Duration;

/// Resident memory of a process, in kilobytes.
pub(crate) fn resident(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = text.lines().find(|it| it.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Longer than anything takes on a busy machine.
pub(crate) const SOON: Duration = Duration::from_secs(10);

/// Names what a test, started once more as its own child, needs for the child's part.
pub(crate) const CHILD: &str = "PROVOST_TEST_CHILD";

/// This executable, running one of its tests once more, in a process of its own.
pub(crate) fn this_test(name: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name]).env(CHILD, "1").stdin(Stdio::null());
    command
}
