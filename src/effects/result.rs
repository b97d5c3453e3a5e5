//! The result of a run for its task: status, report, failure.
//!
//! DevIt 1.10, "Result (cli)" and "artifacts of the resulting NOTIFY". A worker's text is hostile: the daemon removes
//! escape sequences, control characters and marks that change the direction of text before it reads the rest, and
//! every part has a bound. The door builds the artifacts from the [`Report`]: `truncated` is true if
//! [`Report::original_size`] is set, and `reported_at` is the note's time.

use serde_json::{Map, Value, json};

use super::compact;
use super::mcp_result;
use super::reason::{code, limits_reached, reason, sentence, whole_seconds};
use super::usage::Usage;
use super::work_tree_run::TreeOutcome;
use provost_base::limits::{
    CHANGED_FILES_NAMED_MAX, JSON_DEPTH_MAX, REASON_LEN_MAX, RESPONSE_BYTES_MAX, STDERR_BYTES_MAX,
    SUMMARY_LEN_MAX,
};
use provost_base::{Json, TaskId, Timestamp, Ttl, task_command};
use provost_domain::{Changeset, CollectedArtifact, Failure, Report, Status, Task, TaskChanges, Tier};
use provost_jail::{Limits, ParseMode, Profile, Reader, Space, Transcript, plain_text, why_in_words};

/// Longest summary of a worker that prints text, in bytes. DevIt 1.10.
const TEXT_SUMMARY_MAX: usize = 240;
/// The mark behind a text that was cut. DevIt 1.10.
const CUT_TEXT: &str = "… [truncated]";
/// The mark behind JSON that was cut after its last closing brace. DevIt 1.10.
const CUT_JSON: &str = " … [truncated]";
/// The deepest output that is kept as JSON: doors wrap it, and stored JSON must be readable again.
pub(super) const KEPT_DEPTH_MAX: usize = JSON_DEPTH_MAX - 16;
/// The longest details, in bytes as they are stored; a value may be longer than the text that it was read from.
const DETAILS_BYTES_MAX: usize = 3 * RESPONSE_BYTES_MAX;

/// One run of a task, with all that its result depends on.
#[derive(Clone, Copy, Debug)]
pub struct TaskRun<'a> {
    /// The task, as it was when the run began.
    pub task: &'a Task,
    /// The profile of the worker that ran.
    pub profile: &'a Profile,
    /// The tier of the run's jail; `None` when the run never began.
    pub tier: Option<Tier>,
    /// The model that was resolved for the run.
    pub model: Option<&'a str>,
    /// When the run's process began; `None` when it never did.
    pub started: Option<Timestamp>,
    /// When the run was over.
    pub ended: Timestamp,
    /// How long the run was allowed to take.
    pub limit: Ttl,
    /// The other bounds of the run; `None` when it never began.
    pub limits: Option<&'a Limits>,
    /// Whether the run was seen with as many processes as it may have.
    pub processes_reached: bool,
}

/// The end of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum End {
    /// The process ended with this code.
    Code(i32),
    /// This signal ended the process.
    Signal(i32),
    /// The run took longer than [`TaskRun::limit`].
    TimedOut,
    /// All processes of the run together had more memory than allowed.
    OverMemory,
    /// The run's directories or temporary files grew by more than allowed.
    OverSpace(Space),
    /// The supervisor of the run died, so the run was killed.
    SupervisorLost,
    /// A protected file was replaced from outside while the run went on, so the run was killed.
    ProtectionLost,
    /// The run made a git repository in its workspace, and was ended for that; the place, in words.
    RepositoryMade(Box<str>),
    /// The run was stopped, for this reason.
    Stopped(Box<str>),
    /// The daemon went away while it ran, for this reason.
    Lost(&'static str),
    /// The process was not started.
    NotStarted(Failure),
    /// The daemon spoke with the worker, which has answered.
    Told(Spoken),
    /// The daemon spoke with the worker, which has not answered, for this reason.
    Untold(Box<str>),
}

