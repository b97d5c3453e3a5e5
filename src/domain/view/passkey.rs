//! Passkeys on record, at one moment.

use super::View;
use crate::{Passkeys, State, TaskState};
use provost_base::limits::PASSKEY_QUIET_S;
use provost_base::{Timestamp, Ttl};

/// The time after an agent's last sign of life within which it counts as at work.
const PASSKEY_QUIET: Ttl = Ttl::seconds_clamped(PASSKEY_QUIET_S);

/// The query for all passkeys on record, and their state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AllPasskeys;

/// Answer to [`AllPasskeys`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AllPasskeysOut {
    /// The passkeys.
    pub passkeys: Passkeys,
    /// Whether a person has enrolled a passkey, as rules see it.
    pub enrolled: bool,
    /// Until when no passkey counts after a reset; if a daemon writes alone, provided that it runs until then.
    pub waits_until: Option<Timestamp>,
    /// Whether several hosts share the record; then it is the list, too.
    pub shared: bool,
    /// The time that the clock has gone further than the daemon has run since the reset, in milliseconds.
    pub leapt_ms: u64,
}

impl View for AllPasskeys {
    type Out = AllPasskeysOut;

    fn look(self, now: Timestamp, state: &State) -> AllPasskeysOut {
        let passkeys = state.passkeys.clone();
        let (enrolled, shared) = (passkeys.are_enrolled(), !state.here.is_alone());
        let standing = passkeys.standing();
        let (waits_until, leapt_ms) = match shared {
            // This is the clock of the database, which no host sets.
            true => ((standing.left_ms > 0).then_some(standing.until), 0),
            false => (passkeys.waits_until(now), passkeys.leapt_ms(now)),
        };
        AllPasskeysOut { passkeys, enrolled, waits_until, shared, leapt_ms }
    }
}

/// The query whether an agent or a worker is at work, or was heard of a moment ago.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AgentsAtWork;

impl View for AgentsAtWork {
    type Out = bool;

    fn look(self, now: Timestamp, state: &State) -> bool {
        state.tasks.iter().any(|it| matches!(it.state, TaskState::Running { .. }))
            || state.agents.any_seen_within(now, PASSKEY_QUIET)
    }
}
