//! The command that the hooks of hosts call: once for each event, with the host's message on standard input.
//!
//! A write that could not be checked is refused, with the reason and the way out. After any other error the host goes
//! on as if it had no hook, since a session does not get better by not beginning.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::json;

use super::afterwards;
use super::call::{HookInput, Target, Targets, names_in, unnamed};
use super::ends;
use super::form;
use super::host::{Event, HookHost};
use super::inbox;
use super::index;
use super::links;
use super::overwritten;
use super::permission::permission;
use super::refusal::{nearby, refusal};
use super::said::Said;
use super::served::Over;
use super::shown::Shown;
use super::trees::{self, InTree};
use super::waits::{apart, read, unless_stopped, within};
use super::wide::{TreeFile, Wide};
use super::writes::Writer;
use crate::args::duration;
use crate::cli_error::DONE;
use crate::identity::IdentityArgs;
use crate::session::{self, Session};
use crate::{CliError, RepoContext};
use provost_api::wire;
use provost_base::limits::{HOOK_MS_MAX, HOOK_WORK_MS_MAX};
use provost_base::{AgentId, Resource, Ttl};
use provost_client::{Client, ClientError};
use provost_config::WhenDown;
use provost_config::env::Environment;

/// The note for a model about a call that could not be analysed.
pub(super) const NOT_WORKED_OUT: &str = "What this writes cannot be worked out, since it is too long or too deeply nested; so it \
     counts as writing everything that others hold. Make several plain commands of it that name their files.";

/// `provost hook run`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Run {
    /// The host that calls the hook
    pub(super) host: HookHost,
    /// The event that the host reports
    pub(super) event: Event,
    /// The agent; by default that of `provost mcp` of this host, or of the session
    #[arg(long = "as", value_name = "AGENT")]
    speak_as: Option<AgentId>,
    /// How long the hook waits for an answer
    #[arg(long, value_parser = duration, default_value = "5s")]
    pub(super) wait: Ttl,
    /// Other hooks of the host ask the daemon at this port over HTTP: start one where none runs
    #[arg(long, value_name = "PORT", hide = true)]
    pub(super) beside: Option<u16>,
    /// The host that asks over HTTP, in the daemon.
    #[arg(skip)]
    pub(super) over: Option<Over>,
}

impl Run {
    /// Makes a hook that is called over HTTP.
    pub(super) fn over(host: HookHost, event: Event, speak_as: Option<AgentId>, over: Over) -> Self {
        Self { host, event, speak_as, wait: Ttl::seconds_clamped(5), beside: None, over: Some(over) }
    }

    /// Returns the process that calls the hook: the parent of this program, or the one that asks over HTTP.
    fn process(&self) -> Option<u32> {
        self.over.as_ref().map_or_else(provost_system::parent_process, |it| Some(it.process))
    }

    /// Checks whether Cursor calls this; Cursor calls Claude Code's hooks as well.
    fn is_of_cursor(&self) -> bool {
        self.over.is_none() && std::env::var_os("CURSOR_VERSION").is_some()
    }
}

/// The result of a check.
enum Checked {
    Free,
    /// No agent holds the place, but another agent has announced to change it.
    Near(String),
    /// Another agent holds a part of it.
    Held(String),
}

pub(crate) fn run(asked: &Run) -> Result<u8, CliError> {
    // A program that `provost acp` has started asks its editor, and so asks this program anyway.
    if asked.event == Event::PermissionRequest && std::env::var_os(crate::acp::BEHIND).is_some() {
        return Ok(DONE);
    }
    // A worker's own jail limits its writes, and no daemon can be asked from a jail.
    if std::env::var_os("DEVIT_TASK_ID").is_some() && std::env::var_os("DEVIT_WORKSPACE").is_some() {
        return Ok(DONE);
    }
    let until = Instant::now() + Duration::from_millis(HOOK_MS_MAX);
    let told = read(until).and_then(|it| HookInput::read(&it).map_err(CliError::of));
    Ok(respond(asked, told, until).tell())
}

