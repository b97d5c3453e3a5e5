//! The timeline: pages, waits for news, and a stream. Agent Protocol, "Events", and 3.6.
//!
//! The fan-out of this door renders each event once for all readers. A reader that has missed some, or that names
//! the last event that it has, is brought up to date from the store, so that it gets each event once and in order.

use std::convert::Infallible;
use std::time::Duration;

use hyper::body::Bytes;
use tokio_util::sync::CancellationToken;

use super::body::{Query, Repeated};
use super::error::AgentProtocolError;
use super::{ids, map, wire};
use crate::proven::ended;
use provost_auth::Rejected;
use provost_auth::caller::Caller;
use provost_base::limits::{FOLLOWER_PAGE_MAX, TIMELINE_BYTES_MAX, TIMELINE_PAGE_MAX, TIMELINE_WAIT_S_MAX};
use provost_base::{EventSeq, RepoPath, Timestamp};
use provost_domain::{BEAT, Event};
use provost_engine::{Encoded, Fanout, Follower, Frame, Woken};
use provost_service::{Provost, TimelineOrder, TimelineQuery};
use provost_transport::sse::{CutOff, EventSender};

/// The number of events in an answer, if the request has no `limit`.
const LIMIT: usize = 100;

/// The events that a reader wants; a member that is `None` excludes none.
#[derive(Clone, Debug, Default)]
pub(super) struct Filter {
    agent: Option<Box<str>>,
    word: Option<Box<str>>,
    file: Option<Box<str>>,
    no_beats: bool,
}

impl Filter {
    /// Reads the filter from a query; `None` if no event can match, since a parameter was given twice.
    pub(super) fn read(query: &Query) -> Option<Self> {
        let one = |name| query.one(name).map(|it| it.map(Box::<str>::from)).map_err(|Repeated| ());
        let agent = one("agent_id").ok()?.map(|it| map::agent_filter(&it).into());
        // Events have a file in its plainest spelling.
        let plain = |it: Box<str>| RepoPath::parse(&it).map_or(it, |path| path.as_str().into());
        let (word, file) = (one("action").ok()?, one("resource").ok()?.map(plain));
        let no_beats = matches!(one("heartbeats").ok()?.as_deref(), Some("0" | "false"));
        Some(Self { agent, word, file, no_beats })
    }

    fn takes(&self, event: &Event) -> bool {
        let Some(topic) = event.topic() else { return false };
        let is = |wanted: &Option<Box<str>>, it: Option<&str>| wanted.is_none() || wanted.as_deref() == it;
        is(&self.agent, Some(topic.agent))
            && is(&self.word, Some(topic.word))
            && is(&self.file, topic.file)
            && !(self.no_beats && topic.word == BEAT)
    }

    fn query(&self) -> TimelineQuery {
        TimelineQuery {
            agent: self.agent.clone(),
            word: self.word.clone(),
            file: self.file.clone(),
            since: None,
            after: None,
            before: None,
            beats: !self.no_beats,
            order: TimelineOrder::NewestFirst,
            limit: LIMIT,
            bytes_max: TIMELINE_BYTES_MAX,
        }
    }
}

/// Answers `GET /events`: newest first, or, after an event that the caller has, oldest first.
pub(super) async fn list(provost: &Provost, query: &Query) -> Result<String, AgentProtocolError> {
    let limit = limit(query)?;
    let Some(filter) = Filter::read(query) else { return Ok("[]".into()) };
    let mut wanted = TimelineQuery { limit, ..filter.query() };
    // An invalid time is ignored, as the published server does.
    let since = query.one("since").ok().flatten().and_then(|it| it.parse::<f64>().ok());
    wanted.since = since.filter(|it| *it != 0.0).map(|it| Timestamp(it as i64));
    let named = |name| match query.one(name) {
        Ok(None) => Ok(None),
        Ok(Some(id)) => ids::event_seq(id)
            .map(Some)
            .ok_or_else(|| AgentProtocolError::bad(format!("{name} is no event's id"))),
        Err(Repeated) => Err(AgentProtocolError::bad(format!("{name} was given several times"))),
    };
    wanted.before = named("before_id")?;
    wanted.after = named("since_id")?;
    if wanted.after.is_some() {
        wanted.order = TimelineOrder::OldestFirst;
    }
    let wait = match query.one("wait") {
        Ok(None) => 0,
        Ok(Some(text)) => {
            text.parse().map_err(|_| AgentProtocolError::bad("wait must be a number of seconds"))?
        }
        Err(Repeated) => return Err(AgentProtocolError::bad("wait was given several times")),
    };
    let until = tokio::time::Instant::now() + Duration::from_secs(wait.min(TIMELINE_WAIT_S_MAX));
    // This comes before the query to the store, so that no event in between is missed.
    let mut news = provost.engine().subscribe();
    loop {
        let found = provost.timeline(wanted.clone()).await?;
        if !found.is_empty() || wait == 0 || limit == 0 {
            return Ok(wire::json(&found.iter().filter_map(map::event).collect::<Vec<_>>()));
        }
        match news.change(until, |event| filter.takes(event)).await {
            Woken::Changed => {}
            Woken::Late | Woken::Stopped => return Ok("[]".into()),
        }
    }
}

