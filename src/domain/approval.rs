//! Commands that wait for approval.
//!
//! ```text
//!   parked --granted--> what the verb's row says: it runs at once, or its asker asks again
//!     |  \--denied----> failed, and the asker is told
//!     \----time over--> asked again, as often as its rule says; then expired, which is the same as a denial
//! ```
//! The first answer wins; no agent answers its own request; an answer is bound to a digest of the shown request.
//! DevIt 1.6.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::command::{AnswerApproval, Command};
use super::judged::{Judged, Permit, QuestionKind, Turn};
use super::{
    Approver, Change, EventKind, Facts, Failure, JudgedRequest, MailKind, Outbox, Principal, Proof, Refusal,
    Risk, Scope, State, Task, TaskState, Terms,
};
use provost_base::limits::{PARKED_MAX, PARKED_OF_ONE_MAX};
use provost_base::{AgentId, ApprovalId, DaemonId, Digest, Json, RuleId, TaskId, Timestamp, Ttl};

/// An answer to an approval.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The command may be carried out.
    Granted,
    /// The command is refused.
    Denied,
}

/// A command that waits, with everything it needs to go on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Parked {
    /// The number by which approvers answer it.
    pub id: ApprovalId,
    /// The principal whose command waits.
    pub who: Principal,
    /// The command as it was submitted.
    pub command: Command,
    /// The facts that the service found before the submit.
    pub facts: Facts,
    /// The rule that demands the approval.
    pub rule: RuleId,
    /// The rule's reason, for callers and approvers.
    pub reason: Box<str>,
    /// Limits of the command once it is granted.
    pub terms: Terms,
    /// The kinds of approvers that the rule accepts.
    pub by: Vec<Approver>,
    /// The digest of the rules that were in force.
    pub policy: Digest,
    /// The digest of the request as the approver is shown it.
    pub shown: Digest,
    /// The risk of the command, by its verb.
    pub risk: Risk,
    /// When the command was parked.
    pub asked_at: Timestamp,
    /// When the time for an answer is over: the question is asked again, if its rule says so, or else counts as denied.
    pub expires_at: Timestamp,
    /// The repetition of the question when its time is over; `None` if it then counts as denied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<Again>,
    /// The daemon that asked, and that carries the command out.
    #[serde(default, skip_serializing_if = "DaemonId::is_alone")]
    pub daemon: DaemonId,
}

/// A question that is asked again when its time is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Again {
    /// The time for which each repetition waits for an answer.
    pub wait: Ttl,
    /// The number of times that the question has been asked again so far.
    pub asked: u32,
    /// The number of times that it will still be asked again.
    pub left: u32,
}

impl Parked {
    /// Returns the task that the command would make.
    pub fn task(&self) -> Option<&TaskId> {
        self.command.judged()?.task()
    }

    /// Returns the number of times that the question will still be asked again before it counts as denied.
    pub fn asks_left(&self) -> u32 {
        self.again.map_or(0, |it| it.left)
    }

    /// Checks whether an answer comes too late.
    fn is_over(&self, now: Timestamp) -> bool {
        self.expires_at <= now && self.asks_left() == 0
    }

    /// Returns the subject of the question to policy: DevIt's tool, or the verb.
    pub fn tool(&self) -> Box<str> {
        self.command.judged().map_or_else(|| self.command.name().into(), |verb| verb.tool())
    }

    /// Returns the details for an approver, in addition to the reason and the tool.
    pub fn details(&self) -> Json {
        self.command.judged().map_or_else(Json::null, |verb| verb.shown())
    }
}

/// The demand of policy for an approval, and the command that it is about.
pub(super) struct Question<'a> {
    pub(super) command: &'a Command,
    pub(super) verb: &'a dyn Judged,
    pub(super) rule: RuleId,
    pub(super) reason: Box<str>,
    pub(super) terms: Terms,
    pub(super) wait: Ttl,
    pub(super) again: u32,
    pub(super) by: Vec<Approver>,
    pub(super) policy: Digest,
}

/// All commands that wait for approval.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Approvals {
    parked: BTreeMap<ApprovalId, Arc<Parked>>,
    due: BTreeSet<(Timestamp, ApprovalId)>,
}

impl Approvals {
    /// Returns the waiting command with this number, if it exists.
    pub fn get(&self, id: ApprovalId) -> Option<&Arc<Parked>> {
        self.parked.get(&id)
    }

