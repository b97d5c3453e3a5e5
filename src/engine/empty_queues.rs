//! Empty queues of mail, which doors read without asking the engine.
//!
//! By far the most frequent request is a HEARTBEAT that finds nothing. The engine writes here before it answers, so
//! an outdated entry can only cause a superfluous request.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use tokio::sync::Notify;

use provost_base::limits::AGENTS_MAX;
use provost_base::{AgentId, Timestamp, Ttl};

/// The time for which an empty queue counts as empty; also the interval at which the engine learns of a sign of life.
const IDLE_FOR: Ttl = Ttl::seconds_clamped(5);

/// One agent's place among the empty queues.
#[derive(Debug, Default)]
pub struct QueueSlot {
    idle_until: AtomicI64,
    /// Notified whenever mail is queued.
    pub arrived: Notify,
}

impl QueueSlot {
    /// Checks whether the engine is known to have no mail for this agent at the moment.
    pub fn is_idle(&self, now: Timestamp) -> bool {
        now.0 < self.idle_until.load(Ordering::Acquire)
    }
}

/// One place for each agent. Places that no door holds are dropped when there are too many.
#[derive(Debug, Default)]
pub struct EmptyQueues(RwLock<HashMap<AgentId, Arc<QueueSlot>>>);

impl EmptyQueues {
    /// Returns an agent's place, and makes it if necessary.
    pub fn slot(&self, agent: &AgentId) -> Arc<QueueSlot> {
        if let Some(slot) = self.0.read().unwrap_or_else(PoisonError::into_inner).get(agent) {
            return slot.clone();
        }
        let mut slots = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if slots.len() >= 2 * AGENTS_MAX {
            slots.retain(|_, slot| Arc::strong_count(slot) > 1);
        }
        slots.entry(agent.clone()).or_default().clone()
    }

    pub(super) fn empty(&self, agent: &AgentId, now: Timestamp) {
        self.slot(agent).idle_until.store(now.after(IDLE_FOR).0, Ordering::Release);
    }

    pub(super) fn arrived(&self, agent: &AgentId) {
        let slot = self.slot(agent);
        slot.idle_until.store(0, Ordering::Release);
        slot.arrived.notify_waiters();
    }

    /// Forgets which queues are empty, and has all who wait for mail look again.
    pub(super) fn forget_all(&self) {
        for slot in self.0.read().unwrap_or_else(PoisonError::into_inner).values() {
            slot.idle_until.store(0, Ordering::Release);
            slot.arrived.notify_waiters();
        }
    }
}
