//! Events as people look for them: by kind, agent and subject, before or after a number, or at a time.

use provost_api::wire;
use provost_base::Timestamp;
use provost_base::limits::{SEARCH_ROWS_MAX, WEB_EVENTS_PAGE, WEB_EXPORT_EVENTS_MAX};
use provost_view::{self as view, Filter, Shown, encoded};
use serde_json::{Value, json};

use super::{Client, ClientError};

/// The events that a person wants to see.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EventChoice {
    /// Only events of these kinds; of all kinds when empty.
    pub kinds: Vec<String>,
    /// Only events that this agent caused.
    pub agent: Option<String>,
    /// Only events with these words in them: a file, a symbol, a task.
    pub resource: Option<String>,
    /// Only events after this number.
    pub after: Option<u64>,
    /// Only events before this number.
    pub before: Option<u64>,
}

impl EventChoice {
    /// Checks whether it selects events by their content, and not only by their numbers.
    fn is_narrow(&self) -> bool {
        !self.kinds.is_empty() || self.agent.is_some() || self.resource.is_some()
    }

    /// Returns the words of each search that finds them.
    fn searches(&self) -> Vec<String> {
        let quoted = |it: &Option<String>| {
            it.as_ref().map(|it| format!(" \"{}\"", it.replace('"', " "))).unwrap_or_default()
        };
        let beside = format!("{}{}", quoted(&self.agent), quoted(&self.resource));
        match self.kinds.is_empty() {
            true => vec![beside],
            false => {
                self.kinds.iter().map(|kind| format!("\"{}\"{beside}", kind.replace('"', " "))).collect()
            }
        }
    }

    /// Checks whether a search's hit is really wanted: the index finds a word in other members as well.
    fn takes(&self, hit: &wire::Hit) -> bool {
        (self.kinds.is_empty() || self.kinds.contains(&hit.what))
            && self.agent.as_ref().is_none_or(|it| *it == hit.actor)
            && hit.seq.is_some_and(|seq| seq > self.after.unwrap_or(0))
    }

    /// Returns the address of the page of such events that ends before a number.
    fn next(&self, before: u64, typed: &str) -> String {
        let mut path = format!("/e?before={before}");
        let mut add = |name: &str, value: &str| {
            if !value.is_empty() {
                path.push_str(&format!("&{name}={}", encoded(value)));
            }
        };
        add("kinds", &self.kinds.join(","));
        add("agent", self.agent.as_deref().unwrap_or_default());
        add("resource", self.resource.as_deref().unwrap_or_default());
        add("after", &self.after.map(|it| it.to_string()).unwrap_or_default());
        add("q", typed);
        path
    }
}

/// Returns the number of an event; 0 if it has none.
fn seq_of(event: &Value) -> u64 {
    event.get("seq").and_then(Value::as_u64).unwrap_or_default()
}

