//! Compares the list of passkeys with the daemon's record, and finds the steps that reconcile the two.
//!
//! A process that can write the list can get a valid MAC for it, by enrolling in a repository without any passkey.
//! So the record takes precedence over the list: a recorded key is unchangeable, a passkey is added beside known
//! ones only if one of them has signed for it, and is revoked because of the list only if the list says so. A list
//! that contradicts this cannot be used.

use std::collections::BTreeMap;

use super::passkeys::on_record;
use provost_auth::passkeys::{ListChange, ListError, ListedPasskey, OLD_COPY, PasskeyList};
use provost_domain::{Passkey, Passkeys, SignedWord};
use provost_passkey::{Assertion, PublicKey, Transcript, Word, bytes_of, holds};
use serde::Deserialize as _;

/// A missing step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// All passkeys were given up: the count of such resets, and whether the wait after it still runs.
    Reset(u64, bool),
    /// This passkey must be recorded, with the signature for it.
    Add(Box<ListedPasskey>, Option<Box<SignedWord>>),
    /// This passkey must be revoked here.
    Revoke(Box<str>, Option<Box<SignedWord>>),
    /// These passkeys were revoked here, and must be removed from the list.
    TakeOut(Vec<String>),
    /// The list must be emptied, because all passkeys were given up here.
    Empty,
}

/// Returns the missing steps, in order.
///
/// # Errors
/// The reason why the list cannot be used.
pub(super) fn steps(list: &PasskeyList, known: &Passkeys) -> Result<Vec<Step>, ListError> {
    if list.of_root { Ok(of_roots(list, known)) } else { of_users(list, known) }
}

/// Returns the steps for root's list, which alone decides which passkeys count.
fn of_roots(list: &PasskeyList, known: &Passkeys) -> Vec<Step> {
    let is_missing = |it: &&ListedPasskey| match known.get(&it.id) {
        None => true,
        Some(known) => known.revoked_at.is_none() && !known.passkey.signs_as(&on_record(it, true)),
    };
    let added = list.passkeys.iter().filter(is_missing).map(|it| Step::Add(Box::new(it.clone()), None));
    let gone = known.unrevoked().filter(|it| list.get(&it.passkey.id).is_none());
    added.chain(gone.map(|it| Step::Revoke(it.passkey.id.clone(), None))).collect()
}

fn disagrees(why: impl Into<String>) -> ListError {
    ListError::Disagrees(why.into())
}

fn of_users(list: &PasskeyList, known: &Passkeys) -> Result<Vec<Step>, ListError> {
    let standing = known.standing();
    if list.number < standing.number {
        return Err(disagrees(OLD_COPY));
    }
    if list.resets < standing.count {
        // All passkeys were given up here, and the list could not be written then.
        return Ok(vec![Step::Empty]);
    }
    let mut steps = Vec::new();
    let mut trusted = BTreeMap::new();
    let is_reset = list.resets > standing.count;
    if is_reset {
        steps.push(Step::Reset(list.resets, list.waits_until.is_some()));
    } else {
        trusted.extend(known.unrevoked().map(|it| (&*it.passkey.id, Trusted::of(&it.passkey))));
    }
    for change in list.changes() {
        match change {
            ListChange::Added(it) => match known.get(&it.id) {
                Some(known) if !known.passkey.signs_as(&on_record(it, false)) => {
                    return Err(disagrees(format!("the key of `{}` is not the one on record", it.name)));
                }
                Some(_) => {}
                None => {
                    steps.push(Step::Add(Box::new(it.clone()), vouched(it, &trusted)?));
                    trusted.insert(&*it.id, Trusted::of(&on_record(it, false)));
                }
            },
            ListChange::Revoked(it) => {
                let id = &*it.passkey.id;
                if trusted.contains_key(id) {
                    let signed = it.signed.clone();
                    if signed.as_deref().is_some_and(|word| !revokes(word, id, &trusted)) {
                        return Err(disagrees(format!(
                            "the revocation of `{}` is not signed",
                            it.passkey.name
                        )));
                    }
                    steps.push(Step::Revoke(id.into(), signed));
                    trusted.remove(id);
                }
            }
        }
    }
    if let Some(it) = known.unrevoked().find(|it| !is_reset && !list.has_had(&it.passkey.id)) {
        return Err(disagrees(format!("`{}` is on record, and the list does not know it", it.passkey.name)));
    }
    let is_revoked = |it: &&ListedPasskey| known.get(&it.id).is_some_and(|it| it.revoked_at.is_some());
    let gone: Vec<_> = list.passkeys.iter().filter(is_revoked).map(|it| it.id.clone()).collect();
    if !gone.is_empty() {
        steps.push(Step::TakeOut(gone));
    }
    Ok(steps)
}

/// Returns the signature for a new passkey, which known ones must have made if there are any.
fn vouched(
    it: &ListedPasskey,
    trusted: &BTreeMap<&str, Trusted>,
) -> Result<Option<Box<SignedWord>>, ListError> {
    let is_about = |word| matches!(word, Word::Enrol(word) if word.enrol == it.digest());
    let word = it.vouch.as_ref().filter(|word| said(word, trusted).is_some_and(is_about));
    match word {
        None if !trusted.is_empty() => Err(disagrees(format!(
            "`{}` was added, and no passkey that is on record has signed for it",
            it.name
        ))),
        word => Ok(word.cloned()),
    }
}

fn revokes(word: &SignedWord, id: &str, trusted: &BTreeMap<&str, Trusted>) -> bool {
    matches!(said(word, trusted), Some(Word::Revoke(word)) if word.revoke == id)
}

/// The data of a passkey with which its signatures are checked.
struct Trusted {
    rp_id: String,
    key: Option<PublicKey>,
}

impl Trusted {
    fn of(it: &Passkey) -> Self {
        Self { rp_id: it.rp_id.to_string(), key: PublicKey::deserialize(&it.key.value()).ok() }
    }
}

/// Returns the word that one of these passkeys has signed, at any daemon of the user. The other daemon checks the counter.
fn said(word: &SignedWord, trusted: &BTreeMap<&str, Trusted>) -> Option<Word> {
    let by = trusted.get(&*word.credential)?;
    let transcript = Transcript::read(&word.transcript).ok()?;
    let bytes = |text: &str| bytes_of(text, "what was signed").ok();
    let (data, client) = (bytes(&word.authenticator_data)?, bytes(&word.client_data)?);
    let signature = bytes(&word.signature)?;
    let it = Assertion { authenticator_data: &data, client_data: &client, signature: &signature };
    let is_digest = transcript.digest() == word.digest;
    let is_signed = holds(&by.rp_id, transcript.digest().as_bytes(), by.key.as_ref()?, &it).is_ok();
    (is_digest && is_signed).then_some(transcript.word)
}
