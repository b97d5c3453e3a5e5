//! How often a client has used a rate-limited rule.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Change, Outbox, Rate};
use crate::base::limits::RATE_USES_MAX;
use crate::base::{AgentId, RuleId, Timestamp};

/// The uses of one rule by one client that still count.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Uses {
    /// The rule.
    pub rule: RuleId,
    /// The client.
    pub agent: AgentId,
    /// When, oldest first.
    pub at: Vec<Timestamp>,
}

/// All uses that still count.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Quota(BTreeMap<(RuleId, AgentId), Vec<Timestamp>>);

impl Quota {
    /// Notes one more use, unless the window is full; then says how long it stays so, in seconds.
    pub(super) fn spend(
        &self,
        now: Timestamp,
        rule: &RuleId,
        agent: &AgentId,
        rate: Rate,
        out: &mut Outbox,
    ) -> Result<(), u64> {
        let key = (rule.clone(), agent.clone());
        let counts = |at: &&Timestamp| now < at.after(rate.per);
        let mut at: Vec<_> = self.0.get(&key).into_iter().flatten().filter(counts).copied().collect();
        let most = usize::try_from(rate.count).unwrap_or(RATE_USES_MAX).min(RATE_USES_MAX);
        if at.len() >= most {
            // A rate of nothing has no use that could ever end the wait.
            let oldest = at.len().checked_sub(most).and_then(|i| at.get(i)).copied().unwrap_or(now);
            return Err(oldest.after(rate.per).since_ms(now).div_ceil(1000));
        }
        at.push(now);
        out.put(Change::PutUses(Uses { rule: key.0, agent: key.1, at }));
        Ok(())
    }

    pub(super) fn put(&mut self, uses: &Uses) {
        self.0.insert((uses.rule.clone(), uses.agent.clone()), uses.at.clone());
    }
}
