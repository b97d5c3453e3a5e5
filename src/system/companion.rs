//! A command that runs on behalf of this process: it ends with the process, and gets the process's signals.

use std::process::Command;

#[cfg(target_os = "linux")]
use std::os::unix::process::CommandExt as _;

/// Makes the system end a command by a signal when the thread that started it ends. On systems other than Linux the command goes on.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "the standard library has no safe word for a call between fork and exec")]
pub fn end_with_us(command: &mut Command) -> &mut Command {
    use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};
    let us = getpid();
    let ends = move || {
        set_parent_process_death_signal(Some(Signal::TERM))?;
        // If the parent is gone already, no signal will come.
        if getppid() == Some(us) { Ok(()) } else { Err(rustix::io::Errno::SRCH.into()) }
    };
    // SAFETY: the closure makes two system calls, allocates nothing and takes no lock, so it may run between fork and exec.
    unsafe { command.pre_exec(ends) }
}

/// Makes a command end when this process is gone, on systems that can do so.
#[cfg(not(target_os = "linux"))]
pub fn end_with_us(command: &mut Command) -> &mut Command {
    command
}

/// Passes the signals that ask a program to end or to act on to a process, until the future is dropped. A terminal sends its signals
/// to all of its foreground processes, so they are passed on only if this process has no terminal.
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
            // A process that has ended meanwhile needs no signal.
            let _gone = kill_process(pid, passed);
        }
    }
}

/// Checks whether a terminal sends its signals to this process and to all its children.
#[cfg(unix)]
fn is_in_foreground() -> bool {
    let Ok(terminal) = std::fs::File::open("/dev/tty") else { return false };
    rustix::termios::tcgetpgrp(terminal).is_ok_and(|group| group == rustix::process::getpgrp())
}

/// Ignores the console's signals, which go to all of its processes, until the future is dropped.
#[cfg(not(unix))]
pub async fn pass_signals_on(_to: u32) -> std::io::Result<std::convert::Infallible> {
    loop {
        tokio::signal::ctrl_c().await?;
    }
}
