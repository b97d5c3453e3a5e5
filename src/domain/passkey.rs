//! Passkeys that are on record, and what their signatures leave in the log.
//!
//! ```text
//!   added --used--> added, with a higher counter
//!     \----revoked, or all reset----> revoked: never good again
//! ```
//! Whether a signature is good is found out at the door, before the command comes in. The core decides what only it knows:
//! whether the passkey is on record and not revoked, and whether its counter went up, in the order of commands.
//! After a reset no passkey is good for a day, so that its owner hears of it first.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::command::{
    AddPasskey, PasskeyAdded, PasskeyRevoked, PasskeysReset, ResetPasskeys, RevokePasskey, SayWord, WordSaid,
};
use super::{Change, EventKind, Outbox, Principal, Proof, Refusal, State};
use provost_base::limits::{PASSKEYS_MAX, PASSKEYS_REVOKED_MAX};
use provost_base::{Digest, Json, Timestamp};

/// A passkey: what is needed to check its signatures, now and by a stranger later.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Passkey {
    /// The credential's id, base64url.
    pub id: Box<str>,
    /// Its name for people.
    pub name: Box<str>,
    /// The name that it was made for: a domain.
    pub rp_id: Box<str>,
    /// Its public key, as a JSON Web Key.
    pub key: Json,
    /// Whether it can be backed up: synced by its manager.
    pub backup_eligible: bool,
    /// The model of the authenticator, as it says: 32 hexadecimal digits.
    pub aaguid: Box<str>,
    /// How it came to be known: `code`, `vouched`, `list`, `root`.
    pub source: Box<str>,
}

/// A passkey, and how it stands with this daemon.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct KnownPasskey {
    /// The passkey itself.
    pub passkey: Passkey,
    /// Its counter when it was last used here.
    pub counter: u32,
    /// When it was put on record here.
    pub added_at: Timestamp,
    /// When it was last used here.
    pub used_at: Option<Timestamp>,
    /// When it was revoked, if it was.
    pub revoked_at: Option<Timestamp>,
}

/// What a passkey has signed, as the log keeps it: enough to check it again without anything else but the public key.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SignedWord {
    /// The credential's id, base64url.
    pub credential: Box<str>,
    /// The text whose SHA-256 is the challenge.
    pub transcript: Box<str>,
    /// Its SHA-256.
    pub digest: Digest,
    /// The authenticator's data, base64url.
    pub authenticator_data: Box<str>,
    /// The browser's data, base64url.
    pub client_data: Box<str>,
    /// The signature over the authenticator's data and the SHA-256 of the browser's, base64url.
    pub signature: Box<str>,
    /// The counter that the authenticator's data say.
    pub counter: u32,
}

/// Passkeys on record.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Passkeys {
    all: BTreeMap<Box<str>, Arc<KnownPasskey>>,
    reset: Option<PasskeyReset>,
    daemon: Box<str>,
}

/// The last reset.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PasskeyReset {
    /// How many there were, as the list counts them.
    pub count: u64,
    /// From when passkeys count again.
    pub until: Timestamp,
}

/// A row of the passkeys on record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PasskeyChange {
    /// A passkey is on record, was used or revoked.
    Put(Arc<KnownPasskey>),
    /// A passkey that was revoked long ago is forgotten.
    Drop(Box<str>),
    /// All were given up.
    Reset(PasskeyReset),
    /// The id of this daemon, made with its store. Loading says it once.
    Daemon(Box<str>),
}

impl Passkeys {
    pub(super) fn apply(&mut self, change: &PasskeyChange) {
        match change {
            PasskeyChange::Put(it) => {
                self.all.insert(it.passkey.id.clone(), it.clone());
            }
            PasskeyChange::Drop(id) => {
                self.all.remove(id);
            }
            PasskeyChange::Reset(it) => self.reset = Some(*it),
            PasskeyChange::Daemon(id) => self.daemon = id.clone(),
        }
    }

    /// The id of this daemon, which every signature is for.
    pub fn daemon(&self) -> &str {
        &self.daemon
    }

    /// The last reset, if there was one.
    pub fn reset(&self) -> Option<PasskeyReset> {
        self.reset
    }

    /// All that are on record, revoked ones included.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<KnownPasskey>> {
        self.all.values()
    }

    /// Whether a person has enrolled one. During the wait after a reset the answer is yes: a process that resets the list must not be
    /// asked for less at once.
    pub fn are_enrolled(&self, now: Timestamp) -> bool {
        self.waits_until(now).is_some() || self.iter().any(|it| it.revoked_at.is_none())
    }

    /// Until when no passkey counts, while that is in the future.
    pub fn waits_until(&self, now: Timestamp) -> Option<Timestamp> {
        self.reset.map(|it| it.until).filter(|until| now < *until)
    }

    fn good(&self, id: &str, now: Timestamp) -> Result<&Arc<KnownPasskey>, Refusal> {
        let no = |why: &str| Refusal::PasskeyRefused { why: why.into() };
        if self.waits_until(now).is_some() {
            return Err(no("all passkeys were reset, and none counts until a day has passed since"));
        }
        let known = self.all.get(id).ok_or_else(|| no("this passkey is not on record here"))?;
        if known.revoked_at.is_some() {
            return Err(no("this passkey was revoked"));
        }
        Ok(known)
    }
}

