//! Search by words.

use super::Own;
use super::handle::{Answered, Call, Handles};
use super::map::{self, OwnError};
use provost_api::{endpoints, wire};
use provost_base::EventSeq;
use provost_base::limits::SEARCH_ROWS_MAX;
use provost_service::{Hit, HitKind, SearchQuery, SearchWords};

impl Handles<endpoints::Search> for Own {
    async fn handle(&self, _call: &Call, query: wire::SearchQuery) -> Answered<wire::Found> {
        let words = SearchWords::parse(&query.words).map_err(|err| OwnError::invalid(err.to_string()))?;
        let only = match query.only.as_deref() {
            None => None,
            Some("tasks") => Some(HitKind::Task),
            Some("messages") => Some(HitKind::Message),
            Some("events") => Some(HitKind::Event),
            Some(other) => {
                let other: String = other.chars().take(40).collect();
                return Err(OwnError::invalid(format!(
                    "only '{other}' is not one of tasks, messages, events"
                )));
            }
        };
        let limit = query.limit.unwrap_or(SEARCH_ROWS_MAX).clamp(1, SEARCH_ROWS_MAX);
        let asked = SearchQuery { words, only, before: query.before.map(EventSeq), limit };
        let (found, head) = self.0.provost.search(asked).await.map_err(map::fault)?;
        Ok(wire::Found {
            hits: found.hits.into_iter().map(hit).collect(),
            more_tasks: found.more_tasks,
            next: found.next.map(|it| it.0),
            not_yet: head.0.saturating_sub(found.indexed_to.0),
        })
    }
}

fn hit(it: Hit) -> wire::Hit {
    let kind = match it.kind {
        HitKind::Task => "task",
        HitKind::Message => "message",
        HitKind::Event => "event",
    };
    wire::Hit {
        kind: kind.into(),
        seq: it.seq.map(|it| it.0),
        message: it.post.map(|it| it.0),
        task: it.task.map(|it| it.to_string()),
        at: it.at.rfc3339(),
        what: it.what.into(),
        actor: it.actor.to_string(),
        excerpt: it.excerpt.into(),
    }
}