fn limit(query: &Query) -> Result<usize, AgentProtocolError> {
    let bad = || AgentProtocolError::bad("limit must be a number");
    let Some(text) = query.one("limit").map_err(|Repeated| bad())? else { return Ok(LIMIT) };
    let number: f64 = text.parse().map_err(|_| bad())?;
    if number.is_nan() {
        return Err(bad());
    }
    let most = TIMELINE_PAGE_MAX as f64;
    // A negative number stands for all events, within the bound of an answer.
    Ok(if number < 0.0 { TIMELINE_PAGE_MAX } else { number.min(most) as usize })
}

/// An event in the forms for readers: without and with its id.
pub(super) struct Rendered {
    plain: Bytes,
    named: Bytes,
}

impl Frame for Rendered {
    fn bytes(&self) -> usize {
        self.plain.len() + self.named.len()
    }
}

impl Rendered {
    pub(super) fn of(event: &Event) -> Option<Self> {
        let wire = map::event(event)?;
        let text = wire::json(&wire);
        let (plain, named) = (format!("data: {text}\n\n"), format!("id: {}\ndata: {text}\n\n", wire.id));
        Some(Self { plain: plain.into(), named: named.into() })
    }

    fn frame(&self, with_ids: bool) -> Bytes {
        if with_ids { self.named.clone() } else { self.plain.clone() }
    }
}

/// The request of a reader of the stream.
pub(super) struct Reader {
    pub(super) filter: Filter,
    pub(super) with_ids: bool,
    /// The last event that the reader has.
    pub(super) after: Option<EventSeq>,
    /// The reader. When its token has ended, it gets no further event.
    pub(super) caller: Caller,
}

/// The reason why a reader gets no further event.
enum End {
    Cut(CutOff),
    /// The reader's token has ended.
    Unproven,
}

impl From<CutOff> for End {
    fn from(cut: CutOff) -> Self {
        End::Cut(cut)
    }
}

impl From<Rejected> for End {
    fn from(_: Rejected) -> Self {
        End::Unproven
    }
}

/// Returns the last frame for a reader whose token has ended: an error in this door's form.
fn last_words() -> Bytes {
    format!("event: error\ndata: {}\n\n", AgentProtocolError::unproven().body).into()
}

/// Sends a reader its events until it disconnects or falls behind, its token ends, or the daemon stops.
pub(super) fn send(
    provost: &Provost,
    fanout: &Fanout<Rendered>,
    reader: Reader,
    sender: EventSender,
    stop: CancellationToken,
) {
    let page = TimelineQuery {
        order: TimelineOrder::OldestFirst,
        limit: FOLLOWER_PAGE_MAX.into(),
        ..reader.filter.query()
    };
    // This comes before the head of the answer is sent, so that its first event is the next one.
    let events = fanout
        .follow(provost.engine(), reader.after)
        .reading(move |store, after| store.timeline(&TimelineQuery { after: Some(after), ..page.clone() }));
    tokio::spawn(async move {
        let why = tokio::select! {
            () = stop.cancelled() => return,
            () = sender.gone() => return,
            _ = ended(reader.caller.names(), || reader.caller.still_proven()) => End::Unproven,
            Err(why) = send_each(&reader, &sender, events) => why,
        };
        match why {
            End::Cut(CutOff::Gone) => {}
            End::Cut(CutOff::TooSlow) => {
                tracing::debug!(door = "agent_protocol", "a reader of the stream does not keep up");
            }
            End::Unproven => {
                tracing::warn!(door = "agent_protocol", "a stream ends with the token of its reader");
                // A reader that is gone or has fallen behind does not get it.
                let _sent = sender.send(last_words());
            }
        }
    });
}

/// Sends each event that the reader wants: stored ones at its pace, and live ones as long as it keeps up.
async fn send_each(
    reader: &Reader,
    sender: &EventSender,
    mut events: Follower<Encoded<Rendered>>,
) -> Result<Infallible, End> {
    loop {
        let next = events.next().await.map_err(|_| CutOff::Gone)?;
        if !reader.filter.takes(&next.event) {
            continue;
        }
        // The change that has ended the token was committed before this event.
        reader.caller.still_proven()?;
        let frame = next.frame.frame(reader.with_ids);
        match events.is_behind() {
            true => sender.send_in_turn(frame).await?,
            false => sender.send(frame)?,
        }
    }
}
