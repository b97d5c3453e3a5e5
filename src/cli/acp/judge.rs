//! The work for a question outside of the proxy's loop: finds the writes of a call, asks the daemon's rules, waits in
//! the queue, takes leases, and releases them.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::question::{About, Verdict};
use crate::hooks::{Writes, names_in, obstacle, reachable};
use crate::{CliError, RepoContext, out};
use provost_api::wire;
use provost_base::limits::{
    ACP_PROXY_PATIENCE_MS, ACP_PROXY_SETUP_MS_MAX, HOOK_ASK_MS, HOOK_MS_MAX, HOOK_STACK_BYTES,
    HOOK_WORK_MS_MAX, PERMISSION_BYTES_MAX,
};
use provost_base::{AgentId, acp, shortened};
use provost_client::Client;
use provost_config::env::Environment;

/// The least time before a request to the daemon is withdrawn: by then the daemon has read it.
const READ_BY: Duration = Duration::from_millis(250);

/// The agent that a session speaks as, and its folder.
#[derive(Clone)]
pub(super) struct Asker {
    pub(super) agent: AgentId,
    pub(super) cwd: PathBuf,
}

/// The result of a check.
pub(super) enum Checked {
    Allowed,
    Denied(String),
    /// No rule applies: the editor asks its person, as without Provost.
    Person,
    /// A rule wants approval: the question is in the queue now.
    Queued(Box<Queued>),
}

/// A question in the queue.
pub(super) struct Queued {
    client: Client,
    question: wire::AskPermission,
}

/// Runs a function on a thread of its own; returns `None` if that takes too long.
pub(super) async fn apart<T: Send + 'static>(
    most: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (give, take) = oneshot::channel();
    let works = std::thread::Builder::new().stack_size(HOOK_STACK_BYTES).spawn(move || give.send(work()));
    works.ok()?;
    tokio::time::timeout(most, take).await.ok()?.ok()
}

/// Checks whether a session in this folder has a repository, and so a daemon.
pub(super) async fn has_repository(cwd: PathBuf) -> bool {
    let most = Duration::from_millis(ACP_PROXY_SETUP_MS_MAX);
    apart(most, move || here(&cwd).is_ok_and(|it| it.places.identity != it.places.root))
        .await
        .unwrap_or_default()
}

fn here(cwd: &Path) -> Result<RepoContext, CliError> {
    RepoContext::in_folder(cwd.to_owned(), Environment::current())
}

/// The facts of a question, as far as they were found out.
struct Facts {
    here: RepoContext,
    writes: Writes,
}

async fn facts(about: &About, asker: &Asker) -> Result<Facts, CliError> {
    let (about, cwd) = (about.clone(), asker.cwd.clone());
    let most = Duration::from_millis(HOOK_WORK_MS_MAX);
    let until = Instant::now() + most;
    let worked_out = apart(most, move || {
        let here = here(&cwd)?;
        let writes = match &about {
            About::Permission { call, .. } | About::Command { call } => Writes::of_call(call, &cwd, until),
            About::Write { path, content } => Writes::of_file(cwd.join(path), content),
        };
        Ok(Facts { here, writes })
    });
    match worked_out.await {
        Some(facts) => facts,
        None => Ok(Facts { here: here(&asker.cwd)?, writes: Writes::anything() }),
    }
}

/// Checks a question against the rules, and against the places that other agents hold.
pub(super) async fn check(about: About, asker: Asker, granted: bool) -> Checked {
    let until = Instant::now() + Duration::from_millis(HOOK_MS_MAX);
    let facts = match facts(&about, &asker).await {
        Ok(facts) => facts,
        Err(error) => return unchecked(&about, &error, true),
    };
    let late = || Err(CliError::of("the daemon did not answer in time"));
    let checked = tokio::time::timeout_at(until.into(), judged(&about, &asker, &facts, granted, until));
    checked
        .await
        .unwrap_or_else(|_| late())
        .unwrap_or_else(|error| unchecked(&about, &error, !facts.writes.is_nothing()))
}

