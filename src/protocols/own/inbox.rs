//! One inbox for each agent: one handler per path.

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::asked::{Asked, Caller, Query};
use super::map::inbox as words;
use super::map::{self, Fault};
use super::routes::{Answered, patience};
use super::{Own, wire};
use crate::base::limits::INBOX_PAGE_MAX;
use crate::base::{MailSeq, PostSeq};
use crate::domain::MailKind;
use crate::domain::command::AddressAgent;
use crate::domain::post::slug;
use crate::service::Seen;

pub(super) fn routes() -> Router<Own> {
    Router::new()
        .route("/send-message", post(send))
        .route("/read-inbox", post(read))
        .route("/take-work", post(take_work))
        .route("/picture", get(picture))
}

/// Whoever sends it is the caller, whatever it says.
async fn send(
    State(own): State<Own>,
    Caller(who): Caller,
    Asked(body): Asked<wire::SendMessage>,
) -> Answered<wire::Sent> {
    let me = who.agent().clone();
    let post = words::post(me, body)?;
    let to = words::recipient(&post);
    let waits = !own.0.provost.engine().letterboxes().has(&slug(&to));
    let published = own.0.provost.publish(&who, post).await.map_err(map::fault)?;
    Ok(Json(wire::Sent { number: published.n.0, to, waits }))
}

/// Whoever reads an inbox has one from then on.
async fn read(
    State(own): State<Own>,
    Caller(who): Caller,
    Asked(body): Asked<wire::ReadInbox>,
) -> Answered<wire::Inbox> {
    let provost = &own.0.provost;
    let agent = who.agent().clone();
    if !provost.engine().letterboxes().has(&slug(agent.as_str())) {
        provost.address(&who, AddressAgent { agent, cli: "".into() }).await.map_err(map::fault)?;
    }
    let seen = Seen { posts: PostSeq(body.posts_after), mail: MailSeq(body.mail_after) };
    let limit = body.limit.unwrap_or(INBOX_PAGE_MAX).clamp(1, INBOX_PAGE_MAX);
    let found = provost.inbox(&who, seen, limit, patience(body.wait_ms)).await.map_err(map::fault)?;
    Ok(Json(wire::Inbox { entries: found.news.iter().map(words::entry).collect(), more: found.more }))
}

/// The next task for the caller as a worker. It is the caller's when this is answered; should the answer get lost, the
/// task is handed out again after a while.
async fn take_work(
    State(own): State<Own>,
    Caller(who): Caller,
    Asked(body): Asked<wire::TakeWork>,
) -> Answered<wire::Work> {
    let provost = &own.0.provost;
    let mail = provost.take_work(&who, patience(body.wait_ms)).await.map_err(map::fault)?;
    let Some(mail) = mail else { return Ok(Json(wire::Work::default())) };
    Ok(Json(match &mail.kind {
        MailKind::Work { task, payload } => {
            let task = provost.task(task).await.map_err(map::fault)?;
            let order = words::order(&task, payload, provost.root().place().path());
            wire::Work { order: Some(order), called_off: None }
        }
        kind => wire::Work { order: None, called_off: words::called_off(kind) },
    }))
}

async fn picture(
    State(own): State<Own>,
    Caller(who): Caller,
    Query(query): Query<wire::PictureQuery>,
) -> Answered<wire::Picture> {
    let task = map::task_id(&query.task)?;
    let found = own.0.provost.picture(&who, &task, query.width).await.map_err(map::fault)?;
    let found = found.ok_or_else(|| {
        Fault::new(StatusCode::CONFLICT, "no_picture", format!("task {task} has no picture"))
    })?;
    let (thumb, why) = match found.thumb {
        Ok(it) => {
            let png = STANDARD.encode(&it.png);
            (Some(wire::Thumb { png, width: it.width, height: it.height }), None)
        }
        Err(why) => (None, Some(why)),
    };
    let path = found.path.to_string_lossy().into_owned();
    Ok(Json(wire::Picture { path, format: found.format, bytes: found.bytes, thumb, why }))
}
