//! The decisions of the rules that are on record, newest first.

use std::time::Instant;

use super::{Reader, StoreError};
use provost_base::EventSeq;
use provost_base::limits::EVENT_PAGE_MAX;
use provost_domain::{Event, Task};

/// A decision of the rules that is on record with their input.
#[derive(Clone, PartialEq, Debug)]
pub struct RecordedDecision {
    /// The event that records it.
    pub event: Event,
    /// The finished task that resulted from it, if it is kept.
    pub task: Option<Task>,
}

/// Decisions that are on record, newest first, with the extent of the search.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct RecordedDecisions {
    /// The decisions.
    pub decisions: Vec<RecordedDecision>,
    /// The number of events that were read, a page at a time.
    pub events: u64,
    /// The event before the oldest one that was read.
    pub from: EventSeq,
    /// Whether the time was over before there were enough decisions.
    pub late: bool,
}

/// Returns the newest decisions up to `head`: `most` at most, among `events_max` events at most, as far as the search comes before `until`.
///
/// # Errors
/// If the store does not answer, or an event cannot be read.
pub fn recorded_decisions(
    reader: &mut dyn Reader,
    head: EventSeq,
    (most, events_max): (usize, u64),
    until: Instant,
) -> Result<RecordedDecisions, StoreError> {
    let mut found = RecordedDecisions { from: head, ..RecordedDecisions::default() };
    while found.from.0 > 0 && found.decisions.len() < most && found.events < events_max {
        if Instant::now() >= until {
            found.late = true;
            break;
        }
        let before = found.from;
        let after = EventSeq(before.0.saturating_sub(u64::from(EVENT_PAGE_MAX)));
        let mut page = read_between(reader, after, before)?;
        while let Some(event) = page.pop() {
            if event.kind.judged().is_none() {
                continue;
            }
            let task = match event.kind.task() {
                Some(id) => reader.task(id)?,
                None => None,
            };
            let before = EventSeq(event.seq.0.saturating_sub(1));
            found.decisions.push(RecordedDecision { event, task });
            if found.decisions.len() >= most {
                found.from = before;
                return Ok(found);
            }
        }
        found.events += before.0.saturating_sub(after.0);
        found.from = after;
    }
    Ok(found)
}

/// Returns the number of the newest event, found by halving, since a reader beside the engine does not get it.
///
/// # Errors
/// If the store does not answer.
pub fn newest_event(reader: &mut dyn Reader) -> Result<EventSeq, StoreError> {
    let mut is_beyond = |seq: u64| Ok::<bool, StoreError>(reader.events_after(EventSeq(seq), 1)?.is_empty());
    let (mut low, mut high) = (0u64, 1u64);
    while !is_beyond(high)? {
        (low, high) = (high, high.saturating_mul(2));
    }
    if low == 0 && is_beyond(0)? {
        return Ok(EventSeq(0));
    }
    // There is an event after `low`, and none after `high`.
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if is_beyond(middle)? { high = middle } else { low = middle }
    }
    Ok(EventSeq(high))
}

/// Returns the events between two numbers whose bodies are kept, the last one included, in order.
fn read_between(reader: &mut dyn Reader, after: EventSeq, upto: EventSeq) -> Result<Vec<Event>, StoreError> {
    let (mut events, mut at) = (Vec::new(), after);
    while at < upto {
        let page = reader.events_after(at, EVENT_PAGE_MAX)?;
        let Some(last) = page.last().map(|it| it.seq) else { break };
        let within = page.iter().filter(|it| it.seq <= upto);
        for body in within.filter_map(|it| it.body.as_deref()) {
            events.push(Event::from_json(body).map_err(StoreError::damaged)?);
        }
        at = last;
    }
    Ok(events)
}
