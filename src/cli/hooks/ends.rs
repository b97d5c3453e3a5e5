//! The beginning and the end of a host's session.

use std::time::Instant;

use serde_json::json;

use super::call::HookInput;
use super::form;
use super::host::HookHost;
use super::inbox;
use super::overwritten;
use super::run::{Run, agent, daemon, here};
use super::said::Said;
use super::shown::Shown;
use super::waits::within;
use crate::{CliError, session};
use provost_api::wire;

/// Tells the model how to work beside other agents, and the session's shells on whose behalf they speak.
pub(super) fn begin(asked: &Run, told: Result<HookInput, CliError>, until: Instant) -> Said {
    let begun = told.and_then(|told| {
        let here = here(asked, &told)?;
        let agent = agent(asked, &told, &here)?;
        let name = agent.to_string();
        if let Some(session) = told.session().filter(|_| asked.host == HookHost::Codex) {
            session::of_codex(session).is_there(&here.places, &agent);
        }
        // The daemon then runs when the first write comes; if it could not be started, that write reports it.
        let _started = within(&here, until, async { Ok(daemon(&here, agent).await?.who_am_i().await?) });
        Ok((name, asked.beside.and_then(|port| form::moved(&here, port))))
    });
    let (name, moved) = match begun {
        Ok(it) => it,
        Err(error) => return Said::note(format!("provost: {}", error.in_short())),
    };
    name_shells(&name);
    let context = format!(
        "Several agents work on this repository through Provost; you are {name}. What you write with your tools for files is \
         yours until you commit it, or have not written there for a while: you need no lock for it, and others cannot write \
         it meanwhile. A write to what another agent holds is refused, with who holds it: then work on something else, wait \
         (lock_acquire with wait_s), or write to them (message_send). Do not get around it with shell commands. To keep \
         something before you write it, take it with lock_acquire, and give it back with lock_release."
    );
    let context = inbox::beside(moved, Some(context)).unwrap_or_default();
    Said::line(match asked.host {
        HookHost::Claude | HookHost::Codex => json!({ "hookSpecificOutput": {
            "hookEventName": "SessionStart", "additionalContext": context,
        }}),
        HookHost::Cursor => json!({ "additional_context": context }),
    })
}

/// Writes the agent's name to the file from which a host sets the environment of its shells.
fn name_shells(agent: &str) {
    use std::io::Write as _;
    let plain = |it: &str| it.chars().all(|c| c.is_ascii_alphanumeric() || "._:/-".contains(c));
    let Some(path) = std::env::var_os("CLAUDE_ENV_FILE").filter(|_| plain(agent)) else { return };
    let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
    // Without this variable, shells speak as the user.
    let _unheard = file.and_then(|mut it| writeln!(it, "export PROVOST_AGENT='{agent}'"));
}

/// Releases everything that the session holds.
pub(super) fn end(asked: &Run, told: Result<HookInput, CliError>, until: Instant) -> Said {
    let ended = told.and_then(|told| {
        let here = here(asked, &told)?;
        let agent = agent(asked, &told, &here)?;
        Shown::take_all_away(&here.places, &agent);
        overwritten::forget_calls(&here.places, &agent);
        let _told = inbox::has_ended_a_turn(&here, &agent);
        if let Some(session) = told.session().filter(|_| asked.host == HookHost::Codex) {
            session::of_codex(session).is_over(&here.places);
        }
        within(&here, until, async {
            // Where no daemon runs, no agent holds anything for long.
            let client = here.daemon(Some(agent.clone())).await?;
            inbox::goes_on(&here, &agent, "done").await?;
            let left = client.leave(&wire::Leave { intents: true, pid: None }).await?;
            let crew = client.leave_crew(&wire::LeaveCrew { only_if_idle: false }).await?;
            Ok((left, crew.left))
        })
    });
    match ended {
        Ok((left, crew)) => {
            let crew = if crew { ", left the crew" } else { "" };
            let wire::Left { locks, intents } = left;
            Said::note(format!("provost: released {locks} locks, abandoned {intents} intents{crew}"))
        }
        Err(error) => Said::note(format!("provost: nothing was released: {}", error.in_short())),
    }
}
