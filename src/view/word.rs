//! The words and tones of states. A state is a word first; its tone only repeats it in colour.

use serde::Serialize;

/// The colour of a state, and the sign that stands before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Tone {
    /// The state needs no person.
    Quiet,
    /// The work goes on.
    Moving,
    /// The work waits for something.
    Waiting,
    /// The work has ended well.
    Good,
    /// The work has ended badly, or a person has to look.
    Bad,
}

/// A state as a view shows it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Word {
    /// The state.
    pub word: String,
    /// Its colour.
    pub tone: Tone,
}

impl Word {
    /// Makes this word in this tone.
    pub fn new(word: impl Into<String>, tone: Tone) -> Self {
        Self { word: word.into(), tone }
    }
}

/// Returns the words for a task's state of `wire::Task::state`; for an unknown state, the word itself.
pub fn of_task(state: &str) -> Word {
    match state {
        "awaiting" => Word::new("waits for approval", Tone::Waiting),
        "queued" => Word::new("queued", Tone::Waiting),
        "retrying" => Word::new("waits for its next attempt", Tone::Waiting),
        "waiting" => Word::new("waits for other tasks", Tone::Waiting),
        "assigned" => Word::new("assigned", Tone::Moving),
        "running" => Word::new("running", Tone::Moving),
        "completed" => Word::new("completed", Tone::Good),
        "failed" => Word::new("failed", Tone::Bad),
        "cancelled" => Word::new("cancelled", Tone::Quiet),
        other => Word::new(other, Tone::Quiet),
    }
}

/// Checks whether an agent of this name is a person of this daemon: no other agent may have such a name.
pub(crate) fn is_a_person(agent: &str) -> bool {
    agent.starts_with("user:")
}

/// Returns a state's rank in a list: states that need a person, then those in progress, then ended ones.
pub(crate) fn rank(state: &str) -> u8 {
    match state {
        "awaiting" => 0,
        "running" => 1,
        "assigned" => 2,
        "queued" => 3,
        "retrying" => 4,
        "waiting" => 5,
        _ => 6,
    }
}

/// Returns the word for a risk that a rule has named.
pub fn of_risk(risk: &str) -> Word {
    match risk {
        "high" => Word::new("high risk", Tone::Bad),
        "medium" => Word::new("medium risk", Tone::Waiting),
        "low" => Word::new("low risk", Tone::Quiet),
        other => Word::new(format!("risk {other}"), Tone::Waiting),
    }
}

/// Returns a risk's rank: the gravest first, and an unknown one with it.
pub(crate) fn gravity(risk: &str) -> u8 {
    match risk {
        "low" => 2,
        "medium" => 1,
        _ => 0,
    }
}
