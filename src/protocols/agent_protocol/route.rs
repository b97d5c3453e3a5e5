//! From a method and a path to what is asked for. Paths are case-insensitive and may end with a slash, as those of the
//! published server.

use hyper::Method;

use super::fault::Fault;

/// What is asked for.
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
}

/// What a request leads to.
pub(super) enum Found {
    /// This.
    Route(Route),
    /// The methods that would be answered there.
    Methods(String),
}

/// The route of a request.
///
/// # Errors
/// A path that leads nowhere, is not well-formed, or is not for this method.
pub(super) fn find(method: &Method, path: &str) -> Result<Found, Fault> {
    let offers = offers(path)?;
    if offers.is_empty() {
        return Err(Fault::not_found("Not found"));
    }
    // A head is what a GET would begin with.
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
            let fault = Fault::new(hyper::StatusCode::METHOD_NOT_ALLOWED, "Method not allowed");
            Err(Fault { allow: Some(words), ..fault })
        }
    }
}

/// All that a path can be asked for, each by its method.
fn offers(path: &str) -> Result<Vec<(&'static str, Route)>, Fault> {
    let path = path.strip_prefix('/').unwrap_or(path);
    let is = |segment: &str, word: &str| segment.eq_ignore_ascii_case(word);
    // The one path that may contain further slashes.
    if let Some((first, rest)) = path.split_once('/')
        && is(first, "resources")
    {
        return resource(rest);
    }
    // The folder of a page is another place than its name, since links in it are relative.
    if is(path, "dashboard/") {
        return Ok(vec![("GET", Route::Dashboard)]);
    }
    let path = path.strip_suffix('/').unwrap_or(path);
    let segments: Vec<&str> = path.split('/').collect();
    Ok(match segments.as_slice() {
        [one] => alone(one),
        [first, id] if is(first, "agents") => {
            let mut offers = Vec::new();
            if is(id, "announce") {
                offers.push(("POST", Route::Announce));
            }
            let id = decoded(id)?;
            offers.extend([("DELETE", Route::Leave(id.clone())), ("GET", Route::Agent(id))]);
            offers
        }
        [first, id, last] if is(first, "agents") && is(last, "heartbeat") => {
            vec![("POST", Route::Heartbeat(decoded(id)?))]
        }
        [first, id, last] if is(first, "agents") && is(last, "status") => {
            vec![("PATCH", Route::AgentStatus(decoded(id)?))]
        }
        [first, id] if is(first, "tasks") => {
            let id = decoded(id)?;
            vec![("PATCH", Route::MoveTask(id.clone())), ("GET", Route::Task(id))]
        }
        [first, id] if is(first, "handoffs") => vec![("GET", Route::Handoff(decoded(id)?))],
        [first, id, last] if is(first, "handoffs") && is(last, "accept") => {
            vec![("PATCH", Route::Accept(decoded(id)?))]
        }
        [first, id, last] if is(first, "handoffs") && is(last, "reject") => {
            vec![("PATCH", Route::Reject(decoded(id)?))]
        }
        [first, last] if is(first, "events") && is(last, "stream") => vec![("GET", Route::Stream)],
        _ => Vec::new(),
    })
}

fn alone(word: &str) -> Vec<(&'static str, Route)> {
    match word.to_ascii_lowercase().as_str() {
        "status" => vec![("GET", Route::Status)],
        "state" => vec![("GET", Route::State)],
        "agents" => vec![("GET", Route::Agents)],
        "resources" => vec![("GET", Route::Resources)],
        "tasks" => vec![("POST", Route::NewTask), ("GET", Route::Tasks)],
        "handoffs" => vec![("POST", Route::NewHandoff), ("GET", Route::Handoffs)],
        "events" => vec![("POST", Route::NewEvent), ("GET", Route::Events)],
        "lead" => vec![("POST", Route::Lead)],
        "healthz" => vec![("GET", Route::Health)],
        "metrics" => vec![("GET", Route::Metrics)],
        "dashboard" => vec![("GET", Route::DashboardBare)],
        _ => Vec::new(),
    }
}

/// What is below `/resources/`: a few words, and every file by its path.
fn resource(rest: &str) -> Result<Vec<(&'static str, Route)>, Fault> {
    if rest.is_empty() {
        return Ok(vec![("GET", Route::Resources)]);
    }
    let word = rest.strip_suffix('/').unwrap_or(rest).to_ascii_lowercase();
    let post = match word.as_str() {
        "claim" => Some(Route::Claim),
        "release" => Some(Route::Release),
        "lock" => Some(Route::Lock),
        "unlock" => Some(Route::Unlock),
        _ => None,
    };
    let mut offers: Vec<_> = post.into_iter().map(|route| ("POST", route)).collect();
    offers.push(("GET", Route::Resource(decoded(rest)?)));
    Ok(offers)
}

/// Percent-encoding undone.
pub(super) fn decoded(text: &str) -> Result<String, Fault> {
    let bad = || Fault::bad("Invalid path");
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2).ok_or_else(bad)?;
        let digits = std::str::from_utf8(digits).map_err(|_| bad())?;
        if !digits.bytes().all(|it| it.is_ascii_hexdigit()) {
            return Err(bad());
        }
        bytes.push(u8::from_str_radix(digits, 16).map_err(|_| bad())?);
        rest = after;
    }
    String::from_utf8(bytes).map_err(|_| bad())
}
