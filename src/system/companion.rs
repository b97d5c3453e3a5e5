//! A command that runs for this process: it ends with it, and gets the signals that it gets.

use std::process::Command;

#[cfg(target_os = "linux")]
use std::os::unix::process::CommandExt as _;

/// Has the system end a command by a signal when the thread that started it ends. On other systems than Linux the command goes on.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "the standard library has no safe word for a call between fork and exec")]
pub fn end_with_us(command: &mut Command) -> &mut Command {
    use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};
    let us = getpid();
    let ends = move || {
        set_parent_process_death_signal(Some(Signal::TERM))?;
        // Gone already: no signal comes any more.
        if getppid() == Some(us) { Ok(()) } else { Err(rustix::io::Errno::SRCH.into()) }
    };
    // SAFETY: the closure makes two system calls, allocates nothing and takes no lock, so it may run between fork and exec.
    unsafe { command.pre_exec(ends) }
}

/// Has a command end when this process has gone, where the system has a way for it.
#[cfg(not(target_os = "linux"))]
pub fn end_with_us(command: &mut Command) -> &mut Command {
    command
}

/// Passes the signals that ask a program to end or to do something on to a process, until the future is dropped. What a terminal
/// sends goes to all of its foreground processes, and is passed on only where this process has no terminal.
#[cfg(unix)]
pub async fn pass_signals_on(to: u32) -> std::io::Result<std::convert::Infallible> {
    use rustix::process::{Pid, Signal, kill_process};
    use tokio::signal::unix::{SignalKind, signal};
    let pid = i32::try_from(to).ok().and_then(Pid::from_raw).ok_or(rustix::io::Errno::SRCH)?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut quit = signal(SignalKind::quit())?;
    let mut first = signal(SignalKind::user_defined1())?;
    let mut second = signal(SignalKind::user_defined2())?;
    loop {
        let passed = tokio::select! {
            _ = terminate.recv() => Some(Signal::TERM),
            _ = hangup.recv() => Some(Signal::HUP),
            _ = first.recv() => Some(Signal::USR1),
            _ = second.recv() => Some(Signal::USR2),
            _ = interrupt.recv() => (!is_in_foreground()).then_some(Signal::INT),
            _ = quit.recv() => (!is_in_foreground()).then_some(Signal::QUIT),
        };
        if let Some(passed) = passed {
            // One that has ended meanwhile needs none.
            let _gone = kill_process(pid, passed);
        }
    }
}

/// Whether a terminal sends its signals to this process, and to all that it has started.
#[cfg(unix)]
fn is_in_foreground() -> bool {
    let Ok(terminal) = std::fs::File::open("/dev/tty") else { return false };
    rustix::termios::tcgetpgrp(terminal).is_ok_and(|group| group == rustix::process::getpgrp())
}

/// Bears what the console sends to all of its processes, until the future is dropped.
#[cfg(not(unix))]
pub async fn pass_signals_on(_to: u32) -> std::io::Result<std::convert::Infallible> {
    loop {
        tokio::signal::ctrl_c().await?;
    }
}
