//! A notice in words for people, and its link. Every text here may come from an agent in part: no control character is
//! left in it, and each service escapes it in its own way.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use provost_base::{Timestamp, clipped, task_command, visible};
use provost_domain::{ApprovalFacts, NoticeAbout, NoticeKind, NoticeWords, OutgoingNotice, Risk, TaskFacts};

/// A notice as people read it.
pub(super) struct NoticeText {
    /// One line that sums up the notice.
    pub(super) title: String,
    /// The daemon's own facts, one on each line.
    pub(super) facts: Vec<String>,
    /// The commands for the next step, one on each line.
    pub(super) commands: Vec<String>,
    /// The page for the next step: its address and its name.
    pub(super) link: Option<(String, String)>,
    /// The texts that agents wrote.
    pub(super) words: Vec<NoticeWords>,
    /// The kind of event, for programs.
    pub(super) event: &'static str,
    /// The name of the repository.
    pub(super) repository: String,
}

/// The line before texts of agents.
pub(super) const UNCHECKED: &str = "In the agent's own words, unchecked:";

/// Longest name of a repository that is shown, in bytes.
const REPOSITORY_BYTES_MAX: usize = 80;

impl NoticeText {
    pub(super) fn of(notice: &OutgoingNotice, repository: &str, base: Option<&str>) -> Self {
        let told = match &notice.about {
            NoticeAbout::Approval(facts) => match &facts.outcome {
                None => asked(facts),
                Some(outcome) => settled(facts, outcome),
            },
            NoticeAbout::Task(facts) => task(notice.kind, facts),
            NoticeAbout::Passkey { what, name } => passkey(what, name.as_deref()),
            NoticeAbout::Sample => sample(),
        };
        let Said { title, facts, commands, path, event } = told;
        let repository = one_line(&clipped(repository, REPOSITORY_BYTES_MAX));
        let link = base.map(|base| {
            let (path, name) = path.unwrap_or_else(|| ("/".into(), "Open the page".into()));
            (format!("{base}{path}"), name)
        });
        Self {
            title: format!("{repository}: {}", one_line(&title)),
            facts: facts.iter().map(|it| one_line(it)).collect(),
            commands,
            link,
            words: notice.words.clone(),
            event,
            repository,
        }
    }

    /// Returns facts and commands as lines of plain text.
    pub(super) fn lines(&self) -> Vec<String> {
        self.facts.iter().cloned().chain(self.commands.iter().map(|it| format!("$ {it}"))).collect()
    }
}

/// The contents of a notice, without its destination.
struct Said {
    title: String,
    facts: Vec<String>,
    commands: Vec<String>,
    path: Option<(String, String)>,
    event: &'static str,
}

fn asked(facts: &ApprovalFacts) -> Said {
    let id = facts.approval;
    let again = if facts.asked_again > 0 { " again" } else { "" };
    let then = match facts.asks_left {
        0 => "then it counts as denied".to_owned(),
        left => format!("then it is asked again, up to {left} times"),
    };
    let mut lines = about(facts);
    lines.push(format!("rule {}: {}", facts.rule, facts.reason));
    lines.push(format!("may answer: {}", facts.by));
    lines.push(format!("until {}; {then}", minute(facts.expires_at)));
    lines.push(format!("digest {}", digest_of(facts)));
    Said {
        title: format!("approval {id} waits{again} (risk {})", risk(facts.risk)),
        facts: lines,
        commands: vec!["provost approval list".into()],
        path: Some((approval_path(facts), format!("Open approval {id}"))),
        event: if facts.asked_again > 0 { "approval.asked_again" } else { "approval.asked" },
    }
}

fn settled(facts: &ApprovalFacts, outcome: &str) -> Said {
    let id = facts.approval;
    let (what, event) = match outcome {
        "granted" => ("granted", "approval.granted"),
        "denied" => ("denied", "approval.denied"),
        "expired" => ("expired, which counts as denied", "approval.expired"),
        _ => ("taken back by its asker", "approval.withdrawn"),
    };
    let mut lines = about(facts);
    if let Some(who) = &facts.answered_by {
        let proof = facts.proof.as_deref().unwrap_or("unknown");
        lines.push(format!("answered by {who} (proof: {proof})"));
    }
    Said {
        title: format!("approval {id} is {what}"),
        facts: lines,
        commands: Vec::new(),
        path: Some((approval_path(facts), format!("Open approval {id}"))),
        event,
    }
}

