//! Commands that list tasks, show one in full, cancel one, and report on one.

use clap::{Args, Subcommand, ValueEnum};
use serde_json::Value;

use super::args::duration;
use super::cli_error::{DONE, USAGE};
use super::follow::Follow;
use super::identity::IdentityArgs;
use super::repo_context::wait_for;
use super::task_table::{state, table};
use super::{CliError, RepoContext, applies, changes, delegate, out, say};
use provost_api::wire;
use provost_base::limits::STATUS_FINISHED_MAX;
use provost_base::{AgentId, EXACTLY, TaskId, Ttl, shell_word, task_command, visible_name};
use provost_client::{Client, ClientError};

/// The least length of the beginning of an id that may stand for the id; a shorter text is more likely a typing error.
const PREFIX_LEN_MIN: usize = 4;

/// The longest sentence about a failure, which includes the commands that help.
const FAILURE_CHARS_MAX: usize = 4_000;

/// The exit code of a run whose end is not known.
const UNKNOWN: i64 = -1;

/// The length of an id that the daemon has chosen; an id of this length is complete.
const GENERATED_LEN: usize = 36;

/// `provost task`.
#[derive(Subcommand, Debug)]
pub(super) enum Task {
    /// Delegate a task to a worker
    #[command(
        after_help = "Examples:\n  provost task delegate \"cargo test\" --wait\n  provost task delegate \"review src/\" --worker claude_code --timeout 20m\n  provost task delegate \"make\" --dir docs --json\n  provost task delegate \"add a test\" --worker claude --worktree --wait\n  provost task delegate \"add a test\" --worktree feat/x --worker claude"
    )]
    Delegate(delegate::Delegate),
    /// List the tasks, the newest last
    #[command(after_help = "Examples:\n  provost task list\n  provost task list --filter failed --limit 5")]
    List(List),
    /// Show one task with its reports
    #[command(after_help = "Examples:\n  provost task show 3f0c2a\n  provost task show 3f0c2a --wait")]
    Show(Show),
    /// Cancel a task
    #[command(after_help = "Example:\n  provost task cancel 3f0c2a --reason \"wrong branch\"")]
    Cancel(Cancel),
    /// Say something to the agent that works on a task
    #[command(
        after_help = "Examples:\n  provost task say 3f0c2a \"Leave the tests as they are.\"\n  provost task say 3f0c2a --now \"Stop: use the other file.\"\n  git diff | provost task say 3f0c2a -\n\nOnly agents that speak ACP hear it: when their turn ends, or at once with --now, which ends the turn first. The words are kept before the command ends; `provost task show` says what was delivered."
    )]
    Say(say::Say),
    /// Report on a task, or acknowledge the notification about it
    #[command(
        after_help = "Examples:\n  provost task report 3f0c2a --status ack\n  provost task report 3f0c2a --status completed --summary \"12 tests pass\""
    )]
    Report(Report),
    /// Show what a task has changed in its private copy, as `provost apply` would write it now
    #[command(
        after_help = "Examples:\n  provost task diff 3f0c2a\n  provost task diff 3f0c2a src/ README.md\n  provost task diff 3f0c2a --stat\n  provost task diff 3f0c2a | git apply --check"
    )]
    Diff(changes::Diff),
    /// Write the changes of a task's private copy into your files; all, or those that you name
    #[command(
        after_help = "Examples:\n  provost task apply 3f0c2a --preview   # shows the differences and writes nothing\n  provost task apply 3f0c2a\n  provost task apply 3f0c2a src/ README.md\n\nWhat a person types at a terminal of their own is written at once. Where an agent asks, the rules may demand an approval first; after it, repeat the same command. `provost apply undo` takes the apply back."
    )]
    Apply(applies::OfTask),
    /// Forget for good what a task has changed in its private copy
    #[command(
        after_help = "Examples:\n  provost task discard 3f0c2a\n  provost task discard 3f0c2a --yes\n\nFiles that an apply has written stay as they are, and `provost apply undo` still takes that apply back."
    )]
    Discard(changes::Discard),
}

