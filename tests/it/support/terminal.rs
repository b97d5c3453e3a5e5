//! A person at a terminal.

use std::process::{Command, Output, Stdio};

use crate::support::{World, provost};

/// Runs a line as a person does at a terminal of their own.
pub(crate) fn at_the_terminal(world: &World, line: &str) -> Output {
    let mut person = Command::new("script");
    person.args(["-qec", &format!("{} {line}", provost().display()), "/dev/null"]);
    person.current_dir(world.repo()).env_clear().stdin(Stdio::null());
    for (name, value) in world.command(&[]).get_envs() {
        person.env(name, value.unwrap());
    }
    crate::support::apart(&person)
}

/// Runs these lines as a host's shell at a terminal of its own; what it wrote.
pub(crate) fn at_a_hosts_terminal(world: &World, lines: &str) -> String {
    let file = world.path("lines.sh");
    std::fs::write(&file, format!("provost() {{ {} \"$@\"; }}\n{lines}\n", provost().display())).unwrap();
    let mut host = Command::new("script");
    host.args(["-qec", &format!("sh {}", file.display()), "/dev/null"]).current_dir(world.repo()).env_clear();
    for (name, value) in world.command(&[]).get_envs() {
        host.env(name, value.unwrap());
    }
    String::from_utf8_lossy(&crate::support::apart(&host).stdout).into_owned()
}

/// Runs a line as a person does at a terminal of their own, and types this text afterwards.
pub(crate) fn typed_at_the_terminal(world: &World, line: &str, typed: &str) -> Output {
    let mut person = Command::new("sh");
    let command = format!("{} {line}", provost().display());
    person.args(["-c", "printf '%s\\n' \"$1\" | script -qec \"$2\" /dev/null", "sh", typed, &command]);
    person.current_dir(world.repo()).env_clear();
    for (name, value) in world.command(&[]).get_envs() {
        person.env(name, value.unwrap());
    }
    crate::support::apart(&person)
}
