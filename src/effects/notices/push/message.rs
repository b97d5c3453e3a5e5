//! The message that a browser shows: a declarative one, which some browsers show by themselves, and which the page's worker
//! shows in others.
//!
//! By default it has the number, the risk, the asker's name and six characters of the digest. A tap opens exactly
//! this question, and answers nothing: a tap on a notification does not prove a person.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::super::notice_text::{UNCHECKED, digest_of, one_line, risk};
use provost_base::limits::{PUSH_TEXT_BYTES_MAX, PUSH_TTL_S, PUSH_WORDS_BYTES_MAX};
use provost_base::{ApprovalId, Timestamp, clipped};
use provost_domain::{ApprovalFacts, NoticeAbout, NoticeKind, OutgoingNotice, TaskFacts};

/// The mark of a declarative message.
const DECLARATIVE: u32 = 8030;

/// A message before it is sealed.
pub(super) struct Message {
    /// The JSON.
    pub(super) text: String,
    /// How long a push service keeps the message for a browser that it does not reach, in seconds.
    pub(super) ttl_s: u64,
    /// The topic: at the push service, a later message with the same topic replaces this one.
    pub(super) topic: String,
    /// The urgency, in the words of RFC 8030.
    pub(super) urgency: &'static str,
}

/// The texts that are shown, and the target of a tap.
struct Said {
    title: String,
    body: String,
    path: String,
    tag: String,
    silent: bool,
}

/// Returns the message about a notice, for a browser of this page.
pub(super) fn of(notice: &OutgoingNotice, origin: &str, waiting: usize, now: Timestamp) -> Message {
    let said = match &notice.about {
        NoticeAbout::Approval(facts) => match &facts.outcome {
            None => asked(facts),
            Some(outcome) => settled(facts, outcome),
        },
        NoticeAbout::Task(facts) => task(notice.kind, facts),
        NoticeAbout::Passkey { what, name } => passkey(notice, what, name.as_deref()),
        NoticeAbout::Sample => sample(),
    };
    let ttl_s = match &notice.about {
        NoticeAbout::Approval(facts) if facts.outcome.is_none() => {
            facts.expires_at.since_ms(now).div_ceil(1_000)
        }
        _ => PUSH_TTL_S,
    };
    let words: String = notice.words.iter().map(|it| format!("\n{}", one_line(&it.text))).collect();
    let words = match words.is_empty() {
        true => words,
        false => format!("\n{UNCHECKED}{}", clipped(&words, PUSH_WORDS_BYTES_MAX)),
    };
    let about = match &notice.about {
        NoticeAbout::Approval(facts) => Some(facts.approval),
        _ => None,
    };
    let whole = written(&said, &words, origin, (notice.kind, about, waiting));
    let text = match whole.len() <= PUSH_TEXT_BYTES_MAX {
        true => whole,
        false => written(&said, "", origin, (notice.kind, about, waiting)),
    };
    let urgency = if said.silent { "normal" } else { "high" };
    Message { text, ttl_s, topic: said.tag, urgency }
}

fn written(
    said: &Said,
    words: &str,
    origin: &str,
    (kind, approval, waiting): (NoticeKind, Option<ApprovalId>, usize),
) -> String {
    let navigate = format!("{origin}{}", said.path);
    let shown: Value = json!({
        "web_push": DECLARATIVE,
        "notification": {
            "title": one_line(&said.title),
            "body": format!("{}{words}", one_line(&said.body)),
            "navigate": navigate,
            "tag": said.tag,
            "lang": "en",
            "dir": "ltr",
            "silent": said.silent,
            "data": { "navigate": navigate, "kind": kind, "approval": approval },
        },
        "app_badge": waiting,
    });
    shown.to_string()
}

fn asked(facts: &ApprovalFacts) -> Said {
    let id = facts.approval;
    let again = if facts.asked_again > 0 { " again" } else { "" };
    Said {
        title: format!("Approval {id} waits{again} (risk {})", risk(facts.risk)),
        body: format!("asked by {} · {}", facts.asker, digest_of(facts)),
        silent: false,
        ..about(facts)
    }
}

fn settled(facts: &ApprovalFacts, outcome: &str) -> Said {
    let what = match outcome {
        "granted" => "approved",
        "denied" => "denied",
        "expired" => "expired, which counts as denied",
        _ => "taken back by its asker",
    };
    let how = match facts.proof.as_deref() {
        Some("passkey") => " with a passkey",
        Some("weak-human" | "desktop") => " at the desk",
        Some("host-dialog") => " in the asker's program",
        Some("key") => " by an approver's key",
        _ => "",
    };
    let by = facts.answered_by.as_ref().map(|it| format!("by {it} · ")).unwrap_or_default();
    Said {
        title: format!("Approval {}: {what}{how}", facts.approval),
        body: format!("{by}{}", digest_of(facts)),
        silent: true,
        ..about(facts)
    }
}

/// Returns the path and the tag of an approval: a later message with the same tag replaces an earlier one.
fn about(facts: &ApprovalFacts) -> Said {
    let path = format!("/a/{}?d={}", facts.approval, digest_of(facts));
    let tag = format!("approval-{}", facts.approval);
    Said { title: String::new(), body: String::new(), path, tag, silent: false }
}

fn task(kind: NoticeKind, facts: &TaskFacts) -> Said {
    let id = &facts.task;
    let title = match kind {
        NoticeKind::Done => format!("Task {id} is completed"),
        NoticeKind::Tainted => format!("Task {id} has left something that runs later"),
        _ => format!("Task {id} has failed"),
    };
    // A task's id is longer than a topic may be.
    let digest = Sha256::digest(id.as_str().as_bytes());
    let short: String = digest.iter().take(8).map(|it| format!("{it:02x}")).collect();
    Said {
        title,
        body: format!("worker {}, asked by {}", facts.worker, facts.asker),
        path: format!("/t/{}", utf8_percent_encode(id.as_str(), NON_ALPHANUMERIC)),
        tag: format!("task-{short}"),
        silent: false,
    }
}

fn passkey(notice: &OutgoingNotice, what: &str, name: Option<&str>) -> Said {
    let name = name.unwrap_or("?");
    let title = match what {
        "added" => format!("A passkey was added: {name}"),
        "revoked" => format!("A passkey was revoked: {name}"),
        "browser_added" => format!("A browser is told from now on: {name}"),
        "browser_removed" => format!("A browser gets no more notices: {name}"),
        _ => "All passkeys were given up".to_owned(),
    };
    Said {
        title,
        body: "Not you? At a terminal: provost passkey reset --yes".into(),
        path: "/passkeys".into(),
        tag: format!("passkey-{}", notice.event),
        silent: false,
    }
}

fn sample() -> Said {
    Said {
        title: "This is a sample".into(),
        body: "Nothing has happened, and nothing is to be answered.".into(),
        path: "/".into(),
        tag: "sample".into(),
        silent: false,
    }
}
