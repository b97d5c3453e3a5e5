//! The permissions of files in a work tree that follows: existing ones stay, and a shared repository
//! stays shared, regardless of the daemon's umask.

use std::io;

use cap_std::fs::Dir;

use provost_system::{file_inside, mode_of, set_mode};

/// Returns the rights that `core.sharedRepository` gives to others, as bits of a mode.
pub(super) fn shared(value: Option<&str>) -> u32 {
    match value.unwrap_or_default().to_ascii_lowercase().as_str() {
        "" | "umask" | "false" | "no" | "off" | "0" => 0,
        "group" | "true" | "yes" | "on" | "1" => 0o660,
        "all" | "world" | "everybody" | "2" => 0o664,
        number => u32::from_str_radix(number, 8).unwrap_or(0) & 0o666,
    }
}

/// Gives a new file the mode of the file that it replaces; without one, the shared rights.
pub(super) fn take_over(from: &Dir, to: &Dir, name: &str, shared: u32) -> io::Result<()> {
    let is_file = |dir: &Dir| dir.symlink_metadata(name).is_ok_and(|it| it.is_file());
    if !is_file(from) {
        return Ok(());
    }
    let new = file_inside(from, name)?;
    let Some(mode) = mode_of(&new)? else { return Ok(()) };
    let before =
        is_file(to).then(|| file_inside(to, name).and_then(|it| mode_of(&it)).ok().flatten()).flatten();
    let kept = before.unwrap_or(mode | shared) & 0o666;
    // The commit decides whether it is a program.
    let runs = if mode & 0o100 == 0 { 0 } else { (kept & 0o444) >> 2 };
    if kept | runs == mode { Ok(()) } else { set_mode(&new, kept | runs) }
}

/// Shares a folder that was made for a file.
#[cfg(unix)]
pub(super) fn share_folder(dir: &Dir, shared: u32) -> io::Result<()> {
    use rustix::fs::{Mode, fchmod, fstat};
    let mode = fstat(dir)?.st_mode & 0o7777;
    let wanted = mode | shared | (shared & 0o444) >> 2;
    if wanted == mode { Ok(()) } else { Ok(fchmod(dir, Mode::from_raw_mode(wanted))?) }
}

#[cfg(windows)]
pub(super) fn share_folder(_dir: &Dir, _shared: u32) -> io::Result<()> {
    Ok(())
}

/// Checks whether files can be made and removed in a folder.
#[cfg(unix)]
pub(super) fn is_writable(dir: &Dir) -> bool {
    use rustix::fs::{Access, AtFlags, accessat};
    accessat(dir, ".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS).is_ok()
}

#[cfg(windows)]
pub(super) fn is_writable(_dir: &Dir) -> bool {
    // The system's refusal is reported when it comes.
    true
}
