//! What Provost costs, as ratios to floors that are measured in the same run.
//!
//! Not a test: nothing here fails because a machine is slow. Each row compares the real daemon, a process of its
//! own, with the least that could do the same work; the two take turns, round by round, so that a neighbour's
//! load falls on both. Start it with `scripts/bench`; words after it choose sections.
#![forbid(unsafe_code)]

mod a6s;
mod acp;
mod agent_protocol;
mod broker;
mod browser;
mod delegations;
mod fanout;
mod floor;
mod heartbeats;
mod history;
mod hooks;
mod hosts;
mod http;
mod jailed;
mod languages;
mod load;
mod loopback;
mod machine;
mod mcp;
mod mcp_echo;
mod page;
mod socket;
mod storage;
mod table;
mod wit;
mod world;
mod writes;

use std::process::ExitCode;

use anyhow::{Result, bail};

use table::Table;

type Section = fn(&mut Table) -> Result<()>;

/// The parts of the table, by the words that choose them.
const SECTIONS: [(&str, Section); 17] = [
    ("heartbeats", heartbeats::measure),
    ("delegations", delegations::measure),
    ("jailed", jailed::measure),
    ("history", history::measure),
    ("storage", storage::measure),
    ("hosts", hosts::measure),
    ("hooks", hooks::measure),
    ("writes", writes::measure),
    ("wit", wit::measure),
    ("languages", languages::measure),
    ("loopback", loopback::measure),
    ("agent_protocol", agent_protocol::measure),
    ("broker", broker::measure),
    ("a6s", a6s::measure),
    ("mcp", mcp::measure),
    ("acp", acp::measure),
    ("page", page::measure),
];

fn main() -> ExitCode {
    // The supervisor of jails that lack a layer is this very executable.
    #[cfg(any(debug_assertions, feature = "layers-off"))]
    provost::jail::main_of_the_tests_if_asked();
    let args: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match args.as_slice() {
        [role, socket] if role == floor::ECHO_ROLE => floor::serve_echo(socket.as_ref()),
        [role, socket] if role == floor::PONG_ROLE => floor::serve_pong(socket.as_ref()),
        [role, file] if role == http::PONG_ROLE => http::serve_pong(file.as_ref()),
        [role, file] if role == fanout::FANOUT_ROLE => fanout::serve(file.as_ref()),
        [role, file] if role == socket::ECHO_ROLE => socket::serve_echo(file.as_ref()),
        [role, _] if role == mcp_echo::STDIO_ROLE => mcp_echo::serve_stdio(),
        [role, file] if role == mcp_echo::HTTP_ROLE => mcp_echo::serve_http(file.as_ref()),
        words => bench(words),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(err) => {
            table::complain(&format!("bench: {err:#}"));
            ExitCode::FAILURE
        }
    }
}

fn bench(words: &[String]) -> Result<()> {
    if rustix::process::geteuid().is_root() {
        bail!("Provost is an ordinary user's, and root's numbers are not its users': run scripts/bench");
    }
    // Cargo says `--bench` to every benchmark.
    let chosen: Vec<&str> = words.iter().map(String::as_str).filter(|word| !word.starts_with('-')).collect();
    if let Some(odd) = chosen.iter().find(|word| SECTIONS.iter().all(|(name, _)| name != *word)) {
        bail!("there is no section '{odd}'; there are {}", SECTIONS.map(|(name, _)| name).join(", "));
    }
    let mut table = Table::begin()?;
    // The hook of a host's write is a hook as well.
    let is_of_hooks = |name: &str| name == "writes" && chosen.contains(&"hooks");
    for (name, measure) in SECTIONS {
        if chosen.is_empty() || chosen.contains(&name) || is_of_hooks(name) {
            table.section(name)?;
            measure(&mut table)?;
        }
    }
    table.end()
}
