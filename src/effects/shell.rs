//! The worker that needs no configuration: the goal is a command line.

use std::collections::BTreeMap;

use provost_base::limits::DELEGATION_TIMEOUT_S;
use provost_base::{AgentId, Ttl};
use provost_jail::{Bounds, Copies, Git, ParseMode, Profile};

/// Returns the profile of the system's shell with the goal as its command line. On Windows it works in a copy, the only way there.
pub fn shell_profile() -> Profile {
    let (program, before) = provost_system::shell();
    let args = before.iter().copied().chain(["{goal}"]).map(str::to_owned).collect();
    Profile {
        id: AgentId::parse("shell").expect("a constant that is a valid id"),
        program,
        args,
        parse: ParseMode::Text,
        mcp: None,
        acp: None,
        working_dir: None,
        timeout: Ttl::seconds_clamped(DELEGATION_TIMEOUT_S),
        response_bytes_max: None,
        default_model: None,
        allowed_models: Vec::new(),
        env: BTreeMap::new(),
        secrets: Vec::new(),
        read_only: Vec::new(),
        protect: Vec::new(),
        run_outside: Vec::new(),
        git: Git::Read,
        copies: if cfg!(windows) { Copies::Thrown } else { Copies::No },
        bounds: Bounds::default(),
        agent: None,
    }
}
