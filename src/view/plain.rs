//! Plain words for the names of verbs, tools and approvers. Rules, events and JSON keep the names.

use provost_api::wire::Approval;
use provost_base::{visible, visible_name};
use serde_json::Value;

/// Most branches of a merge that are named.
const BRANCHES_NAMED: usize = 3;

/// Says in short what an approval asks for, and whose task or change it is about. Foreign names have their hidden characters shown.
pub fn asked(approval: &Approval) -> String {
    let member = |name: &str| approval.request.as_ref().and_then(|it| it.get(name));
    match approval.verb.as_str() {
        "Delegate" => format!("task for {}", name(approval.worker.as_deref().unwrap_or("a worker"))),
        "ApplyFiles" => match member("undo").and_then(Value::as_u64) {
            Some(apply) => format!("undo of apply {apply}"),
            None => apply(approval),
        },
        "QueueMerges" => merge(member("merge"), member("into")),
        "AskPermission" => tool(&approval.tool),
        "TakeScreenshot" => "picture of the screen".into(),
        "GoOn" => "work beyond its budget".into(),
        other => visible(other),
    }
}

fn apply(approval: &Approval) -> String {
    let of = approval.task.as_deref().map(|it| format!(" of task {}", visible_name(it, 8)));
    let by = approval.worker.as_deref().map(|it| format!(" by {}", name(it)));
    format!("changes{}{} into your files", of.unwrap_or_default(), by.unwrap_or_default())
}

fn merge(branches: Option<&Value>, into: Option<&Value>) -> String {
    let all = branches.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut names: Vec<String> =
        all.iter().take(BRANCHES_NAMED).filter_map(|it| it.get("branch")?.as_str().map(name)).collect();
    let more = all.len().saturating_sub(names.len());
    names.extend((more > 0).then(|| format!("{more} more")));
    let into = into.and_then(Value::as_str).map(|it| format!(" into {}", name(it))).unwrap_or_default();
    format!("merge of {}{into}", names.join(", "))
}

fn name(text: &str) -> String {
    visible_name(text, 40)
}

/// Returns the name of a host's tool, without the prefix of the door through which the host asks.
pub(crate) fn tool(tool: &str) -> String {
    visible(tool.strip_prefix("acp:").unwrap_or(tool))
}

/// Checks whether a tool's name says more than the name of the request.
pub(crate) fn has_tool_of_its_own(approval: &Approval) -> bool {
    approval.tool != approval.verb && approval.tool != "devit_delegate" && approval.verb != "AskPermission"
}

/// Checks whether a granted command is carried out only when its asker submits it again.
pub fn is_repeated_by_its_asker(verb: &str) -> bool {
    matches!(verb, "ApplyFiles" | "QueueMerges")
}

/// Names one kind of approver in plain words.
pub(crate) fn approver(by: &str) -> &str {
    match by {
        "human" => "a person",
        "passkey" => "a passkey",
        "passkey-if-enrolled" => "a person (with a passkey, once one is enrolled)",
        "host" => "a dialog of the agent's program",
        agent => agent,
    }
}

/// Names the approvers in plain words, given as `wire::Approval::by` lists them.
pub(crate) fn approvers(by: &str) -> String {
    by.split(", ").map(approver).collect::<Vec<_>>().join(", ")
}
