//! What agents say has happened, what is seen of files, and the conflicts that come of both.
//!
//! A claim is advice: nothing keeps another agent from writing. When another one has written to a claimed file, by its
//! own word or because its owner is not there, the file is in conflict, and nobody has it until somebody says whose
//! change counts. Agent Protocol, 3.3, 3.7 and 6.

use std::sync::Arc;

use super::command::{FilesSeen, NoteTaken, NotesTaken, SeeFiles, SeenFile, TakeNote, TakeNotes};
use super::{
    Claim, Content, CrewChange, CrewEvent, CrewRefusal, Hold, Note, Outbox, Principal, Refusal, Seen,
    Standing, State,
};
use crate::base::limits::{ID_LEN_MAX, NOTE_BYTES_MAX, PATH_LEN_MAX};
use crate::base::{AgentId, RepoPath, Timestamp};

/// The name under which a change is told of that nobody has owned up to.
pub(super) const UNKNOWN: &str = "unknown";

impl State {
    /// Agent Protocol, `POST /events`. A note may be word of a change, or end a conflict.
    pub(super) fn take_note(
        &self,
        now: Timestamp,
        who: &Principal,
        verb: &TakeNote,
        out: &mut Outbox,
    ) -> Result<NoteTaken, Refusal> {
        fits(&verb.note)?;
        self.agents.beat(now, who.agent(), out);
        let event = out.told(CrewEvent::Noted(verb.note.clone()).into());
        if let Some((file, content)) = &verb.changed {
            self.intrude(file, who.agent(), *content, out);
        }
        if let Some((file, pick)) = &verb.settles {
            self.settle_conflict(now, file, pick.as_ref(), out);
        }
        Ok(NoteTaken { event })
    }

    /// What another daemon has kept changes nothing here but the timeline.
    pub(super) fn take_notes(&self, verb: &TakeNotes, out: &mut Outbox) -> Result<NotesTaken, Refusal> {
        verb.notes.iter().try_for_each(fits)?;
        for note in &verb.notes {
            out.say(CrewEvent::Noted(note.clone()).into());
        }
        Ok(NotesTaken)
    }

    /// Somebody has changed a file. If it is another's, there is a conflict.
    fn intrude(&self, file: &RepoPath, intruder: &AgentId, after: Content, out: &mut Outbox) {
        let Some(claim) = self.claims.get(file) else { return };
        let (Hold::Claimed { owner, since } | Hold::Locked { owner, since }) = &claim.held else { return };
        if owner == intruder {
            return;
        }
        self.in_conflict(claim, owner, *since, intruder, after, out);
    }

    fn in_conflict(
        &self,
        claim: &Claim,
        owner: &AgentId,
        since: Timestamp,
        intruder: &AgentId,
        after: Content,
        out: &mut Outbox,
    ) {
        out.say(
            CrewEvent::ConflictFound {
                file: claim.file.clone(),
                owner: owner.clone(),
                intruder: intruder.clone(),
                before: claim.content,
                after,
            }
            .into(),
        );
        let held = Hold::Conflicted { owner: owner.clone(), since };
        let last = Some(intruder.clone());
        out.put(CrewChange::PutClaim(Arc::new(Claim { held, last, content: after, ..claim.clone() })).into());
    }

    /// A conflict is over: the file is free, or the picked agent's, if it is one of the crew.
    fn settle_conflict(&self, now: Timestamp, file: &RepoPath, pick: Option<&AgentId>, out: &mut Outbox) {
        let conflicted = |it: &&Arc<Claim>| matches!(it.held, Hold::Conflicted { .. });
        let Some(claim) = self.claims.get(file).filter(conflicted) else { return };
        let picked = pick.and_then(|it| self.crew.get(it)).map(|it| it.id.clone());
        let held = match picked {
            Some(owner) => Hold::Claimed { owner, since: now },
            None => Hold::Free,
        };
        let last = claim.held.owner().cloned();
        let settled = Claim { held, last, fence: out.next_fence(), ..Claim::clone(claim) };
        out.put(CrewChange::PutClaim(Arc::new(settled)).into());
    }

    /// What was seen of files from outside. Whose change it was is not seen; an owner who is there gets the blame.
    pub(super) fn see_files(&self, verb: &SeeFiles, out: &mut Outbox) -> FilesSeen {
        for seen in &verb.files {
            self.see(seen, out);
        }
        FilesSeen
    }

    fn see(&self, seen: &SeenFile, out: &mut Outbox) {
        let claim = self.claims.get(&seen.file);
        let before = claim.map(|it| it.content);
        let same = seen.how == Seen::Changed && before.is_some() && before == seen.after;
        if same {
            return;
        }
        let holder = claim.and_then(|it| match &it.held {
            Hold::Claimed { owner, since } | Hold::Locked { owner, since } => Some((it, owner, *since)),
            Hold::Free | Hold::Conflicted { .. } => None,
        });
        let away = |id: &AgentId| self.crew.get(id).is_none_or(|it| it.standing == Standing::Offline);
        let present = holder.filter(|(_, owner, _)| !away(owner));
        out.say(
            CrewEvent::FileChanged {
                file: seen.file.clone(),
                how: seen.how,
                tracked: claim.is_some(),
                owner: present.map(|(_, owner, _)| owner.clone()),
                before: before.or(seen.before),
                after: seen.after,
            }
            .into(),
        );
        let after = seen.after.unwrap_or(Content::Missing);
        match (holder, claim) {
            (Some((claim, owner, since)), _) if away(owner) => {
                let intruder = AgentId::parse(UNKNOWN).expect("a constant that is a valid id");
                self.in_conflict(claim, owner, since, &intruder, after, out);
            }
            (_, Some(claim)) => {
                let claim = Claim { content: after, ..Claim::clone(claim) };
                out.put(CrewChange::PutClaim(Arc::new(claim)).into());
            }
            (_, None) => {}
        }
    }
}

/// Whether a note is one that is kept.
fn fits(note: &Note) -> Result<(), Refusal> {
    let short = [&note.before, &note.after, &note.assignment];
    let long = short.iter().any(|it| it.as_deref().is_some_and(|it| it.len() > ID_LEN_MAX))
        || note.action.len() > ID_LEN_MAX
        || note.file.as_deref().is_some_and(|it| it.len() > PATH_LEN_MAX)
        || note.metadata.as_str().len() > NOTE_BYTES_MAX;
    if long { Err(CrewRefusal::TooLarge { most: NOTE_BYTES_MAX }.into()) } else { Ok(()) }
}
