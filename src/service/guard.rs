//! Whether an agent may write somewhere, asked where the write happens.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use super::Provost;
use super::code::{READ_TIME_MAX, Source};
use crate::base::{AgentId, RepoPath};
use crate::domain::view::Named;
use crate::domain::{Lock, Refusal};
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

/// A lock of somebody else's on what would be written.
#[derive(Clone, Debug)]
pub struct Blocked {
    /// The lock, with its holder's name for people.
    pub lock: Named<Arc<Lock>>,
    /// Whether it is known that the locked symbol changes; otherwise only its file does.
    pub touched: bool,
}

impl Provost {
    /// Locks of others that stand in the way of some edits, in the order of the edits.
    ///
    /// # Errors
    /// [`Refusal::Busy`] or [`Refusal::Unavailable`]. Whoever asks has to take that for a no.
    pub async fn guard(&self, agent: &AgentId, edits: Vec<Edit>) -> Result<Vec<Blocked>, Refusal> {
        let mut files = Vec::with_capacity(edits.len());
        for edit in &edits {
            files.push(self.code().spelling(self.base(), &edit.path).await);
        }
        let (locks, _) = self.locks(None, files.clone()).await?;
        let foreign: Vec<_> = locks.into_iter().filter(|it| it.it.holder != *agent).collect();
        let until = Instant::now() + READ_TIME_MAX;
        let mut blocked = Vec::new();
        for (edit, file) in edits.into_iter().zip(files) {
            let here: Vec<_> = foreign.iter().filter(|it| *it.it.at.file() == file).cloned().collect();
            if here.is_empty() {
                continue;
            }
            let Some((before, after)) = edit.change else {
                blocked.extend(here.into_iter().map(|lock| Blocked { lock, touched: false }));
                continue;
            };
            let old = self.code().read_content(file.clone(), before.clone(), until).await;
            let new = self.code().read_content(file, after.clone(), until).await;
            for lock in here {
                if touches(&lock.it, (&old, &before), (&new, &after)) {
                    blocked.push(Blocked { lock, touched: true });
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
