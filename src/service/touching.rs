//! Finds the symbols that a difference waiting for approval touches, in the present files, and the agents that hold them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Provost;
use super::guard::{BeforeAndAfter, Edit, Obstacle};
use provost_base::limits::TOUCHED_SHOWN_MAX;
use provost_base::{AgentId, RepoPath, encloses};
use provost_domain::{Refusal, Writer};
use provost_workspace::file;

/// A place that the difference touches.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Touching {
    /// `file:Path`; only the file if no symbol of it can be named.
    pub at: Box<str>,
    /// An agent other than the asker that holds it.
    pub holder: Option<AgentId>,
    /// `lock`, `claim`, `lease` or `intent`.
    pub how: Option<&'static str>,
    /// The holder's own description of its work.
    pub doing: Option<Box<str>>,
}

/// The hunks of one file: the line at which each begins in the old file, counted from 1, and its lines with their signs.
type Hunks<'a> = Vec<(usize, Vec<&'a str>)>;

impl Provost {
    /// Returns the places that a difference in git's form touches, with the other agents that hold them; bounded.
    ///
    /// # Errors
    /// [`Refusal::Busy`] or [`Refusal::Unavailable`].
    pub async fn touches(&self, asker: &AgentId, diff: &str) -> Result<Vec<Touching>, Refusal> {
        let mut edits = Vec::new();
        for (path, hunks) in files(diff) {
            let change = self.change(&path, &hunks).await;
            edits.push(Edit { path, change, symbol: None, fails: false });
        }
        let writer = Writer { agent: asker.clone(), part: None, parts_differ: false };
        let looked = self.look_at(&writer, self.base(), &edits, true).await?;
        let mut found: Vec<Touching> = Vec::new();
        for (file, path, also) in looked.touched.iter().take(TOUCHED_SHOWN_MAX) {
            let at: Box<str> =
                if path.is_empty() { file.as_str().into() } else { format!("{file}:{path}").into() };
            let names = || std::iter::once(path).chain(also);
            let meets = |held: &str| {
                let meets = |it: &str| it == held || encloses(it, held) || encloses(held, it);
                held.is_empty() || path.is_empty() || names().any(|it| meets(it))
            };
            let mut holders = Vec::new();
            for it in &looked.guarded.blocked {
                match &it.by {
                    Obstacle::Lock(lock) if lock.it.at.file() == file && meets(lock.it.at.name()) => {
                        holders.push((lock.it.holder.clone(), "lock", it.doing.clone()));
                    }
                    Obstacle::Claim(claim) if claim.file == *file => {
                        holders.extend(
                            claim.held.owner().map(|owner| (owner.clone(), "claim", it.doing.clone())),
                        );
                    }
                    _ => {}
                }
            }
            let leases =
                looked.guarded.written.iter().filter(|it| it.at.file() == file && meets(it.at.name()));
            holders.extend(leases.map(|it| (it.holder.clone(), "lease", it.reason.clone())));
            let planned =
                looked.guarded.near.iter().filter(|(it, _)| it.files.iter().any(|it| it.path == *file));
            holders.extend(planned.map(|(it, _)| (it.agent.clone(), "intent", Some(it.description.clone()))));
            if holders.is_empty() {
                found.push(Touching { at: at.clone(), holder: None, how: None, doing: None });
            }
            let held = holders.into_iter();
            found.extend(held.map(|(holder, how, doing)| Touching {
                at: at.clone(),
                holder: Some(holder),
                how: Some(how),
                doing,
            }));
        }
        Ok(found)
    }

    /// Returns the content of a file before and after; `None` if the file is not the one that the difference was made from.
    async fn change(&self, path: &RepoPath, hunks: &Hunks<'_>) -> Option<BeforeAndAfter> {
        let (provost, at) = (self.clone(), path.clone());
        let found =
            tokio::task::spawn_blocking(move || file::look(provost.root().handle(), &at)).await.ok()?.ok()?;
        let before: Arc<[u8]> = found.map(|it| it.bytes).unwrap_or_default().into();
        let after: Arc<[u8]> = patched(&before, hunks)?.into();
        Some((before, after))
    }
}

