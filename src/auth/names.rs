//! The ownership of names: the one check before every handler of every door.
//!
//! Promises: only this module makes a [`Principal`] under a name without its key, for reading as for writing;
//! a name with a key or a token is its owner's in all its spellings; no client can have the names of the
//! daemon and of people. The doors word the refusals.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use super::Rejected;
use super::keys::KeyRing;
use super::line::Line;
use super::role::{self, Standing};
use super::speakers::Speakers;
use provost_base::{AgentId, Digest, Slug};
use provost_domain::post::{owned_slug, slug};
use provost_domain::{CallOrigin, Door, Principal, Proof, Token};

/// Says whether an agent has a token by which a name is its own, so that this proof alone does
/// not speak for it.
pub type Holders = Box<dyn Fn(&AgentId, Proof) -> bool + Send + Sync>;

/// Says for how long the token of this digest is good from this moment; `None` where it is not.
pub type GoodTokens = Box<dyn Fn(&Digest) -> Option<Duration> + Send + Sync>;

/// The engine's knowledge of tokens, and its notification that they have changed.
pub type EngineTokens = (Holders, GoodTokens, Arc<Notify>);

/// The look-ups of names that agents of other hosts have without a proof.
pub struct OfHosts {
    /// Returns the name by which this host calls an agent that says this name; `None` if that name would be too long.
    pub called_here: Box<dyn Fn(AgentId) -> Option<AgentId> + Send + Sync>,
    /// Checks whether an agent of another host has this name.
    pub is_elsewhere: Box<dyn Fn(&AgentId) -> bool + Send + Sync>,
}

/// For how long a proof holds if no notice of a change comes; without a time, until one comes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct HoldsFor(pub Option<Duration>);

/// All names, and the check of who may use them.
pub struct Names {
    /// None at a door of no daemon.
    keys: Option<Arc<KeyRing>>,
    user: Option<(AgentId, Slug)>,
    holders: Holders,
    tokens: GoodTokens,
    tokens_changed: Arc<Notify>,
    /// The look-ups of names at other hosts; `None` where a daemon writes alone.
    of_hosts: Option<OfHosts>,
    speakers: Speakers,
    /// Processes that speak MCP to the daemon over HTTP.
    hosts: Speakers,
}

impl Names {
    /// Names as the keys and the holders of tokens have them, on a machine of this user.
    pub fn new(keys: Arc<KeyRing>, user: AgentId, tokens: EngineTokens) -> Self {
        let owned = owned_slug(user.as_str());
        Self { user: Some((user, owned)), ..Self::with(Some(keys), tokens) }
    }

    /// The same, keeping in mind over starts of the daemon who has spoken as an agent; this file is where.
    ///
    /// # Errors
    /// When the file cannot be read or written.
    pub fn remembering(self, file: &Path) -> io::Result<Self> {
        Ok(Self { speakers: Speakers::kept_in(file)?, ..self })
    }

    /// Names for a door that knows no tokens.
    #[doc(hidden)]
    pub fn by_keys(keys: Arc<KeyRing>) -> Self {
        Self::with(Some(keys), (Box::new(|_, _| false), Box::new(|_| None), Arc::default()))
    }

    /// Names at a door of no daemon, where no key and no token is known: every caller there is a process of this user, and gets no
    /// name.
    pub fn without_keys() -> Self {
        Self::with(None, (Box::new(|_, _| false), Box::new(|_| None), Arc::default()))
    }

    fn with(keys: Option<Arc<KeyRing>>, (holders, tokens, tokens_changed): EngineTokens) -> Self {
        let (speakers, hosts) = (Speakers::default(), Speakers::default());
        Self { keys, user: None, holders, tokens, tokens_changed, of_hosts: None, speakers, hosts }
    }

    /// Adds the names that agents of other hosts have.
    #[must_use]
    pub fn over_hosts(self, of_hosts: OfHosts) -> Self {
        Self { of_hosts: Some(of_hosts), ..self }
    }

