//! Notes of agents, observed changes of files, and the conflicts that result from both.
//!
//! A claim is advice: nothing keeps another agent from writing. When another agent has written to a claimed file,
//! by its own report or because the owner is absent, the file is in conflict, and no agent has it until it is
//! decided whose change counts. Agent Protocol, 3.3, 3.7 and 6.

use std::sync::Arc;

use super::command::{
    ChangedFile, FilesSeen, NoteTaken, NotesTaken, SeeFiles, SeenFile, SettledFile, TakeNote, TakeNotes,
};
use super::{
    Ahead, ApplyChange, Claim, Content, CrewChange, CrewEvent, CrewRefusal, Hold, Note, Outbox, Principal,
    Refusal, Seen, State, Version,
};
use provost_base::limits::{ID_LEN_MAX, NOTE_BYTES_MAX, PATH_LEN_MAX};
use provost_base::{AgentId, Timestamp};

/// The name under which a change appears when no agent has reported it.
pub(super) const UNKNOWN: &str = "unknown";

impl State {
    /// Takes a note in, which may report a change or end a conflict. Agent Protocol, `POST /events`.
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
        if let Some(changed) = &verb.changed {
            self.report_change(now, who.agent(), changed, out);
        }
        if let Some(settled) = &verb.settles {
            self.settle_conflict(now, settled, out);
        }
        Ok(NoteTaken { event })
    }

    /// Puts another daemon's events on the timeline; nothing else changes.
    pub(super) fn take_notes(&self, verb: &TakeNotes, out: &mut Outbox) -> Result<NotesTaken, Refusal> {
        verb.notes.iter().try_for_each(fits)?;
        for note in &verb.notes {
            out.append_event(CrewEvent::Noted(note.clone()).into());
        }
        Ok(NotesTaken)
    }

    /// Records that an agent says it has changed a file. If another agent has the file, there is a conflict.
    pub(super) fn report_change(
        &self,
        now: Timestamp,
        who: &AgentId,
        changed: &ChangedFile,
        out: &mut Outbox,
    ) {
        let Some(claim) = self.claims.get(&changed.file) else { return };
        if let Some(ahead) = self.ahead(now, &changed.file, Some(who)) {
            self.mark_conflicted(claim, ahead, who, changed.content, &changed.versions, out);
        } else if claim.held.owner() == Some(who) && claim.versions.is_empty() {
            // The change is the owner's: no agent has to be asked about it, and it is not reported again when the
            // watch sees it.
            let known = Claim { content: changed.content, earlier: None, ..Claim::clone(claim) };
            out.put(CrewChange::PutClaim(Arc::new(known)).into());
        }
    }

    fn mark_conflicted(
        &self,
        claim: &Claim,
        ahead: Ahead,
        intruder: &AgentId,
        after: Content,
        versions: &[Version],
        out: &mut Outbox,
    ) {
        let Some(since) = claim.held.since() else { return };
        let Ahead { owner, contents } = ahead;
        // The versions were kept before this was decided; if another agent has the file by now, they do not count.
        let fit = versions.first().is_some_and(|it| it.agent == owner);
        let versions = if fit { versions.to_vec() } else { Vec::new() };
        out.append_event(
            CrewEvent::ConflictFound {
                file: claim.file.clone(),
                owner: owner.clone(),
                intruder: intruder.clone(),
                before: contents.first().copied().unwrap_or(claim.content),
                after,
                versions: versions.clone(),
            }
            .into(),
        );
        let (held, last) = (Hold::Conflicted { owner, since }, Some(intruder.clone()));
        let claim = Claim { held, last, content: after, earlier: None, versions, ..claim.clone() };
        out.put(CrewChange::PutClaim(Arc::new(claim)).into());
    }

    /// Ends a conflict: the file is free, or belongs to the picked agent if that is a member of the crew.
    fn settle_conflict(&self, now: Timestamp, settled: &SettledFile, out: &mut Outbox) {
        let conflicted = |it: &&Arc<Claim>| matches!(it.held, Hold::Conflicted { .. });
        let Some(claim) = self.claims.get(&settled.file).filter(conflicted) else { return };
        let picked = settled.pick.as_ref().and_then(|it| self.crew.get(it)).map(|it| it.id.clone());
        let held = match picked {
            Some(owner) => Hold::Claimed { owner, since: now },
            None => Hold::Free,
        };
        let last = claim.held.owner().cloned();
        let (content, versions) = (settled.content.unwrap_or(claim.content), Vec::new());
        let fence = out.next_fence();
        // A file that another agent has handed over does not count to its new owner's share.
        let share = claim.share.clone().filter(|_| held.owner() == last.as_ref());
        let settled = Claim { held, last, content, versions, fence, share, ..Claim::clone(claim) };
        out.put(CrewChange::PutClaim(Arc::new(settled)).into());
    }

    /// Records changes of files that the watch has seen. The watch does not see whose change it was; an owner that
    /// is present is taken as the author.
    pub(super) fn see_files(&self, now: Timestamp, verb: &SeeFiles, out: &mut Outbox) -> FilesSeen {
        for seen in &verb.files {
            self.see(now, seen, out);
        }
        FilesSeen
    }

    fn see(&self, now: Timestamp, seen: &SeenFile, out: &mut Outbox) {
        let claim = self.claims.get(&seen.file);
        let says = seen.after.unwrap_or(Content::Missing);
        match self.written.of(&seen.file) {
            // The timeline has the change already, with the agent for which it was written.
            Some(written) if written == says => return,
            Some(_) => out.put(ApplyChange::Forget(seen.file.clone()).into()),
            None => {}
        }
        let before = claim.map(|it| it.content);
        let same = seen.how == Seen::Changed && before.is_some() && before == seen.after;
        if same {
            return;
        }
        let holder = claim.and_then(|it| match &it.held {
            Hold::Claimed { owner, .. } | Hold::Locked { owner, .. } => Some(owner),
            Hold::Free | Hold::Conflicted { .. } => None,
        });
        let present = holder.filter(|owner| !self.is_away(owner)).cloned();
        out.append_event(
            CrewEvent::FileChanged {
                file: seen.file.clone(),
                how: seen.how,
                tracked: claim.is_some(),
                owner: present.clone(),
                by: None,
                before: before.or(seen.before),
                after: seen.after,
            }
            .into(),
        );
        let after = seen.after.unwrap_or(Content::Missing);
        let Some(claim) = claim else { return };
        if let Some(ahead) = self.ahead(now, &seen.file, None) {
            self.mark_conflicted(claim, ahead, &super::unknown(), after, &seen.versions, out);
            return;
        }
        // Another agent may still report the change as its own.
        let window = self.settings.crew.detection_window;
        let earlier = present.and_then(|_| claim.earlier_after(now, window));
        let claim = Claim { content: after, earlier, ..Claim::clone(claim) };
        out.put(CrewChange::PutClaim(Arc::new(claim)).into());
    }
}

/// Checks that a note is within the bounds.
fn fits(note: &Note) -> Result<(), Refusal> {
    let short = [&note.before, &note.after, &note.assignment];
    let long = short.iter().any(|it| it.as_deref().is_some_and(|it| it.len() > ID_LEN_MAX))
        || note.action.len() > ID_LEN_MAX
        || note.file.as_deref().is_some_and(|it| it.len() > PATH_LEN_MAX)
        || note.metadata.as_str().len() > NOTE_BYTES_MAX;
    if long { Err(CrewRefusal::TooLarge { most: NOTE_BYTES_MAX }.into()) } else { Ok(()) }
}
