//! Checks, before an entry of another host is folded, what its daemon claims that people have answered and signed.
//!
//! A host's signature proves that this host decided the entry. That does not make its claims true: a passkey's
//! answer is valid here only if its signature holds with the key on record *here*, and if this daemon acts on a
//! question that was asked here, the answer must be one that the question's rule admits. The check never skips a
//! part that fails, since this host's state would then differ from the others'.

use std::collections::BTreeMap;

use serde::Deserialize as _;
use serde_json::json;

use provost_base::{ApprovalId, Digest, HostRole, Json, TaskId};
use provost_domain::{
    Approver, Change, Effect, EventKind, GrantChange, KnownPasskey, LogEntry, Outcome, Parked, Passkey,
    PasskeyChange, SOURCE_ROOT, SignedWord, State, Task, TaskState, USER_CHANGED, UserRole, Verdict, provost,
};
use provost_passkey::{Assertion, PublicKey, Transcript, Word, bytes_of, holds};

/// The reason why an entry is not folded.
pub type Unproved = Box<str>;

/// Checks an entry of another host against the state before it.
///
/// # Errors
/// The claim that the entry does not prove.
pub fn check(state: &State, entry: &LogEntry) -> Result<(), Unproved> {
    if entry.role == HostRole::Worker {
        state.must_be_work(entry).map_err(|why| -> Unproved {
            format!("that machine has joined to work alone, and {why}").into()
        })?;
    }
    if !concerns_people(state, entry) {
        return Ok(());
    }
    let mut checking = Checking { state, entry, passkeys: passkeys_of(state), granted: Vec::new() };
    for event in &entry.events {
        checking
            .event(&event.kind)
            .map_err(|why| -> Unproved { format!("event {}: {why}", event.seq).into() })?;
    }
    checking.roles()?;
    for change in &entry.changes {
        checking.change(change)?;
    }
    entry.effects.iter().filter(|it| it.1 == state.here.host).try_for_each(|it| checking.effect(&it.2))
}

/// Returns `false` for most entries: they claim nothing about people.
fn concerns_people(state: &State, entry: &LogEntry) -> bool {
    let is_theirs = |it: &EventKind| {
        matches!(
            it,
            EventKind::ApprovalAnswered { .. }
                | EventKind::PasskeyAdded { .. }
                | EventKind::PasskeyRevoked { .. }
                | EventKind::PasskeysReset { .. }
                | EventKind::WordSaid(_)
        )
    };
    let is_kept = |it: &Change| match it {
        Change::PutUser(_)
        | Change::DropUser(_)
        | Change::Passkey(_)
        | Change::Grant(GrantChange::Keep(..)) => true,
        Change::PutTask(task) => waits_for_answer(state, task.id()).is_some(),
        _ => false,
    };
    state.users.role_at(entry.by.host) < UserRole::Admin
        || !entry.effects.is_empty()
        || entry.events.iter().any(|it| is_theirs(&it.kind))
        || entry.changes.iter().any(is_kept)
}

/// Returns a task that waits for approval, with the approval.
fn waits_for_answer<'a>(state: &'a State, id: &TaskId) -> Option<(&'a Task, ApprovalId)> {
    let task = state.tasks.get(id)?;
    match task.state {
        TaskState::Awaiting { approval } => Some((&**task, approval)),
        _ => None,
    }
}

/// A passkey as it stands in the middle of an entry.
struct Standing {
    passkey: Passkey,
    counter: u32,
    is_revoked: bool,
}

impl Standing {
    fn of(it: &KnownPasskey) -> Self {
        Self { passkey: it.passkey.clone(), counter: it.counter, is_revoked: it.revoked_at.is_some() }
    }
}

fn passkeys_of(state: &State) -> BTreeMap<Box<str>, Standing> {
    state.passkeys.iter().map(|it| (it.passkey.id.clone(), Standing::of(it))).collect()
}

struct Checking<'a> {
    state: &'a State,
    entry: &'a LogEntry,
    passkeys: BTreeMap<Box<str>, Standing>,
    /// The questions that this entry has granted so far.
    granted: Vec<(ApprovalId, &'a Parked)>,
}

