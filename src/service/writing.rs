//! Leases that agents take by writing: what a write touches is worked out here, and granted by the core in one step.

use std::path::{Path, PathBuf};

use super::Provost;
use super::code::Base;
use super::guard::{Edit, Guarded, tree_of};
use provost_base::limits::{GIT_REFS_BYTES_MAX, HOLD_LOOKS_MAX, PATH_LEN_MAX};
use provost_base::{RepoPath, SymbolPath};
use provost_domain::command::{HoldPlaces, PlaceToHold, PlacesHeld};
use provost_domain::view::AutoNow;
use provost_domain::{Auto, Principal, ProcessMark, Refusal, Writer};
use provost_system as system;

/// What a host is about to write.
#[derive(Clone, Debug)]
pub struct WriteOrder {
    /// The files.
    pub edits: Vec<Edit>,
    /// The work tree in which it writes; the daemon's own where that is not known.
    pub base: Option<Base>,
    /// The process of the host.
    pub process: Option<ProcessMark>,
    /// The subagent of the session that writes.
    pub part: Option<Box<str>>,
}

impl Provost {
    /// Takes leases on what a write touches, or renews them. Where another agent has some of it nothing is taken, and the
    /// answer says who.
    ///
    /// # Errors
    /// A [`Refusal`]; then nothing has changed. The caller has to treat that as a no.
    pub async fn hold(&self, who: &Principal, order: WriteOrder) -> Result<Guarded, Refusal> {
        let base = order.base.as_ref().unwrap_or(self.base());
        let top = base.root().place().path().to_owned();
        let commit = tokio::task::spawn_blocking(move || commit_of(&top)).await.ok().flatten();
        for _ in 0..HOLD_LOOKS_MAX {
            let auto = self.view(AutoNow).await?;
            let writer = Writer {
                agent: who.agent().clone(),
                part: order.part.clone(),
                parts_differ: auto.subagents_differ,
            };
            let looked = self.look_at(&writer, base, &order.edits, auto.mode != Auto::Off).await?;
            if !looked.guarded.blocked.is_empty() || looked.touched.is_empty() || auto.mode == Auto::Off {
                return Ok(looked.guarded);
            }
            let place = |(file, symbol, names): (RepoPath, Box<str>, _)| {
                SymbolPath::of(file, &symbol).ok().map(|at| PlaceToHold { at, names })
            };
            let mut places: Vec<PlaceToHold> = looked.touched.into_iter().filter_map(place).collect();
            places.sort_by(|a, b| a.at.cmp(&b.at));
            places.dedup_by(|a, b| a.at == b.at);
            let verb = HoldPlaces {
                places,
                files: looked.files,
                seen: looked.seen,
                tree: tree_of(base),
                commit: commit.clone(),
                part: order.part.clone(),
                process: order.process,
            };
            match self.submit(who, verb).await? {
                PlacesHeld::Held(_) => return Ok(looked.guarded),
                PlacesHeld::Overtaken => {}
            }
        }
        Err(Refusal::busy("others take locks in the same files all the time"))
    }
}

/// The commit that a work tree is at, as git's own files say; `None` where they do not. Blocking.
pub fn commit_of(top: &Path) -> Option<Box<str>> {
    let short = |path: &Path| system::short_text(path, 2 * PATH_LEN_MAX as u64).ok();
    let dot_git = top.join(".git");
    let git_dir = match short(&dot_git) {
        Some(pointer) => top.join(pointer.strip_prefix("gitdir:")?.trim()),
        None => dot_git,
    };
    let head = short(&git_dir.join("HEAD"))?;
    let Some(name) = head.trim().strip_prefix("ref: ") else { return id_of(head.trim()) };
    // What git writes there where its refs are in a table: then no file says it.
    if name == "refs/heads/.invalid" {
        return None;
    }
    let common: PathBuf =
        short(&git_dir.join("commondir")).map_or(git_dir.clone(), |it| git_dir.join(it.trim()));
    let is_name = name.starts_with("refs/") && !name.split('/').any(|it| it == "..");
    let loose = Some(name).filter(|_| is_name).and_then(|it| short(&common.join(it)));
    if let Some(id) = loose {
        return id_of(id.trim());
    }
    let packed = system::short_text(&common.join("packed-refs"), GIT_REFS_BYTES_MAX).unwrap_or_default();
    let found = packed.lines().find_map(|line| line.strip_suffix(name)?.strip_suffix(' ').and_then(id_of));
    // A branch without a commit is a state like any other: the first commit ends it.
    found.or_else(|| is_name.then(|| "none".into()))
}

fn id_of(text: &str) -> Option<Box<str>> {
    let is_id = text.len() >= 40 && text.bytes().all(|it| it.is_ascii_hexdigit());
    is_id.then(|| text.into())
}
