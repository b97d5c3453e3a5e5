//! Handles the agent's messages, and its requests that need an answer ("questions").
//!
//! ```text
//!   judged --rules, or what others hold--> answered, and never shown
//!     \--no rule--> shown in the editor
//!     \--a rule asks--> shown in the editor and in the queue: the first answer counts, and the other is taken back
//!   allowed --> taking --> answered: what is written is held before the agent hears yes
//! ```
//! A session's messages keep their order: later ones wait while a question of the session is judged.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::editor_side::id_of;
use super::judge::{self, Asker, Checked};
use super::message::{self, Id, Message, session_in};
use super::modes;
use super::proxy::{Done, Proxy};
use super::question::{
    About, INTERNAL, NO_MESSAGE, NO_PARAMS, PERMISSION, Question, Stage, TAKEN_BACK, TERMINAL, Verdict, WRITE,
};
use super::sessions::Noted;
use provost_base::limits::{ACP_PROXY_LINE_BYTES_MAX, ACP_PROXY_OPEN_MAX, ACP_PROXY_QUESTIONS_MAX};
use provost_mcp::Outline;

impl Proxy {
    pub(super) fn agent_says(&mut self, line: Vec<u8>) {
        if line.trim_ascii().is_empty() {
            return self.to_editor.send(line);
        }
        let message = match Message::read(&line) {
            Ok(message) => message,
            Err(why) => return self.no_message_of_agent(&line, &why),
        };
        if self.sessions.are_held_up()
            && let Some(session) = self.session_of(&message).filter(|it| self.sessions.is_held_up(it))
            && let Some(held_up) = self.sessions.get(&session)
        {
            let bytes = line.len();
            held_up.waiting.push_back(line);
            self.sessions.waiting_bytes += bytes;
            return;
        }
        self.of_agent(line);
    }

    /// Returns the session of a message; for an answer, the session of its request.
    fn session_of(&self, message: &Message<'_>) -> Option<String> {
        match (&message.method, message.key()) {
            (Some(_), _) => message.session(),
            (None, key) => self.open.get(&key?)?.first()?.session.clone(),
        }
    }

    /// Handles a message of the agent once it is next in its session.
    fn of_agent(&mut self, line: Vec<u8>) {
        let Ok(message) = Message::read(&line) else { return };
        match (message.method.as_deref(), message.key()) {
            (Some(method @ (PERMISSION | WRITE | TERMINAL)), Some(key)) => {
                let method = method.to_owned();
                self.ask(key, &message, &method, &line);
            }
            (Some(method @ (PERMISSION | WRITE | TERMINAL)), None) => {
                let why = format!("{method} has no id, so that no answer could reach the agent");
                self.complain(&format!("what the agent says is not passed on: {why}"));
            }
            (Some(_), Some(key)) => {
                if let Some(why) = self.is_taken(&key) {
                    let id = message.id.map_or("null", |it| it.get());
                    return self.to_agent.send(message::failure(id, NO_MESSAGE, why, &Value::Null));
                }
                *self.passed.entry(key).or_default() += 1;
                self.passed_count += 1;
                self.to_editor.send(line);
            }
            (Some("session/update"), None) => match self.note(&message, line.len()) {
                Ok(()) => self.to_editor.send(line),
                Err(why) => self.complain(&format!("what the agent says is not passed on: {why}")),
            },
            (Some("$/cancel_request"), None) => {
                let id = taken_back(&message);
                match id.filter(|it| self.questions.contains_key(it)) {
                    Some(id) => self.take_back(&id, line),
                    None => self.to_editor.send(line),
                }
            }
            (None, Some(key)) => {
                let result = message.result.map(|it| it.get().to_owned());
                if self.is_own_answer(&key, result.is_some()) {
                    return;
                }
                let id = message.id.map_or("null", |it| it.get()).to_owned();
                self.to_editor.send(line);
                self.answer_of_agent((&key, &id), result.as_deref());
            }
            _ => self.to_editor.send(line),
        }
    }

