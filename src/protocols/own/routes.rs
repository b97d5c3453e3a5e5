//! One handler per path: decode, submit, encode.

use std::time::Duration;

use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::asked::{Asked, Caller, Query, prove};
use super::map::{self, Fault};
use super::{Order, Own, applies, coordinate, crew, hosts, inbox, jobs, permissions, posts, token, wire};
use crate::auth::role;
use crate::base::EventSeq;
use crate::base::limits::{EVENT_PAGE_MAX, FRAME_LEN_MAX, OWN_FILES_BYTES_MAX};
use crate::domain::command::AckTask;
use crate::domain::view::{AllSwitches, KnownAgents, LiveTasks, Waiting, WaitingOne};
use crate::domain::{Answer, JudgedVerb, Principal, Switch, Verb};
use crate::service::{Chunk, Stream, TaskFilter, Way};

/// Longest wait of a question that waits for news.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// How long a request's body may take.
const BODY_TIME_MAX: Duration = Duration::from_secs(10);

pub(super) type Answered<T> = Result<Json<T>, Fault>;

pub(super) fn router(own: Own) -> Router {
    Router::new()
        .route("/about", get(about))
        .route("/who-am-i", get(who_am_i))
        .route("/tasks", get(tasks))
        .route("/task", get(task))
        .route("/output", get(output))
        .route("/approvals", get(approvals))
        .route("/events", get(events))
        .route("/agents", get(agents))
        .route("/graph", get(graph))
        .route("/graph/callers", get(callers))
        .route("/graph/callees", get(callees))
        .route("/delegate", post(delegate))
        .route("/screenshot", post(screenshot))
        .route("/cancel-task", post(cancel))
        .route("/report-task", post(report))
        .route("/answer-approval", post(answer))
        .route("/switch-worker", post(switch_worker))
        .route("/record", post(record))
        .route("/reload", post(reload))
        .route("/listen", post(listen))
        .route("/stop", post(stop))
        .merge(applies::routes())
        .merge(coordinate::routes())
        .merge(crew::routes())
        .merge(hosts::routes())
        .merge(inbox::routes())
        .merge(jobs::routes())
        .merge(permissions::routes())
        .merge(token::routes())
        .merge(posts::routes())
        .fallback(|| async { Fault::new(StatusCode::NOT_FOUND, "no_such_path", "there is no such path") })
        .method_not_allowed_fallback(|| async {
            Fault::new(StatusCode::METHOD_NOT_ALLOWED, "wrong_method", "questions are GET, verbs are POST")
        })
        .layer(DefaultBodyLimit::disable())
        .layer(from_fn_with_state(own.clone(), whole_body))
        .layer(from_fn_with_state(own.clone(), prove))
        .layer(from_fn(version))
        .with_state(own)
}

/// Another version of this API is refused with a sentence; a browser never gets this far.
async fn version(request: Request, next: Next) -> Response {
    let ours = HeaderValue::from_static(wire::API_VERSION);
    let mut response = match request.headers().get(wire::VERSION_HEADER) {
        Some(theirs) if *theirs == ours => next.run(request).await,
        Some(_) => Fault::new(StatusCode::UPGRADE_REQUIRED, "version", "this daemon speaks another version")
            .hint("client and daemon differ: `provost down`, then `provost up`")
            .into_response(),
        None => Fault::invalid("the header x-provost-api is missing")
            .hint("send x-provost-api: 1")
            .into_response(),
    };
    response.headers_mut().insert(wire::VERSION_HEADER, ours);
    response
}

/// Takes the whole body in before anything is done, within bounds of size and time. Contents of files may be large,
/// a few of them at once.
async fn whole_body(State(own): State<Own>, request: Request, next: Next) -> Response {
    let (head, body) = request.into_parts();
    let large =
        matches!(head.uri.path(), "/check-contracts" | "/guard" | "/preview-artifacts" | "/apply-artifacts");
    let _turn = if large { own.0.large.acquire().await.ok() } else { None };
    let most = if large { OWN_FILES_BYTES_MAX } else { FRAME_LEN_MAX };
    let read = axum::body::to_bytes(body, most);
    let fault = match tokio::time::timeout(BODY_TIME_MAX, read).await {
        Ok(Ok(bytes)) => return next.run(Request::from_parts(head, bytes.into())).await,
        Ok(Err(_)) => {
            let message = format!("the body is larger than {} MiB, or broke off", most >> 20);
            Fault::new(StatusCode::PAYLOAD_TOO_LARGE, "invalid", message)
        }
        Err(_) => Fault::new(StatusCode::REQUEST_TIMEOUT, "invalid", "the body did not come in time"),
    };
    fault.into_response()
}

