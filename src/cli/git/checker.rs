//! Checks files against contracts and locks: selects the files that matter, reads them, and asks the daemon.

use std::collections::BTreeSet;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::changes::{Blobs, Change, changes};
use super::merge::Merge;
use crate::{CliError, RepoContext, out};
use provost_api::wire;
use provost_base::limits::{FILES_AT_ONCE_BYTES, FRAME_LEN_MAX, SOURCE_BYTES_MAX, STAGED_FILES_MAX};
use provost_client::Client;

/// Most bytes of paths in one request; escapes may double them.
const PATHS_AT_ONCE_BYTES: usize = FRAME_LEN_MAX / 4;

/// Checks files with the daemon.
pub(crate) struct Checker<'a> {
    here: &'a RepoContext,
    client: Client,
}

/// Files with contracts, and files with locks of others.
#[derive(Default)]
struct Concerned {
    contracts: BTreeSet<String>,
    locks: BTreeSet<String>,
}

impl<'a> Checker<'a> {
    pub(crate) fn new(here: &'a RepoContext, client: Client) -> Self {
        Self { here, client }
    }

    /// Checks the staged changes against contracts.
    pub(crate) async fn staged(&self) -> Result<wire::Checked, CliError> {
        Ok(self.look_at(&["--cached"], false).await?.0)
    }

    /// Checks files on disk against contracts.
    pub(crate) async fn on_disk(&self, files: &[PathBuf]) -> Result<wire::Checked, CliError> {
        let mut asked = Contracts::default();
        for file in files {
            let (path, at) = (self.here.path(file)?, self.here.cwd.join(file));
            match std::fs::read(&at) {
                Ok(bytes) => asked.file(self, path, None, &bytes).await?,
                Err(err) if err.kind() == std::io::ErrorKind::NotFound => asked.deleted(path),
                Err(err) => {
                    return Err(CliError::of(format!("{} cannot be read", at.display())).because(err));
                }
            }
        }
        asked.end(self).await
    }

    /// Checks the changes between two trees against contracts and, if wanted, locks.
    pub(super) async fn look_at(
        &self,
        between: &[&str],
        locks: bool,
    ) -> Result<(wire::Checked, Vec<wire::Blocked>), CliError> {
        let mut changes = changes(between).await?;
        let merge = if between == ["--cached"] { Merge::read().await? } else { Merge::default() };
        merge.leave_own(&mut changes).await?;
        let concerned = self.concerned(&changes).await?;
        let touched = !concerned.contracts.is_empty() || (locks && !concerned.locks.is_empty());
        if !touched {
            return Ok(Default::default());
        }
        let mut blobs = Blobs::open()?;
        let mut checked = self.contracts(&changes, &concerned, &mut blobs).await?;
        if !checked.violations.is_empty() && merge.is_one() {
            self.without_parents_violations(&mut checked, &changes, &merge, &mut blobs).await?;
        }
        let blocked =
            if locks { self.locks(&changes, &concerned, &merge, &mut blobs).await? } else { Vec::new() };
        Ok((checked, blocked))
    }

    /// Finds the files that others have an interest in. Most commits touch none, and then no content is read at all.
    async fn concerned(&self, changes: &[Change]) -> Result<Concerned, CliError> {
        let mut all = changes.iter().flat_map(|it| it.path.iter().chain(&it.from)).cloned().peekable();
        let mut found = Concerned::default();
        while all.peek().is_some() {
            let (mut paths, mut bytes) = (Vec::new(), 0);
            while let Some(path) = all.next_if(|it| {
                paths.is_empty() || (paths.len() < STAGED_FILES_MAX && bytes + it.len() < PATHS_AT_ONCE_BYTES)
            }) {
                bytes += path.len() + 4;
                paths.push(path);
            }
            let said = self.client.concerned(&wire::Paths { paths }).await?;
            found.contracts.extend(said.contracts);
            found.locks.extend(said.locks);
        }
        Ok(found)
    }

