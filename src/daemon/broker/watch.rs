//! Files that agents change, seen in their work trees, whatever they say about it.
//!
//! Every work tree whose branch is a known agent's is looked at, and every one that `/watch` names. git is asked in a way
//! that takes no lock, writes no index and starts no program; it is asked often where something happens, and seldom where
//! nothing does. What it says is published in the agent's name when it changes.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::trees;
use crate::auth::role;
use crate::base::limits::{GIT_ANSWER_BYTES_MAX, GIT_ANSWER_MS_MAX, POST_FILES_MAX, WIT_WORKTREES_MAX};
use crate::base::{AgentId, Slug};
use crate::config::Places;
use crate::domain::command::Publish;
use crate::domain::post::{Post, Source, slug};
use crate::domain::view::SeenFiles;
use crate::service::Provost;

/// How often work trees are looked at in which something happens.
const OFTEN: Duration = Duration::from_secs(2);

/// And the others.
const SELDOM: Duration = Duration::from_secs(10);

/// How long a work tree is looked at often after something has changed in it.
const LIVELY_FOR: Duration = Duration::from_secs(120);

/// Work trees that somebody has named, with who works there.
#[derive(Clone, Default)]
pub(super) struct Named(Arc<Mutex<BTreeMap<PathBuf, AgentId>>>);

impl Named {
    pub(super) fn put(&self, agent: AgentId, path: &Path) {
        let mut named = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if named.len() < WIT_WORKTREES_MAX || named.contains_key(path) {
            named.insert(path.to_owned(), agent);
        }
    }

    fn all(&self) -> BTreeMap<PathBuf, AgentId> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What is known of one work tree.
struct Watched {
    agent: AgentId,
    files: Option<Vec<String>>,
    looked: Instant,
    changed: Instant,
}

/// Looks at the work trees until the daemon stops.
pub(super) async fn watch(provost: Provost, places: Places, named: Named, stop: CancellationToken) {
    let mut known: BTreeMap<PathBuf, Watched> = BTreeMap::new();
    let mut look = tokio::time::interval(OFTEN);
    look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = look.tick() => {}
        }
        let wanted = wanted(&provost, &places, &named).await;
        known.retain(|path, it| wanted.get(path) == Some(&it.agent));
        for (path, agent) in wanted {
            let now = Instant::now();
            let lively = known.get(&path).is_none_or(|it| now.duration_since(it.changed) < LIVELY_FOR);
            let patience = if lively { Duration::ZERO } else { SELDOM };
            if known.get(&path).is_some_and(|it| now.duration_since(it.looked) < patience) {
                continue;
            }
            let at = path.clone();
            let Ok(Ok(files)) = tokio::task::spawn_blocking(move || changed_files(&at)).await else {
                continue;
            };
            let before = known.get(&path).and_then(|it| it.files.clone());
            let is_new = is_news(&provost, &agent, before.as_ref(), &files).await;
            if is_new && tell(&provost, &agent, &files).await.is_err() {
                // It is told with the next look.
                continue;
            }
            let changed = match known.get(&path) {
                Some(it) if !is_new => it.changed,
                _ => now,
            };
            known.insert(path, Watched { agent, files: Some(files), looked: now, changed });
        }
    }
}

/// Work trees to look at: those of agents that are known.
async fn wanted(provost: &Provost, places: &Places, named: &Named) -> BTreeMap<PathBuf, AgentId> {
    let at = places.clone();
    let all = tokio::task::spawn_blocking(move || trees(&at)).await.unwrap_or_default();
    let named = named.all();
    let letterboxes = provost.engine().letterboxes();
    let mut wanted = BTreeMap::new();
    for (path, branch) in all {
        let by_branch = || {
            let name: Slug = slug(&branch?);
            letterboxes.has(&name).then(|| AgentId::parse(name.as_str()).ok()).flatten()
        };
        if let Some(agent) = named.get(&path).cloned().or_else(by_branch) {
            wanted.insert(path, agent);
        }
    }
    wanted
}

/// Whether what was found is to be told. A work tree that is clean when it is first looked at is no news, unless it was
/// not when the daemon last looked.
async fn is_news(
    provost: &Provost,
    agent: &AgentId,
    before: Option<&Vec<String>>,
    files: &Vec<String>,
) -> bool {
    match before {
        Some(before) => before != files,
        None if !files.is_empty() => true,
        None => provost.view(SeenFiles(slug(agent.as_str()))).await.unwrap_or(false),
    }
}

async fn tell(provost: &Provost, agent: &AgentId, files: &[String]) -> Result<(), crate::domain::Refusal> {
    let post = Post::Status {
        agent: agent.clone(),
        status: "working".into(),
        files: files.iter().map(|it| it.as_str().into()).collect(),
        message: None,
        cli: None,
        phase: None,
        detail: None,
    };
    provost.submit(&role::host(), Publish { post, source: Source::Watcher }).await.map(drop)
}

/// What git says is changed, untracked files one by one; by their names and sorted.
fn changed_files(top: &Path) -> Result<Vec<String>, String> {
    let mut git = Command::new("git");
    git.args(["--no-pager", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"])
        .args([
            "status",
            "--porcelain=v1",
            "-z",
            "--untracked-files=all",
            "--no-renames",
            "--ignore-submodules=all",
        ])
        .current_dir(top)
        .env_clear();
    let kept = ["PATH", "HOME", "XDG_CONFIG_HOME"].map(OsString::from);
    git.envs(kept.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    git.env("LC_ALL", "C").env("GIT_TERMINAL_PROMPT", "0").env("GIT_OPTIONAL_LOCKS", "0");
    git.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = git.spawn().map_err(|err| err.to_string())?;
    let (tell, heard) = std::sync::mpsc::channel();
    if let Some(stdout) = child.stdout.take() {
        // Ends when git does, at the latest when it is killed.
        std::thread::spawn(move || {
            let mut answer = Vec::new();
            let read = stdout.take(GIT_ANSWER_BYTES_MAX).read_to_end(&mut answer);
            // Who does not listen any more has given up.
            let _unheard = tell.send(read.map(|_| answer));
        });
    }
    let answer = heard.recv_timeout(Duration::from_millis(GIT_ANSWER_MS_MAX));
    if answer.is_err() {
        // It has ended by itself if this fails.
        let _ended = child.kill();
    }
    let status = child.wait().map_err(|err| err.to_string())?;
    let answer = answer.map_err(|err| err.to_string())?.map_err(|err| err.to_string())?;
    // Cut off at the bound, git is told that nobody reads on; what it has said until then counts.
    if !status.success() && answer.len() as u64 != GIT_ANSWER_BYTES_MAX {
        return Err(format!("git status ended with {status}"));
    }
    Ok(names(&answer))
}

/// The names in git's answer: two letters, a blank, a name, and a zero.
fn names(answer: &[u8]) -> Vec<String> {
    let entries = answer.split(|byte| *byte == 0).filter_map(|entry| entry.get(3..));
    let mut names: Vec<String> = entries.map(|name| String::from_utf8_lossy(name).into_owned()).collect();
    names.sort();
    names.dedup();
    names.truncate(POST_FILES_MAX);
    names
}