impl Client {
    /// Returns a page of the chosen events, newest first, and the number of events that cannot be searched yet.
    /// `head` is the end of the journal, and `typed` the filter as the person typed it.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn view_of_chosen_events(
        &self,
        choice: &EventChoice,
        (filter, typed): (&Filter, &str),
        head: u64,
    ) -> Result<(Shown, u64), ClientError> {
        let (mut found, next, not_yet) = self.chosen(choice, head, usize::from(WEB_EVENTS_PAGE)).await?;
        found.sort_by_key(seq_of);
        let mut shown = view::events(&found, filter);
        shown.next = next.map(|before| choice.next(before, typed));
        Ok((shown, not_yet))
    }

    /// Returns one whole event; `None` where the journal has no event of this number.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn view_of_event(&self, seq: u64) -> Result<Option<Shown>, ClientError> {
        let asked = wire::EventsQuery { after: seq.checked_sub(1), limit: Some(1), wait_ms: None };
        let page = if seq == 0 { Vec::new() } else { self.events(&asked).await?.events };
        Ok(page.into_iter().find(|it| seq_of(it) == seq).map(|it| view::event(&it)))
    }

    /// Returns the newest chosen events as lines of JSON, oldest first: at most `limit`, and no more than one file
    /// may have. Where older events are left out, the first line is no event and says before which number they are.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn chosen_events_as_lines(
        &self,
        choice: &EventChoice,
        head: u64,
        limit: Option<u64>,
    ) -> Result<String, ClientError> {
        let limit = limit.and_then(|it| usize::try_from(it).ok()).unwrap_or(WEB_EXPORT_EVENTS_MAX);
        let limit = limit.clamp(1, WEB_EXPORT_EVENTS_MAX);
        let (mut all, mut choice, mut more) = (Vec::new(), choice.clone(), None);
        while all.len() < limit {
            let most = limit.saturating_sub(all.len()).min(usize::from(WEB_EVENTS_PAGE));
            let (found, next, _) = self.chosen(&choice, head, most).await?;
            all.extend(found);
            more = next;
            match next {
                Some(before) => choice.before = Some(before),
                None => break,
            }
        }
        all.sort_by_key(seq_of);
        let older = more.map(|before| {
            let says = format!(
                "older events of this choice are not in this file: ask for those before {before}, or `provost journal export` for all"
            );
            json!({ "more": { "before": before }, "says": says })
        });
        Ok(older.iter().chain(&all).map(|it| format!("{it}\n")).collect())
    }

    /// Returns the number of the first event at this time or later; the end of the journal where no such event exists.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn event_at(&self, at: Timestamp, head: u64) -> Result<u64, ClientError> {
        let wanted = at.rfc3339();
        // All events up to `low` are too old, and the one behind `high` is not.
        let (mut low, mut high) = (0, head);
        while low < high {
            let middle = low + (high - low) / 2;
            let asked = wire::EventsQuery { after: Some(middle), limit: Some(1), wait_ms: None };
            let page = self.events(&asked).await?;
            let Some(event) = page.events.first() else { break };
            match event.get("at").and_then(Value::as_str).is_some_and(|it| it < wanted.as_str()) {
                // Numbers may have gaps.
                true => low = seq_of(event).max(middle + 1),
                false => high = middle,
            }
        }
        Ok(low + 1)
    }

    /// Returns chosen events in no order, the number before which the next page ends, and the number of events that cannot
    /// be searched yet.
    async fn chosen(
        &self,
        choice: &EventChoice,
        head: u64,
        most: usize,
    ) -> Result<(Vec<Value>, Option<u64>, u64), ClientError> {
        match choice.is_narrow() {
            false => self.between(choice, head, most).await.map(|(found, next)| (found, next, 0)),
            true => self.found(choice, most).await,
        }
    }

    async fn between(
        &self,
        choice: &EventChoice,
        head: u64,
        most: usize,
    ) -> Result<(Vec<Value>, Option<u64>), ClientError> {
        let before = choice.before.unwrap_or(u64::MAX).min(head.saturating_add(1));
        let floor = choice.after.unwrap_or(0);
        let most =
            before.saturating_sub(1).saturating_sub(floor).min(u64::try_from(most).unwrap_or(u64::MAX));
        let after = before.saturating_sub(1).saturating_sub(most);
        let asked = wire::EventsQuery { after: Some(after), limit: u16::try_from(most).ok(), wait_ms: None };
        let mut found = if most == 0 { Vec::new() } else { self.events(&asked).await?.events };
        found.retain(|it| seq_of(it) < before);
        Ok((found, (after > floor).then_some(after + 1)))
    }

    async fn found(
        &self,
        choice: &EventChoice,
        most: usize,
    ) -> Result<(Vec<Value>, Option<u64>, u64), ClientError> {
        let (mut seqs, mut next, mut not_yet) = (Vec::new(), None::<u64>, 0);
        for words in choice.searches() {
            let asked = wire::SearchQuery {
                words,
                only: Some("events".into()),
                before: choice.before,
                limit: Some(most.clamp(1, SEARCH_ROWS_MAX)),
            };
            let found = self.search(&asked).await?;
            not_yet = found.not_yet.max(not_yet);
            // A search that stops at a number has not looked below it; results of the others below it are left out.
            next = next.max(found.next);
            seqs.extend(found.hits.iter().filter(|it| choice.takes(it)).filter_map(|it| it.seq));
        }
        let floor = next.unwrap_or(0);
        seqs.retain(|seq| *seq >= floor);
        seqs.sort_unstable_by_key(|it| std::cmp::Reverse(*it));
        seqs.dedup();
        if seqs.len() > most {
            seqs.truncate(most);
            next = seqs.last().copied();
        }
        let mut found = Vec::new();
        for seq in seqs {
            let asked = wire::EventsQuery { after: seq.checked_sub(1), limit: Some(1), wait_ms: None };
            found.extend(self.events(&asked).await?.events.into_iter().filter(|it| seq_of(it) == seq));
        }
        Ok((found, next.filter(|it| *it > choice.after.unwrap_or(0) + 1), not_yet))
    }
}
