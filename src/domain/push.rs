//! Browsers that get notices through their push services: each is an address for notices, for which a passkey has signed.
//!
//! ```text
//!   offered at the door --signed--> subscribed --removed, or unknown to its service--> forgotten, with what it is owed
//! ```
//! The door, and the sender before each message, check whether an address is safe to send to. The core decides who
//! may add a subscription, and how many there are.

use core::fmt;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::command::{AddPush, PushAdded, PushRemoved, PushSnoozed, RemovePush, SnoozePush};
use super::outgoing::{facts_of, kind_of};
use super::{
    Change, Effect, EventKind, NoticeAbout, NoticeKind, NoticeTarget, Outbox, OutgoingNotice, Principal,
    Proof, Refusal, State,
};
use provost_base::limits::{PUSH_SNOOZE_S, PUSH_SUBSCRIPTIONS_MAX};
use provost_base::{Timestamp, Ttl};

/// The prefix of a subscription's id as an address for notices. No section `[notify.NAME]` can have a colon in its name.
const PREFIX: &str = "push:";

/// A browser that gets notices. `Debug` shows no address and no key, with which others could tell this browser from others.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushSubscription {
    /// Its id: the beginning of its address's SHA-256, hexadecimal.
    pub id: Box<str>,
    /// Its name for people.
    pub name: Box<str>,
    /// The address at which its push service takes messages for it.
    pub endpoint: Box<str>,
    /// Its public key, base64url: an uncompressed point of P-256.
    pub p256dh: Box<str>,
    /// The secret that it shares with the sender, base64url: 16 bytes.
    pub auth: Box<str>,
    /// The page at which it was subscribed: scheme, host and port.
    pub origin: Box<str>,
    /// The daemon's key with which it was subscribed, base64url. Its push service takes messages of no other key.
    pub server_key: Box<str>,
    /// When it was subscribed.
    pub added_at: Timestamp,
}

impl PushSubscription {
    /// Returns its name as an address for notices.
    pub fn address(&self) -> Box<str> {
        push_address(&self.id)
    }

    /// Returns scheme, host and port of its push service.
    pub fn host(&self) -> &str {
        let from = self.endpoint.find("://").map_or(0, |at| at + 3);
        let end = self.endpoint[from..].find('/').map_or(self.endpoint.len(), |at| from + at);
        &self.endpoint[..end]
    }
}

impl fmt::Debug for PushSubscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PushSubscription({}, {:?}, {}/…)", self.id, self.name, self.host())
    }
}

/// Returns the address for notices of the subscription with this id.
pub fn push_address(id: &str) -> Box<str> {
    format!("{PREFIX}{id}").into()
}

/// Returns the id of the subscription that an address for notices names, if it names one.
pub fn push_id(address: &str) -> Option<&str> {
    address.strip_prefix(PREFIX)
}

/// The setting for notices to browsers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PushSetting {
    /// The kinds of notices that browsers get.
    pub kinds: Vec<NoticeKind>,
    /// Whether they also get the words of agents.
    pub words: bool,
}

impl Default for PushSetting {
    fn default() -> Self {
        let kinds = vec![
            NoticeKind::Approval,
            NoticeKind::Answered,
            NoticeKind::Failed,
            NoticeKind::Tainted,
            NoticeKind::Passkey,
        ];
        Self { kinds, words: false }
    }
}

/// All subscriptions.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PushSubscriptions(BTreeMap<Box<str>, Arc<PushSubscription>>);

/// A change to a row of the subscriptions.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PushChange {
    /// A browser gets notices.
    Put(Arc<PushSubscription>),
    /// A browser no longer gets notices.
    Drop(Box<str>),
}

impl PushSubscriptions {
    pub(super) fn apply(&mut self, change: &PushChange) {
        match change {
            PushChange::Put(it) => drop(self.0.insert(it.id.clone(), it.clone())),
            PushChange::Drop(id) => drop(self.0.remove(id)),
        }
    }

    /// Returns the subscription with this id.
    pub fn get(&self, id: &str) -> Option<&Arc<PushSubscription>> {
        self.0.get(id)
    }