/// Returns the answer for the host.
pub(super) fn respond(asked: &Run, told: Result<HookInput, CliError>, until: Instant) -> Said {
    match asked.event {
        Event::PreToolUse => {
            let asked_of = asked.clone();
            let checked = told.and_then(|told| {
                let late = || CliError::of("it cannot be worked out in time what it writes");
                apart(until, move || check(&asked_of, told, until)).unwrap_or_else(|| Err(late()))
            });
            answer(asked.host, checked)
        }
        Event::PermissionRequest => permission(asked, told, until),
        Event::PostToolUse | Event::UserPromptSubmit => answered_there(asked, told, until),
        Event::Stop | Event::SubagentStop | Event::Notification => inbox::at(asked, told, until),
        Event::SessionStart => ends::begin(asked, told, until),
        Event::SessionEnd => ends::end(asked, told, until),
    }
}

/// Finds the repository of the host's project, which may differ from the folder of its shell.
pub(super) fn here(asked: &Run, told: &HookInput) -> Result<RepoContext, CliError> {
    if let Some(over) = &asked.over {
        return over.here(told);
    }
    let named = ["CLAUDE_PROJECT_DIR", "CURSOR_PROJECT_DIR"].into_iter().find_map(std::env::var_os);
    let said = named.map(PathBuf::from).or_else(|| told.text("cwd").map(PathBuf::from));
    let cwd = match said.filter(|it| it.is_dir()) {
        Some(cwd) => cwd,
        None => {
            std::env::current_dir().map_err(|err| CliError::of("there is no folder to be in").because(err))?
        }
    };
    RepoContext::in_folder(cwd, Environment::current())
}

/// Returns the agent on whose behalf the host's session speaks.
pub(super) fn agent(asked: &Run, told: &HookInput, here: &RepoContext) -> Result<AgentId, CliError> {
    if let Some(agent) = IdentityArgs::named_plainly(here, asked.speak_as.clone())? {
        return Ok(agent);
    }
    // Cursor calls Claude Code's hooks as well.
    let host = if asked.is_of_cursor() { HookHost::Cursor } else { asked.host };
    let process = asked.process();
    let noted = || session::noted_by(&here.places, process?);
    let session = told.session().map(|id| Session { host: host.word(), id, process });
    // Codex names the session in every call over MCP, and one of its processes may have several.
    let named = match (host, session) {
        (HookHost::Codex, session) => session.and_then(|it| session::of_codex(it.id).agent(&here.places)),
        (HookHost::Cursor, session) if session::is_adapted(&here.places, host.word()) => {
            session.and_then(|it| it.agent(&here.places))
        }
        (_, None) => noted(),
        (_, Some(it)) => match noted() {
            Some(noted) => it.is_called(&here.places, noted),
            None if asked.event == Event::SessionStart => it.begun(&here.places, told.goes_on()),
            None => it.agent(&here.places),
        },
    };
    named.ok_or_else(|| CliError::of("the host does not say which session this is"))
}

/// Checks whether the host works in a repository: a daemon for `/` or a folder of temporary files would coordinate nothing.
fn is_repository(here: &RepoContext) -> bool {
    here.places.identity != here.places.root
}

/// Returns a client of the daemon for a write; `None` where none runs and the folder is no repository, or the settings let
/// writes pass then.
pub(crate) async fn reachable(here: &RepoContext, agent: AgentId) -> Result<Option<Client>, CliError> {
    if here.inside.is_some() || !matches!(here.client().about().await, Err(ClientError::NotRunning(_))) {
        return here.daemon(Some(agent)).await.map(Some);
    }
    if !is_repository(here) {
        return Ok(None);
    }
    match here.config(None)?.config.hooks.when_down {
        WhenDown::Start => daemon(here, agent).await.map(Some),
        WhenDown::Pass => Ok(None),
        WhenDown::Block => Err(CliError::of("no daemon runs, and hooks.when_down is \"block\"")),
    }
}

