//! Processes that have spoken as agents, and their ancestors up to the leader of a session with a terminal. A
//! model may have started every process below one of them, so such a process does not count as a person.
//!
//! Each is kept with its start time, so that its number cannot stand for another process. They are also kept in a file, so
//! that an agent does not count as a person after it has restarted the daemon. The file names the boot of the machine; its
//! processes end with that boot. The name under which a process has spoken serves only the text of a refusal. It has a line
//! of its own, which begins with `=` and which a daemon that does not know such lines ignores.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::line::Line;
use super::loopback::KNOWS_PEERS;
use provost_base::AgentId;
use provost_base::limits::SPEAKERS_MAX;
use provost_domain::{CallOrigin, ProcessMark};
use provost_system::{boot_name, private_file, process_began};

/// The processes that have spoken as agents. Ended ones are forgotten when the room runs out.
#[derive(Default)]
pub(super) struct Speakers(Mutex<RegisteredProcesses>);

#[derive(Default)]
struct RegisteredProcesses {
    marks: HashMap<u32, ProcessMark>,
    /// The first name that each process has given itself, if it has given one.
    names: HashMap<ProcessMark, AgentId>,
    kept: Option<SpeakersFile>,
}

/// The file that keeps them: the machine's boot, and a line for each process.
struct SpeakersFile {
    path: PathBuf,
    file: File,
    lines: usize,
}

impl Speakers {
    /// Returns the processes of this boot that an earlier daemon has kept in this file.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub(super) fn kept_in(path: &Path) -> io::Result<Self> {
        let text = match std::fs::read(path) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(err) if err.kind() == io::ErrorKind::NotFound => String::new(),
            Err(err) => return Err(err),
        };
        let mut lines = text.lines();
        let same_start = lines.next() == Some(&*boot_name());
        let names = lines.clone().filter(|_| same_start).filter_map(name_in);
        let mut names: HashMap<ProcessMark, AgentId> = names.collect();
        let marks: HashMap<u32, ProcessMark> = marks_in(&text).into_iter().map(|it| (it.pid, it)).collect();
        names.retain(|it, _| marks.get(&it.pid) == Some(it));
        let kept = SpeakersFile::write(path, &marks, &names)?;
        Ok(Self(Mutex::new(RegisteredProcesses { marks, names, kept: Some(kept) })))
    }

    /// Records processes, with the name under which they have spoken, if there is one. When the room runs out,
    /// ended ones are forgotten; a running one never is, since it would be taken for a person.
    pub(super) fn note(&self, processes: impl Iterator<Item = ProcessMark>, name: Option<&AgentId>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = |it: &ProcessMark| {
            known.marks.get(&it.pid) != Some(it) || (name.is_some() && !known.names.contains_key(it))
        };
        let new: Vec<ProcessMark> = processes.filter(is_new).collect();
        if new.is_empty() {
            return;
        }
        if known.marks.len() >= SPEAKERS_MAX {
            known.forget_ended();
        }
        known.marks.extend(new.iter().map(|it| (it.pid, *it)));
        if let Some(name) = name {
            known.names.extend(new.iter().map(|it| (*it, name.clone())));
        }
        if let Err(err) = known.keep(&new) {
            tracing::warn!(%err, "the record of processes that speak as agents could not be saved; it ends with this daemon");
        }
    }

    /// Returns the origin of a call: a process that was started below a session in which an agent has spoken belongs to that
    /// agent's tree. `None` if that could not be seen, although the system tells it of other processes.
    pub(super) fn origin(&self, line: &Line) -> Option<CallOrigin> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let spoken = line.sessions_up_to(|it| known.marks.get(&it.pid) == Some(it));
        let seen = CallOrigin::new(line.sessions().to_vec(), spoken);
        seen.or_else(|| (!KNOWS_PEERS).then(CallOrigin::untold))
    }

    /// Returns, in words, which agent has spoken in this line; `None` if none has. The name is the agent's own claim.
    pub(super) fn name_in(&self, line: &Line) -> Option<String> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut spoken = line.processes().filter(|it| known.marks.get(&it.pid) == Some(it)).peekable();
        spoken.peek()?;
        let name = spoken.find_map(|it| known.names.get(&it));
        Some(name.map_or_else(|| "an agent".to_owned(), ToString::to_string))
    }

    /// Returns the names that running ones have given themselves.
    pub(super) fn names_running(&self) -> BTreeSet<String> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).names.clone();
        known.iter().filter(|it| is_running(it.0)).map(|it| it.1.to_string()).collect()
    }

    /// Returns the numbers of running processes that have spoken to other daemons of the user. Blocking.
    pub(super) fn elsewhere(&self) -> Vec<i32> {
        let path = {
            let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            known.kept.as_ref().map(|it| it.path.clone())
        };
        let known = path.map(|it| super::speakers_elsewhere::known(&it)).unwrap_or_default();
        known.iter().filter_map(|it| i32::try_from(it.pid).ok()).collect()
    }

    /// Returns the numbers of those that still run.
    pub(super) fn running(&self) -> Vec<i32> {
        let known: Vec<ProcessMark> =
            self.0.lock().unwrap_or_else(PoisonError::into_inner).marks.values().copied().collect();
        known.iter().filter(|it| is_running(it)).filter_map(|it| i32::try_from(it.pid).ok()).collect()
    }
}

