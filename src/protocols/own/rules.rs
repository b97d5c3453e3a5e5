//! The rules in force, their decision about a hypothetical request, and the decisions that other rules would have made.

use std::time::{Duration, Instant};

use super::Own;
use super::handle::{Answered, Call, Handles};
use super::map::{self, OwnError};
use provost_api::{endpoints, wire};
use provost_base::limits::{REPLAY_EVENTS_MAX, REPLAY_LAST, REPLAY_LAST_MAX, REPLAY_MS};
use provost_domain::view::OneWorkerSetting;
use provost_domain::{Refusal, WorkerSetting};
use provost_service::RecordedDecision;

/// Returns the rules in force; for a request with its worker's setting, also their decision. The error is a sentence.
pub type TellRules =
    Box<dyn Fn(&wire::RulesQuery, Option<&WorkerSetting>) -> Result<wire::Rules, String> + Send + Sync>;

/// Tries other rules on recorded decisions, as many as possible until the given time. The error is a sentence.
pub type AskOtherRules = Box<
    dyn Fn(&wire::ReplayRules, &[RecordedDecision], Instant) -> Result<wire::RulesReplayed, String>
        + Send
        + Sync,
>;

/// The queries about rules.
pub struct AboutRules {
    /// The query about the rules in force.
    pub told: TellRules,
    /// The query about other rules.
    pub other: AskOtherRules,
}

impl Handles<endpoints::Rules> for Own {
    async fn handle(&self, _call: &Call, query: wire::RulesQuery) -> Answered<wire::Rules> {
        self.tell_rules(query).await
    }
}

impl Own {
    /// Returns the rules in force, with their decision about a request that names a worker.
    pub(super) async fn tell_rules(&self, mut query: wire::RulesQuery) -> Answered<wire::Rules> {
        if query.by_passkey {
            query.client = Some(self.0.user.to_string());
            (query.door, query.proof) = (Some("own".into()), Some("passkey".into()));
        }
        let setting = match query.worker.as_deref().filter(|it| !it.is_empty()) {
            None => None,
            Some(name) => {
                let id = map::agent(name, "worker")?;
                let known = self.0.provost.view(OneWorkerSetting(id)).await.map_err(map::fault)?;
                Some(known.ok_or_else(|| {
                    OwnError::invalid(format!("there is no worker {name}"))
                        .hint("`provost status` lists them")
                })?)
            }
        };
        (self.0.rules.told)(&query, setting.as_ref()).map_err(OwnError::invalid)
    }
}

impl Handles<endpoints::ReplayRules> for Own {
    async fn handle(&self, _call: &Call, body: wire::ReplayRules) -> Answered<wire::RulesReplayed> {
        let last = body.last.unwrap_or(REPLAY_LAST);
        if !(1..=REPLAY_LAST_MAX).contains(&last) {
            return Err(OwnError::invalid(format!("last: 1 to {REPLAY_LAST_MAX} decisions")));
        }
        if body.builtin.is_some() == body.text.is_some() {
            return Err(OwnError::invalid("name ready-made rules as `builtin`, or send rules as `text`"));
        }
        // Only one runs at a time, since each reads a part of the store.
        let _turn = self.0.replays.acquire().await.map_err(|_| map::fault(Refusal::Stopping))?;
        let until = Instant::now() + Duration::from_millis(REPLAY_MS);
        let provost = &self.0.provost;
        let (found, to) =
            provost.recorded_decisions((last, REPLAY_EVENTS_MAX), until).await.map_err(map::fault)?;
        let (own, from, late) = (self.clone(), found.from.0, found.late);
        let asked = tokio::task::spawn_blocking(move || {
            (own.0.rules.other)(&body, &found.decisions, until + Duration::from_millis(REPLAY_MS))
        });
        let told = asked.await.map_err(|_| map::fault(Refusal::Stopping))?;
        let told = told.map_err(OwnError::invalid)?;
        Ok(wire::RulesReplayed { from: from + 1, to, late: late || told.late, ..told })
    }
}
