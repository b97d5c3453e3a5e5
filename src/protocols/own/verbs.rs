//! The verbs other than answers that a passkey may sign: their arguments, and how they are carried out.
//!
//! The word is recorded first, with its arguments and its signature, so that it counts once; then the verb's usual
//! handler submits it as the person who has signed.

use hyper::StatusCode;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Own;
use super::handle::{Answered, Call, Handles};
use super::map::{self, OwnError};
use super::ties::Tied;
use super::{forced, outcome, push, speaking};
use provost_api::{endpoints, wire};
use provost_auth::role;
use provost_base::limits::{SIGNED_NOTE_BYTES_MAX, SIGNED_VERB_BYTES_MAX};
use provost_base::{Json, visible_name};
use provost_domain::SignedWord;
use provost_domain::command::SayWord;
use provost_passkey::Asserted;

/// A verb with its arguments.
pub(super) struct Said {
    verb: SignedVerb,
    /// The arguments as canonical JSON; a passkey signs their digest.
    pub(super) arguments: Json,
}

/// The verbs that a passkey may sign.
enum SignedVerb {
    CancelTask(wire::Cancel),
    SayToTask(wire::SayToTask),
    Unlock(wire::Unlock),
    RevokeTokens(wire::RevokeTokens),
    SwitchWorker(wire::SwitchWorker),
    EndWebSession(wire::EndWebSession),
    SubscribePush(wire::SubscribePush),
    RemovePush(wire::RemovePush),
    ApplyTask(wire::OfTask),
    Undo(wire::Undo),
    DiscardTask(wire::Discard),
    EndWait(wire::EndWait),
    Delegate(Box<wire::Delegate>, wire::RulesSaid),
    MessageAgents(wire::MessageAgents),
    AnswerQuestion(wire::AnswerQuestion),
    CancelTasks(wire::CancelTasks),
    ReleaseClaim(wire::ReleaseClaim),
    UpdateIntent(wire::UpdateIntent),
    ReleaseAgent(wire::ReleaseAgent),
}

/// The error that lists the verbs, for a request with another one.
const SIGNED: &str = "verb: a passkey signs cancel-task, say-to-task, unlock, revoke-tokens, switch-worker, end-web-session, \
    subscribe-push, remove-push, apply-task, undo, discard-task, end-wait, delegate, message-agents, answer-question, cancel-tasks, \
    release-claim, update-intent and release-agent";

fn read<T: DeserializeOwned>(arguments: &Value) -> Answered<T> {
    T::deserialize(arguments).map_err(|err| OwnError::invalid(format!("arguments: {err}")))
}

impl Said {
    /// Reads a verb and its arguments.
    ///
    /// # Errors
    /// A verb that no passkey signs, arguments of another form, and the release of another agent's lock without a reason.
    // tidy: long because it is one table of verbs
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
                if unlock.force {
                    has_reason(arguments, "the lock is taken away")?;
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
            "apply-task" => {
                let it: wire::OfTask = read(arguments)?;
                is_seen(it.seen.as_deref())?;
                SignedVerb::ApplyTask(it)
            }
            "undo" => {
                let it: wire::Undo = read(arguments)?;
                is_seen(it.seen.as_deref())?;
                SignedVerb::Undo(it)
            }
            "discard-task" => SignedVerb::DiscardTask(read(arguments)?),
            "end-wait" => {
                has_reason(arguments, "the agent is to wait no longer")?;
                SignedVerb::EndWait(read(arguments)?)
            }
            "delegate" => {
                let it: wire::Delegate = read(arguments)?;
                let rules = arguments.get("rules").ok_or_else(|| {
                    OwnError::invalid(
                        "rules: name the rules' answer that was shown: digest, decision and rule",
                    )
                })?;
                // An invalid request is refused before a passkey signs.
                map::delegate(it.clone())?;
                SignedVerb::Delegate(Box::new(it), read(rules)?)
            }
            "message-agents" => {
                let it: wire::MessageAgents = read(arguments)?;
                speaking::check(&it)?;
                SignedVerb::MessageAgents(it)
            }
            "answer-question" => SignedVerb::AnswerQuestion(read(arguments)?),
            "cancel-tasks" => {
                let it: wire::CancelTasks = read(arguments)?;
                forced::check(&it)?;
                SignedVerb::CancelTasks(it)
            }
            "release-claim" => {
                let it: wire::ReleaseClaim = read(arguments)?;
                forced::is_forced(it.force)?;
                has_reason(arguments, "the file is taken away")?;
                SignedVerb::ReleaseClaim(it)
            }
            "update-intent" => {
                let it: wire::UpdateIntent = read(arguments)?;
                forced::is_forced(it.force)?;
                has_reason(arguments, "the intent is ended")?;
                SignedVerb::UpdateIntent(it)
            }
            "release-agent" => {
                has_reason(arguments, "all of it is taken away")?;
                SignedVerb::ReleaseAgent(read(arguments)?)
            }
            _ => return Err(OwnError::invalid(SIGNED)),
        };
        Ok(Self { verb, arguments: text })
    }
}