impl State {
    /// Takes a signature in: its passkey is good, and its counter goes up or is absent.
    pub(super) fn use_passkey(
        &self,
        now: Timestamp,
        word: &SignedWord,
        out: &mut Outbox,
    ) -> Result<(), Refusal> {
        let known = self.passkeys.good(&word.credential, now)?;
        if (word.counter != 0 || known.counter != 0) && word.counter <= known.counter {
            let why = "its counter went back: a copy of the key may be in use".into();
            return Err(Refusal::PasskeyRefused { why });
        }
        let used = KnownPasskey { counter: word.counter, used_at: Some(now), ..KnownPasskey::clone(known) };
        out.put(Change::Passkey(PasskeyChange::Put(Arc::new(used))));
        Ok(())
    }

    /// A person, or the daemon that reads the list.
    fn may_change_passkeys(who: &Principal) -> Result<(), Refusal> {
        if who.is_person() || who.proof() == Proof::Internal {
            return Ok(());
        }
        let why =
            "only a person changes passkeys, in a terminal that is not below an agent, or with a passkey"
                .into();
        Err(Refusal::PasskeyRefused { why })
    }

    pub(super) fn add_passkey(
        &self,
        now: Timestamp,
        who: &Principal,
        verb: &AddPasskey,
        out: &mut Outbox,
    ) -> Result<PasskeyAdded, Refusal> {
        Self::may_change_passkeys(who)?;
        let id = &verb.passkey.id;
        if let Some(known) = self.passkeys.all.get(id) {
            if known.revoked_at.is_some() {
                let why = "this passkey was revoked here, and stays so; make another one".into();
                return Err(Refusal::PasskeyRefused { why });
            }
            return Ok(PasskeyAdded);
        }
        if self.passkeys.iter().filter(|it| it.revoked_at.is_none()).count() >= PASSKEYS_MAX {
            return Err(Refusal::quota(
                "there are as many passkeys as there may be",
                PASSKEYS_MAX,
                "revoke one",
            ));
        }
        if let Some(word) = &verb.vouched {
            self.use_passkey(now, word, out)?;
        }
        let (passkey, vouched) = (Box::new(verb.passkey.clone()), verb.vouched.clone());
        out.append_event(EventKind::PasskeyAdded { passkey, vouched });
        let known = KnownPasskey {
            passkey: verb.passkey.clone(),
            counter: verb.counter,
            added_at: now,
            used_at: None,
            revoked_at: None,
        };
        out.put(Change::Passkey(PasskeyChange::Put(Arc::new(known))));
        Ok(PasskeyAdded)
    }

    pub(super) fn revoke_passkey(
        &self,
        now: Timestamp,
        who: &Principal,
        verb: &RevokePasskey,
        out: &mut Outbox,
    ) -> Result<PasskeyRevoked, Refusal> {
        Self::may_change_passkeys(who)?;
        let known = self.passkeys.all.get(&verb.id).filter(|it| it.revoked_at.is_none());
        let known =
            known.ok_or_else(|| Refusal::PasskeyRefused { why: "there is no such passkey".into() })?;
        if let Some(word) = &verb.signed {
            self.use_passkey(now, word, out)?;
        }
        let (id, name) = (verb.id.clone(), known.passkey.name.clone());
        out.append_event(EventKind::PasskeyRevoked { id, name, signed: verb.signed.clone() });
        self.put_revoked(now, known, out);
        Ok(PasskeyRevoked)
    }

    pub(super) fn reset_passkeys(
        &self,
        now: Timestamp,
        who: &Principal,
        verb: &ResetPasskeys,
        out: &mut Outbox,
    ) -> Result<PasskeysReset, Refusal> {
        Self::may_change_passkeys(who)?;
        let until = now.after(verb.wait);
        let good: Vec<_> = self.passkeys.iter().filter(|it| it.revoked_at.is_none()).collect();
        good.iter().for_each(|it| self.put_revoked(now, it, out));
        let revoked = u32::try_from(good.len()).unwrap_or(u32::MAX);
        out.append_event(EventKind::PasskeysReset { revoked, until });
        out.put(Change::Passkey(PasskeyChange::Reset(PasskeyReset { count: verb.count, until })));
        Ok(PasskeysReset { until })
    }

    /// A signed verb counts once: its counter is used up with it.
    pub(super) fn say_word(
        &self,
        now: Timestamp,
        who: &Principal,
        verb: &SayWord,
        out: &mut Outbox,
    ) -> Result<WordSaid, Refusal> {
        if who.proof() != Proof::Passkey {
            let why = "only a person whose passkey has signed it says it".into();
            return Err(Refusal::PasskeyRefused { why });
        }
        self.use_passkey(now, &verb.signed, out)?;
        let SayWord { verb, arguments, signed } = verb.clone();
        out.append_event(EventKind::WordSaid { verb, arguments, signed });
        Ok(WordSaid)
    }

    /// The oldest ones that were revoked are forgotten when there are many.
    fn put_revoked(&self, now: Timestamp, known: &KnownPasskey, out: &mut Outbox) {
        let revoked = KnownPasskey { revoked_at: Some(now), ..known.clone() };
        out.put(Change::Passkey(PasskeyChange::Put(Arc::new(revoked))));
        let old = self.passkeys.iter().filter_map(|it| Some((it.revoked_at?, &it.passkey.id)));
        let old: Vec<_> = old.collect();
        if old.len() >= PASSKEYS_REVOKED_MAX
            && let Some((_, id)) = old.iter().min()
        {
            out.put(Change::Passkey(PasskeyChange::Drop(Box::clone(id))));
        }
    }
}
