//! Artifacts and applies: one handler per path.

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};

use super::asked::{Asked, Caller};
use super::map::{self, Fault};
use super::routes::Answered;
use super::{Own, wire};
use crate::base::{ApplyId, Digest, TaskId};
use crate::domain::{Answer, Artifact, Seen};
use crate::service::{Action, Applied, ApplyFault, PastApply, Previewed};

pub(super) fn routes() -> Router<Own> {
    Router::new()
        .route("/applies", get(applies))
        .route("/preview-artifacts", post(preview))
        .route("/apply-artifacts", post(apply))
        .route("/preview-task", post(preview_task))
        .route("/apply-task", post(apply_task))
        .route("/undo", post(undo))
}

async fn preview(
    State(own): State<Own>,
    Caller(who): Caller,
    Asked(body): Asked<wire::Artifacts>,
) -> Answered<Vec<wire::Previewed>> {
    let found = own.0.provost.preview(&who, artifacts(body)?).await.map_err(fault)?;
    Ok(Json(found.into_iter().map(previewed).collect()))
}

async fn apply(
    State(own): State<Own>,
    Caller(who): Caller,
    Asked(body): Asked<wire::Artifacts>,
) -> Answered<wire::Applied> {
    Ok(Json(answer(own.0.provost.apply(&who, artifacts(body)?).await.map_err(fault)?)))
}

async fn preview_task(
    State(own): State<Own>,
    Caller(who): Caller,
    Asked(body): Asked<wire::OfTask>,
) -> Answered<Vec<wire::Previewed>> {
    let kept = own.0.provost.changes_of(&of_task(body)?).await.map_err(fault)?;
    let found = own.0.provost.preview(&who, kept).await.map_err(fault)?;
    Ok(Json(found.into_iter().map(previewed).collect()))
}

async fn apply_task(
    State(own): State<Own>,
    Caller(who): Caller,
    Asked(body): Asked<wire::OfTask>,
) -> Answered<wire::Applied> {
    let kept = own.0.provost.changes_of(&of_task(body)?).await.map_err(fault)?;
    Ok(Json(answer(own.0.provost.apply(&who, kept).await.map_err(fault)?)))
}

fn of_task(body: wire::OfTask) -> Result<TaskId, Fault> {
    TaskId::parse(&body.task).map_err(|err| Fault::invalid(format!("task: {err}")))
}

async fn undo(
    State(own): State<Own>,
    Caller(who): Caller,
    Asked(body): Asked<wire::Undo>,
) -> Answered<wire::Applied> {
    let wire::Undo { apply, force } = body;
    Ok(Json(answer(own.0.provost.undo(&who, ApplyId(apply), force).await.map_err(fault)?)))
}

async fn applies(State(own): State<Own>, Caller(_who): Caller) -> Answered<Vec<wire::Apply>> {
    let past = own.0.provost.applies().await.map_err(fault)?;
    Ok(Json(past.iter().map(row).collect()))
}

fn artifacts(body: wire::Artifacts) -> Result<Vec<Artifact>, Fault> {
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
            base_hash: hash.map_err(|err| Fault::invalid(format!("base_hash: {err}")))?,
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
    wire::Previewed { path: it.path, action: action.into(), diff: it.diff, reason: it.reason }
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
    let file = |(path, seen): &(crate::base::RepoPath, Seen)| wire::AppliedFile {
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
        files: it.files.iter().map(file).collect(),
        errors: it.errors,
        state: state.into(),
    }
}

fn fault(fault: ApplyFault) -> Fault {
    let text = fault.to_string();
    match fault {
        ApplyFault::Refused(refusal) => map::fault(refusal),
        ApplyFault::TooMany(_) => Fault::invalid(text),
        ApplyFault::NoSuchApply(_) => Fault::new(StatusCode::NOT_FOUND, "apply_not_found", text)
            .hint("`provost applies` lists what there is"),
        ApplyFault::NothingKept(_) => Fault::new(StatusCode::NOT_FOUND, "nothing_kept", text).hint(
            "a worker's changes are kept where it works in a private copy: `provost jail explain NAME` says which way it \
             works",
        ),
        ApplyFault::NotOver(_) => Fault::new(StatusCode::CONFLICT, "apply_not_over", text),
        ApplyFault::Unreadable(_) => Fault::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", text),
    }
}