/// `provost task list`.
#[derive(Args, Debug)]
pub(super) struct List {
    /// Which tasks are listed
    #[arg(long, value_enum, default_value_t = Filter::All)]
    filter: Filter,
    /// The largest number of finished tasks in the list; with one of the filters below, of all tasks
    #[arg(long, default_value_t = 20)]
    limit: usize,
    /// List only tasks in this state
    #[arg(long, value_enum, conflicts_with = "filter")]
    state: Option<State>,
    /// List only tasks whose worker's name contains this text
    #[arg(long, conflicts_with = "filter")]
    worker: Option<String>,
    /// List only the tasks of askers whose names contain this text
    #[arg(long, conflicts_with = "filter")]
    by: Option<String>,
    /// List only tasks that have all of these words in their ids, goals or names
    #[arg(long, value_name = "WORDS", conflicts_with = "filter")]
    text: Option<String>,
    /// List only tasks that have changed within this time
    #[arg(long, value_name = "2h", value_parser = duration, conflicts_with = "filter")]
    within: Option<Ttl>,
    /// Go on where the list before ended: what it has printed last
    #[arg(long, value_name = "PLACE", conflicts_with = "filter")]
    after: Option<String>,
}

/// A state of a task.
#[derive(ValueEnum, Clone, Copy, Debug)]
enum State {
    /// It waits for approval
    Awaiting,
    /// Its worker works on it
    Running,
    /// A polling worker has it
    Assigned,
    /// It waits for its worker
    Queued,
    /// Its next attempt waits for its time
    Retrying,
    /// It waits for other tasks
    Waiting,
    /// It has succeeded
    Completed,
    /// It has failed
    Failed,
    /// It was cancelled
    Cancelled,
}

impl State {
    fn word(self) -> &'static str {
        match self {
            State::Awaiting => "awaiting",
            State::Running => "running",
            State::Assigned => "assigned",
            State::Queued => "queued",
            State::Retrying => "retrying",
            State::Waiting => "waiting",
            State::Completed => "completed",
            State::Failed => "failed",
            State::Cancelled => "cancelled",
        }
    }
}

impl List {
    /// Returns the query for a page, if one of the page's filters is given.
    fn page(&self) -> Option<wire::TaskPageQuery> {
        let query = wire::TaskPageQuery {
            state: self.state.map(|it| it.word().into()),
            worker: self.worker.clone(),
            by: self.by.clone(),
            text: self.text.clone(),
            within_ms: self.within.map(|it| it.as_duration().as_millis().try_into().unwrap_or(u64::MAX)),
            after: self.after.clone(),
            limit: None,
        };
        (query != wire::TaskPageQuery::default())
            .then_some(wire::TaskPageQuery { limit: Some(self.limit), ..query })
    }
}

/// The tasks that are listed.
#[derive(ValueEnum, Clone, Copy, Debug)]
enum Filter {
    /// All tasks
    All,
    /// Unfinished tasks
    Active,
    /// Tasks that succeeded or were cancelled
    Completed,
    /// Failed tasks
    Failed,
}

/// `provost task show`.
#[derive(Args, Debug)]
pub(super) struct Show {
    /// The task's id, or enough of its beginning
    id: TaskId,
    /// Follow the task to its end, and end with the exit code that `delegate --wait` has
    #[arg(long)]
    wait: bool,
    /// With --wait: show the output unchanged, escape sequences included
    #[arg(long, requires = "wait")]
    raw: bool,
}

/// `provost task cancel`.
#[derive(Args, Debug)]
pub(super) struct Cancel {
    /// The task's id, or enough of its beginning
    id: TaskId,
    /// The reason, for the agent that has delegated the task
    #[arg(long)]
    reason: Option<String>,
}