impl IntoResponse for Fault {
    fn into_response(self) -> Response {
        (self.status, Json(self.body)).into_response()
    }
}

pub(super) fn patience(wait_ms: Option<u64>) -> Duration {
    Duration::from_millis(wait_ms.unwrap_or(0)).min(WAIT_MAX)
}

pub(super) async fn submit<V: Verb>(own: &Own, who: &Principal, verb: V) -> Result<V::Reply, Fault> {
    own.0.provost.submit(who, verb).await.map_err(map::fault)
}

/// The same for a verb that policy has a say over, where the caller waits for nobody.
pub(super) async fn submit_judged<V: JudgedVerb>(
    own: &Own,
    who: &Principal,
    verb: V,
) -> Result<V::Reply, Fault> {
    match own.0.provost.submit_judged(who, verb).await.map_err(map::fault)? {
        Answer::Done(reply) => Ok(reply),
        Answer::Parked(id) => {
            Err(Fault::new(StatusCode::ACCEPTED, "awaiting", format!("waits for approval {id}")))
        }
        Answer::Denied(denial) => {
            let message = format!("denied by rule {}: {}", denial.rule, denial.reason);
            Err(Fault::new(StatusCode::FORBIDDEN, "denied", message))
        }
    }
}

async fn about(State(own): State<Own>, _caller: Caller) -> Answered<wire::About> {
    let provost = &own.0.provost;
    let live = provost.view(LiveTasks).await.map_err(map::fault)?;
    let waiting = provost.view(Waiting).await.map_err(map::fault)?;
    let head = provost.engine().journal_head().await.map_err(map::fault)?;
    let switches = provost.view(AllSwitches).await.map_err(map::fault)?;
    let mut about = (own.0.about)();
    for (id, switched) in switches.iter() {
        let worker = about.workers.iter_mut().find(|worker| worker.id == id.as_str());
        let says = format!("{} by {}", switched.to.word(), switched.by);
        worker.map(|worker| worker.switched.replace(says));
    }
    Ok(Json(wire::About {
        active: live.tasks.len(),
        approvals: waiting.len(),
        completed: live.completed,
        failed: live.failed,
        journal_seq: head.seq.0,
        journal_anchor: head.to_string(),
        ..about
    }))
}

async fn who_am_i(Caller(who): Caller) -> Answered<wire::Me> {
    Ok(Json(wire::Me { agent: who.agent().to_string() }))
}

async fn tasks(
    State(own): State<Own>,
    _caller: Caller,
    Query(query): Query<wire::TasksQuery>,
) -> Answered<wire::Tasks> {
    let filter = match query.filter.as_deref().unwrap_or("all") {
        "all" => TaskFilter::All,
        "active" => TaskFilter::Active,
        "completed" => TaskFilter::Completed,
        "failed" => TaskFilter::Failed,
        other => {
            return Err(Fault::invalid(format!(
                "filter '{other}' is not one of all, active, completed, failed"
            )));
        }
    };
    let before = query.before.map(|it| map::task_id(&it)).transpose()?;
    let snapshot = own.0.provost.snapshot_before(filter, query.limit, before).await.map_err(map::fault)?;
    Ok(Json(map::tasks(&snapshot)))
}

async fn task(
    State(own): State<Own>,
    _caller: Caller,
    Query(query): Query<wire::TaskQuery>,
) -> Answered<wire::Task> {
    let id = map::task_id(&query.id)?;
    let seen = query.seen.unwrap_or_default();
    let unchanged = |task: &crate::domain::Task| task.updated_at.rfc3339() == seen;
    let task = own.0.provost.task_after(&id, unchanged, patience(query.wait_ms)).await.map_err(map::fault)?;
    Ok(Json(map::task(&task)))
}

