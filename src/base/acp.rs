//! Reads a tool call in the form of the Agent Client Protocol for rules: the name by which they know the tool, and
//! the arguments that they examine. ACP v1, "Tool calls".
//!
//! An agent may describe a call differently in different places, or later. Its earlier statements about files stay
//! in force after later ones, and if places differ, all of them count.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

/// The kinds of calls. ACP v1, `ToolKind`.
const KINDS: [&str; 10] =
    ["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"];
/// Arguments by which tools name the file that they are about.
pub const PATH_ARGUMENTS: [&str; 5] = ["file_path", "filePath", "filepath", "path", "notebook_path"];
/// Tools that write nothing, as agents name them.
const READERS: [&str; 4] = ["Read", "Grep", "Glob", "LS"];
/// The number of earlier differences and places that are kept.
const EARLIER_MAX: usize = 64;

/// The member of a delegation's free data with the id of the editor's session, if the delegation is a turn of one.
pub const EDITOR_SESSION: &str = "editor_session";
/// The beginning of such an id, before the digits of a number in base 16.
const SESSION_PREFIX: &str = "provost-";
const SESSION_DIGITS: usize = 32;

/// Makes the id of an editor's session with an agent in its jail, of 128 bits at random.
pub fn editor_session_id(random: u128) -> String {
    format!("{SESSION_PREFIX}{random:032x}")
}

/// Returns whether [`editor_session_id`] makes such an id.
pub fn is_editor_session(id: &str) -> bool {
    let digits = id.strip_prefix(SESSION_PREFIX).unwrap_or_default();
    digits.len() == SESSION_DIGITS
        && digits.bytes().all(|it| it.is_ascii_digit() || (b'a'..=b'f').contains(&it))
}

/// Returns the editor's session that a delegation's free data names.
pub fn editor_session(context: &Value) -> Option<&str> {
    context.get(EDITOR_SESSION)?.as_str().filter(|it| is_editor_session(it))
}

/// Merges an update into the known description of a call: members that the update lacks stay. ACP v1: absent and
/// null both mean unchanged. A list replaces another one, except for that one's statements about files.
pub fn merge(call: &mut Value, update: &Value) {
    let (diffs, places) = (earlier_diffs(call, update), earlier_places(call, update));
    let (Some(known), Some(update)) = (call.as_object_mut(), update.as_object()) else { return };
    for (name, value) in update {
        let is_empty = value.is_null() || value.as_object().is_some_and(Map::is_empty);
        if !is_empty || !known.contains_key(name) {
            known.insert(name.clone(), value.clone());
        }
    }
    append(known, "content", diffs);
    append(known, "locations", places);
}

/// Returns the differences of files that an update no longer mentions.
fn earlier_diffs(call: &Value, update: &Value) -> Vec<Value> {
    let said: BTreeSet<&str> = diffs(update).filter_map(|it| it["path"].as_str()).collect();
    let is_hidden = |it: &&Value| it["path"].as_str().is_some_and(|it| !said.contains(it));
    let is_replaced = update.get("content").is_some_and(|it| !it.is_null());
    diffs(call).filter(|_| is_replaced).filter(is_hidden).take(EARLIER_MAX).cloned().collect()
}

/// Returns the places that an update no longer names.
fn earlier_places(call: &Value, update: &Value) -> Vec<Value> {
    let is_replaced = |name: &str| update.get(name).is_some_and(|it| !it.is_null());
    let said: BTreeSet<&str> = places(update).chain(named(update)).collect();
    let of_list = places(call).filter(|_| is_replaced("locations"));
    // Arguments without members mean nothing.
    let has_arguments = update["rawInput"].as_object().is_some_and(|it| !it.is_empty());
    let earlier = of_list.chain(named(call).filter(|_| has_arguments));
    let hidden: BTreeSet<&str> = earlier.filter(|it| !said.contains(it)).collect();
    hidden.into_iter().take(EARLIER_MAX).map(|it| json!({ "path": it })).collect()
}

fn append(call: &mut Map<String, Value>, name: &str, more: Vec<Value>) {
    if more.is_empty() {
        return;
    }
    match call.get_mut(name).and_then(Value::as_array_mut) {
        Some(all) => all.extend(more),
        None => drop(call.insert(name.to_owned(), Value::Array(more))),
    }
}

