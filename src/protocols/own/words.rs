//! The words that passkeys sign: challenges for them, and their effects.
//!
//! The sender of a signature does not matter: the signature is the proof. So an agent may pass one on, and gains nothing by it.

use super::Own;
use super::handle::{Answered, Call, Handles};
use super::hub::Asker;
use super::map::{self, OwnError};
use super::pending::{Kind, NoncePurpose, random};
use super::verbs::Said;
use hyper::StatusCode;
use provost_api::{endpoints, wire};
use provost_auth::passkeys::PasskeyList;
use provost_auth::role;
use provost_base::limits::{ATTESTATION_BYTES_MAX, CHALLENGE_MS_MAX, SIGNED_NOTE_BYTES_MAX};
use provost_base::{ApprovalId, Digest, Json, Timestamp, visible};
use provost_domain::command::{AnswerApproval, Command, Record, RevokePasskey};
use provost_domain::view::{AllPasskeys, WaitingOne};
use provost_domain::{Parked, Principal, Refusal, SignedWord, Verdict};
use provost_passkey::{
    AnswerWord, Asserted, Assertion, Party, PublicKey, Refused, RevokeWord, StoredCredential, Transcript,
    VerbWord, Word, asserted, bytes_of, text_of,
};
use provost_service::Touching;
use provost_view::{Shown, facts, signed, words};
use serde::Deserialize as _;
use serde_json::Value;

/// The scope of a signed answer.
const ONCE: &str = "once";

/// Returns the text that a page shows of an approval, and that a passkey signs: `view` makes the same for every reader. It has
/// no hidden characters, since a person signs what can be seen. A person who signs has a passkey enrolled.
pub(super) fn view_of(parked: &Parked) -> Json {
    let approval = map::approval(parked, true);
    text_of_view(signed(&approval, facts(&approval, str::to_owned), words(&approval)))
}

/// Encodes a view as the text that a page draws and a passkey signs.
pub(super) fn text_of_view(shown: Shown) -> Json {
    let value = serde_json::to_value(shown).expect("our own types always encode");
    Json::from_value(&all_visible(value))
}

fn all_visible(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(visible(&text)),
        Value::Array(items) => items.into_iter().map(all_visible).collect(),
        Value::Object(members) => {
            members.into_iter().map(|(name, it)| (visible(&name), all_visible(it))).collect()
        }
        other => other,
    }
}

/// An assertion, with its decoded bytes.
pub(super) struct Brought {
    pub(super) credential: String,
    client_data: Vec<u8>,
    authenticator_data: Vec<u8>,
    signature: Vec<u8>,
}

impl Brought {
    pub(super) fn read(it: wire::Assertion) -> Answered<Self> {
        Ok(Self {
            client_data: bytes(&it.client_data, "client_data")?,
            authenticator_data: bytes(&it.authenticator_data, "authenticator_data")?,
            signature: bytes(&it.signature, "signature")?,
            credential: it.credential,
        })
    }

    /// Checks it against the challenge of a transcript; the credential's last counter is `counter`.
    pub(super) fn check(
        &self,
        party: &Party,
        transcript: &Transcript,
        (key, backup_eligible, counter): (&PublicKey, bool, u32),
    ) -> Result<Asserted, Refused> {
        let it = Assertion {
            authenticator_data: &self.authenticator_data,
            client_data: &self.client_data,
            signature: &self.signature,
        };
        let known = StoredCredential { key, backup_eligible, counter };
        asserted(party, transcript.digest().as_bytes(), &known, &it)
    }

    /// Returns the page that has asked for it, according to the browser. Only reliable once the signature was checked.
    pub(super) fn origin(&self) -> Option<String> {
        let data: Value = serde_json::from_slice(&self.client_data).ok()?;
        data.get("origin")?.as_str().map(str::to_owned)
    }

    /// Returns the form in which the journal keeps it.
    pub(super) fn for_log(&self, transcript: &Transcript, asserted: &Asserted) -> Box<SignedWord> {
        Box::new(SignedWord {
            credential: self.credential.as_str().into(),
            transcript: transcript.as_str().into(),
            digest: transcript.digest(),
            authenticator_data: text_of(&self.authenticator_data).into(),
            client_data: text_of(&self.client_data).into(),
            signature: text_of(&self.signature).into(),
            counter: asserted.counter,
        })
    }
}

/// Decodes a member; no member is longer than an attestation object.
pub(super) fn bytes(text: &str, member: &'static str) -> Answered<Vec<u8>> {
    if text.len() > ATTESTATION_BYTES_MAX * 2 {
        return Err(refused(Refused::TooLong(member)));
    }
    bytes_of(text, member).map_err(refused)
}

/// Returns the error for a failed check.
pub(super) fn refused(why: Refused) -> OwnError {
    let (status, word) = match why {
        Refused::Encoding(_) | Refused::TooLong(_) | Refused::ClientData => {
            (StatusCode::BAD_REQUEST, "invalid")
        }
        _ => (StatusCode::FORBIDDEN, "passkey_refused"),
    };
    OwnError::new(status, word, format!("the passkey's answer is refused: {why}"))
        .hint("try again with a fresh challenge, or answer in a terminal where the rule lets a person do so")
}

