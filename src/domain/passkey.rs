//! Passkeys that are on record, and what their signatures leave in the log.
//!
//! ```text
//!   added --used--> added, with a higher counter
//!     \----revoked, or all reset----> revoked: never good again
//! ```
//! The door checks whether a signature is valid before the command comes in. The core decides what only it knows:
//! whether the passkey is on record and not revoked, and whether its counter went up, in the order of commands.
//!
//! After a reset, and after a revocation without a signature that leaves no passkey, no passkey counts for a day,
//! so that the owner hears of it first. That day is measured by the time that the daemon has run, which no clock
//! changes; if several hosts share the state, by the clock of their database, which none of them sets.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::command::{
    AddPasskey, NotePasskeyList, PasskeyAdded, PasskeyListNoted, PasskeyRevoked, PasskeysReset,
    ResetPasskeys, RevokePasskey, SayWord, WordSaid,
};
use super::{Change, EventKind, Outbox, Principal, Proof, Refusal, State};
use provost_base::limits::{PASSKEYS_MAX, PASSKEYS_RESET_S, PASSKEYS_REVOKED_MAX};
use provost_base::{Digest, Json, Timestamp, Ttl};

/// The time in which no passkey counts after all were given up.
const WAIT: Ttl = Ttl::seconds_clamped(PASSKEYS_RESET_S);

/// A passkey: the data with which its signatures are checked, now and later by strangers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Passkey {
    /// The credential's id, base64url.
    pub id: Box<str>,
    /// Its name for people.
    pub name: Box<str>,
    /// The domain that it was made for.
    pub rp_id: Box<str>,
    /// Its public key, as a JSON Web Key.
    pub key: Json,
    /// Whether it can be backed up, because its manager synchronises it.
    pub backup_eligible: bool,
    /// The model of the authenticator, as the authenticator reports it: 32 hexadecimal digits.
    pub aaguid: Box<str>,
    /// The way in which it was enrolled: `code`, `vouched`, `list`, `root`.
    pub source: Box<str>,
}

/// A passkey, with its state at this daemon.
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

/// A word that a passkey has signed, as the log keeps it: with the public key alone, it can be checked again.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SignedWord {
    /// The credential's id, base64url.
    pub credential: Box<str>,
    /// The text whose SHA-256 is the challenge.
    pub transcript: Box<str>,
    /// The SHA-256 of the transcript.
    pub digest: Digest,
    /// The authenticator's data, base64url.
    pub authenticator_data: Box<str>,
    /// The browser's data, base64url.
    pub client_data: Box<str>,
    /// The signature over the authenticator's data and the SHA-256 of the browser's, base64url.
    pub signature: Box<str>,
    /// The counter in the authenticator's data.
    pub counter: u32,
}

impl Passkey {
    /// Checks whether the other passkey signs as this one does: the same key, for the same domain, with the same ability to be backed up.
    pub fn signs_as(&self, other: &Passkey) -> bool {
        (&self.key, &self.rp_id, self.backup_eligible) == (&other.key, &other.rp_id, other.backup_eligible)
    }
}

/// The source of a passkey that comes from root's list.
pub const SOURCE_ROOT: &str = "root";

/// Passkeys on record.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Passkeys {
    all: BTreeMap<Box<str>, Arc<KnownPasskey>>,
    standing: PasskeyStanding,
    daemon: Box<str>,
}

/// The state of the list of passkeys at this daemon.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct PasskeyStanding {
    /// The number of resets that the list counts.
    pub count: u64,
    /// The time from which passkeys count again, if the daemon runs until then.
    pub until: Timestamp,
    /// The rest of the wait after the last reset, in milliseconds of running. A record from before this was counted
    /// has the whole wait.
    #[serde(default = "whole_wait")]
    pub left_ms: u64,
    /// The highest number of a list that was taken in. A list with a lower number is an old copy.
    #[serde(default)]
    pub number: u64,
    /// Whether the list could not be used at the last look.
    #[serde(default)]
    pub is_unusable: bool,
}

fn whole_wait() -> u64 {
    u64::from(WAIT.as_millis())
}