/// `provost task report`.
#[derive(Args, Debug)]
pub(super) struct Report {
    /// The task's id, or enough of its beginning
    id: TaskId,
    /// The status of the task
    #[arg(long, value_enum)]
    status: ReportedStatus,
    /// A summary for people
    #[arg(long, default_value = "")]
    summary: String,
    /// The results, as JSON
    #[arg(long, value_name = "JSON")]
    details: Option<String>,
    /// The evidence, such as logs, as JSON
    #[arg(long, value_name = "JSON")]
    evidence: Option<String>,
    /// Speak as this agent; by default as PROVOST_AGENT or the host of this shell says, else as yourself
    #[arg(long = "as", value_name = "AGENT")]
    speak_as: Option<AgentId>,
}

/// DevIt's words for the status of a task.
#[derive(ValueEnum, Clone, Copy, Debug)]
#[value(rename_all = "snake_case")]
enum ReportedStatus {
    /// Not started
    Pending,
    /// Under way
    InProgress,
    /// Done
    Completed,
    /// Failed
    Failed,
    /// Cancelled
    Cancelled,
    /// The notification was seen
    Ack,
}

pub(super) fn task(here: &RepoContext, asked: Task) -> Result<u8, CliError> {
    match asked {
        Task::Delegate(it) => delegate::delegate(here, it),
        Task::List(it) => list(here, &it),
        Task::Show(it) => show(here, &it),
        Task::Cancel(it) => cancel(here, it),
        Task::Say(it) => say::say(here, it),
        Task::Report(it) => report(here, it),
        Task::Diff(it) => changes::diff(here, &it),
        Task::Apply(it) => applies::apply(here, &it),
        Task::Discard(it) => changes::discard(here, &it),
    }
}

/// Shows a page of the tasks that pass a filter, in the same order as the page for people.
fn page(here: &RepoContext, query: &wire::TaskPageQuery) -> Result<u8, CliError> {
    let page = wait_for(async { Ok(here.daemon(None).await?.task_page(query).await?) })?;
    if here.json {
        return out::json(&page).map(|()| DONE);
    }
    tell_unread(page.unread.as_deref());
    if page.tasks.is_empty() {
        out::note("no task of this page passes the filter");
    } else {
        out::text_as_is(&table(page.tasks.iter()))?;
    }
    if let Some(next) = &page.next {
        out::note(out::one_line(
            &format!("there may be more: --after {}", provost_base::shell_word(next)),
            400,
        ));
    }
    Ok(DONE)
}

/// Says on standard error why finished tasks are missing.
fn tell_unread(why: Option<&str>) {
    if let Some(why) = why {
        out::note(out::one_line(&format!("the finished tasks cannot be read now: {why}"), 400));
    }
}

fn list(here: &RepoContext, asked: &List) -> Result<u8, CliError> {
    if let Some(query) = asked.page() {
        return page(here, &query);
    }
    let filter = match asked.filter {
        Filter::All => "all",
        Filter::Active => "active",
        Filter::Completed => "completed",
        Filter::Failed => "failed",
    };
    let query = wire::TasksQuery {
        filter: Some(filter.into()),
        limit: Some(asked.limit),
        ..wire::TasksQuery::default()
    };
    let tasks = wait_for(async { Ok(here.daemon(None).await?.tasks(&query).await?) })?;
    if here.json {
        out::json(&tasks)?;
        return Ok(DONE);
    }
    tell_unread(tasks.unread.as_deref());
    if tasks.active.is_empty() && tasks.finished.is_empty() && tasks.unread.is_some() {
        out::note("no unfinished tasks");
        return Ok(DONE);
    }
    if tasks.active.is_empty() && tasks.finished.is_empty() {
        out::note("no tasks; delegate one: provost delegate \"make test\" --wait");
        return Ok(DONE);
    }
    if tasks.truncated && tasks.unread.is_none() {
        out::note(format!("only the newest {} finished ones; more: --limit", tasks.finished.len()));
    }
    out::text_as_is(&table(tasks.finished.iter().rev().chain(&tasks.active)))?;
    Ok(DONE)
}

/// Returns a time of the wire, to the second, in this machine's time zone, with its offset.
pub(super) fn short_time(rfc3339: &str) -> String {
    let plain = out::one_line(rfc3339, 40);
    let local = chrono::DateTime::parse_from_rfc3339(&plain).map(|at| at.with_timezone(&chrono::Local));
    local.map_or(plain, |at| at.format("%Y-%m-%d %H:%M:%S %:z").to_string())
}

