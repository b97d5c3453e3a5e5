//! The journal: clients read it from a position, and a person's tools put records into it.

use hyper::StatusCode;

use super::Own;
use super::handle::{Answered, Call, Handles, patience};
use super::map::{self, OwnError};
use super::stream::shape;
use provost_api::{endpoints, wire};
use provost_base::EventSeq;
use provost_base::limits::EVENT_PAGE_MAX;

impl Handles<endpoints::Events> for Own {
    async fn handle(&self, _call: &Call, query: wire::EventsQuery) -> Answered<wire::Events> {
        let engine = self.0.provost.engine();
        let after = match query.after {
            Some(after) => EventSeq(after),
            None => engine.journal_head().await.map_err(map::fault)?.seq,
        };
        let limit = query.limit.unwrap_or(EVENT_PAGE_MAX).min(EVENT_PAGE_MAX);
        let until = tokio::time::Instant::now() + patience(query.wait_ms);
        let (mut follower, mut events, mut next) = (engine.follow(after), Vec::new(), after);
        while events.len() < usize::from(limit) {
            // Existing events are returned at once, however slow the machine is. The request waits only for the
            // first event.
            let event = match follower.ready().await.map_err(unavailable)? {
                Some(event) => event,
                None if !events.is_empty() => break,
                None => match tokio::time::timeout_at(until, follower.next()).await {
                    Ok(event) => event.map_err(unavailable)?,
                    Err(_) => break,
                },
            };
            next = event.seq;
            events.push(shape(&event));
        }
        Ok(wire::Events { events, next: next.0 })
    }
}

fn unavailable(err: impl std::fmt::Display) -> OwnError {
    OwnError::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", err.to_string())
}

impl Handles<endpoints::Record> for Own {
    async fn handle(&self, call: &Call, body: wire::Record) -> Answered<wire::Done> {
        self.submit(&call.who, map::record(&body)?).await?;
        Ok(wire::Done { message: "on record".into() })
    }
}
