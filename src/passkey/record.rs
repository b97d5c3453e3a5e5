//! Checks passkeys' signatures again, from the events of a journal alone.
//!
//! Each event that a passkey has caused keeps the text that was signed, the authenticator's and the browser's data,
//! and the signature. The events by which passkeys were added hold the public keys. So a check needs neither the
//! daemon nor its state of that time; `scripts/verify-signed-answers` does the same with other code.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Assertion, PublicKey, Transcript, Word, bytes_of, holds};
use provost_base::{Digest, Json};

/// The source of a passkey of root's list, which needs no vouch.
const OF_ROOT: &str = "root";

/// The counts of a check.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Checked {
    /// Words whose signature has been checked again.
    pub signed: u64,
    /// Words whose passkey is in a part of the journal that an earlier version pruned.
    pub without_key: u64,
    /// Passkeys that joined known ones without a signature of one, as an earlier version took them from the list.
    pub unvouched: u64,
}

#[derive(Deserialize)]
struct Signed {
    credential: String,
    transcript: String,
    digest: Digest,
    authenticator_data: String,
    client_data: String,
    signature: String,
}

#[derive(Deserialize)]
struct Passkey {
    id: String,
    name: String,
    rp_id: String,
    key: PublicKey,
    source: String,
}

/// The journal's record of passkeys and of signed words, built event by event.
#[derive(Default)]
pub struct Record {
    keys: BTreeMap<String, Passkey>,
    asked: BTreeMap<u64, Value>,
    seen: BTreeSet<Digest>,
    daemon: Option<String>,
    pruned: bool,
    checked: Checked,
}

impl Record {
    /// Begins the record for the daemon of this id; only additions and revocations of passkeys may be signed for another one.
    pub fn of_daemon(daemon: &str) -> Self {
        Self { daemon: Some(daemon.to_owned()), ..Self::default() }
    }

    /// Checks whether any passkey counts.
    pub fn has_keys(&self) -> bool {
        !self.keys.is_empty()
    }

    /// Returns the counts so far.
    pub fn checked(&self) -> Checked {
        self.checked
    }

    /// Adds the next event: its kind, and its body if that was not pruned.
    ///
    /// # Errors
    /// The reason why the event's signature does not hold.
    pub fn take(&mut self, kind: &str, body: Option<&str>) -> Result<(), String> {
        if !matches!(
            kind,
            "passkey_added"
                | "passkey_revoked"
                | "passkeys_reset"
                | "approval_asked"
                | "approval_answered"
                | "word_said"
        ) {
            return Ok(());
        }
        let Some(body) = body else {
            self.pruned |= kind == "passkey_added";
            return Ok(());
        };
        let body: Value = serde_json::from_str(body).map_err(|err| err.to_string())?;
        let it = &body["kind"][kind];
        match kind {
            "passkey_added" => self.added(it),
            "passkey_revoked" => self.revoked(it),
            "word_said" => self.said(it),
            "passkeys_reset" => {
                self.keys.clear();
                Ok(())
            }
            "approval_asked" => {
                if let Some(approval) = it["approval"].as_u64() {
                    self.asked.insert(approval, it["shown"].clone());
                }
                Ok(())
            }
            _ => self.answered(it),
        }
    }

    fn added(&mut self, it: &Value) -> Result<(), String> {
        let passkey: Passkey = read(&it["passkey"])?;
        let value = json!({
            "id": passkey.id, "key": passkey.key, "name": passkey.name, "rp_id": passkey.rp_id,
        });
        let enrolled = Digest::of(Json::from_value(&value).as_str().as_bytes());
        if it["vouched"].is_null() {
            let is_beside = !self.keys.is_empty() && passkey.source != OF_ROOT;
            self.checked.unvouched += u64::from(is_beside);
        } else {
            match self.word(&it["vouched"])? {
                Some(Word::Enrol(word)) if word.enrol == enrolled => {}
                None => {}
                _ => return Err("its signature covers a different action".into()),
            }
        }
        self.keys.insert(passkey.id.clone(), passkey);
        Ok(())
    }

    fn revoked(&mut self, it: &Value) -> Result<(), String> {
        let id = it["id"].as_str().unwrap_or_default();
        if !it["signed"].is_null() {
            match self.word(&it["signed"])? {
                Some(Word::Revoke(word)) if word.revoke == id => {}
                None => {}
                _ => return Err("its signature covers a different action".into()),
            }
        }
        self.keys.remove(id);
        Ok(())
    }

    fn said(&mut self, it: &Value) -> Result<(), String> {
        let arguments = Digest::of(Json::from_value(&it["arguments"]).as_str().as_bytes());
        match self.word(&it["signed"])? {
            Some(Word::Verb(word)) if it["verb"] == word.verb && word.arguments == arguments => Ok(()),
            None => Ok(()),
            _ => Err("another verb was signed".into()),
        }
    }

    fn answered(&mut self, it: &Value) -> Result<(), String> {
        let shown = it["approval"].as_u64().and_then(|approval| self.asked.remove(&approval));
        if it["proof"] != "passkey" {
            return if it["signed"].is_null() {
                Ok(())
            } else {
                Err("it has a signature, and another proof".into())
            };
        }
        if it["signed"].is_null() {
            return Err("its proof is a passkey, and it has no signature".into());
        }
        let word = match self.word(&it["signed"])? {
            Some(Word::Answer(word)) => word,
            None => return Ok(()),
            _ => return Err("the signed text is not an answer to an approval".into()),
        };
        if it["approval"] != word.approval || it["verdict"] != if word.grant { "granted" } else { "denied" } {
            return Err("another answer was signed".into());
        }
        if shown.is_some_and(|shown| shown != word.shown.to_string()) {
            return Err("the answer to another request was signed".into());
        }
        Ok(())
    }

    /// Checks one signature and returns its word, or `None` if the passkey is no longer on record.
    fn word(&mut self, it: &Value) -> Result<Option<Word>, String> {
        let it: Signed = read(it)?;
        let transcript = Transcript::read(&it.transcript).map_err(|why| why.to_string())?;
        if transcript.digest() != it.digest {
            return Err("its digest is not that of its text".into());
        }
        if !self.seen.insert(it.digest) {
            return Err("the same signature has been used before".into());
        }
        // The list of passkeys is the person's, and can change at any daemon; every other word is for this one.
        let is_ours = !matches!(transcript.word, Word::Enrol(_) | Word::Revoke(_));
        if is_ours && self.daemon.get_or_insert_with(|| transcript.daemon.clone()) != &transcript.daemon {
            return Err("it was signed for another daemon".into());
        }
        let Some(passkey) = self.keys.get(&it.credential) else {
            if self.pruned {
                self.checked.without_key += 1;
                return Ok(None);
            }
            return Err("its passkey was not on record at that time".into());
        };
        let bytes = |text, member| bytes_of(text, member).map_err(|why| why.to_string());
        let (data, client) =
            (bytes(&it.authenticator_data, "authenticator_data")?, bytes(&it.client_data, "client_data")?);
        let signature = bytes(&it.signature, "signature")?;
        let assertion = Assertion { authenticator_data: &data, client_data: &client, signature: &signature };
        holds(&passkey.rp_id, it.digest.as_bytes(), &passkey.key, &assertion)
            .map_err(|why| why.to_string())?;
        self.checked.signed += 1;
        Ok(Some(transcript.word))
    }
}

fn read<T: for<'a> Deserialize<'a>>(it: &Value) -> Result<T, String> {
    T::deserialize(it).map_err(|err| err.to_string())
}
