//! One turn: the prompt (the goal, or words that came meanwhile), the agent's requests and updates, and the end. ACP v1, "Prompt turn".

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use super::elicitation::Form;
use super::modes;
use super::permissions::{PermissionRequest, Verdict};
use super::wire::{Answer, Incoming, Wire};
use super::{AcpRun, Session, Untold, Ways, untold};
use provost_base::limits::{
    ACP_ANSWER_MS_MAX, ACP_CALLS_KNOWN_MAX, ACP_CANCEL_MS_MAX, ACP_MODE_CHANGES_MAX, ACP_QUESTIONS_MAX,
};
use provost_base::{Ttl, acp};
use provost_domain::Saying;

/// The error code for a request that the agent has cancelled. ACP v1, "Cancellation".
const TAKEN_BACK: i64 = -32_800;

/// The prompt of one turn.
pub(super) struct Prompt {
    texts: Vec<String>,
    /// The sayings in the prompt that came while the agent ran.
    sayings: Vec<Saying>,
}

impl Prompt {
    /// Returns the prompt with the task's goal.
    pub(super) fn goal(goal: &str) -> Self {
        Self { texts: vec![goal.to_owned()], sayings: Vec::new() }
    }

    /// Returns the prompt with the words that came meanwhile, oldest first.
    pub(super) fn sayings(sayings: Vec<Saying>) -> Self {
        Self { texts: sayings.iter().map(|it| it.text.to_string()).collect(), sayings }
    }

    fn blocks(&self) -> Value {
        self.texts.iter().map(|text| json!({ "type": "text", "text": text })).collect()
    }

    /// Returns the number of the newest saying in the prompt; 0 if it has none.
    fn through(&self) -> u32 {
        self.sayings.last().map_or(0, |it| it.number)
    }
}

pub(super) struct Turn<'a> {
    pub(super) wire: &'a mut Wire,
    pub(super) run: &'a AcpRun,
    pub(super) session: &'a Session,
    pub(super) ways: &'a Ways,
}

/// The state of a turn that is under way.
struct Open {
    prompt: u64,
    /// Requests that are being judged, and their JSON-RPC ids as text.
    judged: JoinSet<(PermissionRequest, Verdict)>,
    waiting: HashMap<String, (Value, tokio::task::AbortHandle)>,
    /// Questions that wait for a person, with the results for the agent.
    asked: JoinSet<(Value, Value)>,
    unanswered: HashMap<String, (Value, tokio::task::AbortHandle)>,
    calls: Calls,
    mode_changes: usize,
    /// The mode that the agent reports, if the daemon has set none.
    mode_told: Option<String>,
    /// Whether it is not known yet that the sayings of this turn have reached the agent.
    unheard: bool,
    /// The moment by which the agent has to end a cancelled turn.
    cancelled: Option<Instant>,
}