/// Refuses a write that could not be checked; the editor asks its person about any other request.
fn unchecked(about: &About, error: &CliError, writes: bool) -> Checked {
    match about {
        About::Permission { .. } if !writes => Checked::Person,
        _ => Checked::Denied(not_found_out(error)),
    }
}

fn not_found_out(error: &CliError) -> String {
    format!(
        "Not written: Provost could not find out whether another agent works on it: {}. Try again; if that does not help, tell the \
         person: `provost doctor` says what is wrong.",
        error.in_short()
    )
}

async fn judged(
    about: &About,
    asker: &Asker,
    facts: &Facts,
    granted: bool,
    until: Instant,
) -> Result<Checked, CliError> {
    let Facts { here, writes } = facts;
    let unruled = || match about {
        About::Permission { .. } => Checked::Person,
        About::Write { .. } | About::Command { .. } => Checked::Allowed,
    };
    let Some(client) = reachable(here, asker.agent.clone()).await? else { return Ok(unruled()) };
    if let Some(why) = obstacle(here, &asker.agent, writes, false, until).await? {
        return Ok(Checked::Denied(why));
    }
    let taken = async || {
        let obstacle = obstacle(here, &asker.agent, writes, true, until).await?;
        Ok(obstacle.map_or(Checked::Allowed, Checked::Denied))
    };
    if granted {
        return taken().await;
    }
    let question = question(about, asker, here);
    let said = client.ask_permission(&wire::AskPermission { wait_ms: Some(0), ..question.clone() }).await?;
    match (said.state.as_str(), about) {
        ("given", _) if about.can_be_allowed() => taken().await,
        ("denied", _) => Ok(Checked::Denied(no(&said))),
        ("waiting", _) => Ok(Checked::Queued(Box::new(Queued { client, question }))),
        (_, About::Write { .. } | About::Command { .. }) => taken().await,
        _ => Ok(Checked::Person),
    }
}

fn no(said: &wire::Permission) -> String {
    let (rule, reason) =
        (said.rule.as_deref().unwrap_or_default(), said.reason.as_deref().unwrap_or_default());
    out::one_line(&format!("Provost: no: {reason} (rule {rule})"), 800)
}

fn question(about: &About, asker: &Asker, here: &RepoContext) -> wire::AskPermission {
    let (tool, arguments) = match about {
        About::Permission { call, .. } | About::Command { call } => {
            (acp::tool(call).into_owned(), acp::arguments(call))
        }
        About::Write { path, content } => ("Write".into(), json!({ "file_path": path, "content": content })),
    };
    wire::AskPermission {
        id: uuid::Uuid::new_v4().to_string(),
        host: "acp".into(),
        tool: out::one_line(&tool, 100),
        arguments: shortened(&arguments, PERMISSION_BYTES_MAX),
        patience_ms: ACP_PROXY_PATIENCE_MS,
        wait_ms: None,
        folder: asker.cwd.to_str().map(str::to_owned),
        worktree: here.linked_worktree(),
    }
}

/// Waits for the queue's answer; returns `None` if the queue has none. Dropping the sender of `back` withdraws the question.
pub(super) async fn wait_in_queue(queued: Queued, mut back: oneshot::Receiver<()>) -> Option<Verdict> {
    let Queued { client, mut question } = queued;
    question.wait_ms = Some(HOOK_ASK_MS);
    loop {
        let read_by = tokio::time::Instant::now() + READ_BY;
        let asking = client.ask_permission(&question);
        tokio::pin!(asking);
        let said = tokio::select! {
            biased;
            said = &mut asking => said,
            _answered_elsewhere = &mut back => {
                // The daemon withdraws the question when the connection ends, but only after it has read the request.
                let _given_up = tokio::time::timeout_at(read_by, asking).await;
                return None;
            }
        };
        match said.as_ref().map(|it| it.state.as_str()) {
            Ok("given") => return Some(Verdict::Allowed),
            Ok("denied") => return said.ok().map(|it| Verdict::Denied(no(&it))),
            Ok("waiting") => {}
            _ => return None,
        }
    }
}

/// Locks the places that an allowed call writes.
pub(super) async fn take(about: About, asker: Asker) -> Verdict {
    let until = Instant::now() + Duration::from_millis(HOOK_MS_MAX);
    let facts = match facts(&about, &asker).await {
        Ok(facts) => facts,
        Err(error) => return Verdict::Denied(not_found_out(&error)),
    };
    taken(&facts, &asker, until).await
}

