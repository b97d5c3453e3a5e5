//! Watches files, and reports every change to the crew, no matter which program has made it. Agent Protocol, 3.7.
//!
//! A change of a file is reported when the file has been left alone for half a second.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use super::Daemon;
use provost_base::limits::SEEN_AT_ONCE_MAX;
use provost_base::{RepoPath, WatchPatterns};
use provost_config::AgentProtocolSettings;
use provost_domain::command::{SeeFiles, SeenFile};
use provost_domain::view::WholeCrew;
use provost_domain::{Content, Hold, Principal, Refusal, Seen};
use provost_index::{ChangeKind, SeenFileChange};
use provost_service::Provost;

/// How long a file has to be left alone, and the longest wait for that.
const QUIET: Duration = Duration::from_millis(500);
const WAIT_MAX: Duration = Duration::from_secs(5);

/// The patterns of files that are reported.
struct Tracked {
    tracked: Option<WatchPatterns>,
    ignored: Option<WatchPatterns>,
}

impl Tracked {
    /// Reads the patterns of the configuration. A list with an invalid glob counts as missing, and the log says so.
    fn of(settings: &AgentProtocolSettings) -> Self {
        let read = |name, globs: &[String]| match WatchPatterns::parse(globs) {
            Ok(patterns) => Some(patterns),
            Err(err) => {
                tracing::warn!(setting = name, %err, "no file is chosen by this list");
                None
            }
        };
        Self {
            tracked: read("agent_protocol.tracked_paths", &settings.tracked_paths),
            ignored: read("agent_protocol.ignored_paths", &settings.ignored_paths),
        }
    }

    fn has(&self, path: &RepoPath) -> bool {
        let is_in = |list: &Option<WatchPatterns>| list.as_ref().is_some_and(|it| it.matches(path.as_str()));
        is_in(&self.tracked) && !is_in(&self.ignored)
    }
}

impl Daemon {
    /// Begins to report changed files.
    pub(super) fn see_files(&mut self, settings: &AgentProtocolSettings) {
        let (provost, system) = (self.provost.clone(), self.system.clone());
        self.doors.spawn(tell(provost, system, Tracked::of(settings), self.stop.clone()));
        let (provost, stop) = (self.provost.clone(), self.stop.clone());
        self.doors.spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                kept = provost.keep_claimed() => kept.unwrap_or_else(|err| tracing::warn!(%err, "no versions of claimed files")),
            }
        });
    }
}

/// Reports new, changed and removed files until the daemon stops.
async fn tell(provost: Provost, system: Principal, tracked: Tracked, stop: CancellationToken) {
    let mut sights = provost.index().sights();
    let mut waiting: BTreeMap<RepoPath, ChangeKind> = BTreeMap::new();
    loop {
        let first = tokio::select! {
            () = stop.cancelled() => return,
            seen = sights.recv() => seen,
        };
        let latest = Instant::now() + WAIT_MAX;
        let mut next = Some(first);
        while let Some(seen) = next.take() {
            match seen {
                Ok(seen) => seen.iter().for_each(|it| add(&mut waiting, it)),
                Err(RecvError::Lagged(_)) => {
                    tracing::warn!("more files have changed at once than are reported")
                }
                Err(RecvError::Closed) => return,
            }
            next = timeout_at(latest.min(Instant::now() + QUIET), sights.recv()).await.ok();
        }
        say(&provost, &system, &tracked, std::mem::take(&mut waiting)).await;
    }
}

/// Combines several changes of a file within a short time into one.
fn add(waiting: &mut BTreeMap<RepoPath, ChangeKind>, sight: &SeenFileChange) {
    let before = waiting.get(&sight.path).copied();
    let way = match (before, sight.way) {
        (Some(ChangeKind::Created), ChangeKind::Deleted) => {
            waiting.remove(&sight.path);
            return;
        }
        (Some(ChangeKind::Created), _) => ChangeKind::Created,
        (Some(ChangeKind::Deleted), ChangeKind::Created) => ChangeKind::Changed,
        (_, way) => way,
    };
    waiting.insert(sight.path.clone(), way);
}

async fn say(
    provost: &Provost,
    system: &Principal,
    tracked: &Tracked,
    files: BTreeMap<RepoPath, ChangeKind>,
) {
    let Ok(crew) = provost.view(WholeCrew).await else { return };
    let held = crew.claims.iter().filter(|it| it.held != Hold::Free);
    let held: BTreeSet<&str> = held.map(|it| it.file.as_str()).collect();
    // The claim is on the file itself, or on a folder around it.
    let claimed = |path: &RepoPath| {
        let path = path.as_str();
        let mut ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
        ends.any(|end| held.contains(&path[..end]))
    };
    let wanted: Vec<_> = files.into_iter().filter(|(path, _)| tracked.has(path) || claimed(path)).collect();
    for some in wanted.chunks(SEEN_AT_ONCE_MAX) {
        let (kept, others): (Vec<_>, Vec<_>) =
            some.iter().map(|(path, _)| path.clone()).partition(|path| held.contains(path.as_str()));
        let mut contents = provost.contents_kept(kept).await;
        contents.extend(provost.contents(others).await);
        let seen = some.iter().filter_map(|(path, way)| became(path, *way, contents.get(path).copied()));
        if let Err(err) = tell_of(provost, system, &held, seen.collect()).await {
            tracing::warn!(%err, "changed files could not be told of");
        }
    }
}

/// A file, its change, and its present content.
type Became = (RepoPath, Seen, Option<Content>);

fn became(path: &RepoPath, way: ChangeKind, after: Option<Content>) -> Option<Became> {
    let (how, after) = match way {
        // The file still exists: it is ignored from now on, which is no change of the file.
        ChangeKind::Deleted if after.is_some_and(|it| it != Content::Missing) => return None,
        ChangeKind::Deleted => (Seen::Deleted, None),
        // The file is gone again by now; the next scan reports that.
        _ if after == Some(Content::Missing) => return None,
        ChangeKind::Created => (Seen::Created, after),
        ChangeKind::Changed => (Seen::Changed, after),
    };
    Some((path.clone(), how, after))
}

async fn tell_of(
    provost: &Provost,
    system: &Principal,
    held: &BTreeSet<&str>,
    all: Vec<Became>,
) -> Result<(), Refusal> {
    let mut files = Vec::with_capacity(all.len());
    for (file, how, after) in all {
        let versions = match held.contains(file.as_str()) {
            true => provost.versions_of_orphan(&file, after).await?,
            false => Vec::new(),
        };
        files.push(SeenFile { file, how, before: None, after, versions });
    }
    provost.submit(system, SeeFiles { files }).await.map(drop)
}
