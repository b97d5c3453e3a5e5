//! Users of a repository that several hosts share: what the person at each host, and the agents there, may do with the shared state.
//!
//! ```text
//!   viewer: looks   agent: and works   approver: and answers approvals   admin: and looks after users, tokens' owners and all agents
//! ```
//! Without a list, the users of all hosts are admins. The first entry begins the list: its maker is an admin from
//! then on, and a host without an entry has a viewer. The role holds for every caller at the host, with or without
//! a proof, but not for a passkey: its word is its owner's, and not that of the host which carries it. The host
//! decides by the role, and the daemons of the other hosts check its decisions.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::command::{SetUser, UserSet};
use super::{Change, Command, EventKind, Outbox, Principal, Proof, Refusal, Scope, State};
use provost_base::limits::{HOSTS_MAX, USER_NAME_BYTES_MAX};
use provost_base::{HostId, Json, visible};

/// The kind of the event that a user has changed.
pub const USER_CHANGED: &str = "user.changed";

/// The rights of a user, from few to many.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UserRole {
    /// May look, and change nothing.
    Viewer,
    /// May work and coordinate, also through agents; may not answer approvals.
    Agent,
    /// May answer approvals as well.
    Approver,
    /// May change users, and the things of other agents.
    Admin,
}

impl UserRole {
    /// All roles, in their order.
    pub const ALL: [UserRole; 4] = [UserRole::Viewer, UserRole::Agent, UserRole::Approver, UserRole::Admin];

    /// Returns the word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            UserRole::Viewer => "viewer",
            UserRole::Agent => "agent",
            UserRole::Approver => "approver",
            UserRole::Admin => "admin",
        }
    }

    /// Returns the role with this word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_str() == word)
    }

    /// Returns the lowest role whose users may use a verb with this right.
    fn least_for(scope: Scope) -> Self {
        match scope {
            Scope::Read => UserRole::Viewer,
            Scope::Join | Scope::Coordinate | Scope::Delegate | Scope::Work | Scope::Apply | Scope::Host => {
                UserRole::Agent
            }
            Scope::Approve => UserRole::Approver,
            Scope::Operate => UserRole::Admin,
        }
    }
}

/// The user of one host: the person who owns the state folder there.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct User {
    /// The host that the user works at.
    pub host: HostId,
    /// The name for people.
    pub name: Box<str>,
    /// The role of the user.
    pub role: UserRole,
}

/// The list of users.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Users(BTreeMap<HostId, Arc<User>>);

impl Users {
    /// Adds a user, or replaces that of the same host.
    pub fn put(&mut self, user: Arc<User>) {
        self.0.insert(user.host, user);
    }

    pub(super) fn remove(&mut self, host: HostId) {
        self.0.remove(&host);
    }

    /// Returns all users, by host.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<User>> {
        self.0.values()
    }

    /// Returns the role of a host's user.
    pub fn role_at(&self, host: HostId) -> UserRole {
        match self.0.get(&host) {
            Some(user) => user.role,
            None if self.0.is_empty() => UserRole::Admin,
            None => UserRole::Viewer,
        }
    }

    /// Checks whether a host may have another one, or itself, drained or removed.
    pub fn may_take_out(&self, by: HostId, host: HostId) -> bool {
        by == host || self.role_at(by) == UserRole::Admin
    }
}

impl State {
    /// Checks whether the role of this host's user lets the caller use such a verb.
    ///
    /// # Errors
    /// [`Refusal::RoleTooLow`].
    pub(super) fn role_allows(&self, who: &Principal, command: &Command) -> Result<(), Refusal> {
        if matches!(who.proof(), Proof::Internal | Proof::Passkey) || self.here.is_alone() {
            return Ok(());
        }
        let (role, needs) = (self.users.role_at(self.here.host), UserRole::least_for(command.scope()));
        if role >= needs { Ok(()) } else { Err(Refusal::RoleTooLow { role, needs }) }
    }

    /// Returns the caller with at most the rights that the role of this host's user has.
    pub(super) fn within_role<'a>(&self, who: &'a Principal) -> Cow<'a, Principal> {
        let role = self.users.role_at(self.here.host);
        let is_bound = !matches!(who.proof(), Proof::Internal | Proof::Passkey) && !self.here.is_alone();
        if !is_bound || role == UserRole::Admin {
            return Cow::Borrowed(who);
        }
        Cow::Owned(who.clone().within(|scope| UserRole::least_for(scope) <= role))
    }

    /// Gives the user of a host a role, or takes the user off the list.
    pub(super) fn set_user(
        &self,
        who: &Principal,
        verb: &SetUser,
        out: &mut Outbox,
    ) -> Result<UserSet, Refusal> {
        let no = |why: &str| Err(Refusal::UserCannot { why: why.into() });
        if self.here.is_alone() {
            return no("this repository has one host, whose user is its admin");
        }
        if !who.is_person() {
            return no("only a person changes users, in a terminal that is not below an agent");
        }
        if verb.host == self.here.host {
            return no("the user of another host changes your role, so that one admin is always left");
        }
        let name = &*verb.name;
        if name.trim().is_empty() || name.len() > USER_NAME_BYTES_MAX || visible(name) != name {
            return no("a user's name is short, and nothing in it is invisible");
        }
        if verb.role.is_some() && self.removed.contains(&verb.host) {
            return no("that host was removed, and never takes part again");
        }
        // The users of removed hosts stay on the list, by which earlier entries are judged, and do not count.
        let counted = self.users.0.keys().filter(|it| !self.removed.contains(it)).count();
        if counted >= HOSTS_MAX && !self.users.0.contains_key(&verb.host) {
            return Err(Refusal::quota(
                "there are as many users as there may be hosts",
                HOSTS_MAX,
                "remove one",
            ));
        }
        if self.users.0.is_empty() {
            let name = who.agent().as_str().trim_start_matches("user:").into();
            self.put_user(User { host: self.here.host, name, role: UserRole::Admin }, out);
        }
        match verb.role {
            Some(role) => self.put_user(User { host: verb.host, name: verb.name.clone(), role }, out),
            None => {
                note(verb.host, &verb.name, None, out);
                out.put(Change::DropUser(verb.host));
            }
        }
        Ok(UserSet)
    }

    fn put_user(&self, user: User, out: &mut Outbox) {
        note(user.host, &user.name, Some(user.role), out);
        out.put(Change::PutUser(Arc::new(user)));
    }
}

fn note(host: HostId, name: &str, role: Option<UserRole>, out: &mut Outbox) {
    let details = serde_json::json!({ "name": name, "role": role.map(UserRole::as_str) });
    out.append_event(EventKind::Recorded {
        what: USER_CHANGED.into(),
        subject: host.to_string().into(),
        details: Json::from_value(&details),
    });
}
