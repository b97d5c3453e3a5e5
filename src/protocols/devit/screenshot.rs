//! SCREENSHOT in both dialects. DevIt 1.8.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::Devit;
use super::map;
use super::wire::{Code, DevitError};
use provost_base::{Json, TaskId};
use provost_domain::{Answer, Failure, Mail, Principal, Status, Task, TaskState};
use provost_service::Screenshot;

/// How long to wait for a picture. Clients wait one second for the line; the rest is for transport.
const HOLD: Duration = Duration::from_millis(800);

/// A picture, or a task to wait for; with the message about it, which need not be sent any more.
pub(super) type Pictured = (Value, Option<Arc<Mail>>);

impl Devit {
    /// Handles the signed form: the message's id is the task's, as for a delegation.
    pub(super) async fn screenshot(&self, who: &Principal, msg_id: &str) -> Result<Pictured, DevitError> {
        let until = Instant::now() + HOLD;
        let task = map::new_task_id(msg_id)?;
        let answer = self.0.provost.screenshot(who, task.clone(), until).await;
        match answer.map_err(|refusal| self.fault(refusal))? {
            Answer::Done(Screenshot { task, mail }) => told(&task, mail),
            Answer::Parked(approval) => {
                let message = "Screenshot needs approval first; ask again once it is granted";
                let approval = map::approval_id(approval, &self.0.options.salt);
                let more = json!({ "task_id": task.as_str(), "status": "pending", "approval": "required", "approval_id": approval });
                Err(DevitError::new(Code::ScreenshotDenied, message).with(more))
            }
            Answer::Denied(denial) => {
                let message = format!("Screenshot denied by policy: {}", denial.reason);
                let details = json!({ "reason": "policy_denied", "rule": denial.rule.as_str() });
                Err(DevitError::new(Code::ScreenshotDenied, message).with(json!({ "details": details })))
            }
        }
    }

    /// Handles the document's form, whose requests have no task id.
    pub(super) async fn screenshot_of_the_document(&self, who: &Principal) -> Result<Pictured, DevitError> {
        let id = format!("screenshot_{}", uuid::Uuid::new_v4().simple());
        self.screenshot(who, &id).await
    }
}

fn told(task: &Task, mail: Option<Arc<Mail>>) -> Result<Pictured, DevitError> {
    match task.state {
        TaskState::Finished { status: Status::Completed, .. } => {
            let details = task.notes.last().and_then(|note| note.report.details.as_ref()).map(Json::value);
            let details = details.unwrap_or_default();
            let (path, format, size) = (&details["path"], &details["format"], &details["size"]);
            Ok((json!({ "status": "ok", "path": path, "format": format, "size": size }), mail))
        }
        TaskState::Finished { .. } => Err(failed(task).with(json!({ "task_id": task.id().as_str() }))),
        _ => Ok((pending(task.id()), mail)),
    }
}

/// Returns the answer if the picture takes longer than a client waits: its NOTIFY follows, and STATUS_REQUEST shows it.
fn pending(task: &TaskId) -> Value {
    json!({ "status": "pending", "task_id": task.as_str() })
}

fn failed(task: &Task) -> DevitError {
    let code = match &task.failure {
        // The task was cancelled, or not allowed.
        None
        | Some(
            Failure::PolicyDenied { .. }
            | Failure::ApprovalDenied { .. }
            | Failure::ApprovalTimeout { .. }
            | Failure::Sandbox { .. },
        ) => Code::ScreenshotDenied,
        Some(_) => Code::ScreenshotFailed,
    };
    let why = task.notes.last().map_or("", |note| &*note.report.summary);
    DevitError::new(code, if why.is_empty() { "Screenshot was not taken" } else { why })
}
