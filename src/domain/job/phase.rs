//! The five parts of an execution. A6s 6.2.

use serde::{Deserialize, Serialize};

use super::JobState;
use provost_base::Timestamp;

/// The name of a part.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PhaseName {
    /// The facts are gathered.
    Research,
    /// The daemon finds out whether and with what it can be done, and waits for a place.
    Inspect,
    /// The worker does the work.
    Generate,
    /// The result is tidied up.
    Optimize,
    /// The changes are collected and checked.
    Review,
}

impl PhaseName {
    /// All parts, in their order.
    pub const ALL: [PhaseName; 5] = [
        PhaseName::Research,
        PhaseName::Inspect,
        PhaseName::Generate,
        PhaseName::Optimize,
        PhaseName::Review,
    ];

    /// Returns the word that clients get.
    pub fn as_str(self) -> &'static str {
        match self {
            PhaseName::Research => "research",
            PhaseName::Inspect => "inspect",
            PhaseName::Generate => "generate",
            PhaseName::Optimize => "optimize",
            PhaseName::Review => "review",
        }
    }
}

/// The state of a part.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PhaseState {
    /// It has not begun.
    #[default]
    Pending,
    /// The part has begun and has not ended.
    Running,
    /// The part has ended well.
    Completed,
    /// The part has failed; the parts after it do not begin.
    Failed,
}

impl PhaseState {
    /// Returns the word that clients get.
    pub fn as_str(self) -> &'static str {
        match self {
            PhaseState::Pending => "pending",
            PhaseState::Running => "running",
            PhaseState::Completed => "completed",
            PhaseState::Failed => "failed",
        }
    }
}

/// The progress of one part.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Phase {
    /// The part's state.
    pub state: PhaseState,
    /// When it began; `None` while it is pending.
    pub began_at: Option<Timestamp>,
    /// When it ended, well or not; `None` until then.
    pub ended_at: Option<Timestamp>,
}

/// The progress of all five parts, in their order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Phases([Phase; 5]);

impl Phases {
    /// Returns each part with its name, in their order.
    pub fn iter(&self) -> impl Iterator<Item = (PhaseName, &Phase)> {
        PhaseName::ALL.into_iter().zip(&self.0)
    }

    /// Returns the part that is under way, or the last one that was.
    pub fn current(&self) -> Option<(PhaseName, &Phase)> {
        self.iter().filter(|(_, phase)| phase.state != PhaseState::Pending).last()
    }

    pub(super) fn move_to(&mut self, now: Timestamp, name: PhaseName, state: PhaseState) {
        let phase = &mut self.0[name as usize];
        phase.state = state;
        match state {
            PhaseState::Pending => {}
            PhaseState::Running => phase.began_at = Some(now),
            PhaseState::Completed | PhaseState::Failed => {
                phase.began_at.get_or_insert(now);
                phase.ended_at = Some(now);
            }
        }
    }

    /// Ends the part that is under way when its job ends.
    pub(super) fn close(&mut self, now: Timestamp, job: JobState) {
        let state = if job == JobState::Completed { PhaseState::Completed } else { PhaseState::Failed };
        let running = self.iter().find(|(_, phase)| phase.state == PhaseState::Running);
        if let Some(name) = running.map(|(name, _)| name) {
            self.move_to(now, name, state);
        }
    }
}
