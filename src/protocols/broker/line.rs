//! Writes a message as one line, in the form of git-paw's own log. Line breaks in a writer's text do not start
//! another line.

use super::wire::{BrokerMessage, Entry};

/// Returns the line of a message: its number, its time, its agent, and the message as a sentence.
pub fn log_line(entry: &Entry) -> String {
    let agent = agent(&entry.message);
    let text =
        format!("[{}] {} [{agent}] {}", entry.seq, entry.timestamp_unix_secs, sentence(&entry.message));
    flat(&text)
}

/// Returns a message as a sentence, without line breaks and other control characters.
pub fn sentence(message: &BrokerMessage) -> String {
    flat(&format!("[{}] {}", agent(message), said(message)))
}

fn flat(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

fn agent(message: &BrokerMessage) -> &str {
    match message {
        BrokerMessage::Status { agent_id, .. }
        | BrokerMessage::Artifact { agent_id, .. }
        | BrokerMessage::Blocked { agent_id, .. }
        | BrokerMessage::Verified { agent_id, .. }
        | BrokerMessage::Feedback { agent_id, .. }
        | BrokerMessage::Answer { agent_id, .. }
        | BrokerMessage::Question { agent_id, .. }
        | BrokerMessage::Intent { agent_id, .. } => agent_id,
        BrokerMessage::AdvancedMain(it) => &it.from,
        BrokerMessage::Learning { payload, .. } => payload.agent_id.as_deref().unwrap_or_default(),
        BrokerMessage::VerifyNow { branch_id } => branch_id,
    }
}

fn said(message: &BrokerMessage) -> String {
    match message {
        BrokerMessage::Status { payload, .. } => {
            format!("status: {} ({} files modified)", payload.status, payload.modified_files.len())
        }
        BrokerMessage::Artifact { payload, .. } if payload.exports.is_empty() => {
            format!("artifact: {}", payload.status)
        }
        BrokerMessage::Artifact { payload, .. } => {
            format!("artifact: {} — exports: {}", payload.status, payload.exports.join(", "))
        }
        BrokerMessage::Blocked { payload, .. } => {
            format!("blocked: needs {} from {}", payload.needs, payload.from)
        }
        BrokerMessage::Verified { payload, .. } => match &payload.message {
            Some(message) => format!("verified by {} — {message}", payload.verified_by),
            None => format!("verified by {}", payload.verified_by),
        },
        BrokerMessage::Feedback { payload, .. } => {
            format!("feedback from {}: {} errors", payload.from, payload.errors.len())
        }
        BrokerMessage::Answer { payload, .. } => match &payload.re {
            Some(re) => format!("answer from {} (re: {re}): {}", payload.from, payload.answer),
            None => format!("answer from {}: {}", payload.from, payload.answer),
        },
        BrokerMessage::Question { payload, .. } => format!("question: {}", payload.question),
        BrokerMessage::Intent { payload, .. } => format!(
            "intent: {} files for {}s — {}",
            payload.files.len(),
            payload.valid_for_seconds.unwrap_or_default(),
            payload.summary
        ),
        BrokerMessage::AdvancedMain(it) => {
            format!("advanced-main: {} → {} ({})", it.merged_branch, it.base, it.new_main_sha)
        }
        BrokerMessage::Learning { payload, .. } => format!(
            "learning ({}/{}): {}",
            payload.category.as_deref().unwrap_or_default(),
            payload.branch_id.as_deref().unwrap_or("*"),
            payload.title.as_deref().unwrap_or_default()
        ),
        BrokerMessage::VerifyNow { .. } => "verify-now".to_owned(),
    }
}