/// Returns the task that the person means: by its id, or by a unique beginning of it. An id that is also the beginning of
/// another one is refused, since another caller may have chosen it so; a whole generated id, or one after `id:`, is exact.
pub(super) async fn meant(client: &Client, id: &TaskId) -> Result<wire::Task, CliError> {
    let typed = id.as_str();
    if let Some(id) = typed.strip_prefix(EXACTLY) {
        return Ok(client.task(&query(id)).await?);
    }
    let exact = if_known(client, typed).await?;
    let is_whole = typed.len() == GENERATED_LEN;
    let task = match exact {
        Ok(task) if is_whole => return Ok(task),
        Err(_) if typed.len() < PREFIX_LEN_MIN => {
            return Err(CliError::of(format!("no task has the id {}", visible_name(typed, 400)))
                .because(format!("the beginning of an id has at least {PREFIX_LEN_MIN} characters"))
                .next("provost task list"));
        }
        exact => exact,
    };
    let asked = wire::TasksQuery { filter: None, limit: Some(STATUS_FINISHED_MAX), ..Default::default() };
    let tasks = client.tasks(&asked).await?;
    let all = tasks.active.into_iter().chain(tasks.finished);
    // The later runs of a job belong to its first one: `JOB.2` to `JOB`, by the same asker.
    let is_run = |it: &wire::Task| {
        let number = it.id.strip_prefix(typed).and_then(|it| it.strip_prefix('.'));
        let is_number = number.is_some_and(|it| it.parse::<u32>().is_ok());
        is_number && task.as_ref().is_ok_and(|first| first.asked_by == it.asked_by)
    };
    let is_other = |it: &wire::Task| it.id.starts_with(typed) && it.id != typed && !is_run(it);
    let begun: Vec<wire::Task> = all.filter(is_other).collect();
    match (task, begun.as_slice()) {
        (Ok(task), []) => Ok(task),
        (Err(unknown), []) => Err(unknown.into()),
        (Err(_), [one]) => Ok(client.task(&query(&one.id)).await?),
        (task, several) => Err(unclear(typed, task.ok().as_ref(), several)),
    }
}

/// Returns the task with exactly this id, for an agent that speaks about its own work.
pub(super) async fn exactly_meant(client: &Client, id: &TaskId) -> Result<wire::Task, CliError> {
    match if_known(client, id.as_str()).await? {
        Ok(task) => Ok(task),
        Err(_) => meant(client, id).await,
    }
}

/// Returns the task of an id; the inner error where no such task exists.
async fn if_known(client: &Client, id: &str) -> Result<Result<wire::Task, ClientError>, CliError> {
    match client.task(&query(id)).await {
        Ok(task) => Ok(Ok(task)),
        Err(err @ ClientError::Refused { status: 404, .. }) => Ok(Err(err)),
        Err(err) => Err(err.into()),
    }
}

fn query(id: &str) -> wire::TaskQuery {
    wire::TaskQuery { id: id.to_owned(), ..wire::TaskQuery::default() }
}

/// Makes the error about several tasks that a text may mean, the one with exactly that id first.
fn unclear(typed: &str, exact: Option<&wire::Task>, others: &[wire::Task]) -> CliError {
    let named = |it: &wire::Task| format!("{} (asked by {})", it.id, it.asked_by);
    let all: Vec<String> = exact.into_iter().chain(others).take(5).map(named).collect();
    let shown = visible_name(typed, 400);
    let next = match exact {
        Some(it) => {
            format!("write the whole id; the first is {}", shell_word(&format!("{EXACTLY}{}", it.id)))
        }
        None => "write more of the id".into(),
    };
    let count = others.len() + usize::from(exact.is_some());
    CliError::of(format!("{count} tasks begin with {shown}"))
        .because(visible_name(&all.join(", "), 2_000))
        .next(next)
        .with_code(USAGE)
}

