//! A crew's files: their one spelling, and what they say, found out before a verb about them is submitted.
//!
//! Nothing outside the workspace is ever opened, and nothing but regular files is read: a pipe or device that somebody
//! claims is *unreadable*. Reading has its turns, a size and a time.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sha2::{Digest as _, Sha256};

use super::{Base, Provost};
use crate::base::limits::{CLAIMED_BYTES_MAX, CLAIMED_READ_MS_MAX};
use crate::base::{AgentId, RepoPath, normalised_path};
use crate::domain::command::{
    ClaimFile, CrewLeft, FileClaimed, FileLocked, FileReleased, LeaveCrew, LockFile, NoteTaken, ReleaseFile,
    TakeNote,
};
use crate::domain::view::ClaimsOf;
use crate::domain::{Answer, Content, Event, Note, Principal, Refusal};
use crate::store::TimelineQuery;
use crate::system::reading_without_waiting;

impl Provost {
    /// The one spelling of a path as an agent writes it, which may be absolute; `None` for one that leaves the workspace,
    /// or is the workspace itself.
    pub async fn file_of(&self, text: &str) -> Option<RepoPath> {
        let root = self.root().place().path().to_str()?;
        let plain = normalised_path(text);
        let relative = match plain.strip_prefix(root) {
            Some(rest) if plain.starts_with('/') => rest.strip_prefix('/')?,
            _ => text,
        };
        let path = RepoPath::parse(relative).ok().filter(|it| !it.is_root())?;
        self.code().spelling_inside(self.base(), &path).await.filter(|it| !it.is_root())
    }

    /// What files say now, all of them within the time that there is for one request.
    pub async fn contents(&self, files: Vec<RepoPath>) -> BTreeMap<RepoPath, Content> {
        let until = Instant::now() + Duration::from_millis(CLAIMED_READ_MS_MAX);
        let mut contents = BTreeMap::new();
        for file in files {
            if Instant::now() >= until {
                break;
            }
            let content = self.content(file.clone(), until).await;
            contents.insert(file, content);
        }
        contents
    }

    async fn content(&self, file: RepoPath, until: Instant) -> Content {
        let turns = Arc::clone(&self.0.claiming);
        let base = self.base().clone();
        let read = async move {
            // Nobody closes it. The turn is given back when the file was read, however long a disk takes.
            let turn = turns.acquire_owned().await.ok()?;
            let read = move || {
                let content = content_of(&base, &file, until);
                drop(turn);
                content
            };
            tokio::task::spawn_blocking(read).await.ok()
        };
        let read = tokio::time::timeout_at(until.into(), read).await;
        read.ok().flatten().unwrap_or(Content::Unreadable)
    }

    async fn content_now(&self, file: &RepoPath) -> Content {
        let found = self.contents(vec![file.clone()]).await;
        found.into_values().next().unwrap_or(Content::Unreadable)
    }

    /// Claims a file.
    ///
    /// # Errors
    /// A [`Refusal`]; then nothing has changed.
    pub async fn claim(
        &self,
        who: &Principal,
        file: RepoPath,
        assignment: Option<Box<str>>,
    ) -> Result<FileClaimed, Refusal> {
        let content = self.content_now(&file).await;
        done(self.submit(who, ClaimFile { file, content, assignment }).await?)
    }

    /// Gives a file back.
    ///
    /// # Errors
    /// A [`Refusal`]; then nothing has changed.
    pub async fn release_claim(&self, who: &Principal, file: RepoPath) -> Result<FileReleased, Refusal> {
        let content = self.content_now(&file).await;
        done(self.submit(who, ReleaseFile { file, content }).await?)
    }

    /// Locks a file for the lead, or gives it free.
    ///
    /// # Errors
    /// A [`Refusal`]; then nothing has changed.
    pub async fn lock_file(
        &self,
        who: &Principal,
        file: RepoPath,
        lock: bool,
    ) -> Result<FileLocked, Refusal> {
        let content = self.content_now(&file).await;
        done(self.submit(who, LockFile { file, content, lock }).await?)
    }

    /// Lets an agent leave the crew; its files are nobody's then.
    ///
    /// # Errors
    /// A [`Refusal`]; then nothing has changed.
    pub async fn leave_crew(&self, who: &Principal) -> Result<CrewLeft, Refusal> {
        let claims = self.view(ClaimsOf(who.agent().clone())).await?;
        let contents = self.contents(claims.iter().map(|it| it.file.clone()).collect()).await;
        done(self.submit(who, LeaveCrew { contents }).await?)
    }

    /// Puts a note on the timeline. `changed` and `settled` name the file of which it says so.
    ///
    /// # Errors
    /// A [`Refusal`]; then nothing has changed.
    pub async fn note(
        &self,
        who: &Principal,
        note: Note,
        changed: Option<RepoPath>,
        settled: Option<(RepoPath, Option<AgentId>)>,
    ) -> Result<NoteTaken, Refusal> {
        let changed = match changed {
            Some(file) => Some((file.clone(), self.content_now(&file).await)),
            None => None,
        };
        done(self.submit(who, TakeNote { note, changed, settles: settled }).await?)
    }

    /// A page of the timeline.
    ///
    /// # Errors
    /// [`Refusal::Busy`] or [`Refusal::Unavailable`].
    pub async fn timeline(&self, query: TimelineQuery) -> Result<Vec<Event>, Refusal> {
        self.read(move |reader| {
            let page = reader.timeline(&query)?;
            page.iter().filter_map(|it| it.event().transpose()).collect()
        })
        .await
    }
}

/// Policy has no say in what a crew does.
fn done<R>(answer: Answer<R>) -> Result<R, Refusal> {
    match answer {
        Answer::Done(reply) => Ok(reply),
        Answer::Parked(_) | Answer::Denied(_) => Err(Refusal::busy("what a crew does is not judged")),
    }
}

fn content_of(base: &Base, file: &RepoPath, until: Instant) -> Content {
    use std::io::ErrorKind::{NotADirectory, NotFound};
    let opened = base.root().handle().open_with(file.as_str(), &reading_without_waiting());
    let mut opened = match opened {
        Ok(opened) => opened.into_std(),
        Err(err) if matches!(err.kind(), NotFound | NotADirectory) => return Content::Missing,
        Err(_) => return Content::Unreadable,
    };
    match opened.metadata() {
        Ok(meta) if !meta.is_file() => return Content::Unreadable,
        Ok(meta) if meta.len() > CLAIMED_BYTES_MAX => return Content::TooLarge,
        Ok(_) => {}
        Err(_) => return Content::Unreadable,
    }
    let (mut hash, mut block, mut total) = (Sha256::new(), vec![0; 128 << 10], 0_u64);
    loop {
        match opened.read(&mut block) {
            Ok(0) => break,
            Ok(read) => {
                hash.update(&block[..read]);
                total += read as u64;
            }
            Err(_) => return Content::Unreadable,
        }
        // It may grow while it is read.
        if total > CLAIMED_BYTES_MAX {
            return Content::TooLarge;
        }
        if Instant::now() >= until {
            return Content::Unreadable;
        }
    }
    let digest: [u8; 32] = hash.finalize().into();
    let (first, _) = digest.split_first_chunk::<8>().expect("a digest has more bytes");
    Content::Sha(*first)
}
