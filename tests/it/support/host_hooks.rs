//! What hosts of agents tell their hooks, as it was recorded.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::World;

/// What a host of that name is told in its documentation.
pub(crate) fn recorded(world: &World, name: &str) -> Value {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/cli/host_hooks").join(format!("{name}.json"));
    let text = fs::read_to_string(&path).unwrap_or_else(|err| panic!("{}: {err}", path.display()));
    serde_json::from_str(&text.replace("$REPO", world.repo().to_str().unwrap())).unwrap()
}