    /// Returns the name of an agent without a proof at this host: with this host's digits if an agent of another host has the name.
    fn called_here(&self, agent: AgentId) -> Result<AgentId, Rejected> {
        match &self.of_hosts {
            Some(it) => (it.called_here)(agent).ok_or(Rejected::OtherHost),
            None => Ok(agent),
        }
    }

    /// Ends when a proof may hold no longer that held before this call: tokens, keys or the time have changed.
    pub fn changed(&self) -> impl Future<Output = ()> + Send {
        let (keys, tokens) = (self.keys.as_ref().map(|it| it.changed()), self.tokens_changed.notified());
        let keys = async move {
            match keys {
                Some(keys) => keys.await,
                None => std::future::pending().await,
            }
        };
        async move {
            tokio::select! {
                () = keys => {}
                () = tokens => {}
            }
        }
    }

    /// The key ring that decides which names have keys.
    pub fn keys(&self) -> &Arc<KeyRing> {
        self.keys.as_ref().expect("the names of a daemon have a key ring")
    }

    /// Whether a caller with no more than this proof may use a name.
    ///
    /// # Errors
    /// [`Rejected::Reserved`], [`Rejected::Taken`], [`Rejected::OtherHost`].
    pub fn is_free(&self, agent: &AgentId, proof: Proof) -> Result<(), Rejected> {
        let is_users = self.user.as_ref().is_some_and(|(_, owned)| *owned == owned_slug(agent.as_str()));
        if is_users || role::is_reserved(agent) || self.keys.as_ref().is_some_and(|it| it.is_reserved(agent))
        {
            return Err(Rejected::Reserved);
        }
        if (self.holders)(agent, proof) {
            return Err(Rejected::Taken);
        }
        if self.of_hosts.as_ref().is_some_and(|it| (it.is_elsewhere)(agent)) {
            return Err(Rejected::OtherHost);
        }
        Ok(())
    }

    /// A process of this user at a door, under the name that it gives itself: that of its token in any
    /// spelling, or one that is free for any agent to take.
    ///
    /// # Errors
    /// [`Rejected::OtherName`], and what [`Names::is_free`] says.
    pub fn local(
        &self,
        agent: AgentId,
        door: Door,
        token: Option<&Token>,
        line: &Line,
    ) -> Result<Principal, Rejected> {
        // Noted even if the call is refused: a process that gives itself an agent's name is no person.
        self.note(line, Some(&agent));
        if door.row().is_for_hosts {
            self.hosts.note(line.in_session().take(1), None);
        }
        let who = self.named(agent, door, token)?;
        Ok(who.coming_from(self.origin(line)))
    }

    /// Does the same for a door whose messages carry the name: if an agent of another host has the name, the caller is refused, and gets no
    /// longer name.
    ///
    /// # Errors
    /// [`Rejected::OtherHost`], and what [`Names::local`] says.
    pub fn just_as_said(
        &self,
        agent: AgentId,
        door: Door,
        token: Option<&Token>,
        line: &Line,
    ) -> Result<Principal, Rejected> {
        let who = self.local(agent.clone(), door, token, line)?;
        if is_same(who.agent(), &agent) { Ok(who) } else { Err(Rejected::OtherHost) }
    }

    fn named(&self, agent: AgentId, door: Door, token: Option<&Token>) -> Result<Principal, Rejected> {
        if let Some(token) = token {
            let its = is_same(&token.agent, &agent);
            return if its { Ok(role::bearer(token, door)) } else { Err(Rejected::OtherName) };
        }
        let is_page = role::is_page(&agent, door);
        let agent = if is_page { agent } else { self.called_here(agent)? };
        if !is_page {
            self.is_free(&agent, Proof::PeerUid)?;
        }
        // Elsewhere names are proved by frames, by a jail, or not at all.
        role::by_name(agent, door).ok_or(Rejected::Reserved)
    }

