//! Checks, before a start begins anything, the answers that people gave at other hosts while this daemon did not run.
//!
//! A running daemon checks each entry against the state before it ([`super::entries`]). At a start the state already includes the entries,
//! in rows that hosts can write. So this module checks against the journal, which is chained and signed by hosts: the question as this host
//! asked it, with the text that was shown and the approvers that its rule admits, and the passkeys as they were added and revoked.

use std::collections::BTreeMap;

use provost_base::limits::PASSKEYS_RESET_S;
use provost_base::{ApprovalId, EventSeq, HostId, TaskId, Ttl};
use provost_domain::{AnsweredAway, Approver, Event, EventKind, SOURCE_ROOT, State, Verdict};
use provost_passkey::record::Record;

use super::entries::{Unproved, admits};

/// The time after a reset of all passkeys in which none counts.
const RESET_WAIT: Ttl = Ttl::seconds_clamped(PASSKEYS_RESET_S);

/// A question as its host asked it.
struct AskedApproval {
    host: HostId,
    by: Vec<Approver>,
}

/// Checks the answers from other hosts against the journal; `state` comes from the rows.
///
/// # Errors
/// The first event that does not prove its claim, or the last event if something is about to begin that no event has granted.
pub fn check(state: &State, away: &AnsweredAway) -> Result<(), (EventSeq, Unproved)> {
    let mut record = Record::of_daemon(state.passkeys.daemon());
    let (mut asked, mut granted) = (BTreeMap::<ApprovalId, AskedApproval>::new(), Vec::new());
    let (mut last, mut reset) = (away.since, None);
    for past in &away.events {
        last = last.max(past.seq);
        let no = |why: Unproved| (past.seq, why);
        // Pruned events are from long ago.
        let Some(body) = &past.body else { continue };
        let event: Event = serde_json::from_str(body)
            .map_err(|err| no(format!("it is no event that this release knows: {err}").into()))?;
        let is_new = past.seq > away.since && event.host != away.here;
        let enrolled = record.has_keys();
        let before = record.checked();
        let signed = record.take(&past.kind, Some(body));
        match event.kind {
            EventKind::ApprovalAsked { approval, by, .. } => {
                drop(asked.insert(approval, AskedApproval { host: event.host, by }));
            }
            EventKind::ApprovalAnswered { approval, verdict, proof, .. } => {
                let ours = asked.get(&approval).filter(|it| it.host == away.here);
                if let (true, Some(question)) = (is_new, ours) {
                    signed
                        .map_err(|why| no(format!("the answer to approval {}: {why}", approval.0).into()))?;
                    let is_early = reset.is_some_and(|reset| event.at < reset);
                    let is_unknown = record.checked().without_key > before.without_key;
                    if proof.as_ref() == "passkey" && (is_early || is_unknown) {
                        let why =
                            format!("approval {} is answered by a passkey that does not count", approval.0);
                        return Err(no(why.into()));
                    }
                    // An earlier release did not record the approvers that the rule admits.
                    if !question.by.is_empty() && !admits(&question.by, &proof, enrolled) {
                        let why =
                            format!("approval {} cannot be answered by the proof `{proof}`", approval.0);
                        return Err(no(why.into()));
                    }
                }
                if verdict == Verdict::Granted {
                    granted.push(approval);
                }
            }
            EventKind::PasskeyAdded { passkey, .. } if is_new => {
                signed.map_err(|why| no(why.into()))?;
                if record.checked().unvouched > before.unvouched || *passkey.source == *SOURCE_ROOT {
                    return Err(no("a passkey was added that no known one has signed for".into()));
                }
            }
            EventKind::PasskeyRevoked { .. } if is_new => signed.map_err(|why| no(why.into()))?,
            EventKind::PasskeysReset { .. } if is_new => reset = Some(event.at.after(RESET_WAIT)),
            _ => {}
        }
    }
    let unanswered = |it: &&TaskId| {
        let task = state.tasks.get(it);
        // A question that is no longer in the journal was asked long ago.
        let is_open = |id: &ApprovalId| asked.contains_key(id) && !granted.contains(id);
        task.and_then(|it| it.approval).is_some_and(|approval| is_open(&approval))
    };
    match away.begins.iter().find(unanswered) {
        Some(task) => {
            Err((last, format!("task {task} would begin here although its approval has no answer").into()))
        }
        None => Ok(()),
    }
}
