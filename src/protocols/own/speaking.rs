//! The messages that a person sends to agents by signature, and answers to their questions.

use std::collections::BTreeSet;

use hyper::StatusCode;

use super::Own;
use super::handle::{Answered, Call, Handles};
use super::map::inbox as words;
use super::map::{self, OwnError};
use provost_api::wire::MESSAGED_AT_ONCE_MAX;
use provost_api::{endpoints, wire};
use provost_base::{AgentId, Ticket, visible_name};
use provost_domain::command::LeaveQueue;
use provost_domain::post::{Post, slug};
use provost_domain::view::OpenQuestions;
use provost_domain::{Principal, Refusal, Scope};

/// Makes a message from the person to an agent.
fn message(to: &str, text: &str) -> wire::SendMessage {
    wire::SendMessage { kind: "message".into(), to: Some(to.to_owned()), text: text.to_owned(), re: None }
}

/// Checks that the message can be sent to each of its agents, before a passkey signs.
///
/// # Errors
/// No agent, too many, a repeated name, an invalid name, or a text that is empty or too long.
pub(super) fn check(it: &wire::MessageAgents) -> Answered<()> {
    if it.to.is_empty() || it.to.len() > MESSAGED_AT_ONCE_MAX {
        return Err(OwnError::invalid(format!("to: name 1 to {MESSAGED_AT_ONCE_MAX} agents")));
    }
    let each: BTreeSet<&str> = it.to.iter().map(|it| it.trim()).collect();
    if each.len() < it.to.len() {
        return Err(OwnError::invalid("to: each agent is named once"));
    }
    let me = map::agent("user", "from")?;
    it.to.iter().try_for_each(|to| words::post(me.clone(), message(to, &it.text)).map(drop))
}

impl Own {
    /// Sends the message to each of these agents; returns a sentence about the outcome.
    ///
    /// # Errors
    /// The refusal for one of them; the agents before it have the message, and the error says so.
    pub(super) async fn message_agents(&self, who: &Principal, it: wire::MessageAgents) -> Answered<String> {
        let mut sent: Vec<String> = Vec::new();
        for to in &it.to {
            let post = words::post(who.agent().clone(), message(to, &it.text))?;
            let name = visible_name(&words::recipient(&post), 80);
            if let Err(refusal) = self.0.provost.publish(who, post).await {
                let fault = map::fault(refusal);
                return Err(match sent.is_empty() {
                    true => fault,
                    false => fault.hint(format!("{} have it already", sent.join(", "))),
                });
            }
            sent.push(name);
        }
        Ok(format!("Sent to {}.", sent.join(" and ")))
    }

    /// Answers a question: for an agent that reads answers, and for one that only knows feedback.
    ///
    /// # Errors
    /// A question that no longer waits, a text that is empty or too long, and the refusals of the core.
    pub(super) async fn answer_question(
        &self,
        who: &Principal,
        it: wire::AnswerQuestion,
    ) -> Answered<String> {
        let open = self.0.provost.view(OpenQuestions).await.map_err(map::fault)?;
        let question = open.iter().find(|one| one.n.0 == it.question).ok_or_else(|| {
            let message = format!("question {} does not wait: it was answered, or never was", it.question);
            OwnError::new(StatusCode::NOT_FOUND, "question_not_found", message)
                .hint("`provost question answer` lists those that wait")
        })?;
        let agent: AgentId = map::agent(slug(question.agent.as_str()).as_str(), "agent")?;
        let re = Some(question.text.to_string());
        let feedback = wire::SendMessage { re, ..message(agent.as_str(), &it.text) };
        let answer = wire::SendMessage { kind: "answer".into(), ..feedback.clone() };
        let answer: Post = words::post(who.agent().clone(), answer)?;
        let feedback = words::post(who.agent().clone(), feedback)?;
        self.0.provost.publish(who, answer).await.map_err(map::fault)?;
        self.0.provost.publish(who, feedback).await.map_err(map::fault)?;
        Ok(format!("{} has the answer.", visible_name(agent.as_str(), 80)))
    }
}

impl Handles<endpoints::EndWait> for Own {
    async fn handle(&self, call: &Call, body: wire::EndWait) -> Answered<wire::Done> {
        if !call.who.operates() {
            return Err(map::fault(Refusal::OutOfScope { needs: Scope::Operate }));
        }
        let waiting = self.0.provost.lock_waiters().await.map_err(map::fault)?;
        let waiter = waiting.iter().find(|it| it.ticket.0 == body.ticket).ok_or_else(|| {
            let message =
                format!("no agent waits at place {}: it has what it waited for, or has gone", body.ticket);
            OwnError::new(StatusCode::NOT_FOUND, "wait_not_found", message)
                .hint("`provost wait list` lists who waits")
        })?;
        let message = format!(
            "{} waits no longer for {}.",
            visible_name(waiter.agent.as_str(), 80),
            visible_name(&waiter.at.to_string(), 200)
        );
        self.submit(&call.who, LeaveQueue { ticket: Ticket(body.ticket) }).await?;
        Ok(wire::Done { message })
    }
}
