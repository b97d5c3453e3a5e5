//! What the list of passkeys says against what is on record here, and the steps that bring the two together.
//!
//! A process that can write the list can have a good MAC made for it, by enrolling in a repository that knows of no
//! passkey. So the record goes before the list: a key on record stays what it is, a passkey is added beside known
//! ones only if one of them has signed for it, and is revoked because of the list only if the list says so. A list
//! that says otherwise cannot be used.

use std::collections::BTreeMap;

use super::passkeys::on_record;
use provost_auth::passkeys::{ListChange, ListError, ListedPasskey, OLD_COPY, PasskeyList};
use provost_domain::{Passkey, Passkeys, SignedWord};
use provost_passkey::{Assertion, PublicKey, Transcript, Word, bytes_of, holds};
use serde::Deserialize as _;

/// One step that is missing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// All were given up, as often as this; whether that wait is still on.
    Reset(u64, bool),
    /// A passkey is to be put on record, with what was signed for it.
    Add(Box<ListedPasskey>, Option<Box<SignedWord>>),
    /// A passkey is to be revoked here.
    Revoke(Box<str>, Option<Box<SignedWord>>),
    /// Passkeys that were revoked here are to be taken out of the list.
    TakeOut(Vec<String>),
    /// The list is to be emptied, because all were given up here.
    Empty,
}

/// The steps that are missing, in order.
///
/// # Errors
/// Why the list cannot be used.
pub(super) fn steps(list: &PasskeyList, known: &Passkeys) -> Result<Vec<Step>, ListError> {
    if list.of_root { Ok(of_roots(list, known)) } else { of_users(list, known) }
}

/// Root's list alone says which passkeys count.
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
        // All were given up here, and the list could not be written then.
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

/// What was signed for a new passkey, where known ones would have to sign for it.
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

/// What is needed of a passkey to check what it has signed.
struct Trusted {
    rp_id: String,
    key: Option<PublicKey>,
}

impl Trusted {
    fn of(it: &Passkey) -> Self {
        Self { rp_id: it.rp_id.to_string(), key: PublicKey::deserialize(&it.key.value()).ok() }
    }
}

/// What was signed by one of these passkeys, at any daemon of the user. The counter is the other daemon's to look at.
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
