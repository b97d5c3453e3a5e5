//! The waits for locks, with their causes, for people who look; and circles of waiting that were refused.
//!
//! A circle is refused before it begins, so the state never shows it. It becomes an event, and memory keeps the
//! circles of the last hour.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Locks, Waiter};
use crate::{Change, EventKind, Outbox};
use provost_base::limits::{CIRCLE_MEMBERS_MAX, CIRCLE_TOLD_MS, CIRCLES_KEPT_MAX, CIRCLES_KEPT_MS};
use provost_base::{AgentId, SymbolPath, Timestamp};

/// An agent that waits for a lock, with the agents that block it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LockWait {
    /// The wait.
    pub waiter: Arc<Waiter>,
    /// The agents that hold the lock.
    pub holders: BTreeSet<AgentId>,
    /// The number of others that have waited for it longer.
    pub ahead: usize,
}

impl Locks {
    /// Returns the longest waits for locks, `most` at most.
    pub(crate) fn waits(&self, most: usize) -> Vec<LockWait> {
        let wait = |waiter: &Arc<Waiter>| {
            let names: Vec<&str> = waiter.all_names().collect();
            let want = waiter.want(&names);
            LockWait {
                waiter: waiter.clone(),
                holders: self.holders(want).map(|it| it.holder.clone()).collect(),
                ahead: self.earlier(want).count(),
            }
        };
        self.waiters().take(most).map(wait).collect()
    }
}

/// A circle of agents that would have waited for each other. In memory only.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RefusedCircle {
    /// When it was refused last.
    pub at: Timestamp,
    /// When it was put on record.
    pub told_at: Timestamp,
    /// The number of times that it was refused.
    pub times: u32,
    /// The symbol for which the first agent wanted to wait.
    pub wanted: SymbolPath,
    /// The agents: each would have waited for the next, and the last one for the first.
    pub members: Vec<AgentId>,
}

/// The circles that were refused last, oldest first.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RefusedCircles(VecDeque<Arc<RefusedCircle>>);

impl RefusedCircles {
    pub(crate) fn put(&mut self, it: Arc<RefusedCircle>) {
        let from = Timestamp(it.at.0.saturating_sub_unsigned(CIRCLES_KEPT_MS));
        self.0.retain(|known| known.at >= from && !known.is_same(&it));
        if self.0.len() >= CIRCLES_KEPT_MAX {
            self.0.pop_front();
        }
        self.0.push_back(it);
    }

    /// Returns the circles of the last hour, newest first.
    pub(crate) fn lately(&self, now: Timestamp) -> impl Iterator<Item = &Arc<RefusedCircle>> {
        let from = Timestamp(now.0.saturating_sub_unsigned(CIRCLES_KEPT_MS));
        self.0.iter().rev().take_while(move |it| it.at >= from)
    }
}

impl RefusedCircle {
    fn is_same(&self, other: &Self) -> bool {
        self.wanted == other.wanted && self.members == other.members
    }
}

impl crate::State {
    /// Remembers a circle that was refused, and puts it on record; a repeated one only once in a while.
    pub(crate) fn note_circle(&self, now: Timestamp, at: &SymbolPath, circle: &[AgentId], out: &mut Outbox) {
        let members: Vec<AgentId> = circle.iter().take(CIRCLE_MEMBERS_MAX).cloned().collect();
        let mut it = RefusedCircle { at: now, told_at: now, times: 1, wanted: at.clone(), members };
        let before = self.circles.lately(now).find(|known| known.is_same(&it));
        it.times = before.map_or(1, |known| known.times.saturating_add(1));
        let told = before.filter(|known| now.since_ms(known.told_at) < CIRCLE_TOLD_MS);
        if let Some(known) = told {
            it.told_at = known.told_at;
        } else {
            let (symbol, circle) = (at.clone(), it.members.clone());
            out.append_event(EventKind::LockWaitRefused { symbol, circle });
        }
        out.put(Change::RefuseCircle(Arc::new(it)));
    }
}
