//! A permission request: Provost asks for the answer in the host's stead, in the queue of approvals.

use std::time::{Duration, Instant};

use serde_json::json;

use super::call::HookInput;
use super::host::HookHost;
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

/// The time that an answer is waited for where no person sits at the host: enough for a person who watches Provost's
/// queue, and for no other.
const UNATTENDED_WAIT_MAX: Ttl = Ttl::seconds_clamped(5);

/// The note for the model in that case.
const NOBODY_THERE: &str = "Provost: no person sits at this host, and no answer has come from Provost's queue within \
     5 seconds. Go on without it, and say what you could not do. A person allows it beforehand by a rule for `permission` in \
     Provost's policy, or by a rule of the host's own.";

/// Asks in the host's stead. Without an answer the hook says nothing, and the host asks its person itself; where no
/// person sits at the host, the answer is a refusal with this reason.
pub(super) fn permission(asked: &Run, told: Result<HookInput, CliError>, until: Instant) -> Said {
    let unattended = told.as_ref().is_ok_and(|told| is_unattended(asked.host, told));
    if !unattended && told.as_ref().is_ok_and(|told| settled::by_host(asked.host, told)) {
        return Said::nothing();
    }
    let wait = if unattended { asked.wait.min(UNATTENDED_WAIT_MAX) } else { asked.wait };
    let answered = told.and_then(|told| {
        let here = here(asked, &told)?;
        let agent = agent(asked, &told, &here)?;
        let tool = told.tool().map_err(CliError::of)?;
        // Provost's rules judge the tool when it is called. The note of `provost mcp` proves that the server of this name is Provost's.
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
            // A question does not start a daemon: where none runs, the host asks its person.
            let client = here.daemon(Some(agent)).await?;
            tokio::select! {
                answered = ask(&client, question, wait) => answered,
                // The person has answered in the host's own dialog. The approval in the queue ends with this connection.
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

/// Checks whether the host never asks a person, however long it waits: Claude Code tells this to the programs that it starts;
/// Codex refuses requests that need a question where its policy forbids questions, as it always does in `codex exec`.
fn is_unattended(host: HookHost, told: &HookInput) -> bool {
    match host {
        HookHost::Codex => told.text("permission_mode") == Some("bypassPermissions"),
        HookHost::Claude | HookHost::Cursor => {
            std::env::var_os("CLAUDE_CODE_SESSION_ATTENDED").is_some_and(|it| it == "0")
        }
    }
}

/// Returns the answer, with the reason of a refusal; `None` if no answer comes in time, or no rule covers the request.
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
