//! The content of a request that a person has to know before answering it, wherever it is shown.
//!
//! The daemon's findings stand apart from the asker's own words, so that those cannot pass for facts.

use serde_json::Value;

use provost_api::wire::Approval;
use provost_base::visible;

use super::word::is_a_person;
use super::{DiffFile, edit, plain};

/// Returns the daemon's facts as names and values; a fact without a name belongs to the one before it. No fact is cut or left out.
pub fn facts(approval: &Approval, time: impl Fn(&str) -> String) -> Vec<(&'static str, String)> {
    let mut facts = vec![
        ("asks for", plain::asked(approval)),
        ("risk", approval.risk.clone()),
        ("asked by", format!("{}, door {}", approval.asked_by, approval.door)),
    ];
    if plain::has_tool_of_its_own(approval) {
        facts.insert(1, ("tool", approval.tool.clone()));
    }
    facts.extend(approval.worker.clone().map(|worker| ("worker", worker)));
    facts.extend(approval.request.as_ref().and_then(in_its_place).map(|it| ("runs instead", it)));
    // Settings stand apart from the other files, since programs run them later or they tell agents what to do.
    facts.extend(settings(approval).map(|it| ("setting", it)));
    facts.extend(approval.working_dir.clone().map(|dir| ("directory", dir)));
    // Each address stands in a line, since a person answers for all of them.
    let mut reach = approval.network.split(' ');
    facts.push(("network", reach.next().unwrap_or_default().to_owned()));
    facts.extend(reach.map(|it| ("", it.to_owned())));
    facts.extend(approval.secrets.iter().map(|it| ("secret", it.clone())));
    facts.push(("rule", format!("{}: {}", approval.rule, approval.reason)));
    facts.push(("may answer", plain::approvers(&approval.by)));
    facts.push(("asked", time(&approval.asked_at)));
    facts.push(("until", time(&approval.expires_at)));
    facts.extend(asked_again(approval).map(|it| ("then", it)));
    facts.extend(approval.task.clone().map(|task| ("task", task)));
    facts.extend(approval.inside.clone().map(|task| ("asked inside of", task)));
    facts.push(("digest", approval.digest.clone()));
    facts.into_iter().map(|(name, fact)| (name, visible(&fact))).collect()
}

/// Says what happens when the approval's time is over; `None` where the request is then denied.
fn asked_again(approval: &Approval) -> Option<String> {
    let so_far = match approval.asked_again {
        0 => String::new(),
        times => format!(" (asked again so far: {times})"),
    };
    match (approval.asks_left, approval.asked_again) {
        (0, 0) => None,
        (0, _) => Some(format!("it is denied{so_far}")),
        (left, _) => Some(format!("it is asked again, up to {left} times{so_far}")),
    }
}

/// Returns the asker's words as headings and texts, which are data. None of it is cut or left out, since a person answers for all of it.
pub fn words(approval: &Approval) -> Vec<(&'static str, String)> {
    let whose = match is_a_person(&approval.asked_by) {
        true => "in the person's own words:",
        false => "in the agent's own words, unchecked:",
    };
    let goal = approval.goal.clone().map(|goal| (whose, goal));
    let shown =
        approval.request.as_ref().map(|it| without_what_was_found(it, of_an_apply(approval).is_some()));
    let more = shown.as_ref().and_then(beyond_the_goal);
    let diff = of_an_apply(approval).and_then(diff_of).map(|it| ("the difference that it makes:", it));
    let edit = of_a_tool(approval).and_then(edit::difference);
    let more = match (&edit, of_a_tool(approval)) {
        (Some(_), Some(arguments)) => without_edit(approval, arguments),
        _ => more,
    };
    let diff = diff.or_else(|| edit.map(|it| ("the difference that it asks for, unchecked:", it)));
    // The change stands first; the request repeats it for machines.
    let said = goal.into_iter().chain(diff).chain(more.map(|more| ("and the rest of its request:", more)));
    said.map(|(says, text)| (says, visible(&text))).collect()
}

/// Returns the request of an apply, whose content the daemon has checked. In other requests members of the same names are
/// the asker's own words.
fn of_an_apply(approval: &Approval) -> Option<&Value> {
    approval.request.as_ref().filter(|_| approval.verb == "ApplyFiles")
}

/// Returns the arguments of a host's tool.
fn of_a_tool(approval: &Approval) -> Option<&Value> {
    approval.request.as_ref().filter(|_| approval.verb == "AskPermission")?.get("arguments")
}

/// Returns the rest of a request for an edit, whose texts are shown as a difference.
fn without_edit(approval: &Approval, arguments: &Value) -> Option<String> {
    let mut request = approval.request.clone()?;
    request["arguments"] = edit::without_texts(arguments);
    beyond_the_goal(&request)
}

/// Returns the settings that an apply would write.
fn settings(approval: &Approval) -> impl Iterator<Item = String> + use<> {
    let list = of_an_apply(approval).and_then(|it| it.get("settings")?.as_array().cloned());
    list.unwrap_or_default().into_iter().filter_map(|it| it.as_str().map(str::to_owned))
}

/// Returns a request without the members that are shown elsewhere.
fn without_what_was_found(request: &Value, is_apply: bool) -> Value {
    let mut request = request.clone();
    if let Some(members) = request.as_object_mut().filter(|_| is_apply) {
        members.retain(|name, _| !["diff", "settings"].contains(&name.as_str()));
    }
    request
}

/// Returns the files of the difference that an apply would make; for another request the list is empty.
pub fn difference(approval: &Approval) -> Vec<DiffFile> {
    of_an_apply(approval).and_then(diff_of).map(|text| super::diff_files(&visible(&text))).unwrap_or_default()
}

/// Returns the changes of an apply as text.
fn diff_of(request: &Value) -> Option<String> {
    request.get("diff")?.as_str().filter(|it| !it.is_empty()).map(str::to_owned)
}

/// Returns the command line that runs instead of the worker's own program.
fn in_its_place(request: &Value) -> Option<String> {
    let words = request.get("errand")?.get("command")?.as_array()?;
    Some(words.iter().map(Value::to_string).collect::<Vec<_>>().join(" "))
}

/// Returns the members of a request that are not shown yet: a person answers for all of them.
fn beyond_the_goal(request: &Value) -> Option<String> {
    const SHOWN: [&str; 3] = ["action", "goal", "working_dir"];
    let mut request = request.clone();
    let whole = request.as_object_mut()?;
    if let Some(task) = whole.get_mut("task").and_then(Value::as_object_mut) {
        task.retain(|name, value| !SHOWN.contains(&name.as_str()) && !value.is_null());
    }
    whole.retain(|_, value| !value.is_null() && value.as_object().is_none_or(|it| !it.is_empty()));
    (!whole.is_empty()).then(|| serde_json::to_string_pretty(&request).unwrap_or_default())
}
