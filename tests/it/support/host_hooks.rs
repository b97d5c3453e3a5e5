//! The messages of agents' hosts to their hooks, as they were recorded.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::World;

/// Returns a recorded message, by the host and its name in the documentation.
pub(crate) fn recorded(world: &World, name: &str) -> Value {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/cli/host_hooks").join(format!("{name}.json"));
    let text = fs::read_to_string(&path).unwrap_or_else(|err| panic!("{}: {err}", path.display()));
    serde_json::from_str(&text.replace("$REPO", world.repo().to_str().unwrap())).unwrap()
}