impl Own {
    /// Returns the principal of a signed word.
    pub(super) fn signer(&self, asserted: &Asserted) -> Principal {
        role::passkey(self.0.user.clone(), asserted)
    }

    /// Makes a challenge over a word, which waits for its signature.
    pub(super) async fn challenge(
        &self,
        word: Word,
        list: &PasskeyList,
        asked: impl FnOnce(Transcript) -> NoncePurpose,
    ) -> Answered<wire::Challenge> {
        let daemon = self.0.provost.view(AllPasskeys).await.map_err(map::fault)?.passkeys.daemon().to_owned();
        let nonce = random()?;
        let transcript = Transcript::new(&daemon, nonce, word);
        let challenge = wire::Challenge {
            nonce: text_of(&nonce),
            transcript: transcript.as_str().to_owned(),
            challenge: text_of(transcript.digest().as_bytes()),
            good_ms: CHALLENGE_MS_MAX,
            allow: list.passkeys.iter().map(super::passkeys::allowed).collect(),
        };
        self.0.pending.put(nonce, asked(transcript));
        Ok(challenge)
    }

    /// Returns the approval that waits under this number.
    async fn waiting(&self, approval: u64) -> Answered<std::sync::Arc<Parked>> {
        let approval = ApprovalId(approval);
        let parked = self.0.provost.view(WaitingOne(approval)).await.map_err(map::fault)?;
        parked.ok_or_else(|| map::fault(Refusal::ApprovalNotFound(approval)))
    }

    /// Checks the signature of a known passkey over a transcript. A counter that went back is recorded in the journal.
    pub(super) async fn known_word(
        &self,
        asker: &Asker,
        list: &PasskeyList,
        transcript: &Transcript,
        it: &Brought,
    ) -> Answered<Asserted> {
        let listed = list.get(&it.credential).ok_or_else(|| {
            map::fault(Refusal::PasskeyRefused {
                why: "this passkey is not in the list of passkeys that count".into(),
            })
        })?;
        // The recorded key counts, not that of the list, which is a file of the user.
        let all = self.0.provost.view(AllPasskeys).await.map_err(map::fault)?.passkeys;
        let on_record = all.get(&listed.id).filter(|it| it.revoked_at.is_none()).ok_or_else(|| {
            map::fault(Refusal::PasskeyRefused { why: "this passkey is not on record here".into() })
        })?;
        let passkey = &on_record.passkey;
        let key = PublicKey::deserialize(&passkey.key.value()).map_err(|_| refused(Refused::KeyKind))?;
        let known = (&key, passkey.backup_eligible, on_record.counter);
        match it.check(&asker.party(&passkey.rp_id)?, transcript, known) {
            Ok(asserted) => Ok(asserted),
            Err(why) => {
                if why == Refused::Counter {
                    tracing::warn!(
                        passkey = listed.name,
                        "a passkey's counter went back: a copy of it may be in use"
                    );
                    let details = Json::from_value(&serde_json::json!({ "credential": listed.id }));
                    let subject = listed.name.as_str().into();
                    let record = Record { what: "passkey.counter".into(), subject, details };
                    self.submit(self.0.provost.system(), record).await?;
                }
                Err(refused(why))
            }
        }
    }
}

impl Handles<endpoints::ApprovalView> for Own {
    async fn handle(&self, _call: &Call, query: wire::ApprovalQuery) -> Answered<wire::ApprovalView> {
        let parked = self.waiting(query.id).await?;
        let view = view_of(&parked);
        let view_digest = Digest::of(view.as_str().as_bytes()).to_string();
        let touches = match &parked.command {
            Command::ApplyFiles(verb) => {
                self.0.provost.touches(parked.who.agent(), &verb.diff).await.map_err(map::fault)?
            }
            _ => Vec::new(),
        };
        let touch = |it: Touching| wire::Touch {
            at: it.at.into(),
            holder: it.holder.map(|it| it.to_string()),
            how: it.how.map(Into::into),
            doing: it.doing.map(Into::into),
        };
        Ok(wire::ApprovalView {
            touches: touches.into_iter().map(touch).collect(),
            view: view.as_str().to_owned(),
            view_digest,
            shown: parked.shown.to_string(),
        })
    }
}

