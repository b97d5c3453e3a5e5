//! Counts the uses of a rate-limited rule by each client.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Change, Outbox, Rate, Share};
use provost_base::limits::RATE_USES_MAX;
use provost_base::{RuleId, Timestamp};

/// The uses of one rule by one share that still count.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Uses {
    /// The rule that limits the uses.
    pub rule: RuleId,
    /// The share to which the uses count.
    pub who: Share,
    /// The times of the uses, oldest first. Without any, the row is forgotten.
    pub at: Vec<Timestamp>,
    /// When the newest use stops counting.
    #[serde(default)]
    pub until: Timestamp,
}

/// All uses that still count.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Quota(BTreeMap<(RuleId, Share), Uses>);

impl Quota {
    /// Notes one more use, unless the window is full; then returns how long it stays full, in seconds.
    pub(super) fn spend(
        &self,
        now: Timestamp,
        rule: &RuleId,
        who: &Share,
        rate: Rate,
        out: &mut Outbox,
    ) -> Result<(), u64> {
        let key = (rule.clone(), who.clone());
        let counts = |at: &&Timestamp| now < at.after(rate.per);
        let known = self.0.get(&key).map(|uses| uses.at.as_slice()).unwrap_or_default();
        let mut at: Vec<_> = known.iter().filter(counts).copied().collect();
        let most = usize::try_from(rate.count).unwrap_or(RATE_USES_MAX).min(RATE_USES_MAX);
        if at.len() >= most {
            // With a rate of zero, no use could ever end the wait.
            let oldest = at.len().checked_sub(most).and_then(|i| at.get(i)).copied().unwrap_or(now);
            return Err(oldest.after(rate.per).since_ms(now).div_ceil(1000));
        }
        at.push(now);
        out.put(Change::PutUses(Uses { rule: key.0, who: key.1, at, until: now.after(rate.per) }));
        Ok(())
    }

    /// Returns how many uses count at the moment.
    pub(super) fn used(&self, now: Timestamp, rule: &RuleId, who: &Share, rate: Rate) -> usize {
        let uses = self.0.get(&(rule.clone(), who.clone()));
        uses.map_or(0, |uses| uses.at.iter().filter(|at| now < at.after(rate.per)).count())
    }

    /// Forgets uses that no longer count: processes come and go, and each would stay forever.
    pub(super) fn expire(&self, now: Timestamp, out: &mut Outbox) {
        for uses in self.0.values().filter(|uses| uses.until <= now) {
            out.put(Change::PutUses(Uses { at: Vec::new(), ..uses.clone() }));
        }
    }

    /// Checks whether no use counts.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn put(&mut self, uses: &Uses) {
        let key = (uses.rule.clone(), uses.who.clone());
        if uses.at.is_empty() {
            self.0.remove(&key);
        } else {
            self.0.insert(key, uses.clone());
        }
    }
}
