//! The view of events, and the file of events that a browser saves; the address selects them.

use hyper::StatusCode;

use super::WebError;
use super::query::Query;
use provost_base::Timestamp;
use provost_client::Client;
use provost_client::events::EventChoice;
use provost_domain::event_kinds;
use provost_view::{Block, Filter, Shown, moment};

/// Returns the events that an address selects, and the number of events that cannot be searched yet.
///
/// # Errors
/// An invalid part of the address, and the errors of the own API.
pub(super) async fn shown(
    client: &Client,
    query: &Query,
    filter: &Filter,
    head: u64,
) -> Result<(Shown, u64), WebError> {
    let choice = choice(client, query, head).await?;
    let typed = query.text("q").unwrap_or_default();
    let (mut shown, not_yet) = client.view_of_chosen_events(&choice, (filter, typed), head).await?;
    let mut kinds: Vec<&'static str> = event_kinds().collect();
    kinds.sort_unstable();
    shown.blocks.insert(0, Block::EventFilter { kinds });
    Ok((shown, not_yet))
}

/// Returns the same events as lines of JSON.
///
/// # Errors
/// The same.
pub(super) async fn lines(client: &Client, query: &Query) -> Result<String, WebError> {
    let head = client.about().await?.journal_seq;
    let choice = choice(client, query, head).await?;
    Ok(client.chosen_events_as_lines(&choice, head, query.number("limit")?).await?)
}

async fn choice(client: &Client, query: &Query, head: u64) -> Result<EventChoice, WebError> {
    let wrong = |why: String| WebError::new(StatusCode::BAD_REQUEST, "bad_query", why);
    let kinds = query.text("kinds").unwrap_or_default().split(',').map(str::trim);
    let kinds: Vec<String> = kinds.filter(|it| !it.is_empty()).map(str::to_owned).collect();
    if let Some(it) = kinds.iter().find(|it| event_kinds().all(|kind| kind != it.as_str())) {
        let why = format!("`kinds`: no event is of the kind {}", provost_base::visible_name(it, 60));
        return Err(wrong(why));
    }
    let mut before = query.number("before")?;
    if let Some(at) = query.text("at") {
        let time =
            moment(at).ok_or_else(|| wrong("`at` is no time, as 2026-11-27T14:02:00Z is one".into()))?;
        let first = client.event_at(Timestamp(time), head).await?;
        // The first event at that time is on top, with the earlier ones below.
        before = Some(before.map_or(first.saturating_add(1), |it| it.min(first.saturating_add(1))));
    }
    Ok(EventChoice {
        kinds,
        agent: query.text("agent").map(str::to_owned),
        resource: query.text("resource").map(str::to_owned),
        after: query.number("after")?,
        before,
    })
}