/// Returns the processes of this boot in such a file's text that still run.
pub(super) fn marks_in(text: &str) -> Vec<ProcessMark> {
    let mut lines = text.lines();
    let same_start = lines.next() == Some(&*boot_name());
    // The last line is partial if the daemon ended while it wrote; it did not admit that process.
    let marks = lines.filter(|_| same_start).filter_map(|line| {
        let (pid, started) = line.split_once(' ')?;
        Some(ProcessMark { pid: pid.parse().ok()?, started: started.parse().ok()? })
    });
    marks.filter(is_running).collect()
}

impl RegisteredProcesses {
    fn forget_ended(&mut self) {
        let marks = &mut self.marks;
        marks.retain(|_, mark| is_running(mark));
        self.names.retain(|it, _| marks.get(&it.pid) == Some(it));
    }

    /// Appends these to the file, and rewrites it without ended processes once it is long.
    fn keep(&mut self, new: &[ProcessMark]) -> io::Result<()> {
        let Some(mut kept) = self.kept.take() else { return Ok(()) };
        kept.lines += new.len();
        let done = if kept.lines > 2 * SPEAKERS_MAX {
            self.forget_ended();
            SpeakersFile::write(&kept.path, &self.marks, &self.names).map(|it| kept = it)
        } else {
            kept.file.write_all(lines_of(new.iter(), &self.names).as_bytes())
        };
        self.kept = Some(kept);
        done
    }
}

impl SpeakersFile {
    /// Writes the file in one step, and opens it for further lines.
    fn write(
        path: &Path,
        marks: &HashMap<u32, ProcessMark>,
        names: &HashMap<ProcessMark, AgentId>,
    ) -> io::Result<Self> {
        let new = path.with_extension("new");
        // An earlier start may have left anything at this path.
        match std::fs::remove_file(&new) {
            Err(err) if err.kind() != io::ErrorKind::NotFound => return Err(err),
            _ => {}
        }
        let mut options = File::options();
        options.append(true).create_new(true);
        let mut file = private_file(&mut options).open(&new)?;
        file.write_all(format!("{}\n{}", boot_name(), lines_of(marks.values(), names)).as_bytes())?;
        std::fs::rename(&new, path)?;
        Ok(Self { path: path.to_owned(), file, lines: marks.len() })
    }
}

fn lines_of<'a>(
    marks: impl Iterator<Item = &'a ProcessMark>,
    names: &HashMap<ProcessMark, AgentId>,
) -> String {
    let mut text = String::new();
    for it in marks {
        text.push_str(&format!("{} {}\n", it.pid, it.started));
        if let Some(name) = names.get(it) {
            text.push_str(&format!("={} {} {name}\n", it.pid, it.started));
        }
    }
    text
}

/// Reads the name of a process from its line.
fn name_in(line: &str) -> Option<(ProcessMark, AgentId)> {
    let mut parts = line.strip_prefix('=')?.splitn(3, ' ');
    let mark = ProcessMark { pid: parts.next()?.parse().ok()?, started: parts.next()?.parse().ok()? };
    Some((mark, AgentId::parse(parts.next()?).ok()?))
}

/// Checks whether a process still runs, of any user: a session may be led by a login program. `None` if the system
/// does not say.
pub fn runs(mark: &ProcessMark) -> Option<bool> {
    process_began(mark.pid).ok().map(|began| began == Some(mark.started))
}

/// Checks whether a process runs. One that could not be looked at counts as running: a forgotten one would be taken for a person.
fn is_running(mark: &ProcessMark) -> bool {
    runs(mark) != Some(false)
}
