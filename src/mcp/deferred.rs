//! Keeps requests that the library would drop or refuse: those of the older form of tasks, and tasks in
//! `subscriptions/listen`.
//!
//! The library's types have no member `task` in a call and no `taskIds` in a filter, and it answers `tasks/get`
//! only to a host that declares the extension. So such a request gets another method before the library reads it,
//! one that the library does not know and passes on unchanged. Every other message stays as it is, to the byte.

use memchr::memmem;
use serde_json::Value;

/// `tools/call` that becomes a task.
pub(super) const CALL: &str = "provost/tasks/call";
/// `tasks/get` from a host of the older revisions.
pub(super) const GET: &str = "provost/tasks/get";
/// `tasks/cancel` from such a host.
pub(super) const CANCEL: &str = "provost/tasks/cancel";
/// `tools/list` from such a host, in which tools declare whether they can become a task.
pub(super) const TOOLS: &str = "provost/tools/list";
/// `subscriptions/listen` with tasks.
pub(super) const LISTEN: &str = "provost/subscriptions/listen";

/// The first revision in which each request names its revision.
const NEWER: &str = "2026-07-28";

/// Returns the message under another method, and that method; `None` if the library handles the message correctly.
pub(super) fn kept(message: &[u8]) -> Option<(Vec<u8>, &'static str)> {
    let has = |word: &str| memmem::find(message, word.as_bytes()).is_some();
    let concerns = ["\"task\"", "\"taskIds\"", "\"tasks/", "\"tools/list\""];
    if !concerns.into_iter().any(has) {
        return None;
    }
    let mut message: Value = serde_json::from_slice(message).ok()?;
    let params = &message["params"];
    let version = params["_meta"]["io.modelcontextprotocol/protocolVersion"].as_str();
    let is_older = version.is_none_or(|version| version < NEWER);
    let method = match message["method"].as_str()? {
        "tools/call" if is_older && params["task"].is_object() => CALL,
        "tasks/get" if is_older => GET,
        "tasks/cancel" if is_older => CANCEL,
        "tools/list" if is_older => TOOLS,
        "subscriptions/listen" if !is_older && !params["notifications"]["taskIds"].is_null() => LISTEN,
        _ => return None,
    };
    message["method"] = method.into();
    Some((serde_json::to_vec(&message).ok()?, method))
}
