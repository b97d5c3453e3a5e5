//! An agent of our own that speaks the Agent Client Protocol, as an entry of the configuration.

use std::fs;

use super::World;

pub(crate) const AGENT: &str = include_str!("acp_agent.py");

/// An entry for the agent; `how` says in which way it misbehaves.
pub(crate) fn entry(world: &World, id: &str, how: &str, more: &str) -> String {
    let folder = world.path("tools");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("agent.py"), AGENT).unwrap();
    let (at, how) = (folder.display(), if how.is_empty() { "well" } else { how });
    format!(
        "[workers.{id}]\ntype = \"acp\"\nbinary = \"/usr/bin/python3\"\nargs = [\"{at}/agent.py\", \"{how}\"]\n\
         read_only = [\"{at}\"]\n{more}\n"
    )
}