/// Locks the places that an ended call has written without asking.
pub(super) async fn take_written(call: Value, asker: Asker) -> Verdict {
    let until = Instant::now() + Duration::from_millis(HOOK_MS_MAX);
    let cwd = asker.cwd.clone();
    let worked_out = apart(Duration::from_millis(HOOK_WORK_MS_MAX), move || {
        Ok::<_, CliError>(Facts { here: here(&cwd)?, writes: Writes::of_done_call(&call, &cwd) })
    });
    let late = || Err(CliError::of("what was written could not be worked out in time"));
    match worked_out.await.unwrap_or_else(late) {
        Ok(facts) => taken(&facts, &asker, until).await,
        Err(error) => Verdict::Denied(not_found_out(&error)),
    }
}

async fn taken(facts: &Facts, asker: &Asker, until: Instant) -> Verdict {
    if facts.writes.is_nothing() {
        return Verdict::Allowed;
    }
    let taking = obstacle(&facts.here, &asker.agent, &facts.writes, true, until);
    match tokio::time::timeout_at(until.into(), taking).await {
        Ok(Ok(None)) => Verdict::Allowed,
        Ok(Ok(Some(why))) => Verdict::Denied(why),
        Ok(Err(error)) => Verdict::Denied(not_found_out(&error)),
        Err(_) => Verdict::Denied(not_found_out(&CliError::of("the daemon did not answer in time"))),
    }
}

/// The locks of an agent that are released at the end of a session.
pub(super) enum Leaving {
    /// All locks: no other session has the agent's name.
    All,
    /// The locks that this process has taken for the agent: another process may have its name and go on working.
    OfProcess,
    /// The locks on these files: another session of this process has the agent's name.
    Files(Vec<PathBuf>),
}

/// Releases the locks of a session. Starts no daemon, since without a daemon locks end by themselves.
pub(super) async fn leave(asker: Asker, what: Leaving) {
    let left = async {
        let cwd = asker.cwd.clone();
        let most = Duration::from_millis(ACP_PROXY_SETUP_MS_MAX);
        let found = apart(most, move || {
            let here = here(&cwd)?;
            let names = match &what {
                Leaving::Files(paths) => {
                    paths.iter().flat_map(|it| names_in(&here, it)).map(|it| it.1).collect()
                }
                Leaving::All | Leaving::OfProcess => HashSet::new(),
            };
            Ok::<_, CliError>((here, what, names))
        });
        let found = found.await.ok_or_else(|| CliError::of("its repository is not found in time"))?;
        let (here, what, names) = found?;
        let client = here.daemon(Some(asker.agent.clone())).await?;
        match what {
            Leaving::All => {
                client.leave(&wire::Leave { intents: true, pid: None }).await?;
                client.leave_crew(&wire::LeaveCrew { only_if_idle: false }).await?;
            }
            Leaving::OfProcess => {
                let pid = Some(std::process::id());
                client.leave(&wire::Leave { intents: false, pid }).await?;
            }
            Leaving::Files(_) => release(&client, &names).await?,
        }
        Ok::<_, CliError>(())
    };
    // The remaining locks end with this process.
    let _unheard = tokio::time::timeout(Duration::from_millis(HOOK_MS_MAX), left).await;
}

/// Releases the caller's locks in these files that are bound to this process.
async fn release(client: &Client, files: &HashSet<String>) -> Result<(), CliError> {
    let mine = client.locks(&wire::Whose { mine: true, ..wire::Whose::default() }).await?;
    for it in mine.locks {
        let file = it.symbol.split_once(':').map_or(it.symbol.as_str(), |(file, _)| file);
        let is_ours = it.pid == Some(std::process::id());
        if is_ours && (files.contains(file) || files.contains(&it.symbol)) {
            let unlock = wire::Unlock { symbol: it.symbol, fence: Some(it.fence), ..wire::Unlock::default() };
            client.unlock(&unlock).await?;
        }
    }
    Ok(())
}

