//! The scan report: the files that a run has left in the workspace and that run later, outside of any jail.
//!
//! The report compares two scans, one before the worker starts and one when all of its processes have ended. Every
//! change in between counts: a worker's change cannot be told from a person's change at the same time.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use super::interrupted_runs::Trace;
use provost_base::TaskId;
use provost_base::later::names::PIPE_ASIDE;
use provost_base::limits::{
    FINDINGS_MAX, FINDINGS_OF_A_KIND_MIN, REPOSITORIES_NAMED_MAX, REPOSITORY_LAYERS_MAX,
};
use provost_domain::{FileChange, Finding, FindingKind, ScanReport};
use provost_jail::Repositories;
#[cfg(windows)]
use provost_workspace::integrity_scan::Unshared;
use provost_workspace::integrity_scan::{Entry, Ground, ScanFindings};
use provost_workspace::path_text::{of_path, shown};
#[cfg(not(windows))]
use provost_workspace::unshare::Unshared;

/// The state of the workspace before a run. Blocking to make and to compare.
#[derive(Debug)]
pub(super) struct Before {
    ground: Ground,
    findings: ScanFindings,
    repositories: Option<Repositories>,
    trace: Option<Trace>,
}

/// The differences between the scan before a run and the one after it.
#[derive(Debug, Default)]
pub(super) struct Compared {
    pub(super) report: ScanReport,
    /// The repositories that the run has made against the rule, in words.
    pub(super) made: Option<String>,
}

impl Before {
    /// Scans the workspace before a run.
    pub(super) fn look(ground: Ground) -> Self {
        Self { findings: ground.look(), ground, repositories: None, trace: None }
    }

    /// Scans the workspace before an apply.
    ///
    /// # Errors
    /// The reason why not everything that counts was seen.
    pub(super) fn look_for_an_apply(ground: &Ground) -> Result<Self, String> {
        let findings = ground.look_for_an_apply();
        match &findings.incomplete {
            None => Ok(Self { findings, ground: ground.clone(), repositories: None, trace: None }),
            Some(why) => {
                Err(format!("{why}, so it is not known what of its files runs outside of every jail"))
            }
        }
    }

    /// Returns the existing repositories, under any name, and files and links that lead to repositories; absolute.
    #[cfg(unix)]
    pub(super) fn repositories(&self) -> impl Iterator<Item = PathBuf> {
        use std::os::unix::ffi::OsStrExt as _;
        let all = self.findings.repositories.iter();
        all.map(|path| self.ground.root.path().join(std::ffi::OsStr::from_bytes(path)))
    }

    /// Returns nothing, since repositories are not looked for here.
    #[cfg(not(unix))]
    pub(super) fn repositories(&self) -> impl Iterator<Item = PathBuf> {
        std::iter::empty()
    }

    /// Returns local sockets, from the workspace.
    pub(super) fn sockets(&self) -> impl Iterator<Item = &[u8]> {
        let sockets = self.findings.entries.iter().filter(|(_, entry)| entry.socket);
        sockets.map(|(path, _)| path.as_slice())
    }

    /// Returns folders that could not be looked into, from the workspace.
    pub(super) fn shut(&self) -> impl Iterator<Item = &[u8]> {
        let shut = self.findings.entries.iter().filter(|(_, entry)| entry.closed);
        shut.map(|(path, _)| path.as_slice())
    }

    /// Returns the settings that a worker must not change, as paths from the workspace. A path that is no text
    /// cannot be held by a mount, and its change is reported instead.
    pub(super) fn held(&self) -> impl Iterator<Item = &str> {
        self.findings.held.iter().filter_map(|path| std::str::from_utf8(path).ok())
    }

    /// Returns settings files, from the workspace.
    pub(super) fn settings(&self) -> impl Iterator<Item = &[u8]> {
        let settings = self.findings.entries.iter().filter(|(_, it)| it.kind == Some(FindingKind::Setting));
        settings.map(|(path, _)| path.as_slice())
    }