    /// Returns all waiting commands, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Parked>> {
        self.parked.values()
    }

    /// Checks whether one more question of this kind may wait: in total, and among those of the asker's share. Each kind has
    /// room of its own, so that questions of hosts about their tools do not keep work waiting, nor the other way round.
    ///
    /// # Errors
    /// [`Refusal::Busy`] or [`Refusal::Quota`] says which bound was reached.
    fn have_room(&self, who: &Principal, kind: QuestionKind) -> Result<(), Refusal> {
        let share = who.share();
        let same = || self.iter().filter(|it| it.command.judged().is_some_and(|verb| verb.kind() == kind));
        if same().count() >= PARKED_MAX {
            return Err(Refusal::busy("too many requests are waiting for approval"));
        }
        if same().filter(|it| it.who.share() == share).count() >= PARKED_OF_ONE_MAX {
            return Err(Refusal::quota(
                "as many of your requests are waiting for approval as one agent may have, under all names of its processes",
                PARKED_OF_ONE_MAX,
                "wait for answers",
            ));
        }
        Ok(())
    }

    /// Returns the asker's waiting question with this digest. Questions whose command runs once it is granted do not count.
    pub(super) fn of_question(&self, asker: &AgentId, question: Digest) -> Option<&Arc<Parked>> {
        let same = |it: &Command| match it.judged().map(|verb| verb.turn()) {
            Some(Turn::Redeemed(it)) => it.question() == question,
            _ => false,
        };
        self.iter().find(|it| it.who.agent() == asker && same(&it.command))
    }

    pub(super) fn due(&self, now: Timestamp) -> Vec<Arc<Parked>> {
        let due = self.due.iter().take_while(|(at, _)| *at <= now);
        due.filter_map(|(_, id)| self.parked.get(id)).cloned().collect()
    }

    pub(super) fn next_deadline(&self) -> Option<Timestamp> {
        self.due.first().map(|(at, _)| *at)
    }

    pub(super) fn put(&mut self, parked: Arc<Parked>) {
        self.due.insert((parked.expires_at, parked.id));
        self.parked.insert(parked.id, parked);
    }

    pub(super) fn remove(&mut self, id: ApprovalId) {
        if let Some(parked) = self.parked.remove(&id) {
            self.due.remove(&(parked.expires_at, id));
        }
    }
}

impl State {
    /// Parks a command with its facts, and tells the approvers.
    pub(super) fn park(
        &self,
        now: Timestamp,
        who: &Principal,
        facts: Facts,
        question: Question<'_>,
        out: &mut Outbox,
    ) -> Result<ApprovalId, Refusal> {
        self.approvals.have_room(who, question.verb.kind())?;
        let id = out.next_approval();
        let Question { command, verb, rule, reason, terms, wait, again, by, policy } = question;
        let expires_at = now.after(wait);
        let risk = verb.risk(&facts);
        let mut parked = Parked {
            id,
            who: who.clone(),
            command: command.clone(),
            facts,
            rule,
            reason,
            terms,
            by,
            policy,
            shown: Digest::default(),
            risk,
            asked_at: now,
            expires_at,
            again: (again > 0).then_some(Again { wait, asked: 0, left: again }),
            daemon: self.here,
        };
        // The digest is over the other members: what an approver saw is what was judged.
        parked.shown = digest_of(&parked);
        out.append_event(EventKind::ApprovalAsked {
            approval: id,
            verb: parked.command.name().into(),
            task: parked.task().cloned(),
            rule: parked.rule.clone(),
            policy,
            shown: parked.shown,
            expires_at,
            judged: JudgedRequest::of(who, &parked.command, &parked.facts),
            by: parked.by.clone(),
        });
        if let Turn::Runs(it) = verb.turn() {
            let permit = Permit { rule: parked.rule.clone(), terms: parked.terms.clone() };
            let task = it.draft(self, now, who, &parked.facts, permit);
            let state = TaskState::Awaiting { approval: id };
            out.put(Change::PutTask(Arc::new(Task { state, approval: Some(id), ..task })));
        }
        self.ask(now, &parked, out);
        out.put(Change::PutApproval(Arc::new(parked)));
        Ok(id)
    }