    /// Returns all subscriptions, by id.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<PushSubscription>> {
        self.0.values()
    }

    /// Checks whether there are no subscriptions.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns each subscription as an address for notices, except those that the current command ends.
    pub(super) fn targets(&self, setting: &PushSetting, changes: &[Change]) -> Vec<NoticeTarget> {
        let ended: BTreeSet<&str> = changes
            .iter()
            .filter_map(|it| match it {
                Change::Push(PushChange::Drop(id)) => Some(&**id),
                _ => None,
            })
            .collect();
        let told = self.0.values().filter(|it| !ended.contains(&*it.id));
        let target = |it: &Arc<PushSubscription>| NoticeTarget {
            name: it.address(),
            kinds: setting.kinds.clone(),
            words: setting.words,
        };
        told.map(target).collect()
    }
}

impl State {
    /// Adds a browser; only a passkey can. Another process could otherwise read along, or show a person false notices.
    pub(super) fn add_push(
        &self,
        now: Timestamp,
        who: &Principal,
        verb: &AddPush,
        out: &mut Outbox,
    ) -> Result<PushAdded, Refusal> {
        if who.proof() != Proof::Passkey {
            let why = "only a person whose passkey has signed for it has a browser told".into();
            return Err(Refusal::PasskeyRefused { why });
        }
        let new = PushSubscription { added_at: now, ..verb.subscription.clone() };
        if self.push.get(&new.id).is_none() && self.push.iter().count() >= PUSH_SUBSCRIPTIONS_MAX {
            return Err(Refusal::quota(
                "the limit of browsers for messages is reached",
                PUSH_SUBSCRIPTIONS_MAX,
                "remove one: provost push list",
            ));
        }
        let (id, name, host) = (new.id.clone(), new.name.clone(), new.host().into());
        out.append_event(EventKind::PushAdded { id, name, host, origin: new.origin.clone() });
        out.put(Change::Push(PushChange::Put(Arc::new(new))));
        Ok(PushAdded)
    }

    /// Owes a browser the notice of a question once more, later, if it still waits. A tap can do no more than this: it takes nothing away.
    pub(super) fn snooze_push(
        &self,
        now: Timestamp,
        who: &Principal,
        verb: &SnoozePush,
        out: &mut Outbox,
    ) -> Result<PushSnoozed, Refusal> {
        if who.proof() != Proof::Internal {
            let why = "only the browser that got the message can postpone the question".into();
            return Err(Refusal::PasskeyRefused { why });
        }
        let Some(known) = self.push.get(&verb.id) else {
            return Err(Refusal::PasskeyRefused { why: "no browser with this id gets messages".into() });
        };
        let parked = self.approvals.get(verb.approval).ok_or(Refusal::ApprovalNotFound(verb.approval))?;
        let until = now.after(Ttl::seconds_clamped(PUSH_SNOOZE_S));
        let to = known.address();
        // A second tap owes no second notice.
        if self.outgoing.is_put_off(&to, verb.approval) {
            return Ok(PushSnoozed { until });
        }
        let notice = Arc::new(OutgoingNotice {
            to,
            kind: kind_of(parked),
            event: self.counters.event,
            at: now,
            about: NoticeAbout::Approval(Box::new(facts_of(parked))),
            words: Vec::new(),
            not_before: Some(until),
        });
        let id = out.owe(Effect::SendNotice { notice: notice.clone() });
        out.put(Change::OweNotice(id, notice));
        Ok(PushSnoozed { until })
    }

    /// Removes a browser: a person does it, or the daemon when the push service no longer knows it. The notices
    /// that it is owed are dropped.
    pub(super) fn remove_push(
        &self,
        who: &Principal,
        verb: &RemovePush,
        out: &mut Outbox,
    ) -> Result<PushRemoved, Refusal> {
        if !who.is_person() && who.proof() != Proof::Internal {
            let why = "only a person ends it, in a terminal that is not below an agent, or with a passkey";
            return Err(Refusal::PasskeyRefused { why: why.into() });
        }
        let Some(known) = self.push.get(&verb.id) else {
            return Err(Refusal::PasskeyRefused { why: "no browser with this id gets messages".into() });
        };
        for effect in self.outgoing.owed_to(&known.address()) {
            out.put(Change::DropEffect(effect));
        }
        let (id, name, why) = (known.id.clone(), known.name.clone(), verb.why.clone());
        out.append_event(EventKind::PushRemoved { id: id.clone(), name, why });
        out.put(Change::Push(PushChange::Drop(id)));
        Ok(PushRemoved)
    }
}