    async fn contracts(
        &self,
        changes: &[Change],
        concerned: &Concerned,
        blobs: &mut Blobs,
    ) -> Result<wire::Checked, CliError> {
        let mut asked = Contracts::default();
        let binds =
            |path: &Option<String>| path.as_ref().filter(|it| concerned.contracts.contains(*it)).cloned();
        for change in changes {
            let (path, from) = (binds(&change.path), binds(&change.from));
            match (&change.new, &change.path) {
                _ if path.is_none() && from.is_none() => {}
                (Some(new), Some(at)) => {
                    let content = blobs.get(new).await?;
                    asked.file(self, at.clone(), from, &content).await?;
                }
                // The old file is gone: it was deleted, is no file any more, or has a name that Provost cannot use.
                _ => path.into_iter().chain(from).for_each(|it| asked.deleted(it)),
            }
        }
        asked.end(self).await
    }

    /// Keeps, in a merge, only the contracts that its committer breaks: a violation with the same signature in a
    /// parent, or with the symbol missing there too, was committed there before.
    async fn without_parents_violations(
        &self,
        checked: &mut wire::Checked,
        changes: &[Change],
        merge: &Merge,
        blobs: &mut Blobs,
    ) -> Result<(), CliError> {
        let is_broken = |change: &&Change| {
            let names = [&change.path, &change.from];
            checked.violations.iter().any(|it| names.into_iter().flatten().any(|name| *name == it.file))
        };
        let names = changes.iter().filter(is_broken).flat_map(|it| it.path.iter().chain(&it.from));
        let names: BTreeSet<&str> = names.map(String::as_str).collect();
        for parent in merge.parents() {
            let there = parent.blobs(&names).await?;
            let mut asked = Contracts::default();
            for name in &names {
                match there.get(*name) {
                    Some(id) => {
                        let content = blobs.get(id).await?;
                        asked.file(self, (*name).to_owned(), None, &content).await?;
                    }
                    None => asked.deleted((*name).to_owned()),
                }
            }
            let theirs = asked.end(self).await?.violations;
            checked.violations.retain(|it| !theirs.iter().any(|other| is_the_same(it, other)));
        }
        Ok(())
    }

    async fn locks(
        &self,
        changes: &[Change],
        concerned: &Concerned,
        merge: &Merge,
        blobs: &mut Blobs,
    ) -> Result<Vec<wire::Blocked>, CliError> {
        let mut blocked = Vec::new();
        let is_locked = |path: &&String| concerned.locks.contains(*path);
        for change in changes {
            // A renamed file disappears in one place and appears in another.
            let (here, there) = match &change.from {
                Some(from) => (Some(from), change.path.as_ref().map(|path| (path, None))),
                None => (None, change.path.as_ref().map(|path| (path, change.old.as_deref()))),
            };
            // A lock moves with a rename, from the old name to the new one, so it is asked for in that order.
            let is_concerned =
                here.is_some_and(|path| is_locked(&path)) || there.is_some_and(|(path, _)| is_locked(&path));
            if let Some(path) = here.filter(|_| is_concerned) {
                blocked.extend(self.edit(path, (change.old.as_deref(), None), merge, blobs).await?);
            }
            if let Some((path, old)) = there.filter(|_| is_concerned) {
                blocked.extend(self.edit(path, (old, change.new.as_deref()), merge, blobs).await?);
            }
        }
        Ok(blocked)
    }

    /// Returns the locks of others that an edit touches; in a merge, only for content that no parent has.
    async fn edit(
        &self,
        path: &str,
        (old, new): (Option<&str>, Option<&str>),
        merge: &Merge,
        blobs: &mut Blobs,
    ) -> Result<Vec<wire::Blocked>, CliError> {
        let mut blocked = self.edit_from(path, (old, new), blobs).await?;
        for parent in merge.others() {
            if blocked.is_empty() {
                break;
            }
            let there = parent.blobs(&BTreeSet::from([path])).await?;
            let theirs = self.edit_from(path, (there.get(path).map(String::as_str), new), blobs).await?;
            let same = |a: &wire::Blocked, b: &wire::Blocked| {
                let fences = |it: &wire::Blocked| {
                    (it.lock.as_ref().map(|it| it.fence), it.claim.as_ref().map(|it| it.fence))
                };
                fences(a) == fences(b)
            };
            blocked.retain(|it| theirs.iter().any(|other| same(it, other)));
        }
        Ok(blocked)
    }

