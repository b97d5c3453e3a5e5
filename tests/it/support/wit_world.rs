//! The beginning of tests of wit: a daemon with a client, locks, and the files of the recording.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::source::project_root;
use crate::support::wit_client::{Wit, world};
use crate::support::{Daemon, World, eventually};

pub(crate) fn started(world: &World) -> (Daemon, Wit) {
    let (daemon, wit) = (world.start(), Wit::of(world));
    eventually("an answer", || wit.answers());
    (daemon, wit)
}

pub(crate) fn lock(at: &str, who: &str) -> Value {
    json!({ "symbolPath": at, "sessionId": who })
}

/// The kinds of warnings in an answer.
pub(crate) fn kinds(items: &Value) -> Vec<&str> {
    items.as_array().unwrap().iter().map(|it| it["type"].as_str().unwrap()).collect()
}

pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (path, target): (PathBuf, PathBuf) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

/// A world whose repository has the files on which the answers were recorded.
pub(crate) fn recorded_world() -> World {
    let world = world();
    copy(&project_root().join("tests/it/vectors/wit/fixture"), &world.repo());
    world
}