/// A worker's answer. Its debug form shows only the size.
#[derive(Clone, PartialEq, Eq)]
pub struct Spoken(pub Value);

impl std::fmt::Debug for Spoken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes", self.0.to_string().len())
    }
}

/// The output of a run, as text in which broken UTF-8 was replaced.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Output {
    /// Standard output, as far as it was kept.
    pub stdout: String,
    /// Standard error, as far as it was kept.
    pub stderr: String,
    /// Bytes of standard output that were not kept.
    pub stdout_dropped: u64,
    /// Bytes of standard error that were not kept.
    pub stderr_dropped: u64,
}

/// The fields of [`provost_domain::command::EndRun`] that depend on the run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// Completed, failed or cancelled.
    pub status: Status,
    /// The report for the agents that wait for the task.
    pub report: Report,
    /// The reason why the task failed; `None` unless `status` says that it did.
    pub failure: Option<Failure>,
    /// The model that did the work.
    pub model_used: Option<Box<str>>,
}

/// The parts of the output that were read.
pub(super) struct Reading {
    pub(super) summary: String,
    pub(super) details: Map<String, Value>,
    pub(super) failure: Option<Failure>,
    /// Whether `details.stdout` is the output itself, which has to be cut if it is too long.
    pub(super) verbatim: bool,
}

/// Reads the result of a run that is over.
pub fn outcome(run: &TaskRun<'_>, end: &End, output: &Output) -> Outcome {
    let spoken = spoken(run.profile, output);
    let output = spoken.as_ref().map_or(output, |(output, _)| output);
    let (stdout, stderr) = (plain_text(&output.stdout), plain_text(&output.stderr));
    let parsed = (run.profile.parse == ParseMode::Json).then(|| parse(stdout.trim())).flatten();
    let told = if let End::Told(told) = end { Some(&told.0) } else { None };
    let stdout = told.map_or(stdout, Value::to_string);
    let parsed = told.cloned().or(parsed);
    let said = spoken.as_ref().and_then(|(_, transcript)| transcript.failure().map(str::to_owned));
    let complaint = said.or_else(|| parsed.as_ref().and_then(complaint));
    let mut reading = match end {
        End::Told(told) => mcp_result::read(&told.0, longest(run.profile)),
        End::Code(0) => match &complaint {
            Some(why) => gave_up(run, why, &stdout, &stderr),
            None => read(run, &stdout, &stderr, parsed.as_ref()),
        },
        _ => failed(run, end, complaint.as_deref(), &stdout, &stderr),
    };
    let original_size = shorten(run.profile, &mut reading, &stdout, output.stdout_dropped);
    let (exit_code, exit_reason) = match (&reading.failure, end) {
        (Some(Failure::WorkerFailed { why }), End::Code(0) | End::Told(_)) => (0, why.to_string()),
        _ => (code(end), reason(run, end)),
    };
    let told = || {
        let (_, transcript) = spoken.as_ref()?;
        let model = transcript.model().map(str::to_owned);
        Some(Usage { model, ..Usage::from(transcript.used()) })
    };
    let usage = parsed.as_ref().map(Usage::of).or_else(told).unwrap_or_default();
    let mut metadata = metadata(run, exit_code, &exit_reason, &usage);
    metadata["stdout_dropped_bytes"] = json!(output.stdout_dropped);
    metadata["stderr_dropped_bytes"] = json!(output.stderr_dropped);
    metadata["limits_reached"] = json!(limits_reached(run, end, output));
    if spoken.is_none() && run.profile.agent.is_some_and(|agent| agent.reader != Reader::Lines) {
        metadata["messages_understood"] = json!(false);
    }
    Outcome {
        status: match (&reading.failure, end) {
            (_, End::Stopped(_)) => Status::Cancelled,
            (Some(_), _) => Status::Failed,
            (None, _) => Status::Completed,
        },
        report: Report {
            summary: clip(&plain_text(&reading.summary), SUMMARY_LEN_MAX).into(),
            details: details(reading.details),
            evidence: None,
            metadata: Some(Json::from_value(&metadata)),
            original_size,
            relay: None,
        },
        failure: reading.failure,
        model_used: run.model.or(usage.model.as_deref()).map(Into::into),
    }
}