fn show(here: &RepoContext, asked: &Show) -> Result<u8, CliError> {
    wait_for(async {
        let client = here.daemon(IdentityArgs::named(here, None)?).await?;
        let task = meant(&client, &asked.id).await?;
        if asked.wait {
            return Follow { client, raw: asked.raw, json: here.json }.to_the_end(&task.id, None).await;
        }
        if here.json {
            out::json(&task)?
        } else {
            out::text_as_is(&in_full(&task))?
        }
        Ok(DONE)
    })
}

/// Says what a task waits for, and who holds it.
fn awaited(it: &wire::AwaitedNeed) -> String {
    let holder = it.holder.as_ref().map(|holder| format!(", which {holder} has")).unwrap_or_default();
    format!("{}{holder}, since {}", it.resource, short_time(&it.since))
}

/// Shows facts first, then the words of others, indented so that they cannot pass for a fact.
fn in_full(task: &wire::Task) -> String {
    let mut facts = vec![("task", task.id.clone()), ("state", state(task)), ("worker", task.worker.clone())];
    facts.extend([("asked by", task.asked_by.clone()), ("rule", task.rule.clone())]);
    facts.extend(task.waits_for.iter().map(|it| ("waits for", awaited(it))));
    facts.extend(task.waits_for_tasks.iter().map(|id| ("waits for", format!("task {id}"))));
    facts.extend(task.place.map(|place| ("place in line", place.to_string())));
    facts.extend(task.attempt.map(|number| ("attempt", number.to_string())));
    facts.extend(task.again_at.as_deref().map(|at| ("begins again", short_time(at))));
    facts.extend(task.priority.clone().map(|priority| ("priority", priority)));
    facts.extend(task.pool.clone().map(|pool| ("pool", pool)));
    facts.extend(task.on.clone().map(|label| ("on a host with", label)));
    facts.extend(task.host.clone().map(|host| ("host", host)));
    facts.extend(task.left_by.iter().map(|it| ("not taken by", it.clone())));
    facts.extend(task.worktree.clone().map(|branch| ("branch", branch)));
    facts.extend(task.working_dir.clone().map(|dir| ("directory", dir)));
    facts.extend(task.model_used.clone().or_else(|| task.model.clone()).map(|model| ("model", model)));
    facts.extend(task.usage.as_ref().and_then(wire::Used::in_words).map(|used| ("used", used)));
    if let Some(counted) = &task.counted {
        facts.push(("counted", counted.in_words()));
        let differs = task.usage.as_ref().and_then(|used| counted.difference(used));
        facts.extend(differs.map(|differs| ("differs", differs)));
    }
    facts.extend([("created", short_time(&task.created_at)), ("updated", short_time(&task.updated_at))]);
    facts.push(("time limit", format!("{} s", task.timeout_s)));
    facts.extend((!task.beside.is_empty()).then(|| ("ran beside", task.beside.join(", "))));
    facts.extend(exit_code(task).map(|code| ("exit code", code.to_string())));
    let mut rows: Vec<_> =
        facts.iter().map(|(name, fact)| [(*name).to_owned(), out::one_line(fact, 400)]).collect();
    rows.extend(failure_in_words(task).map(|failure| ["failure".to_owned(), failure]));
    let mut text = out::table(&rows);
    if let Some(handoff) = &task.handoff {
        text.push_str(&look_at(handoff));
    }
    if let Some(changed) = &task.files_changed {
        text.push_str(&changed_files(changed));
    }
    text.push_str(&fenced("goal", &task.goal));
    text.push_str(&changes::of_task(task));
    text.push_str(&say::of_task(task));
    for note in &task.notes {
        let head = format!("{} {}: {}", short_time(&note.at), note.from, note.status);
        text.push_str(&fenced(&out::one_line(&head, 400), &note.summary));
    }
    text
}

