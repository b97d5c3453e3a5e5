//! The folder that `scripts/demo` prepares before it hands over to its user: its programs and samples.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::source::{files, project_root};
use super::{World, provost};

/// A folder that is prepared.
pub(crate) fn prepared(world: &World) -> PathBuf {
    let (place, root) = (world.path("demo"), project_root());
    let examples = ["approver.py", "two_agents.py"].map(|it| root.join("docs/examples").join(it));
    for from in examples.into_iter().chain([root.join("scripts/demo"), provost()]) {
        put(&from, &place.join("bin").join(from.file_name().unwrap()));
    }
    let sample = root.join("scripts/sample");
    for path in files(&sample, &sample) {
        put(&sample.join(&path), &place.join("bin").join(&path));
    }
    place
}

fn put(from: &Path, to: &Path) {
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    fs::copy(from, to).unwrap();
}

/// The demo in a prepared folder; the words say which part of it.
pub(crate) fn demo(place: &Path, words: &[&str]) -> Command {
    let mut demo = Command::new("bash");
    demo.arg(place.join("bin/demo")).arg("--in").arg(place).args(words).stdin(Stdio::null());
    // What the caller's clients are set to is none of the demo's business.
    demo.env("DEVIT_SECRET", "somebody-elses")
        .env("PROVOST_ROOT", "/")
        .env("CI", "1")
        .env("PROVOST_AGENT", "a");
    demo
}
