//! Permission requests for tools of hosts: their hooks ask before the host would ask a person.

use super::Own;
use super::coordinate::base;
use super::handle::{Answered, Call, Handles, patience};
use super::map::{self, OwnError};
use provost_api::{endpoints, wire};
use provost_base::limits::{ID_LEN_MAX, PATH_LEN_MAX, PERMISSION_BYTES_MAX};
use provost_base::{Json as Kept, Ttl, is_absolute};
use provost_domain::command::AskPermission;
use provost_domain::{Answer, Denial, Failure};

impl Handles<endpoints::AskPermission> for Own {
    async fn handle(&self, call: &Call, body: wire::AskPermission) -> Answered<wire::Permission> {
        let wait = patience(body.wait_ms);
        let worktree = body.worktree.clone();
        let verb = verb(body)?;
        if let Some(peer) = &call.peer {
            self.note_host(peer);
        }
        // Provost's own tools are judged when they are called. Only a host that speaks MCP to the daemon itself
        // proves that the server of this name is Provost.
        let host = || call.peer.as_ref().and_then(|peer| peer.parent());
        if verb.tool.starts_with(wire::OUR_TOOLS) && host().is_some_and(|pid| self.0.names.is_host(pid)) {
            return Ok(said("given"));
        }
        let base = base(self, worktree).await?;
        let answer =
            self.0.provost.permission(&call.who, verb, base.as_ref(), wait).await.map_err(map::fault)?;
        Ok(match answer {
            Answer::Done(_) => said("given"),
            Answer::Parked(id) => wire::Permission { approval: Some(id.0), ..said("waiting") },
            Answer::Denied(Denial { rule, reason, failure, .. }) => {
                let state = match failure {
                    Failure::ApprovalTimeout { .. } => "unanswered",
                    _ if rule.as_str() == "no-rule" => "unruled",
                    _ => "denied",
                };
                wire::Permission { rule: Some(rule.to_string()), reason: Some(reason.into()), ..said(state) }
            }
        })
    }
}

fn said(state: &str) -> wire::Permission {
    wire::Permission { state: state.into(), approval: None, rule: None, reason: None }
}

fn verb(asked: wire::AskPermission) -> Result<AskPermission, OwnError> {
    let wire::AskPermission { id, host, tool, arguments, patience_ms, folder, .. } = asked;
    for (name, text) in [("id", &id), ("host", &host), ("tool", &tool)] {
        if text.trim().is_empty() || text.len() > ID_LEN_MAX {
            return Err(OwnError::invalid(format!("{name} has to have between 1 and {ID_LEN_MAX} bytes")));
        }
    }
    if arguments.to_string().len() > PERMISSION_BYTES_MAX {
        return Err(OwnError::invalid(format!("arguments has more than {PERMISSION_BYTES_MAX} bytes")));
    }
    if folder.as_ref().is_some_and(|it| !is_absolute(it) || it.len() > PATH_LEN_MAX) {
        return Err(OwnError::invalid(format!(
            "folder has to be an absolute path of at most {PATH_LEN_MAX} bytes"
        )));
    }
    let wait =
        Ttl::from_millis(patience_ms).ok_or_else(|| OwnError::invalid("patience_ms is out of range"))?;
    let arguments = Kept::from_value(&arguments);
    Ok(AskPermission {
        id: id.into(),
        host: host.into(),
        tool: tool.into(),
        arguments,
        wait,
        folder: folder.map(Into::into),
    })
}
