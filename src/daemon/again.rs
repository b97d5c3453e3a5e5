//! Starts the daemon again in its own process, from its command line alone: as a person or a service manager has started it.

/// Becomes a new daemon. Returns only if that is impossible, with the reason why this one has ended.
#[cfg(unix)]
pub(super) fn begin(ended: anyhow::Error) -> anyhow::Error {
    use std::os::unix::process::CommandExt as _;

    // This is the running program, also if an update has put another file in its place.
    let itself = std::path::Path::new("/proc/self/exe");
    let program = if itself.exists() { Ok(itself.to_owned()) } else { std::env::current_exe() };
    let mut arguments = std::env::args_os();
    let name = arguments.next();
    let why = match program {
        Ok(program) => {
            let mut command = std::process::Command::new(program);
            if let Some(name) = name {
                command.arg0(name);
            }
            command.args(arguments).exec()
        }
        Err(why) => why,
    };
    ended.context(format!("it could not begin again ({why}): start it with `provost up`"))
}

/// Returns the reason with advice, since a process cannot become another one here.
#[cfg(not(unix))]
pub(super) fn begin(ended: anyhow::Error) -> anyhow::Error {
    ended.context("start it again with `provost up`")
}
