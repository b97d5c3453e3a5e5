//! The dictionary between the broker's words and Provost's.

use serde_json::{Value, json};

use super::wire::{
    AdvancedMain, AgentRow, AnswerPayload, ArtifactPayload, BlockedPayload, BrokerMessage, Entry,
    FeedbackPayload, FileIntent, IntentPayload, LearningPayload, QuestionPayload, StatusPayload,
    VerifiedPayload,
};
use super::{names, wire};
use provost_auth::Rejected;
use provost_base::{AgentId, Json, Slug, Timestamp, is_absolute};
use provost_domain::post::{IntendedFile, Mailbox, Post, Region};
use provost_domain::{Refusal, RefusalKind};
use provost_service::{Checkouts, StoredPost};

/// The time of an intent that names none, in seconds.
const INTENT_S: u64 = 900;

/// An error answer: its status and body.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct BrokerError(pub(super) u16, pub(super) Value);

impl BrokerError {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self(400, json!({ "error": text.into() }))
    }

    fn empty(field: &str) -> Self {
        Self::new(format!("{field} must not be empty"))
    }

    fn missing(field: &str) -> Self {
        Self::new(format!("invalid message JSON: missing field `{field}`"))
    }

    pub(super) fn placeholder(field: &str, value: &str) -> Self {
        Self(
            400,
            json!({
                "detail": "substitute the real value before publishing",
                "error": "field looks like an unfilled placeholder",
                "field": field,
                "value": shortened(value),
            }),
        )
    }

    pub(super) fn bad_id(value: &str) -> Self {
        Self(
            400,
            json!({
                "detail": "agent_id must be 'supervisor' or a {prefix}/{name} / {prefix}-{name} slug (lowercase, e.g. \
                           feat/add-auth, fix-db-timeout)",
                "error": "invalid agent_id",
                "value": shortened(value),
            }),
        )
    }

    fn bad_name(field: &str, value: &str) -> Self {
        Self(
            400,
            json!({
                "detail": "a name has 1 to 200 bytes and no control characters",
                "error": format!("invalid {field}"),
                "value": shortened(value),
            }),
        )
    }

    fn outside(path: &str) -> Self {
        Self(
            400,
            json!({
                "detail": "write paths from the top of the repository, or absolute ones in one of its work trees",
                "error": "path is outside of the repository",
                "value": shortened(path),
            }),
        )
    }

    /// Makes the error for a name that has a key or token.
    pub(super) fn reserved(agent: &AgentId, why: Rejected) -> Self {
        tracing::warn!(door = "broker", cause = why.cause(), "message refused");
        Self(
            403,
            json!({
                "detail": match why {
                    Rejected::OtherHost => "an agent of another host has this name; publish with a token of it, or under another name",
                    _ => "this name has a key or token of its own; publish with it, or under another name",
                },
                "error": "agent_id is reserved",
                "value": agent.as_str(),
            }),
        )
    }
}

impl From<Refusal> for BrokerError {
    fn from(refusal: Refusal) -> Self {
        let status = match refusal.kind() {
            // The message concerns another agent's task.
            RefusalKind::Rights | RefusalKind::Name | RefusalKind::Delegation => 403,
            RefusalKind::HeldElsewhere | RefusalKind::Exists => 409,
            RefusalKind::Size => 413,
            RefusalKind::Forbidden
            | RefusalKind::Full
            | RefusalKind::Unready
            | RefusalKind::Coordination
            | RefusalKind::Crew
            | RefusalKind::Token => 503,
        };
        Self(status, json!({ "error": refusal.to_string() }))
    }
}

