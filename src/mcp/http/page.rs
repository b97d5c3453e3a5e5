//! The pages that a host opens for its person: one waiting request, or all of them.
//!
//! The pages only show requests, and accept no answer: any process that can reach this door, and so a model, could
//! press a button on a page. A person answers at a terminal, or in another way that the rule accepts.

use hyper::header::HeaderValue;
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};

use super::HttpError;
use provost_api::wire;
use provost_base::visible;
use provost_client::Client;
use provost_client::approvals::{facts, words};
use provost_protocols::loopback::html::{CONTENT_POLICY, escaped};
use provost_protocols::loopback::{Answer, whole};

/// The name as which the pages read if no token names another.
pub(super) const READER: &str = "approval-page";

const STYLE: &str = "body { font: 1rem/1.5 sans-serif; margin: 2rem; max-width: 60rem; } \
    th { text-align: left; padding-right: 2rem; vertical-align: top; } \
    pre { border-left: .3rem solid #999; padding: .5rem 1rem; white-space: pre-wrap; overflow-wrap: anywhere; }";

/// Answers `GET /approvals` and `GET /approvals/{number}`.
pub(super) async fn answer(client: &Client, head: &Parts) -> Result<Answer, HttpError> {
    if head.method != Method::GET && head.method != Method::HEAD {
        return Err(HttpError::new(StatusCode::METHOD_NOT_ALLOWED, "this page shows, and takes no answer"));
    }
    let not_there = || HttpError::new(StatusCode::NOT_FOUND, "there is no such page");
    let asked = match head.uri.path().trim_start_matches("/approvals").strip_prefix('/') {
        None | Some("") => None,
        Some(id) => Some(id.parse::<u64>().map_err(|_| not_there())?),
    };
    let waiting = client.approvals().await;
    let waiting = waiting.map_err(|err| HttpError::new(StatusCode::SERVICE_UNAVAILABLE, err.to_string()))?;
    let Some(id) = asked else {
        return Ok(page(StatusCode::OK, "What waits for an answer", &list(&waiting)));
    };
    match waiting.iter().find(|it| it.id == id) {
        Some(approval) => Ok(page(StatusCode::OK, &format!("Approval {id}"), &one(approval))),
        None => {
            let gone = "<p>It was answered, has expired, or never was. \
                        <a href=\"/approvals\">What waits</a></p>\n";
            Ok(page(StatusCode::NOT_FOUND, &format!("Approval {id} does not wait"), gone))
        }
    }
}

fn list(waiting: &[wire::Approval]) -> String {
    if waiting.is_empty() {
        return "<p>Nothing.</p>\n".into();
    }
    let row = |it: &wire::Approval| {
        let says = format!("{} wants {}: {}", it.asked_by, it.tool, it.reason);
        format!("<li><a href=\"/approvals/{id}\">{id}</a>: {}</li>\n", escaped(&visible(&says)), id = it.id)
    };
    format!("<ul>\n{}</ul>\n", waiting.iter().map(row).collect::<String>())
}

fn one(approval: &wire::Approval) -> String {
    let facts = facts(approval, str::to_owned);
    let row = |(name, fact): &(&str, String)| format!("<tr><th>{name}</th><td>{}</td></tr>\n", escaped(fact));
    let rows: String = facts.iter().map(row).collect();
    let words: String = words(approval)
        .iter()
        .map(|(says, text)| format!("<p>{}</p>\n<pre>{}</pre>\n", escaped(says), escaped(text)))
        .collect();
    let id = approval.id;
    format!(
        "<table>\n{rows}</table>\n{words}<p>Your answer, at a terminal: <code>provost approve {id}</code> or \
         <code>provost deny {id} --reason WHY</code>. This page takes none.</p>\n"
    )
}

fn page(status: StatusCode, title: &str, body: &str) -> Answer {
    let text = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"UTF-8\">\n<title>Provost: {title}</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n{body}</body>\n</html>\n"
    );
    let mut answer = whole(status, "text/html; charset=utf-8", text);
    answer.headers_mut().insert("content-security-policy", HeaderValue::from_static(CONTENT_POLICY));
    answer
}