async fn output(
    State(own): State<Own>,
    _caller: Caller,
    Query(query): Query<wire::OutputQuery>,
) -> Answered<wire::Output> {
    let id = map::task_id(&query.id)?;
    let page = own.0.provost.output(&id, query.from, patience(query.wait_ms)).await;
    let page = page.map(|page| page.up_to(query.limit.unwrap_or(usize::MAX)));
    let chunk = |it: Chunk| wire::Chunk {
        stream: if it.stream == Stream::Out { "stdout" } else { "stderr" }.into(),
        text: String::from_utf8_lossy(&it.bytes).into_owned(),
    };
    Ok(Json(match page {
        Some(page) => wire::Output {
            done: page.finished && page.chunks.is_empty(),
            next: page.next,
            chunks: page.chunks.into_iter().map(chunk).collect(),
        },
        None => wire::Output { chunks: Vec::new(), next: query.from, done: true },
    }))
}

async fn approvals(State(own): State<Own>, _caller: Caller) -> Answered<Vec<wire::Approval>> {
    let waiting = own.0.provost.view(Waiting).await.map_err(map::fault)?;
    Ok(Json(waiting.iter().map(|it| map::approval(it)).collect()))
}

async fn agents(State(own): State<Own>, _caller: Caller) -> Answered<Vec<wire::Agent>> {
    let known = own.0.provost.view(KnownAgents).await.map_err(map::fault)?;
    // People, and the daemon itself, are no agents.
    Ok(Json(known.iter().filter(|it| !role::is_reserved(&it.id)).map(map::known_agent).collect()))
}

async fn events(
    State(own): State<Own>,
    _caller: Caller,
    Query(query): Query<wire::EventsQuery>,
) -> Answered<wire::Events> {
    let engine = own.0.provost.engine();
    let after = match query.after {
        Some(after) => EventSeq(after),
        None => engine.journal_head().await.map_err(map::fault)?.seq,
    };
    let limit = query.limit.unwrap_or(EVENT_PAGE_MAX).min(EVENT_PAGE_MAX);
    let until = tokio::time::Instant::now() + patience(query.wait_ms);
    let (mut feed, mut events, mut next) = (engine.feed(after), Vec::new(), after);
    while events.len() < usize::from(limit) {
        // What is there already is told, however slow the machine is; only for the first event is waited.
        let event = match feed.ready().await.map_err(unavailable)? {
            Some(event) => event,
            None if !events.is_empty() => break,
            None => match tokio::time::timeout_at(until, feed.next()).await {
                Ok(event) => event.map_err(unavailable)?,
                Err(_) => break,
            },
        };
        next = event.seq;
        let mut value = serde_json::to_value(&*event).unwrap_or(Value::Null);
        value["at"] = json!(event.at.rfc3339());
        events.push(value);
    }
    Ok(Json(wire::Events { events, next: next.0 }))
}

fn unavailable(err: impl std::fmt::Display) -> Fault {
    Fault::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", err.to_string())
}

async fn graph(State(own): State<Own>, _caller: Caller) -> Answered<wire::Graph> {
    let state = own.0.provost.graph_state().await.map_err(map::graph_fault)?;
    Ok(Json(map::graph(state)))
}

async fn callers(
    State(own): State<Own>,
    _caller: Caller,
    Query(query): Query<wire::GraphQuery>,
) -> Answered<wire::Calls> {
    calls(&own, &query, Way::Callers).await
}

async fn callees(
    State(own): State<Own>,
    _caller: Caller,
    Query(query): Query<wire::GraphQuery>,
) -> Answered<wire::Calls> {
    calls(&own, &query, Way::Callees).await
}

async fn calls(own: &Own, query: &wire::GraphQuery, way: Way) -> Answered<wire::Calls> {
    let found = own.0.provost.calls(&query.symbol, way).await.map_err(map::graph_fault)?;
    Ok(Json(map::calls(&found)))
}

async fn delegate(
    State(own): State<Own>,
    Caller(who): Caller,
    Asked(body): Asked<wire::Delegate>,
) -> Answered<wire::Delegated> {
    let verb = map::delegate(body)?;
    let task = verb.task.clone();
    Ok(Json(match own.0.provost.delegate(&who, verb).await.map_err(map::fault)? {
        Answer::Done(done) => map::delegated(&task, &done.state),
        Answer::Parked(id) => map::parked(&task, id),
        Answer::Denied(denial) => map::denied(&task, denial),
    }))
}