/// A change to a row of the passkeys on record.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PasskeyChange {
    /// A passkey was put on record, used or revoked.
    Put(Arc<KnownPasskey>),
    /// A passkey that was revoked long ago is forgotten.
    Drop(Box<str>),
    /// The state of the list has changed.
    Standing(PasskeyStanding),
    /// The id of this daemon, made with its store. Only loading sets it, once.
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
            PasskeyChange::Standing(it) => self.standing = *it,
            PasskeyChange::Daemon(id) => self.daemon = id.clone(),
        }
    }

    /// Returns the id of this daemon, which every signature contains.
    pub fn daemon(&self) -> &str {
        &self.daemon
    }

    /// Returns the state of the list.
    pub fn standing(&self) -> PasskeyStanding {
        self.standing
    }

    /// Returns the passkey with this id, revoked or not.
    pub fn get(&self, id: &str) -> Option<&Arc<KnownPasskey>> {
        self.all.get(id)
    }

    /// Returns the passkeys that are not revoked.
    pub fn unrevoked(&self) -> impl Iterator<Item = &Arc<KnownPasskey>> {
        self.iter().filter(|it| it.revoked_at.is_none())
    }

    /// Returns all passkeys on record, revoked ones included.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<KnownPasskey>> {
        self.all.values()
    }

    /// Checks whether a person has enrolled a passkey. During the wait after a reset, and while the list cannot be
    /// used, the answer is yes: a process that resets or breaks the list must not be asked for less.
    pub fn are_enrolled(&self) -> bool {
        self.standing.left_ms > 0 || self.standing.is_unusable || self.unrevoked().next().is_some()
    }

    /// Returns until when no passkey counts, if the daemon runs until then; `None` without a wait.
    pub fn waits_until(&self, now: Timestamp) -> Option<Timestamp> {
        let left = Ttl::from_millis(self.standing.left_ms).unwrap_or(WAIT);
        (self.standing.left_ms > 0).then(|| now.after(left))
    }

    /// Returns how much further the clock went than the daemon has run since the wait began, in milliseconds.
    pub fn leapt_ms(&self, now: Timestamp) -> u64 {
        self.waits_until(now).map_or(0, |until| until.since_ms(self.standing.until))
    }

    fn good(&self, id: &str) -> Result<&Arc<KnownPasskey>, Refusal> {
        if self.standing.left_ms > 0 {
            return Err(refused("all passkeys were reset, and none counts until a day has passed since"));
        }
        self.on_record(id)
    }

    fn on_record(&self, id: &str) -> Result<&Arc<KnownPasskey>, Refusal> {
        let no = refused;
        let known = self.all.get(id).ok_or_else(|| no("this passkey is not on record here"))?;
        if known.revoked_at.is_some() {
            return Err(no("this passkey was revoked"));
        }
        Ok(known)
    }
}

fn refused(why: &str) -> Refusal {
    Refusal::PasskeyRefused { why: why.into() }
}

impl State {
    /// Takes a signature in: its passkey must be valid, and its counter must go up or be absent.
    pub(super) fn use_passkey(
        &self,
        now: Timestamp,
        word: &SignedWord,
        out: &mut Outbox,
    ) -> Result<(), Refusal> {
        let known = self.passkeys.good(&word.credential)?;
        if (word.counter != 0 || known.counter != 0) && word.counter <= known.counter {
            return Err(refused("its counter went back: a copy of the key may be in use"));
        }
        let used = KnownPasskey { counter: word.counter, used_at: Some(now), ..KnownPasskey::clone(known) };
        out.put(Change::Passkey(PasskeyChange::Put(Arc::new(used))));
        Ok(())
    }

    /// Takes a signature for a change of the list in: of this daemon, or of another one, whose counters do not count here.
    fn sign_change(
        &self,
        now: Timestamp,
        who: &Principal,
        word: Option<&SignedWord>,
        out: &mut Outbox,
    ) -> Result<(), Refusal> {
        match word {
            Some(word) if who.proof() == Proof::Internal => {
                self.passkeys.on_record(&word.credential).map(drop)
            }
            Some(word) => self.use_passkey(now, word, out),
            None => Ok(()),
        }
    }

