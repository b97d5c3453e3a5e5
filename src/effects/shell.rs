//! The worker that needs no configuration: the goal is a command line.

use std::collections::BTreeMap;

use crate::base::{AgentId, Ttl};
use crate::jail::{Bounds, ParseMode, Profile};

/// How long a command line may take when neither task nor policy says less.
const TIMEOUT: Ttl = Ttl::minutes(30);

/// `/bin/sh -c <goal>`, its output read as text.
pub fn shell_profile() -> Profile {
    Profile {
        id: AgentId::parse("shell").expect("a constant that is a valid id"),
        program: "/bin/sh".into(),
        args: vec!["-c".into(), "{goal}".into()],
        parse: ParseMode::Text,
        mcp: None,
        working_dir: None,
        timeout: TIMEOUT,
        response_bytes_max: None,
        default_model: None,
        allowed_models: Vec::new(),
        env: BTreeMap::new(),
        secrets: Vec::new(),
        read_only: Vec::new(),
        protect: Vec::new(),
        copy: false,
        bounds: Bounds::default(),
    }
}
