//! Artifacts and applies: one handler per path.

use hyper::StatusCode;

use super::Own;
use super::handle::{Answered, Call, Handles};
use super::map::{self, OwnError};
use super::words::text_of_view;
use provost_api::{endpoints, wire};
use provost_base::{ApplyId, Digest, Json};
use provost_domain::{Answer, Artifact, Seen};
use provost_service::{
    Action, Agreed, Applied, ApplyError, Difference, Discarded, Extent, PastApply, Previewed, WouldWrite,
};
use provost_view::would_write;

impl Handles<endpoints::PreviewArtifacts> for Own {
    async fn handle(&self, call: &Call, body: wire::Artifacts) -> Answered<Vec<wire::Previewed>> {
        let found = self.0.provost.preview(&call.who, artifacts(body)?).await.map_err(fault)?;
        Ok(found.into_iter().map(previewed).collect())
    }
}

impl Handles<endpoints::ApplyArtifacts> for Own {
    async fn handle(&self, call: &Call, body: wire::Artifacts) -> Answered<wire::Applied> {
        Ok(answer(self.0.provost.apply(&call.who, artifacts(body)?).await.map_err(fault)?))
    }
}

impl Handles<endpoints::PreviewTask> for Own {
    async fn handle(&self, call: &Call, body: wire::OfTask) -> Answered<Vec<wire::Previewed>> {
        let task = map::task_id(&body.task)?;
        let found = self.0.provost.preview_task(&call.who, &task, &body.paths).await.map_err(fault)?;
        Ok(found.into_iter().map(previewed).collect())
    }
}

impl Handles<endpoints::ApplyTask> for Own {
    async fn handle(&self, call: &Call, body: wire::OfTask) -> Answered<wire::Applied> {
        let task = map::task_id(&body.task)?;
        let agreed = match body.seen {
            None => None,
            Some(seen) => {
                let would = self.0.provost.would_apply(call.who.agent(), &task, &body.paths).await;
                Some(agreed(&would.map_err(fault)?, &seen)?)
            }
        };
        Ok(answer(self.0.provost.apply_task(&call.who, &task, &body.paths, agreed).await.map_err(fault)?))
    }
}

impl Handles<endpoints::DiscardTask> for Own {
    async fn handle(&self, call: &Call, body: wire::Discard) -> Answered<wire::Discarded> {
        let task = map::task_id(&body.task)?;
        let Discarded { files, already } =
            self.0.provost.discard_task(&call.who, &task).await.map_err(fault)?;
        Ok(wire::Discarded { task: body.task, files, already })
    }
}

impl Handles<endpoints::Undo> for Own {
    async fn handle(&self, call: &Call, body: wire::Undo) -> Answered<wire::Applied> {
        let wire::Undo { apply, force, seen } = body;
        let apply = ApplyId(apply);
        let agreed = match seen {
            None => None,
            Some(seen) => {
                Some(agreed(&self.0.provost.would_undo(apply, force).await.map_err(fault)?, &seen)?)
            }
        };
        Ok(answer(self.0.provost.undo(&call.who, apply, force, agreed).await.map_err(fault)?))
    }
}

impl Handles<endpoints::ViewApply> for Own {
    async fn handle(&self, _call: &Call, body: wire::ViewApply) -> Answered<wire::ApplyView> {
        let would = match body {
            wire::ViewApply { task: Some(task), paths, apply: None, force: false } => {
                // The user signs for it, who may be another one than the caller of this preview.
                self.0.provost.would_apply(&self.0.user, &map::task_id(&task)?, &paths).await
            }
            wire::ViewApply { task: None, paths, apply: Some(apply), force } if paths.is_empty() => {
                self.0.provost.would_undo(ApplyId(apply), force).await
            }
            _ => {
                return Err(OwnError::invalid(
                    "say task, with paths or without, or apply, with force or without",
                ));
            }
        };
        let would = would.map_err(fault)?;
        let view = view_of(&would);
        Ok(wire::ApplyView {
            view_digest: Digest::of(view.as_str().as_bytes()).to_string(),
            view: view.as_str().to_owned(),
            diff: would.diff.into(),
            files: would.files,
            skipped: would.skipped,
            errors: would.errors,
        })
    }
}

/// Returns the text that a page shows of a preview.
fn view_of(would: &WouldWrite) -> Json {
    text_of_view(would_write(&would.diff, would.skipped, &would.errors))
}

/// Returns the caller's agreement, if the planned content is still what the caller has seen.
fn agreed(would: &WouldWrite, seen: &str) -> Result<Agreed, OwnError> {
    match Digest::of(view_of(would).as_str().as_bytes()).to_string() == seen {
        true => Ok(would.agreed),
        false => Err(fault(ApplyError::Changed)),
    }
}

impl Handles<endpoints::Applies> for Own {
    async fn handle(&self, _call: &Call, (): ()) -> Answered<Vec<wire::Apply>> {
        let past = self.0.provost.applies().await.map_err(fault)?;
        Ok(past.iter().map(row).collect())
    }
}

