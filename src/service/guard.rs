//! Whether an agent may write somewhere, asked where the write happens.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use super::Provost;
use super::code::{READ_TIME_MAX, Source};
use crate::base::{AgentId, RepoPath};
use crate::domain::view::{ClaimsOn, Named};
use crate::domain::{Claim, Lock, Refusal};
use crate::syntax::Reading;

/// A file's content before and after an edit.
pub type BeforeAndAfter = (Arc<[u8]>, Arc<[u8]>);

/// A file that somebody is about to write, or to commit.
#[derive(Clone, Debug)]
pub struct Edit {
    /// Which.
    pub path: RepoPath,
    /// What it contains before and after, where that is known; otherwise every lock in the file counts.
    pub change: Option<BeforeAndAfter>,
}

/// What somebody else has of what would be written.
#[derive(Clone, Debug)]
pub struct Blocked {
    /// What.
    pub by: Obstacle,
    /// Whether it is known that what is theirs changes; of a lock, otherwise only its file does.
    pub touched: bool,
}

/// What can stand in the way of writing.
#[derive(Clone, Debug)]
pub enum Obstacle {
    /// A lock, with its holder's name for people.
    Lock(Named<Arc<Lock>>),
    /// A claim on the file.
    Claim(Arc<Claim>),
}

impl Provost {
    /// Claims and locks of others that stand in the way of some edits, in the order of the edits.
    ///
    /// # Errors
    /// [`Refusal::Busy`] or [`Refusal::Unavailable`]. Whoever asks has to take that for a no.
    pub async fn guard(&self, agent: &AgentId, edits: Vec<Edit>) -> Result<Vec<Blocked>, Refusal> {
        let mut files = Vec::with_capacity(edits.len());
        for edit in &edits {
            files.push(self.code().spelling(self.base(), &edit.path).await);
        }
        let claims = self.view(ClaimsOn { files: files.clone(), others_than: agent.clone() }).await?;
        let (locks, _) = self.locks(None, files.clone()).await?;
        let foreign: Vec<_> = locks.into_iter().filter(|it| it.it.holder != *agent).collect();
        let until = Instant::now() + READ_TIME_MAX;
        let mut blocked = Vec::new();
        for ((edit, file), claim) in edits.into_iter().zip(files).zip(claims) {
            let changed = edit.change.as_ref().is_none_or(|(before, after)| before != after);
            let touched = edit.change.is_some();
            if let Some(claim) = claim.filter(|_| changed) {
                blocked.push(Blocked { by: Obstacle::Claim(claim), touched });
            }
            let here: Vec<_> = foreign.iter().filter(|it| *it.it.at.file() == file).cloned().collect();
            if here.is_empty() {
                continue;
            }
            let Some((before, after)) = edit.change else {
                let all = here.into_iter().map(Obstacle::Lock);
                blocked.extend(all.map(|by| Blocked { by, touched: false }));
                continue;
            };
            let old = self.code().read_content(file.clone(), before.clone(), until).await;
            let new = self.code().read_content(file, after.clone(), until).await;
            for lock in here {
                if touches(&lock.it, (&old, &before), (&new, &after)) {
                    blocked.push(Blocked { by: Obstacle::Lock(lock), touched: true });
                }
            }
        }
        Ok(blocked)
    }
}

/// Whether an edit changes what is locked. What cannot be read as code is changed as a whole.
fn touches(lock: &Lock, (old, before): (&Source, &[u8]), (new, after): (&Source, &[u8])) -> bool {
    if before == after {
        return false;
    }
    let (Some(old), Some(new)) = (old.reading(), new.reading()) else { return true };
    let name = lock.at.symbol();
    if name.is_empty() || !old.is_whole() || !new.is_whole() {
        return true;
    }
    lock.all_names().any(|name| text_of(old, before, name) != text_of(new, after, name))
}

/// Everything that is defined under a name, to the letter.
fn text_of<'a>(reading: &Reading, bytes: &'a [u8], name: &str) -> Vec<&'a [u8]> {
    let part = |range: Range<u32>| bytes.get(range.start as usize..range.end as usize).unwrap_or_default();
    reading.ranges(name).into_iter().map(part).collect()
}
