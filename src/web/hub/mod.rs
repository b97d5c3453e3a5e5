//! The page over all repositories of the user: each repository's page is below `/r/REPOSITORY/`, the list of
//! everything that needs the user is at `/`, and one stream carries the events of all.
//!
//! ```text
//!   browser -- loopback HTTP --> this process -- own API's socket --> the daemon of each repository
//! ```
//!
//! Promises: the process holds no key and no token, and has only the right of a page, to read; a request that a passkey has
//! signed goes unchanged to the daemon of the repository in the address, and that daemon checks it. The process stores nothing
//! that could be lost. It waits once for a daemon that does not answer, and other repositories do not wait for it. The shell
//! decides who may connect (`protocols::loopback`), and the page's modules decide what they show of a repository.
#![forbid(unsafe_code)]

mod follow;
mod known;
mod log;
mod merged;
mod serve;
mod stream;

use std::sync::Arc;
use std::time::Duration;

use hyper::header::HeaderMap;
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};

use super::query::Query;
use super::session::Sees;
use super::{JSON, WebError, assets, browser_rules, document, headers, rows, words};
use known::{Hub, Repo};
use provost_base::limits::{HUB_VIEW_MS, WEB_BODY_BYTES_MAX};
use provost_domain::Door;
use provost_protocols::loopback::{AdmittedRequest, Answer, Body, BrowserRules, LoopbackDoor, whole};
pub use serve::{Failed, Start, run};

/// The door for browsers, over all repositories.
struct HubDoor {
    names: Vec<String>,
    hub: Hub,
}

/// Splits a path: the base path of a repository's page, the repository, and the path within its page.
fn of_one(path: &str) -> Option<(&str, &str, &str)> {
    let rest = path.strip_prefix("/r/")?;
    let end = rest.find('/').unwrap_or(rest.len());
    let (id, asked) = rest.split_at(end);
    let is_id =
        !id.is_empty() && id.len() <= 64 && id.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'));
    let base = &path[.."/r/".len() + end];
    is_id.then_some((base, id, if asked.is_empty() { "/" } else { asked }))
}

/// Returns the document at a path.
fn document_at(path: &str) -> Option<String> {
    match of_one(path) {
        Some((base, _, asked)) => document::of_one(base, asked),
        None => document::over_all(path),
    }
}

impl HubDoor {
    async fn respond(&self, asked: AdmittedRequest) -> Result<Answer, WebError> {
        let AdmittedRequest { head, body, caller, .. } = asked;
        if !matches!(head.method, Method::GET | Method::HEAD) {
            let process = caller.began_at().map(|it| it.pid);
            return self.hand_on(&head, process, body).await;
        }
        let path = head.uri.path();
        if let Some(name) = path.strip_prefix("/assets/") {
            return assets::answer(name).ok_or_else(WebError::not_there);
        }
        if let Some(page) = document_at(path) {
            return Ok(whole(StatusCode::OK, "text/html; charset=utf-8", page));
        }
        let below = of_one(path).map_or(path, |(_, _, asked)| asked);
        if !super::is_for_scripts(below) && super::wants_document(&head.headers) {
            let page = document::nothing_there();
            return Ok(whole(StatusCode::NOT_FOUND, "text/html; charset=utf-8", page));
        }
        let query = Query::of(head.uri.query().unwrap_or_default())?;
        if path == super::stream::PATH {
            return self.hub.stream(&head, &query);
        }
        let said = match of_one(path) {
            Some((_, id, asked)) => self.rows_of(id, asked, &query).await?,
            None => merged::rows(&self.hub, path.strip_prefix("/rows/").unwrap_or_default(), &query).await?,
        };
        Ok(whole(StatusCode::OK, JSON, said))
    }

    /// Returns a view of one repository.
    async fn rows_of(&self, id: &str, asked: &str, query: &Query) -> Result<String, WebError> {
        let name = asked.strip_prefix("/rows/").ok_or_else(WebError::not_there)?;
        let repo = self.repo(id)?;
        let client = repo.client()?;
        let waits = query.number("wait_ms")?.filter(|_| name == "output").unwrap_or(0);
        let most = Duration::from_millis(HUB_VIEW_MS.saturating_add(waits));
        // The readers here are processes of this user; a daemon that wants a sign-in by passkey first refuses this page.
        let work = rows::answer(&client, name, query, known::now(), Sees::All, Some(&repo.lead));
        repo.in_time(most, work).await
    }

    fn repo(&self, id: &str) -> Result<Arc<Repo>, WebError> {
        self.hub.get(id).ok_or_else(|| {
            let message = "no daemon of this repository has run since this page was opened";
            let mut err = WebError::new(StatusCode::NOT_FOUND, "no_such_repository", message);
            err.body.hint = Some("in the repository: provost up".into());
            err
        })
    }

    /// Passes a request body on to the daemon of the repository in the address, and returns its answer.
    async fn hand_on(&self, head: &Parts, process: Option<u32>, body: Body) -> Result<Answer, WebError> {
        // The page's own paths accept no such body: no request concerns all repositories.
        let (_, id, asked) = of_one(head.uri.path()).unwrap_or(("", "", ""));
        let (which, taken) = words::taken_over_all(head, asked, body).await?;
        let repo = self.repo(id)?;
        let client = repo.client()?;
        let client = match process {
            Some(process) => client.bound_to(process),
            None => client,
        };
        let said = words::said(&client, which, &taken.bytes, Some(&repo.lead))
            .await
            .map_err(|err| repo.told(err))?;
        Ok(whole(StatusCode::OK, JSON, said))
    }
}

impl LoopbackDoor for HubDoor {
    fn door(&self) -> Door {
        Door::Web
    }

    fn body_bytes_max(&self) -> usize {
        WEB_BODY_BYTES_MAX
    }

    fn browser_rules(&self) -> BrowserRules {
        browser_rules(self.names.clone())
    }

    fn is_entrance(&self, path: &str) -> bool {
        document_at(path).is_some()
    }

    fn dress(&self, headers: &mut HeaderMap) {
        headers::add(headers);
    }

    async fn answer(&self, asked: AdmittedRequest) -> Answer {
        let sent = !matches!(asked.head.method, Method::GET | Method::HEAD);
        super::finished(self.respond(asked).await, sent)
    }

    fn refuse(&self) -> Answer {
        super::forbidden()
    }

    fn unavailable(&self, why: &str) -> Answer {
        WebError::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", why).into_answer()
    }
}