/// Returns a client of the daemon, started if none runs and the folder is a repository.
pub(super) async fn daemon(here: &RepoContext, agent: AgentId) -> Result<Client, CliError> {
    let client = here.client();
    let may_start = here.inside.is_none() && is_repository(here) && here.environment.auto_start;
    if may_start && matches!(client.about().await, Err(ClientError::NotRunning(_))) {
        let mut up = tokio::process::Command::new(provost_system::this_program());
        up.args(["daemon", "start", "--unattended"]).current_dir(&here.places.worktree);
        up.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // Whether the start succeeded shows at the next request.
        let _status = up.status().await;
    }
    here.daemon(Some(agent)).await
}

/// Checks whether the tool may write the files that it would.
fn check(asked: &Run, told: HookInput, until: Instant) -> Result<Checked, CliError> {
    let here = here(asked, &told)?;
    let told = Arc::new(told);
    let checked = foreseen(asked, &here, &told, until)?;
    let (checked, writes_index) = checked;
    // Cursor calls Claude Code's hooks as well, but reports the end of a command to a hook of its own.
    let is_another = asked.host == HookHost::Claude && asked.is_of_cursor();
    if is_another || !told.is_command() || matches!(checked, Checked::Held(_)) {
        return Ok(checked);
    }
    if writes_index {
        let held = match asked.host {
            HookHost::Claude => index::take(asked, &here, &told, until),
            HookHost::Codex | HookHost::Cursor => index::wait(asked, &here, &told, until),
        };
        if let Some(held) = unless_stopped(&here, held)?.flatten() {
            return Ok(Checked::Held(held));
        }
    }
    afterwards::put_aside(asked, &here, &told, until);
    Ok(checked)
}

/// Does the same for the foreseeable writes; also returns whether git's index of this work tree is written.
fn foreseen(
    asked: &Run,
    here: &RepoContext,
    told: &Arc<HookInput>,
    until: Instant,
) -> Result<(Checked, bool), CliError> {
    let folder = told.folder(&here.cwd);
    let work_until = until.min(Instant::now() + Duration::from_millis(HOOK_WORK_MS_MAX));
    let worked_out = {
        let (told, over) = (Arc::clone(told), asked.over.clone());
        // Files may be slow to read, and texts slow to compare.
        apart(work_until, move || {
            let targets = told.targets(&folder, work_until);
            // Up to here the call counts among those that the daemon analyses.
            drop(over);
            targets
        })
    };
    let targets = worked_out
        .unwrap_or_else(|| Ok(Targets::anything()))
        .map_err(|why| CliError::of("the tool call is not understood").because(why))?;
    let writes_index = targets.index.iter().any(|it| index::is_here(here, it));
    // A command may name such a file, which no agent can hold; its other writes are still checked.
    if let Some(why) = unnamed(here, &targets.files).filter(|_| !told.is_command()) {
        return Ok((Checked::Held(why), writes_index));
    }
    let edits = trees::by_tree(here, &targets.files)?;
    if edits.is_empty() && targets.wide.is_empty() && !links::are_there(&targets) {
        return Ok((Checked::Free, writes_index));
    }
    let agent = agent(asked, told, here)?;
    let writer = |takes| Writer {
        takes,
        pid: host_process(asked, told),
        part: told.text("agent_id").map(str::to_owned),
    };
    let look = |targets, edits, takes| {
        within(here, until, guarded(here, (agent.clone(), targets), edits, writer(takes), until))
    };
    // Of a command, only the contents in a patch are known beforehand.
    let is_all = !told.is_command();
    let looked = unless_stopped(here, look(&targets, edits, is_all))?.flatten();
    let Some(mut guarded) = looked else { return Ok((Checked::Free, writes_index)) };
    let taken = if is_all { targets.files.len() } else { targets.patched };
    let taken = &targets.files[..taken];
    let to_take = if is_all { Vec::new() } else { trees::by_tree(here, taken)? };
    if guarded.blocked.is_empty()
        && !to_take.is_empty()
        && let Some(now) = look(&Targets::default(), to_take, true)?
    {
        guarded = now;
    }
    if !guarded.blocked.is_empty() {
        let refusal = refusal(asked.host, &guarded);
        let held = match targets.is_anything() {
            true => format!("{NOT_WORKED_OUT} {refusal}"),
            false => refusal,
        };
        return Ok((Checked::Held(held), writes_index));
    }
    note(here, &agent, taken);
    Ok((nearby(&guarded).map_or(Checked::Free, Checked::Near), writes_index))
}

