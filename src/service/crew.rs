//! A crew's files: determines the one spelling and the content of a file before a verb about it is submitted.
//!
//! It opens no file outside of the workspace, and reads only regular files: a claimed pipe or device is *unreadable*.
//! Reads wait for a permit, and have a bound in size and time.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sha2::{Digest as _, Sha256};

use super::{Base, Provost};
use provost_base::limits::{CLAIMED_BYTES_MAX, CLAIMED_READ_MS_MAX, VERSION_BYTES_MAX};
use provost_base::{AgentId, Digest, Fence, RepoPath};
use provost_domain::command::{
    AgentReleased, ChangedFile, ClaimFile, ClaimFreed, CrewLeft, FileClaimed, FileLocked, FileReleased,
    FreeClaim, LeaveCrew, LockFile, NoteTaken, ReleaseAgent, ReleaseFile, TakeNote,
};
use provost_domain::view::{ClaimsOf, WholeCrew};
use provost_domain::{Content, Event, Hold, Note, Principal, Refusal, Version};
use provost_store::TimelineQuery;
use provost_system::{mode_of, reading_without_waiting};
use provost_workspace::versions::{Versions, first};

impl Provost {
    /// Returns the one spelling of a path that an agent has written, which may be absolute; `None` for a path that leaves the
    /// workspace or is the workspace itself, and for a name with a backslash that would mean another file.
    pub async fn file_of(&self, text: &str) -> Option<RepoPath> {
        let checkouts = self.checkouts(None);
        let text = Some(text).filter(|it| !checkouts.has_with_backslash(it))?;
        let path = RepoPath::parse(&checkouts.inside(text)).ok().filter(|it| !it.is_root())?;
        self.code().spelling_inside(self.base(), &path).await.filter(|it| !it.is_root())
    }

    /// Returns the present content of files; all of them are read within the time of one request.
    pub async fn contents(&self, files: Vec<RepoPath>) -> BTreeMap<RepoPath, Content> {
        self.contents_by(files, look).await
    }

    /// Returns the present content of files, and keeps their versions.
    pub async fn contents_kept(&self, files: Vec<RepoPath>) -> BTreeMap<RepoPath, Content> {
        self.contents_by(files, look_and_keep).await
    }

    async fn contents_by(&self, files: Vec<RepoPath>, look: FileReader) -> BTreeMap<RepoPath, Content> {
        let until = Instant::now() + Duration::from_millis(CLAIMED_READ_MS_MAX);
        let mut contents = BTreeMap::new();
        for file in files {
            if Instant::now() >= until {
                break;
            }
            let content = self.content(file.clone(), until, look).await;
            contents.insert(file, content);
        }
        contents
    }

    async fn content(&self, file: RepoPath, until: Instant, look: FileReader) -> Content {
        let (base, versions) = (self.base().clone(), Arc::clone(&self.0.versions));
        let read = self.in_turn(move || look(&base, &versions, &file, until));
        let read = tokio::time::timeout_at(until.into(), read).await;
        read.ok().flatten().unwrap_or(Content::Unreadable)
    }