    async fn edit_from(
        &self,
        path: &str,
        (old, new): (Option<&str>, Option<&str>),
        blobs: &mut Blobs,
    ) -> Result<Vec<wire::Blocked>, CliError> {
        let mut contents = Vec::new();
        for id in [old, new] {
            contents.push(match id {
                Some(id) => blobs.get(id).await?,
                None => Vec::new(),
            });
        }
        let mut edit = wire::Edit { path: path.to_owned(), ..wire::Edit::default() };
        if contents.iter().all(|it| it.len() <= SOURCE_BYTES_MAX) {
            edit.after = contents.pop().map(|it| STANDARD.encode(it));
            edit.before = contents.pop().map(|it| STANDARD.encode(it));
        }
        let asked = wire::Guard { edits: vec![edit], worktree: self.here.linked_worktree() };
        Ok(self.client.guard(&asked).await?.blocked)
    }
}

/// Checks whether two files break a contract in the same way. For content that cannot be read, this is not known.
fn is_the_same(one: &wire::Violation, other: &wire::Violation) -> bool {
    let gone = |it: &wire::Violation| matches!(it.fault.as_str(), "missing" | "deleted");
    let changed = |it: &wire::Violation| it.fault == "changed";
    one.contract == other.contract
        && ((gone(one) && gone(other)) || (changed(one) && changed(other) && one.actual == other.actual))
}

/// Requests about contracts, a few megabytes at a time.
#[derive(Default)]
struct Contracts {
    next: wire::CheckContracts,
    bytes: usize,
    so_far: wire::Checked,
}

impl Contracts {
    async fn file(
        &mut self,
        checker: &Checker<'_>,
        path: String,
        from: Option<String>,
        content: &[u8],
    ) -> Result<(), CliError> {
        let content = content.get(..=SOURCE_BYTES_MAX).unwrap_or(content);
        if !self.next.files.is_empty() && self.bytes + content.len() > FILES_AT_ONCE_BYTES {
            self.ask(checker).await?;
        }
        self.bytes += content.len() + path.len();
        self.next.files.push(wire::StagedFile { path, content: STANDARD.encode(content), from });
        Ok(())
    }

    fn deleted(&mut self, path: String) {
        self.next.deleted.push(path);
    }

    async fn ask(&mut self, checker: &Checker<'_>) -> Result<(), CliError> {
        let mut request = std::mem::take(&mut self.next);
        self.bytes = 0;
        request.worktree = checker.here.linked_worktree();
        let said = checker.client.check_contracts(&request).await?;
        self.so_far.violations.extend(said.violations);
        self.so_far.compared += said.compared;
        Ok(())
    }

    async fn end(mut self, checker: &Checker<'_>) -> Result<wire::Checked, CliError> {
        if !self.next.files.is_empty() || !self.next.deleted.is_empty() {
            self.ask(checker).await?;
        }
        Ok(self.so_far)
    }
}

/// Prints violations on standard error, as wit's hook does.
pub(crate) fn say_violations(all: &[wire::Violation]) {
    for it in all {
        let place = format!("{}, between {}, in {}", it.contract, it.between.join(" and "), it.file);
        out::note(format!("Contract violation: {}", out::name(&it.symbol, 800)));
        out::note(format!("  expected: {}", out::one_line(&it.expected, 800)));
        out::note(format!("  actual:   {}", out::one_line(&it.actual, 800)));
        out::note(format!("  contract: {}", out::one_line(&place, 800)));
    }
}