/// Adds the kept changes to a result: the files, and the place where they are found.
pub(super) fn with_artifacts(mut outcome: Outcome, harvest: &Changeset, task: &TaskId) -> Outcome {
    let mut members = members(outcome.report.details.as_ref());
    let row = |it: &CollectedArtifact| {
        let (artifact, (added, removed)) = (&it.artifact, it.lines);
        json!({ "id": artifact.id, "type": artifact.kind, "path": artifact.path, "added": added, "removed": removed })
    };
    let named = harvest.collected.iter().take(CHANGED_FILES_NAMED_MAX);
    members.insert("artifacts".into(), named.map(row).collect());
    let more = harvest.collected.len().saturating_sub(CHANGED_FILES_NAMED_MAX);
    if more > 0 {
        members.insert("more_artifacts".into(), more.into());
    }
    if !harvest.collected.is_empty() {
        members.insert("apply".into(), json!(task_command("apply", task.as_str(), "")));
    }
    if !harvest.left_out.is_empty() {
        members.insert("left_out".into(), json!(harvest.left_out));
    }
    outcome.report.details = details(members);
    outcome
}

impl Outcome {
    /// Describes the end of a run that has not ended well; `None` for one that has.
    pub(super) fn unfinished(&self) -> Option<String> {
        match (&self.failure, self.status) {
            (Some(failure), _) => Some(sentence(failure)),
            (None, Status::Completed) => None,
            (None, _) => Some("it was cancelled".into()),
        }
    }
}

/// Adds the commit of a run's changes to a result. A run that has ended well, and whose changes could not be committed,
/// has failed.
pub(super) fn with_work_tree(mut outcome: Outcome, tree: &TreeOutcome) -> Outcome {
    let mut members = members(outcome.report.details.as_ref());
    members.insert("work_tree".into(), tree.details());
    outcome.report.details = details(members);
    match &tree.failed {
        Some(why) if outcome.failure.is_none() && outcome.status == Status::Completed => {
            let summary = format!("{why}. {}", outcome.report.summary).into();
            let failure = Some(Failure::WorkerFailed { why: why.as_str().into() });
            Outcome {
                status: Status::Failed,
                report: Report { summary, ..outcome.report },
                failure,
                ..outcome
            }
        }
        _ => outcome,
    }
}

/// Returns the members of a result's details.
fn members(details: Option<&Json>) -> Map<String, Value> {
    match details.map(Json::value) {
        Some(Value::Object(members)) => members,
        Some(other) => Map::from_iter([("output".to_owned(), other)]),
        None => Map::new(),
    }
}

/// Fails a result if only a part of it was kept, however well the worker has ended.
pub(super) fn in_part(outcome: Outcome, harvest: &Changeset) -> Outcome {
    if outcome.failure.is_some() || outcome.status != Status::Completed {
        return outcome;
    }
    let files = harvest.collected.len();
    let in_part = || format!("only a part of what it has changed is kept, {files} files of it").into();
    let why = harvest.beyond.clone().unwrap_or_else(in_part);
    let report = Report { summary: format!("{why}. {}", outcome.report.summary).into(), ..outcome.report };
    Outcome { status: Status::Failed, report, failure: Some(Failure::WorkerFailed { why }), ..outcome }
}

/// Returns the numbers of a run's kept changes for the task's record; `None` if none were kept.
pub(super) fn changes_of(harvest: &Changeset) -> Option<TaskChanges> {
    let files = u32::try_from(harvest.collected.len()).unwrap_or(u32::MAX);
    let sum = |of: fn(&CollectedArtifact) -> u64| harvest.collected.iter().map(of).sum();
    let (added, removed) = (sum(|it| it.lines.0), sum(|it| it.lines.1));
    (files > 0).then(|| TaskChanges { files, added, removed, ..TaskChanges::default() })
}

