//! Merges of branches: the preview, the queue, and runs.

use hyper::StatusCode;
use tokio::time::Instant;

use super::Own;
use super::handle::{Answered, Call, Handles, patience};
use super::map::{self, OwnError};
use provost_api::{endpoints, wire};
use provost_base::{Digest, Fence};
use provost_domain::command::MergesQueued;
use provost_domain::{Answer, EventKind, MergeEntry, MergePasses, MergeState, Refusal};
use provost_service::{BranchPreview, MergeConflict, MergeError, MergeOrder, MergePreview};

impl Handles<endpoints::PreviewMerge> for Own {
    async fn handle(&self, _call: &Call, body: wire::MergeBranches) -> Answered<wire::MergePreview> {
        let order = MergeOrder { branches: body.branches, into: body.into, commits: Vec::new() };
        Ok(previewed(self.0.provost.preview_merge(order).await.map_err(fault)?))
    }
}

impl Handles<endpoints::QueueMerges> for Own {
    async fn handle(&self, call: &Call, body: wire::QueueMerges) -> Answered<wire::MergesQueued> {
        let passes = passes(&body.passes)?;
        let order = MergeOrder { branches: body.branches, into: body.into, commits: body.commits };
        Ok(queued(self.0.provost.queue_merges(&call.who, order, passes).await.map_err(fault)?))
    }
}

impl Handles<endpoints::RemoveMerges> for Own {
    async fn handle(&self, call: &Call, body: wire::RemoveMerges) -> Answered<wire::MergesRemoved> {
        let removed = self
            .0
            .provost
            .remove_merges(&call.who, (&body.branches, body.into.as_deref()))
            .await
            .map_err(map::fault)?;
        Ok(wire::MergesRemoved { count: removed.count })
    }
}

impl Handles<endpoints::RunMerges> for Own {
    async fn handle(&self, call: &Call, body: wire::RunMerges) -> Answered<wire::MergesBegun> {
        let only = body.only.into_iter().map(Fence).collect();
        let begun = self.0.provost.run_merges(&call.who, only).await.map_err(map::fault)?;
        Ok(wire::MergesBegun { numbers: begun.numbers.into_iter().map(|it| it.0).collect() })
    }
}

impl Handles<endpoints::Merges> for Own {
    async fn handle(&self, _call: &Call, query: wire::MergesQuery) -> Answered<wire::Merges> {
        let until = Instant::now() + patience(query.wait_ms);
        let look = async || -> Result<wire::Merges, Refusal> {
            let entries: Vec<wire::Merge> =
                self.0.provost.merges().await?.iter().map(|it| entry(it)).collect();
            let text = serde_json::to_string(&entries).unwrap_or_default();
            Ok(wire::Merges { entries, version: Digest::of(text.as_bytes()).to_string() })
        };
        let news = || async {
            let now = look().await?;
            Ok((query.seen.as_deref() != Some(&*now.version)).then_some(now))
        };
        let concerns = |event: &provost_domain::Event| matches!(event.kind, EventKind::Merge(_));
        let found = self.0.provost.engine().wait_for(until, concerns, news).await.map_err(map::fault)?;
        match found {
            Some(found) => Ok(found),
            None => look().await.map_err(map::fault),
        }
    }
}

fn passes(words: &[String]) -> Result<MergePasses, OwnError> {
    let mut passes = MergePasses::default();
    for word in words {
        match word.as_str() {
            "settings" => passes.settings = true,
            "held" => passes.held = true,
            "symbols" => passes.symbols = true,
            "unchecked" => passes.unchecked = true,
            other => {
                let text = format!("passes: '{other}' is unknown; use settings, held, symbols or unchecked");
                return Err(OwnError::invalid(text));
            }
        }
    }
    Ok(passes)
}

fn words(passes: MergePasses) -> Vec<String> {
    let all = [
        (passes.settings, "settings"),
        (passes.held, "held"),
        (passes.symbols, "symbols"),
        (passes.unchecked, "unchecked"),
    ];
    all.into_iter().filter(|(passes, _)| *passes).map(|(_, word)| word.to_owned()).collect()
}

