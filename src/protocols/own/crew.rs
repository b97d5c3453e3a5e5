//! The crew: one handler per path.

use axum::extract::State;
use axum::routing::{get, post};
use axum::{Json, Router};

use super::asked::{Asked, Caller};
use super::map::crew as words;
use super::map::{self, Fault};
use super::routes::{Answered, submit};
use super::{Own, wire};
use crate::base::RepoPath;
use crate::domain::command::BeatCrew;
use crate::domain::view::AtWork;

pub(super) fn routes() -> Router<Own> {
    Router::new()
        .route("/at-work", get(at_work))
        .route("/join-crew", post(join))
        .route("/beat-crew", post(beat))
        .route("/leave-crew", post(leave))
        .route("/claim", post(claim))
        .route("/release-claim", post(release))
}

async fn at_work(State(own): State<Own>, Caller(who): Caller) -> Answered<wire::AtWork> {
    let found = own.0.provost.view(AtWork(who.agent().clone())).await.map_err(map::fault)?;
    Ok(Json(words::at_work(&found)))
}

async fn join(
    State(own): State<Own>,
    Caller(who): Caller,
    Asked(body): Asked<wire::JoinCrew>,
) -> Answered<wire::Member> {
    let joined = submit(&own, &who, words::join(body)?).await?;
    Ok(Json(words::member(&joined.member)))
}

async fn beat(State(own): State<Own>, Caller(who): Caller) -> Answered<wire::Done> {
    submit(&own, &who, BeatCrew).await?;
    Ok(Json(wire::Done { message: "heard".into() }))
}

async fn leave(
    State(own): State<Own>,
    Caller(who): Caller,
    Asked(body): Asked<wire::LeaveCrew>,
) -> Answered<wire::LeftCrew> {
    let left = own.0.provost.leave_crew(&who, body.only_if_idle).await.map_err(map::fault)?;
    Ok(Json(wire::LeftCrew { left: left.was_there }))
}

/// The file's one spelling.
async fn file(own: &Own, path: &str) -> Result<RepoPath, Fault> {
    let found = own.0.provost.file_of(path).await;
    found.ok_or_else(|| Fault::invalid("path names no file of the repository"))
}

async fn claim(
    State(own): State<Own>,
    Caller(who): Caller,
    Asked(body): Asked<wire::ClaimFile>,
) -> Answered<wire::Claimed> {
    let file = file(&own, &body.path).await?;
    let task = body.task.filter(|it| !it.is_empty()).map(Into::into);
    let done = own.0.provost.claim(&who, file, task).await.map_err(map::fault)?;
    Ok(Json(words::claimed(&done)))
}

async fn release(
    State(own): State<Own>,
    Caller(who): Caller,
    Asked(body): Asked<wire::ReleaseClaim>,
) -> Answered<wire::Released> {
    let file = file(&own, &body.path).await?;
    let done = own.0.provost.release_claim(&who, file).await.map_err(map::fault)?;
    Ok(Json(wire::Released { released: done.released }))
}