/// Returns the files of a difference with their hunks.
fn files(diff: &str) -> BTreeMap<RepoPath, Hunks<'_>> {
    let mut found: BTreeMap<RepoPath, Hunks<'_>> = BTreeMap::new();
    let mut old: Option<&str> = None;
    let mut path: Option<RepoPath> = None;
    // The number of lines that the hunk still has on each side: within a hunk, `--- x` is a removed line.
    let mut left = (0_usize, 0_usize);
    for line in diff.split('\n') {
        if left != (0, 0) || line.starts_with('\\') {
            let Some((_, lines)) = path.as_ref().and_then(|it| found.get_mut(it)?.last_mut()) else {
                continue;
            };
            let (gone, come) = match line.as_bytes().first() {
                Some(b'-') => (1, 0),
                Some(b'+') => (0, 1),
                Some(b'\\') => (0, 0),
                _ => (1, 1),
            };
            left = (left.0.saturating_sub(gone), left.1.saturating_sub(come));
            lines.push(line);
        } else if let Some(name) = line.strip_prefix("--- ") {
            old = name.strip_prefix("a/");
        } else if let Some(name) = line.strip_prefix("+++ ") {
            path = name.strip_prefix("b/").or(old).and_then(RepoPath::as_is);
            if let Some(path) = &path {
                found.entry(path.clone()).or_default();
            }
        } else if let Some((from, lengths)) = line.strip_prefix("@@ ").and_then(hunk) {
            left = lengths;
            if let Some(hunks) = path.as_ref().and_then(|it| found.get_mut(it)) {
                hunks.push((from, Vec::new()));
            }
        }
    }
    found
}

/// Returns the line at which a hunk begins in the old file, and its number of lines on each side.
fn hunk(line: &str) -> Option<(usize, (usize, usize))> {
    let mut sides = line.split(' ').map(|side| {
        let (from, length) = side.get(1..)?.split_once(',').unwrap_or((side.get(1..)?, "1"));
        Some((from.parse::<usize>().ok()?, length.parse::<usize>().ok()?))
    });
    let ((from, gone), (_, come)) = (sides.next()??, sides.next()??);
    Some((from, (gone, come)))
}

/// Applies hunks to a file; `None` if one of their old lines differs from the file's.
fn patched(before: &[u8], hunks: &Hunks<'_>) -> Option<Vec<u8>> {
    let old: Vec<&[u8]> = before.split_inclusive(|it| *it == b'\n').collect();
    let plain = |line: &[u8]| line.strip_suffix(b"\n").unwrap_or(line).to_vec();
    let (mut after, mut at) = (Vec::with_capacity(before.len()), 0);
    for (from, lines) in hunks {
        // A hunk without a line of the old file comes after the line that it names.
        let is_inserted = lines.iter().all(|it| it.starts_with('+') || it.starts_with('\\'));
        let start = if is_inserted { *from } else { from.checked_sub(1)? };
        after.extend(old.get(at..start)?.concat());
        at = start;
        for line in lines {
            match line.as_bytes().split_first() {
                Some((b'+', text)) => after.extend([text, b"\n"].concat()),
                Some((b'\\', _)) => {
                    // The line before it lacks a line break, on either side.
                    if after.last() == Some(&b'\n') {
                        after.pop();
                    }
                }
                Some((b'-', text)) if plain(old.get(at)?) == text => at += 1,
                Some((b' ', text)) if plain(old.get(at)?) == text => {
                    after.extend(*old.get(at)?);
                    at += 1;
                }
                None if plain(old.get(at)?).is_empty() => {
                    after.extend(*old.get(at)?);
                    at += 1;
                }
                _ => return None,
            }
        }
    }
    after.extend(old.get(at..)?.concat());
    Some(after)
}
