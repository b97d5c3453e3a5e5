//! NOTIFY about other agents' work at the recipient's place. Its id marks it as about no task, so clients that wait
//! for a task ignore it, as they ignore messages about other tasks.

use serde_json::{Value, json};

use provost_base::{AgentId, Fence, RepoPath, Timestamp};
use provost_domain::{Reservation, ReservationKind};

/// Returns the payload for an agent that has reserved the place through another door.
pub(super) fn met_payload(
    file: &RepoPath,
    mine: ReservationKind,
    other: &Reservation,
    now: Timestamp,
) -> Value {
    let until = other.until.map(|it| format!(" until {it}")).unwrap_or_default();
    let (verb, who, what) = (other.kind.verb(), &other.agent, &other.asked);
    let summary = format!("{}, of which you have {}, {verb} {who}{until}: {what}", file, mine.one());
    let coordination = json!({
        "file": file.as_str(),
        "yours": mine.as_str(),
        "agent": who.as_str(),
        "theirs": other.kind.as_str(),
        "at": other.at.as_str(),
        "since": other.since.rfc3339(),
        "until": other.until.map(|it| it.rfc3339()),
    });
    payload(&summary, &coordination, now)
}

/// Returns the payload for an agent that waits for a lock of the recipient.
pub(super) fn wanted_payload(
    (symbol, fence): (&str, Fence),
    agent: &AgentId,
    until: Timestamp,
    now: Timestamp,
) -> Value {
    let summary = format!("{agent} waits until {until} for {symbol}, which you have locked");
    let wanted =
        json!({ "symbol": symbol, "fence": fence.0, "agent": agent.as_str(), "until": until.rfc3339() });
    payload(&summary, &json!({ "lock_wanted": wanted }), now)
}

fn payload(summary: &str, coordination: &Value, now: Timestamp) -> Value {
    let metadata = json!({ "coordination": coordination });
    let artifacts = json!({ "summary": summary, "reported_at": now.rfc3339(), "metadata": metadata });
    json!({ "task_id": "coordination", "status": "progress", "artifacts": artifacts })
}