/// Records in the agent's status, and so in the journal, that the agent has set its session's mode by itself, and that
/// no rule applies to it.
pub(super) async fn record_mode(asker: Asker, mode: &str) {
    let said = async {
        let cwd = asker.cwd.clone();
        let most = Duration::from_millis(ACP_PROXY_SETUP_MS_MAX);
        let here = apart(most, move || here(&cwd)).await;
        let here = here.ok_or_else(|| CliError::of("its repository is not found in time"))??;
        let Some(client) = reachable(&here, asker.agent.clone()).await? else { return Ok(()) };
        let words =
            out::one_line(&format!("has set its mode to '{mode}' by itself; no rule speaks of it"), 300);
        let message = json!({
            "type": "agent.status", "agent_id": asker.agent.as_str(),
            "payload": { "status": "working", "modified_files": [], "message": words },
        });
        client.publish_post(&wire::PublishPost { message }).await?;
        Ok::<_, CliError>(())
    };
    // The person can read it on standard error in any case.
    let _unheard = tokio::time::timeout(Duration::from_millis(HOOK_MS_MAX), said).await;
}

/// The answer of the rules about a mode of a session.
pub(super) enum Switching {
    Settled(Verdict),
    /// No rule applies to the mode.
    Unruled,
    /// A rule wants approval: the question is in the queue now.
    Queued(Box<Queued>),
}

/// Asks the rules whether a session may be set to this mode.
pub(super) async fn may_switch(asker: Asker, mode: String) -> Switching {
    let until = Instant::now() + Duration::from_millis(HOOK_MS_MAX);
    let asked = async {
        let cwd = asker.cwd.clone();
        let most = Duration::from_millis(ACP_PROXY_SETUP_MS_MAX);
        let here = apart(most, move || here(&cwd)).await;
        let here = here.ok_or_else(|| CliError::of("its repository is not found in time"))??;
        let Some(client) = reachable(&here, asker.agent.clone()).await? else { return Ok(None) };
        let call = json!({ "kind": "switch_mode", "rawInput": { "mode": mode } });
        let question = question(&About::Command { call }, &asker, &here);
        let said =
            client.ask_permission(&wire::AskPermission { wait_ms: Some(0), ..question.clone() }).await?;
        Ok::<_, CliError>(Some((client, question, said)))
    };
    Switching::Settled(match tokio::time::timeout_at(until.into(), asked).await {
        Ok(Ok(Some((client, question, said)))) => match said.state.as_str() {
            "denied" => Verdict::Denied(no(&said)),
            "waiting" => return Switching::Queued(Box::new(Queued { client, question })),
            "given" => Verdict::Allowed,
            _ => return Switching::Unruled,
        },
        Ok(Ok(None)) => return Switching::Unruled,
        Ok(Err(error)) => Verdict::Denied(format!("Provost could not ask its rules: {}", error.in_short())),
        Err(_) => Verdict::Denied("Provost's daemon did not answer in time".into()),
    })
}

/// Withdraws from the queue a question that was answered elsewhere.
pub(super) async fn take_back(queued: Queued) {
    let (answered, back) = oneshot::channel();
    drop(answered);
    let _none = wait_in_queue(queued, back).await;
}

/// Waits for the queue's answer about a mode.
pub(super) async fn switch_in_queue(queued: Queued) -> Verdict {
    let (_stays, back) = oneshot::channel();
    let answered = wait_in_queue(queued, back).await;
    answered.unwrap_or_else(|| Verdict::Denied("no person has answered it".into()))
}

/// Checks whether a call only writes: calls that read, run a command or fetch do not count, even if they name a write.
pub(super) fn is_write(call: &Value) -> bool {
    match acp::kind(call) {
        "read" | "search" | "execute" | "fetch" | "think" | "switch_mode" => false,
        _ => acp::writes(call),
    }
}

/// Returns the paths that a call names, resolved from its session's folder.
pub(super) fn paths(call: &Value, cwd: &Path) -> Vec<PathBuf> {
    let of_diffs = acp::diffs(call).filter_map(|it| it["path"].as_str());
    of_diffs.chain(acp::places(call)).chain(acp::named(call)).map(|it| cwd.join(it)).collect()
}
