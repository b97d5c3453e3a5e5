//! Things that need the user, the daemon at a glance, and the known agents.

use serde::Serialize;

use super::cli_error::{DONE, NOT_RUNNING};
use super::database::{self, StoreOrConfig};
use super::repo_context::wait_for;
use super::{CliError, RepoContext, approvals, broker, notify, out, task_table, tasks};
use provost_api::wire;
use provost_client::{Age, Client, ClientError};
use provost_config::awaiting;
use provost_store::StoreError;

/// Most failed tasks that `provost` alone shows: more would push things that can be acted on off the screen.
const FAILURES_SHOWN: usize = 5;

/// Most pairs of agents in each other's way that are shown.
const OVERLAPS_SHOWN: usize = 8;

/// Most tasks with changes to take in that are shown.
const CHANGES_SHOWN: usize = 5;

/// The number of finished tasks that are searched for tainted ones, and for those with changes to take in.
const LOOKED_AT: usize = 200;

/// The age up to which failures and prompts need a person; `provost task list --filter failed` has older ones.
const SHOWN_IF_NEWER_THAN: chrono::TimeDelta = chrono::TimeDelta::hours(24);

/// The things that need a person, for programs.
#[derive(Serialize)]
pub(super) struct Needs {
    approvals: Vec<wire::Approval>,
    questions: Vec<wire::Question>,
    /// Agents that wait for a person at their own prompt.
    at_prompts: Vec<wire::RosterRow>,
    overlaps: Vec<wire::Overlap>,
    /// Agents that wait for a lock.
    waiting: Vec<wire::Waiter>,
    active: Vec<wire::Task>,
    failed: Vec<wire::Task>,
    tainted: Vec<wire::Task>,
    /// Tasks whose changes wait to be taken in or discarded.
    to_take_in: Vec<wire::Task>,
    /// Branches that a merge has set aside today, and that are in no newer entry of the queue.
    set_aside: Vec<wire::Merge>,
    broken_workers: Vec<wire::WorkerAt>,
    pub(super) notes: Vec<String>,
}

/// Runs `provost` without arguments for one repository.
pub(super) fn overview(here: &RepoContext) -> Result<u8, CliError> {
    let needs = wait_for(async { Ok(needs_of(&here.daemon(None).await?).await?.1) })?;
    if here.json {
        out::json(&needs)?;
        return Ok(DONE);
    }
    let words = in_words(&needs, "provost");
    out::text_as_is(if words.is_empty() { "Nothing needs you.\n" } else { &words })?;
    Ok(DONE)
}

/// Returns the version of a daemon, and the things that need a person there; all requests are sent at the same time.
pub(super) async fn needs_of(client: &Client) -> Result<(String, Needs), ClientError> {
    let age = Age::default();
    let client = &client.clone().noting(age.clone());
    let query = |filter: &str, limit| wire::TasksQuery {
        filter: Some(filter.into()),
        limit,
        ..wire::TasksQuery::default()
    };
    let (failed, active) = (query("failed", Some(LOOKED_AT)), query("active", None));
    let (everyones, all) = (wire::Whose::default(), wire::MergesQuery::default());
    let (about, approvals, questions, roster, overlaps, locks, active, failed, finished, merges) = tokio::try_join!(
        client.about(),
        client.approvals(),
        client.questions(),
        client.roster(),
        client.overlaps(),
        client.locks(&everyones),
        client.tasks(&active),
        if_readable(client.tasks(&failed)),
        newest_finished(client),
        client.merges(&all),
    )?;
    let unread = finished.unread.map(|why| format!("the finished tasks cannot be read now: {why}"));
    let (mut failed, finished) = (failed.unwrap_or_default(), finished.finished);
    failed.retain(|it| it.has_failed() && is_of_today(&it.updated_at));
    failed.truncate(FAILURES_SHOWN);
    let some = |is_meant: &dyn Fn(&&wire::Task) -> bool, limit| -> Vec<wire::Task> {
        finished.iter().filter(|task| is_meant(task)).take(limit).cloned().collect()
    };
    let needs = Needs {
        approvals,
        questions,
        at_prompts: roster
            .into_iter()
            .filter(|it| it.is_at_its_prompt() && is_of_today(&it.last_seen))
            .collect(),
        overlaps,
        waiting: locks.waiting,
        active: active.active,
        failed,
        tainted: some(&|task| is_newly_tainted(task), FAILURES_SHOWN),
        to_take_in: some(&|task| has_changes_to_take_in(task), CHANGES_SHOWN),
        set_aside: provost_view::set_aside(&merges.entries, chrono::Utc::now().timestamp_millis())
            .into_iter()
            .cloned()
            .collect(),
        broken_workers: about.workers.into_iter().filter(|worker| worker.broken.is_some()).collect(),
        notes: about.broken.into_iter().chain(about.notes).chain(age.in_words()).chain(unread).collect(),
    };
    Ok((about.version, needs))
}

