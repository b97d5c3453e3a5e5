//! One turn: the goal, what the agent does about it, and the end. ACP v1, "Prompt turn".

use std::collections::{HashMap, VecDeque};

use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::permissions::{Asked, Judge, Verdict};
use super::wire::{Answer, Incoming, Wire};
use super::{Errand, Session, Untold, untold};
use provost_base::limits::{ACP_CALLS_KNOWN_MAX, ACP_MODE_CHANGES_MAX, ACP_QUESTIONS_MAX};
use provost_base::{Ttl, acp};

/// The code for a request that its asker has taken back. ACP v1, "Cancellation".
const TAKEN_BACK: i64 = -32_800;

pub(super) struct Turn<'a> {
    pub(super) wire: &'a mut Wire,
    pub(super) errand: &'a Errand,
    pub(super) session: &'a Session,
    pub(super) judge: Option<Judge>,
}

/// The state of a turn that is under way.
struct Open {
    prompt: u64,
    /// Requests that are being judged, by their JSON-RPC ids in text.
    judged: JoinSet<(Asked, Verdict)>,
    waiting: HashMap<String, tokio::task::AbortHandle>,
    calls: Calls,
    mode_changes: usize,
}

impl Turn<'_> {
    /// Gives the goal, and returns when the turn has ended well. The agent's answer is in the run's output.
    ///
    /// # Errors
    /// Why it has not.
    pub(super) async fn carry_out(mut self) -> Result<(), Untold> {
        // What the agent has said of itself before is no part of its answer.
        self.wire.show(&json!({ "provost": "turn" }));
        let text = json!([{ "type": "text", "text": self.errand.goal }]);
        let prompt = json!({ "sessionId": self.session.id, "prompt": text });
        let prompt = self.wire.send_request("session/prompt", prompt).await?;
        let (judged, waiting) = (JoinSet::new(), HashMap::new());
        let mut open = Open { prompt, judged, waiting, calls: Calls::default(), mode_changes: 0 };
        loop {
            tokio::select! {
                biased;
                Some(done) = open.judged.join_next() => {
                    if let Ok((asked, verdict)) = done {
                        open.waiting.remove(&asked.id.to_string());
                        self.answer(&asked, &verdict).await?;
                    }
                }
                incoming = self.wire.next() => match incoming? {
                    Incoming::Answer(id, answer) if id == open.prompt => return self.ended(&answer),
                    // The answer to a change of mode; an update tells the mode.
                    Incoming::Answer(..) => {}
                    Incoming::Request { id, method, params } => self.request(&mut open, id, &method, &params).await?,
                    Incoming::Told { method, params } => self.told(&mut open, &method, params).await?,
                },
            }
        }
    }

    async fn request(
        &mut self,
        open: &mut Open,
        id: Value,
        method: &str,
        params: &Value,
    ) -> Result<(), Untold> {
        if method != "session/request_permission" {
            return self.wire.refuse(&id, method).await;
        }
        let known = params["toolCall"]["toolCallId"].as_str().and_then(|it| open.calls.get(it));
        let wait = self.errand.task.order.timeout;
        let asked = Asked::read(id, params, known, self.errand, wait.min(Ttl::minutes(24 * 60)));
        let refusal = if params["sessionId"] != self.session.id.as_str() {
            Some("it is about another session")
        } else if open.waiting.contains_key(&asked.id.to_string()) {
            Some("a request with the same id waits already")
        } else if open.waiting.len() >= ACP_QUESTIONS_MAX {
            Some("too many of its requests wait already")
        } else if !asked.can_be_allowed() {
            Some("it offers no way to allow it once")
        } else if self.judge.is_none() {
            Some("no rules can be asked here")
        } else {
            None
        };
        if let Some(why) = refusal {
            return self.answer(&asked, &Verdict::Denied(why.into())).await;
        }
        let Some(judge) = &self.judge else { return Ok(()) };
        let (key, verdict) = (asked.id.to_string(), judge(&self.errand.task, asked.question.clone()));
        let handle = open.judged.spawn(async move { (asked, verdict.await) });
        open.waiting.insert(key, handle);
        Ok(())
    }

    async fn answer(&mut self, asked: &Asked, verdict: &Verdict) -> Result<(), Untold> {
        let (said, why) = match verdict {
            Verdict::Allowed => ("allowed", None),
            Verdict::Denied(why) => ("denied", Some(why)),
        };
        self.wire
            .show(&json!({ "provost": "permission", "title": asked.title, "verdict": said, "reason": why }));
        self.wire.answer(&asked.id, asked.outcome(verdict)).await
    }

    async fn told(&mut self, open: &mut Open, method: &str, params: Value) -> Result<(), Untold> {
        if method == "$/cancel_request" {
            let taken_back = &params["requestId"];
            if let Some(waiting) = open.waiting.remove(&taken_back.to_string()) {
                waiting.abort();
                self.wire.fail(taken_back, TAKEN_BACK, "the request was taken back").await?;
            }
            return Ok(());
        }
        let is_ours = method == "session/update" && params["sessionId"] == self.session.id.as_str();
        if is_ours {
            open.calls.note(&params["update"]);
            self.keep_mode(open, &params["update"]).await?;
        }
        self.wire.told(method, params);
        Ok(())
    }

    /// Sets the mode again that an agent has left by itself, and gives up one that does so again and again.
    async fn keep_mode(&mut self, open: &mut Open, update: &Value) -> Result<(), Untold> {
        let Some(mode) = &self.session.mode else { return Ok(()) };
        let Some(now) = mode.left_for(update) else { return Ok(()) };
        open.mode_changes += 1;
        if open.mode_changes > ACP_MODE_CHANGES_MAX {
            return Err(untold(format!(": it has left the mode '{}' for '{now}' again and again", mode.id)));
        }
        self.wire.show(&json!({ "provost": "mode", "left": now, "set": mode.id }));
        self.wire.send_request(mode.method(), mode.params(&self.session.id)).await.map(drop)
    }

    fn ended(&self, answer: &Answer) -> Result<(), Untold> {
        let result = answer.as_ref().map_err(|it| it.untold("session/prompt"))?;
        let stop = result["stopReason"].as_str().unwrap_or_default();
        let mut end = json!({ "provost": "end", "stopReason": stop });
        for name in ["usage", "_meta"] {
            if let Some(it) = result.get(name).filter(|it| !it.is_null()) {
                end[name] = it.clone();
            }
        }
        self.wire.show(&end);
        match stop {
            "end_turn" => Ok(()),
            "max_tokens" => Err(untold(": the model has reached its limit of tokens for an answer")),
            "max_turn_requests" => Err(untold(": the agent has reached its limit of requests to the model")),
            "refusal" => Err(untold(": the model has refused to go on")),
            "cancelled" => {
                Err(untold(": the agent has ended the turn as cancelled, as some do after a denied request"))
            }
            other => {
                Err(untold(format!(": it ended the turn for a reason that ACP does not have: '{other}'")))
            }
        }
    }
}

/// What is known of the latest calls of tools: a permission request may say less than the updates before it.
#[derive(Default)]
struct Calls {
    known: HashMap<String, Value>,
    order: VecDeque<String>,
}

impl Calls {
    fn get(&self, id: &str) -> Option<&Value> {
        self.known.get(id)
    }

    fn note(&mut self, update: &Value) {
        let is_call = matches!(update["sessionUpdate"].as_str(), Some("tool_call" | "tool_call_update"));
        let Some(id) = update["toolCallId"].as_str().filter(|_| is_call) else { return };
        if !self.known.contains_key(id) {
            if self.order.len() >= ACP_CALLS_KNOWN_MAX
                && let Some(oldest) = self.order.pop_front()
            {
                self.known.remove(&oldest);
            }
            self.order.push_back(id.to_owned());
        }
        acp::merge(self.known.entry(id.to_owned()).or_insert_with(|| json!({})), update);
    }
}