    /// Checks that the caller is a person, or the daemon that reads the list.
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
        let (new, is_roots) = (&verb.passkey, &*verb.passkey.source == SOURCE_ROOT);
        if let Some(known) = self.passkeys.get(&new.id) {
            if known.revoked_at.is_some() {
                return Err(refused("this passkey was revoked here, and stays so; make another one"));
            }
            if known.passkey.signs_as(new) {
                return Ok(PasskeyAdded);
            }
            if !is_roots {
                return Err(refused("another key is on record under the id of this passkey"));
            }
        }
        let known = self.passkeys.unrevoked().count();
        if known >= PASSKEYS_MAX {
            return Err(Refusal::quota(
                "there are as many passkeys as there may be",
                PASSKEYS_MAX,
                "revoke one",
            ));
        }
        // Otherwise a process of this user could add a passkey of its own, and approve with it.
        if known > 0 && verb.vouched.is_none() && !is_roots {
            return Err(refused("a passkey is on record, and a further one counts only if it signs for it"));
        }
        self.sign_change(now, who, verb.vouched.as_deref(), out)?;
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
        let known = self.passkeys.get(&verb.id).filter(|it| it.revoked_at.is_none());
        let known = known.ok_or_else(|| refused("there is no such passkey"))?;
        self.sign_change(now, who, verb.signed.as_deref(), out)?;
        let (id, name) = (verb.id.clone(), known.passkey.name.clone());
        out.append_event(EventKind::PasskeyRevoked { id, name, signed: verb.signed.clone() });
        self.put_revoked(now, known, out);
        // Otherwise a process with a terminal of its own could revoke the last passkey and enrol its own, without the wait of a reset.
        if verb.signed.is_none() && self.passkeys.unrevoked().count() == 1 {
            let count = self.passkeys.standing.count + 1;
            self.begin_wait(now, count, 0, out);
        }
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
        let good: Vec<_> = self.passkeys.unrevoked().collect();
        good.iter().for_each(|it| self.put_revoked(now, it, out));
        let revoked = u32::try_from(good.len()).unwrap_or(u32::MAX);
        if verb.waits || revoked > 0 {
            return Ok(PasskeysReset { until: self.begin_wait(now, verb.count, revoked, out) });
        }
        let standing = PasskeyStanding { count: verb.count, ..self.passkeys.standing };
        out.put(Change::Passkey(PasskeyChange::Standing(standing)));
        Ok(PasskeysReset { until: now })
    }

    /// Begins the day in which no passkey counts.
    fn begin_wait(&self, now: Timestamp, count: u64, revoked: u32, out: &mut Outbox) -> Timestamp {
        let until = now.after(WAIT);
        out.append_event(EventKind::PasskeysReset { revoked, until });
        let standing = PasskeyStanding { count, until, left_ms: whole_wait(), ..self.passkeys.standing };
        out.put(Change::Passkey(PasskeyChange::Standing(standing)));
        until
    }

    /// Remembers what the daemon has seen of the list, and how long it has run.
    pub(super) fn note_passkey_list(
        &self,
        who: &Principal,
        verb: &NotePasskeyList,
        out: &mut Outbox,
    ) -> Result<PasskeyListNoted, Refusal> {
        if who.proof() != Proof::Internal {
            return Err(refused("only the daemon itself says how the list of passkeys stands"));
        }
        let before = self.passkeys.standing;
        // With several hosts, each would subtract its own running time from the wait.
        let ran_ms = if self.here.is_alone() { verb.ran_ms } else { 0 };
        let standing = PasskeyStanding {
            left_ms: before.left_ms.saturating_sub(ran_ms),
            number: before.number.max(verb.number.unwrap_or(0)),
            is_unusable: verb.is_unusable,
            ..before
        };
        if standing != before {
            out.put(Change::Passkey(PasskeyChange::Standing(standing)));
        }
        Ok(PasskeyListNoted)
    }

    /// Returns when the wait after a reset is over by the clock of the hosts' database; `None` if a daemon counts its own running time.
    pub(super) fn passkeys_count_at(&self) -> Option<Timestamp> {
        let standing = self.passkeys.standing;
        (!self.here.is_alone() && standing.left_ms > 0).then_some(standing.until)
    }

    pub(super) fn end_passkey_wait(&self, out: &mut Outbox) {
        let standing = PasskeyStanding { left_ms: 0, ..self.passkeys.standing };
        out.put(Change::Passkey(PasskeyChange::Standing(standing)));
    }

    /// Takes a signed verb in. It counts once: its counter is used up with it.
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
        out.append_event(EventKind::WordSaid(Box::new(verb.clone())));
        Ok(WordSaid)
    }

    /// Revokes a passkey; the oldest revoked ones are forgotten when there are many.
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