fn entry(it: &MergeEntry) -> wire::Merge {
    let mut found = wire::Merge {
        number: it.number.0,
        branch: it.branch.to_string(),
        into: it.into.to_string(),
        commit: it.commit.to_string(),
        by: it.by.to_string(),
        at: it.at.rfc3339(),
        passes: words(it.passes),
        state: it.state.as_str().into(),
        ..wire::Merge::default()
    };
    match &it.state {
        MergeState::Waiting => {}
        MergeState::Working { step } => found.what = Some(step.to_string()),
        MergeState::Moving { to, .. } => found.trunk = Some(to.to_string()),
        MergeState::Merged { to, note, .. } => {
            found.trunk = Some(to.to_string());
            found.why = (!note.is_empty()).then(|| note.to_string());
        }
        MergeState::SetAside { cause, why, told, .. } => {
            (found.what, found.why) = (Some(cause.to_string()), Some(why.to_string()));
            found.told = told.as_ref().map(ToString::to_string);
        }
    }
    found
}

fn queued(answer: Answer<MergesQueued>) -> wire::MergesQueued {
    match answer {
        Answer::Done(it) => {
            let entries = it.entries.iter().map(|it| entry(it)).collect();
            wire::MergesQueued { state: "queued".into(), entries, ..wire::MergesQueued::default() }
        }
        Answer::Parked(approval) => wire::MergesQueued {
            state: "awaiting".into(),
            approval: Some(approval.0),
            ..wire::MergesQueued::default()
        },
        Answer::Denied(denial) => wire::MergesQueued {
            state: "denied".into(),
            rule: Some(denial.rule.to_string()),
            reason: Some(denial.reason.into()),
            ..wire::MergesQueued::default()
        },
    }
}

fn conflict(it: MergeConflict) -> wire::MergeConflict {
    let MergeConflict { kind, file, symbol, text } = it;
    wire::MergeConflict { kind: kind.as_str().into(), file, symbol, text }
}

fn branch(it: BranchPreview) -> wire::MergeBranch {
    let way = match (it.is_merged, it.is_ahead) {
        (true, _) => "merged",
        (false, true) => "ahead",
        (false, false) => "merged_in",
    };
    wire::MergeBranch {
        branch: it.branch,
        commit: it.commit,
        owner: it.owner.as_ref().map(|it| it.agent.to_string()),
        owner_by: it.owner.as_ref().map(|it| it.by.to_owned()),
        owner_proven: it.owner.is_some_and(|it| it.is_proven),
        files: it.files,
        way: way.into(),
        conflicts: it.conflicts.into_iter().map(conflict).collect(),
        held: it.held,
        announced: it.announced,
        settings: it.settings,
        reason: it.reason,
    }
}

fn previewed(it: MergePreview) -> wire::MergePreview {
    let pairs = it.pairs.into_iter().map(|it| wire::MergePair {
        one: it.one,
        other: it.other,
        conflicts: it.conflicts.into_iter().map(conflict).collect(),
    });
    wire::MergePreview {
        into: it.into,
        commit: it.commit,
        pairs: pairs.collect(),
        branches: it.branches.into_iter().map(branch).collect(),
        checks: it.checks,
        whole: it.is_whole,
    }
}

fn fault(error: MergeError) -> OwnError {
    let text = error.to_string();
    match error {
        MergeError::Refused(refusal) => map::fault(refusal),
        MergeError::Branch(_)
        | MergeError::NoTrunk
        | MergeError::Itself(_)
        | MergeError::Twice(_)
        | MergeError::Nothing
        | MergeError::HasMoved { .. } => OwnError::invalid(text).hint("`git branch` lists the branches"),
        MergeError::Git(_) | MergeError::CannotFollow(_) | MergeError::Unknown(_) => {
            OwnError::new(StatusCode::CONFLICT, "merge_impossible", text)
        }
    }
}