    /// Returns links among settings, from the workspace.
    pub(super) fn links(&self) -> impl Iterator<Item = &[u8]> {
        self.findings.links.iter().map(Vec::as_slice)
    }

    /// Returns the reason why not everything was seen; `None` if everything was.
    pub(super) fn incomplete(&self) -> Option<&str> {
        self.findings.incomplete.as_deref()
    }

    /// Returns the folder in which the scan stopped at its bound, from the workspace.
    pub(super) fn stopped_at(&self) -> Option<&str> {
        self.findings.stopped_at.as_deref().and_then(|path| std::str::from_utf8(path).ok())
    }

    /// Makes sure that no file is shared with a path outside.
    ///
    /// # Errors
    /// The reason why that is impossible.
    pub(super) fn unshare(&self, mounts: bool, held: &BTreeSet<String>) -> Result<Unshared, String> {
        self.ground.unshare(&self.findings, mounts, held)
    }

    /// Sets the repositories that may exist after the run, if the scan has seen all that exist.
    pub(super) fn expect(&mut self, repositories: Repositories) -> Option<Repositories> {
        self.repositories = Some(repositories).filter(|_| self.findings.incomplete.is_none());
        self.repositories.clone()
    }

    /// Scans again and returns the differences. Repositories that were made against the rule are set aside.
    pub(super) fn compare(&self) -> Compared {
        let later = self.ground.look_after(&self.findings);
        let mut report = report(&self.findings, &later);
        self.ground.remove_pipes(&self.findings, &later);
        let known = self.repositories.as_ref();
        let (more, made) =
            known.map(|known| put_out_of_force(&self.ground, known, &later)).unwrap_or_default();
        // Git would not take this one for a repository today, but may on another day. Its present name is reported,
        // too, since an agent whose run was ended for it gets no other reason.
        for finding in more {
            let below = format!("{}/", finding.path);
            let is_it = |it: &Finding| it.path == finding.path || it.path.starts_with(&below);
            if !report.findings.iter().any(is_it) {
                report.findings.insert(0, finding);
            }
        }
        Compared { report, made }
    }

    /// Writes down the state before the run for a later daemon, in case this one does not see the run's end.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn leave_a_trace(&mut self, copies: &Path, task: &TaskId) -> io::Result<()> {
        if let Some(known) = &self.repositories {
            self.trace = Some(Trace::leave(copies, task, (&self.ground, &self.findings), known)?);
        }
        Ok(())
    }

    /// Removes that file, since the report of the run is on record, or the run has never begun.
    pub(super) fn finish(mut self) {
        if let Some(trace) = self.trace.take() {
            trace.remove();
        }
    }
}

/// Sets aside all repositories that exist against the rule, also those that lay in one and are no part of it any more.
/// Returns a finding for each, under its old name and its new one, and their names in words.
pub(super) fn put_out_of_force(
    ground: &Ground,
    known: &Repositories,
    later: &ScanFindings,
) -> (Vec<Finding>, Option<String>) {
    let (mut findings, mut named, mut more) = (Vec::new(), Vec::new(), 0);
    let mut made = ground.one_more(known, later);
    for _ in 0..REPOSITORY_LAYERS_MAX {
        for at in &made {
            let (now, done) = ground.set_aside(at);
            if named.len() >= REPOSITORIES_NAMED_MAX {
                more += 1;
                continue;
            }
            let path = of_path(at.strip_prefix(ground.root.path()).unwrap_or(at));
            for path in [path.clone()].into_iter().chain(now.map(|now| of_path(&now))) {
                let finding = Finding { path: path.into(), kind: FindingKind::Git, change: FileChange::New };
                findings.push(finding);
            }
            named.push(format!("{path}, {done}"));
        }
        if made.is_empty() {
            break;
        }
        made = ground.one_more(known, &ground.look_after(later));
    }
    if !made.is_empty() {
        named.push(format!("{} more, still in force: remove them before you use git there", made.len()));
    }
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    (findings, (!named.is_empty()).then(|| named.join("; ") + &rest))
}

