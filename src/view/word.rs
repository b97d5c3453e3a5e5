//! The words and tones of states. A state is a word first; its tone only repeats it in colour.

use serde::Serialize;

/// How a state is coloured, and which sign stands before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Tone {
    /// It needs no one.
    Quiet,
    /// It goes on.
    Moving,
    /// It waits for something.
    Waiting,
    /// It has ended well.
    Good,
    /// It has ended badly, or a person has to look.
    Bad,
}

/// A state as it is shown.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Word {
    /// The state.
    pub word: String,
    /// Its colour.
    pub tone: Tone,
}

impl Word {
    /// This word in this tone.
    pub fn new(word: impl Into<String>, tone: Tone) -> Self {
        Self { word: word.into(), tone }
    }
}

/// The state of a task, in the words of `wire::Task::state`; of an unknown one, the word itself.
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

/// Whether an agent of this name is a person of this daemon: no other one may be called so.
pub(crate) fn is_a_person(agent: &str) -> bool {
    agent.starts_with("user:")
}

/// The order of states in a list: what needs someone first, then what goes on, then what has ended.
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

/// The risk that a rule has named.
pub fn of_risk(risk: &str) -> Word {
    match risk {
        "high" => Word::new("high risk", Tone::Bad),
        "medium" => Word::new("medium risk", Tone::Waiting),
        "low" => Word::new("low risk", Tone::Quiet),
        other => Word::new(format!("risk {other}"), Tone::Waiting),
    }
}

/// The order of risks: the gravest first, and an unknown one with it.
pub(crate) fn gravity(risk: &str) -> u8 {
    match risk {
        "low" => 2,
        "medium" => 1,
        _ => 0,
    }
}
