//! Modes that the agent sets by itself: the rules judge them like modes that the editor sets.
//!
//! ```text
//!   agent tells a mode that was not set --> the editor hears of it --> rules
//!     allowed, or no rule: it stays; without a rule that is put on record
//!     denied, or a rule asks: set back at once, and set again once a person has allowed it
//! ```
//! The turn is cancelled if an agent does so again and again, or is in a mode that cannot be set back.

use serde_json::{Value, json};

use super::judge::{self, Asker, Switching};
use super::message::{self, Id};
use super::proxy::{Done, Proxy};
use super::question::Verdict;
use provost_base::limits::{ACP_MODE_CHANGES_MAX, ACP_PROXY_QUESTIONS_MAX};

/// The mode of a session, as far as it is known.
#[derive(Default)]
pub(super) struct ModeOf {
    now: Option<String>,
    /// The mode before the editor's last request; it counts again if the agent refuses that request.
    before: Option<String>,
    /// The config option that sets the mode; `None` if the agent uses `modes`.
    option: Option<String>,
    /// The option that was chosen when the agent asked whether it may leave the mode.
    chosen: Option<String>,
    /// The number of times that a mode of the agent's own choice was set back.
    set_back: usize,
}

/// A mode that an agent has set by itself.
pub(super) struct OwnMode {
    pub(super) session: String,
    before: Option<String>,
    mode: String,
    asker: Asker,
}

impl ModeOf {
    /// Reads the mode from the answer that begins or loads a session. ACP v1, "Session modes" and "Session config options".
    pub(super) fn learn(&mut self, result: &Value) {
        if let Some(now) = result.pointer("/modes/currentModeId").and_then(Value::as_str) {
            (self.now, self.option) = (Some(now.to_owned()), None);
        } else if let Some((id, now)) = option_of(&result["configOptions"], None) {
            (self.now, self.option) = (Some(now), Some(id));
        }
    }

    /// Records a mode that the editor sets, and is allowed to set.
    pub(super) fn is_set(&mut self, mode: String) {
        self.before = self.now.replace(mode);
    }

    /// Records that the agent may leave the mode, by this option of its question.
    pub(super) fn may_be_left_for(&mut self, option: String) {
        self.chosen = Some(option);
    }

    /// Records that the agent has refused the editor's last request.
    pub(super) fn was_not_set(&mut self) {
        if let Some(before) = self.before.take() {
            self.now = Some(before);
        }
    }

    /// Returns the mode that an update reports, if it differs from the known mode.
    fn told(&self, update: &Value) -> Option<String> {
        let now = match update["sessionUpdate"].as_str()? {
            "current_mode_update" => update["currentModeId"].as_str().map(str::to_owned),
            "config_option_update" => {
                option_of(&update["configOptions"], self.option.as_deref()).map(|it| it.1)
            }
            _ => None,
        };
        now.filter(|it| self.now.as_ref() != Some(it))
    }
}

/// Returns the option that sets the mode, and its value: the option with this id, or the first of the category `mode`.
fn option_of(options: &Value, id: Option<&str>) -> Option<(String, String)> {
    let is_it = |it: &&Value| match id {
        Some(id) => it["id"] == id,
        None => it["category"] == "mode",
    };
    let option = options.as_array()?.iter().find(is_it)?;
    Some((option["id"].as_str()?.to_owned(), option["currentValue"].as_str()?.to_owned()))
}

/// Checks whether an update of this kind reports modes.
pub(super) fn is_told(kind: &str) -> bool {
    matches!(kind, "current_mode_update" | "config_option_update")
}

impl Proxy {
    /// Has the rules judge a mode that the agent reports and that the editor has not set.
    pub(super) fn note_mode(&mut self, session: &str, update: &Value) {
        let asker = self.sessions.asker(Some(session));
        let Some(known) = self.sessions.get(session) else { return };
        let Some(mode) = known.mode.told(update) else { return };
        let before = known.mode.now.replace(mode.clone());
        // Agents give the options of that question the names of the modes.
        if known.mode.chosen.take().as_ref() == Some(&mode) {
            return;
        }
        let own = OwnMode { session: session.to_owned(), before, mode, asker: asker.clone() };
        if self.work.len() >= ACP_PROXY_QUESTIONS_MAX {
            return self.set_back(&own, "too many questions wait already");
        }
        let mode = own.mode.clone();
        self.work.spawn(async move { Done::OwnMode(own, judge::may_switch(asker, mode).await) });
    }

    /// Handles the rules' answer about a mode.
    pub(super) fn judged_mode(&mut self, own: OwnMode, said: Switching) {
        match said {
            Switching::Settled(Verdict::Allowed) => {}
            Switching::Settled(Verdict::Denied(why)) => self.set_back(&own, &why),
            Switching::Unruled => {
                self.complain(&format!(
                    "session {}: the agent has set its mode to '{}' by itself",
                    own.session, own.mode
                ));
                let OwnMode { asker, mode, .. } = own;
                self.work.spawn(async move {
                    judge::record_mode(asker, &mode).await;
                    Done::Left
                });
            }
            Switching::Queued(queued) => {
                self.set_back(&own, "a rule asks a person about this mode");
                self.work
                    .spawn(async move { Done::OwnModeAnswered(own, judge::switch_in_queue(*queued).await) });
            }
        }
    }

    /// Handles a person's answer about a mode that was set back.
    pub(super) fn answered_mode(&mut self, own: &OwnMode, verdict: &Verdict) {
        if matches!(verdict, Verdict::Allowed) {
            self.set_mode(&own.session, own.mode.clone());
        }
    }

    /// Sets the session's former mode again; cancels the turn if there is none, or if the agent leaves the mode again and again.
    fn set_back(&mut self, own: &OwnMode, why: &str) {
        let OwnMode { session, before, mode, .. } = own;
        self.complain(&format!(
            "session {session}: the mode '{mode}' that the agent has set by itself is taken back: {why}"
        ));
        let Some(known) = self.sessions.get(session) else { return };
        known.mode.set_back += 1;
        let gives_up = known.mode.set_back > ACP_MODE_CHANGES_MAX;
        match before.clone() {
            Some(before) => self.set_mode(session, before),
            None => return self.cancel_turn(session),
        }
        if gives_up {
            self.cancel_turn(session);
        }
    }

    /// Sets a mode by a request of the proxy itself, whose answer the editor does not see.
    fn set_mode(&mut self, session: &str, mode: String) {
        let Some(known) = self.sessions.get(session) else { return };
        let (method, params) = match &known.mode.option {
            Some(option) => (
                "session/set_config_option",
                json!({ "sessionId": session, "configId": option, "value": mode }),
            ),
            None => ("session/set_mode", json!({ "sessionId": session, "modeId": mode })),
        };
        known.mode.now = Some(mode);
        let id = format!("provost-mode-{}", uuid::Uuid::new_v4().simple());
        self.own_requests.insert(Id::Text(id.as_str().into()), session.to_owned());
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.to_agent.send(message::line(&request));
    }

    /// Checks whether an answer belongs to a request of the proxy itself, and so is not passed on. A mode that cannot be
    /// set back ends the turn.
    pub(super) fn is_own_answer(&mut self, key: &Id, is_done: bool) -> bool {
        let Some(session) = self.own_requests.remove(key) else { return false };
        if !is_done {
            self.complain(&format!("session {session}: the agent does not take its mode back"));
            self.cancel_turn(&session);
        }
        true
    }

    fn cancel_turn(&mut self, session: &str) {
        let cancel =
            json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": session } });
        self.to_agent.send(message::line(&cancel));
        self.cancel(session);
    }
}
