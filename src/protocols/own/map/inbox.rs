//! The entries of an inbox: the dictionary between the own API's words and Provost's.

use super::{OwnError, agent};
use provost_api::wire;
use std::path::Path;

use provost_base::limits::{INBOX_TEXT_MAX, MESSAGE_LEN_MAX};
use provost_base::{AgentId, Json};
use provost_domain::post::Post;
use provost_domain::{Mail, MailKind, Reservation, Task};
use provost_service::{InboxItem, StoredPost};

/// Makes a post from the caller's message.
pub(in super::super) fn post(me: AgentId, it: wire::SendMessage) -> Result<Post, OwnError> {
    let text = it.text.trim();
    if text.is_empty() {
        return Err(OwnError::invalid("text is empty"));
    }
    if text.len() > MESSAGE_LEN_MAX {
        return Err(OwnError::invalid(format!("text has more than {MESSAGE_LEN_MAX} bytes"))
            .hint("put the rest into a file, and name the file"));
    }
    let to = it.to.as_deref().map(str::trim).filter(|it| !it.is_empty());
    let to = to.map(|it| agent(it, "to")).transpose()?;
    let text: Box<str> = text.into();
    let named = || to.clone().ok_or_else(|| OwnError::invalid("to is missing: the agent's name"));
    let re = || it.re.as_deref().map(str::trim).filter(|it| !it.is_empty()).map(Into::into);
    Ok(match it.kind.as_str() {
        "message" => Post::Feedback { agent: named()?, from: me, errors: vec![text], re: re() },
        "answer" => Post::Answer { agent: named()?, from: me, answer: text, re: re() },
        "blocked" => Post::Blocked { agent: me, needs: text, from: named()?.as_str().into() },
        "question" if to.as_ref().is_none_or(|it| it.as_str() == "supervisor") => {
            Post::Question { agent: me, question: text }
        }
        "question" => {
            return Err(OwnError::invalid("questions go to the agent that looks after the others")
                .hint("leave `to` out, or ask the agent with kind message"));
        }
        other => {
            let known = "message, question, answer, blocked";
            return Err(OwnError::invalid(format!("kind '{other}' is not one of {known}")));
        }
    })
}

/// Returns the agent that gets such a message.
pub(in super::super) fn recipient(post: &Post) -> String {
    match post {
        Post::Feedback { agent, .. } | Post::Answer { agent, .. } => agent.to_string(),
        Post::Blocked { from, .. } => from.to_string(),
        _ => "supervisor".into(),
    }
}

pub(in super::super) fn entry(it: &InboxItem) -> wire::InboxEntry {
    match it {
        InboxItem::Letter(letter) => of_letter(letter),
        InboxItem::Mail(mail) => of_mail(mail),
    }
}

/// Returns the beginning of a text, and whether it was cut.
fn begin(mut text: String) -> (String, bool) {
    let end = text.floor_char_boundary(INBOX_TEXT_MAX.min(text.len()));
    let cut = end < text.len();
    text.truncate(end);
    (text, cut)
}

fn of_letter(it: &StoredPost) -> wire::InboxEntry {
    let (text, cut) = begin(said(&it.post));
    wire::InboxEntry {
        post: Some(it.n.0),
        mail: None,
        at: it.at.rfc3339(),
        from: it.post.sender().to_string(),
        kind: it.post.kind().into(),
        text,
        cut,
        task: None,
    }
}

fn list(texts: &[Box<str>]) -> String {
    texts.join(", ")
}

