//! Sends traces of tasks and metrics to a collector, over OTLP.
//!
//! ```text
//!   [heard] --its end--> [spans that wait] --every so often, one request at a time--> [sent]
//!                               |                                                \-- [dropped, and counted]
//!                               +-- too many wait --> [dropped, and counted]
//! ```
//! Nothing waits for the collector, and nothing is sent twice: a request that it does not take is dropped.
//! Over several hosts each daemon hears of all tasks, and the daemon that has decided an end sends the spans that are over with it.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use tokio::sync::broadcast::error::RecvError;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;

use super::{Daemon, now};
use provost_base::limits::{TELEMETRY_LAST_MS_MAX, TELEMETRY_SPANS_MAX};
use provost_base::{Digest, HostId, TaskId, Timestamp, WebAddress};
use provost_config::{Config, Loaded, Places};
use provost_domain::view::{LiveTasks, TracesOfTasks};
use provost_domain::{ApplyEvent, Event, EventKind, HereIs, Task, TaskState};
use provost_effects::TraceParent;
use provost_egress::{Outward, post, system_resolver};
use provost_engine::{Engine, Listener, Signal};
use provost_protocols::own::Own;
use provost_service::Provost;
use provost_store::name_of_traces;
use provost_telemetry::{Attribute, Span, Traced, Traces, metrics_request, traces_request};
use provost_vault::{Delivery, Vault};

/// The collector's address, and the common parts of every message to it.
#[derive(Clone)]
struct Collector {
    base: String,
    headers: Vec<(String, String)>,
    /// The authority that issued the collector's certificate, if that is not a public one.
    authority: Option<String>,
    /// The name of this daemon in the messages.
    instance: String,
    began_ns: u64,
}

/// Returns this daemon's identity for the collector: a digest, which does not reveal the path.
fn instance(places: &Places) -> Digest {
    Digest::of_fields([b"provost/repository".as_slice(), places.state.as_os_str().as_encoded_bytes()])
}

/// Returns the repository's identity for ids of traces: the same on all its hosts.
fn repository(places: &Places) -> Result<Digest> {
    name_of_traces(&places.state)?.context("there is no journal key, which ids of traces are made with")
}

/// Returns the function that gives workers the span in which they run, if the configuration names a collector.
///
/// # Errors
/// Where the journal's key cannot be read.
pub(super) fn trace_parent(config: &Config, places: &Places) -> Result<Option<TraceParent>> {
    if config.telemetry.otlp.is_none() {
        return Ok(None);
    }
    let repository = repository(places)?;
    Ok(Some(Arc::new(move |task: &Task| {
        Traced::of(repository, task.id()).within(task.order.trace.as_deref().copied()).parent("run")
    })))
}

impl Collector {
    /// Returns the configured collector, if there is one.
    ///
    /// # Errors
    /// A sentence, if its address or its secret cannot be used.
    fn of(config: &Config, places: &Places) -> Result<Option<Self>> {
        let settings = &config.telemetry;
        let Some(address) = &settings.otlp else { return Ok(None) };
        WebAddress::parse(address).map_err(|why| anyhow::anyhow!("`otlp` in `[telemetry]` {why}"))?;
        let headers = match &settings.headers {
            None => Vec::new(),
            Some(name) => {
                let found = Vault::at(places.secrets()).get(name).context("`headers` of `[telemetry]`")?;
                ensure!(
                    matches!(found.delivery, Delivery::Daemon),
                    "the secret `{name}` is for workers; keep the collector's headers with: provost secret add NAME --daemon"
                );
                let text = String::from_utf8_lossy(found.value.expose());
                vec![header(&text).with_context(|| format!("the secret `{name}` is to be `name: value`"))?]
            }
        };
        let read = |path: &PathBuf| std::fs::read_to_string(path).with_context(|| path.display().to_string());
        let authority = settings.authority.as_ref().map(read).transpose()?;
        let instance = instance(places).short();
        let base = address.trim_end_matches('/').to_owned();
        Ok(Some(Self { base, headers, authority, instance, began_ns: now_ns() }))
    }