/// Returns the asker and the request, as facts.
fn about(facts: &ApprovalFacts) -> Vec<String> {
    let what = match &facts.worker {
        Some(worker) => format!("a task for worker {worker}"),
        None => facts.tool.to_string(),
    };
    let mut lines = vec![format!("asked by {}: {what}", facts.asker)];
    lines.extend(facts.directory.as_ref().map(|it| format!("directory {it}")));
    lines.extend(facts.task.as_ref().map(|it| format!("task {it}")));
    lines
}

fn task(kind: NoticeKind, facts: &TaskFacts) -> Said {
    let id = &facts.task;
    let (title, event) = match kind {
        NoticeKind::Done => (format!("task {id} is completed"), "task.completed"),
        NoticeKind::Tainted => (format!("task {id} has left something that runs later"), "task.tainted"),
        _ => (format!("task {id} has failed"), "task.failed"),
    };
    let mut lines = vec![format!("worker {}, asked by {}", facts.worker, facts.asker)];
    lines.extend(facts.failure.as_ref().map(|it| format!("reason: {it}")));
    lines.extend(
        facts.later.map(|it| format!("files that run later: {it}; look at them before you run anything")),
    );
    if facts.unknown {
        lines.push("its files could not be compared completely".into());
    }
    let encoded = utf8_percent_encode(id.as_str(), NON_ALPHANUMERIC);
    Said {
        title,
        facts: lines,
        commands: vec![task_command("task show", id.as_str(), "")],
        path: Some((format!("/t/{encoded}"), "Open the task".into())),
        event,
    }
}

fn passkey(what: &str, name: Option<&str>) -> Said {
    let (title, event) = match (what, name) {
        ("added", name) => (format!("a passkey was added: {}", name.unwrap_or("?")), "passkey.added"),
        ("revoked", name) => (format!("a passkey was revoked: {}", name.unwrap_or("?")), "passkey.revoked"),
        ("browser_added", name) => {
            (format!("a browser is told from now on: {}", name.unwrap_or("?")), "push.added")
        }
        ("browser_removed", name) => {
            (format!("a browser gets no more notices: {}", name.unwrap_or("?")), "push.removed")
        }
        _ => ("all passkeys were given up".to_owned(), "passkey.reset"),
    };
    Said {
        title,
        facts: vec!["not you? end all of them at a terminal: provost passkey reset --yes".into()],
        commands: vec!["provost passkey list".into()],
        path: None,
        event,
    }
}

fn sample() -> Said {
    Said {
        title: "this is a sample".into(),
        facts: vec!["Nothing has happened, and nothing is to be answered.".into()],
        commands: vec!["provost notify list".into()],
        path: None,
        event: "sample",
    }
}

/// Returns the page of exactly this question: if another one waits under the number by then, the page says so.
fn approval_path(facts: &ApprovalFacts) -> String {
    format!("/a/{}?d={}", facts.approval, digest_of(facts))
}

/// Returns the beginning of the digest, as a person compares it.
pub(super) fn digest_of(facts: &ApprovalFacts) -> String {
    facts.shown.to_string().chars().take(6).collect()
}

pub(super) fn risk(risk: Risk) -> &'static str {
    match risk {
        Risk::Low => "low",
        Risk::Medium => "medium",
        Risk::High => "high",
    }
}

/// Returns a moment to the minute, in UTC: the reader may be anywhere.
fn minute(at: Timestamp) -> String {
    let text = at.rfc3339();
    let day = text.get(..10).unwrap_or_default();
    format!("{day} {} UTC", text.get(11..16).unwrap_or_default())
}

/// Returns a text in one line, without hidden signs.
pub(super) fn one_line(text: &str) -> String {
    visible(&text.replace(['\n', '\t'], " "))
}
