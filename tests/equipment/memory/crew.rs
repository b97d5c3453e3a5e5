//! A crew's rows, and the timeline, in memory.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use provost_base::{AgentId, AssignmentId, HandoffId, RepoPath};
use provost_domain::{Assignment, BEAT, Change, Claim, CrewChange, Handoff, Member};
use provost_store::{StoreError, StoredEvent, TimelineOrder, TimelineQuery};

#[derive(Clone, Default)]
pub(super) struct CrewRows {
    members: BTreeMap<AgentId, Arc<Member>>,
    claims: BTreeMap<RepoPath, Arc<Claim>>,
    assignments: BTreeMap<AssignmentId, Arc<Assignment>>,
    transfers: BTreeMap<HandoffId, Arc<Handoff>>,
}

impl CrewRows {
    pub(super) fn apply(&mut self, change: &CrewChange) {
        match change {
            CrewChange::PutMember(it) => drop(self.members.insert(it.id.clone(), it.clone())),
            CrewChange::DropMember(id) => drop(self.members.remove(id)),
            CrewChange::PutClaim(it) => drop(self.claims.insert(it.file.clone(), it.clone())),
            CrewChange::DropClaim(file) => drop(self.claims.remove(file)),
            CrewChange::PutAssignment(it) => drop(self.assignments.insert(it.id.clone(), it.clone())),
            CrewChange::DropAssignment(id) => drop(self.assignments.remove(id)),
            CrewChange::PutHandoff(it) => drop(self.transfers.insert(it.id.clone(), it.clone())),
            CrewChange::DropHandoff(id) => drop(self.transfers.remove(id)),
        }
    }

    pub(super) fn changes(&self) -> impl Iterator<Item = Change> + '_ {
        let members = self.members.values().cloned().map(CrewChange::PutMember);
        let claims = self.claims.values().cloned().map(CrewChange::PutClaim);
        let assignments = self.assignments.values().cloned().map(CrewChange::PutAssignment);
        let transfers = self.transfers.values().cloned().map(CrewChange::PutHandoff);
        members.chain(claims).chain(assignments).chain(transfers).map(Change::from)
    }
}

pub(super) fn imported(events: &[StoredEvent], ids: &[String]) -> Result<BTreeSet<String>, StoreError> {
    let mut found = BTreeSet::new();
    for stored in events {
        let event = stored.event()?;
        let id = event.as_ref().and_then(|it| it.origin()).filter(|id| ids.iter().any(|it| it == id));
        found.extend(id.map(str::to_owned));
    }
    Ok(found)
}

pub(super) fn timeline(
    events: &[StoredEvent],
    query: &TimelineQuery,
) -> Result<Vec<StoredEvent>, StoreError> {
    let mut found = Vec::new();
    for stored in events {
        let Some(event) = stored.event()? else { continue };
        let Some(topic) = event.topic() else { continue };
        let is = |wanted: &Option<Box<str>>, it: Option<&str>| wanted.is_none() || wanted.as_deref() == it;
        let wanted = is(&query.agent, Some(topic.agent))
            && is(&query.word, Some(topic.word))
            && is(&query.file, topic.file)
            && query.since.is_none_or(|since| topic.at >= since)
            && query.after.is_none_or(|after| event.seq > after)
            && query.before.is_none_or(|before| event.seq < before)
            && (query.beats || topic.word != BEAT);
        if wanted {
            found.push((topic.at, event.seq, stored.clone()));
        }
    }
    if query.order == TimelineOrder::NewestFirst {
        found.sort_by_key(|(at, seq, _)| Reverse((*at, *seq)));
    }
    let mut bytes = 0;
    let fits = |it: &(_, _, StoredEvent)| {
        let first = bytes == 0;
        bytes += it.2.body.as_deref().map_or(0, str::len);
        first || bytes <= query.bytes_max
    };
    Ok(found.into_iter().take(query.limit).take_while(fits).map(|it| it.2).collect())
}
