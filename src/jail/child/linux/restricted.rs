//! Restricted processes: for programs of the daemon's own that need the user's session, and so cannot be
//! jailed.
//!
//! Such a program may read all that the user may read, and can write only in its own folder. It
//! cannot signal a process outside, and gains no privileges by executing a program.
#![forbid(unsafe_code)]

use std::io;
use std::path::Path;
use std::process::{Child, Command};

use landlock::{ABI, AccessFs, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _, Scope};
use landlock::{PathBeneath, RulesetCreatedAttr as _};

use super::landlock::{ABI_OF_SCOPES, in_force, open_strictly, other};
use super::sys;

/// The paths that every such program may write, too: the null device, and the shared memory through which windows are exchanged.
const COMMON: [&str; 2] = ["/dev/null", "/dev/shm"];

/// Starts a program as a restricted process. A thread of its own is restricted for good and starts the program,
/// which inherits the restriction; the daemon stays as it is.
///
/// # Errors
/// The kernel has no Landlock, or the program cannot be started. Nothing runs then.
pub fn start_restricted(mut command: Command, writable: &Path) -> io::Result<Child> {
    let writable = writable.to_owned();
    let starting = std::thread::Builder::new().name("pen".into()).spawn(move || {
        restrict(&writable)?;
        command.spawn()
    })?;
    starting.join().map_err(|_| other("the thread that starts it has failed"))?
}

fn restrict(writable: &Path) -> io::Result<()> {
    let version = sys::landlock_abi();
    if version == 0 {
        return Err(other("this kernel has no Landlock, which keeps the program from writing elsewhere"));
    }
    let abi = ABI::from(version);
    let write = AccessFs::from_write(abi);
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(write)
        .map_err(other)?;
    if version >= ABI_OF_SCOPES {
        // Abstract sockets stay reachable: the screen is behind one of them.
        ruleset = ruleset.scope(Scope::Signal).map_err(other)?;
    }
    let mut rules = ruleset.create().map_err(other)?;
    let special = AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev;
    for path in COMMON.map(Path::new).into_iter().chain([writable]) {
        // A system without shared memory lacks this folder.
        let Ok(found) = open_strictly(path) else { continue };
        let access = if path.is_dir() { write & !special } else { write & AccessFs::from_file(abi) };
        rules = rules.add_rule(PathBeneath::new(found, access)).map_err(other)?;
    }
    in_force(rules.restrict_self().map_err(other)?).map(|_| ())
}