async fn screenshot(
    State(own): State<Own>,
    Caller(who): Caller,
    Asked(body): Asked<wire::Screenshot>,
) -> Answered<wire::Delegated> {
    let verb = map::screenshot(body)?;
    let task = verb.task.clone();
    Ok(Json(match own.0.provost.submit_judged(&who, verb).await.map_err(map::fault)? {
        Answer::Done(done) => map::delegated(&done.task, &done.state),
        Answer::Parked(id) => {
            // The one that waits already, if the caller has asked before.
            let waiting = own.0.provost.view(WaitingOne(id)).await.map_err(map::fault)?;
            let waiting = waiting.and_then(|it| it.task().cloned());
            map::parked(waiting.as_ref().unwrap_or(&task), id)
        }
        Answer::Denied(denial) => map::denied(&task, denial),
    }))
}

async fn switch_worker(
    State(own): State<Own>,
    Caller(who): Caller,
    Asked(body): Asked<wire::SwitchWorker>,
) -> Answered<wire::WorkerSwitched> {
    let worker = map::agent(&body.worker, "worker")?;
    let to = if body.on { Switch::On } else { Switch::Off };
    let from = own.0.provost.switch_worker(&who, &worker, to, to.word()).await.map_err(map::fault)?;
    let (from, to) = (from.word().into(), to.word().into());
    Ok(Json(wire::WorkerSwitched { worker: body.worker, from, to }))
}

async fn cancel(
    State(own): State<Own>,
    Caller(who): Caller,
    Asked(body): Asked<wire::Cancel>,
) -> Answered<wire::TaskState> {
    let verb = map::cancel(body)?;
    let task = verb.task.to_string();
    let done = submit(&own, &who, verb).await?;
    Ok(Json(wire::TaskState { task, state: map::state_word(&done.state).into() }))
}

async fn report(
    State(own): State<Own>,
    Caller(who): Caller,
    Asked(body): Asked<wire::Report>,
) -> Answered<wire::TaskState> {
    let task = body.task.clone();
    if body.status == "ack" {
        submit(&own, &who, AckTask { task: map::task_id(&task)? }).await?;
        return Ok(Json(wire::TaskState { task, state: "acknowledged".into() }));
    }
    let done = submit(&own, &who, map::report(body)?).await?;
    Ok(Json(wire::TaskState { task, state: map::state_word(&done.state).into() }))
}

async fn answer(
    State(own): State<Own>,
    Caller(who): Caller,
    Asked(body): Asked<wire::Answer>,
) -> Answered<wire::Answered> {
    let done = submit_judged(&own, &who, map::answer(body)?).await?;
    let (task, failed) = (done.task.map(|it| it.to_string()), done.failed.map(Into::into));
    Ok(Json(wire::Answered { task, failed }))
}

async fn record(
    State(own): State<Own>,
    Caller(who): Caller,
    Asked(body): Asked<wire::Record>,
) -> Answered<wire::Done> {
    submit(&own, &who, map::record(&body)?).await?;
    Ok(Json(wire::Done { message: "on record".into() }))
}

async fn reload(State(own): State<Own>, Caller(who): Caller) -> Answered<wire::Done> {
    order(&own, &who, Order::Reload).await
}

async fn listen(
    State(own): State<Own>,
    Caller(who): Caller,
    Asked(body): Asked<wire::Listen>,
) -> Answered<wire::Done> {
    let wire::Listen { address, secret } = body;
    let secret = secret.map(|it| crate::base::Secret::new(it.into_bytes()));
    order(&own, &who, Order::Listen(address.into(), secret)).await
}

async fn stop(State(own): State<Own>, Caller(who): Caller) -> Answered<wire::Done> {
    order(&own, &who, Order::Stop).await
}

/// Orders are the operator's; agents that share the user do not give them. One that leaves its name out gains nothing by them: what
/// is known of agents, and what a person holds back, stays so over a restart.
async fn order(own: &Own, who: &Principal, order: Order) -> Answered<wire::Done> {
    if !who.may(crate::domain::Scope::Operate) {
        return Err(map::fault(crate::domain::Refusal::OutOfScope { needs: crate::domain::Scope::Operate }));
    }
    let gone = || Fault::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", "the daemon is shutting down");
    let (reply, done) = oneshot::channel();
    own.0.orders.send((order, reply)).await.map_err(|_| gone())?;
    match done.await.map_err(|_| gone())? {
        Ok(message) => Ok(Json(wire::Done { message })),
        Err(message) => Err(Fault::new(StatusCode::UNPROCESSABLE_ENTITY, "refused", message)),
    }
}
