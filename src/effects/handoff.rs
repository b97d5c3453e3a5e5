//! The hand-off report: what a run has left in the workspace that runs later, outside of any jail.
//!
//! Two looks are compared, one before the worker starts and one when nothing of it is left. What changed in
//! between counts, whoever changed it: nobody can tell a worker's change from a person's at the same time.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

#[cfg(not(windows))]
use super::shared::Unshared;
#[cfg(windows)]
use super::survey::Unshared;
use super::survey::{Entry, Ground, Survey};
use crate::base::limits::{FINDING_PATH_BYTES_MAX, FINDINGS_MAX, REPOSITORIES_NAMED_MAX};
use crate::domain::{FileChange, Finding, FindingKind, Handoff};
use crate::jail::Repositories;

/// What was there before a run. Blocking to make and to compare.
#[derive(Debug)]
pub(super) struct Before {
    ground: Ground,
    survey: Survey,
    repositories: Option<Repositories>,
}

/// What was different.
#[derive(Debug, Default)]
pub(super) struct Compared {
    pub(super) handoff: Handoff,
    /// Which repositories a run has made that may make none, in words.
    pub(super) made: Option<String>,
}

impl Before {
    /// Looks around.
    pub(super) fn look(ground: Ground) -> Self {
        Self { survey: ground.look(), ground, repositories: None }
    }

    /// Repositories that are there, under whatever name, and files and links that lead to some; absolute.
    #[cfg(unix)]
    pub(super) fn repositories(&self) -> impl Iterator<Item = PathBuf> {
        use std::os::unix::ffi::OsStrExt as _;
        let all = self.survey.repositories.iter();
        all.map(|path| self.ground.root.path().join(std::ffi::OsStr::from_bytes(path)))
    }

    /// None was looked for.
    #[cfg(not(unix))]
    pub(super) fn repositories(&self) -> impl Iterator<Item = PathBuf> {
        std::iter::empty()
    }

    /// Local sockets, from the workspace.
    pub(super) fn sockets(&self) -> impl Iterator<Item = &[u8]> {
        let sockets = self.survey.entries.iter().filter(|(_, entry)| entry.socket);
        sockets.map(|(path, _)| path.as_slice())
    }

    /// Settings that a worker is to leave as they are, from the workspace. What is not text cannot be held by a mount,
    /// and is reported.
    pub(super) fn held(&self) -> impl Iterator<Item = &str> {
        self.survey.held.iter().filter_map(|path| std::str::from_utf8(path).ok())
    }

    /// Why not everything was seen.
    pub(super) fn incomplete(&self) -> Option<&str> {
        self.survey.incomplete.as_deref()
    }

    /// Sees to it that no file is shared with anything outside.
    ///
    /// # Errors
    /// Why that cannot be done.
    pub(super) fn unshare(&self, mounts: bool, held: &BTreeSet<String>) -> Result<Unshared, String> {
        self.ground.unshare(&self.survey, mounts, held)
    }

    /// Says which repositories there may be afterwards, if all that there are were seen.
    pub(super) fn expect(&mut self, repositories: Repositories) -> Option<Repositories> {
        self.repositories = Some(repositories).filter(|_| self.survey.incomplete.is_none());
        self.repositories.clone()
    }

    /// Looks around again and says what is different. A repository that was made against the rule is set aside.
    pub(super) fn compare(&self) -> Compared {
        let later = self.ground.look_after(&self.survey);
        let mut handoff = report(&self.survey, &later);
        let made =
            self.repositories.as_ref().map(|known| self.ground.one_more(known, &later)).unwrap_or_default();
        let root = self.ground.root.path();
        let shown = |at: &PathBuf| of_path(at.strip_prefix(root).unwrap_or(at));
        let mut named = Vec::new();
        for at in made.iter().take(REPOSITORIES_NAMED_MAX) {
            let path = shown(at);
            let (now, done) = self.ground.set_aside(at);
            let now = now.map(|now| of_path(&now));
            // One that git would not take for a repository today has been made for another day. What it is called now is
            // told, too, to those who had the run end and hear of no other reason.
            let is_known = |it: &Finding| it.path.starts_with(&path);
            let first = (!handoff.findings.iter().any(is_known)).then(|| path.clone());
            for path in now.into_iter().chain(first) {
                let finding = Finding { path: path.into(), kind: FindingKind::Git, change: FileChange::New };
                handoff.findings.insert(0, finding);
            }
            named.push(format!("{path}, {done}"));
        }
        let mut more = 0;
        for at in made.iter().skip(REPOSITORIES_NAMED_MAX) {
            let _in_the_report = self.ground.set_aside(at);
            more += 1;
        }
        let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
        Compared { handoff, made: (!named.is_empty()).then(|| named.join("; ") + &rest) }
    }
}

pub(super) fn of_path(path: &Path) -> String {
    shown(path.as_os_str().as_encoded_bytes())
}

fn report(before: &Survey, after: &Survey) -> Handoff {
    let mut findings = Vec::new();
    let mut unknown = before.incomplete.clone().or_else(|| after.incomplete.clone());
    for (path, entry) in &after.entries {
        let old = before.entries.get(path);
        if entry.closed && old.is_none_or(|old| old.stamp != entry.stamp) {
            unknown.get_or_insert_with(|| format!("{} cannot be looked into", shown(path)));
        } else if let Some((kind, change)) = judged(old, entry) {
            findings.push(Finding { path: shown(path).into(), kind, change });
        }
    }
    // What an unfinished look did not come to is not gone.
    if after.incomplete.is_none() {
        let is_gone = |path: &Vec<u8>, entry: &Entry| !entry.by_content && !after.entries.contains_key(path);
        let gone = before.entries.iter().filter(|(path, entry)| is_gone(path, entry));
        findings.extend(gone.filter_map(|(path, entry)| {
            let kind = entry.kind?;
            Some(Finding { path: shown(path).into(), kind, change: FileChange::Removed })
        }));
    }
    // Somebody has given a file from elsewhere a name in here while the worker ran.
    let shared =
        after.shared.iter().filter(|(inode, file)| file.is_elsewhere() && !before.shared.contains_key(inode));
    findings.extend(shared.flat_map(|(_, file)| &file.paths).map(|(path, _)| Finding {
        path: shown(path).into(),
        kind: FindingKind::Link,
        change: FileChange::New,
    }));
    findings.sort_by(|a, b| (a.kind, &a.path).cmp(&(b.kind, &b.path)));
    let more = findings.len().saturating_sub(FINDINGS_MAX);
    findings.truncate(FINDINGS_MAX);
    Handoff { findings, more: u32::try_from(more).unwrap_or(u32::MAX), unknown: unknown.map(Into::into) }
}

/// What there is to say of a file that is there.
fn judged(old: Option<&Entry>, new: &Entry) -> Option<(FindingKind, FileChange)> {
    let change = match old {
        None if new.by_content => return None,
        None => FileChange::New,
        Some(old) if old.stamp != new.stamp => FileChange::Changed,
        // Something on its way has changed.
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

/// A path that a worker may have chosen, as text of bounded length in which nothing acts.
pub(super) fn shown(path: &[u8]) -> String {
    let text = String::from_utf8_lossy(path);
    let text: String = text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    let end = text.floor_char_boundary(FINDING_PATH_BYTES_MAX.min(text.len()));
    crate::jail::plain_text(&text[..end])
}