fn no(why: impl Into<Box<str>>) -> Result<(), Unproved> {
    Err(why.into())
}

impl<'a> Checking<'a> {
    fn event(&mut self, kind: &'a EventKind) -> Result<(), Unproved> {
        match kind {
            EventKind::ApprovalAnswered { approval, verdict, proof, signed } => {
                self.answer(*approval, *verdict, proof, signed.as_deref())
            }
            EventKind::PasskeyAdded { passkey, vouched } => self.added(passkey, vouched.as_deref()),
            EventKind::PasskeyRevoked { id, signed, .. } => {
                if let Some(word) = signed
                    && !matches!(self.said(word)?, Word::Revoke(it) if it.revoke == **id)
                {
                    return no("the signature of a revocation covers a different action");
                }
                self.passkeys.get_mut(id).into_iter().for_each(|it| it.is_revoked = true);
                Ok(())
            }
            EventKind::PasskeysReset { .. } => {
                self.passkeys.values_mut().for_each(|it| it.is_revoked = true);
                Ok(())
            }
            EventKind::WordSaid(it) => {
                let arguments = Digest::of(it.arguments.as_str().as_bytes());
                let verb = self.counted(&it.signed)?;
                match verb {
                    Word::Verb(word) if word.verb == *it.verb && word.arguments == arguments => Ok(()),
                    _ => no("another verb was signed than the one that is on record"),
                }
            }
            _ => Ok(()),
        }
    }

    /// Checks that the user's role at the entry's host permits its events. A passkey's word counts for its owner, not for the host.
    fn roles(&self) -> Result<(), Unproved> {
        let role = self.state.users.role_at(self.entry.by.host);
        let is_by_passkey = self.entry.events.iter().any(|it| match &it.kind {
            EventKind::ApprovalAnswered { signed, .. } => signed.is_some(),
            EventKind::WordSaid(_) => true,
            _ => false,
        });
        for event in &self.entry.events {
            let needs = match &event.kind {
                EventKind::ApprovalAnswered { signed: None, .. } => UserRole::Approver,
                EventKind::PasskeyAdded { vouched: None, .. }
                | EventKind::PasskeyRevoked { signed: None, .. }
                | EventKind::PasskeysReset { .. } => UserRole::Admin,
                EventKind::Recorded { what, .. } if **what == *USER_CHANGED => UserRole::Admin,
                _ if event.actor == provost() || is_by_passkey => UserRole::Viewer,
                _ => UserRole::Agent,
            };
            if role < needs {
                let (role, needs) = (role.as_str(), needs.as_str());
                return no(format!(
                    "event {} needs the role {needs}, and the host's user is {role}",
                    event.seq
                ));
            }
        }
        let changes_users = |it: &Change| matches!(it, Change::PutUser(_) | Change::DropUser(_));
        if role < UserRole::Admin && self.entry.changes.iter().any(changes_users) {
            return no(format!("users are changed, and the host's user is {}", role.as_str()));
        }
        Ok(())
    }