/// Lists the files to examine before anything in the workspace is run.
fn look_at(handoff: &wire::ScanReport) -> String {
    let mut text = "tainted: look at these before you run anything in the workspace\n".to_owned();
    if let Some(why) = &handoff.unknown {
        text.push_str(&format!("  ? not everything was compared: {}\n", out::one_line(why, 400)));
    }
    for it in &handoff.findings {
        let [kind, change] = [&it.kind, &it.change].map(|word| out::one_line(word, 20));
        text.push_str(&format!("  ! {change} {kind}: {}\n", out::name(&it.path, 400)));
    }
    if handoff.more > 0 {
        text.push_str(&format!("  ! and {} more\n", handoff.more));
    }
    text
}

/// Lists the changes of the files that the asking agent wanted to watch.
fn changed_files(changed: &wire::FilesChanged) -> String {
    let mut text = format!("files changed: {}\n", changed.files.len() + changed.more as usize);
    for it in &changed.files {
        let from = it.from.as_ref().map(|from| format!(", before: {}", out::one_line(from, 400)));
        let (change, path) = (out::one_line(&it.change, 20), out::name(&it.path, 400));
        text.push_str(&format!("  {change} {path}{}\n", from.unwrap_or_default()));
    }
    if changed.more > 0 {
        text.push_str(&format!("  and {} more\n", changed.more));
    }
    let incomplete = changed.incomplete.as_ref().map(|why| format!("  {}\n", out::one_line(why, 400)));
    text + &incomplete.unwrap_or_default()
}

/// Says why a task has failed, in the same sentence as the page; a very long one is cut after a word.
pub(super) fn failure_in_words(task: &wire::Task) -> Option<String> {
    let rest = || format!("all of it: {} --json", task_command("task show", &task.id, ""));
    provost_view::failure(task).map(|it| out::cut_at_a_word(&it, FAILURE_CHARS_MAX, rest))
}

/// Returns the exit code of a task's worker, where its end is known.
pub(super) fn exit_code(task: &wire::Task) -> Option<i64> {
    task.exit_code.filter(|code| *code != UNKNOWN)
}

/// Returns text from other programs, behind a bar.
pub(super) fn fenced(head: &str, words: &str) -> String {
    let lines: String = out::plain(words).lines().map(|line| format!("  | {line}\n")).collect();
    format!("{head}\n{lines}")
}

fn cancel(here: &RepoContext, asked: Cancel) -> Result<u8, CliError> {
    let done = wait_for(async {
        let client = here.daemon(IdentityArgs::named(here, None)?).await?;
        let task = meant(&client, &asked.id).await?.id;
        Ok(client.cancel(&wire::Cancel { task, reason: asked.reason }).await?)
    })?;
    said(here, &done)
}

fn report(here: &RepoContext, asked: Report) -> Result<u8, CliError> {
    let status = match asked.status {
        ReportedStatus::Pending => "pending",
        ReportedStatus::InProgress => "in_progress",
        ReportedStatus::Completed => "completed",
        ReportedStatus::Failed => "failed",
        ReportedStatus::Cancelled => "cancelled",
        ReportedStatus::Ack => "ack",
    };
    let mut body = wire::Report {
        task: String::new(),
        status: status.into(),
        summary: Some(asked.summary).filter(|summary| !summary.is_empty()),
        details: json("--details", asked.details.as_deref())?,
        evidence: json("--evidence", asked.evidence.as_deref())?,
    };
    let done = wait_for(async {
        let client = here.daemon(IdentityArgs::named(here, asked.speak_as)?).await?;
        body.task = exactly_meant(&client, &asked.id).await?.id;
        Ok(client.report(&body).await?)
    })?;
    said(here, &done)
}

fn said(here: &RepoContext, done: &wire::TaskState) -> Result<u8, CliError> {
    if here.json {
        out::json(done)?;
    } else {
        out::line(format!("task {}: {}", out::one_line(&done.task, 400), out::one_line(&done.state, 40)))?;
    }
    Ok(DONE)
}

fn json(flag: &str, text: Option<&str>) -> Result<Option<Value>, CliError> {
    text.map(serde_json::from_str).transpose().map_err(|e| {
        CliError::of(format!("{flag} is not JSON"))
            .because(e)
            .next(format!("provost task report ID --status completed {flag} '{{\"tests\": 12}}'"))
            .with_code(USAGE)
    })
}