    /// A process of this user that shows a page for people and speaks as that: it reads, and nothing else. No model speaks, so that the
    /// process is not kept in mind as one of an agent's.
    ///
    /// # Errors
    /// [`Rejected::Reserved`], where pages need a proof.
    pub fn page(&self, line: &Line) -> Result<Principal, Rejected> {
        let page = AgentId::parse(role::PAGE).map_err(|_| Rejected::Reserved)?;
        let who = role::by_name(page, Door::Web).ok_or(Rejected::Reserved)?;
        Ok(who.coming_from(self.origin(line)))
    }

    /// The sender of a frame that verified.
    ///
    /// # Errors
    /// The same errors as [`Names::is_free`], for a caller that has shown the shared secret.
    pub fn by_frame(&self, agent: AgentId, standing: Standing, line: &Line) -> Result<Principal, Rejected> {
        self.note(line, Some(&agent));
        let is_shared = standing == Standing::Shared;
        let agent = if is_shared { self.called_here(agent)? } else { agent };
        if is_shared {
            self.is_free(&agent, Proof::SharedKey)?;
        }
        Ok(role::devit(agent, standing).coming_from(self.origin(line)))
    }

    /// Keeps in mind that a model speaks from these processes: one that called, and those above it up to the
    /// leader of the session that has a terminal. Its name, where it has given one, is for the words of a refusal.
    pub fn note(&self, line: &Line, name: Option<&AgentId>) {
        self.speakers.note(line.up_to_terminal(), name);
    }

    /// Which agent has spoken among these processes, in words, so that the process at the beginning is no person; `None` where
    /// none has.
    pub fn speaker_in(&self, line: &Line) -> Option<String> {
        self.speakers.name_in(line)
    }

    /// Where the process calls from that this line begins with.
    pub fn origin(&self, line: &Line) -> Option<CallOrigin> {
        self.speakers.origin(line)
    }

    /// The numbers of processes below which no process counts as a person.
    pub fn speakers(&self) -> Vec<i32> {
        self.speakers.running()
    }

    /// The names that such processes have given themselves.
    pub fn speaking(&self) -> BTreeSet<String> {
        self.speakers.names_running()
    }

    /// The numbers of processes below which no process counts as a person, since they have spoken to other daemons of this user.
    /// Blocking.
    pub fn speakers_elsewhere(&self) -> Vec<i32> {
        self.speakers.elsewhere()
    }

    /// Whether a process that still runs has spoken MCP to us over HTTP.
    pub fn is_host(&self, pid: i32) -> bool {
        self.hosts.running().contains(&pid)
    }

    /// Whether a token that was shown before, if one was, is still good.
    ///
    /// # Errors
    /// [`Rejected::BadToken`].
    pub fn is_good(&self, token: Option<&Digest>) -> Result<HoldsFor, Rejected> {
        let Some(token) = token else { return Ok(HoldsFor::default()) };
        (self.tokens)(token).map(|it| HoldsFor(Some(it))).ok_or(Rejected::BadToken)
    }

    /// Whether an agent that was let in before, with this token if with one, may still use that name.
    ///
    /// # Errors
    /// [`Rejected::BadToken`] where the token has ended; what [`Names::is_free`] says.
    pub fn still(&self, who: &Principal, token: Option<&Digest>) -> Result<HoldsFor, Rejected> {
        let holds_for = self.is_good(token)?;
        match who.proof() {
            Proof::PeerUid if role::is_page(who.agent(), who.door()) => {}
            Proof::PeerUid if self.user.as_ref().is_none_or(|(user, _)| user != who.agent()) => {
                self.is_free(who.agent(), Proof::PeerUid)?;
            }
            Proof::SharedKey => self.is_free(who.agent(), Proof::SharedKey)?,
            _ => {}
        }
        Ok(holds_for)
    }
}

/// Whether two spellings are one name, as in the names of inboxes: letters of either case are the same, and
/// so are slashes and dashes.
pub fn is_same(one: &AgentId, other: &AgentId) -> bool {
    one == other || slug(one.as_str()) == slug(other.as_str())
}