/// Returns the daemon's answer, which takes leases for a tool that writes files; `None` where none runs and the
/// settings let writes pass then.
pub(super) async fn guarded(
    here: &RepoContext,
    (agent, targets): (AgentId, &Targets),
    mut edits: Vec<InTree>,
    writer: Writer,
    until: Instant,
) -> Result<Option<wire::Guarded>, CliError> {
    let Some(client) = reachable(here, agent).await? else { return Ok(None) };
    if !targets.wide.is_empty() || links::are_there(targets) {
        let held = known_of_others(&client).await?;
        links::add(here, targets, &held, &mut edits);
        let (top, wide) = (here.places.worktree.clone(), targets.wide.clone());
        // Files about which git has not answered by then count as written.
        let git_until = until.min(Instant::now() + Duration::from_millis(HOOK_WORK_MS_MAX));
        let among = tokio::task::spawn_blocking(move || among_those(&top, &wide, &held, git_until));
        let among = among.await.map_err(|err| CliError::of("it cannot be worked out").because(err))?;
        let tree = || InTree { worktree: here.linked_worktree(), edits: among };
        edits.extend((!targets.wide.is_empty()).then(tree));
    }
    let mut all = None;
    // A write to several work trees takes no lease if one of the places is held.
    if !writer.takes || edits.len() > 1 {
        for it in &edits {
            let asked = wire::Guard { edits: it.edits.clone(), worktree: it.worktree.clone() };
            all = Some(trees::joined(all, client.guard(&asked).await?));
        }
        if !writer.takes || all.as_ref().is_some_and(|it| !it.blocked.is_empty()) {
            return Ok(all);
        }
    }
    let mut all = None;
    for InTree { worktree, edits } in edits {
        let asked = wire::HoldEdits { edits, worktree, pid: writer.pid, part: writer.part.clone() };
        all = Some(trees::joined(all, client.hold_edits(&asked).await?));
    }
    Ok(all)
}

/// Notes the contents that a write will leave, for hooks that compare files after a command.
pub(super) fn note(here: &RepoContext, agent: &AgentId, files: &[Target]) {
    for file in files {
        let after = file.change.as_ref().map(|(_, after)| after.as_slice());
        let places = names_in(here, &file.path);
        places.iter().for_each(|it| overwritten::note(&here.places, agent, it, after));
    }
}

/// Returns the files that others hold wholly or partly, or intend to change.
async fn known_of_others(client: &Client) -> Result<BTreeSet<String>, CliError> {
    let me = client.who_am_i().await?.agent;
    let locks = client.locks(&wire::Whose::default()).await?.locks;
    let locked = locks.into_iter().filter(|it| it.holder != me && !Resource::is_meant(&it.symbol));
    let locked =
        locked.map(|it| it.symbol.split_once(':').map_or(it.symbol.clone(), |(file, _)| file.to_owned()));
    let claims = client.claims(&wire::ClaimsQuery::default()).await?;
    let claimed = claims.into_iter().filter(|it| it.holder != me).map(|it| it.file);
    let intents = client.intents(&wire::Whose::default()).await?;
    let intended = intents.into_iter().filter(|it| it.agent != me).flat_map(|it| it.files).map(|it| it.path);
    Ok(locked.chain(claimed).chain(intended).collect())
}

/// Returns those of the held files that a write to many files would write.
fn among_those(top: &Path, wide: &[Wide], held: &BTreeSet<String>, until: Instant) -> Vec<wire::Edit> {
    let top = provost_system::real_path(top).unwrap_or_else(|_| top.to_owned());
    let held = TreeFile::all(&top, held.iter().map(String::as_str));
    let written: BTreeSet<&str> = wide.iter().flat_map(|it| it.among(&top, &held, until)).collect();
    written.into_iter().map(|path| wire::Edit { path: path.into(), ..wire::Edit::default() }).collect()
}