/// Checks that the person gives a reason.
fn has_reason(arguments: &Value, what: &str) -> Answered<()> {
    let reason = arguments.get("reason").and_then(Value::as_str).unwrap_or_default().trim();
    match reason.is_empty() || reason.len() > SIGNED_NOTE_BYTES_MAX {
        true => {
            Err(OwnError::invalid(format!("reason: say in 1 to {SIGNED_NOTE_BYTES_MAX} bytes why {what}")))
        }
        false => Ok(()),
    }
}

/// Checks that the person has seen the planned content.
fn is_seen(seen: Option<&str>) -> Answered<()> {
    let missing = || OwnError::invalid("seen: a passkey signs for what was shown; `view-apply` shows it");
    seen.filter(|it| !it.is_empty()).map(drop).ok_or_else(missing)
}

impl Own {
    /// Records a signed verb, and carries it out as the person who has signed it.
    ///
    /// # Errors
    /// The core's refusals about the passkey, and the errors of the verb's own handler.
    pub(super) async fn carry_out_signed(
        &self,
        said: Said,
        verb: &str,
        asserted: &Asserted,
        signed: Box<SignedWord>,
    ) -> Answered<wire::WordDone> {
        let who = role::passkey_verb(self.0.user.clone(), asserted);
        // On record before it is carried out: the journal has the signature, even if the verb fails.
        self.submit(&who, SayWord { verb: verb.into(), arguments: said.arguments, signed }).await?;
        let call = Call { who, tied: Tied::of_session(None), peer: None, process: None };
        let mut done = wire::WordDone { verb: Some(verb.to_owned()), ..wire::WordDone::default() };
        match said.verb {
            SignedVerb::ApplyTask(it) => {
                outcome::written(&mut done, Handles::<endpoints::ApplyTask>::handle(self, &call, it).await?);
            }
            SignedVerb::Undo(it) => {
                outcome::written(&mut done, Handles::<endpoints::Undo>::handle(self, &call, it).await?);
            }
            SignedVerb::DiscardTask(it) => {
                let it = Handles::<endpoints::DiscardTask>::handle(self, &call, it).await?;
                done.said = Some(outcome::discarded(&it));
            }
            SignedVerb::EndWait(it) => {
                done.said = Some(Handles::<endpoints::EndWait>::handle(self, &call, it).await?.message);
            }
            SignedVerb::Delegate(it, said) => {
                self.rules_still_say(&it, &said).await?;
                let it = Handles::<endpoints::Delegate>::handle(self, &call, *it).await?;
                outcome::delegated(&mut done, it);
            }
            SignedVerb::MessageAgents(it) => done.said = Some(self.message_agents(&call.who, it).await?),
            SignedVerb::AnswerQuestion(it) => done.said = Some(self.answer_question(&call.who, it).await?),
            SignedVerb::CancelTasks(it) => done.said = Some(self.cancel_tasks(&call, it).await),
            SignedVerb::ReleaseClaim(it) => {
                Handles::<endpoints::ReleaseClaim>::handle(self, &call, it).await.map(drop)?;
            }
            SignedVerb::UpdateIntent(it) => {
                Handles::<endpoints::UpdateIntent>::handle(self, &call, it).await.map(drop)?;
            }
            SignedVerb::ReleaseAgent(it) => {
                let agent = visible_name(&it.agent, 80);
                let it = Handles::<endpoints::ReleaseAgent>::handle(self, &call, it).await?;
                done.said = Some(format!("Taken from {agent}: {}.", it.in_words()));
            }
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
        Ok(done)
    }

    /// Checks that the rules still decide about a delegation as the person was shown.
    async fn rules_still_say(&self, it: &wire::Delegate, said: &wire::RulesSaid) -> Answered<()> {
        let query = wire::RulesQuery {
            worker: Some(it.worker.clone()),
            dir: it.working_dir.clone(),
            by_passkey: true,
            ..wire::RulesQuery::default()
        };
        let rules = self.tell_rules(query).await?;
        let now = rules.outcome.map(|now| wire::RulesSaid {
            digest: rules.digest,
            decision: now.decision,
            rule: now.rule,
        });
        match now.as_ref() == Some(said) {
            true => Ok(()),
            false => {
                let message = "the rules say something else now than what was shown; nothing was handed out";
                Err(OwnError::new(StatusCode::CONFLICT, "rules_changed", message).hint("ask them again"))
            }
        }
    }
}
