//! Verbs other than answers that a passkey may sign: what each is, and how it is carried out.
//!
//! The word is put on record first, with its arguments and its signature, so that it counts once; then the verb is submitted as the
//! person who has signed it, by the handler that it has for every caller.

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Own;
use super::handle::{Answered, Call, Handles};
use super::map::OwnError;
use super::push;
use super::ties::Tied;
use provost_api::{endpoints, wire};
use provost_auth::role;
use provost_base::Json;
use provost_base::limits::{SIGNED_NOTE_BYTES_MAX, SIGNED_VERB_BYTES_MAX};
use provost_domain::SignedWord;
use provost_domain::command::SayWord;
use provost_passkey::Asserted;

/// A verb with its arguments.
pub(super) struct Said {
    verb: SignedVerb,
    /// The arguments as canonical JSON; a passkey signs their digest.
    pub(super) arguments: Json,
}

/// What may be signed.
enum SignedVerb {
    CancelTask(wire::Cancel),
    SayToTask(wire::SayToTask),
    Unlock(wire::Unlock),
    RevokeTokens(wire::RevokeTokens),
    SwitchWorker(wire::SwitchWorker),
    EndWebSession(wire::EndWebSession),
    SubscribePush(wire::SubscribePush),
    RemovePush(wire::RemovePush),
}

fn read<T: DeserializeOwned>(arguments: &Value) -> Answered<T> {
    T::deserialize(arguments).map_err(|err| OwnError::invalid(format!("arguments: {err}")))
}

impl Said {
    /// Reads what is to be signed.
    ///
    /// # Errors
    /// A verb that no passkey signs, arguments that are not its own, and a lock of another that is released without a reason.
    pub(super) fn read(verb: &str, arguments: &Value) -> Answered<Self> {
        let text = Json::from_value(arguments);
        if text.as_str().len() > SIGNED_VERB_BYTES_MAX {
            return Err(OwnError::invalid(format!("arguments has more than {SIGNED_VERB_BYTES_MAX} bytes")));
        }
        let verb = match verb {
            "cancel-task" => SignedVerb::CancelTask(read(arguments)?),
            "say-to-task" => SignedVerb::SayToTask(read(arguments)?),
            "unlock" => {
                let unlock: wire::Unlock = read(arguments)?;
                let reason = arguments.get("reason").and_then(Value::as_str).unwrap_or_default().trim();
                if unlock.force && (reason.is_empty() || reason.len() > SIGNED_NOTE_BYTES_MAX) {
                    let why = format!(
                        "reason: say in 1 to {SIGNED_NOTE_BYTES_MAX} bytes why the lock is taken away"
                    );
                    return Err(OwnError::invalid(why));
                }
                SignedVerb::Unlock(unlock)
            }
            "revoke-tokens" => SignedVerb::RevokeTokens(read(arguments)?),
            "switch-worker" => SignedVerb::SwitchWorker(read(arguments)?),
            "end-web-session" => SignedVerb::EndWebSession(read(arguments)?),
            "subscribe-push" => {
                let it = read(arguments)?;
                push::check(&it)?;
                SignedVerb::SubscribePush(it)
            }
            "remove-push" => SignedVerb::RemovePush(read(arguments)?),
            _ => {
                let why = "verb: a passkey signs cancel-task, say-to-task, unlock, revoke-tokens, switch-worker, end-web-session, \
                    subscribe-push and remove-push";
                return Err(OwnError::invalid(why));
            }
        };
        Ok(Self { verb, arguments: text })
    }
}

impl Own {
    /// Puts a signed verb on record, and carries it out as the person who has signed it.
    ///
    /// # Errors
    /// What the core says of the passkey, and what the verb's own handler says.
    pub(super) async fn carry_out_signed(
        &self,
        said: Said,
        verb: &str,
        asserted: &Asserted,
        signed: Box<SignedWord>,
    ) -> Answered<wire::WordDone> {
        let who = role::passkey_verb(self.0.user.clone(), asserted);
        self.submit(&who, SayWord { verb: verb.into(), arguments: said.arguments, signed }).await?;
        let call = Call { who, tied: Tied::of_session(None), peer: None, process: None };
        match said.verb {
            SignedVerb::CancelTask(it) => {
                Handles::<endpoints::Cancel>::handle(self, &call, it).await.map(drop)?;
            }
            SignedVerb::SayToTask(it) => {
                Handles::<endpoints::SayToTask>::handle(self, &call, it).await.map(drop)?;
            }
            SignedVerb::Unlock(it) => {
                Handles::<endpoints::Unlock>::handle(self, &call, it).await.map(drop)?;
            }
            SignedVerb::RevokeTokens(it) => {
                Handles::<endpoints::RevokeTokens>::handle(self, &call, it).await.map(drop)?;
            }
            SignedVerb::SwitchWorker(it) => {
                Handles::<endpoints::SwitchWorker>::handle(self, &call, it).await.map(drop)?;
            }
            SignedVerb::EndWebSession(it) => {
                Handles::<endpoints::EndWebSession>::handle(self, &call, it).await.map(drop)?;
            }
            SignedVerb::SubscribePush(it) => self.subscribe_push(&call.who, it).await?,
            SignedVerb::RemovePush(it) => {
                Handles::<endpoints::RemovePush>::handle(self, &call, it).await.map(drop)?;
            }
        }
        Ok(wire::WordDone { verb: Some(verb.to_owned()), ..wire::WordDone::default() })
    }
}
