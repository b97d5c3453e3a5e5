//! Publishes a post with all its consequences, in one step.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::broker_state::SAME_FOR;
use super::form::{AskedInside, Closed};
use super::working_set::of;
use super::{
    Absent, Audience, Mailbox, PathScope, Post, PostChange, Question, Source, WorkingSet, shortened,
    slug_of_branch, supervisor,
};
use crate::command::{
    AddressAgent, AgentAddressed, BeginLog, LogBegun, Publish, Published, Republish, Republished,
};
use crate::conflict::plan;
use crate::{Change, EventKind, Outbox, Principal, Proof, Refusal, Scope, Share, State, Title};
use provost_base::limits::{
    PARKED_AGENTS_MAX, PARKED_PER_AGENT_MAX, POST_AGENTS_MAX, POST_AGENTS_OF_ONE_MAX, POST_WIDE_OF_ONE_MAX,
    QUESTION_SHOWN_MAX, QUESTIONS_MAX, ROSTER_TEXT_MAX,
};
use provost_base::{AgentId, Digest, EventSeq, PostSeq, Slug, Timestamp, Ttl};

/// An agent that has published a message within this time is not forgotten to make room for others.
const RECENT: Ttl = Ttl::minutes(60);

/// One step, with its changes so far that the state does not show yet.
pub(crate) struct Round<'a> {
    pub(crate) now: Timestamp,
    pub(crate) state: &'a State,
    pub(crate) out: &'a mut Outbox,
    /// Agents that have got an inbox in this step.
    fresh: BTreeSet<Slug>,
    /// Agents that were forgotten in this step.
    gone: BTreeSet<Slug>,
    /// The share of the agent that speaks in this step; `None` for the daemon itself.
    share: Option<Share>,
    /// The task from which this step's question comes, if it comes from a jail.
    inside: AskedInside,
    /// The form that an answer in this step is for.
    answers: Option<PostSeq>,
}

/// Returns the share of an agent, if it is not the daemon itself.
fn share_of(who: &Principal) -> Option<Share> {
    (who.proof() != Proof::Internal).then(|| who.share())
}

/// Returns the proof of the name in a post, if its sender has proved that name.
fn proven(who: &Principal, post: &Post) -> Option<Proof> {
    let is_said_alone = matches!(who.proof(), Proof::PeerUid | Proof::SharedKey | Proof::HostDialog);
    (!is_said_alone && of(who.agent()) == of(post.sender())).then(|| who.proof())
}

impl<'a> Round<'a> {
    pub(crate) fn new(now: Timestamp, state: &'a State, out: &'a mut Outbox) -> Self {
        Self {
            now,
            state,
            out,
            fresh: BTreeSet::new(),
            gone: BTreeSet::new(),
            share: None,
            inside: AskedInside::default(),
            answers: None,
        }
    }

    fn put(&mut self, change: PostChange) {
        self.out.put(Change::Post(change));
    }

    pub(crate) fn has_inbox(&self, slug: &Slug) -> bool {
        self.fresh.contains(slug) || (self.state.broker.get(slug).is_some() && !self.gone.contains(slug))
    }

    /// Files a post of the daemon for the agents that it is for. A question that is already open only goes on record.
    pub(super) fn file(&mut self, post: Post) -> Result<PostSeq, Refusal> {
        self.file_of(post, Some(Proof::Internal))
    }

    /// Files any post, with the proof of the name in it.
    fn file_of(&mut self, post: Post, proof: Option<Proof>) -> Result<PostSeq, Refusal> {
        let repeated = self.is_repeated(&post);
        self.deliver(post, proof, repeated)
    }

    /// Files a post of the daemon. Its question is never a repeat: each one is about another incident.
    pub(crate) fn tell(&mut self, post: Post) -> Result<PostSeq, Refusal> {
        self.deliver(post, Some(Proof::Internal), false)
    }