async fn newest_finished(client: &Client) -> Result<wire::Tasks, ClientError> {
    let finished = wire::TasksQuery { filter: None, limit: Some(LOOKED_AT), ..wire::TasksQuery::default() };
    client.tasks(&finished).await
}

/// Returns finished tasks; none while the store cannot be read, which hides nothing that is in memory.
async fn if_readable(
    asked: impl Future<Output = Result<wire::Tasks, ClientError>>,
) -> Result<Option<Vec<wire::Task>>, ClientError> {
    match asked.await {
        Err(ClientError::Refused { status: 503, .. }) => Ok(None),
        tasks => tasks.map(|it| Some(it.finished)),
    }
}

fn is_newly_tainted(task: &wire::Task) -> bool {
    task.tainted == Some(true) && is_of_today(&task.updated_at)
}

/// Checks whether a task has changes to take in. The daemon removes changes after some days, so forgotten ones disappear.
fn has_changes_to_take_in(task: &wire::Task) -> bool {
    task.changes.as_ref().is_some_and(wire::Changes::wait)
}

fn is_of_today(at: &str) -> bool {
    let since = chrono::Utc::now() - SHOWN_IF_NEWER_THAN;
    // A time that cannot be read does not hide a thing that needs a person.
    chrono::DateTime::parse_from_rfc3339(at).map_or(true, |at| at >= since)
}

/// Returns the whole text; the commands in it begin with `run`. Empty if nothing needs a person.
pub(super) fn in_words(needs: &Needs, run: &str) -> String {
    let mut text = String::new();
    if !needs.approvals.is_empty() {
        text.push_str(&format!("Waiting for your word ({}):\n", needs.approvals.len()));
        text.push_str(&approvals::table(&needs.approvals));
        text.push_str(&format!(
            "  look: {run} approval list    answer: {run} approve ID, {run} deny ID --reason WHY\n\n"
        ));
    }
    if !needs.questions.is_empty() {
        text.push_str(&format!("Questions of agents ({}):\n", needs.questions.len()));
        text.push_str(&broker::questions(&needs.questions));
        text.push_str(&format!("  answer: {run} answer NUMBER TEXT\n\n"));
    }
    if !needs.at_prompts.is_empty() {
        text.push_str(&at_prompts(&needs.at_prompts));
    }
    if !needs.overlaps.is_empty() {
        text.push_str(&overlaps(&needs.overlaps, run));
    }
    if !needs.waiting.is_empty() {
        text.push_str(&waiters(&needs.waiting, run));
    }
    if !needs.active.is_empty() {
        text.push_str(&format!("Under way ({}):\n", needs.active.len()));
        text.push_str(&task_table::table(needs.active.iter()));
        text.push('\n');
    }
    if !needs.to_take_in.is_empty() {
        text.push_str("Changes to take in:\n");
        text.push_str(&task_table::table(needs.to_take_in.iter().rev()));
        text.push_str(&format!(
            "  look: {run} task diff ID    take in: {run} apply ID    forget: {run} discard ID\n"
        ));
        if needs.to_take_in.iter().any(|it| it.worktree.is_some()) {
            text.push_str(&format!(
                "  committed on branches: {run} worktree list    take in: {run} merge BRANCH\n"
            ));
        }
        text.push('\n');
    }
    if !needs.set_aside.is_empty() {
        text.push_str(&branches_aside(&needs.set_aside, run));
    }
    if !needs.failed.is_empty() {
        text.push_str("Failed last:\n");
        text.push_str(&task_table::table(needs.failed.iter().rev()));
        text.push_str(&format!("  look: {run} task show ID\n\n"));
    }
    if !needs.tainted.is_empty() {
        text.push_str("Tainted: what they have left runs later, look before you run anything:\n");
        text.push_str(&task_table::table(needs.tainted.iter().rev()));
        text.push_str(&format!("  look: {run} task show ID\n\n"));
    }
    for worker in &needs.broken_workers {
        let why = out::one_line(worker.broken.as_deref().unwrap_or_default(), 400);
        text.push_str(&format!("Worker {} cannot be used: {why}\n", out::one_line(&worker.id, 60)));
    }
    needs.notes.iter().for_each(|note| text.push_str(&format!("Note: {}\n", out::one_line(note, 400))));
    text
}

