//! Leases that agents take by writing: the service determines the places that a write touches, and the core grants them in one step.

use super::Provost;
use super::code::Base;
use super::commits::Commits;
use super::guard::{Edit, Guarded, tree_of};
use provost_base::limits::HOLD_LOOKS_MAX;
use provost_base::{RepoPath, SymbolPath};
use provost_domain::command::{HoldPlaces, PlaceToHold, PlacesHeld};
use provost_domain::view::AutoNow;
use provost_domain::{Auto, Principal, ProcessMark, Refusal, Writer};

/// A write that a host is about to make.
#[derive(Clone, Debug)]
pub struct WriteOrder {
    /// The files.
    pub edits: Vec<Edit>,
    /// The work tree in which it writes; `None` means the daemon's own checkout.
    pub base: Option<Base>,
    /// The process of the host.
    pub process: Option<ProcessMark>,
    /// The subagent of the session that writes.
    pub part: Option<Box<str>>,
}

impl Provost {
    /// Takes or renews leases on the places that a write touches. If another agent holds one of them, no lease is
    /// taken, and the answer names the holder.
    ///
    /// # Errors
    /// A [`Refusal`]; then nothing has changed. The caller must treat it as a refusal of the write.
    pub async fn hold(&self, who: &Principal, order: WriteOrder) -> Result<Guarded, Refusal> {
        let base = order.base.as_ref().unwrap_or(self.base());
        let files = order.edits.iter().map(|it| it.path.clone()).collect();
        let commits = Commits::around(base, files).await;
        for _ in 0..HOLD_LOOKS_MAX {
            let auto = self.view(AutoNow).await?;
            let writer = Writer {
                agent: who.agent().clone(),
                part: order.part.clone(),
                parts_differ: auto.subagents_differ,
            };
            let looked = self.look_at(&writer, base, &order.edits, auto.mode != Auto::Off).await?;
            if !looked.guarded.blocked.is_empty() || looked.touched.is_empty() || auto.mode == Auto::Off {
                self.advised().note(who.agent(), &looked.guarded);
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
                commit: commits.of_tree.clone(),
                nested: commits.nested.clone(),
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