    fn deliver(&mut self, post: Post, proof: Option<Proof>, repeated: bool) -> Result<PostSeq, Refusal> {
        let audience = post.audience();
        let to: Vec<Slug> = match &audience {
            Audience::Nobody => Vec::new(),
            Audience::AllBut(sender) => self.everybody_but(sender),
            Audience::One { to, absent } => {
                if matches!(absent, Absent::Make) && !self.has_inbox(to) {
                    self.open(to, None)?;
                }
                if self.has_inbox(to) { vec![to.clone()] } else { Vec::new() }
            }
        };
        let n = self.out.next_post();
        let to = if repeated { Vec::new() } else { to };
        if let Post::Question { agent, question } = &post
            && !repeated
        {
            self.ask(n, agent, question);
        }
        let seq =
            self.out.append_event(EventKind::Published { n, post, proof, answers: self.answers.take() });
        let waits = to.is_empty() && matches!(audience, Audience::One { absent: Absent::Wait, .. });
        self.put(PostChange::File { n, seq, at: self.now, to: to.into(), own: true });
        if let Audience::One { to, .. } = audience
            && waits
        {
            self.park(&to, n, seq);
        }
        Ok(n)
    }

    fn everybody_but(&self, sender: &Slug) -> Vec<Slug> {
        let known = self.state.broker.iter().map(|it| &it.slug).filter(|it| !self.gone.contains(*it));
        let all: BTreeSet<&Slug> = known.chain(&self.fresh).filter(|it| *it != sender).collect();
        all.into_iter().cloned().collect()
    }

