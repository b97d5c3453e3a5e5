//! The changes that a turn has made in its copy, shown to the editor's person with the question whether they may be written.
//!
//! The answer does not prove that a person gave it. A rule that requires an approval for applies gets one, as for any
//! agent; an editor that shows a token with the right `apply` needs none.

use serde_json::{Value, json};

use super::prompt::fenced;
use super::turn::ToEditor;
use crate::{changes, out};
use provost_api::wire;
use provost_base::limits::ACP_JAILED_DIFF_BYTES_MAX;
use provost_base::{visible, visible_name};
use provost_client::{Client, ClientError};

const APPLY: &str = "apply";
const LEAVE: &str = "leave";

/// Shows the changes, asks whether they may be written, and writes them then.
pub(super) async fn offer(client: &Client, editor: &ToEditor, task: &wire::Task) {
    let of_task = wire::OfTask { task: task.id.clone(), ..wire::OfTask::default() };
    let files = match client.preview_task(&of_task).await {
        Ok(files) => files,
        Err(error) => return editor.tell(&format!("Its changes cannot be shown: {error}")).await,
    };
    let written: Vec<&wire::Previewed> = files.iter().filter(|it| it.action != "skip").collect();
    for it in files.iter().filter(|it| it.action == "skip") {
        let why = it.reason.as_deref().unwrap_or("the file says that already");
        editor.tell(&visible_name(&format!("Not to be written: {}: {why}", it.path), 800)).await;
    }
    if written.is_empty() {
        return tell(editor, task).await;
    }
    let mut call = called(task, &written);
    call["sessionUpdate"] = "tool_call".into();
    editor.show(&call).await;
    let options = json!([
        { "optionId": APPLY, "name": "Write them into the workspace", "kind": "allow_once" },
        { "optionId": LEAVE, "name": "Leave them in the copy", "kind": "reject_once" },
    ]);
    let chosen = editor.ask(&called(task, &written), &options).await;
    let (status, text) = match chosen.as_deref() {
        Some(APPLY) => apply(client, editor, &of_task).await,
        _ => ("failed", String::new()),
    };
    let ended = json!({ "sessionUpdate": "tool_call_update", "toolCallId": id(task), "status": status });
    editor.show(&ended).await;
    if text.is_empty() { tell(editor, task).await } else { editor.tell(&text).await }
}

/// Tells the person which changes can be applied, and by which commands.
pub(super) async fn tell(editor: &ToEditor, task: &wire::Task) {
    let text = changes::of_task(task);
    if !text.is_empty() {
        editor.tell(&format!("Changes of task {}:\n{}", task.id, fenced(text.trim_end()))).await;
    }
}

fn id(task: &wire::Task) -> String {
    format!("provost-apply-{}", task.id)
}

/// Returns the question as a tool call: its files, and as much of their differences as a person reads in a dialog.
fn called(task: &wire::Task, files: &[&wire::Previewed]) -> Value {
    let mut text = String::new();
    let mut left_out = 0;
    for it in files {
        let shown = match &it.diff {
            Some(diff) if text.len() + diff.len() <= ACP_JAILED_DIFF_BYTES_MAX => visible(diff),
            _ => {
                left_out += 1;
                format!(
                    "{} {}: {} lines come and {} go\n",
                    it.action,
                    visible_name(&it.path, 400),
                    it.added,
                    it.removed
                )
            }
        };
        let later =
            if it.runs_later { "the next file runs later, or tells agents what to do:\n" } else { "" };
        text.push_str(later);
        text.push_str(&shown);
    }
    let mut content =
        vec![json!({ "type": "content", "content": { "type": "text", "text": fenced(&text) } })];
    if left_out > 0 {
        let words = format!(
            "{left_out} differences are not shown here: {}",
            provost_base::task_command("task diff", &task.id, "")
        );
        content.push(json!({ "type": "content", "content": { "type": "text", "text": words } }));
    }
    let count = files.len();
    let title =
        if count == 1 { "Write 1 changed file".to_owned() } else { format!("Write {count} changed files") };
    json!({
        "toolCallId": id(task), "title": title, "kind": "edit", "status": "pending", "content": content,
        "rawInput": { "task": task.id, "paths": files.iter().map(|it| it.path.as_str()).collect::<Vec<_>>() },
    })
}

/// Writes the changes; returns the status of the call, and a text for the person. Waits for the approval, if a rule requires one.
async fn apply(client: &Client, editor: &ToEditor, of_task: &wire::OfTask) -> (&'static str, String) {
    let mut done = client.apply_task(of_task).await;
    if let Ok(it) = &done
        && let Some(approval) = it.approval.filter(|_| it.state == "awaiting")
    {
        let waits = crate::follow::waiting_for(client, approval).await;
        editor.tell(&format!("The rules want an approval before they are written: {waits}")).await;
        done = match answered(client, approval).await {
            Ok(()) => client.apply_task(of_task).await,
            Err(error) => Err(error),
        };
    }
    let done = match done {
        Ok(done) => done,
        Err(error) => return ("failed", format!("Nothing was written: {error}")),
    };
    match done.state.as_str() {
        "applied" => written(&done),
        "denied" => {
            let word = |text: &Option<String>| out::one_line(text.as_deref().unwrap_or("unknown"), 400);
            let text = format!("Nothing was written: rule {}: {}", word(&done.rule), word(&done.reason));
            ("failed", text)
        }
        // Another approval is required, since the files to write have changed.
        _ => ("failed", String::new()),
    }
}

fn written(done: &wire::Applied) -> (&'static str, String) {
    let mut text = format!("Written: {}.", done.applied);
    if let Some(number) = done.apply {
        text.push_str(&format!(" To take it back: provost undo {number}"));
    }
    for error in &done.errors {
        text.push_str(&format!("\nLeft alone: {}", visible_name(error, 800)));
    }
    (if done.errors.is_empty() { "completed" } else { "failed" }, text)
}

/// Waits until an approval has ended.
async fn answered(client: &Client, approval: u64) -> Result<(), ClientError> {
    let about = client.about().await?;
    let mut events = client.event_stream(about.journal_seq).await?;
    while client.approvals().await?.iter().any(|it| it.id == approval) {
        while !is_about(&events.next().await?, approval) {}
    }
    Ok(())
}

/// Checks whether an event is about an approval.
fn is_about(event: &Value, approval: u64) -> bool {
    let kind = event["kind"].as_object().and_then(|it| it.iter().next());
    kind.is_some_and(|(name, it)| name.starts_with("approval_") && it["approval"] == approval)
}
