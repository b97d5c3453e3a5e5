//! A permission request: asked in the host's stead, in the queue of approvals.

use std::time::{Duration, Instant};

use serde_json::json;

use super::call::Told;
use super::host::Host;
use super::run::{Run, agent, here};
use super::said::Said;
use super::settled;
use super::shown::Shown;
use super::waits::within;
use crate::{CliError, out, session};
use provost_api::wire;
use provost_base::limits::{HOOK_ASK_MS, PERMISSION_BYTES_MAX};
use provost_base::{Ttl, shortened};
use provost_client::Client;

/// How long an answer is waited for where no person sits at the host: time enough for a person who has been waiting for the
/// question in Provost's queue, and for no other.
const UNATTENDED_WAIT_MAX: Ttl = Ttl::seconds_clamped(5);

/// What a model is told then.
const NOBODY_THERE: &str = "Provost: no person sits at this host, and no answer has come from Provost's queue within \
     5 seconds. Go on without it, and say what you could not do. A person allows it beforehand by a rule for `permission` in \
     Provost's policy, or by a rule of the host's own.";

/// Asks in the host's stead. Where there is no answer nothing is said, and the host asks its person itself; where no person
/// sits at the host, the answer is no, and says so.
pub(super) fn permission(asked: &Run, told: Result<Told, CliError>, until: Instant) -> Said {
    let unattended = told.as_ref().is_ok_and(|told| is_unattended(asked.host, told));
    if !unattended && told.as_ref().is_ok_and(|told| settled::by_host(asked.host, told)) {
        return Said::nothing();
    }
    let wait = if unattended { asked.wait.min(UNATTENDED_WAIT_MAX) } else { asked.wait };
    let answered = told.and_then(|told| {
        let here = here(asked, &told)?;
        let agent = agent(asked, &told, &here)?;
        let tool = told.tool().map_err(CliError::of)?;
        // What it does is judged by our rules when it is called. That the server of this name is ours, its note says.
        if tool.starts_with(wire::OUR_TOOLS) && session::noted(&here.places).is_some() {
            return Ok(Some((true, String::new())));
        }
        let folder = settled::folder(asked.host, &told, &here.cwd).filter(|it| it.is_absolute());
        let question = wire::AskPermission {
            id: uuid::Uuid::new_v4().to_string(),
            host: asked.host.word().into(),
            tool: tool.into(),
            arguments: shortened(told.arguments(), PERMISSION_BYTES_MAX),
            patience_ms: wait.as_millis().into(),
            wait_ms: None,
            folder: folder.and_then(|it| it.to_str().map(str::to_owned)),
            worktree: here.linked_worktree(),
        };
        let shown = Shown::keep(&here.places, &agent, tool, told.arguments());
        let until = until + wait.as_duration();
        within(&here, until, async {
            // A question is no reason to start one: where none runs, the host asks its person.
            let client = here.daemon(Some(agent)).await?;
            tokio::select! {
                answered = ask(&client, question, wait) => answered,
                // Its person has answered in the host's own dialog. What waits in the queue goes with our connection.
                () = shown.is_taken_away() => Ok(None),
            }
        })
    });
    let decision = match answered {
        Ok(Some((true, _))) => json!({ "behavior": "allow" }),
        Ok(Some((false, why))) => json!({ "behavior": "deny", "message": why }),
        Ok(None) if unattended => json!({ "behavior": "deny", "message": NOBODY_THERE }),
        Ok(None) => return Said::nothing(),
        Err(error) => return Said::note(format!("provost: not asked: {}", error.in_short())),
    };
    Said::line(
        json!({ "hookSpecificOutput": { "hookEventName": "PermissionRequest", "decision": decision } }),
    )
}

/// Whether the host asks no person, however long is waited: Claude Code says so to what it starts; Codex refuses what would have
/// to be asked about where its policy is never to ask, as it always is in `codex exec`.
fn is_unattended(host: Host, told: &Told) -> bool {
    match host {
        Host::Codex => told.text("permission_mode") == Some("bypassPermissions"),
        Host::Claude | Host::Cursor => {
            std::env::var_os("CLAUDE_CODE_SESSION_ATTENDED").is_some_and(|it| it == "0")
        }
    }
}

/// The answer, and why it is no; `None` if no answer comes in time, or no rule speaks of it.
async fn ask(
    client: &Client,
    mut question: wire::AskPermission,
    patience: Ttl,
) -> Result<Option<(bool, String)>, CliError> {
    let until = Instant::now() + patience.as_duration();
    loop {
        let left = until.saturating_duration_since(Instant::now());
        question.wait_ms = u64::try_from(left.min(Duration::from_millis(HOOK_ASK_MS)).as_millis()).ok();
        let said = client.ask_permission(&question).await?;
        match said.state.as_str() {
            "given" => return Ok(Some((true, String::new()))),
            "denied" => {
                let rule = said.rule.unwrap_or_default();
                let why = format!("Provost: no: {} (rule {rule})", said.reason.unwrap_or_default());
                return Ok(Some((false, out::one_line(&why, 800))));
            }
            "waiting" if !left.is_zero() => {}
            _ => return Ok(None),
        }
    }
}
