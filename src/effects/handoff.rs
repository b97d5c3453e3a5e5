//! The hand-off report: what a run has left in the workspace that runs later, outside of any jail.
//!
//! Two looks are compared, one before the worker starts and one when nothing of it is left. What changed in
//! between counts, whoever changed it: nobody can tell a worker's change from a person's at the same time.

use super::survey::{Entry, Ground, Survey};
use crate::base::limits::{FINDING_PATH_BYTES_MAX, FINDINGS_MAX};
use crate::domain::{FileChange, Finding, FindingKind, Handoff};

/// What was there before a run. Blocking to make and to compare.
#[derive(Debug)]
pub(super) struct Before {
    ground: Ground,
    survey: Survey,
}

impl Before {
    /// Looks around.
    pub(super) fn look(ground: Ground) -> Self {
        Self { survey: ground.look(), ground }
    }

    /// Files by which submodules and worktrees lead to their repositories, from the workspace.
    pub(super) fn git_links(&self) -> impl Iterator<Item = &[u8]> {
        let links = self.survey.entries.iter().filter(|(path, entry)| {
            entry.kind == Some(FindingKind::Git) && entry.is_file() && path.ends_with(b"/.git")
        });
        links.map(|(path, _)| path.as_slice())
    }

    /// Looks around again and says what is different.
    pub(super) fn compare(&self) -> Handoff {
        report(&self.survey, &self.ground.look())
    }
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
        let gone = before.entries.iter().filter(|(path, _)| !after.entries.contains_key(*path));
        findings.extend(gone.filter_map(|(path, entry)| {
            let kind = entry.kind?;
            Some(Finding { path: shown(path).into(), kind, change: FileChange::Removed })
        }));
    }
    findings.sort_by(|a, b| (a.kind, &a.path).cmp(&(b.kind, &b.path)));
    let more = findings.len().saturating_sub(FINDINGS_MAX);
    findings.truncate(FINDINGS_MAX);
    Handoff { findings, more: u32::try_from(more).unwrap_or(u32::MAX), unknown: unknown.map(Into::into) }
}

/// What there is to say of a file that is there.
fn judged(old: Option<&Entry>, new: &Entry) -> Option<(FindingKind, FileChange)> {
    let change = match old {
        None => FileChange::New,
        Some(old) if old.stamp != new.stamp => FileChange::Changed,
        // Something on its way has changed.
        Some(old) if new.leaves && !old.leaves => return Some((FindingKind::Link, FileChange::Changed)),
        Some(_) => return None,
    };
    let kind = match new {
        Entry { setuid: true, .. } => FindingKind::Setuid,
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
