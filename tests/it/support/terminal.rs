//! A person at a terminal.

use std::process::{Command, Output, Stdio};

use crate::support::{World, provost};

/// What somebody at a terminal of their own does.
pub(crate) fn at_the_terminal(world: &World, line: &str) -> Output {
    let mut person = Command::new("script");
    person.args(["-qec", &format!("{} {line}", provost().display()), "/dev/null"]);
    person.current_dir(world.repo()).env_clear().stdin(Stdio::null());
    for (name, value) in world.command(&[]).get_envs() {
        person.env(name, value.unwrap());
    }
    crate::support::apart(&person)
}
