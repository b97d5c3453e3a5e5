//! Finds the screen of Codex that a session belongs to.
//!
//! Codex' screens let one process in the background work, and this process tells a hook nothing that names the screen. A screen begins a
//! session as soon as it is started, and while the session is open Codex keeps a file by the session's id (`thread-writer-locks`), made at
//! that moment; tried with 0.169. So a session's screen is older than the session's file. If several screens are older, the session's is
//! the one that was started shortly before, provided that each other screen has a session of its own. Otherwise the screen is unknown.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use provost_base::limits::CODEX_SESSIONS_MAX;
use provost_system::{self as system, Screen};

/// The time within which a started screen has its first session; measured: two seconds.
const BEGINS_WITHIN: Duration = Duration::from_secs(10);

/// Moments that are nearer than this count as one: the system gives the start of a process in hundredths of a second,
/// and a file's time as exactly as its timer ticks.
const EXACT_TO: Duration = Duration::from_millis(20);

/// An open session, and the moment at which its file was made.
struct Open {
    id: String,
    began: SystemTime,
}

/// Returns the screen of a session in a folder; `None` if it is not known.
pub(super) fn of_session(id: &str, folder: &Path) -> Option<u32> {
    let folder = system::real_path(folder).unwrap_or_else(|_| folder.to_owned());
    let home = home();
    let mut screens = system::screens_of("codex");
    // Screens with another home keep their sessions there.
    screens.retain(|it| home_in(|name| variable_of(it.pid, name)) == home);
    let open = open_sessions(home.as_deref());
    let here: Vec<&Screen> = screens.iter().filter(|it| it.folder == folder).collect();
    let Some(mine) = open.iter().find(|it| it.id == id) else {
        // This Codex keeps no such files.
        return only(here.iter().copied()).map(|it| it.pid);
    };
    chosen(mine, &open, &screens, &here)
}

fn chosen(mine: &Open, open: &[Open], screens: &[Screen], here: &[&Screen]) -> Option<u32> {
    let older = |than: &Open, it: &Screen| it.began < than.began;
    // Returns the screen that a session belongs to if each screen begins a session before the next screen is started.
    let likely = |session: &Open| {
        screens.iter().filter(|it| older(session, it)).max_by_key(|it| it.began).map(|it| it.pid)
    };
    let has_another =
        |it: &Screen| open.iter().any(|other| other.id != mine.id && likely(other) == Some(it.pid));
    if screens.iter().any(|it| apart(it.began, mine.began) < EXACT_TO) {
        return None;
    }
    let able: Vec<&Screen> = here.iter().copied().filter(|it| older(mine, it)).collect();
    if let [one] = able[..] {
        return Some(one.pid);
    }
    let last = able.iter().copied().max_by_key(|it| it.began)?;
    // For a session that a screen begins later, the screen cannot be told.
    if mine.began.duration_since(last.began).is_ok_and(|it| it > BEGINS_WITHIN) {
        return None;
    }
    let others_have = able.iter().filter(|it| it.pid != last.pid).all(|it| has_another(it));
    others_have.then_some(last.pid)
}

/// Returns the time between two moments, in either order.
fn apart(one: SystemTime, other: SystemTime) -> Duration {
    one.duration_since(other).unwrap_or_else(|other_is_later| other_is_later.duration())
}

/// Returns the item of an iterator that has exactly one.
fn only<'a>(mut some: impl Iterator<Item = &'a Screen>) -> Option<&'a Screen> {
    let one = some.next()?;
    some.next().is_none().then_some(one)
}

/// Returns the open sessions of Codex that have a file.
fn open_sessions(home: Option<&Path>) -> Vec<Open> {
    let Some(folder) = home.map(|it| it.join("thread-writer-locks")) else { return Vec::new() };
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().take(CODEX_SESSIONS_MAX);
    let session = |it: std::fs::DirEntry| {
        let name = it.file_name().into_string().ok()?;
        let id = name.strip_suffix(".lock").filter(|it| !it.starts_with('.'))?;
        Some(Open { id: id.to_owned(), began: it.metadata().ok()?.modified().ok()? })
    };
    entries.filter_map(session).collect()
}

/// Returns Codex' own folder.
pub(super) fn home() -> Option<PathBuf> {
    home_in(|name| std::env::var_os(name))
}

/// Does the same in another environment.
fn home_in(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let named = variable("CODEX_HOME").filter(|it| !it.is_empty()).map(PathBuf::from);
    let home = || system::HOME.iter().find_map(|name| variable(name)).filter(|it| !it.is_empty());
    named.or_else(|| Some(PathBuf::from(home()?).join(".codex")))
}

/// Returns a variable with which a process was started; `None` where the system does not show it.
fn variable_of(pid: u32, name: &str) -> Option<OsString> {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    let mut all = environment.split(|byte| *byte == 0).map(|it| String::from_utf8_lossy(it).into_owned());
    all.find_map(|it| Some(it.strip_prefix(name)?.strip_prefix('=')?.into()))
}