    /// Sends a body to one of its paths, once.
    async fn take(&self, path: &str, body: Vec<u8>) -> Result<(), String> {
        let to = WebAddress::parse(&format!("{}{path}", self.base)).map_err(|why| why.to_string())?;
        let own = [("content-type".to_owned(), "application/x-protobuf".to_owned())];
        let headers = own.into_iter().chain(self.headers.iter().cloned());
        let headers = headers.map(|(name, value)| (Cow::Owned(name), value)).collect();
        let order = Outward { to, at: None, authority: self.authority.clone(), headers, body };
        let answer = post(order, system_resolver()).await?;
        match answer.status {
            200..=299 => Ok(()),
            status => Err(format!("the collector has answered {status}")),
        }
    }
}

/// Parses a header of the form `name: value`.
fn header(text: &str) -> Result<(String, String)> {
    let (name, value) = text.split_once(':').context("there is no colon")?;
    let (name, value) = (name.trim().to_ascii_lowercase(), value.trim().to_owned());
    let is_token = |it: u8| it.is_ascii_alphanumeric() || it == b'-' || it == b'_';
    ensure!(!name.is_empty() && name.bytes().all(is_token), "it does not begin with the name of a header");
    Ok((name, value))
}

fn now_ns() -> u64 {
    u64::try_from(now().0).unwrap_or(0).saturating_mul(1_000_000)
}

/// The spans and counts that wait to be sent.
struct Sending {
    collector: Collector,
    engine: Engine,
    provost: Provost,
    own: Own,
    repository: Digest,
    here: HostId,
    traces: Traces,
    spans: Vec<Span>,
    /// The number of commands that were spans so far; each is a trace of its own.
    commands: u64,
    /// The request that is under way.
    under_way: Option<JoinHandle<()>>,
}

impl Daemon {
    /// Begins to send traces and metrics, if the configuration names a collector.
    ///
    /// # Errors
    /// A sentence, if the collector cannot be used.
    pub(super) async fn send_telemetry(&self, loaded: &Loaded, own: &Own) -> Result<()> {
        let places = &self.start.places;
        let Some(collector) = Collector::of(&loaded.config, places)? else { return Ok(()) };
        let settings = &loaded.config.telemetry;
        let measures = self.engine().measures();
        measures.observe();
        measures.observed().inspect(|it| it.sample(settings.commands));
        let repository = repository(places)?;
        // Heard from now on, so that no task is asked for between this and the look at those that are there.
        let events = self.engine().subscribe_beside_posts();
        let mut traces = Traces::of(repository);
        let before = self.engine().view(TracesOfTasks).await?;
        before.into_iter().for_each(|(task, trace)| traces.keep(task, trace));
        let (there, now) = (self.engine().view(LiveTasks).await?, self.engine().now());
        for task in &there.tasks {
            let waits_for = match task.state {
                TaskState::Awaiting { approval } => Some(approval),
                _ => None,
            };
            traces.was_there(task.id(), now, waits_for);
        }
        let sending = Sending {
            collector,
            engine: self.engine().clone(),
            provost: self.provost.clone(),
            own: own.clone(),
            repository,
            here: self.engine().view(HereIs).await?.host,
            traces,
            spans: Vec::new(),
            commands: 0,
            under_way: None,
        };
        self.doors.spawn(sending.go_on(events, settings.every.as_duration(), self.stop.clone()));
        Ok(())
    }
}