/// Returns the whole content of a message.
pub(in super::super) fn said(post: &Post) -> String {
    match post {
        Post::Status { status, message, files, .. } => {
            let message = message.as_deref().map(|it| format!(": {it}")).unwrap_or_default();
            format!("{status}{message} ({} changed files)", files.len())
        }
        Post::Artifact { status, exports, files, .. } => {
            format!("{status}; offers: {}; files: {}", list(exports), list(files))
        }
        Post::Blocked { needs, .. } => needs.to_string(),
        Post::Verified { agent, message, .. } => {
            let message = message.as_deref().map(|it| format!(": {it}")).unwrap_or_default();
            format!("has checked the work of {agent}{message}")
        }
        Post::Feedback { errors, .. } => errors.join("\n"),
        Post::Question { question, .. } => question.to_string(),
        Post::Intent { files, summary, valid_s, .. } => {
            let files: Vec<&str> = files.iter().map(|it| &*it.path).collect();
            format!("for {valid_s} s: {summary}; files: {}", files.join(", "))
        }
        Post::Answer { answer, re, .. } => match re {
            Some(re) => format!("to \"{re}\": {answer}"),
            None => answer.to_string(),
        },
        Post::Advanced { branch, base, sha, summary, .. } => {
            let summary = summary.as_deref().map(|it| format!(": {it}")).unwrap_or_default();
            format!("{branch} was merged into {base}, which is at {sha} now{summary}")
        }
        Post::Learning { category, title, body, .. } => format!("{category}: {title}: {}", body.as_str()),
        Post::VerifyNow { branch } => format!("the work of {branch} is to be checked"),
    }
}

fn of_mail(it: &Mail) -> wire::InboxEntry {
    let (from, kind, text) = word(&it.kind);
    let (text, cut) = begin(text);
    wire::InboxEntry {
        post: None,
        mail: Some(it.seq.0),
        at: it.at.rfc3339(),
        from,
        kind: kind.into(),
        text,
        cut,
        task: it.kind.task().map(ToString::to_string),
    }
}

fn word(kind: &MailKind) -> (String, &'static str, String) {
    let daemon = || "provost".to_owned();
    match kind {
        MailKind::Work { task, .. } => (daemon(), "work", format!("task {task} is for you")),
        MailKind::Word { task, from, said, report, .. } => {
            let from = from.as_ref().map_or_else(daemon, ToString::to_string);
            (from, "task", format!("task {task} is {said}: {}", report.summary))
        }
        MailKind::Approval { approval, reason, expires_at, .. } => {
            (daemon(), "approval", format!("approval {} waits until {expires_at}: {reason}", approval.0))
        }
        MailKind::Met { file, mine, other } => {
            let Reservation { agent, kind, asked, .. } = &**other;
            let text = format!("{file}, where you have {}, {} {agent}: {asked}", mine.one(), kind.verb());
            (daemon(), "meeting", text)
        }
        MailKind::Wanted { symbol, agent, until, .. } => {
            let text = format!(
                "{agent} waits until {until} for {symbol}, which you have locked; give it back when you can"
            );
            (daemon(), "lock_wanted", text)
        }
    }
}

/// Encodes a worker's task, with the task as its asker wrote it.
pub(in super::super) fn order(task: &Task, payload: &Json, root: &Path) -> wire::WorkOrder {
    let order = &task.order;
    let relative = task.directory.as_ref().map(|it| it.relative.to_string());
    let at = relative.as_deref().filter(|it| !it.is_empty() && *it != ".").map(|it| root.join(it));
    wire::WorkOrder {
        task: order.task.to_string(),
        goal: order.goal.to_string(),
        timeout_s: order.timeout.as_seconds(),
        watch_patterns: order.watch_patterns.iter().map(ToString::to_string).collect(),
        working_dir: relative,
        absolute_working_dir: at.as_deref().unwrap_or(root).to_string_lossy().into_owned(),
        context: order.context.as_ref().map(Json::value),
        raw: payload.value()["task"].clone(),
    }
}

pub(in super::super) fn called_off(kind: &MailKind) -> Option<wire::CalledOff> {
    let MailKind::Word { task, said, report, .. } = kind else { return None };
    Some(wire::CalledOff {
        task: task.to_string(),
        status: said.to_string(),
        reason: report.summary.to_string(),
    })
}