impl Turn<'_> {
    /// Gives the prompt, and returns how the turn has ended. The agent's answer is in the run's output.
    ///
    /// # Errors
    /// The reason why the conversation ends.
    pub(super) async fn carry_out(mut self, prompt: &Prompt) -> Result<Result<(), Untold>, Untold> {
        // Output of the agent before the prompt is no part of its answer.
        self.wire.show(&json!({ "provost": "turn" }));
        for it in &prompt.sayings {
            self.wire.show(
                &json!({ "provost": "said", "number": it.number, "by": it.by.as_str(), "text": it.text }),
            );
        }
        let params = json!({ "sessionId": self.session.id, "prompt": prompt.blocks() });
        let mut open = Open {
            prompt: self.wire.send_request("session/prompt", params).await?,
            judged: JoinSet::new(),
            waiting: HashMap::new(),
            asked: JoinSet::new(),
            unanswered: HashMap::new(),
            calls: Calls::default(),
            mode_changes: 0,
            mode_told: None,
            unheard: !prompt.sayings.is_empty(),
            cancelled: None,
        };
        let (steering, through) = (&self.ways.steering, prompt.through());
        let mut hurried = std::pin::pin!(steering.hurried(through));
        loop {
            let (is_cancelled, until) =
                (open.cancelled.is_some(), open.cancelled.unwrap_or_else(Instant::now));
            tokio::select! {
                biased;
                () = sleep_until(until), if is_cancelled => {
                    let most = ACP_CANCEL_MS_MAX / 1000;
                    return Err(untold(format!(": it has not ended its turn within {most}s after that was cancelled")));
                }
                () = &mut hurried, if !is_cancelled => self.cancel(&mut open).await?,
                Some(done) = open.judged.join_next() => {
                    // A request that was withdrawn or cancelled meanwhile is answered already.
                    if let Ok((asked, verdict)) = done
                        && open.waiting.remove(&asked.id.to_string()).is_some()
                    {
                        self.answer(&asked, &verdict).await?;
                    }
                }
                Some(done) = open.asked.join_next() => {
                    if let Ok((id, result)) = done
                        && open.unanswered.remove(&id.to_string()).is_some()
                    {
                        self.wire.answer(&id, result).await?;
                    }
                }
                incoming = self.wire.next() => {
                    let incoming = incoming?;
                    if open.unheard && self.wire.all_is_sent() {
                        open.unheard = false;
                        steering.delivered(through).await;
                    }
                    match incoming {
                        Incoming::Answer(id, answer) if id == open.prompt => {
                            return Ok(self.ended(&answer, is_cancelled));
                        }
                        // The answer to a change of mode; an update reports the mode.
                        Incoming::Answer(..) => {}
                        Incoming::Request { id, method, params } => self.request(&mut open, id, &method, &params).await?,
                        Incoming::Told { method, params } => self.told(&mut open, &method, params).await?,
                    }
                }
            }
        }
    }

    /// Cancels the agent's turn, and answers its requests as the protocol demands. ACP v1, "Cancellation".
    async fn cancel(&mut self, open: &mut Open) -> Result<(), Untold> {
        self.wire.show(&json!({ "provost": "cancel" }));
        self.wire.notify("session/cancel", json!({ "sessionId": self.session.id }))?;
        open.cancelled = Some(Instant::now() + Duration::from_millis(ACP_CANCEL_MS_MAX));
        // Aborting the judgements withdraws the questions from the queue.
        open.judged.abort_all();
        for id in open.waiting.drain().map(|(_, (id, _))| id) {
            self.wire.answer(&id, json!({ "outcome": { "outcome": "cancelled" } })).await?;
        }
        open.asked.abort_all();
        for (id, _) in open.unanswered.drain().map(|(_, it)| it) {
            self.wire.answer(&id, json!({ "action": "cancel" })).await?;
        }
        Ok(())
    }

    async fn request(
        &mut self,
        open: &mut Open,
        id: Value,
        method: &str,
        params: &Value,
    ) -> Result<(), Untold> {
        if method == "elicitation/create" {
            return self.elicit(open, id, params).await;
        }
        if method != "session/request_permission" {
            return self.wire.refuse(&id, method).await;
        }
        let known = params["toolCall"]["toolCallId"].as_str().and_then(|it| open.calls.get(it));
        let wait = self.run.task.order.timeout;
        let asked = PermissionRequest::read(id, params, known, self.run, wait.min(Ttl::minutes(24 * 60)));
        if open.cancelled.is_some() {
            return self.wire.answer(&asked.id, json!({ "outcome": { "outcome": "cancelled" } })).await;
        }
        let refusal = if params["sessionId"] != self.session.id.as_str() {
            Some("it is about another session")
        } else if open.waiting.contains_key(&asked.id.to_string()) {
            Some("a request with the same id waits already")
        } else if open.waiting.len() >= ACP_QUESTIONS_MAX {
            Some("too many of its requests wait already")
        } else if !asked.can_be_allowed() {
            Some("it offers no way to allow it once")
        } else if self.ways.judge.is_none() {
            Some("no rules can be asked here")
        } else {
            None
        };
        if let Some(why) = refusal {
            return self.answer(&asked, &Verdict::Denied(why.into())).await;
        }
        let Some(judge) = &self.ways.judge else { return Ok(()) };
        let (id, verdict) = (asked.id.clone(), judge(&self.run.task, asked.question.clone()));
        let handle = open.judged.spawn(async move { (asked, verdict.await) });
        open.waiting.insert(id.to_string(), (id, handle));
        Ok(())
    }

    /// Puts a question of the agent to a person; declines a question that is no valid form.
    async fn elicit(&mut self, open: &mut Open, id: Value, params: &Value) -> Result<(), Untold> {
        let key = id.to_string();
        let is_taken = params["sessionId"] == self.session.id.as_str()
            && open.cancelled.is_none()
            && open.unanswered.len() < ACP_QUESTIONS_MAX
            && !open.unanswered.contains_key(&key);
        let form = Form::read(params).filter(|_| is_taken);
        let (Some(form), Some(asker)) = (form, &self.ways.asker) else {
            return self.wire.answer(&id, json!({ "action": "decline" })).await;
        };
        self.wire.show(&json!({ "provost": "question", "text": form.question }));
        let answer = asker(&self.run.task, form.question.clone());
        let asked = id.clone();
        let handle = open.asked.spawn(async move {
            let answer = timeout(Duration::from_millis(ACP_ANSWER_MS_MAX), answer).await.ok().flatten();
            let result = form.result(answer.as_deref());
            (asked, result)
        });
        open.unanswered.insert(key, (id, handle));
        Ok(())
    }

    async fn answer(&mut self, asked: &PermissionRequest, verdict: &Verdict) -> Result<(), Untold> {
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
            let key = taken_back.to_string();
            if let Some((_, waiting)) = open.waiting.remove(&key).or_else(|| open.unanswered.remove(&key)) {
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

    /// Sets the mode again that an agent has left by itself; ends an agent that does so again and again.
    async fn keep_mode(&mut self, open: &mut Open, update: &Value) -> Result<(), Untold> {
        let Some(mode) = &self.session.mode else {
            // The daemon has set no mode, so it sets none again; it records the mode that the agent reports.
            let told = modes::told(update).filter(|it| open.mode_told.as_deref() != Some(*it));
            if let Some(now) = told {
                open.mode_told = Some(now.to_owned());
                self.wire.show(&json!({ "provost": "mode", "now": now }));
            }
            return Ok(());
        };
        let Some(now) = mode.left_for(update) else { return Ok(()) };
        open.mode_changes += 1;
        if open.mode_changes > ACP_MODE_CHANGES_MAX {
            return Err(untold(format!(": it has left the mode '{}' for '{now}' again and again", mode.id)));
        }
        self.wire.show(&json!({ "provost": "mode", "left": now, "set": mode.id }));
        self.wire.send_request(mode.method(), mode.params(&self.session.id)).await.map(drop)
    }

    fn ended(&self, answer: &Answer, was_cancelled: bool) -> Result<(), Untold> {
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
            // The next turn begins.
            "cancelled" if was_cancelled => Ok(()),
            "cancelled" => {
                Err(untold(": the agent has ended the turn as cancelled, as some do after a denied request"))
            }
            other => {
                Err(untold(format!(": it ended the turn for a reason that ACP does not have: '{other}'")))
            }
        }
    }
}

/// The latest tool calls: a permission request may say less about its call than the updates before it.
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
