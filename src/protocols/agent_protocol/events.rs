//! The timeline: asked for in pages, waited for, and streamed. Agent Protocol, "Events", and 3.6.
//!
//! One follower renders each event once and hands it to all readers. A reader that misses some, or comes with the name
//! of the last event that it has, is brought up to date from the store, so that it sees each event once and in order.

use std::time::Duration;

use hyper::body::Bytes;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

use super::body::{Query, Repeated};
use super::error::AgentProtocolError;
use super::{ids, map, wire};
use crate::proven::ended;
use provost_auth::Rejected;
use provost_auth::caller::Caller;
use provost_base::limits::{EVENT_PAGE_MAX, TIMELINE_BYTES_MAX, TIMELINE_PAGE_MAX, TIMELINE_WAIT_S_MAX};
use provost_base::{EventSeq, RepoPath, Timestamp};
use provost_domain::{BEAT, Event};
use provost_engine::{Fanout, Frame, Frames, Woken};
use provost_service::{Provost, TimelineOrder, TimelineQuery};
use provost_transport::sse::{CutOff, EventSender};

/// Events in one answer, where the request has no `limit`.
const LIMIT: usize = 100;

/// Which events a reader wants; a member that is `None` chooses nothing.
#[derive(Clone, Debug, Default)]
pub(super) struct Filter {
    agent: Option<Box<str>>,
    word: Option<Box<str>>,
    file: Option<Box<str>>,
    no_beats: bool,
}

impl Filter {
    /// Reads it off a query; `None` where nothing can meet it, since a parameter was given twice.
    pub(super) fn read(query: &Query) -> Option<Self> {
        let one = |name| query.one(name).map(|it| it.map(Box::<str>::from)).map_err(|Repeated| ());
        let agent = one("agent_id").ok()?.map(|it| map::agent_filter(&it).into());
        // A file is found under its plainest spelling.
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

/// `GET /events`: newest first, or, after an event that the caller has, oldest first.
pub(super) async fn list(provost: &Provost, query: &Query) -> Result<String, AgentProtocolError> {
    let limit = limit(query)?;
    let Some(filter) = Filter::read(query) else { return Ok("[]".into()) };
    let mut wanted = TimelineQuery { limit, ..filter.query() };
    // What is no time is ignored, as the published server does.
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
    // Before the store is asked, so that nothing falls between the two.
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
    // A negative number is all there are, as far as one answer goes.
    Ok(if number < 0.0 { TIMELINE_PAGE_MAX } else { number.min(most) as usize })
}

/// An event as its readers get it: without and with its name.
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
    fn of(event: &Event) -> Option<Self> {
        let wire = map::event(event)?;
        let text = wire::json(&wire);
        let (plain, named) = (format!("data: {text}\n\n"), format!("id: {}\ndata: {text}\n\n", wire.id));
        Some(Self { plain: plain.into(), named: named.into() })
    }

    fn frame(&self, with_ids: bool) -> Bytes {
        if with_ids { self.named.clone() } else { self.plain.clone() }
    }
}

/// What renders events for all readers, from the first one on.
pub(super) struct Hub(Fanout<Rendered>);

impl Default for Hub {
    fn default() -> Self {
        Self(Fanout::new(Rendered::of))
    }
}

fn page_after(filter: &Filter, after: EventSeq) -> TimelineQuery {
    TimelineQuery {
        after: Some(after),
        order: TimelineOrder::OldestFirst,
        limit: EVENT_PAGE_MAX.into(),
        ..filter.query()
    }
}

/// What one reader of the stream wants.
pub(super) struct Reader {
    pub(super) filter: Filter,
    pub(super) with_ids: bool,
    /// The last event that it has.
    pub(super) after: Option<EventSeq>,
    /// The reader. When its token has ended, it gets no further event.
    pub(super) caller: Caller,
}

/// Why a reader gets no further event.
enum End {
    Cut(CutOff),
    /// Its token is not good any more.
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

/// The last frame for a reader whose token has ended: an error as this door answers one.
fn last_words() -> Bytes {
    format!("event: error\ndata: {}\n\n", AgentProtocolError::unproven().body).into()
}

impl Hub {
    /// Sends a reader its events until it goes, does not keep up, its token has ended, or the daemon stops.
    pub(super) fn send(
        &self,
        provost: &Provost,
        reader: Reader,
        sender: EventSender,
        stop: CancellationToken,
    ) {
        // Before the head of the answer goes out, so that its first event is the next one.
        let frames = self.0.subscribe(provost.engine());
        let provost = provost.clone();
        tokio::spawn(async move {
            let end = tokio::select! {
                () = stop.cancelled() => return,
                () = sender.gone() => return,
                _ = ended(|| reader.caller.still_proven()) => End::Unproven,
                end = send_all(&provost, &reader, &sender, frames) => end,
            };
            match end {
                End::Cut(CutOff::Gone) => {}
                End::Cut(CutOff::TooSlow) => {
                    tracing::debug!(door = "agent_protocol", "a reader of the stream does not keep up");
                }
                End::Unproven => {
                    tracing::warn!(door = "agent_protocol", "a stream ends with the token of its reader");
                    // One that is gone, or does not keep up, does not hear of it.
                    let _sent = sender.send(last_words());
                }
            }
        });
    }
}

async fn send_all(
    provost: &Provost,
    reader: &Reader,
    sender: &EventSender,
    mut frames: Frames<Rendered>,
) -> End {
    let mut last = reader.after;
    if let Some(after) = reader.after {
        match replay(provost, reader, sender, after).await {
            Ok(after) => last = Some(after),
            Err(end) => return end,
        }
    }
    loop {
        match frames.recv().await {
            Ok(it) if last.is_some_and(|last| it.event.seq <= last) => {}
            Ok(it) => {
                last = Some(it.event.seq);
                if !reader.filter.takes(&it.event) {
                    continue;
                }
                // What has ended the token was done before this.
                let told = reader.caller.still_proven().map_err(End::from);
                let told = told.and_then(|()| Ok(sender.send(it.frame.frame(reader.with_ids))?));
                if let Err(end) = told {
                    return end;
                }
            }
            Err(RecvError::Lagged(_)) => {
                let Some(after) = last else { return End::Cut(CutOff::TooSlow) };
                match replay(provost, reader, sender, after).await {
                    Ok(after) => last = Some(after),
                    Err(end) => return end,
                }
            }
            Err(RecvError::Closed) => return End::Cut(CutOff::Gone),
        }
    }
}

/// Sends what the store has behind an event; returns the last one.
async fn replay(
    provost: &Provost,
    reader: &Reader,
    sender: &EventSender,
    mut after: EventSeq,
) -> Result<EventSeq, End> {
    loop {
        let page = provost.timeline(page_after(&reader.filter, after)).await.map_err(|_| CutOff::Gone)?;
        if page.is_empty() {
            return Ok(after);
        }
        for event in page {
            after = event.seq;
            if let Some(it) = Rendered::of(&event) {
                reader.caller.still_proven()?;
                sender.send_in_turn(it.frame(reader.with_ids)).await?;
            }
        }
    }
}