    /// Returns the question of this number: one that waits, or one that this entry asks.
    fn parked(&self, id: ApprovalId) -> Option<&'a Parked> {
        let waits = self.state.approvals.get(id).map(|it| &**it);
        let asked = self.entry.changes.iter().find_map(|it| match it {
            Change::PutApproval(parked) if parked.id == id => Some(&**parked),
            _ => None,
        });
        waits.or(asked)
    }

    fn answer(
        &mut self,
        id: ApprovalId,
        verdict: Verdict,
        proof: &str,
        signed: Option<&SignedWord>,
    ) -> Result<(), Unproved> {
        let Some(parked) = self.parked(id) else {
            return no(format!("it answers approval {}, which does not wait", id.0));
        };
        if !admits(&parked.by, proof, self.state.passkeys.are_enrolled()) {
            return no(format!("approval {} cannot be answered by the proof `{proof}`", id.0));
        }
        match signed {
            None if proof == "passkey" => return no("a passkey's answer has no signature"),
            None => {}
            Some(_) if proof != "passkey" => {
                return no("an answer has a passkey's signature, and another proof");
            }
            Some(word) => match self.counted(word)? {
                Word::Answer(it)
                    if it.approval == id.0
                        && it.shown == parked.shown
                        && it.grant == (verdict == Verdict::Granted) => {}
                _ => return no(format!("the answer to approval {} is not the one that was signed", id.0)),
            },
        }
        if verdict == Verdict::Granted {
            self.granted.push((id, parked));
        }
        Ok(())
    }

    /// Returns the word that a passkey signed for this repository, if passkeys count now and its counter has grown; keeps the new counter.
    fn counted(&mut self, word: &SignedWord) -> Result<Word, Unproved> {
        if self.state.passkeys.standing().left_ms > 0 {
            return Err("all passkeys were reset, and none counts yet".into());
        }
        let transcript = Transcript::read(&word.transcript).map_err(|why| why.to_string())?;
        if transcript.daemon != self.state.passkeys.daemon() {
            return Err("it was signed for another repository".into());
        }
        let said = self.said(word)?;
        if let Some(it) = self.passkeys.get_mut(&word.credential) {
            if (word.counter != 0 || it.counter != 0) && word.counter <= it.counter {
                return Err("the counter of its passkey went back".into());
            }
            it.counter = word.counter;
        }
        Ok(said)
    }

    /// Returns the word that a passkey signed, if the passkey is on record and not revoked.
    fn said(&self, word: &SignedWord) -> Result<Word, Unproved> {
        let known = self.passkeys.get(&word.credential).filter(|it| !it.is_revoked);
        let by = &known.ok_or("its passkey is not on record here, or was revoked")?.passkey;
        let transcript = Transcript::read(&word.transcript).map_err(|why| why.to_string())?;
        let bytes = |text: &str| bytes_of(text, "what was signed").map_err(|why| why.to_string());
        let (data, client) = (bytes(&word.authenticator_data)?, bytes(&word.client_data)?);
        let signature = bytes(&word.signature)?;
        let it = Assertion { authenticator_data: &data, client_data: &client, signature: &signature };
        let key = PublicKey::deserialize(&by.key.value()).map_err(|why| why.to_string())?;
        holds(&by.rp_id, transcript.digest().as_bytes(), &key, &it)
            .map_err(|why| format!("a passkey's signature does not hold: {why}"))?;
        Ok(transcript.word)
    }

    fn added(&mut self, new: &Passkey, vouched: Option<&SignedWord>) -> Result<(), Unproved> {
        let is_alone = self.passkeys.values().all(|it| it.is_revoked);
        if self.passkeys.get(&new.id).is_some_and(|it| it.is_revoked || !it.passkey.signs_as(new)) {
            return no("a passkey was added under the id of another one");
        }
        match vouched {
            None if is_alone => {}
            None => return no("a passkey was added beside known ones, and none of them has signed for it"),
            Some(word) => {
                let value = json!({ "id": new.id, "key": new.key, "name": new.name, "rp_id": new.rp_id });
                let enrolled = Digest::of(Json::from_value(&value).as_str().as_bytes());
                if !matches!(self.said(word)?, Word::Enrol(it) if it.enrol == enrolled) {
                    return no("the signature for a new passkey covers a different action");
                }
            }
        }
        if *new.source == *SOURCE_ROOT {
            return no("a list of root's on another machine adds no passkey here");
        }
        let standing = Standing { passkey: new.clone(), counter: 0, is_revoked: false };
        self.passkeys.insert(new.id.clone(), standing);
        Ok(())
    }

    /// Checks that a row changes no more than the events say.
    fn change(&self, change: &Change) -> Result<(), Unproved> {
        match change {
            Change::Passkey(PasskeyChange::Put(it)) => match self.passkeys.get(&it.passkey.id) {
                Some(now)
                    if now.passkey.signs_as(&it.passkey) && (it.revoked_at.is_some() || !now.is_revoked) =>
                {
                    Ok(())
                }
                _ => no("a passkey is put on record that was not added, or was revoked"),
            },
            Change::Passkey(PasskeyChange::Drop(id)) => match self.passkeys.get(id) {
                Some(it) if !it.is_revoked => no("a passkey that counts is dropped"),
                _ => Ok(()),
            },
            Change::Passkey(PasskeyChange::Standing(new)) => {
                let old = self.state.passkeys.standing();
                let is_over = old.left_ms == 0 || self.entry.at >= old.until;
                if new.count < old.count || (new.left_ms < old.left_ms && !is_over) {
                    return no("the wait after a reset of passkeys is cut short");
                }
                Ok(())
            }
            Change::Passkey(PasskeyChange::Daemon(_)) => no("the id that passkeys sign for is changed"),
            Change::Grant(GrantChange::Keep(_, _, grant, _)) => {
                let is_yes = matches!(grant.outcome, Outcome::Granted | Outcome::Made(_));
                if is_yes && !self.granted.iter().any(|it| it.0 == grant.approval) {
                    return no(format!("approval {} is granted without an answer", grant.approval.0));
                }
                Ok(())
            }
            Change::PutTask(new) => self.goes_on(new),
            _ => Ok(()),
        }
    }

    /// Checks that a task that waits for approval goes on only with an answer, and unchanged.
    fn goes_on(&self, new: &Task) -> Result<(), Unproved> {
        let Some((task, approval)) = waits_for_answer(self.state, new.id()) else { return Ok(()) };
        if matches!(new.state, TaskState::Awaiting { .. } | TaskState::Finished { .. }) {
            return Ok(());
        }
        if !self.granted.iter().any(|it| it.0 == approval) {
            return no(format!("task {} continues although its approval has no answer", new.id()));
        }
        if new.order != task.order || new.asked_by != task.asked_by {
            return no(format!("task {} is another one than was asked for", new.id()));
        }
        Ok(())
    }

    /// Checks an effect that this daemon would carry out on another daemon's word.
    fn effect(&self, effect: &Effect) -> Result<(), Unproved> {
        match effect {
            Effect::SpawnWorker { task } | Effect::Capture { task, .. } => self.begins(task),
            Effect::RunJob { .. } | Effect::WriteFiles { .. } | Effect::RunMerges { .. } => {
                if self.granted.iter().any(|it| it.1.daemon.host == self.state.here.host) {
                    return Ok(());
                }
                no("the entry begins work on this host that was not requested here")
            }
            Effect::StopWorker { .. }
            | Effect::RunHook { .. }
            | Effect::SendNotice { .. }
            | Effect::SignalAck { .. }
            | Effect::WatchFiles { .. }
            | Effect::DropChanges { .. } => Ok(()),
        }
    }

    /// Checks that a task may begin here: this host has accepted it and it waits since, or this entry brings the answer that it waits for.
    fn begins(&self, id: &TaskId) -> Result<(), Unproved> {
        let is_ours = |it: &Task| it.daemon.is_alone() || it.daemon.host == self.state.here.host;
        match self.state.tasks.get(id).filter(|it| is_ours(it)).map(|it| it.state) {
            Some(TaskState::Awaiting { approval }) if self.granted.iter().any(|it| it.0 == approval) => {
                Ok(())
            }
            Some(TaskState::Waiting | TaskState::Retrying { .. }) => Ok(()),
            Some(TaskState::Awaiting { .. }) => {
                no(format!("task {id} would begin here although its approval has no answer"))
            }
            _ => no(format!("task {id} would begin here, and was not requested here")),
        }
    }
}

/// Checks whether one of a rule's approvers admits such a proof. Once a passkey is enrolled, `passkey-if-enrolled` admits no other proof.
pub(super) fn admits(by: &[Approver], proof: &str, enrolled: bool) -> bool {
    if by.contains(&Approver::PasskeyIfEnrolled) && enrolled {
        return proof == "passkey";
    }
    let is_person = matches!(proof, "passkey" | "weak-human" | "desktop");
    by.iter().any(|by| match by {
        Approver::Human | Approver::PasskeyIfEnrolled => is_person,
        Approver::Passkey => proof == "passkey",
        Approver::Host => proof == "host-dialog",
        Approver::Agent(_) => proof == "key",
    })
}
