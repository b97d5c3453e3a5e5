//! Finds the endpoint for a method and a path. Paths are case-insensitive and may end with a slash, as in the
//! published server.

use std::borrow::Cow;

use hyper::Method;
use percent_encoding::percent_decode_str;

use super::error::AgentProtocolError;

/// The endpoints of the door, each with the parameters in its path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Route {
    Status,
    State,
    Announce,
    Agents,
    Agent(String),
    Leave(String),
    Heartbeat(String),
    AgentStatus(String),
    Resources,
    Resource(String),
    Claim,
    Release,
    Lock,
    Unlock,
    Tasks,
    Task(String),
    NewTask,
    MoveTask(String),
    Handoffs,
    Handoff(String),
    NewHandoff,
    Accept(String),
    Reject(String),
    Events,
    NewEvent,
    Stream,
    Lead,
    Health,
    Metrics,
    DashboardBare,
    Dashboard,
    /// A file of the published dashboard.
    Page(String),
}

/// The outcome of the search for a route.
pub(super) enum Found {
    /// The route that answers this method at this path.
    Route(Route),
    /// The methods that the path supports.
    Methods(String),
}

/// Returns the route of a request.
///
/// # Errors
/// A path that does not exist, is malformed, or does not support this method.
pub(super) fn find(method: &Method, path: &str) -> Result<Found, AgentProtocolError> {
    let offers = offers(path)?;
    if offers.is_empty() {
        return Err(AgentProtocolError::not_found("Not found"));
    }
    // The head of an answer is that of the GET.
    let wanted = if *method == Method::HEAD { "GET" } else { method.as_str() };
    let mut words: Vec<&str> = Vec::new();
    for (word, _) in &offers {
        words.push(word);
        if *word == "GET" {
            words.push("HEAD");
        }
    }
    let words = words.join(",");
    if *method == Method::OPTIONS {
        return Ok(Found::Methods(words));
    }
    match offers.into_iter().find(|(word, _)| *word == wanted) {
        Some((_, route)) => Ok(Found::Route(route)),
        None => {
            let fault = AgentProtocolError::new(hyper::StatusCode::METHOD_NOT_ALLOWED, "Method not allowed");
            Err(AgentProtocolError { allow: Some(words), ..fault })
        }
    }
}

/// An endpoint: its method, its path, and its route made from the name in the path. `:id` stands for one segment, a
/// `*` at the end for the rest of the path.
struct Row(&'static str, &'static str, fn(String) -> Route);

/// All endpoints. If a path has several methods, they are listed in this order.
const ROWS: [Row; 32] = [
    Row("GET", "/status", |_| Route::Status),
    Row("GET", "/state", |_| Route::State),
    Row("GET", "/agents", |_| Route::Agents),
    Row("POST", "/agents/announce", |_| Route::Announce),
    Row("DELETE", "/agents/:id", Route::Leave),
    Row("GET", "/agents/:id", Route::Agent),
    Row("POST", "/agents/:id/heartbeat", Route::Heartbeat),
    Row("PATCH", "/agents/:id/status", Route::AgentStatus),
    Row("GET", "/resources", |_| Route::Resources),
    Row("POST", "/resources/claim", |_| Route::Claim),
    Row("POST", "/resources/release", |_| Route::Release),
    Row("POST", "/resources/lock", |_| Route::Lock),
    Row("POST", "/resources/unlock", |_| Route::Unlock),
    Row("GET", "/resources/*", Route::Resource),
    Row("POST", "/tasks", |_| Route::NewTask),
    Row("GET", "/tasks", |_| Route::Tasks),
    Row("PATCH", "/tasks/:id", Route::MoveTask),
    Row("GET", "/tasks/:id", Route::Task),
    Row("POST", "/handoffs", |_| Route::NewHandoff),
    Row("GET", "/handoffs", |_| Route::Handoffs),
    Row("GET", "/handoffs/:id", Route::Handoff),
    Row("PATCH", "/handoffs/:id/accept", Route::Accept),
    Row("PATCH", "/handoffs/:id/reject", Route::Reject),
    Row("POST", "/events", |_| Route::NewEvent),
    Row("GET", "/events", |_| Route::Events),
    Row("GET", "/events/stream", |_| Route::Stream),
    Row("POST", "/lead", |_| Route::Lead),
    Row("GET", "/healthz", |_| Route::Health),
    Row("GET", "/metrics", |_| Route::Metrics),
    // A page's folder and its name without a slash differ, since links in the page are relative.
    Row("GET", "/dashboard/", |_| Route::Dashboard),
    Row("GET", "/dashboard/*", Route::Page),
    Row("GET", "/dashboard", |_| Route::DashboardBare),
];

/// Returns the methods and paths of all endpoints; `:id` and a `*` at the end stand for names.
pub fn routes() -> impl Iterator<Item = (&'static str, &'static str)> {
    ROWS.iter().map(|Row(method, path, _)| (*method, *path))
}

/// Returns all routes of a path, each with its method.
fn offers(path: &str) -> Result<Vec<(&'static str, Route)>, AgentProtocolError> {
    let mut found = Vec::new();
    for Row(method, pattern, route) in &ROWS {
        if let Some(name) = named(pattern, path) {
            found.push((*method, route(decoded(name)?)));
        }
    }
    Ok(found)
}

/// Returns the name in a path, if the path fits the pattern; empty if the pattern has none.
fn named<'a>(pattern: &str, path: &'a str) -> Option<&'a str> {
    let (pattern, path) = (&pattern[1..], path.strip_prefix('/').unwrap_or(path));
    if let Some(folder) = pattern.strip_suffix('*') {
        let (first, rest) = path.split_at_checked(folder.len())?;
        return (first.eq_ignore_ascii_case(folder) && !rest.is_empty()).then_some(rest);
    }
    let folder = "dashboard/";
    if pattern == folder || path.eq_ignore_ascii_case(folder) {
        return (pattern == folder && path.eq_ignore_ascii_case(folder)).then_some("");
    }
    let path = path.strip_suffix('/').unwrap_or(path);
    let (mut wanted, mut segments) = (pattern.split('/'), path.split('/'));
    let mut name = "";
    loop {
        match (wanted.next(), segments.next()) {
            (None, None) => return Some(name),
            (Some(":id"), Some(segment)) => name = segment,
            (Some(word), Some(segment)) if word.eq_ignore_ascii_case(segment) => {}
            _ => return None,
        }
    }
}

/// Decodes percent-encoding.
///
/// # Errors
/// A percent sign without two digits, or bytes that are no text.
pub(super) fn decoded(text: &str) -> Result<String, AgentProtocolError> {
    let bad = || AgentProtocolError::bad("Invalid path");
    let is_digit = |it: &u8| it.is_ascii_hexdigit();
    let mut codes =
        text.split('%').skip(1).map(|it| it.as_bytes().iter().take(2).filter(|it| is_digit(it)).count());
    if !codes.all(|digits| digits == 2) {
        return Err(bad());
    }
    percent_decode_str(text).decode_utf8().map(Cow::into_owned).map_err(|_| bad())
}