    /// Returns why the agent may not use an id: another of its requests has it, so that an answer could belong to either.
    fn is_taken(&self, key: &Id) -> Option<&'static str> {
        if self.questions.contains_key(key) {
            return Some("Provost: a request with the same id waits already");
        }
        if self.answered.contains(key) {
            return Some("Provost: the editor has not answered an earlier request with the same id");
        }
        (self.passed_count >= ACP_PROXY_OPEN_MAX).then_some("Provost: too many requests are open")
    }

    fn answer_of_agent(&mut self, (key, id): (&Id, &str), result: Option<&str>) {
        let Some(open) = self.forget_open(key, id) else { return };
        if let (Some(asker), Some(result)) = (open.begins, result) {
            self.learn_modes(result);
            if let Some(id) =
                session_in(result).or_else(|| open.session.filter(|_| &*open.method != "session/fork"))
            {
                self.sessions.learn(id.clone(), asker);
                if let Some(known) = self.sessions.get(&id) {
                    known.mode.learn(&serde_json::from_str(result).unwrap_or_default());
                }
            }
            return;
        }
        let Some(session) = open.session else { return };
        match &*open.method {
            // A question that is still open belongs to no turn any more.
            "session/prompt" => self.withdraw(&session),
            "session/set_mode" | "session/set_config_option" if result.is_none() => {
                if let Some(known) = self.sessions.get(&session) {
                    known.mode.was_not_set();
                }
            }
            "session/close" | "session/delete" if result.is_some() => {
                self.withdraw(&session);
                if let Some((asker, what)) = self.sessions.end(&session) {
                    self.work.spawn(async move {
                        judge::leave(asker, what).await;
                        Done::Left
                    });
                }
            }
            _ => {}
        }
    }

    /// Records an update about a call. Also locks places that the agent writes without asking, so that other agents learn of it.
    ///
    /// # Errors
    /// The reason why another reader could take it for a different update.
    fn note(&mut self, message: &Message<'_>, bytes: usize) -> Result<(), String> {
        #[derive(Deserialize)]
        struct Params<'a> {
            #[serde(rename = "sessionId")]
            session: String,
            #[serde(borrow)]
            update: &'a RawValue,
        }
        #[derive(Deserialize)]
        struct Kind {
            #[serde(rename = "sessionUpdate")]
            kind: String,
        }
        message::clear_members(message.params(), &["sessionId", "update"])?;
        let Ok(params) = serde_json::from_str::<Params<'_>>(message.params()) else { return Ok(()) };
        message::clear_members(params.update.get(), &["sessionUpdate"])?;
        let kind = serde_json::from_str::<Kind>(params.update.get()).map(|it| it.kind).unwrap_or_default();
        if modes::is_told(&kind) {
            let update = message::known_object(params.update.get())?;
            self.note_mode(&params.session, &update);
            return Ok(());
        }
        if !matches!(kind.as_str(), "tool_call" | "tool_call_update") {
            return Ok(());
        }
        let update = message::known_object(params.update.get())?;
        let noted = self.calls.note(&params.session, &update, bytes);
        let (asker, session) = (self.sessions.asker(Some(&params.session)), params.session);
        let (call, is_over) = match noted {
            Noted::Runs(call) => (call, false),
            // A resumed session repeats its earlier calls.
            Noted::Done(call) if !self.is_taken_up(&session) => (call, true),
            Noted::Done(_) | Noted::Other => return Ok(()),
        };
        if !provost_base::acp::writes(&call) || self.work.len() >= ACP_PROXY_QUESTIONS_MAX {
            return Ok(());
        }
        if let Some(known) = self.sessions.get(&session) {
            known.takes(judge::paths(&call, &asker.cwd));
        }
        self.work.spawn(async move {
            let verdict = match is_over {
                false => judge::take(About::Permission { call, options: Vec::new() }, asker).await,
                true => judge::take_written(call, asker).await,
            };
            Done::Written(session, verdict)
        });
        Ok(())
    }

    /// Checks whether the editor has asked to resume the session, and the agent has not answered yet.
    fn is_taken_up(&self, session: &str) -> bool {
        let takes_up = |method: &str| matches!(method, "session/load" | "session/resume");
        let mut open = self.open.values().flatten();
        open.any(|it| it.session.as_deref() == Some(session) && takes_up(&it.method))
    }

    pub(super) fn written(&mut self, session: &str, verdict: &Verdict) {
        if let Verdict::Denied(why) = verdict {
            let why = why.strip_prefix("Not written: ").unwrap_or(why);
            self.complain(&format!("session {session}: an agent writes without having asked: {why}"));
        }
    }

    /// Begins a question: first checks the rules, and the places that other agents hold.
    fn ask(&mut self, key: Id, message: &Message<'_>, method: &str, line: &[u8]) {
        let id: Box<str> = message.id.map_or("null", |it| it.get()).into();
        let session = message.session();
        let fail = |code, why: &str| message::failure(&id, code, &format!("Provost: {why}"), &Value::Null);
        if let Id::Other(_) = &key {
            let why =
                "not all editors tell its id from others: name it by a text, or by a whole number below 2^53";
            return self.to_agent.send(fail(NO_MESSAGE, why));
        }
        if let Some(why) = self.is_taken(&key) {
            return self.to_agent.send(message::failure(&id, NO_MESSAGE, why, &Value::Null));
        }
        if self.passed.contains_key(&key) {
            return self.to_agent.send(fail(NO_MESSAGE, "a request with the same id is open already"));
        }
        let call = call_of(message);
        if let Some((session, call)) = session.as_deref().zip(call.as_deref()) {
            self.calls.is_asked_about(session, call);
        }
        let known =
            session.as_deref().zip(call.as_deref()).and_then(|(session, call)| self.calls.get(session, call));
        let about = match About::read(message, method, known) {
            Ok(about) => about,
            Err(why) => return self.to_agent.send(fail(NO_PARAMS, &why)),
        };
        let Asker { agent, cwd } = self.sessions.asker(session.as_deref());
        let line = line.to_vec();
        let (stage, work) = (Stage::Judged, None);
        let mut question =
            Question { id: id.clone(), line, session, agent, cwd, about, stage, work, back: None };
        if self.questions.len() >= ACP_PROXY_QUESTIONS_MAX {
            let why = Verdict::Denied("too many requests of this agent wait already".into());
            return self.to_agent.send(question.answer(&why));
        }
        let session = question.session.as_deref().and_then(|it| self.sessions.judgement_begins(it));
        let granted = match (&question.about, session) {
            (About::Write { path, .. }, Some(session)) => session.uses_grant(path.as_ref()),
            (About::Command { call }, Some(session)) => {
                command_of(call).is_some_and(|it| session.uses_command(&it))
            }
            _ => false,
        };
        let (about, asker, id) = (question.about.clone(), question.asker(), key.clone());
        question.work = Some(
            self.work.spawn(async move { Done::Checked(id, judge::check(about, asker, granted).await) }),
        );
        self.questions.insert(key, question);
    }

    /// Handles the result of the rules, and of the check for places that other agents hold.
    pub(super) fn checked(&mut self, key: Id, checked: Checked) {
        let Some(question) = self.questions.get_mut(&key).filter(|it| it.stage == Stage::Judged) else {
            return;
        };
        let session = question.session.clone();
        match checked {
            Checked::Allowed => self.close(&key, &Verdict::Allowed, None),
            Checked::Denied(why) => self.close(&key, &Verdict::Denied(why), None),
            Checked::Person => {
                question.stage = Stage::Shown;
                self.to_editor.send(question.line.clone());
            }
            Checked::Queued(queued) => {
                question.stage = Stage::Shown;
                let (back, taken_back) = oneshot::channel();
                question.back = Some(back);
                let shown = match &question.about {
                    About::Permission { .. } => question.for_this_use(),
                    About::Write { .. } | About::Command { .. } => {
                        let (id, dialog) = question.dialog();
                        self.dialogs.insert(id, key.clone());
                        dialog
                    }
                };
                self.to_editor.send(shown);
                let id = key.clone();
                let waits = async move { Done::Queue(id, judge::wait_in_queue(*queued, taken_back).await) };
                question.work = Some(self.work.spawn(waits));
            }
        }
        self.goes_on(session);
    }

    /// Ends the judgement of a session's question, and passes the messages that waited for it.
    fn goes_on(&mut self, session: Option<String>) {
        let Some(id) = session else { return };
        self.sessions.judgement_ends(&id);
        while let Some(line) = self.sessions.next_waiting(&id) {
            self.of_agent(line);
        }
    }

    /// Handles the answer of the editor's person; `line` is the answer's line if it answers the agent's own request.
    pub(super) fn shown_answer(&mut self, key: Id, line: Option<Vec<u8>>, result: Option<&str>) {
        let Some(question) = self.questions.get_mut(&key) else { return };
        let was_queued = question.back.is_some();
        question.hang_up();
        if let Some(Err(why)) = result.map(message::known_object) {
            // An answer that one reader could take for a yes and another for a no counts as neither.
            let cancelled = question.cancelled();
            self.questions.remove(&key);
            self.to_agent.send(cancelled);
            return self.complain(&format!("an answer is not passed on to the agent: {why}"));
        }
        let allowed = result.is_some_and(|it| match question.about.is_permission() {
            true => question.about.is_allowed_by(it),
            false => question.is_allowed_in_ours(it),
        });
        // If a rule wanted approval, the dialog did not offer the options that the agent keeps for later uses.
        let is_kept = was_queued && result.is_some_and(|it| question.about.is_kept_by(it));
        match (allowed, line) {
            (true, line) => self.take(&key, line.filter(|_| !is_kept)),
            (false, Some(line)) => {
                let Some(question) = self.questions.remove(&key) else { return };
                let once = || question.answer(&Verdict::Denied("its person has not allowed it".into()));
                self.to_agent.send(if is_kept { once() } else { line });
            }
            (false, None) => {
                let why = "its person has not allowed it".to_owned();
                self.close(&key, &Verdict::Denied(why), None);
            }
        }
    }

    /// Handles the answer of the queue; without one, the editor's answer counts.
    pub(super) fn answered_in_queue(&mut self, key: &Id, verdict: Option<Verdict>) {
        let Some(question) = self.questions.get_mut(key).filter(|it| it.stage == Stage::Shown) else {
            return;
        };
        let Some(verdict) = verdict else { return };
        question.back = None;
        self.take_from_editor(key);
        match verdict {
            Verdict::Allowed => self.take(key, None),
            denied @ Verdict::Denied(_) => self.close(key, &denied, None),
        }
    }

    /// Locks the places that an allowed question writes; the agent gets its answer after that.
    fn take(&mut self, key: &Id, answer: Option<Vec<u8>>) {
        let Some(question) = self.questions.get_mut(key) else { return };
        question.stage = Stage::Taking;
        let (about, asker, id) = (question.about.clone(), question.asker(), key.clone());
        let takes = async move { Done::Taken(id, judge::take(about, asker).await, answer) };
        question.work = Some(self.work.spawn(takes));
    }

    pub(super) fn taken(&mut self, key: &Id, verdict: &Verdict, answer: Option<Vec<u8>>) {
        if self.questions.get(key).is_some_and(|it| it.stage == Stage::Taking) {
            self.close(key, verdict, answer);
        }
    }

    /// Closes a question with its answer; `answer` is the editor's own line, if the agent gets that line.
    fn close(&mut self, key: &Id, verdict: &Verdict, answer: Option<Vec<u8>>) {
        let Some(question) = self.questions.remove(key) else { return };
        match (verdict, &question.about) {
            (Verdict::Allowed, About::Write { path, .. }) => {
                if let Some(session) = question.session.as_deref().and_then(|it| self.sessions.get(it)) {
                    session.takes(vec![question.cwd.join(path)]);
                }
                self.pass_question(key, question.line);
            }
            (Verdict::Allowed, About::Command { .. }) => self.pass_question(key, question.line),
            (Verdict::Allowed, About::Permission { call, .. }) => {
                // Permission to read or run a file does not permit to write it.
                let writes = judge::is_write(call);
                let paths = if writes { judge::paths(call, &question.cwd) } else { Vec::new() };
                let line = answer.unwrap_or_else(|| question.answer(verdict));
                let chosen = message::chosen_option(&line);
                self.to_agent.send(line);
                if let Some(session) = question.session.as_deref().and_then(|it| self.sessions.get(it)) {
                    if let Some(option) = chosen.filter(|_| provost_base::acp::kind(call) == "switch_mode") {
                        session.mode.may_be_left_for(option);
                    }
                    if provost_base::acp::writes(call) {
                        session.takes(judge::paths(call, &question.cwd));
                    }
                    session.grant(paths);
                    command_of(call).into_iter().for_each(|it| session.grant_command(it));
                }
            }
            (Verdict::Denied(why), _) => {
                self.to_agent.send(question.answer(verdict));
                if let Some(told) = question.told(why) {
                    self.to_editor.send(told);
                }
            }
        }
    }

    /// Passes a judged request on, which the editor then answers.
    fn pass_question(&mut self, key: &Id, line: Vec<u8>) {
        *self.passed.entry(key.clone()).or_default() += 1;
        self.passed_count += 1;
        self.to_editor.send(line);
    }

    /// Withdraws the editor's dialog about a closed question. A later answer to it is ignored.
    fn take_from_editor(&mut self, key: &Id) {
        let Some(question) = self.questions.get(key) else { return };
        let dialog = self.dialogs.iter().find(|(_, it)| *it == key).map(|(dialog, _)| dialog.clone());
        let id = match &dialog {
            Some(Id::Text(id)) => json!(id).to_string(),
            _ => question.id.to_string(),
        };
        let cancel = format!(
            "{{\"jsonrpc\":\"2.0\",\"method\":\"$/cancel_request\",\"params\":{{\"requestId\":{id}}}}}\n"
        );
        self.to_editor.send(cancel.into_bytes());
        if let Some(dialog) = dialog {
            self.dialogs.remove(&dialog);
            self.answered.insert(dialog);
        } else {
            self.answered.insert(key.clone());
        }
    }

    /// Returns the ids of a session's questions.
    fn questions_of(&self, session: &str) -> Vec<Id> {
        let of_it = self.questions.iter().filter(|(_, it)| it.session.as_deref() == Some(session));
        of_it.map(|(id, _)| id.clone()).collect()
    }

    /// Answers all questions of a cancelled turn as cancelled, whether or not the editor does.
    pub(super) fn cancel(&mut self, session: &str) {
        for key in self.questions_of(session) {
            let Some(mut question) = self.questions.remove(&key) else { continue };
            self.to_agent.send(question.cancelled());
            question.hang_up();
            match question.stage {
                Stage::Judged => {
                    question.stop();
                    self.goes_on(question.session);
                }
                Stage::Taking => question.stop(),
                Stage::Shown => {
                    self.dialogs.retain(|_, it| *it != key);
                    self.answered.insert(key);
                }
            }
        }
    }

    /// Withdraws the dialogs of a turn that has ended.
    fn withdraw(&mut self, session: &str) {
        for key in self.questions_of(session) {
            if self.questions.get(&key).is_some_and(|it| it.stage == Stage::Shown) {
                self.take_from_editor(&key);
                if let Some(mut question) = self.questions.remove(&key) {
                    question.hang_up();
                }
            }
        }
    }

    /// Handles the agent's withdrawal of a question.
    fn take_back(&mut self, key: &Id, line: Vec<u8>) {
        let Some(mut question) = self.questions.remove(key) else { return };
        question.hang_up();
        let is_ours = self.dialogs.values().any(|it| it == key);
        if question.stage == Stage::Shown && !is_ours {
            // The editor has the request, and answers it. A yes that it has given in the meantime has no effect.
            self.to_editor.send(line);
            self.answered.insert(key.clone());
        }
        self.to_agent.send(message::failure(
            &question.id,
            TAKEN_BACK,
            "the request was taken back",
            &Value::Null,
        ));
        match question.stage {
            Stage::Judged => {
                question.stop();
                self.goes_on(question.session);
            }
            Stage::Taking => question.stop(),
            Stage::Shown if !is_ours => {}
            Stage::Shown => {
                self.questions.insert(key.clone(), question);
                self.take_from_editor(key);
                self.questions.remove(key);
            }
        }
    }

    fn no_message_of_agent(&mut self, line: &[u8], why: &str) {
        self.refuse_to_agent(Outline::of(line), why);
    }

    pub(super) fn too_long_of_agent(&mut self, outline: Outline) {
        self.refuse_to_agent(outline, &format!("it has more than {} MiB", ACP_PROXY_LINE_BYTES_MAX >> 20));
    }

    /// Refuses a malformed line: an editor might read a different message in it than the judged one. The side that waits
    /// for an answer gets an error.
    fn refuse_to_agent(&mut self, outline: Outline, why: &str) {
        let (is_answer, is_told) = (outline.is_answer(), outline.is_told());
        let id = id_of(outline);
        self.complain(&format!("what the agent says is not passed on: {why}"));
        let why = format!("Provost does not pass on what the agent says: {why}");
        match id {
            Some(id) if is_answer => {
                let key = serde_json::from_str::<&RawValue>(&id).map(Id::of);
                if let Some(key) = key.ok().filter(|it| self.open.contains_key(it)) {
                    self.to_editor.send(message::failure(&id, INTERNAL, &why, &Value::Null));
                    self.answer_of_agent((&key, &id), None);
                }
            }
            Some(id) if !is_told => self.to_agent.send(message::failure(&id, NO_MESSAGE, &why, &Value::Null)),
            _ => {}
        }
    }
}

/// Returns a call's command as a line for comparison; a shell's line stays as it is.
fn command_of(call: &Value) -> Option<String> {
    let command = call["rawInput"].get("command").or_else(|| call["rawInput"].get("cmd"))?;
    crate::hooks::line_of(command)
}

/// Returns the id of the call that a permission request is about.
fn call_of(message: &Message<'_>) -> Option<String> {
    let params: Value = serde_json::from_str(message.params()).ok()?;
    params.pointer("/toolCall/toolCallId")?.as_str().map(str::to_owned)
}

/// Returns the id of the request that a `$/cancel_request` withdraws.
fn taken_back(message: &Message<'_>) -> Option<Id> {
    #[derive(Deserialize)]
    struct Params<'a> {
        #[serde(borrow, rename = "requestId")]
        id: &'a RawValue,
    }
    serde_json::from_str::<Params<'_>>(message.params()).ok().map(|it| Id::of(it.id))
}