fn artifacts(body: wire::Artifacts) -> Result<Vec<Artifact>, OwnError> {
    let one = |it: wire::Artifact| {
        let hash = it.base_hash.map(Digest::try_from).transpose();
        Ok(Artifact {
            id: it.id.into(),
            kind: it.kind.into(),
            path: it.path.into(),
            content: it.content.into(),
            language: Box::default(),
            mode: it.mode,
            base_mode: None,
            base_hash: hash.map_err(|err| OwnError::invalid(format!("base_hash: {err}")))?,
        })
    };
    body.artifacts.into_iter().map(one).collect()
}

fn previewed(it: Previewed) -> wire::Previewed {
    let action = match it.action {
        Action::Create => "create",
        Action::Modify => "modify",
        Action::Skip => "skip",
    };
    let extent = |it: &Difference| match it.extent {
        Extent::Whole => "whole",
        Extent::Binary => "binary",
        Extent::Counted => "counted",
    };
    let (added, removed) = it.diff.as_ref().map_or((0, 0), |it| (it.added, it.removed));
    wire::Previewed {
        path: it.path,
        action: action.into(),
        extent: it.diff.as_ref().map(|it| extent(it).into()),
        diff: it.diff.map(|it| it.text),
        reason: it.reason,
        runs_later: it.runs_later,
        added,
        removed,
    }
}

fn answer(answer: Answer<Applied>) -> wire::Applied {
    match answer {
        Answer::Done(it) => wire::Applied {
            state: "applied".into(),
            applied: it.applied,
            skipped: it.skipped,
            errors: it.errors,
            apply: it.apply.map(|it| it.0),
            ..wire::Applied::default()
        },
        Answer::Parked(approval) => {
            wire::Applied { state: "awaiting".into(), approval: Some(approval.0), ..wire::Applied::default() }
        }
        Answer::Denied(denial) => wire::Applied {
            state: "denied".into(),
            rule: Some(denial.rule.to_string()),
            reason: Some(denial.reason.into()),
            ..wire::Applied::default()
        },
    }
}

fn row(it: &PastApply) -> wire::Apply {
    let how = |seen: Seen| match seen {
        Seen::Created => "created",
        Seen::Changed => "changed",
        Seen::Deleted => "deleted",
    };
    let file = |(path, seen): &(provost_base::RepoPath, Seen)| wire::AppliedFile {
        path: path.to_string(),
        how: how(*seen).into(),
    };
    let state = match (it.over, it.broken_off) {
        (false, _) => "under way",
        (true, false) => "done",
        (true, true) => "broken off",
    };
    wire::Apply {
        apply: it.apply.0,
        by: it.by.to_string(),
        at: it.at.rfc3339(),
        undoes: it.undoes.map(|it| it.0),
        undone_by: it.undone_by.map(|it| it.0),
        task: it.task.as_ref().map(ToString::to_string),
        files: it.files.iter().map(file).collect(),
        errors: it.errors,
        state: state.into(),
    }
}

fn fault(fault: ApplyError) -> OwnError {
    let text = fault.to_string();
    match fault {
        ApplyError::Refused(refusal) => map::fault(refusal),
        ApplyError::TooMany(..) | ApplyError::NotAmong { .. } => OwnError::invalid(text),
        ApplyError::NotEnded { .. } => OwnError::new(StatusCode::CONFLICT, "not_ended", text)
            .hint("`provost task show ID --wait` follows it to its end"),
        ApplyError::NotKeptAnyMore { .. } => OwnError::new(StatusCode::GONE, "not_kept_any_more", text)
            .hint("`changes.days` and `changes.runs` in provost.toml say how long they are kept; delegate it again"),
        ApplyError::OnAnotherHost { .. } => OwnError::new(StatusCode::CONFLICT, "on_another_host", text)
            .hint("ask on the machine that ran it: provost host list"),
        ApplyError::LostRun { host, .. } => {
            let copy = match host {
                Some(_) => "its private copy, if it had one, is in that machine's state folder",
                None => "`provost task show ID` names its private copy, if one is kept",
            };
            OwnError::new(StatusCode::NOT_FOUND, "run_lost", text).hint(format!(
                "delegate it again, or have the daemons do that, with `retry_lost = true` in the worker's entry; {copy}"
            ))
        }
        ApplyError::NoSuchApply(_) => OwnError::new(StatusCode::NOT_FOUND, "apply_not_found", text)
            .hint("`provost apply list` lists what there is"),
        ApplyError::NothingKept(_) => OwnError::new(StatusCode::NOT_FOUND, "nothing_kept", text).hint(
            "changes are kept of workers with `copy = \"kept\"`, as agents have it, or `copy = \"worktree\"`; \
             without a copy they are in your files already, and with `copy = true` they are deleted: \
             `provost jail explain NAME` says which way it works",
        ),
        ApplyError::Changed => OwnError::new(StatusCode::CONFLICT, "apply_changed", text)
            .hint("look at it again: nothing was written"),
        ApplyError::NotOver(_) => OwnError::new(StatusCode::CONFLICT, "apply_not_over", text),
        ApplyError::Unreadable(_) => OwnError::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", text),
    }
}
