//! The rules in force, and what they would say to a request that someone makes up.

use super::Own;
use super::handle::{Answered, Call, Handles};
use super::map::{self, OwnError};
use provost_api::{endpoints, wire};
use provost_domain::WorkerSetting;
use provost_domain::view::OneWorkerSetting;

/// Tells the rules in force; with a request and the setting of its worker, also what they say to it. The error is a sentence.
pub type TellRules =
    Box<dyn Fn(&wire::RulesQuery, Option<&WorkerSetting>) -> Result<wire::Rules, String> + Send + Sync>;

impl Handles<endpoints::Rules> for Own {
    async fn handle(&self, _call: &Call, query: wire::RulesQuery) -> Answered<wire::Rules> {
        self.tell_rules(query).await
    }
}

impl Own {
    /// The rules in force, with what they say to a request that names a worker.
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
        (self.0.rules)(&query, setting.as_ref()).map_err(OwnError::invalid)
    }
}