    /// Handles a question whose time is over: it is asked again, or it expires, which is a denial.
    pub(super) fn time_over(&self, now: Timestamp, parked: &Parked, out: &mut Outbox) {
        if let Some(again) = parked.again.filter(|it| it.left > 0) {
            return self.ask_again(now, parked, again, out);
        }
        out.append_event(EventKind::ApprovalExpired { approval: parked.id });
        self.drop_approval(parked.id, out);
        let failure = Failure::ApprovalTimeout { approval: parked.id, tool: parked.tool() };
        self.give_up_parked(now, parked, "Approval timed out", failure, out);
    }

    /// Asks the same question again, under its number and digest. Its time begins now, even if the daemon did not
    /// run when the time before was over: no person could have answered meanwhile.
    fn ask_again(&self, now: Timestamp, parked: &Parked, again: Again, out: &mut Outbox) {
        let again = Again { asked: again.asked.saturating_add(1), left: again.left - 1, ..again };
        let expires_at = now.after(again.wait);
        let parked = Parked { expires_at, again: Some(again), ..parked.clone() };
        out.append_event(EventKind::ApprovalAskedAgain {
            approval: parked.id,
            task: parked.task().cloned(),
            shown: parked.shown,
            asked: again.asked,
            left: again.left,
            expires_at,
        });
        self.mail.withdraw_approval(&self.settings.approval_target, parked.id, out);
        self.ask(now, &parked, out);
        // Its place in the order of deadlines has changed.
        out.put(Change::DropApproval(parked.id));
        out.put(Change::PutApproval(Arc::new(parked)));
    }

    /// Asks the approvers: mail goes to the configured approver, if the rule admits it; people look at the list.
    fn ask(&self, now: Timestamp, parked: &Parked, out: &mut Outbox) {
        let target = &self.settings.approval_target;
        if self.is_passkeys_alone(&parked.by) {
            return;
        }
        if !parked.by.iter().any(|by| matches!(by, Approver::Agent(id) if id == target)) {
            return;
        }
        let question = MailKind::Approval {
            approval: parked.id,
            task: parked.task().cloned(),
            tool: parked.tool(),
            reason: parked.reason.clone(),
            risk: parked.risk,
            details: parked.details(),
            shown: parked.shown,
            expires_at: parked.expires_at,
        };
        self.mail.post(now, target, question, out);
    }

    /// Checks an answer and takes the command out of waiting.
    pub(super) fn answered(
        &self,
        now: Timestamp,
        who: &Principal,
        verb: &AnswerApproval,
        out: &mut Outbox,
    ) -> Result<Arc<Parked>, Refusal> {
        let not_found = || Refusal::ApprovalNotFound(verb.approval);
        let parked = self.approvals.get(verb.approval).ok_or_else(not_found)?;
        if parked.is_over(now) {
            return Err(not_found());
        }
        if !who.is_host_dialog() && self.is_own_request(who, parked) {
            return Err(Refusal::ApprovalOwn);
        }
        if is_from_asker(who, parked) {
            return Err(Refusal::ApprovalFromAsker { asker: parked.who.agent().clone() });
        }
        // A host speaks for the person who sits at it, about questions from that host and no others.
        let elsewhere = who.is_host_dialog() && who.agent() != parked.who.agent();
        if elsewhere || !self.admits(&parked.by, who) {
            return Err(Refusal::ApprovalNotYours { rule: parked.rule.clone() });
        }
        if verb.shown.is_some_and(|shown| shown != parked.shown) || digest_of(parked) != parked.shown {
            return Err(Refusal::ApprovalChanged);
        }
        self.take_signature(now, who, verb, out)?;
        let proof = match who.proof() {
            Proof::Passkey => "passkey",
            Proof::Desktop => "desktop",
            Proof::HostDialog => "host-dialog",
            _ if who.is_person() => "weak-human",
            _ => "key",
        };
        out.append_event(EventKind::ApprovalAnswered {
            approval: verb.approval,
            verdict: verb.verdict,
            proof: proof.into(),
            signed: verb.signed.clone(),
        });
        self.drop_approval(verb.approval, out);
        Ok(parked.clone())
    }

    /// Takes a passkey's signature, which says what was shown. Only an answer with a passkey carries a signature.
    fn take_signature(
        &self,
        now: Timestamp,
        who: &Principal,
        verb: &AnswerApproval,
        out: &mut Outbox,
    ) -> Result<(), Refusal> {
        match (&verb.signed, who.proof() == Proof::Passkey) {
            (Some(_), true) if verb.shown.is_none() => Err(Refusal::ApprovalChanged),
            (Some(word), true) => self.use_passkey(now, word, out),
            (None, false) => Ok(()),
            _ => Err(Refusal::PasskeyRefused {
                why: "a passkey answers with its signature, and nothing else does".into(),
            }),
        }
    }

