//! The crew: one handler per path.

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};

use super::asked::{Asked, Caller, Query};
use super::map::crew as words;
use super::map::{self, Fault};
use super::routes::{Answered, submit};
use super::ties::{Taken, Tied};
use super::{Own, wire};
use crate::base::{RepoPath, TransferId};
use crate::domain::command::{AnswerTransfer, BeatCrew};
use crate::domain::view::{AtWork, HeldFiles, OneTransfer, SomeTransfers};

pub(super) fn routes() -> Router<Own> {
    Router::new()
        .route("/at-work", get(at_work))
        .route("/join-crew", post(join))
        .route("/beat-crew", post(beat))
        .route("/leave-crew", post(leave))
        .route("/claim", post(claim))
        .route("/release-claim", post(release))
        .route("/claims", get(claims))
        .route("/handoffs", get(handoffs))
        .route("/offer-handoff", post(offer_handoff))
        .route("/answer-handoff", post(answer_handoff))
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
    tied: Tied,
    Asked(body): Asked<wire::ClaimFile>,
) -> Answered<wire::Claimed> {
    let file = file(&own, &body.path).await?;
    let task = body.task.filter(|it| !it.is_empty()).map(Into::into);
    let done = own.0.provost.claim(&who, file, task).await.map_err(map::fault)?;
    if done.fresh {
        own.tie(&tied, &who, Taken::Claim(done.claim.file.clone(), done.claim.fence));
    }
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

async fn claims(
    State(own): State<Own>,
    Caller(who): Caller,
    Query(query): Query<wire::ClaimsQuery>,
) -> Answered<Vec<wire::HeldFile>> {
    let file = match &query.file {
        Some(path) => Some(file(&own, path).await?),
        None => None,
    };
    let of = query.mine.then(|| who.agent().clone());
    let held = own.0.provost.view(HeldFiles { of, file }).await.map_err(map::fault)?;
    Ok(Json(held.iter().filter_map(|it| words::held(it)).collect()))
}

async fn handoffs(
    State(own): State<Own>,
    Caller(who): Caller,
    Query(query): Query<wire::HandoffsQuery>,
) -> Answered<Vec<wire::HandedOver>> {
    let wanted = SomeTransfers { of: who.agent().clone(), answered: query.answered };
    let found = own.0.provost.view(wanted).await.map_err(map::fault)?;
    Ok(Json(found.iter().map(|it| words::handed_over(it)).collect()))
}

async fn offer_handoff(
    State(own): State<Own>,
    Caller(who): Caller,
    Asked(body): Asked<wire::OfferHandoff>,
) -> Answered<wire::HandedOver> {
    let offered = submit(&own, &who, words::offer(body)?).await?;
    Ok(Json(words::handed_over(&offered.transfer)))
}

/// Whoever it is for answers it, once.
async fn answer_handoff(
    State(own): State<Own>,
    Caller(who): Caller,
    Asked(body): Asked<wire::AnswerHandoff>,
) -> Answered<wire::HandedOver> {
    let unknown = || {
        Fault::new(StatusCode::NOT_FOUND, "handoff_not_found", format!("there is no hand-off {}", body.id))
            .hint("handoff_list shows those that wait for you")
    };
    let id = TransferId::parse(&body.id).map_err(|_| unknown())?;
    let find = || async {
        let found = own.0.provost.view(OneTransfer(id.clone())).await.map_err(map::fault)?;
        found.ok_or_else(unknown)
    };
    words::may_answer(&*find().await?, who.agent())?;
    let reason = body.reason.clone().unwrap_or_default().into();
    let done = submit(&own, &who, AnswerTransfer { id: id.clone(), accept: body.accept, reason }).await?;
    let now = find().await?;
    match done.answered {
        true => Ok(Json(words::handed_over(&now))),
        false => {
            let message = format!("hand-off {id} was {} before", words::transfer_word(now.state));
            Err(Fault::new(StatusCode::CONFLICT, "handoff_answered", message))
        }
    }
}