/// Returns the host's process: leases by writing end with it.
pub(super) fn host_process(asked: &Run, told: &HookInput) -> Option<u32> {
    match (asked.host, told.session()) {
        (HookHost::Codex, Some(session)) => session::last_of_codex(session, told.text("cwd").map(Path::new)),
        _ => asked.process(),
    }
}

/// Returns the answer in the host's own form. A free place gets no answer, since a yes would replace the person's.
fn answer(host: HookHost, checked: Result<Checked, CliError>) -> Said {
    let reason = match checked {
        Ok(Checked::Free) => return Said::nothing(),
        // Cursor accepts no text with a call that goes on.
        Ok(Checked::Near(_)) if host == HookHost::Cursor => return Said::nothing(),
        Ok(Checked::Near(what)) => {
            return Said::line(json!({ "hookSpecificOutput": {
                "hookEventName": "PreToolUse", "additionalContext": what,
            }}));
        }
        Ok(Checked::Held(reason)) => reason,
        Err(error) => format!(
            "Not written: Provost could not find out whether another agent works on it: {}. Try again; if that does not help, \
             tell the person: `provost doctor` says what is wrong, and `provost hook remove {}` takes this check out.",
            error.in_short(),
            host.word()
        ),
    };
    let said = match host {
        HookHost::Claude | HookHost::Codex => json!({ "hookSpecificOutput": {
            "hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": reason,
        }}),
        HookHost::Cursor => json!({ "permission": "deny", "user_message": reason, "agent_message": reason }),
    };
    Said::refused(said, reason)
}

/// Handles a tool that was used, or words of the person: a question that was open in two places has then been
/// answered in the host. Of the hosts only Claude Code asks in two places.
fn answered_there(asked: &Run, told: Result<HookInput, CliError>, until: Instant) -> Said {
    let news = told.and_then(|told| {
        let here = here(asked, &told)?;
        let agent = agent(asked, &told, &here)?;
        let moved = asked.beside.and_then(|port| {
            // If this fails, the next hook reports it.
            let _started = within(&here, until, async { daemon(&here, agent.clone()).await.map(drop) });
            form::moved(&here, port)
        });
        match told.tool() {
            _ if asked.host != HookHost::Claude => {}
            Ok(tool) => Shown::take_away(&here.places, &agent, tool, told.arguments()),
            Err(_) => Shown::take_all_away(&here.places, &agent),
        }
        // A subagent would hear the news instead of its session.
        let has_ended = told.text("agent_id").is_none() && inbox::has_ended_a_turn(&here, &agent);
        let is_next_turn = has_ended || asked.event == Event::UserPromptSubmit;
        let still_held = || within(&here, until, afterwards::still_held(&here, agent.clone()));
        let held = if is_next_turn { still_held()? } else { None };
        let news = match asked.event {
            _ if told.is_command() => {
                if asked.host == HookHost::Claude {
                    index::give_back(&here, &agent, &told, until);
                }
                within(&here, until, afterwards::overwritten(&here, agent.clone(), &told))?
            }
            _ => None,
        };
        let event = told.text("hook_event_name").unwrap_or("PostToolUse").to_owned();
        // A failure is only noted, since there may be more to tell.
        let (heard, failed) = match inbox::heard(asked.host, &here, &agent, &told, until) {
            Ok(heard) => (heard, None),
            Err(error) => (None, Some(error)),
        };
        let news = inbox::beside(inbox::beside(held, news), heard);
        Ok((event, inbox::beside(moved, news), failed))
    });
    let (event, news, failed) = match news {
        Ok(it) => it,
        Err(error) => return Said::note(format!("provost: {}", error.in_short())),
    };
    let said = match news {
        None => Said::nothing(),
        // Cursor accepts no text after a command. The holders have their messages.
        Some(_) if asked.host == HookHost::Cursor => Said::nothing(),
        // Codex drops an answer with a member that it does not know.
        Some(news) => {
            Said::line(json!({ "hookSpecificOutput": { "hookEventName": event, "additionalContext": news } }))
        }
    };
    match failed {
        Some(error) => said.noting(format!("provost: {}", error.in_short())),
        None => said,
    }
}