/// Reads the output of a process that ended well, in the worker's parse mode.
fn read(run: &TaskRun<'_>, stdout: &str, stderr: &str, parsed: Option<&Value>) -> Reading {
    let mut reading = match (run.profile.parse, parsed) {
        (ParseMode::Text, _) => text(run, stdout, stderr),
        (ParseMode::Json, Some(value)) => structured(value, stderr),
        (ParseMode::Json, None) => {
            let what = if stdout.trim().is_empty() { "is empty" } else { "holds no JSON value" };
            let why = format!("its output {what}, where parse_mode = \"json\" needs one");
            let summary = format!("Worker '{}' failed: {why}", run.profile.program.display());
            let failure = Failure::WorkerFailed { why: why.into() };
            return Reading { failure: Some(failure), ..verbatim(summary, stdout, stderr) };
        }
    };
    if run.task.order.format.as_deref() == Some("compact")
        && let Some(prose) = prose(stdout, parsed)
    {
        reading.summary = compact::SUMMARY.into();
        reading.details = compact::details(prose, &bounded_stderr(stderr));
        reading.verbatim = false;
    }
    reading
}

/// Returns the answer of an agent that writes messages, which replaces its whole output.
fn spoken(profile: &Profile, output: &Output) -> Option<(Output, Transcript)> {
    let reader = profile.agent.map(|agent| agent.reader).filter(|reader| *reader != Reader::Lines)?;
    let transcript = Transcript::of(reader, &output.stdout);
    if !transcript.understood() {
        return None;
    }
    // The part that was not kept came before the answer.
    let stdout = transcript.answer().to_owned();
    let (stderr, stderr_dropped) = (output.stderr.clone(), output.stderr_dropped);
    Some((Output { stdout, stderr, stdout_dropped: 0, stderr_dropped }, transcript))
}

/// Returns the result of a process that ended well, but reports a failure in its output.
fn gave_up(run: &TaskRun<'_>, why: &str, stdout: &str, stderr: &str) -> Reading {
    let summary = format!("Worker '{}' failed: {why}", run.profile.program.display());
    let failure = Failure::WorkerFailed { why: why.into() };
    Reading { failure: Some(failure), ..verbatim(summary, stdout, stderr) }
}

/// Returns the error that a model's program reports in the one JSON value that it ends with.
fn complaint(value: &Value) -> Option<String> {
    let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
    let failed = value.get("is_error").and_then(Value::as_bool) == Some(true);
    (failed && text("type") == "result").then(|| why_in_words(text("result"), value))
}

fn text(run: &TaskRun<'_>, stdout: &str, stderr: &str) -> Reading {
    let summary = match stdout.trim() {
        "" => format!("Worker {} completed without output", run.profile.id),
        said => clip(said, TEXT_SUMMARY_MAX).to_owned(),
    };
    verbatim(summary, stdout, stderr)
}

fn structured(value: &Value, stderr: &str) -> Reading {
    let filled = |it: &Value| it.as_str().filter(|text| !text.trim().is_empty()).map(str::to_owned);
    let named = ["result", "response"].iter().find_map(|key| value.get(key).and_then(filled));
    let content = || value.get("content")?.as_array()?.iter().find_map(|it| it.get("text").and_then(filled));
    let mut details = Map::from_iter([("stdout".to_owned(), value.clone())]);
    if !stderr.trim().is_empty() {
        details.insert("stderr".into(), bounded_stderr(stderr).into());
    }
    let summary = named.or_else(content).unwrap_or_else(|| "Worker completed".into());
    Reading { summary, details, failure: None, verbatim: true }
}

