//! Tells a model the next step after a refusal. The daemon's advice is for people, who type commands; a model calls
//! tools, and its shell may not reach the daemon.

use provost_api::wire;

/// Commands in the daemon's sentences, and the tools that have the same effect.
const TOOLS: [(&str, &str); 7] = [
    ("`provost task show ID --wait`", "task_wait"),
    ("`provost lock list`", "locks_list"),
    ("`provost intent list`", "intents_list"),
    ("`provost contract list`", "contracts_list"),
    ("`provost task list`", "task_status"),
    ("`provost approval list`", "approvals_list"),
    ("`provost agent list`", "workers_list"),
];

/// Rewrites a sentence of the daemon for a model.
pub(super) fn for_models(sentence: &str) -> String {
    TOOLS.iter().fold(sentence.to_owned(), |text, (command, tool)| text.replace(command, tool))
}

/// Returns the next step if the caller lacks a right. The daemon has asked no approver, so no request waits.
fn beyond_scope(fault: &wire::ErrorBody) -> &'static str {
    let needs = fault.data.as_ref().and_then(|it| it["needs"].as_str());
    match needs {
        Some("approve") => {
            "a person answers that at a terminal of their own; tell them the number, and that you cannot answer it"
        }
        Some("operate" | "host") => {
            "only the user does that, at a terminal of their own; nothing waits for it, so go on with something else"
        }
        _ => {
            "no person was asked, and nothing waits for an answer: tell the person that this server's token lacks the right; \
             they have to make one that has it among its scopes"
        }
    }
}

/// Returns the next step after a refusal, if a model can take one.
pub(super) fn next_step(fault: &wire::ErrorBody) -> Option<String> {
    let step = match fault.error.as_str() {
        "lock_conflict" => {
            "wait for it with wait_s, work on something else, or ask the holder with message_send; locks_list shows all"
        }
        "would_deadlock" => "give back a lock that one of them waits for with lock_release, then try again",
        "held_elsewhere" | "file_held" => "work on something else, or ask the holder with message_send",
        "session_cannot" => {
            "task_status shows where the task stands; task_apply or task_discard settles what it has changed"
        }
        "lock_not_found" | "lock_not_held" => "locks_list shows who has what",
        "worker_broken" => "workers_list shows which can be used; a person has to mend this one",
        "out_of_scope" => beyond_scope(fault),
        "reserved" | "unproven" => {
            "this name has an owner; a person has to start the server under another name or with its token"
        }
        // The message says which of the two helps: this machine has a longer name for most names.
        "name_elsewhere" => "do what the message says; a further call helps once at the most",
        "not_in_crew" => "claim_acquire joins you",
        "no_worktree" => "leave `worktree` out, or give the absolute path of a work tree of this repository",
        "no_process" => "leave the process out",
        _ => {
            let hint = fault.hint.as_deref().map(for_models)?;
            let is_for_people = ["provost ", "PROVOST_", " --"].iter().any(|it| hint.contains(it));
            return (!is_for_people).then_some(hint);
        }
    };
    Some(step.into())
}