/// Returns the part of a caller's text that an answer repeats.
fn shortened(text: &str) -> String {
    const MOST: usize = 4_096;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

fn blank(text: &str) -> bool {
    text.trim().is_empty()
}

/// Returns whether a whole text is in angle brackets.
pub(super) fn is_placeholder(text: &str) -> bool {
    text.len() >= 2 && text.starts_with('<') && text.ends_with('>') && !text.contains('\n')
}

/// Translates a message into a post.
///
/// # Errors
/// The first fault of the message: first empty members, then names, then placeholders.
pub(super) fn post(
    message: BrokerMessage,
    now: Timestamp,
    knows: impl Fn(&Slug) -> bool,
) -> Result<Post, BrokerError> {
    check(&message)?;
    for id in ids(&message) {
        if !names::is_good(id, &knows) {
            return Err(BrokerError::bad_id(id));
        }
    }
    if let Some((field, value)) = placeholder(&message) {
        return Err(BrokerError::placeholder(field, value));
    }
    translated(message, now)
}

/// Returns the files of a message.
fn files(message: &mut BrokerMessage) -> Vec<&mut String> {
    match message {
        BrokerMessage::Status { payload, .. } => payload.modified_files.iter_mut().collect(),
        BrokerMessage::Artifact { payload, .. } => payload.modified_files.iter_mut().collect(),
        BrokerMessage::Intent { payload, .. } => payload.files.iter_mut().map(intended_path).collect(),
        _ => Vec::new(),
    }
}

fn intended_path(file: &mut FileIntent) -> &mut String {
    match file {
        FileIntent::Path(path) | FileIntent::Parts { path, .. } => path,
    }
}

/// Returns whether a message has an absolute path.
pub(super) fn names_absolute(message: &mut BrokerMessage) -> bool {
    files(message).iter().any(|it| is_absolute(it))
}

/// Rewrites absolute paths as relative to the top of the repository, or of the work tree that contains them.
///
/// # Errors
/// The first path outside of all of them.
pub(super) fn from_the_top(message: &mut BrokerMessage, checkouts: &Checkouts) -> Result<(), BrokerError> {
    for path in files(message).into_iter().filter(|it| is_absolute(it)) {
        let inside = checkouts.inside(path).into_owned();
        if is_absolute(&inside) {
            return Err(BrokerError::outside(path));
        }
        *path = inside;
    }
    Ok(())
}

/// Translates a message that came through another door; its absolute paths are resolved in these checkouts.
///
/// # Errors
/// The status and the sentence of this door's error.
pub fn read(
    message: Value,
    now: Timestamp,
    checkouts: &Checkouts,
    knows: impl Fn(&Slug) -> bool,
) -> Result<Post, (u16, String)> {
    let text = |fault: BrokerError| {
        let said = |member: &str| fault.1[member].as_str().map(str::to_owned);
        let all: Vec<String> = [said("error"), said("value"), said("detail")].into_iter().flatten().collect();
        (fault.0, all.join(": "))
    };
    let mut message = serde_json::from_value(message).map_err(|err| (400, err.to_string()))?;
    from_the_top(&mut message, checkouts).map_err(text)?;
    post(message, now, knows).map_err(text)
}

/// Checks that the required members are not blank, in their order.
fn check(message: &BrokerMessage) -> Result<(), BrokerError> {
    let filled = |pairs: &[(&str, &str)]| match pairs.iter().find(|(_, text)| blank(text)) {
        Some((field, _)) => Err(BrokerError::empty(field)),
        None => Ok(()),
    };
    let id = "agent_id";
    match message {
        BrokerMessage::Status { agent_id, payload } => {
            filled(&[(id, agent_id), ("status field", &payload.status)])
        }
        BrokerMessage::Artifact { agent_id, payload } => {
            filled(&[(id, agent_id), ("status field", &payload.status)])
        }
        BrokerMessage::Blocked { agent_id, payload } => {
            filled(&[(id, agent_id), ("needs field", &payload.needs), ("from field", &payload.from)])
        }
        BrokerMessage::Verified { agent_id, payload } => {
            filled(&[(id, agent_id), ("verified_by field", &payload.verified_by)])
        }
        BrokerMessage::Feedback { agent_id, payload } => {
            filled(&[(id, agent_id), ("from field", &payload.from)])?;
            if payload.errors.is_empty() { Err(BrokerError::empty("errors list")) } else { Ok(()) }
        }
        BrokerMessage::Answer { agent_id, payload } => {
            filled(&[(id, agent_id), ("from field", &payload.from), ("answer field", &payload.answer)])
        }
        BrokerMessage::Question { agent_id, payload } => {
            filled(&[(id, agent_id), ("question field", &payload.question)])
        }
        BrokerMessage::Intent { agent_id, payload } => {
            filled(&[(id, agent_id)])?;
            check_intent(payload)
        }
        BrokerMessage::AdvancedMain(it) => filled(&[
            (id, &it.from),
            ("merged_branch field", &it.merged_branch),
            ("new_main_sha field", &it.new_main_sha),
            ("base field", &it.base),
        ]),
        BrokerMessage::Learning { agent_id, payload } => check_learning(agent_id.as_deref(), payload),
        BrokerMessage::VerifyNow { branch_id } => filled(&[(id, branch_id)]),
    }
}

fn check_intent(payload: &IntentPayload) -> Result<(), BrokerError> {
    if payload.files.is_empty() {
        return Err(BrokerError::empty("intent files list"));
    }
    let path = |file: &FileIntent| match file {
        FileIntent::Path(path) | FileIntent::Parts { path, .. } => blank(path),
    };
    if payload.files.iter().any(path) {
        return Err(BrokerError::new("intent files entry must not be empty or whitespace-only"));
    }
    if blank(&payload.summary) {
        return Err(BrokerError::empty("intent summary field"));
    }
    if payload.valid_for_seconds == Some(0) {
        return Err(BrokerError::new("intent valid_for_seconds must be > 0"));
    }
    Ok(())
}

/// Checks a learning. git-paw's hook names itself in the envelope and may send only category and body; others send all.
fn check_learning(envelope: Option<&str>, payload: &LearningPayload) -> Result<(), BrokerError> {
    let of_hook = envelope.is_some();
    let missing = [
        ("id", payload.id.is_none() && !of_hook),
        ("agent_id", payload.agent_id.is_none() && !of_hook),
        ("category", payload.category.is_none()),
        ("title", payload.title.is_none() && !of_hook),
        ("body", payload.body.is_none()),
        ("timestamp", payload.timestamp.is_none() && !of_hook),
    ];
    if let Some((field, _)) = missing.iter().find(|(_, missing)| *missing) {
        return Err(BrokerError::missing(field));
    }
    let given = |text: &Option<String>| text.as_deref().is_some_and(blank);
    if payload.agent_id.as_deref().or(envelope).is_none_or(blank) {
        return Err(BrokerError::empty("agent_id"));
    }
    let empty = [
        ("learning category field", given(&payload.category)),
        ("learning title field", given(&payload.title)),
        ("learning timestamp field", given(&payload.timestamp)),
    ];
    match empty.iter().find(|(_, empty)| *empty) {
        Some((field, _)) => Err(BrokerError::empty(field)),
        None => Ok(()),
    }
}

/// Returns the names that must have the broker's form.
pub(super) fn ids(message: &BrokerMessage) -> Vec<&str> {
    match message {
        BrokerMessage::Status { agent_id, .. }
        | BrokerMessage::Artifact { agent_id, .. }
        | BrokerMessage::Blocked { agent_id, .. }
        | BrokerMessage::Verified { agent_id, .. }
        | BrokerMessage::Feedback { agent_id, .. }
        | BrokerMessage::Answer { agent_id, .. }
        | BrokerMessage::Question { agent_id, .. }
        | BrokerMessage::Intent { agent_id, .. } => vec![agent_id],
        BrokerMessage::AdvancedMain(it) => vec![&it.from],
        BrokerMessage::Learning { agent_id, payload } => {
            payload.agent_id.as_deref().or(agent_id.as_deref()).into_iter().collect()
        }
        BrokerMessage::VerifyNow { branch_id } => vec![branch_id],
    }
}

/// Returns a member that still has its sample text.
fn placeholder(message: &BrokerMessage) -> Option<(&'static str, &str)> {
    let fields: Vec<(&'static str, &str)> = match message {
        BrokerMessage::Question { payload, .. } => vec![("question", &payload.question)],
        BrokerMessage::Blocked { payload, .. } => vec![("needs", &payload.needs)],
        BrokerMessage::Feedback { payload, .. } => {
            payload.errors.iter().map(|it| ("errors", it.as_str())).collect()
        }
        BrokerMessage::Answer { payload, .. } => {
            let re = payload.re.as_deref().map(|re| ("re", re));
            std::iter::once(("answer", payload.answer.as_str())).chain(re).collect()
        }
        _ => Vec::new(),
    };
    fields.into_iter().find(|(_, text)| is_placeholder(text))
}

fn agent(id: &str) -> Result<AgentId, BrokerError> {
    AgentId::parse(id).map_err(|_| BrokerError::bad_id(id))
}

fn name(field: &str, id: &str) -> Result<AgentId, BrokerError> {
    AgentId::parse(id).map_err(|_| BrokerError::bad_name(field, id))
}

fn boxed(texts: Vec<String>) -> Vec<Box<str>> {
    texts.into_iter().map(Into::into).collect()
}

fn translated(message: BrokerMessage, now: Timestamp) -> Result<Post, BrokerError> {
    Ok(match message {
        BrokerMessage::Status { agent_id, payload } => Post::Status {
            agent: agent(&agent_id)?,
            status: payload.status.into(),
            files: boxed(payload.modified_files),
            message: payload.message.map(Into::into),
            cli: payload.cli.map(Into::into),
            phase: payload.phase.map(Into::into),
            detail: payload.detail.as_ref().map(Json::from_value),
        },
        BrokerMessage::Artifact { agent_id, payload } => Post::Artifact {
            agent: agent(&agent_id)?,
            status: payload.status.into(),
            exports: boxed(payload.exports),
            files: boxed(payload.modified_files),
        },
        BrokerMessage::Blocked { agent_id, payload } => {
            Post::Blocked { agent: agent(&agent_id)?, needs: payload.needs.into(), from: payload.from.into() }
        }
        BrokerMessage::Verified { agent_id, payload } => Post::Verified {
            agent: agent(&agent_id)?,
            by: name("verified_by", &payload.verified_by)?,
            message: payload.message.map(Into::into),
        },
        BrokerMessage::Feedback { agent_id, payload } => Post::Feedback {
            agent: agent(&agent_id)?,
            from: name("from", &payload.from)?,
            errors: boxed(payload.errors),
            re: payload.re.map(Into::into),
        },
        BrokerMessage::Answer { agent_id, payload } => Post::Answer {
            agent: agent(&agent_id)?,
            from: name("from", &payload.from)?,
            answer: payload.answer.into(),
            re: payload.re.map(Into::into),
        },
        BrokerMessage::Question { agent_id, payload } => {
            Post::Question { agent: agent(&agent_id)?, question: payload.question.into() }
        }
        BrokerMessage::Intent { agent_id, payload } => Post::Intent {
            agent: agent(&agent_id)?,
            files: payload.files.into_iter().map(intended).collect(),
            summary: payload.summary.into(),
            valid_s: payload.valid_for_seconds.unwrap_or(INTENT_S),
        },
        BrokerMessage::AdvancedMain(it) => Post::Advanced {
            from: agent(&it.from)?,
            branch: it.merged_branch.into(),
            sha: it.new_main_sha.into(),
            base: it.base.into(),
            at: it.merged_at.to_rfc3339().into(),
            summary: it.summary.map(Into::into),
        },
        BrokerMessage::Learning { agent_id, payload } => learning(agent_id, payload, now)?,
        BrokerMessage::VerifyNow { branch_id } => Post::VerifyNow { branch: agent(&branch_id)? },
    })
}

/// Translates a learning, and fills in the members that git-paw's hook omits.
fn learning(envelope: Option<String>, payload: LearningPayload, now: Timestamp) -> Result<Post, BrokerError> {
    let who = payload.agent_id.or(envelope).unwrap_or_default();
    let body = payload.body.unwrap_or(Value::Null);
    let title = payload.title.unwrap_or_else(|| {
        let text = body.as_str().unwrap_or("learnt");
        text.chars().take(80).collect()
    });
    let json = Json::from_value(&body);
    let id = payload.id.unwrap_or_else(|| {
        let all = format!("{who}|{json}|{}", now.seconds(), json = json.as_str());
        provost_base::Digest::of(all.as_bytes()).to_string().chars().take(16).collect()
    });
    Ok(Post::Learning {
        id: id.into(),
        agent: agent(&who)?,
        branch: payload.branch_id.map(Into::into),
        category: payload.category.unwrap_or_default().into(),
        title: title.into(),
        body: json,
        timestamp: payload.timestamp.unwrap_or_else(|| now.rfc3339()).into(),
    })
}

fn intended(file: FileIntent) -> IntendedFile {
    match file {
        FileIntent::Path(path) => IntendedFile { path: path.into(), regions: Vec::new(), plain: true },
        FileIntent::Parts { path, regions } => {
            let regions = regions.into_iter().map(|it| match it {
                wire::Region::Function { name } => Region::Function(name.into()),
                wire::Region::Class { name } => Region::Class(name.into()),
                wire::Region::Block { anchor } => Region::Block(anchor.into()),
                wire::Region::Range { start_line, end_line } => Region::Lines(start_line, end_line),
            });
            IntendedFile { path: path.into(), regions: regions.collect(), plain: false }
        }
    }
}

/// Translates a post into a message.
// tidy: long because it is one table of kinds
pub fn message(post: Post) -> BrokerMessage {
    let texts = |texts: Vec<Box<str>>| -> Vec<String> { texts.into_iter().map(Into::into).collect() };
    match post {
        Post::Status { agent, status, files, message, cli, phase, detail } => BrokerMessage::Status {
            agent_id: agent.into(),
            payload: StatusPayload {
                status: status.into(),
                modified_files: texts(files),
                message: message.map(Into::into),
                cli: cli.map(Into::into),
                phase: phase.map(Into::into),
                detail: detail.map(|it| it.value()),
            },
        },
        Post::Artifact { agent, status, exports, files } => BrokerMessage::Artifact {
            agent_id: agent.into(),
            payload: ArtifactPayload {
                status: status.into(),
                exports: texts(exports),
                modified_files: texts(files),
            },
        },
        Post::Blocked { agent, needs, from } => BrokerMessage::Blocked {
            agent_id: agent.into(),
            payload: BlockedPayload { needs: needs.into(), from: from.into() },
        },
        Post::Verified { agent, by, message } => BrokerMessage::Verified {
            agent_id: agent.into(),
            payload: VerifiedPayload { verified_by: by.into(), message: message.map(Into::into) },
        },
        Post::Feedback { agent, from, errors, re } => BrokerMessage::Feedback {
            agent_id: agent.into(),
            payload: FeedbackPayload { from: from.into(), errors: texts(errors), re: re.map(Into::into) },
        },
        Post::Question { agent, question } => BrokerMessage::Question {
            agent_id: agent.into(),
            payload: QuestionPayload { question: question.into() },
        },
        Post::Answer { agent, from, answer, re } => BrokerMessage::Answer {
            agent_id: agent.into(),
            payload: AnswerPayload { from: from.into(), answer: answer.into(), re: re.map(Into::into) },
        },
        Post::Intent { agent, files, summary, valid_s } => BrokerMessage::Intent {
            agent_id: agent.into(),
            payload: IntentPayload {
                files: files.into_iter().map(file).collect(),
                summary: summary.into(),
                valid_for_seconds: Some(valid_s),
            },
        },
        Post::Advanced { from, branch, sha, base, at, summary } => {
            BrokerMessage::AdvancedMain(AdvancedMain {
                from: from.into(),
                merged_branch: branch.into(),
                new_main_sha: sha.into(),
                base: base.into(),
                merged_at: at.parse().unwrap_or_default(),
                summary: summary.map(Into::into),
            })
        }
        Post::Learning { id, agent, branch, category, title, body, timestamp } => BrokerMessage::Learning {
            agent_id: None,
            payload: LearningPayload {
                id: Some(id.into()),
                agent_id: Some(agent.into()),
                branch_id: branch.map(Into::into),
                category: Some(category.into()),
                title: Some(title.into()),
                body: Some(body.value()),
                timestamp: Some(timestamp.into()),
            },
        },
        Post::VerifyNow { branch } => BrokerMessage::VerifyNow { branch_id: branch.into() },
    }
}

fn file(file: IntendedFile) -> FileIntent {
    let path = file.path.into();
    if file.plain {
        return FileIntent::Path(path);
    }
    let regions = file.regions.into_iter().map(|it| match it {
        Region::Function(name) => wire::Region::Function { name: name.into() },
        Region::Class(name) => wire::Region::Class { name: name.into() },
        Region::Block(anchor) => wire::Region::Block { anchor: anchor.into() },
        Region::Lines(start_line, end_line) => wire::Region::Range { start_line, end_line },
    });
    FileIntent::Parts { path, regions: regions.collect() }
}

/// Translates a post with its number, as the log has it.
pub fn entry(letter: StoredPost) -> Entry {
    Entry { seq: letter.n.0, timestamp_unix_secs: letter.at.seconds(), message: message(letter.post) }
}

/// Returns an agent's row; `None` for an agent without a status.
pub(super) fn row(it: &Mailbox, now: Timestamp) -> Option<AgentRow> {
    let row = it.row.as_ref()?;
    Some(AgentRow {
        agent_id: it.slug.as_str().into(),
        cli: it.cli.as_deref().unwrap_or_default().into(),
        last_seen_seconds: now.since_ms(row.seen) / 1000,
        phase: row.phase.as_deref().map(Into::into),
        status: row.label.as_ref().into(),
    })
}