impl Sending {
    async fn go_on(mut self, mut events: Listener, every: Duration, stop: CancellationToken) {
        let mut due = interval(every);
        due.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                event = events.recv() => match event {
                    Ok(event) => self.hear(&event).await,
                    // Events that were missed have no spans.
                    Err(RecvError::Lagged(missed)) => self.dropped(missed),
                    Err(RecvError::Closed) => return,
                },
                _ = due.tick() => self.send().await,
                () = stop.cancelled() => {
                    let last = Duration::from_millis(TELEMETRY_LAST_MS_MAX);
                    let _late = timeout(last, self.send_last()).await;
                    return;
                }
            }
        }
    }

    async fn hear(&mut self, event: &Event) {
        if let EventKind::Apply(ApplyEvent::ApplyBegun { apply, .. }) = &event.kind
            && event.host == self.here
        {
            // Long applies have all places for reading a record.
            let limit = Duration::from_millis(TELEMETRY_LAST_MS_MAX);
            let task = timeout(limit, self.provost.task_of_apply(*apply)).await.ok().flatten();
            self.traces.begin_apply(*apply, event.at, task);
        }
        if let EventKind::TaskFinished { task, .. } = &event.kind {
            self.learn_trace(task).await;
        }
        let spans = self.traces.follow(event);
        if event.host == self.here {
            self.wait_with(spans);
        }
    }

    /// A task that was denied has no event of its acceptance, which would tell its trace.
    async fn learn_trace(&mut self, task: &TaskId) {
        if !self.traces.was_accepted(task)
            && let Ok(it) = self.provost.task(task).await
            && let Some(trace) = it.order.trace.as_deref()
        {
            self.traces.keep(task.clone(), *trace);
        }
    }

    fn wait_with(&mut self, spans: Vec<Span>) {
        let room = TELEMETRY_SPANS_MAX.saturating_sub(self.spans.len());
        let beyond = spans.len().saturating_sub(room) as u64;
        self.spans.extend(spans.into_iter().take(room));
        if beyond > 0 {
            self.dropped(beyond);
        }
    }

    fn dropped(&self, spans: u64) {
        self.engine.measures().observed().inspect(|it| it.dropped(spans));
    }

    /// Turns the sampled commands into spans.
    fn take_samples(&mut self) {
        let samples = self.engine.measures().observed().map(|it| it.take_samples()).unwrap_or_default();
        for it in samples {
            self.commands += 1;
            let Ok(name) = TaskId::parse(&format!("command-{}-{}", self.collector.began_ns, self.commands))
            else {
                continue;
            };
            let ids = Traced::of(self.repository, &name);
            let word = |key, value: &str| Attribute::Word(key, value.to_owned());
            let attributes = vec![
                word("provost.verb", it.verb.as_str()),
                word("provost.door", it.door.name()),
                word("provost.outcome", it.outcome.as_str()),
            ];
            let ids = (ids.trace_id(), ids.span_id("command"), None);
            let ago = |it: Duration| Timestamp(now().0.saturating_sub_unsigned(it.as_millis() as u64));
            let times = (ago(it.answered.elapsed() + it.took), ago(it.answered.elapsed()));
            let span = Span { name: "command", ids, times, done: it.outcome.is_done(), attributes };
            self.wait_with(vec![span]);
        }
    }

    /// Sends the waiting spans, unless the last request is still under way.
    async fn send(&mut self) {
        if self.under_way.as_ref().is_some_and(|it| !it.is_finished()) {
            return;
        }
        let request = self.request().await;
        self.under_way = Some(tokio::spawn(request));
    }

    async fn send_last(&mut self) {
        if let Some(under_way) = self.under_way.take() {
            // The request has counted its own outcome.
            let _ended = under_way.await;
        }
        self.request().await.await;
    }

    /// Makes the requests for all waiting spans, to be carried out one after the other.
    async fn request(&mut self) -> impl Future<Output = ()> + use<> {
        self.take_samples();
        let spans = std::mem::take(&mut self.spans);
        let version = env!("CARGO_PKG_VERSION");
        let collector = self.collector.clone();
        let who = (version, collector.instance.as_str());
        let traces = (!spans.is_empty()).then(|| traces_request(&spans, who));
        let metrics =
            self.own.told_metrics().await.map(|it| metrics_request(&it, who, (collector.began_ns, now_ns())));
        let engine = self.engine.clone();
        async move {
            let bodies = [(Signal::Traces, "/v1/traces", traces), (Signal::Metrics, "/v1/metrics", metrics)];
            for (signal, path, body) in bodies {
                let Some(body) = body else { continue };
                let done = collector.take(path, body).await;
                if let Some(observed) = engine.measures().observed() {
                    observed.exported(signal, done.is_ok());
                    if done.is_err() && signal == Signal::Traces {
                        observed.dropped(spans.len() as u64);
                    }
                }
                if let Err(why) = done {
                    tracing::debug!(%why, path, "the collector of telemetry has not taken it");
                }
            }
        }
    }
}