/// Returns the value with one folder's path replaced by another's in every text: the one that an agent sees in its
/// jail, and the one that it stands for.
pub fn in_place_of(value: &Value, from: &str, to: &str) -> Value {
    match value {
        Value::String(text) => text.replace(from, to).into(),
        Value::Array(items) => items.iter().map(|it| in_place_of(it, from, to)).collect(),
        Value::Object(members) => Value::Object(
            members.iter().map(|(name, it)| (name.clone(), in_place_of(it, from, to))).collect(),
        ),
        other => other.clone(),
    }
}

/// Returns the changes that a call announces.
pub fn diffs(call: &Value) -> impl Iterator<Item = &Value> {
    call["content"].as_array().into_iter().flatten().filter(|it| it["type"] == "diff")
}

/// Returns the places that the call is about, according to its agent.
pub fn places(call: &Value) -> impl Iterator<Item = &str> {
    call["locations"].as_array().into_iter().flatten().filter_map(|it| it["path"].as_str())
}

/// Returns the files that its arguments name.
pub fn named(call: &Value) -> impl Iterator<Item = &str> {
    PATH_ARGUMENTS.iter().filter_map(|it| call["rawInput"].get(it)?.as_str())
}

/// Checks whether the call names any file that it is about.
pub fn names_files(call: &Value) -> bool {
    diffs(call).next().is_some() || places(call).next().is_some() || named(call).next().is_some()
}

/// Checks whether the call says anywhere that it writes.
pub fn writes(call: &Value) -> bool {
    matches!(kind(call), "edit" | "delete" | "move") || diffs(call).next().is_some()
}

/// Returns the tool: the name that the agent gives, or vendors give in `_meta`, or that of a server's tool, or else the
/// name under which rules know the tools of its kind. A tool that writes does not count as a reader, even under a
/// reader's name.
pub fn tool(call: &Value) -> Cow<'_, str> {
    let said = |at: &str| call.pointer(at).and_then(Value::as_str).filter(|it| !it.trim().is_empty());
    let named = said("/name").or_else(|| said("/_meta/claudeCode/toolName"));
    match named {
        Some(reader) if writes(call) && READERS.contains(&reader) => "Edit".into(),
        Some(named) => named.into(),
        None if writes(call) && kind(call) == "read" => "Edit".into(),
        None => of_server(call).unwrap_or_else(|| by_kind(kind(call)).into()),
    }
}

/// Returns the name of a tool of an MCP server, in the form in which hosts name such tools, if the call has the server among its arguments and
/// no name, as those of Codex do. A call that tells a command is a command.
fn of_server(call: &Value) -> Option<Cow<'static, str>> {
    let raw = &call["rawInput"];
    let said = |name: &str| raw[name].as_str().map(str::trim).filter(|it| !it.is_empty());
    let tells_a_command =
        raw.as_object().is_none_or(|it| it.contains_key("command") || it.contains_key("cmd"));
    if kind(call) != "execute" || tells_a_command {
        return None;
    }
    match (said("server"), said("tool"), said("serverName")) {
        (Some(server), Some(tool), _) => Some(format!("mcp__{server}__{tool}").into()),
        // Codex asks about some of these calls without the tool.
        (_, _, Some(server)) => Some(format!("mcp__{server}").into()),
        _ if said("url").is_some() => Some("fetch".into()),
        _ => None,
    }
}

/// Returns the kind of a call, in any case of letters; `other` if the agent names none.
pub fn kind(call: &Value) -> &str {
    let said = call["kind"].as_str().map(str::trim).filter(|it| !it.is_empty()).unwrap_or("other");
    let said = KINDS.iter().find(|it| it.eq_ignore_ascii_case(said)).copied().unwrap_or(said);
    if said == "other" { of_goose(call).unwrap_or(said) } else { said }
}

/// Returns the kind of a call of Goose's own tools, which Goose reports as `other`.
fn of_goose(call: &Value) -> Option<&'static str> {
    let tool = call.pointer("/_meta/goose/toolCall").filter(|it| it["extensionName"] == "developer")?;
    match tool["toolName"].as_str()? {
        "write" | "edit" => Some("edit"),
        "shell" => Some("execute"),
        _ => None,
    }
}

