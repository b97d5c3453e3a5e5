//! The views over all repositories together.

use std::sync::Arc;
use std::time::Duration;

use hyper::StatusCode;
use tokio::task::JoinSet;

use super::known::{Hub, Repo, now};
use crate::query::Query;
use crate::{WebError, rows};
use provost_api::wire::{Found, SearchQuery};
use provost_base::limits::{DAEMON_ASKED_MS, SEARCH_EACH_MAX};
use provost_view::{self as view, RepositoryOverview, Shown};

/// Returns the blocks of a view over all repositories.
///
/// # Errors
/// A view that does not exist.
pub(super) async fn rows(hub: &Hub, name: &str, query: &Query) -> Result<String, WebError> {
    if name == "search" {
        return rows::over_all(search(hub, query.text("q").unwrap_or_default()).await?, now());
    }
    let show = match name {
        "needs-you" => view::needs_of_all,
        "repositories" => view::repositories,
        _ => return Err(WebError::not_there()),
    };
    let all = hub.all();
    let mut asked: JoinSet<()> = all.iter().filter(|it| it.may_answer()).cloned().map(ask).collect();
    while asked.join_next().await.is_some() {}
    let known: Vec<RepositoryOverview> = all.iter().map(|it| it.known()).collect();
    rows::over_all(show(&known), now())
}

/// Searches all repositories at the same time; the result names those that do not answer in time.
async fn search(hub: &Hub, words: &str) -> Result<Shown, WebError> {
    if words.trim().is_empty() {
        return Ok(view::no_search(
            "Type words that are in a task, a message or an event of any repository.",
        ));
    }
    let words: Arc<str> = words.into();
    let all = hub.all();
    let asked: Vec<_> =
        all.iter().map(|it| tokio::spawn(found(Arc::clone(it), Arc::clone(&words)))).collect();
    let mut answers = Vec::new();
    for asked in asked {
        let answer = asked.await.unwrap_or_else(|_| Err(WebError::not_there()));
        match answer {
            // All daemons parse a search in the same way.
            Err(err) if err.status == StatusCode::BAD_REQUEST => {
                return Ok(view::no_search(&err.body.message));
            }
            Err(err) if err.body.error == "stale" => {
                answers.push(Err("its daemon does not answer in time".into()))
            }
            answer => answers.push(answer.map_err(|err| err.body.message)),
        }
    }
    let known: Vec<RepositoryOverview> = all.iter().map(|it| it.known()).collect();
    Ok(view::search_of_all(&words, &known, &answers))
}

async fn found(repo: Arc<Repo>, words: Arc<str>) -> Result<Found, WebError> {
    let words = words.to_string();
    let query = SearchQuery { words, limit: Some(SEARCH_EACH_MAX), ..SearchQuery::default() };
    let asked = async { Ok(repo.client()?.search(&query).await?) };
    repo.in_time(Duration::from_millis(DAEMON_ASKED_MS), asked).await
}

/// Asks a daemon for everything that needs its user, and keeps the answer. If it does not come in time, the daemon
/// is not asked again until it answers.
async fn ask(repo: Arc<Repo>) {
    let asked = async {
        let client = repo.client()?;
        let about = client.about().await?;
        Ok(client.view_of_needs(about, now()).await?)
    };
    // If there is none, the state of the repository says why.
    if let Ok(needs) = repo.in_time(Duration::from_millis(DAEMON_ASKED_MS), asked).await {
        repo.keep(needs);
    }
}