    /// Does blocking work with files once it has a permit; `None` if the daemon stops meanwhile.
    pub(super) async fn in_turn<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        // The semaphore is never closed. The work itself gives the permit back at its end, however long a disk
        // takes.
        let turn = Arc::clone(&self.0.claiming).acquire_owned().await.ok()?;
        let work = move || {
            let done = work();
            drop(turn);
            done
        };
        tokio::task::spawn_blocking(work).await.ok()
    }

    async fn content_now(&self, file: &RepoPath) -> Content {
        self.contents(vec![file.clone()]).await.into_values().next().unwrap_or(Content::Unreadable)
    }

    async fn content_kept(&self, file: &RepoPath) -> Content {
        self.contents_kept(vec![file.clone()]).await.into_values().next().unwrap_or(Content::Unreadable)
    }

    /// Keeps versions of all claimed files without one, since an earlier daemon may have
    /// ended before it kept them.
    ///
    /// # Errors
    /// [`Refusal::Busy`] or [`Refusal::Unavailable`].
    pub async fn keep_claimed(&self) -> Result<(), Refusal> {
        let crew = self.view(WholeCrew).await?;
        let held =
            crew.claims.iter().filter(|it| matches!(it.held, Hold::Claimed { .. } | Hold::Locked { .. }));
        for claim in held.filter(|it| !self.0.versions.has(&it.file, it.content)) {
            self.content_kept(&claim.file).await;
        }
        Ok(())
    }

    /// Claims a file for the caller. The file's present content becomes the version to go back to.
    ///
    /// # Errors
    /// A [`Refusal`]; then nothing has changed.
    pub async fn claim(
        &self,
        who: &Principal,
        file: RepoPath,
        assignment: Option<Box<str>>,
    ) -> Result<FileClaimed, Refusal> {
        let content = self.content_kept(&file).await;
        self.submit(who, ClaimFile { file, content, assignment }).await
    }

    /// Releases the caller's claim.
    ///
    /// # Errors
    /// A [`Refusal`]; then nothing has changed.
    pub async fn release_claim(&self, who: &Principal, file: RepoPath) -> Result<FileReleased, Refusal> {
        let content = self.content_now(&file).await;
        self.submit(who, ReleaseFile { file, content }).await
    }

    /// Frees a file that any agent has claimed; if a fence is given, only the grant with that number.
    ///
    /// # Errors
    /// A [`Refusal`]; then nothing has changed.
    pub async fn free_claim(
        &self,
        who: &Principal,
        file: RepoPath,
        fence: Option<Fence>,
    ) -> Result<ClaimFreed, Refusal> {
        let content = self.content_now(&file).await;
        self.submit(who, FreeClaim { file, content, fence }).await
    }

    /// Takes from an agent all that it holds, waits for and has announced.
    ///
    /// # Errors
    /// A [`Refusal`]; then nothing has changed.
    pub async fn release_agent(&self, who: &Principal, agent: AgentId) -> Result<AgentReleased, Refusal> {
        let claims = self.view(ClaimsOf(agent.clone())).await?;
        let contents = self.contents(claims.iter().map(|it| it.file.clone()).collect()).await;
        self.submit(who, ReleaseAgent { agent, contents }).await
    }

    /// Locks a file for the lead, or unlocks it.
    ///
    /// # Errors
    /// A [`Refusal`]; then nothing has changed.
    pub async fn lock_file(
        &self,
        who: &Principal,
        file: RepoPath,
        lock: bool,
    ) -> Result<FileLocked, Refusal> {
        let content = self.content_kept(&file).await;
        self.submit(who, LockFile { file, content, lock }).await
    }

    /// Removes the caller from the crew, which frees its files. With `only_if_idle`, the caller stays if it has any.
    ///
    /// # Errors
    /// A [`Refusal`]; then nothing has changed.
    pub async fn leave_crew(&self, who: &Principal, only_if_idle: bool) -> Result<CrewLeft, Refusal> {
        let claims = self.view(ClaimsOf(who.agent().clone())).await?;
        let contents = self.contents(claims.iter().map(|it| it.file.clone()).collect()).await;
        self.submit(who, LeaveCrew { only_if_idle, contents }).await
    }

    /// Puts a note on the timeline. `changed` is the file that the caller has changed, according to the note.
    ///
    /// # Errors
    /// A [`Refusal`]; then nothing has changed.
    pub async fn note(
        &self,
        who: &Principal,
        note: Note,
        changed: Option<RepoPath>,
    ) -> Result<NoteTaken, Refusal> {
        let changed = match changed {
            Some(file) => {
                let content = self.content_kept(&file).await;
                let versions = self.versions_ahead(&file, Some(who.agent()), content).await?;
                Some(ChangedFile { file, content, versions })
            }
            None => None,
        };
        self.submit(who, TakeNote { note, changed, settles: None }).await
    }

    /// Writes the versions of a changed file to the folder for people, if the file's owner is absent.
    ///
    /// # Errors
    /// [`Refusal::Busy`] or [`Refusal::Unavailable`].
    pub async fn versions_of_orphan(
        &self,
        file: &RepoPath,
        after: Option<Content>,
    ) -> Result<Vec<Version>, Refusal> {
        self.versions_ahead(file, None, after.unwrap_or(Content::Missing)).await
    }

    /// Returns a page of the timeline.
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

/// The way in which a file is read.
type FileReader = fn(&Base, &Versions, &RepoPath, Instant) -> Content;

fn look(base: &Base, _: &Versions, file: &RepoPath, until: Instant) -> Content {
    content_of(base, file, until, 0).0
}

/// Reads the content of a file, and keeps it if it is not too large.
fn look_and_keep(base: &Base, versions: &Versions, file: &RepoPath, until: Instant) -> Content {
    let (content, read) = content_of(base, file, until, VERSION_BYTES_MAX);
    if let Some((bytes, mode)) = read {
        versions.keep(file, content, &bytes, mode);
    }
    content
}

/// The whole content of a file, and its mode.
type Whole = (Vec<u8>, Option<u32>);

/// Returns the content of a file, with its bytes if there are at most `most`.
fn content_of(base: &Base, file: &RepoPath, until: Instant, most: usize) -> (Content, Option<Whole>) {
    use std::io::ErrorKind::{NotADirectory, NotFound};
    let opened = base.root().handle().open_with(file.as_str(), &reading_without_waiting());
    let mut opened = match opened {
        Ok(opened) => opened.into_std(),
        Err(err) if matches!(err.kind(), NotFound | NotADirectory) => return (Content::Missing, None),
        Err(_) => return (Content::Unreadable, None),
    };
    match opened.metadata() {
        Ok(meta) if !meta.is_file() => return (Content::Unreadable, None),
        Ok(meta) if meta.len() > CLAIMED_BYTES_MAX => return (Content::TooLarge, None),
        Ok(_) => {}
        Err(_) => return (Content::Unreadable, None),
    }
    let (mut hash, mut block, mut total) = (Sha256::new(), vec![0; 128 << 10], 0_u64);
    let mut whole = Some(Vec::new());
    loop {
        let read = match opened.read(&mut block) {
            Ok(0) => break,
            Ok(read) => &block[..read],
            Err(_) => return (Content::Unreadable, None),
        };
        hash.update(read);
        total += read.len() as u64;
        whole = whole.filter(|it| it.len() + read.len() <= most);
        whole.iter_mut().for_each(|it| it.extend_from_slice(read));
        // The file may grow during the read.
        if total > CLAIMED_BYTES_MAX {
            return (Content::TooLarge, None);
        }
        if Instant::now() >= until {
            return (Content::Unreadable, None);
        }
    }
    let digest = Digest::from_bytes(hash.finalize().into());
    let mode = mode_of(&opened).unwrap_or_default();
    (Content::Sha(first(&digest)), whole.filter(|_| most > 0).map(|it| (it, mode)))
}
