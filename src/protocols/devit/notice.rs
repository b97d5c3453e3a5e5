//! The message for a notification hook, in DevIt's words. DevIt 1.9.

use serde::Serialize;
use serde_json::json;

use super::map;
use provost_base::limits::HOOK_VALUE_BYTES_MAX;
use provost_base::{Digest, Json};
use provost_domain::Notice;

/// The most bytes of a value that is too large to be passed whole.
const BEGINNING_BYTES: usize = 1_000;

/// `DEVIT_NOTIFY_PAYLOAD`. The order of the members is DevIt's.
#[derive(Serialize)]
struct Payload<'a> {
    task_id: &'a str,
    status: &'a str,
    worker: &'a str,
    return_to: &'a str,
    summary: &'a str,
    working_dir: Option<&'a str>,
    details: Option<&'a Json>,
    evidence: Option<&'a Json>,
    timestamp: &'a str,
    metadata: Option<&'a Json>,
}

/// Returns the variables of a hook, and the whole payload for a file: a system limits a variable to 128 KiB, so a
/// larger value is replaced in the variables by its size and beginning.
pub fn hook_words(notice: &Notice, salt: &Digest) -> (Vec<(&'static str, String)>, String) {
    let (details, metadata) = map::told(notice, salt);
    let (details, metadata) =
        (details.as_ref().map(Json::from_value), metadata.as_ref().map(Json::from_value));
    let timestamp = notice.at.rfc3339();
    let whole = Payload {
        task_id: notice.task.as_str(),
        status: &notice.said,
        worker: notice.worker.as_str(),
        return_to: notice.return_to.as_str(),
        summary: &notice.report.summary,
        working_dir: notice.working_dir.as_deref(),
        details: details.as_ref(),
        evidence: notice.report.evidence.as_ref(),
        timestamp: &timestamp,
        metadata: metadata.as_ref(),
    };
    let short = |it: Option<&Json>| it.map(in_short);
    let (details, evidence, metadata) = (short(whole.details), short(whole.evidence), short(whole.metadata));
    let brief = Payload {
        details: details.as_ref(),
        evidence: evidence.as_ref(),
        metadata: metadata.as_ref(),
        ..whole
    };
    let mut variables = vec![
        ("DEVIT_NOTIFY_TASK_ID", brief.task_id.to_owned()),
        ("DEVIT_NOTIFY_STATUS", brief.status.to_owned()),
        ("DEVIT_NOTIFY_WORKER", brief.worker.to_owned()),
        ("DEVIT_NOTIFY_RETURN_TO", brief.return_to.to_owned()),
        ("DEVIT_NOTIFY_SUMMARY", brief.summary.to_owned()),
        ("DEVIT_NOTIFY_TIMESTAMP", timestamp.clone()),
        ("DEVIT_NOTIFY_PAYLOAD", printed(&brief)),
    ];
    let there = [
        ("DEVIT_NOTIFY_WORKDIR", brief.working_dir),
        ("DEVIT_NOTIFY_DETAILS", brief.details.map(Json::as_str)),
        ("DEVIT_NOTIFY_EVIDENCE", brief.evidence.map(Json::as_str)),
        ("DEVIT_NOTIFY_METADATA", brief.metadata.map(Json::as_str)),
    ];
    variables.extend(there.into_iter().filter_map(|(name, value)| Some((name, value?.to_owned()))));
    for (_, value) in &mut variables {
        // No environment can hold this character.
        if value.contains('\0') {
            *value = value.replace('\0', "\u{fffd}");
        }
    }
    (variables, printed(&whole))
}

fn printed(payload: &Payload<'_>) -> String {
    // Texts and existing JSON can always be encoded.
    serde_json::to_string(payload).unwrap_or_default()
}

/// Returns a value unchanged or, if it is too large, its size and beginning: as JSON, and marked as cut in the way
/// of DevIt's results.
fn in_short(value: &Json) -> Json {
    let text = value.as_str();
    if text.len() <= HOOK_VALUE_BYTES_MAX {
        return value.clone();
    }
    let beginning = &text[..text.floor_char_boundary(BEGINNING_BYTES)];
    Json::from_value(&json!({ "truncated": true, "original_size": text.len(), "beginning": beginning }))
}
