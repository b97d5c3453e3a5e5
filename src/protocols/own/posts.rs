//! Messages between agents: one handler per path.

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};

use super::asked::{Asked, Caller, Query};
use super::map::{self, Fault};
use super::routes::{Answered, patience, submit};
use super::{Own, wire};
use crate::base::PostSeq;
use crate::base::limits::{OVERLAPS_MAX, POLL_BYTES_MAX};
use crate::domain::Scope;
use crate::domain::command::BeginLog;
use crate::domain::post::slug;
use crate::domain::view::{OpenQuestions, Overlaps, Roster};
use crate::protocols::broker::{entry, read, sentence};
use crate::service::{Letter, Letters};

pub(super) fn routes() -> Router<Own> {
    Router::new()
        .route("/publish-post", post(publish))
        .route("/posts", get(posts))
        .route("/roster", get(roster))
        .route("/questions", get(questions))
        .route("/overlaps", get(overlaps))
        .route("/purge-posts", post(purge))
}

/// The user may speak for anybody; an agent for whoever has neither key nor token.
async fn publish(
    State(own): State<Own>,
    Caller(who): Caller,
    Asked(body): Asked<wire::PublishPost>,
) -> Answered<wire::PostPublished> {
    let message = body.message;
    let letterboxes = own.0.provost.engine().letterboxes();
    let now = own.0.provost.engine().now();
    // A branch may be one word, and its agent goes by that.
    let sender = message.get("agent_id").and_then(|it| it.as_str()).map(slug);
    let post = read(message, now, &own.0.provost.tops(None), |it| {
        letterboxes.has(it) || who.may(Scope::Operate) || sender.as_ref() == Some(it)
    });
    let post = post.map_err(|(status, why)| {
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
        Fault::new(status, "invalid", why).hint("`provost broker skill` shows what messages look like")
    })?;
    own.check_other(&who, post.sender())?;
    let published = own.0.provost.publish(&who, post).await.map_err(map::fault)?;
    Ok(Json(wire::PostPublished { seq: published.n.0 }))
}

async fn posts(
    State(own): State<Own>,
    Caller(who): Caller,
    Query(query): Query<wire::PostsQuery>,
) -> Answered<wire::Posts> {
    let provost = &own.0.provost;
    let since = PostSeq(query.since.unwrap_or(0));
    let which = match query.inbox {
        Some(name) => {
            own.check_other(&who, &map::agent(&name, "inbox")?)?;
            let to = slug(&name);
            if query.wait_ms.is_some_and(|it| it > 0) {
                provost.letter_after(&to, since, patience(query.wait_ms)).await;
            }
            Letters::In(to, since)
        }
        None => query.since.map_or(Letters::Newest, |_| Letters::After(since)),
    };
    // What people read is a fraction of what fits into an answer.
    let letters = provost.letters(which, POLL_BYTES_MAX / 4).await.map_err(map::fault)?;
    let last_seq = letters.last().map_or(since.0, |it| it.n.0);
    Ok(Json(wire::Posts { posts: letters.into_iter().map(shown).collect(), last_seq }))
}

fn shown(letter: Letter) -> wire::Post {
    let at = letter.at.rfc3339();
    let entry = entry(letter);
    wire::Post {
        seq: entry.seq,
        at,
        text: sentence(&entry.message),
        message: serde_json::to_value(&entry.message).unwrap_or_default(),
    }
}

async fn roster(State(own): State<Own>, _caller: Caller) -> Answered<Vec<wire::RosterRow>> {
    let (people, _) = own.0.provost.view(Roster).await.map_err(map::fault)?;
    let rows = people.iter().filter_map(|it| {
        let row = it.row.as_ref()?;
        Some(wire::RosterRow {
            agent: it.slug.as_str().into(),
            status: row.label.as_ref().into(),
            phase: row.phase.as_deref().map(Into::into),
            cli: it.cli.as_deref().unwrap_or_default().into(),
            last_seen: row.seen.rfc3339(),
        })
    });
    Ok(Json(rows.collect()))
}

async fn questions(State(own): State<Own>, _caller: Caller) -> Answered<Vec<wire::Question>> {
    let open = own.0.provost.view(OpenQuestions).await.map_err(map::fault)?;
    let shown = |it: &std::sync::Arc<crate::domain::post::Question>| wire::Question {
        seq: it.n.0,
        agent: slug(it.agent.as_str()).as_str().into(),
        text: it.text.as_ref().into(),
        at: it.at.rfc3339(),
    };
    Ok(Json(open.iter().map(shown).collect()))
}

async fn overlaps(State(own): State<Own>, _caller: Caller) -> Answered<Vec<wire::Overlap>> {
    let found = own.0.provost.view(Overlaps(OVERLAPS_MAX)).await.map_err(map::fault)?;
    let shown = |it: crate::domain::Overlap| wire::Overlap {
        file: it.file.into(),
        agents: [it.a.into(), it.b.into()],
    };
    Ok(Json(found.into_iter().map(shown).collect()))
}

async fn purge(State(own): State<Own>, Caller(who): Caller) -> Answered<wire::LogBegun> {
    Ok(Json(wire::LogBegun { after: submit(&own, &who, BeginLog).await?.after.0 }))
}