fn branches_aside(all: &[wire::Merge], run: &str) -> String {
    let mut text = format!("Branches that a merge has set aside ({}):\n", all.len());
    for it in all.iter().take(OVERLAPS_SHOWN) {
        let (branch, cause) = (out::one_line(&it.branch, 60), it.what.as_deref().unwrap_or("set aside"));
        text.push_str(&format!("  {branch}: {}\n", out::one_line(cause, 60)));
    }
    if all.len() > OVERLAPS_SHOWN {
        text.push_str("  …\n");
    }
    text.push_str(&format!("  look: {run} merge queue list\n\n"));
    text
}

fn at_prompts(waiting: &[wire::RosterRow]) -> String {
    let mut text =
        format!("Agents that wait for their person, each at its own screen ({}):\n", waiting.len());
    for it in waiting.iter().take(OVERLAPS_SHOWN) {
        text.push_str(&format!("  {}\n", out::one_line(&it.agent, 60)));
    }
    if waiting.len() > OVERLAPS_SHOWN {
        text.push_str("  …\n");
    }
    text.push('\n');
    text
}

fn waiters(waiting: &[wire::Waiter], run: &str) -> String {
    let mut text = format!("Agents wait for a lock ({}):\n", waiting.len());
    for it in waiting.iter().take(OVERLAPS_SHOWN) {
        let (agent, symbol) = (out::one_line(&it.agent, 60), out::name(&it.symbol, 200));
        text.push_str(&format!("  {agent} for {symbol}, since {}\n", tasks::short_time(&it.since)));
    }
    if waiting.len() > OVERLAPS_SHOWN {
        text.push_str("  …\n");
    }
    text.push_str(&format!("  look: {run} lock list\n\n"));
    text
}

fn overlaps(pairs: &[wire::Overlap], run: &str) -> String {
    let mut text = format!("In each other's way ({}):\n", pairs.len());
    for it in pairs.iter().take(OVERLAPS_SHOWN) {
        let [a, b] = it.agents.each_ref().map(|it| out::one_line(it, 60));
        text.push_str(&format!("  {}: {a} and {b}\n", out::name(&it.file, 200)));
    }
    if pairs.len() > OVERLAPS_SHOWN {
        text.push_str("  …\n");
    }
    text.push_str(&format!(
        "  look: {run} lock list, {run} intent list, {run} claim list    settle it: tell one of them to wait\n\n",
    ));
    text
}

/// The daemon at a glance, for programs.
#[derive(Serialize)]
struct Glance {
    #[serde(flatten)]
    about: wire::About,
    /// Tasks of the last day whose runs have left a file that runs later.
    tainted: Vec<String>,
    /// The daemon at work in numbers; absent where an earlier version answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    health: Option<wire::Health>,
}

/// Runs `provost status`.
pub(super) fn status(here: &RepoContext) -> Result<u8, CliError> {
    let glance = wait_for(async {
        let client = here.client();
        let about = client.about().await?;
        // A store that accepts nothing may also have no readable history; only the former matters here.
        let finished = match newest_finished(&client).await {
            Err(_) if about.broken.is_some() => Vec::new(),
            tasks => tasks?.finished,
        };
        let tainted = finished.into_iter().filter(is_newly_tainted).map(|task| task.id).collect();
        // A daemon of an earlier version has no numbers.
        let health = client.health().await.ok();
        Ok(Glance { about, tainted, health })
    });
    let glance = glance.map_err(|error| about_the_store(here, error))?;
    if here.json {
        out::json(&glance)?;
        return Ok(DONE);
    }
    let Glance { about, tainted, health } = glance;
    let row = |name: &str, value: &str| [name.to_owned(), out::one_line(value, 4096)];
    let mut rows = vec![
        row(
            "daemon",
            &format!(
                "{}, process {}, since {}",
                about.version,
                about.pid,
                tasks::short_time(&about.started_at)
            ),
        ),
        row("repository", &about.root),
        row("state", &about.state_dir),
    ];
    rows.extend(
        about.doors.iter().map(|at| row(&format!("door {}", out::one_line(&at.door, 40)), &at.address)),
    );
    rows.extend(about.workers.iter().map(worker));
    rows.extend(about.notices.iter().map(|it| {
        let name = format!("notices {}", out::one_line(&it.name, 64));
        row(&name, &out::one_line(&notify::standing(it), 400))
    }));
    rows.push(row(
        "policy",
        &format!("{} ({})", about.policy_source, about.policy.chars().take(12).collect::<String>()),
    ));
    rows.push(row(
        "tasks",
        &format!("{} under way, {} completed, {} failed", about.active, about.completed, about.failed),
    ));
    if !tainted.is_empty() {
        let ids: Vec<&str> = tainted.iter().map(String::as_str).take(FAILURES_SHOWN).collect();
        rows.push(row("tainted", &format!("{} of late: {}", tainted.len(), ids.join(", "))));
    }
    rows.push(row("approvals", &format!("{} waiting", about.approvals)));
    let numbers = health.iter().flat_map(provost_view::numbers_in_words);
    rows.extend(
        numbers.filter(|(name, _)| *name != "approvals that wait").map(|(name, value)| row(name, &value)),
    );
    rows.push(row("journal", &about.journal_anchor));
    rows.extend(about.broken.iter().map(|why| row("BROKEN", why)));
    out::text_as_is(&out::table(&rows))?;
    about.notes.iter().for_each(|note| out::note(format!("note: {}", out::plain(note))));
    Ok(DONE)
}