fn report(before: &ScanFindings, after: &ScanFindings) -> ScanReport {
    let mut findings = Vec::new();
    let mut unknown = before.incomplete.clone().or_else(|| after.incomplete.clone());
    for (path, entry) in &after.entries {
        let old = before.entries.get(path);
        if entry.closed && old.is_none_or(|old| old.stamp != entry.stamp) {
            unknown.get_or_insert_with(|| format!("{} cannot be looked into", shown(path)));
        } else if let Some((kind, change)) = judged(old, entry) {
            // A pipe that was set aside is reported under the name that the worker gave it.
            let of_a_pipe = path.strip_suffix(PIPE_ASIDE.as_bytes()).filter(|_| entry.pipe);
            findings.push(Finding { path: shown(of_a_pipe.unwrap_or(path)).into(), kind, change });
        }
    }
    // Paths that an unfinished scan did not reach are not gone.
    if after.incomplete.is_none() {
        let is_gone = |path: &Vec<u8>, entry: &Entry| !entry.by_content && !after.entries.contains_key(path);
        let gone = before.entries.iter().filter(|(path, entry)| is_gone(path, entry));
        findings.extend(gone.filter_map(|(path, entry)| {
            let kind = entry.kind?;
            Some(Finding { path: shown(path).into(), kind, change: FileChange::Removed })
        }));
    }
    // A program outside has given a file from elsewhere a name in the directory while the worker ran.
    let shared =
        after.shared.iter().filter(|(inode, file)| file.is_elsewhere() && !before.shared.contains_key(inode));
    findings.extend(shared.flat_map(|(_, file)| &file.paths).map(|(path, _)| Finding {
        path: shown(path).into(),
        kind: FindingKind::Link,
        change: FileChange::New,
    }));
    findings.sort_by(|a, b| (a.kind, &a.path).cmp(&(b.kind, &b.path)));
    findings.dedup();
    let more = findings.len().saturating_sub(FINDINGS_MAX);
    let findings = the_first_of_each_kind(findings);
    ScanReport { findings, more: u32::try_from(more).unwrap_or(u32::MAX), unknown: unknown.map(Into::into) }
}

/// Returns the findings that are listed: the gravest first, and some of each kind, so that many of one kind do not hide the others.
fn the_first_of_each_kind(all: Vec<Finding>) -> Vec<Finding> {
    let mut of_kind: BTreeMap<FindingKind, usize> = BTreeMap::new();
    let (mut listed, others): (Vec<Finding>, Vec<Finding>) = all.into_iter().partition(|it| {
        let number = of_kind.entry(it.kind).or_default();
        *number += 1;
        *number <= FINDINGS_OF_A_KIND_MIN
    });
    let room = FINDINGS_MAX.saturating_sub(listed.len());
    listed.extend(others.into_iter().take(room));
    listed.sort_by(|a, b| (a.kind, &a.path).cmp(&(b.kind, &b.path)));
    listed
}

/// Returns the finding for a file that exists, by the difference to its old state.
fn judged(old: Option<&Entry>, new: &Entry) -> Option<(FindingKind, FileChange)> {
    let change = match old {
        None if new.by_content => return None,
        None => FileChange::New,
        Some(_) if new.only_new => return None,
        Some(old) if old.stamp != new.stamp => FileChange::Changed,
        // A part of its path has changed, and it leads out of the directory now.
        Some(old) if new.leaves && !old.leaves => return Some((FindingKind::Link, FileChange::Changed)),
        Some(_) => return None,
    };
    let kind = match new {
        Entry { setuid: true, .. } => FindingKind::Setuid,
        Entry { socket: true, .. } => FindingKind::Socket,
        Entry { kind: Some(kind), .. } => *kind,
        Entry { leaves: true, .. } => FindingKind::Link,
        Entry { executable: true, .. } => FindingKind::Executable,
        _ => return None,
    };
    Some((kind, change))
}