fn failed(run: &TaskRun<'_>, end: &End, complaint: Option<&str>, stdout: &str, stderr: &str) -> Reading {
    let mut why = reason(run, end);
    // Some models' programs report errors on their standard output, and nothing on standard error.
    let is_model =
        run.profile.agent.is_some() && run.task.order.command().is_none() && stderr.trim().is_empty();
    let last = || stdout.trim_end().lines().next_back().filter(|_| is_model).map(str::trim);
    let is_own = matches!(end, End::Code(_));
    // A run that was stopped for its time may have waited for its model's service all along.
    let told = complaint.filter(|_| is_own || *end == End::TimedOut);
    let complaint = told.or_else(|| last().filter(|_| is_own)).filter(|it| !it.is_empty());
    if let Some(complaint) = complaint {
        why = format!("{why}: {}", clip(complaint, TEXT_SUMMARY_MAX));
    }
    let summary = match end {
        End::Code(_) | End::Signal(_) => {
            let said = stderr.trim();
            let said = if complaint.is_some() || said.is_empty() { why.as_str() } else { said };
            format!("Worker '{}' failed: {said}", run.profile.program.display())
        }
        End::Lost(reason) => format!("Worker {} was lost: {reason} while it ran", run.profile.id),
        End::Stopped(reason) => format!("Worker {} was stopped: {reason}", run.profile.id),
        End::Untold(why) => why.to_string(),
        _ => format!("Worker execution error: {why}"),
    };
    let failure = match end {
        End::Stopped(_) => None,
        End::TimedOut => Some(Failure::RunTimeout { timeout_s: whole_seconds(run.limit) }),
        End::Lost(_) => Some(Failure::Lost),
        End::NotStarted(failure) => Some(failure.clone()),
        End::Signal(signal) => {
            Some(Failure::WorkerFailed { why: format!("terminated by signal {signal}").into() })
        }
        _ => Some(Failure::WorkerFailed { why: why.into() }),
    };
    Reading { failure, ..verbatim(summary, stdout, stderr) }
}

fn verbatim(summary: String, stdout: &str, stderr: &str) -> Reading {
    let stderr = bounded_stderr(stderr);
    let details =
        Map::from_iter([("stdout".to_owned(), stdout.into()), ("stderr".to_owned(), stderr.into())]);
    Reading { summary, details, failure: None, verbatim: true }
}

/// Returns the text that `format = "compact"` can condense: prose, not structured data.
fn prose<'a>(stdout: &'a str, parsed: Option<&'a Value>) -> Option<&'a str> {
    let structured = |it: &Value| it.is_object() || it.is_array();
    let text = match parsed {
        Some(value) if structured(value) => return None,
        Some(Value::String(text)) => text.as_str(),
        _ => stdout,
    };
    let is_data = || Json::parse(text.trim()).is_ok_and(|json| structured(&json.value()));
    (!text.trim().is_empty() && !is_data()).then_some(text)
}

/// Parses the whole text as one JSON value, or else the last line that is one. DevIt 1.10, `parse_mode`.
fn parse(text: &str) -> Option<Value> {
    let kept = |text: &str| {
        let value = Json::parse(text).ok()?.value();
        (depth(&value) <= KEPT_DEPTH_MAX).then_some(value)
    };
    kept(text).or_else(|| text.lines().rev().find_map(|line| kept(line.trim())))
}

/// Returns the depth of a value. The parser's own limit bounds the recursion.
pub(super) fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// Applies the longest response; returns the original size in bytes of an output that was cut.
///
/// DevIt 1.10, `max_response_chars`, which counts bytes of the text.
fn shorten(profile: &Profile, reading: &mut Reading, stdout: &str, dropped: u64) -> Option<u64> {
    let most = longest(profile);
    let kept_too_long = stdout.len() > most;
    if !kept_too_long && dropped == 0 {
        return None;
    }
    let original = dropped.saturating_add(stdout.len() as u64);
    // Agents that print a line for each step end with the line that counts; only a configured limit cuts that off.
    let last_line_fits = || {
        let kept = reading.details.get("stdout").filter(|it| !it.is_string());
        profile.response_bytes_max.is_none() && kept.is_some_and(|it| it.to_string().len() <= most)
    };
    if reading.verbatim && kept_too_long && !last_line_fits() {
        reading.details.insert("stdout".into(), cut(stdout, most).into());
    }
    reading.details.insert("truncated".into(), true.into());
    reading.details.insert("original_size".into(), original.into());
    Some(original)
}