/// Returns the title of a call for people: its own title, its command, its tool and its files, or what calls of its kind do. It makes nothing
/// up: a call with an unknown command is shown as such a call.
pub fn title(call: &Value) -> String {
    let said = |at: &str| call.pointer(at).and_then(Value::as_str).filter(|it| !it.trim().is_empty());
    if let Some(title) = said("/title") {
        return title.to_owned();
    }
    if let Some(line) = command(call) {
        return line;
    }
    let files: BTreeSet<&str> =
        diffs(call).filter_map(|it| it["path"].as_str()).chain(places(call)).chain(named(call)).collect();
    let files = files.into_iter().collect::<Vec<_>>().join(", ");
    let named =
        said("/name").or_else(|| said("/_meta/claudeCode/toolName")).or_else(|| said("/_meta/toolName"));
    match named.map(Cow::from).or_else(|| of_server(call)) {
        Some(tool) if files.is_empty() => tool.into_owned(),
        Some(tool) => format!("{tool} {files}"),
        None if files.is_empty() => in_words(kind(call)).to_owned(),
        None => format!("{} ({files})", in_words(kind(call))),
    }
}

/// Returns the command line of a call, which is a text or a list of words.
fn command(call: &Value) -> Option<String> {
    let raw = &call["rawInput"];
    let given = ["command", "cmd"]
        .iter()
        .find_map(|it| raw.get(it))
        .or_else(|| (kind(call) == "execute").then_some(raw))?;
    let line = match given {
        Value::String(line) => line.clone(),
        Value::Array(words) => words.iter().map(Value::as_str).collect::<Option<Vec<_>>>()?.join(" "),
        _ => return None,
    };
    (!line.trim().is_empty()).then_some(line)
}

/// Returns the effect of calls of a kind in words, for a call that the agent describes no further.
fn in_words(kind: &str) -> &'static str {
    match kind {
        "read" => "reads a file",
        "edit" => "changes a file",
        "delete" => "deletes a file",
        "move" => "moves a file",
        "search" => "searches",
        "execute" => "runs a command that it does not tell",
        "think" => "thinks",
        "fetch" => "fetches something",
        "switch_mode" => "changes its mode",
        _ => "uses a tool that it does not name",
    }
}

/// Returns the name under which rules know the tools of a kind, if the agent names none. ACP v1, `ToolKind`.
fn by_kind(kind: &str) -> &str {
    match kind {
        "execute" => "Shell",
        "edit" => "Edit",
        "read" => "Read",
        other => other,
    }
}

/// Returns the arguments that rules examine: the tool's own, and the protocol's statements about the call where
/// those are missing or different. A command counts as itself, and in addition the changes that the call announces.
pub fn arguments(call: &Value) -> Value {
    let mut told = match &call["rawInput"] {
        Value::Object(given) => given.clone(),
        line @ (Value::String(_) | Value::Array(_)) if kind(call) == "execute" => {
            Map::from_iter([("command".to_owned(), line.clone())])
        }
        _ => Map::new(),
    };
    if of_goose(call) == Some("edit")
        && let Some(path) = told.remove("path")
    {
        told.entry("file_path").or_insert(path);
    }
    let of_diffs = || diffs(call).filter_map(|it| it["path"].as_str());
    if ["command", "cmd"].iter().any(|it| told.contains_key(*it)) {
        let changed: BTreeSet<&str> = of_diffs().collect();
        if !changed.is_empty() {
            add_paths(&mut told, &changed);
        }
        return Value::Object(told);
    }
    let paths: BTreeSet<&str> = places(call).chain(of_diffs()).collect();
    let own = ["file_path", "notebook_path"].iter().find_map(|it| told.get(*it)).cloned();
    match (own, paths.first()) {
        (None, Some(path)) if paths.len() == 1 => drop(told.insert("file_path".into(), json!(path))),
        (None, Some(_)) => add_paths(&mut told, &paths),
        (Some(own), Some(_)) if paths.iter().any(|it| own != *it) => add_paths(&mut told, &paths),
        _ => {}
    }
    if told.is_empty() {
        told.insert("kind".into(), kind(call).into());
    }
    told.entry("title").or_insert_with(|| title(call).into());
    Value::Object(told)
}

/// Adds paths under a name by which rules recognise paths.
fn add_paths(told: &mut Map<String, Value>, paths: &BTreeSet<&str>) {
    let given = told.remove("paths").into_iter();
    let all: Vec<Value> = paths.iter().map(|it| json!(it)).chain(given).collect();
    told.insert("paths".into(), Value::Array(all));
}