impl Handles<endpoints::WordChallenge> for Own {
    async fn handle(&self, call: &Call, body: wire::WordChallenge) -> Answered<wire::Challenge> {
        let asker = self.asker(call).await;
        self.0.pending.count(asker.process, Kind::Challenge)?;
        let list = self.synced_list().await?;
        let word = match body {
            wire::WordChallenge {
                approval: Some(approval),
                grant: Some(grant),
                note,
                view,
                revoke: None,
                verb: None,
                arguments: None,
            } => {
                let note = note.unwrap_or_default();
                if note.len() > SIGNED_NOTE_BYTES_MAX {
                    return Err(map::fault(Refusal::too_long(
                        "a note that is signed",
                        SIGNED_NOTE_BYTES_MAX,
                        "bytes",
                    )));
                }
                let parked = self.waiting(approval).await?;
                let shown = Digest::of(view_of(&parked).as_str().as_bytes());
                // What the page has shown is what is signed. If the request has changed since, the person has to look again.
                if view.is_some_and(|seen| seen != shown.to_string()) {
                    return Err(map::fault(Refusal::ApprovalChanged));
                }
                let (expires, scope) = (parked.expires_at.rfc3339(), ONCE.to_owned());
                Word::Answer(AnswerWord {
                    approval,
                    shown: parked.shown,
                    view: shown,
                    expires,
                    grant,
                    note,
                    scope,
                })
            }
            wire::WordChallenge {
                verb: Some(verb),
                arguments: Some(arguments),
                ref approval,
                ref revoke,
                ..
            } if approval.is_none() && revoke.is_none() => {
                let said = Said::read(&verb, &arguments)?;
                let arguments = Digest::of(said.arguments.as_str().as_bytes());
                let word = Word::Verb(VerbWord { verb, arguments });
                return self.challenge(word, &list, |transcript| NoncePurpose::Verb(transcript, said)).await;
            }
            wire::WordChallenge {
                grant: None,
                note: None,
                view: None,
                revoke: Some(id),
                approval: None,
                ..
            } => {
                let revoke = list
                    .get(&id)
                    .ok_or_else(|| OwnError::invalid("revoke: there is no such passkey"))?
                    .id
                    .clone();
                Word::Revoke(RevokeWord { revoke })
            }
            _ => return Err(OwnError::invalid("say approval with grant, or revoke, or verb with arguments")),
        };
        self.challenge(word, &list, NoncePurpose::Word).await
    }
}

impl Handles<endpoints::SignedWord> for Own {
    async fn handle(&self, call: &Call, body: wire::SignedWord) -> Answered<wire::WordDone> {
        let asker = self.asker(call).await;
        self.0.pending.count(asker.process, Kind::Word)?;
        // The nonce comes first: a failed attempt uses it up as well.
        let (transcript, said) = match self.0.pending.take(&bytes(&body.nonce, "nonce")?)? {
            NoncePurpose::Word(transcript) => (transcript, None),
            NoncePurpose::Verb(transcript, said) => (transcript, Some(said)),
            NoncePurpose::Create(..) | NoncePurpose::Confirm(..) | NoncePurpose::Session(..) => {
                return Err(refused(Refused::Challenge));
            }
        };
        let brought = Brought::read(body.assertion)?;
        let list = self.synced_list().await?;
        let asserted = self.known_word(&asker, &list, &transcript, &brought).await?;
        let signed = brought.for_log(&transcript, &asserted);
        match &transcript.word {
            Word::Answer(word) => self.answer_signed(word, &asserted, signed).await,
            Word::Revoke(_) if list.of_root => Err(self.only_root()),
            Word::Revoke(word) => {
                let verb = RevokePasskey { id: word.revoke.as_str().into(), signed: Some(signed) };
                self.revoke(&self.signer(&asserted), verb).await?;
                Ok(wire::WordDone { revoked: Some(word.revoke.clone()), ..wire::WordDone::default() })
            }
            Word::Verb(word) => match said {
                Some(said) => self.carry_out_signed(said, &word.verb, &asserted, signed).await,
                None => Err(refused(Refused::Challenge)),
            },
            Word::Enrol(_) => Err(refused(Refused::Challenge)),
        }
    }
}

impl Own {
    /// Answers as the passkey has signed, if the waiting command is still the one that was signed.
    async fn answer_signed(
        &self,
        word: &AnswerWord,
        asserted: &Asserted,
        signed: Box<SignedWord>,
    ) -> Answered<wire::WordDone> {
        let parked = self.waiting(word.approval).await?;
        if parked.shown != word.shown || Digest::of(view_of(&parked).as_str().as_bytes()) != word.view {
            return Err(map::fault(Refusal::ApprovalChanged));
        }
        let verb = AnswerApproval {
            approval: parked.id,
            verdict: if word.grant { Verdict::Granted } else { Verdict::Denied },
            note: Some(word.note.as_str()).filter(|it| !it.is_empty()).map(Into::into),
            shown: Some(word.shown),
            signed: Some(signed),
        };
        let done = self.submit_judged(&self.signer(asserted), verb).await?;
        Ok(wire::WordDone {
            approval: Some(word.approval),
            task: done.task.map(|it| it.to_string()),
            failed: done.failed.map(Into::into),
            ..wire::WordDone::default()
        })
    }

    /// Returns the daemon's time.
    pub(super) fn now(&self) -> Timestamp {
        self.0.provost.engine().now()
    }
}