    fn same_question(&self, agent: &AgentId, whole: Digest) -> Option<&'a Arc<Question>> {
        let asker = of(agent);
        // Each form is a question of its own: another program waits for it.
        let mut plain = self.state.broker.questions().filter(|it| !it.is_form && !self.inside.is_form);
        plain.find(|it| of(&it.agent) == asker && it.whole == whole)
    }

    /// Checks whether a question was asked before, and is still open.
    fn is_repeated(&self, post: &Post) -> bool {
        let Post::Question { agent, question } = post else { return false };
        let open = self.same_question(agent, Digest::of(question.as_bytes()));
        open.is_some_and(|it| self.now < it.at.after(SAME_FOR))
    }

    /// Opens a question.
    fn ask(&mut self, n: PostSeq, agent: &AgentId, question: &str) {
        let whole = Digest::of(question.as_bytes());
        let open = self.same_question(agent, whole);
        let full = self.state.broker.questions().count() >= QUESTIONS_MAX;
        let other = if full { self.state.broker.question_to_drop() } else { None };
        let drop: BTreeSet<PostSeq> = open.into_iter().chain(other).map(|it| it.n).collect();
        drop.into_iter().for_each(|n| self.put(PostChange::DropQuestion(n)));
        let text = shortened(question, QUESTION_SHOWN_MAX);
        let AskedInside { task, is_form } = self.inside.clone();
        let (agent, share) = (agent.clone(), self.share.clone());
        let question = Question { n, agent, text, whole, at: self.now, share, task, is_form };
        self.put(PostChange::PutQuestion(Arc::new(question)));
    }

    /// Gives an agent an inbox, with its waiting posts.
    fn open(&mut self, slug: &Slug, name: Option<&AgentId>) -> Result<(), Refusal> {
        self.make_room()?;
        let name = name.cloned().unwrap_or_else(|| AgentId::from(slug));
        let new = self.newcomer(slug.clone(), name);
        self.put(PostChange::PutMailbox(Arc::new(new)));
        self.fresh.insert(slug.clone());
        for (of, seq) in self.state.broker.waiting_for(slug) {
            let n = self.out.next_post();
            self.out.append_event(EventKind::PostDelivered { n, of, to: slug.clone() });
            self.put(PostChange::Unpark(slug.clone(), of));
            self.put(PostChange::File { n, seq, at: self.now, to: [slug.clone()].into(), own: false });
        }
        Ok(())
    }

    /// Returns the row of an agent that was not known before.
    fn newcomer(&self, slug: Slug, name: AgentId) -> Mailbox {
        Mailbox { share: self.share.clone(), ..Mailbox::new(slug, name, self.now) }
    }

    fn make_room(&mut self) -> Result<(), Refusal> {
        let broker = &self.state.broker;
        let theirs = |it: &&Slug| broker.get(it).is_some_and(|it| it.share == self.share);
        let left = |share| {
            (broker.counted_for(share) + self.fresh.len())
                .saturating_sub(self.gone.iter().filter(theirs).count())
        };
        let crowd = self.share.as_ref().filter(|it| left(it) >= POST_AGENTS_OF_ONE_MAX);
        if crowd.is_none() && broker.len() + self.fresh.len() - self.gone.len() < POST_AGENTS_MAX {
            return Ok(());
        }
        let before = Timestamp(self.now.0.saturating_sub(i64::from(RECENT.as_millis())));
        let silent = broker.longest_silent(before, crowd, &self.gone);
        let full = || match crowd {
            Some(_) => Refusal::quota(
                "as many agents at the broker door as the processes of one agent can be under all their names",
                POST_AGENTS_OF_ONE_MAX,
                "speak under fewer names",
            ),
            None => Refusal::busy("as many agents as the broker door can know"),
        };
        let silent = silent.ok_or_else(full)?;
        self.put(PostChange::DropMailbox(silent.clone()));
        self.gone.insert(silent);
        Ok(())
    }

    fn park(&mut self, to: &Slug, n: PostSeq, seq: EventSeq) {
        let (waiting, oldest, agents) = self.state.broker.parked(to);
        if let Some(oldest) = oldest.filter(|_| waiting >= PARKED_PER_AGENT_MAX) {
            self.put(PostChange::Unpark(to.clone(), oldest));
        }
        if waiting == 0 && agents >= PARKED_AGENTS_MAX {
            let Some(other) = self.state.broker.longest_awaited().cloned() else { return };
            for (n, _) in self.state.broker.waiting_for(&other) {
                self.put(PostChange::Unpark(other.clone(), n));
            }
        }
        self.put(PostChange::Park(to.clone(), n, seq));
    }

    /// Makes sure that an agent has an inbox, and records its status after its post.
    fn seat(&mut self, post: &Post, source: Source) -> Result<(), Refusal> {
        let slug = of(post.sender());
        if !self.has_inbox(&slug) {
            self.open(&slug, Some(post.sender()))?;
        }
        let known = self.state.broker.get(&slug).filter(|_| !self.fresh.contains(&slug)).cloned();
        let before = known.unwrap_or_else(|| Arc::new(self.newcomer(slug, post.sender().clone())));
        let after = before.after(self.now, post, source, self.state.settings.posts.settle_s);
        self.put(PostChange::PutMailbox(Arc::new(after)));
        Ok(())
    }

    /// Records that an agent's work was checked or merged: it conflicts with no other agent any more.
    fn settled(&mut self, slug: &Slug) {
        let left = self.state.broker.print(slug).filter(|it| !it.left.is_empty());
        if let Some(print) = left.map(|it| it.settled()) {
            self.stepped(print);
        }
    }

    /// Puts a working set in force, and ends the cases of contention that are over with it.
    pub(super) fn stepped(&mut self, print: WorkingSet) {
        let files = print.files();
        let wide: Vec<&PathScope> = files.keys().filter(|it| it.file().is_none()).collect();
        for case in self.state.broker.standoffs_of(&print.slug) {
            let place = PathScope::of(&case.file);
            // A single file is looked up: an agent may have a thousand cases and as many files.
            let goes_on = match place.file() {
                Some(_) => files.contains_key(&place) || wide.iter().any(|it| it.meets(&place)),
                None => files.keys().any(|it| it.meets(&place)),
            };
            if !goes_on {
                self.out.put(Change::Post(PostChange::DropContention(case.clone())));
            }
        }
        self.put(PostChange::PutWorkingSet(Arc::new(print)));
    }
}