/// Says, where no daemon runs, whether one could run.
fn about_the_store(here: &RepoContext, error: CliError) -> CliError {
    if !error.is_not_running() || !here.places.state.exists() {
        return error;
    }
    if let Some(waiting) = awaiting::awaiting(&here.places) {
        return CliError::of(
            "the daemon of this repository waits for its database, and answers no request yet",
        )
        .because(format!("process {}: {}", waiting.pid, waiting.why))
        .next("provost doctor, or provost down to end it")
        .with_code(NOT_RUNNING);
    }
    match database::look(here, false) {
        Ok(()) => error,
        Err(StoreOrConfig::Store(err @ (StoreError::Away(_) | StoreError::Database(_)))) => {
            CliError::of("no daemon runs for this repository, and its database does not let one start")
                .because(err)
                .next("provost doctor")
                .with_code(NOT_RUNNING)
        }
        Err(StoreOrConfig::Config(_)) => error,
        Err(StoreOrConfig::Store(err)) => {
            CliError::of("no daemon runs for this repository, and none can: its store is damaged")
                .because(err)
                .next("provost store restore --help")
                .with_code(NOT_RUNNING)
        }
    }
}

fn worker(at: &wire::WorkerAt) -> [String; 2] {
    let state = match &at.broken {
        None => match &at.switched {
            None => at.kind.clone(),
            Some(by) => format!("{}, switched {by}", at.kind),
        },
        Some(why) => format!("{}, cannot be used: {why}", at.kind),
    };
    let hosts = match at.hosts.is_empty() {
        true => String::new(),
        false => format!(", also on host {}", at.hosts.join(", ")),
    };
    [format!("worker {}", out::one_line(&at.id, 60)), out::one_line(&format!("{state}{hosts}"), 400)]
}

/// Says when an agent was last seen, and at which host where the repository has several.
fn last_seen(agent: &wire::Agent) -> String {
    let time = agent.last_seen.as_deref().map_or("-".into(), tasks::short_time);
    agent.host.as_ref().map_or_else(|| time.clone(), |host| format!("{time} at {host}"))
}

/// Runs `provost agent list`.
pub(super) fn agents(here: &RepoContext) -> Result<u8, CliError> {
    let agents = wait_for(async { Ok(here.daemon(None).await?.agents().await?) })?;
    if here.json {
        out::json(&agents)?;
        return Ok(DONE);
    }
    if agents.is_empty() {
        out::note("no agents yet; point one here: eval \"$(provost env)\"");
        return Ok(DONE);
    }
    let mut rows =
        vec![["AGENT", "DOORS", "VERSION", "HERE", "LAST SEEN", "MAIL", "TASKS"].map(String::from)];
    rows.extend(agents.iter().map(|agent| {
        [
            out::one_line(&agent.id, 60),
            out::one_line(&agent.doors.join(" "), 60),
            out::one_line(agent.version.as_deref().unwrap_or("-"), 30),
            if agent.alive { "yes" } else { "no" }.to_owned(),
            last_seen(agent),
            agent.mail.to_string(),
            agent.asked.to_string(),
        ]
    }));
    out::text_as_is(&out::table(&rows))?;
    Ok(DONE)
}