    /// Checks whether one of these kinds of approvers admits the caller, with the caller's proof.
    pub(super) fn admits(&self, by: &[Approver], who: &Principal) -> bool {
        if self.is_passkeys_alone(by) {
            return who.proof() == Proof::Passkey;
        }
        by.iter().any(|by| match by {
            Approver::Human => who.is_person(),
            Approver::Passkey => who.proof() == Proof::Passkey,
            Approver::PasskeyIfEnrolled => who.is_person(),
            Approver::Host => who.is_host_dialog(),
            Approver::Agent(id) => id == who.agent() && who.proof() == Proof::OwnKey,
        })
    }

    /// Checks whether only passkeys may answer, because the rule asks for one and one is enrolled. The rule's other approvers then
    /// no longer count: every process of the user can read a key in a file, and could answer in place of the passkey.
    fn is_passkeys_alone(&self, by: &[Approver]) -> bool {
        by.contains(&Approver::PasskeyIfEnrolled) && self.passkeys.are_enrolled()
    }

    /// Checks whether the caller is the asker, or the worker that works for the asker at the moment.
    ///
    /// A person at the terminal owns the machine, and the rule wants exactly this person's word, even for requests
    /// made under the owner's name by hand or by a script. A question to another person would only teach people to
    /// switch the rule off.
    fn is_own_request(&self, who: &Principal, parked: &Parked) -> bool {
        if who.is_person() {
            return false;
        }
        let asker = parked.who.agent();
        let works_for_asker = |task: &Arc<Task>| task.order.worker == *who.agent() && task.asked_by == *asker;
        who.agent() == asker || self.tasks.iter().any(works_for_asker)
    }

    pub(super) fn drop_approval(&self, id: ApprovalId, out: &mut Outbox) {
        self.mail.withdraw_approval(&self.settings.approval_target, id, out);
        out.put(Change::DropApproval(id));
    }
}

/// Checks whether an answer comes from the same processes as the question. Any process of the user can get hold of
/// a name and a key; but an agent cannot be in two trees of processes without leaving its own.
fn is_from_asker(who: &Principal, parked: &Parked) -> bool {
    // If a rule trusts the host, the asker itself shows its dialog. A notice belongs to the desktop; a signature belongs to
    // the passkey, not to the process that carries it; a worker in its jail and the daemon itself answer nothing.
    let is_elsewhere = who.is_host_dialog() || matches!(who.proof(), Proof::Desktop | Proof::Passkey);
    if is_elsewhere || matches!(parked.who.proof(), Proof::Jailed | Proof::Internal) {
        return false;
    }
    match (who.origin(), parked.who.origin()) {
        // The owner of the machine may answer what the owner has asked for by hand. An agent started from a
        // terminal has a person there, unless the agent itself is in that session or above it.
        _ if who.is_person() && parked.who.may(Scope::Operate) => false,
        (Some(answers), Some(asked)) if who.is_person() => answers.is_below(asked),
        (Some(answers), Some(asked)) => answers.shares_tree_with(asked),
        // An unknown process may be the asker's.
        (None, _) => true,
        (Some(_), None) => !who.is_person(),
    }
}

fn digest_of(parked: &Parked) -> Digest {
    let shown = (&parked.who, &parked.command, &parked.facts, &parked.terms, &parked.rule, &parked.policy);
    Digest::of(serde_json::to_string(&shown).unwrap_or_default().as_bytes())
}

/// Returns the approvers whose answers count at the moment, in words for people: only the passkey, where the rule
/// asks for one and one is enrolled.
pub fn approvers_now(by: &[Approver], enrolled: bool) -> String {
    match enrolled && by.contains(&Approver::PasskeyIfEnrolled) {
        true => approvers_text(&[Approver::Passkey]),
        false => approvers_text(by),
    }
}

/// Returns the approvers of a rule, in words for people.
pub fn approvers_text(by: &[Approver]) -> String {
    let name = |by: &Approver| match by {
        Approver::Human => "human".to_owned(),
        Approver::Passkey => "passkey".to_owned(),
        Approver::PasskeyIfEnrolled => "passkey-if-enrolled".to_owned(),
        Approver::Host => "host".to_owned(),
        Approver::Agent(id) => AgentId::to_string(id),
    };
    by.iter().map(name).collect::<Vec<_>>().join(", ")
}