impl State {
    /// Publishes a post: it is filed, the roster and working sets follow, and conflicts are reported.
    pub(crate) fn publish(
        &self,
        now: Timestamp,
        who: &Principal,
        verb: &Publish,
        out: &mut Outbox,
    ) -> Result<Published, Refusal> {
        self.unimitated(now, who, &verb.post)?;
        let Closed { questions, form } = self.closed_by(who, &verb.post)?;
        if verb.source != Source::Watcher {
            self.agents.beat(now, who.agent(), out);
        }
        let inside = AskedInside::of(who, verb.source);
        let mut round = Round { share: share_of(who), inside, answers: form, ..Round::new(now, self, out) };
        let post = &verb.post;
        if post.is_of_roster() {
            round.seat(post, verb.source)?;
        }
        let n = round.file_of(post.clone(), proven(who, post))?;
        questions.into_iter().for_each(|n| round.put(PostChange::DropQuestion(n)));
        match post {
            Post::Verified { agent, .. } => round.settled(&of(agent)),
            Post::Advanced { branch, .. } => {
                slug_of_branch(branch).into_iter().for_each(|it| round.settled(&it));
            }
            Post::Artifact { agent, status, .. } if &**status == "committed" && self.settings.posts.nudge => {
                round.file(Post::VerifyNow { branch: agent.clone() })?;
            }
            _ => {}
        }
        if post.is_of_roster() {
            let slug = of(post.sender());
            let before = self.broker.print(&slug).map(|it| WorkingSet::clone(it));
            let before = before.unwrap_or_else(|| WorkingSet::new(slug));
            let room = match share_of(who) {
                Some(share) => {
                    POST_WIDE_OF_ONE_MAX.saturating_sub(self.broker.wide_beside(&before.slug, &share))
                }
                None => POST_WIDE_OF_ONE_MAX,
            };
            let after = before.after(now, n, (post, verb.source), room);
            if matches!(post, Post::Intent { .. }) {
                round.meet(&Title::Plan(after.slug.clone()), &plan(&after))?;
            }
            if self.settings.posts.detector {
                round.detect(post, &before, after)?;
            } else if after != before {
                round.stepped(after);
            }
        }
        Ok(Published { n })
    }

    /// Records a message that says nothing new. Its consequences are left to the next message that is published in
    /// full.
    pub(crate) fn republish(
        &self,
        now: Timestamp,
        who: &Principal,
        verb: &Republish,
        out: &mut Outbox,
    ) -> Republished {
        let (n, proof) = (out.next_post(), proven(who, &verb.post));
        let seq = out.append_event(EventKind::Published { n, post: verb.post.clone(), proof, answers: None });
        out.put(Change::Post(PostChange::File { n, seq, at: now, to: Arc::new([]), own: true }));
        Republished { n }
    }

    /// Checks that no other agent has the sender's name: all spellings of a name belong to its owner, and a token
    /// for one is needed for all.
    fn unimitated(&self, now: Timestamp, who: &Principal, post: &Post) -> Result<(), Refusal> {
        if !matches!(who.proof(), Proof::PeerUid) || who.may(Scope::Operate) {
            return Ok(());
        }
        let sender = of(post.sender());
        match self.tokens.holders(now).find(|it| of(it) == sender) {
            Some(agent) => Err(Refusal::NameTaken { agent: agent.clone() }),
            None => Ok(()),
        }
    }

    /// Gives an agent an inbox, and records the program that it runs as.
    pub(crate) fn address_agent(
        &self,
        now: Timestamp,
        who: &Principal,
        verb: &AddressAgent,
        out: &mut Outbox,
    ) -> Result<AgentAddressed, Refusal> {
        let mut round = Round { share: share_of(who), ..Round::new(now, self, out) };
        let slug = of(&verb.agent);
        let fresh = !round.has_inbox(&slug);
        if fresh {
            round.open(&slug, Some(&verb.agent))?;
        }
        let known = self.broker.get(&slug).map(|it| Mailbox::clone(it));
        let mut it = known.unwrap_or_else(|| round.newcomer(slug, verb.agent.clone()));
        let cli = shortened(&verb.cli, ROSTER_TEXT_MAX);
        if !cli.is_empty() && it.cli.as_ref() != Some(&cli) {
            it.cli = Some(cli);
            round.put(PostChange::PutMailbox(Arc::new(it)));
        }
        Ok(AgentAddressed { fresh })
    }

    /// Begins a new audit log.
    pub(crate) fn begin_log(&self, _verb: &BeginLog, out: &mut Outbox) -> LogBegun {
        let after = out.next_post();
        out.put(Change::Post(PostChange::BeginLog(after)));
        out.append_event(EventKind::PostLogBegun { after });
        LogBegun { after }
    }

    /// Drops records that have run out: old questions without an answer, silent agents, and contentions for files
    /// that no agent works on.
    pub(crate) fn sweep_posts(&self, now: Timestamp, out: &mut Outbox) {
        for n in self.broker.questions_too_old(now) {
            out.put(Change::Post(PostChange::DropQuestion(n)));
        }
        for slug in self.broker.silent_too_long(now) {
            // The supervisor's inbox has the questions of all agents.
            if slug != supervisor() {
                out.put(Change::Post(PostChange::DropMailbox(slug)));
            }
        }
    }
}