/// Returns the longest response that a worker's profile lets through, in bytes.
fn longest(profile: &Profile) -> usize {
    profile.response_bytes_max.unwrap_or(RESPONSE_BYTES_MAX).min(RESPONSE_BYTES_MAX)
}

fn cut(text: &str, most: usize) -> String {
    let head = clip(text, most);
    if !text.trim_start().starts_with(['{', '[']) {
        return format!("{head}{CUT_TEXT}");
    }
    let end = head.rfind('}').map_or(head.len(), |at| at + 1);
    format!("{}{CUT_JSON}", &head[..end])
}

/// Returns details in their stored form. Details that could not be read back as they were written are kept as text.
fn details(details: Map<String, Value>) -> Option<Json> {
    let json = Json::from_value(&Value::Object(details));
    if json.as_str().len() <= DETAILS_BYTES_MAX && Json::parse(json.as_str()).is_ok() {
        return Some(json);
    }
    let excerpt = cut(json.as_str(), RESPONSE_BYTES_MAX);
    Some(Json::from_value(&json!({ "stdout": excerpt, "truncated": true })))
}

/// Returns the metadata. DevIt 1.10 requires all keys at all times. The last ones are ours.
fn metadata(run: &TaskRun<'_>, exit_code: i32, exit_reason: &str, usage: &Usage) -> Value {
    let order = &run.task.order;
    let queued = run.task.created_at;
    json!({
        "time_queued": queued.rfc3339(),
        "time_started": run.started.map(Timestamp::rfc3339),
        "time_completed": run.ended.rfc3339(),
        "duration_total_ms": run.ended.since_ms(queued),
        "duration_execution_ms": run.started.map_or(0, |started| run.ended.since_ms(started)),
        "worker_type": worker_type(run.profile),
        "worker_version": null,
        "model_requested": requested_model(order.model.as_deref(), order.context.as_ref()),
        "model_used": run.model.or(usage.model.as_deref()),
        "model_reported": usage.model,
        "exit_code": exit_code,
        "exit_reason": clip(&plain_text(exit_reason), REASON_LEN_MAX),
        "tokens_input": usage.input,
        "tokens_output": usage.output,
        "tokens_reasoning": usage.reasoning,
        "tokens_cache_read": usage.cache_read,
        "tokens_cache_write": usage.cache_write,
        "cost_estimate_usd": usage.cost_usd,
        "tier": run.tier,
        "rule": run.task.rule.as_str(),
    })
}

fn worker_type(profile: &Profile) -> &'static str {
    match (&profile.mcp, &profile.acp) {
        (Some(_), _) => "mcp",
        (None, Some(_)) => "acp",
        (None, None) => "cli",
    }
}

/// Returns the model that a task asks for, by itself or through its context. DevIt 1.10, "Model".
pub(super) fn requested_model(model: Option<&str>, context: Option<&Json>) -> Option<String> {
    let named = |it: &str| Some(it.trim().to_owned()).filter(|it| !it.is_empty());
    model.and_then(named).or_else(|| context?.value().get("model")?.as_str().and_then(named))
}

/// Cuts a long error output in the middle: its beginning says what was tried, and its end says what went wrong.
fn bounded_stderr(stderr: &str) -> String {
    let stderr = stderr.trim_end();
    if stderr.len() <= STDERR_BYTES_MAX {
        return stderr.to_owned();
    }
    let head = clip(stderr, STDERR_BYTES_MAX / 2);
    let mut from = stderr.len() - STDERR_BYTES_MAX / 2;
    while !stderr.is_char_boundary(from) {
        from += 1;
    }
    format!("{head}\n[... {} bytes left out ...]\n{}", from - head.len(), &stderr[from..])
}

/// Returns at most `most` bytes of a text, cut at a character.
pub(super) fn clip(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
